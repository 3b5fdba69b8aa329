"""Measure the job of an app in an environment, keep what was found, and compare; proves nothing."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core import atomic_files
from patchlock.environments.generations import Receipt
from patchlock.model.checks import SoundCheck
from patchlock.model.errors import CommandFailedError
from patchlock.model.installation import Installation
from patchlock.verify import sounds
from patchlock.verify.checks import CheckContext

_LEAST = 1.1
"""Times that one has to be faster than another: less changes from one start to the next."""
_KEPT = 50
"""Results that are kept for each installation."""


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """How one job went on one profile. Seconds and bytes; None where nobody says."""

    made: str
    """When: RFC 3339, UTC."""
    job: str
    """What it was, and 12 digits of the sha256 of the code that makes it."""
    machine: str
    """12 digits of the sha256 of this computer's name."""
    profile: str
    chosen: tuple[str, ...]
    """Optional patches."""
    generation: str
    commit: str
    """Of upstream."""
    device: str
    """Where it was computed, as the library calls it."""
    named: str
    """What the driver calls that device; "" where it does not say."""
    weights: str
    """`random`, or whose they are."""
    weight_bytes: int | None
    torch: str
    """Its version; "" where it is not there."""
    threads: int | None
    """Of torch on the processor."""
    ready: float
    """Seconds until all was loaded."""
    first: float
    """Seconds of the first run, which does not count."""
    seconds: tuple[float, ...]
    """Of each run that counts."""
    processor: tuple[float, ...]
    """Seconds of the processor that each run took, all its threads together: other programs count less there."""
    parts: Mapping[str, tuple[float, ...]]
    """Name of a part of the job → its seconds in each run."""
    length: float
    """Seconds of sound that each run made."""
    peak: int | None
    """Most memory of the program and all that it started, with what loading took."""
    held: int | None
    """Memory that the program had after the last run."""
    device_memory: int | None
    device_memory_by: str
    """Who says so; `torch` counts what it allocated itself, a driver what all programs have on the card."""
    device_use: float | None
    """Percent, the mean of the runs."""
    device_use_by: str

    @property
    def median(self) -> float:
        """Seconds of the median run."""
        return statistics.median(self.seconds)

    @property
    def factor(self) -> float | None:
        """Give the real-time factor, seconds of computing for a second of sound; None where no sound was made."""
        return self.median / self.length if self.length > 0 else None

    @property
    def where(self) -> str:
        """Name the profile with what was chosen there."""
        return f"{self.profile} --with {' '.join(self.chosen)}" if self.chosen else self.profile

    def is_comparable(self, other: BenchResult) -> bool:
        """Say whether both did the same job with the same kind of weights on the same computer."""
        return (self.job, self.machine, self.weights) == (other.job, other.machine, other.weights)


def measure(
    check: SoundCheck, receipt: Receipt, back_end: str, place: CheckContext, folder: Path, runs: int = 0
) -> BenchResult:
    """Do the job of a check in the environment of a generation, at its full size.

    Args:
        check: the job.
        receipt: of the generation.
        back_end: of the profile.
        place: where it runs.
        folder: the last sound is kept there, see `sounds.listen`.
        runs: that count; 0: as many as the job says.

    Raises:
        CommandFailedError: the job fails, hangs, takes more memory than it may, or makes no sound.
        ProgramMissingError: the environment's own Python is not there.
    """
    folder.mkdir(exist_ok=True)
    file = folder / f"{check.id}.wav"
    try:
        answer, peak = sounds.make(check, place, receipt.profile, back_end, file=file, runs=runs or check.runs)
    except CommandFailedError as error:
        raise CommandFailedError(
            error.what,
            where=f"{receipt.app} on {receipt.profile}",
            remedy=f"run `patchlock verify {receipt.app} --profile {receipt.profile}`, which names what does not work",
            evidence=error.evidence,
        ) from error
    try:
        return _result(answer, check, receipt, peak)
    except (ValueError, KeyError, TypeError) as error:
        raise CommandFailedError(f"{check.what}: the job printed no answer", where=receipt.app) from error


def _result(answer: dict[str, Any], check: SoundCheck, receipt: Receipt, peak: int) -> BenchResult:
    digest = hashlib.sha256(f"{check.job}\n{check.code}".encode()).hexdigest()[:12]
    own = answer.pop("peak")  # of one process, where nobody counts what it started
    given = {
        **answer,
        "peak": max(peak, int(answer["held"] or 0)) or own,
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "job": f"{check.what} ({digest})",
        "machine": hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        "profile": receipt.profile,
        "chosen": receipt.chosen,
        "generation": receipt.id,
        "commit": receipt.upstream,
    }
    return _read(given)


def _read(given: Mapping[str, object]) -> BenchResult:
    """Make a result of JSON's values.

    Raises:
        KeyError: one is missing.
        TypeError: one is of another kind.
        ValueError: there is no run.
    """
    values = {field.name: given[field.name] for field in dataclasses.fields(BenchResult)}
    parts, seconds = values["parts"], _numbers(values["seconds"])
    if not isinstance(parts, dict) or not isinstance(values["chosen"], list | tuple):
        raise TypeError("parts, chosen")
    if not seconds:
        raise ValueError("seconds")
    values |= {
        "chosen": tuple(values["chosen"]),
        "seconds": seconds,
        "processor": _numbers(values["processor"]),
        "parts": {str(name): _numbers(taken) for name, taken in parts.items()},
    }
    return BenchResult(**values)  # type: ignore[arg-type]  # as it was written, or else a TypeError where it is used


def _numbers(given: object) -> tuple[float, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, int | float) for one in given):
        raise TypeError("not numbers")
    return tuple(float(one) for one in given)


def data(result: BenchResult) -> dict[str, object]:
    """Write a result for JSON, with what is computed from it."""
    return dataclasses.asdict(result) | {"median": result.median, "factor": result.factor}


def kept(installation: Installation) -> tuple[BenchResult, ...]:
    """Give what was measured here, the oldest first; what cannot be read is nothing."""
    try:
        rows = json.loads(installation.measured.read_text(encoding="utf-8"))
        return tuple(_read(row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def keep(installation: Installation, results: Sequence[BenchResult]) -> None:
    """Write what was measured here in the place of what was kept."""
    rows = [dataclasses.asdict(one) for one in results[-_KEPT:]]
    atomic_files.atomic_write(installation.measured, json.dumps(rows, indent=1) + "\n")


def before(result: BenchResult, earlier: Iterable[BenchResult]) -> BenchResult | None:
    """Give the last of the earlier results that did the same on the same profile with the same options."""
    same = [one for one in earlier if one.is_comparable(result) and one.where == result.where]
    return same[-1] if same else None


def latest(results: Iterable[BenchResult]) -> tuple[BenchResult, ...]:
    """Give the last result of each profile with its options, of those that can be compared with the newest of all."""
    listed = sorted(results, key=lambda one: one.made)
    same = [one for one in listed if one.is_comparable(listed[-1])]
    return tuple({one.where: one for one in same}.values())


def compared(one: BenchResult, other: BenchResult, name: str) -> str:
    """Say how much faster the first is than another, whose name is given; within the spread of the runs it is not."""
    times = other.median / one.median
    overlap = min(one.seconds) <= max(other.seconds) and min(other.seconds) <= max(one.seconds)
    if overlap or max(times, 1 / times) < _LEAST:
        return f"as fast as {name}, within the spread of the runs"
    return f"{times:.2g} × as fast as {name}" if times > 1 else f"{1 / times:.2g} × as slow as {name}"
