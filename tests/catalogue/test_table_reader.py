"""Reading TOML tables: lines of nested keys, and every mistake with its line, key and remedy."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue import table_reader
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.origins import Origin
from patchlock.model.table_fields import Filled, FilledTexts, Key, Matches, OneOf, Parsed, ProfileNames


def _table(text: str) -> tuple[Table, Report]:
    report = Report(file="f.toml", text=text)
    return Table(tomllib.loads(text), report), report


READERS: list[Any] = [
    pytest.param("k = 'x'", lambda t: t.text("k"), "x", id="text"),
    pytest.param("", lambda t: t.text("k", "x"), "x", id="text-default"),
    pytest.param("k = ''", lambda t: t.text("k", "x"), "", id="text-empty-where-there-is-a-default"),
    pytest.param("k = 1", lambda t: t.integer("k"), 1, id="integer"),
    pytest.param("", lambda t: t.integer("k", 0), 0, id="integer-default"),
    pytest.param("k = false", lambda t: t.boolean("k", True), False, id="boolean"),
    pytest.param("k = ['x']", lambda t: t.texts("k"), ("x",), id="texts"),
    pytest.param("k = []", lambda t: t.texts("k"), (), id="texts-empty"),
    pytest.param("", lambda t: t.texts("k", ("y",)), ("y",), id="texts-default"),
    pytest.param("k = { a = 'x' }", lambda t: t.mapping("k"), {"a": "x"}, id="mapping"),
    pytest.param("", lambda t: t.mapping("k"), {}, id="mapping-missing"),
    pytest.param("[k]\na = 'x'", lambda t: t.table("k").text("a"), "x", id="table"),
    pytest.param("", lambda t: t.table("k", required=False).text("a", "y"), "y", id="table-missing"),
    pytest.param("[[k]]\na = 1\n[[k]]\na = 2", lambda t: [r.integer("a") for r in t.tables("k")], [1, 2], id="tables"),
    pytest.param("", lambda t: t.tables("k"), (), id="tables-missing"),
    pytest.param("k = '1.0'", lambda t: t.parse("k", table_reader.version, Version("0")), Version("1.0"), id="parse"),
    pytest.param("\n[k]", lambda t: t.table("k").origin(), Origin(file="f.toml", line=2), id="origin"),
    pytest.param("", lambda t: t.origin(), Origin(file="f.toml", line=1), id="origin-of-the-file"),
    pytest.param("k = 1", lambda t: (t.has("k"), t.has("l")), (True, False), id="has"),
]


@pytest.mark.parametrize(("text", "read", "expected"), READERS)
def test_reads(text: str, read: Callable[[Table], object], expected: object) -> None:
    table, report = _table(text)
    assert read(table) == expected
    assert report.problems == []


MISTAKES: list[Any] = [
    pytest.param("", lambda t: t.text("k"), 'f.toml: k: the key "k" is missing; write k = "a text"', id="missing"),
    pytest.param("k = ''", lambda t: t.text("k"), "f.toml:1: k: it is empty", id="empty"),
    pytest.param("k = 1", lambda t: t.text("k"), "f.toml:1: k: it is a number, and must be a text", id="text"),
    pytest.param(
        "k = true",
        lambda t: t.integer("k"),
        "f.toml:1: k: it is true or false, and must be a whole number",
        id="integer",
    ),
    pytest.param(
        "k = 1.5", lambda t: t.integer("k"), "f.toml:1: k: it is a number, and must be a whole number", id="float"
    ),
    pytest.param(
        "k = 1", lambda t: t.boolean("k"), "f.toml:1: k: it is a number, and must be true or false", id="boolean"
    ),
    pytest.param(
        "k = 'x'", lambda t: t.texts("k"), "f.toml:1: k: it is a text, and must be a list of texts", id="texts"
    ),
    pytest.param("k = ['x', 1]", lambda t: t.texts("k"), "f.toml:1: k: it must be a list of texts", id="texts-item"),
    pytest.param(
        "k = []", lambda t: t.mapping("k"), "f.toml:1: k: it is a list, and must be a table of texts", id="mapping"
    ),
    pytest.param("k.a = 1", lambda t: t.mapping("k"), "f.toml:1: k: it must be a table of texts", id="mapping-item"),
    pytest.param("k = 1", lambda t: t.table("k"), "f.toml:1: k: it is a number, and must be a table", id="table"),
    pytest.param(
        "[[p]]",
        lambda t: [p.table("k") for p in t.tables("p")],
        'f.toml:1: p[0].k: the key "k" is missing; write [p.k]',
        id="table-of-a-list-missing",
    ),
    pytest.param(
        "", lambda t: t.texts("k"), 'f.toml: k: the key "k" is missing; write k = ["a text"]', id="texts-missing"
    ),
    pytest.param(
        "",
        lambda t: t.integer("k"),
        'f.toml: k: the key "k" is missing; write k = 1, or another whole number',
        id="integer-missing",
    ),
    pytest.param(
        "",
        lambda t: t.boolean("k"),
        'f.toml: k: the key "k" is missing; write k = true, or k = false',
        id="boolean-missing",
    ),
    pytest.param("", lambda t: t.table("k"), 'f.toml: k: the key "k" is missing; write [k]', id="table-missing"),
    pytest.param(
        "[k]\na = 1",
        lambda t: t.tables("k"),
        "f.toml:1: k: it is a table, and must be a list of tables; write [[k]]",
        id="tables",
    ),
    pytest.param("k = [1]", lambda t: t.tables("k"), "f.toml:1: k: it must be a list of tables", id="tables-item"),
    pytest.param(
        "k = 2020-01-01", lambda t: t.text("k"), "f.toml:1: k: it is something else, and must be a text", id="date"
    ),
    pytest.param(
        "k = 'x'",
        lambda t: t.parse("k", table_reader.version, Version("0")),
        'f.toml:1: k: "x" is not a version',
        id="parse",
    ),
    pytest.param(
        "k = ''",
        lambda t: t.parse("k", table_reader.version, Version("0")),
        "f.toml:1: k: it is empty",
        id="parse-empty",
    ),
    pytest.param(
        "[[p]]\n[[p]]\n[[p.e]]\nch = 1",
        lambda t: [e.text("ch") for p in t.tables("p") for e in p.tables("e")],
        "f.toml:4: p[1].e[0].ch: it is a number, and must be a text",
        id="nested",
    ),
    pytest.param(
        "[t]\nkee = 1",
        lambda t: t.table("t").finish(),
        'f.toml:2: t.kee: the key "kee" is unknown',
        id="unknown",
    ),
]


@pytest.mark.parametrize(("text", "read", "sentence"), MISTAKES)
def test_mistake_has_its_place(text: str, read: Callable[[Table], object], sentence: str) -> None:
    table, report = _table(text)
    read(table)
    assert [str(problem) for problem in report.problems] == [sentence]


@pytest.mark.parametrize(
    ("text", "read", "harmless"),
    [
        pytest.param("", lambda t: t.text("k"), "", id="text"),
        pytest.param("k = 1", lambda t: t.text("k", "x"), "", id="text-of-another-kind"),
        pytest.param("", lambda t: t.integer("k"), 0, id="integer"),
        pytest.param("", lambda t: t.boolean("k"), False, id="boolean"),
        pytest.param("k = [1]", lambda t: t.texts("k"), (), id="texts"),
        pytest.param("k.a = 1", lambda t: t.mapping("k"), {}, id="mapping"),
        pytest.param("k = [1]", lambda t: t.tables("k"), (), id="tables"),
        pytest.param("", lambda t: t.parse("k", table_reader.version, Version("0")), Version("0"), id="parse"),
        pytest.param("k = 'x'", lambda t: t.parse("k", table_reader.version, Version("0")), Version("0"), id="parser"),
    ],
)
def test_mistake_gives_a_harmless_value(text: str, read: Callable[[Table], object], harmless: object) -> None:
    table, report = _table(text)
    assert read(table) == harmless
    assert report.problems


def test_finish_names_every_unknown_key_with_the_nearest() -> None:
    table, report = _table("titel = 'x'\nname = 'y'\nzzz = 1\nop = 'z'")
    table.text("title", "")
    table.text("name")
    table.known(["op"])
    table.finish()
    assert [str(problem) for problem in report.problems] == [
        'f.toml:1: titel: the key "titel" is unknown; did you mean "title"?',
        'f.toml:3: zzz: the key "zzz" is unknown; known: name, op, title',
    ]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Everything:
    """One field of each kind."""

    text: str
    two_words: str = ""
    number: int = 7
    flag: bool = False
    listed: tuple[str, ...] = ()
    mapped: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name: NormalizedName
    specifier: SpecifierSet
    requirement: Requirement
    version: Version
    since: Version = dataclasses.field(default=Version("1.2"))

    def __post_init__(self) -> None:
        if self.text == "bad":
            raise ValueError("`text` is bad")


FULL = "text = ''\nrequirement = 'b>1'\nname = 'A_b'\nspecifier = ''\nversion = '1'\n"


def test_record_reads_each_kind_of_field() -> None:
    table, report = _table(
        FULL + "two-words = 'x'\nnumber = 8\nflag = true\nlisted = ['y']\nmapped = { z = 'z' }\nsince = '1.3'"
    )
    assert table.record(Everything) == Everything(
        text="",
        two_words="x",
        number=8,
        flag=True,
        listed=("y",),
        mapped={"z": "z"},
        name=NormalizedName("a-b"),
        specifier=SpecifierSet(),
        requirement=Requirement("b>1"),
        version=Version("1"),
        since=Version("1.3"),
    )
    table.finish()
    assert report.problems == []


def test_record_takes_its_defaults() -> None:
    table, _ = _table(FULL)
    read = table.record(Everything)
    assert read is not None
    assert (read.two_words, read.number, read.flag, read.listed) == ("", 7, False, ())
    assert (read.mapped, read.since) == ({}, Version("1.2"))


def test_record_notes_all_its_mistakes() -> None:
    table, report = _table("two_words = 'x'\nnumber = 'x'\nname = 'a==1'\nspecifier = '1'\nversion = ''\nsince = 2")
    assert table.record(Everything) is None
    table.finish()
    assert [str(problem) for problem in report.problems] == [
        'f.toml: text: the key "text" is missing; write text = "a text"',
        "f.toml:2: number: it is a text, and must be a whole number",
        'f.toml:3: name: "a==1" is not the name of a distribution',
        'f.toml:4: specifier: "1" is not a version specifier such as ">=1.2,<2"',
        'f.toml: requirement: the key "requirement" is missing; write requirement = "a text"',
        'f.toml:5: version: "" is not a version',
        "f.toml:6: since: it is a number, and must be a text",
        'f.toml:1: two_words: the key "two_words" is unknown; did you mean "two-words"?',
    ]


def test_record_asks_the_dataclass() -> None:
    table, report = _table(f"[r]\n{FULL.replace(chr(39) * 2, chr(39) + 'bad' + chr(39), 1)}")
    assert table.table("r").record(Everything) is None
    assert [str(problem) for problem in report.problems] == ["f.toml:1: r: `text` is bad"]


@pytest.mark.parametrize(
    ("parser", "text", "why"),
    [
        (
            table_reader.requirement,
            "a b",
            '"a b" is not a requirement: Expected semicolon (after name with no version specifier)',
        ),
        (table_reader.distribution, "", '"" is not the name of a distribution'),
        (table_reader.specifiers, "=1", '"=1" is not a version specifier such as ">=1.2,<2"'),
        (table_reader.version, "one", '"one" is not a version'),
    ],
    ids=["requirement", "distribution", "specifiers", "version"],
)
def test_value_that_is_none_is_told_in_one_clause(parser: Callable[[str], object], text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        parser(text)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Inner:
    most: Annotated[int, Key("max")] = 9


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Outer:
    why: str
    note: str = ""
    names: Annotated[tuple[NormalizedName, ...], Filled("it names nothing", "name one")]
    command: FilledTexts = ()
    colour: Annotated[str, OneOf('there is no colour "{}"', ("red", "green"))] = "red"
    profiles: ProfileNames = ()
    letter: Annotated[str, Matches('"{}" is not a letter', re.compile("[a-z]"))] = "a"
    number: Annotated[int | None, Parsed(int)] = None
    versions: SpecifierSet = dataclasses.field(default_factory=SpecifierSet)
    is_on: bool | None = None
    inner: _Inner = dataclasses.field(default_factory=_Inner)
    rows: tuple[_Inner, ...] = ()
    given: object
    origin: Origin


def _declared(text: str) -> tuple[_Outer, list[str]]:
    table, report = _table(text)
    read = table.read(_Outer, {"profiles": ("cpu", "cuda")}, given="x")
    table.finish()
    return read, [str(problem) for problem in report.problems]


def test_type_declares_its_keys() -> None:
    text = (
        "why = 'w'\nnames = ['A_b']\ncommand = ['c']\ncolour = 'green'\nprofiles = ['cpu']\nletter = 'b'\nnumber = '7'\n"
        "versions = '>1'\nis-on = false\ninner.max = 3\nrows = [{ max = 1 }, {}]"
    )
    read, problems = _declared(text)
    assert problems == []
    assert read == _Outer(
        why="w",
        names=(canonicalize_name("a-b"),),
        command=("c",),
        colour="green",
        profiles=("cpu",),
        letter="b",
        number=7,
        versions=SpecifierSet(">1"),
        is_on=False,
        inner=_Inner(most=3),
        rows=(_Inner(most=1), _Inner()),
        given="x",
        origin=Origin(file="f.toml", line=1),
    )


def test_key_with_a_default_may_be_left_out() -> None:
    read, problems = _declared("why = 'w'\nnames = ['a']\nnote = ''")
    assert problems == []
    expected = _Outer(why="w", names=(canonicalize_name("a"),), given="x", origin=Origin(file="f.toml", line=1))
    assert read == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param("", 'f.toml: why: the key "why" is missing; write why = "a text"', id="missing"),
        pytest.param("why = ''", "f.toml:1: why: it is empty", id="empty"),
        pytest.param("note = 1", "f.toml:1: note: it is a number, and must be a text", id="kind"),
        pytest.param("names = []", "f.toml:1: names: it names nothing; name one", id="empty-list"),
        pytest.param("command = []", "f.toml:1: command: it is empty", id="empty-list-with-a-default"),
        pytest.param("command = 'x'", "f.toml:1: command: it is a text, and must be a list of texts", id="list"),
        pytest.param("colour = 'grean'", 'f.toml:1: colour: there is no colour "grean"; did you mean "green"?', id="word"),
        pytest.param("profiles = ['cpuu']", 'f.toml:1: profiles: there is no profile "cpuu"; did you mean "cpu"?', id="known"),
        pytest.param("profiles = ['vega']", 'f.toml:1: profiles: there is no profile "vega"; if you have removed that profile, remove this table, which is for no other; known: cpu, cuda', id="known-alone"),
        pytest.param("profiles = ['cpu', 'vega']", 'f.toml:1: profiles: there is no profile "vega"; known: cpu, cuda', id="known-among-others"),
        pytest.param("profiles = []", "f.toml:1: profiles: it names no profile; remove the table, or the key alone if the table is for every profile", id="no-profile"),
        pytest.param("letter = 'ab'", 'f.toml:1: letter: "ab" is not a letter', id="pattern"),
        pytest.param("versions = 'x'", 'f.toml:1: versions: "x" is not a version specifier such as ">=1.2,<2"', id="parsed"),
        pytest.param("is_on = true", 'f.toml:1: is_on: the key "is_on" is unknown; did you mean "is-on"?', id="unknown"),
        pytest.param("inner.most = 1", 'f.toml:1: inner.most: the key "most" is unknown; known: max', id="within"),
        pytest.param("rows = [{ max = 'x' }]", "f.toml:1: rows[0].max: it is a text, and must be a whole number", id="row"),
    ],
)  # fmt: skip
def test_mistake_of_a_declared_key(line: str, sentence: str) -> None:
    key = line.partition(" ")[0]
    rest = [f"{name} = {value}" for name, value in (("why", "'w'"), ("names", "['a']")) if name != (key or "why")]
    assert _declared("\n".join([line, *rest]))[1] == [sentence]


def test_missing_list_is_told_in_its_own_words() -> None:
    assert _declared("why = 'w'")[1] == ["f.toml: names: it names nothing; name one"]
