"""Rules that no resolver knows: what fits together and what does not; tables with sources, pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename

from patchlock.lockfile import LockedPackage
from patchlock.model import Platform, Profile
from patchlock.platforms import wheel_rank

_SAME_FILES: Mapping[str, tuple[str, ...]] = {
    # Source: the wheels' own file lists; microsoft/onnxruntime#26996 "can not co-exist".
    "onnxruntime/": (
        "onnxruntime",
        "onnxruntime-gpu",
        "onnxruntime-directml",
        "onnxruntime-openvino",
        "onnxruntime-qnn",
        "onnxruntime-rocm",
        "onnxruntime-migraphx",
        "onnxruntime-training",
    ),
    # Source: opencv/opencv-python README, "you should always use only one".
    "cv2/": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
}
"""Folder in site-packages → distributions that each write their own files into it."""


def overwriting(packages: Iterable[LockedPackage]) -> tuple[str, ...]:
    """Name every folder that two locked distributions would both write, one clause each."""
    names = {package.name for package in packages}
    clauses = []
    for folder, owners in _SAME_FILES.items():
        present = [owner for owner in owners if canonicalize_name(owner) in names]
        if len(present) > 1:
            clauses.append(f"{' and '.join(present)} both write {folder}; keep one of them (drop or rename the other)")
    return tuple(clauses)


def best_wheel(filenames: Iterable[str], platform: Platform, profile: Profile) -> str | None:
    """Choose the wheel that an installer prefers on a platform under the profile's Python; None where none runs.

    Source: PEP 425, PEP 427 (a higher build number wins).
    """
    ranks = wheel_rank(platform, profile.python)
    ranked = []
    for filename in sorted(filenames):
        _, _, build, tags = parse_wheel_filename(filename)
        fitting = [ranks[tag] for tag in tags if tag in ranks]
        if fitting:
            ranked.append((-min(fitting), build, filename))  # no build number is the empty tuple, which sorts first
    return max(ranked, key=lambda found: found[:2])[2] if ranked else None


def unused(wanted: Iterable[NormalizedName], packages: Iterable[LockedPackage]) -> tuple[NormalizedName, ...]:
    """Name the constraints that bound nothing, sorted."""
    return tuple(sorted(set(wanted) - {package.name for package in packages}))
