"""What a user does to his files, and what then happens to the tree, by git or by patchlock."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from patchlock.model.errors import PatchlockError
from patchlock.model.identities import CommitId
from patchlock.model.launchers import Starter
from patchlock.worktree import clone_patches, hooks, move, trees
from trials.worlds import LATIN, LINES, ROOT, World, any_git, apply, git, push, update

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
    renamed: dict[str, str] = field(default_factory=dict)
    """With git."""

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
        lines = text_of(file).splitlines(keepends=True)
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
        set_text(file, "".join(lines))

    def add(self, name: str) -> None:
        """Stage a file."""
        git(self.clone, "add", "--sparse", "--", name)
        self.staged.add(name)


def text_of(file: Path) -> str:
    """Read a file of any bytes."""
    return file.read_bytes().decode(errors="surrogateescape")


def set_text(file: Path, text: str) -> None:
    """Write what `text_of` reads."""
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
    set_text(work.clone / name, text_of(work.clone / name).replace(first, work.word()))


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
    work.renamed[name] = f"{name}.moved"
    if not (work.clone / f"{name}.moved").is_symlink():
        work.write(f"{name}.moved")


def _sparse(work: Work, name: str) -> None:
    """Leave a file out, which git leaves there if it is patched."""
    any_git(work.clone, "sparse-checkout", "set", "--no-cone", "/*", f"!/{name}", "!/notes.txt")


def _sparse_and_edited(work: Work, name: str) -> None:
    work.write(name)
    _sparse(work, name)


def _new(work: Work, name: str, where: str = "mine.py") -> None:
    file = work.clone / where
    file.parent.mkdir(exist_ok=True)
    work.touched.add(where)
    set_text(file, f"{work.word()} = 1\n")


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
    set_text(work.clone / name, text_of(work.clone / name).replace("\r\n", "\n").replace("\n", "\r\n"))


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
    "sparse": _sparse,
    "sparse and edited": _sparse_and_edited,
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
STAGING = {
    "sparse",
    "sparse and edited",
    "staged",
    "staged and edited again",
    "git rm",
    "git mv",
    "new staged",
    "intent to add",
}


NAMELESS = {
    *("none", "new", "new where upstream brings one", "new staged", "intent to add", "ignored", "in a submodule"),
    *("in a folder that becomes a file", "of a file that becomes a folder"),
}


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
    set_text(world.clone / "own.txt", "own\n")
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
    tree = trees.open_tree(world.clone)
    script = str(ROOT / "benchmarks" / "tree_moves.py")
    by = Starter(program=sys.executable, arguments=(script,), variables={}, anchor=script)
    hooks.install(tree, by, ["--renew", str(world.folder)])
    push(world, "next")
    any_git(world.clone, "pull", "-q", "--autostash")


def undo(world: World) -> move.Moved:
    """Take the patches out."""
    return clone_patches.undo(trees.open_tree(world.clone))


def _roll_back(world: World) -> move.Moved | None:
    """Go to an older patched commit, as a rollback does."""
    fresh = world.folder / "earlier"
    git(world.folder, "clone", "-q", "--shared", "upstream.git", fresh.name)
    git(fresh, "checkout", "-q", "--detach", world.commits["older"])
    done = clone_patches.apply(trees.open_tree(fresh), world.wanted, world.cache)
    target = done.applied if done else CommitId(git(fresh, "rev-parse", "refs/patchlock/applied"))
    git(world.clone, "fetch", "-q", str(fresh), "refs/patchlock/applied:refs/patchlock/incoming")
    return move.move(trees.open_tree(world.clone), target)


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
    "undo": Move(_nothing, undo, is_patched=False, again=_nothing),
    "undo, apply": Move(lambda world: contextlib.suppress(PatchlockError) and _undo_quietly(world), apply),
    "roll back": Move(_nothing, _roll_back, branch="older", again=_nothing),
    "hooks": Move(_hooks, apply),
    "apply": Move(_nothing, apply),
}


def _undo_quietly(world: World) -> None:
    with contextlib.suppress(PatchlockError):
        if undo(world).conflicts:
            clone_patches.abort(trees.open_tree(world.clone))
