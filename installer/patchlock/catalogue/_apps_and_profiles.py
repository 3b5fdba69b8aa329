"""Turn the tables of the catalogue's files into values, noting every mistake; reads no file."""

from __future__ import annotations

import datetime
import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.version import Version

from patchlock.catalogue import _fits, _models, _needs, _overlays, _recipes, _rule_tables
from patchlock.catalogue.table_reader import Allowed, Table, version
from patchlock.model.app import (
    App,
    EmbeddedUpstream,
    GitUpstream,
    Launch,
    Listens,
    MissingOption,
    SharedSet,
    Upstream,
)
from patchlock.model.checks import (
    CHECKS,
    Check,
    CommandCheck,
    LayersCheck,
    OwnCheck,
    PythonCheck,
    ServesCheck,
    SmokeImport,
    SoundCheck,
)
from patchlock.model.errors import nearest
from patchlock.model.identities import CommitId
from patchlock.model.lock_rules import LockRules
from patchlock.model.patch import Ensure, Patch
from patchlock.model.platforms import PLATFORMS
from patchlock.model.profile import Profile
from patchlock.model.refusals import RefusedPair
from patchlock.patches.ops import OPS
from patchlock.patches.postconditions import ENSURES
from patchlock.patches.targets import unfit_paths

_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

EXECUTED: Mapping[str, type[SmokeImport]] = {"smoke-import": SmokeImport}
"""`check` of a `[[patch.ensure]]` that `verify` runs → dataclass whose fields are its keys."""


# --- apps -------------------------------------------------------------------------------------------------------------


def app(
    root: Table,
    name: str,
    profiles: Allowed = None,
    resources: Allowed = None,
    shared: tuple[SharedSet, ...] = (),
    apps: Allowed = None,
) -> App:
    """Read an app's file; `shared` are the sets that it names, as it takes them: see `shared_sets.taken`."""
    table = root.table("app")
    table.known(("shared", "without", "expect"))
    upstream = root.table("upstream")
    theirs = tuple(patch for one in shared for patch in one.patches)
    declared = patches(root, profiles, theirs)
    read = table.read(
        App,
        name=_name(table, name),
        upstream=_upstream(upstream, name),
        branch=upstream.parse("branch", _branch, "main", "main"),
        as_of=upstream.parse("as-of", _cut_off, "", ""),
        submodules=upstream.each("submodules", _relative),
        directory=upstream.parse("directory", _relative, PurePosixPath(), "."),
        rules=sum((one.rules for one in shared), LockRules()) + _rule_tables.rules(root, profiles),
        recipes=_recipes.recipes(root, profiles, patches),
        in_tree=_recipes.in_tree(root, profiles),
        patches=(*theirs, *declared),
        shared=shared,
        launch=launch(root.table("launch"), name, apps),
        checks=_checks(root, profiles),
        refusals=refusals(root, profiles),
        trials=trials(root, profiles),
        needs=_needs.needs(root, profiles, resources),
        memory=_needs.memory(root, profiles),
        missing_options=_missing_options(root, (*theirs, *declared)),
        models=_models.models(root, profiles),
    )
    upstream.finish()
    table.finish()
    return read


def _name(table: Table, name: str) -> str:
    if not _NAME.fullmatch(name):
        table.problem("", f'the name "{name}" must be lower-case words joined by "-"')
    return name


