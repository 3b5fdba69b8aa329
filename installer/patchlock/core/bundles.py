"""A tar file whose first member lists the sha256 of every other one: written whole, and looked at whole before use.

It knows nothing of what its pieces are for.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from patchlock.core import archive_names, atomic_files
from patchlock.core.archives import BoundedReader
from patchlock.model.errors import BundleError
from patchlock.model.identities import Sha256

MANIFEST = "manifest.json"
_BLOCK = 1024 * 1024
_LONGEST_MANIFEST = 16 * 1024 * 1024
_AGAIN = "get the file again from where it was made, and compare its sha256 with the one that `bundle` said"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says of itself."""

    about: Mapping[str, object]
    pieces: Mapping[str, Sha256]
    """POSIX path of each member but the manifest → sha256."""


def write(target: Path, about: Mapping[str, object], pieces: Mapping[str, Path]) -> Sha256:
    """Write a bundle, at once or not at all; equal pieces give equal bytes.

    What a killed one leaves, `.NAME.new` beside the file, is written over by the next. The caller sees to it that no
    other process writes the same file.

    Args:
        target: the file; its folder is made.
        about: what the manifest says besides, as JSON has it.
        pieces: POSIX path in the bundle → file on this machine.

    Returns:
        The sha256 of the whole file.
    """
    listed = {name: atomic_files.sha256(path) for name, path in sorted(pieces.items())}
    manifest = json.dumps({**about, "pieces": listed}, indent=1, ensure_ascii=False).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.new")
    try:
        with tarfile.open(made, "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(_info(MANIFEST, len(manifest)), io.BytesIO(manifest))
            for name, path in sorted(pieces.items()):
                with path.open("rb") as stream:
                    is_executable = bool(path.stat().st_mode & 0o100)
                    archive.addfile(_info(name, path.stat().st_size, is_executable=is_executable), stream)
        digest = atomic_files.sha256(made)
        atomic_files.sync(made)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    return digest


def _info(name: str, size: int, *, is_executable: bool = False) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o755 if is_executable else 0o644
    return info


def read_manifest(bundle: Path) -> Manifest:
    """Read what a bundle says of itself; nothing else of it is looked at.

    Raises:
        BundleError: it is no bundle.
    """
    with _opened(bundle) as archive:
        first = archive.next()
        if first is None or first.name != MANIFEST or not first.isreg() or first.size > _LONGEST_MANIFEST:
            raise _refused(bundle, f"its first member is not {MANIFEST}")
        try:
            values = json.loads(_stream(archive, first).read())
            pieces = dict(values.pop("pieces"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _refused(bundle, f"{MANIFEST} cannot be read: {error}") from error
    for name, sha256 in pieces.items():
        if why := archive_names.problem(name):
            raise _refused(bundle, f"{name!r} {why}")
        if not isinstance(sha256, str) or len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
            raise _refused(bundle, f"{MANIFEST} has no sha256 of {name}")
    return Manifest(about=values, pieces=pieces)


def require_whole(bundle: Path) -> Manifest:
    """Read every byte of a bundle and compare it with the manifest; writes nothing.

    Raises:
        BundleError: a piece has other bytes, is missing, or is one too many; names it.
    """
    manifest = read_manifest(bundle)
    seen: set[str] = set()
    with _opened(bundle) as archive:
        for info in archive:
            if info.name == MANIFEST and not seen:
                seen.add(MANIFEST)
                continue
            if info.name not in manifest.pieces or info.name in seen or not info.isreg():
                raise _refused(bundle, f"{info.name} is one piece too many: its manifest does not list it so")
            seen.add(info.name)
            for _ in _blocks(bundle, archive, info, manifest):
                pass
        end = archive.offset
    if missing := sorted(set(manifest.pieces) - seen):
        more = f", and {len(missing) - 1} more pieces" if len(missing) > 1 else ""
        raise _refused(bundle, f"{missing[0]} is missing{more}")
    with bundle.open("rb") as file:
        file.seek(end)
        while block := file.read(_BLOCK):
            if block.strip(b"\0"):
                raise _refused(bundle, "it goes on after its end")
    return manifest


def read_piece(bundle: Path, name: str) -> bytes:
    """Read one small piece of a bundle that `require_whole` has looked at."""
    with _opened(bundle) as archive:
        return _stream(archive, archive.getmember(name)).read()


def extract(bundle: Path, places: Mapping[str, Path]) -> None:
    """Write pieces of a bundle to their places, each whole or not at all; a place that has the bytes is left alone.

    Args:
        bundle: that `require_whole` has looked at.
        places: POSIX path in the bundle → file.

    Raises:
        BundleError: a piece has changed since.
    """
    manifest = read_manifest(bundle)
    with _opened(bundle) as archive:
        for info in archive:
            place = places.get(info.name)
            if place is None or atomic_files.has_sha256(place, manifest.pieces[info.name]):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            atomic_files.atomic_blocks(place, _blocks(bundle, archive, info, manifest), mode=0o666 | info.mode & 0o111)


def _blocks(bundle: Path, archive: tarfile.TarFile, info: tarfile.TarInfo, manifest: Manifest) -> Iterator[bytes]:
    """Give the bytes of a piece; ends with an error where they were not those of the manifest."""
    digest, stream = hashlib.sha256(), _stream(archive, info)
    while block := stream.read(_BLOCK):
        digest.update(block)
        yield block
    if digest.hexdigest() != manifest.pieces[info.name]:
        raise _changed(bundle, info.name)


def _stream(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    return cast("IO[bytes]", archive.extractfile(info))


@contextlib.contextmanager
def _opened(bundle: Path) -> Iterator[tarfile.TarFile]:
    try:
        with bundle.open("rb") as file:
            stream = cast("IO[bytes]", BoundedReader(file))
            with tarfile.open(fileobj=stream, mode="r:", errorlevel=2) as archive:
                yield archive
    except (tarfile.TarError, EOFError, ValueError, RecursionError) as error:
        raise _refused(bundle, f"it is damaged, or no bundle: {error}") from error


def _changed(bundle: Path, name: str) -> BundleError:
    return _refused(bundle, f"{name} has other bytes than its manifest says")


def _refused(bundle: Path, why: str) -> BundleError:
    return BundleError(f"the bundle was not used: {why}; nothing was touched", where=str(bundle), remedy=_AGAIN)
