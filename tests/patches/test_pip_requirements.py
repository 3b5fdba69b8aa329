"""The reader of requirement files: what each kind of line is, and where it stands."""

from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from patchlock.model.text_files import SourceText
from patchlock.patches.pip_requirements import (
    EmptyLine,
    LocationLine,
    OptionLine,
    RequirementLine,
    Span,
    Unreadable,
    parse,
)


def source(text: str) -> SourceText:
    return SourceText(path=PurePosixPath("requirements.txt"), text=text, encoding="utf-8", bom=b"")


def only(text: str) -> RequirementLine:
    (line,) = parse(source(text))
    assert isinstance(line, RequirementLine)
    return line


def cut(text: str, span: Span) -> str:
    return text[span.start : span.end]


@pytest.mark.parametrize(
    ("text", "requirement", "requirement_text", "specifier_text"),
    [
        pytest.param("torch\n", "torch", "torch", "", id="bare"),
        pytest.param("  torch==2.0  # why\n", "torch==2.0", "torch==2.0", "==2.0", id="indented-and-comment"),
        pytest.param("torch\t>= 2.0 , <3\r\n", "torch>=2.0,<3", "torch\t>= 2.0 , <3", ">= 2.0 , <3", id="crlf-and-tab"),
        pytest.param("torch (>=2,<3)", "torch>=2,<3", "torch (>=2,<3)", "(>=2,<3)", id="parentheses"),
        pytest.param("protobuf==3.20.*", "protobuf==3.20.*", "protobuf==3.20.*", "==3.20.*", id="wildcard"),
        pytest.param(
            "a===1.0;os_name=='nt'", "a===1.0; os_name=='nt'", "a===1.0;os_name=='nt'", "===1.0", id="arbitrary"
        ),
        pytest.param("a [b, c] ~=1.4", "a[b,c]~=1.4", "a [b, c] ~=1.4", "~=1.4", id="extras"),
        pytest.param("a[b];os_name=='nt'", "a[b]; os_name=='nt'", "a[b];os_name=='nt'", "", id="extras-and-marker"),
        pytest.param(
            "a \\\n  >=1 \\\r\n  ,<2", "a>=1,<2", "a \\\n  >=1 \\\r\n  ,<2", ">=1 \\\r\n  ,<2", id="continued"
        ),
        pytest.param("a>=1 \\", "a>=1", "a>=1", ">=1", id="backslash-at-the-end-of-the-file"),
        pytest.param("a==1 --config-settings=x=y", "a==1", "a==1", "==1", id="config-settings"),
        pytest.param(
            "a @ https://h/a.zip", "a @ https://h/a.zip", "a @ https://h/a.zip", " @ https://h/a.zip", id="url"
        ),
        pytest.param("a@file:///w/a", "a @ file:///w/a", "a@file:///w/a", "@file:///w/a", id="file-url"),
        pytest.param(
            "a @ git+https://h/o/a@v1; os_name=='nt'",
            "a @ git+https://h/o/a@v1 ; os_name=='nt'",
            "a @ git+https://h/o/a@v1; os_name=='nt'",
            " @ git+https://h/o/a@v1",
            id="url-and-marker-without-blank",
        ),
        pytest.param(
            "git+https://h/o/r.git@v1#egg=a[x]&subdirectory=s # needs b >= 2",
            "a[x] @ git+https://h/o/r.git@v1#egg=a[x]&subdirectory=s",
            "git+https://h/o/r.git@v1#egg=a[x]&subdirectory=s",
            "git+https://h/o/r.git@v1#egg=a[x]&subdirectory=s",
            id="egg",
        ),
        pytest.param(
            "https://h/a_b-1.0%2Bcu118-cp311-cp311-win_amd64.whl#sha256=00 ; os_name=='nt'",
            "a_b @ https://h/a_b-1.0%2Bcu118-cp311-cp311-win_amd64.whl#sha256=00 ; os_name=='nt'",
            "https://h/a_b-1.0%2Bcu118-cp311-cp311-win_amd64.whl#sha256=00 ; os_name=='nt'",
            "https://h/a_b-1.0%2Bcu118-cp311-cp311-win_amd64.whl#sha256=00",
            id="wheel-url",
        ),
        pytest.param(
            "wheels\\a-1.0-py3-none-any.whl[x]",
            "a[x] @ wheels\\a-1.0-py3-none-any.whl",
            "wheels\\a-1.0-py3-none-any.whl[x]",
            "wheels\\a-1.0-py3-none-any.whl[x]",
            id="wheel-path",
        ),
        pytest.param(
            "a-1.0-py3-none-any.whl",
            "a @ a-1.0-py3-none-any.whl",
            "a-1.0-py3-none-any.whl",
            "a-1.0-py3-none-any.whl",
            id="wheel-beside-the-file",
        ),
    ],
)
def test_requirement_and_its_place(text: str, requirement: str, requirement_text: str, specifier_text: str) -> None:
    line = only(text)
    assert line.requirement == Requirement(requirement)
    assert cut(text, line.requirement_span) == requirement_text
    assert cut(text, line.specifier_span) == specifier_text
    assert cut(text, line.span) == text
    assert (line.line, line.editable, line.has_hash) == (1, False, False)


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        pytest.param("-e git+https://h/o/r#egg=a", "a @ git+https://h/o/r#egg=a", id="egg"),
        pytest.param("--editable=git+https://h/o/r#egg=a", "a @ git+https://h/o/r#egg=a", id="long-option"),
        pytest.param(
            "-e 'a @ git+https://h/o/r ; os_name==\"nt\"'", "a @ git+https://h/o/r ; os_name=='nt'", id="name"
        ),
    ],
)
def test_editable_requirement_begins_at_its_option(text: str, requirement: str) -> None:
    line = only(f"{text}  # comment\n")
    assert line.requirement == Requirement(requirement)
    assert line.editable
    assert cut(text, line.requirement_span) == cut(text, line.specifier_span) == text


