"""The user's working tree: made once, then only moved from one patched commit to the next, keeping every edit.

Two private refs remember what is ours: `applied` is the patched commit that the tree was last brought to, `pending` the
one that it is on its way to. A killed move leaves each file in one of these two states, so the next move finishes it.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from patchlock.checkout import Snapshot, blobs, git, remove_tree
from patchlock.errors import SourceConflictError
from patchlock.model import App, CommitId, EmbeddedUpstream, GitUpstream

APPLIED = "refs/patchlock/applied"
_PENDING = "refs/patchlock/pending"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """What a move did, by path from the root of the clone."""

    written: tuple[PurePosixPath, ...]
    merged: tuple[PurePosixPath, ...]
    """Files where the user's edits and ours were joined."""


def populate(folder: Path, app: App, snapshot: Snapshot, ref: str, lock: int) -> None:
    """Make the clone, with a branch at upstream's commit; it appears whole or not at all.

    Args:
        folder: where the clone will be; must not exist.
        app: the app.
        snapshot: upstream's commit in our cache.
        ref: the patched commit in our cache, kept as `pending`.
        lock: descriptor of the installation's lock.
    """
    building = folder.with_name(folder.name + ".partial")
    remove_tree(building)
    building.mkdir(parents=True)
    git("init", "-q", "--object-format=sha1", "-b", app.branch, repository=building, keep_open=[lock])
    git("config", "core.autocrlf", "false", repository=building)
    # The working tree holds upstream's bytes: no conversion of line endings, no filter, whatever upstream and user say.
    attributes = building / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("* -text -filter -ident -working-tree-encoding\n", encoding="utf-8")
    _bring(building, snapshot, ref, lock)
    if isinstance(app.upstream, GitUpstream):
        git("remote", "add", "origin", app.upstream.url, repository=building)
        git("config", f"branch.{app.branch}.remote", "origin", repository=building)
        git("config", f"branch.{app.branch}.merge", f"refs/heads/{app.branch}", repository=building)
    git("reset", "-q", "--hard", snapshot.commit, repository=building, keep_open=[lock])
    git("update-ref", APPLIED, snapshot.commit, repository=building)
    if isinstance(app.upstream, EmbeddedUpstream):
        git("update-ref", "-d", f"refs/remotes/origin/{app.branch}", repository=building)
    building.replace(folder)


def _bring(folder: Path, snapshot: Snapshot, ref: str, lock: int) -> None:
    arguments = ("fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--update-shallow")
    refspecs = ("+refs/remotes/origin/*:refs/remotes/origin/*", f"+{ref}:{_PENDING}")
    git(*arguments, str(snapshot.repository), *refspecs, repository=folder, keep_open=[lock])


def prepare(folder: Path, snapshot: Snapshot, ref: str, lock: int) -> None:
    """Bring the patched commit into an existing clone, as `pending`; the working tree is not touched."""
    for stuck in (folder / ".git" / "refs" / "patchlock").rglob("*.lock"):
        stuck.unlink(missing_ok=True)
    _bring(folder, snapshot, ref, lock)


def keep(folder: Path, generation: str, applied: CommitId) -> None:
    """Keep the patched commit of a generation from git's clean-up, so that a rollback finds it."""
    git("update-ref", f"refs/patchlock/generations/{generation}", applied, repository=folder)


def forget(folder: Path, generation: str) -> None:
    """Let go of the patched commit of a removed generation."""
    git("update-ref", "-d", f"refs/patchlock/generations/{generation}", repository=folder)


def commit_of(folder: Path, ref: str) -> CommitId | None:
    """Name the commit of a ref of the clone, or None."""
    done = git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", repository=folder, allowed=(0, 1, 128))
    return CommitId(done.text) if done.returncode == 0 else None


def move(folder: Path, target: CommitId, *, restore_all: bool = False) -> Moved:
    """Bring the working tree from the applied commit to another, joining the user's edits by three-way merge.

    Everything is worked out before the first byte is written; on a conflict nothing is. A patched file that is missing
    comes back.

    Args:
        folder: the clone.
        target: the patched commit.
        restore_all: bring every missing file of upstream back, not only patched ones.

    Raises:
        SourceConflictError: names the files where the user's edits and ours touch the same lines.
    """
    base = commit_of(folder, APPLIED) or target
    pending = commit_of(folder, _PENDING) or target
    before, between, after = (_tree(folder, commit) for commit in (base, pending, target))
    upstreams = _tree(folder, _upstream_of(folder, target))
    ours_now = {path for path in after if upstreams.get(path) != after[path]}
    changed = sorted(
        path
        for path in before.keys() | between.keys() | after.keys()
        if not before.get(path) == between.get(path) == after.get(path)
        or (path in after and (restore_all or path in ours_now) and not (folder / path).exists())
    )
    ids = {tree[path][1] for tree in (before, between, after) for path in changed if path in tree}
    content = blobs(folder, ids)
    writes: dict[PurePosixPath, bytes | None] = {}
    merged: list[PurePosixPath] = []
    conflicts: list[PurePosixPath] = []
    for path in changed:
        old, ours, new = (content[tree[path][1]] if path in tree else None for tree in (before, between, after))
        present = folder / path
        mine = present.read_bytes() if present.is_file() else None
        if mine == new:
            continue
        if mine in {old, ours} or (mine is None and new is not None and not present.exists()):
            writes[path] = new
        elif mine is None or old is None or new is None:
            if mine is not None or present.exists():
                conflicts.append(path)
        else:
            joined = _merge(folder, mine, old, new)
            if joined is None:
                conflicts.append(path)
            else:
                writes[path] = joined
                merged.append(path)
    if conflicts:
        raise SourceConflictError(
            f"your edits and ours meet in {', '.join(map(str, conflicts))}, so nothing was written",
            where=str(folder),
            remedy=f"see yours with `git -C {folder} diff {APPLIED}`, undo or move them, and run this again",
        )
    git("update-ref", _PENDING, target, repository=folder)
    for path, data in writes.items():
        _write(folder / path, data, executable=after.get(path, ("", ""))[0] == "100755")
    _follow(folder, base, target)
    git("update-ref", APPLIED, target, repository=folder)
    git("update-ref", "-d", _PENDING, repository=folder)
    return Moved(written=tuple(writes), merged=tuple(merged))


