"""How an app is proposed to be started, from what its files and documents say."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT
from packaging.utils import canonicalize_name
from test_proposals import PROFILES, STARTS, tree

from patchlock.catalogue.proposals import launch, launch_commands, onnx_builds
from patchlock.catalogue.proposals.findings import SetChoice
from patchlock.catalogue.proposals.launch_commands import LaunchCommand
from patchlock.catalogue.reader import Catalogue
from patchlock.operations import _start_cures
from patchlock.patches.import_graph import ReachedImport, Trees
from patchlock.patches.ops.requirements.ops import AddRequirement

SERVES = "import gradio\ngradio.Blocks().launch()\n"


def started(texts: Mapping[str, str]) -> list[LaunchCommand]:
    """List the commands that a clone may be started with."""
    files = tree(texts)
    return list(launch_commands.candidates(files, Trees({p: d for p, d in files.items() if p.suffix == ".py"})))


@pytest.mark.parametrize(
    ("program", "imports"),
    [
        ("import numpy\n", ("numpy",)),
        ("import sys\nif sys.version_info[0] < 3:\n    raise OSError\nimport numpy\n", ("numpy",)),
        ("import sys\n", ("torch",)),
    ],
    ids=["program", "after-a-question", "packages"],
)
def test_modules_to_import_are_those_of_the_program_or_else_of_the_packages(
    program: str, imports: tuple[str, ...]
) -> None:
    files = tree({"app.py": program, "voice/__init__.py": "import torch\n"})
    wanted = [canonicalize_name(name) for name in ("numpy", "torch")]
    command = launch.launching([LaunchCommand(command=("python", "app.py"), environment={}, why="", serves=False)])
    assert launch.modules_to_import(files, wanted, command) == imports


@pytest.mark.parametrize(
    ("texts", "command", "path"),
    [
        pytest.param({"webui.py": SERVES, "cli.py": STARTS}, "python webui.py", "", id="a-server-first"),
        pytest.param(
            {
                "README.md": "```sh\nuv run --extra ui go.py --help\nuv run --extra ui go.py\n```",
                "go.py": "",
                "app.py": SERVES,
            },
            "python go.py",
            "",
            id="a-file-that-uv-runs",
        ),
        pytest.param(
            {"README.md": "`python app.py --offload true --low 1`\n\n`python app.py --theme x`\n", "app.py": SERVES},
            "python app.py --theme x",
            "",
            id="the-plainest-line",
        ),
        pytest.param({"app/main.py": STARTS, "infer.py": STARTS}, "python infer.py", "", id="the-root-first"),
        pytest.param({"a/__init__.py": "", "a/__main__.py": ""}, "python -m a", "", id="a-package"),
        pytest.param(
            {"src/a/__init__.py": "", "src/a/__main__.py": STARTS}, "python -m a", "src", id="a-package-below-src"
        ),
        pytest.param(
            {"src/a/b.py": SERVES, "pyproject.toml": '[project.scripts]\nx = "a.b:main"\n'},
            "python -c from a.b import main; main()",
            "src",
            id="src-without-init",
        ),
        pytest.param(
            {"tools/web.py": "import own\n" + SERVES, "own/a.py": "", "README.md": "`python tools/web.py`"},
            "python tools/web.py",
            ".",
            id="own-modules-at-the-root",
        ),
        pytest.param(
            {"pyproject.toml": '[project.scripts]\nx = "a.web:main"\n', "a/web.py": STARTS},
            "python -m a.web",
            "",
            id="a-script-of-the-project",
        ),
        pytest.param(
            {
                "README.md": "```sh\nx song.wav --model big\n```",
                "a/__main__.py": "from .cli import main\nmain()\n",
                "a/cli.py": "",
                "setup.py": "setup(entry_points={'console_scripts': ['x = a.cli:main']})",
            },
            "python -m a",
            "",
            id="a-script-that-the-readme-names",
        ),
        pytest.param(
            {"README.md": "```\n$ python app.py --share\n```", "app.py": SERVES, "other.py": SERVES},
            "python app.py",
            "",
            id="nothing-that-lets-others-in",
        ),
        pytest.param(
            {"README.md": "Run `python ui.py --api --port 7000 --model path/to/model`.", "ui.py": SERVES},
            "python ui.py --api --port 7000",
            "",
            id="flags-of-the-readme",
        ),
        pytest.param(
            {
                "README.md": "```\ncd server\nVAR=1 python3 main.py \\\n  --listen 0.0.0.0\n```",
                "server/main.py": SERVES,
                "web/main.py": SERVES,
            },
            "python server/main.py",
            "",
            id="in-the-folder-that-the-page-goes-to",
        ),
        pytest.param(
            {
                "Dockerfile": 'FROM x\nCMD ["streamlit", "run", "ui/page.py"]\n',
                "ui/page.py": "import streamlit\n",
                "main.py": STARTS,
            },
            "streamlit run ui/page.py",
            "",
            id="a-container",
        ),
        pytest.param(
            {
                "apps/say-it/Dockerfile": (
                    'FROM x\nWORKDIR /app\nCMD ["uvicorn", "src.main:app", "--port", "80"]\n# end\n'
                ),
                "apps/say-it/src/main.py": "from .web import app\n" + STARTS,
                "apps/say-it/src/web.py": "",
            },
            "uvicorn src.main:app --port 80",
            "apps/say-it",
            id="a-container-below-the-root",
        ),
        pytest.param(
            {
                "Dockerfile": "FROM x\nCOPY . /srv\nWORKDIR /srv/server\nCMD python main.py\n",
                "server/main.py": SERVES,
                "main.py": SERVES,
            },
            "python server/main.py",
            "",
            id="a-container-that-goes-to-a-folder",
        ),
        pytest.param(
            {
                "Dockerfile": "FROM x\nWORKDIR /srv\nCOPY --chown=u server/ .\nCMD python main.py\n",
                "server/main.py": SERVES,
                "main.py": SERVES,
            },
            "python server/main.py",
            "",
            id="a-container-of-one-folder",
        ),
        pytest.param(
            {
                "docker/Dockerfile": "FROM x\nWORKDIR $AT\nADD . .\nWORKDIR server\nCMD python main.py\n",
                "server/main.py": SERVES,
                "main.py": SERVES,
            },
            "python server/main.py",
            "",
            id="a-container-of-the-root-that-goes-to-a-folder",
        ),
        pytest.param(
            {
                "Dockerfile": "FROM x\nWORKDIR /srv\nCOPY . .\nCOPY server/main.py .\nCMD python main.py\n",
                "server/main.py": SERVES,
                "main.py": SERVES,
            },
            "python main.py",
            "",
            id="a-container-that-copies-a-file-first",
        ),
        pytest.param(
            {"docker/Dockerfile": "FROM x\nCMD uvicorn src.main:app\n", "src/main.py": ""},
            "uvicorn src.main:app",
            "",
            id="a-container-of-the-root",
        ),
        pytest.param(
            {"apps/say-it/src/main.py": "from .web import app\n" + STARTS, "apps/say-it/src/web.py": SERVES},
            "python -m src.main",
            "apps/say-it",
            id="a-file-that-imports-from-its-package",
        ),
        pytest.param(
            {"a/__init__.py": "", "a/b/__init__.py": "", "a/c.py": "", "a/b/main.py": "from .. import c\n" + SERVES},
            "python -m a.b.main",
            "",
            id="a-file-that-imports-from-the-package-above",
        ),
        pytest.param(
            {"go.bat": "@echo off\r\nruntime\\python.exe -I tool.py zh_CN\r\npause\r\n", "tool.py": STARTS},
            "python tool.py",
            "",
            id="a-batch-file",
        ),
        pytest.param(
            {"README.md": "---\nsdk: gradio\napp_file: page.py\n---\n", "page.py": SERVES},
            "python page.py",
            "",
            id="a-space",
        ),
        pytest.param(
            {
                "docker-compose.yml": 'services:\n  a:\n    command: ["uvicorn", "api.main:app", "--port", "80"]\n',
                "api/main.py": "",
            },
            "uvicorn api.main:app --port 80",
            "",
            id="compose",
        ),
        pytest.param(
            {"Dockerfile": 'FROM x\nCMD ["uvicorn", "--factory", "a.main:make"]\n', "src/a/main.py": ""},
            "uvicorn a.main:make --factory",
            "src",
            id="a-server-whose-option-comes-first",
        ),
        pytest.param(
            {"README.md": "```\npython examples/own/voice.py\n```", "examples/own/voice.py": STARTS, "app.py": STARTS},
            "python examples/own/voice.py",
            "",
            id="one-below-examples-that-the-page-names",
        ),
        pytest.param(
            {"docs/use.md": "`python -m page`", "a/__init__.py": "", "a/page.py": SERVES},
            "python -m page",
            "a",
            id="a-module-in-the-folder-of-a-package",
        ),
        pytest.param(
            {
                "setup.py": "setup(entry_points={'console_scripts': ['x=a:main']})",
                "a/__init__.py": "",
                "a/__main__.py": "from a import main\nmain()\n",
            },
            "python -m a",
            "",
            id="a-script-that-a-package-has",
        ),
        pytest.param(
            {
                "go.sh": "# python old.py\nuv run --no-sync --extra cpu python new.py\n",
                "old.py": SERVES,
                "new.py": STARTS,
            },
            "python new.py",
            "",
            id="options-of-uv-and-no-comment",
        ),
    ],
)
def test_likeliest_command_starts_the_app(texts: dict[str, str], command: str, path: str) -> None:
    found = started(texts)[0]

    assert (" ".join(found.command), found.environment.get("PYTHONPATH", "")) == (command, path)


RESAMPLES = "## Preprocessing\n### 1. Resample\n```\n# all of it\npython resample.py\n```\n"


@pytest.mark.parametrize(
    ("texts", "commands"),
    [
        pytest.param(
            {"README.md": f"# Voice\n{RESAMPLES}## Inference\n`python speak.py -m x`\n"},
            ["python speak.py", "python webui.py"],
            id="below-a-heading-of-preprocessing",
        ),
        pytest.param({"README.md": f"# Train a voice\n{RESAMPLES}"}, ["python webui.py"], id="nothing-else-there"),
        pytest.param(
            {"README.md": "# Voice\n<h2>Training</h2>\n### Inference\n`python speak.py`"},
            ["python speak.py", "python webui.py"],
            id="used-below-training",
        ),
        pytest.param(
            {"README.md": "# Train a voice\n## Start\n`python speak.py`"},
            ["python speak.py", "python webui.py"],
            id="title-of-the-page",
        ),
        pytest.param(
            {"README_zh_CN.md": "# 语音\n## 数据预处理\n`python resample.py`"}, ["python webui.py"], id="chinese"
        ),
        pytest.param({"training/README.md": "`python resample.py`"}, ["python webui.py"], id="page-of-training"),
        pytest.param(
            {"more/README.md": "`python speak.py`"}, ["python webui.py", "python speak.py"], id="page-of-a-folder"
        ),
        pytest.param(
            {"README.md": "`python speak.py --fast 1 song.wav`"},
            ["python webui.py", "python speak.py"],
            id="with-a-file-of-somebody",
        ),
        pytest.param(
            {"README.md": "`python speak.py --text 'a b' --out x.wav`\n`python speak.py [--more] $ARGS`"},
            ["python speak.py", "python webui.py"],
            id="with-options-alone",
        ),
    ],
)
def test_what_makes_a_model_or_lacks_its_words_comes_after_what_serves(
    texts: dict[str, str], commands: list[str]
) -> None:
    code = {"webui.py": SERVES, "speak.py": STARTS, "resample.py": STARTS}
    assert [" ".join(one.command) for one in started({**texts, **code})] == commands


def test_words_that_a_person_has_to_give_are_told() -> None:
    (found,) = started({"README.md": "`python go.py song.wav`", "go.py": STARTS})
    assert found.why == "README.md:1 says so; its documents also give it song.wav, which you have to give"


def test_training_that_only_a_page_tells_of_is_no_start() -> None:
    found = launch.launching(started({"training/README.md": "`python make.py ./new --size 2`", "make.py": STARTS}))
    assert found.command == ("python",)
    assert found.why.endswith("TODO: name the command")


@pytest.mark.parametrize("said", ["uvicorn", "flask", "gradio", "python -m uvicorn", "uvicorn .", "uvicorn :app"])
def test_server_without_a_module_is_no_start(said: str) -> None:
    (found,) = started({"README.md": f"Run `{said}`.", "app.py": SERVES})
    assert found.command == ("python", "app.py")


def test_what_a_document_says_comes_before_a_guess() -> None:
    texts = {"Dockerfile": 'FROM x\nCMD ["python", "go.py"]\n', "go.py": STARTS, "server.py": SERVES}
    assert [" ".join(one.command) for one in started(texts)] == ["python go.py", "python server.py"]


DEFINES = "import logging, http.server\nlogging.warning('no GPU')\napp = object()\napp.add_middleware(1)\n"
DEFINES += "class Server:\n    def run(self):\n        http.server.HTTPServer(1).serve_forever()\n"


@pytest.mark.parametrize(
    ("end", "is_program"),
    [("", False), ("if True:\n    Server().run()\n", True), ("def go():\n    pass\ngo()\n", True)],
    ids=["only defines", "calls a method", "calls its function"],
)
def test_file_that_does_nothing_when_it_is_run_is_no_program(end: str, is_program: bool) -> None:
    assert bool(started({"pkg/__init__.py": "", "pkg/server.py": DEFINES + end})) == is_program


MAKES = """import argparse
def main():
    argparse.ArgumentParser().add_argument("--out", required=True)
