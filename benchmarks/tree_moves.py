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
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer")]

from patchlock.catalogue import _apps_and_profiles  # noqa: E402
from patchlock.catalogue.reader import Catalogue  # noqa: E402
from patchlock.catalogue.table_reader import Report, Table  # noqa: E402
from patchlock.model.errors import (  # noqa: E402
    GitFirstError,
    NotPatchedError,
    PatchError,
    PatchlockError,
    SourceConflictError,
    UnsafePathError,
    UpstreamError,
)
from patchlock.model.identities import CommitId, Sha256  # noqa: E402
from patchlock.worktree import clone_patches, hooks, move, patch_sets  # noqa: E402
from patchlock.worktree.upstream_files import PatchSet  # noqa: E402

PATCHES = """
[[patch]]
id = "choose"
why = "w"
source = "s"
op = "replace-expression"
paths = ["**/*.py"]
literal = ["cuda"]
pattern = '"cuda"'
replacement = "choose()"
[[patch.ensure]]
check = "no-string"
value = "cuda"
"""
_ENV = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_EDITOR": "true",
}
_USER = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "gc.auto=0", "-c", "protocol.file.allow=always")
LATIN, LINES = os.fsdecode(b"caf\xe9.py"), "two\nlines.py"


_REFUSALS = (GitFirstError, NotPatchedError, PatchError, SourceConflictError, UnsafePathError, UpstreamError)


class ViolationError(AssertionError):
    """A promise was broken."""


def git(folder: Path, *words: str, allowed: tuple[int, ...] = (0,), stdin: bytes = b"") -> str:
    """Run git as the user does."""
    done = subprocess.run(
        ["git", "-C", folder, *_USER, *words], capture_output=True, check=False, env=os.environ | _ENV, input=stdin
    )
    if done.returncode not in allowed:
        raise RuntimeError(f"git {words}: {done.stderr.decode(errors='replace')}{done.stdout.decode(errors='replace')}")
    return os.fsdecode(done.stdout).strip("\n")


def any_git(folder: Path, *words: str) -> str:
    """Run git where it may refuse, as it would for the user."""
    return git(folder, *words, allowed=tuple(range(256)))


# --- upstreams --------------------------------------------------------------------------------------------------------


def body(name: str, *changed: tuple[int, str], lines: int = 24) -> str:
    """Write a file like no other, so that git takes none for a renamed one, with a patched line in its middle."""
    text = {number: f"line{number} = {name!r}" for number in range(lines)}
    text[12] = 'device = "cuda"'
    return "\n".join((text | dict(changed))[number] for number in range(lines)) + "\n"


