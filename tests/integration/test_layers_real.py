"""An app's own layers with the real torch: they work, and each fault that is put in is told, with a card and without.

`PATCHLOCK_TORCH` names a Python that has torch; the card is `benchmarks/pretended_card.py`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import kernel_faults
import pytest

from patchlock.core import process
from patchlock.model import kernel_results
from patchlock.model.backends import BACK_ENDS
from patchlock.model.kernel_results import KernelResult, Verdict
from patchlock.verify import _task_runner, proof
from patchlock.verify._task_runner import ProcessContext, Task

TORCH = os.environ.get("PATCHLOCK_TORCH", "")
pytestmark = [
    pytest.mark.skipif(not TORCH, reason="PATCHLOCK_TORCH names no Python with torch"),
    pytest.mark.skipif(sys.platform != "linux", reason="the card stands in a fork"),
]

APP = '''
import torch


class Voice(torch.nn.Module):
    """Noise, a convolution, and a transformer's layer, in the types that its author names."""

    def __init__(self):
        super().__init__()
        self.before = torch.nn.Conv1d(64, 96, 5, padding=2)
        self.layer = torch.nn.TransformerEncoderLayer(96, 4, 128, batch_first=True)
        self.after = torch.nn.Linear(96, 32)

    def forward(self, x):
        noise = torch.randn(x.shape[0], 64, x.shape[2], device=x.device, dtype=x.dtype)
        x = self.before(x + 0.1 * noise).transpose(1, 2)
        return self.after(self.layer(x)).float()
'''
PARTS = """
import torch
from patchlock_layers import Part
from the_app import Voice


def voice():
    return Part(Voice(), [torch.randn(2, 64, 50)], lambda model, x: model(x), [(2, 50, 32)], half="float16")


def misshapen():
    return Part(Voice(), [torch.randn(2, 64, 50)], lambda model, x: model(x), [(2, 50, 33)])


def left_behind():
    return Part(Voice(), [torch.randn(2, 64, 50)], lambda model, x: model(x).cpu(), [(2, 50, 32)])


def silent():
    return Part(Voice(), [torch.randn(2, 64, 50)], lambda model, x: model(x) * 0, [(2, 50, 32)])


def broken():
    return Part(Voice(), [torch.randn(2, 63, 50)], lambda model, x: model(x), [(2, 50, 32)])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment that has the real torch and the card."""
    return kernel_faults.environment(tmp_path_factory.mktemp("card") / "environment", Path(TORCH))


def computed(
    python: Path, folder: Path, device: str, part: str, fault: dict[str, object] | None = None
) -> KernelResult:
    """Compute a part of the app, as `verify` does."""
    (folder / "the_app.py").write_text(APP)
    (folder / "layers.py").write_text(PARTS)
    said = folder / "fault.json"
    said.write_text(json.dumps(fault or {}))
    variables = {**process.environment(), "PATCHLOCK_FAULT": str(said), "PATCHLOCK_CALLED": str(folder / "called")}
    place = ProcessContext(python=python, options=("-I", "-X", "utf8"), folder=folder, variables=variables)
    script = str(folder / "layers.py")
    task = Task(name=part, program="layers", arguments=(script, device, part), seconds=300, memory=4 << 30)
    with _task_runner.open_runner(place, "torch") as runner:
        (ended,) = proof._row(runner, [task], BACK_ENDS["cpu" if device == "cpu" else "cuda"])
    return kernel_results.classify_exit(ended, device)


@pytest.mark.parametrize(("device", "shown"), [("cpu", ""), ("cuda:0", "profiler")])
def test_a_part_works_where_nothing_is_wrong(python: Path, tmp_path: Path, device: str, shown: str) -> None:
    found = computed(python, tmp_path, device, "voice")
    assert (found.verdict, found.detail, found.shown) == (Verdict.WORKS, "", shown)
    assert found.error is not None
    assert 0 < found.error < 0.05


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"ops": ["conv1d"], "does": "silent"}, "falls back: its profiler saw"),
        ({"ops": ["linear"], "does": "silent", "when": "second call"}, "falls back: its profiler saw"),
        ({"ops": ["linear"], "does": "last number wrong"}, "wrong numbers: wrong by"),
        ({"ops": ["layer_norm"], "does": "not a number", "when": "second call"}, "wrong numbers: wrong by nan"),
        ({"ops": ["conv1d"], "does": "3 percent more", "when": "second call"}, "wrong numbers: wrong by"),
        ({"ops": ["conv1d"], "does": "noise", "when": "float16"}, "wrong numbers: wrong by"),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_a_mistake_of_a_card_is_told(python: Path, tmp_path: Path, fault: dict[str, object], said: str) -> None:
    found = computed(python, tmp_path, "cuda:0", "voice", fault)
    assert f"{found.verdict.value}: {found.detail}".startswith(said)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("misshapen", "raises: ValueError: it gives [(2, 50, 32)], and should give [(2, 50, 33)]"),
        ("left_behind", "falls back: its result is on cpu, not on cuda:0"),
        ("silent", "wrong numbers: all zeros"),
        ("broken", "raises: RuntimeError: "),
    ],
)
def test_a_part_that_does_something_else_is_told(python: Path, tmp_path: Path, part: str, said: str) -> None:
    found = computed(python, tmp_path, "cuda:0", part)
    assert f"{found.verdict.value}: {found.detail}".startswith(said)


WRONG_ON_THE_PROCESSOR = {
    "not a number": "made * torch.where(torch.arange(made.numel()).reshape(made.shape) == 7, float('nan'), 1.0)",
    "a little more": "made * 1.01",
}


@pytest.mark.parametrize("what", WRONG_ON_THE_PROCESSOR)
def test_wrong_numbers_of_the_processor_are_told(tmp_path: Path, what: str) -> None:
    """Only float32 is wrong, as in a library for a processor's instructions; the reference is computed in float64."""
    folder = tmp_path / "app"
    folder.mkdir()
    python = kernel_faults.environment(tmp_path / "environment", Path(TORCH))
    (packages,) = (tmp_path / "environment").glob("lib/*/site-packages")
    (packages / "pretended_card.py").write_text(
        "import torch\nreal = torch.nn.functional.linear\n"
        "def linear(x, *more):\n    made = real(x, *more)\n"
        f"    return {WRONG_ON_THE_PROCESSOR[what]} if made.dtype == torch.float32 else made\n"
        "torch.nn.functional.linear = linear\n"
    )
    found = computed(python, folder, "cpu", "voice")
    assert found.verdict is Verdict.WRONG, found


def test_what_raises_is_told_with_its_line(python: Path, tmp_path: Path) -> None:
    found = computed(python, tmp_path, "cpu", "broken")
    assert found.verdict is Verdict.RAISES
    assert found.detail.rstrip(")").rpartition(":")[2].isdigit()
    assert ".py:" in found.detail
    assert dataclasses.asdict(found)["error"] is None