if __name__ == "__main__":
    main()
"""
REQUIRES = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-u", "--uri", required=True)
parser.add_argument("--data-dir", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--beam")
if __name__ == "__main__":
    parser.parse_args()
"""


def test_arguments_that_a_program_requires_are_kept_for_this_machine_alone() -> None:
    script = "python -m own \\\n  --uri 'tcp://0.0.0.0:90' --data-dir '/data' --beam=2 --model $MODEL \"$@\"\n"
    (found,) = started({"go.sh": script, "own/__init__.py": "", "own/__main__.py": REQUIRES})

    assert found.command == ("python", "-m", "own", "--uri", "tcp://127.0.0.1:90", "--data-dir", "data")
    assert found.why == (
        "go.sh:1 says so; --uri is tcp://127.0.0.1:90 instead of tcp://0.0.0.0:90; --data-dir is data instead of /data; "
        "it requires --model (own/__main__.py:5), which you have to give"
    )


def test_package_that_imports_its_modules_before_its_program_requires_the_same() -> None:
    texts = {"own/__init__.py": "from .net import A\n", "own/net.py": "A = 1\n", "own/__main__.py": MAKES}
    (found,) = started(texts)

    assert "it requires --out (own/__main__.py:3), which you have to give" in found.why


OPTIONS = "import argparse\ndef options():\n    argparse.ArgumentParser().add_argument('--opt', required=True)\n"
TRAINS = "def work():\n    options()\nif __name__ == '__main__':\n    work()\n"


