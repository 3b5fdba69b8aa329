"""Ask CUDA's driver library whether it starts, as JSON on standard output: `cu_init.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `init`, the number that
cuInit(0) gave, and `cuda`, the newest CUDA that the driver runs (13000); or `failed`.

Source: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html
"""

import ctypes
import json
import os
import sys


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
    except (OSError, AttributeError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


if __name__ == "__main__":
    main()
