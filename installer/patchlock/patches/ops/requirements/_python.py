"""The requirements of `setup.py` that are written down as strings; whatever is computed is refused with its line."""

from __future__ import annotations

import ast

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._literals import quoted
from patchlock.patches.ops._structured import enclosed
from patchlock.patches.ops.requirements._entries import PipEntry, read_pip_entry
from patchlock.patches.ops.requirements._layouts import Brackets
from patchlock.patches.ops.requirements.lists import Computed, Declared, Doubt, RequirementList
from patchlock.patches.ops.syntax import Module, parse
from patchlock.patches.pip_requirements import Span

_LISTS = ("install_requires", "setup_requires", "tests_require")
_EXTRAS = "extras_require"


def read(source: SourceText) -> Declared | Refusal:
    """Read a `setup.py`, which is never run."""
    module = parse(source)
    if isinstance(module, Refusal):
        return module
    reader = _Reader(module)
    calls = [one for one in ast.walk(module.tree) if isinstance(one, ast.Call) and _is_setup(one.func)]
    for call in calls:
        reader.call(call)
    return Declared(
        lists=tuple(reader.lists),
        doubts=tuple(reader.doubts),
        computed=tuple(reader.computed),
        default="install_requires",
        calls=tuple(sorted(call.lineno for call in calls)),
    )


def _is_setup(callee: ast.expr) -> bool:
    match callee:
        case ast.Name(id="setup") | ast.Attribute(value=ast.Name(id="setuptools"), attr="setup"):
            return True
        case _:
            return False


class _Reader:
    """Collects what the calls of `setup` declare."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lists: list[RequirementList] = []
        self.doubts: list[Doubt] = []
        self.computed: list[Computed] = []

    def call(self, call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self._refuse("setup(**)", keyword)
            elif keyword.arg in _LISTS:
                self._list(keyword.arg, keyword.value)
            elif keyword.arg == _EXTRAS:
                self._extras(keyword.value)

    def _extras(self, written: ast.expr) -> None:
        value = self._meant(written)
        if not isinstance(value, ast.Dict):
            self._refuse(_EXTRAS, written)
            return
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._list(f"{_EXTRAS}.{key.value}", inner)
            else:
                self._refuse(_EXTRAS, key or inner)

    def _list(self, name: str, written: ast.expr) -> None:
        value = self._meant(written)
        if isinstance(value, ast.Constant):
            self._one_string(name, value)
            return
        if not isinstance(value, ast.List | ast.Tuple):
            self._refuse(name, written)
            return
        outer = Span(start=self.module.start(value), end=self.module.end(value))
        items = tuple(Span(start=self.module.start(item), end=self.module.end(item)) for item in value.elts)
        entries: list[tuple[int, PipEntry]] = []
        for index, (item, span) in enumerate(zip(value.elts, items, strict=True)):
            one = self._string(name, span, item)
            if one is None:
                self._refuse(name, item)
            elif isinstance(one, Doubt):
                self.doubts.append(one)
            else:
                entries.append((index, one))
        text = self.module.source.text
        if text[outer.start] not in "[(" or not enclosed.is_plain(text, outer, items):
            self._refuse(name, value)
            return
        layout = Brackets(source=self.module.source, outer=outer, items=items)
        self.lists.append(RequirementList(name=name, entries=tuple(entries), layout=layout))

    def _one_string(self, name: str, value: ast.Constant) -> None:
        """A string is a list of lines, of which only one can be edited."""
        if isinstance(value.value, str) and value.value.strip() and "\n" not in value.value:
            span = Span(start=self.module.start(value), end=self.module.end(value))
            one = self._string(name, span, value)
            if isinstance(one, PipEntry):
                why = "it is one string; a list of strings can be edited"
                self.doubts.append(Doubt(line=value.lineno, text=one.text, why=why, within=name))
                return
        if value.value:
            self._refuse(name, value)

    def _string(self, name: str, span: Span, item: ast.expr) -> PipEntry | Doubt | None:
        if not isinstance(item, ast.Constant) or not isinstance(item.value, str):
            return None
        literal = quoted(self.module.source.text, span, item.value)
        if literal is None or not literal.quote:
            why = "it is put together from several strings or escapes"
            return Doubt(line=item.lineno, text=item.value, why=why, within=name)
        return read_pip_entry(literal, item.lineno, name)

    def _meant(self, written: ast.expr) -> ast.expr:
        """Follow a name to the literal that it was given once, if nothing else is done with it."""
        if not isinstance(written, ast.Name):
            return written
        uses = [node for node in ast.walk(self.module.tree) if isinstance(node, ast.Name) and node.id == written.id]
        values = [
            statement.value
            for statement in self.module.tree.body
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
            if any(isinstance(target, ast.Name) and target.id == written.id for target in _targets(statement))
        ]
        handed_on = {id(value) for node in ast.walk(self.module.tree) for value in _handed_on(node)}
        others = [use for use in uses if id(use) not in handed_on]  # its assignment is one
        return values[0] if len(values) == 1 and len(others) == 1 else written

    def _refuse(self, name: str, node: ast.expr | ast.keyword) -> None:
        why = f"`{name}` is computed here, and what it gives is known only when it runs"
        refusal = Refusal(line=node.lineno, kind=OutcomeKind.AMBIGUOUS, why=why)
        self.computed.append(Computed(within=name, refusal=refusal))


def _handed_on(node: ast.AST) -> list[ast.expr]:
    """What goes unchanged into `setup`, or into a dictionary on the way there."""
    match node:
        case ast.Call(func=callee, keywords=keywords) if _is_setup(callee):
            return [keyword.value for keyword in keywords]
        case ast.Dict(values=values):
            return values
        case _:
            return []


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]
