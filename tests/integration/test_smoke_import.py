"""The executed ensure `smoke-import`: modules in a real environment, and what they may not do while they are tried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

import miniature
import pytest
from conftest import Patchlock

from patchlock.model.checks import SmokeImport
from patchlock.verify import _smoke_import

MODULES = {
    "good": 'import json\nprint(\'{"failed": "no"}\')\n',
    "needs": "import blocked_one\n",
    "needs_inside": "from blocked_one.a import b\n",
    "asks": "import importlib.util, importlib.metadata\nassert importlib.util.find_spec('blocked_one') is None\n"
    "try: importlib.metadata.version('blocked-one')\nexcept importlib.metadata.PackageNotFoundError: pass\nelse: raise RuntimeError('it is told')\n",
    "guarded": "try: import blocked_one\nexcept ImportError: blocked_one = None\nassert blocked_one is None\n",
    "other": "import other_one\n",
    "connects": "import socket\nsocket.create_connection(('127.0.0.1', 9), timeout=5)\n",
    "looks_up": "import socket\nsocket.getaddrinfo('localhost', 80)\n",
    "sends": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))\n",
    "listens": "import socket\nsocket.socket().bind(('127.0.0.1', 0))\n",
    "asks_another": "import subprocess, sys\nsubprocess.check_call([sys.executable, '-c', \"import socket; socket.create_connection(('127.0.0.1', PORT), timeout=5)\"])\n",
    "loops": "while True: pass\n",
    "starts_and_loops": "import pathlib, subprocess, sys, time\np = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\npathlib.Path('child').write_text(str(p.pid))\ntime.sleep(60)\n",
    "exits": "import sys\nsys.exit(3)\n",
    "exits_well": "import sys\nsys.exit(0)\n",
    "exits_hard": "import os\nprint('gone', flush=True)\nos._exit(4)\n",
    "prints": "import sys\nprint('x' * 100_000)\nprint('y', file=sys.stderr)\n",
    "reads": "assert input() == ''\n",
    "gpu": "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == '' and 'HSA_OVERRIDE_GFX_VERSION' not in os.environ and os.environ['KEPT'] == '1'\n",
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n",
    "arguments": "import sys\nassert len(sys.argv) == 1\n",
    "package.inner": "from package import x\n",
}
NETWORK = "OSError: there is no network while a module is tried; it asked for"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment in which the package that is blocked is installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name == "posix")
    site = next(folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")
    for name in ("blocked_one", "other_one"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("")
        (site / name / "a.py").write_text("b = 1\n")
        (site / f"{name}-1.0.dist-info").mkdir()
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    return folder / ("bin/python" if os.name == "posix" else "Scripts/python.exe")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("x = 1\n")
    for name, code in MODULES.items():
        (folder / f"{name.replace('.', '/')}.py").write_text(code)
    return folder


def failures(module: str, python: Path, app: Path, timeout: int = 20) -> tuple[str, ...]:
    tried = SmokeImport(modules=(module,), blocked=("blocked_one",), timeout=timeout)
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "0", "HSA_OVERRIDE_GFX_VERSION": "1", "KEPT": "1"}
    return _smoke_import.failures(tried, python, app, variables)


@pytest.mark.parametrize(
    "module",
    ["good", "asks", "guarded", "other", "prints", "gpu", "threads", "arguments", "package.inner"],
)
def test_imports(module: str, python: Path, app: Path) -> None:
    assert failures(module, python, app) == ()


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("needs", "ModuleNotFoundError: No module named 'blocked_one'"),
        ("needs_inside", "ModuleNotFoundError: No module named 'blocked_one'"),
        ("missing", "ModuleNotFoundError: No module named 'missing'"),
        ("looks_up", f"{NETWORK} 'localhost'"),
        ("connects", f"{NETWORK} '127.0.0.1'"),
        ("sends", f"{NETWORK} ('127.0.0.1', 9)"),
        ("listens", f"{NETWORK} ('127.0.0.1', 0)"),
        ("exits", "SystemExit: 3"),
        ("exits_well", "SystemExit: 0"),
        ("exits_hard", "raises: python failed with exit code 4; its last line is: gone"),
        ("reads", "EOFError: EOF when reading a line"),
    ],
)
def test_does_not_import(module: str, why: str, python: Path, app: Path) -> None:
    assert failures(module, python, app) == (f"import {module} without blocked_one: {why}",)


def test_what_is_not_blocked_is_there(python: Path, app: Path) -> None:
    assert _smoke_import.failures(SmokeImport(modules=("needs",)), python, app, os.environ) == ()
    assert _smoke_import.failures(SmokeImport(modules=("other",), blocked=("other_one",)), python, app, os.environ) == (
        "import other without other_one: ModuleNotFoundError: No module named 'other_one'",
    )


def test_each_module_has_a_process_and_a_failure_of_its_own(python: Path, app: Path) -> None:
    tried = SmokeImport(modules=("exits_hard", "good", "exits"), timeout=20)
    assert _smoke_import.failures(tried, python, app, os.environ) == (
        "import exits_hard: raises: python failed with exit code 4; its last line is: gone",
        "import exits: SystemExit: 3",
    )


def test_module_that_loops_is_ended(python: Path, app: Path) -> None:
    assert failures("loops", python, app, timeout=1) == (
        "import loops without blocked_one: hangs: no end within 1 seconds",
    )


@pytest.mark.skipif(os.name != "posix", reason="only POSIX ends a whole group")
def test_what_a_module_started_is_ended_with_it(python: Path, app: Path) -> None:
    assert failures("starts_and_loops", python, app, timeout=3) != ()
    child = int((app / "child").read_text())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or subprocess.run(["unshare", "-rn", "true"], check=False).returncode != 0,
    reason="only Linux gives a network of its own, and not to everybody",
)
def test_what_a_module_starts_has_no_network_either(python: Path, app: Path) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        module = app / "asks_another.py"
        module.write_text(module.read_text().replace("PORT", str(listener.getsockname()[1])))
        subprocess.run([python, str(module)], check=True)
        assert failures("asks_another", python, app) != ()


def test_nothing_is_left_behind(python: Path, app: Path) -> None:
    before = sorted(app.rglob("*"))
    failures("package.inner", python, app)
    assert sorted(app.rglob("*")) == before


# --- as the ensure of a patch -----------------------------------------------------------------------------------------

PATCH = """
[[patch]]
id = "{id}"
why = "delta is for training"
source = "tests"
op = "optional-import"
paths = ["train.py"]
literal = ["{package}"]
package = "{package}"
{profiles}

