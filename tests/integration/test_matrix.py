"""`matrix --changed-since` on the shipped catalogue: a changed input names the pairs whose locks have it, and no others."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from conftest import ROOT, Said

from patchlock.cli import _matrix
from patchlock.model import lockfile

pytestmark = pytest.mark.slow
Pairs = Callable[[], list[str]]
INPUTS = {
    lock.relative_to(ROOT).as_posix(): frozenset(
        lockfile.parse(lock.read_text(encoding="utf-8"), lock.name).provenance.inputs
    )
    for lock in sorted((ROOT / "lockfiles").glob("*/*.txt"))
    if not lock.name.endswith(".build.txt")
}
"""Lock → files that it was made from, as its own head says."""
OF_CATALOGUE = sorted({file for files in INPUTS.values() for file in files if not file.startswith("upstream:")})


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("catalogue")
    for name in ("lockfiles", "patches", "profiles"):
        shutil.copytree(ROOT / name, root / name)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "core.autocrlf=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    return root


@pytest.fixture
def named(catalogue: Path, face: Callable[..., Said]) -> Pairs:
    def run() -> list[str]:
        done = face("matrix", "--changed-since", "main", "--catalogue", str(catalogue))
        assert done.stderr == ""
        return [pair["lock"] for pair in json.loads(done.stdout)["include"]]

    return run


@contextmanager
def _with_one_more_line(file: Path) -> Iterator[None]:
    before = file.read_bytes()
    file.write_bytes(before + b"\n# corrected\n")
    try:
        yield
    finally:
        file.write_bytes(before)


def _of_each_kind() -> list[str]:
    """Take two files of each kind of input: those of one kind go the same way."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for file in OF_CATALOGUE:
        path = Path(file)
        owner = path.parts[1] if path.parts[1] in {"shared", "distributions", "indexes"} else ""
        kinds.setdefault((path.parts[0], owner, path.suffix), []).append(file)
    chance = random.Random(18)
    return sorted(file for files in kinds.values() for file in chance.sample(files, min(2, len(files))))


def test_nothing_is_named_where_nothing_changed(named: Pairs) -> None:
    assert named() == []


@pytest.mark.parametrize("file", _of_each_kind())
def test_change_of_an_input_names_exactly_the_locks_made_from_it(catalogue: Path, named: Pairs, file: str) -> None:
    with _with_one_more_line(catalogue / file):
        assert sorted(named()) == sorted(lock for lock, files in INPUTS.items() if file in files)


@pytest.mark.parametrize(
    "file",
    [
        "profiles/indexes/pytorch-rocm6.0.toml",
        "profiles/devices/amd.toml",
        "profiles/policy/torch-family.toml",
        "patches/shared/cases/README",
        "patches/demo/upstream/README.md",
        "README.md",
    ],
)
def test_change_of_what_no_lock_is_made_from_names_none(catalogue: Path, named: Pairs, file: str) -> None:
    path = catalogue / file
    is_new = not path.exists()
    path.touch()
    try:
        with _with_one_more_line(path):
            assert named() == []
    finally:
        if is_new:
            path.unlink()


def test_pair_without_a_lock_is_named(catalogue: Path, named: Pairs) -> None:
    lock = catalogue / "lockfiles" / "demo" / "cpu.linux-x86_64.txt"
    data = lock.read_bytes()
    lock.unlink()
    try:
        assert named() == ["lockfiles/demo/cpu.linux-x86_64.txt"]
    finally:
        lock.write_bytes(data)


@pytest.mark.parametrize("suffix", [".txt", ".build.txt"])
def test_changed_lock_is_made_again(catalogue: Path, named: Pairs, suffix: str) -> None:
    with _with_one_more_line(catalogue / "lockfiles" / "diffrhythm2" / f"cpu.linux-x86_64{suffix}"):
        assert named() == ["lockfiles/diffrhythm2/cpu.linux-x86_64.txt"]


def _groups(rows: int, most: int) -> list[int]:
    names = [{"app": f"app{row // 5}", "profile": "tiny", "platform": f"p{row % 5}", "lock": ""} for row in range(rows)]
    groups = _matrix._in_groups(names, most)
    found = [pair for group in groups for pair in cast("list[dict[str, str]]", group["pairs"])]
    assert found == names
    assert len({group["group"] for group in groups}) == len(groups)
    return [len(cast("list[object]", group["pairs"])) for group in groups]


@pytest.mark.parametrize("rows", [0, 1, 5, 6, 7, 11, 12, 13, 19, 100, 384, 385, 499, 500, 501])
@pytest.mark.parametrize("most", [1, 2, 4, 64, 256])
def test_every_group_is_worth_a_job(rows: int, most: int) -> None:
    sizes = _groups(rows, most)
    assert len(sizes) <= most
    assert min(sizes, default=6) >= min(6, rows)
    assert max(sizes, default=0) - min(sizes, default=0) <= 1


def test_five_hundred_pairs_use_all_jobs_that_are_worth_it() -> None:
    assert (len(_groups(500, 64)), len(_groups(500, 256))) == (64, 83)


def test_groups_are_neighbours_of_the_catalogue(face: Callable[..., Said]) -> None:
    pairs = json.loads(face("matrix", "--catalogue", str(ROOT)).stdout)["include"]
    groups = json.loads(face("matrix", "--catalogue", str(ROOT), "--groups", "4").stdout)["include"]
    assert len(groups) <= 4
    assert [pair for group in groups for pair in group["pairs"]] == pairs
