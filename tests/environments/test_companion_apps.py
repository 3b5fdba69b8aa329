"""Which launcher an app is given for another one that it starts: only of what is installed, the same profile first."""

from __future__ import annotations

from pathlib import Path

import pytest
from receipts import install

from patchlock.environments import generations
from patchlock.model.installation import Installation

WANTED = {"VOICE": "voice"}


def _installed(home: Path, app: str, profile: str, *, launchers: tuple[str, ...] = ("run",)) -> Installation:
    installation, _ = install(home, app=app, profile=profile)
    for name in launchers:
        (installation.folder / name).touch()
    return installation


def _given(home: Path, *, profile: str = "cpu", os: str = "linux") -> dict[str, str]:
    return {
        variable: Path(path).relative_to(home).as_posix()
        for variable, path in generations.variables(home, profile, WANTED, os=os).items()
    }


@pytest.mark.parametrize(
    ("profile", "expected"),
    [("cuda-linux", "voice@cuda-linux/run"), ("cpu", "voice@cpu/run"), ("rocm-linux", "voice@cpu/run")],
)
def test_same_profile_is_preferred_then_the_first_by_name(tmp_path: Path, profile: str, expected: str) -> None:
    for one in ("zluda", "cuda-linux", "cpu"):
        _installed(tmp_path, "voice", one)
    assert _given(tmp_path, profile=profile) == {"VOICE": expected}


def test_nothing_is_given_for_what_is_not_installed(tmp_path: Path) -> None:
    assert _given(tmp_path / "no home yet") == {}
    _installed(tmp_path, "voices", "cpu")
    assert _given(tmp_path) == {}


def test_an_installation_that_is_not_whole_is_passed_over(tmp_path: Path) -> None:
    _installed(tmp_path, "voice", "a", launchers=())
    next(_installed(tmp_path, "voice", "b").environments.glob(f"*/{generations.RECEIPT}")).unlink()
    _installed(tmp_path, "voice", "c").pointer.unlink()
    assert _given(tmp_path) == {}
    _installed(tmp_path, "voice", "d")
    assert _given(tmp_path) == {"VOICE": "voice@d/run"}


def test_on_windows_no_word_goes_through_cmd(tmp_path: Path) -> None:
    _installed(tmp_path, "voice", "cpu", launchers=("run.bat", "run.ps1"))
    assert _given(tmp_path, os="windows") == {"VOICE": "voice@cpu/run.ps1"}
