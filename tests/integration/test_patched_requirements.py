"""Requirement files as the patches leave them are remembered, and worked out anew when anything changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from miniature import World

from patchlock import patched_requirements
from patchlock.catalogue import Catalogue
from patchlock.errors import PatchError
from patchlock.gathering import Asked, Request

FILE = PurePosixPath("requirements.txt")


def _read(world: World, cache: Path) -> Asked:
    catalogue = Catalogue(root=world.catalogue)
    profile = catalogue.profile("tiny")
    return patched_requirements.read(
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
    return sorted((cache / "patched-requirements").glob("*.json"))


def _mark(cache: Path) -> None:
    """Change what is remembered, so that it is known where an answer comes from."""
    (kept,) = _kept(cache)
    data = json.loads(kept.read_text())
    data["patched-by"] = {"remembered": ["yes"]}
    kept.write_text(json.dumps(data))


def test_second_answer_is_the_first(world: World, tmp_path: Path) -> None:
    first = _read(world, tmp_path)
    assert first.requirements[FILE] != first.raw[FILE]
    assert first.patched_by
    assert _read(world, tmp_path) == first
    _mark(tmp_path)
    assert dict(_read(world, tmp_path).patched_by) == {"remembered": ("yes",)}


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
    assert _read(world, tmp_path).patched_by == first.patched_by
    assert len(_kept(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["", "[]", '{"raw": {}}', '{"requirements": {"a": 1}, "raw": {}, "patched-by": {}}'])
def test_damaged_memory_is_no_harm(world: World, tmp_path: Path, damage: str) -> None:
    first = _read(world, tmp_path)
    (kept,) = _kept(tmp_path)
    kept.write_text(damage)
    assert _read(world, tmp_path) == first


def test_patches_that_do_not_do_what_they_say_are_never_remembered(world: World, tmp_path: Path) -> None:
    text = world.app.read_text()
    world.app.write_text(text.replace('specifier = "==1.0"', 'specifier = "==7.0"', 1))
    assert world.app.read_text() != text
    for _ in range(2):
        with pytest.raises(PatchError):
            _read(world, tmp_path)
    assert not _kept(tmp_path)
