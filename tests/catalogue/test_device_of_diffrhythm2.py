"""The device that DiffRhythm 2 computes on: CUDA before DirectML before the processor, and a line that says why."""

from __future__ import annotations

import sys
import types

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.patches.ops._diffs import AddFile

PATCHES = {patch.id: patch for patch in Catalogue(root=ROOT).app("diffrhythm2").patches}


def _torch(*, card: str = "", cuda: str | None = None, hip: str | None = None) -> types.ModuleType:
    """A torch of a machine: which card it sees, and what it was built for."""
    torch = types.ModuleType("torch")
    torch.version = types.SimpleNamespace(cuda=cuda, hip=hip)
    torch.cuda = types.SimpleNamespace(is_available=lambda: bool(card), get_device_name=lambda _: card)
    torch.device = lambda name: name
    return torch


def _directml(card: str) -> types.ModuleType:
    """A torch-directml of a machine with this card, or with none."""
    directml = types.ModuleType("torch_directml")
    directml.is_available = lambda: bool(card)
    directml.device = lambda: "privateuseone:0"
    directml.default_device = lambda: 0
    directml.device_name = lambda _: card
    return directml


MACHINES = [
    pytest.param(_torch(card="RTX 4090", cuda="12.6"), _directml("Vega 8"), "cuda", "CUDA has RTX 4090", id="cuda-before-directml"),
    pytest.param(_torch(card="RX 9070 XT", hip="6.3"), None, "cuda", "ROCm has RX 9070 XT", id="rocm"),
    pytest.param(_torch(card="RX 9070 XT [ZLUDA]", cuda="11.8"), None, "cuda", "CUDA has RX 9070 XT [ZLUDA]", id="zluda"),
    pytest.param(_torch(), _directml("Vega 8"), "privateuseone:0", "this torch is built without CUDA and ROCm, DirectML has Vega 8", id="directml"),
    pytest.param(_torch(), _directml(""), "cpu", "this torch is built without CUDA and ROCm, and DirectML sees none either", id="directml-without-a-card"),
    pytest.param(_torch(cuda="12.6"), None, "cpu", "CUDA and ROCm see no card, and DirectML: import of torch_directml halted; None in sys.modules", id="cuda-without-a-card"),
]  # fmt: skip


@pytest.mark.parametrize(("torch", "directml", "device", "why"), MACHINES)
def test_best_device_is_chosen_and_said(
    torch: types.ModuleType,
    directml: types.ModuleType | None,
    device: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch_directml", directml)
    op = PATCHES["device-helper"].op
    assert isinstance(op, AddFile)
    helper: dict[str, object] = {"__name__": "compute_device"}
    exec(op.content, helper)
    assert helper["chosen"]() == device
    assert capsys.readouterr().err == f"device: {device} ({why})\n"


@pytest.mark.parametrize("patch", ["no-inference-mode-on-directml", "style-on-the-processor"])
def test_what_directml_lacks_is_patched_there_alone(patch: str) -> None:
    assert PATCHES[patch].profiles == ("directml-vega",)
