"""A machine that lacks something: install and plan say all of it at once, and touch nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Said
from miniature import World, lock_here, this_platform, wheel

from patchlock.cli import _options
from patchlock.core import disk_space
from patchlock.core.disk_space import FileSystem
from patchlock.distributions import wheel_facts, wheelhouse
from patchlock.environments import package_sizes
from patchlock.hardware import system
from patchlock.locks.lock_request import read_lock
from patchlock.model import lockfile
from patchlock.model.package_managers import System
from patchlock.operations import readiness

RESOURCE = """\
[need]
kind = "program"
title = "{name}"
source = "https://{name}.test"
[find]
any = ["{name}"]
[packages]
{managers}
"""
NEED = '\n[[need]]\nname = "{name}"\nwhy = "it reads songs"\nsource = "tests"\nrequired = {required}\n'
MANAGERS = ("apt", "dnf", "pacman", "zypper", "apk", "winget", "brew")


def _need(world: World, name: str, *, required: bool, inside: Path | None = None) -> None:
    folder = world.catalogue / "profiles/needs"
    folder.mkdir(exist_ok=True)
    managers = "\n".join(f'{manager} = ["{name}-package"]' for manager in MANAGERS)
    (folder / f"{name}.toml").write_text(RESOURCE.format(name=name, managers=managers))
    file = inside or world.app
    file.write_text(file.read_text() + NEED.format(name=name, required=str(required).lower()))


def test_disk_without_room_is_told_before_an_install(
    locked: World, face: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "installed"
    monkeypatch.setattr(disk_space, "look", lambda _: FileSystem(device=1, free=20_000_000))
    what = f"too little disk space in {home}: 19.1 MiB free, 286.1 MiB needed"
    planned = face("plan", "mini", "--profile", "tiny")
    assert planned.returncode == 1
    told = f"{what}; free some room, or choose another disk with PATCHLOCK_HOME"
    assert f"by hand 1. {told}" in " ".join(planned.stdout.split())
    assert f"missing: {told}\n" in planned.stderr
    found = face("doctor", "--profile", "tiny").stdout
    assert f"certain: {what}; tiny needs it" in " ".join(found.split())
    assert not re.search(r"^ +source *$", found, re.MULTILINE), "nothing is there to be read"
    assert face("install", "mini", "--profile", "tiny").stderr.startswith(
        "error[disk-full]: 286.1 MiB of disk are needed, 267.0 MiB more than is free; nothing was started"
    )


def test_plan_counts_what_is_downloaded_on_the_disk_of_the_cache(
    locked: World, face: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    lock = locked.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    known = cache / package_sizes.FOLDER / f"{hashlib.sha256(lock.read_bytes()).hexdigest()}.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"bytes": 3_000_000_000, "unnamed": []}))
    disks = {cache: FileSystem(device=2, free=2_000_000_000)}
    monkeypatch.setattr(disk_space, "look", lambda folder: disks.get(folder, FileSystem(device=1, free=10**12)))
    planned = face("plan", "mini", "--profile", "tiny")
    assert planned.returncode == 0, planned.stderr
    told = (
        f"too little disk space in {cache}: 1.9 GiB free, up to 2.9 GiB needed: to download the packages; "
        "free some room, or choose another disk with PATCHLOCK_CACHE_DIR"
    )
    assert f"by hand 1. {told}" in " ".join(planned.stdout.split())
    there = wheelhouse.place(
        cache, lockfile.parse(lock.read_text(), lock.name).packages[0].sha256, "alpha-1.0-py3-none-any.whl"
    )
    there.parent.mkdir(parents=True)
    with there.open("wb") as file:
        file.truncate(1_500_000_000)  # of it, nothing is written
    assert "by hand nothing" in " ".join(face("plan", "mini", "--profile", "tiny").stdout.split())
    there.unlink()
    disks[tmp_path / "installed"] = disks[cache] = FileSystem(device=2, free=3_200_000_000)
    assert "up to 3.1 GiB needed" in face("plan", "mini", "--profile", "tiny").stdout  # 200 MB of it for the home


def test_everything_that_is_missing_is_told_at_once_and_nothing_is_touched(
    locked: World, face: Callable[..., Said], tmp_path: Path
) -> None:
    _need(locked, "songreader", required=True)
    _need(locked, "songwriter", required=True, inside=locked.profile)
    done = face("install", "mini", "--profile", "tiny")
    assert done.returncode == 1
    head, *lines = done.stderr.splitlines()
    assert head == (
        "error[not-ready]: this machine is not ready for mini on tiny; nothing was touched; "
        "fix this and run the same command again, or with --ignore-needs if you know better"
    )
    assert lines[0].startswith("  songwriter is not installed: it reads songs; ")
    assert lines[1].startswith("  songreader is not installed: it reads songs; ")
    assert not (tmp_path / "installed/mini@tiny").exists()


def test_json_has_each_problem(locked: World, face: Callable[..., Said]) -> None:
    _need(locked, "songreader", required=True)
    error = json.loads(face("install", "mini", "--profile", "tiny", "--json").stdout)["error"]
    (problem,) = error["problems"]
    assert error["code"] == "not-ready"
    assert (problem["name"], problem["stops"], problem["source"]) == ("songreader", True, "tests")


def test_what_only_a_part_asks_for_is_a_note_of_the_summary(
    locked: World, face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "system", lambda: System(os="linux", release={"ID": "debian"}))
    _need(locked, "songreader", required=False)
    _need(locked, "songwriter", required=False)
    relocked = face(*lock_here())
    assert relocked.returncode == 0, relocked.stderr
    done = face("install", "mini", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    assert [line[11:].strip() for line in done.stdout.splitlines()][-5:-2] == [
        "songreader is not installed: it reads songs; install it: `sudo apt-get install songreader-package`",
        "songwriter is not installed: it reads songs; install it: `sudo apt-get install songwriter-package`",
        "all at once: sudo apt-get install songreader-package songwriter-package",
    ]


def test_person_who_knows_better_goes_on_and_is_told(locked: World, face: Callable[..., Said]) -> None:
    _need(locked, "songreader", required=True)
    face(*lock_here())
    done = face("install", "mini", "--profile", "tiny", "--ignore-needs", "--json")
    assert done.returncode == 0, done.stderr
    (note,) = json.loads(done.stdout)["data"]["notes"]
    assert note.startswith("songreader is not installed: it reads songs; ")


def test_git_is_no_need_that_can_be_ignored(
    locked: World, face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locked
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("UV_PYTHON", "x")
    done = face("install", "mini", "--profile", "tiny", "--ignore-needs")
    assert "  git is not installed; " in done.stderr


def test_plan_shows_what_is_missing(locked: World, face: Callable[..., Said]) -> None:
    _need(locked, "songreader", required=True)
    _need(locked, "songwriter", required=False)
    face(*lock_here())
    done = face("plan", "mini", "--profile", "tiny")
    assert done.returncode == 1
    assert [line.split(";")[0] for line in done.stderr.splitlines()] == [
        "missing: songreader is not installed: it reads songs",
    ]
    assert done.stdout.count("songwriter is not installed: it reads songs") == 1
    data = json.loads(face("plan", "mini", "--profile", "tiny", "--json").stdout)
    assert not data["ok"]
    assert [(one["name"], one["stops"]) for one in data["data"]["machine"]] == [
        ("songreader", True),
        ("songwriter", False),
    ]


def test_install_that_has_nothing_to_do_looks_at_nothing(
    locked: World, face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    monkeypatch.setattr(readiness, "assess", lambda *_, **__: pytest.fail("it looked"))
    assert "nothing to do" in face("install", "mini", "--profile", "tiny").stdout
    assert locked


def test_environment_is_made_from_the_interpreter_that_was_judged(
    locked: World, face: Callable[..., Said], tmp_path: Path
) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    request = _options.request(locked.catalogue, "mini", "tiny")
    found = readiness.assess(request, read_lock(request)[0])
    (config,) = (tmp_path / "installed/mini@tiny/environments").glob("*/pyvenv.cfg")
    home = next(line for line in config.read_text().splitlines() if line.startswith("home ="))
    assert Path(found.python).resolve().parent == Path(home.partition("=")[2].strip()).resolve()


def test_longest_path_is_that_of_the_wheels_that_are_known(locked: World) -> None:
    request = _options.request(locked.catalogue, "mini", "tiny")
    lock, _ = read_lock(request)
    folder = len(str(request.installation.folder / "environments/123456789012-10/Lib/site-packages"))
    assert readiness.longest_path(request, lock) == folder + 1 + 134
    path = wheel(locked.wheels.with_name("long"), "alpha", "1.0", files={f"{'a' * 137}.py": "", "short.py": ""})
    place = wheel_facts.Place(filename=path.name, url=path.as_uri())
    wheel_facts.collect(lock.packages, {lock.packages[0].sha256: place}, cache=request.cache, online=True)
    assert readiness.longest_path(request, lock) == folder + 1 + 140


def test_program_of_a_fake_path_is_enough(
    locked: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, face: Callable[..., Said]
) -> None:
    _need(locked, "songreader", required=True)
    face(*lock_here())
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "songreader").write_text("#!/bin/sh\n")
    (folder / "songreader").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert face("plan", "mini", "--profile", "tiny").returncode == 0
