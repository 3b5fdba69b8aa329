"""Ask the machine's index, in one question, where every file of a lock lies; uv asks, and downloads nothing."""

from __future__ import annotations

import datetime
import tempfile
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.core import uv
from patchlock.locks.exports.pylock import Located
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import DownloadError, UnsatisfiableError
from patchlock.model.fits import Platform
from patchlock.model.lockfile import Lock

if TYPE_CHECKING:
    from packaging.pylock import PackageSdist, PackageWheel, Pylock


def locate(
    lock: Lock, platform: Platform, *, installing: bool = False, timeout: float | None = None
) -> Mapping[NormalizedName, Located]:
    """Find the address of the one file of each distribution, by its sha256.

    Files that carry an address in the lock keep it; all others are asked of the machine's index, all at once.

    Args:
        lock: the lock.
        platform: the one it is for.
        installing: whether further indexes and folders of the machine are welcome, as to an install.
        timeout: seconds that the index may take; None waits for ever.

    Raises:
        DownloadError: the index has not, or no longer, the files that the lock names; names all of them.
        NetworkError: the index does not answer, or with something that is no page of an index.
    """
    places = {
        package.name: Located(filename=unquote(package.url.rpartition("/")[2]), url=package.url)
        for package in lock.packages
        if package.url
    }
    asked = [package for package in lock.packages if not package.url]
    sdists = frozenset(package.name for package in asked if package.why.endswith("sdist"))
    pins = [(package.name, package.version) for package in asked]
    python = lock.provenance.python
    found = offered(pins, python, platform, sdists=sdists, installing=installing, timeout=timeout) if asked else {}
    missing = [f"{package.name} {package.version}" for package in asked if package.sha256 not in found]
    if missing:
        raise _gone(missing)
    return places | {package.name: found[package.sha256] for package in asked}


def offered(
    pins: Iterable[tuple[NormalizedName, Version]],
    python: str,
    platform: Platform,
    *,
    sdists: Container[NormalizedName] = (),
    installing: bool,
    timeout: float | None = None,
) -> dict[str, Located]:
    """Ask for every file of pinned versions that fits a platform.

    Args:
        pins: names and versions.
        python: major and minor version.
        platform: the one it is for.
        sdists: those of which the sdist is wanted.
        installing: see `locate`.
        timeout: see `locate`.

    Returns:
        sha256 → where that file lies.

    Raises:
        DownloadError: the index does not have one of them.
        NetworkError: the index does not answer.
    """
    from packaging.pylock import Pylock

    with tempfile.TemporaryDirectory(prefix="patchlock-addresses-") as folder_name:
        folder = Path(folder_name)
        wanted = tuple(pins)
        (folder / "pins.txt").write_text("".join(f"{name}=={version}\n" for name, version in wanted), encoding="utf-8")
        options = [option for name, _ in wanted if name in sdists for option in ("--no-binary", name)]
        try:
            uv.run(
                *("pip", "compile", "pins.txt", "--no-deps", "--no-config", "--only-binary", ":all:", *options),
                *("--python-version", python, "--python-platform", platform.uv),
                *("--format", "pylock.toml", "--no-header", "-q", "-o", "pylock.toml"),
                cwd=folder,
                installing=installing,
                timeout=timeout,
            )
        except UnsatisfiableError as error:
            from patchlock.distributions import index_client

            index_client.require_pages(" ".join(error.evidence))
            raise _gone(error.evidence) from error
        answer = Pylock.from_dict(tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8")))
        return dict(_files(answer, folder))


def _gone(missing: Iterable[str]) -> DownloadError:
    from patchlock.distributions import index_client

    return DownloadError(
        "the package index does not have files of the lock",
        where=without_secrets(index_client.address()),
        remedy="complete the mirror, or name an index that has them with UV_DEFAULT_INDEX; "
        "if they were deleted everywhere, and the catalogue is your own, regenerate the lock with `patchlock lock`",
        evidence=missing,
    )


def _files(answer: Pylock, folder: Path) -> Iterator[tuple[str, Located]]:
    for package in answer.packages:
        files: list[PackageWheel | PackageSdist] = [
            *(package.wheels or ()),
            *([package.sdist] if package.sdist else []),
        ]
        for file in files:
            # An index that is a folder of this machine gives paths.
            url = file.url or ((folder / file.path).resolve().as_uri() if file.path else "")
            if url and "sha256" in file.hashes:
                filename = file.name or unquote(url.rpartition("/")[2])
                yield (
                    file.hashes["sha256"],
                    Located(filename=filename, url=url, size=file.size, upload_time=_utc(file.upload_time)),
                )


def _utc(time: datetime.datetime | None) -> datetime.datetime | None:
    return time.astimezone(datetime.UTC) if time else None
