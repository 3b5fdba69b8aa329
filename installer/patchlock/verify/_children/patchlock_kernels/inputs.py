"""Inputs of the kernels: seeded, on the CPU. Each function gives one that takes torch and its generator."""

from typing import Any

from .case import Function


def normal(*shapes: "tuple[int, ...]", kind: str = "float32", scale: float = 1.0) -> Function:
    """Draw tensors of a normal distribution."""
    return lambda t, r: [(t.randn(shape, generator=r) * scale).to(getattr(t, kind)) for shape in shapes]


def uniform(low: float, high: float, *shapes: "tuple[int, ...]", kind: str = "float32") -> Function:
    """Draw tensors of numbers between two bounds."""
    return lambda t, r: [(t.rand(shape, generator=r) * (high - low) + low).to(getattr(t, kind)) for shape in shapes]


def integers(low: int, high: int, *shapes: "tuple[int, ...]") -> Function:
    """Draw tensors of int64, the upper bound excluded."""
    return lambda t, r: [t.randint(low, high, shape, generator=r) for shape in shapes]


def together(*parts: Function) -> Function:
    """Give the inputs of several one after another."""
    return lambda t, r: [one for part in parts for one in part(t, r)]


def shuffled(*lengths: int) -> Function:
    """Give the numbers below each length in any order."""
    return lambda t, r: [t.randperm(length, generator=r) for length in lengths]


def nothing(size: int) -> Function:
    """Give ones: all that an operation takes from them is where to compute, and how many."""
    return lambda t, _r: [t.ones(size)]


def window(size: int, *shapes: "tuple[int, ...]") -> Function:
    """Draw signals, and give Hann's window of a size."""
    return lambda t, r: [*(t.randn(shape, generator=r) for shape in shapes), t.hann_window(size)]


def spectrum(size: int, hop: int, length: int) -> Function:
    """Give a spectrum that some signal has, real and imaginary parts apart, and its window."""

    def make(t: Any, r: Any) -> "list[Any]":
        own = t.hann_window(size)
        parts = t.stft(t.randn((2, length), generator=r), size, hop, window=own, return_complex=True)
        return [parts.real.contiguous(), parts.imag.contiguous(), own]

    return make


def weights(size: int, gates: int, layers: int, directions: int, *shape: int) -> Function:
    """Draw a sequence and the weights of a recurrent network whose states are as wide as its input."""

    def make(t: Any, r: Any) -> "list[Any]":
        drawn = []
        for layer in range(layers):
            wide = size * (directions if layer else 1)
            for _ in range(directions):
                shapes = [(gates * size, wide), (gates * size, size), (gates * size,), (gates * size,)]
                drawn += [(t.rand(one, generator=r) - 0.5) / 4 for one in shapes]
        return [t.randn((*shape, size), generator=r), *drawn]

    return make


def scores(t: Any, r: Any) -> "list[Any]":
    """Give weights to draw by, one of which is nothing."""
    drawn = t.rand((4, 8), generator=r) + 0.25
    drawn[:, 3] = 0.0  # what has no weight must never be drawn
    return [drawn]


def well_posed(size: int) -> Function:
    """Give a matrix that is far from singular, and a right-hand side."""
    return lambda t, r: [t.randn((size, size), generator=r) / 8 + 4 * t.eye(size), t.randn((size, 5), generator=r)]


def mask(t: Any, r: Any) -> "list[Any]":
    """Give queries, keys and values, and which keys each query may see; each sees one at least."""
    seen = t.rand((2, 1, 100, 144), generator=r) > 0.4
    seen[..., 0] = True
    return [t.randn((2, 4, length, 64), generator=r) for length in (100, 144, 144)] + [seen]
