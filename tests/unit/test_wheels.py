"""Wheels: a bad one is refused with every reason; a patched one is the same bytes everywhere, and installers take it."""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
import uv
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from miniature import wheel as build
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from patchlock import wheels
from patchlock.errors import HashMismatchError, WheelError

MODULE = PurePosixPath("alpha/core.py")
BEFORE, AFTER = b"answer = 41\n", b"answer = 42\n"
INFO = "alpha-1.3.0.dist-info"
KNOWN = ("ae61ecec", "2d929d4f1b3895358265196f12856d19b1c5fb3e4bed57c6e9e81c95c82666dc")
"""Name and sha256 of what `test_same_input_gives_the_same_bytes` packs."""
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


def _wheel(tmp_path: Path, version: str = "1.3.0", files: dict[str, str] | None = None) -> Path:
    files = {name.replace("1.3.0", version): text for name, text in (FILES if files is None else files).items()}
    return build(tmp_path / "wheels", "alpha", version, files=files, requires=("beta>=1",))


def _read(path: Path) -> wheels.Wheel:
    return wheels.read(path, hashlib.sha256(path.read_bytes()).hexdigest())


def _rewritten(path: Path, change: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], object]) -> Path:
    """Write a wheel again after a function has changed the list of its entries."""
    with zipfile.ZipFile(path) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    change(entries)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return path


def _added(name: str, data: bytes = b"", mode: int = 0, *, listed: bool = True) -> Callable[..., None]:
    def change(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
        entry = zipfile.ZipInfo(name)
        entry.filename = name
        entry.external_attr = mode << 16
        entries.append((entry, data))
        if listed:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            _edit(entries, "RECORD", lambda text: text + f"{name},sha256={digest},{len(data)}\n".encode())

    return change


def _edit(entries: list[tuple[zipfile.ZipInfo, bytes]], name: str, edit: Callable[[bytes], bytes]) -> None:
    at = next(i for i, (entry, _) in enumerate(entries) if entry.filename.endswith(f".dist-info/{name}"))
    assert edit(entries[at][1]) != entries[at][1]
    entries[at] = (entries[at][0], edit(entries[at][1]))


def _record(old: str, new: str) -> Callable[..., None]:
    return lambda entries: _edit(entries, "RECORD", lambda data: re.sub(old.encode(), new.encode(), data, count=1))


def _relisted(name: str, edit: Callable[[bytes], bytes]) -> Callable[..., None]:
    """Change a file of the .dist-info folder and its row."""

    def change(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
        _edit(entries, name, edit)
        data = next(data for entry, data in entries if entry.filename == f"{INFO}/{name}")
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        _record(f"{INFO}/{name},.*", f"{INFO}/{name},sha256={digest},{len(data)}")(entries)

    return change


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
        pytest.param(_added("../evil.py"), ["'../evil.py' leaves the tree"], id="leaves-the-tree"),
        pytest.param(_added("alpha/../../evil.py"), ["'alpha/../../evil.py' leaves the tree"], id="dots-inside"),
        pytest.param(_added("..\\evil.py"), ["'..\\\\evil.py' leaves the tree"], id="dots-of-windows"),
        pytest.param(_added("/etc/evil"), ["'/etc/evil' is an absolute path"], id="absolute"),
        pytest.param(_added("C:/evil"), ["'C:/evil' is an absolute path"], id="drive"),
        pytest.param(_added("alpha\\evil.py"), ["'alpha\\\\evil.py' is not a plain path"], id="backslash"),
        pytest.param(_added("alpha//evil.py"), ["'alpha//evil.py' is not a plain path"], id="empty-part"),
        pytest.param(_added("alpha/link", b"/etc", 0o120777), ["'alpha/link' is a symbolic link"], id="symlink"),
        pytest.param(_added("alpha/pipe", b"", 0o010644), ["'alpha/pipe' is not a regular file"], id="pipe"),
        pytest.param(_doubled, ["'alpha/core.py' is there twice"], id="twice"),
        pytest.param(_added("alpha/core.py/x"), ["'alpha/core.py' is a file and a folder"], id="file-and-folder"),
        pytest.param(_added("extra.py", listed=False), ["RECORD does not list extra.py"], id="unlisted"),
        pytest.param(_without("core.py"), ["RECORD lists alpha/core.py, which is not there"], id="listed-only"),
        pytest.param(_changed_content, ["RECORD has another hash of alpha/core.py"], id="other-content"),
        pytest.param(
            _record(r"(core.py,.*),\d+", r"\1,7"), ["RECORD has another size of alpha/core.py"], id="other-size"
        ),
        pytest.param(
            _record("core.py,sha256=", "core.py,md5="), ["RECORD gives no sha256 of alpha/core.py"], id="weak-hash"
        ),
        pytest.param(
            _record("core.py,sha256=[^,]*", "core.py,"), ["RECORD gives no sha256 of alpha/core.py"], id="no-hash"
        ),
        pytest.param(_record("(alpha/core.py,.*)", r"\1\n\1"), ["RECORD lists alpha/core.py twice"], id="listed-twice"),
        pytest.param(_record(r"\Z", "a,b\n"), ["RECORD has a row that is not one: 'a,b'"], id="half-a-row"),
        pytest.param(_without("/METADATA"), [f"{INFO}/METADATA is missing"], id="no-metadata"),
        pytest.param(_without("/RECORD"), [f"{INFO}/RECORD is missing"], id="no-record"),
        pytest.param(
            _added("beta-1.dist-info/METADATA"), ["it has 2 .dist-info folders, and must have one"], id="two-folders"
        ),
        pytest.param(
            _relisted("METADATA", lambda data: data.replace(b"Version: 1.3.0", b"Version: 1.3.1")),
            ["the METADATA do not say that it is version 1.3.0"],
            id="other-version",
        ),
        pytest.param(
            _relisted("METADATA", lambda data: data.replace(b"Name: alpha", b"Name: beta")),
            ["the METADATA do not say that it is alpha"],
            id="other-name",
        ),
        pytest.param(
            _relisted("METADATA", lambda data: b"Version: 1.3.0\n" + data),
            ["the METADATA do not say that it is version 1.3.0"],
            id="two-versions",
        ),
        pytest.param(
            _relisted("WHEEL", lambda data: data.replace(b"Wheel-Version: 1.0", b"Wheel-Version: 2.0")),
            ["it is not of wheel version 1"],
            id="wheel-2",
        ),
    ],
)
def test_bad_wheel_is_refused(tmp_path: Path, change: Callable[..., None], reasons: list[str]) -> None:
    path = _rewritten(_wheel(tmp_path), change)
    with pytest.raises(WheelError) as caught:
        _read(path)
    assert list(caught.value.evidence) == reasons
    assert caught.value.what == f"{path.name} cannot be used, for one reason"


