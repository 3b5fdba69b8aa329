"""Guards for every test: no network, no home folder of the user, no settings of his; and the marks that opt in."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import envelopes
import hypothesis
import miniature
import pytest
import uv
from faults import shared_server
from patched_alpha import patched, patched_once

from patchlock.catalogue import agreement
from patchlock.cli import _output, main
from patchlock.model.errors import PatchlockError

__all__ = ["patched", "patched_once"]

ROOT = Path(__file__).parent.parent
# A busy machine is slow now and then, which says nothing of the code.
hypothesis.settings.register_profile("patchlock", deadline=None)
hypothesis.settings.load_profile("patchlock")
_REAL_UV_CACHE = (
    os.environ.get("UV_CACHE_DIR")
    or subprocess.run([uv.find_uv_bin(), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
)

_UPSTREAMS = os.environ.get("PATCHLOCK_UPSTREAMS", "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine cannot run, and say why."""
    reasons = {
        "upstream": "" if _UPSTREAMS else "PATCHLOCK_UPSTREAMS names no folder of clones",
        "wine": "" if os.environ.get("PATCHLOCK_WINE") else "PATCHLOCK_WINE names no Windows Python",
        "aarch64": "" if os.environ.get("PATCHLOCK_AARCH64") else "PATCHLOCK_AARCH64 names no emulated system",
        "gpu": "" if os.environ.get("PATCHLOCK_GPU") else "PATCHLOCK_GPU is not set",
        "online": "PATCHLOCK_OFFLINE is set" if os.environ.get("PATCHLOCK_OFFLINE") else "",
    }
    for item in items:
        for mark, reason in reasons.items():
            if reason and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def trust() -> Iterator[None]:
    """Trust every catalogue: a test's are its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(agreement.VARIABLE, os.path.abspath(os.sep))  # noqa: PTH100 - the root of this drive
        yield


@pytest.fixture(scope="session", autouse=True)
def every_envelope_fits_its_schema() -> Iterator[None]:
    """Hold what each command prints with `--json` in this process against its schema."""
    with pytest.MonkeyPatch.context() as patch:
        real = _output.envelope

        def checked(command: str, data: object, error: PatchlockError | None) -> dict[str, object]:
            told = real(command, data, error)
            envelopes.check(json.loads(json.dumps(told)))
            return told

        patch.setattr(_output, "envelope", checked)
        yield


@pytest.fixture(autouse=True)
def guards(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a home of its own, and no network unless it is marked `online`."""
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("XDG_", "PATCHLOCK_", "UV_", "PIP_", "GIT_")) and name not in {
            "PIP_CERT",
            "GIT_SSL_CAINFO",
            agreement.VARIABLE,
        }:
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "VIRTUAL_ENV", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path / "installed"))
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    if request.node.get_closest_marker("online"):
        monkeypatch.setenv("UV_CACHE_DIR", _REAL_UV_CACHE)
        return
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            pytest.fail(f"this test is not marked online, and asks {address}")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> miniature.World:
    """Give the test a catalogue and an index of its own, and point the environment to them."""
    made = miniature.build(tmp_path / "world")
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture(scope="session")
def locked_once(tmp_path_factory: pytest.TempPathFactory) -> miniature.World:
    """Build a catalogue with its locks once; tests take copies."""
    folder = tmp_path_factory.mktemp("locked")
    made = miniature.build(folder / "world")
    env = made.env | {"UV_CACHE_DIR": str(folder / "uv"), "PATCHLOCK_CACHE_DIR": str(folder / "cache")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env | {"UV_OFFLINE": "1"}).items():
            patch.setenv(name, value)
        assert main(["lock", "mini"]) == 0
    return made


@pytest.fixture
def locked(locked_once: miniature.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> miniature.World:
    """Give the test a catalogue and an index of its own, with all locks made."""
    folder = tmp_path / "world"
    shutil.copytree(locked_once.catalogue.parent, folder)
    env = {"UV_DEFAULT_INDEX": (folder / "index").as_uri(), "PATCHLOCK_CATALOGUE": str(folder / "catalogue")}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return miniature.World(catalogue=folder / "catalogue", wheels=folder / "wheels", env=env)


@dataclasses.dataclass(frozen=True)
class Said:
    """What a command line printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def face(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run the command line in this process, which is quicker than in one of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # pip is slow to compile
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "patchlock-tests-bytecode"))

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = main(arguments)
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def upstreams() -> dict[str, str]:
    """Find real clones in the folder that PATCHLOCK_UPSTREAMS names: address of `origin`, or of GitHub by name → path."""
    found = {}
    for head in Path(_UPSTREAMS).glob("**/HEAD"):
        name = next((part for part in head.parent.parts if "+" in part), head.parent.parent.name)
        found[f"https://github.com/{name.replace('+', '/')}.git"] = str(head.parent)
    return found


@pytest.fixture
def patchlock(tmp_path: Path) -> Patchlock:
    """Run the command line as a user does, not in this process."""
    return Patchlock(tmp_path)


class Patchlock:
    """Runs `patchlock` and gives back what it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = [sys.executable, "-m", "patchlock"]

    def env(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """Name the variables of the process."""
        return {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": str(ROOT / "installer"),
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "patchlock-tests-bytecode"),
            **(extra or {}),
        }

    def __call__(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, forked off a process that has imported patchlock already where the system can."""
        if not hasattr(os, "fork"):
            return self.alone(*arguments, env=env)
        found = shared_server().run(*arguments, env=self.env(env), folder=self.folder)
        envelopes.check_output(arguments, found.stdout)
        return subprocess.CompletedProcess(self.command, found.returncode, found.stdout, found.stderr)

    def alone(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in a Python of its own."""
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=self.folder,
            env=self.env(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )
        envelopes.check_output(arguments, done.stdout)
        return done
