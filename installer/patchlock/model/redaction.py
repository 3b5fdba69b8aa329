"""Take out of a text whose machine it is from: folders, names and addresses of a person and of a computer; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_NAMELESS = frozenset({"", "root", "user", "users", "home", "localhost", "runner", "ubuntu", "debian"})
"""Names that name nobody, or that are parts of every path."""
_FOLDERS = (
    r"(?<=/home/)(?!linuxbrew\b)[^/:;,\s'\"]+",
    r"(?<=[/\\]users[/\\])(?!(?:public|default|shared)\b)[^/\\:;,'\"]+",
)
"""Folders of people, whoever they are: WSL's user sees those of Windows' below /mnt/c/Users."""
_ADDRESSES = (
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b(?=:\d|/|$|[\s,;)])",
    r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b",
    r"\b(?-i:hf|ghp|gho|github_pat|sk)_[A-Za-z0-9_]{16,}",  # not HF_ENDPOINT, not hf_hub_download
    r"(?<=://)[^/@\s]+@",
    r"(?<=[?&])(?:token|key|sig|signature|password|auth)=[^&\s]+",
)
"""Of mail, machines, network cards; tokens; what stands before a host, or after it, to log in with."""


def path_masker(home: str, user: str) -> Callable[[str], str]:
    """Give what writes `~` for a person's home folder, and for his name where it is a whole part of a path.

    Args:
        home: folder of the user, as the system writes it; "" for none.
        user: name of the user.
    """
    pattern = re.compile("|".join(_paths(home, user)), re.IGNORECASE)
    # A variable of POSIX can have any bytes; a recording is text.
    return lambda text: pattern.sub("~", text.encode("utf-8", "replace").decode())


def masker(homes: Iterable[str], names: Iterable[str]) -> Callable[[str], str]:
    """Give what writes `~` for all that says whose machine a text is from.

    Args:
        homes: folders, as the system writes them, in which a person's things lie.
        names: of the person and of the computer, wherever they stand by themselves.
    """
    known = sorted({name for name in names if name.lower() not in _NAMELESS and len(name) > 1}, key=len, reverse=True)
    patterns = [pattern for home in sorted(set(homes), key=len, reverse=True) for pattern in _paths(home, "")]
    patterns += [rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in known]
    pattern = re.compile("|".join([*patterns, *_FOLDERS, *_ADDRESSES]), re.IGNORECASE)
    return lambda text: pattern.sub("~", text.encode("utf-8", "replace").decode())


def _paths(home: str, user: str) -> list[str]:
    end = r"(?=$|[/\\:;,\s'\")\]])"
    home = home.rstrip("/\\")
    patterns = list(_FOLDERS)
    if user.lower() not in _NAMELESS:
        patterns.append(rf"(?<=[/\\]){re.escape(user)}{end}")
    if len(home) > 1:
        # A folder of Windows may stand there with either slash.
        parts = (re.escape(part) for part in re.split(r"[/\\]", home))
        patterns.insert(0, r"(?<![\w.-])" + r"[/\\]".join(parts) + end)
    return patterns
