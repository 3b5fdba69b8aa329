"""What was proved of a machine, as a value that is kept and compared with the one before; reads and writes no file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from patchlock.catalogue.expectations import ComparedResult
from patchlock.model.kernel_results import KernelResult, Verdict

FORMAT = 1
"""Of a kept report; another one is not compared with."""
_SLOWER = 2.0
"""A kernel is told as slower or faster from this factor on; less is noise."""
_NOISE = 0.5
"""Milliseconds that make no difference, whatever the factor."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All kernels that were run, on all devices."""

    made: str
    """RFC 3339, UTC."""
    machine: str
    """Stands for this machine and says nothing about it, for a folder that several machines share."""
    back_end: str
    versions: Mapping[str, str]
    """Of the libraries, as they say themselves: `torch` → `2.13.0+cpu`."""
    devices: Mapping[str, str]
    """Device → what its driver calls it."""
    judged: tuple[ComparedResult, ...]
    """In the order in which they ran."""


def data(report: Report) -> dict[str, Any]:
    """Write a report as JSON's values."""
    return {
        "format": FORMAT,
        "made": report.made,
        "machine": report.machine,
        "back_end": report.back_end,
        "versions": dict(report.versions),
        "devices": dict(report.devices),
        "kernels": [_row(one) for one in report.judged],
    }


def _row(one: ComparedResult) -> dict[str, Any]:
    proof, expectation = one.proof, one.expectation
    return {
        "kernel": proof.kernel,
        "device": proof.device,
        "outcome": proof.verdict.value,
        "detail": proof.detail,
        "failed": one.is_failure,
        "error": proof.error,
        "ms": proof.ms,
        "cpu_ms": proof.cpu_ms,
        "first_ms": proof.first_ms,
        "shown_by": proof.shown,
        "slower_than_cpu": proof.is_slower,
        "expected": None
        if expectation is None
        else {
            "outcomes": [outcome.value for outcome in expectation.outcomes],
            "why": expectation.why,
            "source": expectation.source,
        },
    }


def notes(report: Report) -> tuple[str, ...]:
    """Say what a person should know beside the table: sentences."""
    better = [one for one in report.judged if one.is_better]
    return (
        *(f"{_name(one.proof)} works now: drop the expectation of {_outcomes(one)}" for one in better),
        *_slow(report),
    )


def _outcomes(one: ComparedResult) -> str:
    outcomes = one.expectation.outcomes if one.expectation is not None else ()
    return " or ".join(f'"{outcome.value}"' for outcome in outcomes)


def _slow(report: Report) -> Iterator[str]:
    slow = [one.proof for one in report.judged if one.proof.is_slower]
    for device in dict.fromkeys(proof.device for proof in slow):
        names = [proof.kernel for proof in slow if proof.device == device]
        timed = sum(one.proof.device == device and one.proof.cpu_ms is not None for one in report.judged)
        yield f"{device} is slower than the CPU in {len(names)} of {timed} kernels: {', '.join(names)}"


def compared(before: object, after: Report) -> tuple[str, ...]:
    """Compare a report with a kept one of the same machine: sentences, the worst first; () where nothing differs.

    Args:
        before: what was kept, as `json.loads` gives it.
        after: what was found now.
    """
    if not isinstance(before, dict) or before.get("format") != FORMAT or before.get("machine") != after.machine:
        return ()
    rows = {(row["kernel"], row["device"]): row for row in before["kernels"]}
    words = {one.value: one for one in Verdict}
    worse: list[str] = []
    better: list[str] = []
    slower: list[str] = []
    faster: list[str] = []
    for one in after.judged:
        proof = one.proof
        row = rows.get((proof.kernel, proof.device))
        if row is None:
            continue
        was, now = words.get(row["outcome"]), proof.verdict
        if was is not None and was is not now:
            text = f"{_name(proof)}: {now.value}, and was: {was.value}"
            (worse if _rank(now) > _rank(was) else better).append(text)
        elif now is Verdict.WORKS and row["ms"] is not None and proof.ms is not None:
            factor, difference = proof.ms / max(row["ms"], 1e-6), proof.ms - row["ms"]
            text = f"{_name(proof)}: {proof.ms:.2f} ms, and was {row['ms']:.2f} ms"
            if factor > _SLOWER and difference > _NOISE:
                slower.append(f"{text}: {factor:.1f} times slower")
            elif factor < 1 / _SLOWER and -difference > _NOISE:
                faster.append(f"{text}: {1 / factor:.1f} times faster")
    kinds = (("worse", worse), ("slower", slower), ("better", better), ("faster", faster))
    made = datetime.datetime.fromisoformat(before["made"]).astimezone()
    return tuple(f"{kind} than on {made:%Y-%m-%d at %H:%M}: {text}" for kind, texts in kinds for text in texts)


def _rank(verdict: Verdict) -> int:
    return list(Verdict).index(verdict)


def _name(proof: KernelResult) -> str:
    return f"{proof.kernel} on {proof.device}"
