"""Read what installers have written down in an environment: its distributions, their files, and who put them there."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.environments.damage import NewerDistribution
from patchlock.model.addresses import without_secrets

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NO_FILES = (".pyc", "/", "\\", ".dist-info/RECORD")

Row = tuple[str, str, str]
"""Path from site-packages, `<algorithm>=<digest>` or "", bytes or ""; as RECORD has them."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One `.dist-info` folder."""

    name: NormalizedName
    version: Version
    info: str
    """Its path."""


def site_packages(environment: Path) -> Path:
    """Name the folder that distributions are installed into; whether it is there or not."""
    if os.name == "nt":
        return environment / "Lib" / "site-packages"
    return next(environment.glob("lib/python*/site-packages"), environment / "lib" / "site-packages")


def distributions(packages: Path) -> tuple[Distribution, ...]:
    """List what is installed, in the order of the folders' names; a folder with another kind of name is none."""
    try:
        names = sorted(os.listdir(packages))  # noqa: PTH208 - names alone, of hundreds
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found = []
    for entry in names:
        name, _, version = entry.removesuffix(".dist-info").partition("-")
        if entry.endswith(".dist-info"):
            try:
                own = Version(version)
            except InvalidVersion:
                continue
            found.append(Distribution(name=canonicalize_name(name), version=own, info=f"{packages}{os.sep}{entry}"))
    return tuple(found)


def record(distribution: Distribution, wanted: Callable[[bytes], bytes] = bytes) -> tuple[str, list[Row]]:
    """Read the RECORD of a distribution.

    Rows that say nothing about a file are left out: bytecode, which Python writes at run time, folders, the RECORD
    itself, and lines that are no rows.

    Args:
        distribution: whose.
        wanted: gives the lines of which the rows are read, to spare the others.

    Returns:
        The sha256 of the RECORD itself, "" where there is none; and its rows.
    """
    try:
        with open(f"{distribution.info}{os.sep}RECORD", "rb") as file:  # noqa: PTH123 - hundreds of them in half a second
            data = file.read()
    except OSError:
        return "", []
    rows = csv.reader(io.StringIO(wanted(data).decode("utf-8", "surrogateescape"), newline=""))
    kept = [(row[0], row[1], row[2]) for row in rows if len(row) == 3 and not row[0].endswith(_NO_FILES)]
    return hashlib.sha256(data).hexdigest(), kept


def newer_distributions(packages: Path, since: float) -> Iterator[NewerDistribution]:
    """List the distributions whose RECORD is newer than a moment.

    Args:
        packages: the site-packages.
        since: seconds since the epoch.
    """
    for distribution in distributions(packages):
        info = Path(distribution.info)
        written = max(
            (path.stat().st_mtime for path in (info / "RECORD", info / "METADATA") if path.exists()), default=0
        )
        if written > since:
            yield NewerDistribution(
                name=distribution.name,
                version=distribution.version,
                installer=installer(info),
                requested=(info / "REQUESTED").exists(),
                url=_url(info / "direct_url.json"),
                requires=tuple(_requires(info / "METADATA")),
                installed=written,
            )


def installer(info: Path) -> str:
    """Read who installed a distribution; "" where nobody says."""
    try:
        return (info / "INSTALLER").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _url(path: Path) -> str:
    try:
        return without_secrets(str(json.loads(path.read_text(encoding="utf-8"))["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _requires(metadata: Path) -> Iterator[Requirement]:
    import email.parser

    from packaging.requirements import InvalidRequirement, Requirement

    try:
        headers = email.parser.HeaderParser().parsestr(metadata.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return
    for line in headers.get_all("Requires-Dist", []):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            yield requirement


_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def installed_versions(environment: Path) -> Mapping[str, str]:
    """Read normalised name → version of what is installed.

    PyPI's wheels of torch are named without the build that they are; torch's own file says it (`2.11.0+cu130`).
    """
    folder = site_packages(environment)
    found = {str(one.name): str(one.version) for one in distributions(folder)}
    if "torch" in found:
        found["torch"] = _build(folder / "torch" / "version.py", found["torch"])
    return found


def _build(file: Path, version: str) -> str:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return version
    said = _VERSION.search(text)
    return said[1] if said and said[1].partition("+")[0] == version.partition("+")[0] else version
