"""Compute kernels on one device with torch, compare each with another computation of the same on the CPU, and time it.

Arguments: the file that the answer goes to, the device as torch calls it (`cpu`, `cuda:0`, `mps:0`), and the
names of kernels, joined by commas. `devices` among them asks which devices there are; `profiler` whether torch's
profiler sees the device work, which the kernels after it then make use of. The answer is lines of JSON: one that names
each kernel before it is begun, one for each stage of it, so that a crash tells where, and what was found. What
libraries print is no answer. What raises ends the process: the device may be unfit for anything after it.

The kernels are those of `patchlock_kernels`, beside this file.
"""

import contextlib
import importlib
import importlib.util
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Torch = Any
Tensor = Any

_SEED = 20260101
_CALLS = 3
"""How often each case is computed and compared: what is wrong at every second call is wrong."""
_STEPS = (5, 0.02, 40)
"""How often a kernel is timed at least, the seconds that this should take, how often at most."""


# --- one run ----------------------------------------------------------------------------------------------------------


class Answer:
    """Writes lines to a file, each at once: the next step may be the last."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tell(self, **values: object) -> None:
        """Write one line."""
        with open(self._path, "a", encoding="utf-8") as file:  # noqa: PTH123 - one call less in a child
            file.write(json.dumps(values) + "\n")

    def begin(self, name: str) -> None:
        """Say which kernel or model begins now, and how much was printed before it."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.tell(kernel=name, printed=os.fstat(1).st_size)

    def stage(self, name: str) -> None:
        """Say what begins now."""
        self.tell(stage=name)


def _error(t: Torch, got: Tensor, want: Tensor) -> float:
    """Give the largest difference, in parts of the largest wanted value; not a number where anything is none."""
    if got.shape != want.shape:
        return math.inf
    exact = want.dtype == t.int64  # of which float64 has not all
    difference = (got.to(t.int64) - want) if exact else (got.double() - want.double())
    return float(difference.abs().max().double() / want.double().abs().max())


def _listed(result: Any) -> "Sequence[Tensor]":
    return result if isinstance(result, list) else [result]


def _wait(t: Torch, device: str, result: Any) -> None:
    """Wait until a device has computed: where it cannot be asked for that, a number is fetched."""
    if device.startswith(("cuda", "mps", "xpu")):
        getattr(t, device.partition(":")[0]).synchronize()
    elif device != "cpu":
        _listed(result)[0].flatten()[:1].cpu()


def _time(t: Torch, device: str, run: "Callable[[], Any]") -> float:
    """Give the milliseconds of the fastest run, after a first one that does not count."""
    least, seconds, most = _STEPS
    _wait(t, device, run())
    taken: list[float] = []
    while len(taken) < least or (sum(taken) < seconds and len(taken) < most):
        started = time.perf_counter()
        _wait(t, device, run())
        taken.append(time.perf_counter() - started)
        if taken[-1] > 1:
            break
    return min(taken) * 1000


def _place(name: str) -> object:
    """Give what torch takes as the device: its name, or the object of the library that knows it."""
    if name.startswith("privateuseone"):
        return importlib.import_module("torch_directml").device(int(name.partition(":")[2] or 0))
    return name


def _kernels() -> Any:
    """Import the kernels, which lie beside this file, where an isolated Python does not look."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - one import less in a child
    try:
        return importlib.import_module("patchlock_kernels").KERNELS
    finally:
        del sys.path[0]


# --- what shows where something was computed --------------------------------------------------------------------------


class Work:
    """What a device did, as its profiler and its allocator saw it."""

    def __init__(self, events: int = 0, copied: int = 0, allocated: "int | None" = None) -> None:
        self.events = events
        """Computations on the device, and copies within it."""
        self.copied = copied
        """Bytes that went from the device to the CPU."""
        self.allocated = allocated
        """Bytes that the device's allocator gave out; None where it cannot be asked."""


