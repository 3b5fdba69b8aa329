"""Source builds: nobody's code runs while locking, what sdists require is written down, what builds them is pinned."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World, lock_here, wheel
from sdists import ask, in_tree, info, legacy, made, maker, offer, sdist, setuptools

from patchlock import cli
from patchlock.core import uv
from patchlock.environments import venv
from patchlock.locks import relock
from patchlock.locks.lock_request import build_objections
from patchlock.locks.relock import Kept
from patchlock.model import lockfile
from patchlock.model.app import rules_of
from patchlock.model.errors import MetadataMissingError, PolicyError

BUILD = '[[build]]\nnames = ["{names}"]\nwhy = "x"\nsource = "tests"\n'
NEEDS = b"alpha==9.0\ndelta\n"


def _rules(*names: str) -> str:
    return BUILD.format(names='", "'.join(names))


def _metadata(name: str, requires: str = "[]", build: str = "[]", version: str = "1.0") -> str:
    return (
        f'[[metadata]]\nname = "{name}"\nversion = "{version}"\nrequires = {requires}\nbuild = {build}\n'
        'why = "x"\nsource = "tests"\n'
    )


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Where the code of an sdist writes, should it run."""
    return tmp_path / "RAN"


def _hostile(kind: str, mark: Path) -> dict[str, str]:
    match kind:
        case "legacy":
            return legacy("delta", mark)
        case "in-tree":
            return in_tree("delta", mark)
        case "dynamic":
            return in_tree("delta", mark, "2.2", "Dynamic: Requires-Dist\n")
        case _:
            return in_tree("delta", mark, "2.2", "Requires-Dist: beta\n")


@pytest.mark.parametrize("kind", ["legacy", "in-tree", "dynamic", "static"])
def test_no_build_code_runs_while_locking(world: World, tmp_path: Path, mark: Path, kind: str) -> None:
    offer(world, sdist(tmp_path / "sdists", "delta", "1.0", _hostile(kind, mark)))
    with pytest.raises(MetadataMissingError) as caught:
        relock.resolve(ask(world, NEEDS, tmp_path, _rules("delta")), Kept())
    assert caught.value.what == "delta 1.0 says only by running setup.py or a build backend what is required"
    assert caught.value.where == "patches/mini/app.toml"
    lock = relock.resolve(ask(world, NEEDS, tmp_path, _rules("delta") + _metadata("delta")), Kept())
    assert "delta" in {package.name for package in lock.packages}
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["legacy", "in-tree", "dynamic"])
def test_build_that_uv_would_start_is_stopped_before_its_first_line(
    world: World, tmp_path: Path, mark: Path, kind: str
) -> None:
    offer(world, sdist(tmp_path / "sdists", "delta", "1.0", _hostile(kind, mark)))
    (tmp_path / "in.txt").write_text("delta\n")
    with pytest.raises(PolicyError) as caught:
        uv.run("pip", "compile", "--no-config", "in.txt", "-o", "out.txt", cwd=tmp_path, installing=False)
    assert caught.value.what == "a distribution would run its own code to say what it requires, and was stopped"
    assert not mark.exists()


def test_tables_to_write_are_proposed_for_all_sdists_at_once(world: World, tmp_path: Path, mark: Path) -> None:
    offer(
        world,
        sdist(
            tmp_path / "sdists", "delta", "1.0", legacy("delta", mark, "beta>=1\neps\n[x:python_version>'3']\ngamma\n")
        ),
        sdist(tmp_path / "sdists", "eps", "1.0", {"PKG-INFO": info("eps"), "setup.py": "setup(name='eps')"}),
    )
    rules = _rules("delta", "eps")
    with pytest.raises(MetadataMissingError) as caught:
        relock.resolve(ask(world, NEEDS, tmp_path, rules), Kept())
    text = "\n".join(caught.value.evidence)
    found = {table["name"]: table for table in tomllib.loads(text)["metadata"]}
    assert found["delta"]["requires"] == ["beta>=1", "eps", 'gamma; python_version > "3" and extra == "x"']
    assert found["delta"]["source"] == "PyPI: delta 1.0 sdist, delta.egg-info/requires.txt"
    assert (found["eps"]["requires"], found["eps"]["source"]) == ([], "PyPI: eps 1.0 sdist, setup.py")
    offer(world, maker(world.wheels))
    pasted = rules + text.replace('["setuptools>=40.8.0", "wheel"]', '["maker"]')
    lock = relock.resolve(ask(world, b"alpha==9.0\ndelta[x]\n", tmp_path, pasted), Kept())
    assert [package.name for package in lock.packages] == ["alpha", "beta", "delta", "eps", "gamma"]
    assert not mark.exists()


