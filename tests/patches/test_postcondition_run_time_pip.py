"""The ensure no-run-time-pip: it passes what the op leaves, and sees one missing edit among many."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._run_time_pip.op import RunTimePip
from patchlock.patches.postconditions._run_time_pip import NoRunTimePip

PATH = PurePosixPath("a.py")
NONE = NoRunTimePip()
SAYS = "it installs packages at run time"


def problems(text: str, ensure: NoRunTimePip = NONE) -> tuple[str, ...]:
    return ensure.problems(PATH, text.encode())


SPEAKER = """\
import sys
class Output:
    @staticmethod
    def error(error, message, code=1):
        sys.stderr.write(f"{error}: {message}")
        raise SystemExit(code)
"""
HOLDS = [
    pytest.param("import os\nos.system('pip list')\nos.system('pip show install')\nos.system('uv run x')\n", id="reads"),
    pytest.param("print('pip install x')\nif a: raise ImportError('pip install x')\nlog.info('pip install x')\n", id="advice"),
    pytest.param("import os\nif False: os.system('pip install x')\ndef f():\n    return\n    os.system('pip install x')\n", id="dead"),
    pytest.param("import os\nc = 'pip install x'\nc = 'ls'\nos.system(c)\n", id="overwritten"),
    pytest.param("import os\nos.system('git commit -m \"pip install x\"')\nos.system('apt-get install pip')\n", id="other-programs"),
    pytest.param("import other\nc = other.make_pip_cmd(['install', 'x'])\nc = []\n", id="made-and-dropped"),
    pytest.param("def run(c): print(c)\nrun('pip install x')\n", id="starts-nothing"),
    pytest.param("if a: raise SystemExit('x is missing: pip install x')\nSystemExit(['pip', 'install', 'x'])\n", id="last-words"),
    pytest.param(SPEAKER + "Output.error('Missing', 'x required: pip install x')\n", id="method-that-speaks-and-ends"),
]  # fmt: skip


@pytest.mark.parametrize("text", HOLDS)
def test_holds(text: str) -> None:
    assert problems(text) == ()
    assert problems(text + "import os\nos.system('pip install x')\n") != ()


FAILS = [
    pytest.param("import os\nos.system('pip install x')\n", [2], id="plain"),
    pytest.param("import os\ndef f():\n    os.system('conda install x')\n", [3], id="function-that-nobody-calls"),
    pytest.param("import subprocess\nsubprocess.run(['uv', 'pip', 'install', 'x'])\n", [2], id="uv"),
    pytest.param("from os import system as s\ns('pip install x')\n", [2], id="another-name"),
    pytest.param("import os\ndef w(c): os.system(c)\ndef v(c): w(c)\nv('pip install x')\nv('ls')\n", [4], id="through-two-functions"),
    pytest.param("import os\nc = 'pip '\nif a: c += 'list'\nelse: c += 'install x'\nos.system(c)\n", [5], id="one-branch"),
    pytest.param(SPEAKER + "class Shell:\n    def error(self, c): sys.modules['os'].system(c)\nShell().error('pip install x')\n", [9], id="method-of-the-same-name-that-starts"),
    pytest.param("import os\ndef SystemExit(c): os.system(c)\nSystemExit('pip install x')\n", [3], id="function-with-an-exceptions-name"),
    pytest.param("from subprocess import run as SystemExit\nraise SystemExit(['pip', 'install', 'x'])\n", [2], id="executor-with-an-exceptions-name"),
    pytest.param("import os\nclass RunFailed(Exception):\n    def __init__(self, c): os.system(c)\nraise RunFailed('pip install x')\n", [4], id="exception-that-starts"),
    pytest.param("import os\nraise SystemExit(os.system('pip install x'))\n", [2], id="status-of-an-installer"),
    pytest.param("import os\nfor a in b:\n    os.system(c)\n    c = 'pip install x'\n", [3], id="next-round"),
    pytest.param("import subprocess, threading\nthreading.Thread(target=subprocess.run, args=(['pip', 'install', 'x'],))\n", [2], id="executor-handed-on"),
    pytest.param("from somewhere import anything\nanything(['pip', 'install', 'x'])\n", [2], id="argument-list-to-anything"),
    pytest.param("x = f'{__import__(\"os\").system(\"pip install x\")}'\n", [1], id="in-an-f-string"),
    pytest.param("try: pass\nexcept E:\n    with x: os.system('easy_install x')\n", [3], id="in-a-handler"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), FAILS)
def test_fails(text: str, lines: list[int]) -> None:
    assert problems(text) == tuple(f"line {line}: {SAYS}" for line in lines)


def test_only_the_named_packages() -> None:
    text = "import os\nos.system('pip install deep_speed==1')\nos.system('pip install torch')\n"
    assert problems(text, NoRunTimePip(packages=("deep-speed",))) == (f"line 2: {SAYS}",)


def test_file_that_does_not_parse_does_not_pass() -> None:
    assert problems("x = (\n") == ("line 1: it does not parse: '(' was never closed",)


MANY = """\
import asyncio, os, pip, shlex, subprocess as sp
from subprocess import Popen
BASE = [sys.executable, "-m", "pip"]
class Installer:
    command = "uv pip install"
    def go(self): os.system(self.command + " x")
def run_cmd(cmd, **more): return sp.run(cmd, shell=True, **more)
def tool(*words): sp.check_call([*BASE, *words])
def one(x):
    args = ["pip3", "install"]
    args.append(x)
    sp.check_output(args)
def two(x):
    if x: run_cmd(f"pip install {x}")
    tool("install", x)
    tool("list")
    for c in ("conda install y", "ls"): sp.call(shlex.split(c))
    with Popen("pip install {}".format(x), shell=True, stdout=sp.PIPE) as p: p.wait()
    pip.main(["install", x])
async def three(x): await asyncio.create_subprocess_exec("pip", "uninstall", x)
if os.system("pip --version") == 0: os.popen("easy_install z").read()
"""


def test_one_edit_taken_out_of_a_result_is_seen() -> None:
    source = decode(PATH, MANY.encode())
    assert isinstance(source, SourceText)
    edits = RunTimePip().locate(source).edits
    assert len(edits) == 9
    assert NONE.problems(PATH, encode(splice(source, edits))) == ()
    for index, edit in enumerate(edits):
        mutated = encode(splice(source, (*edits[:index], *edits[index + 1 :])))
        line = source.text.count("\n", 0, edit.start) + 1
        assert NONE.problems(PATH, mutated) == (f"line {line}: {SAYS}",)
