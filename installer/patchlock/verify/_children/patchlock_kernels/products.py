"""Products of matrices: of every type of numbers, alone and in batches, below and above a thousand."""

from typing import Any

from . import references
from .case import Case
from .inputs import normal


def _product(_t: Any, a: Any, b: Any) -> Any:
    return a @ b


def _by_directions(t: Any, made: Any, _a: Any, b: Any) -> Any:
    return made.double() @ references.directions(t, b.shape[-1])


def _multiplied(kind: str, tolerance: float) -> "tuple[Case, ...]":
    return (
        Case("384 × 384", normal((384, 384), (384, 384), kind=kind), _product, references.products, tolerance),
        _large("1031 × 1283 × 1537", (1031, 1283, 1537), kind, tolerance),
    )


def _large(name: str, sizes: "tuple[int, int, int]", kind: str, tolerance: float) -> Case:
    drawn = normal(sizes[:2], sizes[1:], kind=kind)
    return Case(name, drawn, _product, references.seen_by_directions, tolerance, read=_by_directions)


def _linear(t: Any, x: Any, w: Any, *bias: Any) -> Any:
    return t.nn.functional.linear(x, w, *bias)


def _affine(t: Any, x: Any, w: Any, *bias: Any) -> Any:
    flat = references.products(t, x.flatten(0, -2), w.T) + sum(one.double() for one in bias)
    return flat.reshape(*x.shape[:-1], -1)


def _batched(t: Any, a: Any, b: Any) -> Any:
    pairs = zip(a.flatten(0, -3), b.flatten(0, -3), strict=True)
    return t.stack([references.products(t, one, other) for one, other in pairs]).reshape(*a.shape[:-1], -1)


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "mm-f32": _multiplied("float32", 1e-4),
    "mm-f16": _multiplied("float16", 2e-2),
    "mm-bf16": _multiplied("bfloat16", 5e-2),
    "mm-large": (
        _large("1280 × 2048 × 1152", (1280, 2048, 1152), "float32", 1e-4),
        _large("3 × 2051 × 4099", (3, 2051, 4099), "float32", 1e-4),
    ),
    "linear": (
        Case("256 rows", normal((256, 512), (384, 512), (384,)), _linear, _affine, 1e-4),
        Case("one row", normal((1, 1, 768), (1100, 768), (1100,)), _linear, _affine, 1e-4),
        Case("a batch of 3", normal((3, 77, 192), (131, 192)), _linear, _affine, 1e-4),
    ),
    "linear-f16": (
        Case("a batch of 3", normal((3, 77, 192), (256, 192), (256,), kind="float16"), _linear, _affine, 2e-2),
        Case("one row", normal((1, 1, 768), (1100, 768), (1100,), kind="float16"), _linear, _affine, 2e-2),
    ),
    "bmm": (
        Case("a batch of 8", normal((8, 160, 160), (8, 160, 160)), lambda t, a, b: t.bmm(a, b), _batched, 1e-4),
        Case("a batch of 37", normal((37, 24, 33), (37, 33, 65)), lambda t, a, b: t.bmm(a, b), _batched, 1e-4),
    ),
    "bmm-f16": (
        Case(
            "a batch of 6",
            normal((6, 70, 64), (6, 64, 70), kind="float16"),
            lambda t, a, b: t.bmm(a, b),
            _batched,
            2e-2,
        ),
    ),
    "einsum": (
        Case(
            "bhqd,bhkd->bhqk",
            normal((2, 4, 50, 32), (2, 4, 61, 32)),
            lambda t, q, k: t.einsum("bhqd,bhkd->bhqk", q, k),
            lambda t, q, k: _batched(t, q, k.transpose(-1, -2)),
            1e-4,
        ),
        Case(
            "i,j->ij",
            normal((700,), (300,)),
            lambda t, a, b: t.outer(a, b),
            lambda _t, a, b: a.double()[:, None] * b.double(),
            1e-4,
        ),
        Case(
            "a row for each of a batch",
            normal((5, 41, 64), (64, 19)),
            lambda t, a, b: t.matmul(a, b),
            lambda t, a, b: _batched(t, a, b.expand(5, 64, 19)),
            1e-4,
        ),
    ),
}
