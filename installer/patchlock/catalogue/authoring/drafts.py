"""A patch in the making: an op, what it may be proved by, and how it becomes a `Patch`; reads no file."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.origins import Origin
from patchlock.model.patch import Ensure, Expect, Op, Patch
from patchlock.patches.ops import OPS
from patchlock.patches.postconditions import ENSURES

NamedEnsure = tuple[str, Ensure]
"""What the catalogue calls a check, and the check."""

WHY = "TODO: say what is wrong with upstream's code here, and for whom"
SOURCE = "TODO: a link that shows the trouble"
TELLING = 8
"""Characters of a text that hardly comes to stand somewhere by itself, as `1` or `pass` does."""
_LONG = 20
"""Characters of a text that tells its place without many words."""
_OF_ONE_PLACE = frozenset(
    {"replace-expression", "set-argument", "neutralise-call", "insert-statement", "set-requirement"}
)
"""Ops that find all places that are alike: of an edit in one, upstream's next one is none."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One op that does some of an edit."""

    op_name: str
    op: Op
    slug: str
    """What the id is made of: lower-case words joined by `-`."""
    literal: tuple[str, ...] = ()
    ensures: tuple[NamedEnsure, ...] = ()
    stands: tuple[tuple[NamedEnsure, ...], ...] = ()
    """Of an op that puts one thing in the place of another: ways to prove that the new one stands there, best first."""
    sites: int = 1

    def patch(self, patch_id: str, paths: Iterable[PurePosixPath], after: tuple[str, ...] = ()) -> Patch:
        """Give the patch; whoever uses it has to say why it is there."""
        return Patch(
            id=patch_id,
            why=WHY,
            source=SOURCE,
            paths=tuple(map(str, paths)),
            literal=self.literal,
            profiles=(),
            op_name=self.op_name,
            op=self.op,
            ensures=tuple(ensure for _, ensure in self.ensures),
            expect=Expect(sites=self.sites, exact=self.sites == 1 and self.op_name in _OF_ONE_PLACE),
            after=after,
            origin=Origin(file="", line=1),
        )


def is_telling(text: str) -> bool:
    """Tell whether a text hardly comes to stand somewhere else, as `value=1.0,` and `return True` do."""
    words = {word for word in _WORD.findall(text) if not keyword.iskeyword(word)}
    return len(text.strip()) >= (TELLING if len(words) > 1 else _LONG)


def op(name: str, /, **fields: object) -> Op | None:
    """Make an op by its name in the catalogue; `None` where there is no such op or it does not accept the fields."""
    if name not in OPS:
        return None
    try:
        return OPS[name](**fields)
    except (TypeError, ValueError):
        return None


def ensures(*wanted: tuple[str, dict[str, object]]) -> tuple[NamedEnsure, ...]:
    """Make checks by their names in the catalogue; those that do not accept their fields are left out."""
    made: list[NamedEnsure] = []
    for name, fields in wanted:
        try:
            made.append((name, ENSURES[name](**fields)))
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(made)


_LONGEST = 36
"""Characters; the row of such an id in the table of `patch test --since` has 79."""


def slug(*parts: str) -> str:
    """Join texts into lower-case words with `-` between them: as many as fit the tables in which ids stand."""
    name = "-".join(re.findall(r"[a-z0-9]+", " ".join(parts).lower()))
    whole_words = name[: _LONGEST + 1].rpartition("-")[0] if len(name) > _LONGEST else name
    return whole_words or name[:_LONGEST] or "change"


def longest_word(texts: Iterable[str], *places: str) -> tuple[str, ...]:
    """Give the longest name that stands in all places, as a literal of a patch; nothing where there is none."""
    words = {word for text in texts for word in _WORD.findall(text)}
    known = [word for word in words if all(word in place for place in places)]
    return tuple(sorted(known, key=lambda word: (-len(word), word))[:1])
