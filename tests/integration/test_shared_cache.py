"""Several homes that share a cache: what one removes, another one still has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Patchlock
from depot import Depot
from miniature import World

from patchlock.distributions import wheelhouse


@pytest.fixture
def depot(locked: World) -> Iterator[Depot]:
    """Serve the wheels over HTTP, so that they are fetched into the wheelhouse."""
    made = Depot(locked.wheels)
    yield made
    made.close()


@pytest.fixture
def homes(depot: Depot, locked: World, patchlock: Patchlock, tmp_path: Path) -> dict[str, dict[str, str]]:
    """Install the app in two homes; the environment of each, with an index that is a server."""
    online = {"UV_DEFAULT_INDEX": depot.index, "UV_OFFLINE": "0"}
    found = {name: online | {"PATCHLOCK_HOME": str(tmp_path / name)} for name in ("one", "two")}
    for env in found.values():
        done = patchlock("install", "mini", env=env)
        assert done.returncode == 0, done.stderr
    return found


def _kept(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cache" / wheelhouse.FOLDER).glob("*/*.whl")}


ALL = {"alpha-1.0-py3-none-any.whl", "beta-1.5-py3-none-any.whl", "gamma-2.0-py3-none-any.whl"}


def test_purge_in_one_home_leaves_what_another_one_needs(
    depot: Depot, homes: dict[str, dict[str, str]], patchlock: Patchlock, tmp_path: Path
) -> None:
    assert _kept(tmp_path) == ALL
    assert patchlock("cache", "clean", "mini", "--yes", env=homes["one"]).returncode == 0
    done = patchlock("uninstall", "mini", env=homes["one"])
    assert "kept for the next install" not in done.stdout
    assert patchlock("install", "mini", env=homes["one"]).returncode == 0
    assert patchlock("uninstall", "mini", "--purge", "--yes", env=homes["one"]).returncode == 0
    assert _kept(tmp_path) == ALL
    offline = homes["two"] | {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cold")}
    done = patchlock("install", "mini", "--reinstall", env=offline)
    assert done.returncode == 0, done.stderr
    assert patchlock("uninstall", "mini", "--purge", "--yes", env=homes["two"]).returncode == 0
    assert _kept(tmp_path) == set()


def test_home_that_is_gone_needs_nothing(
    homes: dict[str, dict[str, str]], patchlock: Patchlock, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "two")
    assert patchlock("uninstall", "mini", "--purge", "--yes", env=homes["one"]).returncode == 0
    assert _kept(tmp_path) == set()
