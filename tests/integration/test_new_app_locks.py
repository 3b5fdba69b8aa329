"""Locks that `new-app` tries and mends: moved pins, conflicts that `--solve` resolves, and every profile with a reason."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import miniature
import pytest
import sdists
from test_new_app import STARTS, URL, Face, build_index, proposed, upstream

from patchlock.catalogue import agreement
from patchlock.cli import _progress
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.lock_request import Request
from patchlock.model.lockfile import Lock
from patchlock.operations import proposal_locks


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the test the miniature's index."""
    address = build_index(tmp_path)
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    return address


def test_conflict_is_explained_and_solve_writes_the_edit(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"))

    assert told.returncode == 1
    assert "clock<1 cannot be installed: only clock==1.0 is available; " in told.stdout
    assert '\nprofiles = ["cpu"]\n' in told.stdout  # nobody knows whether others need the edit
    assert told.stdout.endswith(
        f"\nnext: remove {tmp_path}/mine/patches/mini-voice, and propose it again with `--solve`, which writes what resolves "
        "it into the proposal; it looks for 120 s at most (--explain SECONDS), and tries files of later days before "
        "other versions\n"
    )

    solved = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "other"), "--solve")

    assert solved.returncode == 0, solved.stdout
    values = tomllib.loads((tmp_path / "other/patches/mini-voice/app.toml").read_text())
    assert [(one["id"], one["specifier"]) for one in values["patch"]] == [("clock-that-resolves", "<1.1")]
    assert (tmp_path / "other/lockfiles/mini-voice/cpu.linux-x86_64.txt").is_file()


