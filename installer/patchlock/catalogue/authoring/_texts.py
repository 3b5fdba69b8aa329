"""Say any change of text as a unified diff, and find lines by which a change of text is proved."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.authoring.drafts import Draft, NamedEnsure, ensures, is_telling, longest_word, op, slug
from patchlock.model.text_files import SourceText

_CONTEXTS = (2, 3, 8, 20)
"""Numbers of lines around a change: more where fewer do not tell its place; upstream may change any of them."""

_NEIGHBOURS = 6
"""Lines around a change that are tried to tell it, and one."""
_WORDS = re.compile(r"\w+|[^\w\s]")


def normalize_newlines(text: str) -> str:
    r"""Give a text with `\n` for every line ending."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    r"""Split a text into lines with their `\n`, as a diff does; a form feed ends none."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def changed_lines(before: str, after: str) -> int:
    """Count the lines that a diff removes and adds."""
    rows = [*difflib.unified_diff(lines_of(before), lines_of(after), n=0)][2:]  # without the two of the head
    return sum(row[:1] in {"+", "-"} for row in rows)


def distance(text: str, wanted: str) -> tuple[int, int]:
    """Count the lines, and the words in them, in which a text differs from another."""
    have, want = words(text), words(wanted)
    return changed_lines(text, wanted), ((have - want) + (want - have)).total()


def written_lines(text: str) -> list[str]:
    """Give the lines that are not blank."""
    return [line for line in lines_of(normalize_newlines(text)) if line.strip()]


