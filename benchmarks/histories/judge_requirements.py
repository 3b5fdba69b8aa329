"""Judge patched requirement files on our own reading of what pip reads; shares no code with patchlock."""

from __future__ import annotations

import codecs
import dataclasses
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def text_of(data: bytes) -> str:
    """Decode as pip does: by BOM, then UTF-8, then Latin-1."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def lines_of(data: bytes) -> list[str]:
    """Give the lines that pip acts on: continued ones joined, without comments, without blank ones."""
    joined = re.sub(r"\\\n", "", text_of(data).replace("\r\n", "\n").replace("\r", "\n"))
    bare = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in joined.split("\n"))
    return [line for line in bare if line]


def requirement_of(line: str) -> Requirement | None:
    """Read one requirement; None for options, paths and what cannot be read."""
    try:
        return Requirement(re.split(r"\s--?[a-z]", line)[0].strip())
    except InvalidRequirement:
        return None


def named(data: bytes) -> list[tuple[str, Requirement | None, str]]:
    """Give each line with its distribution's normal name, "" where it has none."""
    read = [(requirement_of(line), line) for line in lines_of(data)]
    return [(canonicalize_name(found.name) if found else _name(line), found, line) for found, line in read]


def _name(line: str) -> str:
    """Give the name of `-e git+https://…#egg=name`, or of `name>=1+local`, which no specifier can be; or ""."""
    found = re.search(r"[#&]egg=([\w.-]+)", line) or re.match(r"([\w.-]+)\s*[=<>!~]", line)
    return canonicalize_name(found[1]) if found else ""


def _others(data: bytes, names: frozenset[str]) -> list[str]:
    """Give what a file asks for apart from some distributions."""
    return [str(found) if found else line for name, found, line in named(data) if name not in names]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pinned:
    """P1: each requirement of these names has exactly this specifier and no URL; all others are untouched."""

    pins: Mapping[str, str]
    adds: bool = False
    """The file must have them; otherwise only what is there counts."""
    also: frozenset[str] = frozenset()
    """Other names that patches of the same set may change."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say which requirements are otherwise, or missing."""
        lines = named(data)
        wrong = [
            f"`{line}` is not {name}{self.pins[name]}"
            for name, found, line in lines
            if name in self.pins and (found is None or found.url or found.specifier != SpecifierSet(self.pins[name]))
        ]
        missing = [f"{name} is missing" for name in self.pins if self.adds and name not in {n for n, _, _ in lines}]
        return tuple(wrong + missing)

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether a line names a distribution in a way that pip cannot read."""
        return any(not found for _, found, _ in named(data))

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say what else changed: another requirement, an extra, a marker, the encoding or the line endings."""
        names = frozenset(self.pins) | self.also
        wrong = ["other requirements changed"] if _others(before, names) != _others(after, names) else []
        for name in self.pins:
            kept = [
                [(f.extras, str(f.marker)) for n, f, _ in named(data) if n == name and f] for data in (before, after)
            ]
            wrong += [f"extras or marker of {name} changed"] if kept[0] and kept[0] != kept[1] else []
        return (*wrong, *_layout(before, after))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dropped:
    """P5: none of these names is required; all others are untouched."""

    names: frozenset[str]
    also: frozenset[str] = frozenset()

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say which are still required."""
        return tuple(f"`{line}` is still required" for name, _, line in named(data) if name in self.names)

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether a line names a distribution in a way that pip cannot read."""
        return any(not found for _, found, _ in named(data))

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say what else changed."""
        names = self.names | self.also
        wrong = ["other requirements changed"] if _others(before, names) != _others(after, names) else []
        return (*wrong, *_layout(before, after))


def _layout(before: bytes, after: bytes) -> list[str]:
    boms = [next((bom for bom, _ in _BOMS if data.startswith(bom)), b"") for data in (before, after)]
    wrong = ["the byte order mark changed"] if boms[0] != boms[1] else []
    old, new = (text_of(data) for data in (before, after))
    endings = [{ending for ending in ("\r\n", "\n", "\r") if re.search(_EXACT[ending], t)} for t in (old, new)]
    wrong += ["a new kind of line ending"] if old.strip() and not endings[1] <= (endings[0] or {"\n"}) else []
    return wrong


_EXACT = {"\r\n": r"\r\n", "\n": r"(?<!\r)\n", "\r": r"\r(?!\n)"}
