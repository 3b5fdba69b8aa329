"""Wheels that come from elsewhere: a bad one is refused with every reason."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from changed_wheels import AFTER, BEFORE, FILES, INFO, added, built, read, relisted, rewritten, with_row

from patchlock.distributions import wheels
from patchlock.model.errors import HashMismatchError, WheelError


def _without(name: str) -> Callable[..., None]:
    def change(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
        entries[:] = [pair for pair in entries if not pair[0].filename.endswith(name)]

    return change


def _doubled(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    entries.append((zipfile.ZipInfo("alpha/core.py"), BEFORE))


def _changed_content(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    at = next(i for i, (entry, _) in enumerate(entries) if entry.filename == "alpha/core.py")
    entries[at] = (entries[at][0], AFTER)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        pytest.param(added("../evil.py"), ["'../evil.py' leaves the tree"], id="leaves-the-tree"),
        pytest.param(added("alpha/../../evil.py"), ["'alpha/../../evil.py' leaves the tree"], id="dots-inside"),
        pytest.param(added("..\\evil.py"), ["'..\\\\evil.py' leaves the tree"], id="dots-of-windows"),
        pytest.param(added("/etc/evil"), ["'/etc/evil' is an absolute path"], id="absolute"),
        pytest.param(added("C:/evil"), ["'C:/evil' is an absolute path"], id="drive"),
        pytest.param(added("alpha\\evil.py"), ["'alpha\\\\evil.py' is not a plain path"], id="backslash"),
        pytest.param(added("alpha//evil.py"), ["'alpha//evil.py' is not a plain path"], id="empty-part"),
        pytest.param(added("alpha/link", b"/etc", 0o120777), ["'alpha/link' is a symbolic link"], id="symlink"),
        pytest.param(added("alpha/pipe", b"", 0o010644), ["'alpha/pipe' is not a regular file"], id="pipe"),
        pytest.param(_doubled, ["'alpha/core.py' is there twice"], id="twice"),
        pytest.param(added("alpha/core.py/x"), ["'alpha/core.py' is a file and a folder"], id="file-and-folder"),
        pytest.param(added("extra.py", listed=False), ["RECORD does not list extra.py"], id="unlisted"),
        pytest.param(_without("core.py"), ["RECORD lists alpha/core.py, which is not there"], id="listed-only"),
        pytest.param(_changed_content, ["RECORD has another hash of alpha/core.py"], id="other-content"),
        pytest.param(
            with_row(r"(core.py,.*),\d+", r"\1,7"), ["RECORD has another size of alpha/core.py"], id="other-size"
        ),
        pytest.param(
            with_row("core.py,sha256=", "core.py,md5="), ["RECORD gives no sha256 of alpha/core.py"], id="weak-hash"
        ),
        pytest.param(
            with_row("core.py,sha256=[^,]*", "core.py,"), ["RECORD gives no sha256 of alpha/core.py"], id="no-hash"
        ),
        pytest.param(
            with_row("(alpha/core.py,.*)", r"\1\n\1"), ["RECORD lists alpha/core.py twice"], id="listed-twice"
        ),
        pytest.param(with_row(r"\Z", "a,b\n"), ["RECORD has a row that is not one: 'a,b'"], id="half-a-row"),
        pytest.param(_without("/METADATA"), [f"{INFO}/METADATA is missing"], id="no-metadata"),
        pytest.param(_without("/RECORD"), [f"{INFO}/RECORD is missing"], id="no-record"),
        pytest.param(
            added("beta-1.dist-info/METADATA"), ["it has 2 .dist-info folders, and must have one"], id="two-folders"
        ),
        pytest.param(
            relisted("METADATA", lambda data: data.replace(b"Version: 1.3.0", b"Version: 1.3.1")),
            ["the METADATA do not say that it is version 1.3.0"],
            id="other-version",
        ),
        pytest.param(
            relisted("METADATA", lambda data: data.replace(b"Name: alpha", b"Name: beta")),
            ["the METADATA do not say that it is alpha"],
            id="other-name",
        ),
        pytest.param(
            relisted("METADATA", lambda data: b"Version: 1.3.0\n" + data),
            ["the METADATA do not say that it is version 1.3.0"],
            id="two-versions",
        ),
        pytest.param(
            relisted("WHEEL", lambda data: data.replace(b"Wheel-Version: 1.0", b"Wheel-Version: 2.0")),
            ["it is not of wheel version 1"],
            id="wheel-2",
        ),
    ],
)
def test_bad_wheel_is_refused(tmp_path: Path, change: Callable[..., None], reasons: list[str]) -> None:
    path = rewritten(built(tmp_path), change)
    with pytest.raises(WheelError) as caught:
        read(path)
    assert list(caught.value.evidence) == reasons
    assert caught.value.what == f"{path.name} cannot be used, for one reason"


def test_all_reasons_are_told_at_once(tmp_path: Path) -> None:
    path = rewritten(built(tmp_path), _changed_content)
    rewritten(path, added("extra.py", listed=False))
    with pytest.raises(WheelError, match=r"for 2 reasons"):
        read(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip"], ids=["empty", "cut", "text"])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "alpha-1.3.0-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(WheelError, match=r"^alpha-1.3.0-py3-none-any.whl is not a zip file that can be read: "):
        read(path)


def test_damaged_data_are_refused(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.write_bytes(path.read_bytes().replace(BEFORE, b"answer = 43\n"))
    with pytest.raises(WheelError, match=r"Bad CRC-32 for file 'alpha/core.py'"):
        read(path)


def test_encrypted_wheel_is_refused(tmp_path: Path) -> None:
    path = built(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(WheelError) as caught:
        read(path)
    assert caught.value.evidence == ("'alpha/__init__.py' is encrypted",)


def test_wheel_of_another_name_is_refused(tmp_path: Path) -> None:
    path = built(tmp_path)
    other = path.rename(path.with_name("beta-1.3.0-py3-none-any.whl"))
    with pytest.raises(WheelError) as caught:
        read(other)
    assert caught.value.evidence == (f"its folder {INFO} is of another distribution or version",)
    with pytest.raises(WheelError, match=r"^alpha.zip is not the name of a wheel"):
        read(other.rename(other.with_name("alpha.zip")))


def test_wrong_hash_is_refused(tmp_path: Path) -> None:
    path = built(tmp_path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(HashMismatchError) as caught:
        wheels.read(path, "0" * 64)
    assert str(caught.value) == (
        f"{path.name} is not the file that the catalogue names (sha256 {found[:12]}…, wanted 000000000000…); "
        "remove it and download it again"
    )


def test_only_what_installers_put_beside_the_folder_may_be_patched(tmp_path: Path) -> None:
    names = {str(path) for path in read(built(tmp_path)).contents()}
    assert names == {name for name in FILES if not name.startswith(INFO)}
