"""Requirements of every format are the same lines for a lock."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources
from patchlock.patches.pip_requirements import LocationLine, RequirementLine, Unreadable

PEP_621 = '[project]\nname = "x"\ndependencies = [\n  "a>=1",  # why\n  "b @ git+https://e.org/b.git",\n]\n[project.optional-dependencies]\nt = ["c"]\n'
POETRY = '[tool.poetry.dependencies]\npython = "^3.10"\na = "^1.2"\n'
SETUP_CFG = "[options]\ninstall_requires =\n    a>=1\n    b\n"
SETUP_PY = 'from setuptools import setup\nsetup(install_requires=["a>=1", "b"], extras_require={"t": ["c"]})\n'
CONDA = "dependencies:\n  - python=3.10\n  - pip:\n    - a>=1\n    - b\n"


def source(path: str, text: str) -> SourceText:
    """Decode a file."""
    decoded = decode(PurePosixPath(path), text.encode())
    assert isinstance(decoded, SourceText)
    return decoded


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        pytest.param("requirements.txt", "a>=1\nb\n", [(1, "a>=1"), (2, "b")], id="pip"),
        pytest.param("pyproject.toml", PEP_621, [(4, "a>=1"), (5, "b@ git+https://e.org/b.git")], id="pep-621"),
        pytest.param("pyproject.toml", POETRY, [(3, "a<2,>=1.2")], id="poetry"),
        pytest.param("setup.cfg", SETUP_CFG, [(3, "a>=1"), (4, "b")], id="setup-cfg"),
        pytest.param("setup.py", SETUP_PY, [(2, "a>=1"), (2, "b")], id="setup-py"),
        pytest.param("environment.yml", CONDA, [(4, "a>=1"), (5, "b")], id="conda"),
    ],
)
def test_requirements_of_the_app_itself_are_read(path: str, text: str, wanted: list[tuple[int, str]]) -> None:
    lines = requirement_sources.lines(source(path, text))

    found = [(one.line, str(one.requirement).replace(" @", "@")) for one in lines if isinstance(one, RequirementLine)]
    assert found == wanted


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        pytest.param("pyproject.toml", "[project\n", Unreadable, id="not-toml"),
        pytest.param("setup.py", "setup(install_requires=read())\n", Unreadable, id="computed"),
        pytest.param(
            "setup.cfg", "[options]\ninstall_requires =\n    git+https://e.org/x.git\n", LocationLine, id="place"
        ),
    ],
)
def test_what_cannot_be_told_is_no_silence(path: str, text: str, kind: type) -> None:
    assert [type(line) for line in requirement_sources.lines(source(path, text))] == [kind]


def test_resolver_gets_a_list_and_none_of_the_files_settings() -> None:
    text = PEP_621.replace('  "b @ git+https://e.org/b.git",\n', "") + '[tool.uv.sources]\na = { path = "." }\n'

    path, data = requirement_sources.for_resolver(PurePosixPath("app/pyproject.toml"), text.encode())

    assert (str(path), data) == ("app/pyproject.toml.txt", b"a>=1\n")
    assert requirement_sources.for_resolver(PurePosixPath("r.txt"), b"a\n# x\n") == (
        PurePosixPath("r.txt"),
        b"a\n# x\n",
    )
