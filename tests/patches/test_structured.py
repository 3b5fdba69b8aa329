"""The ops on keys of TOML, JSON and YAML: what changes, what does not, what is refused, and the bytes around."""

from __future__ import annotations

import codecs
import json
import tomllib
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._structured.structured import DeleteKey, SetKey
from patchlock.patches.ops._structured.tree import line_at


def put(key: str, value: str) -> SetKey:
    return SetKey(key=tuple(key.split("/")), value=value)


def delete(key: str) -> DeleteKey:
    return DeleteKey(key=tuple(key.split("/")))


def read(path: str, data: bytes) -> SourceText:
    source = decode(PurePosixPath(path), data)
    assert isinstance(source, SourceText)
    return source


def patched(op: Op, path: str, data: bytes) -> bytes:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    source = read(path, data)
    located = op.locate(source)
    assert not located.refusals
    assert len(located.sites) == 1
    result = encode(splice(source, located.edits))
    again = op.locate(read(path, result))
    assert (again.edits, again.sites, again.refusals) == ((), (), ())
    return result


TOML, JSON, YAML = "a/x.toml", "a/x.JSON", "a/x.yml"
TABLES = '# top\nt = "x" # t\n\n[a.b]\nk = 1\n\n# about c\n[[a.c]]\nn = "x" # n\n[[a.c]]\nn = "y"\ni = { j = [1, 2], "k l" = 3 }\n'
BLOCK = "# top\na: 1 # one\nb:\n- x   # ex\n- y\nf: {d: \"e\", e: }\ng:\nh: |\n  text\n\nm:\n  - n: 1\n    o: 'two'\n  - n: 2\n"
FLOW = '{\n  "a": 1,\n  "b": {"c": [1, "x"], "d": {}},\n  "e": [\n    {"n": "x", "v": null},\n    {"n": "y"}\n  ]\n}\n'

