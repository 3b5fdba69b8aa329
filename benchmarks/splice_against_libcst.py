"""Compare our byte splices with the same changes made by LibCST, on every historical version of real Python files.

`PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/splice_against_libcst.py [clone …]`. A clone is a folder with
`.git`, a bare one, or one that holds a bare one named `repo`. Each op must never raise, give a file that parses, settle
(twice equals once), and give the same syntax tree as LibCST; places that it refuses are counted by their reason. With
`PATCHLOCK_EVERY=10`, only every tenth version is looked at.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "installer"))

import libcst as cst  # noqa: E402
import libcst.matchers as m  # noqa: E402

from patchlock.model.patch import Op  # noqa: E402
from patchlock.model.text_files import SourceText, decode, splice  # noqa: E402
from patchlock.patches.ops._arguments import SetArgument  # noqa: E402
from patchlock.patches.ops._entry import DisableFunction  # noqa: E402
from patchlock.patches.ops._python import NeutraliseCall, ReplaceExpression  # noqa: E402

sys.setrecursionlimit(10_000)
warnings.simplefilter("ignore")


# --- the same changes in LibCST ---------------------------------------------------------------------------------------


class NeutralisePrint(m.MatcherDecoratableTransformer):
    """`print($*a)` becomes `None`."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        """Replace the call."""
        return cst.Name("None") if m.matches(original_node.func, m.Name("print")) else updated_node


class MoveCuda(m.MatcherDecoratableTransformer):
    """`$x.cuda($*a)` becomes `move($x, $*a)`."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        """Replace the call."""
        if not m.matches(original_node.func, m.Attribute(attr=m.Name("cuda"))):
            return updated_node
        receiver = cst.Arg(cst.ensure_type(updated_node.func, cst.Attribute).value)
        return cst.Call(cst.Name("move"), [receiver, *updated_node.args])


class WeightsOnly(m.MatcherDecoratableTransformer):
    """Every `torch.load` gets `weights_only=False`."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        """Set the argument."""
        if not m.matches(original_node.func, m.Attribute(value=m.Name("torch"), attr=m.Name("load"))):
            return updated_node
        new = cst.Arg(keyword=cst.Name("weights_only"), value=cst.Name("False"))
        kept = [arg for arg in updated_node.args if not m.matches(arg, m.Arg(keyword=m.Name("weights_only")))]
        if len(kept) == len(updated_node.args):
            return updated_node.with_changes(args=[*kept, new])
        args = [new if arg not in kept else arg for arg in updated_node.args]
        return updated_node.with_changes(args=args)


class Disable(cst.CSTTransformer):
    """One function returns `None` and does nothing else."""

    def __init__(self, name: str, is_generator: bool) -> None:
        super().__init__()
        self.name = name
        self.is_generator = is_generator
        self.scopes: list[str] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802
        """Enter a class."""
        self.scopes.append(node.name.value)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:  # noqa: N802
        """Leave a class."""
        self.scopes.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        """Enter a function."""
        self.scopes.append(node.name.value)

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Replace the body, but for its docstring."""
        name = ".".join(self.scopes)
        self.scopes.pop()
        if name != self.name:
            return updated_node
        docstring = original_node.get_docstring(clean=False)
        code = "return\nyield" if self.is_generator else "return None"
        body: list[cst.BaseStatement] = [cst.parse_statement(line) for line in code.split("\n")]
        if docstring is not None:
            body.insert(0, cst.SimpleStatementLine([cst.Expr(cst.SimpleString(repr(docstring)))]))
        return updated_node.with_changes(body=cst.IndentedBlock(body))


# --- the comparison ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One change, made in both ways."""

    literal: bytes
    change: Callable[[ast.Module], tuple[Op, cst.CSTTransformer] | None]
    """From the file's tree: our op and LibCST's; `None` where the file has nothing for it."""


def _always(op: Op, transformer: type[cst.CSTTransformer]) -> Callable[[ast.Module], tuple[Op, cst.CSTTransformer]]:
    return lambda _: (op, transformer())


def _last_function(tree: ast.Module) -> tuple[Op, cst.CSTTransformer] | None:
    """Disable the last function or method whose whole name is there once."""
    named: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            is_scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            name = f"{prefix}{child.name}" if is_scope else prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                named.setdefault(name, []).append(child)
            stack.append((child, f"{name}." if is_scope else prefix))
    once = [(name, found[0]) for name, found in named.items() if len(found) == 1]
    if not once:
        return None
    name, node = max(once, key=lambda item: item[1].lineno)
    return DisableFunction(function=name), Disable(name, _yields(node))


