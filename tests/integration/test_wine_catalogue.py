"""A large real lock for Windows, installed under Wine by our own code; `tests/wine-root` makes it, PATCHLOCK_WINE names it.

What cannot run there: git, so that the steps of `install` before and after the environment are left out; torch_directml,
whose native half needs Windows' dxcore.dll and a driver of DirectX 12; whatever computes on a device. All other packages with
compiled code load. Needs 5 GB below PATCHLOCK_WINE, and half an hour on a busy machine; `-s` shows each step with its seconds.

Wine asks its server about every file that is opened, so that importing torch takes a minute on a busy machine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import packaging
import pytest
from conftest import ROOT

from patchlock.core import uv

pytestmark = [pytest.mark.wine, pytest.mark.online]

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
LOCK = ROOT / "lockfiles" / "diffrhythm2" / "directml-vega.txt"
PREAMBLE = r"""
import contextlib, sys, time
sys.path += [r"{installer}", r"{packages}"]
from pathlib import Path
from patchlock.environments import fill, venv
from patchlock.core import file_lock, process
from patchlock.catalogue.reader import Catalogue
from patchlock.locks.lock_request import Request, read_lock
from patchlock.model.platforms import PLATFORMS

drive = Path(r"{drive}")
catalogue = Catalogue(root=Path(r"{root}"))
request = Request(app=catalogue.app("diffrhythm2"), profile=catalogue.profile("directml-vega"), catalogue=catalogue,
                  platform=PLATFORMS["windows-amd64"], home=drive / "home", cache=drive / "cache")
folder = request.installation.environments / "one"
"""
INSTALL = r"""
class Progress:
    def stage(self, name): return contextlib.nullcontext()
    def say(self, text): print(time.strftime("%X"), text, flush=True)
    def transfer(self, done, total): pass
    note = say

lock, _ = read_lock(request)
request.installation.folder.mkdir(parents=True)
with file_lock.hold(request.installation.folder / "lock", wait=0) as held:
    venv.create(folder, r"C:\python\python.exe", lock=held)
    fill.fill(request, lock, folder, Progress(), held)
"""
ASK = r"""
env = venv.launch_variables(folder, {}, {})
# Into a file: what opens a window or asks for one starts Wine's explorer.exe, which keeps a pipe open for as long as anything runs.
child = process.start(str(venv.interpreter(folder)), "-X", "utf8", sys.argv[1], env=env, cwd=drive, log=drive / "said.txt")
sys.exit(child.wait())
"""
NATIVE = r"""
import importlib, importlib.metadata, re
loaded, failed = 0, []
for one in sorted(importlib.metadata.distributions(), key=lambda one: one.name.lower()):
    files = [str(file).replace("\\", "/") for file in one.files]
    if not any(file.endswith((".pyd", ".dll")) for file in files):
        continue
    for name in sorted({found[1] for file in files if (found := re.fullmatch(r"([a-z_]\w*)(?:/__init__\.py|[.\w-]*\.pyd)", file, re.I))}):
        try:
            importlib.import_module(name)
            loaded += 1
        except ImportError as error:
            failed.append(f"{name}: {error}")
