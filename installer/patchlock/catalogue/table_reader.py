"""Read a TOML table key by key into values, noting every mistake with its file, line and key; does no I/O."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from patchlock.model.errors import Problem, nearest, similar
from patchlock.model.origins import Origin
from patchlock.model.table_fields import Filled, Key, Known, Matches, OneOf, Parsed

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName
    from packaging.version import Version

    from patchlock.model.identities import Sha256

T = TypeVar("T")
Allowed = tuple[str, ...] | None
"""Names that there are; None accepts any."""
Names = Mapping[str, Iterable[str] | None]
_NO_NAMES: Names = MappingProxyType({})

Own = Mapping[str, Callable[["Table"], T]]
NO_OWN: Own[Any] = MappingProxyType({})

_SHA256 = re.compile(r"[0-9a-f]{64}")
_EXAMPLES = {
    "a text": '{} = "a text"',
    "a list of texts": '{} = ["a text"]',
    "a whole number": "{} = 1, or another whole number",
    "true or false": "{0} = true, or {0} = false",
    "a table": "[{}]",
}
"""Kind of value → what to write where it is missing, as TOML has it."""


@dataclasses.dataclass(kw_only=True, slots=True)
class Report:
    """Collects the mistakes of one file while it is read."""

    file: str
    text: str
    """Of the file; looked through for lines only where one is asked for. "": every line is 0."""
    problems: list[Problem] = dataclasses.field(default_factory=list)
    _lines: Mapping[str, int] | None = dataclasses.field(default=None, init=False, repr=False, compare=False)
    _of_wrong_kind: set[str] = dataclasses.field(default_factory=set, init=False, repr=False, compare=False)

    def line(self, key: str) -> int:
        """Find the line of a key, or of the nearest table around it; 0 where there is none."""
        if self._lines is None:
            self._lines = line_index(self.text)
        while key:
            if key in self._lines:
                return self._lines[key]
            key = key.rpartition("[" if key.endswith("]") else ".")[0]
        return 0

    def add(self, key: str, what: str, remedy: str = "") -> None:
        """Note a mistake, once; what is said of a value of the wrong kind, or of what it lacks, comes from that."""
        if any(key == wrong or key.startswith((f"{wrong}.", f"{wrong}[")) for wrong in self._of_wrong_kind):
            return
        problem = Problem(file=self.file, line=self.line(key), key=key, what=what, remedy=remedy)
        if problem not in self.problems:
            self.problems.append(problem)

    def add_wrong_kind(self, key: str, what: str) -> None:
        """Note that a value is of the wrong kind."""
        self.add(key, what)
        self._of_wrong_kind.add(key)


class Table:
    """A TOML table that is being read; every key must be asked for, and `finish` reports those that were not.

    A reader that finds a mistake notes it and returns a harmless value of the right type, so that all mistakes of a
    file are found in one go; whoever reads a file must look at `Report.problems` before using any value.
    """

    def __init__(self, values: Mapping[str, Any], report: Report, key: str = "") -> None:
        self._values = values
        self._asked: set[str] = set()
        self._report = report
        self._key = key

    def path(self, key: str = "") -> str:
        """Name a key of this table from the root of the file."""
        return f"{self._key}.{key}".strip(".")

    def origin(self) -> Origin:
        """Say where this table stands."""
        return Origin(file=self._report.file, line=self._report.line(self._key) or 1)

    def problem(self, key: str, what: str, remedy: str = "") -> None:
        """Note a mistake at a key of this table."""
        self._report.add(self.path(key), what, remedy)

    def has(self, key: str) -> bool:
        """Say whether the key is there."""
        return key in self._values

    def known(self, keys: Iterable[str]) -> None:
        """Accept keys that another reader of the same table asks for."""
        self._asked.update(keys)

    def finish(self) -> None:
        """Report every key that nobody asked for, with the nearest known one."""
        for key in self._values:
            if key not in self._asked:
                self.problem(key, f'the key "{key}" is unknown', nearest(key, self._asked))

    def _get(self, key: str, kind: type, named: str, default: T | None, empty: T) -> Any:
        self._asked.add(key)
        value = self._values.get(key)
        if value is None:
            if default is None:
                name = re.sub(r"\[\d+\]", "", self.path(key)) if kind is dict else key
                self.problem(key, f'the key "{key}" is missing', f"write {_EXAMPLES[named].format(name)}")
            return empty if default is None else default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            as_list = f"; write [[{key}]]" if named == "a list of tables" and isinstance(value, dict) else ""
            self._report.add_wrong_kind(self.path(key), f"it is {_kind(value)}, and must be {named}{as_list}")
            return empty
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Read a text."""
        value: str = self._get(key, str, "a text", default, "")
        if value == "" and default is None and isinstance(self._values.get(key), str):
            self.problem(key, "it is empty")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """Read a whole number."""
        value: int = self._get(key, int, "a whole number", default, 0)
        return value

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """Read true or false."""
        value: bool = self._get(key, bool, "true or false", default, False)
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Read a list of texts."""
        value = self._get(key, list, "a list of texts", default, ())
        if not all(isinstance(item, str) for item in value):
            self._report.add_wrong_kind(self.path(key), "it must be a list of texts")
            return ()
        return tuple(value)

    def each(self, key: str, parser: Callable[[str], T]) -> tuple[T, ...]:
        """Read a list of texts and parse each; a missing list is empty."""
        found = []
        for text in self.texts(key, ()):
            try:
                found.append(parser(text))
            except ValueError as error:
                self.problem(key, str(error))
        return tuple(found)

    def mapping(self, key: str) -> Mapping[str, str]:
        """Read a table of texts; a missing one is empty."""
        value = self._get(key, dict, "a table of texts", {}, {})
        if not all(isinstance(item, str) for item in value.values()):
            self._report.add_wrong_kind(self.path(key), "it must be a table of texts")
            return {}
        return dict(value)

    def table(self, key: str, required: bool = True) -> Table:
        """Read a table within this one."""
        value = self._get(key, dict, "a table", None if required else {}, {})
        return Table(value, self._report, self.path(key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """Read a list of tables; a missing one is empty."""
        value = self._get(key, list, "a list of tables", (), ())
        if not all(isinstance(item, dict) for item in value):
            self._report.add_wrong_kind(self.path(key), "it must be a list of tables")
            return ()
        return tuple(Table(item, self._report, f"{self.path(key)}[{i}]") for i, item in enumerate(value))

    def texts_named_here(self, key: str) -> tuple[str, ...]:
        """Read a list of texts whose key is not ours, but a word of the same file."""
        return self.texts(key)

    def variant(self, key: str, kinds: Mapping[str, type[T]], own: Own[T] = NO_OWN) -> T | None:
        """Read a table whose other keys depend on the word of one; None where a mistake was noted.

        Args:
            key: whose word chooses.
            kinds: word → dataclass whose fields are the other keys.
            own: word → what reads this table in the place of `record`.
        """
        word = self.text(key)
        if not word:
            return None
        if word not in kinds:
            self.problem(key, f'there is no {key} "{word}"', nearest(word, kinds))
            return None
        return own[word](self) if word in own else self.record(kinds[word])

    def parse(self, key: str, parser: Callable[[str], T], fallback: T, default: str | None = None) -> T:
        """Read a text and parse it; a ValueError of the parser is the mistake."""
        known = len(self._report.problems)
        value = self.text(key, default)
        return fallback if len(self._report.problems) > known else self._parsed(key, value, parser, fallback)

    def _parsed(self, key: str, value: str, parser: Callable[[str], T], fallback: T) -> T:
        try:
            return parser(value)
        except ValueError as error:
            self.problem(key, str(error))
            return fallback

    def read(self, cls: type[T], known: Names = _NO_NAMES, **given: object) -> T:
        """Read a value by what its type declares, see `model.table_fields`; mistakes are noted.

        Args:
            cls: a dataclass.
            known: for `Known` fields: kind → the words that there are; None accepts any.
            given: fields that are no keys of the table.
        """
        fields = declarations(cls, frozenset(given))  # type: ignore[arg-type]  # a class has a hash
        return cls(**{one.name: self._declared(one, known) for one in fields}, **given)

    def rows(self, key: str, cls: type[T], known: Names = _NO_NAMES) -> Iterator[tuple[Table, T]]:
        """Read a list of tables as values, one after the other; what is noted of a row before the next comes first."""
        for table in self.tables(key):
            yield table, table.read(cls, known)
            table.finish()

    def optional(self, key: str, cls: type[T]) -> T | None:
        """Read a table within this one as a value; None where there is none."""
        self.known((key,))
        return self.within(key, cls) if self.has(key) else None

    def within(self, key: str, cls: type[T], known: Names = _NO_NAMES) -> T:
        """Read a table within this one as a value."""
        table = self.table(key)
        value = table.read(cls, known)
        table.finish()
        return value

    def _declared(self, one: Declaration, known: Names) -> Any:
        self._asked.add(one.key)
        if one.hint is Origin:
            return self.origin()
        if not self.has(one.key) and not one.is_required:
            return one.default()
        if not self.has(one.key) and (
            filled := next((m for m in one.marks if isinstance(m, Filled) and m.is_own), None)
        ):
            self.problem(one.key, filled.message, filled.remedy)
            return ()
        if dataclasses.is_dataclass(one.hint):
            return self.within(one.key, cast("type[Any]", one.hint), known)
        if one.hint is int and one.parser is None:
            return self.integer(one.key)
        if one.hint is bool:
            return self.boolean(one.key)
        if typing.get_origin(one.hint) is Mapping:
            return self.mapping(one.key)
        if typing.get_origin(one.hint) is not tuple:
            before = len(self._report.problems)
            text = self.text(one.key, None if one.is_required else "")
            if len(self._report.problems) > before:
                return one.parser[1] if one.parser else text
            return self._looked_at(one, text, known)
        if dataclasses.is_dataclass(item := typing.get_args(one.hint)[0]):
            return tuple(value for _, value in self.rows(one.key, cast("type[Any]", item), known))
        return self._list(one, known)

    def _list(self, one: Declaration, known: Names) -> tuple[Any, ...]:
        texts = self.texts(one.key)
        for mark in one.marks:
            if isinstance(mark, Filled) and self._values.get(one.key) == []:
                self.problem(one.key, mark.message, mark.remedy)
        read = []
        for text in texts:
            count = len(self._report.problems)
            value = self._looked_at(one, text, known, is_alone=len(texts) == 1)
            if len(self._report.problems) == count or one.parser is None:
                read.append(value)
        return tuple(read)

    def _looked_at(self, one: Declaration, text: str, known: Names, *, is_alone: bool = False) -> Any:
        before = len(self._report.problems)
        for mark in one.marks if text else ():
            words = mark.words if isinstance(mark, OneOf) else known[mark.kind] if isinstance(mark, Known) else None
            if words is not None and text not in words:
                alone = mark.alone if isinstance(mark, Known) and is_alone and not similar(text, words) else ""
                remedy = "; ".join(filter(None, (alone, nearest(text, words))))
                self.problem(one.key, mark.message.format(text), remedy)
            if isinstance(mark, Matches) and not mark.pattern.fullmatch(text):
                self.problem(one.key, mark.message.format(text))
        if one.parser is None:
            return text
        is_known = len(self._report.problems) == before
        return self._parsed(one.key, text, *one.parser) if is_known else one.parser[1]

    def record(self, cls: type[T]) -> T | None:
        """Read a frozen dataclass whose fields are keys of this table; None if a mistake was noted.

        Whether a text may be empty is for the dataclass to say, with a ValueError.
        """
        known = len(self._report.problems)
        hints = get_type_hints(cls)
        values = {
            field.name: self._field(
                field.name.replace("_", "-"),
                hints[field.name],
                None if field.default is dataclasses.MISSING else field.default,
            )
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]  # a class of the vocabulary
        }
        if len(self._report.problems) > known:
            return None
        try:
            return cls(**values)
        except ValueError as error:
            self.problem("", str(error))
            return None

    def _field(self, key: str, hint: Any, default: Any) -> Any:
        if hint is str:
            return self._get(key, str, "a text", default, "")
        if hint is int:
            return self.integer(key, default)
        if hint is bool:
            return self.boolean(key, default)
        if typing.get_origin(hint) is tuple:
            return self.texts(key, default)
        if typing.get_origin(hint) is Mapping:
            return self.mapping(key)
        parser, fallback = _parser_of(hint)
        known = len(self._report.problems)
        value: str = self._get(key, str, "a text", None if default is None else str(default), "")
        return fallback if len(self._report.problems) > known else self._parsed(key, value, parser, fallback)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A field, as its type declares it."""

    name: str
    key: str
    hint: Any
    """Without None, and without what is said beside it."""
    marks: tuple[Any, ...]
    parser: tuple[Callable[[str], Any], Any] | None
    """Of its text, or of each text of its list, with what stands for a mistake; None where a text is meant."""
    is_required: bool
    default: Callable[[], Any]


