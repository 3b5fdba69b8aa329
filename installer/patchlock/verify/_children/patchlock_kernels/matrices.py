"""Linear algebra: what libraries of the vendor solve."""

from typing import Any

from . import references
from .case import Case
from .inputs import normal, well_posed


def _split(t: Any, a: Any) -> "list[Any]":
    q, r = t.linalg.qr(a)
    return [q @ r, q.T @ q, r.tril(-1) + r.triu().sign().abs()]


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "lstsq": (
        Case(
            "384 × 96",
            normal((384, 96), (384, 16)),
            lambda t, a, b: t.linalg.lstsq(a, b).solution,
            references.normal_equations,
            1e-2,
            is_hybrid=True,
        ),
    ),
    "solve": (
        Case(
            "90 equations",
            well_posed(90),
            lambda t, a, b: t.linalg.solve(a, b),
            references.eliminated,
            1e-3,
            is_hybrid=True,
        ),
        Case(
            "orthogonal and triangular",
            normal((80, 50)),
            _split,
            lambda t, a: [a.double(), t.eye(50, dtype=t.float64), t.ones((50, 50), dtype=t.float64).triu()],
            1e-3,
            is_hybrid=True,
        ),
    ),
}
