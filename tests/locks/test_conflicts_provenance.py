"""Who asked: upstream by its own lines, patches by their place in the catalogue, constraints by theirs."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from miniature import World

from patchlock.catalogue.reader import Catalogue
from patchlock.locks.conflicts import _provenance
from patchlock.patches import engine

FILE = PurePosixPath("requirements.txt")


def told(world: World, raw: dict[str, str]) -> list[str]:
    """Say each member in one line."""
    catalogue = Catalogue(root=world.catalogue)
    app, profile = catalogue.app("mini"), catalogue.profile("tiny")
    before = {PurePosixPath(name): text.encode() for name, text in raw.items()}
    changed = engine.apply(app.patches, before).changes
    after = before | {change.path: change.after for change in changed}
    found = _provenance.members(app, profile, before, after, {})
    return [f"{m.requirement} {m.requester} {m.requester.place}{' bounds' if m.is_constraint else ''}" for m in found]


def line_of(path: Path, text: str) -> int:
    return path.read_text().splitlines().index(text) + 1


def test_a_line_that_a_patch_wrote_is_the_patchs_and_the_others_keep_upstreams_line(world: World) -> None:
    patch = line_of(world.app, "[[patch]]")
    assert told(world, {"requirements.txt": "# first\nbeta>=1\nalpha==9.0\n"}) == [
        "beta>=1 upstream requirements.txt:2",
        f"alpha==1.0 patch alpha-that-exists patches/mini/app.toml:{patch}",
    ]


def test_a_patch_that_had_nothing_to_do_has_asked_for_nothing(world: World) -> None:
    assert told(world, {"requirements.txt": "alpha==1.0\n"}) == ["alpha==1.0 upstream requirements.txt:1"]


def test_lines_below_a_dropped_one_keep_upstreams_numbers(world: World) -> None:
    world.app.write_text(
        world.app.read_text()
        + '\n[[patch]]\nid = "no-beta"\nwhy = "x"\nsource = "tests"\nop = "drop-requirement"\n'
        + 'paths = ["requirements.txt"]\nname = "beta"\n\n[[patch.ensure]]\ncheck = "no-requirement"\nname = "beta"\n'
    )
    assert told(world, {"requirements.txt": "beta\ngamma\ngamma\n"}) == [
        "gamma upstream requirements.txt:2",
        "gamma upstream requirements.txt:3",
    ]


@pytest.mark.parametrize("option", ["-c", "--constraint"])
def test_a_constraint_file_of_upstream_bounds_and_does_not_ask(world: World, option: str) -> None:
    raw = {"requirements.txt": f"beta\n{option} lists/bounds.txt\n-r lists/more.txt\n", "lists/bounds.txt": "gamma<3\n"}
    raw |= {"lists/more.txt": "gamma\n-r ../last.txt\n", "last.txt": "delta\n"}
    assert told(world, raw) == [
        "beta upstream requirements.txt:1",
        "gamma<3 upstream lists/bounds.txt:1 bounds",
        "gamma upstream lists/more.txt:1",
        "delta upstream last.txt:1",
    ]


def test_constraints_of_the_profile_and_the_app_are_named(world: World) -> None:
    for path in (world.profile, world.app):
        path.write_text(path.read_text() + '\n[[constraint]]\nrequirement = "gamma<3"\nwhy = "x"\nsource = "tests"\n')
    places = {path: line_of(path, "[[constraint]]") for path in (world.profile, world.app)}
    assert told(world, {"requirements.txt": "beta\n"})[1:] == [
        f"gamma<3 profile tiny profiles/tiny.toml:{places[world.profile]} bounds",
        f"gamma<3 app mini patches/mini/app.toml:{places[world.app]} bounds",
    ]
