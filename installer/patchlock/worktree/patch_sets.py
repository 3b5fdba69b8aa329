"""The patches that any clone can be given: an app's, or those of one file."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from patchlock import __version__
from patchlock.catalogue import codemods
from patchlock.catalogue import reader as catalogue_files
from patchlock.catalogue.reader import Catalogue
from patchlock.model.digests import inputs_digest
from patchlock.model.errors import UsageError
from patchlock.patches import engine
from patchlock.worktree.upstream_files import PatchSet


def of_app(catalogue: Catalogue, app: str, profile: str) -> PatchSet:
    """Gather the patches of an app for a profile.

    Raises:
        UnknownAppError: there is no such app.
        CatalogueError: the app's file has mistakes.
    """
    from patchlock.worktree.upstream_files import PatchSet

    found = catalogue.app(app)
    files = {"app": found.origin.file, **{one.name: one.origin.file for one in found.shared}}
    texts = {name: (catalogue.root / file).read_bytes() for name, file in files.items()}
    return PatchSet(
        name=app,
        profile=profile,
        patches=engine.for_profile(found.patches, profile),
        digest=inputs_digest({**codemods.texts(found.patches), **texts, "patchlock": __version__, "profile": profile}),
        directory=found.directory,
        seen=found.upstream.commit,
    )


def of_file(file: Path) -> PatchSet:
    """Gather the patches of a file of nothing but patches.

    Raises:
        CatalogueError: the file has mistakes.
        UsageError: it has no patches.
    """
    from patchlock.worktree.upstream_files import PatchSet

    patches = catalogue_files.patch_file(file)
    if not patches:
        raise UsageError("the file has no [[patch]]", where=str(file), remedy="`patchlock patch new` writes one")
    return PatchSet(
        name=file.stem,
        profile="",
        patches=patches,
        digest=inputs_digest({**codemods.texts(patches), "patchlock": __version__, "file": file.read_bytes()}),
        directory=PurePosixPath(),
        seen=None,
    )
