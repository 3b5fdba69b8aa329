"""Tests of troubles that no key of the catalogue can say, each with a name; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue._troubles.devices import device_label
from patchlock.model.byte_sizes import size_text
from patchlock.model.devices import KnownDevice
from patchlock.model.policy import Family
from patchlock.model.troubles import Observations, Test

_FOUR_GB = 4 * 1024**3
_TORCH = canonicalize_name("torch")
_OF_ENVIRONMENTS = (".venv", "venv", "site-packages", "_rocm_sdk")
"""Parts of a path that lies in an environment."""


def adapter_ram_lies(facts: Observations) -> str | None:
    """Hold where Windows' `AdapterRAM` is at its end of 32 bits and the driver knows of more.

    Source: https://learn.microsoft.com/windows/win32/cimwin32prov/win32-videocontroller (AdapterRAM is uint32)
    """
    claimed = facts.recording.host.settings.get("adapter-ram", "")
    largest = max((device.device.memory for device in facts.devices), default=0)
    if not claimed.isdecimal() or int(claimed) > _FOUR_GB or largest <= _FOUR_GB:
        return None
    return f"Win32_VideoController claims {size_text(int(claimed))}, the driver {size_text(largest)}"


def family_differs(facts: Observations) -> str | None:
    """Hold where a member of a binary family is for another version, or another build, of its head."""
    for family in facts.families:
        for name in sorted(family.members):
            if (words := _differs(family, name, facts)) is not None:
                return words
    return None


def _differs(family: Family, name: str, facts: Observations) -> str | None:
    head, member = (_version(facts.version(canonicalize_name(one))) for one in (family.head, name))
    if head is None or member is None:
        return None
    row = family.members[canonicalize_name(name)].get(Version(member.public))
    if row is not None and Version(head.public) not in row.fits:
        fits = ", ".join(map(str, row.fits))
        return f"{name} is {member}, which is made for {family.head} {fits}; {family.head} is {head}"
    builds = row.builds if row is not None else "same-if-tagged"
    if builds != "any" and head.local and member.local and _backend(head.local) != _backend(member.local):
        return f"{name} is the build {member.local}, and {family.head} the build {head.local}"
    return None


def _backend(local: str) -> str:
    """Shorten a local version to what must agree: `cu130`, `cpu`, `rocm7.2`; a commit beside it says nothing."""
    found = re.match(r"cpu|cu\d+|rocm[\d.]*\d|xpu", local)
    return found[0] if found else local


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:
        return None


def override_names_own_arch(facts: Observations) -> str | None:
    """Hold where `HSA_OVERRIDE_GFX_VERSION` makes every card what it is anyway.

    Source: rocm-cli, `crates/rocm-core/src/diagnose.rs`, check 2
    """
    value = facts.recording.host.variables.get("HSA_OVERRIDE_GFX_VERSION", "")
    spoofed = _gfx(value)
    archs = {device.arch for device in facts.devices if device.arch.startswith("gfx")}
    if not spoofed or archs != {spoofed}:
        return None
    return f"HSA_OVERRIDE_GFX_VERSION={value} says {spoofed}, which the card is anyway"


def _gfx(version: str) -> str:
    """Turn `11.0.3` into `gfx1103`; "" where it is no such version."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    return f"gfx{int(found[1])}{int(found[2]):x}{int(found[3]):x}" if found else ""


def rocm_before_environment(facts: Observations) -> str | None:
    """Hold where PATH has a ROCm or HIP SDK, and torch brings its own."""
    folders = facts.recording.host.settings.get("rocm-on-path", "")
    local = facts.version(_TORCH).partition("+")[2]
    outside = [one for one in re.split(r";|(?<!\b[A-Za-z]):", folders) if one and not _is_environment(one)]
    if not outside or not (local.startswith("rocm") or facts.version(canonicalize_name("rocm"))):
        return None
    return f"PATH has {outside[0]}, and torch {facts.version(_TORCH)} brings its own ROCm"


