"""The options that commands share, and how they become a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from patchlock.cli import _folders

if TYPE_CHECKING:
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.catalogue.reader import Catalogue
    from patchlock.hardware.profile_choice import ProfileChoice
    from patchlock.locks.lock_request import Request
    from patchlock.model.app import App

F = TypeVar("F", bound=Callable[..., Any])
home, cache, root = _folders.home, _folders.cache, _folders.root


def common(function: F) -> F:
    """Add what every command has: --catalogue and --json."""
    function = click.option("--json", "as_json", is_flag=True, help="Print one JSON envelope on stdout.")(function)
    return click.option(
        "--catalogue",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="PATCHLOCK_CATALOGUE",
        help="Folder with profiles/, patches/ and lockfiles/ (default: the one patchlock came with).",
    )(function)


def pair(function: F) -> F:
    """Add the app and its profile."""
    function = click.option("--profile", metavar="PROFILE", help="Kind of machine (default: the one that fits).")(
        function
    )
    return click.argument("app")(function)


def installed(function: F) -> F:
    """Add the app and the profile that it is installed on."""
    function = click.option(
        "--profile", metavar="PROFILE", help="Kind of machine (default: the one that it is installed on)."
    )(function)
    return click.argument("app")(function)


def upstream(function: F) -> F:
    """Add where upstream is taken from."""
    function = click.option(
        "--commit", "revision", metavar="REV", help="Another commit than the catalogue's, or HEAD of the source."
    )(function)
    return click.option(
        "--source", metavar="PATH-OR-URL", help="Take upstream from here: an offline clone, a mirror, a fork."
    )(function)


def edited_lock(function: F) -> F:
    """Add what a lock's owner may say of it."""
    function = local_addresses(function)
    return click.option(
        "--accept-edited-lock",
        is_flag=True,
        help="Take a lock that you edited after it was made; everything that tells of the installation says so.",
    )(function)


def local_addresses(function: F) -> F:
    """Add what lets a lock name places that only this machine has."""
    return click.option(
        "--local-addresses", is_flag=True, help="Let a lock name files of this machine, and servers on it."
    )(function)


def needs_option(function: F) -> F:
    """Add what a person may know better about his machine."""
    return click.option(
        "--ignore-needs", is_flag=True, help="Go on without the programs, libraries and drivers that the app needs."
    )(function)


def no_device_option(function: F) -> F:
    """Add that an install need not prove a device, as where an image is made for another machine."""
    return click.option(
        "--no-device", is_flag=True, help="Let it be no failure that this machine has no device to compute on."
    )(function)


def choice(function: F) -> F:
    """Add what a person chooses of the optional patches."""
    function = click.option(
        "--without", "left_out", multiple=True, metavar="NAME", help="Leave an optional patch out again."
    )(function)
    return click.option(
        "--with",
        "added",
        multiple=True,
        metavar="NAME",
        help="Add an optional patch (`patchlock list APP` shows which).",
    )(function)


def open_catalogue(folder: Path | None) -> Catalogue:
    """Open the catalogue that the user names, or the one patchlock came with."""
    from patchlock.catalogue import reader

    return reader.find(folder, home())


def request(
    catalogue: Path | None,
    app: str,
    profile: str | None,
    *,
    source: str | None = None,
    revision: str | None = None,
    reinstall: bool = False,
    heed: Callable[[ProfileChoice], None] = lambda _: None,
    choice: Choice | None = None,
) -> Request:
    """Turn the options of a command into a request, for this machine or the pretended one.

    Args:
        catalogue: its folder, or None for the one patchlock came with.
        app: its name.
        profile: its name; None chooses the one that fits best.
        source: another place of upstream.
        revision: another commit of upstream.
        reinstall: build afresh.
        heed: called with what was chosen and why, before anything else is done with it.
        choice: of optional patches; None takes those that the installation has.

    Raises:
        UnknownAppError: there is no such app.
        UnknownProfileError: there is no such profile.
        NoProfileFitsError: no profile fits this machine, or the named one does not.
        CatalogueError: the app's or a profile's file has mistakes.
        UsageError: an optional patch is named that there is not.
    """
    from patchlock.catalogue import optional_patches
    from patchlock.environments import generations
    from patchlock.hardware import host_overrides, probes, profile_choice
    from patchlock.hardware.stored_choice import StoredChoice
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import CatalogueError
    from patchlock.model.installation import Installation

    opened = open_catalogue(catalogue)
    wanted = opened.app(app)
    if profile is not None:
        opened.profile(profile)
    observed = host_overrides.observe(lambda: probes.probe(home()))
    try:
        refused = {one.profile: one.why for one in wanted.refusals if not one.platforms} if profile is not None else {}
        found = profile_choice.choose(opened.root, profile, observed, refused)
    except CatalogueError:
        opened.read_all()  # which has every mistake, and not only those of what a choice looks at
        raise
    if profile is None:
        found = _possible(opened, wanted, found)
    heed(found)
    chosen = found.choice.chosen
    there = generations.current(Installation(folder=home() / f"{app}@{chosen.profile.name}"))
    return Request(
        app=wanted,
        profile=opened.profile(chosen.profile.name),
        platform=chosen.platform,
        catalogue=opened,
        home=home(),
        cache=cache(),
        source=source,
        revision=revision,
        reinstall=reinstall,
        chosen=optional_patches.choose(wanted, chosen.profile.name, there.chosen if there else (), choice),
        kept=StoredChoice(device=found.selected.variables, profiles=""),
    )