CHANGES = [
    *(
        pytest.param(op, TOML, TABLES, TABLES.replace(before, after), id=f"toml-{why}")
        for op, before, after, why in (
            (put("t", "'y'"), '"x" # t', "'y' # t", "set-keeps-the-comment"),
            (put("a/b/k", "[1]"), "k = 1", "k = [1]", "set-below-a-header"),
            (put("a/c/n=y/i", "'z'"), '{ j = [1, 2], "k l" = 3 }', "'z'", "set-by-selector"),
            (put("a/c/1/n", "'z'"), '"y"', "'z'", "set-by-index"),
            (put("a/c/1/i/j/1", "3"), "[1, 2]", "[1, 3]", "set-item"),
            (put("a/c/1/i/k l", "{}"), '"k l" = 3', '"k l" = {}', "set-quoted-key"),
            (put("a/c/1/i/new", "1"), "3 }", "3, new = 1 }", "add-to-inline-table"),
            (put("a/b/n w", "1"), "k = 1\n", 'k = 1\n"n w" = 1\n', "add-to-table"),
            (put("a/c/n=x/new", "1"), "# n\n", "# n\nnew = 1\n", "add-to-table-of-an-array"),
            (put("new", "1"), "# t\n", "# t\nnew = 1\n", "add-to-the-top"),
            (delete("t"), 't = "x" # t\n', "", "delete-with-its-comment"),
            (delete("a/b"), "[a.b]\nk = 1\n\n", "", "delete-table"),
            (delete("a/c/n=x"), '[[a.c]]\nn = "x" # n\n', "", "delete-by-selector"),
            (delete("a/c/n=y/i/j/=1"), "[1, 2]", "[2]", "delete-item"),
            (delete("a/c/n=y/i/j"), 'j = [1, 2], "k l"', '"k l"', "delete-from-inline-table"),
            (delete("a/c"), TABLES[TABLES.index("[[a.c]]") :], "", "delete-array-of-tables"),
            (delete("a"), TABLES[TABLES.index("[a.b]") :], "# about c\n", "delete-all-parts-of-a-table"),
        )
    ),
    pytest.param(put("a/b", "2"), TOML, "a.b = 1\r\na.c = 2\r\n", "a.b = 2\r\na.c = 2\r\n", id="toml-dotted"),
    pytest.param(put("a/b/k", "2"), TOML, "[ a . b ]\nk = 1\n", "[ a . b ]\nk = 2\n", id="toml-blanks-in-a-header"),
    pytest.param(delete("x/0/a"), YAML, "x:\n  - a: 1\n    b: 2\n    c: 3\n", "x:\n  - b: 2\n    c: 3\n", id="yaml-delete-first-of-three"),
    pytest.param(delete("a/b"), TOML, "a.b = 1\r\na.c = 2\r\n", "a.c = 2\r\n", id="toml-delete-dotted"),
    pytest.param(put("k", "1"), TOML, "", "k = 1\n", id="toml-empty"),
    pytest.param(put("k", "1"), TOML, "# c\n[t]\n", "# c\nk = 1\n[t]\n", id="toml-before-the-first-table"),
    pytest.param(put("t/k", "1"), TOML, "[t]", "[t]\nk = 1", id="toml-without-last-newline"),
    pytest.param(put("t/k", "1"), TOML, "t = {}", "t = { k = 1 }", id="toml-empty-inline-table"),
    pytest.param(put("s", "1"), TOML, "s = '''\n[x]\n# ' \"'''\nd = 1979-05-27 07:32:00 # c\n", "s = 1\nd = 1979-05-27 07:32:00 # c\n", id="toml-long-string"),
    *(
        pytest.param(op, JSON, FLOW, FLOW.replace(before, after), id=f"json-{why}")
        for op, before, after, why in (
            (put("a", '{"x": 1}'), '"a": 1', '"a": {"x": 1}', "set"),
            (put("b/c", "[]"), '[1, "x"]', "[]", "set-list"),
            (put("e/n=x/v", "0"), "null", "0", "set-by-selector"),
            (put("b/d/é\n", "1"), "{}}", '{"é\\n": 1}}', "add-to-empty"),
            (put("b/n", "1"), "{}}", '{}, "n": 1}', "add-in-line"),
            (put("n", "1"), "  ]\n}", '  ],\n  "n": 1\n}', "add-line"),
            (delete("a"), '  "a": 1,\n', "", "delete-first"),
            (delete("b"), '  "b": {"c": [1, "x"], "d": {}},\n', "", "delete-middle"),
            (delete("e"), FLOW[FLOW.index(',\n  "e"') : -3], "", "delete-last"),
            (delete("b/c/=x"), '[1, "x"]', "[1]", "delete-item"),
            (delete("e/n=y"), ',\n    {"n": "y"}', "", "delete-by-selector"),
            (delete("e/n=y/n"), '{"n": "y"}', "{}", "delete-only"),
        )
    ),
    pytest.param(put("a", "2"), JSON, '\t{"a":1 }', '\t{"a":2 }', id="json-without-last-newline"),
    *(
        pytest.param(op, YAML, BLOCK, BLOCK.replace(before, after), id=f"yaml-{why}")
        for op, before, after, why in (
            (put("a", "'2'"), "a: 1 #", "a: '2' #", "set-keeps-the-comment"),
            (put("b", "[1]"), "b:\n- x   # ex\n- y", "b: [1]", "set-block-list"),
            (put("b/1", "z"), "- y", "- z", "set-item"),
            (put("f/d", "1"), '"e"', "1", "set-flow"),
            (put("f/e", "1"), "e: }", "e: 1 }", "set-empty-in-flow"),
            (put("g", "1"), "g:\n", "g: 1\n", "set-empty"),
            (put("h", "t"), "h: |\n  text\n", "h: t\n", "set-block-text"),
            (put("m/n=1/o", "3"), "'two'", "3", "set-by-selector"),
            (put("m/n=1/p", "3"), "'two'\n", "'two'\n    p: 3\n", "add-in-its-indentation"),
            (put("m/1/p", "3"), "n: 2\n", "n: 2\n    p: 3\n", "add-behind-a-dash"),
            (put("z z", "3"), "n: 2\n", 'n: 2\n"z z": 3\n', "add-to-the-top"),
            (delete("a"), "a: 1 # one\n", "", "delete-with-its-comment"),
            (delete("b"), "b:\n- x   # ex\n- y\n", "", "delete-block-list"),
            (delete("b/=x"), "- x   # ex\n", "", "delete-item"),
            (delete("f/d"), '{d: "e", e: }', "{e: }", "delete-from-flow"),
            (delete("h"), "h: |\n  text\n", "", "delete-block-text"),
            (delete("m/n=1"), "  - n: 1\n    o: 'two'\n", "", "delete-by-selector"),
            (delete("m/0/n"), "n: 1\n    o", "o", "delete-behind-a-dash"),
            (delete("m/0/o"), "    o: 'two'\n", "", "delete-second"),
        )
    ),
    pytest.param(put("a", "2"), YAML, "a: 1\r\nb: 2\r\n", "a: 2\r\nb: 2\r\n", id="yaml-crlf"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "before", "after"), CHANGES)
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
def test_changes(op: Op, path: str, before: str, after: str, bom: bytes) -> None:
    assert before != after
    encoding = "utf-16-le" if bom == codecs.BOM_UTF16_LE else "utf-8"
    assert patched(op, path, bom + before.encode(encoding)) == bom + after.encode(encoding)


