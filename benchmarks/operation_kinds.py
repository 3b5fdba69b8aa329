"""Read which operations of torch the apps' models call, and which of them `verify` computes; writes one report.

`PATCHLOCK_UPSTREAMS` names a folder of clones; they are read at the commits of the catalogue. The model code that lies
in dependencies comes from the package index, in the versions that the lockfiles have. Nothing of it is run: it is
parsed. A kind is an operation by its name in torch, however it is spelled: `nn.Conv1d`, `F.conv1d` and `torch.conv1d`
are `conv1d`, `x.softmax()` and `nn.Softmax` are `softmax`.

What the kernels compute is read in the same way from their own code, so that none can be said to prove what it does not
call. What they compare with, `inputs.py` and `references.py`, does not count. Of torchaudio only a model is read: what
apps take from its functions, spectrograms and resampling, are transforms and convolutions.
"""

from __future__ import annotations

import argparse
import ast
import collections
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "installer" / "patchlock" / "verify" / "_children" / "patchlock_kernels"
REPORT = ROOT / "benchmarks" / "reports" / "operation-kinds.md"
_XTTS = (
    "TTS/tts/layers/xtts",
    "TTS/tts/layers/tortoise",
    "TTS/tts/models/xtts.py",
    "TTS/encoder",
    "TTS/vocoder/models/hifigan",
)


@dataclass(frozen=True)
class App:
    """A torch app: its clone, and the folders of its dependencies that have the code of its models."""

    clone: str
    dependencies: dict[str, tuple[str, ...]]


APPS = {
    "advanced-rvc-inference": App(
        "ArkanDash+Advanced-RVC-Inference",
        {"transformers": ("transformers/models/hubert",), "einops": ("einops",)},
    ),
    "amphion": App(
        "open-mmlab+Amphion",
        {
            "transformers": (
                "transformers/models/llama",
                "transformers/models/wav2vec2_bert",
                "transformers/models/roberta",
            ),
            "encodec": ("encodec",),
            "julius": ("julius",),
        },
    ),
    "diffrhythm2": App(
        "ASLP-lab+DiffRhythm2",
        {
            "transformers": (
                "transformers/models/llama",
                "transformers/models/xlm_roberta",
                "transformers/models/bert",
            ),
            "muq": ("muq",),
            "nnaudio": ("nnAudio",),
            "torchdiffeq": ("torchdiffeq",),
            "x-clip": ("x_clip",),
        },
    ),
    "rvc-python": App(
        "daswer123+rvc-python",
        {"torchcrepe": ("torchcrepe",), "torchaudio": ("torchaudio/models/wav2vec2",)},
    ),
    "xtts-webui": App(
        "daswer123+xtts-webui",
        {"coqui-tts": _XTTS, "transformers": ("transformers/models/gpt2",), "encodec": ("encodec",)},
    ),
}

NOT_RUN = re.compile(
    r"(^|[/_])(tests?|train|trainers?|training|loss|losses|optim|optimizers?|datasets?|preprocessors?|evaluation"
    r"|metrics|discriminators?|schedulers|lr_schedulers?|distorter|demos?|setup|bins|visualization|onnx|tf|flax)([/_.]|$)"
)
"""Paths that inference does not reach: training, data sets, and other frameworks."""

_SPELLINGS = {
    "abs": "absolute",
    "adaptive_avg_pool": "adaptive_avg_pool2d adaptive_avg_pool1d",
    "adaptive_max_pool": "adaptive_max_pool1d",
    "allclose": "isclose equal",
    "batch_norm": "batch_norm1d batch_norm2d sync_batch_norm",
    "cat": "concat concatenate",
    "clamp": "clip clamp_min clamp_max clip_",
    "div": "divide true_divide floor_divide",
    "embedding": "embedding_bag",
    "fill": "zeros ones full zeros_like ones_like full_like zero new_zeros new_ones new_full",
    "ge": "greater_equal",
    "gelu": "ge_lu",
    "gru": "gru_cell",
    "gt": "greater",
    "hardtanh": "hard_tanh",
    "instance_norm": "instance_norm1d instance_norm2d",
    "interpolate": "upsample upsample_nearest",
    "le": "less_equal",
    "leaky_relu": "leaky_re_lu",
    "log_softmax": "log_soft_max",
    "logical": "logical_and logical_or logical_not bitwise_not bitwise_and logical_xor",
    "lstm": "lstm_cell",
    "lt": "less",
    "matmul": "mm __matmul__",
    "max": "amax maximum",
    "min": "amin minimum",
    "mul": "multiply",
    "multi_head_attention": "multi_head_attention_forward multihead_attention",
    "ne": "not_equal",
    "neg": "negative",
    "nonzero": "argwhere",
    "norm": "vector_norm",
    "outer": "ger",
    "pad": (
        "reflection_pad1d reflection_pad2d zero_pad2d constant_pad1d constant_pad2d constant_pad_nd replication_pad1d"
    ),
    "pow": "square",
    "prelu": "p_re_lu p_relu",
    "rand": "rand_like uniform",
    "randint": "randint_like",
    "randn": "normal randn_like",
    "relu": "re_lu",
    "relu6": "re_lu6",
    "remainder": "fmod",
    "repeat": "tile",
    "scaled_dot_product_attention": "transformer_encoder_layer",
    "sigmoid": "expit",
    "silu": "si_lu swish",
    "softmax": "soft_max",
    "std": "std_mean",
    "sub": "subtract",
    "trunc": "fix",
    "unique": "unique_consecutive",
    "var": "var_mean",
    "view": "movedim",
}
"""Kind → what else it is called, in the snake case of a module's name too."""
SPELLED = {spelling: kind for kind, words in _SPELLINGS.items() for spelling in words.split()}

