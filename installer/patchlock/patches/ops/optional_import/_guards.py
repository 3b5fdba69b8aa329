"""Write the guards around imports: a `try` where each stands, and the stand-in class once at the top of the file."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import Edit, splice
from patchlock.patches.ops.optional_import import standin_class
from patchlock.patches.ops.optional_import._except_clauses import caught_names
from patchlock.patches.ops.optional_import._import_time import Step
from patchlock.patches.ops.optional_import._names import bound_names
from patchlock.patches.ops.syntax import Module, is_string_statement, parse_anew, same

_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)")
_LINE_REST = re.compile(r"(?:\\(?:\r\n|\r|\n)|[^\r\n#])*(?:#[^\r\n]*)?")
_CLAUSE = re.compile(r"\s*(?:async\s+)?(?:if|elif|else|for|while|with|try|except|finally|class|case)\b.*:\s*")
_NEXT_LINE = re.compile(r"(?:\r\n|\r|\n)(?=[^\r\n])")


def guard(
    module: Module, imports: Iterable[Step], package: str, message: str, error: str = "ImportError"
) -> Iterator[Edit | Refusal]:
    """Give the edits that guard these imports; a refusal where an import cannot be told from its line."""
    handler = f"except {error} as {standin_class.ERROR}:"
    wanted = {id(step.node): step.node for step in imports}
    caught = _caught(module.tree, {name for node in wanted.values() for name, _ in bound_names(node, package)})
    pieces = {key: _pieces(module, node, package, message, caught) for key, node in wanted.items()}
    if not _has_class(module.tree, before=min(node.lineno for node in wanted.values())):
        yield _class_edit(module)
    for body in {id(step.body): step.body for step in imports}.values():
        for line in _logical_lines(module, body):
            if any(id(statement) in wanted for statement in line):
                yield from _guarded_line(module, line, pieces, handler)


def is_only_guarded(module: Module, edits: tuple[Edit, ...]) -> bool:
    """Prove that edits do nothing but guard: without the guards, the file is the same code as before."""
    before, after = parse_anew(module.source), parse_anew(splice(module.source, edits))
    if isinstance(before, Refusal) or isinstance(after, Refusal):
        return False
    return same(_unguarded(before.tree), _unguarded(after.tree))


_Piece = tuple[str, tuple[str, ...]]
"""An import, and the statements that bind its names otherwise; none where it needs no guard."""


def _pieces(module: Module, node: ast.stmt, package: str, message: str, caught: frozenset[str]) -> list[_Piece]:
    """Split an import, so that a guard ends only what it is for; `import os, deepspeed` becomes two."""

    def bindings(statement: ast.stmt) -> tuple[str, ...]:
        names = dict.fromkeys(bound_names(statement, package))
        return tuple(
            line for bound, name in names for line in standin_class.binding(bound, package, name, message, caught)
        )

    if not isinstance(node, ast.Import) or len(node.names) == 1:
        return [(module.segment(node), bindings(node))]
    pieces: list[_Piece] = []
    for ours, group in itertools.groupby(node.names, key=lambda a: bool(bound_names(ast.Import(names=[a]), package))):
        aliases = list(group)
        for some in [[alias] for alias in aliases] if ours else [aliases]:
            code = "import " + ", ".join(module.segment(alias) for alias in some)
            pieces.append((code, bindings(ast.Import(names=some))))
    return pieces


def _guarded_line(
    module: Module, line: list[ast.stmt], pieces: dict[int, list[_Piece]], handler: str
) -> Iterator[Edit | Refusal]:
    """Rewrite one logical line, in which statements may be joined by `;` or follow the colon of an `if`."""
    text = module.source.text
    start, end = module.start(line[0]), module.end(line[-1])
    head = text[module.line_start(start) : start]
    if head.strip() and not _CLAUSE.fullmatch(head):
        yield Refusal(line=line[0].lineno, kind=OutcomeKind.AMBIGUOUS, why="the import does not begin its line")
        return
    indentation = head[: len(head) - len(head.lstrip())].rpartition("\f")[2]
    unit = _unit(module, indentation)
    if head.strip():
        indentation += unit
        start -= len(head) - len(head.rstrip())
    newline = module.newline(end) + indentation
    lines: list[str] = []
    rest = 0
    for code, bindings in (piece for node in line for piece in pieces.get(id(node), [(module.segment(node), ())])):
        if bindings:
            inner = _NEXT_LINE.sub(lambda match: match.group() + unit, code)
            lines += ["try:", unit + inner, handler, *(unit + binding for binding in bindings)]
        else:
            lines.append(code)
        rest = len(bindings) + 1 if bindings else 0
    body = lines[: len(lines) - rest]
    yield Edit(start=start, end=end, text=(newline if head.strip() else "") + newline.join(body))
    if rest:  # behind the comment of the last import
        behind = _LINE_REST.match(text, end)
        at = behind.end() if behind else end
        yield Edit(start=at, end=at, text="".join(newline + handler for handler in lines[len(body) :]))


def _logical_lines(module: Module, body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Group the statements of a block by logical line."""
    line = body[:1]
    for before, node in itertools.pairwise(body):
        gap = _CONTINUED.sub("", module.source.text[module.end(before) : module.start(node)])
        if "\n" in gap or "\r" in gap:
            yield line
            line = []
        line.append(node)
    yield line


