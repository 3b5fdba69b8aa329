"""The same as the kernels compute, by another way, in float64 on the CPU; where numbers are few, in Python's own.

A transform goes by its matrix, a recurrence step by step, a convolution as a sum of products, a large product by what
it does to other vectors: so that a check can fail on the CPU too, where the same library would compute both sides.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from .case import Function


def products(t: Any, a: Any, b: Any) -> Any:
    """Multiply two matrices as a sum of outer products."""
    total = t.zeros((a.shape[0], b.shape[1]), dtype=t.float64)
    for column, row in zip(a.double().T, b.double(), strict=True):
        total.addcmul_(column[:, None], row[None, :])
    return total


def directions(t: Any, columns: int) -> Any:
    """Give two vectors that no wrong column of a product is orthogonal to."""
    angles = t.arange(columns, dtype=t.float64)
    return t.stack([(angles * 0.7 + 1).cos() + 1.5, (angles * 1.3).sin() + 1.5], dim=1)


def seen_by_directions(t: Any, a: Any, b: Any) -> Any:
    """Say what the product of two matrices makes of two vectors, without making the product: Freivalds' check."""
    return a.double() @ (b.double() @ directions(t, b.shape[-1]))


def tensor(t: Any, values: "list[Any]") -> Any:
    """Make a tensor of Python's numbers: truths and whole ones as they are, others in float64, complex as pairs."""
    made = t.tensor(values)
    if made.dtype == t.complex64:
        return t.view_as_real(t.tensor(values, dtype=t.complex128))
    return made if made.dtype in {t.bool, t.int64} else t.tensor(values, dtype=t.float64)


def by_number(function: "Callable[..., Any]") -> Function:
    """Apply a function of Python's numbers to each number, or to each pair of them."""

    def reference(t: Any, *inputs: Any) -> Any:
        flat = zip(*(one.flatten().tolist() for one in inputs), strict=True)
        made = tensor(t, [function(*numbers) for numbers in flat])
        return made.reshape(*inputs[0].shape, *made.shape[1:])

    return reference


def by_row(function: "Callable[..., Any]") -> Function:
    """Apply a function of lists to each row of a matrix, and to the same row of others."""
    return lambda t, *inputs: tensor(t, [function(*rows) for rows in zip(*(x.tolist() for x in inputs), strict=True)])


