"""Which lines of a requirement file a lock can be made from, and what to write instead of the others; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.model import addresses
from patchlock.model.errors import RequirementsError
from patchlock.model.identities import Sha256
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Unreadable

_OTHER_INDEXES = frozenset({"--index-url", "--extra-index-url", "--find-links", "--trusted-host", "--no-index"})
_BUILDS = frozenset({"--no-binary", "--only-binary"})
_COMMIT = re.compile(r"@([0-9a-f]{40})(?=$|[#&])")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-fA-F]{64})(?![0-9a-fA-F])")
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


def _lines(source: SourceText) -> tuple[Line, ...]:
    from patchlock.patches import requirement_sources  # all formats, which an install that knows its patches spares

    return tuple(requirement_sources.lines(source))


def pins(contents: Mapping[PurePosixPath, bytes]) -> tuple[Pin, ...]:
    """List the requirements of some files that name their one file by address and sha256, in order."""
    found = []
    for path, data in contents.items():
        source = decode(path, data)
        for line in () if isinstance(source, Undecodable) else _lines(source):
            one = pin(source, line) if isinstance(line, RequirementLine) else None  # type: ignore[arg-type]
            found += [one] if one is not None else []
    return tuple(found)


def included(files: tuple[PurePosixPath, ...], contents: Mapping[PurePosixPath, bytes]) -> tuple[PurePosixPath, ...]:
    """List requirement files and all that they include with `-r` and `-c`, in order, each once.

    Raises:
        RequirementsError: a file is missing, is no text, includes itself, or has lines that no installer can read or no
            lock can be made from; names all of them.
    """
    found: dict[PurePosixPath, tuple[PurePosixPath, ...]] = {}
    waiting: list[tuple[PurePosixPath, tuple[PurePosixPath, ...], str]] = [(path, (), "") for path in files]
    while waiting:
        path, parents, place = waiting.pop(0)
        if path in parents:
            raise RequirementsError(
                f"{path} includes itself, which pip refuses",
                where=place,
                remedy="drop the line with a patch (replace-text)",
            )
        if path in found:
            continue
        found[path] = parents
        if path not in contents:
            remedy = (
                "drop the line with a patch (replace-text)" if place else "correct `requirements` in the app's file"
            )
            raise RequirementsError(f"upstream has no file {path}", where=place, remedy=remedy)
        source = decode(path, contents[path])
        if isinstance(source, Undecodable):
            raise RequirementsError(f"{path} cannot be read as text: {source.why}", remedy="save it as UTF-8")
        lines = _lines(source)
        if wrong := tuple(objections(source, lines)):
            raise RequirementsError(
                wrong[0].what + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""),
                where=f"{path}:{wrong[0].line}",
                remedy=wrong[0].remedy,
                evidence=[f"{path}:{one.line}: {one.what}" for one in wrong[1:]],
            )
        waiting += [
            (resolve_include(path, value), (*parents, path), f"{path}:{line.line}")
            for line in lines
            for name, value in (line.options if isinstance(line, OptionLine) else ())
            if name in {"--requirement", "--constraint"}
        ]
    return tuple(found)


def resolve_include(path: PurePosixPath, value: str) -> PurePosixPath:
    """Name the file that another one includes, as it is written there."""
    parts: list[str] = []
    for part in (*path.parent.parts, *PurePosixPath(value).parts):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def objections(source: SourceText, lines: Iterable[Line]) -> Iterator[Objection]:
    """Name the lines of a requirement file that no lock can be made from, in file order."""
    for line in lines:
        match line:
            case Unreadable():
                what = f"{line.why}{_odd_letters(line.text)}"
                remedy = "correct the line upstream, or add a patch with the op replace-text"
                yield Objection(line=line.line, what=what, remedy=remedy)
            case OptionLine(options=options):
                yield from _options(line.line, options)
            case LocationLine(target=target, editable=editable):
                yield _place(line.line, target, "NAME", editable)
            case RequirementLine(requirement=requirement) if strange := _no_versions(requirement):
                yield Objection(
                    line=line.line,
                    what=f'"{requirement}" asks for {strange}, which is no version',
                    remedy="set a version with a patch (set-requirement); see "
                    "https://packaging.python.org/en/latest/specifications/version-specifiers/",
                )
            case RequirementLine(requirement=requirement) if requirement.url and pin(source, line) is None:
                yield _place(line.line, requirement.url, requirement.name, line.editable)
            case RequirementLine(requirement=requirement) if requirement.url and (
                why := addresses.objection(requirement.url, local=True)
            ):
                yield Objection(
                    line=line.line,
                    what=f'"{requirement.url}" may not stand in a lock: {why}',
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


def pin(source: SourceText, line: RequirementLine) -> Pin | None:
    """Read the one file that a requirement names; None where it names none, or not by its sha256."""
    url = line.requirement.url or ""
    if line.editable or urlsplit(url).scheme not in {"https", "http"}:
        return None
    text = source.text[line.span.start : line.span.end]
    found = {digest.lower() for digest in (*_FRAGMENT.findall(url), *_HASH.findall(text))}
    if len(found) != 1:
        return None
    name = canonicalize_name(line.requirement.name)
    return Pin(name=name, url=url.partition("#")[0], sha256=Sha256(found.pop()))


def require_hashes(
    contents: Mapping[PurePosixPath, bytes], chosen: Mapping[NormalizedName, Sha256], markers: Mapping[str, str]
) -> None:
    """Make sure that each chosen file is among those whose hashes stand on the lines that ask for it.

    The lines are those after the patches. No op changes a requirement with hashes and leaves them: set-requirement
    refuses it, and replace-text writes the whole line.

    Args:
        contents: requirement files by path.
        chosen: distribution → sha256 of its file.
        markers: of the machine that is locked for; lines for others are left out.

    Raises:
        RequirementsError: a file is none of them.
    """
    for path, data in contents.items():
        source = decode(path, data)
        for line in () if isinstance(source, Undecodable) else _lines(source):
            if not isinstance(line, RequirementLine) or not line.has_hash:
                continue
            marker = line.requirement.marker
            name = canonicalize_name(line.requirement.name)
            if name not in chosen or (marker is not None and not marker.evaluate(dict(markers))):
                continue
            allowed = {one.lower() for one in _HASH.findall(source.text[line.span.start : line.span.end])}  # type: ignore[union-attr]
            if chosen[name] not in allowed:
                raise RequirementsError(
                    f"the file chosen for {name} has sha256 {chosen[name]}, which is none of the {len(allowed)} that "
                    "upstream allows",
                    where=f"{path}:{line.line}",
                    remedy="find out why; then drop the hashes with a patch (replace-text), or ask the index that has "
                    "upstream's file",
                )


def _options(line: int, options: tuple[tuple[str, str], ...]) -> Iterator[Objection]:
    for name, value in options:
        written = f"{name} {value}".strip()
        if name in _OTHER_INDEXES:
            yield Objection(
                line=line,
                what=f'"{written}" would let another place say what a name means, and a lock asks one index only',
                remedy='drop the line with a patch (op = "replace-text", new = ""); what only that place has is named '
                "by a recorded index of the profile",
            )
        elif name in _BUILDS:
            yield Objection(
                line=line,
                what=f'"{written}" says what is built, and that is for the catalogue to say',
                remedy='drop the line with a patch (op = "replace-text", new = ""), and allow a build with [[build]]',
            )


def _place(line: int, target: str, name: str, editable: bool) -> Objection:
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
