"""A wheel of the lock is built from its source where a person asks for it, and where this machine can."""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import backend, files, needs_compiler
from conftest import Said
from miniature import World, lock_here, wheel
from sdists import ask, offer

from patchlock.cli import _output
from patchlock.distributions import wheelhouse
from patchlock.model.digests import sha256

pytestmark = needs_compiler
Face = Callable[..., Said]
RECIPE = """
[[recipe]]
name = "delta"
versions = "==1.0"
needs = ["cc"]
environment = {{ CFLAGS = "-DANSWER=6" }}
test = ["python", "-c", "import delta; assert delta.answer() == 7"]
why = "x"
source = "tests"

[recipe.archive]
option = "delta-from-source"
url = "https://example.org/delta-v1.0.tar.gz"
sha256 = "{sha256}"
requires = ["compiling"]
hours = 3
processors = 2
memory-gb = 1
disk-gb = 1
gives = "delta built here"
"""


@pytest.fixture
def app(world: World, face: Face, tmp_path: Path) -> World:
    """Lock the wheel of delta, with a recipe for an archive of its repository, which lies in the cache."""
    offer(
        world,
        wheel(world.wheels, "delta", "1.0", files={"delta.py": "def answer():\n    return 42\n"}),
        backend(world),
    )
    archive = tmp_path / "delta-v1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for path, text in {**files(), "csrc/delta.c": files()["delta.c"]}.items():
            member = tarfile.TarInfo(f"delta-v1.0/{path}")
            member.size = len(text)
            if path == "delta.c":  # as repositories have it
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "csrc/delta.c", 0
            packed.addfile(member, io.BytesIO(text.encode()) if member.isreg() else None)
    digest = sha256(archive.read_bytes())
    kept = wheelhouse.place(tmp_path / "cache", digest, archive.name)
    kept.parent.mkdir(parents=True)
    archive.rename(kept)
    ask(world, b"alpha==9.0\nbeta\ndelta\n", tmp_path, RECIPE.format(sha256=digest))
    world.app.write_text(world.app.read_text().replace('present = ["alpha", ', 'present = ["delta", "alpha", '))
    done = face(*lock_here())
    assert done.returncode == 0, done.stderr
    return world


def generation(tmp_path: Path) -> Path:
    place = tmp_path / "installed" / "mini@tiny"
    return place / "environments" / (place / "current").read_text().strip()


def built(tmp_path: Path) -> list[str]:
    found = generation(tmp_path) / "builds.toml"
    return [one["file"] for one in tomllib.loads(found.read_text())["wheel"]] if found.is_file() else []


def test_the_wheel_is_taken_unless_somebody_asks(app: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini").returncode == 0
    assert built(tmp_path) == []
    done = face("install", "mini", "--from-source", "delta")
    assert done.returncode == 0, done.stderr
    cost = "delta built here; it takes about 3 hours on 2 CPU cores, 953.7 MiB of memory and 953.7 MiB of disk"
    assert f"delta-from-source: {cost}\n" in done.stderr
    assert "chosen    delta-from-source" in done.stdout
    [file] = built(tmp_path)
    assert file.startswith("delta-1.0-cp")
    assert list(generation(tmp_path).glob("**/delta.*.so"))
    assert face("verify", "mini").returncode == 0
    # It stays chosen, and is not built twice.
    [log] = (tmp_path / "cache" / "builds").glob("*/log.txt")
    before = log.stat().st_mtime_ns
    assert face("install", "mini", "--reinstall").returncode == 0
    assert built(tmp_path) == [file]
    assert log.stat().st_mtime_ns == before
    assert face("install", "mini", "--without", "delta-from-source").returncode == 0
    assert built(tmp_path) == []


def test_what_it_costs_is_told_beforehand(app: World, face: Face) -> None:
    assert "optional  delta-from-source: delta built here; it takes about 3 hours" in face("plan", "mini").stdout
    done = face("plan", "mini", "--from-source", "delta", "--json")
    [option] = json.loads(done.stdout)["data"]["optional"]
    assert (option["name"], option["chosen"]) == ("delta-from-source", True)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('needs = ["cc"]', 'needs = ["cc", "nvcc"]', "nvcc must be there for building delta-from-source"),
        ("memory-gb = 1", "memory-gb = 99000", "delta-from-source needs 92200.9 GiB of memory; this machine has "),
        ("disk-gb = 1", "disk-gb = 99000", "delta-from-source needs 92200.9 GiB of disk in "),
    ],
    ids=["program", "memory", "disk"],
)
def test_it_is_refused_where_it_cannot_be(
    app: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, why: str
) -> None:
    if "nvcc" in new:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    app.app.write_text(app.app.read_text().replace(old, new))
    assert face(*lock_here()).returncode == 0
    done = face("install", "mini", "--from-source", "delta")
    assert done.returncode == 1
    assert "error[not-ready]" in done.stderr
    assert why in done.stderr
    assert not (tmp_path / "installed" / "mini@tiny" / "environments").exists()


def test_on_a_terminal_it_is_asked(app: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "can_ask", lambda: True)
    monkeypatch.setattr(_output, "agreed", lambda *_, **__: False)
    done = face("install", "mini", "--profile", "tiny", "--from-source", "delta")
    assert done.returncode == 0
    assert done.stderr.endswith(
        "nothing was built, and nothing was touched; to use the wheel: patchlock install mini --profile tiny "
        "--without delta-from-source\n"
    )
    assert not (tmp_path / "installed" / "mini@tiny" / "environments").exists()


def test_a_lock_of_another_version_has_no_recipe(app: World, face: Face) -> None:
    app.app.write_text(app.app.read_text().replace('versions = "==1.0"', 'versions = "==2.0"'))
    assert face(*lock_here()).returncode == 0
    done = face("install", "mini", "--from-source", "delta")
    assert done.returncode == 1
    assert "delta-from-source is for delta ==2.0, and the lock has 1.0" in done.stderr


def test_what_nobody_offers_is_refused(app: World, face: Face) -> None:
    done = face("install", "mini", "--from-source", "beta")
    assert done.returncode == 2
    assert (
        'mini has no recipe that builds beta from its source on tiny; did you mean "delta-from-source"?' in done.stderr
    )
