"""Ops on pip requirement files: set, drop, add and rename requirements by normalised name; touches nothing else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import assert_never

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model import Located, OutcomeKind, Refusal, Site
from patchlock.requirement_files import EmptyLine, Line, LocationLine, OptionLine, RequirementLine, Unreadable, parse
from patchlock.sources import Edit, SourceText

_SUFFIXES = (".txt", ".in")
_SPACED_SPECIFIER = re.compile(r"[~=!<>]+ \S")
_OPERATOR = re.compile(r"^[~=!<>]+")
_CONTINUATION = re.compile(r"\\+[\r\n]+")
_UNFINISHED = re.compile(r"\\(?:\r\n|\r|\n)?\Z")

_Verdict = Edit | Refusal | None
"""What a requirement line needs; None: it is already as the patch wants it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SetRequirement:
    """Give every requirement of a name exactly one specifier; name, extras, marker and comment stay as they are.

    `name @ url` becomes name and specifier. An empty specifier unpins. A line with hashes is refused.
    """

    name: NormalizedName
    specifier: SpecifierSet

    def locate(self, source: SourceText) -> Located:
        """Find the lines of that name whose specifier is another, or that have a URL."""
        return _locate(source, self.name, self._verdict)

    def _verdict(self, source: SourceText, line: RequirementLine) -> _Verdict:
        requirement = line.requirement
        if requirement.url is None and requirement.specifier == self.specifier:
            return None
        if line.has_hash:
            return _hash_locked(line.line)
        span = line.specifier_span
        if span.start == line.requirement_span.start:
            marker = requirement.marker if line.editable else None  # which stands inside the span
            text = _text(requirement.name, requirement.extras, self.specifier, marker=marker)
            return Edit(start=span.start, end=span.end, text=text)
        before = source.text[line.requirement_span.start : span.start]
        blanks = 0 if str(self.specifier) else len(before) - len(before.rstrip(" \t"))
        spaced = _SPACED_SPECIFIER.match(source.text, span.start, span.end)
        clauses = sorted(str(clause) for clause in self.specifier)
        text = ",".join(_OPERATOR.sub(r"\g<0> ", clause) if spaced else clause for clause in clauses)
        return Edit(start=span.start - blanks, end=span.end, text=text)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DropRequirement:
    """Remove every line that requires a name, with its comment, hashes and line ending."""

    name: NormalizedName

    def locate(self, source: SourceText) -> Located:
        """Find the lines of that name."""
        return _locate(source, self.name, lambda _, line: Edit(start=line.span.start, end=line.span.end, text=""))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AddRequirement:
    """Append a requirement, in the file's own line ending, with or without a final newline as the file has it.

    A line of the same name that asks for less or for something else is refused, as is a file that is hash-locked.
    """

    requirement: Requirement

    def locate(self, source: SourceText) -> Located:
        """Find the end of the file, or the lines that already ask for it."""
        if not _is_supported(source):
            return _unsupported(source)
        name = canonicalize_name(self.requirement.name)
        lines = parse(source)
        present = _named(lines, name)
        settled = tuple(_site(source, line) for line in present if self._is_met_by(line))
        refusals = _doubts(lines, name) + tuple(
            _refused(line.line, f"it already requires {name}, in another way; set-requirement can change it")
            for line in present
            if not self._is_met_by(line)
        )
        if not present and not refusals:
            refusals = tuple(_hash_locked(line.line) for line in lines if _demands_hashes(line))[:1]
        if present or refusals:
            return Located(settled=settled, refusals=refusals)
        edit, line_number = _appended(source, lines, str(self.requirement))
        return Located(edits=(edit,), sites=(Site(line=line_number, text="the end of the file"),))

    def _is_met_by(self, line: RequirementLine) -> bool:
        have, want = line.requirement, self.requirement
        extras = {canonicalize_name(extra) for extra in have.extras}
        return (
            not line.editable
            and (have.specifier, have.url) == (want.specifier, want.url)
            and extras.issuperset(canonicalize_name(extra) for extra in want.extras)
            and have.marker in {None, want.marker}
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RenameRequirement:
    """Replace every requirement of a name by another one.

    Name, specifier and URL are those of `to`; upstream's marker and extras stay where `to` has none. A line with
    hashes is refused. A file that has `to` and no longer the name is settled.
    """

    name: NormalizedName
    to: Requirement

    def locate(self, source: SourceText) -> Located:
        """Find the lines of the old name, or else those of the new one."""
        located = _locate(source, self.name, self._verdict)
        if located.sites or located.settled or not _is_supported(source):
            return located
        renamed = _named(parse(source), canonicalize_name(self.to.name))
        return dataclasses.replace(located, settled=tuple(_site(source, line) for line in renamed))

    def _verdict(self, source: SourceText, line: RequirementLine) -> _Verdict:
        extras = self.to.extras or line.requirement.extras
        marker = self.to.marker or line.requirement.marker
        wanted = _text(self.to.name, extras, self.to.specifier, self.to.url, marker)
        if not line.editable and Requirement(wanted) == line.requirement:
            return None
        if line.has_hash:
            return _hash_locked(line.line)
        whole, head_end = line.requirement_span, line.specifier_span.end
        if self.to.marker or line.editable:
            return Edit(start=whole.start, end=whole.end, text=wanted)
        text = _text(self.to.name, extras, self.to.specifier, self.to.url)
        needs_blank = self.to.url and source.text[head_end : whole.end][:1] not in {"", " ", "\t"}
        return Edit(start=whole.start, end=head_end, text=f"{text} " if needs_blank else text)


def _locate(
    source: SourceText, name: NormalizedName, verdict: Callable[[SourceText, RequirementLine], _Verdict]
) -> Located:
    if not _is_supported(source):
        return _unsupported(source)
    lines = parse(source)
    edits: list[Edit] = []
    sites: list[Site] = []
    settled: list[Site] = []
    refusals = list(_doubts(lines, name))
    for line in _named(lines, name):
        match verdict(source, line):
            case Edit() as edit:
                edits.append(edit)
                sites.append(_site(source, line))
            case Refusal() as refusal:
                refusals.append(refusal)
            case None:
                settled.append(_site(source, line))
            case unknown:
                assert_never(unknown)
    return Located(edits=tuple(edits), sites=tuple(sites), settled=tuple(settled), refusals=tuple(refusals))


def _named(lines: tuple[Line, ...], name: NormalizedName) -> tuple[RequirementLine, ...]:
    return tuple(
        line for line in lines if isinstance(line, RequirementLine) and canonicalize_name(line.requirement.name) == name
    )


def _doubts(lines: tuple[Line, ...], name: NormalizedName) -> tuple[Refusal, ...]:
    """Refuse the lines that may be about a name and cannot be told."""
    spelled = re.escape(name).replace(r"\-", "[-_.]+")
    mention = re.compile(rf"(?<![\w-]){spelled}(?!\w|-(?!\d))", re.IGNORECASE | re.ASCII)
    refusals: list[Refusal] = []
    for line in lines:
        if isinstance(line, Unreadable) and mention.search(line.text):
            why = f"it mentions {name} and cannot be read: {line.why}"
            refusals.append(Refusal(line=line.line, kind=OutcomeKind.UNPARSABLE, why=why))
        elif isinstance(line, LocationLine) and any(mention.match(part) for part in _components(line.target)):
            refusals.append(_refused(line.line, f"`{line.target}` does not say what it installs, which may be {name}"))
    return tuple(refusals)


def _components(target: str) -> list[str]:
    """The parts of a URL's or local path; without the first of several, which is the owner of a repository."""
    components = re.split(r"[/\\]+", re.sub(r"^[^/\\]*://[^/]*|[?#].*$", "", target).strip("/\\"))
    return components[1:] or components


def _is_supported(source: SourceText) -> bool:
    return source.path.suffix.lower() in _SUFFIXES


def _unsupported(source: SourceText) -> Located:
    why = f"{source.path.name} is not a pip requirement file (.txt, .in), the only kind of file that this op can edit"
    return Located(refusals=(Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=why),))


