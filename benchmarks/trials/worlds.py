"""Upstreams for trials, a miniature and random commits of real ones, each with a patched clone of the user's."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.reader import Catalogue
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.identities import Sha256
from patchlock.worktree import clone_patches, patch_sets, trees
from patchlock.worktree.upstream_files import PatchSet

ROOT = Path(__file__).parent.parent.parent
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


def patch_set() -> PatchSet:
    """Give the one patch of the trials."""
    patches = _apps_and_profiles.patches(Table(tomllib.loads(PATCHES), Report(file="trials", text="")), None)
    folder = PurePosixPath()
    return PatchSet(name="trials", profile="", patches=patches, digest=Sha256("0" * 64), directory=folder, seen=None)


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
    git(folder, "clone", "-q", "--bare", "source", "upstream.git")
    shutil.rmtree(source)
    return World(folder=folder, wanted=patch_set(), commits=commits)


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
    return clone_patches.apply(trees.open_tree(world.clone), world.wanted, world.cache)


def update(world: World) -> clone_patches.Applied | None:
    """Bring the clone to upstream's newest commit."""
    return clone_patches.update(trees.open_tree(world.clone), world.wanted, world.cache)


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
