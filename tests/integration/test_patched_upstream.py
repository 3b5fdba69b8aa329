"""What patches make of upstream is remembered, and worked out anew when anything changes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from miniature import World

from patchlock.catalogue.reader import Catalogue
from patchlock.locks import patched_cache
from patchlock.locks.lock_request import Request, Upstream
from patchlock.model.errors import PatchError

FILE = PurePosixPath("requirements.txt")


def _read(world: World, cache: Path) -> Upstream:
    catalogue = Catalogue(root=world.catalogue)
    profile = catalogue.profile("tiny")
    return patched_cache.read(
        Request(
            app=catalogue.app("mini"),
            profile=profile,
            platform=profile.platforms[0],
            catalogue=catalogue,
            home=cache / "home",
            cache=cache,
        )
    )


def _kept(cache: Path) -> list[Path]:
    return sorted((cache / "patched").glob("*.json"))


def _mark(cache: Path) -> None:
    """Change what is remembered, so that it is known where an answer comes from."""
    (kept,) = _kept(cache)
    data = json.loads(kept.read_bytes().partition(b"\n")[2])
    data["outcomes"] = []
    text = json.dumps(data)
    kept.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def test_second_answer_is_the_first(world: World, tmp_path: Path) -> None:
    first = _read(world, tmp_path)
    assert first.requirements[FILE] != first.raw[FILE]
    assert first.patched.outcomes
    assert {change.path for change in first.patched.changes} >= {FILE}
    again = _read(world, tmp_path)
    assert again == first
    assert dataclasses.asdict(again) == dataclasses.asdict(first)
    _mark(tmp_path)
    assert not _read(world, tmp_path).patched.outcomes


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda w: w.app.write_text(w.app.read_text() + "\n# other words\n"), id="app"),
        pytest.param(
            lambda w: (w.upstream / "more.py").write_text("x = 1\n") and w.name_commit(w.app.parent), id="commit"
        ),
    ],
)
def test_whatever_changes_is_seen(world: World, tmp_path: Path, change: Callable[[World], object]) -> None:
    first = _read(world, tmp_path)
    _mark(tmp_path)
    change(world)
    assert _read(world, tmp_path).patched.outcomes == first.patched.outcomes
    assert len(_kept(tmp_path)) == 2


def _head(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data.replace(b'"needed"', b'"gone"'), id="another word"),
        pytest.param(lambda _: _head(b"[]"), id="another shape"),
        pytest.param(lambda _: _head(b'{"requirements": {"a": 1}, "raw": {}}'), id="another type"),
    ],
)
def test_damaged_memory_is_no_harm(world: World, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    first = _read(world, tmp_path)
    (kept,) = _kept(tmp_path)
    data = kept.read_bytes()
    kept.write_bytes(damage(data))
    assert kept.read_bytes() != data
    assert _read(world, tmp_path) == first


def test_patches_that_do_not_do_what_they_say_are_never_remembered(world: World, tmp_path: Path) -> None:
    text = world.app.read_text()
    world.app.write_text(text.replace('specifier = "==1.0"', 'specifier = "==7.0"', 1))
    assert world.app.read_text() != text
    for _ in range(2):
        with pytest.raises(PatchError):
            _read(world, tmp_path)
    assert not _kept(tmp_path)
