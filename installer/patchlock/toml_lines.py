"""Find the lines of tables and keys in a TOML text, for messages; read where something is to be said of a line."""

from __future__ import annotations

import re

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
