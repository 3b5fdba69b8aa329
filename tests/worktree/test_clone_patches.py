"""Patches in a clone or folder that the user made himself, whatever he and his git do to it between two runs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from test_engine import PIN, patches

from patchlock.model.errors import NotPatchedError, PatchError, UpstreamError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.launchers import Starter
from patchlock.model.patch import OutcomeKind
from patchlock.worktree import clone_patches, committed_undo, hooks, manifest, trees
from patchlock.worktree.upstream_files import PatchSet

pytestmark = pytest.mark.slow

CHOOSE = """
op = "replace-expression"
paths = ["**/*.py"]
literal = ["cuda"]
pattern = '"cuda"'
replacement = "choose()"
ensure = [{ check = "no-string", value = "cuda" }]
"""
WANTED = PatchSet(
    name="test",
    profile="",
    patches=patches(choose=CHOOSE),
    digest=Sha256("0" * 64),
    directory=PurePosixPath(),
    seen=None,
)
FILE = "".join(f"line{n} = {n}\n" for n in range(1, 10)).replace("line5 = 5", 'device = "cuda"')
PATCHED = FILE.replace('"cuda"', "choose()")
USER = ("-c", "user.name=x", "-c", "user.email=x@localhost")


def git(folder: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(["git", "-C", str(folder), *USER, *words], check=False, capture_output=True, text=True)
    assert done.returncode in allowed, done.stderr + done.stdout
    return done.stdout.strip()


def commit(folder: Path, message: str = "change", **files: str) -> str:
    for name, text in files.items():
        file = folder / f"{name}.py"
        file.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, app=FILE, other="x = 1\n")
    return folder


@pytest.fixture
def clone(upstream: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", str(upstream), "clone")
    return tmp_path / "clone"


def apply(folder: Path) -> clone_patches.Applied | None:
    return clone_patches.apply(trees.open_tree(folder), WANTED, folder.parent / "cache")


def read(folder: Path, name: str = "app") -> str:
    return (folder / f"{name}.py").read_text()


def test_patches_stand_in_the_working_tree_and_the_branch_is_not_moved(clone: Path) -> None:
    head = git(clone, "rev-parse", "HEAD")
    done = apply(clone)
    assert done is not None
    assert [outcome.kind for outcome in done.outcomes] == [OutcomeKind.NEEDED]
    assert read(clone) == PATCHED
    assert git(clone, "status", "--short") == "M app.py"
    assert git(clone, "rev-parse", "HEAD", "main") == f"{head}\n{head}"
    assert git(clone, "show", "refs/patchlock/applied:app.py") + "\n" == PATCHED


def test_same_upstream_and_patches_give_the_same_commit_everywhere(upstream: Path, tmp_path: Path) -> None:
    commits = set()
    for name in ("one", "two"):
        git(tmp_path, "clone", "-q", str(upstream), name)
        done = apply(tmp_path / name)
        assert done is not None
        commits.add(done.applied)
    assert len(commits) == 1


def test_second_time_there_is_nothing_to_do(clone: Path) -> None:
    assert apply(clone) is not None
    assert apply(clone) is None


@pytest.mark.parametrize("is_squashed", [False, True], ids=["amended", "squashed"])
def test_amended_commit_of_upstream_stays_in_the_tree(clone: Path, upstream: Path, is_squashed: bool) -> None:
    for name in ("one", "two"):
        commit(upstream, app=f"{name} = 0\n{FILE}", **{name: "y = 1\n"})
    git(clone, "pull", "-q")
    apply(clone)
    if is_squashed:
        git(clone, "reset", "-q", "--soft", "HEAD~2")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", *([] if is_squashed else ["--amend"]), "-m", "upstream's and the patches")
    newest = git(upstream, "rev-parse", "main")
    done = apply(clone)
    assert done is not None
    assert (done.upstream, done.moved.written) == (newest, ())
    git(clone, "reset", "-q", "--hard", "origin/main~2")
    commit(clone, app=PATCHED)
    done = apply(clone)
    assert done is not None
    assert done.upstream == git(upstream, "rev-parse", "main~2"), "the branch has gone back, with the patches"


def test_undo_gives_upstream_and_the_users_edits_back(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone) + "mine = 1\n")
    clone_patches.undo(trees.open_tree(clone))
    assert read(clone) == FILE + "mine = 1\n"
    assert git(clone, "for-each-ref", "--format=%(refname)", "refs/patchlock") == "refs/patchlock/before"
    assert manifest.read(trees.open_tree(clone)) is None
    with pytest.raises(NotPatchedError) as caught:
        clone_patches.undo(trees.open_tree(clone))
    at = f"--source {clone}"
    assert caught.value.remedy == (
        f"apply them: `patchlock patch apply APP {at}`; if your commits have patches, `patchlock patch apply APP "
        f"--profile NAME {at}`, with the profile that you committed, finds them, and then `patchlock patch undo {at}` "
        "takes them out; for patches of your own, write `--patches FILE` in place of APP"
    )


@pytest.mark.parametrize("how", ["stash", "reset"])
def test_pull_with_the_patches_out_of_the_way_is_repaired(clone: Path, upstream: Path, how: str) -> None:
    apply(clone)
    commit(upstream, app=FILE + "more = 1\n", new='d = "cuda"\n')
    git(clone, *(["stash", "-q"] if how == "stash" else ["reset", "-q", "--hard"]))
    git(clone, "pull", "-q")
    apply(clone)
    assert (read(clone), read(clone, "new")) == (PATCHED + "more = 1\n", "d = choose()\n")


def test_pull_that_touches_other_files_needs_nothing_but_their_patches(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone) + "mine = 1\n")
    commit(upstream, other='x = "cuda"\n')
    git(clone, "pull", "-q")
    apply(clone)
    assert (read(clone), read(clone, "other")) == (PATCHED + "mine = 1\n", "x = choose()\n")


def test_users_commits_with_our_patches_in_them_survive_a_merge(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE + 'again = "cuda"\n')
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    apply(clone)
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'") + "again = choose()\n"


FORCED = """
op = "insert-statement"
paths = ["app.py"]
statement = '''
forced = os.environ.get("DEVICE")
if forced:
    return forced'''
