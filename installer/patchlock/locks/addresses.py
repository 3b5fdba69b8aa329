"""Ask the machine's index, in one question, where every file of a lock lies; uv asks, and downloads nothing."""

from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import functools
import tempfile
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.core import uv
from patchlock.locks.exports.pylock import Located
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import DownloadError, UnsatisfiableError
from patchlock.model.fits import Platform
from patchlock.model.lockfile import Lock, LockedPackage

if TYPE_CHECKING:
    from packaging.pylock import PackageSdist, PackageWheel, Pylock

_AT_ONCE = 8
"""Questions to uv together."""
_NAMED = 2
"""Files of one version that a refusal names."""


def locate(lock: Lock, platform: Platform, *, timeout: float | None = None) -> Mapping[NormalizedName, Located]:
    """Find the address of the one file of each distribution, by its sha256.

    Files that carry an address in the lock keep it; the machine's indexes and folders are asked for all others at once.

    Args:
        lock: the lock.
        platform: the one it is for.
        timeout: seconds that the index may take; None waits for ever.

    Raises:
        DownloadError: the index has not, or no longer, the files that the lock names; names all of them.
        NetworkError: the index does not answer, or with something that is no page of an index.
    """
    places = {
        package.name: Located(filename=package.filename, url=package.url) for package in lock.packages if package.url
    }
    asked = [package for package in lock.packages if not package.url]
    sdists = frozenset(package.name for package in asked if package.why.endswith("sdist"))
    pins = [(package.name, package.version) for package in asked]
    python = lock.provenance.python
    ask = functools.partial(offered, python=python, platform=platform, sdists=sdists, timeout=timeout)
    found = ask(pins) if asked else {}
    if other := [(package.name, package.version) for package in asked if package.sha256 not in found]:
        found |= ask(other, afresh=True)
    if missing := [_missing(package, found) for package in asked if package.sha256 not in found]:
        raise _gone(missing)
    return places | {package.name: found[package.sha256] for package in asked}


def offered(
    pins: Iterable[tuple[NormalizedName, Version]],
    python: str,
    platform: Platform,
    *,
    sdists: Container[NormalizedName] = (),
    timeout: float | None = None,
    afresh: bool = False,
) -> dict[str, Located]:
    """Ask for every file of pinned versions that fits a platform.

    Where the index seems to lack one, each is asked for again, past uv's cache: its page may be ten minutes old.

    Args:
        pins: names and versions.
        python: major and minor version.
        platform: the one it is for.
        sdists: those of which the sdist is wanted.
        timeout: see `locate`.
        afresh: ask past uv's cache from the start.

    Returns:
        sha256 → where that file lies.

    Raises:
        DownloadError: the index does not have some of them; names all.
        NetworkError: the index does not answer.
    """
    wanted = tuple(pins)
    ask = functools.partial(_ask, python=python, platform=platform, sdists=sdists, timeout=timeout)
    with contextlib.suppress(UnsatisfiableError):
        return ask(wanted, afresh=afresh)

    def alone(pin: tuple[NormalizedName, Version]) -> dict[str, Located] | UnsatisfiableError:
        try:
            return ask((pin,), afresh=True)
        except UnsatisfiableError as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(wanted, pool.map(alone, wanted), strict=True))
    if refusals := [one for one in answers.values() if isinstance(one, UnsatisfiableError)]:
        from patchlock.distributions import index_client

        index_client.require_pages("\n".join(line for one in refusals for line in one.evidence))
        lacking = (pin for pin, one in answers.items() if isinstance(one, UnsatisfiableError))
        raise _gone(f"{name} {version}" for name, version in lacking) from refusals[0]
    return {sha256: located for one in answers.values() if isinstance(one, dict) for sha256, located in one.items()}


def _ask(
    pins: tuple[tuple[NormalizedName, Version], ...],
    *,
    python: str,
    platform: Platform,
    sdists: Container[NormalizedName],
    timeout: float | None,
    afresh: bool,
) -> dict[str, Located]:
    from packaging.pylock import Pylock

    with tempfile.TemporaryDirectory(prefix="patchlock-addresses-") as folder_name:
        folder = Path(folder_name)
        (folder / "pins.txt").write_text("".join(f"{name}=={version}\n" for name, version in pins), encoding="utf-8")
        refresh = ["--refresh"] if afresh and uv.is_online() else []
        options = [option for name, _ in pins if name in sdists for option in ("--no-binary", name)]
        uv.run(
            *("pip", "compile", "pins.txt", "--no-deps", "--no-config", "--only-binary", ":all:", *options),
            *("--python-version", python, "--python-platform", platform.uv, *refresh),
            *("--format", "pylock.toml", "--no-header", "-q", "-o", "pylock.toml"),
            cwd=folder,
            installing=True,
            timeout=timeout,
        )
        answer = Pylock.from_dict(tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8")))
        return dict(_files(answer, folder))


def _missing(package: LockedPackage, found: Mapping[str, Located]) -> str:
    """Name a version, and what the index has of it: the file of the lock with other bytes, or others."""
    begin = canonicalize_name(f"{package.name}-{package.version}-")
    files = [one.filename for one in found.values() if canonicalize_name(one.filename).startswith(begin)]
    has = f": it has {' and '.join(files[:_NAMED])}, with another sha256 than the lock" if files else ""
    return f"{package.name} {package.version}{has}"


def _gone(missing: Iterable[str]) -> DownloadError:
    from patchlock.distributions import index_client

    return DownloadError(
        "the package index does not have files of the lock",
        where=without_secrets(index_client.address()),
        remedy="complete or correct the mirror, or name an index that has them with UV_DEFAULT_INDEX or a folder with "
        "UV_FIND_LINKS; "
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
