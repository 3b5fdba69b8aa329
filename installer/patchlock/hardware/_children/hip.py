"""Ask HIP's runtime of AMD's driver for its cards, as JSON on standard output: `hip.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `cards` in HIP's own
order, each with what it has of `name`, `arch`, `address`, `memory`; or `failed`, the name of the call and its number.

Source: https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html
"""

import ctypes
import json
import os
import re
import sys
from typing import Any

_MOST = 64
"""Cards."""
_SIZE = 16384
"""Bytes: several times hipDeviceProp_t, which grows with each version of HIP."""
_NAME = 256
"""Bytes that the name has in it, at its beginning in every version; gcnArchName comes somewhere behind."""
_ARCH = re.compile(rb"gfx[0-9a-f]{3,5}")
_NO_DEVICE = 100
"""hipErrorNoDevice."""


class _FailedError(Exception):
    """A call that the library refused."""


def main() -> None:
    """Ask, and print."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    if sys.platform == "win32":
        ctypes.windll.kernel32.SetErrorMode(0x8003)  # a crash shows no window
    answer: dict[str, Any] = {"cards": []}
    try:
        _ask(ctypes.CDLL(sys.argv[1]), answer)
    except (OSError, AttributeError, _FailedError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


def _ask(hip: ctypes.CDLL, answer: dict[str, Any]) -> None:
    count = ctypes.c_int()
    code = hip.hipGetDeviceCount(ctypes.byref(count))
    if code not in {0, _NO_DEVICE}:
        raise _FailedError(f"hipGetDeviceCount gave {code}")
    answer["cards"] += [_card(hip, index) for index in range(min(count.value, _MOST))]


def _card(hip: ctypes.CDLL, index: int) -> dict[str, Any]:
    """Ask for what a card has."""
    # HIP 6 gave the function another name when its structure changed.
    name = "hipGetDevicePropertiesR0600" if hasattr(hip, "hipGetDevicePropertiesR0600") else "hipGetDeviceProperties"
    properties = ctypes.create_string_buffer(_SIZE)
    code = hip[name](properties, index)
    if code != 0:
        raise _FailedError(f"{name} gave {code}")
    found: dict[str, Any] = {"name": properties.raw[:_NAME].partition(b"\0")[0].decode("utf-8", "replace")}
    arch = _ARCH.search(properties.raw, _NAME)
    if arch:
        found["arch"] = arch[0].decode()
    address = ctypes.create_string_buffer(32)
    if hip.hipDeviceGetPCIBusId(address, 32, index) == 0:
        found["address"] = address.value.decode("ascii", "replace").lower()
    total = ctypes.c_size_t()
    if hip.hipDeviceTotalMem(ctypes.byref(total), index) == 0:
        found["memory"] = total.value
    return found


if __name__ == "__main__":
    main()
