"""Read a tree that somebody edited, and what it was made from; writes nothing, and runs no filter or hook of git."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import UsageError
from patchlock.worktree import manifest, move, trees, upstream_cache

_LINK_MODE = "120000"
_SKIPPED = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules"})
_IGNORED = ("--others", "--ignored", "--exclude-standard", "--directory")
_MODE = "{} has another mode: no patch changes the mode of a file"
_LINK = "{} is or was a link: no patch makes, changes or removes one"
_TOO_LARGE = 8_000_000
"""Bytes of a file that nobody wrote by hand."""


@dataclass(frozen=True, kw_only=True)
class Edits:
    """The files in which two trees differ."""

    before: Mapping[PurePosixPath, bytes]
    after: Mapping[PurePosixPath, bytes]
    executable: frozenset[PurePosixPath]
    """New files that may be started."""
    base: str
    """What the tree is compared with, for a person."""
    commit: str = ""
    """The id of the commit that it is compared with; "" for a folder."""
    is_committed: bool = False
    """Whether there are commits since then, which may hold edits."""
    notes: tuple[str, ...] = ()
    """What was not looked at, a sentence without full stop each."""
    ignored: tuple[PurePosixPath, ...] = ()
    """Files and whole folders that git ignores, which were not looked at."""
    profile: str = ""
    """For which a clone was patched, "" where it was not."""


def read(source: Path, *, base: str | None, base_folder: Path | None) -> Edits:
    """Compare an edited folder with a commit of its clone, or with another folder.

    Args:
        source: the edited folder: the app's folder, in a clone or by itself.
        base: the commit of that clone; `HEAD` where there is no `base_folder`. Of a commit that is ahead, or of another
            branch, what is not in `HEAD` counts for nothing: what is compared is where the two part.
        base_folder: the folder as it was before, for a source that is no clone.

    Raises:
        UsageError: the source is no folder, or no clone where one is needed, or has no such commit.
        GitFirstError: a conflict of git's stands in its files, whose markers are no edits.
        SourceConflictError: a conflict stands there that a move of ours has left.
    """
    for folder in (source, base_folder):
        if folder is not None and not folder.is_dir():
            raise UsageError("there is no such folder", where=str(folder))
    if base_folder is not None:
        return _between_folders(source, base_folder)
    return _since_commit(source, base or "HEAD")


def _between_folders(source: Path, base_folder: Path) -> Edits:
    old, new = dict(_walked(base_folder)), dict(_walked(source))
    before: dict[PurePosixPath, bytes] = {}
    after: dict[PurePosixPath, bytes] = {}
    notes: list[str] = []
    for path in sorted({*old, *new}):
        if _is_too_large(path, [old.get(path), new.get(path)], notes):
            continue
        one = old[path].read_bytes() if path in old else None
        other = new[path].read_bytes() if path in new else None
        if one is not None and other is not None and os.access(old[path], os.X_OK) != os.access(new[path], os.X_OK):
            notes += [_MODE.format(path)] if os.name == "posix" else []
        if one != other:
            before |= {path: one} if one is not None else {}
            after |= {path: other} if other is not None else {}
    was, now = _links(base_folder), _links(source)
    notes += [_LINK.format(path) for path in sorted({*was, *now}) if was.get(path) != now.get(path)]
    executable = frozenset(path for path in after if path not in before and os.access(new[path], os.X_OK))
    return Edits(before=before, after=after, executable=executable, base=str(base_folder), notes=tuple(notes))


def _links(folder: Path) -> dict[PurePosixPath, str]:
    """Give where each link of a folder points to; links are not followed."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            file = Path(parent) / name
            if file.is_symlink():
                found[PurePosixPath(file.relative_to(folder).as_posix())] = os.readlink(file)  # noqa: PTH115 - as it is
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
    return found


