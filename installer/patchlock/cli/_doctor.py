"""`doctor`: which known troubles this machine shows, what cures them, and what to send where none is known."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import click

from patchlock.cli import _complete, _launcher, _options, _output
from patchlock.core import command_lines
from patchlock.environments import installed

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchlock.catalogue.reader import Catalogue
    from patchlock.hardware.doctor import Finding
    from patchlock.hardware.report import HostReport
    from patchlock.model.errors import BusyError, NotInstalledError, PatchlockError
    from patchlock.model.hosts import Recording
    from patchlock.model.profile import Profile
    from patchlock.model.troubles import Remedy, Shell

_LINES, _LETTERS = 5_000, 1_000
"""So many different lines of a log are kept whatever they say, the last ones; a longer line is cut into pieces."""


@click.command("doctor")
@click.argument("app", required=False, shell_complete=_complete.apps)
@click.option(
    "--profile",
    metavar="PROFILE",
    shell_complete=_complete.profiles,
    help="Kind of machine to look at (default: the one that APP is installed on, or that fits best).",
)
@click.option("--says", multiple=True, metavar="TEXT", help="What a program printed when it failed; can be repeated.")
@click.option(
    "--says-file",
    type=click.File("rb"),
    metavar="FILE",
    help="A log file to search; - reads standard input.",
)
@_options.common
def doctor_command(
    app: str | None,
    profile: str | None,
    says: tuple[str, ...],
    says_file: IO[bytes] | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Find known problems of this machine, and their fixes.

    Changes nothing. Says what the machine lacks, too: for the profile that fits it, or PROFILE; for an APP, also what
    that needs and what is wrong with its packages.

    \b
    Example:
      patchlock doctor
      patchlock doctor --profile zluda-rdna4
      patchlock doctor demo --says "CUDA failure 500: named symbol not found"
      patchlock run demo 2>&1 | patchlock doctor demo --says-file -
    """
    from patchlock.environments import venv
    from patchlock.hardware import doctor, on_paper, report, system
    from patchlock.model import hosts
    from patchlock.model.errors import TroubleError
    from patchlock.model.troubles import CONFIDENCES

    opened = _options.open_catalogue(catalogue)
    lines = _lines(io.StringIO("\n".join(says)), lambda _: False)
    if says_file is not None:
        with _decoded(says_file) as log:
            lines += _lines(log, doctor.tells(opened.troubles()))
    environment, missing = _environment(opened, app, profile) if app is not None else (None, None)
    missing = None if lines else missing  # a message is looked at all the same
    observed = _options.observe(opened.root)
    look = report.build_report(opened.root, observed, profile)
    notes = look.choice.notes if profile and look.choice else ()
    unused = (*look.doubts, *look.warnings, *notes, *filter(None, [look.refusal]))
    recording = _recording(observed.recording, environment, tuple(lines))
    cards = opened.cards() if recording.host.devices else ()
    installer = on_paper.system(observed.host) if observed.overrides else system.system()
    packages = recording.packages or (_pins(opened.profile(profile)) if profile else {})
    known = doctor.diagnose(
        dataclasses.replace(recording, packages=packages),
        cards,
        opened.troubles(),
        opened.rules().families,
        is_planned=not recording.packages,
    )
    if profile is None:
        known += doctor.old_versions(look.ranking, look.choice, observed.host, opened.resource, installer)
    lacking = doctor.not_told(_lacking(opened, app, profile, look), known)
    findings: tuple[Finding, ...] = (*_failed_verifies(app, profile), *lacking, *known)
    findings = tuple(sorted(findings, key=lambda one: -CONFIDENCES.index(one.confidence)))
    python = str(venv.interpreter(environment)) if environment is not None else ""
    named = " ".join([app or "APP", *(["--profile", profile] if profile else [])])
    certain = [finding for finding in findings if finding.confidence == "certain"]
    if as_json:
        told = [_told(finding, named, python) for finding in findings]
        error: PatchlockError | None = missing
        if certain:
            error = TroubleError(
                f"a known trouble, for certain: {'; '.join(finding.title for finding in certain)}",
                remedy="run the commands of its remedies in `data`, then the same command again",
                evidence=(line for finding in certain for line in finding.evidence),
            )
        return _output.succeed(
            "doctor", {"findings": told, "unused": list(unused), "recording": hosts.to_json(recording)}, error
        )
    is_unknown = bool(lines) and not any(finding.is_said for finding in findings)
    if is_unknown and findings:
        _output.echo(f"{_UNKNOWN}. This was found on this machine:\n")
    for finding in findings:
        has_prompt = observed.host.os != "windows"
        _output.echo(_text(finding, named, python) + "\n", has_prompt=has_prompt)
    if unused:
        _output.echo(_output.warnings(unused) + ("" if look.refusal and not findings else "\n"))
    if missing is not None:
        raise missing
    if findings or lines or not look.refusal:
        _output.echo(_summary(findings, app, profile, is_unknown=is_unknown))
    return 1 if certain else 0


