"""Import modules of an app with packages blocked, each in a process of its own: contained, never in ours."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from patchlock.model import kernel_results
from patchlock.model.backends import HIDDEN_DEVICES
from patchlock.model.checks import SmokeImport
from patchlock.verify import _supervisor

_GPU = ("CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ROCM_", "HSA_", "ZE_", "ONEAPI_", "SYCL_", "GPU_")
_OFFLINE = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""For what asks before it uses the network; the kernel stops what does not ask."""


def failures(smoke: SmokeImport, python: Path, folder: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Import each module, and say which did not import, one clause each.

    Args:
        smoke: the modules and what is blocked.
        python: the interpreter of the generation.
        folder: the app's.
        variables: the whole environment of a child; those of GPUs are left out.

    Raises:
        ProgramMissingError: the interpreter is not there.
    """
    kept = {name: value for name, value in variables.items() if not name.startswith(_GPU)}
    env = kept | HIDDEN_DEVICES | _OFFLINE
    found = ((module, _failure(module, smoke, python, folder, env)) for module in smoke.modules)
    without = f" without {', '.join(smoke.blocked)}" if smoke.blocked else ""
    return tuple(f"import {module}{without}: {why}" for module, why in found if why)


def _failure(module: str, smoke: SmokeImport, python: Path, folder: Path, env: Mapping[str, str]) -> str:
    import importlib.resources

    kept = env.get("PYTHONPYCACHEPREFIX", "")
    options = ("-I", *(("-X", f"pycache_prefix={kept}") if kept else ("-B",)), "-X", "utf8")
    memory = _supervisor.memory_limit()
    with (
        tempfile.TemporaryDirectory(prefix="patchlock-smoke-", ignore_cleanup_errors=True) as name,
        importlib.resources.as_file(
            importlib.resources.files("patchlock.verify._children") / "smoke_import.py"
        ) as script,
    ):
        answer = Path(name) / "answer"
        command = (str(python), *options, str(script), module, json.dumps(smoke.blocked), str(answer))
        with _supervisor.start_program(*command, env=env, cwd=folder, memory=memory) as child:
            ended = child.wait(smoke.timeout)
        if answer.exists() and not ended.killed:
            return str(json.loads(answer.read_text(encoding="utf-8"))["failed"])
    failed = kernel_results.failure(ended)
    return f"{failed[0].value}: {failed[1]}" if failed else "it gave no answer"
