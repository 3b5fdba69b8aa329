"""uv: a failure without a better name is told by uv's own last lines, not by a long command line."""

from __future__ import annotations

import hashlib
import re
import socket
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from miniature import wheel
from uv import _find_uv

from patchlock.core import uv
from patchlock.model.errors import (
    CommandFailedError,
    FileAccessError,
    NetworkError,
    ProgramMissingError,
    RequirementsError,
    WheelError,
)


def _offered(tmp_path: Path, made: Path) -> str:
    """Write an index with one wheel of beta."""
    page = tmp_path / "index" / "beta" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="{made.as_uri()}">{made.name}</a>')
    return page.parent.parent.as_uri()


@pytest.mark.parametrize("is_named", [False, True], ids=["METADATA", "address"])
def test_file_of_another_distribution_is_said(tmp_path: Path, is_named: bool) -> None:
    made = wheel(tmp_path, "alpha", "1.0")
    if not is_named:
        renamed = made.with_name("beta-1.0-py3-none-any.whl")
        with zipfile.ZipFile(made) as archive, zipfile.ZipFile(renamed, "w") as other:
            for name in archive.namelist():
                other.writestr(name.replace("alpha", "beta"), archive.read(name))
        made = renamed
    (tmp_path / "in.txt").write_text(f"beta @ {made.as_uri()}" if is_named else "beta")
    words = ("pip", "compile", "in.txt", "--no-config", "--default-index", _offered(tmp_path, made))
    with pytest.raises(RequirementsError if is_named else WheelError) as caught:
        uv.run(*words, cwd=tmp_path, installing=False)
    assert str(caught.value) == (
        f"`beta` is asked for, and the file that is named for it is of `alpha` ({made.as_uri()}); correct the name or "
        "the address with a patch (set-requirement or replace-text)"
        if is_named
        else "what the index has as `beta` says in its METADATA that it is `alpha`; report it to its publisher, and ask "
        "for another version"
    )


def test_malformed_entry_point_is_of_the_wheel_and_not_of_the_cache(tmp_path: Path) -> None:
    text = "[console_scripts]\nx = alpha:m;import os\n"
    made = wheel(tmp_path, "alpha", "1.0", files={"alpha-1.0.dist-info/entry_points.txt": text})
    uv.run("venv", "-q", "--no-config", "--python", sys.executable, "v", cwd=tmp_path, installing=True)
    words = ("pip", "install", "--no-config", "--no-deps", "--python", "v", str(made))
    with pytest.raises(WheelError) as caught:
        uv.run(*words, cwd=tmp_path, installing=True)
    assert caught.value.what == (
        "the wheel of alpha is malformed, and was not installed: invalid console script: 'alpha:m;import os'"
    )


def test_silent_server_of_a_file_is_named() -> None:
    words = (
        "error: Failed to download `beta @ https://u:p@vendor.invalid/beta-1.5-py3-none-any.whl`",
        "  cause: error sending request for url (https://vendor.invalid/beta-1.5-py3-none-any.whl)",
    )
    named = uv.classify_error(CommandFailedError("uv failed with exit code 2", where="uv pip compile", evidence=words))
    assert isinstance(named, NetworkError)
    assert (named.what, named.where) == (
        "the server that has the file of beta does not answer",
        "https://vendor.invalid",
    )


def test_command_is_named_by_its_first_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError) as caught:
        uv.run("pip", "compile", "gone.txt", "--no-config", "--offline", cwd=tmp_path, installing=False)
    first, *words = str(caught.value).splitlines()
    assert first == "uv failed with exit code 2 (uv pip compile)"
    assert "gone.txt" in words[-1]


