"""A move that is written down whole before anything of the user's is touched, and from then on only finished.

What is to be written lies ready in a folder of ours, with what stood there before. One rename of that folder is the
point of no return: killed before it, nothing has happened; killed after it, the next patchlock goes on. Each step may
be done any number of times. A file that has changed since the journal was written is the user's work, and is left to
be merged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath

from patchlock.core.atomic_files import atomic_write, remove_tree, sync
from patchlock.model.errors import BusyError, CommandFailedError, DiskFullError, UnsafePathError, from_os
from patchlock.model.identities import CommitId
from patchlock.worktree import _branch_state, _snapshot, trees
from patchlock.worktree._snapshot import stat_of
from patchlock.worktree.trees import Entry, Tree
from patchlock.worktree.upstream_cache import commit_of, git, quoted

STAGED, MOVE, REJOIN, CONFLICTS, ABORTING = "move.tmp", "move", "rejoin", "conflicts", "aborting"
"""Folders beside each other: a move that is not decided yet, one that goes on, what the user changed since, one that
waits for him, one that is taken back."""
DROPPED = "dropped"
"""A folder of one of them that is over."""
_FILE, _NEW, _OLD, _INDEX = "journal.json", "new", "old", "index.old"
_PATIENCE = 5.0
"""Seconds for another git to let go of the user's index."""


@dataclass(frozen=True, kw_only=True)
class Journal:
    """All that a move does, and all that takes it back; paths are strings from the root of the tree."""

    puts: dict[str, list[int] | None]
    """What is written → what stood there when it was read, as `_snapshot.stat_of` gives it."""
    folders: list[str]
    """Submodules, whose folders are made."""
    removes: dict[str, list[int] | None]
    entries: dict[str, list[str]]
    """What is written → mode and blob, before the user's filters."""
    mine: dict[str, list[str]]
    """What stood there → mode and blob, as git would store it."""
    index: list[tuple[str, list[str], list[str]]]
    """Path, its rows in the user's index before, and after."""
    sparse: list[str]
    """Paths whose new rows a sparse checkout leaves out."""
    conflicts: list[str]
    normal: dict[str, str]
    """Conflict → its row in the index once it is resolved, "" for none."""
    head: tuple[str, str] | None
    """Where the user's branch stands, and where it goes."""
    taken_back: dict[str, bool]
    """What `take_back` restores: path → whether something stood there."""
    applied: tuple[str | None, str | None]
    """The ref `applied` before and after; None for none."""
    own: tuple[str | None, str | None] = (None, None)
    """The ref `own` before and after; None for none."""
    left: dict[str, list[int] | None] = field(default_factory=dict)
    """Conflict → what stands there until the user touches it."""


def folder(tree: Tree, name: str) -> Path:
    """Name a folder of journals."""
    return trees.git_dir(tree) / "patchlock" / name


def is_unfinished(tree: Tree) -> bool:
    """Tell whether a killed patchlock has left a move that goes on, or that is taken back."""
    return any(folder(tree, name).exists() for name in (MOVE, REJOIN, ABORTING))


def step(name: str) -> None:
    """Do nothing: tests are killed here."""


def begin(tree: Tree) -> Path:
    """Make an empty folder for a journal; what a killed one left there goes."""
    place = folder(tree, STAGED)
    if place.exists():
        remove_tree(place)
    (place / _NEW).mkdir(parents=True)
    (place / _OLD).mkdir()
    return place


