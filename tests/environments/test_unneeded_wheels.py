"""Which files of the wheelhouse may go: those that no generation of the home was made from."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from patchlock.core import file_lock
from patchlock.distributions import wheelhouse
from patchlock.environments import cache_pruning
from patchlock.model.identities import Sha256


def _file(cache: Path, name: str, data: bytes, suffix: str = "") -> Sha256:
    sha256 = Sha256(hashlib.sha256(data).hexdigest())
    path = wheelhouse.place(cache, sha256, name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return sha256


def _generation(home: Path, name: str, file: str, *hashes: Sha256) -> None:
    folder = home / "demo@cpu" / "environments" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("".join(f"x==1 --hash=sha256:{one} # why\n" for one in hashes))


def test_what_any_generation_was_made_from_is_needed(tmp_path: Path) -> None:
    one, two = Sha256("1" * 64), Sha256("2" * 64)
    _generation(tmp_path, "a", "lock.txt", one)
    _generation(tmp_path, "b", "local.txt", two)
    assert cache_pruning.needed(tmp_path / "cache", tmp_path) == {one, two}


@pytest.mark.parametrize("name", ["nowhere", "."], ids=["no home", "empty home"])
def test_home_without_generations_needs_nothing(tmp_path: Path, name: str) -> None:
    assert cache_pruning.needed(tmp_path / "cache", tmp_path / name) == frozenset()


def test_files_that_are_not_kept_are_listed_with_their_bytes(tmp_path: Path) -> None:
    kept = _file(tmp_path, "alpha-1-py3-none-any.whl", b"a" * 10)
    _file(tmp_path, "gamma-1-py3-none-any.whl", b"c" * 30)
    half = _file(tmp_path, "beta-1-py3-none-any.whl", b"b" * 20, ".part")
    (wheelhouse.place(tmp_path, half, "beta-1-py3-none-any.whl.part.lock")).write_bytes(b"")
    found = wheelhouse.unneeded(tmp_path, {kept})
    assert [(one.filename, one.size) for one in found] == [
        ("beta-1-py3-none-any.whl", 20),
        ("gamma-1-py3-none-any.whl", 30),
    ]


def test_no_wheelhouse_has_nothing_to_remove(tmp_path: Path) -> None:
    assert wheelhouse.unneeded(tmp_path, ()) == ()


def test_only_what_was_listed_is_removed(tmp_path: Path) -> None:
    kept = _file(tmp_path, "alpha-1-py3-none-any.whl", b"a")
    gone = _file(tmp_path, "beta-1-py3-none-any.whl", b"b")
    listed = wheelhouse.unneeded(tmp_path, {kept})
    assert wheelhouse.remove(listed) == listed
    assert wheelhouse.find(tmp_path, kept) is not None
    assert not wheelhouse.place(tmp_path, gone, "x").parent.exists()
    assert wheelhouse.unneeded(tmp_path, {kept}) == ()


def test_file_that_is_being_fetched_stays(tmp_path: Path) -> None:
    half = _file(tmp_path, "beta-1-py3-none-any.whl", b"b", ".part")
    listed = wheelhouse.unneeded(tmp_path, ())
    with file_lock.hold(wheelhouse.place(tmp_path, half, "beta-1-py3-none-any.whl.part.lock"), wait=0):
        assert wheelhouse.remove(listed) == ()
    assert wheelhouse.place(tmp_path, half, "beta-1-py3-none-any.whl.part").read_bytes() == b"b"


def test_what_other_homes_of_a_cache_were_made_from_is_needed_while_they_are_there(tmp_path: Path) -> None:
    cache, here, other, gone = (tmp_path / name for name in ("cache", "here", "öther home", "gone"))
    hashes = [Sha256(digit * 64) for digit in "123"]
    for home, digest in zip((here, other, gone), hashes, strict=True):
        _generation(home, "a", "lock.txt", digest)
        cache_pruning.take_lease(cache, home)
        cache_pruning.take_lease(cache, home)
    assert cache_pruning.needed(cache, here) == frozenset(hashes)
    shutil.rmtree(gone)
    assert cache_pruning.needed(cache, here) == frozenset(hashes[:2])
    assert len(list((cache / "homes").iterdir())) == 2
    _generation(other, "b", "lock.txt", hashes[2])
    assert cache_pruning.needed(cache, here) == frozenset(hashes)


def test_home_by_another_name_is_the_same_one(tmp_path: Path) -> None:
    _generation(tmp_path / "home", "a", "lock.txt", Sha256("1" * 64))
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name in ("home", "link"):
        cache_pruning.take_lease(tmp_path / "cache", tmp_path / name)
        assert cache_pruning.homes(tmp_path / "cache", tmp_path / name) == (tmp_path / name,)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may look into every folder")
def test_home_that_may_not_be_looked_into_stops_the_pruning(tmp_path: Path) -> None:
    _generation(tmp_path / "closed", "a", "lock.txt", Sha256("1" * 64))
    cache_pruning.take_lease(tmp_path / "cache", tmp_path / "closed")
    (tmp_path / "closed").chmod(0)
    try:
        with pytest.raises(PermissionError):
            cache_pruning.needed(tmp_path / "cache", tmp_path / "home")
    finally:
        (tmp_path / "closed").chmod(0o700)
