"""Join versions of files that git stores, by its three-way merge: one file, many paths, whole commits."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import _merge, trees
from patchlock.worktree.trees import Entries, Entry, Tree
from patchlock.worktree.upstream_cache import git, quoted

_REFS = ("base", "yours")
"""Refs, while both sides are joined; the last one's name stands behind the marker of the user's side."""
_OLDEST = (2, 38)
"""Version of git that has `merge-tree --write-tree`."""

Versions = tuple[Entry | None, Entry | None, Entry | None]
"""What both sides come from, one side, the other."""
Sides = Mapping[PurePosixPath, Versions]


def is_possible() -> bool:
    """Tell whether git is new enough to join many paths."""
    return _git_version() >= _OLDEST


@functools.cache
def _git_version() -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", git("version", repository=Path.cwd()).text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def merge_file(
    tree: Tree,
    path: PurePosixPath,
    versions: Versions,
    *,
    takes_new: bool = False,
) -> Entry | None:
    """Join two versions of a file: what both come from, the one whose mode stays, the other; None where they meet.

    Where they meet, `takes_new` takes the other.
    """
    base, mine, new = versions
    if mine is None or new in (mine, base):
        return mine
    if base is None or new is None or not (base.is_file and mine.is_file and new.is_file):
        return None
    if mine.blob == base.blob:
        return Entry(mode=mine.mode, blob=new.blob)
    data = trees.contents(tree.repository, (mine, base, new))
    joined = _merge.merge(tree.repository, path, data[mine.blob], data[base.blob], data[new.blob], takes_new=takes_new)
    return trees.stored_file(tree, joined.data, mine.mode) if joined.is_clean else None


def merge_paths(
    tree: Tree, sides: Sides, *, takes_out: bool = False
) -> tuple[dict[PurePosixPath, Entry | None], dict[PurePosixPath, set[int]]]:
    """Join both sides of some paths with `git merge-tree`.

    Args:
        tree: the working tree.
        sides: path → what both come from, the user's, ours.
        takes_out: ours is without the patches, so that its marker says so.

    Returns:
        What each path becomes, with markers where both sides meet; and the stages of each conflict.
    """
    repository = tree.repository
    names = [tree.ref(name) for name in (*_REFS, "unpatched" if takes_out else "patched")]
    stream = []
    for number, name in enumerate(names):
        stream.append(f"reset {name}\ncommit {name}\nmark :{number + 1}\n".encode())
        stream.append(b"committer patchlock <%s> 0 +0000\ndata 0\n" % trees.OURS.encode())
        stream.append(b"from :1\ndeleteall\n" if number else b"")
        for where, entries in sides.items():
            if (entry := entries[number]) is not None:
                stream.append(f"M {entry.mode} {entry.blob} ".encode() + quoted(where) + b"\n")
    git("fast-import", "--quiet", "--force", repository=repository, stdin=b"".join(stream))
    labels = [name.removeprefix("refs/") for name in names[1:]]
    settings = ("-c", "merge.renames=false", "-c", "merge.directoryRenames=false")
    done = git(
        *settings, "merge-tree", "--write-tree", "-z", "--no-messages", *labels, repository=repository, allowed=(0, 1)
    )
    rows = "".join(f"delete {name}\n" for name in names)
    git("update-ref", "--stdin", repository=repository, stdin=rows.encode())
    made, *listed = done.stdout.split(b"\0")
    conflicts: dict[PurePosixPath, set[int]] = {}
    for row in filter(None, listed):
        head, _, path = row.partition(b"\t")
        conflicts.setdefault(PurePosixPath(os.fsdecode(path)), set()).add(int(head.split()[2]))
    found = trees.everything(repository, CommitId(made.decode()))
    return {one: found.get(one) for one in sides}, conflicts


def merge_commits(tree: Tree, base: CommitId, one: CommitId, other: CommitId) -> Entries:
    """Join what two commits have made of a third one, as far as they do not meet."""
    before, mine, new = (trees.everything(tree.repository, commit) for commit in (base, one, other))
    found = dict(new)
    both = {}
    for path in mine.keys() | before.keys():
        if mine.get(path) == before.get(path) or mine.get(path) == new.get(path):
            continue
        if new.get(path) != before.get(path):
            both[path] = (before.get(path), mine.get(path), new.get(path))
        elif path in mine:
            found[path] = mine[path]
        else:
            found.pop(path, None)
    if both and is_possible():
        joined, conflicts = merge_paths(tree, both)
        found |= {path: entry for path, entry in joined.items() if entry is not None and path not in conflicts}
    return found
