"""Lines of requirement files that no lock can be made from: each is told with its place and what to write instead."""

from __future__ import annotations

import contextlib
from pathlib import PurePosixPath

import pytest
from packaging.markers import default_environment
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.model.app import OptionalLists
from patchlock.model.errors import RequirementsError
from patchlock.model.identities import Sha256
from patchlock.patches import requirements_for_locks, resolver_files
from patchlock.patches.requirements_for_locks import AskedRequirements, Pin

FILE = PurePosixPath("requirements.txt")
COMMIT = "da4d70d7affc477eb8dc3a51f9b13d387817059a"
SHA = "ab" * 32
PLACE = '"{}" is a place, not a version, and a lock names files by their sha256 (requirements.txt:2); {}'
OTHER = (
    '"{}" would let another place say what a name means, and a lock asks one index only (requirements.txt:2); drop the '
    'line with a patch (op = "replace-text", new = ""); what only that place has is named by a recorded index of the profile'
)
BUILDS = (
    '"{}" says what is built, and that is for the catalogue to say (requirements.txt:2); drop the line with a patch '
    '(op = "replace-text", new = ""), and allow a build with [[build]]'
)
UNREADABLE = "{} (requirements.txt:2); correct the line upstream, or add a patch with the op replace-text"
NO_REQUIREMENT = "it is not a requirement that pip can read:"
MORE = "expected semicolon (after name with no version specifier) or end"
ELSEWHERE = (
    '"{}" is read from another place each time, where it may have changed (requirements.txt:2); write what it says into '
    "the file with a patch (replace-text), or drop the line"
)
NO_SHA256 = (
    "no `--hash` of six is a sha256 of 64 hexadecimal digits, and no other hash counts (requirements.txt:2); write "
    "`--hash=sha256:…` with a patch (replace-text), or drop the hashes with it"
)
OUTSIDE = '"{}" leads out of the repository (requirements.txt:2); drop the line with a patch (replace-text)'
FOLDER = (
    '"{}" asks for one folder of what lies there, and a lock names whole files (requirements.txt:2); set a version with a '
    "patch (set-requirement), or name a wheel of it by address and sha256"
)
CLONE = "drop the line with a patch (replace-text): the app runs from its clone, which needs no install"
HERE = "it is there on one machine only: set a version with a patch (set-requirement), or drop the line"
ARCHIVE = "write `{} @ {}#sha256=…` with a patch (replace-text), and add [[build]] and [[metadata]] for {}"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-e .", PLACE.format(".", CLONE)),
        ("-e file:///srv/x#egg=x", PLACE.format("file:///srv/x#egg=x", CLONE)),
        ("file:///srv/x-1-py3-none-any.whl", PLACE.format("file:///srv/x-1-py3-none-any.whl", HERE)),
        ("./wheels/x-1-py3-none-any.whl", PLACE.format("./wheels/x-1-py3-none-any.whl", HERE)),
        (
            f"x @ git+https://github.com/o/r@{COMMIT}",
            PLACE.format(
                f"git+https://github.com/o/r@{COMMIT}",
                ARCHIVE.format("x", f"https://github.com/o/r/archive/{COMMIT}.tar.gz", "x"),
            ),
        ),
        (
            "git+https://github.com/o/r.git@main#egg=x",
            PLACE.format(
                "git+https://github.com/o/r.git@main#egg=x",
                "it names no commit of 40 digits, and changes; "
                + ARCHIVE.format("x", "https://github.com/o/r/archive/<commit>.tar.gz", "x"),
            ),
        ),
        (
            f"x @ git+https://gitlab.com/o/r@{COMMIT}",
            PLACE.format(
                f"git+https://gitlab.com/o/r@{COMMIT}",
                ARCHIVE.format("x", f"https://gitlab.com/o/r/-/archive/{COMMIT}/r-{COMMIT}.tar.gz", "x"),
            ),
        ),
        (
            "x @ git+ssh://git@example.org/o/r",
            PLACE.format(
                "git+ssh://git@example.org/o/r",
                "it names no commit of 40 digits, and changes; "
                + ARCHIVE.format("x", "https://…/<archive of one commit>.tar.gz", "x"),
            ),
        ),
        (
            "x @ https://example.org/x-1-py3-none-any.whl",
            PLACE.format(
                "https://example.org/x-1-py3-none-any.whl",
                "write `x @ https://example.org/x-1-py3-none-any.whl#sha256=…` with a patch (replace-text)",
            ),
        ),
        (
            f"https://example.org/x.zip#sha256={SHA}",
            PLACE.format(
                f"https://example.org/x.zip#sha256={SHA}",
                "write `NAME @ https://example.org/x.zip#sha256=…` with a patch (replace-text)",
            ),
        ),
        (
            f"x @ https://example.org/x-1-py3-none-any.whl#sha256={SHA} --hash=sha256:{'cd' * 32}",
            PLACE.format(
                f"https://example.org/x-1-py3-none-any.whl#sha256={SHA}",
                "write `x @ https://example.org/x-1-py3-none-any.whl#sha256=…` with a patch (replace-text)",
            ),
        ),
        ("--index-url https://evil.test/simple", OTHER.format("--index-url https://evil.test/simple")),
        ("-i https://evil.test/simple", OTHER.format("--index-url https://evil.test/simple")),
        ("--extra-index-url=https://evil.test", OTHER.format("--extra-index-url https://evil.test")),
        ("-f wheels", OTHER.format("--find-links wheels")),
        ("--trusted-host evil.test", OTHER.format("--trusted-host evil.test")),
        ("--no-index", OTHER.format("--no-index")),
        ("--no-binary :all:", BUILDS.format("--no-binary :all:")),
        (
            "num\u0440y==1",
            UNREADABLE.format(
                "it is not a requirement that pip can read: expected package name at the start of dependency specifier, "
                'at `num\u0440y==1` ("\u0440" is CYRILLIC SMALL LETTER ER)'
            ),
        ),
        (
            "idna===3.7-foo",
            (
                '"idna===3.7-foo" asks for 3.7-foo, which is not a version (requirements.txt:2); set a version with a '
                "patch (set-requirement); see "
                "https://packaging.python.org/en/latest/specifications/version-specifiers/"
            ),
        ),
        ("encodec phonemizer", UNREADABLE.format(f"{NO_REQUIREMENT} {MORE}, at `phonemizer`")),
        (
            "torch>=2.1.0+cu118",
            UNREADABLE.format(
                f"{NO_REQUIREMENT} local version label can only be used with `==` or `!=` operators, at `+cu118`"
            ),
        ),
        ("six=1.16.0", UNREADABLE.format(f"{NO_REQUIREMENT} {MORE}, at `=1.16.0`")),
        (
            "~=1",
            UNREADABLE.format(f"{NO_REQUIREMENT} expected package name at the start of dependency specifier, at `~=1`"),
        ),
        ("x @", UNREADABLE.format(f"{NO_REQUIREMENT} expected URL after @, at its end")),
        (
            "six==${SIX_VERSION}",
            (
                "pip puts the variable SIX_VERSION of the machine it runs on instead of `${SIX_VERSION}` "
                "(requirements.txt:2); write what is meant by `${SIX_VERSION}` in its place with a patch (replace-text)"
            ),
        ),
        (
            "-r=g.txt",
            (
                "pip reads the value of `-r=g.txt` as `=g.txt`, with the equals sign (requirements.txt:2); write "
                "`-r g.txt` with a patch (replace-text)"
            ),
        ),
        (
            "six # note\fidna",
            (
                "pip ends a line at the character U+000C that stands in this one (requirements.txt:2); write a line feed in "
                "its place with a patch (replace-text)"
            ),
        ),
        (
            "six\u2028idna",
            (
                'pip ends a line at the character U+2028 that stands in this one ("\u2028" is LINE SEPARATOR) '
                "(requirements.txt:2); write a line feed in its place with a patch (replace-text)"
            ),
        ),
        (
            'six; platform_release >= "5"',
            (
                '"six; platform_release >= "5"" depends on the `platform_release` of one machine, which a lock cannot know '
                "(requirements.txt:2); write the line without that marker with a patch (replace-text), or drop it"
            ),
        ),
        (
            "six --config-settings=a=b  # why",
            (
                '"--config-settings" says how it is built, and that is for the catalogue to say (requirements.txt:2); drop '
                'it with a patch (op = "replace-text"), and allow a build with [[build]]'
            ),
        ),
        (
            f"x @ https://example.org/x-1.tar.gz#sha256={SHA}&subdirectory=own",
            FOLDER.format(f"https://example.org/x-1.tar.gz#sha256={SHA}&subdirectory=own"),
        ),
        (
            f"git+https://github.com/o/r@{COMMIT}#subdirectory=own",
            FOLDER.format(f"git+https://github.com/o/r@{COMMIT}#subdirectory=own"),
        ),
        (f"six --hash=sha512:{'ab' * 64}", NO_SHA256),
        ("six==1 --hash=md5:aa", NO_SHA256),
        ("six==1 --hash=sha256:zz --hash sha512:aa", NO_SHA256),
        ("-r https://example.org/base.txt", ELSEWHERE.format("-r https://example.org/base.txt")),
        ("-c file:///srv/base.txt", ELSEWHERE.format("-c file:///srv/base.txt")),
        ("-r /srv/base.txt", OUTSIDE.format("-r /srv/base.txt")),
        ("-r C:\\\\base.txt", OUTSIDE.format("-r C:\\base.txt")),
        ("-r ../base.txt", OUTSIDE.format("-r ../base.txt")),
        ("-c a/../../base.txt", OUTSIDE.format("-c a/../../base.txt")),
        (
            "-r a.txt -r b.txt",
            (
                "pip reads the first file that the line names, and nothing else of it (requirements.txt:2); write a line for "
                "each with a patch (replace-text)"
            ),
        ),
        (
            "--all-releases six",
            (
                '"--all-releases six" says which releases of a name are taken (requirements.txt:2); drop the line with a '
                "patch (replace-text)"
            ),
        ),
    ],
)
def test_line_that_no_lock_can_be_made_from(line: str, sentence: str) -> None:
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.read_all((FILE,), {FILE: f"numpy\n{line}\n".encode()})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "line",
    [
        "numpy===1.0",
        "encodecphonemizer",
        "--pre",
        f"numpy==1.0 --hash=sha256:{SHA}",
        f"x @ https://example.org/x-1-py3-none-any.whl#sha256={SHA}",
        f"x @ https://example.org/x-1-py3-none-any.whl --hash=sha256:{SHA}",
        "numpy  # --config-settings\f",
        "numpy; platform_python_implementation == 'CPython'",
    ],
)
def test_line_that_a_lock_can_be_made_from(line: str) -> None:
    assert requirements_for_locks.read_all((FILE,), {FILE: f"{line}\n".encode()}).paths == (FILE,)


