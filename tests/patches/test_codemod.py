"""Codemods: real ones change a file by as little as they can; every way to go wrong is contained and told."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT

from patchlock.catalogue import codemods
from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.codemod import Codemod

pytestmark = pytest.mark.slow

RENAME = """
import libcst as cst
from libcst.codemod import VisitorBasedCodemodCommand

class Rename(VisitorBasedCodemodCommand):
    DESCRIPTION = "renames a name"

    def __init__(self, context, old="old", new="new"):
        super().__init__(context)
        self.old, self.new = old, new

    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=self.new) if original_node.value == self.old else updated_node
"""
COMMAND = """
import libcst
from libcst.codemod import CodemodCommand, SkipFile

class Rename(CodemodCommand):
    def transform_module_impl(self, tree):
        {body}
        return tree
"""


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("a.py"), data)
    assert isinstance(source, SourceText)
    return source


def bound(code: str, **fields: object) -> codemods.BoundCodemod:
    declared = Codemod(module="rename.py", command="Rename")
    return codemods.BoundCodemod(declared=dataclasses.replace(declared, **fields), code=code)


def that(body: str, **fields: object) -> codemods.BoundCodemod:
    """Make a codemod of the body of its transformation."""
    return bound(COMMAND.format(body=body), **fields)


CHANGES = [
    pytest.param(b"x = old  # old\n", b"x = new  # old\n", [(4, 7)], id="one"),
    pytest.param(b"\xef\xbb\xbfold\r\n\r\nif old:\r\n\ty = old(old)\r\n", b"\xef\xbb\xbfnew\r\n\r\nif new:\r\n\ty = new(new)\r\n", [(0, 3), (10, 13), (21, 28)], id="bom-crlf-tabs"),
    pytest.param(b"# coding: latin-1\nx = '\xe9', old\n", b"# coding: latin-1\nx = '\xe9', new\n", [(27, 30)], id="latin-1-cookie"),
    pytest.param(b"x = 1\rold", b"x = 1\rnew", [(6, 9)], id="cr-and-no-final-newline"),
    pytest.param(b"a = 1\n\x0c\nold\n", b"a = 1\n\x0c\nnew\n", [(8, 11)], id="form-feed"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "ranges"), CHANGES)
def test_changes_only_what_it_must(before: bytes, after: bytes, ranges: list[tuple[int, int]]) -> None:
    op = bound(RENAME)
    source = read(before)
    located = op.locate(source)
    assert encode(splice(source, located.edits)) == after
    assert [(edit.start, edit.end) for edit in located.edits] == ranges
    assert op.locate(read(after)) == Located()


def test_sites_are_told_by_their_lines() -> None:
    located = bound(RENAME).locate(read(b"x = 1\n  \ny = (old,\n  old)\nold\n"))
    assert located.sites == (Site(line=3, text="y = (old,"), Site(line=4, text="old)"), Site(line=5, text="old"))


def test_arguments_reach_the_codemod() -> None:
    source = read(b"old = a\n")
    located = bound(RENAME, arguments={"old": "a", "new": "b"}).locate(source)
    assert splice(source, located.edits).text == "old = b\n"


def test_places_that_are_settled_are_told_by_their_lines() -> None:
    op = that("self.context.scratch['settled'] = [3, 1, 3, 9]")
    assert op.locate(read(b"a\nb\n c = 1\n".replace(b" c", b"c"))) == Located(
        settled=(Site(line=1, text="a"), Site(line=3, text="c = 1"))
    )


def test_settled_places_beside_changed_ones() -> None:
    op = that("self.context.scratch['settled'] = [1]; tree = libcst.parse_module(tree.code.replace('old', 'new'))")
    located = op.locate(read(b"x = 1\nold\n"))
    assert (located.sites, located.settled) == ((Site(line=2, text="old"),), (Site(line=1, text="x = 1"),))


def test_warnings_are_places_that_it_will_not_touch() -> None:
    op = that("self.warn('line 2: it is\\nanother one'); self.warn('no line')")
    assert op.locate(read(b"x\nold\n")) == Located(
        refusals=(
            Refusal(line=2, kind=OutcomeKind.AMBIGUOUS, why="it is another one"),
            Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why="no line"),
        )
    )


def test_settled_that_is_no_line_is_a_failure() -> None:
    [refusal] = that("self.context.scratch['settled'] = ['here']").locate(read(b"x\n")).refusals
    assert refusal.why.startswith("the codemod rename.py:Rename failed: it raised ValueError: ")


def test_file_that_is_skipped_needs_nothing() -> None:
    assert that("raise SkipFile('not mine')").locate(read(b"old\n")) == Located()


def test_long_chains_are_no_trouble() -> None:
    text = "x = " + " + ".join(["a"] * 2500 + ["old"]) + "\n"
    source = read(text.encode())
    located = bound(RENAME).locate(source)
    assert located.refusals == ()
    assert splice(source, located.edits).text == text.replace("old", "new")


NOT_EXACT = "LibCST does not give the file's text back, so that nothing can be changed safely"
CONTAINED = [
    pytest.param(that("raise ValueError('no\\nidea')"), "it raised ValueError: no idea", id="raises"),
    pytest.param(that("while True: pass", timeout=2), "it did not end within 2 seconds", id="loops"),
    pytest.param(that("def f(): return f()\n        f()"), "it raised RecursionError: maximum recursion depth exceeded", id="recurses"),
    pytest.param(that("print('hello')"), "it printed: hello", id="prints"),
    pytest.param(that("import sys; sys.exit(3)"), "it raised SystemExit: 3", id="exits"),
    pytest.param(that("import os; os._exit(0)"), "its process ended without an answer", id="ends-its-process"),
    pytest.param(that("import os; os._exit(3)"), "its process failed with exit code 3", id="fails-its-process"),
    pytest.param(that("import os; print('why', file=__import__('sys').stderr, flush=True); os._exit(3)"), "its process failed with exit code 3: why", id="says-why"),
    pytest.param(that("import subprocess, sys; subprocess.run([sys.executable])"), "it raised PermissionError: a codemod may not do `subprocess.Popen`", id="starts-a-program"),
    pytest.param(that("import os; os.system('true')"), "it raised PermissionError: a codemod may not do `os.system`", id="starts-a-shell"),
    pytest.param(that("import socket; socket.create_connection(('127.0.0.1', 9))"), "it raised PermissionError: a codemod may not do `socket.getaddrinfo`", id="network"),
    pytest.param(that("import socket; socket.socket()"), "it raised PermissionError: a codemod may not do `socket.__new__`", id="socket"),
    pytest.param(that("open('written', 'w')"), "it raised PermissionError: a codemod may not write written", id="writes"),
    pytest.param(that("from pathlib import Path; Path('x').unlink()"), "it raised PermissionError: a codemod may not do `os.remove`", id="removes"),
    pytest.param(that("return None"), "it raised AttributeError: 'NoneType' object has no attribute 'code'", id="returns-nothing"),
    pytest.param(that("import patchlock_neighbour"), "it raised ModuleNotFoundError: No module named 'patchlock_neighbour'", id="imports-what-is-not-there"),
    pytest.param(bound("class Rename: pass\n"), "it has no CodemodCommand of the name Rename", id="no-codemod"),
    pytest.param(bound("x = 1\n"), "it has no CodemodCommand of the name Rename", id="no-class"),
    pytest.param(bound("raise RuntimeError('at import')\n"), "it raised RuntimeError: at import", id="raises-at-import"),
    pytest.param(bound(RENAME, arguments={"other": "x"}), "it raised TypeError: Rename.__init__() got an unexpected keyword argument 'other'", id="unknown-argument"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "why"), CONTAINED)
def test_what_goes_wrong_is_one_sentence(
    op: codemods.BoundCodemod, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    refusal = Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=f"the codemod rename.py:Rename failed: {why}")
    located = op.locate(read(b"old\n"))
    assert dataclasses.replace(located, refusals=()) == Located()
    assert [r.why.split(" while")[0] for r in located.refusals] == [refusal.why]
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("text", ["x=1\n\n ", "a=1\n\\\nb=2\n"], ids=["last-line-of-blanks", "lone-backslash"])
def test_file_that_libcst_does_not_give_back_is_refused(text: str) -> None:
    [refusal] = bound(RENAME).locate(read(text.encode())).refusals
    assert refusal.why == f"the codemod rename.py:Rename failed: {NOT_EXACT}"


def test_code_that_does_not_parse_is_refused() -> None:
    body = "return tree.with_changes(header=[libcst.EmptyLine(comment=libcst.Comment('#\\nx = ='))])"
    [refusal] = that(body).locate(read(b"old\n")).refusals
    assert refusal.why.startswith("the codemod rename.py:Rename ")
    arguments = {"new": "return"}
    [refusal] = bound(RENAME, arguments=arguments).locate(read(b"x = 1\ny = old\n")).refusals
    assert (refusal.line, refusal.why) == (
        2,
        "the codemod rename.py:Rename made code that is none: it does not parse: invalid syntax",
    )


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why="it does not parse: '(' was never closed")
    assert bound(RENAME).locate(read(b"old(\n")) == Located(refusals=(refusal,))


def test_codemod_without_its_code_is_refused() -> None:
    [refusal] = Codemod(module="rename.py", command="Rename").locate(read(b"old\n")).refusals
    assert refusal.why == "the codemod rename.py cannot be run here"


MISTAKES = [
    pytest.param({"module": "../a.py"}, "`../a.py` is not the path of a .py file in the app's folder", id="outside"),
    pytest.param({"module": "/a.py"}, "`/a.py` is not the path of a .py file in the app's folder", id="absolute"),
    pytest.param({"module": "a.txt"}, "`a.txt` is not the path of a .py file in the app's folder", id="no-py"),
    pytest.param({"command": "a.B"}, "`a.B` is not the name of a class", id="dotted"),
    pytest.param({"timeout": 0}, "`timeout` is 0, and must be 1 to 600 seconds", id="no-time"),
    pytest.param({"timeout": 601}, "`timeout` is 601, and must be 1 to 600 seconds", id="too-long"),
]


@pytest.mark.parametrize(("fields", "message"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Codemod(**{"module": "a.py", "command": "A"} | fields)
    assert str(error.value) == message


def test_libcst_is_not_imported_by_the_process_that_asks() -> None:
    code = (
        "import sys; from pathlib import PurePosixPath\n"
        "from patchlock.catalogue import codemods\nfrom patchlock.model.text_files import SourceText\n"
        "from patchlock.patches.ops.codemod import Codemod\n"
        f"op = codemods.BoundCodemod(declared=Codemod(module='a.py', command='Rename'), code={RENAME!r})\n"
        "op.locate(SourceText(path=PurePosixPath('a.py'), text='old\\n', encoding='utf-8', bom=b'')).edits[0]\n"
        "assert not [name for name in sys.modules if name.startswith('libcst')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "installer"), "PATH": ""})


LITTLE_MEMORY = """
import sys
from pathlib import PurePosixPath
from patchlock.catalogue import codemods
from patchlock.model.errors import CommandFailedError
from patchlock.model.text_files import SourceText
from patchlock.patches.ops.codemod import Codemod
op = codemods.BoundCodemod(declared=Codemod(module="a.py", command="Rename"), code=sys.argv[1])
try:
    print(op.locate(SourceText(path=PurePosixPath("a.py"), text="old\\n", encoding="utf-8", bom=b"")))
