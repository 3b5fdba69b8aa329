"""Which cards variables such as HIP_VISIBLE_DEVICES hide from programs; what cannot be told is said, not guessed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from patchlock.model.hosts import Device, Failure

_NVIDIA, _AMD = "10de", "1002"
_NONE = frozenset({"", "-1", "none", "void"})
"""Values that hide all. HIP itself ignores an empty one, but torch does not: whoever sets it wants none."""
_CHOOSING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def hide(
    devices: Sequence[Device],
    variables: Mapping[str, str],
    orders: Mapping[str, Sequence[str]],
    *,
    uuids: Mapping[str, str] | None = None,
    with_rocr: bool = False,
) -> tuple[tuple[Device, ...], tuple[Failure, ...]]:
    """Mark the cards that variables hide, as far as that is certain.

    Args:
        devices: of the machine.
        variables: of the environment; an empty one hides, too.
        orders: PCI vendor → addresses of its cards as its runtime numbers them, where that is known. Of several cards
            without it nobody can say which is number 1: a processor's graphics often comes before the card.
        uuids: address → `GPU-…`, by which variables may name a card.
        with_rocr: whether ROCR_VISIBLE_DEVICES counts, too: it does on Linux, and what it leaves is counted anew.

    Returns:
        The same devices; and why it could not be told of some.

    Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables and
        https://github.com/ROCm/clr/blob/amd-staging/rocclr/device/rocm/rocdevice.cpp, Device::init
    """
    hidden: set[int] = set()
    failures: list[Failure] = []
    for vendor in (_NVIDIA, _AMD):
        mine = [number for number, device in enumerate(devices) if device.vendor == vendor and not device.trouble]
        names = _names(vendor, variables, with_rocr=with_rocr)
        if not mine or not names:
            continue
        counted = _counted(devices, mine, orders.get(vendor, ()), variables)
        left: list[int] | None = counted or mine
        for name in names:
            if left:
                ids = [(uuids or {}).get(devices[number].address, "") for number in left]
                left = _left(variables[name], left, ids, has_order=bool(counted))
            if left is None:
                why = f"{name}={variables[name]} chooses among {len(mine)} cards, and their order is not known"
                failures.append(Failure(probe="visible-devices", why=why))
                break
        else:
            hidden |= set((counted or mine) if left else mine) - set(left or ())
    marked = (
        dataclasses.replace(device, is_hidden=device.is_hidden or number in hidden)
        for number, device in enumerate(devices)
    )
    return tuple(marked), tuple(failures)


def _names(vendor: str, variables: Mapping[str, str], *, with_rocr: bool) -> list[str]:
    """Name the variables that count for a vendor, in their order; of HIP's own, the first that is set."""
    own = ("CUDA_VISIBLE_DEVICES",) if vendor == _NVIDIA else ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    first = ("ROCR_VISIBLE_DEVICES",) if vendor == _AMD and with_rocr else ()
    return [name for name in first if name in variables] + [name for name in own if name in variables][:1]


def _counted(
    devices: Sequence[Device], mine: Sequence[int], order: Sequence[str], variables: Mapping[str, str]
) -> list[int]:
    """Give the cards as the runtime numbers them; empty where that is not known.

    CUDA numbers the fastest card first unless CUDA_DEVICE_ORDER says otherwise, and does not say which that is.
    """
    if len(mine) == 1:
        return list(mine)
    found = [number for address in order for number in mine if address and devices[number].address == address]
    models = {(devices[number].device, devices[number].name) for number in mine}
    is_sorted = variables.get("CUDA_DEVICE_ORDER", "").upper() == "PCI_BUS_ID" or len(models) == 1
    return [] if devices[mine[0]].vendor == _NVIDIA and not is_sorted else found


def _left(value: str, cards: Sequence[int], uuids: Sequence[str], *, has_order: bool) -> list[int] | None:
    """Give the cards that a list leaves, in its order; None where it cannot be told.

    What follows an entry that names no card is not read.
    """
    if value.strip().lower() in _NONE:
        return []
    left: list[int] = []
    entries = [entry.strip() for entry in value.split(",")]
    if sorted(entries) == sorted(map(str, range(len(cards)))):  # all, whatever their order
        return list(cards) if not has_order else [cards[int(entry)] for entry in entries]
    for entry in entries:
        if entry.lower().startswith("mig-"):
            return None
        if entry.lower().startswith("gpu-"):
            # One that has no name may be meant by a part of a name, not by a whole one.
            if not all(uuids) and entry.lower() not in map(str.lower, uuids):
                return None
            named = [card for card, uuid in zip(cards, uuids, strict=True) if uuid.lower().startswith(entry.lower())]
            if len(named) != 1:
                break
            left += named
        elif not entry.isascii() or not entry.isdigit() or int(entry) >= len(cards):
            break
        elif not has_order:
            return None
        else:
            left.append(cards[int(entry)])
    return list(dict.fromkeys(left))


def without(variables: Iterable[str]) -> set[str]:
    """Give the variables of an environment in which nothing hides a card or makes it look like another one."""
    return set(variables) - {*_CHOOSING, "HSA_OVERRIDE_GFX_VERSION"}
