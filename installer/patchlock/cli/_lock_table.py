"""What `lock` shows of each pair at its end; reads neither click nor anything of the catalogue."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from patchlock.cli import _folders, _launcher, _options, _output
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import LocksError, RecordChangedError

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

    @property
    def good(self) -> bool:
        """Whether nobody has to do anything."""
        return self.state in {"written", "unchanged", "fresh", "refused"}


def counted(count: int) -> str:
    """Count pairs in words."""
    return f"{count} pair{'' if count == 1 else 's'}"


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
    texts = [row[name] for name in names - {"packages", "warnings"}] + row["warnings"]
    return all(isinstance(text, str) for text in texts) and isinstance(row["packages"], int | None)


def print_locks(lines: Sequence[Line], told: Mapping[str, ConflictReport], *, check: bool, as_json: bool) -> int:
    """Print what was found or done, and give the exit code.

    Args:
        lines: a pair each.
        told: conflicts that were explained, by the name of the pair.
        check: whether locks were only looked at.
        as_json: one envelope, no table.
    """
    if as_json:
        explanations = {pair: one.data for pair, one in told.items()}
        pairs = [row | {"explanation": explanations.get(str(row["pair"]))} for row in rows(lines)]
        bad = [(line.pair, f"{line.state}: {line.detail}") for line in lines if not line.good]
        command = f"patchlock lock {stale}" if (stale := _stale(lines)) else ""
        return _output.succeed("lock", {"pairs": pairs}, locks_error(bad, len(lines), command))
    # What is explained below needs no words of uv in the table.
    details = {one.pair: one.detail.split(UV_ERROR_MARKER)[0] if one.pair in told else one.detail for one in lines}
    table, seen = [], set[str]()
    for line in lines:
        detail = details[line.pair] or line.file
        table.append((line.pair, f"{line.state:<9}  {'the same as above' if detail in seen else detail}"))
        seen |= {detail} if "\n" in detail else set()
    _output.echo(_output.rows(table, indent=0))
    whose: dict[str, list[str]] = {}
    for line in lines:
        for warning in line.warnings:
            whose.setdefault(warning, []).append(line.pair)
    for warning, names in whose.items():
        _output.echo(f"warning: {_output.first_of(names)}: {warning}", err=True)
    for one in told.values():
        _output.echo(f"\n{one.text}")
    states = collections.Counter(line.state for line in lines)
    if check and len(states) > 1:
        _output.echo(", ".join(f"{count} {state}" for state, count in states.most_common()), err=True)
    if check and (stale := _stale(lines)):
        words = command_lines.joined([*stale.split(), *_options.given("profile", "platform", "source", "catalogue")])
        _output.echo(f"to renew: {_launcher.own_command(_folders.home())} lock {without_secrets(words)}", err=True)
    return 0 if all(line.good for line in lines) else 1


def _stale(lines: Iterable[Line]) -> str:
    """Name the apps whose locks are to be made again; "" for none.

    Bytes that changed under a known name are for a person to judge first: the line itself says how they are accepted.
    """
    bad = (line for line in lines if not line.good and line.pair != line.file and line.code != RecordChangedError.code)
    return " ".join(sorted({line.pair.partition(" ")[0] for line in bad}))


def locks_error(bad: Sequence[tuple[str, str]], count: int, command: str) -> LocksError | None:
    """Say in one error which locks are not as they should be; None where all are.

    Args:
        bad: their pairs, and what is wrong with each.
        count: how many were asked about.
        command: what mends them; "" where none does.
    """
    if not bad:
        return None
    return LocksError(
        f"{len(bad)} of {count} locks {'is' if len(bad) == 1 else 'are'} not as they should be",
        remedy="do as the lines say" + (f", or run `{command}`" if command else ""),
        evidence=(f"{pair}: {why}" for pair, why in bad),
    )
