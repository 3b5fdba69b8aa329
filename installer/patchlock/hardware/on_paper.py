"""What a recorded machine has of what an install needs, and what its recording does not say; asks no machine."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path

from patchlock.hardware.preflight import NOTHING, UNKNOWN, DetectedResource, Facts, Folder, Interpreter, PythonDownload
from patchlock.model import host_vocabulary
from patchlock.model.hosts import Host
from patchlock.model.needs import Resource
from patchlock.model.package_managers import System

_LIKE = {"pop": "ubuntu debian", "linuxmint": "ubuntu debian", "rocky": "rhel fedora", "steamos": "arch"}
"""Distribution → what it is like, as its os-release says; a recording has the id alone."""
_HELPERS = {"linux": frozenset({"sudo"}), "windows": frozenset({"winget"}), "macos": frozenset({"brew"})}
_HOMES = {
    "macos": ("~/Library/Application Support/patchlock", "~", "/"),
    "windows": (r"$env:LOCALAPPDATA\patchlock", "$env:USERPROFILE", "\\"),
}
_HOME = ("~/.local/share/patchlock", "~", "/")
"""Where patchlock's home lies, the user's, and what stands between the names of folders."""
_USER = "$USER"


def system(host: Host) -> System:
    """Say with what things are installed on a recorded machine."""
    name, _, version = host.distribution.partition(" ")
    release = {"ID": name, "VERSION_ID": version, "ID_LIKE": _LIKE.get(name, "")} if host.os == "linux" else {}
    return System(
        os=host.os,
        release={key: value for key, value in release.items() if value},
        is_jetson=bool(host.tegra),
        has=_HELPERS.get(host.os, frozenset()),
    )


def folder(host: Host, *names: str) -> str:
    """Say where patchlock's home, or an installation in it, would lie on a recorded machine."""
    home, _, separator = _HOMES.get(host.os, _HOME)
    return separator.join((home, *names))


def place(host: Host, path: Path, home: Path) -> str:
    """Say where a file below patchlock's home, or the user's, would lie on a recorded machine; another one stays."""
    if path.is_relative_to(home):
        return folder(host, *path.relative_to(home).parts)
    if path.is_relative_to(Path.home()):
        _, user, separator = _HOMES.get(host.os, _HOME)
        return separator.join((user, *path.relative_to(Path.home()).parts))
    return str(path)


def facts(host: Host, wanted: Mapping[str, Resource]) -> Facts:
    """Gather about a recorded machine what `readiness` gathers about this one; nothing of this one is in it."""
    is_store = host.python_maker == "store"
    return Facts(
        system=system(host),
        user=_USER if host.os == "linux" else "",
        git=DetectedResource(where="git", version=host.versions["git"]) if "git" in host.versions else UNKNOWN,
        python=Interpreter(path="python", maker="store")
        if is_store
        else PythonDownload(version="", host="", folder=""),
        folders=(Folder(path=folder(host), variable="PATCHLOCK_HOME"),),
        has_long_paths=True,
        longest_path=0,
        seen={name: detect(resource, host) for name, resource in wanted.items()},
    )


def detect(resource: Resource, host: Host) -> DetectedResource:
    """Look for a resource in a recording, which lists device nodes, and libraries where it has any, completely."""
    names = resource.sought(host.os)
    match resource.kind:
        case "library":
            found = next((host.libraries[name] for name in names if name in host.libraries), "")
            is_listed = bool(host.libraries) and all(name in host_vocabulary.LIBRARIES for name in names)
            return DetectedResource(where=found) if found else NOTHING if is_listed else UNKNOWN
        case "file":
            if host_vocabulary.unknown_nodes(name.replace("*", "128") for name in names):
                return UNKNOWN
            nodes = [one for one in host.nodes if any(fnmatch.fnmatchcase(one.path, name) for name in names)]
            usable = [one for one in nodes if one.is_usable]
            if usable or not nodes:
                return DetectedResource(where=usable[0].path) if usable else NOTHING
            return DetectedResource(where=nodes[0].path, trouble="you may not open it", group=nodes[0].group)
        case "variable":
            found = next((host.variables[name] for name in names if host.variables.get(name)), "")
            return DetectedResource(where=found) if found else UNKNOWN
        case _:
            return UNKNOWN
