"""The op device-literals where code chooses between CUDA and the CPU: what somebody asks for stays what he gets."""

from __future__ import annotations

import pytest
from applied_ops import locate, patched
from test_device_literals import CPU, DML, PATH, ensure_of

from patchlock.patches.ops._device.op import DeviceLiterals

MPS = DeviceLiterals(device="mps")
XPU = DeviceLiterals(device="xpu")
WHISPER = "from faster_whisper import WhisperModel\n"


def chosen(test: str, other: str = '"cpu"', signature: str = "use_gpu=True, **k", more: str = "") -> str:
    """Write a function that chooses by a test."""
    return (
        f'def f({signature}):\n    if {test}:\n        d = "cuda"\n{more}    else:\n        d = {other}\n    return d\n'
    )


METAL = '    elif use_gpu and torch.backends.mps.is_available() and ENABLED:\n        d = "mps"\n'
CHANGES = [
    pytest.param(
        XPU,
        chosen("torch.cuda.device_count() > 0 and use_gpu", more=METAL),
        chosen("torch.cuda.device_count() > 0 and use_gpu", '"xpu" if use_gpu else "cpu"', more=METAL),
        id="a-parameter",
    ),
    pytest.param(
        MPS,
        chosen("use_cuda and torch.cuda.is_available()", signature="use_cuda"),
        chosen("use_cuda and torch.cuda.is_available()", '"mps" if use_cuda else "cpu"', "use_cuda"),
        id="a-parameter-named-as-a-flag",
    ),
    pytest.param(
        MPS,
        'def f(use_cuda=False):\n    return "cuda" if use_cuda else "cpu"\n',
        'def f(use_cuda=False):\n    return "mps" if use_cuda else "cpu"\n',
        id="off-by-default",
    ),
    pytest.param(
        MPS,
        chosen('torch.cuda.is_available() and not (args.cpu or k.get("cpu"))'),
        chosen(
            'torch.cuda.is_available() and not (args.cpu or k.get("cpu"))',
            "\"mps\" if not args.cpu and (not k.get('cpu')) else \"cpu\"",
        ),
        id="not-the-cpu",
    ),
    pytest.param(
        MPS,
        'd = torch.device("cuda") if args.device == "cuda" and torch.cuda.is_available() else torch.device("cpu")\n',
        'd = torch.device("mps") if args.device != \'cpu\' else torch.device("cpu")\n',
        id="a-device-that-is-asked-for",
    ),
    pytest.param(
        MPS,
        'use_cuda = not args.no_cuda and torch.cuda.is_available()\nd = torch.device("cuda" if use_cuda else "cpu")\n',
        'use_cuda = not args.no_cuda and torch.cuda.is_available()\nd = torch.device("mps" if not args.no_cuda else "cpu")\n',
        id="a-flag-with-a-wish",
    ),
    pytest.param(
        MPS,
        'd = "cpu"\nif args.gpu and torch.cuda.is_available():\n    d = "cuda"\n',
        'd = "mps" if args.gpu else "cpu"\nif args.gpu and torch.cuda.is_available():\n    d = "cuda"\n',
        id="late",
    ),
    pytest.param(
        MPS,
        chosen("torch.cuda.is_available() and torch.cuda.get_device_capability()[0] > 6 and sys.platform"),
        chosen("torch.cuda.is_available() and torch.cuda.get_device_capability()[0] > 6 and sys.platform", '"mps"'),
        id="only-the-machine",
    ),
    pytest.param(
        DML, chosen("torch.cuda.is_available()", more=METAL), chosen("torch.cuda.is_available()", '"privateuseone:0"', more=METAL), id="another-device"
    ),
    # libraries that know no other device
    pytest.param(
        MPS,
        f'{WHISPER}m = WhisperModel(name, device="cuda", compute_type="float16")\nx.to("cuda")\n',
        f'{WHISPER}m = WhisperModel(name, device="cpu", compute_type="float16")\nx.to("mps")\n',
        id="named",
    ),
    pytest.param(
        MPS,
        'import faster_whisper as w\ndef f(device="cuda"):\n    return w.WhisperModel(name, device)\n',
        'import faster_whisper as w\ndef f(device="mps"):\n    return w.WhisperModel(name, "cpu")\n',
        id="by-a-name",
    ),
    pytest.param(
        DeviceLiterals(device="mps", always=True),
        f'{WHISPER}WhisperModel(name, device="cuda" if torch.cuda.is_available() else "cpu", **options)\n',
        f'{WHISPER}WhisperModel(name, device="cpu", **options)\n',
        id="always",
    ),
    pytest.param(
        XPU,
        'import ctranslate2.models\nd = "cuda" if torch.cuda.is_available() else "cpu"\nctranslate2.models.Whisper(p, device=d)\n',
        'import ctranslate2.models\nd = "xpu"\nctranslate2.models.Whisper(p, device="cpu")\n',
        id="by-a-chosen-name",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: DeviceLiterals, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after
    assert ensure_of(op).problems(PATH, after.encode()) == ()


LEFT = [
    pytest.param(MPS, chosen("use_gpu and torch.cuda.is_available()", more=METAL), id="it-knows-the-device"),
    pytest.param(
        XPU,
        'd = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"\n',
        id="it-knows-the-device-in-one-line",
    ),
    pytest.param(MPS, chosen("torch.cuda.is_available() and ask()"), id="what-cannot-be-asked-twice"),
    pytest.param(
        MPS, 'd = "cpu"\ngpu = load()\nif gpu and torch.cuda.is_available():\n    d = "cuda"\n', id="what-is-not-known-yet"
    ),
    pytest.param(
        MPS,
        "class A:\n    def f(self, cpu):\n        self.cuda = torch.cuda.is_available() and not cpu\n"
        '    def g(self):\n        return "cuda" if self.cuda else "cpu"\n',
        id="a-wish-of-another-function",
    ),
    pytest.param(
        MPS,
        f'{WHISPER}m = WhisperModel(name, device="cuda" if torch.cuda.is_available() else "cpu")\n',
        id="it-knows-the-cpu",
    ),
    pytest.param(MPS, f'{WHISPER}o = {{"kinds": 3}}\nm = WhisperModel(o["cuda"], *o, **o)\n', id="no-device"),
    pytest.param(MPS, 'd = "cuda" if torch.cuda.is_available() and await_all() else "cpu"\n', id="a-call-in-one-line"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), LEFT)
def test_leaves(op: DeviceLiterals, text: str) -> None:
    located = locate(op, text)
    assert (located.edits, located.refusals) == ((), ())
    assert ensure_of(op).problems(PATH, text.encode()) == ()


def test_on_the_cpu_a_choice_stays_as_it_is() -> None:
    assert locate(CPU, chosen("use_gpu and torch.cuda.is_available()")).edits == ()


def test_the_ensure_sees_a_device_that_a_library_does_not_know() -> None:
    why = "it gives faster_whisper.WhisperModel a device that it does not know"
    assert ensure_of(MPS).problems(PATH, f'{WHISPER}WhisperModel(name, device="mps")\n'.encode()) == (f"line 2: {why}",)
