"""`lock` asks uv every time, and judges its answer again unless every byte is as it was when nothing had to be done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World, index, wheel

from patchlock.cli._lock_table import Line
from patchlock.cli._repeated_lock import RepeatedLock
from patchlock.locks import resolver_cache

PAIR = ("lock", "mini", "--profile", "tiny", "--platform", "linux-x86_64")
REMEMBERED = 4711
"""Packages that no lock has."""


@pytest.fixture
def memory(world: World, patchlock: Patchlock, tmp_path: Path) -> Path:
    """Lock until nothing changes, and write into what is remembered something that only it can tell."""
    for state in ("written", "unchanged"):
        assert state in patchlock(*PAIR).stdout
    (file,) = (tmp_path / "cache" / "checked-locks").glob("*.json")
    _change(file, lambda found: found["lines"][0].update(packages=REMEMBERED))
    return file


def _change(file: Path, change: Callable[[dict[str, list[dict[str, object]]]], object]) -> None:
    kept = json.loads(file.read_text())
    change(kept["found"])
    file.write_text(json.dumps(kept))


def _is_remembered(patchlock: Patchlock, *words: str) -> bool:
    done = patchlock(*PAIR, *words)
    assert done.returncode == 0, done.stderr
    return f"{REMEMBERED} packages" in done.stdout


def test_same_bytes_and_same_answer_need_no_second_look(memory: Path, patchlock: Patchlock) -> None:
    done = patchlock(*PAIR)
    assert done.stdout.startswith("mini × tiny × linux-x86_64  unchanged")
    assert f"{REMEMBERED} packages in " in done.stdout
    assert done.stderr.count("lock ") == 1
    assert "1 pair (" in done.stderr
    told = json.loads(patchlock(*PAIR, "--json").stdout)
    assert told["ok"] is True
    assert (told["data"]["pairs"][0]["state"], told["data"]["pairs"][0]["packages"]) == ("unchanged", REMEMBERED)


def test_another_answer_of_uv_is_looked_at(world: World, memory: Path, patchlock: Patchlock) -> None:
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), [wheel(world.wheels, "gamma", "2.5")])
    done = patchlock(*PAIR)
    assert str(REMEMBERED) not in done.stdout
    assert "written" in done.stdout


CHANGES: dict[str, Callable[[World, Path], object]] = {
    "lock": lambda world, _: _append(next((world.catalogue / "lockfiles/mini").glob("*linux-x86_64*"))),
    "app": lambda world, _: _append(world.app),
    "profile": lambda world, _: _append(world.profile),
    "upstream": lambda world, _: (world.upstream / "new.txt").write_text(""),
    "too-old": lambda _, memory: _change(memory, lambda found: found.update(time=0)),
    "of-tomorrow": lambda _, memory: _change(memory, lambda found: found.update(time=9e9)),
    "other-answer": lambda _, memory: _change(memory, lambda found: _other(found["answers"])),
    "question-that-is-gone": lambda _, memory: _change(memory, lambda found: found["answers"].update({"mini/x": "0"})),
    "no-lines": lambda _, memory: _change(memory, lambda found: found.pop("lines")),
    "no-line": lambda _, memory: _change(memory, lambda found: found["lines"].clear()),
    "number-for-a-text": lambda _, memory: _change(memory, lambda found: found["lines"][0].update(pair=7)),
    "text-for-texts": lambda _, memory: _change(memory, lambda found: found["lines"][0].update(warnings="abc")),
    "strange-lines": lambda _, memory: _change(memory, lambda found: found["lines"][0].pop("file")),
    "no-answers": lambda _, memory: _change(memory, lambda found: found.update(answers=7)),
    "damaged": lambda _, memory: memory.write_text("{"),
}


def _append(file: Path) -> None:
    file.write_text(file.read_text() + "# a word\n")


def _other(answers: dict[str, str]) -> None:
    answers.update(dict.fromkeys(answers, "0" * 64))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_is_looked_at(
    world: World, memory: Path, patchlock: Patchlock, change: Callable[[World, Path], object]
) -> None:
    change(world, memory)
    done = patchlock(*PAIR)
    assert f"{REMEMBERED} packages" not in done.stdout
    assert " packages in " in done.stdout or "commit" in done.stdout  # another upstream is another commit


def test_change_while_uv_is_waited_for_is_looked_at(
    world: World, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "cache"))
    assert memory.is_file()
    found = []
    for change in (lambda: None, lambda: _append(world.profile)):
        ahead = resolver_cache.ResolverPrefetch(tmp_path / "cache")
        with ahead.asked_again(["mini"], "tiny", "linux-x86_64"):
            again = RepeatedLock(PAIR, world.catalogue, ahead, as_json=True)
            change()
            found.append(again.answer())
    assert found == [0, None]


def test_another_uv_is_another_question(memory: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    metadata = tmp_path / "other" / "uv-9.9.9.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: uv\nVersion: 9.9.9\n")
    path = {"PYTHONPATH": f"{metadata.parent.parent}{os.pathsep}{ROOT / 'installer'}"}
    assert "written" in patchlock(*PAIR, env=path).stdout
    assert f"{REMEMBERED} packages" not in patchlock(*PAIR).stdout


def test_other_words_are_another_question(memory: Path, patchlock: Patchlock) -> None:
    assert not _is_remembered(patchlock, "--explain", "0")
    assert _is_remembered(patchlock)


@pytest.mark.parametrize(
    "line",
    [
        Line(pair="a × b", file="f", state="written", detail="", packages=1),
        Line(pair="a × b", file="f", state="failed", detail="no"),
        Line(pair="a × b", file="f", state="unchanged", detail="", packages=1, warnings=("a host is silent",)),
    ],
)
def test_what_was_written_or_told_is_not_remembered(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: Line
) -> None:
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path))
    good = Line(pair="a × b", file="f", state="unchanged", detail="", packages=1)
    again = RepeatedLock(PAIR, world.catalogue, resolver_cache.ResolverPrefetch(tmp_path), as_json=True)
    again.remember([good, line])
    assert again.answer() is None
    again.remember([good])
    assert again.answer() == 0
