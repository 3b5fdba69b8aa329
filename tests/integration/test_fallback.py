"""Where a profile does not work on this machine: the next one that does is offered, proved, and used in its place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from conftest import ROOT, Patchlock, Said
from miniature import World, lock_here

from patchlock.catalogue.reader import Catalogue
from patchlock.cli import _fallback, _options, _verify
from patchlock.environments import generations
from patchlock.model.errors import PatchlockError
from patchlock.verify import checks
from patchlock.verify.checks import CheckContext, CheckResult

Face = Callable[..., Said]

CHECK = """
[[check]]
id = "device"
kind = "python"
code = "import os; exec(os.environ.get('FAULT', '')); print('computed')"
prints = "computed"
timeout = 10
memory-gb = 1
"""
FAULTS = {
    "it crashes": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "the system kills it": ("import signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "it hangs with children": ("import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])", "10 seconds"),
    "its runtime is missing": ("import ctypes; ctypes.CDLL('libamdhip64.so.6')", "libamdhip64.so.6"),
    "it has no code": ("raise RuntimeError('HIP error: no kernel image is available for execution on the device')", "no kernel image"),
    "it takes all memory": ("x = bytearray(8 << 30)", "more than 953.7 MiB of memory"),
    "its numbers are wrong": ("assert abs(1.5 - 1.0) < 1e-3, 'matmul: error 0.5'", "matmul: error 0.5"),
    "it says nothing": ("os._exit(0)", "computed"),
    "it computes elsewhere": ("print('on cpu'); os._exit(0)", "computed"),
    "it only ends": ("os._exit(3)", "3"),
}  # fmt: skip
"""What a failing device does → what is told of it: a row for each way to end; the texts of drivers are doctor's."""


@pytest.fixture
def two(locked: World, face: Face) -> World:
    """Give the miniature a profile `small` for the processor, beside `tiny`, which is taken first."""
    text = locked.profile.read_text()
    locked.profile.with_name("small.toml").write_text(text.replace("A machine", "The processor"))
    locked.app.write_text(locked.app.read_text() + CHECK)
    break_device(locked, FAULTS["it crashes"][0])
    return locked


def break_device(world: World, code: str, extra: str = "") -> None:
    text = world.profile.with_name("small.toml").read_text().replace("The processor", "A card")
    text = text.replace("specificity = 0", "specificity = 1") + extra
    world.profile.write_text(f"{text}\n[environment]\nFAULT = {json.dumps(code)}\n")


