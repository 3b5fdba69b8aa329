"""Patches in a clone or folder that the user made himself, whatever he and his git do to it between two runs."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from test_patching import patches

from patchlock import manifest, moving, repatching, trees
from patchlock.errors import NotPatchedError, PatchError, SourceConflictError, UnsafePathError, UpstreamError
from patchlock.identities import Sha256
from patchlock.model import OutcomeKind
from patchlock.repatching import PatchSet

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


def apply(folder: Path) -> repatching.Applied | None:
    return repatching.apply(repatching.open_tree(folder), WANTED)


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


def test_undo_gives_upstream_and_the_users_edits_back(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone) + "mine = 1\n")
    repatching.undo(repatching.open_tree(clone))
    assert read(clone) == FILE + "mine = 1\n"
    assert git(clone, "for-each-ref", "refs/patchlock") == ""
    assert manifest.read(repatching.open_tree(clone)) is None
    with pytest.raises(NotPatchedError):
        repatching.undo(repatching.open_tree(clone))


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


def test_stash_pop_that_conflicts_is_repaired(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    git(clone, "stash", "pop", "-q", allowed=(1,))
    assert "<<<<<<<" in read(clone)
    done = apply(clone)
    assert done is not None
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")
    assert git(clone, "status", "--short") == "M app.py"


@pytest.mark.parametrize("how", ["stash", "merge"])
def test_program_stays_one_in_the_index_where_a_conflict_is_repaired(how: str, clone: Path, upstream: Path) -> None:
    git(upstream, "update-index", "--chmod=+x", "app.py")
    git(upstream, "commit", "-q", "-m", "a program")
    git(upstream, "checkout", "-q", "app.py")
    git(clone, "pull", "-q")
    apply(clone)
    mine = read(clone).replace("line1 = 1", "line1 = 'mine'")
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    if how == "stash":
        (clone / "app.py").write_text(mine)
        git(clone, "stash", "-q")
        git(clone, "pull", "-q")
        git(clone, "stash", "pop", "-q", allowed=(1,))
    else:
        commit(clone, "all of it", app=mine)
        git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    apply(clone)
    assert git(clone, "ls-files", "--stage", "app.py").startswith("100755 ")


def test_users_commits_with_our_patches_in_them_survive_a_merge(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE + 'again = "cuda"\n')
    git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    apply(clone)
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'") + "again = choose()\n"


def test_merge_that_conflicts_is_repaired_and_can_be_committed(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    assert "<<<<<<<" in read(clone)
    apply(clone)
    assert read(clone) == PATCHED.replace("line1 = 1", "line1 = 'mine'").replace("choose()", "pick(choose(), 2)")
    git(clone, "commit", "-q", "--no-edit")
    assert git(clone, "status", "--short") == ""


@pytest.mark.parametrize("conflicting", [False, True], ids=["clean", "conflicting"])
def test_rebase_is_repaired(clone: Path, upstream: Path, conflicting: bool) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line1 = 1", "line1 = 'mine'"))
    new = FILE.replace('device = "cuda"', 'device = pick("cuda", 2)') if conflicting else FILE + 'again = "cuda"\n'
    commit(upstream, app=new)
    git(clone, "pull", "-q", "--rebase", allowed=(0, 1))
    apply(clone)
    wanted = PATCHED.replace("line1 = 1", "line1 = 'mine'")
    if conflicting:
        wanted = wanted.replace("choose()", "pick(choose(), 2)")
        git(clone, "-c", "core.editor=true", "rebase", "--continue")
    else:
        wanted += "again = choose()\n"
    assert read(clone) == wanted


def test_detached_checkout_of_an_older_commit_is_patched_there(clone: Path, upstream: Path) -> None:
    old = git(upstream, "rev-parse", "HEAD")
    commit(upstream, app="new = 1\n" + FILE)
    git(clone, "pull", "-q")
    apply(clone)
    git(clone, "stash", "-q")
    git(clone, "checkout", "-q", old)
    apply(clone)
    assert read(clone) == PATCHED


def test_conflict_that_the_user_began_to_resolve_is_left_to_him(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("choose()", "mine()"))
    commit(upstream, app=FILE.replace('device = "cuda"', 'device = pick("cuda", 2)'))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    begun = read(clone) + "# half done\n"
    (clone / "app.py").write_text(begun)
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert read(clone) == begun


def _conflict(clone: Path, upstream: Path) -> repatching.Applied:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"), new="n = 1\n")
    done = repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    return done


def test_edits_that_meet_are_left_as_git_leaves_them(clone: Path, upstream: Path) -> None:
    done = _conflict(clone, upstream)
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert "<<<<<<< yours\nline4 = 'mine'\n=======\nline4 = 'theirs'\n>>>>>>> patchlock\n" in read(clone)
    assert git(clone, "status", "--short") == "UU app.py"
    assert git(clone, "show", ":2:app.py") + "\n" == PATCHED.replace("line4 = 4", "line4 = 'mine'")
    assert git(clone, "show", ":3:app.py") + "\n" == PATCHED.replace("line4 = 4", "line4 = 'theirs'")
    with pytest.raises(SourceConflictError, match="still has conflict markers"):
        apply(clone)


def test_one_command_goes_back(clone: Path, upstream: Path) -> None:
    apply(clone)
    head, applied = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "refs/patchlock/applied")
    _conflict(clone, upstream)
    begun = read(clone) + "# begun\n"
    (clone / "app.py").write_text(begun)
    assert set(moving.abort(repatching.open_tree(clone))) == {PurePosixPath("app.py"), PurePosixPath("new.py")}
    assert read(clone) == PATCHED.replace("line4 = 4", "line4 = 'mine'")
    assert not (clone / "new.py").exists()
    assert git(clone, "rev-parse", "HEAD", "refs/patchlock/applied") == f"{head}\n{applied}"
    assert git(clone, "status", "--short") == "M app.py"
    assert git(clone, "show", "refs/patchlock/aborted:app.py") + "\n" == begun


def test_resolved_conflict_is_the_users_edit_from_then_on(clone: Path, upstream: Path) -> None:
    _conflict(clone, upstream)
    resolved = PATCHED.replace("line4 = 4", "line4 = 'both'")
    (clone / "app.py").write_text(resolved)
    apply(clone)
    assert read(clone) == resolved
    assert git(clone, "status", "--short") == "M app.py"
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'") + "end = 1\n")
    repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
    assert read(clone) == resolved + "end = 1\n"


def test_update_follows_upstream_and_keeps_edits(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text("first = 0\n" + read(clone))
    (clone / "mine.txt").write_text("model\n")
    newest = commit(upstream, app=FILE + 'end = "cuda"\n', new='n = "cuda"\n')
    git(upstream, "rm", "-q", "other.py")
    newest = commit(upstream)
    done = repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
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
        repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")


def test_edited_file_that_upstream_removed_stays(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "other.py").write_text("x = 'mine'\n")
    git(upstream, "rm", "-q", "other.py")
    commit(upstream)
    done = repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.moved.kept == (PurePosixPath("other.py"),)
    assert read(clone, "other") == "x = 'mine'\n"


def test_edit_that_takes_a_patch_back_is_told(clone: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(PATCHED.replace("choose()", '"cuda"  # mine').replace("line1", "first"))
    _, _, outcomes = repatching.status(repatching.open_tree(clone), WANTED)
    assert [(o.kind, o.detail) for o in outcomes] == [
        (OutcomeKind.DRIFTED, "in your file: line 5: it has the string 'cuda'")
    ]


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
    repatching.undo(repatching.open_tree(folder))
    assert read(folder) == "new = 1\n" + FILE


def test_blocked_patch_writes_nothing(clone: Path) -> None:
    (clone / "app.py").write_text('f"{"cuda"}\n')
    commit(clone)
    with pytest.raises(PatchError, match="does not do what it says"):
        apply(clone)
    assert git(clone, "status", "--short") == ""


def test_folder_that_is_a_link_out_of_the_tree_is_refused(clone: Path, upstream: Path, tmp_path: Path) -> None:
    (upstream / "lib").mkdir()
    (upstream / "lib" / "x.py").write_text('d = "cuda"\n')
    commit(upstream)
    git(clone, "pull", "-q")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.py").write_text('d = "cuda"\n')
    (clone / "lib" / "x.py").unlink()
    (clone / "lib").rmdir()
    (clone / "lib").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafePathError, match=r"lib/x\.py lies behind a link that leaves the tree"):
        apply(clone)
    assert (tmp_path / "outside" / "x.py").read_text() == 'd = "cuda"\n'


@pytest.mark.parametrize("name", ["../out.py", ".git/hooks/post-checkout", "a/.GIT/config", "/etc/x.py"])
def test_paths_that_git_would_never_check_out_are_refused(name: str) -> None:
    with pytest.raises(UnsafePathError):
        trees.require_inside(PurePosixPath(name))


def test_clone_whose_configuration_runs_programs_runs_none(clone: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    settings = {
        "core.fsmonitor": program,
        "core.hooksPath": tmp_path,
        "core.sshCommand": program,
        "filter.evil.clean": program,
        "filter.evil.smudge": program,
        "filter.evil.process": program,
        "diff.evil.textconv": program,
        "diff.external": program,
        "merge.evil.driver": program,
        "gpg.program": program,
        "log.showSignature": "true",
        "commit.gpgSign": "true",
        "core.pager": program,
        "core.editor": program,
        "remote.origin.uploadpack": program,
    }
    for key, value in settings.items():
        git(clone, "config", key, str(value))
    for hook in ("reference-transaction", "post-index-change", "post-checkout"):
        (tmp_path / hook).write_text(program.read_text())
        (tmp_path / hook).chmod(0o755)
    (clone / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    apply(clone)
    (clone / "app.py").write_text(read(clone) + "mine = 1\n")
    tree = repatching.open_tree(clone)
    repatching.status(tree, WANTED)
    repatching.update(tree, WANTED, tmp_path / "cache")
    repatching.undo(tree)
    assert read(clone) == FILE + "mine = 1\n"
    assert not ran.exists()


def test_address_that_names_a_program_is_not_run(clone: Path, tmp_path: Path) -> None:
    git(clone, "remote", "set-url", "origin", f"ext::sh -c 'touch {tmp_path / 'ran'}'")
    apply(clone)
    with pytest.raises(UpstreamError, match="branch main cannot be fetched"):
        repatching.update(repatching.open_tree(clone), WANTED, tmp_path / "cache")
    assert not (tmp_path / "ran").exists()


def test_bare_repository_is_refused(upstream: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(upstream), "bare")
    with pytest.raises(UpstreamError, match="without a working tree"):
        repatching.open_tree(tmp_path / "bare")


def test_links_and_submodules_are_not_followed(clone: Path, upstream: Path) -> None:
    git(upstream, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(upstream), "module")
    (upstream / "link.py").symlink_to("app.py")
    commit(upstream)
    git(clone, "pull", "-q")
    done = apply(clone)
    assert done is not None
    assert [str(outcome.path) for outcome in done.outcomes] == ["app.py"]
    assert (clone / "link.py").is_symlink()


def test_repository_without_a_remote_is_patched_where_it_stands(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "own")
    commit(tmp_path / "own", app=FILE)
    apply(tmp_path / "own")
    assert read(tmp_path / "own") == PATCHED
    git(tmp_path / "own", "stash", "-q")
    commit(tmp_path / "own", new='d = "cuda"\n')
    apply(tmp_path / "own")
    assert (read(tmp_path / "own"), read(tmp_path / "own", "new")) == (PATCHED, "d = choose()\n")


def test_conflict_in_a_merge_stays_a_conflict_for_git(clone: Path, upstream: Path) -> None:
    apply(clone)
    commit(clone, "all of it", app=read(clone).replace("line4 = 4", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    git(clone, "pull", "-q", "--no-rebase", "--no-edit", allowed=(1,))
    done = apply(clone)
    assert done is not None
    assert done.moved.conflicts == (PurePosixPath("app.py"),)
    assert git(clone, "status", "--short") == "UU app.py"
    git(clone, "commit", "-q", "-m", "merged", allowed=(128,))


def test_staged_work_stays_staged_over_an_update(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "mine.py").write_text("mine = 1\n")
    (clone / "other.py").write_text("x = 'staged'\n")
    git(clone, "add", "mine.py", "other.py")
    (clone / "other.py").write_text("x = 'later'\n")
    commit(upstream, new="n = 1\n")
    repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
    assert git(clone, "show", ":other.py") == "x = 'staged'"
    assert git(clone, "status", "--short") == "M app.py\nA  mine.py\nMM other.py"
    assert read(clone, "new") == "n = 1\n"


def test_staged_change_of_a_conflicting_file_comes_back(clone: Path, upstream: Path) -> None:
    apply(clone)
    (clone / "app.py").write_text(read(clone).replace("line4 = 4", "line4 = 'staged'"))
    git(clone, "add", "app.py")
    (clone / "app.py").write_text(read(clone).replace("line4 = 'staged'", "line4 = 'mine'"))
    commit(upstream, app=FILE.replace("line4 = 4", "line4 = 'theirs'"))
    done = repatching.update(repatching.open_tree(clone), WANTED, clone.parent / "cache")
    assert done is not None
    assert done.moved.conflicts
    moving.abort(repatching.open_tree(clone))
    assert "line4 = 'staged'" in git(clone, "show", ":app.py")
    assert "line4 = 'mine'" in read(clone)


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
    repatching.undo(repatching.open_tree(tmp_path / "crlf"))
    assert git(tmp_path / "crlf", "status", "--short") == ""


def test_link_in_place_of_a_patched_file_is_refused(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text('d = "cuda"\n')
    (clone / "app.py").unlink()
    (clone / "app.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(UnsafePathError, match=r"app\.py is a link of yours"):
        apply(clone)
    assert (clone / "app.py").is_symlink()
    assert (tmp_path / "outside.py").read_text() == 'd = "cuda"\n'


def test_folder_inside_a_clone_is_refused(clone: Path) -> None:
    (clone / "sub").mkdir()
    (clone / "sub" / "x.py").write_text("x = 1\n")
    git(clone, "add", "-A")
    with pytest.raises(UpstreamError, match="it is a folder inside a clone"):
        repatching.open_tree(clone / "sub")


def test_clone_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(UpstreamError, match="no commit yet"):
        repatching.open_tree(tmp_path / "empty")


def test_file_that_a_patch_makes_appears_and_goes_again(clone: Path) -> None:
    text = """
op = "add-file"
paths = ["start.sh"]
content = "#!/bin/sh\\necho started\\n"
executable = true
ensure = [{ check = "contains", text = "started" }]
"""
    tree = repatching.open_tree(clone)
    done = repatching.apply(tree, dataclasses.replace(WANTED, patches=patches(start=text)))
    assert done is not None
    assert subprocess.run([clone / "start.sh"], check=True, capture_output=True).stdout == b"started\n"
    repatching.undo(tree)
    assert not (clone / "start.sh").exists()


def test_linked_worktree_is_a_clone_too(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "second")
    apply(tmp_path / "second")
    assert read(tmp_path / "second") == PATCHED
    assert apply(tmp_path / "second") is None
    assert read(clone) == FILE
