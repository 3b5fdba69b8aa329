"""Reports that the catalogue keeps: what may be claimed of a pair, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patchlock.catalogue import proofs
from patchlock.model.errors import CatalogueError

REPORT: dict[str, Any] = {
    "format": 1,
    "app": "mini",
    "profile": "cuda-linux",
    "platform": "linux-x86_64",
    "lock": "0" * 64,
    "date": "2026-11-22",
    "devices": {"cuda:0": "NVIDIA A"},
    "levels": {"loads": True, "computes": True, "starts": False},
}


def keep(root: Path, name: str = "mini.a", **changed: object) -> None:
    file = root / "profiles" / "proofs" / "cuda-linux" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(REPORT | changed))


def test_reports_are_read_newest_first(tmp_path: Path) -> None:
    keep(tmp_path)
    keep(tmp_path, "mini.b", date="2026-12-01", devices={})
    newest, older = proofs.read(tmp_path)
    assert (newest.date, newest.devices, older.devices) == ("2026-12-01", (), ("NVIDIA A",))
    assert older.levels == {"loads", "computes"}
    assert proofs.of_pair([newest, older], "mini", "cuda-linux", "linux-x86_64") == (newest, older)
    assert proofs.of_pair([newest, older], "mini", "cpu", "linux-x86_64") == ()


def test_no_reports_are_none(tmp_path: Path) -> None:
    assert proofs.read(tmp_path) == ()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"format": 2}, "its format is 2, and not 1"),
        ({"app": "other"}, "it is about other on cuda-linux"),
        ({"profile": "cpu"}, "it is about mini on cpu"),
        ({"levels": {}}, "it is not a report of `patchlock verify --report`: 'loads'"),
        ({"devices": []}, "it is not a report"),
    ],
)
def test_wrong_file_is_named(tmp_path: Path, changed: dict[str, object], told: str) -> None:
    keep(tmp_path, **changed)
    with pytest.raises(CatalogueError) as error:
        proofs.read(tmp_path)
    (problem,) = error.value.problems
    assert told in problem.what
    assert problem.file == "profiles/proofs/cuda-linux/mini.a.json"
