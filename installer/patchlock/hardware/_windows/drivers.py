"""Ask the drivers of a Windows machine for their cards, all at once, each in a process of its own; changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchlock.core import process
from patchlock.hardware import _visibility
from patchlock.hardware._linux import nvidia
from patchlock.hardware._nvidia_cards import NvidiaAnswer
from patchlock.hardware._windows.records import DriverCard
from patchlock.model.hosts import Failure

PATIENCE = 10.0
"""Seconds for each driver."""
_NVIDIA, _AMD = "10de", "1002"
_HIP = ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll")
"""The newest first."""
_ARCH = re.compile(r"(gfx[0-9a-f]{3,5})?")
_ADDRESS = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])?")
_SANE = 1 << 44
"""Bytes: no card has 16 TB."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a driver says."""

    cards: tuple[DriverCard, ...] = ()
    """In the order in which its runtime numbers them."""
    cuda: str = ""
    """The newest CUDA that it runs: `13.0`."""
    init: str = ""
    """What cuInit(0) gave, as a number; "" where it was not asked."""
    failures: tuple[Failure, ...] = ()


def ask(vendors: Collection[str], libraries: Mapping[str, str], *, patience: float = PATIENCE) -> dict[str, Answer]:
    """Ask the drivers of vendors for their cards; whatever a driver does, this does not fail.

    Args:
        vendors: PCI vendors of the cards that run.
        libraries: name → path of those where drivers put them: ZLUDA has an nvml.dll, too, so that none is looked for
            on PATH.
        patience: seconds for each.

    Returns:
        PCI vendor → answer, of those that could be asked.
    """
    env = process.environment()
    env = {name: env[name] for name in sorted(_visibility.without(env))}
    hip = next((libraries[name] for name in _HIP if name in libraries), "")
    with ThreadPoolExecutor(2) as pool:
        asked = {}
        if _NVIDIA in vendors and "nvml.dll" in libraries:
            asked[_NVIDIA] = pool.submit(
                ask_nvidia, libraries["nvml.dll"], libraries.get("nvcuda.dll", ""), env, patience
            )
        if _AMD in vendors and hip:
            asked[_AMD] = pool.submit(ask_amd, hip, env, patience)
        return {vendor: future.result() for vendor, future in asked.items()}


def ask_nvidia(nvml: str, cuda: str, env: Mapping[str, str], patience: float) -> Answer:
    """Ask NVIDIA's driver by its management library, by nvidia-smi where that does not answer, and whether CUDA starts.

    Args:
        nvml: path of the management library.
        cuda: path of CUDA's driver library; "" asks it nothing.
        env: variables of the children.
        patience: seconds for each.
    """
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(nvidia.cuda, Path(cuda), env, patience) if cuda else None
        answered = nvidia.ask(Path(nvml), Path("/"), env, patience)
        init, newest, why = started.result() if started else ("", "", None)
    failures = (*answered.failures, *((why,) if why else ()))
    said = answered.answer or NvidiaAnswer()
    cards = (
        DriverCard(name=card.name, arch=card.arch, address=card.address, memory=card.memory, uuid=card.uuid)
        for card in said.cards
    )
    return Answer(cards=tuple(cards), cuda=said.cuda or newest, init=init, failures=failures)


def ask_amd(library: str, env: Mapping[str, str], patience: float) -> Answer:
    """Ask AMD's driver by HIP's runtime, which needs no HIP SDK."""
    said = nvidia.run_child("hip", Path(library), env, patience)
    if isinstance(said, str) or "failed" in said:
        why = said if isinstance(said, str) else str(said["failed"])
        return Answer(failures=(Failure(probe="hip", why=f"{Path(library).name}: {why}"),))
    cards = read(said.get("cards"))
    if cards is None:
        return Answer(failures=(Failure(probe="hip", why=f"{Path(library).name}: its answer cannot be read"),))
    return Answer(cards=tuple(cards))


def read(rows: object) -> Sequence[DriverCard] | None:
    """Read the cards in the answer of `hardware/_children/hip.py`; None where something in it cannot be."""
    if not isinstance(rows, list):
        return None
    found = [_told(row) for row in rows if isinstance(row, dict)]
    sound = [one for one in found if one is not None]
    return sound if len(sound) == len(rows) else None


def _told(row: Mapping[str, object]) -> DriverCard | None:
    name, arch, address = (row.get(key, "") for key in ("name", "arch", "address"))
    memory = row.get("memory", 0)
    if not (isinstance(name, str) and isinstance(arch, str) and isinstance(address, str) and type(memory) is int):
        return None
    if not (_ARCH.fullmatch(arch) and _ADDRESS.fullmatch(address) and 0 <= memory < _SANE):
        return None
    return DriverCard(name=name, arch=arch, address=address, memory=memory)
