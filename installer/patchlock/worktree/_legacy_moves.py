"""What moves of patchlock 0.1.0 have left in a tree: a move that was killed, or conflicts that wait for the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

from patchlock.core import command_lines
from patchlock.model.errors import GitFirstError
from patchlock.model.identities import CommitId
from patchlock.worktree import _branch_state, _journal, _snapshot, trees
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of, git

PENDING = "pending"
"""A ref: the commit that a tree was on its way to."""
_PASSED = "passed"
"""Refs: the commits that it was on its way to when moves were killed."""
_RECORD = "conflicts.json"


def passed(tree: Tree, target: CommitId) -> tuple[CommitId, ...]:
    """Name the commits, other than the target, whose files a killed move may have written."""
    listed = git(
        "for-each-ref",
        "--format=%(objectname)",
        *(tree.ref(PENDING), tree.ref(f"{_PASSED}/")),
        repository=tree.repository,
    )
    return tuple(CommitId(line) for line in listed.text.split() if line != target)


def forget(tree: Tree) -> None:
    """Let go of the refs of killed moves, once a move has joined what they left."""
    listed = git(
        *("for-each-ref", "--format=delete %(refname)", tree.ref(PENDING), tree.ref(f"{_PASSED}/")),
        repository=tree.repository,
    ).text
    if listed:
        git("update-ref", "--stdin", repository=tree.repository, stdin=f"{listed}\n".encode())


def _read(tree: Tree) -> Mapping[str, object] | None:
    try:
        data = json.loads((trees.git_dir(tree) / "patchlock" / _RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:  # it was being written: nothing of the tree had been touched
        _drop(tree)
        return None
    return data if isinstance(data, dict) else None


def _drop(tree: Tree) -> None:
    (trees.git_dir(tree) / "patchlock" / _RECORD).unlink(missing_ok=True)


def _paths(record: Mapping[str, object], key: str) -> list[PurePosixPath]:
    value = record.get(key)
    return [PurePosixPath(str(name)) for name in value] if isinstance(value, list) else []


def conflicted(tree: Tree) -> tuple[PurePosixPath, ...] | None:
    """Name the files that still hold both sides of a conflict; None where none was left."""
    record = _read(tree)
    if record is None:
        return None
    return tuple(p for p in _paths(record, "conflicts") if _branch_state.has_markers(trees.read(tree, p) or b""))


def end_conflicts(tree: Tree) -> None:
    """Put the index back to normal once the user has ended the conflicts in his files."""
    record = _read(tree)
    if record is None:
        return
    if tree.is_clone:
        unmerged = _branch_state.read(tree, None).unmerged
        paths = [path for path in _paths(record, "conflicts") if path in unmerged]
        head = trees.everything(tree.repository, commit_of(tree.repository, "HEAD"))
        rows = _snapshot.no_rows(tree, paths)
        kept = record.get("staged")
        staged = {name: row for name, row in kept.items() if row.endswith(" 0")} if isinstance(kept, dict) else {}
        rows += [(path, staged[str(path)]) for path in paths if str(path) in staged]
        rows += [
            (path, f"{head[path].mode} {head[path].blob} 0")
            for path in paths
            if path in head and str(path) not in staged
        ]
        if rows:
            _journal.update_index(tree, "--index-info", stdin=_snapshot.index_rows(rows))
    _drop(tree)


def refuse_abort(tree: Tree) -> None:
    """Say how to go back where conflicts were left: the files as they were are a commit.

    Raises:
        GitFirstError: always, where conflicts were left; with the commands.
    """
    record = _read(tree)
    if record is None:
        return
    clone = f"git -C {command_lines.quoted(str(tree.repository))}"
    before = str(record.get("before"))[:12]
    names = [str(path) for path in _paths(record, "conflicts")]
    first = command_lines.quoted(":".join([before, *names[:1]]))
    raise GitFirstError(
        f"patchlock 0.1.0 left the conflicts in {', '.join(names)}, so nothing was changed",
        where=str(tree.root),
        remedy="choose between the two sides in each, then run this again without --abort; your file as it was: "
        f"`{clone} show {first}`",
    )
