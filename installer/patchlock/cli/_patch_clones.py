"""`patch apply`, `update`, `undo` and `hooks`: the patches in any clone or folder that the user made himself."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from patchlock.cli import _complete, _folders, _launcher, _options, _output
from patchlock.cli._paths import UserPath
from patchlock.core import command_lines
from patchlock.model.errors import EditsMeetError, PatchError

if TYPE_CHECKING:
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.model.identities import CommitId
    from patchlock.worktree.clone_patches import Applied
    from patchlock.worktree.manifest import Manifest
    from patchlock.worktree.move import Backup, Moved
    from patchlock.worktree.trees import Tree
    from patchlock.worktree.upstream_files import PatchSet

F = TypeVar("F", bound=Callable[..., Any])
_NAMED = 6
"""Files that a line names."""


def which(function: F) -> F:
    """Add which patches: an app's for a profile, or those of a file."""
    function = click.option(
        "--patches",
        "file",
        type=UserPath(exists=True, dir_okay=False),
        help="Take the patches from this file instead of an app's.",
    )(function)
    return click.argument("app", required=False, shell_complete=_complete.apps)(_options.profile(function))


def skips(function: F) -> F:
    """Add which patches a person does not want in a clone."""
    function = click.option(
        "--without", "left_out", multiple=True, metavar="ID", help="Leave a patch out of the clone from now on."
    )(function)
    help_text = "Add an optional patch (`plan` lists them), or undo --without."
    return click.option("--with", "added", multiple=True, metavar="NAME", help=help_text)(function)


def _where(function: F) -> F:
    """Add the folder to work in."""
    return click.option(
        "--source",
        type=UserPath(file_okay=False),
        default=".",
        show_default="this folder",
        help="The clone, or the folder of an unpacked archive.",
    )(function)


