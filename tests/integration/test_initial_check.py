"""Bad wheels and bad RECORDs: nothing is written outside an environment, and a RECORD is read as what it means."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import miniature
import pytest

from patchlock.core import uv
from patchlock.environments import _initial_check, inspection, ledger, venv
from patchlock.model.errors import WheelError

VERSION = venv.Version(f"{sys.version_info.major}.{sys.version_info.minor}")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty environment, five folders deep."""
    folder = tmp_path_factory.mktemp("deep") / "a" / "mini@tiny" / "environments" / "one"
    held = os.open(tmp_path_factory.mktemp("lock") / "lock", os.O_CREAT | os.O_RDWR)
    venv.create(folder, str(VERSION), lock=held)
    os.close(held)
    return folder


@pytest.fixture
def environment(made_once: Path) -> Iterator[Path]:
    """Give the environment, and make it as it was afterwards."""
    beside = made_once.with_name("before")
    shutil.copytree(made_once, beside, symlinks=True)
    yield made_once
    shutil.rmtree(made_once)
    beside.rename(made_once)


def install(environment: Path, wheel: Path) -> None:
    """Install a wheel as `environments.venv.sync` does."""
    command = [str(uv.find()), "pip", "install", "-q", "--no-config", "--offline", "--no-index", "--no-deps"]
    subprocess.run([*command, "--python", str(venv.interpreter(environment)), str(wheel)], check=True)


@pytest.mark.parametrize(
    "member",
    [
        *("../../../evil", "alpha-1.0.data/data/../../../../evil", "alpha-1.0.data/scripts/../../../../evil"),
        *("alpha-1.0.data/headers/../../../../../evil", "..\\..\\evil"),
    ],
)
def test_zip_slip_wheel_writes_nothing_outside(environment: Path, tmp_path: Path, member: str) -> None:
    wheel = miniature.wheel(tmp_path / "wheels", "alpha", "1.0", files={"alpha.py": "\n", member: "evil"})
    top = environment.parent.parent.parent.parent
    before = {path for path in top.rglob("*") if environment not in path.parents}
    install(environment, wheel)
    _initial_check.create_ledger(environment, inspection.read(environment))
    assert {path for path in top.rglob("*") if environment not in path.parents} == before


OVER = [
    "pyvenv.cfg",
    "gate/pip",
    "lock.txt",
    "ledger.json",
    "Receipt.toml",
    "builds.toml",
    "catalogue/x",
]
OVER += [f"lib/python{VERSION}/site-packages/_patchlock_gate.pth"]


@pytest.mark.parametrize("name", OVER)
def test_wheel_that_writes_over_what_makes_the_environment_is_refused(
    environment: Path, tmp_path: Path, name: str
) -> None:
    files = {"alpha.py": "\n", f"alpha-1.0.data/data/{name}": "evil"}
    install(environment, miniature.wheel(tmp_path / "wheels", "alpha", "1.0", files=files))
    with pytest.raises(WheelError) as caught:
        _initial_check.create_ledger(environment, inspection.read(environment))
    assert caught.value.what.startswith("the wheel of alpha 1.0 has files that do not belong into an environment: ")
    assert caught.value.what.endswith(name.rpartition("/")[2])
    assert ledger.read(environment) is None


def test_another_installer_that_left_the_environment_is_refused(environment: Path) -> None:
    _distribution(environment, {"alpha.py": b"a"}, "alpha.py,,\n../../../../../escaped,,\n/etc/hostname,,\n")
    with pytest.raises(WheelError) as error:
        _initial_check.create_ledger(environment, inspection.read(environment))
    assert error.value.evidence == ("alpha: ../../../../../escaped", "alpha: /etc/hostname")


def _distribution(environment: Path, files: dict[str, bytes], record: str) -> Path:
    packages = next(environment.glob("lib/python*/site-packages"))
    info = packages / "alpha-1.0.dist-info"
    info.mkdir()
    for path, data in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_bytes(data)
    (info / "RECORD").write_text(record, newline="")
    return packages


def _b64(data: bytes, algorithm: str = "sha256") -> str:
    return base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).decode()


DATA = b"import beta\n"
HEX = hashlib.sha256(DATA).hexdigest()
PLAIN = base64.b64encode(hashlib.sha256(DATA).digest()).decode()
RIGHT = [
    pytest.param(f"a.py,sha256={_b64(DATA).rstrip('=')},12\n", id="as it should be"),
    pytest.param(f"a.py,sha256={_b64(DATA)},12\n", id="padded"),
    pytest.param(f"a.py,sha256={HEX},12\n", id="hex"),
    pytest.param(f"a.py,sha256={PLAIN},12\n", id="plain base64"),
    pytest.param(f"a.py,sha512={_b64(DATA, 'sha512')},12\n", id="sha512"),
    pytest.param(f"a.py,md5={_b64(DATA, 'md5')},12\n", id="md5"),
    pytest.param(f"a.py,SHA256={_b64(DATA)},12\r\n", id="CRLF"),
    pytest.param("a.py,,\n", id="no hash"),
    pytest.param(f"a.py,sha256={_b64(DATA)},99\n", id="wrong size"),
    pytest.param(f"a.py,sha256=AAAA,12\na.py,sha256={_b64(DATA)},12\n", id="twice, once right"),
    pytest.param(f"pkg/,,\n__pycache__/a.cpython-311.pyc,sha256=AAAA,3\n\nx\na.py,sha256={_b64(DATA)},12\n", id="other rows"),
    pytest.param("alpha-1.0.dist-info/RECORD,,\nalpha-1.0.dist-info/RECORD,,\na.py,,12\n", id="RECORD itself"),
]  # fmt: skip


