"""Files whose syntax is newer than this Python: what stands in them is found at its place, or the file is refused."""

from __future__ import annotations

import ast
import sys
from pathlib import PurePosixPath

import pytest
from applied_ops import locate, patched

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText, decode
from patchlock.patches.ops._insert_statement import InsertStatement
from patchlock.patches.ops._python import NeutraliseCall, ReplaceExpression
from patchlock.patches.ops.optional_import._op import OptionalImport
from patchlock.patches.ops.syntax import Module, parse
from patchlock.patches.postconditions import _newer_python
from patchlock.patches.postconditions._python import NoCall, NoString

REPLACE = ReplaceExpression(pattern='load("cuda")', replacement='load("cpu")')
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads all of it by itself")

LOAD = 'x = load("cuda")'
NEWER = [
    pytest.param("type X = int\n", id="alias"),
    pytest.param("type\tÄ[T, *Ts, **P] = dict[T, 'é']\n", id="alias-with-parameters"),
    pytest.param("if a: type X=int; y = 1\n", id="alias-in-a-line"),
    pytest.param("type = 3\ntype X = type\n", id="type-is-a-name"),
    pytest.param("def f[T: int](x: T) -> T: return x\n", id="function"),
    pytest.param("async def f[Ä](x: Ä): pass\n", id="function-not-in-ascii"),
    pytest.param("class A[T: (int, str), S = list[int] | None](B[T]):\n    x: S\n", id="class"),
    pytest.param('f"{a["b"]} é {c[\'d\']}"\n', id="same-quotes"),
    pytest.param("f'{f'{a}'}'\n", id="f-string-in-an-f-string"),
    pytest.param('f"{"\\n".join(a)}"\n', id="backslash"),
    pytest.param('f"{a:{"<"}{b["c"]}}"\n', id="format"),
    pytest.param('rt"{a["b"]}\\d"\n', id="template"),
    pytest.param("try: pass\nexcept A, b.C, d(): pass\n", id="except"),
    pytest.param("try: pass\nexcept* A, B: pass\n", id="except-star"),
]


@pytest.mark.parametrize("newer", NEWER)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_what_stands_beside_new_syntax_is_found(newer: str, newline: str) -> None:
    before = f'"é"; {LOAD}\n{newer}\nif é: {LOAD}  # "cuda"\n'.replace("\n", newline)
    assert patched(REPLACE, before.encode()) == before.replace('load("cuda")', 'load("cpu")').encode()


@pytest.mark.parametrize("newer", NEWER)
def test_places_are_those_of_the_file(newer: str) -> None:
    text = f'é = ["cuda", {{}}]\n{newer}é = g(a, "é", b.c)\n'
    module = parse(SourceText(path=PurePosixPath("a.py"), text=text, encoding="utf-8", bom=b""))
    assert isinstance(module, Module)
    first, *inner, last = (module.segment(node) for node in module.tree.body)
    assert (first, last) == ('é = ["cuda", {}]', 'é = g(a, "é", b.c)')
    assert "".join("".join(inner).split()) in {"".join(newer.split()), "".join(newer.split()).replace(";", "")}
    assert module.source.text == text


def test_what_is_caught_is_a_tuple() -> None:
    op = OptionalImport(package="deepspeed", message="it trains")
    guarded = "try:\n    import deepspeed\nexcept ImportError, OSError:\n    deepspeed = None\n"
    assert locate(op, guarded) == locate(op, guarded.replace("ImportError, OSError", "(ImportError, OSError)"))
    assert not locate(op, guarded).edits


def test_calls_and_statements_beside_new_syntax() -> None:
    text = "type X = int\ndef f[T](x: T):\n    install()\n    return x\n"
    assert (
        patched(NeutraliseCall(call="install()", returns="0"), text.encode()) == text.replace("install()", "0").encode()
    )
    op = InsertStatement(statement="import a", at="top")
    assert patched(op, text.encode()) == f"import a\n{text}".encode()
    op = InsertStatement(statement="import a", below="install()")
    assert patched(op, text.encode()) == text.replace("install()\n", "install()\n    import a\n").encode()


@pytest.mark.parametrize(
    "text",
    [
        'x = f"{load("cuda")}"\n',
        'x = t"{load("cuda")}"\n',
        "x = f'{load('cuda')}'\n",
    ],
    ids=["f-string", "template", "single"],
)
def test_what_stands_in_a_new_string_is_not_touched(text: str) -> None:
    why = "it is inside an f-string, where places differ between versions of Python"
    located = locate(REPLACE, text)
    assert (located.edits, located.refusals) == ((), (Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),))


