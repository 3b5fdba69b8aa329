"""The options that commands share, and how they become a request."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from patchlock.cli import _complete, _folders, _log, _output
from patchlock.cli._paths import UserPath

if TYPE_CHECKING:
    from patchlock.catalogue.optional_patches import Choice
    from patchlock.catalogue.reader import Catalogue
    from patchlock.environments.generations import Receipt
    from patchlock.hardware.host_overrides import ObservedHost
    from patchlock.hardware.profile_choice import ProfileChoice
    from patchlock.locks.lock_request import Request
    from patchlock.model.app import App
    from patchlock.model.errors import NoProfileFitsError, UsageError
    from patchlock.model.fits import Platform
    from patchlock.model.installation import Installation
    from patchlock.model.profile import Profile

F = TypeVar("F", bound=Callable[..., Any])
_FROM_SOURCE = "patchlock.from_source"
"""In click's context: what `--with` takes besides."""
home, cache, root = _folders.home, _folders.cache, _folders.root


def common(function: F) -> F:
    """Add what every command has: --catalogue and --json; -v, -q and --log-file."""
    function = _log.options(function)
    function = click.option("--json", "as_json", is_flag=True, help="Print one JSON envelope on stdout.")(function)
    return click.option(
        "--catalogue",
        type=UserPath(file_okay=False),
        envvar="PATCHLOCK_CATALOGUE",
        help="Folder with profiles/, patches/ and lockfiles/ (default: the one patchlock came with).",
    )(function)


def pair(function: F) -> F:
    """Add the app and its profile."""
    function = click.option(
        "--profile",
        metavar="PROFILE",
        help="Kind of machine (default: the best match for this one).",
        shell_complete=_complete.locked_profiles,
    )(function)
    return click.argument("app", shell_complete=_complete.apps)(function)


def profile(function: F) -> F:
    """Add the profile, whether or not an app is locked for it."""
    return click.option(
        "--profile",
        metavar="PROFILE",
        help="Kind of machine (default: the best match for this one).",
        shell_complete=_complete.profiles,
    )(function)


def installed(function: F) -> F:
    """Add the app and the profile that it is installed on."""
    return click.argument("app", shell_complete=_complete.installed_apps)(installed_profile(function))


def installed_profile(function: F) -> F:
    """Add the profile that an app is installed on."""
    return click.option(
        "--profile",
        metavar="PROFILE",
        help="Kind of machine (default: the one that it is installed on).",
        shell_complete=_complete.installed_profiles,
    )(function)


def upstream(function: F) -> F:
    """Add where upstream is taken from, and at which commit."""
    function = click.option(
        "--commit", "revision", metavar="REV", help="Use this upstream commit instead of the pinned one."
    )(function)
    return source(function)


def source(function: F) -> F:
    """Add where upstream is taken from."""
    return click.option(
        "--source", metavar="PATH-OR-URL", help="Take upstream from here: an offline clone, a mirror, a fork."
    )(function)


def bundle(function: F) -> F:
    """Add the file that has everything."""
    return click.option(
        "--from",
        "bundle",
        metavar="FILE",
        type=UserPath(exists=True, dir_okay=False),
        help="Take everything from this `patchlock bundle` file; use no network.",
    )(function)


def edited_lock(function: F) -> F:
    """Add what a lock's owner may say of it."""
    function = local_addresses(function)
    return click.option(
        "--accept-edited-lock",
        is_flag=True,
        help="Accept a lock that you edited by hand; the installation is marked as such.",
    )(function)


def local_addresses(function: F) -> F:
    """Add what lets a lock name places that only this machine has."""
    return click.option(
        "--local-addresses", is_flag=True, help="Allow a lock to refer to files and servers on this machine."
    )(function)


def needs_option(function: F) -> F:
    """Add what a person may know better about his machine."""
    return click.option(
        "--ignore-needs",
        is_flag=True,
        help="Continue even if programs, libraries or drivers are missing.",
    )(function)


def no_device_option(function: F) -> F:
    """Add that an install need not prove a device, as where an image is made for another machine."""
    return click.option("--no-device", is_flag=True, help="Do not fail if this machine has no GPU to compute on.")(
        function
    )


