"""What the optional patches of xtts-webui write, run as it is written: with torch where it is there, and by itself."""

from __future__ import annotations

import sys
import types

import pytest
from conftest import ROOT

from patchlock.catalogue import optional_patches
from patchlock.catalogue.reader import Catalogue
from patchlock.patches.ops._diffs import AddFile

APP = Catalogue(root=ROOT).app("xtts-webui")


def _written(patch: str) -> types.ModuleType:
    (op,) = (one.op for one in APP.patches if one.id == patch and isinstance(one.op, AddFile))
    module = types.ModuleType("helper")
    exec(compile(op.content, patch, "exec"), module.__dict__)
    return module


def test_what_can_be_chosen_is_for_machines_that_need_it() -> None:
    assert [one.name for one in optional_patches.of_profile(APP, "cpu")] == ["int8"]
    assert [one.name for one in optional_patches.of_profile(APP, "zluda-rdna4")] == ["int8", "latents-on-cpu"]
    assert [one.name for one in optional_patches.of_profile(APP, "directml-vega")] == ["int8"]
    assert [one.name for one in optional_patches.recommend(["stft"], APP, "zluda-rdna4")] == ["latents-on-cpu"]
    assert optional_patches.recommend(["stft"], APP, "directml-vega") == (), "there the CPU computes anyway"
    assert [one.name for one in optional_patches.recommend(["stft"], APP)] == ["latents-on-cpu"]
    assert optional_patches.recommend(["stft"], APP, "cpu") == ()
    assert optional_patches.of_profile(APP, "cuda-linux") == ()


@pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization is deprecated", "ignore:.*quantized tensor creation", "ignore::UserWarning:torch"
)
def test_int8_changes_every_linear_layer_and_hardly_the_result() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("loguru")

    class Conv1D(torch.nn.Module):
        """As transformers has it for GPT-2: the weight lies the other way."""

        def __init__(self, outputs: int, inputs: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(inputs, outputs))
            self.bias = torch.nn.Parameter(torch.randn(outputs))

        def forward(self, x: object) -> object:
            return x @ self.weight + self.bias

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), Conv1D(128, 32), torch.nn.Sequential(torch.nn.Linear(128, 16)))
    x = torch.randn(4, 64)
    before = model(x).detach()
    helper = _written("int8-helper")
    assert helper.quantized(model, "cuda") is model
    assert torch.equal(model(x), before)
    assert helper.quantized(model, "cpu") is model
    int8 = torch.ao.nn.quantized.dynamic.Linear
    layers = [module for module in model.modules() if not list(module.children())]
    assert [isinstance(layer, int8) for layer in (model[0], model[1], model[2][0])] == [True] * 3, layers
    assert {layer.weight().dtype for layer in (model[0], model[1], model[2][0])} == {torch.qint8}
    after = model(x).detach()
    assert not torch.equal(after, before)
    assert float((after - before).norm() / before.norm()) < 0.05


def _machine(
    monkeypatch: pytest.MonkeyPatch, *, torch_knows: str, ctranslate2_knows: int, sm: tuple[int, int] = (8, 9)
) -> types.ModuleType:
    """Give the helper on a machine; `torch_knows` is the name of the card, "" for none."""
    cuda = types.SimpleNamespace(
        is_available=lambda: bool(torch_knows),
        get_device_name=lambda *_: torch_knows,
        get_device_capability=lambda *_: sm,
    )
    version = types.SimpleNamespace(cuda="12.6", hip=None)
    ones = types.SimpleNamespace(sum=lambda: types.SimpleNamespace(item=lambda: 2))
    torch = types.SimpleNamespace(
        cuda=cuda,
        version=version,
        device=str,
        ones=lambda count, device: ones,  # noqa: ARG005
    )
    others = {
        "torch": torch,
        "ctranslate2": types.SimpleNamespace(
            get_cuda_device_count=lambda: ctranslate2_knows, get_supported_compute_types=lambda _: _supported(sm)
        ),
        "loguru": types.SimpleNamespace(logger=types.SimpleNamespace(info=SAID.append)),
    }
    for name, module in others.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "compute_device", _written("compute-device-helper"))
    SAID.clear()
    return _written("machine-helper")


def _supported(sm: tuple[int, int]) -> set[str]:
    """Give what CTranslate2 4.5.0 says of a card: mayiuse_float16 and mayiuse_int8 in its src/types.cc, src/cuda/utils.cc."""
    int8 = {"int8", "int8_float32"} if sm >= (6, 1) and sm != (6, 2) else set()
    return {"float32", *int8, *(("float16", "int8_float16") if sm >= (7, 0) else ())}


SAID: list[str] = []
ON_CARD = {"device": "cuda", "compute_type": "float16"}
ON_PROCESSOR = {"device": "cpu", "compute_type": "int8"}