def test_other_lines_are_told_too() -> None:
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.read_all((FILE,), {FILE: b"-e .\n--no-index\n"})
    assert caught.value.what.endswith("by their sha256 (and 1 more)")
    assert caught.value.evidence == (
        'requirements.txt:2: "--no-index" would let another place say what a name means, and a lock asks one index only',
    )


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            {"requirements.txt": b"numpy\n-r requirements.txt\n"},
            (
                "requirements.txt includes itself, which pip refuses (requirements.txt:2); drop the line with a patch "
                "(replace-text)"
            ),
        ),
        (
            {"requirements.txt": b"-r a/b.txt\n", "a/b.txt": b"-c ../requirements.txt\n"},
            "requirements.txt includes itself, which pip refuses (a/b.txt:1); drop the line with a patch (replace-text)",
        ),
        (
            {"requirements.txt": b"-r gone.txt\n"},
            "upstream has no file gone.txt (requirements.txt:1); drop the line with a patch (replace-text)",
        ),
        (
            {"requirements.txt": b"num\0py\n"},
            "requirements.txt cannot be read as text: it has NUL bytes; save it as UTF-8",
        ),
    ],
    ids=["itself", "round-about", "gone", "nul"],
)
def test_files_that_cannot_be_read(files: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.read_all((FILE,), {PurePosixPath(name): data for name, data in files.items()})
    assert str(caught.value) == sentence


def test_file_that_is_included_twice_is_no_loop() -> None:
    contents = {"requirements.txt": b"-r a.txt\n-r b.txt\n", "a.txt": b"-r b.txt\n", "b.txt": b"numpy\n"}
    found = requirements_for_locks.read_all((FILE,), {PurePosixPath(name): data for name, data in contents.items()})
    assert list(map(str, found.paths)) == ["requirements.txt", "a.txt", "b.txt"]


def asked(text: str) -> AskedRequirements:
    """Read one requirement file."""
    return requirements_for_locks.read_all((FILE,), {FILE: text.encode()})


def test_pins_are_read_from_fragment_and_option() -> None:
    text = (
        f"x @ https://example.org/x-1-py3-none-any.whl#sha256={SHA.upper()}\n"
        f"y @ https://example.org/y.tar.gz \\\n  --hash=sha256:{SHA}\nz==1 --hash=sha256:{SHA}\n"
    )
    assert requirements_for_locks.pins(asked(text)) == (
        Pin(name="x", url="https://example.org/x-1-py3-none-any.whl", sha256=SHA),
        Pin(name="y", url="https://example.org/y.tar.gz", sha256=SHA),
    )
    assert [pin.is_wheel for pin in requirements_for_locks.pins(asked(text))] == [True, False]


ASKED = f"""\
idna==3.7 --hash=sha256:{SHA.upper()} \\
    --hash=sha256:{"cd" * 32}
idna; sys_platform == "win32" --hash=sha256:{"ef" * 32}
"""


@pytest.mark.parametrize(
    ("chosen", "platform", "refused"),
    [
        pytest.param({"idna": SHA}, "linux", "", id="first"),
        pytest.param({"idna": "cd" * 32}, "linux", "", id="second"),
        pytest.param({"idna": SHA}, "win32", "idna has sha256 ababab.* none of the 1 .*requirements.txt:3", id="marker"),
        pytest.param({"idna": "0" * 64}, "linux", "idna has sha256 000000.* none of the 2 .*requirements.txt:1", id="none"),
        pytest.param({"torch": SHA}, "linux", "", id="not-asked-for"),
    ],
)  # fmt: skip
def test_chosen_file_is_one_that_upstream_allows(chosen: dict[str, str], platform: str, refused: str) -> None:
    wanted = {NormalizedName(name): Sha256(sha256) for name, sha256 in chosen.items()}
    markers = {**default_environment(), "sys_platform": platform}
    with pytest.raises(RequirementsError, match=refused) if refused else contextlib.nullcontext():
        requirements_for_locks.require_hashes(asked(ASKED), wanted, markers)


@pytest.mark.parametrize(
    ("path", "value", "directory", "found"),
    [
        pytest.param("r.txt", "base.txt", ".", "base.txt", id="beside"),
        pytest.param("a/r.txt", "../base.txt", ".", "base.txt", id="above"),
        pytest.param("r.txt", "./a/./b/../c.txt", ".", "a/c.txt", id="round-about"),
        pytest.param("r.txt", "../../base.txt", "apps/x", "../../base.txt", id="root-of-the-repository"),
        pytest.param("r.txt", "../y/base.txt", "apps/x", "../y/base.txt", id="another-app"),
        pytest.param("r.txt", "../x/base.txt", "apps/x", "base.txt", id="own-folder"),
        pytest.param("../../base.txt", "apps/x/more.txt", "apps/x", "more.txt", id="back-again"),
        pytest.param("../../base.txt", "more.txt", "apps/x", "../../more.txt", id="beside-one-outside"),
        pytest.param("r.txt", "../../../base.txt", "apps/x", None, id="outside"),
        pytest.param("r.txt", "../../../repo/base.txt", "apps/x", None, id="outside-and-back"),
        pytest.param("r.txt", "/base.txt", ".", None, id="absolute"),
    ],
)
def test_included_file_is_named_from_the_apps_folder(path: str, value: str, directory: str, found: str | None) -> None:
    named = requirements_for_locks.resolve_include(PurePosixPath(path), value, PurePosixPath(directory))
    assert named == (None if found is None else PurePosixPath(found))


TREE = {
    "requirements.txt": b"-r ../../base.txt\n-c bounds.txt\nsix\n",
    "bounds.txt": b"idna<4\n-r needed.txt\n-c more.txt\n",
    "needed.txt": b"attrs\n",
    "more.txt": b"attrs<30\n",
}
OUTER = {"../../base.txt": b"-r shared/common.in\nnumpy \\\n  >=1\n", "../../shared/common.in": b"# last \\\nidna\n"}


def test_what_the_repository_has_outside_the_apps_folder_is_read() -> None:
    others = {PurePosixPath(name): data for name, data in OUTER.items()}
    found = requirements_for_locks.read_all(
        (FILE,),
        {PurePosixPath(name): data for name, data in TREE.items()},
        directory=PurePosixPath("apps/x"),
        read=others.get,
    )
    assert [(str(file.path), file.is_constraint) for file in found.files] == [
        ("requirements.txt", False),
        ("../../base.txt", False),
        ("bounds.txt", True),
        ("../../shared/common.in", False),
        ("needed.txt", False),
        ("more.txt", True),
    ]
    wanted, bounds = resolver_files.write_out(found)
    assert {str(path): data for path, data in wanted.items()} == {
        "upstream/requirements.txt": b"\n\nsix\n",
        "repository/2/base.txt": b"\nnumpy    >=1\n",
        "repository/2/shared/common.in": b"# last \\\nidna\n",
        "upstream/needed.txt": b"attrs\n",
    }
    assert {str(path): data for path, data in bounds.items()} == {
        "upstream/bounds.txt": b"idna<4\n\n\n",
        "upstream/more.txt": b"attrs<30\n",
    }


@pytest.mark.parametrize(
    ("text", "given"),
    [
        pytest.param("six \\\n# note \\\nattrs\nidna\n", "six  # note \nattrs\nidna\n", id="comment"),
        pytest.param("six \\\r\n# note \\\\\r\nattrs\r\n", "six  # note \r\nattrs\r\n", id="two-backslashes"),
        pytest.param("six \\\n\nattrs\n", "six  \nattrs\n", id="blank-line"),
        pytest.param("six # note \\\nattrs\nidna\n", "six # note  attrs\nidna\n", id="behind-a-requirement"),
        pytest.param("six\\", "six", id="end-of-the-file"),
        pytest.param("\u00a0six\n\f\nidna\u3000\n", " six\n \nidna \n", id="odd-blanks"),
    ],
)
def test_lines_are_joined_where_pip_joins_them(text: str, given: str) -> None:
    files, _ = resolver_files.write_out(requirements_for_locks.read_all((FILE,), {FILE: text.encode()}))
    assert files == {PurePosixPath("upstream/requirements.txt"): given.encode()}


def test_each_file_has_a_place_of_its_own() -> None:
    files = {
        "pyproject.toml": b'[project]\ndependencies = ["six"]\n',
        "pyproject.toml.txt": b"attrs\n",
        "own/setup.cfg": b"[options]\ninstall_requires = file: deps.txt\n",
        "own/deps.txt": b"idna\n-c setup.cfg.txt\n",
        "own/setup.cfg.txt": b"idna<4\n",
    }
    contents = {PurePosixPath(name): data for name, data in files.items()}
    entries = tuple(map(PurePosixPath, ("pyproject.toml", "pyproject.toml.txt", "own/setup.cfg")))

    wanted, bounds = resolver_files.write_out(requirements_for_locks.read_all(entries, contents))

    assert {str(path): data for path, data in wanted.items()} == {
        "upstream/pyproject.toml.txt.txt": b"six\n",
        "upstream/pyproject.toml.txt": b"attrs\n",
        "upstream/own/setup.cfg.txt.txt": b"",
        "upstream/own/deps.txt": b"idna\n\n",
    }
    assert {str(path): data for path, data in bounds.items()} == {"upstream/own/setup.cfg.txt": b"idna<4\n"}


def test_file_that_bounds_and_is_required_is_required() -> None:
    files = {"requirements.txt": b"-c a.txt\n-r a.txt\n", "a.txt": b"-c b.txt\nsix\n", "b.txt": b"six<2\n"}
    found = requirements_for_locks.read_all((FILE,), {PurePosixPath(name): data for name, data in files.items()})
    assert [(str(file.path), file.is_constraint) for file in found.files] == [
        ("requirements.txt", False),
        ("a.txt", False),
        ("b.txt", True),
    ]


@pytest.mark.parametrize(
    ("name", "text", "wanted", "sentence"),
    [
        pytest.param(
            "requirements.txt",
            "-r pyproject.toml\n",
            OptionalLists(),
            (
                "pyproject.toml is not a requirement file of pip's (requirements.txt:1); drop the line with a patch "
                "(replace-text)"
            ),
            id="include-of-another-format",
        ),
        pytest.param(
            "requirements.txt",
            "six\n",
            OptionalLists(extras=(canonicalize_name("web"),)),
            'upstream has no extra "web" (requirements.txt); correct `extras` in app.toml',
            id="extra-of-a-format-without",
        ),
        pytest.param(
            "pyproject.toml",
            "[project]\n[dependency-groups]\ndev = []\nlint = []\n",
            OptionalLists(groups=(canonicalize_name("web"),)),
            'upstream has no group "web" (pyproject.toml); correct `groups` in app.toml; there are dev, lint',
            id="unknown-group",
        ),
        pytest.param(
            "setup.cfg",
            "[options]\ninstall_requires = file: gone.txt\n",
            OptionalLists(),
            "upstream has no file gone.txt (setup.cfg:2); drop the line with a patch (replace-text)",
            id="file-of-a-dynamic-list",
        ),
        pytest.param(
            "Pipfile",
            '[packages]\nsix = "*"\n',
            OptionalLists(),
            (
                "Pipfile is none of the files that requirements are read from: pip's requirement files, pyproject.toml, "
                "setup.cfg, setup.py and conda's environment.yml (Pipfile:1); name the file that says it in `requirements` "
                "of app.toml, or write one with a patch (add-file); `pipenv requirements > requirements.txt` beside it writes "
                "what it asks for to a file that is"
            ),
            id="pipfile",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\ndependencies = ["six"]\n[tool.uv.sources]\nsix = { git = "https://github.com/o/six" }\n',
            OptionalLists(),
            (
                '"git+https://github.com/o/six" is a place, not a version, and a lock names files by their sha256 '
                "(pyproject.toml:4); it names no commit of 40 digits, and changes; write `six @ "
                "https://github.com/o/six/archive/<commit>.tar.gz#sha256=…` with a patch (replace-text), and add [[build]] "
                "and [[metadata]] for six"
            ),
            id="source-of-uv",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\ndependencies = ["six"]\n[tool.uv.sources]\nsix = { index = "other" }\n',
            OptionalLists(),
            (
                '`six` is to come from the index "other", and a lock asks the profile\'s indexes only (pyproject.toml:4); '
                'drop the key with a patch (delete-key, key = "tool.uv.sources.six")'
            ),
            id="index-of-uv",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\ndependencies = []\n[tool.uv]\noverride-dependencies = ["six @ file:///srv/six"]\n',
            OptionalLists(),
            (
                '"file:///srv/six" is a place, not a version, and a lock names files by their sha256 (pyproject.toml:4); '
                f"{HERE}"
            ),
            id="override-at-a-place",
        ),
    ],
)
def test_what_is_asked_for_and_cannot_be_had(name: str, text: str, wanted: OptionalLists, sentence: str) -> None:
    path = PurePosixPath(name)
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.read_all((path,), {path: text.encode()}, wanted=wanted)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        pytest.param(
            "setup.cfg",
            "[metadata]\nname = own\n[options]\npython_requires = >=3.8,<3.11\ninstall_requires =\n    six\n",
            ("setup.cfg:4 asks for Python <3.11,>=3.8, and the profile has 3.11",),
            id="setup-cfg",
        ),
        pytest.param(
            "setup.py",
            "from setuptools import setup\nsetup(\n  python_requires='<3.11', install_requires=['six'])\n",
            ("setup.py:3 asks for Python <3.11, and the profile has 3.11",),
            id="setup-py",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nrequires-python = ">=3.12"\ndependencies = []\n',
            ("pyproject.toml:2 asks for Python >=3.12, and the profile has 3.11",),
            id="newer",
        ),
        pytest.param(
            "pyproject.toml",
            '[tool.poetry.dependencies]\npython = "~3.10"\n',
            ("pyproject.toml:2 asks for Python <3.11,>=3.10, and the profile has 3.11",),
            id="poetry",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nrequires-python = ">=3.11.4,<3.12"\ndependencies = []\n',
            (),
            id="later-release",
        ),
        pytest.param(
            "pyproject.toml", '[project]\nrequires-python = "three"\ndependencies = []\n', (), id="no-specifier"
        ),
        pytest.param("pyproject.toml", "[project]\ndependencies = []\n", (), id="unbound"),
    ],
)
def test_project_that_does_not_allow_the_python_is_named(name: str, text: str, wanted: tuple[str, ...]) -> None:
    path = PurePosixPath(name)
    found = requirements_for_locks.read_all((path,), {path: text.encode()})
    assert found.excluding(Version("3.11")) == wanted


