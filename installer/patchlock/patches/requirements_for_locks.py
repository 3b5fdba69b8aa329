"""Which lines of a requirement file a lock can be made from, and what to write instead of the others; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.model import addresses
from patchlock.model.app import OptionalLists
from patchlock.model.errors import RequirementsError
from patchlock.model.identities import Sha256
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Unreadable

if TYPE_CHECKING:
    from patchlock.patches._declared_requirements import FileRequirements

_OTHER_INDEXES = frozenset({"--index-url", "--extra-index-url", "--find-links", "--trusted-host", "--no-index"})
_BUILDS = frozenset({"--no-binary", "--only-binary"})
_RELEASES = frozenset({"--all-releases", "--only-final"})
_HERE = PurePosixPath()
_COMMIT = re.compile(r"@([0-9a-f]{40})(?=$|[#&])")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-fA-F]{64})(?![0-9a-fA-F])")
_SUBDIRECTORY = re.compile(r"[#&]subdirectory=")
_OF_ONE_MACHINE = re.compile(r"\bplatform_(?:release|version)\b")
_BUILD_OPTION = re.compile(r"[^#]*\s(--config-settings|--global-option|-C)")
_FRAGMENT = re.compile(r"[#&]sha256=([0-9a-fA-F]{64})(?![0-9a-fA-F])")
_FORGES = {"github.com": "archive/{commit}.tar.gz", "gitlab.com": "-/archive/{commit}/{name}-{commit}.tar.gz"}
"""Host → where it gives the files of a commit, below a repository.

Source: https://docs.github.com/repositories/working-with-files/using-files/downloading-source-code-archives;
https://docs.gitlab.com/api/repositories/#get-file-archive"""


@dataclass(frozen=True, kw_only=True)
class Objection:
    """A line that no lock can be made from."""

    line: int
    what: str
    """A clause without a full stop."""
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A requirement that names its one file by address and sha256."""

    name: NormalizedName
    url: str
    """Without fragment."""
    sha256: Sha256

    @property
    def is_wheel(self) -> bool:
        """Whether nothing has to be built."""
        return urlsplit(self.url).path.endswith(".whl")


@dataclass(frozen=True, kw_only=True)
class AskedFile:
    """A file that a lock is made from."""

    path: PurePosixPath
    """From the app's folder; a file of the repository outside of that begins with `..`."""
    source: SourceText
    requirements: FileRequirements
    is_constraint: bool
    """It only bounds what others ask for."""


@dataclass(frozen=True, kw_only=True)
class AskedRequirements:
    """All that an app asks for."""

    files: tuple[AskedFile, ...]
    """Every file that says something of it, in order, each once."""

    @property
    def paths(self) -> tuple[PurePosixPath, ...]:
        """The files."""
        return tuple(file.path for file in self.files)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the files declare and no lock holds, with its place, one clause each."""
        return tuple(
            f"{file.path}:{'' if one.line is None else f'{one.line}:'} {one.what}"
            for file in self.files
            for one in file.requirements.not_covered
        )

    def excluding(self, python: Version) -> tuple[str, ...]:
        """Name the projects that do not allow a minor version of Python, one clause each."""
        return tuple(
            f"{file.path}:{bound.line} asks for Python {bound.specifier}, and the profile has {python}"
            for file in self.files
            if (bound := file.requirements.python) is not None and not bound.allows(python)
        )

    @property
    def overrides(self) -> tuple[tuple[PurePosixPath, RequirementLine], ...]:
        """Requirements that stand in the place of others', with their files."""
        return tuple((file.path, line) for file in self.files for line in file.requirements.overrides)

    @property
    def constraints(self) -> tuple[tuple[PurePosixPath, RequirementLine], ...]:
        """Bounds that stand in no file of constraints, with their files."""
        return tuple((file.path, line) for file in self.files for line in file.requirements.constraints)

    @property
    def exclusions(self) -> tuple[NormalizedName, ...]:
        """Distributions that are left out, whoever asks for them."""
        return tuple(name for file in self.files for name in file.requirements.exclusions)

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The options of pip that stand in the files, but those that name other files."""
        return tuple(
            option
            for _, line in self.lines()
            if isinstance(line, OptionLine)
            for option in line.options
            if option[0] not in _INCLUDES
        )

    def lines(self) -> Iterator[tuple[AskedFile, Line]]:
        """Give the lines of all files, in order."""
        return ((file, line) for file in self.files for line in file.requirements.lines)

    def requirements(self) -> Iterator[tuple[AskedFile, RequirementLine]]:
        """Give the lines that say which distribution they are for."""
        return ((file, line) for file, line in self.lines() if isinstance(line, RequirementLine))


_INCLUDES = {"--requirement": "-r", "--constraint": "-c"}
_URL = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_DROP = "drop the line with a patch (replace-text)"
_NO_WANTED = OptionalLists()
_APP_FILE = "app.toml"
Read = Callable[[PurePosixPath], bytes | None]
"""Gives a file by its path from the app's folder, or None where upstream has none."""