def relock(face: Face) -> None:
    done = face(*lock_here())
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("empty") / "environment"
    subprocess.run([uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    return folder


@pytest.mark.parametrize(("code", "told"), FAULTS.values(), ids=list(FAULTS))
def test_each_way_to_fail_is_told(environment: Path, locked: World, tmp_path: Path, code: str, told: str) -> None:
    locked.app.write_text(locked.app.read_text() + CHECK)
    check = Catalogue(root=locked.catalogue).app("mini").checks[-1]
    place = CheckContext(environment=environment, folder=tmp_path, variables={**os.environ, "FAULT": code})
    (result,) = checks.run([check], place, lambda _: None)
    assert (result.passed, told in result.detail) == (False, True), result.detail


def test_the_next_profile_is_installed_and_used(two: World, face: Face, tmp_path: Path) -> None:
    relock(face)
    done = face("install", "mini", "--fallback")
    assert done.returncode == 0, done.stderr
    said = done.stderr[done.stderr.index("tiny does not work here: 1 of ") :]
    assert "SIGSEGV" in said[said.index("device (computes): ") :].partition("\n")[0]
    assert "mini is installed on small" in done.stdout
    assert "stands in  for tiny, which does not work on this machine" in done.stdout
    assert not (tmp_path / "installed" / "mini@tiny").exists()
    assert json.loads(face("run", "mini", "--json").stdout)["data"]["command"] == ["python", "app.py"]
    again = face("install", "mini")
    assert again.stdout.startswith("mini is installed on small and up to date"), again.stderr


def test_it_is_offered_with_its_command_and_nothing_is_done(two: World, face: Face, tmp_path: Path) -> None:
    break_device(two, FAULTS["it crashes"][0], 'back-end = "rocm"\n')
    relock(face)
    done = face("install", "mini")
    assert done.returncode == 1
    assert (
        "or `patchlock install mini --profile tiny --fallback` installs it on small, proves that and uses it instead "
        "of this"
    ) in done.stderr
    assert not (tmp_path / "installed" / "mini@small").exists()


def test_it_is_offered_where_no_device_is_seen(two: World, face: Face) -> None:
    break_device(two, "", 'back-end = "rocm"\n')
    relock(face)
    done = face("install", "mini")
    assert done.returncode == 1
    assert "not verified: nothing was computed on rocm, as no device was found" in done.stderr
    assert "`patchlock install mini --profile tiny --fallback` installs it on small" in done.stderr
    done = face("install", "mini", "--profile", "tiny", "--fallback", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["ok"], said["data"]["receipt"]["profile"]) == (0, True, "small")
    assert list(said["data"]["instead_of"]) == ["tiny"]


def test_an_installation_that_worked_once_stays_and_is_not_used(two: World, face: Face, tmp_path: Path) -> None:
    flag = tmp_path / "broken"
    broken = f"assert not os.path.exists({str(flag)!r}), 'the driver is another'"
    break_device(two, broken, 'back-end = "rocm"\n')
    relock(face)
    assert face("install", "mini", "--no-device").returncode == 0
    flag.touch()
    done = face("install", "mini", "--no-device", "--fallback")
    assert done.returncode == 0, done.stderr
    assert "mini is installed on small" in done.stdout
    assert (tmp_path / "installed" / "mini@tiny" / "current").is_file()
    assert face("verify", "mini").returncode == 0
    assert face("install", "mini").stdout.startswith("mini is installed on small and up to date")
    # Named, it is tried again, and used again where it works.
    assert face("install", "mini", "--profile", "tiny", "--no-device").returncode == 1
    assert face("run", "mini", "--json").returncode == 0
    flag.unlink()
    assert face("install", "mini", "--profile", "tiny", "--no-device").returncode == 0
    done = face("run", "mini", "--json")
    assert "mini is installed on small and on tiny" in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_meanwhile_nothing_is_lost(two: World, face: Face, patchlock: Patchlock, tmp_path: Path) -> None:
    flag, home = tmp_path / "broken", tmp_path / "installed"
    broken = f"assert not os.path.exists({str(flag)!r}), 'the driver is another'"
    break_device(two, broken, 'back-end = "rocm"\n')
    relock(face)
    assert face("install", "mini", "--no-device").returncode == 0
    worked = (home / "mini@tiny" / "current").read_text()
    flag.touch()
    again = ("install", "mini", "--no-device", "--fallback")
    started = time.monotonic()
    assert patchlock.alone(*again).returncode == 0
    took = time.monotonic() - started
    for part in (0.4, 0.8):
        shutil.rmtree(home / "mini@small")
        assert patchlock("install", "mini", "--profile", "tiny", "--no-device").returncode == 1  # it is asked for again
        running = subprocess.Popen(
            [*patchlock.command, *again],
            env=patchlock.env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(took * part)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        for pointer in home.glob("*/current"):
            assert (pointer.parent / "environments" / pointer.read_text().strip() / "receipt.toml").is_file()
        assert (home / "mini@tiny" / "current").read_text() == worked
        done = patchlock(*again)
        assert done.returncode == 0, f"{part}: {done.stderr}"
        assert (home / "mini@small" / "current").is_file()
        assert patchlock("run", "mini").stdout == "computed on cpu\n"
        assert patchlock("verify", "mini").returncode == 0


@pytest.mark.parametrize(
    ("machine", "tried"),
    [
        ("rx9070xt-windows-zluda", [["cpu"], ["zluda-rdna4", "directml-onnx", "cpu"], ["zluda-rdna4", "cpu"], ["zluda-rdna4", "cpu"], ["cpu"]]),
        ("rx9070xt-linux-torch", [["rocm-linux", "cpu"]] * 4 + [["cpu"]]),
        ("thor-jetpack-7.1-amphion", [["cuda13-thor-aarch64"]] + [["cuda13-thor-aarch64", "cpu"]] * 3 + [["cpu"]]),
        ("alpine-edge", [[]] * 5),
    ],
)  # fmt: skip
def test_each_app_ends_at_the_processor_or_is_refused(
    machine: str, tried: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(ROOT / "tests" / "hardware" / "hosts" / f"{machine}.json"))
    apps = ("xtts-webui", "advanced-rvc-inference", "diffrhythm2", "amphion", "tts-service")
    for app, expected in zip(apps, tried, strict=True):
        failed: dict[str, str] = {}
        with contextlib.suppress(PatchlockError):
            while len(failed) <= len(expected):
                failed[_options.request(ROOT, app, None, failed=failed).profile.name] = "it fails"
        assert (app, list(failed)) == (app, expected)


def test_where_no_other_works_all_reasons_are_told(two: World, face: Face, tmp_path: Path) -> None:
    two.app.write_text(two.app.read_text().replace("print('computed')", "1/0"))
    relock(face)
    done = face("install", "mini", "--fallback")
    assert done.returncode == 1
    assert "error[verify]: 1 of " in done.stderr
    assert "\n  small: 1 of " in done.stderr
    assert not (tmp_path / "installed" / "mini@small" / "current").exists()


def test_the_last_profile_offers_nothing(two: World, face: Face) -> None:
    two.app.write_text(two.app.read_text().replace("print('computed')", "1/0"))
    relock(face)
    done = face("install", "mini", "--profile", "small")
    assert done.returncode == 1
    assert "--fallback" not in done.stderr


def test_verify_names_the_same_way_out(two: World, face: Face, tmp_path: Path) -> None:
    break_device(two, "", 'back-end = "rocm"\n')
    relock(face)
    assert face("install", "mini", "--no-device").returncode == 0
    [place] = generations.installations(tmp_path / "installed")
    receipt = generations.require_current(place, "mini")
    request = _options.installed_request(two.catalogue, "mini", "tiny", as_it_is=True)
    failed = CheckResult(id="matmul", level="computes", passed=False, detail="wrong numbers")
    assert _verify._cure(receipt, (failed,), _fallback.other_profile(request, two.catalogue)) == (
        "use what works here, small",
        "install mini --profile tiny --fallback",
    )
