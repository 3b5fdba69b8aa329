"""Code patterns: what they match, what they capture, and how captured source is put into a replacement."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchlock.model.text_files import SourceText
from patchlock.patches.ops import _pattern
from patchlock.patches.ops.syntax import Module, parse


def module(text: str) -> Module:
    parsed = parse(SourceText(path=PurePosixPath("a.py"), text=text, encoding="utf-8", bom=b""))
    assert isinstance(parsed, Module)
    return parsed


def captured(wanted: str, code: str) -> dict[str, str] | None:
    """Match one expression, and give the source of each metavariable; runs of arguments are joined by ` | `."""
    parsed = module(code)
    statement = parsed.tree.body[0]
    assert isinstance(statement, ast.Expr)
    captures = _pattern.compile(wanted).match(statement.value)
    if captures is None:
        return None
    return {
        name: " | ".join(code[start:end] for start, end in capture.ranges(parsed)) for name, capture in captures.items()
    }


MATCHES = [
    pytest.param("a.b", "a.b", {}, id="name"),
    pytest.param("f(1)", "f(\n  1,  # one\n)", {}, id="layout-and-comments"),
    pytest.param("'cuda'", 'r"cuda"', {}, id="string-by-value"),
    pytest.param("'cuda'", '"cu" "da"', {}, id="implicit-concatenation-as-a-whole"),
    pytest.param("f(b'x', 0x10, 1.50, None, True, ...)", "f(b'\\x78', 16, 1.5, None, True, ...)", {}, id="literals-by-value"),
    pytest.param("f(a, k=1, j=2)", "f(a, j=2, k=1)", {}, id="keywords-in-any-order"),
    pytest.param("f(**$d, k=1)", "f(k=1, **x)", {"d": "x"}, id="mapping-argument"),
    pytest.param("f(*$a)", "f(*x)", {"a": "x"}, id="sequence-argument"),
    pytest.param("f($x)", "f(a + b)", {"x": "a + b"}, id="one"),
    pytest.param("f($x)", "f((a))", {"x": "a"}, id="one-without-its-parentheses"),
    pytest.param("f($x)", "f(i for i in y)", {"x": "(i for i in y)"}, id="one-generator"),
    pytest.param("$any.load()", "é().load()", {"any": "é()"}, id="receiver"),
    pytest.param("$m.a.b($x)", "q[0].a.b(z)", {"m": "q[0]", "x": "z"}, id="dotted-receiver"),
    pytest.param("f($x, $x)", "f(g(1), g( 1 ))", {"x": "g(1)"}, id="same-name-same-code"),
    pytest.param("f($*a)", "f()", {"a": ""}, id="rest-of-nothing"),
    pytest.param("f($*a)", "f(1, *b, k=(2), **d)", {"a": "1, *b, k=(2), **d"}, id="rest-of-everything"),
    pytest.param("f($*a)", "f((1), (2))", {"a": "(1), (2)"}, id="rest-with-its-parentheses"),
    pytest.param("f($*a)", "(f)((1), ((2)),)", {"a": "(1), ((2))"}, id="rest-without-trailing-comma"),
    pytest.param("f($*a)", "f(1,  # (one),\n  2)", {"a": "1,  # (one),\n  2"}, id="rest-with-comments"),
    pytest.param("f($*a)", "f(i for i in y)", {"a": "(i for i in y)"}, id="rest-of-a-generator"),
    pytest.param("f($x, $*a)", "f(1, 2, k=3)", {"x": "1", "a": "2, k=3"}, id="rest-behind-one"),
    pytest.param("f($*a, $x)", "f(1, 2, 3)", {"a": "1, 2", "x": "3"}, id="rest-before-one"),
    pytest.param("f(k=$x, $*a)", "f(1, k=2, j=3)", {"x": "2", "a": "1 | j=3"}, id="rest-around-a-keyword"),
    pytest.param("[$p, '-m', $*a]", '[x.y, "-m", "pip", b]', {"p": "x.y", "a": '"pip", b'}, id="rest-of-a-list"),
    pytest.param("($*a, 1)", "(2, (3), 1)", {"a": "2, (3)"}, id="rest-of-a-tuple"),
    pytest.param("{1, $*a}", "{1, 2}", {"a": "2"}, id="rest-of-a-set"),
    pytest.param("f([$*a], $*a)", "f([1, 2], 1, 2)", {"a": "1, 2"}, id="same-rest-same-code"),
    pytest.param("$a if $b else '$c'", "1 if 2 else '$c'", {"a": "1", "b": "2"}, id="dollar-in-a-string-is-text"),
    pytest.param("lambda x: $y", "lambda x: x + 1", {"y": "x + 1"}, id="inside-a-lambda"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "code", "captures"), MATCHES)
def test_matches(wanted: str, code: str, captures: dict[str, str]) -> None:
    assert captured(wanted, code) == captures


DIFFERENT = [
    pytest.param("f($a)", "f(a, b)", id="more-arguments"),
    pytest.param("f($a)", "f()", id="fewer-arguments"),
    pytest.param("f($a)", "f(a, k=1)", id="a-keyword-more"),
    pytest.param("f($a)", "f(a, **k)", id="a-mapping-more"),
    pytest.param("f($a)", "f(*a)", id="a-sequence-is-no-argument"),
    pytest.param("f($a)", "f(k=a)", id="a-keyword-is-not-positional"),
    pytest.param("f(k=$a)", "f(j=a)", id="another-keyword"),
    pytest.param("f(k=1)", "f(**k)", id="a-mapping-is-no-keyword"),
    pytest.param("f($a, $*b)", "f(*a)", id="rest-does-not-give-one"),
    pytest.param("f($x, $x)", "f(a, b)", id="same-name-other-code"),
    pytest.param("f([$*a], $*a)", "f([1], 2)", id="same-rest-other-code"),
    pytest.param("[1, $*a]", "[2, 1]", id="rest-keeps-order"),
    pytest.param("[$*a]", "(1,)", id="a-tuple-is-no-list"),
    pytest.param("1", "True", id="one-is-not-true"),
    pytest.param("1", "1.0", id="an-integer-is-no-float"),
    pytest.param("'a'", "b'a'", id="text-is-not-bytes"),
    pytest.param("'cuda'", "f'cuda'", id="an-f-string-is-no-string"),
    pytest.param("a[$i]", "a[1:2]", id="a-slice-is-no-expression"),
    pytest.param("f.g()", "g()", id="the-receiver-counts"),
    pytest.param("$x.g()", "x.y.h()", id="the-attribute-counts"),
    pytest.param("$a + $b", "x - y", id="the-operator-counts"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "code"), DIFFERENT)
def test_does_not_match(wanted: str, code: str) -> None:
    assert captured(wanted, code) is None


def test_matches_only_where_a_value_is_read() -> None:
    assignment = module("a.b = 1").tree.body[0]
    assert isinstance(assignment, ast.Assign)
    assert _pattern.compile("a.b").match(assignment.targets[0]) is None
    assert _pattern.compile("1").match(assignment.value) is not None


MISTAKES = [
    pytest.param("", "`` is not a Python expression", id="empty"),
    pytest.param("f(", "`f(` is not a Python expression", id="unfinished"),
    pytest.param("x = 1", "`x = 1` is not a Python expression", id="statement"),
    pytest.param("a) + (b", "`a) + (b` is not a Python expression", id="unbalanced"),
    pytest.param("f($1)", "`f($1)` is not a Python expression", id="no-name"),
    pytest.param("f'{$x}'", "`f'{$x}'` is not a Python expression", id="in-an-f-string"),
    pytest.param("a.$b", "`a.$b` has a metavariable where no expression can stand", id="attribute"),
    pytest.param("f($k=1)", "`f($k=1)` has a metavariable where no expression can stand", id="keyword"),
    pytest.param("[x for $x in y]", "`[x for $x in y]` has a metavariable where no expression can stand", id="target"),
    pytest.param("f($x, $*x)", "`f($x, $*x)` uses both $x and $*x", id="both-kinds"),
    pytest.param("f($*a, $*b)", "`f($*a, $*b)` has two $* metavariables in one list", id="two-rests"),
    pytest.param("{**a, 'b': [*$*c]}", "`{**a, 'b': [*$*c]}` is not a Python expression", id="rest-of-a-rest"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistake_in_a_pattern_is_one_clause(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        _pattern.compile(text)
    assert str(error.value) == message


@pytest.mark.parametrize(("text", "is_bare"), [("$x", True), ("($x)", True), ("$x.y", False), ("x", False)])
def test_a_bare_metavariable_is_told(text: str, is_bare: bool) -> None:
    assert _pattern.compile(text).is_bare is is_bare


SUBSTITUTIONS = [
    pytest.param("g($x)", {"x": "a"}, "g(a)", id="one"),
    pytest.param("g($x)", {"x": "a + b"}, "g(a + b)", id="argument-needs-no-parentheses"),
    pytest.param("g($x)", {"x": "1, 2"}, "g((1, 2))", id="tuple-as-argument"),
    pytest.param("g($x)", {"x": "a +\n b"}, "g(a +\n b)", id="lines-inside-a-call"),
    pytest.param("$x", {"x": "a +\n b"}, "(a +\n b)", id="lines-alone"),
    pytest.param("$x.g()", {"x": "a"}, "a.g()", id="receiver"),
    pytest.param("$x.g()", {"x": "a + b"}, "(a + b).g()", id="receiver-of-lower-precedence"),
    pytest.param("$x.g()", {"x": "a.b[0](c)"}, "a.b[0](c).g()", id="receiver-that-binds-as-tightly"),
    pytest.param("$x.real", {"x": "1"}, "(1).real", id="number-before-a-dot"),
    pytest.param("-$x ** 2", {"x": "a * b"}, "-(a * b) ** 2", id="power"),
    pytest.param("$x if $y else $z", {"x": "a", "y": "b if c else d", "z": "lambda: 0"}, "a if (b if c else d) else lambda: 0", id="each-for-itself"),
    pytest.param("[$x, $x]", {"x": "a := 1"}, "[a := 1, a := 1]", id="twice"),
    pytest.param("g($*a)", {"a": "1,  # one\n k=2"}, "g(1,  # one\n k=2)", id="rest-verbatim"),
    pytest.param("g($*a)", {"a": ""}, "g()", id="empty-rest"),
    pytest.param("g($x, $*a)", {"x": "1", "a": ""}, "g(1)", id="empty-rest-behind"),
    pytest.param("g($*a, k=1)", {"a": ""}, "g(k=1)", id="empty-rest-before"),
    pytest.param("g([1, $*a], 2)", {"a": ""}, "g([1], 2)", id="empty-rest-of-a-list"),
    pytest.param("(1, $*a)", {"a": ""}, "(1, )", id="empty-rest-of-a-tuple"),
    pytest.param("g('$x, $*a', $*a)", {"a": ""}, "g('$x, $*a')", id="text-of-strings-stays"),
]  # fmt: skip


@pytest.mark.parametrize(("replacement", "captures", "result"), SUBSTITUTIONS)
def test_substitutes(replacement: str, captures: dict[str, str], result: str) -> None:
    assert _pattern.substitute(replacement, captures) == result


IMPOSSIBLE = [
    pytest.param("g(k=1, $*a)", {"a": "2"}, "`g(k=1, 2)` is not a Python expression", id="positional-behind-keyword"),
    pytest.param("[$*a]", {"a": "k=2"}, "`[k=2]` is not a Python expression", id="keyword-in-a-list"),
    pytest.param("{$*a}", {"a": ""}, "`{$*a}` is not a Python expression where $*a is empty", id="empty-set"),
]  # fmt: skip


@pytest.mark.parametrize(("replacement", "captures", "message"), IMPOSSIBLE)
def test_impossible_substitution_is_an_error(replacement: str, captures: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as error:
        _pattern.substitute(replacement, captures)
    assert str(error.value) == message


ATOMS = st.sampled_from(["a", "1", "'s'", "(b, c)", "[d]", "f(e)"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "**", "and", "<", ","]), inner).map(" ".join),
        inner.map("-{}".format),
        inner.map("lambda: {}".format),
        inner.map("({})".format),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} if x else {pair[1]}"),
    ),
    max_leaves=6,
)
TEMPLATES = [
    "$x",
    "$x.y",
    "-$x",
    "$x ** $x",
    "g($x, k=$x)",
    "[$x][$x]",
    "not $x",
    "$x if $x else $x",
    "(*$x,)",
    "f'a' + $x",
]


def is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


@given(replacement=st.sampled_from(TEMPLATES), expression=EXPRESSIONS)
def test_substitution_means_what_parentheses_would_make_it_mean(replacement: str, expression: str) -> None:
    assume(is_expression(expression))
    result = _pattern.substitute(replacement, {"x": expression})
    meant = replacement.replace("$x", f"({expression})")
    assert ast.dump(ast.parse(result, mode="eval")) == ast.dump(ast.parse(meant, mode="eval"))
