"""Do the job of an app several times, and say how long each took, how much it made, and what the device had to do.

Arguments: the file that makes the job, the name of its function, the device as torch calls it, and how often.
The function gets a `Job`, makes ready what is needed once, and returns a call without arguments that does the job and
gives the seconds of sound that it made. The last line that is printed is the answer, as JSON. This runs in the app's
folder: what the app can import can be imported.
"""

import contextlib
import csv
import importlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_BREATH = 0.5
"""Seconds between two looks at the card."""
_PATIENCE = 10
_SEED = 20260101


class Job:
    """What the function that makes a job is given, and tells what it alone knows."""

    def __init__(self, device: str, torch: Any) -> None:
        self.device = device
        """Where torch computes; a job of another library says here where that does."""
        self.weights = "random"
        """Which weights there are."""
        self.bytes = 0
        """Of the weights, see `count`."""
        self.parts: dict[str, float] = {}
        self._torch = torch

    def settle(self) -> None:
        """Wait until the device has done all that it was told."""
        if self.device.startswith("cuda"):
            self._torch.cuda.synchronize()

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Take the time of a part of the job, or of one more piece of it."""
        self.settle()
        begun = time.perf_counter()
        yield
        self.settle()
        self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - begun

    def count(self, model: Any) -> None:
        """Count the bytes of a model's weights; those of quantized layers are no parameters."""
        self.bytes += sum(one.numel() * one.element_size() for one in (*model.parameters(), *model.buffers()))
        for module in model.modules():
            weight = getattr(module, "weight", None)
            if callable(weight):
                self.bytes += weight().numel() * weight().element_size()


class _Card:
    """What drivers say of the busiest card while the job runs: its memory and its use."""

    def __init__(self, device: str) -> None:
        self.memory, self.by = 0, ""
        self.use: list[float] = []
        self._stop = threading.Event()
        ask = None if device.lower().startswith("cpu") else _driver()
        self._thread = threading.Thread(target=self._watch, args=(ask,), daemon=True) if ask else None

    def __enter__(self) -> None:
        if self._thread:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _watch(self, ask: "Callable[[], tuple[str, list[tuple[float, int]]]]") -> None:
        while True:
            by, cards = ask()
            if cards:
                self.by = by
                self.use.append(max(use for use, _ in cards))
                self.memory = max(self.memory, *(memory for _, memory in cards))
            if self._stop.wait(_BREATH):
                return


def _driver() -> "Callable[[], tuple[str, list[tuple[float, int]]]] | None":
    """Find what can be asked: NVIDIA's program, or the files of AMD's driver."""
    if shutil.which("nvidia-smi"):
        return lambda: ("nvidia-smi", of_nvidia(_asked()))
    if of_amd(pathlib.Path("/sys/class/drm")):
        return lambda: ("amdgpu", of_amd(pathlib.Path("/sys/class/drm")))
    return None


def _asked() -> str:
    command = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def of_nvidia(text: str) -> "list[tuple[float, int]]":
    """Read percent and bytes of each card; a card that does not tell one of them is left out.

    Source: `nvidia-smi --help-query-gpu`: percent, MiB.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    return [
        (float(row[0]), int(row[1]) << 20)
        for row in rows
        if len(row) == len(("use", "memory")) and all(cell.isdigit() for cell in row)
    ]


def of_amd(folder: pathlib.Path) -> "list[tuple[float, int]]":
    """Read percent and bytes of each card.

    Source: https://docs.kernel.org/gpu/amdgpu/thermal.html and .../gpu/amdgpu/driver-misc.html
    """
    found = []
    for card in sorted(folder.glob("card[0-9]*/device")):
        with contextlib.suppress(OSError, ValueError):
            use = float((card / "gpu_busy_percent").read_text(encoding="ascii"))
            found.append((use, int((card / "mem_info_vram_used").read_text(encoding="ascii"))))
    return found


def _held() -> "int | None":
    """Give the bytes of memory that this process has; None where that cannot be seen. Source: proc_pid_status(5)."""
    try:
        lines = pathlib.Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    rows = [line.split() for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return sum(int(row[1]) * 1024 for row in rows) or None


def _peak() -> "int | None":
    """Give the bytes of memory that this process, or one that it started, had at most; None where nobody says."""
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return (
        max(int(resource.getrusage(who).ru_maxrss) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * unit
    )


def _placed(wanted: str) -> "tuple[str, Any]":
    """Give the device where it is seen, or else the processor, and torch where it is installed."""
    if importlib.util.find_spec("torch") is None:
        return "cpu", None
    torch: Any = importlib.import_module("torch")
    torch.manual_seed(_SEED)
    if wanted == "cuda" and torch.cuda.is_available():
        return "cuda:0", torch
    if wanted == "privateuseone":
        directml: Any = importlib.import_module("torch_directml")
        if directml.device_count():
            return "privateuseone:0", torch
    return "cpu", torch


def measure(script: str, name: str, wanted: str, runs: int) -> "dict[str, object]":
    """Do the job once that does not count, and then as often as is asked."""
    own = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as in `layers`
    sys.path[:0] = [os.getcwd(), *(os.path.abspath(path) for path in own), here]  # noqa: PTH100, PTH109
    begun = time.perf_counter()
    device, torch = _placed(wanted)
    description = importlib.util.spec_from_file_location("job_of_the_app", script)
    if description is None or description.loader is None:
        raise ImportError(f"{script} is no Python")
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    job = Job(device, torch)
    do = getattr(module, name)(job)
    job.settle()
    ready = time.perf_counter()
    do()
    job.settle()
    first = time.perf_counter() - ready
    taken, busy, parts, length = [], [], [], 0.0
    card = _Card(job.device)
    with card:
        for _ in range(runs):
            job.parts = {}
            at, busy_at = time.perf_counter(), time.process_time()
            length = float(do())
            job.settle()
            taken.append(time.perf_counter() - at)
            busy.append(time.process_time() - busy_at)
            parts.append(job.parts)
    memory, by = (card.memory, card.by) if card.by else (None, "")
    if device.startswith("cuda"):
        memory, by = int(torch.cuda.max_memory_allocated()), "torch"
    return {
        "device": job.device,
        "named": torch.cuda.get_device_name(0) if device.startswith("cuda") else "",
        "weights": job.weights,
        "weight_bytes": job.bytes or None,
        "ready": ready - begun,
        "first": first,
        "seconds": taken,
        "processor": busy,
        "parts": {key: [one[key] for one in parts] for key in parts[0]},
        "length": length,
        "held": _held(),
        "peak": _peak(),
        "device_memory": memory,
        "device_memory_by": by,
        "device_use": sum(card.use) / len(card.use) if card.use else None,
        "device_use_by": card.by,
        "threads": torch.get_num_threads() if torch is not None else None,
        "torch": torch.__version__ if torch is not None else "",
    }


if __name__ == "__main__":
    answer = measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what a driver does when it is unloaded is no part of the job
