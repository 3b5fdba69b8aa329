"""The patches that any clone can be given: an app's, or those of one file."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from patchlock import __version__
from patchlock.catalogue import codemods, location, optional_patches
from patchlock.catalogue import reader as catalogue_files
from patchlock.catalogue.optional_patches import Choice
from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import GitUpstream
from patchlock.model.digests import inputs_digest
from patchlock.model.errors import UpstreamError, UsageError, similar
from patchlock.model.patch import Patch
from patchlock.patches import engine
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of, git
from patchlock.worktree.upstream_files import PatchSet


def of_app(
    catalogue: Catalogue, app: str, profile: str, kept: Iterable[str] = (), choice: Choice | None = None
) -> PatchSet:
    """Gather the patches of an app for a profile.

    Args:
        catalogue: where the app is.
        app: its name.
        profile: its name.
        kept: names of the optional patches that the tree has.
        choice: what a person says; ids in it are left to `without`.

    Raises:
        UnknownAppError: there is no such app.
        CatalogueError: the app's file has mistakes.
    """
    found = catalogue.app(app)
    files = {"app": found.origin.file, **{one.name: one.origin.file for one in found.shared}}
    texts = {name: (catalogue.root / file).read_bytes() for name, file in files.items()}
    said = choice or Choice()
    options = {option.name for option in optional_patches.of_patches(found, profile)}
    chosen = tuple(sorted((set(kept) | set(said.added)) & options - set(said.left_out)))
    return PatchSet(
        name=app,
        profile=profile,
        patches=engine.for_profile(found.patches, profile, chosen),
        digest=inputs_digest(
            {
                **codemods.texts(found.patches),
                **texts,
                "patchlock": __version__,
                "profile": " ".join((profile, *chosen)),
            }
        ),
        directory=found.directory,
        seen=found.upstream.commit,
        starts=_started(found.launch.command),
        catalogue=location.patches_digest(catalogue.root, app, profile),
        origin=str(catalogue.root) if catalogue.root != location.catalogue_root(None) else "",
        options=tuple(sorted(options)),
        chosen=chosen,
        url=found.upstream.url if isinstance(found.upstream, GitUpstream) else "",
        branch=found.branch,
        others=_others(found.patches, profile),
    )


def _others(patches: Sequence[Patch], profile: str) -> tuple[tuple[str, tuple[Patch, ...]], ...]:
    """Give what other profiles want, each set of patches once, under the first of their names."""
    names = [
        profile,
        *(name for name in sorted({one for patch in patches for one in patch.profiles}) if name != profile),
    ]
    found = {tuple(patch.id for patch in engine.for_profile(patches, name)): name for name in reversed(names)}
    wanted = [(name, engine.for_profile(patches, name)) for name in found.values() if name != profile]
    return tuple(sorted(wanted, key=lambda one: one[0]))


def require_clone_of(tree: Tree, catalogue: Catalogue, app: str) -> None:
    """Refuse a clone of another app's upstream, whose files may look alike; a fork has the commit that is known.

    Raises:
        UpstreamError: the clone came from another app of the catalogue.
    """
    upstream = catalogue.app(app).upstream
    url = (
        git("config", "--get", "remote.origin.url", repository=tree.root, allowed=(0, 1)).text if tree.is_clone else ""
    )
    place = _repository(url)
    if not place or commit_of(tree.repository, upstream.commit) is not None:
        return
    urls = {name: _url(catalogue.root / "patches" / name / "app.toml") for name in catalogue.app_names()}
    others = [name for name, other in urls.items() if _repository(other) == place and name != app]
    if others and _repository(urls[app]) != place:
        raise UpstreamError(
            f"this is a clone of {place}, not of {app}",
            where=str(tree.root),
            remedy=f"nothing was changed; name {others[0]} instead of {app}, or another folder: --source FOLDER",
        )


def _repository(url: str) -> str:
    """Give owner and name of a repository, "" for an address that has none."""
    found = re.search(r"://[^/]+/(?:.*/)?([^/]+/[^/]+?)(?:\.git)?/?$", url) or re.search(
        r"^[^/:]+:([^/]+/[^/]+?)(?:\.git)?/?$", url
    )
    return found[1].lower() if found else ""


def _url(file: Path) -> str:
    """Read an app's upstream, whatever mistakes its file has otherwise."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))["upstream"]["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def _started(command: Sequence[str]) -> str:
    """Name the file that a command runs, "" where it is not Python that runs one."""
    match command:
        case ("python", "-m", module, *_):
            return f"{module.replace('.', '/')}.py"
        case ("python", file, *_):
            return file
    return ""


def of_file(file: Path, home: Path | None = None) -> PatchSet:
    """Gather the patches of a file of nothing but patches.

    Args:
        file: its path.
        home: see `catalogue.agreement.is_trusted`.

    Raises:
        CatalogueError: the file has mistakes.
        UsageError: it has no patches.
    """
    patches = catalogue_files.patch_file(file, home)
    if not patches:
        raise UsageError("the file has no [[patch]]", where=str(file), remedy="`patchlock patch new` writes one")
    return PatchSet(
        name=file.stem,
        profile="",
        patches=patches,
        digest=inputs_digest({**codemods.texts(patches), "patchlock": __version__, "file": file.read_bytes()}),
        directory=PurePosixPath(),
        seen=None,
        origin=str(file.resolve()),
    )


def without(wanted: PatchSet, kept: Iterable[str], choice: Choice) -> PatchSet:
    """Leave patches out that a person does not want.

    Args:
        wanted: all patches.
        kept: ids that he left out of this tree before.
        choice: ids that he wants again, and those that he does not want any more.

    Raises:
        UsageError: an id is unknown, or is both wanted and left out.
    """
    options = set(wanted.options)
    before, added, left_out = set(kept), set(choice.added) - options, set(choice.left_out) - options
    known = {patch.id for patch in wanted.patches}
    for name in sorted((added | left_out) - known - before):
        on = f" on {wanted.profile}" if wanted.profile else ""
        remedy = similar(name, known | options) or "`patchlock patch status` names them"
        raise UsageError(f'{wanted.name} has no patch "{name}"{on}', remedy=remedy)
    if both := added & left_out:
        raise UsageError(f'"{min(both)}" is asked for and left out', remedy="give one of --with and --without")
    skipped = tuple(sorted((before | left_out) - added))
    if not skipped:
        return wanted
    digest = inputs_digest({"patches": wanted.digest, "without": " ".join(skipped)})
    return dataclasses.replace(wanted, skipped=skipped, digest=digest)