def read_all(
    files: tuple[PurePosixPath, ...],
    contents: Mapping[PurePosixPath, bytes],
    *,
    wanted: OptionalLists = _NO_WANTED,
    directory: PurePosixPath = _HERE,
    read: Read | None = None,
    app_file: str = _APP_FILE,
) -> AskedRequirements:
    """Read requirement files and all that they include, and make sure that a lock can be made from every line.

    Args:
        files: those that the app names.
        contents: files by path from the app's folder.
        wanted: extras and groups.
        directory: the app's folder in the repository, which no include may leave.
        read: gives files that `contents` lacks.
        app_file: where the app names the files, for messages.

    Raises:
        RequirementsError: a file is missing, is no text, includes itself, or has lines that no installer can read or no
            lock can be made from; names all of them. Or nobody has a wanted extra or group.
    """
    asked, errors = walk(files, contents, wanted=wanted, directory=directory, read=read, app_file=app_file)
    if errors:
        raise errors[0]
    for kind, names in (("extra", wanted.extras), ("group", wanted.groups)):
        have = {
            name
            for file in asked.files
            for name in (file.requirements.extras if kind == "extra" else file.requirements.groups)
        }
        if missing := [name for name in names if name not in have]:
            offered = f"; there {'is' if len(have) == 1 else 'are'} {', '.join(sorted(have))}" if have else ""
            raise RequirementsError(
                f'upstream has no {kind} "{missing[0]}"',
                where=", ".join(map(str, files)),
                remedy=f"correct `{kind}s` in {app_file}{offered}",
            )
    return asked


def walk(
    files: tuple[PurePosixPath, ...],
    contents: Mapping[PurePosixPath, bytes],
    *,
    wanted: OptionalLists = _NO_WANTED,
    directory: PurePosixPath = _HERE,
    read: Read | None = None,
    app_file: str = _APP_FILE,
) -> tuple[AskedRequirements, tuple[RequirementsError, ...]]:
    """Read requirement files as `read_all` does, as far as that is possible, and say what is wrong with them."""
    found: dict[PurePosixPath, AskedFile] = {}
    errors: list[RequirementsError] = []
    waiting = [_Include(path=path) for path in files]
    while waiting:
        one = waiting.pop(0)
        known = found.get(one.path)
        if one.path in one.parents:
            errors.append(
                RequirementsError(f"{one.path} includes itself, which pip refuses", where=one.place, remedy=_DROP)
            )
            continue
        if known is not None and (one.is_constraint or not known.is_constraint):
            continue
        file = _asked_file(one, contents, wanted, read, app_file)
        if isinstance(file, RequirementsError):
            errors.append(file)
            continue
        if known is None:
            wrong = (
                _wrong(file, directory)
                or _superseded(file, contents, read, app_file)
                or _claimed(file, contents, directory, read)
            )
            errors += [wrong] if wrong is not None else []
        found[one.path] = file
        waiting += (*_includes(file, one, directory), *_settings(file, contents, directory, read))
    return AskedRequirements(files=tuple(found.values())), tuple(errors)


@dataclass(frozen=True, kw_only=True)
class _Include:
    path: PurePosixPath
    parents: tuple[PurePosixPath, ...] = ()
    place: str = ""
    """Where it is asked for; "": the app's file names it."""
    is_constraint: bool = False
    is_settings: bool = False
    """Of uv's for a project that stands in another file."""


