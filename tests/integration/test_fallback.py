"""Where a profile does not work on this machine: the next one that does is offered, proved, and used in its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Said
from miniature import World, lock_here

from patchlock.cli import _fallback, _options, _verify
from patchlock.environments import generations
from patchlock.verify.checks import CheckResult

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
    "it crashes": "import ctypes; ctypes.string_at(0)",
    "it is aborted": "os.abort()",
    "it hangs": "import time; time.sleep(60)",
    "its runtime is missing": "import ctypes; ctypes.CDLL('libamdhip64.so.6')",
    "its driver is too old": "raise RuntimeError('CUDA driver version is insufficient for CUDA runtime version')",
    "its numbers are wrong": "assert abs(1.5 - 1.0) < 1e-3, 'matmul: error 0.5'",
    "it takes all memory": "x = bytearray(8 << 30)",
    "it says nothing": "os._exit(0)",
    "its illegal instruction": "import signal; os.kill(os.getpid(), signal.SIGILL)",
}


@pytest.fixture
def two(locked: World, face: Face) -> World:
    """Give the miniature a profile `small` for the processor, beside `tiny`, which is taken first."""
    text = locked.profile.read_text()
    locked.profile.with_name("small.toml").write_text(text.replace("A machine", "The processor"))
    locked.app.write_text(locked.app.read_text() + CHECK)
    break_device(locked, FAULTS["it crashes"])
    return locked


def break_device(world: World, code: str, extra: str = "") -> None:
    text = world.profile.with_name("small.toml").read_text().replace("The processor", "A card")
    text = text.replace("specificity = 0", "specificity = 1") + extra
    world.profile.write_text(f"{text}\n[environment]\nFAULT = {json.dumps(code)}\n")


def relock(face: Face) -> None:
    done = face(*lock_here())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", FAULTS.values(), ids=list(FAULTS))
def test_the_next_profile_is_installed_and_used(two: World, face: Face, tmp_path: Path, code: str) -> None:
    break_device(two, code)
    relock(face)
    done = face("install", "mini", "--fallback")
    assert done.returncode == 0, done.stderr
    assert "tiny does not work here: 1 of " in done.stderr
    assert "device (computes): " in done.stderr
    assert "mini is installed on small" in done.stdout
    assert "stands in  for tiny, which does not work on this machine" in done.stdout
    assert not (tmp_path / "installed" / "mini@tiny").exists()
    assert json.loads(face("run", "mini", "--json").stdout)["data"]["command"] == ["python", "app.py"]
    again = face("install", "mini")
    assert again.stdout.startswith("mini is installed on small and up to date"), again.stderr


def test_it_is_offered_with_its_command_and_nothing_is_done(two: World, face: Face, tmp_path: Path) -> None:
    break_device(two, FAULTS["it crashes"], 'back-end = "rocm"\n')
    relock(face)
    done = face("install", "mini")
    assert done.returncode == 1
    assert (
        "or `patchlock install mini --profile tiny --fallback` installs it on small, proves that and uses it in the "
        "place of this"
    ) in done.stderr
    assert not (tmp_path / "installed" / "mini@small").exists()


def test_it_is_offered_where_no_device_is_seen(two: World, face: Face) -> None:
    break_device(two, "", 'back-end = "rocm"\n')
    relock(face)
    done = face("install", "mini")
    assert done.returncode == 1
    assert "not verified: nothing was computed on rocm, as no device was seen" in done.stderr
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
