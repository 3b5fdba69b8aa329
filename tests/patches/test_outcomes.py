"""Plans as values: digests in which nothing can move, pairs that cannot be, diffs and messages for a person."""

from __future__ import annotations

import codecs
import dataclasses
import hashlib
import tomllib
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from miniature import APP, PROFILE, PYTHON
from packaging.specifiers import SpecifierSet

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.pairs import require_possible
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.digests import generation_id, inputs_digest, sha256
from patchlock.model.errors import RefusedError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.origins import Origin
from patchlock.model.patch import FileChange, Outcome, OutcomeKind, Patched
from patchlock.model.platforms import PLATFORMS
from patchlock.model.refusals import RefusedPair
from patchlock.patches.outcomes import commit_message, counted, diff, patched_by, patched_digests

MINI = _apps_and_profiles.app(Table(tomllib.loads(APP), Report(file="patches/mini/app.toml", text="")), "mini")
TINY = _apps_and_profiles.profile(Table(tomllib.loads(PROFILE), Report(file="profiles/tiny.toml", text="")), "tiny", ())
LINUX, MACOS = PLATFORMS["linux-x86_64"], PLATFORMS["macos-arm64"]
INPUTS = st.dictionaries(
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=4),
    st.binary(max_size=4),
    max_size=4,
)


def _outcome(patch: str, kind: OutcomeKind, path: str | None = None) -> Outcome:
    return Outcome(
        patch=patch, op="op", kind=kind, path=PurePosixPath(path) if path else None, sites=(), detail="not shown"
    )


OUTCOMES = (
    _outcome("one", OutcomeKind.NEEDED, "a.py"),
    _outcome("one", OutcomeKind.FIXED_UPSTREAM, "b.py"),
    _outcome("two", OutcomeKind.GONE),
    _outcome("three", OutcomeKind.NEEDED, "c.py"),
)


# --- digests ----------------------------------------------------------------------------------------------------------


def test_sha256_is_of_the_bytes() -> None:
    assert sha256(b"abc") == hashlib.sha256(b"abc").hexdigest()


@given(one=INPUTS, other=INPUTS)
def test_digests_are_equal_where_the_inputs_are(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (inputs_digest(one) == inputs_digest(other)) == (one == other)
    assert inputs_digest(dict(reversed(one.items()))) == inputs_digest(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"a": b"xy", "b": b"z"}, {"a": b"x", "b": b"yz"}, id="from-input-to-input"),
        pytest.param({"a": b"x", "b": b"y"}, {"a": b"y", "b": b"x"}, id="exchanged"),
        pytest.param({"ab": b"x"}, {"a": b"bx"}, id="from-name-to-input"),
        pytest.param({"a": b""}, {}, id="empty-input"),
        pytest.param({"a": b"1\0b\0001\0x"}, {"a": b"1", "b": b"x"}, id="input-that-looks-like-two"),
    ],
)
def test_nothing_can_move_between_two_inputs(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert inputs_digest(one) != inputs_digest(other)


def test_text_is_digested_as_utf_8() -> None:
    assert inputs_digest({"a": "é"}) == inputs_digest({"a": "é".encode()})


def test_generation_is_named_after_each_of_its_inputs() -> None:
    a, b = Sha256("a" * 64), Sha256("b" * 64)
    one, two = CommitId("1" * 40), CommitId("2" * 40)
    names = {
        generation_id(a, one, a),
        generation_id(b, one, a),
        generation_id(a, two, a),
        generation_id(a, one, b),
        generation_id(a, one, a),
    }
    assert len(names) == 4
    assert {len(name) for name in names} == {12}


def test_patched_files_are_digested_by_their_path_in_the_clone() -> None:
    change = FileChange(path=PurePosixPath("src/a.py"), before=b"old", after=b"new")
    assert patched_digests([change], PurePosixPath("apps/x")) == {"apps/x/src/a.py": sha256(b"new")}
    assert list(patched_digests([change], PurePosixPath())) == ["src/a.py"]


# --- pairs that cannot be ---------------------------------------------------------------------------------------------

HERE = Origin(file="patches/mini/app.toml", line=1)
NEVER = RefusedPair(profile="tiny", platforms=(), why="it needs a card", source="https://x.test", origin=HERE)
NOT_ON_MACOS = RefusedPair(
    profile="tiny", platforms=("macos-arm64",), why="there are no wheels", source="https://x.test", origin=HERE
)
OTHER = RefusedPair(profile="huge", platforms=(), why="it needs a card", source="https://x.test", origin=HERE)


@pytest.mark.parametrize("refusals", [(), (OTHER,), (NOT_ON_MACOS,)], ids=["none", "other-profile", "other-platform"])
def test_pair_that_nobody_refuses_is_possible(refusals: tuple[RefusedPair, ...]) -> None:
    require_possible(dataclasses.replace(MINI, refusals=refusals), TINY, LINUX)


@pytest.mark.parametrize(
    ("refusals", "sentence"),
    [
        ((NEVER,), "mini cannot run on tiny on macos-arm64: it needs a card (https://x.test)"),
        ((OTHER, NOT_ON_MACOS), "mini cannot run on tiny on macos-arm64: there are no wheels (https://x.test)"),
    ],
    ids=["everywhere", "platform"],
)
def test_refused_pair_says_why(refusals: tuple[RefusedPair, ...], sentence: str) -> None:
    with pytest.raises(RefusedError) as caught:
        require_possible(dataclasses.replace(MINI, refusals=refusals), TINY, MACOS)
    assert str(caught.value) == sentence


def test_python_of_the_profile_that_the_app_cannot_run_on_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        require_possible(dataclasses.replace(MINI, python=SpecifierSet("<3.4")), TINY, LINUX)
    why = f"it needs Python <3.4, and the profile has {PYTHON}"
    sentence = f"mini cannot run on tiny on {LINUX.name}: {why} (patches/mini/app.toml:1)"
    assert str(caught.value) == sentence


# --- for a person -----------------------------------------------------------------------------------------------------


def test_commit_message_tells_every_outcome_and_nothing_of_the_machine() -> None:
    message = "patchlock: mini for tiny\n\none: needed a.py\none: fixed upstream b.py\ntwo: gone\nthree: needed c.py\n"
    assert commit_message(MINI, TINY, OUTCOMES) == message


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        (OUTCOMES, "2 needed, 1 not needed here"),
        (OUTCOMES[1::-1], "1 needed"),
        (OUTCOMES[1:2], "1 already fixed"),
        ((), "none"),
    ],
    ids=["each-patch-once", "in-any-order", "one", "none"],
)
def test_patches_are_counted_by_outcome(outcomes: tuple[Outcome, ...], text: str) -> None:
    assert counted(outcomes) == text


