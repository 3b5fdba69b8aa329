"""Random trials of user edits and upstream pulls: is a word of the user's or upstream's lost, is the merge git's own?

    python benchmarks/user_edits.py --trials 10000

Each file of a round is one trial: upstream changes it, the user changes the patched one, then the tree is updated. What
the user wrote carries a unique word, so that it can be looked for afterwards. In some rounds the user pulls himself,
with a stash, before patchlock comes; in some, patchlock is cut off in the middle and runs again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path, PurePosixPath

from trials.worlds import git, patch_set

from patchlock.model.errors import SourceConflictError
from patchlock.model.identities import CommitId
from patchlock.worktree import _journal, clone_patches, move, trees
from patchlock.worktree.upstream_files import PatchSet

MODES = ("update", "update", "update", "pull", "cut off")


class LostError(AssertionError):
    """Something of the user's is gone, or a merge is not git's."""


@dataclasses.dataclass(slots=True)
class Trial:
    """One file: what the user wrote into it, and what he took out."""

    path: PurePosixPath
    words: list[str] = dataclasses.field(default_factory=list)
    removed: list[bytes] = dataclasses.field(default_factory=list)


class Round:
    """One repository with many files."""

    def __init__(self, folder: Path, seed: int, files: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.mode = self.random.choice(MODES)
        self.trials = [Trial(path=PurePosixPath(f"file{n}.py")) for n in range(files)]
        self.counted: collections.Counter[str] = collections.Counter()
        self._number = 0

    @property
    def upstream(self) -> Path:
        """Upstream's own repository."""
        return self.folder / "upstream"

    @property
    def clone(self) -> Path:
        """The user's clone."""
        return self.folder / "clone"

    def run(self) -> collections.Counter[str]:
        """Play one round, and count what came out."""
        wanted = patch_set()
        self.upstream.mkdir()
        git(self.upstream, "init", "-q", "-b", "main")
        for trial in self.trials:
            (self.upstream / trial.path).write_bytes(self._file())
        self._commit()
        git(self.folder, "clone", "-q", str(self.upstream), "clone")
        tree = trees.open_tree(self.clone)
        first = clone_patches.apply(tree, wanted, self.folder / "cache")
        if first is None:
            raise LostError("nothing was applied")
        for trial in self.trials:
            self._edit_as_user(trial)
        self._pull_upstream()
        mine = {trial.path: (self.clone / trial.path).read_bytes() for trial in self.trials}
        if self.mode == "pull":
            git(self.clone, "stash", "-q", allowed=(0, 1))
            git(self.clone, "pull", "-q")
            git(self.clone, "stash", "pop", "-q", allowed=(0, 1))
            done = clone_patches.apply(tree, wanted, self.folder / "cache")
        elif self.mode == "cut off":
            done = self._cut_off(tree, wanted)
            with contextlib.suppress(SourceConflictError):  # what was cut off is finished, with its conflicts
                done = done or clone_patches.update(tree, wanted, self.folder / "cache")
        else:
            done = clone_patches.update(tree, wanted, self.folder / "cache")
        conflicts = set(done.moved.conflicts if done else move.conflicted(tree) or ())
        for trial in self.trials:
            self._check(trial, mine[trial.path], is_conflict=trial.path in conflicts)
        if self.mode != "pull" and done is not None:
            self._compare(first.applied, done.applied, mine, conflicts)
        self.counted[f"mode {self.mode}"] += len(self.trials)
        return self.counted

    def _line(self, word: str) -> bytes:
        if self.random.random() < 0.2:
            return f'{word} = "cuda"'.encode()
        return f"{word} = {self.random.randrange(1000)}".encode()

    def _word(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{self._number}_{self.random.randrange(10**6)}"

    def _file(self) -> bytes:
        newline = self.random.choice([b"\n", b"\n", b"\r\n"])
        lines = [self._line(self._word("base")) for _ in range(self.random.randrange(1, 40))]
        return newline.join(lines) + self.random.choice([newline, b""])

    def _edit(self, data: bytes, kind: str, trial: Trial | None) -> bytes:
        newline = b"\r\n" if b"\r\n" in data else b"\n"
        lines = data.split(newline)
        for _ in range(self.random.randrange(4)):
            at = self.random.randrange(len(lines))
            word = self._word(kind)
            what = self.random.choice(["insert", "insert", "replace", "remove", "reformat"])
            if what == "insert":
                lines.insert(at, self._line(word))
            elif what == "replace" and lines[at]:
                lines[at] = self._line(word)
            elif what == "reformat" and lines[at]:
                lines[at] = lines[at].replace(b" = ", b"=") + f"  # {word}".encode()
            elif lines[at]:
                gone = lines.pop(at)
                if trial is not None:
                    trial.removed.append(gone)
                lines = lines or [b""]
                continue
            else:
                continue
            if trial is not None:
                trial.words.append(word)
        return newline.join(lines)

    def _edit_as_user(self, trial: Trial) -> None:
        file = self.clone / trial.path
        data = self._edit(file.read_bytes(), "mine", trial)
        trial.words = [word for word in trial.words if word.encode() in data]
        file.write_bytes(data)

    def _pull_upstream(self) -> None:
        for trial in self.trials:
            file = self.upstream / trial.path
            file.write_bytes(self._edit(file.read_bytes(), "theirs", None))
        if self.random.random() < 0.5:
            (self.upstream / "new.py").write_bytes(b'd = "cuda"\n')
        self._commit()

    def _commit(self) -> None:
        git(self.upstream, "add", "-A")
        git(self.upstream, "commit", "-q", "--allow-empty", "-m", "change")

    def _cut_off(self, tree: trees.Tree, wanted: PatchSet) -> clone_patches.Applied | None:
        """Run an update that dies after some of its writes; give its result where it had fewer."""
        step, left = _journal.step, self.random.randrange(2 * len(self.trials))

        def dying(name: str) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1

        _journal.step = dying
        try:
            return clone_patches.update(tree, wanted, self.folder / "cache")
        except KeyboardInterrupt:
            self.counted["cut off"] += 1
            return None
        finally:
            _journal.step = step

    def _check(self, trial: Trial, mine: bytes, *, is_conflict: bool) -> None:
        """Look for all words of the user and of upstream; in a conflict his file must be reachable as it was, too."""
        data = (self.clone / trial.path).read_bytes()
        for word in trial.words:
            if word.encode() not in data:
                raise LostError(f"{trial.path}: {word} of the user's is gone ({self.mode})\n{mine!r}\n{data!r}")
        theirs = (self.upstream / trial.path).read_bytes()
        gone = [word for word in re.findall(rb"theirs_\d+_\d+", theirs) if word not in data]
        if gone:
            raise LostError(f"{trial.path}: {gone} of upstream's are gone ({self.mode})\n{mine!r}\n{data!r}")
        if is_conflict:
            self.counted["conflicts"] += 1
            if self.mode != "pull":
                saved = subprocess.run(
                    ["git", "-C", str(self.clone), "show", f"refs/patchlock/before:{trial.path}"],
                    capture_output=True,
                    check=True,
                ).stdout
                if saved != mine:
                    raise LostError(f"{trial.path}: the user's file is not kept as it was")
            return
        if b"<<<<<<<" in data:
            raise LostError(f"{trial.path}: a conflict was left and not told ({self.mode})")
        self.counted["clean"] += 1
        back = [
            line for line in trial.removed if line and line in data.splitlines() and line not in theirs.splitlines()
        ]
        if back:
            raise LostError(f"{trial.path}: what the user removed is there again: {back}")
        users = [word.encode() for word in trial.words]
        left = [line for line in data.splitlines() if b'"cuda"' in line and not any(word in line for word in users)]
        if left:
            raise LostError(f"{trial.path}: not patched ({self.mode}): {left}\n{mine!r}\n{theirs!r}\n{data!r}")

    def _compare(
        self, old: CommitId, new: CommitId, mine: dict[PurePosixPath, bytes], conflicts: set[PurePosixPath]
    ) -> None:
        """Let git itself merge the same three trees, and compare file by file."""
        tree = trees.open_tree(self.clone)
        ours = trees.commit_files(tree.repository, dict(mine), parent=old, message="user\n", ref="refs/trial/user")
        theirs = git(self.clone, "commit-tree", f"{new}^{{tree}}", "-p", old, "-m", "new")
        answer = git(self.clone, "merge-tree", "--write-tree", "-z", "--name-only", ours, theirs, allowed=(0, 1))
        result, *rest = answer.split("\0")
        names = set(rest[: rest.index("")]) if "" in rest else set()
        merged = trees.entries(tree.repository, CommitId(git(self.clone, "commit-tree", result, "-m", "merged")))
        blobs = trees.contents(tree.repository, [merged[trial.path] for trial in self.trials])
        for trial in self.trials:
            if str(trial.path) in names:
                self.counted["git conflicts"] += 1
                continue
            if trial.path in conflicts:
                raise LostError(f"{trial.path}: git merges it, and we do not")
            if blobs[merged[trial.path].blob] != (self.clone / trial.path).read_bytes():
                raise LostError(f"{trial.path}: the merge is not git's")
            self.counted["same as git"] += 1


def play(rounds: range, files: int) -> collections.Counter[str]:
    """Play rounds, each seeded by its number, and add up what came out.

    Raises:
        LostError: with the seed that shows it.
    """
    counted: collections.Counter[str] = collections.Counter()
    for seed in rounds:
        with tempfile.TemporaryDirectory(prefix="trial-") as name:
            try:
                counted += Round(Path(name), seed, files).run()
            except LostError as error:
                raise LostError(f"seed {seed}: {error}") from error
    return counted


def main() -> None:
    """Play as many trials as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=50, help="trials in one round")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    started = time.monotonic()
    rounds = -(-arguments.trials // arguments.files)
    counted = play(range(arguments.first, arguments.first + rounds), arguments.files)
    print(f"{rounds * arguments.files} trials in {time.monotonic() - started:.0f} s, nothing lost")
    for name, count in sorted(counted.items()):
        print(f"  {name:<14} {count}")


if __name__ == "__main__":
    sys.exit(main())
