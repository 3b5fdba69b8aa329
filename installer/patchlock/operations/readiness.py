"""Gather what an install depends on and judge it, before anything is touched; writes nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue.reader import Catalogue
from patchlock.core import disk_space, uv
from patchlock.distributions import wheelhouse
from patchlock.environments.builds import from_source
from patchlock.hardware import doctor, interpreters, memory_needs, preflight, resource_detection
from patchlock.hardware import on_paper as paper
from patchlock.hardware import system as hardware_system
from patchlock.hardware.memory_needs import MemoryVerdict
from patchlock.hardware.preflight import Facts, Interpreter, PythonDownload
from patchlock.hardware.profile_choice import ProfileChoice
from patchlock.locks.lock_request import Request
from patchlock.model import conditions, needs, overlays
from patchlock.model.app import App
from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import NotReadyError
from patchlock.model.fits import Platform
from patchlock.model.lockfile import Lock
from patchlock.model.models import ModelSize
from patchlock.model.needs import Finding, Need, Resource
from patchlock.model.package_managers import System
from patchlock.model.profile import Profile

LEAST_ROOM = 200_000_000
"""Bytes that must be free before an install begins, besides what `core.disk_space` always spares: for a clone, and an
environment of small packages."""
_LONGEST = 134
"""Characters of the longest path in site-packages where no wheel of the lock is known yet.

