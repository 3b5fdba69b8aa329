"""Change the code of pure modules in small ways, and count the changes that no test notices.

    python benchmarks/mutation.py                     # all targets of mutation.toml; writes reports/mutation.md
    python benchmarks/mutation.py targets scopes      # only modules of these names; prints, writes nothing
    python benchmarks/mutation.py --sample 0 targets  # every mutant, no sample

A mutant is one change of one node: another comparison, a negated condition, `and` for `or`, another constant, a
statement left out. It is written into a copy of the working tree, and the tests that are named for its module run
there, in a process forked after pytest was loaded. POSIX only. Mutants that mean the same as the original are listed
in mutation.toml with the reason, and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
REPORT = HERE / "reports" / "mutation.md"
COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
HEAVY = ("hypothesis", "packaging.specifiers", "packaging.utils", "pytest", "ruamel.yaml", "tomlkit", "xdist")


@dataclass(frozen=True)
class Mutant:
    """One change of one node."""

    line: int
    code: str
    """What stands on the line, without the white space around it."""
    before: str
    after: str
    column: int
    """Of `before` in `code`, in bytes."""
    source: str
    """Of the whole module, with the change in it."""


@dataclass(frozen=True)
class Result:
    """What became of the mutants of a module."""

    module: str
    made: int
    """How many there are; `tried` of them were sampled."""
    tried: int
    survived: tuple[Mutant, ...]

    @property
    def score(self) -> float:
        """Give the share of the mutants tried that a test noticed, in percent."""
        return 100 * (self.tried - len(self.survived)) / self.tried


# --- making mutants -----------------------------------------------------------------------------------------------


def _changed(node: ast.AST, change: Callable[[ast.AST], object]) -> ast.AST:
    made = copy.deepcopy(node)
    change(made)
    return made


def _variants(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Give what a node may become, with the node that each replaces."""
    match node:
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                yield (
                    node,
                    _changed(node, lambda made, n=number, op=op: made.ops.__setitem__(n, COMPARISONS[type(op)]())),
                )
        case ast.BoolOp(op=op):
            yield (
                node,
                _changed(node, lambda made: setattr(made, "op", ast.Or() if isinstance(op, ast.And) else ast.And())),
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            yield node, _changed(node, lambda made: setattr(made, "op", OPERATORS[type(op)]()))
        case ast.Constant(value=bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield node, ast.Constant(value + 1)
        case ast.Constant(value=str() as value):
            yield node, ast.Constant(f"{value}XX")
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant) or value.value is not None:
            yield node, ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, ast.Pass()
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
        case _:
            tests = []
    for test in tests:
        if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield test, ast.UnaryOp(ast.Not(), test)


def _left_out(tree: ast.AST) -> set[int]:
    """Name the nodes, by `id()`, that mean nothing when the code runs: docstrings, annotations, `TYPE_CHECKING`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        inner: list[ast.AST | None] = []
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Subscript(value=ast.Name(id="Literal")):
                inner = [node]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = [node.returns, *(one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg))]
            case ast.AnnAssign():
                inner = [node.annotation]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.JoinedStr() | ast.pattern():
                # What stands in an f-string has no place of its own before Python 3.12; patterns are no expressions.
                inner = [node]
            case ast.ClassDef():
                inner = [*node.decorator_list]
        found.update(id(below) for one in inner if one is not None for below in ast.walk(one))
    return found


def mutants(source: str) -> list[Mutant]:
    """Make every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    left_out = _left_out(tree)
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    data, found = source.encode(), []
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        for old, new in _variants(node):
            start, end = (
                starts[line - 1] + column
                for line, column in ((old.lineno, old.col_offset), (old.end_lineno, old.end_col_offset))
            )
            after = ast.unparse(ast.fix_missing_locations(new))
            written = f"({after})" if isinstance(old, ast.expr) else after
            changed = (data[:start] + written.encode() + data[end:]).decode()
            code = lines[old.lineno - 1].decode().strip()
            column = old.col_offset - (len(lines[old.lineno - 1]) - len(lines[old.lineno - 1].lstrip()))
            found.append(Mutant(old.lineno, code, " ".join(data[start:end].decode().split()), after, column, changed))
    return sorted(found, key=lambda one: (one.line, one.column, one.before, one.after))


# --- running tests ------------------------------------------------------------------------------------------------


def run_tests(root: Path, tests: Sequence[str], seconds: int) -> tuple[bool, float]:
    """Run tests in a forked process: whether all passed, and the seconds of the processor that it took."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            os.chdir(root)
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
            import pytest

            # What is loaded already cannot be rewritten for its asserts, which pytest would warn of.
            options = ("-x", "-q", "-n0", "-m", "not online", "-W", "ignore::pytest.PytestAssertRewriteWarning")
            code = int(pytest.main([*options, "--rootdir", str(root), *tests]))
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return status == 0, usage.ru_utime + usage.ru_stime


def measure(root: Path, target: Mapping[str, object], same: Sequence[Mapping[str, object]], sample: int) -> Result:
    """Try the mutants of a module in a copy of the tree.

    Args:
        root: the copy.
        target: its table in mutation.toml.
        same: the tables of mutants that mean the same as the original.
        sample: how many are tried; 0 is all.
    """
    path, tests = root / "installer" / "patchlock" / str(target["module"]), [str(one) for one in target["tests"]]
    source = path.read_text(encoding="utf-8")
    passed, taken = run_tests(root, tests, 600)
    if not passed:
        sys.exit(f"{target['module']}: its tests fail without a mutant; run them with tests/run {' '.join(tests)}")
    known = {(one["line"], one["column"], one["after"]) for one in same if one["module"] == target["module"]}
    made = mutants(source)
    if stale := known - {(one.code, one.column, one.after) for one in made}:
        sys.exit(f"{HERE.name}/mutation.toml names mutants of {target['module']} that there are not: {sorted(stale)}")
    all_of = [one for one in made if (one.code, one.column, one.after) not in known]
    tried = all_of
    if 0 < sample < len(all_of):
        tried = sorted(random.Random(str(target["module"])).sample(all_of, sample), key=lambda one: one.line)
    survived = []
    for mutant in tried:
        path.write_text(mutant.source, encoding="utf-8")
        if run_tests(root, tests, int(10 * taken) + 10)[0]:
            survived.append(mutant)
            print(f"  {target['module']}:{mutant.line}: {mutant.before}  →  {mutant.after}", flush=True)
    path.write_text(source, encoding="utf-8")
    return Result(str(target["module"]), len(all_of), len(tried), tuple(survived))


def report(results: Sequence[Result]) -> str:
    """Write a report as Markdown."""
    lines = [
        "# Mutants that tests notice",
        "",
        "Written by `benchmarks/mutation.py`. Each mutant is one small change of the code; it is *killed* if a test",
        "fails. Mutants that mean the same as the original (`benchmarks/mutation.toml`) are not counted.",
        "",
        "| module | mutants | tried | killed | score |",
        "|---|---:|---:|---:|---:|",
    ]
    tried, survived = sum(one.tried for one in results), sum(len(one.survived) for one in results)
    for name, made, of, left in (
        *((f"`{one.module}`", one.made, one.tried, len(one.survived)) for one in results),
        ("all", sum(one.made for one in results), tried, survived),
    ):
        lines.append(f"| {name} | {made} | {of} | {of - left} | {100 * (of - left) / of:.1f} % |")
    if survived:
        lines += ["", "## Survivors", ""]
    lines += [
        f"- `{one.module}:{mutant.line}`: ``{mutant.before}`` → ``{mutant.after}``"
        for one in results
        for mutant in one.survived
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="names of modules, without .py; all targets where none is named")
    parser.add_argument(
        "--sample", type=int, default=40, help="mutants of each module, drawn with a fixed seed; 0: all"
    )
    arguments = parser.parse_args()
    table = tomllib.loads((HERE / "mutation.toml").read_text(encoding="utf-8"))
    targets = [one for one in table["target"] if not arguments.modules or Path(one["module"]).stem in arguments.modules]
    for name in HEAVY:  # once, and not again in each forked process
        __import__(name)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(HERE.parent, root, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.pyc"), symlinks=True)
        for target in targets:
            began = time.monotonic()
            results.append(measure(root, target, table.get("same", []), arguments.sample))
            one = results[-1]
            print(f"{one.module}: {one.score:.1f} % of {one.tried}, {time.monotonic() - began:.0f} s", flush=True)
    if not arguments.modules:
        REPORT.write_text(report(results), encoding="utf-8")
        print(f"written: {REPORT.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
