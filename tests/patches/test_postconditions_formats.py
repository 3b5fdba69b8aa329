"""The checks on requirements in every format but pip's own; each fails when one of two edits is missing."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from patchlock.model.patch import Ensure, Op
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.requirements.ops import DropRequirement, RenameRequirement, SetRequirement
from patchlock.patches.postconditions._requirements import HasRequirement, NoRequirement

TORCH = canonicalize_name("torch")
NO = NoRequirement(name=TORCH)

TWICE = {
    "pyproject.toml": '[project]\ndependencies = ["a", "torch"]\n[dependency-groups]\nd = ["Torch[x]>=1; os_name==\'nt\'"]\n',
    "sub/pyproject.toml": '[tool.poetry.dependencies]\ntorch = "^1"\n[tool.poetry.group.d.dependencies]\nTorch = {version = "1"}\n',
    "setup.cfg": "[options]\ninstall_requires =\n  torch>1  # c\n  a\n[options.extras_require]\nd =\n  torch\n",
    "setup.py": "R = ['torch']\nE = {'d': ('a', 'torch<2')}\nsetup(install_requires=R, extras_require=E)\n",
    "environment.yml": "dependencies:\n  - c::torch=1=h\n  - pip:\n    - a\n    - torch>=1\n",
}


def has(specifier: str, within: str = "") -> HasRequirement:
    return HasRequirement(name=TORCH, specifier=SpecifierSet(specifier), within=within)


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize(
    ("op", "check"),
    [
        pytest.param(SetRequirement(name=TORCH, specifier=SpecifierSet("==2.6")), has("==2.6"), id="set"),
        pytest.param(DropRequirement(name=TORCH), NO, id="drop"),
        pytest.param(RenameRequirement(name=TORCH, to=Requirement("b==1")), NO, id="rename"),
    ],
)
@pytest.mark.parametrize("missing", [0, 1])
def test_fails_without_one_of_two_edits(name: str, op: Op, check: Ensure, missing: int) -> None:
    path = PurePosixPath(name)
    source = decode(path, TWICE[name].encode())
    assert isinstance(source, SourceText)
    assert len(check.problems(path, TWICE[name].encode())) == 2
    located = op.locate(source)
    assert check.problems(path, encode(splice(source, located.edits))) == ()
    edits = sorted(located.edits, key=lambda edit: edit.start)
    middle = len(edits) // 2  # one or two edits each
    halves = (edits[:middle], edits[middle:])
    assert len(check.problems(path, encode(splice(source, tuple(halves[missing]))))) == 1


@pytest.mark.parametrize(
    ("name", "text", "specifier"),
    [
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^0.2.3"\n', ">=0.2.3,<0.3"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^0.0.3"\n', ">=0.0.3,<0.0.4"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~1"\n', ">=1,<2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~1.2.3"\n', ">=1.2.3,<1.3"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "*"\n', ""),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "1.2"\n', "==1.2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = ">= 1, <2"\n', ">=1,<2"),
        ("environment.yml", "dependencies: [torch]\n", ""),
        ("environment.yml", "dependencies: [torch=1.2]\n", "==1.2.*"),
        ("environment.yml", "dependencies: [torch=1.2.*]\n", "==1.2.*"),
        ("environment.yml", "dependencies: ['torch==1.2']\n", "==1.2"),
        ("environment.yml", "dependencies: [a/b::torch=1.2=py311_0]\n", "==1.2"),
        ("environment.yml", "dependencies: [torch 1.2]\n", "==1.2"),
        ("environment.yml", "dependencies: ['torch >=1.2,<2']\n", ">=1.2,<2"),
    ],
)
def test_words_of_poetry_and_conda(name: str, text: str, specifier: str) -> None:
    path = PurePosixPath(name)
    source = decode(path, text.encode())
    assert isinstance(source, SourceText)
    assert has(specifier).problems(path, text.encode()) == ()
    assert len(has("==9").problems(path, text.encode())) == 1
    assert SetRequirement(name=TORCH, specifier=SpecifierSet(specifier)).locate(source).settled


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "torch"\ndependencies = ["a[torch]"]\n[x]\ndependencies = ["torch"]\n'),
        ("pyproject.toml", '[build-system]\nrequires = ["torch"]\n'),
        ("setup.cfg", "[metadata]\nname = torch\n[options]\ninstall_requires =\n  a  # torch\n  # torch\n"),
        ("setup.py", "setup(name='torch', keywords=['torch'])\n"),
        ("environment.yml", "name: torch\ndependencies:\n- pytorch # torch\n- pip:\n  - -f torch\n"),
        ("environment.yml", "dependencies:\n"),
    ],
)
def test_no_requirement_holds(name: str, text: str) -> None:
    assert NO.problems(PurePosixPath(name), text.encode()) == ()
    assert has("").problems(PurePosixPath(name), text.encode()) == ("no line requires torch",)


def test_one_list_is_checked_alone() -> None:
    path, data = (
        PurePosixPath("pyproject.toml"),
        b'[build-system]\nrequires = ["torch"]\n[project]\ndependencies = ["torch<2"]\n',
    )
    assert has("", within="build-system.requires").problems(path, data) == ()
    assert has("<2").problems(path, data) == ()
    assert NoRequirement(name=TORCH, within="project.dependencies").problems(path, data) == (
        "project.dependencies still asks for torch: `torch<2`",
    )
    assert has("", within="x").problems(PurePosixPath("r.txt"), b"torch\n") == ("r.txt has no list `x`",)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("pyproject.toml", "a = ", "it cannot be read: Invalid value (at end of document)"),
        ("setup.cfg", "a = 1", "it cannot be read: File contains no section headers."),
        (
            "setup.cfg",
            "[options]\ninstall_requires = file: r.txt\n",
            "options.install_requires is read from elsewhere: `file: r.txt`",
        ),
        ("setup.py", "x = (", "it cannot be read: '(' was never closed (<unknown>, line 1)"),
        (
            "setup.py",
            "\nsetup(install_requires=read())",
            "line 2 computes install_requires, which only running it would tell",
        ),
        ("setup.py", "setup(**k)", "line 1 computes **, which only running it would tell"),
        (
            "setup.py",
            "R = []\nR.append('torch')\nsetup(install_requires=R)",
            "line 3 computes install_requires, which only running it would tell",
        ),
        ("environment.yml", "a: ]", "it cannot be read: while parsing a block node"),
        ("environment.yml", "a: 1", "it has no list `dependencies`"),
        ("uv.lock", "", "uv.lock is none of the files whose requirements can be checked"),
    ],
)
@pytest.mark.parametrize("check", [has("==1"), NO], ids=["has", "no"])
def test_file_that_cannot_be_checked_is_a_problem(name: str, text: str, why: str, check: Ensure) -> None:
    assert check.problems(PurePosixPath(name), text.encode()) == (why,)
