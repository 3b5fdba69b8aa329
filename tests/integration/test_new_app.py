"""`new-app` as a person runs it: a miniature upstream with the problems of the real ones."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import io
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import miniature
import pytest
import sdists
from conftest import ROOT, Said

from patchlock.catalogue import agreement
from patchlock.catalogue.proposals.shared_sets import CALLS
from patchlock.cli import main
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.lock_request import Request
from patchlock.model.lockfile import Lock
from patchlock.operations import proposal_locks

Face = Callable[..., Said]
URL = "https://github.com/somebody/Mini.Voice"
IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
STARTS = 'if __name__ == "__main__":\n    pass\n'
FILES = {
    "README.md": "# Mini Voice\n\nPython 3.10; `apt install espeak-ng`\n",
    "LICENSE": "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n",
    "requirements.txt": (
        "--extra-index-url https://download.pytorch.org/whl/cu118\n"
        "gradio==4.0\n"
        "faster-whisper\n"
        "typing\n"
        "flash-attn==2.0\n"
        "clock==1.0+cu118\n"
        "onnxruntime-gpu\n"
        "speaker @ git+https://github.com/somebody/speaker.git@main\n"
        "git+https://github.com/somebody/nowhere.git\n"
        "-e .\n"
        "deepspeed\n"
    ),
    "requirements-dev.txt": "pytest\n",
    "requirements_cuda.txt": "cupy\n",
    "app.py": (
        "import subprocess, sys\n"
        "import gradio\n"
        "import flash_attn\n"
        "import voice.model\n\n\n"
        "def models():\n"
        '    subprocess.run([sys.executable, "-m", "pip", "install", "models"])\n\n\n'
        'if __name__ == "__main__":\n'
        "    gradio.Interface(voice.model.load).launch()\n"
    ),
    "voice/__init__.py": "",
    "voice/model.py": (
        'import torch\n\n\ndef load(path):\n    return torch.load(path).to("cuda")\n\n\nNAME = "maker/speaks"\n\n\n'
        "def fetch():\n    return torch.nn.Module.from_pretrained(NAME)\n"
    ),
    "voice/train.py": "import deepspeed\n\n\ndef train(model):\n    return deepspeed.initialize(model=model)\n",
}


def git(folder: Path, *words: str) -> str:
    """Run git as the user."""
    done = subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def upstream(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Make a clone with one commit of these files; without files, with none."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if files:
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "x")
    return folder


def build_index(folder: Path) -> str:
    """Make an index with what the miniature requires, and give its address."""
    named = {"gradio": "4.0", "faster-whisper": "1.1.0", "clock": "1.0", "speaker": "0.3", "onnxruntime": "1.20"}
    needs = {"faster-whisper": ("av>=11",), "gradio": ("pydantic>=2.0",), "camera": ("opencv-python-headless",)}
    cameras = (("camera", "1.0"), ("opencv-python", "4.10"), ("opencv-python-headless", "4.10"))
    more = (
        *cameras,
        ("pydantic", "2.10"),
        ("pydantic", "2.12"),
        ("av", "12.0"),
        ("setuptools", "80.0"),
        ("onnxruntime-gpu", "1.30"),
    )
    wheels = [
        miniature.wheel(folder / "wheels", name, version, requires=needs.get(name, ()))
        for name, version in (*named.items(), *more)
    ]
    source = sdists.sdist(folder / "wheels", "flash_attn", "2.0", {})  # it is left out, and there is no wheel of it
    return miniature.index(folder / "index", [*wheels, source])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the test such an index."""
    address = build_index(tmp_path)
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    return address