at = "start"
within = ["device"]
ensure = [{ check = "has-statement", statement = 'forced = os.environ.get("DEVICE")', within = ["device"] }]
"""


@pytest.mark.parametrize("how", ["uncommitted", "committed", "archive"])
def test_edit_within_an_inserted_block_is_never_patched_again(clone: Path, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "archive" if how == "archive" else clone
    folder.mkdir(exist_ok=True)
    wanted = dataclasses.replace(WANTED, patches=patches(forced=FORCED))
    tree, cache = trees.open_tree(folder), tmp_path / "cache"
    text = 'import os\n\n\ndef device():\n    return "cuda"\n'
    if how != "archive":
        commit(clone, app=text)
    (folder / "app.py").write_text(text)
    clone_patches.apply(tree, wanted, cache)
    mine = read(folder).replace("    if forced:\n", '    if forced:\n        print("forced", forced)\n')
    (folder / "app.py").write_text(mine)
    if how == "committed":
        commit(clone)
    clone_patches.apply(tree, wanted, cache)
    _, _, outcomes = clone_patches.status(tree, wanted, cache)
    assert (read(folder), [outcome.kind for outcome in outcomes]) == (mine, [OutcomeKind.DRIFTED])


@pytest.mark.parametrize("keeps", [True, False], ids=["it-keeps-the-promise", "it-does-not"])
def test_edit_within_an_inserted_block_of_a_fork_is_seen_in_a_fresh_clone(
    clone: Path, tmp_path: Path, keeps: bool
) -> None:
    wanted = dataclasses.replace(WANTED, patches=patches(forced=FORCED))
    commit(clone, app='import os\n\n\ndef device():\n    return "cuda"\n')
    clone_patches.apply(trees.open_tree(clone), wanted, tmp_path / "cache")
    edited = ("if forced:\n", "if forced != 'no':\n        tell()\n") if keeps else ('("DEVICE")', '("DEVICE", "")')
    mine = read(clone).replace(*edited)
    commit(clone, app=mine)
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "-q", str(clone), str(fresh))
    if keeps:
        assert clone_patches.apply(trees.open_tree(fresh), wanted, tmp_path / "cache") is not None
    else:
        with pytest.raises(PatchError, match="1 patch does not do what it says") as caught:
            clone_patches.apply(trees.open_tree(fresh), wanted, tmp_path / "cache")
        shown = '`forced = os.environ.get("DEVICE") …` stands here in an edited form'
        [told] = caught.value.evidence
        assert told == f"forced: app.py:5: ambiguous: {shown}; write it as the patch has it, or remove it"
        answers = (clone_patches.status(trees.open_tree(one), wanted, tmp_path / "cache")[2] for one in (clone, fresh))
        local, there = ([(outcome.kind, outcome.detail) for outcome in answer] for answer in answers)
        assert local == there
        assert local[0][0] is OutcomeKind.DRIFTED
    assert read(fresh) == mine


DEVICE = """
op = "device-literals"
paths = ["**/*.py"]
literal = ["cuda"]
device = "{0}"
ensure = [{{ check = "without-cuda", device = "{0}" }}]
"""


@pytest.mark.parametrize("how", ["fresh", "edited", "pin-ahead"])
def test_committed_patches_of_another_profile_give_way(clone: Path, tmp_path: Path, how: str) -> None:
    on_cpu, on_metal = (patches(**{f"on-{kind}": DEVICE.format(kind)}) for kind in ("cpu", "mps"))
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=on_cpu, others=(("metal", on_metal),))
    metal = dataclasses.replace(
        WANTED, profile="metal", patches=on_metal, others=(("cpu", on_cpu),), digest=Sha256("1" * 64)
    )
    cache = tmp_path / "cache"
    upstreams = FILE + 'old = "cuda" if torch.cuda.is_available() else "cpu"\n'
    commit(clone, app=upstreams)
    if how == "pin-ahead":
        newer = git(clone, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "upstream's next")
        git(clone, "branch", "upstream", newer)
        cpu, metal = (dataclasses.replace(one, seen=CommitId(newer)) for one in (cpu, metal))
    clone_patches.apply(trees.open_tree(clone), cpu, cache)
    commit(clone, app=read(clone) + ("mine = 1\n" if how == "edited" else ""))
    committed = read(clone)
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "-q", clone.as_uri(), str(fresh))
    done = clone_patches.apply(trees.open_tree(fresh), metal, cache)
    assert done is not None
    expected = committed.replace('device = "cpu"', 'device = "mps"').replace(
        '"cuda" if torch.cuda.is_available() else "cpu"', '"mps"'
    )
    assert read(fresh) == expected
    assert done.warnings == ("your commits have the patches of cpu; those of this profile take their place",)
    _, _, outcomes = clone_patches.status(trees.open_tree(fresh), metal, cache)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.ALREADY_OURS]
    assert clone_patches.apply(trees.open_tree(fresh), metal, cache) is None
    again = f"`patchlock patch apply test --profile cpu --source {fresh}`"
    assert committed_undo.told(trees.open_tree(fresh))[0] == (
        f"your last commit has the patches of cpu, and they stay: {again} and `patchlock patch undo --source {fresh}` "
        "take them out of your files; then commit"
    )
    clone_patches.undo(trees.open_tree(fresh))
    assert read(fresh) == committed
    clone_patches.apply(trees.open_tree(fresh), cpu, cache)
    told, _ = committed_undo.told(trees.open_tree(fresh))
    assert told == "your last commit still has patches: commit what has changed to take them out there too"
    clone_patches.undo(trees.open_tree(fresh))
    assert read(fresh) == upstreams + ("mine = 1\n" if how == "edited" else "")


@pytest.mark.parametrize("how", ["edited", "merged", "later"])
def test_fresh_clone_of_a_patched_fork_is_as_the_local_one(
    clone: Path, upstream: Path, tmp_path: Path, how: str
) -> None:
    (upstream / "requirements.txt").write_text("av==11.0.0\n")
    start = CommitId(commit(upstream, app=FILE, b=FILE, c=FILE, d=FILE))
    git(clone, "pull", "-q")
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=patches(cpu=DEVICE.format("cpu"), pin=PIN), seen=start)
    cache = tmp_path / "cache"
    clone_patches.apply(trees.open_tree(clone), cpu, cache)
    commit(clone)
    if how == "edited":
        (clone / "requirements.txt").write_text("av==13.0.0\n")
        commit(clone)
    if how == "merged":  # the merge commit has a file that is not patched yet
        commit(upstream, e=FILE)
        git(clone, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
        clone_patches.apply(trees.open_tree(clone), cpu, cache)
        commit(clone)
    if how == "later":
        if sys.platform == "linux":  # other systems have no such name
            (clone / os.fsdecode(b"b\xff.py")).write_text("x = 1\n")
            commit(clone)
        for number in range(55):
            git(clone, "commit", "-q", "--allow-empty", "-m", f"work {number}")
    git(tmp_path, "clone", "-q", str(clone), "fresh")
    fresh = tmp_path / "fresh"
    done = clone_patches.apply(trees.open_tree(fresh), cpu, cache)
    assert done is not None
    assert done.warnings == ()
    assert git(fresh, "status", "--porcelain") == ""
    left = []
    for folder in (clone, fresh):
        clone_patches.undo(trees.open_tree(folder))
        left.append((folder / "requirements.txt").read_text())
        names = ["app", *"bcd"] + (["e"] if how == "merged" else [])
        assert [read(folder, name) for name in names] == [FILE] * len(names)
    assert left[0] == left[1]
    assert ("av==13.0.0" in left[0]) == (how == "edited")


HELPER = """
op = "add-file"
paths = ["helper.py"]
content = "def choose():\\n    return 'cpu'\\n"
ensure = [{ check = "no-string", value = "cuda" }]
"""
USE = CHOOSE.replace("choose()", "helper.choose()").replace("**/*", "app")


@pytest.mark.parametrize("is_fresh", [False, True], ids=["local", "fresh"])
def test_edit_in_a_patch_that_goes_waits_for_a_choice(clone: Path, tmp_path: Path, is_fresh: bool) -> None:
    on_cpu, on_metal = patches(helper=HELPER, use=USE), patches(literal=DEVICE.format("mps"))
    cpu = dataclasses.replace(WANTED, profile="cpu", patches=on_cpu, others=(("metal", on_metal),))
    metal = dataclasses.replace(
        WANTED, profile="metal", patches=on_metal, others=(("cpu", on_cpu),), digest=Sha256("1" * 64)
    )
    commit(clone, app=f'import os\nfirst = "cuda"\n{FILE}')
    clone_patches.apply(trees.open_tree(clone), cpu, tmp_path / "cache")
    commit(clone)
    commit(clone, app=read(clone).replace("device = helper.choose()", "device = helper.choose(1)"))
    if is_fresh:
        git(tmp_path, "clone", "-q", str(clone), "fresh")
    folder = tmp_path / "fresh" if is_fresh else clone
    done = clone_patches.apply(trees.open_tree(folder), metal, tmp_path / "cache")
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),), "else the helper goes and its use stays"
    assert "helper.choose(1)\n=======\n" in read(folder)
    clone_patches.abort(trees.open_tree(folder))
    assert git(folder, "status", "--short") == ""


def test_fork_is_told_the_same_in_a_fresh_clone(clone: Path, tmp_path: Path) -> None:
    wanted = dataclasses.replace(WANTED, profile="cpu", patches=patches(helper=HELPER, use=USE))
    upstreams = git(clone, "rev-parse", "HEAD")
    clone_patches.apply(trees.open_tree(clone), wanted, tmp_path / "cache")
    commit(clone)
    commit(clone, helper=read(clone, "helper").replace("'cpu'", "'cuda'"))
    git(tmp_path, "clone", "-q", str(clone), "fresh")
    answers = []
    for folder in (clone, tmp_path / "fresh"):
        tree = trees.open_tree(folder)
        before = clone_patches.status(tree, wanted, tmp_path / "cache")
        done = clone_patches.apply(tree, wanted, tmp_path / "cache")
        assert done is not None
        assert (done.upstream, done.moved.written, done.warnings) == (upstreams, (), ())
        answers.append([done.outcomes, before, clone_patches.status(tree, wanted, tmp_path / "cache")])
    local, fresh = answers
    assert local == fresh
    assert [outcome.kind for outcome in local[0]] == [OutcomeKind.DRIFTED, OutcomeKind.NEEDED]


@pytest.mark.parametrize("where", ["fresh", "local"])
def test_fork_with_patches_of_its_own_has_them_already(clone: Path, tmp_path: Path, where: str) -> None:
    (clone / "patches.toml").write_text("as `patch new` has written it")
    if where == "local":
        apply(clone)
    commit(clone, app=PATCHED, mine="m = 1\n")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")  # pushed
    git(tmp_path, "clone", "-q", str(clone), "fresh")
    folder = tmp_path / "fresh" if where == "fresh" else clone
    tree, wanted = trees.open_tree(folder), dataclasses.replace(WANTED, origin=str(folder.resolve() / "patches.toml"))
    done = clone_patches.apply(tree, wanted, tmp_path / "cache")
    assert done is not None
    assert (done.moved.written, done.warnings) == ((), ())
    _, _, [outcome] = clone_patches.status(tree, wanted, tmp_path / "cache")
    assert outcome.kind is OutcomeKind.ALREADY_OURS
    clone_patches.undo(tree)
    assert (read(folder), git(folder, "status", "--short")) == (FILE, "M app.py")


def test_shallow_clone_of_a_fork_asks_for_the_commits_that_it_lacks(clone: Path, tmp_path: Path) -> None:
    (clone / "patches.toml").write_text("as `patch new` has written it")
    commit(clone, app=PATCHED)
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "fresh")
    folder = tmp_path / "fresh"
    tree, wanted = trees.open_tree(folder), dataclasses.replace(WANTED, origin=str(folder.resolve() / "patches.toml"))
    for act in (clone_patches.status, clone_patches.apply):
        with pytest.raises(UpstreamError) as caught:
            act(tree, wanted, tmp_path / "cache")
        assert caught.value.what == "the clone is shallow, so it does not show whether your commits have choose already"
        assert f"`git -C {folder} fetch --unshallow`" in caught.value.remedy
    git(folder, "fetch", "-q", "--unshallow")
    done = clone_patches.apply(tree, wanted, tmp_path / "cache")
    assert done is not None
    assert (done.moved.written, [outcome.kind for outcome in done.outcomes]) == ((), [OutcomeKind.NEEDED])


def test_hooks_are_not_written_where_they_have_nothing_to_renew(clone: Path) -> None:
    starter = Starter(program="patchlock", arguments=(), variables={}, anchor=sys.executable)
    with pytest.raises(NotPatchedError) as caught:
        hooks.install(trees.open_tree(clone), starter, ["patch", "apply"], "patchlock patch apply demo")
    assert caught.value.what == "no patches are applied there yet, and the hooks only renew those that are"
    assert caught.value.remedy == "run `patchlock patch apply demo`, then this again"
    assert not (clone / ".git" / "hooks" / "post-merge").exists()


def test_detached_checkout_of_an_older_commit_is_patched_there(clone: Path, upstream: Path) -> None:
    old = git(upstream, "rev-parse", "HEAD")
    commit(upstream, app="new = 1\n" + FILE)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "stash", "-q")
    git(clone, "checkout", "-q", old)
    apply(clone)
    assert read(clone) == PATCHED


def test_update_follows_upstream_and_keeps_edits(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "mine.txt").write_text("model\n")
    newest = commit(upstream, app=FILE + 'end = "cuda"\n', new='n = "cuda"\n')
    git(upstream, "rm", "-q", "other.py")
    newest = commit(upstream)
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.upstream == newest == git(clone, "rev-parse", "HEAD")
    assert read(clone) == "first = 0\n" + PATCHED + "end = choose()\n"
    assert read(clone, "new") == "n = choose()\n"
    assert not (clone / "other.py").exists()
    assert git(clone, "status", "--short") == "M app.py\n M new.py\n?? mine.txt"


def test_update_leaves_a_branch_with_commits_of_its_own_alone(clone: Path, upstream: Path) -> None:
    apply(clone)
    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    commit(upstream, new="n = 1\n")
    with pytest.raises(UpstreamError, match="main has commits of its own"):
        clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")


def test_edited_file_that_upstream_removed_stays(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    git(upstream, "rm", "-q", "other.py")
    commit(upstream)
    done = clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.moved.kept == (PurePosixPath("other.py"),)
    assert read(clone, "other") == "x = 'mine'\n"


def test_status_of_an_unchanged_tree_is_what_looking_at_it_again_gives(clone: Path) -> None:
    apply(clone)
    tree = trees.open_tree(clone)
    known = manifest.read(tree)
    _, _, outcomes = clone_patches.status(tree, WANTED, clone.parent / "cache")
    assert known is not None
    assert known.outcomes == outcomes != ()


def test_fork_that_commits_its_edit_of_a_file_that_a_patch_makes(clone: Path, upstream: Path) -> None:
    helper = 'op = "add-file"\npaths = ["helper.py"]\ncontent = "def f(): ...\\n"\n'
    helper += 'ensure = [{ check = "no-string", value = "cuda" }]\n'
    wanted = dataclasses.replace(WANTED, patches=patches(choose=CHOOSE, helper=helper))
    tree, cache = trees.open_tree(clone), clone.parent / "cache"
    clone_patches.apply(tree, wanted, cache)
    commit(clone, helper="def f(): return 1\n")
    assert clone_patches.apply(tree, wanted, cache) is not None
    assert read(clone, "helper") == "def f(): return 1\n"
    commit(upstream, other="x = 2\n")
    git(clone, "pull", "-q", "--rebase", "--autostash")
    assert clone_patches.apply(tree, wanted, cache) is not None
    assert (read(clone), read(clone, "helper"), read(clone, "other")) == (PATCHED, "def f(): return 1\n", "x = 2\n")
    assert git(clone, "status", "--short") == ""


@pytest.mark.parametrize(
    ("line", "edited", "kind", "detail"),
    [
        (
            "device = choose()",
            'device = "cuda"  # mine',
            OutcomeKind.DRIFTED,
            "in your file: line 5: it has the string 'cuda'",
        ),
        (
            "device = choose()\n",
            'line5 = "cuda"\n',
            OutcomeKind.DRIFTED,
            "in your file: line 5: it has the string 'cuda'",
        ),
        ("device = choose()", "device = choose()  # mine", OutcomeKind.ALREADY_OURS, "with your edits"),
        ("line2 = 2", "line2 = 2  # mine", OutcomeKind.ALREADY_OURS, "with your edits"),
        ("line4 = 4", 'line4 = "cuda"', OutcomeKind.ALREADY_OURS, "with your edits: line 4: it has the string 'cuda'"),
        ("line2 = 2", 'line2 = "cuda"', OutcomeKind.ALREADY_OURS, "with your edits: line 2: it has the string 'cuda'"),
    ],
    ids=["taken-back", "replaced", "kept", "elsewhere", "needs-it-beside", "needs-it-elsewhere"],
)
def test_edit_of_the_patched_place_is_told_from_one_elsewhere(
    clone: Path, line: str, edited: str, kind: OutcomeKind, detail: str
) -> None:
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace(line, edited).replace("line9", "last"))
    _, _, outcomes = clone_patches.status(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert [(o.kind, o.detail) for o in outcomes] == [(kind, detail)]


def test_status_says_of_what_upstream_fixed_the_same_as_apply(clone: Path, upstream: Path) -> None:
    get = """op = "set-argument"
