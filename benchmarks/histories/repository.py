"""Read every state of a git history without a checkout: trees and blobs through one `git cat-file --batch`."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

Files = Mapping[PurePosixPath, str]
"""Blob id by path."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One commit of a history."""

    id: str
    tree: str


def find(folder: Path, name: str) -> Path | None:
    """Find the git directory of `owner/name` in a folder of clones: `owner+name` or `name`, bare or not."""
    short = name.partition("/")[2]
    for place in (name.replace("/", "+"), short, f"{short}.git"):
        for inner in ("", ".git", "repo", "repo/.git"):
            git = folder / place / inner
            if (git / "objects").is_dir() and (git / "HEAD").is_file():
                return git
    return None


class Repository:
    """The history behind HEAD of one clone."""

    def __init__(self, git: Path) -> None:
        self.git = git
        self._blobs: dict[str, bytes | None] = {}
        self._trees: dict[tuple[str, str], tuple[tuple[PurePosixPath, str], ...]] = {}
        self._reader = subprocess.Popen(
            ["git", "--git-dir", str(git), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._reader.stdin.close()
        self._reader.stdout.close()
        self._reader.wait()

    def commits(self, *, first_parent: bool = False) -> tuple[Commit, ...]:
        """Give the commits that HEAD reaches, ancestors first."""
        options = ["--first-parent"] if first_parent else []
        text = self.run("log", "--topo-order", "--reverse", "--format=%H %T", *options, "HEAD")
        return tuple(Commit(id=line[:40], tree=line[41:]) for line in text.splitlines())

    def run(self, *arguments: str) -> str:
        """Run git in this repository and give what it prints."""
        command = ["git", "--git-dir", str(self.git), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment()).stdout

    def files(self, tree: str, is_wanted: Callable[[PurePosixPath, str], bool], prefix: str = "") -> Files:
        """Give the files of a tree that are wanted.

        A folder is read once for each place where it stands, so `is_wanted` must always be the same for one repository.
        """
        return dict(self._walk(tree, is_wanted, prefix))

    def folder(self, tree: str, path: str) -> str:
        """Give the tree of a folder, "" where a commit lacks it."""
        for part in PurePosixPath(path).parts:
            tree = next((id_ for _, name, id_ in _entries(self.read(tree) or b"") if name == part), "") if tree else ""
        return tree

    def forget_trees(self) -> None:
        """Start afresh with another question."""
        self._trees.clear()

    def _walk(
        self, tree: str, is_wanted: Callable[[PurePosixPath, str], bool], prefix: str
    ) -> tuple[tuple[PurePosixPath, str], ...]:
        if not tree:
            return ()
        known = self._trees.get((tree, prefix))
        if known is not None:
            return known
        found: list[tuple[PurePosixPath, str]] = []
        for mode, name, id_ in _entries(self.read(tree) or b""):
            if mode == "40000":
                found += self._walk(id_, is_wanted, f"{prefix}{name}/")
            elif mode.startswith("100"):
                path = PurePosixPath(prefix + name)
                if is_wanted(path, id_):
                    found.append((path, id_))
        self._trees[tree, prefix] = tuple(found)
        return self._trees[tree, prefix]

    def read(self, id_: str) -> bytes | None:
        """Read an object; None where the clone lacks it, as a filtered clone does."""
        if id_ not in self._blobs:
            self._reader.stdin.write(f"{id_}\n".encode())
            self._reader.stdin.flush()
            words = self._reader.stdout.readline().split()
            if words[-1] == b"missing":
                self._blobs[id_] = None
            else:
                self._blobs[id_] = self._reader.stdout.read(int(words[2]))
                self._reader.stdout.read(1)
        return self._blobs[id_]


def _entries(data: bytes) -> list[tuple[str, str, str]]:
    """Parse a tree object: mode, name, id."""
    entries, at = [], 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        entries.append((mode.decode(), name.decode("utf-8", "surrogateescape"), data[end + 1 : end + 21].hex()))
        at = end + 21
    return entries


def environment() -> dict[str, str]:
    """Give variables with which git asks nobody, fetches nothing and reads no configuration of the user."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    quiet = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    author = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    return {**kept, **quiet, **author, **dates, "GIT_CONFIG_GLOBAL": os.devnull}
