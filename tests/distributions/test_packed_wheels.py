"""A patched wheel is the same bytes everywhere, keeps all else, and installers take it."""

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
from pathlib import Path, PurePosixPath

import pytest
import uv
from changed_wheels import AFTER, FILES, INFO, MODULE, added, built, read, relisted, rewritten
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from miniature import wheel as build
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from patchlock.distributions import wheels
from patchlock.model.errors import WheelError

KNOWN = ("ae61ecec", "2d929d4f1b3895358265196f12856d19b1c5fb3e4bed57c6e9e81c95c82666dc")
"""Name and sha256 of what `test_same_input_gives_the_same_bytes` packs."""


def _packed(tmp_path: Path, path: Path | None = None) -> tuple[wheels.PackedWheel, Path]:
    packed = wheels.repack(read(path or built(tmp_path)), {MODULE: AFTER})
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
    path = rewritten(built(tmp_path), added("alpha/tool.sh", b"#!/bin/sh\n", 0o100775))
    _, written = _packed(tmp_path, path)
    with zipfile.ZipFile(written) as archive:
        for entry in archive.infolist():
            mode = 0o755 if entry.filename == "alpha/tool.sh" else 0o644
            assert (entry.compress_type, entry.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
            assert (entry.create_system, entry.external_attr >> 16, entry.extra) == (3, 0o100000 | mode, b"")


def test_new_files_come_before_the_record(tmp_path: Path) -> None:
    changes = {PurePosixPath("alpha/z.py"): b"z = 1\n", PurePosixPath("alpha/new/a.py"): b"a = 1\n"}
    packed = wheels.repack(read(built(tmp_path)), changes)
    written = tmp_path / packed.filename
    written.write_bytes(packed.data)
    again = wheels.read(written, packed.sha256)
    assert [str(member.path) for member in again.members][-3:-1] == ["alpha/new/a.py", "alpha/z.py"]
    assert {path: again.contents()[path] for path in changes} == changes


def test_metadata_of_any_line_ending_and_a_description_with_a_version_stay(tmp_path: Path) -> None:
    text = "Metadata-Version: 2.4\r\nname: Alpha\r\nVERSION:  1.3.0\r\n\r\nVersion: 9\r\n\r\nName: x\r\n"
    path = rewritten(built(tmp_path), relisted("METADATA", lambda _: text.encode()))
    packed, written = _packed(tmp_path, path)
    with zipfile.ZipFile(written) as archive:
        data = archive.read(f"alpha-{packed.version}.dist-info/METADATA").decode()
    assert data == text.replace("1.3.0", str(packed.version))


def test_signatures_and_stale_bytecode_are_left_out_and_said(tmp_path: Path) -> None:
    path = built(tmp_path)
    for name in ("alpha/__pycache__/core.cpython-311.pyc", "alpha/core.pyc", "alpha/__pycache__/other.cpython-311.pyc"):
        rewritten(path, added(name, b"\0"))
    for name in ("RECORD.jws", "RECORD.p7s"):
        rewritten(path, added(f"{INFO}/{name}", b"{}", listed=False))
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
    packed, written = _packed(tmp_path, built(tmp_path, version))
    assert re.fullmatch(expected, str(packed.version))
    assert parse_wheel_filename(written.name)[1] == packed.version
    if "+" not in version:
        assert Requirement(f"alpha=={version}").specifier.contains(packed.version, prereleases=True)


def test_wheel_of_ours_is_not_patched_again(tmp_path: Path) -> None:
    _, written = _packed(tmp_path)
    with pytest.raises(WheelError, match=r"was patched already; download the file from the index$"):
        _packed(tmp_path / "again", written)


def test_other_bytes_have_another_name(tmp_path: Path) -> None:
    original = read(built(tmp_path))
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
from patchlock.distributions import wheels
data = Path(sys.argv[1]).read_bytes()
packed = wheels.repack(wheels.read(Path(sys.argv[1]), None), {PurePosixPath("alpha/core.py"): b"answer = 42\\n"})
print(packed.filename, packed.sha256, hashlib.sha256(packed.data).hexdigest())
"""


def _made_on_unix(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    for entry, _ in entries:
        entry.create_system = 3


def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    path = rewritten(built(tmp_path), _made_on_unix)
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
    packed, _ = _packed(tmp_path, rewritten(built(tmp_path), added("alpha/tool.sh", b"#!/bin/sh\n", 0o100755)))
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
