"""Turn the tables of `profiles/policy/` into rules, noting every mistake; reads no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.table_reader import Table, distribution, sha256, version
from patchlock.model.errors import nearest
from patchlock.model.gpu_archs import is_found, ordered
from patchlock.model.identities import Sha256
from patchlock.model.policy import (
    BUILDS,
    ArchFree,
    BrokenPair,
    Builds,
    Family,
    MemberRow,
    Placeholder,
    RecordedWheelFacts,
    SharedFolder,
    Unclaimed,
)

WHEELS_FILE = "profiles/policy/wheels.toml"
_HEAD = """\
# GPU architectures of compiled code, found in the bytes of wheels by `patchlock scan --record`: `sm_110` is machine
# code, `compute_90` is PTX, which newer GPUs compile for themselves, `gfx1201` is machine code of ROCm; an empty list
# means that there is no such code. Sorted by file name.
"""


def family(root: Table, file: str) -> Family:
    """Read a family: its head, and for each version of each member the versions of the head that it is built for."""
    table = root.table("family")
    head = table.parse("of", distribution, canonicalize_name("nothing"))
    table.finish()
    members: dict[NormalizedName, Mapping[Version, MemberRow]] = {}
    for member in root.tables("member"):
        name = member.parse("name", distribution, canonicalize_name("nothing"))
        builds = _builds(member, None)
        rows: dict[Version, MemberRow] = {}
        for row in member.tables("rows"):
            number = row.parse("version", version, Version("0"))
            if number in rows:
                row.problem("version", f"{name} {number} has a row already")
            fits = tuple(_version(row, head, text) for text in row.texts_named_here(head))
            if not fits:
                row.problem(head, "it is empty")
            rows[number] = MemberRow(fits=fits, builds=_builds(row, builds), source=row.text("source"))
            row.finish()
        if name in members:
            member.problem("name", f"{name} has a table already")
        members[name] = rows
        member.finish()
    return Family(head=head, members=members, file=file)


def _version(table: Table, key: str, text: str) -> Version:
    try:
        return version(text)
    except ValueError as error:
        table.problem(key, str(error))
        return Version("0")


def _builds(table: Table, default: Builds | None) -> Builds:
    text = table.text("builds", default)
    for known in get_args(Builds):
        if text == known:
            found: Builds = known
            return found
    table.problem("builds", f'"{text}" is none of {", ".join(BUILDS)}', nearest(text, BUILDS))
    return "same"


def pairs(root: Table) -> tuple[BrokenPair, ...]:
    """Read the pairs that are known not to work together."""
    return tuple(pair for _, pair in root.rows("pair", BrokenPair))


def folders(root: Table) -> tuple[SharedFolder, ...]:
    """Read the folders that several distributions write."""
    found = []
    for table, folder in root.rows("folder", SharedFolder):
        if len(folder.owners) < 2:
            table.problem("owners", "it must name two distributions or more")
        found.append(folder)
    return tuple(found)


def placeholders(root: Table) -> tuple[Placeholder, ...]:
    """Read the names that PyPI only holds for a vendor."""
    return tuple(one for _, one in root.rows("placeholder", Placeholder))


def unclaimed(root: Table) -> tuple[Unclaimed, ...]:
    """Read the chips that are left out on purpose."""
    return tuple(one for _, one in root.rows("unclaimed", Unclaimed))


def wheels(root: Table) -> Mapping[Sha256, RecordedWheelFacts]:
    """Read what was found in wheels."""
    found: dict[Sha256, RecordedWheelFacts] = {}
    for table in root.tables("wheel"):
        digest = table.parse("sha256", sha256, Sha256(""))
        archs = table.texts("archs")
        for arch in archs:
            if not is_found(arch):
                table.problem("archs", f'"{arch}" is not a GPU architecture such as sm_110, compute_90 or gfx1201')
        if digest in found:
            table.problem("sha256", "it has a table already")
        found[digest] = RecordedWheelFacts(
            filename=table.text("filename"), archs=frozenset(archs), source=table.text("source")
        )
        table.finish()
    return found


def render_wheels(found: Mapping[Sha256, RecordedWheelFacts]) -> str:
    """Write what was found in wheels as the file that `wheels` reads; the same facts give the same text."""
    import tomlkit  # which is only for who writes

    listed = sorted(found.items(), key=lambda item: (item[1].filename, item[0]))
    rows = [
        {"filename": facts.filename, "sha256": digest, "archs": list(ordered(facts.archs)), "source": facts.source}
        for digest, facts in listed
    ]
    return "\n".join([_HEAD, tomlkit.dumps({"wheel": rows})]) if rows else _HEAD


def arch_free(root: Table) -> tuple[ArchFree, ...]:
    """Read the distributions whose compiled GPU code is not what an app runs."""
    found = []
    for table in root.tables("distribution"):
        names = tuple(canonicalize_name(name) for name in table.texts("names"))
        why, source = table.text("why"), table.text("source")
        found += [ArchFree(name=name, why=why, source=source) for name in names]
        table.finish()
    return tuple(found)