NO_KERNEL = frozenset(
    """
    view reshape permute transpose t squeeze unsqueeze expand expand_as view_as flatten unflatten chunk split
    unbind narrow select unfold diagonal as_strided view_as_real view_as_complex real imag swapaxes movedim
    moveaxis size dim numel is_tensor broadcast_to broadcast_tensors stride atleast_1d atleast_2d hsplit
    tensor_split is_complex is_floating_point detach contiguous clone item tensor as_tensor from_numpy asarray
    empty empty_like new_empty new_tensor load save frombuffer to cpu cuda half float bfloat16 numpy tolist copy
    type type_as long int double device dtype generator manual_seed seed no_grad inference_mode enable_grad
    set_grad_enabled grad lazy_module_mixin uninitialized_parameter complex32 categorical size_type tensor_type
    get_device_properties set_printoptions finfo iinfo compile set_num_threads get_num_threads set_default_dtype
    autocast parameter parameters module module_list module_dict sequential parameter_list parameter_dict identity
    data_parallel distributed_data_parallel is_autocast_enabled get_autocast_gpu_dtype
    set_float32_matmul_precision use_deterministic_algorithms get_default_dtype set_default_device is_grad_enabled
    get_rng_state set_rng_state set_default_tensor_type promote_types result_type buffer module_type
    is_inference_mode_enabled is_storage dropout dropout1d dropout2d alpha_dropout feature_alpha_dropout
    weight_norm remove_weight_norm spectral_norm
    """.split()  # noqa: SIM905 - words are easier to read than a list of them
)
"""Names of torch that start no computation on a device: views, data of the host, settings, what is of training."""

NOT_ASKED = re.compile(
    r"\.(init|optim|utils|cuda|backends|jit|distributed|multiprocessing|autograd|version|amp|library|ops|hub|onnx"
    r"|profiler|_[a-z]\w*|overrides"
    r"|serialization|storage|compiler|testing|random|types|mps|xpu|hip|npu|quantization|ao|export|fx|package|nested|sparse|hooks|futures)(\.|$)"
)
"""Parts of torch that are no operations."""

METHODS = frozenset(
    """
    abs acos add addmm amax amin angle argmax argmin argsort atan2 baddbmm bernoulli bincount bmm bucketize ceil
    clamp clip conj cos cosh cummax cumprod cumsum diff div einsum eq erf exp expm1 exponential_ flip floor
    floor_divide fmod frac gather ge gt index_add index_add_ index_copy_ index_fill index_fill_ index_select
    index_put_ isinf isnan kthvalue le lerp log log10 log1p log2 log_softmax logical_and logical_not logical_or
    logsumexp lt masked_fill masked_fill_ masked_scatter_ masked_select matmul mean median mm mul mul_ multinomial
    ne neg nonzero norm normal_ pow prod quantile reciprocal relu remainder repeat repeat_interleave roll round
    rsqrt scatter scatter_ scatter_add scatter_add_ sigmoid sign sin sinh softmax sqrt square std stft istft sub
    sum tanh topk tril triu uniform_ unique var zero_ fill_ clamp_ add_ div_ sub_ exp_ sigmoid_ tanh_ clamp_min
    clamp_max new_zeros new_ones new_full where any all max min conj_physical outer log_ random_
    """.split()  # noqa: SIM905 - words are easier to read than a list of them
)
"""Methods of tensors that compute; `split`, `sort` and `index` are those of strings and lists too, and do not count."""


@dataclass
class Calls:
    """What some code calls."""

    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    arguments: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    """Kind → `dilation=3` and others that are written there as numbers."""
    dtypes: collections.Counter[str] = field(default_factory=collections.Counter)
    files: int = 0