def test_all_reasons_are_told_at_once(tmp_path: Path) -> None:
    path = _rewritten(_wheel(tmp_path), _changed_content)
    _rewritten(path, _added("extra.py", listed=False))
    with pytest.raises(WheelError, match=r"for 2 reasons"):
        _read(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip"], ids=["empty", "cut", "text"])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "alpha-1.3.0-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(WheelError, match=r"^alpha-1.3.0-py3-none-any.whl is not a zip file that can be read: "):
        _read(path)


def test_damaged_data_are_refused(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    path.write_bytes(path.read_bytes().replace(BEFORE, b"answer = 43\n"))
    with pytest.raises(WheelError, match=r"Bad CRC-32 for file 'alpha/core.py'"):
        _read(path)


def test_encrypted_wheel_is_refused(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(WheelError) as caught:
        _read(path)
    assert caught.value.evidence == ("'alpha/__init__.py' is encrypted",)


def test_wheel_of_another_name_is_refused(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    other = path.rename(path.with_name("beta-1.3.0-py3-none-any.whl"))
    with pytest.raises(WheelError) as caught:
        _read(other)
    assert caught.value.evidence == (f"its folder {INFO} is of another distribution or version",)
    with pytest.raises(WheelError, match=r"^alpha.zip is not the name of a wheel"):
        _read(other.rename(other.with_name("alpha.zip")))


def test_wrong_hash_is_refused(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(HashMismatchError) as caught:
        wheels.read(path, "0" * 64)
    assert str(caught.value) == (
        f"{path.name} is not the file that the catalogue names (sha256 {found[:12]}…, wanted 000000000000…); "
        "remove it and take it from the index again"
    )


def test_only_what_installers_put_beside_the_folder_may_be_patched(tmp_path: Path) -> None:
    names = {str(path) for path in _read(_wheel(tmp_path)).contents()}
    assert names == {name for name in FILES if not name.startswith(INFO)}


# --- packing ----------------------------------------------------------------------------------------------------------


def _packed(tmp_path: Path, path: Path | None = None) -> tuple[wheels.PackedWheel, Path]:
    packed = wheels.repack(_read(path or _wheel(tmp_path)), {MODULE: AFTER})
    written = tmp_path / packed.filename
    written.write_bytes(packed.data)
    return packed, written


def test_patched_wheel_is_one_that_we_would_read(tmp_path: Path) -> None:
    packed, written = _packed(tmp_path)
    again = wheels.read(written, packed.sha256)
    assert again.version == packed.version
    assert again.contents()[MODULE] == AFTER
    assert re.fullmatch(r"alpha-1\.3\.0\+patchlock\.[0-9a-f]{8}-py3-none-any\.whl", packed.filename)


def test_everything_else_stays_byte_for_byte_and_in_its_order(tmp_path: Path) -> None:
    packed, written = _packed(tmp_path)
    new = {"-1.3.0.dist-info": f"-{packed.version}.dist-info", "-1.3.0.data": f"-{packed.version}.data"}
    expected = [
        re.sub("|".join(new), lambda m: new[m[0]], name) for name in [*FILES, f"{INFO}/METADATA", f"{INFO}/WHEEL"]
    ]
    with zipfile.ZipFile(written) as archive:
        assert archive.namelist() == [*expected, f"alpha-{packed.version}.dist-info/RECORD"]
        for name, text in FILES.items():
            if name != str(MODULE):
                assert archive.read(re.sub("|".join(new), lambda m: new[m[0]], name)) == text.encode()
        metadata = archive.read(f"alpha-{packed.version}.dist-info/METADATA").decode()
    assert metadata == f"Metadata-Version: 2.1\nName: alpha\nVersion: {packed.version}\nRequires-Dist: beta>=1\n"


def test_record_has_each_file_and_nothing_for_itself(tmp_path: Path) -> None:
    packed, written = _packed(tmp_path)
    with zipfile.ZipFile(written) as archive:
        rows = list(csv.reader(io.StringIO(archive.read(f"alpha-{packed.version}.dist-info/RECORD").decode())))
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={expected}", str(len(data)))
        assert [row[0] for row in rows] == archive.namelist()
    assert rows[-1][1:] == ["", ""]


def test_members_are_stored_without_time_or_system(tmp_path: Path) -> None:
    path = _rewritten(_wheel(tmp_path), _added("alpha/tool.sh", b"#!/bin/sh\n", 0o100775))
    _, written = _packed(tmp_path, path)
    with zipfile.ZipFile(written) as archive:
        for entry in archive.infolist():
            mode = 0o755 if entry.filename == "alpha/tool.sh" else 0o644
            assert (entry.compress_type, entry.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
            assert (entry.create_system, entry.external_attr >> 16, entry.extra) == (3, 0o100000 | mode, b"")


def test_new_files_come_before_the_record(tmp_path: Path) -> None:
    changes = {PurePosixPath("alpha/z.py"): b"z = 1\n", PurePosixPath("alpha/new/a.py"): b"a = 1\n"}
    packed = wheels.repack(_read(_wheel(tmp_path)), changes)
    written = tmp_path / packed.filename
    written.write_bytes(packed.data)
    again = wheels.read(written, packed.sha256)
    assert [str(member.path) for member in again.members][-3:-1] == ["alpha/new/a.py", "alpha/z.py"]
    assert {path: again.contents()[path] for path in changes} == changes


def test_metadata_of_any_line_ending_and_a_description_with_a_version_stay(tmp_path: Path) -> None:
    text = "Metadata-Version: 2.4\r\nname: Alpha\r\nVERSION:  1.3.0\r\n\r\nVersion: 9\r\n\r\nName: x\r\n"
    path = _rewritten(_wheel(tmp_path), _relisted("METADATA", lambda _: text.encode()))
    packed, written = _packed(tmp_path, path)
    with zipfile.ZipFile(written) as archive:
        data = archive.read(f"alpha-{packed.version}.dist-info/METADATA").decode()
    assert data == text.replace("1.3.0", str(packed.version))


def test_signatures_and_stale_bytecode_are_left_out_and_said(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    for name in ("alpha/__pycache__/core.cpython-311.pyc", "alpha/core.pyc", "alpha/__pycache__/other.cpython-311.pyc"):
        _rewritten(path, _added(name, b"\0"))
    for name in ("RECORD.jws", "RECORD.p7s"):
        _rewritten(path, _added(f"{INFO}/{name}", b"{}", listed=False))
    packed, written = _packed(tmp_path, path)
    assert packed.notices == (
        "alpha/__pycache__/core.cpython-311.pyc is left out: it was compiled from the file as it was",
        "alpha/core.pyc is left out: it was compiled from the file as it was",
        f"{INFO}/RECORD.jws is left out: it signs the files as they were",
        f"{INFO}/RECORD.p7s is left out: it signs the files as they were",
    )
    names = zipfile.ZipFile(written).namelist()
    assert [n for n in names if n.endswith((".pyc", ".jws", ".p7s"))] == ["alpha/__pycache__/other.cpython-311.pyc"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.3.0", r"1\.3\.0\+patchlock\.[0-9a-f]{8}"),
        ("2.1.1+cu118", r"2\.1\.1\+cu118\.patchlock\.[0-9a-f]{8}"),
        ("4.0b1", r"4\.0b1\+patchlock\.[0-9a-f]{8}"),
    ],
)
def test_local_version_is_added_or_extended(tmp_path: Path, version: str, expected: str) -> None:
    packed, written = _packed(tmp_path, _wheel(tmp_path, version))
    assert re.fullmatch(expected, str(packed.version))
    assert parse_wheel_filename(written.name)[1] == packed.version
    if "+" not in version:
        assert Requirement(f"alpha=={version}").specifier.contains(packed.version, prereleases=True)


def test_wheel_of_ours_is_not_patched_again(tmp_path: Path) -> None:
    _, written = _packed(tmp_path)
    with pytest.raises(WheelError, match=r"was patched already; take the file from the index$"):
        _packed(tmp_path / "again", written)


def test_other_bytes_have_another_name(tmp_path: Path) -> None:
    original = _read(_wheel(tmp_path))
    names = {wheels.repack(original, {MODULE: data}).version for data in (AFTER, b"answer = 43\n")}
    other = dataclasses.replace(original, sha256="0" * 64)
    names.add(wheels.repack(other, {MODULE: AFTER}).version)
    names.add(wheels.repack(original, {PurePosixPath("alpha/__init__.py"): AFTER}).version)
    assert len(names) == 4


@given(st.binary(min_size=32, max_size=32))
def test_name_is_never_a_number_that_would_lose_its_zeros(seed: bytes) -> None:
    original = wheels.Wheel(
        name="alpha", version=Version("1.0"), filename="a-1.0-py3-none-any.whl", sha256=seed.hex(), info="i", members=()
    )
    text = str(wheels._local_version(original, {}))
    assert str(Version(text)) == text
    assert re.fullmatch(r"1\.0\+patchlock\.(?=\d*[a-f])[0-9a-f]{8}", text)


_PACK = """
import hashlib, os, sys
from pathlib import Path, PurePosixPath
os.umask(int(sys.argv[2], 8))
from patchlock import wheels
data = Path(sys.argv[1]).read_bytes()
packed = wheels.repack(wheels.read(Path(sys.argv[1]), None), {PurePosixPath("alpha/core.py"): b"answer = 42\\n"})
print(packed.filename, packed.sha256, hashlib.sha256(packed.data).hexdigest())
"""


def _made_on_unix(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    for entry, _ in entries:
        entry.create_system = 3


def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    path = _rewritten(_wheel(tmp_path), _made_on_unix)
    printed = set()
    for mask, zone, seed, where in (("022", "UTC", "0", "."), ("077", "Pacific/Kiritimati", "4711", "home")):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "installer"), "TZ": zone, "PYTHONHASHSEED": seed}
        os.utime(path, (int(seed), int(seed)))
        done = subprocess.run(
            [sys.executable, "-c", _PACK, path, mask],
            env=env,
            cwd=tmp_path / where,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(done.stdout)
    assert len(printed) == 1
    # Written down, so that another machine, system or Python that packs otherwise is found out.
    assert printed == {f"alpha-1.3.0+patchlock.{KNOWN[0]}-py3-none-any.whl {KNOWN[1]} {KNOWN[1]}\n"}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    subprocess.run([uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    return tmp_path / "venv"


def _uv(environment: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [uv.find_uv_bin(), "pip", *arguments, "--python", environment]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_installers_take_it_for_the_version_that_it_patches(tmp_path: Path, environment: Path) -> None:
    packed, _ = _packed(tmp_path, _rewritten(_wheel(tmp_path), _added("alpha/tool.sh", b"#!/bin/sh\n", 0o100755)))
    build(tmp_path, "beta", "1.0", requires=("alpha==1.3.0",))
    lock = tmp_path / "lock.txt"
    beta = hashlib.sha256((tmp_path / "beta-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    lock.write_text(f"alpha=={packed.version} --hash=sha256:{packed.sha256}\nbeta==1.0 --hash=sha256:{beta}\n")
    done = _uv(environment, "install", "--no-index", "--find-links", tmp_path, "--require-hashes", "-r", lock)
    assert done.returncode == 0, done.stderr
    assert f"alpha=={packed.version}" in done.stderr
    checked = _uv(environment, "check")
    assert checked.returncode == 0, checked.stderr
    code = """
import base64, hashlib, importlib.metadata as metadata, os
distribution = metadata.distribution("alpha")
for file in distribution.files:
    if file.hash:
        data = file.locate().read_bytes()
        assert file.hash.value == base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="), file
        assert file.size is None or file.size == len(data), file
from alpha import core, __file__ as place
print(distribution.version, core.answer, os.access(os.path.join(os.path.dirname(place), "tool.sh"), os.X_OK))
"""
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    printed = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert printed == [str(packed.version), "42", "True"]
