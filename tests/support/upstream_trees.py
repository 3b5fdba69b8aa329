"""The files of an app's upstream at the pinned commit, from the clones that PATCHLOCK_UPSTREAMS names, as they are and patched."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import GitUpstream
from patchlock.patches import engine, targets

CLONES = os.environ.get("PATCHLOCK_UPSTREAMS", "")
"""Read here: the guards of each test take the variable away."""
CATALOGUE = Catalogue(root=ROOT)
_KINDS = {".css", ".json", ".onnx", ".py", ".pyx", ".sh", ".toml", ".txt", ".bat"}


@functools.cache
def upstream(name: str) -> dict[PurePosixPath, bytes]:
    """Read the source files, and the models in ONNX, of an app's upstream; skips the test where there is no clone."""
    from histories.repository import Repository, find

    upstream = CATALOGUE.app(name).upstream
    assert isinstance(upstream, GitUpstream)
    clone = find(Path(CLONES), upstream.url.removeprefix("https://github.com/").removesuffix(".git"))
    if clone is None:
        pytest.skip(f"no clone of {upstream.url}")
    with Repository(clone) as repository:
        tree = repository.run("rev-parse", f"{upstream.commit}^{{tree}}").strip()
        files = repository.files(tree, lambda path, _: path.suffix in _KINDS)
        read = {path: repository.read(id_) for path, id_ in files.items()}
    return {path: data for path, data in read.items() if data is not None}


def patched(name: str, profile: str) -> dict[PurePosixPath, bytes]:
    """Give the same files with all patches of a profile."""
    contents = upstream(name)
    patches = engine.for_profile(CATALOGUE.app(name).patches, profile)
    done = engine.apply(patches, {path: contents[path] for path in targets.candidates(patches, contents)})
    engine.require_complete(done, name)
    return {**contents, **{change.path: change.after for change in done.changes}}


def write(folder: Path, contents: Mapping[PurePosixPath, bytes]) -> None:
    """Write files below a folder."""
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
