"""Put statements into the blocks of a Python file, in its own style, and prove the result; decides nothing."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchlock.model.patch import Refusal
from patchlock.model.text_files import Edit, splice
from patchlock.patches.ops.syntax import Module, is_string_statement, parse, same, within

_NEWLINE = re.compile(r"\r\n|\r|\n")
_Header = ast.stmt | ast.ExceptHandler | ast.match_case
_COMPOUND = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While),
    *(ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match),
)


@dataclass(frozen=True, kw_only=True)
class Code:
    """Statements to put somewhere, without indentation of their own."""

    text: str
    r"""Lines end with `\n`."""
    statements: tuple[ast.stmt, ...]

    @property
    def is_simple(self) -> bool:
        """Tell whether all of it can stand in one line with other statements."""
        return not any(isinstance(statement, _COMPOUND) for statement in self.statements)

    def in_one_line(self) -> str:
        """Join simple statements by semicolons."""
        return "; ".join(ast.get_source_segment(self.text, statement) or "" for statement in self.statements)

    def lines(self, indentation: str, unit: str) -> Iterator[str]:
        """Give the lines, indented as their neighbours are; those that begin inside a string stay as they are."""
        inside = {number for statement in self.statements for number in _inside_strings(statement)}
        lines = list(enumerate(self.text.split("\n"), start=1))
        depths = {number: _depth(line) for number, line in lines if number not in inside and line.strip()}
        starts = {node.lineno for s in self.statements for node in ast.walk(s) if isinstance(node, ast.stmt)}
        own_unit = min((depth for number, depth in depths.items() if depth and number in starts), default=4)
        for number, line in lines:
            if number not in depths:
                yield line if number in inside else ""
                continue
            levels, more = divmod(depths[number], own_unit)
            yield indentation + unit * levels + " " * more + line.lstrip(" \t")


def _inside_strings(statement: ast.stmt) -> Iterator[int]:
    """Give the numbers of the lines that begin inside a string."""
    for node in ast.walk(statement):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)


def _depth(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def code(text: str) -> Code:
    """Read statements.

    Raises:
        ValueError: they are none; one clause.
    """
    text = textwrap.dedent(_NEWLINE.sub("\n", text)).strip("\n").rstrip()
    tree = parse_code(text)
    if tree is None:
        raise ValueError(f"`{text}` is not Python code")
    if not tree.body:
        raise ValueError("there is no statement")
    return Code(text=text, statements=tuple(tree.body))


def parse_code(text: str) -> ast.Module | None:
    """Parse statements; `None` where they are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, kw_only=True)
class Block:
    """A list of statements that are executed one after the other."""

    owner: ast.Module | _Header
    statements: list[ast.stmt]
    scopes: tuple[str, ...]
    """Dotted names of the functions and classes around, outermost first."""

    def is_within(self, names: tuple[str, ...]) -> bool:
        """Tell whether a function or class of one of these names is around; see `syntax.within`."""
        return within(self.scopes, names)

    @property
    def entry(self) -> int:
        """Index of the first statement behind the docstring and the imports from `__future__`."""
        index = int(
            bool(self.statements) and isinstance(self.owner, _DOCUMENTED) and is_string_statement(self.statements[0])
        )
        while index < len(self.statements) and _is_future(self.statements[index]):
            index += 1
        return index


