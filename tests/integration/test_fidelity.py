"""The proof that edits touch nothing else: it passes on a repository of every format, and sees a damaged line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import fidelity

from patchlock.model.text_files import encode

CLONES = os.environ.get("PATCHLOCK_UPSTREAMS", "")
"""Read here: the guards of each test take the variable away."""
FILES = {
    "requirements.txt": "# c\r\nnumpy >= 1 ; os_name=='nt'  # why\r\ntorch>=2.1+cu118\r\n-r other.txt\r\nb @ https://h/b.zip\r\n",
    "a/constraints.in": "numpy==1 \\\n    --hash=sha256:00\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = [\n    "numpy>=1", # c\n    "torch",\n]\n[tool.poetry.dependencies]\na = "^1"\n',
    "setup.cfg": "[options]\ninstall_requires =\n    numpy\n    # c\n    torch>1\n",
    "setup.py": "from setuptools import setup\n\nsetup(install_requires=['numpy', 'torch>1'], name='x')\n",
    "environment.yml": "name: x\ndependencies:\n  - torch=1.2 # c\n  - pip:\n    - numpy\n    - b>1\n",
    "x.py": "# -*- coding: latin-1 -*-\r\nx = 'é'\f\n",
}


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one clone with two commits."""
    clone = tmp_path / "clones" / "one"
    for name, text in FILES.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (
        ("init", "-q"),
        ("add", "."),
        (*who, "commit", "-qm", "one"),
        ("rm", "-q", "setup.py"),
        (*who, "commit", "-qm", "two"),
    ):
        subprocess.run(["git", "-C", str(clone), *words], check=True, capture_output=True)
    monkeypatch.setenv("PATCHLOCK_UPSTREAMS", str(clone.parent))
    return clone.parent


def rows(printed: str) -> dict[str, list[int]]:
    lines = [line.split() for line in printed.splitlines() if line.count(" ") > 20]
    return {line[0]: [int(number) for number in line[1:]] for line in lines[1:]}


def test_every_format_is_edited_without_a_failure(clones: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main(["one"]) == 0
    found = rows(capsys.readouterr().out)
    assert found.keys() == {"*.in", "*.py", "*.txt", "*.yml", "pyproject.toml", "setup.cfg", "setup.py"}
    assert [found[kind][1] for kind in found] == [0] * 7
    assert all(edits > 4 for kind, (_, _, edits, _, _) in found.items() if kind not in {"*.in", "*.py"})
    assert {kind: counts[3] for kind, counts in found.items() if counts[3]} == {"*.in": 3}, "only what is hash-locked"


def test_history_counts_only_for_clones_that_are_named(clones: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main([]) == 0
    assert "setup.py" not in rows(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (b"# why", b"# who", "another line changed"),
        (b"b @ https", b"c @ https", "another requirement changed"),
        (b"# -*- coding", b"# -*- Coding", "not the same bytes"),
    ],
)
def test_damage_is_a_failure(
    clones: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    right: bytes,
    wrong: bytes,
    said: str,
) -> None:
    monkeypatch.setattr(fidelity, "encode", lambda source: encode(source).replace(right, wrong))
    assert fidelity.main([]) == 1
    assert said in capsys.readouterr().out


@pytest.mark.upstream
def test_real_clones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_UPSTREAMS", CLONES)
    assert fidelity.main([]) == 0
