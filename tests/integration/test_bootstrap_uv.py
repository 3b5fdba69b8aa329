"""Where install.sh takes uv from, and the one sentence for every failure."""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest
import uv
from bootstraps import PREPARING, ROOT, Checkout, checkout, posix

__all__ = ["checkout"]


@posix
@pytest.mark.parametrize("version", ["uv 0.9.0", "uv 0.10.2 (abc 2026-01-01)", "uv 1.0.0"])
def test_recent_uv_on_path_is_taken(checkout: Checkout, version: str) -> None:
    checkout.program("uv", f'[ "$1" != --version ] || {{ echo "{version}"; exit; }}\nexec "{uv.find_uv_bin()}" "$@"')
    assert checkout.run()[0] == 0


@posix
@pytest.mark.parametrize("version", ["uv 0.8.24", "uv 0.1.0", "pyenv: uv: command not found", ""])
def test_other_uv_on_path_is_not_taken(checkout: Checkout, version: str) -> None:
    checkout.program("uv", f'[ "$1" = --version ] || exec touch "{checkout.elsewhere}/used"\necho "{version}"')
    (checkout.programs / "python3").unlink()

    code, _, err = checkout.run()

    assert code == 1
    assert "patchlock: found no Python (python3 on PATH), and cannot get uv from " in err
    assert not (checkout.elsewhere / "used").exists()


@posix
def test_uv_from_a_named_archive(checkout: Checkout) -> None:
    archive = checkout.archive(known=True)
    checkout.program("uv", "exit 9")

    code, seen, err = checkout.run("a", env={"PATCHLOCK_UV_ARCHIVE": os.path.relpath(archive, checkout.elsewhere)})

    assert (code, err, seen["arguments"]) == (0, PREPARING, ["install", "a"])


@posix
@pytest.mark.online
def test_uv_from_the_index_by_pip(checkout: Checkout) -> None:
    (checkout.programs / "uv").unlink()
    (checkout.programs / "python3").rename(checkout.programs / f"python3.{sys.version_info.minor}")
    checkout.program("python3", f'exec "{sys.executable}" "$@"')
    shutil.copy(ROOT / "lockfiles/patchlock.txt", checkout.folder / "lockfiles/patchlock.txt")
    probe = "import click, libcst, packaging, platformdirs, requests, rich, ruamel.yaml, tomlkit, uv; print('{}')"
    (checkout.folder / "installer/another.py").write_text(probe, encoding="utf-8")
    hostile = {
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_USER": "1",
        "PIP_PREFIX": "/nonexistent",
        "PIP_CONSTRAINT": "/nonexistent",
    }

    code, _, err = checkout.run(env={"PATCHLOCK_MODULE": "another", **hostile})

    err = err.replace("patchlock: still preparing...\n", "")  # every 10 s, on a busy machine
    assert (code, err) == (0, PREPARING), "".join(path.read_text() for path in checkout.cache.glob("*.log"))
    (environment,) = checkout.environments()
    assert next(environment.glob("lib/python*/site-packages/click/__pycache__/*.pyc"))


# --- one sentence for every failure


@posix
def test_lock_is_missing(checkout: Checkout) -> None:
    lock = checkout.folder / "lockfiles/patchlock.txt"
    lock.unlink()
    assert checkout.run() == (1, {}, f"patchlock: {lock} is missing: run this in a git clone\n")


@posix
def test_cache_cannot_be_written(checkout: Checkout) -> None:
    checkout.cache.touch()
    assert checkout.run() == (
        1,
        {},
        f"{PREPARING}patchlock: cannot write {checkout.cache}: set PATCHLOCK_CACHE_DIR\n",
    )


@posix
@pytest.mark.parametrize(
    ("uv_fails_at", "why", "sentence"),
    [
        (
            "venv",
            "no route",
            "found no Python 3.11 to 3.14, and none to download (see {log}): install python3.12 and run this again",
        ),
        (
            "pip",
            "no route",
            "cannot install {lock} (see {log}, which ends: error: no route): check the network and run this again",
        ),
        ("pip", "No space left on device (os error 28)", "the disk is full (see {log}): make room"),
    ],
    ids=["no python", "no network", "full disk"],
)
def test_uv_fails(checkout: Checkout, uv_fails_at: str, why: str, sentence: str) -> None:
    checkout.program(
        "uv",
        f'[ "$1" != {uv_fails_at} ] || {{ echo "error: {why}" >&2; exit 2; }}\nexec "{uv.find_uv_bin()}" "$@"',
    )

    code, _, err = checkout.run()

    (log,) = checkout.cache.glob("*.log")
    expected = sentence.format(log=log, lock=checkout.folder / "lockfiles/patchlock.txt")
    assert (code, err) == (1, f"{PREPARING}patchlock: {expected}\n")
    assert checkout.environments() == []


@posix
def test_archive_with_another_hash_is_refused(checkout: Checkout) -> None:
    archive = checkout.archive(known=False)

    code, _, err = checkout.run(env={"PATCHLOCK_UV_ARCHIVE": str(archive)})

    pattern = f"{PREPARING}patchlock: {archive} is not uv-TRIPLE.tar.gz of uv 0.12.5, its sha256 is not HASH: get that file again\n"
    pattern = re.escape(pattern).replace("TRIPLE", r"[a-z0-9_-]+").replace("HASH", "[0-9a-f]{64}")
    assert code == 1
    assert re.fullmatch(pattern, err), err
    assert checkout.environments() == []


@posix
def test_archive_that_is_not_there(checkout: Checkout) -> None:
    code, _, err = checkout.run(env={"PATCHLOCK_UV_ARCHIVE": "/nonexistent.tar.gz"})

    (log,) = checkout.cache.glob("*.log")
    remedy = "check the network or install python3-venv, then run this again"
    assert (code, err) == (
        1,
        f"{PREPARING}patchlock: cannot get uv from /nonexistent.tar.gz (see {log}): {remedy}\n",
    )
