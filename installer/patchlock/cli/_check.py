"""`check`: the catalogue holds, app by app; for its maintainers and for CI."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _lock_table, _options, _output, _progress
from patchlock.model.errors import EXIT_FAILURE, EXIT_NOT_CHECKED, CheckError, NotCheckedError, PatchlockError

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.lock_request import Request
    from patchlock.model.app import App
    from patchlock.model.profile import Profile
    from patchlock.operations.check_catalogue import CatalogueFinding


@click.command("check")
@click.argument("apps", nargs=-1, shell_complete=_complete.apps)
@click.option("--offline", is_flag=True, help="Skip upstream: check only cases, facts and locks.")
@click.option("--source", metavar="PATH-OR-URL", help="Take upstream from here: an offline clone, a mirror, a fork.")
@_options.common
def check_command(
    apps: tuple[str, ...], offline: bool, source: str | None, catalogue: Path | None, as_json: bool
) -> int:
    """Validate the catalogue: files, patches, cases, locks.

    \b
    Example:
      patchlock check
      patchlock check demo --offline
    """
    from patchlock.catalogue import proofs

    opened = _options.open_catalogue(catalogue)
    opened.read_all()
    proofs.read(opened.root)
    progress = _progress.progress(as_json)
    from patchlock.operations import check_catalogue

    facts = check_catalogue.sources(opened.root)
    profiles = [opened.profile(name) for name in opened.profile_names()]
    read = [opened.app(name) for name in apps or opened.app_names()]
    pairs = [_requests(opened, app, profiles, source) for app in read]
    strays = None if apps else check_catalogue.strays(opened, list(itertools.chain.from_iterable(pairs)))
    found: dict[str, list[CatalogueFinding]] = {}
    for app, of_app in zip(read, pairs, strict=True):
        with progress.stage(app.name):
            found[app.name] = list(_findings(opened, app, of_app, offline=offline))
            progress.say(_summary(found[app.name]))
    chips = check_catalogue.chips(opened)
    every = {"the catalogue": [one for one in (facts, chips, strays) if one is not None], **found}
    wrong = [f"{name}: {one.what}: {text}" for name, seen in every.items() for one in seen for text in one.problems]
    unknown = [
        f"{name}: {one.what}: {one.not_checked}" for name, seen in every.items() for one in seen if one.not_checked
    ]
    if as_json:
        listed = {name: [dataclasses.asdict(one) for one in findings] for name, findings in found.items()}
        error: PatchlockError | None = None
        if wrong:
            error = CheckError(
                "the catalogue has mistakes",
                where=str(opened.root),
                remedy="correct what the lines name",
                evidence=wrong,
            )
        elif unknown:
            error = NotCheckedError(
                "some patches were not tried, as upstream cannot be read", remedy=_CONNECT, evidence=unknown
            )
        return _output.succeed(
            "check",
            {
                "apps": listed,
                "facts": dataclasses.asdict(facts),
                "chips": dataclasses.asdict(chips) if chips else None,
                "strays": dataclasses.asdict(strays) if strays else None,
            },
            error,
        )
    for name, findings in every.items():
        _output.echo(f"{name}\n{_output.rows(_rows(findings))}")
    for words in _lock_table.relocks(pair for name, findings in found.items() for pair in _locks(name, findings)):
        _output.echo(f"to make or renew these locks: patchlock lock {words}", err=True)
    if unknown:
        count = sum(len(_shared_rows(findings)[2]) for findings in found.values())
        _output.echo(f"not checked: {count}, as upstream cannot be read; {_CONNECT}", err=True)
    return EXIT_FAILURE if wrong else EXIT_NOT_CHECKED if unknown else 0


_CONNECT = "connect, give a complete clone (--source PATH), or leave upstream out (--offline)"


def _locks(app: str, findings: list[CatalogueFinding]) -> Iterator[tuple[str, str, bool]]:
    """Give what `relocks` asks for; no lock can be made where the patches of its profile fail, or were not tried."""
    stuck = {one.profile for one in findings if not one.says}
    for one in findings:
        if _is_lock(one):
            yield app, one.profile, one.needs_relock and one.profile not in stuck


def _is_lock(finding: CatalogueFinding) -> bool:
    return finding.what.startswith("lockfiles/")


def _rows(findings: list[CatalogueFinding]) -> list[tuple[str, str]]:
    return [row for rows in _shared_rows(findings) for row in rows]


def _shared_rows(findings: list[CatalogueFinding]) -> tuple[list[tuple[str, str]], ...]:
    """Write the rows of what holds, of what does not, and of what was not checked.

    The same problem of several findings, or the same reason for not checking, is one row.
    """
    good = [
        (one.what, "\n".join((one.says, *(f"warning: {text}" for text in one.warnings))))
        for one in findings
        if not one.problems and not one.not_checked
    ]
    wrong = [(text, one) for one in findings for text in one.problems]
    unknown = [(f"not checked: {one.not_checked}", one) for one in findings if one.not_checked]
    return good, _joined(wrong, findings), _joined(unknown, findings)


def _joined(told: list[tuple[str, CatalogueFinding]], findings: list[CatalogueFinding]) -> list[tuple[str, str]]:
    whose: dict[str, list[str]] = {}
    for text, one in told:
        whose.setdefault(text, []).append(one.what)
    texts: dict[tuple[str, ...], list[str]] = {}
    for text, names in whose.items():
        texts.setdefault(tuple(names), []).append(text)
    locks = tuple(one.what for one in findings if one.profile and _is_lock(one))
    tried = tuple(one.what for one in findings if one.profile and not _is_lock(one))
    return [
        (_output.first_of(names, {locks: "locks", tried: "profiles"}.get(names, "")), "\n".join(lines))
        for names, lines in texts.items()
    ]


def _summary(findings: list[CatalogueFinding]) -> str:
    """Count the rows that `_rows` writes."""
    good, wrong, unknown = map(len, _shared_rows(findings))
    return f"{good} good, {wrong} wrong" + (f", {unknown} not checked" if unknown else "")


def _requests(catalogue: Catalogue, app: App, profiles: Iterable[Profile], source: str | None) -> list[Request]:
    """Give the pairs of an app, by profile."""
    from patchlock.locks.lock_request import Request

    home, cache = _options.home(), _options.cache()
    return [
        Request(app=app, profile=profile, platform=platform, catalogue=catalogue, home=home, cache=cache, source=source)
        for profile in profiles
        for platform in profile.platforms
    ]


def _findings(catalogue: Catalogue, app: App, pairs: list[Request], *, offline: bool) -> Iterator[CatalogueFinding]:
    from patchlock.operations import check_catalogue
    from patchlock.operations.patch_test import PatchTestRequest

    policy = catalogue.rules()
    yield check_catalogue.cases(app, PatchTestRequest(catalogue=catalogue, cache=_options.cache()))
    if (open_ends := check_catalogue.launch(app)) is not None:
        yield open_ends
    for _, of_profile in itertools.groupby(pairs, key=lambda request: request.profile.name):
        requests = list(of_profile)
        possible = [request for request in requests if check_catalogue.is_possible(request)]
        if possible and not offline:
            yield check_catalogue.patches(possible[0])
        yield from (check_catalogue.lock(request, policy) for request in requests)
    yield from check_catalogue.imports(app, pairs)
    if pairs and (app.rules.builds or app.rules.metadata):
        yield check_catalogue.rules(pairs)
