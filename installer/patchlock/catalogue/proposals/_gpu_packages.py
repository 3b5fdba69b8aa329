"""Which distributions have no use on a machine without a card, by what they are and not by a list of names; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.model.profile import Profile

Needs = Literal["nvidia", "card", "compiler"]


@dataclass(frozen=True, kw_only=True)
class GpuPackage:
    """Why a distribution needs a card."""

    module: str
    """Its top-level module; "" where nobody imports it."""
    why: str
    """A clause."""
    needs: Needs
    """An NVIDIA card, one for which torch compiles code, or CUDA's compiler."""


_COMPILED = "it is compiled by CUDA's compiler when it is installed"
_KINDS: Sequence[tuple[str, str, str, Needs]] = (
    (r"tensorrt(?:-.*)?|torch-tensorrt|onnx-tensorrt|nvidia-tensorrt", "tensorrt", "it is NVIDIA's TensorRT", "nvidia"),
    (r"nvidia-(?!ml-py|dali).*", "", "it is one of CUDA's libraries", "nvidia"),
    (r"pycuda|cuda-python|cuda-bindings|numba-cuda", "", "it is linked against CUDA", "nvidia"),
    (r"cupy(?:-cuda.*)?", "cupy", "its arrays are on an NVIDIA card", "nvidia"),
    (r"(?:cuml|cudf|cugraph|cuvs|rmm|pylibraft)(?:-cu\d+)?", "", "it is one of RAPIDS, which needs CUDA", "nvidia"),
    (r"(.+)-cu(?:da)?1[0-9](?:\d|x)*", r"\1", "its name says that it is a build for CUDA", "nvidia"),
    (r"apex|nvidia-apex", "apex", _COMPILED, "nvidia"),
    (r"flash-attn(?:-.*)?|flash-attention|flash-attn-3", "flash_attn", _COMPILED, "card"),
    (r"causal-conv1d", "causal_conv1d", _COMPILED, "card"),
    (r"mamba-ssm", "mamba_ssm", _COMPILED, "card"),
    (r"deepspeed", "deepspeed", "its build asks for CUDA's compiler", "compiler"),
    (r"(?:auto-gptq|autoawq.*|exllamav[23].*|gptqmodel|spas-sage-attn)", "", _COMPILED, "card"),
    (r"sageattention", "sageattention", "its kernels are for CUDA alone", "nvidia"),
    (r"bitsandbytes(?:-.*)?", "bitsandbytes", "before 0.46 it quantizes models on a card alone", "card"),
    (r"xformers", "xformers", "its kernels are for CUDA and ROCm, and it asks for one exact torch", "card"),
    (
        r"triton(?:-windows|-nightly)?|pytorch-triton.*",
        "triton",
        "torch brings its own where it has a use for it",
        "card",
    ),
    (r"vllm|sglang|lmdeploy", "", "its wheels are for CUDA", "card"),
    (r"liger-kernel", "liger_kernel", "its kernels are written in Triton", "card"),
)
"""Pattern of the whole name, module (of the first group where it says so; "" for that of the name), why, and needs.

Source, of DeepSpeed: https://www.deepspeed.ai/tutorials/advanced-install/
"""
_UPPER = frozenset({"==", "<", "<=", "~="})
_WITHOUT_CARD = {"bitsandbytes": Version("0.46")}
"""The first version that computes without a card.

Source: PyPI: bitsandbytes 0.46.0, backends/cpu/ops.py and the table of its README; bitsandbytes 0.49.2, whose wheel has
libbitsandbytes_cpu.so and libbitsandbytes_xpu.so, and whose README lists CPU, xpu and mps.
"""


def find(name: NormalizedName, specifier: SpecifierSet) -> GpuPackage | None:
    """Say why a distribution needs a card; None where some version that a specifier allows does not."""
    if name in _WITHOUT_CARD and not _is_below(specifier, _WITHOUT_CARD[name]):
        return None
    for pattern, module, why, needs in _KINDS:
        if found := re.fullmatch(pattern, name):
            top = found.expand(module) if module else name
            return GpuPackage(module=canonicalize_name(top).replace("-", "_"), why=why, needs=needs)
    return None


def _is_below(specifier: SpecifierSet, version: Version) -> bool:
    bounds = [(one.operator, Version(one.version.removesuffix(".*"))) for one in specifier]
    return any(bound < version or (sign, bound) == ("<", version) for sign, bound in bounds if sign in _UPPER)


def profiles_without(needs: Needs, profiles: Iterable[Profile]) -> tuple[str, ...]:
    """Name the profiles that have no use for it.

    ZLUDA runs programs for CUDA, and has no code of Triton's or of those that compile with it.
    """
    useful = {"nvidia": {"cuda"}, "card": {"cuda", "rocm"}, "compiler": frozenset()}[needs]
    return tuple(profile.name for profile in profiles if profile.back_end not in useful)
