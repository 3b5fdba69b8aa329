"""Join two edits of one file by git's own three-way merge, in whatever encoding the file is; writes nothing."""

from __future__ import annotations

import collections
import dataclasses
import difflib
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.model.text_files import SourceText, decode, encode
from patchlock.worktree.upstream_cache import git

LABELS = ("yours", "before", "patchlock")
"""What stands behind the markers of a conflict: the user's side, the common one, ours."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """The result of a merge."""

    data: bytes
    """With conflict markers where both sides touch the same lines."""
    is_clean: bool


def merge(
    repository: Path, path: PurePosixPath, mine: bytes, base: bytes, new: bytes, *, takes_new: bool = False
) -> Joined:
    """Join the edits of two sides since a common version, as `git merge-file` does.

    A file that git takes for binary is not joined: the user's side stays, and it is no clean merge.

    Args:
        repository: any repository, for git's settings.
        path: of the file, for its encoding.
        mine: the user's side.
        base: what both sides come from.
        new: our side.
        takes_new: take our side where both touch the same lines.
    """
    wide = _in_utf_16(path, mine, base, new)
    sides = [text.text.encode() for text in wide] or [mine, base, new]
    with tempfile.TemporaryDirectory(prefix="patchlock-merge-") as name:
        parts = [Path(name) / label for label in LABELS]
        for part, data in zip(parts, sides, strict=True):
            part.write_bytes(data)
        labels = [word for label in LABELS for word in ("-L", label)]
        sided = ["--theirs"] if takes_new else []
        words = ("merge-file", "-p", "-q", *sided, *labels, *map(str, parts))
        done = git(*words, repository=repository, allowed=range(256))
    if done.returncode > 127:  # git's own error, as for binary files; fewer is the number of conflicts
        return Joined(data=mine, is_clean=False)
    data = encode(dataclasses.replace(wide[0], text=done.stdout.decode())) if wide else done.stdout
    return Joined(data=data, is_clean=done.returncode == 0)


def _in_utf_16(path: PurePosixPath, *sides: bytes) -> list[SourceText]:
    """Read all sides of a file in UTF-16; none where one is not in it."""
    texts = [text for data in sides if isinstance(text := decode(path, data), SourceText)]
    return texts if len(texts) == len(sides) and all(text.encoding.startswith("utf-16") for text in texts) else []


def has(repository: Path, path: PurePosixPath, data: bytes, old: bytes, new: bytes) -> bool:
    """Tell whether a file has already what is new in another one since an old version of that."""
    if data in (old, new):
        return data == new
    joined = merge(repository, path, data, old, new)
    return joined.is_clean and joined.data == data


def has_most(repository: Path, path: PurePosixPath, data: bytes, old: bytes, new: bytes) -> bool:
    """Tell the same of a file that the user may have edited since, in these lines too."""
    return has(repository, path, data, old, new) or by_nearness(data, (old, new))[0] == new


def merge_wide(repository: Path, path: PurePosixPath, mine: bytes, base: bytes, new: bytes) -> bytes | None:
    """Join both sides of a file in UTF-16, which git takes for binary; None where it is none, or they meet."""
    if not _in_utf_16(path, mine, base, new):
        return None
    joined = merge(repository, path, mine, base, new)
    return joined.data if joined.is_clean else None


def is_converted(mine: bytes | None, versions: Iterable[bytes | None]) -> bool:
    """Tell whether git has given a file of the working tree CRLF, where each version that is stored has LF alone."""
    stored_ones = [version for version in versions if version is not None]
    is_crlf = mine is not None and b"\r\n" in mine and not re.search(rb"(?<!\r)\n|\r(?!\n)|\0", mine)
    return is_crlf and bool(stored_ones) and not any(b"\r" in version for version in stored_ones)


def to_lf(data: bytes | None) -> bytes | None:
    """Give a converted file as git stores it."""
    return None if data is None else data.replace(b"\r\n", b"\n")


def to_crlf(data: bytes) -> bytes:
    """Give a stored file as git had converted it."""
    return data.replace(b"\n", b"\r\n")


def by_nearness(mine: bytes, bases: Iterable[bytes | None], *, by_characters: bool = False) -> list[bytes]:
    """Order the versions that the user's file may come from by how many lines differ.

    Args:
        mine: the user's file.
        bases: the versions.
        by_characters: let the characters of those lines decide a tie; else the first wins it.
    """
    lines = collections.Counter(mine.splitlines())
    distinct = list(dict.fromkeys(base for base in bases if base is not None))
    if by_characters:
        distinct.sort(key=lambda base: -_likeness(lines, base))
    return sorted(distinct, key=lambda base: distance(mine, base))


def _likeness(lines: collections.Counter[bytes], base: bytes) -> float:
    other = collections.Counter(base.splitlines())
    mine, theirs = (b"\n".join((one - two).elements()) for one, two in ((lines, other), (other, lines)))
    return difflib.SequenceMatcher(a=mine, b=theirs, autojunk=False).quick_ratio()


def distance(one: bytes, other_one: bytes) -> int:
    """Count the lines that only one of two files has."""
    lines, other = collections.Counter(one.splitlines()), collections.Counter(other_one.splitlines())
    return sum(((lines - other) + (other - lines)).values())
