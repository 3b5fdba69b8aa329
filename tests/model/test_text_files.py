"""Files of upstream: decoded and encoded without the loss of a byte; edits touch nothing but their ranges."""

from __future__ import annotations

import codecs
import itertools
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchlock.model.text_files import Edit, SourceText, Undecodable, decode, encode, lines_after, splice

PATH = PurePosixPath("a/b.py")
LINES = st.lists(st.text(st.characters(codec="latin-1", exclude_characters="\0\r\n"), max_size=8), max_size=6)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])


def _source(text: str, encoding: str = "utf-8", bom: bytes = b"") -> SourceText:
    return SourceText(path=PATH, text=text, encoding=encoding, bom=bom)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", _source(""), id="empty"),
        pytest.param("é\r\n".encode(), _source("é\r\n"), id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + "é".encode(), _source("é", bom=codecs.BOM_UTF8), id="utf-8-bom"),
        pytest.param(
            codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16-le"),
            _source("é\r\n", "utf-16-le", codecs.BOM_UTF16_LE),
            id="utf-16-le",
        ),
        pytest.param(
            codecs.BOM_UTF16_BE + "é".encode("utf-16-be"),
            _source("é", "utf-16-be", codecs.BOM_UTF16_BE),
            id="utf-16-be",
        ),
        pytest.param(b"# caf\xe9", _source("# café", "latin-1"), id="latin-1-by-default"),
        pytest.param(b"a\n\n\n# caf\xe9", _source("a\n\n\n# café", "latin-1"), id="latin-1-behind-line-2"),
        pytest.param(b"# coding: cp1251\n\xe6", _source("# coding: cp1251\nж", "cp1251"), id="cookie"),
        pytest.param(
            b"#!/bin/sh\n# -*- coding: cp1251 -*-\n\xe6",
            _source("#!/bin/sh\n# -*- coding: cp1251 -*-\nж", "cp1251"),
            id="cookie-on-line-2",
        ),
    ],
)
def test_encoding_is_found_as_python_and_pip_do(data: bytes, expected: SourceText) -> None:
    assert decode(PATH, data) == expected
    assert encode(expected) == data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"a\0b", "it has NUL bytes", id="nul"),
        pytest.param("ab".encode("utf-16-le"), "it has NUL bytes", id="utf-16-without-bom"),
        pytest.param(
            codecs.BOM_UTF16_LE + b"a",
            "it is not valid utf-16-le: 'utf-16-le' codec can't decode byte 0x61 in position 0: truncated data",
            id="half-a-character",
        ),
        pytest.param(
            codecs.BOM_UTF8 + b"\xe9",
            "it is not valid utf-8: 'utf-8' codec can't decode byte 0xe9 in position 0: unexpected end of data",
            id="bom-of-utf-8-and-latin-1",
        ),
        pytest.param(
            b"# coding: ascii\n\xe9",
            "it is not valid ascii: 'ascii' codec can't decode byte 0xe9 in position 16: ordinal not in range(128)",
            id="cookie-is-wrong",
        ),
        pytest.param(
            b"x = 'caf\xe9'\n",
            "Python cannot read it: (unicode error) 'utf-8' codec can't decode byte 0xe9 in position 3: unexpected end of data",
            id="text-that-is-no-utf-8",
        ),
        pytest.param(b"# coding: martian\nx", "Python cannot read it: unknown encoding: martian", id="unknown-cookie"),
        pytest.param(b"# coding: utf-7\n+AGE-", "utf-7 does not give its bytes back", id="not-faithful"),
    ],
)
def test_what_cannot_be_written_back_is_not_text(data: bytes, why: str) -> None:
    assert decode(PATH, data) == Undecodable(path=PATH, why=why)


def test_other_files_than_pythons_are_latin_1_where_they_are_no_utf_8() -> None:
    for data in (b"caf\xe9", b"# coding: martian\ncaf\xe9"):
        source = decode(PurePosixPath("requirements.txt"), data)
        assert isinstance(source, SourceText)
        assert encode(source) == data


@given(data=st.binary(max_size=60))
def test_whatever_decodes_is_encoded_to_the_same_bytes(data: bytes) -> None:
    source = decode(PurePosixPath("requirements.txt"), data)
    assert not isinstance(source, SourceText) or encode(source) == data


