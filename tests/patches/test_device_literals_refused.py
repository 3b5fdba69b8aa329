"""The op device-literals: what it leaves, what it refuses, and with which fields it cannot be."""

from __future__ import annotations

import pytest
from applied_ops import locate
from test_device_literals import CPU, DML, PATH, ensure_of

from patchlock.model.patch import Located, OutcomeKind
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._device.op import DeviceLiterals

LEFT = [
    # no device is asked for
    'if device == "cuda" or "cuda" in str(x.device): f()',
    'if device.type == "cuda" and not kept: xs = [x.cuda(rank, non_blocking=True) for x in xs]',
    'def f(device):\n    if device == "cuda":\n        x.cuda(rank)',
    'ok = x.device.type in ("cuda", "mps")',
    'assert d.type in {"cpu", "cuda"}',
    's.startswith("cuda"); getattr(torch, "cuda"); hasattr(torch, "cuda")',
    'names["cuda"]; names = {"cuda": 1}; names.get("cuda")',
    'kind: Literal["cuda", "cpu"] = "cpu"',
    'class K(str, Enum):\n    GPU = "cuda"',
    'CUDA = "cuda"',
    'glob(os.path.join(here, "cuda", "*.cu")); os.path.join("cuda")',
    'print("cuda"); logger.info("cuda"); raise ValueError("cuda")',
    'gr.Info("cuda"); st.success("cuda"); click.echo("cuda"); sys.exit("cuda"); _("cuda"); gr.Tab("cuda")',
    'assert x, "cuda"\nassert x, f"cuda:{i}"',
    'raise E("cuda")\nraise Exception("no") from E(device="cuda")',
    'log({"device": "cuda"}); print(f"on {\'cuda\'}", {"device": "cuda"})',
    'x = f"cuda:{i} is busy"; x = f"cuda is busy on {i}"',
    'names = ["cuda", "b"]; titles = {"description": "cuda"}; f(desc="cuda", placeholder="cuda")',
    '"""cuda"""\nx = """cuda kernels"""',
    'backend = "cuda"; f(platform="cuda", extras="cuda")',
    "match d:\n    case 'cuda': pass",
    'KINDS = ("cpu", "cuda", "mps")',
    "v = torch.version.cuda; torch.backends.cuda.matmul.allow_tf32 = True",
    # it switches itself off, or does nothing
    'with torch.autocast("cuda", dtype=torch.float16), torch.cuda.amp.autocast(): f()',
    '@torch.amp.autocast(device_type="cuda")\ndef f(): pass',
    's = torch.cuda.amp.GradScaler(); s = torch.amp.GradScaler("cuda")',
    "torch.cuda.empty_cache(); torch.cuda.manual_seed_all(1); n = torch.cuda.device_count()",
    "m = torch.cuda.memory_allocated()",
    # it never runs
    'd = "cuda" if torch.cuda.is_available() else "cpu"',
    'from torch import cuda\nd = "cuda" if cuda.is_available() else "cpu"',
    'import torch.cuda as c\nd = "cuda" if c.is_available() else "cpu"',
    'from torch.cuda import device_count as n\nd = "cuda" if n() > 0 else "cpu"',
    'c = torch.cuda\nd = "cuda" if c.is_available() else "cpu"',
    'ok = torch.cuda.is_available\nd = "cuda" if ok() else "cpu"',
    "if torch.cuda.is_available():\n    x.cuda(); torch.cuda.get_device_properties(0).total_memory",
    "def f():\n    if not torch.cuda.is_available():\n        return None\n    return torch.cuda.mem_get_info()",
    'if device == "cpu":\n    f()\nelse:\n    e = torch.cuda.Event()',
    'if device.startswith("cuda:"): pass\nif device.startswith("cuda"): x.cuda()',
    "use_cuda = torch.cuda.is_available() and not args.no_cuda\nif use_cuda:\n    torch.cuda.Stream()",
    "n = torch.cuda.device_count()\nif n > 0: torch.cuda.init()\nif 1 <= n: x.cuda()",
    'ds = [f"cuda:{i}" for i in range(torch.cuda.device_count())]',
    'ds = [f"cuda:{i}" if d.startswith("cuda") else d for i in ids]',
    "a = torch.cuda.is_available() and torch.cuda.get_device_properties(0).major > 7",
    'a = d != "cuda" or torch.cuda.get_device_properties(0).major > 7',
    "try:\n    torch.cuda.synchronize()\nexcept Exception:\n    pass",
    "try:\n    torch.cuda.synchronize()\nexcept (AssertionError, RuntimeError):\n    pass",
    "if x.is_cuda: y = y.cuda()",
    'b = "nccl"\nif backend == "nccl": barrier(device_ids=[torch.cuda.current_device()])',
    "assert torch.cuda.is_available()\nx.cuda()",
    # another thing of this name
    "cuda(x); torch.xpu.synchronize()",
]


@pytest.mark.parametrize("text", LEFT)
def test_leaves(text: str) -> None:
    located = locate(CPU, text + "\n")
    assert not located.edits
    assert not located.refusals
    assert ensure_of(CPU).problems(PATH, text.encode()) == ()


