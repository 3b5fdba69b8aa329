"""The clone that an installation works in: made once, then fed with patched commits; lists what is the user's in it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines
from patchlock.core.atomic_files import remove_tree
from patchlock.model.app import App, EmbeddedUpstream, GitUpstream
from patchlock.model.errors import CommandFailedError, SourceDamagedError, UpstreamError
from patchlock.model.identities import CommitId
from patchlock.worktree import move
from patchlock.worktree.move import APPLIED
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import Snapshot, commit_of, git

INCOMING, _GENERATIONS = "incoming", "generations"
"""Refs, as those of `pending_target`: the patched commit as it comes from our cache, kept until a move takes it; those
of generations."""

_COMMIT = re.compile(rb"[0-9a-f]{40}\n?|ref: [^\0]+")


def make(folder: Path, app: App, snapshot: Snapshot, ref: str, lock: int) -> None:
    """Make the clone, whole or not at all: a branch at upstream's commit, the patched files in its working tree.

    Args:
        folder: where the clone will be; must not exist.
        app: the app.
        snapshot: upstream's commit in our cache.
        ref: the patched commit in our cache, kept from git's clean-up.
        lock: descriptor of the installation's lock.
    """
    building = folder.with_name(f"{folder.name}.partial")
    remove_tree(building)
    building.mkdir(parents=True)
    try:
        _make(building, app, snapshot, ref, lock)
        building.replace(folder)
    except BaseException:
        remove_tree(building)
        raise


def _make(building: Path, app: App, snapshot: Snapshot, ref: str, lock: int) -> None:
    git("init", "-q", "--object-format=sha1", "-b", app.branch, repository=building, keep_open=[lock])
    git("config", "core.autocrlf", "false", repository=building)
    # The working tree holds upstream's bytes: no conversion of line endings, no filter, whatever upstream and user say.
    attributes = building / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("* -text -filter -ident -working-tree-encoding\n", encoding="utf-8")
    if not _share(building, snapshot, ref):
        _bring(building, snapshot, ref, lock)
    if isinstance(app.upstream, GitUpstream):
        git("remote", "add", "origin", app.upstream.url, repository=building)
        git("config", f"branch.{app.branch}.remote", "origin", repository=building)
        git("config", f"branch.{app.branch}.merge", f"refs/heads/{app.branch}", repository=building)
    patched = tree_of(building).ref(INCOMING)
    git("read-tree", "--reset", "-u", patched, repository=building, keep_open=[lock])
    git("reset", "-q", snapshot.tree, repository=building, keep_open=[lock])
    git("update-ref", tree_of(building).ref(APPLIED), patched, repository=building)
    if isinstance(app.upstream, EmbeddedUpstream):
        git("update-ref", "-d", f"refs/remotes/origin/{app.branch}", repository=building)


def _share(folder: Path, snapshot: Snapshot, ref: str) -> bool:
    """Link the objects of our cache into a new clone, as `git clone --local` does, where that gives all of them.

    Returns:
        Whether it did: it cannot where the cache lacks objects, or reads some of them elsewhere.
    """
    ours, theirs = folder / ".git" / "objects", snapshot.repository / "objects"
    if (snapshot.repository / "shallow").exists() or _borrowed(snapshot).exists():
        return False
    asked = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes/origin", ref)
    refs = dict(row.split() for row in git(*asked, repository=snapshot.repository).text.splitlines())
    refs[tree_of(folder).ref(INCOMING)] = refs.pop(ref)
    for name in (path.name for path in theirs.iterdir() if len(path.name) == 2):
        _link(theirs / name, ours / name, re.compile("[0-9a-f]{38}"))
    # A pack without its index is nothing to git, an index without its pack an error: so git writes the index last.
    _link(theirs / "pack", ours / "pack", re.compile(r"pack-.*\.idx"), before=".pack")
    rows = "".join(f"create {name} {commit}\n" for name, commit in refs.items())
    git("update-ref", "--stdin", repository=folder, stdin=rows.encode())
    return True


def _link(theirs: Path, ours: Path, wanted: re.Pattern[str], before: str = "") -> None:
    """Link files, which nobody ever writes to, each after its companion; copy where the disk knows no such links."""
    ours.mkdir(exist_ok=True)
    for path in (path for path in theirs.iterdir() if wanted.fullmatch(path.name)):
        for file in (path.with_suffix(before), path) if before else (path,):
            try:
                os.link(file, ours / file.name)
            except OSError:
                shutil.copy(file, ours / file.name)


def _bring(folder: Path, snapshot: Snapshot, ref: str, lock: int) -> None:
    arguments = ("fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--update-shallow")
    refspecs = ("+refs/remotes/origin/*:refs/remotes/origin/*", f"+{ref}:{tree_of(folder).ref(INCOMING)}")
    _take(snapshot, *arguments, str(snapshot.repository), *refspecs, repository=folder, lock=lock)


def require_complete(folder: Path, snapshot: Snapshot) -> None:
    """Make sure before anything is built that a clone can be made, where its objects are read elsewhere.

    Args:
        folder: where the clone will be; one that is there has what it needs of earlier commits.
        snapshot: upstream's commit in our cache.

    Raises:
        UpstreamError: the place from which they are read lacks some.
    """
    if not folder.exists() and _borrowed(snapshot).exists():
        wanted = ("--remotes=origin", snapshot.tree)
        _take(snapshot, "rev-list", "--objects", "--quiet", *wanted, repository=snapshot.repository)


def _borrowed(snapshot: Snapshot) -> Path:
    return snapshot.repository / "objects" / "info" / "alternates"


def _take(snapshot: Snapshot, *arguments: str, repository: Path, lock: int | None = None) -> None:
    """Run git on the objects of a snapshot; says where they lack some."""
    try:
        git(*arguments, repository=repository, keep_open=[lock] if lock is not None else [])
    except CommandFailedError as error:
        borrowed = _borrowed(snapshot)
        if not borrowed.exists():
            raise
        raise UpstreamError(
            "the clone that upstream comes from lacks some of upstream's files",
            where=str(Path(borrowed.read_text(encoding="utf-8").strip()).parent),
            remedy="complete it with `git fetch --refetch` there, or leave --source out",
            evidence=error.evidence[:1],
        ) from error


def require_whole(folder: Path, app: str) -> None:
    """Make sure that git can work in a clone of ours: it would take the repository around it for a damaged one.

    A ref of ours that a power cut has emptied is dropped.

    Raises:
        SourceDamagedError: it cannot; says how to get a new clone and keep all files.
    """
    for ref in (folder / ".git" / "refs" / "patchlock").rglob("*"):
        if ref.is_file() and ref.suffix != ".lock" and not _COMMIT.fullmatch(ref.read_bytes()):
            ref.unlink()
    ceiling = {"GIT_CEILING_DIRECTORIES": str(folder.parent.resolve())}
    try:
        git("ls-files", "-z", "--", ":(top,literal).git", repository=folder, env=ceiling)  # reads the index
        for name in ("HEAD", tree_of(folder).ref(APPLIED)):
            found = git("rev-parse", "--verify", "--quiet", name, repository=folder, allowed=(0, 1))
            if found.text:
                git("ls-tree", found.text, repository=folder)
    except CommandFailedError as error:
        aside = command_lines.joined([str(folder), str(folder.with_name("source.damaged"))])
        raise SourceDamagedError(
            f"git cannot work in the source of {app}, so nothing was changed",
            where=str(folder),
            remedy=f"`mv {aside}`, then `patchlock install {app}`, and copy your files back",
            evidence=error.evidence[:3],
        ) from error


def prepare(folder: Path, snapshot: Snapshot, ref: str, lock: int) -> None:
    """Bring the patched commit into an existing clone, safe from git's clean-up; the working tree is not touched."""
    for stuck in (folder / ".git" / "refs" / "patchlock").rglob("*.lock"):
        stuck.unlink(missing_ok=True)
    _bring(folder, snapshot, ref, lock)