ROOT_OF_WORKSPACE = (
    '[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/out"]\n'
    "[tool.uv.sources]\nOther = { workspace = true }\n[tool.uv]\noverride-dependencies = [{}]\n"
)
MEMBER = b'[project]\ndependencies = ["other>=1", "six"]\n'


@pytest.mark.parametrize(
    ("folder", "overrides", "member", "sentence"),
    [
        pytest.param(
            "packages/own",
            "",
            MEMBER,
            (
                "[tool.uv.sources] of the workspace says where `Other` comes from (../../pyproject.toml:5); drop the "
                "requirement from the member with a patch (drop-requirement), and name what stands for it in `requirements`"
            ),
            id="source",
        ),
        pytest.param("packages/own", "", MEMBER.replace(b"other", b"idna"), "", id="nothing-about-it"),
        pytest.param("packages/out", '"six<1"', MEMBER, "", id="excluded"),
        pytest.param("apps/own", '"six<1"', MEMBER, "", id="no-member"),
    ],
)
def test_member_of_a_workspace_is_not_read_alone(folder: str, overrides: str, member: bytes, sentence: str) -> None:
    root = ROOT_OF_WORKSPACE.replace("[{}]", f"[{overrides}]").encode()
    path = PurePosixPath("pyproject.toml")
    with pytest.raises(RequirementsError) if sentence else contextlib.nullcontext() as caught:
        requirements_for_locks.read_all(
            (path,),
            {path: member},
            directory=PurePosixPath(folder),
            read={PurePosixPath("../../pyproject.toml"): root}.get,
        )
    assert (str(caught.value) if caught is not None else "") == sentence


