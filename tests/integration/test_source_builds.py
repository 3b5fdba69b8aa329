"""Source builds as wheels: built once by pinned tools, known by what went in, looked at before use, killed without harm."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from compiled import (
    RULES,
    backend,
    files,
    locked,
    needs_compiler,
    pinned,
    provide,
    really_locked,
    recipe,
    simple,
)
from conftest import Patchlock
from hostile import archive
from miniature import World, lock_here, wheel
from sdists import ask, made, maker, sdist

from patchlock import cli
from patchlock.catalogue.reader import Catalogue
from patchlock.environments.builds import _source_builds, _tools
from patchlock.locks.lock_request import Request
from patchlock.model.errors import (
    BuildError,
    DiskFullError,
    PatchlockError,
    PolicyError,
    ProgramMissingError,
    SdistError,
)

pytestmark = needs_compiler


def _again(request: Request, world: World, old: str, new: str) -> Request:
    """Change the app's file, and give the pair as it is now."""
    text = world.app.read_text()
    assert old in text
    world.app.write_text(text.replace(old, new))
    return dataclasses.replace(request, app=Catalogue(root=world.catalogue).app("mini"))


def _answer(path: Path) -> str:
    """Unpack a wheel's extension and call it."""
    folder = path.parent / "unpacked"
    with zipfile.ZipFile(path) as packed:
        packed.extractall(folder)
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import delta; print(delta.answer())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_sdist_is_installed_as_a_wheel_and_not_built_twice(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    really_locked(world, tmp_path, simple(tmp_path))
    world.app.write_text(world.app.read_text().replace('present = ["alpha", ', 'present = ["delta", "alpha", '))
    assert cli.main(lock_here()) == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "installed" / "mini@tiny" / "environments").iterdir()
    [built] = tomllib.loads((folder / "builds.toml").read_text())["wheel"]
    assert (built["name"], built["version"], built["file"][:10]) == ("delta", "1.0", "delta-1.0-")
    assert f"delta==1.0 --hash=sha256:{built['sdist']}" in (folder / "lock.txt").read_text()
    assert not list(folder.glob("**/delta-1.0.dist-info/direct_url.json"))
    [log] = (tmp_path / "cache" / "builds").glob("*/log.txt")
    before = log.stat().st_mtime_ns
    assert patchlock("install", "mini", "--reinstall").returncode == 0
    assert patchlock("cache", "clean", "mini", "--yes").returncode == 0
    assert log.stat().st_mtime_ns == before
    assert " of downloads and builds in " in patchlock("uninstall", "mini").stdout
    assert patchlock("install", "mini").returncode == 0
    assert log.stat().st_mtime_ns == before
    assert patchlock("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert not list((tmp_path / "cache" / "builds").iterdir())


@pytest.mark.parametrize(
    ("old", "new", "is_built"),
    [
        pytest.param("-DANSWER=1", "-DANSWER=2", True, id="flag"),
        pytest.param("[recipe.environment]", '[recipe.environment]\nOTHER = "x"', True, id="another variable"),
        pytest.param('new = "ANSWER 40"', 'new = "ANSWER 43"', True, id="patch of the source"),
        pytest.param("max = 2", "max = 3", False, id="jobs"),
        pytest.param('why = "x"', 'why = "y"', False, id="reason"),
        pytest.param("needs = []", 'needs = ["cc"]', False, id="programs that are there"),
    ],
)
def test_only_what_changes_the_result_builds_again(
    world: World, tmp_path: Path, old: str, new: str, is_built: bool
) -> None:
    keys = 'needs = []\njobs = { max = 2 }\n[recipe.environment]\nCFLAGS = "-DANSWER=1"\n'
    request, lock = locked(world, tmp_path, simple(tmp_path), recipe(keys) + _PATCH)
    first, told = provide(request, lock)
    assert (told.built, _answer(first["delta"].path)) == (["delta==1.0"], "2")
    assert provide(request, lock)[1] == []
    request = _again(request, world, old, new)
    second, told = provide(request, lock)
    assert bool(told.built) == is_built
    assert is_built or second == first


_PATCH = """
[[recipe.patch]]
id = "answer"
why = "x"
source = "tests"
op = "replace-text"
paths = ["delta.c"]
old = "ANSWER 41"
new = "ANSWER 40"

[[recipe.patch.ensure]]
check = "contains"
text = "ANSWER 4"
"""


def test_new_pins_of_other_builds_build_nothing_and_a_new_compiler_does(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = simple(tmp_path)
    request, lock = locked(world, tmp_path, archive)
    assert provide(request, lock)[1].built == ["delta==1.0"]
    pins = [("compiling", backend(world)), ("idle", wheel(world.wheels, "idle", "1.0"))]
    lock = pinned(request, [("delta", archive)], pins)
    assert provide(request, lock)[1] == []
    monkeypatch.setattr(_source_builds, "identify", lambda names, _path: dict.fromkeys(names, "cc 99"))
    assert provide(request, lock)[1].built == ["delta==1.0"]


FAILURES = {
    "compile error": (
        {"delta_c": "no C at all"},
        BuildError,
        "the build of delta 1.0 failed",
        "error: unknown type name",
    ),
    "library": (
        {"early": "import subprocess; subprocess.run(['cc', '-shared', '-o', 'x.so', '-lnowhere'], check=True)"},
        BuildError,
        "it links with the C library nowhere: install that with its headers (on Debian most often libnowhere-dev)",
        "cannot find -lnowhere",
    ),
    "network": (
        {"early": "import urllib.request; urllib.request.urlopen('http://127.0.0.2:8/x')"},
        BuildError,
        "a build has no network",
        "",
    ),
    "disk full": (
        {"early": "open('/dev/full', 'w').write('x' * 100000)"},
        DiskFullError,
        "the disk is full",
        "",
    ),
    "other name": ({"PKG-INFO": "Name: other\nVersion: 1.0\n"}, BuildError, "made other 1.0", ""),
    "other version": ({"PKG-INFO": "Name: delta\nVersion: 1.0.1\n"}, BuildError, "made delta 1.0.1", ""),
    "program": (
        {"early": "import subprocess; subprocess.run(['sh', '-c', 'no-such-program'], check=True)"},
        ProgramMissingError,
        "no-such-program must be there for the build of delta 1.0",
        "",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_build_that_fails_says_why_and_leaves_its_log_alone(world: World, tmp_path: Path, case: str) -> None:
    others, kind, says, last = FAILURES[case]
    request, lock = locked(world, tmp_path, simple(tmp_path, **others))
    with pytest.raises(kind) as caught:
        provide(request, lock)
    assert says in f"{caught.value.what}; {caught.value.remedy}"
    assert last in "\n".join(caught.value.evidence)
    [folder] = (tmp_path / "cache" / "builds").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "log.txt"]
    with pytest.raises(PatchlockError):
        provide(request, lock)


def test_compiler_that_is_missing_is_named_with_the_command_that_gets_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, lock = locked(world, tmp_path, simple(tmp_path), recipe('needs = ["cc", "nvcc-of-tests"]'))
    monkeypatch.setattr("sys.platform", "linux")
    real = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(ProgramMissingError) as caught:
        _tools.require(["cc", "nvcc-of-tests"], "the build of delta 1.0", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", real)
    assert str(caught.value) == (
        "cc and nvcc-of-tests must be there for the build of delta 1.0; "
        "install it: `sudo apt-get install build-essential python3-dev`; install nvcc-of-tests and make sure that it is on PATH"
    )
    with pytest.raises(ProgramMissingError):
        provide(request, lock)


def test_commands_that_get_compilers_can_be_pasted_into_powershell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchlock.environments.builds._tools.sys.platform", "win32")
    monkeypatch.setattr("shutil.which", lambda *_args, **_named: None)
    with pytest.raises(ProgramMissingError) as caught:
        _tools.require(["cmake", "ninja"], "the build of delta 1.0", str(tmp_path))
    assert str(caught.value) == (
        "cmake and ninja must be there for the build of delta 1.0; "
        "install it in PowerShell as administrator: `winget install --id Kitware.CMake; winget install --id Ninja-build.Ninja`"
    )


def test_build_has_a_home_of_its_own_and_few_variables(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = (
        "import os, pathlib, tempfile; pathlib.Path.home().joinpath('LEFT').write_text('x'); "
        "tempfile.mkstemp(); assert 'SECRET' not in os.environ and 'CFLAGS' not in os.environ, os.environ"
    )
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("CFLAGS", "-DANSWER=7")
    request, lock = locked(world, tmp_path, simple(tmp_path, early=early))
    found, _ = provide(request, lock)
    assert _answer(found["delta"].path) == "42"
    assert not (tmp_path / "home" / "LEFT").exists()


@pytest.mark.parametrize(
    ("test", "passes"),
    [
        ('["python", "-c", "import delta, beta; assert delta.answer() == 42"]', True),
        ('["python", "-c", "1 / 0"]', False),
    ],
    ids=["passes", "fails"],
)
def test_wheel_is_taken_only_if_the_test_of_its_recipe_passes(
    world: World, tmp_path: Path, test: str, passes: bool
) -> None:
    request, lock = locked(world, tmp_path, simple(tmp_path), recipe(f'test = {test}\ntest-with = ["beta"]'))
    beta = pinned(request, [("beta", world.wheels / "beta-1.5-py3-none-any.whl")], [("compiling", backend(world))])
    lock = dataclasses.replace(lock, packages=(*lock.packages, *beta.packages))
    if passes:
        assert provide(request, lock)[1].built == ["delta==1.0"]
        return
    with pytest.raises(BuildError) as caught:
        provide(request, lock)
    assert caught.value.what == "the test of delta 1.0 failed"
    assert "ZeroDivisionError" in caught.value.evidence[-1]
    assert not list((tmp_path / "cache" / "wheels").glob("*/delta*.whl"))


def test_build_requirement_that_is_not_pinned_is_refused(world: World, tmp_path: Path) -> None:
    text = files()["pyproject.toml"].replace('["compiling"]', '["compiling", "gamma"]')
    request, lock = locked(world, tmp_path, simple(tmp_path, **{"pyproject.toml": text}))
    with pytest.raises(PolicyError) as caught:
        provide(request, lock)
    assert caught.value.what == "a build wants gamma, which is not pinned"


def test_wheel_that_was_built_earlier_serves_a_later_build(world: World, tmp_path: Path) -> None:
    """The backend of delta is an sdist itself: it is built first, and pinned to the bytes that came of it."""
    system = '[build-system]\nrequires = ["eps", "compiling"]\nbuild-backend = "compiling"\n'
    delta = simple(tmp_path, early="import eps; assert eps.BUILT", **{"pyproject.toml": system})
    eps = sdist(tmp_path / "sdists", "eps", "1.0", made("eps"))
    rules = RULES.replace('["delta"]', '["delta", "eps"]') + recipe(name="eps") + recipe('after = ["eps"]')
    request = ask(world, b"alpha==9.0\n", tmp_path, rules)
    pins = [("compiling", backend(world)), ("maker", maker(world.wheels))]
    lock = pinned(request, [("delta", delta), ("eps", eps)], pins)
    assert provide(request, lock)[1].built == ["eps==1.0", "delta==1.0"]


@pytest.mark.parametrize("moment", ["while it compiles", "after it was built"])
def test_killed_build_leaves_nothing_half_made_and_the_next_run_builds_it(
    world: World, patchlock: Patchlock, tmp_path: Path, moment: str
) -> None:
    mark, go = tmp_path / "mark", tmp_path / "go"
    early = (
        f"import os, pathlib, time; m = pathlib.Path({str(mark)!r}); m.write_text('x')\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    )
    really_locked(world, tmp_path, simple(tmp_path, early=early))
    child = subprocess.Popen(
        [*patchlock.command, "install", "mini"], env=patchlock.env(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not mark.exists():
        time.sleep(0.02)
        assert child.poll() is None
    if moment == "after it was built":
        go.touch()
        while not list((tmp_path / "cache" / "builds").glob("*/*[0-9a-f]/built.toml")) and child.poll() is None:
            time.sleep(0.005)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert not list((tmp_path / "installed").glob("*/current"))
    go.touch()
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "cache" / "builds").iterdir()
    assert {path.name for path in folder.iterdir() if not path.is_dir()} == {"lock", "log.txt"}
    assert not (folder / "work").exists()
    assert not list(folder.glob("*.partial"))


def test_question_whether_a_build_is_there_asks_compilers_for_their_versions_only(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, lock = locked(world, tmp_path, simple(tmp_path))
    provide(request, lock)
    started: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        started.append(command)
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    assert provide(request, lock)[1] == []
    assert [command for command in started if command[1:] != ["--version"]] == []
    assert len({command[0] for command in started}) == len(started)


@pytest.mark.parametrize("kind", ["leaves", "no archive"])
def test_sdist_that_holds_what_none_should_is_refused(world: World, tmp_path: Path, kind: str) -> None:
    path = archive(tmp_path / "sdists" / "delta-1.0.tar.gz", kind)
    request, lock = locked(world, tmp_path, path)
    with pytest.raises(SdistError) as caught:
        provide(request, lock)
    assert caught.value.what.startswith("delta-1.0.tar.gz is not an sdist that is built: ")
    assert not (tmp_path / "escaped").exists()
