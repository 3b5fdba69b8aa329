"""The user's working tree as git would commit it: through his filters and line endings, without touching his index."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines, process
from patchlock.model.errors import CommandFailedError
from patchlock.model.identities import CommitId
from patchlock.worktree import trees
from patchlock.worktree.trees import Entries, Entry, Tree
from patchlock.worktree.upstream_cache import blobs, git

_FILTER = re.compile(r"^\s*(?:fatal: |error: )?(.+): (clean|smudge) filter '?(.+?)'? failed$", re.MULTILINE)
_RAW = "* -text -filter -ident -working-tree-encoding\n"
"""Attributes of a folder that is no clone: its bytes are taken as they are."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What stands in a working tree, and in its index."""

    files: Entries
    """As git would store them; of a tracked file that is not on disk, what the index has: git's own rule."""
    index: Entries
    """What the user has staged, conflicts left out; empty in a folder that is no clone."""
    unmerged: Mapping[PurePosixPath, tuple[str, ...]]
    """Of each conflict in the index: its rows, `mode blob stage`."""
    missing: frozenset[PurePosixPath]
    """Files that are tracked and not on disk."""
    sparse: frozenset[PurePosixPath]
    """Files that a sparse checkout leaves out."""
    stats: Mapping[PurePosixPath, list[int] | None]
    """Of what may be written, what stood there before anything was read; see `stat_of`."""

    @property
    def checked_out(self) -> Collection[PurePosixPath]:
        """Files of the user's index that a sparse checkout does not leave out, whether or not they are missing."""
        return (self.index.keys() | self.unmerged.keys()) - self.sparse


def stat_of(path: Path) -> list[int] | None:
    """Say by what a file is known again: inode, bytes, nanoseconds since 1970, mode; None where no file stands.

    A folder is none: what lies in it is looked at by itself.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode]


def run(
    tree: Tree, *arguments: str, index: Path | None = None, root: Path | None = None, stdin: bytes = b""
) -> process.Completed:
    """Run git on a working tree, with the conversions that the user's own git would do there.

    Args:
        tree: whose repository.
        arguments: the command.
        index: another index than the user's.
        root: another folder of files than the user's.
        stdin: all of its standard input.
    """
    where = {"GIT_DIR": str(trees.git_dir(tree)), "GIT_WORK_TREE": str(root or tree.root)}
    env = where | ({"GIT_INDEX_FILE": str(index)} if index else {})
    try:
        return git(*arguments, repository=tree.root, env=env, stdin=stdin, converts=tree.is_clone)
    except CommandFailedError as error:
        found = _FILTER.search("\n".join(error.evidence))
        raise _filter_error(tree, found, error) if found else error from error


def _filter_error(tree: Tree, found: re.Match[str], error: CommandFailedError) -> CommandFailedError:
    """Say which filter of the clone fails; no file has been touched when filters run."""
    path, kind, name = found.groups()
    shown = (
        f"git -C {command_lines.quoted(str(tree.root))} config --get {command_lines.quoted(f'filter.{name}.{kind}')}"
    )
    remedy = f"`{shown}` says what it runs; correct that, and run this again"
    if name == "lfs":
        remedy = "install git-lfs, and run this again"
        if kind == "smudge":
            remedy += "; or leave its files as pointers: set `GIT_LFS_SKIP_SMUDGE=1` for the same command"
    return CommandFailedError(
        f"the {kind} filter {name} fails for {path}, so nothing was changed",
        where=str(tree.root),
        remedy=remedy,
        evidence=error.evidence,
    )


def joined(paths: Iterable[PurePosixPath]) -> bytes:
    """Write paths as git reads them with `-z`."""
    return b"".join(os.fsencode(str(path)) + b"\0" for path in paths)


def index_rows(rows: Iterable[tuple[PurePosixPath, str]]) -> bytes:
    """Write rows, each of a path and `mode blob stage`, as `git update-index --index-info -z` reads them."""
    return b"".join(row.encode() + b"\t" + os.fsencode(str(path)) + b"\0" for path, row in rows)


def no_rows(tree: Tree, paths: Iterable[PurePosixPath]) -> list[tuple[PurePosixPath, str]]:
    """Give the rows by which `index_rows` takes paths out of an index."""
    digits = 64 if trees.object_format(tree.repository) == "sha256" else 40
    return [(path, f"0 {'0' * digits}") for path in paths]


def take(
    tree: Tree,
    start: CommitId,
    wanted: Collection[PurePosixPath],
    work: Path,
    sides: Mapping[PurePosixPath, Entry | None] | None = None,
) -> Snapshot:
    """Read a working tree.

    Args:
        tree: the working tree.
        start: what a folder that is no clone is compared with.
        wanted: what may be written: files of the user's that stand there are read, tracked or not.
        work: a folder for a copy of the index.
        sides: of files in which git has left a conflict, the user's side.
    """
    scratch = work / "index"
    if tree.is_clone:
        real = trees.git_dir(tree) / "index"
        if real.exists():
            shutil.copy2(real, scratch)  # with its time, by which git knows what it has to read again
    else:
        (trees.git_dir(tree) / "info").mkdir(exist_ok=True)
        (trees.git_dir(tree) / "info" / "attributes").write_text(_RAW, encoding="utf-8")
        run(tree, "read-tree", start, index=scratch)
    index, unmerged, sparse, unchanging = _read(tree, scratch)
    if unchanging:
        run(tree, "update-index", "--no-assume-unchanged", "-z", "--stdin", index=scratch, stdin=joined(unchanging))
    stats = {path: stat_of(tree.root / path) for path in wanted}
    raw = run(tree, "diff-files", "--raw", "-z", "--ignore-submodules=all", index=scratch).stdout.split(b"\0")
    changed, missing = [], set()
    for head, name in zip(raw[::2], raw[1::2], strict=False):
        path = PurePosixPath(os.fsdecode(name))
        if head.endswith(b"D"):
            missing.add(path)
        elif not head.endswith(b"U"):
            changed.append(path)
    changed += [p for p in wanted if p not in index and p not in unmerged and _is_entry(tree, p)]
    if changed:
        run(tree, "update-index", "-z", "--add", "--replace", "--stdin", index=scratch, stdin=joined(changed))
    if unmerged:
        rows = no_rows(tree, unmerged)
        rows += [(path, side.row()) for path, side in (sides or {}).items() if side is not None]
        run(tree, "update-index", "-z", "--index-info", index=scratch, stdin=index_rows(rows))
    files = _read(tree, scratch)[0] if changed or unmerged else index
    return Snapshot(
        files=files,
        index=index if tree.is_clone else {},
        unmerged=unmerged,
        missing=frozenset(missing),
        sparse=sparse,
        stats=stats,
    )


def _is_entry(tree: Tree, path: PurePosixPath) -> bool:
    """Tell whether a file or a link stands at a path, and not behind a link of the user's."""
    place = tree.root / path
    parents = (tree.root / parent for parent in path.parents if parent.parts)
    return (place.is_symlink() or place.is_file()) and not any(parent.is_symlink() for parent in parents)


