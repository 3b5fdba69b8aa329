"""The file that says which device computes: CUDA before DirectML before the CPU, and none that does not start."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import PurePosixPath

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.patches.ops._diffs import AddFile
from patchlock.patches.postconditions._device import WithoutCuda

CATALOGUE = Catalogue(root=ROOT)
PATCHES = {patch.id: patch for patch in CATALOGUE.app("diffrhythm2").patches}


class _Ones:
    """Two ones on a device."""

    def __init__(self, total: float) -> None:
        self.total = total

    def sum(self) -> _Ones:
        return self

    def item(self) -> float:
        return self.total


def _raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def _torch(
    *,
    card: str = "",
    cuda: str | None = None,
    hip: str | None = None,
    metal: bool = False,
    broken: Exception | float = 2.0,
) -> types.ModuleType:
    """A torch of a machine: which card it sees, what it was built for, and what one and one are there."""
    torch = types.ModuleType("torch")
    torch.version = types.SimpleNamespace(cuda=cuda, hip=hip)
    torch.cuda = types.SimpleNamespace(is_available=lambda: bool(card), get_device_name=lambda name: card)  # noqa: ARG005
    torch.backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: metal))
    torch.device = lambda name: name
    torch.ones = (
        _raising(broken) if isinstance(broken, Exception) else lambda count, device: _Ones(broken)  # noqa: ARG005
    )
    return torch


def _directml(*cards: str, available: Exception | None = None, device: Exception | None = None) -> types.ModuleType:
    """A torch-directml of a machine with these cards, or what it raises instead of an answer."""
    directml = types.ModuleType("torch_directml")
    directml.is_available = _raising(available) if available else lambda: bool(cards)
    directml.device = _raising(device) if device else lambda index: f"privateuseone:{index}"
    directml.default_device = lambda: 0
    directml.device_name = lambda index: cards[index]
    return directml


def _intels(*cards: str, broken: Exception | float = 2.0) -> types.ModuleType:
    """A torch for Intel's GPUs, on a machine with these."""
    torch = _torch(broken=broken)
    torch.version.xpu = "20250101"
    torch.xpu = types.SimpleNamespace(is_available=lambda: bool(cards), get_device_name=lambda: cards[0])
    return torch