def _is_environment(folder: str) -> bool:
    return any(part in _OF_ENVIRONMENTS for part in re.split(r"[\\/]", folder))


def two_onnxruntimes(facts: Observations) -> str | None:
    """Hold where several distributions that all write `onnxruntime/` are in one environment."""
    found = [f"{name} {version}" for name, version in sorted(facts.recording.packages.items()) if _is_runtime(name)]
    return f"{' and '.join(found)} share one folder" if len(found) > 1 else None


def _is_runtime(name: str) -> bool:
    return (
        re.fullmatch(r"(ort-nightly|onnxruntime)(-(gpu|directml|rocm|migraphx|openvino|qnn|windowsml|silicon))?", name)
        is not None
    )


def every_card_hidden(facts: Observations) -> str | None:
    """Hold where a variable hides all cards of a machine that has some."""
    real = [device for device in facts.devices if not (isinstance(device, KnownDevice) and device.card.is_integrated)]
    if not real or not all(device.device.is_hidden for device in real):
        return None
    variables = facts.recording.host.variables
    said = [f'{name}="{variables[name]}"' for name in _HIDING if name in variables]
    return f"{' and '.join(said) or 'a variable'} hides {', '.join(map(device_label, real))}"


_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def arch_list_misses_card(facts: Observations) -> str | None:
    """Hold where `TORCH_CUDA_ARCH_LIST` names code that no NVIDIA card of this machine runs.

    Code for 8.0 runs on 8.6, and with `+PTX` on all later ones; a name (`Ampere`), or a number that is not understood,
    proves nothing. What is built for one card of several is meant so.

    Source: https://docs.pytorch.org/docs/stable/cpp_extension.html;
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility
    """
    value = facts.recording.host.variables.get("TORCH_CUDA_ARCH_LIST", "")
    wanted = [_CAPABILITY.fullmatch(text) for text in re.split(r"[\s;,]+", value) if text]
    cards = [(one, found) for one in facts.devices if (found := re.fullmatch(r"sm_(\d+)(\d)", one.arch))]
    if not wanted or not cards or None in wanted:
        return None
    for _, card in cards:
        own = int(card[1]), int(card[2])
        if any(_runs(own, code) for code in wanted if code is not None):
            return None
    return f"TORCH_CUDA_ARCH_LIST={value} has no code for {device_label(cards[0][0])} ({cards[0][0].arch})"


_CAPABILITY = re.compile(r"(?P<major>\d+)\.(?P<minor>\d)(?P<exact>[af])?(?P<ptx>\+PTX)?")
_JETSON = ((5, 3), (6, 2), (7, 2), (8, 7), (11, 0))
"""They run no code for other chips of their major number. Source: the CUDA programming guide, binary compatibility."""


def _runs(card: tuple[int, int], code: re.Match[str]) -> bool:
    made = int(code["major"]), int(code["minor"])
    if made == card or (code["ptx"] is not None and made <= card):
        return True
    return not code["exact"] and card not in _JETSON and made[0] == card[0] and made <= card


def three_gfx_archs(facts: Observations) -> str | None:
    """Hold where programs see AMD's cards of three archs or more.

    Source: https://github.com/ROCm/legacy-rocm-build/issues/2874
    """
    archs = {one.arch for one in facts.devices if one.arch.startswith("gfx") and not one.device.is_hidden}
    return f"cards of {', '.join(sorted(archs))}" if len(archs) > 2 else None


RULES: Mapping[str, Test] = {
    "adapter-ram-lies": adapter_ram_lies,
    "arch-list-misses-card": arch_list_misses_card,
    "every-card-hidden": every_card_hidden,
    "family-differs": family_differs,
    "override-names-own-arch": override_names_own_arch,
    "rocm-before-environment": rocm_before_environment,
    "three-gfx-archs": three_gfx_archs,
    "two-onnxruntimes": two_onnxruntimes,
}
