"""A torch without numbers, for tests of what `verify` does with one: everything that it computes is 1, or as it is told.

It is installed as the distribution `torch`, and is no part of a test process. `PRETEND_TORCH` says which kernels go wrong on
the card: `stft=hang,mm-f32=raise`, `*` for all; `no-card` takes the card away, `built=hip` is another build, `built=` the CPU's.
"""

import os
import signal
import subprocess
import sys
import time
import warnings

__version__ = "2.13.0+pretended"
float16, float32, float64, bfloat16, int64, bool = "f16", "f32", "f64", "bf16", "i64", "bool"  # noqa: A001
_faults = dict(part.partition("=")[::2] for part in os.environ.get("PRETEND_TORCH", "").split(",") if part)
_built = _faults.get("built", "cuda")
_hoard = []


class OutOfMemoryError(RuntimeError):
    """As torch has one."""


class Tensor:
    """One value, somewhere."""

    shape = (4, 8)
    dtype = "any"

    def __init__(self, value=1.0, device="cpu"):
        self.value, self.device = value, device

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in {"T", "solution", "data"}:
            return self
        return lambda *given, **_named: _computed(self, *given)

    def to(self, *where):
        return self if where[0] in (float16, float32, bfloat16) else Tensor(self.value, str(where[0]))

    def double(self):
        return self

    max = cpu = flatten = double

    def abs(self):
        return Tensor(abs(self.value), self.device)

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        return self.value != 0

    def __iter__(self):
        return iter([self])

    def __call__(self, *_given):
        return [_computed(self)]

    def __getitem__(self, _index):
        return self

    def __setitem__(self, _index, _value):
        pass

    def __sub__(self, other):
        return Tensor(self.value - other.value, self.device) if isinstance(other, Tensor) else Tensor(1.0, self.device)

    def __truediv__(self, other):
        return Tensor(self.value / other.value, self.device) if isinstance(other, Tensor) else Tensor(1.0, self.device)

    def __ne__(self, other):
        return Tensor(float(self.value != other), self.device)

    __hash__ = None

    def tolist(self):
        return [1.0] if sys.argv[-1] == "pow-f64" else [[1.0]]

    def chunk(self, count, **_named):
        return [self] * count

    def parameters(self):
        return [self] * 8

    def any(self):
        return self

    def _other(self, *given):
        return _computed(self, *given)

    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __pow__ = __neg__ = __matmul__ = __and__ = __ge__ = __lt__ = (
        _other
    )


def _computed(*given):
    cards = [one.device for one in given if isinstance(one, Tensor) and one.device != "cpu"]
    if not cards:
        return Tensor()
    fault = _faults.get(sys.argv[-1], _faults.get("*", ""))
    if fault in _ENDS:
        _ENDS[fault]()
    if fault == "elsewhere":
        return Tensor(1.0, "cpu")
    return Tensor({"shifted": 1.25, "zeros": 0.0, "nan": float("nan")}.get(fault, 1.0), cards[0])


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
    "slow": lambda: time.sleep(0.003),
}


class _Anything:
    """A module of torch, or a function in it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given, **_named):
        return _computed(*given)


class version:  # noqa: N801
    """What it was built for."""

    cuda, hip = ("12.8" if _built == "cuda" else None), ("6.3" if _built == "hip" else None)


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


cuda = _Cuda()


def manual_seed(_seed):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything()
