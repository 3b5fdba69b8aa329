"""`plan`: what install would do."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _log, _models, _options, _output
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets
from patchlock.model.patch import NOTHING, WAITS, OutcomeKind
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.catalogue.optional_patches import Option
    from patchlock.environments.package_sizes import PackageSize
    from patchlock.hardware.memory_needs import MemoryVerdict
    from patchlock.hardware.profile_choice import ProfileChoice
    from patchlock.locks.lock_request import Request
    from patchlock.model.patch import Outcome
    from patchlock.operations.install_plan import Plan


@click.command("plan")
@_options.pair
@_options.upstream
@_options.choice
@_options.from_source
@click.option("--diff", "with_diff", is_flag=True, help="Show the diff of every patch, in a pager on a terminal.")
@_options.edited_lock
@_options.common
def plan_command(
    app: str,
    profile: str | None,
    source: str | None,
    revision: str | None,
    added: tuple[str, ...],
    left_out: tuple[str, ...],
    with_diff: bool,
    accept_edited_lock: bool,
    local_addresses: bool,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Show what install would do; change nothing.

    What you have to do by hand comes last, in order. For another machine, name its recording:
    PATCHLOCK_HOST=machine.json (`patchlock detect --json` writes one).

    \b
    Example:
      patchlock plan demo --profile cpu
      patchlock plan demo --diff
    """
    from patchlock.catalogue import optional_patches
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.cli import _profile_choice
    from patchlock.environments import generations
    from patchlock.hardware import on_paper
    from patchlock.model import overlays
    from patchlock.model.models import models_for
    from patchlock.operations import missing_imports, readiness
    from patchlock.operations.install_plan import plan, up_to_date
    from patchlock.patches import engine
    from patchlock.patches.outcomes import diff, idle_requirements, warnings

    def heed(found: ProfileChoice) -> None:
        _profile_choice.print_choice(found, as_json=as_json)

    choice = Choice(added=added, left_out=left_out)
    request = _options.request(catalogue, app, profile, source=source, revision=revision, heed=heed, choice=choice)
    request = dataclasses.replace(request, accept_edited_lock=accept_edited_lock, local_addresses=local_addresses)
    optional = optional_patches.of_profile(request.app, request.profile.name)
    made = plan(request)
    machine, simulated = request.machine, request.simulated
    installed = None if simulated else generations.current(request.installation)
    nothing = not simulated and up_to_date(request) is not None
    size = None if nothing else _size(made, request)
    ready = readiness.assess(request, made.lock, on_paper=simulated is not None, begins=not nothing, size=size)
    installation = request.installation.folder
    folder = on_paper.folder(simulated, installation.name) if simulated else str(installation)
    pair = f"{request.app.name} on {request.profile.name}"
    error = readiness.not_ready(request, ready) if ready.stops else engine.incomplete_error(made.patched, pair)
    told = [*([made.newer_files] if made.newer_files else []), *warnings(made.patched)]
    told += idle_requirements(made.app, made.commit, made.patched.outcomes)
    told += [] if nothing or simulated else _absent(made, request)
    if as_json:
        data = {
            "app": made.app.name,
            "profile": made.profile.name,
            "platform": made.platform.name,
            "python": str(made.profile.python),
            "commit": made.commit,
            "installed": installed.id if installed else None,
            "up_to_date": nothing,
            "edited_lock": not made.lock.is_intact,
            "outcomes": [outcome_data(outcome) for outcome in made.patched.outcomes],
            "failures": list(engine.required_failures(made.patched)),
            "warnings": told,
            "optional": [option_data(option, option.name in request.chosen) for option in optional],
            "packages": [
                {"name": p.name, "version": str(p.version), "sha256": p.sha256, "why": p.why}
                for p in made.lock.packages
            ],
            "download": {"bytes": size.bytes, "unknown_files": size.unknown} if size else None,
            "missing_imports": [
                {"module": one.module, "path": str(one.path), "line": one.line} for one in made.missing
            ],
            "overlays": [
                {"id": o.id, "url": o.url, "sha256": o.sha256 or None}
                for o in overlays.for_platform(made.profile.overlays, made.platform.name)
            ],
            "models": _models.summary_data(request, on_paper=simulated is not None),
            "machine": [_output.finding_data(finding) for finding in ready.findings],
            "memory": [memory_data(verdict) for verdict in ready.memory],
            "steps": list(ready.steps),
            "warnings_of_choice": [*machine.choice.doubts, *machine.choice.warnings] if machine else [],
            "folder": folder,
            "diff": diff(made.patched.changes),
        }
        return _output.succeed("plan", data, error)
    _output.echo(f"{made.app.name} on {made.profile.name} ({made.platform.name}): {made.app.title}")
    itself = "patchlock" if simulated else _launcher.own_command(_options.home())
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(ready.steps, 1))
    words = _words(made, request, left_out)
    elsewhere = "on that machine: " if machine and machine.observed.is_recorded else ""
    rows = [
        *_packages(made, request, is_done=nothing),
        *([("python", ready.says)] if ready.says and not Path(ready.python).is_absolute() else []),  # one to be fetched
        *([] if nothing else [("download", download_text(size))]),
        *_models.summary_row(request, on_paper=simulated is not None),
        *([("memory", "\n".join(map(str, ready.memory)))] if ready.memory else []),
        ("licence", _models.licences(made.app.license, models_for(made.app.models, made.profile.name))),
        ("folder", folder),
        *_patches(made, request, by_place=with_diff or _log.is_verbose(), is_done=nothing),
        *([("diff", f"{itself} plan {words} --diff")] if made.patched.changes and not with_diff else []),
        ("by hand", steps or "nothing"),
        ("install", "nothing to do" if nothing else f"{elsewhere}{itself} install {words}"),
    ]
    _output.echo(_output.rows(rows))
    for failure in engine.required_failures(made.patched):
        _output.echo(f"fails: {failure}", err=True)
    absent = (missing_imports.told(request, made.lock, made.missing),) if made.missing else ()
    _profile_choice.print_warnings(machine, as_json=as_json)
    for warning in (*told, *absent):
        _output.echo(f"warning: {warning}", err=True)
    for line in ready.missing:
        _output.echo(f"missing: {line}", err=True)
    for finding in ready.findings:
        if not finding.stops and finding.is_sure and str(finding) not in ready.steps:
            _output.echo(f"note: {finding}", err=True)
    if with_diff:
        _output.echo()
        _output.diff(diff(made.patched.changes))
    return 1 if error is not None else 0


