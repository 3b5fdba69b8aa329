"""Judge the names in an archive: which may become files below one folder, on any platform; reads no archive."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever their extension and whatever the folder.

Source: https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file#naming-conventions
"""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
"""UTF-8 bytes of one name, which is what ext4 allows, and of a whole path."""


def problem(name: str) -> str:
    """Say why a member must not become a file, in one clause; "" if it may.

    Args:
        name: as the archive spells it; a folder may end with one "/".
    """
    path = name.removesuffix("/")
    if not path:
        return "has no name"
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in path):
        return "has control characters or undecodable bytes in its name"
    if why := escape_reason(path):
        return why
    if len(path.encode()) > _LONGEST_PATH:
        return f"has a path longer than {_LONGEST_PATH} bytes"
    return next((why for part in path.split("/") if (why := _part_problem(part))), "")


def escape_reason(name: str) -> str:
    """Say why a member would not lie below the folder, on some platform; one clause, "" if it would."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "is an absolute path"
    if "\\" in name:
        return "has a backslash in its name"
    return "leaves the folder" if ".." in name.split("/") else ""


def _part_problem(part: str) -> str:
    if part in {"", "."}:
        return "has an empty part in its path"
    if ":" in part:
        return "names a stream or a drive (`:`)"
    if re.search(r'[<>"|?*]', part):
        return "has a character that Windows does not allow"
    if part.endswith((".", " ")):
        return "has a part that ends with a dot or a space, which Windows drops"
    if _DEVICES.fullmatch(part.partition(".")[0].rstrip(" ")):
        return "has the name of a Windows device"
    return f"has a part longer than {_LONGEST_NAME} bytes" if len(part.encode()) > _LONGEST_NAME else ""


def collisions(files: Iterable[str], folders: Iterable[str] = ()) -> tuple[str, ...]:
    """Find members that would be one file on some platform, and files that are folders too; one clause each.

    Args:
        files: paths of files, each as often as the archive has it.
        folders: paths that the archive has as folders; may be there several times, with or without "/" at the end.
    """
    found: list[str] = []
    seen: dict[str, str] = {}
    needed: dict[str, set[str]] = {}
    for path in files:
        if _key(path) in seen:
            same = seen[_key(path)]
            found.append(f"{path!r} is there twice" if same == path else f"{same!r} and {path!r} are one file")
        seen.setdefault(_key(path), path)
        for folder in _parents(path):
            needed.setdefault(_key(folder), set()).add(folder)
    for folder in folders:
        for path in (*_parents(folder.removesuffix("/")), folder.removesuffix("/")):
            needed.setdefault(_key(path), set()).add(path)
    found += [f"{seen[key]!r} is a file and a folder" for key in needed if key in seen]
    found += [f"{' and '.join(map(repr, sorted(ways)))} are one folder" for ways in needed.values() if len(ways) > 1]
    return tuple(found)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _key(path: str) -> str:
    """Bring names together that macOS or Windows hold for the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path.removesuffix("/")).casefold())
