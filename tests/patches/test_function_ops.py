"""The ops disable-function and guard-entry: what must change, what must not, what is refused, and that they settle."""

from __future__ import annotations

import inspect
import logging

import pytest
from applied_ops import locate
from applied_ops import patched_and_settled as patched
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.patches.ops._entry import DisableFunction, GuardEntry

OFF = DisableFunction(function="f")
TOLD = DisableFunction(function="f", returns="0", message="no pip here")
LOG = "import logging", "logging.getLogger(__name__).warning('no pip here')"
NT = GuardEntry(function="f", condition="os.name == 'nt'", returns="1", imports=("import os",))
RAISE = GuardEntry(function="f", condition="not a", raises="ValueError('a')")


CHANGES = [
    # disable-function
    pytest.param(OFF, 'def f(a):\n    """d"""\n    # c\n    x()\n    return 1  # z\n\ny\n', 'def f(a):\n    """d"""\n    # c\n    return None\n\ny\n', id="docstring-stays"),
    pytest.param(TOLD, "def f(a):\n    x(\n      1)\n    if y:\n        z\n", f"def f(a):\n    {LOG[0]}\n    {LOG[1]}\n    return 0\n", id="message"),
    pytest.param(OFF, "@d(1)\ndef f(a: int = 1, *b) -> int:  # c\n    return g()\n", "@d(1)\ndef f(a: int = 1, *b) -> int:  # c\n    return None\n", id="decorators-and-signature-stay"),
    pytest.param(OFF, "def f(): return g()\n", "def f(): return None\n", id="one-line"),
    pytest.param(TOLD, 'def f(): "d"; x; y # c\n', f'def f(): "d"; {LOG[0]}; {LOG[1]}; return 0\n', id="docstring-in-one-line"),
    pytest.param(OFF, 'def f():\n    "d"; x\n    y\n', 'def f():\n    "d"; return None\n', id="behind-the-docstring-in-its-line"),
    pytest.param(TOLD, "def f(): \\\n  x\n", f"def f(): \\\n  {LOG[0]}; {LOG[1]}; return 0\n", id="continued-line"),
    pytest.param(OFF, "class A:\n\tdef f(self):\n\t\tx\n\t\ty", "class A:\n\tdef f(self):\n\t\treturn None", id="method-with-tabs"),
    pytest.param(OFF, "def f():\n    @d\n    def g(): pass\n    return g\n", "def f():\n    return None\n", id="decorated-function-inside"),
    pytest.param(OFF, "def f():\n    yield 1\n", "def f():\n    return\n    yield\n", id="generator"),
    pytest.param(OFF, "async def f():\n    async for x in y:\n        yield x\n", "async def f():\n    return\n    yield\n", id="async-generator"),
    pytest.param(TOLD, "async def f():\n    await x\n", f"async def f():\n    {LOG[0]}\n    {LOG[1]}\n    return 0\n", id="coroutine"),
    pytest.param(OFF, "def f():\n    return [(lambda: (yield)) for x in y]\n", "def f():\n    return None\n", id="generator-only-inside"),
    pytest.param(OFF, "def f():\n    a\ndef f():\n    b\n", "def f():\n    a\ndef f():\n    return None\n", id="the-last-one-is-live"),
    pytest.param(OFF, "if a:\n  def f(): x\nelse:\n  def f():\n    y\n", "if a:\n  def f(): return None\nelse:\n  def f():\n    return None\n", id="one-in-each-branch"),
    pytest.param(OFF, "@overload\ndef f(a: int): ...\n@typing.overload\ndef f(a: str): ...\ndef f(a):\n  x\n", "@overload\ndef f(a: int): ...\n@typing.overload\ndef f(a: str): ...\ndef f(a):\n  return None\n", id="overloads-stay"),
    pytest.param(OFF, "class A:\n    def f(self):\n        x\ndef f():\n    y\n", "class A:\n    def f(self):\n        x\ndef f():\n    return None\n", id="the-whole-name-wins"),
    pytest.param(DisableFunction(function="A.f"), "class B:\n    class A:\n        def f(self):\n            x\nclass C:\n    def f(self): y\n", "class B:\n    class A:\n        def f(self):\n            return None\nclass C:\n    def f(self): y\n", id="qualified"),
    pytest.param(DisableFunction(function="g.f"), "def g():\n    def f():\n        x\n    return f\n", "def g():\n    def f():\n        return None\n    return f\n", id="function-inside-a-function"),
    pytest.param(DisableFunction(function="f", returns="a"), "def f(a): pass\n", "def f(a): return a\n", id="parameter"),
    pytest.param(DisableFunction(function="f", returns="Path('.')"), "from pathlib import *\ndef f():\n    x\n", "from pathlib import *\ndef f():\n    return Path('.')\n", id="star-import-may-bind-it"),
    pytest.param(DisableFunction(function="f", returns="A"), "def f():\n    x\ndef g():\n    global A\n", "def f():\n    return A\ndef g():\n    global A\n", id="global-of-another-function"),
    pytest.param(DisableFunction(function="f", returns="0"), 'def f():\n    "d"', 'def f():\n    "d"\n    return 0', id="only-a-docstring"),
    # guard-entry
    pytest.param(NT, 'def f(a):\n    """d"""\n    # c\n    x()\n', 'def f(a):\n    """d"""\n    import os\n    if os.name == \'nt\':\n        return 1\n    # c\n    x()\n', id="guard-behind-the-docstring"),
    pytest.param(RAISE, "def f(a): return g()\n", "def f(a):\n    if not a:\n        raise ValueError('a')\n    return g()\n", id="guard-of-one-line"),
    pytest.param(RAISE, 'def f(a): "d"; x; y # c\n', 'def f(a):\n    "d"\n    if not a:\n        raise ValueError(\'a\')\n    x; y # c\n', id="guard-of-one-line-with-a-docstring"),
    pytest.param(RAISE, "class A:\n\tdef f(self, a):\n\t\tx\n\t\ty", "class A:\n\tdef f(self, a):\n\t\tif not a:\n\t\t\traise ValueError('a')\n\t\tx\n\t\ty", id="guard-with-tabs"),
    pytest.param(RAISE, "async def f(a):\n    yield 1\n", "async def f(a):\n    if not a:\n        raise ValueError('a')\n    yield 1\n", id="guard-of-a-generator-that-raises"),
    pytest.param(GuardEntry(function="f", condition="a"), "def f(a):\n  yield 1\n", "def f(a):\n  if a:\n    return\n  yield 1\n", id="guard-of-a-generator"),
    pytest.param(RAISE, 'def f(a):\n    "d"', 'def f(a):\n    "d"\n    if not a:\n        raise ValueError(\'a\')', id="guard-of-a-docstring"),
    pytest.param(RAISE, "def f(a):\n    if b:\n        return\n    x\n", "def f(a):\n    if not a:\n        raise ValueError('a')\n    if b:\n        return\n    x\n", id="guard-before-another"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: Op, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


SETTLED = [
    pytest.param(OFF, "def f(): pass\n", id="pass"),
    pytest.param(OFF, 'def f():\n    """d"""\n', id="docstring"),
    pytest.param(OFF, "def f(): ...\n", id="ellipsis"),
    pytest.param(DisableFunction(function="f", message="m"), "def f():\n    return\n", id="disabled-without-a-message"),
    pytest.param(OFF, "def f():\n    return\n    yield\n", id="generator"),
    pytest.param(TOLD, f"def f(): {LOG[0]}; {LOG[1]}; return 0\n", id="ours-in-one-line"),
    pytest.param(NT, "def f():\n    if b:\n        return\n    import os\n    if os.name == 'nt':\n        return 1\n    x\n", id="behind-another-guard"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), SETTLED)
def test_settled(op: Op, text: str) -> None:
    assert locate(op, text) == Located(settled=(Site(line=1, text=text.split("\n", maxsplit=1)[0]),))


UNTOUCHED = [
    pytest.param(OFF, "f = 1\nf()\nclass f: pass\nf = lambda: x\n", id="no-function"),
    pytest.param(DisableFunction(function="A.f"), "class B:\n    def f(self): x\ndef f(): x\n", id="another-class"),
    pytest.param(OFF, "@overload\ndef f(a: int): ...\n", id="only-overloads"),
    pytest.param(NT, "def g(): x\n", id="another-function"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), UNTOUCHED)
def test_leaves_alone(op: Op, text: str) -> None:
    assert locate(op, text) == Located()


REFUSED = [
    pytest.param(OFF, "class A:\n  def f(s): x\nclass B:\n  def f(s): x\n", 4, "`f` could be `A.f` or `B.f`; write which one", id="several-classes"),
    pytest.param(OFF, "".join(f"class {name}:\n  def f(s): x\n" for name in "ABCDE"), 10, "`f` could be `A.f` or `B.f` or `C.f` or 2 others; write which one", id="many-classes"),
    pytest.param(OFF, "class A:\n  @property\n  def f(s): x\n  @f.setter\n  def f(s, v): x\n", 5, "`f` is several functions under one name", id="property-with-a-setter"),
    pytest.param(TOLD, "def f():\n    yield 1\n", 1, "it is a generator, whose callers see what it yields, never `0`", id="generator-with-a-value"),
    pytest.param(OFF, "@contextlib.contextmanager\ndef f():\n    yield 1\n", 2, "it is a context manager, which must yield once", id="context-manager"),
    pytest.param(DisableFunction(function="__init__", returns="1"), "class A:\n    def __init__(self): x\n", 2, "`__init__` can return nothing but None", id="init"),
    pytest.param(DisableFunction(function="f", returns="a + b"), "def f(a):\n    b = 1\n", 1, "`b` is not known there", id="variable-of-the-body"),
    pytest.param(RAISE, "def f():\n    a = 1\n", 1, "`a` is not known at the entry of `f`", id="condition-before-its-variable"),
    pytest.param(RAISE, "a = 1\ndef f():\n    for a in b: pass\n", 2, "`a` is not known at the entry of `f`", id="condition-with-a-name-that-is-local"),
    pytest.param(RAISE, "a = 1\ndef f():\n    return [a := b for b in c]\n", 2, "`a` is not known at the entry of `f`", id="condition-with-a-name-of-a-comprehension"),
    pytest.param(RAISE, "def f():\n    x\n", 1, "`a` is not known at the entry of `f`", id="condition-with-an-unknown-name"),
    pytest.param(GuardEntry(function="f", condition="a"), "a = 1\ndef f():\n    global a\n    x\n", 2, "with the change, Python says: name 'a' is used prior to global declaration", id="condition-before-global"),
    pytest.param(NT, "def f():\n    yield\n", 1, "it is a generator, whose callers see what it yields, never `1`", id="guard-of-a-generator-with-a-value"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line", "why"), REFUSED)
def test_refuses(op: Op, text: str, line: int, why: str) -> None:
    refusals = locate(op, text).refusals
    assert refusals == (Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),)


@pytest.mark.parametrize("op", [OFF, NT])
def test_file_that_does_not_parse_is_unparsable(op: Op) -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it does not parse: '(' was never closed")
    assert locate(op, "f(\n") == Located(refusals=(refusal,))


BYTES = [
    pytest.param(OFF, b"\xef\xbb\xbfdef f():\r\n  'd'\r\n  x\r\n  y\r\nz\r\n", b"\xef\xbb\xbfdef f():\r\n  'd'\r\n  return None\r\nz\r\n", id="bom-and-crlf"),
    pytest.param(TOLD, b"def f():\r  x\r", f"def f():\r  {LOG[0]}\r  {LOG[1]}\r  return 0\r".encode(), id="cr-only"),
    pytest.param(RAISE, b"# coding: latin-1\r\ndef f(a):\r\n  x = '\xe9'\r\n", b"# coding: latin-1\r\ndef f(a):\r\n  if not a:\r\n    raise ValueError('a')\r\n  x = '\xe9'\r\n", id="latin-1-and-crlf"),
    pytest.param(RAISE, "'é'; \ndef f(a):\n  'é'; x\n".encode(), "'é'; \ndef f(a):\n  'é'\n  if not a:\n    raise ValueError('a')\n  x\n".encode(), id="non-ascii"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), BYTES)
def test_all_other_bytes_stay(op: Op, before: bytes, after: bytes) -> None:
    assert patched(op, before) == after


MISTAKES = [
    pytest.param(DisableFunction, {"function": "f()"}, "`f()` is not the name of a function", id="function"),
    pytest.param(DisableFunction, {"function": ""}, "`` is not the name of a function", id="empty"),
    pytest.param(DisableFunction, {"function": "f", "returns": "return"}, "`return` is not a Python expression", id="returns"),
    pytest.param(GuardEntry, {"function": "f", "condition": "a # b"}, "`a # b` is not a Python expression", id="comment"),
    pytest.param(GuardEntry, {"function": "f", "condition": "a", "returns": "1", "raises": "E"}, "`returns` and `raises` cannot both be", id="both"),
    pytest.param(GuardEntry, {"function": "f", "condition": "a", "imports": ("x = 1",)}, "`x = 1` is not an import", id="import"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "fields", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(op: type[Op], fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        op(**fields)
    assert str(error.value) == message


KINDS = "made = []\ndef f():\n    made.append(1)\n{}    return 1\n"


@pytest.mark.parametrize(
    ("text", "is_kind"),
    [
        (KINDS.format(""), inspect.isfunction),
        (KINDS.format("    yield 1\n"), inspect.isgeneratorfunction),
        ("async " + KINDS.format("").replace("made = []\n", ""), inspect.iscoroutinefunction),
        ("async " + KINDS.format("    yield 1\n").replace("    return 1\n", "").replace("made = []\n", ""), inspect.isasyncgenfunction),
    ],
    ids=["function", "generator", "coroutine", "async-generator"],
)  # fmt: skip
def test_disabled_function_stays_what_it_is_and_does_nothing(text: str, is_kind: object) -> None:
    names: dict[str, object] = {"made": []}
    exec(patched(OFF, text.encode()), names)
    assert is_kind(names["f"])
    result = names["f"]()
    if inspect.isgenerator(result):
        assert list(result) == []
    if inspect.iscoroutine(result):
        with pytest.raises(StopIteration) as stop:
            result.send(None)
        assert stop.value.value is None
    assert names["made"] == []


def test_disabled_function_logs_its_message(caplog: pytest.LogCaptureFixture) -> None:
    names: dict[str, object] = {"__name__": "app"}
    exec(patched(DisableFunction(function="f", message="100 % 'off'"), b"def f(): x\n"), names)
    with caplog.at_level(logging.WARNING):
        assert names["f"]() is None
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("app", "100 % 'off'")]


def test_guard_leaves_only_on_its_condition() -> None:
    names: dict[str, object] = {}
    op = GuardEntry(
        function="f", condition="a > limit()", returns="-1", imports=("from sys import getrecursionlimit as limit",)
    )
    exec(patched(op, b"def f(a): return a\n"), names)
    assert (names["f"](1), names["f"](10**9)) == (1, -1)


STATEMENTS = st.lists(
    st.sampled_from(["x = 1", "'text'", "y()", "if a: b", "for i in j:\n    k", "# c", "", "def g():\n    yield", "z = '''\n  s\n'''"]),
    min_size=1,
    max_size=5,
)  # fmt: skip


@settings(deadline=None)
@given(
    body=STATEMENTS,
    depth=st.integers(0, 2),
    unit=st.sampled_from(["  ", "    ", "\t"]),
    eol=st.sampled_from(["\n", "\r\n"]),
)
def test_whatever_stands_in_a_function_nothing_around_it_changes(
    body: list[str], depth: int, unit: str, eol: str
) -> None:
    head = [unit * n + f"class C{n}:" for n in range(depth)] + [unit * depth + "def f(a):"]
    inner = [unit * (depth + 1) + line for text in [*body, "last()"] for line in text.split("\n")]
    text = eol.join([*head, *inner, "after = 1", ""]).encode()
    for op in (OFF, TOLD, RAISE):
        result = patched(op, text)
        assert result.startswith(eol.join(head).encode())
        assert result.endswith(f"{eol}after = 1{eol}".encode())
        assert op is not RAISE or all(line in result.decode().split(eol) for line in inner)
