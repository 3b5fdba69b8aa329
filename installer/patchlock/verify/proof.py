"""Prove that the libraries of an environment compute on its device: present, loads, computes; each kernel contained."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchlock.catalogue import expectations
from patchlock.catalogue.expectations import ComparedResult, Expectation
from patchlock.core import atomic_files
from patchlock.hardware import probes
from patchlock.model import kernel_results
from patchlock.model.backends import (
    BACK_ENDS,
    BUILDS,
    INSTALL_KERNELS,
    ONNX_KERNELS,
    PROVIDER_MAKERS,
    TORCH,
    TORCH_KERNELS,
    BackEnd,
    providers,
)
from patchlock.model.checks import Check, LayersCheck, OnnxSessionCheck
from patchlock.model.errors import ProgramMissingError, UsageError
from patchlock.model.installation import Installation
from patchlock.model.kernel_results import KernelExit, KernelResult, Verdict
from patchlock.model.lockfile import Lock
from patchlock.verify import _supervisor, _task_runner, checks, reports
from patchlock.verify._task_runner import ProcessContext, Task, TaskRunner
from patchlock.verify.checks import CheckContext, CheckResult
from patchlock.verify.reports import Report

SECONDS = "PATCHLOCK_KERNEL_SECONDS"
"""The variable that says how long each kernel may take, instead of what its back end allows."""
_MEMORY = 4_000_000_000
"""Bytes for one kernel: thirty times what the largest takes on the CPU, and room for a GPU's context."""
_DEADLY = frozenset({Verdict.HANGS, Verdict.CRASHES, Verdict.OUT_OF_MEMORY})
_BUILD, _NOTHING = "torch-build", "kernels"
WRONG_LOCK = frozenset({_BUILD, _NOTHING})
"""Ids of results whose failure is mended by another lock, and not by installing the same one again."""
_PATIENCE = 2
"""After so many hangs on one device nothing more is tried on it."""
_INSTALL_SECONDS = 20
"""An install begins no further kernel after that: where each is compiled at its first use, one may take minutes."""
_PROFILER = "profiler"
"""What `compute` is asked for before the kernels, so that they can be shown to run on the device."""


@dataclass(frozen=True, kw_only=True)
class ProofPlan:
    """What has to be proved of an environment."""

    back_end: str
    """A key of `BACK_ENDS`."""
    has_torch: bool
    asked: tuple[OnnxSessionCheck, ...]
    """Execution providers of ONNX Runtime that the profile or the app names."""
    implied: tuple[OnnxSessionCheck, ...]
    """Those that what is installed is there for."""
    layers: tuple[LayersCheck, ...]
    """The app's own layers."""
    profile: str
    lock_command: str
    """Makes the lock again."""
    expectations: tuple[Expectation, ...] = ()
    is_short: bool = False
    """`INSTALL_KERNELS` alone, on the first device, as many as begin in time; no device is told, not failed."""


@dataclass(frozen=True, kw_only=True)
class ProofResult:
    """What was found."""

    results: tuple[CheckResult, ...]
    report: Report
    unverified: str = ""
    """What of the app itself nothing has shown, a clause; "" where it was started."""

    @property
    def computed(self) -> int:
        """How many kernels work where the profile computes: for a GPU's profile, those of the processor do not count.

        Without any, nothing may be called verified.
        """
        on_cpu = self.report.back_end == "cpu"
        return sum(
            one.proof.verdict is Verdict.WORKS and (on_cpu or not one.proof.device.upper().startswith("CPU"))
            for one in self.report.judged
        )

    @property
    def reservation(self) -> str:
        """Why the app may not be called verified, a clause; "" where it may."""
        told = [] if self.computed else ["not verified: no kernel was computed"]
        return "; ".join([*told, *([self.unverified] if self.unverified else [])])

    @property
    def caveat(self) -> str:
        """What stands behind a count of passed checks, so that nobody takes it for more than it is."""
        told = "" if self.computed else ", no kernel was computed"
        return told + (f"; {self.unverified}" if self.unverified else "")


