"""The checks of the comparison that read files, or run a start script with a `python` that only notes its arguments."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from comparison.checks import Verdict

REPAIRED = {"transformers", "faster-whisper", "torch", "torchaudio", "coqui-tts"}
COQUI_WANTS = {"0.24.2": ">=4.42,<4.43", "0.25.3": ">=4.43,<4.47"}
"""Of transformers. Source: dependencies in the pyproject.toml of idiap/coqui-ai-TTS at these tags."""
TRANSFORMERS = ("4.36.2", "4.41.2", "4.42.4", "4.43.0", "4.46.2", "4.47.0")


def requirements_keep_their_bytes(tree: Path, upstream: Path) -> Verdict:
    """BOM, line endings and all other lines stay."""
    before, after = ((side / "requirements.txt").read_bytes().split(b"\n") for side in (upstream, tree))
    if len(before) != len(after):
        return f"{len(before)} lines become {len(after)}"
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    wrong = [old for old, new in changed if _name(old) not in REPAIRED or old[-1:] != new[-1:]]
    return f"{len(wrong)} lines change that need not" if wrong else ""


def transformers_fit_coqui(tree: Path, upstream: Path) -> Verdict:
    """The pin of transformers is one that coqui-tts takes."""
    specifier = _requirement(tree, "transformers").specifier
    coqui = str(_requirement(tree, "coqui-tts").specifier).removeprefix("==")
    wanted = SpecifierSet(COQUI_WANTS[coqui])
    allowed = [version for version in TRANSFORMERS if specifier.contains(version)]
    fits = allowed and all(wanted.contains(version) for version in allowed)
    return "" if fits else f"transformers{specifier} and coqui-tts {coqui} wants {COQUI_WANTS[coqui]}"


def whisper_leaves_tokenizers_alone(tree: Path, upstream: Path) -> Verdict:
    """The pin of faster-whisper leaves tokenizers to transformers."""
    specifier = _requirement(tree, "faster-whisper").specifier
    old = [v for v in ("1.0.0", "1.0.1") if specifier.contains(Version(v))]
    return f"faster-whisper{specifier} wants tokenizers<0.16 and av 11, which has no wheel" if old else ""


def requirement_lists_are_utf8(tree: Path, upstream: Path) -> Verdict:
    """Every list of requirements is UTF-8."""
    for path in sorted(tree.glob("*requirements*.txt")):
        if path.read_bytes().startswith((b"\xff\xfe", b"\xfe\xff")):
            return f"{path.name} is UTF-16"
    return ""


def nothing_is_left_behind_a_return(tree: Path, upstream: Path) -> Verdict:
    """No statement is left behind a bare `return`."""
    for path in ("scripts/modeldownloader.py", "scripts/tts_funcs.py", "app.py", "scripts/funcs.py"):
        for node in ast.walk(ast.parse((tree / path).read_bytes())):
            body = node.body if isinstance(node, ast.FunctionDef) else []
            if any(isinstance(statement, ast.Return) for statement in body[:-1]):
                return f"{path}: {node.name} goes on behind its return"
    return ""


def shell_script_asks_for_what_is_there(tree: Path, upstream: Path) -> Verdict:
    """The shell script starts the app without DeepSpeed and RVC."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(tree / "start_xtts_webui.sh", folder)
        (folder / "python").write_text(f'#!/bin/sh\necho "$@" >> "{folder}/asked"\n')
        (folder / "python").chmod(0o755)
        path = f"{folder}{os.pathsep}{os.defpath}"
        command = ["bash", "start_xtts_webui.sh"]
        subprocess.run(command, cwd=folder, env={"PATH": path}, capture_output=True, timeout=20, check=False)
        asked = (folder / "asked").read_text().splitlines()
    return _flags([line for line in asked if line.startswith("app.py")])


def batch_file_asks_for_what_is_there(tree: Path, upstream: Path) -> Verdict:
    """The batch file does too, on each of its ways."""
    lines = (tree / "start_xtts_webui.bat").read_text(encoding="utf-8").splitlines()
    return _flags([line for line in lines if "python app.py" in line])


def batch_file_sets_nothing_without_effect(tree: Path, upstream: Path) -> Verdict:
    """The batch file sets no variable that app.py overwrites."""
    overwritten = set(re.findall(r"""os\.environ\[['"](\w+)['"]\] =""", (tree / "app.py").read_text(encoding="utf-8")))
    lines = (tree / "start_xtts_webui.bat").read_text(encoding="utf-8").splitlines()
    names = {m[1] for line in lines if (m := re.match(r'\s*set\s+"?(\w+)=', line, re.IGNORECASE))}
    return "; ".join(f"app.py overwrites {name}" for name in sorted(names & overwritten))


def _flags(starts: list[str]) -> Verdict:
    wrong = [line for line in starts if "--deepspeed" in line or "--rvc" in line]
    return "" if starts and not wrong else (wrong or ["it does not start app.py"])[0].strip()


def _name(line: bytes) -> str:
    found = re.match(r"[\w.-]+", line.decode("utf-8-sig"))
    return found[0] if found else ""


def _requirement(tree: Path, name: str) -> Requirement:
    lines = (tree / "requirements.txt").read_text(encoding="utf-8-sig").splitlines()
    return next(Requirement(line) for line in lines if _name(line.encode()) == name)
