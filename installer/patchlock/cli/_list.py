"""`list`: which apps and machines there are, which pairs are locked, and what a person can choose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output
from patchlock.cli._plan import option_data, option_line

if TYPE_CHECKING:
    from patchlock.catalogue.pair_table import PairState
    from patchlock.catalogue.proofs import Proof
    from patchlock.catalogue.reader import Catalogue
    from patchlock.environments.generations import Receipt
    from patchlock.model.app import App
    from patchlock.model.fits import Platform
    from patchlock.model.installation import Installation
    from patchlock.model.profile import Profile


@click.command("list")
@click.argument("app", required=False)
@click.option("--markdown", is_flag=True, help="Only the matrix and its reasons, as README.md has them.")
@_options.common
def list_command(app: str | None, markdown: bool, catalogue: Path | None, as_json: bool) -> None:
    """Show the apps, the profiles, and which pairs are locked.

    With an app, show its pairs, the shared sets that it takes, and the optional patches.

    \b
    Example:
      patchlock list
      patchlock list xtts-webui
    """
    from patchlock.catalogue import pair_table, proofs

    opened = _options.open_catalogue(catalogue)
    if app is None:
        apps, profiles = opened.read_all()
    else:
        apps, profiles = (opened.app(app),), tuple(map(opened.profile, opened.profile_names()))
    found = pair_table.pair_states(apps, profiles, _is_locked(opened))
    if as_json:
        _output.succeed("list", _data(apps, profiles, found, proofs.read(opened.root)))
    elif markdown:
        click.echo(pair_table.markdown(found), nl=False)
    elif app is not None:
        click.echo(_about(apps[0], found, opened))
    else:
        click.echo(_overview(apps, profiles, found, opened))


def _is_locked(catalogue: Catalogue) -> Callable[[App, Profile, Platform], bool]:
    return lambda app, profile, platform: catalogue.lock_path(app, profile, platform).is_file()


def _overview(
    apps: tuple[App, ...], profiles: tuple[Profile, ...], found: tuple[PairState, ...], catalogue: Catalogue
) -> str:
    from patchlock.catalogue import pair_table

    parts = [
        "Apps",
        _output.rows([(app.name, app.title) for app in apps]),
        "\nProfiles",
        _output.rows([(profile.name, _title(profile)) for profile in profiles]),
    ]
    if rows := [
        (f"{one.app} × {one.profile}", "\n".join(_generation(receipt, receipt == used) for receipt in made))
        for one, used, made in _installed()
    ]:
        parts += ["\nInstalled", _output.rows(rows)]
    parts += ["\nLocks", pair_table.text(found)]
    if told := _proved(found, catalogue):
        parts += ["\nProved on real machines", _output.rows(told)]
    return "\n".join([*parts, *_refused(found), *_missing(found)])


def _about(app: App, found: tuple[PairState, ...], catalogue: Catalogue) -> str:
    from patchlock.catalogue import optional_patches

    chosen = {name for one, used, _ in _installed() if used and one.app == app.name for name in used.chosen}
    places: dict[str, list[str]] = {}
    every = {}
    for profile in dict.fromkeys(one.profile for one in found):
        for option in optional_patches.of_profile(app, profile):
            every[option.name] = option
            places.setdefault(option.name, []).append(profile)
    rows = [
        ("licence", app.license),
        ("upstream", f"{app.source}, commit {app.upstream.commit[:12]}"),
        *(("shared", f"{one.name}: {one.title}") for one in app.shared),
        *(
            ("optional", f"{option_line(option, name in chosen)}\non {', '.join(places[name])}")
            for name, option in every.items()
        ),
    ]
    states: list[tuple[str, str]] = [
        (f"{one.profile} × {one.platform}", one.state) for one in found if one.state != "refused"
    ]
    parts = [f"{app.name}: {app.title}", _output.rows(rows), "\nLocks", _output.rows(states)]
    if told := _proved(found, catalogue):
        parts += ["\nProved on real machines", _output.rows(told)]
    return "\n".join([*parts, *_refused(found), *_missing(found)])


def _proved(found: tuple[PairState, ...], catalogue: Catalogue) -> list[tuple[str, str]]:
    """Say of each pair with a report what holds there: the newest report, and those of other devices."""
    from patchlock.catalogue import proofs
    from patchlock.core.atomic_files import has_sha256
    from patchlock.model.identities import Sha256

    known, rows = proofs.read(catalogue.root), []
    for one in found:
        told, folder = [], catalogue.root / "lockfiles" / one.app
        locks = [folder / f"{name}.txt" for name in (one.profile, f"{one.profile}.{one.platform}")]
        for proof in proofs.of_pair(known, one.app, one.profile, one.platform):
            levels = " · ".join(["locked", *(level for level in proofs.LEVELS if level in proof.levels)])
            older = "" if any(has_sha256(lock, Sha256(proof.lock)) for lock in locks) else ", with an older lock"
            told.append(f"{levels}: {', '.join(proof.devices) or 'the processor'}, {proof.date}{older}")
        if told:
            rows.append((f"{one.app} × {one.profile} × {one.platform}", "\n".join(dict.fromkeys(told))))
    return rows


def _refused(found: tuple[PairState, ...]) -> list[str]:
    from patchlock.catalogue import pair_table

    told = [(pair_table.pair(one), f"{one.why}\n{one.source}") for one in pair_table.reasons(found)]
    return ["\nRefused", _output.rows(told)] if told else []


def _missing(found: tuple[PairState, ...]) -> list[str]:
    pairs = dict.fromkeys((one.app, one.profile) for one in found if one.state == "missing")
    told = [(f"{app} × {profile}", f"patchlock lock {app} --profile {profile}") for app, profile in pairs]
    return ["\nMissing", _output.rows(told)] if told else []


def _title(profile: Profile) -> str:
    """Say what a machine is, and which profile does better on it, where the profile knows one."""
    after = profile.successor
    return f"{profile.title} (better on the same machine: {after.name})" if after else profile.title


def _installed() -> list[tuple[Installation, Receipt | None, tuple[Receipt, ...]]]:
    """List what is installed: the generation in use, and all of them, the newest first."""
    from patchlock.environments import generations

    there = generations.installations(_options.home())
    return [(one, generations.current(one), made) for one in there if (made := generations.receipts(one))]


def _generation(receipt: Receipt, is_used: bool) -> str:
    chosen = "".join(f", with {name}" for name in receipt.chosen)
    chosen += ", from an edited lock" if receipt.edited_lock else ""
    used = ", in use" if is_used else ""
    return f"{receipt.id}, made {receipt.made}, upstream {receipt.upstream[:12]}{chosen}{used}"


def _data(
    apps: tuple[App, ...], profiles: tuple[Profile, ...], found: tuple[PairState, ...], proved: tuple[Proof, ...]
) -> dict[str, object]:
    return {
        "apps": [_app_data(app, profiles) for app in apps],
        "profiles": [
            {
                "name": p.name,
                "title": p.title,
                "python": str(p.python),
                "successor": p.successor.name if p.successor else "",
            }
            for p in profiles
        ],
        "pairs": [
            {
                "app": one.app,
                "profile": one.profile,
                "platform": one.platform,
                "state": one.state,
                "why": one.why,
                "source": one.source,
            }
            for one in found
        ],
        "proofs": [
            {
                "app": proof.app,
                "profile": proof.profile,
                "platform": proof.platform,
                "levels": sorted(proof.levels),
                "devices": list(proof.devices),
                "date": proof.date,
                "file": proof.file,
            }
            for proof in proved
        ],
        "installed": [
            {
                "app": one.app,
                "profile": one.profile,
                "generations": [
                    {
                        "id": r.id,
                        "made": r.made,
                        "upstream": r.upstream,
                        "chosen": list(r.chosen),
                        "in_use": r == used,
                    }
                    for r in made
                ],
            }
            for one, used, made in _installed()
        ],
    }


def _app_data(app: App, profiles: tuple[Profile, ...]) -> dict[str, object]:
    from patchlock.catalogue import optional_patches

    return {
        "name": app.name,
        "title": app.title,
        "license": app.license,
        "source": app.source,
        "shared": [one.name for one in app.shared],
        "optional": {
            profile.name: [option_data(option, chosen=False) for option in found]
            for profile in profiles
            if (found := optional_patches.of_profile(app, profile.name))
        },
    }
