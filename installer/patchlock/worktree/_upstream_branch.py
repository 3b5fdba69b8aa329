"""Fetch the branch of upstream's that a clone's own follows; changes nothing but what git knows of the remote."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patchlock.core import command_lines
from patchlock.model.errors import UpstreamError
from patchlock.model.identities import CommitId
from patchlock.worktree import move, trees, upstream_cache
from patchlock.worktree.trees import Tree
from patchlock.worktree.upstream_cache import commit_of, git


@contextmanager
def fetched(tree: Tree, cache: Path) -> Iterator[CommitId | None]:
    """Fetch the branch of upstream's that the user's follows, and give its commit; None where he has it already.

    Where what is done with it fails, the remote branch goes back to what it was.

    Raises:
        UpstreamError: it follows none, or it has commits of its own.
        GitFirstError: a merge or the like of the user's is not done; nothing was changed.
    """
    repository = tree.repository
    clone = f"git -C {command_lines.quoted(str(tree.root))}"
    if (named := trees.object_format(repository)) != "sha1":
        raise UpstreamError(
            f"the clone names its objects by {named}, and patchlock's cache by sha1, so nothing was fetched",
            where=str(tree.root),
            remedy=f"fetch with `{clone} pull --rebase --autostash`, then renew the patches with "
            f"`patchlock patch apply --source {command_lines.quoted(str(tree.root))}`",
        )
    move.require_git_done(tree)
    branch = git("symbolic-ref", "--quiet", "--short", "HEAD", repository=repository, allowed=(0, 1)).text
    remote, merge = (_configured(tree, f"branch.{branch}.{key}") for key in ("remote", "merge"))
    url = _configured(tree, f"remote.{remote}.url") if remote else ""
    if not url or not merge.startswith("refs/heads/"):
        raise UpstreamError(
            "the clone is on no branch that follows one of upstream",
            where=str(tree.root),
            remedy=f"check out upstream's branch: `{clone} {_switch_to_upstreams(tree)}`",
        )
    place = url if not url.startswith(".") else str(tree.root / url)
    theirs = merge.removeprefix("refs/heads/")
    ref = f"refs/remotes/{remote}/{theirs}"
    head, known = (commit_of(repository, name) for name in ("HEAD", ref))
    with trees.refs_kept(repository, ref):
        newest = upstream_cache.fetch_branch(place, theirs, into=repository, ref=ref, cache=cache)
        if head is not None and trees.is_ancestor(repository, newest, head):
            yield None
            return
        # Upstream may have rewritten its branch: the user's has no commits of its own where the old one held them all.
        tips = (newest, known, _fork_point(repository, ref, head))
        if head is None or not any(trees.is_ancestor(repository, head, tip) for tip in tips if tip):
            raise UpstreamError(
                f"{branch} has commits of its own, and {remote}/{theirs} has gone on, so nothing was changed",
                where=str(tree.root),
                remedy=f"join them with `{clone} pull --rebase --autostash` (or `--no-rebase`), then renew the patches "
                f"with `patchlock patch apply --source {command_lines.quoted(str(tree.root))}`",
            )
        yield newest


def _fork_point(repository: Path, ref: str, head: CommitId | None) -> CommitId | None:
    """Give what a branch of upstream's was when the user's came from it; None where git's log of it does not say.

    An update that was taken back has moved the ref, and the user's branch stands on what upstream has dropped.
    """
    asked = ("merge-base", "--fork-point", ref, head or "HEAD")
    return CommitId(git(*asked, repository=repository, allowed=(0, 1, 128)).text) or None


def _switch_to_upstreams(tree: Tree) -> str:
    """Write git's words that check out the branch which upstream's repository opens with, else one that follows it.

    Where it is checked out already, here or in another worktree, a new branch follows the same one of upstream's.
    """
    form = "--format=%(refname:lstrip=2)%00%(upstream:lstrip=2)%00%(worktreepath)"
    rows = git("for-each-ref", form, "refs/heads", repository=tree.repository).text.splitlines()
    heads = {name: (followed, place) for name, followed, place in (row.split("\0") for row in rows)}
    asked = ("for-each-ref", "--format=%(symref:lstrip=2)", "refs/remotes/*/HEAD")
    opened = [(one.partition("/")[2], one) for one in git(*asked, repository=tree.repository).text.split()]
    found = opened or [(name, followed) for name, (followed, _) in heads.items() if followed]
    name, theirs = found[0] if found else ("BRANCH", "")
    if name not in heads or not heads[name][1]:
        return f"switch {command_lines.quoted(name)}"
    new = next(one for number in itertools.count(2) if (one := f"{name}-{number}") not in heads)
    return f"switch --create {command_lines.quoted(new)} --track {command_lines.quoted(theirs)}"


def _configured(tree: Tree, key: str) -> str:
    return git("config", "--get", key, repository=tree.repository, allowed=(0, 1)).text
