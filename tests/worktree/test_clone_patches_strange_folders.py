"""Folders in which something is not as in a plain clone: links, programs of git's configuration, no commit, no remote."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from test_clone_patches import FILE, PATCHED, WANTED, apply, clone, commit, git, read, upstream

from patchlock.model.errors import UnsafePathError, UpstreamError
from patchlock.worktree import clone_patches, trees

pytestmark = pytest.mark.slow

__all__ = ["clone", "upstream"]


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
    with pytest.raises(UnsafePathError, match=r"lib/x\.py is behind a link that leaves the tree"):
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
        "diff.evil.textconv": program,
        "diff.external": program,
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
    (clone / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    apply(clone)
    (clone / "app.py").write_text(read(clone) + "mine = 1\n")
    tree = trees.open_tree(clone)
    clone_patches.status(tree, WANTED, tmp_path / "cache")
    clone_patches.update(tree, WANTED, tmp_path / "cache")
    clone_patches.undo(tree)
    assert read(clone) == FILE + "mine = 1\n"
    assert not ran.exists()


def test_address_that_names_a_program_is_not_run(clone: Path, tmp_path: Path) -> None:
    git(clone, "remote", "set-url", "origin", f"ext::sh -c 'touch {tmp_path / 'ran'}'")
    apply(clone)
    with pytest.raises(UpstreamError, match="branch main could not be fetched"):
        clone_patches.update(trees.open_tree(clone), WANTED, tmp_path / "cache")
    assert not (tmp_path / "ran").exists()


def test_bare_repository_is_refused(upstream: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(upstream), "bare")
    with pytest.raises(UpstreamError, match="without a working tree"):
        trees.open_tree(tmp_path / "bare")


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
        trees.open_tree(clone / "sub")


def test_clone_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(UpstreamError, match="no commit yet"):
        trees.open_tree(tmp_path / "empty")


def test_linked_worktree_is_a_clone_too(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "second")
    apply(tmp_path / "second")
    assert read(tmp_path / "second") == PATCHED
    assert apply(tmp_path / "second") is None
    assert read(clone) == FILE