def write(tree: Tree, place: Path, journal: Journal, target: CommitId, known: Collection[PurePosixPath]) -> None:
    """Lay ready all that a move writes, what stands there now, and the journal itself.

    Args:
        tree: the working tree.
        place: as `begin` gave it.
        journal: the move.
        target: the commit whose attributes say how files are written.
        known: files that the user's index has, and does not leave out: they are written whatever the patterns of a
            sparse checkout say, as git leaves a changed file there. Those patterns decide about new files alone.
    """
    step("lay ready")
    attributes = {p: e for p, e in trees.everything(tree.repository, target).items() if p.name == ".gitattributes"}
    rows = {path: entry.row() for path, entry in attributes.items() if entry.is_file}
    rows |= {PurePosixPath(path): f"{mode} {blob} 0" for path, (mode, blob) in journal.entries.items()}
    index, stdin = place / "index.new", _snapshot.index_rows(rows.items())
    _snapshot.run(tree, "update-index", "-z", "--index-info", index=index, root=place / _NEW, stdin=stdin)
    step("check out")
    new = [name for name, stood in journal.puts.items() if stood is None and PurePosixPath(name) not in known]
    out = _left_out(tree, place, journal, new) if new and tree.is_clone else []
    if out:
        listed = {name for name, _, rows in journal.index if rows}
        gone = [PurePosixPath(name) for name in out]
        _snapshot.run(
            tree,
            "update-index",
            "-z",
            "--force-remove",
            "--stdin",
            index=index,
            root=place / _NEW,
            stdin=_snapshot.joined(gone),
        )
        journal = replace(journal, sparse=[*dict.fromkeys([*journal.sparse, *(n for n in out if n in listed)])])
    _snapshot.run(tree, "checkout-index", "--all", "--quiet", index=index, root=place / _NEW)
    # Of a binary file git leaves the user's side, so nothing is written.
    left = {name: stat_of(place / _NEW / name) or stat_of(tree.root / name) for name in journal.conflicts}
    journal = replace(journal, left={**left, **journal.left})
    for name in {**journal.puts, **journal.removes}:
        if os.path.lexists(tree.root / name) and not (tree.root / name).is_dir():
            _keep(tree.root / name, place / _OLD / name)
    real = trees.git_dir(tree) / "index"
    if tree.is_clone and real.exists():
        shutil.copy2(real, place / _INDEX)
    for file in (place / _NEW).rglob("*"):
        if file.is_file() and not file.is_symlink():
            sync(file)
    step("write the journal")
    atomic_write(place / _FILE, json.dumps(asdict(journal), indent=1))


def _left_out(tree: Tree, place: Path, journal: Journal, names: Collection[str]) -> list[str]:
    """Give those of some new files that the patterns of a sparse checkout leave out."""
    asked = ("config", "--type=bool", "--get", "core.sparseCheckout")
    if git(*asked, repository=tree.repository, allowed=(0, 1)).text != "true":
        return []
    index, root = place / "index.sparse", place / "sparse"
    root.mkdir()
    rows = [(PurePosixPath(name), f"{' '.join(journal.entries[name])} 0") for name in names]
    _snapshot.run(tree, "update-index", "-z", "--index-info", index=index, root=root, stdin=_snapshot.index_rows(rows))
    made = _snapshot.run(tree, "write-tree", "--missing-ok", index=index, root=root).text
    index.unlink()
    _snapshot.run(tree, "read-tree", "--reset", "-u", made, index=index, root=root)  # git's only way to ask, until 2.41
    out = [name for name in names if not os.path.lexists(root / name)]
    remove_tree(root)
    return out


def _keep(file: Path, copy: Path) -> None:
    """Keep a file as it is: linked where the disk can, so that it is the same one that comes back."""
    if os.path.lexists(copy):
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, copy, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(file, copy, follow_symlinks=False)


def decide(tree: Tree, place: Path, name: str = MOVE) -> None:
    """Make a move that is laid ready the one that goes on: the point of no return."""
    step("decide")
    place.rename(folder(tree, name))