REFUSED = [
    pytest.param('class A[T = "cuda"]: pass\n', "it is written for a newer Python, and has type parameters that are more than names on line 1", id="computed-parameter"),
    pytest.param("class A[T = f (1)]: pass\n", "it is written for a newer Python, and has type parameters that are more than names on line 1", id="called-parameter"),
    pytest.param("\ndef f[\n    T,\n](x): pass\n", "it is written for a newer Python, and has type parameters that are more than names on line 2", id="parameters-on-lines"),
    pytest.param('x = f"{a # b\n}"\n', "it is written for a newer Python, and has a comment in an f-string on line 1", id="comment"),
    pytest.param('f"{f"{f"{a}"}"}"\n', "it is written for a newer Python, and has a string in an f-string that no older Python could have there on line 1", id="three-strings"),
    pytest.param("try: pass\nexcept A, B if c else D: pass\n", "it is written for a newer Python, and catches what is no name on line 2", id="computed-exception"),
    pytest.param('print "x"\n', "it does not parse: Missing parentheses in call to 'print'. Did you mean print(...)?", id="python-2"),
    pytest.param("type X = " + "(" * 60 + "1" + ")" * 60 + "\n", "it does not parse: invalid syntax", id="too-deep"),
    pytest.param("type X = int\nif a: pass\n" + "elif a: pass\n" * 900, "it does not parse: invalid syntax", id="many-elifs"),
    pytest.param("type X = a" + ".b()" * 2000 + "\n", "it does not parse: invalid syntax", id="too-long"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_has_no_older_form_is_refused(text: str, why: str) -> None:
    [refusal] = locate(REPLACE, text).refusals
    assert (refusal.kind, refusal.why) == (OutcomeKind.UNPARSABLE, why)


def test_expression_over_lines_in_a_string_is_refused() -> None:
    [refusal] = locate(REPLACE, 'x = f"{\na\n}"\n').refusals
    assert refusal.why.startswith("it is written for a newer Python, and has no older form: line 1: ")


def test_edit_that_new_syntax_does_not_bear_is_refused() -> None:
    op = ReplaceExpression(pattern="A", replacement="B or C")
    located = locate(op, "try: pass\nexcept A, D: pass\n")
    assert (located.edits, [one.kind for one in located.refusals]) == ((), [OutcomeKind.AMBIGUOUS])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('type X = "cuda"\nx = "cuda"\n', [1, 2]),
        ('def f[T](x: T):\n    return "cuda"\n', [2]),
        ("try: pass\nexcept A, B: x = 'cuda'\n", [2]),
        ('x = f"{a["cuda"]}"\ny = "cpu"\n', [1]),
        ('x = f"{a[\n"b"]  # é\n}"\ny = "cuda"\n', [4]),
        ('x = t"{f"{f"{a["cuda"]}"}"}"\n', [1]),
        ('x = f"{a["b"]:{w["cuda"]}}"\n', [1]),
    ],
)
def test_postconditions_see_what_stands_there(text: str, lines: list[int]) -> None:
    check = NoString(value="cuda")
    assert check.problems(PurePosixPath("a.py"), text.encode()) == tuple(
        f"line {line}: it has the string 'cuda'" for line in lines
    )


@pytest.mark.parametrize(
    "text",
    ['class A[T = "cuda"]: pass\n', 'x = "a" f"{b["c"]}"\n', 'print "x"\n', "type X = " + "[" * 60 + "]" * 60 + "\n"],
    ids=["computed-parameter", "joined", "python-2", "too-deep"],
)
def test_postconditions_do_not_pass_what_they_cannot_read(text: str) -> None:
    [problem] = NoCall(callee="f").problems(PurePosixPath("a.py"), text.encode())
    assert problem.startswith("line 1: it does not parse: ")


@pytest.mark.parametrize("newer", NEWER)
def test_both_readers_see_the_same_names(newer: str) -> None:
    source = decode(PurePosixPath("a.py"), newer.encode())
    assert isinstance(source, SourceText)
    ours = parse(source)
    assert isinstance(ours, Module)
    theirs = _newer_python.parse(newer.encode(), "a.py")
    assert _names(ours.tree) == _names(theirs)


def _names(tree: ast.Module) -> list[str]:
    return sorted(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
