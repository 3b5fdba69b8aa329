"""Going back, cleaning up and removing: what works on generations that are already there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from patchlock.core import atomic_files, disk_space, file_lock, old_folders
from patchlock.core.disk_space import FreedSpace
from patchlock.distributions import wheelhouse
from patchlock.environments import cache_pruning, generations, installed_profiles, models, venv
from patchlock.environments.builds import in_tree_files
from patchlock.environments.cache_pruning import UnusedFolder
from patchlock.environments.generations import Receipt
from patchlock.hardware import stored_choice
from patchlock.locks.lock_request import Request
from patchlock.model import launchers
from patchlock.model.errors import BusyError, NotInstalledError, SourceConflictError
from patchlock.model.installation import Installation
from patchlock.model.progress import Progress
from patchlock.operations import _menu_entries, _session
from patchlock.worktree import clone, move, trees


def rollback(request: Request, progress: Progress) -> Receipt:
    """Go back to the generation made before the one in use, environment and source together.

    Raises:
        NotInstalledError: there is no earlier one.
        SourceConflictError: the user's edits stand in the way; nothing was changed.
    """
    installation = request.installation
    _earlier(request)
    require_resolved(request)
    with _session.hold_installation(request, progress):
        earlier = _earlier(request)  # another patchlock may have switched meanwhile
        tree = clone.tree_of(installation.source)
        with trees.hold(tree):
            move.move(tree, earlier.applied)
        in_tree_files.apply_generation(installation, generations.generation(installation, earlier.id))
        generations.switch(installation, earlier.id)
    return earlier


def _earlier(request: Request) -> Receipt:
    installation = request.installation
    now = generations.require_current(installation, request.app.name)
    earlier = [r for r in generations.receipts(installation) if r.sequence < now.sequence]
    if not earlier:
        raise NotInstalledError(
            f"{request.app.name} has no earlier version installed, so there is nothing to go back to",
            where=str(installation.folder),
            remedy="nothing was changed",
        )
    return earlier[0]


@dataclass(frozen=True, kw_only=True)
class PruneResult:
    """What was removed, or would be."""

    generations: tuple[tuple[Receipt, FreedSpace], ...]
    downloads: tuple[tuple[str, FreedSpace], ...]
    """Name of each file that no generation of any home needs."""
    others: tuple[tuple[str, FreedSpace], ...]
    """Whatever else of the cache no generation of any home needs; what each is."""


def prune(requests: Iterable[Request], cache: Path, home: Path, progress: Progress, *, dry_run: bool) -> PruneResult:
    """Remove every generation but those in use, and of the cache what no generation of any home needs then.

    Args:
        requests: the installations; may be none.
        cache: of patchlock.
        home: of the installations.
        progress: told what stays, and why.
        dry_run: only say what would be removed.
    """
    removed: list[tuple[Receipt, FreedSpace]] = []
    folders: list[Path] = []
    for request in requests:
        generations.require_current(request.installation, request.app.name)
        with contextlib.ExitStack() as stack:
            if not dry_run:
                stack.enter_context(_session.hold_installation(request, progress))
            old = _old_generations(request, progress)  # another patchlock may have switched meanwhile
            places = [generations.generation(request.installation, receipt.id) for receipt in old]
            removed += zip(old, disk_space.measure(places), strict=True)
            folders += places
            if not dry_run:
                _remove_generations(request)
    needed = cache_pruning.needed(cache, home, without=folders)
    downloads, kept = wheelhouse.unneeded(cache, needed), cache_pruning.unused_folders(cache, needed)
    rooms = iter(disk_space.measure([*(one.folder for one in downloads), *(one.folder for one in kept)]))
    result = PruneResult(
        generations=tuple(removed),
        downloads=tuple((one.filename, next(rooms)) for one in downloads),
        others=tuple((one.what, next(rooms)) for one in kept),
    )
    if not dry_run:
        wheelhouse.remove(downloads)
        cache_pruning.remove(kept)
    return result


def _remove_generations(request: Request) -> None:
    """Remove all but the one in use, those without a receipt that can be read, too; the installation is held."""
    installation = request.installation
    now = generations.require_current(installation, request.app.name)
    for name in generations.names(installation):
        if name != now.id and not _is_used(installation, name):
            folder = generations.generation(installation, name)
            (folder / generations.RECEIPT).unlink(missing_ok=True)
            atomic_files.remove_tree(folder)
    clone.unprotect_others(installation.source, generations.names(installation))


def _old_generations(request: Request, progress: Progress) -> list[Receipt]:
    """List those that are not in use, the newest first."""
    installation = request.installation
    now = generations.require_current(installation, request.app.name)
    others = [receipt for receipt in generations.receipts(installation) if receipt.id != now.id]
    for receipt in others:
        if _is_used(installation, receipt.id):
            progress.note(f"version {receipt.id} stays: {request.app.name} still runs in it")
    return [receipt for receipt in others if not _is_used(installation, receipt.id)]


def _is_used(installation: Installation, name: str) -> bool:
    return venv.is_in_use(generations.generation(installation, name))


@dataclass(frozen=True, kw_only=True)
class UninstallResult:
    """What an uninstall leaves."""

    files: tuple[tuple[str, int], ...]
    """Of the user, by path from the clone's root, and their bytes; a folder that git ignores is one."""
    commits: tuple[str, ...]
    """Of the user, a line each."""
    downloads: int
    """Bytes of the cache that no generation of any home needs, which `cache clean` removes; 0 after a purge."""
    models: int
    """Bytes of models that are kept, and that no other installation of this home uses."""