def kind_of(name: str) -> str | None:
    """Give the kind of a dotted name of torch; None where it is none."""
    last = name.rpartition(".")[2]
    if (
        NOT_ASKED.search(name)
        or not last
        or (last.isupper() and last not in {"GRU", "LSTM", "GELU", "ELU", "SELU", "CELU", "RNN", "GLU"})
    ):
        return None
    if not last.isupper():
        last = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", last)
    last = last.lower().strip("_")
    last = SPELLED.get(last, SPELLED.get(last.replace("_lu", "lu"), last))
    if name.startswith("torch.fft."):
        last = f"fft_{last.strip('_')}"
    if last in NO_KERNEL or last.endswith(("_tensor", "loss", "entropy", "_scheduler", "kl_div")) or last in _TYPES:
        return None
    return last


_TYPES = frozenset(
    """
    bfloat16 bool cdouble cfloat channels_last complex128 complex64 contiguous_format double fft float float16
    float32 float64 functional half int int16 int32 int64 int8 linalg long memory_format nn preserve_format quint8
    short size special storage strided tensor uint8
    """.split()  # noqa: SIM905 - words are easier to read than a list of them
)


class _Reader(ast.NodeVisitor):
    """Collects the operations of one file."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.names: dict[str, str] = {}
        """Name in the file → dotted name of torch, or "" for another module."""

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            is_torch = alias.name == "torch" or alias.name.startswith("torch.")
            bound = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else alias.name.partition(".")[0]
            self.names[bound] = target if is_torch else ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            is_torch = not node.level and (module == "torch" or module.startswith("torch."))
            self.names[alias.asname or alias.name] = f"{module}.{alias.name}" if is_torch else ""

    def dotted(self, node: ast.expr) -> str:
        """Resolve `F.conv1d` to `torch.nn.functional.conv1d`; "" where it is not torch's."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                base = self.dotted(value)
                return f"{base}.{attr}" if base else ""
        return ""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.dotted(node)
        if name in {"torch.float16", "torch.half", "torch.bfloat16", "torch.float64", "torch.double"}:
            self.calls.dtypes[name] += 1
        elif name:
            self._count(name)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self.names.get(node.id, "").startswith("torch."):
            self._count(self.names[node.id])

    def visit_Call(self, node: ast.Call) -> None:
        name = self.dotted(node.func)
        kind = kind_of(name) if name else None
        if not name and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"half", "bfloat16"}:
                self.calls.dtypes[node.func.attr] += 1
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value  # type: ignore[assignment]
            is_module = isinstance(root, ast.Name) and self.names.get(root.id) == "" and root.id not in {"self", "x"}
            if node.func.attr in METHODS and not is_module:
                kind = kind_of(f"torch.{node.func.attr}")
                if kind:
                    self.calls.kinds[kind] += 1
        if kind:
            for one in node.keywords:
                if one.arg and isinstance(one.value, ast.Constant) and isinstance(one.value.value, int | str):
                    self.calls.arguments[kind][f"{one.arg}={one.value.value}"] += 1
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult):
            self.calls.kinds["matmul"] += 1
        self.generic_visit(node)

    def _count(self, name: str) -> None:
        kind = kind_of(name)
        if kind and name.count("."):
            self.calls.kinds[kind] += 1


def read(texts: Iterable[tuple[str, str]], calls: Calls | None = None) -> Calls:
    """Read the operations of files that import torch, given as path and text."""
    calls = calls or Calls()
    for path, text in texts:
        if "torch" not in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            print(f"{path}: not read: {error}", file=sys.stderr)
            continue
        _Reader(calls).visit(tree)
        calls.files += 1
    return calls


def of_kernels() -> Calls:
    """Read what the kernels compute; there torch is called `t`, as it is handed in."""
    files = [path for path in sorted(KERNELS.glob("*.py")) if path.name not in {"inputs.py", "references.py"}]
    return read((path.name, f"import torch as t\n{path.read_text(encoding='utf-8')}") for path in files)