[[patch.ensure]]
check = "imports-without"
package = "{package}"

[[patch.ensure]]
check = "smoke-import"
modules = ["{module}"]
blocked = ["{package}"]
"""


def with_patches(world: miniature.World, folder: Path, code: str, *patches: str) -> None:
    world.app.write_text(world.app.read_text() + "".join(patches))
    (world.upstream / "train.py").write_text(code)
    world.name_commit(folder)


def installed(patchlock: Patchlock) -> dict[str, dict[str, object]]:
    """Install the app, and verify it: what the receipt tells is checked again."""
    assert patchlock(*miniature.lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    done = patchlock("verify", "mini", "--json")
    assert done.returncode == 0, done.stdout
    return {check["id"]: check for check in json.loads(done.stdout)["data"]["checks"]}


def test_patch_that_was_needed_is_executed(world: miniature.World, patchlock: Patchlock, tmp_path: Path) -> None:
    patches = [
        PATCH.format(id="delta-optional", package="delta", module="train", profiles=""),
        PATCH.format(id="epsilon-optional", package="epsilon", module="no.such.module", profiles=""),
    ]
    with_patches(world, tmp_path, "import delta\nclass A(delta.B): pass\n", *patches)
    checks = installed(patchlock)
    assert checks["delta-optional/smoke-import"]["detail"] == "train without delta"
    assert "epsilon-optional/smoke-import" not in checks
    assert checks["delta-optional/smoke-import"]["passed"] is True


def test_patch_of_another_profile_is_not_executed(world: miniature.World, patchlock: Patchlock, tmp_path: Path) -> None:
    other = world.profile.with_name("other.toml")
    other.write_text(world.profile.read_text().replace("specificity = 0", "specificity = -1"))
    patch = PATCH.format(id="delta-optional", package="delta", module="train", profiles='profiles = ["other"]')
    with_patches(world, tmp_path, "import delta\n", patch)
    assert "delta-optional/smoke-import" not in installed(patchlock)


def test_module_that_still_fails_stops_the_install(
    world: miniature.World, patchlock: Patchlock, tmp_path: Path
) -> None:
    patch = PATCH.format(id="delta-optional", package="delta", module="train", profiles="")
    code = "import delta\nfrom importlib import import_module\nname = 'del' + 'ta'\nimport_module(name)\n"
    with_patches(world, tmp_path, code, patch)
    assert patchlock(*miniature.lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 1
    wanted = (
        "delta-optional/smoke-import (loads): import train without delta: ModuleNotFoundError: No module named 'delta'"
    )
    assert wanted in done.stderr
    assert not (tmp_path / "installed" / "mini@tiny" / "current").exists()
