"""The op set-argument: what must change, what must not, what is refused, and that it settles."""

from __future__ import annotations

import ast

import pytest
from applied_ops import locate
from applied_ops import patched_and_settled as patched
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.patches.ops._arguments import SetArgument

SET = SetArgument(call="W", argument="k", value="1")
KEEP = SetArgument(call="W", argument="k", value="1", keep=True)
DROP = SetArgument(call="W", argument="k", remove=True, position=1)
SECOND = SetArgument(call="$x.W", argument="k", value="a or b", position=1)


CHANGES = [
    # added
    pytest.param(SET, "W()\n", "W(k=1)\n", id="no-arguments"),
    pytest.param(SET, "W(  # c (\n)\n", "W(k=1  # c (\n)\n", id="no-arguments-but-a-comment"),
    pytest.param(SET, "(W)()\n", "(W)(k=1)\n", id="parentheses-around-what-is-called"),
    pytest.param(SET, "W(a)\n", "W(a, k=1)\n", id="behind-the-last"),
    pytest.param(SET, "W((a))\n", "W((a), k=1)\n", id="behind-parentheses"),
    pytest.param(SET, "W(a, )\n", "W(a, k=1, )\n", id="trailing-comma"),
    pytest.param(SET, "W(a, *b, c=1)\n", "W(a, *b, c=1, k=1)\n", id="behind-a-star"),
    pytest.param(KEEP, "W(a), W(a, k=2)\n", "W(a, k=1), W(a, k=2)\n", id="another-value-is-kept"),
    pytest.param(SET, "W(a,\n  b)\n", "W(a,\n  b,\n  k=1)\n", id="a-line-each"),
    pytest.param(SET, "W(\n    a,\n    b=2\n)\n", "W(\n    a,\n    b=2,\n    k=1\n)\n", id="lines-without-a-trailing-comma"),
    pytest.param(SET, "W(\n\ta,\n\tb=2,  # two\n)\n", "W(\n\ta,\n\tb=2,  # two\n\tk=1,\n)\n", id="lines-with-a-trailing-comma"),
    pytest.param(SET, "W(\n    a,  # one\n    b=2  # two, and (\n)\n", "W(\n    a,  # one\n    b=2,  # two, and (\n    k=1\n)\n", id="comments"),
    pytest.param(SET, "W(\n    a, b,\n)\n", "W(\n    a, b, k=1,\n)\n", id="several-in-a-line"),
    pytest.param(SET, "W(a, b=g(\n  1))\n", "W(a, b=g(\n  1), k=1)\n", id="last-one-over-lines"),
    pytest.param(SET, "W(**{'a': 1})\n", "W(**{'a': 1}, k=1)\n", id="display-without-the-key"),
    pytest.param(SET, "W(W(1), k=W(2))\n", "W(W(1, k=1), k=1)\n", id="nested"),
    pytest.param(SET, "@W(a)\nclass A(W(), m=W(b)): pass\n", "@W(a, k=1)\nclass A(W(k=1), m=W(b, k=1)): pass\n", id="every-position"),
    # replaced
    pytest.param(SET, "W(a, k=2, b=3)\n", "W(a, k=1, b=3)\n", id="replaced"),
    pytest.param(SET, "W(k = (2), **d)\n", "W(k = (1), **d)\n", id="spaces-and-parentheses-stay"),
    pytest.param(SET, "W(\n  k=f(\n    2),  # c\n)\n", "W(\n  k=1,  # c\n)\n", id="replaced-over-lines"),
    pytest.param(SetArgument(call="W", argument="k", value="(x := 1)"), "W(k=0)\n", "W(k=(x := 1))\n", id="value-with-parentheses"),
    pytest.param(SECOND, "m.W(a, 5, 6)\n", "m.W(a, a or b, 6)\n", id="replaced-where-it-stands"),
    pytest.param(SECOND, "m.W(a, *b)\n".replace("*b", "k=1"), "m.W(a, k=a or b)\n", id="replaced-keyword"),
    pytest.param(SetArgument(call="load($c, $*r)", argument="k", value="1"), "load()\nload(1)\nm.load(1)\n", "load()\nload(1, k=1)\nm.load(1)\n", id="pattern-of-the-call"),
    pytest.param(SetArgument(call="W", argument="k", value="1", within=("A.f",)), "W()\nclass A:\n    def f(): W()\n", "W()\nclass A:\n    def f(): W(k=1)\n", id="within"),
    # removed
    pytest.param(DROP, "W(k=1)\n", "W()\n", id="drop-the-only-one"),
    pytest.param(DROP, "W(k=1, )\n", "W( )\n", id="drop-the-only-one-with-its-comma"),
    pytest.param(DROP, "W(a, k=1)\n", "W(a)\n", id="drop-the-last"),
    pytest.param(DROP, "W(a, k=(1),)\n", "W(a,)\n", id="drop-the-last-before-a-comma"),
    pytest.param(DROP, "W(k=1, b=2)\n", "W(b=2)\n", id="drop-the-first"),
    pytest.param(DROP, "W(\n  a,  # a\n  k=1,  # k\n  b=2,  # b\n)\n", "W(\n  a,  # a\n  b=2,  # b\n)\n", id="drop-a-line"),
    pytest.param(DROP, "W(\n  a,  # a\n  k=1  # k\n)\n", "W(\n  a,  # a\n)\n", id="drop-the-last-line"),
    pytest.param(DROP, "W(a,  # a\n  k=1)\n", "W(a,  # a\n  )\n", id="drop-behind-a-comment"),
    pytest.param(DROP, "W(k=1,  # k\n  b=2)\n", "W(  # k\n  b=2)\n", id="drop-before-a-comment"),
    pytest.param(DROP, "W(a, 1, b=2)\n", "W(a, b=2)\n", id="drop-where-it-stands"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: SetArgument, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


SETTLED = [
    pytest.param(SET, "W(a, k=1)\n", id="equal"),
    pytest.param(SET, "W(**d, k = (1))\n", id="equal-beside-unpacked"),
    pytest.param(SET, "f'{W(k=1)}'\n", id="equal-in-an-f-string"),
    pytest.param(SECOND, "m.W(1, a or b)\n", id="equal-where-it-stands"),
    pytest.param(DROP, "W(a, b=1, **{'c': 2})\n", id="not-there"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), SETTLED)
def test_settled(op: SetArgument, text: str) -> None:
    assert locate(op, text) == Located(settled=(Site(line=1, text=text.strip()),))


UNTOUCHED = [
    pytest.param(SET, "W\nm.W()\nw()\nW[k]\nclass W: pass\ndef W(): pass\n", id="no-such-call"),
    pytest.param(SECOND, "W()\n", id="no-method"),
    pytest.param(SET, "match x:\n    case W(a=1): pass\n", id="case-pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), UNTOUCHED)
def test_leaves_alone(op: SetArgument, text: str) -> None:
    assert locate(op, text) == Located()


REFUSED = [
    pytest.param(SET, "W()\nW(a, **kw)\n", 2, "`k` may come through `**kw`", id="unpacked"),
    pytest.param(SET, "W(**{'a': 1, **b})\n", 1, "`k` may come through `**{'a': 1, **b}`", id="unpacked-in-a-display"),
    pytest.param(SET, "W(**{'k': 1})\n", 1, "`k` may come through `**{'k': 1}`", id="display-with-the-key"),
    pytest.param(DROP, "W(k=1, **kw)\n", 1, "`k` may come through `**kw`", id="drop-beside-unpacked"),
    pytest.param(SECOND, "m.W(*a)\n", 1, "`k` may come through the starred argument", id="starred"),
    pytest.param(DROP, "W(a, 1, 2)\n", 1, "`k` is passed without its name, before others", id="drop-before-others"),
    pytest.param(SET, "f'{W()}'\n", 1, "it is inside an f-string, where places differ between versions of Python", id="f-string"),
    pytest.param(SET, "W(x for x in y)\n", 1, "the change is not valid there", id="bare-generator"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line", "why"), REFUSED)
def test_refuses(op: SetArgument, text: str, line: int, why: str) -> None:
    assert locate(op, text).refusals == (Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),)
    assert locate(op, text).edits == ()


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it does not parse: '(' was never closed")
    assert locate(SET, "W(\n") == Located(refusals=(refusal,))


BYTES = [
    pytest.param(b"\xef\xbb\xbfW(\r\n  a,\r\n  b,\r\n)\r\n", b"\xef\xbb\xbfW(\r\n  a,\r\n  b,\r\n  k=1,\r\n)\r\n", id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nW('\xe9', '\xe9')", b"# coding: latin-1\nW('\xe9', '\xe9', k=1)", id="latin-1"),
    pytest.param("'é€𝄞'; W('é')\n".encode(), "'é€𝄞'; W('é', k=1)\n".encode(), id="non-ascii"),
    pytest.param(b"W(\r  a,\r  b\r)\r", b"W(\r  a,\r  b,\r  k=1\r)\r", id="cr-only"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    assert patched(SET, before) == after


MISTAKES = [
    pytest.param({"call": "$x"}, "`$x` matches every call", id="every-call"),
    pytest.param({"call": "W("}, "`W(` is not a Python expression", id="call"),
    pytest.param({"argument": "k="}, "`k=` is not the name of an argument", id="argument"),
    pytest.param({"value": ""}, "either `value` or `remove = true` must be there", id="no-value"),
    pytest.param({"value": "", "remove": True, "keep": True}, "`keep` and `remove` contradict each other", id="keep-and-remove"),
    pytest.param({"remove": True}, "either `value` or `remove = true` must be there", id="value-and-remove"),
    pytest.param({"value": "x ="}, "`x =` is not a Python expression", id="value"),
    pytest.param({"value": "$x"}, "`$x` is not a Python expression", id="metavariable"),
    pytest.param({"position": -2}, "`position` is -2, and counts from 0", id="position"),
    pytest.param({"within": ("f()",)}, "`f()` is not the name of a function", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        SetArgument(**{"call": "W", "argument": "k", "value": "1"} | fields)
    assert str(error.value) == message


ARGUMENTS = st.lists(
    st.sampled_from(["1", "(2)", "*x", "b=3", "c=(4)", "d=f(5)", "e=[\n6]", "'# '"]), max_size=5, unique=True
).map(lambda items: sorted(items, key=lambda item: item[1:2] == "="))
GAPS = st.sampled_from(["", " ", "\n  ", "  # c, ()\n  "])


@settings(deadline=None)
@given(arguments=ARGUMENTS, gaps=st.lists(GAPS, min_size=12, max_size=12), trailing=st.booleans(), at=st.integers(0, 5))
def test_adding_then_dropping_gives_the_same_call(
    arguments: list[str], gaps: list[str], trailing: bool, at: int
) -> None:
    inner = "".join(
        f"{gaps[2 * i]}{item}{gaps[2 * i + 1]}" + ("," if i + 1 < len(arguments) or trailing else "")
        for i, item in enumerate(arguments)
    )
    before = f"x = W({inner}{gaps[-1]})\n"
    added = patched(SET, before.encode())
    dropped = patched(SetArgument(call="W", argument="k", remove=True), added)
    assert ast.dump(ast.parse(dropped)) == ast.dump(ast.parse(before))
    assert added.count(b"# c, ()") == before.count("# c, ()")
