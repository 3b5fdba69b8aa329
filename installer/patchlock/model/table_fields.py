"""What a field of a value may say in a table of the catalogue, declared on the type; `catalogue.table_reader` reads it.

A type's fields are the keys of its table (`from_pypi`: `from-pypi`), their types are the kinds, and a key whose field
has a default may be left out. What else there is to say stands in `Annotated`, by the classes of this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Key:
    """The key, where it is not the field's name."""

    name: str


@dataclass(frozen=True)
class Parsed:
    """What parses the text, or each text of a list; its ValueError is the mistake, in one clause."""

    parse: Callable[[str], Any]
    fallback: Any = ""
    """Stands for a value with a mistake."""


@dataclass(frozen=True)
class OneOf:
    """The words that there are; a mistake names the nearest."""

    message: str
    """`{}` stands for the word."""
    words: Iterable[str]


@dataclass(frozen=True)
class Known:
    """The words that there are, where only the reader knows them."""

    message: str
    """`{}` stands for the word."""
    kind: str
    """Of what the reader is told: `profiles`."""
    alone: str = ""
    """What to do where it is the only word of a list, and none that there is resembles it."""


@dataclass(frozen=True)
class Matches:
    """What the whole text, or each text of a list, looks like."""

    message: str
    """`{}` stands for the text."""
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Filled:
    """That a list has something in it; with a message or a remedy of its own, which is said of a missing one, too."""

    message: str = "it is empty"
    remedy: str = ""

    @property
    def is_own(self) -> bool:
        """Whether it says more than that it is empty."""
        return self != Filled()


_NO_PROFILE = 'there is no profile "{}"'
ProfileNames = Annotated[
    tuple[str, ...],
    Known(_NO_PROFILE, "profiles", alone="if you have removed that profile, remove this table, which is for no other"),
    Filled("it names no profile", "remove the table, or the key alone if the table is for every profile"),
]
"""Those that a table is for; it is for every profile where the key is missing."""
ProfilesIfAny = Annotated[tuple[str, ...], Known(_NO_PROFILE, "profiles")]
"""None are meant where there are none."""
FilledTexts = Annotated[tuple[str, ...], Filled()]
