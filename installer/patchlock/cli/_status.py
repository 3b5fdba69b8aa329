"""`status` and `outdated`: what is installed, how it stands, and what is newer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _log, _options, _output, _progress

if TYPE_CHECKING:
    from patchlock.environments.failed_verify import FailedVerify
    from patchlock.environments.generations import Receipt
    from patchlock.environments.installation_states import InstallationState


_UNLISTED = "this catalogue has no lock of it; if another one has, name that with --catalogue FOLDER"


@click.command("status")
@_options.common
def status_command(catalogue: Path | None, as_json: bool) -> None:
    """Show what is installed, interrupted, out of date or running.

    Works without a network; `patchlock outdated` also asks upstream for newer versions.

    \b
    Example:
      patchlock status
    """
    from patchlock.environments import installation_states
    from patchlock.model.errors import UsageError

    if _options.home().is_file():
        raise UsageError("PATCHLOCK_HOME is a file, and no folder", where=str(_options.home()), remedy="name a folder")
    root = _options.checked_root(catalogue)
    found = installation_states.states(_options.home(), root)
    if as_json:
        _output.succeed("status", {"home": str(_options.home()), "installed": [_data(one) for one in found]})
    elif not found:
        _output.echo(_nothing())
    else:
        _output.echo(_output.rows([(_name(one), _text(one, root, exact=_log.is_verbose())) for one in found], indent=0))


def _nothing() -> str:
    """Say how to begin, where anything runs."""
    from patchlock.hardware import host_overrides, probes, selection

    observed = host_overrides.observe(probes.basic)
    _output.report_overrides(observed)
    if reasons := tuple(selection.system_reasons(observed.host)):
        return f"Nothing is installed, and nothing can be: {', and '.join(reasons)}"
    return "Nothing is installed. Start with `patchlock list`, or `patchlock install demo`"


def _name(one: InstallationState) -> str:
    return f"{one.installation.app} on {one.installation.profile}"


def _text(one: InstallationState, root: Path, *, exact: bool) -> str:
    running = ["running"] if one.is_running else []
    told = _options.how_far(one.installation) if one.is_busy else _state(one, root)
    lines = ["; ".join([*running, told])]
    if one.failed_verify is not None:
        again = f"patchlock verify {one.installation.app} --profile {one.installation.profile}"
        lines.append(f"{failed(one.failed_verify)}; see whether it passes now with: {again}")
    return "\n".join([*lines, *(_generation(receipt, one, exact) for receipt in one.made)])


def line(one: InstallationState, root: Path) -> str:
    """Write an installation in one paragraph, for a report."""
    return f"{_name(one)}: {_text(one, root, exact=True)}"


def _state(one: InstallationState, root: Path) -> str:
    from patchlock.core import command_lines
    from patchlock.environments import installation_states
    from patchlock.environments.generations import Unfinished

    known = one.unfinished if one.state == "interrupted" else Unfinished(source=one.used.source if one.used else "")
    given = "".join(f" {command_lines.quoted(word)}" for word in _output.given("catalogue"))
    install = known.command(one.installation) + given
    match one.state:
        case "current" | "stale" if changed := installation_states.changed_inputs(one, root):
            verb = "has" if len(changed) == 1 else "have"
            lock = f"patchlock lock {one.installation.app} --profile {one.installation.profile}{given}"
            return f"{', '.join(changed)} {verb} changed since the catalogue's lock was made; lock again: {lock}"
        case "current":
            plain = Unfinished().command(one.installation) + given
            if pinned := installation_states.pinned_commit(one, root):
                return f"at another commit than the catalogue, which has {pinned[:12]}; get that with: {plain}"
            return "up to date with the catalogue"
        case "stale":
            return f"the catalogue has a newer lock; get it with: {install}"
        case "unlisted":
            return _UNLISTED
        case "interrupted":
            works = ", the version in use still works" if one.used else ""
            if known.failure:
                return f"failed{works}: {known.failure}. Correct the cause, then run: {install}"
            return f"interrupted{works}. Finish it with: {install}"
        case "removed":
            return f"uninstalled; your files are in {one.installation.source}"


def failed(found: FailedVerify) -> str:
    """Say in a clause when the last `verify` failed, and at which checks."""
    return f"the last verify failed on {_local(found.made)}: {', '.join(found.failed)}"


def _local(made: str) -> str:
    import datetime

    return f"{datetime.datetime.fromisoformat(made).astimezone():%Y-%m-%d %H:%M}"


def _generation(receipt: Receipt, one: InstallationState, exact: bool) -> str:
    chosen = "".join(f", with {name}" for name in receipt.chosen)
    chosen += ", from an edited lock" if receipt.edited_lock else ""
    used = ", in use" if len(one.made) > 1 and receipt == one.used else ""
    made = f"{receipt.id}, made {receipt.made}" if exact else f"installed {_local(receipt.made)}"
    unverified = f"\n{receipt.unverified}" if receipt.unverified else ""
    return f"{made}, upstream {receipt.upstream[:12]}{chosen}{used}{unverified}"


def _data(one: InstallationState) -> dict[str, object]:
    return {
        "app": one.installation.app,
        "profile": one.installation.profile,
        "folder": str(one.installation.folder),
        "state": one.state,
        "running": one.is_running,
        "busy": one.is_busy,
        "failure": one.unfinished.failure,
        "generations": [
            {
                "id": receipt.id,
                "made": receipt.made,
                "upstream": receipt.upstream,
                "chosen": list(receipt.chosen),
                "unverified": receipt.unverified,
                "in_use": receipt == one.used,
            }
            for receipt in one.made
        ],
        "failed_verify": _failed_data(one.failed_verify) if one.failed_verify else None,
    }


def _failed_data(found: FailedVerify) -> dict[str, object]:
    checks = [{"id": name, "detail": detail} for name, detail in found.failed.items()]
    return {"made": found.made, "depth": found.depth, "checks": checks}


@click.command("outdated")
@_options.common
def outdated_command(catalogue: Path | None, as_json: bool) -> int:
    """Show which installed apps have something newer.

    Ends with 3 if an upstream could not be asked.

    \b
    Example:
      patchlock outdated
      patchlock update --all
    """
    from patchlock.model.errors import EXIT_NOT_CHECKED, NotCheckedError
    from patchlock.operations import outdated

    progress = _progress.progress(as_json)
    with progress.stage("upstream"):
        found = outdated.look(_options.home(), _options.checked_root(catalogue), progress.say)
        old = [one for one in found if one.is_outdated]
        unknown = [f"{_name(one.state)}: {one.failure}" for one in found if one.failure]
        progress.say(
            f"{len(found)} installed, {len(old)} out of date" + (f", {len(unknown)} not known" if unknown else "")
        )
    if as_json:
        data = [
            {
                "app": one.state.installation.app,
                "profile": one.state.installation.profile,
                "installed": one.state.used.upstream if one.state.used else None,
                "upstream": one.upstream or None,
                "newer_lock": one.state.state == "stale",
                "failure": one.failure or None,
            }
            for one in found
        ]
        error = NotCheckedError(
            "an upstream could not be asked, so whether it is newer is not known",
            remedy="check the connection, then run the same command again",
            evidence=unknown,
        )
        return _output.succeed("outdated", {"installed": data}, error if unknown else None)
    rows = []
    for one in found:
        pair = f"{one.state.installation.app} --profile {one.state.installation.profile}"
        lines = [f"not known: {one.failure}"] if one.failure else []
        if one.state.state == "stale":
            lines.append(f"the catalogue has a newer lock: patchlock install {pair}")
        if one.state.state == "unlisted" and not one.failure:
            lines.append(_UNLISTED)
        if one.upstream and one.state.used:
            commits = f"{one.state.used.upstream[:12]} -> {one.upstream[:12]}"
            lines.append(f"upstream's {one.branch} has moved, {commits}: patchlock update {pair}")
        if lines:
            rows.append((_name(one.state), "\n".join(lines)))
    nothing = "Everything is up to date." if found else "Nothing is installed."
    _output.echo(_output.rows(rows, indent=0) if rows else nothing)
    return EXIT_NOT_CHECKED if unknown else 0
