"""`install`, `update`, `run` and `rollback`: what brings an installation about and uses it."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _launcher, _log, _options, _output, _progress
from patchlock.cli._paths import UserPath
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets

if TYPE_CHECKING:
    from patchlock.cli._bundle import OpenBundle
    from patchlock.environments.generations import Receipt
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import PatchlockError
    from patchlock.model.progress import Progress
    from patchlock.operations.fallback import NextRequest, Replacement
    from patchlock.operations.install import InstallResult

    _Updated = tuple[dict[str, object], PatchlockError | None]


@click.command("install")
@_options.pair
@_options.upstream
@_options.bundle
@_options.choice
@_options.from_source
@click.option("--reinstall", is_flag=True, help="Rebuild the environment even if nothing has changed.")
@click.option("--repair", is_flag=True, help="Check every file and repair damaged ones.")
@click.option(
    "--archive",
    "archives",
    multiple=True,
    type=UserPath(exists=True, dir_okay=False),
    help="Use this downloaded vendor archive (keep its original file name).",
)
@click.option(
    "--accept-changed",
    multiple=True,
    metavar="FILE",
    help="Accept this overlay archive although it has changed since first use.",
)
@click.option(
    "--fallback",
    is_flag=True,
    help="If the profile does not work on this machine, install the next one that does.",
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
    bundle: Path | None,
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
    """Patch an app, install it and check that it works.

    \b
    Example:
      patchlock install demo --profile cpu
      patchlock install tts-service --source ~/clones/second-brain
    """
    from patchlock.cli import _bundle

    opened = _bundle.open_bundle(bundle, app, profile, source, revision, fallback, repair)
    if opened is not None:
        opened.require_app(_options.checked_root(catalogue))
    is_plain = not (source or reinstall or repair or revision or archives or accept_changed)
    is_plain = is_plain and not (fallback or as_json or opened or _options.simulating())
    named = profile = opened.header.profile if opened else profile
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
            _tell_nothing_to_do(app, profile, *freshness.reservations(folder / "environments" / generation))
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
            heed=None if failed else lambda found: _profile_choice.confirm_choice(found, app, as_json=as_json),
            choice=Choice(added=added, left_out=left_out),
            failed=failed,
        )
        kept = made.kept
        if kept is not None and (named is None or failed):
            kept = dataclasses.replace(kept, profiles=stored_choice.digest(made.catalogue.root))
        return dataclasses.replace(
            made,
            kept=kept,
            revision=opened.revision(made) if opened else revision,
            archives=archives,
            accept_changed=accept_changed,
            accept_edited_lock=accept_edited_lock,
            local_addresses=local_addresses,
        )

    request = make(profile)
    if opened is not None:
        opened.require_lock(request)
    if repair:
        _repair(request, as_json)
        return 0
    has_failed = bool(stored_choice.read(request.installation.folder).instead)
    receipt = None if fallback or has_failed else up_to_date(request)
    _launcher.write(request.home)
    if receipt is not None:
        progress = _progress.progress(as_json)
        if opened is not None and opened.take(request, progress)[1]:
            _place_models(request, progress)
        if source is not None:
            from patchlock.worktree import upstream_cache

            upstream_cache.require_repository(source)
        _launcher.write_for(request)
        if named is None and request.kept is not None:
            stored_choice.write(request.installation.folder, request.kept)
        _require_whole(request.installation.environments / receipt.id, app, request.profile.name)
        if as_json:
            _output.succeed("install", _report(request, receipt))
        else:
            _tell_nothing_to_do(app, request.profile.name, receipt.edited_lock, receipt.unverified)
        return 0
    _confirm_source_builds(request, as_json=as_json)
    return _install(
        request,
        lambda failed: make(None, failed),
        bundle=opened,
        fallback=fallback,
        ignore_needs=ignore_needs,
        no_device=no_device,
        as_json=as_json,
    )


def _confirm_source_builds(request: Request, *, as_json: bool) -> None:
    """Name what is to be built from source and what that costs; on a terminal, ask.

    Raises:
        click.exceptions.Exit: a person says no.
    """
    from patchlock.environments.builds import from_source

    builds = from_source.chosen(request)
    for build in () if as_json else builds:
        click.echo(f"{build.option}: {build.told()}", err=True)
    if not builds or as_json or not _output.can_ask() or from_source.findings(request):
        return
    if not _output.agreed("Build it now?"):
        built = {build.option for build in builds}
        kept = [word for name in request.chosen if name not in built for word in ("--with", name)]
        left_out = [word for name in sorted(built) for word in ("--without", name)]
        given = _output.given("profile", "source", "commit", "without", "catalogue")
        words = command_lines.joined(["patchlock", "install", request.app.name, *given, *kept, *left_out])
        _output.leave(f"nothing was built, and nothing was touched; to use the wheel: {without_secrets(words)}")


def _install(
    request: Request,
    next_request: NextRequest,
    *,
    bundle: OpenBundle | None,
    fallback: bool,
    ignore_needs: bool,
    no_device: bool,
    as_json: bool,
) -> int:
    """Install; where that does not work on this machine, take the next profile that does, or say how to."""
    from patchlock.cli import _fallback
    from patchlock.operations import install

    progress = _progress.progress(as_json)
    has_models = False
    if bundle is not None:
        request, has_models = bundle.take(request, progress)

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
        if has_models:
            _place_models(request, progress)
    if other is not None:
        return _tell_installed(other.request, other.report, as_json=as_json, instead_of=other.failed)
    return _tell_installed(request, report, as_json=as_json)


def _place_models(request: Request, progress: Progress) -> None:
    """Put the models that came with a bundle to where the app looks for them."""
    from patchlock.operations import models

    models.fetch(request, progress)


def _tell_installed(
    request: Request,
    report: InstallResult,
    *,
    as_json: bool,
    instead_of: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Say what was installed, and give the exit code."""
    if report.was_done:
        _launcher.write_for(request)
        if as_json:
            return _output.succeed("install", _report(request, report.receipt, report))
        _tell_nothing_to_do(
            request.app.name, request.profile.name, report.receipt.edited_lock, report.receipt.unverified
        )
        return 0
    data = _finish(request, report, as_json=as_json, instead_of=instead_of)
    return _end("install", data, report.unproved, as_json=as_json)


