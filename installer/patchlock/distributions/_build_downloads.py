"""Find what a build may download, in the files of an sdist that a build runs; by meaning, and none is run. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from patchlock.distributions import _setup_script

_FETCHES = re.compile(
    r"(?:^|\.)(?:urlretrieve|urlopen|hf_hub_download|snapshot_download|clone_from)$"
    r"|^(?:requests|httpx)\.(?:get|post|request|stream)$|^(?:wget|gdown)\.download$"
)
"""How Python downloads, as the dotted name of what is called."""
_RUNS = re.compile(r"^(?:os\.(?:system|popen)|(?:subprocess\.)?(?:run|call|check_call|check_output|Popen))$")
_COMMAND = re.compile(r"\b(curl|wget|git (?:clone|submodule|fetch|pull)|pip3? (?:install|download))\b")
_CMAKE = re.compile(r"\b(FetchContent_Declare|ExternalProject_Add|file\s*\(\s*DOWNLOAD)\b", re.IGNORECASE)


def find(files: Mapping[PurePosixPath, bytes], backend: str, *, is_own: bool) -> str:
    """Name the first place where a build may download, and how: `setup.py:36 (urlretrieve)`; "" where none is found.

    Args:
        files: of the sdist, by their path from its top folder.
        backend: that builds it; setuptools' runs `setup.py`.
        is_own: whether that is a module of the sdist.
    """
    run = ["setup.py"] if backend.startswith("setuptools") else []
    run += [f"{backend.partition('.')[0]}.py"] if is_own else []
    for name in run:
        script = _setup_script.parse(files.get(PurePosixPath(name), b""))
        for line, how in sorted(_of_python(script)) if script is not None else ():
            return f"{name}:{line} ({how})"
    recipe = files.get(PurePosixPath("CMakeLists.txt"), b"").decode("utf-8", errors="replace")
    for number, text in enumerate(recipe.splitlines(), 1):
        if found := _CMAKE.search(text.partition("#")[0]):
            return f"CMakeLists.txt:{number} ({found[1]})"
    return ""


def _of_python(script: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(script):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if _FETCHES.search(called):
            yield node.lineno, called
        elif _RUNS.search(called) and (found := _COMMAND.search(_words(node))):
            yield node.lineno, found[1]


def _words(call: ast.Call) -> str:
    """Join what is written out of a command: one text, or a list of words."""
    return " ".join(
        one.value
        for argument in call.args[:1]
        for one in ast.walk(argument)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )
