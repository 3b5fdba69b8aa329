"""Edits become patches of the catalogue that do what the edits say."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath

import pytest
from miniature import World
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue, patch_file
from patchlock.locks.conflicts import _provenance, edits, model
from patchlock.locks.conflicts._search import Correction
from patchlock.locks.conflicts.model import Solved
from patchlock.patches import engine

LATER = (
    "lock with `--as-of now` (`--as-of none` where the index has no upload times), or give what has to be newer a "
    "[[newer]] table"
)

FILE = PurePosixPath("requirements.txt")


def mended(
    world: World, raw: bytes, edit: str, why: str = "it must be", *, leaves_fitting: bool = False, **versions: str
) -> tuple[edits.Remedy, str]:
    """Make the remedy of one edit, `free alpha`, and the requirement file that it leads to."""
    catalogue = Catalogue(root=world.catalogue)
    app, profile = catalogue.app("mini"), catalogue.profile("tiny")
    before = {FILE: raw}
    patched = before | {change.path: change.after for change in engine.apply(app.patches, before).changes}
    members = _provenance.members(app, profile, before, patched, {"python_version": "3.11"})
    every = model.atoms(members, has_cut_off=True)
    kind, _, name = edit.partition(" ")
    chosen = next(one for one in model.edits(members, every) if one.kind == kind and name in (*one.names, ""))
    found = {canonicalize_name(one): Version(version) for one, version in versions.items()}
    correction = Correction(edits=(chosen,), solved=Solved(versions=found, via={}))
    remedy = edits.remedy(members, correction, app.patches, {chosen: why}, leaves_fitting=leaves_fitting)
    files = edits.applied(app.patches, remedy, before, patched)
    assert files is not None
    return remedy, files[FILE].decode()


@pytest.mark.parametrize(
    ("raw", "edit", "version", "after"),
    [
        (b"beta==1.0  # old\r\n", "free beta", "1.5", "beta==1.5  # old\r\n"),
        (b"beta[x]==1.0; python_version>'3'\n", "free beta", "1.5", "beta[x]==1.5; python_version>'3'\n"),
        (b"beta<1.0\n", "free beta", "1.5", "beta<1.6\n"),
        (b"beta>=2.0\n", "free beta", "1.5", "beta<=1.5\n"),
        (b"beta==1.*\nbeta==1.*\n", "free beta", "2.0+cpu", "beta==2.0\nbeta==2.0\n"),
        (b"gamma\nbeta==1.0\n", "drop beta", "1.5", "gamma\n"),
        (
            b"beta==1.0; python_version<'3.10'\nbeta==1.1; python_version>='3.10'\n",
            "free beta",
            "1.5",
            "beta==1.0; python_version<'3.10'\nbeta==1.5; python_version>='3.10'\n",
        ),
    ],
    ids=["pin", "extras-and-marker", "upper-bound", "lower-bound", "twice", "drop", "line-of-another-python"],
)
def test_edit_of_upstreams_line(world: World, raw: bytes, edit: str, version: str, after: str) -> None:
    remedy, text = mended(world, raw, edit, beta=version)
    assert text == after
    (patch,) = tomllib.loads(remedy.toml)["patch"]
    assert (patch["why"], patch["paths"], patch["name"]) == ("it must be", ["requirements.txt"], "beta")
    assert patch["source"].startswith("TODO")


def test_tables_are_read_by_the_catalogue_as_they_were_meant(world: World, tmp_path: Path) -> None:
    remedy, _ = mended(world, b"beta==1.0\n", "free beta", beta="1.5")
    (tmp_path / "new.toml").write_text(remedy.toml)
    (read,) = patch_file(tmp_path / "new.toml")
    assert (read.op, read.ensures) == (remedy.written[0].patch.op, remedy.written[0].patch.ensures)


def test_pin_of_a_patch_is_changed_in_that_patch(world: World) -> None:
    remedy, text = mended(world, b"alpha==9.0\n", "free alpha", alpha="2.0")
    assert text == "alpha==2.0\n"
    (patch,) = tomllib.loads(remedy.toml)["patch"]
    assert (patch["id"], patch["why"]) == ("alpha-that-exists", "alpha 9 was deleted from the index")
    assert (patch["specifier"], patch["ensure"][0]["specifier"]) == ("==2.0", "==2.0")


ADDED = """
[[patch]]
id = "needs-delta"
why = "x"
source = "tests"
op = "add-requirement"
paths = ["requirements.txt"]
requirement = "delta==1.0"
profiles = ["tiny"]

