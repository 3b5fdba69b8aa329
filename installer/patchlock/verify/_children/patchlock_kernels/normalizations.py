"""Normalizations, narrow and wide, in float32 and in half precision."""

import math
from typing import Any

from . import references
from .case import Case
from .inputs import normal, together, uniform


def _layer(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)


def _group(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.group_norm(x, 8, weight, bias)


def _batch(t: Any, x: Any, *given: Any) -> Any:
    return t.nn.functional.batch_norm(x, *given)


def _instance(t: Any, x: Any) -> Any:
    return t.nn.functional.instance_norm(x)


def _root(_t: Any, x: Any, weight: Any) -> Any:
    return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def _root_by_number(t: Any, x: Any, weight: Any) -> Any:
    rows = x.double().flatten(0, -2).tolist()
    roots = t.tensor([1 / math.sqrt(math.fsum(v * v for v in row) / len(row) + 1e-6) for row in rows], dtype=t.float64)
    return x.double() * roots.reshape(*x.shape[:-1], 1) * weight.double()


def _cosines(t: Any, a: Any, b: Any) -> Any:
    def of(x: "list[float]", y: "list[float]") -> float:
        lengths = math.fsum(v * v for v in x) * math.fsum(v * v for v in y)
        return math.fsum(v * w for v, w in zip(x, y, strict=True)) / math.sqrt(lengths)

    return t.tensor([of(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


def _statistics(*shape: int) -> Any:
    channels = (shape[1],)
    return together(normal(shape, channels), uniform(0.5, 2.0, channels), normal(channels, channels))


_LAST, _GROUPS = references.standardized([-1]), references.standardized([-1], groups=8)

KERNELS: "dict[str, tuple[Case, ...]]" = {
    "layer-norm": (
        Case("768 wide", normal((4, 50, 768), (768,), (768,)), _layer, _LAST, 1e-4),
        Case("1283 wide", normal((5, 1283), (1283,), (1283,)), _layer, _LAST, 1e-4),
        Case("rms, 1024 wide", normal((2, 30, 1024), (1024,)), _root, _root_by_number, 1e-4),
    ),
    "group-norm": (
        Case("8 groups", normal((2, 64, 300), (64,), (64,)), _group, _GROUPS, 1e-4),
        Case("20000 long", normal((1, 8, 20000), (8,), (8,)), _group, _GROUPS, 1e-4),
    ),
    "batch-norm": (
        Case("in one dimension", _statistics(3, 40, 1500), _batch, references.with_statistics, 1e-4),
        Case("in two dimensions", _statistics(2, 16, 20, 33), _batch, references.with_statistics, 1e-4),
        Case("of each instance", normal((2, 16, 1900)), _instance, references.standardized([-1]), 1e-4),
    ),
    "norms-f16": (
        Case("of layers", normal((4, 50, 768), (768,), (768,), kind="float16"), _layer, _LAST, 2e-2),
        Case("of groups", normal((2, 64, 300), (64,), (64,), kind="float16"), _group, _GROUPS, 2e-2),
        Case("of layers, in bfloat16", normal((4, 50, 768), (768,), (768,), kind="bfloat16"), _layer, _LAST, 5e-2),
    ),
    "normalize": (
        Case(
            "to length 1",
            normal((9, 1256)),
            lambda t, x: t.nn.functional.normalize(x, dim=-1),
            lambda _t, x: x.double() / (x.double() ** 2).sum(-1, keepdim=True).sqrt(),
            1e-5,
        ),
        Case(
            "cosine of two",
            normal((9, 1256), (9, 1256)),
            lambda t, a, b: t.nn.functional.cosine_similarity(a, b, dim=-1),
            _cosines,
            1e-4,
        ),
    ),
}