def _refused(line: int, why: str) -> Refusal:
    return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why)


def _hash_locked(line: int) -> Refusal:
    return _refused(line, "the file is hash-locked; it must be locked again, not edited")


def _demands_hashes(line: Line) -> bool:
    match line:
        case RequirementLine():
            return line.has_hash
        case OptionLine():
            return ("--require-hashes", "") in line.options
        case _:
            return False


def _site(source: SourceText, line: RequirementLine) -> Site:
    text = source.text[line.requirement_span.start : line.requirement_span.end]
    return Site(line=line.line, text=" ".join(_CONTINUATION.sub(" ", text).split()))


def _appended(source: SourceText, lines: tuple[Line, ...], text: str) -> tuple[Edit, int]:
    """Make the edit that appends a line, and say which line it will be."""
    newline, end = source.newline, len(source.text)
    is_complete = source.text.endswith(("\n", "\r")) or not source.text
    before = "" if is_complete else newline
    if _UNFINISHED.search(source.text) and not isinstance(lines[-1], EmptyLine):
        before += newline  # a continuation at the end of the file would swallow the new line
    after = newline if is_complete else ""
    line = len(dataclasses.replace(source, text=source.text + before).line_starts())
    return Edit(start=end, end=end, text=f"{before}{text}{after}"), line


def _text(
    name: str, extras: set[str], specifier: SpecifierSet, url: str | None = None, marker: Marker | None = None
) -> str:
    listed = f"[{','.join(sorted(extras))}]" if extras else ""
    at_url = f" @ {url}" if url else ""
    condition = f"{' ' if url else ''}; {marker}" if marker else ""
    return f"{name}{listed}{specifier}{at_url}{condition}"
