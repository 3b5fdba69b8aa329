"""The op device-literals where code chooses between CUDA and the CPU: what somebody asks for stays what he gets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from applied_ops import locate, patched
from test_device_literals import CPU, DML, PATH, SINGLE, ensure_of

from patchlock.model.patch import Refusal
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
        'def f(x, use_cuda):\n    d = x.device\n    if use_cuda:\n        d = "cuda"\n    return d\n',
        'def f(x, use_cuda):\n    d = x.device\n    if use_cuda:\n        d = "mps"\n    return d\n',
        id="a-wish-alone",
    ),
    pytest.param(
        MPS,
        'def f(cuda=False, d="cpu"):\n    if cuda:\n        d = "cuda"\n    return x.to(d)\n',
        'def f(cuda=False, d="cpu"):\n    if cuda:\n        d = "mps"\n    return x.to(d)\n',
        id="a-wish-alone-beside-a-default",
    ),
    pytest.param(
        DML,
        "if args.use_cuda:\n    x = x.cuda()\n",
        'if args.use_cuda:\n    x = x.to("privateuseone:0")\n',
        id="a-wish-on-the-command-line",
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
    pytest.param(
        MPS,
        'd = device or ("cuda" if torch.cuda.is_available() else "cpu")\n',
        'd = device or ("mps")\n',
        id="unless-given",
    ),
    pytest.param(
        XPU,
        'with torch.autocast("cuda", enabled=False), torch.autocast("cuda", torch.float16):\n    f()\n',
        'with torch.autocast("xpu", enabled=False), torch.autocast("cuda", torch.float16):\n    f()\n',
        id="autocast-that-is-switched-off",
    ),
    # libraries that know no other device
    pytest.param(
        MPS,
        'x = OrtValue.ortvalue_from_numpy(a, "cuda", 0)\ns.bind_output(name="y", device_type="cuda")\n',
        'x = OrtValue.ortvalue_from_numpy(a, "cpu", 0)\ns.bind_output(name="y", device_type="cpu")\n',
        id="memory-of-onnx-runtime",
    ),
    pytest.param(
        MPS,
        f'{WHISPER}m = WhisperModel(name, device="cuda", compute_type="float16")\nx.to("cuda")\n',
        f'{WHISPER}m = WhisperModel(name, device="cpu", compute_type="float32")\nx.to("mps")\n',
        id="named",
    ),
    pytest.param(
        XPU,
        "class A:\n    def f(self, d):\n        self.m = ctranslate2.models.Whisper(p, device=d)\nimport ctranslate2\n",
        'class A:\n    def f(self, d):\n        self.m = ctranslate2.models.Whisper(p, device="cpu")\nimport ctranslate2\n',
        id="from-elsewhere",
    ),
    pytest.param(
        MPS,
        f'{WHISPER}device = "cuda" if torch.cuda.is_available() else "cpu"\nm = WhisperModel(name, device)\n'
        'x = torch.load(path, map_location=torch.device("cpu"))\n',
        f'{WHISPER}device = "cuda" if torch.cuda.is_available() else "cpu"\nm = WhisperModel(name, "cpu")\n'
        'x = torch.load(path, map_location=torch.device("cpu"))\n',
        id="a-name-of-torch-beside-a-library-that-knows-only-cuda",
    ),
    pytest.param(
        MPS,
        'w = import_module("faster_whisper")\nm = w.WhisperModel(\n    name,\n    device=self.config.device,\n)\n',
        'w = import_module("faster_whisper")\nm = w.WhisperModel(\n    name,\n    device="cpu",\n)\n',
        id="of-another-file-by-a-module-that-is-asked-for",
    ),
    pytest.param(
        XPU,
        f'{WHISPER}t = "float16" if device != "cpu" else "int8"\nm = WhisperModel(name, device, compute_type=t)\n',
        f'{WHISPER}t = "float16" if device != "cpu" else "int8"\nm = WhisperModel(name, "cpu", compute_type="float32")\n',
        id="half-precision-unless-on-the-cpu",
    ),
    pytest.param(
        XPU,
        "with torch.cuda.amp.autocast(enabled=False), torch.cuda.amp.autocast():\n    f()\n",
        'with torch.autocast("xpu", enabled=False), torch.cuda.amp.autocast():\n    f()\n',
        id="autocast-of-cuda-that-is-switched-off",
    ),
    pytest.param(
        MPS, 'd = ort.OrtDevice.make("cuda", 0)\n', 'd = ort.OrtDevice.make("cpu", 0)\n', id="device-of-onnx-runtime"
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
        'import ctranslate2.models\nd = "cuda" if torch.cuda.is_available() else "cpu"\n'
        'ctranslate2.models.Whisper(p, device="cpu")\n',
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
    pytest.param(
        XPU,
        'def f(x):\n    if torch.cuda.is_available():\n        return "cuda"\n    if x:\n        return "xpu"\n    return "cpu"\n',
        id="it-knows-the-device-later",
    ),
    pytest.param(
        MPS,
        f'{WHISPER}m = WhisperModel(name, device="cuda" if torch.cuda.is_available() else "cpu")\n',
        id="it-knows-the-cpu",
    ),
    pytest.param(
        MPS,
        f'{WHISPER}t = "float16" if torch.cuda.is_available() else "int8"\nm = WhisperModel(name, compute_type=t)\n',
        id="it-knows-the-precision-of-the-cpu",
    ),
    pytest.param(
        MPS,
        'if platform.system() == "Darwin":\n    d = torch.device(f"mps:{n}")\n'
        'elif torch.cuda.is_available():\n    d = torch.device(f"cuda:{n}")\nelse:\n    d = torch.device("cpu")\n',
        id="its-system-is-known",
    ),
    pytest.param(
        MPS,
        'if device == "auto":\n    if torch.cuda.is_available():\n        device = "cuda"\n'
        '    elif torch.backends.mps.is_available():\n        device = "mps"\n'
        'tokens = "cpu" if device == "mps" else device\n',
        id="the-cpu-by-upstreams-choice",
    ),
    pytest.param(CPU, 'f = partial(autocast, "cuda", enabled=False)\n', id="autocast-in-parts"),
    pytest.param(DML, 'has_leak = has_execution_provider("cuda") and version() > 1\n', id="a-provider"),
    pytest.param(MPS, f'{WHISPER}o = {{"device": "cpu"}}\nm = WhisperModel(name, **o)\n', id="a-mapping-with-the-cpu"),
    pytest.param(MPS, f'{WHISPER}o = {{"kinds": 3}}\nm = WhisperModel(o["cuda"], *o, **o)\n', id="no-device"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text"), LEFT)
def test_leaves(op: DeviceLiterals, text: str) -> None:
    located = locate(op, text)
    assert (located.edits, located.refusals) == ((), ())
    assert ensure_of(op).problems(PATH, text.encode()) == ()


def function(body: str, signature: str = "use_gpu=True") -> str:
    """Write a function whose body is indented once here."""
    return f"def f({signature}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


ASK = "torch.cuda.is_available()"
CPU_IF_ASKED = [
    pytest.param(f'if not use_gpu:\n    return "cpu"\nif {ASK}:\n    return "cuda"\nreturn "cpu"', id="two-ends"),
    pytest.param(f'if not use_gpu:\n    return "cpu"\nelif {ASK}:\n    return "cuda"\nreturn "cpu"', id="elif"),
    pytest.param(f'if use_gpu and {ASK}:\n    return "cuda"\nreturn "cpu"', id="one-end"),
    pytest.param(f'if use_gpu:\n    if {ASK}:\n        return "cuda"\nreturn "cpu"', id="nested"),
    pytest.param(f'd = "cpu"\nif use_gpu:\n    if {ASK}:\n        d = "cuda"\nreturn d', id="nested-late"),
    pytest.param(f'if not {ASK} or not use_gpu:\n    d = "cpu"\nelse:\n    d = "cuda"\nreturn d', id="contrary"),
    pytest.param(f'if not {ASK} or not use_gpu:\n    return "cpu"\nreturn "cuda"', id="contrary-end"),
    pytest.param(f'return "cpu" if not {ASK} or not use_gpu else "cuda"', id="contrary-in-one-line"),
    pytest.param(f'return (use_gpu and {ASK} and "cuda") or "cpu"', id="and-or"),
    pytest.param(f'return ["cpu", "cuda"][int(use_gpu and {ASK})]', id="list"),
    pytest.param(f'return {{False: "cpu", True: "cuda"}}[use_gpu and {ASK}]', id="mapping"),
    pytest.param('return "cuda" if use_gpu else "cpu"', id="wish"),
    pytest.param('d = "cpu"\nif use_gpu:\n    d = "cuda"\nreturn d', id="wish-late"),
    pytest.param('gpus = torch.cuda.device_count() if use_gpu else 0\nreturn "cuda" if gpus else "cpu"', id="number"),
]


@pytest.mark.parametrize("body", CPU_IF_ASKED)
def test_without_cuda_the_gpu_is_taken_unless_somebody_asks_for_the_cpu(body: str) -> None:
    after = patched(XPU, function(body).encode())
    names = {"torch": SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False, device_count=lambda: 0))}
    exec(after, names)
    assert [names["f"](use_gpu) for use_gpu in (True, False)] == ["xpu", "cpu"]  # type: ignore[operator]
    assert ensure_of(XPU).problems(PATH, after) == ()


ALONE = [
    pytest.param(f'd = {{True: "cuda", False: "cpu"}}[{ASK}]\n', 'd = "xpu"\n', id="mapping"),
    pytest.param(f'd = torch.device(("cpu", "cuda")[{ASK}])\n', 'd = torch.device("xpu")\n', id="tuple"),
    pytest.param(f'd = {ASK} and "cuda" or "cpu"\n', 'd = "xpu"\n', id="and-or"),
    pytest.param(
        f'd = torch.device("cpu") if not {ASK} else torch.device("cuda")\n', 'd = torch.device("xpu")\n', id="contrary"
    ),
    pytest.param(
        f'if {ASK}:\n    if x:\n        d = f"cuda:{{i}}"\n    else:\n        d = "cuda"\nelse:\n    d = "cpu"\n',
        f'if {ASK}:\n    if x:\n        d = f"cuda:{{i}}"\n    else:\n        d = "cuda"\nelse:\n    d = "xpu"\n',
        id="whichever-card",
    ),
    pytest.param(
        f'd = "cpu"\nif {ASK}:\n    d = "cuda"\nelif mps():\n    d = "mps"\n',
        f'd = "xpu"\nif {ASK}:\n    d = "cuda"\nelif mps():\n    d = "mps"\n',
        id="late-with-another-gpu",
    ),
    pytest.param(
        f'def f():\n    if {ASK}:\n        return "cuda"\n    elif mps():\n        return "mps"\n    return "cpu"\n',
        f'def f():\n    if {ASK}:\n        return "cuda"\n    elif mps():\n        return "mps"\n    return "xpu"\n',
        id="end-with-another-gpu",
    ),
]


ALONE += [
    pytest.param(f'd = "cuda"\nif not {ASK}:\n    d = "cpu"\n', f'd = "xpu"\nif not {ASK}:\n    d = "xpu"\n', id="afterwards"),
    pytest.param(
        f'd, t = ("cuda", f16) if {ASK} else ("cpu", f32)\n', f'd, t = ("cuda", f16) if {ASK} else ("xpu", f32)\n', id="pairs"
    ),
    pytest.param(
        f'd, t = "cpu", f32\nif {ASK}:\n    d, t = "cuda", f16\n', f'd, t = "xpu", f32\nif {ASK}:\n    d, t = "cuda", f16\n', id="late-pairs"
    ),
    pytest.param(
        f'd = "cpu"\na = b = c = e = 1\nprint(a)\nprint(b)\nprint(c)\nif {ASK}:\n    d = "cuda"\n',
        f'd = "xpu"\na = b = c = e = 1\nprint(a)\nprint(b)\nprint(c)\nif {ASK}:\n    d = "cuda"\n',
        id="long-before",
    ),
    pytest.param(
        f'def f(d="cpu"):\n    if {ASK}:\n        d = "cuda"\n    return d\n',
        f'def f(d="xpu"):\n    if {ASK}:\n        d = "cuda"\n    return d\n',
        id="by-default",
    ),
    pytest.param(
        f'def f(device):\n    if not {ASK}:\n        device = "cpu"\n    return device, "cuda"\n',
        f'def f(device):\n    if not {ASK}:\n        device = "xpu"\n    return device, "xpu"\n',
        id="in-spite-of-the-caller",
    ),
    pytest.param(f'def ok():\n    return {ASK}\nd = "cuda" if ok() else "cpu"\n', f'def ok():\n    return {ASK}\nd = "xpu"\n', id="helper"),
    pytest.param('d = "cuda" if shutil.which("nvidia-smi") is not None else "cpu"\n', 'd = "xpu"\n', id="driver"),
    pytest.param(
        'for d in ("cuda", "cpu"):\n    try:\n        x.to(d)\n    except E:\n        continue\n',
        'for d in ("xpu", "cuda", "cpu"):\n    try:\n        x.to(d)\n    except E:\n        continue\n',
        id="loop",
    ),
    pytest.param(
        f'd = ["cpu"]\nif {ASK}:\n    d.insert(0, "cuda")\n',
        'd = ["cpu"]\nif torch.xpu.is_available():\n    d.insert(0, "xpu")\n',
        id="inserted",
    ),
    pytest.param(
        f'if {ASK}:\n    x = x.cuda()\n    torch.cuda.empty_cache()\na = 1\nif {ASK}:\n    y = y.to("cuda")\n',
        'if torch.xpu.is_available():\n    x = x.to("xpu")\n    torch.cuda.empty_cache()\na = 1\nif torch.xpu.is_available():\n    y = y.to("xpu")\n',
        id="moved",
    ),
    pytest.param(
        f'if {ASK}:\n    p.to(torch.device("cuda"))\n',
        'if torch.xpu.is_available():\n    p.to(torch.device("xpu"))\n',
        id="moved-to-a-device-of-torch",
    ),
    pytest.param(
        f'd = "cpu"\nif not cpu:\n    d = "cuda" if {ASK} else d\n',
        'd = "cpu"\nif not cpu:\n    d = "xpu" if torch.xpu.is_available() else d\n',
        id="else-what-it-was",
    ),
    pytest.param(
        f"if {ASK}:\n    net = net.cuda()\nnet(x.cuda() if {ASK} else x)\n",
        'if torch.xpu.is_available():\n    net = net.to("xpu")\nnet(x.to("xpu") if torch.xpu.is_available() else x)\n',
        id="moved-in-an-expression",
    ),
    pytest.param(
        f"u = True if {ASK} else False\nif u:\n    x = x.cuda(0)\n",
        f'u = True if {ASK} else False\nif torch.xpu.is_available():\n    x = x.to("xpu")\n',
        id="answer-in-other-words",
    ),
    pytest.param(
        f'def f():\n    if {ASK}:\n        return "cuda"\n    if mps():\n        return "mps"\n    else:\n        return "cpu"\n',
        f'def f():\n    if {ASK}:\n        return "cuda"\n    if mps():\n        return "mps"\n    else:\n        return "xpu"\n',
        id="another-gpu-and-then-the-cpu",
    ),
    pytest.param('from torch.cuda import is_available as ok\nd = "cuda" if ok() else "cpu"\n', 'from torch.cuda import is_available as ok\nd = "xpu"\n', id="by-another-name"),
    pytest.param(
        f'd = next(d for d in ["cpu", "cuda"] if d != "cuda" or {ASK})\n',
        f'd = next(d for d in ["cpu", "xpu", "cuda"] if d != "cuda" or {ASK})\n',
        id="the-first-that-fits",
    ),
    pytest.param('KINDS = ["cuda", "cpu"]\nd = next(filter(works, KINDS))\n', 'KINDS = ["xpu", "cuda", "cpu"]\nd = next(filter(works, KINDS))\n', id="list-by-name"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ALONE)
def test_where_cuda_alone_decides_the_gpu_is_taken(before: str, after: str) -> None:
    assert patched(XPU, before.encode()).decode() == after
    assert ensure_of(XPU).problems(PATH, before.encode())
    assert ensure_of(XPU).problems(PATH, after.encode()) == ()


LOST = [
    pytest.param(f'for d in ("cuda", "cpu"):\n    if d == "cpu" or {ASK}:\n        break\n', 1, id="loop"),
    pytest.param(
        f"x = load()\nif {ASK}:\n    x = x.cuda()\n    torch.cuda.current_stream().wait()\n", 3, id="with-a-stream"
    ),
    pytest.param(f'if not {ASK}:\n    raise E\nx.to("cuda")\n', 3, id="nothing-else"),
    pytest.param("if torch.cuda.device_count() > 1:\n    m = DataParallel(m).cuda()\n", 2, id="several-cards"),
]


@pytest.mark.parametrize(("text", "line"), LOST)
def test_what_only_cuda_reaches_is_refused(text: str, line: int) -> None:
    located = locate(XPU, text)
    assert not located.edits
    assert [one.line for one in located.refusals] == [line]
    assert [one.partition(":")[0] for one in ensure_of(XPU).problems(PATH, text.encode())] == [f"line {line}"]
    assert not locate(CPU, text).refusals


SEEN_BY_THE_ENSURE = [
    pytest.param('try:\n    torch.cuda.init()\n    d = "xpu"\nexcept Exception:\n    d = "cpu"\n', 5, id="tried"),
    pytest.param('K = {True: "xpu", False: "cpu"}\nd = K[' + ASK + "]\n", 2, id="table"),
    pytest.param('K = {1: "xpu"}\nd = K.get(torch.cuda.device_count(), "cpu")\n', 2, id="table-with-a-default"),
    pytest.param(f'K = ["cpu", "cuda"]\nd = K[int({ASK})]\n', 1, id="numbered"),
    pytest.param(f'd = max(("cpu", 0), ("cuda", {ASK}), key=second)[0]\n', 1, id="greatest"),
    pytest.param(f'for d, ok in [("cuda", {ASK}), ("cpu", True)]:\n    if ok:\n        break\n', 1, id="pairs"),
    pytest.param(f'GPU = "xpu"\nCPU = "cpu"\nd = GPU if {ASK} else CPU\n', 3, id="named"),
    pytest.param(f'def f():\n    if {ASK}:\n        return GPU\n    return CPU\nGPU = "xpu"\nCPU = "cpu"\n', 4, id="returned"),
    pytest.param(f'd = next((d for d in ["xpu", "cpu"] if {ASK}), "cpu")\n', 1, id="passed-over"),
    # by way of names, functions, parameters, options and variables
    pytest.param('d = [f"cuda:{i}" for i in range(torch.cuda.device_count())] or ["cpu"]\n', 1, id="or"),
    pytest.param(f'rank = torch.cuda.current_device() if {ASK} else "cpu"\n', 1, id="number-of-the-card"),
    pytest.param('from torch.cuda import is_available as ok\nd = "xpu" if ok() else "cpu"\n', 2, id="imported"),
    pytest.param(f'def f(gpu):\n    return "xpu" if gpu else "cpu"\nf({ASK})\n', 2, id="parameter"),
    pytest.param('d = "xpu" if os.environ.get("CUDA_VISIBLE_DEVICES", "") not in ("", "-1") else "cpu"\n', 1, id="variable"),
    pytest.param(f'ok = os.getenv("A", str({ASK})).lower() in ("1", "true")\nd = "xpu" if ok else "cpu"\n', 2, id="name"),
    pytest.param(f'p.add_argument("--gpu", default=int({ASK}) - 1)\nd = "xpu" if a.gpu >= 0 else "cpu"\n', 2, id="option"),
    pytest.param(f"m = pipeline(device=0 if {ASK} else -1)\n", 1, id="no-card"),
    pytest.param(f'K = dict(gpu="xpu", cpu="cpu")\nkind = "gpu" if {ASK} else "no"\nd = K[kind]\n', 3, id="key"),
    pytest.param(f'm = [M("xpu" if g else "cpu") for g in [False] + [True] * int({ASK})]\n', 1, id="walked"),
    pytest.param(f'ok = int({ASK}) + 0\nif ok:\n    d = "xpu"\nelse:\n    d = "cpu"\n', 5, id="statement"),
    pytest.param(f"r = Reader(gpu={ASK})\n", 1, id="told-to-another"),
    pytest.param(f'class A:\n    gpu: bool = {ASK}\nd = "xpu" if a.gpu is True else "cpu"\n', 3, id="field"),
    pytest.param(f'@property\ndef ok(self):\n    return {ASK}\nd = "xpu" if a.ok else "cpu"\n', 4, id="property"),
    pytest.param(f'ok = lambda: {ASK}\nd = "xpu" if ok() else "cpu"\n', 2, id="lambda"),
    pytest.param('d = "xpu" if getattr(torch, "cuda").is_available() else "cpu"\n', 1, id="by-a-text"),
    pytest.param('d = "xpu" if torch.backends.cuda.is_built() else "cpu"\n', 1, id="built"),
    pytest.param('d = "xpu" if run(["nvidia-smi"]).returncode == 0 else "cpu"\n', 1, id="driver"),
    pytest.param(f'm = load(map_location=None if {ASK} else "cpu")\nm.eval()\nm(x)\n', 1, id="never-moved"),
    pytest.param('d = "xpu" if os.path.exists("/dev/nvidia0") else "cpu"\n', 1, id="file-of-the-driver"),
]  # fmt: skip


DECIDES_NO_DEVICE = [
    f'p.load(map_location=None if {ASK} else "cpu")\n',
    f'm = load(map_location=None if {ASK} else "cpu")\nm.to(d)\nm(x)\n',
    f'print("xpu" if ok else "cpu", f"{{\'GPU\' if {ASK} else \'cpu\'}}")\n',
    f'n = int({ASK}) + int(torch.xpu.is_available())\nd = "xpu" if n else "cpu"\n',
    f"f(dtype=f16 if {ASK} else f32, pin_memory={ASK})\n",
]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('torch.autocast("cuda", enabled=False)\n', "it switches autocast off for CUDA alone; name `xpu` there"),
        (
            f'if {ASK}:\n    torch.set_default_tensor_type("torch.cuda.FloatTensor")\n',
            "it takes a GPU only where there is CUDA; let it take `xpu` there",
        ),
        ('s.bind_output("y", "xpu")\n', "it gives s.bind_output a device that it does not know"),
        (
            f'torch.xpu.is_available()\nx = x.to("xpu")\nf(y.cuda() if {ASK} else y)\n',
            "it takes a GPU only where there is CUDA; let it take `xpu` there",
        ),
    ],
)
def test_the_ensure_sees_what_has_no_effect_on_the_device(text: str, why: str) -> None:
    assert ensure_of(XPU).problems(PATH, text.encode()) == (f"line {text.count(chr(10))}: {why}",)


@pytest.mark.parametrize("text", DECIDES_NO_DEVICE)
def test_the_ensure_bears_an_answer_that_decides_no_device(text: str) -> None:
    assert ensure_of(XPU).problems(PATH, text.encode()) == ()


@pytest.mark.parametrize(("text", "line"), SEEN_BY_THE_ENSURE)
def test_the_ensure_sees_that_the_device_is_not_reached(text: str, line: int) -> None:
    why = "it takes the CPU where there is no CUDA; let it take `xpu` there"
    assert f"line {line}: {why}" in ensure_of(XPU).problems(PATH, text.encode())


REFUSED = [
    pytest.param(f'use_gpu = use_gpu and {ASK}\nreturn "cuda" if use_gpu else "cpu"', 3, id="answer"),
    pytest.param(f'use_gpu &= {ASK}\nif use_gpu:\n    d = "cuda"\nelse:\n    d = "cpu"\nreturn d', 3, id="answer-added"),
    pytest.param(f'def g(d="cpu", no=False):\n    if {ASK} and not no:\n        d = "cuda"\n    return d', 2, id="default"),
    pytest.param(f'no_gpu = not use_gpu or not {ASK}\nreturn "cpu" if no_gpu else "cuda"', 3, id="contrary-answer"),
    pytest.param(f'if not {ASK}:\n    use_gpu = False\nreturn "cuda" if use_gpu else "cpu"', 4, id="answer-before"),
    pytest.param(
        f'if use_gpu and not {ASK}:\n    use_gpu = False\nif use_gpu and {ASK}:\n    return "cuda"\nreturn "cpu"',
        6,
        id="wish-that-is-an-answer",
    ),
    pytest.param(f'ok = False\nif {ASK}:\n    ok = True\nreturn "cuda" if ok else "cpu"', 5, id="answer-by-branches"),
    pytest.param(f'gpu = True if {ASK} or no else use_gpu\nreturn "cuda" if gpu else "cpu"', 3, id="answer-or-wish"),
    pytest.param('return "cuda" if (torch.cuda.device_count() > 0) * use_gpu else "cpu"', 2, id="product"),
    pytest.param(f'return use_gpu and {ASK} and "cuda" or device or "cpu"', 2, id="and-or-or"),
    pytest.param(f'return device or ({ASK} and "cuda") or "cpu"', 2, id="or-and-or"),
    pytest.param(f'return {{True: "cuda", False: "cpu"}}.get({ASK})', 2, id="lookup"),
    pytest.param(
        f'match use_gpu, {ASK}:\n    case True, True:\n        return "cuda"\n    case _:\n        return "cpu"', 2, id="match"
    ),
    pytest.param(f'return "cuda" if {ASK} and ask() else "cpu"', 2, id="call-that-cannot-be-repeated"),
    pytest.param(f'd = "cpu"\ngpu = load()\nif gpu and {ASK}:\n    d = "cuda"', 2, id="what-is-not-known-yet"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "line"), REFUSED)
def test_refuses_where_the_gpu_could_not_be_reached(body: str, line: int) -> None:
    why = "without CUDA it takes no other GPU, and no edit of this choice alone is right"
    assert locate(XPU, function(body)).refusals == (Refusal.ambiguous(line, why),)


def test_refuses_a_wish_of_another_function() -> None:
    asked = f"class A:\n    def f(self, cpu):\n        self.cuda = {ASK} and not cpu\n"
    assert [
        one.line
        for one in locate(MPS, asked + '    def g(self):\n        return "cuda" if self.cuda else "cpu"\n').refusals
    ] == [5]


def test_a_device_that_was_chosen_is_no_answer_about_cuda() -> None:
    text = (
        'if device == "auto":\n    if torch.cuda.is_available():\n        device = "cuda:0"\n    else:\n        device = "cpu"\n'
        'elif device == "cuda":\n    device = "cuda:0"\nelse:\n    device = "cpu"\n'
    )
    assert locate(XPU, text).refusals == ()
    assert b'else:\n        device = "xpu"\nelif' in patched(XPU, text.encode())


REACHED = [
    pytest.param(f'return "cuda" if use_gpu or {ASK} else "cpu"', id="without-cuda-too"),
    pytest.param(f'gpu = {ASK}\nif use_gpu:\n    gpu = True\nreturn "cuda" if gpu else "cpu"', id="given-anew"),
    pytest.param(f'if use_gpu and not {ASK}:\n    raise E\nreturn "cuda" if use_gpu else "cpu"', id="complaint"),
]


@pytest.mark.parametrize("body", REACHED)
def test_does_not_refuse_what_can_be_reached(body: str) -> None:
    assert b'return "xpu" if' in patched(XPU, function(body).encode())


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (f'if not {ASK}:\n    return "cpu"\nreturn "cuda"', 3),
        (f'if {ASK}:\n    return "cuda"\nreturn "cpu"', 4),
        (f'return "cpu" if not {ASK} else "cuda"', 2),
    ],
)
def test_the_ensure_sees_the_cpu_in_any_order(body: str, line: int) -> None:
    problems = ensure_of(MPS).problems(PATH, function(body).encode())
    assert problems == (f"line {line}: it takes the CPU where there is no CUDA; let it take `mps` there",)


def test_on_the_cpu_a_choice_stays_as_it_is() -> None:
    assert locate(CPU, chosen("use_gpu and torch.cuda.is_available()")).edits == ()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('WhisperModel(name, device="mps")', "it gives faster_whisper.WhisperModel a device that it does not know"),
        (
            "WhisperModel(name, device)",
            "it gives faster_whisper.WhisperModel a device that it may not know; let it be `cpu`",
        ),
        (
            'WhisperModel(name, compute_type="float16")',
            "it lets faster_whisper.WhisperModel compute in half precision, which it refuses on the CPU",
        ),
        ("torch.cuda.amp.autocast(enabled=False)", "it switches autocast off for CUDA alone; name `mps` there"),
    ],
)
def test_the_ensure_sees_what_a_library_is_told_wrong(line: str, why: str) -> None:
    assert ensure_of(MPS).problems(PATH, f"{WHISPER}{line}\n".encode()) == (f"line 2: {why}",)


def test_a_mapping_that_holds_the_device_of_a_library_is_refused() -> None:
    text = f'{WHISPER}o = {{"device": "cuda"}}\nm = WhisperModel(name, **o)\n'
    assert [one.line for one in locate(MPS, text).refusals] == [3]
    assert ensure_of(MPS).problems(PATH, text.replace("cuda", "mps").encode()) == (
        "line 3: it gives faster_whisper.WhisperModel a device that stands in a mapping; name `cpu` in the call",
    )


def move(test: str, moved: str = "self.m.cuda()", other: str = "    else:\n        self.m = self.m.cpu()\n") -> str:
    """Write a function that moves a model if a device that another file gives is CUDA."""
    return f"def f(self):\n    if {test}:\n        self.m = {moved}\n{other}"


METAL_FIRST = 'self.d == "mps":\n        self.m = self.m.to("mps")\n    elif '


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [
        (XPU, move(METAL_FIRST + 'self.d == "cuda"'), move(METAL_FIRST + 'self.d == "xpu"', 'self.m.to("xpu")')),
        (
            DML,
            move('self.d.type == "cuda"', other=""),
            move('self.d.type == "privateuseone"', 'self.m.to("privateuseone:0")', ""),
        ),
        (
            XPU,
            move('self.d in ("cuda", "mps")', 'self.m.to("cuda")'),
            move('self.d in ("xpu", "cuda", "mps")', 'self.m.to("xpu")'),
        ),
        (
            MPS,
            'm = m.cpu() if not d.startswith("cuda") else m.cuda()\n',
            'm = m.cpu() if not d.startswith("mps") else m.to("mps")\n',
        ),
    ],
    ids=["behind-metal", "type", "one-of-several", "expression"],
)
def test_what_a_compared_device_moves_goes_to_the_machines_device(op: DeviceLiterals, before: str, after: str) -> None:
    assert any("stays on the CPU" in one for one in ensure_of(op).problems(PATH, before.encode()))
    assert patched(op, before.encode()).decode() == after
    assert not ensure_of(op).problems(PATH, after.encode())


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (MPS, move(METAL_FIRST + 'self.d == "cuda"')),
        (XPU, move('self.d == "cuda"', other="    else:\n        self.m = self.m.to(self.d)\n")),
        (XPU, move('self.d == "cuda"', other="    self.m = self.m.to(self.d)\n")),
        (CPU, move('self.d == "cuda"')),
    ],
    ids=["own", "generic", "generic-behind", "cpu"],
)
def test_what_is_moved_anyhow_stays_as_it_is(op: DeviceLiterals, text: str) -> None:
    located = locate(op, text)
    assert (located.edits, located.refusals) == ((), ())
    assert not ensure_of(op).problems(PATH, text.encode())


def test_what_moves_only_to_cuda_among_other_things_is_refused() -> None:
    text = move('self.d == "cuda" and torch.cuda.is_available()')
    assert [one.line for one in locate(XPU, text).refusals] == [2]
    assert ensure_of(XPU).problems(PATH, text.encode())


CHOICE = """\
class A:
    def __init__(self):
        self.device = self.get_device()
        print(f"on {self.device}")

    def get_device(self):
        if torch.cuda.is_available():
            return "cuda"
        return "auto"

    def load(self):
        self.compute_type = "float16" if self.device == "cuda" else "int8"
        self.model = WhisperModel("a", device=self.device)
