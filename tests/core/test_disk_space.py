"""Room on each file system by itself, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.core import disk_space
from patchlock.core.disk_space import FileSystem, SpaceRequirement
from patchlock.model.errors import DiskFullError

MB = 1_000_000
WHEELS = SpaceRequirement(
    what="wheels to download", folder=Path("/cache"), size=900 * MB, variable="PATCHLOCK_CACHE_DIR"
)
UNPACKED = SpaceRequirement(what="unpacked packages", folder=Path("/uv"), size=2000 * MB, variable="UV_CACHE_DIR")


def _disks(**free: int) -> object:
    devices = {name: number for number, name in enumerate(free)}
    return lambda folder: FileSystem(device=devices.get(folder.name, 0), free=free.get(folder.name, free.get("all", 0)))


@pytest.mark.parametrize(
    "disks",
    [
        pytest.param({"all": 3000 * MB}, id="one disk"),
        pytest.param({"cache": 1000 * MB, "uv": 2100 * MB}, id="two disks"),
    ],
)
def test_what_fits_is_accepted(disks: dict[str, int]) -> None:
    disk_space.require([WHEELS, UNPACKED], _disks(**disks))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("disks", "sentence"),
    [
        pytest.param(
            {"all": 2999 * MB},
            "2.8 GiB of disk are needed, 976.6 KiB more than is free; nothing was started (/uv); free some room (`patchlock "
            "cache` shows what patchlock can free), or choose another disk with UV_CACHE_DIR or PATCHLOCK_CACHE_DIR, and run the same "
            "command again\n  858.3 MiB of wheels to download in /cache\n  1.9 GiB of unpacked packages in /uv\n"
            "  95.4 MiB that stay free",
            id="one disk",
        ),
        pytest.param(
            {"cache": 999 * MB, "uv": 9000 * MB},
            "953.7 MiB of disk are needed, 976.6 KiB more than is free; nothing was started (/cache); free some room (`patchlock "
            "cache` shows what patchlock can free), or choose another disk with PATCHLOCK_CACHE_DIR, and run the same command again"
            "\n  858.3 MiB of wheels to download in /cache\n  95.4 MiB that stay free",
            id="two disks",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(disks: dict[str, int], sentence: str) -> None:
    with pytest.raises(DiskFullError) as refused:
        disk_space.require([WHEELS, UNPACKED], _disks(**disks))  # type: ignore[arg-type]
    assert str(refused.value) == sentence


def test_nothing_needs_no_room() -> None:
    disk_space.require([SpaceRequirement(what="x", folder=Path("/x"), size=0, variable="X")], _disks(all=0))  # type: ignore[arg-type]


def test_folder_that_is_not_there_yet_lies_on_the_disk_of_its_parent(tmp_path: Path) -> None:
    assert disk_space.look(tmp_path / "a" / "b").device == tmp_path.stat().st_dev
    assert disk_space.look(tmp_path / "a").free > 0