NO_CUDA = "this torch is built without CUDA and ROCm"
HALTED = "DirectML: import of torch_directml halted; None in sys.modules"
KERNEL = RuntimeError("HIP error: invalid device function\nHIP kernel errors might be asynchronously reported")
LOST = RuntimeError("Could not create a D3D12 device: 0x887A0005")
MACHINES = [
    pytest.param(_torch(card="RTX 4090", cuda="12.6"), _directml("Vega 8"), "", "cuda", "CUDA has RTX 4090", id="cuda-before-directml"),
    pytest.param(_torch(card="RX 9070 XT", hip="6.3"), None, "", "cuda", "ROCm has RX 9070 XT", id="rocm"),
    pytest.param(_torch(card="RX 9070 XT [ZLUDA]", cuda="11.8"), None, "", "cuda", "CUDA has RX 9070 XT [ZLUDA]", id="zluda"),
    pytest.param(_torch(), _directml("Vega 8"), "", "privateuseone:0", f"{NO_CUDA}, DirectML has Vega 8", id="directml"),
    pytest.param(_torch(), _directml("Vega 8", "RX 580"), "1", "privateuseone:1", f"{NO_CUDA}, DirectML has RX 580", id="second-card"),
    pytest.param(_torch(card="RTX 4090", cuda="12.6"), _directml("Vega 8"), "cpu", "cpu", "PATCHLOCK_DEVICE says so", id="forced-to-the-processor"),
    pytest.param(_torch(), _directml(), "", "cpu", f"{NO_CUDA}, and DirectML sees no card", id="directml-without-a-card"),
    pytest.param(_torch(cuda="12.6"), None, "", "cpu", f"CUDA sees no card, and {HALTED}", id="cuda-without-a-card"),
    pytest.param(_torch(card="RX 6600", hip="6.3", broken=KERNEL), None, "", "cpu", f"ROCm does not start: HIP error: invalid device function, and {HALTED}", id="rocm-without-code"),
    pytest.param(_torch(card="GT 710", cuda="12.6", broken=AssertionError()), None, "", "cpu", f"CUDA does not start: AssertionError, and {HALTED}", id="cuda-says-nothing"),
    pytest.param(_torch(card="RX 9070 XT [ZLUDA]", cuda="11.8", broken=0.0), None, "", "cpu", f"CUDA does not start: one and one are not two there, and {HALTED}", id="wrong-sum"),
    pytest.param(_torch(), _directml("Vega 8", available=LOST), "", "cpu", f"{NO_CUDA}, and DirectML does not start: {LOST}", id="is-available-raises"),
    pytest.param(_torch(), _directml("Vega 8", device=LOST), "", "cpu", f"{NO_CUDA}, and DirectML does not start: {LOST}", id="device-raises"),
    pytest.param(_torch(broken=LOST), _directml("Vega 8"), "", "cpu", f"{NO_CUDA}, and DirectML does not start: {LOST}", id="directml-does-not-compute"),
    pytest.param(_intels("Arc B580"), None, "", "xpu", "XPU has Arc B580", id="xpu"),
    pytest.param(_intels("Arc B580"), None, "cpu", "cpu", "PATCHLOCK_DEVICE says so", id="xpu-not-wanted"),
    pytest.param(_intels(), None, "", "cpu", f"XPU sees no card, and {HALTED}", id="xpu-without-a-card"),
    pytest.param(_intels("Arc A380", broken=LOST), None, "", "cpu", f"XPU does not start: {LOST}, and {HALTED}", id="xpu-does-not-start"),
    pytest.param(_torch(), _directml("Vega 8"), "7", "cpu", f"{NO_CUDA}, and DirectML does not start: tuple index out of range", id="no-such-card"),
]  # fmt: skip


