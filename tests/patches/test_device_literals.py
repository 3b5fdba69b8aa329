"""The op device-literals: what must change, alone and together, and that it settles."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from applied_ops import patched
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.model.text_files import SourceText
from patchlock.patches.ops._device.op import DeviceLiterals
from patchlock.patches.postconditions._device import WithoutCuda

PATH = PurePosixPath("a.py")
CPU = DeviceLiterals()
DML = DeviceLiterals(device="privateuseone:0")
ALWAYS = DeviceLiterals(always=True)
SINGLE = DeviceLiterals(precision="single")
ONNX = DeviceLiterals(providers=("DmlExecutionProvider", "CPUExecutionProvider"))


def ensure_of(op: DeviceLiterals) -> WithoutCuda:
    return WithoutCuda(device=op.device, always=op.always, precision=op.precision)


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
    pytest.param(
        DML,
        "x = y.cuda().type(torch.cuda.HalfTensor).sum()\n",
        'x = y.to("privateuseone:0").type(torch.HalfTensor).to("privateuseone:0").sum()\n',
        id="type-moved",
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
    # of what keeps its "cuda", a test says nothing about the device
    pytest.param(
        CPU,
        'backend = "cuda"\nif backend == "cuda": x.cuda(rank, non_blocking=True)\n',
        'backend = "cuda"\nif backend == "cuda": x.to("cpu", non_blocking=True)\n',
        id="backend",
    ),
    pytest.param(
        CPU,
        'def f(x, mode="cuda"):\n    return x.cuda(rank) if mode.startswith("cuda") else x\n',
        'def f(x, mode="cuda"):\n    return x.to("cpu") if mode.startswith("cuda") else x\n',
        id="mode",
    ),
    # a computed card
    pytest.param(CPU, "x.cuda(rank + 1, non_blocking=f())\n", 'x.to("cpu", non_blocking=f())\n', id="computed-card"),
    pytest.param(CPU, "x.cuda(dist.get_rank())\n", 'x.to("cpu")\n', id="rank-asked"),
    pytest.param(DML, "f(x).cuda(ids[0]).g()\n", 'f(x).to("privateuseone:0").g()\n', id="card-of-a-list"),
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
        'with torch.autocast(d, torch.float16, enabled=d != "cpu"):\n    x.half()\n',
        'with torch.autocast(d, torch.float16, enabled=d != "cpu"):\n    x.float()\n',
        id="single-precision-but-where-autocast-is-off",
    ),
    pytest.param(
        SINGLE,
        'with torch.autocast(device_type="cuda" if a() else "xpu", dtype=torch.float16):\n    x.half()\n'
        "with torch.cuda.amp.autocast(dtype=torch.float16):\n    x.half()\n",
        'with torch.autocast(device_type="cuda" if a() else "xpu", dtype=torch.float16):\n    x.float()\n'
        "with torch.cuda.amp.autocast(dtype=torch.float16):\n    x.float()\n",
        id="single-precision-but-in-an-autocast-of-another-device",
    ),
    pytest.param(
        SINGLE,
        "with torch.autocast(device_type=d, dtype=torch.float16), torch.autocast('cpu', torch.half):\n    f()\n",
        "with torch.autocast(device_type=d, dtype=torch.float32), torch.autocast('cpu', torch.float32):\n    f()\n",
        id="single-precision-in-an-autocast-of-this-device",
    ),
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
        SINGLE,
        'p.add_argument("--compute-type", default="float16", choices=["float16", "int8"])\n',
        'p.add_argument("--compute-type", default="float32", choices=["float16", "int8"])\n',
        id="single-precision-of-an-option",
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


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_lines_and_the_look_at_its_own_result_are_those_of_locate(op: DeviceLiterals, before: str, after: str) -> None:
    source, result = (SourceText(path=PATH, text=text, encoding="utf-8", bom=b"") for text in (before, after))

    found = op.locate(source)

    assert op.lines(source) == {one.line for one in (*found.sites, *found.refusals)}
    assert found.after == op.locate(result)


LINES = [case.values[1] for case in CHANGES if case.values[0] is CPU and "\n" not in case.values[1].strip("\r\n")]


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_places_do_not_disturb_each_other(lines: list[str], newline: str, is_indented: bool) -> None:
    lines = [line.strip() for line in lines]
    alone = [patched(CPU, line.encode()).decode() for line in lines]
    head, indent = ("def f():" + newline, "    ") if is_indented else ("", "")
    together = head + "".join(indent + line + newline for line in lines)
    assert patched(CPU, together.encode()).decode() == head + "".join(indent + line + newline for line in alone)