@dataclass(frozen=True)
class World:
    """An upstream, and a clone of it with patches, that trials are copies of."""

    folder: Path
    wanted: PatchSet
    commits: dict[str, str]
    """`main`, where the clone stands; `next` after it, `forced` beside it, `dev` of another branch, `older`."""

    @property
    def clone(self) -> Path:
        """The user's clone."""
        return self.folder / "clone"

    @property
    def upstream(self) -> Path:
        """Upstream's own repository."""
        return self.folder / "upstream.git"

    @property
    def cache(self) -> Path:
        """What patchlock keeps between runs."""
        return self.folder / "cache"

    def copy(self, folder: Path) -> World:
        """Make a world of its own for one trial."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return replace(self, folder=folder)


def miniature(folder: Path) -> World:  # noqa: PLR0915 - one upstream, file by file
    """Make an upstream of a dozen files of every kind, and a clone."""
    module, source = folder / "module", folder / "source"
    for place in (module, source):
        place.mkdir(parents=True)
        git(place, "init", "-q", "-b", "main")
    (module / "inner.py").write_text("inner = 1\n")
    _commit(module)
    git(source, "submodule", "-q", "add", "../module", "module")
    git(source, "config", "-f", ".gitmodules", "submodule.module.url", "../module")
    for name in ("app.py", "lib.py", "with space.py", LATIN, LINES, "folder/one.py", "shape", "gone.py"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(body(name.encode(errors="replace").decode()))
    for name in ("plain.txt", "notes.txt"):
        (source / name).write_text(body(name).replace('"cuda"', "1"))
    (source / "link").symlink_to("app.py")
    (source / "tool.sh").write_text("#!/bin/sh\n" + body("tool").replace('"cuda"', "3"))
    (source / "tool.sh").chmod(0o755)
    (source / ".gitignore").write_text("*.log\n")
    commits = {"older": _commit(source)}
    (source / "lib.py").write_text(body("lib.py", (20, "line20 = 'main'")))
    (source / "late.py").write_text(body("late"))
    commits["main"] = _commit(source)
    git(source, "branch", "dev")
    for name in ("app.py", "lib.py", "with space.py", LATIN, LINES, "plain.txt", "tool.sh"):
        text = (source / name).read_text()
        (source / name).write_text(text.replace("line18 = ", "line18 = 'next' + ") + 'end = "cuda"\n')
    (source / "notes.txt").chmod(0o755)
    (source / "link").unlink()
    (source / "link").symlink_to("lib.py")
    (source / "new link").symlink_to("lib.py")
    (source / "new.py").write_text(body("new"))
    (source / "gone.py").unlink()
    (source / "shape").unlink()
    (source / "shape").mkdir()
    (source / "shape" / "inner.py").write_text(body("inner"))
    shutil.rmtree(source / "folder")
    (source / "folder").write_text("a file now\n")
    (module / "inner.py").write_text("inner = 2\n")
    _commit(module)
    git(source / "module", "pull", "-q")
    commits["next"] = _commit(source)
    git(source, "checkout", "-q", "--force", "dev")
    git(source / "module", "checkout", "-q", "HEAD~1")
    (source / "app.py").write_text(body("app.py", (2, "line2 = 'dev'"), (22, 'other = "cuda"')))
    (source / "folder" / "dev.py").write_text(body("dev"))
    (source / "plain.txt").unlink()
    commits["dev"] = _commit(source)
    git(source, "checkout", "-q", commits["older"])
    (source / "app.py").write_text(body("app.py", (3, "line3 = 'forced'")))
    (source / "link").unlink()
    (source / "link").write_text("a file now\n")
    (source / "tool.sh").chmod(0o644)
    commits["forced"] = _commit(source)
    git(source, "checkout", "-q", "main")
    git(source, "branch", "forced", commits["forced"])
    root = Table(tomllib.loads(PATCHES), Report(file="trials", text=""))
    patches = _apps_and_profiles.patches(root, None)
    wanted = PatchSet(
        name="trials", profile="", patches=patches, digest=Sha256("0" * 64), directory=PurePosixPath(), seen=None
    )
    git(folder, "clone", "-q", "--bare", "source", "upstream.git")
    shutil.rmtree(source)
    return World(folder=folder, wanted=wanted, commits=commits)


def prepare(world: World) -> World:
    """Clone, bring the branch to `main`, and patch."""
    for name in ("next", "forced", "older"):  # kept from git's clean-up, whatever the branch is
        git(world.upstream, "update-ref", f"refs/kept/{name}", world.commits[name])
    git(world.upstream, "update-ref", "refs/heads/main", world.commits["main"])
    git(world.folder, "clone", "-q", "--recurse-submodules", "upstream.git", "clone")
    for key, value in (("remote.origin.url", "../upstream.git"), ("user.name", "x"), ("user.email", "x@localhost")):
        git(world.clone, "config", key, value)
    apply(world)
    return world


def _commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return git(folder, "rev-parse", "HEAD")


def push(world: World, name: str) -> None:
    """Let upstream's branch stand elsewhere."""
    git(world.upstream, "update-ref", "refs/heads/main", world.commits[name])


def apply(world: World) -> clone_patches.Applied | None:
    """Renew the patches."""
    return clone_patches.apply(clone_patches.open_tree(world.clone), world.wanted, world.cache)


def update(world: World) -> clone_patches.Applied | None:
    """Bring the clone to upstream's newest commit."""
    return clone_patches.update(clone_patches.open_tree(world.clone), world.wanted, world.cache)


# --- what the user does -----------------------------------------------------------------------------------------------


@dataclass
class Work:
    """What the user has done."""

    world: World
    random: random.Random
    touched: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    staged: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    """With git: they stay away."""

    @property
    def clone(self) -> Path:
        """Where he works."""
        return self.world.clone

    def word(self) -> str:
        """Invent a word that nobody else writes."""
        self.words.append(f"mine_{len(self.words)}_{self.random.randrange(10**9):09d}_e")
        return self.words[-1]

    def write(self, name: str, where: str = "top") -> None:
        """Change a file, somewhere."""
        file = self.clone / name
        self.touched |= {name, str(file.readlink())} if file.is_symlink() else {name}
        lines = _text(file).splitlines(keepends=True)
        patched = [number for number, line in enumerate(lines) if "choose()" in line]
        at = {
            "top": min(1, len(lines)),
            "patched": patched[0] if patched else len(lines) // 2,
            "beside": min(17, len(lines)),
        }[where]
        newline = "\r\n" if "\r\n" in "".join(lines) else "\n"
        if where == "patched" and lines:
            lines[at] = lines[at].rstrip("\r\n") + f"  # {self.word()}{newline}"
        else:
            lines[at:at] = [f"{self.word()} = 1{newline}"]
        _set(file, "".join(lines))

    def add(self, name: str) -> None:
        """Stage a file."""
        git(self.clone, "add", "--", name)
        self.staged.add(name)