def _finish(
    request: Request,
    report: InstallResult,
    *,
    as_json: bool,
    instead_of: Mapping[str, str] = MappingProxyType({}),
    is_new: bool = True,
) -> dict[str, object]:
    """Write the launchers, tell a person what was installed, and give what `--json` prints of it."""
    from patchlock.cli import _profile_choice

    _launcher.write_for(request)
    if not as_json:
        if is_new:
            _output.echo(_summary(request, report, tuple(instead_of)))
        else:
            _output.echo(f"{request.app.name} is up to date on {request.profile.name}: nothing newer was found")
        _profile_choice.print_warnings(request.machine, as_json=as_json)
    return _report(request, report.receipt, report) | {"instead_of": dict(instead_of)}


def _end(command: str, data: dict[str, object], error: PatchlockError | None, *, as_json: bool) -> int:
    if as_json:
        return _output.succeed(command, data, error)
    if error is not None:
        raise error
    return 0


def _remembered(app: str, catalogue: Path) -> str | None:
    """Name the profile that was chosen for an app and not named, while the profiles to choose from are the same."""
    home = _options.home()
    if not home.is_dir() or _options.simulating():
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


def _tell_nothing_to_do(app: str, profile: str, is_edited: bool, unverified: str) -> None:
    _output.echo(f"{app} is installed on {profile} and up to date: nothing to do")
    if unverified:
        _output.echo(f"note    {unverified}")
    if is_edited:
        from patchlock.model import lockfile

        _output.echo(f"note    the lock {lockfile.EDITED}")


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
            remedy=f"`patchlock install {app} --profile {profile} --repair` repairs exactly that",
            evidence=(f"{one.id}: {one.detail}" for one in wrong),
        )


