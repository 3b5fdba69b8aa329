"""A requirement in the words of pip, as a line of its own or as a string, and its edits; knows no file format."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.text_files import Edit
from patchlock.patches.ops._literals import Literal
from patchlock.patches.ops.requirements.lists import Doubt, Untouched
from patchlock.patches.pip_requirements import (
    Head,
    Line,
    LocationLine,
    OptionLine,
    RequirementLine,
    Span,
    Unreadable,
    parse_one,
)

_SPACED_SPECIFIER = re.compile(r"[~=!<>]+ \S")
_OPERATOR = re.compile(r"^[~=!<>]+")
_CONTINUATION = re.compile(r"\\+[\r\n]+")

HASH_LOCKED = "the file is hash-locked; it must be locked again, not edited"
_UNFIT = "the new text cannot stand between these quotation marks"


@dataclass(frozen=True, kw_only=True)
class PipEntry:
    """A requirement as pip reads it, or at least its name."""

    line: int
    """In the file."""
    literal: Literal
    """In which the spans of `read` count."""
    read: RequirementLine | Unreadable
    """An unreadable one has a head."""

    @property
    def name(self) -> NormalizedName:
        """Give the name that is certain."""
        match self.read:
            case RequirementLine(requirement=requirement):
                return canonicalize_name(requirement.name)
            case Unreadable(head=Head(name=name)):
                return name
        raise ValueError("an unreadable line without a name is not a requirement")

    @property
    def requirement(self) -> Requirement | None:
        """Give what it asks for."""
        return self.read.requirement if isinstance(self.read, RequirementLine) else None

    @property
    def is_editable(self) -> bool:
        """Tell whether it is installed in place."""
        return isinstance(self.read, RequirementLine) and self.read.editable

    @property
    def text(self) -> str:
        """Give it on one line, without comment and options."""
        span = self._parts()[0]
        return " ".join(_CONTINUATION.sub(" ", self.literal.value[span.start : span.end]).split())

    def with_specifier(self, specifier: SpecifierSet) -> tuple[Edit, ...] | Untouched:
        """Replace specifiers or URL."""
        whole, span, has_hash = self._parts()
        if has_hash:
            return Untouched(why=HASH_LOCKED)
        value = self.literal.value
        if self.requirement is not None and span.start == whole.start:
            marker = self.requirement.marker if self.is_editable else None  # which stands inside the span
            text = requirement_text(self.requirement.name, self.requirement.extras, specifier, marker=marker)
            return self._edit(span.start, span.end, text)
        before = value[whole.start : span.start]
        blanks = 0 if str(specifier) else len(before) - len(before.rstrip(" \t"))
        spaced = _SPACED_SPECIFIER.match(value, span.start, span.end)
        clauses = sorted(str(clause) for clause in specifier)
        text = ",".join(_OPERATOR.sub(r"\g<0> ", clause) if spaced else clause for clause in clauses)
        return self._edit(span.start - blanks, span.end, text)

    def renamed(self, to: Requirement) -> tuple[Edit, ...] | Untouched:
        """Replace name, specifiers and URL, and what else `to` has."""
        whole, span, has_hash = self._parts()
        if has_hash:
            return Untouched(why=HASH_LOCKED)
        have = self.requirement
        extras = to.extras or (have.extras if have else self._extras())
        marker = to.marker or (have.marker if have else None)
        if to.marker or self.is_editable:
            wanted = requirement_text(to.name, extras, to.specifier, to.url, marker)
            return self._edit(whole.start, whole.end, wanted)
        text = requirement_text(to.name, extras, to.specifier, to.url)
        needs_blank = to.url and self.literal.value[span.end : whole.end][:1] not in {"", " ", "\t"}
        return self._edit(whole.start, span.end, f"{text} " if needs_blank else text)

    def _parts(self) -> tuple[Span, Span, bool]:
        """The requirement, its specifier, and whether it has hashes."""
        head = self.read.head if isinstance(self.read, Unreadable) else self.read
        if head is None:
            raise ValueError("an unreadable line without a name is not a requirement")
        return head.requirement_span, head.specifier_span, head.has_hash

    def _extras(self) -> set[str]:
        written = self.read.head.extras if isinstance(self.read, Unreadable) and self.read.head else ""
        return {extra for extra in re.split(r"[\[\],\s]+", written) if extra}

    def _edit(self, start: int, end: int, text: str) -> tuple[Edit, ...] | Untouched:
        if isinstance(self.read, Unreadable):
            span, value = self.read.span, self.literal.value
            result = parse_one(value[span.start : start] + text + value[end : span.end], self.line)
            if not isinstance(result, RequirementLine):
                return Untouched(why=f"it cannot be read, and not for its specifier: {self.read.why}")
        edit = self.literal.edit(start, end, text)
        return Untouched(why=_UNFIT) if edit is None else (edit,)


def read_pip_entry(literal: Literal, line: int, within: str) -> PipEntry | Doubt | None:
    """Read a string that holds one requirement; None where it is empty."""
    read = parse_one(literal.value, line)
    if isinstance(read, OptionLine):
        return Doubt(line=line, text=literal.value, why="an option of pip is not a requirement", within=within)
    one = entry(literal, read)
    return dataclasses.replace(one, within=within) if isinstance(one, Doubt) else one


def entry(literal: Literal, read: Line) -> PipEntry | Doubt | None:
    """Make an entry, or a doubt, of a line that is read already."""
    match read:
        case RequirementLine() | Unreadable(head=Head()):
            return PipEntry(line=read.line, literal=literal, read=read)
        case Unreadable():
            return Doubt(line=read.line, text=read.text, why=read.why)
        case LocationLine():
            return Doubt(line=read.line, text=read.target, why="", is_location=True)
        case _:
            return None


def requirement_of(name: str, extras: set[str], specifier: SpecifierSet) -> Requirement | None:
    """Make a requirement; None for a name that only another world allows, such as conda's `_libgcc_mutex`."""
    try:
        return Requirement(requirement_text(name, extras, specifier))
    except InvalidRequirement:
        return None


def requirement_text(
    name: str, extras: set[str], specifier: SpecifierSet, url: str | None = None, marker: Marker | None = None
) -> str:
    """Write a requirement."""
    listed = f"[{','.join(sorted(extras))}]" if extras else ""
    at_url = f" @ {url}" if url else ""
    condition = f"{' ' if url else ''}; {marker}" if marker else ""
    return f"{name}{listed}{specifier}{at_url}{condition}"