def _pins(profile: Profile) -> dict[str, str]:
    """Name the versions that every environment of a profile will have: what troubles its packages would meet."""
    bounds = [(one.requirement.name, spec) for one in profile.rules.constraints for spec in one.requirement.specifier]
    return {name: spec.version for name, spec in bounds if spec.operator == "=="}


def _lacking(opened: Catalogue, app: str | None, profile: str | None, look: HostReport) -> tuple[Finding, ...]:
    """Find what the machine lacks for the profile that was named, that an app has, or that an install would take."""
    from patchlock.hardware import doctor
    from patchlock.hardware.profile_choice import ProfileChoice
    from patchlock.model.errors import NoProfileFitsError
    from patchlock.operations import readiness

    wanted = opened.app(app) if app in opened.app_names() else None
    seen, choice = look.observed, look.choice
    machine = ProfileChoice(choice=choice, observed=seen, selected=look.selected) if choice is not None else None
    if wanted is not None and profile is None:
        there = [name for name in _options.profiles_of(wanted.name) if name in opened.profile_names()]
        try:
            machine = _options.possible(opened, wanted, there[0] if there else None, seen, {})
        except NoProfileFitsError:
            return ()
    if machine is None:
        return ()
    name = machine.choice.chosen.profile.name
    lacks = readiness.lacks(opened, opened.profile(name), wanted, machine, _options.home(), _options.cache())
    pair, proof = f"{app} on {name}" if app else name, f"plan {app}" if app else "doctor"
    return doctor.lacking(lacks, pair, f"patchlock {proof} --profile {name}", seen.host)


def _failed_verifies(app: str | None, profile: str | None) -> list[Finding]:
    """Find the installations of which the last `verify` failed."""
    from patchlock.cli import _status
    from patchlock.environments import failed_verify, generations
    from patchlock.hardware import doctor

    found = []
    for one in generations.installations(_options.home()):
        used = generations.current(one) if app in {None, one.app} and profile in {None, one.profile} else None
        last = failed_verify.read(generations.generation(one, used.id)) if used is not None else None
        if last is not None:
            found.append(
                doctor.certain(
                    "verify-failed",
                    f"{one.app} on {one.profile}: {_status.failed(last)}",
                    "No verify has passed since, so the app may not work as it should.",
                    tuple(f"{check}: {detail}" for check, detail in last.failed.items()),
                    do="Verify it again: that names the command that fixes what still fails.",
                    proof=f"patchlock verify {one.app} --profile {one.profile}",
                    shell="powershell" if sys.platform == "win32" else "sh",
                )
            )
    return found


def _decoded(log: IO[bytes]) -> TextIO:
    """Read a log, also as PowerShell's `>` writes it: UTF-16."""
    buffered = io.BufferedReader(log)  # type: ignore[type-var]  # what click gives for a pipe has its methods
    is_wide = buffered.peek(2)[:2] in {b"\xff\xfe", b"\xfe\xff"}
    return io.TextIOWrapper(buffered, encoding="utf-16" if is_wide else "utf-8-sig", errors="replace")


def _lines(log: TextIO, tells: Callable[[str], bool]) -> list[str]:
    """Read what was printed, however long it is: each line once, of the earlier ones those that tell something.

    The home folder, which names the user, is written `~`.

    Args:
        log: lines; a longer one is read in pieces.
        tells: whether a line is kept although many come after it.
    """
    home = str(Path.home())
    told: dict[str, None] = {}
    last: dict[str, None] = {}
    while piece := log.readline(_LETTERS):
        if not (line := piece.rstrip("\r\n").replace(home, "~")).strip():
            continue
        last.pop(line, None)
        last[line] = None
        if len(last) > _LINES:
            first = next(iter(last))
            del last[first]
            if len(told) < _LINES and tells(first):
                told[first] = None
    return [*(line for line in told if line not in last), *last]


def _environment(
    opened: Catalogue, app: str, profile: str | None
) -> tuple[Path, None] | tuple[None, BusyError | NotInstalledError]:
    """Find the environment of an app; else say why there is none."""
    from patchlock.environments import generations
    from patchlock.model.errors import BusyError, NotInstalledError
    from patchlock.model.installation import Installation

    names = [profile] if profile else _options.profiles_of(app) or _begun(app)
    if len(names) > 1:
        raise _options.several(app, names)
    if not names:
        opened.app(app)  # which names the nearest one, if there is none of that name
        remedy = f"`patchlock plan {app}` says what this machine lacks for it"
        if not os.environ.get("PATCHLOCK_HOST"):
            remedy += f", `patchlock install {app}` installs it"
        return None, NotInstalledError(f"{app} is not installed", remedy=remedy)
    installation = Installation(folder=_options.home() / f"{app}@{names[0]}")
    try:
        return generations.generation(installation, generations.require_current(installation, app).id), None
    except (BusyError, NotInstalledError) as error:
        opened.app(app)
        return None, error


