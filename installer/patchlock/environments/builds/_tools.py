"""The machine as a build sees it: programs and how they name themselves, memory, processors; changes nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from patchlock.core import command_lines, process
from patchlock.core.bounded_files import FileReader
from patchlock.core.memory import total
from patchlock.hardware import probes
from patchlock.model.errors import CommandFailedError, ProgramMissingError

_LIBC = "libc"
_COMPILER = "sudo apt-get install build-essential python3-dev"
_GET: Mapping[str, Mapping[str, str]] = {
    "linux": {
        **dict.fromkeys(("cc", "gcc", "c++", "g++", "make"), _COMPILER),
        **{name: f"sudo apt-get install {name}" for name in ("cmake", "ninja-build", "clang", "gfortran", "swig")},
        "ninja": "sudo apt-get install ninja-build",
        "pkg-config": "sudo apt-get install pkg-config",
        "nvcc": "install NVIDIA's CUDA Toolkit: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",
        "cargo": "curl https://sh.rustup.rs -sSf | sh",
    },
    "darwin": {
        **dict.fromkeys(("cc", "gcc", "c++", "g++", "clang", "make"), "xcode-select --install"),
        **{name: f"brew install {name}" for name in ("cmake", "ninja", "swig", "pkg-config")},
        "gfortran": "brew install gcc",
        "cargo": "curl https://sh.rustup.rs -sSf | sh",
    },
    "win32": {
        "cl": "winget install --id Microsoft.VisualStudio.2022.BuildTools",
        "cmake": "winget install --id Kitware.CMake",
        "ninja": "winget install --id Ninja-build.Ninja",
        "nvcc": "winget install --id Nvidia.CUDA",
        "cargo": "winget install --id Rustlang.Rustup",
    },
}
"""Source: the package lists of Debian 12, Homebrew and winget; the pages that stand above."""
_FOR_ALL_USERS = frozenset({"cl", "cmake", "nvcc"})
"""What only an administrator can install on Windows."""


def require(programs: Iterable[str], what: str, path: str) -> None:
    """Make sure that the programs of a build are there.

    Args:
        programs: their names.
        what: is done, for the message: `the build of pyworld 0.3.5`.
        path: the PATH of the build.

    Raises:
        ProgramMissingError: some are not; names all of them, and how to get them here.
    """
    missing = [name for name in programs if shutil.which(name, path=path) is None]
    if missing:
        known = _GET.get(sys.platform, {})
        commands = list(dict.fromkeys(known[name] for name in missing if name in known))
        unknown = [name for name in missing if name not in known]
        also = f"install {', '.join(unknown)} and make sure that it is on PATH" if unknown else ""
        pasted = command_lines.sequence(commands, windows=sys.platform == "win32")
        needs_rights = sys.platform == "win32" and not _FOR_ALL_USERS.isdisjoint(missing)
        where = " in PowerShell as administrator" if needs_rights else ""
        remedy = "; ".join(filter(None, [f"install it{where}: `{pasted}`" if commands else "", also]))
        raise ProgramMissingError(f"{' and '.join(missing)} must be there for {what}", remedy=remedy)


def compilers(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Name the programs whose identity is part of what is compiled: those that a recipe sets, or the usual ones."""
    chosen = (shlex.split(variables.get(key, usual))[:1] for key, usual in (("CC", "cc"), ("CXX", "c++")))
    return (*(words[0] for words in chosen if words), _LIBC)


def identify(programs: Iterable[str], path: str) -> dict[str, str]:
    """Ask programs what they are: the first lines of `--version`; "" for one that is not there or does not say."""
    return {name: _identity(name, path) for name in sorted(set(programs))}


def _identity(program: str, path: str) -> str:
    if program == _LIBC:
        return probes.basic().libc
    if shutil.which(program, path=path) is None:
        return ""
    try:
        done = process.run(program, "--version", env=process.environment({"PATH": path, "LC_ALL": "C"}), timeout=30)
    except (CommandFailedError, ProgramMissingError):
        return ""
    lines = [line.strip() for line in done.text.splitlines() if line.strip()]
    # nvcc names its version in the fifth line; gcc's later ones are its licence.
    return " | ".join(lines[:5] if program == "nvcc" else lines[:1])


def memory(root: Path = Path("/")) -> int:
    """Give the bytes of memory that this process may use: of the machine, or of its container where that is less.

    Args:
        root: of the file system, for tests.
    """
    if sys.platform == "win32":
        return _windows_memory()
    return total(FileReader(root, "memory")) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _windows_memory() -> int:
    import ctypes

    amount = ctypes.c_ulonglong(0)
    ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(amount))  # type: ignore[attr-defined]
    return amount.value * 1024


def processors() -> int:
    """Count the processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