def spectrum_matrix(t: Any, size: int) -> Any:
    """Give cosines and sines of the discrete Fourier transform, (size, 2 * (size // 2 + 1)), interleaved."""
    turns = t.arange(size, dtype=t.float64)[:, None] * t.arange(size // 2 + 1, dtype=t.float64)[None, :]
    angles = (turns % size) * (2 * math.pi / size)
    return t.stack([angles.cos(), -angles.sin()], dim=-1).reshape(size, -1)


def short_time(size: int, hop: int) -> Function:
    """Transform windowed frames of a signal that is reflected at its ends, by the matrix."""

    def reference(t: Any, x: Any, window: Any) -> Any:
        half = size // 2
        padded = t.cat([x[:, 1 : half + 1].flip(1), x, x[:, -half - 1 : -1].flip(1)], dim=1).double()
        frames = padded.unfold(1, size, hop) * window.double()
        parts = (frames @ spectrum_matrix(t, size)).reshape(x.shape[0], -1, half + 1, 2)
        return parts.transpose(1, 2)

    return reference


def overlap_added(size: int, hop: int, length: int) -> Function:
    """Turn a spectrum into frames by the matrix, add them where they lie, and divide by what the windows add up to."""

    def reference(t: Any, real: Any, imaginary: Any, window: Any) -> Any:
        matrix = spectrum_matrix(t, size).reshape(size, -1, 2)
        counts = t.full((size // 2 + 1,), 2.0, dtype=t.float64)
        counts[0] = counts[-1] = 1.0
        parts = t.einsum("bft,nf->btn", real.double() * counts[:, None], matrix[..., 0])
        parts += t.einsum("bft,nf->btn", imaginary.double() * counts[:, None], matrix[..., 1])
        frames = parts / size * window.double()
        total = t.zeros((real.shape[0], (frames.shape[1] - 1) * hop + size), dtype=t.float64)
        weight = t.zeros(total.shape[1], dtype=t.float64)
        for index, frame in enumerate(frames.unbind(1)):
            total[:, index * hop : index * hop + size] += frame
            weight[index * hop : index * hop + size] += window.double() ** 2
        half = size // 2
        return total[:, half : half + length] / weight[half : half + length]

    return reference


def half_transform(t: Any, x: Any) -> Any:
    """Transform rows of real numbers by the matrix."""
    size = x.shape[-1]
    return (x.double() @ spectrum_matrix(t, size)).reshape(*x.shape[:-1], -1, 2)


def from_half(t: Any, real: Any, imaginary: Any) -> Any:
    """Turn half a spectrum into real numbers by the matrix."""
    size = 2 * (real.shape[-1] - 1)
    matrix = spectrum_matrix(t, size).reshape(size, -1, 2)
    counts = t.full((real.shape[-1],), 2.0, dtype=t.float64)
    counts[0] = counts[-1] = 1.0
    return ((real.double() * counts) @ matrix[..., 0].T + (imaginary.double() * counts) @ matrix[..., 1].T) / size


def whole_transform(sign: int) -> Function:
    """Transform complex numbers by the matrix: forwards (-1), or backwards (1)."""

    def reference(t: Any, real: Any, imaginary: Any) -> Any:
        size = real.shape[-1]
        turns = t.arange(size, dtype=t.float64)[:, None] * t.arange(size, dtype=t.float64)[None, :]
        angles = (turns % size) * (2 * math.pi / size)
        cosines, sines, a, b = angles.cos(), sign * angles.sin(), real.double(), imaginary.double()
        made = t.stack([a @ cosines - b @ sines, a @ sines + b @ cosines], dim=-1)
        return made / size if sign > 0 else made

    return reference


def convolution(*, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Function:
    """Convolve in one dimension as a sum over the taps."""

    def reference(t: Any, x: Any, w: Any, *bias: Any) -> Any:
        padded = t.nn.functional.pad(x.double(), (padding, padding))
        taps = w.shape[-1]
        length = (padded.shape[-1] - dilation * (taps - 1) - 1) // stride + 1
        inside = padded.reshape(x.shape[0], groups, -1, padded.shape[-1])
        weight = w.double().reshape(groups, -1, w.shape[1], taps)
        total = t.zeros((x.shape[0], groups, weight.shape[1], length), dtype=t.float64)
        for k in range(taps):
            part = inside[..., k * dilation : k * dilation + stride * (length - 1) + 1 : stride]
            total += t.einsum("bgil,goi->bgol", part, weight[..., k])
        made = total.flatten(1, 2)
        return made + bias[0].double()[:, None] if bias else made

    return reference


def transposed_convolution(*, stride: int, padding: int = 0, groups: int = 1, extra: int = 0) -> Function:
    """Convolve backwards in one dimension: every input adds its taps where they lie."""

    def reference(t: Any, x: Any, w: Any) -> Any:
        length, taps = x.shape[-1], w.shape[-1]
        inside = x.double().reshape(x.shape[0], groups, -1, length)
        weight = w.double().reshape(groups, -1, w.shape[1], taps)
        wide = t.zeros((x.shape[0], groups, w.shape[1], (length - 1) * stride + taps + extra), dtype=t.float64)
        for k in range(taps):
            wide[..., k : k + (length - 1) * stride + 1 : stride] += t.einsum("bgil,gio->bgol", inside, weight[..., k])
        return wide[..., padding : wide.shape[-1] - padding].flatten(1, 2)

    return reference


def plane_convolution(*, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Function:
    """Convolve in two dimensions as a sum over the taps."""

    def reference(t: Any, x: Any, w: Any) -> Any:
        padded = t.nn.functional.pad(x.double(), (padding,) * 4)
        high, wide = w.shape[-2:]
        rows = (padded.shape[-2] - dilation * (high - 1) - 1) // stride + 1
        columns = (padded.shape[-1] - dilation * (wide - 1) - 1) // stride + 1
        inside = padded.reshape(x.shape[0], groups, -1, *padded.shape[-2:])
        weight = w.double().reshape(groups, -1, *w.shape[1:])
        total = t.zeros((x.shape[0], groups, weight.shape[1], rows, columns), dtype=t.float64)
        for i in range(high):
            for j in range(wide):
                part = inside[..., i * dilation :: stride, j * dilation :: stride][..., :rows, :columns]
                total += t.einsum("bgirc,goi->bgorc", part, weight[..., i, j])
        return total.flatten(1, 2)

    return reference


def transposed_plane(*, stride: int, padding: int) -> Function:
    """Convolve backwards in two dimensions."""

    def reference(t: Any, x: Any, w: Any) -> Any:
        rows, columns = x.shape[-2:]
        high, wide = w.shape[-2:]
        size = ((rows - 1) * stride + high, (columns - 1) * stride + wide)
        total = t.zeros((x.shape[0], w.shape[1], *size), dtype=t.float64)
        for i in range(high):
            for j in range(wide):
                part = total[..., i : i + (rows - 1) * stride + 1 : stride, j : j + (columns - 1) * stride + 1 : stride]
                part += t.einsum("birc,io->borc", x.double(), w.double()[:, :, i, j])
        return total[..., padding : size[0] - padding, padding : size[1] - padding]

    return reference


def attention(*, causal: bool = False) -> Function:
    """Weigh values by the exponentials of scores; a mask of truths hides keys, one of numbers is added."""

    def reference(t: Any, q: Any, k: Any, v: Any, *masks: Any) -> Any:
        scores = t.einsum("bhqd,bhkd->bhqk", q.double(), k.double()) / math.sqrt(q.shape[-1])
        for mask in masks:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == t.bool else scores + mask.double()
        if causal:
            scores = scores.masked_fill(t.ones(scores.shape[-2:], dtype=t.bool).triu(1), -math.inf)
        shares = scores.exp()
        return t.einsum("bhqk,bhkd->bhqd", shares / shares.sum(-1, keepdim=True), v.double())

    return reference


def heads(count: int) -> Function:
    """Attend as a layer with heads does: project, attend, join, project."""

    def reference(t: Any, x: Any, inward: Any, bias: Any, outward: Any, last: Any) -> Any:
        length, batch, size = x.shape
        parts = (x.double() @ inward.double().T + bias.double()).reshape(length, batch, 3, count, -1)
        q, k, v = parts.permute(2, 1, 3, 0, 4).unbind(0)
        joined = attention()(t, q, k, v).permute(2, 0, 1, 3).reshape(length, batch, size)
        return joined @ outward.double().T + last.double()

    return reference


def long_memory(t: Any, x: Any, *weights: Any) -> Any:
    """Run a long short-term memory step by step, layer by layer."""
    layer = x.double()
    for first in range(0, len(weights), 4):
        layer = _memory(t, layer, weights[first : first + 4])
    return layer


def both_ways(step: Function) -> Function:
    """Run one layer of a recurrence in both directions."""

    def reference(t: Any, x: Any, *weights: Any) -> Any:
        forward = step(t, x.double(), weights[:4])
        backward = step(t, x.double().flip(1), weights[4:]).flip(1)
        return t.cat([forward, backward], dim=-1)

    return reference


def _memory(t: Any, layer: Any, given: "Sequence[Any]") -> Any:
    wi, wh, bi, bh = (w.double() for w in given)
    state = memory = t.zeros((layer.shape[0], wh.shape[1]), dtype=t.float64)
    steps = []
    for step in layer.unbind(1):
        i, f, g, o = (step @ wi.T + bi + state @ wh.T + bh).chunk(4, dim=1)
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
        state = o.sigmoid() * memory.tanh()
        steps.append(state)
    return t.stack(steps, dim=1)


def _gated(t: Any, layer: Any, given: "Sequence[Any]") -> Any:
    wi, wh, bi, bh = (w.double() for w in given)
    state = t.zeros((layer.shape[0], wh.shape[1]), dtype=t.float64)
    steps = []
    for step in layer.unbind(1):
        ir, iz, i = (step @ wi.T + bi).chunk(3, dim=1)
        hr, hz, h = (state @ wh.T + bh).chunk(3, dim=1)
        update = (iz + hz).sigmoid()
        state = (1 - update) * (i + (ir + hr).sigmoid() * h).tanh() + update * state
        steps.append(state)
    return t.stack(steps, dim=1)


long_memory_both_ways = both_ways(_memory)
gated_both_ways = both_ways(_gated)


def standardized(over: "Sequence[int]", *, groups: int = 0) -> Function:
    """Take the mean away and divide by the deviation, over dimensions, or over each of so many groups of channels."""

    def reference(_t: Any, x: Any, *given: Any) -> Any:
        inside = x.double()
        if groups:
            inside = inside.reshape(x.shape[0], groups, -1)
        count = math.prod(inside.shape[i] for i in over)
        away = inside - inside.sum(tuple(over), keepdim=True) / count
        made = (away / ((away * away).sum(tuple(over), keepdim=True) / count + 1e-5).sqrt()).reshape(x.shape)
        if not given:
            return made
        wide = (-1,) if x.ndim - 1 in {i % x.ndim for i in over} and not groups else (-1, *[1] * (x.ndim - 2))
        return made * given[0].double().reshape(wide) + given[1].double().reshape(wide)

    return reference


def with_statistics(_t: Any, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
    """Normalize by means and variances that are given."""
    wide = (-1, *[1] * (x.ndim - 2))
    mean, variance, weight, bias = (one.double().reshape(wide) for one in (mean, variance, weight, bias))
    return (x.double() - mean) / (variance + 1e-5).sqrt() * weight + bias


def shares_of(t: Any, drawn: Any, weights: Any) -> Any:
    """Say how often each index was drawn; not a number where one is no index."""
    if not bool(((drawn >= 0) & (drawn < weights.shape[1])).all()):
        return t.full(weights.shape, math.nan, dtype=t.float64)
    return t.stack([t.bincount(row, minlength=weights.shape[1]) for row in drawn]).double() / drawn.shape[1]


def moments(t: Any, drawn: Any, *_inputs: Any) -> Any:
    """Give mean, deviation, and the shares of the lowest and the highest tenth, of all that was drawn."""
    flat = drawn.double().flatten()
    return t.stack([flat.mean(), flat.std(), *(flat.quantile(t.tensor([0.1, 0.5, 0.9], dtype=t.float64)))])


def normal_equations(t: Any, a: Any, b: Any) -> Any:
    """Solve least squares by the normal equations."""
    a, b = a.double(), b.double()
    return t.linalg.inv(a.T @ a) @ (a.T @ b)


def eliminated(_t: Any, a: Any, b: Any) -> Any:
    """Solve equations by elimination without pivots."""
    a, b = a.double().clone(), b.double().clone()
    size = a.shape[0]
    for k in range(size):
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :] -= factors[:, None] * a[k]
        b[k + 1 :] -= factors[:, None] * b[k]
    for k in reversed(range(size)):
        b[k] = (b[k] - a[k, k + 1 :] @ b[k + 1 :]) / a[k, k]
    return b


def stretched(size: int, *, halfway: bool) -> Function:
    """Sample rows at another rate: the nearest one before, or a straight line between two."""

    def reference(t: Any, x: Any) -> Any:
        length = x.shape[-1]
        if not halfway:
            places = t.tensor([k * length // size for k in range(size)])
            return x.double()[..., places]
        at = [min(max((k + 0.5) * length / size - 0.5, 0.0), length - 1.0) for k in range(size)]
        low = t.tensor([math.floor(one) for one in at])
        high = t.tensor([min(math.floor(one) + 1, length - 1) for one in at])
        part = t.tensor([one - math.floor(one) for one in at], dtype=t.float64)
        return x.double()[..., low] * (1 - part) + x.double()[..., high] * part

    return reference


def pooled(size: int, stride: int, padding: int, *, largest: bool) -> Function:
    """Pool rows: the largest of each window, or the mean with zeros around."""

    def reference(t: Any, x: Any) -> Any:
        rows = []
        for row in x.flatten(0, -2).tolist():
            edge = [-math.inf if largest else 0.0] * padding
            wide = [*edge, *row, *edge]
            windows = [wide[k : k + size] for k in range(0, len(wide) - size + 1, stride)]
            rows.append([max(one) if largest else math.fsum(one) / size for one in windows])
        return t.tensor(rows, dtype=t.float64).reshape(*x.shape[:-1], -1)

    return reference
