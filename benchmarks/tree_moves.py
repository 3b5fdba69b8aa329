"""Every kind of edit by every kind of move: does one lose a word, stage a foreign row, or leave other files?

    python benchmarks/tree_moves.py                         each edit by each move, on a miniature upstream
    python benchmarks/tree_moves.py --trials 1000           random edits of many files, by seed
    python benchmarks/tree_moves.py --upstreams FOLDER --trials 200    random commits of real upstreams

What the user writes carries a unique word. Files that he has not touched are compared with those of a fresh clone with
the same patches, the index with what git alone had left there, and a refusal has to leave everything as it was.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer")]

from trials.edits import EDITS, MOVES, NAMELESS, NAMES, STAGING, Move, Work, set_text, text_of, undo  # noqa: E402
from trials.worlds import ROOT, World, any_git, apply, git, miniature, prepare, real  # noqa: E402

from patchlock.catalogue.reader import Catalogue  # noqa: E402
from patchlock.model.errors import (  # noqa: E402
    GitFirstError,
    NotPatchedError,
    PatchError,
    PatchlockError,
    SourceConflictError,
    UnsafePathError,
    UpstreamError,
)
from patchlock.worktree import clone_patches, move, trees  # noqa: E402

_REFUSALS = (GitFirstError, NotPatchedError, PatchError, SourceConflictError, UnsafePathError, UpstreamError)


class ViolationError(AssertionError):
    """A promise was broken."""


# --- what must hold ---------------------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Give mode and bytes of all files of a tree, and where its links point to."""
    found = {}
    for parent, folders, files in os.walk(folder):
        at = os.path.relpath(parent, folder)
        folders[:] = [name for name in folders if name not in {".git", ".patchlock", "module"}]
        for name in [*files, *(one for one in folders if (Path(parent) / one).is_symlink())]:
            file = Path(parent) / name
            mode = file.lstat().st_mode
            data = os.fsencode(file.readlink()) if stat.S_ISLNK(mode) else file.read_bytes()
            found[os.path.normpath(f"{at}/{name}")] = (mode, data)
    return found


