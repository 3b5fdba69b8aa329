"""Ask the machine's index where a file lies; uv asks, so that mirrors, proxies and credentials are those of uv."""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.core import uv
from patchlock.distributions import mirrors
from patchlock.model import toml_text
from patchlock.model.errors import DownloadError, UnsatisfiableError
from patchlock.model.identities import Sha256
from patchlock.model.sdist import Sdist

if TYPE_CHECKING:
    from packaging.pylock import PackageWheel, Pylock


@dataclass(frozen=True, kw_only=True)
class Offered:
    """A wheel as the index has it."""

    filename: str
    url: str
    sha256: Sha256


def wheels(name: NormalizedName, version: Version, *, python: str) -> tuple[Offered, ...]:
    """List the wheels of one version, in the order of their names.

    uv has no command that fetches a wheel, and no way to say which index it would take; but its lock of one line names
    every file with address and sha256, and that is asked for here. Nothing is downloaded, nothing is built.

    Args:
        name: the distribution.
        version: exactly.
        python: two or three numbers; uv leaves out what does not fit it.

    Raises:
        DownloadError: the index has no wheel of that version.
        NetworkError: the index does not answer, or with something that is no page of an index.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as folder:
        place = Path(folder)
        words = ("--only-binary", ":all:", "--no-config", "--universal")
        remedy = "check the version, or give the file with `--wheel`"
        answer = _asked(
            place, name, version, *words, "--python", sys.executable, "--python-version", python, remedy=remedy
        )
        found = [_offered(wheel, place) for package in answer.packages for wheel in package.wheels or ()]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.filename))


def sdist(name: NormalizedName, version: Version) -> Sdist:
    """Find the sdist of one version; nothing is downloaded, nothing is built.

    Raises:
        DownloadError: the index has no sdist of that version.
        NetworkError: the index does not answer, or with something that is no page of an index.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as folder:
        place = Path(folder)
        known = {"name": name, "version": str(version), "requires-dist": []}
        (place / "uv.toml").write_text(toml_text.render({"dependency-metadata": [known]}), encoding="utf-8")
        words = ("--no-binary", name, "--config-file", "uv.toml")
        answer = _asked(place, name, version, *words, kind="sdist", remedy="check the name and the version")
        file = next((package.sdist for package in answer.packages if package.sdist is not None), None)
        if file is None or "sha256" not in file.hashes:
            raise DownloadError(f"the index gives no sha256 for the sdist of {name} {version}")
        address = file.url or (place / (file.path or "")).resolve().as_uri()
    return Sdist(name=name, version=version, url=mirrors.with_password(address), sha256=Sha256(file.hashes["sha256"]))


def _asked(
    place: Path, name: NormalizedName, version: Version, *words: str, kind: str = "wheel", remedy: str
) -> Pylock:
    from packaging import pylock

    (place / "wanted.txt").write_text(f"{name}=={version}\n", encoding="utf-8")
    try:
        uv.run(
            *("pip", "compile", "wanted.txt", "--no-deps", *words),
            *("--format", "pylock.toml", "--no-header", "-q", "-o", "pylock.toml"),
            cwd=place,
            installing=False,
        )
    except UnsatisfiableError as error:
        from patchlock.distributions import index_client

        index_client.require_pages(" ".join(error.evidence))
        raise DownloadError(
            f"the index has no {kind} of {name} {version}",
            where="the package index",
            remedy=remedy,
            evidence=error.evidence,
        ) from error
    return pylock.Pylock.from_dict(tomllib.loads((place / "pylock.toml").read_text(encoding="utf-8")))


def _offered(wheel: PackageWheel, place: Path) -> Offered | None:
    address = wheel.url or ((place / wheel.path).resolve().as_uri() if wheel.path else "")
    sha256 = wheel.hashes.get("sha256", "")
    if not address or not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return None
    filename = wheel.name or unquote(address.rpartition("/")[2])
    return Offered(filename=filename, url=mirrors.with_password(address), sha256=Sha256(sha256))
