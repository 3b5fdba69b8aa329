"""What a device answers before an app is started, what is remembered of it, and what that holds for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchlock.core import process
from patchlock.hardware import device_answer
from patchlock.hardware._linux import nvidia

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the libraries are Linux' own")

CUDA = """
#include <string.h>
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuInit(unsigned f) { return INIT; }
int cuDeviceGetCount(int *n) { *n = CARDS; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strncpy(s, d ? "second" : "NVIDIA RTX 4090", n); return 0; }
"""
HIP = """
#include <string.h>
int hipGetDeviceCount(int *n) { *n = CARDS; return CARDS ? 0 : 100; }
int hipGetDevicePropertiesR0600(char *p, int i) { memset(p, 0, 2048); strcpy(p, "Radeon RX 9070 XT"); return 0; }
int hipDeviceGetPCIBusId(char *p, int n, int i) { return 1; }
int hipDeviceTotalMem(size_t *m, int i) { return 1; }
"""
HIP = "#include <stddef.h>\n" + HIP


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a system whose kernel has NVIDIA's driver."""
    made = tmp_path / "root"
    for name, text in {
        "proc/driver/nvidia/version": "580.65.06",
        "proc/sys/kernel/random/boot_id": "first\n",
        "dev/nvidia0": "",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def library(folder: Path, source: str, name: str, **values: int) -> dict[str, str]:
    """Compile a driver's library; give the variables with which it is found."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "driver.c").write_text(source)
    defines = [f"-D{key}={value}" for key, value in values.items()]
    subprocess.run(["cc", "-shared", "-fPIC", *defines, "-o", folder / name, folder / "driver.c"], check=True)
    return process.environment({"LD_LIBRARY_PATH": str(folder)})


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
@pytest.mark.parametrize(
    ("init", "cards", "works", "says"),
    [
        (0, 2, True, "NVIDIA RTX 4090, second"),
        (0, 0, False, "cuInit gave 0, it sees no card"),
        (100, 0, False, "cuInit gave 100, no card is to be seen"),
        (803, 0, False, "cuInit gave 803, driver and library are of different versions"),
        (12345, 0, False, "cuInit gave 12345"),
    ],
)
def test_cuda_names_its_cards_or_why_it_does_not_start(
    tmp_path: Path, root: Path, init: int, cards: int, works: bool, says: str
) -> None:
    env = library(tmp_path / "lib", CUDA, "libcuda.so.1", INIT=init, CARDS=cards)
    answer = device_answer.ask("cuda", tmp_path, env, root=root)
    assert answer == device_answer.DeviceAnswer(works=works, says=says)
    assert (tmp_path / device_answer.FILE).exists() == works, "that it does not start is not remembered"


@needs_compiler
@pytest.mark.parametrize(("cards", "says"), [(1, "Radeon RX 9070 XT"), (0, "HIP sees no card")])
def test_rocm_is_asked_through_the_library_of_the_environment(tmp_path: Path, cards: int, says: str) -> None:
    library(tmp_path / "lib/python3.11/site-packages/torch/lib", HIP, "libamdhip64.so", CARDS=cards)
    answer = device_answer.ask("rocm", tmp_path, process.environment(), root=tmp_path / "root")
    assert answer == device_answer.DeviceAnswer(works=cards > 0, says=says)


@needs_compiler
def test_driver_that_crashes_is_no_crash_of_ours(tmp_path: Path, root: Path) -> None:
    source = "#include <stdlib.h>\nint cuDriverGetVersion(int *v) { abort(); }\n"
    env = library(tmp_path / "lib", source, "libcuda.so.1")
    answer = device_answer.ask("cuda", tmp_path, env, root=root)
    assert answer == device_answer.DeviceAnswer(works=False, says="it crashed with signal 6")


def test_nothing_is_loaded_where_the_kernel_has_no_driver(tmp_path: Path) -> None:
    answer = device_answer.ask("cuda", tmp_path, process.environment(), root=tmp_path)
    assert answer == device_answer.DeviceAnswer(works=False, says="NVIDIA's driver is not loaded")


@pytest.mark.parametrize("back_end", ["cpu", "directml", "zluda"])
def test_what_this_system_has_not_is_not_asked(tmp_path: Path, back_end: str) -> None:
    assert device_answer.ask(back_end, tmp_path, process.environment()) is None


def test_answer_is_remembered_until_what_it_holds_for_changes(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(name: str, *_: object) -> dict[str, object]:
        asked.append(name)
        return {"init": 0, "names": ["NVIDIA RTX 4090"]}

    monkeypatch.setattr(nvidia, "run_child", answer)
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "libcuda.so.1").write_bytes(b"first")
    env = process.environment({"LD_LIBRARY_PATH": str(lib)})
    changes = {
        "nothing": lambda: None,
        "boot": lambda: (root / "proc/sys/kernel/random/boot_id").write_text("second\n"),
        "driver": lambda: (root / "proc/driver/nvidia/version").write_text("590.10"),
        "node": (root / "dev/nvidia1").touch,
        "library": lambda: (lib / "libcuda.so.1").write_bytes(b"newer"),
        "hidden": lambda: env.update(CUDA_VISIBLE_DEVICES="1"),
        "memory": lambda: (tmp_path / device_answer.FILE).write_text("{"),
    }
    counts = {}
    device_answer.ask("cuda", tmp_path, env, root=root)
    for name, change in changes.items():
        change()
        for _ in range(2):
            told = device_answer.ask("cuda", tmp_path, env, root=root)
            assert told == device_answer.DeviceAnswer(works=True, says="NVIDIA RTX 4090")
        counts[name] = len(asked)
    assert counts == {"nothing": 1, "boot": 2, "driver": 3, "node": 4, "library": 5, "hidden": 6, "memory": 7}
