"""The comparison with a tree made by hand: the real one where clones are at hand, and its judges on trees of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hand_made
import pytest
from comparison.rows import ROWS
from conftest import ROOT

CLONES = os.environ.get("PATCHLOCK_UPSTREAMS", "")
"""Read here: the guards of each test take the variable away."""
DOWNLOADER = """\
import subprocess, sys
def install_package(link):
    {body}
"""


@pytest.mark.upstream
def test_ours_repairs_what_the_hand_made_tree_repairs_and_what_it_leaves(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "hand_made.py"), "--report", str(report)],
        env={**os.environ, "PATCHLOCK_UPSTREAMS": CLONES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in report.read_text(encoding="utf-8").splitlines() if line.endswith("| yes |")]
    assert len(rows) == len(ROWS)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return None", ""),
        ("subprocess.check_call([sys.executable, '-m', 'pip', 'install', link])", "starts python -m pip install x"),
        ("import os; os.system('pip install x')", "PermissionError: os.system"),
        ("import socket; socket.create_connection(('192.0.2.1', 80))", "PermissionError: socket.getaddrinfo"),
        ("import deepspeed", "ModuleNotFoundError: No module named 'deepspeed'"),
        ("import torch; assert torch.nn.Module().to('cpu').device == 'cpu' and not torch.cuda.is_available()", ""),
    ],
    ids=["nothing", "process", "shell", "network", "deepspeed", "stand-in"],
)
def test_check_sees_what_a_tree_does(tmp_path: Path, body: str, why: str) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "modeldownloader.py").write_text(DOWNLOADER.format(body=body))
    text = hand_made.ask("install_package_starts_nothing", tmp_path, tmp_path)
    assert text.replace("deepspeed==0.11.2", "x") == why


@pytest.mark.parametrize(
    ("ours", "theirs", "wrong"),
    [
        ("", "it fails", ""),
        ("it fails", "", "ours: it fails"),
        ("", "", "it holds for all three, so it shows nothing"),
    ],
)
def test_row_that_shows_nothing_is_wrong(ours: str, theirs: str, wrong: str) -> None:
    assert hand_made.Answer(row=ROWS[0], why=("", theirs, ours)).wrong == wrong