@dataclasses.dataclass(frozen=True)
class Mini:
    """The miniature, and what was proposed for it."""

    clone: Path
    catalogue: Path
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """Give the proposed file."""
        return (self.catalogue / "patches/mini-voice/app.toml").read_text()


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Mini:
    """Propose a file for the miniature once."""
    folder = tmp_path_factory.mktemp("new-app")
    clone, catalogue = upstream(folder / "clone", FILES), folder / "mine"
    said = io.StringIO()
    variables = {"UV_DEFAULT_INDEX": build_index(folder), "UV_CACHE_DIR": str(folder / "uv"), "UV_OFFLINE": "1"}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        for name, value in (variables | {"PATCHLOCK_CACHE_DIR": str(folder / "cache")}).items():
            patch.setenv(name, value)
        main(["new-app", URL, "--source", str(clone), "--into", str(catalogue), "--json"])
    return Mini(clone=clone, catalogue=catalogue, data=json.loads(said.getvalue())["data"])


def proposed(face: Face, clone: Path, into: Path) -> dict[str, Any]:
    """Run the command, and give what it says to programs."""
    done = face("new-app", URL, "--source", str(clone), "--into", str(into), "--json")
    answer = json.loads(done.stdout)
    assert answer["error"] is None, answer["error"]
    data: dict[str, Any] = answer["data"]
    return data


# --- the proposal -----------------------------------------------------------------------------------------------------


def test_issues_are_named_with_their_places(mini: Mini) -> None:
    assert {one["name"]: [f"{f['path']}:{f['line']}" for f in one["found"]] for one in mini.data["findings"]} == {
        "av-wheel": ["requirements.txt:3"],
        "deepspeed-optional": ["requirements.txt:11", "voice/train.py:1"],
        "device-helper": ["voice/model.py:5"],
        "no-run-time-pip": ["app.py:8"],
        "onnxruntime-one-provider": ["requirements.txt:7"],
        "pydantic-gradio": ["requirements.txt:2"],
        "torch-load-weights-only": ["voice/model.py:5"],
        "other-index": ["requirements.txt:1"],
        "editable": ["requirements.txt:10"],
        "vcs-requirement": ["requirements.txt:8", "requirements.txt:9"],
        "local-version": ["requirements.txt:6"],
        "only-cuda": ["requirements.txt:5"],
        "standard-library": ["requirements.txt:4"],
        "missing-at-the-start": ["voice/model.py:1"],
    }
    assert mini.data["problems"] == []


def test_models_that_the_code_names_are_listed(mini: Mini) -> None:
    (one,) = mini.data["downloads"]
    assert one == {"name": "maker/speaks", "bytes": None, "at_start": False, "path": "voice/model.py", "line": 12}


def test_lock_is_made_of_what_is_left(mini: Mini) -> None:
    assert mini.data["lock"]["error"] == ""
    lock = (mini.catalogue / "lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    locked = [line.split("==")[0] for line in lock.splitlines() if "==" in line and not line.startswith("#")]
    assert locked == ["av", "clock", "faster-whisper", "gradio", "onnxruntime", "pydantic", "speaker"]
    assert "pydantic==2.10 " in lock


def test_proposal_names_the_schema_that_it_fits(mini: Mini) -> None:
    mark, _, place = mini.text.partition("\n")[0].partition(" ")
    schema = json.loads((mini.catalogue / "patches/mini-voice" / place).read_text())
    assert mark == "#:schema"
    jsonschema.validate(tomllib.loads(mini.text), schema, jsonschema.Draft7Validator)


def test_facts_are_read_from_the_clone(mini: Mini) -> None:
    values = tomllib.loads(mini.text)
    app = values["app"]
    assert (app["title"], app["license"], app["python"]) == ("Mini Voice", "MIT", ">=3.8")
    assert app["requirements"] == ["requirements.txt"]
    assert (
        "# Not: requirements_cuda.txt (it is for machines with cuda), requirements-dev.txt (it is for dev)."
        in mini.text
    )
    assert values["upstream"] == {"url": URL, "branch": "trunk", "commit": git(mini.clone, "rev-parse", "HEAD")}
    assert values["launch"]["command"] == ["python", "app.py"]
    assert values["need"][0]["name"] == "espeak-ng"
    assert values["check"][0]["present"] == ["gradio"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("patch", "test"), "together on commit", id="patches-keep-their-promises"),
        pytest.param(("lock", "--check", "--platform", "linux-x86_64"), "fresh", id="lock-is-fresh"),
    ],
)
def test_other_commands_read_the_proposal(face: Face, mini: Mini, words: tuple[str, ...], says: str) -> None:
    source = ("--source", str(mini.clone), "--catalogue", str(mini.catalogue))

    told = face(*words, "mini-voice", "--profile", "cpu", *source)

    assert told.returncode == 0, told.stdout + told.stderr
    assert says in told.stdout


