"""The drivers of a Windows machine, asked in children: what they say, and that they may hang, crash, refuse or chat."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.hardware._windows import drivers
from patchlock.hardware._windows.drivers import Answer
from patchlock.hardware._windows.records import DriverCard

ENVIRONMENT = dict(os.environ)
COMPILER = shutil.which("cc") or ""
needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
RAPHAEL = DriverCard(name="AMD Radeon(TM) Graphics", arch="gfx1036", address="0000:1a:00.0", memory=17095983104)
NAVI = DriverCard(name="AMD Radeon RX 9070 XT gfx9", arch="gfx1201", address="0000:03:00.0", memory=17095983104)


@pytest.fixture(autouse=True)
def _without_other_drivers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep this machine's own nvidia-smi out, and set a variable that must not hide anything from the children."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "-1")


def _library(folder: Path, name: str, *flags: str) -> str:
    made = folder / name
    source = ROOT / "tests" / "support" / "drivers.c"
    command = [COMPILER, "-shared", "-fPIC", *(f"-D{one}" for one in flags), "-o", str(made), str(source)]
    subprocess.run(command, check=True, env=ENVIRONMENT)
    return str(made)


def _asked(folder: Path, *flags: str, patience: float = 10) -> Answer:
    libraries = {"amdhip64_6.dll": _library(folder, "amdhip64_6.dll", *flags), "amdhip64.dll": "older"}
    return drivers.ask({"1002", "8086"}, libraries, patience=patience)["1002"]


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "cards"),
    [
        (("HIP",), (RAPHAEL, NAVI)),
        (("HIP", "OLD"), (RAPHAEL, NAVI)),
        (("HIP", "CHATS"), (RAPHAEL, NAVI)),
        (("HIP", "NONE"), ()),
    ],
    ids=["hip 6", "hip 5", "chats", "no card"],
)
def test_amds_driver_tells_its_cards_in_its_own_order(
    tmp_path: Path, flags: tuple[str, ...], cards: tuple[DriverCard, ...]
) -> None:
    assert _asked(tmp_path, *flags) == Answer(cards=cards)


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("HIP", "REFUSES"), "hipGetDeviceCount gave 3"),
        (("HIP", "CRASHES"), "it crashed with signal"),
        (("HIP", "HANGS"), "it did not end within 1 seconds"),
        (("OTHER",), "undefined symbol: hipGetDeviceCount"),
    ],
    ids=["refuses", "crashes", "hangs", "is another library"],
)
def test_driver_that_gives_no_answer_is_a_failure(tmp_path: Path, flags: tuple[str, ...], why: str) -> None:
    (failure,) = _asked(tmp_path, *flags, patience=1 if "HANGS" in flags else 10).failures
    assert (failure.probe, failure.why.startswith("amdhip64_6.dll: "), why in failure.why) == ("hip", True, True)


def test_missing_library_is_a_failure(tmp_path: Path) -> None:
    answer = drivers.ask({"1002"}, {"amdhip64_7.dll": str(tmp_path / "amdhip64_7.dll")})["1002"]
    assert [failure.probe for failure in answer.failures] == ["hip"]


@needs_compiler
def test_nvidias_driver_tells_its_cards_and_whether_cuda_starts(tmp_path: Path) -> None:
    libraries = {
        "nvml.dll": _library(tmp_path, "nvml.dll", "NVML"),
        "nvcuda.dll": _library(tmp_path, "nvcuda.dll", "CUDA"),
    }
    card = DriverCard(name="NVIDIA Test", arch="sm_120", address="0000:41:00.0", memory=34359738368, uuid="GPU-1")
    assert drivers.ask({"10de"}, libraries) == {"10de": Answer(cards=(card,), cuda="13.0", init="500")}


def test_nvidias_driver_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    answer = drivers.ask({"10de"}, {"nvml.dll": str(tmp_path / "nvml.dll")})["10de"]
    assert (answer.cards, [failure.probe for failure in answer.failures]) == ((), ["nvml"])


def test_nobody_is_asked_without_a_card_that_runs(tmp_path: Path) -> None:
    libraries = {"nvml.dll": str(tmp_path / "nvml.dll"), "amdhip64_7.dll": str(tmp_path / "amdhip64_7.dll")}
    assert drivers.ask(set(), libraries) == {}
    assert drivers.ask({"10de", "1002"}, {}) == {}


SOUND = {"name": "A", "arch": "gfx1201", "address": "0000:03:00.0", "memory": 1}


@pytest.mark.parametrize(
    "rows",
    [
        None,
        3,
        [3],
        [SOUND, "x"],
        [{**SOUND, "name": 1}],
        [{**SOUND, "arch": "rm -rf"}],
        [{**SOUND, "address": "zz"}],
        [{**SOUND, "memory": -1}],
        [{**SOUND, "memory": True}],
        [{**SOUND, "memory": 1 << 50}],
    ],
)
def test_answer_with_something_odd_in_it_is_none(rows: object) -> None:
    assert drivers.read(rows) is None


def test_card_of_which_little_is_said_is_one() -> None:
    assert drivers.read([{"name": "A"}]) == [DriverCard(name="A", arch="", address="", memory=0)]