def _allocated(t: Torch) -> "int | None":
    """Give all bytes that the device's allocator ever gave out."""
    with contextlib.suppress(AttributeError, RuntimeError, AssertionError):
        given = t.cuda.memory_stats().get("allocated_bytes.all.allocated")
        return given if isinstance(given, int) else None
    return None


def watch(t: Torch, run: "Callable[[], Any]", *, with_profiler: bool) -> Work:
    """Run something on a device of CUDA's kind, and see what that does there.

    Source: https://docs.pytorch.org/docs/stable/profiler.html, and of the categories of events
    https://github.com/pytorch/kineto/blob/main/libkineto/src/ActivityType.cpp
    """
    before = _allocated(t)
    if with_profiler:
        with t.profiler.profile(activities=[t.profiler.ProfilerActivity.CUDA]) as watched:
            run()
            t.cuda.synchronize()
    else:
        run()
        t.cuda.synchronize()
    after = _allocated(t)
    work = Work(allocated=None if before is None or after is None else after - before)
    if with_profiler:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")  # noqa: PTH118 - as above
            watched.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                _count(json.load(file)["traceEvents"], work)
    return work


def _count(events: "Iterable[dict[str, Any]]", work: Work) -> None:
    for event in events:
        kind, name = event.get("cat", ""), str(event.get("name", ""))
        if kind in {"kernel", "gpu_memset"} or (kind == "gpu_memcpy" and "DtoD" in name):
            work.events += 1
        elif kind == "gpu_memcpy" and "DtoH" in name:
            work.copied += int(event.get("args", {}).get("bytes", 0))


def _elsewhere(
    work: Work, inputs: "Sequence[Tensor]", results: "Sequence[Tensor]", *, profiled: bool, case: Any
) -> str:
    """Say by what a device shows that it did not compute; "" where it shows nothing of the kind."""
    if profiled and not work.events:
        return "its profiler saw no work of the device"
    most = _CALLS * case.comes_back if case.comes_back is not None else max(_bytes(one) for one in inputs)
    if profiled and not case.is_hybrid and work.copied >= most:
        return f"its profiler saw {work.copied} bytes go back to the CPU"
    if work.allocated is not None and work.allocated < sum(_bytes(one) for one in results):
        return f"its allocator gave {work.allocated} bytes for it"
    return ""


def _bytes(one: Tensor) -> int:
    return int(one.numel() * one.element_size())


def profiler(t: Torch, device: str, answer: Answer) -> "dict[str, object]":
    """Say whether torch's profiler sees a device work."""
    answer.stage("device")
    ones = t.ones(1000).to(device)
    answer.stage("profiler")
    work = watch(t, lambda: ones * 2, with_profiler=True)
    return {"shows": work.events > 0, "version": t.__version__}


# --- one kernel -------------------------------------------------------------------------------------------------------


class Found:
    """What is known of a kernel so far, with the case that was furthest from what was wanted."""

    def __init__(self, version: str) -> None:
        self.values: dict[str, Any] = {"error": 0.0, "tolerance": 0.0, "case": "", "zeros": False, "said": []}
        self.values |= {"on": "", "wanted": "", "elsewhere": "", "shown": "", "version": version}
        self._share = -1.0

    def compared(self, case: str, error: float, tolerance: float, *, zeros: bool) -> None:
        """Take in one comparison; the worst one stays."""
        share = error / tolerance if tolerance else (0.0 if error == 0 else math.inf)
        share = math.inf if math.isnan(error) else share
        if share > self._share:
            self._share = share
            self.values |= {"error": error, "tolerance": tolerance, "case": case, "zeros": zeros}

    def placed(self, case: str, on: str, wanted: str, elsewhere: str) -> None:
        """Take in where something was computed; the first that was computed elsewhere stays."""
        if self.values["on"] == self.values["wanted"] and not self.values["elsewhere"]:
            self.values |= {"on": on, "wanted": wanted, "elsewhere": f"{elsewhere} ({case})" if elsewhere else ""}


