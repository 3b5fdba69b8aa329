"""The dependency tables of Poetry: names as keys, and its own words for versions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops._literals import Literal, quoted
from patchlock.patches.ops._structured import enclosed, toml_tree
from patchlock.patches.ops._structured.tree import Child, Node, line_at, whole_lines
from patchlock.patches.ops.requirements._entries import requirement_of
from patchlock.patches.ops.requirements.lists import Addition, RequirementList, Untouched
from patchlock.patches.pip_requirements import Span

_NO_VERSION = "it has no version, or several, in this Poetry table; set-key can change it"
_PLAIN_ONLY = "a Poetry table takes a name and a specifier here, no extras, marker or URL; set-key can write them"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_COMPARED = re.compile(r"(?:===|~=|==|!=|<=|>=|<|>)")
_EITHER = re.compile(r"\s*\|\|?\s*")
_PLATFORM = re.compile(r"\s*(==|!=|=)?\s*(.*?)\s*")


def poetry_table(source: SourceText, name: str, table: Node, values: Mapping[str, object]) -> RequirementList:
    """Read one table of dependencies; `python` is not a distribution."""
    entries = tuple(
        (index, _entry(source.text, str(key), child, child.key, values[str(key)]))
        for index, (key, child) in enumerate(table.children.items())
        if key != "python" and child.key is not None
    )
    optional = frozenset(
        index
        for index, (key, child) in enumerate(table.children.items())
        if isinstance(value := values.get(str(key)), dict)
        and value.get("optional") is True
        and source.text[child.node.span.start] == "{"
    )
    layout = PoetryLayout(source=source, table=table, optional=optional)
    return RequirementList(name=name, entries=entries, layout=layout, optional=optional)


@dataclass(frozen=True, kw_only=True)
class PoetryEntry:
    """A key and its constraint."""

    line: int
    text: str
    name: NormalizedName
    requirement: Requirement | None
    key: Span
    version: Literal | None
    """The string with the constraint; None: the table has none."""
    is_editable: bool

    def with_specifier(self, specifier: SpecifierSet) -> tuple[Edit, ...] | Untouched:
        """Write the constraint as PEP 440 does, which Poetry reads too; `*` for no bound."""
        if self.version is None:
            return Untouched(why=_NO_VERSION)
        text = ",".join(sorted(str(clause) for clause in specifier)) or "*"
        edit = self.version.edit(0, len(self.version.value), text)
        return Untouched(why=_NO_VERSION) if edit is None else (edit,)

    def renamed(self, to: Requirement) -> tuple[Edit, ...] | Untouched:
        """Replace key and constraint."""
        if to.extras or to.marker or to.url:
            return Untouched(why=_PLAIN_ONLY)
        constraint = self.with_specifier(to.specifier)
        if isinstance(constraint, Untouched):
            return constraint
        return (Edit(start=self.key.start, end=self.key.end, text=_key(to.name)), *constraint)


@dataclass(frozen=True, kw_only=True)
class PoetryLayout:
    """A table with a header, or between braces."""

    source: SourceText
    table: Node
    optional: frozenset[int] = frozenset()
    """What only an extra asks for."""

    def without(self, chosen: Collection[int]) -> tuple[Edit, ...]:
        """Take members out, wherever their parts stand."""
        text = self.source.text
        if self.table.enclosed:
            return enclosed.without(text, self.table.spans(), chosen)
        children = list(self.table.children.values())
        spans = [span for index in sorted(chosen) for span in toml_tree.removed(text, children[index])]
        return tuple(Edit(start=span.start, end=span.end, text="") for span in spans)

    def appended(self, requirement: Requirement) -> Addition | Refusal:
        """Put a member behind the last one of the table's own; one that only an extra asks for becomes it."""
        text = self.source.text
        line = line_at(text, self.table.span.start)
        if requirement.extras or requirement.marker or requirement.url:
            return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=_PLAIN_ONLY)
        for index, (key, child) in enumerate(self.table.children.items()):
            if index in self.optional and canonicalize_name(str(key)) == canonicalize_name(requirement.name):
                span, value = child.node.span, f'"{requirement.specifier or "*"}"'
                at = line_at(text, span.start)
                return Addition(edit=Edit(start=span.start, end=span.end, text=value), line=at, place="of an extra")
        member = f'{_key(requirement.name)} = "{requirement.specifier or "*"}"'
        if self.table.enclosed:
            edit = enclosed.appended(text, self.table.span, self.table.spans(), member, self.source.newline)
            return Addition(edit=edit, line=line, place="the end of the table")
        if self.table.home is None:
            return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why="the table has no header of its own")
        lines = whole_lines(text, Span(start=self.table.home, end=self.table.home))
        at = lines.start + len(text[lines.start : lines.end].rstrip("\r\n"))
        edit = Edit(start=at, end=at, text=f"{self.source.newline}{member}")
        return Addition(edit=edit, line=line_at(text, at) + 1, place="the end of the table")