def _asked_file(
    one: _Include, contents: Mapping[PurePosixPath, bytes], wanted: OptionalLists, read: Read | None, app_file: str
) -> AskedFile | RequirementsError:
    # All formats, which an install that knows its patches spares.
    from patchlock.patches import _project_requirements, requirement_sources

    if one.place and not one.is_settings and not requirement_sources.is_pip(one.path):
        return RequirementsError(f"{one.path} is not a requirement file of pip's", where=one.place, remedy=_DROP)
    data = contents.get(one.path)
    if data is None and read is not None:
        data = read(one.path)
    if data is None:
        remedy = _DROP if one.place else f"correct `requirements` in {app_file}"
        return RequirementsError(f"upstream has no file {one.path}", where=one.place, remedy=remedy)
    source = decode(one.path, data)
    if isinstance(source, Undecodable):
        return RequirementsError(f"{one.path} cannot be read as text: {source.why}", remedy="save it as UTF-8")
    settings = _project_requirements.read_settings(source) if one.is_settings else None
    return AskedFile(
        path=one.path,
        source=source,
        requirements=settings or requirement_sources.read(source, wanted),
        is_constraint=one.is_constraint,
    )


def _wrong(file: AskedFile, directory: PurePosixPath) -> RequirementsError | None:
    asked = file.requirements
    lines = (*asked.lines, *asked.overrides, *asked.constraints)
    wrong = sorted(objections(file.source, lines, directory), key=lambda one: one.line)
    if not wrong:
        return None
    return RequirementsError(
        wrong[0].what + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""),
        where=f"{file.path}:{wrong[0].line}",
        remedy=wrong[0].remedy,
        evidence=[f"{file.path}:{one.line}: {one.what}" for one in wrong[1:]],
    )


def _superseded(
    file: AskedFile, contents: Mapping[PurePosixPath, bytes], read: Read | None, app_file: str
) -> RequirementsError | None:
    """Say which file beside a `setup.py` or `setup.cfg` counts in its place.

    Source: https://setuptools.pypa.io/en/latest/userguide/pyproject_config.html.
    """
    name = file.path.name.lower()
    if name not in {"setup.py", "setup.cfg"}:
        return None
    from patchlock.patches import _project_requirements, requirement_sources  # as in `_asked_file`

    for other in ("pyproject.toml", "setup.py"):
        path = file.path.with_name(other)
        data = contents.get(path) or (read(path) if read is not None else None)
        source = decode(path, data) if data is not None and path != file.path else None
        if not isinstance(source, SourceText):
            continue
        line = (
            _project_requirements.line_of_project(source)
            if other == "pyproject.toml"
            else requirement_sources.line_of_setup_list(source)
        )
        if line is not None:
            what = "[project]" if other == "pyproject.toml" else "`install_requires` of setup()"
            return RequirementsError(
                f"{what} in {path} counts in place of {file.path}",
                where=f"{path}:{line}",
                remedy=f"name {path} in `requirements` of {app_file}",
            )
    return None


def _claimed(
    file: AskedFile, contents: Mapping[PurePosixPath, bytes], directory: PurePosixPath, read: Read | None
) -> RequirementsError | None:
    """Say where a workspace of uv's finds what a member of it asks for, where that one is locked by itself."""
    from patchlock.patches import _project_requirements  # as in `_asked_file`

    names = {
        canonicalize_name(line.requirement.name)
        for line in file.requirements.lines
        if isinstance(line, RequirementLine) and line.requirement.url is None
    }
    for root in _workspaces(file.path, contents, directory, read):
        for one in _project_requirements.claims_of_workspace(root, names):
            return RequirementsError(one.why, where=f"{root.path}:{one.line}", remedy=one.remedy)
    return None