def test_hash_is_seen_over_continuation_lines() -> None:
    text = "a==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n    # via b\n"
    line, comment = parse(source(text))
    assert isinstance(line, RequirementLine)
    assert line.has_hash
    assert cut(text, line.requirement_span) == "a==1"
    assert comment == EmptyLine(line=4, span=Span(start=text.index("    # via"), end=len(text)))


@pytest.mark.parametrize(
    ("text", "target", "editable"),
    [
        pytest.param(".", ".", False, id="here"),
        pytest.param("./libs/a  # comment", "./libs/a", False, id="path"),
        pytest.param("-e .[dev]", ".[dev]", True, id="editable-with-extras"),
        pytest.param("-e a", "a", True, id="editable-folder"),
        pytest.param("git+https://h/o/a.git@v1 ; os_name=='nt'", "git+https://h/o/a.git@v1", False, id="vcs"),
        pytest.param("https://h/a-1.0.tar.gz", "https://h/a-1.0.tar.gz", False, id="archive-url"),
        pytest.param("a-1.0.tar.gz", "a-1.0.tar.gz", False, id="archive"),
        pytest.param("C:\\w\\a", "C:\\w\\a", False, id="windows-path"),
    ],
)
def test_location_without_name(text: str, target: str, editable: bool) -> None:
    span = Span(start=0, end=len(text))
    assert parse(source(text)) == (LocationLine(line=1, span=span, target=target, editable=editable),)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param("-r base.txt", (("--requirement", "base.txt"),), id="short"),
        pytest.param("-rbase.txt", (("--requirement", "base.txt"),), id="short-attached"),
        pytest.param("-c 'a b.txt'  # why", (("--constraint", "a b.txt"),), id="quoted"),
        pytest.param("--index-url=https://h/s", (("--index-url", "https://h/s"),), id="equals"),
        pytest.param("--pre", (("--pre", ""),), id="flag"),
        pytest.param(
            "-i https://h/s --extra-index-url \\\n https://h/t",
            (("--index-url", "https://h/s"), ("--extra-index-url", "https://h/t")),
            id="two-on-two-lines",
        ),
    ],
)
def test_options(text: str, options: tuple[tuple[str, str], ...]) -> None:
    assert parse(source(text)) == (OptionLine(line=1, span=Span(start=0, end=len(text)), options=options),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "torch=2.0",
            "it is not a requirement that pip can read: expected semicolon (after name with no version specifier) or end, at `=2.0`",
            id="one-equals-sign",
        ),
        pytest.param(
            "torch>=1.0.*",
            "it is not a requirement that pip can read: .* suffix can only be used with `==` or `!=` operators, at `*`",
            id="legacy-specifier",
        ),
        pytest.param(
            "torch#why",
            "it is not a requirement that pip can read: expected semicolon (after name with no version specifier) or end, at `#why`",
            id="comment-without-blank",
        ),
        pytest.param("./a b", "it has blanks inside a path or URL", id="blank-in-path"),
        pytest.param(
            "git+https://h/r#egg=a==1",
            "it is not a requirement that pip can read: expected comma (within version specifier), semicolon (after version specifier) or end, at `@ git+https://h/r#egg=a==1`",
            id="egg-with-version",
        ),
        pytest.param("a --pre", "`--pre` is not an option that can stand here", id="file-option-behind-requirement"),
        pytest.param("--unknown x", "`--unknown` is not an option that can stand here", id="unknown-option"),
        pytest.param("--pre=yes", "`--pre=yes` is not an option that can stand here", id="flag-with-value"),
        pytest.param("--index-url", "`--index-url` has no value", id="no-value"),
        pytest.param("-f https://h torch==2.0", "`torch==2.0` belongs to no option", id="requirement-behind-option"),
        pytest.param("-r 'base.txt", "its quotation marks are not closed", id="quotation-mark"),
        pytest.param("-e a -e b", "it has more than one `-e`", id="two-editables"),
    ],
)
def test_unreadable_line_says_why(text: str, why: str) -> None:
    span = Span(start=0, end=len(text) + len("  # comment"))
    (line,) = parse(source(f"{text}  # comment"))
    assert isinstance(line, Unreadable)
    assert dataclasses.replace(line, head=None) == Unreadable(line=1, span=span, text=text, why=why)


