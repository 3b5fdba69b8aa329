"""Ask uv whether the requirements of a tree have a solution, with the catalogue's bounds where the tree is ours."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet

from patchlock.core import uv
from patchlock.model.app import App
from patchlock.model.errors import UnsatisfiableError
from patchlock.model.profile import Profile

Solution = Mapping[str, str] | str
"""Name → version, or why there is none."""
_PLATFORM = "x86_64-pc-windows-msvc"
"""The hand-made tree is for Windows."""
_HAS_WHEELS_THERE = "pyworld"
_SHOWN = ("av", "faster-whisper", "pydantic", "tokenizers", "torch", "torchaudio", "transformers", "whisperx")


def resolve(tree: Path, app: App, profile: Profile | None) -> Solution:
    """Resolve the requirements of a tree.

    Args:
        tree: where `requirements.txt` is.
        app: says what may be built.
        profile: bounds the packages, as the app does; None: nothing does.
    """
    bounds = [*app.rules.constraints, *profile.rules.constraints] if profile else []
    with tempfile.TemporaryDirectory() as name:
        constraints = Path(name) / "constraints.txt"
        constraints.write_text("".join(f"{bound.requirement}\n" for bound in bounds))
        command = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"]
        for built in app.rules.source_builds:
            command += ["--no-binary", built] if built != _HAS_WHEELS_THERE else []
        command += ["--python-version", "3.11", "--python-platform", _PLATFORM, "--constraints", str(constraints)]
        try:
            done = uv.run(*command, str(tree / "requirements.txt"), cwd=Path(name), installing=False)
        except UnsatisfiableError as error:
            return " ".join(" ".join(error.evidence).split()).partition("cause: ")[2]
    return dict(re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;]+)", done.stdout.decode(), re.MULTILINE))


def judge(check: str, solution: Solution) -> str:
    """Say why a solution is not what a row wants, or ""."""
    if isinstance(solution, str):
        return solution if check == "resolves" else "there is no solution"
    match check:
        case "av":
            return _outside(solution, "av", ">=12,<19,!=14.4.0")
        case "torch":
            versions = [solution[name].partition("+")[0] for name in ("torch", "torchaudio")]
            return "" if len({*versions}) == 1 else " and ".join(versions)
        case "pydantic":
            return _outside(solution, "pydantic", "<2.11")
        case _:
            return ""


def told(solution: Solution) -> str:
    """Write what the requirements of ours resolve to."""
    if isinstance(solution, str):
        return ""
    shown = ", ".join(f"{name} {solution[name]}" for name in _SHOWN)
    return f"""
## What ours resolves to

With uv {uv.version()}, for Windows and Python 3.11, from what PyPI had on the day of the run, {len(solution)} packages:
{shown}, and others.
"""


def _outside(solution: Mapping[str, str], name: str, bounds: str) -> str:
    return "" if SpecifierSet(bounds).contains(solution[name]) else f"{name} {solution[name]}"
