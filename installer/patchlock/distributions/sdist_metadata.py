"""Read from an sdist's static files what it requires, and what its build requires; none of its code is run. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.distributions import _build_downloads, _setup_script
from patchlock.model import toml_text
from patchlock.model.lock_rules import WITHOUT_PYPROJECT
from patchlock.model.patch import Refusal
from patchlock.model.sdist import Sdist
from patchlock.model.text_files import Undecodable, decode
from patchlock.patches.ops.requirements import formats

_FOR_DEVELOPERS = re.compile(r"\bextra == ['\"](?:dev|develop|development|docs?|lint|style|tests?|testing|typing)['\"]")
"""Extras that nobody asks for who runs an app."""
_SILENT = frozenset(
    {
        "setuptools.build_meta",
        "setuptools.build_meta:__legacy__",
        "flit_core.buildapi",
        "poetry.core.masonry.api",
        "pdm.backend",
        "hatchling.build",
        "uv_build",
    }
)
"""Backends whose hook asks for nothing beyond what the static files say.

Source: `get_requires_for_build_wheel` of each; setuptools adds `setup_requires`, and hatchling what hooks declare."""
_HATCH_HOOKS = re.compile(r"^\[+tool\.hatch\.build\..*hooks", re.MULTILINE)


_STATIC = frozenset({"CMakeLists.txt", "PKG-INFO", "pyproject.toml", "setup.cfg"})


@dataclass(frozen=True, kw_only=True)
class SdistMetadata:
    """What the static files of an sdist say."""

    requires: tuple[Requirement, ...]
    told_by: str
    """The file that says it; "" where none does, and only running the build would tell."""
    version: str
    """"" where it is computed."""
    build: tuple[Requirement, ...]
    doubt: str
    """Why the build may ask for more than that, a clause; "" where it does not."""
    downloads: str = ""
    """Where its build may download something, and how; "" where no file says so."""

    @property
    def fails(self) -> str:
        """Say why its build may fail here, a clause; "" where nothing is known against it."""
        if not self.downloads:
            return ""
        return (
            f"its build may download something, {self.downloads}, and a build has no network here: it may fail at "
            "install; take a version that has a wheel, or leave it out"
        )


def is_wanted(path: PurePosixPath) -> bool:
    """Say whether a file of an sdist, named from its top folder, is one of those that are read here."""
    if path.name in {"requires.txt", "SOURCES.txt"}:
        return path.parent.name.endswith(".egg-info") and len(path.parts) <= 3
    return len(path.parts) == 1 and (path.name in _STATIC or path.suffix == ".py")


def read(files: Mapping[PurePosixPath, bytes]) -> SdistMetadata:
    """Read the static files of an sdist.

    Source: PEP 643 (`Dynamic`), PEP 518 and 621 (`pyproject.toml`), setuptools' `egg-info/requires.txt`.

    Args:
        files: path from the top folder of the sdist → bytes, for those files that `is_wanted` names.
    """
    project = _toml(files)
    told_by, requires = next(
        ((told_by, lines) for told_by, lines in _metadata_sources(files, project) if lines is not None), ("", ())
    )
    system = project.get("build-system", {})
    backend = str(system.get("build-backend", "setuptools"))
    kept = [line for line in requires if not _FOR_DEVELOPERS.search(line)]
    return SdistMetadata(
        requires=tuple(sorted(set(_requirements(kept)), key=str)),
        told_by=told_by,
        version=_version(files, project),
        build=tuple(_requirements(_build(files, project))),
        doubt=_doubt(files, project),
        downloads=_build_downloads.find(files, backend, is_own="backend-path" in system),
    )


def _metadata_sources(
    files: Mapping[PurePosixPath, bytes], project: Mapping[str, Any]
) -> Iterator[tuple[str, Iterable[str] | None]]:
    """Name the files that may say what is required, the most reliable first, each with what it says, if anything."""
    import email.parser

    text = files.get(PurePosixPath("PKG-INFO"), b"").decode("utf-8", errors="replace")
    core = email.parser.HeaderParser().parsestr(text)
    listed = core.get_all("Requires-Dist") or []
    dynamic = {value.strip().lower() for value in core.get_all("Dynamic") or []}
    try:
        is_static = Version(core.get("Metadata-Version", "1.0")) >= Version("2.2") and "requires-dist" not in dynamic
    except InvalidVersion:
        is_static = False
    yield "PKG-INFO", (listed if is_static else None)
    egg = min((path for path in files if path.name == "requires.txt"), key=lambda path: len(path.parts), default=None)
    yield str(egg), (_egg(files[egg].decode("utf-8", errors="replace")) if egg else None)
    # setuptools writes no requires.txt where there is nothing to write into it.
    listing = min(
        (path for path in files if path.name == "SOURCES.txt"), key=lambda path: len(path.parts), default=None
    )
    yield str(listing), ([] if listing else None)
    table = project.get("project", {})
    yield "pyproject.toml", (table.get("dependencies", []) if "name" in table and not _is_dynamic(table) else None)
    yield "PKG-INFO", (listed or None)  # older than PEP 643, but what Poetry and flit write there is all
    for name, key in (("setup.cfg", "options.install_requires"), ("setup.py", "install_requires")):
        yield name, _declared(files, name, key)
    if _asks_for_nothing(files.get(PurePosixPath("setup.py"), b"")):
        yield "setup.py", []


def _asks_for_nothing(setup: bytes) -> bool:
    """Say whether a `setup.py` calls `setup` with written keywords, none of which is about requirements."""
    return b"install_requires" not in setup and b"**" not in setup and re.search(rb"\bsetup\s*\(", setup) is not None


def _is_dynamic(table: Mapping[str, Any]) -> bool:
    return bool({"dependencies", "optional-dependencies"} & set(table.get("dynamic", [])))


def _declared(files: Mapping[PurePosixPath, bytes], name: str, key: str) -> list[str] | None:
    """Read a list that stands literally in a file; None where it is not there, or computed."""
    path = PurePosixPath(name)
    source = decode(path, files[path]) if path in files else Undecodable(path=path, why="it is not there")
    declared = formats.read(source) if not isinstance(source, Undecodable) else None
    if declared is None or isinstance(declared, Refusal) or declared.computed or declared.doubts:
        return None
    found = [entry.requirement for one in declared.lists if one.name == key for _, entry in one.entries]
    has_list = any(one.name == key for one in declared.lists)
    return [str(requirement) for requirement in found if requirement is not None] if has_list else None


def _version(files: Mapping[PurePosixPath, bytes], project: Mapping[str, Any]) -> str:
    core = re.search(rb"^Version: *(\S+)", files.get(PurePosixPath("PKG-INFO"), b""), re.MULTILINE)
    setup = re.search(
        rb"^\s*version\s*=\s*['\"]([0-9][^'\"]*)['\"]", files.get(PurePosixPath("setup.py"), b""), re.MULTILINE
    )
    found = core or setup
    table = project.get("project", project.get("tool", {}).get("poetry", {}))
    return str(table.get("version", "")) or (found[1].decode(errors="replace") if found else "")


def _egg(text: str) -> list[str]:
    """Turn setuptools' sections, `[extra:marker]`, into markers."""
    found: list[str] = []
    extra = marker = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
            continue
        conditions = [f"({marker})"] if marker else []
        conditions += [f'extra == "{extra}"'] if extra else []
        found.append(f"{line} ; {' and '.join(conditions)}" if conditions else line)
    return found


