"""The kernels with the real torch and the real ONNX Runtime: they pass, and each fault that is put in is told.

`PATCHLOCK_TORCH` names a Python that has torch; `online` installs ONNX Runtime; `gpu` needs both a card and that Python.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import kernel_faults
import pytest
import uv

from patchlock.core import process
from patchlock.model import kernel_results
from patchlock.model.backends import BACK_ENDS, ONNX_KERNELS, TORCH_KERNELS
from patchlock.model.kernel_results import KernelExit, KernelResult, Verdict
from patchlock.verify import _task_runner
from patchlock.verify._task_runner import ProcessContext, Task

TORCH = os.environ.get("PATCHLOCK_TORCH", "")
needs_torch = pytest.mark.skipif(not TORCH, reason="PATCHLOCK_TORCH names no Python with torch")


def where(python: Path, folder: Path) -> ProcessContext:
    return ProcessContext(python=python, options=("-I", "-X", "utf8"), folder=folder, variables=process.environment())


def run(
    python: Path, folder: Path, device: str, kernels: tuple[str, ...], program: str = "compute"
) -> list[KernelExit]:
    module = {"compute": "torch", "onnx_session": "onnxruntime"}[program]
    tasks = [
        Task(name=kernel, program=program, arguments=(device, kernel), seconds=120, memory=4 << 30)
        for kernel in kernels
    ]
    with _task_runner.open_runner(where(python, folder), module) as workshop:
        return list(workshop.run_row(tasks))


def judged(
    python: Path, folder: Path, device: str, kernels: tuple[str, ...], program: str = "compute"
) -> list[KernelResult]:
    return [kernel_results.classify_exit(ended, device) for ended in run(python, folder, device, kernels, program)]


def patched(folder: Path, python: str, text: str) -> Path:
    """Make an environment that has the packages of another one, and runs a text when it starts."""
    paths = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    home = subprocess.run(
        [python, "-c", "import sys; print(sys._base_executable)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run([home, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    (packages / "beside.pth").write_text(f"{paths}\nimport put_in\n")
    (packages / "put_in.py").write_text(text)
    return folder / "bin" / "python"


@needs_torch
def test_a_torch_for_the_processor_is_built_for_nothing_else(tmp_path: Path) -> None:
    (ended,) = run(Path(TORCH), tmp_path, "cuda", ("devices",))
    assert ended.found is not None
    assert (ended.found["built"] == []) == ended.found["version"].endswith("+cpu")


@needs_torch
def test_all_kernels_work_on_the_cpu(tmp_path: Path) -> None:
    found = judged(Path(TORCH), tmp_path, "cpu", TORCH_KERNELS)
    for proof in found:
        print(
            f"{proof.kernel:18} {proof.verdict.value:8} error {proof.error} in {proof.ms} ms, first {proof.first_ms} ms"
        )
    assert [(p.kernel, p.detail) for p in found if p.verdict is not Verdict.WORKS] == []
    assert all(p.ms is not None and p.error is not None for p in found)


FAULTS = """\
import os, time
import torch
multiply, running, kept = torch.Tensor.__matmul__, torch.cumsum, []
def hoard(*given, **named):
    while True:
        kept.append(torch.ones(25_000_000))