Source: the tables of contents of the wheels of four apps' locks for Windows (98, 229, 135 and 150); it is one of onnx
1.22.0's tests. Without onnx it is transformers 4.47.1 with 126."""
_PARTIAL = "environments/123456789012-10/Lib/site-packages/"


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What was found, and what the environment is made with."""

    findings: tuple[Finding, ...]
    commands: str
    """Installs everything that an install would stop at, in one line; "" where no command is known."""
    later: str
    """The same for what it would only tell."""
    python: str
    """What uv is asked for: the path of the interpreter that was judged, or a request."""
    says: str
    """About Python, for a person."""
    memory: tuple[MemoryVerdict, ...] = ()
    """What the app takes of memory, and what there is."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Say what a person has to do by hand, in order; memory cannot be added so."""
        return preflight.steps(finding for finding in self.findings if finding.name != memory_needs.NAME)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what does not stop an install, with the commands that mend several of them at the end."""
        notes = tuple(finding for finding in self.findings if not finding.stops)
        return (*map(str, notes), *_at_once(notes, self.later))

    @property
    def stops(self) -> tuple[Finding, ...]:
        """Name what an install would stop at."""
        return tuple(finding for finding in self.findings if finding.stops)

    @property
    def missing(self) -> tuple[str, ...]:
        """Say what an install would stop at, with the commands that mend several of them at the end."""
        return (*map(str, self.stops), *_at_once(self.stops, self.commands))


def assess(
    request: Request,
    lock: Lock,
    *,
    ignore_needs: bool = False,
    on_paper: bool = False,
    begins: bool = False,
    size: ModelSize | None = None,
) -> Readiness:
    """Find out whether a machine is ready for an install.

    Args:
        request: the pair.
        lock: of the pair.
        ignore_needs: tell what the app and the profile need and lack, and let it stop nothing.
        on_paper: judge the machine that is simulated by its recording alone; nothing of this one is looked at.
        begins: judge the room on the disk, too, which `operations.install` looks at before all else.
        size: of the lock's files, where that is known: whether there is room to download them.

    Raises:
        CatalogueError: a file of `profiles/needs/` has mistakes.
    """
    profile, platform, machine = request.profile, request.platform, request.machine
    wanted = needs.needs_for((*profile.needs, *request.app.needs), profile.name, platform.name)
    resources = {need.name: request.catalogue.resource(need.name) for need in wanted}
    asked = interpreters.request(profile.python, platform)
    if on_paper and machine is not None:
        facts = paper.facts(machine.observed.host, resources)
    else:
        longest = longest_path(request, lock) if os.name == "nt" else 0
        facts = _facts(request.home, request.cache, wanted, resources, asked, request.installation.source, longest)
    memory = _memory(request)
    findings = (
        *(_versions(request.catalogue, profile, machine, facts.system) if machine else ()),
        *preflight.judge(facts, wanted, resources, python=profile.python),
        *_sdks(profile, platform, machine, can_look=not on_paper and os.name == "nt"),
        *_troubles(request, lock),
        *memory_needs.findings(memory),
        *(disk(request.home) if begins and not on_paper else ()),
        *(_downloads(request, lock, size) if begins and not on_paper and size else ()),
        *(() if on_paper else from_source.findings(request)),
    )
    findings = tuple(sorted(findings, key=lambda finding: not finding.stops))
    if ignore_needs:
        asked_for = {*resources, *conditions.VERSIONED}
        findings = tuple(dataclasses.replace(f, stops=f.stops and f.name not in asked_for) for f in findings)
    return Readiness(
        findings=findings,
        commands=preflight.install_commands((f for f in findings if f.stops), facts.system),
        later=preflight.install_commands((f for f in findings if not f.stops), facts.system),
        python=facts.python.path if isinstance(facts.python, Interpreter) else asked,
        says="" if on_paper else _python(request, facts),
        memory=memory,
    )


def lacks(
    catalogue: Catalogue, profile: Profile, app: App | None, machine: ProfileChoice, home: Path, cache: Path
) -> tuple[Finding, ...]:
    """Find out what a machine lacks for a profile: disk space, drivers, libraries, SDKs; not git or Python.

    Args:
        catalogue: of the profile.
        profile: the one that `machine` was judged by.
        app: what it needs, too; None: whatever the app.
        machine: this one, or a simulated one, by its recording alone.
        home: of patchlock.
        cache: of patchlock.

    Raises:
        CatalogueError: a file of `profiles/needs/` has mistakes.
    """
    platform, host = machine.choice.chosen.platform, machine.observed.host
    wanted = needs.needs_for((*profile.needs, *(app.needs if app else ())), profile.name, platform.name)
    resources = {need.name: catalogue.resource(need.name) for need in wanted}
    on_paper = bool(machine.observed.overrides)
    asked = interpreters.request(profile.python, platform)
    facts = paper.facts(host, resources) if on_paper else _facts(home, cache, wanted, resources, asked, home, 0)
    return (
        *(() if on_paper else disk(home)),
        *_versions(catalogue, profile, machine, facts.system),
        *(f for f in preflight.judge(facts, wanted, resources, python=profile.python) if f.name in resources),
        *_sdks(profile, platform, machine, can_look=not on_paper and os.name == "nt"),
    )


def disk(home: Path) -> tuple[Finding, ...]:
    """Find out whether the disk has the room that an install needs to begin."""
    needed, free = LEAST_ROOM + disk_space.SPARE, disk_space.look(home).free
    if free >= needed:
        return ()
    what = f"too little disk space in {home}: {size_text(free)} free, {size_text(needed)} needed"
    remedy = "free some room, or choose another disk with PATCHLOCK_HOME"
    return (Finding(name="disk", what=what, remedy=remedy, stops=True),)


def _downloads(request: Request, lock: Lock, size: ModelSize) -> tuple[Finding, ...]:
    """Find out whether the cache's disk has room for what is not in it; uv's own cache may have some of that, too."""
    cache = request.cache
    there = [found for one in lock.packages if (found := wheelhouse.find(cache, one.upstream.sha256))]
    coming = size.bytes - sum(path.stat().st_size for path in there)
    place, home = disk_space.look(cache), disk_space.look(request.home)
    needed = coming + disk_space.SPARE + (LEAST_ROOM if place.device == home.device else 0)
    if coming <= 0 or place.free >= needed:
        return ()
    what = f"too little disk space in {cache}: {size_text(place.free)} free, up to {size_text(needed)} needed"
    remedy = "free some room, or choose another disk with PATCHLOCK_CACHE_DIR"
    return (Finding(name="disk", what=what, why="to download the packages", remedy=remedy, stops=False),)


def _facts(
    home: Path,
    cache: Path,
    wanted: tuple[Need, ...],
    resources: Mapping[str, Resource],
    asked: str,
    source: Path,
    longest: int,
) -> Facts:
    """Gather the facts about this machine."""
    system = hardware_system.system()
    uv.find()  # before there are threads: `sysconfig`, which it asks, may not be started in several (CPython 3.11)
    with ThreadPoolExecutor(max_workers=1) as pool:
        python = pool.submit(hardware_system.python, asked)  # uv takes as long for that as all the rest
        return Facts(
            system=system,
            user=hardware_system.user(),
            git=_git(),
            folders=(
                hardware_system.folder(home, "PATCHLOCK_HOME"),
                hardware_system.folder(cache, "PATCHLOCK_CACHE_DIR"),
            ),
            source_of_another=str(source) if hardware_system.is_of_another(source) else "",
            has_long_paths=hardware_system.has_long_paths(),
            longest_path=longest,
            seen={
                need.name: resource_detection.detect(
                    resources[need.name], system.os, ask_version=bool(str(need.versions))
                )
                for need in wanted
            },
            python=python.result(),
        )


def _versions(catalogue: Catalogue, profile: Profile, machine: ProfileChoice, system: System) -> tuple[Finding, ...]:
    """Hold drivers and the system against what the profile requires of them."""
    chosen, host = machine.choice.chosen, machine.observed.host
    fits = [chosen.fit] if chosen.fit else [fit for fit in profile.fits if fit.wsl in {None, host.is_wsl}][:1]
    required = [condition for fit in fits for condition in fit.requires]
    resources = {one.name: catalogue.resource(one.name) for one in required}
    device = chosen.device.device if chosen.device else None
    return tuple(preflight.versions(required, host, device, resources, system))


def _memory(request: Request) -> tuple[MemoryVerdict, ...]:
    """Hold what the app takes of memory against the machine that the profile was chosen for."""
    wanted = needs.memory_for(request.app.memory, request.profile.name, request.platform.name)
    machine = request.machine
    return memory_needs.judge(
        wanted,
        machine.observed.host if machine else None,
        machine.choice.device if machine else None,
        on_processor=machine.choice.has_torch_on_processor if machine else request.profile.back_end == "cpu",
    )


_VERSION_OF_SDK = {"HIP_PATH": "hip-sdk"}
"""Variable that names an SDK's folder → what a recording calls its version."""


