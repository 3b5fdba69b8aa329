"""Notebooks: code cells are patched as Python, and every other byte of the JSON stays."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.model.origins import Origin
from patchlock.model.patch import Expect, Located, Op, OutcomeKind, Patch, Refusal
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches import _json_offsets, _notebooks, engine
from patchlock.patches.ops._python import NeutraliseCall, ReplaceExpression
from patchlock.patches.ops._run_time_pip.op import RunTimePip
from patchlock.patches.ops._text import ReplaceText
from patchlock.patches.ops.optional_import._op import OptionalImport
from patchlock.patches.postconditions._python import ImportsWithout, NoString
from patchlock.patches.postconditions._run_time_pip import NoRunTimePip

PATH = PurePosixPath("a.ipynb")
CUDA = ReplaceExpression(pattern='"cuda"', replacement='"cpu"')
DEEPSPEED = OptionalImport(package="deepspeed")


def cell(source: str | list[str], **more: Any) -> dict[str, Any]:
    return (
        {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [{"text": ['x = "cuda"\n']}]}
        | more
        | {"source": source}
    )


def book(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "cells": list(cells),
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    } | more


def read(data: bytes) -> SourceText:
    source = decode(PATH, data)
    assert isinstance(source, SourceText)
    return source


def text_of(root: dict[str, Any]) -> str:
    return json.dumps(root, indent=1, ensure_ascii=False) + "\n"


def code(root: dict[str, Any]) -> str:
    notebook = _notebooks.read(read(text_of(root).encode()))
    assert isinstance(notebook, _notebooks.Notebook)
    return notebook.code.text


def patched(text: str, op: Op = CUDA) -> str:
    """Apply an op, and see that it settles."""
    source = read(text.encode())
    located = _notebooks.locate(op, source)
    assert not located.refusals
    assert located.edits
    result = encode(splice(source, located.edits))
    again = _notebooks.locate(op, read(result))
    assert not again.edits
    assert not again.refusals
    return result.decode()


LINES = ["import torch\n", 'x = torch.device("cuda")\n', 'y = "cuda"']
STYLES = [
    pytest.param(text_of(book(cell(LINES))), id="as-jupyter-writes-it"),
    pytest.param(json.dumps(book(cell(LINES))), id="one-line-and-no-final-newline"),
    pytest.param(json.dumps(book(cell("".join(LINES))), indent=4), id="one-string"),
    pytest.param(json.dumps(book(cell(LINES)), indent="\t", sort_keys=True), id="tabs"),
    pytest.param(text_of(book(cell(LINES))).replace("\n", "\r\n"), id="crlf"),
    pytest.param(text_of(book(cell([line.replace("\n", "\r\n") for line in LINES]))), id="crlf-in-the-code"),
    pytest.param(text_of(book(cell(['# "é𝄞"\n', *LINES]))), id="other-characters"),
    pytest.param(json.dumps(book(cell(['# "é𝄞"\n', *LINES])), indent=1), id="escaped-characters"),
    pytest.param(text_of(book(cell(LINES))).replace("torch", "t\\u006frch"), id="needless-escapes"),
    pytest.param(text_of(book(cell(["x = 1"]), {"cell_type": "markdown", "source": ['"cuda"']}, cell(LINES))), id="among-other-cells"),
    pytest.param(re.sub(r'"source": \[\s+', '"source":[', text_of(book(cell(LINES)))), id="list-that-begins-at-once"),
]  # fmt: skip


@pytest.mark.parametrize("text", STYLES)
def test_only_the_expression_is_edited(text: str) -> None:
    quote = '\\"'
    in_code = re.compile(rf"((?:device\(|y = ){re.escape(quote)})cuda")
    assert patched(text) == in_code.sub(r"\1cpu", text)


@pytest.mark.parametrize("text", STYLES)
def test_no_edit_gives_the_same_bytes(text: str) -> None:
    source = read(text.encode())
    assert _notebooks.locate(ReplaceExpression(pattern="nothing", replacement="x"), source) == Located()
    assert encode(splice(source, ())) == text.encode()


@pytest.mark.parametrize("text", STYLES)
def test_new_lines_become_elements_of_the_list(text: str) -> None:
    result = patched(
        text,
        OptionalImport(package="torch")
        if "device" not in text
        else ReplaceExpression(pattern='"cuda"', replacement='(\n    "cpu"\n)'),
    )
    before, after = json.loads(text), json.loads(result)
    for old, new in zip(before["cells"], after["cells"], strict=True):
        if isinstance(new["source"], list):
            assert all(line.endswith("\n") for line in new["source"][:-1])
            assert all(line.count("\n") <= 1 for line in new["source"])
            assert "" not in new["source"]
        assert {**old, "source": None} == {**new, "source": None}
    assert result.count("\r") >= text.count("\r")
    indents = {re.match(r"\s*", line)[0] for line in text.split("\n")}  # type: ignore[index]
    assert {re.match(r"\s*", line)[0] for line in result.split("\n")} <= indents  # type: ignore[index]


def test_optional_import_of_a_notebook() -> None:
    root = book(cell(["# c\n", "import deepspeed"]), cell(["class A(deepspeed.E): pass"]))
    result = json.loads(patched(text_of(root), DEEPSPEED))
    first, second = (one["source"] for one in result["cells"])
    assert first[:2] == ["# c\n", "\n"]
    assert first[2] == "class _PatchlockAbsent:\n"
    assert first[-4:] == [
        "try:\n",
        "    import deepspeed\n",
        "except ImportError as _patchlock_error:\n",
        '    deepspeed = _PatchlockAbsent("deepspeed", "deepspeed", _patchlock_error)',
    ]
    assert second == ["class A(deepspeed.E): pass"]
    names: dict[str, Any] = {}
    exec("".join(first).replace("import deepspeed", "import deepspeed_of_nobody"), names)
    exec("".join(second), names)


def test_inserted_text_is_escaped_as_the_file_is() -> None:
    op = ReplaceExpression(pattern='"cuda"', replacement='"é"')
    plain, escaped = text_of(book(cell(["# ü\n", 'x = "cuda"']))), json.dumps(book(cell(["# ü\n", 'x = "cuda"'])))
    assert 'x = \\"é\\"' in patched(plain, op)
    assert 'x = \\"\\u00e9\\"' in patched(escaped, op)


CODE = [
    pytest.param(book(cell("a"), cell(["b\n", "c"]), cell("d\n")), "a\nb\nc\nd\n", id="joined"),
    pytest.param(book(cell([]), cell(""), cell("a")), "a\n", id="empty-cells"),
    pytest.param(book(cell("%%bash\nls"), cell("\n# c\n%%html\n<a>"), cell("x")), "x\n", id="cells-of-other-languages"),
    pytest.param(book(cell("%%time\nx"), cell("%%capture out\ny")), "######\nx\n#############\ny\n", id="cell-magics-around-python"),
    pytest.param(book(cell("!ls\nx = 1\n%cd y\n?z\nz??")), "###\nx = 1\n#####\n##\n###\n", id="commands"),
    pytest.param(book(cell("if x:\n    !ls\n    %cd y\nz")), "if x:\n    000\n    #####\nz\n", id="command-alone-in-a-block"),
    pytest.param(book(cell("!pip install \\\n  a \\\n  b\nx")), "##############\n#####\n###\nx\n", id="command-of-several-lines"),
    pytest.param(book(cell("x = !ls\ny = %pwd\nz = a\n")), "#######\n########\nz = a\n", id="assigned-commands"),
    pytest.param(book(cell('x = (a\n  % b)\ny = """\n!ls\n"""\nz = a \\\n  % b')), 'x = (a\n  % b)\ny = """\n!ls\n"""\nz = a \\\n  % b\n', id="python-that-looks-like-commands"),
    pytest.param(book(cell("x"), metadata={"kernelspec": {"name": "ir", "language": "R"}}), "", id="other-kernel"),
    pytest.param(book(cell("x"), metadata={}), "x\n", id="kernel-is-not-told"),
    pytest.param(book(cell("x", metadata={"vscode": {"languageId": "sql"}}), cell("y")), "y\n", id="other-language"),
    pytest.param(book({"cell_type": "markdown", "source": "x"}, {"cell_type": "raw", "source": "y"}), "", id="no-code"),
    pytest.param({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "code", "language": "python", "input": ["a\n", "b"]}, {"cell_type": "code", "language": "ruby", "input": "c"}]}]}, "a\nb\n", id="nbformat-3"),
]  # fmt: skip


@pytest.mark.parametrize(("root", "expected"), CODE)
def test_python_cells_are_joined(root: dict[str, Any], expected: str) -> None:
    joined = code(root)
    if "00" in expected or "#" in expected:
        assert [len(line) for line in joined.split("\n")] == [len(line) for line in expected.split("\n")]
    assert joined == expected


REFUSED = [
    pytest.param(b"{", 1, OutcomeKind.UNPARSABLE, "it is not JSON: ", id="no-json"),
    pytest.param(b"[]", 1, OutcomeKind.UNPARSABLE, "it is not a notebook of nbformat 3 or 4: None", id="no-notebook"),
    pytest.param(b'{"nbformat": 2}', 1, OutcomeKind.UNPARSABLE, "it is not a notebook of nbformat 3 or 4: 2", id="nbformat-2"),
    pytest.param(text_of(book(cell(["x\n", "y = = 1"]))).encode(), 16, OutcomeKind.UNPARSABLE, "it does not parse: invalid syntax", id="no-python"),
    pytest.param(text_of(book(cell(["import deepspeed\n", "deepspeed.init()"]))).encode(), 16, OutcomeKind.REQUIRED_AT_IMPORT, "`deepspeed.init` is called while the file is imported", id="required"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "line", "kind", "why"), REFUSED)
def test_refused_with_the_line_of_the_notebook(data: bytes, line: int, kind: OutcomeKind, why: str) -> None:
    located = _notebooks.locate(DEEPSPEED, read(data))
    assert [(r.line, r.kind) for r in located.refusals] == [(line, kind)]
    assert located.refusals[0].why.startswith(why)


@dataclasses.dataclass(frozen=True)
class Fixed:
    """An op that edits where it is told."""

    edits: tuple[Any, ...]

    def locate(self, source: SourceText) -> Located:
        """Give the edits."""
        assert source
        return Located(edits=self.edits)


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (1, 2, "the place is in a shell command or a magic of the notebook"),
        (0, 3, "the place is in a shell command or a magic of the notebook"),
        (4, 7, "the place goes from one cell into the next"),
    ],
)
def test_edits_that_cannot_be_brought_back_are_refused(
    start: int, end: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchlock.model.text_files import Edit

    monkeypatch.setattr(_notebooks, "PYTHON_OPS", {None})  # an op that the catalogue has no word for
    op = Fixed((Edit(start=start, end=end, text="z"),))
    located = _notebooks.locate(op, read(text_of(book(cell("!ls\nx"), cell("y"))).encode()))
    assert not located.edits
    assert [refusal.why for refusal in located.refusals] == [why]


def test_other_ops_see_the_json() -> None:
    source = read(text_of(book(cell("x"))).encode())
    located = _notebooks.locate(ReplaceText(old='"nbformat": 4', new='"nbformat": 3'), source)
    assert source.text[located.edits[0].start : located.edits[0].end] == '"nbformat": 4'


def test_patch_of_a_notebook_is_ensured() -> None:
    patch = Patch(
        id="cpu",
        why="",
        source="",
        paths=("*.ipynb",),
        literal=("cuda",),
        profiles=(),
        op_name="replace-expression",
        op=CUDA,
        ensures=(NoString(value="cuda"), ImportsWithout(package="deepspeed")),
        expect=Expect(),
        after=(),
        origin=Origin(file="a.toml", line=1),
    )
    good, bad = (
        text_of(book(cell(["!pip install cuda\n", *LINES, more]))).encode() for more in ("\n", "\nimport deepspeed")
    )
    result = engine.apply([patch], {PATH: good})
    assert not result.failures
    assert [(o.kind, [s.line for s in o.sites]) for o in result.outcomes] == [(OutcomeKind.NEEDED, [17, 18])]
    assert result.changes[0].after == re.sub(rb'((?:device\(|y = )\\")cuda', rb"\1cpu", good)
    assert "imports deepspeed" in engine.apply([patch], {PATH: bad}).failures[0]


@pytest.mark.parametrize("missing", [0, 1])
def test_ensure_sees_one_missing_edit(missing: int) -> None:
    source = read(text_of(book(cell(LINES))).encode())
    edits = _notebooks.locate(CUDA, source).edits
    assert NoString(value="cuda").problems(PATH, encode(splice(source, edits))) == ()
    some = tuple(edit for number, edit in enumerate(edits) if number != missing)
    assert len(NoString(value="cuda").problems(PATH, encode(splice(source, some)))) == 1


@pytest.mark.parametrize(("root", "expected"), CODE)
def test_ensures_read_the_same_cells(root: dict[str, Any], expected: str) -> None:
    marked = json.loads(json.dumps(root))
    for sheet in marked.get("worksheets", [marked]):
        for one in sheet["cells"]:
            key = "input" if "input" in one else "source"
            one[key] = re.sub(r"\bx\b(?! = !)", "f('found')", "".join(one[key]))
    has = "'found'" in code(marked)
    assert bool(NoString(value="found").problems(PATH, text_of(marked).encode())) is has


@settings(deadline=None)  # a busy machine is no failure
@given(
    lines=st.lists(st.sampled_from(['x = "cuda"', "# é", "y = '''a", "'''", "", "if x:", '    z("cuda")', "!ls", "𝄞 = 1", "\\"]), min_size=1, max_size=8),
    is_list=st.booleans(),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 1, "\t"]),
    newline=st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_whatever_the_cells_hold(
    lines: list[str], *, is_list: bool, is_ascii: bool, indent: int | str | None, newline: str
) -> None:
    joined = newline.join(lines)
    source: Any = joined.splitlines(keepends=True) if is_list else joined
    text = json.dumps(book(cell(source), cell(["pass"])), indent=indent, ensure_ascii=is_ascii)
    file = read(text.encode())
    op = ReplaceExpression(pattern='"cuda"', replacement='(\n  "ü"\n)')
    located = _notebooks.locate(op, file)
    result = splice(file, located.edits)
    before, after = _notebooks.read(file), _notebooks.read(result)
    assert isinstance(before, _notebooks.Notebook)
    assert isinstance(after, _notebooks.Notebook)
    if located.edits:
        assert after.code.text == splice(before.code, op.locate(before.code).edits).text
        assert result.text.isascii() or not is_ascii or file.text.isascii()
    else:
        assert result.text == text


def test_strings_of_json_are_found_where_they_stand() -> None:
    text = ' {"a" : [ "x\\"\\u00e9\\ud834\\udd1e\\n", {}, [], -1.5e3 , null,true ] , "b":{"a":""}}\n'
    root = _json_offsets.read(text)
    assert isinstance(root, dict)
    assert isinstance(root["a"], list)
    string = root["a"][0]
    assert isinstance(string, _json_offsets.Text)
    assert string.value == 'x"é𝄞\n'
    places = _json_offsets.characters(text, string)
    assert [text[a:b] for a, b in itertools.pairwise(places)] == [
        "x",
        '\\"',
        "\\u00e9",
        "\\ud834\\udd1e",
        "\\n",
    ]
    assert root["a"][1:] == [{}, [], -1500.0, None, True]
    with pytest.raises(ValueError, match="Expecting"):
        _json_offsets.read("{")


def test_run_time_pip_in_a_notebook() -> None:
    text = text_of(book(cell(["!pip install x\n", "import os\n", "os.system('pip install y')"])))
    ensure = NoRunTimePip()
    assert ensure.problems(PATH, text.encode()) == ("line 3: it installs packages at run time",)
    assert ensure.problems(PATH, patched(text, RunTimePip()).encode()) == ()


def test_neutralised_call_in_a_notebook() -> None:
    text = text_of(book(cell(["import os\n", "os.system('pip install x')\n", "y"])))
    assert patched(text, NeutraliseCall(call="os.system($*a)", returns="0")) == text.replace(
        "os.system('pip install x')", "0"
    )


def test_refusal_is_a_value() -> None:
    assert isinstance(_notebooks.read(read(b"{}")), Refusal)
