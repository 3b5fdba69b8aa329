"""A torch without numbers, for tests of what `verify` does with one: everything that it computes is 1, or as it is told.

It is installed as the distribution `torch`, and is not a part of a test process. `PRETEND_TORCH` says which kernels go wrong on
the card: `stft=hang,mm-f32=raise`, `*` for all; `no-card` takes the card away, `no-profiler` its profiler, `built=hip` is another
build, `built=` the CPU's. What each kernel computes with numbers is left out: there is one case of one number.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

__version__ = "2.13.0+pretended"
float16, float32, float64, bfloat16, int64, bool = "f16", "f32", "f64", "bf16", "i64", "bool"  # noqa: A001
_faults = dict(part.partition("=")[::2] for part in os.environ.get("PRETEND_TORCH", "").split(",") if part)
_built = _faults.get("built", "cuda")
_hoard, _seen = [], []


class OutOfMemoryError(RuntimeError):
    """As torch has one."""


class Tensor:
    """One value, somewhere."""

    shape = (1,)
    dtype = "any"

    def __init__(self, value=1.0, device="cpu"):
        self.value, self.device = value, device

    def to(self, *where):
        return Tensor(self.value, str(where[0]))

    def double(self):
        return self

    max = cpu = flatten = any = double

    def abs(self):
        return Tensor(abs(self.value), self.device)

    def numel(self):
        return 1

    element_size = numel

    def __getitem__(self, _index):
        return self

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        return self.value != 0

    def __sub__(self, other):
        return Tensor(self.value - other.value, self.device)

    def __truediv__(self, other):
        return Tensor(self.value / other.value, self.device)

    def __mul__(self, _other):
        return _computed(self)

    def __ne__(self, other):
        return Tensor(float(self.value != other), self.device)

    __hash__ = None


class _Case:
    """What is computed for every kernel, in place of what is computed with numbers."""

    name, tolerance, is_hybrid, comes_back = "one", 1e-3, False, None

    def inputs(self, *_given):
        return [Tensor()]

    def run(self, _torch, one):
        return _computed(one)

    def reference(self, *_given):
        return Tensor()

    def read(self, _torch, result, *_inputs):
        return result


class _Kernels(dict):
    def __missing__(self, name):
        return (_Case(),)


sys.modules["patchlock_kernels"] = type(sys)("patchlock_kernels")
sys.modules["patchlock_kernels"].KERNELS = _Kernels()


def ones(*_shape):
    return Tensor()


def _kernel():
    """Give the name of the kernel that is computed: the last one that was named in the answer."""
    with Path(sys.argv[1]).open("rb") as file:
        file.seek(max(0, Path(sys.argv[1]).stat().st_size - 4096))
        return file.read().rpartition(b'"kernel": "')[2].partition(b'"')[0].decode()


def _computed(one):
    if one.device == "cpu":
        return Tensor()
    kernel = _kernel()
    fault = _faults.get(kernel, _faults.get("*", "") if kernel != "profiler" else "")
    if fault in _ENDS:
        _ENDS[fault]()
    if fault == "elsewhere":
        return Tensor(1.0, "cpu")
    if fault != "silent":
        _seen.append({"cat": "kernel", "name": kernel})
    return Tensor({"shifted": 1.25, "zeros": 0.0, "nan": float("nan")}.get(fault, 1.0), one.device)


def _raise():
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device\nCompile with ...")


def _out_of_memory():
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def _hoarding():
    while True:
        _hoard.append(b"\1" * 50_000_000)


def _nothing():
    pass


def _leaving_a_child():
    """Leave a child that outlives the kernel, and notes its end where the test looks."""
    code = "import sys, time; from pathlib import Path; time.sleep(60); Path(sys.argv[1], 'ended').touch()"
    subprocess.Popen([sys.executable, "-c", code, os.environ["KERNEL_TEST"]])


_ENDS = {
    "raise": _raise,
    "oom": _out_of_memory,
    "hoard": _hoarding,
    "hang": lambda: time.sleep(600),
    "hang-deaf": lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(600)),
    "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "abort": os.abort,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "child": _leaving_a_child,
    "says-it-falls-back": lambda: warnings.warn(
        "The operator 'aten::x' is not currently supported on the DML backend and will fall back to run on the CPU.",
        stacklevel=1,
    ),
    "prints-that-it-falls-back": lambda: print("aten::x falls back to the CPU", file=sys.stderr),
    "slow": lambda: time.sleep(0.003),
}


class version:  # noqa: N801
    """What it was built for."""

    cuda, hip = ("12.8" if _built == "cuda" else None), ("6.3" if _built == "hip" else None)
    xpu = "20250101" if _built == "xpu" else None


class _Cuda:
    """The card."""

    def is_available(self):
        _ENDS.get(_faults.get("devices", ""), _nothing)()
        return "no-card" not in _faults and _built != ""

    def init(self):
        raise RuntimeError("Found no NVIDIA driver on your system.\nPlease check")

    def device_count(self):
        return 1

    def get_device_properties(self, _index):
        return type("Properties", (), {"name": "Pretended GPU", "total_memory": 8 << 30, "major": 9, "minor": 0})

    def synchronize(self):
        pass


class Generator:
    """Gives the same always."""

    def manual_seed(self, _seed):
        return self


class no_grad:  # noqa: N801
    """Does nothing."""

    def __enter__(self):
        pass

    def __exit__(self, *_error):
        pass


class _Profile:
    """Sees what was computed on the card, unless `no-profiler` takes that away."""

    def __init__(self, **_named):
        pass

    def __enter__(self):
        _seen.clear()
        return self

    def __exit__(self, *_error):
        pass

    def export_chrome_trace(self, path):
        Path(path).write_text(json.dumps({"traceEvents": [] if "no-profiler" in _faults else _seen}), encoding="utf-8")


class profiler:  # noqa: N801
    """As torch has one."""

    ProfilerActivity = type("ProfilerActivity", (), {"CUDA": "cuda"})
    profile = _Profile


cuda = xpu = mps = _Cuda()
backends = type("backends", (), {"mps": type("mps", (), {})})
backends.mps.is_built = lambda: _built == "mps"
backends.mps.is_available = lambda: _built == "mps" and cuda.is_available()


def manual_seed(_seed):
    pass
