"""`matrix`: the pairs of app and machine, for a matrix of continuous integration."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output

if TYPE_CHECKING:
    from patchlock.catalogue.pairs import Pair
    from patchlock.catalogue.reader import Catalogue


@click.command("matrix")
@click.option("--changed-since", metavar="REV", help="Only pairs whose lock is stale, or has changed since then.")
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Group neighbouring pairs into at most this many jobs.",
)
@_options.common
def matrix_command(changed_since: str | None, groups: int | None, catalogue: Path | None, as_json: bool) -> None:
    """List all pairs as JSON, for a CI matrix.

    Prints one line: {"include": [{"app": …, "profile": …, "platform": …, "lock": …}]}. With --groups it is
    {"include": [{"group": "demo … rvc-python", "pairs": [{"app": …}]}]}. --json adds the pairs that are not supported.

    \b
    Example:
      patchlock matrix
      patchlock matrix --changed-since origin/main --groups 64
    """
    from patchlock.catalogue import pairs
    from patchlock.operations import catalogue_at_commit

    opened = _options.open_catalogue(catalogue)
    apps, profiles = opened.read_all()
    found = pairs.pairs(apps, profiles)
    wanted = [pair for pair in found if not pair.refused]
    if changed_since is not None:
        commit = catalogue_at_commit.commit_of(opened.root, changed_since)
        changed = frozenset(catalogue_at_commit.changed(opened.root, commit))
        wanted = [pair for pair in wanted if _is_to_be_made(opened, pair, changed)]
    rows = [{**_names(pair), "lock": _lock(opened, pair)} for pair in wanted]
    include: list[dict[str, object]] = [dict(row) for row in rows] if groups is None else _in_groups(rows, groups)
    if as_json:
        refused = [{**_names(pair), "why": pair.refused} for pair in found if pair.refused]
        _output.succeed("matrix", {"include": include, "refused": refused})
    else:
        _output.echo(json.dumps({"include": include}))


_WORTH_A_JOB = 6
"""Pairs; a job takes a minute to start, and a pair of an app whose files are there some ten seconds."""


def _in_groups(rows: list[dict[str, str]], groups: int) -> list[dict[str, object]]:
    """Put neighbours together, so that what the pairs of an app have in common is fetched once."""
    jobs = max(1, min(groups, len(rows) // _WORTH_A_JOB))
    starts = [job * len(rows) // jobs for job in range(jobs + 1)]
    parts = [rows[start:end] for start, end in itertools.pairwise(starts) if start < end]
    return [{"group": _group_name(number, part), "pairs": part} for number, part in enumerate(parts, 1)]


def _group_name(number: int, rows: list[dict[str, str]]) -> str:
    apps = list(dict.fromkeys(row["app"] for row in rows))
    return f"{number}: {apps[0]}" + (f" to {apps[-1]}" if len(apps) > 1 else "")


def _is_to_be_made(catalogue: Catalogue, pair: Pair, changed: frozenset[str]) -> bool:
    """Say whether a lock is not fresh, as `lock --check` finds it, or it or the file beside it was changed."""
    from patchlock.locks import relock
    from patchlock.locks.lock_request import Request
    from patchlock.model import build_constraints

    lock = _lock(catalogue, pair)
    if not changed.isdisjoint({lock, build_constraints.filename_for(lock)}):
        return True
    request = Request(
        app=pair.app,
        profile=pair.profile,
        platform=pair.platform,
        catalogue=catalogue,
        home=_options.home(),
        cache=_options.cache(),
    )
    return relock.lock_status(request, catalogue.rules()).state != "fresh"


def _lock(catalogue: Catalogue, pair: Pair) -> str:
    return catalogue.lock_path(pair.app, pair.profile, pair.platform).relative_to(catalogue.root).as_posix()


def _names(pair: Pair) -> dict[str, str]:
    return {"app": pair.app.name, "profile": pair.profile.name, "platform": pair.platform.name}
