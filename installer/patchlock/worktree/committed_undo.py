"""Take the patches that a fork has committed out of its files, and say what stays; writes no file."""

from __future__ import annotations

from patchlock.core import command_lines
from patchlock.model.errors import NotPatchedError
from patchlock.model.identities import CommitId
from patchlock.worktree import _branch_state, _committed_patches, manifest, move, trees, upstream_files
from patchlock.worktree.manifest import Manifest
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of, git

_STILL = "your last commit still has patches: commit what has changed to take them out there too"
_YOURS = (
    "your last commit has what the patches do, as edits of yours, so they stay: `patch undo` takes such edits out "
    "only if the file with the patches is committed too"
)


def without(tree: Tree, applied: CommitId) -> tuple[CommitId, CommitId | None]:
    """Name the commit that takes the patches out of a tree which was brought to a patched one, and `Goal.fork_of`."""
    upstream = trees.upstream_of(tree.repository, applied)
    head, known = commit_of(tree.repository, "HEAD") if tree.is_clone else None, manifest.read(tree)
    if head is None or known is None:
        return (upstream_files.commit_to_patch(tree, applied) if tree.is_clone else upstream), None
    found = upstream_files.commit_to_patch(tree, applied)
    if not _committed_patches.are_forks(tree, known.profile, known.origin, head):
        return found, None
    # What a fork has pushed holds the patches: it is not upstream's, though a remote branch has it.
    if found != upstream and _branch_state.has_committed(tree, applied, found, mostly=bool(known.profile)):
        _require_renewed(tree, known, head)
        return (head, None) if _are_upstreams_too(tree, applied, head, known.followed) else (upstream, upstream)
    return found, found if _branch_state.has_committed(tree, applied, head, mostly=bool(known.profile)) else None


def _are_upstreams_too(tree: Tree, applied: CommitId, head: CommitId, followed: str) -> bool:
    upstream = trees.upstream_of(tree.repository, applied)
    before, after = (trees.entries(tree.repository, commit) for commit in (upstream, applied))
    ours = {path: (before.get(path), entry) for path, entry in after.items() if before.get(path) != entry}
    data = trees.contents(tree.repository, [one for pair in ours.values() for one in pair if one])
    changes = {path: (data[old.blob] if old else None, data[new.blob]) for path, (old, new) in ours.items()}
    tip = commit_of(tree.repository, followed) if followed else None
    return _committed_patches.are_upstreams_too(tree, changes, upstream, head, [tip] if tip else [])


def _require_renewed(tree: Tree, known: Manifest, head: CommitId) -> None:
    """Refuse where a merge or a rebase has come since the patches were applied: it may have brought some of them."""
    last = commit_of(tree.repository, known.head)
    merges = git("rev-list", "--merges", f"{last}..{head}", repository=tree.repository).text if last else ""
    if last is not None and not merges and trees.is_ancestor(tree.repository, last, head):
        return
    raise NotPatchedError(
        "your branch was merged or rebased after the patches were applied, so nothing was changed",
        where=str(tree.root),
        remedy=f"renew them with `{_apply(tree, known, known.profile)}`, and run this again",
    )


def _apply(tree: Tree, known: Manifest, profile: str) -> str:
    origin = command_lines.quoted(known.origin)
    which = f"{known.name} --profile {profile}" if known.profile else f"--patches {origin}"
    of = f" --catalogue {origin}" if known.profile and known.origin else ""
    return f"patchlock patch apply {which} --source {command_lines.quoted(str(tree.root))}{of}"


def told(tree: Tree) -> tuple[str, str]:
    """Say what `undo` leaves in the last commit, and how to take it out there; "" where that has no patches.

    Returns:
        That where `undo` changes files, and where it changes none.
    """
    applied, head = move.applied(tree), commit_of(tree.repository, "HEAD") if tree.is_clone else None
    if applied is None or head is None:
        return "", ""
    if move.waits_for_undo(tree):  # its files are changed
        still = _STILL if _branch_state.has_committed(tree, applied, head) else ""
        return still, still
    target, known = without(tree, applied)[0], manifest.read(tree)
    if known is not None and known.committed and target == head:
        source = f"--source {command_lines.quoted(str(tree.root))}"
        get = f"{_committed_patches.unshallow(tree)}, then " if _committed_patches.is_shallow(tree) else ""
        again = f"`{_apply(tree, known, known.committed)}`"
        way = f"{get}{again} and `patchlock patch undo {source}` take them out of your files; then commit"
        return (f"your last commit has the patches of {known.committed}, and they stay: {way}",) * 2
    if not _branch_state.has_committed(tree, applied, head):
        return "", ""
    if _branch_state.has_committed(tree, applied, target):
        return ("your last commit does by itself what the patches do, so that stays in your files",) * 2
    return _STILL, _YOURS
