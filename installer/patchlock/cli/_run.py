"""`run`: starts an installed app; says what its device answers, and where its page is once that answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output, _progress
from patchlock.core import command_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from patchlock.locks.lock_request import Request
    from patchlock.model.progress import Progress


_HELP = f"""Start an installed app; arguments after `--` go to it.

It first checks that the device answers, and prints the app's address as soon as the app answers there. Ctrl-C
stops the app and everything that it started. The variable PATCHLOCK_DEVICE chooses the device: cpu, or the number of
a GPU.

With --json, only print what would be started.

\b
Example:
  patchlock run demo
  patchlock run demo -- --text "hello"
  {command_lines.with_variable("PATCHLOCK_DEVICE", "cpu", "patchlock run demo")}
"""


@click.command("run", help=_HELP, context_settings={"ignore_unknown_options": True})
@_options.installed
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_options.common
def run_command(
    app: str, profile: str | None, arguments: tuple[str, ...], catalogue: Path | None, as_json: bool
) -> int:
    """Start an app in the place of this process."""
    from patchlock.core import process, service
    from patchlock.environments import generations, venv
    from patchlock.operations import launch, lifecycle

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    progress = _progress.progress(as_json)
    lifecycle.recover(request, progress)
    receipt = _options.require_current(request)
    generation = generations.generation(request.installation, receipt.id)
    place = launch.place(request, generation, os.environ)
    command = (*request.app.launch.command, *arguments)
    if as_json:
        _output.succeed("run", {"command": list(command), "folder": str(place.folder), "generation": receipt.id})
        return 0
    if request.app.launch.is_placeholder:
        progress.note(f"[launch] in {request.app.origin.file} names no program of {app} yet: Python alone is started")
    _tell_models(request)
    _tell_device(request, generation, place.variables, progress)
    running = _running(request)
    if running:
        progress.note(running)
    held = venv.mark_in_use(generation)
    listens = request.app.launch.listens
    if listens is None:
        return process.exec_program(*command, env=place.variables, cwd=place.folder)
    code = service.run(
        *command,
        env=place.variables,
        cwd=place.folder,
        port=listens.port,
        path=listens.path,
        answers=lambda address: progress.note(f"{app} answers: {address}"),
        keep_open=held,
    )
    if running and 0 < code < 128:  # not for Ctrl-C; what was said before stands above all that the app has printed
        _output.echo(running, err=True)
    return code


def _tell_models(request: Request) -> None:
    """Say which models are missing that the app itself never downloads."""
    from patchlock.environments import models
    from patchlock.model.models import size_of, total_text

    missing = [one for one in models.locate(request) if one.state == "missing" and one.model.when == "request"]
    if missing:
        whys = "; and ".join(dict.fromkeys(one.model.why for one in missing))
        size = total_text(size_of(one.file for one in missing))
        command = f"patchlock models {_options.pair_arguments(request)} --fetch"
        _output.echo(f"missing: {whys}. Fetch it first ({size}) with `{command}`", err=True)


def _running(request: Request) -> str:
    """Say that the app runs already, where it would find its port taken; else ""."""
    from patchlock.core import service
    from patchlock.environments import venv

    listens = request.app.launch.listens
    if listens is None or not any(map(venv.is_in_use, request.installation.environments.glob("*"))):
        return ""
    if not service.is_answering(listens.port, listens.path):
        return ""
    return (
        f"{request.app.name} is already running; it answers at http://127.0.0.1:{listens.port}{listens.path}; "
        "stop it with Ctrl-C in its terminal"
    )


def _tell_device(request: Request, generation: Path, env: Mapping[str, str], progress: Progress) -> None:
    """Say what computes; an app whose device does not answer is started all the same: it may know another way."""
    from patchlock.hardware import device_answer
    from patchlock.operations import launch

    back_end = request.profile.back_end
    if back_end != "cpu" and env.get(launch.DEVICE) == launch.PROCESSOR:
        progress.note(f"device: the CPU, as {launch.DEVICE} says")
        return
    answer = device_answer.ask(back_end, generation, env)
    if answer is None:
        return
    if answer.works:
        progress.note(f"device: {answer.says} ({back_end})")
        return
    command = _launcher.own_command(_options.home())
    progress.note(
        f"device: {back_end} does not answer: {answer.says}; `{command} doctor {request.app.name}` names the cause, "
        f"and {launch.DEVICE}={launch.PROCESSOR} makes {request.app.name} use the CPU"
    )