def test_edit_to_an_older_version_names_what_forces_it(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", "clock", version) for version in ("1.0", "2.0")]
    pages += [miniature.wheel(tmp_path / "w", "hands", "1.0", requires=("clock==1.0",))]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    files = {"requirements.txt": "clock==1.5\nhands\n", "app.py": "import hands\n" + STARTS}
    clone = upstream(tmp_path / "clone", files)

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--solve")

    assert told.returncode == 0, told.stdout
    assert (
        "look at: edits that were tried with uv for cpu on linux-x86_64: clock<3,>=1.5 → clock<=1.0; look whether the app works with them, or "
        "without hands (1.0 is locked): all versions of hands depend on clock==1.0; app.py:1 imports hands as the program starts\n"
    ) in told.stdout
    (patch,) = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert "clock 1.5 has no wheel" not in patch["why"]
    assert patch["profiles"]
    assert f"added to it: patch {patch['id']}, for {', '.join(patch['profiles'])}: {patch['why']}\n" in told.stdout


def test_what_is_said_while_it_solves_names_the_pair(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index
    said: list[str] = []
    monkeypatch.setattr(_progress.Plain, "say", lambda _, text: said.append(text))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--solve")

    asked = [text for text in said if "questions to uv" in text]
    assert asked
    assert [text for text in asked if not text.startswith("mini-voice × cpu × linux-x86_64: looking for ")] == []


def test_what_solve_has_tried_in_vain_is_told_and_not_written(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index
    monkeypatch.setattr(proposal_locks, "_CONFLICTS", 1)  # resolutions, so that no edit is left to try
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve")

    assert told.returncode == 1
    assert "edit set 1" in told.stdout
    says, *attempts, _, _, _, _, _ = told.stdout.rpartition("\n\n`--solve` ")[2].splitlines()
    assert says == "has tried these and found no lock; none of it is in the proposal:"
    assert (
        attempts[0]
        == "  files of the commit's day, no edits: clock<1 cannot be installed: only clock==1.0 is available"
    )
    assert attempts[-1].endswith(", no edits: clock<1 cannot be installed: only clock==1.0 is available")
    assert "as_of" not in tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())["upstream"]


def test_solve_tries_no_day_between_when_no_file_helps_and_has_one_time_for_all(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no solution with every file has none with fewer."""
    assert index
    left: list[float] = []
    days: list[str] = []

    def resolve(request: Request, cut_off: relock.CutOff) -> Lock:
        days.append(request.app.as_of)
        return resolved(request, cut_off)

    resolved = relock.resolve
    monkeypatch.setattr(relock, "resolve", resolve)

    def explain(*arguments: Any, seconds: float, **more: Any) -> Any:
        left.append(seconds)
        return found(*arguments, seconds=seconds, **more)

    found = explanation.explain
    monkeypatch.setattr(explanation, "explain", explain)
    monkeypatch.setattr(proposal_locks, "_CONFLICTS", 1)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-07-01T00:00:00Z")
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--explain", "50")

    _, *attempts, _, _, _, _, _ = told.stdout.rpartition("\n\n`--solve` ")[2].splitlines()
    first, last = attempts
    assert first.startswith("  files of the commit's day, ")
    assert last.startswith(f"  files until {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, ")
    assert 50 > left[0] > left[1] > 0
    assert [day[:10] for day in days] == ["", last.split()[2].rstrip(",")], "none is resolved twice"


def test_conflict_of_several_pairs_is_looked_for_once(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index
    asked: list[str] = []

    def explain(order: Any, *arguments: Any, **more: Any) -> Any:
        asked.append(order.profile.name)
        return found(order, *arguments, **more)

    found = explanation.explain
    monkeypatch.setattr(explanation, "explain", explain)
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--profile", "all")

    assert told.stdout.count(": refused: clock<1 cannot be installed: only clock==1.0 is available\n") > 15
    assert asked == ["cpu"]


def test_pin_that_cannot_be_had_moves_to_the_nearest_version(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    data = proposed(
        face, upstream(tmp_path / "clone", {"requirements.txt": "clock==0.9\n", "app.py": ""}), tmp_path / "x"
    )

    (issue,) = data["findings"]
    assert (issue["name"], issue["found"][0]["text"]) == ("pin-without-wheel", "clock==0.9")
    assert issue["remedy"].endswith(": clock 0.9 → <2,>=0.9")
    (patch,) = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert (patch["op"], patch["specifier"], patch["profiles"]) == ("set-requirement", "<2,>=0.9", ["cpu"])


def test_pin_with_a_marker_moves_alone(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    text = 'clock==0.8; python_version < "3.10"\nclock==0.9; python_version >= "3.10"\n'
    clone = upstream(tmp_path / "clone", {"requirements.txt": text, "app.py": ""})

    proposed(face, clone, tmp_path / "x")

    diff = face(
        "patch", "diff", "mini-voice", "--profile", "cpu", "--catalogue", str(tmp_path / "x"), "--source", str(clone)
    ).stdout
    assert '-clock==0.9; python_version >= "3.10"\n+clock<2,>=0.9; python_version >= "3.10"\n' in diff
    assert "-clock==0.8" not in diff


def test_pin_of_what_the_proposal_leaves_out_is_no_problem(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = [miniature.wheel(tmp_path / "files", "triton", version) for version in ("3.2.0", "3.3.0")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", wheels))
    pins = "torch==2.6.0\ntorchaudio==2.6.0\ntriton==3.2.0\n"
    clone = upstream(tmp_path / "clone", {"requirements.txt": pins, "app.py": "import torch\n"})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--json")

    findings = {one["name"]: one["found"] for one in json.loads(told.stdout)["data"]["findings"]}
    assert [one["text"] for one in findings["only-cuda"]] == ["triton==3.2.0"]
    assert [one["text"] for one in findings["pin-without-wheel"]] == ["torch==2.6.0", "torchaudio==2.6.0"]
    assert "torch-pin" not in findings  # of which it would not be so that it stands


def test_pin_of_what_a_shared_set_replaces_is_left_to_it(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {"requirements.txt": "onnxruntime-gpu==1.19\n", "app.py": "import onnxruntime\n"}
    data = proposed(face, upstream(tmp_path / "clone", files), tmp_path / "x")

    assert [one["name"] for one in data["findings"]] == ["onnxruntime-one-provider"]
    assert "onnxruntime==1.20" in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


@pytest.mark.parametrize(("bound", "sets", "locked"), [("<13", [], "12.3.0"), ("", ["av-wheel"], "18.0")])
def test_set_that_bounds_is_taken_only_where_the_lock_would_break_its_bounds(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, sets: list[str], locked: str
) -> None:
    pages = [miniature.wheel(tmp_path / "w", "av", version) for version in ("12.3.0", "18.0", "19.0")]
    pages += [miniature.wheel(tmp_path / "w", "faster-whisper", "1.0", requires=(f"av{bound}",))]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "faster-whisper\n", "app.py": STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"))

    assert told.returncode == 0, told.stdout
    assert tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["app"].get("shared", []) == sets
    assert ("av-wheel" in told.stdout) is bool(sets)
    assert f"\nav=={locked} " in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


def test_what_another_file_asks_for_and_the_lock_brings_is_not_told(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", name, "2.0") for name in ("clock", "bell")]
    pages += [miniature.wheel(tmp_path / "w", "speaker", "1.0", requires=("clock", "bell"))]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    setup = "from setuptools import setup\nsetup(install_requires=['clock>=1', 'bell<2', 'lost'])\n"
    clone = upstream(tmp_path / "clone", {"requirements.txt": "speaker\n", "setup.py": setup, "app.py": STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"))

    assert told.returncode == 0, told.stdout
    says = "setup.py asks for bell<2, lost, and requirements.txt does not: add a patch "
    assert [line for line in told.stdout.splitlines() if "setup.py asks for" in line] == [
        f"look at: {says}(add-requirement or set-requirement) for each that the app needs"
    ]


@pytest.mark.parametrize("solve", [True, False], ids=["solve", "look"])
def test_what_only_this_kind_of_device_imports_is_required_there(
    face: Face, index: str, tmp_path: Path, solve: bool
) -> None:
    assert index
    asks = "import clock\ndef size():\n    if torch.cuda.is_available():\n        return 9\n"
    asks += "    if not torch.cuda.is_available():\n        import speaker\n        return speaker.size()\n"
    app = f"{asks}    return 1\n{STARTS}    size()\n"
    files = {"requirements.txt": "clock\n", "requirements-web.txt": "speaker\n", "app.py": app}
    clone, into = upstream(tmp_path / "clone", files), tmp_path / "x"

    told = face("new-app", URL, "--source", str(clone), "--into", str(into), *["--solve"] * solve)

    assert told.returncode == 0, told.stdout + told.stderr
    assert ("\nspeaker==" in (into / "lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()) is solve
    if solve:
        (patch,) = tomllib.loads((into / "patches/mini-voice/app.toml").read_text())["patch"]
        assert "cpu" in patch["profiles"]
        assert "mps-macos" not in patch["profiles"]
        says = (
            "requirement speaker: app.py:6 imports speaker where the device is cpu; requirements-web.txt:1 asks for it"
        )
        assert f"\nadded to it: {says}\n" in told.stdout
    else:
        title = "missing-at-the-start: the program imports where the device is cpu what nothing requires"
        assert f"\nmay make it fail once that code runs:\n{title}\n" in told.stdout
        assert "imports are missing" in told.stderr


def test_lock_is_of_the_finished_proposal_and_the_next_commands_can_be_pasted(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else the program imports is written into the proposal once its lock shows who brings it."""
    assert index
    monkeypatch.delenv(agreement.VARIABLE)
    files = {"requirements.txt": "gradio\n", "README.md": "    python app.py\n", "app.py": "import gradio, pydantic\n"}
    clone, catalogue = upstream(tmp_path / "clone", files), tmp_path / "x"
    done = face("new-app", URL, "--source", str(clone), "--into", str(catalogue))
    assert done.returncode == 0, done.stdout + done.stderr

    written = (catalogue / "patches/mini-voice/app.toml").read_text()
    (check,) = tomllib.loads(written)["check"]
    assert check["present"] == ["gradio", "pydantic"]
    assert "# That the environment fits: some of the modules that the app imports as it starts." in written
    assert "none of its own imports is known to be missing" in done.stderr
    on = f"`patchlock lock mini-voice --catalogue {catalogue} --source {clone}` tries all\n"
    assert f"other profiles: not tried, neither locked nor refused; {on}" in done.stdout
    _, first, _, trust, _, second, _ = done.stdout.rstrip().rpartition("next: ")[2].split("`")
    assert face(*trust.removeprefix("patchlock ").split()).returncode == 0
    words = first.removeprefix("patchlock ").split()
    assert words[words.index("--source") + 1] == str(clone)
    assert second.removeprefix("patchlock install") == first.removeprefix("patchlock patch diff")
    assert face(*words).returncode == 0
    at = ("--platform", "linux-x86_64", "--catalogue", str(catalogue))
    checked = face("lock", "mini-voice", "--check", "--profile", "cpu", *at)
    assert checked.returncode == 0, checked.stdout


def test_start_that_calls_what_is_left_out_is_told_with_lines_of_upstream(
    face: Face, index: str, tmp_path: Path
) -> None:
    assert index
    files = {
        "requirements.txt": "clock\nflash-attn\n",
        "app.py": "import lib\n\nx = lib.make()\n" + STARTS,
        "lib.py": "import flash_attn\nimport speaker\n\n\ndef make():\n    return flash_attn.make(1)\n",
        "README.md": "python app.py\n",
    }
    clone = upstream(tmp_path / "c", files)

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--solve").stdout

    draft = (tmp_path / "x/patches/mini-voice/app.toml").read_text()
    assert "\n# TODO: left-out-and-used: as it starts, the program calls flash_attn, which is left out: " in draft
    assert "\n    lib.py:6: flash_attn.make(1)\n" in told
    assert "\nnext: settle its TODO of left-out-and-used, which keeps it from being installed or started: " in told
    assert "requirement speaker: lib.py:2 imports speaker at the start" in told
    assert "/lib.py#L2" in draft


def test_what_lock_says_of_a_lock_is_said_and_no_address_is_broken(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    address = f"git+https://github.com/some-body/{'a-long-name-' * 4}of-a-repository"
    files: dict[str, str | bytes] = {
        "requirements.txt": f"clock[loud]\n{address}\n",
        "app.py": "import clock\n" + STARTS,
    }
    clone = upstream(tmp_path / "c", files)

    done = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"))

    says = 'not covered: requirements.txt:1: clock has no extra "loud"'
    assert f"warning: mini-voice × cpu × linux-x86_64: {says}\n" in done.stderr
    lines = (tmp_path / "x/patches/mini-voice/app.toml").read_text().splitlines()
    told = [line for line in lines if line.startswith("#") and "git+" in line]
    assert len(told) > 1
    assert all(address in line for line in told)


def test_of_two_builds_of_one_library_one_is_kept_where_there_are_two(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {
        "requirements.txt": "camera\nopencv-python; sys_platform == 'win32'\n",
        "app.py": 'import cv2\nprint("made")\n',
        "more.py": "import torch\nmodel = load().cuda()\n",
        "README.md": "`python app.py`\n",
    }
    clone = upstream(tmp_path / "clone", files)
    new_app = ("new-app", URL, "--source", str(clone))
    told = face(*new_app, "--into", str(tmp_path / "first"), "--platform", "windows-amd64").stdout
    assert told.endswith(" with `--solve`, which looks for what keeps the rules, and writes it into the proposal\n")
    assert (
        "\n\nmay make it fail, but nothing shows that its start leads there:\ndevice-helper: " in told
    )  # the program does not import it

    own = tmp_path / "mine"
    told = face(*new_app, "--into", str(own), "--solve", "--profile", "all").stdout

    file = own / "patches/mini-voice/app.toml"
    exclude, *others = (
        one for one in tomllib.loads(file.read_text())["exclude"] if one["name"] == "opencv-python-headless"
    )
    assert ({"cpu", "cuda-windows"} <= set(exclude["profiles"]), others) == (True, []), "one table for all"
    assert "cuda-linux" not in exclude["profiles"]
    assert f"added to it for {', '.join(exclude['profiles'])}: [[exclude]] of opencv-python-headless, beside" in told
    linux = (own / "lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    assert ("opencv" in linux, "\nlock: mini-voice × cpu × linux-x86_64: 1 package\n" in told) == (False, True)
    assert "  cpu on linux-aarch64: 1 package; it imports at its start what no package of the lock brings: cv2 " in told


@pytest.mark.parametrize("has_more", [False, True], ids=["a-copy", "more-than-a-copy"])
def test_copy_of_a_module_that_only_a_library_asks_for_is_left_out(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_more: bool
) -> None:
    more = {"python_fire/__init__.py": ""} if has_more else {}
    pages = [
        miniature.wheel(tmp_path / "w", "band", "1.0", requires=("fire", "python-fire")),
        miniature.wheel(tmp_path / "w", "fire", "0.7", files={"fire/__init__.py": "one = 1\n"}),
        miniature.wheel(tmp_path / "w", "python-fire", "0.1", files={"fire/__init__.py": "other = 1\n"} | more),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "band\n", "app.py": "import band\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    data = json.loads(answer.stdout)["data"]
    if has_more:  # the library may ask for it because of that
        assert data["lock"]["packages"] == 0
        return
    assert (data["lock"]["packages"], data["lock"]["edits"]) == (2, ["[[exclude]] of python-fire, beside fire"])
    (exclude,) = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())["exclude"]
    assert (exclude["name"], exclude["profiles"]) == ("python-fire", ["cpu"])


def test_what_does_not_work_together_is_kept_apart(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [miniature.wheel(tmp_path / "w", "gradio", "4.44.1", requires=("starlette",))]
    pages += [miniature.wheel(tmp_path / "w", "starlette", version) for version in ("0.46.2", "1.6.0")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "gradio\n", "app.py": "import gradio\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    data = json.loads(answer.stdout)["data"]
    assert data["lock"]["edits"] == ["[[constraint]] starlette<1, beside gradio"]
    assert "starlette==0.46.2" in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    (bound,) = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())["constraint"]
    assert (bound["requirement"], "profiles" in bound) == ("starlette<1", False)  # it holds for all of them


def test_bound_of_solve_itself_goes_with_what_is_dropped(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", name, one) for name, one in (("gradio", "4.44.1"), ("starlette", "1.6.0"))]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "gradio\nstarlette\n", "app.py": "import gradio\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    data = json.loads(answer.stdout)["data"]
    assert data["lock"]["packages"] == 1, data["lock"]
    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    why = "starlette<1 cannot be installed for Python 3.11 on linux-x86_64"
    assert [(one["id"], one["why"]) for one in values["patch"]] == [("no-starlette", why)]
    assert "constraint" not in values


def test_what_files_of_the_commits_day_needed_is_not_left_where_later_ones_are_taken(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        sdists.sdist(tmp_path / "files", "clock", "1.0", sdists.legacy("clock", tmp_path / "mark", "speaker>=2\n")),
        miniature.wheel(tmp_path / "files", "clock", "1.1"),
        miniature.wheel(tmp_path / "files", "speaker", "1.0"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    page = tmp_path / "index" / "clock" / "index.html"
    old, new = page.read_text().split("<br>\n")
    page.write_text(f"{old}<br>\n{new.replace('2025-06-01', '2026-03-01')}")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-09-01T00:00:00Z")
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    edits = json.loads(answer.stdout)["data"]["lock"]["edits"]
    assert [edit.partition(" until")[0] for edit in edits] == ["locks take files"]
    assert "[[metadata]]" not in (tmp_path / "mine/patches/mini-voice/app.toml").read_text()


def test_build_that_every_platform_needs_is_written_once(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        sdists.sdist(tmp_path / "files", "clock", "1.0", sdists.legacy("clock", tmp_path / "mark", "hands\n")),
        sdists.sdist(tmp_path / "files", "clock", "1.1", sdists.legacy("clock", tmp_path / "mark", "hands\n")),
        miniature.wheel(tmp_path / "files", "clock", "1.1"),
        miniature.wheel(tmp_path / "files", "hands", "1.0"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    page = tmp_path / "index" / "clock" / "index.html"
    old, *new = page.read_text().split("<br>\n")
    later = [one.replace("2025-06-01", "2099-01-01") for one in new]  # after each day that is tried
    page.write_text("<br>\n".join((old, *later)))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert "[[build]] of clock 1.0" in json.loads(answer.stdout)["data"]["lock"]["edits"]
    (build,) = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())["build"]
    assert "platforms" not in build
    assert build["why"].startswith("the index has no wheel that fits among its files until 2")


def test_only_what_a_wheel_requires_is_built(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [miniature.wheel(tmp_path / "files", "clock", version, requires=("hands",)) for version in ("1.0", "2.0")]
    files += [
        sdists.sdist(tmp_path / "files", name, "1.5", sdists.legacy(name, tmp_path / "mark", "\n"))
        for name in ("clock", "hands")
    ]
    files.append(miniature.wheel(tmp_path / "files", "hands", "1.5", tag="py2-none-any"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert json.loads(answer.stdout)["data"]["lock"]["edits"] == ["[[build]] of hands 1.5"]


@pytest.mark.parametrize("locked", ["0.1", "0.1+cpu"])
def test_newer_sdist_is_built_where_pip_would_take_it(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    files = [
        miniature.wheel(tmp_path / "files", "clock", locked),
        sdists.sdist(tmp_path / "files", "clock", "2.0", sdists.made("clock", "2.0")),
        sdists.maker(tmp_path / "files"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock.hands\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert "[[build]] of clock 2.0" in json.loads(answer.stdout)["data"]["lock"]["edits"]
    assert "clock==2.0" in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(lambda _: (), id="only wheels"),
        pytest.param(
            lambda folder: [sdists.sdist(folder, "clock", "0.2", sdists.made("clock", "0.2"))], id="an sdist between"
        ),
        pytest.param(lambda folder: [miniature.wheel(folder, "spring", "1.2")], id="a conflict before it"),
    ],
)
def test_build_is_that_of_the_requirement_without_a_wheel_that_keeps_a_newer_version_out(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Callable[[Path], Iterable[Path]]
) -> None:
    files = [
        miniature.wheel(tmp_path / "files", "clock", "0.1"),
        *more(tmp_path / "files"),
        miniature.wheel(tmp_path / "files", "clock", "2.0", requires=("hands",)),
        sdists.sdist(tmp_path / "files", "hands", "1.0", sdists.made("hands", "1.0")),
        sdists.maker(tmp_path / "files"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    asked = "clock\nspring<1\n" if any("spring" in one.name for one in files) else "clock\n"
    clone = upstream(tmp_path / "clone", {"requirements.txt": asked, "app.py": "import clock.hands\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert json.loads(answer.stdout)["data"]["lock"]["edits"][-1] == "[[build]] of hands 1.0"
    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    assert ([one["name"] for one in values["metadata"]], "constraint" in values) == (["hands"], False)
    assert "clock==2.0" in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


def test_build_comes_before_a_pre_release(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        miniature.wheel(tmp_path / "files", "clock", "2.0", requires=("hands==4.9.*",)),
        miniature.wheel(tmp_path / "files", "clock", "2.1.dev3", requires=("hands==4.11.*",)),
        miniature.wheel(tmp_path / "files", "hands", "4.11.0"),
        sdists.sdist(tmp_path / "files", "hands", "4.9.3", sdists.made("hands", "4.9.3")),
        sdists.maker(tmp_path / "files"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert json.loads(answer.stdout)["data"]["lock"]["edits"] == ["[[build]] of hands 4.9.3"]
    assert "clock==2.0" in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


def test_lock_tells_which_library_imports_pkg_resources_and_what_is_compiled(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", "speaker", "1.0", requires=("resampy<0.4.3", "webrtc"))]
    pages += [miniature.wheel(tmp_path / "w", "resampy", version) for version in ("0.4.2", "0.4.3")]
    pages += [miniature.wheel(tmp_path / "w", "setuptools", version) for version in ("80.0", "82.0")]
    setup = (
        "from setuptools import Extension, setup\nsetup(name='webrtc', ext_modules=[Extension('webrtc', ['x.c'])])\n"
    )
    files = {"setup.py": setup, "x.c": "", "PKG-INFO": sdists.info("webrtc"), "webrtc.egg-info/requires.txt": "\n"}
    pages += [sdists.sdist(tmp_path / "w", "webrtc", "1.0", files), miniature.wheel(tmp_path / "w", "wheel", "0.40")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "speaker\n", "app.py": "import speaker\n" + STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve")

    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    assert values["app"]["shared"] == ["setuptools-pkg-resources"]
    assert [(one["name"], one["why"]) for one in values["need"]] == [
        ("c-compiler", "to build webrtc: no wheel fits, and it is compiled")
    ]
    assert "\nneeds of the machine: c-compiler (to build webrtc: no wheel fits, and it is compiled)\n" in told.stdout
    assert "resampy 0.4.2 imports pkg_resources, which setuptools 82 removed, and requires no older one" in told.stdout
    assert "setuptools==80.0 " in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    assert "lock: mini-voice × cpu × linux-x86_64: 4 packages\n" in told.stdout


def test_edits_that_are_printed_beside_a_build_lock_with_it_and_take_no_placeholder(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"setup.py": "", "PKG-INFO": sdists.info("words"), "words.egg-info/requires.txt": "speaker<2\nletters\n"}
    pages = [miniature.wheel(tmp_path / "w", "words", "0.0.0"), sdists.sdist(tmp_path / "w", "words", "1.0", files)]
    files = {"setup.py": "", "PKG-INFO": sdists.info("letters"), "letters.egg-info/requires.txt": "\n"}
    pages.append(sdists.sdist(tmp_path / "w", "letters", "1.0", files))
    pages += [miniature.wheel(tmp_path / "w", "speaker", version) for version in ("1.0", "2.0")]
    pages += [miniature.wheel(tmp_path / "w", name, "80.0") for name in ("setuptools", "wheel")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    plain = upstream(tmp_path / "plain", {"requirements.txt": "words>=1\n", "app.py": ""})
    clone = upstream(tmp_path / "clone", {"requirements.txt": "words>=1\nspeaker>=2\n", "app.py": ""})

    alone = face("new-app", URL, "--source", str(plain), "--into", str(tmp_path / "alone")).stdout
    assert "words>=1 cannot be installed: it has no wheel that fits; the [[build]] below resolves it, tried" in alone
    assert "edit set" not in alone

    gone = upstream(tmp_path / "gone", {"requirements.txt": "words>=2\n", "app.py": ""})
    said = face("new-app", URL, "--source", str(gone), "--into", str(tmp_path / "none")).stdout
    assert "words>=2 cannot be installed" in said
    assert "words<=0.0.0" not in said

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine")).stdout

    app = tmp_path / "mine/patches/mini-voice/app.toml"
    builds = told[
        told.index("\n[[build]]\n") : told.index("edit set 1, with the [[build]] above: resolves to 3 packages")
    ]
    patches = told[told.index("\n[[patch]]\n") : told.index("uv about conflict 1")]
    app.write_text(app.read_text() + builds + patches)
    pair = ("mini-voice", "--profile", "cpu", "--platform", "linux-x86_64")
    done = face("lock", *pair, "--source", str(clone), "--catalogue", str(tmp_path / "mine"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "is_needed"),
    [("import words\n", True), ("try:\n    import words\nexcept ImportError:\n    pass\n", False)],
)
def test_edit_takes_nothing_out_that_the_app_imports(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, *, is_needed: bool
) -> None:
    pages = [
        miniature.wheel(tmp_path / "w", "speaker", "1.0"),
        miniature.wheel(tmp_path / "w", "words", "1.0", tag="cp27-none-any"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "words\nspeaker\n", "speech/voice.py": code})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--solve").stdout

    kept = "no edit takes words out, with which it would resolve: speech/voice.py:1 imports words as that module is imported"
    assert (kept in told) is is_needed
    assert ("; no set of edits was found, neither with files until " in told) is is_needed
    assert (" nor with later ones (" in told) is is_needed
    assert ("words → (dropped: speech/voice.py:2 imports it, and goes on without it)" in told) is not is_needed
