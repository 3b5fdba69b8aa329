"""Unpack a zip or tar file that nobody has to trust: it is looked at whole, and appears at once or not at all."""

from __future__ import annotations

import bz2
import contextlib
import errno
import functools
import gzip
import io
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from patchlock.core import archive_names
from patchlock.core.atomic_files import remove_tree
from patchlock.model.errors import ArchiveError

_BLOCK = 1024 * 1024
_LONGEST_READ = 16 * 1024 * 1024
"""Bytes that a tar file may ask for at once; a header that is longer is none."""
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Of zip files: others are rare, and LZMA gets as much memory as its header asks for."""
_SHOWN = 20
"""Reasons that a message lists."""
_DAMAGED = (
    *(
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        gzip.BadGzipFile,
        lzma.LZMAError,
        EOFError,
        NotImplementedError,
    ),
    *(ValueError, IndexError, RecursionError),  # what CPython 3.11's modules make of some headers
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an honest archive stays below."""

    total: int = 8 * 1024**3
    """Bytes of all files together."""
    members: int = 100_000
    """Files and folders."""
    links: bool = False
    """Symbolic links that stay in the folder are made; hard links are refused all the same."""
    ratio: int = 200
    """Bytes that one byte of the archive may become; only looked at where the files have more than `small`."""
    small: int = 64 * 1024**2


