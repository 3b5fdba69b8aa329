"""Whether compiled GPU code runs on a GPU architecture: what wheels hold, compared with what the profile names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable

from packaging.utils import InvalidWheelFilename, NormalizedName, parse_wheel_filename

from patchlock.model.fatbins import UNREADABLE
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import Rules, Violation, package_label, wheel_tags

_NVIDIA = "nvidia-"
"""What NVIDIA's libraries on PyPI begin with: those that nothing is known about are taken for GPU code."""
_CUDA = re.compile(r"(sm|compute)_(\d+)(\d)[af]?")
_NAME = re.compile(r"sm_\d{2,3}|gfx[0-9a-f]{3,4}")
_FOUND = re.compile(rf"(compute_\d{{2,3}})|gfx\d+(-\d+)?-generic|{UNREADABLE}|{_NAME.pattern}")


def is_found(text: str) -> bool:
    """Say whether a text names what a scan can find: an architecture, PTX, a generic target of ROCm."""
    return _FOUND.fullmatch(text) is not None


def runs(found: Collection[str], arch: str) -> bool:
    """Say whether code for these architectures runs on one.

    CUDA: a cubin runs on its own major version from its own minor version on; PTX is compiled for anything not older.
    Source: CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility"; suffixes `a` and `f` were left out.
    ROCm: only the very architecture, or the generic one of its family (`gfx12-generic`). Source: LLVM AMDGPU usage.
    """
    wanted = _CUDA.fullmatch(arch)
    if wanted is None:
        return any(one == arch or _covers(one, arch) for one in (text.partition(":")[0] for text in found))
    major, minor = int(wanted[2]), int(wanted[3])
    for text in found:
        one = _CUDA.fullmatch(text)
        if one is None:
            continue
        own = (int(one[2]), int(one[3]))
        if own <= (major, minor) and (one[1] == "compute" or own[0] == major):
            return True
    return False


def _covers(text: str, arch: str) -> bool:
    family = text.removesuffix("-generic").replace("-", "")
    return text.endswith("-generic") and arch.startswith(family)


def wrong_archs(packages: Iterable[LockedPackage], rules: Rules, arch: str) -> list[Violation]:
    """Name every wheel with GPU code of which nothing runs on the architecture, and those that nobody has looked into.

    The head of a family must have GPU code; its members, and whatever had such code in another version, must have been
    scanned.
    """
    free = {distribution.name for distribution in rules.arch_free}
    heads = {family.head for family in rules.families}
    compiled = _compiled(rules)
    found = []
    for package in packages:
        known = rules.wheels.get(package.sha256)
        if package.name in free or (known is not None and UNREADABLE in known.archs):
            continue
        if known is None:
            if (package.name in compiled or package.name.startswith(_NVIDIA)) and _is_built(package):
                found.append(_unseen(package))
        elif known.archs and not runs(known.archs, arch):
            found.append(_violation(package, f"GPU code for {', '.join(ordered(known.archs))} and none", arch))
        elif not known.archs and package.name in heads:
            found.append(_violation(package, "no GPU code", arch))
    return found


def _compiled(rules: Rules) -> set[NormalizedName]:
    """Name what is known to hold GPU code: families that are linked against each other, and what a scan found."""
    found = {name for family in rules.families for name in (family.head, *family.members)}
    for facts in rules.wheels.values():
        with contextlib.suppress(InvalidWheelFilename):  # a person may have named it otherwise: nothing to learn then
            if facts.archs:
                found.add(parse_wheel_filename(facts.filename)[0])
    return found


def _is_built(package: LockedPackage) -> bool:
    """Say whether a file may hold compiled code: no sdist, which is compiled on the machine, and no pure Python."""
    tags = wheel_tags(package)
    return not tags.endswith("-any") if tags else "sdist" not in package.why.split(" · ")


def _unseen(package: LockedPackage) -> Violation:
    return Violation(
        rule="arch",
        distributions=(package.name,),
        what=f"nobody has looked which GPUs {package_label(package)} has code for",
        remedy="give its wheel, or the address that its index gives, to `patchlock scan --record` on a connected "
        "machine, or declare an [[exception]] with its reason",
        is_unknown=True,
    )


def _violation(package: LockedPackage, has: str, arch: str) -> Violation:
    return Violation(
        rule="arch",
        distributions=(package.name,),
        what=f"{package_label(package)} has {has} that runs on {arch}",
        remedy="pin a version or take an index whose wheel has it, or declare an [[exception]] with its reason",
    )


def ordered(archs: Iterable[str]) -> list[str]:
    """Order architectures as a person reads them: by kind, then by number."""
    return sorted(archs, key=lambda text: (re.sub(r"\d.*", "", text), [int(n) for n in re.findall(r"\d+", text)], text))
