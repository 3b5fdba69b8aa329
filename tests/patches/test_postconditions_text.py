"""The checks on literal text; each fails when one of two edits is missing."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest

from patchlock.model.patch import Ensure
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._text import ReplaceText
from patchlock.patches.postconditions._text import Contains, Lacks

PATH = PurePosixPath("start.bat")
UNREADABLE = ("the file is not text in an encoding that can be told from its bytes",)


@pytest.mark.parametrize(
    ("ensure", "data", "problems"),
    [
        pytest.param(Contains(text="a\nb"), b"1\r\na\r\nb", (), id="contains-crlf"),
        pytest.param(Contains(text="a\nb"), b"a\rb", (), id="contains-cr"),
        pytest.param(Contains(text="a\r\nb"), b"a\nb", (), id="contains-written-with-crlf"),
        pytest.param(
            Contains(text="é\n"), codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16-le"), (), id="contains-utf-16-le"
        ),
        pytest.param(Contains(text="é"), codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), (), id="contains-utf-16-be"),
        pytest.param(Contains(text="é"), codecs.BOM_UTF8 + "é".encode(), (), id="contains-utf-8-bom"),
        pytest.param(Contains(text="é"), "é".encode("latin-1"), (), id="contains-latin-1"),
        pytest.param(Contains(text="ж"), "#!x\n# -*- coding: cp1251 -*-\nж".encode("cp1251"), (), id="contains-cookie"),
        pytest.param(Contains(text="A"), b"a", ("the text `A` is missing",), id="contains-not"),
        pytest.param(Contains(text="\n a\nb\n"), b"a", ("the text `a …` is missing",), id="contains-not-two-lines"),
        pytest.param(Contains(text="\n"), b"a", (r"the text `'\n'` is missing",), id="contains-not-newline"),
        pytest.param(Contains(text="a"), codecs.BOM_UTF16_LE + b"a", UNREADABLE, id="contains-half-a-character"),
        pytest.param(Lacks(text="a\nb"), b"a b\nab\na\n\nb", (), id="lacks"),
        pytest.param(
            Lacks(text="a\nb"),
            b"a\r\nb\r\na\rb\n--\na\nb",
            (
                "the text `a …` is still on line 1",
                "the text `a …` is still on line 3",
                "the text `a …` is still on line 6",
            ),
            id="lacks-not",
        ),
        pytest.param(
            Lacks(text="é"),
            codecs.BOM_UTF16_LE + "1\r\né".encode("utf-16-le"),
            ("the text `é` is still on line 2",),
            id="lacks-not-utf-16",
        ),
        pytest.param(Lacks(text="ab"), "ab".encode("utf-16-le"), UNREADABLE, id="lacks-unknown-in-utf-16-without-bom"),
    ],
)
def test_says_what_does_not_hold(ensure: Ensure, data: bytes, problems: tuple[str, ...]) -> None:
    assert ensure.problems(PATH, data) == problems


@pytest.mark.parametrize("ensure", [Contains, Lacks])
def test_empty_text_is_a_mistake(ensure: type[Contains | Lacks]) -> None:
    with pytest.raises(ValueError) as caught:
        ensure(text="")
    assert str(caught.value) == "`text` is empty"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("missing", [0, 1])
def test_lacks_fails_without_one_of_two_edits(encoding: str, missing: int) -> None:
    bom = codecs.BOM_UTF16_LE if encoding == "utf-16-le" else codecs.BOM_UTF8
    source = decode(PATH, bom + "pip install\r\ngo\r\npip install\r\n".encode(encoding))
    assert isinstance(source, SourceText)
    edits = ReplaceText(old="pip install", new="rem").locate(source).edits
    assert len(edits) == 2
    ensure = Lacks(text="pip install")
    assert ensure.problems(PATH, encode(splice(source, edits))) == ()
    mutant = encode(splice(source, edits[:missing] + edits[missing + 1 :]))
    assert ensure.problems(PATH, mutant) == (f"the text `pip install` is still on line {1 + 2 * missing}",)


def test_contains_fails_without_the_edit() -> None:
    source = decode(PATH, b"go\r\n")
    assert isinstance(source, SourceText)
    edits = ReplaceText(old="go\n", new="go\nset A=1\n").locate(source).edits
    ensure = Contains(text="go\nset A=1\n")
    assert ensure.problems(PATH, encode(splice(source, edits))) == ()
    assert ensure.problems(PATH, encode(source)) == ("the text `go …` is missing",)
