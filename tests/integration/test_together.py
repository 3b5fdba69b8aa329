"""Two commands at once on one installation, one cache or one home: one waits or refuses, and neither breaks."""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Done, Server, serving, shared_server
from transactions import MINE, ONE, TRANSACTIONS, TWO, USERS, Places, says

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server that runs commands forks")

KEEPS = next(t for t in TRANSACTIONS if t.name == "upgrade")


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Places, Server]]:
    """Give the folder in which states are put, with a server of its own, and a second server."""
    folder = tmp_path_factory.mktemp("together")
    with serving(folder / "other") as other:
        yield Places(folder, shared_server()), other


def _at_once(
    two: tuple[Places, Server], first: str, second: str, *, later: float = 0, home: str = "home"
) -> tuple[Done, Done]:
    places, other = two
    env = places.env | {"PATCHLOCK_HOME": str(places.folder / home)}

    def run_second() -> Done:
        time.sleep(later)
        return other.run(*second.format(folder=places.folder).split(), env=env)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(run_second)
        done = places.run(*first.split())
        return done, running.result()


@pytest.mark.parametrize(
    ("state", "first", "second", "later"),
    [
        ("locked", "install mini", "install mini", 0),
        ("newer", "install mini", "update mini --source {folder}/public", 0.1),
        ("newer", "install mini", "uninstall mini", 0),
        ("newer", "install mini", "uninstall mini", 0.3),
        ("newer", "install mini", "run mini", 0.5),
        ("two", "cache clean mini --yes", "run mini", 0),
        ("two", "rollback mini", "cache clean mini --yes", 0.02),
        ("two", "install mini --reinstall", "cache clean mini --yes", 0.2),
    ],
    ids=lambda words: str(words).partition(" ")[0],
)
def test_one_waits_or_refuses(two: tuple[Places, Server], state: str, first: str, second: str, later: float) -> None:
    places, _ = two
    places.put(state)
    for done in _at_once(two, first, second, later=later):
        assert done.returncode == 0 or says(done), done.stderr
    assert state == "locked" or places.objections(KEEPS) == []
    last = places.run("install", "mini")
    assert last.returncode == 0, last.stderr
    assert places.run("run", "mini").stdout == (ONE if state == "locked" else TWO)
    assert places.run("verify", "mini").returncode == 0
    assert places.leftovers(temporary=True) == []
    assert state == "locked" or places.objections(KEEPS) == []


def test_two_profiles_share_the_cache_of_their_upstream(two: tuple[Places, Server]) -> None:
    places, _ = two
    places.put("two-profiles")
    for done in _at_once(two, "install mini --profile tiny", "install mini --profile small"):
        assert done.returncode == 0, done.stderr
    for profile in ("tiny", "small"):
        assert places.run("run", "mini", "--profile", profile).stdout == ONE
    assert places.leftovers(temporary=True) == []


def test_two_homes_share_one_cache(two: tuple[Places, Server]) -> None:
    places, other = two
    places.put("locked")
    for done in _at_once(two, "install mini", "install mini", home="second home"):
        assert done.returncode == 0, done.stderr
    env = places.env | {"PATCHLOCK_HOME": str(places.folder / "second home")}
    assert [places.run("run", "mini").stdout, other.run("run", "mini", env=env).stdout] == [ONE, ONE]


@pytest.fixture
def running(two: tuple[Places, Server]) -> Iterator[Places]:
    """Start the app of a state with a newer catalogue; it ends when `end` is there, and then says what it imports."""
    places, _ = two
    places.put("newer")
    app = places.source / "app.py"
    wait = f"import os, time\nwhile not os.path.exists({str(places.folder / 'end')!r}):\n    time.sleep(0.02)\n"
    (places.source / "service.py").write_text(
        f"open({str(places.folder / 'begun')!r}, 'w')\n{wait}import alpha\nprint(alpha.__version__)\n"
    )
    app.write_text(app.read_text().replace(MINE, "if os.environ.get('WAIT'):\n    import service\n" + MINE))
    app.write_text(app.read_text().replace("import alpha\n", "import os\nimport alpha\n"))
    yield places
    (places.folder / "end").touch()


def _start(places: Places) -> subprocess.Popen[str]:
    installer = Path(__file__).parent.parent.parent / "installer"
    child = subprocess.Popen(
        [sys.executable, "-m", "patchlock", "run", "mini"],
        env=places.env | {"PYTHONPATH": str(installer), "WAIT": "1"},
        cwd=places.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (places.folder / "begun").exists():
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return child


def test_app_goes_on_while_its_generation_is_replaced(running: Places) -> None:
    child = _start(running)
    assert running.run("install", "mini").returncode == 0
    pruned = running.run("cache", "clean", "mini", "--yes")
    assert (pruned.returncode, pruned.stdout) == (0, "there is nothing to remove\n")
    assert "stays: mini still runs in it\n" in pruned.stderr
    refused = running.run("uninstall", "mini")
    assert says(refused)
    assert "error[busy]: mini is running (" in refused.stderr
    assert not (running.installed / "journal").exists()
    (running.folder / "end").touch()
    out, _ = child.communicate()
    assert child.returncode == 0
    assert out.endswith("1.0\n")
    assert json.loads(running.run("cache", "clean", "mini", "--yes", "--json").stdout)["data"]["removed"]
    assert running.run("uninstall", "mini").returncode == 0
    assert [name for name in USERS if not (running.source / name).exists()] == []
