"""The op run-time-pip: which calls are replaced by what, which are left alone, what is refused, and that it settles."""

from __future__ import annotations

import ast
import contextlib
import io
from pathlib import PurePosixPath

import pytest

from patchlock.model.patch import Located, OutcomeKind, Refusal
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._run_time_pip.op import RunTimePip
from patchlock.patches.postconditions._run_time_pip import NoRunTimePip

ALL = RunTimePip()
PIP = "[sys.executable, '-m', 'pip', 'install', 'x']"
ARGV = "['pip', 'install', 'x']"


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("a.py"), data)
    assert isinstance(source, SourceText)
    return source


def patched(text: str, op: RunTimePip = ALL) -> str:
    """Apply the op, and see that it settles: the second time there is nothing to edit, and its mark is found."""
    source = read(text.encode())
    located = op.locate(source)
    assert located.refusals == ()
    assert located.edits
    result = splice(source, located.edits)
    again = op.locate(result)
    assert (again.edits, again.sites, again.refusals) == ((), (), ())
    assert len(again.settled) == len(located.sites)
    return result.text


def lines(text: str, op: RunTimePip = ALL) -> list[int]:
    located = op.locate(read(text.encode()))
    assert located.refusals == ()
    return [site.line for site in located.sites]


def says(command: str) -> str:
    return f"print('patchlock: not installed at run time: {command}', file=__import__(\"sys\").stderr)"


NOTHING = says("pip install x")
VALUES = [
    pytest.param(f"import subprocess\nsubprocess.run({PIP})\n", NOTHING, id="statement"),
    pytest.param(f"import subprocess\na = subprocess.call({PIP})\n", f"a = ({NOTHING} or 0)", id="call"),
    pytest.param(f"import subprocess\nif subprocess.check_call({PIP}): pass\n", f"if ({NOTHING} or 0): pass", id="check-call"),
    pytest.param(f"import subprocess\na = subprocess.run({PIP})\n", f'a = ({NOTHING} or __import__("subprocess").CompletedProcess([], 0, None, None))', id="run"),
    pytest.param(f"import subprocess\na = subprocess.run({PIP}, capture_output=True, text=True).stdout\n", f'a = ({NOTHING} or __import__("subprocess").CompletedProcess([], 0, "", "")).stdout', id="run-captured"),
    pytest.param(f"import subprocess\na = subprocess.check_output({PIP}).decode()\n", f'a = ({NOTHING} or b"").decode()', id="check-output"),
    pytest.param(f"import subprocess\na = subprocess.check_output({PIP}, universal_newlines=True)\n", f'a = ({NOTHING} or "")', id="check-output-text"),
    pytest.param("import subprocess\nc, t = subprocess.getstatusoutput('pip install x')\n", f'c, t = ({NOTHING} or (0, ""))', id="getstatusoutput"),
    pytest.param("import subprocess\na = subprocess.getoutput('pip install x')\n", f'a = ({NOTHING} or "")', id="getoutput"),
    pytest.param(f"import subprocess\nwith subprocess.Popen({PIP}, stdout=subprocess.PIPE) as p: pass\n", f'with ({NOTHING} or __import__("subprocess").Popen([__import__("sys").executable, "-c", ""], stdout=subprocess.PIPE)) as p: pass', id="popen"),
    pytest.param(f"from subprocess import Popen\nPopen({PIP}).wait()\n", f'({NOTHING} or __import__("subprocess").Popen([__import__("sys").executable, "-c", ""])).wait()', id="popen-used-at-once"),
    pytest.param("import os\na = os.system('pip install x')\n", f"a = ({NOTHING} or 0)", id="system"),
    pytest.param("import os\na = os.popen('pip install x').read()\n", f'a = ({NOTHING} or __import__("io").StringIO()).read()', id="popen-of-os"),
    pytest.param(f"import os\nos.execv(sys.executable, {PIP})\n", f'({NOTHING} or __import__("sys").exit(0))', id="exec-ends-the-process"),
    pytest.param("import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_shell('pip install x', stdout=-1)\n", f'    p = await ({NOTHING} or __import__("asyncio").create_subprocess_exec(__import__("sys").executable, "-c", "", stdout=-1))', id="asyncio"),
    pytest.param("import pip\na = pip.main(['install', 'x'])\n", f"a = ({NOTHING} or 0)", id="pips-api"),
    pytest.param("def f():\n    return(subprocess).run(['pip','install','x'])\nimport subprocess\n", f'    return(({NOTHING} or __import__("subprocess").CompletedProcess([], 0, None, None)))', id="glued-to-a-keyword"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), VALUES)
