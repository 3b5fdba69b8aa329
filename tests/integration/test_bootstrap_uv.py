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
        (
            "pip",
            "x\n  cause: Because a-b was not found in the cache and you require a-b{c == 'd'}==1.0, we can conclude that",
            (
                "{lock} needs a-b 1.0 (see {log}): name an index or a folder that has it; "
                "`pip download --require-hashes -d FOLDER -r {lock}` fills one"
            ),
        ),
        ("pip", "No space left on device (os error 28)", "the disk is full (see {log}): make room"),
    ],
    ids=["no python", "no network", "package missing", "full disk"],
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
    remedy = "check the network and, if you have a mirror, UV_DEFAULT_INDEX"
    assert (code, err) == (1, f"{PREPARING}patchlock: cannot get uv from /nonexistent.tar.gz (see {log}): {remedy}\n")


def _said_without_uv(checkout: Checkout, python: str, env: dict[str, str] | None = None) -> str:
    """Run install.sh with a python3 that is a shell script, and no uv anywhere: what it says after the first line."""
    (checkout.programs / "uv").unlink()
    checkout.program("python3", python)
    code, _, err = checkout.run(env={"PIP_CERT": "", "REQUESTS_CA_BUNDLE": "", "CURL_CA_BUNDLE": "", **(env or {})})
    (log,) = checkout.cache.glob("*.log")
    assert code == 1
    return err.removeprefix(PREPARING).replace(str(log), "LOG")


_PIP = """\
case "$*" in
*pip\\ --version) ;;
*pip\\ install*) echo "$PIP_INDEX_URL $PIP_CERT" >"$SEEN"; echo "WARNING: x"; echo "ERROR: {}"; echo "[notice]"; exit 1 ;;
*) exit 1 ;;
esac"""


@posix
def test_what_pip_says_is_told(checkout: Checkout) -> None:
    said = _said_without_uv(checkout, _PIP.format("No matching distribution"), {"SEEN": f"{checkout.elsewhere}/seen"})
    assert re.fullmatch(
        r"patchlock: pip cannot get uv \(ERROR: No matching distribution\), and cannot get uv from https://github\.com/\S+ "
        r"\(see LOG\): check the network and, if you have a mirror, UV_DEFAULT_INDEX\n",
        said,
    ), said


@posix
def test_index_that_does_not_answer_pip_is_told(checkout: Checkout) -> None:
    shutil.copy(ROOT / "lockfiles/patchlock.txt", checkout.folder / "lockfiles/patchlock.txt")
    env = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "PIP_RETRIES": "1"}
    said = _said_without_uv(
        checkout,
        f'[ "$3" = pip ] || exit 1\nexec "{sys.executable}" "$@"',
        {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", **env},
    )
    assert said.startswith(
        "patchlock: pip cannot get uv (connection broken), and cannot get uv from https://github."
    ), said


@posix
def test_missing_pip_is_told(checkout: Checkout) -> None:
    assert _said_without_uv(checkout, "exit 1").startswith(
        "patchlock: found no pip (install python3-venv), and cannot get uv from https://github.com/"
    )


@posix
@pytest.mark.parametrize("words", ["certificate verify failed", "invalid peer certificate: UnknownIssuer"])
def test_certificate_that_is_not_trusted_is_told(checkout: Checkout, words: str) -> None:
    said = _said_without_uv(checkout, f'echo "{words}"; exit 1')
    assert said == "patchlock: a server's certificate is not trusted (see LOG): set SSL_CERT_FILE to your network's\n"


@posix
def test_certificates_that_are_not_there_are_told(checkout: Checkout) -> None:
    said = _said_without_uv(checkout, 'echo "certificate verify failed"; exit 1', {"SSL_CERT_FILE": "/none.pem"})
    assert said == "patchlock: /none.pem is not there (see LOG): correct or remove SSL_CERT_FILE\n"


@posix
@pytest.mark.parametrize(
    ("env", "seen"),
    [
        ({}, " "),
        ({"UV_DEFAULT_INDEX": "https://a/simple", "UV_INDEX_URL": "https://b"}, "https://a/simple "),
        ({"UV_INDEX_URL": "https://b/simple"}, "https://b/simple "),
        ({"UV_DEFAULT_INDEX": "https://a/simple", "PIP_INDEX_URL": "https://c/simple"}, "https://c/simple "),
        ({"SSL_CERT_FILE": "/a.pem"}, " /a.pem"),
        ({"SSL_CERT_FILE": "/a.pem", "PIP_CERT": "/b.pem"}, " /b.pem"),
        ({"SSL_CERT_FILE": "/a.pem", "CURL_CA_BUNDLE": "/c.pem"}, " "),
    ],
    ids=["nothing", "index", "old name", "pip's index", "certificate", "pip's certificate", "requests' certificate"],
)
def test_pip_is_given_what_uv_is_set_up_with(checkout: Checkout, env: dict[str, str], seen: str) -> None:
    place = checkout.elsewhere / "seen"
    _said_without_uv(checkout, _PIP.format("none"), {"SSL_CERT_FILE": "", "SEEN": str(place), **env})
    assert place.read_text(encoding="utf-8") == f"{seen}\n"


@posix
def test_cache_of_uv_that_cannot_be_used_is_told(checkout: Checkout) -> None:
    code, _, err = checkout.run(env={"UV_CACHE_DIR": "/dev/null/uv"})
    (log,) = checkout.cache.glob("*.log")
    assert (code, err) == (1, f"{PREPARING}patchlock: uv cannot use its cache (see {log}): set UV_CACHE_DIR\n")


@posix
def test_relative_paths_are_of_the_folder_one_stands_in(checkout: Checkout) -> None:
    assert checkout.run(env={"UV_CACHE_DIR": "uv cache"})[0] == 0
    assert (checkout.elsewhere / "uv cache" / "CACHEDIR.TAG").is_file()
