"""`bench`: measures one job of an app on each profile that it is installed on, and compares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _options, _output, _progress
from patchlock.cli._paths import OutputFile

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.model.progress import Progress
    from patchlock.verify.bench import BenchResult
    from patchlock.verify.bench_picture import Row


@click.command("bench")
@click.argument("app", shell_complete=_complete.installed_apps)
@click.option(
    "--profile",
    metavar="PROFILE",
    shell_complete=_complete.installed_profiles,
    help="This profile only (default: each that it is installed on).",
)
@click.option("--runs", type=click.IntRange(1, 1000), help="How often to run the job (default: set by the app).")
@click.option("--show", is_flag=True, help="Measure nothing; show the last results.")
@click.option(
    "--plot",
    type=OutputFile(head=rb"<!-- patchlock bench -->"),
    metavar="FILE.svg",
    help="Draw the measurements as a picture.",
)
@_options.common
def bench_command(
    app: str,
    profile: str | None,
    runs: int | None,
    show: bool,
    plot: Path | None,
    catalogue: Path | None,
    as_json: bool,
) -> None:
    """Measure one job of an app on each installed profile.

    After one warm-up run, the job is repeated, and the median is taken. Results are kept and compared with the last
    ones and with other profiles. Other busy programs make them slower.

    \b
    Example:
      patchlock bench demo
      patchlock bench rvc-python --plot rvc.svg
    """
    from patchlock.core import atomic_files
    from patchlock.model.errors import UsageError
    from patchlock.verify import bench, bench_picture

    if plot is not None and (plot.suffix != ".svg" or not plot.absolute().parent.is_dir()):
        raise UsageError(f"--plot writes an .svg file into a folder that is there, not {plot}", remedy="name it so")
    progress = _progress.progress(as_json)
    profiles = [profile] if profile else _options.profiles_of(app)
    if not profiles:
        _options.require_current(_options.installed_request(catalogue, app, None))
    results: list[BenchResult] = []
    for name in profiles:
        # The job is the newest that is known, and not the one that the installation was made with.
        request = _options.installed_request(catalogue, app, name)
        kept = bench.kept(request.installation)
        if not show:
            made = _measured(request, runs or 0, progress)
            if not kept and request.installation.measured.exists():
                progress.note(f"{request.installation.measured} cannot be read, and is rewritten")
            bench.keep(request.installation, (*kept, made))
            kept = (*kept, made)
        results += kept
    if not results:
        raise UsageError(f"nothing of {app} was measured yet", remedy=f"run `patchlock bench {app}`")
    shown = bench.latest(results)
    earlier = [one for one in results if one not in shown]
    rows = [bench_picture.Row(result=one, earlier=bench.before(one, earlier)) for one in shown]
    if plot is not None:
        atomic_files.atomic_write(plot, bench_picture.svg(app, rows))
    if as_json:
        _output.succeed("bench", {"results": [_data(row) for row in rows], "plot": str(plot) if plot else None})
        return
    _draw(rows)
    if plot is not None:
        _output.echo(f"drawn: {plot}")


def _measured(request: Request, runs: int, progress: Progress) -> BenchResult:
    from patchlock.environments import generations
    from patchlock.model.errors import UsageError
    from patchlock.operations import launch, lifecycle
    from patchlock.verify import bench

    lifecycle.recover(request, progress)
    receipt = _options.require_current(request)
    if not request.app.sounds:
        raise UsageError(
            f"{request.app.name} declares no job to measure",
            where=request.app.origin.file,
            remedy="write a [[check]] of the kind `sound` there, see docs/formats/apps.md",
        )
    check = request.app.sounds[0]
    folder = generations.generation(request.installation, receipt.id)
    with progress.stage("bench"):
        progress.say(f"{request.profile.name}: {check.what}")
        made = bench.measure(
            check,
            receipt,
            request.profile.back_end,
            launch.check_context(request, folder),
            request.installation.sounds,
            runs,
        )
        progress.say(f"{made.where}: {len(made.seconds)} runs on {made.named or made.device}")
    return made


def _data(row: Row) -> dict[str, object]:
    from patchlock.verify import bench

    return bench.data(row.result) | {"earlier": bench.data(row.earlier) if row.earlier else None}


_TOLD = "not reported"


def _draw(rows: list[Row]) -> None:
    newest = rows[-1].result
    weights = "random weights" if newest.weights == "random" else f"weights: {newest.weights}"
    _output.echo(f"{newest.job.rpartition(' (')[0]}; {weights}")
    slowest = max(row.result.median for row in rows)
    cells = [_cells(row.result, slowest) for row in rows]
    table = _table([_HEADS, *cells])
    if _output.fits(table):
        _output.echo(table)
    else:  # one below the other, without the bar
        for profile, *values in cells:
            pairs = [(head, value) for head, value in zip(_HEADS[1:], values, strict=True) if head]
            _output.echo(f"{profile}\n{_output.rows(pairs)}")
    for row in rows:
        for line in (*_parts(row.result), *_compared(row, rows[0].result)):
            _output.echo(f"  {row.result.where}: {line}")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


_HEADS = ("profile", "device", "median", "", "real-time factor", "memory", "of the device", "use")
_BAR = 16
"""Columns of the longest bar."""


def _cells(one: BenchResult, slowest: float) -> tuple[str, ...]:
    from patchlock.model.byte_sizes import size_text
    from patchlock.verify.bench_picture import seconds_text

    spread = f"{seconds_text(one.median)} ({min(one.seconds):.3g} to {max(one.seconds):.3g}, {len(one.seconds)} runs)"
    memory = size_text(one.peak) if one.peak else _TOLD
    memory += f", {size_text(one.held)} at the end" if one.held else ""
    return (
        one.where,
        one.named or one.device,
        spread,
        "█" * max(1, round(one.median / slowest * _BAR)),
        f"{one.factor:.3g}" if one.factor is not None else "no sound",
        memory,
        f"{size_text(one.device_memory)} ({one.device_memory_by})" if one.device_memory is not None else _TOLD,
        f"{one.device_use:.0f} % ({one.device_use_by})" if one.device_use is not None else _TOLD,
    )


def _compared(row: Row, first: BenchResult) -> list[str]:
    from patchlock.verify import bench

    found = [(row.earlier, f"on {row.earlier.made[:16].replace('T', ' ')}")] if row.earlier is not None else []
    found += [(first, first.where)] if row.result is not first else []
    return [bench.compared(row.result, other, name) for other, name in found]


def _parts(one: BenchResult) -> list[str]:
    import statistics

    from patchlock.model.byte_sizes import size_text
    from patchlock.verify.bench_picture import seconds_text

    told = [f"{name} {seconds_text(statistics.median(taken))}" for name, taken in one.parts.items()]
    told.append(f"CPU time {seconds_text(statistics.median(one.processor))}")
    told.append(f"ready after {seconds_text(one.ready)}, first run {seconds_text(one.first)}")
    if one.weight_bytes:
        told.append(f"weights {size_text(one.weight_bytes)}")
    return [", ".join(told)]
