"""The ops on hunks and whole files: what must change, what must not, what is refused, and that they settle."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.patch import Located, OutcomeKind
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._diffs import AddFile, UnifiedDiff
from patchlock.patches.postconditions._files import FileIs
from patchlock.patches.targets import unfit_paths

SEVERAL = "@@ -1,5 +1,6 @@\n a\n-b\n+B\n c\n-d\n+e\n+f\n g\n"
HUNK = "@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"


def read(text: str, path: str = "run.bat") -> SourceText:
    source = decode(PurePosixPath(path), text.encode())
    assert isinstance(source, SourceText)
    return source


def patched(op: UnifiedDiff | AddFile, text: str, path: str = "run.bat") -> str:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    located = op.locate(read(text, path))
    assert not located.refusals
    result = encode(splice(read(text, path), located.edits)).decode()
    again = op.locate(read(result, path))
    assert again.settled
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    return result


def unified(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "a/x", "b/x")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@pytest.mark.parametrize(
    ("diff", "before", "after"),
    [
        pytest.param(HUNK, "a\nb\nc\nd\n", "a\nb\nC\nd\n", id="where-it-was"),
        pytest.param(HUNK, "1\n2\n3\n4\n5\na\nb\nc\nd", "1\n2\n3\n4\n5\na\nb\nC\nd", id="moved"),
        pytest.param(
            "@@ -5 +5 @@\n-c\n+C\n",
            "1\n2\n3\nc\n5\n6\n7\n8\nc\n",
            "1\n2\n3\nC\n5\n6\n7\n8\nc\n",
            id="four-times-as-near",
        ),
        pytest.param(HUNK, "b\r\nc\r\nd\r\n", "b\r\nC\r\nd\r\n", id="crlf"),
        pytest.param(HUNK, "b\nc\r\nd\n", "b\nC\r\nd\n", id="mixed-endings-stay"),
        pytest.param("@@ -1,2 +1,3 @@\n \tb\n+\tx\n \tc\n", "\tb\n\tc\n", "\tb\n\tx\n\tc\n", id="tabs"),
        pytest.param("@@\n b\n-c\n+C\n d\n", "b\nc\nd\n", "b\nC\nd\n", id="without-numbers"),
        pytest.param("@@ -1,3 +1,3 @@\n b\n\n-c\n+C\n", "b\n\nc\n", "b\n\nC\n", id="blank-context-without-its-blank"),
        pytest.param("@@ -1 +1,2 @@\n b\n+c\n", "a\nb", "a\nb\nc\n", id="behind-an-unfinished-last-line"),
        pytest.param(
            "@@ -1 +1 @@\n-b\n+c\n\\ No newline at end of file\n", "a\nb\n", "a\nc", id="takes-the-last-newline"
        ),
        pytest.param(
            "@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+b\n", "a\r\nb", "a\r\nb\r\n", id="gives-a-last-newline"
        ),
        pytest.param(
            "@@ -9,2 +9,1 @@\n b\n-c\n", "b\nc\nb\nx\nb\n1\n2\n3\nb\nc\n", "b\nc\nb\nx\nb\n1\n2\n3\nb\n", id="nearest"
        ),
        pytest.param("@@ -1 +1 @@\n--- b\n+c\n", "-- b\n", "c\n", id="a-removed-line-that-looks-like-a-header"),
        pytest.param("@@ -1,2 +1,1 @@\n b\n-c\n", "b\nc\n", "b\n", id="removal-at-the-end"),
        pytest.param("@@ -1,1 +1,2 @@\n b\n+b\n", "b\nd\n", "b\nb\nd\n", id="a-line-doubled"),
        pytest.param(SEVERAL, "1\na\nB\nc\nd\ng\n", "1\na\nB\nc\ne\nf\ng\n", id="the-first-is-made"),
        pytest.param(SEVERAL, "a\r\nb\r\nc\r\ne\r\nf\r\ng", "a\r\nB\r\nc\r\ne\r\nf\r\ng", id="the-second-is-made"),
        pytest.param(HUNK + "@@ -7 +7 @@\n-g\n+G\n", "g\nb\nc\nd\n", "G\nb\nC\nd\n", id="hunks-in-another-order"),
    ],
)
def test_changes(diff: str, before: str, after: str) -> None:
    assert patched(UnifiedDiff(diff=diff), before) == after


@pytest.mark.parametrize(
    ("diff", "text", "line"),
    [
        pytest.param(HUNK, "b\nC\nd\n", 2, id="made"),
        pytest.param(HUNK, "1\n2\n3\nb\r\nC\r\nd", 5, id="made-elsewhere-with-other-endings"),
        pytest.param("@@ -1 +1,2 @@\n b\n+c\n", "b\nc\n", 2, id="insertion-whose-context-is-still-there"),
        pytest.param("@@ -1,2 +1,3 @@\n b\n+x\n c\n", "b\nx\nc\n1\n2\n3\n4\n5\nb\nc\n", 2, id="made-here-not-there"),
    ],
)
def test_leaves_what_is_made(diff: str, text: str, line: int) -> None:
    located = UnifiedDiff(diff=diff).locate(read(text))
    assert (located.edits, located.sites, located.refusals) == ((), (), ())
    assert [site.line for site in located.settled] == [line]


@pytest.mark.parametrize(
    ("diff", "text", "line", "why"),
    [
        pytest.param(
            HUNK,
            "b\nx\nd\n",
            2,
            "hunk 1: its text has changed (line 2 when it was made); there is no line `c`",
            id="changed",
        ),
        pytest.param(
            HUNK,
            "b\nc \nd\n",
            2,
            "hunk 1: its text has changed (line 2 when it was made); there is no line `c`",
            id="no-fuzz",
        ),
        pytest.param(
            HUNK,
            "c\nd\nb\n",
            2,
            "hunk 1: its lines are no longer together (line 2 when it was made)",
            id="apart",
        ),
        pytest.param(
            HUNK,
            "x\n" * 8 + "b\nc\nd\n" * 2,
            2,
            "hunk 1: its lines stand at lines 9, 12, and line 2 is not clearly nearest to one of them",
            id="twice-and-far-away",
        ),
        pytest.param(
            HUNK.replace(" -2,3 +2,3 @@", ""),
            "b\nc\nd\n" * 2,
            1,
            "hunk 1: its lines stand at lines 1, 4, and it does not say which are meant",
            id="twice-without-a-number",
        ),
        pytest.param(
            HUNK, "", 1, "hunk 1: its text has changed (line 2 when it was made); there is no line `b`", id="empty-file"
        ),
        pytest.param(
            SEVERAL,
            "a\nB\nc\nd\ng\na\nb\nc\ne\nf\ng\n",
            1,
            "hunk 1: its lines are no longer together (line 1 when it was made)",
            id="partly-made-in-two-places",
        ),
        pytest.param(
            SEVERAL,
            "a\nB\nc\nx\ng\n",
            1,
            "hunk 1: its text has changed (line 1 when it was made); there is no line `d`",
            id="partly-made-and-changed",
        ),
        pytest.param(HUNK + HUNK, "b\nc\nd\n", 2, "two hunks of the diff change the same lines", id="one-place-twice"),
        pytest.param(
            HUNK + "@@ -9 +9 @@\n-g\n+G\n",
            "b\nc\nd\n",
            3,
            "hunk 2: its text has changed (line 9 when it was made); there is no line `g`",
            id="one-of-two-hunks",
        ),
    ],
)
def test_refuses(diff: str, text: str, line: int, why: str) -> None:
    located = UnifiedDiff(diff=diff).locate(read(text))
    assert located.edits == ()
    assert [(r.line, r.kind, r.why) for r in located.refusals] == [(line, OutcomeKind.AMBIGUOUS, why)]


TWO = "--- a/one/x.sh\n+++ b/one/x.sh\n@@ -1 +1 @@\n-a\n+b\n--- a/y.sh\t2026\n+++ b/y.sh\n@@ -1 +1 @@\n-a\n+c\n"


@pytest.mark.parametrize(
    ("path", "after"),
    [("one/x.sh", "b\n"), ("y.sh", "c\n"), ("moved/y.sh", "c\n"), ("z.sh", None)],
    ids=["by-path", "by-the-other-path", "moved-is-known-by-its-name", "of-another-file"],
)
def test_file_is_chosen_by_the_header(path: str, after: str | None) -> None:
    op = UnifiedDiff(diff=TWO)
    assert op.files() == ("one/x.sh", "y.sh")
    if after is None:
        assert op.locate(read("a\n", path)) == Located()
    else:
        assert patched(op, "a\n", path) == after


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        ("", "`diff` has no hunk (`@@ -1,3 +1,3 @@`)"),
        ("a\r\n", "`diff` is written with \\n, whatever line endings the file has"),
        ("@@ 1 @@\n-a\n+b\n", "line 1 of `diff` is not a header of a hunk, `@@ -1,3 +1,3 @@` or `@@`"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n", "hunk 1 of `diff` is shorter than its header says"),
        ("@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n", "hunk 1 of `diff` has other numbers of lines than its header says"),
        ("@@ -1 +1 @@\n-a\n+b\n+c\n", "line 4 of `diff` belongs to no hunk"),
        ("@@ -0,0 +1 @@\n+a\n", "hunk 1 of `diff` has no line that is there before; a new file is `add-file`"),
        ("@@ -1 +0,0 @@\n-a\n", "hunk 1 of `diff` leaves no line by which its place is known; add context"),
        ("@@ -1 +1 @@\n a\n", "hunk 1 of `diff` changes nothing"),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "a diff cannot make x; a new file is `add-file`"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "a diff cannot delete x"),
        ("diff --git a/x b/y\nsimilarity index 90%\nrename from x\n", "line 3 of `diff`: a diff cannot rename a file"),
        ("new file mode 100644\n", "line 1 of `diff`: a diff cannot make a file; a new file is `add-file`"),
        (TWO + TWO, "`diff` has hunks of one file in two places, or hunks of no file beside those of others"),
    ],
)
def test_mistakes_of_the_diff_are_told(diff: str, why: str) -> None:
    with pytest.raises(ValueError) as told:
        UnifiedDiff(diff=diff)
    assert str(told.value) == why


LINES = st.lists(st.sampled_from(["a", "b", "", "\tc", "dd"]), min_size=1, max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_diff_of_two_texts_makes_one_into_the_other(
    one: list[str], other: list[str], ended: bool, other_ended: bool, newline: str
) -> None:
    before = "\n".join(one) + ("\n" if ended else "")
    after = "\n".join(other) + ("\n" if other_ended else "")
    # A text of one line has no ending to go by.
    assume(before and after and before != after and "\n" in before.removesuffix("\n"))
    diff = unified(before, after)
    assume("\n@@ -0,0" not in diff and " +0,0 @@" not in diff)
    op = UnifiedDiff(diff=diff)
    assert patched(op, before.replace("\n", newline)) == after.replace("\n", newline)


@given(st.lists(st.booleans(), min_size=2, max_size=6), st.data())
def test_what_is_there_of_a_hunk_is_not_made_again(kinds: list[bool], data: st.DataObject) -> None:
    """Each change is a replaced or an added line."""
    lines = [f"{n}\n" for n in range(2 * len(kinds) + 1)]
    new = [*lines]
    for n, is_replaced in enumerate(kinds):
        new[2 * n + 1] = f"new {n}\n" + ("" if is_replaced else lines[2 * n + 1])
    made = data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
    before = "".join(new[n] if is_made else line for n, (line, is_made) in enumerate(zip(lines, made, strict=True)))
    assert patched(UnifiedDiff(diff=unified("".join(lines), "".join(new))), before) == "".join(new)


@given(LINES, LINES, st.lists(st.text("xyz", min_size=3, max_size=3), max_size=30))
def test_lines_above_never_lead_a_hunk_to_another_place(one: list[str], other: list[str], above: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (one, other))
    assume(before != after)
    op = UnifiedDiff(diff=unified(before, after))
    shifted = "".join(f"{line}\n" for line in above)
    located = op.locate(read(shifted + before))
    if not located.refusals and not located.settled:
        assert encode(splice(read(shifted + before), located.edits)).decode() == shifted + after


# --- add-file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["a = 1\n", "@echo off\r\n", "\ufeffä\n"], ids=["plain", "crlf", "byte-order-mark"])
def test_file_is_added_and_settles(content: str) -> None:
    assert patched(AddFile(content=content), "") == content


@pytest.mark.parametrize(("present", "line"), [("a\nb\n", 2), ("a", 2), ("x\n", 1)])
def test_other_content_is_refused(present: str, line: int) -> None:
    located = AddFile(content="a\nc\n").locate(read(present))
    assert located.edits == ()
    assert [(r.line, r.why) for r in located.refusals] == [(line, "this file is there already, with other content")]


@pytest.mark.parametrize("content", ["", "\ufeff"])
def test_nothing_is_no_content(content: str) -> None:
    with pytest.raises(ValueError, match="`content` is empty, and an empty file cannot be told from none"):
        AddFile(content=content)


@pytest.mark.parametrize(
    ("op", "paths", "why"),
    [
        (AddFile(content="a\n"), ("a.py",), ""),
        (AddFile(content="a\n"), ("*.py",), "it must be the one file that add-file makes, without a wildcard"),
        (AddFile(content="a\n"), ("a", "b"), "it must be the one file that add-file makes, without a wildcard"),
        (UnifiedDiff(diff=TWO), ("**/*.sh",), ""),
        (UnifiedDiff(diff=TWO), ("one/*.sh",), "y.sh of the diff is not among them"),
        (UnifiedDiff(diff=HUNK), ("a",), ""),
    ],
)
def test_paths_that_do_not_fit_are_told(op: UnifiedDiff | AddFile, paths: tuple[str, ...], why: str) -> None:
    assert unfit_paths(op, paths) == why


def test_paths_that_do_not_fit_are_a_mistake_of_the_catalogue() -> None:
    table = {
        "id": "a",
        "why": "w",
        "source": "s",
        "op": "add-file",
        "paths": ["*.py"],
        "content": "a",
        "ensure": [{"check": "contains", "text": "a"}],
    }
    report = Report(file="app.toml", text="")
    _apps_and_profiles.patches(Table({"patch": [table]}, report), None)
    assert [(problem.key, problem.what) for problem in report.problems] == [
        ("patch[0].paths", "it must be the one file that add-file makes, without a wildcard")
    ]


def test_file_is_holds_for_these_bytes_alone() -> None:
    digest = hashlib.sha256(b"a").hexdigest()
    ensure = FileIs(sha256=digest)
    assert ensure.problems(PurePosixPath("x"), b"a") == ()
    assert ensure.problems(PurePosixPath("x"), b"b") == (f"its sha256 is 3e23e8160039…, not {digest[:12]}…",)
    with pytest.raises(ValueError, match="must be a sha256 of 64 hexadecimal digits"):
        FileIs(sha256="ab")
