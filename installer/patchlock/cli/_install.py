"""`install`, `update`, `run` and `rollback`: what brings an installation about and uses it."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output

if TYPE_CHECKING:
    from patchlock.environments.generations import Receipt
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import PatchlockError
    from patchlock.operations.fallback import NextRequest, Replacement
    from patchlock.operations.install import InstallResult


@click.command("install")
@_options.pair
@_options.upstream
@_options.choice
@click.option("--reinstall", is_flag=True, help="Build the environment afresh even if nothing has changed.")
@click.option("--repair", is_flag=True, help="Look at every file, and mend what is not as it was installed.")
@click.option(
    "--archive",
    "archives",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Take an overlay's archive from this file, which has the name that the vendor gave it.",
)
@click.option(
    "--accept-changed",
    multiple=True,
    metavar="FILE",
    help="An overlay's archive that may be another than at first use.",
)
@click.option(
    "--fallback",
    is_flag=True,
    help="Where the profile does not work on this machine, install the next one that does in its place.",
)
@_options.needs_option
@_options.no_device_option
@_options.edited_lock
@_options.common
def install_command(
    app: str,
    profile: str | None,
    source: str | None,
    revision: str | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    reinstall: bool,
    repair: bool,
    archives: tuple[Path, ...],
    accept_changed: tuple[str, ...],
    fallback: bool,
    ignore_needs: bool,
    no_device: bool,
    accept_edited_lock: bool,
    local_addresses: bool,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Patch the app's source, install its lock and prove that it works.

    \b
    Example:
      patchlock install demo --profile cpu
      patchlock install tts-service --source ~/clones/second-brain
    """
    is_plain = not (reinstall or repair or revision or archives or accept_changed or fallback or as_json)
    named = profile
    profile = named or _remembered(app, _options.root(catalogue))
    from patchlock.hardware import stored_choice

    folder = _options.home() / f"{app}@{profile}"
    is_plain &= profile is not None and not stored_choice.read(folder).instead
    if is_plain and profile is not None and _launcher.is_there(app, profile, _options.home()):
        from patchlock.environments import freshness

        if generation := freshness.up_to_date_generation(
            folder, _options.root(catalogue), app, profile, added, left_out
        ):
            _require_whole(folder / "environments" / generation, app, profile)
            _tell_nothing_to_do(app, profile, freshness.is_of_edited_lock(folder / "environments" / generation))
            return 0
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.cli import _profile_choice
    from patchlock.operations.install_plan import up_to_date

    def make(profile: str | None, failed: Mapping[str, str] = MappingProxyType({})) -> Request:
        made = _options.request(
            catalogue,
            app,
            profile,
            source=source,
            revision=revision,
            reinstall=reinstall,
            heed=(lambda _: None)
            if failed
            else lambda found: _profile_choice.confirm_choice(found, app, as_json=as_json),
            choice=Choice(added=added, left_out=left_out),
            failed=failed,
        )
        kept = made.kept
        if kept is not None and (named is None or failed):
            kept = dataclasses.replace(kept, profiles=stored_choice.digest(made.catalogue.root))
        return dataclasses.replace(
            made,
            kept=kept,
            archives=archives,
            accept_changed=accept_changed,
            accept_edited_lock=accept_edited_lock,
            local_addresses=local_addresses,
        )

    request = make(profile)
    if repair:
        _repair(request, as_json)
        return 0
    has_failed = bool(stored_choice.read(request.installation.folder).instead)
    receipt = None if fallback or has_failed else up_to_date(request)
    _launcher.write(request.home)
    if receipt is not None:
        _launcher.write_for(request)
        if named is None and request.kept is not None:
            stored_choice.write(request.installation.folder, request.kept)
        _require_whole(request.installation.environments / receipt.id, app, request.profile.name)
        if as_json:
            _output.succeed("install", _report(request, receipt))
        else:
            _tell_nothing_to_do(app, request.profile.name, receipt.edited_lock)
        return 0
    return _install(
        request,
        lambda failed: make(None, failed),
        fallback=fallback,
        ignore_needs=ignore_needs,
        no_device=no_device,
        as_json=as_json,
    )


def _install(
    request: Request, next_request: NextRequest, *, fallback: bool, ignore_needs: bool, no_device: bool, as_json: bool
) -> int:
    """Install; where that does not work on this machine, take the next profile that does, or say how to."""
    from patchlock.cli import _fallback
    from patchlock.operations import install

    progress = _output.progress(as_json)

    def attempt(request: Request) -> InstallResult:
        return install.install(request, progress, ignore_needs=ignore_needs, no_device=no_device)

    def instead(error: PatchlockError) -> Replacement | None:
        return _fallback.take(request, error, next_request, attempt, progress, is_wanted=fallback, as_json=as_json)

    try:
        report = attempt(request)
    except _fallback.FAILURES as error:
        other = instead(error)
        if other is None:
            raise
    else:
        other = instead(report.unproved) if report.unproved is not None else None
    if other is not None:
        return _tell_installed(other.request, other.report, "install", as_json=as_json, instead_of=other.failed)
    return _tell_installed(request, report, "install", as_json=as_json)


