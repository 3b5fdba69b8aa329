"""What killed programs left in the temporary directory goes; what is young, strange or somebody's own stays."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import pytest

from patchlock.core import old_folders

YESTERDAY = time.time() - 2 * 24 * 3600


def _made(folder: Path, name: str, *, mode: int = 0o700, old: bool = True) -> Path:
    made = folder / name
    made.mkdir()
    (made / "file").touch()
    made.chmod(mode)
    if old:
        os.utime(made, (YESTERDAY, YESTERDAY))
    return made


def test_old_folder_of_ours_goes(tmp_path: Path) -> None:
    left = Path(tempfile.mkdtemp(prefix="patchlock-kernels-", dir=tmp_path))
    os.utime(left, (YESTERDAY, YESTERDAY))
    old_folders.remove(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize(
    ("name", "mode", "old"),
    [
        ("patchlock-kernels-abcdefgh", 0o700, False),
        ("patchlock-checkout", 0o700, True),
        ("patchlock-lock-of-mine", 0o700, True),
        ("other-kernels-abcdefgh", 0o700, True),
        pytest.param(
            *("patchlock-kernels-abcdefgh", 0o755, True),
            marks=pytest.mark.skipif(os.name != "posix", reason="Windows has no modes"),
        ),
    ],
    ids=["young", "checkout", "own-name", "other-program", "open-to-others"],
)
def test_anything_else_stays(tmp_path: Path, name: str, mode: int, old: bool) -> None:
    made = _made(tmp_path, name, mode=mode, old=old)
    old_folders.remove(tmp_path)
    assert (made / "file").exists()


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_link_is_not_followed(tmp_path: Path) -> None:
    aim = _made(tmp_path, "aim")
    (tmp_path / "patchlock-kernels-abcdefgh").symlink_to(aim)
    old_folders.remove(tmp_path)
    assert (aim / "file").exists()


def test_absent_folder_is_no_error(tmp_path: Path) -> None:
    old_folders.remove(tmp_path / "nowhere")


def test_every_temporary_folder_of_ours_has_a_name_that_is_known() -> None:
    package = Path(old_folders.__file__).parents[1]
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    prefixes = {found for text in texts for found in re.findall(r'prefix="(patchlock-[a-z-]+-)"', text)}
    assert len(prefixes) > 5
    assert [name for name in sorted(prefixes) if not old_folders._OURS.fullmatch(f"{name}abcdefgh")] == []
