"""Read many commits of upstream in a few calls of git, and try patches on each distinct state; writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from patchlock.model.errors import UpstreamError
from patchlock.model.identities import CommitId
from patchlock.model.patch import Patch
from patchlock.patches import targets, trials
from patchlock.patches.evaluation import Memoized
from patchlock.patches.trials import Survival, Verdict
from patchlock.worktree.upstream_cache import Snapshot, blobs, commit_of, git, read_known

_AT_ONCE = 200
"""Commits whose files are read together."""

_Listing = Mapping[PurePosixPath, str]
"""Path from the app's folder → blob."""


def in_place(source: str, revision: str, directory: PurePosixPath) -> Snapshot | None:
    """Read a clone on this machine where it is, without a copy; `None` where the source is none.

    Raises:
        UpstreamError: it has no such commit.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        return None
    found = git("rev-parse", "--absolute-git-dir", repository=folder, allowed=(0, 128))
    if found.returncode != 0:
        return None
    repository = Path(found.text)
    commit = commit_of(repository, revision)
    if commit is None:
        raise UpstreamError(f"that clone has no commit {revision}", where=source, remedy="name one with --commit")
    return Snapshot(repository=repository, commit=commit, tree=commit, date="", directory=directory)


def newest(source: str, url: str, branch: str) -> str:
    """Name the newest commit of upstream in a clone on this machine: its fetched branch, else HEAD.

    What a remote with upstream's own address has is upstream, also where HEAD has commits of a fork. Of another
    remote, which the clone's branch follows, the branch counts only where it is ahead of HEAD.

    Args:
        source: the clone, or something else, which has a HEAD too.
        url: upstream's.
        branch: of upstream.
    """
    if found := fetched(source, url, branch):
        return found
    folder = Path(source).expanduser()
    followed = _known(folder, "@{upstream}") if folder.is_dir() else ""
    ahead = (
        git("rev-list", "--count", f"HEAD..{followed}", repository=folder, allowed=(0, 128)).text if followed else ""
    )
    return followed if ahead not in {"", "0"} else "HEAD"


def lacks(source: str, url: str, branch: str, revision: str, of: CommitId) -> bool:
    """Tell whether a clone has upstream's commit, and one that its fetched branch of upstream lacks, as a fork does."""
    newest_known, folder = fetched(source, url, branch), Path(source).expanduser()
    if not newest_known or commit_of(folder, of) is None:
        return False
    asked = ("merge-base", "--is-ancestor", revision, newest_known)
    return git(*asked, repository=folder, allowed=(0, 1, 128)).returncode == 1


def fetched(source: str | Path, url: str, branch: str) -> str:
    """Name upstream's branch in a clone on this machine, by the remote that has upstream's address; "" for none."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        return ""
    asked = ("config", "--get-regexp", r"^remote\..*\.url$")
    listed = git(*asked, repository=folder, allowed=(0, 1, 128)).text.splitlines()
    rows = (row.partition(" ") for row in listed)
    remotes = (key[len("remote.") : -len(".url")] for key, _, one in rows if _alike(one) == _alike(url))
    return next(filter(None, (_known(folder, f"{remote}/{branch}") for remote in remotes)), "")


def _known(folder: Path, name: str) -> str:
    asked = ("rev-parse", "--abbrev-ref", "--verify", "--quiet", name)
    return git(*asked, repository=folder, allowed=(0, 1, 128)).text


def _alike(url: str) -> str:
    """Give what addresses of one repository have in common: by HTTPS, by SSH, and in SSH's short form."""
    return re.sub(r"^(?:\w+://)?(?:[^@/]+@)?([^:/]+)[:/]", r"\1/", url.rstrip("/").removesuffix(".git").lower())


def seen(snapshot: Snapshot, patches: Sequence[Patch], author_saw: CommitId) -> Mapping[PurePosixPath, bytes]:
    """Read files as the patches' author saw them, by which one that was renamed is known again."""
    return read_known(snapshot, author_saw, {path for patch in patches for path in targets.missing(patch, ())})


def contents(snapshot: Snapshot, patches: Sequence[Patch]) -> dict[PurePosixPath, bytes]:
    """Read the files of a snapshot that concern some patches; those that an incomplete clone lacks are left out."""
    listing = _Concern(patches).files(_listings(snapshot, [snapshot.tree])[snapshot.tree])
    data = blobs(snapshot.repository, listing.values(), must=False)
    return {path: data[blob] for path, blob in listing.items() if blob in data}


def commits(snapshot: Snapshot, since: str, *, every: bool) -> tuple[CommitId, ...]:
    """List the commits from `since` to the snapshot's, the oldest first.

    Args:
        snapshot: where the range ends.
        since: where it begins; a commit of that upstream.
        every: also what came in by merges; otherwise the branch's own line.

    Raises:
        UpstreamError: there is no such commit before the snapshot's.
    """
    repository = snapshot.repository
    first = commit_of(repository, since)
    if first is None:
        raise UpstreamError(f"commit {since} is not in that upstream", remedy="name one that is before its HEAD")
    line = [] if every else ["--first-parent"]
    listed = git("rev-list", "--reverse", "--topo-order", *line, snapshot.commit, f"^{first}", repository=repository)
    return (first, *map(CommitId, listed.text.split()))