@given(
    lines=LINES,
    newline=NEWLINES,
    form=st.sampled_from(
        [
            ("utf-8", b""),
            ("utf-8", codecs.BOM_UTF8),
            ("utf-16-le", codecs.BOM_UTF16_LE),
            ("utf-16-be", codecs.BOM_UTF16_BE),
            ("latin-1", b""),
        ]
    ),
)
def test_round_trip_over_encodings_boms_and_line_endings(
    lines: list[str], newline: str, form: tuple[str, bytes]
) -> None:
    encoding, bom = form
    text = newline.join(["# coding: latin-1" if encoding == "latin-1" else "#", *lines])
    data = bom + text.encode(encoding)
    source = decode(PurePosixPath("a.txt"), data)
    assert isinstance(source, SourceText)
    assert (source.text, source.bom) == (text, bom)
    assert codecs.lookup(source.encoding) == codecs.lookup(encoding)
    assert encode(source) == data


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a", "\n"), ("a\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb", "\r"), ("a\nb\r\n", "\n")],
    ids=["empty", "none", "lf", "mostly-crlf", "cr", "as-many"],
)
def test_newline_is_the_one_that_the_file_uses_most(text: str, newline: str) -> None:
    assert _source(text).newline == newline


def test_line_starts_know_only_the_three_line_endings() -> None:
    assert _source("a\nb\r\nc\rd\x0ce\u2028f\x85g\n").line_starts() == (0, 2, 5, 7, 15)
    assert _source("a\n\x0cb\u2028\n").line_starts() == (0, 2, 6)


@given(
    text=st.text(max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=8, unique=True).map(sorted),
    words=st.lists(st.text(max_size=4), min_size=4, max_size=4),
)
def test_splice_changes_its_ranges_and_nothing_else(text: str, cuts: list[int], words: list[str]) -> None:
    cuts = [cut for cut in cuts if cut <= len(text)]
    ranges = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = tuple(Edit(start=a, end=b, text=word) for (a, b), word in zip(ranges, words, strict=False))
    expected, position = "", 0
    for (start, end), word in zip(ranges, words, strict=False):
        expected += text[position:start] + word
        position = end
    source = _source(text, "utf-16-le", codecs.BOM_UTF16_LE)
    spliced = splice(source, edits[::-1])
    assert spliced == _source(expected + text[position:], "utf-16-le", codecs.BOM_UTF16_LE)
    assert splice(source, edits) == spliced


def test_edits_may_touch() -> None:
    edits = (Edit(start=0, end=1, text="x"), Edit(start=1, end=2, text="y"), Edit(start=2, end=2, text="z"))
    assert splice(_source("ab"), edits).text == "xyz"


@pytest.mark.parametrize(
    ("edits", "where"),
    [
        pytest.param(((0, 2), (1, 3)), 0, id="partly"),
        pytest.param(((0, 4), (1, 2)), 0, id="inside"),
        pytest.param(((1, 3), (1, 3)), 1, id="same"),
        pytest.param(((3, 2),), 3, id="backwards"),
    ],
)
def test_overlap_is_an_error(edits: tuple[tuple[int, int], ...], where: int) -> None:
    with pytest.raises(ValueError) as caught:
        splice(_source("abcdef"), tuple(Edit(start=start, end=end, text="") for start, end in edits))
    assert str(caught.value) == f"edits overlap in a/b.py at character {where}"


def test_character_that_the_encoding_lacks_is_an_error() -> None:
    source = splice(_source("a", "latin-1"), (Edit(start=0, end=1, text="→"),))
    with pytest.raises(UnicodeEncodeError):
        encode(source)


@given(
    text=st.lists(st.sampled_from(["a", "bb", "", "c\r\nd"]), max_size=6).map("\n".join),
    places=st.lists(st.integers(0, 20), max_size=6),
    texts=st.lists(st.sampled_from(["", "x", "x\n", "x\ny\nz", "\n\n"]), min_size=3, max_size=3),
)
def test_each_line_after_edits_comes_from_a_line_before(text: str, places: list[int], texts: list[str]) -> None:
    source = SourceText(path=PurePosixPath("a.txt"), text=text.replace("\r\n", "\n"), encoding="utf-8", bom=b"")
    at = sorted(min(place, len(source.text)) for place in places)
    pairs = zip(at[::2], at[1::2], texts, strict=False)
    edits = tuple(Edit(start=start, end=end, text=new) for start, end, new in pairs)
    assume(all(one.end < other.start for one, other in itertools.pairwise(edits)))
    known = range(1, len(source.line_starts()) + 1)
    lines = lines_after(source, edits, known)
    after = splice(source, edits)
    assert len(lines) == len(after.line_starts())
    assert lines == sorted(lines)
    untouched = [number for number in known if not any(_touches(source, edit, number) for edit in edits)]
    old, new = source.text.split("\n"), after.text.split("\n")
    assert [old[number - 1] for number in untouched] == [new[lines.index(number)] for number in untouched]


def _touches(source: SourceText, edit: Edit, number: int) -> bool:
    starts = (*source.line_starts(), len(source.text) + 1)
    return edit.start < starts[number] and starts[number - 1] <= edit.end
