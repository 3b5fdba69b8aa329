"""The checks of patched Python files: what passes, what does not, and that they see one missing edit among many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest

from patchlock.model.patch import Ensure, Op
from patchlock.model.text_files import Edit, SourceText, decode, encode, splice
from patchlock.patches.ops._python import NeutraliseCall, ReplaceExpression
from patchlock.patches.ops.optional_import._op import OptionalImport
from patchlock.patches.postconditions._python import Calls, ImportsWithout, NoCall, NoString

PATH = PurePosixPath("a.py")
WITHOUT = ImportsWithout(package="deepspeed")
PLAIN = "it imports deepspeed when it is imported itself, and nothing ends the ImportError"
RUN = NoCall(callee="subprocess.run")
PIP = NoCall(callee="subprocess.run", mentions=("pip", "install"))
CUDA = NoString(value="cuda")


def problems(ensure: Ensure, text: str) -> tuple[str, ...]:
    return ensure.problems(PATH, text.encode())


HOLDS = [
    # imports-without
    pytest.param(WITHOUT, "import os\nfrom .deepspeed import a\nfrom . import deepspeed\n", id="other-imports"),
    pytest.param(WITHOUT, "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\ndeepspeed\n", id="bound-by-the-handler"),
    pytest.param(WITHOUT, "try:\n    from deepspeed import a as b\nexcept (KeyError, ModuleNotFoundError):\n    def b(): pass\nb()\n", id="bound-by-a-definition"),
    pytest.param(WITHOUT, "try:\n    from deepspeed import a, b, c\nexcept:\n    import a\n    class b: pass\n    with open('x') as c: pass\na, b, c\n", id="bound-in-other-ways"),
    pytest.param(WITHOUT, "deepspeed = None\ntry:\n    import deepspeed\nexcept ImportError:\n    pass\ndeepspeed\n", id="bound-before"),
    pytest.param(WITHOUT, "try:\n    import deepspeed\n    HAS = True\nexcept ImportError:\n    HAS = False\ndef f():\n    if HAS and x: deepspeed.a()\n    return deepspeed if HAS else None\n", id="read-behind-a-flag"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: pass\n", id="never-read"),
    pytest.param(WITHOUT, "try:\n    import deepspeed\n    HAS = True\nexcept ImportError:\n    HAS = False\nif HAS and x:\n    import deepspeed.a\nif not HAS: pass\nelse: import deepspeed.b\ndef f(): deepspeed\n", id="import-behind-a-flag"),
    pytest.param(WITHOUT, "if is_deepspeed_available(): import deepspeed\nHAS = importlib.util.find_spec('deepspeed') is not None\nif HAS: from deepspeed import a\n", id="asks-whether-it-is-there"),
    pytest.param(WITHOUT, "try:\n    try: import deepspeed\n    except ImportError: raise\nexcept Exception: deepspeed = 1\ndeepspeed\n", id="ended-further-out"),
    pytest.param(WITHOUT, "def f():\n    import deepspeed\nclass A:\n    def g(self): import deepspeed\nlambda: __import__('deepspeed')\n", id="functions-that-nobody-calls"),
    pytest.param(WITHOUT, "def f():\n    import deepspeed\n    deepspeed.a()\ntry: f()\nexcept ImportError: pass\n", id="called-in-a-try"),
    pytest.param(WITHOUT, "if TYPE_CHECKING:\n    import deepspeed\nif not typing.TYPE_CHECKING: pass\nelse: import deepspeed\n", id="type-checking"),
    pytest.param(WITHOUT, "def f(): import deepspeed\nif __name__ == '__main__':\n    import deepspeed\n    f()\n", id="main-guard"),
    # no-call
    pytest.param(RUN, "run()\nother.run()\nsubprocess.runs()\nsubprocess.run\nx.subprocess.run()\n", id="other-calls"),
    pytest.param(RUN, "def f():\n    return\n    subprocess.run()\nif False: subprocess.run()\nwhile 0: subprocess.run()\nif 1: pass\nelse: subprocess.run()\nraise x\nsubprocess.run()\n", id="dead-code"),
    pytest.param(RUN, "from elsewhere import run\nrun()\n", id="same-name-of-another"),
    pytest.param(PIP, "subprocess.run(['pip'], 'install')\nsubprocess.run()\nsubprocess.run(['pip', 'freeze'])  # pip install\n", id="mentioned-apart"),
    pytest.param(PIP, "def f():\n    c = ['pip', 'install']\ndef g():\n    c = ['pip']\n    subprocess.run(c)\n", id="variable-of-another-function"),
    # calls
    pytest.param(Calls(callee="a.b.c"), "import a.b as d\nd.c()\n", id="module-by-another-name"),
    pytest.param(Calls(callee="a.b.c"), "from a.b import c as d\nx = [d(1)]\n", id="function-by-another-name"),
    pytest.param(Calls(callee="a.b"), "import a\nc = a.b\nc()\n", id="assigned-name"),
    pytest.param(Calls(callee="*.get_providers"), "x = f(1)[0].get_providers()\n", id="method-of-anything"),
    pytest.param(Calls(callee="*.a.b"), "c.d().a.b()\n", id="method-of-an-attribute-of-anything"),
    # no-string
    pytest.param(CUDA, '"""cuda"""\nclass A:\n    "cuda"\n    def f(): "cuda"\n', id="docstrings"),
    pytest.param(CUDA, "x = 'cuda:0', b'cuda', f'cuda{x}', f'{x}cuda', f'{x:cuda}'  # 'cuda'\ncuda = x\n", id="other-strings"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "text"), HOLDS)
def test_holds(ensure: Ensure, text: str) -> None:
    assert problems(ensure, text) == ()
    assert problems(ensure, "x = = 1") != ()


FAILS = [
    # imports-without
    pytest.param(WITHOUT, "import os\nimport deepspeed.a\n", (f"line 2: {PLAIN}",), id="plain"),
    pytest.param(WITHOUT, "from deepspeed.a import b\nimport os, deepspeed as d\n", (f"line 1: {PLAIN}", f"line 2: {PLAIN}"), id="every-one"),
    pytest.param(WITHOUT, "if x:\n    class A:\n        with y:\n            import deepspeed\n", (f"line 4: {PLAIN}",), id="inside-blocks"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ValueError: deepspeed = None\n", (f"line 1: {PLAIN}",), id="handler-of-another-error"),
    pytest.param(WITHOUT, "try: pass\nexcept ImportError: import deepspeed\nelse: import deepspeed\nfinally: import deepspeed\n", tuple(f"line {n}: {PLAIN}" for n in (2, 3, 4)), id="beside-the-body-of-a-try"),
    pytest.param(WITHOUT, "try: from deepspeed import a, b\nexcept ImportError: a = 1\nb()\n", ("line 1: the handler in line 2 does not bind b",), id="unbound-name"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: HAS = 0\nif HAS: deepspeed\ndef f(x=deepspeed): pass\n", ("line 1: the handler in line 2 does not bind deepspeed",), id="read-without-asking-the-flag"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: x = 1\ndef f(): deepspeed\n", ("line 1: the handler in line 2 does not bind deepspeed",), id="read-later-and-no-flag"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: HAS = False\nHAS = g()\nif HAS:\n    from deepspeed import a\n", (f"line 5: {PLAIN}",), id="flag-that-others-set"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: HAS = False\ndef f():\n    global HAS\n    HAS = True\nif HAS: import deepspeed.a\n", (f"line 6: {PLAIN}",), id="flag-that-a-function-sets"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: HAS = False\nif not HAS: import deepspeed.a\nif HAS or x: import deepspeed.b\n", (f"line 3: {PLAIN}", f"line 4: {PLAIN}"), id="flag-that-does-not-keep"),
    pytest.param(WITHOUT, "if is_apex_available() or find_spec('apex'): import deepspeed\n", (f"line 1: {PLAIN}",), id="asks-for-another"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError: deepspeed = Stub()\ndeepspeed\nclass Stub: pass\n", ("line 1: the handler in line 2 uses Stub, which is not defined there",), id="handler-that-fails"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError as e: raise RuntimeError from e\n", ("line 1: it imports deepspeed, and the handler in line 2 raises again",), id="raised-again"),
    pytest.param(WITHOUT, "try: import deepspeed\nexcept ImportError:\n    if x: sys.exit()\n", ("line 1: it imports deepspeed, and the handler in line 2 raises again",), id="exit"),
    pytest.param(WITHOUT, "def f():\n    import deepspeed\nf()\n", (f"line 2: {PLAIN}",), id="called-function"),
    pytest.param(WITHOUT, "def g(): f()\ndef f():\n    import deepspeed\nx = [g() for y in z]\n", (f"line 3: {PLAIN}",), id="called-by-a-called-function"),
    pytest.param(WITHOUT, "def f(g):\n    import deepspeed\n@f\ndef h(): pass\n", (f"line 2: {PLAIN}",), id="decorator"),
    pytest.param(WITHOUT, "class A:\n    def __init__(self):\n        import deepspeed\n    def f():\n        import deepspeed\nA()\nA.f()\n", (f"line 3: {PLAIN}", f"line 5: {PLAIN}"), id="constructor-and-method"),
    pytest.param(WITHOUT, "def f():\n    import deepspeed\ng = f\ng()\n", (f"line 2: {PLAIN}",), id="function-by-another-name"),
    pytest.param(WITHOUT, "def f():\n    f()\n    import deepspeed\nf()\n", (f"line 3: {PLAIN}",), id="function-that-calls-itself"),
    pytest.param(WITHOUT, "import importlib\nx = importlib.import_module('deepspeed.a')\ny = __import__('deepspeed')\n", (f"line 2: {PLAIN}", f"line 3: {PLAIN}"), id="imported-by-a-call"),
    pytest.param(WITHOUT, "if not TYPE_CHECKING: import deepspeed\n", (f"line 1: {PLAIN}",), id="not-type-checking"),
    # no-call
    pytest.param(RUN, "def f():\n    subprocess.run()\nx = [lambda: subprocess.run(1)]\n", ("line 2: it calls subprocess.run", "line 3: it calls subprocess.run"), id="plain-call"),
    pytest.param(RUN, "import subprocess as sp\nsp.run()\n", ("line 2: it calls subprocess.run",), id="module-by-another-name"),
    pytest.param(RUN, "def f():\n    from subprocess import run as go\n    go()\n", ("line 3: it calls subprocess.run",), id="function-by-another-name"),
    pytest.param(RUN, "sp = subprocess\ngo = sp.run\ngo()\n", ("line 3: it calls subprocess.run",), id="assigned-names"),
    pytest.param(RUN, "subprocess = self.subprocess\nsubprocess.run()\n", ("line 2: it calls subprocess.run",), id="name-that-may-be-another"),
    pytest.param(RUN, "try: pass\nexcept E: subprocess.run()\nmatch x:\n    case 1: subprocess.run()\n", ("line 2: it calls subprocess.run", "line 4: it calls subprocess.run"), id="call-inside-blocks"),
    pytest.param(RUN, "if x: return_\nelse: subprocess.run()\nwhile 1: subprocess.run()\n", ("line 2: it calls subprocess.run", "line 3: it calls subprocess.run"), id="live-branches"),
    pytest.param(PIP, "subprocess.run([p, '-m', \"pip\", 'install'])\n", ("line 1: it calls subprocess.run with pip, install",), id="mentions"),
    pytest.param(PIP, "subprocess.run(shell=True, args=f'pip install {x}')\n", ("line 1: it calls subprocess.run with pip, install",), id="mentions-in-a-keyword"),
    pytest.param(PIP, "PIP = ['pip']\ndef f():\n    c = PIP\n    c += ['install']\n    subprocess.run([*PIP, *c])\n", ("line 5: it calls subprocess.run with pip, install",), id="mentions-in-variables"),
    pytest.param(NoCall(callee="f", mentions=('"a"',)), "f('a')\n", ('line 1: it calls f with "a"',), id="mentions-in-other-quotes"),
    # calls
    pytest.param(Calls(callee="a.b"), "a.b\na.b.c()\nb()\ndef f():\n    return\n    a.b()\n", ("it never calls a.b",), id="no-such-call"),
    pytest.param(Calls(callee="*.get_providers"), "get_providers()\nx.get_providers\n", ("it never calls *.get_providers",), id="no-such-method"),
    # no-string
    pytest.param(CUDA, "def f(d='cuda'):\n    x = f'cuda', f'{g(\"cuda\")}'\n    'cuda'\n", ("line 1: it has the string 'cuda'", "line 2: it has the string 'cuda'", "line 2: it has the string 'cuda'", "line 3: it has the string 'cuda'"), id="strings"),
    pytest.param(CUDA, "x = 1\n'cuda'\nmatch x:\n    case 'cu' 'da': pass\n", ("line 2: it has the string 'cuda'", "line 4: it has the string 'cuda'"), id="strings-that-are-no-docstrings"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "text", "expected"), FAILS)
def test_fails(ensure: Ensure, text: str, expected: tuple[str, ...]) -> None:
    assert problems(ensure, text) == expected


@pytest.mark.parametrize("ensure", [WITHOUT, RUN, Calls(callee="a"), CUDA], ids=lambda ensure: type(ensure).__name__)
def test_file_that_does_not_parse_is_a_problem(ensure: Ensure) -> None:
    assert problems(ensure, "x = 1\nx = = 1\n") == ("line 2: it does not parse: invalid syntax",)


MISTAKES = [
    pytest.param(ImportsWithout, "deepspeed.ops", "`deepspeed.ops` is not the name of a top-level package", id="submodule"),
    pytest.param(NoCall, "*.run", "`*.run` is not the dotted name of a function", id="any-receiver"),
    pytest.param(NoCall, "", "`` is not the dotted name of a function", id="empty"),
    pytest.param(Calls, "*.run()", "`run()` is not the dotted name of a function", id="call"),
]  # fmt: skip


@pytest.mark.parametrize(("ensure", "value", "message"), MISTAKES)
def test_name_that_could_never_be_found_is_a_mistake(ensure: Callable[..., Ensure], value: str, message: str) -> None:
    field = "package" if ensure is ImportsWithout else "callee"
    with pytest.raises(ValueError) as error:
        ensure(**{field: value})
    assert str(error.value) == message


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfx = 'cuda'\r\n",
        b"# coding: latin-1\nx = '\xe9', 'cuda'\n".replace(b"\n", b"\r\n"),
        b"x = 'cuda' # \xe9",
        b"x = 'cuda'\r",
    ],
    ids=["bom-and-crlf", "latin-1-cookie", "no-utf-8-and-no-cookie", "cr"],
)
def test_reads_bytes_as_python_does(data: bytes) -> None:
    line = 2 if b"coding" in data else 1
    assert CUDA.problems(PATH, data) == (f"line {line}: it has the string 'cuda'",)


def test_long_chains_are_no_trouble() -> None:
    chain = "x = " + " + ".join(["a"] * 900)
    assert problems(WITHOUT, f"{chain} + f()\nimport deepspeed\n") == (f"line 2: {PLAIN}",)
    assert problems(RUN, f"{chain} + subprocess.run()\n") == ("line 1: it calls subprocess.run",)
    assert problems(CUDA, f"{chain} + 'cuda'\n") == ("line 1: it has the string 'cuda'",)


# --- mutation: one edit of a result is left out -----------------------------------------------------------------------

IMPORTS = """\
import os, deepspeed
if os:
    from deepspeed.a import (
        B,
    )
