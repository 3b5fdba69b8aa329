"""Put mistakes into a torch that computes on a pretended card, and count those that the kernels of `verify` notice.

The card is `pretended_card.py`: the real torch for the processor, called a card. Half of the mistakes are named here,
since they were seen on some back end or would be silent in a model; the others are drawn by a seed from operations ×
what goes wrong × when. Without a mistake every kernel has to work there, and on the processor itself: anything else is
a false alarm. For a mistake only those kernels are computed that call its operation.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "installer"))

from patchlock.core import process  # noqa: E402
from patchlock.model import kernel_results  # noqa: E402
from patchlock.model.backends import BACK_ENDS, INSTALL_KERNELS, TORCH_KERNELS  # noqa: E402
from patchlock.model.kernel_results import KernelResult, Verdict  # noqa: E402
from patchlock.verify import _task_runner, proof  # noqa: E402
from patchlock.verify._task_runner import ProcessContext, Task, TaskRunner  # noqa: E402

REPORT = ROOT / "benchmarks" / "reports" / "kernel-faults.md"


@dataclass(frozen=True)
class Fault:
    """A mistake: in which operations, what it does, and when."""

    ops: tuple[str, ...]
    does: str
    when: str = "always"
    result: int = 0

    def __str__(self) -> str:
        which = ", of the second result" if self.result else ""
        return f"{' and '.join(self.ops)}: {self.does}{which}{'' if self.when == 'always' else f', {self.when}'}"


NAMED = (
    Fault(("conv1d",), "dilation ignored"),
    Fault(("conv1d",), "groups mixed up"),
    Fault(("conv1d",), "3 percent more", "float16"),
    Fault(("conv2d",), "tail is zero"),
    Fault(("gru",), "second direction backwards"),
    Fault(("layer_norm",), "3 percent more", "above 1000"),
    Fault(("group_norm",), "off by one"),
    Fault(("embedding",), "indices of 16 bits"),
    Fault(("interpolate",), "corners aligned"),
    Fault(("scaled_dot_product_attention",), "mask ignored"),
    Fault(("scaled_dot_product_attention",), "causal ignored"),
    Fault(("matmul",), "tail is zero", "above 1000"),
    Fault(("topk",), "places of 8 bits"),
    Fault(("topk",), "unsorted"),
    Fault(("stft", "istft"), "conjugate"),
    Fault(("lstm",), "noise", "more than 100"),
    Fault(("linear",), "bias ignored"),
    Fault(("cumsum",), "restarts at 1024"),
    Fault(("scatter_add",), "duplicates lost"),
    Fault(("pad",), "reflection ignored"),
    Fault(("multinomial",), "weights ignored"),
    Fault(("randn",), "too narrow"),
    Fault(("matmul",), "silent"),
    Fault(("stft",), "silent"),
    Fault(("lstm",), "silent"),
    Fault(("conv1d",), "silent", "second call"),
    Fault(("scaled_dot_product_attention",), "silent", "float16"),
    Fault(("gelu",), "gelu by tanh"),
    Fault(("matmul",), "computed in half precision"),
    Fault(("istft",), "not centred"),
)

_OPERATIONS = (
    *(
        "matmul",
        "bmm",
        "linear",
        "einsum",
        "stft",
        "istft",
        "rfft",
        "irfft",
        "conv1d",
        "conv_transpose1d",
        "conv2d",
    ),
    *(
        "conv_transpose2d",
        "interpolate",
        "avg_pool1d",
        "max_pool1d",
        "scaled_dot_product_attention",
        "lstm",
        "gru",
        "layer_norm",
    ),
    *(
        "group_norm",
        "batch_norm",
        "instance_norm",
        "normalize",
        "relu",
        "leaky_relu",
        "gelu",
        "silu",
        "sigmoid",
        "tanh",
        "softplus",
    ),
    *(
        "softmax",
        "log_softmax",
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "pow",
        "atan2",
        "clamp",
        "round",
        "where",
        "sum",
        "mean",
        "std",
    ),
    *(
        "argmax",
        "cumsum",
        "embedding",
        "gather",
        "index_select",
        "masked_fill",
        "nonzero",
        "pad",
        "cat",
        "flip",
        "arange",
        "topk",
    ),
    *("sort", "repeat_interleave", "bincount", "angle", "polar"),
)
_HALF = frozenset(
    [
        "matmul",
        "linear",
        "bmm",
        "conv1d",
        "conv_transpose1d",
        "conv2d",
        "scaled_dot_product_attention",
        "layer_norm",
        "group_norm",
        "relu",
        "leaky_relu",
        "gelu",
        "silu",
        "sigmoid",
        "tanh",
        "softmax",
        "sum",
    ]
)
"""What models compute in half precision."""
_WIDE = frozenset(_OPERATIONS) - {
    "conv_transpose2d",
    "gru",
    "lstm",
    "arange",
    "bincount",
    "repeat_interleave",
    "einsum",
}
"""What models call with more than a thousand of something."""
_WHOLE = frozenset({"argmax", "nonzero", "arange", "bincount", "embedding"})
_MISTAKES = ("last number wrong", "tail is zero", "not a number", "off by one", "3 percent more", "noise", "silent")


def drawn(count: int, seed: int) -> tuple[Fault, ...]:
    """Draw mistakes that are not among the named ones; no operation twice before each had its turn."""
    chance = random.Random(seed)
    made: list[Fault] = []
    left: list[str] = []
    while len(made) < count:
        if not left:
            left = chance.sample(_OPERATIONS, len(_OPERATIONS))
        op = left.pop()
        times = ["always", "second call", "third call"]
        times += ["above 1000"] * 2 if op in _WIDE else []
        times += ["float16"] * 2 if op in _HALF else []
        does = chance.choice([one for one in _MISTAKES if op not in _WHOLE or one not in {"3 percent more", "noise"}])
        fault = Fault((op,), does, chance.choice(times), int(op in {"topk", "sort"} and chance.random() < 0.5))
        if fault not in NAMED:
            made.append(fault)
    return tuple(made)


def environment(folder: Path, torch: Path) -> Path:
    """Make an environment that has the packages of another one, and the card."""

    def ask(code: str) -> str:
        return subprocess.run([torch, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    home = ask("import sys; print(sys._base_executable)")
    subprocess.run([home, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    beside = ask("import sysconfig; print(sysconfig.get_path('purelib'))")
    (packages / "pretended_card.py").write_text(
        (ROOT / "benchmarks" / "pretended_card.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (packages / "beside.pth").write_text(f"{beside}\nimport pretended_card\n", encoding="utf-8")
    return folder / "bin" / "python"


def results(runner: TaskRunner, device: str, kernels: tuple[str, ...]) -> list[KernelResult]:
    """Compute all kernels, as `verify` does."""
    tasks = [Task(name=one, program="compute", arguments=(device, one), seconds=60, memory=4 << 30) for one in kernels]
    back_end = BACK_ENDS["cuda" if device.startswith("cuda") else "cpu"]
    return [kernel_results.classify_exit(ended, device) for ended in proof._row(runner, tasks, back_end)]


def failures(found: list[KernelResult]) -> dict[str, str]:
    """Give what did not work, with why."""
    return {one.kernel: f"{one.verdict.value}: {one.detail}" for one in found if one.verdict is not Verdict.WORKS}


def main() -> None:
    """Put in all mistakes, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", type=Path, required=True, help="a Python that has torch for the processor")
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--least", type=int, default=57, help="exit 1 where fewer are noticed")
    parser.add_argument("--only", default="", help="mistakes that have this in their name")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    python, said = environment(options.work / "environment", options.torch), options.work / "fault.json"
    said.write_text("{}", encoding="utf-8")
    told = options.work / "called.txt"
    variables = process.environment(
        {"PATCHLOCK_FAULT": str(said), "PATCHLOCK_CALLED": str(told), "OMP_NUM_THREADS": "1"}
    )
    where = ProcessContext(python=python, options=("-I", "-X", "utf8"), folder=options.work, variables=variables)
    rows: list[tuple[Fault, dict[str, str]]] = []
    with _task_runner.open_runner(where, "torch") as runner:
        alarms, calls = {}, {}
        for kernel in TORCH_KERNELS:
            told.write_text("", encoding="utf-8")
            alarms |= failures(results(runner, "cuda:0", (kernel,)))
            calls[kernel] = set(told.read_text(encoding="utf-8").split())
        alarms |= failures(results(runner, "cuda:0", TORCH_KERNELS))
        alarms |= {
            f"{kernel} on the processor": why for kernel, why in failures(results(runner, "cpu", TORCH_KERNELS)).items()
        }
        print(f"without a mistake: {alarms or 'all work'}", flush=True)
        for fault in (*NAMED[: options.count], *drawn(options.count - len(NAMED), options.seed)):
            if options.only in str(fault):
                said.write_text(json.dumps(vars(fault)), encoding="utf-8")
                concerned = tuple(kernel for kernel in TORCH_KERNELS if calls[kernel] & set(fault.ops))
                if not concerned:
                    raise SystemExit(f"no kernel calls {' or '.join(fault.ops)}: nothing is proved of it")
                rows.append((fault, failures(results(runner, "cuda:0", concerned))))
                print(f"{'noticed' if rows[-1][1] else 'MISSED '}  {fault}: {rows[-1][1]}", flush=True)
    caught = sum(bool(why) for _, why in rows)
    at_install = sum(any(kernel in INSTALL_KERNELS for kernel in why) for _, why in rows)
    print(f"{caught} of {len(rows)} noticed, {at_install} by what an install runs; {len(alarms)} false alarms")
    if not options.only:
        REPORT.write_text(report(rows, alarms, options.seed, at_install), encoding="utf-8")
    raise SystemExit(caught < min(options.least, len(rows)) or bool(alarms))


def report(rows: list[tuple[Fault, dict[str, str]]], alarms: dict[str, str], seed: int, at_install: int) -> str:
    """Write what came of it."""
    caught = sum(bool(why) for _, why in rows)
    lines = [
        "# Mistakes that the kernels notice",
        "",
        f"Written by `benchmarks/kernel_faults.py --seed {seed}`: torch for the processor as a pretended card.",
        "",
        f"**{caught} of {len(rows)} mistakes are noticed by `verify`, {at_install} already by what `install` runs;",
        f"{len(alarms)} false alarms** (each kernel on the pretended card without a mistake, and on the processor).",
        "",
        *(f"- False alarm: {kernel}: {why}" for kernel, why in alarms.items()),
        "| mistake | noticed by | as |",
        "|---|---|---|",
    ]
    for fault, why in rows:
        first = next(iter(why.values()), "")
        lines.append(
            f"| {fault} | {', '.join(f'`{one}`' for one in why) or '**nothing**'} | {first.replace('|', '/')} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