def _patches(made: Plan, request: Request, *, by_place: bool, is_done: bool) -> list[tuple[str, str]]:
    from patchlock.catalogue import optional_patches

    chosen = request.chosen
    return [
        ("upstream", f"commit {made.commit[:12]}"),
        ("patches", (outcome_lines if by_place else outcome_counts)(made.patched.outcomes, is_done=is_done) or "none"),
        *(
            ("chosen" if option.name in chosen else "optional", option_line(option, option.name in chosen))
            for option in optional_patches.of_profile(made.app, made.profile.name)
        ),
    ]


def _packages(made: Plan, request: Request, *, is_done: bool) -> list[tuple[str, str]]:
    from patchlock.model import lockfile
    from patchlock.operations.install_plan import built_here

    built = () if is_done else built_here(request, made.lock)
    return [
        ("packages", f"{len(made.lock.packages)} with Python {made.profile.python}, each with its sha256"),
        *((("builds", f"{', '.join(built)}, from source on this machine; that may take minutes"),) if built else ()),
        *(() if made.lock.is_intact else (("lock", lockfile.EDITED),)),
        *(
            ("overlay", f"{o.filename}, {f'trusted at first use: {o.unpublished}' if o.unpublished else o.sha256}")
            for o in made.profile.overlays
            if made.platform.name in o.platforms
        ),
    ]


def _absent(made: Plan, request: Request) -> list[str]:
    """Say that an install would not find all packages, where the network is switched off."""
    from patchlock.core import uv
    from patchlock.environments import fill

    told = (
        "not all packages are on this machine, and UV_OFFLINE is set: install needs the network, a folder with them "
        "that UV_FIND_LINKS names, or a bundle (--from)"
    )
    return [told] if not uv.is_online() and fill.needs_network(made.lock, made.platform, request.cache) else []


def _size(made: Plan, request: Request) -> PackageSize | None:
    from patchlock.environments import package_sizes
    from patchlock.locks import lock_request

    pins = lock_request.build_pins(made.lock, request.build_path)
    return package_sizes.ask(made.lock, pins, made.lock_digest, made.platform, request.cache)


def download_text(size: PackageSize | None) -> str:
    """Say how much the packages are; what is in a cache already makes it less."""
    if size is None:
        return "size not known without the index"
    return f"{'' if size.unknown else 'up to '}{size}"


def _words(made: Plan, request: Request, left_out: tuple[str, ...]) -> str:
    """Write what `install`, or another `plan`, has to be told to do what was shown."""
    words = ["--profile", made.profile.name]
    words += ["--source", request.source] if request.source is not None else []
    words += ["--commit", request.revision] if request.revision is not None else []
    for option, names in (("--with", request.chosen), ("--without", left_out)):
        words += [word for name in names for word in (option, name)]
    words += [] if made.lock.is_intact else ["--accept-edited-lock"]
    words += ["--local-addresses"] if request.local_addresses else []
    words += _output.given("catalogue")
    return without_secrets(command_lines.joined([made.app.name, *words]))


def option_line(option: Option, chosen: bool) -> str:
    """Write an optional patch in one line, with how it is chosen."""
    return f"{option.name}: {option.gives} ({'--without' if chosen else '--with'} {option.name})"


def option_data(option: Option, chosen: bool) -> dict[str, object]:
    """Write an optional patch for JSON."""
    return {
        "name": option.name,
        "gives": option.gives,
        "helps": list(option.helps),
        "patches": list(option.patches),
        "chosen": chosen,
    }