torch.Tensor.__matmul__ = lambda a, b: multiply(a, b) + 100
torch.bmm = lambda a, b: time.sleep(600)
torch.stft = lambda *a, **b: os.abort()
torch.fft.rfft = lambda x: torch.ones(1 << 50)
torch.topk = hoard
torch.cumsum = lambda x, dim: running(x, dim) * 0
"""
"""What each then does: shifted values, a hang, an abort, a refused allocation, endless ones, zeros."""

PUT_IN = {
    "mm-f32": (Verdict.WRONG, "wrong by"),
    "bmm": (Verdict.HANGS, "no end within 15 seconds, in the stage “compute”"),
    "stft": (Verdict.CRASHES, "SIGABRT in the stage “compute”"),
    "rfft": (Verdict.OUT_OF_MEMORY, ""),
    "topk": (Verdict.OUT_OF_MEMORY, "when it had more than 953.7 MiB of memory"),
    "cumsum-i64": (Verdict.WRONG, "all zeros"),
    "linear": (Verdict.WORKS, ""),
}


@needs_torch
@pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux only")
def test_faults_in_the_real_torch_are_told(tmp_path: Path) -> None:
    python = patched(tmp_path / "e", TORCH, FAULTS)
    with _task_runner.open_runner(where(python, tmp_path), "torch") as workshop:
        found = {
            name: kernel_results.classify_exit(
                workshop.run(Task(name=name, program="compute", arguments=("cpu", name), seconds=15, memory=10**9)),
                "cpu",
            )
            for name in PUT_IN
        }
    assert {name: (p.verdict, p.detail) for name, p in found.items() if p.verdict is not PUT_IN[name][0]} == {}
    assert [(name, p.detail) for name, p in found.items() if PUT_IN[name][1] not in p.detail] == []


SILENT_OR_SUBTLE = (
    kernel_faults.Fault(("conv1d",), "silent", "second call"),
    kernel_faults.Fault(("lstm",), "noise", "more than 100"),
    kernel_faults.Fault(("scaled_dot_product_attention",), "mask ignored"),
    kernel_faults.Fault(("stft", "istft"), "conjugate"),
    kernel_faults.Fault(("linear",), "last number wrong", "second call"),
)


@needs_torch
@pytest.mark.skipif(sys.platform != "linux", reason="the card stands in a fork")
def test_mistakes_of_a_pretended_card_are_noticed_and_without_one_all_works(tmp_path: Path) -> None:
    python, said = kernel_faults.environment(tmp_path / "e", Path(TORCH)), tmp_path / "fault.json"
    place = where(python, tmp_path)
    variables = {**place.variables, "PATCHLOCK_FAULT": str(said), "PATCHLOCK_CALLED": str(tmp_path / "called")}
    kernels = ("linear", "stft", "istft", "conv1d", "sdpa-mask", "lstm-many")
    with _task_runner.open_runner(dataclasses.replace(place, variables=variables), "torch") as workshop:
        said.write_text("{}")
        sound = kernel_faults.results(workshop, "cuda:0", kernels)
        assert {one.kernel: (one.verdict.value, one.shown) for one in sound} == dict.fromkeys(
            kernels, ("works", "profiler")
        )
        for fault in SILENT_OR_SUBTLE:
            said.write_text(json.dumps(vars(fault)))
            assert kernel_faults.failures(kernel_faults.results(workshop, "cuda:0", kernels)), fault


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install ONNX Runtime."""
    folder = tmp_path_factory.mktemp("onnx")
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run([uv.find_uv_bin(), "venv", "-q", "-p", sys.executable, str(folder)], check=True, env=env)
    python = folder / "bin" / "python"
    command = [uv.find_uv_bin(), "pip", "install", "-q", "--python", str(python), "onnxruntime==1.24.1"]
    subprocess.run(command, check=True, env=env)
    return python


@pytest.mark.online
def test_models_compute_on_the_cpu_with_onnx_runtime(onnx: Path, tmp_path: Path) -> None:
    found = judged(onnx, tmp_path, "CPUExecutionProvider", ONNX_KERNELS, "onnx_session")
    assert [(p.kernel, p.detail) for p in found if p.verdict is not Verdict.WORKS] == []
    assert all(p.error is not None and p.error < 1e-5 for p in found)


@pytest.mark.online
def test_a_provider_that_is_not_there_or_does_not_compute_is_told(onnx: Path, tmp_path: Path) -> None:
    (missing,) = judged(onnx, tmp_path, "CUDAExecutionProvider", ONNX_KERNELS[:1], "onnx_session")
    assert missing.verdict is Verdict.UNAVAILABLE
    assert "has no CUDAExecutionProvider, only AzureExecutionProvider, CPUExecutionProvider" in missing.detail
    (idle,) = judged(onnx, tmp_path, "AzureExecutionProvider", ONNX_KERNELS[:1], "onnx_session")
    assert idle.verdict is Verdict.RAISES
    assert "fallback to CPU EP has been explicitly disabled" in idle.detail