def test_source_is_free_of_what_was_found_after_patching(face: Face, mini: Mini) -> None:
    source = ("--source", str(mini.clone), "--catalogue", str(mini.catalogue))

    added = [
        line
        for line in face("patch", "diff", "mini-voice", "--profile", "cpu", *source).stdout.splitlines()
        if line.startswith("+")
    ]

    assert '+    return torch.load(path, weights_only=False).to("cpu")' in added
    assert any("onnxruntime" in line and "gpu" not in line for line in added)
    assert not any(word in line for line in added for word in ("cu118", "git+", "flash-attn"))


def test_project_files_stand_for_a_requirement_file(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    pyproject = (
        '[project]\nname = "mini"\ndescription = "Speaks"\nrequires-python = ">=3.9"\n'
        'dependencies = [\n    "speaker @ git+https://github.com/somebody/speaker.git",\n    "clock<2",\n]\n'
    )
    files = {
        "pyproject.toml": pyproject,
        "src/mini/__init__.py": "import clock\n",
        "src/mini/__main__.py": "import mini\n",
    }

    data = proposed(face, upstream(tmp_path / "clone", dict(files)), tmp_path / "mine")

    assert data["requirements"] == "pyproject.toml"
    assert data["lock"]["packages"] == 2
    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    assert values["app"]["python"] == ">=3.9"
    assert values["launch"] == {"command": ["python", "-m", "mini"], "environment": {"PYTHONPATH": "src"}}


def test_conflict_is_explained_and_solve_writes_the_edit(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"))

    assert told.returncode == 1
    assert "clock<1 cannot be installed: only clock==1.0 is available; " in told.stdout
    assert '\nprofiles = ["cpu"]\n' in told.stdout  # nobody knows whether others need the edit
    assert (
        f"remove {tmp_path}/mine/patches/mini-voice, and propose it again with `--solve`, which writes what resolves it into "
        "the proposal; it looks for 120 s at most (--explain SECONDS), and tries files of later days before other "
        "versions\n"
    ) in told.stdout

    solved = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "other"), "--solve")

    assert solved.returncode == 0, solved.stdout
    values = tomllib.loads((tmp_path / "other/patches/mini-voice/app.toml").read_text())
    assert [(one["id"], one["specifier"]) for one in values["patch"]] == [("clock-that-resolves", ">=1.0")]
    assert (tmp_path / "other/lockfiles/mini-voice/cpu.linux-x86_64.txt").is_file()


def test_what_solve_has_tried_in_vain_is_told_and_not_written(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index
    monkeypatch.setattr(proposal_locks, "_CONFLICTS", 1)  # resolutions, so that no edit is left to try
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock<1\nspeaker\n", "app.py": ""})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve")

    assert told.returncode == 1
    assert "edit set 1" in told.stdout
    says, *attempts, _, _, _, _ = told.stdout.rpartition("\n\n`--solve` ")[2].splitlines()
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

    _, *attempts, _, _, _, _ = told.stdout.rpartition("\n\n`--solve` ")[2].splitlines()
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