def _settings(
    file: AskedFile, contents: Mapping[PurePosixPath, bytes], directory: PurePosixPath, read: Read | None
) -> Iterator[_Include]:
    """Name the files in which uv keeps settings of a project: a `uv.toml` beside it, and the root of its workspace."""
    if file.path.name.lower() != "pyproject.toml":
        return
    paths = [root.path for root in _workspaces(file.path, contents, directory, read)]
    beside = file.path.with_name("uv.toml")
    if beside in contents or (read is not None and read(beside) is not None):
        paths.append(beside)
    for path in paths:
        yield _Include(path=path, place=str(file.path), is_constraint=True, is_settings=True)


def _workspaces(
    path: PurePosixPath, contents: Mapping[PurePosixPath, bytes], directory: PurePosixPath, read: Read | None
) -> Iterator[SourceText]:
    """Give the `pyproject.toml` of each folder above that has a workspace of uv's which a project belongs to."""
    if path.name.lower() != "pyproject.toml":
        return
    from patchlock.patches import _project_requirements  # as in `_asked_file`

    whole = resolve_include(directory / "any", str(path))
    parts = whole.parent.parts if whole is not None else ()
    for above in range(1, len(parts) + 1):
        root = resolve_include(path, f"{'../' * above}pyproject.toml", directory)
        data = contents.get(root) if root is not None else None
        if data is None and root is not None and read is not None:
            data = read(root)
        source = decode(root, data) if root is not None and data is not None else None
        if isinstance(source, SourceText) and _project_requirements.is_in_workspace(source, "/".join(parts[-above:])):
            yield source


def _includes(file: AskedFile, by: _Include, directory: PurePosixPath) -> Iterator[_Include]:
    for line in file.requirements.lines:
        for name, value in line.options if isinstance(line, OptionLine) else ():
            path = resolve_include(file.path, value, directory) if name in _INCLUDES and not _URL.match(value) else None
            if path is not None:
                yield _Include(
                    path=path,
                    parents=(*by.parents, file.path),
                    place=f"{file.path}:{line.line}",
                    is_constraint=name == "--constraint",
                )


def resolve_include(path: PurePosixPath, value: str, directory: PurePosixPath = _HERE) -> PurePosixPath | None:
    """Name the file that another one includes, by its path from the app's folder; None where it leaves the repository.

    Args:
        path: the other one, from the app's folder.
        value: as it is written there.
        directory: the app's folder in the repository.
    """
    if PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute():
        return None
    parts: list[str] = []
    for part in (*directory.parts, *path.parent.parts, *PurePosixPath(value).parts):
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    same = next(
        (index for index, (a, b) in enumerate(zip(parts, directory.parts, strict=False)) if a != b),
        min(len(parts), len(directory.parts)),
    )
    return PurePosixPath(*[".."] * (len(directory.parts) - same), *parts[same:])


def objections(source: SourceText, lines: Iterable[Line], directory: PurePosixPath = _HERE) -> Iterator[Objection]:
    """Name the lines of a requirement file that no lock can be made from, in their order."""
    for line in lines:
        match line:
            case Unreadable():
                what = f"{line.why}{_odd_letters(line.text)}"
                remedy = line.remedy or "correct the line upstream, or add a patch with the op replace-text"
                yield Objection(line=line.line, what=what, remedy=remedy)
            case OptionLine(options=options):
                yield from _options(line.line, options, source.path, directory)
            case LocationLine(target=target, editable=editable):
                yield _place(line.line, target, "NAME", editable)
            case RequirementLine(requirement=requirement) if strange := _no_versions(requirement):
                yield Objection(
                    line=line.line,
                    what=f'"{requirement}" asks for {strange}, which is not a version',
                    remedy="set a version with a patch (set-requirement); see "
                    "https://packaging.python.org/en/latest/specifications/version-specifiers/",
                )
            case RequirementLine(requirement=requirement) if found := _OF_ONE_MACHINE.search(
                str(requirement.marker or "")
            ):
                yield Objection(
                    line=line.line,
                    what=f'"{requirement}" depends on the `{found[0]}` of one machine, which a lock cannot know',
                    remedy="write the line without that marker with a patch (replace-text), or drop it",
                )
            case RequirementLine() if found := _BUILD_OPTION.match(
                source.text[line.requirement_span.end : line.span.end]
            ):
                yield Objection(
                    line=line.line,
                    what=f'"{found[1]}" says how it is built, and that is for the catalogue to say',
                    remedy='drop it with a patch (op = "replace-text"), and allow a build with [[build]]',
                )
            case RequirementLine(requirement=requirement) if line.has_hash and not _hashes(source, line):
                yield Objection(
                    line=line.line,
                    what=f"no `--hash` of {requirement.name} is a sha256 of 64 hexadecimal digits, and no other hash "
                    "counts",
                    remedy="write `--hash=sha256:…` with a patch (replace-text), or drop the hashes with it",
                )
            case RequirementLine(requirement=requirement) if requirement.url and pin(source, line) is None:
                yield _place(line.line, requirement.url, requirement.name, line.editable)
            case RequirementLine(requirement=requirement) if requirement.url and (
                why := addresses.objection(requirement.url, local=True)
            ):
                yield Objection(
                    line=line.line,
                    what=f'"{requirement.url}" is not allowed in a lock: {why}',
                    remedy=f"write `{requirement.name} @ https://…` without secrets with a patch (replace-text); "
                    "what a server asks for belongs into ~/.netrc",
                )
            case _:
                pass


