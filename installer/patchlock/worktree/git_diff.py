"""Changes as a diff that git applies, whatever encoding and line endings a file has; no clone is looked at."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from patchlock.model.patch import FileChange
from patchlock.worktree.upstream_cache import git

_WORDS = (
    "diff",
    "--no-index",
    "--no-prefix",
    "--binary",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
)


def git_diff(changes: Iterable[FileChange], directory: PurePosixPath) -> bytes:
    """Write changes as `git diff` does.

    Args:
        changes: of files below the app's folder.
        directory: that folder, from the root of the clone, where `git apply` is run.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-diff-") as name:
        root = Path(name)
        for side in ("a", "b"):
            (root / side).mkdir()
        for change in changes:
            for side, data in (("a", change.before), ("b", change.after)):
                if data is not None:
                    file = root / side / directory / change.path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(data)
                    file.chmod(0o755 if change.is_executable else 0o644)
        made = git(*_WORDS, "a", "b", repository=root, allowed=(0, 1)).stdout
    # `git diff --no-index` names a new file by its new side twice.
    return re.sub(rb'^(diff --git "?)b/', rb"\1a/", made, flags=re.MULTILINE)
