"""A wheel of one distribution, and functions that change its entries one by one."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from miniature import wheel as build

from patchlock.distributions import wheels

MODULE = PurePosixPath("alpha/core.py")
BEFORE, AFTER = b"answer = 41\n", b"answer = 42\n"
INFO = "alpha-1.3.0.dist-info"
FILES = {
    "alpha/__init__.py": "",
    "alpha/core.py": BEFORE.decode(),
    "alpha/data.txt": "größe\r\n",
    "alpha-1.3.0.data/scripts/alpha": "#!python\nprint('alpha')\n",
    f"{INFO}/licenses/LICENSE": "MIT\n",
    f"{INFO}/sboms/alpha.cdx.json": '{"bomFormat": "CycloneDX"}',
    f"{INFO}/direct_url.json": '{"url": "https://files.test/alpha.whl", "archive_info": {}}',
    f"{INFO}/entry_points.txt": "[console_scripts]\nalpha-tool = alpha.core:main\n",
}


def built(tmp_path: Path, version: str = "1.3.0", files: dict[str, str] | None = None) -> Path:
    files = {name.replace("1.3.0", version): text for name, text in (FILES if files is None else files).items()}
    return build(tmp_path / "wheels", "alpha", version, files=files, requires=("beta>=1",))


def read(path: Path) -> wheels.Wheel:
    return wheels.read(path, hashlib.sha256(path.read_bytes()).hexdigest())


def rewritten(path: Path, change: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], object]) -> Path:
    """Write a wheel again after a function has changed the list of its entries."""
    with zipfile.ZipFile(path) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    change(entries)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return path


def added(name: str, data: bytes = b"", mode: int = 0, *, listed: bool = True) -> Callable[..., None]:
    def change(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
        entry = zipfile.ZipInfo(name)
        entry.filename = name
        entry.external_attr = mode << 16
        entries.append((entry, data))
        if listed:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            edit(entries, "RECORD", lambda text: text + f"{name},sha256={digest},{len(data)}\n".encode())

    return change


def edit(entries: list[tuple[zipfile.ZipInfo, bytes]], name: str, changed: Callable[[bytes], bytes]) -> None:
    at = next(i for i, (entry, _) in enumerate(entries) if entry.filename.endswith(f".dist-info/{name}"))
    assert changed(entries[at][1]) != entries[at][1]
    entries[at] = (entries[at][0], changed(entries[at][1]))


def with_row(old: str, new: str) -> Callable[..., None]:
    return lambda entries: edit(entries, "RECORD", lambda data: re.sub(old.encode(), new.encode(), data, count=1))


def relisted(name: str, changed: Callable[[bytes], bytes]) -> Callable[..., None]:
    """Change a file of the .dist-info folder and its row."""

    def change(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
        edit(entries, name, changed)
        data = next(data for entry, data in entries if entry.filename == f"{INFO}/{name}")
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        with_row(f"{INFO}/{name},.*", f"{INFO}/{name},sha256={digest},{len(data)}")(entries)

    return change