def survival(
    snapshot: Snapshot, groups: Sequence[Sequence[Patch]], wanted: Sequence[CommitId], author_saw: CommitId
) -> tuple[tuple[Survival, ...], int]:
    """Try the patches on each of the commits.

    Args:
        snapshot: of the upstream that has all of them.
        groups: those that are applied together, each group on its own.
        wanted: commits, the oldest first.
        author_saw: the catalogue's commit, by which a file that was renamed is known again.

    Returns:
        What became of each patch, and how many different states of the files that concern them there were.
    """
    evaluator = Memoized()
    patches = list({patch.id: patch for group in groups for patch in group}.values())
    table = {patch.id: Survival(patch=patch.id) for patch in patches}
    known: dict[frozenset[tuple[PurePosixPath, str]], dict[str, Verdict]] = {}
    content: dict[str, bytes | None] = {}
    """None for what an incomplete clone lacks."""
    listings = _listings(snapshot, wanted)
    concern = _Concern(patches)
    known_files = seen(snapshot, patches, author_saw)
    for start in range(0, len(wanted), _AT_ONCE):
        states = [(commit, concern.files(listings[commit])) for commit in wanted[start : start + _AT_ONCE]]
        unread = {blob for _, state in states for blob in state.values() if blob not in content}
        found = blobs(snapshot.repository, unread, must=False)
        content |= dict.fromkeys(unread) | {one: data if concern.mentions(data) else b"" for one, data in found.items()}
        for commit, state in states:
            key = frozenset(state.items())
            if key not in known:
                files = {path: data for path, blob in state.items() if (data := content[blob]) is not None}
                known[key] = trials.worst(trials.verdicts(one, files, known_files, evaluator) for one in groups)
            for patch, verdict in known[key].items():
                table[patch].count(commit, verdict)
    return tuple(table.values()), len(known)


class _Concern:
    """Which files the patches look at."""

    def __init__(self, patches: Sequence[Patch]) -> None:
        self._patches = patches
        self._known: dict[PurePosixPath, bool] = {}
        self._literals = {text for patch in patches for text in patch.literal}
        self._is_everything = any(not patch.literal for patch in patches)

    def files(self, listing: _Listing) -> dict[PurePosixPath, str]:
        new = [path for path in listing if path not in self._known]
        self._known |= dict.fromkeys(new, False) | {path: True for path in new if self._is_named(path)}
        # Of a file that has moved, all of its kind are looked at.
        suffixes = {path.suffix for patch in self._patches for path in targets.missing(patch, listing)}
        return {path: blob for path, blob in listing.items() if self._known[path] or path.suffix in suffixes}

    def _is_named(self, path: PurePosixPath) -> bool:
        return any(
            targets.matching_files(patch, {path: b""})
            for patch in self._patches
            if patch.op_name != targets.MAKES_FILES
        ) or any(str(path) in patch.paths for patch in self._patches)

    def mentions(self, data: bytes) -> bool:
        encodings = ("utf-8", "utf-16-le", "utf-16-be")
        return self._is_everything or any(t.encode(e) in data for t in self._literals for e in encodings)


# --- trees ------------------------------------------------------------------------------------------------------------


def _listings(snapshot: Snapshot, wanted: Sequence[CommitId]) -> dict[CommitId, _Listing]:
    """Give the files of each commit below the app's folder; folders that commits share are read once."""
    folder = "" if snapshot.directory == PurePosixPath() else str(snapshot.directory)
    asked = "".join(f"{commit}:{folder}\n" for commit in wanted).encode()
    answer = git("cat-file", "--batch-check", repository=snapshot.repository, stdin=asked).text.splitlines()
    roots = {
        commit: row.split()[0] if row.split()[1:2] == ["tree"] else ""
        for commit, row in zip(wanted, answer, strict=True)
    }
    folders = _folders(snapshot.repository, {root for root in roots.values() if root})
    flat: dict[str, _Listing] = {"": {}}
    return {commit: _flat(root, folders, flat) for commit, root in roots.items()}


_Folder = tuple[tuple[str, str, bool], ...]
"""Name, object, and whether it is a folder."""


def _folders(repository: Path, roots: Iterable[str]) -> dict[str, _Folder]:
    """Read all trees below some trees, one level with each call of git."""
    found: dict[str, _Folder] = {}
    level = set(roots)
    while level:
        data = blobs(repository, level, must=False)
        found |= {tree: tuple(_entries(data.get(tree, b""))) for tree in level}
        level = {one for tree in level for _, one, is_folder in found[tree] if is_folder} - found.keys()
    return found


def _entries(data: bytes) -> Iterator[tuple[str, str, bool]]:
    """Read a tree object: `<mode> <name>`, NUL, 20 bytes; only folders and regular files."""
    position = 0
    while position < len(data):
        end = data.index(b"\0", position)
        mode, _, name = data[position:end].partition(b" ")
        position = end + 21
        if mode == b"40000" or mode.startswith(b"100"):
            yield name.decode("utf-8", "surrogateescape"), data[end + 1 : position].hex(), mode == b"40000"


def _flat(tree: str, folders: Mapping[str, _Folder], known: dict[str, _Listing]) -> _Listing:
    """Give all files below a tree by path."""
    if tree not in known:
        files: dict[PurePosixPath, str] = {}
        for name, one, is_folder in folders[tree]:
            if is_folder:
                files |= {PurePosixPath(name) / path: blob for path, blob in _flat(one, folders, known).items()}
            else:
                files[PurePosixPath(name)] = one
        known[tree] = files
    return known[tree]
