"""Read what tables and pages say of an app, and no more: none of its patches, so that nothing of them is imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from packaging.specifiers import SpecifierSet

from patchlock.catalogue import _toml_files
from patchlock.catalogue.table_reader import Table, specifiers
from patchlock.model.errors import CatalogueError, Problem, UnknownAppError, nearest
from patchlock.model.origins import Origin
from patchlock.model.refusals import RefusedPair

if TYPE_CHECKING:
    from patchlock.model.fits import ProfileSummary
    from patchlock.model.models import Model
    from patchlock.model.needs import MemoryNeed, Need, Resource
    from patchlock.model.profile import Profile

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class OptionSummary:
    """An optional patch as a page shows it."""

    name: str
    gives: str
    """What it brings and what it costs; a clause."""
    helps: tuple[str, ...]
    """Compute kernels whose failure recommends it."""
    patches: tuple[str, ...]
    """Ids."""
    profiles: tuple[str, ...]
    """Empty: all."""


@dataclass(frozen=True, kw_only=True)
class AppSummary:
    """What is known about an app without its patches."""

    name: str
    title: str
    license: str
    source: str
    url: str
    """Of upstream's repository; "" for an example that lies in the catalogue."""
    branch: str
    commit: str
    python: SpecifierSet
    says: str
    """What a person does after the start, or ""."""
    shared: tuple[str, ...]
    """Names of the shared sets of patches that it takes."""
    without: tuple[str, ...]
    """Ids of patches of those that it leaves out."""
    options: tuple[OptionSummary, ...]
    builds: tuple[OptionSummary, ...]
    """What may be built from source, of those."""
    refusals: tuple[RefusedPair, ...]
    trials: tuple[RefusedPair, ...]
    on_processor: Mapping[str, str]
    """Profile on which all its models compute on the processor, whatever the machine has → why, a clause."""
    origin: Origin
    """The file; looking for lines would take as long as all the rest."""


@dataclass(frozen=True, kw_only=True)
class AppResources:
    """What an app takes of a machine."""

    memory: tuple[MemoryNeed, ...]
    models: tuple[Model, ...]
    needs: tuple[Need, ...]


def resource(root: Path, name: str) -> Resource:
    """Read what a need is about.

    Raises:
        CatalogueError: its file has mistakes.
    """
    from patchlock.catalogue import _needs

    return _toml_files.read(root, f"profiles/needs/{name}.toml", lambda table: _needs.resource(table, name))


def app_names(root: Path) -> tuple[str, ...]:
    """List the apps, sorted."""
    return tuple(sorted(path.parent.name for path in root.glob("patches/*/app.toml")))


def is_locked(root: Path, profiles: Iterable[ProfileSummary | Profile]) -> Callable[[str, str, str], bool]:
    """Give what says of names of an app, a profile and a platform whether there is a lock, as `pair_table` asks it."""
    several = {profile.name for profile in profiles if len(profile.platforms) > 1}

    def is_there(app: str, profile: str, platform: str) -> bool:
        name = f"{profile}.{platform}.txt" if profile in several else f"{profile}.txt"
        return (root / "lockfiles" / app / name).is_file()

    return is_there


def read_summaries(root: Path, *, brief: bool = False) -> tuple[AppSummary, ...]:
    """Read the summaries of all apps, sorted by name.

    Args:
        root: the catalogue's.
        brief: leave out options, builds and what computes on the processor, which take a third of the time.

    Raises:
        CatalogueError: files have mistakes in what is looked at; carries those of all files.
    """
    found: list[AppSummary] = []
    problems: list[Problem] = []
    for name in app_names(root):
        try:
            found.append(_read(root, name, lambda _table, _profiles: None, brief=brief)[0])
        except CatalogueError as error:
            problems += error.problems
    if problems:
        raise CatalogueError(problems)
    return tuple(found)


def read_summary(root: Path, name: str) -> AppSummary:
    """Read the summary of one app.

    Raises:
        UnknownAppError: there is none of that name.
        CatalogueError: what is looked at has mistakes; carries all of them.
    """
    return _read(root, name, lambda _table, _profiles: None)[0]


def read_with_resources(root: Path, name: str) -> tuple[AppSummary, AppResources]:
    """Read the summary of one app, and what it takes of a machine; raises what `read_summary` does."""
    from patchlock.catalogue import _models, _needs

    return _read(
        root,
        name,
        lambda table, profiles: AppResources(
            memory=_needs.memory(table, profiles),
            models=_models.models(table, profiles),
            needs=_needs.needs(table, profiles, None),
        ),
    )


def _read(
    root: Path, name: str, more: Callable[[Table, tuple[str, ...]], T], *, brief: bool = False
) -> tuple[AppSummary, T]:
    """Read the summary of one app, and more from the same file, which takes a while to parse."""
    if name not in (names := app_names(root)):
        raise UnknownAppError(f'there is no app "{name}"', remedy=nearest(name, names))
    profiles = tuple(path.stem for path in root.glob("profiles/*.toml"))
    file = f"patches/{name}/app.toml"
    read, rest = _toml_files.read(
        root, file, lambda t: (_summary(t, name, profiles, root, brief), more(t, profiles)), whole=False
    )
    if brief:
        return read, rest
    options = list(read.options)
    for shared in read.shared:
        if (root / (file := f"patches/shared/{shared}.toml")).is_file():
            found = _toml_files.read(root, file, lambda t, shared=shared: _options(t, f"{shared}-"), whole=False)  # type: ignore[misc]
            options = [*found, *options]
    options = [
        dataclasses.replace(one, patches=left)
        for one in options
        if (left := tuple(patch for patch in one.patches if patch not in read.without))
    ]
    return dataclasses.replace(read, options=(*_joined(options), *read.builds)), rest