@click.command("apply")
@which
@_where
@skips
@click.option("--abort", is_flag=True, help="Restore the files from before the conflicts.")
@click.option("--continue", "goes_on", is_flag=True, help="Continue after resolving every conflict.")
@_options.common
def apply_command(
    app: str | None,
    profile: str | None,
    file: Path | None,
    source: Path,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    abort: bool,
    goes_on: bool,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Patch a clone or a folder of yours, or renew its patches after a pull; your edits are kept.

    \b
    Example:
      patchlock patch apply xtts-webui --source ~/xtts-webui
      git pull --rebase --autostash
      patchlock patch apply
    """
    from patchlock.worktree import manifest, trees

    tree = trees.open_tree(source)
    if abort:
        return _abort(tree, "patch apply", as_json)
    if goes_on:
        _require_conflicts(tree)
    if file is None and not added and not left_out and is_current(tree, catalogue, app, profile):
        return _nothing_to_do(tree, app or "", "patch apply", as_json)
    from patchlock.worktree import clone_patches, trees

    wanted = patch_set(tree, catalogue, app, profile, file, added, left_out)
    known = manifest.read(tree)
    done = clone_patches.apply(tree, wanted, _options.cache(), waiting=_waiting)
    if known is not None and known.name != wanted.name:
        _output.echo(f"the patches of {wanted.name} have taken the place of those of {known.name}", err=True)
    return _told(tree, wanted, done, "patch apply", as_json)


@click.command("update")
@which
@_where
@skips
@_options.common
def update_command(
    app: str | None,
    profile: str | None,
    file: Path | None,
    source: Path,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Pull upstream's branch into a clone of yours and renew its patches; your edits are kept.

    \b
    Example:
      patchlock patch update --source ~/xtts-webui
    """
    from patchlock.worktree import clone_patches, trees

    tree = trees.open_tree(source)
    wanted = patch_set(tree, catalogue, app, profile, file, added, left_out)
    return _told(
        tree, wanted, clone_patches.update(tree, wanted, _options.cache(), waiting=_waiting), "patch update", as_json
    )


@click.command("undo")
@_where
@_options.common
def undo_command(source: Path, catalogue: Path | None, as_json: bool) -> int:  # noqa: ARG001 - every command has it
    """Take the patches out of a clone or folder again; your edits are kept.

    \b
    Example:
      patchlock patch undo --source ~/xtts-webui
    """
    from patchlock.worktree import clone_patches, committed_undo, move, trees

    tree = trees.open_tree(source)
    (where_written, otherwise), applied = committed_undo.told(tree), move.applied(tree)
    was_waiting = move.waits_for_undo(tree)
    moved = clone_patches.undo(tree, waiting=_waiting)
    error = _edits_meet(tree, moved.conflicts, "patch undo", None) if moved.conflicts else None
    if as_json:
        return _output.succeed("patch undo", _moved(moved), error)
    done = f"{_taken_out(tree, moved)}{_kept(tree, moved)}"
    _output.echo(f"your choices stand, and the patches are taken out of {tree.root}" if was_waiting else done)
    if (committed := where_written if moved.written else otherwise) and not error:
        _output.echo(committed)
    if staged := set(clone_patches.still_staged(tree, applied)) - {*moved.conflicts}:
        names = command_lines.joined(sorted(map(str, staged)))
        add = f"git -C {command_lines.quoted(str(tree.root))} add -A -- {names}"
        _output.echo(f"what you have staged still has patches: `{add}` stages your files without them")
    tell_backups(str(tree.root), move.backups(tree))
    if error:
        raise error
    return 0


def _taken_out(tree: Tree, moved: Moved) -> str:
    """Say of how many files the patches are taken out, and in how many conflicts wait."""
    count, waiting = len({*moved.written} - {*moved.conflicts}), len(moved.conflicts)
    if count and waiting:
        told = f"{waiting} wait{'s' if waiting == 1 else ''} for you"
        return f"the patches are taken out of {count} of {count + waiting} files of {tree.root}, and {told}"
    if count:
        return f"the patches are taken out of {count} file{'' if count == 1 else 's'} of {tree.root}"
    if moved.conflicts:
        return f"the patches are not taken out of {tree.root} yet"
    return f"no file of {tree.root} had to be changed"


@click.command("hooks")
@which
@_where
@click.option("--remove", is_flag=True, help="Remove the hooks.")
@_options.common
def hooks_command(
    app: str | None,
    profile: str | None,
    file: Path | None,
    source: Path,
    remove: bool,
    catalogue: Path | None,
    as_json: bool,
) -> None:
    """Let git renew the patches of a clone after every pull and checkout.

    \b
    Example:
      patchlock patch hooks --source ~/xtts-webui
    """
    from patchlock.worktree import hooks, trees

    tree = trees.open_tree(source)
    if remove:
        files = hooks.remove(tree)
    else:
        wanted = patch_set(tree, catalogue, app, profile, file)
        words = ["patch", "apply", "--source", str(tree.root)]
        words += [wanted.name] if wanted.profile else ["--patches", wanted.origin]
        words += ["--profile", wanted.profile] if wanted.profile else []
        system = "windows" if os.name == "nt" else "posix"
        of_app = Path(wanted.origin) if wanted.origin and wanted.profile else None
        by = _launcher.starter(of_app or _options.root(catalogue), _options.home(), _options.cache(), system)
        told = [*words, *(["--catalogue", wanted.origin] if of_app else [])]
        shown = f"{_launcher.own_command(_options.home())} {command_lines.joined(told)}"
        files = hooks.install(tree, by, words, shown)
    if as_json:
        _output.succeed("patch hooks", {"files": [str(path) for path in files], "removed": remove})
    else:
        _output.echo(f"{'removed' if remove else 'written'}: {', '.join(path.name for path in files) or 'nothing'}")


def is_tree(source: str | None, revision: str | None) -> bool:
    """Tell whether `--source` names a folder with a working tree, and no commit of it is asked for."""
    if source is None or revision is not None or not Path(source).is_dir():
        return False
    folder = Path(source)
    return (folder / ".git").exists() or not ((folder / "objects").is_dir() and (folder / "HEAD").is_file())


def patch_set(
    tree: Tree,
    catalogue: Path | None,
    app: str | None,
    profile: str | None,
    file: Path | None,
    added: tuple[str, ...] = (),
    left_out: tuple[str, ...] = (),
) -> PatchSet:
    """Gather the patches that are asked for, or those that the folder has already, less those that nobody wants there.

    Raises:
        UsageError: neither an app nor a file is named, and the folder has no patches yet; or there is no such patch.
    """
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.worktree import manifest, patch_sets

    known, choice = manifest.read(tree), Choice(added=added, left_out=left_out)
    wanted = _all_patches(tree, known, catalogue, app, profile, file, choice)
    kept = known.skipped if known is not None and known.name == wanted.name else ()
    return patch_sets.without(wanted, kept, choice)


def _all_patches(
    tree: Tree,
    known: Manifest | None,
    catalogue: Path | None,
    app: str | None,
    profile: str | None,
    file: Path | None,
    choice: Choice,
) -> PatchSet:
    from patchlock.catalogue import app_summaries, pairs
    from patchlock.model.errors import NotPatchedError, SourceConflictError, UsageError
    from patchlock.worktree import move, patch_sets

    if file is not None and app is not None:
        raise UsageError("name an app or --patches, not both")
    if file is not None:
        return patch_sets.of_file(file, _options.home())
    if app is None and known is not None and not known.profile:
        if known.origin and Path(known.origin).is_file():
            return patch_sets.of_file(Path(known.origin), _options.home())
        raise UsageError(
            f'the patches of "{known.name}" came from a file', remedy="name it again: `--patches FILE`, or name an app"
        )
    name = app or (known.name if known else None)
    if name is None and move.waits_for_undo(tree) and (left := move.unchosen(tree)):
        raise SourceConflictError(
            f"an undo waits for your choice in {move.marked_places(tree, left)}",
            where=str(tree.root),
            remedy=f"choose, then `patchlock patch undo --source {command_lines.quoted(str(tree.root))}`",
        )
    if name is None:
        command = click.get_current_context().info_name
        raise NotPatchedError(
            "no patches are applied there yet, so it must be said which",
            where=str(tree.root),
            remedy=f"name the app: `patchlock patch {command} APP --source {command_lines.quoted(str(tree.root))}`; "
            "`patchlock list` shows the apps; for patches of your own, write `--patches FILE` in place of APP",
        )
    chosen = profile or (known.profile if known and known.name == name else None)
    catalogue = _catalogue_of(known, catalogue, app)
    opened = _options.open_catalogue(catalogue)
    patch_sets.require_clone_of(tree, opened, name)
    if chosen is None:
        chosen = _options.request(catalogue, name, None).profile.name
    kept = known.chosen if known and known.name == name else ()
    machine, summary = opened.profile(chosen), app_summaries.read_summary(opened.root, name)
    wanted = patch_sets.of_app(opened, name, machine.name, kept, choice)
    return dataclasses.replace(wanted, refused=pairs.refused_everywhere(summary, machine))


def _catalogue_of(known: Manifest | None, folder: Path | None, app: str | None) -> Path | None:
    """Name the catalogue that a tree has its patches from, where they are asked for again and no other one is named."""
    from patchlock.model.errors import UsageError

    if folder is not None or known is None or not (known.profile and known.origin) or app not in {None, known.name}:
        return folder
    if not Path(known.origin).is_dir():
        raise UsageError(
            f"the patches of {known.name} came from the catalogue {known.origin}, which is not there any more",
            remedy="say where it is now: --catalogue FOLDER",
        )
    return Path(known.origin)


def _require_conflicts(tree: Tree) -> None:
    from patchlock.model.errors import UsageError
    from patchlock.worktree import move

    if move.waits_for_undo(tree):
        again = f"`patchlock patch undo --source {command_lines.quoted(str(tree.root))}`"
        raise UsageError("the conflicts that wait there are those of an undo", remedy=f"go on with {again}")
    if move.conflicted(tree) is None and not move.is_unfinished(tree):
        raise UsageError("no conflicts of patchlock's wait there", remedy="leave --continue out to renew the patches")


def is_current(tree: Tree, folder: Path | None, app: str | None, profile: str | None) -> bool:
    """Tell whether a tree has what is asked for, without reading the patches."""
    from patchlock.catalogue import location
    from patchlock.worktree import manifest

    known = manifest.read(tree)
    if known is None or not known.catalogue or app not in {None, known.name} or profile not in {None, known.profile}:
        return False
    root = _folders.root(_catalogue_of(known, folder, app))
    digest = location.patches_digest(root, known.name, known.profile)
    return digest == known.catalogue and manifest.is_current(tree, known)


def _nothing_to_do(tree: Tree, name: str, command: str, as_json: bool) -> int:
    from patchlock.worktree import manifest, upstream_cache

    known = manifest.read(tree)
    if as_json:
        return _output.succeed(command, {"changed": False, "folder": str(tree.root), "outcomes": []})
    whose = f" of {name or known.name}" if known and known.profile else ""
    asked = ""
    if command == "patch update":
        newest = upstream_cache.commit_of(tree.repository, "@{upstream}") or ""
        branch = upstream_cache.git("rev-parse", "--abbrev-ref", "@{upstream}", repository=tree.repository).text
        asked = f", and {branch}, which it follows, has nothing newer than commit {newest[:12]}"
    _output.echo(f"{tree.root} has the patches{whose} already{asked}: nothing to do")
    return 0


def tell_backups(folder: str, backups: Iterable[Backup]) -> None:
    """Say what is kept of the user's files in a clone, and the command that shows it."""
    for one in backups:
        times = f" {one.count} times," if one.count > 1 else ""
        show = f"git -C {command_lines.quoted(folder)} log -p -m --first-parent -1 {one.ref}"
        _output.echo(f"kept: {one.what},{times} last on {one.last[:16]}: `{show}`")


def warn(sentences: tuple[str, ...]) -> None:
    """Say on stderr what was left out, and why."""
    for sentence in sentences:
        _output.echo(f"warning: {sentence}", err=True)


def _told(tree: Tree, wanted: PatchSet, done: Applied | None, command: str, as_json: bool) -> int:
    """Say what was done, and give the exit code: 1 where the user has something to resolve or an edit is lost."""
    from patchlock.cli._plan import outcome_data, outcome_lines
    from patchlock.worktree import move

    if done is None:
        return _nothing_to_do(tree, wanted.name, command, as_json)
    left = done.moved.left_by_git
    conflicts = [path for path in done.moved.conflicts if path not in left]
    git_first = None
    if left:
        git_first = move.git_first(tree, left, is_part=bool(done.moved.written), patched=done.applied)
    if as_json:
        data = {
            "changed": not left or bool(done.moved.written),
            "folder": str(tree.root),
            "commit": done.upstream,
            "applied": done.applied,
            "outcomes": [outcome_data(outcome) for outcome in done.outcomes],
            "warnings": list(done.warnings),
            **_moved(done.moved),
        }
        error = _edits_meet(tree, conflicts, command, done.applied) if conflicts else lost(tree, wanted, done.lost)
        return _output.succeed(command, data, git_first or error)
    if git_first and not done.moved.written:
        raise git_first
    _output.echo(f"{wanted.name} in {tree.root} at {done.upstream[:12]}")
    _output.echo(outcome_lines(done.outcomes, is_done=True, is_own=not wanted.profile))
    warn(done.warnings)
    _output.echo(f"{_written(done.moved.written)}{_kept(tree, done.moved)}")
    if done.moved.left_stash and not conflicts:
        drop = f"git -C {command_lines.quoted(str(tree.root))} stash drop"
        _output.echo(f"your files have all that git's autostash, stash@{{0}}, has kept; remove it: `{drop}`")
    if not done.moved.conflicts and (go_on := move.going_on(tree)):
        _output.echo(f"now go on with git: `{go_on}`; then run this again")
    if conflicts:
        error = _edits_meet(tree, conflicts, command, done.applied)
        _output.echo(f"{error.what}.\n{error.remedy[0].upper()}{error.remedy[1:]}.", err=True)
    if git_first:
        raise git_first
    gone = lost(tree, wanted, done.lost)
    if gone and not conflicts:
        _output.echo(f"{gone.what}: {gone.remedy}", err=True)
    return 1 if conflicts or gone else 0


def _written(paths: Sequence[PurePosixPath]) -> str:
    """Count the files that were written, and name the first of them."""
    if not paths:
        return "no file had to be changed"
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{len(paths)} file{'' if len(paths) == 1 else 's'} written: {', '.join(map(str, paths[:_NAMED]))}{more}"


def lost(tree: Tree, wanted: PatchSet, ids: Sequence[str]) -> PatchError | None:
    """Refuse to call a tree patched that lacks what some of the user's own patches write; None where it has it all."""
    if not ids:
        return None
    is_one = len(ids) == 1
    it, patch = ("it", "the patch") if is_one else ("them", "these patches")
    leave_out = " ".join(f"--without {name}" for name in ids)
    is_forks = Path(wanted.origin).resolve().is_relative_to(tree.root.resolve())
    here = "" if is_forks else f", or leave {it} out of this folder with `{leave_out}`"
    return PatchError(
        f"{', '.join(ids)}: your files do not have what {'it writes' if is_one else 'they write'}",
        where=str(tree.root),
        remedy=f"write it into the files, or correct {patch} in {wanted.origin}; if you want {it} no more, remove {it} "
        f"there{here}",
    )


def _edits_meet(tree: Tree, paths: Iterable[PurePosixPath], command: str, patched: CommitId | None) -> EditsMeetError:
    """Say what meets and stands there, and the two ways on."""
    from patchlock.worktree import move

    paths = tuple(paths)
    of_upstream = move.upstreams_own(tree, paths, patched)
    of_patches = [path for path in paths if path not in of_upstream]
    pairs = (("the patches", of_patches), ("what upstream has changed", of_upstream))
    meets = " and with ".join(f"{what} in {', '.join(map(str, files))}" for what, files in pairs if files)
    unmarked = move.without_markers(tree, paths)
    marked = [path for path in paths if path not in unmarked]
    source = command_lines.quoted(str(tree.root))
    stands = ["both versions are there, between conflict markers"] if marked else []
    choose = "choose"
    if unmarked:
        names = ", ".join(map(str, unmarked))
        stands.append(f"your version{f' of {names}' if marked else ''} stands there beside upstream's in git's index")
        add = f"`git -C {source} add {command_lines.joined(map(str, unmarked))}`" if tree.is_clone else "`touch`"
        choose = f"choose{f'; in {names}' if marked else ','} say so with {add}"
    again = "" if command == "patch apply" else f" (`patchlock {command} --source {source}`)"
    return EditsMeetError(
        f"your edits conflict with {meets}: {', and '.join(stands)}",
        where=str(tree.root),
        remedy=f"{choose}, and run the same command again{again}; or go back with "
        f"`patchlock patch apply --abort --source {source}`",
    )


def _abort(tree: Tree, command: str, as_json: bool) -> int:
    from patchlock.worktree import clone_patches, move

    files = clone_patches.abort(tree, waiting=_waiting)
    if as_json:
        _output.succeed(command, {"changed": bool(files), "restored": [str(path) for path in files]})
    elif files:
        what = "1 file is as it was" if len(files) == 1 else f"{len(files)} files are as they were"
        _output.echo(f"{what}; what stood there is kept as {tree.ref(move.ABORTED)}")
    else:
        _output.echo("there are no conflicts to undo: nothing to do")
    return 0


def _waiting() -> None:
    _output.echo("waiting for another patchlock in this folder", err=True)


def _moved(moved: Moved) -> dict[str, object]:
    return {
        "written": [str(path) for path in moved.written],
        "merged": [str(path) for path in moved.merged],
        "kept": [str(path) for path in moved.kept],
        "removed": [str(path) for path in moved.removed],
        "unstaged": [str(path) for path in moved.unstaged],
        "conflicts": [str(path) for path in moved.conflicts],
    }


def _kept(tree: Tree, moved: Moved) -> str:
    kept = [path for path in (*moved.merged, *moved.kept) if path not in moved.layout]
    lost = ", but for those of the warning" if moved.replaced else ""
    told = f"; your edits are kept in {', '.join(map(str, kept))}{lost}" if kept else ""
    if moved.layout:
        names, verb = ", ".join(map(str, moved.layout)), "has" if len(moved.layout) == 1 else "have"
        told += f"; {names} {verb} what the patches write with other white space, which is kept"
    if moved.unstaged:
        verb = "is" if len(moved.unstaged) == 1 else "are"
        names = command_lines.joined(map(str, moved.unstaged))
        stage = (
            f"git -C {command_lines.quoted(str(tree.root))} restore --staged --source {moved.staged_in[:12]} {names}"
        )
        when = "once the conflict is resolved, " if {*moved.unstaged} & {*moved.conflicts} else ""
        told += f"; {', '.join(map(str, moved.unstaged))} {verb} no longer staged: {when}`{stage}` "
        told += "stages your version again"
    return f"{told}; you removed {', '.join(map(str, moved.removed))}, so it stays away" if moved.removed else told
