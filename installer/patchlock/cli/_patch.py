"""`patch status` and `patch diff`: what the patches of an app do to its source."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output, _patch_authoring, _patch_clones
from patchlock.cli._commands import Subcommands
from patchlock.cli._patch_wheel import wheel_command
from patchlock.cli._plan import outcome_data, outcome_lines
from patchlock.core import command_lines

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request, Upstream
    from patchlock.model.errors import PatchError, SourceConflictError
    from patchlock.model.patch import Outcome, Patched
    from patchlock.worktree.move import Backup


@click.group("patch", cls=Subcommands, no_args_is_help=True)
def patch_command() -> None:
    """Show an app's patches, or apply them to a clone of yours.

    \b
    Example:
      patchlock patch status demo
      patchlock patch apply xtts-webui --source ~/xtts-webui
    """


for _command in (
    _patch_clones.apply_command,
    _patch_clones.update_command,
    _patch_clones.undo_command,
    _patch_clones.hooks_command,
    wheel_command,
    _patch_authoring.new_command,
    _patch_authoring.test_command,
):
    patch_command.add_command(_command)


@patch_command.command("status")
@_patch_clones.which
@_patch_clones.skips
@_options.upstream
@_options.common
def status_command(
    app: str | None,
    profile: str | None,
    file: Path | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    source: str | None,
    revision: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Show how each patch fares in each file: of the installed app, of your clone, or of upstream.

    \b
    Example:
      patchlock patch status demo --profile cpu
      patchlock patch status --source ~/xtts-webui
    """
    from patchlock.patches import engine
    from patchlock.patches.outcomes import warnings

    looked = None
    if file is None and revision is None and not added and not left_out:
        looked = _remembered(app, profile, source, catalogue)
    if looked is None:
        looked = _look(app, profile, file, added, left_out, source, revision, catalogue)
    found = dataclasses.replace(looked.patched, outcomes=looked.outcomes)
    place = f" in {looked.folder}" if looked.folder else ""
    error = looked.unchosen or engine.incomplete_error(found, looked.where, looked.command, ways=looked.ways)
    error = error or looked.lost
    if as_json:
        data = {
            "commit": looked.commit,
            "outcomes": [outcome_data(outcome) for outcome in looked.outcomes],
            "failures": list(engine.required_failures(looked.patched)),
            "warnings": list(warnings(found)),
            "conflicts": [str(path) for path in looked.conflicts],
            "half_done": looked.finishing,
            "backups": [dataclasses.asdict(one) for one in looked.backups],
        }
        return _output.succeed("patch status", data, error)
    at = f" at commit {looked.commit[:12]}" if looked.commit else ""
    _output.echo(f"{looked.name}{place}{at}{f' on {looked.profile}' if looked.profile else ''}")
    _output.echo(outcome_lines(looked.outcomes, is_own=not looked.profile))
    for failure in engine.required_failures(looked.patched):
        _output.echo(f"fails: {failure}")
    _patch_clones.warn(warnings(found))
    at_source = f"--source {command_lines.quoted(looked.folder)}"
    if looked.finishing:
        _output.echo(f"a move is half done: `patchlock patch {looked.finishing} {at_source}` finishes it")
    if told := looked.unchosen or (looked.lost if error is looked.lost else None):
        _output.echo(f"{told.what}: {told.remedy}")
    _patch_clones.tell_backups(looked.folder, looked.backups)
    return 1 if error is not None else 0


@dataclass(frozen=True, kw_only=True)
class _Looked:
    """What patching gives, and how it stands in the tree that was looked at."""

    name: str
    profile: str
    folder: str
    """Of a clone of the user's, or ""."""
    command: str
    """What puts the patches into that clone, or shows them without some; or ""."""
    commit: str
    patched: Patched
    outcomes: tuple[Outcome, ...]
    directory: PurePosixPath
    """The app's folder, from the root of the clone."""
    conflicts: tuple[PurePosixPath, ...] = ()
    """Files in which both sides of a move still stand between markers."""
    unchosen: SourceConflictError | None = None
    """Says so, also of conflicts that the user has committed."""
    lost: PatchError | None = None
    """Says that the user's files lack what patches of his own write."""
    backups: tuple[Backup, ...] = ()
    finishing: str = ""
    """The words that finish a move that was cut off, or ""."""
    ways: tuple[str, ...] = ()
    """What helps where a patch fails."""

    @property
    def where(self) -> str:
        """The patches and the clone, for an error."""
        return f"{self.name} in {self.folder}" if self.folder else self.name


def _remembered(app: str | None, profile: str | None, source: str | None, catalogue: Path | None) -> _Looked | None:
    """Give what was found when a tree of the user's was last patched, where nothing of it has changed since."""
    from patchlock.model.patch import Patched
    from patchlock.worktree import manifest, move, trees

    if app is not None and not _patch_clones.is_tree(source, None):
        return None
    tree = trees.open_tree(Path(source or "."))
    known = manifest.read(tree)
    if known is None or not known.outcomes or not _patch_clones.is_current(tree, catalogue, app, profile):
        return None
    if known.head not in {"", known.upstream}:
        return None  # he has commits of his own: which of upstream's they stand on changes with each fetch and push
    left, advisory = known.failures, frozenset(known.advisory)
    return _Looked(
        name=known.name,
        profile=known.profile,
        folder=str(tree.root),
        command="",
        commit=known.upstream,
        patched=Patched(changes=(), outcomes=known.outcomes, failures=left, advisory=advisory),
        outcomes=known.outcomes,
        directory=PurePosixPath(),
        backups=move.backups(tree),
    )


