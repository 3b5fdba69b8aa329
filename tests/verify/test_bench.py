"""What `bench` measures: the job's program, what is compared with what, and the picture."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
import wave
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from patchlock.model.installation import Installation
from patchlock.verify import bench, bench_picture
from patchlock.verify.bench import BenchResult
from patchlock.verify.bench_picture import Row

CHILD = Path(bench.__file__).parent / "_children" / "sound.py"


@pytest.fixture(scope="module")
def child() -> ModuleType:
    """Import the program that runs in an app's environment."""
    description = importlib.util.spec_from_file_location("sound_child", CHILD)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def result(**other: object) -> BenchResult:
    """Make a result of three runs."""
    made = BenchResult(
        made="2026-01-01T00:00:00Z",
        job="a sentence (0123456789ab)",
        machine="m",
        profile="tiny",
        chosen=(),
        generation="g",
        commit="c",
        device="cpu",
        named="",
        weights="random",
        weight_bytes=4_000_000,
        torch="",
        threads=None,
        ready=1.0,
        first=3.0,
        seconds=(2.0, 1.9, 2.2),
        processor=(4.0, 3.8, 4.4),
        parts={"sound": (1.0, 1.0, 1.0)},
        length=4.0,
        peak=2_000_000_000,
        held=1_500_000_000,
        device_memory=None,
        device_memory_by="",
        device_use=None,
        device_use_by="",
    )
    return dataclasses.replace(made, **other)  # type: ignore[arg-type]


def test_factor_is_computing_per_second_of_sound() -> None:
    assert result().median == 2.0
    assert result().factor == 0.5
    assert result(length=0.0).factor is None


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        pytest.param((1.0, 1.0, 0.9), "2 × as fast as before", id="faster"),
        pytest.param((4.0, 4.2, 3.9), "2 × as slow as before", id="slower"),
        pytest.param((1.85, 1.86, 1.88), "as fast as before, within the spread of the runs", id="little"),
        pytest.param((1.0, 2.1, 1.2), "as fast as before, within the spread of the runs", id="spread"),
    ],
)
def test_difference_counts_beyond_the_spread(seconds: tuple[float, ...], says: str) -> None:
    assert bench.compared(result(seconds=seconds), result(), "before") == says


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"job": "a song (0123456789ab)"}, id="job"),
        pytest.param({"job": "a sentence (ba9876543210)"}, id="code"),
        pytest.param({"machine": "n"}, id="computer"),
        pytest.param({"weights": "the voice that was fetched"}, id="weights"),
        pytest.param({"chosen": ("int8",)}, id="options"),
        pytest.param({"profile": "other"}, id="profile"),
    ],
)
def test_earlier_result_of_something_else_is_not_compared(other: dict[str, object]) -> None:
    assert bench.before(result(), [result(**other)]) is None
    assert bench.before(result(), [result(**other), result(first=7.0), result(**other)]) == result(first=7.0)


def test_latest_of_each_profile_and_its_options_is_shown() -> None:
    old, new = result(made="2026-01-01T00:00:00Z"), result(made="2026-01-03T00:00:00Z")
    option = result(made="2026-01-02T00:00:00Z", chosen=("int8",))
    stranger = result(made="2026-01-02T00:00:00Z", job="another (0123456789ab)", profile="other")
    assert bench.latest([new, old, option, stranger]) == (new, option)


def test_kept_results_are_read_again(tmp_path: Path) -> None:
    here = Installation(folder=tmp_path)
    assert bench.kept(here) == ()
    made = [result(first=float(i), chosen=("int8",)) for i in range(60)]
    bench.keep(here, made)
    assert list(bench.kept(here)) == made[10:]
    here.measured.write_text(here.measured.read_text().replace('"seconds"', '"sekunden"', 1))
    assert bench.kept(here) == ()


JOB = """
import os

def job(given):
    given.weights, runs = "none", []
    given.seconds = (0.1, 1.0)
    print("noise")
    def run():
        runs.append(os.getcwd())
        with given.part("all"):
            pass
        return [0.1 * n % 0.9 * (n // 200 % 2) for n in range(200 * len(runs))], 1000
    return run
"""


def test_program_leaves_the_first_run_out_and_tells_the_rest(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    file = tmp_path / "heard.wav"
    command = [sys.executable, "-I", str(CHILD), str(script), "job", "cuda", "3", "full", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(told["seconds"]) == len(told["processor"]) == len(told["parts"]["all"]) == 3
    assert told["length"] == 0.8  # the fourth run: one does not count
    assert told["wrong"] == []
    with wave.open(str(file)) as heard:
        assert (heard.getframerate(), heard.getnframes()) == (1000, 800)
    assert (told["device"], told["weights"]) == ("cpu", "none")
    assert (told["device_memory"], told["device_use"]) == (None, None)


def test_nvidia_answers_are_percent_and_mebibytes(child: ModuleType) -> None:
    assert child.of_nvidia("37, 1024\n[N/A], 5\nno devices were found\n0, 2\n") == [(37.0, 1 << 30), (0.0, 2 << 20)]


def test_amd_files_are_percent_and_bytes(child: ModuleType, tmp_path: Path) -> None:
    for name, files in {
        "card0": {"gpu_busy_percent": "12\n", "mem_info_vram_used": "4096\n"},
        "card1": {"gpu_busy_percent": "99\n"},
    }.items():
        for file, text in files.items():
            (tmp_path / name / "device").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "device" / file).write_text(text)
    assert child.of_amd(tmp_path) == [(12.0, 4096)]


class Weight:
    """Numbers of a size."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return self.size


class Model:
    """A model with a float layer of 10 numbers, and a quantized one of 7."""

    weight: Callable[[], Weight]

    def __init__(self) -> None:
        self.weight = lambda: Weight(7, 1)

    def parameters(self) -> list[Weight]:
        return [Weight(10, 4)]

    def buffers(self) -> list[Weight]:
        return []

    def modules(self) -> list[Model]:
        return [self]


def test_quantized_weights_are_counted(child: ModuleType) -> None:
    job = child.Job("cpu", None)
    job.count(Model())
    assert job.bytes == 47


def test_picture_shows_each_result_and_is_whole() -> None:
    faster = result(chosen=("int8",), seconds=(1.0, 1.0, 1.5), peak=None)
    text = bench_picture.svg("a<b", [Row(result=result(), earlier=None), Row(result=faster, earlier=result())])
    root = ET.fromstring(text)
    svg = "{http://www.w3.org/2000/svg}"
    said = [element.text for element in root.iter(f"{svg}text")]
    assert "a<b" in said
    assert "a sentence; random weights" in said
    assert {"tiny", "tiny --with int8", "2.00 s", "1.00 s", "0.5", "0.25", "1.9 GiB", "not told"} <= {*said}
    assert len([line for line in root.iter(f"{svg}line") if line.get("class") == "run"]) == 6
    bars = [float(one.get("width", 0)) for one in root.iter(f"{svg}rect") if one.get("class") == "bar"]
    assert bars[0] == 2 * bars[1]
    assert not any("device" in (one or "") and "use" in (one or "") for one in said)