@pytest.fixture
def built(world: World, tmp_path: Path) -> World:
    """A world whose app needs delta, which the backend `maker` builds."""
    offer(world, maker(world.wheels), sdist(tmp_path / "sdists", "delta", "1.0", made("delta")))
    ask(world, b"alpha==9.0\nbeta\ndelta\n", tmp_path, _rules("delta") + _metadata("delta", build='["maker"]'))
    return world


def _folder(world: World) -> Path:
    return world.catalogue / "lockfiles" / "mini"


def test_what_builds_an_sdist_is_pinned_beside_the_lock_and_used(
    built: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert cli.main(lock_here()) == 0
    assert sorted(path.name for path in _folder(built).iterdir()) == ["tiny.build.txt", "tiny.txt"]
    pins = (_folder(built) / "tiny.build.txt").read_text()
    assert re.search(r"\nmaker==1\.0 --hash=sha256:[0-9a-f]{64} # builds delta\n$", pins)
    assert '\n# builds = ["delta==1.0"]\n' in pins
    first = {path.name: path.read_bytes() for path in _folder(built).iterdir()}
    assert cli.main(lock_here()) == 0
    assert {path.name: path.read_bytes() for path in _folder(built).iterdir()} == first
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages/delta.py"))


@pytest.fixture(
    params=["", '[build-system]\nrequires = ["setuptools"]\n'], ids=["no pyproject.toml", "one that lacks it"]
)
def old(world: World, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """A world whose app needs delta, whose `setup.py` imports what nothing of the sdist asks for, as old ones do."""
    files = {"PKG-INFO": info("delta"), "setup.py": "import numpy\nfrom setuptools import setup\nsetup(name='delta')\n"}
    files |= {"pyproject.toml": request.param} if request.param else {}
    tools = [wheel(world.wheels, "numpy", "1.0"), wheel(world.wheels, "wheel", "0.1"), setuptools(world.wheels)]
    offer(world, *tools, sdist(tmp_path / "sdists", "delta", "1.0", files))
    with pytest.raises(MetadataMissingError) as caught:
        relock.resolve(ask(world, b"alpha==9.0\nbeta\ndelta\n", tmp_path, _rules("delta")), Kept())
    table = "\n".join(caught.value.evidence)
    ask(world, b"alpha==9.0\nbeta\ndelta\n", tmp_path, _rules("delta") + table)
    return world


def test_build_has_what_its_table_names_and_the_sdist_does_not(
    old: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert cli.main(lock_here()) == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages/delta.py"))


@pytest.mark.skipif(sys.platform != "linux", reason="an image holds Linux")
def test_build_in_an_image_has_what_its_table_names(
    old: World, patchlock: Patchlock, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(lock_here()) == 0
    image = _image(old, patchlock, capsys, tmp_path)
    assert list(image.glob("environment/lib/python*/site-packages/delta.py"))


def _image(world: World, patchlock: Patchlock, capsys: pytest.CaptureFixture[str], folder: Path) -> Path:
    """Do in a folder what the Dockerfile of the locked app says."""
    capsys.readouterr()
    assert cli.main(["export", "mini", "--format", "dockerfile"]) == 0
    text, image = capsys.readouterr().out, folder / "image"
    env = patchlock.env({"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    del env["PATCHLOCK_CATALOGUE"], env["PYTHONPATH"]
    _replay(text, world.catalogue, image, env)
    return image


def _replay(dockerfile: str, context: Path, image: Path, env: dict[str, str]) -> None:
    """Do what the two stages of a Dockerfile that make something do, in a folder; its tools are those of the tests."""
    tools = image / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python").chmod(0o755)
    (tools / "uv").symlink_to(uv.find())
    copying = next(line for line in dockerfile.splitlines() if line.startswith("#   cp "))
    shell = copying.removeprefix("#").replace("CHECKOUT", shlex.quote(str(ROOT)))
    subprocess.run(["sh", "-euc", shell], cwd=context, check=True)
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.startswith("#")).replace("\\\n", "")
    for line in lines.partition("useradd")[0].splitlines():
        word, _, rest = line.partition(" ")
        rest = re.sub(r"(?<![^ =])/(?=(tools|patchlock|app|environment|lock)\b)", f"{image}/", rest)
        if word == "COPY" and "--from" not in rest:
            source, target = rest.split()
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (context / source).is_dir() else shutil.copy)(context / source, target)
        elif word == "ENV":
            env |= [rest.split("=")]
        elif word == "RUN" and "apt-get" not in rest and "pip install" not in rest:
            done = subprocess.run(["sh", "-euc", rest], env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{rest}\n{done.stdout}{done.stderr}"


@pytest.mark.skipif(sys.platform != "linux", reason="an image holds Linux")
def test_steps_of_the_dockerfile_build_an_sdist_from_its_pins(
    built: World, patchlock: Patchlock, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(lock_here()) == 0
    image = _image(built, patchlock, capsys, tmp_path)
    assert list(image.glob("environment/lib/python*/site-packages/delta.py"))
    assert b'"cpu"' in (image / "app" / "app.py").read_bytes()


def test_build_requirement_that_is_not_pinned_stops_the_install(
    built: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    text = built.app.read_text()
    built.app.write_text(text.replace('build = ["maker"]', 'build = ["beta"]'))
    assert cli.main(lock_here()) == 0
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "a build wants maker, which is not pinned" in done.stderr
    assert "add it to `build` in the [[metadata]] table" in done.stderr
    assert not list((tmp_path / "installed").glob("*/current"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.unlink(), "lockfiles/mini/tiny.build.txt, which pins what builds its sdists, is missing"),
        (
            lambda path: path.write_text(path.read_text().replace("maker==1.0", "maker==6.6")),
            "lockfiles/mini/tiny.build.txt was changed since the lock was written",
        ),
    ],
    ids=["missing", "changed"],
)
def test_build_pins_that_are_not_the_locks_are_stale(
    built: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: object, reason: str
) -> None:
    assert cli.main(lock_here()) == 0
    assert cli.main(["lock", "--check"]) == 0
    change(_folder(built) / "tiny.build.txt")
    assert cli.main(["lock", "--check"]) == 1
    assert reason in capsys.readouterr().out
    assert cli.main(["install", "mini"]) == 1
    assert f"the lock of mini on tiny is stale: {reason}" in capsys.readouterr().err


def test_build_pins_go_when_nothing_is_built_any_more(built: World, tmp_path: Path) -> None:
    request = ask(built, b"alpha==9.0\ndelta\n", tmp_path, _rules("delta") + _metadata("delta", build='["maker"]'))
    relock.write(request, relock.resolve(request, Kept()))
    request = ask(built, b"alpha==9.0\nbeta\n", tmp_path)
    path, state = relock.write(request, relock.resolve(request, Kept()))
    assert (state, sorted(file.name for file in path.parent.iterdir())) == ("written", ["tiny.txt"])
    assert build_objections(request, lockfile.parse(path.read_text(), "x")) == ()


@pytest.mark.online
def test_real_sdists_are_locked_without_running_them_and_built_with_pinned_tools(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docopt has a setup.py and nothing else that says anything; antlr4-python3-runtime has a pyproject.toml."""
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    needs, rules = b"docopt==0.6.2\nantlr4-python3-runtime==4.13.2\n", _rules("docopt", "antlr4-python3-runtime")
    with pytest.raises(MetadataMissingError) as caught:
        relock.resolve(ask(world, needs, tmp_path, rules), Kept())
    request = ask(world, needs, tmp_path, rules + "\n".join(caught.value.evidence))
    path, _ = relock.write(request, relock.resolve(request, Kept()))
    assert 'build = ["setuptools>=61.2", "wheel"]' in caught.value.evidence
    pins = request.catalogue.build_path(path).read_text()
    assert re.search(
        r"\nsetuptools==[0-9.]+ --hash=sha256:[0-9a-f]{64} # builds antlr4-python3-runtime, docopt\n", pins
    )
    with (tmp_path / "held").open("w") as held:
        folder = tmp_path / "environment"
        venv.create(folder, request.profile.python, lock=held.fileno())
        builds = rules_of(request).source_builds
        lock, constraints = lockfile.parse(path.read_text(), path.name), request.catalogue.build_path(path)
        venv.keep_lock(folder, path, lock, constraints)
        venv.sync(folder, lock, {}, builds, tell=lambda _: None, lock=held.fileno())
    assert list(folder.glob("**/site-packages/docopt.py"))
    assert list(folder.glob("**/site-packages/antlr4/__init__.py"))