@functools.cache
def declarations(cls: type[Any], given: frozenset[str]) -> tuple[Declaration, ...]:
    """List the keys of a table that is read as this type; without the fields that are given."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_declaration(one, hints[one.name]) for one in dataclasses.fields(cls) if one.name not in given)


def _declaration(field: dataclasses.Field[Any], hint: Any) -> Declaration:
    marks: tuple[Any, ...] = ()
    if typing.get_origin(hint) is typing.Annotated:
        hint, *said = typing.get_args(hint)
        marks = tuple(said)
    if type(None) in typing.get_args(hint):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    item = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
    parser = next(((mark.parse, mark.fallback) for mark in marks if isinstance(mark, Parsed)), None)
    if parser is None and not _reads_as_it_is(item):
        parser = _parser_of(item)
    has_factory = field.default_factory is not dataclasses.MISSING
    return Declaration(
        name=field.name,
        key=next((mark.name for mark in marks if isinstance(mark, Key)), field.name.replace("_", "-")),
        hint=hint,
        marks=marks,
        parser=parser,
        is_required=field.default is dataclasses.MISSING and not has_factory,
        default=field.default_factory if has_factory else lambda: field.default,  # type: ignore[arg-type]
    )


def _reads_as_it_is(hint: Any) -> bool:
    return (
        hint in {str, int, bool, Origin}
        or dataclasses.is_dataclass(hint)
        or typing.get_origin(hint) in {Mapping, typing.Literal}
    )


def _kind(value: object) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "something else")


@functools.lru_cache(maxsize=4096)
def requirement(text: str) -> Requirement:
    """Parse a requirement (PEP 508); once for all places that have the same, as the wheels of a release do.

    Raises:
        ValueError: it is none, in one clause.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f'"{text}" is not a requirement: {str(error).splitlines()[0]}') from error