@pytest.mark.parametrize(("inside", "reason"), [("", "file exists"), ("folder", "not a directory")])
def test_cache_that_is_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / inside
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    with pytest.raises(FileAccessError) as caught:
        uv.run("python", "find", "--no-config", cwd=tmp_path, installing=True)
    assert str(caught.value) == (
        f"uv cannot use its cache: {reason} ({cache}); correct the folder's permissions, or choose another one with "
        "UV_CACHE_DIR"
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        pytest.param(
            (
                "error: Failed to initialize cache at `closed`",
                "  cause: failed to open file `/home/ann/closed/CACHEDIR.TAG`: Permission denied (os error 13)",
            ),
            "its cache",
            id="empty",
        ),
        pytest.param(
            (
                "error: Could not acquire lock",
                "  cause: Could not create temporary file",
                '  cause: Permission denied (os error 13) at path "/home/ann/closed/.tmp5M9OIH"',
            ),
            "a folder, its cache or that of its Pythons",
            id="used before",
        ),
    ],
)
def test_cache_that_may_not_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], what: str
) -> None:
    """As uv 0.13.8 says it to a user who may read the folder alone."""
    monkeypatch.setenv("UV_CACHE_DIR", "/home/ann/closed")
    named = uv.classify_error(CommandFailedError("uv failed with exit code 2", where="uv python find", evidence=words))
    assert isinstance(named, FileAccessError)
    assert named.what == f"uv cannot use {what}: permission denied"
    assert named.where == "/home/ann/closed"


def test_malformed_wheel_is_not_blamed_on_the_cache(tmp_path: Path) -> None:
    made = wheel(tmp_path / "made", "delta", "1.0")
    forged = made.rename(tmp_path / "delta-2.0-py3-none-any.whl")
    (tmp_path / "lock.txt").write_text(f"delta==2.0 --hash=sha256:{hashlib.sha256(forged.read_bytes()).hexdigest()}\n")
    uv.run("venv", "-q", "--no-project", "--python", sys.executable, "empty", cwd=tmp_path, installing=True)
    asked = ("pip", "sync", "--no-config", "--no-index", "--find-links", ".", "--require-hashes", "--python", "empty")
    with pytest.raises(WheelError) as caught:
        uv.run(*asked, "lock.txt", cwd=tmp_path, installing=True)
    assert str(caught.value).splitlines()[0] == (
        "delta-2.0-py3-none-any.whl is malformed, and was not installed: wheel version does not match filename "
        "(1.0 != 2.0) (uv pip sync); nothing here can repair it: report it to its publisher, and lock another version"
    )


@pytest.mark.parametrize(
    ("before", "ended", "what"),
    [
        pytest.param(
            ("No solution found for the fork, and it was given up",),
            (
                "error: Request failed after 1 retry in 4.0s",
                "  cause: Failed to fetch: http://127.0.0.1:9/simple/a/",
                "  cause: error sending request for url (http://127.0.0.1:9/simple/a/)",
                "  cause: operation timed out",
            ),
            "the package index does not answer",
            id="at-last",
        ),
        pytest.param(
            (),
            (
                "error: Failed to download `a==1.0`",
                "  cause: Failed to download distribution due to network timeout. Try increasing UV_HTTP_TIMEOUT",
                "  hint: the requirements may be unsatisfiable without it",
            ),
            "the package index does not answer",
            id="of-a-file",
        ),
        pytest.param(
            (),
            (
                "error: Failed to fetch: `https://index.example/simple/a/`",
                "  cause: error sending request for url (https://index.example/simple/a/)",
                "  cause: client error (Connect)",
                "  cause: invalid peer certificate: UnknownIssuer",
            ),
            "the certificate of the server is not trusted",
            id="certificate",
        ),
        pytest.param(
            (
                "  Caused by: error sending request for url (http://127.0.0.1:9/simple/a/)",
                "  Caused by: operation timed out",
            ),
            (
                "error: No solution found when resolving dependencies",
                "  cause: Because zz was not found, we can conclude that your requirements are unsatisfiable.",
            ),
            "no set of packages satisfies the requirements",
            id="before-it-went-well",
        ),
    ],
)
def test_network_and_conflict_are_told_apart_by_what_uv_ended_with(
    before: tuple[str, ...], ended: tuple[str, ...], what: str
) -> None:
    """As uv 0.13.8 says it with `-v`."""
    said = CommandFailedError("uv failed with exit code 2", where="uv pip compile", evidence=(*before, *ended))
    assert uv.classify_error(said).what == what


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "the certificate of the server is not trusted (https://index.example); name the certificates of your "),
        ("there.pem", "with SSL_CERT_FILE, which is set to a file without them, and run the same command again"),
        ("nope.pem", "the certificates cannot be read (nope.pem); correct or remove SSL_CERT_FILE"),
    ],
)
def test_certificates_that_are_named_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", named)
    ended = (
        "error: Failed to fetch: `https://index.example/simple/a/`",
        "  cause: invalid peer certificate: UnknownIssuer",
    )
    assert said in str(uv.classify_error(CommandFailedError("x", where="uv pip compile", evidence=ended)))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("Other(OtherError(CaUsedAsEndEntity))", "is that of a certificate authority itself"),
        (
            "certificate expired: verification time 1795000000 (UNIX), but certificate is not valid after 1",
            "has expired",
        ),
        ('certificate not valid for name "a"; certificate is only valid for DnsName("b")', "is for another name"),
    ],
)
def test_certificate_that_is_wrong_in_itself_is_told_as_that(cause: str, said: str) -> None:
    ended = (
        "error: Failed to fetch: `https://index.example/simple/a/`",
        f"  cause: invalid peer certificate: {cause}",
    )
    error = uv.classify_error(CommandFailedError("x", where="uv pip compile", evidence=ended))
    assert str(error).startswith(f"the certificate of the server {said} (https://index.example); ")