def of_clone(clone: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Give the Python files of a commit, but for what inference does not reach."""
    git = ["git", "-C", str(clone)]
    paths = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", commit], capture_output=True, text=True, check=True
    ).stdout
    for path in paths.splitlines():
        if path.endswith(".py") and not NOT_RUN.search(path.lower()):
            done = subprocess.run([*git, "show", f"{commit}:{path}"], capture_output=True, check=True)
            yield path, done.stdout.decode("utf-8", errors="replace")


def of_distribution(file: Path, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give the Python files of some folders of a wheel or an sdist."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            for name in wheel.namelist():
                if _is_wanted(name, folders):
                    yield name, wheel.read(name).decode("utf-8", errors="replace")
        return
    with tarfile.open(file) as sdist:
        for member in sdist:
            name = member.name.partition("/")[2]
            stream = sdist.extractfile(member) if _is_wanted(name, folders) else None
            if stream is not None:
                yield name, stream.read().decode("utf-8", errors="replace")


def _is_wanted(name: str, folders: Iterable[str]) -> bool:
    inside = any(PurePosixPath(name).is_relative_to(folder) for folder in folders)
    return inside and name.endswith(".py") and not NOT_RUN.search(name.lower())


def _commit(catalogue: dict[str, Any]) -> str:
    return str(catalogue["upstream"]["commit"])


def locked(app: str, name: str) -> str:
    """Give the version of a distribution in an app's lock for the processor."""
    text = (ROOT / "lockfiles" / app / "cpu.linux-x86_64.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)}(?:==| @ \S*/{re.escape(name)}-)([0-9][0-9.]*[0-9])", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"the lock of {app} has no {name}: correct APPS in {__file__}")
    return found.group(1)


def download(requirement: str, cache: Path) -> Path:
    """Fetch one distribution from the package index, unless it is there."""
    folder = cache / requirement
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as name:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", name, requirement]
            subprocess.run(command, check=True)
            folder.mkdir()
            for file in Path(name).iterdir():
                file.rename(folder / file.name)
    return next(iter(folder.iterdir()))


def table(apps: dict[str, Calls], kernels: Calls) -> tuple[str, float]:
    """Write the report, and give the share of the kinds of two apps or more that the kernels compute."""
    users = {
        k: [app for app, calls in apps.items() if k in calls.kinds] for k in {k for c in apps.values() for k in c.kinds}
    }
    shared = sorted((kind for kind, of in users.items() if len(of) > 1), key=lambda kind: (-len(users[kind]), kind))
    proved = [kind for kind in shared if kind in kernels.kinds]
    share = len(proved) / len(shared)
    missing = ", ".join(f"`{kind}`" for kind in shared if kind not in proved)
    lines = [
        "# Operations that the apps' models call",
        "",
        "Written by `benchmarks/operation_kinds.py`, which says what a kind is and what it reads.",
        "",
        f"**{len(proved)} of {len(shared)} kinds that at least two of the {len(apps)} torch apps call are computed by",
        f"a kernel of `verify`: {share:.0%}.** Not computed: {missing or 'none'}.",
        "",
        "| app | files | kinds | in half precision |",
        "|---|---|---|---|",
        *(f"| {app} | {c.files} | {len(c.kinds)} | {_few(c.dtypes)} |" for app, c in apps.items()),
        "",
        "Numbers that are written in calls are the most frequent ones; others come from configurations.",
        "",
        "| kind | apps | calls | written with | by the kernels |",
        "|---|---|---|---|---|",
    ]
    for kind in shared:
        arguments: collections.Counter[str] = sum((c.arguments[kind] for c in apps.values()), collections.Counter())
        calls = sum(c.kinds[kind] for c in apps.values())
        mark = "yes" if kind in kernels.kinds else "**no**"
        lines.append(f"| `{kind}` | {len(users[kind])} | {calls} | {_few(arguments)} | {mark} |")
    alone = sorted(kind for kind, of in users.items() if len(of) == 1)
    lines += [
        "",
        f"{len(alone)} kinds are of one app alone; of them {sum(k in kernels.kinds for k in alone)} are computed.",
        "",
    ]
    return "\n".join(lines), share


def _few(counted: collections.Counter[str]) -> str:
    return ", ".join(f"`{name.removeprefix('torch.')}`" for name, _ in counted.most_common(4))


def main() -> None:
    """Read all apps and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="a folder for downloads, kept between runs")
    parser.add_argument("--least", type=float, default=0.9, help="exit 1 where less is covered")
    options = parser.parse_args()
    clones = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    options.cache.mkdir(parents=True, exist_ok=True)
    apps = {}
    for name, app in APPS.items():
        places = (clones / app.clone, clones / app.clone / "repo", clones / app.clone.partition("+")[2])
        catalogue = tomllib.loads((ROOT / "patches" / name / "app.toml").read_text(encoding="utf-8"))
        calls = read(of_clone(next(place for place in places if place.is_dir()), _commit(catalogue)))
        for dependency, folders in app.dependencies.items():
            file = download(f"{dependency}=={locked(name, dependency)}", options.cache)
            read(of_distribution(file, folders), calls)
        apps[name] = calls
        print(f"{name}: {calls.files} files, {len(calls.kinds)} kinds", file=sys.stderr)
    text, share = table(apps, of_kernels())
    REPORT.write_text(text, encoding="utf-8")
    print(text)
    raise SystemExit(share < options.least)


if __name__ == "__main__":
    main()
