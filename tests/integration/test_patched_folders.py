"""Which folders `patch apply` takes, and which of an app's optional patches it puts there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World

OPTIONAL = """
[[patch]]
id = "quiet"
why = "some want no words"
source = "https://example.com/why"
op = "replace-text"
paths = ["app.py"]
literal = ["computed"]
old = "computed"
new = "done"
optional = "quiet"
gives = "fewer words"

[[patch.ensure]]
check = "lacks"
text = "computed"
"""


@pytest.mark.parametrize(
    ("app", "known_by"),
    [
        ("diffrhythm2", "inference.py"),
        ("amphion", "modules/monotonic_align/setup.py"),
        ("advanced-rvc-inference", "arvc/app/gui.py"),
        ("xtts-webui", "app.py and scripts/funcs.py"),
        ("tts-service", "apps/tts-service/src/routes.py and apps/tts-service/src/tts_engine.py"),
        ("rvc-python", "rvc_python/configs/config.py"),
    ],
)
def test_folder_of_other_things_is_refused_and_left_as_it_is(
    patchlock: Patchlock, tmp_path: Path, app: str, known_by: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "requirements.txt").write_text("torch==2.7\n")
    (other / "notes.txt").write_text("mine\n")
    words = (app, "--profile", "cpu", "--catalogue", str(ROOT), "--source", str(other))
    done = patchlock("patch", "apply", *words)
    assert (done.returncode, done.stdout) == (1, "")
    told = f"this folder is not {app}: it has none of the files by which it is known, as {known_by} ({other})"
    assert told in done.stderr
    assert "nothing was changed; name the app's own folder" in done.stderr
    assert sorted(path.name for path in other.iterdir()) == ["notes.txt", "requirements.txt"]


@pytest.mark.parametrize(
    ("app", "name"),
    [("xtts-webui", "app.py"), ("diffrhythm2", "inference.py"), ("tts-service", "apps/tts-service/src/routes.py")],
)
def test_a_file_of_the_right_name_does_not_make_a_folder_the_app(
    patchlock: Patchlock, tmp_path: Path, app: str, name: str
) -> None:
    other = tmp_path / "other" / name
    other.parent.mkdir(parents=True)
    other.write_text("print('a program of somebody else')\n")
    words = (app, "--profile", "cpu", "--catalogue", str(ROOT), "--source", str(tmp_path / "other"))
    done = patchlock("patch", "apply", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"this folder is not {app}" in done.stderr
    assert [path for path in (tmp_path / "other").rglob("*") if path.is_file()] == [other]


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """Unpack an app that has an optional patch."""
    at = world.app.read_text().index("[[check]]")
    world.app.write_text(world.app.read_text()[:at] + OPTIONAL.lstrip() + "\n" + world.app.read_text()[at:])
    shutil.copytree(world.upstream, tmp_path / "mine")
    return tmp_path / "mine"


def test_optional_patch_is_taken_and_left_by_its_name(folder: Path, patchlock: Patchlock) -> None:
    def apply(*words: str) -> str:
        done = patchlock("patch", "apply", *words, "--source", str(folder))
        assert done.returncode == 0, done.stderr
        return (folder / "app.py").read_text()

    assert "computed" in apply("mini", "--profile", "tiny")
    assert "computed" not in apply("mini", "--profile", "tiny", "--with", "quiet")
    assert "computed" not in apply(), "it is remembered"
    assert "computed" not in apply("--without", "on-the-cpu"), "and so is it with another choice"
    assert "computed" in apply("--without", "quiet")
    done = patchlock("patch", "apply", "--with", "quite", "--source", str(folder))
    assert 'mini has no patch "quite" on tiny; did you mean "quiet"?' in done.stderr
