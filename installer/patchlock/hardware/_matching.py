"""A profile's fits against a machine: which device they mean, and every reason against each; pure."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchlock.model.devices import UNKNOWN, VENDORS, KnownDevice, UnknownDevice, shown_name
from patchlock.model.fits import Fit
from patchlock.model.hosts import Host

_SHOWN = 12
"""Of a list in a sentence."""
Seen = Sequence[KnownDevice | UnknownDevice]


@dataclass(frozen=True, kw_only=True)
class FitMatch:
    """What became of one fit."""

    device: KnownDevice | UnknownDevice | None
    """The device that it is for, or would be for."""
    reasons: tuple[str, ...] = ()
    """Why the machine is not of this kind, clauses; empty: it is."""
    why: str = ""
    """Why it is, one clause."""
    fit: Fit | None = None
    """The fit, where a device is meant."""


def match(fits: Iterable[Fit], back_end: str, host: Host, seen: Seen) -> FitMatch:
    """Hold the fits of a profile against a machine: the best device that one of them holds for, else is nearest to.

    The order of the fits decides nothing. Where no device is meant, no more is said: what else the machine lacks is
    not what decides.

    Args:
        fits: of the profile; at least one.
        back_end: of the profile.
        host: the machine.
        seen: its devices, identified.
    """
    fits = tuple(fits)
    found = [
        ((bool((on := _on(fit, back_end, host, one)).reasons), preference(one), len(on.reasons)), on)
        for one in seen
        for fit in fits
        if is_meant(fit, one)
    ]
    if not found:
        vendors = dict.fromkeys(fit.vendor for fit in fits)
        each = (missing(tuple(fit for fit in fits if fit.vendor == vendor), seen) for vendor in vendors)
        return FitMatch(device=None, reasons=tuple(each))
    return min(found, key=operator.itemgetter(0))[1]


def _on(fit: Fit, back_end: str, host: Host, device: KnownDevice | UnknownDevice) -> FitMatch:
    reasons = (*_device_reasons(fit, back_end, host, device), *_of_machine(fit, host, device))
    return FitMatch(device=device, reasons=reasons, why=f"this machine has {called(device)}, {fit.why}", fit=fit)


def wrong_numbers(one: KnownDevice | UnknownDevice, back_end: str) -> str:
    """Say that a device is known to compute wrong numbers with a back end, a clause with its source; "" if not."""
    found = one.card.wrong_with(back_end) if isinstance(one, KnownDevice) else None
    return f"{called(one)} {found.why} ({found.source})" if found else ""


def preference(one: KnownDevice | UnknownDevice) -> tuple[bool, int]:
    """Order devices: those with a card of their own before graphics in the processor, then the most memory.

    Source: https://github.com/ROCm/rocm-cli, which warns that a higher gfx number does not mean a better card.
    """
    return is_integrated(one), -one.device.memory


def is_integrated(one: KnownDevice | UnknownDevice) -> bool:
    """Say whether a device is known to be part of the processor."""
    return isinstance(one, KnownDevice) and one.card.is_integrated


def called(one: KnownDevice | UnknownDevice) -> str:
    """Name a device in a sentence, with its arch."""
    device = one.device
    ids = f"{device.vendor}:{device.device}" if device.device and isinstance(one, UnknownDevice) else ""
    maker = VENDORS.get(device.vendor)
    name = shown_name(one) or (f"an {maker} card" if maker else "a card")
    beside = [text for text in (one.arch, ids) if text]
    return f"{name} ({', '.join(beside)})" if beside else name


def counted(names: Iterable[str]) -> list[str]:
    """Write each name once, with its number where there are several: `4 × Instinct MI100 (gfx908)`."""
    return [f"{number} × {without_article(name)}" if number > 1 else name for name, number in Counter(names).items()]


def without_article(name: str) -> str:
    """Take away the article of a device that only its maker is known of."""
    return name.removeprefix("a ").removeprefix("an ")


def hidden_by(host: Host, vendor: str) -> str:
    """Name the variables by which cards of a vendor are hidden; "" where none is set."""
    return " and ".join(variable for variable in host.variables if variable in HIDING.get(vendor, ()))


def is_meant(fit: Fit, one: KnownDevice | UnknownDevice) -> bool:
    """Say whether a fit is for such a device, whatever else it demands of the machine."""
    if one.device.vendor != fit.vendor:
        return False
    if isinstance(one, UnknownDevice):
        return one.arch in fit.archs or (not one.arch and UNKNOWN in fit.families)
    return one.arch in fit.archs or one.card.family in fit.families


def missing(fits: tuple[Fit, ...], seen: Iterable[KnownDevice | UnknownDevice]) -> str:
    """Say which devices are meant by any of some fits of one vendor, and what is there instead."""
    vendor = fits[0].vendor
    wanted = list(dict.fromkeys(name for fit in fits for name in fit.archs or fit.families))
    there = counted(
        called(one) + (" that is hidden" if one.device.is_hidden else "") for one in seen if one.device.vendor == vendor
    )
    maker = VENDORS[vendor]
    return f"needs an {maker} GPU ({_listed(wanted)}); {f'found {_listed(there)}' if there else 'none found'}"


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _device_reasons(fit: Fit, back_end: str, host: Host, one: KnownDevice | UnknownDevice) -> Iterator[str]:
    name = called(one)
    if wrong := wrong_numbers(one, back_end):
        yield wrong
    if one.device.is_hidden:
        hiding = hidden_by(host, fit.vendor)
        yield f"{name} is hidden" + (f" by {hiding}" if hiding else "")
    if one.device.trouble:
        yield f"{name} does not work ({one.device.trouble})"


def _of_machine(fit: Fit, host: Host, one: KnownDevice | UnknownDevice) -> Iterator[str]:
    is_elsewhere = fit.wsl is not None and fit.wsl != host.is_wsl
    never = [path for path in fit.nodes if is_elsewhere and path not in {node.path for node in host.nodes}]
    if is_elsewhere:
        without = f", which has no {' and no '.join(never)}" if never else ""
        yield f"this is WSL2{without}" if host.is_wsl else "this is not WSL2"
    if fit.tegra is not None and fit.tegra != bool(host.tegra):
        yield "this is a Jetson" if host.tegra else "this is not a Jetson"
    yield from filter(None, (condition.reason(host, one.device) for condition in fit.requires))
    nodes = {node.path: node for node in host.nodes}
    for path in fit.nodes:
        node = nodes.get(path)
        if path in never:
            continue
        if node is None and not one.device.trouble:  # else the driver that would make it is not there
            yield f"{path} is not there"
        elif node is not None and not node.is_usable:
            group = f", only the group {node.group} may" if node.group else ""
            yield f"this user may not open {path}{group}"
    for library in fit.libraries:
        if library not in host.libraries:
            yield f"{library} is not there"


HIDING = {
    "1002": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"),
    "10de": ("CUDA_VISIBLE_DEVICES",),
}
"""PCI vendor → variables that choose among its devices. Source:
https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html, which has HIP look at CUDA's too."""