_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def blocks(owner: ast.Module | _Header, scopes: tuple[str, ...] = ()) -> Iterator[Block]:
    """Give each block inside, in source order."""
    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scopes = (*scopes, ".".join((*scopes[-1:], owner.name)))
    if isinstance(owner, ast.Module) and not owner.body:
        yield Block(owner=owner, statements=owner.body, scopes=())
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        members = getattr(owner, field, ())
        if members and isinstance(members[0], ast.stmt):
            yield Block(owner=owner, statements=members, scopes=scopes)
        for member in members:
            if isinstance(member, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from blocks(member, scopes)


def first(module: Module, statement: ast.stmt) -> int:
    """Give the offset of a statement's first character, its decorators included."""
    decorators = getattr(statement, "decorator_list", ())
    if not decorators:
        return module.start(statement)
    return module.source.text.rindex("@", 0, module.start(decorators[0]))


def is_inline(module: Module, statement: ast.stmt) -> bool:
    """Tell whether a statement follows something else on its line."""
    start = first(module, statement)
    begin = module.line_start(start)
    before = module.source.text[:begin].rstrip("\r\n")
    return bool(module.source.text[begin:start].strip()) or before.endswith("\\")


def indentation(module: Module, block: Block) -> str:
    """Give what each line of a block begins with; of a block in one line, what it would begin with."""
    if not block.statements or isinstance(block.owner, ast.Module):
        return ""
    if not is_inline(module, block.statements[0]):
        return _leading(module, first(module, block.statements[0]))
    return _of_owner(module, block) + unit(module)


def _of_owner(module: Module, block: Block) -> str:
    match block.owner:
        case ast.Module():
            return ""
        case ast.match_case(pattern=pattern):
            return _leading(module, module.starts[pattern.lineno - 1])
        case owner:
            return _leading(module, module.starts[owner.lineno - 1])


def _leading(module: Module, offset: int) -> str:
    line = module.source.text[module.line_start(offset) : module.line_end(offset)]
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def unit(module: Module) -> str:
    """Give what the file indents by, as its first indented block shows; four spaces where it has none."""
    for block in blocks(module.tree):
        if not isinstance(block.owner, ast.Module) and not is_inline(module, block.statements[0]):
            inner, outer = _leading(module, first(module, block.statements[0])), _of_owner(module, block)
            if inner.startswith(outer) and inner != outer:
                return inner.removeprefix(outer)
    return "    "


def insertion(module: Module, block: Block, index: int, new: Code, *, hug_next: bool = False) -> tuple[Edit, ...]:
    """Put code into a block.

    Args:
        module: the file.
        block: where.
        index: of the statement that the code goes before; the number of statements: behind the last.
        new: the code.
        hug_next: where comments and empty lines stand around the place, go behind them.
    """
    statements = block.statements
    before = statements[index - 1] if index else None
    behind = statements[index] if index < len(statements) else None
    beside = behind or before
    newline = module.newline(first(module, beside) if beside else len(module.source.text))
    indent = indentation(module, block)
    lines = newline.join(new.lines(indent, unit(module)))
    if behind is not None and is_inline(module, behind):
        at = first(module, behind)
        if new.is_simple:
            return (Edit(start=at, end=at, text=f"{new.in_one_line()}; "),)
        start = module.end(before) if before is not None else _gap(module, at)
        here = Edit(start=start, end=at, text=f"{newline}{lines}{newline}{indent}")
        return (here,) if before is None else (*_unfolded(module, block, newline + indent), here)
    if before is not None and not (hug_next and behind is not None):
        if new.is_simple and is_inline(module, statements[0]):
            end = module.end(before)
            return (Edit(start=end, end=end, text=f"; {new.in_one_line()}"),)
        end = module.line_end(module.end(before))
        return (*_unfolded(module, block, newline + indent), Edit(start=end, end=end, text=newline + lines))
    if behind is not None:
        at = first(module, behind)
        return (Edit(start=at, end=at, text=f"{lines.removeprefix(indent)}{newline}{indent}"),)
    end = len(module.source.text)
    apart = "" if not end or module.source.text.endswith(("\n", "\r")) else newline
    return (Edit(start=end, end=end, text=f"{apart}{lines}{newline}"),)


def _unfolded(module: Module, block: Block, beginning: str) -> tuple[Edit, ...]:
    """Give the body of `if x: y` a line of its own."""
    at = first(module, block.statements[0])
    if isinstance(block.owner, ast.Module) or not is_inline(module, block.statements[0]):
        return ()
    return (Edit(start=_gap(module, at), end=at, text=beginning),)


def _gap(module: Module, offset: int) -> int:
    """Give the start of the white space before an offset, on its line."""
    return len(module.source.text[:offset].rstrip(" \t\f"))


def rejection_reason(module: Module, edits: tuple[Edit, ...], instead: Mapping[int, object]) -> str:
    """Prove that edits give the tree that they mean, and that Python takes it; the answer is a clause, or "".

    Args:
        module: the file before.
        edits: of its text.
        instead: by `id()`, what stands for a node or list of its tree afterwards.
    """
    try:
        after = parse(splice(module.source, edits))
    except ValueError:
        return "two changes meet in one place"
    if isinstance(after, Refusal) or not same(module.tree, after.tree, instead):
        return "the change is not valid there"
    wrong = _error(after)
    return "" if not wrong or _error(module) else f"with the change, Python says: {wrong}"


def _error(module: Module) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(module.tree, "<patched>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it is nested too deeply"
    return ""
