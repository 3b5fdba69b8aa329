"""What is proposed for lines from which no lock can be made, and for the lists of conda."""

from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath

import pytest
from test_proposals import PROFILES, tree

from patchlock.catalogue.proposals import (
    conda_packages,
    module_repairs,
    narrowing,
    requirement_repairs,
)
from patchlock.catalogue.proposals._line_patches import MissingModule
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.requirement_repairs import Repairs
from patchlock.model.patch import Expect
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import engine
from patchlock.patches.evaluation import Memoized
from patchlock.patches.ops.requirements.ops import SetRequirement


def repaired(
    text: str, path: str = "requirements.txt", on_index: tuple[str, ...] = (), addresses: tuple[str, ...] = ()
) -> Repairs:
    """Look at one requirement file."""
    files = tree({path: text})
    return requirement_repairs.repair(
        files,
        [PurePosixPath(path)],
        lambda name: name in on_index,
        lambda path, line: f"{path}#{line}",
        (),
        PROFILES,
        lambda _: addresses,
    )


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        pytest.param("--index-url https://e.org", "no-other-index-1 replace-text", id="index"),
        pytest.param("--only-binary=:all:", "no-pip-option-1 replace-text", id="builds"),
        pytest.param("-e .", "no-editable-1 replace-text", id="editable"),
        pytest.param("-e git+https://e.org/x/a#egg=a", "no-vcs-requirement-1 replace-text", id="editable-repository"),
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


def test_each_line_keeps_its_marker_and_its_own_version() -> None:
    text = "torch==2.1+cu118; sys_platform == 'win32'\ntorch==2.2+cu121; sys_platform != 'win32'\n"

    found = {one.written.patch.id: one.written.patch.op for one in repaired(text).sections}

    assert {name: (str(op.specifier), op.marker) for name, op in found.items() if isinstance(op, SetRequirement)} == {
        "torch-of-the-index-1": ("==2.1", 'sys_platform == "win32"'),
        "torch-of-the-index-2": ("==2.2", 'sys_platform != "win32"'),
    }


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("setup.py", "setup(install_requires=[\n  # the release has a bug\n  'clip @ {}',  # fixed there\n])", 3),
        (
            "pyproject.toml",
            '[project]\nname="x"\ndependencies=[\n# the release has a bug\n"clip @ {}", # fixed there\n]',
            5,
        ),
        ("requirements.txt", "# the release has a bug\nclip @ {}  # fixed there\n", 2),
        ("requirements.txt", "# the release has a bug\n{}  # fixed there\n", 2),
    ],
)
def test_what_upstream_says_of_a_repository_stands_in_the_draft(path: str, text: str, line: int) -> None:
    address = "git+https://github.com/openai/CLIP.git"
    found = repaired(text.format(address), path=path, on_index=("clip",))

    assert address in found.sections[0].comment
    assert found.sections[0].comment.startswith(f"{path}:{line}: ")
    assert "# the release has a bug" in found.sections[0].comment
    assert "# fixed there" in found.sections[0].comment


@pytest.mark.parametrize(
    ("revision", "more"),
    [
        ("", ""),
        ("@v1.0", ""),
        ("@6921c9139a97d0364208407191c92ec265ef6759#egg=clip", ", and the app's is of commit 6921c9139a97"),
    ],
)
def test_release_in_the_place_of_a_commit_is_told(revision: str, more: str) -> None:
    own = "https://github.com/openai/CLIP"
    found = repaired(f"clip @ git+{own}.git{revision}\n", on_index=("clip",), addresses=(own,))

    says = f"he index has a clip, which names {own} as its own{more}"
    assert found.sections[0].written.patch.why == f"t{says}"
    line = f"requirements.txt:1: clip @ git+{own}.git{revision}"
    assert found.remarks == ((f"{line}: t{says}; see that the app works with a release",) if more else ())


@pytest.mark.parametrize(
    ("addresses", "wanted", "told"),
    [
        pytest.param(
            ("https://clips.org/clip/",), "no-clip", "is another project (https://clips.org/clip/)", id="other"
        ),
        pytest.param(("https://github.com/OpenAI/CLIP.git",), "clip-of-the-index", "", id="same"),
        pytest.param(("https://github.com/openai/clip/issues",), "clip-of-the-index", "", id="below-it"),
        pytest.param(
            ("https://github.com/fork/clip",), "clip-of-the-index", "see that the app works with it", id="fork"
        ),
        pytest.param((), "clip-of-the-index", "see that it is the same", id="unknown"),
    ],
)
def test_repository_is_not_taken_from_the_index_unseen(addresses: tuple[str, ...], wanted: str, told: str) -> None:
    found = repaired("clip @ git+https://github.com/openai/CLIP.git@main\n", on_index=("clip",), addresses=addresses)

    assert [one.written.patch.id for one in found.sections] == [wanted]
    assert bool(found.remarks) is bool(told)
    assert all(told in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("line", "on_index", "wanted"),
    [
        ("clip @ git+https://github.com/openai/CLIP.git", ("clip", "clip-anytorch"), "clip-anytorch-for-clip"),
        ("git+https://github.com/openai/CLIP.git@main", ("clip", "clip-anytorch"), "no-vcs-requirement-1"),
        ("clip @ git+https://github.com/openai/CLIP.git", ("clip",), "clip-of-the-index"),
        ("clip @ git+https://github.com/other/clip.git", ("clip", "clip-anytorch"), "clip-of-the-index"),
        ("git+https://github.com/openai/whisper.git", ("whisper", "openai-whisper"), "no-vcs-requirement-1"),
    ],
)
def test_repository_is_known_on_the_index_by_another_name(line: str, on_index: tuple[str, ...], wanted: str) -> None:
    found = repaired(f"{line}\n", on_index=on_index)

    assert [one.written.patch.id for one in found.sections] == [wanted]
    (remark,) = found.remarks
    assert ("has this repository as" in remark) is (wanted != "clip-of-the-index")


