"""What the user has already done himself as a patch would do it is not done twice, and stays when the patches go."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from test_clone_patches import CHOOSE, WANTED, clone, commit, git, upstream
from test_engine import patches

from patchlock.model.identities import Sha256
from patchlock.worktree import clone_patches, trees
from patchlock.worktree.upstream_files import PatchSet

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

ASK = """
op = "insert-statement"
paths = ["app.py"]
statement = "device = ask(device)"
within = ["start"]
at = "start"
ensure = [{ check = "has-statement", statement = "device = ask(device)", within = ["start"] }]
"""
HELPER = """
op = "add-file"
paths = ["helper.py"]
content = "x = 1\\n"
ensure = [{ check = "contains", text = "x" }]
"""
ASKED = "    device = ask(device)\n"
OLD = 'import os\n\n\ndef start(device):\n    one = 1\n    two = 2\n    three = 3\n    return "cuda"\n'
MINE = OLD.replace("    two", f"{ASKED}    two")
OPEN, ASKED_OPEN = "(device):\n    one", f"(device):\n{ASKED}    one"
ASKS_ITSELF = OLD.replace(OPEN, ASKED_OPEN)
PATCHED = ASKS_ITSELF.replace('"cuda"', "choose()")


def wanted(number: int = 0, **texts: str) -> PatchSet:
    """Give patches, the same ones with another number as newer ones."""
    return dataclasses.replace(WANTED, patches=patches(**texts), digest=Sha256(str(number)))


BOTH = {"ask": ASK, "choose": CHOOSE}


def apply(folder: Path, patched: PatchSet) -> clone_patches.Applied:
    done = clone_patches.apply(trees.open_tree(folder), patched, folder.parent / "cache")
    assert done is not None
    return done


def undo(folder: Path) -> str:
    """Take the patches out, and say what stands there then."""
    assert clone_patches.undo(trees.open_tree(folder)).conflicts == ()
    return (folder / "app.py").read_text()


@pytest.fixture
def edited(clone: Path, upstream: Path) -> Path:
    """A clone in which the user has inserted a statement a line below the place where a patch inserts it."""
    commit(upstream, app=OLD, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    (clone / "app.py").write_text(MINE)
    return clone


def test_statement_that_the_user_has_inserted_nearby_is_not_inserted_again(edited: Path) -> None:
    apply(edited, wanted(**BOTH))
    assert (edited / "app.py").read_text() == MINE.replace('"cuda"', "choose()")
    assert clone_patches.apply(trees.open_tree(edited), wanted(**BOTH), edited.parent / "cache") is None
    assert undo(edited) == MINE


def test_patch_that_the_user_has_done_in_one_of_two_places_is_done_in_the_other(edited: Path, upstream: Path) -> None:
    both = ASK.replace('["start"]\nat', '["start", "stop"]\nat')
    git(edited, "checkout", "-q", ".")
    commit(upstream, app=OLD + OLD.replace("start", "stop"))
    git(edited, "pull", "-q")
    (edited / "app.py").write_text(MINE + OLD.replace("start", "stop"))
    apply(edited, wanted(ask=both))
    there = OLD.replace("start", "stop").replace(OPEN, ASKED_OPEN)
    assert (edited / "app.py").read_text() == MINE + there
    assert undo(edited) == MINE + OLD.replace("start", "stop")


def test_statement_of_the_user_stays_alone_through_newer_patches_updates_and_edits(
    edited: Path, upstream: Path
) -> None:
    apply(edited, wanted(ask=ASK))
    assert (edited / "app.py").read_text() == MINE
    apply(edited, wanted(1, **BOTH))
    (edited / "app.py").write_text((edited / "app.py").read_text().replace("one = 1", "one = 11"))
    commit(upstream, app=OLD.replace("import os", "import sys"))
    clone_patches.update(trees.open_tree(edited), wanted(1, **BOTH), edited.parent / "cache")
    now = MINE.replace("import os", "import sys").replace("one = 1", "one = 11")
    assert (edited / "app.py").read_text() == now.replace('"cuda"', "choose()")
    assert undo(edited) == now


def test_statement_that_the_user_has_moved_after_patching_is_not_inserted_again(edited: Path) -> None:
    (edited / "app.py").write_text(OLD)
    apply(edited, wanted(ask=ASK))
    (edited / "app.py").write_text(MINE)
    apply(edited, wanted(1, **BOTH))
    assert (edited / "app.py").read_text() == MINE.replace('"cuda"', "choose()")


@pytest.mark.parametrize("old", [OLD, ASKS_ITSELF], ids=["two-patches-needed", "one-fixed-upstream"])
def test_other_use_of_what_a_patch_writes_leaves_the_users_lines_as_they_are(
    edited: Path, upstream: Path, old: str
) -> None:
    git(edited, "checkout", "-q", ".")
    (upstream / "app.py").write_text(old)
    git(upstream, "commit", "-q", "-a", "--allow-empty", "-m", "asks")
    git(edited, "pull", "-q")
    mine = old.replace("import os\n", 'import os\nfour = choose()\nfive = "cuda"\n')
    (edited / "app.py").write_text(mine)
    apply(edited, wanted(**BOTH))
    assert (edited / "app.py").read_text() == mine.replace('return "cuda"', "return choose()").replace(OPEN, ASKED_OPEN)
    assert undo(edited) == mine


@pytest.mark.parametrize("is_staged", [False, True], ids=["not-staged", "staged"])
def test_edits_that_are_the_same_as_the_patches_stay_when_these_go(edited: Path, is_staged: bool) -> None:
    (edited / "app.py").write_text(PATCHED)
    (edited / "helper.py").write_text("x = 1\n")
    if is_staged:
        git(edited, "add", "-A")
    before = git(edited, "status", "--short"), git(edited, "diff", "HEAD")
    done = apply(edited, wanted(**BOTH, helper=HELPER))
    assert [*map(str, done.moved.merged)] == ["app.py", "helper.py"]
    apply(edited, wanted(1, **BOTH, helper=HELPER))
    assert (edited / "other.py").read_text() == "x = choose()\n"
    assert undo(edited) == PATCHED
    assert (git(edited, "status", "--short"), git(edited, "diff", "HEAD")) == before


@pytest.mark.parametrize("how", ["at-once", "updated", "pulled"])
def test_edit_that_a_patch_makes_too_stays_in_a_file_with_other_changes(edited: Path, upstream: Path, how: str) -> None:
    plain = wanted(plain=CHOOSE.replace('"choose()"', "'\"cpu\"'"))
    (edited / "app.py").write_text(mine := OLD.replace('"cuda"', '"cpu"').replace("one = 1", "one = 11"))
    apply(edited, plain)
    if how != "at-once":
        commit(upstream, app=OLD.replace("import os", "import sys"))
        mine = mine.replace("import os", "import sys")
    if how == "pulled":
        git(edited, "pull", "-q", "--rebase", "--autostash")
        apply(edited, plain)
    elif how == "updated":
        clone_patches.update(trees.open_tree(edited), plain, edited.parent / "cache")
    assert undo(edited) == mine


def test_patched_files_that_come_back_from_a_stash_are_taken_out(edited: Path) -> None:
    (edited / "app.py").write_text(OLD)
    apply(edited, wanted(**BOTH))
    git(edited, "stash", "-q")
    git(edited, "stash", "pop", "-q")
    apply(edited, wanted(1, **BOTH))
    assert undo(edited) == OLD


def test_edit_that_is_upstreams_next_commit_is_none_any_more_after_the_update(edited: Path, upstream: Path) -> None:
    patched = wanted(choose=CHOOSE.replace("**/*.py", "other.py"))
    apply(edited, patched)
    commit(upstream, app=MINE)
    done = clone_patches.update(trees.open_tree(edited), patched, edited.parent / "cache")
    assert done is not None
    assert done.moved.merged == ()
