"""The file beside a lock that pins what its sdists are built with: written, read, and compared with its lock."""

from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.model import build_constraints
from patchlock.model.build_constraints import BuildConstraints
from patchlock.model.errors import LockFormatError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage

HASH = "0123456789abcdef" * 4
PACKAGES = (
    LockedPackage(
        name=canonicalize_name("setuptools"), version=Version("80.9"), url="", sha256=Sha256(HASH), why="builds a"
    ),
    LockedPackage(name=canonicalize_name("wheel"), version=Version("0.45"), url="", sha256=Sha256(HASH[::-1]), why=""),
)
TEXT = f"""\
# /// patchlock-build
# format = 1
# builds = ["a==1.0"]
# in-tree = ["mas"]
# ///
# Written by `patchlock lock app` beside its lock, which names the sha256 of this file; uv takes it:
# `uv pip sync --build-constraints <this file> --require-build-hashes`.
setuptools==80.9 --hash=sha256:{HASH} # builds a
wheel==0.45 --hash=sha256:{HASH[::-1]}
"""


def test_what_is_written_is_read_again() -> None:
    constraints = BuildConstraints(sdists=("a==1.0",), in_tree=("mas",), packages=PACKAGES)
    text = build_constraints.render(constraints, "patchlock lock app")
    assert text.replace("  #", " #") == TEXT
    assert build_constraints.parse(text, "a.build.txt") == PACKAGES
    without = build_constraints.render(BuildConstraints(sdists=("a==1.0",), packages=PACKAGES), "patchlock lock app")
    assert without == text.replace('# in-tree = ["mas"]\n', "")


@pytest.mark.parametrize(
    "line", ["wheel", "wheel==0.45", f"wheel==x --hash=sha256:{HASH}", f"wheel==1 --hash=sha256:{HASH[1:]}", "-r a.txt"]
)
def test_line_of_another_kind_is_an_error(line: str) -> None:
    with pytest.raises(LockFormatError) as error:
        build_constraints.parse(f"# head\n\n{line}\n", "a.build.txt")
    assert str(error.value) == (
        "a line must be one distribution with exactly one sha256 (a.build.txt:3); it is never written by hand: "
        "run `patchlock lock` for its app"
    )


def test_name_and_digest() -> None:
    assert build_constraints.filename_for("cpu.linux-x86_64.txt") == "cpu.linux-x86_64.build.txt"
    assert build_constraints.digest("a\n") == "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"


def test_file_that_a_lock_does_not_name_is_an_objection() -> None:
    named = build_constraints.digest("a\n")
    assert build_constraints.objections(named, b"a\n", "b.txt") == ()
    assert build_constraints.objections(named, b"a\r\n", "b.txt") == ()
    assert build_constraints.objections("", None, "b.txt") == ()
    assert build_constraints.objections("", b"", "b.txt") == ("b.txt is there, and the lock needs no build",)
    assert build_constraints.objections(named, b"", "b.txt") == ("b.txt was changed since the lock was written",)
    assert build_constraints.objections(named, None, "b.txt") == (
        "b.txt, which pins what builds its sdists, is missing",
    )
