"""Git hooks that renew the patches after a pull, on request only; a hook that somebody else wrote is never touched.

Each worktree has a script of its own in its private folder. Git's hooks, which all worktrees share, only look whether
there is one: the same line may stand in a hook of somebody else's, or in one that many people share.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from patchlock.core.atomic_files import atomic_write
from patchlock.model.errors import HookTakenError, NotPatchedError
from patchlock.model.launchers import Starter
from patchlock.worktree import trees
from patchlock.worktree.move import APPLIED, applied
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import git

_NAMES = ("post-merge", "post-checkout", "post-rewrite")
_OWN = "patchlock/hook"
"""The script of a worktree, in its git directory."""
_MARK = "# Written by patchlock; `patchlock patch hooks --remove` takes it away."
_CALL = f'hook=$(git rev-parse --git-dir)/{_OWN}; [ ! -x "$hook" ] || "$hook" "$(basename "$0")" "$@" || :'
_SHARED = f"#!/bin/sh\n{_MARK}\n{_CALL}\n"
_AGAIN = "run `patchlock patch hooks` there from where it is now"
_SCRIPT = """#!/bin/sh
{mark}
# It renews the patches after a pull or a checkout, and never stops git. $1 is the hook; git's own arguments follow.
[ "$1" = post-checkout ] && [ "$4" != 1 ] && exit 0
directory=$(git rev-parse --git-dir) || exit 0
git rev-parse --quiet --verify {applied} >/dev/null || exit 0
busy=
for file in MERGE_AUTOSTASH CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply sequencer BISECT_LOG; do
    [ ! -e "$directory/$file" ] || busy=yes
done
# A merge is done once HEAD has it, though git removes the file only after the hook.
[ ! -e "$directory/MERGE_HEAD" ] || git merge-base --is-ancestor MERGE_HEAD HEAD || busy=yes
# Where the patches are in a stash, `git stash pop` takes them back, and would be refused over them. A stash of another
# commit than the one that git comes from is an older one.
[ "$1" = post-checkout ] && from=$2 || from=ORIG_HEAD
from=$(git rev-parse --quiet --verify "$from") &&
    [ "$from" = "$(git rev-parse --quiet --verify refs/stash^1)" ] && git diff --quiet HEAD && busy=yes
if [ "$busy" ]; then
    echo 'patchlock: git is not done yet; when it is, run:' {quoted} >&2
    exit 0
fi
for place in {places}; do
    if [ ! -e "$place" ]; then
        echo 'patchlock: the patches were not renewed, as it is not at' "$place" 'any more; {again}' >&2
        exit 0
    fi
done
{command} || echo 'patchlock: not every patch is renewed; see above' >&2
exit 0
"""


def install(tree: Tree, starter: Starter, arguments: Sequence[str], shown: str) -> tuple[Path, ...]:
    """Write the hooks of a clone; in its other worktrees they do nothing, until they are written there, too.

    Args:
        tree: the clone.
        starter: how patchlock is started.
        arguments: of patchlock, with which it renews the patches of this clone.
        shown: the same as a command to paste.

    Returns:
        git's hooks, which call the script of this worktree.

    Raises:
        NotPatchedError: nothing is applied there yet.
        HookTakenError: a hook of somebody else's stands there; the message has the line that is to be added to it.
    """
    if applied(tree) is None:
        raise NotPatchedError(
            "no patches are applied there yet, and the hooks only renew those that are",
            where=str(tree.root),
            remedy=f"run `{shown}`, then this again",
        )
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(starter.variables.items())]
    command = " ".join([*variables, shlex.join([starter.program, *starter.arguments, *arguments])])
    library = starter.variables.get("PYTHONPATH")
    places = [starter.anchor, *([f"{library}/patchlock/__main__.py"] if library else [])]
    script = _SCRIPT.format(
        mark=_MARK,
        applied=tree.ref(APPLIED),
        quoted=shlex.quote(shown),
        places=shlex.join(places),
        again=_AGAIN,
        command=command,
    )
    _write(trees.repository_file(tree.repository, Path(_OWN).name), script)
    folder, shared = _folder(tree)
    taken = []
    for name in _NAMES:
        text = "".join(_text(file) for file in _files(folder, name))
        if _OWN in text and _MARK not in text:  # somebody has added the line
            continue
        if shared or (text and _MARK not in text):
            taken.append(name)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / name, _SHARED)
    if taken:
        raise HookTakenError(
            "this clone takes its hooks from a folder that is shared or tracked"
            if shared
            else f"the clone has its own {', '.join(taken)} hook{'s' if len(taken) > 1 else ''}",
            where=str(folder / taken[0] if len(taken) == 1 and not shared else _files(folder, taken[0])[-1].parent),
            remedy=f"add this line to {', '.join(taken)} there: `{_CALL}`",
        )
    return tuple(folder / name for name in _NAMES)


def remove(tree: Tree) -> tuple[Path, ...]:
    """Remove what we wrote, and give its names; git's hooks stay while another worktree of the clone needs them."""
    own = trees.repository_file(tree.repository, Path(_OWN).name)
    found = [own] if own.exists() else []
    own.unlink(missing_ok=True)
    common = _common(tree)
    if any(place.exists() for place in (common / _OWN, *common.glob(f"worktrees/*/{_OWN}"))):
        return tuple(found)
    ours = [common / "hooks" / name for name in _NAMES if _MARK in _text(common / "hooks" / name)]
    for file in ours:
        file.unlink()
    return tuple(ours or found)


def _write(file: Path, script: str) -> None:
    atomic_write(file, script, mode=0o755)
    file.chmod(0o755)


def _folder(tree: Tree) -> tuple[Path, bool]:
    """Name the folder that git takes hooks from, and say whether it is another one than the clone's own."""
    own = _common(tree) / "hooks"
    # Our own git calls switch hooks off by this very setting; ask for what the user's git would see.
    words = ("config", "--type=path", "--get-all", "core.hooksPath")
    values = git(*words, repository=tree.repository, allowed=(0, 1)).text.splitlines()
    others = [value for value in values if value != "/dev/null"]
    folder = (tree.root / others[-1]).resolve() if others else own
    return folder, folder != own.resolve()


def _files(folder: Path, name: str) -> tuple[Path, ...]:
    """Name the files that git's hook may be; husky's hooks call those of the folder around them."""
    return (folder / name, *([folder.parent / name] if folder.name == "_" else []))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _common(tree: Tree) -> Path:
    path = Path(git("rev-parse", "--git-common-dir", repository=tree.repository).text)
    return path if path.is_absolute() else (tree.repository / path).resolve()
