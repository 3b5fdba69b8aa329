"""Which folders `patch apply` takes, and which of an app's optional patches it puts there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World
from test_users_tree import git

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


def test_clone_of_another_app_is_refused(patchlock: Patchlock, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "init", "-q", "clone")
    git(clone, "remote", "add", "origin", "https://github.com/Daswer123/xtts-webui.git")
    shutil.copytree(ROOT / "patches" / "demo" / "upstream", clone, dirs_exist_ok=True)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "one")
    done = patchlock("patch", "apply", "demo", "--profile", "cpu", "--catalogue", str(ROOT), "--source", str(clone))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"this is a clone of daswer123/xtts-webui, not of demo ({clone}); nothing was changed" in done.stderr


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


def test_profile_that_the_app_refuses_is_warned_of_and_patched(
    folder: Path, world: World, patchlock: Patchlock
) -> None:
    with world.app.open("a") as file:
        file.write('\n[[refused]]\nprofile = "tiny"\nwhy = "it hums"\nsource = "tests"\n')
    done = patchlock("patch", "apply", "mini", "--profile", "tiny", "--source", str(folder))
    told = "warning: mini does not support tiny: it hums; it is patched all the same"
    assert (done.returncode, done.stderr.splitlines()) == (0, [told])
    assert "2 files written" in done.stdout


@pytest.mark.parametrize("words", [("apply",), ("status",), ("status", "mini"), ("hooks", "--remove")], ids=" ".join)
def test_catalogue_that_the_patches_came_from_is_remembered(
    folder: Path, world: World, patchlock: Patchlock, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.delenv("PATCHLOCK_CATALOGUE", raising=False)
    root = str(world.app.parents[2])
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    source = ("--source", str(folder))
    done = patchlock("patch", "apply", "mini", "--profile", "tiny", "--catalogue", root, *source)
    assert done.returncode == 0, done.stderr
    (folder / "mine.py").write_text("device = 1\n")
    done = patchlock("patch", *words, *source)
    assert done.returncode == 0, done.stderr
    world.app.parents[2].rename(folder.parent / "elsewhere")
    done = patchlock("patch", "apply", *source)
    assert f"the patches of mini came from the catalogue {root}, which is not there any more" in done.stderr
