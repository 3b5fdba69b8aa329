"""The op insert-statement: where statements go, in which style, what is refused, and that it settles."""

from __future__ import annotations

import ast
import tomllib

import pytest
from applied_ops import locate, read
from applied_ops import patched_and_settled as patched
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.patches.ops._insert_statement import InsertStatement

EVAL = InsertStatement(statement="$m.eval()", below="$m = load($*r)")
GUARD = InsertStatement(statement="if torch:\n    go($*r)\n", above="load($*r)")
TOP = InsertStatement(statement="import os\nimport sys", at="top")
START = InsertStatement(statement="x = '''\na\n'''\ngo()", at="start", within=("f",))
END = InsertStatement(statement="x = '''\na\n'''\ngo()", at="end", within=("f",))


CHANGES = [
    # after
    pytest.param(EVAL, "m = load(1)\n\n# c\nx\n", "m = load(1)\nm.eval()\n\n# c\nx\n", id="after"),
    pytest.param(EVAL, "def f():\n\ta.b[0] = load() # c\n\treturn", "def f():\n\ta.b[0] = load() # c\n\ta.b[0].eval()\n\treturn", id="target-and-comment"),
    pytest.param(EVAL, "m = load(\n  1)", "m = load(\n  1)\nm.eval()", id="after-the-last-line"),
    pytest.param(EVAL, "if x: m = load()\nelse: m = load(2); b # c\n", "if x: m = load(); m.eval()\nelse: m = load(2); m.eval(); b # c\n", id="in-one-line"),
    pytest.param(EVAL, "m = load(); b\n", "m = load(); m.eval(); b\n", id="semicolon"),
    pytest.param(EVAL, "a; m = load();\nb\n", "a; m = load();\nm.eval()\nb\n", id="last-of-a-line"),
    pytest.param(EVAL, "try: m = load(1)\nexcept E: m = load(2)\nfinally: n = load(3)\n", "try: m = load(1); m.eval()\nexcept E: m = load(2); m.eval()\nfinally: n = load(3); n.eval()\n", id="blocks-of-a-try"),
    pytest.param(EVAL, "match x:\n  case 1:\n    m = load()\n", "match x:\n  case 1:\n    m = load()\n    m.eval()\n", id="case"),
    pytest.param(EVAL, "m = load(1)\nn = load(2)\n", "m = load(1)\nm.eval()\nn = load(2)\nn.eval()\n", id="each"),
    pytest.param(EVAL, "m = load(1)\nn = load(2)\nn.eval()\n", "m = load(1)\nm.eval()\nn = load(2)\nn.eval()\n", id="one-is-settled"),
    pytest.param(InsertStatement(statement="$x = half($x)", below="$x = $x.to(d)"), "m = m.to(d)\na.b = c.to(d)\n", "m = m.to(d)\nm = half(m)\na.b = c.to(d)\n", id="assigned-and-read"),
    pytest.param(InsertStatement(statement="with a:\n  b\nfor c in d:\n  if e:\n    f", below="go()"), "class A:\n   go()\n", "class A:\n   go()\n   with a:\n      b\n   for c in d:\n      if e:\n         f\n", id="lines-of-two-blanks"),
    pytest.param(InsertStatement(statement="if a:\n    b\n    if c:\n        d", below="go()"), "class A:\n\tgo()\n", "class A:\n\tgo()\n\tif a:\n\t\tb\n\t\tif c:\n\t\t\td\n", id="tabs"),
    pytest.param(InsertStatement(statement="if a: b", below="go()"), "if x: go()\ny\n", "if x:\n    go()\n    if a: b\ny\n", id="block-behind-one-line"),
    pytest.param(InsertStatement(statement="if a: b", below="go()"), "while x: go(); y # c\n", "while x:\n    go()\n    if a: b\n    y # c\n", id="block-into-one-line"),
    pytest.param(InsertStatement(statement="if a: b", below="go()"), "class A:\n  z; go(); y\n", "class A:\n  z; go()\n  if a: b\n  y\n", id="block-between-semicolons"),
    # before
    pytest.param(GUARD, "x\n# c\nm = f(load(1, a=2)) # d\n", "x\n# c\nif torch:\n    go(1, a=2)\nm = f(load(1, a=2)) # d\n", id="before"),
    pytest.param(GUARD, "with load() as m:\n  load()\n", "if torch:\n  go()\nwith load() as m:\n  if torch:\n    go()\n  load()\n", id="head-of-a-block-and-inside"),
    pytest.param(GUARD, "@load(1)\n@d\ndef f(): pass\n", "if torch:\n    go(1)\n@load(1)\n@d\ndef f(): pass\n", id="decorator"),
    pytest.param(GUARD, "x; load(a); y\n", "x\nif torch:\n    go(a)\nload(a); y\n", id="before-between-semicolons"),
    pytest.param(InsertStatement(statement="a", above="return $x"), "def f(): return 1\n", "def f(): a; return 1\n", id="before-return-in-one-line"),
    # at
    pytest.param(TOP, "", "import os\nimport sys\n", id="top-of-nothing"),
    pytest.param(TOP, "# c", "# c\nimport os\nimport sys\n", id="top-of-a-comment"),
    pytest.param(TOP, "'''d'''\nfrom __future__ import a\n\nimport x\n", "'''d'''\nfrom __future__ import a\nimport os\nimport sys\n\nimport x\n", id="behind-docstring-and-future"),
    pytest.param(TOP, "#!x\n# license\nimport x\n", "#!x\n# license\nimport os\nimport sys\nimport x\n", id="behind-the-license"),
    pytest.param(TOP, "'d'; import x\n", "'d'; import os; import sys; import x\n", id="top-in-one-line"),
    pytest.param(START, 'def f():\n  """d"""\n  a\n', 'def f():\n  """d"""\n  x = \'\'\'\na\n\'\'\'\n  go()\n  a\n', id="start"),
    pytest.param(START, "async def f(): a\n", "async def f(): x = '''\na\n'''; go(); a\n", id="start-of-one-line"),
    pytest.param(END, "def f():\n   if x:\n      y\n# c", "def f():\n   if x:\n      y\n   x = '''\na\n'''\n   go()\n# c", id="end"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: InsertStatement, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


SETTLED = [
    pytest.param(EVAL, "m = load(1)\nm.eval()\n", 1, id="behind"),
    pytest.param(EVAL, "m = load(1)\nother(m)\nm.eval()\n", 1, id="further-behind"),
    pytest.param(GUARD, "if torch: go(1)\nother()\nload(1)\n", 3, id="further-in-front"),
    pytest.param(TOP, "# c\nimport x\nimport os; import sys\n", 1, id="elsewhere-at-the-top"),
    pytest.param(END, "def f():\n  x = '\\na\\n'\n  go()\n  return 1\n", 1, id="before-the-end"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line"), SETTLED)
def test_settled(op: InsertStatement, text: str, line: int) -> None:
    assert locate(op, text) == Located(settled=(Site(line=line, text=text.split("\n")[line - 1]),))


UNTOUCHED = [
    pytest.param(EVAL, "load(1)\nm += load(1)\nm = n = load(1)\nm: int = load(1)\n", id="another-statement"),
    pytest.param(GUARD, "load\nx = f'{load(1)}'\ndef load(): pass\n", id="no-such-call"),
    pytest.param(InsertStatement(statement="a", below="go()", within=("f",)), "go()\ndef g(): go()\n", id="outside-of-within"),
    pytest.param(START, "def g(): a\n", id="no-such-function"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), UNTOUCHED)
def test_leaves_alone(op: InsertStatement, text: str) -> None:
    assert locate(op, text) == Located()


NEVER = "what stands behind this line never runs"
REFUSED = [
    pytest.param(InsertStatement(statement="a", below="load()"), "def f():\n    return load()\n", 2, NEVER, id="behind-return"),
    pytest.param(END, "def f():\n  a\n  raise E\n", 1, NEVER, id="end-behind-raise"),
    pytest.param(GUARD, "if a: pass\nelif load(): pass\n", 2, "the change is not valid there", id="elif"),
    pytest.param(GUARD, "if x: load(1); load(2)\n", 1, "two changes meet in one place", id="two-blocks-into-one-line"),
    pytest.param(START, "class A:\n  def f(): x\nclass B:\n  def f(): x\n", 4, "`f` could be `A.f` or `B.f`; write which one", id="several-functions"),
    pytest.param(InsertStatement(statement="return", below="go()"), "go()\n", 1, "with the change, Python says: 'return' outside function", id="return-outside"),
    pytest.param(InsertStatement(statement="g(k=1, $*r)", below="f($*r)"), "f(2)\n", 1, "`g(k=1, 2)` is not a Python expression", id="positional-behind-keyword"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line", "why"), REFUSED)
def test_refuses(op: InsertStatement, text: str, line: int, why: str) -> None:
    located = locate(op, text)
    assert located.refusals == (Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),)
    assert located.edits == ()


ASKED = InsertStatement(statement="device = helper.asked(device, with_mps=True)", at="start", within=("f",))
DLLS = InsertStatement(statement="ort.preload_dlls()", below="import ort")
ENVIRON = InsertStatement(statement="import os\nos.environ.setdefault('A', '1')\nstart(os.environ)", at="top")
LIMIT = InsertStatement(statement="x.timeout = 30", above="x.go()")

EDITED = [
    pytest.param(ASKED, "def f(device):\n  'd'\n  device = helper.asked(device)\n", 3, id="an-option-is-gone"),
    pytest.param(ASKED, "def f(device):\n  log()\n  device = str(helper.asked(device, with_mps=False))\n", 3, id="wrapped"),
    pytest.param(DLLS, "import ort\nlog()\nort.preload_dlls(directory='')\n", 3, id="an-option-more"),
    pytest.param(DLLS, "import ort\ntry:\n  ort.preload_dlls()\nexcept E:\n  pass\n", 2, id="tried"),
    pytest.param(DLLS, "import ort\nif windows:\n  log()\n  ort.preload_dlls()\n", 2, id="on-a-condition"),
    pytest.param(EVAL, "m = load(1)\nm.eval(True)\n", 2, id="of-a-captured-name"),
    pytest.param(ENVIRON, "import os\nos.environ.setdefault('A', '0')\nstart(os.environ)\n", 2, id="a-line-in-the-middle"),
    pytest.param(ENVIRON, "import os as o\no.environ.setdefault('A', '1')\nstart(os.environ)\n", 3, id="the-first-lines"),
    pytest.param(ENVIRON, "import os\nos.environ.setdefault('A', '1')\nstart(o.environ, 2)\n", 2, id="the-last-line"),
    pytest.param(ENVIRON, "import os\nos.environ.setdefault('A', '1')\nx = 1\nstart(os.environ)\n", 2, id="a-line-more"),
    pytest.param(ENVIRON, "import os\nstart(os.environ)\n", 2, id="a-line-less"),
    pytest.param(LIMIT, "log()\nx.timeout = 60\nx.go()\n", 2, id="another-value"),
    pytest.param(InsertStatement(statement="def g(): a\ng()", at="top"), "def g():\n  b()\n  return a\ng(1)\n", 1, id="a-function"),
    pytest.param(InsertStatement(statement="if not x:\n  raise E('a')", at="top"), "if no(x):\n  raise E('a', x)\n", 1, id="raised"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "line"), EDITED)
def test_an_edited_form_is_no_second_time_put_there(op: InsertStatement, text: str, line: int) -> None:
    located = locate(op, text)
    first, *more = op.statement.replace("$m", "m").split("\n")
    shown = f"`{first} …`" if more else f"`{first}`"
    why = f"{shown} stands here in an edited form; write it as the patch has it, or remove it"
    refusal = Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why, is_edit=True)
    assert located == Located(refusals=(refusal,))


OF_UPSTREAM = [
    pytest.param(TOP, "import os\nx = os.name\n", id="an-import"),
    pytest.param(ENVIRON, "import os\nos.environ.setdefault('B', '1')\n", id="another-variable"),
    pytest.param(ASKED, "def f(device):\n  device = torch.device(device)\n  self.device = device\n", id="the-same-name"),
    pytest.param(ASKED, "def f(device):\n  x\ndef g(device):\n  device = helper.asked(device)\n", id="out-of-reach"),
    pytest.param(DLLS, "import ort\nort.set_level(3)\npreload_dlls()\n", id="another-function"),
    pytest.param(LIMIT, "x.timeout = 60\nlog()\nx.go()\n", id="a-value-further-away"),
    pytest.param(InsertStatement(statement="m = m.to(device)", below="m = load()"), "m = load()\nm = m.to(dtype)\n", id="other-arguments"),
    pytest.param(InsertStatement(statement="sys.path.append(os.getcwd())", at="top"), "sys.path.append(os.path.dirname(here))\n", id="another-folder"),
    pytest.param(InsertStatement(statement="if cuda.is_available():\n  a()\n  b()", at="top"), "if cuda.is_available():\n  c()\n", id="the-same-test"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), OF_UPSTREAM)
def test_what_only_resembles_it_is_none_of_ours(op: InsertStatement, text: str) -> None:
    patched(op, text.encode())


def test_an_edited_form_beside_a_place_without_one_is_refused_for_good() -> None:
    (refusal,) = locate(EVAL, "m = load(1)\nm.eval(True)\nn = load(2)\n").refusals
    assert (refusal.line, refusal.is_edit) == (2, False)


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it does not parse: '(' was never closed")
    assert locate(TOP, "W(\n") == Located(refusals=(refusal,))


BYTES = [
    pytest.param(EVAL, b"\xef\xbb\xbfm = load(a,\r\n  b)\r\nx\r\n", b"\xef\xbb\xbfm = load(a,\r\n  b)\r\nm.eval()\r\nx\r\n", id="bom-and-crlf"),
    pytest.param(GUARD, b"load(a,\r\n  b)\r\n", b"if torch:\r\n    go(a,\r\n  b)\r\nload(a,\r\n  b)\r\n", id="captured-lines-with-crlf"),
    pytest.param(GUARD, b"# coding: latin-1\rx='\xe9'; load('\xe9')\r", b"# coding: latin-1\rx='\xe9'\rif torch:\r    go('\xe9')\rload('\xe9')\r", id="latin-1-and-cr"),
    pytest.param(EVAL, "é = load('é')  # é\n".encode(), "é = load('é')  # é\né.eval()\n".encode(), id="non-ascii"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), BYTES)
def test_all_other_bytes_stay(op: InsertStatement, before: bytes, after: bytes) -> None:
    assert patched(op, before) == after


MISTAKES = [
    pytest.param({"statement": "x ="}, "`x =` is not Python code", id="statement"),
    pytest.param({"statement": " "}, "there is no statement", id="empty"),
    pytest.param({}, "exactly one of `above`, `below` and `at` must be there", id="no-place"),
    pytest.param({"above": "a", "below": "b"}, "exactly one of `above`, `below` and `at` must be there", id="two-places"),
    pytest.param({"at": "bottom"}, '`at` is "bottom", and must be "top", "start" or "end"', id="at"),
    pytest.param({"at": "start"}, '`at = "top"` has no `within`, "start" and "end" have one', id="start-of-what"),
    pytest.param({"at": "top", "within": ("f",)}, '`at = "top"` has no `within`, "start" and "end" have one', id="top-within"),
    pytest.param({"below": "if x: y"}, "`if x: y` has a block; write an expression of its first line", id="block"),
    pytest.param({"below": "a; b"}, "`a; b` is not one Python statement", id="two-statements"),
    pytest.param({"below": "$x"}, "`$x` matches every statement", id="everything"),
    pytest.param({"below": "f($x)", "statement": "$y"}, "$y of `$y` is not in the pattern", id="unknown-metavariable"),
    pytest.param({"below": "f()", "within": ("f()",)}, "`f()` is not the name of a function", id="within"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        InsertStatement(**{"statement": "x"} | fields)
    assert str(error.value) == message


def test_two_patches_at_one_anchor_both_settle() -> None:
    other = InsertStatement(statement="$m.half()", below="$m = load($*r)")
    both = patched(other, patched(EVAL, b"m = load()\n"))
    assert both == b"m = load()\nm.half()\nm.eval()\n"
    for op in (EVAL, other):
        assert (op.locate(read(both)).edits, len(op.locate(read(both)).settled)) == ((), 1)


LINES = st.lists(st.sampled_from(["m = load()", "m = load(1, *a)", "x()", "if a: m = load(k=1)", "if b: x(); m = load(); y()", "# c", "", "for i in j:\n    m = load(i)  # c\n    z = '''\n  s\n'''"]), min_size=1, max_size=6)  # fmt: skip


@settings(deadline=None)
@given(lines=LINES, eol=st.sampled_from(["\n", "\r\n"]), is_ended=st.booleans())
def test_every_load_is_followed_and_nothing_else_changes(lines: list[str], eol: str, is_ended: bool) -> None:
    text = ("m = load()\n" + "\n".join(lines)).replace("\n", eol) + eol * is_ended
    after = patched(EVAL, text.encode()).decode()
    assert after.count("m.eval()") == text.count("load(")
    assert sorted(ast.dump(n) for n in ast.walk(ast.parse(after)) if isinstance(n, ast.Assign)) == sorted(
        ast.dump(n) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Assign)
    )
    undone = after.replace("; m.eval()", "")
    kept = [line for line in undone.split(eol) if line.strip() != "m.eval()"]
    assert kept == text.split(eol)


def test_its_keys_can_be_written_in_a_table() -> None:
    text = """[[patch]]
id = "eval"
why = "w"
source = "s"
op = "insert-statement"
paths = ["a.py"]
after = []
statement = "$m.eval()"
below = "$m = load($*r)"
ensure = [{ check = "has-statement", statement = "m.eval()" }]
"""
    report = Report(file="a.toml", text="")
    (patch,) = _apps_and_profiles.patches(Table(tomllib.loads(text), report))
    assert (report.problems, patch.op) == ([], EVAL)
