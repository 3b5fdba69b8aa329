"""Say which facts of the catalogue have a source that nobody can open; pure, opens none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_OPENABLE = re.compile(
    # a page; of a host that is everybody's, a place on it
    r"https?://(?!(?:www\.)?(?:github\.com|gitlab\.com|huggingface\.co|example\.\w+)/?(?:[\s;,]|$))[\w.-]+\.[a-z]+\S*"
    r"|\b[\w.-]+/[\w.-]+(?:@[0-9a-f]{7,40}:[\w./-]+|:[\w./-]+\.\w+)"  # a file of a public repository
    r"|\bPyPI: \S+ \S|\bon PyPI\b|\bPyPI, \d"  # what of a distribution, or when its pages were read
    r"|\bits METADATA: \S*\d|\bMETADATA of \S+ \S|\bREADME of \S+ \S*\d|\bits libraries\b"  # what it says of itself
)
_VARIABLE = re.compile(r"^(?!PATCHLOCK_)(?:\w+|\"\w+\")\s*=")
"""Our own are read by the catalogue's patches, and documented nowhere else."""
_ENVIRONMENT = re.compile(r"^\[(?:\w+\.)?environment\]")


@dataclass(frozen=True, kw_only=True)
class Unsourced:
    """A fact that a reader has to believe."""

    file: str
    line: int
    what: str
    """A clause."""

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: {self.what}; name a page (https://…), a file of a repository "
            "(owner/name@commit:path) or of the catalogue, or a distribution on PyPI"
        )


def unsourced(file: str, text: str, is_there: Callable[[str], bool]) -> tuple[Unsourced, ...]:
    """Name every source in a file that cannot be opened, and every variable of an [environment] without one.

    That a fact has a source at all is for the readers of the files to demand, table by table. Variables are plain keys:
    theirs stands in the comment above them, or above their table.

    Args:
        file: its path in the catalogue, POSIX.
        text: of a TOML file that can be parsed.
        is_there: whether a path in the catalogue is there.

    Returns:
        What was found, by line.
    """
    found = [
        Unsourced(file=file, line=line, what=f'nobody can open the source "{source}"')
        for source in dict.fromkeys(_sources(tomllib.loads(text)))
        if not _OPENABLE.search(source)
        and not any(is_there(one.strip().partition(":")[0]) for one in source.split(";"))
        for line in _lines(text, source)
    ]
    return tuple(sorted([*found, *_variables(file, text)], key=lambda one: one.line))


def _sources(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _sources(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key == "source" and isinstance(item, str):
            yield item
        elif key == "sources" and isinstance(item, list):
            yield from (one for one in item if isinstance(one, str))
        else:
            yield from _sources(item)


def _lines(text: str, value: str) -> list[int]:
    """Find the lines of a value; the first where the file spells it with escapes."""
    written = re.compile(rf"^[^#]*\bsources?\b.*{re.escape(value)}|^\s*[\"']{re.escape(value)}[\"']")
    return [number for number, line in enumerate(text.splitlines(), start=1) if written.search(line)] or [1]


def _variables(file: str, text: str) -> Iterator[Unsourced]:
    """Walk the tables of variables of a profile."""
    if not file.startswith("profiles/"):
        return
    inside, said, above = False, "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            said += line
            continue
        if line.startswith("["):
            inside, above = bool(_ENVIRONMENT.match(line)), said
        elif inside and _VARIABLE.match(line) and not _OPENABLE.search(above + said):
            yield Unsourced(file=file, line=number, what=f"the variable {line.split('=')[0].strip()} has no source")
        said = ""
