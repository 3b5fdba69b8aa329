"""Read the versions of drivers and toolkits from the files that they leave; starts no program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from patchlock.core.bounded_files import FileReader

_NUMBERS = re.compile(r"\d+(\.\d+)+")


def versions(files: FileReader, environ: Mapping[str, str]) -> dict[str, str]:
    """Read `rocm`, `amdgpu` and `cuda-toolkit`, each where it is there.

    Args:
        files: of the machine.
        environ: ROCM_PATH and CUDA_HOME name where the user's are.
    """
    amdgpu = _NUMBERS.match(files.text("sys/module/amdgpu/version"))
    found = {
        "rocm": _rocm(files, environ.get("ROCM_PATH", "")),
        "amdgpu": amdgpu[0] if amdgpu else "",
        "cuda-toolkit": _cuda(files, environ.get("CUDA_HOME") or environ.get("CUDA_PATH", "")),
    }
    return {name: version for name, version in found.items() if version}


def _rocm(files: FileReader, named: str) -> str:
    """Take the user's, or the newest of those below /opt; AMD's packages write it.

    Source: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/package-manager-integration.html
    """
    folders = _named(named) or [f"opt/{name}" for name in files.names("opt") if name.startswith("rocm")]
    # core-X is where TheRock's packages have it.
    texts = [files.text(f"{folder}/.info/{name}") for folder in folders for name in ("version", "version-core")]
    found = [match[0] for text in texts if (match := _NUMBERS.match(text))]
    return max(found, key=_key, default="")


def _cuda(files: FileReader, named: str) -> str:
    """Read version.json of the toolkit, which is there from CUDA 11.1 on.

    Source: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
    """
    for folder in (*_named(named), "usr/local/cuda"):
        text = files.text(f"{folder}/version.json")
        if not text:
            continue
        try:
            version = str(json.loads(text)["cuda"]["version"])
        except (ValueError, TypeError, KeyError, RecursionError):
            files.fail(f"/{folder}/version.json has no version of CUDA")
            continue
        found = _NUMBERS.match(version)
        if found:
            return found[0]
    return ""


def _named(folder: str) -> list[str]:
    return [folder.strip("/")] if folder.startswith("/") and "\0" not in folder else []


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if len(part) < 10)
