"""Check what a patched pip requirement file asks for; reads it on its own, without the ops' reader."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.ensures.text import UNREADABLE, decoded

# Where pip splits lines, less U+0085, which in a file that is not UTF-8 is the ellipsis of Windows.
_LINE_END = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\u2028\u2029]")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_EDITABLE = re.compile(r"^(?:-e|--editable)[\s=]*")
_QUOTED = re.compile(r"^([\"'])(.*)\1$")
_ARCHIVE = re.compile(r"\.(?:whl|zip|tgz|tar(?:\.\w+)?)$", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HasRequirement:
    """A distribution is required, and everywhere with exactly this specifier and without a URL."""

    name: NormalizedName
    specifier: SpecifierSet

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say which lines ask for something else, or that none asks for it."""
        mentions = _mentions(path, data, self.name)
        if isinstance(mentions, str):
            return (mentions,)
        if not mentions:
            return (f"no line requires {self.name}",)
        return tuple(
            f"line {mention.line} has `{mention.text}`, which is not {self.name}{self.specifier}"
            for mention in mentions
            if mention.specifier != self.specifier
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NoRequirement:
    """A distribution is not required, neither by name nor by a URL or path that names it."""

    name: NormalizedName

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say which lines still ask for it."""
        mentions = _mentions(path, data, self.name)
        if isinstance(mentions, str):
            return (mentions,)
        return tuple(f"line {mention.line} still asks for {self.name}: `{mention.text}`" for mention in mentions)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Mention:
    line: int
    text: str
    specifier: SpecifierSet | None
    """None: it is a URL, a path, or a line that cannot be read but speaks of the distribution."""


def _mentions(path: PurePosixPath, data: bytes, name: NormalizedName) -> tuple[_Mention, ...] | str:
    if path.suffix.lower() not in {".txt", ".in"}:
        return f"{path.name} is not a pip requirement file (.txt, .in), the only kind of file that can be checked"
    text = decoded(data)
    if text is None:
        return UNREADABLE
    found = (_mention(line, content, name) for line, content in _joined(text))
    return tuple(mention for mention in found if mention is not None)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines the way pip does, and strip comments."""
    held: list[str] = []
    for number, line in enumerate([*_LINE_END.split(text), ""], start=1):
        is_comment = line.lstrip().startswith("#")
        held.append(f" {line}" if is_comment else line)
        if line.endswith("\\") and not is_comment:
            held[-1] = line.strip("\\")
            continue
        yield number + 1 - len(held), _COMMENT.sub("", "".join(held)).strip()
        held = []


def _mention(line: int, content: str, name: NormalizedName) -> _Mention | None:
    if not content or (content.startswith("-") and not _EDITABLE.match(content)):
        return None
    body = " ".join(re.split(r"\s+-", _EDITABLE.sub("", content))[0].split())
    body = _QUOTED.sub(r"\2", body)
    try:
        requirement = Requirement(body.replace(";", " ;"))
    except InvalidRequirement:
        requirement = None
    is_path = _EDITABLE.match(content) or _ARCHIVE.search(body)
    if requirement is None or (is_path and not requirement.url):
        is_meant = name in _names_of_location(body)
        return _Mention(line=line, text=body, specifier=None) if is_meant else None
    if canonicalize_name(requirement.name) != name:
        return None
    return _Mention(line=line, text=body, specifier=None if requirement.url else requirement.specifier)


def _names_of_location(body: str) -> set[str]:
    """All distributions that a URL, a path or an unreadable line may mean."""
    egg = re.findall(r"[#&]egg=([\w.-]+)", body)
    before_fragment = re.split(r"[#?\[]|;\s|\s;", body)[0]
    is_location = re.match(r"\.|[^\s@=<>]*[/\\:]", before_fragment) or _ARCHIVE.search(before_fragment)
    if not is_location:
        return {str(canonicalize_name(word)) for word in re.findall(r"[A-Za-z0-9][\w.-]*", body)}
    parts = [part for part in re.split(r"[/\\]+", re.sub(r"^[^/]*://[^/]*/", "", before_fragment)) if part] or [""]
    words = egg or (parts[-1:] if parts[-1].lower().endswith(".whl") else parts[1:] or parts)
    return {str(canonicalize_name(re.sub(r"(\.git)?(@.*)?$|-\d.*$", "", word))) for word in words}
