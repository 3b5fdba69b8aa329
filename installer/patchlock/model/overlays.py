"""Overlays, libraries from a folder of their own that are loaded before an app's: values and what follows from them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote, urlsplit

from patchlock.model.origins import Origin
from patchlock.model.table_fields import Known, Matches, Parsed

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

SDK, PACKAGES, FOLDER = "{sdk}", "{packages}", "{folder}"
"""What the value of a variable may name: the folder of the SDK, site-packages, and the overlay's own folder."""


def _module(text: str) -> str:
    if not text.isidentifier():
        raise ValueError(f'"{text}" is not the name of a top-level module')
    return text


@dataclass(frozen=True, kw_only=True)
class OverlayLibrary:
    """One library, either a member of the archive or a file of the SDK."""

    name: str
    """As programs ask for it; for a file of the SDK its path in there."""
    member: str
    """What it is called in the archive; without "/" in whatever folder of it. "" for a file of the SDK."""
    needs: tuple[str, ...]
    """Files of the SDK without which it is not loaded; nobody misses it then."""
    preload: bool
    """Whether it is loaded; others only lie there for those that are."""


@dataclass(frozen=True, kw_only=True)
class Sdk:
    """Something that a person has installed on the machine, and without which an overlay does not work."""

    name: str
    variable: str
    """Names its folder for programs; looked at first."""
    folders: tuple[str, ...]
    """Where it may be besides, the best first."""
    has: tuple[str, ...]
    """Files, from its folder, by which the right version is known."""
    install: str
    """What a person does to get it, a clause."""


@dataclass(frozen=True, kw_only=True)
class Overlay:
    """An archive of libraries, which of them are loaded under which names, and what they need."""

    id: Annotated[str, Matches('"{}" must be lower-case words joined by "-"', _ID)]
    why: str
    source: str
    license: str
    platforms: Annotated[tuple[str, ...], Known('the profile has no platform "{}"', "platforms")]
    before: Annotated[tuple[str, ...], Parsed(_module)] = ()
    """Top-level modules; the libraries are loaded before the first of them is imported."""
    url: str
    sha256: str
    """"" where the vendor publishes none; then `unpublished` says so."""
    unpublished: str
    """Why the first download is trusted, a clause."""
    libraries: tuple[OverlayLibrary, ...]
    """In the order in which they are loaded."""
    sdk: Sdk | None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Variables for every process; see `SDK`, `PACKAGES` and `FOLDER`."""
    unset: tuple[str, ...] = ()
    """Variables of the user's that no process gets."""
    drop_from_path: tuple[str, ...] = ()
    """Entries of PATH with one of these in them, in whatever case, are left out."""
    origin: Origin

    @property
    def filename(self) -> str:
        """The name of the archive."""
        return filename(self.url)


def filename(url: str) -> str:
    """Name the file that an address is for."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def for_platform(overlays: Iterable[Overlay], platform: str) -> tuple[Overlay, ...]:
    """Keep those for a platform."""
    return tuple(overlay for overlay in overlays if platform in overlay.platforms)


def archive_members(overlay: Overlay) -> dict[str, tuple[str, ...]]:
    """Say which members of the archive are wanted, and under which names."""
    found: dict[str, tuple[str, ...]] = {}
    for library in overlay.libraries:
        if library.member:
            found[library.member] = (*found.get(library.member, ()), library.name)
    return found


@dataclass(frozen=True, kw_only=True)
class SdkLocation:
    """Where an SDK is, or where it is not."""

    folder: str
    """"" where it is not found."""
    looked: tuple[str, ...]
    """Each place with what it lacks, as clauses; complete where the SDK is not found."""


def find_sdk(sdk: Sdk, variables: Mapping[str, str], is_file: Callable[[str], bool]) -> SdkLocation:
    """Look for an SDK: where its variable says, or where it usually is.

    A variable that names a folder without the SDK in it is told, and the usual folders are looked at all the same.

    Args:
        sdk: which.
        variables: the process's.
        is_file: asks the machine; is given a path with "/".
    """
    named = variables.get(sdk.variable, "")
    looked = [] if named else [f"{sdk.variable} is not set"]
    for folder in (*((named,) if named else ()), *sdk.folders):
        base = re.sub(r"[/\\]+$", "", folder)
        lacking = [file for file in sdk.has if not is_file(f"{base}/{file}")]
        if not lacking:
            return SdkLocation(folder=base, looked=tuple(looked))
        prefix = f"{sdk.variable} is " if folder is named else ""
        looked.append(f"{prefix}{folder}, which has no {', '.join(lacking)}")
    return SdkLocation(folder="", looked=tuple(looked))


def expand_places(text: str, places: Mapping[str, str]) -> str:
    """Put the places of this machine into the value of a variable.

    Args:
        text: as the profile has it.
        places: `SDK`, `PACKAGES`, `FOLDER` → path.
    """
    for name, path in places.items():
        text = text.replace(name, path)
    return text


def path_without(path: str, words: Iterable[str], separator: str) -> str:
    """Leave out the entries of a PATH that have one of the words in them."""
    lowered = [word.lower() for word in words]
    return separator.join(p for p in path.split(separator) if not any(word in p.lower() for word in lowered))