def compute(
    t: Torch, cases: "Sequence[Any]", device: str, answer: Answer, *, with_profiler: bool
) -> "dict[str, object]":
    """Compute a kernel on a device, and say how wrong the worst result is, what shows where, and how long it takes."""
    found = Found(t.__version__)
    for case in cases:
        _compute_case(t, case, device, answer, found, with_profiler=with_profiler)
    answer.tell(found=found.values)  # what follows is only about time, and may still go wrong
    answer.stage("time")
    inputs = cases[0].inputs(t, t.Generator().manual_seed(_SEED))
    place = _place(device)
    moved = [one.to(place) for one in inputs]
    found.values["ms"] = _time(t, device, lambda: cases[0].run(t, *moved))
    if device != "cpu":
        answer.stage("time on the CPU")
        try:
            found.values["cpu_ms"] = _time(t, "cpu", lambda: cases[0].run(t, *inputs))
        except RuntimeError as reason:  # the CPU lacks some kernels in float16
            found.values["said"].append(f"not timed on the CPU: {reason}")
    return found.values


def _compute_case(t: Torch, case: Any, device: str, answer: Answer, found: Found, *, with_profiler: bool) -> None:
    answer.stage("inputs")
    inputs = case.inputs(t, t.Generator().manual_seed(_SEED))
    wants = _listed(case.reference(t, *inputs))
    answer.stage("device")
    place = _place(device)
    moved = [one.to(place) for one in inputs]
    t.manual_seed(_SEED)
    answer.stage("compute")
    calls, work = _Calls(t, case, moved, device), None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if device.startswith("cuda"):
            work = watch(t, calls.make, with_profiler=with_profiler)
        else:
            calls.make()
    found.values.setdefault("first", calls.first)
    found.values["said"] += [str(one.message) for one in heard]
    answer.stage("compare")
    results, elsewhere = [one for result in calls.results for one in _listed(result)], ""
    if work is not None:
        elsewhere = _elsewhere(work, moved, results, profiled=with_profiler, case=case)
        found.values["shown"] = "profiler" if with_profiler else "allocator" if work.allocated is not None else ""
    for one in results:
        found.placed(case.name, str(one.device), str(moved[0].device), elsewhere)
    for result in calls.results:
        homes = [one.to("cpu") for one in _listed(result)]
        read = _listed(case.read(t, homes if isinstance(result, list) else homes[0], *inputs))
        for got, want in zip(read, wants, strict=True):
            zeros = not bool((got != 0).any())
            found.compared(case.name, _error(t, got, want), case.tolerance, zeros=zeros)


class _Calls:
    """Computes a case again and again."""

    def __init__(self, t: Torch, case: Any, inputs: "Sequence[Tensor]", device: str) -> None:
        self._t, self._case, self._inputs, self._device = t, case, inputs, device
        self.results: list[Any] = []
        self.first = 0.0
        """Milliseconds of the first call."""

    def make(self) -> None:
        """Make all calls."""
        for call in range(_CALLS):
            started = time.perf_counter()
            self.results.append(self._case.run(self._t, *self._inputs))
            _wait(self._t, self._device, self.results[-1])
            if call == 0:
                self.first = (time.perf_counter() - started) * 1000


