"""What `detect` tells a person of the machine: what he may open, and what only others may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchlock.cli import main

HOST = {
    "os": "linux",
    "machine": "x86_64",
    "groups": ["sudo", "video"],
    "nodes": [
        {"path": "/dev/kfd", "is_usable": True},
        {"path": "/dev/dri/renderD128", "is_usable": False, "group": "render"},
        {"path": "/dev/dri/renderD129", "is_usable": False},
    ],
}


def test_device_nodes_are_shown_with_who_may_open_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"patchlock_host": 1, "host": HOST}), encoding="utf-8")
    monkeypatch.setenv("PATCHLOCK_HOST", str(machine))
    assert main(["detect"]) == 0
    rows = dict(line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:6] if line.strip())
    assert rows["groups"] == "sudo, video"
    assert rows["nodes"] == (
        "/dev/kfd, /dev/dri/renderD128 (not yours to open, only the group render may), "
        "/dev/dri/renderD129 (not yours to open)"
    )
