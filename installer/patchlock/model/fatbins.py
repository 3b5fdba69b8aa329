"""Find the GPU architectures that compiled code is for, in a stream of bytes; needs no tool of CUDA or ROCm.

Formats: CUDA fat binaries (`.nv_fatbin` of ELF and PE files) are headers of magic 0xBA55ED50, version and header size
(u16), payload size (u64), and entries of kind (u16; 1 PTX, 2 cubin), version (u16), header size (u32), payload size
(u64), and the architecture as u32 at offset 28. Source: `fatbinary_section.h` of the CUDA toolkit for the magic and the
header; the entries as observed with cuobjdump. ROCm: clang's offload bundles, a magic, a count (u64), and entries of
offset, size and length of an id (u64 each) with the id. Source: https://clang.llvm.org/docs/ClangOffloadBundler.html.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator

_FATBIN = struct.pack("<I", 0xBA55ED50)
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_MAGIC = re.compile(b"|".join(map(re.escape, (_FATBIN, _BUNDLE, _COMPRESSED))))
_OVERLAP = len(_BUNDLE) - 1
_ENTRY = struct.Struct("<HHIQ12xI")
"""Kind, version, header size, payload size, architecture; 32 bytes."""
_KINDS = {1: "compute", 2: "sm"}
_LARGEST_HEADER = 4096
_TARGET = re.compile(rb"(?:hipv?4?|openmp)-amdgcn-amd-amdhsa-+(?:unknown-+)?(gfx[0-9a-f]+(?:(?:-[0-9]+)?-generic)?)")
UNREADABLE = "compressed-rocm"
"""Stands for a compressed ROCm bundle (zstd), which the standard library does not read yet."""


class _Stream:
    """Bytes that come in pieces, read forwards."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._held = b""

    def need(self, count: int) -> bytes:
        """Look at the next bytes without taking them; fewer at the end."""
        if len(self._held) < count:
            parts, length = [self._held], len(self._held)
            while length < count and (piece := next(self._pieces, None)) is not None:
                parts.append(piece)
                length += len(piece)
            self._held = b"".join(parts)
        return self._held[:count]

    def skip(self, count: int) -> bool:
        """Take bytes away; say whether so many were there."""
        while count > len(self._held):
            count -= len(self._held)
            self._held = next(self._pieces, b"")
            if not self._held:
                return False
        self._held = self._held[count:]
        return True

    def seek_magic(self) -> bytes:
        """Take bytes away up to the next magic and give it; b"" at the end."""
        while True:
            found = _MAGIC.search(self._held)
            if found is not None:
                self._held = self._held[found.start() :]
                return found[0]
            piece = next(self._pieces, None)
            if piece is None:
                self._held = b""
                return b""
            self._held = self._held[-_OVERLAP:] + piece


def scan(pieces: Iterable[bytes]) -> frozenset[str]:
    """Name the GPU architectures in a file: `sm_110` for compiled code, `compute_90` for PTX, `gfx1201` for ROCm.

    Args:
        pieces: the file's bytes in order, in pieces of any size; no more than a piece or two is held.
    """
    stream = _Stream(pieces)
    found: set[str] = set()
    while magic := stream.seek_magic():
        if magic == _FATBIN:
            found |= _cuda(stream)
        elif magic == _BUNDLE:
            found |= _rocm(stream)
        else:
            found |= _compressed(stream)
    return frozenset(found)


def _cuda(stream: _Stream) -> set[str]:
    """Read one fat binary; what only looks like one is stepped over by a byte."""
    header = stream.need(16)
    if len(header) < 16:
        stream.skip(1)
        return set()
    version, size, payload = struct.unpack("<HHQ", header[4:])
    if version != 1 or size != 16 or payload == 0:
        stream.skip(1)
        return set()
    stream.skip(size)
    found: set[str] = set()
    left = payload
    while left >= _ENTRY.size:
        entry = stream.need(_ENTRY.size)
        if len(entry) < _ENTRY.size:
            break
        kind, _, head, length, arch = _ENTRY.unpack(entry)
        if not _ENTRY.size <= head <= _LARGEST_HEADER or head + length > left or not 10 <= arch < 1000:
            break
        if kind in _KINDS:
            found.add(f"{_KINDS[kind]}_{arch}")
        if not stream.skip(head + length):
            break
        left -= head + length
    return found


def _rocm(stream: _Stream) -> set[str]:
    """Read the table of one offload bundle."""
    stream.skip(len(_BUNDLE))
    start = stream.need(8)
    count = int.from_bytes(start, "little") if len(start) == 8 else 0
    if not 0 < count <= 1024:
        return set()
    stream.skip(8)
    found: set[str] = set()
    for _ in range(count):
        entry = stream.need(24)
        if len(entry) < 24:
            break
        _, size, length = struct.unpack("<QQQ", entry)
        if length > 256:
            break
        stream.skip(24)
        name = stream.need(length)
        stream.skip(length)
        target = _TARGET.match(name)
        if target is not None and size:
            found.add(target[1].decode())
    return found


def _compressed(stream: _Stream) -> set[str]:
    """Know a compressed bundle by its header: version 1 to 3, method zlib (0) or zstd (1)."""
    header = stream.need(8)
    stream.skip(4)
    if len(header) < 8:
        return set()
    version, method = struct.unpack("<HH", header[4:])
    return {UNREADABLE} if version in {1, 2, 3} and method in {0, 1} else set()