def _sdks(
    profile: Profile, platform: Platform, machine: ProfileChoice | None, *, can_look: bool
) -> tuple[Finding, ...]:
    """Name the SDKs that overlays need, and that this machine has not, or a recording does not tell."""
    found = []
    versions = machine.observed.host.versions if machine else {}
    for overlay in overlays.for_platform(profile.overlays, platform.name):
        sdk = overlay.sdk
        if sdk is not None and not (can_look and overlays.find_sdk(sdk, os.environ, os.path.isfile).folder):
            there = versions.get(_VERSION_OF_SDK.get(sdk.variable, ""), "")
            found.append(
                Finding(
                    name=overlay.id,
                    what=f"{sdk.name}, if it is not installed" + (f" (found version {there})" if there else ""),
                    remedy=sdk.install,
                    stops=False,
                    why=f"{overlay.id} {overlay.why}",
                    source=overlay.source,
                    kind="variable",
                    is_sure=False,
                )
            )
    return tuple(found)


def _troubles(request: Request, lock: Lock) -> tuple[Finding, ...]:
    """Name, as `doctor` does, the known troubles of the machine that the packages of the lock would meet."""
    machine = request.machine
    if machine is None:
        return ()
    packages = {str(package.name): str(package.version) for package in lock.packages}
    recording = dataclasses.replace(machine.observed.recording, packages=packages, says=())
    entries = [one for one in request.catalogue.troubles() if one.before_install]
    cards = request.catalogue.cards() if entries and recording.host.devices else ()
    return tuple(
        Finding(
            name=one.name,
            what=one.title if one.confidence == "certain" else f"{one.confidence}: {one.title}",
            remedy="; ".join(remedy.told for remedy in one.remedies),
            stops=False,
            source="; ".join(one.sources),
            kind="trouble",
            is_sure=one.confidence == "certain",
        )
        for one in doctor.diagnose(recording, cards, entries)
    )


def _at_once(findings: tuple[Finding, ...], commands: str) -> list[str]:
    return [f"all at once: {commands}"] if commands and sum(one.way is not None for one in findings) > 1 else []


def require(request: Request, lock: Lock, *, ignore_needs: bool = False) -> Readiness:
    """Do as `look`, and stop where the machine is not ready.

    Raises:
        NotReadyError: carries everything that is missing.
    """
    readiness = assess(request, lock, ignore_needs=ignore_needs)
    if readiness.stops:
        raise not_ready(request, readiness)
    return readiness


def not_ready(request: Request, readiness: Readiness) -> NotReadyError:
    """Say all that is missing in one error."""
    pair, stops = f"{request.app.name} on {request.profile.name}", readiness.stops
    lines = readiness.missing
    needed = any(request.catalogue.has_resource(finding.name) for finding in stops)
    again = "fix this and run the same command again"
    if any(finding.way is not None and finding.way.needs_new_window for finding in stops):
        command = f"patchlock install {request.app.name} --profile {request.profile.name}"
        again = f"fix this, open a new PowerShell window, and run `{command}` there"
    return NotReadyError(
        f"this machine is not ready for {pair}; nothing was touched",
        remedy=again + (", or with --ignore-needs if you know better" if needed else ""),
        evidence=lines,
        findings=stops,
    )


def _git() -> preflight.DetectedResource:
    return resource_detection.detect(preflight.GIT, hardware_system.system().os, ask_version=True)


def _python(request: Request, facts: Facts) -> str:
    match facts.python:
        case Interpreter(path=path):
            return f"Python {request.profile.python} of {path}"
        case PythonDownload(version=version, host=host, folder=folder):
            return f"Python {version} will be fetched from {host} to {folder}"
        case _:
            return ""


def longest_path(request: Request, lock: Lock) -> int:
    """Count the characters of the longest path that the environment will have, by the wheels that are known."""
    from patchlock.distributions import wheel_facts  # what speaks HTTP is imported late

    folder = request.cache / wheel_facts.FOLDER
    known = max((wheel_facts.longest_path(folder, package.sha256) for package in lock.packages), default=0)
    return len(str(request.installation.folder / Path(_PARTIAL))) + 1 + max(known, _LONGEST)