def plan_proof(
    lock: Lock, every: Iterable[Check], back_end: str, known: Sequence[Expectation], *, is_short: bool
) -> ProofPlan:
    """Say what has to be proved: of the libraries that a lock has, and of providers and layers that checks name.

    Args:
        lock: what is installed.
        every: checks of the profile and the app.
        back_end: of the profile.
        known: expected failures.
        is_short: see `ProofPlan`.
    """
    names = {package.name for package in lock.packages}
    all_checks = tuple(every)
    asked = tuple(check for check in all_checks if isinstance(check, OnnxSessionCheck))
    named = {check.provider for check in asked}
    implied = [provider for provider in providers(names, back_end) if provider not in named]
    return ProofPlan(
        back_end=back_end,
        has_torch=TORCH in names,
        asked=asked,
        implied=tuple(OnnxSessionCheck(id=f"onnxruntime-{one}", provider=one) for one in implied),
        layers=tuple(check for check in all_checks if isinstance(check, LayersCheck)),
        profile=lock.provenance.profile,
        lock_command=f"patchlock lock {lock.provenance.app} --profile {lock.provenance.profile}",
        expectations=tuple(known),
        is_short=is_short,
    )


def prove(wanted: ProofPlan, place: CheckContext, tell: Callable[[str], None]) -> ProofResult:
    """Run what is wanted, each kernel in a process of its own.

    Args:
        wanted: what to prove.
        place: where.
        tell: called with a few words before each kernel.
    """
    run = _Run(wanted=wanted, where=checks.process_context(place), tell=tell)
    for name, part in (("torch", run.torch), ("onnxruntime", run.onnx)):
        try:
            part()
        except ProgramMissingError as error:  # the environment's own Python
            run.results.append(CheckResult(id=name, level="computes", passed=False, detail=error.what))
    report = Report(
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        back_end=wanted.back_end,
        versions=run.versions,
        devices=run.devices,
        judged=tuple(run.judged),
    )
    proved = ProofResult(results=tuple(run.results), report=report)
    if proved.computed or wanted.back_end == "cpu" or wanted.has_torch or not all(one.passed for one in run.results):
        return proved
    return dataclasses.replace(proved, results=(*proved.results, _nothing_computed(wanted)))


def _nothing_computed(wanted: ProofPlan) -> CheckResult:
    """Say that no library of the lock has computed on the GPU of the profile; an install leaves that to `verify`."""
    what = f"nothing was computed on {wanted.back_end}"
    if wanted.is_short:
        return CheckResult(id=_NOTHING, level="present", passed=True, detail=f"{what}; `patchlock verify` does that")
    why = f"{what}: the lock has neither torch nor an ONNX Runtime that can"
    remedy = f"let the app require one and run `{wanted.lock_command}`, or install it on the profile cpu"
    return CheckResult(id=_NOTHING, level="computes", passed=False, detail=f"{why}; {remedy}")