def _text(file: Path) -> str:
    return file.read_bytes().decode(errors="surrogateescape")


def _set(file: Path, text: str) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))


def _unstaged(work: Work, name: str) -> None:
    work.write(name)


def _staged(work: Work, name: str) -> None:
    work.write(name)
    work.add(name)


def _staged_and_edited(work: Work, name: str) -> None:
    work.write(name)
    work.add(name)
    first = work.words[-1]
    _set(work.clone / name, _text(work.clone / name).replace(first, work.word()))


def _rm(work: Work, name: str) -> None:
    (work.clone / name).unlink()
    work.touched.add(name)


def _git_rm(work: Work, name: str) -> None:
    git(work.clone, "rm", "-q", "-f", "--", name)
    work.touched.add(name)
    work.staged.add(name)
    work.removed.add(name)


def _git_mv(work: Work, name: str) -> None:
    git(work.clone, "mv", "--", name, f"{name}.moved")
    work.touched |= {name, f"{name}.moved"}
    work.staged |= {name, f"{name}.moved"}
    work.removed.add(name)
    work.write(f"{name}.moved")


def _new(work: Work, name: str, where: str = "mine.py") -> None:
    file = work.clone / where
    file.parent.mkdir(exist_ok=True)
    work.touched.add(where)
    _set(file, f"{work.word()} = 1\n")


def _new_where_upstream_brings_one(work: Work, name: str) -> None:
    _new(work, name, "new.py")


def _new_staged(work: Work, name: str) -> None:
    _new(work, name)
    work.add("mine.py")


def _intent(work: Work, name: str) -> None:
    _new(work, name)
    git(work.clone, "add", "-N", "mine.py")
    work.staged.add("mine.py")


def _chmod(work: Work, name: str) -> None:
    file = work.clone / name
    file.chmod(file.stat().st_mode ^ 0o111)
    work.touched |= {name, str(file.readlink())} if file.is_symlink() else {name}


def _crlf(work: Work, name: str) -> None:
    work.write(name)
    _set(work.clone / name, _text(work.clone / name).replace("\r\n", "\n").replace("\n", "\r\n"))


def _linked(work: Work, name: str) -> None:
    (work.clone / name).unlink()
    (work.clone / name).symlink_to(work.word())
    work.touched.add(name)


def _patched_line(work: Work, name: str) -> None:
    work.write(name, "patched")


def _beside_upstreams(work: Work, name: str) -> None:
    work.write(name, "beside")


def _ignored(work: Work, name: str) -> None:
    _new(work, name, "mine.log")


def _in_submodule(work: Work, name: str) -> None:
    if (work.clone / "module").is_dir():
        _new(work, name, "module/inner.py")


def _in_folder(work: Work, name: str) -> None:
    """A file of the user's in a folder that upstream makes a file of."""
    _new(work, name, "folder/mine.py")


def _over_folder(work: Work, name: str) -> None:
    """An edit of a file that upstream makes a folder of."""
    if (work.clone / "shape").is_file():
        work.write("shape")


def _binary(work: Work, name: str) -> None:
    file = work.clone / name
    work.touched |= {name, str(file.readlink())} if file.is_symlink() else {name}
    file.write_bytes(b"\0\1\2" + work.word().encode() + b"\0")


EDITS: dict[str, Callable[[Work, str], None]] = {
    "none": lambda _work, _name: None,
    "unstaged": _unstaged,
    "staged": _staged,
    "staged and edited again": _staged_and_edited,
    "rm": _rm,
    "git rm": _git_rm,
    "git mv": _git_mv,
    "new": _new,
    "new where upstream brings one": _new_where_upstream_brings_one,
    "new staged": _new_staged,
    "intent to add": _intent,
    "chmod": _chmod,
    "CRLF": _crlf,
    "link": _linked,
    "patched line": _patched_line,
    "beside upstream's line": _beside_upstreams,
    "ignored": _ignored,
    "in a submodule": _in_submodule,
    "in a folder that becomes a file": _in_folder,
    "of a file that becomes a folder": _over_folder,
    "binary": _binary,
}
NAMES = ("app.py", "plain.txt", "lib.py", "notes.txt", "gone.py", "with space.py", LATIN, LINES, "tool.sh")
STAGING = {"staged", "staged and edited again", "git rm", "git mv", "new staged", "intent to add"}


