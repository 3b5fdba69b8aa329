"""Patched distributions in environments and in other shapes of the lock: each machine makes the wheel that is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from conftest import Patchlock, Said
from miniature import World, index, wheel
from patched_alpha import RULE, alpha_of, declare, edit, lock_file, lock_of, platform_name, sha256_of

from patchlock.catalogue.reader import Catalogue
from patchlock.distributions import wheelhouse
from patchlock.locks import patched_distributions
from patchlock.locks.lock_request import Request
from patchlock.model import lockfile, platforms
from patchlock.model.errors import DownloadError, LockStaleError
from patchlock.model.identities import Sha256

Face = Callable[..., Said]


def _site(home: Path) -> Path:
    (found,) = home.glob("mini@tiny/environments/*/lib/python*/site-packages")
    return found


def _files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in folder.rglob("*") if path.is_file()}


def test_install_makes_the_wheel_that_the_lock_names(patched: World, face: Face, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache")  # as on another machine
    said = face("install", "mini")
    assert said.returncode == 0, said.stderr
    site = _site(tmp_path / "installed")
    assert (site / "alpha.py").read_text() == '__version__ = "1.0 patched"\n'
    assert [path.name for path in site.glob("alpha-*")] == [f"alpha-{alpha_of(patched).version}.dist-info"]


def _request(world: World) -> Request:
    opened = Catalogue(root=world.catalogue)
    return Request(
        app=opened.app("mini"),
        profile=opened.profile("tiny"),
        platform=platforms.PLATFORMS[platform_name()],
        catalogue=opened,
        home=world.catalogue.parent.parent / "installed",
        cache=world.catalogue.parent.parent / "cache",
    )


def _provide(world: World) -> Path:
    said: list[str] = []
    before = wheelhouse.find(_request(world).cache, alpha_of(world).sha256)
    is_there = before is not None and sha256_of(before) == alpha_of(world).sha256
    (made,) = patched_distributions.provide(_request(world), lock_of(world), said.append).values()
    assert said == ([] if is_there else ["Building alpha==1.0", "Built alpha==1.0"])
    assert made.sha256 == sha256_of(made.path) == alpha_of(world).sha256
    return made.path


def test_wheel_that_lies_here_is_used_without_asking(patched: World) -> None:
    shutil.rmtree(patched.catalogue.parent / "index")
    shutil.rmtree(wheelhouse.place(_request(patched).cache, alpha_of(patched).upstream.sha256, "x").parent)
    before = wheelhouse.find(_request(patched).cache, alpha_of(patched).sha256)
    assert _provide(patched) == before


@pytest.mark.parametrize("damaged", ["ours", "original", "both"])
def test_damaged_wheel_is_made_again(patched: World, damaged: str) -> None:
    alpha = alpha_of(patched)
    wanted = {"ours": [alpha], "original": [alpha.upstream], "both": [alpha, alpha.upstream]}[damaged]
    for package in wanted:
        kept = wheelhouse.find(_request(patched).cache, package.sha256)
        assert kept is not None
        kept.write_bytes(b"damaged")
    _provide(patched)


def test_other_patches_than_the_locks_are_refused(patched: World) -> None:
    shutil.rmtree(_request(patched).cache / "wheels")
    edit(patched.catalogue / "patches/distributions/alpha/patch.toml", "1.0 patched", "1.0 patched otherwise")
    with pytest.raises(LockStaleError) as caught:
        _provide(patched)
    said = str(caught.value)
    assert said.startswith("the patches of alpha make 1.0+patchlock.")
    assert f"of 1.0 now, and the lock names {alpha_of(patched).version} (lockfiles/mini/" in said
    assert said.endswith("run `patchlock lock mini --profile tiny`")


def test_original_of_other_bytes_is_refused(patched: World) -> None:
    shutil.rmtree(_request(patched).cache / "wheels")
    made = wheel(patched.wheels, "alpha", "1.0", files={"alpha.py": "evil = True\n"})
    shutil.rmtree(patched.catalogue.parent / "index" / "alpha")
    index(patched.catalogue.parent / "index", [made])
    with pytest.raises(DownloadError) as caught:
        _provide(patched)
    assert caught.value.what == "the index does not have the wheel of alpha 1.0 that is to be patched"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("", RULE, "alpha is to be patched, and was not when the lock was made"),
        (RULE, "", "alpha is patched in it, but the catalogue no longer asks for that"),
    ],
    ids=["added", "gone"],
)
def test_install_refuses_a_lock_that_was_made_without_or_with_the_rule(
    locked: World, face: Face, before: str, after: str, why: str
) -> None:
    text = locked.app.read_text()
    declare(locked, rule=before)
    if before:
        assert face("lock", "mini", "--platform", platform_name()).returncode == 0
    locked.app.write_text(text + after)
    said = face("install", "mini")
    assert (said.returncode, why in said.stderr) == (1, True), said.stderr


# --- two environments of one cache ------------------------------------------------------------------------------------


def test_patched_and_plain_environments_of_one_cache_do_not_see_each_other(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    assert face("install", "mini").returncode == 0
    plain = _site(tmp_path / "installed")
    before = _files(plain)
    declare(locked)
    assert face("lock", "mini", "--platform", platform_name()).returncode == 0
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path / "second"))
    assert face("install", "mini").returncode == 0
    ours = _site(tmp_path / "second")
    assert "patched" in (ours / "alpha.py").read_text()
    assert _files(plain) == before
    assert (plain / "beta.py").stat().st_ino == (ours / "beta.py").stat().st_ino  # it is one cache
    assert (plain / "alpha.py").stat().st_ino != (ours / "alpha.py").stat().st_ino


def _plain(folder: Path, lock: Path) -> Path:
    env = os.environ | {"UV_LINK_MODE": "hardlink"}
    subprocess.run([uv.find_uv_bin(), "venv", "-q", str(folder)], env=env, check=True)
    sync = [
        uv.find_uv_bin(),
        "pip",
        "sync",
        "-q",
        "--no-config",
        "--require-hashes",
        "--python",
        str(folder),
        str(lock),
    ]
    subprocess.run(sync, env=env, check=True)
    return next(folder.glob("lib/python*/site-packages/alpha.py"))


def test_edit_in_place_leaks_through_uvs_cache(locked: World, tmp_path: Path) -> None:
    """Show what patched wheels are for: one environment is edited, and the others have the edit too."""
    first = _plain(tmp_path / "first", lock_file(locked))
    second = _plain(tmp_path / "second", lock_file(locked))
    with first.open("a") as file:
        file.write("edited = True\n")
    assert "edited" in second.read_text()


# --- other shapes of the lock -----------------------------------------------------------------------------------------


def test_other_installers_take_the_lock_after_the_commands_in_it(
    patched: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    for command in lockfile.patch_commands(lock_of(patched).packages):
        assert patchlock(*command.split()[1:]).returncode == 0
    subprocess.run([uv.find_uv_bin(), "venv", "-q", str(tmp_path / "venv")], check=True)
    sync = [
        uv.find_uv_bin(),
        "pip",
        "sync",
        "-q",
        "--require-hashes",
        "--find-links",
        "wheels",
        "--python",
        str(tmp_path / "venv"),
    ]
    subprocess.run([*sync, str(lock_file(patched))], cwd=tmp_path, check=True)
    (module,) = (tmp_path / "venv").glob("lib/python*/site-packages/alpha.py")
    assert "patched" in module.read_text()


def test_pylock_is_refused_with_what_to_do(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--format", "pylock")
    assert said.returncode == 1
    assert f"there is none of alpha {alpha_of(patched).version}, which is patched on each machine" in said.stderr
    assert (
        "patchlock patch wheel alpha --version 1.0 --output wheels && "
        f"uv pip sync --require-hashes --find-links wheels {lock_file(patched)}`"
    ) in said.stderr


def test_sbom_has_the_original_as_ancestor_and_each_diff(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--format", "cyclonedx")
    alpha = next(one for one in json.loads(said.stdout)["components"] if one["name"] == "alpha")
    (ancestor,) = alpha["pedigree"]["ancestors"]
    assert (ancestor["purl"], ancestor["hashes"]) == (
        "pkg:pypi/alpha@1.0",
        [{"alg": "SHA-256", "content": sha256_of(patched.wheels / "alpha-1.0-py3-none-any.whl")}],
    )
    (patch,) = alpha["pedigree"]["patches"]
    assert patch["resolves"][0]["id"] == "says-so"
    assert '+__version__ = "1.0 patched"' in patch["diff"]["text"]["content"]


def test_dockerfile_makes_the_wheel_before_it_installs(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--platform", platform_name(), "--format", "dockerfile")
    made = said.stdout.index("/tools/bin/python -m patchlock patch wheel alpha --version 1.0 --output /wheels")
    copied = said.stdout.index("COPY --from=source /wheels /wheels\n")
    assert made < copied < said.stdout.index("--find-links /wheels /lock.txt")


def test_sha_is_of_the_bytes_in_the_wheelhouse(patched: World, tmp_path: Path) -> None:
    for digest in (alpha_of(patched).sha256, alpha_of(patched).upstream.sha256):
        kept = wheelhouse.find(tmp_path / "cache", Sha256(digest))
        assert kept is not None
        assert sha256_of(kept) == digest
