"""Which device computes: CUDA (also that of ROCm and ZLUDA) or XPU, else DirectML or Metal, else the processor; by patchlock.

PATCHLOCK_DEVICE=cpu keeps everything on the processor; a number there names one of several cards of DirectML.
PATCHLOCK_METAL=1, which the profile mps-macos sets, gives Metal to an app that does not ask for it.
"""

import functools
import os
import sys

import torch

HINT = "to compute on a card: `patchlock doctor` says why none starts, `patchlock detect` which profile fits this machine"


@functools.cache
def chosen(*, with_directml=True, with_mps=False):
    """Give the best device that starts, and say on standard error which it is, why, and what would be faster."""
    card = xpu if getattr(torch.version, "xpu", None) else cuda
    with_mps = with_mps or os.environ.get("PATCHLOCK_METAL") == "1"
    return _first(card, *[directml] * with_directml, *[mps] * with_mps)


@functools.cache
def asked(name, *, with_mps=False):
    """Give the device that an option of the app names, or the next one where that card does not start; as a text."""
    if not name.startswith("cuda"):
        return str(_first(lambda: (torch.device(name), "an option says so")))
    return str(_first(lambda: cuda(name), *[mps] * with_mps))


@functools.cache
def is_forced_to_cpu():
    """Say whether the user wants the processor; a value of the variable that means nothing is told once."""
    wanted = os.environ.get("PATCHLOCK_DEVICE", "")
    if wanted not in {"", "cpu"} and not wanted.isdigit():
        told = f'PATCHLOCK_DEVICE is "{wanted}", which is passed over: set it to cpu, or to the number of a card'
        print(f"device: {told}", file=sys.stderr, flush=True)
    return wanted == "cpu"


def has_cuda():
    """Say whether a card of CUDA, ROCm or ZLUDA starts, and is wanted."""
    return not is_forced_to_cpu() and cuda()[0] is not None


def has_directml():
    """Say whether a card of DirectML starts, and is wanted."""
    return not is_forced_to_cpu() and directml()[0] is not None


def has_mps():
    """Say whether Metal starts, and is wanted."""
    return not is_forced_to_cpu() and mps()[0] is not None


@functools.cache
def cuda(name="cuda"):
    """Give that device of CUDA, ROCm or ZLUDA, or None; and why."""
    if not (torch.version.hip or torch.version.cuda):
        return None, "this torch is built without CUDA and ROCm"
    platform = "ROCm" if torch.version.hip else "CUDA"
    try:
        if not torch.cuda.is_available():
            return None, f"{platform} sees no card"
        return _computing(torch.device(name)), f"{platform} has {torch.cuda.get_device_name(name)}"
    except Exception as error:  # what a driver raises when it does not start is of no one class
        return None, f"{platform} does not start: {_said(error)}"


@functools.cache
def directml():
    """Give the device of DirectML, or None; and why."""
    try:
        import torch_directml

        if not torch_directml.is_available():
            return None, "DirectML sees no card"
        number = os.environ.get("PATCHLOCK_DEVICE", "")
        index = int(number) if number.isdigit() else torch_directml.default_device()
        return _computing(torch_directml.device(index)), f"DirectML has {torch_directml.device_name(index)}"
    except ImportError as error:
        return None, f"DirectML: {_said(error)}"
    except Exception as error:
        return None, f"DirectML does not start: {_said(error)}"


@functools.cache
def xpu():
    """Give the device of Intel's GPUs, or None; and why."""
    try:
        if not torch.xpu.is_available():
            return None, "XPU sees no card"
        return _computing(torch.device("xpu")), f"XPU has {torch.xpu.get_device_name()}"
    except Exception as error:
        return None, f"XPU does not start: {_said(error)}"


@functools.cache
def mps():
    """Give the device of Apple's Metal, or None; and why."""
    try:
        if not torch.backends.mps.is_available():
            return None, "Metal sees no card"
        return _computing(torch.device("mps")), "Metal has a card"
    except Exception as error:
        return None, f"Metal does not start: {_said(error)}"


def _first(*kinds):
    """Give the first device that starts, else the processor, and say which it is and why."""
    device, reasons = None, ["PATCHLOCK_DEVICE says so"]
    if not is_forced_to_cpu():
        reasons = []
        for kind in kinds:
            device, why = kind()
            reasons.append(why)
            if device is not None:
                break
    if device is None and len(reasons) > 1:
        reasons[-1] = f"and {reasons[-1]}"
    print(f"device: {device or 'cpu'} ({', '.join(reasons)})", file=sys.stderr, flush=True)
    if device is None and not is_forced_to_cpu():
        print(f"device: {HINT}", file=sys.stderr, flush=True)
    return device or torch.device("cpu")


def _computing(device):
    """Give the device back, if it can add."""
    if torch.ones(2, device=device).sum().item() != 2:
        raise RuntimeError("one and one are not two there")
    return device


def _said(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
