"""What a person's machine may have set up for other Pythons does not reach an app, and what does is named."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import miniature
import pytest

from patchlock.core import uv
from patchlock.environments import venv
from patchlock.verify import checks
from patchlock.verify.checks import CheckContext, CheckResult

VERSION = venv.Version(f"{sys.version_info.major}.{sys.version_info.minor}")


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with alpha 1.0, in a folder whose name needs quoting."""
    folder = tmp_path_factory.mktemp("home of it's") / "mini@tiny" / "environments" / "one"
    held = os.open(tmp_path_factory.mktemp("lock") / "lock", os.O_CREAT | os.O_RDWR)
    venv.create(folder, str(VERSION), lock=held)
    os.close(held)
    wheel = miniature.wheel(tmp_path_factory.mktemp("wheels"), "alpha", "1.0")
    python = str(venv.interpreter(folder))
    command = [str(uv.find()), "pip", "install", "-q", "--offline", "--no-index", "--python", python, str(wheel)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Make the app's folder."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.py").write_text("import alpha, sys; print(alpha.__file__, sys.flags.safe_path)\n")
    return folder


def place(generation: Path, app: Path) -> CheckContext:
    """Say where the app runs, with what the environment of this process has now."""
    return CheckContext(environment=generation, folder=app, variables=venv.launch_variables(generation, {}, {}))


def proved(generation: Path, app: Path) -> CheckResult:
    """Run the check."""
    return checks.isolation(place(generation, app))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Make a folder with modules that must not be found."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("alpha", "sitecustomize", "usercustomize"):
        (folder / f"{name}.py").write_text("raise SystemExit('found elsewhere')\n")
    return folder


def _user_site(folder: Path) -> Path:
    """Make a user site with a sitecustomize and an alpha; its place is the same for every Python of this version."""
    packages = folder / "lib" / f"python{VERSION}" / "site-packages"
    packages.mkdir(parents=True)
    for name in ("alpha", "sitecustomize", "usercustomize"):
        (packages / f"{name}.py").write_text("raise SystemExit('found in the user site')\n")
    return folder


def _other_python(folder: Path) -> Path:
    folder.mkdir()
    (folder / "python").write_text("#!/bin/sh\necho the wrong python; exit 3\n")
    (folder / "python").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"),
        *("PYTHONSAFEPATH", "PYTHONOPTIMIZE", "PYTHONINSPECT", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
        *("CONDA_PYTHON_EXE", "_CE_CONDA", "PIP_TARGET", "PIP_USER"),
    ],
)
def test_variable_of_another_python_reaches_no_app(
    generation: Path, app: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, str(elsewhere))
    assert proved(generation, app).passed, proved(generation, app).detail
    done = subprocess.run(
        [str(generation / "bin" / "python"), "app.py"],
        env=dict(place(generation, app).variables),
        cwd=app,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{next(generation.glob('lib/python*'))}/site-packages/alpha.py False\n", done.stderr


def test_user_site_and_a_python_earlier_on_path_are_not_seen(
    generation: Path, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _user_site(Path.home() / ".local")
    monkeypatch.setenv("PATH", f"{_other_python(tmp_path / 'first')}{os.pathsep}{os.environ['PATH']}")
    result = proved(generation, app)
    assert (result.passed, result.detail) == (True, "only the environment, the app's folder and the standard library")


def test_startup_module_is_whose_folder_it_is_in(generation: Path, app: Path, tmp_path: Path) -> None:
    # As in Debian's and Ubuntu's standard library: /usr/lib/python3.11/sitecustomize.py -> /etc/python3.11/….
    (tmp_path / "sitecustomize.py").write_text("SEEN = True\n")
    link = next(generation.glob("lib/python*/site-packages")) / "sitecustomize.py"
    link.symlink_to(tmp_path / "sitecustomize.py")
    try:
        result = proved(generation, app)
    finally:
        link.unlink()
    assert (result.passed, result.detail) == (True, "only the environment, the app's folder and the standard library")


@pytest.fixture
def hostile(generation: Path, app: Path, elsewhere: Path, tmp_path: Path) -> dict[str, CheckContext]:
    """Give places where the launch let something through, each in one way."""
    usual = place(generation, app)
    base = _user_site(tmp_path / "base")
    for file in base.rglob("*customize.py"):
        file.write_text("")
    for file in elsewhere.glob("*customize.py"):
        file.write_text("")
    extra = {
        "pythonpath": {"PYTHONPATH": str(elsewhere)},
        "user site": {"PYTHONNOUSERSITE": "", "PYTHONUSERBASE": str(base)},
        "path": {"PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), usual.variables["PATH"]])},
        "conda": {"CONDA_PREFIX": str(elsewhere)},
    }
    return {
        name: dataclasses.replace(usual, variables={**usual.variables, **variables})
        for name, variables in extra.items()
    }


SEEN = [
    pytest.param("pythonpath", ("sys.path has ", "/elsewhere", "sitecustomize is ", "PYTHONPATH is set"), id="PYTHONPATH"),
    pytest.param("user site", ("PYTHONUSERBASE is set",), id="user site"),
    pytest.param("path", ("not the environment", "the first python on PATH is "), id="PATH"),
    pytest.param("conda", ("CONDA_PREFIX is set",), id="conda"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "said"), SEEN)
def test_what_gets_through_is_named(
    hostile: dict[str, CheckContext], monkeypatch: pytest.MonkeyPatch, how: str, said: tuple[str, ...]
) -> None:
    for name, value in hostile[how].variables.items():  # as if the user had set them: not ours
        monkeypatch.setenv(name, value)
    result = checks.isolation(hostile[how])
    assert not result.passed
    assert [words for words in said if words not in result.detail] == [], result.detail


@pytest.fixture
def pth(generation: Path, elsewhere: Path) -> Iterator[Path]:
    """Write a .pth file that leads out of the environment, and remove it again."""
    file = next(generation.glob("lib/python*/site-packages")) / "editable.pth"
    file.write_text(f"{elsewhere}\n")
    for customize in elsewhere.glob("*customize.py"):
        customize.unlink()
    yield file
    file.unlink()


def test_path_file_that_leads_out_of_the_environment_is_named(
    generation: Path, app: Path, pth: Path, elsewhere: Path
) -> None:
    result = proved(generation, app)
    assert (result.passed, result.detail) == (False, f"sys.path has {elsewhere}, from {pth.name}")


def test_libraries_that_the_user_preloads_are_named(
    generation: Path, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "conda" / "lib"))
    result = proved(generation, app)
    assert (result.passed, "LD_LIBRARY_PATH is inherited, and names a conda environment" in result.detail) == (
        True,
        True,
    )


# --- installers that are called by their full path --------------------------------------------------------------------


def _locked(generation: Path, *lines: str) -> dict[str, str]:
    (generation / venv.FILE).write_text("".join(f"{line}\n" for line in lines))
    return venv.launch_variables(generation, {}, {})


def test_uv_by_its_full_path_cannot_change_what_is_locked(generation: Path, tmp_path: Path) -> None:
    env = _locked(generation, "alpha==1.0")
    miniature.wheel(tmp_path / "wheels", "alpha", "2.0")
    command = [str(uv.find()), "pip", "install", "--no-index", "--find-links", str(tmp_path / "wheels")]
    python = str(venv.interpreter(generation))
    done = subprocess.run(
        [*command, "--python", python, "alpha==2.0"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "you require alpha==2.0 and alpha==1.0" in done.stderr) == (1, True), done.stderr
    assert len(list(generation.glob("lib/python*/site-packages/alpha-1.0.dist-info"))) == 1


@pytest.mark.online
def test_pip_by_its_full_path_cannot_change_what_is_locked(generation: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([str(uv.find()), "venv", "-q", "--seed", "--python", str(VERSION), str(other)], check=True)
    env = _locked(generation, "alpha==1.0", "six==1.16.0")
    python = str(venv.interpreter(generation))
    before = sorted(path.name for path in next(generation.glob("lib/python*/site-packages")).iterdir())
    pip = [str(other / "bin" / "pip"), "--python", python, "install", "six==1.17.0"]
    done = subprocess.run(pip, env=env, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    refused = "patchlock: not installed at run time" in text  # the gate, where pip runs in the environment's Python
    conflict = "The user requested six==1.17.0" in text and "(constraint) six==1.16.0" in text
    assert refused or conflict, text
    assert sorted(path.name for path in next(generation.glob("lib/python*/site-packages")).iterdir()) == before
    env = {name: value for name, value in env.items() if name != "PATCHLOCK_GATE"}
    done = subprocess.run(pip, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "The user requested six==1.17.0\n    The user requested (constraint) six==1.16.0" in done.stdout
    assert sorted(path.name for path in next(generation.glob("lib/python*/site-packages")).iterdir()) == before
