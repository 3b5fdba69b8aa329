"""Compute one kernel on one device with torch, compare it with another computation of the same on the CPU, and time it.

Arguments: the file that the answer goes to, the device as torch calls it (`cpu`, `cuda:0`, `privateuseone:0`), and the
kernel's name, or `devices` to ask which devices there are. The answer is lines of JSON: a line for each stage that is
begun, so that a crash tells where, and the result as the last one. What libraries print is no answer.

The kernels are what audio models stand on. Each has a reference in float64 on the CPU that goes another way than torch
does (a transform by its matrix, a recurrence step by step), so that the check can fail on the CPU too.
"""

import importlib
import importlib.util
import itertools
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

Torch = Any
Tensor = Any
Function = Callable[..., Tensor]

_SEED = 20260101
_STEPS = (5, 0.02, 40)
"""How often a kernel is timed at least, the seconds that this should take, how often at most."""


class Kernel:
    """One computation, its inputs, and the same by another way."""

    def __init__(
        self, inputs: Function, run: Function, reference: Function, tolerance: float, **more: Function
    ) -> None:
        self.inputs, self.run, self.reference, self.tolerance = inputs, run, reference, tolerance
        self.read: Function = more.get("read", lambda _t, result, *_inputs: result)
        """Turns a result, when it is on the CPU, into what is compared."""


# --- inputs: seeded, on the CPU; t is torch, r its generator ---------------------------------------------------------


def _normal(*shapes: "tuple[int, ...]", kind: str = "float32") -> Function:
    return lambda t, r: [t.randn(shape, generator=r).to(getattr(t, kind)) for shape in shapes]


def _signal(t: Torch, r: Tensor) -> "list[Tensor]":
    return [t.randn((2, 65536), generator=r), t.hann_window(512)]


def _scores(t: Torch, r: Tensor) -> "list[Tensor]":
    weights = t.rand((4, 8), generator=r) + 0.25
    weights[:, 3] = 0.0  # what has no weight must never be drawn
    return [weights]


def _long(t: Torch, r: Tensor) -> "list[Tensor]":
    return [t.randint(-(1 << 40), 1 << 40, (64, 2048), generator=r)]


def _powers(t: Torch, r: Tensor) -> "list[Tensor]":
    base = t.rand(65536, generator=r, dtype=t.float64) * 1.5 + 0.5
    return [base, t.rand(65536, generator=r, dtype=t.float64) * 6 - 3]


def _cells(t: Torch, r: Tensor) -> "list[Tensor]":
    size, shapes = 64, [(256, 64), (256, 64), (256,), (256,)]
    weights = [(t.rand(shape, generator=r) - 0.5) / 4 for _ in range(2) for shape in shapes]
    return [t.randn((4, 32, size), generator=r), *weights]


# --- kernels as models call them --------------------------------------------------------------------------------------


def _stft(t: Torch, x: Tensor, window: Tensor) -> Tensor:
    return t.stft(x, 512, hop_length=128, window=window, center=True, return_complex=True)


def _istft(t: Torch, x: Tensor, window: Tensor) -> Tensor:
    return t.istft(_stft(t, x, window), 512, hop_length=128, window=window, center=True, length=x.shape[-1])


def _lstm(t: Torch, x: Tensor, *weights: Tensor) -> Tensor:
    layers = t.nn.LSTM(64, 64, num_layers=2, batch_first=True).to(x.device)
    for own, given in zip(layers.parameters(), weights, strict=True):
        own.data.copy_(given)
    return layers(x)[0]


# --- the same, by another way, in float64 -----------------------------------------------------------------------------


def _products(t: Torch, a: Tensor, b: Tensor) -> Tensor:
    total = t.zeros((a.shape[0], b.shape[1]), dtype=t.float64)
    for column, row in zip(a.double().T, b.double(), strict=True):
        total.addcmul_(column[:, None], row[None, :])
    return total