def _repair(request: Request, as_json: bool) -> None:
    from patchlock.model.errors import UsageError
    from patchlock.operations import repair

    app = request.app.name
    if request.source is not None or request.revision is not None or request.reinstall:
        raise UsageError(
            "--repair cannot be combined with --source, --commit or --reinstall", remedy="give --repair alone"
        )
    progress = _progress.progress(as_json)
    done = repair.repair(request, progress, progress.transfer)
    if as_json:
        _output.succeed("install", repair.data(done))
        return
    if done.receipt is None:
        _output.echo(f"{app} is as it was installed: nothing to repair")
    else:
        _output.echo(f"{app} is repaired: version {done.receipt.id} is in use")
        for line in done.mended:
            _output.echo(f"  repaired  {line}")
    for note in done.notes:
        _output.echo(f"  note    {note}")
    if done.receipt is not None:
        _output.echo(f"undo: patchlock rollback {_options.pair_arguments(request)}")


def _summary(request: Request, report: InstallResult, instead_of: tuple[str, ...] = ()) -> str:
    from patchlock.cli import _models
    from patchlock.cli._plan import outcome_summary
    from patchlock.model import lockfile

    receipt, app, home = report.receipt, request.app.name, _options.home()
    itself, pair = _launcher.own_command(home), _options.pair_arguments(request)
    pairs = [
        ("upstream", f"commit {receipt.upstream[:12]}, patched as {receipt.applied[:12]}"),
        ("patches", outcome_summary(report.outcomes, is_done=True) or "none"),
        ("packages", f"{receipt.packages} with Python {receipt.python}, each with its sha256"),
        ("checked" if receipt.unverified else "verified", _checks(request, report)),
        ("folder", str(request.installation.source / request.app.directory)),
        *_models.summary_row(request),
        ("launcher", _launchers(request)),
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
    says = _launcher.to_paste(request.app.launch.says, home, ())
    pairs.append(("undo", f"{itself} {'rollback' if _has_earlier(request, receipt) else 'uninstall'} {pair}"))
    if not request.app.launch.is_placeholder:
        pairs.append(("run", f"{itself} run {pair}" + (f"\n{says}" if says else "")))
    but = [receipt.unverified] if receipt.unverified else []
    done = "installed" if but else "installed and verified"
    took = f"on {request.profile.name} ({receipt.platform}) in {report.seconds:.1f} s"
    head = "; ".join([f"{app} is {done} {took}", *but])
    if _log.is_quiet():
        return "\n".join([head, *(_output.rows([row]) for row in pairs if row[0] == "run")])
    return f"\n{head}\n{_output.rows(pairs)}"


def _checks(request: Request, report: InstallResult) -> str:
    """Say how many checks passed and what computed; each check where nothing did, or with --verbose."""
    from patchlock.cli import _log

    checks = report.receipt.checks
    if _log.is_verbose() or not report.computed:
        return "\n".join(f"{check.level:<8}  {check.id}: {check.detail}" for check in checks)
    kernels = "1 kernel" if report.computed == 1 else f"{report.computed} kernels"
    return f"{len(checks)} checks passed, {kernels} computed on {request.profile.computes_on}"


def _has_earlier(request: Request, receipt: Receipt) -> bool:
    from patchlock.environments import generations

    return any(one.sequence < receipt.sequence for one in generations.receipts(request.installation))


def _launchers(request: Request) -> str:
    """Name the file that starts the app by itself, and how the menu gets its entry."""
    lines = [str(_launcher.script(request))]
    if entry := _launcher.entry(request):
        lines.append(_menu_entry(request.platform.os, str(entry)))
    return "\n".join(lines)


def _menu_entry(system: str, path: str) -> str:
    match system:
        case "windows":
            return f'to add it to the Start menu:\n$ powershell -NoProfile -ExecutionPolicy Bypass -File "{path}"'
        case "macos":
            return f"for the Finder: {path}"
        case _:
            data = os.environ.get("XDG_DATA_HOME", "")
            menu = shlex.quote(f"{data}/applications") if Path(data).is_absolute() else "~/.local/share/applications"
            return f"to add it to the menu:\n$ install -Dm644 -t {menu} {shlex.quote(path)}"


def _report(request: Request, receipt: Receipt, report: InstallResult | None = None) -> dict[str, object]:
    from patchlock.cli import _models
    from patchlock.cli._plan import outcome_data

    return {
        "changed": report is not None and not report.was_done,
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
@click.argument("app", required=False, shell_complete=_complete.installed_apps)
@_options.installed_profile
@click.option("--all", "every", is_flag=True, help="Update every installed app, one after the other.")
@_options.upstream
@_options.bundle
@_options.choice
@click.option("--abort", is_flag=True, help="Undo an update that ended in conflicts.")
@_options.needs_option
@_options.no_device_option
@_options.edited_lock
@_options.common
def update_command(
    app: str | None,
    profile: str | None,
    every: bool,
    source: str | None,
    revision: str | None,
    bundle: Path | None,
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
    """Update an installed app; your edits are kept.

    \b
    Example:
      patchlock update demo
      patchlock update tts-service --commit main
      patchlock update --all
    """
    from patchlock.model.errors import UsageError

    if every == (app is not None):
        raise UsageError("say which app, or --all", remedy="see `patchlock status` for what is installed")
    if every and (profile or source or revision or bundle or added or left_out or abort):
        raise UsageError("--all cannot be combined with options for one app", remedy="name the app instead of --all")
    if os.environ.get("PATCHLOCK_HOST"):
        raise UsageError(
            "PATCHLOCK_HOST names another machine, and nothing is updated for one",
            remedy="to update on this machine, unset PATCHLOCK_HOST",
        )
    choice = (added, left_out)

    def update(app: str, profile: str | None) -> _Updated:
        return _update(
            app,
            profile,
            source=source,
            revision=revision,
            bundle=bundle,
            choice=choice,
            abort=abort,
            ignore_needs=ignore_needs,
            no_device=no_device,
            accept_edited_lock=accept_edited_lock,
            local_addresses=local_addresses,
            catalogue=catalogue,
            as_json=as_json,
        )

    return _end("update", *update(app, profile), as_json=as_json) if app else _update_all(update, as_json=as_json)


def _update_all(update: Callable[[str, str], _Updated], *, as_json: bool) -> int:
    """Update every installed app; one that fails, or was never finished, does not keep the others from it."""
    from patchlock.environments import generations, installed_profiles
    from patchlock.model.errors import PatchlockError, UpdateError

    failed: dict[str, PatchlockError] = {}
    told: list[dict[str, object]] = []
    data: object
    wrong: PatchlockError | None
    home = _options.home()
    pairs = [(app, one) for app, found in installed_profiles.by_app(home).items() for one in found]
    pairs += [(one.app, one.profile) for one in generations.unfinished(home)]
    for app, profile in sorted(pairs):
        if not as_json:
            _output.echo(f"\n{app} on {profile}")
        try:
            data, wrong = update(app, profile)
        except PatchlockError as error:
            data, wrong = None, error
        if wrong is not None:
            failed[f"{app} on {profile}"] = wrong
            if not as_json:
                _output.fail(wrong, "update", as_json=False)
        told.append({"app": app, "profile": profile, "data": data})
    wrong = None
    if failed:
        wrong = UpdateError(
            f"{len(failed)} of {len(pairs)} apps could not be updated: {', '.join(failed)}",
            remedy="see the message of each, and run `patchlock update APP`",
            evidence=(f"{name}: {one.what}" for name, one in failed.items()),
        )
    if as_json:
        return _output.succeed("update", {"apps": told}, wrong)
    if wrong is not None:
        raise wrong
    if not pairs:
        _output.echo("Nothing is installed.")
    return 0


def _update(
    app: str,
    profile: str | None,
    *,
    source: str | None,
    revision: str | None,
    bundle: Path | None,
    choice: tuple[tuple[str, ...], tuple[str, ...]],
    abort: bool,
    ignore_needs: bool,
    no_device: bool,
    accept_edited_lock: bool,
    local_addresses: bool,
    catalogue: Path | None,
    as_json: bool,
) -> _Updated:
    """Update one app: what `--json` prints of it, and what is wrong though it is installed; a person is told here."""
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.cli import _bundle
    from patchlock.model.app import EmbeddedUpstream
    from patchlock.operations import install, lifecycle

    opened = _bundle.open_bundle(bundle, app, profile, source, revision)
    profile = opened.header.profile if opened else profile
    chosen = None if abort else Choice(added=choice[0], left_out=choice[1])
    request = _options.installed_request(catalogue, app, profile, source=source, revision=revision, choice=chosen)
    progress = _progress.progress(as_json)
    if abort:
        was_begun = request.installation.journal.exists()
        files = lifecycle.abort_update(request, progress)
        if not as_json:
            what = "1 file is as it was" if len(files) == 1 else f"{len(files)} files are as they were"
            begun = "what was begun is undone; the app is as it was" if was_begun else "there is nothing to undo"
            _output.echo(what if files else begun)
        return {"changed": bool(files) or was_begun, "restored": list(files)}, None
    before = _options.require_current(request)
    request = dataclasses.replace(request, accept_edited_lock=accept_edited_lock, local_addresses=local_addresses)
    has_models = False
    if opened is not None:
        request, has_models = opened.take(request, progress)
        request = dataclasses.replace(request, revision=opened.revision(request))
    elif revision is None and (source is not None or not isinstance(request.app.upstream, EmbeddedUpstream)):
        request = dataclasses.replace(request, revision=request.app.branch)
    report = install.install(request, progress, leave_conflicts=True, ignore_needs=ignore_needs, no_device=no_device)
    if has_models:
        _place_models(request, progress)
    is_new = has_models or (report.receipt.id != before.id and not report.was_done)
    return _finish(request, report, as_json=as_json, is_new=is_new), report.unproved


@click.command("rollback")
@_options.installed
@_options.common
def rollback_command(app: str, profile: str | None, catalogue: Path | None, as_json: bool) -> None:
    """Go back to the previous version of an app.

    \b
    Example:
      patchlock rollback demo
    """
    from patchlock.model import lockfile
    from patchlock.operations import lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    left = _options.require_current(request)
    receipt = lifecycle.rollback(request, _progress.progress(as_json))
    if as_json:
        _output.succeed("rollback", {"receipt": _receipt(receipt)})
    else:
        _output.echo(f"{app} is back at version {receipt.id}, made {receipt.made}")
        if receipt.edited_lock:
            _output.echo(f"note    the lock that it was installed from {lockfile.EDITED}")
        _output.echo(f"forward again: patchlock {_forward(request, left, receipt)}")


def _forward(request: Request, left: Receipt, back: Receipt) -> str:
    """Write the command that makes a generation like the one that was left."""
    from patchlock.operations.install_plan import up_to_date

    pair = f"{request.app.name} --profile {request.profile.name}"
    pair += f" --source {command_lines.quoted(left.source)}" if left.source else ""
    if left.upstream not in {back.upstream, request.app.upstream.commit}:
        return f"update {pair} --commit {left.upstream[:12]}"
    return f"install {pair}" + (" --reinstall" if up_to_date(request) else "")
