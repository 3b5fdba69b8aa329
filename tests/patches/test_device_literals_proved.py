"""The op device-literals: its ensure sees each edit that is missing, and a patched program runs without CUDA."""

from __future__ import annotations

import types

import pytest
from applied_ops import patched, read
from test_device_literals import CHANGES, CPU, PATH, ensure_of

from patchlock.model.text_files import Edit, encode, splice
from patchlock.patches.ops._device.op import DeviceLiterals
from patchlock.patches.postconditions._device import WithoutCuda


def groups(edits: tuple[Edit, ...]) -> list[tuple[Edit, ...]]:
    """Leave each edit out once."""
    return [tuple(edit for edit in edits if edit is not left) for left in edits]


# Whether a tensor was moved at all, no ensure can see; provider lists have `no-string`.
MUTATED = [case for case in CHANGES if not case.values[0].providers and case.id != "tensor-types-moved"]


@pytest.mark.parametrize(("op", "before", "after"), MUTATED)
def test_ensure_sees_a_missing_edit(op: DeviceLiterals, before: str, after: str) -> None:
    ensure = ensure_of(op)
    source = read(before.encode())
    assert ensure.problems(PATH, after.encode()) == ()
    assert ensure.problems(PATH, before.encode())
    for fewer in groups(op.locate(source).edits):
        assert ensure.problems(PATH, encode(splice(source, fewer))), splice(source, fewer).text


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"device": "gpu"}, "`gpu` is not a device of PyTorch, or is CUDA"),
        ({"device": "cuda:0"}, "`cuda:0` is not a device of PyTorch, or is CUDA"),
        ({"precision": "half"}, "the precision is `single` or nothing, not `half`"),
    ],
)
def test_wrong_fields_of_the_ensure(keys: dict, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        WithoutCuda(**keys)
    assert str(caught.value) == why


def test_ensure_reports_what_it_cannot_read() -> None:
    assert ensure_of(CPU).problems(PATH, b"print 'a'\n")[0].startswith("line 1: it does not parse")
    assert ensure_of(CPU).problems(PATH, b'd = "cuda"\nx.cuda()\n') == (
        "line 1: it asks for a CUDA device",
        "line 2: it moves something to CUDA",
    )


# --- executed ---------------------------------------------------------------------------------------------------------


class NoCuda(types.SimpleNamespace):
    """A stand-in for `torch.cuda` that fails as a build without CUDA does."""

    def __getattr__(self, name: str):
        def fail(*arguments, **keywords):
            raise AssertionError(f"Torch not compiled with CUDA enabled: {name}")

        return fail


class Tensor:
    def __init__(self, device: str = "cpu") -> None:
        assert device == "cpu", device
        self.device = device

    def to(self, device: str) -> Tensor:
        return Tensor(device)

    def cuda(self, *_: object) -> Tensor:
        raise AssertionError("Torch not compiled with CUDA enabled")


def torch_without_cuda() -> types.SimpleNamespace:
    def device(name: str, index: int = 0) -> str:
        assert name == "cpu", name
        return name

    cuda = NoCuda(is_available=lambda: False, device_count=lambda: 0, empty_cache=lambda: None)
    return types.SimpleNamespace(
        cuda=cuda, device=device, zeros=lambda *_, device: Tensor(device), FloatTensor=lambda _: Tensor()
    )


PROGRAM = """
class Model:
    def __init__(self, device="cuda", rank=0):
        torch.cuda.set_device(rank)
        self.device = torch.device(device)
        self.device = torch.device("cuda", rank)
        self.state = torch.zeros(2, device=torch.cuda.current_device()).cuda(rank)
    def run(self):
        x = torch.cuda.FloatTensor([1.0]).to(f"cuda:{0}")
        if torch.cuda.get_device_capability(0) >= (8, 0):
            raise SystemError
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        if str(self.device) == "cuda":
            return torch.cuda.get_device_properties(0)
        return x, torch.cuda.get_device_name(0), torch.device("cuda" if torch.cuda.is_available() else "CPU")
result = Model().run()
"""


def test_a_patched_program_runs_without_cuda() -> None:
    def run(code: str) -> dict:
        names: dict = {"torch": torch_without_cuda()}
        exec(code, names)
        return names

    with pytest.raises(AssertionError, match="set_device"):
        run(PROGRAM)
    after = patched(CPU, PROGRAM.encode()).decode()
    assert run(after)["result"][1:] == ("cpu", "cpu")
    source = read(PROGRAM.encode())
    for edits in groups(CPU.locate(source).edits):
        with pytest.raises((AssertionError, SyntaxError)):
            run(splice(source, edits).text)