def _spectrum_matrix(t: Torch, size: int) -> Tensor:
    """Give cosines and sines of the discrete Fourier transform, (size, 2 * (size // 2 + 1)), interleaved."""
    turns = t.arange(size, dtype=t.float64)[:, None] * t.arange(size // 2 + 1, dtype=t.float64)[None, :]
    angles = (turns % size) * (2 * math.pi / size)
    return t.stack([angles.cos(), -angles.sin()], dim=-1).reshape(size, -1)


def _magnitudes(t: Torch, x: Tensor, window: Tensor) -> Tensor:
    padded = t.cat([x[:, 1:257].flip(1), x, x[:, -257:-1].flip(1)], dim=1).double()
    frames = padded.unfold(1, 512, 128) * window.double()
    parts = (frames @ _spectrum_matrix(t, 512)).reshape(2, -1, 257, 2)
    return (parts**2).sum(-1).sqrt().transpose(1, 2)


def _convolution(t: Torch, x: Tensor, w: Tensor) -> Tensor:
    padded = t.nn.functional.pad(x.double(), (3, 3))
    length = x.shape[-1]
    return sum(t.einsum("bil,oi->bol", padded[:, :, k : k + length], w.double()[:, :, k]) for k in range(7))


def _transposed(t: Torch, x: Tensor, w: Tensor) -> Tensor:
    length = x.shape[-1]
    wide = t.zeros((x.shape[0], w.shape[1], (length - 1) * 4 + 8), dtype=t.float64)
    for k in range(8):
        wide[:, :, k : k + (length - 1) * 4 + 1 : 4] += t.einsum("bil,io->bol", x.double(), w.double()[:, :, k])
    return wide[:, :, 2:-2]


def _attention(t: Torch, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q.double() @ k.double().transpose(-1, -2) / math.sqrt(q.shape[-1])
    later = t.ones(scores.shape[-2:], dtype=t.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).exp()
    return weights / weights.sum(-1, keepdim=True) @ v.double()


def _recurrence(t: Torch, x: Tensor, *weights: Tensor) -> Tensor:
    layer = x.double()
    for given in (weights[:4], weights[4:]):
        wi, wh, bi, bh = (w.double() for w in given)
        state = memory = t.zeros((layer.shape[0], 64), dtype=t.float64)
        steps = []
        for step in layer.unbind(1):
            i, f, g, o = (step @ wi.T + bi + state @ wh.T + bh).chunk(4, dim=1)
            memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
            state = o.sigmoid() * memory.tanh()
            steps.append(state)
        layer = t.stack(steps, dim=1)
    return layer


def _shares(t: Torch, drawn: Tensor, weights: Tensor) -> Tensor:
    """Say how often each index was drawn; not a number where one is no index."""
    if not bool(((drawn >= 0) & (drawn < weights.shape[1])).all()):
        return t.full(weights.shape, math.nan, dtype=t.float64)
    return t.stack([t.bincount(row, minlength=weights.shape[1]) for row in drawn]).double() / drawn.shape[1]


def _running(t: Torch, x: Tensor) -> Tensor:
    return t.tensor([list(itertools.accumulate(row)) for row in x.tolist()])


def _pow(t: Torch, base: Tensor, exponent: Tensor) -> Tensor:
    pairs = zip(base.tolist(), exponent.tolist(), strict=True)
    return t.tensor([math.pow(b, e) for b, e in pairs], dtype=t.float64)


def _normal_equations(t: Torch, a: Tensor, b: Tensor) -> Tensor:
    a, b = a.double(), b.double()
    return t.linalg.inv(a.T @ a) @ (a.T @ b)


def _mm(kind: str, tolerance: float) -> Kernel:
    return Kernel(_normal((384, 384), (384, 384), kind=kind), lambda _t, a, b: a @ b, _products, tolerance)


KERNELS: "dict[str, Kernel]" = {
    "mm-f32": _mm("float32", 1e-3),
    "mm-f16": _mm("float16", 2e-2),
    "mm-bf16": _mm("bfloat16", 5e-2),
    "linear": Kernel(
        _normal((256, 512), (384, 512), (384,)),
        lambda t, x, w, bias: t.nn.functional.linear(x, w, bias),
        lambda t, x, w, bias: _products(t, x, w.T) + bias.double(),
        1e-3,
    ),
    "bmm": Kernel(
        _normal((8, 160, 160), (8, 160, 160)),
        lambda t, a, b: t.bmm(a, b),
        lambda t, a, b: t.stack([_products(t, one, other) for one, other in zip(a, b, strict=True)]),
        1e-3,
    ),
    "stft": Kernel(_signal, lambda t, x, w: _stft(t, x, w).abs(), _magnitudes, 1e-3),
    "istft": Kernel(_signal, _istft, lambda _t, x, _w: x.double(), 1e-3),
    "rfft": Kernel(
        _normal((256, 1024)),
        lambda t, x: t.view_as_real(t.fft.rfft(x)),
        lambda t, x: (x.double() @ _spectrum_matrix(t, 1024)).reshape(256, -1, 2),
        1e-3,
    ),
    "conv1d": Kernel(
        _normal((4, 32, 1024), (64, 32, 7)),
        lambda t, x, w: t.nn.functional.conv1d(x, w, padding=3),
        _convolution,
        1e-3,
    ),
    "conv-transpose1d": Kernel(
        _normal((4, 64, 256), (64, 32, 8)),
        lambda t, x, w: t.nn.functional.conv_transpose1d(x, w, stride=4, padding=2),
        _transposed,
        1e-3,
    ),
    "sdpa": Kernel(
        _normal((4, 8, 128, 64), (4, 8, 128, 64), (4, 8, 128, 64)),
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        _attention,
        1e-3,
    ),
    "lstm": Kernel(_cells, _lstm, _recurrence, 1e-3),
    "topk": Kernel(
        _normal((64, 4096)),
        lambda t, x: t.topk(x, 16, dim=-1)[0],
        lambda t, x: t.tensor([sorted(row, reverse=True)[:16] for row in x.tolist()], dtype=t.float64),
        1e-6,
    ),
    "multinomial": Kernel(
        _scores,
        lambda t, weights: t.multinomial(weights, 16384, replacement=True),
        lambda _t, weights: weights.double() / weights.double().sum(1, keepdim=True),
        0.1,
        read=_shares,
    ),
    "cumsum-i64": Kernel(_long, lambda t, x: t.cumsum(x, dim=1), _running, 0.0),
    "pow-f64": Kernel(_powers, lambda t, base, exponent: t.pow(base, exponent), _pow, 1e-9),
    "lstsq": Kernel(
        _normal((384, 96), (384, 16)), lambda t, a, b: t.linalg.lstsq(a, b).solution, _normal_equations, 1e-2
    ),
}


# --- one run ----------------------------------------------------------------------------------------------------------


class Answer:
    """Writes lines to a file, each at once: the next step may be the last."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tell(self, **values: object) -> None:
        """Write one line."""
        with open(self._path, "a", encoding="utf-8") as file:  # noqa: PTH123 - one call less in a child
            file.write(json.dumps(values) + "\n")

    def stage(self, name: str) -> None:
        """Say what begins now."""
        self.tell(stage=name)


def _error(t: Torch, got: Tensor, want: Tensor) -> float:
    """Give the largest difference, in parts of the largest wanted value; not a number where anything is none."""
    exact = got.dtype == want.dtype == t.int64
    difference = (got - want) if exact else (got.double() - want.double())
    return float(difference.abs().max().double() / want.abs().max().double())


def _wait(t: Torch, device: str, result: Tensor) -> None:
    """Wait until a device has computed: where it cannot be asked for that, a number is fetched."""
    if device.startswith("cuda"):
        t.cuda.synchronize()
    elif device != "cpu":
        result.flatten()[:1].cpu()


def _time(t: Torch, device: str, run: "Callable[[], Tensor]") -> float:
    """Give the milliseconds of the fastest run, after a first one that does not count."""
    least, seconds, most = _STEPS
    _wait(t, device, run())
    taken: list[float] = []
    while len(taken) < least or (sum(taken) < seconds and len(taken) < most):
        started = time.perf_counter()
        _wait(t, device, run())
        taken.append(time.perf_counter() - started)
        if taken[-1] > 1:
            break
    return min(taken) * 1000


def _place(name: str) -> object:
    """Give what torch takes as the device: its name, or the object of the library that knows it."""
    if name.startswith("privateuseone"):
        return importlib.import_module("torch_directml").device(int(name.partition(":")[2] or 0))
    return name


def compute(t: Torch, name: str, device: str, answer: Answer) -> "dict[str, object]":
    """Compute a kernel on a device, and say how wrong the result is, where it is, and how long it takes."""
    kernel = KERNELS[name]
    answer.stage("inputs")
    inputs = kernel.inputs(t, t.Generator().manual_seed(_SEED))
    want = kernel.reference(t, *inputs)
    answer.stage("device")
    place = _place(device)
    moved = [one.to(place) for one in inputs]
    answer.stage("compute")
    t.manual_seed(_SEED)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = kernel.run(t, *moved)
        _wait(t, device, result)
    first = (time.perf_counter() - started) * 1000
    answer.stage("compare")
    home = result.to("cpu")
    error = _error(t, kernel.read(t, home, *inputs), want)
    found: dict[str, object] = {
        "error": error,
        "tolerance": kernel.tolerance,
        "zeros": not bool((home != 0).any()),
        "on": str(result.device),
        "wanted": str(moved[0].device),
        "said": [str(one.message) for one in heard],
        "first": first,
        "version": t.__version__,
    }
    answer.tell(found=found)  # what follows is only about time, and may still go wrong
    answer.stage("time")
    found["ms"] = _time(t, device, lambda: kernel.run(t, *moved))
    if device != "cpu":
        answer.stage("time on the CPU")
        try:
            found["cpu_ms"] = _time(t, "cpu", lambda: kernel.run(t, *inputs))
        except RuntimeError as reason:  # the CPU lacks some kernels in float16
            found["said"] = [*found["said"], f"not timed on the CPU: {reason}"]  # type: ignore[misc]
    return found


def devices(t: Torch, device: str, answer: Answer) -> "dict[str, object]":
    """List the devices of a kind, and say why there is none where there is none."""
    found: list[dict[str, object]] = []
    why = ""
    about = {"version": t.__version__, "built": built_for(t)}
    answer.tell(found={**about, "devices": [], "why": ""})  # torch is there, whatever follows
    answer.stage("devices")
    if device == "cpu":
        found = [{"name": "cpu", "threads": t.get_num_threads()}]
    elif device == "cuda":
        if t.cuda.is_available():
            properties = [t.cuda.get_device_properties(i) for i in range(t.cuda.device_count())]
            found = [_properties(one) for one in properties]
        else:
            why = _refusal(t)
    else:
        library = importlib.import_module("torch_directml")
        if library.is_available():
            found = [{"name": library.device_name(i).rstrip("\0")} for i in range(library.device_count())]
        else:
            why = "torch_directml.is_available() is False"
    return {**about, "devices": found, "why": why if found == [] else ""}


def built_for(t: Torch) -> "list[str]":
    """Name what a torch is built for besides the CPU, whatever the machine has; torch-directml stands beside it."""
    found = [name for name in ("cuda", "hip") if getattr(getattr(t, "version", None), name, None)]
    return [*found, *(["directml"] if importlib.util.find_spec("torch_directml") else [])]


def _properties(one: Any) -> "dict[str, object]":
    arch = getattr(one, "gcnArchName", "") if getattr(one, "gcnArchName", "").startswith("gfx") else ""
    sm = f"sm_{one.major}{one.minor}"
    return {"name": one.name, "memory": one.total_memory, "arch": arch or sm}


def _refusal(t: Torch) -> str:
    """Ask the library itself why it has no device: `is_available` says only that."""
    try:
        t.cuda.init()
    except (RuntimeError, AssertionError) as reason:
        return str(reason).strip().splitlines()[0]
    return "torch.cuda.is_available() is False"


def main(arguments: "Iterable[str]") -> None:
    """Do what the arguments say, and write what came of it."""
    path, device, name = arguments
    answer = Answer(path)
    answer.stage("import")
    try:
        t = importlib.import_module("torch")
        if name == "devices":
            answer.tell(found=devices(t, device, answer))
        else:
            with t.no_grad():  # DirectML has no inference_mode
                answer.tell(found=compute(t, name, device, answer))
    except BaseException as reason:  # noqa: BLE001 - a library may raise anything, and all of it is evidence
        answer.tell(raised=type(reason).__name__, message=str(reason)[:2000])
        return
    answer.tell(stage="end")


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # what a driver does when it is unloaded is no part of the proof
