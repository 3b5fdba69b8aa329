"""What an environment loads before an app's own libraries: reads and writes `overlays/`, looks for what it needs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchlock.core import atomic_files
from patchlock.model import overlays
from patchlock.model.errors import OverlayError
from patchlock.model.identities import Sha256
from patchlock.model.overlays import Overlay, Sdk, SdkLocation

FOLDER, LISTING = "overlays", "preload.json"


def folder_of(environment: Path, overlay: str) -> Path:
    """Name the folder of an overlay in an environment."""
    return environment / FOLDER / overlay


def write(environment: Path, placed: Mapping[str, tuple[Overlay, str]]) -> None:
    """Write down what is loaded, in which order, and what each file is; the overlays lie in their folders already.

    Args:
        environment: its folder.
        placed: by id, the overlay and the sha256 of its archive, in the order in which they are loaded.
    """
    entries = []
    for name, (overlay, archive) in placed.items():
        folder = folder_of(environment, name)
        files = {file.relative_to(folder).as_posix(): atomic_files.sha256(file) for file in _files(folder)}
        entries.append(_entry(overlay, archive, files))
    text = json.dumps({"overlays": entries}, indent=1)
    atomic_files.atomic_write(environment / FOLDER / LISTING, f"{text}\n")


def _entry(overlay: Overlay, archive: str, files: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": overlay.id,
        "url": overlay.url,
        "archive": archive,
        "before": overlay.before,
        "sdk": dataclasses.asdict(overlay.sdk) if overlay.sdk else None,
        "environment": dict(overlay.environment),
        "unset": overlay.unset,
        "drop_from_path": overlay.drop_from_path,
        "libraries": [
            {"name": library.name, "in_sdk": not library.member, "needs": library.needs}
            for library in overlay.libraries
            if library.preload
        ],
        "files": files,
    }


def archives(environment: Path) -> dict[str, Sha256]:
    """Give the sha256 of the archive of each overlay in an environment, by id; a receipt keeps it."""
    return {entry["id"]: entry["archive"] for entry in _read(environment)}


def problems(environment: Path, expected: Mapping[str, str]) -> tuple[str, ...]:
    """Say which files of the overlays are not what they were when the environment was made; one clause each.

    Reads every byte of them, and no other file.

    Args:
        environment: its folder.
        expected: as the receipt has it: id → sha256 of the archive.
    """
    try:
        entries = _read(environment)
    except OverlayError as error:
        return (error.what,)
    found = [f"the overlay {name} is gone" for name in expected if name not in {entry["id"] for entry in entries}]
    for entry in entries:
        folder = folder_of(environment, entry["id"])
        there = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
        if expected.get(entry["id"]) != entry["archive"]:
            found.append(f"the overlay {entry['id']} is not the one that was installed")
        for name, digest in entry["files"].items():
            if name not in there:
                found.append(f"{folder / name} is gone; an antivirus may have taken it")
            elif atomic_files.sha256(there[name]) != digest:
                found.append(f"{there[name]} was changed")
        found += [f"{there[name]} is not ours" for name in there if name not in entry["files"]]
    return tuple(found)


def variables(environment: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Add to the variables of a process what the overlays of its environment need; the same ones where it has none.

    Args:
        environment: its folder.
        given: the variables so far, PATH without the folders of the environment.

    Raises:
        OverlayError: something is missing on this machine, or the place cannot be.
    """
    env = dict(given)
    entries = _read(environment)
    for entry in entries:
        places = {
            overlays.FOLDER: str(folder_of(environment, entry["id"])),
            overlays.PACKAGES: str(_packages(environment)),
        }
        if entry["sdk"]:
            sdk = Sdk(**entry["sdk"])
            places[overlays.SDK] = env[sdk.variable] = require_sdk(sdk, env, entry["id"])
        env |= {name: overlays.expand_places(value, places) for name, value in entry["environment"].items()}
        for name in entry["unset"]:
            env.pop(name, None)
        env["PATH"] = overlays.path_without(env.get("PATH", os.defpath), entry["drop_from_path"], os.pathsep)
    if entries:
        env["PATCHLOCK_PRELOAD"] = ",".join(sorted({name for entry in entries for name in entry["before"]}))
    return env


def require_sdk(sdk: Sdk, variables: Mapping[str, str], overlay: str) -> str:
    """Find the folder of an SDK.

    Raises:
        OverlayError: it is not there; says where it was looked for and how to get it.
    """
    found: SdkLocation = overlays.find_sdk(sdk, variables, lambda path: Path(path).is_file())
    if found.folder:
        return str(Path(found.folder))
    raise OverlayError(
        f"the overlay {overlay} needs {sdk.name}, which is not found",
        remedy=f"{sdk.install}, and run the same command again",
        evidence=found.looked,
    )


def _read(environment: Path) -> list[dict[str, Any]]:
    path = environment / FOLDER / LISTING
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["overlays"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise OverlayError(
            f"the list of the environment's overlays is damaged: {error}",
            where=str(path),
            remedy="rebuild it with `patchlock install APP --reinstall`",
        ) from error
    return entries


def _packages(environment: Path) -> Path:
    found = environment.glob("Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages")
    return next(found, environment)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