@dataclasses.dataclass(kw_only=True, slots=True)
class _Run:
    wanted: ProofPlan
    where: ProcessContext
    tell: Callable[[str], None]
    results: list[CheckResult] = dataclasses.field(default_factory=list)
    judged: list[ComparedResult] = dataclasses.field(default_factory=list)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    devices: dict[str, str] = dataclasses.field(default_factory=dict)
    archs: dict[str, str] = dataclasses.field(default_factory=dict)
    """Device → what its driver calls its architecture."""

    def torch(self) -> None:
        """Prove torch on each of its devices."""
        if not self.wanted.has_torch and not self._own("torch"):
            return
        back_end = self._back_end()
        self.results += _seen(self.wanted.back_end)
        with _task_runner.open_runner(self.where, "torch") as workshop:
            self.tell("torch's devices")
            ended = workshop.run(_task("compute", "devices", back_end.device, back_end.first_seconds))
            found, archs, why = _devices(ended)
            version = str((ended.found or {}).get("version", ""))
            if version:
                self.versions["torch"] = version
            built = (ended.found or {}).get("built", ())
            if version and back_end.built_for and back_end.built_for not in built:
                self.results.append(_wrong_build(self.wanted, back_end, version, built))
                return
            named = {_numbered(back_end, i): name for i, name in enumerate(found)}
            self.devices |= named
            self._loads(named, why, version)
            self.archs |= dict(zip(named, archs, strict=True))
            begun, computed = time.monotonic(), {}
            for device, arch in list(self.archs.items())[: 1 if self.wanted.is_short else None]:
                kernels = INSTALL_KERNELS if self.wanted.is_short else TORCH_KERNELS
                tasks = _tasks("compute", device, kernels, back_end)
                seconds = _INSTALL_SECONDS if self.wanted.is_short else None
                computed[device], _ = _run_all(_row(workshop, tasks, back_end), tasks, device, self.tell, seconds)
                made = self._judge(computed[device], version, arch)
                self.results.append(summary(f"torch-{device}", device, made, self.devices.get(device, "")))
            for check in self._own("torch") if version else ():
                is_on_it = bool(named) and self.wanted.profile not in check.on_the_processor
                device = next(iter(named)) if is_on_it else "cpu"
                left = max(0.0, _INSTALL_SECONDS - (time.monotonic() - begun)) if self.wanted.is_short else None
                made = self._layers(workshop, check, device, computed.get(device, ()), left)
                self.results.append(self._told(check, device, self.devices.get(device, ""), made))

    def _own(self, library: str) -> tuple[LayersCheck, ...]:
        """Give the app's own layers that a library computes; they fail where it is not installed."""
        return tuple(check for check in self.wanted.layers if check.library == library)

    def _layers(
        self,
        workshop: TaskRunner,
        check: LayersCheck,
        device: str,
        before: Sequence[KernelResult],
        seconds: float | None,
    ) -> tuple[ComparedResult, ...]:
        """Compute parts of the app's own models on a device, after the kernels there; an install may leave some out."""
        back_end, memory = self._back_end(), _supervisor.memory_limit(check.memory_gb)
        with tempfile.TemporaryDirectory(prefix="patchlock-layers-", ignore_cleanup_errors=True) as folder:
            script = Path(folder) / Path(check.module).name
            script.write_text(check.code, encoding="utf-8")
            tasks = [
                Task(
                    name=f"{check.id}: {part.name}",
                    program="layers",
                    arguments=(str(script), device, part.name),
                    seconds=check.timeout + (back_end.seconds if i else back_end.first_seconds),
                    memory=memory,
                )
                for i, part in enumerate(check.parts)
            ]
            row = _row(workshop, tasks, back_end) if _is_card(device) else workshop.run_row(tasks)
            found, version = _run_all(row, tasks, device, self.tell, seconds, before)
        known = [
            dataclasses.replace(one, kernel=f"{check.id}: {part.name}")
            for part in check.parts
            for one in self.wanted.expectations
            if one.kernel in part.needs and not device.upper().startswith("CPU")
        ]
        made = expectations.compare_results(found, known, version, self.archs.get(device, ""))
        self.judged += made
        return made

    def _told(self, check: LayersCheck, device: str, named: str, made: Sequence[ComparedResult]) -> CheckResult:
        found = summary(check.id, device, made, named, "parts of the app's own models")
        left = [part.name for part in check.parts[len(made) :]]
        later = f"; {', '.join(left)}: left to `patchlock verify`" if left else ""
        return dataclasses.replace(found, detail=f"{found.detail}{later}")

    def _loads(self, named: dict[str, str], why: str, version: str) -> None:
        is_told = self.wanted.is_short and bool(version) and not named
        told = f"torch {version or '?'} has no {self.wanted.back_end} device: {why}"
        if is_told:
            told += "; nothing was computed, and `patchlock verify` fails until there is one"
        names = ", ".join(f"{device} is {name}" if name != device else name for device, name in named.items())
        self.results.append(
            CheckResult(
                id="torch-devices",
                level="loads",
                passed=bool(named) or is_told,
                detail=f"torch {version}: {names}" if named else told,
            )
        )

    def onnx(self) -> None:
        """Prove each provider of ONNX Runtime."""
        wanted = [check for check in (*self.wanted.asked, *self.wanted.implied) if self._may_be_asked(check)]
        if not wanted and not self._own("onnxruntime"):
            return
        back_end = self._back_end()
        with _task_runner.open_runner(self.where, "onnxruntime") as workshop:
            for check in wanted:
                tasks = _tasks("onnx_session", check.provider, ONNX_KERNELS, back_end)
                found, version = _run_all(workshop.run_row(tasks), tasks, check.provider, self.tell)
                if version:
                    self.versions["onnxruntime"] = version
                made = self._judge(found, version)
                cards = _cards(check.provider) if any(one.proof.verdict is Verdict.WORKS for one in made) else ""
                if cards:
                    self.devices[check.provider] = cards
                named = ", ".join(filter(None, (f"ONNX Runtime {version}" if version else "", cards)))
                if self._has_no_device(check, made):
                    self.results.append(_no_device(check, made))
                else:
                    self.results.append(summary(check.id, check.provider, made, named))
            for one in self._own("onnxruntime"):
                self._sounds(workshop, one, wanted)

    def _sounds(self, workshop: TaskRunner, check: LayersCheck, sessions: Sequence[OnnxSessionCheck]) -> None:
        """Compute an app's own sessions where it has them: on a card's provider, if there is one to be asked."""
        is_off = self.wanted.profile in check.on_the_processor
        cards = [one for one in sessions if not one.provider.startswith("CPU") and not is_off]
        session = cards[0] if cards else OnnxSessionCheck(id=check.id, provider="CPUExecutionProvider")
        made = self._layers(workshop, check, session.provider, (), None)
        if self._has_no_device(session, made):
            self.results.append(_no_device(dataclasses.replace(session, id=check.id), made))
        else:
            self.results.append(self._told(check, session.provider, "", made))

    def _back_end(self) -> BackEnd:
        """Give the back end, with the patience that the user has."""
        back_end, named = BACK_ENDS[self.wanted.back_end], self.where.variables.get(SECONDS, "")
        if not named:
            return back_end
        if not (named.isascii() and named.isdigit() and int(named) > 0):
            raise UsageError(f'{SECONDS} is "{named}", and must be a number of seconds above 0')
        return dataclasses.replace(back_end, first_seconds=int(named), seconds=int(named))

    def _may_be_asked(self, check: OnnxSessionCheck) -> bool:
        """Whether a provider is proved: an install asks a GPU's beside torch only if it was named or torch saw one."""
        named = check in self.wanted.asked or check.provider.startswith("CPU")
        return not self.wanted.is_short or named or bool(self.devices) or not self.wanted.has_torch

    def _has_no_device(self, check: OnnxSessionCheck, made: Sequence[ComparedResult]) -> bool:
        """Tell whether an install finds a provider that nobody has named without a device; `verify` fails there."""
        is_implied = check not in self.wanted.asked and not check.provider.startswith("CPU")
        absent = {Verdict.UNAVAILABLE, Verdict.FALLS_BACK}
        return self.wanted.is_short and is_implied and all(one.proof.verdict in absent for one in made)

    def _judge(self, found: Iterable[KernelResult], version: str, arch: str = "") -> tuple[ComparedResult, ...]:
        made = expectations.compare_results(found, self.wanted.expectations, version, arch)
        self.judged += made
        return made


