"""`list`: which apps there are, on which kinds of machine they are locked, and where they are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output
from patchlock.core import command_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from patchlock.catalogue.app_summaries import AppSummary
    from patchlock.catalogue.pair_table import PairState
    from patchlock.catalogue.proofs import Proof
    from patchlock.environments.installation_states import InstallationState
    from patchlock.model.fits import ProfileSummary

_SHORTEST = 20
"""Columns that what an app is for takes at least, its first word or two; a terminal with fewer does not show it."""


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Show every app on every profile, and why not.")
@click.option("--markdown", is_flag=True, help="The matrix and its reasons, as the documentation has them.")
@_options.common
def list_command(everything: bool, markdown: bool, catalogue: Path | None, as_json: bool) -> None:
    """Show the apps, the profiles they support, and what is installed.

    \b
    Example:
      patchlock list
      patchlock list --all
    """
    from patchlock.catalogue import app_summaries, pair_table, profile_summaries

    root = _options.checked_root(catalogue)
    apps = app_summaries.read_summaries(root, brief=not (as_json or markdown or everything))
    profiles = profile_summaries.read_summaries(root)
    found = pair_table.pair_states(apps, profiles, app_summaries.is_locked(root, profiles))
    if as_json:
        from patchlock.catalogue import proofs

        _output.succeed("list", _data(apps, profiles, found, proofs.read(root)))
    elif markdown:
        _output.file_text(pair_table.markdown(found))
    elif everything:
        _output.echo(_matrix(apps, profiles, found, root))
    else:
        _output.echo(_overview(apps, profiles, found, root))


def _overview(
    apps: tuple[AppSummary, ...],
    profiles: tuple[ProfileSummary, ...],
    found: tuple[PairState, ...],
    root: Path,
) -> str:
    installed = standing(root)
    rows = [("App", "Profiles", *(("Installed",) if installed else ()), "")]
    for app in apps:
        there = {one.profile for one in found if one.app == app.name and one.state == "locked"}
        title = app.title[:1].upper() + app.title[1:]
        on = (profiles_text(installed.get(app.name, ())) or "-",) if installed else ()
        rows.append((app.name, f"{len(there)} of {len(profiles)}", *on, title))
    names = _columns([row[:-1] for row in rows])
    has_room = _output.fits("\n".join(f"{name}{' ' * _SHORTEST}" for name in names))
    lines = [_output.cut(line) for line in _columns(rows)] if has_room else names
    lines += ["", _output.sentences([f"Profiles (kinds of machine): {', '.join(one.name for one in profiles)}"], 0)]
    more = (
        "More: `patchlock` (what runs on this machine), `patchlock info APP`, `patchlock list --all` (apps by machine)"
    )
    lines += ["", _output.sentences([more], 0)]
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def standing(root: Path) -> dict[str, list[InstallationState]]:
    """Find the installations of each app, also those whose install has not finished.

    Args:
        root: the catalogue's.
    """
    home = _options.home()
    found: dict[str, list[InstallationState]] = {}
    if not any(home.glob("*@*")):
        return found
    from patchlock.environments import installation_states  # which takes longer than the rest of a table

    for one in installation_states.states(home, root):
        if one.state != "removed":
            found.setdefault(one.installation.app, []).append(one)
    return found


def how_unfinished(one: InstallationState) -> str:
    """Say that an install has not finished, as `how_far` does; "" where it has."""
    return _options.how_far(one.installation) if one.is_busy or one.state == "interrupted" else ""


def profiles_text(found: Iterable[InstallationState]) -> str:
    """Name the profiles of installations, what has not finished, and what is not verified; "" for none."""
    told = []
    for one in found:
        word = how_unfinished(one) or ("not verified" if one.used is not None and one.used.unverified else "")
        told.append(one.installation.profile + (f" ({word})" if word else ""))
    return ", ".join(told)


def _matrix(
    apps: tuple[AppSummary, ...], profiles: tuple[ProfileSummary, ...], found: tuple[PairState, ...], root: Path
) -> str:
    from patchlock.catalogue import pair_table

    parts = [
        "Apps",
        _output.rows([(app.name, app.title) for app in apps]),
        "\nProfiles",
        _output.rows([(profile.name, title(profile)) for profile in profiles]),
        "\nLocks",
        locks(found),
        _output.sentences([pair_table.LEGEND]),
    ]
    if told := proved(found, root):
        parts += ["\nProved on real machines", _output.rows(told), legend()]
    return "\n".join([*parts, *refused(found), *missing(found)])


def locks(found: tuple[PairState, ...]) -> str:
    """Lay out the matrix; on a terminal that is too narrow for it, each profile names the apps in each state."""
    from patchlock.catalogue import pair_table

    matrix = pair_table.text(found)
    if _output.fits(matrix):
        return matrix
    head, *body = pair_table.rows(found)
    told = []
    for profile, *cells in body:
        apps = {state: [app for app, cell in zip(head[1:], cells, strict=True) if cell == state] for state in cells}
        told.append((profile, "\n".join(f"{state}: {', '.join(names)}" for state, names in sorted(apps.items()))))
    return _output.rows(told)


_PROOF_PAGE = "https://patchlock.github.io/patchlock/glossary/#proof"


def legend() -> str:
    """Say what the words of `proved` mean."""
    from patchlock.catalogue import proofs

    return _output.sentences([proofs.LEGEND, f"  {_PROOF_PAGE}"])


def proved(found: tuple[PairState, ...], root: Path, *, with_files: bool = False) -> list[tuple[str, str]]:
    """Say of each pair with a report what holds there: the newest report, and those of other devices.

    Args:
        found: the pairs.
        root: the catalogue's.
        with_files: name the reports.
    """
    from patchlock.catalogue import proofs

    known, rows = proofs.read(root), []
    for one in found:
        told = []
        for proof in proofs.of_pair(known, one.app, one.profile, one.platform):
            levels = " · ".join(["locked", *(level for level in proofs.LEVELS if level in proof.levels)])
            older = ", with an older lock" if proofs.is_of_older_lock(root, proof) else ""
            file = f"\n{_output.place(root, proof.file)}" if with_files else ""
            told.append(f"{levels}: {', '.join(proof.devices) or 'the CPU'}, {proof.date}{older}{file}")
        if told:
            rows.append((f"{one.app} × {one.profile} × {one.platform}", "\n".join(dict.fromkeys(told))))
    return rows


def refused(found: tuple[PairState, ...]) -> list[str]:
    """Write what is not supported: each reason of an app once, with the machines it holds for."""
    from patchlock.catalogue import pair_table

    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in pair_table.reasons(found):
        name = f"{one.profile} ({', '.join(one.platforms)})" if one.platforms else one.profile
        groups.setdefault((one.app, one.why, one.source), []).append(name)
    is_one_app = len({one.app for one in found}) == 1
    told = [
        _output.sentences([f"{'' if is_one_app else f'{app} × '}{', '.join(names)}: {why}"])
        + f"\n{_output.sentences([source], 4)}"
        for (app, why, source), names in groups.items()
    ]
    return ["\nNot supported", *told] if told else []


def missing(found: tuple[PairState, ...]) -> list[str]:
    """Write which locks are still to be made, with the command."""
    pairs = dict.fromkeys((one.app, one.profile) for one in found if one.state == "missing")
    given = _output.given("catalogue")
    told = [
        (f"{app} × {profile}", command_lines.joined(["patchlock", "lock", app, "--profile", profile, *given]))
        for app, profile in pairs
    ]
    return ["\nNo lockfile", _output.rows(told)] if told else []


def title(profile: ProfileSummary, among: Collection[str] | None = None) -> str:
    """Say what a machine is, and which profile does better on it, where the profile knows one.

    Args:
        profile: a machine.
        among: the profiles of an app, one of which that has to be; None: every profile there is.
    """
    after = profile.successor
    is_there = after is not None and (among is None or after.name in among)
    return f"{profile.title} (better on the same machine: {after.name})" if after and is_there else profile.title


def _data(
    apps: tuple[AppSummary, ...],
    profiles: tuple[ProfileSummary, ...],
    found: tuple[PairState, ...],
    known: tuple[Proof, ...],
) -> dict[str, object]:
    from patchlock.environments import installed_profiles

    installed = installed_profiles.by_app(_options.home())
    return {
        "apps": [app_data(app, profiles) for app in apps],
        "profiles": [
            {
                "name": p.name,
                "title": p.title,
                "python": p.python,
                "successor": p.successor.name if p.successor else "",
            }
            for p in profiles
        ],
        "pairs": pairs_data(found),
        "proofs": proofs_data(known),
        "installed": [
            {"app": app, "profile": profile, "unverified": unverified(app, profile)}
            for app, names in installed.items()
            for profile in names
        ],
    }


def unverified(app: str, profile: str) -> str:
    """Say what of an installed app no check has shown, a clause; "" where it was started."""
    from patchlock.environments import generations
    from patchlock.model.installation import Installation

    receipt = generations.current(Installation(folder=_options.home() / f"{app}@{profile}"))
    return receipt.unverified if receipt is not None else ""


def app_data(app: AppSummary, profiles: tuple[ProfileSummary, ...]) -> dict[str, object]:
    """Write an app for JSON."""
    from patchlock.catalogue import app_summaries

    return {
        "name": app.name,
        "title": app.title,
        "license": app.license,
        "source": app.source,
        "shared": list(app.shared),
        "optional": {
            profile.name: [
                {"name": one.name, "gives": one.gives, "helps": list(one.helps), "patches": list(one.patches)}
                for one in options
            ]
            for profile in profiles
            if (options := app_summaries.options_of(app, profile.name))
        },
    }


def pairs_data(found: tuple[PairState, ...]) -> list[dict[str, object]]:
    """Write how pairs stand for JSON."""
    return [
        {
            "app": one.app,
            "profile": one.profile,
            "platform": one.platform,
            "state": one.state,
            "why": one.why,
            "source": one.source,
        }
        for one in found
    ]


def proofs_data(known: tuple[Proof, ...]) -> list[dict[str, object]]:
    """Write what was proved for JSON."""
    return [
        {
            "app": proof.app,
            "profile": proof.profile,
            "platform": proof.platform,
            "levels": sorted(proof.levels),
            "devices": list(proof.devices),
            "date": proof.date,
            "file": proof.file,
        }
        for proof in known
    ]
