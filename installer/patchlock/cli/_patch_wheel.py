"""`patch wheel`: patch the wheel of a third-party distribution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output, _progress
from patchlock.cli._paths import UserPath
from patchlock.cli._plan import outcome_data, outcome_lines

if TYPE_CHECKING:
    from packaging.version import Version

    from patchlock.catalogue.distributions import Distribution
    from patchlock.distributions.wheel_cases import CaseResult
    from patchlock.distributions.wheel_patching import WheelPatchResult


@click.command("wheel")
@click.argument("name")
@click.option("--version", "wanted", metavar="VERSION", help="Its version; the wheel is downloaded by hash.")
@click.option(
    "--wheel",
    "file",
    type=UserPath(exists=True, dir_okay=False),
    help="Use this file instead; if the catalogue has a sha256 for it, it must match.",
)
@click.option(
    "--output",
    "folder",
    type=UserPath(file_okay=False),
    default=Path(),
    show_default="this folder",
    help="Folder for the patched wheel.",
)
@_options.common
def wheel_command(
    name: str, wanted: str | None, file: Path | None, folder: Path, catalogue: Path | None, as_json: bool
) -> None:
    """Patch the wheel of a third-party distribution, prove it with its cases, and write it under a local version.

    \b
    Example:
      patchlock patch wheel gradio-client --version 1.3.0 --output wheels
    """
    from packaging.utils import canonicalize_name

    from patchlock.distributions import wheel_patching

    opened = _options.open_catalogue(catalogue)
    distribution = opened.distribution(canonicalize_name(name))
    progress = _progress.progress(as_json)
    path, sha256, is_known = file, None, True
    if file is not None:
        known = {wheel.filename: wheel.sha256 for wheel in distribution.wheels}
        sha256, is_known = known.get(file.name), file.name in known
        _require_one(file, wanted)
    with progress.stage("wheel"):
        if path is None:
            obtained = wheel_patching.obtain(
                distribution,
                _version(distribution, wanted),
                _options.cache(),
                tell=progress.transfer,
            )
            path, sha256, is_known = obtained.path, obtained.sha256, obtained.is_known
        progress.say(path.name)
    with progress.stage("patch"):
        made = wheel_patching.patch(distribution, opened.root, path, sha256=sha256)
        progress.say(made.kind.value)
    written = wheel_patching.write(made.packed, folder) if made.packed else path
    if as_json:
        _output.succeed("patch wheel", _data(made, written, is_known))
    else:
        _output.echo(_text(distribution, made, written, is_known))


def _version(distribution: Distribution, text: str | None) -> Version:
    from packaging.version import InvalidVersion
    from packaging.version import Version as Parsed

    from patchlock.model.errors import UsageError

    known = ", ".join(str(wheel.version) for wheel in distribution.wheels)
    if text is None:
        raise UsageError(
            "neither a version nor a wheel is named", remedy=f"add `--version`; tried are {known}" if known else ""
        )
    try:
        return Parsed(text)
    except InvalidVersion as error:
        raise UsageError(f'"{text}" is not a version', remedy=f"tried are {known}" if known else "") from error


def _require_one(file: Path, wanted: str | None) -> None:
    from patchlock.model.errors import UsageError

    if wanted is not None:
        raise UsageError(f"`--version {wanted}` and `--wheel {file.name}` cannot both be given", remedy="leave one out")


def _data(made: WheelPatchResult, written: Path, is_known: bool) -> dict[str, object]:
    after = {result.id: result for result in made.after}
    return {
        "name": made.original.name,
        "version": str(made.original.version),
        "outcome": made.kind.value,
        "original": {"filename": made.original.filename, "sha256": made.original.sha256, "in_catalogue": is_known},
        "cases": [
            {
                "id": result.id,
                "control": result.is_control,
                "before": result.passed,
                "after": after[result.id].passed if result.id in after else None,
                "why": result.why,
            }
            for result in made.before
        ],
        "outcomes": [outcome_data(outcome) for outcome in made.outcomes],
        "wheel": {
            "path": str(written),
            "filename": written.name,
            "version": str(made.packed.version if made.packed else made.original.version),
            "sha256": made.packed.sha256 if made.packed else made.original.sha256,
        },
        "notices": list(made.notices),
    }


def _text(distribution: Distribution, made: WheelPatchResult, written: Path, is_known: bool) -> str:
    version = made.packed.version if made.packed else made.original.version
    sha256 = made.packed.sha256 if made.packed else made.original.sha256
    lines = [f"{made.original.name} {made.original.version}: {made.kind.value}", f"  {distribution.why}"]
    lines += ["", "cases", _output.rows(_cases(made.before, made.after))]
    if made.outcomes:
        lines += ["", "patches", *(f"  {line}" for line in outcome_lines(made.outcomes).splitlines())]
    notices = (
        made.notices if is_known else (*made.notices, "the catalogue does not name this file: its hash is what came")
    )
    if notices:
        lines += ["", *(f"note: {notice}" for notice in notices)]
    result = [("version", str(version)), ("wheel", str(written)), ("sha256", sha256)]
    return "\n".join([*lines, "", _output.rows(result, indent=0)])


def _cases(before: tuple[CaseResult, ...], after: tuple[CaseResult, ...]) -> list[tuple[str, str]]:
    now = {result.id: result.passed for result in after}
    return [
        (result.id, "passes" if result.passed else f"fails{', then passes' * now.get(result.id, False)}: {result.why}")
        for result in before
    ]
