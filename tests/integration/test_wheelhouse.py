"""Wheels that lie on this machine enter an environment by their hash, and no index is asked for them."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import miniature
import pytest
from miniature import World, this_platform
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.distributions import wheelhouse
from patchlock.distributions.wheelhouse import LocalWheel
from patchlock.environments import venv
from patchlock.model import lockfile
from patchlock.model.digests import sha256
from patchlock.model.errors import HashMismatchError
from patchlock.model.identities import Sha256

_PYTHON = Version(f"{sys.version_info.major}.{sys.version_info.minor}")


def _local(cache: Path, module: str) -> LocalWheel:
    made = miniature.wheel(cache / "made", "alpha", "1.0", files={"alpha.py": module})
    data = made.read_bytes()
    path = wheelhouse.place(cache, sha256(data), made.name)
    path.parent.mkdir(parents=True)
    made.rename(path)
    return LocalWheel(name=canonicalize_name("alpha"), version=Version("1.0"), path=path, sha256=sha256(data))


def _lock(world: World) -> Path:
    return world.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"


@contextlib.contextmanager
def _empty(folder: Path) -> Iterator[int]:
    with (folder.with_suffix(".held")).open("w") as held:
        venv.create(folder, _PYTHON, lock=held.fileno())
        yield held.fileno()


@pytest.mark.parametrize("name", ["plain", "a b", "Zoë's #1 100%"], ids=["plain", "spaces", "odd characters"])
def test_local_wheel_is_installed_instead_of_the_index_one(locked: World, tmp_path: Path, name: str) -> None:
    made = _local(tmp_path / name, "here = 'this machine'\n")
    assert wheelhouse.find(tmp_path / name, made.sha256) == made.path
    path = _lock(locked)
    folder = tmp_path / "environment"
    with _empty(folder) as held:
        wanted = lockfile.parse(path.read_text(), "x")
        venv.keep_lock(folder, path, wanted, None)
        venv.sync(folder, wanted, {made.name: made}, (), tell=lambda _: None, lock=held)
    (module,) = folder.glob("**/site-packages/alpha.py")
    assert module.read_text() == "here = 'this machine'\n"
    names = {package.name for package in wanted.packages}
    assert {folder.name.partition("-")[0] for folder in folder.glob("**/*.dist-info")} == names
    assert not list(folder.glob("**/direct_url.json"))
    assert venv.lock_of(folder) == wanted


def test_local_wheel_of_other_bytes_is_refused(locked: World, tmp_path: Path) -> None:
    made = _local(tmp_path / "cache", "\n")
    other = dataclasses.replace(made, sha256=Sha256("0" * 64))
    path = _lock(locked)
    folder = tmp_path / "environment"
    wanted = lockfile.parse(path.read_text(), "x")
    with _empty(folder) as held:
        venv.keep_lock(folder, path, wanted, None)
        with pytest.raises(HashMismatchError):
            venv.sync(folder, wanted, {made.name: other}, (), tell=lambda _: None, lock=held)
    assert not list(folder.glob("**/site-packages/alpha.py"))