def _entry(text: str, name: str, child: Child, key: Span, value: object) -> PoetryEntry:
    node, written = child.node, value
    details: Mapping[str, object] = {}
    if isinstance(value, dict):
        details, written = value, value.get("version")
        node = child.node.children["version"].node if "version" in value else node
    literal = quoted(text, node.span, written) if isinstance(written, str) else None
    specifier = constraint(written) if isinstance(written, str) else None
    extras = details.get("extras")
    listed = {str(extra) for extra in extras} if isinstance(extras, list) else set[str]()
    is_place = not details.keys().isdisjoint({"git", "url", "path", "file"})
    canonical = canonicalize_name(name)
    requirement = None
    if specifier is not None and not is_place:
        requirement = requirement_of(canonical, listed, specifier)
    lines = whole_lines(text, Span(start=key.start, end=key.start))
    shown = " ".join(text[key.start : lines.end].partition("#")[0].split())
    return PoetryEntry(
        line=line_at(text, key.start),
        text=shown,
        name=canonical,
        requirement=requirement,
        key=key,
        version=None if is_place else literal,
        is_editable=bool(details.get("develop")),
    )


def constraint(text: str) -> SpecifierSet | None:
    """Say what a constraint of Poetry allows, in the words of PEP 440; None where it cannot be said.

    Source: https://python-poetry.org/docs/dependency-specification/.
    """
    clauses = [_clause(part.strip()) for part in text.split(",")]
    if "|" in text or None in clauses:
        return None
    try:
        return SpecifierSet(",".join(clause for clause in clauses if clause))
    except InvalidSpecifier:
        return None


def asked(name: str, value: object) -> tuple[Requirement | str, ...]:
    """Say what a member of a table asks for; where that cannot be said, a clause says why.

    Args:
        name: its key.
        value: a constraint, a table, or a list of them for several machines.
    """
    if isinstance(value, list):
        return tuple(one for item in value for one in asked(name, item))
    details = {"version": value} if isinstance(value, str) else value
    if not isinstance(details, dict):
        return (f"`{name}` is not a constraint of Poetry",)
    if unknown := sorted(details.keys() - _DETAILS):
        return (f"patchlock does not know what `{unknown[0]}` of `{name}` means",)
    if "source" in details:
        return (f'`{name}` is to come from the source "{details["source"]}", and a lock asks the profile\'s indexes',)
    markers = [str(details["markers"])] if "markers" in details else []
    markers += [_platforms(str(details["platform"]))] if "platform" in details else []
    python = [constraint(one) for one in _EITHER.split(str(details.get("python", "*")))]
    specifier = constraint(str(details.get("version", "*")))
    if None in python or specifier is None:
        return (f"the constraint of `{name}` has no counterpart in PEP 440",)
    if all(python):
        markers.append(" or ".join(_versions(one) for one in python if one))
    condition = " and ".join(f"({marker})" for marker in markers)
    extras = ",".join(map(str, details.get("extras", ())))
    address = _address(details)
    text = f"{name}[{extras}]" if extras else name
    text += f" @ {address} " if address else str(specifier)
    try:
        return (Requirement(f"{text}; {condition}" if condition else text),)
    except InvalidRequirement as error:
        return (f"`{name}` cannot be read: {str(error).partition(chr(10))[0]}",)


_DETAILS = {"version", "extras", "optional", "markers", "python", "platform", "source", "allow-prereleases"} | {
    *("git", "branch", "tag", "rev", "subdirectory", "url", "path", "file", "develop")
}
"""Source: https://python-poetry.org/docs/dependency-specification/."""


def _address(details: Mapping[str, object]) -> str:
    """Write a place as pip does."""
    if "git" in details:
        revision = next((details[key] for key in ("rev", "tag", "branch") if key in details), "")
        address = f"git+{details['git']}" + (f"@{revision}" if revision else "")
    else:
        address = str(next((details[key] for key in ("url", "path", "file") if key in details), ""))
    if "subdirectory" in details:
        address += f"{'&' if '#' in address else '#'}subdirectory={details['subdirectory']}"
    return address


def _platforms(text: str) -> str:
    """Write a constraint on the platform as a marker: names, each with `==` or `!=` or bare; `,` is and, `||` is or.

    Source: `parse_generic_constraint` of https://github.com/python-poetry/poetry-core.
    """
    either = []
    for part in _EITHER.split(text):
        named = [found.groups() for one in part.split(",") if (found := _PLATFORM.fullmatch(one))]
        either.append(" and ".join(f'sys_platform {"!=" if op == "!=" else "=="} "{name}"' for op, name in named))
    return " or ".join(either)


def _versions(specifier: SpecifierSet) -> str:
    """Write versions of Python as a marker."""
    return " and ".join(f'python_full_version {one.operator} "{one.version}"' for one in sorted(specifier, key=str))


def _clause(text: str) -> str | None:
    if text == "*":
        return ""
    if _COMPARED.match(text):
        return text
    try:
        if text.startswith("^"):
            return _until(text[1:].strip(), is_caret=True)
        if text.startswith("~"):
            return _until(text[1:].strip(), is_caret=False)
    except InvalidVersion:
        return None
    return f"=={text.removeprefix('=').strip()}"


def _until(text: str, *, is_caret: bool) -> str:
    """Bound a version from above: a caret by its first part that is not 0, a tilde by its second part."""
    release = Version(text).release
    last = min(1, len(release) - 1)
    if is_caret:
        last = next((index for index, part in enumerate(release) if part), len(release) - 1)
    above = (*release[:last], release[last] + 1)
    return f">={text},<{'.'.join(str(part) for part in above)}"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else f'"{name}"'