# --- moves ------------------------------------------------------------------------------------------------------------

Act = Callable[[World], object]


def _nothing(world: World) -> None:
    pass


def _pull_autostash(world: World) -> None:
    push(world, "next")
    any_git(world.clone, "pull", "-q", "--rebase", "--autostash")


def _stash_pull_pop(world: World) -> None:
    push(world, "next")
    any_git(world.clone, "stash", "-q")
    any_git(world.clone, "pull", "-q")
    any_git(world.clone, "stash", "pop", "-q")


def _own_commit(world: World) -> None:
    """Commit something beside the patches, as a user with a fork does."""
    _set(world.clone / "own.txt", "own\n")
    any_git(world.clone, "add", "own.txt")
    any_git(world.clone, "commit", "-q", "-m", "own", "--", "own.txt")


def _merge(world: World) -> None:
    _own_commit(world)
    push(world, "next")
    any_git(world.clone, "pull", "-q", "--no-rebase", "--autostash", "--no-edit")


def _rebase(world: World) -> None:
    _own_commit(world)
    push(world, "next")
    any_git(world.clone, "pull", "-q", "--rebase", "--autostash")


def _switch(world: World) -> None:
    any_git(world.clone, "stash", "-q")
    any_git(world.clone, "switch", "-q", "dev")
    any_git(world.clone, "stash", "pop", "-q")


def _hooks(world: World) -> None:
    tree = clone_patches.open_tree(world.clone)
    hooks.install(tree, [sys.executable, str(Path(__file__).resolve()), "--renew", str(world.folder)])
    push(world, "next")
    any_git(world.clone, "pull", "-q", "--autostash")


def _undo(world: World) -> move.Moved:
    return clone_patches.undo(clone_patches.open_tree(world.clone))


def _roll_back(world: World) -> move.Moved | None:
    """Go to an older patched commit, as a rollback does."""
    fresh = world.folder / "earlier"
    git(world.folder, "clone", "-q", "--shared", "upstream.git", fresh.name)
    git(fresh, "checkout", "-q", "--detach", world.commits["older"])
    done = clone_patches.apply(clone_patches.open_tree(fresh), world.wanted, world.cache)
    target = done.applied if done else CommitId(git(fresh, "rev-parse", "refs/patchlock/applied"))
    git(world.clone, "fetch", "-q", str(fresh), "refs/patchlock/applied:refs/patchlock/incoming")
    return move.move(clone_patches.open_tree(world.clone), target)


@dataclass(frozen=True)
class Move:
    """What happens to the tree."""

    before: Act
    """By git."""
    act: Act
    """By patchlock."""
    branch: str = ""
    """Where the branch is brought by patchlock; "" where it stays."""
    is_patched: bool = True
    """What there is afterwards."""
    again: Act = apply
    head: str = ""


def _pushed(name: str) -> Act:
    return lambda world: push(world, name)


MOVES = {
    "update": Move(_pushed("next"), update, branch="next", again=update),
    "pull --rebase --autostash": Move(_pull_autostash, apply),
    "stash, pull, pop": Move(_stash_pull_pop, apply),
    "merge": Move(_merge, apply),
    "rebase": Move(_rebase, apply),
    "force-push": Move(_pushed("forced"), update, branch="forced", again=update),
    "switch": Move(_switch, apply),
    "undo": Move(_nothing, _undo, is_patched=False, again=_nothing),
    "undo, apply": Move(lambda world: contextlib.suppress(PatchlockError) and _undo_quietly(world), apply),
    "roll back": Move(_nothing, _roll_back, branch="older", again=_nothing),
    "hooks": Move(_hooks, apply),
    "apply": Move(_nothing, apply),
}