@pytest.mark.parametrize(
    ("card", "known", "asked", "device", "whisper"),
    [
        ("NVIDIA GeForce RTX 4070", 1, "cuda", "cuda", ON_CARD),
        ("NVIDIA GeForce RTX 4070", 1, "cuda:1", "cuda:1", ON_CARD),
        ("NVIDIA GeForce RTX 4070", 1, "cpu", "cpu", ON_PROCESSOR),
        ("", 0, "cuda", "cpu", ON_PROCESSOR),
        ("AMD Radeon RX 9070 XT", 0, "cuda", "cuda", ON_PROCESSOR),
        ("AMD Radeon RX 9070 XT [ZLUDA]", 1, "cuda", "cuda", ON_PROCESSOR),
    ],
    ids=["nvidia", "second-card", "asked-for-cpu", "no-card", "rocm", "zluda"],
)
def test_device_is_the_one_that_is_asked_for_where_it_is_there(
    monkeypatch: pytest.MonkeyPatch, card: str, known: int, asked: str, device: str, whisper: dict[str, str]
) -> None:
    monkeypatch.setenv("DEVICE", asked)
    helper = _machine(monkeypatch, torch_knows=card, ctranslate2_knows=known)
    assert (helper.device(), helper.whisper()) == (device, whisper)
    assert helper.device("cpu") == "cpu"
    assert any(asked in text for text in SAID), "the log says which device computes, and why"
    assert len(SAID) == len(set(SAID))


def test_processor_computes_where_the_user_forces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE", "cuda")
    monkeypatch.setenv("PATCHLOCK_DEVICE", "cpu")
    helper = _machine(monkeypatch, torch_knows="NVIDIA GeForce RTX 4070", ctranslate2_knows=1)
    assert (helper.device(), helper.device("cuda"), helper.whisper()) == ("cpu", "cpu", ON_PROCESSOR)
    assert SAID == ["the processor computes: PATCHLOCK_DEVICE says so"]


@pytest.mark.parametrize(
    ("sm", "asked", "whisper"),
    [
        ((5, 0), ("cuda", "float16"), ON_PROCESSOR),
        ((5, 2), ("cuda", "float16"), ON_PROCESSOR),
        ((6, 0), ("cuda", "float16"), {"device": "cuda", "compute_type": "float32"}),
        ((6, 0), ("cuda", "int8"), {"device": "cuda", "compute_type": "float32"}),
        ((6, 1), ("cuda", "float16"), {"device": "cuda", "compute_type": "int8"}),
        ((6, 1), ("cpu", "float16"), ON_PROCESSOR),
        ((7, 0), ("cuda", "int8"), {"device": "cuda", "compute_type": "int8"}),
        ((12, 0), ("cuda", "float16"), ON_CARD),
    ],
    ids=["gtx-750", "gtx-980", "p100", "p100-int8", "gtx-1080", "gtx-1080-cpu", "titan-v-int8", "rtx-5090"],
)
def test_whisper_gets_numbers_that_ctranslate2_supports_on_the_card(
    monkeypatch: pytest.MonkeyPatch, sm: tuple[int, int], asked: tuple[str, str], whisper: dict[str, str]
) -> None:
    monkeypatch.setenv("DEVICE", "cuda")
    helper = _machine(monkeypatch, torch_knows="NVIDIA", ctranslate2_knows=1, sm=sm)
    assert helper.whisper(*asked) == whisper
    assert not any("--device" in text for text in SAID), "the page says which device, not --device"
    if asked == ("cuda", "float16"):
        assert helper.whisper() == whisper, "training asks for nothing"
    if asked[0] == "cuda" and whisper["compute_type"] != asked[1]:
        assert any("Whisper" in text for text in SAID), "the log says why"


class _Model:
    """A model that notes where it is, and computes only on the processor."""

    def __init__(self, *, fails: bool = False) -> None:
        self.device, self.fails, self.seen = "card", fails, []

    def parameters(self) -> object:
        return iter([self])

    def to(self, device: str) -> _Model:
        self.device = device
        return self

    def get_conditioning_latents(self, wav: str) -> tuple[_Model, _Model]:
        self.seen.append((wav, self.device))
        if self.fails:
            raise RuntimeError("no such file")
        return _Model().to("cpu"), _Model().to("cpu")


@pytest.mark.parametrize("fails", [False, True], ids=["computes", "fails"])
def test_latents_are_computed_on_the_processor_and_the_model_comes_back(fails: bool) -> None:
    model, helper = _Model(fails=fails), _written("latents-on-cpu-helper")
    if fails:
        with pytest.raises(RuntimeError, match="no such file"):
            helper.conditioning_latents(model, "a.wav")
    else:
        assert [one.device for one in helper.conditioning_latents(model, "a.wav")] == ["card", "card"]
    assert (model.device, model.seen) == ("card", [("a.wav", "cpu")])
