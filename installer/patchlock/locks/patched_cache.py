"""What the patches make of upstream: worked out once for a commit, the catalogue's words and our own code.

Patches search all of upstream's Python, which takes seconds for a large app, and every profile and every install of it.
Their result is kept under a digest of everything that it depends on.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from patchlock.catalogue import codemods
from patchlock.core import atomic_files, code_digest
from patchlock.locks.lock_request import Request, Upstream, fetch, read_upstream
from patchlock.model.patch import FileChange, Outcome, OutcomeKind, Patched, Site
from patchlock.patches import engine
from patchlock.worktree.upstream_cache import Snapshot

_ONE_AT_A_TIME = threading.Lock()
"""Pairs are locked side by side, and those of one profile wait for the same answer."""


def read(request: Request, fetched: Snapshot | None = None) -> Upstream:
    """Fetch the wanted commit, if need be, and apply the patches to its files in memory.

    Args:
        request: the pair.
        fetched: the commit, where `locks.lock_request.fetch` was called already.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
        RequirementsError: a requirement file cannot be read.
        PatchError: a patch cannot do what it says.
        CatalogueError: an optional patch changes a requirement file.
    """
    snapshot = fetched or fetch(request)
    digest = _digest(request, snapshot)
    kept = request.cache / "patched" / f"{digest}.json"
    with _ONE_AT_A_TIME:
        known = _recall(kept, snapshot) if digest else None
        if known is not None:
            return known
        upstream = read_upstream(request, snapshot)
        engine.require_complete(upstream.patched, f"{request.app.name} at {snapshot.commit[:12]}")
        if digest:
            _keep(kept, upstream)
        return upstream


def _digest(request: Request, snapshot: Snapshot) -> str | None:
    """Digest all that the answer depends on; None where that cannot be told."""
    code = code_digest.digest()
    if code is None:
        return None
    app = request.app
    files = [app.origin.file, *(one.origin.file for one in app.shared)]
    texts = codemods.texts(app.patches)
    return code_digest.digest_of(
        [
            ("code", code.encode()),
            ("libcst", _libcst() if texts else b""),
            ("app", f"{app.name} {request.profile.name} {' '.join(request.chosen)}".encode()),
            ("commit", f"{snapshot.commit} {snapshot.directory}".encode()),
            *((file, (request.catalogue.root / file).read_bytes()) for file in files),
            *((file, text.encode()) for file, text in sorted(texts.items())),
        ]
    )


def _libcst() -> bytes:
    from importlib.metadata import version

    return version("libcst").encode()


def _recall(kept: Path, snapshot: Snapshot) -> Upstream | None:
    """Read what is kept; None where there is nothing, or it is damaged."""
    try:
        digest, _, text = kept.read_bytes().partition(b"\n")
        if digest.decode("ascii") != hashlib.sha256(text).hexdigest():
            return None
        data = json.loads(text)
        return Upstream(
            snapshot=snapshot,
            requirements=_files(data["requirements"]),
            raw=_files(data["raw"]),
            patched=Patched(
                changes=tuple(
                    FileChange(
                        path=PurePosixPath(path),
                        before=None if before is None else base64.b64decode(before),
                        after=base64.b64decode(after),
                        is_executable=is_executable,
                    )
                    for path, before, after, is_executable in data["changes"]
                ),
                outcomes=tuple(
                    Outcome(
                        patch=patch,
                        op=op,
                        kind=OutcomeKind(kind),
                        path=None if path is None else PurePosixPath(path),
                        sites=tuple(Site(line=line, text=words) for line, words in sites),
                        detail=detail,
                    )
                    for patch, op, kind, path, sites, detail in data["outcomes"]
                ),
            ),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _files(kept: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    return {PurePosixPath(path): base64.b64decode(text) for path, text in kept.items()}


def _keep(kept: Path, upstream: Upstream) -> None:
    """Keep an answer; where the cache cannot be written, the next run takes as long as this one."""
    data: dict[str, Any] = {
        "requirements": {str(path): _text(one) for path, one in upstream.requirements.items()},
        "raw": {str(path): _text(one) for path, one in upstream.raw.items()},
        "changes": [
            (str(one.path), None if one.before is None else _text(one.before), _text(one.after), one.is_executable)
            for one in upstream.patched.changes
        ],
        "outcomes": [
            (
                *(one.patch, one.op, one.kind.value, None if one.path is None else str(one.path)),
                *([(site.line, site.text) for site in one.sites], one.detail),
            )
            for one in upstream.patched.outcomes
        ],
    }
    text = json.dumps(data, indent=1)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.atomic_write(kept, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
