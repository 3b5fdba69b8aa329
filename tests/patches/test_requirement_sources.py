"""Requirements of every format are the same lines for a lock."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from packaging.utils import canonicalize_name

from patchlock.model.app import OptionalLists
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources
from patchlock.patches.pip_requirements import Line, LocationLine, OptionLine, RequirementLine, Unreadable

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


def asked(path: str, text: str, extras: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> list[str]:
    """Give all that a file says, one text for each line: requirements, includes, and why others are refused."""
    wanted = OptionalLists(extras=tuple(map(canonicalize_name, extras)), groups=tuple(map(canonicalize_name, groups)))
    return list(map(told, requirement_sources.read(source(path, text), wanted).lines))


def told(line: Line) -> str:
    """Say in one text what a line is."""
    match line:
        case RequirementLine(requirement=requirement):
            return f"{line.line} {requirement}"
        case OptionLine(options=options):
            return f"{line.line} -> {options[0][1]}"
        case Unreadable(why=why):
            return f"{line.line} ! {why}"
        case LocationLine(target=target):
            return f"{line.line} @ {target}"
        case _:
            return f"{line.line}"


def project(text: str) -> str:
    """Write a project, whose further lines begin at line 3."""
    return f'[project]\nname = "own"\n{text}'


DYNAMIC = 'dynamic = ["dependencies", "optional-dependencies"]\n'
SETUPTOOLS = (
    DYNAMIC
    + "[tool.setuptools.dynamic]\n"
    + 'dependencies = { file = ["base.txt", "more.in"] }\n'
    + 'optional-dependencies.web = { file = "web.txt" }\n'
)
HATCH = (
    DYNAMIC
    + "[tool.hatch.metadata.hooks.requirements_txt]\n"
    + 'files = ["base.txt"]\n'
    + "[tool.hatch.metadata.hooks.requirements_txt.optional-dependencies]\n"
    + 'web = ["web.txt"]\n'
)
OPTIONAL = (
    'dependencies = ["a"]\n'
    "[project.optional-dependencies]\n"
    'Web_UI = ["b", "own[gpu]"]\n'
    'gpu = ["c>=1"]\n'
    'bad = ["own[none]"]\n'
    "[dependency-groups]\n"
    'dev = ["d", { include-group = "Lint" }]\n'
    'lint = ["e"]\n'
    'round = [{ include-group = "round" }]\n'
)
MUTUAL = (
    "dependencies = []\n"
    "[project.optional-dependencies]\n"
    'x = ["a", "own[y]; os_name == \'nt\'"]\n'
    'y = ["b", "own[x]; os_name == \'nt\'"]\n'
)
NESTED = 'dependencies = ["own[a]"]\n[project.optional-dependencies]\na = ["own[b]"]\nb = ["own[c]"]\nc = ["d"]\n'
SOURCES = (
    'dependencies = ["a", "b>=1", "c", "d", "e", "f"]\n'
    "[tool.uv.sources]\n"
    'a = { git = "https://github.com/o/a", rev = "main" }\n'
    'b = { url = "https://e.org/b-1-py3-none-any.whl" }\n'
    'C = { index = "other" }\n'
    "d = { workspace = true }\n"
    'e = [{ path = "../e" }]\n'
    'unused = { git = "https://e.org/unused" }\n'
)
CONDITIONAL_SOURCES = (
    'dependencies = ["a; os_name == \'nt\'", "b", "c", "d"]\n'
    "[tool.uv.sources]\n"
    "a = []\n"
    'b = [{ git = "https://e.org/b.git", marker = "sys_platform == \'linux\'" }]\n'
    'c = { url = "https://e.org/c.whl", extra = "x" }\n'
    "[tool.poetry.dependencies]\n"
    'd = { git = "https://e.org/d.git", markers = "os_name == \'nt\'" }\n'
)
OTHER_TOOLS = (
    'dynamic = ["optional-dependencies"]\n'
    'dependencies = ["six"]\n'
    "[tool.uv.pip]\n"
    "no-deps = true\n"
    "[tool.pixi.pypi-dependencies]\n"
    'a = "*"\n'
    "[tool.pixi.feature.gpu.pypi-dependencies]\n"
    'b = "*"\n'
    "[tool.pixi.feature.gpu.target.linux-64.dependencies]\n"
    'c = "*"\n'
    "[tool.pixi.target.win-64.host-dependencies]\n"
    'd = "*"\n'
    "[tool.rye]\n"
    'dev-dependencies = ["e", "f>=1"]\n'
    "[tool.hatch.envs.test]\n"
    'dependencies = ["g"]\n'
    'extra-dependencies = ["h"]\n'
    "[tool.flit.metadata]\n"
    'requires = ["i"]\n'
    'requires-extra.doc = ["j"]\n'
)
POETRY_ALONE = (
    '[project.optional-dependencies]\nweb = ["a"]\n[tool.poetry.dependencies]\npython = "^3.10"\na = "*"\nB = "*"\n'
    'c = { version = "1", optional = true }\n'
)
POETRY_BESIDE = (
    'dependencies = ["a>=1", "b", "c @ https://e.org/c.whl", "d"]\n'
    "[tool.poetry.dependencies]\n"
    'a = { version = "<2", allow-prereleases = true }\n'
    'b = [{ version = "<2", python = "<3.8" }, { version = "^2", python = ">=3.8" }]\n'
    "c = '<9'\n"
    "d = 1\n"
)
POETRY_LISTS = (
    "[tool.poetry]\n"
    'name = "own"\n'
    "[tool.poetry.dependencies]\n"
    'python = "^3.10"\n'
    'a = "^1.2"\n'
    'b = { version = "*", optional = true }\n'
    'c = { version = ">=2", optional = true, extras = ["x"], python = ">=3.11", platform = "linux" }\n'
    'd = [{ version = "1", markers = "os_name == \'nt\'" }, { version = "2" }]\n'
    "[tool.poetry.extras]\n"
    'web = ["b"]\n'
    'gone = ["nobody"]\n'
    "[tool.poetry.group.dev.dependencies]\n"
    'e = "*"\n'
    "[tool.poetry.group.all]\n"
    'include-groups = ["dev"]\n'
)
POETRY_PLACES = (
    "[tool.poetry.dependencies]\n"
    'a = { git = "https://e.org/a.git", tag = "v1" }\n'
    'b = { path = "../b" }\n'
    'c = { version = "1", source = "other" }\n'
    'd = "^1 || ^3"\n'
    'e = { version = "1", spelling = 1 }\n'
    "f = 1\n"
)
POETRY_MACHINES = (
    "[tool.poetry.dependencies]\n"
    'a = { version = "*", platform = "!=win32" }\n'
    'b = { version = "*", platform = "linux" }\n'
    'c = { version = "*", platform = "linux || ==darwin" }\n'
    'd = { version = "*", platform = "!=win32,!=darwin", python = "~3.10 || ^3.12", markers = "os_name == \'nt\'" }\n'
)
CFG_LISTS = (
    "[metadata]\nname = own\n[options]\ninstall-requires =\n    a\n[options.extras_require]\nweb =\n    b\nall =\n"
    "    own[web]\n    c\n"
)
PY_LISTS = (
    "from setuptools import setup\n"
    'setup(name="own", install_requires=["a"],\n'
    '      extras_require={"web": ["b"], "all": ["own[web]", "c"]}, tests_require=["t"])\n'
)
CONDA_OPTIONS = "dependencies:\n  - python=3.10\n  - cudatoolkit\n  - pip:\n    - -r base.txt\n    - a\n"
NO_PROJECT = "1 ! it declares no project, neither [project] nor [tool.poetry]"
ELSEWHERE = "! `dependencies` is dynamic, and its build backend finds it elsewhere"
OTHER_INDEX = '"{}" would let another place say what a name means, and a lock asks one index only'


@pytest.mark.parametrize(
    ("path", "text", "extras", "groups", "wanted"),
    [
        pytest.param("pyproject.toml", project(SETUPTOOLS), (), (), ["5 -> base.txt", "5 -> more.in"], id="setuptools"),
        pytest.param(
            "pyproject.toml",
            project(SETUPTOOLS),
            ("web",),
            (),
            ["5 -> base.txt", "5 -> more.in", "6 -> web.txt"],
            id="setuptools-extra",
        ),
        pytest.param("pyproject.toml", project(HATCH), ("web",), (), ["4 -> base.txt", "7 -> web.txt"], id="hatch"),
        pytest.param(
            "pyproject.toml", project('dynamic = ["dependencies"]\n'), (), (), [f"3 {ELSEWHERE}"], id="computed-elsewhere"
        ),
        pytest.param(
            "pyproject.toml",
            project('dynamic = ["dependencies"]\n[tool.poetry.dependencies]\na = "1"\n'),
            (),
            (),
            ["5 a==1"],
            id="poetry-2",
        ),
        pytest.param("pyproject.toml", "[build-system]\nrequires = []\n", (), (), [NO_PROJECT], id="no-project"),
        pytest.param("pyproject.toml", "[tool.black]\n", (), (), [NO_PROJECT], id="tools-alone"),
        pytest.param("pyproject.toml", '[dependency-groups]\ng = ["a"]\n', (), ("g",), ["2 a"], id="groups-alone"),
        pytest.param("pyproject.toml", project('dependencies = "a"\n'), (), (), ["3 ! `project.dependencies` is not a list of requirements"], id="no-list"),
        pytest.param("pyproject.toml", project('dependencies = ["a", 1]\n'), (), (), ["3 ! `project.dependencies` has something else than a text", "3 a"], id="no-text"),
        pytest.param("pyproject.toml", project('dependencies = ["-r a.txt"]\n'), (), (), ["3 ! an option of pip is not a requirement"], id="option-in-a-list"),
        pytest.param("pyproject.toml", project(OPTIONAL), (), (), ["3 a"], id="own-list-alone"),
        pytest.param("pyproject.toml", project(OPTIONAL), ("web-ui",), (), ["3 a", "5 b", "6 c>=1"], id="extra-of-itself"),
        pytest.param("pyproject.toml", project(OPTIONAL), ("bad",), (), ["3 a", '7 ! the project has no extra "none"'], id="unknown-extra-of-itself"),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["own[a]"]\n[project.optional-dependencies]\na = ["b", "own[a]; os_name == \'nt\'"]\n'),
            (),
            (),
            ["5 b"],
            id="extra-that-asks-for-itself",
        ),
        pytest.param(
            "pyproject.toml",
            project(MUTUAL),
            ("x",),
            (),
            ["5 a", '6 b; os_name == "nt"'],
            id="extras-that-ask-for-each-other",
        ),
        pytest.param("pyproject.toml", project(OPTIONAL), (), ("dev",), ["3 a", "9 d", "10 e"], id="group-in-a-group"),
        pytest.param("pyproject.toml", project(OPTIONAL), (), ("round",), ["3 a", '11 ! the group "round" cannot be resolved: Cyclic dependency group include while resolving round: round includes itself'], id="group-in-itself"),
        pytest.param(
            "pyproject.toml",
            project(SOURCES),
            (),
            (),
            [
                "5 a @ git+https://github.com/o/a@main",
                "6 b @ https://e.org/b-1-py3-none-any.whl",
                "7 ! `c` is to come from the index \"other\", and a lock asks the profile's indexes only",
                "8 ! `d` is a project of this repository (a member of its workspace), which no index has",
                "9 ! `e` is a project of this repository (../e), which no index has",
                "3 f",
            ],
            id="uv-sources",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["a"]\n[[tool.uv.index]]\nurl = "https://e.org"\n[tool.uv]\nfind-links = []\n'),
            (),
            (),
            ["3 a", "4 ! " + OTHER_INDEX.format("[[tool.uv.index]] https://e.org"), "7 ! " + OTHER_INDEX.format("tool.uv.find-links")],
            id="uv-index",
        ),
        pytest.param(
            "pyproject.toml",
            project(CONDITIONAL_SOURCES),
            (),
            (),
            [
                '3 a; os_name == "nt"',
                "6 ! `b` is to come from https://e.org/b.git only where the `marker` of this source holds, and from the index otherwise",
                "7 ! `c` is to come from https://e.org/c.whl only where the `extra` of this source holds, and from the index otherwise",
                "9 ! `d` is to come from https://e.org/d.git only where the `markers` of this source holds, and from the index otherwise",
            ],
            id="sources-in-some-cases",
        ),
        pytest.param(
            "pyproject.toml",
            project('dynamic = ["dependencies"]\n[tool.poetry.dependencies]\na = [{ git = "https://e.org/a", markers = "os_name == \'nt\'" }, { version = "2" }]\n'),
            (),
            (),
            ['5 a @ git+https://e.org/a ; os_name == "nt"', "5 a==2"],
            id="poetry-places-of-a-dynamic-list",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = []\n[dependency-groups]\nDev = ["a"]\n[tool.uv]\ndev-dependencies = ["b"]\n'),
            (),
            ("dev",),
            ["5 a", "7 b"],
            id="uv-dev-dependencies-beside-a-group",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["a"]\n[tool.uv.pip]\nindex-url = "https://e.org"\nextra-index-url = []\n'),
            (),
            (),
            ["3 a", "5 ! " + OTHER_INDEX.format("tool.uv.pip.index-url"), "6 ! " + OTHER_INDEX.format("tool.uv.pip.extra-index-url")],
            id="uv-pip-index",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["a"]\n[tool.poetry.dependencies]\na = { git = "https://e.org/a" }\n'),
            (),
            (),
            ["5 a @ git+https://e.org/a"],
            id="poetry-says-where",
        ),
        pytest.param(
            "pyproject.toml",
            project(POETRY_BESIDE),
            (),
            (),
            ["3 a<2,>=1", '3 b<2; python_full_version < "3.8"', '3 b<3,>=2; python_full_version >= "3.8"', "3 c @ https://e.org/c.whl", "8 ! `d` is not a constraint of Poetry"],
            id="poetry-bounds-what-project-asks-for",
        ),
        pytest.param(
            "pyproject.toml",
            '[tool.poetry.dependencies]\nPython = "^3.9"\na = { url = "https://e.org/a.zip", subdirectory = "own" }\n',
            (),
            (),
            ["3 a @ https://e.org/a.zip#subdirectory=own"],
            id="poetry-python-with-a-capital",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["a"]\n[tool.uv.sources]\na = { git = "https://e.org/a", subdirectory = "own" }\n'),
            (),
            (),
            ["5 a @ git+https://e.org/a#subdirectory=own"],
            id="uv-source-in-a-folder",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = ["a", "b", "c"]\n[tool.uv.sources]\na = { place = "x" }\nb = "x"\nc = [{}]\n'),
            (),
            (),
            [f"{line} ! the source of `{name}` cannot be read" for line, name in ((5, "a"), (6, "b"), (7, "c"))],
            id="uv-source-of-another-kind",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = []\n[dependency-groups]\ng = ["-r a.txt"]\n'),
            (),
            ("g",),
            ['5 ! the group "g" cannot be resolved: Expected package name at the start of dependency specifier'],
            id="group-with-an-option",
        ),
        pytest.param(
            "pyproject.toml",
            project("dependencies = []\n[tool.pdm.overrides]\na = '1'\n[tool.pdm.resolution]\nexcludes = ['b']\n"),
            (),
            (),
            ["4 ! `tool.pdm.overrides` is not read", "7 ! `tool.pdm.resolution.excludes` is not read"],
            id="pdm",
        ),
        pytest.param("pyproject.toml", POETRY_LISTS, (), (), ["5 a<2,>=1.2", '8 d==1; os_name == "nt"', "8 d==2"], id="poetry-own-list-alone"),
        pytest.param("pyproject.toml", POETRY_LISTS, ("web",), ("all",), ["5 a<2,>=1.2", "6 b", '8 d==1; os_name == "nt"', "8 d==2", "13 e"], id="poetry-extra-and-group"),
        pytest.param("pyproject.toml", POETRY_LISTS, ("gone",), (), ["5 a<2,>=1.2", '8 d==1; os_name == "nt"', "8 d==2", '11 ! the extra "gone" names nobody, which is not a dependency'], id="poetry-extra-of-nothing"),
        pytest.param(
            "pyproject.toml",
            POETRY_PLACES,
            (),
            (),
            [
                "2 a @ git+https://e.org/a.git@v1",
                "3 ! `b` is a project of this repository (../b), which no index has",
                "4 ! `c` is to come from the source \"other\", and a lock asks the profile's indexes",
                "5 ! the constraint of `d` has no counterpart in PEP 440",
                "6 ! patchlock does not know what `spelling` of `e` means",
                "7 ! `f` is not a constraint of Poetry",
            ],
            id="poetry-places",
        ),
        pytest.param(
            "pyproject.toml",
            POETRY_MACHINES,
            (),
            (),
            [
                '2 a; sys_platform != "win32"',
                '3 b; sys_platform == "linux"',
                '4 c; sys_platform == "linux" or sys_platform == "darwin"',
                (
                    '5 d; os_name == "nt" and (sys_platform != "win32" and sys_platform != "darwin") and '
                    '(python_full_version < "3.11" and python_full_version >= "3.10" or '
                    'python_full_version < "4" and python_full_version >= "3.12")'
                ),
            ],
            id="poetry-machines",
        ),
        pytest.param("setup.cfg", CFG_LISTS, (), (), ["5 a"], id="cfg-dash"),
        pytest.param("setup.cfg", CFG_LISTS, ("all",), (), ["5 a", "8 b", "11 c"], id="cfg-extra-of-itself"),
        pytest.param("setup.cfg", "[options]\ninstall_requires = file: a.txt, b.txt\n", (), (), ["2 -> a.txt", "2 -> b.txt"], id="cfg-file"),
        pytest.param("setup.cfg", "[options]\ninstall_requires = attr: own.needs\n", (), (), ["2 ! `options.install_requires` is read from elsewhere (`attr: own.needs`), which must be patched instead"], id="cfg-attr"),
        pytest.param("setup.cfg", "[flake8]\nmax-line-length = 100\n", (), (), ["1 ! it has no `options.install_requires`"], id="cfg-without"),
        pytest.param("setup.py", PY_LISTS, (), (), ["2 a"], id="py"),
        pytest.param(
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['a'], extras_require={\n"
            "    ':sys_platform == \"win32\"': ['b'],\n    'web:python_version < \"3.12\"': ['c'],\n    'web': ['d'],\n"
            "    ':odd': ['e'],\n})\n",
            ("web",),
            (),
            [
                "2 a",
                '3 b; sys_platform == "win32"',
                '4 c; python_version < "3.12"',
                "5 d",
                "6 ! `odd` is not a marker",
            ],
            id="py-conditions",
        ),
        pytest.param("setup.py", PY_LISTS, ("all",), (), ["2 a", "3 b", "3 c"], id="py-extra-of-itself"),
        pytest.param("setup.py", "import setuptools as s\ns.setup(install_requires=['a'])\n", (), (), ["1 ! it has no call of setup()"], id="py-renamed"),
        pytest.param(
            "setup.py",
            "from setuptools import setup\nif GPU:\n    setup(install_requires=['a'])\nelse:\n    setup(install_requires=['b'])\n",
            (),
            (),
            ["3 ! it calls setup() here and on line 5, and which of them counts is known only when it runs"],
            id="py-twice",
        ),
        pytest.param("setup.py", "from setuptools import setup\nsetup()\n", (), (), ["1 ! it has no `install_requires`"], id="py-without"),
        pytest.param("setup.py", "from setuptools import setup\nsetup(install_requires=['a'], extras_require=more())\n", (), (), ["2 a"], id="py-computed-extras-unwanted"),
        pytest.param("setup.py", "from setuptools import setup\nsetup(install_requires=['a'], extras_require=more())\n", ("x",), (), ["2 a", "2 ! `extras_require` is computed here, and what it gives is known only when it runs"], id="py-computed-extras"),
        pytest.param("environment.yml", CONDA_OPTIONS, (), (), ["5 -> base.txt", "6 a"], id="conda-include"),
        pytest.param(
            "environment.yml",
            "dependencies:\n  - pip:\n    - a\n    - b: { version: 1 }\n    - 2\n    - [c]\n",
            (),
            (),
            ["3 a", *(f"{line} ! it is not text, as pip needs one" for line in (4, 5, 6))],
            id="conda-no-text",
        ),
        pytest.param("environment.yml", "dependencies:\n  - pip: a\n", (), (), ["2 ! it is neither a package nor a list for pip"], id="conda-pip-text"),
        *(
            pytest.param(name, "{}", (), (), [f"1 ! {name} is the lock of another tool"], id=name)
            for name in ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "pylock.web.toml", "conda-lock.yml")
        ),
        *(
            pytest.param(
                name,
                "{}",
                (),
                (),
                [
                    (f"1 ! {name} is none of the files that requirements are read from: pip's requirement files, "
                    "pyproject.toml, setup.cfg, setup.py and conda's environment.yml")
                ],
                id=name,
            )
            for name in ("Pipfile", "pixi.toml", "notebook.ipynb", "package.json", "main.py")
        ),
        pytest.param("requirements", "a\n", (), (), ["1 a"], id="no-ending"),
    ],
)  # fmt: skip
def test_file_asks_for_this(
    path: str, text: str, extras: tuple[str, ...], groups: tuple[str, ...], wanted: list[str]
) -> None:
    assert asked(path, text, extras, groups) == wanted


@pytest.mark.parametrize(
    ("path", "text", "extras", "wanted"),
    [
        pytest.param(
            "pyproject.toml",
            project(OPTIONAL),
            ("gpu",),
            [
                'the extra "web-ui" (b, own), which `extras` of app.toml would add',
                'the extra "bad" (own), which `extras` of app.toml would add',
                'the group "dev" (d, e), which `groups` of app.toml would add',
                'the group "lint" (e), which `groups` of app.toml would add',
                'the group "round" (line 11), which `groups` of app.toml would add',
            ],
            id="lists",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nname = "x"\ndependencies = ["a"]\n'
            '[project.optional-dependencies]\ngpu = ["a>=2"]\nweb = ["a", "b"]\n',
            (),
            ['the extra "web" (a, b), which `extras` of app.toml would add'],
            id="only-what-is-required-anyway",
        ),
        pytest.param(
            "pyproject.toml",
            POETRY_LISTS,
            ("web",),
            [
                'the extra "gone" (line 11), which `extras` of app.toml would add',
                'the group "dev" (e), which `groups` of app.toml would add',
                'the group "all" (e), which `groups` of app.toml would add',
                "7: c is optional, and no extra has it",
            ],
            id="poetry",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = []\n[tool.uv]\nprerelease = "allow"\n[tool.pixi.dependencies]\nffmpeg = "*"\n'),
            (),
            ["5: the setting tool.uv.prerelease is not read", "7: ffmpeg is required by pixi only"],
            id="settings",
        ),
        pytest.param(
            "pyproject.toml",
            project('dependencies = []\n[tool.uv.dependency-groups]\ndev = { requires-python = ">=3.13" }\n'),
            (),
            ["5: the setting tool.uv.dependency-groups.dev.requires-python is not read"],
            id="python-of-a-group",
        ),
        pytest.param(
            "pyproject.toml",
            project(OTHER_TOOLS),
            (),
            [
                "3: the extras are dynamic, and the build backend finds them elsewhere",
                "6: the setting tool.uv.pip.no-deps is not read",
                "10: b is required by pixi only",
                "12: c is required by pixi only",
                "8: a is required by pixi only",
                "14: d is required by pixi only",
                "16: the list of rye for development (e, f>=1) is not part of a lock",
                "21: what flit's own table asks for (i) is not part of a lock",
                '18: the environment "test" of hatch (g) is not part of a lock',
                '19: the environment "test" of hatch (h) is not part of a lock',
                '22: the extra "doc" of flit\'s own table (j) is not part of a lock',
            ],
            id="other-tools",
        ),
        pytest.param("pyproject.toml", project(NESTED), (), [], id="extra-in-an-extra"),
        pytest.param(
            "pyproject.toml",
            project(MUTUAL),
            ("x",),
            ['the extra "y" (b, own), which `extras` of app.toml would add'],
            id="extra-that-counts-in-some-cases",
        ),
        pytest.param(
            "pyproject.toml",
            project(POETRY_ALONE),
            (),
            [
                'the extra "web" (a), which `extras` of app.toml would add',
                "8: B is required by Poetry only, not by [project]",
                "9: c is optional, and no extra has it",
            ],
            id="poetry-alone",
        ),
        pytest.param(
            "pyproject.toml",
            project(POETRY_BESIDE),
            (),
            ["5: `allow-prereleases` of a is not read"],
            id="poetry-early-releases",
        ),
        pytest.param(
            "environment.yml",
            "dependencies:\n  - sel(linux): six\n  - pip: [a]\n    sel(win): attrs\n",
            (),
            ["2: sel(linux): six is a package of conda's", "4: sel(win): attrs is a package of conda's"],
            id="conda-selectors",
        ),
        pytest.param(
            "setup.py",
            PY_LISTS,
            ("web",),
            [
                'the extra "all" (own, c), which `extras` of app.toml would add',
                "3: what its tests ask for is not a part of a lock",
            ],
            id="setup-py",
        ),
        pytest.param(
            "environment.yml",
            "dependencies:\n  - python=3.10\n  - c::ffmpeg\n  - '[odd]'\n  - pytorch=2\n  - six\n  - pip: [torch, six>=1]\n",
            (),
            [
                "2: python=3.10 is a package of conda's",
                "3: c::ffmpeg is a package of conda's",
                "4: [odd] is a package of conda's",
            ],
            id="conda",
        ),
    ],
)
def test_what_is_left_out_is_named(path: str, text: str, extras: tuple[str, ...], wanted: list[str]) -> None:
    chosen = OptionalLists(extras=tuple(map(canonicalize_name, extras)))
    read = requirement_sources.read(source(path, text), chosen)
    assert [f"{one.line}: {one.what}" if one.line else one.what for one in read.not_covered] == wanted


def test_many_extras_that_ask_for_each_other_come_to_an_end() -> None:
    everyone = ", ".join(f"\"own[x{other}]; os_name == 'nt'\"" for other in range(20))
    extras = "".join(f'x{number} = ["p{number}", {everyone}]\n' for number in range(20))

    found = asked("pyproject.toml", project(f"dependencies = []\n[project.optional-dependencies]\n{extras}"), ("x0",))

    assert [line.partition(";")[0] for line in found] == [f"{5 + number} p{number}" for number in range(20)]


def test_settings_of_uv_are_read() -> None:
    text = project(
        'dependencies = ["a"]\n[tool.uv]\noverride-dependencies = ["b<2"]\nconstraint-dependencies = [\n  "c<3",\n  "d d",\n'
        ']\nexclude-dependencies = ["Some_Thing"]\n'
    )

    read = requirement_sources.read(source("pyproject.toml", text))

    assert list(map(told, read.lines)) == [
        "3 a",
        (
            "8 ! `tool.uv.constraint-dependencies` has what is not a requirement: Expected semicolon (after name with no version "
            "specifier) or end"
        ),
    ]
    assert list(map(told, read.overrides)) == ["5 b<2"]
    assert list(map(told, read.constraints)) == ["7 c<3"]
    assert read.exclusions == ("some-thing",)


EXTRAS_WITH_INDEXES = (
    'dependencies = ["a"]\n'
    "[project.optional-dependencies]\n"
    'cpu = ["b"]\n'
    'gpu = ["b"]\n'
    'all = ["own[gpu]"]\n'
    "[dependency-groups]\n"
    'dev = ["b"]\n'
    "[tool.uv.sources]\n"
    "B = [\n"
    '  { index = "one", extra = "CPU" },\n'
    '  { index = "two", extra = "gpu" },\n'
    '  { index = "one", group = "dev" },\n'
    "]\n"
    'c = { index = "one" }\n'
    "[[tool.uv.index]]\n"
    'name = "one"\nurl = "https://e.org/one"\nexplicit = true\n'
    "[[tool.uv.index]]\n"
    'name = "two"\nurl = "https://e.org/two"\nexplicit = true\n'
)


@pytest.mark.parametrize(
    ("extras", "groups", "wanted"),
    [
        pytest.param((), (), [], id="nobody-asks-for-it"),
        pytest.param(("cpu",), (), ["12 one", "13 two"], id="an-extra-and-one-that-another-asks-for"),
        pytest.param((), ("dev",), ["13 two", "14 one"], id="a-group"),
    ],
)
def test_index_of_a_source_counts_where_its_extra_is_taken(
    extras: tuple[str, ...], groups: tuple[str, ...], wanted: list[str]
) -> None:
    chosen = OptionalLists(extras=tuple(map(canonicalize_name, extras)), groups=tuple(map(canonicalize_name, groups)))
    read = requirement_sources.read(source("pyproject.toml", project(EXTRAS_WITH_INDEXES)), chosen)
    assert [f"{one.line} {one.url.rpartition('/')[2]}" for one in read.from_indexes] == wanted
