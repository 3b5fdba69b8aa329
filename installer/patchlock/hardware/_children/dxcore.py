"""List Windows' graphics cards from inside WSL, as JSON on standard output: `dxcore.py LIBRARY`.

It runs in a process of its own, because a broken driver can crash or hang it. The answer has `cards`, each with what
it has of `name`, `driver` (Windows' version of it), `vendor`, `device`, `revision`, `memory` and `hardware`; or it has
`failed`.

Source: https://learn.microsoft.com/en-us/windows/win32/api/dxcore_interface/ and the headers that Mesa uses,
https://github.com/microsoft/DirectX-Headers/blob/main/include/directx/dxcore_interface.h
"""

import ctypes
import json
import os
import struct
import sys
import uuid
from typing import Any

_FACTORY = uuid.UUID("78ee5945-c36e-4b13-a669-005dd11c0f06")
_LIST = uuid.UUID("526c7776-40e9-459b-b711-f32ad76dfc28")
_ADAPTER = uuid.UUID("f0db4c7f-fe5a-42a2-bd62-f2a6cf6fc83e")
_CORE_COMPUTE = uuid.UUID("248e2800-a793-4724-abaa-23a6de1be090")
_CREATE_LIST, _GET_ADAPTER, _COUNT, _IS_SUPPORTED, _GET_PROPERTY, _PROPERTY_SIZE = 3, 3, 4, 5, 6, 7
"""Places in the tables of functions; the first three are IUnknown's."""
_VERSION, _DESCRIPTION, _HARDWARE, _MEMORY, _IS_HARDWARE = 1, 2, 3, 7, 11
"""DXCoreAdapterProperty."""


class _FailedError(Exception):
    """A call that the library refused."""


def main() -> None:
    """Ask, and print."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    answer: dict[str, Any] = {"cards": []}
    try:
        answer["cards"] = _cards(ctypes.CDLL(sys.argv[1]))
    except (OSError, AttributeError, _FailedError) as error:
        answer["failed"] = str(error)
    answers.write(json.dumps(answer))
    answers.flush()


def _cards(library: ctypes.CDLL) -> list[dict[str, Any]]:
    factory, listed = ctypes.c_void_p(), ctypes.c_void_p()
    _check("DXCoreCreateAdapterFactory", library.DXCoreCreateAdapterFactory(_guid(_FACTORY), ctypes.byref(factory)))
    kinds = (ctypes.c_uint32(1), _guid(_CORE_COMPUTE), _guid(_LIST), ctypes.byref(listed))
    _check("CreateAdapterList", _method(factory, _CREATE_LIST)(factory, *kinds))
    count = _method(listed, _COUNT, ctypes.c_uint32)(listed)
    found = []
    for index in range(min(count, 64)):
        card = ctypes.c_void_p()
        code = _method(listed, _GET_ADAPTER)(listed, ctypes.c_uint32(index), _guid(_ADAPTER), ctypes.byref(card))
        _check("GetAdapter", code)
        found.append(_card(card))
    return found


def _card(card: ctypes.c_void_p) -> dict[str, Any]:
    found: dict[str, Any] = {}
    name = _property(card, _DESCRIPTION)
    if name:
        found["name"] = name.partition(b"\0")[0].decode("utf-8", "replace")
    ids = _property(card, _HARDWARE)
    if len(ids) >= 16:
        vendor, device, _, revision = struct.unpack_from("=IIII", ids)
        found |= {"vendor": vendor, "device": device, "revision": revision}
    memory, version = _property(card, _MEMORY), _property(card, _VERSION)
    if len(memory) == 8:
        found["memory"] = struct.unpack("=Q", memory)[0]
    if len(version) == 8:
        found["driver"] = ".".join(map(str, reversed(struct.unpack("=HHHH", version))))
    is_hardware = _property(card, _IS_HARDWARE)
    if is_hardware:
        found["hardware"] = is_hardware[0] != 0
    return found


def _property(card: ctypes.c_void_p, which: int) -> bytes:
    wanted = ctypes.c_uint32(which)
    if not _method(card, _IS_SUPPORTED, ctypes.c_bool)(card, wanted):
        return b""
    size = ctypes.c_size_t(0)
    if _method(card, _PROPERTY_SIZE)(card, wanted, ctypes.byref(size)) != 0 or not 0 < size.value <= 4096:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    return buffer.raw if _method(card, _GET_PROPERTY)(card, wanted, size, buffer) == 0 else b""


def _method(thing: ctypes.c_void_p, place: int, result: Any = ctypes.c_int32) -> Any:
    """Give a function of a COM object by its place in the object's table."""
    table = ctypes.cast(thing, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    return ctypes.CFUNCTYPE(result)(table[place] or 0)


def _guid(value: uuid.UUID) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(value.bytes_le, 16)


def _check(name: str, code: int) -> None:
    if code < 0:
        raise _FailedError(f"{name} gave {code & 0xFFFFFFFF:#x}")


if __name__ == "__main__":
    main()