"""


@pytest.mark.parametrize("op", [XPU, DML], ids=["xpu", "directml"])
def test_a_device_that_only_a_library_for_cuda_takes_is_the_cpus(op: DeviceLiterals) -> None:
    told = CHOICE.replace("device=self.device", 'device="cpu"')
    assert patched(op, (WHISPER + CHOICE).encode()).decode() == WHISPER + told
    assert not ensure_of(op).problems(PATH, (WHISPER + told).encode())


@pytest.mark.parametrize("op", [XPU, DML], ids=["xpu", "directml"])
def test_a_device_that_something_else_takes_too_is_the_machines(op: DeviceLiterals) -> None:
    text = WHISPER + CHOICE + "        self.other = Other().to(self.device)\n"
    assert f'return "{op.device}"' in patched(op, text.encode()).decode()
    assert ensure_of(op).problems(PATH, text.replace("device=self.device", 'device="cpu"').encode())


@pytest.mark.parametrize(
    "choice",
    [
        "p = torch.{} if half else torch.{}\n",
        "if half:\n    p = torch.{}\nelse:\n    p = torch.{}\n",
        "if half:\n    p = torch.{}\nelif old:\n    p = None\nelse:\n    p = torch.{}\n",
    ],
    ids=["expression", "statement", "chain"],
)
def test_what_is_chosen_beside_half_precision_becomes_single_too(choice: str) -> None:
    text = choice.format("half", "bfloat16")
    assert patched(SINGLE, text.encode()).decode() == choice.format("float32", "float32")
    assert not locate(SINGLE, choice.format("float32", "bfloat16")).edits


def test_where_single_precision_can_be_chosen_another_choice_stays() -> None:
    text = "p = torch.half if half else torch.bfloat16 if brain else torch.float32\n"
    assert patched(SINGLE, text.encode()).decode() == text.replace("torch.half", "torch.float32")


def option(more: str = "") -> str:
    """Write a program that offers devices in an option."""
    return f'p.add_argument("--device", choices=["auto", "cpu", "cuda"]{more})\n'


@pytest.mark.parametrize("op", [XPU, DML, MPS], ids=["xpu", "directml", "mps"])
@pytest.mark.parametrize(
    "text",
    [
        option(', help="Device to use for CTranslate2 inference"'),
        f'{WHISPER}{option()}a = p.parse_args()\nm = WhisperModel(n, device="cpu", threads=a.threads)\n',
    ],
    ids=["it-says-so", "it-goes-nowhere-else"],
)
def test_an_option_for_a_library_for_cuda_offers_no_other_device(op: DeviceLiterals, text: str) -> None:
    assert not locate(op, text).edits
    assert not ensure_of(op).problems(PATH, text.encode())


def test_an_option_that_something_else_reads_offers_the_machines_device() -> None:
    for more in ("x.to(a.device)\n", 'x.to(vars(a)["device"])\n'):
        text = f'{WHISPER}{option()}m = WhisperModel(n, device="cpu")\n{more}'
        assert b'["auto", "cpu", "xpu", "cuda"]' in patched(XPU, text.encode())
        assert ensure_of(XPU).problems(PATH, text.encode())
