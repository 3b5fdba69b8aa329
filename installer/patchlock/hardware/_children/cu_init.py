"""Ask CUDA's driver library whether it starts, as JSON on standard output: `cu_init.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `init`, the number that
cuInit(0) gave, `cuda`, the newest CUDA that the driver runs (13000), and `names` of the cards; or `failed`.

Source: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html
"""

import ctypes
import json
import os
import sys

_MOST = 64
"""Cards."""


def main() -> None:
    """Ask, and print."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    answer: dict[str, object] = {}
    try:
        cuda = ctypes.CDLL(sys.argv[1])
        version = ctypes.c_int(0)
        if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0 and version.value:
            answer["cuda"] = version.value
        answer["init"] = cuda.cuInit(0)
        if answer["init"] == 0 and hasattr(cuda, "cuDeviceGetName"):
            answer["names"] = _names(cuda)
    except (OSError, AttributeError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


def _names(cuda: ctypes.CDLL) -> list[str]:
    count, found = ctypes.c_int(0), []
    if cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for index in range(min(count.value, _MOST)):
            device, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
            if cuda.cuDeviceGet(ctypes.byref(device), index) == 0 and cuda.cuDeviceGetName(name, 256, device) == 0:
                found.append(name.value.decode("utf-8", "replace"))
    return found


if __name__ == "__main__":
    main()
