"""Which newer versions of a locked distribution there are, and what keeps each out, by asking uv; changes no file."""

from __future__ import annotations

import dataclasses
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.distributions import index_client
from patchlock.distributions.policy.fitting import of_version, uploaded_until
from patchlock.locks import _older_versions, _resolver, _resolver_input, wheel_choice
from patchlock.locks._older_versions import OlderVersion
from patchlock.locks.conflicts import _search
from patchlock.locks.conflicts._trials import ResolverSession, anywhere
from patchlock.locks.conflicts.explanation import Conflict, builds_needed, conflict_of, members_of
from patchlock.locks.conflicts.model import CUT_OFF, Answer, Member, Question, Requester, Solved, Unsolved, atoms
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.errors import PatchlockError
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import IndexFile

Files = Mapping[PurePosixPath, bytes]
_SECONDS = 60
"""After which no more is asked."""


@dataclass(frozen=True, kw_only=True)
class Newer:
    """Which newer versions of a locked distribution there are, and what keeps each out."""

    fits: Version | None
    """The newest that this machine could install, as of the cut-off; None where there is none."""
    would_resolve: bool
    """Whether the whole order has a solution with a newer one."""
    conflict: Conflict | None
    """What keeps `fits` out; without the wish for a newer one itself."""
    younger: Version | None
    """The newest that this machine could install without the cut-off, where that is another."""
    is_late: bool
    """Whether `younger` itself was uploaded after the cut-off; if not, something was that it requires."""
    elsewhere: Version | None
    """A still newer one that has wheels for other machines only."""
    unmet: Version | None
    """A still newer one that has a wheel for this machine, and requires what has none."""
    unmet_builds: tuple[tuple[NormalizedName, Version], ...]
    """What could be built of that, as far as uv names it."""
    asked: int
    taken: Version | None
    """A newer one that a lock made now takes."""
    held_back: OlderVersion | None
    """Set where one requires what has only sdists."""


def newer(
    order: ResolutionInputs,
    raw: Files,
    package: LockedPackage,
    packages: tuple[LockedPackage, ...],
    *,
    tell: Callable[[str], None],
) -> Newer:
    """Find out why an order has no newer version of a distribution, by asking for one.

    Args:
        order: the order that was locked.
        raw: its requirement files before the patches.
        package: the distribution as it is locked.
        packages: all of the lock.
        tell: called with what goes on.
    """
    name, version = package.name, package.upstream.version
    wish = Member(
        requirement=Requirement(f"{name}>{version.public}"),
        requester=Requester(kind="upstream", name="", file="", line=0),
        path=PurePosixPath(),
        is_constraint=False,
    )
    members = (*members_of(order, raw), wish)
    every = atoms(members, has_cut_off=bool(order.as_of))
    alone = frozenset(atom for atom in every if atom.member == len(members) - 1)
    asking = ResolverSession(
        order=order,
        members=members,
        deadline=time.monotonic() + _SECONDS,
        tell=lambda asked: tell(f"{asked} questions to uv"),
    )
    cut_off = every & {CUT_OFF}
    whole, fitting, ageless = asking.ask(
        [Question(atoms=every), Question(atoms=alone | cut_off), Question(atoms=alone)]
    )
    fits = fitting.versions.get(name) if isinstance(fitting, Solved) else None
    younger = ageless.versions.get(name) if isinstance(ageless, Solved) and ageless != fitting else None
    conflict = None
    if fits is not None and isinstance(whole, Unsolved):
        core = _search.minimal(members, every, whole, asking)
        others = tuple(atom for atom in core.atoms if atom not in alone)
        conflict = conflict_of(dataclasses.replace(core, atoms=others), members, asking, alone)
    taken, held_back = _locked_now(order, package, packages)
    newest = max((one for one in (version, fits, younger) if one is not None), default=version)
    beyond = anywhere(name, newest, as_of=order.as_of, config=asking.config or "")
    wheels = [one.filename for one in _files(order, name, beyond) if one.filename.endswith(".whl")] if beyond else []
    is_foreign = wheel_choice.best_wheel(wheels, order.platform, order.profile) is None
    return Newer(
        fits=fits,
        would_resolve=isinstance(whole, Solved),
        conflict=conflict,
        younger=younger if younger != fits else None,
        is_late=younger is None or _is_late(order, name, younger),
        elsewhere=beyond if is_foreign else None,
        unmet=None if is_foreign else beyond,
        unmet_builds=_builds(order, fitting) if beyond and not is_foreign else (),
        asked=asking.asked,
        taken=taken,
        held_back=held_back,
    )


def _builds(order: ResolutionInputs, answer: Answer) -> tuple[tuple[NormalizedName, Version], ...]:
    needed = builds_needed(order, "\n".join(answer.words)) if isinstance(answer, Unsolved) else None
    return (*needed.everywhere, *needed.here) if needed is not None else ()


def _locked_now(
    order: ResolutionInputs, package: LockedPackage, packages: tuple[LockedPackage, ...]
) -> tuple[Version | None, OlderVersion | None]:
    """Lock without writing: give the newer version that is taken, or what needs a build for it; None where neither."""
    from packaging.pylock import Pylock

    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as folder:
        _resolver_input.write(order, Path(folder))
        try:
            answer = _resolver.ask(Path(folder))
        except PatchlockError:
            return None, None
    chosen = Pylock.from_dict(tomllib.loads(answer.pylock)).packages
    versions = {one.version for one in chosen if one.name == package.name and one.version is not None}
    if newer := max((one for one in versions if one > package.upstream.version), default=None):
        return newer, None
    found = _older_versions.find(order, packages, answer.log)
    return None, next((one for one in found if one.package.name == package.name), None)


def _is_late(order: ResolutionInputs, name: NormalizedName, version: Version) -> bool:
    """Say whether a version was uploaded after the cut-off; also where nobody tells when it was."""
    return not uploaded_until(_files(order, name, version), order.cut_offs.get(name, order.as_of))


def _files(order: ResolutionInputs, name: NormalizedName, version: Version) -> list[IndexFile]:
    index = next((one for one in order.indexes if any(wheel.name == name for wheel in one.wheels)), None)
    if index is not None:
        files = tuple(
            IndexFile(filename=one.filename, sha256=one.sha256, yanked=None, uploaded=one.uploaded)
            for one in index.wheels
            if one.name == name
        )
    else:
        files = index_client.offered([name]).get(name, ())
    return [file for file in files if of_version(file, version)]
