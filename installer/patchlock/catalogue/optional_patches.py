"""What a person chooses by name, patches and builds from source: what there is, is chosen, is recommended; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.app import App
from patchlock.model.errors import CatalogueError, Problem, UsageError, nearest
from patchlock.model.patch import Outcome, Patch
from patchlock.model.recipes import FROM_SOURCE, source_builds
from patchlock.patches.outcomes import APPLIED


@dataclass(frozen=True, kw_only=True)
class Option:
    """What can be chosen with `--with`: all patches that share one name."""

    name: str
    gives: str
    """What is to be had, and what it costs; a clause."""
    helps: tuple[str, ...]
    """Compute kernels whose failure recommends it."""
    patches: tuple[str, ...]
    """Ids."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a person says on a command line; names in the order in which he gives them."""

    added: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def of_profile(app: App, profile: str) -> tuple[Option, ...]:
    """List what an app lets a person choose on a profile: patches in the order of its file, then builds from source."""
    wanted = [recipe for recipe in app.recipes if not recipe.profiles or profile in recipe.profiles]
    built = (Option(name=one.option, gives=one.told(), helps=(), patches=()) for one in source_builds(wanted))
    return (*of_patches(app, profile), *built)


def of_patches(app: App, profile: str) -> tuple[Option, ...]:
    """List what of it are patches, which a clone can have, too."""
    return _grouped(patch for patch in app.patches if not patch.profiles or profile in patch.profiles)


def names(patches: Iterable[Patch]) -> tuple[str, ...]:
    """Name all that can be chosen among patches."""
    return tuple(option.name for option in _grouped(patches))


def _grouped(patches: Iterable[Patch]) -> tuple[Option, ...]:
    groups: dict[str, list[Patch]] = {}
    for patch in patches:
        if patch.optional:
            groups.setdefault(patch.optional, []).append(patch)
    return tuple(
        Option(
            name=name,
            gives="; ".join(patch.gives for patch in group if patch.gives),
            helps=tuple(dict.fromkeys(kernel for patch in group for kernel in patch.helps)),
            patches=tuple(patch.id for patch in group),
        )
        for name, group in groups.items()
    )


def choose(app: App, profile: str, kept: Iterable[str], choice: Choice | None) -> tuple[str, ...]:
    """Say what is chosen: what an installation has, with what a person adds and without what he leaves out; sorted.

    Args:
        app: the app.
        profile: for which it is installed.
        kept: names of the installation as it is.
        choice: None where a command does not ask; then what the catalogue has no more is passed over.

    Raises:
        UsageError: a name is unknown, or is both added and left out, or the catalogue has no more what is kept.
    """
    known = [option.name for option in of_profile(app, profile)]
    if choice is None:
        return tuple(sorted(set(kept) & set(known)))
    if both := set(choice.added) & set(choice.left_out):
        raise UsageError(f'"{min(both)}" is asked for and left out', remedy="give one of --with and --without")
    for missing in app.missing_options:
        if asked := next((name for name in choice.added if name in missing.names), None):
            raise UsageError(
                f'{app.name} has no "{asked}" to choose: {missing.why}',
                remedy=f"{missing.instead} (see {missing.source})",
            )
    for name in (*choice.added, *choice.left_out):
        if name not in known and not (name in choice.left_out and name in kept):
            raise _unknown(app, profile, name, known)
    chosen = (set(kept) | set(choice.added)) - set(choice.left_out)
    for name in sorted(chosen - set(known)):
        raise UsageError(
            f'"{name}", which this installation has by choice, is no longer in the catalogue',
            remedy=f"go on without it: --without {name}",
        )
    return tuple(sorted(chosen))


def _unknown(app: App, profile: str, name: str, known: Collection[str]) -> UsageError:
    """Say that there is no such choice on a profile, and on which there is one."""
    what = f'{app.name} has no option "{name}" on {profile}'
    if name.endswith(FROM_SOURCE):
        what = f"{app.name} has no recipe that builds {name.removesuffix(FROM_SOURCE)} from its source on {profile}"
    profiles = {at for one in app.recipes if one.option == name for at in one.profiles}
    profiles |= {at for one in app.patches if one.optional == name for at in one.profiles}
    if profiles:
        return UsageError(f"{what}, only on {', '.join(sorted(profiles))}", remedy="leave it out")
    if name.endswith(FROM_SOURCE):
        known = [one for one in known if one.endswith(FROM_SOURCE)]
        return UsageError(what, remedy=nearest(name, known) or "leave it out, and the lock's own version is installed")
    return UsageError(what, remedy=nearest(name, known) or "leave it out: there are no options on that profile")


def recommend(failed: Collection[str], app: App, profile: str = "", chosen: Collection[str] = ()) -> tuple[Option, ...]:
    """Give what may help where compute kernels fail, without what is chosen already.

    Args:
        failed: names of kernels, as `verify` calls them.
        app: the app.
        profile: on which it is installed; "" for any.
        chosen: what the installation has.
    """
    options = of_patches(app, profile) if profile else _grouped(app.patches)
    return tuple(option for option in options if option.name not in chosen and set(option.helps) & set(failed))


def require_same_lock(patches: Iterable[Patch], outcomes: Iterable[Outcome], files: Collection[PurePosixPath]) -> None:
    """Refuse an optional patch that changes a file which the lock is made from, as there is one lock for all choices.

    Args:
        patches: those that were applied.
        outcomes: what became of them.
        files: the requirement files, and what they include.

    Raises:
        CatalogueError: names every such patch and file.
    """
    changed = {(outcome.patch, outcome.path) for outcome in outcomes if outcome.kind in APPLIED}
    problems = [
        Problem(
            file=patch.origin.file,
            line=patch.origin.line,
            key="optional",
            what=f'the patch "{patch.id}" changes {path}, from which the lock is made, and there is one lock for all '
            "choices",
            remedy="make it a patch for all, or let it change the source alone",
        )
        for patch in patches
        for path in sorted(files)
        if patch.optional and (patch.id, path) in changed
    ]
    if problems:
        raise CatalogueError(problems)