def _unit(module: Module, indentation: str) -> str:
    """Give one step of indentation as the block, or else the file, has it; four spaces where it has none."""
    if indentation and not indentation.strip("\t"):
        return "\t"
    for node in ast.walk(module.tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
            outer, inner = (_indentation(module, statement) for statement in (node, body[0]))
            if inner.startswith(outer) and inner.removeprefix(outer):
                return inner.removeprefix(outer)
    return "    "


def _indentation(module: Module, statement: ast.stmt) -> str:
    start = module.line_start(module.start(statement))
    line = module.source.text[start : module.line_end(start)]
    return line[: len(line) - len(line.lstrip())].rpartition("\f")[2]


def _caught(tree: ast.Module, bound: set[str]) -> frozenset[str]:
    """Give the dotted names that `except` clauses come to and that begin with a bound name."""
    return frozenset(name for name in caught_names(tree) if name.partition(".")[0] in bound)


def _has_class(tree: ast.Module, before: int) -> bool:
    return any(isinstance(n, ast.ClassDef) and n.name == standin_class.NAME and n.lineno < before for n in tree.body)


def _class_edit(module: Module) -> Edit | Refusal:
    """Insert the class before the first statement that is neither the docstring nor an import from `__future__`."""
    first = next(node for node in module.tree.body if not _stays_first(node, module.tree))
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    start = min(module.start(first), *map(module.start, decorators), len(module.source.text))
    at = module.line_start(start)
    text = module.source.text
    if text[at:start].strip(" \t\f@"):
        return Refusal(line=first.lineno, kind=OutcomeKind.AMBIGUOUS, why="the first statement does not begin its line")
    newline = module.newline(at)
    before = text[module.line_start(at - 1) : at].strip() if at else ""
    lead = newline if before else ""
    return Edit(start=at, end=at, text=lead + standin_class.code(_unit(module, ""), newline) + newline * 2)


def _stays_first(node: ast.stmt, tree: ast.Module) -> bool:
    is_docstring = node is tree.body[0] and is_string_statement(node)
    return is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _unguarded(tree: ast.Module) -> ast.Module:
    """Take guards and the class out of a tree, and split imports of several names."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [plain for statement in block for plain in _plain(statement)])
    return tree


def _plain(statement: ast.stmt) -> list[ast.stmt]:
    match statement:
        case ast.Try(body=body, handlers=[ast.ExceptHandler(name=standin_class.ERROR)]):
            return [plain for inner in body for plain in _plain(inner)]
        case ast.ClassDef(name=standin_class.NAME):
            return []
        case ast.Import(names=aliases):
            return [ast.Import(names=[alias]) for alias in aliases]
        case _:
            return [statement]
