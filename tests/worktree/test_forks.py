"""A fork that has committed its patches: what `patch undo` and `patch apply` make of it, in every clone the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import CHOOSE, DEVICE, FILE, HELPER, PATCHED, USE, WANTED, clone, commit, git, read, upstream
from test_engine import patches

from patchlock.model.errors import GitFirstError, NotPatchedError, PatchError, UpstreamError
from patchlock.model.identities import CommitId, Sha256
from patchlock.patches import engine
from patchlock.patches.evaluation import DIRECT
from patchlock.worktree import _outcomes_in_tree, clone_patches, committed_undo, histories, trees
from patchlock.worktree.upstream_files import PatchSet

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]

CHOOSES = """
op = "replace-text"
paths = ["{}.py"]
old = 'device = "cuda"'
new = "device = choose()"
ensure = [{{ check = "contains", text = "choose()" }}]
"""
IMPORTS = """
op = "insert-statement"
paths = ["app.py"]
statement = "import dac"
above = "line7 = 7"
ensure = [{ check = "has-statement", statement = "import dac" }]
"""
DIFF = """
op = "unified-diff"
paths = ["app.py"]
diff = '''
--- a/app.py
+++ b/app.py
@@ -4,4 +4,5 @@
 line4 = 4
 device = "cuda"
 line6 = 6
+import dac
 line7 = 7
'''
ensure = [{ check = "contains", text = "import dac" }]
"""
BLANK = """
op = "unified-diff"
paths = ["app.py"]
diff = "--- a/app.py\\n+++ b/app.py\\n@@ -2,4 +2,6 @@\\n line2 = 2\\n \\n+import dac\\n+\\n line3 = 3\\n line4 = 4\\n"
ensure = [{ check = "contains", text = "import dac" }]
"""
STILL = "your last commit still has patches: commit what has changed to take them out there too"


def of_app(upstream: Path, **texts: str) -> PatchSet:
    return dataclasses.replace(
        WANTED, profile="cpu", patches=patches(**(texts or {"choose": CHOOSE})), url=str(upstream), branch="main"
    )


def apply(folder: Path, wanted: PatchSet) -> clone_patches.Applied:
    done = clone_patches.apply(trees.open_tree(folder), wanted, folder.parent / "cache")
    assert done is not None
    return done


def colleagues(clone: Path, wanted: PatchSet) -> Path:
    """Commit patches in a clone, and apply them in another clone of it."""
    apply(clone, wanted)
    commit(clone)
    fresh = clone.parent / "fresh"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    apply(fresh, wanted)
    return fresh


def undo(folder: Path) -> str:
    """Take the patches out, and give what is said of the last commit."""
    told, _ = committed_undo.told(trees.open_tree(folder))
    assert clone_patches.undo(trees.open_tree(folder)).conflicts == ()
    return told


@pytest.mark.parametrize("is_pushed", [True, False], ids=["pushed", "local"])
@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_edits_that_became_patches_are_patches_once_they_are_committed(
    clone: Path, tmp_path: Path, is_fresh: bool, is_pushed: bool
) -> None:
    (clone / "patches.toml").write_text("as `patch new` has written it from the edit")
    (clone / "app.py").write_text(PATCHED)
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"))
    apply(clone, wanted)
    commit(clone, mine="m = 1\n")
    if is_pushed:
        git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    folder = clone
    if is_fresh:
        git(tmp_path, "clone", "-q", str(clone), "fresh")
        folder = tmp_path / "fresh"
        apply(folder, dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml")))
    assert undo(folder) == STILL
    assert (read(folder), git(folder, "status", "--short")) == (FILE, "M app.py")


def test_committed_patches_go_and_an_edit_beside_them_that_is_not_committed_stays(clone: Path, upstream: Path) -> None:
    plain = patches(plain=CHOOSE.replace('"choose()"', "'\"cpu\"'"))
    (clone / "patches.toml").write_text("as `patch new` has written it from the edit")
    (clone / "app.py").write_text(made := FILE.replace('"cuda"', '"cpu"'))
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"), patches=plain)
    apply(clone, wanted)
    commit(clone)
    (clone / "app.py").write_text(made.replace("line1 = 1", "line1 = 11"))
    apply(clone, wanted)
    commit(upstream, app=FILE.replace("line9 = 9", "line9 = 99"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", "--autostash")
    apply(clone, wanted)
    assert undo(clone) == STILL
    assert read(clone) == FILE.replace("line1 = 1", "line1 = 11").replace("line9 = 9", "line9 = 99")


@pytest.mark.parametrize("renews", [False, True], ids=["at-once", "after-apply"])
@pytest.mark.parametrize("how", ["plain", "merged", "merged-and-pushed", "rebased", "fresh"])
def test_undo_leaves_what_upstream_has_adopted(
    clone: Path, upstream: Path, tmp_path: Path, how: str, renews: bool
) -> None:
    wanted = of_app(upstream)
    apply(clone, wanted)
    if how != "plain":
        commit(clone, mine="m = 1\n")
    commit(upstream, app=PATCHED + "end = 1\n")
    way = "--rebase" if how == "rebased" else "--no-rebase"
    git(clone, "pull", "-q", way, "--no-edit", "--autostash")
    folder = clone
    if how == "merged-and-pushed":
        git(clone, "remote", "add", "fork", "elsewhere")
        git(clone, "update-ref", "refs/remotes/fork/main", "HEAD")
    if how == "fresh":  # whose only remote is the fork
        git(tmp_path, "clone", "-q", str(clone), "fresh")
        folder = tmp_path / "fresh"
    if how in {"merged", "merged-and-pushed"} and not renews:
        with pytest.raises(NotPatchedError, match="your branch was merged or rebased after"):
            clone_patches.undo(trees.open_tree(folder))
        assert git(folder, "status", "--short") == ""
        return
    if renews or how == "fresh":
        apply(folder, wanted)
    undo(folder)
    assert (read(folder), git(folder, "status", "--short")) == (PATCHED + "end = 1\n", "")


@pytest.mark.parametrize("knows_upstream", [True, False], ids=["remote", "no-remote"])
@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
@pytest.mark.parametrize("count", [2, 4], ids=["half", "nearly-all"])
def test_undo_leaves_the_part_that_upstream_has_adopted(
    clone: Path, upstream: Path, tmp_path: Path, is_fresh: bool, knows_upstream: bool, count: int
) -> None:
    names = ("a", "b", "c", "d", "e")
    commit(upstream, **dict.fromkeys(names, FILE))
    git(clone, "pull", "-q")
    wanted = of_app(upstream)
    apply(clone, wanted)
    commit(clone, mine="m = 1\n")
    commit(upstream, app=PATCHED + "end = 1\n", **dict.fromkeys(names[:count], PATCHED))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    folder = clone
    if is_fresh:
        git(tmp_path, "clone", "-q", str(clone), "fresh")
        folder = tmp_path / "fresh"
        if knows_upstream:
            git(folder, "remote", "add", "upstream", str(upstream))
            git(folder, "fetch", "-q", "upstream")
    elif not knows_upstream:
        git(clone, "remote", "remove", "origin")
    apply(folder, wanted)
    undo(folder)
    assert (
        git(folder, "diff", git(upstream, "rev-parse", "HEAD"), "--stat", "--", *(f"{one}.py" for one in names)) == ""
    )
    assert [read(folder, one) for one in ("app", *names)] == [
        PATCHED + "end = 1\n",
        *[PATCHED] * count,
        *[FILE] * (5 - count),
    ]


def _own(folder: Path) -> PatchSet:
    """Give patches that a fork has committed in a file, one for each file of its code."""
    texts = {name: CHOOSE.replace("**/*.py", f"{name}.py") for name in ("app", "a", "b")}
    return dataclasses.replace(WANTED, origin=str(folder.resolve() / "patches.toml"), patches=patches(**texts))


def _patched_fork(clone: Path, upstream: Path) -> None:
    commit(upstream, a=FILE, b=FILE)
    git(clone, "pull", "-q")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    apply(clone, _own(clone))
    commit(clone)


def test_own_patch_is_lost_where_a_merge_has_left_another_line(clone: Path, upstream: Path) -> None:
    _patched_fork(clone, upstream)
    commit(clone, a=FILE.replace('"cuda"', '("cuda")'))
    fresh = clone.parent / "fresh"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    assert (apply(fresh, _own(fresh)).lost, apply(fresh, _own(fresh)).lost) == (("a",), ("a",))
    commit(fresh, a=PATCHED)
    assert apply(fresh, _own(fresh)).lost == ()


def _of_plain_values(folder: Path) -> PatchSet:
    """Give patches of a fork that write a value too common to be known again."""
    plain = CHOOSE.replace('"choose()"', "'\"cpu\"'")
    texts = {name: plain.replace("**/*.py", f"{name}.py") for name in ("app", "a", "b", "c")}
    return dataclasses.replace(WANTED, origin=str(folder.resolve() / "patches.toml"), patches=patches(**texts))


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
@pytest.mark.parametrize(
    ("side", "is_whole", "written"),
    [("theirs", False, ("a.py", "app.py", "b.py")), ("ours", False, ()), ("ours", True, ())],
    ids=["theirs", "ours", "ours-alone"],
)
def test_merge_that_took_one_side_of_files_leaves_the_patches_in_the_others(
    clone: Path, upstream: Path, is_fresh: bool, side: str, is_whole: bool, written: tuple[str, ...]
) -> None:
    commit(upstream, a=FILE, b=FILE, c=FILE)
    git(clone, "pull", "-q")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    apply(clone, _of_plain_values(clone))
    commit(clone)
    theirs = FILE.replace("line4 = 4", "line4 = 44")
    commit(upstream, app=theirs, a=theirs, b=theirs, other="x = 2\n")
    git(clone, "fetch", "-q")
    git(clone, "merge", "-q", *(["-s", side] if is_whole else ["-X", side]), "-m", "merge", "origin/main")
    folder = clone
    if side == "theirs":
        git(clone, "checkout", "-q", "origin/main", "--", "app.py", "a.py", "b.py")
        git(clone, "commit", "-q", "--amend", "-m", "merge")
    if is_fresh:
        folder = clone.parent / "fresh"
        git(clone.parent, "clone", "-q", str(clone), str(folder))
    done = apply(folder, _of_plain_values(folder))
    assert (done.lost, tuple(map(str, done.moved.written))) == ((), written)
    assert {one.patch: one.kind.value for one in done.outcomes}["c"] in {"needed", "already ours"}
    if side == "theirs":
        assert undo(folder) == STILL
        assert [read(folder, name) for name in ("app", "a", "b", "c")] == [theirs, theirs, theirs, FILE]


@pytest.mark.parametrize("is_edited", [False, True], ids=["clean", "edited"])
def test_what_upstream_did_itself_is_not_called_the_users(clone: Path, upstream: Path, is_edited: bool) -> None:
    commit(upstream, app=FILE.replace('"cuda"', '"cpu"'), a=FILE, b=FILE, c=FILE)
    git(clone, "pull", "-q")
    if is_edited:
        (clone / "app.py").write_text(read(clone).replace("line1 = 1", "line1 = 11"))
    outcomes = apply(clone, _of_plain_values(clone)).outcomes
    assert {one.patch: one.kind.value for one in outcomes} == dict.fromkeys("abc", "needed") | {"app": "fixed upstream"}


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_patch_that_upstream_has_adopted_elsewhere_is_fixed_at_the_merged_commit(
    clone: Path, upstream: Path, is_fresh: bool
) -> None:
    (clone / "patches.toml").write_text("as `patch new` has written it")
    commit(clone, app=FILE.replace("line7", "import dac\nline7"))
    theirs = commit(upstream, app=FILE.replace("line2", "if True:\n    import dac\nline2"), other="x = 2\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    folder = clone
    if is_fresh:
        folder = clone.parent / "fresh"
        git(clone.parent, "clone", "-q", str(clone), str(folder))
    origin = str(folder.resolve() / "patches.toml")
    wanted = dataclasses.replace(WANTED, origin=origin, patches=patches(dac=IMPORTS))
    done, tree = apply(folder, wanted), trees.open_tree(folder)
    upstream_commit, _, outcomes = clone_patches.status(tree, wanted, folder.parent / "cache")
    assert (done.upstream, upstream_commit) == (theirs, theirs)
    assert [one.kind.value for one in (*done.outcomes, *outcomes)] == ["fixed upstream"] * 2
    assert (done.lost, done.moved.written) == ((), ())


def _merged_beside_the_place_of_a_diff(
    clone: Path, upstream: Path, line4: str, line7: str = "line7 = 7"
) -> tuple[CommitId, Path, PatchSet]:
    """Merge an upstream that has changed what a committed diff is placed by; give its commit, a fresh clone, patches."""
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"), patches=patches(dac=DIFF))
    apply(clone, wanted)
    commit(clone)
    theirs = commit(upstream, app=FILE.replace("line4 = 4", line4).replace("line7 = 7", line7), other="x = 2\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", "-X", "ours")
    fresh = clone.parent / "fresh"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    return theirs, fresh, wanted


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_diff_whose_place_upstream_has_changed_is_carried_by_the_merge(
    clone: Path, upstream: Path, is_fresh: bool
) -> None:
    theirs, fresh, wanted = _merged_beside_the_place_of_a_diff(clone, upstream, "line4 = 44")
    folder = fresh if is_fresh else clone
    wanted = dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml"))
    tree, merged = trees.open_tree(folder), read(folder)
    done = apply(folder, wanted)
    assert (done.upstream, done.lost, done.moved.written, done.moved.merged) == (theirs, (), (), ())
    new = f"patchlock patch new --source {folder} --base {theirs[:12]} --into {wanted.origin}"
    why = "upstream has changed the lines by which it is placed in app.py, so git's merge carried it"
    renew = f"to renew it, remove its table from {wanted.origin} and write it again with `{new}`"
    assert done.warnings == (f"dac: {why}; {renew}",)
    for skipped, text in ((("dac",), FILE.replace("line4 = 4", "line4 = 44")), ((), merged)):
        chosen = dataclasses.replace(wanted, skipped=skipped, digest=Sha256(str(len(skipped)) * 64))
        apply(folder, chosen)
        at, _, (outcome,) = clone_patches.status(tree, chosen, folder.parent / "cache")
        kind = "left out" if skipped else "already ours"
        assert (read(folder), at, outcome.kind.value) == (text, theirs, kind)
    assert undo(folder) == STILL
    assert read(folder) == FILE.replace("line4 = 4", "line4 = 44")


RUNTIME = """
op = "replace-expression"
paths = ["app.py"]
pattern = '"cu117"'
replacement = '"rocm5"'
ensure = [
    { check = "no-string", value = "cu117" },
    { check = "has-expression", expression = 'load("rocm5")' },
]
"""


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
@pytest.mark.parametrize(
    ("text", "lost", "kind"),
    [('load("rocm6")', ("runtime",), "gone"), ('x = load("rocm5")', (), "already ours")],
    ids=["third", "edit"],
)
def test_what_a_conflict_was_resolved_to_stays(
    clone: Path, upstream: Path, is_fresh: bool, text: str, lost: tuple[str, ...], kind: str
) -> None:
    before = FILE.replace("line7 = 7", 'load("cu117")')
    commit(upstream, app=before)
    git(clone, "pull", "-q")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(
        WANTED, origin=str(clone.resolve() / "patches.toml"), patches=patches(choose=CHOOSE, runtime=RUNTIME)
    )
    apply(clone, wanted)
    commit(clone)
    commit(upstream, app=before.replace("cu117", "cu118").replace("line2 = 2", "line2 = 22"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    merged = PATCHED.replace("line7 = 7", text).replace("line2 = 2", "line2 = 22")
    commit(clone, app=merged)
    folder = clone
    if is_fresh:
        folder = clone.parent / "fresh"
        git(clone.parent, "clone", "-q", str(clone), str(folder))
    done = apply(folder, dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml")))
    assert (read(folder), done.moved.written, done.moved.conflicts, done.lost) == (merged, (), (), lost)
    assert {one.patch: one.kind.value for one in done.outcomes}["runtime"] == kind


ONE_PLACE = """
op = "replace-expression"
paths = ["app.py"]
pattern = "None"
replacement = "7861"
expect = { sites = 1, exact = true }
ensure = [
    { check = "has-expression", expression = "port(7861)" },
    { check = "lacks", text = "None" },
]
"""


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_new_code_of_upstream_that_is_like_an_edited_place_stays(clone: Path, upstream: Path, is_fresh: bool) -> None:
    commit(upstream, app=FILE.replace("line7 = 7", "port(None)"))
    git(clone, "pull", "-q")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"), patches=patches(port=ONE_PLACE))
    apply(clone, wanted)
    commit(clone)
    commit(upstream, app=FILE.replace("line7 = 7", "port(None)").replace("line2 = 2", "model(None)"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    folder, merged = clone, read(clone)
    if is_fresh:
        folder = clone.parent / "fresh"
        git(clone.parent, "clone", "-q", str(clone), str(folder))
    done = apply(folder, dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml")))
    assert (read(folder), done.moved.written, done.lost) == (merged, (), ())


TWICE = "call venv\n\nload(1)\nrun()\n\n"
SECOND = """
op = "unified-diff"
paths = ["app.py"]
diff = "--- a/app.py\\n+++ b/app.py\\n@@ -8,2 +8,2 @@\\n-load(1)\\n+load(9)\\n run()\\n"
ensure = [{ check = "contains", text = "load(9)" }]
"""


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_diff_does_not_move_to_a_place_that_is_only_alike(clone: Path, upstream: Path, is_fresh: bool) -> None:
    commit(upstream, app=TWICE + TWICE)
    git(clone, "pull", "-q")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"), patches=patches(second=SECOND))
    apply(clone, wanted)
    assert read(clone) == TWICE + TWICE.replace("1", "9")
    commit(clone)
    commit(upstream, app=TWICE + TWICE.replace("1", "2"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", "-X", "ours")
    folder = clone
    if is_fresh:
        folder = clone.parent / "fresh"
        git(clone.parent, "clone", "-q", str(clone), str(folder))
    with pytest.raises(PatchError) as caught:
        apply(folder, dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml")))
    (told,) = caught.value.evidence
    why = "upstream has changed the place of the edit, and its text stands here too"
    assert told == f"second: app.py:3: ambiguous: {why}"
    assert read(folder) == TWICE + TWICE.replace("1", "9")


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_refusal_in_a_fork_says_first_how_its_edit_is_kept(clone: Path, upstream: Path, is_fresh: bool) -> None:
    theirs, fresh, wanted = _merged_beside_the_place_of_a_diff(clone, upstream, "line4 = 4", line7="line67 = 7")
    folder = fresh if is_fresh else clone
    wanted = dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml"))
    with pytest.raises(PatchError, match="does not do what it says") as caught:
        apply(folder, wanted)
    new = f"patchlock patch new --source {folder} --base {theirs[:12]} --into {wanted.origin}"
    assert caught.value.remedy.startswith(
        f"keep the edit of your commits: remove its table from {wanted.origin} and write it "
        f"again with `{new}`, correct the patch ("
    )


def test_refusal_in_a_fork_knows_that_its_commits_took_upstreams_side(clone: Path, upstream: Path) -> None:
    _, folder, wanted = _merged_beside_the_place_of_a_diff(clone, upstream, "line4 = 4", line7="line67 = 7")
    commit(folder, app=read(upstream))
    wanted = dataclasses.replace(wanted, origin=str(folder.resolve() / "patches.toml"))
    with pytest.raises(PatchError, match="does not do what it says") as caught:
        apply(folder, wanted)
    gone = "as your commits have no such edit any more"
    assert caught.value.remedy.startswith(f"remove its table from {wanted.origin}, {gone}, correct the patch (")


def test_edit_beside_newer_lines_of_upstream_is_there(clone: Path) -> None:
    old = FILE.replace("line3", "\nline3")
    wanted = dataclasses.replace(WANTED, patches=patches(dac=BLANK))
    patched = engine.apply(wanted.patches, {PurePosixPath("app.py"): old.encode()})
    tree, newer = trees.open_tree(clone), old.replace("line4 = 4", "line4 = 44")
    for new, kind in (("import dac\n\nline3", "already ours"), ("import dab\n\nline3", "drifted by the user")):
        commit(clone, app=newer.replace("line3", new))
        (outcome,) = _outcomes_in_tree.in_tree(tree, wanted, patched, DIRECT)
        assert outcome.kind.value == kind


def test_patch_that_only_the_last_commit_has_is_taken_back_by_an_edit(clone: Path) -> None:
    commit(clone, app=PATCHED)
    (clone / "app.py").write_text(FILE)
    done = apply(clone, dataclasses.replace(WANTED, patches=patches(choose=CHOOSES.format("app"))))
    (outcome,) = done.outcomes
    assert (outcome.kind.value, outcome.detail) == (
        "drifted by the user",
        "in your file: the text `choose()` is missing",
    )
    assert done.lost == ("choose",)


def test_undo_says_what_the_commit_has_once_its_conflict_is_resolved(clone: Path, upstream: Path) -> None:
    _patched_fork(clone, upstream)
    commit(clone, a=PATCHED.replace("choose()", "choose()  # mine"))
    fresh = clone.parent / "fresh"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    apply(fresh, _own(fresh))
    assert [str(path) for path in clone_patches.undo(trees.open_tree(fresh)).conflicts] == ["a.py"]
    (fresh / "a.py").write_text(FILE)
    assert undo(fresh) == STILL
    assert [read(fresh, name) for name in ("app", "a", "b")] == [FILE] * 3


def test_undo_finds_the_patches_of_a_clone_that_has_another_name_now(clone: Path, upstream: Path) -> None:
    _patched_fork(clone, upstream)
    fresh, renamed = clone.parent / "fresh", clone.parent / "renamed"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    apply(fresh, _own(fresh))
    fresh.rename(renamed)
    assert undo(renamed) == STILL
    assert [read(renamed, name) for name in ("app", "a", "b")] == [FILE] * 3


def _merge_with_conflicts(clone: Path, upstream: Path) -> None:
    _patched_fork(clone, upstream)
    theirs = FILE.replace("line4 = 4", "line4 = 44")
    commit(upstream, a=theirs, b=theirs)
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))


def test_patch_that_waits_for_the_end_of_a_merge_is_not_called_applied(clone: Path, upstream: Path) -> None:
    _merge_with_conflicts(clone, upstream)
    git(clone, "checkout", "-q", "--theirs", "a.py")
    git(clone, "add", "a.py")
    done = apply(clone, _own(clone))
    assert ("choose()" in read(clone, "a"), "choose()" in read(clone, "b")) == (False, True)
    assert {one.patch: one.detail for one in done.outcomes}["a"] == "waits for the end of your merge: a.py"
    git(clone, "-c", "core.editor=true", "merge", "--continue")
    assert {one.detail for one in apply(clone, _own(clone)).outcomes} == {""}
    assert "choose()" in read(clone, "a")


def test_edit_in_a_conflict_is_not_lost_to_a_patch_that_finds_nothing(clone: Path, upstream: Path) -> None:
    _patched_fork(clone, upstream)
    commit(upstream, a=FILE.replace('"cuda"', "pick()") + "other = choose()\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    before = read(clone, "a")
    with pytest.raises(PatchError, match="a finds nothing to change in upstream's version of a file that is in conf"):
        apply(clone, _own(clone))
    assert read(clone, "a") == before
    assert "device = choose()\n" in before


@pytest.mark.parametrize("is_removed", [False, True], ids=["left-out", "removed"])
def test_nothing_is_left_out_in_the_middle_of_a_merge(clone: Path, upstream: Path, is_removed: bool) -> None:
    _merge_with_conflicts(clone, upstream)
    own = _own(clone)
    fewer = dataclasses.replace(own, skipped=("app",))
    if is_removed:
        fewer = dataclasses.replace(own, patches=own.patches[1:], digest=Sha256("1" * 64))
    with pytest.raises(GitFirstError, match="so nothing was changed"):
        clone_patches.apply(trees.open_tree(clone), fewer, clone.parent / "cache")
    assert read(clone) == PATCHED


@pytest.mark.parametrize("profile", ["cpu", "metal"])
@pytest.mark.parametrize("moves_on", [False, True], ids=["at-once", "after-a-commit"])
def test_clone_that_is_given_the_rest_of_its_history_is_patched_anew(
    clone: Path, tmp_path: Path, profile: str, moves_on: bool
) -> None:
    on_cpu, on_metal = (patches(**{f"on-{kind}": DEVICE.format(kind)}) for kind in ("cpu", "mps"))
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=on_cpu, others=(("metal", on_metal),))
    metal = dataclasses.replace(
        WANTED, profile="metal", patches=on_metal, others=(("cpu", on_cpu),), digest=Sha256("1" * 64)
    )
    asks = '"cuda" if torch.cuda.is_available() else "cpu"'
    commit(clone, app=f"{FILE}old = {asks}\n")
    apply(clone, cpu)
    commit(clone, app=read(clone) + "fork = 1\n", mine="m = 1\n")
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "fresh")
    fresh = tmp_path / "fresh"
    wanted = {"cpu": cpu, "metal": metal}[profile]
    if profile == "metal":
        with pytest.raises(UpstreamError, match=r"patches of cpu, and the shallow clone lacks .* fetch --unshallow`"):
            apply(fresh, wanted)
        assert git(fresh, "status", "--short") == ""
    else:
        assert "fetch --unshallow`" in apply(fresh, wanted).warnings[0]
    git(fresh, "fetch", "-q", "--unshallow")
    if moves_on:
        commit(fresh, mine="m = 2\n")
    apply(fresh, wanted)
    committed = read(clone)
    on_metal_too = committed.replace('device = "cpu"', 'device = "mps"').replace(asks, '"mps"')
    assert read(fresh) == (on_metal_too if profile == "metal" else committed)
    assert read(fresh, "mine") == f"m = {1 + moves_on}\n"


def test_other_profile_waits_for_the_history_though_upstream_was_fetched(
    clone: Path, upstream: Path, tmp_path: Path
) -> None:
    on_cpu, on_metal = (patches(**{f"on-{kind}": DEVICE.format(kind)}) for kind in ("cpu", "mps"))
    seen = CommitId(commit(upstream, app=FILE + 'old = "cuda" if torch.cuda.is_available() else "cpu"\n'))
    git(clone, "pull", "-q")
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=on_cpu, seen=seen)
    apply(clone, cpu)
    commit(clone)
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "fresh")
    fresh = tmp_path / "fresh"
    git(fresh, "fetch", "-q", str(upstream), "main:refs/remotes/upstream/main")
    metal = dataclasses.replace(cpu, profile="metal", patches=on_metal, others=(("cpu", on_cpu),))
    with pytest.raises(UpstreamError, match="the shallow clone lacks upstream's commit"):
        apply(fresh, metal)


def test_undo_in_a_shallow_clone_says_what_takes_the_committed_patches_out(clone: Path, tmp_path: Path) -> None:
    wanted = dataclasses.replace(WANTED, profile="cpu")
    apply(clone, wanted)
    commit(clone)
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "fresh")
    fresh = tmp_path / "fresh"
    apply(fresh, wanted)
    again = f"`patchlock patch apply test --profile cpu --source {fresh}` and `patchlock patch undo --source {fresh}`"
    way = f"{again} take them out of your files; then commit"
    told = "your last commit has the patches of cpu, and they stay"
    unshallow = f"`git -C {fresh} fetch --unshallow`, then "
    assert committed_undo.told(trees.open_tree(fresh))[0] == f"{told}: {unshallow}{way}"
    git(fresh, "fetch", "-q", "--unshallow")
    assert undo(fresh) == f"{told}: {way}"
    assert read(fresh) == PATCHED
    apply(fresh, wanted)
    assert undo(fresh) == STILL
    assert read(fresh) == FILE


@pytest.mark.parametrize("reverted", [False, True], ids=["whole", "one-reverted"])
def test_committed_patches_of_a_file_come_out_once_a_shallow_clone_has_its_history(
    clone: Path, tmp_path: Path, reverted: bool
) -> None:
    commit(clone, other=FILE, third=FILE)
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    (clone / "patches.toml").write_text("as `patch new` has written it")
    commit(clone, app=PATCHED, other=PATCHED, third=PATCHED)
    if reverted:
        commit(clone, third=FILE)
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "fresh")
    fresh = tmp_path / "fresh"
    wanted = dataclasses.replace(
        WANTED,
        origin=str(fresh.resolve() / "patches.toml"),
        patches=patches(**{name: CHOOSES.format(name) for name in ("app", "other", "third")}),
    )
    assert "`patch undo` leaves those there; get the rest with" in apply(fresh, wanted).warnings[0]
    told, _ = committed_undo.told(trees.open_tree(fresh))
    way = f"`git -C {fresh} fetch --unshallow`, then `patchlock patch apply --patches {wanted.origin} --source {fresh}`"
    assert told.startswith(
        f"your last commit has the patches of patches.toml, and they stay: {way} and `patchlock patch undo"
    )
    git(fresh, "fetch", "-q", "--unshallow")
    apply(fresh, wanted)
    undo(fresh)
    assert [read(fresh, name) for name in ("app", "other", "third")] == [FILE] * 3


def test_patches_of_two_commits_are_those_of_the_profile_that_explains_both(clone: Path) -> None:
    metal = ("metal", patches(helper=HELPER))
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=patches(helper=HELPER, use=USE), others=(metal,))
    commit(clone, app=PATCHED.replace("choose()", "helper.choose()"))
    commit(clone, helper="def choose():\n    return 'cpu'\n")
    apply(clone, cpu)
    undo(clone)
    assert (read(clone), (clone / "helper.py").exists()) == (FILE, False)


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "first"])
def test_what_was_merged_from_upstream_is_never_taken_back(
    clone: Path, upstream: Path, tmp_path: Path, is_fresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = dataclasses.replace(WANTED, profile="cpu")
    commit(upstream, b=FILE, c=FILE)
    git(clone, "pull", "-q")
    commit(clone, mine="m = 1\n")
    apply(clone, wanted)
    commit(clone)
    with monkeypatch.context() as patch:  # upstream's commit is older than the fork's
        patch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
        theirs = FILE.replace('device = "cuda"', 'device = pick("cuda", 2)')
        commit(upstream, app=theirs, other="x = 2\n")
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    apply(clone, wanted)
    git(clone, "commit", "-q", "--no-edit")
    commit(clone, mine="m = 2\n")
    git(clone, "update-ref", "refs/remotes/fork/main", "HEAD")
    folder = clone
    if is_fresh:
        git(tmp_path, "clone", "-q", str(clone), "fresh")
        folder = tmp_path / "fresh"
    apply(folder, wanted)
    assert git(folder, "status", "--short") == ""
    undo(folder)
    assert (read(folder), git(folder, "status", "--short")) == (theirs, "M app.py\n M b.py\n M c.py")


@pytest.mark.parametrize("url", ["git@github.com:O/n.git", "ssh://git@github.com/o/n", "https://github.com/o/n/"])
def test_remote_of_upstream_is_known_by_each_form_of_its_address(clone: Path, url: str) -> None:
    git(clone, "remote", "set-url", "origin", url)
    assert histories.fetched(clone, "https://github.com/o/n.git", "main") == "origin/main"
    assert histories.fetched(clone, "https://github.com/o/another.git", "main") == ""


@pytest.mark.parametrize("is_asked", [False, True], ids=["at-once", "after-refusal"])
def test_patches_of_a_fork_beside_a_conflict_of_gits_are_no_edit(clone: Path, upstream: Path, is_asked: bool) -> None:
    wanted = of_app(upstream)
    apply(clone, wanted)
    commit(clone)
    (clone / "app.py").write_text(PATCHED.replace("line6 = 6", "line6 = 60"))
    theirs = FILE.replace("line7 = 7", "line7 = 70")
    commit(upstream, app=theirs)
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", "--autostash")
    if is_asked:
        assert apply(clone, wanted).moved.left_by_git == (PurePosixPath("app.py"),)
    (clone / "app.py").write_text(theirs.replace('"cuda"', "choose()").replace("line6 = 6", "line6 = 60"))
    git(clone, "reset", "-q", "--", "app.py")
    apply(clone, wanted)
    assert clone_patches.undo(trees.open_tree(clone)).conflicts == (PurePosixPath("app.py"),)


def test_pulled_merge_of_a_fork_is_no_edit_that_is_kept(clone: Path, upstream: Path) -> None:
    wanted = of_app(upstream)
    fresh = colleagues(clone, wanted)
    theirs = FILE.replace("line6 = 6", "line6 = 60")
    commit(upstream, app=theirs)
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    apply(clone, wanted)
    git(clone, "commit", "-q", "--no-edit")
    git(fresh, "pull", "-q")
    assert apply(fresh, wanted).moved.merged == ()
    assert undo(fresh) == STILL
    assert read(fresh) == theirs


def test_update_refuses_a_fork_that_has_committed_its_patches(clone: Path, upstream: Path, tmp_path: Path) -> None:
    wanted = of_app(upstream)
    fresh = colleagues(clone, wanted)
    commit(clone, mine="m = 1\n")
    before = git(fresh, "for-each-ref")
    with pytest.raises(GitFirstError) as caught:
        clone_patches.update(trees.open_tree(fresh), wanted, tmp_path / "cache")
    assert caught.value.what == (
        "the branch that the clone follows has commits with these patches, so nothing was changed"
    )
    assert caught.value.remedy == (
        f"pull it with `git -C {fresh} pull --rebase --autostash` (or `--no-rebase`), then renew the patches "
        f"with `patchlock patch apply test --profile cpu --source {fresh}`"
    )
    assert git(fresh, "for-each-ref") == before
    git(fresh, "pull", "-q", "--rebase", "--autostash")
    apply(fresh, wanted)
    assert undo(fresh) == STILL
    assert read(fresh) == FILE
