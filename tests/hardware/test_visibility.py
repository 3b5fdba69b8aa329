"""Which cards variables hide: by number, by name, all of them, and where it cannot be told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from patchlock.hardware import _visibility
from patchlock.model.hosts import Device

CARD = Device(vendor="1002", device="7550", address="0000:03:00.0")
PROCESSOR = Device(vendor="1002", device="164e", address="0000:0e:00.0")
RTX = Device(vendor="10de", device="2684", address="0000:01:00.0")
OTHER = Device(vendor="10de", device="1b80", address="0000:04:00.0")
TWIN = Device(vendor="10de", device="2684", address="0000:02:00.0")
INTEL = Device(vendor="8086", device="a780", address="0000:00:02.0")
UUIDS = {RTX.address: "GPU-9221d5d1", TWIN.address: "GPU-7777aaaa", CARD.address: "GPU-1234567890abcdef"}
HIP_FIRST = {"1002": [PROCESSOR.address, CARD.address]}


def _hidden(
    devices: list[Device], variables: Mapping[str, str], orders: Mapping[str, list[str]], *, with_rocr: bool = True
) -> tuple[list[Device], list[str]]:
    marked, failures = _visibility.hide(devices, variables, orders, uuids=UUIDS, with_rocr=with_rocr)
    assert [one.address for one in marked] == [one.address for one in devices]
    return [device for device, one in zip(devices, marked, strict=True) if one.is_hidden], [one.why for one in failures]


NVIDIA_TWINS = {"10de": [RTX.address, TWIN.address]}
AMD = [CARD, PROCESSOR]


@pytest.mark.parametrize(
    ("devices", "variables", "orders", "expected"),
    [
        ([RTX, INTEL], {}, {}, []),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": ""}, {}, [RTX]),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": "-1"}, {}, [RTX]),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": "0"}, {}, []),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": " 0 "}, {}, []),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": "1"}, {}, [RTX]),
        ([RTX, INTEL], {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, {}, [RTX]),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "1"}, NVIDIA_TWINS, [RTX]),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "1,0"}, {}, []),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "1,7,0"}, NVIDIA_TWINS, [RTX]),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "GPU-7777"}, {}, [RTX]),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "GPU-nobody"}, {}, [RTX, TWIN]),
        (
            [RTX, OTHER],
            {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            {"10de": [RTX.address, OTHER.address]},
            [OTHER],
        ),
        (AMD, {"HIP_VISIBLE_DEVICES": "1"}, HIP_FIRST, [PROCESSOR]),
        (AMD, {"HIP_VISIBLE_DEVICES": "0"}, HIP_FIRST, [CARD]),
        (AMD, {"CUDA_VISIBLE_DEVICES": "0"}, HIP_FIRST, [CARD]),
        (AMD, {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}, HIP_FIRST, [PROCESSOR]),
        (AMD, {"ROCR_VISIBLE_DEVICES": "1"}, HIP_FIRST, [PROCESSOR]),
        (AMD, {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, HIP_FIRST, [PROCESSOR]),
        (AMD, {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}, HIP_FIRST, AMD),
        (AMD, {"ROCR_VISIBLE_DEVICES": ""}, {}, AMD),
        (AMD, {"GPU_DEVICE_ORDINAL": "1"}, HIP_FIRST, []),
        (AMD, {"HIP_VISIBLE_DEVICES": ""}, {}, AMD),
        ([RTX, CARD], {"HIP_VISIBLE_DEVICES": "-1"}, {}, [CARD]),
    ],
)
def test_variable_hides(
    devices: list[Device], variables: Mapping[str, str], orders: Mapping[str, list[str]], expected: list[Device]
) -> None:
    assert _hidden(devices, variables, orders) == (expected, [])


@pytest.mark.parametrize(
    ("devices", "variables", "orders", "why"),
    [
        ([RTX, OTHER], {"CUDA_VISIBLE_DEVICES": "0"}, {"10de": [RTX.address, OTHER.address]}, "CUDA_VISIBLE_DEVICES=0"),
        (AMD, {"HIP_VISIBLE_DEVICES": "1"}, {}, "HIP_VISIBLE_DEVICES=1"),
        ([RTX, OTHER], {"CUDA_VISIBLE_DEVICES": "GPU-9221"}, {}, "CUDA_VISIBLE_DEVICES=GPU-9221"),
        ([RTX, TWIN], {"CUDA_VISIBLE_DEVICES": "MIG-9221"}, NVIDIA_TWINS, "CUDA_VISIBLE_DEVICES=MIG-9221"),
    ],
    ids=["fastest-first", "no-order", "no-uuid", "part-of-a-card"],
)
def test_what_cannot_be_told_is_a_failure_and_hides_nothing(
    devices: list[Device], variables: Mapping[str, str], orders: Mapping[str, list[str]], why: str
) -> None:
    said = f"{why} chooses among 2 cards, and their order is not known"
    assert _hidden(devices, variables, orders) == ([], [said])


def test_card_of_a_virtual_machine_is_not_counted() -> None:
    passed = dataclasses.replace(OTHER, trouble="vfio-pci has taken it, for a virtual machine")
    assert _hidden([passed, RTX], {"CUDA_VISIBLE_DEVICES": "0"}, {}) == ([], [])
    assert _hidden([passed, RTX], {"CUDA_VISIBLE_DEVICES": "1"}, {}) == ([RTX], [])


def test_rocr_s_variable_counts_for_nothing_on_windows() -> None:
    assert _hidden([CARD], {"ROCR_VISIBLE_DEVICES": ""}, {}, with_rocr=False) == ([], [])


def test_environment_without_hiding_keeps_the_rest() -> None:
    names = ["PATH", "HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH"]
    assert _visibility.without(names) == {"PATH", "ROCM_PATH"}