def _possible(opened: Catalogue, app: App, found: ProfileChoice) -> ProfileChoice:
    """Pass over profiles that the app cannot run on; where it can run on none, keep the best: its refusal says why."""
    from patchlock.catalogue.pairs import require_possible
    from patchlock.hardware import profile_choice
    from patchlock.model.errors import NoProfileFitsError, RefusedError

    first, refused = found, dict[str, str]()
    while True:
        chosen = found.choice.chosen
        try:
            require_possible(app, opened.profile(chosen.profile.name), chosen.platform)
        except RefusedError as error:
            refused[chosen.profile.name] = error.what
        else:
            return found
        try:
            found = profile_choice.choose(opened.root, None, found.observed, refused)
        except NoProfileFitsError:
            return first


def installed_request(
    catalogue: Path | None,
    app: str,
    profile: str | None,
    *,
    source: str | None = None,
    revision: str | None = None,
    choice: Choice | None = None,
    as_it_is: bool = False,
) -> Request:
    """Turn the options of a command into a request for what is installed; where nothing is, for what fits.

    Args:
        catalogue: its folder, or None for the one patchlock came with.
        app: its name.
        profile: its name; None takes the one that it is installed on.
        source: another place of upstream.
        revision: another commit of upstream.
        choice: of optional patches; None takes those that the installation has.
        as_it_is: where no catalogue is named, take the one that the installation was made from, which it keeps.

    Raises:
        UsageError: no profile is named, and the app is installed on several.
        PatchlockError: as `request`.
    """
    from patchlock.catalogue import optional_patches
    from patchlock.environments import generations, kept_catalogue
    from patchlock.hardware import probes, selection
    from patchlock.locks.lock_request import Request
    from patchlock.model.installation import Installation

    named = profile or _installed_on(app)
    if named is None:
        return request(catalogue, app, None, source=source, revision=revision, choice=choice)
    installation = Installation(folder=home() / f"{app}@{named}")
    opened = open_catalogue(catalogue or (kept_catalogue.root(installation) if as_it_is else None))
    wanted, found = opened.app(app), opened.profile(named)
    chosen = selection.choose([found], probes.basic(), (), named).chosen
    there = generations.current(installation)
    return Request(
        app=wanted,
        profile=found,
        platform=chosen.platform,
        catalogue=opened,
        home=home(),
        cache=cache(),
        source=source,
        revision=revision,
        chosen=optional_patches.choose(wanted, named, there.chosen if there else (), choice),
    )


def _installed_on(app: str) -> str | None:
    from patchlock.environments import generations
    from patchlock.model.errors import UsageError

    found = profiles_of(app)
    there = [one.profile for one in generations.installations(home()) if one.app == app]
    chosen = found or there  # files of the user may be all that is left
    if len(chosen) > 1:
        raise UsageError(f"{app} is installed on {' and on '.join(chosen)}", remedy=f"name one: --profile {chosen[0]}")
    return chosen[0] if chosen else None


def profiles_of(app: str) -> list[str]:
    """Name the profiles on which an app is installed and can be started, sorted."""
    from patchlock.environments import generations

    return [one.profile for one in generations.installations(home()) if one.app == app and one.pointer.is_file()]


def pair_arguments(request: Request) -> str:
    """Name an installation as short as commands understand it: with its profile where there are several."""
    name = request.app.name
    return name if profiles_of(name) == [request.profile.name] else f"{name} --profile {request.profile.name}"