def test_a_call_becomes_what_its_callers_use(before: str, after: str) -> None:
    assert after in patched(before).splitlines()


SPELLINGS = [
    pytest.param("from subprocess import run as r\nr(['pip', 'install', 'x'])\n", id="function-by-another-name"),
    pytest.param("import subprocess as sp\nsp.run(('pip3', 'install', 'x'))\n", id="module-by-another-name"),
    pytest.param("from subprocess import *\nrun('pip install x', shell=True)\n", id="star"),
    pytest.param("import subprocess\nr = subprocess.run\nr('pip install x')\n", id="assigned-function"),
    pytest.param("import subprocess\ngetattr(subprocess, 'run')('pip install x')\n", id="getattr"),
    pytest.param("__import__('os').system('pip install x')\n", id="dunder-import"),
    pytest.param("import importlib\nimportlib.import_module('os').system('pip install x')\n", id="import-module"),
    pytest.param("import os\nos.system(f'{sys.executable} -m pip install {x}')\n", id="f-string"),
    pytest.param("import os\nos.system('{} -m pip install {}'.format(sys.executable, x))\n", id="format"),
    pytest.param("import os\nos.system('{p} install {x}'.format(p='pip', x=x))\n", id="format-by-name"),
    pytest.param("import os\nos.system('%s install %s' % ('pip', x))\n", id="percent"),
    pytest.param("import os\nos.system('cd y && pip install -q ' + x)\n", id="concatenated"),
    pytest.param("import os\nos.system('''\nset -e\npip install x\n''')\n", id="several-lines"),
    pytest.param("import subprocess\nsubprocess.run('pip install x'.split())\n", id="split"),
    pytest.param("import subprocess, shlex\nsubprocess.run(shlex.split(f'pip install {x}'))\n", id="shlex"),
    pytest.param("import subprocess\nsubprocess.run(' '.join(['pip', 'install', 'x']), shell=True)\n", id="joined"),
    pytest.param("import subprocess\nsubprocess.run(['pip', 'install'] + xs)\n", id="list-and-variable"),
    pytest.param("import subprocess\nsubprocess.run(['pip', 'install', *xs])\n", id="starred"),
    pytest.param("import subprocess\nsubprocess.run([*PIP, 'install'])\nPIP = [sys.executable, '-m', 'pip']\n" * 2, id="starred-prefix"),
    pytest.param("import os\nos.system(os.getenv('CMD', 'pip install x'))\n", id="default-of-a-variable"),
    pytest.param("import os\ndef f(k):\n    c = {'a': 'pip install x'}\n    os.system(c.get(k))\n", id="one-of-a-dictionary"),
    pytest.param("import subprocess\nsubprocess.run(args=['pip', 'install', 'x'])\n", id="keyword"),
    pytest.param("import subprocess\nk = {'args': 'pip install x', 'shell': True}\nsubprocess.run(**k)\n", id="keywords-in-a-dictionary"),
    pytest.param("import subprocess\nC = ['pip', 'install']\ndef f():\n    subprocess.run(C)\n", id="module-level-variable"),
    pytest.param("import subprocess\ndef f(x):\n    c = ['pip', 'install']\n    c.append(x)\n    subprocess.run(c)\n", id="appended"),
    pytest.param("import subprocess\ndef f(x):\n    c = [sys.executable, '-m']\n    c.extend(['pip', 'install', x])\n    subprocess.run(c)\n", id="extended"),
    pytest.param("import subprocess\ndef f(x):\n    c = ['pip']\n    c += ['install', x]\n    subprocess.run(c)\n", id="added"),
    pytest.param("import os\ndef f(x):\n    c = 'pip '\n    c += 'install '\n    c += x\n    os.system(c)\n", id="added-text"),
    pytest.param("import os\nclass A:\n    CMD = 'pip install x'\n    def f(self): os.system(self.CMD)\n", id="class-attribute"),
    pytest.param("import os\nclass A:\n    def __init__(self): self.c = 'pip install x'\n    def f(self): os.system(self.c)\n", id="instance-attribute"),
    pytest.param("import os\nfor c in ['ls', 'pip install x']: os.system(c)\n", id="loop"),
    pytest.param("import os\nC = {'a': 'pip install x'}\nos.system(C[k])\n", id="dictionary"),
    pytest.param("import os\nos.system('pip install x' if a else 'conda install x')\n", id="ternary"),
    pytest.param("import os\nos.system(os.environ.get('COMMAND', 'pip install x'))\n", id="default-of-a-variable"),
    pytest.param("import os\nif (c := 'pip install x'): os.system(c)\n", id="walrus"),
    pytest.param("import os\ndef command(x): return f'pip install {x}'\nos.system(command('x'))\n", id="made-by-a-function"),
    pytest.param("import subprocess\nsubprocess.run([shutil.which('pip'), 'install', 'x'])\n", id="which"),
    pytest.param("import subprocess\nsubprocess.run([os.path.join(v, 'bin', 'pip'), 'install', 'x'])\n", id="path"),
    pytest.param("import subprocess\nsubprocess.run([Path(v) / 'Scripts' / 'pip.exe', 'install', 'x'])\n", id="windows-path"),
    pytest.param("import os\nos.system('pip uninstall -y x')\n", id="uninstall"),
    pytest.param("import os\nos.system('pip download x')\n", id="download"),
    pytest.param("import os\nos.system('python -m pip --quiet install x')\n", id="option-first"),
    pytest.param("import os\nos.system('uv pip install x')\n", id="uv-pip"),
    pytest.param("import os\nos.system('uv add x')\n", id="uv-add"),
    pytest.param("import os\nos.system('conda install -y x')\n", id="conda"),
    pytest.param("import os\nos.system('mamba env update -f e.yml')\n", id="mamba"),
    pytest.param("import os\nos.system('easy_install x')\n", id="easy-install"),
    pytest.param("import os\nos.system('poetry add x')\n", id="poetry"),
    pytest.param("import os\nos.system('sudo -H pip3.11 install x')\n", id="sudo"),
    pytest.param("import os\nos.system('bash -c \"pip install x\"')\n", id="shell-in-a-shell"),
    pytest.param("import os\nos.spawnlp(os.P_WAIT, 'pip', 'pip', 'install', 'x')\n", id="spawn"),
    pytest.param("from pip._internal import main\nmain(['install', 'x'])\n", id="pip-internal"),
    pytest.param("try:\n    from pip import main as pipmain\nexcept ImportError:\n    from pip._internal import main as pipmain\npipmain(['install', 'x'])\n", id="pipmain"),
    pytest.param("import pip._internal.cli.main\npip._internal.cli.main.main(['install', 'x'])\n", id="pip-internal-cli"),
    pytest.param("import runpy, sys\nsys.argv = ['pip', 'install', 'x']\nrunpy.run_module('pip', run_name='__main__')\n", id="runpy"),
    pytest.param("import ensurepip\nensurepip.bootstrap()\n", id="ensurepip"),
    pytest.param("from setuptools.command import easy_install\neasy_install.main(['x'])\n", id="easy-install-as-a-function"),
    pytest.param("from setuptools.command.easy_install import main as e\ne(['-U', 'x'])\n", id="easy-install-by-another-name"),
    pytest.param("import subprocess\nsubprocess.run([sys.executable, 'setup.py', 'install'], cwd=d)\n", id="setup-install"),
    pytest.param("import os\nos.system('cd a && python setup.py build develop')\n", id="setup-develop"),
    pytest.param("import os\nos.system('pip install --dry-run x && pip install x')\n", id="tried-and-done"),
    pytest.param("import subprocess, functools\nrun = functools.partial(subprocess.run, check=True)\nrun(['pip', 'install', 'x'])\n", id="partial"),
    pytest.param("import subprocess\nfrom functools import partial as p\np(subprocess.call, cwd=d)('pip install x')\n", id="partial-at-once"),
    pytest.param("get_ipython().system('pip install x')\n", id="notebook"),
    pytest.param("get_ipython().run_line_magic('pip', 'install x')\n", id="notebook-magic"),
    pytest.param("import launch\nlaunch.run_pip('install x', 'x')\n", id="wrapper-of-elsewhere"),
    pytest.param("from tools import pip\npip('install', 'x')\n", id="words-to-a-wrapper-of-elsewhere"),
    pytest.param("from launch import run, python\nrun(f'\"{python}\" -m pip install {x}')\n", id="runner-of-elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_is_found(text: str) -> None:
    result = patched(text)
    assert result.count("patchlock: not installed at run time: ") == len(lines(text))
    ast.parse(result)


def wrapped(call: str, wrapper: str = "def w(c): subprocess.run(c, shell=True)\n") -> str:
    return f"import subprocess\n{wrapper}{call}\n"


WRAPPERS = [
    pytest.param(wrapped("w('pip install x')\nw('ls')"), [3], id="handed-on"),
    pytest.param(wrapped("w(c='pip install x')"), [3], id="by-keyword"),
    pytest.param(wrapped("v('pip install x')", "def v(c): w(c)\ndef w(c): subprocess.run(c, shell=True)\n"), [4], id="through-two"),
    pytest.param(wrapped("p('install x')\np('list')", "def p(a): subprocess.run([sys.executable, '-m', 'pip'] + a.split())\n"), [3], id="verb-told-by-the-caller"),
    pytest.param(wrapped("p('install', 'x')\np('show', 'x')", "def p(*a): subprocess.run(['pip', *a])\n"), [3], id="any-number-of-arguments"),
    pytest.param(wrapped("p('x')", "def p(x): subprocess.run(['pip', 'install', x])\n"), [2], id="built-inside"),
    pytest.param(wrapped("w()", "def w(c='pip install x'): subprocess.run(c)\n"), [3], id="default"),
    pytest.param("import os\nclass A:\n    def w(self, c): os.system(c)\n    def f(self): self.w('pip install x')\n", [4], id="method"),
    pytest.param("import os\nw = lambda c: os.system(c)\nw('pip install x')\n", [3], id="lambda"),
    pytest.param("import os\ndef f(c):\n    def g(): os.system(c)\n    g()\nf('pip install x')\n", [5], id="closure"),
    pytest.param("import os\ndef w(c):\n    c = f'. env && {c}'\n    os.system(c)\nw('pip install x')\nw('ls')\n", [5], id="wrapped-before-it-runs"),
    pytest.param("import os\ndef f():\n    c = 'pip install x'\n    os.system(c)\n    c = 'ls'\n    os.system(c)\n", [4], id="overwritten"),
    pytest.param("import os\ndef f():\n    if a: c = 'pip install x'\n    else:\n        c = 'ls'\n        os.system(c)\n", [], id="other-branch"),
    pytest.param("import os\nfor x in y:\n    os.system(c)\n    c = 'pip install x'\n", [3], id="next-round"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRAPPERS)
def test_the_call_that_tells_what_to_install_is_found(text: str, expected: list[int]) -> None:
    assert lines(text) == expected


UNTOUCHED = [
    pytest.param("import os\nos.system('pip --version')\nos.system('pip list')\nos.system('pip show x')\n", id="reads"),
    pytest.param("import subprocess\nsubprocess.check_output([sys.executable, '-m', 'pip', 'freeze'])\n", id="freeze"),
    pytest.param("import os\nos.system('pip check && pip config list && uv pip list && conda info')\n", id="more-reads"),
    pytest.param("import os\nos.system('pip --help')\nos.system('pip install --help; pip install -h; pip help install')\n", id="help"),
    pytest.param("import subprocess\nsubprocess.run(['pip', 'install', 'x', '--dry-run', '--report', '-'])\n", id="dry-run"),
    pytest.param("import os\nos.system('python setup.py build_ext --inplace; python setup.py bdist_wheel; git clone a/setup.py install')\n", id="setup-that-builds"),
    pytest.param("import subprocess\nfrom functools import partial\npartial(subprocess.run, ['pip', 'list'])()\n", id="partial-that-reads"),
    pytest.param("from setuptools.command import easy_install\neasy_install.main(['--help'])\n", id="help-of-easy-install"),
    pytest.param("import os\nos.system('uv run app.py; conda activate x; apt install pip')\n", id="other-programs"),
    pytest.param("import os\nos.system('npm install'); os.system('apt-get install -y ffmpeg')\n", id="other-installers"),
    pytest.param("import os\nos.system('echo pip install x')\n", id="echo"),
    pytest.param("import subprocess\nsubprocess.run(['git', 'commit', '-m', 'pip install x'])\n", id="message-of-git"),
    pytest.param("print('pip install x')\nraise ImportError('run pip install x')\n", id="advice"),
    pytest.param("'''pip install x'''\n# os.system('pip install x')\n", id="comment"),
    pytest.param("import logging\nlogging.info('pip install x')\nparser.add_argument('--pip-install')\n", id="other-calls"),
    pytest.param("import subprocess\nsubprocess.run(['pipeline', 'install'])\n", id="another-name"),
    pytest.param("import other\ncmd = other.make_pip_cmd(['install', 'x'])\n", id="maker-of-a-command"),
    pytest.param("import subprocess\ndef w(c): subprocess.run(c)\n", id="wrapper-alone"),
    pytest.param("def run(c): print(c)\nrun('pip install x')\n", id="function-that-starts-nothing"),
    pytest.param("x = ['pip', 'install']\n", id="no-call"),
    pytest.param("from other import start\nstart('install', 'x')\n", id="starter-without-a-program"),
]  # fmt: skip


@pytest.mark.parametrize("text", UNTOUCHED)
def test_leaves_alone(text: str) -> None:
    assert ALL.locate(read(text.encode())) == Located()


REFUSED = [
    pytest.param("import os\nx = f'{os.system(\"pip install x\")}'\n", 2, "it is inside an f-string, where places differ between versions of Python", id="f-string"),
    pytest.param("import subprocess\nsubprocess.run(['pip', *sys.argv])\n", 2, "it asks an installer for something that only running it would tell", id="untellable-verb"),
    pytest.param(f"import subprocess, threading\nthreading.Thread(target=subprocess.run, args=({ARGV},)).start()\n", 2, "it hands an executor on together with a command that installs", id="executor-handed-on"),
    pytest.param(f"import subprocess, functools\np = functools.partial(subprocess.run, {ARGV})\np()\n", 2, "it hands an executor on together with a command that installs", id="partial"),
    pytest.param("import launch\nlaunch.run('pip install x')[0]\n", 2, "its value is used, and what it would be cannot be told", id="unknown-value"),
    pytest.param("import os, asyncio\nasync def w(c): os.system(c)\nasyncio.run(w('pip install x'))\n", 3, "its value is used, and what it would be cannot be told", id="coroutine"),
    pytest.param("import os\n@os.system('pip install x')\ndef f(): pass\n", 2, "it is a decorator", id="decorator"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), REFUSED)
def test_refuses(text: str, line: int, why: str) -> None:
    refusal = Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why)
    assert ALL.locate(read(text.encode())) == Located(refusals=(refusal,))


def test_file_that_does_not_parse_is_refused_only_if_it_names_an_installer() -> None:
    assert ALL.locate(read(b"x = (\n")) == Located()
    assert ALL.locate(read(b"x = ( # pip install\n")).refusals[0].kind is OutcomeKind.UNPARSABLE


NO_PYTHON = [
    pytest.param("pip install x\n", 1, id="command"),
    pytest.param(
        "import os\n# why\npip install -r requirements.txt\nos.system('pip install x')\n", 3, id="behind-code"
    ),
    pytest.param("pip install 'x>=2'\r\nimport x\r\n", 1, id="quoted"),
    pytest.param("conda install x[y]", 1, id="last-line"),
]
OF_3_15 = ("lazy import pip # pip install\n", "x = [*a for a in 'pip install x']\n")
NEWER = [
    pytest.param("type X = int # pip install\n", id="3.12-type"),
    pytest.param("print(f'{f'{1}'}') # pip install\n", id="3.12-f-string"),
    pytest.param("try: pass\nexcept A, B: pass # pip install\n", id="3.14-except"),
    pytest.param("x = t'pip install'\n", id="3.14-t-string"),
    pytest.param(OF_3_15[0], id="3.15-lazy"),
    pytest.param(OF_3_15[1], id="3.15-unpacking"),
]
NOT_SURE = [
    pytest.param("x = [\npip install x\n]\n", id="inside-brackets"),
    pytest.param("if x:\n  pip install x\n", id="indented"),
    pytest.param("pip install x:\n  pass\n", id="begins-a-block"),
    pytest.param("pip install \\\nx\n", id="goes-on"),
    pytest.param("@a\npip install x\n", id="behind-what-is-not-whole"),
    pytest.param("pip install " + "(" * 100_000, id="too-deep-for-libcst"),
    pytest.param("pip install " + "-" * 200 + "x\n", id="too-long-for-libcst"),
]


@pytest.mark.parametrize(("text", "line"), NO_PYTHON)
def test_file_that_no_python_reads_is_broken_upstream(text: str, line: int) -> None:
    (refusal,) = ALL.locate(read(text.encode())).refusals
    assert (refusal.kind, refusal.line) == (OutcomeKind.BROKEN, line)
    assert refusal.why.startswith("no Python reads it, so that none of it can run, and it is left as it is: `")


@pytest.mark.parametrize("text", [*NEWER, *NOT_SURE])
def test_file_that_some_python_may_read_is_not_taken_for_broken(text: str) -> None:
    assert all(refusal.kind is not OutcomeKind.BROKEN for refusal in ALL.locate(read(text.encode())).refusals)


@pytest.mark.parametrize("text", NEWER)
def test_file_of_a_newer_python_is_promised_where_it_has_an_older_form(text: str) -> None:
    told = NoRunTimePip().problems(PurePosixPath("a.py"), text.encode())
    assert [problem for problem in told if "it does not parse: " not in problem] == []
    assert bool(told) == (text in OF_3_15 and not _parses(text))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(("text", "line"), NO_PYTHON)
def test_file_that_no_python_reads_installs_nothing(text: str, line: int) -> None:
    assert NoRunTimePip().problems(PurePosixPath("a.py"), text.encode()) == ()
    assert text.splitlines()[line - 1].startswith(("pip", "conda"))


def test_cell_that_no_python_reads_does_not_free_the_notebook() -> None:
    source = SourceText(path=PurePosixPath("a.ipynb"), text="pip install x\n", encoding="utf-8", bom=b"")
    assert [refusal.kind for refusal in ALL.locate(source).refusals] == [OutcomeKind.UNPARSABLE]


OF_WRAPPERS = [
    pytest.param("return subprocess.run(c)", '__import__("subprocess").CompletedProcess([], 0, None, None)', id="run"),
    pytest.param("r = subprocess.run(c); return r.returncode", "0", id="returncode"),
    pytest.param("return subprocess.run(c).returncode == 0", "True", id="success"),
    pytest.param("subprocess.run(c)\n    return True", "True", id="true"),
    pytest.param("r = subprocess.run(c)\n    return r.stdout or ''", '""', id="text"),
    pytest.param("p = subprocess.Popen(c)\n    return p.wait(), p.stdout", '(0, "",)', id="pair"),
    pytest.param("yield from subprocess.Popen(c).stdout", "iter(())", id="generator"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "value"), OF_WRAPPERS)
def test_wrapper_called_for_its_value_gives_one_like_it_returns(body: str, value: str) -> None:
    text = f"import subprocess\ndef w(c):\n    {body}\na = w('pip install x')\n"
    assert f"a = ({NOTHING} or {value})" in patched(text).splitlines()


USES = [
    pytest.param("a = run('pip install x')\nprint(a.returncode)\n", '__import__("subprocess").CompletedProcess([], 0, "", "")', id="process"),
    pytest.param("if run('pip install x') != 0: pass\n", "0", id="status"),
    pytest.param("if not run('pip install x'): pass\n", "True", id="success"),
    pytest.param("for line in run('pip install x'): pass\n", "iter(())", id="lines"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "value"), USES)
def test_function_of_elsewhere_gives_what_its_use_bears(use: str, value: str) -> None:
    assert f"({NOTHING} or {value})" in patched(f"from launch import run\n{use}")


def test_awaited_wrapper_is_replaced_with_its_await() -> None:
    text = "import asyncio\nasync def w(c):\n    p = await asyncio.create_subprocess_shell(c)\n    return await p.wait()\nasync def f():\n    if await w('pip install x'): pass\n"
    assert f"    if ({NOTHING} or 0): pass" in patched(text).splitlines()


def test_only_installs_of_the_named_packages() -> None:
    text = (
        "import os\ndef install(p): os.system(f'pip install {p}')\ninstall('Deep_Speed>=1')\ninstall('torch')\n"
        "os.system('pip install https://a/deep_speed-0.1-py3-none-any.whl')\nos.system('pip install deep-speed-extra')\n"
    )
    assert lines(text, RunTimePip(packages=("deep-speed",))) == [3, 5]


def test_only_within_the_named_functions() -> None:
    text = "import os\ndef f(): os.system('pip install x')\nclass A:\n    def g(self): os.system('pip install x')\n"
    assert lines(text, RunTimePip(within=("A.g",))) == [4]
    with pytest.raises(ValueError, match=r"^`a b` is not the name of a function$"):
        RunTimePip(within=("a b",))


BYTES = [
    pytest.param(b"\xef\xbb\xbfimport os\r\nos.system(\r\n 'pip install x')\r\n", b"\xef\xbb\xbfimport os\r\n%s\r\n", id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nimport os\ny = '\xe9'; os.system('pip install \xe9')", b"# coding: latin-1\nimport os\ny = '\xe9'; %s", id="latin-1"),
    pytest.param(b"import os\nif a:\n\tos.system('pip install x')\t# c\n", b"import os\nif a:\n\t%s\t# c\n", id="tabs"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    source = read(before)
    command = "pip install ?" if b"coding" in before else "pip install x"
    assert encode(splice(source, ALL.locate(source).edits)) == after % says(command).encode()


def test_patched_code_goes_on_and_says_what_was_left_out() -> None:
    text = (
        "import subprocess, sys\nCMD = [sys.executable, '-c', 'raise SystemExit(9)', 'pip', 'install', 'x']\n"
        "p = subprocess.Popen(CMD, stdout=subprocess.PIPE, text=True)\nout, _ = p.communicate()\n"
        "result = (p.returncode, out, subprocess.call(CMD), subprocess.check_output(CMD))\n"
    )
    names: dict[str, object] = {}
    with contextlib.redirect_stderr(io.StringIO()) as said:
        exec(patched(text), names)
    assert names["result"] == (0, "", 0, b"")
    assert said.getvalue() == "patchlock: not installed at run time: pip install x\n" * 3