HEAD = "--- upstream/a.py\n+++ patched/a.py\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(b"a\nb\n", b"a\nc\n", HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", id="utf-8"),
        pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", id="crlf"),
        pytest.param(b"a\rb\r", b"a\rc\r", HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", id="cr"),
        pytest.param(b"b", b"c", HEAD + "@@ -1 +1 @@\n-b\n{0}+c\n{0}", id="no-newline-at-end"),
        pytest.param(b"b\n", b"b", HEAD + "@@ -1 +1 @@\n-b\n+b\n{0}", id="newline-at-end-removed"),
        pytest.param(
            b"a\x0cb\x1cc\n", b"a\x0cB\x1cc\n", HEAD + "@@ -1 +1 @@\n-a\x0cb\x1cc\n+a\x0cB\x1cc\n", id="form-feed"
        ),
        pytest.param(b"", b"c\n", HEAD + "@@ -0,0 +1 @@\n+c\n", id="empty-before"),
        pytest.param(
            codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16-le"),
            codecs.BOM_UTF16_LE + "è\r\n".encode("utf-16-le"),
            "--- upstream/a.py\t(utf-16-le)\n+++ patched/a.py\n@@ -1 +1 @@\n-é\n+è\n",
            id="utf-16",
        ),
        pytest.param(
            b"# \xe9\n", b"e\n", "--- upstream/a.py\t(latin-1)\n+++ patched/a.py\n@@ -1 +1 @@\n-# é\n+e\n", id="latin-1"
        ),
        pytest.param(b"\0", b"a", "Binary files upstream/a.py and patched/a.py differ\n", id="binary"),
    ],
)
def test_diff_shows_lines_whatever_the_encoding(before: bytes, after: bytes, expected: str) -> None:
    shown = diff([FileChange(path=PurePosixPath("a.py"), before=before, after=after)])
    assert shown == expected.replace("{0}", "\\ No newline at end of file\n")


def test_diff_names_its_sides_and_shows_file_after_file() -> None:
    changes = [FileChange(path=PurePosixPath(name), before=b"1\n", after=b"2\n") for name in ("a", "b/c")]
    text = "--- x/{0}\n+++ y/{0}\n@@ -1 +1 @@\n-1\n+2\n"
    assert diff(changes, before="x", after="y") == text.format("a") + text.format("b/c")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(OutcomeKind.NEEDED, {"alpha": ("alpha-that-exists",)}, id="applied"),
        pytest.param(OutcomeKind.GONE, {}, id="not-applied"),
    ],
)
def test_who_edited_a_requirement(kind: OutcomeKind, expected: dict[str, tuple[str, ...]]) -> None:
    outcomes = tuple(_outcome(patch, kind, "a") for patch in ("alpha-that-exists", "on-the-cpu"))
    assert patched_by(MINI.patches, Patched(changes=(), outcomes=outcomes)) == expected
