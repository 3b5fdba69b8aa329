"""`patchlock` alone on a terminal: what runs on this machine; choose, install, run. Each step shows its command."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _info, _list, _options, _output

if TYPE_CHECKING:
    from patchlock.environments.installation_states import InstallationState
    from patchlock.hardware.memory_needs import MemoryVerdict
    from patchlock.model.hosts import Host
    from patchlock.model.models import ModelSize
    from patchlock.operations.app_overview import AppOverview

_HEADS = ("", "App", "Runs on", "Proved", "Models", "Memory", "Installed")
_SHORTER = ("Runs on", "Memory")
"""Columns that have fewer words for a narrow terminal, the first to use them first."""
_LEFT_OUT = ("Models", "Proved", "Runs on", "Memory")
"""Columns that a narrow terminal does not show, as an app's page has them too; the first to go first."""
_LEGEND = {
    "Proved": "Proved: how far the app got on a real machine of this kind.",
    "Models": "Models: what it downloads besides its packages (?: files whose size the catalogue does not say).",
    "Memory": "Memory: the least that it takes; some uses take more.",
}
_ON_A_GPU = "*"
_LEAVE = {"q", "quit", "exit"}
_HELP = {"h", "help", "?"}


def guide() -> int:
    """Show what runs here, and do what a person chooses, until he leaves.

    Returns:
        0; a command that fails has said so.

    Raises:
        click.Abort: a question was answered with Ctrl-C or Ctrl-D.
    """
    from patchlock.catalogue import profile_summaries
    from patchlock.cli import _detect, _launcher
    from patchlock.model.devices import identify
    from patchlock.operations import app_overview

    named = os.environ.get("PATCHLOCK_CATALOGUE")
    root = _options.checked_root(Path(named) if named else None)
    observed = _options.observe(root)
    if not observed.overrides:
        with contextlib.suppress(OSError):  # whether a home can be written is said by `install`
            _launcher.write(_options.home())  # the commands that are shown begin with it
    seen = app_overview.overviews(root, profile_summaries.read_summaries(root), observed, _options.cache())
    here, others = [one for one in seen if one.choice], [one for one in seen if not one.choice]
    cards = profile_summaries.cards(root) if observed.host.devices else ()
    devices = [_detect.card_name(identify(device, cards)) for device in observed.host.devices]
    if not here:
        _output.echo(
            f"This machine: {_machine(observed.host, devices)}\n\nNo app of the catalogue runs on this machine."
        )
        _output.echo("`patchlock detect` says why; `patchlock list --all` shows the machines that are supported.")
        return 0
    there = {} if observed.is_recorded else _list.standing(root)
    here.sort(key=lambda one: (one.app.name not in there, _info.proof(one) != _info.WORKS))  # numbers stay from now on
    try:
        while True:
            standing = {app: _unfinished_first(found) for app, found in there.items()}
            _output.echo(_screen(devices, observed.host, here, others, standing))
            word, chosen = _choice(here)
            if word in _LEAVE:
                return 0
            if chosen is None:
                _output.echo(_help())
                _pause()
                continue
            there = {} if observed.is_recorded else _list.standing(root)
            chosen = app_overview.with_packages(chosen, root, _options.cache())
            _steps(chosen, there.get(chosen.app.name, []), is_recorded=observed.is_recorded)
            there = {} if observed.is_recorded else _list.standing(root)
    except click.exceptions.Exit:  # q at a question
        _output.echo()
        return 0


def _unfinished_first(found: Sequence[InstallationState]) -> InstallationState:
    """Choose one of an app's installations, if possible one whose install did not finish."""
    return max(found, key=lambda one: one.state == "interrupted")