@pytest.mark.parametrize("text", ['p = ["CUDAExecutionProvider"]', "x.half(); d = torch.float16"])
def test_other_keys_are_off_by_default(text: str) -> None:
    assert locate(CPU, text) == Located()


def test_what_is_right_already_is_settled() -> None:
    located = locate(
        CPU, 'if d == "cuda":\n    torch.cuda.synchronize()\nd = "cuda" if torch.cuda.is_available() else "cpu"\n'
    )
    assert [site.line for site in located.settled] == [1, 2, 3]


FAILS = "`torch.cuda.{}` fails without CUDA, and no edit of this call alone is right"
LOST = "`{}` says which card, and would no longer run"
REFUSED = [
    pytest.param(
        CPU,
        "m = torch.cuda.get_device_properties(0).total_memory\n",
        FAILS.format("get_device_properties"),
        id="properties",
    ),
    pytest.param(CPU, "e = torch.cuda.Event(enable_timing=True)\n", FAILS.format("Event"), id="event"),
    pytest.param(CPU, "with torch.cuda.stream(s): pass\n", FAILS.format("stream"), id="stream"),
    pytest.param(CPU, "s = torch.cuda.get_rng_state()\n", FAILS.format("get_rng_state"), id="rng-state"),
    pytest.param(CPU, "b(device_ids=[torch.cuda.current_device()])\n", FAILS.format("current_device"), id="a-number"),
    pytest.param(CPU, "torch.cuda.some_new_thing()\n", FAILS.format("some_new_thing"), id="unknown"),
    # computing which card has effects that would be lost
    pytest.param(CPU, "x.cuda(next(ids), non_blocking=True)\n", LOST.format("next(ids)"), id="next-card"),
    pytest.param(CPU, "x.cuda(device=pool.next_gpu())\n", LOST.format("pool.next_gpu()"), id="next-of-a-pool"),
    pytest.param(CPU, "x.cuda((card := 1))\n", LOST.format("(card := 1)"), id="names-a-card"),
    pytest.param(CPU, 'x.to(f"cuda:{ids.pop()}")\n', LOST.format("ids.pop()"), id="popped-card"),
    pytest.param(CPU, 'd = torch.device("cuda", pick())\n', LOST.format("pick()"), id="picked-index"),
    pytest.param(
        CPU,
        "from torch.cuda import synchronize\nsynchronize()\n",
        "`synchronize` fails without CUDA, and `torch` is not there to ask",
        id="no-torch",
    ),
    pytest.param(CPU, "x.cuda(*a)\n", "its arguments are not those of `Tensor.cuda`", id="starred"),
    pytest.param(CPU, "x.cuda(stream=s)\n", "its arguments are not those of `Tensor.cuda`", id="another-method"),
    pytest.param(
        CPU,
        "d = f\"{'cuda'}:0\"\n",
        "it is inside an f-string, where places differ between versions of Python",
        id="f-string",
    ),
    pytest.param(
        DML,
        "torch.set_default_tensor_type(torch.cuda.FloatTensor)\n",
        "`privateuseone:0` has no tensor type of this name",
        id="type",
    ),
]


@pytest.mark.parametrize(("op", "text", "why"), REFUSED)
def test_lines_are_those_of_what_is_refused(op: DeviceLiterals, text: str, why: str) -> None:
    source = SourceText(path=PATH, text=text, encoding="utf-8", bom=b"")
    found = op.locate(source)

    assert op.lines(source) >= {one.line for one in (*found.sites, *found.refusals)}, why


@pytest.mark.parametrize(("op", "text", "why"), REFUSED)
def test_refuses(op: DeviceLiterals, text: str, why: str) -> None:
    located = locate(op, text)
    assert not located.edits
    assert [(refusal.why, refusal.kind) for refusal in located.refusals] == [(why, OutcomeKind.AMBIGUOUS)]
    assert located.refusals[0].line == text.rstrip().count("\n") + 1
    assert ensure_of(op).problems(PATH, text.encode())


def test_what_cannot_be_parsed_is_refused() -> None:
    assert [refusal.kind for refusal in locate(CPU, "print 'cuda'\n").refusals] == [OutcomeKind.UNPARSABLE]
    deep = locate(CPU, "x = " + "a." * 900 + "b\n" + "y = " + " + ".join(["1"] * 990) + '\nd = "cuda"\n')
    assert deep.edits or deep.refusals


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"device": "gpu"}, "`gpu` is not a device of PyTorch"),
        ({"device": "cuda:1"}, "`cuda` is what the files assume already"),
        ({"precision": "half"}, "the precision is `single` or nothing, not `half`"),
        ({"providers": ("CPU",)}, "a name of an execution provider ends in `ExecutionProvider`"),
        ({"providers": ("CUDAExecutionProvider",)}, "`CUDAExecutionProvider` is what the files assume already"),
    ],
)
def test_wrong_fields(keys: dict, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        DeviceLiterals(**keys)
    assert str(caught.value) == why
