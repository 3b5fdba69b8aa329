"""The peers: one diff carried forward by `git apply --3way`, and a fork whose one patch commit is rebased.

Both start from the ideal patch at some state: what ours made of it, judged right. They run in a scratch repository that
borrows the objects of the clone, without a working tree. A tree holds the files that the patch is about in either of
the two states; a file that is about it in one of them only has its other content too, so that it does not seem deleted.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from histories.repository import Files, environment
from histories.states import Contents, Row, State, faults

Blob = Callable[[str], bytes | None]
LAGS = (1, 2, 3, 5, 8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of one update."""

    peer: str
    """`diff` or `fork`."""
    lag: int
    """Updates that changed the patch's target since the diff was made; 0: since the oldest commit with a target."""
    kind: str
    """`right`, `conflict` or `silent`."""
    commits: int


class Scratch:
    """A repository without a working tree, which reads the objects of a clone."""

    def __init__(self, folder: Path, clone: Path) -> None:
        self.git = folder
        self._run("init", "--bare", "--quiet", str(folder))
        (folder / "objects" / "info" / "alternates").write_text(f"{clone / 'objects'}\n")
        self._written: dict[bytes, str] = {}
        self._read: dict[str, bytes] = {}
        self._trees: dict[tuple[tuple[PurePosixPath, str], ...], str] = {}
        self._commits: dict[tuple[str, ...], str] = {}

    def write(self, data: bytes) -> str:
        """Keep a blob."""
        if data not in self._written:
            self._written[data] = self._run("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            self._read[self._written[data]] = data
        return self._written[data]

    def tree(self, files: Files) -> str:
        """Make a tree of blobs."""
        key = tuple(sorted(files.items()))
        if key not in self._trees:
            self._trees[key] = self._tree(files)
        return self._trees[key]

    def _tree(self, files: Files) -> str:
        listing = b"".join(f"100644 {id_}\t{path}\0".encode() for path, id_ in sorted(files.items()))
        index = {"GIT_INDEX_FILE": str(self.git / "index")}
        (self.git / "index").unlink(missing_ok=True)
        self._run("update-index", "-z", "--index-info", stdin=listing, **index)
        return self._run("write-tree", **index).decode().strip()

    def commit(self, tree: str, *parents: str) -> str:
        """Make a commit."""
        key = (tree, *parents)
        if key not in self._commits:
            options = [word for parent in parents for word in ("-p", parent)]
            self._commits[key] = self._run("commit-tree", tree, *options, "-m", "x").decode().strip()
        return self._commits[key]

    def carry(self, patch: bytes, onto: str) -> str | None:
        """Apply a diff to a tree with `git apply --3way`; None where it does not apply cleanly."""
        index = {"GIT_INDEX_FILE": str(self.git / "carried")}
        self._run("read-tree", onto, **index)
        done = self._try("apply", "--3way", "--cached", "-", stdin=patch, **index)
        return self._run("write-tree", **index).decode().strip() if done.returncode == 0 else None

    def diff(self, before: str, after: str) -> bytes:
        """Make the diff between two trees."""
        return self._run("diff-tree", "-p", "--binary", "--full-index", before, after)

    def rebase(self, base: str, patched: str, onto: str) -> str | None:
        """Move a patch commit from one state to another; None on a conflict."""
        parent = self.commit(base)
        done = self._try("merge-tree", "--write-tree", self.commit(onto, parent), self.commit(patched, parent))
        return done.stdout.split()[0].decode() if done.returncode == 0 else None

    def files(self, tree: str) -> Files:
        """List a tree."""
        lines = self._run("ls-tree", "-r", "-z", tree).split(b"\0")
        entries = (line.decode().partition("\t") for line in lines if line)
        return {PurePosixPath(path): about.split()[2] for about, _, path in entries}

    def read(self, id_: str) -> bytes:
        """Read a blob."""
        if id_ not in self._read:
            self._read[id_] = self._run("cat-file", "blob", id_)
        return self._read[id_]

    def _run(self, *arguments: str, stdin: bytes = b"", **extra: str) -> bytes:
        done = self._try(*arguments, stdin=stdin, **extra)
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def _try(self, *arguments: str, stdin: bytes = b"", **extra: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "--git-dir", str(self.git), *arguments]
        env = {**environment(), **extra}
        return subprocess.run(command, input=stdin, capture_output=True, env=env, check=False, cwd=os.sep)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """From one state of the mainline to a later one."""

    old: State
    new: State
    old_files: Mapping[PurePosixPath, str]
    new_files: Mapping[PurePosixPath, str]
    """The same files in both, as far as they are there."""


def update(old: State, new: State, everything: Callable[[State], Files]) -> Update:
    """Complete two states with each other's files."""
    both = set(old.files) | set(new.files)
    old_files, new_files = ({p: id_ for p, id_ in everything(s).items() if p in both} for s in (old, new))
    return Update(old=old, new=new, old_files=old_files, new_files=new_files)


def diff(row: Row, scratch: Scratch, read: Blob, change: Update) -> str:
    """Carry the ideal diff of the old state to the new one."""
    before, after = _trees(scratch, change)
    onto = scratch.tree(change.new_files)
    return _judged(row, scratch, read, change, scratch.carry(scratch.diff(before, after), onto))


def fork(row: Row, scratch: Scratch, read: Blob, change: Update) -> str:
    """Rebase the ideal patch commit of the old state onto the new one."""
    before, after = _trees(scratch, change)
    return _judged(row, scratch, read, change, scratch.rebase(before, after, scratch.tree(change.new_files)))


def _trees(scratch: Scratch, change: Update) -> tuple[str, str]:
    before = change.old_files
    after = {
        path: scratch.write(change.old.after[path]) if path in change.old.after else before[path] for path in before
    }
    return scratch.tree(before), scratch.tree(after)


def _judged(row: Row, scratch: Scratch, read: Blob, change: Update, tree: str | None) -> str:
    if tree is None:
        return "conflict"
    before: Contents = {path: data for path, id_ in change.new_files.items() if (data := read(id_)) is not None}
    known = {id_: before[path] for path, id_ in change.new_files.items() if path in before}
    after = {path: known[id_] if id_ in known else scratch.read(id_) for path, id_ in scratch.files(tree).items()}
    return "silent" if faults(row, before, after) else "right"
