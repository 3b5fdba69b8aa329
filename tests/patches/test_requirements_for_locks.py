"""Lines of requirement files that no lock can be made from: each is told with its place and what to write instead."""

from __future__ import annotations

import contextlib
from pathlib import PurePosixPath

import pytest
from packaging.markers import default_environment
from packaging.utils import NormalizedName

from patchlock.model.errors import RequirementsError
from patchlock.model.identities import Sha256
from patchlock.patches import requirements_for_locks
from patchlock.patches.requirements_for_locks import Pin

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
            UNREADABLE.format('it is not a requirement that pip can read ("\u0440" is CYRILLIC SMALL LETTER ER)'),
        ),
        (
            "idna===3.7-foo",
            (
                '"idna===3.7-foo" asks for 3.7-foo, which is no version (requirements.txt:2); set a version with a '
                "patch (set-requirement); see "
                "https://packaging.python.org/en/latest/specifications/version-specifiers/"
            ),
        ),
        ("encodec phonemizer", UNREADABLE.format("it is not a requirement that pip can read")),
    ],
)
def test_line_that_no_lock_can_be_made_from(line: str, sentence: str) -> None:
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.included((FILE,), {FILE: f"numpy\n{line}\n".encode()})
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
    ],
)
def test_line_that_a_lock_can_be_made_from(line: str) -> None:
    assert requirements_for_locks.included((FILE,), {FILE: f"{line}\n".encode()}) == (FILE,)


def test_other_lines_are_told_too() -> None:
    with pytest.raises(RequirementsError) as caught:
        requirements_for_locks.included((FILE,), {FILE: b"-e .\n--no-index\n"})
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
        requirements_for_locks.included((FILE,), {PurePosixPath(name): data for name, data in files.items()})
    assert str(caught.value) == sentence


def test_file_that_is_included_twice_is_no_loop() -> None:
    contents = {"requirements.txt": b"-r a.txt\n-r b.txt\n", "a.txt": b"-r b.txt\n", "b.txt": b"numpy\n"}
    found = requirements_for_locks.included((FILE,), {PurePosixPath(name): data for name, data in contents.items()})
    assert list(map(str, found)) == ["requirements.txt", "a.txt", "b.txt"]


def test_pins_are_read_from_fragment_and_option() -> None:
    text = (
        f"x @ https://example.org/x-1-py3-none-any.whl#sha256={SHA.upper()}\n"
        f"y @ https://example.org/y.tar.gz \\\n  --hash=sha256:{SHA}\nz==1 --hash=sha256:{SHA}\n"
    )
    assert requirements_for_locks.pins({FILE: text.encode()}) == (
        Pin(name="x", url="https://example.org/x-1-py3-none-any.whl", sha256=SHA),
        Pin(name="y", url="https://example.org/y.tar.gz", sha256=SHA),
    )
    assert [pin.is_wheel for pin in requirements_for_locks.pins({FILE: text.encode()})] == [True, False]


ASKED = f"""\
idna==3.7 --hash=sha256:{SHA.upper()} \\
    --hash=sha256:{"cd" * 32}
idna; sys_platform == "win32" --hash=sha256:{"ef" * 32}
six --hash=sha512:{"ab" * 64}
"""


@pytest.mark.parametrize(
    ("chosen", "platform", "refused"),
    [
        pytest.param({"idna": SHA}, "linux", "", id="first"),
        pytest.param({"idna": "cd" * 32}, "linux", "", id="second"),
        pytest.param({"idna": SHA}, "win32", "idna has sha256 ababab.* none of the 1 .*requirements.txt:3", id="marker"),
        pytest.param({"idna": "0" * 64}, "linux", "idna has sha256 000000.* none of the 2 .*requirements.txt:1", id="none"),
        pytest.param({"six": SHA}, "linux", "six has .* none of the 0 .*requirements.txt:4", id="no-sha256"),
        pytest.param({"torch": SHA}, "linux", "", id="not-asked-for"),
    ],
)  # fmt: skip
def test_chosen_file_is_one_that_upstream_allows(chosen: dict[str, str], platform: str, refused: str) -> None:
    wanted = {NormalizedName(name): Sha256(sha256) for name, sha256 in chosen.items()}
    markers = {**default_environment(), "sys_platform": platform}
    with pytest.raises(RequirementsError, match=refused) if refused else contextlib.nullcontext():
        requirements_for_locks.require_hashes({FILE: ASKED.encode()}, wanted, markers)
