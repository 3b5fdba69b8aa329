"""An app that starts another one, each in its own environment: real git, real uv, real launchers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World

APP = b'''"""An app that another one converts voices for."""
import json, os, subprocess

if __name__ == "__main__":
    print("computed on cpu")
    launcher = os.environ.get("MINI_VOICE", "")
    if launcher:
        print(subprocess.run([launcher, "a b", "100%", "--json"], capture_output=True, text=True, check=True).stdout)
'''
VOICE = b'''"""The other app."""
import json, os, sys
import gamma

if __name__ == "__main__":
    print("computed on cpu")
    if sys.argv[1:]:
        print(json.dumps([sys.argv[1:], gamma.__version__, os.environ["PATCHLOCK_GATE"], sys.prefix, "first"]))
'''


@pytest.fixture
def pair(world: World, patchlock: Patchlock, tmp_path: Path) -> World:
    """Give a catalogue of two apps, of which one names the other, and their locks; only the one is installed."""
    voice = world.catalogue / "patches" / "voice"
    shutil.copytree(world.app.parent, voice)
    (voice / "upstream" / "app.py").write_bytes(VOICE)
    (world.upstream / "app.py").write_bytes(APP)
    for app in (world.app, voice / "app.toml"):
        text = app.read_text()
        at = text.index('[[patch]]\nid = "on-the-cpu"')
        app.write_text(text[:at] + text[text.index("[[check]]") :])
    world.app.write_text(
        world.app.read_text().replace("[[patch]]", '[launch.beside]\nMINI_VOICE = "voice"\n\n[[patch]]', 1)
    )
    world.name_commit(tmp_path)
    world.name_commit(tmp_path, "voice")
    for words in (("lock", "mini", "voice"), ("install", "mini")):
        done = patchlock(*words)
        assert done.returncode == 0, done.stderr
    return world


def _answer(said: str) -> list[object]:
    lines = said.splitlines()
    assert lines[:2] == ["computed on cpu", "computed on cpu"], said
    answer: list[object] = json.loads(lines[2])
    return answer


def test_other_app_is_started_as_it_is_installed(
    pair: World, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    assert patchlock("run", "mini").stdout == "computed on cpu\n"

    assert patchlock("install", "voice").returncode == 0
    words, gamma, gate, prefix, said = _answer(patchlock("run", "mini").stdout)
    assert (words, gamma, said) == (["a b", "100%", "--json"], "2.0", "first")
    assert (gate, Path(str(prefix)).parent) == ("voice@tiny", installed / "voice@tiny" / "environments")

    by_launcher = subprocess.run([installed / "mini@tiny" / "run"], capture_output=True, text=True, check=True, cwd="/")
    assert _answer(by_launcher.stdout) == [words, gamma, gate, prefix, said]

    own = tmp_path / "my own voice"
    own.write_text('#!/bin/sh\necho "mine: $1"\n')
    own.chmod(0o755)
    with monkeypatch.context() as set_by_the_user:
        set_by_the_user.setenv("MINI_VOICE", os.fspath(own))
        assert patchlock("run", "mini").stdout.splitlines()[1] == "mine: a b"

    source = pair.catalogue / "patches" / "voice" / "upstream" / "app.py"
    source.write_bytes(source.read_bytes().replace(b"first", b"second"))
    pair.name_commit(tmp_path, "voice")
    assert patchlock("lock", "voice").returncode == 0
    assert patchlock("install", "voice").returncode == 0
    assert _answer(patchlock("run", "mini").stdout)[-1] == "second"
    assert patchlock("rollback", "voice").returncode == 0
    assert _answer(patchlock("run", "mini").stdout)[-1] == "first"

    assert patchlock("uninstall", "voice").returncode == 0
    assert patchlock("run", "mini").stdout == "computed on cpu\n"
