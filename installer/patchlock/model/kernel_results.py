"""What came of computing one kernel in a process of its own, as a closed set of outcomes; runs nothing."""

from __future__ import annotations

import enum
import math
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from patchlock.model.byte_sizes import size_text


class Verdict(enum.Enum):
    """What became of one kernel on one device. Only the first may be called working."""

    WORKS = "works"
    FALLS_BACK = "falls back"
    """It was computed elsewhere, and nothing failed."""
    UNAVAILABLE = "not available"
    """There is no such device, no such library, or it was not tried because of another kernel's end."""
    RAISES = "raises"
    OUT_OF_MEMORY = "out of memory"
    CRASHES = "crashes"
    """The process ended by a signal, an exception of Windows, or without an answer."""
    HANGS = "hangs"
    WRONG = "wrong numbers"
    """The worst: nothing says so."""


@dataclass(frozen=True, kw_only=True)
class KernelExit:
    """How the process of a kernel ended, as its parent saw it."""

    name: str
    """The kernel's."""
    code: int | None
    """As `subprocess` gives it: below 0 a signal (POSIX), otherwise what it ended with; None where it could not be
    waited for."""
    killed: Literal["", "time", "memory"] = ""
    """Which of our limits it was killed for."""
    limit: float = 0
    """Seconds, or bytes, of that limit."""
    stage: str = ""
    """What it had begun last; "" where it said nothing."""
    found: Mapping[str, Any] | None = None
    """What it measured."""
    raised: str = ""
    """The name of the exception that ended it."""
    message: str = ""
    """What the exception said."""
    log: tuple[str, ...] = ()
    """The last lines that were printed."""
    peak: int = 0
    """Bytes of memory that it had at most, as far as was seen."""


@dataclass(frozen=True, kw_only=True)
class KernelResult:
    """One kernel on one device."""

    kernel: str
    device: str
    """As its library calls it: `cuda:0`, `CPUExecutionProvider`."""
    verdict: Verdict
    detail: str
    """The evidence, one clause; "" where it works."""
    error: float | None = None
    """Largest difference, in parts of the largest exact value; None where there is none, or where it is no number."""
    ms: float | None = None
    """Milliseconds of one run, warmed up."""
    cpu_ms: float | None = None
    """The same on the CPU of this machine; None where that is the device, or where the CPU cannot."""
    first_ms: float | None = None
    """Milliseconds of the first run, with all that is compiled or searched then."""
    shown: Literal["", "profiler", "allocator", "node placement"] = ""
    """What shows that the device computed it: its profiler, or ONNX Runtime's own. Its allocator shows less: that the
    result lies there. On the CPU nothing has to."""

    @property
    def is_slower(self) -> bool:
        """Whether the CPU of this machine is faster than the device, by more than noise."""
        return self.ms is not None and self.cpu_ms is not None and self.ms > self.cpu_ms + _NOISE


_NOISE = 0.1
"""Milliseconds that make no difference."""
_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough (memory|space)|OutOfMemory|failed to allocate|bad_alloc"
    r"|E_OUTOFMEMORY|8007000E|MemoryError",
    re.IGNORECASE,
)
_FELL_BACK = re.compile(r"fall(s|ing)? ?back to (run on )?the CPU|will fall back to run on", re.IGNORECASE)
"""What torch-directml and MPS say when they have no such kernel. Source:
https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/mps/MPSFallback.mm"""
_WINDOWS = {
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC0000006: "STATUS_IN_PAGE_ERROR",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC0000094: "STATUS_INTEGER_DIVIDE_BY_ZERO",
    0xC00000FD: "STATUS_STACK_OVERFLOW",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000139: "STATUS_ENTRYPOINT_NOT_FOUND",
    0xC0000142: "STATUS_DLL_INIT_FAILED",
    0xC0000374: "STATUS_HEAP_CORRUPTION",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN, which abort() ends with",
    0x40000015: "STATUS_FATAL_APP_EXIT",
}
"""Source: https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55"""
_WINDOWS_MEMORY = {0xC0000017: "STATUS_NO_MEMORY", 0xC000012D: "STATUS_COMMITMENT_LIMIT"}


def classify_exit(ended: KernelExit, device: str) -> KernelResult:
    """Say what became of a kernel."""
    verdict, detail = _verdict(ended, device)
    found = ended.found or {}
    return KernelResult(
        kernel=ended.name,
        device=device,
        verdict=verdict,
        detail=" ".join(detail.split())[:400],
        error=_number(found.get("error")),
        ms=_number(found.get("ms")),
        cpu_ms=_number(found.get("cpu_ms")),
        first_ms=_number(found.get("first")),
        shown=found.get("shown", ""),
    )


