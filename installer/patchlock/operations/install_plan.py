"""What an install will do, worked out before anything is touched; writes nothing but the cache."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchlock.catalogue.pairs import require_possible
from patchlock.environments import freshness, generations
from patchlock.environments.builds import in_tree
from patchlock.environments.generations import Receipt
from patchlock.locks.lock_request import Request, read_sealed_lock, read_upstream, require_fresh
from patchlock.model.app import App
from patchlock.model.digests import sha256
from patchlock.model.fits import Platform
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock
from patchlock.model.patch import Patched
from patchlock.model.profile import Profile
from patchlock.operations.missing_imports import missing_imports
from patchlock.patches.import_graph import ReachedImport
from patchlock.worktree import clone


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that an install needs to know before it touches anything."""

    app: App
    profile: Profile
    platform: Platform
    commit: CommitId
    patched: Patched
    lock: Lock
    lock_digest: Sha256
    """Of its file."""
    inputs: Sha256
    """Digest of all that the generation would be made from."""
    missing: tuple[ReachedImport, ...]
    """What the app's program imports as soon as it starts, and that certainly is in no package of the lock."""
    newer_files: str
    """That files of the catalogue are newer than the lock, which still holds, a sentence; or ""."""


def plan(request: Request) -> Plan:
    """Work out what an install would do; writes nothing but the cache.

    Raises:
        RefusedError: the catalogue says that the pair cannot be.
        LockMissingError: there is no lock.
        LockFormatError: the lock was changed after it was made.
        LockStaleError: the lock was made from something else.
        PatchError: a patch cannot do what it says.
        UpstreamError: the clone that upstream is taken from lacks files of it.
    """
    require_possible(request.app, request.profile, request.platform)
    lock, data = read_sealed_lock(request)
    upstream = read_upstream(request)
    clone.require_complete(request.installation.source, upstream.snapshot)
    newer_files = require_fresh(request, lock, upstream)
    return Plan(
        app=request.app,
        profile=request.profile,
        platform=request.platform,
        commit=upstream.snapshot.commit,
        patched=upstream.patched,
        lock=lock,
        lock_digest=sha256(data),
        inputs=inputs_digest(request, data, upstream.snapshot.commit),
        missing=missing_imports(request, upstream, lock),
        newer_files=newer_files,
    )


def built_here(request: Request, lock: Lock) -> tuple[str, ...]:
    """Name what an install builds from source, unless it has kept the result of an earlier one."""
    sdists = tuple(package.name for package in lock.packages if package.why.endswith("sdist"))
    return (*sdists, *(build.id for build in in_tree.in_tree_builds(request)))


def inputs_digest(request: Request, lock: bytes, commit: CommitId) -> Sha256:
    """Digest all that a generation is made from; equal inputs need no second install.

    Args:
        request: the app, the profile, the catalogue and the optional patches.
        lock: bytes of the lock.
        commit: of upstream; only the commit counts, not the branch or the tag by which it was asked for.
    """
    app = request.app
    another = "" if commit == app.upstream.commit else commit
    shared = [one.name for one in app.shared]
    root, profile = request.catalogue.root, request.profile.name
    return Sha256(freshness.generation_digest(root, app.name, profile, lock, another, shared, request.chosen))


def up_to_date(request: Request) -> Receipt | None:
    """Give the receipt of the generation in use, if that is exactly what is asked for: no git, no uv, no network."""
    revision = request.revision or ""
    if request.reinstall or not re.fullmatch(r"([0-9a-f]{40})?", revision):  # what a branch means, only upstream knows
        return None
    found = freshness.up_to_date_generation(
        request.installation.folder,
        request.catalogue.root,
        request.app.name,
        request.profile.name,
        revision="" if revision == request.app.upstream.commit else revision,
    )
    receipt = generations.read_receipt(generations.generation(request.installation, found)) if found else None
    return receipt if receipt is not None and receipt.chosen == request.chosen else None
