"""A working tree and the commits behind it: read and write single files, nothing outside the tree; moves no branch."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import command_lines, file_lock, process
from patchlock.model.errors import CommandFailedError, GitFirstError, UnsafePathError, UpstreamError, UsageError
from patchlock.model.identities import CommitId
from patchlock.worktree.upstream_cache import blobs, commit_of, git, quoted, rows

OURS = "patchlock@localhost"
"""Author of the commits that patchlock makes."""
_REFS = "refs/patchlock"
_LOCK = "lock"
PRIVATE = ".patchlock"
"""The folder of ours in a folder that is no clone."""


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A folder of the user's with upstream's files, and the repository that remembers what we did there."""

    root: Path
    repository: Path
    """The folder itself where it is a git clone; a repository of ours inside it otherwise."""
    refs: str = _REFS
    """What the names of our refs for this tree begin with; each linked worktree has its own."""

    @property
    def is_clone(self) -> bool:
        """The folder is a git clone of the user's."""
        return self.root == self.repository

    def ref(self, name: str) -> str:
        """Give the full name of a ref of ours: `applied`, `pending`, …; see `moving`."""
        return f"{self.refs}/{name}"

    @property
    def has_repository(self) -> bool:
        """There is a repository already: the folder is a clone, or patches were applied there before."""
        return self.is_clone or (self.repository / "HEAD").is_file()


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a commit or git's index says of one path."""

    mode: str
    """Six digits, as git writes them: 100644, 100755 for a program, 120000 for a link, 160000 for a submodule."""
    blob: str
    """Id of the blob, or of the submodule's commit."""

    def row(self, stage: int = 0) -> str:
        """Write it as git's index lists it."""
        return f"{self.mode} {self.blob} {stage}"

    @property
    def is_file(self) -> bool:
        """It is a regular file."""
        return self.mode in {"100644", "100755"}

    @property
    def is_submodule(self) -> bool:
        """It is a commit of another repository."""
        return self.mode == "160000"

    @property
    def is_executable(self) -> bool:
        """It is a program."""
        return self.mode == "100755"


Entries = Mapping[PurePosixPath, Entry]
"""By path from the root of the tree."""


