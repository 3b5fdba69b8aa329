"""Overlays on a miniature: their libraries are loaded first, the packages' own stay as they are, and all goes back."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import miniature
import pytest
import standins
from conftest import Patchlock, Said
from loopback import LoopbackIndex
from miniature import World
from standins import Standins

from patchlock.model.platforms import PLATFORMS

LINUX = next((name for name in PLATFORMS if os.name == "posix" and name == f"linux-{os.uname().machine}"), "")
pytestmark = pytest.mark.skipif(not LINUX, reason="the stand-ins are built for Linux")
NAME = "ZLUDA-nightly.zip"
APP = "import os, sys, torch\nif __name__ == '__main__':\n    print(torch.whose(), os.environ.get('HIP_PATH'))\n"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Standins:
    """Compile the stand-ins once."""
    return standins.build(tmp_path_factory.mktemp("standins"))


@pytest.fixture
def vendor() -> Iterator[LoopbackIndex]:
    """Serve the vendor's archive."""
    server = LoopbackIndex()
    yield server
    server.close()


@pytest.fixture
def sdk(built: Standins, tmp_path: Path) -> Path:
    """Put the SDK on the machine."""
    for path, data in built.sdk.items():
        (tmp_path / "sdk" / path).parent.mkdir(parents=True)
        (tmp_path / "sdk" / path).write_bytes(data)
    return tmp_path / "sdk"


@pytest.fixture
def torch(world: World, built: Standins, face: Callable[..., Said], tmp_path: Path) -> World:
    """Give the app a torch that is linked against CUDA's library, and a lock."""
    wheels = [*world.wheels.iterdir(), miniature.wheel(world.wheels, "torch", "2.7.1", files=built.torch)]
    miniature.index(world.catalogue.parent / "index", wheels)
    (world.upstream / "requirements.txt").write_text("alpha==9.0\nbeta>=1\ntorch==2.7.1\n")
    (world.upstream / "app.py").write_text(APP + "X = 'cuda'\n")
    checks = world.app.read_text().index('[[check]]\nid = "imports"')
    world.app.write_text(world.app.read_text()[:checks])
    world.name_commit(tmp_path)
    assert face(*miniature.lock_here()).returncode == 0
    return world


def tree(folder: Path) -> dict[str, str]:
    """Hash every file of a folder but bytecode, which Python writes when it likes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    }


def test_overlay_is_found_first_and_everything_goes_back(
    torch: World, built: Standins, vendor: LoopbackIndex, sdk: Path, patchlock: Patchlock, face: Callable[..., Said], tmp_path: Path
) -> None:  # fmt: skip
    assert face("install", "mini").returncode == 0
    home = tmp_path / "installed"
    (first,) = (home / "mini@tiny" / "environments").iterdir()
    before = tree(first)

    vendor.file(NAME, built.archive)
    url, digest = f"{vendor.url}/{NAME}", hashlib.sha256(built.archive).hexdigest()
    trust = 'trust-on-first-use = "its vendor publishes no sha256"'
    table = standins.table(url, built, platform=LINUX, trust=trust, sdk=sdk.as_posix())
    torch.profile.write_text(miniature.PROFILE + table)
    done = face("install", "mini")
    assert done.returncode == 0, done.stderr
    assert (
        f"{NAME}: its vendor publishes no sha256; this first download, sha256 {digest}, is trusted without proof, "
        f"and every later one must be the same ({home / 'trusted.toml'})"
    ) in done.stderr
    assert "present   overlays: zluda: every file as installed" in done.stdout
    (trusted,) = tomllib.loads((home / "trusted.toml").read_text())["file"]
    assert (trusted["url"], trusted["sha256"], trusted["by"]) == (url, digest, "mini@tiny")
    receipt = json.loads(face("install", "mini", "--json").stdout)["data"]["receipt"]
    assert receipt["overlays"] == {"zluda": digest}
    assert patchlock("run", "mini").stdout == f"linked ours, by name ours {sdk}\n"

    # The packages' own files are as their wheels have them, and without the gate they are what is loaded.
    second = home / "mini@tiny" / "environments" / receipt["id"]
    (packages,) = second.glob("lib/python*/site-packages")
    for path, data in built.torch.items():
        assert (packages / path).read_bytes() == (data if isinstance(data, bytes) else data.encode())
    added = {path for path in tree(second).keys() - before.keys() if not path.startswith("receipt")}
    assert added == {"overlays/preload.json", f"overlays/zluda/{built.cublas}"}
    direct = [str(second / "bin" / "python"), "-c", "import torch; print(torch.whose())"]
    plain = subprocess.run(direct, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
    assert plain.stdout == "linked theirs, by name theirs\n"

    # Damage is told by `verify`, and by whatever starts.
    library = second / "overlays" / "zluda" / built.cublas
    library.write_bytes(b"")
    broken = face("verify", "mini")
    assert (broken.returncode, f"FAILED  present   overlays: {library} was changed" in broken.stdout) == (1, True)
    ran = patchlock("run", "mini")
    sentence = f"patchlock: {built.cublas} of the overlay zluda cannot be loaded from {library} ("
    assert (ran.returncode, ran.stderr.startswith(sentence)) == (1, True)

    # Back: the environment from before is the same, byte for byte, and nothing of the overlay is left.
    assert tree(first) == before
    assert face("rollback", "mini").returncode == 0
    assert patchlock("run", "mini").stdout == "linked theirs, by name theirs None\n"
    assert len(list((tmp_path / "cache" / "overlays").glob("*/*"))) == 1
    assert f"KiB: {NAME}, which no installation needs\n" in face("cache", "clean", "mini", "--yes").stdout
    assert not list((tmp_path / "cache" / "overlays").glob("*/*"))
    assert (tree(first), second.exists()) == (before, False)
    assert face("uninstall", "mini").returncode == 0
    assert {path.name for path in home.iterdir()} - {"patchlock", "bin"} == {"trusted.toml", "trusted.lock"}


def test_what_cannot_work_is_refused_before_anything_is_fetched(
    world: World, built: Standins, vendor: LoopbackIndex, face: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    vendor.file(NAME, built.archive)
    table = standins.table(
        f"{vendor.url}/{NAME}", built, platform=LINUX, trust='trust-on-first-use = "none"', sdk="/nowhere"
    )
    world.profile.write_text(miniature.PROFILE + table)
    (missing,) = built.sdk
    monkeypatch.setenv("HIP_PATH", str(tmp_path))
    assert face("install", "mini").stderr.splitlines()[-3:] == [
        "error[overlay]: the overlay zluda needs the AMD HIP SDK 6.2 or 6.4, which is not found; install it from https://www.amd.com/hip-sdk, and run the same command again",
        f"  HIP_PATH is {tmp_path}, which has no {missing}",
        f"  /nowhere, which has no {missing}",
    ]
    done = face("install", "mini", "--accept-changed", "x.zip")
    assert "error[usage]: tiny has no overlay whose archive is called x.zip; its archives: " in done.stderr
    assert (vendor.asked, (tmp_path / "installed" / "mini@tiny").exists()) == ([], False)