SILENT = """\
import onnxruntime as ort
real, made = ort.InferenceSession, ort.get_available_providers()
ort.get_available_providers = lambda: [*made, "CUDAExecutionProvider"]
def session(data, options, providers):
    plain = ort.SessionOptions()
    plain.enable_profiling, plain.profile_file_prefix = options.enable_profiling, options.profile_file_prefix
    return real(data, plain, providers=["CPUExecutionProvider"])
ort.InferenceSession = session
"""
"""As versions did that fell back without a word."""


@pytest.mark.online
def test_a_session_that_falls_back_without_a_word_is_told(onnx: Path, tmp_path: Path) -> None:
    python = patched(tmp_path / "e", str(onnx), SILENT)
    for proof in judged(python, tmp_path, "CUDAExecutionProvider", ONNX_KERNELS, "onnx_session"):
        assert proof.verdict is Verdict.FALLS_BACK
        assert proof.detail == "its result is on CPUExecutionProvider, not on CUDAExecutionProvider"


NEEDS_ITS_LIBRARIES = """\
import onnxruntime as ort
import sys
real, made, loaded = ort.InferenceSession, ort.get_available_providers(), []
ort.get_available_providers = lambda: [*made, "CUDAExecutionProvider"]
ort.preload_dlls = lambda: loaded.append(True)
def session(data, options, providers):
    if not loaded:
        print("Failed to load library libx.so with error: libcublasLt.so.12: cannot open shared object file", file=sys.stderr)
        return real(data, options, providers=["CPUExecutionProvider"])
    raise RuntimeError("it would compute")
ort.InferenceSession = session
"""
"""As where CUDA is there as packages alone, which nothing finds before ONNX Runtime is told to load them."""


@pytest.mark.online
def test_cuda_of_packages_is_loaded_before_a_session_and_what_it_lacks_is_told(onnx: Path, tmp_path: Path) -> None:
    for name, text, told in (
        ("loaded", NEEDS_ITS_LIBRARIES, "RuntimeError: it would compute"),
        (
            "lacking",
            NEEDS_ITS_LIBRARIES.replace("loaded.append(True)", "None"),
            "not on CUDAExecutionProvider: libcublas",
        ),
    ):
        python = patched(tmp_path / name, str(onnx), text)
        (proof,) = judged(python, tmp_path, "CUDAExecutionProvider", ONNX_KERNELS[:1], "onnx_session")
        assert told in proof.detail


SHIFTED = """\
import onnxruntime as ort
real = ort.InferenceSession
class Session(real):
    def run(self, *given):
        return [one + 0.5 for one in super().run(*given)]
ort.InferenceSession = Session
"""


@pytest.mark.online
def test_a_session_that_computes_wrong_numbers_is_told(onnx: Path, tmp_path: Path) -> None:
    python = patched(tmp_path / "e", str(onnx), SHIFTED)
    found = judged(python, tmp_path, "CPUExecutionProvider", ONNX_KERNELS, "onnx_session")
    assert {proof.verdict for proof in found} == {Verdict.WRONG}


@pytest.mark.gpu
@needs_torch
def test_all_kernels_work_on_the_card(tmp_path: Path) -> None:
    (devices,) = run(Path(TORCH), tmp_path, BACK_ENDS["cuda"].device, ("devices",))
    assert devices.found is not None
    assert devices.found["devices"], devices.found["why"]
    found = judged(Path(TORCH), tmp_path, "cuda:0", TORCH_KERNELS)
    print(devices.found)
    for proof in found:
        print(
            f"{proof.kernel:18} {proof.verdict.value:8} {proof.error} {proof.ms} ms, CPU {proof.cpu_ms} ms, {proof.detail}"
        )
    assert [(p.kernel, p.detail) for p in found if p.verdict is not Verdict.WORKS] == []