except CommandFailedError as error:
    print(error)
"""


def with_memory(kilobytes: int, code: str) -> str:
    """Let a codemod work where processes may have no more address space than this."""
    command = ["sh", "-c", f'ulimit -v {kilobytes}; exec "$@"', "sh", sys.executable, "-c", LITTLE_MEMORY, code]
    env = {"PYTHONPATH": str(ROOT / "installer"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its address space")
def test_codemod_works_with_a_smaller_stack() -> None:
    assert "edits=(Edit(start=0, end=3, text='new'),)" in with_memory(400_000, RENAME)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its address space")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("x = 'x' * 10**9", "it raised MemoryError", id="python"),
        pytest.param(
            "import os; os.write(2, b'memory allocation of 64 bytes failed\\nmore\\n'); os.abort()",
            "its process was ended by SIGABRT: memory allocation of 64 bytes failed",
            id="rust",
        ),
        pytest.param(
            "import signal; signal.raise_signal(signal.SIGKILL)", "its process was ended by SIGKILL", id="kernel"
        ),
    ],
)
def test_too_little_memory_is_no_mistake_of_the_patch(body: str, why: str) -> None:
    said = with_memory(400_000, COMMAND.format(body=body))
    assert said.startswith(
        "the process that runs codemods has too little memory (a.py:Rename for a.py); close other programs or raise its "
        "limit (`ulimit -v`), then run the same command again"
    ), said
    assert why in said


def test_codemod_that_ends_its_process_or_goes_on_hinders_none_after_it() -> None:
    left = "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    for body in ("import os; os._exit(0)", left, "while True: pass"):
        that(body, timeout=2).locate(read(f"old  # {body}\n".encode()))
        assert bound(RENAME).locate(read(f"old  # after {body}\n".encode())).edits
