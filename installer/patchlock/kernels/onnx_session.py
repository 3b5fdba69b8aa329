"""Compute a tiny ONNX model on one execution provider and prove where each node ran; prints JSON.

Argument: the provider's name. A list of providers says what was compiled in, not what works, and a session falls back
to the CPU in silence, so the evidence is ONNX Runtime's own profile, which names the provider of every node that ran.
Source: https://onnxruntime.ai/docs/performance/tune-performance/profiling-tools.html
"""

import json
import struct
import sys
import tempfile
from pathlib import Path


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


def tensor(name: str, shape: "tuple[int, ...]", values: "list[float]") -> bytes:
    """Encode a float32 TensorProto. Source: onnx.proto, TensorProto."""
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def value_info(name: str, shape: "tuple[int, ...]") -> bytes:
    """Encode a ValueInfoProto of float32."""
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def node(kind: str, inputs: "list[str]", output: str) -> bytes:
    """Encode a NodeProto."""
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, kind)


def model(weights: "list[float]", bias: "list[float]") -> bytes:
    """Encode y = relu(x @ weights + bias) for x of shape (2, 3), weights (3, 2), bias (2,); opset 13, IR version 8."""
    graph = (
        field(1, node("MatMul", ["x", "w"], "m"))
        + field(1, node("Add", ["m", "b"], "a"))
        + field(1, node("Relu", ["a"], "y"))
        + field(2, "probe")
        + field(5, tensor("w", (3, 2), weights))
        + field(5, tensor("b", (2,), bias))
        + field(11, value_info("x", (2, 3)))
        + field(12, value_info("y", (2, 2)))
    )
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def main() -> None:
    """Run the model and compare with plain Python."""
    provider = sys.argv[1]
    import numpy as np
    import onnxruntime as ort

    weights, bias, x = [0.5, -1.0, 2.0, 0.25, -0.75, 1.5], [0.125, -0.5], [1.0, -2.0, 3.0, 0.5, 4.0, -1.5]
    wanted = [
        max(0.0, sum(x[r * 3 + k] * weights[k * 2 + c] for k in range(3)) + bias[c]) for r in range(2) for c in range(2)
    ]
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(model(weights, bias), options, providers=[provider])
        result = session.run(None, {"x": np.array(x, dtype=np.float32).reshape(2, 3)})[0]
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = [e["args"]["provider"] for e in events if e.get("cat") == "Node" and "provider" in e.get("args", {})]
    error = max(abs(float(a) - b) for a, b in zip(result.ravel(), wanted, strict=True))
    print(json.dumps({"version": ort.__version__, "providers": sorted(set(ran)), "nodes": len(ran), "error": error}))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
