"""With which specifiers the distributions of a lock are asked for, as far as this computer knows; asks no network."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.environments import generations, installed
from patchlock.locks import lock_request, wheel_choice
from patchlock.locks.lock_request import Request, UpstreamRequirements
from patchlock.locks.reasons import Chain
from patchlock.model.app import rules_of
from patchlock.model.errors import PatchlockError
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.patches import engine, requirements_for_locks
from patchlock.worktree import upstream_cache


@dataclass(frozen=True, kw_only=True)
class Specifiers:
    """What is known of one lock."""

    request: Request
    locked: Mapping[NormalizedName, LockedPackage]
    lines: Mapping[str, Requirement]
    """`<requirement file>:<line>` → what stands there; empty where upstream's files are not on this computer."""

    def asked(self, place: str, name: NormalizedName) -> Requirement | None:
        """Give what asks for a distribution at a place, as the lock names places; None where that is not known."""
        from patchlock.patches.ops.requirements import ops

        where, _, by = place.partition(" (patch ")
        found = [self.lines[where]] if where in self.lines else []
        if by and not found:
            patches = engine.for_profile(self.request.app.patches, self.request.profile.name)
            ids = by.removesuffix(")").split(", ")
            found = [left for patch in patches if patch.id in ids and (left := ops.left(patch.op)) is not None]
        return next((one for one in reversed(found) if canonicalize_name(one.name) == name), None)

    def required(self, dependent: NormalizedName, name: NormalizedName) -> Requirement | None:
        """Give what a distribution of the lock itself asks of another one; None where that is not known."""
        of_extras = None
        for one in self._metadata(self.locked[dependent].upstream):
            if canonicalize_name(one.name) == name:
                if one.marker is None or one.marker.evaluate(self._environment):
                    return one
                if "extra" in str(one.marker):
                    of_extras = of_extras or one
        return of_extras

    @property
    def _environment(self) -> dict[str, str]:
        here = wheel_choice.marker_environment(self.request.platform, self.request.profile.python)
        return here | {"extra": ""}

    def _metadata(self, package: LockedPackage) -> Iterator[Requirement]:
        """Read what a distribution requires: as recorded in the catalogue, or as installed for this pair."""
        for index in lock_request.indexes_of(self.request):
            yield from (one for wheel in index.wheels if wheel.sha256 == package.sha256 for one in wheel.requires)
        for rule in rules_of(self.request).metadata:
            if (rule.name, rule.version) == (package.name, package.version):
                yield from rule.requires
        receipt = generations.current(self.request.installation)
        if receipt is not None:
            environment = generations.generation(self.request.installation, receipt.id)
            path = [str(installed.site_packages(environment))]
            for one in importlib.metadata.distributions(name=package.name, path=path):
                if one.version == str(package.version):
                    yield from map(Requirement, one.requires or ())

    def requirements(self, chain: Chain) -> tuple[Requirement | None, ...]:
        """Give each distribution of a chain as the one before it asks for it."""
        first = self.asked(chain.asked, chain.names[0])
        pairs = zip(chain.names, chain.names[1:], strict=False)
        return (first, *(self.required(dependent, name) for dependent, name in pairs))


def of_lock(request: Request, lock: Lock, upstream: UpstreamRequirements | None) -> Specifiers:
    """Gather what is known of a lock.

    Args:
        request: the pair.
        lock: its lock.
        upstream: what upstream asks for, where that was read already; None: it is read if that needs no network.
    """
    if upstream is None and request.source is None and lock.provenance.commit == request.app.upstream.commit:
        with contextlib.suppress(PatchlockError):  # such as no git: it is only not known then
            if upstream_cache.is_at_hand(request.app, request.cache):
                upstream = lock_request.read_requirements(request)
    return Specifiers(
        request=request,
        locked={package.name: package for package in lock.packages},
        lines=dict(_lines(request, upstream)) if upstream else {},
    )


def _lines(request: Request, upstream: UpstreamRequirements) -> Iterable[tuple[str, Requirement]]:
    app = request.app
    asked = requirements_for_locks.walk(
        app.requirement_files, upstream.requirements, wanted=app.optional_lists, directory=app.directory
    )[0]
    lines = [(file.path, line) for file, line in asked.requirements()] + [*asked.overrides, *asked.constraints]
    return ((f"{path}:{line.line}", line.requirement) for path, line in lines)
