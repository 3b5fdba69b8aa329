"""Compare what programs printed with expressions, however a person has pasted it; pure.

Letters are compared without their case, any quotation mark with any other, and a blank with any blanks or line ends.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Colours and titles. Source: ECMA-48, 5.4; https://invisible-island.net/xterm/ctlseqs/ctlseqs.html"""
_QUOTES = re.compile('["`\u2018\u2019\u201c\u201d]')
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[a-zA-Z]*|.", re.DOTALL)
"""Parts of an expression: an escape, a set of characters, what begins a group, a character."""
_QUOTED = re.compile(r"^[ \t]*(?:[>|\u2502][ \t]?)+", re.MULTILINE)
"""What mail, forums and frames of a terminal write before each line."""


def plain(text: str) -> str:
    """Write a text as it is compared."""
    return _folded(unquoted(text))


def unquoted(text: str) -> str:
    """Leave out colours, and the marks of a quotation before its lines."""
    return _QUOTED.sub("", _ESCAPES.sub("", text))


def _folded(text: str) -> str:
    return _QUOTES.sub("'", text).lower()


def pattern(expression: str) -> re.Pattern[str]:
    """Make an expression of one that is written for a message as its program prints it, for texts that are `plain`.

    Raises:
        re.error: it is no expression.
    """
    parts = _PARTS.findall(expression)
    return re.compile("".join(map(_tolerant, parts, [*parts[1:], ""])))


def _tolerant(part: str, following: str) -> str:
    if part == " ":
        return r"\s" if following in {"?", "*", "+", "{"} else r"\s+"
    if part.startswith(("\\", "(?")):
        return part
    if part.startswith("["):
        return re.sub(r"\\.|.", lambda found: found[0] if found[0].startswith("\\") else _folded(found[0]), part)
    return _folded(part)
