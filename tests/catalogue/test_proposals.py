"""What is read from a clone, and proposed for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from patchlock.catalogue.proposals import (
    imports,
    launch,
    module_repairs,
    project_facts,
    requirement_choice,
    requirement_repairs,
    system_needs,
)
from patchlock.catalogue.proposals.requirement_repairs import Repairs
from patchlock.model.errors import RequirementsError

STARTS = 'if __name__ == "__main__":\n    main()\n'
SERVES = "import gradio\ngradio.Blocks().launch()\n"


def tree(texts: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    """Make the files of a clone."""
    return {PurePosixPath(path): text.encode() for path, text in texts.items()}


# --- which requirement file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        pytest.param(["setup.py", "requirements.txt"], "requirements.txt", id="pip-before-setup"),
        pytest.param(["requirements-dev.txt", "pyproject.toml"], "pyproject.toml", id="project-before-other-purposes"),
        pytest.param(["docs/requirements.txt", "environment.yml"], "environment.yml", id="conda-before-docs"),
        pytest.param(["requirements_cuda.txt", "reqs.txt"], "reqs.txt", id="other-machines-last"),
        pytest.param(["server/requirements.txt", "requirements_gpu.txt"], "server/requirements.txt", id="nested"),
        pytest.param(["training/requirements.txt", "requirements_web.txt"], "requirements_web.txt", id="another-name"),
    ],
)
def test_likeliest_requirement_file_goes_first(names: list[str], wanted: str) -> None:
    texts = {
        "setup.py": 'setup(install_requires=["a"])',
        "pyproject.toml": '[project]\ndependencies = ["a"]\n',
        "environment.yml": "dependencies:\n  - pip:\n    - a\n",
    }

    found = requirement_choice.candidates(tree({name: texts.get(name, "a\n") for name in names}))

    assert [str(found[0].path), len(found)] == [wanted, len(names)]


def test_file_of_the_wanted_machine_is_taken() -> None:
    ranked = requirement_choice.candidates(tree({"requirements.txt": "a\n", "requirements_cpu.txt": "b\n"}))

    assert [str(one.path) for one in requirement_choice.fitting_machine(ranked, "cpu")] == [
        "requirements_cpu.txt",
        "requirements.txt",
    ]
    assert requirement_choice.fitting_machine(ranked, "rocm") == ranked


def test_computed_list_of_setup_py_is_no_candidate() -> None:
    with pytest.raises(RequirementsError, match="no file of that commit says what the app requires"):
        requirement_choice.candidates(tree({"setup.py": "setup(install_requires=read())\n"}))


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param({"LICENSE": "Apache License\n   Version 2.0, January"}, "Apache-2.0", id="apache"),
        pytest.param({"LICENSE.txt": "GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3"}, "AGPL-3.0", id="agpl"),
        pytest.param({"COPYING": "GNU GENERAL PUBLIC LICENSE\n Version 3"}, "GPL-3.0", id="gpl"),
        pytest.param({"pyproject.toml": '[project]\nlicense = "MIT"\n'}, "MIT", id="project"),
        pytest.param({"LICENSE": "do what you want"}, "unknown", id="unknown"),
        pytest.param({}, "unknown", id="none"),
    ],
)
def test_licence_is_named_by_its_identifier(texts: dict[str, str], wanted: str) -> None:
    assert project_facts.licence(tree(texts))[0] == wanted


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param({"pyproject.toml": '[project]\nrequires-python = ">=3.10,<3.12"\n'}, ">=3.10,<3.12", id="pep-621"),
        pytest.param({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.9"\n'}, ">=3.9,<4", id="poetry"),
        pytest.param({"setup.py": 'setup(python_requires=">=3.6")\n'}, ">=3.6", id="setup-py"),
        pytest.param({"setup.cfg": "[options]\npython_requires = >=3.7\n"}, ">=3.7", id="setup-cfg"),
        pytest.param({"pyproject.toml": '[project]\nrequires-python = "three"\n'}, ">=3.8", id="no-specifier"),
        pytest.param({"pyproject.toml": "[project\n"}, ">=3.8", id="no-toml"),
    ],
)
def test_python_that_upstream_allows_is_read(texts: dict[str, str], wanted: str) -> None:
    assert project_facts.python(tree(texts))[0] == wanted


def test_readme_is_quoted_where_nothing_bounds_python() -> None:
    assert project_facts.python(tree({"README.md": "# X\nconda create -n x python=3.10\n"}))[1] == (
        "nothing bounds it; README.md:2 speaks of Python 3.10"
    )


@pytest.mark.parametrize(
    ("texts", "command", "path"),
    [
        pytest.param({"webui.py": SERVES, "cli.py": STARTS}, "python webui.py", "", id="a-server-first"),
        pytest.param({"app/main.py": STARTS, "infer.py": STARTS}, "python infer.py", "", id="the-root-first"),
        pytest.param(
            {"src/a/__init__.py": "", "src/a/__main__.py": STARTS}, "python -m a", "src", id="a-package-below-src"
        ),
        pytest.param({"a/__init__.py": "", "a/__main__.py": ""}, "python -m a", ".", id="a-package"),
        pytest.param(
            {"pyproject.toml": '[project.scripts]\nx = "a.web:main"\n', "a/cli.py": STARTS},
            "python -m a.web",
            "",
            id="a-script-of-the-project",
        ),
        pytest.param({"train.py": STARTS, "tests/app.py": SERVES}, "python", "", id="neither-training-nor-tests"),
    ],
)
def test_likeliest_command_starts_the_app(texts: dict[str, str], command: str, path: str) -> None:
    found = launch.launching(tree(texts))

    assert (" ".join(found.command), found.environment.get("PYTHONPATH", "")) == (command, path)


def test_needs_of_the_machine_are_named_with_their_place() -> None:
    files = tree(
        {
            "a.py": "x = 1\nimport pydub\n",
            "README.md": "# X\nsudo apt install sox\nespeak\n",
            "b/README.md": "portaudio",
        }
    )

    found = system_needs.read(files, imports.read(files), ["espeak-ng", "ffmpeg", "portaudio", "sox"])

    assert {one.name: str(one.found) for one in found} == {
        "espeak-ng": "README.md:3: espeak",
        "ffmpeg": "a.py:2: import pydub",
        "sox": "README.md:2: sudo apt install sox",
    }


# --- lines of requirement files ---------------------------------------------------------------------------------------


def repaired(text: str, path: str = "requirements.txt", on_index: tuple[str, ...] = ()) -> Repairs:
    """Look at one requirement file."""
    files = tree({path: text})
    return requirement_repairs.repair(
        files, [PurePosixPath(path)], lambda name: name in on_index, lambda path, line: f"{path}#{line}", ()
    )


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        pytest.param("--index-url https://e.org", "no-other-index-1 replace-text", id="index"),
        pytest.param("--only-binary=:all:", "no-other-index-1 replace-text", id="builds"),
        pytest.param("-e .", "no-editable-1 replace-text", id="editable"),
        pytest.param("./wheels/a.whl", "no-editable-1 replace-text", id="folder"),
        pytest.param("torch==2.1.0+cu118", "torch-of-the-index set-requirement", id="local-version"),
        pytest.param("argparse", "no-argparse drop-requirement", id="standard-library"),
        pytest.param("xformers==0.0.2", "no-xformers drop-requirement", id="only-cuda"),
        pytest.param("faiss-gpu", "faiss-cpu-for-faiss-gpu rename-requirement", id="the-same-without-cuda"),
        pytest.param("a @ git+https://e.org/a", "a-of-the-index set-requirement", id="repository"),
        pytest.param("b @ git+https://e.org/b", "no-b drop-requirement", id="repository-not-on-the-index"),
        pytest.param("git+https://e.org/x/a.git@main", "no-vcs-requirement-1 replace-text", id="nameless-repository"),
        pytest.param("a ==", "no-unreadable-1 replace-text", id="unreadable"),
        pytest.param("torch==2.7.0", "", id="torch"),
        pytest.param("-r other.txt", "", id="include"),
        pytest.param("a>=1", "", id="good"),
    ],
)
def test_line_that_no_lock_can_be_made_from_gets_a_patch(line: str, wanted: str) -> None:
    patches = [one.written.patch for one in repaired(f"{line}\nkept\n", on_index=("a",)).sections]

    assert " ".join(f"{patch.id} {patch.op_name}" for patch in patches) == wanted
    assert all(patch.source == "requirements.txt#1" for patch in patches)


def test_torch_pins_are_told_and_left() -> None:
    found = repaired("torch==2.7.0\ntorchaudio>=2\n")

    assert [(one.name, len(one.found)) for one in found.issues] == [("torch-pin", 1)]


def test_place_without_a_name_in_a_project_file_is_for_a_person() -> None:
    found = repaired('[project]\ndependencies = ["a ==", "b"]\n', "pyproject.toml")

    assert found.sections == ()
    assert found.remarks[0].startswith("pyproject.toml:2: ")


def test_imports_of_what_is_left_out_become_optional() -> None:
    files = tree({"a.py": "import xformers.ops\n", "b.py": "import torch\n"})

    (section,) = module_repairs.repair(
        {"xformers": "it is for CUDA"}, imports.read(files), lambda path, line: f"{path}#{line}"
    )

    patch = section.written.patch
    assert (patch.id, patch.paths, patch.profiles, patch.source) == ("xformers-optional", ("a.py",), ("cpu",), "a.py#1")
    assert dataclasses.asdict(patch.op)["message"] == "it is for CUDA"  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("readme", "wanted"),
    [
        pytest.param("## Introduction\n# OpenVoice\n", "OpenVoice", id="part-first"),
        pytest.param("<b>x</b>\n## 📖 Overview\n## Installation:\n", "owned", id="parts-alone"),
        pytest.param("# Introduction to Tones\n", "Introduction to Tones", id="a-name-that-begins-so"),
    ],
)
def test_title_is_a_heading_that_names_the_project(readme: str, wanted: str) -> None:
    assert project_facts.title(tree({"README.md": readme}), "owned") == wanted
