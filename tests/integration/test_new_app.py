"""`new-app` as a person runs it: a miniature upstream with the problems of the real ones."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
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

from patchlock.catalogue.proposals.shared_sets import CALLS
from patchlock.cli import main

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
        "    gradio.Interface([voice.model.load, voice.model.fetch]).launch()\n"
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
        # and not av-wheel, without which the lock is the same
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


def test_model_that_only_a_run_knows_the_name_of_is_told(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    app = 'from huggingface_hub import snapshot_download\ndef get(kind):\n    snapshot_download(f"maker/{kind}")\n'
    starts = STARTS.replace("pass", "serve(get)")
    clone = upstream(tmp_path / "clone", {"requirements.txt": "speaker\n", "app.py": app + starts})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x")).stdout

    assert "\n  maker/{kind}: size unknown, named only as it runs (app.py:3)\n" in told


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
    assert "# Also there: requirements_cuda.txt (it is for CUDA), requirements-dev.txt (it is for dev)." in mini.text
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


def test_draft_says_what_was_looked_at_and_keeps_to_what_upstream_says(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock\n",
        "README.md": "```bash\npip install -r requirements.txt\nexport NO_COMPILE=1\n```\n\n```bash\npython say.py\n```\n",
        "say.py": (
            "import sys\n"
            "import torch\n"
            "if sys.version_info < (3, 8):\n"
            '    raise RuntimeError("too old")\n'
            "import marks\n\n\n"
            "def main():\n"
            "    # The best device, skipping MPS due to float64 limitations\n"
            '    device = "cuda" if torch.cuda.is_available() else "cpu"\n'
            "    marks.load(device)\n\n\n"
            'if __name__ == "__main__":\n'
            "    main()\n"
        ),
        "marks.py": (
            "import torch\n\n\n"
            'def load(device="cuda"):\n'
            "    if not torch.cuda.is_available():\n"
            '        raise RuntimeError("no GPU")\n'
            "    return torch.nn.Module().to(device)\n\n\n"
            "def check():\n"
            '    return load("cuda")\n'
        ),
    }
    told = face("new-app", URL, "--source", str(upstream(tmp_path / "c", files)), "--into", str(tmp_path / "x")).stdout

    nowhere = "may make it fail, but nothing shows that its start leads there:\n"
    assert (
        "\nmay make it fail once that code runs:\n"
        "needs-cuda: upstream's code ends where there is no CUDA\n"
        "  it raises or exits there, and what follows does not run; "
        "no patch of the draft changes that: see what needs CUDA after it, and write a patch of your own\n"
        f"    marks.py:5: if not torch.cuda.is_available():\n{nowhere}device-helper: "
    ) in told
    assert '    marks.py:11: return load("cuda")\n' in told.partition(nowhere)[2]
    says = (
        "upstream's choice of a device leaves out mps, and say.py:9 says: "
        '"The best device, skipping MPS due to float64 limitations"'
    )
    assert f"\nlook at: {says}; the draft does the same: see whether that is still so\n" in told
    assert "for mps-macos)" not in told
    assert "\nlaunch: python say.py, README.md:7 says so; README.md:3 sets NO_COMPILE=1\n" in told
    draft = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())
    assert draft["launch"]["environment"] == {"NO_COMPILE": "1"}
    assert draft["app"]["without"] == ["device-helper-on-metal"]
    (own,) = (one for one in draft["patch"] if one["id"] == "cpu-instead-of-mps")
    assert (own["op"], own.get("device", "cpu"), own["profiles"], own["why"]) == (
        "device-literals",
        "cpu",
        ["mps-macos"],
        says,
    )


def test_place_that_no_patch_changes_on_the_wanted_profile_is_a_todo(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock\n",
        "app.py": STARTS,
        "demo.py": "import torch\nHAS = torch.cuda.is_available()\n"
        "a = {gpu: load().to('cuda' if gpu else 'cpu') for gpu in [False] + ([True] if HAS else [])}\n",
        "more.py": "import torch\nmodel = load()\nif torch.cuda.is_available():\n    model.cuda()\n"
        "    torch.cuda.synchronize()\n",
    }
    clone = upstream(tmp_path / "c", files)

    told = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "mps-macos"),
    ).stdout

    assert re.findall(r"\nlook at: its TODO of (.*)", told) == [
        f'device-helper, which {stops}: the shared set "device-helper" cannot be applied to {path}: '
        "write a patch of your own"
        for stops, path in (
            ("may make it fail, but nothing shows that its start leads there", "demo.py"),
            ("makes it slower", "more.py"),
        )
    ]
    assert '"device-helper" fixes it' not in told


@pytest.mark.parametrize(
    ("examples", "more"), [((), ""), (("a",), "examples/a.py"), (("a", "b"), "examples/a.py and 1 more")]
)
def test_files_without_a_place_that_a_set_changes_are_named(
    face: Face, index: str, tmp_path: Path, examples: tuple[str, ...], more: str
) -> None:
    assert index
    wrong = "import torch\nmodel = load().cuda()\n"
    partly = f'{wrong}device = "cuda" if torch.cuda.is_available() else "cpu"\n'
    files: dict[str, str | bytes] = {"requirements.txt": "clock\n", "app.py": wrong + STARTS}
    clone = upstream(tmp_path / "c", files | {f"examples/{name}.py": partly for name in examples})

    (taken,) = proposed(face, clone, tmp_path / "x")["shared"]

    assert taken["why"] == f"1 place in 1 file, first app.py:2{f'; it also changes {more}' if more else ''}"


def test_module_that_nothing_requires_is_taken_from_where_it_is_named(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock\n",
        "requirements-web.txt": "gradio>=4\nhands\n",
        "poetry.lock": "",
        "Dockerfile": "FROM x\nRUN apt-get install -y libsndfile1 sox rubberband-cli git\nRUN pip install -r requirements.txt\n",
        "README.md": "`pip install clock hands horns hums our-voice speaker`\n",
        "pyproject.toml": '[project]\nname = "our_voice"\n',
        "src/our_voice/api.py": "import our_voice.api\n",
        "hums/hands/__init__.py": "def load():\n    import hands, horns\n",
        "Dockerfile.gpu": "FROM x\nRUN apt-get install -y openmpi-bin\n",
        "app.py": "import gradio\nimport speaker\nimport nowhere_at_all\nimport hums\n" + STARTS,
        "more.py": "import gradio\nbox = gradio.Box()\n",
        "hums/__init__.py": "from .tones import low\nfrom .version import number\n",
        "hums/tones.py": "low = 1\n",
    }
    told = face(
        "new-app", URL, "--source", str(upstream(tmp_path / "c", files)), "--into", str(tmp_path / "x"), "--solve"
    )

    draft = (tmp_path / "x/patches/mini-voice/app.toml").read_text()
    patches = tomllib.loads(draft)["patch"]
    assert [one["requirement"] for one in patches] == ["gradio>=4", "speaker"]
    assert "requirements-web.txt:1 asks for it" in patches[0]["why"]
    assert (
        "look at: app.py:2 imports speaker at the start and nothing requires it; the index has a speaker" in told.stdout
    )
    assert "app.py:3: imports nowhere_at_all" in told.stdout
    assert "\nmade-by-a-build: " in told.stdout  # as setup.py writes it
    assert "\n# TODO: made-by-a-build: " in draft
    assert "\n# TODO: removed-interface: gradio 4.0.0 has changed or removed it; keep gradio below 4\n" in draft
    assert re.findall(r"\nnext: (?:settle its TODO of )?([\w-]*)", told.stdout) == [
        "made-by-a-build",
        "missing-at-the-start",
        "read",
    ]
    assert (
        "\nlook at: its TODO of removed-interface, which may make it fail, but nothing shows that its start leads there: keep gradio below 4\n"
        in told.stdout
    )
    assert re.findall(r"imports hums\S*", told.stdout) == ["imports hums.version"]
    assert (
        "\n  also there: poetry.lock, it holds the versions that upstream tested, for its own machines; " in told.stdout
    )
    assert "look at: Dockerfile:2 installs libsndfile1, sox, rubberband-cli with apt: " in told.stdout
    assert "\npatches: 2, 2 needed\n" in told.stdout  # both were added for the lock
    silent = "with pip, which its code imports and requirements.txt does not ask for"
    assert f"look at: README.md:1 installs hands {silent} (requirements-web.txt:2 does): add it with" in told.stdout
    assert f"look at: README.md:1 installs horns {silent}: add it with" in told.stdout
    assert not re.search("installs (?:clock|hums|our-voice|speaker) with pip", told.stdout)
    assert "openmpi" not in told.stdout  # its Dockerfile installs from another file


@pytest.mark.parametrize(("program", "is_known"), [(STARTS, True), ("", False)], ids=["program", "no-program"])
def test_draft_has_no_check_of_nothing_and_what_it_leaves_open_is_said(
    face: Face, index: str, tmp_path: Path, program: str, *, is_known: bool
) -> None:
    assert index
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock\n", "app.py": program})

    said = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"))
    told = said.stdout

    assert ("no program is known whose imports could be followed" in said.stderr) is not is_known
    assert "check" not in tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())
    assert ("next: settle the TODO of its [launch]: write there how it is started\n" in told) is not is_known
    where = ("--source", str(clone), "--catalogue", str(tmp_path / "x"))
    rows = [line.split() for line in face("check", "mini-voice", *where).stdout.splitlines()]
    says = "[launch] in patches/mini-voice/app.toml names no program: write there how mini-voice is started"
    assert [" ".join(row[1:]) for row in rows if row[0] == "launch"] == ([] if is_known else [says])


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

    clone = upstream(tmp_path / "clone", files)
    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"))

    values = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())
    assert values["app"]["requirements"] == ["extra-req.txt", "requirements.txt"]
    assert "  together with: extra-req.txt\n" in told.stdout


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
    assert (
        f"  also there: {shown}/requirements.txt, its name is the one that pip users install from, in {shown}\n"
        in said.stdout
    )


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


@pytest.mark.usefixtures("index")
def test_the_profiles_of_the_folder_that_it_goes_to_are_those_of_its_locks(face: Face, tmp_path: Path) -> None:
    clone = upstream(tmp_path / "clone", {"requirements.txt": "clock\n", "app.py": "import clock\n" + STARTS})
    mine = tmp_path / "mine"
    proposed(face, clone, mine)
    profile = mine / "profiles" / "cpu.toml"
    profile.write_text(f"# mine\n{profile.read_text()}")
    named = ("--source", str(clone), "--into", str(mine), "--name", "another")
    assert face("new-app", URL, *named).returncode == 0
    at = ("--profile", "cpu", "--platform", "linux-x86_64", "--catalogue", str(mine))
    assert "fresh" in face("lock", "another", "--check", *at).stdout


def test_a_git_repository_with_something_else_becomes_a_catalogue(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    clone = upstream(tmp_path / "clone", {"requirements.txt": "asyncio\nclock\n", "app.py": "import clock\n" + STARTS})
    mine = upstream(tmp_path / "mine", {"README.md": "mine"})

    told = face("new-app", URL, "--source", str(clone), "--into", str(mine))

    assert told.returncode == 0, told.stderr
    assert " 1 kind of problem (" in told.stderr
    assert (mine / "README.md").read_text() == "mine"
    assert {path.name for path in mine.iterdir()} >= {"profiles", "patches", "lockfiles"}


def test_the_shipped_sets_are_those_that_are_called_for_by_name() -> None:
    assert {*CALLS} <= {path.stem for path in (ROOT / "patches/shared").glob("*.toml")}


def test_commit_that_only_a_fork_has_is_told(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    theirs = upstream(tmp_path / "theirs", {"requirements.txt": "clock\n", "app.py": STARTS})
    fork = tmp_path / "fork"
    subprocess.run(["git", "clone", "-q", str(theirs), str(fork)], check=True)
    subprocess.run(
        ["git", "remote", "set-url", "origin", "git@github.com:somebody/Mini.Voice.git"], cwd=fork, check=True
    )
    before = face("new-app", URL, "--source", str(fork), "--into", str(tmp_path / "x"))
    (fork / "app.py").write_text("import clock\n")
    subprocess.run(["git", *IDENTITY, "commit", "-qam", "mine"], cwd=fork, check=True)
    after = face("new-app", URL, "--source", str(fork), "--into", str(tmp_path / "y"))

    assert "is on no branch of" not in before.stdout
    assert (
        f"is on no branch of {URL} that the clone knows, so others cannot get it there: push it and run new-app with "
        "the address of the fork, or give --source to every command" in after.stdout
    )