def _no_versions(requirement: Requirement) -> str:
    """Name what `===` compares with where no index can have it: all versions there are follow the specification."""
    texts = [one.version for one in requirement.specifier if one.operator == "==="]
    return ", ".join(text for text in texts if not _is_version(text))


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def pins(asked: AskedRequirements) -> tuple[Pin, ...]:
    """List the requirements that name their one file by address and sha256, in order."""
    found = (pin(file.source, line) for file, line in asked.requirements())
    return tuple(one for one in found if one is not None)


def pin(source: SourceText, line: RequirementLine) -> Pin | None:
    """Read the one file that a requirement names; None where it names none, or not by its sha256."""
    url = line.requirement.url or ""
    if line.editable or urlsplit(url).scheme not in {"https", "http"} or _SUBDIRECTORY.search(url):
        return None
    found = {digest.lower() for digest in _FRAGMENT.findall(url)} | _hashes(source, line)
    if len(found) != 1:
        return None
    name = canonicalize_name(line.requirement.name)
    return Pin(name=name, url=url.partition("#")[0], sha256=Sha256(found.pop()))


def _hashes(source: SourceText, line: RequirementLine) -> frozenset[str]:
    """Read the sha256 that the `--hash` of a line name."""
    return frozenset(one.lower() for one in _HASH.findall(source.text[line.span.start : line.span.end]))


def require_hashes(
    asked: AskedRequirements, chosen: Mapping[NormalizedName, Sha256], markers: Mapping[str, str]
) -> None:
    """Make sure that each chosen file is among those whose hashes stand on the lines that ask for it.

    The lines are those after the patches. No op changes a requirement with hashes and leaves them: set-requirement
    refuses it, and replace-text writes the whole line.

    Args:
        asked: all that the app asks for.
        chosen: distribution → sha256 of its file.
        markers: of the machine that is locked for; lines for others are left out.

    Raises:
        RequirementsError: a file is none of them.
    """
    for file, line in asked.requirements():
        if not line.has_hash:
            continue
        marker = line.requirement.marker
        name = canonicalize_name(line.requirement.name)
        if name not in chosen or (marker is not None and not marker.evaluate(dict(markers))):
            continue
        allowed = _hashes(file.source, line)
        if chosen[name] not in allowed:
            raise RequirementsError(
                f"the file chosen for {name} has sha256 {chosen[name]}, which is none of the {len(allowed)} that "
                "upstream allows",
                where=f"{file.path}:{line.line}",
                remedy="find out why; then drop the hashes with a patch (replace-text), or ask the index that has "
                "upstream's file",
            )


def require_indexes(asked: AskedRequirements, recorded: Mapping[NormalizedName, str], profile: str) -> None:
    """Make sure that what is to come from an index of its own comes from that one.

    Args:
        asked: all that the app asks for.
        recorded: distribution → address of the recorded index that it comes from.
        profile: whose indexes these are.

    Raises:
        RequirementsError: one comes from elsewhere.
    """
    for file in asked.files:
        for one in file.requirements.from_indexes:
            if recorded.get(one.name, "").rstrip("/") != one.url.rstrip("/"):
                raise RequirementsError(
                    f'`{one.name}` is to come from the index "{one.index}", and the profile {profile} has it from '
                    "another place",
                    where=f"{file.path}:{one.line}",
                    remedy=f'drop the key with a patch (delete-key, key = "{one.key}"), or record that index for the '
                    "profile",
                )