@pytest.mark.parametrize(("torch", "directml", "forced", "device", "why"), MACHINES)
def test_best_device_that_starts_is_chosen_and_said(
    torch: types.ModuleType,
    directml: types.ModuleType | None,
    forced: str,
    device: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    helper = written(monkeypatch, torch, directml, forced)
    assert helper.chosen() == helper.chosen() == device
    hint = f"device: {helper.HINT}\n" if device == "cpu" and forced != "cpu" else ""
    assert capsys.readouterr().err == f"device: {device} ({why})\n{hint}"


def written(
    monkeypatch: pytest.MonkeyPatch, torch: types.ModuleType, directml: types.ModuleType | None, forced: str
) -> types.ModuleType:
    """Run the file as it is written, on a machine of which these are the libraries."""
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch_directml", directml)
    monkeypatch.setenv("PATCHLOCK_DEVICE", forced)
    op = PATCHES["compute-device-helper"].op
    assert isinstance(op, AddFile)
    helper = types.ModuleType("compute_device")
    exec(op.content, helper.__dict__)
    return helper


def test_an_app_that_directml_cannot_serve_is_not_given_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = written(monkeypatch, _torch(), _directml("Vega 8"), "")
    assert helper.chosen(with_directml=False) == "cpu"
    assert capsys.readouterr().err.startswith(f"device: cpu ({NO_CUDA})\n")


@pytest.mark.parametrize(
    ("torch", "forced", "device", "why"),
    [
        pytest.param(_torch(metal=True), "", "mps", f"{NO_CUDA}, Metal has a card", id="metal"),
        pytest.param(_torch(metal=True, broken=LOST), "", "cpu", f"{NO_CUDA}, and Metal does not start: {LOST}", id="metal-does-not-start"),
        pytest.param(_torch(), "", "cpu", f"{NO_CUDA}, and Metal sees no card", id="no-metal"),
        pytest.param(_torch(metal=True), "cpu", "cpu", "PATCHLOCK_DEVICE says so", id="forced"),
        pytest.param(_torch(card="RTX 4090", cuda="12.6"), "", "cuda", "CUDA has RTX 4090", id="a-card"),
    ],
)  # fmt: skip
def test_an_app_that_knows_metal_is_given_it(
    torch: types.ModuleType,
    forced: str,
    device: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    helper = written(monkeypatch, torch, None, forced)
    assert helper.chosen(with_directml=False, with_mps=True) == device
    assert capsys.readouterr().err.splitlines()[0] == f"device: {device} ({why})"
    assert helper.has_mps() == (device == "mps")
    assert helper.has_cuda() == (device == "cuda")
    assert not helper.has_directml()


@pytest.mark.parametrize(
    ("torch", "name", "forced", "device", "why"),
    [
        pytest.param(_torch(card="RTX 4090", cuda="12.6"), "cuda:1", "", "cuda:1", "CUDA has RTX 4090", id="a-card"),
        pytest.param(_torch(card="RTX 4090", cuda="12.6"), "cpu", "", "cpu", "an option says so", id="the-processor"),
        pytest.param(_torch(card="RTX 4090", cuda="12.6"), "cuda:0", "cpu", "cpu", "PATCHLOCK_DEVICE says so", id="forced"),
        pytest.param(_torch(cuda="12.6"), "cuda:0", "", "cpu", "CUDA sees no card, and Metal sees no card", id="no-card"),
        pytest.param(_torch(card="RX 6600", hip="6.3", broken=KERNEL), "cuda:0", "", "cpu", "ROCm does not start: HIP error: invalid device function, and Metal sees no card", id="does-not-start"),
        pytest.param(_torch(metal=True), "cuda:0", "", "mps", f"{NO_CUDA}, Metal has a card", id="metal"),
        pytest.param(_torch(metal=True), "cpu", "", "cpu", "an option says so", id="the-processor-of-a-mac"),
    ],
)  # fmt: skip
def test_the_device_of_an_option_is_taken_where_it_starts(
    torch: types.ModuleType,
    name: str,
    forced: str,
    device: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    helper = written(monkeypatch, torch, None, forced)
    assert helper.asked(name, with_mps=True) == helper.asked(name, with_mps=True) == device
    hint = f"device: {helper.HINT}\n" if device == "cpu" and not why.endswith("says so") else ""
    assert capsys.readouterr().err == f"device: {device} ({why})\n{hint}"


@pytest.mark.parametrize("wanted", ["gpu", "cuda:1", "CPU", "-1"])
def test_a_value_that_names_no_device_is_told_once(
    wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = written(monkeypatch, _torch(card="RTX 4090", cuda="12.6"), None, wanted)
    assert helper.chosen() == "cuda"
    assert helper.has_cuda()
    assert capsys.readouterr().err == (
        f'device: PATCHLOCK_DEVICE is "{wanted}", which is passed over: set it to cpu, or to the number of a card\n'
        "device: cuda (CUDA has RTX 4090)\n"
    )


@pytest.mark.parametrize(
    ("patch", "profiles"),
    [
        pytest.param("no-inference-mode-on-directml", ("directml-vega",), id="directml"),
        pytest.param("style-on-the-processor", ("directml-vega", "mps-macos"), id="directml-and-metal"),
    ],
)
def test_what_a_device_lacks_is_patched_there_alone(patch: str, profiles: tuple[str, ...]) -> None:
    assert PATCHES[patch].profiles == profiles


@pytest.mark.parametrize("device", ["cpu", "mps", "privateuseone:0", "xpu"])
def test_the_check_of_devices_finds_nothing_in_it(device: str) -> None:
    op = PATCHES["compute-device-helper"].op
    assert isinstance(op, AddFile)
    assert WithoutCuda(device=device).problems(PurePosixPath("compute_device.py"), op.content.encode()) == ()


def test_metal_is_given_where_the_profile_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATCHLOCK_METAL", "1")
    assert written(monkeypatch, _torch(metal=True), None, "").chosen(with_directml=False) == "mps"
    assert written(monkeypatch, _torch(metal=True), None, "cpu").chosen(with_directml=False) == "cpu"
    assert capsys.readouterr().err.startswith(f"device: mps ({NO_CUDA}, Metal has a card)\n")