def read(tree: Tree, name: str) -> Journal | None:
    """Read the journal of a folder; None where there is none."""
    try:
        data = json.loads((folder(tree, name) / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    data["index"] = [(path, old, new) for path, old, new in data["index"]]
    for key in {"applied", "head", "own"} & data.keys():
        data[key] = tuple(data[key]) if data[key] else None
    return Journal(**data)


@contextlib.contextmanager
def _writing(tree: Tree, name: str) -> Iterator[None]:
    """Name the user's file where the system refuses to write it.

    Raises:
        DiskFullError: there is no room.
        FileAccessError: it is not allowed, or the disk is broken.
    """
    try:
        yield
    except OSError as error:
        kind = type(from_os(error))
        cure = "free some room" if kind is DiskFullError else "let yourself write there"
        raise kind(
            f"{name} cannot be written: {(error.strerror or str(error)).lower()}; the move is half done",
            where=str(tree.root / name),
            remedy=f"{cure}, and run the same command again: it goes on",
        ) from error


def roll(tree: Tree, journal: Journal) -> tuple[PurePosixPath, ...]:
    """Do what a decided move says, as far as it is not done yet.

    Returns:
        Files that the user has changed since the journal was written: they stand as he left them.
    """
    place = folder(tree, MOVE)
    left = []
    for name in sorted(journal.removes, key=lambda name: (-name.count("/"), name)):
        file = tree.root / name
        step(f"remove {name}")
        if is_folder(file):  # a submodule, or the user's: what is in it stays
            remove_empty(tree, file)
            continue
        now = stat_of(file)
        if now is None:
            continue
        if now != journal.removes[name]:
            left.append(PurePosixPath(name))
            continue
        with _writing(tree, name):
            file.unlink()
        remove_empty(tree, file.parent)
    for name in journal.folders:
        step(f"make folder {name}")
        with _writing(tree, name):
            (tree.root / name).mkdir(parents=True, exist_ok=True)
    for name, stood in journal.puts.items():
        new, file = place / _NEW / name, tree.root / name
        step(f"put {name}")
        if not os.path.lexists(new):  # done, or left out by a sparse checkout
            continue
        now = stat_of(file)
        if (now is not None and now != stood) or is_blocked(tree, file):
            beside(file).unlink(missing_ok=True)
            left.append(PurePosixPath(name))
            continue
        with _writing(tree, name):
            _put(new, file)
    if left:
        return tuple(left)
    if tree.is_clone:
        _write_index(tree, journal)
    step("move the refs")
    _write_refs(tree, journal)
    return ()


def is_folder(place: Path) -> bool:
    """Tell whether a folder stands there, and no link to one."""
    return place.is_dir() and not place.is_symlink()


def is_blocked(tree: Tree, file: Path) -> bool:
    """Tell whether a folder with files stands where a file belongs, or something else where its folder does."""
    if is_folder(file):
        return any(file.iterdir())
    while (file := file.parent) != tree.root:
        if os.path.lexists(file):
            return not is_folder(file)
    return False


def beside(file: Path) -> Path:
    """Name the file that is written first where the clone's private folder is on another disk."""
    return file.with_name(f".{hashlib.sha256(os.fsencode(file.name)).hexdigest()[:16]}.patchlock")


def _put(new: Path, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if is_folder(file):
        file.rmdir()
    try:
        new.replace(file)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = beside(file)
        try:
            copy.unlink(missing_ok=True)
            shutil.copy2(new, copy, follow_symlinks=False)
            copy.replace(file)
        except OSError:
            with contextlib.suppress(OSError):
                copy.unlink(missing_ok=True)
            raise
        new.unlink()


def remove_empty(tree: Tree, place: Path) -> None:
    """Remove folders that became empty, as git does."""
    with contextlib.suppress(OSError):
        while place != tree.root:
            place.rmdir()
            place = place.parent


def _write_index(tree: Tree, journal: Journal) -> None:
    """Change the rows that are as they were; where the user has moved his branch since, none."""
    if not journal.index or not _has_branch(tree, journal):
        return
    step("write the index")
    now: dict[str, list[str]] = {}
    for row in _snapshot.run(tree, "ls-files", "-s", "-z").stdout.split(b"\0"):
        head, _, name = row.partition(b"\t")
        if head:
            now.setdefault(os.fsdecode(name), []).append(head.decode())
    changed = [(name, new) for name, old, new in journal.index if now.get(name, []) == old != new]
    if not changed:
        return
    rows = _snapshot.no_rows(tree, (PurePosixPath(name) for name, _ in changed))
    rows += [(PurePosixPath(name), row) for name, new in changed for row in new]
    update_index(tree, "--index-info", stdin=_snapshot.index_rows(rows))
    paths = [PurePosixPath(name) for name in journal.sparse]
    if paths:
        update_index(tree, "--skip-worktree", "--stdin", stdin=_snapshot.joined(paths))


def update_index(tree: Tree, *arguments: str, stdin: bytes) -> None:
    """Change the user's index, once no other git does.

    Raises:
        BusyError: another one does not end.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            _snapshot.run(tree, "update-index", "-z", *arguments, stdin=stdin)
        except CommandFailedError as error:
            if not any("index.lock" in line for line in error.evidence):
                raise
            if time.monotonic() > until:
                raise _busy(tree) from error
            time.sleep(0.1)
        else:
            return


def _busy(tree: Tree) -> BusyError:
    lock = trees.git_dir(tree) / "index.lock"
    return BusyError(
        "another git works in this clone, or was killed there",
        where=str(tree.root),
        remedy=f"end it, or remove {lock} where none runs, and run this again: it goes on",
    )


def _has_branch(tree: Tree, journal: Journal) -> bool:
    """Tell whether the user's branch stands where the journal knows it."""
    return journal.head is None or commit_of(tree.repository, "HEAD") in journal.head


def _write_refs(tree: Tree, journal: Journal) -> None:
    rows = []
    if not journal.conflicts or journal.applied[1] is not None:
        rows += _ref_rows(tree, journal, 1)
    if journal.head is not None and commit_of(tree.repository, "HEAD") == journal.head[0] != journal.head[1]:
        rows.append(f"update HEAD {journal.head[1]} {journal.head[0]}\n")
    _move_refs(tree, rows)
    if tree.is_clone and (journal.index or journal.puts):
        with contextlib.suppress(CommandFailedError):  # so that git need not read again what we have written
            _snapshot.run(tree, "update-index", "-q", "--refresh")


def _ref_rows(tree: Tree, journal: Journal, side: int) -> list[str]:
    """Write what becomes of our refs: 0 brings them back, 1 moves them on."""
    named = ((tree.ref("applied"), journal.applied[side]), (tree.ref("own"), journal.own[side]))
    return [f"update {ref} {commit}\n" if commit else f"delete {ref}\n" for ref, commit in named]


def _move_refs(tree: Tree, rows: list[str]) -> None:
    """Move refs in one transaction.

    Raises:
        BusyError: another git holds one of them, or was killed there.
    """
    try:
        git("update-ref", "-m", "patchlock", "--stdin", repository=tree.repository, stdin="".join(rows).encode())
    except CommandFailedError as error:
        lock = next((line for line in error.evidence if ".lock" in line), "")
        if not lock:
            raise
        raise BusyError(
            "another git moves a ref in this clone, or was killed there",
            where=str(tree.root),
            remedy="end it, or remove the file that git names where none runs, and run this again: it goes on",
            evidence=[lock],
        ) from error


def finish(tree: Tree, journal: Journal) -> None:
    """Put a move that is done away: what it met waits for the user, everything else is over."""
    step("finish")
    place = folder(tree, MOVE)
    if journal.conflicts:
        place.rename(folder(tree, CONFLICTS))
    else:
        drop(tree, MOVE)


def drop(tree: Tree, name: str) -> None:
    """Remove a folder of journals; killed at any time, it is there whole or not at all."""
    place = folder(tree, DROPPED)
    remove_tree(place)
    folder(tree, name).rename(place)
    remove_tree(place)


def replace_move(tree: Tree, place: Path) -> None:
    """Let what was laid ready over a move that goes on take its place; it restores what that one would."""
    step("go over")
    first = folder(tree, MOVE)
    for old in (first / _OLD).rglob("*"):
        if old.is_symlink() or not old.is_dir():
            _keep(old, place / _OLD / old.relative_to(first / _OLD))
    if (first / _INDEX).exists():
        shutil.copy2(first / _INDEX, place / _INDEX)
    decide(tree, place, REJOIN)
    end_replacing(tree)


def end_replacing(tree: Tree) -> None:
    """Finish `replace_move` where it was killed."""
    if folder(tree, REJOIN).exists():
        step("drop the first move")
        if folder(tree, MOVE).exists():
            remove_tree(folder(tree, MOVE))
        folder(tree, REJOIN).rename(folder(tree, MOVE))


# --- conflicts --------------------------------------------------------------------------------------------------------


def open_conflicts(tree: Tree, journal: Journal) -> tuple[PurePosixPath, ...]:
    """Name the conflicts of a move that the user has not ended yet."""
    unmerged = _unmerged(tree)
    found = []
    for name in journal.conflicts:
        rows = _rows_of(journal, name)
        if tree.is_clone and sorted(unmerged.get(name, [])) != sorted(rows):
            continue
        data = trees.read(tree, PurePosixPath(name)) or b""
        is_submodule = any(row.startswith("160000") for row in rows)  # there is no file that could tell
        if is_submodule or _branch_state.has_markers(data) or _is_untouched(tree, journal, name):
            found.append(PurePosixPath(name))
    return tuple(found)


def _is_untouched(tree: Tree, journal: Journal, name: str) -> bool:
    """Tell whether a file stands as the move has left it; its inode may be another one after a copy of the clone."""
    now, left = stat_of(tree.root / name), journal.left.get(name)
    return now is not None and left is not None and now[1:] == left[1:]


def _unmerged(tree: Tree) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if tree.is_clone:
        for row in _snapshot.run(tree, "ls-files", "--unmerged", "-z").stdout.split(b"\0"):
            head, _, name = row.partition(b"\t")
            if head:
                found.setdefault(os.fsdecode(name), []).append(head.decode())
    return found


def _rows_of(journal: Journal, name: str) -> list[str]:
    return next((new for path, _, new in journal.index if path == name), [])


def others(tree: Tree, journal: Journal | None) -> dict[str, list[str]]:
    """Give the conflicts in the user's index that a move has not left there: they are git's own."""
    ours = {name: sorted(_rows_of(journal, name)) for name in journal.conflicts} if journal else {}
    return {name: rows for name, rows in _unmerged(tree).items() if ours.get(name) != sorted(rows)}


def end_conflicts(tree: Tree, journal: Journal) -> None:
    """Put the rows of conflicts that the user has ended in his files, and not in git's index, back to normal."""
    unmerged = _unmerged(tree)
    mine = [name for name in journal.conflicts if sorted(unmerged.get(name, [])) == sorted(_rows_of(journal, name))]
    rows = _snapshot.no_rows(tree, (PurePosixPath(name) for name in mine if name in unmerged))
    rows += [(PurePosixPath(name), journal.normal[name]) for name in mine if name in unmerged and journal.normal[name]]
    if rows:
        update_index(tree, "--index-info", stdin=_snapshot.index_rows(rows))
    step("end the conflicts")
    drop(tree, CONFLICTS)


def to_take_back(tree: Tree, name: str) -> list[PurePosixPath]:
    """Name the files that `take_back` has not brought back yet."""
    journal, place = read(tree, name), folder(tree, name)
    found = journal.taken_back.items() if journal else ()
    return [
        PurePosixPath(one)
        for one, stood in found
        if (os.path.lexists(place / _OLD / one) if stood else not (place / "done" / _mark(one)).exists())
    ]


def take_back(tree: Tree) -> tuple[PurePosixPath, ...]:
    """Bring the files, the index and the refs back that a move with conflicts found; goes on where it was killed."""
    if not folder(tree, ABORTING).exists():
        step("take back")
        folder(tree, CONFLICTS).rename(folder(tree, ABORTING))
    journal, place = read(tree, ABORTING), folder(tree, ABORTING)
    if journal is None:
        drop(tree, ABORTING)
        return ()
    done = place / "done"
    done.mkdir(exist_ok=True)
    # What the move brought goes first: a folder may have stood there.
    for name, stood in sorted(journal.taken_back.items(), key=lambda row: row[1]):
        file, old = tree.root / name, place / _OLD / name
        step(f"take back {name}")
        if stood and os.path.lexists(old):
            if is_blocked(tree, file):
                raise UnsafePathError(
                    f"{name} cannot come back, as something of yours stands in its place",
                    where=str(tree.root),
                    remedy="move that elsewhere, and run this again: it goes on",
                )
            with _writing(tree, name):
                _put(old, file)
        elif not stood and not (done / _mark(name)).exists():
            if stat_of(file) is not None:
                with _writing(tree, name):
                    file.unlink()
                remove_empty(tree, file.parent)
            (done / _mark(name)).touch()
    if tree.is_clone and (place / _INDEX).exists():
        step("take the index back")
        _restore_index(tree, place / _INDEX)
    step("take the refs back")
    rows = _ref_rows(tree, journal, 0)
    if journal.head and commit_of(tree.repository, "HEAD") == journal.head[1] != journal.head[0]:
        rows.append(f"update HEAD {journal.head[0]} {journal.head[1]}\n")
    _move_refs(tree, rows)
    step("forget what was taken back")
    drop(tree, ABORTING)
    return tuple(map(PurePosixPath, sorted(journal.taken_back)))


def _mark(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()


def _restore_index(tree: Tree, kept: Path) -> None:
    """Put the index back as git itself would: through its lock."""
    real = trees.git_dir(tree) / "index"
    lock = real.with_name("index.lock")
    try:
        with lock.open("xb") as file:
            file.write(kept.read_bytes())
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise _busy(tree) from error
    shutil.copystat(kept, lock)
    lock.replace(real)
    kept.unlink()


def save(
    tree: Tree,
    files: Mapping[PurePosixPath, Entry | None],
    parent: CommitId,
    ref: str,
    why: str,
    *,
    is_alone: bool = False,
) -> None:
    """Keep some files of the user's as a commit, under a ref of ours; what the ref held before stays behind it.

    The commit holds its parent's other files too, unless `is_alone`.
    """
    earlier = commit_of(tree.repository, ref)
    stream = [
        f"reset {ref}\ncommit {ref}\nmark :1\n".encode(),
        b"committer patchlock <%s> %d +0000\ndata %d\n%s\n"
        % (trees.OURS.encode(), time.time(), len(why), why.encode()),
        f"from {parent}\n".encode() + (f"merge {earlier}\n".encode() if earlier else b""),
        b"deleteall\n" if is_alone else b"",
    ]
    for path, entry in files.items():
        name = quoted(path)
        stream.append(f"M {entry.mode} {entry.blob} ".encode() + name + b"\n" if entry else b"D " + name + b"\n")
    git("fast-import", "--quiet", "--force", repository=tree.repository, stdin=b"".join(stream))
