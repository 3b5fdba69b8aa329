"""Ask the wheel that a distribution was installed from what it has: on this machine, or in parts over HTTP."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.core import http_ranges, uv
from patchlock.distributions import mirrors, wheelhouse
from patchlock.environments import installed
from patchlock.locks import addresses
from patchlock.model.errors import PatchlockError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==\S+ --hash=sha256:([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class UnavailableWheel:
    """Why it cannot be said what the wheel has."""

    why: str


def members(
    environment: Path, lock: Lock, platform: Platform, name: NormalizedName, paths: Collection[str], *, cache: Path
) -> Mapping[str, Sha256] | UnavailableWheel:
    """Hash files of a distribution as its wheel has them; what the wheel has not, or an installer changes, is left out.

    A wheel on this machine is believed by its sha256. In one on a server only these files are read, which is enough to
    tell a wrong RECORD from damage, and nothing is installed from it.

    Args:
        environment: the generation.
        lock: what it was made from.
        platform: its platform.
        name: the distribution.
        paths: from site-packages.
        cache: patchlock's.
    """
    sha256 = _local(environment).get(name) or next(p.sha256 for p in lock.packages if p.name == name)
    try:
        with _open(lock, platform, name, sha256, cache) as file, zipfile.ZipFile(file) as archive:
            places = {_place(environment, info.filename): info for info in archive.infolist() if not info.is_dir()}
            return {
                path: Sha256(hashlib.sha256(archive.read(places[path])).hexdigest()) for path in paths if path in places
            }
    except (PatchlockError, OSError, zipfile.BadZipFile, zlib.error, ValueError) as error:
        return UnavailableWheel(
            why=f"its wheel cannot be asked: {error.what if isinstance(error, PatchlockError) else error}"
        )


@contextlib.contextmanager
def _open(lock: Lock, platform: Platform, name: NormalizedName, sha256: Sha256, cache: Path) -> Iterator[IO[bytes]]:
    found = wheelhouse.find(cache, sha256)
    if found is not None and found.suffix == ".whl":
        with found.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise ValueError(f"{found} is not the file that its name says: remove it")
            file.seek(0)
            yield file
        return
    package = next(p for p in lock.packages if p.name == name)
    if package.sha256 != sha256:
        raise ValueError(f"it was made on this machine, and {found or 'its file'} no longer exists")
    url = package.url
    if not url:
        located = addresses.locate(dataclasses.replace(lock, packages=(package,)), platform)
        url = located[name].url
    elif elsewhere := mirrors.search([(name, package.filename, sha256)])[sha256].addresses:
        url = elsewhere[0]
    if not unquote(url.partition("#")[0]).endswith(".whl"):
        raise ValueError("it was built on this machine from an sdist")
    if not url.startswith("file:") and not uv.is_online():
        raise ValueError("the network is switched off")
    with http_ranges.open_file(url) as remote:
        yield remote


def _local(environment: Path) -> dict[NormalizedName, Sha256]:
    """Read which distributions came from this machine, as `wheelhouse.listing` writes them."""
    texts = (file.read_text(encoding="utf-8") for file in environment.glob("*local.txt"))
    pinned = (pair for text in texts for pair in _PINNED.findall(text))
    return {canonicalize_name(name): Sha256(sha256) for name, sha256 in pinned}


def _place(environment: Path, member: str) -> str:
    """Say where an installer puts a member of a wheel, from site-packages; "" for scripts, which it changes."""
    found = re.fullmatch(r"[^/]+-[^/]+\.data/([^/]+)/(.+)", member)
    if found is None or found[1] in {"purelib", "platlib"}:
        return member if found is None else found[2]
    if found[1] != "data":
        return ""
    up = os.path.relpath(environment, installed.site_packages(environment)).replace(os.sep, "/")
    return os.path.normpath(f"{up}/{found[2]}").replace(os.sep, "/")