SETTINGS = (
    'override-dependencies = ["six<1"]\nconstraint-dependencies = ["idna<3"]\nexclude-dependencies = ["Attrs"]\n'
    'prerelease = "allow"\nindex-url = "https://e.org/simple"\n'
)
UNREAD = [
    '{}{}: "{}index-url" would let another place say what a name means, and a lock asks one index only',
    "{}{}: the setting {}prerelease is not read",
]


@pytest.mark.parametrize(
    ("directory", "file", "text", "named"),
    [
        pytest.param(
            ".",
            "uv.toml",
            SETTINGS,
            [UNREAD[0].format("uv.toml:", 5, ""), UNREAD[1].format("uv.toml:", 4, "")],
            id="uv-toml",
        ),
        pytest.param(
            "packages/own",
            "../../pyproject.toml",
            f'[tool.uv.workspace]\nmembers = ["packages/*"]\n[tool.uv]\n{SETTINGS}',
            [
                UNREAD[0].format("../../pyproject.toml:", 8, "tool.uv."),
                UNREAD[1].format("../../pyproject.toml:", 7, "tool.uv."),
            ],
            id="workspace",
        ),
    ],
)
def test_settings_of_uv_in_another_file_count(directory: str, file: str, text: str, named: list[str]) -> None:
    path = PurePosixPath("pyproject.toml")
    found = requirements_for_locks.read_all(
        (path,),
        {path: b'[project]\ndependencies = ["six", "idna", "attrs"]\n'},
        directory=PurePosixPath(directory),
        read={PurePosixPath(file): text.encode()}.get,
    )
    assert found.paths == (path, PurePosixPath(file))
    assert [str(line.requirement) for _, line in found.overrides] == ["six<1"]
    assert [str(line.requirement) for _, line in found.constraints] == ["idna<3"]
    assert found.exclusions == ("attrs",)
    assert list(found.not_covered) == named