def _relative(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or "\\" in text:
        raise ValueError(f'"{text}" must be a POSIX path inside the clone')
    return path


def _upstream(table: Table, app: str) -> Upstream:
    commit = table.parse("commit", _commit, CommitId(""))
    if table.has("embedded"):
        folder = table.parse("embedded", _relative, PurePosixPath())
        date = table.parse("date", _date, "")
        return EmbeddedUpstream(folder=PurePosixPath("patches") / app / folder, commit=commit, date=date)
    return GitUpstream(url=table.text("url"), commit=commit)


def _branch(text: str) -> str:
    if not _BRANCH.fullmatch(text) or ".." in text:
        raise ValueError(f'"{text}" is not the name of a branch')
    return text


def _date(text: str) -> str:
    try:
        datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError as error:
        raise ValueError(f'"{text}" must be a time such as "2026-01-31T00:00:00Z"') from error
    return text


def _cut_off(text: str) -> str:
    return _date(text) if text else ""


def _commit(text: str) -> CommitId:
    if not _COMMIT.fullmatch(text):
        raise ValueError(f'"{text}" must be a commit id of 40 hexadecimal digits')
    return CommitId(text)


# --- patches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Declared:
    """A patch as far as it could be read."""

    table: Table
    id: str
    after: tuple[str, ...]
    patch: Patch | None


def patches(
    root: Table, profiles: Allowed = None, before: tuple[Patch, ...] = (), *, may_lack: bool = False
) -> tuple[Patch, ...]:
    """Read the `[[patch]]` tables of a file.

    Args:
        root: the file.
        profiles: those that there are.
        before: patches that go before all of these.
        may_lack: a patch may go `after` one that was removed or written anew, as a fork does with its own.
    """
    declared = tuple(_patch(table, profiles) for table in root.tables("patch"))
    _check_order(declared, before, may_lack=may_lack)
    _check_options(declared)
    return tuple(one.patch for one in declared if one.patch is not None)


def _patch(table: Table, profiles: Allowed) -> _Declared:
    op = table.variant("op", OPS)
    op_name = table.text("op", "")
    listed = table.tables("ensure")
    ensures = [ensure for t in listed if (ensure := _ensure(t)) is not None]
    if not listed:
        table.problem("ensure", "a patch must say what holds afterwards", "add an [[patch.ensure]] table")
    patch = table.read(
        Patch,
        {"profiles": profiles},
        op_name=op_name,
        op=op,
        ensures=tuple(ensure for ensure in ensures if not isinstance(ensure, SmokeImport)),
        executed=tuple(ensure for ensure in ensures if isinstance(ensure, SmokeImport)),
    )
    if why_not := unfit_paths(op, patch.paths):
        table.problem("paths", why_not)
    if patch.advisory and patch.optional:
        table.problem("advisory", "what a person chooses by name is never left out", "remove the key")
    for key in ("gives", "helps") if not patch.optional else ():
        if table.has(key):
            table.problem(key, "it is for an optional patch", "write optional = a name")
    if op_name in OPS:  # of an unknown op nobody can say which other keys belong to it
        table.finish()
    return _Declared(table=table, id=patch.id, after=patch.after, patch=patch if op is not None else None)


def _ensure(table: Table) -> Ensure | SmokeImport | None:
    known = ChainMap[str, type[Ensure | SmokeImport]](EXECUTED, ENSURES)  # type: ignore[arg-type]
    ensure = table.variant("check", known)
    if table.text("check", "") in known:
        table.finish()
    return ensure


def _check_options(declared: tuple[_Declared, ...]) -> None:
    told = {one.patch.optional for one in declared if one.patch is not None and one.patch.gives}
    for one in declared:
        name = one.patch.optional if one.patch is not None else ""
        if name and name not in told:
            one.table.problem("gives", f'nothing says what is to be had by "{name}"', "write gives = a clause")
            told.add(name)


def _missing_options(root: Table, known: tuple[Patch, ...]) -> tuple[MissingOption, ...]:
    """Read the `[[missing-option]]` tables of an app's file; no name of theirs can be chosen, and each stands once."""
    taken = {patch.optional for patch in known if patch.optional}
    found = []
    for table, one in root.rows("missing-option", MissingOption):
        for name in one.names:
            if name in taken:
                table.problem("names", f'"{name}" is the name of something else to choose', "take another name")
            taken.add(name)
        found.append(one)
    return tuple(found)


def _check_order(declared: tuple[_Declared, ...], before: tuple[Patch, ...], *, may_lack: bool) -> None:
    seen = {patch.id: patch.origin for patch in before}
    ids = {one.id for one in declared if one.id} | seen.keys()
    own = [one.patch for one in declared if one.patch is not None]
    advisory = {patch.id for patch in (*before, *own) if patch.advisory}
    for one in declared:
        if one.id in seen:
            one.table.problem("id", f'the id "{one.id}" is taken by the patch at {seen[one.id]}')
        for other in one.after:
            if other not in seen and may_lack:
                continue
            if other not in ids:
                one.table.problem("after", f'there is no patch "{other}"', nearest(other, ids))
            elif other not in seen:
                one.table.problem("after", f'the patch "{other}" comes later', "write it first")
            elif other in advisory and one.patch is not None and not one.patch.advisory:
                what = f'the patch "{other}" is advisory, so that it may be left out'
                one.table.problem("after", what, "make this one advisory, too, or that one required")
        if one.id:
            seen[one.id] = one.table.origin()


# --- profiles ---------------------------------------------------------------------------------------------------------


def profile(root: Table, name: str, indexes: tuple[str, ...], resources: Allowed = None) -> Profile:
    """Read a profile's file."""
    table = root.table("profile")
    platforms = table.texts("platforms")
    for platform in platforms:
        if platform not in PLATFORMS:
            table.problem("platforms", f'there is no platform "{platform}"', nearest(platform, PLATFORMS))
    read = table.read(
        Profile,
        {"indexes": indexes},
        name=_name(table, name),
        python=table.parse("python", minor_version, Version("3.11")),
        platforms=tuple(PLATFORMS[p] for p in platforms if p in PLATFORMS),
        fits=_fits.fits(root),
        trials=_fits.fits(root, "trial"),
        successor=_fits.successor(root),
        rules=_rule_tables.rules(root, (name,)),
        recipes=_recipes.recipes(root, (name,), patches),
        environment=root.mapping("environment"),
        overlays=_overlays.overlays_of(root, platforms),
        checks=_checks(root),
        needs=_needs.needs(root, (name,), resources),
    )
    table.finish()
    return read


def minor_version(text: str) -> Version:
    """Parse a Python version of two numbers; a `ValueError` says in one clause that it is none."""
    parsed = version(text)
    if len(parsed.release) != 2:
        raise ValueError(f'"{text}" must be a Python version of two numbers, such as "3.11"')
    return parsed


def _checks(root: Table, profiles: Allowed = None) -> tuple[Check, ...]:
    found: list[Check] = []

    def layers(table: Table) -> Check:
        return table.read(LayersCheck, {"profiles": profiles}, code="")

    def sound(table: Table) -> Check:
        return table.read(SoundCheck, {"profiles": profiles}, code="")

    for table in root.tables("check"):
        check = table.variant("kind", CHECKS, {"layers": layers, "sound": sound})
        if table.text("kind", "") in CHECKS:
            table.finish()
        if check is not None:
            if check.id in {other.id for other in found}:
                table.problem("id", f'the id "{check.id}" is taken by another check')
            _check_filled(table, check)
            found.append(check)
    return tuple(found)


def _check_filled(table: Table, check: Check) -> None:
    if isinstance(check, OwnCheck | LayersCheck | SoundCheck) and check.timeout <= 0:
        table.problem("timeout", "it must be a number of seconds above 0")
    if isinstance(check, OwnCheck | LayersCheck | SoundCheck) and check.memory_gb < 0:
        table.problem("memory-gb", "it must be a number of gigabytes above 0")
    if isinstance(check, SoundCheck) and check.runs <= 0:
        table.problem("runs", "it must be a number above 0")
    if not check.id:
        table.problem("id", "it is empty")
    if isinstance(check, LayersCheck) and not check.parts:
        table.problem("parts", "it names no part", 'write parts = [{ name = "…" }]')
    if isinstance(check, CommandCheck | ServesCheck) and not check.command:
        table.problem("command", "it is empty")
    if isinstance(check, PythonCheck):
        try:
            compile(check.code, check.id, "exec")
        except (SyntaxError, ValueError) as error:
            table.problem("code", f"it is not Python: {error}")
        if not check.prints:
            table.problem("prints", "it is empty, so that the check proves little")


_LAST_PORT = 65535


def launch(table: Table, app: str, apps: Allowed = None) -> Launch:
    """Read `[launch]`, a table that is empty where the file has none."""
    table.known(("listens",))
    read = table.read(Launch, listens=_listens(table.table("listens")) if table.has("listens") else None)
    for variable, other in read.companion_apps.items():
        others = [one for one in apps or (other,) if one != app]
        if other not in others:
            table.problem(f"beside.{variable}", f'there is no other app "{other}"', nearest(other, others))
        if variable in read.environment:
            table.problem(f"beside.{variable}", "it is in launch.environment too")
    table.finish()
    return read


def _listens(table: Table) -> Listens:
    known = table.has("port")
    read = Listens(
        port=table.integer("port"),
        environment=table.mapping("environment"),
        arguments=table.texts("arguments", ()),
        path=table.text("path", "/"),
    )
    if not read.path.startswith("/"):
        table.problem("path", "it must begin with /", f'write "/{read.path}"')
    if known and not 0 < read.port <= _LAST_PORT:
        table.problem("port", f"it must be the number of a port, 1 to {_LAST_PORT}")
    table.text("source")
    table.finish()
    return read


def refusals(root: Table, profiles: Allowed) -> tuple[RefusedPair, ...]:
    """Read the `[[refused]]` tables of an app's file."""
    return tuple(pair for _, pair in root.rows("refused", RefusedPair, {"profiles": profiles}))


def trials(root: Table, profiles: Allowed) -> tuple[RefusedPair, ...]:
    """Read the `[[trial]]` tables of an app's file."""
    return tuple(pair for _, pair in root.rows("trial", RefusedPair, {"profiles": profiles}))
