"""The checks on keys: what they accept, what they say, and that they fail when the edit is missing."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest

from patchlock.model.patch import Ensure, Op
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops._structured.structured import DeleteKey, SetKey
from patchlock.patches.postconditions._structured import HasKey, NoKey

FILES = {
    "x.toml": b'[a]\nb = 1\n[[t]]\nn = "x"\nv = ["p", "q"]\n[[t]]\nn = "y"\n',
    "x.json": b'{"a": {"b": 1},\r\n "t": [{"n": "x", "v": ["p", "q"]}, {"n": "y"}]}',
    "x.yaml": b"a: {b: 1}\nt:\n- n: x\n  v:\n  - p # c\n  - q\n- n: y\n",
}
PATHS = [PurePosixPath(name) for name in FILES]


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("a", "b"), "1"),
        (("t", "n=x", "v"), '["p", "q"]'),
        (("t", "0", "v", "1"), '"q"'),
        (("t", "1", "n"), '"y"'),
        (("t", "n=x", "v", "=p"), '"p"'),
    ],
    ids=".".join,
)
def test_value_is_found(path: PurePosixPath, bom: bytes, key: tuple[str, ...], value: str) -> None:
    data = bom + FILES[path.name]
    assert HasKey(key=key, value=value).problems(path, data) == ()
    assert len(NoKey(key=key).problems(path, data)) == 1
    for other in ("2", "true", '"1"', "1.0", "[]"):
        assert len(HasKey(key=key, value=other).problems(path, data)) == 1


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize(
    "key",
    [("b",), ("a", "c"), ("a", "b", "c"), ("t", "2"), ("t", "n=z"), ("t", "z=x"), ("t", "n=x", "v", "=r")],
    ids=".".join,
)
def test_absent_key_is_missing(path: PurePosixPath, key: tuple[str, ...]) -> None:
    assert NoKey(key=key).problems(path, FILES[path.name]) == ()
    problems = HasKey(key=key, value="1").problems(path, FILES[path.name])
    assert problems == (f"the key `{'.'.join(key)}` is missing",)


def test_problem_says_what_stands_there() -> None:
    path = PurePosixPath("x.toml")
    assert HasKey(key=("a", "b"), value="2").problems(path, FILES["x.toml"]) == ("the key `a.b` is 1, not 2",)
    assert NoKey(key=("a",)).problems(path, FILES["x.toml"]) == ("the key `a` is still there: {'b': 1}",)
    assert HasKey(key=("a",), value="'").problems(path, FILES["x.toml"]) == ("`'` is not a value of this kind of file",)


def test_order_of_keys_does_not_count() -> None:
    path = PurePosixPath("x.json")
    check = HasKey(key=("a",), value='{"y": [{"q": 1, "r": 2}], "x": null}')
    assert check.problems(path, b'{"a": {"x": null, "y": [{"r": 2, "q": 1}]}}') == ()
    assert check.problems(path, b'{"a": {"x": null, "y": [{"r": 2, "q": "1"}]}}') != ()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("x.toml", b"a = ", "it cannot be read: Invalid value (at end of document)"),
        ("x.json", b'{"a": 1, "a": 2}', "it cannot be read: a key is there twice"),
        ("x.yaml", b"a: 1\na: 2\n", "it cannot be read: while constructing a mapping"),
        ("x.yaml", b"a: 1\n---\n", "it cannot be read: expected a single document in the stream"),
        ("x.ini", b"", "x.ini is not a .toml, .json, .yaml or .yml file, the only ones whose keys can be checked"),
        ("x.json", b"a\0", "the file is not text in an encoding that can be told from its bytes"),
    ],
)
@pytest.mark.parametrize("check", [HasKey(key=("a",), value="1"), NoKey(key=("a",))])
def test_file_that_cannot_be_checked_is_a_problem(name: str, data: bytes, why: str, check: Ensure) -> None:
    assert check.problems(PurePosixPath(name), data) == (why,)


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("key", [("a", "b"), ("t", "n=x", "v"), ("t", "n=x", "v", "=p"), ("t", "n=y")], ids=".".join)
def test_fails_without_the_edit(path: PurePosixPath, key: tuple[str, ...]) -> None:
    source = decode(path, FILES[path.name])
    assert isinstance(source, SourceText)
    changes: list[tuple[Op, Ensure]] = [(DeleteKey(key=key), NoKey(key=key))]
    if not key[-1].endswith(("=p", "=y")):
        changes.append((SetKey(key=key, value="7"), HasKey(key=key, value="7")))
    for op, check in changes:
        assert check.problems(path, FILES[path.name]) != ()
        assert check.problems(path, encode(splice(source, op.locate(source).edits))) == ()