print(loaded, *failed, sep="\n")
"""


def _step(name: str, *command: str, seconds: float, log: Path, variables: dict[str, str] | None = None) -> str:
    """Run a command under Wine; that it failed, or did not end in time, is said with its name and its last words."""
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(WINE / "enter"), *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(variables or {})},
            start_new_session=True,
        )
        try:
            code: int | str = child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            code = f"none, it did not end within {seconds:g} seconds"
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
    said = log.read_text("utf-8", errors="replace")
    assert code == 0, f"{name}: exit code {code}\n{said[-3000:]}"
    return said


class Installed:
    """The environment that the lock was installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.windows = folder, rf"C:\{folder.name}"
        self.environment = folder / "home" / "diffrhythm2@directml-vega" / "environments" / "one"
        self.own = rf"{self.windows}\own"
        # uv is looked for beside patchlock; else it imports Python alone, which may be that of this machine.
        packages = Path(packaging.__file__).parent.parent
        preamble = PREAMBLE.format(
            installer=f"Z:{ROOT / 'installer'}", packages=f"Z:{packages}", root=f"Z:{ROOT}", drive=self.windows
        )
        (folder / "install.py").write_text(preamble + INSTALL, encoding="utf-8")
        (folder / "ask.py").write_text(preamble + ASK, encoding="utf-8")

    def uv(self, name: str, *arguments: str, seconds: float = 300) -> list[str]:
        cache = {"UV_CACHE_DIR": rf"{self.windows}\uv"}
        log = self.folder / "uv.log"
        return _step(name, "uv", *arguments, seconds=seconds, log=log, variables=cache).splitlines()

    def run(self, name: str, script: str, *arguments: str, seconds: float) -> str:
        cache = {"UV_CACHE_DIR": rf"{self.windows}\uv"}
        command = (rf"{self.own}\Scripts\python.exe", "-B", rf"{self.windows}\{script}", *arguments)
        return _step(name, *command, seconds=seconds, log=self.folder / f"{script}.log", variables=cache)

    def ask(self, name: str, code: str, *, seconds: float = 900) -> list[str]:
        """Run a program in the environment as an app runs in it, and give the lines that it prints."""
        (self.folder / "asked.py").write_text(code, encoding="utf-8")
        self.run(name, "ask.py", rf"{self.windows}\asked.py", seconds=seconds)
        return (self.folder / "said.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """Install the lock as `install` does, on the drive C:."""
    with tempfile.TemporaryDirectory(prefix="vega-", dir=WINE / "prefix" / "drive_c") as folder:
        one = Installed(Path(folder))
        one.uv("a Python for patchlock", "venv", "-q", "-p", r"C:\python\python.exe", one.own)
        one.uv("uv beside it", "pip", "install", "-q", "-p", one.own, f"uv=={uv.version()}")
        one.run("the environment", "install.py", seconds=3600)
        yield one


def _python(installed: Installed) -> str:
    inside = installed.environment.relative_to(installed.folder)
    return "\\".join([installed.windows, *inside.parts, "Scripts", "python.exe"])


def test_every_package_of_vegas_lock_is_installed_with_its_version(installed: Installed) -> None:
    pins = set(re.findall(r"^([\w.-]+==[^\s+]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    frozen = installed.uv("freeze", "pip", "freeze", "-p", _python(installed))
    assert len(pins) > 90
    assert {line.lower() for line in frozen if "==" in line} == {pin.lower() for pin in pins}


def test_sdists_of_vegas_lock_were_built_from_its_pins(installed: Installed) -> None:
    built = set(re.findall(r"^([\w.-]+)==\S+ .*· sdist$", LOCK.read_text("utf-8"), re.MULTILINE))
    recorded = (installed.environment / "builds.toml").read_text("utf-8")
    assert set(re.findall(r'^name = "([\w-]+)"', recorded, re.MULTILINE)) == built
    pins = dict(
        re.findall(
            r"^([\w-]+)==\S+ --hash=sha256:(\w+)", LOCK.with_suffix(".build.txt").read_text("utf-8"), re.MULTILINE
        )
    )
    records = [path.read_text("utf-8") for path in (installed.folder / "cache" / "builds").glob("*/*/built.toml")]
    assert len(records) == len(built)
    for record in records:
        assert f'"setuptools" = "{pins["setuptools"]}"' in record


def test_packages_for_vega_go_together(installed: Installed) -> None:
    said = installed.uv("uv pip check", "pip", "check", "-p", _python(installed))
    assert "All installed packages are compatible" in said


def test_torch_for_vega_computes_on_the_processor_of_windows(installed: Installed) -> None:
    code = "import torch, torchaudio, torchvision; print(torch.__version__, (torch.ones(2, 3) @ torch.ones(3, 2)).sum().item())"
    assert installed.ask("torch, torchaudio, torchvision", code)[-1] == "2.4.1+cpu 12.0"


def test_what_was_built_for_vega_works_on_windows(installed: Installed) -> None:
    code = "import jieba, muq; print(jieba.lcut('\u6211\u6765\u5230\u5317\u4eac'), muq.MuQMuLan.__name__)"
    assert installed.ask("jieba, muq", code)[-1] == "['\u6211', '\u6765\u5230', '\u5317\u4eac'] MuQMuLan"


def test_all_compiled_packages_for_vega_load_but_directml(installed: Installed) -> None:
    loaded, *failed = installed.ask("all compiled packages", NATIVE)
    assert int(loaded) > 25
    # Wine has no dxcore.dll: the wheel is there, and its native half finds nothing to load.
    assert [line.partition(": ")[0] for line in failed] == ["torch_directml", "torch_directml_native"]
    assert all("DLL load failed while importing torch_directml_native" in line for line in failed)
