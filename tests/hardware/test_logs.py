"""Excerpts of logs from public issue threads: each is named as `logs.toml` says, and nothing else is named."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.hardware import doctor
from patchlock.model.hosts import Host, Recording

LOGS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "logs.toml").read_text("utf-8"))["log"]
_CATALOGUE = Catalogue(root=ROOT)
_TROUBLES = _CATALOGUE.troubles()


def test_there_are_as_many_logs_as_we_say() -> None:
    assert len(LOGS) >= 100
    assert len({(log["source"], *log["lines"]) for log in LOGS}) == len(LOGS)
    assert sum(bool(log["names"]) for log in LOGS) >= 90


@pytest.mark.parametrize("log", LOGS, ids=[log["source"].removeprefix("https://github.com/") for log in LOGS])
def test_log_is_named_and_nothing_else_is(log: dict[str, Any]) -> None:
    """Without a machine: the person may ask on another one than that which failed."""
    recording = Recording(host=Host(os="", machine=""), says=tuple(log["lines"]))
    found = doctor.diagnose(recording, (), _TROUBLES)
    assert sorted(finding.name for finding in found) == sorted(log["names"])