def _choice(here: Sequence[AppOverview]) -> tuple[str, AppOverview | None]:
    """Ask until the answer is an app, or a word to leave or to get help; the list stays on the screen."""
    named = {one.app.name: one for one in here} | {str(number): one for number, one in enumerate(here, 1)}
    while True:
        word = click.prompt("\nNumber of an app, h for help, q to leave", default="", show_default=False).strip()
        if word in named or word.lower() in _LEAVE | _HELP:
            return word.lower(), named.get(word)
        if word:
            from patchlock.model.errors import similar

            hint = similar(word, [one.app.name for one in here])
            _output.echo(f'there is no app "{word}" in the list{f"; {hint}" if hint else ""}')


def _help() -> str:
    """Name the commands for who uses apps; the whole help would be longer than a screen."""
    from patchlock.cli import GROUPS
    from patchlock.cli._commands import patchlock, write_groups

    formatter = click.Context(patchlock, info_name="patchlock").make_formatter()
    write_groups(formatter, {title: names for title, names in GROUPS.items() if title != "Author"})
    return formatter.getvalue() + "\nOne of them: `patchlock help COMMAND`\nAll there are: `patchlock help --all`"


def _steps(seen: AppOverview, found: Sequence[InstallationState], *, is_recorded: bool) -> None:
    """Show an app, and offer what can be done with it now; on a recorded machine that is nothing."""
    from patchlock.cli import _launcher
    from patchlock.cli._models import licences

    app, there = seen.app, _unfinished_first(found) if found else None
    failure = f"\nwhy: {there.unfinished.failure}" if there and there.unfinished.failure else ""
    memory = [str(verdict) if verdict.is_enough is False else verdict.need_text for verdict in seen.memory]
    rows = {
        "here": _info.here(seen),
        **({"installed": f"on {_list.profiles_text(found)}{failure}"} if found else {}),
        **dict(_info.download(seen, is_current=there is not None and there.state == "current")),
        **({"memory": "\n".join(memory)} if memory else {}),
        **({"needs": "\n".join(seen.needs)} if seen.needs else {}),
        "licence": licences(app.license, seen.models),
        "more": f"{_launcher.own_command(_options.home())} info {app.name}",
    }
    _output.echo(f"\n{_page(seen, rows, below=5 if is_recorded else 3)}")
    if is_recorded:
        told = "PATCHLOCK_HOST names another machine. This shows what would be done there:"
        _show(seen, "plan", app.name, above=f"\n{told}\n")
        _pause()
        return
    if there and there.is_busy:
        meanwhile = " The version in use still works." if there.used else ""
        _output.echo(f"\nAnother patchlock is changing it at this moment.{meanwhile}")
        if not _options.profiles_of(app.name):
            _pause()
    elif not there or there.state == "interrupted":
        doubted = seen.choice.chosen.profile.name if seen.choice and seen.choice.doubts and not there else ""
        install = ("install", app.name, *(("--profile", doubted) if doubted else ()))  # named, so that it does not ask
        install = there.unfinished.words(there.installation) if there else install
        need = _least_memory(seen)
        lacks = need is not None and need.is_enough is False
        question = "Finish its installation now?" if there else "Install it now?"
        if doubted:
            question = f"Install it on {doubted} all the same?"
        if lacks:
            question = f"It takes more memory than there is. {question}"
        if _agreed(question, seen, *install, default=not (lacks or doubted)) and _run(*install):
            _pause()
    if not _options.profiles_of(app.name):
        return
    pair = _installed(seen)
    if missing := _not_downloaded(*pair):
        fetch = ("models", *pair, "--fetch")
        if _agreed(f"Download its models now ({missing})?", seen, *fetch) and _run(*fetch):
            _pause()
            return
    is_running = any(one.is_running for one in found)
    question = "It runs already. Start it a second time?" if is_running else "Start it now?"
    if _agreed(question, seen, "run", *pair, default=not is_running):
        _start(*pair)
        _pause()