def _no_device(check: OnnxSessionCheck, made: Sequence[ComparedResult]) -> CheckResult:
    why = next((one.proof.detail for one in made if one.proof.detail), "it computes elsewhere")
    told = f"{check.provider} has no device here: {why}; nothing was computed"
    told += ", and `patchlock verify` fails until there is one"
    return CheckResult(id=check.id, level="loads", passed=True, detail=told)


def _wrong_build(wanted: ProofPlan, back_end: BackEnd, version: str, built: Collection[str]) -> CheckResult:
    """Say that the torch that is installed can never compute on the GPU of the profile."""
    is_for = " and ".join(BUILDS[name] for name in built) or "the CPU alone"
    needs = BUILDS[back_end.built_for]
    what = f"torch {version} is the wrong wheel: it is built for {is_for}, and the profile needs a torch for {needs}"
    remedy = f"name an index that has it in the profile, run `{wanted.lock_command}`, and install again"
    return CheckResult(id=_BUILD, level="loads", passed=False, detail=f"{what}; {remedy}")


def summary(id_: str, device: str, judged: Sequence[ComparedResult], named: str, what: str = "kernels") -> CheckResult:
    """Put what became of a device's kernels into one result: it fails where one does, or where none works.

    Args:
        id_: of the result.
        device: where they ran.
        judged: all of them.
        named: what is called so.
        what: was computed.
    """
    works = sum(one.proof.verdict is Verdict.WORKS for one in judged)
    failed = sorted((one.proof for one in judged if one.is_failure), key=lambda p: list(Verdict).index(p.verdict))
    told = [f"{p.kernel}: {p.verdict.value}{f' ({p.detail})' if p.detail else ''}" for p in reversed(failed)]
    expected = [one.proof.kernel for one in judged if one.proof.verdict is not Verdict.WORKS and not one.is_failure]
    known = [f"{', '.join(expected)} as expected not"] if expected else []
    beside = f" ({named})" if named and named != device else ""
    detail = "; ".join([f"{works} of {len(judged)} {what} work on {device}{beside}", *_shown(judged), *told, *known])
    return CheckResult(id=id_, level="computes", passed=not failed and works > 0, detail=detail)