UNTOUCHED = [
    pytest.param(put("t", "'x'"), TOML, TABLES, Site(line=2, text='t = "x" # t'), id="toml-as-wanted"),
    pytest.param(put("b", '{"d": {}, "c": [1, "x"]}'), JSON, FLOW, Site(line=3, text='"b": {"c": [1, "x"], "d": {}},'), id="json-as-wanted-in-another-order"),
    pytest.param(put("m/1", "{n: 2}"), YAML, BLOCK, Site(line=14, text="- n: 2"), id="yaml-as-wanted"),
    pytest.param(delete("x"), TOML, TABLES, None, id="toml-absent"),
    pytest.param(put("a/=x", "z"), YAML, "a: [w, z]\n", Site(line=1, text="a: [w, z]"), id="yaml-item-is-as-wanted"),
    pytest.param(delete("b/c/=z"), JSON, FLOW, None, id="json-absent"),
    pytest.param(delete("m/n=3/o"), YAML, BLOCK, None, id="yaml-absent"),
    pytest.param(delete("a/b"), YAML, BLOCK, None, id="yaml-below-a-scalar"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "text", "settled"), UNTOUCHED)
def test_leaves_alone(op: Op, path: str, text: str, settled: Site | None) -> None:
    assert op.locate(read(path, text.encode())) == Located(settled=(settled,) if settled else ())


AMBIGUOUS, UNPARSABLE = OutcomeKind.AMBIGUOUS, OutcomeKind.UNPARSABLE
ALIASED = "a: 1\nb: &A\n  k: 1\nc: *A\nd:\n  <<: *A\n"
SHARED = "is shared by an anchor and its aliases, or merged, so that a change would reach further"
NO_MORE = "it cannot be changed there without changing more"
REFUSED = [
    pytest.param(put("a", "1"), "a/x.ini", "a = 1", 1, UNPARSABLE, "x.ini is not a .toml, .json, .yaml or .yml file, the only ones whose keys can be edited", id="suffix"),
    pytest.param(put("a", "1"), TOML, "\na = \n", 2, UNPARSABLE, "it is not TOML: invalid value", id="toml"),
    pytest.param(delete("a"), JSON, '{\n "a" 1\n}', 2, UNPARSABLE, "it is not JSON: expecting ':' delimiter", id="json"),
    pytest.param(put("a", "1"), YAML, "a: 1\n b: 2\n", 2, UNPARSABLE, "it is not one YAML document that can be read: mapping values are not allowed here", id="yaml"),
    pytest.param(put("a", "1"), YAML, "a: 1\n---\na: 2\n", 2, UNPARSABLE, "it is not one YAML document that can be read: but found another document", id="yaml-two-documents"),
    pytest.param(put("a", "1"), YAML, "a: 1\na: 2\n", 2, UNPARSABLE, 'it is not one YAML document that can be read: found duplicate key "a" with value "2" (original value: "1")', id="yaml-key-twice"),
    pytest.param(put("a", "1"), YAML, "# empty\n", 1, UNPARSABLE, "it holds no keys", id="yaml-empty"),
    pytest.param(put("a", "1"), JSON, "[" * 100_000, 1, UNPARSABLE, "it is not JSON that can be read: it is nested too deeply, or a number is too long", id="json-depth"),
    pytest.param(put("1", "c"), YAML, '1: a\n"1": b\n', 1, AMBIGUOUS, "`1` means several: it is there twice", id="yaml-number-and-text"),
    pytest.param(put("b/a", "1"), JSON, '{"b": {\n"a": 1, "a": 2}}', 1, AMBIGUOUS, "`a` means several: it is there twice", id="json-key-twice"),
    pytest.param(put("a/n=x/k", "1"), TOML, '[[a]]\nn="x"\n[[a]]\nn="x"\n', 1, AMBIGUOUS, "`n=x` means several: 2 items have it", id="selector-of-two"),
    pytest.param(put("b/k", "2"), YAML, ALIASED, 2, AMBIGUOUS, f"`b` {SHARED}", id="yaml-anchor"),
    pytest.param(put("c", "2"), YAML, ALIASED, 2, AMBIGUOUS, f"`c` {SHARED}", id="yaml-alias"),
    pytest.param(delete("d/k"), YAML, ALIASED, 6, AMBIGUOUS, "`k` means several: it comes from a merge with `<<`", id="yaml-merge"),
    pytest.param(put("x/y/z", "1"), TOML, "[x]\n", 1, AMBIGUOUS, "`x.y` is not there; only the last part of a key is made, in a table that is there", id="parent-missing"),
    pytest.param(put("l/2", "1"), JSON, '{\n"l": [0, 1]}', 2, AMBIGUOUS, "`l.2` is not there; only the last part of a key is made, in a table that is there", id="index-behind-the-list"),
    pytest.param(put("a/b/c", "1"), TOML, "\na.b = 1\n", 2, AMBIGUOUS, "`a.b.c` is not there; only the last part of a key is made, in a table that is there", id="below-a-scalar"),
    pytest.param(put("a/d", "1"), TOML, "\n[a.b]\n", 2, AMBIGUOUS, "there is no place for `d`", id="toml-table-without-a-header"),
    pytest.param(put("a", "1"), TOML, "\n[a]\n", 2, AMBIGUOUS, "it is a table with a header; set its keys", id="toml-table"),
    pytest.param(put("a", "x"), TOML, "a = 1\n", 1, AMBIGUOUS, "`x` is not a TOML value", id="toml-value"),
    pytest.param(put("a", "1\u2028b = 2"), TOML, "a = 1\n", 1, AMBIGUOUS, "`1\u2028b = 2` is not a TOML value", id="toml-two-values"),
    pytest.param(put("a", "'x'"), JSON, '{"a": 1}', 1, AMBIGUOUS, "`'x'` is not a JSON value", id="json-value"),
    pytest.param(put("a", "1, 2"), YAML, "a: 1\n", 1, AMBIGUOUS, "`1, 2` is not a YAML value", id="yaml-value"),
    pytest.param(put("a", "b: c"), YAML, "a: 1\n", 1, AMBIGUOUS, NO_MORE, id="yaml-value-of-flow-only"),
    pytest.param(delete("l/0"), JSON, '{\n"l": [0, 1]}', 2, AMBIGUOUS, "item 0 would be another one afterwards; name it by `key=value`, or `=value` for a text", id="delete-by-index"),
    pytest.param(delete("m/n=2/n"), YAML, BLOCK, 14, AMBIGUOUS, "`n=2` would be left with nothing; delete that, or set it", id="yaml-only-key"),
    pytest.param(put("f/z", "1"), YAML, BLOCK, 6, AMBIGUOUS, NO_MORE, id="yaml-behind-an-empty-value"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "text", "line", "kind", "why"), REFUSED)
