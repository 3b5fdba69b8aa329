"""What is installed, over its life: launchers, going back and forward, side by side, what is freed and what stays."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Patchlock, Said
from miniature import World, this_platform

from patchlock.cli._progress import Silent
from patchlock.core import file_lock
from patchlock.distributions import wheelhouse
from patchlock.model.identities import Sha256
from patchlock.model.installation import Installation
from patchlock.operations import _session

Face = Callable[..., Said]
EDITION = b'print("computed on", DEVICE)'


def _second_edition(world: World, face: Face, folder: Path) -> None:
    app = world.upstream / "app.py"
    app.write_bytes(app.read_bytes().replace(EDITION, b'print("computed on", DEVICE, "again")'))
    world.name_commit(folder)
    assert face("lock", "mini", "--platform", _platform()).returncode == 0
    assert face("install", "mini").returncode == 0


def _platform() -> str:
    return this_platform().name


def _start(launcher: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Start it as a menu does: from anywhere, with next to no variables."""
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONHOME": "/nowhere"}
    return subprocess.run([str(launcher), *words], cwd="/", env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ['it\'s 100% "my" $HOME é'])
def test_launcher_starts_what_is_in_use_from_anywhere(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = tmp_path / name
    monkeypatch.setenv("PATCHLOCK_HOME", str(home))
    said = face("install", "mini")
    assert said.returncode == 0, said.stderr
    folder, launcher = home / "mini@tiny", home / "mini@tiny" / "run"
    assert f"launcher  {launcher}\n" in said.stdout
    assert "patchlock-mini-tiny.desktop'\n" in said.stdout
    assert (_start(launcher).stdout, _start(launcher).stderr) == ("computed on cpu\n", "")
    _second_edition(locked, face, tmp_path)
    assert _start(launcher).stdout == "computed on cpu again\n"
    assert face("rollback", "mini").returncode == 0
    assert _start(launcher).stdout == "computed on cpu\n"
    said = face("rollback", "mini")
    assert (
        said.returncode,
        "mini has no earlier version installed, so there is nothing to go back to" in said.stderr,
    ) == (1, True)
    assert face("verify", "mini").returncode == 0
    rows = [row for row in face("status").stdout.splitlines() if row.lstrip().startswith("installed ")]
    assert [row.endswith(", in use") for row in rows] == [False, True]
    assert [row for row in rows if not re.match(r" +installed \d{4}-\d\d-\d\d \d\d:\d\d, upstream ", row)] == []
    assert face("install", "mini").returncode == 0
    assert _start(launcher).stdout == "computed on cpu again\n"
    (folder / "source" / "mine.txt").write_text("mine")
    assert face("uninstall", "mini").returncode == 0
    assert {path.name for path in folder.iterdir()} <= {"source", "lock"}


def test_launcher_hands_on_words_and_the_exit_code(locked: World, face: Face, tmp_path: Path) -> None:
    app = locked.upstream / "app.py"
    app.write_bytes(
        b"import sys\n"
        + app.read_bytes()
        + b"    sys.exit(sys.argv[1:] != ['--help'] and (print(sys.argv[1:]) or 7))\n"
    )
    locked.name_commit(tmp_path)
    text = locked.app.read_text()
    locked.app.write_text(text[: text.index('[[check]]\nid = "says-where"')])
    assert face("lock", "mini", "--platform", _platform()).returncode == 0
    assert face("install", "mini").returncode == 0
    done = _start(tmp_path / "installed" / "mini@tiny" / "run", "--profile", "a b", "$x", "--json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (7, "['--profile', 'a b', '$x', '--json']")


# --- side by side -----------------------------------------------------------------------------------------------------


def _times(folder: Path) -> dict[Path, int]:
    """Tell when each file was written; git renews the time of an object that another clone is linked to."""
    paths = (path for path in folder.rglob("*") if path.name != "__pycache__" and "objects" not in path.parts)
    return {path: path.stat().st_mtime_ns for path in paths}


def test_two_profiles_live_side_by_side(locked: World, face: Face, patchlock: Patchlock, tmp_path: Path) -> None:
    other = locked.profile.with_name("other.toml")
    other.write_text(locked.profile.read_text().replace("specificity = 0", 'specificity = 1\n[environment]\nX = "1"'))
    home = tmp_path / "installed"
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert face("cache", "clean", "mini", "--yes").stdout == "there is nothing to remove\n"  # not `other`
    assert face("lock", "mini", "--profile", "other", "--platform", _platform()).returncode == 0
    said = face("install", "mini")  # the one that fits best
    assert "run       patchlock run mini --profile other" in said.stdout
    for command in ("verify", "run", "rollback", "cache clean", "uninstall", "update"):
        said = face(*command.split(), "mini")
        assert said.returncode == 2
        whole = f"`patchlock {command} mini --profile other`"
        assert said.stderr == f"error[usage]: mini is installed on other and on tiny; name one: {whole}\n"
    before = _times(home / "mini@other")
    assert patchlock("run", "mini", "--profile", "tiny").stdout == "computed on cpu\n"
    assert face("install", "mini", "--profile", "tiny", "--reinstall").returncode == 0
    assert face("rollback", "mini", "--profile", "tiny").returncode == 0
    assert face("cache", "clean", "mini", "--profile", "tiny", "--yes").returncode == 0
    assert face("uninstall", "mini", "--profile", "tiny").stdout == "mini is removed from tiny\n"
    assert _times(home / "mini@other") == before
    assert face("verify", "mini").returncode == 0  # there is one again
    assert _start(home / "mini@other" / "run").stdout == "computed on cpu\n"


def test_an_install_that_has_not_finished_is_named_with_the_others(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    begun = tmp_path / "installed" / "mini@begun"
    begun.mkdir()
    (begun / "journal").write_text("an install is running\n")
    with file_lock.hold(begun / "lock", wait=0):
        assert face("uninstall", "mini").stdout == "mini is removed from tiny\n"
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert face("uninstall", "mini").stdout == (
        "mini is removed from tiny\nthe install of mini on begun did not finish; remove it too: "
        "patchlock uninstall mini --profile begun\n"
    )
    other = tmp_path / "installed" / "mini@other"
    other.mkdir()
    (other / "journal").write_text("an install is running\n")
    told = "error[usage]: mini is installed on begun (interrupted) and on other (interrupted); name one: "
    assert face("uninstall", "mini", "--purge", "--yes").stderr == (
        f"{told}`patchlock uninstall mini --profile begun --purge --yes`\n"
    )
    for folder in (begun, other):
        (folder / "current").write_text("0\n")
    third = tmp_path / "installed" / "mini@third"
    third.mkdir()
    (third / "journal").write_text("an install is running\n")
    assert face("uninstall", "mini").stderr == (
        "error[usage]: mini is installed on begun and on other and on third (interrupted); "
        "name one: `patchlock uninstall mini --profile begun`\n"
    )


def test_purge_finds_what_an_uninstall_has_left(locked: World, face: Face, tmp_path: Path) -> None:
    other = locked.profile.with_name("other.toml")
    other.write_text(locked.profile.read_text().replace("specificity = 0", "specificity = 1"))
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    outputs = tmp_path / "installed" / "mini@tiny" / "source" / "outputs"
    outputs.mkdir()
    (outputs / "song.wav").write_bytes(b"x" * 250_000)
    said = face("uninstall", "mini").stdout
    assert (
        f"kept your 1 file or folder (244.1 KiB), and the app's own files around them: {outputs.parent}\n  outputs/song.wav  244.1 KiB\n"
        in said
    )
    assert "remove them too: patchlock uninstall mini --profile tiny --purge" in said
    again = face("uninstall", "mini")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == (
        f"error[not-installed]: mini is not installed, and what is left of it is yours ({outputs.parent}); "
        "remove that too with `patchlock uninstall mini --profile tiny --purge`\n"
    )
    assert face("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert list((tmp_path / "installed").iterdir()) == []


# --- room -------------------------------------------------------------------------------------------------------------


def _du(*folders: Path) -> int:
    done = subprocess.run(["du", "-sc", "-B1", *map(str, folders)], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_cleaning_frees_what_it_promises(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    assert face("install", "mini").returncode == 0
    assert face("install", "mini", "--reinstall").returncode == 0
    needed = next(package for package in sorted(tmp_path.glob("installed/*/environments/*/lock.txt")))
    digest = Sha256(needed.read_text().rpartition("--hash=sha256:")[2][:64])
    for sha256 in (digest, Sha256("0" * 64)):
        kept = wheelhouse.place(tmp_path / "cache", sha256, "delta-1.0-py3-none-any.whl")
        kept.parent.mkdir(parents=True)
        kept.write_bytes(b"x" * 50_000)
    planned = json.loads(face("cache", "clean", "mini", "--dry-run", "--json").stdout)["data"]
    assert [one["file"] for one in planned["downloads"]] == ["delta-1.0-py3-none-any.whl"]
    (generation,) = planned["removed"]
    assert generation["shared_bytes"] > 0
    text = face("cache", "clean", "mini", "--dry-run").stdout
    assert "iB: delta-1.0-py3-none-any.whl, which no installation needs\n" in text
    assert "not freed " in text
    everything = [tmp_path / name for name in ("installed", "uv", "cache")]
    environments = tmp_path / "installed" / "mini@tiny" / "environments"
    before = _du(environments, tmp_path / "uv", tmp_path / "cache" / "wheels")
    assert face("cache", "clean", "mini", "--yes").returncode == 0
    freed = before - _du(environments, tmp_path / "uv", tmp_path / "cache" / "wheels")
    assert freed == generation["bytes"] + planned["downloads"][0]["bytes"]
    assert wheelhouse.find(tmp_path / "cache", digest) is not None
    assert all(path.exists() for path in everything)
    said = face("uninstall", "mini").stdout
    assert "kept for the next install: 48.8 KiB of downloads and builds in" in said
    assert "; remove them too: patchlock cache clean\n" in said


def test_purge_leaves_what_an_earlier_uninstall_has_kept_and_the_other_tells_it(
    locked: World, face: Face, tmp_path: Path
) -> None:
    assert face("install", "mini").returncode == 0
    kept = wheelhouse.place(tmp_path / "cache", Sha256("0" * 64), "delta-1.0-py3-none-any.whl")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 50_000)
    assert "downloads" not in face("uninstall", "mini", "--purge", "--dry-run").stdout
    assert face("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert kept.exists()
    assert face("install", "mini").returncode == 0
    assert "kept for the next install: 48.8 KiB of downloads and builds in" in face("uninstall", "mini").stdout
    assert "delta-1.0-py3-none-any.whl, which no installation needs" in face("cache", "clean").stdout


@pytest.mark.parametrize("purge", [False, True], ids=["kept", "purged"])
def test_downloads_of_an_interrupted_install_are_its_own(
    locked: World, face: Face, tmp_path: Path, *, purge: bool
) -> None:
    fetched = wheelhouse.place(tmp_path / "cache", Sha256("0" * 64), "delta-1.0-py3-none-any.whl")
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"x" * 50_000)
    begun = tmp_path / "installed" / "mini@tiny"
    (begun / "environments" / "1").mkdir(parents=True)
    (begun / "environments" / "1" / "lock.txt").write_text(f"delta==1.0 --hash=sha256:{'0' * 64}\n")
    (begun / "journal").write_text("an install is running\n")
    done = face("uninstall", "mini", *(["--purge", "--yes"] if purge else []))
    assert done.returncode == 0, done.stderr
    assert ("kept for the next install: 48.8 KiB of downloads and builds in" in done.stdout) is not purge
    assert fetched.exists() is not purge


def test_an_install_that_is_interrupted_before_it_laid_anything_down_leaves_nothing(tmp_path: Path) -> None:
    installation = Installation(folder=tmp_path / "home" / "mini@tiny")
    request: Any = SimpleNamespace(
        installation=installation, home=tmp_path / "home", cache=tmp_path / "cache", source=None, chosen=()
    )

    def stop() -> None:
        assert installation.journal.is_file()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), _session.hold_installation(request, Silent()):
        stop()
    assert not installation.folder.exists()


def test_a_stage_says_that_it_waits_for_another_patchlock(tmp_path: Path) -> None:
    installation, said = Installation(folder=tmp_path), list[str]()
    with contextlib.ExitStack() as other:
        other.enter_context(file_lock.hold(installation.lock, wait=0))
        progress: Any = SimpleNamespace(note=lambda _: other.close(), say=said.append)
        with _session.lock(installation, progress):
            assert said == ["waiting for another patchlock"]
