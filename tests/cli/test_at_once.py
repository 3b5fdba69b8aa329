"""`detect` without click: it reads only what click would read alike, and answers the same."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from conftest import ROOT

from patchlock.cli import _fast_path, main
from patchlock.cli._commands import patchlock as group

MACHINES = [ROOT / "tests/hardware/hosts" / f"{name}.json" for name in ("dgx-spark", "cezanne-5850u", "raspberry-pi-4")]
PLAIN: list[list[str]] = [
    [],
    ["--json"],
    ["--why-not", "cpu"],
    ["--why-not", "rocm-linux", "--json"],
    ["--json", "--json"],
    ["--catalogue", str(ROOT), "--why-not", "cpu", "--why-not", "rocm-linux"],
]
"""Read here."""
OTHER: list[list[str]] = [
    ["--help"],
    ["--why-not"],
    ["--why-not", "--json"],
    ["--why-not=cpu"],
    ["--catalogue", "no such folder"],
    ["--jso"],
    ["more"],
    ["--", "--json"],
]
"""Left to click."""


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.stem)
@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_answer_is_the_one_that_click_gives(
    machine: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(machine))
    arguments = ["detect", *words]
    assert _fast_path.parse_detect(arguments) is not None
    code = main(arguments)
    ours = capsys.readouterr()
    assert group.main(args=arguments, prog_name="patchlock", standalone_mode=False) == code
    assert capsys.readouterr() == ours
    assert ours.out


@pytest.mark.parametrize("words", OTHER, ids=" ".join)
def test_everything_else_is_left_to_click(words: list[str]) -> None:
    assert _fast_path.parse_detect(["detect", *words]) is None


@pytest.mark.parametrize("arguments", [[], ["--json", "detect"], ["doctor"]], ids=" ".join)
def test_other_commands_are_left_to_click(arguments: list[str]) -> None:
    assert _fast_path.parse_detect(arguments) is None


def test_catalogue_of_the_environment_counts_and_one_that_is_no_folder_is_left_to_click(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATCHLOCK_CATALOGUE", str(tmp_path))
    assert _fast_path.parse_detect(["detect"]) == {"--catalogue": str(tmp_path)}
    monkeypatch.setenv("PATCHLOCK_CATALOGUE", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    assert _fast_path.parse_detect(["detect"]) is None
    with pytest.raises(click.BadParameter):
        group.main(args=["detect"], prog_name="patchlock", standalone_mode=False)