def uninstall(request: Request, progress: Progress, *, purge: bool) -> UninstallResult:
    """Remove an installation; the user's files in the working tree stay unless told otherwise.

    Args:
        request: which one.
        progress: told what goes on.
        purge: remove the user's files too, and of the cache what only this installation needed.

    Raises:
        NotInstalledError: there is nothing to remove.
    """
    installation = request.installation
    source = installation.source
    _require_removable(request, purge=purge)
    kept = _unneeded(request)  # before what a killed install left is cleared: that needs something, too
    with _session.hold_installation(request, progress, needs_source=not purge):
        _require_idle(installation)
        progress.say("removing files")
        if source.exists():
            models.unlink(request)
            in_tree_files.apply_generation(installation, None)
        stored = models.unused(request)
        if purge:
            with models.hold(request):
                models.remove(request, stored)
        files, commits = _users(source) if source.exists() and not purge else ((), ())
        mine = bool(files or commits)
        installation.pointer.unlink(missing_ok=True)
        _menu_entries.remove(request, progress)
        for name in launchers.names(request.app.name, request.profile.name):
            (installation.folder / name).unlink(missing_ok=True)
        installation.report.unlink(missing_ok=True)
        installation.measured.unlink(missing_ok=True)
        atomic_files.remove_tree(installation.sounds)
        (installation.folder / stored_choice.FILE).unlink(missing_ok=True)
        atomic_files.remove_tree(installation.environments)
        if not mine:
            if source.exists():  # at once, so that no half of it is ever taken for the user's
                source.replace(generations.partial(installation))
            atomic_files.remove_tree(generations.partial(installation))
        installation.journal.unlink(missing_ok=True)
        if os.name == "posix":  # Windows does not remove a file that is open
            _remove_lock(installation, with_folder=not mine)
    if os.name != "posix":
        _remove_lock(installation, with_folder=not mine)
    left = _unneeded(request)
    if purge:
        own = left.less(kept)
        wheelhouse.remove(own.downloads)
        cache_pruning.remove(own.others)
        return UninstallResult(files=files, commits=commits, downloads=0, models=0)
    return UninstallResult(files=files, commits=commits, downloads=left.bytes, models=stored.bytes)


@dataclass(frozen=True, kw_only=True)
class _Unneeded:
    """What of the cache no generation of any home needs."""

    downloads: tuple[wheelhouse.Unneeded, ...]
    others: tuple[UnusedFolder, ...]

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.downloads) + sum(_bytes(one.folder) for one in self.others)

    def less(self, kept: _Unneeded) -> _Unneeded:
        """Leave out what nothing needed before either: it is kept for another app."""
        return _Unneeded(
            downloads=tuple(one for one in self.downloads if one not in kept.downloads),
            others=tuple(one for one in self.others if one not in kept.others),
        )


def _unneeded(request: Request, *, without: Collection[Path] = ()) -> _Unneeded:
    needed, cache = cache_pruning.needed(request.cache, request.home, without=without), request.cache
    return _Unneeded(downloads=wheelhouse.unneeded(cache, needed), others=cache_pruning.unused_folders(cache, needed))


def _remove_lock(installation: Installation, *, with_folder: bool) -> None:
    """Remove the last of our files, and the folder itself where nothing in it is the user's."""
    if with_folder:
        atomic_files.remove_tree(installation.folder)
    else:
        installation.lock.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class UninstallPlan:
    """What an uninstall would remove, and what belongs to the user."""

    environments: FreedSpace
    """Of all generations."""
    files: tuple[tuple[str, int], ...]
    """As `UninstallResult.files`."""
    commits: tuple[str, ...]
    models: int
    """Bytes of models that no other installation of this home uses."""
    downloads: int
    """Bytes of the cache that only this installation needs."""