@pytest.mark.parametrize(
    ("program", "is_required"),
    [
        ("from net import *\n" + STARTS, False),
        ("from net.train import work\n" + STARTS + "    work()\n", True),
        ("from net import train\n" + STARTS + "    train.options()\n", True),
    ],
    ids=["only-imported", "called-through-another", "by-its-module"],
)
def test_program_requires_nothing_that_a_function_asks_for_which_it_does_not_call(
    program: str, is_required: bool
) -> None:
    texts = {"net/__init__.py": "from .train import *\n", "net/train.py": OPTIONS + TRAINS}
    found = started({"README.md": "`python go.py`", "go.py": program, **texts})[0]

    assert found.command == ("python", "go.py")
    assert ("it requires --opt (net/train.py:3)" in found.why) is is_required


GROUP = "import click\nfrom a.tasks import make\nfrom a.web import run\n@click.group()\ndef cli():\n    pass\n"
GROUP += 'cli.add_command(make)\nif __name__ == "__main__":\n    cli()\n'
TASKS = 'import click\n@click.command()\n@click.option("-m", "--model", required=True)\ndef make(model):\n    pass\n'
WEB = 'import click\n@click.command(name="serve")\n@click.option("--folder", required=True)\n'
WEB += "def run(folder):\n    app.run()\n"


