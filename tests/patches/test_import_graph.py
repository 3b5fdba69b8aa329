"""What a program imports as soon as it starts."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.patches import import_graph


def modules(files: dict[str, str], *command: str, python_path: str = "") -> list[str]:
    """Name what others have to bring, and where it is imported."""
    sources = {PurePosixPath(path): text.encode() for path, text in files.items()}
    found = import_graph.reached(sources, command, python_path)
    return [f"{one.module} {one.path}:{one.line}" for one in found.modules]


def test_own_files_are_followed_and_others_are_named_where_they_are_met_first() -> None:
    files = {
        "app.py": "import torch\nfrom inner import page, numpy_too\nimport inner.late\n",
        "inner/__init__.py": "from . import base\n",
        "inner/base.py": "import yaml.nodes\n",
        "inner/page.py": "from .base import x\nfrom ..app import y\nimport torch\n",
        "inner/late.py": "import gradio as gr\n",
        "other.py": "import never\n",
    }
    assert modules(files, "python", "app.py") == [
        "torch app.py:1",
        "yaml.nodes inner/base.py:1",
        "gradio inner/late.py:1",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import late\n",
        "try:\n    import late\nexcept ImportError:\n    late = None\n",
        "try:\n    import late\nexcept (OSError, Exception):\n    late = None\n",
        "try:\n    import late\nexcept:\n    pass\n",
        "import sys\nif sys.platform == 'win32':\n    import late\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import late\n",
        "class A:\n    def f(self):\n        import late\n",
        "import os\ndef f():\n    if os.name == 'nt':\n        return 1\n    import late\nf()\n",
        "def f():\n    try:\n        return 1\n    except OSError:\n        pass\n    import late\nf()\n",
        "def f():\n    return 1\n    import late\nf()\n",
        "def f():\n    import late\nx = False and f()\ny = 1 if True else f()\nz = lambda: f()\n",
        "def f():\n    import late\nif x:\n    f()\n",
        "def f():\n    def g():\n        import late\nf()\n",
    ],
)
def test_what_may_never_run_is_left_out(text: str) -> None:
    assert not [one for one in modules({"app.py": text}, "python", "app.py") if one.startswith("late")]


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    import late\n",
        "import sys\nif sys.version_info < (3, 8):\n    raise RuntimeError\nimport late\n",
        "def f(x):\n    if x:\n        raise ValueError\n    import late\nf(1)\n",
        "with open('x'):\n    import late\n",
        "try:\n    import late\nexcept OSError:\n    pass\n",
        "try:\n    import late\nfinally:\n    pass\n",
        "if __name__ == '__main__':\n    import late\n",
        "def f():\n    import late\nif __name__ == '__main__':\n    f()\n",
        "def f():\n    g()\nasync def g():\n    import late\nrun(f(), x=1)\n",
        "def f():\n    import late\nx: int = f()\n",
        "def f():\n    import late\nwith open(f()):\n    pass\n",
        "def f():\n    return g()\ndef g():\n    if x:\n        y()\n    import late\nraise SystemExit(f())\n",
    ],
)
def test_what_runs_at_import_counts(text: str) -> None:
    assert [one for one in modules({"app.py": text}, "python", "app.py") if one.startswith("late")]


@pytest.mark.parametrize(
    ("command", "python_path", "path"),
    [
        (("python", "-m", "package"), "", "package/__main__.py"),
        (("python", "-m", "package.tool"), "", "package/tool.py"),
        (("python", "-m", "deep"), "src", "src/deep.py"),
        (("uvicorn", "package.tool:app", "--port", "1"), "", "package/tool.py"),
        (("python", "-m", "uvicorn", "package.tool:app"), "", "package/tool.py"),
        (("streamlit", "run", "package/tool.py"), "", "package/tool.py"),
        (("python", "-u", "src/deep.py", "--x"), "", "src/deep.py"),
    ],
)
def test_program_is_found(command: tuple[str, ...], python_path: str, path: str) -> None:
    paths = ("package/__init__.py", "package/__main__.py", "package/tool.py", "src/deep.py")
    files = {PurePosixPath(one): b"" for one in paths}
    assert import_graph.reached(files, command, python_path).files[-1] == PurePosixPath(path)


def test_package_of_a_module_is_imported_before_it() -> None:
    files = {"package/__init__.py": "import first\n", "package/tool.py": "import second\n", "package/other.py": ""}

    assert modules(files, "python", "-m", "package.tool") == [
        "first package/__init__.py:1",
        "second package/tool.py:1",
    ]


def test_command_that_is_code_is_followed() -> None:
    files = {"package/tool.py": "import late\ndef main():\n    import later\n"}

    assert modules(files, "python", "-c", "from package.tool import main; main()") == [
        "late package/tool.py:1",
        "later package/tool.py:3",
    ]


def test_program_that_is_none_of_the_apps_files() -> None:
    assert import_graph.reached({}, ("webui",)) == import_graph.Reached(files=(), modules=())


def test_module_of_the_apps_own_that_is_not_there_is_named() -> None:
    files = {"app.py": "import inner.gone\nimport folder.gone\n", "inner/__init__.py": "", "folder/x.py": ""}
    assert modules(files, "python", "app.py") == ["inner.gone app.py:1", "folder.gone app.py:2"]


def test_calls_are_followed_into_other_files() -> None:
    files = {
        "app/__main__.py": "from .cli import main as begin\nfrom .cli import never\nbegin()\n",
        "app/cli.py": "from app import pages\ndef main():\n    pages.show()\n    load()\ndef never():\n    import no\n",
        "app/pages.py": "def show():\n    import no\n",
    }
    files["app/cli.py"] += "def load():\n    main()\n    from .deep import one\n    one()\n"
    files["app/deep.py"] = "import early\ndef one():\n    import torch\n"
    assert modules(files, "python", "-m", "app") == ["early app/deep.py:1", "torch app/deep.py:3"]


@pytest.mark.parametrize(
    ("more", "is_own"),
    [
        ({}, False),
        ({"src/whisper.py": ""}, True),
        ({"parts/whisper/__init__.py": "import sys\nsys.path.append('parts')\n"}, True),
        ({"parts/tool.py": "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\n"}, True),
        ({"tool.py": "import sys, os\nsys.path.insert(0, os.path.join(here, 'parts'))\n"}, True),
        ({"tool.py": "import sys, os\nsys.path.insert(0, os.path.join(here, 'others'))\n"}, False),
    ],
    ids=["in-a-package", "src", "a-folder-by-name", "the-folder-of-a-file", "a-joined-folder", "another-folder"],
)
def test_modules_are_found_from_the_folders_on_the_path_alone(more: dict[str, str], is_own: bool) -> None:
    texts = {"app.py": "import parts.whisper.x\n", "parts/whisper/x.py": "import whisper\n", **more}
    files = {PurePosixPath(path): text.encode() for path, text in texts.items()}
    found = import_graph.ReachedImport(module="whisper", path=PurePosixPath("parts/whisper/x.py"), line=1)

    assert import_graph.of_others(files, [found], ("python", "app.py")) == (() if is_own else (found,))
