"""Whether an installation is exactly what is asked for, by digests of files alone: nothing of the catalogue is parsed.

Most starts of `install` find nothing to do, and a person waits for the answer; so this imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from patchlock import __version__

_FIRST = ("id", "app", "profile", "platform", "python", "upstream", "applied", "inputs", "lock", "packages", "made")
_LAST = ("sequence", "environment", "patched", "present", "checks", "overlays", "shared", "chosen")
_RARE = ("edited_lock", "source", "unverified")
KEYS = frozenset((*_FIRST, *_LAST, *_RARE))
"""Of a receipt; `generations.Receipt`, which costs too much to import here, has the same."""


def generation_digest(
    catalogue: Path,
    app: str,
    profile: str,
    lock: bytes,
    revision: str,
    shared: Iterable[str],
    chosen: Iterable[str],
) -> str:
    """Digest all that a generation is made from; equal inputs need no second install.

    Args:
        catalogue: its root.
        app: its name; every file of its folder counts.
        profile: its name.
        lock: bytes of the lock.
        revision: another commit of upstream than the catalogue's, or "".
        shared: names of the shared sets that its file names.
        chosen: names of optional patches.

    Returns:
        64 hexadecimal digits.
    """
    folder = catalogue / "patches" / app
    import hashlib

    made = hashlib.sha256()
    parts = [("patchlock", __version__.encode()), ("revision", revision.encode()), ("lock", lock)]
    parts += [("profile", (catalogue / "profiles" / f"{profile}.toml").read_bytes())]
    parts += [(f"chosen {name}", b"") for name in chosen]
    parts += [(f"shared {name}", (catalogue / "patches" / "shared" / f"{name}.toml").read_bytes()) for name in shared]
    parts += [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in sorted(_files(folder))]
    for name, data in parts:  # with their lengths, so that nothing can move between two of them
        made.update(f"{len(name.encode())} {len(data)} {name}\0".encode() + data)
    return made.hexdigest()


def _files(folder: Path) -> list[Path]:
    return [
        Path(root, name)
        for root, folders, names in os.walk(folder)
        if "__pycache__" not in root and folders is not None
        for name in names
    ]


def up_to_date_generation(
    installation: Path,
    catalogue: Path,
    app: str,
    profile: str,
    added: Collection[str] = (),
    left_out: Collection[str] = (),
    revision: str = "",
) -> str | None:
    """Name the generation in use, if it is exactly what the catalogue asks for now; None where anything differs.

    Args:
        installation: `<home>/<app>@<profile>`.
        catalogue: its root.
        app: its name.
        profile: its name.
        added: optional patches that it must have; the choice that it was made with stands otherwise.
        left_out: those that it must not have.
        revision: the commit of upstream that it must have, in place of the catalogue's.
    """
    import hashlib
    import tomllib

    try:
        generation = (installation / "current").read_text(encoding="utf-8").strip()
        folder = installation / "environments" / generation
        receipt = tomllib.loads((folder / "receipt.toml").read_text(encoding="utf-8"))
        shared, chosen = receipt.get("shared", ()), receipt.get("chosen", ())
        lock = lock_file(catalogue / "lockfiles" / app, profile, receipt["platform"]).read_bytes()
        present = {installation / "source" / file: sha256 for file, sha256 in receipt["present"].items()}
        is_so = (
            bool(generation)
            and set(receipt) <= KEYS  # another one is a newer patchlock's
            and not (installation / "journal").exists()
            and receipt["inputs"] == generation_digest(catalogue, app, profile, lock, revision, shared, chosen)
            and set(added) <= set(chosen)
            and not set(left_out) & set(chosen)
            and (folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")).exists()
            and all(hashlib.sha256(file.read_bytes()).hexdigest() == sha256 for file, sha256 in present.items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return generation if is_so else None


def reservations(generation: Path) -> tuple[bool, str]:
    """Say whether a generation was made from a lock that its owner had edited, and what of its app is unverified."""
    import tomllib

    receipt = tomllib.loads((generation / "receipt.toml").read_text(encoding="utf-8"))
    return bool(receipt.get("edited_lock")), str(receipt.get("unverified", ""))


def is_touched(generation: Path) -> bool:
    """Say whether packages may have changed since a generation's receipt was written, as far as a glance shows it.

    A look at each entry of site-packages sees what was put there, taken away or replaced; not a file further down that
    was written over. True only means that a real look is worth its time: Python may have left bytecode there.
    """
    try:
        made = (generation / "receipt.toml").stat().st_mtime_ns
        inside = ["Lib/site-packages"] if os.name == "nt" else generation.glob("lib/python*/site-packages")
        for packages in (generation / one for one in inside):
            with os.scandir(packages) as listed:
                times = [packages.stat().st_mtime_ns, *(one.stat(follow_symlinks=False).st_mtime_ns for one in listed)]
            return max(times) > made
    except OSError:
        return True
    return True


def lock_file(folder: Path, profile: str, platform: str) -> Path:
    """Name the lock of a pair: a profile for one platform has one without the platform's name."""
    own = folder / f"{profile}.{platform}.txt"
    return own if own.exists() else folder / f"{profile}.txt"
