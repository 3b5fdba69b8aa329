"""`models`: what an app downloads beside its packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from patchlock.environments.models import LocatedFile
    from patchlock.locks.lock_request import Request
    from patchlock.model.models import Model, ModelSize, When


@click.command("models")
@_options.installed
@click.option("--fetch", is_flag=True, help="Download missing models, and check the others.")
@click.option(
    "--accept-changed",
    multiple=True,
    metavar="FILE",
    help="Accept this file although it has changed since first use (the catalogue has no sha256 for it).",
)
@_options.common
def models_command(
    app: str, profile: str | None, fetch: bool, accept_changed: tuple[str, ...], catalogue: Path | None, as_json: bool
) -> None:
    """List the models that an app downloads, or fetch them.

    Shows the size, licence and purpose of each model, and whether it is where the app looks for it. HF_HOME,
    HF_HUB_CACHE, HF_ENDPOINT and HF_TOKEN work as in other programs that use Hugging Face.

    \b
    Example:
      patchlock models xtts-webui
      patchlock models xtts-webui --fetch
    """
    import dataclasses

    from patchlock.cli import _progress
    from patchlock.environments import models as located_models
    from patchlock.operations import models

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    request = dataclasses.replace(request, accept_changed=accept_changed)
    brought: tuple[LocatedFile, ...] = ()
    if fetch:
        _options.require_current(request)
        progress = _progress.progress(as_json)
        brought = models.fetch(request, progress)
    located = located_models.locate(request)
    if as_json:
        data = {"models": _data(request, located), "fetched": [one.model.url(one.file) for one in brought]}
        _output.succeed("models", data)
    else:
        _output.echo("\n".join(_lines(request, located)))


def summary_row(request: Request, *, on_paper: bool = False) -> list[tuple[str, str]]:
    """Write for `plan` and `install` how much the app will download by itself; nothing where it has no models.

    Models are fetched into an installation, so the command is for later where there is none.
    """
    from patchlock.environments import generations
    from patchlock.operations import models

    found = models.summary(request, on_paper=on_paper)
    if not found.files:
        return []
    if not found.missing_files:
        return [("models", "all there")]
    itself = "patchlock" if on_paper else _launcher.own_command(_options.home())
    command = f"{itself} models {_options.pair_arguments(request)} --fetch"
    is_there = not on_paper and generations.current(request.installation) is not None
    when = "to download now" if is_there else "to download after the install"
    return [("models", f"{sizes_text(found.missing)}; {when}: `{command}`")]


def licences(code: str, models: Iterable[Model] = ()) -> str:
    """Name the licence of an app's code, and those of models that it downloads; a line each."""
    of_models = "; ".join(dict.fromkeys(one.license for one in models))
    return f"code: {code}" + (f"\nmodels: {of_models}" if of_models else "")


def sizes_text(sizes: Mapping[When, ModelSize]) -> str:
    """Write in one line how much an app downloads, and when; "" where that is nothing."""
    from patchlock.model.models import total_text

    return ", ".join(f"{total_text(size)} {_WHEN[when]}" for when, size in sizes.items() if size.bytes or size.unknown)


def size_lines(sizes: Mapping[When, ModelSize]) -> list[str]:
    """Write the same, a line for each time."""
    from patchlock.model.models import total_text

    return [f"{_WHEN[when]}: {total_text(size)}" for when, size in sizes.items() if size.bytes or size.unknown]


def sizes_data(sizes: Mapping[When, ModelSize]) -> dict[str, object]:
    """Write the same for JSON."""
    return {_KEYS[when]: {"bytes": size.bytes, "of_unknown_size": size.unknown} for when, size in sizes.items()}


_WHEN: Mapping[When, str] = {
    "start": "at the first start",
    "use": "when first used",
    "request": "that the app does not download itself",
}
_KEYS: Mapping[When, str] = {"start": "first_start", "use": "first_use", "request": "on_request"}


