"""Let an app make a sound, judge it, and say how long that took and what the device had to do.

Arguments: the file that makes the job, the name of its function, the device as torch calls it, how often the job is
done after one warm-up run, `brief` or `full`, and the file that the sound is written to.
The function gets a `Job`, makes ready what is needed once, and returns a call without arguments that does the job and
gives the sound: samples from -1 to 1 and how many of them make a second. The last line that is printed is the answer,
as JSON. This runs in the app's folder: what the app can import can be imported.
"""

import array
import contextlib
import csv
import importlib
import importlib.util
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_BREATH = 0.5
"""Seconds between two looks at the card."""
_PATIENCE = 10
_SEED = 20260101
_HIGHEST = 32767
_STEP = 1 / _HIGHEST
"""Of a file of 16 bits: what moves less cannot be heard."""
_FULL, _CLIPPED = 0.999, 0.1
"""What counts as full scale, and how much of a sound may be there: an overdriven one is there half of the time."""
_LAGS, _LIKE = 8, 0.1
"""Later samples that are compared, and how like them white noise is at most: chance makes it 0.02 in 0.1 s."""
_FRAMES, _STEADY = 40, 0.1
"""Frames in a second whose loudness is compared, and how much that of noise differs: by 0.03 at 22 kHz."""


class Job:
    """What the function that makes a job is given, and tells what it alone knows."""

    def __init__(self, device: str, torch: Any, *, is_brief: bool = False) -> None:
        self.device = device
        """Where torch computes; a job says here where the app has put its models."""
        self.is_brief = is_brief
        """Whether the sound is all that is wanted, and no time of it: random models may be shallow then."""
        self.seconds = (0.0, 0.0)
        """The shortest and the longest that the sound can plausibly be."""
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
    if os.environ.get("PATCHLOCK_DEVICE") == "cpu":
        return "cpu", torch
    if wanted == "cuda" and torch.cuda.is_available():
        return "cuda:0", torch
    if wanted == "privateuseone":
        directml: Any = importlib.import_module("torch_directml")
        if directml.device_count():
            return "privateuseone:0", torch
    return "cpu", torch


def judge(samples: "Sequence[float]", rate: int, plausible: "tuple[float, float]", *, is_real: bool) -> "list[str]":
    """Say why these samples are no sound that a person could want to hear.

    Args:
        samples: from -1 to 1.
        rate: how many make a second.
        plausible: the shortest and the longest that it can be, in seconds.
        is_real: whether a real voice's weights have made it, so that it has to be more than noise.
    """
    shortest, longest = plausible
    seconds = len(samples) / rate
    if not shortest <= seconds <= longest:
        return [f"it lasts {seconds:.2f} s, where {shortest:g} to {longest:g} s are plausible"]
    broken = sum(not math.isfinite(one) for one in samples)
    if broken:
        return [f"{broken} of {len(samples)} samples are no numbers, or infinite"]
    mean = math.fsum(samples) / len(samples)
    moved = [one - mean for one in samples]
    power = math.fsum(one * one for one in moved) / len(moved)
    if math.sqrt(power) < _STEP:
        return ["it is silent" if abs(mean) < _STEP else f"it is the constant {mean:.3g}"]
    full = sum(abs(one) >= _FULL for one in samples) / len(samples)
    wrong = [f"{full:.0%} of it is clipped"] if full > _CLIPPED else []
    if is_real:
        wrong += _noise(moved, power, rate)
    return wrong


def _noise(moved: "Sequence[float]", power: float, rate: int) -> "Iterator[str]":
    """Say what of noise it is: its samples do not go with each other, or it is as loud all the time."""
    # White noise is what goes with no later sample of itself: the spectrum is the transform of these numbers.
    likeness = [
        sum(map(float.__mul__, moved, moved[lag:])) / (power * (len(moved) - lag)) for lag in range(1, _LAGS + 1)
    ]
    if max(map(abs, likeness)) < _LIKE:
        yield "its spectrum is that of white noise"
    size = max(1, rate // _FRAMES)
    loud = [
        math.sqrt(math.fsum(one * one for one in moved[at : at + size]) / size)
        for at in range(0, len(moved) - size + 1, size)
    ]
    mean = sum(loud) / len(loud) if loud else 0.0
    if loud and math.sqrt(sum((one - mean) ** 2 for one in loud) / len(loud)) < _STEADY * mean:
        yield "it is as loud from its beginning to its end: no speech and no song is"


def _numbers(samples: Any) -> "array.array[float]":
    """Give samples of an array, a tensor or a list as numbers of Python."""
    return array.array("d", samples.tolist() if hasattr(samples, "tolist") else samples)


def write(path: str, samples: "Iterable[float]", rate: int) -> None:
    """Write a WAV file of 16 bits; what is no number is silence there."""
    whole = (round(max(-1.0, min(1.0, one)) * _HIGHEST) if math.isfinite(one) else 0 for one in samples)
    pcm = array.array("h", whole)
    if sys.byteorder == "big":
        pcm.byteswap()
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.tobytes())


def measure(script: str, name: str, wanted: str, runs: int, size: str, path: str) -> "dict[str, object]":
    """Do the job once as a warm-up, and then as often as is asked; judge the last sound."""
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
    job = Job(device, torch, is_brief=size == "brief")
    do = getattr(module, name)(job)
    job.settle()
    ready = time.perf_counter()
    samples, rate = do()
    job.settle()
    first = time.perf_counter() - ready
    taken, busy, parts = [], [], []
    card = _Card(job.device)
    with card:
        for _ in range(runs):
            job.parts = {}
            at, busy_at = time.perf_counter(), time.process_time()
            samples, rate = do()
            job.settle()
            taken.append(time.perf_counter() - at)
            busy.append(time.process_time() - busy_at)
            parts.append(job.parts)
    heard = _numbers(samples)
    if path:
        write(path, heard, rate)
    wrong = judge(heard, rate, job.seconds, is_real=job.weights != "random")
    if device != "cpu" and job.device.partition(":")[0] != device.partition(":")[0]:
        wrong.append(f"it was computed on {job.device}, and {device} is there")
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
        "parts": {key: [one[key] for one in parts] for key in job.parts} if parts else {},
        "length": len(heard) / rate,
        "wrong": wrong,
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
    answer = measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6])
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # what a driver does when it is unloaded is no part of the job
