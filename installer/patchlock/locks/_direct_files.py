"""What a lock holds beside wheels: sdists that are built where it is installed, and files that a requirement names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.core import uv
from patchlock.distributions import fetching, wheelhouse
from patchlock.distributions.fetching import FetchRequest
from patchlock.locks import wheel_choice
from patchlock.model.errors import HashMismatchError, MetadataMissingError, NetworkError, PolicyError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lock_rules import LockRules
from patchlock.model.lockfile import LockedPackage
from patchlock.model.profile import Profile
from patchlock.model.sdist import Sdist
from patchlock.patches.requirements_for_locks import Pin

if TYPE_CHECKING:
    from packaging.pylock import Package, PackageArchive, Pylock


def require_possible(pins: tuple[Pin, ...], rules: LockRules) -> None:
    """Make sure that sdists which a requirement names by address may be built, and are known, before uv sees them.

    Raises:
        PolicyError: one may not be built.
        MetadataMissingError: nobody has written down what one requires.
    """
    sdists = [pin for pin in pins if not pin.is_wheel]
    for pin in sdists:
        if pin.name not in rules.source_builds:
            raise PolicyError(
                f"{filename(pin.url)} is not a wheel, and {pin.name} may not be built",
                where=pin.url,
                remedy=f'allow it: [[build]] names = ["{pin.name}"], or name a wheel',
            )
    unstated = [pin for pin in sdists if sum(rule.name == pin.name for rule in rules.metadata) != 1]
    if unstated:
        raise _unstated(tuple(Sdist(name=p.name, version=None, url=p.url, sha256=p.sha256) for p in unstated))


def require_stated(answer: Pylock, rules: LockRules) -> None:
    """Make sure that what the chosen sdists require is written down: uv took them to require nothing where it is not.

    Raises:
        MetadataMissingError: it is not; names all of them.
    """
    known = {(rule.name, rule.version) for rule in rules.metadata}
    unstated = tuple(
        sdist
        for sdist in map(_sdist, answer.packages)
        if sdist is not None and (sdist.name, sdist.version) not in known
    )
    if unstated:
        raise _unstated(unstated)


def _sdist(package: Package) -> Sdist | None:
    if package.sdist is None or package.wheels:
        return None
    return Sdist(
        name=package.name,
        version=package.version,
        url=package.sdist.url or Path(package.sdist.path or "").as_uri(),
        sha256=Sha256(package.sdist.hashes.get("sha256", "")),
    )


def _unstated(sdists: tuple[Sdist, ...]) -> MetadataMissingError:
    return MetadataMissingError(
        f"what {', '.join(map(str, sdists))} requires would only be told by running its code",
        remedy="write it down with [[metadata]]; `patchlock sdist NAME VERSION` prints the table",
        sdists=sdists,
    )


def locked(
    package: Package,
    archive: PackageArchive,
    pins: tuple[Pin, ...],
    target: tuple[Platform, Profile],
    reasons: list[str],
    cache: Path,
) -> LockedPackage:
    """Lock the one file that a requirement names, once its bytes are seen to have the sha256 that upstream promised.

    Raises:
        HashMismatchError: it has other bytes than the requirement says.
        PolicyError: it does not run on the target.
    """
    found = Sha256(archive.hashes.get("sha256", ""))
    pin = next(one for one in pins if one.name == package.name and one.url == (archive.url or "").partition("#")[0])
    file = filename(pin.url)
    if found != pin.sha256:
        raise _other_bytes(pin, f"sha256 {found[:12]}…, wanted {pin.sha256[:12]}…")
    if pin.is_wheel and wheel_choice.best_wheel([file], *target) is None:
        raise PolicyError(
            f"{file} does not run on {target[0].name}", remedy="name one file for each platform, with markers"
        )
    if package.version is None:
        raise PolicyError(f"{file} has no version", remedy="write it down with [[metadata]]")
    _require_bytes(pin, cache)
    kind = f"wheel {'-'.join(file.removesuffix('.whl').split('-')[-3:])}" if pin.is_wheel else "sdist"
    return LockedPackage(
        name=NormalizedName(package.name),
        version=package.version,
        url=pin.url,
        sha256=pin.sha256,
        why=" · ".join([*reasons, kind]),
    )


def _require_bytes(pin: Pin, cache: Path) -> None:
    """Bring a file into the wheelhouse, from where an install takes it: uv believes the sha256 in a fragment.

    Raises:
        HashMismatchError: the file has another sha256.
        NetworkError: it cannot be had.
    """
    if wheelhouse.find(cache, pin.sha256) is not None:
        return
    wanted = FetchRequest(name=pin.name, filename=filename(pin.url), url=pin.url, sha256=pin.sha256)
    (wanted,) = fetching.from_mirrors([wanted])
    if pin.url.startswith("http") and not uv.is_online() and len(wanted.addresses) == 1:
        raise NetworkError(
            f"{filename(pin.url)} is not in the cache and the network is switched off",
            where="UV_OFFLINE",
            remedy="allow the network, or run the same command once on a connected machine",
        )
    try:
        fetching.fetch_one(wanted, cache)
    except HashMismatchError as error:
        raise _other_bytes(pin, error.where.partition(" has ")[2]) from error


def _other_bytes(pin: Pin, found: str) -> HashMismatchError:
    return HashMismatchError(
        f"{filename(pin.url)} is not the file that the requirements name",
        where=f"it has {found}",
        remedy="find out why it changed before you correct the sha256",
    )


def filename(url: str) -> str:
    """Give the name of the file that a URL leads to, unquoted."""
    return unquote(url.rpartition("/")[2])


def metadata_table(
    name: NormalizedName, version: Version | None, requires: tuple[Requirement, ...]
) -> dict[str, object]:
    """Give what a distribution requires as uv's `[[dependency-metadata]]`; without a version, for all others."""
    texts = [str(requirement) for requirement in requires]
    extras = sorted({extra for text in texts for extra in re.findall(r'extra == "([^"]+)"', text)})
    table: dict[str, object] = {"name": name} | ({"version": str(version)} if version is not None else {})
    return table | {"requires-dist": texts} | ({"provides-extra": extras} if extras else {})
