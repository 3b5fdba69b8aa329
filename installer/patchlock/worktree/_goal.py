"""From where to where a working tree is brought, and what of the user's own is known there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.identities import CommitId
from patchlock.patches.edited_file import EditedFile
from patchlock.worktree.trees import Entry

ByMeaning = Callable[[PurePosixPath, bytes], EditedFile | None]
"""Apply the patches to the user's version of a file; None where one of them cannot do what it says there."""


@dataclass(frozen=True, kw_only=True)
class OwnVersion:
    """A file of the user's in whose edited lines patches stand, so that no merge gives his lines back."""

    his: Entry
    """Without the patches."""
    patched: Entry
    """As the move left it; where it left a conflict, with the patches' side of that."""


OwnVersions = Mapping[PurePosixPath, OwnVersion]
"""By path, as the user names it."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """From where to where a tree is brought."""

    base: CommitId | None
    """The patched commit that the tree was last brought to."""
    target: CommitId
    """The patched commit, or upstream's, that it is brought to."""
    fork_of: CommitId | None = None
    """Upstream's commit, where the user's branch and what it follows have commits of a fork on it."""
    restore_all: bool = False
    """Bring every missing file of upstream back, not only patched ones."""
    by_meaning: ByMeaning | None = None
    dropped: Collection[PurePosixPath] = ()
    """Files in which patches stood that are not wanted any more, by upstream's names."""
    own: OwnVersions = dataclasses.field(default_factory=dict)
    """What the last move has patched by meaning."""