def _page(seen: AppOverview, rows: Mapping[str, str], *, below: int) -> str:
    """Lay out an app's page; what `info` says too is told in fewer words where the screen would lose the app's name.

    Args:
        seen: the app.
        rows: of its page.
        below: lines that follow: blank ones, the command and the question.
    """
    from patchlock.cli._models import licences
    from patchlock.model.models import total_text

    need = _least_memory(seen)
    others = "; other uses: see more" if any(one.need != need.need for one in seen.memory if need) else ""
    fewer = {"models": total_text(_models(seen)), "memory": f"{need.need_text}{others}" if need else ""}
    fewer["licence"] = licences(seen.app.license) + ("; those of its models: see more" if seen.models else "")
    fewer["here"] = re.sub(" Reason: .*", " Reason: see more", rows["here"])
    told = dict(rows)
    room = shutil.get_terminal_size().lines - below
    for name in ("", *fewer):
        told |= {name: fewer[name]} if name in told else {}
        head = _output.sentences([f"{seen.app.name}: {seen.app.title}"], 0)
        page = f"{head}\n\n{_output.rows(list(told.items()))}"
        if page.count("\n") < room:
            break
    return page


def _least_memory(seen: AppOverview) -> MemoryVerdict | None:
    """Give what the smallest use takes, one known of such a machine first: what is too little, or the card's."""
    least = min(seen.memory, key=lambda verdict: (bool(verdict.basis), verdict.takes), default=None)
    of_it = [verdict for verdict in seen.memory if least and verdict.need == least.need]
    return max(of_it, key=lambda verdict: (verdict.is_enough is False, verdict.is_device), default=None)


def _agreed(question: str, seen: AppOverview, *words: str, default: bool = True) -> bool:
    """Ask, with the command that does the same without a question.

    Raises:
        click.exceptions.Exit: the answer is to leave.
    """
    _show(seen, *words)
    return _output.agreed(question, default=default, err=False, can_leave=True)


def _show(seen: AppOverview, *words: str, above: str = "\n") -> None:
    """Show the command of a step, as the machine's shell has it."""
    has_prompt = seen.choice is None or seen.choice.chosen.platform.os != "windows"
    _output.echo(f"{above}  $ patchlock {' '.join(words)}", has_prompt=has_prompt)


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


def _start(*pair: str) -> None:
    """Start an app in a process of its own: `run` becomes the app, and the guide would be gone."""
    from patchlock.core import process

    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process.run_in_terminal(sys.executable, "-P", "-m", "patchlock", "run", *pair, env=env)


def _pause() -> None:
    """Let a person read what was printed before the list comes again.

    Raises:
        click.exceptions.Exit: the answer is to leave.
    """
    answer = click.prompt("\nPress Enter to go on", default="", show_default=False, prompt_suffix=" ")
    if answer.strip().lower() in _LEAVE:
        raise click.exceptions.Exit


def _screen(
    devices: Sequence[str],
    host: Host,
    here: Sequence[AppOverview],
    others: Sequence[AppOverview],
    standing: Mapping[str, InstallationState],
) -> str:
    """Write the first screen, with what each app is for where that fits the terminal's height."""
    heads, (first, *lines) = _table([_row(number, one, standing) for number, one in enumerate(here, 1)])
    told = [line for one, row in zip(here, lines, strict=True) for line in (row, _output.sentences([one.app.title], 3))]
    before = [_output.sentences([f"This machine: {_machine(host, devices)}"], 0), "", first]
    after = ["", *_below(heads, here, others)]
    whole = "\n".join([*before, *told, *after])
    fits = whole.count("\n") + 3 <= shutil.get_terminal_size().lines  # its last line, a blank one, and the question
    return whole if fits else "\n".join([*before, *lines, *after])