@dataclass(frozen=True, kw_only=True)
class _Entry:
    name: str
    size: int
    is_folder: bool
    is_executable: bool
    objection: str
    """Why its kind is refused, or ""."""
    link: str = ""
    """What a symbolic link that may be made points to."""
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path,
    folder: Path,
    *,
    pick: Mapping[str, tuple[str, ...]] | None = None,
    limits: Limits | None = None,
    is_portable: bool = True,
) -> tuple[str, ...]:
    """Unpack an archive into a folder that does not exist yet; what a killed predecessor left beside it is removed.

    Refused are names that leave the folder, links, devices, encrypted members and bombs. Archives within the archive
    stay what they are.

    Args:
        archive: a file that is a zip or a tar by its name; the tar may be packed by gzip, bzip2 or xz.
        folder: where to; its own folder is made. Nobody else may unpack into the same one.
        pick: members that are wanted, each under these names below the folder; None takes every member as it is
            called. A member without "/" is found in any folder of the archive, nearest to the root.
        limits: other ones than `Limits()`.
        is_portable: refuse also names that some platform cannot hold, and members that would be one file on one;
            otherwise the last of several members of one name wins.

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
            written = _unpack(archive, beside, pick, limits or Limits(), is_portable=is_portable)
        beside.rename(folder)
    except BaseException:
        remove_tree(beside)
        raise
    return tuple(sorted(written))


def _unpack(
    archive: Path, folder: Path, pick: Mapping[str, tuple[str, ...]] | None, limits: Limits, *, is_portable: bool
) -> set[str]:
    with _opened(archive, limits) as found:
        entries = list(_Room(archive, limits).taken(found))
    _require(archive, _problems(entries, is_portable=is_portable))
    names = _names(archive, entries, pick)
    with _opened(archive, limits) as found:
        for entry in found:
            if entry.link:
                continue
            targets = () if entry.is_folder else names.get(entry.name, ())
            for target in targets[:1]:
                _write(folder / target, entry)
            for copy in targets[1:]:
                (folder / copy).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / targets[0], folder / copy)
            if entry.is_folder and pick is None:
                (folder / entry.name).mkdir(parents=True, exist_ok=True)
    _link(archive, folder, {entry.name: entry.link for entry in entries if entry.link})
    return {target for targets in names.values() for target in targets}


def _link(archive: Path, folder: Path, links: Mapping[str, str]) -> None:
    """Make symbolic links, last, so that nothing is written through one; refuse those that lead out of the folder."""
    for name, target in links.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target)
    root = folder.resolve()
    out = [name for name, target in links.items() if not (folder / name).resolve().is_relative_to(root)]
    _require(archive, [f"{name!r} is a link to {links[name]!r}" for name in out])


def _write(path: Path, entry: _Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with entry.open() as source, path.open("wb") as file:
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

    def taken(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        """Count the members as they come."""
        for entry in entries:
            self._take(entry)
            yield entry

    def _take(self, entry: _Entry) -> None:
        self._members += 1
        self._total += entry.size
        limits = self._limits
        if self._members > limits.members:
            raise _refused(self._archive, [f"it has more than {limits.members} members"])
        if self._total > limits.total:
            raise _refused(self._archive, [f"its files have more than {limits.total} bytes"])
        if self._total > limits.small and self._total > limits.ratio * self._packed:
            raise _refused(self._archive, [f"it would become more than {limits.ratio} times as large"])


def _problems(entries: Iterable[_Entry], *, is_portable: bool) -> list[str]:
    problem = archive_names.problem if is_portable else archive_names.escape_reason
    found: list[str] = []
    files: list[str] = []
    folders: list[str] = []
    for entry in entries:
        why = problem(entry.name) or entry.objection
        if why:
            found.append(f"{entry.name!r} {why}")
        else:
            (folders if entry.is_folder else files).append(entry.name)
    return [*found, *(archive_names.collisions(files, folders) if is_portable else ())]


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
    _require(archive, [*problems, *archive_names.collisions([name for names in found.values() for name in names])])
    return found


def _depth(name: str) -> int:
    return name.count("/")


# --- the two formats --------------------------------------------------------------------------------------------------


def _opened(path: Path, limits: Limits) -> contextlib.AbstractContextManager[Iterable[_Entry]]:
    """Open an archive by its name; the members are to be looked at and read in their order."""
    name = path.name.lower()
    if name.endswith(".zip"):
        return _zip(path, limits)
    for suffix, stream in _TARS.items():
        if name.endswith(suffix):
            return _tar(cast("IO[bytes]", stream(path)), limits)
    raise ArchiveError(
        f"{path.name} is neither a zip nor a tar.gz file by its name", remedy="give the file its real name"
    )


_TARS: Mapping[str, Callable[[Path], object]] = {
    **dict.fromkeys((".tar.gz", ".tgz"), gzip.open),
    **dict.fromkeys((".tar.bz2", ".tbz"), bz2.open),
    ".tar.xz": lzma.open,
    ".tar": functools.partial(Path.open, mode="rb"),
}


@contextlib.contextmanager
def _zip(path: Path, limits: Limits) -> Iterator[Iterable[_Entry]]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if len(infos) <= limits.members and sum(info.compress_size for info in infos) > path.stat().st_size:
            raise _refused(path, ["its members overlap"])
        yield (_of_zip(archive, info) for info in infos)


def _of_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    objection = "is encrypted" if info.flag_bits & 1 else ""
    if info.compress_type not in _COMPRESSIONS:
        objection = "is neither stored nor deflated"
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        objection = "is a link" if kind == stat.S_IFLNK else "is neither a file nor a folder"
    # `filename` ends at the first NUL, and has other separators on Windows.
    return _Entry(
        name=info.orig_filename,
        size=info.file_size,
        is_folder=info.is_dir(),
        is_executable=bool(mode & 0o111) and not info.is_dir(),
        objection=objection,
        open=functools.partial(archive.open, info),
    )


@contextlib.contextmanager
def _tar(plain: IO[bytes], limits: Limits) -> Iterator[Iterable[_Entry]]:
    with plain:
        stream = BoundedReader(plain)
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:", errorlevel=2) as archive:

            def entries() -> Iterator[_Entry]:
                for info in archive:  # each is looked at before the bytes of the next are unpacked
                    yield _of_tar(archive, info, limits)
                _require_end(stream, archive.offset, limits)

            yield entries()


def _of_tar(archive: tarfile.TarFile, info: tarfile.TarInfo, limits: Limits) -> _Entry:
    objection = ""
    link = info.linkname if limits.links and info.issym() else ""
    if (info.islnk() or info.issym()) and not link:
        objection = f"is a link to {info.linkname!r}"
    elif not link and (info.issparse() or not (info.isreg() or info.isdir())):
        objection = "is neither a file nor a folder"
    return _Entry(
        name=info.name,
        size=0 if info.isdir() else info.size,
        is_folder=info.isdir(),
        is_executable=bool(info.mode & 0o111) and not info.isdir(),
        objection=objection,
        link=link,
        # By hand, as Debian 12's Python 3.11.2 knows no extraction filters (PEP 706).
        open=lambda: archive.extractfile(info) or io.BytesIO(),
    )


def _require_end(stream: BoundedReader, offset: int, limits: Limits) -> None:
    """Refuse what follows the last member but zeros: tarfile takes a damaged header for the end."""
    stream.seek(offset)
    padding = 0
    while block := stream.read(_BLOCK):
        padding += len(block)
        if block.strip(b"\0") or padding > limits.small:
            raise tarfile.ReadError("it goes on after its end")


class BoundedReader:
    """What tarfile reads; a header that claims to have gigabytes is not read into memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int) -> bytes:
        """Read as the stream does.

        Raises:
            tarfile.ReadError: more is wanted than any honest header has.
        """
        if size > _LONGEST_READ:
            raise tarfile.ReadError(f"one of its headers has {size} bytes")
        return self._stream.read(size)


# --- errors -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(archive: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise _unreadable(archive, error) from error
    except OSError as error:
        if error.errno not in {None, errno.EINVAL}:
            raise
        raise _unreadable(archive, error) from error  # bz2 found no sense, or a place before its start was sought


def _unreadable(archive: Path, error: Exception) -> ArchiveError:
    return ArchiveError(
        f"{archive.name} is not an archive that can be read: {str(error) or type(error).__name__}",
        where=str(archive),
        remedy="remove it and fetch it again",
    )


def _require(archive: Path, problems: list[str]) -> None:
    if problems:
        raise _refused(archive, problems)


def _refused(archive: Path, problems: list[str]) -> ArchiveError:
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return ArchiveError(
        f"{archive.name} must not be unpacked, for {len(problems)} reason{'s' if len(problems) > 1 else ''}",
        where=str(archive),
        remedy="nothing of it was written; report it to its authors",
        evidence=[*problems[:_SHOWN], *more],
    )