def _build(files: Mapping[PurePosixPath, bytes], project: Mapping[str, Any]) -> list[str]:
    system = project.get("build-system", {})
    requires = list(system.get("requires", WITHOUT_PYPROJECT))
    if str(system.get("build-backend", "setuptools")).partition(".")[0] == "setuptools":
        requires += _declared(files, "setup.cfg", "options.setup_requires") or []
        script = _setup_script.parse(files.get(PurePosixPath("setup.py"), b""))
        requires += (_setup_script.asks_for(script) or ()) if script is not None else ()
        if "wheel" not in map(_name, requires):
            requires.append("wheel")
        if script is not None:
            known = {_name(one).removeprefix("oldest-supported-") for one in requires} - {"setuptools"}
            requires += [one for one in _setup_script.imports(script) if _name(one) not in known]
    return list(dict.fromkeys(requires))


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return canonicalize_name(found[0]) if found else ""


def _doubt(files: Mapping[PurePosixPath, bytes], project: Mapping[str, Any]) -> str:
    system = project.get("build-system", {})
    backend = str(system.get("build-backend", "setuptools.build_meta:__legacy__"))
    if system.get("backend-path"):
        return f"its build backend {backend} is its own code"
    if backend not in _SILENT:
        return f"its build backend {backend} asks for more when it runs"
    if backend == "hatchling.build" and _HATCH_HOOKS.search(
        files.get(PurePosixPath("pyproject.toml"), b"").decode("utf-8", errors="replace")
    ):
        return "its hooks of hatchling may ask for more"
    setup = files.get(PurePosixPath("setup.py"), b"")
    if backend.startswith("setuptools") and b"setup_requires" in setup:
        script = _setup_script.parse(setup)
        is_read = script is not None and _setup_script.asks_for(script) is not None
        return "" if is_read else "its setup.py computes setup_requires"
    return ""


def _toml(files: Mapping[PurePosixPath, bytes]) -> Mapping[str, Any]:
    try:
        return tomllib.loads(files.get(PurePosixPath("pyproject.toml"), b"").decode("utf-8", errors="replace"))
    except tomllib.TOMLDecodeError:
        return {}


def _requirements(lines: Iterable[str]) -> Iterator[Requirement]:
    for line in lines:
        try:
            yield Requirement(line)
        except InvalidRequirement:  # an old sdist's `foo (>=1)` is read, `foo>=1.*` is not; the maintainer sees the gap
            continue


def _place(sdist: Sdist) -> str:
    """Say where a reader finds an sdist."""
    return sdist.url.partition("#")[0] if sdist.version is None else f"PyPI: {sdist} sdist"


def as_table(sdist: Sdist, statement: SdistMetadata) -> str:
    """Write the `[[metadata]]` table of an sdist, for an app's file."""
    import tomlkit  # which is only for who writes

    told_by = statement.told_by or "TODO: none of its files says what it requires; read its setup.py"
    table = tomlkit.table()
    table.append("name", str(sdist.name))
    table.append("version", str(sdist.version or statement.version or "TODO"))
    for key, requirements in (("requires", statement.requires), ("build", statement.build)):
        listed = toml_text.array(str(one) for one in requirements)
        table.append(key, listed.multiline(len(listed.as_string()) >= 100))
    table.append("why", "there is no wheel")
    table.append("source", toml_text.item(f"{_place(sdist)}, {told_by}" if statement.told_by else told_by))
    if statement.doubt:
        command = f"`patchlock sdist {sdist.name} {sdist.version} --run-hooks`"
        table.add(tomlkit.comment(f"{statement.doubt}: {command} asks it"))
    if statement.fails:
        table.add(tomlkit.comment(statement.fails))
    tables = tomlkit.aot()
    tables.append(table)  # a list of tables would lose the comment
    return tomlkit.dumps({"metadata": tables}).rstrip()
