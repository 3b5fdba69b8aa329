"""The op device-literals: what must change, what must not, what is refused, that it settles, and that it then runs."""

from __future__ import annotations

import types
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.ensures.device import WithoutCuda
from patchlock.model import Located, OutcomeKind
from patchlock.ops.device_literals import DeviceLiterals
from patchlock.sources import Edit, SourceText, decode, encode, splice

PATH = PurePosixPath("a.py")
CPU = DeviceLiterals()
DML = DeviceLiterals(device="privateuseone:0")
ALWAYS = DeviceLiterals(always=True)
SINGLE = DeviceLiterals(precision="single")
ONNX = DeviceLiterals(providers=("DmlExecutionProvider", "CPUExecutionProvider"))


def read(data: bytes) -> SourceText:
    source = decode(PATH, data)
    assert isinstance(source, SourceText)
    return source


def locate(op: DeviceLiterals, text: str) -> Located:
    return op.locate(read(text.encode()))


def ensure_of(op: DeviceLiterals) -> WithoutCuda:
    return WithoutCuda(device=op.device, always=op.always, precision=op.precision)


def patched(op: DeviceLiterals, data: bytes) -> bytes:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    assert located.edits
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    return result


GUARD = " if torch.cuda.is_available() else "
CHANGES = [
    # the device
    pytest.param(CPU, "d = torch.device('cuda:0')  # c\n", "d = torch.device('cpu')  # c\n", id="device"),
    pytest.param(CPU, 'd = torch.device("cuda", rank)\n', 'd = torch.device("cpu")\n', id="device-and-index"),
    pytest.param(
        CPU,
        'd = torch.device(type="cuda", index=torch.cuda.current_device())\n',
        'd = torch.device("cpu")\n',
        id="device-by-keywords",
    ),
    pytest.param(CPU, 'd = torch.device(f"cuda:{i}")\n', 'd = torch.device("cpu")\n', id="f-string"),
    pytest.param(CPU, 'd = "cuda:" + str(i)\n', 'd = "cpu"\n', id="joined"),
    pytest.param(CPU, "d = 'cuda:%d' % i\n", "d = 'cpu'\n", id="percent"),
    pytest.param(CPU, 'd = "cuda:{}".format(i)\n', 'd = "cpu"\n', id="format"),
    pytest.param(CPU, 'd = [f"cuda:{i}" for i in range(4)]\n', 'd = ["cpu" for i in range(4)]\n', id="comprehension"),
    pytest.param(CPU, 'x = x.to("cuda", non_blocking=True)\n', 'x = x.to("cpu", non_blocking=True)\n', id="to"),
    pytest.param(CPU, 'x = torch.zeros(2, device="cuda")\n', 'x = torch.zeros(2, device="cpu")\n', id="keyword"),
    pytest.param(
        CPU,
        'g = torch.Generator("cuda").manual_seed(1)\n',
        'g = torch.Generator("cpu").manual_seed(1)\n',
        id="generator",
    ),
    pytest.param(
        CPU, 'torch.load(p, map_location="cuda:1")\n', 'torch.load(p, map_location="cpu")\n', id="map-location"
    ),
    pytest.param(
        CPU,
        'M.from_pretrained(p, device_map={"": "cuda"})\n',
        'M.from_pretrained(p, device_map={"": "cpu"})\n',
        id="dict-value",
    ),
    pytest.param(
        DML,
        'f(device_type="cuda", device="cuda")\n',
        'f(device_type="privateuseone", device="privateuseone:0")\n',
        id="type-without-index",
    ),
    pytest.param(CPU, 'm = WhisperModel(name, "cuda")\n', 'm = WhisperModel(name, "cpu")\n', id="positional"),
    pytest.param(
        CPU,
        'run(["python", "a.py", "--device", "cuda"])\n',
        'run(["python", "a.py", "--device", "cpu"])\n',
        id="option-of-a-command",
    ),
    pytest.param(
        CPU,
        "def f(a, /, device: str = 'cuda', *, d='cuda:0'): pass\n",
        "def f(a, /, device: str = 'cpu', *, d='cpu'): pass\n",
        id="defaults",
    ),
    pytest.param(CPU, 'class A:\n    device: str = "cuda"\n', 'class A:\n    device: str = "cpu"\n', id="field"),
    pytest.param(CPU, 'device = r"""cuda"""\n', 'device = "cpu"\n', id="other-quotes"),
    pytest.param(CPU, 'def device():\n    return"cuda"\n', 'def device():\n    return"cpu"\n', id="returned"),
    pytest.param(
        CPU, 'd = os.environ.get("DEVICE", "cuda")\n', 'd = os.environ.get("DEVICE", "cpu")\n', id="environment"
    ),
    pytest.param(CPU, 'os.environ["DEVICE"] = "cuda"\n', 'os.environ["DEVICE"] = "cpu"\n', id="set-environment"),
    pytest.param(CPU, 'd = "cpu" if lowvram else "cuda"\n', 'd = "cpu" if lowvram else "cpu"\n', id="other-ternary"),
    pytest.param(CPU, 'd = args.device or "cuda"\n', 'd = args.device or "cpu"\n', id="or"),
    pytest.param(
        CPU,
        'if x.device != torch.device("cuda"):\n    x = x.to(torch.device("cuda"))\n',
        'if x.device != torch.device("cuda"):\n    x = x.to(torch.device("cpu"))\n',
        id="behind-not-cuda",
    ),
    pytest.param(
        CPU,
        'd = torch.device("cuda" if torch.cuda.is_available() else "CPU")\n',
        'd = torch.device("cpu")\n',
        id="misspelt",
    ),
    pytest.param(CPU, 'd = torch.device("CPU")\n', 'd = torch.device("cpu")\n', id="misspelt-alone"),
    pytest.param(
        CPU,
        'p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])\n',
        'p.add_argument("--device", default="cpu", choices=["cuda", "cpu"])\n',
        id="argparse",
    ),
    pytest.param(
        DML,
        'p.add_argument("--device", default="cuda", choices=["cpu", ("cuda")])\n',
        'p.add_argument("--device", default="privateuseone:0", choices=["cpu", "privateuseone:0", ("cuda")])\n',
        id="choices",
    ),
    pytest.param(
        DML,
        'gr.Radio(["cuda", "cuda:0"], value="cuda")\n',
        'gr.Radio(["privateuseone:0", "cuda", "cuda:0"], value="privateuseone:0")\n',
        id="offered",
    ),
    pytest.param(CPU, 'é = "ü"; d = "cuda"\r\n', 'é = "ü"; d = "cpu"\r\n', id="not-ascii"),
    # methods
    pytest.param(CPU, "x = x.cuda()\n", 'x = x.to("cpu")\n', id="cuda"),
    pytest.param(CPU, "x = x . cuda(  )\n", 'x = x . to(  "cpu")\n', id="cuda-spaced"),
    pytest.param(
        CPU,
        "x.cuda(\n    rank,  # c\n    non_blocking=True,\n)\n",
        'x.to(\n    "cpu",  # c\n    non_blocking=True,\n)\n',
        id="cuda-with-rank",
    ),
    pytest.param(CPU, "x.cuda((rank))\n", 'x.to("cpu")\n', id="cuda-with-parentheses"),
    pytest.param(CPU, "x.cuda(non_blocking=True)\n", 'x.to("cpu", non_blocking=True)\n', id="cuda-non-blocking"),
    pytest.param(CPU, "x.cuda(device=0)\n", 'x.to(device="cpu")\n', id="cuda-device"),
    pytest.param(
        CPU,
        'x.cuda(torch.cuda.current_device()).half().cuda("cuda:1")\n',
        'x.to("cpu").half().to("cpu")\n',
        id="cuda-twice",
    ),
    pytest.param(
        CPU, "map(lambda t: t.cuda(), f(x.cuda()))\n", 'map(lambda t: t.to("cpu"), f(x.to("cpu")))\n', id="cuda-inside"
    ),
    # functions that fail
    pytest.param(CPU, "torch.cuda.set_device(rank)\n", f"(torch.cuda.set_device(rank){GUARD}None)\n", id="set-device"),
    pytest.param(
        CPU,
        'import torch as th\nth.cuda.set_device(f"cuda:{i}")\n',
        'import torch as th\n(th.cuda.set_device(f"cuda:{i}") if th.cuda.is_available() else None)\n',
        id="alias",
    ),
    pytest.param(
        CPU,
        "import torch\nfrom torch.cuda import synchronize as s\ns()\n",
        f"import torch\nfrom torch.cuda import synchronize as s\n(s(){GUARD}None)\n",
        id="imported-function",
    ),
    pytest.param(
        CPU, "torch.cuda.nvtx.range_push('a')\n", f"(torch.cuda.nvtx.range_push('a'){GUARD}None)\n", id="nvtx"
    ),
    pytest.param(
        CPU,
        "print(torch.cuda.get_device_name(0))\n",
        f'print((torch.cuda.get_device_name(0){GUARD}"cpu"))\n',
        id="name",
    ),
    pytest.param(
        CPU,
        "if torch.cuda.get_device_capability() >= (8, 0): f()\n",
        f"if (torch.cuda.get_device_capability(){GUARD}(0, 0)) >= (8, 0): f()\n",
        id="capability",
    ),
    pytest.param(
        CPU,
        "bf16 = torch.cuda.is_bf16_supported()\n",
        f"bf16 = (torch.cuda.is_bf16_supported(){GUARD}False)\n",
        id="bf16",
    ),
    pytest.param(
        CPU,
        "with torch.cuda.device(i): f()\n",
        f"with (torch.cuda.device(i){GUARD}torch.cuda.device(-1)): f()\n",
        id="device-context",
    ),
    pytest.param(
        CPU,
        "x = torch.zeros(1, device=torch.cuda.current_device())\n",
        'x = torch.zeros(1, device="cpu")\n',
        id="current-device",
    ),
    pytest.param(CPU, "device = torch.cuda.current_device()\n", 'device = "cpu"\n', id="current-device-kept"),
    pytest.param(CPU, 'd = f"cuda:{torch.cuda.current_device()}"\n', 'd = "cpu"\n', id="current-device-in-f-string"),
    pytest.param(
        CPU,
        "x = torch.cuda.FloatTensor([0.0]) + torch.cuda.IntTensor(2).cuda()\n",
        'x = torch.FloatTensor([0.0]) + torch.IntTensor(2).to("cpu")\n',
        id="tensor-types",
    ),
    pytest.param(
        DML,
        "x = torch.cuda.FloatTensor(y.cuda())\n",
        'x = torch.FloatTensor(y.to("privateuseone:0")).to("privateuseone:0")\n',
        id="tensor-types-moved",
    ),
    pytest.param(CPU, "x = x.type(torch.cuda.LongTensor)\n", "x = x.type(torch.LongTensor)\n", id="type"),
    pytest.param(
        CPU,
        "try:\n    torch.cuda.synchronize()\nexcept RuntimeError:\n    pass\n",
        f"try:\n    (torch.cuda.synchronize(){GUARD}None)\nexcept RuntimeError:\n    pass\n",
        id="caught-in-part",
    ),
    # guards that are none
    pytest.param(
        CPU,
        "def f(cuda=True):\n    if cuda: x.cuda()\n",
        'def f(cuda=True):\n    if cuda: x.to("cpu")\n',
        id="flag-that-is-set",
    ),
    pytest.param(CPU, "if not args.no_cuda: x.cuda()\n", 'if not args.no_cuda: x.to("cpu")\n', id="no-flag"),
    pytest.param(
        CPU,
        "if torch.cuda.is_available() or force: x.cuda()\n",
        'if torch.cuda.is_available() or force: x.to("cpu")\n',
        id="or-force",
    ),
    pytest.param(CPU, 'if d == "meta": x.cuda()\n', 'if d == "meta": x.to("cpu")\n', id="meta"),
    pytest.param(DML, 'if d != "cpu": x.cuda()\n', 'if d != "cpu": x.to("privateuseone:0")\n', id="not-the-cpu"),
    # choices
    pytest.param(DML, 'd = "cuda" if torch.cuda.is_available() else "cpu"\n', 'd = "privateuseone:0"\n', id="chooser"),
    pytest.param(
        DML,
        'd = (\n    "cuda" if torch.cuda.is_available()\n    else "mps" if m() else "cpu")\n',
        'd = (\n    "privateuseone:0")\n',
        id="chooser-of-three",
    ),
    pytest.param(
        DML,
        'd = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")\n',
        'd = torch.device("privateuseone:0")\n',
        id="chooser-of-devices",
    ),
    pytest.param(
        DML,
        'd = self.cuda if torch.cuda.is_available() else "cpu"\n',
        'd = "privateuseone:0"\n',
        id="chooser-of-a-name",
    ),
    pytest.param(
        DML,
        'if torch.cuda.is_available():\n    d = "cuda"\nelif m():\n    d = "mps"\nelse:\n    d = "cpu"\n',
        'if torch.cuda.is_available():\n    d = "cuda"\nelif m():\n    d = "mps"\nelse:\n    d = "privateuseone:0"\n',
        id="choosing-statement",
    ),
    pytest.param(
        DML,
        'd = torch.device("cpu")\nif torch.cuda.is_available():\n    d = torch.device("cuda")\n',
        'd = torch.device("privateuseone:0")\nif torch.cuda.is_available():\n    d = torch.device("cuda")\n',
        id="choosing-late",
    ),
    pytest.param(
        DML,
        'def f():\n    if detect_gpu(): return torch.device("cuda")\n    else: return torch.device("cpu")\n',
        'def f():\n    if detect_gpu(): return torch.device("cuda")\n    else: return torch.device("privateuseone:0")\n',
        id="choosing-return",
    ),
    pytest.param(ALWAYS, 'd = "cuda" if torch.cuda.is_available() else "cpu"\n', 'd = "cpu"\n', id="always-chooser"),
    pytest.param(
        ALWAYS,
        'if torch.cuda.is_available():\n    d = "cuda"\n    torch.cuda.synchronize()\n',
        'if torch.cuda.is_available():\n    d = "cpu"\n    torch.cuda.synchronize()\n',
        id="always-statement",
    ),
    # other keys
    pytest.param(
        SINGLE,
        'm.half().f(dtype=torch.float16, compute_type="float16")\n',
        'm.float().f(dtype=torch.float32, compute_type="float32")\n',
        id="single-precision",
    ),
    pytest.param(
        SINGLE,
        'def f(dtype=torch.half, *, compute_type="float16"): pass\n',
        'def f(dtype=torch.float32, *, compute_type="float32"): pass\n',
        id="single-precision-defaults",
    ),
    pytest.param(
        ONNX,
        'S(m, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])\n',
        'S(m, providers=["DmlExecutionProvider", "CPUExecutionProvider"])\n',
        id="providers",
    ),
    pytest.param(
        ONNX,
        'p = [("CUDAExecutionProvider", {"a": 1})]\n',
        'p = ["DmlExecutionProvider", "CPUExecutionProvider"]\n',
        id="providers-with-options",
    ),
]


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: DeviceLiterals, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


LEFT = [
    # no device is asked for
    'if device == "cuda" or "cuda" in str(x.device): f()',
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
        "it stands inside an f-string, where places differ between versions of Python",
        id="f-string",
    ),
    pytest.param(
        DML, "x.type(torch.cuda.FloatTensor)\n", "`privateuseone:0` has no tensor type of this name", id="type"
    ),
]


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


LINES = [case.values[1] for case in CHANGES if case.values[0] is CPU and "\n" not in case.values[1].strip("\r\n")]


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_places_do_not_disturb_each_other(lines: list[str], newline: str, is_indented: bool) -> None:
    lines = [line.strip() for line in lines]
    alone = [patched(CPU, line.encode()).decode() for line in lines]
    head, indent = ("def f():" + newline, "    ") if is_indented else ("", "")
    together = head + "".join(indent + line + newline for line in lines)
    assert patched(CPU, together.encode()).decode() == head + "".join(indent + line + newline for line in alone)


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
