"""What an app is on a machine before it is installed: profile, downloads, memory; reads summaries alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import app_summaries, pairs, profile_summaries, proofs
from patchlock.catalogue.app_summaries import AppSummary
from patchlock.catalogue.proofs import Proof
from patchlock.environments import freshness, package_sizes
from patchlock.environments.package_sizes import PackageSize
from patchlock.hardware import memory_needs, selection
from patchlock.hardware.host_overrides import ObservedHost
from patchlock.hardware.memory_needs import MemoryVerdict
from patchlock.hardware.selection import Choice
from patchlock.model import platforms
from patchlock.model.choice import AppLimits
from patchlock.model.digests import sha256
from patchlock.model.errors import LockFormatError, NoProfileFitsError
from patchlock.model.fits import Platform, ProfileSummary
from patchlock.model.models import Model, ModelSize, When, models_for, sizes_by_time
from patchlock.model.needs import Need, memory_for, needs_for


@dataclass(frozen=True, kw_only=True)
class AppOverview:
    """One app on one machine."""

    app: AppSummary
    choice: Choice | None
    """The profile that `install` would take; None where the app is not supported on this machine."""
    why_not: str
    """Why there is none, a sentence."""
    packages: PackageSize | None
    """Of the lock; None where nobody has asked the index yet."""
    models: tuple[Model, ...]
    """Those that it downloads there."""
    memory: tuple[MemoryVerdict, ...]
    needs: tuple[str, ...]
    """What a person installs there before, if it is missing, each with what for; drivers are not among it."""
    proofs: tuple[Proof, ...]
    """Of this profile and platform, the newest first."""

    @property
    def computes_on(self) -> str:
        """Name what computes: the card, or the CPU; "" where nothing does."""
        if self.choice is None:
            return ""
        device, back_end = self.choice.device, self.choice.chosen.profile.back_end
        if device is None:
            return "the CPU"
        name = memory_needs.name_of(device)
        return f"the CPU, with ONNX models on {name}" if back_end == "cpu" else name

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what the choice leaves unused, and whether a card that is used for ONNX models has any; sentences."""
        if self.choice is None:
            return ()
        told = (*self.choice.doubts, *self.choice.warnings)
        device, back_end = self.choice.device, self.choice.chosen.profile.back_end
        kinds = {file.path.suffix for one in self.models for file in one.files}
        if device is None or back_end != "cpu" or not kinds or ".onnx" in kinds:
            return told
        idle = f"{memory_needs.name_of(device)} computes nothing until you choose ONNX models in the app"
        return (*told, f"None of the models that it downloads by default is an ONNX model: {idle}")

    @property
    def model_sizes(self) -> Mapping[When, ModelSize]:
        """Size of the models, by the time at which they are downloaded."""
        return sizes_by_time((one, file) for one in self.models for file in one.files)

    @property
    def levels(self) -> tuple[str, ...]:
        """Say what was proved on real machines of this kind, in the order of `proofs.LEVELS`."""
        there = {level for proof in self.proofs for level in proof.levels}
        return tuple(level for level in proofs.LEVELS if level in there)


def with_packages(seen: AppOverview, root: Path, cache: Path) -> AppOverview:
    """Ask the index how large the packages are, where that is not known yet."""
    lock = _lock(root, seen.app.name, seen.choice)
    if seen.choice is None or lock is None or (seen.packages is not None and not seen.packages.unknown):
        return seen
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks import lock_request
    from patchlock.model import lockfile

    data = lock.read_bytes()
    try:
        made = lockfile.parse(data.decode(), str(lock))
        pins = lock_request.build_pins(made, Catalogue.build_path(lock))
    except (LockFormatError, UnicodeDecodeError, OSError):  # `install` says what is wrong with it
        return seen
    size = package_sizes.ask(made, pins, sha256(data), seen.choice.chosen.platform, cache)
    return dataclasses.replace(seen, packages=size)


def _needs(root: Path, of_app: Iterable[Need], profile: str, platform: Platform) -> tuple[str, ...]:
    """Say which programs and libraries are needed, those that the profile needs last."""
    wanted = (*of_app, *profile_summaries.needs(root, profile))
    found = [(need, app_summaries.resource(root, need.name)) for need in needs_for(wanted, profile, platform.name)]
    return tuple(f"{one.title}: {need.why}" for need, one in found if one.sought(platform.os))


def _lock(root: Path, app: str, choice: Choice | None) -> Path | None:
    if choice is None:
        return None
    chosen = choice.chosen
    found = freshness.lock_file(root / "lockfiles" / app, chosen.profile.name, chosen.platform.name)
    return found if found.is_file() else None


def overviews(
    root: Path,
    profiles: tuple[ProfileSummary, ...],
    observed: ObservedHost,
    cache: Path,
    names: Iterable[str] | None = None,
) -> tuple[AppOverview, ...]:
    """Look at apps with the eyes of a machine.

    Args:
        root: the catalogue's.
        profiles: all of it.
        observed: the machine.
        cache: of patchlock, which keeps how large packages are.
        names: of apps; None for all.

    Raises:
        UnknownAppError: there is no such app.
        CatalogueError: a file has mistakes in what is looked at.
    """
    host = observed.host
    platform = platforms.platform_of(host)
    cards = profile_summaries.cards(root) if host.devices else ()
    known = proofs.read(root)
    found = []
    for name in names if names is not None else app_summaries.app_names(root):
        app, takes = app_summaries.read_with_resources(root, name)
        limits = pairs.limits(app, profiles, platform) if platform else AppLimits(name=name)
        choice, why_not = None, ""
        try:
            choice = selection.choose(profiles, host, cards, None, limits)
        except NoProfileFitsError as error:
            why_not = error.what
        chosen = choice.chosen if choice else None
        lock = _lock(root, name, choice)
        models = models_for(takes.models, chosen.profile.name) if chosen else takes.models
        found.append(
            AppOverview(
                app=app,
                choice=choice,
                why_not=why_not,
                packages=package_sizes.kept(sha256(lock.read_bytes()), cache) if lock else None,
                models=models,
                memory=memory_needs.judge(
                    memory_for(takes.memory, chosen.profile.name, chosen.platform.name),
                    host,
                    choice.device,
                    on_processor=choice.has_torch_on_processor,
                )
                if choice and chosen
                else (),
                needs=_needs(root, takes.needs, chosen.profile.name, chosen.platform) if chosen else (),
                proofs=proofs.of_pair(known, name, chosen.profile.name, chosen.platform.name) if chosen else (),
            )
        )
    return tuple(found)