def _walked(folder: Path) -> Iterator[tuple[PurePosixPath, Path]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in files:
            file = Path(parent) / name
            if file.is_file() and not file.is_symlink():
                yield PurePosixPath(file.relative_to(folder).as_posix()), file


def _since_commit(source: Path, base: str) -> Edits:
    inside = upstream_cache.git("rev-parse", "--show-toplevel", "--show-prefix", repository=source, allowed=(0, 128))
    if inside.returncode != 0:
        raise UsageError(
            "that folder is not a git clone", where=str(source), remedy="say what it was made from: --base-dir FOLDER"
        )
    top, _, prefix = inside.text.partition("\n")
    tree = trees.open_tree(Path(top))
    move.require_chosen(tree, PurePosixPath(prefix.strip()))
    name = f"{base}^{{commit}}"
    found = upstream_cache.git("rev-parse", "--verify", "--quiet", name, repository=source, allowed=(0, 1, 128))
    if found.returncode != 0:
        raise UsageError(f'that clone has no commit "{base}"', where=str(source), remedy="name one with --base COMMIT")
    head = upstream_cache.commit_of(source, "HEAD")
    shared = upstream_cache.git("merge-base", found.text, "HEAD", repository=source, allowed=(0, 1, 128)).text
    commit = shared or found.text
    rows = upstream_cache.rows(Path(top), f"{commit}:{prefix.strip().rstrip('/')}")
    everything = {path: (mode, blob) for mode, blob, path in rows if mode.startswith(("100", _LINK_MODE))}
    listed = {path: entry for path, entry in everything.items() if entry[0] != _LINK_MODE}
    there = _present(source, Path(top), prefix.strip())
    present = {path: file for path, file in there.items() if not file.is_symlink()}
    before: dict[PurePosixPath, str] = {}
    after: dict[PurePosixPath, bytes] = {}
    notes = [_LINK.format(path) for path in _changed_links(everything, there)] if os.name == "posix" else []
    if commit != found.text:
        ahead = upstream_cache.git("rev-list", "--count", f"HEAD..{found.text}", repository=source).text
        notes.append(
            f"{base} is {ahead} commit{'' if ahead == '1' else 's'} ahead of your branch: compared with commit "
            f"{commit[:12]}, where they part; if you have squashed these into yours, name a checkout of {base} with "
            "--base-dir instead"
        )
    for path in sorted({*listed, *present}):
        if path not in present:
            before[path] = listed[path][1]
            continue
        if path not in listed and _is_too_large(path, [present[path]], notes):
            continue
        data = present[path].read_bytes()
        mode, blob = listed.get(path, ("", ""))
        if mode and os.name == "posix" and (mode == "100755") != os.access(present[path], os.X_OK):
            notes.append(_MODE.format(path))
        if _blob_id(data, blob) != blob:
            after[path] = data
            before |= {path: blob} if blob else {}
    content = upstream_cache.blobs(Path(top), before.values())
    executable = frozenset(path for path in after if path not in before and os.access(present[path], os.X_OK))
    applied = manifest.read(tree)
    return Edits(
        before={path: content[blob] for path, blob in before.items()},
        after=after,
        executable=executable if os.name == "posix" else frozenset(),
        base=f"commit {commit[:12]}",
        commit=commit,
        is_committed=commit != head,
        notes=tuple(notes),
        ignored=tuple(path for path in _listed(source, prefix.strip(), *_IGNORED) if not _SKIPPED & {*path.parts}),
        profile=applied.profile if applied else "",
    )


def _changed_links(
    listed: Mapping[PurePosixPath, tuple[str, str]], present: Mapping[PurePosixPath, Path]
) -> list[PurePosixPath]:
    was = {path: blob for path, (mode, blob) in listed.items() if mode == _LINK_MODE}
    now = {path: file for path, file in present.items() if file.is_symlink()}
    same = {
        path for path in was.keys() & now.keys() if _blob_id(os.fsencode(now[path].readlink()), was[path]) == was[path]
    }
    return sorted((was.keys() | now.keys()) - same)


def _present(source: Path, top: Path, prefix: str) -> dict[PurePosixPath, Path]:
    """Give the files and links that git knows or would know, from the edited folder."""
    found = {}
    for path in _listed(source, prefix, "--cached", "--others", "--exclude-standard"):
        file = top / prefix / path
        if file.is_file() or file.is_symlink():
            found[path] = file
    return found


def _listed(source: Path, prefix: str, *options: str) -> Iterator[PurePosixPath]:
    """Name what `git ls-files` lists of the edited folder, from there."""
    answer = upstream_cache.git("ls-files", "-z", *options, "--full-name", repository=source).stdout
    return (PurePosixPath(os.fsdecode(row).removeprefix(prefix)) for row in answer.split(b"\0") if row)


def _blob_id(data: bytes, like: str) -> str:
    """Name a blob as git does, in the repository's kind of digest."""
    whole = b"blob %d\0%b" % (len(data), data)
    return hashlib.sha256(whole).hexdigest() if len(like) == 64 else hashlib.new("sha1", whole).hexdigest()  # noqa: S324


def _is_too_large(path: PurePosixPath, files: list[Path | None], notes: list[str]) -> bool:
    if not any(file is not None and file.stat().st_size > _TOO_LARGE for file in files):
        return False
    notes.append(f"{path} is larger than {size_text(_TOO_LARGE)} and was not looked at")
    return True
