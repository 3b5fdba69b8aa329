"""Which variable makes programs take the chosen device of several; pure, never guesses a number."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchlock.hardware._matching import HIDING, called
from patchlock.model.choice import Accepted
from patchlock.model.devices import Card, KnownDevice, UnknownDevice, identify
from patchlock.model.hosts import Host


@dataclass(frozen=True, kw_only=True)
class Selected:
    """How programs come to the chosen device."""

    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Defaults for everything that is launched; one that the user has set wins."""
    note: str = ""
    """A sentence where a person has to know."""


def select(chosen: Accepted, host: Host, cards: Sequence[Card]) -> Selected:
    """Say with which variables programs take the device that a profile was chosen for.

    Nothing is needed where it is the only one of its vendor, or where all of them are alike: programs take the first.

    Source: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    selects = chosen.fit.selects if chosen.fit else ""
    if chosen.device is None or not selects:
        return Selected()
    vendor = chosen.device.device.vendor
    same = [one for one in host.devices if one.vendor == vendor and not one.is_hidden]
    if len({_kind(identify(one, cards)) for one in same}) < 2:
        return Selected()
    own = [name for name in HIDING[vendor] if name in host.variables]
    if own:
        return Selected(note=f"{' and '.join(own)} chooses the device, as you have set it")
    if chosen.device.device.number:
        return Selected(variables={selects: chosen.device.device.number})
    if selects == "CUDA_VISIBLE_DEVICES" and all(one.address for one in same):
        addresses = sorted(one.address for one in same)
        number = str(addresses.index(chosen.device.device.address))
        return Selected(variables={"CUDA_DEVICE_ORDER": "PCI_BUS_ID", selects: number})
    return Selected(
        note=f"which number {called(chosen.device)} has among {len(same)} devices is not known; "
        f"if the app takes another one, set {selects} to the number of this one"
    )


def _kind(one: KnownDevice | UnknownDevice) -> tuple[str, str, int]:
    return one.arch, one.card.name if isinstance(one, KnownDevice) else one.device.name, one.device.memory
