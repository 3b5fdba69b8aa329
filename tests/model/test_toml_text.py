"""Values are written as the catalogue's files have them, and read back as the same."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from patchlock.model.toml_text import item, render


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("plain", '"plain"', id="text"),
        pytest.param('say "x"', "'say \"x\"'", id="quotes"),
        pytest.param(r"a\b", r"'a\b'", id="backslash"),
        pytest.param('it\'s "x"', r'"it' + r"""'s \"x\"""" + '"', id="both-quotes"),
        pytest.param("a\nb\n", "'''\na\nb\n'''", id="lines"),
        pytest.param("\na\n", "'''\n\na\n'''", id="lines-after-an-empty-one"),
        pytest.param("one line\n", r'"one line\n"', id="line-with-its-end"),
        pytest.param("a\r\nb", r'"a\r\nb"', id="carriage-return"),
        pytest.param("a\nb'", '"a\\nb\'"', id="lines-that-end-in-a-quote"),
        pytest.param("\x7f😀", '"\\u007f😀"', id="DEL-and-beyond-the-basic-plane"),
        pytest.param(True, "true", id="boolean"),
        pytest.param(3, "3", id="number"),
        pytest.param(("a", ("b",)), '["a", ["b"]]', id="lists"),
        pytest.param((), "[]", id="empty-list"),
        pytest.param({"sites": 1, "A b": "c"}, '{ sites = 1, "A b" = "c" }', id="table"),
        pytest.param({}, "{}", id="empty-table"),
    ],
)
def test_layout(content: object, text: str) -> None:
    assert item(content).as_string() == text


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.recursive(
        _TEXTS | st.integers(-9, 9) | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner)
    )
)
def test_value_reads_back(content: object) -> None:
    table = tomlkit.table()
    table.append("key", item(content))
    assert tomllib.loads(tomlkit.dumps({"one": table}))["one"]["key"] == content


def test_configuration_of_another_tool() -> None:
    text = render(
        {
            "exclude-newer": "2026-01-01T00:00:00Z",
            "exclude-newer-package": {"av": "2026-02-01T00:00:00Z", "torch": False},
            "index": [],
            "dependency-metadata": [
                {"name": "av", "version": "12.0", "requires-dist": ['numpy>=2; extra == "a"', "b"]},
                {"name": "b", "requires-dist": [], "cache": {"api": "max-age=600"}},
            ],
        }
    )
    assert (
        text
        == """\
exclude-newer = "2026-01-01T00:00:00Z"
exclude-newer-package = { av = "2026-02-01T00:00:00Z", torch = false }

[[dependency-metadata]]
name = "av"
version = "12.0"
requires-dist = ["numpy>=2; extra == \\"a\\"", "b"]

[[dependency-metadata]]
name = "b"
requires-dist = []
cache = { api = "max-age=600" }
"""
    )
