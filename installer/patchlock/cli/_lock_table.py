"""What `lock` shows of each pair at its end; reads neither click nor anything of the catalogue."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from patchlock.cli import _options, _output
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import LocksError

if TYPE_CHECKING:
    from patchlock.cli._conflict_report import ConflictReport

UV_ERROR_MARKER = "\n  error: "
"""Where uv's own words begin in what is said of a pair."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One pair in the table at the end."""

    pair: str
    file: str
    state: str
    """`written`, `unchanged`, `fresh`, `stale`, `missing`, `refused` or `failed`."""
    detail: str
    packages: int | None = None
    """How many the lock holds, where it was made."""
    code: str = ""
    warnings: tuple[str, ...] = ()
    needs_relock: bool = False
    """Whether making the lock again is what mends it."""

    @property
    def good(self) -> bool:
        """Whether nobody has to do anything."""
        return self.state in {"written", "unchanged", "fresh", "refused"}


def app_and_profile(pair: str) -> tuple[str, str]:
    """Give the two of a pair, without its platform."""
    app, _, rest = pair.partition(" × ")
    return app, rest.partition(" × ")[0]


def counted(count: int) -> str:
    """Count pairs in words."""
    return f"{count} pair{'' if count == 1 else 's'}"


def warn(warnings: Mapping[str, Iterable[str]]) -> None:
    """Print what is to be known of the locks of some pairs, each sentence once."""
    whose: dict[str, list[str]] = {}
    for pair, sentences in warnings.items():
        for sentence in sentences:
            whose.setdefault(sentence, []).append(pair)
    for sentence, names in whose.items():
        whole = "pairs" if len(names) == len(warnings) else ""
        _output.echo(f"warning: {_output.first_of(names, whole)}: {sentence}", err=True)


def rows(lines: Iterable[Line]) -> list[dict[str, object]]:
    """Write lines as JSON can hold them."""
    return [dataclasses.asdict(line) for line in lines]


def read(kept: object) -> list[Line] | None:
    """Read what `rows` wrote; None where it is anything else."""
    if not isinstance(kept, list) or not kept or not all(map(_is_row, kept)):
        return None
    return [Line(**row | {"warnings": tuple(row["warnings"])}) for row in kept]


def _is_row(row: object) -> bool:
    names = {field.name for field in fields(Line)}
    if not isinstance(row, dict) or row.keys() != names or not isinstance(row["warnings"], list):
        return False
    texts = [row[name] for name in names - {"packages", "warnings", "needs_relock"}] + row["warnings"]
    numbers = isinstance(row["packages"], int | None) and isinstance(row["needs_relock"], bool)
    return all(isinstance(text, str) for text in texts) and numbers


def print_locks(
    lines: Sequence[Line],
    told: Mapping[str, ConflictReport],
    *,
    check: bool,
    as_json: bool,
    is_named: bool = False,
) -> int:
    """Print what was found or done, and give the exit code.

    Args:
        lines: a pair each.
        told: conflicts that were explained, by the name of the pair.
        check: whether locks were only looked at.
        as_json: one envelope, no table.
        is_named: a lock was asked for of each app and profile, so that one that is refused everywhere is a failure.
    """
    lockable = {app_and_profile(line.pair) for line in lines if line.state != "refused"}
    bad = [line for line in lines if not line.good or (is_named and app_and_profile(line.pair) not in lockable)]
    if as_json:
        explanations = {pair: one.data for pair, one in told.items()}
        pairs = [row | {"explanation": explanations.get(str(row["pair"]))} for row in rows(lines)]
        whys = [(line.pair, f"{line.state}: {line.detail}") for line in bad]
        commands = [f"patchlock lock {words}" for words in relocks(map(_asked, lines))]
        return _output.succeed("lock", {"pairs": pairs}, locks_error(whys, len(lines), commands))
    # What is explained below needs no words of uv in the table.
    details = {one.pair: one.detail.split(UV_ERROR_MARKER)[0] if one.pair in told else one.detail for one in lines}
    same: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        same.setdefault((line.state, details[line.pair] or line.file), []).append(line.pair)
    if table := [(names[0], f"{state:<9}  {why}") for (state, why), names in same.items() if len(names) == 1]:
        _output.echo(_output.rows(table, indent=0))
    for (state, detail), names in same.items():
        if len(names) > 1:
            _output.echo(f"{_output.rows([(state, detail)], indent=0)}\n{_output.sentences(names)}")
    warn({line.pair: line.warnings for line in lines})
    for one in told.values():
        _output.echo(f"\n{one.text}")
    states = collections.Counter(line.state for line in lines)
    if check and len(states) > 1:
        _output.echo(", ".join(f"{count} {state}" for state, count in states.most_common()), err=True)
    if check:
        for words in relocks(map(_asked, lines)):
            _output.echo(f"to renew: patchlock lock {words}", err=True)
    return 1 if bad else 0


def _asked(line: Line) -> tuple[str, str, bool]:
    """Give the app and the profile of a pair, and whether its lock is to be made again; "" for those that have none."""
    app, profile = app_and_profile(line.pair)
    return app, "" if line.state == "refused" else profile, line.needs_relock


def relocks(pairs: Iterable[tuple[str, str, bool]]) -> tuple[str, ...]:
    """Give what to tell `lock` to make locks again, a line each: all profiles that were looked at, or those in need.

    Args:
        pairs: app and profile of each that can have a lock, and whether it is to be made again.
    """
    wanted: dict[str, dict[str, bool]] = {}
    for app, profile, needs_relock in pairs:
        if profile:
            of = wanted.setdefault(app, {})
            of[profile] = of.get(profile, False) or needs_relock
    apps: dict[tuple[str, ...], list[str]] = {}
    for app, of in sorted(wanted.items()):
        if stale := tuple(profile for profile, needs_relock in of.items() if needs_relock):
            apps.setdefault(() if len(stale) == len(of) else stale, []).append(app)
    commands = []
    for profiles, names in apps.items():
        chosen = [word for one in profiles for word in ("--profile", one)] or _output.given("profile")
        source = _options.source_words(names[0]) if len(names) == 1 else _output.given("source")
        words = [*names, *chosen, *_output.given("platform"), *source, *_output.given("catalogue")]
        commands.append(without_secrets(command_lines.joined(words)))
    return tuple(commands)


def locks_error(bad: Sequence[tuple[str, str]], count: int, commands: Sequence[str]) -> LocksError | None:
    """Say in one error which locks are not as they should be; None where all are.

    Args:
        bad: their pairs, and what is wrong with each.
        count: how many were asked about.
        commands: what mends them; none where that helps nothing.
    """
    if not bad:
        return None
    return LocksError(
        f"{len(bad)} of {count} locks {'is' if len(bad) == 1 else 'are'} not as they should be",
        remedy="do as the lines say" + (f", or run `{'` and `'.join(commands)}`" if commands else ""),
        evidence=(f"{pair}: {why}" for pair, why in bad),
    )