def protect_generation(folder: Path, generation: str, applied: CommitId) -> None:
    """Keep the patched commit of a generation from git's clean-up, so that a rollback finds it."""
    git("update-ref", _generation(folder, generation), applied, repository=folder)


def unprotect_others(folder: Path, generations: Collection[str]) -> None:
    """Let go of the patched commits of all other generations; also of those whose removal was killed."""
    if not folder.exists():
        return
    kept = {_generation(folder, name) for name in generations}
    listed = git("for-each-ref", "--format=%(refname)", _generation(folder, ""), repository=folder).text
    for ref in listed.splitlines():
        if ref not in kept:
            git("update-ref", "-d", ref, repository=folder)


def _generation(folder: Path, generation: str) -> str:
    return tree_of(folder).ref(f"{_GENERATIONS}/{generation}")


def tree_of(folder: Path) -> Tree:
    """Give the tree of a clone that we made."""
    return Tree(root=folder, repository=folder)


def users_commits(folder: Path) -> tuple[str, ...]:
    """List the user's commits and stashes, each as a line; those that upstream or we have made are left out."""
    stash = ["refs/stash"] if commit_of(folder, "refs/stash") else []
    done = git(
        *("log", "--format=%h %s", "--branches", "--tags", "HEAD", *stash),
        *("--not", "--remotes", f"--glob={tree_of(folder).refs}/*"),
        repository=folder,
    )
    return tuple(done.text.splitlines())


def pending_target(folder: Path) -> CommitId | None:
    """Name the commit that the tree is on its way to, or None where no move was cut off."""
    return move.pending(tree_of(folder))


def users_files(folder: Path) -> tuple[PurePosixPath, ...]:
    """List what is the user's: files that we did not put there, and files that he changed; sorted, without caches.

    A folder that git is told to ignore stands for all files in it; one without files is nobody's.
    """
    rows = _status(folder, "--ignored=matching", "--untracked-files=all")
    return tuple(
        path
        for code, path in rows
        if code not in {b" ", b"D"} and "__pycache__" not in path.parts and _holds_files(folder / path)
    )


def changed_files(folder: Path) -> tuple[PurePosixPath, ...]:
    """List the files of the app that are not as we put them there, or are gone; sorted."""
    return tuple(path for code, path in _status(folder, "--untracked-files=no") if code != b" ")


def _status(folder: Path, *options: str) -> list[tuple[bytes, PurePosixPath]]:
    """Compare a clone with what we put there: git's letter for each file, sorted by name."""
    applied = commit_of(folder, tree_of(folder).ref(APPLIED))
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as name:
        env = {"GIT_INDEX_FILE": str(Path(name) / "index")}
        git("read-tree", applied or "HEAD", repository=folder, env=env)
        told = git("status", "--porcelain", "-z", "--no-renames", *options, repository=folder, env=env).stdout
    rows = {PurePosixPath(os.fsdecode(row[3:])): row[1:2] for row in told.split(b"\0") if row}
    return sorted(((code, path) for path, code in rows.items()), key=lambda row: row[1])


def _holds_files(path: Path) -> bool:
    is_folder = path.is_dir() and not path.is_symlink()
    return not is_folder or any(one.is_symlink() or not one.is_dir() for one in path.rglob("*"))
