"""`bundle --with-models`: what an app would download arrives with it, and only under the name that its bytes have."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Patchlock, Said
from hub import LoopbackHub
from miniature import World, lock_here
from test_models import BIG, COMMIT, SMALL, VOICE, declare, hub

__all__ = ["hub"]
Members = dict[str, bytes]
pytestmark = pytest.mark.slow


@pytest.fixture
def bundle(locked: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path) -> Path:
    declare(locked, hub)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("bundle", "mini", "--with-models", "-o", "mini.bundle")
    assert done.returncode == 0, done.stderr
    return tmp_path / "mini.bundle"


@pytest.fixture
def there(bundle: Path, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path) -> Callable[..., Said]:
    """Run on a machine that has the catalogue and nothing else, and reaches no server."""
    hub.close()
    env = {
        "HOME": str(tmp_path / "there"),
        "PATCHLOCK_HOME": str(tmp_path / "there" / "apps"),
        "PATCHLOCK_CACHE_DIR": str(tmp_path / "there" / "cache"),
        "UV_CACHE_DIR": str(tmp_path / "there" / "uv"),
        "UV_DEFAULT_INDEX": "https://index.invalid/simple",
    }
    return lambda *words: patchlock(*words, env=env)


def _hub_cache(tmp_path: Path) -> Path:
    return tmp_path / "there" / ".cache" / "huggingface" / "hub"


def _rewrite(bundle: Path, change: Callable[[Members], None]) -> None:
    """Change the members, and the manifest with them, as somebody would who means it."""
    with tarfile.open(bundle) as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    change(members)
    manifest = json.loads(members.pop("manifest.json"))
    manifest["pieces"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    with tarfile.open(bundle, "w") as archive:
        for name, data in {"manifest.json": json.dumps(manifest).encode(), **members}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _exchange(members: Members, old: bytes, new: bytes) -> None:
    """Put other bytes into the place of a model, and say so."""
    name = f"models/{hashlib.sha256(old).hexdigest()}"
    del members[name]
    other = hashlib.sha256(new).hexdigest()
    members[f"models/{other}"] = new
    manifest = json.loads(members["manifest.json"])
    for one in manifest["models"]:
        if f"models/{one['sha256']}" == name:
            one["sha256"] = other
    members["manifest.json"] = json.dumps(manifest).encode()


def test_models_of_a_bundle_are_where_the_app_looks(there: Callable[..., Said], bundle: Path, tmp_path: Path) -> None:
    done = there("install", "mini", "--from", str(bundle))
    assert done.returncode == 0, done.stderr
    source = tmp_path / "there" / "apps" / "mini@tiny" / "source"
    pointer = _hub_cache(tmp_path) / "models--maker--listens" / "snapshots" / COMMIT / "deep" / "down" / "weights.bin"
    assert pointer.read_bytes() == BIG[:-1]
    assert (source / "models" / "speaks" / "model.bin").read_bytes() == BIG
    assert (source / "models" / "speaks" / "config.json").read_bytes() == SMALL
    assert (source / "voices" / "voice.bin").read_bytes() == VOICE
    assert "all there" in there("plan", "mini").stdout
    again = there("install", "mini", "--from", str(bundle))
    assert (again.returncode, again.stdout) == (
        0,
        "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
    )
    assert there("models", "mini", "--fetch").returncode == 0


def test_bundle_without_models_asks_no_hub(
    locked: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    declare(locked, hub)
    assert patchlock(*lock_here()).returncode == 0
    assert patchlock("bundle", "mini", "-o", "mini.bundle").returncode == 0
    assert hub.asked == []
    with tarfile.open(tmp_path / "mini.bundle") as archive:
        assert not [name for name in archive.getnames() if name.startswith("models/")]


@pytest.mark.parametrize("old", [BIG, BIG[:-1], SMALL, VOICE], ids=["with sha256", "large file", "of git", "vendor's"])
def test_other_bytes_under_a_models_name_are_refused_and_nothing_is_touched(
    bundle: Path, there: Callable[..., Said], tmp_path: Path, old: bytes
) -> None:
    _rewrite(bundle, lambda members: _exchange(members, old, b"evil"))
    done = there("install", "mini", "--from", str(bundle))
    assert done.returncode == 1
    assert f"models/{hashlib.sha256(b'evil').hexdigest()}" in done.stderr
    assert "nothing was touched" in done.stderr
    assert not _hub_cache(tmp_path).exists()
    assert not list((tmp_path / "there").rglob("*.whl"))
