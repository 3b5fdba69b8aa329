"""Read what a Linux system is besides its cards: container, processor, groups, what it is called; starts nothing."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from patchlock.core import shared_libraries
from patchlock.core.bounded_files import FileReader
from patchlock.model import host_vocabulary

_CGROUPS = (
    (re.compile(r"[/:]docker[-/]|/docker/"), "docker"),
    (re.compile(r"libpod"), "podman"),
    (re.compile(r"kubepods"), "kubernetes"),
    (re.compile(r"/lxc[./]|/lxc\b"), "lxc"),
)
_GROUPS = frozenset({"render", "video", "root", "sudo", "wheel", "admin", "docker", "kvm", "i2c", "gpio"})
_OF_WINDOWS, _DRIVERS = "libnvdxgdmal.so.1", "usr/lib/wsl/drivers"
_LIBRARIES = tuple(name for name in host_vocabulary.LIBRARIES if ".so" in name)


def container(files: FileReader, environ: Mapping[str, str]) -> str:
    """Say in what kind of container this looks to run; "" for none. Some virtual machines look like one.

    Source: https://systemd.io/CONTAINER_INTERFACE and the files that Docker and Podman make
    """
    if files.has("run/.containerenv"):
        return "podman"
    if files.has(".dockerenv"):
        return "docker"
    named = files.text("run/systemd/container").partition("\n")[0] or environ.get("container", "")
    if re.fullmatch(r"[a-z][a-z0-9-]{0,30}", named):
        return named
    groups = files.text("proc/self/cgroup")
    return next((name for pattern, name in _CGROUPS if pattern.search(groups)), "")


def processor(files: FileReader) -> str:
    """Read the processor's name for people; "" where the kernel has none, as on most of ARM."""
    found = re.search(r"^model name\s*:\s*(\S.*)$", files.text("proc/cpuinfo"), re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def groups(files: FileReader) -> list[str]:
    """Name the groups of this process that open devices or give rights; others may name a person."""
    own = {*os.getgroups(), os.getegid()}
    rows = (line.split(":") for line in files.text("etc/group").splitlines())
    named = {row[0] for row in rows if len(row) > 2 and row[2].isascii() and row[2].isdigit() and int(row[2]) in own}
    return sorted(named & _GROUPS)


def distribution(files: FileReader) -> str:
    """Give ID and VERSION_ID of the system: `ubuntu 24.04`; a rolling one has no version."""
    release = os_release(files)
    return f"{release.get('ID', '')} {release.get('VERSION_ID', '')}".strip()


def os_release(files: FileReader) -> Mapping[str, str]:
    """Read which distribution this is; empty where it does not say.

    Source: https://www.freedesktop.org/software/systemd/man/latest/os-release.html
    """
    text = files.text("etc/os-release") or files.text("usr/lib/os-release")
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {key.strip(): " ".join(_words(value)) for key, equals, value in pairs if equals}


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # a quotation mark that nothing closes
        return [value.strip()]


def libraries(files: FileReader, environ: Mapping[str, str], processor: str) -> dict[str, str]:
    """Find the libraries that accelerators use, as the loader would: name → path as on the machine."""
    paths = {
        name: shared_libraries.find(name, "linux", files.root, environ=environ, processor=processor)
        for name in _LIBRARIES
    }
    # The driver itself finds this one beside its other files of Windows', where no loader looks.
    # Source: https://github.com/NVIDIA/nvidia-container-toolkit, pkg/nvcdi/driver-wsl.go
    packages = [name for name in files.names(_DRIVERS) if name.startswith("nv")]
    of_windows = (f"{_DRIVERS}/{name}/{_OF_WINDOWS}" for name in packages)
    paths[_OF_WINDOWS] = paths[_OF_WINDOWS] or next((f"/{path}" for path in of_windows if files.has(path)), "")
    return {name: _below(path, files.root) for name, path in paths.items() if path}


def _below(path: str, root: Path) -> str:
    inside = Path(path)
    return f"/{inside.relative_to(root).as_posix()}" if inside.is_relative_to(root) else path
