"""What a person wants built from source instead of a wheel: what it costs, and what this machine lacks for it."""

from __future__ import annotations

import os

from patchlock.core import disk_space
from patchlock.environments.builds import _tools
from patchlock.locks.lock_request import Request
from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import ProgramMissingError
from patchlock.model.needs import Finding
from patchlock.model.recipes import SourceBuild, fits, source_builds

_GB = 1_000_000_000


def chosen(request: Request) -> tuple[SourceBuild, ...]:
    """Name what is to be built, in the order of the recipes."""
    here = request.profile.name, request.platform.name
    both = (*request.app.recipes, *request.profile.recipes)
    return source_builds(one for one in both if one.option in request.chosen and fits(one, *here))


def findings(request: Request) -> tuple[Finding, ...]:
    """Say what this machine lacks for what is to be built; each stops an install."""
    return tuple(finding for build in chosen(request) for finding in _findings(request, build))


def _findings(request: Request, build: SourceBuild) -> list[Finding]:
    found = []
    try:
        _tools.require(build.needs, f"building {build.option}", os.environ.get("PATH", os.defpath))
    except ProgramMissingError as error:
        found.append(_finding(build, error.what, error.remedy))
    without = f"use the wheel: --without {build.option}"
    memory, free = _tools.memory(), disk_space.look(request.cache).free
    if memory < build.memory_gb * _GB:
        what = (
            f"{build.option} needs {size_text(build.memory_gb * _GB)} of memory; this machine has {size_text(memory)}"
        )
        found.append(_finding(build, what, without))
    if free < build.disk_gb * _GB:
        needed = size_text(build.disk_gb * _GB)
        what = f"{build.option} needs {needed} of disk in {request.cache}; {size_text(free)} are free"
        found.append(_finding(build, what, f"{without}; or choose another disk with PATCHLOCK_CACHE_DIR"))
    return found


def _finding(build: SourceBuild, what: str, remedy: str) -> Finding:
    return Finding(
        name=build.option,
        what=what,
        remedy=remedy,
        stops=True,
        source=build.recipes[0].source,
        kind="program",
        is_sure=True,
    )