GIVEN = """
@click.command()
@click.option("--text", default="text/short.txt")
@click.option("--out", default="x.wav")
@click.option("--seed", default=1)
@click.option("--device", default="auto")
def main(text, out, seed, device): ...
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("lines", "arguments", "why"),
    [
        (
            ["--text 'Hello you' --out x.wav --device cuda", "--text more/long.txt --out x.wav --device 0 --seed 3"],
            ["--text", "Hello you"],
            "; every line of its documents gives it --text",
        ),
        (
            ["--text a/b.txt --out x.wav", "--text a/c.txt --out x.wav"],
            [],
            "; every line of its documents gives it --text, which you have to give",
        ),
        (["--text Hello --out x.wav", "--out x.wav"], [], ""),
        (["--text Hello --out x.wav"], [], ""),
    ],
)
def test_what_every_line_gives_a_program_to_work_on_is_kept(lines: list[str], arguments: list[str], why: str) -> None:
    readme = "\n".join(f"    python go.py {line}" for line in lines)
    files = tree({"go.py": GIVEN, "README.md": f"# Run\n\n{readme}\n"})

    (command,) = launch_commands.candidates(files, Trees({path: files[path] for path in files if path.suffix == ".py"}))

    assert list(command.command) == ["python", "go.py", *arguments]
    assert command.why.partition(" says so")[2] == why


def test_quoted_text_does_not_end_a_command() -> None:
    block = 'time python go.py \\\n  --out x.wav \\\n  --text "Time flies; it\'s late & # over" && ls\n'
    files = tree({"go.py": GIVEN, "README.md": f'```sh\n{block}```\n`python go.py --text "Hello" --out y.wav`\n'})
    (command,) = launch_commands.candidates(files, Trees({PurePosixPath("go.py"): files[PurePosixPath("go.py")]}))

    assert command.command == ("python", "go.py", "--text", "Time flies; it's late & # over")
    assert command.why == "README.md:2 says so; every line of its documents gives it --text"


@pytest.mark.parametrize(
    ("readme", "command", "why"),
    [
        (
            "`x init`\n`x make --model {yours}`\n",
            "python -m a.cli make",
            "README.md:2 says so; it requires --model (a/tasks.py:3), which you have to give",
        ),
        (
            "`x init`\nThis makes an `x` environment.\n",
            "python -m a.cli",
            'the project names it as the script "x"; it has subcommands, one of which may have to be given: make, serve',
        ),
        (
            "`x make --model a`\n`x serve`\n",
            "python -m a.cli serve",
            "README.md:2 says so; it requires --folder (a/web.py:3), which you have to give",
        ),
    ],
    ids=["a-subcommand", "one-that-only-prepares-and-a-name", "one-that-serves"],
)
def test_subcommand_is_kept_with_its_own_options_alone(readme: str, command: str, why: str) -> None:
    texts = {
        "README.md": readme,
        "pyproject.toml": '[project.scripts]\nx = "a.cli:cli"\n',
        "a/__init__.py": "",
        "a/cli.py": GROUP,
        "a/tasks.py": TASKS,
        "a/web.py": WEB,
    }
    found = started(texts)[0]

    assert (" ".join(found.command), found.why) == (command, why)


@pytest.mark.parametrize(
    ("texts", "command"),
    [
        ({"README.md": "`python ui.py --api`"}, "python ui.py --api"),
        ({"README.md": "`python ui.py --api`", "start-webui.sh": "$PYTHON_COMMAND ui.py -w\n"}, "python ui.py -w"),
        (
            {"README.md": "`python ui.py -b`", "Dockerfile": "FROM x\nCMD python ui.py --webui\n"},
            "python ui.py --webui",
        ),
        ({"README.md": "`python ui.py --api`\n`python ui.py`"}, "python ui.py"),
        ({"README.md": "`python ui.py song.wav --fast`"}, "python ui.py"),
        ({"README.md": "`python ui.py --device cuda --api --gpu-id=0`", "ui.py": SERVES}, "python ui.py --api"),
    ],
    ids=["kept", "a-script-for-the-page", "a-container", "none-before-others", "an-example", "a-card"],
)
def test_options_choose_what_a_program_does(texts: dict[str, str], command: str) -> None:
    assert " ".join(started({"ui.py": STARTS, **texts})[0].command) == command


def test_program_of_the_root_comes_before_one_among_scripts() -> None:
    texts = {"README.md": "`python scripts/crop.py -i x`\n`python go.py`", "scripts/crop.py": STARTS, "go.py": STARTS}
    assert [" ".join(one.command) for one in started(texts)] == ["python go.py", "python scripts/crop.py"]


def test_commands_of_the_readme_and_scripts_of_the_project_come_before_those_of_other_documents() -> None:
    texts = {
        "README.md": "`python b.py`",
        "Dockerfile": "FROM x\nCMD python deploy.py\n",
        "pyproject.toml": '[tool.poetry.scripts]\nx = "a.cli:main"\n',
        "deploy.py": SERVES,
        "b.py": STARTS,
        "a/cli.py": STARTS,
    }

    commands = [" ".join(one.command) for one in started(texts)]
    assert commands[:3] == ["python b.py", "python -m a.cli", "python deploy.py"]


PARSER = "import argparse\ncommands = argparse.ArgumentParser().add_subparsers()\n"
PARSER += "commands.add_parser('list')\ncommands.add_parser('go')\n" + STARTS
TYPER = "import typer\napp = typer.Typer()\n@app.command()\ndef list_all():\n    pass\n"
TYPER += "@app.command(help='x')\ndef go():\n    pass\n" + STARTS


@pytest.mark.parametrize("code", [PARSER, TYPER], ids=["argparse", "typer"])
@pytest.mark.parametrize(
    ("says", "command"), [("`python main.py go --fast`", "python main.py go"), ("", "python main.py")]
)
def test_subcommand_is_taken_from_a_document_or_asked_for(code: str, says: str, command: str) -> None:
    found = started({"README.md": says, "main.py": code})[0]

    assert " ".join(found.command) == command
    assert ("it has subcommands, one of which may have to be given: list" in found.why) == (not says)


def test_subcommands_of_a_module_that_is_only_imported_are_none_of_the_program() -> None:
    core = f"import argparse\nimport app\ndef main():\n{textwrap.indent(PARSER, '    ')}\nif __name__ == '__main__':\n    main()\n"
    found = started({"app.py": f"import core\n{SERVES}", "core.py": core})

    whys = {" ".join(one.command): one.why for one in found}
    assert "subcommands" not in whys["python app.py"]


def test_variables_of_start_scripts_are_taken_where_the_scripts_agree() -> None:
    script = "ROOT=$(pwd)\nexport CARD={}\nexport PYTHONPATH=$ROOT:$ROOT/api\nexport WEB=${{ROOT}}/web\nLOCAL=1\n"
    script += 'export NAME="a b"\nexport DATA=/usr/share/x\nexport LATER=~/x\nuvicorn api.main:app\nexport LATE=1\n'
    texts = {f"start-{card}.sh": script.format(card) for card in ("cpu", "gpu")}

    (found,) = started({**texts, "api/main.py": "import own\n", "api/own.py": ""})

    assert found.environment == {"PYTHONPATH": ".:api", "WEB": "web", "NAME": "a b"}
    assert found.why == ("start-cpu.sh:9 says so; its start scripts do not agree on CARD: set what your machine needs")


README = """`python go.py` speaks.
```bash
pip install -r requirements.txt
# Disable lazy compilation
export NO_COMPILE=1 MODE="a b"
export HF_TOKEN=hf_ab  # your own
export HF_ENDPOINT=https://hub.test
export PATH=~/bin:$PATH USER=me
```
```bash
sudo docker exec -it voice bash
export CARD=0
```
```powershell
$env:LEVEL = "3"
```
```bat
set FAST=yes
```
```bash
export RUNS=2 && python tools/fit.py
```
```bash
export CMAKE_ARGS=-DX=on
pip install more
```
```bash
HSA_OVERRIDE_GFX_VERSION=10.3.0 SPEED=2 python go.py
```
### Once more
```bash
SPEED=3 python go.py
```
"""


def test_variables_that_the_readme_sets_before_a_start_are_taken_or_told() -> None:
    found = started({"README.md": README, "go.py": STARTS, "tools/fit.py": STARTS})[0]

    assert found.command == ("python", "go.py")
    assert found.environment == {"NO_COMPILE": "1", "MODE": "a b", "LEVEL": "3", "FAST": "yes"}
    assert found.why.split("; ") == [
        "README.md:1 says so",
        "README.md:5 sets NO_COMPILE=1",
        "README.md:5 sets MODE=a b",
        "README.md:6 sets HF_TOKEN, which not every machine needs: set what yours does",
        "README.md:7 sets HF_ENDPOINT, which not every machine needs: set what yours does",
        "README.md:15 sets LEVEL=3",
        "README.md:18 sets FAST=yes",
        "README.md:28 sets HSA_OVERRIDE_GFX_VERSION, which not every machine needs: set what yours does",
        "README.md:28 sets SPEED, which not every machine needs: set what yours does",
        "README.md:32 sets SPEED, which not every machine needs: set what yours does",
    ]


@pytest.mark.parametrize("said", ["", "`python train_first.py`"], ids=["a-name", "a-document"])
def test_training_is_no_start(said: str) -> None:
    assert started({"README.md": said, "train.py": STARTS, "train_first.py": STARTS, "tests/app.py": SERVES}) == []


def test_start_of_a_container_is_told_with_its_line() -> None:
    (found,) = started({"a/Dockerfile": 'FROM x\nCMD ["uvicorn", "b:app"]\nEXPOSE 80\n', "a/b.py": ""})
    assert found.why == "a/Dockerfile:2 says so"


def test_command_is_told_with_its_place() -> None:
    found = launch.launching(started({"README.md": "# X\n\n    python web.py\n", "web.py": SERVES, "app.py": STARTS}))

    assert found.why == "README.md:3 says so"
    assert found.others == ("python app.py (its name is that of a program)",)


@pytest.mark.parametrize("said", ["```yaml\n- pip:\n  - a\n```", "```\n- a>=0.3.1\n```"], ids=["yaml", "bound"])
def test_requirement_in_a_page_is_no_start(said: str) -> None:
    project = '[project.scripts]\na = "a.__main__:main"\n'
    (found,) = started({"README.md": said, "pyproject.toml": project, "a/__main__.py": STARTS})

    assert found.why == 'the project names it as the script "a"'


@pytest.mark.parametrize(
    ("project", "wanted"),
    [
        pytest.param(
            '[project]\nname = "a"\ndependencies = ["b"]\n[project.optional-dependencies]\ncpu = ["onnxruntime>=1.17"]\n'
            'gpu = ["onnxruntime-gpu"]\nrocm = ["onnxruntime-rocm"]\ndml = ["onnxruntime-directml", "torch_directml"]\ndev = ["onnxruntime-gpu"]\n',
            {
                "onnxruntime>=1.17": ("cpu", "rocm-linux"),
                "onnxruntime-gpu==1.23.2": ("cuda-linux",),
                "onnxruntime-directml": ("directml-vega",),
            },
            id="by-hardware",
        ),
        pytest.param(
            '[tool.poetry]\nname = "a"\n[tool.poetry.dependencies]\nonnxruntime = {version = "*", optional = true}\n'
            'onnxruntime-gpu = {version = ">=1.20", optional = true, markers = "sys_platform != \'darwin\'"}\n'
            'onnxruntime-rocm = {version = "*", optional = true, markers = "sys_platform == \'win32\'"}\n[tool.poetry.extras]\nonnx = ["onnxruntime"]\n'
            'onnx-cuda = ["onnxruntime-gpu"]\nonnx-rocm = ["onnxruntime-rocm"]\ncuda = ["onnxruntime-gpu"]\n',
            {
                "onnxruntime": ("cpu", "rocm-linux", "directml-vega"),
                "onnxruntime-gpu==1.23.2": ("cuda-linux",),
            },
            id="of-one-kind-with-markers",
        ),
        pytest.param(
            '[project]\nname = "a"\n[project.optional-dependencies]\nweb = ["onnxruntime"]\ncuda = ["cupy"]\n',
            ("web",),
            id="not-named-by-hardware",
        ),
    ],
)
def test_extra_is_chosen_by_profile_where_its_name_says_for_which(
    project: str, wanted: dict[str, tuple[str, ...]] | tuple[str, ...]
) -> None:
    path = PurePosixPath("pyproject.toml")
    proposal: Any = Drafted(together=(path,))
    clone: Any = SimpleNamespace(files={path: project.encode()}, submodules=())
    missing = ReachedImport(module="onnxruntime", path=PurePosixPath("a.py"), line=1)
    catalogue = Catalogue(root=ROOT)
    sets = {name: catalogue.shared(name) for name in (onnx_builds.SET, "device-helper")}
    look = _start_cures.Looked(
        on_index=lambda _: False,
        has_wheel=lambda one, profile: one.name != "onnxruntime-rocm" or profile.name != "rocm-linux",
        profiles=PROFILES,
        sets=sets,
    )

    cure = _start_cures.cure(proposal, missing, clone, look)

    assert cure is not None
    added = [one.written.patch for one in cure.proposal.sections]
    asked = {str(one.op.requirement): one.profiles for one in added if isinstance(one.op, AddRequirement)}
    assert (asked or cure.proposal.extras) == wanted
    assert not cure.proposal.remarks


@dataclasses.dataclass(frozen=True)
class Drafted:
    """What a cure reads of a proposal."""

    together: tuple[PurePosixPath, ...]
    sections: tuple[Any, ...] = ()
    sets: tuple[SetChoice, ...] = (SetChoice(name="device-helper", why="it brings torch-directml"),)
    extras: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def link(self, path: PurePosixPath, line: int) -> str:
        """Name a place."""
        return f"{path}#{line}"
