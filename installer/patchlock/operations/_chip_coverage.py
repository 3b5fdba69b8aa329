"""Compare the chips that profiles claim with what a scan found in the torch of their locks; asks no network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from patchlock.catalogue.reader import Catalogue
from patchlock.model import lockfile
from patchlock.model.devices import Card
from patchlock.model.errors import LockFormatError
from patchlock.model.gpu_archs import runs
from patchlock.model.policy import Unclaimed
from patchlock.model.profile import Profile

_TORCH = canonicalize_name("torch")
_OWN = "linux-aarch64"
"""Where chips are that are part of a processor of NVIDIA's own, which is in no x86 machine."""

Scanned = Mapping[tuple[str, str], frozenset[str]]
"""Platform and profile → what the torch of its locks has code for."""


def scanned_torch(catalogue: Catalogue) -> Scanned:
    """Find what the torch of each profile's locks has code for, where a scan has looked into it."""
    known = catalogue.rules().wheels
    apps, profiles = catalogue.read_all()
    found: dict[tuple[str, str], frozenset[str]] = {}
    for profile in (one for one in profiles if any(fit.archs for fit in one.fits)):
        for platform in profile.platforms:
            for app in apps:
                path = catalogue.lock_path(app, profile, platform)
                # One that cannot be read is told by whoever judges it.
                with contextlib.suppress(FileNotFoundError, LockFormatError):
                    lock = lockfile.parse(path.read_text(encoding="utf-8", errors="replace"), path.name)
                    for sha256 in {one.sha256 for one in lock.packages if one.name == _TORCH} & known.keys():
                        found[platform.name, profile.name] = known[sha256].archs
    return found


def problems(
    profiles: Iterable[Profile], cards: Iterable[Card], scanned: Scanned, unclaimed: Iterable[Unclaimed]
) -> tuple[str, ...]:
    """Name every chip that is claimed without code, and every one with code that nobody claims; clauses, sorted.

    Args:
        profiles: of the catalogue.
        cards: its table of devices.
        scanned: see `scanned_torch`.
        unclaimed: chips that are left out on purpose.
    """
    by_name = {profile.name: profile for profile in profiles}
    chips = {card.arch: card.is_integrated for card in cards if card.arch.startswith("sm_")}
    left_out = {(one.platform, one.chip): one for one in unclaimed}
    found, seen = set(), set()
    for (platform, name), archs in scanned.items():
        for chip in {arch for fit in by_name[name].fits for arch in fit.archs}:
            if not runs(archs, chip):
                found.add(f"{name} is for {chip}, and the torch of its locks has no code that runs on it")
        there = [one for one in by_name.values() if platform in {own.name for own in one.platforms}]
        claimed = {arch for one in there for fit in (*one.fits, *one.trials) for arch in fit.archs}
        for chip in (one for one, is_own in chips.items() if platform == _OWN or not is_own):
            if chip in claimed or not runs(archs, chip):
                continue
            seen.add((platform, chip))
            if (platform, chip) not in left_out:
                found.add(
                    f"the torch of {name} has code that runs on {chip}, and no profile is for it on {platform}: add it "
                    "to a [[fit]] or a [[trial]], or say in profiles/policy/unclaimed.toml why not"
                )
    found |= {
        f"profiles/policy/unclaimed.toml leaves {chip} out on {platform}, where nothing has code for it or a profile "
        "claims it"
        for platform, chip in left_out.keys() - seen
        if platform in {own for own, _ in scanned}  # a catalogue without locks for it says nothing of it
    }
    return tuple(sorted(found))
