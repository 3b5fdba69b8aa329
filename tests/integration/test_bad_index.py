"""Bad requirements, bad indexes and interrupted runs: one sentence, exit code 1, and the lock before stays as it was."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import miniature
import pytest
from conftest import Patchlock
from indexes import SLOW, failing
from miniature import World
from sdists import ask

from patchlock import cli

NEEDS = b"alpha==9.0\nbeta\n"
SILENT = (
    "the package index does not answer ({}); check the connection or the proxy, then run the same command again: "
    "finished downloads are kept"
)
CLOSED = (
    "the package index refuses access ({}) ({}); write user and password into UV_DEFAULT_INDEX, or into ~/.netrc, and run "
    "the same command again"
)
NO_PAGE = (
    "the package index answers with something that is not a page of an index ({}); sign in to this network, if a browser "
    "shows its login page; otherwise check the address in UV_DEFAULT_INDEX: it ends in /simple on most servers"
)
ABSENT = (
    "the package index has no {}, or not that version ({}); correct the line with a patch (set-requirement, "
    "rename-requirement or replace-text), or ask another index with UV_DEFAULT_INDEX"
)


@pytest.fixture
def locked(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> World:
    """Give the world a lock."""
    ask(world, NEEDS, tmp_path)
    assert cli.main(["lock", "mini"]) == 0
    capsys.readouterr()
    return world


def _files(world: World) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (world.catalogue / "lockfiles").rglob("*") if path.is_file()}


def _failure(capsys: pytest.CaptureFixture[str]) -> str:
    """Lock again, and give the sentence."""
    assert cli.main(["lock", "mini", "--as-of", "2026-02-02T00:00:00Z"]) == 1
    return re.split(r"  failed +", capsys.readouterr().out.splitlines()[0])[1]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("404", ABSENT.format("alpha", "requirements.txt:1 (patch alpha-that-exists)")),
        ("401", CLOSED.format("401 Unauthorized", "{}")),
        ("403", CLOSED.format("403 Forbidden", "{}")),
        ("500", SILENT),
        ("503", SILENT),
        ("garbage", NO_PAGE.format("{}/simple/alpha/")),
        ("login", NO_PAGE.format("{}/simple/alpha/")),
        ("half-json", NO_PAGE),
        ("not-a-page", NO_PAGE),
        ("slow", SILENT),
        ("closes", SILENT),
    ],
)
def test_index_that_fails(
    locked: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    sentence: str,
) -> None:
    before = _files(locked)
    with failing(kind) as address:
        settings = {"DEFAULT_INDEX": address, "OFFLINE": "0", "HTTP_TIMEOUT": "1", "HTTP_RETRIES": "0"}
        for name, value in settings.items():
            monkeypatch.setenv(f"UV_{name}", value)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cold"))
        assert _failure(capsys) == sentence.format(address.removesuffix("/simple"))
    assert _files(locked) == before


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (b"alpha==9.0\nencodecphonemizer\n", ABSENT.format("encodecphonemizer", "requirements.txt:2")),
        (
            b"alpha==9.0\nbeta===7\n",
            ABSENT.format("beta", "requirements.txt:2").replace(
                "beta, or not that version", "beta 7; the newest is 1.5"
            ),
        ),
    ],
    ids=["glued", "arbitrary-equality"],
)
def test_requirement_that_nothing_meets(
    locked: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    needs: bytes,
    sentence: str,
) -> None:
    before = _files(locked)
    ask(locked, needs, tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "0")
    assert _failure(capsys) == sentence
    assert _files(locked) == before


@pytest.mark.parametrize(
    ("needs", "more"),
    [
        (b"beta==1.9\n", ("", "ask for an older version, ")),
        (b"beta>1.6,<3\n", (", and no version from before it fits", "")),
    ],
    ids=["pin", "range"],
)
def test_requirement_that_the_cut_off_keeps_away(
    locked: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    needs: bytes,
    more: tuple[str, str],
) -> None:
    page = locked.wheels.parent / "index/beta/index.html"
    newer = miniature.wheel(locked.wheels, "beta", "1.9")
    digest = hashlib.sha256(newer.read_bytes()).hexdigest()
    link = f'<a href="{newer.as_uri()}#sha256={digest}" data-upload-time="2026-03-01T00:00:00Z">{newer.name}</a>'
    page.write_text(f"{page.read_text()}<br>\n{link}")
    ask(locked, needs, tmp_path)
    app = locked.app.read_text()
    locked.app.write_text(app + '\n[[constraint]]\nrequirement = "beta<9"\nwhy = "x"\nsource = "tests"\n')
    monkeypatch.setenv("UV_OFFLINE", "0")

    places = f"requirements.txt:1, patches/mini/app.toml:{app.count(chr(10)) + 2}"
    assert _failure(capsys) == (
        f"beta 1.9 was uploaded on 2026-03-01, after the cut-off of this lock, 2026-02-01{more[0]} ({places}); "
        f"{more[1]}allow newer files of beta with a [[newer]] table in patches/mini/app.toml, or move the cut-off with "
        "--as-of"
    )


def test_constraint_that_nothing_meets_is_what_to_correct(
    locked: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(locked, NEEDS, tmp_path, '\n[[constraint]]\nrequirement = "beta==7"\nwhy = "x"\nsource = "tests"\n')
    line = locked.app.read_text().splitlines().index('requirement = "beta==7"')
    sentence = _failure(capsys)
    assert sentence.startswith("the package index has no beta 7; the newest is 1.5 (")
    assert f"; correct the [[constraint]] in patches/mini/app.toml:{line}, or ask another index" in sentence


def test_requirement_that_is_refused_keeps_the_lock(
    locked: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _files(locked)
    ask(locked, NEEDS + b"--extra-index-url https://evil.invalid/simple\n", tmp_path)
    assert "would let another place say what a name means" in _failure(capsys)
    assert _files(locked) == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_run_that_is_cut_off(locked: World, patchlock: Patchlock, tmp_path: Path, how: signal.Signals) -> None:
    before = _files(locked)
    with failing("slow") as address:
        settings = {"UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0", "UV_CACHE_DIR": str(tmp_path / "cold")}
        running = subprocess.Popen(
            [*patchlock.command, "lock", "mini", "--as-of", "2026-02-02T00:00:00Z"],
            env=patchlock.env({**settings, "TMPDIR": str(tmp_path)}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("patchlock-lock-*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(SLOW / 10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, how)
        _, seen = running.communicate(timeout=30)
    assert running.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), seen
    assert (b"interrupted; every lock is new or as it was; run the same command again" in seen) == (
        how == signal.SIGINT
    )
    assert _files(locked) == before
    assert cli.main(["lock", "mini"]) == 0
    assert _files(locked) == before