def test_refuses(op: Op, path: str, text: str, line: int, kind: OutcomeKind, why: str) -> None:
    located = op.locate(read(path, text.encode()))
    assert located == Located(refusals=(Refusal(line=line, kind=kind, why=why),))


@pytest.mark.parametrize(("key", "value"), [((), "1"), (("",), "1"), (("a",), " "), (("a",), "1\n")])
def test_op_that_makes_no_sense_is_refused(key: tuple[str, ...], value: str) -> None:
    with pytest.raises(ValueError, match=r"^`(key|value)` is "):
        SetKey(key=key, value=value)


SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.text(st.sampled_from("ab #'\"\\é,]}"), max_size=4))
KEYS = st.sampled_from(("a", "b", "c d", "é", "#"))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
INDENTS = st.sampled_from((None, 0, 2, "\t"))


@given(st.dictionaries(KEYS, VALUES, min_size=1), KEYS, SCALARS, INDENTS)
def test_json_reads_as_wanted_whatever_was_there(
    data: dict[str, object], key: str, value: object, indent: int | None
) -> None:
    source = read("x.json", json.dumps(data, indent=indent, ensure_ascii=False).encode())
    set_key = SetKey(key=(key,), value=json.dumps(value, ensure_ascii=False))
    result = splice(source, set_key.locate(source).edits)
    assert json.loads(result.text) == data | {key: value}
    assert list(json.loads(result.text)) == list(data | {key: value})
    deleted = splice(result, DeleteKey(key=(key,)).locate(result).edits)
    assert json.loads(deleted.text) == {one: data[one] for one in data if one != key}


@given(st.dictionaries(KEYS, VALUES, min_size=1), KEYS, SCALARS)
def test_toml_reads_as_wanted_whatever_was_there(data: dict[str, object], key: str, value: object) -> None:
    text = "# c\r\n" + "".join(f"{json.dumps(one)} = {inline(data[one])} # {one}\r\n" for one in data)
    source = read("x.toml", text.encode())
    result = splice(source, SetKey(key=(key,), value=inline(value)).locate(source).edits)
    assert tomllib.loads(result.text) == data | {key: value}
    deleted = splice(result, DeleteKey(key=(key,)).locate(result).edits)
    kept = [line for line in text.splitlines() if not line.startswith(f"{json.dumps(key)} =")]
    assert deleted.text.splitlines() == kept


def test_lines_end_at_lf_crlf_or_cr() -> None:
    assert [line_at("a\rb\r\nc\nd", offset) for offset in (0, 2, 5, 7)] == [1, 2, 3, 4]


def inline(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {inline(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value)
