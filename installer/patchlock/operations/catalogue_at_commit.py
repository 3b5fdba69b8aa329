"""Read the catalogue as a commit of its own repository has it; changes nothing."""

from __future__ import annotations

from pathlib import Path

from patchlock.model.errors import CommandFailedError, UsageError
from patchlock.model.identities import CommitId
from patchlock.worktree.upstream_cache import git


def commit_of(root: Path, revision: str) -> CommitId:
    """Name the commit of the catalogue's repository that a revision means.

    Raises:
        UsageError: there is none.
    """
    try:
        wanted = ("--end-of-options", f"{revision}^{{commit}}")
        return CommitId(git("rev-parse", "--verify", "--quiet", *wanted, repository=root).text)
    except CommandFailedError as error:
        raise UsageError(
            f'"{revision}" is not a commit of the catalogue\'s repository',
            where=str(root),
            remedy="name a commit, branch or tag that `git log` knows there",
        ) from error


def read(root: Path, commit: CommitId, file: str) -> str | None:
    """Read a file of the catalogue as a commit has it, or None where it has none.

    Args:
        root: of the catalogue, which may be a folder of the repository.
        commit: of that repository.
        file: a POSIX path from the root.
    """
    if not git("ls-tree", "--name-only", commit, "--", file, repository=root).text:
        return None
    return git("show", f"{commit}:./{file}", repository=root).stdout.decode("utf-8", errors="replace")


def changed(root: Path, commit: CommitId) -> tuple[str, ...]:
    """List the files of the catalogue that are not as a commit has them, by POSIX path from its root, sorted."""
    tracked = git("diff", "--name-only", "-z", "--relative", "--no-renames", commit, "--", ".", repository=root)
    made = git("ls-files", "-z", "--others", "--exclude-standard", "--", ".", repository=root)
    return tuple(sorted({name for name in f"{tracked.text}\0{made.text}".split("\0") if name}))
