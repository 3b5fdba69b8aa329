"""Read and write the rows of git's index, which say what the user has staged; touches no file of the working tree."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import trees
from patchlock.worktree.trees import Entry, Tree
from patchlock.worktree.upstream_cache import git


def staged(tree: Tree, commit: CommitId | None) -> dict[PurePosixPath, str]:
    """Give what the index says of all files that the user has staged since a commit; "" for one that he removed."""
    listed = git("ls-files", "--stage", "-z", repository=tree.repository).stdout.split(b"\0")
    have = {
        PurePosixPath(os.fsdecode(name)): head.decode() for row in listed for head, _, name in [row.partition(b"\t")]
    }
    have.pop(PurePosixPath("."), None)
    entries = trees.entries(tree.repository, commit)
    same = {path: f"{_mode(entry)} {entry.blob} 0" for path, entry in entries.items()}
    return {path: have.get(path, "") for path in have.keys() | same.keys() if have.get(path, "") != same.get(path, "")}


def follow(tree: Tree, old: CommitId, new: CommitId) -> None:
    """Let the index follow from one commit to another; what the user has staged stays staged."""
    kept = staged(tree, old)
    before, after = (trees.entries(tree.repository, commit) for commit in (old, new))
    changed = [p for p in before.keys() | after.keys() if before.get(p) != after.get(p) and p not in kept]
    rows = [removal_row(path) for path in changed if path not in after]  # first: a file may become a folder
    write(tree, [*rows, *(entry_row(path, after[path]) for path in changed if path in after)])


def removal_row(path: PurePosixPath) -> str:
    """Give the row that takes a file out of the index, all stages of a conflict too."""
    return f"0 {'0' * 40} 0\t{path}"


def entry_row(path: PurePosixPath, entry: Entry, *, stage: int = 0) -> str:
    """Give the row of a file; a stage from 1 to 3 is one version of a conflict."""
    return f"{_mode(entry)} {entry.blob} {stage}\t{path}"


def store_blob(tree: Tree, data: bytes, *, like: Entry | None = None) -> Entry:
    """Store the bytes of a file, which may be started if what it is like may be."""
    blob = git("hash-object", "-w", "--stdin", repository=tree.repository, stdin=data).text
    return Entry(blob=blob, is_executable=like is not None and like.is_executable)


def unmerged(tree: Tree) -> list[str]:
    """Give the rows of all conflicts in the index, of ours and of git's, as `has` gives them."""
    listed = git("ls-files", "--unmerged", "-z", repository=tree.repository).stdout.split(b"\0")
    return [os.fsdecode(row) for row in listed if row]


def path_of(row: str) -> PurePosixPath:
    """Name the file of a row."""
    return PurePosixPath(row.partition("\t")[2])


def write(tree: Tree, rows: Iterable[str]) -> None:
    """Change the index by rows, in their order."""
    stdin = "".join(f"{row}\0" for row in rows).encode("utf-8", errors="surrogateescape")
    if stdin:
        git("update-index", "-z", "--index-info", repository=tree.repository, stdin=stdin)


def _mode(entry: Entry) -> str:
    return "100755" if entry.is_executable else "100644"