def _summary(root: Table, name: str, profiles: tuple[str, ...], catalogue: Path, brief: bool) -> AppSummary:
    table, upstream = root.table("app"), root.table("upstream")
    origin = Origin(file=f"patches/{name}/app.toml", line=1)
    return AppSummary(
        name=name,
        title=table.text("title"),
        license=table.text("license"),
        source=table.text("source"),
        url=upstream.text("url", ""),
        branch=upstream.text("branch", "main"),
        commit=upstream.text("commit"),
        python=table.parse("python", specifiers, SpecifierSet()),
        says=root.table("launch").text("says", ""),
        shared=table.texts("shared", ()),
        without=table.texts("without", ()),
        options=() if brief else _options(root),
        builds=() if brief else _builds(root),
        refusals=_pairs(root, "refused", profiles, origin),
        trials=_pairs(root, "trial", profiles, origin),
        on_processor={} if brief else _on_processor(root, catalogue),
        origin=origin,
    )


def _pairs(root: Table, key: str, profiles: tuple[str, ...], origin: Origin) -> tuple[RefusedPair, ...]:
    """Read tables of pairs; their lines are not looked for, which takes a while."""
    return tuple(table.read(RefusedPair, {"profiles": profiles}, origin=origin) for table in root.tables(key))


def _on_processor(root: Table, catalogue: Path) -> dict[str, str]:
    """Find the profiles on which every check of the app's models is computed on the processor."""
    checks = [table for table in root.tables("check") if table.text("kind", "") in _OF_MODELS]
    profiles = [table.texts("on-the-processor", ()) for table in checks]
    if not any(profiles):
        return {}
    from patchlock.catalogue import profile_summaries  # most apps compute where the profile does

    needed = {kernel for table in checks for part in table.tables("parts") for kernel in part.texts("needs", ())}
    found = {}
    for name in profiles[0]:
        if not all(name in names for names in profiles):
            continue
        file = f"profiles/expectations/{profile_summaries.read_summary(catalogue, name).back_end}.toml"
        known = _toml_files.read(catalogue, file, _failing, whole=False) if (catalogue / file).is_file() else {}
        lacks = {kernel: why for kernel, why in known.items() if kernel in needed}
        whys = "; ".join(dict.fromkeys(lacks.values()))
        found[name] = f"it needs {' and '.join(lacks)}, but {whys}" if lacks else "its models are computed there"
    return found


def _failing(root: Table) -> dict[str, str]:
    """Name the kernels that are known to fail on a back end, with why."""
    return {table.text("kernel"): table.text("why") for table in root.tables("expect")}


_OF_MODELS = ("layers", "sound")
"""Kinds of checks that compute with an app's own models."""


def _options(root: Table, prefix: str = "") -> tuple[OptionSummary, ...]:
    return tuple(
        OptionSummary(
            name=table.text("optional"),
            gives=table.text("gives", ""),
            helps=table.texts("helps", ()),
            patches=(prefix + table.text("id"),),
            profiles=table.texts("profiles", ()),
        )
        for table in root.tables("patch")
        if table.has("optional")
    )


def _builds(root: Table) -> tuple[OptionSummary, ...]:
    tables = [table for table in root.tables("recipe") if table.has("archive")]
    if not tables:
        return ()
    from patchlock.model.recipes import SourceArchive, cost  # most apps have none

    groups: dict[str, list[tuple[SourceArchive, tuple[str, ...]]]] = {}
    for table in tables:
        archive = table.within("archive", SourceArchive)
        groups.setdefault(archive.option, []).append((archive, table.texts("profiles", ())))
    return tuple(
        OptionSummary(
            name=name,
            gives=cost([archive for archive, _ in group]),
            helps=(),
            patches=(),
            profiles=tuple(dict.fromkeys(profile for _, profiles in group for profile in profiles)),
        )
        for name, group in groups.items()
    )


def options_of(app: AppSummary, profile: str) -> tuple[OptionSummary, ...]:
    """List what an app lets a person choose on a profile, in the order of its file."""
    return tuple(one for one in app.options if not one.profiles or profile in one.profiles)


def _joined(options: list[OptionSummary]) -> tuple[OptionSummary, ...]:
    """Make one of all that share a name."""
    groups: dict[str, list[OptionSummary]] = {}
    for one in options:
        groups.setdefault(one.name, []).append(one)
    return tuple(_one_option(group) for group in groups.values())


def _one_option(group: list[OptionSummary]) -> OptionSummary:
    everywhere = any(not one.profiles for one in group)
    return OptionSummary(
        name=group[0].name,
        gives="; ".join(one.gives for one in group if one.gives),
        helps=tuple(dict.fromkeys(kernel for one in group for kernel in one.helps)),
        patches=tuple(patch for one in group for patch in one.patches),
        profiles=() if everywhere else tuple(dict.fromkeys(name for one in group for name in one.profiles)),
    )
