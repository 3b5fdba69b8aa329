"""Unpacking an sdist: nothing leaves the folder, no links, no bombs, one folder at the top."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from hostile import KINDS, archive
from sdists import sdist

from patchlock.core.archives import Limits
from patchlock.distributions import sdist_unpacking
from patchlock.model.errors import SdistError

SAYS = {
    "leaves": "leaves the folder",
    "absolute": "is an absolute path",
    "link": "is a link",
    "hard link": "is a link to 'delta-1.0/PKG-INFO'",
    "device": "is neither a file nor a folder",
    "bomb": "it would become more than 100 times as large",
    "no archive": "it cannot be read",
    "cut": "it cannot be read",
    "two tops": "it has 2 entries at its top, and must have one folder",
}


@pytest.mark.parametrize("kind", KINDS)
def test_bad_tar_is_refused_and_nothing_is_written_outside(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdist_unpacking, "_LIMITS", Limits(ratio=100, small=1_000_000))
    path = archive(tmp_path / "in" / "delta-1.0.tar.gz", kind)
    with pytest.raises(SdistError) as caught:
        sdist_unpacking.unpack(path, tmp_path / "a" / "b" / "out")
    assert SAYS[kind] in caught.value.what
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "home") == ["a", "in"]
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize("kind", ["leaves", "absolute", "link", "cut"])
def test_bad_zip_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SdistError) as caught:
        sdist_unpacking.unpack(archive(tmp_path / "delta-1.0.zip", kind), tmp_path / "out")
    assert SAYS[kind] in caught.value.what


def test_good_archives_are_unpacked_with_their_modes(tmp_path: Path) -> None:
    top = sdist_unpacking.unpack(sdist(tmp_path, "delta", "1.0", {"a/b.py": "x\n"}), tmp_path / "tar")
    assert (top.name, (top / "a" / "b.py").read_text()) == ("delta-1.0", "x\n")
    with zipfile.ZipFile(tmp_path / "delta-1.0.zip", "w") as packed:
        entry = zipfile.ZipInfo("delta-1.0/run")
        entry.external_attr = 0o100755 << 16
        packed.writestr(entry, "#!/bin/sh\n")
    top = sdist_unpacking.unpack(tmp_path / "delta-1.0.zip", tmp_path / "zip")
    assert (top / "run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("suffix", "mode"), [("tar", "w:"), ("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz")]
)
def test_names_that_only_some_platforms_hold_are_the_business_of_its_makers(
    tmp_path: Path, suffix: str, mode: Literal["w:", "w:gz", "w:bz2", "w:xz"]
) -> None:
    path = tmp_path / f"delta-1.0.{suffix}"
    with tarfile.open(path, mode) as tar:
        for name, data in (("./delta-1.0/aux.c", b"1"), ("delta-1.0/a", b"first"), ("delta-1.0/a", b"again")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    top = sdist_unpacking.unpack(path, tmp_path / "out")
    assert {file.name: file.read_bytes() for file in top.iterdir()} == {"aux.c": b"1", "a": b"again"}