paths = ["app.py"]
call = "get($*arguments)"
argument = "device"
value = '"cpu"'
ensure = [{ check = "no-string", value = "cuda" }]
"""
    wanted = dataclasses.replace(WANTED, patches=patches(choose=CHOOSE, get=get))
    commit(upstream, app=FILE + 'get(device="cpu")\n')
    git(clone, "pull", "-q")
    tree, cache = trees.open_tree(clone), clone.parent / "cache"
    done = clone_patches.apply(tree, wanted, cache)
    assert done is not None
    assert [o.kind for o in done.outcomes] == [OutcomeKind.NEEDED, OutcomeKind.FIXED_UPSTREAM]
    for edit in ("", "mine = 1\n"):
        (clone / "app.py").write_text(read(clone) + edit)
        _, _, outcomes = clone_patches.status(tree, wanted, cache)
        assert [o.kind for o in outcomes] == [OutcomeKind.ALREADY_OURS, OutcomeKind.FIXED_UPSTREAM]


def test_folder_that_is_no_clone(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "app.py").write_text(FILE)
    apply(folder)
    assert read(folder) == PATCHED
    assert apply(folder) is None
    (folder / "app.py").write_text(PATCHED + "mine = 1\n")
    apply(folder)
    assert read(folder) == PATCHED + "mine = 1\n"
    (folder / "app.py").write_text("new = 1\n" + FILE)  # the next version of the archive, unpacked over it
    apply(folder)
    assert read(folder) == "new = 1\n" + PATCHED
    clone_patches.undo(trees.open_tree(folder))
    assert read(folder) == "new = 1\n" + FILE


RENAMED = {
    "diff": """
