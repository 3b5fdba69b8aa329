"""Versions of files that may stand in a tree without an edit of the user's, and from which his edits are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.worktree import _merge, _tree_merge, trees
from patchlock.worktree._branch_state import BranchState
from patchlock.worktree._goal import Goal
from patchlock.worktree.trees import Entries, Entry, Tree


@dataclass(frozen=True, kw_only=True)
class KnownVersions:
    """All the commits whose files may stand in the tree without being an edit of the user's."""

    before: Entries
    """What the tree was last brought to."""
    pulled: Entries
    """Upstream, as the user's branch has it now."""
    origin: Entries
    """Upstream, as it was when the tree was last patched."""
    joined: Entries | None
    """What a merge or a stash of the user's has made of what was patched and what git brought."""
    start: CommitId
    is_pulled: bool
    """Git has brought the clone forward since the tree was last patched."""

    @classmethod
    def of(cls, tree: Tree, goal: Goal, where: BranchState | None) -> KnownVersions:
        """Find them in the commits behind the working tree and the user's branch."""
        repository = tree.repository
        last = trees.upstream_of(repository, goal.base or goal.target)
        pulled, behind, to = last, None, trees.upstream_of(repository, goal.target)
        if where is not None:
            pulled = goal.fork_of or (where.head if to == where.head else where.upstream) or last
            last = last if goal.base else pulled
            # Where the goal lacks commits of the user's own, they are edits of his.
            is_without = where.head not in (to, last) or bool(where.unfinished)
            behind = where.behind if is_without and not trees.is_ancestor(repository, last, to) else None
        start = goal.base or last
        is_empty = goal.base is None and where is not None and where.head is None  # nothing was ever checked out
        known = (start, None, None) if is_empty else (start, behind or last, pulled)
        before, origin, now = (trees.everything(repository, commit) for commit in known)
        joined = _tree_merge.merge_commits(tree, last, start, pulled) if origin not in (now, before) else None
        if behind is not None:
            before, last = _tree_merge.merge_commits(tree, last, start, behind), behind
        is_pulled = pulled != last and trees.is_ancestor(repository, last, pulled)
        if is_pulled and where is not None and where.head is not None and not where.unfinished:
            is_in = trees.is_ancestor(repository, pulled, where.head)
            head = trees.everything(repository, where.head if is_in else None)
            # Where a commit of his on top of upstream's newer one has what stood before, he has chosen that himself.
            chosen = {p: now.get(p) for p, e in head.items() if e == before.get(p) != now.get(p) != origin.get(p)}
            before, origin = (
                {path: one for path, one in {**state, **chosen}.items() if one is not None}
                for state in (before, origin)
            )
        return cls(before=before, pulled=now, origin=origin, joined=joined, start=start, is_pulled=is_pulled)

    def renamed(self, renames: Mapping[PurePosixPath, PurePosixPath]) -> KnownVersions:
        """Give the same, with some files under the user's names."""
        return dataclasses.replace(
            self,
            before=renamed(renames, self.before),
            pulled=renamed(renames, self.pulled),
            origin=renamed(renames, self.origin),
            joined=renamed(renames, self.joined) if self.joined is not None else None,
        )

    def is_users_choice(self, path: PurePosixPath, new: Entries) -> bool:
        """Tell whether no patch is in a file, and git has brought upstream's version: what differs, the user chose."""
        is_patched = self.before.get(path) != self.origin.get(path)
        return self.is_pulled and not is_patched and self.pulled.get(path) == new.get(path)

    def of_path(self, path: PurePosixPath) -> list[Entry | None]:
        """Give those of a file, None where one has no such file."""
        states = (self.before, self.pulled, self.origin, self.joined)
        return [state.get(path) for state in states if state is not None]


def renamed(renames: Mapping[PurePosixPath, PurePosixPath], entries: Entries) -> Entries:
    """Give entries with some under the user's names."""
    return {renames.get(path, path): entry for path, entry in entries.items()}


def without_crlf(
    tree: Tree, mine: Entries, versions: KnownVersions, changed: Iterable[PurePosixPath]
) -> dict[PurePosixPath, Entry]:
    """Give files to which an editor has given CRLF, where each known version has LF alone, as if it had not."""
    edited = {}
    for path in changed:
        known = [entry for entry in versions.of_path(path) if entry is not None]
        if path in mine and mine[path].is_file and known and mine[path] not in known:
            edited[path] = [mine[path], *(entry for entry in known if entry.is_file)]
    data = trees.contents(tree.repository, (entry for listed in edited.values() for entry in listed))
    found = {}
    for path, (first, *known) in edited.items():
        if _merge.is_converted(data[first.blob], [data[entry.blob] for entry in known]):
            found[path] = trees.stored_file(tree, _merge.to_lf(data[first.blob]) or b"", first.mode)
    return found


def bases(
    tree: Tree,
    mine: Entries,
    versions: KnownVersions,
    new: Entries,
    changed: Iterable[PurePosixPath],
    others: Mapping[PurePosixPath, list[Entry | None]],
    *,
    restore_all: bool,
    takes_out: bool,
) -> dict[PurePosixPath, Entry | None]:
    """Choose for each path what the user's edits are counted from: the known version that is nearest to his file.

    Where patches are taken out, a line that he has chosen himself may be as far from both: then its words decide.
    """
    found: dict[PurePosixPath, Entry | None] = {}
    unknown: dict[PurePosixPath, list[Entry | None]] = {}
    for path in changed:
        known = others.get(path) or versions.of_path(path)
        have = mine.get(path)
        if have in known:
            found[path] = have
        elif have is None:
            is_upstreams = path in versions.pulled or path in versions.origin
            found[path] = next((e for e in known if e), None) if is_upstreams and not restore_all else None
        elif path not in others and versions.is_users_choice(path, new):
            found[path] = new.get(path)
        elif same := next((entry for entry in known if entry and entry.blob == have.blob), None):
            found[path] = same  # the user has changed its mode
        else:
            files = list(dict.fromkeys(entry for entry in known if entry and entry.is_file))
            made = new.get(path)  # a file that only patches have made may be committed, and edited since
            unknown[path] = [*files] if any(known) or made is None or not made.is_file else [None, made]
    read = (entry for path, entries in unknown.items() for entry in (mine[path], *entries) if entry and entry.is_file)
    data = trees.contents(tree.repository, read)
    for path, candidates in unknown.items():
        if not mine[path].is_file or not candidates:
            known = [*candidates, *(others.get(path) or versions.of_path(path))]
            found[path] = next((entry for entry in known if entry), None)
            continue
        contents = [data[entry.blob] if entry else b"" for entry in candidates]
        nearest, *_ = _merge.by_nearness(data[mine[path].blob], contents, by_characters=takes_out)
        found[path] = candidates[contents.index(nearest)]
    return found
