"""Observe a Linux machine: desktop, server, Jetson, WSL or container; read only, bounded, never failing.

Files are read first, in milliseconds. Programs and drivers' libraries are asked at the same time, each in a process of
its own, and only where they are there; what hangs is given up and recorded.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from patchlock.core import disk_space, memory, process
from patchlock.core.bounded_files import FileReader
from patchlock.hardware import _allow_list, _host_variables, _visibility
from patchlock.hardware._linux import device_nodes, kfd, nvidia, pci, system, tegra, wsl
from patchlock.hardware._linux import versions as linux_versions
from patchlock.hardware._linux.devices import Sources, join, orders, uuids
from patchlock.hardware._linux.settings import modules, secure_boot, user_site
from patchlock.model.errors import PatchlockError
from patchlock.model.hosts import Device, Failure, Host

PATIENCE = 10.0
"""Seconds that a driver or a program has to answer; a server's driver that nothing keeps awake takes several."""
_HOME = "HOME"
T = TypeVar("T")


def probe(
    seen: Host,
    *,
    root: Path = Path("/"),
    environ: Mapping[str, str] | None = None,
    installations: Path | None = None,
    patience: float = PATIENCE,
) -> Host:
    """Observe a machine.

    Args:
        seen: what `probes.basic` says.
        root: of the file system; a recorded machine is a folder.
        environ: variables; None for those of this process.
        installations: where installations lie, or will; None: the home folder. Of a recorded machine nobody knows.
        patience: seconds for each driver and program.
    """
    env = dict(os.environ if environ is None else environ)
    read = {name: FileReader(root, name) for name in _READERS}
    libraries = system.libraries(read["system"], env, seen.machine)
    has_nvidia = nvidia.has_driver(read["nvidia"])
    asked = _Asked(libraries, root, env, patience, is_wsl=wsl.is_wsl(read["wsl"]), has_nvidia=has_nvidia)
    if "libnvidia-ml.so.1" in libraries and not has_nvidia:
        read["nvidia"].fail("libnvidia-ml.so.1 was not asked, as the kernel has no driver of NVIDIA")

    versions = linux_versions.versions(read["versions"], env)
    sources = Sources(
        pci=pci.devices(read["pci"]),
        kfd=kfd.gpus(read["kfd"]),
        nvidia=nvidia.from_files(read["nvidia"]),
        jetson=tegra.gpu(read["tegra"]),
        amdgpu=versions.get("amdgpu", ""),
    )
    settings = modules(read["settings"], sources.pci) | {"secure-boot": secure_boot(read["settings"])}
    paths = _host_variables.rocm_on_path(env.get("PATH", ""), ":")
    shadows = user_site(read["settings"], env)
    interop = wsl.interop(read["wsl"]) if asked.is_wsl else ""
    host = dataclasses.replace(
        seen,
        release=read["system"].text("proc/sys/kernel/osrelease") or platform.release(),
        distribution=system.distribution(read["system"]),
        processor=system.processor(read["system"]),
        memory=memory.total(read["memory"]),
        available=memory.available(read["memory"]),
        disk=disk_space.free(installations or Path(env.get(_HOME) or "/")) if root == Path("/") else 0,
        container=system.container(read["system"], env),
        is_wsl=asked.is_wsl,
        tegra=tegra.release(read["tegra"]),
        board=tegra.board(read["tegra"]),
        nodes=tuple(device_nodes.nodes(read["nodes"])),
        libraries=libraries,
        groups=tuple(system.groups(read["system"])),
        variables=_host_variables.chosen(env),
    )

    answered = asked.nvidia.wait()
    cards, no_cards = asked.windows.wait()
    code, cuda, no_code = asked.cuda.wait()
    sources = dataclasses.replace(
        sources,
        nvidia=nvidia.merged(sources.nvidia, answered.answer),
        has_asked_nvidia=answered.answer is not None,
        windows=cards,
    )
    joined = join(sources)
    devices, unclear = _visibility.hide(
        joined,
        env,
        orders(joined, sources.kfd),
        uuids=uuids(sources.nvidia, sources.kfd),
        with_rocr=True,
    )
    versions |= {
        "nvidia-driver": sources.nvidia.driver,
        "cuda-driver": sources.nvidia.cuda or cuda,
        "git": asked.git.wait(),
    }
    settings |= {"rocm-on-path": paths, "user-site": shadows, "wsl-interop": interop, "cu-init": code}
    unread = (failure for files in read.values() for failure in files.failures)
    failures = (*unread, *answered.failures, *filter(None, (no_cards, no_code)), *unclear)
    host = dataclasses.replace(
        host,
        devices=devices,
        versions={name: version for name, version in sorted(versions.items()) if version},
        settings={name: value for name, value in sorted(settings.items()) if value},
        failures=failures,
    )
    return _allow_list.told(host, env.get(_HOME, ""), env.get("USER") or env.get("LOGNAME", ""))


_READERS = ("system", "memory", "pci", "kfd", "nvidia", "tegra", "wsl", "nodes", "versions", "settings")


class _Asked:
    """The questions to drivers and programs, all asked at once."""

    def __init__(
        self,
        libraries: Mapping[str, str],
        root: Path,
        env: Mapping[str, str],
        patience: float,
        *,
        is_wsl: bool,
        has_nvidia: bool,
    ) -> None:
        found = {name: _real(path, root) for name, path in libraries.items()}
        nvml, driver, dxcore = (found.get(name) for name in ("libnvidia-ml.so.1", "libcuda.so.1", "libdxcore.so"))
        self.is_wsl = is_wsl
        self.nvidia = _Later(lambda: nvidia.ask(nvml, root, env, patience) if has_nvidia else nvidia.SILENT)
        self.cuda = _Later(lambda: nvidia.cuda(driver, env, patience) if driver and has_nvidia else ("", "", None))
        self.windows = _Later(lambda: wsl.cards(dxcore, env, patience) if dxcore and is_wsl else _no_cards())
        self.git = _Later(lambda: _git(env, patience))


class _Later(Generic[T]):
    """An answer that is being worked on in a thread."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._answers.append(self._ask())
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is wanted
            self._errors.append(error)

    def wait(self) -> T:
        self._thread.join()
        if self._errors:
            raise self._errors[0]
        return self._answers[0]


def _no_cards() -> tuple[list[Device], Failure | None]:
    return [], None


def _git(env: Mapping[str, str], patience: float) -> str:
    """Ask git for its version; that it is missing is what an install says better."""
    try:
        done = process.run_untrusted("git", "--version", env=env, timeout=patience)
    except PatchlockError:
        return ""
    found = re.search(r"\d+\.\d+(\.\d+)?", done.text)
    return found[0] if found else ""


def _real(path: str, root: Path) -> Path:
    """Give where a library of a machine lies, which may be a recorded one."""
    inside = root / path.lstrip("/")
    return inside if inside.exists() else Path(path)
