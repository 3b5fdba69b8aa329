"""What a build was made from, as values: its digest, its record on disk, and whether it still fits; pure."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import NormalizedName

from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.patch import Patch

FORMAT = 1
"""Raised when the same inputs are built in another way, so that what was built before is not taken for it."""


@dataclass(frozen=True, kw_only=True)
class BuildInputs:
    """All that is known of a build before it runs; how many compilers run at once is none of it."""

    what: str
    """`pyworld==0.3.5`, or the id of an in-tree build."""
    source: Mapping[str, Sha256]
    """File → sha256: the sdist, or the files of a folder."""
    recipe: Mapping[str, str]
    """What changes the result: variables as `$NAME`, the command, patches."""
    python: str
    """Major and minor version: the ABI of what is compiled."""
    platform: str

    @property
    def digest(self) -> Sha256:
        """Name these inputs; equal digests are equal inputs."""
        text = json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, sort_keys=True)
        return Sha256(hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True, kw_only=True)
class BuildRecord:
    """A build that succeeded."""

    inputs: Sha256
    requirements: Mapping[str, Sha256]
    """What it used of the pinned build requirements: name → sha256 of the wheel."""
    tools: Mapping[str, str]
    """What it was compiled with, program → how that names itself; empty for what is not compiled."""
    files: Mapping[str, Sha256]
    """What it made: name of the wheel, or path of each product → sha256."""
    seconds: float
    made: str
    """RFC 3339, UTC."""

    @property
    def name(self) -> str:
        """Name the folder of this build below that of its inputs: digest of the requirements and tools."""
        text = json.dumps([dict(self.requirements), dict(self.tools)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def patches_digest(patches: Iterable[Patch]) -> str:
    """Digest what patches do; their reasons may be reworded."""
    text = repr([(p.paths, p.literal, p.op_name, p.op) for p in patches])
    return hashlib.sha256(text.encode()).hexdigest()


def is_up_to_date(record: BuildRecord, pins: Mapping[NormalizedName, LockedPackage], tools: Mapping[str, str]) -> bool:
    """Say whether building anew would use the same: what was used is pinned to the same bytes, the tools are the same.

    A tool that is not on this machine, which may have the build from a bundle, could not make another one.

    What is pinned besides cannot have taken part: a build's requirements are resolved from their own metadata, and
    these are in the bytes.

    Args:
        record: the build.
        pins: the pinned build requirements as they are now.
        tools: those that `record.tools` names, as they name themselves now; "" for one that is not there.
    """
    used = all(
        (pin := pins.get(NormalizedName(name))) is not None and pin.sha256 == sha256
        for name, sha256 in record.requirements.items()
    )
    return used and all(tools[name] in {"", known} for name, known in record.tools.items())


def render(record: BuildRecord, about: BuildInputs) -> str:
    """Write a record as TOML, with its inputs for a person to read."""
    import tomlkit  # which is only for who writes

    values = {"what": about.what, "inputs": record.inputs, "seconds": round(record.seconds, 1), "made": record.made}
    values |= {"python": about.python, "platform": about.platform}
    tables: dict[str, Mapping[str, str]] = {
        "requirements": record.requirements,
        "tools": record.tools,
        "files": record.files,
        "source": about.source,
        "recipe": about.recipe,
    }
    data = {**values, **{name: dict(sorted(table.items())) for name, table in tables.items()}}
    return f"# Written by patchlock when the build had succeeded.\n{tomlkit.dumps(data)}"


def parse(text: str) -> BuildRecord | None:
    """Read a record; None where it is none of this format, so that it is built again."""
    try:
        values = tomllib.loads(text)
        return BuildRecord(
            inputs=Sha256(values["inputs"]),
            requirements=values["requirements"],
            tools=values["tools"],
            files=values["files"],
            seconds=float(values["seconds"]),
            made=values["made"],
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError):
        return None
