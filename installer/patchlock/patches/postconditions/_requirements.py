"""Check what a patched file requires; reads it on its own, without the ops' readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.patches.postconditions._declared import BUILD, UNLOADABLE, Declared, Reader, Unknown, reader
from patchlock.patches.postconditions._text import UNREADABLE, decoded

# Where pip splits lines, less U+0085, which in a file that is not UTF-8 is the ellipsis of Windows.
_LINE_END = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\u2028\u2029]")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_EDITABLE = re.compile(r"^(?:-e|--editable)[\s=]*")
_QUOTED = re.compile(r"^([\"'])(.*)\1$")
_ARCHIVE = re.compile(r"\.(?:whl|zip|tgz|tar(?:\.\w+)?)$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class HasRequirement:
    """A distribution is required, and everywhere with exactly this specifier and without a URL."""

    name: NormalizedName
    specifier: SpecifierSet
    within: str = ""
    """The one list that counts, by its dotted keys; "": all but `build-system.requires`."""
    marker: str = ""
    """The environment marker of the requirements that count; "": all."""

    def __post_init__(self) -> None:
        """Refuse a marker that is none."""
        if self.marker:
            Marker(self.marker)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say where it asks for something else, or that nothing asks for it."""
        mentions = _mentions(path, data, self.name, self.within)
        if isinstance(mentions, Unknown):
            return (mentions.why,)
        if self.marker:
            mentions = tuple(one for one in mentions if one.marker == Marker(self.marker))
        if not mentions:
            return (f"no line requires {self.name}" + (f" ; {self.marker}" if self.marker else ""),)
        return tuple(
            f"{mention.place} has `{mention.text}`, which is not {self.name}{self.specifier}"
            for mention in mentions
            if mention.specifier != self.specifier
        )


@dataclass(frozen=True, kw_only=True)
class NoRequirement:
    """A distribution is not required, neither by name nor by a URL or path that names it."""

    name: NormalizedName
    within: str = ""
    """As in `HasRequirement`."""

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say where it is still asked for."""
        mentions = _mentions(path, data, self.name, self.within)
        if isinstance(mentions, Unknown):
            return (mentions.why,)
        return tuple(f"{mention.place} still asks for {self.name}: `{mention.text}`" for mention in mentions)


@dataclass(frozen=True, kw_only=True)
class _Mention:
    place: str
    """A line, or a list."""
    text: str
    specifier: SpecifierSet | None
    """None: it is a URL, a path, or a line that cannot be read but speaks of the distribution."""
    marker: Marker | None = None


def _mentions(path: PurePosixPath, data: bytes, name: NormalizedName, within: str) -> tuple[_Mention, ...] | Unknown:
    read = reader(path)
    if read is None and path.suffix.lower() not in {".txt", ".in"}:
        return Unknown(why=f"{path.name} is none of the files whose requirements can be checked")
    text = decoded(data)
    if text is None:
        return Unknown(why=UNREADABLE)
    if read is None:
        if within:
            return Unknown(why=f"{path.name} has no list `{within}`")
        found = (_mention(f"line {line}", content, name) for line, content in _joined(text))
        return tuple(mention for mention in found if mention is not None)
    return _declared_mentions(read, text, name, within)


def _declared_mentions(read: Reader, text: str, name: NormalizedName, within: str) -> tuple[_Mention, ...] | Unknown:
    mentions: list[_Mention] = []
    try:
        for one in read(text):
            if isinstance(one, Unknown):
                return one
            if one.place == within or (not within and one.place != BUILD):
                mention = _mention(one.place, one.text, name) if one.words == "pip" else _translated(one, name)
                mentions += [mention] if mention else []
    except UNLOADABLE as error:
        return Unknown(why=f"it cannot be read: {str(error).splitlines()[0]}")
    return tuple(mentions)


def _translated(one: Declared, name: NormalizedName) -> _Mention | None:
    """Read a requirement of Poetry or conda."""
    if one.words == "poetry":
        is_meant = canonicalize_name(one.name) == name
        return _Mention(place=one.place, text=one.text, specifier=of_poetry(one.text)) if is_meant else None
    spelled, specifier = of_conda(one.text)
    is_meant = canonicalize_name(spelled) == name
    return _Mention(place=one.place, text=one.text, specifier=specifier) if is_meant else None


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


def _mention(place: str, content: str, name: NormalizedName) -> _Mention | None:
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
        return _Mention(place=place, text=body, specifier=None) if is_meant else None
    if canonicalize_name(requirement.name) != name:
        return None
    specifier = None if requirement.url else requirement.specifier
    return _Mention(place=place, text=body, specifier=specifier, marker=requirement.marker)


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


_VERSION = re.compile(r"[\s^~=]*(\d+(?:\.\d+)*)\S*")
_CONDA = re.compile(r"(?P<name>[\w.-]+)(?P<rest>.*)", re.DOTALL)
_SIMPLE = re.compile(r"(?P<sign>={0,2})\s*(?P<version>[\w.*+!]+)(?:[= ]+(?P<build>\S+))?")


def of_poetry(text: str) -> SpecifierSet | None:
    """Read a constraint of Poetry; None where packaging has no words for it."""
    if "||" in text:
        return None
    bounds: list[str] = []
    for clause in text.replace(" ", "").split(","):
        if clause.startswith(("^", "~")) and not clause.startswith("~="):
            match = _VERSION.fullmatch(clause)
            if match is None:
                return None
            numbers = [int(number) for number in match[1].split(".")]
            bounds += [f">={clause[1:]}", f"<{_next(numbers, is_caret=clause[0] == '^')}"]
        elif clause != "*":
            bounds.append(clause if re.match(r"[<>!=~]=|[<>]", clause) else f"=={clause.lstrip('=')}")
    return _specifier(",".join(bounds))


def _next(numbers: list[int], *, is_caret: bool) -> str:
    """The first version that is not compatible any more."""
    kept = 1 if len(numbers) == 1 else 2
    if is_caret:
        zeros = [number == 0 for number in numbers]
        kept = len(numbers) if all(zeros) else zeros.index(False) + 1
    return ".".join(map(str, [*numbers[: kept - 1], numbers[kept - 1] + 1]))


def of_conda(text: str) -> tuple[str, SpecifierSet | None]:
    """Read a match specification: its name, and what it allows, None where packaging has no words for it."""
    match = _CONDA.fullmatch(text.rpartition("::")[2].strip())
    if match is None:
        return text, None
    name, rest = match["name"], match["rest"].strip()
    simple = _SIMPLE.fullmatch(rest)
    if simple is None:
        return name, _specifier(rest)
    is_exact = simple["sign"] != "=" or simple["build"] is not None or simple["version"].endswith("*")
    return name, _specifier(f"=={simple['version']}{'' if is_exact else '.*'}")


def _specifier(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None
