"""Which variables of the environment belong to an observed machine, and how a person's name stays out of it; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

from patchlock.model.host_vocabulary import VARIABLES
from patchlock.model.hosts import Failure, Host

_NAMELESS = frozenset({"", "root", "user", "users", "home"})
"""Names of users that name nobody, or that are parts of every path."""
_OTHERS = (
    r"(?<=/home/)(?!linuxbrew\b)[^/:;,]+",
    r"(?<=[/\\]users[/\\])(?!(public|default|shared)\b)[^/\\:;,]+",
)
"""Folders of people, whoever they are: WSL's user sees those of Windows' below /mnt/c/Users."""


def chosen(environ: Mapping[str, str]) -> dict[str, str]:
    """Take the variables that choose devices, libraries and packages; an empty one says something, too."""
    return {name: environ[name] for name in VARIABLES if name in environ}


def rocm_on_path(path: str, separator: str) -> str:
    """Name the folders of PATH that belong to a ROCm or a HIP SDK, in order."""
    return separator.join(folder for folder in path.split(separator) if re.search(r"rocm|[\\/]hip\b", folder.lower()))


def masked(host: Host, home: str, user: str) -> Host:
    """Take a person's home folder and name out of what was observed: both are written `~`.

    Args:
        host: as observed.
        home: folder of the user, as the system writes it; "" for none.
        user: name of the user; only where it is a whole part of a path.
    """
    mask = _masker(home.rstrip("/\\"), user)
    return dataclasses.replace(
        host,
        libraries={name: mask(path) for name, path in host.libraries.items()},
        settings={name: mask(value) for name, value in host.settings.items()},
        variables={name: mask(value) for name, value in host.variables.items()},
        failures=tuple(Failure(probe=one.probe, why=mask(one.why)) for one in host.failures),
    )


def _masker(home: str, user: str) -> Callable[[str], str]:
    end = r"(?=$|[/\\:;,\s'\"])"
    patterns = list(_OTHERS)
    if user.lower() not in _NAMELESS:
        patterns.append(rf"(?<=[/\\]){re.escape(user)}{end}")
    if len(home) > 1:
        # A folder of Windows may stand there with either slash.
        parts = (re.escape(part) for part in re.split(r"[/\\]", home))
        patterns.insert(0, r"(?<![\w.-])" + r"[/\\]".join(parts) + end)
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    # A variable of POSIX can have any bytes; a recording is text.
    return lambda text: pattern.sub("~", text.encode("utf-8", "replace").decode())
