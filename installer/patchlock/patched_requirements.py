"""What upstream asks for after the patches: worked out once for a commit, the catalogue's words and our own code.

Patches search all of upstream's Python, which takes seconds for a large app, and every profile of it; of their result a
lock needs the requirement files alone. They are kept under a digest of everything that they depend on.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName

from patchlock import codemods, gathering, own_code, patching, whole_files
from patchlock.checkout import Snapshot
from patchlock.gathering import Asked, Request

_ONE_AT_A_TIME = threading.Lock()
"""Pairs are locked side by side, and those of one profile wait for the same answer."""


def read(request: Request) -> Asked:
    """Fetch the wanted commit, if need be, and give its requirement files as the patches leave them.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
        RequirementsError: a requirement file cannot be read.
        PatchError: a patch cannot do what it says.
        CatalogueError: an optional patch changes a requirement file.
    """
    snapshot = gathering.fetch(request)
    digest = _digest(request, snapshot)
    kept = request.cache / "patched-requirements" / f"{digest}.json"
    with _ONE_AT_A_TIME:
        known = _recall(kept, snapshot) if digest else None
        if known is not None:
            return known
        upstream = gathering.read_upstream(request, snapshot)
        patching.require_complete(upstream.patched, f"{request.app.name} at {snapshot.commit[:12]}")
        asked = gathering.asked(request, upstream)
        if digest:
            _keep(kept, asked)
        return asked


def _digest(request: Request, snapshot: Snapshot) -> str | None:
    """Digest all that the answer depends on; None where that cannot be told."""
    code = own_code.digest()
    app = request.app
    files = [app.origin.file, *(one.origin.file for one in app.shared)]
    texts = codemods.texts(app.patches)
    if code is None:
        return None
    return own_code.digest_of(
        [
            ("code", code.encode()),
            ("libcst", version("libcst").encode() if texts else b""),
            ("app", f"{app.name} {request.profile.name} {' '.join(request.chosen)}".encode()),
            ("commit", f"{snapshot.commit} {snapshot.directory}".encode()),
            *((file, (request.catalogue.root / file).read_bytes()) for file in files),
            *((file, text.encode()) for file, text in sorted(texts.items())),
        ]
    )


def _recall(kept: Path, snapshot: Snapshot) -> Asked | None:
    """Read what is kept; None where there is nothing, or it is damaged."""
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
        requirements, raw = (
            {PurePosixPath(path): base64.b64decode(text, validate=True) for path, text in data[part].items()}
            for part in ("requirements", "raw")
        )
        patched_by = {NormalizedName(name): tuple(map(str, ids)) for name, ids in data["patched-by"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Asked(snapshot=snapshot, requirements=requirements, raw=raw, patched_by=patched_by)


def _keep(kept: Path, asked: Asked) -> None:
    """Keep an answer; where the cache cannot be written, the next run takes as long as this one."""
    data = {
        "requirements": {str(path): base64.b64encode(one).decode() for path, one in asked.requirements.items()},
        "raw": {str(path): base64.b64encode(one).decode() for path, one in asked.raw.items()},
        "patched-by": {name: list(ids) for name, ids in asked.patched_by.items()},
    }
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write(kept, json.dumps(data, indent=1) + "\n")
