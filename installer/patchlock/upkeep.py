"""Going back, cleaning up and removing: what works on generations that are already there."""

from __future__ import annotations

import os

from patchlock import checkout, environments, launch_scripts, moving, mutex, trees, worktree
from patchlock.environments import Receipt
from patchlock.errors import NotInstalledError, SourceConflictError
from patchlock.gathering import Request
from patchlock.install import Progress, working


def rollback(request: Request, progress: Progress) -> Receipt:
    """Go back to the generation made before the one in use, environment and source together.

    Raises:
        NotInstalledError: there is no earlier one.
        SourceConflictError: the user's edits stand in the way; nothing was changed.
    """
    installation = request.installation
    now = environments.require_current(installation, request.app.name)
    earlier = [r for r in environments.receipts(installation) if r.sequence < now.sequence]
    if not earlier:
        raise NotInstalledError(
            f"{request.app.name} has no earlier generation",
            where=str(installation.folder),
            remedy="nothing was changed",
        )
    require_resolved(request)
    with working(installation, progress):
        tree = worktree.tree_of(installation.source)
        with trees.hold(tree):
            moving.move(tree, earlier[0].applied)
        environments.switch(installation, earlier[0].id)
    return earlier[0]


def prune(request: Request, progress: Progress, *, dry_run: bool) -> tuple[tuple[str, int], ...]:
    """Remove every generation but the one in use.

    Returns:
        Id and bytes freed, of each.
    """
    installation = request.installation
    now = environments.require_current(installation, request.app.name)
    others = [r.id for r in environments.receipts(installation) if r.id != now.id]
    freed = tuple((name, environments.size(environments.generation(installation, name))) for name in others)
    if not dry_run:
        with working(installation, progress):
            for name in others:
                folder = environments.generation(installation, name)
                (folder / environments.RECEIPT).unlink(missing_ok=True)
                checkout.remove_tree(folder)
                worktree.forget(installation.source, name)
    return freed


def uninstall(request: Request, progress: Progress, *, purge: bool) -> tuple[str, ...]:
    """Remove an installation; the user's files in the working tree stay unless told otherwise.

    Args:
        request: which one.
        progress: told what goes on.
        purge: remove the user's files too.

    Returns:
        What was kept because it is the user's: files by path from the clone's root, and commits.

    Raises:
        NotInstalledError: there is nothing to remove.
    """
    installation = request.installation
    source = installation.source
    if not installation.folder.exists():
        environments.require_current(installation, request.app.name)
    with working(installation, progress):
        mine: tuple[str, ...] = ()
        if source.exists() and not purge:
            mine = (*map(str, worktree.users_files(source)), *(f"commit {c}" for c in worktree.users_commits(source)))
        installation.pointer.unlink(missing_ok=True)
        for name in launch_scripts.names(request.app.name, request.profile.name):
            (installation.folder / name).unlink(missing_ok=True)
        checkout.remove_tree(installation.environments)
        if not mine:
            checkout.remove_tree(source)
            installation.journal.unlink(missing_ok=True)
            if os.name == "posix":  # Windows does not remove a file that is open
                checkout.remove_tree(installation.folder)
    if not mine and os.name != "posix":
        checkout.remove_tree(installation.folder)
    return mine


def recover(request: Request, progress: Progress) -> None:
    """Finish or undo what a killed install began, so that environment and source belong together again.

    Costs one look at a file where nothing was begun.

    Raises:
        BusyError: an install is running just now.
        SourceConflictError: an update waits for its conflicts to be resolved.
    """
    installation = request.installation
    if not installation.journal.exists() or not installation.source.exists():
        return
    require_resolved(request)
    with mutex.hold(installation.lock, wait=0):
        now = environments.current(installation)
        if now is None:
            return
        wanted = worktree.moving(installation.source) or moving.applied(worktree.tree_of(installation.source))
        if wanted != now.applied:
            progress.note("an install was cut off; finishing or undoing it")
            complete = [r for r in environments.receipts(installation) if r.applied == wanted]
            chosen = complete[0] if complete else now
            with trees.hold(worktree.tree_of(installation.source)):
                moving.move(worktree.tree_of(installation.source), chosen.applied)
            environments.switch(installation, chosen.id)
        installation.journal.unlink(missing_ok=True)


def require_resolved(request: Request) -> None:
    """Stop where an update left conflicts that nobody has finished yet.

    Raises:
        SourceConflictError: says how to finish or to go back.
    """
    left = moving.conflicted(worktree.tree_of(request.installation.source))
    if left is not None:
        app = request.app.name
        where = ", ".join(map(str, left)) if left else "none any more"
        raise SourceConflictError(
            f"an update of {app} waits for its conflicts to be resolved (still open: {where})",
            where=str(request.installation.source),
            remedy=f"finish it with `patchlock update {app}`, or go back with `patchlock update {app} --abort`",
        )


def abort_update(request: Request, progress: Progress) -> tuple[str, ...]:
    """Go back to the source as it was before an update that met conflicts.

    Returns:
        The files that were brought back; none where no update left conflicts.

    Raises:
        NotInstalledError: the app is not installed.
    """
    environments.require_current(request.installation, request.app.name)
    with working(request.installation, progress):
        tree = worktree.tree_of(request.installation.source)
        with trees.hold(tree):
            return tuple(map(str, moving.abort(tree)))
