"""A person chooses an optional patch: installed with it, kept, left out again, and told by every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Said
from miniature import World, this_platform

Face = Callable[..., Said]
LOUD = """
[[patch]]
id = "loud"
optional = "loud"
gives = "it says it louder"
helps = ["stft"]
why = "a person may want that"
source = "https://example.org/loud"
op = "replace-text"
paths = ["app.py"]
old = '"computed on"'
new = '"COMPUTED and computed on"'

[[patch.ensure]]
check = "contains"
text = "COMPUTED"
"""
IN_REQUIREMENTS = (
    LOUD.replace("app.py", "requirements.txt")
    .replace('"computed on"', "beta>=1")
    .replace('"COMPUTED and computed on"', "beta>=1  # COMPUTED")
)


def _lock(world: World, face: Face, more: str, *, everywhere: bool = False) -> None:
    text = world.app.read_text().replace('prints = "computed on cpu"', 'prints = "omputed on cpu"')
    text = text.replace('source = "tests"', 'source = "https://example.org/mini"')  # `check` wants what can be opened
    world.app.write_text(text.replace("\n[[check]]", f"{more}\n[[check]]", 1))
    assert face("lock", "mini", *(() if everywhere else ("--platform", this_platform().name))).returncode == 0


def test_a_choice_is_kept_until_it_is_left_out(locked: World, face: Face, tmp_path: Path) -> None:
    _lock(locked, face, LOUD)
    app = tmp_path / "installed" / "mini@tiny" / "source" / "app.py"

    def receipt() -> dict[str, object]:
        return json.loads(face("install", "mini", "--json").stdout)["data"]["receipt"]

    assert "optional  loud: it says it louder (--with loud)" in face("plan", "mini").stdout
    said = face("install", "mini", "--profile", "tiny", "--with", "lout")
    assert (said.returncode, 'no option "lout" on tiny; did you mean "loud"?' in said.stderr) == (
        2,
        True,
    )
    said = face("install", "mini", "--profile", "tiny", "--with", "loud")
    assert (said.returncode, "  chosen    loud\n" in said.stdout) == (0, True), said.stderr
    assert b"COMPUTED" in app.read_bytes()
    with_it = receipt()
    assert with_it["chosen"] == ["loud"]
    assert "nothing to do" in face("install", "mini", "--profile", "tiny", "--with", "loud").stdout
    assert ", with loud\n" in face("status").stdout
    assert (
        "Options\n  loud  it says it louder\n        on every profile; add it with --with loud\n"
        in face("info", "mini").stdout
    )
    said = face("update", "mini")
    assert (said.returncode, b"COMPUTED" in app.read_bytes()) == (0, True), said.stderr
    said = face("install", "mini", "--profile", "tiny", "--without", "loud")
    assert (said.returncode, b"COMPUTED" in app.read_bytes()) == (0, False), said.stderr
    without_it = receipt()
    assert (without_it["chosen"], without_it["id"] == with_it["id"]) == ([], False)
    assert face("rollback", "mini").returncode == 0
    assert b"COMPUTED" in app.read_bytes()


def test_an_install_that_is_finished_later_has_what_was_chosen(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lock(locked, face, LOUD)
    with monkeypatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
        patch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
        assert face("install", "mini", "--profile", "tiny", "--with", "loud").returncode == 1
    assert "then run: patchlock install mini --profile tiny --with loud" in face("status").stdout
    said = face("install", "mini", "--profile", "tiny")
    assert (said.returncode, "  chosen    loud\n" in said.stdout) == (0, True), said.stderr


def test_check_tries_optional_patches_and_keeps_them_from_the_lock(locked: World, face: Face) -> None:
    _lock(locked, face, LOUD, everywhere=True)
    assert face("check", "mini").returncode == 0
    locked.app.write_text(locked.app.read_text().replace(LOUD, IN_REQUIREMENTS))
    said = face("check", "mini")
    assert said.returncode == 1
    assert 'the patch "loud" changes requirements.txt, from which the lock is made' in said.stdout + said.stderr
    said = face("plan", "mini", "--with", "loud")
    assert "patches/mini/app.toml:" in said.stderr
    assert said.returncode != 0


SET = """\
[set]
title = "nothing is said"
source = "https://example.org/loud"
"""


def test_check_tells_which_sets_an_app_does_not_need(locked: World, face: Face) -> None:
    folder = locked.catalogue / "patches" / "shared"
    folder.mkdir()
    patch = LOUD.replace('optional = "loud"\ngives = "it says it louder"\nhelps = ["stft"]\n', "").replace(
        '"app.py"', '"**/*.py"'
    )
    (folder / "quiet.toml").write_text(SET + patch.replace("old = '\"computed on\"'", 'old = "nowhere to be found"'))
    text = locked.app.read_text()
    takes = 'requirements = ["requirements.txt"]'
    locked.app.write_text(text.replace(takes, f'{takes}\nshared = ["quiet"]'))
    _lock(locked, face, "", everywhere=True)
    said = face("check", "mini")
    assert (said.returncode, "; not needed: quiet" in said.stdout) == (0, True), said.stdout + said.stderr
    assert "quiet-loud         not needed here" in face("patch", "status", "mini").stdout
    locked.app.write_text(locked.app.read_text().replace(takes, f'{takes}\nexpect = ["quiet"]'))
    said = face("check", "mini")
    assert said.returncode == 1
    assert "quiet finds nothing to patch, which patches/mini/app.toml:1 expects" in said.stdout + said.stderr
