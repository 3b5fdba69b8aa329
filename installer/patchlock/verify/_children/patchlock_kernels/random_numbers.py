"""What is drawn by chance: judged by how often, as no two devices draw the same."""

import statistics
from typing import Any

from . import references
from .case import Case, Function
from .inputs import nothing, scores

_SIZE = 200_000


def _drawn(
    name: str, function: Function, mean: float, deviation: float, low: float, middle: float, high: float
) -> Case:
    def run(t: Any, x: Any) -> Any:
        return function(t, x)

    def want(t: Any, _x: Any) -> Any:
        return t.tensor([mean, deviation, low, middle, high], dtype=t.float64)

    return Case(name, nothing(_SIZE), run, want, 2e-2, read=references.moments)


_NORMAL = statistics.NormalDist()

KERNELS: "dict[str, tuple[Case, ...]]" = {
    "random": (
        _drawn(
            "randn", lambda t, x: t.randn(_SIZE, device=x.device), 0, 1, _NORMAL.inv_cdf(0.1), 0, _NORMAL.inv_cdf(0.9)
        ),
        _drawn("rand", lambda t, x: t.rand_like(x), 0.5, 12**-0.5, 0.1, 0.5, 0.9),
        _drawn(
            "randint",
            lambda t, x: t.randint(0, 1001, (_SIZE,), device=x.device),
            500,
            (1002 * 1000 / 12) ** 0.5,
            100,
            500,
            900,
        ),
        Case(
            "randperm",
            nothing(5000),
            lambda t, x: t.randperm(5000, device=x.device),
            lambda t, _x: t.tensor(list(range(5000))),
            0.0,
            read=lambda t, drawn, _x: t.tensor(sorted(drawn.tolist())) + (drawn[:50] == t.arange(50)).all() * 1,
        ),
    ),
    "multinomial": (
        Case(
            "16384 of 8",
            scores,
            lambda t, weights: t.multinomial(weights, 16384, replacement=True),
            lambda _t, weights: weights.double() / weights.double().sum(1, keepdim=True),
            0.1,
            read=references.shares_of,
        ),
        Case(
            "one of 8, often",
            scores,
            lambda t, weights: t.cat(
                [t.multinomial(weights.repeat(2000, 1), 1).reshape(2000, 4).T for _ in range(4)], dim=1
            ),
            lambda _t, weights: weights.double() / weights.double().sum(1, keepdim=True),
            0.15,
            read=references.shares_of,
        ),
    ),
}
