"""Unpack a zip or tar.gz file that nobody has to trust: it is looked at whole, and appears at once or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from patchlock import member_names
from patchlock.checkout import remove_tree
from patchlock.errors import ArchiveError

_BLOCK = 1024 * 1024
_LONGEST_READ = 16 * 1024 * 1024
"""Bytes that a tar file may ask for at once; a header that is longer is none."""
_SHOWN = 20
"""Reasons that a message lists."""
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, NotImplementedError)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What an honest archive stays below."""

    total: int = 8 * 1024**3
    """Bytes of all files together."""
    members: int = 100_000
    """Files and folders."""
    ratio: int = 200
    """Bytes that one byte of the archive may become; only looked at where the files have more than `small`."""
    small: int = 64 * 1024**2


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    name: str
    size: int
    is_folder: bool
    is_executable: bool
    objection: str
    """Why its kind is refused, or ""."""


def unpack(
    archive: Path, folder: Path, *, pick: Mapping[str, tuple[str, ...]] | None = None, limits: Limits | None = None
) -> tuple[str, ...]:
    """Unpack an archive into a folder that does not exist yet; what a killed predecessor left beside it is removed.

    Refused are names that leave the folder or that some platform cannot hold, links, devices, encrypted members,
    members that would be one file, and bombs. Archives within the archive stay what they are.

    Args:
        archive: a file whose name ends with `.zip`, `.tar.gz` or `.tgz`.
        folder: where to; its own folder is made. Nobody else may unpack into the same one.
        pick: members that are wanted, each under these names below the folder; None takes every member as it is
            called. A member without "/" is found in any folder of the archive, nearest to the root.
        limits: other ones than `Limits()`.

    Returns:
        The files that were written, as POSIX paths below the folder, sorted.

    Raises:
        ArchiveError: it cannot be read, or must not be unpacked; names every reason.
        FileExistsError: the folder is there.
        OSError: the disk is full, or not ours to write; nothing is left behind.
    """
    if folder.exists():
        raise FileExistsError(17, "the folder is there", str(folder))
    beside = folder.with_name(f".{folder.name}.unpacking")
    remove_tree(beside)
    beside.mkdir(parents=True)
    try:
        with _reading(archive):
            written = _unpack(archive, beside, pick, limits or Limits())
        beside.rename(folder)
    except BaseException:
        remove_tree(beside)
        raise
    return tuple(sorted(written))


def _unpack(archive: Path, folder: Path, pick: Mapping[str, tuple[str, ...]] | None, limits: Limits) -> list[str]:
    opened = _zip if archive.name.lower().endswith(".zip") else _tar
    entries: list[_Entry] = []
    with opened(archive, limits) as (found, _):
        room = _Room(archive, limits)
        for entry in found:
            room.take(entry)
            entries.append(entry)
    _require(archive, _problems(entries))
    names = _names(archive, entries, pick)
    written: list[str] = []
    with opened(archive, limits) as (found, read):
        for entry in found:
            targets = () if entry.is_folder else names.get(entry.name, ())
            for target in targets[:1]:
                with read(entry.name) as source:
                    _write(folder / target, source, entry)
            for copy in targets[1:]:
                (folder / copy).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / targets[0], folder / copy)
            written += targets
            if entry.is_folder and pick is None:
                (folder / entry.name).mkdir(parents=True, exist_ok=True)
    return written


