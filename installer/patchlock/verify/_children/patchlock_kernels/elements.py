"""What is computed number by number, or over a row: elementary functions, activations, comparisons, sums, softmax."""

import cmath
import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

from . import references
from .case import Case, Function
from .inputs import integers, normal, uniform

_SIZE = (3, 1367)
"""No multiple of what devices compute at once."""
_TIMES = 64


def _each(
    name: str, run: Function, value: "Callable[..., Any]", low: float = -4.0, high: float = 4.0, **more: Any
) -> Case:
    """Compute few numbers, and the same ones again and again, as many as a model has."""
    count, tolerance = more.pop("inputs", 1), more.pop("tolerance", 1e-5)
    few, want = uniform(low, high, *[_SIZE] * count, **more), references.by_number(value)

    def inputs(t: Any, r: Any) -> "list[Any]":
        drawn = few(t, r)
        return [*drawn, *(one.repeat(_TIMES, 1) for one in drawn)]

    def both(t: Any, *given: Any) -> "list[Any]":
        return [run(t, *given[:count]), run(t, *given[count:])]

    def reference(t: Any, *given: Any) -> "list[Any]":
        made = want(t, *given[:count])
        return [made, t.cat([made] * _TIMES)]

    return Case(name, inputs, both, reference, tolerance)


def _rows(
    name: str, run: Function, value: "Callable[..., Any]", *shape: int, tolerance: float = 1e-5, **more: Any
) -> Case:
    return Case(name, normal(shape or _SIZE, **more), run, references.by_row(value), tolerance)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def _softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def _softmax(row: "list[float]") -> "list[float]":
    top = max(row)
    parts = [math.exp(x - top) for x in row]
    total = math.fsum(parts)
    return [part / total for part in parts]


def _deviation(row: "list[float]") -> float:
    mean = math.fsum(row) / len(row)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in row) / (len(row) - 1))


def _logarithm_of_sum(row: "list[float]") -> float:
    return max(row) + math.log(math.fsum(math.exp(x - max(row)) for x in row))


def _slanted(slope: float) -> "Callable[[float], float]":
    return lambda x: x if x > 0 else slope * x


def _special(t: Any, _r: Any) -> "list[Any]":
    return [t.tensor([[1.5, math.nan, math.inf, -math.inf, 0.0, -2.0] * 200])]


def _complex(t: Any, x: Any, y: Any) -> Any:
    return t.complex(x, y)


def _powers(t: Any, r: Any) -> "list[Any]":
    base = t.rand(65536, generator=r, dtype=t.float64) * 1.5 + 0.5
    return [base, t.rand(65536, generator=r, dtype=t.float64) * 6 - 3]


_ACTIVATIONS: "dict[str, tuple[Function, Callable[[float], float]]]" = {
    "relu": (lambda t, x: t.relu(x), lambda x: max(x, 0.0)),
    "leaky_relu": (lambda t, x: t.nn.functional.leaky_relu(x, 0.1), _slanted(0.1)),
    "gelu": (lambda t, x: t.nn.functional.gelu(x), _gelu),
    "silu": (lambda t, x: t.nn.functional.silu(x), lambda x: x * _sigmoid(x)),
    "sigmoid": (lambda t, x: t.sigmoid(x), _sigmoid),
    "tanh": (lambda t, x: t.tanh(x), math.tanh),
    "elu": (lambda t, x: t.nn.functional.elu(x), lambda x: x if x > 0 else math.expm1(x)),
    "selu": (
        lambda t, x: t.nn.functional.selu(x),
        lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
    ),
    "softplus": (lambda t, x: t.nn.functional.softplus(x), _softplus),
    "mish": (lambda t, x: t.nn.functional.mish(x), lambda x: x * math.tanh(_softplus(x))),
    "prelu": (lambda t, x: t.nn.functional.prelu(x, t.full((1,), 0.25, device=x.device)), _slanted(0.25)),
    "sine of a snake": (lambda t, x: x + t.sin(x * 3).pow(2) / 3, lambda x: x + math.sin(x * 3) ** 2 / 3),
}
_HALF = ("relu", "leaky_relu", "gelu", "silu", "sigmoid", "tanh")