def _tell_installed(
    request: Request,
    report: InstallResult,
    command: str,
    *,
    as_json: bool,
    instead_of: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Say what was installed, and give the exit code."""
    from patchlock.cli import _profile_choice

    _launcher.write_for(request)
    if as_json:
        data = _report(request, report.receipt, report) | {"instead_of": dict(instead_of)}
        return _output.succeed(command, data, report.unproved)
    click.echo(_summary(request, report, tuple(instead_of)))
    _profile_choice.print_warnings(request.machine, as_json=as_json)
    if report.unproved is not None:
        raise report.unproved
    return 0


def _remembered(app: str, catalogue: Path) -> str | None:
    """Name the profile that was chosen for an app and not named, while the profiles to choose from are the same."""
    home = _options.home()
    if not home.is_dir() or any(name.startswith(("PATCHLOCK_HOST", "PATCHLOCK_OVERRIDE_")) for name in os.environ):
        return None
    from patchlock.hardware import stored_choice

    chosen = {
        entry.name.removeprefix(f"{app}@"): stored_choice.read(home / entry.name)
        for entry in os.scandir(home)
        if entry.name.startswith(f"{app}@") and (home / entry.name / "current").is_file()
    }
    now = stored_choice.digest(catalogue) if any(kept.profiles for kept in chosen.values()) else ""
    same = [name for name, kept in chosen.items() if now and kept.profiles == now and kept.instead not in chosen]
    return same[0] if len(same) == 1 else None


def _tell_nothing_to_do(app: str, profile: str, is_edited: bool) -> None:
    click.echo(f"{app} is installed on {profile} and up to date: nothing to do")
    if is_edited:
        from patchlock.model import lockfile

        click.echo(f"note    the lock {lockfile.EDITED}")


def _require_whole(generation: Path, app: str, profile: str) -> None:
    """Refuse to call an installation up to date whose packages were changed, where a glance shows that they may be.

    Raises:
        VerifyError: the quick look of `verify` finds damage.
    """
    from patchlock.environments import freshness

    if not freshness.is_touched(generation):
        return
    from patchlock.environments import generations
    from patchlock.model.errors import VerifyError
    from patchlock.verify import verification

    receipt = generations.read_receipt(generation)
    results = verification.quick_without_catalogue(generation, receipt).results if receipt is not None else ()
    wrong = [result for result in results if not result.passed]
    if wrong:
        raise VerifyError(
            f"{app} is installed on {profile}, and there is nothing new; but it is not as it was installed",
            where=str(generation),
            remedy=f"`patchlock install {app} --profile {profile} --repair` mends exactly that",
            evidence=(f"{one.id}: {one.detail}" for one in wrong),
        )


def _repair(request: Request, as_json: bool) -> None:
    from patchlock.cli._verify import bytes_told
    from patchlock.model.errors import UsageError
    from patchlock.operations import repair

    app = request.app.name
    if request.source is not None or request.revision is not None or request.reinstall:
        raise UsageError("--repair takes no other source or commit, and no --reinstall", remedy="give --repair alone")
    progress = _output.progress(as_json)
    done = repair.repair(request, progress, bytes_told(progress))
    if as_json:
        _output.succeed("install", repair.data(done))
        return
    if done.receipt is None:
        click.echo(f"{app} is as it was installed: nothing to mend")
    else:
        click.echo(f"{app} is mended: generation {done.receipt.id} is in use")
        for line in done.mended:
            click.echo(f"  mended  {line}")
    for note in done.notes:
        click.echo(f"  note    {note}")
    if done.receipt is not None:
        click.echo(f"undo: {_launcher.own_command(_options.home())} rollback {_options.pair_arguments(request)}")


def _summary(request: Request, report: InstallResult, instead_of: tuple[str, ...] = ()) -> str:
    from patchlock.cli import _models
    from patchlock.cli._plan import outcome_lines
    from patchlock.model import lockfile

    receipt, app, itself = report.receipt, request.app.name, _launcher.own_command(_options.home())
    pair = _options.pair_arguments(request)
    pairs = [
        ("upstream", f"commit {receipt.upstream[:12]}, patched as {receipt.applied[:12]}"),
        ("patches", outcome_lines(report.outcomes) or "none"),
        ("packages", f"{receipt.packages} with Python {receipt.python}, each with its sha256"),
        (
            "verified" if report.computed else "checked",
            "\n".join(f"{check.level:<8}  {check.id}: {check.detail}" for check in receipt.checks),
        ),
        ("folder", str(request.installation.source / request.app.directory)),
        *_models.summary_row(request),
        ("run", f"{itself} run {pair}" + (f"\n{request.app.launch.says}" if request.app.launch.says else "")),
        ("launcher", _launchers(request)),
        ("undo", f"{itself} {'rollback' if receipt.sequence > 1 else 'uninstall'} {pair}"),
    ]
    if receipt.chosen:
        pairs.insert(2, ("chosen", ", ".join(receipt.chosen)))
    if receipt.edited_lock:
        pairs.insert(2, ("lock", lockfile.EDITED))
    if instead_of:
        pairs.insert(0, ("stands in", f"for {', '.join(instead_of)}, which does not work on this machine"))
    if report.merged:
        pairs.insert(2, ("kept", f"your edits in {', '.join(report.merged)}"))
    if report.notes:
        pairs.append(("note", "\n".join(report.notes)))
    done, but = (
        ("installed and verified", "") if report.computed else ("installed", "; not verified: no kernel was computed")
    )
    head = f"{app} is {done} on {request.profile.name} ({receipt.platform}) in {report.seconds:.1f} s{but}"
    return f"\n{head}\n{_output.rows(pairs)}"


def _launchers(request: Request) -> str:
    """Name the file that starts the app by itself, and how the menu gets its entry."""
    lines = [str(_launcher.script(request))]
    if entry := _launcher.entry(request):
        lines.append(f"for the menu: install -Dm644 -t ~/.local/share/applications {shlex.quote(str(entry))}")
    return "\n".join(lines)


def _report(request: Request, receipt: Receipt, report: InstallResult | None = None) -> dict[str, object]:
    from patchlock.cli import _models
    from patchlock.cli._plan import outcome_data

    return {
        "changed": report is not None,
        "folder": str(request.installation.folder),
        "receipt": _receipt(receipt),
        "outcomes": [outcome_data(outcome) for outcome in report.outcomes] if report else [],
        "merged": list(report.merged) if report else [],
        "notes": list(report.notes) if report else [],
        "warnings": list(report.warnings) if report else [],
        "models": _models.summary_data(request),
        "seconds": round(report.seconds, 3) if report else 0.0,
    }


def _receipt(receipt: Receipt) -> dict[str, object]:
    return {field.name: getattr(receipt, field.name) for field in dataclasses.fields(receipt)} | {
        "environment": dict(receipt.environment),
        "patched": dict(receipt.patched),
        "overlays": dict(receipt.overlays),
        "present": dict(receipt.present),
        "checks": [dataclasses.asdict(check) for check in receipt.checks],
    }


@click.command("update")
@_options.installed
@_options.upstream
@_options.choice
@click.option("--abort", is_flag=True, help="Go back to the source as it was before an update that met conflicts.")
@_options.needs_option
@_options.no_device_option
@_options.edited_lock
@_options.common
def update_command(
    app: str,
    profile: str | None,
    source: str | None,
    revision: str | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    abort: bool,
    ignore_needs: bool,
    no_device: bool,
    accept_edited_lock: bool,
    local_addresses: bool,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Bring an installed app to what upstream's branch has now; your edits are kept.

    \b
    Example:
      patchlock update demo
      patchlock update demo --commit v2.0
    """
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.environments import generations
    from patchlock.model.app import EmbeddedUpstream
    from patchlock.operations import install, lifecycle

    choice = None if abort else Choice(added=added, left_out=left_out)
    request = _options.installed_request(catalogue, app, profile, source=source, revision=revision, choice=choice)
    progress = _output.progress(as_json)
    if abort:
        files = lifecycle.abort_update(request, progress)
        if as_json:
            _output.succeed("update", {"changed": bool(files), "restored": list(files)})
        else:
            click.echo(f"{len(files)} files are as they were" if files else "there is nothing to go back from")
        return 0
    generations.require_current(request.installation, app)
    request = dataclasses.replace(request, accept_edited_lock=accept_edited_lock, local_addresses=local_addresses)
    if revision is None and (source is not None or not isinstance(request.app.upstream, EmbeddedUpstream)):
        request = dataclasses.replace(request, revision=request.app.branch)
    report = install.install(request, progress, leave_conflicts=True, ignore_needs=ignore_needs, no_device=no_device)
    return _tell_installed(request, report, "update", as_json=as_json)


@click.command("rollback")
@_options.installed
@_options.common
def rollback_command(app: str, profile: str | None, catalogue: Path | None, as_json: bool) -> None:
    """Go back to the generation made before the one in use, environment and source together.

    \b
    Example:
      patchlock rollback demo
    """
    from patchlock.environments import generations
    from patchlock.model import lockfile
    from patchlock.operations import lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    left = generations.require_current(request.installation, app)
    receipt = lifecycle.rollback(request, _output.progress(as_json))
    if as_json:
        _output.succeed("rollback", {"receipt": _receipt(receipt)})
    else:
        click.echo(f"{app} is back at generation {receipt.id}, made {receipt.made}")
        if receipt.edited_lock:
            click.echo(f"note    the lock that it was installed from {lockfile.EDITED}")
        click.echo(f"forward again: {_launcher.own_command(_options.home())} {_forward(request, left, receipt)}")


def _forward(request: Request, left: Receipt, back: Receipt) -> str:
    """Write the command that makes a generation like the one that was left."""
    from patchlock.operations.install_plan import up_to_date

    pair = f"{request.app.name} --profile {request.profile.name}"
    if left.upstream not in {back.upstream, request.app.upstream.commit}:
        return f"update {pair}"
    return f"install {pair}" + (" --reinstall" if up_to_date(request) else "")
