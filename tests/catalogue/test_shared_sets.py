"""Sets of patches that apps share: how an app takes them, what is told where, and what depends on their files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from miniature import APP, PROFILE
from packaging.requirements import Requirement
from test_catalogue_reader import PATCH

from patchlock.catalogue import patch_cases
from patchlock.catalogue.reader import Catalogue
from patchlock.environments import freshness
from patchlock.locks import reasons
from patchlock.locks.lock_request import Request, lock_inputs
from patchlock.model.errors import CatalogueError
from patchlock.model.lockfile import LockedPackage
from patchlock.model.origins import Origin
from patchlock.worktree import patch_sets

FILE = "patches/shared/quiet.toml"
SET = """\
[set]
title = "nothing is said"
source = "tests"

[[constraint]]
requirement = "gamma<3"
why = "w"
source = "s"

[[patch]]
id = "one"
why = "it must go"
source = "tests"
op = "set-requirement"
paths = ["{requirements}", "more/*.txt"]
name = "beta"
specifier = ">=1"

[[patch.ensure]]
check = "requirement"
name = "beta"
specifier = ">=1"
"""
TWO = PATCH.format(id="two", more='after = ["one"]')
TAKES = 'requirements = ["requirements.txt"]\nshared = ["quiet"]'


@pytest.fixture
def opened(tmp_path: Path) -> Catalogue:
    """Give a catalogue in which the app `mini` takes the set `quiet`."""
    root = tmp_path / "catalogue"
    for name, text in {
        "patches/mini/app.toml": _app(TAKES),
        FILE: SET + TWO,
        "profiles/tiny.toml": PROFILE,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Catalogue(root=root)


def _app(keys: str, more: str = "") -> str:
    return APP.replace('requirements = ["requirements.txt"]', keys) + more


def _write(opened: Catalogue, name: str, text: str) -> None:
    (opened.root / name).write_text(text, encoding="utf-8")


def _mistakes(read: Callable[[], object]) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        read()
    return [str(problem) for problem in caught.value.problems]


def test_its_patches_go_first_under_its_name_and_point_to_its_file(opened: Catalogue) -> None:
    app = opened.app("mini")
    assert [patch.id for patch in app.patches] == ["quiet-one", "quiet-two", "alpha-that-exists", "on-the-cpu"]
    one, two = app.patches[:2]
    assert (one.origin, two.after) == (Origin(file=FILE, line=10), ("quiet-one",))
    assert [rule.requirement for rule in app.rules.constraints] == [Requirement("gamma<3")]
    assert app.rules.constraints[0].origin == Origin(file=FILE, line=5)


def test_requirements_stand_for_the_files_of_the_app(opened: Catalogue) -> None:
    _write(opened, "patches/mini/app.toml", _app('requirements = ["a.txt", "b/c.txt"]\nshared = ["quiet"]'))
    assert opened.app("mini").patches[0].paths == ("a.txt", "b/c.txt", "more/*.txt")


def test_an_app_leaves_a_patch_out_and_writes_its_own(opened: Catalogue) -> None:
    own = PATCH.format(id="quiet-two", more='after = ["quiet-one"]')
    _write(opened, "patches/mini/app.toml", _app(f'{TAKES}\nwithout = ["quiet-two"]', own))
    ids = [(patch.id, patch.origin.file) for patch in opened.app("mini").patches if patch.id.startswith("quiet")]
    assert ids == [("quiet-one", FILE), ("quiet-two", "patches/mini/app.toml")]


@pytest.mark.parametrize(
    ("keys", "more", "told"),
    [
        pytest.param('shared = ["quit"]', "", ':7: app.shared: there is no shared set "quit"; did you mean "quiet"?', id="unknown"),
        pytest.param('shared = ["quiet", "quiet"]', "", ':7: app.shared: "quiet" is named twice', id="twice"),
        pytest.param('shared = ["quiet"]\nwithout = ["two"]', "", ':8: app.without: no shared set of this app has a patch "two"; did you mean "quiet-two"?', id="without-nothing"),
        pytest.param('shared = ["quiet"]\nexpect = ["loud"]', "", ':8: app.expect: this app has no shared set "loud"', id="expects-what-it-has-not"),
        pytest.param('shared = ["quiet"]', PATCH.format(id="quiet-two", more=""), f'patch[2].id: the id "quiet-two" is taken by the patch at {FILE}:24', id="taken"),
    ],
)  # fmt: skip
def test_a_mistake_in_what_an_app_takes_is_told(opened: Catalogue, keys: str, more: str, told: str) -> None:
    _write(opened, "patches/mini/app.toml", _app(f'requirements = ["requirements.txt"]\n{keys}', more))
    found = _mistakes(lambda: opened.app("mini"))
    assert any(told in mistake and mistake.startswith("patches/mini/app.toml:") for mistake in found), found


def test_a_mistake_in_a_set_is_told_once_with_its_own_file_and_line(opened: Catalogue) -> None:
    (opened.root / "patches" / "other").mkdir()
    _write(opened, "patches/other/app.toml", _app(TAKES))
    _write(opened, FILE, SET.replace("title =", "titel =") + TWO)
    told = [
        f'{FILE}:2: set.titel: the key "titel" is unknown; did you mean "title"?',
        f'{FILE}:1: set.title: the key "title" is missing; write title = "a text"',
    ]
    assert sorted(_mistakes(opened.read_all)) == sorted(told)


def test_a_set_has_no_code_of_its_own(opened: Catalogue) -> None:
    text = TWO.replace('op = "replace-text"', 'op = "codemod"\nmodule = "x.py"\ncommand = "X"')
    _write(opened, FILE, SET + text.replace('old = "pip"\nnew = ""\n', ""))
    assert f"{FILE}:28: patch[1].op: a shared set has no codemods, which are code of one app" in _mistakes(
        lambda: opened.shared("quiet")
    )


def _request(opened: Catalogue, tmp_path: Path) -> Request:
    profile = opened.profile("tiny")
    return Request(
        app=opened.app("mini"),
        profile=profile,
        platform=profile.platforms[0],
        catalogue=opened,
        home=tmp_path / "home",
        cache=tmp_path / "cache",
    )


def test_a_lock_depends_on_the_sets_of_its_app(opened: Catalogue, tmp_path: Path) -> None:
    request = _request(opened, tmp_path)
    before = lock_inputs(request, None)
    _write(opened, FILE, SET + TWO + "\n# corrected\n")
    after = lock_inputs(_request(opened, tmp_path), None)
    assert {name for name in before if before[name] != after[name]} == {FILE}


def test_a_clone_and_a_generation_depend_on_the_sets_too(opened: Catalogue) -> None:
    def digests() -> tuple[str, str, str]:
        made = freshness.generation_digest(opened.root, "mini", "tiny", b"", "", ["quiet"], ())
        other = freshness.generation_digest(opened.root, "mini", "tiny", b"", "", (), ())
        return patch_sets.of_app(opened, "mini", "tiny").digest, made, other

    before = digests()
    _write(opened, FILE, SET + TWO + "\n# corrected\n")
    assert [one == other for one, other in zip(before, digests(), strict=True)] == [False, False, True]


def test_a_bound_of_a_set_is_named_by_its_file() -> None:
    package = LockedPackage(name="gamma", version="2.0", url="", sha256="0" * 64, why="shared quiet:5 · via alpha")
    assert reasons.reason(package, "mini", "tiny").bounds == (f"{FILE}:5",)


def test_cases_of_a_set_are_tried_on_each_app_that_takes_it(opened: Catalogue) -> None:
    folder = opened.root / "patches" / "shared" / "cases" / "quiet-one" / "bounded"
    for side, text in (("before", "beta==1\n"), ("after", "beta>=1\n")):
        (folder / side).mkdir(parents=True)
        (folder / side / "requirements.txt").write_text(text)
    app = opened.app("mini")
    (case,) = patch_cases.read(opened.root, app)
    assert (case.patch, case.name, case.after) == (
        "quiet-one",
        "bounded",
        {PurePosixPath("requirements.txt"): b"beta>=1\n"},
    )
    elsewhere = dataclasses.replace(app, requirement_files=(PurePosixPath("deep/r.txt"),))
    assert list(patch_cases.read(opened.root, elsewhere)[0].before) == [PurePosixPath("deep/r.txt")]
    assert patch_cases.read(opened.root, dataclasses.replace(app, shared=())) == ()
    project = (PurePosixPath("pyproject.toml"), PurePosixPath("deep/r.txt"))
    mixed = dataclasses.replace(app, requirement_files=project)
    assert list(patch_cases.read(opened.root, mixed)[0].before) == [PurePosixPath("deep/r.txt")]
    assert patch_cases.read(opened.root, dataclasses.replace(app, requirement_files=project[:1])) == ()
