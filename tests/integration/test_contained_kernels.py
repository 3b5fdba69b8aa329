"""Kernels that hang, crash, eat memory or leave children behind: each in a real process, told as what it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.core import process
from patchlock.model import kernel_results
from patchlock.model.backends import BACK_ENDS, TORCH_KERNELS
from patchlock.model.kernel_results import Verdict
from patchlock.verify import _task_runner, proof
from patchlock.verify._task_runner import ProcessContext, Task

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the faults are signals")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment whose torch is the pretended one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    shutil.copy(ROOT / "tests" / "support" / "pretend_torch.py", packages / "torch.py")
    return folder / "bin" / "python"


def where(python: Path, folder: Path, faults: str = "") -> ProcessContext:
    variables = process.environment({"PRETEND_TORCH": faults})
    return ProcessContext(python=python, options=("-I", "-X", "utf8"), folder=folder, variables=variables)


def task(kernel: str, *, seconds: float = 20, device: str = "cuda:0") -> Task:
    return Task(name=kernel, program="compute", arguments=(device, kernel), seconds=seconds, memory=200_000_000)


@pytest.fixture(params=["forked", "a process each"])
def forks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test both ways: as on Linux, and as where nothing can be forked."""
    if request.param != "forked":
        monkeypatch.setattr(_task_runner, "CAN_FORK", False)
    elif sys.platform != "linux":
        pytest.skip("only Linux forks")
    return str(request.param)


FAULTS = {
    "no kernel image": ("raise", Verdict.RAISES, "no kernel image is available"),
    "shifted numbers": ("shifted", Verdict.WRONG, "wrong by 2.5e-01"),
    "zeros": ("zeros", Verdict.WRONG, "all zeros"),
    "not a number": ("nan", Verdict.WRONG, "wrong by nan"),
    "segmentation fault": ("segv", Verdict.CRASHES, "SIGSEGV in the stage “compute”"),
    "abort": ("abort", Verdict.CRASHES, "SIGABRT in the stage “compute”"),
    "ends itself": ("exit", Verdict.CRASHES, "exit code 3 and no answer"),
    "the card's memory": ("oom", Verdict.OUT_OF_MEMORY, "CUDA out of memory"),
    "killed by the system": ("killed", Verdict.OUT_OF_MEMORY, "SIGKILL"),
    "result on the CPU": ("elsewhere", Verdict.FALLS_BACK, "on cpu, not on cuda:0"),
    "says that it falls back": ("says-it-falls-back", Verdict.FALLS_BACK, "will fall back to run on the CPU"),
    "nothing": ("", Verdict.WORKS, ""),
}


def test_each_fault_is_told_as_what_it_is(python: Path, tmp_path: Path, forks: str) -> None:
    kernels = dict(zip(FAULTS, TORCH_KERNELS, strict=False))
    faults = ",".join(f"{kernel}={FAULTS[name][0]}" for name, kernel in kernels.items())
    with _task_runner.open_runner(where(python, tmp_path, faults), "torch") as workshop:
        found = {
            name: kernel_results.classify_exit(workshop.run(task(kernel)), "cuda:0") for name, kernel in kernels.items()
        }
    assert {name: proved.verdict for name, proved in found.items()} == {name: row[1] for name, row in FAULTS.items()}
    assert [name for name, proved in found.items() if FAULTS[name][2] not in proved.detail] == []


ROW = ("mm-f32", "stft", "bmm", "lstm", "topk")


@pytest.mark.parametrize(
    ("faults", "verdicts", "processes"),
    [
        ("", "works works works works works", 1),
        ("bmm=shifted", "works works wrong works works", 1),  # which harms nothing after it
        ("stft=segv,lstm=raise", "works crashes works raises works", 3),
        ("bmm=hang", "works works hangs works works", 2),
        ("mm-f32=abort,topk=exit", "crashes works works works crashes", 2),
        ("*=segv", "crashes crashes crashes crashes crashes", 5),
    ],
)
def test_kernels_share_a_process_until_one_ends_it(
    python: Path, tmp_path: Path, forks: str, faults: str, verdicts: str, processes: int
) -> None:
    with _task_runner.open_runner(where(python, tmp_path, faults), "torch") as workshop:
        tasks = [task(kernel, seconds=5 if "hang" in faults else 20) for kernel in ROW]
        found = [kernel_results.classify_exit(ended, "cuda:0") for ended in workshop.run_row(tasks)]
        assert workshop._begun == processes
    assert tuple(one.kernel for one in found) == ROW
    assert " ".join(one.verdict.value.partition(" ")[0] for one in found) == verdicts


