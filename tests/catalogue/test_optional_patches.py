"""Patches that a person chooses: how they are written, what a choice means, and what depends on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from miniature import APP, PROFILE
from receipts import install, receipt
from test_catalogue_reader import PATCH

from patchlock.catalogue import optional_patches
from patchlock.catalogue.optional_patches import Choice, Option
from patchlock.catalogue.reader import Catalogue
from patchlock.environments import freshness, generations
from patchlock.environments.generations import CheckRecord
from patchlock.model.app import App
from patchlock.model.errors import CatalogueError, UsageError
from patchlock.model.patch import Outcome, OutcomeKind
from patchlock.patches.engine import for_profile

FAST = PATCH.format(id="fast", more='optional = "fast"\ngives = "less waiting"\nhelps = ["stft", "rfft"]')
FAST_TOO = PATCH.format(id="fast-too", more='optional = "fast"\nafter = ["fast"]')
SMALL = PATCH.format(id="small", more='optional = "small"\ngives = "less memory"\nprofiles = ["tiny"]')
BIG = PATCH.format(id="big", more='optional = "big"\ngives = "more"\nprofiles = ["other"]')
CHOSEN = ("fast", "small")


@pytest.fixture
def opened(tmp_path: Path) -> Catalogue:
    """Give a catalogue whose app `mini` has something to choose."""
    root = tmp_path / "catalogue"
    for name, text in {
        "patches/mini/app.toml": APP + FAST + FAST_TOO + SMALL + BIG,
        "profiles/tiny.toml": PROFILE,
        "profiles/other.toml": PROFILE,
        "lockfiles/mini/tiny.linux-x86_64.txt": "a lock",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Catalogue(root=root)


@pytest.fixture
def app(opened: Catalogue) -> App:
    """Give the app `mini`."""
    return opened.app("mini")


def test_patches_of_one_name_are_chosen_together(app: App) -> None:
    fast, small = optional_patches.of_profile(app, "tiny")
    assert fast == Option(name="fast", gives="less waiting", helps=("stft", "rfft"), patches=("fast", "fast-too"))
    assert (small.name, small.gives, small.patches) == ("small", "less memory", ("small",))
    assert [option.name for option in optional_patches.of_profile(app, "other")] == ["fast", "big"]


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        pytest.param((), [], id="off-unless-chosen"),
        pytest.param(("fast",), ["fast", "fast-too"], id="one"),
        pytest.param(("big", "small"), ["small"], id="of-another-profile"),
    ],
)
def test_only_what_is_chosen_is_applied(app: App, chosen: tuple[str, ...], wanted: list[str]) -> None:
    own = ["alpha-that-exists", "on-the-cpu"]
    assert [patch.id for patch in for_profile(app.patches, "tiny", chosen)] == own + wanted


@pytest.mark.parametrize(
    ("kept", "choice", "chosen"),
    [
        pytest.param((), Choice(), (), id="nothing"),
        pytest.param((), Choice(added=("small", "fast")), ("fast", "small"), id="sorted"),
        pytest.param(("small",), Choice(), ("small",), id="stays"),
        pytest.param(("small",), Choice(added=("fast",)), ("fast", "small"), id="beside"),
        pytest.param(("fast", "small"), Choice(left_out=("small",)), ("fast",), id="left-out"),
        pytest.param((), Choice(left_out=("small",)), (), id="was-not-there"),
        pytest.param(("gone", "small"), Choice(left_out=("gone",)), ("small",), id="what-the-catalogue-lost"),
        pytest.param(("gone", "small"), None, ("small",), id="a-command-that-does-not-ask"),
    ],
)
def test_a_choice_adds_to_what_is_installed(
    app: App, kept: tuple[str, ...], choice: Choice | None, chosen: tuple[str, ...]
) -> None:
    assert optional_patches.choose(app, "tiny", kept, choice) == chosen


@pytest.mark.parametrize(
    ("kept", "choice", "told"),
    [
        pytest.param((), Choice(added=("fasd",)), 'mini has no option "fasd" on tiny; did you mean "fast"?', id="unknown"),
        pytest.param((), Choice(added=("big",)), 'mini has no option "big" on tiny, only on other; leave it out', id="of-another-profile"),
        pytest.param((), Choice(left_out=("gone",)), 'mini has no option "gone" on tiny', id="without-nothing"),
        pytest.param((), Choice(added=("fast",), left_out=("fast",)), '"fast" is asked for and left out', id="both"),
        pytest.param(("gone",), Choice(), "is no longer in the catalogue; go on without it: --without gone", id="lost"),
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_is_told(app: App, kept: tuple[str, ...], choice: Choice, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        optional_patches.choose(app, "tiny", kept, choice)
    assert told in str(caught.value)


MISSING = """
[[missing-option]]
names = ["training", "deepspeed"]
why = "it has no wheel"
instead = "train elsewhere"
source = "https://example.org/why"
"""


@pytest.mark.parametrize("name", ["training", "deepspeed"])
def test_what_cannot_be_had_is_refused_with_its_reason(opened: Catalogue, name: str) -> None:
    file = opened.root / "patches/mini/app.toml"
    file.write_text(APP + FAST + MISSING, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        optional_patches.choose(opened.app("mini"), "tiny", (), Choice(added=("fast", name)))
    assert str(caught.value) == (
        f'mini has no "{name}" to choose: it has no wheel; train elsewhere (see https://example.org/why)'
    )


def test_what_can_be_chosen_is_not_missing(opened: Catalogue) -> None:
    file = opened.root / "patches/mini/app.toml"
    file.write_text(APP + FAST + MISSING.replace("deepspeed", "fast"), encoding="utf-8")
    assert _mistakes(lambda: opened.app("mini")) == [
        'missing-option[0].names: "fast" is the name of something else to choose; take another name'
    ]


@pytest.mark.parametrize(
    ("failed", "chosen", "recommended"),
    [
        pytest.param(["stft"], (), ["fast"], id="helps"),
        pytest.param(["mm", "rfft"], (), ["fast"], id="one-of-several"),
        pytest.param(["mm"], (), [], id="helps-nothing"),
        pytest.param([], (), [], id="nothing-failed"),
        pytest.param(["stft"], ("fast",), [], id="is-chosen-already"),
    ],
)
def test_a_failed_kernel_recommends_what_helps(
    app: App, failed: list[str], chosen: tuple[str, ...], recommended: list[str]
) -> None:
    assert [option.name for option in optional_patches.recommend(failed, app, "tiny", chosen)] == recommended


def _mistakes(read: Callable[[], object]) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        read()
    return [str(problem).partition(": ")[2] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param('optional = "fast"', 'patch[2].gives: nothing says what is to be had by "fast"; write gives = a clause', id="gives-nothing"),
        pytest.param('gives = "x"', "patch[2].gives: it is for an optional patch; write optional = a name", id="not-optional"),
        pytest.param('helps = ["stft"]', "patch[2].helps: it is for an optional patch; write optional = a name", id="helps-always"),
        pytest.param('optional = "Fast"\ngives = "x"', 'patch[2].optional: "Fast" must be lower-case words joined by "-"', id="name"),
        pytest.param('optional = "fast"\ngives = "x"\nhelps = ["st ft"]', 'patch[2].helps: "st ft" must be lower-case words joined by "-"', id="kernel"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_optional_patch_is_told(opened: Catalogue, more: str, told: str) -> None:
    (opened.root / "patches/mini/app.toml").write_text(APP + PATCH.format(id="one", more=more))
    assert _mistakes(lambda: opened.app("mini")) == [told]


def _outcome(patch: str, kind: OutcomeKind, path: str) -> Outcome:
    return Outcome(patch=patch, op="replace-text", kind=kind, path=PurePosixPath(path), sites=(), detail="")


def test_an_optional_patch_leaves_the_lock_alone(app: App) -> None:
    files = (PurePosixPath("requirements.txt"), PurePosixPath("more.txt"))
    fine = [
        _outcome("alpha-that-exists", OutcomeKind.NEEDED, "requirements.txt"),
        _outcome("fast", OutcomeKind.FIXED_UPSTREAM, "requirements.txt"),
        _outcome("fast", OutcomeKind.NEEDED, "start.bat"),
    ]
    optional_patches.require_same_lock(app.patches, fine, files)
    with pytest.raises(CatalogueError) as caught:
        optional_patches.require_same_lock(
            app.patches, [*fine, _outcome("fast", OutcomeKind.NEEDED, "more.txt")], files
        )
    (problem,) = caught.value.problems
    assert str(problem).startswith('patches/mini/app.toml:58: optional: the patch "fast" changes more.txt, from which')


def test_a_receipt_keeps_the_choice(tmp_path: Path) -> None:
    whole = receipt(checks=(CheckRecord(id="packages", level="present", detail="3"),), shared=("quiet",), chosen=CHOSEN)
    generations.write_receipt(tmp_path, whole)
    assert generations.read_receipt(tmp_path) == whole
    text = (tmp_path / "receipt.toml").read_text()
    older = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("shared", "chosen")))
    (tmp_path / "receipt.toml").write_text(older)
    assert generations.read_receipt(tmp_path) == dataclasses.replace(whole, shared=(), chosen=())


@pytest.mark.parametrize(
    ("added", "left_out", "is_so"),
    [
        pytest.param((), (), True, id="as-it-was-chosen"),
        pytest.param(("fast",), (), True, id="has-it"),
        pytest.param(("fast", "big"), (), False, id="lacks-one"),
        pytest.param((), ("big",), True, id="is-without"),
        pytest.param((), ("fast",), False, id="has-what-is-left-out"),
    ],
)
def test_an_install_that_has_the_choice_has_nothing_to_do(
    opened: Catalogue, tmp_path: Path, added: tuple[str, ...], left_out: tuple[str, ...], is_so: bool
) -> None:
    inputs = freshness.generation_digest(opened.root, "mini", "tiny", b"a lock", "", (), CHOSEN)
    assert inputs != freshness.generation_digest(opened.root, "mini", "tiny", b"a lock", "", (), ())
    installation, generation = install(tmp_path, inputs=inputs, chosen=CHOSEN)
    (generation / "bin").mkdir()
    (generation / "bin" / "python").touch()
    (generation / "Scripts").mkdir()
    (generation / "Scripts" / "python.exe").touch()
    found = freshness.up_to_date_generation(installation.folder, opened.root, "mini", "tiny", added, left_out)
    assert found == (generation.name if is_so else None)