@contextlib.contextmanager
def hold(tree: Tree, *, wait: float = 60, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep every other patchlock away from a tree.

    Args:
        tree: the tree.
        wait: seconds to wait for another patchlock there.
        waiting: called once, when there is another one.

    Raises:
        BusyError: another one works there, and did not end in time.
    """
    # A folder that is no clone has no repository yet when it is patched for the first time.
    file = repository_file(tree.repository, _LOCK) if tree.is_clone else tree.repository / "patchlock" / _LOCK
    with file_lock.hold(file, wait=wait, waiting=waiting, folder=tree.root):
        yield


def refs_of(clone: Path) -> str:
    """Say what the names of our refs in a clone begin with.

    Linked worktrees share one store of refs. Git's own `refs/worktree` would be theirs alone, but `git gc` in another
    worktree removes what only these refs name (seen with git 2.39).
    """
    if (clone / ".git").is_dir():
        return _REFS
    own, common = git("rev-parse", "--git-dir", "--git-common-dir", repository=clone).text.splitlines()
    is_linked = (clone / own).resolve() != (clone / common).resolve()
    return f"{_REFS}/worktrees/{Path(own).name}" if is_linked else _REFS


@contextlib.contextmanager
def refs_kept(repository: Path, *patterns: str) -> Iterator[None]:
    """Put refs back as they were where git has to do something first, such as those that a fetch has moved.

    Args:
        repository: where.
        patterns: the refs, as `git for-each-ref` takes them; those that name another ref are left out.
    """

    def listed() -> dict[str, str]:
        form = "--format=%(refname) %(objectname) %(symref)"
        rows = git("for-each-ref", form, *patterns, repository=repository).text.splitlines()
        return {name: commit for name, commit, symref in (row.split(" ") for row in rows) if not symref}

    before = listed()
    try:
        yield
    except GitFirstError:
        now = listed()
        rows = [f"update {name} {commit}\n" for name, commit in before.items() if now.get(name) != commit]
        rows += [f"delete {name}\n" for name in now if name not in before]
        git("update-ref", "--stdin", repository=repository, stdin="".join(rows).encode())
        raise


@functools.lru_cache(maxsize=16)  # a repository stays in its format
def object_format(repository: Path) -> str:
    """Say by which digest a repository names its objects: `sha1` or `sha256`."""
    return git("rev-parse", "--show-object-format", repository=repository).text


def is_ancestor(repository: Path, old: CommitId, new: CommitId) -> bool:
    """Tell whether a commit is another one, or stands before it."""
    done = git("merge-base", "--is-ancestor", old, new, repository=repository, allowed=(0, 1))
    return done.returncode == 0


@functools.lru_cache(maxsize=64)  # a commit stays what it is
def upstream_of(repository: Path, commit: CommitId) -> CommitId:
    """Name the parent of a patched commit, which is upstream's; a commit of upstream itself is its own."""
    author, _, parents = git("show", "-s", "--format=%ae%n%P", commit, repository=repository).text.partition("\n")
    return CommitId(parents.split()[0]) if author == OURS and parents.strip() else commit


@functools.lru_cache(maxsize=16)
def everything(repository: Path, commit: CommitId | None) -> Entries:
    """List all that a commit has, links and submodules too; nothing where there is no commit.

    Raises:
        UnsafePathError: a path leaves the tree or points into a repository's own folder.
    """
    found: dict[PurePosixPath, Entry] = {}
    if commit is None:
        return found
    for mode, blob, path in rows(repository, commit):
        require_inside(path)
        found[path] = Entry(mode=mode, blob=blob)
    return found


def entries(repository: Path, commit: CommitId | None) -> Entries:
    """List the regular files of a commit; links and submodules are left out, as is all where there is no commit.

    Raises:
        UnsafePathError: a path leaves the tree or points into a repository's own folder.
    """
    return {path: entry for path, entry in everything(repository, commit).items() if entry.is_file}


def contents(repository: Path, listed: Iterable[Entry]) -> dict[str, bytes]:
    """Read the bytes of entries: blob id → bytes."""
    return blobs(repository, {entry.blob for entry in listed})


def content(repository: Path, entry: Entry) -> bytes:
    """Read the bytes of an entry."""
    return contents(repository, [entry])[entry.blob]


def require_inside(path: PurePosixPath) -> None:
    """Refuse a path that git itself would never check out.

    Raises:
        UnsafePathError: it leaves the tree or points into a repository's own folder.
    """
    if path.is_absolute() or any(part == ".." or part.lower().rstrip(". ") == ".git" for part in path.parts):
        raise UnsafePathError(
            f"the repository holds the path {path}, which leaves the tree or changes git's own files",
            remedy="do not use this clone, and tell its owner",
        )


def read(tree: Tree, path: PurePosixPath) -> bytes | None:
    """Read a file of the working tree; None where there is no regular file, but a link, a folder or nothing.

    Raises:
        UnsafePathError: a folder on the way is a link out of the tree.
    """
    file = _place(tree, path)
    return file.read_bytes() if file.is_file() and not file.is_symlink() else None


def exists(tree: Tree, path: PurePosixPath) -> bool:
    """Tell whether anything is there: a file, a folder, or a link, also a broken one."""
    return os.path.lexists(tree.root / path)


def _place(tree: Tree, path: PurePosixPath) -> Path:
    require_inside(path)
    parent = (tree.root / path).parent
    if not parent.resolve().is_relative_to(tree.root.resolve()):
        raise UnsafePathError(
            f"{path} is behind a link that leaves the tree",
            where=str(tree.root),
            remedy=f"replace the link by a folder: {path.parent}",
        )
    return tree.root / path


def commit_files(
    repository: Path,
    files: Mapping[PurePosixPath, bytes | None],
    *,
    parent: CommitId | None,
    message: str,
    ref: str,
    executable: Collection[PurePosixPath] = (),
) -> CommitId:
    """Write files over the tree of a parent as a commit of ours; the same content gives the same id everywhere.

    Args:
        repository: where.
        files: by path from the root; None removes one.
        parent: the commit whose tree is the base and whose date is taken; None for a first commit of 1970.
        message: what was done, for a person.
        ref: full name of the ref that will hold the commit.
        executable: new files that can be run; a file of the parent keeps what it was.
    """
    modes = {path: mode for mode, _, path in rows(repository, parent)} if parent else {}
    seconds = git("show", "-s", "--format=%ct", parent, repository=repository).text if parent else "0"
    stream = [
        f"reset {ref}\ncommit {ref}\nmark :1\ncommitter patchlock <{OURS}> {seconds} +0000\n".encode(),
        _data(message.encode(errors="backslashreplace")),
        f"from {parent}\n".encode() if parent else b"",
    ]
    for path, data in files.items():
        if data is None:
            stream.append(b"D %s\n" % quoted(path))
            continue
        is_executable = modes[path] == "100755" if path in modes else path in executable
        stream += [b"M %s inline %s\n" % (b"100755" if is_executable else b"100644", quoted(path)), _data(data)]
    stream.append(b"get-mark :1\n")
    done = git("fast-import", "--quiet", "--force", repository=repository, stdin=b"".join(stream))
    return CommitId(done.text)


def stored_file(tree: Tree, data: bytes, mode: str) -> Entry:
    """Put bytes into a repository as they are, as a file of that mode."""
    blob = git("hash-object", "-w", "--stdin", repository=tree.repository, stdin=data).text
    return Entry(mode=mode, blob=blob)


def _data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def open_tree(folder: Path) -> Tree:
    """Find out what kind of folder it is.

    Raises:
        UsageError: there is no such folder.
        UpstreamError: it has no working tree, or git does not trust its owner.
    """
    root = folder.expanduser().resolve()
    if not root.is_dir():
        what = "it is a file, and no folder" if root.exists() else "there is no such folder"
        raise UsageError(what, where=str(folder), remedy="name the folder of the clone")
    _require_trusted(root)
    try:
        inside = git("rev-parse", "--is-inside-work-tree", repository=root, allowed=(0, 128))
        top = git("rev-parse", "--show-toplevel", repository=root, allowed=(0, 128)).text
    except CommandFailedError as error:
        raise UpstreamError("git cannot read this clone", where=str(root), evidence=error.evidence) from error
    if inside.returncode == 0 and inside.text == "false":
        raise UpstreamError(
            "it is a repository without a working tree",
            where=str(root),
            remedy=f"make one: `git clone {command_lines.quoted(str(root))} CLONE`, and patch that",
        )
    if not top and (root / ".git").exists():
        raise UpstreamError("git cannot read this clone", where=str(root), remedy="`git status` there says why")
    if top and Path(top).resolve() != root and git("ls-files", "--", ".", repository=root).stdout:
        raise UpstreamError(
            "it is a folder inside a clone",
            where=str(root),
            remedy=f"name the clone itself: --source {command_lines.quoted(top)}",
        )
    is_clone = bool(top) and Path(top).resolve() == root
    if is_clone and commit_of(root, "HEAD") is None:
        raise UpstreamError("the clone has no commit yet", where=str(root), remedy="check out upstream's branch")
    if not is_clone:
        return Tree(root=root, repository=root / PRIVATE)
    return Tree(root=root, repository=root, refs=refs_of(root))


def _require_trusted(root: Path) -> None:
    """Refuse a clone of somebody else's, whose filters would run here, where the user's own git refuses it."""
    if sys.platform == "win32" or not (root / ".git").exists():
        return
    if {(root / name).lstat().st_uid for name in ("", ".git")} == {os.geteuid()}:
        return
    env = process.environment({"LC_ALL": "C"})
    asked = process.run("git", "rev-parse", "--git-dir", cwd=root, env=env, allowed=(0, 128))
    if "dubious ownership" in asked.stderr:
        raise UpstreamError(
            "the clone belongs to somebody else, whose settings could run programs, so git refuses it",
            where=str(root),
            remedy=f"if you trust it: `git config --global --add safe.directory {command_lines.quoted(str(root))}`",
        )


def git_dir(tree: Tree) -> Path:
    """Name the private folder of a tree's repository: `.git`, that of a linked worktree, or ours."""
    if not tree.is_clone or (tree.root / ".git").is_dir():
        return tree.root / ".git" if tree.is_clone else tree.repository
    return Path(git("rev-parse", "--absolute-git-dir", repository=tree.root).text)


def repository_file(repository: Path, name: str) -> Path:
    """Give a file of ours in a repository's private folder, which exists then."""
    folder = Path(git("rev-parse", "--git-path", "patchlock", repository=repository).text)
    folder = folder if folder.is_absolute() else repository / folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
