"""What of the cache no generation needs: named first, removed only while nobody works in it, never what one was made from."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from patchlock.core import file_lock
from patchlock.environments import cache_pruning
from patchlock.patches.postconditions._python import NoString
from patchlock.worktree import patch_cache

WHEEL, PRODUCT, ARCHIVE, OTHER, SDIST, MADE = ("a" * 64, "b" * 64, "c" * 64, "d" * 64, "e" * 64, "f" * 64)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two generations: one with a wheel that was built, one with an extension and an overlay."""
    files = {
        "one/local.txt": f"delta==1.0 --hash=sha256:{WHEEL}\n",
        "two/in-tree.toml": f'[products]\n"native/delta.so" = "{PRODUCT}"\n',
        "two/overlays/preload.json": f'{{"overlays": [{{"archive": "{ARCHIVE}"}}]}}',
    }
    for name, text in files.items():
        path = tmp_path / "home" / "mini@tiny" / "environments" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "home"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with builds and archives, some of which a generation was made from."""
    made = {"1" * 16: ("delta==1.0", WHEEL), "2" * 16: ("mini:delta", PRODUCT), "3" * 16: ("gone==2.0", OTHER)}
    for inputs, (what, digest) in made.items():
        _build(tmp_path / "cache" / "builds" / inputs, "e" * 16, what, digest)
    _build(tmp_path / "cache" / "builds" / ("1" * 16), "f" * 16, "delta==1.0", OTHER)
    failed = tmp_path / "cache" / "builds" / ("4" * 16)
    failed.mkdir()
    (failed / "log.txt").write_text("cc: error")
    for sha256 in (ARCHIVE, OTHER):
        place = tmp_path / "cache" / "overlays" / sha256[:16]
        place.mkdir(parents=True)
        (place / "zluda.zip").write_bytes(b"PK")
    return tmp_path / "cache"


def _build(top: Path, name: str, what: str, digest: str) -> None:
    (top / name).mkdir(parents=True)
    (top / name / "built.toml").write_text(f'what = "{what}"\n[files]\n"a file" = "{digest}"\n')
    (top / "lock").touch()


ALL = (
    "a build of delta==1.0",
    "the build of gone==2.0",
    "the log of a build that did not succeed",
    "zluda.zip",
)


def _names(cache: Path, home: Path, *without: Path) -> tuple[str, ...]:
    needed = cache_pruning.needed(cache, home, without=without)
    return tuple(one.what for one in cache_pruning.unused_folders(cache, needed))


def test_what_no_generation_was_made_from_is_named_and_removed(cache: Path, home: Path) -> None:
    assert _names(cache, home) == ALL
    cache_pruning.remove(cache_pruning.unused_folders(cache, cache_pruning.needed(cache, home)))
    left = {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()} - {"overlays/lock"}
    kept = {f"builds/{'1' * 16}/lock", f"builds/{'1' * 16}/{'e' * 16}/built.toml", f"overlays/{'c' * 16}/zluda.zip"}
    assert left == {*kept, f"builds/{'2' * 16}/lock", f"builds/{'2' * 16}/{'e' * 16}/built.toml"}
    assert _names(cache, home) == ()


def test_what_a_generation_leaves_when_it_goes_is_named(cache: Path, home: Path) -> None:
    going = home / "mini@tiny" / "environments" / "two"
    assert set(_names(cache, home, going)) == {*ALL, "the build of mini:delta"}
    assert _names(cache, home, going).count("zluda.zip") == 2


def test_what_another_patchlock_works_in_stays(cache: Path, home: Path) -> None:
    found = cache_pruning.unused_folders(cache, cache_pruning.needed(cache, home))
    with (
        file_lock.hold(cache / "builds" / ("3" * 16) / "lock", wait=0),
        file_lock.hold(cache / "overlays" / "lock", wait=0),
    ):
        cache_pruning.remove(found)
    assert _names(cache, home) == ("the build of gone==2.0", "zluda.zip")


def test_build_that_runs_is_not_listed(cache: Path, home: Path) -> None:
    (cache / "builds" / ("4" * 16) / "lock").touch()
    with file_lock.hold(cache / "builds" / ("4" * 16) / "lock", wait=0):
        assert "the log of a build that did not succeed" not in _names(cache, home)


def test_build_of_an_install_that_is_not_finished_stays(cache: Path, home: Path) -> None:
    record = cache / "builds" / ("3" * 16) / ("e" * 16) / "built.toml"
    record.write_text(f'{record.read_text().replace(OTHER, MADE)}[source]\n"gone-2.0.tar.gz" = "{SDIST}"\n')
    environment = home / "mini@other" / "environments" / "begun"
    environment.mkdir(parents=True)
    assert "the build of gone==2.0" in _names(cache, home)
    (environment / "lock.txt").write_text(f"gone==2.0 --hash=sha256:{SDIST}\n")
    assert "the build of gone==2.0" not in _names(cache, home)
    assert MADE in cache_pruning.needed(cache, home), "its wheel lies in the wheelhouse, too"
    (home / "mini@tiny" / "environments" / "one" / "lock.txt").write_text(f"delta==1.0 --hash=sha256:{SDIST}\n")
    assert "a build of delta==1.0" in _names(cache, home), "an older one, beside the one that a generation has"


def test_cache_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert _names(tmp_path / "nowhere", tmp_path / "no home") == ()


def test_what_an_older_patchlock_kept_is_removed_and_answers_of_this_one_stay(tmp_path: Path, home: Path) -> None:
    with patch_cache.evaluator(tmp_path) as evaluator:
        evaluator.problems(NoString(value="cuda"), PurePosixPath("a.py"), b"x = 1\n")
    answers = tmp_path / patch_cache.FOLDER
    (now,) = answers.iterdir()
    older = answers / "0123456789abcdef"
    older.mkdir()
    (older / "one.json").write_text("{}")
    assert _names(tmp_path, home) == ("what an older patchlock kept",)
    cache_pruning.remove(cache_pruning.unused_folders(tmp_path, cache_pruning.needed(tmp_path, home)))
    assert list(answers.iterdir()) == [now]
    assert len(list(now.iterdir())) == 1