def _follow(folder: Path, base: CommitId, target: CommitId) -> None:
    """Move the user's branch along where he has not committed anything: it stands on the commit that we put there."""
    old, new = (_upstream_of(folder, commit) for commit in (base, target))
    head = commit_of(folder, "HEAD")
    if old != new and head == old:
        git("update-ref", "HEAD", new, old, repository=folder)
        git("read-tree", new, repository=folder)


def _upstream_of(folder: Path, commit: CommitId) -> CommitId:
    """Name the parent of a patched commit, which is upstream's; a commit of upstream itself is its own."""
    author = git("show", "-s", "--format=%ae", commit, repository=folder).text
    return (commit_of(folder, f"{commit}^") or commit) if author == "patchlock@localhost" else commit


def _tree(folder: Path, commit: CommitId) -> dict[PurePosixPath, tuple[str, str]]:
    listed = git("ls-tree", "-r", "-z", commit, repository=folder).stdout
    found = {}
    for row in listed.split(b"\0"):
        if row:
            head, _, path = row.partition(b"\t")
            mode, kind, blob = head.decode().split()
            if kind == "blob" and mode != "120000":
                found[PurePosixPath(path.decode("utf-8", errors="surrogateescape"))] = (mode, blob)
    return found


def _merge(folder: Path, mine: bytes, old: bytes, new: bytes) -> bytes | None:
    """Join two edits of one file; None where they touch the same lines."""
    with tempfile.TemporaryDirectory(prefix="patchlock-merge-") as name:
        for part, data in (("mine", mine), ("old", old), ("new", new)):
            (Path(name) / part).write_bytes(data)
        parts = [str(Path(name) / part) for part in ("mine", "old", "new")]
        done = git("merge-file", "-p", "-q", *parts, repository=folder, allowed=range(256))
    return done.stdout if done.returncode == 0 else None


def _write(path: Path, data: bytes | None, executable: bool) -> None:
    if data is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.patchlock")
    beside.write_bytes(data)
    beside.chmod((path.stat().st_mode & 0o777) if path.exists() else (0o755 if executable else 0o644))
    beside.replace(path)


def patched_files(folder: Path) -> Mapping[PurePosixPath, bytes]:
    """Give the files that differ between upstream and the applied commit, as the applied commit has them."""
    applied = commit_of(folder, APPLIED)
    if applied is None:
        return {}
    before, after = _tree(folder, _upstream_of(folder, applied)), _tree(folder, applied)
    paths = [path for path in after if before.get(path) != after[path]]
    content = blobs(folder, (after[path][1] for path in paths))
    return {path: content[after[path][1]] for path in sorted(paths)}


def users_commits(folder: Path) -> tuple[str, ...]:
    """List the user's commits and stashes, each as a line; those that upstream or we have made are left out."""
    stash = ["refs/stash"] if commit_of(folder, "refs/stash") else []
    done = git(
        *("log", "--format=%h %s", "--branches", "--tags", "HEAD", *stash),
        *("--not", "--remotes", "--glob=refs/patchlock/*"),
        repository=folder,
    )
    return tuple(done.text.splitlines())


def moving(folder: Path) -> CommitId | None:
    """Name the commit that the tree is on its way to, or None where no move was cut off."""
    return commit_of(folder, _PENDING)


def users_files(folder: Path) -> tuple[PurePosixPath, ...]:
    """List what is the user's: files that we did not put there, and files that he changed; sorted, without caches."""
    applied = commit_of(folder, APPLIED)
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as name:
        env = {"GIT_INDEX_FILE": str(Path(name) / "index")}
        git("read-tree", applied or "HEAD", repository=folder, env=env)
        status = git(
            *("status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all", "--no-renames"),
            repository=folder,
            env=env,
        ).stdout
    found = set()
    for row in status.split(b"\0"):
        code, path = row[:2], PurePosixPath(os.fsdecode(row[3:]))
        if row and code[1:] not in {b" ", b"D"} and "__pycache__" not in path.parts:
            found.add(path)
    return tuple(sorted(found))