class C(B):
    from deepspeed import D
    d: D = deepspeed
"""
INSTALLS = """\
import subprocess
subprocess.run([p, '-m', 'pip', 'install', 'a'])
def f():
    subprocess.run([p, '-m', 'pip', 'install', *b])
    return subprocess.run([p, '-m', 'pip', 'install'])
"""
STRINGS = "x = 'cuda'\ndef f(a='cuda'):\n    return {'cuda': a}['cuda']\n"
LOADS = "a.load()\nx = b.load(1)\n"

MUTATIONS = [
    pytest.param(OptionalImport(package="deepspeed"), (WITHOUT,), IMPORTS, id="imports-without"),
    pytest.param(NeutraliseCall(call="subprocess.run([$*a])"), (PIP,), INSTALLS, id="no-call"),
    pytest.param(NeutraliseCall(call="subprocess.run([$*a])"), (RUN,), INSTALLS, id="no-call-whatever-it-mentions"),
    pytest.param(ReplaceExpression(pattern='"cuda"', replacement="device()"), (CUDA,), STRINGS, id="no-string"),
    pytest.param(ReplaceExpression(pattern="$m.load($*a)", replacement="$m.open($*a)"), (Calls(callee="a.open"), Calls(callee="b.open")), LOADS, id="calls"),
]  # fmt: skip


def results(op: Op, text: str) -> tuple[SourceText, tuple[Edit, ...]]:
    source = decode(PATH, text.encode())
    assert isinstance(source, SourceText)
    return source, op.locate(source).edits


@pytest.mark.parametrize(("op", "ensures", "text"), MUTATIONS)
def test_one_missing_edit_is_seen(op: Op, ensures: tuple[Ensure, ...], text: str) -> None:
    source, edits = results(op, text)
    assert len(edits) > 1
    whole = encode(splice(source, edits))
    assert [ensure.problems(PATH, whole) for ensure in ensures] == [()] * len(ensures)
    for edit in edits:
        partial = encode(splice(source, tuple(other for other in edits if other != edit)))
        assert any(ensure.problems(PATH, partial) for ensure in ensures), edit
