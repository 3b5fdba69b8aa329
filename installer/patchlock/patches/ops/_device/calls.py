"""What each function of `torch.cuda` does where there is no CUDA, and what takes its place; edits nothing.

Measured on PyTorch 2.1.2: a CUDA build without a driver (`RuntimeError`), and the same without the names that a build
without CUDA lacks (`AssertionError`); compared with the source of the CPU build of 2.10.0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from patchlock.model.backends import CUDA_OR_CPU, CUDA_OR_CPU_MODELS, ONNX_MEMORY
from patchlock.patches.ops._device.guards import dotted
from patchlock.patches.ops.syntax import last_name

HARMLESS = frozenset(
    [
        "is_available",
        "device_count",
        "is_initialized",
        "empty_cache",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_cached",
        "max_memory_cached",
        "memory_stats",
        "memory_stats_as_nested_dict",
        "memory_snapshot",
        "get_arch_list",
        "get_gencode_flags",
        "get_allocator_backend",
        "get_rng_state_all",
        "set_rng_state",
        "set_rng_state_all",
        "set_stream",
        "device_of",
        "list_gpu_processes",
        "memory.empty_cache",
        "memory.memory_allocated",
        "memory.max_memory_allocated",
        "memory.memory_reserved",
        "random.manual_seed",
        "random.manual_seed_all",
        "nccl.version",
        "is_jiterator_supported",
        "_is_compiled",
    ]
)
"""They answer, wait for CUDA to be started, or do nothing."""

WITHOUT_VALUE = frozenset(
    [
        "set_device",
        "synchronize",
        "init",
        "ipc_collect",
        "set_per_process_memory_fraction",
        "set_sync_debug_mode",
        "_sleep",
        "_lazy_init",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
        "reset_max_memory_allocated",
        "reset_max_memory_cached",
        "memory.reset_peak_memory_stats",
        "nvtx.range_push",
        "nvtx.range_pop",
        "nvtx.mark",
        "profiler.start",
        "profiler.stop",
    ]
)
"""They fail, and nobody needs what they return. `nvtx` fails only in a build without CUDA."""

WITH_VALUE: Mapping[str, str] = {
    "get_device_capability": "(0, 0)",
    "is_bf16_supported": "False",
    "is_tf32_supported": "False",
    "is_current_stream_capturing": "False",
    "device": "{cuda}.device(-1)",
}
"""They fail; this is what they would say of no device. `torch.cuda.device(-1)` changes nothing. Since 2.7,
`is_bf16_supported` no longer fails."""

TENSORS = frozenset(
    f"{name}Tensor" for name in ["Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool"]
)
"""Legacy tensor types; `torch.cuda.FloatTensor(…)` fails, `torch.FloatTensor` is its twin on the CPU."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the imports of a file call PyTorch."""

    modules: frozenset[str]
    """Names of `torch` itself."""
    functions: Mapping[str, str]
    """Name → what it is in `torch.cuda`, for names that were imported from there."""
    cuda_or_cpu: Mapping[str, str]
    """Name → the module or function that it is, for what was imported from libraries that know no other devices."""


def names_of(nodes: Iterable[ast.AST]) -> Names:
    """Read the imports among all nodes of a file."""
    modules = {"torch"}
    functions: dict[str, str] = {}
    libraries: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                libraries[alias.asname or top] = alias.name if alias.asname else top
                modules |= {alias.asname} if alias.asname and alias.name == "torch" else set()
        elif isinstance(node, ast.Assign) and (module := _imported_by_call(node.value)):
            libraries |= {last_name(target): module for target in node.targets}
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("torch.cuda"):
            before = (node.module or "").removeprefix("torch.cuda").removeprefix(".")
            for alias in node.names:
                functions[alias.asname or alias.name] = f"{before}.{alias.name}" if before else alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            libraries |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    known = {part.split(".")[0] for part in CUDA_OR_CPU}
    cuda_or_cpu = {name: origin for name, origin in libraries.items() if origin.split(".")[0] in known}
    return Names(modules=frozenset(modules), functions=functions, cuda_or_cpu=cuda_or_cpu)


def _imported_by_call(node: ast.expr) -> str:
    """Name the module that `import_module("a.b")` gives, "" for anything else."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str() as module), *_]):
            return module if last_name(function) in {"import_module", "__import__"} else ""
        case _:
            return ""


def knows_cuda_or_cpu(names: Names, call: ast.AST | None) -> bool:
    """Tell whether a call is one of a library that computes on CUDA or the CPU, and knows no other device."""
    if not isinstance(call, ast.Call):
        return False
    called = dotted(call.func) or last_name(call.func)
    return any(f".{called}".endswith(f".{known}") for known in ONNX_MEMORY) or is_of_ctranslate2(names, call)


def is_of_ctranslate2(names: Names, call: ast.Call) -> bool:
    """Tell whether a call is one of CTranslate2, or of what computes with it."""
    head, dot, rest = dotted(call.func).partition(".")
    origin = names.cuda_or_cpu.get(head, "") + dot + rest
    return any(f"{origin}.".startswith(f"{known}.") for known in CUDA_OR_CPU)


def told(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Give the arguments of a call of CTranslate2 by their names, "" for the contents of a mapping."""
    if last_name(call.func) in CUDA_OR_CPU_MODELS and not any(isinstance(one, ast.Starred) for one in call.args[:2]):
        yield from (("device", value) for value in call.args[1:2])
    yield from ((keyword.arg or "", keyword.value) for keyword in call.keywords)


def function_of(names: Names, node: ast.expr) -> str:
    """Name the function or class of `torch.cuda` that `torch.cuda.a.b` is (`a.b`); "" for anything else."""
    head, _, rest = dotted(node).partition(".cuda.")
    if rest and last_part(head) in names.modules:
        return rest
    return names.functions.get(node.id, "") if isinstance(node, ast.Name) else ""


def cuda_of(node: ast.expr) -> str:
    """Give the code of `torch.cuda` in `torch.cuda.a.b`; `torch.cuda` where a name was imported from there."""
    head, cuda, _ = dotted(node).partition(".cuda.")
    return f"{head}.cuda" if cuda else "torch.cuda"


def last_part(name: str) -> str:
    """Give `c` of `a.b.c`."""
    return name.rpartition(".")[2]


def is_method(names: Names, node: ast.AST) -> bool:
    """Tell whether a node is `x.cuda(…)`, the method of tensors and modules."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="cuda")):
            return last_name(value) not in names.modules
        case _:
            return False
