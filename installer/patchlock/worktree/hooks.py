"""Git hooks that renew the patches after a pull, on request only; a hook that somebody else wrote is never touched."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from patchlock.core.atomic_files import atomic_write
from patchlock.model.errors import HookTakenError
from patchlock.worktree.move import APPLIED
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import git

_NAMES = ("post-merge", "post-checkout", "post-rewrite")
_MARK = "# Written by patchlock; `patchlock patch hooks --remove` takes it away."
_SCRIPT = """#!/bin/sh
{mark}
# It renews the patches after a pull or a checkout, and never stops git.
[ "{name}" = post-checkout ] && [ "$3" != 1 ] && exit 0
directory=$(git rev-parse --git-dir) || exit 0
[ "$(git rev-parse --absolute-git-dir)" = {git_dir} ] || exit 0
git rev-parse --quiet --verify {applied} >/dev/null || exit 0
for busy in MERGE_AUTOSTASH MERGE_HEAD rebase-merge rebase-apply; do
    if [ -e "$directory/$busy" ]; then
        echo 'patchlock: git is not done yet; when it is, run: {shown}' >&2
        exit 0
    fi
done
{command} || echo 'patchlock: the patches were not renewed; see above' >&2
exit 0
"""


def install(tree: Tree, command: Sequence[str]) -> tuple[Path, ...]:
    """Write the hooks of a clone; git runs them in each of its linked worktrees, and they do nothing in the others.

    Args:
        tree: the clone.
        command: what renews the patches of this clone, a list of words.

    Raises:
        HookTakenError: a hook of somebody else's stands there, or the hooks belong to several clones.
    """
    folder = _folder(tree)
    for name in _NAMES:
        file = folder / name
        if file.exists() and _MARK not in file.read_text(encoding="utf-8", errors="replace"):
            raise HookTakenError(
                f"the clone has its own {name} hook",
                where=str(file),
                remedy=f"add this line to it: `{shlex.join(command)}`",
            )
    folder.mkdir(parents=True, exist_ok=True)
    shown = shlex.join(command).replace("'", '"')
    git_dir = git("rev-parse", "--absolute-git-dir", repository=tree.repository).text
    words = {"git_dir": shlex.quote(git_dir), "applied": tree.ref(APPLIED)}
    for name in _NAMES:
        script = _SCRIPT.format(mark=_MARK, name=name, command=shlex.join(command), shown=shown, **words)
        atomic_write(folder / name, script, mode=0o755)
        (folder / name).chmod(0o755)
    return tuple(folder / name for name in _NAMES)


def remove(tree: Tree) -> tuple[Path, ...]:
    """Remove the hooks that we wrote, and give their names."""
    ours = []
    for name in _NAMES:
        file = _folder(tree) / name
        if file.exists() and _MARK in file.read_text(encoding="utf-8", errors="replace"):
            file.unlink()
            ours.append(file)
    return tuple(ours)


def _folder(tree: Tree) -> Path:
    common = _path(tree, git("rev-parse", "--git-common-dir", repository=tree.repository).text)
    # Our own git calls switch hooks off by this very setting; ask for what the user's git would see.
    values = git("config", "--get-all", "core.hooksPath", repository=tree.repository, allowed=(0, 1)).text.splitlines()
    others = [value for value in values if value != "/dev/null"]
    if others:
        raise HookTakenError(
            "this clone takes its hooks from a folder that is shared or tracked",
            where=others[-1],
            remedy="call `patchlock patch apply` from the hooks there",
        )
    return common / "hooks"


def _path(tree: Tree, text: str) -> Path:
    path = Path(text)
    return path if path.is_absolute() else (tree.repository / path).resolve()
