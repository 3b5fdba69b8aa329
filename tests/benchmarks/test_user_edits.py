"""A few of the random trials of `benchmarks/user_edits.py`: nothing of the user's is lost, and the merge is git's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import PurePosixPath

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import user_edits

from patchlock.worktree import _tree_merge
from patchlock.worktree.trees import Entry, Tree


def _has_merge_tree() -> bool:
    words = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return tuple(int(part) for part in words.split(".")[:2]) >= (2, 38)


pytestmark = pytest.mark.skipif(not _has_merge_tree(), reason="git is older than 2.38 and cannot merge trees for us")


@pytest.mark.slow
def test_nothing_of_the_users_is_lost() -> None:
    counted = user_edits.play(range(6), 12)
    assert counted["clean"] + counted["conflicts"] == 6 * 12
    assert counted["same as git"] > 0


def test_trials_see_a_merge_that_loses_the_users_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(
        _tree: Tree, sides: _tree_merge.Sides, *, takes_out: bool = False
    ) -> tuple[dict[PurePosixPath, Entry | None], dict[PurePosixPath, set[int]]]:
        return {path: new for path, (_, _, new) in sides.items()}, {}

    monkeypatch.setattr(_tree_merge, "merge_paths", losing)
    with pytest.raises(user_edits.LostError, match="seed 0"):
        user_edits.play(range(1), 12)
