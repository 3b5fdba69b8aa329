"""No user, password or query of an address gets into a lock, a receipt, a log or what is printed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from indexes import serving
from miniature import World, lock_here
from sdists import ask

BETA = "beta-1.5-py3-none-any.whl"


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def _holds_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]


@pytest.mark.parametrize("words", [("install",), ("plan",), ("lock",), ("patch", "diff")], ids=" ".join)
def test_source_with_a_password_is_not_shown(
    locked: World, patchlock: Patchlock, tmp_path: Path, words: tuple[str, ...]
) -> None:
    source = f"http://anna:s3cret@127.0.0.1:{_free_port()}/x.git?token=s3cret"
    profile = () if words == ("lock",) else ("--profile", "tiny")
    name = ("--commit", "main") if words[0] in {"install", "plan"} else ()
    done = patchlock(*words, "mini", *profile, "--source", source, *name)
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
    assert "http://127.0.0.1" in done.stdout + done.stderr
    assert not [path for path in _holds_secret(tmp_path) if "upstreams" not in path.parts]


@pytest.mark.parametrize(
    ("address", "shown", "why"),
    [
        (
            "https://anna:s3cret@host/{}",
            "https://host/{}",
            "it has a user, a password or a query, which may be secrets",
        ),
        (
            "https://host/{}?token=s3cret",
            "https://host/{}",
            "it has a user, a password or a query, which may be secrets",
        ),
        ("http://host/{}", "http://host/{}", "it is not https"),
    ],
    ids=["password", "token", "http"],
)
def test_requirement_with_such_an_address_is_not_locked(
    world: World, patchlock: Patchlock, tmp_path: Path, address: str, shown: str, why: str
) -> None:
    line = f"beta @ {address.format(BETA)}#sha256={'0' * 64}"
    ask(world, f"alpha==9.0\n{line}\n".encode(), tmp_path)
    done = patchlock("lock", "mini", "--json")
    assert "s3cret" not in done.stdout + done.stderr
    [pair] = json.loads(done.stdout)["data"]["pairs"]
    fragment = "" if "?" in address else f"#sha256={'0' * 64}"
    assert (pair["state"], pair["code"]) == ("failed", "requirements")
    assert pair["detail"] == (
        f'"{shown.format(BETA)}{fragment}" is not allowed in a lock: {why} (requirements.txt:2); write `beta @ https://…` '
        "without secrets with a patch (replace-text); what a server asks for belongs into ~/.netrc"
    )
    assert not list((world.catalogue / "lockfiles").rglob("*.txt"))


def test_index_with_a_password_is_nowhere_written_down(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    pages = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    with serving(pages, locked.wheels, prefix="/pypi", user="anna", password="s3cret") as address:
        env = {"UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0", "UV_CACHE_DIR": str(tmp_path / "cold")}
        said = ""
        for words in (
            lock_here(),
            ("install", "mini"),
            ("verify", "mini", "--deep"),
            ("export", "mini", "--format", "pylock", "-o", str(tmp_path / "pylock.toml")),
            ("export", "mini", "--format", "cyclonedx", "-o", str(tmp_path / "bom.json")),
        ):
            done = patchlock(*words, env=env)
            assert done.returncode == 0, done.stderr
            said += done.stdout + done.stderr
    assert "s3cret" not in said
    assert BETA in (tmp_path / "pylock.toml").read_text()
    assert _holds_secret(tmp_path) == []


def test_new_app_takes_no_address_with_a_secret(locked: World, patchlock: Patchlock) -> None:
    done = patchlock("new-app", "https://ghp_s3cret@example.com/a/b", "--profile", "tiny")
    assert done.returncode == 2
    assert done.stderr == (
        "error[usage]: the address https://example.com/a/b has a user, a password or a query, which would be written "
        "to app.toml; leave it out; git asks its credential helper, or name a clone that you have with --source\n"
    )


def test_report_of_a_mistake_has_no_secret(patchlock: Patchlock, tmp_path: Path) -> None:
    code = (
        "import sys, patchlock.catalogue.reader as c\n"
        "def find(*_): raise ValueError('https://anna:s3cret@host/x?token=s3cret')\n"
        "c.find = find\n"
        "from patchlock.cli import main; sys.exit(main(['plan', 'x', '--source', 'https://anna:s3cret@host/x']))"
    )
    env = patchlock.env({"TMPDIR": str(tmp_path)})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2
    [report] = tmp_path.glob("patchlock-bug-*.txt")
    assert "https://host/x" in report.read_text()
    assert "s3cret" not in report.read_text().replace(code, "") + done.stderr
