"""The patches of a distribution: read into values, or every mistake with the sentence that somebody gets."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from miniature import PROFILE
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from test_catalogue_reader import PATCH, SHA256

from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError, UnknownDistributionError

HEAD = """\
[distribution]
why = "the answer is wrong"
source = "tests"
versions = ">=1,<2"
"""
MIDDLE = PATCH.format(id="one", more="")
WHEEL = f"""
[[wheel]]
filename = "alpha_beta-1.0-py3-none-any.whl"
sha256 = "{SHA256}"
source = "tests"
"""
HERE = "patches/distributions/alpha-beta/patch.toml"


def _catalogue(tmp_path: Path, text: str, name: str = "alpha-beta", *, has_cases: bool = True) -> Catalogue:
    folder = tmp_path / "patches" / "distributions" / name
    folder.mkdir(parents=True)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "tiny.toml").write_text(PROFILE, encoding="utf-8")
    (folder / "patch.toml").write_text(text, encoding="utf-8")
    if has_cases:
        (folder / "cases.py").touch()
    return Catalogue(root=tmp_path)


def test_file_becomes_values(tmp_path: Path) -> None:
    more = 'partly-fixed-from = "1.5"\nfixed-from = "1.8"\nstubs = ["torch"]\n'
    catalogue = _catalogue(tmp_path, HEAD + more + MIDDLE + WHEEL)
    assert catalogue.distribution_names() == ("alpha-beta",)
    assert catalogue.app_names() == ()
    read = catalogue.distribution("alpha-beta")
    assert (read.name, read.why, read.source) == ("alpha-beta", "the answer is wrong", "tests")
    assert read.versions == SpecifierSet(">=1,<2")
    assert (read.partly_fixed_from, read.fixed_from) == (Version("1.5"), Version("1.8"))
    assert read.stubs == ("torch",)
    assert read.cases == PurePosixPath("patches/distributions/alpha-beta/cases.py")
    assert [patch.id for patch in read.patches] == ["one"]
    (wheel,) = read.wheels
    assert (wheel.filename, wheel.version) == ("alpha_beta-1.0-py3-none-any.whl", Version("1.0"))
    assert (wheel.sha256, wheel.source) == (SHA256, "tests")
    assert str(read.origin) == f"{HERE}:1"


def test_what_may_be_left_out(tmp_path: Path) -> None:
    read = _catalogue(tmp_path, HEAD + MIDDLE).distribution("alpha-beta")
    assert (read.partly_fixed_from, read.fixed_from, read.stubs, read.wheels) == (None, None, (), ())


def test_unknown_distribution_is_said_with_the_nearest(tmp_path: Path) -> None:
    catalogue = _catalogue(tmp_path, HEAD + MIDDLE)
    with pytest.raises(UnknownDistributionError) as caught:
        catalogue.distribution("alpha-bata")
    assert str(caught.value) == 'there is no patch for a distribution "alpha-bata"; did you mean "alpha-beta"?'


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param(
            HEAD.replace("versions", "version") + MIDDLE,
            [
                ':1: distribution.versions: the key "versions" is missing; write versions = "a text"',
                ':4: distribution.version: the key "version" is unknown; did you mean "versions"?',
            ],
            id="unknown-key",
        ),
        pytest.param(
            HEAD.replace(">=1,<2", "1")
            + 'fixed-from = "soon"\npartly-fixed-from = 1\nstubs = ["a.b", "def"]\n'
            + MIDDLE,
            [
                ':4: distribution.versions: "1" is not a version specifier such as ">=1.2,<2"',
                ':5: distribution.fixed-from: "soon" is not a version',
                ":6: distribution.partly-fixed-from: it is a number, and must be a text",
                ':7: distribution.stubs: "a.b" is not the name of a top-level package',
                ':7: distribution.stubs: "def" is not the name of a top-level package',
            ],
            id="values",
        ),
        pytest.param(
            HEAD + 'fixed-from = "1.5"\npartly-fixed-from = "1.5"\n' + MIDDLE,
            [":6: distribution.partly-fixed-from: it must be below `fixed-from`"],
            id="fixed-before-partly",
        ),
        pytest.param(HEAD, [": patch: it has no patch; add a [[patch]] table"], id="no-patch"),
        pytest.param(
            HEAD + MIDDLE + MIDDLE,
            [f':20: patch[1].id: the id "one" is taken by the patch at {HERE}:6'],
            id="patch-twice",
        ),
        pytest.param(
            HEAD + PATCH.format(id="one", more="advisory = true"),
            [":14: patch[0].advisory: a wheel is patched completely or not at all; remove the key"],
            id="advisory",
        ),
        pytest.param(
            HEAD + PATCH.format(id="one", more='profiles = ["tiny"]'),
            [":14: patch[0].profiles: a wheel is patched for every profile; remove the key"],
            id="profiles",
        ),
        pytest.param(
            HEAD + MIDDLE + WHEEL.replace("alpha_beta-1.0-py3-none-any", "alpha_beta"),
            [':20: wheel[0].filename: "alpha_beta.whl" is not the name of a wheel'],
            id="no-wheel",
        ),
        pytest.param(
            HEAD + MIDDLE + WHEEL.replace("alpha_beta", "gamma"),
            [":20: wheel[0].filename: it is a wheel of gamma, not of alpha-beta"],
            id="wheel-of-another",
        ),
        pytest.param(
            HEAD + MIDDLE + WHEEL.replace("-1.0-", "-2.0-"),
            [":20: wheel[0].filename: version 2.0 is not in `versions` (<2,>=1)"],
            id="wheel-of-another-version",
        ),
        pytest.param(
            HEAD + MIDDLE + WHEEL.replace(SHA256, "abc").replace("source", "url") + WHEEL,
            [
                ':19: wheel[0].source: the key "source" is missing; write source = "a text"',
                ':21: wheel[0].sha256: "abc" must be a sha256 of 64 hexadecimal digits',
                ':22: wheel[0].url: the key "url" is unknown; known: filename, sha256, source',
                ":25: wheel[1].filename: alpha_beta-1.0-py3-none-any.whl is listed twice",
            ],
            id="wheel-without-facts",
        ),
        pytest.param(
            HEAD + MIDDLE + "[launch]\ncommand = []\n",
            [':18: launch: the key "launch" is unknown; known: distribution, patch, wheel'],
            id="key-of-an-app",
        ),
    ],
)
def test_mistake_has_its_sentence(tmp_path: Path, text: str, sentences: list[str]) -> None:
    with pytest.raises(CatalogueError) as caught:
        _catalogue(tmp_path, text).distribution("alpha-beta")
    found = sorted(caught.value.problems, key=lambda problem: problem.line)
    assert [str(problem).removeprefix(HERE) for problem in found] == sentences


@pytest.mark.parametrize(
    ("name", "has_cases", "sentence"),
    [
        (
            "alpha-beta",
            False,
            "there is no cases.py beside it; write functions case_… that fail where the patch is needed",
        ),
        ("Alpha_Beta", True, 'the folder "Alpha_Beta" must have the normalised name "alpha-beta"'),
    ],
)
def test_folder_is_right(tmp_path: Path, name: str, has_cases: bool, sentence: str) -> None:
    catalogue = _catalogue(tmp_path, HEAD + MIDDLE, name, has_cases=has_cases)
    with pytest.raises(CatalogueError) as caught:
        catalogue.distribution(name)
    assert [str(problem) for problem in caught.value.problems] == [
        f"patches/distributions/{name}/patch.toml:1: distribution: {sentence}"
    ]
