"""Is a Python file that does not parse broken for every Python, or may it be written for a newer one; pure."""

from __future__ import annotations

import ast
import dataclasses
import re
import warnings

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText

_MOST = 12
"""Words and signs of a statement that LibCST is asked about: its parser ends the process on what is nested too deeply.

Source: https://github.com/Instagram/LibCST/issues/1000
"""
_GOES_ON = re.compile(r"[{\\;]|'''|\"\"\"|:\s*(?:#.*)?\Z")
"""What may join a line with the next one."""


def judged(source: SourceText, refusal: Refusal) -> Refusal:
    """Call a file broken upstream if no Python can import it; any doubt leaves the refusal as it is.

    Broken is a file of which a whole statement, at the start of its line and behind code that parses, is read neither
    by the running Python nor by LibCST, which knows the grammar of newer ones. Python reads a whole file before it runs
    any of it, so nothing of this one runs. A cell of a notebook does not keep the others from running.

    Args:
        source: the file.
        refusal: why `syntax.parse` did not read it.
    """
    if source.path.suffix != ".py" or source.encoding.startswith("utf-16"):
        return refusal
    starts = (*source.line_starts(), len(source.text))
    start, end = starts[refusal.line - 1], starts[min(refusal.line, len(starts) - 1)]
    statement = source.text[start:end].strip("\r\n")
    if not _is_whole(statement) or not _parses(source.text[:start]) or _is_known_to_libcst(statement):
        return refusal
    why = f"no Python reads it, so that none of it can run, and it is left as it is: `{statement.strip()}`"
    return dataclasses.replace(refusal, kind=OutcomeKind.BROKEN, why=why)


def _is_whole(line: str) -> bool:
    """Tell whether a short line begins and ends a statement, whatever the statement is."""
    signs = re.findall(r"[^\w\s.,]", line)
    quotes, brackets = (sum(map(signs.count, some)) for some in ("'\"", "()[]"))
    is_closed = all(signs.count(a) == signs.count(b) for a, b in ("()", "[]"))
    return (
        bool(re.match(r"[^\W\d]", line))
        and max(len(signs), len(line.split())) <= _MOST
        and not _GOES_ON.search(line)
        and is_closed
        and not (quotes and brackets)
        and all(signs.count(quote) % 2 == 0 for quote in "'\"")
    )


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_known_to_libcst(statement: str) -> bool:
    import libcst  # takes a third of a second, and is hardly ever needed

    try:
        libcst.parse_module(statement)
    except libcst.ParserSyntaxError:
        return False
    return True
