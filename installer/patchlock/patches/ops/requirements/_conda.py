"""The requirements of a conda environment file: its own words, and pip's below `pip:`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.ops._literals import Literal, bare, quoted
from patchlock.patches.ops._structured import yaml_tree
from patchlock.patches.ops._structured.tree import Node, Unparsable, below, line_at, whole_lines
from patchlock.patches.ops.requirements._entries import read_pip_entry, requirement_of
from patchlock.patches.ops.requirements._layouts import Brackets, Lines
from patchlock.patches.ops.requirements.lists import Declared, Doubt, Entry, RequirementList, Untouched
from patchlock.patches.pip_requirements import OptionLine, Span, parse_one

_SPEC = re.compile(
    r"(?P<channel>[^\s:]+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)(?P<rest>(?:[\s=<>!~\[].*)?)", re.ASCII
)
_FUZZY = re.compile(r"\s*=\s*([^=\s<>!~|,]+)(?:[=\s](\S+))?")
_EXACT = re.compile(r"(?:\s*==\s*|\s+)([^=\s<>!~|,]+)(?:[=\s]\S+)?")
_NOT_CONDAS = "conda has no extras, markers or URLs here; a requirement below `pip:` can have them"
_UNSAID = "conda has no word for this specifier"


@dataclass(kw_only=True, slots=True)
class _Found:
    """What stands in the lists beside requirements."""

    doubts: list[Doubt] = field(default_factory=list)
    options: list[OptionLine] = field(default_factory=list)


def read(source: SourceText) -> Declared | Refusal:
    """Read an environment file: any YAML file with a list `dependencies`."""
    data = yaml_tree.load(source.text)
    if isinstance(data, Unparsable):
        return Refusal(line=data.line, kind=OutcomeKind.UNPARSABLE, why=data.why)
    listed = data.get("dependencies") if isinstance(data, dict) else None
    if isinstance(data, dict) and "dependencies" in data and listed is None:
        return Declared(lists=())
    root = yaml_tree.tree(source.text)
    if not isinstance(listed, list) or root is None:
        why = f"{source.path.name} has no list `dependencies`, so it is not a conda environment file"
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=why)
    dependencies = root.children["dependencies"].node
    shared = next((node for node in below(dependencies) if node.shared), None)
    if shared is not None or "dependencies" in root.repeated:
        line = line_at(source.text, (shared or dependencies).span.start)
        return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why="anchors and aliases stand among the requirements")
    lists: list[RequirementList] = []
    found = _Found()
    for child, item in zip(dependencies.children.values(), listed, strict=True):
        if not isinstance(item, str | dict) or (isinstance(item, dict) and not isinstance(item.get("pip", []), list)):
            why = "it is neither a package nor a list for pip"
            line = line_at(source.text, child.span.start)
            found.doubts.append(Doubt(line=line, text=str(item), why=why, within="dependencies.pip"))
        for key, value in item.items() if isinstance(item, dict) else ():
            if key != "pip":
                line = line_at(source.text, child.node.children[key].span.start)
                why = "it is a selector, which only some tools of conda's read"
                found.doubts.append(Doubt(line=line, text=f"{key}: {value}", why=why, within="dependencies"))
        if isinstance(item, dict) and isinstance(item.get("pip"), list):
            pip = child.node.children["pip"].node
            emptied = whole_lines(source.text, child.span) if len(item) == 1 and not dependencies.enclosed else None
            lists.append(_list(source, "dependencies.pip", pip, item["pip"], found, emptied))
    lists.insert(0, _list(source, "dependencies", dependencies, listed, found, None))
    return Declared(
        lists=tuple(lists), doubts=tuple(found.doubts), options=tuple(found.options), default="dependencies.pip"
    )


def _list(
    source: SourceText, name: str, node: Node, values: list[object], found: _Found, emptied: Span | None
) -> RequirementList:
    entries: list[tuple[int, Entry]] = []
    for index, (child, value) in enumerate(zip(node.children.values(), values, strict=True)):
        line = line_at(source.text, child.span.start)
        if not isinstance(value, str):
            if name.endswith(".pip"):
                found.doubts.append(
                    Doubt(line=line, text=str(value), why="it is not text, as pip needs one", within=name)
                )
            continue
        literal = _literal(source.text, child.span, value)
        one: Entry | Doubt | None
        if literal is None:
            why = "its escapes or line breaks hide where it stands"
            one = Doubt(line=line, text=value, why=why, within=name)
        else:
            read_line = parse_one(literal.value, line) if name.endswith(".pip") else None
            if isinstance(read_line, OptionLine):
                found.options.append(read_line)
                continue
            one = read_pip_entry(literal, line, name) if name.endswith(".pip") else _conda(literal, line)
        if isinstance(one, Doubt):
            found.doubts.append(one)
        elif one is not None:
            entries.append((index, one))
    spans = node.spans()
    if node.enclosed:
        return RequirementList(
            name=name, entries=tuple(entries), layout=Brackets(source=source, outer=node.span, items=spans)
        )
    first = spans[0].start if spans else node.span.start
    lead = source.text[whole_lines(source.text, Span(start=first, end=first)).start : first]
    layout = Lines(source=source, items=spans, lead=lead, home=node.span.end, emptied=emptied)
    return RequirementList(name=name, entries=tuple(entries), layout=layout)


def _literal(text: str, span: Span, value: str) -> Literal | None:
    if text[span.start] in "\"'":
        return quoted(text, span, value)
    return bare(text, span) if text[span.start : span.end] == value else None


@dataclass(frozen=True, kw_only=True)
class CondaEntry:
    """A match specification of conda."""

    line: int
    name: NormalizedName
    requirement: Requirement | None
    literal: Literal
    name_span: Span
    """In the literal; version and build follow to its end."""
    is_editable: bool = False

    @property
    def text(self) -> str:
        """Give it as written."""
        return self.literal.value

    def with_specifier(self, specifier: SpecifierSet) -> tuple[Edit, ...] | Untouched:
        """Replace version and build; the channel stays."""
        text = spec(specifier)
        if text is None:
            return Untouched(why=_UNSAID)
        edit = self.literal.edit(self.name_span.end, len(self.literal.value), text)
        return Untouched(why=_UNSAID) if edit is None else (edit,)

    def renamed(self, to: Requirement) -> tuple[Edit, ...] | Untouched:
        """Replace name, version and build; the channel stays."""
        if to.extras or to.marker or to.url:
            return Untouched(why=_NOT_CONDAS)
        text = spec(to.specifier)
        edit = (
            None if text is None else self.literal.edit(self.name_span.start, len(self.literal.value), to.name + text)
        )
        return Untouched(why=_UNSAID) if edit is None else (edit,)


def _conda(literal: Literal, line: int) -> CondaEntry | Doubt:
    match = _SPEC.fullmatch(literal.value)
    if match is None:
        return Doubt(
            line=line, text=literal.value, why="it is not a specification that conda can read", within="dependencies"
        )
    specifier = constraint(match["rest"])
    name = canonicalize_name(match["name"])
    return CondaEntry(
        line=line,
        name=name,
        requirement=None if specifier is None else requirement_of(name, set(), specifier),
        literal=literal,
        name_span=Span(start=match.start("name"), end=match.end("name")),
    )


def constraint(text: str) -> SpecifierSet | None:
    """Say what stands behind a name, in the words of PEP 440; None where it cannot be said.

    Source: https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/pkg-specs.html.
    """
    fuzzy = _FUZZY.fullmatch(text)
    exact = _EXACT.fullmatch(text)
    written = text.strip()
    if fuzzy:
        has_build = fuzzy[2] is not None
        written = f"=={fuzzy[1]}" if has_build or fuzzy[1].endswith("*") else f"=={fuzzy[1]}.*"
    elif exact:
        written = f"=={exact[1]}"
    try:
        return SpecifierSet(written)
    except InvalidSpecifier:
        return None


def spec(specifier: SpecifierSet) -> str | None:
    """Write a specifier as conda reads it, without the name; None where it has no word for it."""
    clauses = sorted(str(clause) for clause in specifier)
    if len(clauses) == 1 and clauses[0].startswith("==") and clauses[0].endswith(".*"):
        return f"={clauses[0][2:-2]}"  # conda reads `==1.2.*` as `==1.2`
    if any(clause.startswith("===") or (clause.startswith("==") and clause.endswith(".*")) for clause in clauses):
        return None
    return ",".join(clauses)