def summary_data(request: Request, *, on_paper: bool = False) -> dict[str, object]:
    """Write the same for JSON."""
    from patchlock.operations import models

    found = models.summary(request, on_paper=on_paper)
    return {"files": found.files, "missing": found.missing_files} | sizes_data(found.missing)


def _lines(request: Request, located: tuple[LocatedFile, ...]) -> list[str]:
    from patchlock.environments import generations
    from patchlock.model.byte_sizes import size_text
    from patchlock.model.models import PACKAGES, size_of, total_text

    pair = f"{request.app.name} on {request.profile.name}"
    if not located:
        return [f"{pair}: no known models to download"]
    is_installed = not request.simulated and generations.current(request.installation) is not None
    missing = [one for one in located if one.state != "there"]
    total = total_text(size_of(one.file for one in located))
    head = f"{pair}: {len(located)} files, {total}"
    absent = sum(one.state == "missing" for one in missing)
    told = [f"{absent} not there"] if absent else []
    told += [f"{len(missing) - absent} with other bytes in its place"] if len(missing) > absent else []
    lines = [f"{head}; {', '.join(told) or 'all are there'}"]
    for model in dict.fromkeys(one.model for one in located):
        files = [one for one in located if one.model is model]
        at = f" at {model.revision}" if model.revision else ""
        when = "only with --fetch" if model.when == "request" else _WHEN[model.when]
        lines += ["", f"  {model.repository}{at}", f"    {model.why}"]
        lines += [f"    downloaded: {when}", f"    licence: {model.license}"]
        width = max(len(_name(one)) for one in files)
        for one in files:
            size = size_text(one.file.bytes) if one.file.bytes else "size not known"
            if one.state == "different":
                size = f"{size_text(one.place.stat().st_size)}; the catalogue's has {size}"
            lines.append(f"    {_STATES[one.state]:<9}  {_name(one):<{width}}  {size}")
        is_later = model.base == PACKAGES and not is_installed
        place = "the environment of the app, once it is installed" if is_later else _shown(request, _folder(files[0]))
        lines.append(f"    in {place}")
    if missing:
        command = f"patchlock models {_options.pair_arguments(request)} --fetch"
        fetch = "fetch them" if is_installed else "fetch them after the install"
        if others := [_shown(request, one.place) for one in missing if one.state == "different"]:
            it = "it" if len(others) == 1 else "them"
            lines += ["", f"the app uses what lies in {', '.join(others)}, and --fetch does not touch {it}"]
            fetch = f"to have the catalogue's, move {it} away, then {fetch}"
        lines += ["", f"{fetch}: {command}"]
    return lines


_STATES = {"there": "there", "missing": "not there", "different": "another"}


def _name(one: LocatedFile) -> str:
    return one.file.name or str(one.file.path)


def _folder(one: LocatedFile) -> Path:
    if not one.model.into:
        return one.place if one.state == "missing" else one.place.parents[len(one.file.path.parts) - 1]
    return one.place.parents[len(Path(_name(one)).parts) - 1]


def _shown(request: Request, path: Path) -> str:
    """Name a place as the machine has it that it is looked for on, which may be a simulated one."""
    from patchlock.hardware import on_paper

    return on_paper.place(request.simulated, path, request.home) if request.simulated else str(path)


def _data(request: Request, located: tuple[LocatedFile, ...]) -> list[dict[str, object]]:
    return [
        {
            "repository": model.repository,
            "revision": model.revision or None,
            "why": model.why,
            "when": model.when,
            "license": model.license,
            "source": model.source,
            "files": [
                {
                    "path": str(one.file.path),
                    "bytes": one.file.bytes or None,
                    "sha256": one.file.sha256 or None,
                    "place": _shown(request, one.place),
                    "state": one.state,
                }
                for one in located
                if one.model is model
            ],
        }
        for model in dict.fromkeys(one.model for one in located)
    ]