@pytest.mark.parametrize(
    ("text", "name", "specifier"),
    [
        pytest.param("torch>=2.1.0+cu118", "torch", ">=2.1.0+cu118", id="local-version-in-a-range"),
        pytest.param("  Flash_Attn [a,b] >=1.* ; os_name=='nt' # c", "flash-attn", ">=1.*", id="extras-and-marker"),
        pytest.param("torch=2.0", "torch", "=2.0", id="one-equals-sign"),
        pytest.param("torch ; python_versoin<'3'", "torch", "", id="marker"),
        pytest.param("torch==1 --hash=sha256:00 --pre", "torch", "==1", id="option"),
    ],
)
def test_plain_name_is_certain_whatever_stands_behind_it(text: str, name: str, specifier: str) -> None:
    (line,) = parse(source(text))
    assert isinstance(line, Unreadable)
    assert line.head is not None
    assert line.head.name == name
    assert cut(text, line.head.specifier_span) == specifier
    assert line.head.has_hash == ("--hash" in text)


@pytest.mark.parametrize("text", ["deepspeeв==11.2", "torch 2.0", "torch#why", "a\fb", "./torch=1", "=1", "-x"])
def test_no_name_is_certain(text: str) -> None:
    (line,) = parse(source(text))
    assert not isinstance(line, RequirementLine)
    assert getattr(line, "head", None) is None


def test_comment_line_with_backslash_does_not_continue_but_a_trailing_one_does() -> None:
    first, second, third = parse(source("# c \\\na # c \\\nb\nd\n"))
    assert isinstance(first, EmptyLine)
    assert isinstance(second, RequirementLine)
    assert isinstance(third, RequirementLine)
    assert [(second.requirement.name, second.line), (third.requirement.name, third.line)] == [("a", 2), ("d", 4)]


def test_comment_line_ends_a_continuation() -> None:
    names = [line.requirement.name for line in parse(source("a \\\n# c \\\nb\n")) if isinstance(line, RequirementLine)]
    assert names == ["a", "b"]


def test_duplicates_keep_their_order_and_lines() -> None:
    found = parse(source("A.b==1\n\na_B==2\r\n# c\rtorch"))
    assert [(line.line, str(line.requirement)) for line in found if isinstance(line, RequirementLine)] == [
        (1, "A.b==1"),
        (3, "a_B==2"),
        (5, "torch"),
    ]


PIECES = st.sampled_from(
    ["a", "torch==2", " ", "\\", "#", "\n", "\r\n", "\r", ";", "@", "https://h/x", "--hash=x", "-e", "'", "[", "="]
)


@given(st.lists(PIECES).map("".join))
def test_any_text_is_read_and_spans_cover_it_without_gaps(text: str) -> None:
    lines = parse(source(text))
    assert "".join(cut(text, line.span) for line in lines) == text
    starts = source(text).line_starts()
    assert [starts[line.line - 1] for line in lines] == [line.span.start for line in lines]
    for line in lines:
        if isinstance(line, RequirementLine):
            assert line.span.start <= line.requirement_span.start <= line.specifier_span.start
            assert line.specifier_span.end <= line.requirement_span.end <= line.span.end
