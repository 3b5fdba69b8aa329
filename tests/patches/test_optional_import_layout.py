"""The op optional-import on every layout: encodings, line endings, indentation; and what it cannot edit cleanly."""

from __future__ import annotations

import codecs
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from without_package import fails_unpatched, locate, no_deepspeed, patched, read, run, without_class

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit
from patchlock.patches.ops.optional_import._guards import is_only_guarded
from patchlock.patches.ops.optional_import._op import OptionalImport
from patchlock.patches.ops.syntax import Module, parse

__all__ = ["no_deepspeed"]

GUARDED = '\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\n'

AMBIGUOUS = [
    pytest.param("if (a and\n        b): import deepspeed\n", 2, "the import does not begin its line", id="header-of-two-lines"),
    pytest.param("if a: \\\n    import deepspeed\n", 1, "guarding its imports would change something else in the file", id="backslash-behind-the-colon"),
    pytest.param("'''Doc.'''; import deepspeed\n", 1, "the first statement does not begin its line", id="line-of-the-docstring"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), AMBIGUOUS)
def test_refuses_a_layout_that_it_cannot_edit_cleanly(text: str, line: int, why: str) -> None:
    assert locate(text) == Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=2, kind=OutcomeKind.UNPARSABLE, why="it does not parse: invalid syntax")
    assert locate("import deepspeed\nx = = 1\n") == Located(refusals=(refusal,))


MISTAKES = [
    pytest.param("deepspeed.ops", "", "`deepspeed.ops` is not the name of a top-level package", id="submodule"),
    pytest.param("", "", "`` is not the name of a top-level package", id="empty"),
    pytest.param("deepspeed", "a\nb", "`message` has more than one line", id="message"),
]


