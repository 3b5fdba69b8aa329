"""What the static files of an sdist say: which file is believed, and when more than they say may be asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath

import pytest
from packaging.version import Version
from sdists import sdist

from patchlock.distributions import sdist_metadata, sdists
from patchlock.model.sdist import Sdist

SETUPTOOLS = '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
CORE = "Metadata-Version: {}\nName: x\nVersion: 1.5\n{}"


def _read(**files: str) -> sdist_metadata.SdistMetadata:
    names = {"info": "PKG-INFO", "pyproject": "pyproject.toml", "setup": "setup.py", "cfg": "setup.cfg"}
    names |= {"cmake": "CMakeLists.txt", "backend": "own.py"}
    names |= {"egg": "src/x.egg-info/requires.txt", "listing": "x.egg-info/SOURCES.txt"}
    return sdist_metadata.read({PurePosixPath(names[key]): text.encode() for key, text in files.items()})


@pytest.mark.parametrize(
    ("files", "told_by", "requires"),
    [
        ({"info": CORE.format("2.2", "Requires-Dist: a>=1\n"), "egg": "b\n"}, "PKG-INFO", ["a>=1"]),
        ({"info": CORE.format("2.4", "Dynamic: license-file\n")}, "PKG-INFO", []),
        (
            {"info": CORE.format("2.2", "Dynamic: Requires-Dist\n"), "egg": "b\n"},
            "src/x.egg-info/requires.txt",
            ["b"],
        ),
        ({"info": CORE.format("2.1", ""), "egg": "b>1\n\n[dev]\nc\n"}, "src/x.egg-info/requires.txt", ["b>1"]),
        (
            {"egg": "a\n[:sys_platform=='win32']\nb\n[fast]\nc\n[fast:python_version<'3']\nd\n[all]\ne\n"},
            "src/x.egg-info/requires.txt",
            [
                "a",
                'b; sys_platform == "win32"',
                'c; extra == "fast"',
                'd; python_version < "3" and extra == "fast"',
                'e; extra == "all"',
            ],
        ),
        ({"pyproject": '[project]\nname = "x"\ndependencies = ["a"]\n'}, "pyproject.toml", ["a"]),
        ({"pyproject": '[project]\nname = "x"\ndynamic = ["dependencies"]\n'}, "", []),
        (
            {"info": CORE.format("2.1", "Requires-Dist: a\n"), "setup": "setup(install_requires=['b'])"},
            "PKG-INFO",
            ["a"],
        ),
        ({"cfg": "[options]\ninstall_requires =\n    a>2\n", "setup": "setup()"}, "setup.cfg", ["a>2"]),
        ({"setup": "from setuptools import setup\nsetup(install_requires=['a', 'b<2'])\n"}, "setup.py", ["a", "b<2"]),
        ({"setup": "from distutils.core import setup\nsetup(name='x')\n"}, "setup.py", []),
        ({"setup": "from setuptools import setup\nsetup(install_requires=open('r').read())\n"}, "", []),
        ({"setup": "from setuptools import setup\nsetup(**configuration())\n"}, "", []),
        ({"listing": "setup.py\n", "setup": "setup(install_requires=[''])"}, "x.egg-info/SOURCES.txt", []),
        ({"listing": "setup.py\n", "egg": "a\n"}, "src/x.egg-info/requires.txt", ["a"]),
        ({"pyproject": "not toml ["}, "", []),
        ({}, "", []),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_file_that_says_what_is_required(files: dict[str, str], told_by: str, requires: list[str]) -> None:
    found = _read(**files)
    assert (found.told_by, list(map(str, found.requires))) == (told_by, requires)


@pytest.mark.parametrize(
    ("files", "build", "doubt"),
    [
        ({"setup": "setup()"}, ["setuptools>=40.8.0", "wheel"], ""),
        ({"pyproject": SETUPTOOLS}, ["setuptools>=61", "wheel"], ""),
        (
            {"setup": "import pkg_resources\nsetup()"},
            ["setuptools>=40.8.0", "wheel", "setuptools<82"],
            "",
        ),
        (
            {"pyproject": SETUPTOOLS, "setup": "setup(setup_requires=['cffi>=1'])"},
            ["setuptools>=61", "cffi>=1", "wheel"],
            "",
        ),
        (
            {"setup": "setup(setup_requires=needed())"},
            ["setuptools>=40.8.0", "wheel"],
            "its setup.py computes setup_requires",
        ),
        (
            {"setup": "setup(install_requires=open('r').read(), setup_requires=['ninja'])"},
            ["setuptools>=40.8.0", "wheel", "ninja"],
            "",
        ),
        (
            {
                "setup": "needs = {'all': ['b'], 'setup': ['a']}\nneeds['all'].extend(['c'])\nsetup(setup_requires=needs['setup'])"
            },
            ["setuptools>=40.8.0", "wheel", "a"],
            "",
        ),
        (
            {"setup": "needs = ['a']\nif fast:\n    needs += ['b']\nsetup(setup_requires=needs)"},
            ["setuptools>=40.8.0", "wheel"],
            "its setup.py computes setup_requires",
        ),
        (
            {"setup": "first = ['a']\nsetup(setup_requires=first + ['b'])"},
            ["setuptools>=40.8.0", "wheel", "a", "b"],
            "",
        ),
        (
            {"setup": "setup(**{'setup_requires': ['a']})"},
            ["setuptools>=40.8.0", "wheel"],
            "its setup.py computes setup_requires",
        ),
        (
            {
                "setup": "import os, numpy as np\nfrom Cython.Build import cythonize\ntry:\n    import cffi\nexcept ImportError:\n    cffi = None\nsetup()"
            },
            ["setuptools>=40.8.0", "wheel", "numpy", "cython"],
            "",
        ),
        (
            {
                "setup": "try:\n    from numpy import get_include\n    from numpy.distutils import misc_util\nexcept ImportError:\n    print('install numpy')\n    sys.exit(1)\n"
                "try:\n    import cffi\nexcept ImportError as e:\n    raise RuntimeError('install cffi') from e\nsetup()"
            },
            ["setuptools>=40.8.0", "wheel", "numpy", "setuptools<74", "cffi"],
            "",
        ),
        (
            {
                "pyproject": '[build-system]\nrequires = ["setuptools", "wheel", "oldest-supported-numpy"]\n'
                'build-backend = "setuptools.build_meta"',
                "setup": "import numpy\nsetup()",
            },
            ["setuptools", "wheel", "oldest-supported-numpy"],
            "",
        ),
        (
            {"setup": "import pkg_resources, setuptools_scm\nsetup(setup_requires=['setuptools-scm>=6'])"},
            ["setuptools>=40.8.0", "wheel", "setuptools-scm>=6", "setuptools<82"],
            "",
        ),
        (
            {"pyproject": '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"'},
            ["flit_core"],
            "",
        ),
        (
            {"pyproject": '[build-system]\nrequires = ["maturin>=1"]\nbuild-backend = "maturin"'},
            ["maturin>=1"],
            "its build backend maturin asks for more when it runs",
        ),
        (
            {"pyproject": '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]'},
            [],
            "its build backend b is its own code",
        ),
        (
            {
                "pyproject": '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
                "[tool.hatch.build.hooks.vcs]\n"
            },
            ["hatchling"],
            "its hooks of hatchling may ask for more",
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_what_the_build_requires(files: dict[str, str], build: list[str], doubt: str) -> None:
    found = _read(**files)
    assert (list(map(str, found.build)), found.doubt) == (build, doubt)


@pytest.mark.parametrize(
    ("files", "downloads"),
    [
        ({"setup": "from urllib.request import urlretrieve\nurlretrieve(URL, NAME)\n"}, "setup.py:2 (urlretrieve)"),
        ({"setup": "import requests as r, requests\nrequests.get(URL)\n"}, "setup.py:2 (requests.get)"),
        ({"setup": "import os\nos.system('curl -LO ' + URL)\n"}, "setup.py:2 (curl)"),
        ({"setup": "subprocess.check_call(['git', 'clone', URL])\n"}, "setup.py:1 (git clone)"),
        ({"setup": "run('git rev-parse HEAD', shell=True)\n"}, ""),
        ({"setup": "from urllib.parse import urlparse\nsetup(url='https://x.test', get=table.get(1))\n"}, ""),
        ({"cmake": "project(x)\n# FetchContent_Declare(y)\nFetchContent_Declare(y GIT_REPOSITORY z)\n"},
         "CMakeLists.txt:3 (FetchContent_Declare)"),
        ({"backend": "urlopen(URL)\n"}, ""),
        ({"backend": "urlopen(URL)\n", "pyproject": '[build-system]\nbuild-backend = "own"\nbackend-path = ["."]\n'},
         "own.py:1 (urlopen)"),
    ],
    ids=str,
)  # fmt: skip
def test_what_downloads_while_it_is_built(files: dict[str, str], downloads: str) -> None:
    found = _read(**files)
    assert found.downloads == downloads
    sdist = Sdist(name="x", version=Version("1.5"), url="https://h.test/x-1.5.tar.gz", sha256="1")
    told = f"# its build may download something, {downloads}, and a build has no network here: it may fail at install; "
    assert (told in sdist_metadata.as_table(sdist, found)) == bool(downloads)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("PKG-INFO", True),
        ("setup.py", True),
        ("CMakeLists.txt", True),
        ("src/x.egg-info/requires.txt", True),
        ("x.egg-info/PKG-INFO", False),
        ("vendor/setup.py", False),
        ("tests/data/a/x.egg-info/requires.txt", False),
        ("requires.txt", False),
    ],
)
def test_files_that_are_read(path: str, wanted: bool) -> None:
    assert sdist_metadata.is_wanted(PurePosixPath(path)) is wanted


def test_table_can_be_pasted() -> None:
    sdist = Sdist(name="x", version=Version("1.5"), url="https://h.test/x-1.5.tar.gz#sha256=1", sha256="1")
    statement = _read(egg="a\n[fast]\nb\n", pyproject='[build-system]\nrequires = ["m"]\nbuild-backend = "m"')
    text = sdist_metadata.as_table(sdist, statement)
    assert tomllib.loads(text)["metadata"] == [
        {
            "name": "x",
            "version": "1.5",
            "requires": ["a", 'b; extra == "fast"'],
            "build": ["m"],
            "why": "there is no wheel",
            "source": "PyPI: x 1.5 sdist, src/x.egg-info/requires.txt",
        }
    ]
    assert (
        text.splitlines()[-1]
        == "# its build backend m asks for more when it runs: `patchlock sdist x 1.5 --run-hooks` asks it"
    )


def test_version_of_an_archive_comes_from_its_files() -> None:
    sdist = Sdist(name="x", version=None, url="https://h.test/c.tar.gz", sha256="1")
    for files in (
        {"info": CORE.format("2.1", "")},
        {"pyproject": '[project]\nname = "x"\nversion = "1.5"\n'},
        {"setup": "setup(\n    version='1.5')"},
    ):
        assert 'version = "1.5"' in sdist_metadata.as_table(sdist, _read(**files))
    assert 'version = "TODO"' in sdist_metadata.as_table(sdist, _read())


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        pytest.param(
            {"setup.py": "setup(ext_modules=[Extension('x', ['x.c'])])", "x.c": ""}, {"c-compiler": True}, id="setup"
        ),
        pytest.param(
            {"setup.py": "setup(ext_modules=[Extension('x', ['x.c'])] if os.getenv('EXT') else [])", "x.c": ""},
            {"c-compiler": False},
            id="setup-that-chooses",
        ),
        pytest.param({"setup.py": "setup(name='x')", "tests/x.c": ""}, {}, id="source-that-nothing-compiles"),
        pytest.param({"setup.py": "setup(ext_modules=[])"}, {}, id="nothing-to-compile"),
        pytest.param(
            {"pyproject.toml": '[build-system]\nrequires = ["scikit-build-core"]\n', "vendor/x.cpp": ""},
            {"c-compiler": True, "cmake": True},
            id="cmake",
        ),
    ],
)
def test_build_says_which_tools_it_needs(tmp_path: Path, files: dict[str, str], wanted: dict[str, bool]) -> None:
    assert sdists.build_tools(sdist(tmp_path, "x", "1.0", files)) == wanted