def _options(
    line: int, options: tuple[tuple[str, str], ...], path: PurePosixPath, directory: PurePosixPath
) -> Iterator[Objection]:
    if len(options) > 1 and any(name in _INCLUDES for name, _ in options):
        what = "pip reads the first file that the line names, and nothing else of it"
        yield Objection(line=line, what=what, remedy="write a line for each with a patch (replace-text)")
        return
    for name, value in options:
        written = f"{name} {value}".strip()
        if name in _OTHER_INDEXES:
            yield Objection(
                line=line,
                what=f'"{written}" would let another place say what a name means, and a lock asks one index only',
                remedy='drop the line with a patch (op = "replace-text", new = ""); what only that place has is named '
                "by a recorded index of the profile",
            )
        elif name in _INCLUDES and _URL.match(value):
            yield Objection(
                line=line,
                what=f'"{_INCLUDES[name]} {value}" is read from another place each time, where it may have changed',
                remedy="write what it says into the file with a patch (replace-text), or drop the line",
            )
        elif name in _INCLUDES and resolve_include(path, value, directory) is None:
            yield Objection(line=line, what=f'"{_INCLUDES[name]} {value}" leads out of the repository', remedy=_DROP)
        elif name in _RELEASES:
            yield Objection(line=line, what=f'"{written}" says which releases of a name are taken', remedy=_DROP)
        elif name in _BUILDS:
            yield Objection(
                line=line,
                what=f'"{written}" says what is built, and that is for the catalogue to say',
                remedy='drop the line with a patch (op = "replace-text", new = ""), and allow a build with [[build]]',
            )


def _place(line: int, target: str, name: str, editable: bool) -> Objection:
    if _SUBDIRECTORY.search(target):
        what = f'"{target}" asks for one folder of what lies there, and a lock names whole files'
        remedy = "set a version with a patch (set-requirement), or name a wheel of it by address and sha256"
        return Objection(line=line, what=what, remedy=remedy)
    if editable:
        remedy = "drop the line with a patch (replace-text): the app runs from its clone, which needs no install"
    elif target.startswith(("git+", "hg+", "svn+", "bzr+")):
        remedy = _instead_of_a_clone(target, name)
    elif urlsplit(target).scheme in {"https", "http"}:
        remedy = f"write `{name} @ {target.partition('#')[0]}#sha256=…` with a patch (replace-text)"
    else:
        remedy = "it is there on one machine only: set a version with a patch (set-requirement), or drop the line"
    return Objection(
        line=line, what=f'"{target}" is a place, not a version, and a lock names files by their sha256', remedy=remedy
    )


def _instead_of_a_clone(target: str, name: str) -> str:
    commit = _COMMIT.search(target)
    address = urlsplit(target.partition("+")[2])
    repository = address.path.partition("@")[0].removesuffix(".git")
    form = _FORGES.get(address.hostname or "", "")
    if form:
        at = commit[1] if commit else "<commit>"
        tail = form.format(commit=at, name=repository.rpartition("/")[2])
        archive = f"https://{address.hostname}{repository}/{tail}"
    else:
        archive = "https://…/<archive of one commit>.tar.gz"
    lacks = "" if commit else "it names no commit of 40 digits, and changes; "
    return (
        f"{lacks}write `{name} @ {archive}#sha256=…` with a patch (replace-text), and add [[build]] and [[metadata]] "
        f"for {name}"
    )


def _odd_letters(text: str) -> str:
    """Name the letters beyond ASCII in what should be a name, such as a Cyrillic one."""
    odd = dict.fromkeys(letter for letter in text if not letter.isascii())
    named = ", ".join(f'"{letter}" is {unicodedata.name(letter, f"U+{ord(letter):04X}")}' for letter in odd)
    return f" ({named})" if named else ""