def _below(heads: Sequence[str], here: Sequence[AppOverview], others: Sequence[AppOverview]) -> list[str]:
    parts: list[str] = []
    left_out = [head for head in _HEADS if head in _LEFT_OUT and head not in heads]
    legend = [told for head, told in _LEGEND.items() if head in heads and not (head == "Memory" and left_out)]
    if "Memory" in heads and any(need.basis for need in map(_least_memory, here) if need):
        legend.append(f"{_ON_A_GPU}: known only for a graphics card.")
    if legend:
        parts.append(_output.sentences([" ".join(legend)], 0))
    if left_out:
        left_out += ["more Memory"] if "Memory" in heads else []
        parts.append(_output.sentences([f"{', '.join(left_out)}: see an app's page"], 0))
    if others:
        names = ", ".join(one.app.name for one in others)
        parts.append(_output.sentences([f"Not supported here: {names} (`patchlock info APP` says why)"], 0))
    parts += [
        _output.sentences([f"Warning: {text} (`patchlock info APP` says why)"], 0) for text in _warnings(here)[:2]
    ]
    return parts


def _warnings(here: Iterable[AppOverview]) -> list[str]:
    """Say the first sentence of each app's first warning; the same of several apps once."""
    apps: dict[str, list[str]] = {}
    for one in here:
        for text in (*one.choice.doubts, *one.choice.warnings)[:1] if one.choice else ():
            lead = text.partition(" Reason: ")[0].rstrip(".")
            rest = lead.removeprefix(one.app.name)
            apps.setdefault(rest, []).extend([one.app.name] if rest != lead else [])
    return [" and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) + rest for rest, names in apps.items()]


def _machine(host: Host, devices: Sequence[str]) -> str:
    cards = [f"{count} × {name}" if count > 1 else name for name, count in Counter(devices).items()]
    cards = ["its GPU" if card == host.processor else card for card in cards]  # Apple has one name for both
    memory = f"{_output.size(host.memory)} of memory" if host.memory else ""
    words = [host.distribution or host.os, host.processor or host.machine, memory, *cards]
    return ", ".join(filter(None, [*words, "" if cards else "no graphics card found"]))


def _row(number: int, seen: AppOverview, standing: Mapping[str, InstallationState]) -> Mapping[str, Sequence[str]]:
    """Say each thing in words and, where they are too long for a terminal, in fewer."""
    from patchlock.model.models import short_text

    need = _least_memory(seen)
    lacks = need is not None and need.is_enough is False
    there = standing.get(seen.app.name)
    installed = (_list.how_unfinished(there).partition(",")[0] or "installed") if there else ""
    size = _output.size(need.takes) if need else "not known"
    size += _ON_A_GPU if need and need.basis else ""
    memory = f"{size} {'GPU' if need.is_device else 'RAM'}" if need and not need.basis else size
    on = seen.computes_on.removeprefix("the ")
    return {
        "": (str(number),),
        "App": (seen.app.name,),
        "Runs on": (on, "CPU" if on.startswith("CPU") else "GPU"),  # also with ONNX models on a card
        "Proved": (_info.proof(seen),),
        "Models": (short_text(_models(seen)),),
        "Memory": (f"{memory} (too much)", "too much") if lacks else (memory,),
        "Installed": (installed,),
    }


def _models(seen: AppOverview) -> ModelSize:
    from patchlock.model.models import size_of

    return size_of(file for one in seen.models for file in one.files)


def _table(rows: Sequence[Mapping[str, Sequence[str]]]) -> tuple[list[str], list[str]]:
    """Lay out rows; what is too wide for the terminal is told in fewer words, then left out, but no word is cut.

    Returns:
        The heads of the columns that are shown, and the lines.
    """
    room = shutil.get_terminal_size().columns
    columns = {head: [row[head][0] for row in rows] for head in _HEADS}
    if not any(columns["Installed"]):
        del columns["Installed"]
    for head in _SHORTER:
        if len(_lines(columns)[0]) > room:
            columns[head] = [row[head][-1] for row in rows]
    for head in _LEFT_OUT:
        if len(_lines(columns)[0]) > room:
            columns.pop(head, None)
    return list(columns), [line.rstrip() for line in _lines(columns)]


def _lines(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Lay out columns below their heads; all lines are equally long."""
    widths = [max(map(len, (head, *cells))) for head, cells in columns.items()]
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
