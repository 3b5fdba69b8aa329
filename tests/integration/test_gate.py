"""The gate of an environment: nothing installs while the app runs, politely, and nobody else is held up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here

from patchlock.core import atomic_files
from patchlock.environments import gate as the_gate
from patchlock.environments import venv
from patchlock.environments._children import gate

VERSION = venv.Version(f"{sys.version_info.major}.{sys.version_info.minor}")
SAYS = "patchlock: not installed at run time: {}: only what the lock names is installed; if mini then lacks something, require it in patches/mini/app.toml, with a patch whose op is `add-requirement`, and run `patchlock lock mini --profile tiny` and `patchlock install mini --profile tiny`\n"


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a real environment with its gate; a folder whose name needs quoting."""
    folder = tmp_path_factory.mktemp("home of it's") / "mini@tiny" / "environments" / "one"
    held = os.open(tmp_path_factory.mktemp("lock") / "lock", os.O_CREAT | os.O_RDWR)
    venv.create(folder, VERSION, lock=held)
    os.close(held)
    return folder


@pytest.fixture
def env(generation: Path) -> dict[str, str]:
    """Name the variables of a launched app."""
    return venv.launch_variables(generation, {}, {})


def run(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def python(env: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    return run(env, "python", "-c", f"import os, subprocess, sys\n{code}")


def test_gate_is_compiled_in_the_environment_wherever_bytecode_goes(
    generation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = next(generation.glob("lib/python*/site-packages")) / "__pycache__"
    shutil.rmtree(kept)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    the_gate.install_gate(generation, venv.interpreter(generation))
    assert {path.name.partition(".")[0] for path in kept.iterdir()} == {"_patchlock_gate", "_patchlock_preload"}
    assert not (tmp_path / "elsewhere").exists()


COMMANDS = [
    pytest.param(("python", "-m", "pip", "install", "x"), "pip install x", id="module"),
    pytest.param(("python", "-sImpip", "install", "x"), "pip install x", id="module-glued"),
    pytest.param(("python", "-X", "utf8", "-W", "ignore", "-m", "pip", "-q", "install", "x"), "pip -q install x", id="options"),
    pytest.param(("python", "-m", "ensurepip"), "ensurepip", id="ensurepip"),
    pytest.param(("pip", "install", "x"), "pip install x", id="pip"),
    pytest.param(("pip3", "uninstall", "-y", "x"), "pip3 uninstall -y x", id="pip3"),
    pytest.param(("uv", "pip", "install", "x"), "uv pip install x", id="uv-pip"),
    pytest.param(("uv", "sync"), "uv sync", id="uv-sync"),
    pytest.param(("conda", "install", "-y", "x"), "conda install -y x", id="conda"),
    pytest.param(("mamba", "env", "update"), "mamba env update", id="mamba"),
    pytest.param(("easy_install", "x"), "easy_install x", id="easy-install"),
    pytest.param(("sh", "-c", "cd / && pip install x && true"), "pip install x", id="shell"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "told"), COMMANDS)
def test_installers_do_nothing_and_say_so(env: dict[str, str], argv: tuple[str, ...], told: str) -> None:
    done = (
        run(env, *argv)
        if argv[0] != "python"
        else run(env, str(Path(env["VIRTUAL_ENV"]) / "bin" / "python"), *argv[1:])
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", SAYS.format(told))


CALLS = [
    pytest.param("assert os.system('pip install x') == 0", id="system"),
    pytest.param("subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])", id="check-call"),
    pytest.param("assert subprocess.check_output(['pip', 'install', 'x']) == b''", id="check-output"),
    pytest.param("subprocess.run([sys.executable, '-c', 'import os; os.system(\"python -m pip install x\")'])", id="nested"),
    pytest.param("import pip\nassert pip.main(['install', 'x']) == 0", id="pips-api"),
    pytest.param("from pip._internal import main\nassert main(['install', 'x']) == 0", id="pip-internal"),
    pytest.param("from pip._internal.cli.main import main\nassert main(['install', 'x']) == 0", id="pip-internal-cli"),
    pytest.param("import runpy\nsys.argv = ['pip', 'install', 'x']\nrunpy.run_module('pip', run_name='__main__')", id="runpy"),
]  # fmt: skip


@pytest.mark.parametrize("code", CALLS)
def test_an_app_that_installs_goes_on(env: dict[str, str], code: str) -> None:
    done = python(env, f"{code}\nprint('went on')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", SAYS.format("pip install x"))


def test_pip_is_not_there_for_who_only_asks(env: dict[str, str]) -> None:
    code = "import importlib.util\nprint(importlib.util.find_spec('pip'))\nimport pip\ntry: pip.main(['list'])\nexcept ImportError as e: print(e)"
    assert python(env, code).stdout == "None\nNo module named 'pip'\n"
    done = run(env, str(Path(env["VIRTUAL_ENV"]) / "bin" / "python"), "-m", "pip", "list")
    assert (done.returncode, "not installed" in done.stderr) == (1, False)


def test_reading_reaches_the_real_program_and_its_exit_code(env: dict[str, str], tmp_path: Path) -> None:
    real = tmp_path / "conda"
    real.write_text('#!/bin/sh\necho "real $*"\nexit 7\n')
    real.chmod(0o755)
    env = {**env, "PATH": f"{env['PATH']}{os.pathsep}{tmp_path}"}
    done = run(env, "conda", "list", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (7, "real list a b\n", "")
    done = run(env, "conda", "install", "x")
    assert (done.returncode, done.stdout) == (0, "")
    done = run({**env, "PATH": os.pathsep.join(env["PATH"].split(os.pathsep)[:2])}, "mamba", "list")
    assert (done.returncode, done.stderr) == (127, "mamba: command not found\n")


def test_a_pip_that_is_installed_lists_and_does_not_install(env: dict[str, str], generation: Path) -> None:
    (packages,) = generation.glob("lib/python*/site-packages")
    inside = packages / "pip" / "_internal" / "cli"
    inside.mkdir(parents=True)
    for folder in (inside.parent.parent, inside.parent, inside):
        (folder / "__init__.py").touch()
    (inside / "main.py").write_text("def main(args=None):\n    print('real', args)\n    return 5\n")
    try:
        done = python(env, "from pip._internal.cli.main import main\nprint(main(['list']), main(['install', 'x']))")
    finally:
        atomic_files.remove_tree(packages / "pip")
    assert (done.stdout, done.stderr) == ("real ['list']\n5 0\n", SAYS.format("pip install x"))


def test_a_person_at_his_own_shell_is_not_gated(generation: Path) -> None:
    env = {"PATH": f"{generation / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(generation)}
    done = run(env, str(generation / "bin" / "python"), "-m", "pip", "install", "x")
    assert (done.returncode, "No module named pip" in done.stderr) == (1, True)
    code = "import sys; print([type(f).__name__ for f in sys.meta_path if '_patchlock' in type(f).__module__])"
    assert run(env, str(generation / "bin" / "python"), "-c", code).stdout == "[]\n"


def test_an_installed_app_is_gated_when_it_runs_and_when_it_is_checked(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    text = "import os, sys\nif __name__ == '__main__':\n    print('computed on cpu', os.system(sys.executable + ' -m pip install x'))\nX = 'cuda'\n"
    (world.upstream / "app.py").write_text(text)
    world.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    assert 'says-where: `python app.py` prints "computed on cpu"' in done.stdout
    done = patchlock("run", "mini")
    assert (done.returncode, done.stdout, done.stderr) == (0, "computed on cpu 0\n", SAYS.format("pip install x"))
    assert patchlock("verify", "mini").returncode == 0
    assert patchlock("uninstall", "mini").returncode == 0
    assert not any((tmp_path / "installed").glob("mini*"))


def test_the_gate_does_not_reach_our_own_programs(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_GATE", env["PATCHLOCK_GATE"])
    assert "PATCHLOCK_GATE" not in venv.process.environment()


STARTED = [
    pytest.param(["python", "app.py", "-m", "pip", "install"], ("app.py", ["-m", "pip", "install"]), id="script"),
    pytest.param(["python", "/a/bin/pip3.11", "install", "x"], ("pip", ["install", "x"]), id="script-of-pip"),
    pytest.param(["python", "-c", "x", "-m", "pip"], ("", []), id="code"),
    pytest.param(["python", "-Wignore", "-Bm", "pip.__main__", "list"], ("pip", ["list"]), id="glued"),
    pytest.param(["python", "--check-hash-based-pycs", "always", "-m", "uv", "add"], ("uv", ["add"]), id="long-option"),
    pytest.param(["python"], ("", []), id="nothing"),
    pytest.param(["python", "-"], ("-", []), id="stdin"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "expected"), STARTED)
def test_what_a_python_was_started_for(argv: list[str], expected: tuple[str, list[str]]) -> None:
    assert gate.started(argv) == expected


READS = ["pip list", "pip --version", "pip show install", "pip install --help", "pip install --dry-run x", "uv run x add", "uv pip list", "conda info", "pip"]  # fmt: skip


@pytest.mark.parametrize("command", READS)
def test_reading_is_let_through(command: str) -> None:
    program, *arguments = command.split()
    assert not gate.installs(program, arguments)


def test_start_of_python_imports_nothing_but_the_gate(env: dict[str, str], generation: Path) -> None:
    program = str(generation / "bin" / "python")
    without = {name: value for name, value in env.items() if name != "PATCHLOCK_GATE"}
    words = (program, "-c", "import sys; print(*sys.modules)")
    closed, opened = (set(run(variables, *words).stdout.split()) for variables in (env, without))
    assert {name for name in closed - opened if "patchlock" not in name} <= {"__future__"}