def _read(
    tree: Tree, index: Path
) -> tuple[Entries, dict[PurePosixPath, tuple[str, ...]], frozenset[PurePosixPath], list[PurePosixPath]]:
    """Give the rows of an index: whole ones, conflicts, those of a sparse checkout, those that git does not look at."""
    found: dict[PurePosixPath, Entry] = {}
    unmerged: dict[PurePosixPath, tuple[str, ...]] = {}
    sparse, unchanging = set(), []
    for row in run(tree, "ls-files", "-s", "-v", "-z", index=index).stdout.split(b"\0"):
        head, _, name = row.partition(b"\t")
        if not head:
            continue
        tag, mode, blob, stage = head.decode().split()
        path = PurePosixPath(os.fsdecode(name))
        if stage != "0":
            unmerged[path] = (*unmerged.get(path, ()), f"{mode} {blob} {stage}")
            continue
        found[path] = Entry(mode=mode, blob=blob)
        if tag.upper() == "S":
            sparse.add(path)
        if tag.islower():
            unchanging.append(path)
    return found, unmerged, frozenset(sparse), unchanging


def renames(tree: Tree, since: str) -> dict[PurePosixPath, PurePosixPath]:
    """Give the files of a commit that the user has renamed, as git finds renames: old name → name in his index."""
    words = ("diff-index", "--find-renames", "--diff-filter=R", "--name-status", "-z", "--ignore-submodules=all")
    _, *named = re.split(rb"(?:^|\0)R\d+\0", run(tree, *words, since).stdout.removesuffix(b"\0"))
    pairs = (row.split(b"\0") for row in named)
    return {PurePosixPath(os.fsdecode(old)): PurePosixPath(os.fsdecode(new)) for old, new in pairs}


def left_out(tree: Tree, paths: Collection[PurePosixPath]) -> frozenset[PurePosixPath]:
    """Give those of some files that a sparse checkout leaves out."""
    words = ("--literal-pathspecs", "ls-files", "-t", "-z", "--", *map(str, paths))
    rows = run(tree, *words).stdout.split(b"\0")
    return frozenset(PurePosixPath(os.fsdecode(row[2:])) for row in rows if row.startswith(b"S "))


def stored(tree: Tree, paths: Collection[PurePosixPath]) -> dict[PurePosixPath, bytes | None]:
    """Give files of the working tree as git would store them; None where there is no regular file.

    Files of a folder that is no clone are given as they are.
    """
    there = [path for path in paths if (tree.root / path).is_file() and not (tree.root / path).is_symlink()]
    found: dict[PurePosixPath, bytes | None] = dict.fromkeys(paths)
    if not tree.is_clone:
        return found | {path: trees.read(tree, path) for path in there}
    named = [path for path in there if "\n" not in str(path)]  # git takes one name in a line here
    stdin = b"".join(os.fsencode(str(path)) + b"\n" for path in named)
    ids = run(tree, "hash-object", "-w", "--stdin-paths", stdin=stdin).text.split() if named else []
    data = blobs(tree.repository, ids)
    found |= {path: trees.read(tree, path) for path in there if "\n" in str(path)}
    return found | {path: data[blob] for path, blob in zip(named, ids, strict=True)}


def entry_of(tree: Tree, path: PurePosixPath, now: Snapshot) -> Entry | None:
    """Give what stands at a path, of a conflict too; None where nothing does."""
    if path in now.files or not os.path.lexists(tree.root / path):
        return now.files.get(path)
    data = stored(tree, [path])[path]
    return trees.stored_file(tree, data, "100644") if data is not None else None
