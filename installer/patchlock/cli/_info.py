"""`info`: all that is worth knowing about an app before it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _list, _options, _output
from patchlock.core import command_lines
from patchlock.model.choice import FAILS_IN_PART

if TYPE_CHECKING:
    from patchlock.catalogue.pair_table import PairState
    from patchlock.model.fits import ProfileSummary
    from patchlock.model.models import ModelSize
    from patchlock.operations.app_overview import AppOverview

WORKS = "works"
"""What `proof` says of an app that starts and computes."""


@click.command("info")
@click.argument("app", shell_complete=_complete.apps)
@_options.common
def info_command(app: str, catalogue: Path | None, as_json: bool) -> None:
    """Show an app: size, licences, memory, machines, what is proved.

    \b
    Example:
      patchlock info xtts-webui
    """
    from patchlock.catalogue import app_summaries, pair_table, profile_summaries
    from patchlock.operations import app_overview

    root = _options.checked_root(catalogue)
    observed = _options.observe(root)
    profiles = profile_summaries.read_summaries(root)
    (seen,) = app_overview.overviews(root, profiles, observed, _options.cache(), [app])
    found = pair_table.pair_states([seen.app], profiles, app_summaries.is_locked(root, profiles))
    if as_json:
        _output.succeed("info", _data(seen, profiles, found, root))
    else:
        _output.echo(_text(seen, profiles, found, root, is_recorded=observed.is_recorded))


def _text(
    seen: AppOverview,
    profiles: tuple[ProfileSummary, ...],
    found: tuple[PairState, ...],
    root: Path,
    *,
    is_recorded: bool,
) -> str:
    from patchlock.cli._models import licences
    from patchlock.environments import installed_profiles

    app = seen.app
    there = installed_profiles.by_app(_options.home()).get(app.name, [])
    standing = _list.standing(root).get(app.name, [])
    best = seen.choice.chosen.profile.name if seen.choice else ""
    is_current = not is_recorded and any(
        one.state == "current" and one.installation.profile == best for one in standing
    )
    rows = [
        ("upstream", f"{app.url or 'files of the catalogue itself'}, commit {app.commit[:12]}"),
        ("licence", licences(app.license)),
        ("here", here(seen)),
        *([] if is_recorded else [("installed", f"on {_list.profiles_text(standing)}" if standing else "no")]),
        *download(seen, is_current=is_current),
        ("memory", "\n".join(map(str, seen.memory)) or "not known"),
        *([("needs", "\n".join(seen.needs))] if seen.needs else []),
    ]
    parts = [_output.sentences([f"{app.name}: {app.title}"], 0), "", _output.rows(rows)]
    if seen.models:
        parts += ["\nModels", _output.rows(_models(seen))]
    options = [
        (one.name, f"{one.gives}\non {', '.join(one.profiles) or 'every profile'}; add it with --with {one.name}")
        for one in app.options
    ]
    if options:
        parts += ["\nOptions", _output.rows(options)]
    if app.shared:
        parts += ["\nShared fixes", _output.sentences([", ".join(app.shared)])]
    locked: dict[str, list[str]] = {}
    for pair in found:
        if pair.state == "locked":
            locked.setdefault(pair.profile, []).append(pair.platform)
    titles = {one.name: _list.title(one, locked) for one in profiles}
    machines = [
        (name, "\n".join([titles[name], ", ".join(platforms), *_caveats(found, name)]))
        for name, platforms in locked.items()
    ]
    parts += ["\nSupported machines", _output.rows(machines)]
    told = _list.proved(found, root, with_files=True)
    parts += [
        "\nProved on real machines",
        *([_output.rows(told), _list.legend()] if told else ["  nothing yet; the lockfiles have only been checked"]),
    ]
    parts += [*_list.refused(found), *_list.missing(found)]
    if seen.choice is not None:
        command = "plan" if is_recorded else "run" if there else "install"
        head = {"plan": "What install would do there", "run": "Run it", "install": "Install it"}[command]
        words = ["patchlock", command, app.name, *_output.given("catalogue")]
        parts.append(f"\n{head}: {command_lines.joined(words)}")
    return "\n".join(parts)


def _caveats(found: tuple[PairState, ...], profile: str) -> dict[str, None]:
    """Say what of an app does not run as it should on a profile, each once."""
    there = [one for one in found if one.profile == profile and one.state == "locked"]
    told = [f"computes on the CPU there: {one.on_processor}" for one in there if one.on_processor]
    return dict.fromkeys([*told, *(f"{FAILS_IN_PART}: {one.trial}" for one in there if one.trial)])


def here(seen: AppOverview) -> str:
    """Say how an app runs on this machine."""
    if seen.choice is None:
        return f"not supported: {seen.why_not}"
    words = {"not yet": "not tried on a real machine yet"}.get(told := proof(seen), f"proved on a real machine: {told}")
    lines = [f"yes, on {seen.computes_on} (profile {seen.choice.chosen.profile.name}); {words}"]
    return "\n".join([*lines, *seen.warnings])


def proof(seen: AppOverview) -> str:
    """Say in a word how far an app got on a real machine of this kind."""
    if "computes" in seen.levels and "starts" in seen.levels:
        return WORKS
    return seen.levels[-1] if seen.levels else "not yet"


def download(seen: AppOverview, *, is_current: bool = False) -> list[tuple[str, str]]:
    """Say what comes over the network, a row for packages and one for models.

    Args:
        seen: the app.
        is_current: the packages are installed, so that `plan` asks nobody for their size.
    """
    from patchlock.cli._models import size_lines

    models = size_lines(seen.model_sizes)
    asks = f"not asked yet: `patchlock plan {seen.app.name}` asks the index for their size"
    unknown = "size not known; they are installed" if is_current else asks
    return [
        ("packages", str(seen.packages) if seen.packages else unknown),
        *([("models", "\n".join(models))] if models else []),
    ]


def _models(seen: AppOverview) -> list[tuple[str, str]]:
    from patchlock.model.models import size_of, total_text

    return [
        (one.repository, f"{total_text(size_of(one.files))}, licence: {one.license}\n{one.why}") for one in seen.models
    ]


def _data(
    seen: AppOverview, profiles: tuple[ProfileSummary, ...], found: tuple[PairState, ...], root: Path
) -> dict[str, object]:
    from patchlock.catalogue import proofs
    from patchlock.cli._models import sizes_data
    from patchlock.cli._plan import memory_data
    from patchlock.environments import installed_profiles
    from patchlock.model.models import size_of

    app, choice = seen.app, seen.choice
    return _list.app_data(app, profiles) | {
        "url": app.url or None,
        "commit": app.commit,
        "here": {
            "profile": choice.chosen.profile.name if choice else None,
            "platform": choice.chosen.platform.name if choice else None,
            "computes_on": seen.computes_on or None,
            "why_not": seen.why_not or None,
            "warnings": list(seen.warnings),
            "proved": list(seen.levels),
            "memory": [memory_data(verdict) for verdict in seen.memory],
            "needs": list(seen.needs),
        },
        "installed": (there := installed_profiles.by_app(_options.home()).get(app.name, [])),
        "unverified": {profile: told for profile in there if (told := _list.unverified(app.name, profile))},
        "download": {
            "packages": _size(seen.packages) if seen.packages else None,
            **sizes_data(seen.model_sizes),
        },
        "models": [
            {
                "repository": one.repository,
                "license": one.license,
                "why": one.why,
                "when": one.when,
                **_size(size_of(one.files)),
            }
            for one in seen.models
        ],
        "pairs": _list.pairs_data(found),
        "proofs": _list.proofs_data(tuple(one for one in proofs.read(root) if one.app == app.name)),
    }


def _size(size: ModelSize) -> dict[str, int]:
    return {"bytes": size.bytes, "of_unknown_size": size.unknown}