def _begun(app: str) -> list[str]:
    """Name a profile on which an install of an app was begun and not finished."""
    from patchlock.environments import generations

    there = generations.installations(_options.home())
    return [one.profile for one in there if one.app == app and one.journal.is_file()][:1]


def _recording(seen: Recording, environment: Path | None, says: tuple[str, ...]) -> Recording:
    packages = installed.installed_versions(environment) if environment is not None else {}
    return dataclasses.replace(seen, packages={**seen.packages, **packages}, says=(*seen.says, *says))


def _pasted(command: str, shell: Shell, app: str, python: str) -> str:
    """Put the app and its Python into a command, as its shell writes them; without that, let `verify` ask it."""
    if "--profile" in command:
        app = app.partition(" ")[0]
    if not python and "{python}" in command:
        return f"patchlock verify {app}"
    program = command_lines.program(python, windows=shell == "powershell")
    return command.replace("{python}", program).replace("{app}", app)


def _pair(remedy: Remedy, app: str) -> str:
    """Leave the profile out that was named, if the remedy has another one chosen."""
    return app.partition(" ")[0] if any("patchlock plan" in command for command in remedy.commands) else app


def _told(finding: Finding, app: str, python: str) -> dict[str, object]:
    """Write a finding as JSON's values."""
    remedies = [
        {
            "do": remedy.do,
            "shell": remedy.shell,
            "commands": [_pasted(command, remedy.shell, _pair(remedy, app), python) for command in remedy.commands],
            "needs": list(remedy.needs),
            "proof": _pasted(remedy.proof, remedy.proof_shell, _pair(remedy, app), python),
            "proof_shell": remedy.proof_shell,
        }
        for remedy in finding.remedies
    ]
    values = {field.name: getattr(finding, field.name) for field in dataclasses.fields(finding)}
    return values | {"remedies": remedies}


_SHELLS = {"sh": "terminal", "powershell": "PowerShell on Windows"}


def _text(finding: Finding, app: str, python: str) -> str:
    why = finding.why.strip()
    rows = [("why", " ".join(why.split()) if _output.is_terminal(sys.stdout) else why)] if why else []
    if finding.evidence:
        rows.append(("seen", "\n".join(finding.evidence)))
    for remedy in finding.remedies:
        rows += _remedy(remedy, app, python)
    if finding.sources:
        rows.append(("source", "\n".join(finding.sources)))
    return f"{finding.confidence}: {finding.title} [{finding.name}]\n{_output.rows(rows)}"


def _remedy(remedy: Remedy, app: str, python: str) -> list[tuple[str, str]]:
    from patchlock.model.troubles import NEEDS

    app = _pair(remedy, app)
    commands = [f"$ {_pasted(command, remedy.shell, app, python)}" for command in remedy.commands]
    proof = f"$ {_pasted(remedy.proof, remedy.proof_shell, app, python)}"
    elsewhere = remedy.shell == "powershell" and sys.platform != "win32"
    where = [f"In {_SHELLS[remedy.shell]}:"] if elsewhere and commands else []
    needs = ", ".join(NEEDS[need] for need in remedy.needs)
    return [("do", "\n".join([remedy.do, *where, *commands])), *([("needs", needs)] if needs else []), ("proof", proof)]


_UNKNOWN = "No known problem is behind that message"


def _summary(findings: tuple[Finding, ...], app: str | None, profile: str | None, *, is_unknown: bool) -> str:
    named = "".join([f" {app}" if app else "", f" --profile {profile}" if profile else ""])
    itself = _launcher.own_command(_options.home())
    file = "one file for a bug report, with facts about this machine and the last errors, but no names"
    report = f"{file}:\n  {itself} report"
    if findings:
        sure = sum(finding.confidence == "certain" for finding in findings)
        others = len(findings) - sure
        numbers = ", ".join([f"{sure} certain"] * bool(sure) + [f"{others} likely or possible"] * bool(others))
        again = f"{numbers}; run `patchlock doctor{named}` again after each fix"
        return f"{again}\nIf the message stays, write {report}" if is_unknown else again
    if is_unknown:
        return f"{_UNKNOWN}, and none was found on this machine.\nWrite {report}"
    return (
        "No known problem found.\n"
        f'If something does not work, give what it printed to\n  {itself} doctor{named} --says "THE ERROR"\n'
        f"or write {report}"
    )
