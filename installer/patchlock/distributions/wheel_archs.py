"""Find the GPU architectures in a wheel that lies on a server or here, streaming its libraries; writes nothing."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator

from patchlock.core import http_ranges
from patchlock.model import fatbins

_COMPILED = re.compile(r".*(\.so(\.\d+)*|\.pyd|\.dll|\.fatbin|\.cubin|\.ptx|\.hsaco|\.co|\.exe)", re.IGNORECASE)
"""Members that can hold GPU code; others are not read."""
_PIECE = 1024 * 1024
_AHEAD = 16 * 1024 * 1024
"""Bytes of one request while a library is streamed."""
_NAME = re.compile(r"(gfx[0-9a-f]{3,4})(?![0-9a-f])")

Tell = Callable[[str, int], None]
"""Called with the name of a member and its size in bytes before it is read."""


def compiled(archive: zipfile.ZipFile) -> tuple[zipfile.ZipInfo, ...]:
    """List the members that may hold GPU code, in the order of the archive."""
    return tuple(info for info in archive.infolist() if _COMPILED.fullmatch(info.filename))


def size(address: str) -> int:
    """Say how many bytes of a wheel would have to be read.

    Raises:
        NetworkError, OSError, zipfile.BadZipFile: as `scan`.
    """
    with http_ranges.open_file(address) as opened, zipfile.ZipFile(opened) as archive:
        return sum(info.compress_size for info in compiled(archive))


def scan(address: str, *, tell: Tell = lambda _name, _size: None) -> frozenset[str]:
    """Name the GPU architectures of all compiled code in a wheel; see `fatbins.scan`.

    Args:
        address: `https://…`, `http://…` or `file://…`.
        tell: see `Tell`.

    Raises:
        NetworkError: the server does not answer, or gives no parts of files.
        OSError: the file on this machine cannot be read.
        zipfile.BadZipFile: it is no archive, or its bytes do not agree with its table of contents.
    """
    found: set[str] = set()
    with http_ranges.open_file(address, ahead=_AHEAD) as opened, zipfile.ZipFile(opened) as archive:
        for info in compiled(archive):
            tell(info.filename, info.file_size)
            if name := _NAME.search(info.filename.rpartition("/")[2]):  # kernels that hipBLASLt and others name
                found.add(name[1])
            found |= fatbins.scan(_pieces(archive, info))
    return frozenset(found)


def _pieces(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        while piece := member.read(_PIECE):
            yield piece