def test_index_is_asked_for_the_other_name_too() -> None:
    source = decode(PurePosixPath("requirements.txt"), b"git+https://github.com/openai/CLIP.git\n")
    assert isinstance(source, SourceText)
    assert requirement_repairs.names_of_places(source) == ("clip", "clip-anytorch")


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        pytest.param("-e git+https://e.org/x/a.git@main#egg=a", "    - a\n", id="taken-from-the-index"),
        pytest.param("-e git+https://e.org/x/b.git@main#egg=b", "", id="not-on-the-index"),
        pytest.param("git+https://e.org/x/a.git", "    - a\n", id="nameless"),
        pytest.param("-e .", "", id="the-app-itself"),
    ],
)
def test_place_in_an_environment_of_conda_gets_a_patch(item: str, wanted: str) -> None:
    kept = "dependencies:\n  - pip:\n    - kept\n"
    found = repaired(f"{kept}    - {item}\n", "environment.yml", on_index=("a",))

    contents = tree({"environment.yml": f"{kept}    - {item}\n"})
    done = engine.apply([one.written.patch for one in found.sections], contents)
    assert done.changes[0].after.decode() == kept + wanted
    assert not done.failures


def test_list_of_conda_is_not_left_empty() -> None:
    found = repaired("dependencies:\n  - numpy\n  - pip:\n    - -e .\n", "environment.yml")

    assert found.sections == ()
    assert found.remarks == ("environment.yml:4: .: edit this line by hand",)


def test_torch_pins_are_told_and_left() -> None:
    found = repaired("torch==2.7.0\ntorchaudio>=2\n")

    assert [(one.name, len(one.found)) for one in found.issues] == [("torch-pin", 1)]


def test_place_without_a_name_in_a_project_file_is_for_a_person() -> None:
    found = repaired('[project]\ndependencies = ["a ==", "b"]\n', "pyproject.toml")

    assert found.sections == ()
    assert found.remarks[0].startswith("pyproject.toml:2: ")


def test_imports_of_what_is_left_out_become_optional() -> None:
    later = "def run():\n    import xformers\n"
    files = tree({"a.py": f"import xformers.ops\n{later}", "b.py": "import torch\n", "c.py": later})

    (section,) = module_repairs.repair(
        {"xformers": MissingModule(name="xformers", why="it is for CUDA", profiles=("cpu",))},
        Imports(files),
        files,
        lambda path, line: f"{path}#{line}",
    )

    patch = section.written.patch
    assert (patch.id, patch.paths, patch.profiles, patch.source) == ("xformers-optional", ("a.py",), ("cpu",), "a.py#1")
    assert (section.comment, patch.expect) == ("a.py:1: import xformers.ops", Expect(sites=1))
    assert dataclasses.asdict(patch.op)["message"] == "it is for CUDA"  # type: ignore[call-overload]


@pytest.mark.parametrize("pin", ["pytorch=1.11.0", "pytorch==1.11.0+cu113"])
def test_packages_of_conda_that_are_imported_are_asked_of_the_index(pin: str) -> None:
    path = PurePosixPath("environment.yaml")
    more = "cudatoolkit=11.3\n  - numpy\n  - pip:\n    - numpy==1.19\n"
    data = f"dependencies:\n  - python=3.8\n  - {pin}\n  - {more}".encode()
    source = decode(path, data)
    assert isinstance(source, SourceText)
    found = Imports(tree({"a.py": "import torch, numpy\n"}))

    sections, issues = conda_packages.repair(source, found, lambda path, line: f"{path}#{line}")

    assert [str(dataclasses.asdict(one.written.patch.op)["requirement"]) for one in sections] == ["torch>=1.11.0"]  # type: ignore[call-overload]
    assert [str(one) for one in issues[0].found] == [f"environment.yaml:3: {pin}"]


def test_what_pip_is_to_bring_may_be_pinned_by_conda() -> None:
    path, data = PurePosixPath("environment.yml"), b"dependencies:\n  - numpy=1.26\n  - pip:\n    - requests\n"
    source = decode(path, data)
    assert isinstance(source, SourceText)
    found = Imports(tree({"a.py": "import numpy\n"}))
    sections, _ = conda_packages.repair(source, found, lambda path, line: f"{path}#{line}")
    fitted = narrowing.fit((), sections, {}, {path: data}, (str(path),), ("cpu",), Memoized())
    assert [one.written.patch.id for one in fitted.sections] == ["numpy-of-the-index"]
    assert [outcome.kind.value for outcome in fitted.outcomes] == ["needed"]
