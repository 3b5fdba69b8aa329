"""Fetch an sdist by its sha256 and read static files of it, such as say what it requires; unpacks and runs nothing."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

from patchlock.core import download
from patchlock.distributions.sdist_metadata import is_wanted
from patchlock.model.errors import SdistError
from patchlock.model.identities import Sha256
from patchlock.model.sdist import Sdist

_LARGEST = 1_000_000
"""Bytes; a larger `setup.py` is not one."""


def fetch(sdist: Sdist, cache: Path) -> Path:
    """Bring an sdist into the cache.

    Args:
        sdist: which; its address may be `https`, `http` or `file`.
        cache: patchlock's; the file's place in it is its sha256.

    Raises:
        HashMismatchError: the server gave other bytes.
        NetworkError: the server does not answer.
        DownloadError: it does not have the file.
    """
    filename = unquote(PurePosixPath(urlsplit(sdist.url).path).name)
    return download.fetch(sdist.url.partition("#")[0], cache / "sdists" / sdist.sha256 / filename, sha256=sdist.sha256)


def cached(sha256: Sha256, cache: Path) -> Path | None:
    """Find an sdist in the cache; None where it was not fetched."""
    found = (one for one in (cache / "sdists" / sha256).glob("*") if one.suffix in {".gz", ".zip", ".bz2", ".xz"})
    return next(found, None)


def static_files(archive: Path, wanted: Callable[[PurePosixPath], bool] = is_wanted) -> Mapping[PurePosixPath, bytes]:
    """Read some files of an sdist by their path from its top folder: those that say what it requires, or `wanted` ones.

    Raises:
        SdistError: it is not an archive, or a broken one.
    """
    found: dict[PurePosixPath, bytes] = {}
    try:
        for name, size, file in _members(archive):
            path = PurePosixPath(*PurePosixPath(name).parts[1:])
            if wanted(path) and size <= _LARGEST:
                with file() as opened:
                    found[path] = opened.read(_LARGEST)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise SdistError(
            f"{archive.name} is not an sdist that can be read: {error}",
            where=str(archive),
            remedy="use another version, or report it to its authors",
        ) from error
    return found


_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".pyx")
_COMPILES = re.compile(r"ext_modules|\bExtension\(|cythonize|cffi_modules|pybind11|meson|scikit[-_]build|(?i:cmake)")
_CHOOSES = re.compile(r"\b(?:environ|getenv|argv|except)\b|\boptional\s*=")
"""With this, a `setup.py` may decide as it runs to compile nothing."""
_CMAKE = re.compile(r"scikit[-_]build|(?i:\bcmake\b)")


def build_tools(archive: Path) -> Mapping[str, bool]:
    """Name the needs of `profiles/needs/` that the build of an sdist has, by its files; none where it compiles nothing.

    Returns:
        Need → whether the build certainly has it.

    Raises:
        SdistError: it is not an archive, or a broken one.
    """
    files = static_files(archive)
    texts = {
        name: files.get(PurePosixPath(name), b"").decode("utf-8", "replace")
        for name in ("pyproject.toml", "setup.py", "setup.cfg")
    }
    scripts = "\n".join(texts.values())
    if not _COMPILES.search(scripts) or not any(name.lower().endswith(_SOURCES) for name, *_ in _members(archive)):
        return {}
    needs = ("c-compiler", "cmake") if _CMAKE.search(scripts) else ("c-compiler",)
    return dict.fromkeys(needs, _CHOOSES.search(texts["setup.py"]) is None)


class _Opener:
    """Opens one regular member of an archive."""

    def __init__(self, archive: tarfile.TarFile | zipfile.ZipFile, member: tarfile.TarInfo | zipfile.ZipInfo) -> None:
        self.archive = archive
        self.member = member

    def __call__(self) -> IO[bytes]:
        if isinstance(self.archive, zipfile.ZipFile):
            return self.archive.open(self.member)  # type: ignore[arg-type]
        opened = self.archive.extractfile(self.member)  # type: ignore[arg-type]
        if opened is None:
            raise tarfile.TarError("a member cannot be read")
        return opened


def _members(path: Path) -> Iterator[tuple[str, int, _Opener]]:
    """Walk the regular files of an archive; nothing is written anywhere."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                yield info.filename, info.file_size, _Opener(packed, info)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                yield member.name, member.size, _Opener(archive, member)
