"""Archives that no sdist should be, for tests."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

KINDS = ("leaves", "absolute", "link", "hard link", "device", "bomb", "no archive", "cut", "two tops")


def archive(path: Path, kind: str) -> Path:
    """Write an archive named delta-1.0 that is bad in one way; a `.zip` where the path says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "no archive":
        path.write_bytes(b"this is not an archive")
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            _zip(packed, kind)
    else:
        with tarfile.open(path, "w:gz") as tar:
            _tar(tar, kind)
    if kind == "cut":
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
    return path


def _tar(tar: tarfile.TarFile, kind: str) -> None:
    _add(tar, "delta-1.0/PKG-INFO", b"Metadata-Version: 1.1\nName: delta\nVersion: 1.0\n" + bytes(range(256)) * 40)
    member = tarfile.TarInfo("delta-1.0/bad")
    match kind:
        case "leaves":
            _add(tar, "delta-1.0/../../escaped", b"x")
        case "absolute":
            _add(tar, "/tmp/escaped-of-patchlock", b"x")
        case "two tops":
            _add(tar, "other/file", b"x")
        case "link" | "hard link":
            member.type = tarfile.SYMTYPE if kind == "link" else tarfile.LNKTYPE
            member.linkname = "/etc/passwd" if kind == "link" else "delta-1.0/PKG-INFO"
            tar.addfile(member)
        case "device":
            member.type = tarfile.FIFOTYPE
            tar.addfile(member)
        case "bomb":
            member.size = 20_000_000
            tar.addfile(member, _Zeros(member.size))


def _zip(packed: zipfile.ZipFile, kind: str) -> None:
    packed.writestr("delta-1.0/PKG-INFO", "Name: delta\n")
    match kind:
        case "leaves":
            packed.writestr("delta-1.0/../../escaped", "x")
        case "absolute":
            packed.writestr("/tmp/escaped-of-patchlock", "x")
        case "link":
            entry = zipfile.ZipInfo("delta-1.0/bad")
            entry.external_attr = 0o120777 << 16
            packed.writestr(entry, "/etc/passwd")


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


class _Zeros(io.RawIOBase):
    """Many zeros that take no memory."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return bytes(size)
