"""The checks of functions, calls and statements: what holds, what does not, and that one missing edit is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest

from patchlock.model.patch import Ensure, Op
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._arguments import SetArgument
from patchlock.patches.ops._entry import DisableFunction, GuardEntry
from patchlock.patches.ops._insert_statement import InsertStatement
from patchlock.patches.postconditions._behaviour import (
    Argument,
    Disabled,
    Guarded,
    HasExpression,
    HasStatement,
)

PATH = PurePosixPath("a.py")
OFF = Disabled(function="f")
ZERO = Disabled(function="A.f", returns="0")
GUARD = Guarded(function="f", condition="a is None")
KEY = Argument(callee="m.load", argument="k", value="1", position=2)
ANY_KEY = Argument(callee="m.load", argument="k", value="1", keep=True)
NO_KEY = Argument(callee="*.load", argument="k", position=2)
HAS = HasStatement(statement="x = 1\ngo()")
PART = HasExpression(expression='load("xpu")', within=("A.f",))
BLOCK = HasStatement(statement="x = get()\nif x:\n    go(x)")
AFTER = HasStatement(statement="go()", after="*.load")
BEFORE = HasStatement(statement="go()", before="load", within=("f",))


def problems(ensure: Ensure, text: str) -> tuple[str, ...]:
    return ensure.problems(PATH, text.encode())


HOLDS = [
    pytest.param(OFF, "def f(): pass\n", id="pass"),
    pytest.param(OFF, 'def f():\n  "d"\n  import logging\n  logging.getLogger(n).warning("m")\n  return\n  yield\n', id="log-and-return"),
    pytest.param(OFF, "def f():\n  return None\n  x()\n", id="dead-code"),
    pytest.param(OFF, "def f(): x\ndef f(): pass\n", id="the-last-one"),
    pytest.param(OFF, "class A:\n  def f(self): x\ndef f(): pass\n", id="the-whole-name"),
    pytest.param(OFF, "@overload\ndef f(a): x\nif a:\n  def f(a): pass\nelse:\n  def f(a): return\n", id="overload-and-branches"),
    pytest.param(ZERO, "class A:\n  async def f(self): return 0\n", id="value"),
    pytest.param(GUARD, "def f(a):\n  'd'\n  if b: raise E\n  import c\n  if a is None:\n    x\n    return 1\n  y\n", id="behind-another"),
    pytest.param(KEY, "import m as n\nn.load(k=1)\nm.load(1, 2, 1)\nload(k=2)\nx.load()\n", id="keyword-and-position"),
    pytest.param(ANY_KEY, "import m\nm.load(k=1)\nm.load(k=2)\n", id="another-value-is-as-good"),
    pytest.param(NO_KEY, "m.load(1, 2, **{'a': 1})\na.b.load()\nload(k=1)\n", id="no-keyword"),
    pytest.param(KEY, "m.load(k=1)\ndef f():\n  return\n  m.load()\n", id="dead-call"),
    pytest.param(HAS, "def f():\n  x=1 ;  go()\n", id="statements"),
    pytest.param(PART, "class A:\n  def f():\n    if load('xpu').a: x\n", id="expression-in-another"),
    pytest.param(PART, "class A:\n  def f():\n    def g(x=load('xpu')): x\n", id="expression-of-a-head"),
    pytest.param(AFTER, "m.load()\nx\ngo()\nif m.load(): go()\ngo()\n", id="behind-each"),
    pytest.param(BEFORE, "load()\ndef f():\n  go()\n  x\n  load()\n  go(); load()\n", id="in-front-of-each"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "text"), HOLDS)
def test_holds(ensure: Ensure, text: str) -> None:
    assert problems(ensure, text) == ()
    assert problems(ensure, "z = 1\n") != ()


FAILS = [
    pytest.param(OFF, "f = 1\n", ("it has no function f",), id="no-function"),
    pytest.param(OFF, "def f(): x()\n", ("line 1: f does more than return None",), id="does-more"),
    pytest.param(OFF, "def f():\n  if a: return\n", ("line 1: f does more than return None",), id="not-always"),
    pytest.param(OFF, "def f(): return 0\n", ("line 1: f does more than return None",), id="other-value"),
    pytest.param(OFF, "def f():\n  yield 1\n", ("line 1: f does more than return None",), id="yields"),
    pytest.param(OFF, "def f(): pass\ndef f():\n  x = 1\n", ("line 2: f does more than return None",), id="the-last-one"),
    pytest.param(OFF, "if a:\n  def f(): pass\nelse:\n  def f(): x\n", ("line 4: f does more than return None",), id="a-branch"),
    pytest.param(ZERO, "class A:\n  def f(self): pass\n", ("line 2: A.f does more than return 0",), id="no-value"),
    pytest.param(GUARD, "def f(a):\n  x\n  if a is None: return\n", ("line 1: f does not begin with `if a is None`",), id="too-late"),
    pytest.param(GUARD, "def f(a):\n  if a is None: x\n", ("line 1: f does not begin with `if a is None`",), id="goes-on"),
    pytest.param(GUARD, "def f(a):\n  'd'\n", ("line 1: f does not begin with `if a is None`",), id="no-guard"),
    pytest.param(KEY, "m.load(1)\nm.load(k=2)\nm.load(1, 2, 3)\nm.load(1, 2, 1, k=1)\n", tuple(f"line {n}: it calls m.load without k=1" for n in (1, 2, 3, 4)), id="no-argument"),
    pytest.param(ANY_KEY, "import m\nm.load(k=2)\nm.load()\n", ("line 3: it calls m.load without k=1",), id="nothing-is-not-another-value"),
    pytest.param(KEY, "from m import load as l\ndef f():\n  l(**kw)\n", ("line 3: it calls m.load without k=1",), id="by-another-name"),
    pytest.param(KEY, "load(k=1)\n", ("it never calls m.load",), id="no-call"),
    pytest.param(NO_KEY, "x.load(k=1)\nx.load(1, 2, 3)\nx.load(**kw)\nx.load(*a)\n", tuple(f"line {n}: it calls *.load without no k" for n in (1, 2, 3, 4)), id="keyword"),
    pytest.param(PART, "class A:\n  def f(x=load('xpu')): load\n", ('`load("xpu")` is missing in A.f',), id="head-outside"),
    pytest.param(PART, "class A:\n  def f():\n    load('xpu:0')\n", ('`load("xpu")` is missing in A.f',), id="longer"),
    pytest.param(PART, "class A:\n  def f():\n    return\n    load('xpu')\n", ('`load("xpu")` is missing in A.f',), id="dead-expression"),
    pytest.param(HAS, "x = 1\ny\ngo()\n", ("`go()` does not follow `x = 1`",), id="apart"),
    pytest.param(BLOCK, "if a:\n  x = get()\n  if x:\n    log(x)\n    go(x)\n", ("`go(x)` does not follow `if x:`",), id="line-put-in"),
    pytest.param(BLOCK, "x = get()\nif x:\n  go(x)\n  log(x)\n", ("`log(x)` follows `go(x)`",), id="line-put-behind"),
    pytest.param(BLOCK, "x = get()\n", ("`if x:` does not follow `x = get()`",), id="cut-off"),
    pytest.param(HAS, "def f():\n  return\n  x = 1\n  go()\n", ("`x = 1` is missing",), id="dead-statement"),
    pytest.param(AFTER, "go()\nm.load()\nm.load(); go()\n", ("line 2: `go()` is missing behind the call of *.load",), id="not-behind"),
    pytest.param(AFTER, "def f():\n  return m.load()\n  go()\n", ("line 2: `go()` is missing behind the call of *.load",), id="behind-return"),
    pytest.param(BEFORE, "def f():\n  load()\n  go()\n  if a: load()\n", ("line 2: `go()` is missing in front of the call of load", "line 4: `go()` is missing in front of the call of load"), id="not-in-front"),
    pytest.param(BEFORE, "go()\nload()\n", ("it never calls load",), id="outside"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "text", "expected"), FAILS)
def test_fails(ensure: Ensure, text: str, expected: tuple[str, ...]) -> None:
    assert tuple(sorted(problems(ensure, text))) == tuple(sorted(expected))


@pytest.mark.parametrize("ensure", [OFF, GUARD, KEY, HAS, PART], ids=lambda ensure: type(ensure).__name__)
def test_file_that_does_not_parse_is_a_problem(ensure: Ensure) -> None:
    assert problems(ensure, "x = 1\nx = = 1\n") == ("line 2: it does not parse: invalid syntax",)


MISTAKES = [
    pytest.param(Disabled, {"function": "f()"}, "`f()` is not the dotted name of a function", id="function"),
    pytest.param(Disabled, {"function": "f", "returns": "return"}, "`return` is not a Python expression", id="returns"),
    pytest.param(Guarded, {"function": "f", "condition": ""}, "`` is not a Python expression", id="condition"),
    pytest.param(Argument, {"callee": "*.", "argument": "k"}, "`` is not the dotted name of a function", id="callee"),
    pytest.param(HasStatement, {"statement": "x ="}, "`x =` is not Python code", id="statement"),
    pytest.param(HasStatement, {"statement": "# x"}, "`statement` is empty", id="empty"),
    pytest.param(HasStatement, {"statement": "x", "after": "a", "before": "b"}, "`after` and `before` cannot both be", id="both"),
    pytest.param(HasStatement, {"statement": "x", "within": ("f()",)}, "`f()` is not the dotted name of a function", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "fields", "message"), MISTAKES)
def test_field_that_could_never_hold_is_a_mistake(
    ensure: Callable[..., Ensure], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError) as error:
        ensure(**fields)
    assert str(error.value) == message


# --- mutation: one edit of a result is left out -----------------------------------------------------------------------

BRANCHES = "if a:\n    def f(a):\n        x\nelse:\n    def f(a):\n        y\n        z\n"
LOADS = "import m\nx = m.load(1)\ndef f():\n    return m.load(\n        2,\n        k=0,\n    )\nm.load(m.load(3))\n"
STATEMENTS = "a.load()\ndef f():\n    with x: b.load()\n    if c.load():\n        return\n    y\n"

MUTATIONS = [
    pytest.param(DisableFunction(function="f"), OFF, BRANCHES, id="disabled"),
    pytest.param(GuardEntry(function="f", condition="a is None"), GUARD, BRANCHES, id="guarded"),
    pytest.param(SetArgument(call="m.load", argument="k", value="1"), KEY, LOADS, id="argument"),
    pytest.param(SetArgument(call="m.load", argument="k", remove=True), NO_KEY, LOADS.replace("1)", "1, k=1)"), id="no-argument"),
    pytest.param(InsertStatement(statement="go()", below="$x.load()"), AFTER, STATEMENTS, id="has-statement-after"),
    pytest.param(InsertStatement(statement="go()", above="$x.load()"), HasStatement(statement="go()", before="*.load"), STATEMENTS, id="has-statement-before"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "ensure", "text"), MUTATIONS)
def test_one_missing_edit_is_seen(op: Op, ensure: Ensure, text: str) -> None:
    source = decode(PATH, text.encode())
    assert isinstance(source, SourceText)
    edits = op.locate(source).edits
    assert len(edits) > 1
    assert ensure.problems(PATH, encode(splice(source, edits))) == ()
    for edit in edits:
        partial = splice(source, tuple(other for other in edits if other != edit))
        assert ensure.problems(PATH, encode(partial)), edit
