"""Locked packages and rules for tests of the policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from conftest import ROOT
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.distributions import policy
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.platforms import PLATFORMS
from patchlock.model.policy import Facts, Violation

SHIPPED = Catalogue(root=ROOT)
RULES = SHIPPED.rules()
"""Those that patchlock ships."""


def digest(text: str) -> Sha256:
    """Make up a sha256."""
    return Sha256(hashlib.sha256(text.encode()).hexdigest())


def package(name: str, version: str, *, why: str = "", url: str = "", sha256: str = "") -> LockedPackage:
    """Make a locked package; its sha256 is made up unless it is given."""
    return LockedPackage(
        name=canonicalize_name(name),
        version=Version(version),
        url=url,
        sha256=Sha256(sha256) if sha256 else digest(f"{name}-{version}"),
        why=why,
    )


def of_wheel(filename: str, sha256: str = "", *, why: str = "requirements.txt:1") -> LockedPackage:
    """Make a locked package from the name of its wheel."""
    name, version, _, _ = parse_wheel_filename(filename)
    tags = "-".join(filename.removesuffix(".whl").split("-")[-3:])
    return package(name, str(version), why=f"{why} · wheel {tags}", sha256=sha256)


def judge(
    *packages: LockedPackage,
    platform: str = "linux-x86_64",
    python: str = "3.11",
    arch: str = "",
    facts: Facts | None = None,
    index: str = "",
    takeable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Violation, ...]:
    """Judge a lock by the rules that patchlock ships, and one of its recorded indexes."""
    return policy.violations(
        packages,
        facts or Facts(),
        RULES,
        platform=PLATFORMS[platform],
        python=Version(python),
        arch=arch,
        indexes=[SHIPPED.index(index)] if index else [],
        takeable=lambda name: {*map(Version, takeable[name].split())} if name in takeable else None,
    )
