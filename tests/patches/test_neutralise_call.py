"""The op neutralise-call: what must change, what must not, what is refused, and that it settles."""

from __future__ import annotations

import pytest
from applied_ops import locate, patched

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.patches.ops._python import NeutraliseCall

USED = "its value is used at once, which `None` does not bear"


def op(call: str, returns: str = "None", *within: str) -> NeutraliseCall:
    return NeutraliseCall(call=call, returns=returns, within=within)


PIP = op('subprocess.check_call([$python, "-m", "pip", "install", $*rest])')
RUN = op("run($*a)")


CHANGES = [
    pytest.param(PIP, "subprocess.check_call(\n    [sys.executable, '-m', 'pip', 'install', package])  # c\n", "None  # c\n", id="several-lines"),
    pytest.param(PIP, "subprocess.check_call([p(), '-m', 'pip', 'install'])\n", "None\n", id="empty-rest"),
    pytest.param(PIP, "subprocess.check_call([p, '-m', 'pip', 'install', '-q', *names])\n", "None\n", id="rest-with-a-star"),
    pytest.param(op("subprocess.run([$*command], $*more)", "Done(0)"), "x = subprocess.run(['a'], check=True).returncode\n", "x = Done(0).returncode\n", id="declared-value"),
    pytest.param(op("run()", "0 if a else 1"), "x = run() + 1\n", "x = (0 if a else 1) + 1\n", id="parentheses-where-needed"),
    pytest.param(op("run()", "{'a': 1}"), "return_ = run()\n", "return_ = {'a': 1}\n", id="no-parentheses-otherwise"),
    pytest.param(RUN, "run(run(1))\n", "None\n", id="outermost"),
    pytest.param(RUN, "if x: run(1); run(2)\n", "if x: None; None\n", id="several-in-a-line"),
    pytest.param(RUN, "def f():\n    return run(a, # c\n               b)\n", "def f():\n    return None\n", id="returned"),
    pytest.param(RUN, "x = [run(i) for i in y if run(i)]\n", "x = [None for i in y if None]\n", id="comprehension"),
    pytest.param(RUN, "def f(a=run()): pass\n", "def f(a=None): pass\n", id="default"),
    pytest.param(op("run($*a)", "None", "install", "A.g"), "run()\ndef install():\n    run()\n    async def h(): run()\nclass A:\n    def g(self): run()\nclass B:\n    def g(self): run()\n", "run()\ndef install():\n    None\n    async def h(): None\nclass A:\n    def g(self): None\nclass B:\n    def g(self): run()\n", id="within"),
    pytest.param(op("run($*a)", "run(0)"), "run(1)\nrun(0)\n", "run(0)\nrun(0)\n", id="declared-value-is-such-a-call"),
    pytest.param(op("run($*a)", "nothing()"), "with run() as x: pass\n", "with nothing() as x: pass\n", id="declared-value-bears-a-with"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: NeutraliseCall, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


UNTOUCHED = [
    pytest.param(PIP, "subprocess.check_call([p, '-m', 'pip', 'freeze'])\n", (), id="another-command"),
    pytest.param(PIP, "subprocess.check_call([p, '-m', 'pip', 'install'], env=e)\n", (), id="an-argument-more"),
    pytest.param(PIP, "subprocess.check_call((p, '-m', 'pip', 'install'))\n", (), id="a-tuple"),
    pytest.param(PIP, "subprocess.run([p, '-m', 'pip', 'install'])\n", (), id="another-function"),
    pytest.param(PIP, "# subprocess.check_call([p, '-m', 'pip', 'install'])\n", (), id="a-comment"),
    pytest.param(PIP, "x = None\n", (), id="none-settles-nothing"),
    pytest.param(RUN, "run\nx.run()\ndef run(a): pass\n", (), id="no-such-call"),
    pytest.param(op("run($*a)", "run(0)"), "run(0)\n", (Site(line=1, text="run(0)"),), id="declared-value-is-such-a-call"),
    pytest.param(op("run($*a)", "None", "install"), "@install(run())\ndef f(): run()\n", (), id="outside-of-within"),
    pytest.param(op("run($*a)", "None", "install"), "@run()\ndef install(a=run()) -> run(): pass\n", (), id="what-surrounds-a-function"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "settled"), UNTOUCHED)
def test_leaves_alone(op: NeutraliseCall, text: str, settled: tuple[Site, ...]) -> None:
    assert locate(op, text) == Located(settled=settled)


REFUSED = [
    pytest.param(RUN, "async def f():\n    await run()\n", 2, "it is awaited, and `None` need not be awaitable", id="awaited"),
    pytest.param(op("run($*a)", "g()"), "async def f(): await run()\n", 1, "it is awaited, and `g()` need not be awaitable", id="awaited-whatever-it-returns"),
    pytest.param(RUN, "x = f'{run()}'\n", 1, "it is inside an f-string, where places differ between versions of Python", id="f-string"),
    pytest.param(RUN, "\nx = run().returncode\n", 2, USED, id="attribute"),
    pytest.param(RUN, "x = run()[0]\n", 1, USED, id="item"),
    pytest.param(RUN, "x = run()()\n", 1, USED, id="called"),
    pytest.param(RUN, "for x in run(): pass\n", 1, USED, id="iterated"),
    pytest.param(RUN, "x = [a for a in run()]\n", 1, USED, id="comprehended"),
    pytest.param(RUN, "with run() as x: pass\n", 1, USED, id="with"),
    pytest.param(RUN, "f(*run())\n", 1, USED, id="star"),
    pytest.param(RUN, "a, b = run()\n", 1, "its value is unpacked, which `None` does not bear", id="unpacked"),
    pytest.param(RUN, "@run()\ndef f(): pass\n", 1, "it is a decorator, which `None` cannot be", id="decorator"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line", "why"), REFUSED)
def test_refuses(op: NeutraliseCall, text: str, line: int, why: str) -> None:
    assert locate(op, text) == Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


def test_sites_are_told_by_their_lines() -> None:
    located = locate(RUN, "if x:\n    a = run(\n        1)  # c\nrun(2)\n")
    assert located.sites == (Site(line=2, text="a = run("), Site(line=4, text="run(2)"))


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it does not parse: '(' was never closed")
    assert locate(RUN, "run(\n") == Located(refusals=(refusal,))


BYTES = [
    pytest.param(b"\xef\xbb\xbfx = run(\r\n  1)\r\ny = 1\r\n", b"\xef\xbb\xbfx = None\r\ny = 1\r\n", id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nx = '\xe9', run('\xe9'), '\xe9'\n", b"# coding: latin-1\nx = '\xe9', None, '\xe9'\n", id="latin-1-cookie"),
    pytest.param("x = 'é€𝄞'; run('é'); y = 'é'\n".encode(), "x = 'é€𝄞'; None; y = 'é'\n".encode(), id="non-ascii-before-the-site"),
    pytest.param(b"if x:\n\trun(\n\t\t1)\t# c\n", b"if x:\n\tNone\t# c\n", id="tabs"),
    pytest.param(b"x = 1\nrun(1)", b"x = 1\nNone", id="no-final-newline"),
    pytest.param(b"x = 1\rrun(\r1)\rz = 1\r", b"x = 1\rNone\rz = 1\r", id="cr-only"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    assert patched(RUN, before) == after


MISTAKES = [
    pytest.param("run", "None", (), "`run` is not a call", id="no-call"),
    pytest.param("run(", "None", (), "`run(` is not a Python expression", id="call"),
    pytest.param("run()", "pass", (), "`pass` is not a Python expression", id="returns"),
    pytest.param("run($x)", "$x", (), "`$x` has metavariables, which only a replaced expression can have", id="metavariables"),
    pytest.param("run()", "None", ("A.",), "`A.` is not the name of a function", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "returns", "within", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(call: str, returns: str, within: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError) as error:
        op(call, returns, *within)
    assert str(error.value) == message


def test_neutralised_call_is_not_made_when_the_file_runs() -> None:
    before = b"made = []\ndef install(name):\n    made.append(name)\n    return 0\nstatus = install('deepspeed')\n"
    for data, made, status in ((before, ["deepspeed"], 0), (patched(op("install($*a)", "1"), before), [], 1)):
        names: dict[str, object] = {}
        exec(data, names)
        assert (names["made"], names["status"]) == (made, status)
