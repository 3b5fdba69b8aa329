"""Folders, files and variables as no developer has them: it works, or one sentence says what to do; nothing is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Server, serving, shared_server
from transactions import ONE, TRANSACTIONS, TWO, Places, says

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server that runs commands forks")

KEEPS = next(t for t in TRANSACTIONS if t.name == "upgrade")
ODD = 'it\'s "q" %TEMP% $HOME ünï ☃ #&;*?[x]~\\ -new\nline'
INSTALL = "run `patchlock install mini --profile tiny`"


@pytest.fixture(scope="session")
def server() -> Server:
    return shared_server()


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Places:
    """Give the folder in which states are put."""
    return Places(tmp_path_factory.mktemp("bad"), server)


def _must(places: Places, server: Server, *words: str, **env: str) -> str:
    done = server.run(*words, env=places.env | env)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def _refused(places: Places, server: Server, *words: str, **env: str) -> str:
    done = server.run(*words, env=places.env | env)
    assert says(done), done
    return next(line for line in done.stderr.splitlines() if line.startswith("error["))


# --- names ------------------------------------------------------------------------------------------------------------


def test_every_path_is_odd(tmp_path: Path, server: Server) -> None:
    places = Places(tmp_path / ODD, server)
    places.put("two")
    run = lambda *words: _must(places, server, *words)  # noqa: E731
    assert run("run", "mini") == TWO
    run("rollback", "mini")
    assert run("run", "mini") == ONE
    run("update", "mini", "--source", f"{places.folder}/public")
    assert run("run", "mini") == TWO
    run("verify", "mini")
    run("cache", "clean", "mini", "--yes")
    run("uninstall", "mini")
    assert places.objections(KEEPS) == []
    assert places.leftovers(temporary=True) == []


@pytest.mark.parametrize("name", ["a:b", os.fsdecode(b"caf\xe9")], ids=["colon", "no-text"])
def test_home_that_no_environment_can_have(places: Places, server: Server, name: str) -> None:
    places.put("locked")
    done = server.run("install", "mini", env=places.env | {"PATCHLOCK_HOME": str(places.folder / name)})
    assert done.returncode == 2
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line.startswith(
        "error[usage]: an environment cannot work in a folder whose name has a colon, or bytes that are no UTF-8 ("
    )
    assert line.endswith("; choose another one with PATCHLOCK_HOME")
    assert not (places.folder / name).exists()


@pytest.mark.parametrize(("times", "works"), [(5, True), (22, False)], ids=["long", "too-long"])
def test_long_path(places: Places, server: Server, times: int, works: bool) -> None:
    places.put("locked")
    home = str(places.folder) + ("/" + "y" * 200) * times
    if not works:
        assert "file name too long" in _refused(places, server, "install", "mini", PATCHLOCK_HOME=home)
        return
    _must(places, server, "install", "mini", PATCHLOCK_HOME=home)
    assert _must(places, server, "run", "mini", PATCHLOCK_HOME=home) == ONE


# --- folders ----------------------------------------------------------------------------------------------------------


def test_symlinked_home(places: Places, server: Server) -> None:
    places.put("locked")
    (places.folder / "real").mkdir()
    places.home.symlink_to("real")
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == ONE
    _must(places, server, "uninstall", "mini")
    assert not places.installed.exists()


@pytest.mark.parametrize("which", ["home", "cache"])
def test_folder_that_is_a_file(places: Places, server: Server, which: str) -> None:
    places.put("locked")
    shutil.rmtree(places.folder / which, ignore_errors=True)
    (places.folder / which).write_text("mine")
    sentence = _refused(places, server, "install", "mini")
    assert sentence.startswith("error[file-access]: a file cannot be read or written: not a directory (")
    assert sentence.endswith("choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR")
    assert (places.folder / which).read_text() == "mine"


def test_cache_of_uv_that_is_a_file_is_no_missing_python(places: Places, server: Server) -> None:
    places.put("locked")
    shutil.rmtree(places.folder / "uv")
    (places.folder / "uv").write_text("mine")
    sentence = _refused(places, server, "install", "mini")
    assert sentence.startswith(f"error[file-access]: uv cannot use its cache: file exists ({places.folder / 'uv'}); ")
    assert not places.installed.exists()
    (places.folder / "uv").unlink()
    _must(places, server, "install", "mini")


def _other_disk(folder: Path) -> Path | None:
    other = Path("/dev/shm")
    return (
        other if other.is_dir() and os.access(other, os.W_OK) and other.stat().st_dev != folder.stat().st_dev else None
    )


def test_home_on_another_file_system_than_the_caches(
    places: Places, server: Server, request: pytest.FixtureRequest
) -> None:
    places.put("locked")
    other = _other_disk(places.folder)
    if other is None:
        pytest.skip("there is no other file system here")
    home = other / f"patchlock-test-{os.getpid()}"
    request.addfinalizer(lambda: shutil.rmtree(home, ignore_errors=True))
    _must(places, server, "install", "mini", PATCHLOCK_HOME=str(home))
    assert _must(places, server, "run", "mini", PATCHLOCK_HOME=str(home)) == ONE


@pytest.mark.parametrize("which", ["home", "cache"])
def test_read_only_folder(places: Places, server: Server, which: str, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with contextlib.suppress(PermissionError):
        (tmp_path / "closed" / "file").touch()
        pytest.skip("this user may write everywhere")
    places.put("newer")
    folder = places.folder / which
    subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    try:
        assert _must(places, server, "run", "mini") == ONE
        _must(places, server, "verify", "mini")
        sentence = _refused(places, server, "install", "mini")
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    assert sentence.startswith("error[file-access]: a file cannot be read or written: permission denied (")
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO
    assert places.objections(KEEPS) == []


@pytest.mark.parametrize("gone", ["cache", "uv", "home/mini@tiny/environments"])
def test_folder_that_was_deleted(places: Places, server: Server, gone: str) -> None:
    places.put("two")
    shutil.rmtree(places.folder / gone)
    if "environments" in gone:
        assert _refused(places, server, "run", "mini").endswith(INSTALL)
    else:
        assert _must(places, server, "run", "mini") == TWO
        _must(places, server, "rollback", "mini")
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO
    assert places.objections(KEEPS) == []


def test_source_that_was_deleted(places: Places, server: Server) -> None:
    places.put("two")
    shutil.rmtree(places.source)
    assert _refused(places, server, "run", "mini") == (
        f"error[not-installed]: the source of mini is gone ({places.source}); {INSTALL}"
    )
    _must(places, server, "cache", "clean", "mini", "--yes")
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO


# --- files of ours ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\0", b"a\0b", b"abc\n", b"../../..\n", b"x" * 5000], ids=lambda data: repr(data[:8])
)
def test_damaged_pointer(places: Places, server: Server, data: bytes) -> None:
    places.put("two")
    (places.installed / "current").write_bytes(data)
    assert _refused(places, server, "run", "mini").endswith(INSTALL)
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO
    assert places.objections(KEEPS) == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "binary": lambda _: b"\xff\xfe\0",
    "cut": lambda data: data[: len(data) // 2],
    "newer": lambda data: b"format = 2\n" + data,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_receipt(places: Places, server: Server, damage: str) -> None:
    places.put("two")
    now = (places.installed / "current").read_text().strip()
    for receipt in places.installed.glob("environments/*/receipt.toml"):
        receipt.write_bytes(DAMAGES[damage](receipt.read_bytes()))
    assert _refused(places, server, "run", "mini").endswith(INSTALL)
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO
    # What cannot be read may be of a newer patchlock: it is not removed unasked.
    others = [path.name for path in (places.installed / "environments").iterdir() if path.name != now]
    assert len(others) == 1
    _must(places, server, "cache", "clean", "mini", "--yes")
    assert [path.name for path in (places.installed / "environments").iterdir()] == [now]
    assert places.objections(KEEPS) == []


def test_damaged_clone_leaves_the_app_running(places: Places, server: Server) -> None:
    places.put("newer")
    shutil.rmtree(places.source / ".git")
    subprocess.run(["git", "init", "-q", str(places.home)], check=True)
    for words in (("install", "mini"), ("uninstall", "mini"), ("rollback", "mini")):
        sentence = _refused(places, server, *words)
        assert words[0] == "rollback" or sentence == (
            f"error[source-damaged]: git cannot work in the source of mini, so nothing was changed ({places.source}); "
            f"`mv {places.source} {places.source}.damaged`, then `patchlock install mini`, and copy your files back"
        )
        assert _must(places, server, "run", "mini") == ONE
        assert places.objections(KEEPS) == []
    places.source.rename(places.source.with_name("source.damaged"))
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO


# --- the machine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env", [{"HOME": "/nowhere/x"}, {"HOME": ""}, {"TMPDIR": "/nowhere"}, {"LC_ALL": "C"}], ids=str
)
def test_variables_that_name_nothing(places: Places, server: Server, env: dict[str, str]) -> None:
    places.put("locked")
    _must(places, server, "install", "mini", **env)
    assert _must(places, server, "run", "mini", **env) == ONE


@pytest.mark.parametrize("year", ["1980", "2099"])
def test_files_from_another_time(places: Places, server: Server, year: str) -> None:
    places.put("newer")
    subprocess.run(["find", str(places.folder), "-exec", "touch", "-h", "-d", f"{year}-01-02", "{}", "+"], check=True)
    _must(places, server, "install", "mini")
    assert _must(places, server, "run", "mini") == TWO
    _must(places, server, "rollback", "mini")
    assert _must(places, server, "run", "mini") == ONE
    assert places.objections(KEEPS) == []


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with serving(tmp_path / "server") as server:
            places = Places(tmp_path, server)
            places.put("installed")
            assert _must(places, server, "run", "mini") == ONE
    finally:
        os.umask(before)
    rights = {path.stat().st_mode & 0o777 for path in (places.source, places.source / "app.py")}
    assert rights == {0o777 & ~umask, 0o666 & ~umask}