def memory_data(verdict: MemoryVerdict) -> dict[str, object]:
    """Write what is taken of memory for JSON."""
    return {
        "for": verdict.need.what,
        "of": "device" if verdict.is_device else "machine",
        "bytes": verdict.takes,
        "has": verdict.has or None,
        "enough": verdict.is_enough,
        "source": verdict.need.source,
    }


def outcome_lines(outcomes: tuple[Outcome, ...], *, is_done: bool = False, is_own: bool = False) -> str:
    """Write outcomes in columns, one line for each patch and file.

    Args:
        outcomes: in order.
        is_done: the patches were applied just now.
        is_own: they are the user's own, which he wants in the tree.
    """
    from patchlock.patches import outcomes as patches_outcomes

    return _columns([(o.patch, _word(o, is_done, is_own), _where(o)) for o in patches_outcomes.shown(outcomes)])


def outcome_summary(outcomes: tuple[Outcome, ...], *, is_done: bool = False) -> str:
    """Write outcomes in one line for each patch, with how many files; what has not gone well keeps a line of its own.

    Args: as for `outcome_lines`.
    """
    from patchlock.patches import outcomes as patches_outcomes

    rows: dict[tuple[str, int], list[Outcome]] = {}
    for number, one in enumerate(patches_outcomes.shown(outcomes)):
        is_plain = one.kind in _PLAIN and one.path is not None
        rows.setdefault((one.patch, -1 if is_plain else number), []).append(one)
    lines = []
    for (patch, number), found in rows.items():
        if number >= 0:
            lines.append((patch, _word(found[0], is_done, False), _where(found[0])))
            continue
        words = collections.Counter(_word(one, is_done, False) for one in found)
        paths = {_word(one, is_done, False): visible_name(str(one.path)) for one in found}
        told = (f"{word} in {paths[word] if count == 1 else f'{count} files'}" for word, count in words.items())
        lines.append((patch, ", ".join(told), ""))
    return _columns(lines)


def outcome_counts(outcomes: tuple[Outcome, ...], *, is_done: bool = False) -> str:
    """Count patches in one line, by what is to be done; what has not gone well has a line of its own.

    Args: as for `outcome_lines`.
    """
    from patchlock.patches import outcomes as patches_outcomes

    shown = patches_outcomes.shown(outcomes)
    plain = [one for one in shown if one.kind in _PLAIN or (one.kind is OutcomeKind.GONE and not _where(one))]
    files = len({one.path for one in plain if one.kind in {OutcomeKind.NEEDED, OutcomeKind.PARTLY_FIXED}})
    changed = f"; {files} file{'s' if files > 1 else ''} {'changed' if is_done else 'to change'}" if files else ""
    whole = f"{patches_outcomes.counted(plain)}{changed}" if plain else ""
    rest = [(one.patch, _word(one, False, False), _where(one)) for one in shown if one not in plain]
    return "\n".join(filter(None, [whole, _columns(rest)]))


_PLAIN = frozenset({OutcomeKind.NEEDED, OutcomeKind.ALREADY_OURS, OutcomeKind.FIXED_UPSTREAM, OutcomeKind.PARTLY_FIXED})
"""Outcomes of which the number of files says enough."""


def _columns(rows: Sequence[tuple[str, str, str]]) -> str:
    """Write rows so that their places are one below the other; a word without a place does not widen its column."""
    first = max((len(row[0]) for row in rows), default=0)
    second = max((len(row[1]) for row in rows if row[2]), default=0)
    return "\n".join(f"{patch:<{first}}  {word:<{second}}  {place}".rstrip() for patch, word, place in rows)


def _word(outcome: Outcome, is_done: bool, is_own: bool) -> str:
    """Say what became of a patch: the outcome's name, but where the moment has a better word."""
    if outcome.kind is OutcomeKind.GONE and is_own:
        return "finds nothing"
    if outcome.kind is OutcomeKind.DRIFTED and outcome.detail.startswith(WAITS):
        return outcome.detail
    is_applied = is_done and outcome.kind in {OutcomeKind.NEEDED, OutcomeKind.PARTLY_FIXED}
    return "applied" if is_applied else outcome.kind.shown


def _where(outcome: Outcome) -> str:
    if outcome.detail.startswith(WAITS):
        return ""
    lines = ",".join(map(str, sorted({site.line for site in outcome.sites})))
    path = visible_name(str(outcome.path or ""))
    place = f"{path}:{lines}" if lines and path else path
    is_said = not outcome.detail or (outcome.kind is OutcomeKind.GONE and outcome.detail == NOTHING)
    return place if is_said else f"{place} ({outcome.detail})".lstrip()


def outcome_data(outcome: Outcome) -> dict[str, object]:
    """Write an outcome for JSON."""
    return {
        "patch": outcome.patch,
        "op": outcome.op,
        "outcome": outcome.kind.value,
        "path": str(outcome.path) if outcome.path else None,
        "sites": [dataclasses.asdict(site) for site in outcome.sites],
        "detail": outcome.detail,
    }
