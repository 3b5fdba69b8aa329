"""The op replace-expression: what must change, what must not, what is refused, and that it settles."""

from __future__ import annotations

import ast
import codecs

import pytest
from applied_ops import locate, patched, read
from hypothesis import assume, given
from hypothesis import strategies as st

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.patches.ops import _expressions
from patchlock.patches.ops._python import ReplaceExpression
from patchlock.patches.ops.syntax import parse_expression

F_STRING = "it is inside an f-string, where places differ between versions of Python"


def op(pattern: str, replacement: str, *within: str) -> ReplaceExpression:
    return ReplaceExpression(pattern=pattern, replacement=replacement, within=within)


CUDA = op('"cuda"', "device()")
MOVE = op("$x.cuda($*a)", "move($x, $*a)")
PROVIDERS = op("$ort.get_available_providers()", "usable($ort.get_available_providers())")


CHANGES = [
    pytest.param(PROVIDERS, "x = 'C' in ort.get_available_providers()  # c\n", "x = 'C' in usable(ort.get_available_providers())  # c\n", id="around-itself"),
    pytest.param(PROVIDERS, "y(onnxruntime . get_available_providers( ))\n", "y(usable(onnxruntime.get_available_providers()))\n", id="any-receiver"),
    pytest.param(op("f($*a)", "f($*a, k=1)"), "f(2)\n", "f(2, k=1)\n", id="wider-than-its-replacement"),
    pytest.param(op('"cuda"', "a if b else c"), "f(x + 'cuda', ['cuda'], k='cuda', **{'cuda': 'cuda'})\n", "f(x + (a if b else c), [a if b else c], k=a if b else c, **{a if b else c: a if b else c})\n", id="parentheses-only-where-brackets-do-not-divide"),
    pytest.param(op('"cuda"', "a, b"), "f('cuda', ['cuda'])\n", "f((a, b), [(a, b)])\n", id="tuple-among-arguments"),
    pytest.param(op("($x for x in $y)", "a"), "f(x for x in y)\n", "f(a)\n", id="generator-with-the-brackets-of-its-call"),
    pytest.param(MOVE, "a.cuda()\n", "move(a)\n", id="empty-rest"),
    pytest.param(MOVE, "a.cuda(1,  # one\n  k=(2), **d,\n)\n", "move(a, 1,  # one\n  k=(2), **d)\n", id="rest-with-comments"),
    pytest.param(MOVE, "(a +\n b).cuda()\n", "move(a +\n b)\n", id="captured-lines-into-brackets"),
    pytest.param(MOVE, "a.cuda().b.cuda(c.cuda())\n", "move(move(a).b, move(c))\n", id="outermost-and-what-it-captured"),
    pytest.param(MOVE, "-a.cuda() ** 2\n", "-move(a) ** 2\n", id="no-parentheses-around-a-call"),
    pytest.param(op("f($x)", "$x"), "y = f(a +\n  b)\n", "y = (a +\n  b)\n", id="captured-lines-out-of-brackets"),
    pytest.param(op("f($x)", "$x"), "f(a + b) * f(c)\n", "(a + b) * c\n", id="parentheses-only-where-needed"),
    pytest.param(op("f($x)", "$x"), "x = [f(a), f(b if c else d)]\n", "x = [a, b if c else d]\n", id="no-parentheses-in-a-list"),
    pytest.param(op("f()", "a, b"), "x = f()\ng(f())\nassert f(), c\n", "x = (a, b)\ng((a, b))\nassert (a, b), c\n", id="tuple"),
    pytest.param(op("f()", "(yield)"), "def g():\n    x = f()\n", "def g():\n    x = (yield)\n", id="yield"),
    pytest.param(op("f()", "(x := 1)"), "f()\ny = f()\n", "(x := 1)\ny = (x := 1)\n", id="assignment-expression"),
    pytest.param(op("f()", "a if b else c"), "f().d\nif f(): pass\n", "(a if b else c).d\nif a if b else c: pass\n", id="condition"),
    pytest.param(op('"cuda"', "d"), 'def f():\n    return"cuda"\n', "def f():\n    return(d)\n", id="glued-to-a-keyword-before"),
    pytest.param(op('"cuda"', "d"), 'x = "cuda"if a else"cuda"\n', "x = (d)if a else(d)\n", id="glued-to-a-keyword-behind"),
    pytest.param(op('"cuda"', "d"), 'for x in"cuda":pass\n', "for x in(d):pass\n", id="glued-in-a-statement"),
    pytest.param(CUDA, 'x = {"cuda": "cuda"}["cuda"]\n', "x = {device(): device()}[device()]\n", id="every-position"),
    pytest.param(CUDA, "a = 'cuda'; b = r\"cuda\"; c = '''cuda'''\n", "a = device(); b = device(); c = device()\n", id="every-spelling"),
    pytest.param(CUDA, "x = ('cu'\n     'da')\n", "x = (device())\n", id="implicit-concatenation"),
    pytest.param(CUDA, "def f(d='cuda', *, e: 'cuda' = 'cuda'): pass\n", "def f(d=device(), *, e: device() = device()): pass\n", id="defaults"),
    pytest.param(CUDA, "@g('cuda')\nclass A(B, k='cuda'): pass\n", "@g(device())\nclass A(B, k=device()): pass\n", id="decorator-and-class-keyword"),
    pytest.param(op('"cuda"', 'pick("cuda")'), "'cuda'\nx = 'cuda' + pick('cuda')\n", "'cuda'\nx = pick(\"cuda\") + pick('cuda')\n", id="replacement-holds-the-pattern"),
    pytest.param(op("f($x)", "g(f($x))"), "f(f(1))\n", "g(f(g(f(1))))\n", id="replacement-holds-the-pattern-nested"),
    pytest.param(op("f($x)", "$x + $x"), "f(a) + f(a)\n", "a + a + (a + a)\n", id="inside-what-looks-replaced"),
    pytest.param(op("a.b", "c"), "a.b.d = a.b\n", "c.d = c\n", id="only-what-is-read"),
    pytest.param(op("f($x)", "0"), "f(f'{f(1)}')\n", "0\n", id="what-is-dropped-is-not-looked-at"),
    pytest.param(op("(x for x in y)", "z"), "f(x for x in y)\n", "f(z)\n", id="the-call-keeps-its-parentheses"),
    pytest.param(op("f($x, $*a)", "g($*a, x=$x)"), "f(1, 2, *b)\n", "g(2, *b, x=1)\n", id="other-order"),
    pytest.param(op("1", "2", "f", "A.g"), "1\ndef f(x=1):\n    1\n    def h(): 1\nclass A:\n    1\n    def g(): 1\ndef g(): 1\n", "1\ndef f(x=1):\n    2\n    def h(): 2\nclass A:\n    1\n    def g(): 2\ndef g(): 1\n", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: ReplaceExpression, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


UNTOUCHED = [
    pytest.param(CUDA, '"""cuda"""\nclass A:\n    "cuda"\n    def f(): "cuda"\n', (), id="docstrings"),
    pytest.param(CUDA, "'cuda'\n", (), id="docstring-of-the-file"),
    pytest.param(CUDA, "x = f'cuda', f'{a}cuda', f'{a:cuda}', b'cuda', 'cuda:0'  # 'cuda'\n", (), id="other-strings"),
    pytest.param(MOVE, "a.cuda\na.b()\ncuda()\na.cuda = b\n", (), id="other-expressions"),
    pytest.param(MOVE, "move(a)\n", (Site(line=1, text="move(a)"),), id="replaced-already"),
    pytest.param(PROVIDERS, "x = usable(o.get_available_providers())\n", (Site(line=1, text="x = usable(o.get_available_providers())"),), id="replacement-around-the-pattern"),
    pytest.param(op("f($x)", "$x"), "g(1)\n", (), id="a-bare-metavariable-settles-nothing"),
    pytest.param(op("f()", "False"), "x = False\n", (), id="a-constant-settles-nothing"),
    pytest.param(op("f()", "torch.float32"), "x = torch.float32\n", (), id="a-dotted-name-settles-nothing"),
    pytest.param(op("f()", "'cpu'"), "x = 'cpu', ['cpu']\n", (), id="a-text-settles-nothing"),
    pytest.param(op("f()", "['a', -1]"), "x = ['a', -1]\n", (), id="a-list-of-constants-settles-nothing"),
    pytest.param(op("f()", "['a', g()]"), "x = ['a', g()]\n", (Site(line=1, text="x = ['a', g()]"),), id="a-list-with-a-call-settles"),
    pytest.param(op("a.b", "c"), "a.b = 1\ndel a.b\nfor a.b in (): pass\n", (), id="targets"),
    pytest.param(op("1", "2", "f"), "1\ndef g(): 1\n", (), id="outside-of-within"),
    pytest.param(op("1", "2", "f"), "2\n", (), id="settled-outside-of-within"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "settled"), UNTOUCHED)
def test_leaves_alone(op: ReplaceExpression, text: str, settled: tuple[Site, ...]) -> None:
    assert locate(op, text) == Located(settled=settled)


REFUSED = [
    pytest.param(MOVE, "x = f'{a.cuda()}'\n", 1, F_STRING, id="f-string"),
    pytest.param(CUDA, "x = f'{a:{d[\"cuda\"]}}'\n", 1, F_STRING, id="format-of-an-f-string"),
    pytest.param(CUDA, "match x:\n    case 'cuda': pass\n", 2, "it stands in a case pattern, which is not an expression", id="case-pattern"),
    pytest.param(op("f($*a)", "g(k=1, $*a)"), "f(2)\n", 1, "`g(k=1, 2)` is not a Python expression", id="positional-behind-keyword"),
    pytest.param(op("f($x).g()", "f($x)"), "\nf(1).g().g()\n", 2, "`f($x).g()` is there again after it was replaced", id="never-settles"),
    pytest.param(op("(x for x in y)", "a, b"), "f(x for x in y)\n", 1, "`a, b` cannot be used there as it is", id="parentheses-of-the-call"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line", "why"), REFUSED)
def test_refuses(op: ReplaceExpression, text: str, line: int, why: str) -> None:
    assert locate(op, text) == Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


def test_refused_place_does_not_hide_the_others() -> None:
    located = locate(CUDA, "x = 'cuda'\ny = f'{d[\"cuda\"]}'\n")
    assert located.sites == (Site(line=1, text="x = 'cuda'"),)
    assert located.refusals == (Refusal(line=2, kind=OutcomeKind.AMBIGUOUS, why=F_STRING),)


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=2, kind=OutcomeKind.UNPARSABLE, why="it does not parse: invalid syntax")
    assert locate(CUDA, "x = 'cuda'\nx = = 1\n") == Located(refusals=(refusal,))


def test_utf_16_is_no_python() -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="Python reads no utf-16-le")
    source = read(codecs.BOM_UTF16_LE + "x = 'cuda'\n".encode("utf-16-le"))
    assert CUDA.locate(source) == Located(refusals=(refusal,))


def test_long_chains_are_no_trouble() -> None:
    text = "x = " + " + ".join(["a"] * 900 + ["'cuda'"]) + "\n"
    assert patched(CUDA, text.encode()).decode() == text.replace("'cuda'", "device()")


BYTES = [
    pytest.param(b"\xef\xbb\xbfx = 'cuda'\r\ny = 1\r\n", b"\xef\xbb\xbfx = device()\r\ny = 1\r\n", id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nx = '\xe9', 'cuda', '\xe9'\n", b"# coding: latin-1\nx = '\xe9', device(), '\xe9'\n", id="latin-1-cookie"),
    pytest.param(b"x = 'cuda'  # \xe9\n", b"x = device()  # \xe9\n", id="no-utf-8-and-no-cookie"),
    pytest.param("x = 'é€𝄞', 'cuda', 'é'\n".encode(), "x = 'é€𝄞', device(), 'é'\n".encode(), id="non-ascii-before-the-site"),
    pytest.param(b"if x:\n\ty = 'cuda'\t# c\n", b"if x:\n\ty = device()\t# c\n", id="tabs"),
    pytest.param(b"x = 1\ny = 'cuda'", b"x = 1\ny = device()", id="no-final-newline"),
    pytest.param(b"x = 1\ry = 'cuda'\rz = 1\r", b"x = 1\ry = device()\rz = 1\r", id="cr-only"),
    pytest.param(b"x = 1\r\ny = ('''\n\r\n''', 'cuda')\n", b"x = 1\r\ny = ('''\n\r\n''', device())\n", id="mixed-endings"),
    pytest.param(b"x = 1\n\x0c\ny = '\x0c\x0b\x1c', 'cuda'\n", b"x = 1\n\x0c\ny = '\x0c\x0b\x1c', device()\n", id="form-feed-is-no-line-ending"),
    pytest.param("x = '\u2028\x85', 'cuda'\n".encode(), "x = '\u2028\x85', device()\n".encode(), id="unicode-line-separators-are-none"),
    pytest.param(b"x = 1 + \\\n  'cuda'\\\n\n", b"x = 1 + \\\n  device()\\\n\n", id="backslashes"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    assert patched(CUDA, before) == after


ENDLESS = "matches too, so that nobody can tell what is replaced already"
MISTAKES = [
    pytest.param("f(", "g()", (), "`f(` is not a Python expression", id="pattern"),
    pytest.param("f()", "return", (), "`return` is not a Python expression", id="replacement"),
    pytest.param("$x", "g($x)", (), "`$x` matches every expression", id="everything"),
    pytest.param("f($x)", "g($y, $*z)", (), "$y of `g($y, $*z)` is not in `f($x)`", id="unknown-metavariable"),
    pytest.param("f($x)", "g($*x)", (), "$x of `g($*x)` is not in `f($x)`", id="other-kind-of-metavariable"),
    pytest.param("'a'", '"a"', (), '`"a"` is what the pattern says already', id="the-same"),
    pytest.param("f($a, $b)", "f($b, $a)", (), f"all that `f($a, $b)` matches, `f($b, $a)` {ENDLESS}", id="swapped"),
    pytest.param("[$a, $b]", "[$b, $a]", (), f"all that `[$a, $b]` matches, `[$b, $a]` {ENDLESS}", id="swapped-list"),
    pytest.param("f($a, $b)", "f($*r)", (), "$r of `f($*r)` is not in `f($a, $b)`", id="wider"),
    pytest.param("a", "b", ("f()",), "`f()` is not the name of a function", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "replacement", "within", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(
    pattern: str, replacement: str, within: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError) as error:
        op(pattern, replacement, *within)
    assert str(error.value) == message


SLOTS = ["x = {}", "return_ = -{}", "f({}, *{}, k={})", "[{} for a in {} if {}]", "{}.b[{}]", "x[{}:{}]", "y = {} ** {}", "assert {}, {}", "del a[{}]", "for a in {}: x = ({})", "with {} as b: pass", "lambda: {}", "a = b = {} if {} else {}", "@{}\ndef f(): pass", "print({} , # c\n  {})"]  # fmt: skip
VALUES = ["q", "1", "(q)", "q + 1", "q.r(s)", "(q +\n 1)", "not q", "'é'"]
REPLACEMENTS = ["$x", "g($x)", "$x + $x", "$x if $x else $x", "lambda: $x", "$x, $x", "not $x", "$x.y", "{$x: [$x]}"]


@given(slot=st.sampled_from(SLOTS), value=st.sampled_from(VALUES), replacement=st.sampled_from(REPLACEMENTS))
def test_result_means_what_parentheses_everywhere_would_make_it_mean(slot: str, value: str, replacement: str) -> None:
    before = slot.replace("{}", f"h({value})")
    meant = slot.replace("{}", "(" + replacement.replace("$x", f"({value})") + ")")
    assume(value != "(q)" or replacement != "$x.y")
    result = patched(op("h($x)", replacement), f"{before}\n".encode()).decode()
    assert ast.dump(ast.parse(result)) == ast.dump(ast.parse(meant))


def test_work_grows_with_the_sites_and_not_with_their_square(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0

    def counting(text: str) -> ast.expr | None:
        nonlocal parsed
        parsed += len(text)
        return parse_expression(text)

    monkeypatch.setattr(_expressions, "parse_expression", counting)
    text = "table = [" + 'f(k=chr(1), **{2: "cuda"}), ' * 300 + "]\n"
    assert len(locate(CUDA, text).edits) == 300
    assert parsed < 10 * len(text)
