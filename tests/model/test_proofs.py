"""What the end of a kernel's process means, what was expected, what a report tells, and what it is compared with."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from packaging.utils import canonicalize_name

from patchlock.catalogue import expectations
from patchlock.catalogue.expectations import Expectation
from patchlock.catalogue.reader import Catalogue
from patchlock.catalogue.table_reader import Report as Mistakes
from patchlock.catalogue.table_reader import Table
from patchlock.model import backends
from patchlock.model.kernel_results import KernelExit, KernelResult, Verdict, classify_exit, failure
from patchlock.verify._children.patchlock_kernels import KERNELS

FOUND = {
    "error": 1e-7,
    "tolerance": 1e-3,
    "zeros": False,
    "on": "cuda:0",
    "wanted": "cuda:0",
    "said": [],
    "ms": 0.5,
    "cpu_ms": 2.0,
    "first": 30.0,
}
GOOD = KernelExit(name="stft", code=0, stage="end", found=FOUND)

ENDS: dict[str, tuple[dict[str, Any], Verdict, str]] = {
    "good": ({}, Verdict.WORKS, ""),
    "exactly at the tolerance": ({"found": FOUND | {"error": 1e-3}}, Verdict.WORKS, ""),
    "wrong": (
        {"found": FOUND | {"error": 0.25}},
        Verdict.WRONG,
        "wrong by 2.5e-01 of the largest value, 0.001 is allowed",
    ),
    "not a number": (
        {"found": FOUND | {"error": math.nan}},
        Verdict.WRONG,
        "wrong by nan of the largest value, 0.001 is allowed",
    ),
    "all zeros": ({"found": FOUND | {"zeros": True, "error": 0.0}}, Verdict.WRONG, "all zeros"),
    "wrong and elsewhere": (
        {"found": FOUND | {"error": 1.0, "on": "cpu"}},
        Verdict.WRONG,
        "wrong by 1.0e+00 of the largest value, 0.001 is allowed",
    ),
    "elsewhere": ({"found": FOUND | {"on": "cpu"}}, Verdict.FALLS_BACK, "its result is on cpu, not on cuda:0"),
    "without a library": (
        {
            "found": FOUND | {"on": "CPUExecutionProvider"},
            "log": ("E: Failed to load library x.so with error: libcublasLt.so.12: cannot open it",),
        },
        Verdict.FALLS_BACK,
        "its result is on CPUExecutionProvider, not on cuda:0: libcublasLt.so.12: cannot open it",
    ),
    "nowhere": ({"found": FOUND | {"on": ""}}, Verdict.FALLS_BACK, "its result is on nothing, not on cuda:0"),
    "wrong in one case": (
        {"found": FOUND | {"error": 0.25, "case": "9 apart"}},
        Verdict.WRONG,
        "wrong by 2.5e-01 of the largest value, 0.001 is allowed (9 apart)",
    ),
    "computed elsewhere and copied back": (
        {"found": FOUND | {"elsewhere": "its profiler saw no work of the device"}},
        Verdict.FALLS_BACK,
        "its profiler saw no work of the device",
    ),
    "said in a warning": (
        {"found": FOUND | {"said": ["x will fall back to run on the CPU"]}},
        Verdict.FALLS_BACK,
        "x will fall back to run on the CPU",
    ),
    "said in the log": (
        {"log": ("UserWarning: aten::x falls back to the CPU",)},
        Verdict.FALLS_BACK,
        "UserWarning: aten::x falls back to the CPU",
    ),
    "raised": (
        {
            "stage": "compute",
            "found": None,
            "raised": "RuntimeError",
            "message": "CUDA error: no kernel image\n\nCompile",
        },
        Verdict.RAISES,
        "RuntimeError: CUDA error: no kernel image Compile",
    ),
    "cannot be imported": (
        {"stage": "import", "found": None, "raised": "ImportError", "message": "libcudart.so.12"},
        Verdict.UNAVAILABLE,
        "ImportError: libcudart.so.12",
    ),
    "torch's own word for memory": (
        {"stage": "compute", "found": None, "raised": "OutOfMemoryError", "message": "HIP out of memory."},
        Verdict.OUT_OF_MEMORY,
        "OutOfMemoryError: HIP out of memory.",
    ),
    "the allocator's words": (
        {
            "stage": "inputs",
            "found": None,
            "raised": "RuntimeError",
            "message": "DefaultCPUAllocator: can't allocate memory",
        },
        Verdict.OUT_OF_MEMORY,
        "RuntimeError: DefaultCPUAllocator: can't allocate memory",
    ),
    "python's": ({"stage": "inputs", "raised": "MemoryError"}, Verdict.OUT_OF_MEMORY, "MemoryError:"),
    "our limit of memory": (
        {"stage": "compute", "killed": "memory", "limit": 4e9, "code": -9},
        Verdict.OUT_OF_MEMORY,
        "killed in the stage “compute” when it had more than 3.7 GiB of memory",
    ),
    "the kernel's memory killer": (
        {"stage": "compute", "code": -signal.SIGKILL},
        Verdict.OUT_OF_MEMORY,
        "killed by SIGKILL, as the kernel does where memory is out, in the stage “compute”",
    ),
    "our limit of time": (
        {"stage": "device", "killed": "time", "limit": 120, "code": -9, "log": ("Compiling",)},
        Verdict.HANGS,
        "no end within 120 seconds, in the stage “device”; its last line is: Compiling",
    ),
    "cannot even be killed": (
        {"stage": "compute", "killed": "time", "limit": 120, "code": None},
        Verdict.HANGS,
        "no end within 120 seconds, in the stage “compute”, and does not die when it is killed: it is stuck in the driver",
    ),
    "segmentation fault": (
        {"stage": "compute", "code": -signal.SIGSEGV},
        Verdict.CRASHES,
        "SIGSEGV in the stage “compute”",
    ),
    "abort": (
        {"stage": "compute", "code": -signal.SIGABRT, "log": ("dml_util.cc:118 Invalid data type ComplexFloat",)},
        Verdict.CRASHES,
        "SIGABRT in the stage “compute”; its last line is: dml_util.cc:118 Invalid data type ComplexFloat",
    ),
    "crash after a good result": (
        {"stage": "time", "code": -signal.SIGSEGV},
        Verdict.CRASHES,
        "SIGSEGV in the stage “time”",
    ),
    "access violation": (
        {"stage": "compute", "code": 0xC0000005},
        Verdict.CRASHES,
        "0xC0000005 (STATUS_ACCESS_VIOLATION) in the stage “compute”",
    ),
    "access violation before the first word": (
        {"stage": "", "code": 0xC0000005},
        Verdict.CRASHES,
        "0xC0000005 (STATUS_ACCESS_VIOLATION) before it said anything",
    ),
    "abort() of Windows": (
        {"stage": "compute", "code": 0xC0000409},
        Verdict.CRASHES,
        "0xC0000409 (STATUS_STACK_BUFFER_OVERRUN, which abort() ends with) in the stage “compute”",
    ),
    "no memory on Windows": (
        {"stage": "compute", "code": 0xC0000017},
        Verdict.OUT_OF_MEMORY,
        "0xC0000017 (STATUS_NO_MEMORY) in the stage “compute”",
    ),
    "exit without an answer": (
        {"stage": "compute", "code": 3},
        Verdict.CRASHES,
        "it ended with exit code 3 and no answer, in the stage “compute”",
    ),
    "exit code 0 without an answer": (
        {"stage": "compute", "code": 0},
        Verdict.CRASHES,
        "it ended with exit code 0 and no answer, in the stage “compute”",
    ),
}


@pytest.mark.parametrize(("changes", "verdict", "detail"), ENDS.values(), ids=ENDS)
def test_the_end_of_a_process_is_called_what_it_is(changes: dict[str, Any], verdict: Verdict, detail: str) -> None:
    proof = classify_exit(dataclasses.replace(GOOD, **changes), "cuda:0")
    assert (proof.verdict, proof.detail) == (verdict, detail)


def test_only_a_good_result_is_called_working() -> None:
    working = [name for name, (_, verdict, _) in ENDS.items() if verdict is Verdict.WORKS]
    assert working == ["good", "exactly at the tolerance"]


def test_an_endless_message_is_cut() -> None:
    ended = dataclasses.replace(GOOD, stage="compute", raised="RuntimeError", message="x" * 100_000)
    assert len(classify_exit(ended, "cuda:0").detail) == 400


def test_no_number_of_a_proof_breaks_json() -> None:
    found = FOUND | {"error": math.nan, "ms": math.inf, "cpu_ms": None}
    proof = classify_exit(dataclasses.replace(GOOD, found=found), "cuda:0")
    json.dumps(dataclasses.asdict(dataclasses.replace(proof, verdict=Verdict.WRONG)) | {"verdict": ""}, allow_nan=False)
    assert (proof.error, proof.ms, proof.cpu_ms, proof.first_ms) == (None, None, None, 30.0)


# --- what is expected -------------------------------------------------------------------------------------------------


def proof(kernel: str = "stft", verdict: Verdict = Verdict.WORKS, **more: Any) -> KernelResult:
    return KernelResult(kernel=kernel, verdict=verdict, **{"device": "cuda:0", "detail": "", **more})


def expectation(*outcomes: Verdict, **more: Any) -> Expectation:
    return Expectation(
        **{"kernel": "stft", "outcomes": outcomes, "why": "no complex numbers", "source": "https://a", **more}
    )


KNOWN = {
    "works, as it should": (Verdict.WORKS, None, False, False),
    "fails, and should not": (Verdict.RAISES, None, True, False),
    "fails as expected": (Verdict.RAISES, expectation(Verdict.RAISES, Verdict.CRASHES), False, False),
    "fails otherwise than expected": (Verdict.HANGS, expectation(Verdict.RAISES), True, False),
    "wrong numbers where an error was expected": (Verdict.WRONG, expectation(Verdict.RAISES), True, False),
    "works, and should not": (Verdict.WORKS, expectation(Verdict.RAISES), False, True),
    "not available": (Verdict.UNAVAILABLE, None, True, False),
    "falls back": (Verdict.FALLS_BACK, None, True, False),
}


@pytest.mark.parametrize(("verdict", "known", "is_failure", "is_better"), KNOWN.values(), ids=KNOWN)
def test_a_failure_is_what_was_not_expected(
    verdict: Verdict, known: Expectation | None, is_failure: bool, is_better: bool
) -> None:
    (one,) = expectations.compare_results([proof(verdict=verdict)], [known] if known else [], "2.4.1")
    assert (one.is_failure, one.is_better) == (is_failure, is_better)


@pytest.mark.parametrize(
    ("version", "concerns"),
    [("2.1.2+cpu", True), ("2.2.0", False), ("2.13.0+cpu", False), ("", True), ("a build of mine", True)],
)
def test_an_expectation_may_be_of_some_versions(version: str, concerns: bool) -> None:
    from packaging.specifiers import SpecifierSet

    known = expectation(Verdict.RAISES, versions=SpecifierSet("<2.2"))
    (one,) = expectations.compare_results([proof(verdict=Verdict.RAISES)], [known], version)
    assert one.is_failure is not concerns


@pytest.mark.parametrize(
    ("arch", "verdict", "is_failure"),
    [
        ("gfx1201", Verdict.WRONG, False),
        ("gfx1201:sramecc-", Verdict.WRONG, False),
        ("gfx1201", Verdict.RAISES, True),
        ("gfx1100", Verdict.WRONG, True),
        ("", Verdict.WRONG, True),
    ],
)
def test_an_expectation_may_be_of_some_architectures(arch: str, verdict: Verdict, is_failure: bool) -> None:
    known = expectation(Verdict.WRONG, archs=("gfx1201",))
    (one,) = expectations.compare_results([proof(verdict=verdict)], [known], "2.9.1", arch)
    assert one.is_failure is is_failure


def test_of_two_expectations_the_one_counts_that_a_failure_is_known_by() -> None:
    known = [expectation(Verdict.RAISES), expectation(Verdict.WRONG, archs=("gfx1201",))]
    for verdict in (Verdict.RAISES, Verdict.WRONG):
        (one,) = expectations.compare_results([proof(verdict=verdict)], known, "2.9.1", "gfx1201")
        assert (one.is_failure, one.expectation and one.expectation.outcomes) == (False, (verdict,))


def read(text: str) -> tuple[tuple[Expectation, ...], list[str]]:
    report = Mistakes(file="x.toml", text=text)
    found = expectations.expectations(Table(tomllib.loads(text), report))
    return found, [f"{one.key}: {one.what}; {one.remedy}" for one in report.problems]


ROW = '[[expect]]\nkernel = "stft"\noutcomes = ["crashes"]\nwhy = "a"\nsource = "https://a"\n'
MISTAKES = {
    "unknown kernel": (ROW.replace("stft", "sfft"), 'there is no kernel "sfft"; did you mean "fft"?'),
    "unknown outcome": (
        ROW.replace("crashes", "crash"),
        'no outcome "crash" that is a failure; did you mean "crashes"?',
    ),
    "working is not a failure": (ROW.replace("crashes", "works"), 'there is no outcome "works" that is a failure'),
    "no outcome": (ROW.replace('"crashes"', ""), "outcomes: it is empty"),
    "twice": (ROW + ROW, '"stft" is expected twice'),
    "no source": (ROW.replace('source = "https://a"\n', ""), "source"),
    "unknown key": (ROW + 'reason = "b"\n', "reason"),
}


@pytest.mark.parametrize(("text", "told"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_in_expectations_are_told(text: str, told: str) -> None:
    assert told in "\n".join(read(text)[1])


def test_expectations_are_read() -> None:
    (one,), mistakes = read(ROW + 'versions = "<2.2"\n')
    assert mistakes == []
    assert (one.kernel, one.outcomes, one.why, one.source) == ("stft", (Verdict.CRASHES,), "a", "https://a")


def test_every_file_of_expectations_is_of_a_back_end_and_has_sources() -> None:
    for path in (ROOT / "profiles" / "expectations").glob("*.toml"):
        assert path.stem in backends.BACK_ENDS
        found = Catalogue(root=ROOT).expectations(path.stem)
        assert found or path.stem == "cuda"
        assert all(one.source.startswith("https://") for one in found)


def test_a_back_end_without_a_file_expects_nothing(tmp_path: Path) -> None:
    assert Catalogue(root=tmp_path).expectations("cuda") == ()


def test_many_sequences_may_go_wrong_on_gfx1201_alone() -> None:
    wrong = KernelResult(kernel="lstm-many", device="cuda:0", verdict=Verdict.WRONG, detail="wrong by 2.0e-01")
    known = Catalogue(root=ROOT).expectations("rocm")
    told = {
        arch: expectations.compare_results([wrong], known, "2.7.1+rocm6.3", arch)[0].is_failure
        for arch in ("gfx1201", "gfx1100")
    }
    assert told == {"gfx1201": False, "gfx1100": True}


def test_an_lstm_may_raise_with_rocm_6_and_not_with_rocm_7() -> None:
    raised = KernelResult(kernel="lstm", device="cuda:0", verdict=Verdict.RAISES, detail="miopenStatusUnknownError")
    known = Catalogue(root=ROOT).expectations("rocm")
    told = {
        version: expectations.compare_results([raised], known, version)[0].is_failure
        for version in ("2.7.1+rocm6.3", "2.9.1+rocm7.2.1")
    }
    assert told == {"2.7.1+rocm6.3": False, "2.9.1+rocm7.2.1": True}


# --- kernels and back ends ---------------------------------------------------------------------------------------------


def models_of(program: str, name: str) -> tuple[str, ...]:
    tree = ast.parse((ROOT / "installer/patchlock/verify/_children" / f"{program}.py").read_text())
    tables = [n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == name]
    return tuple(ast.literal_eval(key) for key in tables[0].keys)  # type: ignore[union-attr]


def test_the_programs_have_the_kernels_that_are_asked_for() -> None:
    assert tuple(KERNELS) == backends.TORCH_KERNELS
    assert models_of("onnx_session", "MODELS") == backends.ONNX_KERNELS


def test_every_case_of_a_kernel_has_a_name_of_its_own() -> None:
    names = {kernel: [case.name for case in cases] for kernel, cases in KERNELS.items()}
    assert {kernel: own for kernel, own in names.items() if len(set(own)) < len(own) or not own} == {}


def test_an_install_asks_for_what_verify_asks_for_too_and_first_for_the_most_telling() -> None:
    assert set(backends.INSTALL_KERNELS) < set(backends.TORCH_KERNELS)
    assert backends.INSTALL_KERNELS[0] == backends.TORCH_KERNELS[0]


@pytest.mark.parametrize(
    ("names", "back_end", "wanted"),
    [
        (("torch",), "cuda", ()),
        (("onnxruntime",), "cuda", ("CPUExecutionProvider",)),
        (("onnxruntime-gpu",), "cuda", ("CUDAExecutionProvider",)),
        (("onnxruntime-gpu",), "cpu", ("CPUExecutionProvider",)),
        (("onnxruntime-directml",), "directml", ("DmlExecutionProvider",)),
        (("onnxruntime", "onnxruntime-gpu"), "cuda", ("CPUExecutionProvider", "CUDAExecutionProvider")),
    ],
)
def test_a_distribution_of_onnx_runtime_names_its_provider(
    names: tuple[str, ...], back_end: str, wanted: tuple[str, ...]
) -> None:
    assert backends.providers({canonicalize_name(name) for name in names}, back_end) == wanted


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param({"code": 0, "log": ("out of memory",)}, None, id="good"),
        pytest.param({"code": 1}, (Verdict.RAISES, "app failed with exit code 1"), id="fails"),
        pytest.param(
            {"code": 3, "log": ("a", "b")},
            (Verdict.RAISES, "app failed with exit code 3; its last line is: b"),
            id="says",
        ),
        pytest.param({"code": 1, "log": ("bad_alloc", "b")}, (Verdict.OUT_OF_MEMORY, "bad_alloc"), id="memory"),
        pytest.param(
            {"code": -9, "killed": "memory", "limit": 2e9},
            (Verdict.OUT_OF_MEMORY, "killed when it had more than 1.9 GiB of memory"),
            id="our-limit",
        ),
        pytest.param(
            {"code": -9, "killed": "time", "limit": 60}, (Verdict.HANGS, "no end within 60 seconds"), id="endless"
        ),
        pytest.param(
            {"code": None, "killed": "time", "limit": 60},
            (
                Verdict.HANGS,
                "no end within 60 seconds, and does not die when it is killed: it is stuck in the driver",
            ),
            id="stuck",
        ),
    ],
)
def test_how_a_program_of_an_app_failed(ended: dict[str, Any], expected: tuple[Verdict, str] | None) -> None:
    assert failure(KernelExit(name="app", **ended)) == expected
