"""A miniature whose app wants one distribution patched, and its lock."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from miniature import World, this_platform

from patchlock.cli import main
from patchlock.model import lockfile
from patchlock.model.lockfile import Lock, LockedPackage

RULE = """
[[distribution]]
name = "alpha"
why = "it must say that it is patched"
source = "tests"
"""
PATCH = """\
[distribution]
why = "it must say that it is patched"
source = "tests"
versions = ">=1,<3"
fixed-from = "2.5"

[[patch]]
id = "says-so"
why = "it must say that it is patched"
source = "tests"
op = "replace-text"
paths = ["alpha.py"]
old = '__version__ = "1.0"'
new = '__version__ = "1.0 patched"'
[[patch.ensure]]
check = "contains"
text = "patched"
"""
CASES = """\
import alpha

def case_says_so():
    assert "patched" in alpha.__version__
"""


def declare(world: World, *, text: str = PATCH, cases: str = CASES, rule: str = RULE) -> Path:
    """Let the app want alpha patched; give the file of the patches."""
    folder = world.catalogue / "patches" / "distributions" / "alpha"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "patch.toml").write_text(text)
    (folder / "cases.py").write_text(cases)
    world.app.write_text(world.app.read_text() + rule)
    return folder / "patch.toml"


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def platform_name() -> str:
    return this_platform().name


def lock_file(world: World) -> Path:
    return world.catalogue / "lockfiles" / "mini" / f"tiny.{platform_name()}.txt"


def lock_of(world: World) -> Lock:
    return lockfile.parse(lock_file(world).read_text(), "lock")


def alpha_of(world: World) -> LockedPackage:
    return next(package for package in lock_of(world).packages if package.name == "alpha")


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def patched_once(locked_once: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lock once with alpha patched; tests take copies of the folder, with its cache."""
    folder = tmp_path_factory.mktemp("patched")
    shutil.copytree(locked_once.catalogue.parent, folder / "world")
    made = _at(folder)
    declare(made)
    env = made.env | {"PATCHLOCK_CACHE_DIR": str(folder / "cache"), "UV_CACHE_DIR": str(folder / "uv")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env | {"UV_OFFLINE": "1"}).items():
            patch.setenv(name, value)
        assert main(["lock", "mini", "--platform", platform_name()]) == 0
    return folder


def _at(folder: Path) -> World:
    index, catalogue = folder / "world" / "index", folder / "world" / "catalogue"
    env = {"UV_DEFAULT_INDEX": index.as_uri(), "PATCHLOCK_CATALOGUE": str(catalogue)}
    return World(catalogue=catalogue, wheels=folder / "world" / "wheels", env=env)


@pytest.fixture
def patched(patched_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give the test a world whose lock has alpha patched."""
    shutil.copytree(patched_once, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("uv"))
    made = _at(tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made
