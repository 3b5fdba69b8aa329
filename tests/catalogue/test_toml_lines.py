"""Where tables and keys stand in a TOML file, nested arrays included."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlock.catalogue.table_reader import Report, line_index

NESTED = '''\
# [not.a.table]
[app]  # [no]
title = "a = [b"  # [no]
"with space" = 1
text = """
[not.a.table]
not = 1
"""
rows = [
  "x",
  { not = 1 },
  ["y"]
]
a . b = { c = 1 }

[[patch]]
id = "1"
[[patch.ensure]]
check = "1"
[[ patch . ensure ]]
check = "2"
[[patch]]
id = '2'
[[patch.ensure]]
check = "3"
[patch.expect]
sites = 1
[launch.environment]
X = "1"
'''


def test_lines_of_nested_arrays_and_of_nothing_else() -> None:
    assert line_index(NESTED) == {
        "app": 2,
        "app.title": 3,
        "app.with space": 4,
        "app.text": 5,
        "app.rows": 9,
        "app.a": 14,
        "app.a.b": 14,
        "patch[0]": 16,
        "patch[0].id": 17,
        "patch[0].ensure[0]": 18,
        "patch[0].ensure[0].check": 19,
        "patch[0].ensure[1]": 20,
        "patch[0].ensure[1].check": 21,
        "patch[1]": 22,
        "patch[1].id": 23,
        "patch[1].ensure[0]": 24,
        "patch[1].ensure[0].check": 25,
        "patch[1].expect": 26,
        "patch[1].expect.sites": 27,
        "launch": 28,
        "launch.environment": 28,
        "launch.environment.X": 29,
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\r\n\r\nkey = 2\r\n", 3),
        ("a = '\u2028 \x85'\nkey = 1\n", 2),
        ("a = '''\n[[x]]\n'''\nkey = 1\n", 4),
        ("a = \"'''\"\nkey = 1\n", 2),
        ("# it's\nkey = 1\n", 2),
        ('a = "\\"["\nkey = 1\n', 2),
    ],
    ids=["crlf", "unicode-line-ends", "literal-text", "quoted-quotes", "apostrophe", "escaped-quote"],
)
def test_line_of_a_key_behind_odd_lines(text: str, line: int) -> None:
    assert line_index(text)["key"] == line


def _leaves(value: object, path: str) -> dict[str, int]:
    match value:
        case dict():
            return {k: n for key, item in value.items() for k, n in _leaves(item, f"{path}.{key}".strip(".")).items()}
        case list():
            return {k: n for i, item in enumerate(value) for k, n in _leaves(item, f"{path}[{i}]").items()}
        case _:
            return {path: value}  # type: ignore[dict-item]


@given(
    outer=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.sampled_from(["", "# [x]", 'y{} = "[[z]]"', 'y{} = """\n[z]\n"""']))),
        max_size=5,
    )
)
def test_lines_agree_with_a_toml_parser(outer: list[tuple[int, list[str]]]) -> None:
    lines: list[str] = []

    def add(line: str) -> None:
        lines.extend(line.format(len(lines) + 1).split("\n"))

    for inner, noise in outer:
        add("[[patch]]")
        add("at = {}")
        for _ in range(inner):
            add("[[patch.ensure]]")
            for line in [*noise, "at = {}"]:
                add(line)
            add("[patch.ensure.sub]")
            add("at = {}")
    text = "\n".join(lines)
    truth = {key: line for key, line in _leaves(tomllib.loads(text), "").items() if key.endswith("at")}
    assert {key: line for key, line in line_index(text).items() if key.endswith("at")} == truth


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("patch[1].ensure[0].check", 25),
        ("patch[1].ensure[0].valu", 24),
        ("patch[1].why", 22),
        ("patch[1].ensure[7].check", 22),
        ("app.rows[2].not", 9),
        ("launch.command", 28),
        ("nothing", 0),
        ("", 0),
    ],
)
def test_missing_key_is_at_the_nearest_table_around_it(key: str, line: int) -> None:
    assert Report(file="f", text=NESTED).line(key) == line
