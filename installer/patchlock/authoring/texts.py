"""Say any change of text as a unified diff, and find lines by which a change of text is proved."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from patchlock.authoring.drafts import Draft, NamedEnsure, ensures, longest_word, op, slug
from patchlock.sources import SourceText

_CONTEXTS = (3, 8, 20)
"""Numbers of lines around a change: more where fewer do not tell its place."""

_COMMENTS = ("#", "//", "::", "REM ", "rem ", ";")


def unified(text: str) -> str:
    r"""Give a text with `\n` for every line ending."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    r"""Split a text into lines with their `\n`, as a diff does; a form feed ends none."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def changed_lines(before: str, after: str) -> int:
    """Count the lines that a diff removes and adds."""
    rows = difflib.unified_diff(lines_of(before), lines_of(after), n=0)
    return sum(row[:1] in {"+", "-"} for row in rows) - 2


def diffs(path: PurePosixPath, before: SourceText, after: SourceText) -> Iterator[Draft]:
    """Give diffs of a file that say the same with more and more context."""
    old, new = unified(before.text), unified(after.text)
    for context in _CONTEXTS:
        rows = list(difflib.unified_diff(lines_of(old), lines_of(new), f"a/{path}", f"b/{path}", n=context))
        text = "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)
        made = op("unified-diff", diff=text)
        if made is not None:
            yield Draft(
                op_name="unified-diff",
                op=made,
                slug=slug(path.stem, "by-text"),
                literal=longest_word((row[1:] for row in rows if row.startswith(" ")), old, new),
                ensures=proofs(old, new),
                sites=sum(row.startswith("@@ ") for row in rows),
            )


def addition(path: PurePosixPath, data: bytes, is_executable: bool) -> Draft | None:
    """Give the op that makes a file; `None` where it is no text or empty."""
    try:
        content = data.decode()
    except UnicodeDecodeError:
        return None
    made = op("add-file", content=content, executable=is_executable) if "\0" not in content else None
    if made is None:
        return None
    longest = max(content.splitlines(), key=len).strip()
    return Draft(
        op_name="add-file",
        op=made,
        slug=slug("add", path.name),
        ensures=ensures(("contains", {"text": longest})),
    )


def proofs(before: str, after: str) -> tuple[NamedEnsure, ...]:
    """Give one check for each run of changed lines, that fails before it and holds after it; without duplicates."""
    old, new = lines_of(before), lines_of(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    found: list[NamedEnsure] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            found += [one for one in _proof(before, after, old[i:j], new, k, m) if one not in found]
    return tuple(found)


def _by_weight(lines: Iterable[str]) -> list[str]:
    """Order lines by what they tell: comments last, then the longest first."""
    return sorted((line.strip() for line in lines), key=lambda line: (line.startswith(_COMMENTS), -len(line)))


def _proof(
    before: str, after: str, removed: list[str], new: list[str], start: int, end: int
) -> tuple[NamedEnsure, ...]:
    added, gone = _by_weight(new[start:end]), _by_weight(removed)
    for line in added:
        if line and line not in before:
            return ensures(("contains", {"text": line}))
    for line in gone:
        if line and line not in after:
            return ensures(("lacks", {"text": line}))
    # The same lines in another order, or once more: their neighbours tell.
    for around in range(1, 6):
        block = "".join(new[max(0, start - around) : end + around])
        if block.strip() and block not in before:
            return ensures(("contains", {"text": block}))
    return ()
