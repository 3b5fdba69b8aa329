"""`bench` on the miniature: measured in the app's environment, kept, compared, drawn; real uv."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World

JOB = """
import alpha
import app

def hum(job):
    job.device, job.weights, job.seconds = app.DEVICE, "the app's own", (1, 2)
    return lambda: ([(n % 90 - 45) / 50 * (n // 500 % 2) for n in range(int({length} * 1000))], 1000)
"""
TABLE = """
[[check]]
id = "hums"
kind = "sound"
what = "a hum"
module = "sounds.py"
job = "hum"
runs = 2
timeout = 60
"""


@pytest.fixture
def installed(locked: World, patchlock: Patchlock) -> Path:
    """Install the app with a job, and give the folder of the installation."""
    locked.app.write_text(locked.app.read_text() + TABLE)
    (locked.app.parent / "sounds.py").write_text(JOB.format(length="1.5"))
    assert patchlock("install", "mini").returncode == 0
    return Path(json.loads(patchlock("install", "mini", "--json").stdout)["data"]["folder"])


def test_job_is_measured_kept_compared_and_drawn(installed: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("bench", "mini", "--json")
    assert done.returncode == 0, done.stderr
    [first] = json.loads(done.stdout)["data"]["results"]
    assert (first["device"], first["length"], len(first["seconds"])) == ("cpu", 1.5, 2)
    assert first["earlier"] is None
    picture = tmp_path / "mini.svg"
    done = patchlock("bench", "mini", "--runs", "3", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert "a hum; weights: the app's own" in done.stdout
    assert f"on {first['made'][:10]}" in " ".join(done.stdout.split())
    assert f"drawn: {picture}" in done.stdout
    assert picture.read_text().startswith("<svg")
    kept = json.loads((installed / "bench.json").read_text())
    assert [len(one["seconds"]) for one in kept] == [2, 3]
    lines = done.stdout.splitlines()
    assert re.match(r"profile +device +median +real-time factor +memory +of the device +use$", lines[1])
    assert re.match(r"mini on tiny|tiny", lines[2])
    narrow = _on_terminal(patchlock, "bench", "mini", "--show").splitlines()
    assert max(map(len, narrow)) <= 80
    assert [line.split("  ")[1] for line in narrow[2:8]] == [
        *("device", "median", "real-time factor", "memory", "of the device", "use")
    ]
    shown = json.loads(patchlock("bench", "mini", "--show", "--json", "--plot", str(picture)).stdout)["data"]["results"]
    assert [(len(one["seconds"]), len(one["earlier"]["seconds"])) for one in shown] == [(3, 2)]
    assert patchlock("uninstall", "mini").returncode == 0
    assert not installed.exists()


def _on_terminal(patchlock: Patchlock, *words: str) -> str:
    ours, theirs = pty.openpty()
    env = patchlock.env({"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80", "LINES": "24"})
    subprocess.run([*patchlock.command, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env, check=True)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # nobody holds the other end any more; until then it gives what it has so far
        while part := os.read(ours, 65_536):
            said += part
    os.close(ours)
    return said.decode().replace("\r", "")


def test_job_that_fails_says_where_and_keeps_nothing(locked: World, installed: Path, patchlock: Patchlock) -> None:
    (locked.app.parent / "sounds.py").write_text(JOB.format(length="1 / 0"))
    done = patchlock("bench", "mini")
    assert done.returncode == 1
    assert "error[command-failed]: a hum: raises" in done.stderr
    assert "(mini on tiny)" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert not (installed / "bench.json").exists()


def test_what_cannot_be_read_is_told_and_written_anew(installed: Path, patchlock: Patchlock) -> None:
    (installed / "bench.json").write_text("[{}]")
    done = patchlock("bench", "mini")
    assert done.returncode == 0
    assert "bench.json cannot be read, and is rewritten" in done.stderr
    assert len(json.loads((installed / "bench.json").read_text())) == 1


def test_app_without_a_job_says_what_to_write(locked: World, installed: Path, patchlock: Patchlock) -> None:
    locked.app.write_text(locked.app.read_text().replace(TABLE, ""))
    done = patchlock("bench", "mini")
    assert done.returncode == 2
    assert (
        "mini declares no job to measure (patches/mini/app.toml); write a [[check]] of the kind `sound` there"
        in done.stderr
    )


def test_nothing_is_measured_where_nothing_is_installed(locked: World, patchlock: Patchlock) -> None:
    assert locked.app.is_file()
    done = patchlock("bench", "mini", "--profile", "tiny")
    assert done.returncode == 1
    assert "error[not-installed]" in done.stderr


def test_picture_has_to_be_svg(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("bench", "mini", "--plot", str(installed / "mini.png"))
    assert done.returncode == 2
    assert "--plot writes an .svg file" in done.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(("runs = 2", "runs = 0"), "it must be a number above 0", id="runs"),
        pytest.param(('job = "hum"', 'job = "hmu"'), '"sounds.py" has no function "hmu"', id="job"),
        pytest.param(('"sounds.py"', '"bank.py"'), '"bank.py" cannot be read from the app\'s folder', id="file"),
        pytest.param(("runs = 2", "rums = 2"), 'check[2].rums: the key "rums" is unknown', id="key"),
    ],
)
def test_mistakes_of_the_table_are_named(
    locked: World, patchlock: Patchlock, change: tuple[str, str], says: str
) -> None:
    locked.app.write_text(locked.app.read_text() + TABLE.replace(*change))
    (locked.app.parent / "sounds.py").write_text(JOB.format(length="1.5"))
    done = patchlock("plan", "mini")
    assert done.returncode != 0
    assert says in done.stderr


def test_sound_is_made_judged_and_kept_to_be_heard(locked: World, installed: Path, patchlock: Patchlock) -> None:
    heard = installed / "sounds" / "hums.wav"
    assert heard.is_file()
    heard.unlink()
    done = patchlock("verify", "mini")
    assert done.returncode == 0, done.stderr
    assert f"hums: a hum: 1.5 s of sound on cpu (weights: the app's own); {heard}" in done.stdout
    assert heard.is_file()
    (locked.app.parent / "sounds.py").write_text(JOB.format(length="0.25"))
    done = patchlock("verify", "mini")
    assert done.returncode == 1
    assert "hums: a hum: it lasts 0.25 s, where 1 to 2 s are plausible" in done.stdout + done.stderr