def _look(
    app: str | None,
    profile: str | None,
    file: Path | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    source: str | None,
    revision: str | None,
    catalogue: Path | None,
    command: str = "apply",
) -> _Looked:
    """Patch in memory what the options name: a tree of the user's where `--source` is one, else upstream's commit."""
    from patchlock.locks.lock_request import read_upstream
    from patchlock.model.errors import NoProfileFitsError, UsageError
    from patchlock.worktree import clone_patches, move, trees

    if app is None or file is not None or _patch_clones.is_tree(source, revision):
        tree = trees.open_tree(Path(source or "."))
        wanted = _patch_clones.patch_set(tree, catalogue, app, profile, file, added, left_out)
        commit, patched, outcomes = clone_patches.status(tree, wanted, _options.cache())
        name, profile, folder = wanted.name, wanted.profile, str(tree.root)
        if revision is not None:
            raise UsageError("--commit is for an app's upstream; a clone is looked at as it stands")
        return _Looked(
            name=name,
            profile=profile,
            folder=folder,
            command=clone_patches.command_for(tree, wanted, command),
            commit=commit,
            patched=patched,
            outcomes=outcomes,
            directory=wanted.directory,
            conflicts=move.conflicted(tree) or (),
            lost=_patch_clones.lost(tree, wanted, clone_patches.lost(tree, wanted, outcomes, patched.advisory)),
            backups=move.backups(tree),
            finishing=move.finishing_words(tree),
            unchosen=clone_patches.unchosen(tree, wanted, commit),
            ways=clone_patches.ways_on(tree, wanted, commit, patched),
        )
    if added or left_out:
        raise UsageError("--with and --without are for a clone of yours", remedy="name it: `--source CLONE`")
    try:
        request = _options.request(catalogue, app, profile, source=source, revision=revision)
    except NoProfileFitsError:
        if profile is None:
            raise
        platform = _options.open_catalogue(catalogue).profile(profile).platforms[0].name
        request = _options.pair_request(catalogue, app, profile, platform, source=source)
        request = dataclasses.replace(request, revision=revision)  # another machine's patches can be read here too
    if source is None and revision is None:
        request = _as_installed(request)
    upstream = read_upstream(request)
    return _Looked(
        name=app,
        profile=request.profile.name,
        folder="",
        command="",
        commit=upstream.snapshot.commit,
        patched=upstream.patched,
        outcomes=tuple(_in_tree(request, upstream, outcome) for outcome in upstream.patched.outcomes),
        directory=request.app.directory,
    )


def _as_installed(request: Request) -> Request:
    """Ask for the commit that is installed, where that is another one than the catalogue's; its clone has it."""
    from patchlock.environments import generations

    used = generations.current(request.installation)
    if used is None or used.upstream == request.app.upstream.commit:
        return request
    return dataclasses.replace(request, source=str(request.installation.source), revision=used.upstream)


def _in_tree(request: Request, upstream: Upstream, outcome: Outcome) -> Outcome:
    """Look at the installed file: is it as we patched it, or has the user gone on from there?"""
    from patchlock.environments import generations
    from patchlock.model.digests import sha256
    from patchlock.model.patch import OutcomeKind
    from patchlock.patches import edited_file
    from patchlock.patches.evaluation import DIRECT
    from patchlock.patches.outcomes import LEFT_AS_IT_IS

    changes = {change.path: change for change in upstream.patched.changes}
    if outcome.path not in changes or outcome.path is None or outcome.kind in LEFT_AS_IT_IS:
        return outcome
    if not request.installation.source.exists():
        return outcome
    change = changes[outcome.path]
    file = request.installation.source / request.app.directory / outcome.path
    present = file.read_bytes() if file.is_file() else None
    receipt = generations.current(request.installation)
    ours = receipt.patched.get(str(request.app.directory / outcome.path)) if receipt else None
    if present == change.after or (present is not None and sha256(present) == ours):
        return edited_file.outcome_as_left(outcome, outcome.detail)
    if present == change.before:
        return outcome
    if present is None:
        return dataclasses.replace(outcome, kind=OutcomeKind.DRIFTED, detail="you have removed the file")
    patch = next(patch for patch in request.app.patches if patch.id == outcome.patch)
    return edited_file.outcome_with_edits(patch, change, outcome, present, DIRECT)


@patch_command.command("diff")
@_patch_clones.which
@_patch_clones.skips
@_options.upstream
@_options.common
def diff_command(
    app: str | None,
    profile: str | None,
    file: Path | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    source: str | None,
    revision: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Print the difference between upstream and the patched source, as a unified diff.

    Written to a file or a pipe, it is what `git apply` takes, byte for byte.

    \b
    Example:
      patchlock patch diff demo --profile cpu
      patchlock patch diff --source ~/xtts-webui
    """
    from patchlock.patches import engine
    from patchlock.patches.outcomes import diff, warnings
    from patchlock.worktree.git_diff import git_diff

    looked = _look(app, profile, file, added, left_out, source, revision, catalogue, "diff")
    changes = looked.patched.changes
    so = "so the diff is not complete"
    incomplete = engine.incomplete_error(looked.patched, looked.where, looked.command, ways=looked.ways, so=so)
    error = looked.unchosen or incomplete
    if as_json:
        return _output.succeed("patch diff", {"commit": looked.commit, "diff": diff(changes)}, error)
    if _output.is_terminal(sys.stdout):
        _output.diff(diff(changes))
    else:
        _output.file_bytes(git_diff(changes, looked.directory))
    _patch_clones.warn(warnings(looked.patched))
    if error is not None:
        raise error
    return 0
