"""Which device computes: CUDA (also that of ROCm and ZLUDA), else DirectML, else the processor; added by patchlock.

PATCHLOCK_DEVICE=cpu keeps everything on the processor; a number there names one of several cards of DirectML.
"""

import functools
import os
import sys

import torch

HINT = "to compute on a card: `patchlock doctor` says why none starts, `patchlock detect` which profile fits this machine"


@functools.cache
def chosen(*, with_directml=True):
    """Give the best device that starts, and say on standard error which it is, why, and what would be faster."""
    if is_forced_to_cpu():
        device, why = None, "PATCHLOCK_DEVICE says so"
    else:
        device, why = cuda()
        if device is None and with_directml:
            without = why
            device, why = directml()
            why = f"{without}, {why}" if device is not None else f"{without}, and {why}"
    print(f"device: {device or 'cpu'} ({why})", file=sys.stderr, flush=True)
    if device is None and not is_forced_to_cpu():
        print(f"device: {HINT}", file=sys.stderr, flush=True)
    return device or torch.device("cpu")


def is_forced_to_cpu():
    """Say whether the user wants the processor."""
    return os.environ.get("PATCHLOCK_DEVICE") == "cpu"


@functools.cache
def cuda(name="cuda"):
    """Give that device of CUDA, ROCm or ZLUDA, or None; and why."""
    if not (torch.version.hip or torch.version.cuda):
        return None, "this torch is built without CUDA and ROCm"
    platform = "ROCm" if torch.version.hip else "CUDA"
    try:
        if not torch.cuda.is_available():
            return None, f"{platform} sees no card"
        return _computing(torch.device(name)), f"{platform} has {torch.cuda.get_device_name()}"
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


def _computing(device):
    """Give the device back, if it can add."""
    if torch.ones(2, device=device).sum().item() != 2:
        raise RuntimeError("one and one are not two there")
    return device


def _said(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
