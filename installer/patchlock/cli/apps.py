"""`list` and `plan`: what there is, and what install would do."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import launcher, options, output

if TYPE_CHECKING:
    from patchlock.catalogue import Catalogue
    from patchlock.generations import Installation, Receipt
    from patchlock.model import App, Outcome, Platform, Profile
    from patchlock.planning import Plan


@click.command("list")
@options.common
def list_command(catalogue: Path | None, as_json: bool) -> None:
    """Show the apps, the profiles, and which pairs are locked.

    \b
    Example:
      patchlock list
    """
    opened = options.open_catalogue(catalogue)
    apps, profiles = opened.read_all()
    states = [
        (app, profile, platform, _state(opened, app, profile, platform))
        for app in apps
        for profile in profiles
        for platform in profile.platforms
    ]
    if as_json:
        data = {
            "apps": [{"name": a.name, "title": a.title, "license": a.license, "source": a.source} for a in apps],
            "profiles": [{"name": p.name, "title": p.title, "python": str(p.python)} for p in profiles],
            "pairs": [
                {"app": a.name, "profile": p.name, "platform": t.name, "state": state, "why": why}
                for a, p, t, (state, why) in states
            ],
            "installed": [
                {
                    "app": one.app,
                    "profile": one.profile,
                    "generations": [
                        {"id": r.id, "made": r.made, "upstream": r.upstream, "in_use": r == used} for r in made
                    ],
                }
                for one, used, made in _installed()
            ],
        }
        output.succeed("list", data)
        return
    click.echo("Apps")
    click.echo(output.rows([(app.name, app.title) for app in apps]))
    click.echo("\nProfiles")
    click.echo(output.rows([(profile.name, profile.title) for profile in profiles]))
    if rows := [
        (f"{one.app} × {one.profile}", "\n".join(_generation(receipt, receipt == used) for receipt in made))
        for one, used, made in _installed()
    ]:
        click.echo("\nInstalled")
        click.echo(output.rows(rows))
    click.echo("\nLocks")
    click.echo(
        output.rows([(f"{a.name} × {p.name} × {t.name}", f"{s}: {w}" if w else s) for a, p, t, (s, w) in states])
    )


def _installed() -> list[tuple[Installation, Receipt | None, tuple[Receipt, ...]]]:
    """List what is installed: the generation in use, and all of them, the newest first."""
    from patchlock import generations

    there = generations.installations(options.home())
    return [(one, generations.current(one), made) for one in there if (made := generations.receipts(one))]


def _generation(receipt: Receipt, is_used: bool) -> str:
    return f"{receipt.id}, made {receipt.made}, upstream {receipt.upstream[:12]}{', in use' if is_used else ''}"


def _state(catalogue: Catalogue, app: App, profile: Profile, platform: Platform) -> tuple[str, str]:
    for refused in app.refusals:
        if refused.profile == profile.name and (not refused.platforms or platform.name in refused.platforms):
            return "refused", refused.why
    if catalogue.lock_path(app, profile, platform).is_file():
        return "locked", ""
    return "not locked", f"patchlock lock {app.name} --profile {profile.name}"


@click.command("plan")
@options.pair
@options.upstream
@options.common
def plan_command(
    app: str, profile: str | None, source: str | None, revision: str | None, catalogue: Path | None, as_json: bool
) -> int:
    """Show what install would do, with the diff of every patch; change nothing.

    \b
    Example:
      patchlock plan demo --profile cpu
    """
    from patchlock import gathering, generations, overlays, planning, readiness
    from patchlock.model import BLOCKING

    request = options.request(catalogue, app, profile, source=source, revision=revision)
    made = gathering.plan(request)
    installed = generations.current(request.installation)
    nothing = gathering.up_to_date(request) is not None
    ready = readiness.look(request, made.lock)
    blocked = bool(ready.stops) or bool(made.patched.failures) or any(o.kind in BLOCKING for o in made.patched.outcomes)
    if as_json:
        data = {
            "app": made.app.name,
            "profile": made.profile.name,
            "platform": made.platform.name,
            "python": str(made.profile.python),
            "commit": made.commit,
            "installed": installed.id if installed else None,
            "up_to_date": nothing,
            "outcomes": [outcome_data(outcome) for outcome in made.patched.outcomes],
            "failures": list(made.patched.failures),
            "packages": [
                {"name": p.name, "version": str(p.version), "sha256": p.sha256, "why": p.why}
                for p in made.lock.packages
            ],
            "overlays": [
                {"id": o.id, "url": o.url, "sha256": o.sha256 or None}
                for o in overlays.on(made.profile.overlays, made.platform.name)
            ],
            "machine": [output.finding_data(finding) for finding in ready.findings],
            "folder": str(request.installation.folder),
            "diff": planning.diff(made.patched.changes),
        }
        output.succeed("plan", data, ok=not blocked)
    else:
        click.echo(planning.diff(made.patched.changes), nl=False)
        click.echo(f"\n{made.app.name} on {made.profile.name} ({made.platform.name}): {made.app.title}")
        click.echo(
            output.rows(_summary(made, str(request.installation.folder), nothing, launcher.itself(options.home())))
        )
        for failure in made.patched.failures:
            click.echo(f"does not hold: {failure}", err=True)
        for finding in ready.stops:
            click.echo(f"missing: {finding}", err=True)
        if len(ready.stops) > 1 and ready.commands:
            click.echo(f"missing: all at once: {' && '.join(ready.commands)}", err=True)
        for note in ready.notes:
            click.echo(f"note: {note}", err=True)
    return 1 if blocked else 0


def _summary(made: Plan, folder: str, nothing: bool, itself: str) -> list[tuple[str, str]]:
    return [
        ("upstream", f"commit {made.commit[:12]}"),
        ("patches", outcome_lines(made.patched.outcomes) or "none"),
        ("packages", f"{len(made.lock.packages)} with Python {made.profile.python}, each with its sha256"),
        *(
            ("overlay", f"{o.filename}, {f'trusted at first use: {o.unpublished}' if o.unpublished else o.sha256}")
            for o in made.profile.overlays
            if made.platform.name in o.platforms
        ),
        ("folder", folder),
        ("install", "nothing to do" if nothing else f"{itself} install {made.app.name} --profile {made.profile.name}"),
    ]


def outcome_lines(outcomes: tuple[Outcome, ...]) -> str:
    """Write outcomes in columns, one line each."""
    width = max((len(o.patch) for o in outcomes), default=0)
    kinds = max((len(o.kind.value) for o in outcomes), default=0)
    return "\n".join(
        f"{o.patch:<{width}}  {o.kind.value:<{kinds}}  {_place(o)}{f' ({o.detail})' if o.detail else ''}".rstrip()
        for o in outcomes
    )


def _place(outcome: Outcome) -> str:
    lines = ",".join(str(site.line) for site in outcome.sites)
    return f"{outcome.path}:{lines}" if lines and outcome.path else str(outcome.path or "")


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
