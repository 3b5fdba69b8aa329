"""Compute tiny ONNX models on one execution provider, compare them with numpy, and prove where each node ran.

Arguments: the file that the answer goes to, the provider's name, the models', joined by commas. The answer is lines of
JSON, as those of `compute`. A list of providers says what was compiled in, not what works, and a session falls back to
the CPU silently: so there is one provider, the fallback is forbidden, and the evidence is ONNX Runtime's own profile,
which names the provider of every node that ran. The models are written here, as no `onnx` is installed.
Source: https://onnxruntime.ai/docs/performance/tune-performance/profiling-tools.html
"""

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Array = Any
Shape = tuple[int, ...]

_CPU = "CPUExecutionProvider"
_TOLERANCE = 1e-3
_CALLS = 3
"""How often each model is computed and compared."""


def field(number: int, payload: "bytes | str | int") -> bytes:
    """Encode one protobuf field. Source: https://protobuf.dev/programming-guides/encoding/."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    data = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Encode a number in groups of seven bits."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def value_info(name: str, shape: Shape) -> bytes:
    """Encode a ValueInfoProto of float32. Source: onnx.proto, ValueInfoProto, TypeProto, TensorShapeProto."""
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def attribute(name: str, numbers: "list[int]") -> bytes:
    """Encode an AttributeProto of integers (type 7)."""
    return field(1, name) + b"".join(field(8, number) for number in numbers) + field(20, 7)


class Model:
    """One node of opset 13 (IR version 8), what goes in and comes out, and the same by numpy in float64."""

    def __init__(self, kind: str, shapes: "tuple[Shape, Shape, Shape]", **attributes: "list[int]") -> None:
        self.kind, self.shapes, self.attributes = kind, shapes, attributes

    def encoded(self) -> bytes:
        """Encode the ModelProto: inputs `a` and `b`, output `c`."""
        node = b"".join(field(1, name) for name in "ab") + field(2, "c") + field(3, "n0") + field(4, self.kind)
        node += b"".join(field(5, attribute(name, numbers)) for name, numbers in self.attributes.items())
        a, b, c = (value_info(name, shape) for name, shape in zip("abc", self.shapes, strict=True))
        graph = field(1, node) + field(2, "g") + field(11, a) + field(11, b) + field(12, c)
        return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def _product(_np: Any, a: Array, b: Array) -> Array:
    return (a[:, :, None] * b[None, :, :]).sum(axis=1)


def _convolution(np: Any, x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (3, 3)))
    length = x.shape[-1]
    return sum(np.einsum("bil,oi->bol", padded[:, :, k : k + length], w[:, :, k]) for k in range(7))


def _transposed(np: Any, x: Array, w: Array) -> Array:
    length = x.shape[-1]
    wide = np.zeros((x.shape[0], w.shape[1], (length - 1) * 4 + 8))
    for k in range(8):
        wide[:, :, k : k + (length - 1) * 4 + 1 : 4] += np.einsum("bil,io->bol", x, w[:, :, k])
    return wide[:, :, 2:-2]


MODELS: "dict[str, tuple[Model, Callable[..., Array]]]" = {
    "ort-matmul": (Model("MatMul", ((64, 64), (64, 64), (64, 64))), _product),
    "ort-conv": (Model("Conv", ((1, 32, 512), (64, 32, 7), (1, 64, 512)), pads=[3, 3]), _convolution),
    "ort-conv-transpose": (
        Model("ConvTranspose", ((1, 64, 128), (64, 32, 8), (1, 32, 512)), pads=[2, 2], strides=[4]),
        _transposed,
    ),
}


def _session(ort: Any, data: bytes, provider: str, profile: str = "") -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    if provider != _CPU:  # with the CPU's own it would be a "conflicting session configuration"
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if provider == "DmlExecutionProvider":
        # https://onnxruntime.ai/docs/execution-providers/DirectML-ExecutionProvider.html
        options.enable_mem_pattern = False
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    return ort.InferenceSession(data, options, providers=[provider])


def _time(session: Any, values: "dict[str, Array]") -> float:
    """Give the milliseconds of the fastest run."""
    taken: list[float] = []
    while len(taken) < 5 or (sum(taken) < 0.02 and len(taken) < 40):
        started = time.perf_counter()
        session.run(None, values)
        taken.append(time.perf_counter() - started)
    return min(taken) * 1000


def _import(provider: str) -> Any:
    if provider != _CPU and importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch")  # as apps do, which finds its libraries for ONNX Runtime too
    ort = importlib.import_module("onnxruntime")
    if provider == "CUDAExecutionProvider" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()  # CUDA may be there as packages alone: https://onnxruntime.ai/docs/install/#cuda-and-cudnn
    there = ort.get_available_providers()
    if provider not in there:
        raise ImportError(f"onnxruntime {ort.__version__} has no {provider}, only {', '.join(there)}")
    return ort


def _is_left_out(ort: Any, data: bytes, provider: str) -> bool:
    """Say whether ONNX Runtime leaves a provider out without a word, as where its device or a library is missing."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return provider not in ort.InferenceSession(data, options, providers=[provider]).get_providers()


def compute(name: str, provider: str, answer: Any) -> "dict[str, object]":
    """Compute a model on a provider, and say how far it is from the truth, how long it takes, and where it ran."""
    ort, np = _import(provider), importlib.import_module("numpy")
    model, reference = MODELS[name]
    answer.stage("inputs")
    draw = np.random.default_rng(20260101)
    a, b = (draw.standard_normal(shape) for shape in model.shapes[:2])
    values = {"a": a.astype(np.float32), "b": b.astype(np.float32)}
    want = reference(np, values["a"].astype(np.float64), values["b"].astype(np.float64))
    with tempfile.TemporaryDirectory() as folder:
        answer.stage("session")
        if provider != _CPU and _is_left_out(ort, model.encoded(), provider):
            return {"error": 0.0, "on": _CPU, "wanted": provider, "version": ort.__version__}
        session = _session(ort, model.encoded(), provider, str(Path(folder) / "profile"))
        answer.stage("compute")
        started = time.perf_counter()
        made = [session.run(None, values)[0]]
        first = (time.perf_counter() - started) * 1000
        made += [session.run(None, values)[0] for _ in range(_CALLS - 1)]
        answer.stage("profile")
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = {e["args"]["provider"] for e in events if e.get("cat") == "Node" and "provider" in e.get("args", {})}
    found: dict[str, object] = {
        "error": float(np.abs(np.stack(made).astype(np.float64) - want).max() / np.abs(want).max()),
        "tolerance": _TOLERANCE,
        "zeros": not all(bool((got != 0).any()) for got in made),
        "on": ", ".join(sorted(ran)),
        "wanted": provider,
        "shown": "node placement",
        "first": first,
        "version": ort.__version__,
    }
    answer.tell(found=found)
    answer.stage("time")
    found["ms"] = _time(_session(ort, model.encoded(), provider), values)
    if provider != _CPU:
        answer.stage("time on the CPU")
        found["cpu_ms"] = _time(_session(ort, model.encoded(), _CPU), values)
    return found


def main(arguments: "Iterable[str]") -> None:
    """Do what the arguments say, and write what came of it."""
    path, provider, names = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as in `compute`
    answer_each = importlib.import_module("compute").answer_each
    del sys.path[0]
    answer_each(path, names, lambda name, answer: compute(name, provider, answer), str)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # what a driver does when it is unloaded is no part of the proof