def _shown(judged: Sequence[ComparedResult]) -> Iterator[str]:
    """Say what shows that kernels that work were computed on the device, where that is in question."""
    working = [one.proof for one in judged if one.proof.verdict is Verdict.WORKS]
    asked = [proof for proof in working if not proof.device.upper().startswith("CPU")]
    by = {proof.shown for proof in asked}
    if by == {"profiler"}:
        yield "its profiler saw each of them there"
    elif "allocator" in by:
        yield "their results lie in its memory, and no profiler of torch's sees where they were computed"
    elif "" in by:
        yield "nothing on it shows where they were computed"


def _seen(back_end: str) -> Iterator[CheckResult]:
    """Name the accelerators that the system shows, where it shows any."""
    found = [] if back_end == "cpu" else [device.name or device.device for device in probes.probe().devices]
    if found:
        yield CheckResult(id="devices", level="present", passed=True, detail=", ".join(found))


def _cards(provider: str) -> str:
    """Name the accelerators that a provider of ONNX Runtime may compute on: it does not say itself which it took."""
    maker = PROVIDER_MAKERS.get(provider, "")
    devices = [] if provider.startswith("CPU") else probes.probe().devices
    return ", ".join(one.name or one.device for one in devices if one.vendor == maker or not maker)


def _tasks(program: str, device: str, kernels: Sequence[str], back_end: BackEnd) -> list[Task]:
    return [
        _task(program, kernel, device, back_end.seconds if i else back_end.first_seconds)
        for i, kernel in enumerate(kernels)
    ]


def _task(program: str, name: str, device: str, seconds: float) -> Task:
    return Task(name=name, program=program, arguments=(device, name), seconds=seconds, memory=_MEMORY)


