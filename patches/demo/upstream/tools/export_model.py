"""Writes tonewheel/tone.onnx. Run it as `python -m tools.export_model`; needs the `onnx` package."""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tonewheel import settings
from tonewheel.reference import TURN

FLOAT, INT64 = np.float32, np.int64


def build() -> onnx.ModelProto:
    """Return the model: f0 and amplitudes in, waveform and spectrogram out."""
    nodes, constants = [], []

    def constant(value: object, dtype: type) -> str:
        name = f"constant_{len(constants)}"
        constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def node(op: str, *inputs: str, name: str | None = None, **attributes: object) -> str:
        output = name or f"{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [output], name=f"{op}_{len(nodes)}", **attributes))
        return output

    # A phase counter of 24 bits that wraps once per period: exact, however long the tune is.
    rate = constant(TURN / settings.SAMPLE_RATE, FLOAT)
    increments = node("Cast", node("Round", node("Mul", "f0", rate)), to=TensorProto.INT64)
    counter = node("Mod", node("CumSum", increments, constant(0, INT64)), constant(TURN, INT64))
    phase = node("Mul", node("Cast", counter, to=TensorProto.FLOAT), constant(2 * math.pi / TURN, FLOAT))

    # One sine per harmonic.
    numbers = constant(np.arange(1, settings.HARMONICS + 1)[:, None], FLOAT)
    partials = node("Mul", node("Sin", node("Mul", phase, numbers)), "amplitudes")
    node("ReduceSum", partials, constant([0], INT64), name="waveform", keepdims=0)

    # The Fourier transform as a convolution; onnxruntime folds its kernels when it loads the model.
    zero, one = constant(0, INT64), constant(1, INT64)
    columns = node("Range", zero, constant(settings.WINDOW, INT64), one)
    rows = node("Unsqueeze", node("Range", zero, constant(settings.BINS, INT64), one), constant([1], INT64))
    turns = node("Mod", node("Mul", rows, columns), constant(settings.WINDOW, INT64))
    circle = constant(2 * math.pi / settings.WINDOW, FLOAT)
    angles = node("Mul", node("Cast", turns, to=TensorProto.FLOAT), circle)
    hann = node("Cos", node("Mul", node("Cast", columns, to=TensorProto.FLOAT), circle))
    half = constant(2 / settings.WINDOW, FLOAT)  # a full-scale sine reaches 1
    window = node("Sub", half, node("Mul", hann, half))
    waves = node("Mul", node("Concat", node("Cos", angles), node("Sin", angles), axis=0), window)
    kernels = node("Unsqueeze", waves, constant([1], INT64))

    signal = node("Unsqueeze", "waveform", constant([0, 1], INT64))
    pad = settings.WINDOW // 2
    spectrum = node("Conv", signal, kernels, strides=[settings.HOP], pads=[pad, pad])
    pairs = node("Reshape", spectrum, constant([2, settings.BINS, -1], INT64))
    power = node("ReduceSum", node("Mul", pairs, pairs), constant([0], INT64), keepdims=0)
    audible = node("Max", power, constant(10 ** (-settings.FLOOR / 10), FLOAT))
    decibels = node("Mul", node("Log", audible), constant(10 / math.log(10) / settings.FLOOR, FLOAT))
    node("Add", decibels, constant(1, FLOAT), name="spectrogram")

    def tensor(name: str, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes,
        "tonewheel",
        [tensor("f0", "samples"), tensor("amplitudes", settings.HARMONICS, "samples")],
        [tensor("waveform", "samples"), tensor("spectrogram", settings.BINS, "columns")],
        constants,
    )
    return helper.make_model(
        graph, producer_name="tonewheel", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )


if __name__ == "__main__":
    model = build()
    onnx.checker.check_model(model, full_check=True)
    settings.MODEL.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{settings.MODEL}: {settings.MODEL.stat().st_size} bytes")
