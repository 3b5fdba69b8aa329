"""Read how Linux is set up for accelerators: modules of the kernel, Secure Boot, what a user's site folder shadows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from patchlock.core.bounded_files import FileReader
from patchlock.model.hosts import Device

_MODPROBE = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")
"""Source: https://man7.org/linux/man-pages/man5/modprobe.d.5.html"""
_SHADOWING = frozenset(
    (
        *("torch", "torchaudio", "torchvision", "torchcodec", "torchao", "torch-directml", "triton", "triton-windows"),
        *("pytorch-triton-rocm", "numpy", "onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-rocm"),
        *("onnxruntime-migraphx", "onnxruntime-openvino", "ctranslate2", "bitsandbytes", "xformers", "flash-attn"),
        *("tensorflow", "jax", "jaxlib", "cupy-cuda12x", "cupy-cuda13x", "rocm"),
    )
)
_PREFIXES = ("nvidia-", "rocm-sdk", "cuda-")
"""Distributions that choose what computes; beginnings of such names."""


def modules(files: FileReader, devices: Iterable[Device]) -> dict[str, str]:
    """Say whether nouveau is loaded, and how it stands with amdgpu where there is a card for it."""
    found = {}
    if files.has("sys/module/nouveau"):
        found["nouveau"] = "loaded"
    if files.has("sys/module") and any(device.vendor == "1002" for device in devices):
        is_loaded = files.has("sys/module/amdgpu")
        blocked = "blacklisted" if not is_loaded and _is_blocked(files, "amdgpu") else "absent"
        found["amdgpu-module"] = "loaded" if is_loaded else blocked
    return found


def secure_boot(files: FileReader) -> str:
    """Say whether Secure Boot is `on` or `off`; "" where UEFI did not start the machine, or nobody may look.

    A variable is four bytes of attributes, then its value. Shim has a switch of its own, which the kernel heeds.

    Source: https://docs.kernel.org/filesystems/efivarfs.html and efi_get_secureboot of
    https://github.com/torvalds/linux/blob/master/drivers/firmware/efi/libstub/secureboot.c
    """
    variable = files.text(_SECURE_BOOT)
    if not variable:
        return ""
    is_ignored = files.text(_MOK_STATE).endswith("\1")
    return "on" if variable.endswith("\1") and not is_ignored else "off"


_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MOK_STATE = "sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"


def _is_blocked(files: FileReader, module: str) -> bool:
    """Say whether the kernel's command line or a file of modprobe's keeps a module from being loaded."""
    for word in files.text("proc/cmdline").split():
        key, _, value = word.partition("=")
        if key in {"modprobe.blacklist", "module_blacklist"} and module in value.split(","):
            return True
    line = re.compile(rf"^\s*(blacklist\s+{module}\s*$|install\s+{module}\s+/(usr/)?bin/(false|true)\b)", re.MULTILINE)
    names = [f"{folder}/{name}" for folder in _MODPROBE for name in files.names(folder) if name.endswith(".conf")]
    return any(line.search(files.text(name)) for name in names)


def user_site(files: FileReader, environ: Mapping[str, str]) -> str:
    """Name the distributions in the user's site folders that choose what computes, comma separated.

    Of every Python, as an environment's need not be the one that runs this.

    Source: https://docs.python.org/3/library/site.html#site.USER_BASE
    """
    base = environ.get("PYTHONUSERBASE") or f"{environ.get('HOME', '')}/.local"
    if not base.startswith("/") or "\0" in base:
        return ""
    below = f"{base.strip('/')}/lib"
    pythons = (name for name in files.names(below) if name.startswith("python3"))
    return shadowing(name for python in pythons for name in files.names(f"{below}/{python}/site-packages"))


def shadowing(names: Iterable[str]) -> str:
    """Name the distributions that choose what computes, comma separated.

    Args:
        names: of all that a site folder has; the folders of distributions end in `.dist-info`.
    """
    found = set()
    for name in names:
        distribution, _, kind = name.partition("-")
        if kind.endswith(".dist-info"):
            found.add(re.sub(r"[-_.]+", "-", distribution).lower())
    return ",".join(sorted(one for one in found if one in _SHADOWING or one.startswith(_PREFIXES)))
