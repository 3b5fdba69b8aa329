"""`patchlock` alone on a terminal: what runs on this machine; choose, install, run. Each step shows its command."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _info, _options, _output

if TYPE_CHECKING:
    from patchlock.model.hosts import Host
    from patchlock.operations.app_overview import AppOverview

_HEAD = ("", "App", "Runs on", "Proved", "Models", "Memory", "")
_LEGEND = "Proved: how far the app got on a real machine of this kind."
_LEGEND_OF_SIZES = "Models: what it downloads in addition to its packages."
_NARROW = 70
"""Columns below which a terminal shows no sizes."""
_LEAVE = {"q", "quit", "exit", ""}


def guide() -> int:
    """Show what runs here, and do what a person chooses, until he leaves.

    Returns:
        The exit code of the last command that was run.
    """
    from patchlock.hardware import host_overrides, probes
    from patchlock.operations import app_overview

    named = os.environ.get("PATCHLOCK_CATALOGUE")
    root = _options.checked_root(Path(named) if named else None)
    observed = host_overrides.observe(lambda: probes.probe(_options.home()))
    _output.report_overrides(observed)
    seen = app_overview.overviews(root, observed, _options.cache())
    here = [one for one in seen if one.choice is not None]
    code = 0
    try:
        while True:
            _output.echo(_screen(observed.host, here, [one for one in seen if one.choice is None]))
            word = click.prompt("\nNumber of an app, h for help, q to leave", default="q", show_default=False).strip()
            if word.lower() in _LEAVE:
                return code
            if word.lower() in {"h", "help", "?"}:
                code = _run("help")
                _pause()
                continue
            chosen = _chosen(word, here)
            if chosen is None:
                _output.echo(f'there is no app "{word}" in the list')
                continue
            code = _steps(app_overview.with_packages(chosen, root, _options.cache()))
    except click.Abort:  # q, Ctrl-C or Ctrl-D at a question, where nothing was begun
        _output.echo()
        return code


def _chosen(word: str, here: Sequence[AppOverview]) -> AppOverview | None:
    named = {one.app.name: one for one in here} | {str(number): one for number, one in enumerate(here, 1)}
    return named.get(word)


def _steps(seen: AppOverview) -> int:
    """Show an app, and offer what can be done with it now."""
    from patchlock.environments import installed_profiles

    app = seen.app
    rows = [
        ("licence", f"{app.license} (the code)"),
        ("here", _info.here(seen)),
        ("download", _info.download(seen)),
        *([("memory", "\n".join(map(str, seen.memory)))] if seen.memory else []),
        *[("model", f"{one.repository}, licence {one.license}") for one in seen.models],
        ("more", f"patchlock info {app.name}"),
    ]
    _output.echo(f"\n{_output.sentences([f'{app.name}: {app.title}'], 0)}\n\n{_output.rows(rows)}")
    if app.name not in installed_profiles.by_app(_options.home()):
        if not _agreed("Install it now?", "install", app.name):
            return 0
        if code := _run("install", app.name):
            _pause()
            return code
    pair = _installed(seen)
    if missing := _not_downloaded(*pair):
        fetch = ("models", *pair, "--fetch")
        if _agreed(f"Download its models now ({missing})?", *fetch) and (code := _run(*fetch)):
            _pause()
            return code
    if not _agreed("Start it now?", "run", *pair):
        return 0
    code = _start(*pair)
    _pause()
    return code


def _agreed(question: str, *words: str) -> bool:
    """Ask, with the command that does the same without a question.

    Raises:
        click.Abort: the answer is to leave.
    """
    _output.echo(f"\n  $ patchlock {' '.join(words)}")
    answers = click.Choice(["y", "yes", "n", "no", "q"], case_sensitive=False)
    answer = click.prompt(f"{question} [Y/n]", default="y", show_default=False, type=answers, show_choices=False)
    if answer == "q":
        raise click.Abort
    return answer in {"y", "yes"}


def _run(*words: str) -> int:
    from patchlock.cli import main

    return main(words)


def _installed(seen: AppOverview) -> tuple[str, ...]:
    """Name an installation: the app, and the profile where there are several."""
    there = _options.profiles_of(seen.app.name)
    if len(there) == 1 or seen.choice is None:
        return (seen.app.name,)
    best = seen.choice.chosen.profile.name
    return (seen.app.name, "--profile", best if best in there else there[0])


def _not_downloaded(app: str, *options: str) -> str:
    """Say how much an installed app lacks of what it does not download itself; "" where that is nothing."""
    from patchlock.model.models import total_text
    from patchlock.operations import models

    profile = options[-1] if options else None
    size = models.summary(_options.installed_request(None, app, profile, as_it_is=True)).missing["request"]
    return total_text(size) if size.bytes or size.unknown else ""


def _start(*pair: str) -> int:
    """Start an app in a process of its own: `run` becomes the app, and the guide would be gone."""
    from patchlock.core import process

    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return process.run_in_terminal(sys.executable, "-P", "-m", "patchlock", "run", *pair, env=env)


def _pause() -> None:
    """Let a person read what was printed before the list comes again.

    Raises:
        click.Abort: the answer is to leave.
    """
    answer = click.prompt("\nPress Enter to go on", default="", show_default=False, prompt_suffix=" ")
    if answer.strip().lower() in _LEAVE - {""}:
        raise click.Abort


def _screen(host: Host, here: Sequence[AppOverview], others: Sequence[AppOverview]) -> str:
    parts = [_output.sentences([f"This machine: {_machine(host)}"], 0), ""]
    parts += _table([_HEAD, *(_row(number, one) for number, one in enumerate(here, 1))])
    legend = _LEGEND if _is_narrow() else f"{_LEGEND} {_LEGEND_OF_SIZES}"
    parts += ["", _output.sentences([legend], 0)]
    if others:
        names = ", ".join(one.app.name for one in others)
        parts.append(_output.sentences([f"Not supported here: {names} (patchlock info APP says why)"], 0))
    warnings = dict.fromkeys(text for one in here if one.choice for text in (*one.choice.doubts, *one.choice.warnings))
    parts += [_output.sentences([f"Warning: {text}"], 0) for text in list(warnings)[:2]]
    return "\n".join(parts)


def _machine(host: Host) -> str:
    cards = ", ".join(device.name for device in host.devices if device.name)
    memory = f"{_output.size(host.memory)} of memory" if host.memory else ""
    words = [host.distribution or host.os, host.processor or host.machine, memory, cards or "no graphics card found"]
    return ", ".join(filter(None, words))


def _row(number: int, seen: AppOverview) -> tuple[str, ...]:
    from patchlock.environments import installed_profiles

    need = max((verdict.takes for verdict in seen.memory), default=0)
    lacks = any(verdict.is_enough is False for verdict in seen.memory)
    there = installed_profiles.by_app(_options.home()).get(seen.app.name)
    return (
        str(number),
        seen.app.name,
        seen.computes_on.removeprefix("the "),
        _info.proof(seen),
        _models(seen),
        (_output.size(need) + (" (too much)" if lacks else "")) if need else "unknown",
        "installed" if there else "",
    )


def _models(seen: AppOverview) -> str:
    from patchlock.model.models import size_of

    size = size_of(file for one in seen.models for file in one.files)
    if not seen.models:
        return "none"
    if not size.unknown:
        return _output.size(size.bytes)
    return f"over {_output.size(size.bytes)}" if size.bytes else "unknown"


def _is_narrow() -> bool:
    return shutil.get_terminal_size().columns < _NARROW


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows; on a narrow terminal without models and memory, and with the widest column cut."""
    room = max(shutil.get_terminal_size().columns, 40)
    if _is_narrow():
        rows = [(*row[:4], *row[6:]) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    while sum(widths) + 2 * len(widths) > room and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in rows:
        cells = (
            cell if len(cell) <= width else f"{cell[: width - 1]}…" for cell, width in zip(row, widths, strict=True)
        )
        lines.append("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())
    return lines