KERNELS: "dict[str, tuple[Case, ...]]" = {
    "activations": (
        *(_each(name, run, value) for name, (run, value) in _ACTIVATIONS.items()),
        Case(
            "glu",
            normal((4, 2, 2600)),
            lambda t, x: t.nn.functional.glu(x, dim=1),
            lambda _t, x: x.double()[:, :1] / (1 + (-x.double()[:, 1:]).exp()),
            1e-5,
        ),
    ),
    "activations-f16": tuple(
        _each(f"{name} in {kind}", *_ACTIVATIONS[name], kind=kind, tolerance=2e-2)
        for name in _HALF
        for kind in ("float16", "bfloat16")
    ),
    "softmax": (
        _rows("40 wide", lambda t, x: t.softmax(x, dim=-1), _softmax, 60, 40),
        _rows("3001 wide", lambda t, x: t.softmax(x, dim=-1), _softmax, 3, 3001),
        _rows(
            "of logarithms",
            lambda t, x: t.log_softmax(x, dim=-1),
            lambda row: [math.log(p) for p in _softmax(row)],
            20,
            300,
        ),
        _rows(
            "of logarithms, 3001 wide",
            lambda t, x: t.log_softmax(x, dim=-1),
            lambda row: [math.log(p) for p in _softmax(row)],
            3,
            3001,
        ),
        _rows("logarithm of the sum", lambda t, x: t.logsumexp(x, dim=-1), _logarithm_of_sum, 20, 1300),
    ),
    "softmax-f16": (
        _rows("40 wide", lambda t, x: t.softmax(x, dim=-1), _softmax, 60, 40, tolerance=2e-2, kind="float16"),
        _rows(
            "3001 wide",
            lambda t, x: t.softmax(x, dim=-1),
            _softmax,
            3,
            3001,
            tolerance=2e-2,
            kind="float16",
        ),
    ),
    "elementary": (
        _each("exp", lambda t, x: t.exp(x), math.exp),
        _each("log", lambda t, x: t.log(x), math.log, 0.01, 9),
        _each("log10", lambda t, x: t.log10(x), math.log10, 0.01, 9),
        _each("log2", lambda t, x: t.log2(x), math.log2, 0.01, 9),
        _each("log1p", lambda t, x: t.log1p(x), math.log1p, -0.9, 9),
        _each("sqrt", lambda t, x: t.sqrt(x), math.sqrt, 0, 9),
        _each("rsqrt", lambda t, x: t.rsqrt(x), lambda x: 1 / math.sqrt(x), 0.1, 9),
        _each("reciprocal", lambda t, x: t.reciprocal(x), lambda x: 1 / x, 0.1, 9),
        _each("sin", lambda t, x: t.sin(x), math.sin, -40, 40),
        _each("cos", lambda t, x: t.cos(x), math.cos, -40, 40),
        _each("sinc", lambda t, x: t.sinc(x), lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.0),
        _each("atan2", lambda t, x, y: t.atan2(x, y), math.atan2, inputs=2),
        _each("pow", lambda t, x, y: t.pow(x, y), math.pow, 0.1, 3, inputs=2),
        _each("abs", lambda t, x: t.abs(x), abs),
        _each("sign", lambda t, x: t.sign(x), lambda x: math.copysign(1.0, x) if x else 0.0),
        _each("clamp", lambda t, x: t.clamp(x, -1, 1.5), lambda x: min(max(x, -1.0), 1.5)),
        _each("round", lambda t, x: t.round(x), lambda x: float(round(x))),
        _each(
            "floor and ceil", lambda t, x: t.floor(x) * 100 + t.ceil(x), lambda x: math.floor(x) * 100.0 + math.ceil(x)
        ),
        _each(
            "frac and trunc", lambda t, x: t.frac(x) + t.trunc(x) * 3, lambda x: math.modf(x)[0] + math.modf(x)[1] * 3
        ),
        _each(
            "sums and products",
            lambda t, x, y: t.add(x, y, alpha=2) + t.mul(x, y) - t.sub(y, x),
            lambda x, y: x + 2 * y + x * y - y + x,
            inputs=2,
        ),
        _each(
            "quotients",
            lambda t, x, y: t.div(x, y) + t.remainder(x, y) * 2,
            lambda x, y: x / y + (x % y) * 2,
            0.5,
            9,
            inputs=2,
        ),
        _each("lerp", lambda t, x, y: t.lerp(x, y, 0.3), lambda x, y: x + 0.3 * (y - x), inputs=2),
        _each("erf", lambda t, x: t.erf(x), math.erf),
        Case(
            "whole quotients",
            integers(1, 1 << 40, (2000,), (2000,)),
            lambda t, a, b: t.div(a, b % 1000 + 1, rounding_mode="floor"),
            references.by_number(lambda a, b: a // (b % 1000 + 1)),
            0.0,
        ),
    ),
    "comparisons": (
        _each(
            "less or equal",
            lambda t, x, y: t.le(x, y) & t.lt(x, 2),
            lambda x, y: x <= y and x < 2,
            inputs=2,
            tolerance=0.0,
        ),
        _each(
            "greater or equal",
            lambda t, x, y: t.ge(x, y) | t.gt(x, 2),
            lambda x, y: x >= y or x > 2,
            inputs=2,
            tolerance=0.0,
        ),
        Case(
            "equal, or not",
            integers(0, 4, (3000,), (3000,)),
            lambda t, a, b: t.logical_and(t.eq(a, b), t.ne(a, 2)),
            references.by_number(lambda a, b: a == b and a != 2),
            0.0,
        ),
        Case(
            "no number, or no end",
            _special,
            lambda t, x: t.isnan(x) * 4 + t.isinf(x) * 2 + t.isfinite(x) * 1,
            references.by_number(lambda x: math.isnan(x) * 4 + math.isinf(x) * 2 + math.isfinite(x) * 1),
            0.0,
        ),
        _each("where", lambda t, x, y: t.where(x > y, x * 2, y), lambda x, y: x * 2 if x > y else y, inputs=2),
        _rows(
            "any and all",
            lambda t, x: t.any(x > 3, dim=-1) * 2 + t.all(x < 2.5, dim=-1),
            lambda row: any(x > 3 for x in row) * 2 + all(x < 2.5 for x in row),
            300,
            100,
            tolerance=0.0,
        ),
    ),
    "complex": (
        _each("angle", lambda t, x, y: t.angle(_complex(t, x, y)), lambda x, y: cmath.phase(complex(x, y)), inputs=2),
        _each("absolute value", lambda t, x, y: t.abs(_complex(t, x, y)), lambda x, y: abs(complex(x, y)), inputs=2),
        _each("polar", lambda t, x, y: t.view_as_real(t.polar(x, y)), cmath.rect, 0.1, 4, inputs=2),
        _each(
            "product with the conjugate of another",
            lambda t, x, y: t.view_as_real(_complex(t, x, y) * t.conj(_complex(t, y, x * 3))),
            lambda x, y: complex(x, y) * complex(y, -x * 3),
            inputs=2,
        ),
        _each(
            "exponential",
            lambda t, x, y: t.view_as_real(t.exp(_complex(t, x, y))),
            lambda x, y: cmath.exp(complex(x, y)),
            inputs=2,
        ),
    ),
    "reductions": (
        _rows("sum", lambda t, x: t.sum(x, dim=-1), math.fsum, tolerance=1e-4),
        _rows("sum of 100003", lambda t, x: t.sum(x, dim=-1), math.fsum, 2, 100003, tolerance=1e-4),
        _rows("mean", lambda t, x: t.mean(x, dim=-1), statistics.fmean, tolerance=1e-4),
        _rows(
            "deviation and variance",
            lambda t, x: t.std(x, dim=-1) + t.var(x, dim=-1),
            lambda row: _deviation(row) + _deviation(row) ** 2,
            6,
            5001,
            tolerance=1e-4,
        ),
        _rows(
            "norm",
            lambda t, x: t.linalg.norm(x, dim=-1),
            lambda row: math.sqrt(math.fsum(x * x for x in row)),
            tolerance=1e-4,
        ),
        _rows("product", lambda t, x: t.prod(x, dim=-1), math.prod, 1040, 9, tolerance=1e-4),
        _rows(
            "largest and smallest",
            lambda t, x: t.amax(x, dim=-1) * 2 + t.amin(x, dim=-1),
            lambda row: max(row) * 2 + min(row),
        ),
        _rows(
            "where they are",
            lambda t, x: t.argmax(x, dim=-1) * 10000 + t.argmin(x, dim=-1),
            lambda row: row.index(max(row)) * 10000 + row.index(min(row)),
            40,
            1025,
            tolerance=0.0,
        ),
        _rows("median", lambda t, x: t.median(x, dim=-1)[0], statistics.median_low),
        _rows(
            "how many",
            lambda t, x: t.count_nonzero(x > 0.5, dim=-1),
            lambda row: sum(x > 0.5 for x in row),
            tolerance=0.0,
        ),
        _rows("differences", lambda t, x: t.diff(x, dim=-1), lambda row: [b - a for a, b in itertools.pairwise(row)]),
        _rows("sum in float16", lambda t, x: t.sum(x, dim=-1), math.fsum, 20, 1025, tolerance=2e-2, kind="float16"),
    ),
    "cumsum": (
        _rows(
            "100 long",
            lambda t, x: t.cumsum(x, dim=-1),
            lambda row: list(itertools.accumulate(row)),
            40,
            100,
            tolerance=1e-4,
        ),
        _rows(
            "30001 long",
            lambda t, x: t.cumsum(x, dim=-1),
            lambda row: list(itertools.accumulate(row)),
            2,
            30001,
            tolerance=1e-3,
        ),
        Case(
            "of products",
            uniform(0.99, 1.01, (4, 1060)),
            lambda t, x: t.cumprod(x, dim=-1),
            references.by_row(lambda row: list(itertools.accumulate(row, lambda a, b: a * b))),
            1e-4,
        ),
    ),
    "cumsum-i64": (
        Case(
            "2048 long",
            integers(-(1 << 40), 1 << 40, (64, 2048)),
            lambda t, x: t.cumsum(x, dim=1),
            references.by_row(lambda row: list(itertools.accumulate(row))),
            0.0,
        ),
    ),
    "pow-f64": (
        Case(
            "65536 pairs",
            _powers,
            lambda t, base, exponent: t.pow(base, exponent),
            references.by_number(math.pow),
            1e-9,
        ),
    ),
}