def without_blank_changes(before: str, after: str) -> str:
    """Give an edited text with the blank lines of the former one where nothing else changed."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    blank = (not "".join([*old[i:j], *new[k:m]]).strip() for _, i, j, k, m in opcodes)
    chosen = (old[i:j] if is_blank else new[k:m] for is_blank, (_, i, j, k, m) in zip(blank, opcodes, strict=True))
    return "".join(line for lines in chosen for line in lines)


def words(text: str) -> Counter[str]:
    """Count the words and signs of a text, wherever they stand."""
    return Counter(_WORDS.findall(text))


def diffs(
    path: PurePosixPath, before: SourceText, after: SourceText, upstream: str | None = None
) -> Iterator[tuple[Draft, ...]]:
    """Give diffs of a file that say the same with more and more context; first one for each place, then one for all.

    Places are apart if their context is: upstream may adopt one of them in its own way, and the others still hold.

    Args:
        path: of the file.
        before: it, as other patches may have left it.
        after: it, edited.
        upstream: the text that those patches are for; what they have changed is context only where nothing else tells.
    """
    old, new = normalize_newlines(before.text), normalize_newlines(after.text)
    patched = _changed_indexes(old if upstream is None else normalize_newlines(upstream), old)
    ways = [*itertools.product(dict.fromkeys((patched, frozenset[int]())), _CONTEXTS)]
    for foreign, context in ways:
        hunks = _hunks(lines_of(old), lines_of(new), context, foreign)
        if len(hunks) > 1:
            yield tuple(_diffs_of_places(path, old, new, hunks))
    for foreign, context in ways:
        hunks = _hunks(lines_of(old), lines_of(new), context, foreign)
        made = _diff(path, hunks, old, new)
        yield (made,) if made is not None else ()


def _diffs_of_places(path: PurePosixPath, old: str, new: str, hunks: Sequence[_Hunk]) -> Iterator[Draft]:
    """Give a diff for each hunk, of the text that those before it have made."""
    now, made = old, lines_of(new)
    for hunk in hunks:
        then = "".join([*made[: hunk.made_end], *lines_of(old)[hunk.end :]])
        draft = _diff(path, [dataclasses.replace(hunk, start=hunk.made)], now, then)
        if draft is not None:
            yield draft
        now = then


def _diff(path: PurePosixPath, hunks: Sequence[_Hunk], old: str, new: str) -> Draft | None:
    """Give the draft of a diff; None where there is no hunk."""
    rows = [row for hunk in hunks for row in hunk.text()]
    text = "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)
    made = op("unified-diff", diff=f"--- a/{path}\n+++ b/{path}\n{text}")
    if made is None:
        return None
    context, *sides = (
        longest_word((row[1:] for row in rows if row.startswith(sign)), *texts)
        for sign, *texts in ((" ", old, new), ("-", old), ("+", new))
    )
    return Draft(
        op_name="unified-diff",
        op=made,
        slug=slug(path.stem, "by-text"),
        literal=context or (*sides[0], *sides[1]) * all(sides),  # a file has one of them, before or after
        ensures=proofs(old, new),
        sites=len(hunks),
    )


def _changed_indexes(before: str, after: str) -> frozenset[int]:
    """Give the indexes of the lines of a text that are not those of a former one."""
    matcher = difflib.SequenceMatcher(None, lines_of(before), lines_of(after), autojunk=False)
    return frozenset(n for tag, _, _, k, m in matcher.get_opcodes() if tag != "equal" for n in range(k, m))


@dataclass(frozen=True, kw_only=True)
class _Hunk:
    """Some changed lines with those around them; indexes of lines, before and after."""

    start: int
    made: int
    made_end: int
    end: int
    rows: tuple[str, ...]

    def text(self) -> Iterator[str]:
        """Give the rows with their head."""
        counts = [sum(not row.startswith(sign) for row in self.rows) for sign in "+-"]
        yield f"@@ -{_range(self.start, counts[0])} +{_range(self.made, counts[1])} @@\n"
        yield from self.rows


def _hunks(old: list[str], new: list[str], context: int, foreign: frozenset[int]) -> list[_Hunk]:
    """Give hunks as `difflib.unified_diff` does, with no line of `foreign` as context around a change."""
    hunks: list[list[tuple[int, int, int, int]]] = []
    ends: list[int] = []
    matcher = difflib.SequenceMatcher(None, old, new)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        above = next((n for n in range(1, context + 1) if n > i or i - n in foreign), context + 1) - 1
        below = next((n for n in range(context) if j + n >= len(old) or j + n in foreign), context)
        if hunks and i - above <= ends[-1]:
            hunks[-1].append((i, j, k, m))
            ends[-1] = j + below
        else:
            hunks.append([(i - above, i - above, k - above, k - above), (i, j, k, m)])
            ends.append(j + below)
    return [
        _Hunk(
            start=first[0],
            made=first[2],
            made_end=changes[-1][3] + end - changes[-1][1],
            end=end,
            rows=tuple(_rows(old, new, first[0], changes, end)),
        )
        for (first, *changes), end in zip(hunks, ends, strict=True)
    ]


def _rows(
    old: list[str], new: list[str], start: int, changes: Iterable[tuple[int, int, int, int]], end: int
) -> Iterator[str]:
    at = start
    for i, j, k, m in changes:
        yield from (f" {line}" for line in old[at:i])
        yield from (f"-{line}" for line in old[i:j])
        yield from (f"+{line}" for line in new[k:m])
        at = j
    yield from (f" {line}" for line in old[at:end])


def _range(start: int, count: int) -> str:
    return f"{start + 1}" if count == 1 else f"{start + bool(count)},{count}"


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
        ensures=ensures(("contains", {"text": longest}))
        or ensures(("file-is", {"sha256": hashlib.sha256(data).hexdigest()})),  # of blank lines alone
    )


def proofs(before: str, after: str) -> tuple[NamedEnsure, ...]:
    """Give one check for each run of changed lines, that fails without that run and holds after all; no duplicates."""
    old, new = lines_of(before), lines_of(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    found: list[NamedEnsure] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            run = _Run(
                before=before,
                after=after,
                without="".join([*new[:k], *old[i:j], *new[m:]]),
                removed=tuple(old[i:j]),
                new=tuple(new),
                start=k,
                end=m,
            )
            found += [one for one in run.proof() if one not in found]
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Neighbouring lines that changed."""

    before: str
    after: str
    without: str
    """What `after` is if this run is left as it was."""
    removed: tuple[str, ...]
    new: tuple[str, ...]
    """All lines of `after`; this run is from `start` to `end`."""
    start: int
    end: int

    def proof(self) -> tuple[NamedEnsure, ...]:
        added = self.new[self.start : self.end]
        came = [("contains", text) for text in self._texts(added) if self._appears(text)]
        went = [("lacks", text) for text in self._texts(self.removed) if self._vanishes(text)]
        # What went says nothing of what stands in its place.
        found = [*came, *went] if any(line.strip() for line in added) else [*went, *came]
        return next((ensures((check, {"text": text})) for check, text in found), ())

    def _texts(self, lines: Sequence[str]) -> Iterator[str]:
        """Give all the lines, with their ends, as a longer line is another one; then with more and more neighbours.

        Short lines, such as `pass`, the same lines in another order, or once more, are told by these.
        """
        for around in range(0 if is_telling("".join(lines)) else 1, _NEIGHBOURS):
            above, below = self.new[max(0, self.start - around) : self.start], self.new[self.end : self.end + around]
            yield "".join([*above, *lines, *below])

    def _vanishes(self, text: str) -> bool:
        return bool(text.strip()) and text in self.before and text in self.without and text not in self.after

    def _appears(self, text: str) -> bool:
        return bool(text.strip()) and text not in self.before and text not in self.without