def plan_uninstall(request: Request, *, purge: bool) -> UninstallPlan:
    """Say what an uninstall would remove; changes nothing.

    Raises:
        NotInstalledError: there is nothing to remove.
    """
    installation = request.installation
    _require_removable(request, purge=purge)
    files, commits = _users(installation.source) if (installation.source / ".git").exists() else ((), ())
    folders = tuple(installation.environments.glob("*"))
    shared = disk_space.measure(folders)
    return UninstallPlan(
        environments=FreedSpace(freed=sum(one.freed for one in shared), shared=sum(one.shared for one in shared)),
        files=files,
        commits=commits,
        models=models.unused(request).bytes,
        downloads=_unneeded(request, without=folders).less(_unneeded(request)).bytes,
    )


def _require_removable(request: Request, *, purge: bool) -> None:
    """Stop where nothing is left to remove, or only what is the user's.

    Raises:
        NotInstalledError: it is so.
    """
    installation, app, profile = request.installation, request.app.name, request.profile.name
    ours = (installation.pointer, installation.environments, installation.journal)
    if any(path.exists() for path in ours) or (purge and installation.folder.exists()):
        return
    elsewhere = installed_profiles.elsewhere(installation)
    what = f"{app} is not installed" + (f" on {profile}{elsewhere}" if elsewhere else "")
    if not installation.folder.exists():
        others = installed_profiles.by_app(request.home).get(app, [])
        remedy = f"remove it there with `patchlock uninstall {app} --profile {others[0]}`" if others else ""
        raise NotInstalledError(what, remedy=remedy or "nothing to remove")
    if (installation.source / ".git").exists() and any(_users(installation.source)):
        raise NotInstalledError(
            f"{what}, and what is left of it is yours",
            where=str(installation.source),
            remedy=f"remove that too with `patchlock uninstall {app} --profile {profile} --purge`",
        )


def _users(source: Path) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    files = tuple((str(path), _bytes(source / path)) for path in clone.users_files(source))
    return files, clone.users_commits(source)


def _bytes(path: Path) -> int:
    found = (path, *path.rglob("*")) if path.is_dir() and not path.is_symlink() else (path,)
    return sum(one.lstat().st_size for one in found if one.is_symlink() or one.is_file())


def _require_idle(installation: Installation) -> None:
    if any(venv.is_in_use(folder) for folder in installation.environments.glob("*")):
        installation.journal.unlink()
        raise BusyError(
            f"{installation.app} is running", where=str(installation.folder), remedy="stop it and run this again"
        )


def recover(request: Request, progress: Progress) -> None:
    """Finish or undo what a killed install began, so that environment and source belong together again.

    Costs a look at two files, and at the names of the temporary directory, where nothing was begun.

    Raises:
        NotInstalledError: the source is gone.
        BusyError: an install is running just now.
        SourceConflictError: an update waits for its conflicts to be resolved.
    """
    installation = request.installation
    old_folders.remove()
    cache_pruning.take_lease(request.cache, request.home)
    if not installation.source.exists() and installation.pointer.exists():
        raise NotInstalledError(
            f"the source of {request.app.name} is gone",
            where=str(installation.source),
            remedy=f"run `patchlock install {request.app.name} --profile {installation.profile}`",
        )
    if not all(path.exists() for path in (installation.journal, installation.source, installation.pointer)):
        return
    require_resolved(request)
    with file_lock.hold(installation.lock, wait=0):
        _session.clear(installation)
        now = generations.current(installation)
        if now is None:
            return
        pending = clone.pending_target(installation.source)
        wanted = pending or move.applied(clone.tree_of(installation.source))
        chosen = now
        if pending is not None or wanted != now.applied:
            progress.note("an install was cut off; finishing or undoing it")
            complete = [r for r in generations.receipts(installation) if r.applied == wanted]
            chosen = complete[0] if complete else now
            with trees.hold(clone.tree_of(installation.source)):
                move.move(clone.tree_of(installation.source), chosen.applied)
            generations.switch(installation, chosen.id)
        in_tree_files.apply_generation(installation, generations.generation(installation, chosen.id))
        installation.journal.unlink(missing_ok=True)


def require_resolved(request: Request) -> None:
    """Stop where an update left conflicts that nobody has finished yet.

    Raises:
        SourceConflictError: says how to finish or to go back.
        SourceDamagedError: git cannot work there.
    """
    clone.require_whole(request.installation.source, request.app.name)
    left = move.conflicted(clone.tree_of(request.installation.source))
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
    generations.require_current(request.installation, request.app.name)
    with _session.hold_installation(request, progress):
        tree = clone.tree_of(request.installation.source)
        with trees.hold(tree):
            return tuple(map(str, move.abort(tree)))