def test_index_that_does_not_answer_in_time_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.txt").write_text("a==1.0\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for name, value in {
            "UV_DEFAULT_INDEX": f"{address}/simple",
            "UV_HTTP_TIMEOUT": "1",
            "UV_HTTP_RETRIES": "0",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("UV_OFFLINE", "0")
        with pytest.raises(NetworkError) as caught:
            uv.run("pip", "compile", "in.txt", "--no-config", "-v", cwd=tmp_path, installing=False)
    assert str(caught.value) == (
        f"the package index does not answer ({address}); check the connection or the proxy, then run the same command "
        "again: finished downloads are kept"
    )


def test_missing_program_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATCHLOCK_BOOTSTRAP", raising=False)
    monkeypatch.setattr(sysconfig, "get_path", lambda *_, **__: "/nowhere/bin")
    monkeypatch.setattr(_find_uv, "_module_path", lambda: None)
    with pytest.raises(ProgramMissingError) as caught:
        uv.find()
    assert caught.value.where == "/nowhere/bin"
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(ProgramMissingError) as caught:
        uv.find()
    assert caught.value.where == sys.prefix
    of_python = f"install that package for {sys.executable}, its module as well as its program (docs/install.md)"
    assert caught.value.remedy == of_python
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", "/clone/install.sh")
    with pytest.raises(ProgramMissingError, match="run this again"):
        uv.find()
    assert caught.value.what == (
        "the uv of the Python package `uv` is not there, and patchlock runs no other one, such as that on PATH"
    )


def test_a_python_that_does_not_come_is_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "manual")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "0")
    with pytest.raises(NetworkError) as caught:
        uv.run("python", "install", "--no-config", "3.11", cwd=tmp_path, installing=True)
    assert str(caught.value).startswith("the server that has Python does not answer (http://127.0.0.1:9)")


def test_empty_variable_is_an_unset_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As templates of CI systems leave them."""
    for name in ("UV_OFFLINE", "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT", "UV_DEFAULT_INDEX", "UV_FIND_LINKS"):
        monkeypatch.setenv(name, "")
    (tmp_path / "none.txt").touch()
    words = ("pip", "compile", "none.txt", "--no-config", "--no-header", "-q")
    assert uv.run(*words, cwd=tmp_path, installing=True).text == ""


def test_uv_reads_every_variable_that_the_documentation_names() -> None:
    program = uv.find().read_bytes()
    files = (ROOT / "docs").rglob("*.*")
    named = {name for path in files for name in re.findall(rb"\bUV_[A-Z_]+\b", path.read_bytes())}
    assert {b"UV_DEFAULT_INDEX", b"UV_FIND_LINKS", b"UV_OFFLINE"} <= named
    assert sorted(name for name in named if name not in program) == []