def distribution(text: str) -> NormalizedName:
    """Parse and normalise the name of a distribution.

    Raises:
        ValueError: it is none, in one clause.
    """
    from packaging.utils import InvalidName, canonicalize_name

    try:
        return canonicalize_name(text, validate=True)
    except InvalidName as error:
        raise ValueError(f'"{text}" is not the name of a distribution') from error


def specifiers(text: str) -> SpecifierSet:
    """Parse version specifiers.

    Raises:
        ValueError: they are none, in one clause.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f'"{text}" is not a version specifier such as ">=1.2,<2"') from error


def version(text: str) -> Version:
    """Parse a version.

    Raises:
        ValueError: it is none, in one clause.
    """
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise ValueError(f'"{text}" is not a version') from error


def sha256(text: str) -> Sha256:
    """Parse a sha256.

    Raises:
        ValueError: it is none, in one clause.
    """
    if not _SHA256.fullmatch(text):
        raise ValueError(f'"{text}" must be a sha256 of 64 hexadecimal digits')
    return cast("Sha256", text)


@functools.cache
def _parser_of(hint: Any) -> tuple[Callable[[str], Any], Any]:
    """Give the parser of a field's type, and what stands in for a value with a mistake; what chooses needs none."""
    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName, canonicalize_name
    from packaging.version import Version

    from patchlock.model.identities import Sha256

    known: Mapping[Any, tuple[Callable[[str], Any], Any]] = {
        SpecifierSet: (specifiers, SpecifierSet()),
        Version: (version, Version("0")),
        NormalizedName: (distribution, canonicalize_name("nothing")),
        Sha256: (sha256, Sha256("")),
    }
    if hint in known:
        return known[hint]
    from packaging.requirements import Requirement  # whose grammar takes a tenth of the time that `info` has

    return {Requirement: (requirement, Requirement("nothing"))}[hint]


