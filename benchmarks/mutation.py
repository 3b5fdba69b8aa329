"""Change the code of pure modules in small ways, and count the changes that no test notices.

    python benchmarks/mutation.py                     # all of mutation.toml; writes reports/mutation.md
    python benchmarks/mutation.py targets scopes      # only modules of these names; prints, writes nothing
    python benchmarks/mutation.py --sample 0 targets  # every mutant, no sample

Some modules are looked at closely, with a sample of 40 mutants each; of every other module of the pure rooms, a few are
tried, drawn with a fixed seed.

A mutant is one change of one node: another comparison, a negated condition, `and` for `or`, another constant, a
statement left out. It is written into a copy of the working tree, and the tests that are named for its module run
there, in a process forked after pytest was loaded; of a room's tests, those files that call the function with the
mutant, the quickest first. POSIX only. Mutants that mean the same as the original are listed
in mutation.toml with the reason, and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import threading
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
_FILES = 8
"""Of tests, for a mutant in no function."""
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
class TestFile:
    """A file of tests, and what it calls."""

    path: str
    seconds: float
    """Of the processor, while its calls are noted."""
    calls: frozenset[tuple[str, int]]
    """Module, and line where a function or its first decorator begins."""


@dataclass(frozen=True)
class Result:
    """What became of the mutants of a module."""

    module: str
    room: str
    """"" for a module that is looked at closely."""
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


def run_tests(root: Path, tests: Sequence[str], seconds: int, calls: Path | None = None) -> tuple[bool, float]:
    """Run tests in a forked process: whether all passed, and the seconds of the processor that it took.

    Args:
        root: of the copy of the tree.
        tests: files and folders.
        seconds: of the processor, after which it is killed.
        calls: where to write which functions of ours are called; what fails under it does not matter.
    """
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

            if calls is not None:
                _profile(root / "installer" / "patchlock", calls)
            # What is loaded already cannot be rewritten for its asserts, which pytest would warn of.
            options = (
                "-x",
                "-q",
                "-n0",
                "-m",
                "not online",
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
            )
            code = int(pytest.main([*options, "--rootdir", str(root), *tests]))
            if calls is not None:
                sys.setprofile(None)
                calls.write_text(json.dumps(sorted(_called)), encoding="utf-8")
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return status == 0, usage.ru_utime + usage.ru_stime


_called: set[tuple[str, int]] = set()
"""In a forked process that is profiled."""


def _profile(package: Path, calls: Path) -> None:
    """Note every call of a function of ours from here on."""
    calls.unlink(missing_ok=True)
    prefix = f"{package}{os.sep}"

    def note(frame: object, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            _called.add((frame.f_code.co_filename[len(prefix) :], frame.f_code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)


def test_files(root: Path, places: Sequence[str]) -> list[TestFile]:
    """Run each file of tests by itself, and note what it calls."""
    found, calls = [], root / "calls.json"
    named = [root / place for place in places]
    for path in [
        *(one for one in named if one.is_file()),
        *(file for one in named for file in sorted(one.rglob("test_*.py"))),
    ]:
        name = str(path.relative_to(root))
        passed, taken = run_tests(root, [name], 600, calls)
        if passed:
            called = {(module, line) for module, line in json.loads(calls.read_text(encoding="utf-8"))}
            found.append(TestFile(name, taken, frozenset(called)))
        else:
            print(f"  not used, as it fails, or has only tests that need a network: {name}", flush=True)
    return found


def choose(tests: Sequence[TestFile], module: str, line: int) -> list[TestFile]:
    """Choose the files that call the function with a mutant, the quickest first; else those that use its module most.

    Args:
        tests: of the room.
        module: with the mutant.
        line: where the function begins; 0 for a mutant in no function.
    """
    if line:
        return sorted((one for one in tests if (module, line) in one.calls), key=lambda one: one.seconds)
    uses = {one: sum(called == module for called, _ in one.calls) for one in tests}
    return sorted((one for one in tests if uses[one]), key=lambda one: (-uses[one], one.seconds))[:_FILES]


def function_line(source: str, line: int) -> int:
    """Say where the function around a line begins, as its code object does; 0 for a line of no function."""
    around = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[0].lineno <= line <= node.end_lineno:
            around = max(around, min([node.lineno, *(one.lineno for one in node.decorator_list)]))
    return around


def sample_room(
    root: Path, table: Mapping[str, object], same: Sequence[Mapping[str, object]], closely: set[str], only: set[str]
) -> Iterator[Result]:
    """Try a few mutants of each module of a room.

    Args:
        root: the copy of the tree.
        table: the room's in mutation.toml.
        same: the tables of mutants that mean the same as the original.
        closely: modules that are left out, because they are looked at closely.
        only: names of modules without `.py`; empty: all.
    """
    package, tests = root / "installer" / "patchlock", test_files(root, [str(one) for one in table["tests"]])
    for path in sorted((package / str(table["room"])).rglob("*.py")):
        module, source = str(path.relative_to(package)), path.read_text(encoding="utf-8")
        known = {(one["line"], one["column"], one["after"]) for one in same if one["module"] == module}
        made = [
            one
            for one in mutants(source)
            if (one.code, one.column, one.after) not in known
            # A text outside of all functions is data, which a test could only repeat.
            and (
                function_line(source, one.line) or not one.before.startswith(('"', "'", 'r"', "r'", 'rb"', 'b"', 'rf"'))
            )
        ]
        if module in closely or not made or (only and path.stem not in only):
            continue
        tried, survived = random.Random(module).sample(made, min(int(str(table["mutants"])), len(made))), []
        for mutant in sorted(tried, key=lambda one: one.line):
            chosen = choose(tests, module, function_line(source, mutant.line))
            path.write_text(mutant.source, encoding="utf-8")
            limit = int(3 * sum(one.seconds for one in chosen)) + 10
            if not chosen or run_tests(root, [one.path for one in chosen], limit)[0]:
                survived.append(mutant)
                by = f"{len(chosen)} files" if chosen else "no test calls it"
                print(f"  {module}:{mutant.line}: {mutant.before}  →  {mutant.after}  ({by})", flush=True)
        path.write_text(source, encoding="utf-8")
        yield Result(module, str(table["room"]), len(made), len(tried), tuple(survived))


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
    return Result(str(target["module"]), "", len(all_of), len(tried), tuple(survived))


def report(results: Sequence[Result]) -> str:
    """Write a report as Markdown."""
    close = [one for one in results if not one.room]
    rooms = {
        room: [one for one in results if one.room == room] for room in sorted({one.room for one in results} - {""})
    }
    lines = [
        "# Mutants that tests notice",
        "",
        "Written by `benchmarks/mutation.py`. Each mutant is one small change of the code; it is *killed* if a test",
        "fails. Mutants that mean the same as the original (`benchmarks/mutation.toml`) are not counted.",
        "",
        f"Up to 40 mutants of each of {len(close)} modules, drawn with a fixed seed:",
        "",
        "| module | mutants | tried | killed | score |",
        "|---|---:|---:|---:|---:|",
        *(_row(f"`{one.module}`", [one]) for one in close),
        _row("together", close),
    ]
    if rooms:
        lines += [
            "",
            "A few mutants of every other module of the pure rooms that has any, drawn with a fixed seed; the tests",
            "are those that `benchmarks/mutation.toml` names for the room. Texts outside of functions are data, and",
            "left out.",
            "",
            "| room | modules | mutants | tried | killed | score |",
            "|---|---:|---:|---:|---:|---:|",
            *(_row(f"`{room}` | {len(some)}", some) for room, some in rooms.items()),
        ]
    if any(one.survived for one in results):
        lines += ["", "## Survivors", ""]
    lines += [
        f"- `{one.module}:{mutant.line}`: ``{mutant.before}`` → ``{mutant.after}``"
        for one in results
        for mutant in one.survived
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, some: Sequence[Result]) -> str:
    tried, survived = sum(one.tried for one in some), sum(len(one.survived) for one in some)
    killed = tried - survived
    return f"| {name} | {sum(one.made for one in some)} | {tried} | {killed} | {100 * killed / tried:.1f} % |"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="names of modules, without .py; all targets where none is named")
    parser.add_argument(
        "--sample", type=int, default=40, help="mutants of each module, drawn with a fixed seed; 0: all"
    )
    arguments = parser.parse_args()
    table = tomllib.loads((HERE / "mutation.toml").read_text(encoding="utf-8"))
    only = set(arguments.modules)
    targets = [one for one in table["target"] if not only or Path(one["module"]).stem in only]
    closely = {str(one["module"]) for one in table["target"]}
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
        for room in table["room"] if len(targets) != len(only) or not only else []:
            began = time.monotonic()
            found = list(sample_room(root, room, table.get("same", []), closely, only))
            results += found
            print(f"{room['room']}: {len(found)} modules, {time.monotonic() - began:.0f} s", flush=True)
    if not arguments.modules:
        REPORT.write_text(report(results), encoding="utf-8")
        print(f"written: {REPORT.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
