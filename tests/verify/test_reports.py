"""Reports of what was proved: compared with an earlier one, as a table, and what makes one pass."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Generator

import pytest
from test_proofs import expectation, proof

from patchlock.catalogue import expectations
from patchlock.catalogue.expectations import ComparedResult, Expectation
from patchlock.cli import _verify
from patchlock.model.kernel_results import KernelExit, KernelResult, Verdict
from patchlock.verify import reports
from patchlock.verify._task_runner import Task
from patchlock.verify.proof import ProofResult, _run_all, summary
from patchlock.verify.reports import Report


def report(*proofs: KernelResult, known: tuple[Expectation, ...] = (), made: str = "2026-11-21T00:00:00Z") -> Report:
    return Report(
        made=made,
        machine="0123456789ab",
        back_end="cuda",
        versions={"torch": "2.13.0"},
        devices={"cuda:0": "A card"},
        judged=expectations.compare_results(proofs, known, "2.13.0"),
    )


def kept(*proofs: KernelResult) -> object:
    return json.loads(json.dumps(reports.data(report(*proofs, made="2026-01-02T00:00:00Z")), allow_nan=False))


WHEN = f"{datetime.datetime.fromisoformat('2026-01-02T00:00:00Z').astimezone():%Y-%m-%d at %H:%M}"
COMPARED = {
    "the same": (proof(ms=1.0), proof(ms=1.9), ()),
    "worse": (
        proof(),
        proof(verdict=Verdict.WRONG),
        (f"worse than on {WHEN}: stft on cuda:0: wrong numbers, and was: works",),
    ),
    "better": (
        proof(verdict=Verdict.HANGS),
        proof(),
        (f"better than on {WHEN}: stft on cuda:0: works, and was: hangs",),
    ),
    "slower": (
        proof(ms=2.0),
        proof(ms=5.0),
        (f"slower than on {WHEN}: stft on cuda:0: 5.00 ms, and was 2.00 ms: 2.5 times slower",),
    ),
    "faster": (
        proof(ms=5.0),
        proof(ms=2.0),
        (f"faster than on {WHEN}: stft on cuda:0: 2.00 ms, and was 5.00 ms: 2.5 times faster",),
    ),
    "noise": (proof(ms=0.01), proof(ms=0.2), ()),
    "another kernel": (proof(kernel="rfft"), proof(verdict=Verdict.WRONG), ()),
    "never timed": (proof(), proof(ms=1.0), ()),
}


@pytest.mark.parametrize(("before", "after", "told"), COMPARED.values(), ids=COMPARED)
def test_reports_are_compared(before: KernelResult, after: KernelResult, told: tuple[str, ...]) -> None:
    assert reports.compared(kept(before), report(after)) == told


@pytest.mark.parametrize("before", [None, [], {"format": 99}, {}], ids=str)
def test_what_is_no_report_is_not_compared(before: object) -> None:
    assert reports.compared(before, report(proof())) == ()


def test_a_report_of_another_machine_is_not_compared() -> None:
    other = dataclasses.replace(report(proof(verdict=Verdict.WRONG)), machine="another")
    assert reports.compared(kept(proof()), other) == ()


def test_an_unexpected_pass_is_told() -> None:
    notes = reports.notes(report(proof(), known=(expectation(Verdict.RAISES, Verdict.CRASHES),)))
    assert notes == ('stft on cuda:0 works now: drop the expectation of "raises" or "crashes"',)


def test_a_device_that_is_slower_than_the_cpu_is_told() -> None:
    notes = reports.notes(report(proof(ms=9.0, cpu_ms=3.0), proof("rfft", ms=1.0, cpu_ms=3.0), proof("bmm", ms=1.0)))
    assert notes == ("cuda:0 is slower than the CPU in 1 of 2 kernels: stft",)


def test_the_table_says_why_and_leaves_empty_columns_out() -> None:
    judged = (
        ComparedResult(proof=proof("mm-f32", error=3e-7, ms=0.5, cpu_ms=8.0), expectation=None),
        ComparedResult(
            proof=proof("stft", Verdict.CRASHES, detail="SIGABRT"), expectation=expectation(Verdict.CRASHES)
        ),
        ComparedResult(
            proof=proof("bmm", Verdict.WRONG, detail="all zeros", error=1.0, ms=4.0, cpu_ms=2.0), expectation=None
        ),
    )
    assert _verify.lines(judged) == (
        "kernel  device  outcome          error     time  on the CPU",
        "mm-f32  cuda:0  works          3.0e-07  0.50 ms     8.00 ms  16.0 times faster",
        "stft    cuda:0  crashes",
        "    SIGABRT",
        "    as expected: no complex numbers (https://a)",
        "bmm     cuda:0  WRONG NUMBERS  1.0e+00  4.00 ms     2.00 ms  2.0 times slower than the CPU",
        "    all zeros",
    )
    on_cpu = (ComparedResult(proof=proof("mm-f32", ms=0.5), expectation=None),)
    assert _verify.lines(on_cpu) == ("kernel  device  outcome     time", "mm-f32  cuda:0  works    0.50 ms")
    assert _verify.lines(on_cpu, devices=False) == ("kernel  outcome     time", "mm-f32  works    0.50 ms")
    assert _verify.lines(()) == ()


def test_the_worst_kernel_is_named_first() -> None:
    judged = expectations.compare_results(
        [
            proof("mm-f32", shown="profiler"),
            proof("rfft", Verdict.RAISES),
            proof("bmm", Verdict.WRONG, detail="all zeros"),
        ],
        [],
        "",
    )
    result = summary("torch-cuda:0", "cuda:0", judged, "A card")
    assert not result.passed
    shown = "1 of 3 kernels work on cuda:0 (A card); its profiler saw each of them there"
    assert result.detail == f"{shown}; bmm: wrong numbers (all zeros); rfft: raises"


SHOWN = {
    "by its profiler": (("profiler", "profiler"), "; its profiler saw each of them there"),
    "by its allocator": (
        ("allocator", "allocator"),
        "; their results lie in its memory, and no profiler of torch's sees where they were computed",
    ),
    "not of each": (
        ("profiler", "allocator"),
        "; their results lie in its memory, and no profiler of torch's sees where they were computed",
    ),
    "by nothing": (("", ""), "; nothing on it shows where they were computed"),
    "by nodes": (("node placement", "node placement"), ""),
}


@pytest.mark.parametrize(("by", "told"), SHOWN.values(), ids=SHOWN)
def test_what_shows_where_it_was_computed_is_told(by: tuple[str, str], told: str) -> None:
    judged = expectations.compare_results([proof(name, shown=one) for name, one in zip("ab", by, strict=True)], [], "")
    assert summary("torch-cuda:0", "cuda:0", judged, "").detail == f"2 of 2 kernels work on cuda:0{told}"


def test_the_processor_has_nothing_to_show() -> None:
    judged = expectations.compare_results([proof("mm-f32", device="cpu")], [], "")
    assert summary("torch-cpu", "cpu", judged, "").detail == "1 of 1 kernels work on cpu"


def test_a_device_on_which_nothing_works_does_not_pass_even_if_all_was_expected() -> None:
    judged = expectations.compare_results([proof(verdict=Verdict.CRASHES)], [expectation(Verdict.CRASHES)], "")
    result = summary("torch-cuda:0", "cuda:0", judged, "")
    assert (result.passed, result.detail) == (False, "0 of 1 kernels work on cuda:0; stft as expected not")


COMPUTED = {
    "card": ("cuda", [proof()], 1),
    "some": ("cuda", [proof(), proof("mm-f32"), proof("bmm", Verdict.RAISES)], 2),
    "nothing-ran": ("cuda", [], 0),
    "nothing-works": ("cuda", [proof(verdict=Verdict.FALLS_BACK)], 0),
    "processor-for-a-card": ("cuda", [proof(device="cpu"), proof("ort-conv", device="CPUExecutionProvider")], 0),
    "provider-of-a-card": ("directml", [proof("ort-conv", device="DmlExecutionProvider")], 1),
    "processor": ("cpu", [proof(device="cpu"), proof("ort-conv", device="CPUExecutionProvider")], 2),
    "nothing-ran-on-the-processor": ("cpu", [], 0),
}


@pytest.mark.parametrize(("back_end", "proofs", "count"), COMPUTED.values(), ids=COMPUTED)
def test_only_kernels_that_work_where_the_profile_computes_count(
    back_end: str, proofs: list[KernelResult], count: int
) -> None:
    proved = ProofResult(results=(), report=dataclasses.replace(report(*proofs), back_end=back_end))
    assert proved.computed == count
    assert proved.caveat == ("" if count else ", no kernel was computed")


FOUND = {"error": 0.0, "tolerance": 1.0, "on": "cuda:0", "wanted": "cuda:0", "version": "2.13.0"}


def test_an_install_begins_no_kernel_after_its_time_and_ends_what_runs() -> None:
    names, ended = ("mm-f32", "bmm", "stft"), []

    def row() -> Generator[KernelExit]:
        try:
            for name in names:
                yield KernelExit(name=name, code=0, stage="end", found=FOUND)
        finally:
            ended.append("row")

    tasks = [Task(name=name, program="compute", arguments=("cuda:0", name), seconds=1, memory=1) for name in names]
    begun: list[str] = []
    all_of_them, version = _run_all(row(), tasks, "cuda:0", begun.append)
    assert ([one.kernel for one in all_of_them], version) == (list(names), "2.13.0")
    begun.clear()
    in_no_time, _ = _run_all(row(), tasks, "cuda:0", begun.append, seconds=-1)
    assert [one.kernel for one in in_no_time] == ["mm-f32"]  # one is computed, however long it takes
    assert (begun, ended) == (["mm-f32 on cuda:0"], ["row", "row"])