def _undo_quietly(world: World) -> None:
    with contextlib.suppress(PatchlockError):
        if _undo(world).conflicts:
            clone_patches.abort(clone_patches.open_tree(world.clone))


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
                    clone_patches.apply(clone_patches.open_tree(place), world.wanted, world.cache)
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

    def _abort_and_resolve(self, before: State, conflicts: set[str]) -> None:
        """Take the move back and compare; then do it again, resolve it and go on."""
        clone = self.world.clone
        clone_patches.abort(clone_patches.open_tree(clone))
        after = State.of(clone)
        ours = [row for row in before.refs if "refs/patchlock/" not in row or "/applied" in row]
        refs = [row for row in after.refs if "refs/patchlock/" not in row or "/applied" in row]
        replace(after, refs=refs).compare(replace(before, refs=ours), why="taken back, and yet")
        self.which.act(self.world)
        for name in conflicts:
            file = clone / name
            if file.is_file() and not file.is_symlink():
                _set(file, re.sub(r"(?m)^(<{7} .*|={7}|\|{7} .*|>{7} .*)\r?\n", "", _text(file)))
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
        return any(word in _text(file) for file in (clone / "module").rglob("*.py")) or _is_kept(clone, word)


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
                if re.search(only, f"{kind} | {which} | {name!r}") and (number == 0 or kind not in _NAMELESS):
                    yield [(kind, name)], which, row * 100 + column


_NAMELESS = {
    *("none", "new", "new where upstream brings one", "new staged", "intent to add", "ignored", "in a submodule"),
    *("in a folder that becomes a file", "of a file that becomes a folder"),
}


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
    for act in (apply, _undo, apply):
        with contextlib.suppress(PatchlockError):
            act(world)
            there = files_of(clone)
            whole = b"".join(data for _, data in there.values())
            whole += b"".join(file.read_bytes() for file in (clone / "module").rglob("*.py"))
            if gone := [word for word in work.words if word.encode() not in whole]:
                raise ViolationError(f"{gone} is gone from a folder")
    is_open = bool(move.conflicted(clone_patches.open_tree(clone)))
    for one in () if is_open else {*mine, *there} - work.touched:
        if mine.get(one) != there.get(one):
            raise ViolationError(f"{one!r} of a folder is {there.get(one)!r}, was {mine.get(one)!r}")
    if left := {path.name for path in (clone / ".patchlock" / "patchlock").iterdir() if path.is_dir()} - {"conflicts"}:
        raise ViolationError(f"left: {left}")


# --- real upstreams ---------------------------------------------------------------------------------------------------


def real(place: Path, app: str, folder: Path, chance: random.Random) -> World:
    """Make a world of two random commits of an upstream, one of them before the other."""
    listed = git(place, "rev-list", "--first-parent", "HEAD").split()
    newer, older, other = sorted(chance.sample(range(len(listed)), 3))
    names = {"next": newer, "main": older, "older": other}
    folder.mkdir(parents=True)
    git(folder, "clone", "-q", "--bare", "--shared", str(place), "scratch.git")
    git(folder, "init", "-q", "--bare", "-b", "main", "upstream.git")
    commits: dict[str, str] = {}
    for name in ("older", "main", "next"):
        commits[name] = _without_missing(folder / "scratch.git", listed[names[name]], list(commits.values())[-1:])
    commits["forced"] = commits["dev"] = commits["older"]
    git(folder / "scratch.git", "push", "-q", "../upstream.git", *(f"{commits[n]}:refs/kept/{n}" for n in names))
    git(folder / "upstream.git", "update-ref", "refs/heads/dev", commits["dev"])
    shutil.rmtree(folder / "scratch.git")
    catalogue = Catalogue(root=ROOT)
    return World(folder=folder, wanted=patch_sets.of_app(catalogue, app, "cpu"), commits=commits)


def _without_missing(repository: Path, commit: str, parents: list[str]) -> str:
    """Make a commit of the files that a clone without large ones has."""
    asked = ("rev-list", "--objects", "--missing=print", "--no-object-names", "--no-walk", commit)
    missing = {row[1:] for row in git(repository, *asked).splitlines() if row.startswith("?")}
    rows = [row for row in git(repository, "ls-tree", "-r", "-z", commit).split("\0") if row]
    kept = "".join(f"{row}\0" for row in rows if row.split()[2] not in missing and " commit " not in row[:14])
    index = {"GIT_INDEX_FILE": str(repository / "index.trial")}
    words = [*_USER, "-C", str(repository)]
    for arguments, stdin in (
        (("read-tree", "--empty"), b""),
        (("update-index", "-z", "--index-info"), os.fsencode(kept)),
    ):
        subprocess.run(["git", *words, *arguments], env=os.environ | _ENV | index, input=stdin, check=True)
    done = subprocess.run(
        ["git", *words, "write-tree"], env=os.environ | _ENV | index, check=True, capture_output=True, text=True
    )
    return git(repository, "commit-tree", done.stdout.strip(), "-m", "files", *(w for p in parents for w in ("-p", p)))


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
                kinds = [kind for kind in EDITS if kind not in _NAMELESS]
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
