"""What uv was asked last time is asked again ahead, and its answer counts only for the same question."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from miniature import World, wheel

from patchlock.cli import _fast_path
from patchlock.locks import resolver_cache
from patchlock.model.errors import PatchlockError

PAIR = "mini/tiny.here/packages"


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """Give a question about the index of the test."""
    made = tmp_path / "question"
    (made / "upstream").mkdir(parents=True)
    (made / "upstream" / "requirements.txt").write_text("beta\n")
    (made / "uv.toml").write_text(f'[[index]]\nname = "here"\nurl = "{(made / "pages").as_uri()}"\n')
    (made / resolver_cache.ARGUMENTS).write_text('["upstream/requirements.txt", "--config-file", "uv.toml"]')
    return made


def _ask(cache: Path, folder: Path) -> resolver_cache.Answer:
    ahead = resolver_cache.ResolverPrefetch(cache)
    with ahead.asked_again(["mini"], None, None):
        return ahead.ask(PAIR, folder)


def _lose(world: World) -> None:
    """Take the index away, so that nobody who asks now gets an answer."""
    shutil.rmtree(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))


def test_same_question_has_the_answer_that_was_asked_ahead(world: World, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = _ask(cache, folder)
    assert 'name = "beta"' in first.pylock
    ahead = resolver_cache.ResolverPrefetch(cache)
    with ahead.asked_again([], None, None):
        _wait_for(ahead)
        _lose(world)
        (folder / "pylock.toml").unlink()
        assert ahead.ask(PAIR, folder).pylock == first.pylock
    with pytest.raises(PatchlockError):
        resolver_cache.ask(folder)


def _wait_for(ahead: resolver_cache.ResolverPrefetch) -> None:
    """Wait until what was asked ahead is answered."""
    for started in ahead.started:
        deadline = time.monotonic() + 60
        while not (started / "pylock.toml").is_file() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("profile", "platform", "count"),
    [("tiny", None, 1), (None, "here", 1), ("tiny", "here", 1), ("other", None, 0), (None, "there", 0)],
)
def test_only_what_is_meant_is_asked(
    folder: Path, tmp_path: Path, profile: str | None, platform: str | None, count: int
) -> None:
    cache = tmp_path / "cache"
    _ask(cache, folder)
    for apps, more in ((["mini"], count), ([], count), (["other"], 0), (["m*"], 0)):
        ahead = resolver_cache.ResolverPrefetch(cache)
        with ahead.asked_again(apps, profile, platform):
            assert len(ahead.started) == more


def test_another_question_is_asked_now(world: World, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    _ask(cache, folder)
    (folder / "upstream" / "requirements.txt").write_text("alpha\n")
    assert 'name = "alpha"' in _ask(cache, folder).pylock
    kept = json.loads((cache / "questions" / f"{PAIR}.json").read_text())
    assert kept["upstream/requirements.txt"] == "alpha\n"


def test_question_that_failed_ahead_is_asked_again(world: World, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = _ask(cache, folder)
    index = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index.rename(tmp_path / "away")
    ahead = resolver_cache.ResolverPrefetch(cache)
    with ahead.asked_again([], None, None):
        time.sleep(1)
        (tmp_path / "away").rename(index)
        assert ahead.ask(PAIR, folder).pylock == first.pylock


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="list"),
        pytest.param('{"upstream/x": 3}', id="number"),
        pytest.param('{"../outside": "x"}', id="outside"),
        pytest.param('{"/outside": "x"}', id="root"),
        pytest.param('{"upstream/requirements.txt": "beta"}', id="without-arguments"),
        pytest.param('{"arguments.json": "{}}"}', id="no-arguments"),
    ],
)
def test_damaged_memory_is_no_harm(folder: Path, tmp_path: Path, kept: str) -> None:
    cache = tmp_path / "cache"
    first = _ask(cache, folder)
    (cache / "questions" / f"{PAIR}.json").write_text(kept)
    assert _ask(cache, folder).pylock == first.pylock
    assert not (tmp_path / "outside").exists()


def test_answers_are_those_of_now(world: World, folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    _ask(cache, folder)
    page = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta" / "index.html"
    new = wheel(world.wheels, "beta", "9.0")
    page.write_text(f'<!DOCTYPE html><a href="{new.as_uri()}#sha256={"0" * 64}">{new.name}</a>')
    assert 'version = "9.0"' in _ask(cache, folder).pylock


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("lock mini", 1),
        ("lock", 1),
        ("lock mini --profile tiny --platform here --json", 1),
        ("lock --explain 0 mini", 1),
        ("lock mini --profile other", 0),
        ("lock mini --check", None),
        ("lock mini --upgrade", None),
        ("lock mini --as-of now", None),
        ("lock mini --profile", None),
        ("lock mini --profile --json", None),
        ("lock mini --profile=tiny", None),
        ("lock mini --help", None),
        ("--json lock mini", None),
        ("check", None),
    ],
)
def test_only_a_plain_lock_asks_ahead(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, count: int | None
) -> None:
    _ask(tmp_path / "cache", folder)
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "cache"))
    with _fast_path.resolve_ahead(words.split()) as again:
        assert (None if again is None else len(again.ahead.started)) == count