def _rows(clone: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in filter(None, git(clone, "ls-files", "-s", "-z").split("\0")):
        head, _, name = row.partition("\t")
        found.setdefault(name, []).append(head)
    return found


def _listed(clone: Path, *words: str) -> set[str]:
    return {*filter(None, git(clone, *words, "-z").split("\0"))}


@dataclass(frozen=True)
class State:
    """All of a clone that a refusal must leave."""

    files: dict[str, tuple[int, bytes]]
    index: dict[str, list[str]]
    staged: set[str]
    head: str
    branch: str
    refs: list[str]
    stash: str
    ours: set[str]
    """Folders of unfinished moves."""

    @classmethod
    def of(cls, clone: Path) -> State:
        """Read it."""
        refs = git(clone, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        fetched = ("refs/remotes/", "refs/patchlock/incoming", "refs/patchlock/made")
        place = clone / ".git" / "patchlock"
        return cls(
            files=files_of(clone),
            index=_rows(clone),
            staged=_listed(clone, "diff", "--cached", "--name-only", "--no-renames"),
            head=git(clone, "rev-parse", "HEAD"),
            branch=git(clone, "symbolic-ref", "-q", "HEAD", allowed=(0, 1)),
            refs=[row for row in refs if not row.startswith(fetched)],
            stash=git(clone, "stash", "list"),
            ours={path.name for path in place.iterdir() if path.is_dir()} if place.is_dir() else set(),
        )

    def compare(self, other: State, *, why: str) -> None:
        """Find the first difference."""
        for name in ("head", "branch", "stash", "staged", "index", "refs", "ours", "files"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                raise ViolationError(f"{why}: {name} differs: {_difference(one, two)}")


def _difference(one: object, two: object) -> str:
    if isinstance(one, dict) and isinstance(two, dict):
        names = sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
        return "; ".join(f"{name!r}: {one.get(name)!r} → {two.get(name)!r}" for name in names[:4])
    return f"{one!r} → {two!r}"


class Fresh:
    """What a fresh clone of a commit has, with or without patches; made once for each tree."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], dict[str, tuple[int, bytes]] | None] = {}

    def files(self, world: World, *, is_patched: bool) -> dict[str, tuple[int, bytes]] | None:
        """Give the files of a fresh clone of what is checked out; None where the patches do not fit there."""
        key = git(world.clone, "rev-parse", "HEAD^{tree}"), is_patched
        if key not in self._known:
            place = world.folder / "fresh"
            git(world.folder, "clone", "-q", "--shared", "clone", place.name)
            git(place, "checkout", "-q", "--detach", git(world.clone, "rev-parse", "HEAD"))
            self._known[key] = None
            with contextlib.suppress(PatchError):
                if is_patched:
                    clone_patches.apply(trees.open_tree(place), world.wanted, world.cache)
                self._known[key] = files_of(place)
            shutil.rmtree(place)
        return self._known[key]


class Trial:
    """One clone, some edits, one move."""

    def __init__(self, world: World, work: Work, which: Move, fresh: Fresh) -> None:
        self.world, self.work, self.which, self.fresh = world, work, which, fresh
        self.counted: collections.Counter[str] = collections.Counter()

    def run(self) -> collections.Counter[str]:
        """Play it.

        Raises:
            ViolationError: a promise was broken.
        """
        clone = self.world.clone
        self.which.before(self.world)
        before = State.of(clone)
        self.work.words = [word for word in self.work.words if self._is_there(word)]  # git may have dropped some
        self.work.removed -= before.index.keys()
        rows = _listed(clone, "ls-files", "-t")
        self.work.touched |= {row.removeprefix("S ") for row in rows if row.startswith("S ")}  # git left them out
        done, conflicts = self._act(before)
        after = State.of(clone)
        if done:
            self._look(before, after, conflicts)
        if done and conflicts and not before.index.keys() & _unmerged(before):
            self._abort_and_resolve(before, conflicts)
        elif done:
            self._again(conflicts)
        self._words()
        if fsck := any_git(clone, "fsck", "--no-dangling", "--no-progress"):
            raise ViolationError(f"git fsck: {fsck}")
        return self.counted

    def _act(self, before: State) -> tuple[bool, set[str]]:
        try:
            done = self.which.act(self.world)
        except PatchlockError as error:
            name = next(name for name, move_ in MOVES.items() if move_ is self.which)
            self.counted[f"refused {name}: {error.what}"] += 1
            State.of(self.world.clone).compare(before, why=f"refused ({error.what}), and yet")
            if not isinstance(error, _REFUSALS):
                raise ViolationError(f"not a refusal: {error}") from error
            return False, set()
        moved = done.moved if isinstance(done, clone_patches.Applied) else done
        conflicts = {str(path) for path in moved.conflicts} if isinstance(moved, move.Moved) else set()
        self.counted[f"conflicts in {', '.join(map(repr, sorted(conflicts)[:3]))}" if conflicts else "done"] += 1
        return True, conflicts

    def _look(self, before: State, after: State, conflicts: set[str]) -> None:
        """Compare the state after a move with the one before it."""
        world, work = self.world, self.work
        if after.ours - ({"conflicts"} if conflicts else set()):
            raise ViolationError(f"left in .git/patchlock: {after.ours}")
        wanted = self.which.branch and world.commits[self.which.branch]
        follows = wanted and not (self.which is MOVES["roll back"] and before.head != world.commits["main"])
        if after.head != (wanted if follows else before.head) or after.branch != before.branch:
            raise ViolationError(f"HEAD stands at {after.head} of {after.branch}")
        if after.stash != before.stash:
            raise ViolationError(f"the stash is {after.stash!r}")
        foreign = after.staged - before.staged - conflicts
        if foreign:
            raise ViolationError(f"staged, and not by the user: {foreign}")
        if not wanted:
            changed = {
                name for name in {*before.index, *after.index} if before.index.get(name) != after.index.get(name)
            }
            if _unmerged(before):  # what git had staged as a part of its own conflict is put right
                changed &= after.staged
            if odd := changed - conflicts - _unmerged(before):
                raise ViolationError(f"rows of the index changed: {odd}")
        for name, data in before.files.items():
            for word in work.words:
                if word.encode() in data[1] and word.encode() not in after.files.get(name, (0, b""))[1]:
                    raise ViolationError(f"{word} is gone from {name!r}: {after.files.get(name)!r}")
        for word in work.words:
            rows = {name: rows for name, rows in before.index.items() if name not in conflicts}
            if _is_staged(world.clone, rows, word) and not (
                _is_staged(world.clone, after.index, word)
                or any(word.encode() in data for _, data in after.files.values())
                or _is_kept(world.clone, word)
            ):
                where = [name for name in before.index if before.index[name] != after.index.get(name)]
                raise ViolationError(f"{word} was staged and is gone; rows that changed: {where}")
        for name in work.removed & after.files.keys() - before.files.keys() - conflicts:
            raise ViolationError(f"{name!r} had been removed with git, and is there again")
        fresh = self.fresh.files(world, is_patched=self.which.is_patched)
        if fresh is None:
            return
        touched = work.touched | conflicts | before.staged | _unmerged(before) | {"own.txt"}
        touched |= {name for name, data in before.files.items() if name not in fresh and name in work.touched}
        # Git carries an edit to where upstream has renamed the file.
        touched |= {name for name, (_, data) in before.files.items() if any(w.encode() in data for w in work.words)}
        for name in sorted({*fresh, *after.files} - touched):
            if fresh.get(name) != after.files.get(name):
                raise ViolationError(f"{name!r} is {after.files.get(name)!r}, in a fresh clone {fresh.get(name)!r}")

        for old, new in work.renamed.items() if self.which.branch and not conflicts else ():
            if old in fresh and new in after.files and after.files[new][1].splitlines() != fresh[old][1].splitlines():
                mine = [line for line in after.files[new][1].splitlines() if b"mine_" not in line]
                if mine != fresh[old][1].splitlines():
                    raise ViolationError(f"{new!r} is {after.files[new]!r}, not as {old!r} in a fresh clone")

    def _abort_and_resolve(self, before: State, conflicts: set[str]) -> None:
        """Take the move back and compare; then do it again, resolve it and go on."""
        clone = self.world.clone
        clone_patches.abort(trees.open_tree(clone))
        after = State.of(clone)
        ours = [row for row in before.refs if "refs/patchlock/" not in row or "/applied" in row]
        refs = [row for row in after.refs if "refs/patchlock/" not in row or "/applied" in row]
        replace(after, refs=refs).compare(replace(before, refs=ours), why="taken back, and yet")
        self.which.act(self.world)
        for name in conflicts:
            file = clone / name
            if file.is_file() and not file.is_symlink():
                set_text(file, re.sub(r"(?m)^(<{7} .*|={7}|\|{7} .*|>{7} .*)\r?\n", "", text_of(file)))
                file.touch()
            if self.work.random.random() < 0.5:
                any_git(clone, "add", "-A", "--", name)
        self.which.again(self.world)
        self._again(set())

    def _again(self, conflicts: set[str]) -> None:
        if not conflicts and not _unmerged(State.of(self.world.clone)):
            with contextlib.suppress(PatchlockError):
                before = State.of(self.world.clone)
                done = self.which.again(self.world)
                if isinstance(done, clone_patches.Applied) and (done.moved.written or done.moved.conflicts):
                    raise ViolationError(f"a second time, {done.moved}")
                State.of(self.world.clone).compare(before, why="a second time")

    def _words(self) -> None:
        if gone := [word for word in self.work.words if not self._is_there(word)]:
            raise ViolationError(f"{gone} is gone")

    def _is_there(self, word: str) -> bool:
        clone = self.world.clone
        if any(word.encode() in data for _, data in files_of(clone).values()):
            return True
        return any(word in text_of(file) for file in (clone / "module").rglob("*.py")) or _is_kept(clone, word)


def _unmerged(state: State) -> set[str]:
    return {name for name, rows in state.index.items() if any(not row.endswith(" 0") for row in rows)}


def _is_staged(clone: Path, index: dict[str, list[str]], word: str) -> bool:
    names = [row.split()[1] for rows in index.values() for row in rows if row.startswith("1")]
    stdin = "".join(f"{name}\n" for name in dict.fromkeys(names)).encode()
    return word in git(clone, "cat-file", "--batch", stdin=stdin)


def _is_kept(clone: Path, word: str) -> bool:
    """Tell whether git, or patchlock, has a word somewhere that the user can name."""
    names = git(clone, "stash", "list", "--format=%H").split()
    names += [f"{name}^{number}" for name in [*names] for number in (2, 3)]
    names += ["HEAD", "ORIG_HEAD", ":0"]
    for ref in ("refs/patchlock/before", "refs/patchlock/aborted"):
        names += any_git(clone, "log", "--format=%H", "--author=patchlock", ref).split()
    for file in ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"):
        path = clone / ".git" / file
        names += [path.read_text().strip()] if path.is_file() else []
    if _is_staged(clone, _rows(clone), word):
        return True
    return any(word in any_git(clone, "grep", "-a", word, name) for name in names if name != ":0" and ":" not in name)


# --- trials -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _copied(world: World) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        yield world.copy(Path(name) / "world")


def play(world: World, edits: list[tuple[str, str]], which: str, seed: int, fresh: Fresh) -> collections.Counter[str]:
    """Play one trial of some edits, each of a kind and a file."""
    with _copied(world) as one:
        work = Work(world=one, random=random.Random(seed))
        for kind, name in edits:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                EDITS[kind](work, name)
        return Trial(one, work, MOVES[which], fresh).run()


def product(only: str) -> Iterator[tuple[list[tuple[str, str]], str, int]]:
    """Give each kind of edit by each kind of move, the files taking turns."""
    for row, kind in enumerate(EDITS):
        for column, which in enumerate(MOVES):
            for number in range(3):
                name = NAMES[(row + column + 3 * number) % len(NAMES)]
                if re.search(only, f"{kind} | {which} | {name!r}") and (number == 0 or kind not in NAMELESS):
                    yield [(kind, name)], which, row * 100 + column


def by_seed(trials: int, first: int, each: int) -> Iterator[tuple[list[tuple[str, str]], str, int]]:
    """Give random edits of several files, each of which is a trial."""
    for seed in range(first, first + -(-trials // each)):
        chance = random.Random(seed)
        names = chance.sample([*NAMES, "link", "folder/one.py", "late.py"], each)
        yield [(chance.choice([*EDITS]), name) for name in names], chance.choice([*MOVES]), seed


def unpacked(world: World, kind: str, name: str, fresh: Fresh) -> None:
    """Edit a folder that is no clone, between two versions that the user unpacks over it."""
    clone = world.clone
    shutil.rmtree(clone)
    git(world.folder, "clone", "-q", "upstream.git", "clone")
    shutil.rmtree(clone / ".git")
    apply(world)
    work = Work(world=world, random=random.Random(0))
    EDITS[kind](work, name)
    mine = files_of(clone)
    for act in (apply, undo, apply):
        with contextlib.suppress(PatchlockError):
            act(world)
            there = files_of(clone)
            whole = b"".join(data for _, data in there.values())
            whole += b"".join(file.read_bytes() for file in (clone / "module").rglob("*.py"))
            if gone := [word for word in work.words if word.encode() not in whole]:
                raise ViolationError(f"{gone} is gone from a folder")
    is_open = bool(move.conflicted(trees.open_tree(clone)))
    for one in () if is_open else {*mine, *there} - work.touched:
        if mine.get(one) != there.get(one):
            raise ViolationError(f"{one!r} of a folder is {there.get(one)!r}, was {mine.get(one)!r}")
    if left := {path.name for path in (clone / ".patchlock" / "patchlock").iterdir() if path.is_dir()} - {"conflicts"}:
        raise ViolationError(f"left: {left}")


def histories(upstreams: Path, trials: int, first: int) -> Iterator[tuple[str, Callable[[], collections.Counter[str]]]]:
    """Give trials over the histories of the catalogue's upstreams."""
    apps = {}
    for app in Catalogue(root=ROOT).read_all()[0]:
        url = getattr(app.upstream, "url", "").removesuffix(".git")
        place = upstreams / "+".join(url.split("/")[-2:])
        if url and place.is_dir():
            apps[app.name] = place
    for seed in range(first, first + trials):
        chance = random.Random(seed)
        app = chance.choice(sorted(apps))
        which = chance.choice([name for name in MOVES if name != "force-push"])

        def run(
            app: str = app, which: str = which, chance: random.Random = chance, seed: int = seed
        ) -> collections.Counter[str]:
            with tempfile.TemporaryDirectory(prefix="trial-") as name:
                world = real(apps[app], app, Path(name) / "world", chance)
                try:
                    prepare(world)
                except PatchError:
                    return collections.Counter({"refused: patches do not fit": 1})
                patched = git(world.clone, "diff", "--name-only", "-z", "HEAD").split("\0")
                listed = [one for one in git(world.clone, "ls-files", "-z").split("\0") if one]
                files = [
                    one for one in listed if (world.clone / one).is_file() and not (world.clone / one).is_symlink()
                ]
                names = [*chance.sample(files, min(4, len(files))), *filter(None, patched[:3])]
                kinds = [kind for kind in EDITS if kind not in NAMELESS]
                work = Work(world=world, random=chance)
                for one in names:
                    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, RuntimeError):
                        EDITS[chance.choice(kinds)](work, one)
                return Trial(world, work, MOVES[which], Fresh()).run()

        yield f"{app} | {which} | seed {seed}", run


# --- command ----------------------------------------------------------------------------------------------------------


def main() -> int:
    """Play as many trials as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=0, help="random ones, instead of each edit by each move")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--upstreams", type=Path, help="folder of bare clones named `owner+name`")
    parser.add_argument("--only", default="", help="only trials in whose name this regular expression is found")
    parser.add_argument("--each", type=int, default=5, help="edits in one random trial")
    parser.add_argument("--part", default="0/1", help="which of how many parts, to run them beside each other")
    parser.add_argument("--renew", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    with tempfile.TemporaryDirectory(prefix="world-") as name:
        if arguments.renew:
            world = replace(miniature(Path(name) / "world"), folder=arguments.renew)
            apply(world)
            return 0
        fresh = Fresh()
        tasks: list[tuple[str, Callable[[], collections.Counter[str]]]] = []
        if arguments.upstreams:
            tasks = [*histories(arguments.upstreams, arguments.trials, arguments.first)]
        else:
            world = prepare(miniature(Path(name) / "world"))
            listed = (
                by_seed(arguments.trials, arguments.first, arguments.each)
                if arguments.trials
                else product(arguments.only)
            )
            for edits, which, seed in listed:
                title = f"{edits} | {which} | seed {seed}"
                tasks.append((title, lambda e=edits, w=which, s=seed: play(world, e, w, s, fresh)))  # type: ignore[misc]
            if not arguments.trials:
                tasks += [
                    (f"{kind} | unpacked", lambda k=kind: _unpacked(world, k, fresh))  # type: ignore[misc]
                    for kind in EDITS
                    if kind not in STAGING and re.search(arguments.only, f"{kind} | unpacked")
                ]
        return _tell(tasks[part::parts], each=arguments.each if arguments.trials and not arguments.upstreams else 1)


def _unpacked(world: World, kind: str, fresh: Fresh) -> collections.Counter[str]:
    with _copied(world) as one:
        unpacked(one, kind, "app.py", fresh)
    return collections.Counter({"unpacked": 1})


def _tell(tasks: list[tuple[str, Callable[[], collections.Counter[str]]]], each: int) -> int:
    counted: collections.Counter[str] = collections.Counter()
    started, violations = time.monotonic(), 0
    for title, task in tasks:
        try:
            counted += task()
        except Exception as error:  # a violation, or a crash, which is one too
            violations += 1
            print(f"VIOLATION {title}\n  {type(error).__name__}: {str(error)[:900]}", flush=True)
    print(f"{len(tasks) * each} trials in {time.monotonic() - started:.0f} s, {violations} violations")
    for name, count in sorted(counted.items()):
        print(f"  {name:<40} {count}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