def _is_card(device: str) -> bool:
    """Whether torch computes on it, and not on the processor; a provider of ONNX Runtime is none of torch's."""
    return device.startswith(("cuda", "mps", "privateuseone", "xpu"))


def _row(workshop: TaskRunner, tasks: Sequence[Task], back_end: BackEnd) -> Generator[KernelExit]:
    """Run kernels in as few processes as they let it be, each with the profiler where it sees the device work."""
    if back_end.device != "cuda":  # the processor has nothing to show, and of the others torch's profiler is not asked
        yield from workshop.run_row(tasks)
        return
    left, shows = list(tasks), True
    while left:
        asks = dataclasses.replace(left[0], name=_PROFILER, arguments=(*left[0].arguments[:-1], _PROFILER))
        first = [asks] if shows else []
        with contextlib.closing(workshop.run_row([*first, *left])) as ends:
            if first:
                ended = next(ends)
                shows = ended.stage == "end" and bool((ended.found or {}).get("shows"))
            for ended in ends:
                left.pop(0)
                yield ended
                if ended.stage != "end":
                    break


def _run_all(
    ends: Generator[KernelExit],
    tasks: Iterable[Task],
    device: str,
    tell: Callable[[str], None],
    seconds: float | None = None,
    before: Sequence[KernelResult] = (),
) -> tuple[list[KernelResult], str]:
    """Run the kernels of one device, until there is no hope for it; gives the version of the library too.

    Args:
        ends: of the tasks, in their order; what runs them ends with it.
        tasks: one for each kernel.
        device: where they run.
        tell: called with a few words before each kernel.
        seconds: after which none is begun any more; None: all are.
        before: what was computed on that device already.
    """
    made: list[KernelResult] = []
    version = ""
    started = time.monotonic()
    with contextlib.closing(ends):
        for task in tasks:
            why = _hopeless([*before, *made])
            if why:
                made.append(
                    KernelResult(
                        kernel=task.name, device=device, verdict=Verdict.UNAVAILABLE, detail=f"not tried: {why}"
                    )
                )
                continue
            if seconds is not None and made and time.monotonic() - started > seconds:
                break
            tell(f"{task.name} on {device}")
            ended = next(ends)
            version = str((ended.found or {}).get("version", version))
            made.append(kernel_results.classify_exit(ended, device))
    return made, version


def _hopeless(made: Sequence[KernelResult]) -> str:
    """Say why nothing more is tried on a device; "" where there is hope."""
    if made and made[0].verdict in _DEADLY:
        return f"the first kernel, {made[0].kernel}: {made[0].verdict.value}"
    hung = [proof.kernel for proof in made if proof.verdict is Verdict.HANGS]
    return f"{' and '.join(hung)} hung" if len(hung) >= _PATIENCE else ""


def _devices(ended: KernelExit) -> tuple[list[str], list[str], str]:
    """Read the names of the devices, their architectures, and why there is none."""
    found = ended.found
    if ended.stage == "end" and not ended.killed and found is not None:
        devices = found["devices"]
        return [str(one["name"]) for one in devices], [str(one.get("arch", "")) for one in devices], str(found["why"])
    proof = kernel_results.classify_exit(ended, "")
    return [], [], f"{proof.verdict.value}: {proof.detail}"


def _numbered(back_end: BackEnd, index: int) -> str:
    return "cpu" if back_end.device == "cpu" else f"{back_end.device}:{index}"


def store_report(installation: Installation, report: Report) -> tuple[str, ...]:
    """Keep a report in the place of the last one, and say what differs from that.

    Returns:
        Sentences; see `verify.reports.compared`.
    """
    file = installation.report
    before: object = None
    if file.exists():
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
            said = reports.compared(before, report)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = (f"{file} cannot be compared with, and is rewritten: {error}",)
    else:
        said = ()
    atomic_files.atomic_write(file, json.dumps(reports.data(report), indent=1) + "\n")
    return said