@pytest.mark.parametrize(("package", "message", "error"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(package: str, message: str, error: str) -> None:
    with pytest.raises(ValueError) as raised:
        OptionalImport(package=package, message=message)
    assert str(raised.value) == error


def test_sites_are_told_by_their_lines() -> None:
    located = locate("import os, deepspeed  # c\nif x: from deepspeed import (\n  a)\n")
    assert located.sites == (
        Site(line=1, text="import os, deepspeed  # c"),
        Site(line=2, text="if x: from deepspeed import ("),
    )


PROOFS = [
    pytest.param(Edit(start=0, end=0, text="try:\n    pass\nexcept ImportError as _patchlock_error:\n    x = 1\n"), False, id="statement-more"),
    pytest.param(Edit(start=0, end=9, text="import re"), False, id="other-import"),
    pytest.param(Edit(start=0, end=9, text="import"), False, id="no-python"),
    pytest.param(Edit(start=0, end=9, text="try:\n    import os\nexcept ImportError as _patchlock_error:\n    os = 1"), True, id="guard"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "is_guard"), PROOFS)
def test_edits_are_proved_to_be_guards(edit: Edit, is_guard: bool) -> None:
    module = parse(read(b"import os\nimport sys\n"))
    assert isinstance(module, Module)
    assert is_only_guarded(module, (edit,)) is is_guard


def test_long_chains_are_no_trouble() -> None:
    chain = " + ".join(["1"] * 900)
    before = f"x = {chain}\nimport deepspeed\n"
    assert (
        without_class(patched(before.encode()).decode()) == f"<class>x = {chain}\ntry:\n    import deepspeed{GUARDED}"
    )
    assert locate(f"{before}y = {chain} + deepspeed.a()\n").refusals[0].line == 3


def test_second_package_uses_the_same_class() -> None:
    once = patched(b"import apex\nimport deepspeed\n")
    twice = patched(once, OptionalImport(package="apex"))
    assert twice.count(b"class _PatchlockAbsent") == 1
    names = run(twice.replace(b"import apex", b"import apex_of_nobody"))
    assert not names["apex"]
    assert not names["deepspeed"]


BYTES = [
    pytest.param(codecs.BOM_UTF8 + b"import os\r\nimport deepspeed\r\n", codecs.BOM_UTF8 + b'<class>import os\r\ntry:\r\n    import deepspeed\r\nexcept ImportError as error:\r\n    deepspeed = Absent("deepspeed", "deepspeed", error)\r\n', id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nx = '\xe9'\nimport deepspeed # \xe9\n", b"# coding: latin-1\n\n<class>x = '\xe9'\ntry:\n    import deepspeed # \xe9\nexcept ImportError as error:\n    deepspeed = Absent(\"deepspeed\", \"deepspeed\", error)\n", id="latin-1-cookie"),
    pytest.param("é = '𝄞'; import deepspeed; ü = 1\n".encode(), "<class>é = '𝄞'\ntry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent(\"deepspeed\", \"deepspeed\", error)\nü = 1\n".encode(), id="non-ascii-in-the-line"),
    pytest.param(b"if 1:\n\timport deepspeed\t# c\n", b'<class>if 1:\n\ttry:\n\t\timport deepspeed\t# c\n\texcept ImportError as error:\n\t\tdeepspeed = Absent("deepspeed", "deepspeed", error)\n', id="tabs"),
    pytest.param(b"import os\nimport deepspeed", b'<class>import os\ntry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)', id="no-final-newline"),
    pytest.param(b"import deepspeed", b'<class>try:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)', id="one-line-without-newline"),
    pytest.param(b"import os\rimport deepspeed\r", b'<class>import os\rtry:\r    import deepspeed\rexcept ImportError as error:\r    deepspeed = Absent("deepspeed", "deepspeed", error)\r', id="cr-only"),
    pytest.param(b"import os\nimport deepspeed\r\nimport re\n", b'<class>import os\ntry:\r\n    import deepspeed\r\nexcept ImportError as error:\r\n    deepspeed = Absent("deepspeed", "deepspeed", error)\r\nimport re\n', id="mixed-endings-follow-the-line"),
    pytest.param(b"import os\n\x0cimport deepspeed\n", b'<class>import os\n\x0ctry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="form-feed"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    result = patched(before)
    assert without_class(result.decode("latin-1")).encode("latin-1") == after
    fails_unpatched(before)
    run(result)


def test_the_class_has_the_indentation_and_the_line_endings_of_the_file() -> None:
    text = patched(b"import deepspeed\r\nif 1:\r\n\tx = 1\r\n").decode()
    start = text[: text.index("try:")]
    assert "\r\n\t__version__ = " in start
    assert "\n    " not in start
    assert start.count("\n") == start.count("\r\n") > 30


FORMS = ["import deepspeed", "import deepspeed.a as b", "from deepspeed.a import (b,\n  c as d)", "import os, deepspeed, re", "import deepspeed.a, os as b"]  # fmt: skip
AROUND = ["{}", "{}  # c", "x = 1; {}; y = 'é'", "if 1: {}", "if 1:\n{i}{}\nelse:\n{i}pass", "class A:\n{i}x = 1\n{i}{}", "try: {}\nfinally: pass", "for x in (1,):\n{i}if x: {}", "try:\n{i}1 / 0\nexcept ZeroDivisionError: {}"]  # fmt: skip


@settings(deadline=None)  # a busy machine is no failure
@given(
    blocks=st.lists(st.tuples(st.sampled_from(AROUND), st.sampled_from(FORMS)), min_size=1, max_size=4),
    indentation=st.sampled_from(["\t", "  ", "    "]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    is_ended=st.booleans(),
)
def test_every_layout_is_guarded_and_nothing_else_changes(
    blocks: list[tuple[str, str]], indentation: str, newline: str, is_ended: bool
) -> None:
    lines = "\n".join(around.replace("{i}", indentation).replace("{}", form) for around, form in blocks)
    before = (lines.replace("\n", newline) + newline * is_ended).encode()
    with pytest.MonkeyPatch.context() as context:
        context.setitem(sys.modules, "deepspeed", None)
        fails_unpatched(before)
        result = patched(before)
        run(result)
    assert result.endswith(newline.encode()) is is_ended
    if newline.encode() in before:
        assert not re.search(rb"[\r\n]", result.replace(newline.encode(), b""))
