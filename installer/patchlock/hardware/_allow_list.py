"""What of an observed machine may be told: only words that every machine has; all others may name somebody; pure.

A folder that nobody knows is written `~`, and `~ü` where it has letters beyond ASCII, which some programs cannot open;
a value that nobody knows is written `…`.
"""

from __future__ import annotations

import dataclasses
import re

from patchlock.model.hosts import Failure, Host
from patchlock.model.redaction import path_masker

_UNKNOWN = "…"
_OF_FOLDERS = frozenset(
    {
        *("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "HIP_PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
        *("PYTHONUSERBASE", "ROCM_PATH", "VIRTUAL_ENV", "rocm-on-path"),
    }
)
"""Variables, and a setting, that are folders, separated as on the system."""
_FOLDER = re.compile(
    r"""
    ~ | \.{1,2} | [a-z]:? | v?\d{1,2}(\.\d+)*                                     # a drive; a version
    | usr | local | opt | etc | var | run | mnt | home | root | users | public | share | snap | host | nix | store
    | s?bin | lib(32|64|exec)? | libraries | targets | stubs | compat | include | sdk
    | (x86_64|aarch64|sbsa)-linux(-gnu)? | wsl | drivers? | tegra | nvidia(-current)? | amdgpu | hsa
    | (rocm | hip | cuda | zluda)([-_]?\d[\d.]*)? | _rocm_sdk_(core|devel|libraries)\w*
    | [\w-]+\.inf_(amd64|arm64)_[0-9a-f]{16}
    | windows | system32 | syswow64 | driverstore | filerepository | program\ files(\ \(x86\))? | programdata
    | amd | nvidia(\ corporation|\ gpu\ computing\ toolkit)? | appdata | roaming | programs
    | \.?(ana|mini|micro|mamba)?(conda|forge|mamba)\d* | envs | base | pkgs | \.?venv | env
    | \.local | \.?linuxbrew | homebrew | cellar | \.pyenv | \.asdf | versions | site-packages | dist-packages | torch
    | python(\d[\d.]*)? | os-release | modprobe\.d | ld\.so\.cache | version\.json
    | lib(cuda|nvidia-ml|nvdxgdmal|dxcore|rocdxg|amdhip64|hsa-runtime64)\.so[\d.]*
    | (nvcuda|nvml|amdhip64(_\d)?|msvcp140|vcruntime140_1|directml|d3d12|dxcore)\.dll
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A part of a path that says nothing of whose machine it is."""
_WORD = re.compile(
    r"""
    -?[\d.]+[af]?(\+ptx)?                                                         # a number, a version, a chip of CUDA
    | pci_bus_id | fastest_first | normal | fast | hybrid | dynamic_hybrid | none | void | true | false | on | off
    | kepler | maxwell | pascal | volta | turing | ampere | ada | hopper | blackwell
    | base | docker-desktop(-data)? | kali-linux | opensuse-(leap|tumbleweed)[\d.-]*
    | (ubuntu | debian | archlinux | arch | almalinux | fedora(linux)? | oraclelinux | nixos)([-_][\d._]+)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A value, or one of several, that says nothing of whose machine it is."""
_PATH = re.compile(r"(?<![\w.~/\\:])(?:[A-Za-z]:)?[/\\][^\s:;,'\"()]*|~[/\\][^\s:;,'\"()]*")
_KERNEL = ("/sys/", "/proc/", "/dev/")
"""Folders in which the kernel names everything."""


def told(host: Host, home: str, user: str) -> Host:
    """Leave of what was observed only what may be told.

    Args:
        host: as observed.
        home: folder of the user, as the system writes it, which is written `~`; "" for none.
        user: name of the user, which stands in no word that a driver said.
    """
    mask = path_masker(home, user)
    separator = ";" if host.os == "windows" else ":"

    def folders(text: str) -> str:
        return separator.join(_folder(one, mask(one)) for one in text.split(separator))

    def short(name: str, text: str) -> str:
        return folders(text) if name in _OF_FOLDERS else _value(text)

    def sentence(text: str) -> str:
        for name, value in host.variables.items():
            text = text.replace(f"{name}={value}", f"{name}={short(name, value)}")
        return _PATH.sub(lambda path: path[0] if path[0].startswith(_KERNEL) else folders(path[0]), mask(text))

    return dataclasses.replace(
        host,
        libraries={name: _folder(path, mask(path)) for name, path in host.libraries.items()},
        # All others are closed lists of words, or numbers.
        settings={name: folders(text) if name in _OF_FOLDERS else text for name, text in host.settings.items()},
        variables={name: short(name, text) for name, text in host.variables.items()},
        failures=tuple(Failure(probe=one.probe, why=sentence(one.why)) for one in host.failures),
    )


def _folder(path: str, masked: str) -> str:
    short = re.sub(r"[^/\\]+", lambda part: part[0] if _FOLDER.fullmatch(part[0]) else "~", masked)
    return short if path.isascii() else short.replace("~", "~ü", 1)


def _value(text: str) -> str:
    return re.sub(r"[^\s,;]+", lambda part: part[0] if _WORD.fullmatch(part[0]) else _UNKNOWN, text)