def failure(ended: KernelExit) -> tuple[Verdict, str] | None:
    """Say how a program of an app failed, in a clause; None where it ended by itself with exit code 0."""
    last = f"; its last line is: {ended.log[-1]}" if ended.log else ""
    if ended.killed == "memory":
        return Verdict.OUT_OF_MEMORY, f"killed when it had more than {size_text(int(ended.limit))} of memory{last}"
    if ended.killed == "time":
        stuck = ", and does not die when it is killed: it is stuck in the driver" if ended.code is None else ""
        return Verdict.HANGS, f"no end within {ended.limit:g} seconds{stuck}{last}"
    if ended.code == 0:
        return None
    told = next((line for line in reversed(ended.log) if _MEMORY.search(line)), "")
    if told:
        return Verdict.OUT_OF_MEMORY, told
    if ended.code is not None and 0 < ended.code <= _LAST_EXIT_CODE:
        return Verdict.RAISES, f"{ended.name} failed with exit code {ended.code}{last}"
    return _crash(ended, f"while {ended.name} ran{last}")


_LAST_EXIT_CODE = 0xFFFF
"""What is above is a status of Windows."""


def _verdict(ended: KernelExit, device: str) -> tuple[Verdict, str]:
    last = f"; its last line is: {ended.log[-1]}" if ended.log else ""
    at = f"in the stage “{ended.stage}”" if ended.stage else "before it said anything"
    if ended.killed == "memory":
        return Verdict.OUT_OF_MEMORY, f"killed {at} when it had more than {size_text(int(ended.limit))} of memory"
    if ended.killed == "time":
        stuck = ", and does not die when it is killed: it is stuck in the driver" if ended.code is None else ""
        return Verdict.HANGS, f"no end within {ended.limit:g} seconds, {at}{stuck}{last}"
    if ended.raised:
        if ended.raised == "MemoryError" or _MEMORY.search(f"{ended.raised}: {ended.message}"):
            return Verdict.OUT_OF_MEMORY, f"{ended.raised}: {ended.message}"
        if ended.stage == "import":
            return Verdict.UNAVAILABLE, f"{ended.raised}: {ended.message}"
        return Verdict.RAISES, f"{ended.raised}: {ended.message}"
    if ended.stage != "end":
        return _crash(ended, f"{at}{last}")
    return _numbers(ended, device)


def _crash(ended: KernelExit, where: str) -> tuple[Verdict, str]:
    code = ended.code
    if code is None:
        return Verdict.CRASHES, f"nobody knows how it ended, {where}"
    if code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
        if name == "SIGKILL":
            return Verdict.OUT_OF_MEMORY, f"killed by SIGKILL, as the kernel does where memory is out, {where}"
        return Verdict.CRASHES, f"{name} {where}"
    status = code & 0xFFFFFFFF
    if status in _WINDOWS_MEMORY:
        return Verdict.OUT_OF_MEMORY, f"0x{status:08X} ({_WINDOWS_MEMORY[status]}) {where}"
    if status > _LAST_EXIT_CODE:
        return Verdict.CRASHES, f"0x{status:08X} ({_WINDOWS.get(status, 'a status of Windows')}) {where}"
    return Verdict.CRASHES, f"it ended with exit code {code} and no answer, {where}"


def _numbers(ended: KernelExit, device: str) -> tuple[Verdict, str]:
    found = ended.found or {}
    said = [str(line) for line in (*found.get("said", ()), *ended.log)]
    fell = next((line for line in said if _FELL_BACK.search(line)), "")
    error, tolerance = float(found.get("error", math.nan)), float(found.get("tolerance", 0))
    if found.get("zeros"):
        return Verdict.WRONG, "all zeros"
    if not error <= tolerance:
        case = f" ({found['case']})" if found.get("case") else ""
        return Verdict.WRONG, f"wrong by {error:.1e} of the largest value, {tolerance:g} is allowed{case}"
    if found.get("on") != found.get("wanted"):
        why = next((f": {line.partition(_NOT_LOADED)[2]}" for line in said if _NOT_LOADED in line), "")
        return Verdict.FALLS_BACK, f"its result is on {found.get('on') or 'nothing'}, not on {found.get('wanted')}{why}"
    if found.get("elsewhere"):
        return Verdict.FALLS_BACK, str(found["elsewhere"])
    if fell and device != "cpu":
        return Verdict.FALLS_BACK, fell
    return Verdict.WORKS, ""


_NOT_LOADED = " with error: "
"""What ONNX Runtime prints before the library that its provider lacks; source: its `provider_bridge_ort.cc`."""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
