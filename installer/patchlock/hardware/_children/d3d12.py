"""Ask Direct3D 12 whether its first card starts, as JSON on standard output: `d3d12.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `code`, the HRESULT of
making a device, which is 0 or 1 where one could be made; or `failed`.

Source: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/nf-d3d12-d3d12createdevice
"""

import ctypes
import json
import os
import sys
import uuid

_DEVICE = uuid.UUID("189819f1-1db6-4b57-be54-1821339b85f7")
"""ID3D12Device."""
_FEATURE_LEVEL = 0xB000
"""11.0, the least that DirectML takes."""


def main() -> None:
    """Ask, and print."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    answer: dict[str, object] = {}
    try:
        library = ctypes.CDLL(sys.argv[1])
        wanted = ctypes.create_string_buffer(_DEVICE.bytes_le, 16)
        code = library.D3D12CreateDevice(None, ctypes.c_int(_FEATURE_LEVEL), wanted, None)  # makes none: S_FALSE
        answer["code"] = code & 0xFFFFFFFF
    except (OSError, AttributeError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


if __name__ == "__main__":
    main()