def test_what_one_kernel_prints_is_not_told_of_the_next(python: Path, tmp_path: Path, forks: str) -> None:
    with _task_runner.open_runner(where(python, tmp_path, "stft=prints-that-it-falls-back"), "torch") as workshop:
        found = [kernel_results.classify_exit(ended, "cuda:0") for ended in workshop.run_row(map(task, ROW))]
    assert [one.kernel for one in found if one.verdict is Verdict.FALLS_BACK] == ["stft"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_row_that_nobody_waits_for_ends(python: Path, tmp_path: Path, forks: str) -> None:
    place = where(python, tmp_path, "stft=hang")
    place.variables["KERNEL_TEST"] = str(tmp_path)  # type: ignore[index]
    with _task_runner.open_runner(place, "torch") as workshop:
        ends = workshop.run_row(map(task, ROW))
        assert next(ends).name == "mm-f32"
        ends.close()
    assert list(running(f"KERNEL_TEST={tmp_path}")) == []


EVIDENCE = {
    "nothing is wrong": ("", "works", "profiler"),
    "computed on the CPU and copied back": (
        "stft=silent",
        "falls back: its profiler saw no work of the device (one)",
        "profiler",
    ),
    "no profiler": ("no-profiler,stft=silent", "works", ""),
    "a profiler that crashes": ("profiler=abort,stft=silent", "works", ""),
    "a profiler that raises": ("profiler=raise,stft=silent", "works", ""),
    "the profiler again after a crash": (
        "bmm=segv,stft=silent",
        "falls back: its profiler saw no work of the device (one)",
        "profiler",
    ),
}


@pytest.mark.parametrize(("faults", "told", "shown"), EVIDENCE.values(), ids=EVIDENCE)
def test_the_profiler_shows_where_a_kernel_was_computed(
    python: Path, tmp_path: Path, forks: str, faults: str, told: str, shown: str
) -> None:
    row = [task(kernel) for kernel in ("mm-f32", "bmm", "stft")]
    with _task_runner.open_runner(where(python, tmp_path, faults), "torch") as workshop:
        found = {one.name: one for one in proof._row(workshop, row, BACK_ENDS["cuda"])}
    assert list(found) == ["mm-f32", "bmm", "stft"]
    result = kernel_results.classify_exit(found["stft"], "cuda:0")
    assert f"{result.verdict.value}: {result.detail}".rstrip(": ") == told
    assert result.shown == shown


@pytest.mark.parametrize("fault", ["hang", "hang-deaf"])
def test_a_hang_is_ended_and_told(python: Path, tmp_path: Path, forks: str, fault: str) -> None:
    with _task_runner.open_runner(where(python, tmp_path, f"stft={fault}"), "torch") as workshop:
        proved = kernel_results.classify_exit(workshop.run(task("stft", seconds=1.0)), "cuda:0")
        after = kernel_results.classify_exit(workshop.run(task("bmm")), "cuda:0")
    assert (proved.verdict, proved.detail) == (Verdict.HANGS, "no end within 1 seconds, in the stage “compute”")
    assert after.verdict is Verdict.WORKS


@pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux only")
def test_a_kernel_that_eats_memory_is_ended_before_the_machine_has_none(
    python: Path, tmp_path: Path, forks: str
) -> None:
    with _task_runner.open_runner(where(python, tmp_path, "stft=hoard"), "torch") as workshop:
        ended = workshop.run(task("stft"))
    assert (
        kernel_results.classify_exit(ended, "cuda:0").detail
        == "killed in the stage “compute” when it had more than 190.7 MiB of memory"
    )
    assert kernel_results.classify_exit(ended, "cuda:0").verdict is Verdict.OUT_OF_MEMORY
    assert 200_000_000 < ended.peak < 1_000_000_000


def running(mark: str) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().decode(errors="replace"):
                yield int(folder.name)
        except OSError:
            continue


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_children_of_a_kernel_neither_delay_nor_outlive_it(python: Path, tmp_path: Path, forks: str) -> None:
    place = where(python, tmp_path, "stft=child,bmm=hang")
    mark = f"KERNEL_TEST={tmp_path}"
    place.variables["KERNEL_TEST"] = str(tmp_path)  # type: ignore[index]
    with _task_runner.open_runner(place, "torch") as workshop:
        proved = kernel_results.classify_exit(workshop.run(task("stft")), "cuda:0")
        assert not (tmp_path / "ended").exists(), "its child was waited for"
        workshop.run(task("bmm", seconds=0.5))
    assert proved.verdict is Verdict.WORKS
    deadline = time.monotonic() + 5
    while list(running(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(running(mark)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupted_patchlock_leaves_nothing_running(python: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from patchlock.verify import _task_runner; from patchlock.core import process\n"
        "w = _task_runner.ProcessContext(python=Path(sys.argv[1]), options=('-I',), folder=Path('.'), variables=process.environment())\n"
        "t = _task_runner.Task(name='stft', program='compute', arguments=('cuda:0', 'stft'), seconds=60, memory=1 << 30)\n"
        "with _task_runner.open_runner(w, 'torch') as shop: shop.run(t)\n"
    )
    env = {
        **os.environ,
        "PRETEND_TORCH": "stft=hang",
        "KERNEL_TEST": str(tmp_path),
        "PYTHONPATH": str(ROOT / "installer"),
    }
    parent = subprocess.Popen([sys.executable, "-c", script, str(python)], cwd=tmp_path, env=env)
    deadline = time.monotonic() + 20
    while len(list(running(f"KERNEL_TEST={tmp_path}"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(list(running(f"KERNEL_TEST={tmp_path}"))) == 3  # patchlock, what forks, the kernel
    parent.kill()
    parent.wait()
    while list(running(f"KERNEL_TEST={tmp_path}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(running(f"KERNEL_TEST={tmp_path}")) == []


IMPORTS = {
    "raises": (
        "raise ImportError('libcudart.so.12: cannot open')",
        Verdict.UNAVAILABLE,
        "libcudart.so.12: cannot open",
    ),
    "crashes": ("import os; os.abort()", Verdict.CRASHES, "SIGABRT in the stage “import”"),
    "exits": ("raise SystemExit(4)", Verdict.UNAVAILABLE, "SystemExit: 4"),
}


@pytest.mark.parametrize(("text", "verdict", "detail"), IMPORTS.values(), ids=IMPORTS)
def test_a_library_that_cannot_be_imported_is_told(
    tmp_path: Path, text: str, verdict: Verdict, detail: str, forks: str
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "e")], check=True)
    (packages,) = tmp_path.glob("e/lib/*/site-packages")
    (packages / "torch.py").write_text(text)
    with _task_runner.open_runner(where(tmp_path / "e/bin/python", tmp_path), "torch") as workshop:
        proved = kernel_results.classify_exit(workshop.run(task("stft")), "cuda:0")
    assert proved.verdict is verdict
    assert detail in proved.detail


def test_the_devices_are_listed_with_why_there_is_none(python: Path, tmp_path: Path) -> None:
    with _task_runner.open_runner(where(python, tmp_path), "torch") as workshop:
        found = workshop.run(task("devices", device="cuda")).found
    assert found is not None
    assert found["devices"] == [{"name": "Pretended GPU", "memory": 8 << 30, "arch": "sm_90"}]
    with _task_runner.open_runner(where(python, tmp_path, "no-card="), "torch") as workshop:
        found = workshop.run(task("devices", device="cuda")).found
    assert found is not None
    assert (found["devices"], found["why"]) == ([], "Found no NVIDIA driver on your system.")


@pytest.mark.parametrize(
    ("back_end", "device", "why"),
    [
        ("xpu", {"name": "Pretended GPU", "memory": 8 << 30}, "torch.xpu.is_available() is False"),
        ("mps", {"name": "Apple's GPU"}, "torch.backends.mps.is_available() is False"),
    ],
)
def test_devices_that_are_not_of_cuda_s_kind(
    python: Path, tmp_path: Path, back_end: str, device: dict[str, object], why: str
) -> None:
    asks = task("devices", device=BACK_ENDS[back_end].device)
    with _task_runner.open_runner(where(python, tmp_path, f"built={back_end}"), "torch") as workshop:
        found = workshop.run(asks).found
        (computed,) = proof._row(workshop, [task("mm-f32", device=f"{back_end}:0")], BACK_ENDS[back_end])
    assert found is not None
    assert (found["devices"], found["built"]) == ([device], [BACK_ENDS[back_end].built_for])
    assert kernel_results.classify_exit(computed, f"{back_end}:0").verdict is Verdict.WORKS
    faults = f"built={back_end},no-card=,stft=says-it-falls-back"
    with _task_runner.open_runner(where(python, tmp_path, faults), "torch") as workshop:
        found = workshop.run(asks).found
        (fell_back,) = proof._row(workshop, [task("stft", device=f"{back_end}:0")], BACK_ENDS[back_end])
    assert found is not None
    assert (found["devices"], found["why"]) == ([], why)
    assert kernel_results.classify_exit(fell_back, f"{back_end}:0").verdict is Verdict.FALLS_BACK


@pytest.mark.parametrize("about", ["", "devices=abort"], ids=["ends", "crashes"])
@pytest.mark.parametrize(
    ("faults", "built"),
    [
        ("built=cuda", ["cuda"]),
        ("built=hip", ["hip"]),
        ("built=xpu", ["xpu"]),
        ("built=mps", ["mps"]),
        ("built=", []),
    ],
)
def test_what_torch_is_built_for_is_told(
    python: Path, tmp_path: Path, faults: str, built: list[str], about: str
) -> None:
    with _task_runner.open_runner(where(python, tmp_path, f"{faults},{about}"), "torch") as workshop:
        found = workshop.run(task("devices", device="cuda")).found
    assert found is not None
    assert found["built"] == built


def test_torch_directml_is_seen_beside_torch(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "e")], check=True)
    (packages,) = tmp_path.glob("e/lib/*/site-packages")
    (packages / "torch.py").write_text("__version__ = '2.4.1'\n")
    (packages / "torch_directml.py").write_text("def is_available(): return False\n")
    with _task_runner.open_runner(where(tmp_path / "e/bin/python", tmp_path), "torch") as workshop:
        found = workshop.run(task("devices", device="privateuseone")).found
    assert found is not None
    assert found["built"] == ["directml"]
