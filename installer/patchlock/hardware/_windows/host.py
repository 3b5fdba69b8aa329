"""Observe a Windows machine: which cards, drivers, toolkits and settings it has; read only, bounded, never failing.

The registry and the configuration manager answer in milliseconds and in every language. CIM, which takes a process and
seconds, is asked only where the configuration manager does not say which of several remembered cards are plugged in.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from patchlock.core import disk_space, process
from patchlock.hardware import interpreters
from patchlock.hardware._windows import cards, cim, devices, drivers, facts, system, view
from patchlock.hardware._windows.records import DISPLAY_KEY, Plugged
from patchlock.hardware._windows.registry import read
from patchlock.model.errors import PatchlockError
from patchlock.model.hosts import Failure, Host


def probe(folder: Path | None = None, *, under: str = "", asks_drivers: bool = True) -> Host:
    """Observe this Windows.

    Args:
        folder: where installations lie, or will; None: the user's folder.
        under: a key below HKCU with the registry of a recorded machine; "" reads this machine's.
        asks_drivers: whether drivers' own libraries are asked, too, in child processes.
    """
    return view.host(look(folder, under=under, asks_drivers=asks_drivers))


def look(folder: Path | None = None, *, under: str = "", asks_drivers: bool = True) -> view.Seen:
    """Look at this Windows, once; arguments as for `probe`."""
    plugged, failures = devices.plugged()
    wanted = {**facts.WANTED, **_card_keys(plugged)}
    registry, unread = read(wanted, under=under)
    failed = [*failures, *unread]
    adapter_ram = 0
    if plugged is None and len(cards.devices(registry, None)) > 1:  # one of them may be gone
        answer = ask_cim(str(system.system32() / r"WindowsPowerShell\v1.0\powershell.exe"))
        if isinstance(answer, Failure):
            failed.append(answer)
        else:
            plugged = tuple(cards.with_key(one, registry) for one in answer.plugged)
            adapter_ram = answer.adapter_ram
    libraries = system.libraries(system.system32())
    running = {device.vendor for device in cards.devices(registry, plugged) if not device.trouble}
    answers = drivers.ask(running, libraries) if asks_drivers else {}
    failed += [failure for answer in answers.values() for failure in answer.failures]
    memory, available = system.memory()
    home = system.home()
    return view.Seen(
        registry=registry,
        plugged=plugged,
        told={vendor: answer.cards for vendor, answer in answers.items()},
        cuda=next((answer.cuda for answer in answers.values() if answer.cuda), ""),
        init=next((answer.init for answer in answers.values() if answer.init), ""),
        adapter_ram=adapter_ram,
        machine=system.machine(),
        version=system.version(),
        memory=memory,
        available=available,
        disk=disk_space.free(folder or Path(home or "C:/")),
        libraries=libraries,
        toolkits=system.toolkits(),
        variables=dict(os.environ),
        path=os.environ.get("PATH", ""),
        home=home,
        user=os.environ.get("USERNAME", ""),
        shadows=system.user_site(),
        container="wine" if system.is_wine() else "",
        python=platform.python_version(),
        python_maker=_maker(),
        failures=failed,
    )


def _card_keys(plugged: Sequence[Plugged] | None) -> dict[str, tuple[str, ...]]:
    """Name the keys of the cards that are plugged in, or of all that Windows remembers where nothing says which are."""
    names = ["*"] if plugged is None else sorted({one.number for one in plugged} - {""})
    return {rf"{DISPLAY_KEY}\{name}": facts.CARD_VALUES for name in names}


def _maker() -> str:
    """Say who made the Python that an environment of ours comes from, where that makes a difference."""
    base = Path(sys.base_prefix)
    program = Path(getattr(sys, "_base_executable", sys.executable))
    return interpreters.maker_of(program, has_conda_meta=(base / "conda-meta").is_dir())


def ask_cim(powershell: str, *, patience: float = cim.PATIENCE) -> cim.Answer | Failure:
    """Ask CIM for the display devices that are plugged in; whatever PowerShell does, this does not fail.

    Args:
        powershell: the program: of this Windows, or of the Windows around a WSL.
        patience: seconds.
    """
    try:
        done = process.run_untrusted(powershell, *cim.ARGUMENTS, env=process.environment(), timeout=patience)
    except PatchlockError as error:
        return Failure(probe="cim", why=f"asking Win32_VideoController failed: {error.what}")
    answer = cim.read(done.stdout)
    if isinstance(answer, cim.Garbage):
        code = f" (exit code {done.returncode})" if done.returncode else ""
        return Failure(probe="cim", why=f"{answer.why}{code}")
    return answer