def _yields(function: ast.AST) -> bool:
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        if not isinstance(node, scopes) and _yields(node):
            return True
    return False


CASES = {
    "neutralise-call print($*a)": Case(
        literal=b"print", change=_always(NeutraliseCall(call="print($*a)"), NeutralisePrint)
    ),
    "replace-expression $x.cuda($*a)": Case(
        literal=b".cuda",
        change=_always(ReplaceExpression(pattern="$x.cuda($*a)", replacement="move($x, $*a)"), MoveCuda),
    ),
    "set-argument torch.load weights_only": Case(
        literal=b"torch.load",
        change=_always(SetArgument(call="torch.load", argument="weights_only", value="False"), WeightsOnly),
    ),
    "disable-function (the file's last)": Case(literal=b"def ", change=_last_function),
}


def versions(clone: Path) -> Iterator[tuple[str, bytes]]:
    """Give each distinct historical version of each Python file; objects that a clone lacks are left out."""
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}
    log = ["git", "-C", str(clone), "log", "--all", "--raw", "--no-abbrev", "--no-renames", "-m", "--format="]
    raw = subprocess.run([*log, "--", "*.py"], env=env, capture_output=True, check=True).stdout
    paths: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        facts, _, path = line.partition("\t")
        paths.setdefault(facts.split()[3], path)
    wanted = "".join(f"{blob}\n" for blob in sorted(paths) if set(blob) != {"0"}).encode()
    batch = ["git", "-C", str(clone), "cat-file", "--batch"]
    data = subprocess.run(batch, env=env, input=wanted, capture_output=True, check=True).stdout
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        head = data[at:end].split()
        at = end + 1
        if head[1] != b"blob":
            continue
        size = int(head[2])
        yield paths[head[0].decode()], data[at : at + size]
        at += size + 1


def compare(case: Case, path: str, data: bytes, clock: dict[str, float]) -> str:
    """Make a change in both ways; the answer is a word for the count, with a colon if something is wrong."""
    source = decode(PurePosixPath(path), data)
    if not isinstance(source, SourceText):
        return "no text"
    try:
        chosen = case.change(ast.parse(source.text))
    except (SyntaxError, ValueError):
        return "does not parse"
    if chosen is None:
        return "nothing there"
    op, transformer = chosen
    started = time.perf_counter()
    located = op.locate(source)
    clock["ours"] += time.perf_counter() - started
    if located.refusals:
        return f"refused ({located.refusals[0].why})"
    if not located.edits:
        return "nothing there"
    after = splice(source, located.edits)
    again = op.locate(after)
    if again.edits or again.refusals:
        return "WRONG: it does not settle"
    at = 0
    kept = []
    for edit in sorted(located.edits, key=lambda edit: edit.start):
        kept.append(source.text[at : edit.start])
        at = edit.end
    rest = after.text
    for piece in [*kept, source.text[at:]]:
        if piece not in rest:
            return "WRONG: something else changed"
        rest = rest[rest.index(piece) + len(piece) :]
    try:
        started = time.perf_counter()
        theirs = cst.parse_module(source.text).visit(transformer).code
        clock["LibCST"] += time.perf_counter() - started
    except (cst.ParserSyntaxError, RecursionError):
        return "LibCST cannot"
    return "same tree" if ast.dump(ast.parse(theirs)) == ast.dump(ast.parse(after.text)) else "WRONG: another tree"


def main() -> None:
    """Compare all cases over all clones."""
    folder = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    names = sys.argv[1:] or sorted(path.name for path in folder.iterdir() if path.is_dir())
    wrong = 0
    for name in names:
        clone = folder / name / "repo" if (folder / name / "repo").is_dir() else folder / name
        everything = list(versions(clone))
        files = everything[:: int(os.environ.get("PATCHLOCK_EVERY", "1"))]
        print(f"\n{name}: {len(files)} of {len(everything)} versions of Python files")
        for title, case in CASES.items():
            counts: collections.Counter[str] = collections.Counter()
            clock = {"ours": 0.0, "LibCST": 0.0}
            for path, data in files:
                if case.literal in data:
                    counts[answer := compare(case, path, data, clock)] += 1
                    if answer.startswith("WRONG"):
                        wrong += 1
                        print(f"    {answer}: {path}")
            ratio = f", time {clock['ours'] / clock['LibCST']:.2f} of LibCST's" if clock["LibCST"] else ""
            told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
            print(f"  {title}: {told}{ratio}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
