"""An app's own layers in the proof: where they are computed, what may be left out, and which failures are known."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from patchlock.catalogue.expectations import Expectation
from patchlock.model.backends import TORCH_KERNELS
from patchlock.model.checks import LayersCheck, LayersPart
from patchlock.model.kernel_results import KernelExit, Verdict
from patchlock.verify import _task_runner, proof
from patchlock.verify._task_runner import Task
from patchlock.verify.checks import CheckContext, CheckResult
from patchlock.verify.proof import ProofPlan

CHECK = LayersCheck(
    id="layers",
    module="layers.py",
    parts=(LayersPart(name="pitch", needs=("stft",)), LayersPart(name="voice")),
    timeout=5,
    code="def pitch(): ...\ndef voice(): ...\n",
)
KNOWN = Expectation(
    kernel="stft", outcomes=(Verdict.RAISES,), why="no complex numbers", source="s", versions=SpecifierSet()
)
PLAN = ProofPlan(
    back_end="cuda",
    has_torch=True,
    asked=(),
    implied=(),
    layers=(CHECK,),
    profile="card",
    lock_command="patchlock lock mini",
)
SOUND = {"error": 0.0, "tolerance": 1e-3, "zeros": False, "on": "cuda:0", "wanted": "cuda:0", "shown": "profiler"}


class Runner:
    """Says of each task what a test wants of it, and that all others go well."""

    def __init__(self, raising: Iterable[str], hanging: Iterable[str], cards: int) -> None:
        self.asked: list[Task] = []
        self.code: set[str] = set()
        self._raising, self._hanging, self._cards = set(raising), set(hanging), cards

    def run(self, task: Task) -> KernelExit:
        (ended,) = self.run_row([task])
        return ended

    def run_row(self, tasks: Iterable[Task]) -> Generator[KernelExit]:
        for task in tasks:
            self.asked.append(task)
            if task.program == "layers":
                self.code.add(Path(task.arguments[0]).read_text(encoding="utf-8"))
            device = task.arguments[-2]
            found = SOUND | {"version": "2.7.0", "shows": True, "on": device, "wanted": device}
            if "devices" in task.arguments:
                card = {"name": "A card", "arch": "sm_90"}
                found = {"version": "2.7.0", "built": ["cuda"], "devices": [card] * self._cards, "why": "none is there"}
            wrong = task.name in self._raising
            hung = task.name in self._hanging
            yield KernelExit(
                name=task.name,
                code=None if hung else 0,
                killed="time" if hung else "",
                limit=task.seconds,
                stage="compute" if wrong or hung else "end",
                found=None if wrong or hung else found,
                raised="RuntimeError" if wrong else "",
                message="no such kernel" if wrong else "",
                log=(),
                peak=0,
            )


def proved(
    monkeypatch: pytest.MonkeyPatch,
    plan: ProofPlan,
    raising: Iterable[str] = (),
    hanging: Iterable[str] = (),
    cards: int = 1,
) -> tuple[CheckResult, Runner]:
    """Give the result of the layers, and what was asked for."""
    runner = Runner(raising, hanging, cards)

    @contextlib.contextmanager
    def opened(*_given: object) -> Iterator[Runner]:
        yield runner

    monkeypatch.setattr(_task_runner, "open_runner", opened)
    place = CheckContext(environment=Path("/environment"), folder=Path("/app"), variables={})
    results = proof.prove(plan, place, lambda _words: None).results
    (found,) = [one for one in results if one.id == "layers"]
    return found, runner


def devices(runner: Runner) -> set[str]:
    return {task.arguments[1] for task in runner.asked if task.program == "layers"}


def test_layers_are_computed_on_the_first_device_after_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    found, runner = proved(monkeypatch, PLAN, cards=2)
    assert (found.level, found.passed) == ("computes", True)
    assert found.detail.startswith("2 of 2 parts of the app's own models work on cuda:0 (A card)")
    assert found.detail.endswith("its profiler saw each of them there")
    assert devices(runner) == {"cuda:0"}
    assert [task.name for task in runner.asked][-2:] == ["layers: pitch", "layers: voice"]
    assert runner.code == {CHECK.code}


def test_each_part_may_take_its_own_time_and_what_the_back_end_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    _, runner = proved(monkeypatch, PLAN)
    assert [task.seconds for task in runner.asked if task.program == "layers"][-2:] == [5 + 300, 5 + 120]


@pytest.mark.parametrize(
    ("plan", "cards"),
    [
        pytest.param(dataclasses.replace(PLAN, layers=(dataclasses.replace(CHECK, on_the_processor=("card",)),)), 1),
        pytest.param(dataclasses.replace(PLAN, back_end="cpu"), 1),
        pytest.param(PLAN, 0),
    ],
    ids=["the-app-takes-the-processor-there", "a-profile-of-the-processor", "no-card"],
)
def test_layers_are_computed_on_the_processor(monkeypatch: pytest.MonkeyPatch, plan: ProofPlan, cards: int) -> None:
    _, runner = proved(monkeypatch, plan, cards=cards)
    assert devices(runner) == {"cpu"}


def test_a_part_that_does_not_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = proved(monkeypatch, PLAN, raising=["layers: voice"])
    assert not found.passed
    assert "layers: voice: raises (RuntimeError: no such kernel)" in found.detail


@pytest.mark.parametrize(("part", "passes"), [("pitch", True), ("voice", False)])
def test_a_known_failure_of_a_kernel_is_one_of_the_parts_that_need_it(
    monkeypatch: pytest.MonkeyPatch, part: str, passes: bool
) -> None:
    plan = dataclasses.replace(PLAN, expectations=(KNOWN,))
    found, _ = proved(monkeypatch, plan, raising=["stft", f"layers: {part}"])
    assert found.passed is passes


def test_what_is_known_of_a_card_is_not_expected_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    on_processor = dataclasses.replace(CHECK, on_the_processor=("card",))
    plan = dataclasses.replace(PLAN, expectations=(KNOWN,), layers=(on_processor,))
    found, _ = proved(monkeypatch, plan, raising=["layers: pitch"])
    assert not found.passed


def test_an_install_leaves_to_verify_what_it_has_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_INSTALL_SECONDS", -1)
    found, runner = proved(monkeypatch, dataclasses.replace(PLAN, is_short=True))
    assert found.passed
    assert found.detail.endswith("; voice: left to `patchlock verify`")
    assert runner.asked[-1].name == "layers: pitch"


def test_nothing_is_tried_on_a_device_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    found, runner = proved(monkeypatch, PLAN, hanging=TORCH_KERNELS[:2])
    assert not found.passed
    assert "not tried" in found.detail
    assert not any(task.name.startswith("layers: ") for task in runner.asked)


def test_layers_of_torch_fail_where_the_lock_has_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = dataclasses.replace(PLAN, has_torch=False)
    found, _ = proved(monkeypatch, plan, raising=["layers: pitch", "layers: voice"])
    assert not found.passed


def test_layers_of_onnx_runtime_are_asked_of_the_cards_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    session = proof.OnnxSessionCheck(id="onnxruntime-CUDAExecutionProvider", provider="CUDAExecutionProvider")
    layers = (dataclasses.replace(CHECK, library="onnxruntime"),)
    plan = dataclasses.replace(PLAN, has_torch=False, implied=(session,), layers=layers)
    found, runner = proved(monkeypatch, plan)
    assert found.passed
    assert devices(runner) == {"CUDAExecutionProvider"}