def devices(t: Torch, device: str, answer: Answer) -> "dict[str, object]":
    """List the devices of a kind, and say why there is none where there is none."""
    found: list[dict[str, object]] = []
    why = ""
    about = {"version": t.__version__, "built": built_for(t)}
    answer.tell(found={**about, "devices": [], "why": ""})  # torch is there, whatever follows
    answer.stage("devices")
    if device == "cpu":
        found = [{"name": "cpu", "threads": t.get_num_threads()}]
    elif device == "cuda":
        if t.cuda.is_available():
            properties = [t.cuda.get_device_properties(i) for i in range(t.cuda.device_count())]
            found = [_properties(one) for one in properties]
        else:
            why = _refusal(t)
    elif device == "mps":
        if t.backends.mps.is_available():
            found = [{"name": "Apple's GPU"}]
        else:
            why = "torch.backends.mps.is_available() is False"
    elif device == "xpu":
        if t.xpu.is_available():
            cards = [t.xpu.get_device_properties(i) for i in range(t.xpu.device_count())]
            found = [{"name": one.name, "memory": one.total_memory} for one in cards]
        else:
            why = "torch.xpu.is_available() is False"
    else:
        library = importlib.import_module("torch_directml")
        if library.is_available():
            found = [{"name": library.device_name(i).rstrip("\0")} for i in range(library.device_count())]
        else:
            why = "torch_directml.is_available() is False"
    return {**about, "devices": found, "why": why if found == [] else ""}


def built_for(t: Torch) -> "list[str]":
    """Name what a torch is built for besides the CPU, whatever the machine has; torch-directml stands beside it."""
    found = [name for name in ("cuda", "hip", "xpu") if getattr(getattr(t, "version", None), name, None)]
    metal = getattr(getattr(t, "backends", None), "mps", None)
    found += ["mps"] if metal is not None and metal.is_built() else []
    return [*found, *(["directml"] if importlib.util.find_spec("torch_directml") else [])]


def _properties(one: Any) -> "dict[str, object]":
    arch = getattr(one, "gcnArchName", "") if getattr(one, "gcnArchName", "").startswith("gfx") else ""
    sm = f"sm_{one.major}{one.minor}"
    return {"name": one.name, "memory": one.total_memory, "arch": arch or sm}


def _refusal(t: Torch) -> str:
    """Ask the library itself why it has no device: `is_available` says only that."""
    try:
        t.cuda.init()
    except (RuntimeError, AssertionError) as reason:
        return str(reason).strip().splitlines()[0]
    return "torch.cuda.is_available() is False"


def main(arguments: "Iterable[str]") -> None:
    """Do what the arguments say, and write what came of it."""
    respond(arguments, lambda _t, name, _place: _kernels()[name], str)


def respond(
    arguments: "Iterable[str]",
    cases: "Callable[[Torch, str, object], Sequence[Any]]",
    describe: "Callable[[BaseException], str]",
) -> None:
    """Answer for each name: which devices there are, whether the profiler sees one, or what became of its cases.

    Args:
        arguments: as above.
        cases: gives those of a name, on what torch takes as the device.
        describe: says what something that was raised means.
    """
    path, device, names = arguments
    with_profiler = False

    def found(name: str, answer: Answer) -> "dict[str, object]":
        nonlocal with_profiler
        t = importlib.import_module("torch")
        if name == "devices":
            return devices(t, device, answer)
        if name == "profiler":
            seen = profiler(t, device, answer)
            with_profiler = bool(seen["shows"])
            return seen
        answer.stage("build")
        with t.no_grad():  # DirectML has no inference_mode
            made = cases(t, name, _place(device))
            return compute(t, made, device, answer, with_profiler=with_profiler)

    answer_each(path, names, found, describe)


def answer_each(
    path: str,
    names: str,
    find: "Callable[[str, Answer], dict[str, object]]",
    describe: "Callable[[BaseException], str]",
) -> None:
    """Write what is found for each name, joined by commas, until something is raised."""
    answer = Answer(path)
    for name in names.split(","):
        answer.begin(name)
        answer.stage("import")
        try:
            found = find(name, answer)
        except BaseException as reason:  # noqa: BLE001 - a library may raise anything, and all of it is evidence
            answer.tell(raised=type(reason).__name__, message=describe(reason)[:2000])
            return
        answer.tell(found=found)
        answer.stage("end")


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # what a driver does when it is unloaded is no part of the proof
