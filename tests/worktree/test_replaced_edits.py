"""An edit that a patch by meaning replaces is said, and comes back with every move that takes the patch out."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import CHOOSE, WANTED, clone, commit, git, upstream
from test_engine import patches

from patchlock.model.identities import Sha256
from patchlock.patches import edited_file, engine
from patchlock.worktree import _journal, clone_patches, move, trees
from patchlock.worktree.upstream_files import PatchSet

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

PIN = """
op = "set-requirement"
paths = ["requirements.txt"]
name = "{0}"
specifier = "{1}"
ensure = [{{ check = "requirement", name = "{0}", specifier = "{1}" }}]
"""
OLD = "gradio==4.0\n\n\ntorch==2.0\ntransformers==4.36.2\n\n\nnumpy\n"
MINE = OLD.replace("4.36.2", "4.30.0")
SAID = "a patch replaced your edit at requirements.txt:5 (transformers==4.30.0): transformers"


def wanted(*names: str, transformers: str = ">=4.43") -> PatchSet:
    """Give the patches of some requirements."""
    bounds = {"torch": ">=2.7", "transformers": transformers}
    made = patches(**{name: PIN.format(name, bounds[name]) for name in names})
    return dataclasses.replace(WANTED, patches=made, digest=Sha256(f"{'-'.join(names)}{transformers}"))


BOTH = wanted("torch", "transformers")


def apply(folder: Path, patched: PatchSet = BOTH) -> clone_patches.Applied:
    done = clone_patches.apply(trees.open_tree(folder), patched, folder.parent / "cache")
    assert done is not None
    return done


def said(done: clone_patches.Applied) -> list[str]:
    return [text.partition(";")[0] for text in done.warnings]


def undo(folder: Path) -> tuple[str, bool]:
    """Take the patches out; say what stands there then, and whether that is a conflict."""
    moved = clone_patches.undo(trees.open_tree(folder))
    return (folder / "requirements.txt").read_text(), bool(moved.conflicts)


@pytest.fixture
def edited(clone: Path, upstream: Path) -> Path:
    """A clone in which the user has changed a line that a patch changes too."""
    (upstream / "requirements.txt").write_text(OLD)
    commit(upstream)
    git(clone, "pull", "-q")
    (clone / "requirements.txt").write_text(MINE)
    return clone


def test_replaced_edit_is_said_and_undo_gives_the_tree_as_it_was(edited: Path) -> None:
    before = git(edited, "status", "--short"), git(edited, "diff")
    done = apply(edited)
    assert "transformers>=4.43\n" in (edited / "requirements.txt").read_text()
    way_back = f"`patchlock patch apply --source {edited} --without transformers` brings yours back"
    assert done.warnings == (f"{SAID}; {way_back}",), "the other patches stay"
    assert undo(edited) == (MINE, False)
    assert (git(edited, "status", "--short"), git(edited, "diff")) == before
    refs = git(edited, "for-each-ref", "--format=%(refname)", "refs/patchlock").split()
    assert refs == ["refs/patchlock/before"]


@pytest.mark.parametrize("is_pushed", [False, True], ids=["own-branch", "pushed-to-a-fork"])
def test_committed_edit_of_a_fork_that_is_replaced_is_said_too(edited: Path, upstream: Path, is_pushed: bool) -> None:
    commit(edited)
    patched = BOTH
    if is_pushed:
        git(edited.parent, "clone", "-q", "--bare", str(edited), "fork")
        git(edited, "remote", "rename", "origin", "upstream")
        git(edited, "remote", "add", "-f", "origin", str(edited.parent / "fork"))
        patched = dataclasses.replace(BOTH, url=str(upstream), branch="main")
    done = apply(edited, patched)
    assert said(done) == [SAID]
    assert undo(edited) == (MINE, False)


def test_reverted_commit_of_a_fork_is_no_edit(edited: Path) -> None:
    commit(edited)
    git(edited, "update-ref", "refs/remotes/origin/main", "HEAD")  # as after a push to the fork
    (edited / "requirements.txt").write_text(OLD)
    commit(edited, other="x = 2\n")
    assert said(apply(edited)) == []


def test_line_that_upstream_has_changed_is_no_edit_of_the_user(edited: Path, upstream: Path) -> None:
    git(edited, "checkout", "-q", "requirements.txt")
    assert said(apply(edited, dataclasses.replace(BOTH, url=str(upstream), branch="main"))) == []


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_line_of_upstream_that_a_fork_with_patches_has_merged_is_no_edit(
    clone: Path, upstream: Path, is_fresh: bool
) -> None:
    for version in ("4.36.2", "4.40.0"):
        (upstream / "requirements.txt").write_text(OLD.replace("4.36.2", version))
        commit(upstream)
        git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(0, 1))
        patched = dataclasses.replace(BOTH, profile="cpu")
        apply(clone, patched)
        git(clone, "commit", "-q", "-a", "-m", "patched", allowed=(0, 1))
        if version == "4.36.2" or is_fresh:
            git(clone, "update-ref", "refs/remotes/fork/main", "HEAD")
    folder = clone
    if is_fresh:
        git(clone.parent, "clone", "-q", str(clone), "fresh")
        folder = clone.parent / "fresh"
        commit(folder, mine="m = 1\n")
    assert said(apply(folder, patched)) == []


def test_line_of_an_amended_commit_of_upstream_is_no_edit(edited: Path, upstream: Path) -> None:
    (upstream / "requirements.txt").write_text(MINE)
    commit(upstream)
    git(edited, "checkout", "-q", "requirements.txt")
    git(edited, "pull", "-q")
    (edited / "other.py").write_text("x = 2\n")
    git(edited, "commit", "-qa", "--amend", "-m", "amended")
    assert said(apply(edited)) == []


def test_edit_in_a_place_of_several_lines_names_its_patch_and_those_that_need_it(edited: Path) -> None:
    text = "a = 1\nfirst = torch.load(\n    'model',\n    'cuda',\n)\nlast = 'mps'\n"
    text += "\n\ndef other():\n    return torch.load('other', 'cuda')\n"
    commit(edited, app=text)
    git(edited, "update-ref", "refs/remotes/origin/main", "HEAD")
    (edited / "app.py").write_text(text.replace("'model'", "'mine'"))
    op = 'op = "replace-expression"\npaths = ["app.py"]\nliteral = ["{0}"]\npattern = "{1}"\nreplacement = "{2}"\n'
    ensure = 'ensure = [{{ check = "no-string", value = "{0}" }}]\n'
    made = patches(
        load=op.format("cuda", "torch.load($file, 'cuda')", "load()") + ensure.format("cuda"),
        renamed='after = ["load"]\nwithin = ["other"]\n'
        + op.format("load", "load()", "load_here()")
        + ensure.format("cuda"),
        last=op.format("mps", "'mps'", "'cpu'") + ensure.format("mps"),
    )
    done = apply(edited, dataclasses.replace(WANTED, patches=made))
    [told] = done.warnings
    assert told.startswith("a patch replaced your edit at app.py:3 ('mine',): load; "), "not `last`, which is elsewhere"
    assert told.endswith(" --without load --without renamed` brings yours back")


def test_patch_that_replaces_the_edit_is_named_and_not_one_with_a_nearer_place() -> None:
    text, path = b'def f():\n    x = load("cuda")\n    log("old")\n', PurePosixPath("app.py")
    off = 'op = "disable-function"\npaths = ["app.py"]\nafter = ["choose"]\nfunction = "f"\n'
    made = patches(choose=CHOOSE, off=f'{off}ensure = [{{ check = "disabled", function = "f" }}]\n')
    done = edited_file.apply(made, engine.apply(made, {path: text}), path, text.replace(b"old", b"mine"))
    assert done is not None
    assert [(edit.line, edit.patches) for edit in done.replaced] == [(3, ("off",))]


def test_comment_of_the_user_stays_and_his_version_comes_back(edited: Path) -> None:
    mine = OLD.replace("torch==2.0", "torch==1.9  # mine")
    (edited / "requirements.txt").write_text(mine)
    done = apply(edited)
    assert "torch>=2.7  # mine\n" in (edited / "requirements.txt").read_text()
    assert said(done) == ["a patch replaced your edit at requirements.txt:4 (torch==1.9  # mine): torch"]
    assert undo(edited) == (mine, False)


@pytest.mark.parametrize(
    ("old", "new", "after", "is_conflict"),
    [
        ("numpy", "numpy<2", MINE.replace("numpy", "numpy<2"), False),
        ("transformers>=4.43", "transformers==4.45", "transformers==4.45", True),
    ],
    ids=["elsewhere", "same-line"],
)
def test_edit_after_the_patches_is_joined_with_the_one_before(
    edited: Path, old: str, new: str, after: str, is_conflict: bool
) -> None:
    apply(edited)
    file = edited / "requirements.txt"
    file.write_text(file.read_text().replace(old, new))
    text, meets = undo(edited)
    assert (meets, after in text) == (is_conflict, True)
    assert "transformers==4.30.0\n" in text


def test_patch_that_is_left_out_later_gives_the_edit_back(edited: Path) -> None:
    apply(edited)
    apply(edited, wanted("torch"))
    assert (edited / "requirements.txt").read_text() == MINE.replace("torch==2.0", "torch>=2.7")


def test_edit_comes_back_after_newer_patches_and_a_pull(edited: Path, upstream: Path) -> None:
    apply(edited)
    done = apply(edited, wanted("torch", "transformers", transformers=">=4.44"))
    assert said(done) == [SAID]
    newer = OLD.replace("gradio==4.0", "gradio==4.1")
    (upstream / "requirements.txt").write_text(newer)
    commit(upstream)
    clone_patches.update(trees.open_tree(edited), BOTH, edited.parent / "cache")
    text = (edited / "requirements.txt").read_text()
    assert text == newer.replace("==2.0", ">=2.7").replace("==4.36.2", ">=4.43")
    assert undo(edited) == (MINE.replace("gradio==4.0", "gradio==4.1"), False)


def test_edit_of_a_patched_line_that_newer_patches_replace_is_kept_too(edited: Path) -> None:
    (edited / "requirements.txt").write_text(OLD)
    apply(edited)
    file = edited / "requirements.txt"
    file.write_text(file.read_text().replace("transformers>=4.43", "transformers==4.30.0"))
    done = apply(edited, wanted("torch", "transformers", transformers=">=4.44"))
    assert "transformers>=4.44\n" in file.read_text()
    assert said(done) == [SAID]
    (kept,) = move.backups(trees.open_tree(edited))
    assert "transformers==4.30.0" in git(edited, "show", f"{kept.ref}:requirements.txt")


def test_kept_edit_survives_an_abort_and_a_kill(edited: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(edited)
    file = edited / "requirements.txt"
    file.write_text(file.read_text().replace("gradio==4.0", "gradio==3.0"))
    (upstream / "requirements.txt").write_text(OLD.replace("gradio==4.0", "gradio==4.1"))
    commit(upstream)
    tree = trees.open_tree(edited)
    done = clone_patches.update(tree, BOTH, edited.parent / "cache")
    assert done is not None
    assert done.moved.conflicts
    clone_patches.abort(tree)

    def step(name: str) -> None:
        if name == "move the refs":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_journal, "step", step)
        with pytest.raises(KeyboardInterrupt):
            apply(edited, wanted("torch", "transformers", transformers=">=4.44"))
    assert undo(edited) == (MINE.replace("gradio==4.0", "gradio==3.0"), False)