@pytest.mark.parametrize("record", RIGHT)
def test_odd_record_is_read_as_what_it_means(environment: Path, record: str) -> None:
    _distribution(environment, {"a.py": DATA}, record)
    assert inspection.find_content_deviations(inspection.read(environment), lambda _done, _total: None) == []


WRONG = [
    pytest.param(f"a.py,sha256={_b64(b'other')},12\n", "a.py", id="hash"),
    pytest.param(f"a.py,sha256={hashlib.sha256(b'other').hexdigest()},12\n", "a.py", id="hex"),
    pytest.param(f"a.py,md5={_b64(b'other', 'md5')},12\n", "a.py", id="md5"),
    pytest.param("a.py,,13\n", "a.py", id="size without hash"),
    pytest.param("b.py,,\n", "b.py", id="missing"),
    pytest.param(f"b.py,sha256={_b64(DATA)},12\n", "b.py", id="missing, with hash"),
]


@pytest.mark.parametrize(("record", "path"), WRONG)
def test_what_is_wrong_by_its_record_is_found(environment: Path, record: str, path: str) -> None:
    _distribution(environment, {"a.py": DATA}, record)
    found = inspection.find_content_deviations(inspection.read(environment), lambda _done, _total: None)
    assert [deviation.path for deviation in found] == [path]


def test_size_that_record_has_wrong_from_the_start_is_no_damage(environment: Path) -> None:
    packages = _distribution(environment, {"a.py": DATA}, "a.py,,13\nghost.py,,1\n")
    book = _initial_check.create_ledger(environment, inspection.read(environment))
    found = inspection.find_size_deviations(inspection.read(environment))
    assert [deviation.path for deviation in found if not inspection.is_as_installed(deviation, book)] == []
    (packages / "a.py").write_bytes(b"short")
    (packages / "ghost.py").write_bytes(b"it appeared")
    found = inspection.find_size_deviations(inspection.read(environment))
    assert [deviation.path for deviation in found if not inspection.is_as_installed(deviation, book)] == [
        *("a.py", "ghost.py")
    ]


def test_file_without_a_hash_is_known_as_it_was_laid_down(environment: Path) -> None:
    packages = _distribution(environment, {"a.py": DATA}, "a.py,,\nalpha-1.0.dist-info/RECORD,,7\n")
    book = _initial_check.create_ledger(environment, inspection.read(environment))
    (packages / "a.py").write_bytes(DATA.upper())
    contents = inspection.completed(inspection.read(environment), book)
    (found,) = inspection.find_content_deviations(contents, lambda _done, _total: None)
    assert (found.path, inspection.is_as_installed(found, book)) == ("a.py", False)


def test_file_that_no_record_names_is_known_as_laid_down(environment: Path) -> None:
    packages = _distribution(environment, {"alpha.py": b"a"}, f"alpha.py,sha256={_b64(b'a')},1\n")
    (packages / "alpha_vendored").mkdir()
    (packages / "alpha_vendored" / "RECORD").write_bytes(b"")
    assert _initial_check.create_ledger(environment, inspection.read(environment)).unlisted == (
        "alpha_vendored/RECORD",
    )
    known = ledger.read(environment)
    assert known is not None
    assert known.unlisted == ("alpha_vendored/RECORD",)


def test_file_of_two_distributions_is_right_if_it_is_that_of_one(environment: Path) -> None:
    packages = _distribution(environment, {"a.py": DATA}, f"a.py,sha256={_b64(b'other')},5\n")
    (packages / "beta-1.0.dist-info").mkdir()
    (packages / "beta-1.0.dist-info" / "RECORD").write_text(f"a.py,sha256={_b64(DATA)},12\n")
    assert inspection.find_content_deviations(inspection.read(environment), lambda _done, _total: None) == []
    assert inspection.find_size_deviations(inspection.read(environment)) == []
    (packages / "a.py").write_bytes(b"neither")
    assert len(inspection.find_content_deviations(inspection.read(environment), lambda _done, _total: None)) == 1


def test_progress_ends_at_all_bytes(environment: Path) -> None:
    _distribution(environment, {"a.py": DATA}, f"a.py,sha256={_b64(DATA)},12\n")
    told: list[tuple[int, int]] = []
    inspection.find_content_deviations(inspection.read(environment), lambda done, total: told.append((done, total)))
    assert told[-1] == (12, 12)


@pytest.mark.parametrize(("later", "is_read"), [(150, False), (200, True)], ids=["slow line", "edited"])
def test_large_file_may_follow_as_late_as_a_slow_line_brings_it(environment: Path, later: int, is_read: bool) -> None:
    record = f"a.py,sha256={_b64(DATA)},12\nbig.so,sha256=AAAA,100000000\nalpha-1.0.dist-info/METADATA,,0\n"
    packages = _distribution(environment, {"a.py": DATA, "big.so": b""}, record)
    (packages / "alpha-1.0.dist-info" / "METADATA").write_bytes(b"")
    os.truncate(packages / "big.so", 100_000_000)
    for name in ("a.py", "big.so"):
        os.link(packages / name, environment / name)  # as from uv's cache
    moment = (packages / "a.py").stat().st_mtime + later
    os.utime(packages / "big.so", (moment, moment))
    contents = inspection.read(environment)
    found = _initial_check.suspects(contents, inspection.stat_files(contents))
    assert [deviation.path for deviation in found] == (["big.so"] if is_read else [])
