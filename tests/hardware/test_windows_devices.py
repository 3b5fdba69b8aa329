"""Windows' configuration manager, as a recorded machine answers for it: what is plugged in, and what it refuses."""

# ruff: noqa: N802 - these are the names of Windows

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from patchlock.hardware._windows import devices
from patchlock.hardware._windows.records import DISPLAY_CLASS, Plugged

CARD = r"PCI\VEN_1002&DEV_7550&SUBSYS_88111EAE&REV_C0\6&2B36B191&0&00000009"
NEW = r"PCI\VEN_10DE&DEV_2C58&SUBSYS_30111A58&REV_A1\B73A356AA12DB04800"
NETWORK = r"PCI\VEN_8086&DEV_2725&SUBSYS_00248086&REV_1A\4&1&0&00E0"
NO_SUCH_DEVICE, NO_SUCH_VALUE, STARTED, HAS_PROBLEM = 13, 37, 0x0180200A, 0x400


@dataclasses.dataclass
class Node:
    """One device: its properties by the numbers of cfgmgr32.h."""

    by_class: str
    properties: Mapping[int, str | list[str] | int]
    problem: int = 0
    is_gone: bool = False


class Manager:
    """The six functions of cfgmgr32.dll, over recorded devices."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.ids = list(nodes)

    def _listed(self, what: str, flags: int) -> str:
        assert flags & 0x100, "only what is present"
        if flags & 0x200:
            found = [instance for instance, node in self.nodes.items() if node.by_class == what]
        else:
            found = [instance for instance in self.nodes if instance.startswith(f"{what}\\")]
        return "".join(f"{instance}\0" for instance in found) + "\0"

    def CM_Get_Device_ID_List_SizeW(self, size: Any, what: str, flags: int) -> int:
        size._obj.value = len(self._listed(what, flags))
        return 0

    def CM_Get_Device_ID_ListW(self, what: str, buffer: Any, size: Any, flags: int) -> int:
        listed = self._listed(what, flags)
        assert size.value >= len(listed)
        for place, character in enumerate(listed):
            buffer[place] = character
        return 0

    def CM_Locate_DevNodeW(self, node: Any, instance: str, flags: int) -> int:
        node._obj.value = self.ids.index(instance)
        return NO_SUCH_DEVICE if self.nodes[instance].is_gone else 0

    def CM_Get_DevNode_Status(self, status: Any, problem: Any, node: Any, flags: int) -> int:
        problem._obj.value = self.nodes[self.ids[node.value]].problem
        status._obj.value = STARTED | (HAS_PROBLEM if problem._obj.value else 0)
        return 0

    def CM_Get_DevNode_Registry_PropertyW(
        self, node: Any, which: int, kind: None, buffer: Any, length: Any, flags: int
    ) -> int:
        value = self.nodes[self.ids[node.value]].properties.get(which)
        if value is None:
            return NO_SUCH_VALUE
        if isinstance(value, int):
            data = value.to_bytes(4, "little")
        else:
            words = value if isinstance(value, list) else [value]
            data = ("\0".join(words) + "\0\0").encode("utf-16-le")
        buffer[: len(data)] = data
        length._obj.value = len(data)
        return 0


NODES = {
    CARD: Node(
        DISPLAY_CLASS,
        {0x01: "AMD Radeon RX 9070 XT", 0x0A: rf"{DISPLAY_CLASS}\0003", 0x16: 3, 0x1D: 0},
    ),
    NEW: Node("", {0x01: "Videocontroller", 0x03: [r"PCI\VEN_10DE&CC_030000", r"PCI\CC_0300"], 0x16: 1, 0x1D: 0}, 28),
    NETWORK: Node("{4d36e972-e325-11ce-bfc1-08002be10318}", {0x03: [r"PCI\VEN_8086&CC_0280"]}),
    r"ROOT\BASICDISPLAY\0000": Node(DISPLAY_CLASS, {0x0D: "Microsoft Basic Display Driver"}),
}


def _plugged(nodes: Mapping[str, Node]) -> tuple[Plugged, ...] | None:
    found, failures = devices.plugged(Manager(nodes))  # type: ignore[arg-type]
    assert failures == ()
    return found


def test_display_devices_and_cards_without_a_driver_are_plugged_in() -> None:
    assert _plugged(NODES) == (
        Plugged(id=CARD, name="AMD Radeon RX 9070 XT", driver=rf"{DISPLAY_CLASS}\0003", address="0000:03:00.0"),
        Plugged(id=r"ROOT\BASICDISPLAY\0000", name="Microsoft Basic Display Driver"),
        Plugged(id=NEW, name="Videocontroller", problem=28, address="0000:01:00.0"),
    )


def test_name_that_the_user_sees_comes_first() -> None:
    node = Node(DISPLAY_CLASS, {0x01: "Videocontroller", 0x0D: "AMD Radeon(TM) Graphics"})
    assert [one.name for one in _plugged({CARD: node}) or ()] == ["AMD Radeon(TM) Graphics"]


def test_no_display_device_is_an_answer() -> None:
    assert _plugged({NETWORK: NODES[NETWORK]}) == ()


def test_card_that_is_unplugged_meanwhile_is_none() -> None:
    assert _plugged({CARD: dataclasses.replace(NODES[CARD], is_gone=True)}) == ()


def test_hundreds_of_devices_are_listed() -> None:
    nodes = {rf"PCI\VEN_10DE&DEV_{i:04X}\{i}": Node(DISPLAY_CLASS, {0x01: f"card {i}"}) for i in range(300)}
    assert [one.name for one in _plugged(nodes) or ()] == [f"card {i}" for i in range(300)]


class _Refusing(Manager):
    def CM_Get_Device_ID_ListW(self, what: str, buffer: Any, size: Any, flags: int) -> int:
        return 0x13


class _Empty(Manager):
    """Wine 8 has this function and does nothing in it."""

    def CM_Get_Device_ID_List_SizeW(self, size: Any, what: str, flags: int) -> int:
        size._obj.value = 0
        return 0


@pytest.mark.parametrize(
    ("manager", "why"),
    [
        (_Refusing(NODES), "CM_Get_Device_ID_List gave 0x13"),
        (_Empty(NODES), "CM_Get_Device_ID_List_Size gave 0 characters"),
        (ctypes.CDLL(None), "AttributeError"),
    ],
    ids=["refuses", "wine", "functions are missing"],
)
def test_manager_that_gives_no_answer_is_a_failure(manager: Any, why: str) -> None:
    found, (failure,) = devices.plugged(manager)
    assert found is None
    assert failure.why == f"which cards are plugged in was not answered: {why}"


def test_elsewhere_than_on_windows_nothing_is_known() -> None:
    found, (failure,) = devices.plugged()
    assert (found, failure.why.rpartition(": ")[2]) == (None, "this is not Windows")
