"""Turn a `patches/distributions/<name>/patch.toml` into values, noting every mistake; reads no file."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Allowed, Table, specifiers, version
from patchlock.model.identities import Sha256
from patchlock.model.origins import Origin
from patchlock.model.patch import Patch


@dataclass(frozen=True, kw_only=True)
class KnownWheel:
    """A file of upstream that the patches were tried on."""

    filename: str
    version: Version
    sha256: Sha256
    source: str


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The patches of a third-party distribution.

    Whether they are needed is decided by running the cases on the wheel, never by `fixed_from`, which is only told.
    """

    name: NormalizedName
    why: str
    source: str
    versions: SpecifierSet
    """For which versions the patches and the cases were written."""
    partly_fixed_from: Version | None
    """From this version on, some of the cases passed where the author looked."""
    fixed_from: Version | None
    """From this version on, all of the cases passed where the author looked."""
    stubs: tuple[str, ...]
    """Top-level packages that the cases do without."""
    cases: PurePosixPath
    """From the catalogue's root."""
    wheels: tuple[KnownWheel, ...]
    """In the order of the file."""
    patches: tuple[Patch, ...]
    """Their paths are from the root of the wheel; they are for every profile."""
    untrusted: Path | None = None
    """The folder of its catalogue, where nobody has agreed that its cases run."""
    origin: Origin


def distribution(root: Table, name: str, folder: str, has_cases: bool, profiles: Allowed = None) -> Distribution:
    """Read the patches of a distribution.

    Args:
        root: the whole file.
        name: the distribution's normalised name, which is its folder's.
        folder: where the file lies, from the catalogue's root.
        has_cases: whether there is a `cases.py` beside it.
        profiles: for which patches may be.
    """
    table = root.table("distribution")
    if canonicalize_name(name) != name:
        table.problem("", f'the folder "{name}" must have the normalised name "{canonicalize_name(name)}"')
    if not has_cases:
        table.problem(
            "", "there is no cases.py beside it", "write functions case_… that fail where the patch is needed"
        )
    versions = table.parse("versions", specifiers, SpecifierSet())
    declared = _apps_and_profiles.patches(root, profiles)
    if not declared and not root.has("patch"):
        root.problem("patch", "it has no patch", "add a [[patch]] table")
    for index, patch in enumerate(declared):
        if patch.profiles:
            root.problem(f"patch[{index}].profiles", "a wheel is patched for every profile", "remove the key")
        if patch.advisory:
            root.problem(f"patch[{index}].advisory", "a wheel is patched completely or not at all", "remove the key")
    read = Distribution(
        name=canonicalize_name(name),
        why=table.text("why"),
        source=table.text("source"),
        versions=versions,
        partly_fixed_from=_optional_version(table, "partly-fixed-from"),
        fixed_from=_optional_version(table, "fixed-from"),
        stubs=_stubs(table),
        cases=PurePosixPath(folder) / "cases.py",
        wheels=tuple(_wheel(row, canonicalize_name(name), versions) for row in root.tables("wheel")),
        patches=declared,
        origin=table.origin(),
    )
    _check_unique(root, read)
    if read.partly_fixed_from and read.fixed_from and read.partly_fixed_from >= read.fixed_from:
        table.problem("partly-fixed-from", "it must be below `fixed-from`")
    table.finish()
    return read


def _optional_version(table: Table, key: str) -> Version | None:
    table.known([key])
    return table.parse(key, version, None) if table.has(key) else None


def _stubs(table: Table) -> tuple[str, ...]:
    names = table.texts("stubs", ())
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            table.problem("stubs", f'"{name}" is not the name of a top-level package')
    return names


def _wheel(row: Table, name: NormalizedName, versions: SpecifierSet) -> KnownWheel:
    filename = row.text("filename")
    found = Version("0")
    try:
        owner, found, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        if filename:
            row.problem("filename", f'"{filename}" is not the name of a wheel')
    else:
        if owner != name:
            row.problem("filename", f"it is a wheel of {owner}, not of {name}")
        elif not versions.contains(found, prereleases=True):
            row.problem("filename", f"version {found} is not in `versions` ({versions})")
    read = row.read(KnownWheel, filename=filename, version=found)
    row.finish()
    return read


def _check_unique(root: Table, read: Distribution) -> None:
    seen: set[str] = set()
    for index, wheel in enumerate(read.wheels):
        if wheel.filename and wheel.filename in seen:
            root.problem(f"wheel[{index}].filename", f"{wheel.filename} is listed twice")
        seen.add(wheel.filename)
