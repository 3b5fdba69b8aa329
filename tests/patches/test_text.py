"""The op on literal text: what must change, what must not, and that it settles."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._text import ReplaceText


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("start.bat"), data)
    assert isinstance(source, SourceText)
    return source


def patched(op: ReplaceText, data: bytes) -> bytes:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    return result


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        pytest.param("a", "b", "a-a\nca\n", "b-b\ncb\n", id="every-occurrence"),
        pytest.param(" --gpu", "", "run --gpu\n", "run\n", id="removal"),
        pytest.param("a\nb", "x\ny\nz", "1\r\na\r\nb\r\n", "1\r\nx\r\ny\r\nz\r\n", id="crlf"),
        pytest.param("a\nb", "x\ny", "1\ra\rb", "1\rx\ry", id="cr-without-final-newline"),
        pytest.param("a\n", "a2\nx\n", "a\r\nb\na\nb\n", "a2\r\nx\r\nb\na2\nx\nb\n", id="mixed-line-endings"),
        pytest.param("b", "x\ny", "a\r\nb", "a\r\nx\r\ny", id="last-line-takes-the-ending-of-the-file"),
        pytest.param("\n\n\n", "\n\n", "a\r\n\r\n\r\nb\r\n", "a\r\n\r\nb\r\n", id="empty-lines"),
        pytest.param(
            "@echo off\n",
            "@echo off\nset A=1\n",
            "@echo off\r\ngo\r\n",
            "@echo off\r\nset A=1\r\ngo\r\n",
            id="insertion",
        ),
        pytest.param("go", "if x go", "go\nif x go\n", "if x go\nif x go\n", id="insertion-made-at-one-of-two-places"),
        pytest.param("a.b(c)", r"\1\g<0>", "a.b(c) axb(c)", r"\1\g<0> axb(c)", id="no-pattern"),
    ],
)
def test_changes(old: str, new: str, before: str, after: str) -> None:
    assert patched(ReplaceText(old=old, new=new), before.encode()).decode() == after


@pytest.mark.parametrize(
    ("old", "new", "text", "settled"),
    [
        pytest.param("a", "b", "c\n", (), id="neither"),
        pytest.param("a", "", "c\n", (), id="removed-already"),
        pytest.param("x\ny", "b", "1\n  b c\n", (Site(line=2, text="b c"),), id="new-is-there"),
        pytest.param(
            "A", "b", "a b\n2\nb", (Site(line=1, text="a b"), Site(line=3, text="b")), id="letter-case-matters"
        ),
        pytest.param("go\n", "go\nset A\n", "go\r\nset A\r\n", (Site(line=1, text="go"),), id="inserted-behind"),
        pytest.param("go", "if x:\n go", "if x:\r go", (Site(line=2, text="go"),), id="inserted-before"),
        pytest.param("x", "\ny", "a\r\ny", (Site(line=1, text="a"),), id="new-begins-with-a-newline"),
        pytest.param("a\nb", "c", "ab a b a\n\nb", (), id="other-number-of-newlines"),
        pytest.param("\nb", "c", "a\r\r\nx", (), id="half-of-a-crlf"),
    ],
)
def test_leaves_alone(old: str, new: str, text: str, settled: tuple[Site, ...]) -> None:
    assert ReplaceText(old=old, new=new).locate(read(text.encode())) == Located(settled=settled)


def test_sites_say_where_the_text_begins() -> None:
    located = ReplaceText(old="b\nc", new="x").locate(read(b"a\r\n\tb\r\nc d\r\n"))
    assert located.sites == (Site(line=2, text="b"),)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param("aa", "a", "x\naaa\n", id="shrinking"),
        pytest.param("ab", "", "x\naabb\n", id="removal-that-joins"),
    ],
)
def test_replacement_that_would_never_settle_is_refused(old: str, new: str, text: str) -> None:
    why = "the replacement makes another occurrence of `old` with the text beside it"
    refusal = Refusal(line=2, kind=OutcomeKind.AMBIGUOUS, why=why)
    assert ReplaceText(old=old, new=new).locate(read(text.encode())) == Located(refusals=(refusal,))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        pytest.param("", "a", "`old` is empty", id="empty"),
        pytest.param("a", "a", "`old` and `new` are the same", id="same"),
        pytest.param(
            "a\r\n", "b", r"`old` and `new` are written with \n, whatever line endings the file has", id="cr-in-old"
        ),
        pytest.param(
            "a", "b\r", r"`old` and `new` are written with \n, whatever line endings the file has", id="cr-in-new"
        ),
    ],
)
def test_wrong_fields(old: str, new: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        ReplaceText(old=old, new=new)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("bom", "encoding", "newline"),
    [
        pytest.param(codecs.BOM_UTF8, "utf-8", "\r\n", id="utf-8-bom-crlf"),
        pytest.param(codecs.BOM_UTF16_LE, "utf-16-le", "\r\n", id="utf-16-le-bom-crlf"),
        pytest.param(b"", "latin-1", "\n", id="latin-1"),
    ],
)
def test_bytes_outside_the_change_are_kept(bom: bytes, encoding: str, newline: str) -> None:
    def written(*lines: str) -> bytes:
        return bom + newline.join(lines).encode(encoding)

    op = ReplaceText(old="go\n--gpu", new="go\n--cpu\n--slow")
    assert patched(op, written("\té  ", "go", "--gpu\t", "ß")) == written("\té  ", "go", "--cpu", "--slow\t", "ß")


TEXTS = st.text(alphabet="ab\n", max_size=4)


@given(TEXTS.filter(bool), TEXTS, st.text(alphabet="ab\n"), st.sampled_from(["\n", "\r\n", "\r"]))
def test_settles_or_refuses_and_agrees_with_replace(old: str, new: str, text: str, newline: str) -> None:
    assume(old != new)
    op = ReplaceText(old=old, new=new)
    source = read(text.replace("\n", newline).encode())
    located = op.locate(source)
    result = splice(source, located.edits)
    assert not op.locate(result).edits
    if not located.refusals and not located.settled:
        assert result.text.replace(newline, "\n") == text.replace(old, new)