def test_pin_of_what_a_shared_set_replaces_is_left_to_it(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {"requirements.txt": "onnxruntime-gpu==1.19\n", "app.py": "import onnxruntime\n"}
    data = proposed(face, upstream(tmp_path / "clone", files), tmp_path / "x")

    assert [one["name"] for one in data["findings"]] == ["onnxruntime-one-provider"]
    assert "onnxruntime==1.20" in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


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

    (check,) = tomllib.loads((catalogue / "patches/mini-voice/app.toml").read_text())["check"]
    assert check["present"] == ["gradio", "pydantic"]
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


def test_module_that_only_an_extra_brings_is_required(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    pyproject = (
        '[project]\nname = "mini"\ndependencies = ["clock"]\n\n'
        '[project.optional-dependencies]\nweb = ["gradio"]\nall = ["gradio", "speaker"]\n'
    )
    files: dict[str, str | bytes] = {"pyproject.toml": pyproject, "app.py": "import clock\nimport gradio\n" + STARTS}

    clone = upstream(tmp_path / "clone", files)
    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "w"))
    assert "find out what brings it, and require that; `--solve` looks for it\n" in told.stdout
    assert "\nlock: mini-voice × cpu × linux-x86_64: 1 package\n" in told.stdout

    face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--solve")

    values = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())
    assert values["app"]["extras"] == ["web"]
    assert "gradio==4.0 " in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


def test_module_that_nothing_requires_is_taken_from_where_it_is_named(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock\n",
        "requirements-web.txt": "gradio>=4\n",
        "app.py": "import gradio\nimport speaker\nimport nowhere_at_all\n" + STARTS,
    }
    told = face(
        "new-app", URL, "--source", str(upstream(tmp_path / "c", files)), "--into", str(tmp_path / "x"), "--solve"
    )

    patches = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert [one["requirement"] for one in patches] == ["gradio>=4", "speaker"]
    assert "requirements-web.txt:1 asks for it" in patches[0]["why"]
    assert (
        "look at: app.py:2 imports speaker at the start and nothing requires it; the index has a speaker" in told.stdout
    )
    assert "app.py:3: imports nowhere_at_all" in told.stdout


def test_requirement_files_of_the_readme_are_taken_together(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "README.md": "```\npip install -r extra-req.txt --no-deps\npip install -r requirements.txt\n"
        "pip install -r requirements-dev.txt\n```\n",
        "requirements-dev.txt": "pytest\n",
        "requirements.txt": "clock\n",
        "extra-req.txt": "speaker\n",
        "app.py": STARTS,
    }

    proposed(face, upstream(tmp_path / "clone", files), tmp_path / "x")

    values = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())
    assert values["app"]["requirements"] == ["extra-req.txt", "requirements.txt"]


