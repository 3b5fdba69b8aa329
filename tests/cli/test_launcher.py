"""How patchlock names itself in the commands that it prints."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from patchlock.cli import _launcher

TEXTS = {
    "`patchlock info APP` tells more": "`{} info APP` tells more",
    "  $ patchlock run demo": "  $ {} run demo",
    "get it with: patchlock install mini": "get it with: {} install mini",
    "what patchlock installs; patchlock run is prose": "what patchlock installs; patchlock run is prose",
    "`/bin/patchlock run mini`": "`/bin/patchlock run mini`",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my apps"
    target = _launcher.path(folder)
    target.parent.mkdir(parents=True)
    target.touch()
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", "/clone/install.sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


@pytest.mark.parametrize(("text", "pasted"), TEXTS.items(), ids=range(len(TEXTS)))
def test_commands_of_a_text_can_be_pasted(text: str, pasted: str, home: Path) -> None:
    itself = shlex.quote(str(_launcher.path(home)))
    assert _launcher.with_own_command(text, home) == pasted.format(itself)


def test_text_stays_where_patchlock_is_on_path_or_the_machine_is_simulated(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "`patchlock info APP`"
    monkeypatch.setenv("PATCHLOCK_HOST", "machine.json")
    assert _launcher.with_own_command(text, home) == text
    monkeypatch.delenv("PATCHLOCK_HOST")
    monkeypatch.delenv("PATCHLOCK_BOOTSTRAP")
    assert _launcher.with_own_command(text, home) == text
