"""What verify finds in a damaged environment and whom it names, and that a repair mends exactly that."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import miniature
import pytest
from conftest import Patchlock, Said
from miniature import World

from patchlock.cli import main
from patchlock.core import uv
from patchlock.environments import ledger, venv

Face = Callable[..., Said]


@pytest.fixture
def packages(locked: World, face: Face, tmp_path: Path) -> Path:
    """Install the app, and give its site-packages."""
    done = face("install", "mini")
    assert done.returncode == 0, done.stderr
    return next((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages"))


def _later(path: Path) -> None:
    """Give a file the time of a minute after the install."""
    os.utime(path, (time.time() + 60, time.time() + 60))


def _edit(packages: Path) -> None:
    (packages / "beta.py").write_bytes(b"__version__ = 'mine, and longer than before'\n")
    _later(packages / "beta.py")


def _same_size(packages: Path) -> None:
    data = (packages / "beta.py").read_bytes()
    (packages / "beta.py").write_bytes(data.replace(b"1.5", b"6.6"))
    _later(packages / "beta.py")


def _cut(packages: Path) -> None:
    stood = (packages / "beta.py").stat()
    (packages / "beta.py").write_bytes(b"__v")
    os.utime(packages / "beta.py", ns=(stood.st_atime_ns, stood.st_mtime_ns))


def _zeros(packages: Path) -> None:
    (packages / "beta.py").write_bytes(bytes((packages / "beta.py").stat().st_size))


def _remove(packages: Path) -> None:
    (packages / "beta.py").unlink()


DAMAGE = [
    pytest.param(_edit, "quick", "probably a person or a tool edited it in place on ", id="edited"),
    pytest.param(_same_size, "deep", "probably a person or a tool edited it in place on ", id="edited, same size"),
    pytest.param(_cut, "quick", "possibly a damaged disk or a cut: it is shorter", id="cut"),
    pytest.param(_zeros, "deep", "probably a damaged disk or a power cut", id="zeros"),
    pytest.param(_remove, "quick", "probably removed by a person or a tool", id="removed"),
]


@pytest.fixture(scope="module")
def looked_at(locked_once: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the app once for tests that only look, and give its home."""
    folder = tmp_path_factory.mktemp("looked at")
    variables = {
        "PATCHLOCK_HOME": folder / "home",
        "PATCHLOCK_CACHE_DIR": folder / "cache",
        "UV_CACHE_DIR": folder / "uv",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (locked_once.env | {n: str(path) for n, path in variables.items()}).items():
            patch.setenv(name, value)
        patch.setenv("UV_OFFLINE", "1")
        assert main(["install", "mini"]) == 0
    return folder / "home"


@pytest.fixture
def whole(looked_at: Path, locked: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the site-packages of an installed app, and bring beta.py back afterwards."""
    monkeypatch.setenv("PATCHLOCK_HOME", str(looked_at))
    packages = next(looked_at.glob("mini@tiny/environments/*/lib/python*/site-packages"))
    before, stood = (packages / "beta.py").read_bytes(), (packages / "beta.py").stat()
    yield packages
    (packages / "beta.py").write_bytes(before)
    os.utime(packages / "beta.py", ns=(stood.st_atime_ns, stood.st_mtime_ns))


@pytest.mark.parametrize(("harm", "depth", "cause"), DAMAGE)
def test_damage_is_named(whole: Path, face: Face, harm: Callable[[Path], None], depth: str, cause: str) -> None:
    harm(whole)
    done = face("verify", "mini", f"--{depth}", "--json")
    assert done.returncode == 1
    envelope = json.loads(done.stdout)
    data, error = envelope["data"], envelope["error"]
    assert [(f["distribution"], f["path"]) for f in data["findings"]] == [("beta", "beta.py")]
    assert (envelope["ok"], error["code"]) == (False, "verify")
    assert re.fullmatch(r"[12] of \d checks of mini did not pass: files(, imports)?", error["what"])
    assert error["remedy"] == "to repair exactly that, run `patchlock install mini --profile tiny --repair`"
    assert error["evidence"][0].startswith("files (present): beta: beta.py: expected ")
    assert data["findings"][0]["cause"].startswith(cause)
    if depth == "deep":
        assert face("verify", "mini", "--quick").returncode == 0


def test_install_with_nothing_new_names_damage_that_a_glance_shows(whole: Path, face: Face) -> None:
    (whole / "__pycache__").mkdir(exist_ok=True)  # as Python leaves it where somebody starts it by hand
    said = "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n"
    assert face("install", "mini").stdout == said
    (whole / "beta.py").unlink()
    for words in (("install", "mini"), ("install", "mini", "--profile", "tiny")):
        done = face(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            "error[verify]: mini is installed on tiny, and there is nothing new; but it is not as it was installed ("
        )
        assert "install mini --profile tiny --repair` repairs exactly that\n" in done.stderr
        assert "  files: beta: beta.py: expected 20 bytes, found nothing" in done.stderr
    assert json.loads(face("install", "mini", "--json").stdout)["error"]["code"] == "verify"


def test_failed_verify_is_known_until_one_passes(packages: Path, face: Face) -> None:
    stood = (packages / "beta.py").read_bytes()
    (packages / "beta.py").write_bytes(stood.replace(b"1.5", b"6.6"))
    assert face("verify", "mini", "--deep").returncode == 1
    told = face("status").stdout
    assert re.search(r"the last verify failed on \d{4}-\d\d-\d\d \d\d:\d\d: files; see whether it passes now", told)
    (one,) = json.loads(face("status", "--json").stdout)["data"]["installed"]
    assert (one["failed_verify"]["depth"], one["failed_verify"]["checks"][0]["id"]) == ("deep", "files")
    for words in ((), ("mini",)):
        (finding,) = [
            each
            for each in json.loads(face("doctor", "--json", *words).stdout)["data"]["findings"]
            if each["name"] == "verify-failed"
        ]
        assert finding["title"].startswith("mini on tiny: the last verify failed on ")
        assert finding["remedies"][0]["proof"] == "patchlock verify mini --profile tiny"
    assert face("verify", "mini", "--quick").returncode == 0, "sizes are right"
    assert "the last verify failed" in face("status").stdout, "what looks less deep knows nothing of it"
    (packages / "beta.py").write_bytes(stood)
    assert face("verify", "mini", "--deep").returncode == 0
    assert "the last verify" not in face("status").stdout + face("doctor").stdout


def test_repair_mends_exactly_what_is_wrong(packages: Path, face: Face, tmp_path: Path) -> None:
    inode = (packages / "alpha.py").stat().st_ino
    _edit(packages)
    before = (packages / "beta.py").read_bytes()
    done = face("install", "mini", "--repair")
    assert done.returncode == 0, done.stderr
    assert "  repaired  beta: beta.py: expected 20 bytes, found 45 bytes; probably a person" in done.stdout
    now = next((tmp_path / "installed").glob("mini@tiny/environments/*-2/lib/python*/site-packages"))
    assert (now / "beta.py").read_text() == '__version__ = "1.5"\n'
    assert (now / "alpha.py").stat().st_ino == inode, "what was whole comes from uv's cache"
    assert (packages / "beta.py").read_bytes() == before, "nothing is written to the generation that was in use"
    assert face("verify", "mini", "--deep").returncode == 0
    assert face("install", "mini", "--repair").stdout == "mini is as it was installed: nothing to repair\n"


@pytest.mark.parametrize(
    ("name", "version", "written"),
    [("beta", "1.5", b"XX"), pytest.param("alpha", "1.0", b"!!", id="that the app's check fails on")],
)
def test_edit_that_leaked_through_the_cache_is_said_and_does_not_come_back(
    packages: Path, face: Face, tmp_path: Path, name: str, version: str, written: bytes
) -> None:
    module = packages / f"{name}.py"
    assert module.stat().st_nlink > 1, "uv links files here"
    with module.open("r+b") as file:
        file.write(written)
    _later(module)
    done = face("verify", "mini", "--deep")
    assert f"`{uv.cache_clean_command(name)}` keeps it from coming back" in done.stdout
    done = face("install", "mini", "--reinstall")
    assert done.returncode == 0
    assert f"unpacked again: {name}; `{uv.cache_clean_command(name)}`" in done.stderr
    generation = (tmp_path / "installed/mini@tiny/current").read_text().strip()
    now = next((tmp_path / "installed/mini@tiny/environments" / generation).glob("lib/python*/site-packages"))
    assert (now / f"{name}.py").read_text() == f'__version__ = "{version}"\n'
    assert face("verify", "mini", "--deep").returncode == 0


def test_code_that_leaked_through_the_cache_is_never_run(packages: Path, face: Face, tmp_path: Path) -> None:
    source = tmp_path / "installed/mini@tiny/source"
    before = {path: path.read_bytes() for path in source.iterdir() if path.is_file()}
    module = packages / "alpha.py"
    with module.open("a") as file:
        file.write("import pathlib\nfor name in ('app.py', 'left.txt'):\n    pathlib.Path(name).write_text('spoilt')\n")
    _later(module)
    done = face("install", "mini", "--reinstall")
    assert done.returncode == 0, done.stderr
    assert "unpacked again: alpha" in done.stderr
    assert {path: path.read_bytes() for path in source.iterdir() if path.is_file()} == before


def test_missing_libraries_alone_point_to_a_scanner(locked: World, face: Face, tmp_path: Path) -> None:
    made = miniature.wheel(locked.wheels, "beta", "1.5", files={"beta.py": "\n", "beta_core.so": "library"})
    miniature.index(locked.catalogue.parent / "index", [*locked.wheels.glob("*.whl")])
    assert made.exists()
    assert face("lock", "mini", "--accept-changed", made.name).returncode == 0
    assert face("install", "mini").returncode == 0
    packages = next((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages"))
    (packages / "beta_core.so").unlink()
    done = face("verify", "mini", "--quick")
    assert "beta: beta_core.so: expected 7 bytes, found nothing; possibly an antivirus took it away" in done.stdout
    assert "journalctl -u clamav-daemon" in done.stdout


def test_what_apps_and_people_add_is_no_damage_and_is_told(whole: Path, face: Face) -> None:
    packages = whole
    (packages / "__pycache__").mkdir(exist_ok=True)
    (packages / "__pycache__" / "beta.cpython-311.pyc").write_bytes(b"x")
    (packages / "jieba.cache").write_bytes(b"x")
    assert face("verify", "mini", "--quick").returncode == 0
    done = face("verify", "mini", "--deep")
    assert done.returncode == 0
    assert "1 files in site-packages are of no distribution: yours, or an app's: jieba.cache" in done.stdout
    environment = packages.parent.parent.parent
    known = ledger.read(environment)
    assert known is not None
    ledger.write(environment, dataclasses.replace(known, unlisted=("jieba.cache",)))
    assert "of no distribution" not in face("verify", "mini", "--deep").stdout, "the wheel itself has laid it down"


def test_wheel_that_contradicts_its_record_is_told_from_damage(locked: World, face: Face, tmp_path: Path) -> None:
    made = _wrong_record(locked)
    assert face("lock", "mini", "--accept-changed", made.name).returncode == 0
    assert face("install", "mini").returncode == 0
    assert face("verify", "mini", "--quick").returncode == 0
    done = face("verify", "mini", "--deep")
    assert (done.returncode, done.stdout.count("the RECORD of beta is wrong about")) == (0, 2), done.stdout
    packages = next((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages"))
    known = ledger.read(packages.parent.parent.parent)
    assert known is not None
    assert all(known.files[path].sha256 for path in ("beta.py", "beta_more.py"))
    made.unlink()
    assert face("verify", "mini", "--deep").returncode == 0, "what was learnt needs no wheel"
    (packages / "beta.py").write_bytes(b"edited")
    done = face("verify", "mini", "--deep")
    assert done.returncode == 1
    assert "whether the RECORD of beta was wrong from the start is not known" in done.stdout


def _wrong_record(world: World) -> Path:
    """Make a wheel of which RECORD has a wrong hash, and a wrong hash and size; the archive itself is whole."""
    import re
    import zipfile

    path = miniature.wheel(world.wheels, "beta", "1.5", files={"beta.py": "a = 1\n", "beta_more.py": "b = 2\n"})
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    record = next(name for name in content if name.endswith("RECORD"))
    text = content[record].decode()
    text = re.sub(r"beta\.py,sha256=[^,]+,6", f"beta.py,sha256={'A' * 43},6", text)
    text = re.sub(r"beta_more\.py,sha256=[^,]+,6", f"beta_more.py,sha256={'A' * 43},9", text)
    content[record] = text.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0)), data)
    miniature.index(world.catalogue.parent / "index", [*world.wheels.glob("*.whl")])
    return path


def test_wheel_that_writes_over_the_environment_is_refused(locked: World, face: Face) -> None:
    files = {"beta.py": "\n", "beta-1.5.data/data/pyvenv.cfg": "home = /evil\n"}
    made = miniature.wheel(locked.wheels, "beta", "1.5", files=files)
    miniature.index(locked.catalogue.parent / "index", [*locked.wheels.glob("*.whl")])
    refused = face("lock", "mini", "--accept-changed", made.name)
    assert refused.returncode == 1
    assert "the wheel of beta 1.5 (requirements.txt:3) has files" in refused.stdout
    after = hashlib.sha256(made.read_bytes()).hexdigest()
    for lock in (locked.catalogue / "lockfiles" / "mini").glob("tiny.*.txt"):
        lock.write_text(re.sub(r"(?m)^(beta==1\.5 --hash=sha256:)[0-9a-f]{64}", rf"\g<1>{after}", lock.read_text()))
    done = face("install", "mini", "--accept-edited-lock")
    assert done.returncode == 1
    assert (
        "do not install it: nothing was switched to it; report it to its authors\n  beta: ../../../pyvenv.cfg"
        in done.stderr
    )
    assert face("run", "mini").returncode == 1


def test_replaced_package_is_blamed_on_what_was_asked_for(packages: Path, face: Face, tmp_path: Path) -> None:
    made = [
        miniature.wheel(tmp_path / "more", "alpha", "2.0"),
        miniature.wheel(tmp_path / "more", "fast-alpha", "1.0", requires=("alpha>=2",)),
    ]
    uv = venv.uv.find()
    python = packages.parent.parent.parent / "bin" / "python"
    time.sleep(0.05)  # the clock of the files
    command = [str(uv), "pip", "install", "-q", "--no-config", "--offline", "--no-index", "--python", str(python)]
    subprocess.run([*command, "--find-links", str(made[0].parent), "fast-alpha"], check=True)
    done = face("verify", "mini", "--quick")
    assert done.returncode == 1
    assert (
        "FAILED  present   packages: alpha is 2.0, the lock says 1.0; fast-alpha 1.0 is not in the lock; "
        in done.stdout
    )
    assert "alpha was changed by uv on 20" in done.stdout
    assert ": fast-alpha 1.0 was asked for, and requires alpha>=2" in done.stdout
    assert face("install", "mini", "--repair").returncode == 0
    assert face("verify", "mini").returncode == 0


def test_same_version_installed_again_is_noticed(packages: Path, face: Face, tmp_path: Path) -> None:
    miniature.wheel(tmp_path / "more", "beta", "1.5", files={"beta.py": "from_elsewhere = 1\n"})
    python = packages.parent.parent.parent / "bin" / "python"
    uv = str(venv.uv.find())
    command = [uv, "pip", "install", "-q", "--no-config", "--offline", "--no-index", "--reinstall", "--no-cache"]
    subprocess.run([*command, "--python", str(python), "--find-links", str(tmp_path / "more"), "beta==1.5"], check=True)
    done = face("verify", "mini", "--quick")
    assert done.returncode == 1
    assert (
        "beta-1.5.dist-info/RECORD: expected the RECORD of the install, found another one; probably uv" in done.stdout
    )
    assert face("install", "mini", "--repair").returncode == 0
    assert face("verify", "mini", "--deep").returncode == 0


def _no_interpreter(generation: Path) -> None:
    (generation / "bin" / "python").unlink()
    (generation / "bin" / "python").symlink_to("/nowhere/python3.11")


def _no_gate(generation: Path) -> None:
    (generation / "gate" / "pip").unlink()


def _other_lock(generation: Path) -> None:
    (generation / "lock.txt").write_text("nothing")


BROKEN = [
    pytest.param(_no_interpreter, "its interpreter is gone: /nowhere/python3.11 was removed or upgraded", id="interpreter"),
    pytest.param(_no_gate, "the gate's gate/pip is missing", id="gate"),
    pytest.param(_other_lock, "lock.txt is not the lock that it was made from", id="lock"),
]  # fmt: skip


@pytest.mark.parametrize(("harm", "said"), BROKEN)
def test_environment_itself_is_looked_at_and_mended(
    packages: Path, face: Face, harm: Callable[[Path], None], said: str
) -> None:
    harm(packages.parent.parent.parent)
    done = face("verify", "mini", "--quick")
    assert done.returncode == 1
    assert f"FAILED  present   environment: {said}" in done.stdout
    assert face("install", "mini", "--repair").returncode == 0
    assert face("verify", "mini").returncode == 0


def test_edited_source_is_the_users_and_left_alone(packages: Path, face: Face, tmp_path: Path) -> None:
    app = tmp_path / "installed" / "mini@tiny" / "source" / "app.py"
    app.write_text(app.read_text() + "# mine\n")
    _edit(packages)
    done = face("install", "mini", "--repair")
    assert done.returncode == 0, done.stderr
    assert "app.py is not as it was installed: it is left alone as an edit of yours" in done.stdout
    assert app.read_text().endswith("# mine\n")
    other = app.with_name("requirements.txt")
    stood = other.read_bytes()
    other.unlink()
    way = "bring back what is gone: `patchlock install mini --profile tiny --reinstall`"
    for words in (("verify", "mini"), ("verify", "mini", "--quick"), ("install", "mini", "--repair")):
        assert f"gone from the app's folder: {other.name}; {way}" in face(*words).stdout
    assert face("install", "mini", "--profile", "tiny", "--reinstall").returncode == 0
    assert (other.read_bytes(), app.read_text().endswith("# mine\n")) == (stood, True)


def test_generation_before_stays_as_it_was_when_the_repair_cannot_be_done(
    packages: Path, face: Face, locked: World, tmp_path: Path
) -> None:
    _edit(packages)
    miniature.index(locked.catalogue.parent / "index", [*locked.wheels.glob("*.whl")])
    for wheel in locked.wheels.glob("beta-*"):
        wheel.unlink()
    pointer = (tmp_path / "installed/mini@tiny/current").read_text()
    done = face("install", "mini", "--repair")
    assert done.returncode == 1
    assert (tmp_path / "installed/mini@tiny/current").read_text() == pointer
    assert face("run", "mini", "--json").returncode == 0


@pytest.mark.parametrize("part", [0.3, 0.7, 0.95])
def test_repair_that_is_killed_leaves_one_or_the_other(
    packages: Path, face: Face, patchlock: Patchlock, tmp_path: Path, part: float
) -> None:
    _edit(packages)
    first = (tmp_path / "installed/mini@tiny/current").read_text()
    with subprocess.Popen(
        [*patchlock.command, "install", "mini", "--repair"],
        cwd=tmp_path,
        env=patchlock.env(),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        time.sleep(part * 1.5)
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.killpg(child.pid, signal.SIGKILL)  # with what it has started, which would hold the installation
    if (tmp_path / "installed/mini@tiny/current").read_text() == first:
        assert face("verify", "mini", "--quick").returncode == 1
        assert face("run", "mini", "--json").returncode == 0
        done = face("install", "mini", "--repair")
        assert done.returncode == 0, done.stderr
    assert face("verify", "mini", "--deep").returncode == 0
    assert (packages / "beta.py").read_bytes().startswith(b"__version__ = 'mine")
