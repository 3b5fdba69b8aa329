"""What computes on a kind of machine, and what each is asked to prove; closed tables, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from packaging.utils import NormalizedName, canonicalize_name

TORCH_KERNELS = (
    *("mm-f32", "mm-f16", "mm-bf16", "mm-large", "linear", "linear-f16", "bmm", "bmm-f16", "einsum"),
    *("stft", "istft", "rfft", "irfft", "fft", "ifft", "windows"),
    *("conv1d", "conv1d-dilated", "conv1d-grouped", "conv1d-f16", "conv-transpose1d"),
    *("conv-transpose1d-f16", "conv2d", "conv2d-f16", "conv-transpose2d"),
    *(
        "interpolate",
        "pool",
        "sdpa",
        "sdpa-mask",
        "sdpa-f16",
        "sdpa-bf16",
        "multihead-attention",
        "lstm",
        "lstm-many",
        "gru",
    ),
    *("layer-norm", "group-norm", "batch-norm", "norms-f16", "normalize"),
    *(
        "activations",
        "activations-f16",
        "softmax",
        "softmax-f16",
        "elementary",
        "comparisons",
        "complex",
        "reductions",
        "cumsum",
    ),
    *("cumsum-i64", "pow-f64", "embedding", "gather", "scatter", "masks", "shapes", "ranges", "topk", "sort"),
    *("random", "multinomial", "lstsq", "solve"),
)
"""Of `verify/_children/patchlock_kernels`, most telling first: where it hangs or crashes, the others are not tried."""
INSTALL_KERNELS = (
    *(
        "mm-f32",
        "mm-f16",
        "linear",
        "stft",
        "istft",
        "conv1d",
        "conv1d-dilated",
        "conv-transpose1d",
        "conv-transpose1d-f16",
        "conv2d",
        "conv2d-f16",
        "interpolate",
    ),
    *(
        "sdpa",
        "sdpa-mask",
        "lstm",
        "gru",
        "layer-norm",
        "group-norm",
        "activations",
        "softmax",
        "softmax-f16",
        "embedding",
        "topk",
    ),
)
"""Those of them that an install asks for: one at least of every part of a model that makes sound."""
ONNX_KERNELS = ("ort-matmul", "ort-conv", "ort-conv-transpose")
"""Of `verify/_children/onnx_session.py`."""
KERNELS = (*TORCH_KERNELS, *ONNX_KERNELS)
TORCH = canonicalize_name("torch")


@dataclass(frozen=True, kw_only=True)
class BackEnd:
    """What computes."""

    device: str
    """As torch calls the kind: `cpu`, `cuda` (also for ROCm and ZLUDA), `mps`, `xpu`, `privateuseone` (DirectML)."""
    built_for: str
    """What torch has to be built for, a key of `BUILDS`; "" where any torch will do."""
    first_seconds: int
    """How long the first kernel may take: contexts are made then, and some back ends compile for minutes."""
    seconds: int
    """How long each other kernel may take."""


BUILDS: Mapping[str, str] = {
    "cuda": "CUDA",
    "hip": "ROCm",
    "mps": "Apple's Metal (MPS)",
    "xpu": "Intel's GPUs (XPU)",
    "directml": "DirectML (torch-directml)",
}
"""What `verify/_children/compute.py` says that a torch is built for → its name."""

BACK_ENDS: Mapping[str, BackEnd] = {
    "cpu": BackEnd(device="cpu", built_for="", first_seconds=120, seconds=60),
    # PTX for a newer card is compiled at first use.
    "cuda": BackEnd(device="cuda", built_for="cuda", first_seconds=300, seconds=120),
    # MIOpen searches at the first convolution: https://github.com/ROCm/TheRock/issues/2591
    "rocm": BackEnd(device="cuda", built_for="hip", first_seconds=300, seconds=180),
    # Each kernel is compiled at its first use, some for minutes: https://github.com/patientx/ComfyUI-Zluda#readme
    "zluda": BackEnd(device="cuda", built_for="cuda", first_seconds=900, seconds=300),
    "directml": BackEnd(device="privateuseone", built_for="directml", first_seconds=120, seconds=60),
    # Metal's shaders are compiled at first use.
    "mps": BackEnd(device="mps", built_for="mps", first_seconds=300, seconds=120),
    # What is not compiled for the card ahead of time is compiled at first use:
    # https://docs.pytorch.org/docs/2.8/notes/get_start_xpu.html
    "xpu": BackEnd(device="xpu", built_for="xpu", first_seconds=300, seconds=120),
}

CUDA_OR_CPU = (
    "ctranslate2",
    "faster_whisper",
    "stable_whisper.load_faster_whisper",
    "whisperx.load_model",
    "whisperx.asr",
)
"""Modules and functions that compute with CTranslate2, which has no other devices.

Source: https://opennmt.net/CTranslate2/python/ctranslate2.Translator.html (possible values are: cpu, cuda, auto)
"""

CUDA_OR_CPU_MODELS = frozenset(
    {"WhisperModel", "Translator", "Generator", "Encoder", "Whisper", "Wav2Vec2", "Wav2Vec2Bert", "load_model"}
)
"""What of them takes the device as its second argument, where that is not named."""

CUDA_HALVES = frozenset({"float16", "bfloat16", "int8_float16", "int8_bfloat16"})
"""Compute types that CTranslate2 refuses on the CPU.

Source: https://opennmt.net/CTranslate2/quantization.html (implicit type conversion on load).
"""

ONNX_MEMORY = ("bind_input", "bind_output", "ortvalue_from_numpy", "ortvalue_from_shape_and_type", "OrtDevice.make")
"""Functions of ONNX Runtime that take the device in whose memory a value lies, and know none of PyTorch's others.

Source: https://onnxruntime.ai/docs/api/python/api_summary.html (device_type: e.g. cpu, cuda, cann)
"""

HIDDEN_DEVICES = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "")
"""Variables with which libraries of GPUs see no card."""

_PROVIDERS: Mapping[NormalizedName, str] = {
    canonicalize_name("onnxruntime"): "CPUExecutionProvider",
    canonicalize_name("onnxruntime-gpu"): "CUDAExecutionProvider",
    canonicalize_name("onnxruntime-directml"): "DmlExecutionProvider",
    canonicalize_name("onnxruntime-windowsml"): "DmlExecutionProvider",
    canonicalize_name("onnxruntime-rocm"): "ROCMExecutionProvider",
    canonicalize_name("onnxruntime-migraphx"): "MIGraphXExecutionProvider",
    canonicalize_name("onnxruntime-openvino"): "OpenVINOExecutionProvider",
}
"""What a distribution of ONNX Runtime is installed for. Source: https://onnxruntime.ai/docs/install/"""

PROVIDER_MAKERS: Mapping[str, str] = {
    "CUDAExecutionProvider": "10de",
    "ROCMExecutionProvider": "1002",
    "MIGraphXExecutionProvider": "1002",
    "OpenVINOExecutionProvider": "8086",
}
"""Execution providers that compute on the devices of one maker → its PCI vendor."""


def providers(names: Collection[NormalizedName], back_end: str) -> tuple[str, ...]:
    """Name the execution providers that must compute, for what a lock installs; none where it has no ONNX Runtime.

    On a machine without an accelerator that is the CPU's, whichever distribution there is.
    """
    found = {provider for name, provider in _PROVIDERS.items() if name in names}
    if found and back_end == "cpu":
        return ("CPUExecutionProvider",)
    return tuple(sorted(found))