def _write(path: Path, source: IO[bytes], entry: _Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as file:
        while block := source.read(_BLOCK):
            size += len(block)
            if size > entry.size:
                break
            file.write(block)
    if size != entry.size:
        raise EOFError(f"{entry.name} has not the length that it says")
    path.chmod(0o755 if entry.is_executable else 0o644)


class _Room:
    """Counts what an archive would become, and stops where it is more than honest ones have."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self._archive, self._limits = archive, limits
        self._packed = max(archive.stat().st_size, 1)
        self._total = self._members = 0

    def take(self, entry: _Entry) -> None:
        """Count one member."""
        self._members += 1
        self._total += entry.size
        limits = self._limits
        if self._members > limits.members:
            raise _refused(self._archive, [f"it has more than {limits.members} members"])
        if self._total > limits.total:
            raise _refused(self._archive, [f"its files have more than {limits.total} bytes"])
        if self._total > limits.small and self._total > limits.ratio * self._packed:
            raise _refused(self._archive, [f"it would become more than {limits.ratio} times as large"])


def _problems(entries: Iterable[_Entry]) -> list[str]:
    found: list[str] = []
    files: list[str] = []
    folders: list[str] = []
    for entry in entries:
        why = member_names.problem(entry.name) or entry.objection
        if why:
            found.append(f"{entry.name!r} {why}")
        else:
            (folders if entry.is_folder else files).append(entry.name)
    return [*found, *member_names.collisions(files, folders)]


def _names(
    archive: Path, entries: list[_Entry], pick: Mapping[str, tuple[str, ...]] | None
) -> Mapping[str, tuple[str, ...]]:
    """Say under which names each member is written."""
    files = [entry.name for entry in entries if not entry.is_folder]
    if pick is None:
        return {name: (name,) for name in files}
    found: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for wanted, names in pick.items():
        there = [name for name in files if name == wanted or ("/" not in wanted and name.endswith(f"/{wanted}"))]
        nearest = [name for name in there if name.count("/") == min(map(_depth, there))]
        if len(nearest) == 1:
            found[nearest[0]] = found.get(nearest[0], ()) + names
        else:
            problems.append(f"it has {'several' if nearest else 'no'} {wanted}")
    _require(archive, [*problems, *member_names.collisions([name for names in found.values() for name in names])])
    return found


def _depth(name: str) -> int:
    return name.count("/")


# --- the two formats --------------------------------------------------------------------------------------------------

_Opened = contextlib.AbstractContextManager[
    tuple[Iterable[_Entry], Callable[[str], contextlib.AbstractContextManager[IO[bytes]]]]
]


@contextlib.contextmanager
def _zip(path: Path, limits: Limits) -> Iterator[tuple[Iterable[_Entry], Callable[[str], IO[bytes]]]]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if len(infos) <= limits.members and sum(info.compress_size for info in infos) > path.stat().st_size:
            raise _refused(path, ["its members overlap"])
        yield (_of_zip(info) for info in infos), archive.open


def _of_zip(info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    objection = "is encrypted" if info.flag_bits & 1 else ""
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        objection = "is a link" if kind == stat.S_IFLNK else "is neither a file nor a folder"
    # `filename` ends at the first NUL, and has other separators on Windows.
    return _Entry(
        name=info.orig_filename,
        size=info.file_size,
        is_folder=info.is_dir(),
        is_executable=bool(mode & 0o111) and not info.is_dir(),
        objection=objection,
    )


@contextlib.contextmanager
def _tar(path: Path, limits: Limits) -> Iterator[tuple[Iterable[_Entry], Callable[[str], IO[bytes]]]]:
    if not path.name.lower().endswith((".tar.gz", ".tgz")):
        raise ArchiveError(
            f"{path.name} is neither a zip nor a tar.gz file by its name", remedy="give the file its real name"
        )
    with gzip.open(path) as packed:
        stream = _Bounded(path, cast("IO[bytes]", packed))
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:", errorlevel=2) as archive:
            infos: dict[str, tarfile.TarInfo] = {}

            def entries() -> Iterator[_Entry]:
                for info in archive:  # each is looked at before the bytes of the next are unpacked
                    infos[info.name] = info
                    yield _of_tar(info)
                _require_end(stream, archive.offset, limits)

            def read(name: str) -> IO[bytes]:
                return archive.extractfile(infos[name]) or io.BytesIO()

            yield entries(), read


def _of_tar(info: tarfile.TarInfo) -> _Entry:
    objection = ""
    if info.islnk() or info.issym():
        objection = f"is a link to {info.linkname!r}"
    elif info.issparse() or not (info.isreg() or info.isdir()):
        objection = "is neither a file nor a folder"
    return _Entry(
        name=info.name,
        size=0 if info.isdir() else info.size,
        is_folder=info.isdir(),
        is_executable=bool(info.mode & 0o111) and not info.isdir(),
        objection=objection,
    )


def _require_end(stream: _Bounded, offset: int, limits: Limits) -> None:
    """Refuse what follows the last member but zeros: tarfile takes a damaged header for the end."""
    stream.seek(offset)
    padding = 0
    while block := stream.read(_BLOCK):
        padding += len(block)
        if block.strip(b"\0") or padding > limits.small:
            raise tarfile.ReadError("it goes on after its end")


class _Bounded:
    """What tarfile reads; a header that claims to have gigabytes is not read into memory."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int) -> bytes:
        if size > _LONGEST_READ:
            raise _refused(self._path, [f"one of its headers has {size} bytes"])
        return self._stream.read(size)


# --- errors -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(archive: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise ArchiveError(
            f"{archive.name} is not an archive that can be read: {str(error) or type(error).__name__}",
            where=str(archive),
            remedy="remove it and fetch it again",
        ) from error


def _require(archive: Path, problems: list[str]) -> None:
    if problems:
        raise _refused(archive, problems)


def _refused(archive: Path, problems: list[str]) -> ArchiveError:
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return ArchiveError(
        f"{archive.name} must not be unpacked, for {len(problems)} reason{'s' if len(problems) > 1 else ''}",
        where=str(archive),
        remedy="nothing of it was written; tell those who made it",
        evidence=[*problems[:_SHOWN], *more],
    )
