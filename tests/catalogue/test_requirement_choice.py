"""Of the files that may say what an app requires, which one a proposal takes, and why."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version
from test_proposals import tree

from patchlock.catalogue.proposals import documents, requirement_choice, requirement_repairs
from patchlock.model.errors import RequirementsError


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("requirements_gpu.txt", "it is for GPUs"),
        ("requirements-cu121.txt", "it is for CU121"),
        ("requirements_rocm.txt", "it is for ROCm"),
    ],
)
def test_file_for_other_machines_says_for_which(name: str, why: str) -> None:
    files = {PurePosixPath("requirements.txt"): b"a\n", PurePosixPath(name): b"b\n"}
    assert [one.why for one in requirement_choice.candidates(files) if str(one.path) == name] == [why]


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


_TAKES = "setup.py:1 takes from it what the package requires"


@pytest.mark.parametrize(
    ("code", "readme", "wanted"),
    [
        ("setup(install_requires=read('few.txt'))\n", "", ("few.txt", _TAKES)),
        ("few = read('few.txt')\nsetup(install_requires=few, extras_require=read('x'))\n", "", ("few.txt", _TAKES)),
        (
            "setup(install_requires=read('few.txt'))\n",
            "`pip install -r requirements.txt`",
            ("requirements.txt", "README.md:2 says to install from it"),
        ),
        (
            "setup(extras_require=read('few.txt'))\n",
            "",
            ("environment-cpu.yml", "README.md:1 says to install from it"),
        ),
    ],
    ids=["in-the-call", "assigned", "readme-of-pip", "extra"],
)
def test_file_that_setup_reads_comes_before_that_of_conda(code: str, readme: str, wanted: tuple[str, str]) -> None:
    conda = "dependencies:\n  - pip:\n    - a\n"
    told = f"`conda env update -f environment-cpu.yml`\n{readme}\n"
    texts = {"setup.py": code, "README.md": told, "few.txt": "a\n", "requirements.txt": "a\n"}
    files = tree({**texts, "environment-cpu.yml": conda})

    found = requirement_choice.fitting_machine(requirement_choice.candidates(files, documents.told(files)), "cpu")

    assert (str(found[0].path), found[0].why) == wanted


@pytest.mark.parametrize(
    ("readme", "wanted"),
    [
        ("`pip install -e .`", "setup.py"),
        ("`python -m pip install '.[all]'`", "setup.py"),
        ("```\ngit clone https://e.org/x/Mini-App\ncd Mini-App\npython setup.py install\n```", "setup.py"),
        ("`uv sync`", "setup.py"),
        ("`pip3 install git+https://e.org/x/mini-app.git`", "setup.py"),
        ("`pip install -U git+ssh://git@e.org/x/Mini-App@main#egg=app`", "setup.py"),
        ("`pip install git+https://e.org/x/Mini-App-2.git`", ""),
        ("```\npip install .\npip install -r requirements.txt\n```", "requirements.txt"),
        ("```\ngit clone https://e.org/x/apex\ncd apex\npip install .\n```", ""),
        ("`python setup.py build_ext`", ""),
        ("`pip install app`", ""),
    ],
)
def test_project_is_taken_where_people_are_told_to_install_it(readme: str, wanted: str) -> None:
    files = tree({"setup.py": 'setup(install_requires=["a"])', "requirements.txt": "a\n", "README.md": readme})
    first = requirement_choice.candidates(files, documents.told(files), repository="Mini-App")[0]
    assert (str(first.path), first.why.endswith(" says to install from it")) == (
        wanted or "requirements.txt",
        bool(wanted),
    )


def test_what_another_file_of_the_app_asks_for_is_told() -> None:
    setup = 'setup(install_requires=["a>=1", "b", "C==2", "d<3", "e", "f", "g", "h"])'
    files = tree(
        {"setup.py": setup, "requirements.txt": "-r more.txt\na\nb==1\n", "more.txt": "c==2\n", "x/setup.py": setup}
    )
    taken = requirement_repairs.located(files, [PurePosixPath("requirements.txt"), PurePosixPath("more.txt")])
    told = {
        name: requirement_choice.differences(taken, PurePosixPath(name), files) for name in ("setup.py", "x/setup.py")
    }
    assert told == {"setup.py": "setup.py asks for a>=1, d<3, e, f, g, h", "x/setup.py": ""}
    locked = {canonicalize_name(name): Version("2.1") for name in "abcdgh"}
    assert (
        requirement_choice.differences(
            taken, PurePosixPath("setup.py"), files, {**locked, canonicalize_name("d"): Version("3.1")}
        )
        == "setup.py asks for d<3, e, f"
    )


def test_file_of_the_wanted_machine_is_taken() -> None:
    ranked = requirement_choice.candidates(tree({"requirements.txt": "a\n", "requirements_cpu.txt": "b\n"}))

    assert [str(one.path) for one in requirement_choice.fitting_machine(ranked, "cpu")] == [
        "requirements_cpu.txt",
        "requirements.txt",
    ]
    assert requirement_choice.fitting_machine(ranked, "rocm") == ranked


def test_lockfiles_of_upstream_are_named_with_why_they_are_not_read() -> None:
    listed = [PurePosixPath(name) for name in ("uv.lock", "src/poetry.lock", "src/Pipfile", "requirements.txt")]
    found = requirement_choice.unread(listed)
    assert [str(one.path) for one in found] == ["uv.lock", "src/Pipfile"]
    assert found[0].why.startswith("it holds the versions that upstream tested")


def test_computed_list_of_setup_py_is_no_candidate() -> None:
    with pytest.raises(
        RequirementsError, match=r"^setup\.py:1: `install_requires` is computed here, and what it gives"
    ):
        requirement_choice.candidates(tree({"setup.py": "setup(install_requires=read())\n"}))


def test_readme_of_a_folder_speaks_of_the_file_beside_it() -> None:
    files = tree({"web/README.md": "`pip install -r requirements.txt`", "requirements.txt": "a\n"})
    assert [str(path) for path, _ in requirement_choice.named(documents.told(files), files)] == ["requirements.txt"]
    files |= tree({"web/requirements.txt": "b\n"})
    assert [str(path) for path, _ in requirement_choice.named(documents.told(files), files)] == ["web/requirements.txt"]
