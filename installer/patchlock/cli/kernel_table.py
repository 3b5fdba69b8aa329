"""What `verify` proved of each kernel, as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchlock.proofs import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchlock.expectations import Judged
    from patchlock.proofs import Proof

_HEAD = ("kernel", "device", "outcome", "error", "time", "on the CPU", "")
_NUMBERS = ("error", "time", "on the CPU")


def lines(judged: Iterable[Judged]) -> tuple[str, ...]:
    """Write one line for each kernel below a head, and under it why it failed; () where there was none."""
    rows = [(_row(one), _why(one)) for one in judged]
    if not rows:
        return ()
    widths = [
        max(len(head), *(len(cells[i]) for cells, _ in rows)) if any(cells[i] for cells, _ in rows) else 0
        for i, head in enumerate(_HEAD)
    ]
    made = [_line(_HEAD, widths)]
    for cells, why in rows:
        made.append(_line(cells, widths))
        made += [f"    {line}" for line in why]
    return tuple(made)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write a row; a column that is empty in all rows is left out."""
    adjusted = (
        cell.rjust(width) if head in _NUMBERS else cell.ljust(width)
        for head, cell, width in zip(_HEAD, cells, widths, strict=True)
        if width
    )
    return "  ".join(adjusted).rstrip()


def _row(one: Judged) -> tuple[str, ...]:
    proof = one.proof
    outcome = proof.verdict.value if not one.is_failure else proof.verdict.value.upper()
    error = "" if proof.error is None or proof.verdict is Verdict.UNAVAILABLE else f"{proof.error:.1e}"
    return (proof.kernel, proof.device, outcome, error, _time(proof.ms), _time(proof.cpu_ms), _ratio(proof))


def _time(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.2f} ms"


def _ratio(proof: Proof) -> str:
    if proof.ms is None or proof.cpu_ms is None or proof.ms <= 0 or proof.cpu_ms <= 0:
        return ""
    if proof.is_slower:
        return f"{proof.ms / proof.cpu_ms:.1f} times slower than the CPU"
    return f"{proof.cpu_ms / proof.ms:.1f} times faster" if proof.cpu_ms > proof.ms else ""


def _why(one: Judged) -> tuple[str, ...]:
    said = (one.proof.detail,) if one.proof.detail else ()
    if one.expectation is None:
        return said
    known = "as expected" if not one.is_failure else "not as expected"
    if one.is_better:
        known = "it was expected not to work"
    return (*said, f"{known}: {one.expectation.why} ({one.expectation.source})")