_QUIET = re.compile(
    r'"""(?:\\.|[^\\])*?"""|'
    r"'''.*?'''|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'|#[^\n]*",
    re.DOTALL,
)
"""A string or a comment, whichever begins first."""
_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_NAMES = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_HEADER = re.compile(rf"\s*(\[\[?)\s*{_NAMES}\s*\]\]?\s*")
_KEY = re.compile(rf"\s*{_NAMES}\s*=")


def line_index(text: str) -> dict[str, int]:
    """Find the line of each table and key of a TOML text, as `patch[0].ensure[1].check` → 1-based line.

    Good enough for messages: keys of inline tables are found under the key that holds them.
    """
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    prefix: list[str] = []
    depth = 0  # brackets that a value has open
    for number, line in enumerate(_QUIET.sub(_quieted, text).split("\n"), start=1):
        if depth == 0 and (header := _HEADER.fullmatch(line)):
            prefix = []
            *parents, last = _names(header[2])
            for parent in parents:
                table = ".".join([*prefix, parent])
                prefix.append(f"{parent}[{counts[table]}]" if table in counts else parent)
                lines.setdefault(".".join(prefix), number)
            if header[1] == "[[":
                table = ".".join([*prefix, last])
                counts[table] = counts.get(table, -1) + 1
                last = f"{last}[{counts[table]}]"
            prefix.append(last)
            lines.setdefault(".".join(prefix), number)
        elif depth == 0 and (key := _KEY.match(line)):
            names = _names(key[1])
            for end in range(1, len(names) + 1):
                lines.setdefault(".".join([*prefix, *names[:end]]), number)
        depth += sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
    return lines


def _quieted(found: re.Match[str]) -> str:
    """Keep the lines and the names of keys, and nothing else that could look like structure."""
    return "" if found[0].startswith("#") else re.sub(r"[\[\]{}=]", "_", found[0])


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(_NAME, dotted)]
