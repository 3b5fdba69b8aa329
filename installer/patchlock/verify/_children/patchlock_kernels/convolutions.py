"""Convolutions and what else slides over a signal: dilated, grouped, transposed, in one and two dimensions."""

from typing import Any

from . import references
from .case import Case, Function
from .inputs import normal


def _conv(
    name: str, x: "tuple[int, ...]", w: "tuple[int, ...]", *, kind: str = "float32", bias: bool = False, **how: int
) -> Case:
    shapes = (x, w, (w[0],)) if bias else (x, w)

    def run(t: Any, *given: Any) -> Any:
        return t.nn.functional.conv1d(*given, **how)

    return Case(
        name, normal(*shapes, kind=kind), run, references.convolution(**how), 1e-3 if kind == "float32" else 2e-2
    )


def _transposed(
    name: str,
    x: "tuple[int, ...]",
    w: "tuple[int, ...]",
    *,
    kind: str = "float32",
    stride: int,
    padding: int = 0,
    groups: int = 1,
    extra: int = 0,
) -> Case:
    def run(t: Any, x: Any, w: Any) -> Any:
        how = {"stride": stride, "padding": padding, "groups": groups, "output_padding": extra}
        return t.nn.functional.conv_transpose1d(x, w, **how)

    want = references.transposed_convolution(stride=stride, padding=padding, groups=groups, extra=extra)
    return Case(name, normal(x, w, kind=kind), run, want, 1e-3 if kind == "float32" else 2e-2)


def _plane(name: str, x: "tuple[int, ...]", w: "tuple[int, ...]", *, kind: str = "float32", **how: int) -> Case:
    def run(t: Any, x: Any, w: Any) -> Any:
        return t.nn.functional.conv2d(x, w, **how)

    return Case(
        name, normal(x, w, kind=kind), run, references.plane_convolution(**how), 1e-3 if kind == "float32" else 2e-2
    )


def _sampled(name: str, shape: "tuple[int, ...]", size: int, **how: Any) -> Case:
    def run(t: Any, x: Any) -> Any:
        return t.nn.functional.interpolate(x, size=size, **how)

    halfway = how["mode"] == "linear"
    # Places are computed in float32: of the last of 9000, 4 digits are left behind the point.
    return Case(name, normal(shape), run, references.stretched(size, halfway=halfway), 5e-3 if halfway else 1e-5)


def _pool(
    name: str, function: Function, shape: "tuple[int, ...]", size: int, stride: int, padding: int, *, largest: bool
) -> Case:
    return Case(name, normal(shape), function, references.pooled(size, stride, padding, largest=largest), 1e-5)


def _squares(x: Any) -> Any:
    """Take squares of 2 × 2 apart, so that they can be pooled as rows."""
    rows, columns = x.shape[-2] // 2, x.shape[-1] // 2
    return (
        x.reshape(*x.shape[:-2], rows, 2, columns, 2)
        .transpose(-3, -2)
        .reshape(*x.shape[:-2], rows, columns, 4)
        .double()
    )


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "conv1d": (
        _conv("7 taps", (4, 32, 1024), (64, 32, 7), padding=3),
        _conv("10 taps, every 5, with bias", (2, 1, 16000), (48, 1, 10), bias=True, stride=5),
        _conv("1 tap, 12001 long", (1, 24, 12001), (16, 24, 1), bias=True),
    ),
    "conv1d-dilated": (
        _conv("3 apart", (2, 32, 800), (32, 32, 3), padding=3, dilation=3),
        _conv("9 apart, 5 taps", (1, 16, 4100), (16, 16, 5), padding=18, dilation=9),
    ),
    "conv1d-grouped": (
        _conv("a group for each channel", (2, 96, 400), (96, 1, 31), padding=15, groups=96),
        _conv("8 groups, 64 taps", (1, 64, 300), (64, 8, 64), padding=32, groups=8),
    ),
    "conv1d-f16": (
        _conv("7 taps", (2, 32, 700), (48, 32, 7), kind="float16", padding=3),
        _conv("3 apart, 9001 long", (1, 16, 9001), (16, 16, 3), kind="float16", padding=3, dilation=3),
        _conv("in groups", (1, 32, 300), (32, 1, 31), kind="float16", padding=15, groups=32),
    ),
    "conv-transpose1d": (
        _transposed("8 taps, every 4", (4, 64, 256), (64, 32, 8), stride=4, padding=2),
        _transposed("11 taps, every 5, one more", (1, 24, 1300), (24, 12, 11), stride=5, padding=3, extra=1),
        _transposed("a group for each channel", (1, 16, 500), (16, 1, 12), stride=2, padding=5, groups=16),
    ),
    "conv-transpose1d-f16": (
        _transposed("16 taps, every 8", (1, 32, 200), (32, 16, 16), kind="float16", stride=8, padding=4),
    ),
    "conv2d": (
        _plane("3 × 3", (2, 16, 40, 64), (24, 16, 3, 3), padding=1),
        _plane("5 × 3, every second", (1, 8, 32, 1030), (16, 8, 5, 3), stride=2, padding=2),
        _plane("2 apart, in groups", (1, 16, 48, 48), (16, 2, 3, 3), padding=2, dilation=2, groups=8),
    ),
    "conv2d-f16": (_plane("3 × 3", (1, 16, 32, 64), (16, 16, 3, 3), kind="float16", padding=1),),
    "conv-transpose2d": (
        Case(
            "4 × 4, every second",
            normal((2, 16, 20, 24), (16, 8, 4, 4)),
            lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, stride=2, padding=1),
            references.transposed_plane(stride=2, padding=1),
        ),
    ),
    "interpolate": (
        _sampled("nearest, 3 times", (2, 16, 700), 2100, mode="nearest"),
        _sampled("nearest, by no whole number", (1, 8, 1000), 1723, mode="nearest"),
        _sampled("linear", (2, 8, 501), 1337, mode="linear", align_corners=False),
        _sampled("linear, to fewer", (1, 4, 9000), 3100, mode="linear", align_corners=False),
    ),
    "pool": (
        _pool("mean", lambda t, x: t.nn.functional.avg_pool1d(x, 3, 1, 1), (1, 4, 4001), 3, 1, 1, largest=False),
        _pool("largest", lambda t, x: t.nn.functional.max_pool1d(x, 3, 2, 1), (1, 4, 4001), 3, 2, 1, largest=True),
        Case(
            "mean of squares",
            normal((2, 4, 32, 80)),
            lambda t, x: t.nn.functional.avg_pool2d(x, 2),
            lambda t, x: references.pooled(4, 1, 0, largest=False)(t, _squares(x)).squeeze(-1),
            1e-5,
        ),
        Case(
            "largest of squares",
            normal((2, 4, 32, 80)),
            lambda t, x: t.nn.functional.max_pool2d(x, 2),
            lambda t, x: references.pooled(4, 1, 0, largest=True)(t, _squares(x)).squeeze(-1),
            1e-5,
        ),
        Case(
            "mean of all",
            normal((2, 6, 60, 60)),
            lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1),
            lambda _t, x: x.double().sum((2, 3)) / 3600,
            1e-5,
        ),
        Case(
            "largest of all",
            normal((2, 6, 3777)),
            lambda t, x: t.nn.functional.adaptive_max_pool1d(x, 1).flatten(1),
            lambda t, x: t.tensor([[max(row) for row in one] for one in x.tolist()]),
            1e-5,
        ),
    ),
}