[[patch.ensure]]
check = "requirement"
name = "delta"
specifier = "==1.0"
"""


def test_remedy_for_some_profiles_leaves_the_others_as_they_are(world: World) -> None:
    app = Catalogue(root=world.catalogue).app("mini")
    of_upstream, _ = mended(world, b"beta==1.0\n", "free beta", beta="1.5")
    of_patch, _ = mended(world, b"alpha==9.0\n", "free alpha", alpha="2.0")

    (new,) = tomllib.loads(edits.bounded(of_upstream, app.patches, ("tiny",), ("other",)).toml)["patch"]
    old, changed = tomllib.loads(edits.bounded(of_patch, app.patches, ("tiny",), ("other",)).toml)["patch"]

    assert new["profiles"] == ["tiny"]
    assert (old["id"], old["profiles"], old["specifier"]) == ("alpha-that-exists", ["other"], "==1.0")
    assert (changed["id"], changed["profiles"], changed["specifier"]) == ("alpha-that-exists-2", ["tiny"], "==2.0")
    assert (old["why"], changed["why"]) == ("alpha 9 was deleted from the index", "it must be")
    assert changed["source"].startswith("TODO")


@pytest.mark.parametrize(
    ("versions", "changed"),
    [
        pytest.param({"torch": "2.13.0", "torchaudio": "2.11.0"}, ["torchaudio==2.9.0"], id="one"),
        pytest.param({"torch": "1.9", "torchaudio": "2.11.0"}, ["torch>=2.0", "torchaudio==2.9.0"], id="both"),
    ],
)
def test_bound_of_the_family_that_allows_what_resolves_is_left(
    world: World, versions: dict[str, str], changed: list[str]
) -> None:
    raw = b"torch>=2.0\ntorchaudio==2.9.0\n"
    why = "torchaudio==2.9.0 cannot be installed"
    remedy, _ = mended(world, raw, "free torch", why, leaves_fitting=True, **versions)
    assert [str(one.member.requirement) for one in remedy.changes if one.member] == changed
    whys = {one.patch.id.partition("-")[0]: one.patch.why for one in remedy.written}
    assert {"torch": f"torch must fit torchaudio, and {why}", "torchaudio": why}.items() >= whys.items()


def test_requirement_that_a_patch_adds_is_changed_there_and_only_for_its_profile(world: World) -> None:
    world.app.write_text(world.app.read_text() + ADDED)
    remedy, text = mended(world, b"beta\n", "free delta", delta="1.2")
    assert text == "beta\ndelta==1.2\n"
    (patch,) = tomllib.loads(remedy.toml)["patch"]
    assert (patch["requirement"], patch["profiles"], patch["ensure"][0]["specifier"]) == (
        "delta==1.2",
        ["tiny"],
        "==1.2",
    )


def test_requirement_that_a_patch_adds_is_dropped_with_the_patch(world: World) -> None:
    world.app.write_text(world.app.read_text() + ADDED)
    remedy, text = mended(world, b"beta\n", "drop delta")
    assert (text, remedy.toml) == ("beta\n", "")
    (sentence,) = remedy.by_hand
    assert sentence.startswith("remove the patch needs-delta (patches/mini/app.toml:")


def test_the_cut_off_is_no_patch(world: World) -> None:
    remedy, text = mended(world, b"beta\n", "later")
    assert (text, remedy.toml) == ("beta\n", "")
    assert remedy.by_hand == (LATER,)


@pytest.mark.parametrize(
    ("old", "version", "new"),
    [
        ("==1", "2.1", "==2.1"),
        ("<1", "2", "<2.1"),
        (">=1,<2", "3", ">=1,<3.1"),
        ("<=1", "2rc1", ">=2rc1"),
        ("~=2.0", "1.4", "<=1.4"),
        ("!=1", "2", ">=2"),
    ],
)
def test_new_bound_is_written_as_the_old_one(old: str, version: str, new: str) -> None:
    assert edits.updated_specifier(SpecifierSet(old), Version(version)) == SpecifierSet(new)