op = "unified-diff"
paths = ["app.py"]
literal = ["line4"]
diff = "@@ -4,3 +4,3 @@\\n line4 = 4\\n-device = \\"cuda\\"\\n+device = \\"xpu\\"\\n line6 = 6\\n"
ensure = [{ check = "contains", text = 'device = "xpu"' }]
""",
    "op": CHOOSE.replace("**/*.py", "app.py"),
}


@pytest.mark.parametrize("name", RENAMED)
@pytest.mark.parametrize("is_fork", [False, True], ids=["clone", "fork"])
def test_file_that_upstream_renames_is_known_by_what_it_was(
    clone: Path, upstream: Path, name: str, is_fork: bool
) -> None:
    wanted = dataclasses.replace(WANTED, patches=patches(one=RENAMED[name]))
    tree = trees.open_tree(clone)
    if is_fork:
        assert clone_patches.apply(tree, wanted, clone.parent / "cache")
        git(clone, "commit", "-q", "-a", "-m", "patched")
    git(upstream, "mv", "app.py", "main.py")
    commit(upstream, other=FILE.replace("line", "value"), third="line4 = 4\n" + FILE[-40:])
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    done = clone_patches.apply(tree, wanted, clone.parent / "cache")
    assert done is not None
    assert [(one.path, one.detail) for one in done.outcomes] == [(PurePosixPath("main.py"), "app.py no longer exists")]
    assert '"cuda"' not in read(clone, "main")
    assert '"cuda"' in read(clone, "other")


def test_blocked_patch_writes_nothing(clone: Path) -> None:
    (clone / "app.py").write_text("f\"{'cuda'}\"\n")
    commit(clone)
    with pytest.raises(PatchError, match="does not do what it says"):
        apply(clone)
    assert git(clone, "status", "--short") == ""


def test_refusal_says_which_version_of_the_file_was_read_and_what_changes_it(clone: Path, upstream: Path) -> None:
    (clone / "patches.toml").write_text("as `patch new` has written it")
    wanted = dataclasses.replace(WANTED, origin=str(clone.resolve() / "patches.toml"))
    cache = clone.parent / "cache"
    clone_patches.apply(trees.open_tree(clone), wanted, cache)
    commit(clone)
    commit(upstream, app=FILE.replace('"cuda"', "f\"{'cuda'}\""))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", "-X", "ours")
    assert read(clone) == PATCHED
    ways = []
    for _ in range(2):
        with pytest.raises(PatchError, match="does not do what it says") as caught:
            clone_patches.apply(trees.open_tree(clone), wanted, cache)
        ways.append(caught.value.remedy.partition(", use the commit")[0])
        git(clone, "reset", "-q", "--hard", "origin/main")
    show = f"git -C {clone} show {git(upstream, 'rev-parse', 'HEAD')[:12]}:app.py"
    correct = f"correct the patch (`{show}` shows the file that it was tried on)"
    new = f"patchlock patch new --source {clone} --base {show[-19:-7]} --into {wanted.origin}"
    again = f"remove its table from {wanted.origin} and write it again with `{new}`"
    keep = f"keep the edit of your commits: {again}"
    assert ways == [f"{keep}, {correct}", f"change these places and commit that, {correct}"]


def test_staged_work_stays_staged_over_an_update(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "mine.py").write_text("mine = 1\n")
    (clone / "other.py").write_text("x = 'staged'\n")
    git(clone, "add", "mine.py", "other.py")
    (clone / "other.py").write_text("x = 'later'\n")
    commit(upstream, new="n = 1\n")
    clone_patches.update(trees.open_tree(clone), WANTED, clone.parent / "cache")
    assert git(clone, "show", ":other.py") == "x = 'staged'"
    assert git(clone, "status", "--short") == "M app.py\nA  mine.py\nMM other.py"
    assert read(clone, "new") == "n = 1\n"


@pytest.mark.parametrize("how", ["autocrlf", "attributes"])
def test_line_endings_that_git_converts_are_no_edit(upstream: Path, tmp_path: Path, how: str) -> None:
    if how == "attributes":
        (upstream / ".gitattributes").write_text("*.py text eol=crlf\n")
        commit(upstream)
    git(tmp_path, "clone", "-q", "-c", f"core.autocrlf={'true' if how == 'autocrlf' else 'false'}", "upstream", "crlf")
    done = apply(tmp_path / "crlf")
    assert done is not None
    assert done.moved.conflicts == ()
    assert [outcome.kind for outcome in done.outcomes] == [OutcomeKind.NEEDED]
    assert (tmp_path / "crlf" / "app.py").read_bytes() == PATCHED.replace("\n", "\r\n").encode()
    assert git(tmp_path / "crlf", "status", "--short") == "M app.py"
    clone_patches.undo(trees.open_tree(tmp_path / "crlf"))
    assert git(tmp_path / "crlf", "status", "--short") == ""


def test_file_that_a_patch_makes_appears_and_goes_again(clone: Path) -> None:
    text = """
op = "add-file"
paths = ["start.sh"]
content = "#!/bin/sh\\necho started\\n"
executable = true
ensure = [{ check = "contains", text = "started" }]
"""
    tree = trees.open_tree(clone)
    changed = dataclasses.replace(WANTED, patches=patches(start=text))
    done = clone_patches.apply(tree, changed, clone.parent / "cache")
    assert done is not None
    assert subprocess.run([clone / "start.sh"], check=True, capture_output=True).stdout == b"started\n"
    clone_patches.undo(tree)
    assert not (clone / "start.sh").exists()
