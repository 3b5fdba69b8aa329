"""In-tree builds: an app's own extension is built in a copy, comes into the tree as a file of ours, and goes with it."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import CODE, needs_compiler
from conftest import Said
from miniature import World
from sdists import ask, maker, offer

from patchlock import cli
from patchlock.catalogue.reader import Catalogue

pytestmark = [needs_compiler, pytest.mark.skipif(sys.platform == "win32", reason="it calls cc")]

EXTENSION = str(sysconfig.get_config_var("EXT_SUFFIX"))
PRODUCT = f"native/built/delta{EXTENSION}"
SETUP = """\
import os, shlex, subprocess, sysconfig
target = "built/delta" + sysconfig.get_config_var("EXT_SUFFIX")
include = "-I" + sysconfig.get_path("include")
subprocess.run(["cc", "-shared", "-fPIC", include, *shlex.split(os.environ["CFLAGS"]), "delta.c", "-o", target], check=True)
open("built/left-over", "w").close()
"""
TABLE = """
[[in-tree]]
id = "delta"
folder = "native"
requires = ["maker"]
command = ["python", "-c", "import maker, runpy; runpy.run_path('setup.py')"]
products = ["built/delta.*"]
environment = { CFLAGS = "-DANSWER=1" }
needs = ["cc"]
why = "x"
source = "tests"

[[check]]
id = "answers"
kind = "command"
command = ["python", "-c", "import sys; sys.path.insert(0, 'native/built'); import delta; print('it says', delta.answer())"]
prints = "it says 2"
timeout = 60
"""


@pytest.fixture
def app(world: World, tmp_path: Path) -> World:
    """An app with an extension in its tree, locked."""
    offer(world, maker(world.wheels))
    (world.upstream / "native").mkdir()
    (world.upstream / "native" / "delta.c").write_text(CODE)
    (world.upstream / "native" / "setup.py").write_text(SETUP)
    ask(world, b"alpha==9.0\nbeta>=1\n", tmp_path, TABLE)
    assert cli.main(["lock", "mini"]) == 0
    return world


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The working tree."""
    return tmp_path / "installed" / "mini@tiny" / "source"


def _logs(tmp_path: Path) -> dict[str, int]:
    return {log.parent.name: log.stat().st_mtime_ns for log in (tmp_path / "cache" / "builds").glob("*/log.txt")}


def test_extension_comes_into_the_tree_and_goes_with_it(
    app: World, face: Callable[..., Said], source: Path, tmp_path: Path
) -> None:
    pins = (app.catalogue / "lockfiles" / "mini" / "tiny.build.txt").read_text()
    assert '\n# in-tree = ["delta"]\n' in pins
    assert "# builds delta\n" in pins
    done = face("install", "mini")
    assert done.returncode == 0, done.stderr
    assert "it says 2" in done.stdout
    there = {path.name for path in (source / "native").rglob("*")}
    assert there == {"built", f"delta{EXTENSION}", "delta.c", "setup.py"}
    receipt = json.loads(face("install", "mini", "--json").stdout)["data"]["receipt"]
    assert {PRODUCT, "native/delta.c", "native/setup.py"} <= receipt["present"].keys()
    built = _logs(tmp_path)

    (source / PRODUCT).unlink()
    assert face("install", "mini").returncode == 0
    assert ((source / PRODUCT).is_file(), _logs(tmp_path)) == (True, built)

    (source / "native" / "delta.c").write_text(f"{CODE}\nint other(void) {{ return 3; }}\n")
    assert face("install", "mini").returncode == 0
    now = _logs(tmp_path).keys() - built.keys()
    assert len(now) == 1
    planned = json.loads(face("cache", "clean", "mini", "--dry-run", "--json").stdout)["data"]["others"]
    assert [(one["what"], one["bytes"] > 0) for one in planned] == [("the build of mini:delta", True)]
    assert len(_logs(tmp_path)) == 2
    assert "KiB: the build of mini:delta, which no installation needs" in face("cache", "clean", "mini", "--yes").stdout
    assert _logs(tmp_path).keys() == now

    (source / "native" / "delta.c").write_text(CODE)
    assert face("uninstall", "mini").returncode == 0
    assert not source.parent.exists()


def test_rollback_brings_the_extension_of_its_generation_back(
    app: World, face: Callable[..., Said], source: Path, tmp_path: Path
) -> None:
    assert face("install", "mini").returncode == 0
    first = (source / PRODUCT).read_bytes()
    app.app.write_text(app.app.read_text().replace("ANSWER=1", "ANSWER=4").replace("it says 2", "it says 5"))
    assert cli.main(["lock", "mini"]) == 0
    assert face("install", "mini").returncode == 0
    second = (source / PRODUCT).read_bytes()
    assert second != first
    assert face("rollback", "mini").returncode == 0
    assert (source / PRODUCT).read_bytes() == first

    app.app.write_text(app.app.read_text().replace("ANSWER=4", "ANSWER=7"))  # and the check fails
    assert cli.main(["lock", "mini"]) == 0
    assert face("install", "mini").returncode == 1
    assert (source / PRODUCT).read_bytes() == first

    text = app.app.read_text()
    start, end = text.index("[[in-tree]]"), text.index('[[check]]\nid = "answers"')
    app.app.write_text(text[:start] + text[end:].partition('[[check]]\nid = "answers"')[0])
    assert cli.main(["lock", "mini"]) == 0
    assert face("install", "mini").returncode == 0
    assert not (source / "native" / "built").exists()


def test_extension_that_the_user_has_built_is_kept(
    app: World, face: Callable[..., Said], source: Path, tmp_path: Path
) -> None:
    text = app.app.read_text()
    app.app.write_text(text.replace("import delta; print('it says', delta.answer())", "print('it says 2')"))
    assert cli.main(["lock", "mini"]) == 0
    assert face("install", "mini").returncode == 0
    (source / PRODUCT).write_bytes(b"his")
    done = face("install", "mini")
    assert done.returncode == 0
    assert f"kept your own file instead of the built one: {PRODUCT}" in done.stderr
    assert face("uninstall", "mini").returncode == 0
    assert (source / PRODUCT).read_bytes() == b"his"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("built/delta.*", "built/other.*", "the build of delta made nothing that is called built/other.*"),
        ("-DANSWER=1", "-DANSWER=?", "the build of delta in mini failed"),
        (
            '1" }\nneeds = ["cc"]',
            '3" }\nneeds = ["cc-of-tests"]',
            "cc-of-tests must be there for the build of delta in mini",
        ),
    ],
    ids=["no product", "compile error", "no compiler"],
)
def test_build_that_fails_leaves_the_old_generation(
    app: World, face: Callable[..., Said], source: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert face("install", "mini").returncode == 0
    before = (source / PRODUCT).read_bytes()
    app.app.write_text(app.app.read_text().replace(old, new))
    assert cli.main(["lock", "mini"]) == 0
    done = face("install", "mini")
    assert done.returncode == 1
    assert says in done.stderr
    assert (source / PRODUCT).read_bytes() == before
    assert face("verify", "mini").returncode == 0


def test_requirement_that_the_lock_does_not_pin_is_refused(app: World, face: Callable[..., Said]) -> None:
    text = app.app.read_text()
    app.app.write_text(text.replace('requires = ["maker"]', 'requires = ["beta"]'))
    assert Catalogue(root=app.catalogue).app("mini").in_tree
    done = face("install", "mini")
    assert done.returncode == 1
    assert "the build of delta wants something that is not pinned" in done.stderr
    assert "patchlock lock mini" in done.stderr
