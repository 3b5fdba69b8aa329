"""Bring an app that the catalogue does not have into the cache, and read what says what it is; changes no clone."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.specifiers import SpecifierSet

from patchlock.catalogue.proposals import documents, requirement_choice, submodules
from patchlock.catalogue.proposals.findings import Files
from patchlock.model.app import App, GitUpstream, Launch, Submodule
from patchlock.model.errors import UpstreamError
from patchlock.model.identities import CommitId
from patchlock.model.lock_rules import LockRules
from patchlock.model.origins import Origin
from patchlock.patches.import_graph import Trees
from patchlock.worktree import upstream_cache

_LARGEST = 2_000_000
"""Bytes; a larger text file is data."""
_DOCUMENTS = re.compile(r"(?i)(?:readme|licen[cs]e|copying)[^/]*")


@dataclass(frozen=True, kw_only=True)
class CandidateApp:
    """One commit of an upstream."""

    branch: str
    commit: CommitId
    date: str
    files: Files
    """Python files, requirement files, and at the root what documents the project."""
    documents: Files
    """What tells people what to type: pages, Dockerfiles, start scripts."""
    submodules: tuple[Submodule, ...]
    """Whose files are not among these: nothing here asks for them, or they cannot be had."""
    joined: tuple[PurePosixPath, ...]
    """Folders of the other submodules."""
    listed: tuple[PurePosixPath, ...] = ()
    """Every file of the commit, sorted, also those that are not read."""

    @functools.cached_property
    def trees(self) -> Trees:
        """Its Python files, each parsed once for all who ask."""
        return Trees({path: data for path, data in self.files.items() if path.suffix == ".py"})


def read(
    name: str, url: str, *, cache: Path, source: str | None, revision: str | None, more: Collection[str]
) -> CandidateApp:
    """Fetch a commit, and read its files.

    Args:
        name: how the app will be called.
        url: where upstream is.
        cache: our cache folder.
        source: another place to take upstream from, a path or a URL.
        revision: a commit or a branch; None for what the source's HEAD is.
        more: further files that are wanted.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
    """
    app = _unknown(name, url)
    snapshot = upstream_cache.fetch(app, catalogue=Path(), cache=cache, source=source, revision=revision or "HEAD")
    listed, wanted, pages, contents = _contents(snapshot, more)
    others = upstream_cache.submodules(snapshot.repository, snapshot.commit, url)
    joined = tuple(one.path for one in submodules.asked_for(others, contents))
    if joined:
        try:
            snapshot = upstream_cache.join(snapshot, dataclasses.replace(app, submodules=joined), source)
            listed, wanted, pages, contents = _contents(snapshot, more)
        except UpstreamError:  # it is told of them
            joined = ()
    return CandidateApp(
        branch=_branch(snapshot, revision),
        commit=snapshot.commit,
        date=snapshot.date,
        files={path: data for path, data in contents.items() if path in wanted and len(data) <= _LARGEST},
        submodules=tuple(one for one in others if one.path not in joined),
        joined=joined,
        documents={path: data for path, data in contents.items() if path in pages and len(data) <= _LARGEST},
        listed=tuple(sorted(listed)),
    )


def lacks(url: str, commit: CommitId, source: str | None) -> bool:
    """Tell whether a clone on this machine has branches of an address, and a commit is on none of these."""
    clone = Path(source or "").expanduser()
    if source is None or not clone.is_dir():
        return False
    listed = upstream_cache.git("config", "--get-regexp", r"^remote\..*\.url$", repository=clone, allowed=(0, 1)).text
    keys = dict(row.partition(" ")[::2] for row in listed.splitlines())
    names = [key.removeprefix("remote.").removesuffix(".url") for key, it in keys.items() if _plain(it) == _plain(url)]
    branches = [f"refs/remotes/{name}" for name in names]

    def any_of(*how: str) -> bool:
        return bool(upstream_cache.git("for-each-ref", "--count=1", *how, *branches, repository=clone).text)

    return bool(branches) and any_of() and not any_of("--contains", commit)


def _plain(address: str) -> str:
    """Write an address as others may have written it."""
    return re.sub(r"(?:\.git)?/*$", "", re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address)).lower()


def _contents(
    snapshot: upstream_cache.Snapshot, more: Collection[str]
) -> tuple[Collection[PurePosixPath], set[PurePosixPath], set[PurePosixPath], Files]:
    """Give all files, those that are wanted, those that document the project, and the bytes of these two."""
    listed = upstream_cache.files(snapshot.repository, snapshot.tree, PurePosixPath())
    wanted = {path for path in listed if _is_wanted(path) or str(path) in more}
    pages = {path for path in listed if documents.is_document(path)}
    return listed.keys(), wanted, pages, upstream_cache.read(snapshot, wanted, optional=pages)


def _is_wanted(path: PurePosixPath) -> bool:
    at_root = len(path.parts) == 1 and bool(_DOCUMENTS.fullmatch(path.name))
    is_text = len(path.parts) == 1 and path.suffix in {".txt", ".in"}
    return path.suffix == ".py" or at_root or is_text or requirement_choice.is_candidate(path)


def _branch(snapshot: upstream_cache.Snapshot, revision: str | None) -> str:
    """Name the branch that a commit is on: the wanted one, or one that ends there, main and master before others."""
    for how in ("--points-at", "--contains"):
        listed = upstream_cache.git(
            *("for-each-ref", "--format=%(refname:lstrip=3)", how, snapshot.commit, "refs/remotes/origin"),
            repository=snapshot.repository,
        )
        names = listed.text.split()
        preferred = [name for name in (revision, "main", "master") if name in names]
        if names:
            return preferred[0] if preferred and preferred[0] else names[0]
    return "main"


def _unknown(name: str, url: str) -> App:
    """Make an app of which nothing is known but where it is."""
    return App(
        name=name,
        title=name,
        license="",
        source=url,
        upstream=GitUpstream(url=url, commit=CommitId("")),
        branch="main",
        directory=PurePosixPath(),
        requirement_files=(),
        python=SpecifierSet(),
        rules=LockRules(),
        patches=(),
        launch=Launch(command=(), environment={}, says="", companion_apps={}),
        checks=(),
        refusals=(),
        origin=Origin(file="", line=1),
    )