def test_nothing_of_the_app_is_executed(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    mark = tmp_path / "executed"
    shell, python = f"touch {mark}\n", f"open({str(mark)!r}, 'w').close()\n"
    files: dict[str, str | bytes] = {
        "README.md": f'```\n$(touch {mark})\npython app.py `touch {mark}`\npython -c "{python.strip()}"\n```\n',
        "requirements.txt": "clock\n",
        "setup.py": f"{python}from setuptools import setup\nsetup(name='mini', entry_points={{'console_scripts': ['a=app:main']}})\n",
        "app.py": python + "import clock\nimport own.deep\nimport nowhere_at_all\n" + STARTS,
        "own/__init__.py": python,
        "own/deep.py": python,
        "sitecustomize.py": python,
        "conftest.py": python,
        "run.sh": shell + "python app.py\n",
        "start.bat": shell,
        "Dockerfile": f"FROM x\nRUN touch {mark}\nCMD python app.py\n",
        ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% {mark}\n',
    }

    told = face(
        "new-app", URL, "--source", str(upstream(tmp_path / "c", files)), "--into", str(tmp_path / "x"), "--solve"
    )

    assert "python app.py" in told.stdout, told.stderr
    assert not mark.exists()


def test_all_profiles_are_tried_and_refusals_have_reasons(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock[loud]\nspeaker<0.1 ; sys_platform == 'win32'\n",
        "app.py": "import clock\n" + STARTS,
    }
    clone = upstream(tmp_path / "c", files)

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--explain", "0", "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    assert others["cuda-linux", "linux-x86_64"]["packages"] == 1
    not_covered = 'not covered: requirements.txt:1: clock has no extra "loud"'
    assert others["cuda-linux", "linux-x86_64"]["warnings"] == [not_covered]
    assert json.loads(done.stdout)["data"]["lock"]["warnings"] == [not_covered]
    assert others["rocm-linux", "linux-x86_64"]["packages"] == 1
    cause = (
        "only speaker{sys_platform == 'win32'}==0.3 is available and you require speaker{sys_platform == 'win32'}<0.1"
    )
    assert others["cpu", "windows-amd64"]["why"] == f"no set of packages satisfies the requirements: {cause}"
    refused = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["refused"]
    assert ("cpu", ["windows-amd64"]) in [(one["profile"], one["platforms"]) for one in refused]
    checked = json.loads(face("lock", "--check", "--catalogue", str(tmp_path / "x"), "--json").stdout)["data"]["pairs"]
    assert {one["state"] for one in checked} == {"fresh", "refused"}  # what was written later makes none stale


def test_reason_of_a_refusal_is_whole_however_long_it_is(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", name, "4.10") for name in ("opencv-python", "opencv-python-headless")]
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64")
    pages += [miniature.wheel(tmp_path / "w", "bitsandbytes", "0.49.2", tag=f"py3-none-{tag}") for tag in tags]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    needs = "opencv-python\nopencv-python-headless\nbitsandbytes\n"
    clone = upstream(tmp_path / "c", {"requirements.txt": needs, "app.py": "import cv2\n" + STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all").stdout

    refused = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["refused"]
    (why,) = [one["why"] for one in refused if one["profile"] == "rocm-linux"]
    assert len(why) > 300
    assert why.endswith("on a connected machine, or declare an [[exception]] with its reason")
    assert f"  rocm-linux on linux-x86_64: refused: {why.removeprefix('no lock can be made: ')}\n" in told


def test_what_nobody_has_recorded_is_to_be_looked_at_and_no_refusal(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64")
    pages = [miniature.wheel(tmp_path / "w", "bitsandbytes", "0.49.2", tag=f"py3-none-{tag}") for tag in tags]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "c", {"requirements.txt": "bitsandbytes\n", "app.py": STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all").stdout

    app = (tmp_path / "x/patches/mini-voice/app.toml").read_text()
    assert not [one for one in tomllib.loads(app).get("refused", ()) if one["profile"] == "rocm-linux"]
    why = "nobody has looked which GPUs bitsandbytes 0.49.2 (requirements.txt:1) has code for; give its wheel, or "
    assert f"  rocm-linux on linux-x86_64: no lock: {why}" in told
    assert f"\nlook at: rocm-linux on linux-x86_64 has no lock yet: {why}" in told
    assert "# TODO: rocm-linux on linux-x86_64 has no lock yet: nobody has looked which GPUs" in app


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


def test_first_pair_without_a_lock_does_not_end_the_others(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {"requirements.txt": "clock\nspeaker<0.1 ; sys_platform == 'linux'\n", "app.py": "import clock\n" + STARTS}
    clone, own = upstream(tmp_path / "c", dict(files)), tmp_path / "x"

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(own), "--profile", "all"),
        *("--explain", "0", "--platform", "linux-x86_64"),
    )

    assert done.returncode == 1
    assert "no lock: mini-voice × cpu × linux-x86_64: no set of packages" in done.stdout
    assert "  cpu on windows-amd64: 1 package\n" in done.stdout
    assert "  cuda-linux on linux-x86_64: refused: no set of packages" in done.stdout
    assert not any(line.startswith("start ") for line in done.stderr.splitlines()), done.stderr  # nothing to start
    assert (own / "lockfiles/mini-voice/cpu.windows-amd64.txt").is_file()
    checked = json.loads(face("lock", "--check", "--catalogue", str(own), "--json").stdout)["data"]["pairs"]
    assert [one["pair"] for one in checked if one["state"] not in {"fresh", "refused"}] == [
        "mini-voice × cpu × linux-x86_64"
    ]


def test_further_pairs_get_edits_of_their_own(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64")
    pages = [miniature.wheel(tmp_path / "w", "clock", "1.0", tag=f"py3-none-{tag}") for tag in tags]
    pages += [miniature.wheel(tmp_path / "w", "clock", "2.0", tag="py3-none-win_amd64")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock<2\n", "app.py": "import clock\n" + STARTS})

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--platform", "linux-x86_64", "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    (patch,) = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert (patch["id"], patch["specifier"]) == ("clock-that-resolves", ">=2.0")
    only_there = {profile for profile, platform in others if platform == "windows-amd64"} - {"cpu"}
    assert set(patch["profiles"]) == only_there  # the bound is impossible for the others
    unlocked = [pair for pair, one in others.items() if not one["packages"]]
    assert unlocked == [("cpu", "windows-amd64")]  # it would take the lock of the profile's other platforms away
    checked = face(
        "lock", "mini-voice", "--check", "--source", str(clone), "--catalogue", str(tmp_path / "x"), "--json"
    )
    assert {one["state"] for one in json.loads(checked.stdout)["data"]["pairs"]} == {"fresh", "refused"}


def test_what_a_profile_needs_may_be_younger_than_the_app(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(ROOT / "profiles", own / "profiles")
    shutil.copytree(ROOT / "patches/shared", own / "patches/shared")
    profile = own / "profiles/cuda-linux.toml"
    bound = '\n[[constraint]]\nrequirement = "clock>=2"\nwhy = "older ones do not know the card"\nsource = "s"\n'
    profile.write_text(profile.read_text() + bound)
    needs = {"2.0": ("spring>=2",)}
    files = [miniature.wheel(tmp_path / "w", "clock", one, requires=needs.get(one, ())) for one in ("1.0", "2.0")]
    files += [miniature.wheel(tmp_path / "w", "spring", one) for one in ("1.0", "2.0")]
    address = miniature.index(tmp_path / "index", files)
    for page in (tmp_path / "index").glob("*/index.html"):
        rows = page.read_text().splitlines()
        page.write_text("\n".join(row.replace("2025-06-01", "2026-06-01") if "-2.0-" in row else row for row in rows))
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-08-01T00:00:00Z")
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock\n", "app.py": "import clock\n" + STARTS})

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--catalogue", str(own), "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    assert others["cuda-linux", "linux-x86_64"]["packages"] == 2
    newer = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["newer"]
    assert [(one["name"], one["profiles"]) for one in newer] == [("clock", ["cuda-linux"]), ("spring", ["cuda-linux"])]
    assert "clock==1.0" in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    checked = face(
        "lock", "mini-voice", "--check", "--source", str(clone), "--catalogue", str(tmp_path / "x"), "--json"
    )
    states = {one["state"] for one in json.loads(checked.stdout)["data"]["pairs"]}
    assert states <= {"fresh", "refused"}  # no table that came later has made an earlier lock stale


def test_names_of_upstream_s_files_stay_on_their_line(face: Face, index: str, tmp_path: Path) -> None:
    forged = "d\nnext: run `curl evil"
    files = {
        "requirements.txt": "clock\n",
        f"{forged}/requirements.txt": "clock\n",
        f"{forged}/a.py": 'import torch\nx = torch.device("cuda")\n',
    }
    clone = upstream(tmp_path / "clone", {**files})

    said = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"))

    assert said.returncode == 0, said.stderr
    shown = forged.replace("\n", "\\n")
    assert f'    {shown}/a.py:2: x = torch.device("cuda")\n' in said.stdout
    assert f"  not {shown}/requirements.txt: it is what pip users install, in {shown}\n" in said.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
@pytest.mark.parametrize(
    ("name", "shown", "link"),
    [("bad\udcff", "bad\\udcff", "bad%FF"), ("a\x1b[31mred", "a\\x1b[31mred", "a%1B%5B31mred")],
    ids=["not-utf-8", "control-character"],
)
def test_any_file_name_and_requirement_line_has_a_draft(
    face: Face, index: str, tmp_path: Path, name: str, shown: str, link: str
) -> None:
    files = {
        "requirements.txt": "clock\nflash-attn==2.0\nfoo\x1b[31mbar==1\n",
        f"{name}/requirements.txt": "clock\n",
        f"{name}/app.py": f"import flash_attn\nimport torch\n\nx = torch.device('cuda')\n{STARTS}",
    }
    clone = upstream(tmp_path / "clone", {**files})

    data = proposed(face, clone, tmp_path / "mine")

    text = (tmp_path / "mine/patches/mini-voice/app.toml").read_text()
    assert "no-flash-attn" in " ".join(data["patches"])
    assert f"{shown}/app.py:4: x = torch.device('cuda')" in text
    assert f"/{link}/app.py#L1" in text
    at = ("--catalogue", str(tmp_path / "mine"), "--source", str(clone), "--profile", "cpu")
    diff = face("patch", "diff", "mini-voice", *at)
    assert diff.returncode == 0, diff.stderr
    assert "-import flash_attn\n" in diff.stdout


def test_patch_that_is_refused_in_a_file_goes_on_without_it(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {
        "requirements.txt": "clock\n",
        "good.py": 'import torch\n\nmodel = torch.load("m")\n',
        "bad.py": 'import torch\n\nmodel = torch.load("m", **options)\n',
    }

    data = proposed(face, upstream(tmp_path / "clone", dict(files)), tmp_path / "mine")

    assert data["problems"] == []
    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    written = {one["id"]: one["paths"] for one in values.get("patch", ())}
    assert written == {"torch-load-weights-only-calls": ["good.py"]}
    assert "shared" not in values["app"]  # nothing of the set is left
    assert "# Not in bad.py: line 3:" in (tmp_path / "mine/patches/mini-voice/app.toml").read_text()


def test_of_two_builds_of_one_library_one_is_kept(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    clone = upstream(tmp_path / "clone", {"requirements.txt": "camera\nopencv-python\n", "app.py": "import cv2\n"})
    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "first")).stdout
    assert " with `--solve`, which looks for what keeps the rules, and writes it into the proposal\n" in told

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    data = json.loads(answer.stdout)["data"]
    assert data["lock"]["packages"] == 2
    assert data["lock"]["edits"] == ["[[exclude]] of opencv-python-headless, beside opencv-python"]
    values = tomllib.loads((tmp_path / "mine/patches/mini-voice/app.toml").read_text())
    assert [one["name"] for one in values["exclude"]] == ["opencv-python-headless"]


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
    assert (bound["requirement"], bound["profiles"]) == ("starlette<1", ["cpu"])


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
    assert build["why"].startswith("the index has no wheel of these versions among its files until 2")


def test_newer_sdist_is_built_where_pip_would_take_it(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        miniature.wheel(tmp_path / "files", "clock", "0.1"),
        sdists.sdist(tmp_path / "files", "clock", "2.0", sdists.made("clock", "2.0")),
        sdists.maker(tmp_path / "files"),
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", files))
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock.hands\n"})

    answer = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"), "--solve", "--json")

    assert "[[build]] of clock 2.0" in json.loads(answer.stdout)["data"]["lock"]["edits"]
    assert "clock==2.0" in (tmp_path / "mine/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()


@pytest.mark.usefixtures("index")
def test_nothing_is_overwritten(face: Face, tmp_path: Path) -> None:
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n"})
    proposed(face, clone, tmp_path / "mine")
    file = tmp_path / "mine/patches/mini-voice/app.toml"
    file.write_text("mine\n")

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"))

    assert told.returncode == 2
    assert 'the catalogue has "mini-voice" already' in told.stderr
    assert file.read_text() == "mine\n"


def test_a_git_repository_with_something_else_becomes_a_catalogue(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n" + STARTS})
    mine = upstream(tmp_path / "mine", {"README.md": "mine"})

    told = face("new-app", URL, "--source", str(clone), "--into", str(mine))

    assert told.returncode == 0, told.stderr
    assert (mine / "README.md").read_text() == "mine"
    assert {path.name for path in mine.iterdir()} >= {"profiles", "patches", "lockfiles"}


def test_the_shipped_sets_are_those_that_are_called_for_by_name() -> None:
    assert {*CALLS} <= {path.stem for path in (ROOT / "patches/shared").glob("*.toml")}