def choice(function: F) -> F:
    """Add what a person chooses of the optional patches."""

    def add(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
        built = context.meta.get(_FROM_SOURCE, ())
        if built and parameter.name:  # so that `_output.given` repeats these, too
            context.set_parameter_source(parameter.name, click.core.ParameterSource.COMMANDLINE)
        return (*names, *built)

    function = click.option(
        "--without",
        "left_out",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete.options,
        help="Remove what --with added.",
    )(function)
    return click.option(
        "--with",
        "added",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete.options,
        callback=add,
        help="Add an optional feature (`patchlock info APP` lists them).",
    )(function)


def from_source(function: F) -> F:
    """Add what a person wants built from source; the same as `--with NAME-from-source`."""

    def remember(context: click.Context, _: click.Parameter, names: tuple[str, ...]) -> None:
        context.meta[_FROM_SOURCE] = tuple(f"{name}-from-source" for name in names)

    return click.option(
        "--from-source",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        is_eager=True,
        callback=remember,
        help="Build this from its source instead of its wheel, where the app has a recipe.",
    )(function)


def checked_root(folder: Path | None) -> Path:
    """Name the folder of the catalogue that the user names, or of the one patchlock came with.

    Raises:
        UsageError: there is no catalogue.
    """
    from patchlock.catalogue.location import checked_root

    return checked_root(folder)


def open_catalogue(folder: Path | None) -> Catalogue:
    """Open the catalogue that the user names, or the one patchlock came with."""
    from patchlock.catalogue import reader

    return reader.find(folder, home())


def observe(root: Path) -> ObservedHost:
    """Say which machine a command is for, and on stderr where it is simulated.

    Args:
        root: the catalogue's, which knows the archs of cards.

    Raises:
        UsageError: what is simulated cannot be read, or is nothing that there is.
    """
    from patchlock.catalogue import profile_summaries
    from patchlock.hardware import host_overrides, probes

    observed = host_overrides.observe(lambda: probes.probe(home()))
    _output.report_overrides(observed)
    if observed.overrides:
        host_overrides.require_known_arch(observed, profile_summaries.cards(root))
    return observed


def simulating() -> list[str]:
    """Name the variables that are set and simulate another machine, or a fact of one."""
    return [name for name in os.environ if name.startswith(("PATCHLOCK_HOST", "PATCHLOCK_OVERRIDE_"))]


def request(
    catalogue: Path | None,
    app: str,
    profile: str | None,
    *,
    source: str | None = None,
    revision: str | None = None,
    reinstall: bool = False,
    heed: Callable[[ProfileChoice], None] | None = None,
    choice: Choice | None = None,
    failed: Mapping[str, str] = MappingProxyType({}),
) -> Request:
    """Turn the options of a command into a request, for this machine or the simulated one.

    Args:
        catalogue: its folder, or None for the one patchlock came with.
        app: its name.
        profile: its name; None chooses the one that fits best.
        source: another place of upstream.
        revision: another commit of upstream.
        reinstall: build afresh.
        heed: called with what was chosen and why, before anything else is done with it; where the machine is simulated
            or the profile is named, only if the pair can be.
        choice: of optional patches; None takes those that the installation has.
        failed: profiles that do not work on this machine, with the reason; none of them is chosen unnamed.

    Raises:
        UnknownAppError: there is no such app.
        UnknownProfileError: there is no such profile.
        NoProfileFitsError: no profile fits this machine, or the named one does not.
        CatalogueError: the app's or a profile's file has mistakes.
        UsageError: an optional patch is named that there is not.
        RefusedError: `heed` is given, the machine is simulated or the profile is named, and the catalogue says that the
            pair cannot be.
    """
    from patchlock.catalogue import optional_patches
    from patchlock.environments import generations
    from patchlock.hardware.stored_choice import StoredChoice
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import CatalogueError
    from patchlock.model.installation import Installation

    opened = open_catalogue(catalogue)
    wanted = opened.app(app)
    if profile is not None:
        opened.profile(profile)
    observed = observe(opened.root)
    try:
        found = possible(opened, wanted, profile, observed, failed)
    except CatalogueError:
        opened.read_all()  # which has every mistake, and not only those of what a choice looks at
        raise
    chosen = found.choice.chosen
    fitting = opened.profile(chosen.profile.name)
    kept = generations.chosen(Installation(folder=home() / f"{app}@{chosen.profile.name}"))
    if heed is not None:
        if found.observed.overrides or profile is not None:
            _require_possible(opened, wanted, fitting, found)
        optional_patches.choose(wanted, chosen.profile.name, kept, choice)
        heed(found)
    return Request(
        app=wanted,
        profile=fitting,
        platform=chosen.platform,
        catalogue=opened,
        home=home(),
        cache=cache(),
        source=source,
        revision=revision,
        reinstall=reinstall,
        chosen=optional_patches.choose(wanted, chosen.profile.name, kept, choice),
        machine=found,
        kept=StoredChoice(device=found.selected.variables, profiles=""),
    )


def pair_request(
    catalogue: Path | None, app: str, profile: str | None, platform: str | None, *, source: str | None = None
) -> Request:
    """Turn a pair that may be another machine's into a request: what fits this one, unless a platform is named.

    Args:
        catalogue: its folder, or None for the one patchlock came with.
        app: its name.
        profile: its name; None chooses.
        platform: as in the lock's name; None means this machine's, or the recorded one's.
        source: another place of upstream.

    Raises:
        UsageError: there is no such platform, or not exactly one profile for it.
        RefusedError: the named profile is another machine's, and the app cannot run on it.
        PatchlockError: as `request`.
    """
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import NoProfileFitsError, UsageError, nearest
    from patchlock.model.platforms import PLATFORMS

    if platform is None:
        try:
            return request(catalogue, app, profile, source=source)
        except NoProfileFitsError as error:
            if profile is None:
                raise
            raise _of_another_machine(open_catalogue(catalogue), app, profile, error) from error
    if platform not in PLATFORMS:
        raise UsageError(f'there is no platform "{platform}"', remedy=nearest(platform, PLATFORMS))
    opened = open_catalogue(catalogue)
    chosen = _profile_for(opened, profile, PLATFORMS[platform])
    return Request(
        app=opened.app(app),
        profile=chosen,
        platform=PLATFORMS[platform],
        catalogue=opened,
        home=home(),
        cache=cache(),
        source=source,
    )


def _of_another_machine(opened: Catalogue, app: str, profile: str, error: NoProfileFitsError) -> NoProfileFitsError:
    """Name the platforms that get an app on a profile which does not fit this machine.

    Raises:
        RefusedError: there is none.
    """
    from patchlock.catalogue.pairs import refusal_reason, require_possible
    from patchlock.model.errors import NoProfileFitsError

    wanted, chosen = opened.app(app), opened.profile(profile)
    possible = [one.name for one in chosen.platforms if refusal_reason(wanted, chosen, one) is None]
    if not possible:
        require_possible(wanted, chosen, chosen.platforms[0])
    return NoProfileFitsError(error.what, remedy=f"for another machine, add --platform {' or '.join(possible)}")


def _profile_for(opened: Catalogue, name: str | None, platform: Platform) -> Profile:
    from patchlock.model.errors import UsageError, nearest

    names = [name] if name is not None else opened.profile_names()
    fitting = [profile for profile in map(opened.profile, names) if platform in profile.platforms]
    chosen = [profile for profile in fitting if not profile.fits] or fitting
    if len(chosen) == 1:
        return chosen[0]
    if fitting:
        raise UsageError(
            f"{', '.join(profile.name for profile in fitting)} are all for {platform.name}",
            remedy="name one with --profile",
        )
    known = sorted({one.name for profile in map(opened.profile, names) for one in profile.platforms})
    raise UsageError(
        f"the profile {name} is not for {platform.name}" if name else f"no profile is for {platform.name}",
        remedy=nearest(platform.name, known),
    )


def possible(
    opened: Catalogue, app: App, name: str | None, observed: ObservedHost, failed: Mapping[str, str]
) -> ProfileChoice:
    """Choose a profile for an app: none that it cannot run on, or, where it can run on none, the best, which says why.

    Args:
        opened: the catalogue.
        app: of it.
        name: of the profile; None chooses.
        observed: the machine.
        failed: profiles that do not work on this machine, with the reason; none of them is chosen unnamed.

    Raises:
        NoProfileFitsError: no profile fits this machine, or the named one does not.
    """
    import re

    from patchlock.catalogue import app_summaries, pairs, profile_summaries
    from patchlock.environments import freshness
    from patchlock.hardware import profile_choice
    from patchlock.model import platforms
    from patchlock.model.choice import AppLimits
    from patchlock.model.errors import NoProfileFitsError

    platform = platforms.platform_of(observed.host)
    summaries = profile_summaries.read_summaries(opened.root)
    summary = app_summaries.read_summary(opened.root, app.name)
    limits = pairs.limits(summary, summaries, platform) if platform else AppLimits(name=app.name)
    limits = dataclasses.replace(limits, refused={**limits.refused, **failed})
    try:
        found = profile_choice.choose(opened.root, name, observed, limits)
    except NoProfileFitsError:
        if failed:
            raise
        return profile_choice.choose(opened.root, name, observed)
    chosen = found.choice.chosen
    lock = freshness.lock_file(opened.root / "lockfiles" / app.name, chosen.profile.name, chosen.platform.name)
    if lock.is_file() and not re.search(rb"^torch[ =]", lock.read_bytes(), re.MULTILINE):
        return dataclasses.replace(found, choice=found.choice.without_torch())
    return found


def _require_possible(opened: Catalogue, app: App, profile: Profile, found: ProfileChoice) -> None:
    """Stop where the catalogue says that a pair cannot be, and name the profile of the app that fits the machine.

    Only where none does, the one stands that the app's file advises: it does not know the machine.

    Raises:
        RefusedError: with the catalogue's reason.
    """
    from patchlock.catalogue.pairs import refusal_reason, require_possible
    from patchlock.model.errors import NoProfileFitsError, RefusedError

    try:
        require_possible(app, profile, found.choice.chosen.platform)
    except RefusedError as error:
        try:
            other = possible(opened, app, None, found.observed, {}).choice.chosen
        except NoProfileFitsError:
            raise error from None
        if refusal_reason(app, other.profile, other.platform) is not None:
            raise
        remedy = f"run `patchlock install {app.name} --profile {other.profile.name}`"
        raise RefusedError(error.what, where=error.where, remedy=remedy) from error


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
        as_it_is: where no catalogue is named, or that one lacks the app or the profile, take the one that the
            installation was made from, which it keeps.

    Raises:
        UsageError: no profile is named, and the app is installed on several.
        UnknownAppError: the installation was made from another catalogue, and more is asked than what it keeps.
        PatchlockError: as `request`.
    """
    from patchlock.catalogue import optional_patches
    from patchlock.environments import generations, kept_catalogue
    from patchlock.hardware import probes, selection
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import UnknownAppError
    from patchlock.model.installation import Installation

    named = profile or _installed_on(app)
    installation = Installation(folder=home() / f"{app}@{named}")
    if named is None or not installation.folder.is_dir():
        return request(catalogue, app, named, source=source, revision=revision, choice=choice)
    if ignored := simulating():
        _output.note(f"note: {' and '.join(ignored)} is ignored: {app} on {named} is installed on this machine")
    kept = kept_catalogue.root(installation) if as_it_is else None
    opened = open_catalogue(catalogue or kept)
    if kept is not None and not (app in opened.app_names() and named in opened.profile_names()):
        opened = open_catalogue(kept)
    elif app not in opened.app_names():
        raise UnknownAppError(
            f"{app} was installed from another catalogue; this one has no such app",
            where=str(opened.root),
            remedy="name that one with --catalogue, or unset PATCHLOCK_CATALOGUE for the one that patchlock came with",
        )
    wanted, found = opened.app(app), opened.profile(named)
    chosen = selection.choose([found], probes.basic(), (), named).chosen
    return Request(
        app=wanted,
        profile=found,
        platform=chosen.platform,
        catalogue=opened,
        home=home(),
        cache=cache(),
        source=source,
        revision=revision,
        chosen=optional_patches.choose(wanted, named, generations.chosen(installation), choice),
    )


def require_current(request: Request) -> Receipt:
    """Read the receipt of the generation in use.

    Raises:
        RefusedError: there is none, and the catalogue says that there can be none.
        BusyError: there is none yet.
        NotInstalledError: there is none.
    """
    from patchlock.catalogue.pairs import require_possible
    from patchlock.environments import generations
    from patchlock.hardware import on_paper
    from patchlock.model.errors import NotInstalledError

    there = request.installation
    if generations.current(there) is None:
        require_possible(request.app, request.profile, request.platform)
    try:
        return generations.require_current(there, request.app.name)
    except NotInstalledError as error:
        if request.simulated:
            error.where = on_paper.folder(request.simulated, there.folder.name)
        if request.machine and request.machine.observed.is_recorded:
            plan = f"patchlock plan {request.app.name} --profile {request.profile.name}"
            error.remedy = f"`{plan}` shows what an install would do there; for this machine, unset PATCHLOCK_HOST"
        raise


def _installed_on(app: str) -> str | None:
    from patchlock.environments import generations

    found = profiles_of(app)
    there = [one.profile for one in generations.installations(home()) if one.app == app]
    chosen = found or there  # files of the user may be all that is left
    if len(chosen) > 1:
        raise several(app, chosen)
    return chosen[0] if chosen else None


def several(app: str, profiles: Sequence[str]) -> UsageError:
    """Name all profiles of an app, also those whose install has not finished, and the whole command for one of them."""
    from patchlock.core import command_lines
    from patchlock.environments import generations
    from patchlock.model.addresses import without_secrets
    from patchlock.model.errors import UsageError

    begun = [one for one in generations.unfinished(home()) if one.app == app]
    unfinished = {one.profile: how_far(one) for one in begun}
    names = sorted({*profiles, *unfinished})
    told = " and on ".join(f"{name} ({unfinished[name]})" if name in unfinished else name for name in names)
    context = click.get_current_context()
    options = [word for one in context.command.params if not isinstance(one.type, click.File) for word in one.opts]
    given = [word.removeprefix("--") for word in options if word.startswith("--") and word != "--profile"]
    words = [*context.command_path.split(), app, "--profile", profiles[0], *_output.given(*given)]
    return UsageError(
        f"{app} is installed on {told}", remedy=f"name one: `{without_secrets(command_lines.joined(words))}`"
    )


def how_far(begun: Installation) -> str:
    """Say in a word or two how an install stands that has not finished; after a comma, what works meanwhile."""
    from patchlock.environments import generations

    ended = "failed" if generations.read_journal(begun).failure else "interrupted"
    works = ", the version in use still works" if generations.current(begun) else ""
    return f"{'being changed' if generations.is_busy(begun) else ended}{works}"


def profiles_of(app: str) -> list[str]:
    """Name the profiles on which an app is installed and can be started, sorted; not one that another stands in for."""
    from patchlock.environments import generations
    from patchlock.hardware import stored_choice

    there = {one.profile: one for one in generations.installations(home()) if one.app == app and one.pointer.is_file()}
    return [name for name, one in there.items() if stored_choice.read(one.folder).instead not in there]


def source_words(app: str) -> list[str]:
    """Repeat --source for a command that can be pasted: as it was given, or as installations of an app have it."""
    from patchlock.environments import generations

    if given := _output.given("source"):
        return given
    used = [generations.current(one) for one in generations.installations(home()) if one.app == app]
    sources = {receipt.source for receipt in used if receipt is not None}
    return ["--source", *sources] if len(sources) == 1 and sources != {""} else []


def pair_arguments(request: Request) -> str:
    """Name an installation as short as commands understand it: with its profile where there are several."""
    name = request.app.name
    return name if profiles_of(name) == [request.profile.name] else f"{name} --profile {request.profile.name}"
