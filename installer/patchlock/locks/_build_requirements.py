"""Resolve what the builds of a lock's sdists require into hashed build constraints; runs no build."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.locks import _resolver, wheel_choice
from patchlock.model import toml_text
from patchlock.model.build_constraints import BuildConstraints, render
from patchlock.model.errors import PolicyError, UnsatisfiableError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lock_rules import LockRules, Metadata
from patchlock.model.lockfile import LockedPackage
from patchlock.model.profile import Profile
from patchlock.model.recipes import OtherBuild

if TYPE_CHECKING:
    from packaging.pylock import Package


@dataclass(frozen=True, kw_only=True)
class Target:
    """For which machine, and as of when."""

    profile: Profile
    platform: Platform
    markers: Mapping[str, str]
    """The target's environment, as markers name it."""
    as_of: str
    """RFC 3339 time in UTC, or "" for no bound."""
    cut_offs: Mapping[NormalizedName, str]
    """Distribution → its own cut-off; "" for no bound."""


@dataclass(frozen=True, kw_only=True)
class Prefetched:
    """What all builds together require that a lock may need: uv is asked while it resolves the app itself."""

    asked: tuple[str, ...]
    answer: Future[str] | None
    """A `pylock.toml`; may hold an error that nobody wants. None where no build requires anything."""


def prefetch(rules: LockRules, others: tuple[OtherBuild, ...], target: Target, pool: Executor) -> Prefetched:
    """Ask already for what all builds together require, most often setuptools and wheel, whichever will be chosen."""
    asked = requirements(tuple(rule for rule in rules.metadata if rule.name in rules.source_builds), others)
    return Prefetched(asked=asked, answer=pool.submit(_ask, asked, target) if asked else None)


def build_constraints_of(
    packages: tuple[LockedPackage, ...],
    rules: LockRules,
    others: tuple[OtherBuild, ...],
    target: Target,
    command: str,
    prefetched: Prefetched,
) -> str:
    """Write the file that pins what the builds of a lock's sdists require; "" where nothing has to be built.

    Args:
        packages: of the lock.
        rules: which of them are built, and what their builds require.
        others: what is built besides.
        target: for which machine, and as of when.
        command: that makes the lock anew.
        prefetched: what uv was asked already.

    Raises:
        PatchlockError: as `resolve`.
    """
    metadata = rules.of_builds(packages)
    return render(resolve(metadata, others, target, prefetched), command) if metadata or others else ""


def resolve(
    metadata: tuple[Metadata, ...], others: tuple[OtherBuild, ...], target: Target, prefetched: Prefetched
) -> BuildConstraints:
    """Choose one wheel for everything that the builds of some sdists require.

    One version serves all builds of a lock, because uv takes one list of build constraints.

    Raises:
        UnsatisfiableError: no set of wheels serves all builds.
        PolicyError: a wheel fits the target badly, or has no sha256.
        NetworkError: an index does not answer.
    """
    from packaging.pylock import Pylock

    asked = requirements(metadata, others)
    try:
        known = prefetched.answer if asked == prefetched.asked else None
        text = known.result() if known is not None else _ask(asked, target)
    except UnsatisfiableError as error:
        built = ", ".join([*(f"{rule.name} {rule.version}" for rule in metadata), *(one.id for one in others)])
        raise UnsatisfiableError(
            f"no set of packages can build {built}",
            where=f"build = [{', '.join(asked)}]",
            remedy="correct `build` of [[metadata]] or `requires` of [[in-tree]] or [recipe.archive]",
            evidence=error.evidence,
        ) from error
    answer = Pylock.from_dict(tomllib.loads(text))
    wanted = (p for p in answer.packages if p.marker is None or p.marker.evaluate(dict(target.markers)))
    packages = tuple(
        sorted((_locked(package, metadata, others, target) for package in wanted), key=lambda one: one.name)
    )
    return BuildConstraints(
        sdists=tuple(sorted(f"{rule.name}=={rule.version}" for rule in metadata)),
        in_tree=tuple(sorted(one.id for one in others)),
        packages=packages,
    )


def requirements(metadata: tuple[Metadata, ...], others: tuple[OtherBuild, ...]) -> tuple[str, ...]:
    """Gather what the builds require, in PEP 508's words; sorted."""
    of_sdists = {str(requirement) for rule in metadata for requirement in rule.build}
    return tuple(sorted(of_sdists | {str(requirement) for one in others for requirement in one.requires}))


def _ask(asked: tuple[str, ...], target: Target) -> str:
    with tempfile.TemporaryDirectory(prefix="patchlock-build-") as name:
        write(asked, target, Path(name))
        return _resolver.ask(Path(name)).pylock


def write(asked: tuple[str, ...], target: Target, folder: Path) -> tuple[str, ...]:
    """Write what uv is asked for builds into an empty folder, and give the arguments of `uv pip compile`."""
    (folder / "build.in").write_text("".join(f"{line}\n" for line in asked), encoding="utf-8")
    (folder / "uv.toml").write_text(_config(target), encoding="utf-8")
    arguments = (
        *("build.in", "--config-file", "uv.toml", "--only-binary", ":all:"),
        *("--python-version", str(target.profile.python), "--python-platform", target.platform.uv),
    )
    (folder / _resolver.ARGUMENTS).write_text(json.dumps(arguments), encoding="utf-8")
    return arguments


def _config(target: Target) -> str:
    values: dict[str, object] = {"exclude-newer": target.as_of} if target.as_of else {}
    if target.as_of and target.cut_offs:
        values["exclude-newer-package"] = {name: time or False for name, time in sorted(target.cut_offs.items())}
    return toml_text.render(values)


def _locked(
    package: Package, metadata: tuple[Metadata, ...], others: tuple[OtherBuild, ...], target: Target
) -> LockedPackage:
    wheels = {unquote((wheel.url or wheel.path or "").rpartition("/")[2]): wheel for wheel in package.wheels or ()}
    best = wheel_choice.best_wheel(wheels, target.platform, target.profile)
    if best is None or package.version is None or "sha256" not in wheels[best].hashes:
        raise PolicyError(
            f"{package.name} {package.version}, which a build requires, has no wheel with a sha256",
            where=target.platform.name,
            remedy="bound it to a version that has one, with `build` in a [[metadata]] table",
        )
    dependents: list[str] = [rule.name for rule in metadata if _names(package.name, rule.build)]
    dependents += [one.id for one in others if _names(package.name, one.requires)]
    return LockedPackage(
        name=package.name,
        version=package.version,
        url="",
        sha256=Sha256(wheels[best].hashes["sha256"]),
        why=f"builds {', '.join(sorted(dependents))}" if dependents else "",
    )


def _names(name: NormalizedName, requirements: Iterable[Requirement]) -> bool:
    return any(canonicalize_name(requirement.name) == name for requirement in requirements)