def test_settings_of_uv_that_cannot_be_read_are_refused() -> None:
    files = {"pyproject.toml": b"[project]\ndependencies = []\n", "uv.toml": b'override-dependencies = ["six six"]\n'}
    contents = {PurePosixPath(name): data for name, data in files.items()}
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.read_all((PurePosixPath("pyproject.toml"),), contents)
    assert str(caught.value) == (
        "`override-dependencies` has what is not a requirement: Expected semicolon (after name with no version specifier) or "
        "end (uv.toml:1); correct the line upstream, or add a patch with the op replace-text"
    )


@pytest.mark.parametrize(
    ("entry", "other", "text", "sentence"),
    [
        pytest.param(
            "setup.py",
            "pyproject.toml",
            "[build-system]\nrequires = []\n[project]\ndependencies = []\n",
            "[project] in own/pyproject.toml counts in place of own/setup.py (own/pyproject.toml:3); name own/pyproject.toml in "
            "`requirements` of app.toml",
            id="project",
        ),
        pytest.param("setup.py", "pyproject.toml", '[project]\ndynamic = ["dependencies"]\n', "", id="dynamic"),
        pytest.param("setup.py", "pyproject.toml", "[build-system]\nrequires = []\n", "", id="no-project"),
        pytest.param(
            "setup.cfg",
            "setup.py",
            "from setuptools import setup\nsetup(\n    install_requires=read(),\n)\n",
            "`install_requires` of setup() in own/setup.py counts in place of own/setup.cfg (own/setup.py:3); name own/setup.py "
            "in `requirements` of app.toml",
            id="setup-py",
        ),
        pytest.param("setup.cfg", "setup.py", "from setuptools import setup\nsetup()\n", "", id="setup-py-without"),
    ],
)
def test_file_in_whose_place_another_one_counts_is_refused(entry: str, other: str, text: str, sentence: str) -> None:
    own = {"setup.py": "setup(install_requires=['six'])\n", "setup.cfg": "[options]\ninstall_requires =\n  six\n"}
    contents = {PurePosixPath(f"own/{entry}"): own[entry].encode(), PurePosixPath(f"own/{other}"): text.encode()}
    with pytest.raises(RequirementsError) if sentence else contextlib.nullcontext() as caught:
        requirements_for_locks.read_all((PurePosixPath(f"own/{entry}"),), contents)
    assert (str(caught.value) if caught is not None else "") == sentence
