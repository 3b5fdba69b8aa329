"""Ask Windows' configuration manager which display devices are plugged in; starts no process, changes nothing.

The registry remembers every card that was ever in this machine, and CIM takes seconds and a process to say which of
them are there: `cfgmgr32.dll` says it in a millisecond.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable

from patchlock.hardware._windows.records import DISPLAY_CLASS, Plugged, pci_address
from patchlock.model.hosts import Failure

_BY_ENUMERATOR, _PRESENT, _BY_CLASS = 0x1, 0x100, 0x200
"""CM_GETIDLIST_FILTER_… Source: …/api/cfgmgr32/nf-cfgmgr32-cm_get_device_id_listw on learn.microsoft.com"""
_DESCRIPTION, _COMPATIBLE_IDS, _DRIVER, _NAME, _BUS, _ADDRESS = 0x01, 0x03, 0x0A, 0x0D, 0x16, 0x1D
"""CM_DRP_… of cfgmgr32.h. Source: …/api/cfgmgr32/nf-cfgmgr32-cm_get_devnode_registry_propertyw"""
_HAS_PROBLEM = 0x400
"""DN_HAS_PROBLEM of cfg.h. Source: …/api/cfgmgr32/nf-cfgmgr32-cm_get_devnode_status"""
_SUCCESS = 0
_DISPLAY = "CC_03"
"""In the compatible ids of a display controller: base class 03 of PCI."""
_MOST = 4096
"""Devices on PCI, and characters of a property."""


class _RefusedError(Exception):
    """The configuration manager did not answer; carries a clause."""


def plugged(manager: ctypes.CDLL | None = None) -> tuple[tuple[Plugged, ...] | None, tuple[Failure, ...]]:
    """List the display devices that are plugged in, also those that have no driver.

    Args:
        manager: the functions of cfgmgr32.dll; Windows' own, where it is not given.

    Returns:
        The devices, or None where Windows did not say; and why it did not.
    """
    try:
        manager = manager or _manager()
        display = _instances(manager, DISPLAY_CLASS, _BY_CLASS)
        # A card without a driver is in no class.
        on_pci = _instances(manager, "PCI", _BY_ENUMERATOR)
        others = [instance for instance in on_pci if instance not in display and _is_display(manager, instance)]
        found = tuple(_describe(manager, instance) for instance in (*display, *others))
    except (_RefusedError, OSError, AttributeError) as error:
        return None, (Failure(probe="cfgmgr32", why=f"which cards are plugged in was not answered: {_why(error)}"),)
    return tuple(one for one in found if one is not None), ()


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, _RefusedError) else type(error).__name__


def _manager() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.WinDLL("cfgmgr32")
    raise _RefusedError("this is not Windows")


def _instances(manager: ctypes.CDLL, what: str, by: int) -> list[str]:
    """List the instances of what is present, of a class or an enumerator."""
    size = ctypes.c_ulong()
    _demand(manager.CM_Get_Device_ID_List_SizeW(ctypes.byref(size), what, by | _PRESENT), "CM_Get_Device_ID_List_Size")
    if not size.value:  # an empty list has a character, too; Wine has none of its functions behind this one
        raise _RefusedError("CM_Get_Device_ID_List_Size gave 0 characters")
    buffer = ctypes.create_unicode_buffer(size.value)
    _demand(manager.CM_Get_Device_ID_ListW(what, buffer, size, by | _PRESENT), "CM_Get_Device_ID_List")
    return [instance for instance in str(buffer[:]).split("\0") if instance][:_MOST]


def _demand(answer: int, function: str) -> None:
    if answer != _SUCCESS:
        raise _RefusedError(f"{function} gave {answer:#x}")


def _node(manager: ctypes.CDLL, instance: str) -> ctypes.c_ulong | None:
    """Find an instance; None where it was unplugged in this moment."""
    node = ctypes.c_ulong()
    found = manager.CM_Locate_DevNodeW(ctypes.byref(node), instance, 0)
    return node if found == _SUCCESS else None


def _is_display(manager: ctypes.CDLL, instance: str) -> bool:
    node = _node(manager, instance)
    return node is not None and any(_DISPLAY in one.upper() for one in _texts(manager, node, _COMPATIBLE_IDS))


def _describe(manager: ctypes.CDLL, instance: str) -> Plugged | None:
    node = _node(manager, instance)
    if node is None:
        return None
    status, problem = ctypes.c_ulong(), ctypes.c_ulong()
    _demand(
        manager.CM_Get_DevNode_Status(ctypes.byref(status), ctypes.byref(problem), node, 0), "CM_Get_DevNode_Status"
    )
    bus, address = _number(manager, node, _BUS), _number(manager, node, _ADDRESS)
    return Plugged(
        id=instance,
        name=_first(_texts(manager, node, _NAME)) or _first(_texts(manager, node, _DESCRIPTION)),
        driver=_first(_texts(manager, node, _DRIVER)),
        problem=problem.value if status.value & _HAS_PROBLEM else 0,
        address="" if bus is None or address is None else pci_address(bus, address),
    )


def _property(manager: ctypes.CDLL, node: ctypes.c_ulong, which: int) -> bytes:
    """Give the bytes of a property; none where the device has none."""
    buffer = ctypes.create_string_buffer(2 * _MOST)
    length = ctypes.c_ulong(len(buffer))
    found = manager.CM_Get_DevNode_Registry_PropertyW(node, which, None, buffer, ctypes.byref(length), 0)
    return buffer.raw[: length.value] if found == _SUCCESS else b""


def _texts(manager: ctypes.CDLL, node: ctypes.c_ulong, which: int) -> list[str]:
    said = _property(manager, node, which).decode("utf-16-le", errors="replace")
    return [text for text in said.split("\0") if text]


def _number(manager: ctypes.CDLL, node: ctypes.c_ulong, which: int) -> int | None:
    data = _property(manager, node, which)
    return int.from_bytes(data, "little") if len(data) == 4 else None


def _first(texts: Iterable[str]) -> str:
    return next(iter(texts), "")
