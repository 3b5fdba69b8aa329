"""Read unified diffs into hunks, with every mistake a clause; knows nothing of the files that they are for."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal

_HEADER = re.compile(r"@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*)?")
_NO_NEWLINE = "\\"
_SIGNS = {" ", "-", "+", _NO_NEWLINE}
_UNSAYABLE = {
    "rename from": "a diff cannot rename a file",
    "copy from": "a diff cannot copy a file",
    "old mode": "a diff cannot change the mode of a file",
    "new file mode": "a diff cannot make a file; a new file is `add-file`",
    "deleted file mode": "a diff cannot delete a file",
    "GIT binary patch": "a diff cannot change a binary file",
    "Binary files": "a diff cannot change a binary file",
}


@dataclass(frozen=True, kw_only=True)
class HunkLine:
    """One line of a hunk."""

    sign: Literal[" ", "-", "+"]
    text: str
    """Without line ending."""
    is_ended: bool = True
    """False: the diff says that there is no newline behind it."""


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Some neighbouring lines before and after."""

    number: int
    """1-based, in the whole diff."""
    old_line: int
    """1-based line where `before` began when the diff was made; 0 where the diff does not say it."""
    new_line: int
    lines: tuple[HunkLine, ...]

    @property
    def before(self) -> tuple[HunkLine, ...]:
        """What must stand there: context and removed lines."""
        return tuple(line for line in self.lines if line.sign != "+")

    @property
    def after(self) -> tuple[HunkLine, ...]:
        """What will stand there: context and added lines."""
        return tuple(line for line in self.lines if line.sign != "-")


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    """The hunks for one file."""

    path: str
    """POSIX path as the diff names it, without `a/` and `b/`; "" for hunks without a header."""
    hunks: tuple[Hunk, ...]


def parse(diff: str) -> tuple[FileDiff, ...]:
    """Read a diff of one or several files; what stands between them, such as git's `index` lines, is passed over.

    Raises:
        ValueError: it is no unified diff, or says what cannot be applied by content; one clause.
    """
    reader = _Reader(diff.split("\n"))
    files: list[FileDiff] = []
    path = ""
    while (line := reader.next()) is not None:
        if line.startswith("@@"):
            hunk = reader.hunk(line)
            if not files or files[-1].path != path:
                files.append(FileDiff(path=path, hunks=()))
            files[-1] = dataclasses.replace(files[-1], hunks=(*files[-1].hunks, hunk))
        elif line.startswith("--- ") and reader.is_header_at(reader.at):
            path = _path(line, reader.next() or "")
        elif why := next((why for start, why in _UNSAYABLE.items() if line.startswith(start)), ""):
            raise ValueError(f"line {reader.at} of `diff`: {why}")
        elif line[:1] in _SIGNS - {_NO_NEWLINE}:
            raise ValueError(f"line {reader.at} of `diff` belongs to no hunk")
    if not files:
        raise ValueError("`diff` has no hunk (`@@ -1,3 +1,3 @@`)")
    paths = [file.path for file in files]
    if len(set(paths)) < len(paths) or (len(paths) > 1 and "" in paths):
        raise ValueError("`diff` has hunks of one file in two places, or hunks of no file beside those of others")
    return tuple(files)


class _Reader:
    """The lines of a diff, one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.hunks = 0

    def peek(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def next(self) -> str | None:
        line = self.peek()
        self.at += line is not None
        return line

    def is_header_at(self, index: int) -> bool:
        return index < len(self.lines) and self.lines[index].startswith("+++ ")

    def hunk(self, header: str) -> Hunk:
        self.hunks += 1
        found = _HEADER.fullmatch(header)
        if not found:
            raise ValueError(f"line {self.at} of `diff` is not a header of a hunk, `@@ -1,3 +1,3 @@` or `@@`")
        old, old_count, new, new_count = found.groups()
        lines = self._counted(int(old_count or 1), int(new_count or 1)) if old else self._uncounted()
        hunk = Hunk(number=self.hunks, old_line=int(old or 0), new_line=int(new or 0), lines=tuple(lines))
        if not hunk.before:
            raise ValueError(f"hunk {self.hunks} of `diff` has no line that is there before; a new file is `add-file`")
        if not hunk.after:
            raise ValueError(f"hunk {self.hunks} of `diff` leaves no line by which its place is known; add context")
        if hunk.before == hunk.after:
            raise ValueError(f"hunk {self.hunks} of `diff` changes nothing")
        return hunk

    def _counted(self, old: int, new: int) -> list[HunkLine]:
        lines: list[HunkLine] = []
        while old > 0 or new > 0:
            raw = self.next()
            # An editor may have taken the blank from an empty line of context.
            if raw is None or (raw or " ")[0] not in _SIGNS or (raw == "" and self.peek() is None):
                raise ValueError(f"hunk {self.hunks} of `diff` is shorter than its header says")
            line = _line(raw)
            if line is None:
                lines[-1:] = [dataclasses.replace(line, is_ended=False) for line in lines[-1:]]
                continue
            old -= line.sign != "+"
            new -= line.sign != "-"
            lines.append(line)
        if old < 0 or new < 0:
            raise ValueError(f"hunk {self.hunks} of `diff` has other numbers of lines than its header says")
        if (self.peek() or "").startswith(_NO_NEWLINE):
            self.at += 1
            lines[-1] = dataclasses.replace(lines[-1], is_ended=False)
        return lines

    def _uncounted(self) -> list[HunkLine]:
        lines: list[HunkLine] = []
        while (raw := self.peek()) is not None and not raw.startswith("@@"):
            if raw[:1] not in _SIGNS or (raw.startswith("--- ") and self.is_header_at(self.at + 1)):
                break
            self.at += 1
            line = _line(raw)
            if line is None:
                lines[-1:] = [dataclasses.replace(line, is_ended=False) for line in lines[-1:]]
            else:
                lines.append(line)
        return lines


def _line(raw: str) -> HunkLine | None:
    """Read a line of a hunk; `None` is the remark that the line before has no newline."""
    match raw[:1]:
        case "-":
            return HunkLine(sign="-", text=raw[1:])
        case "+":
            return HunkLine(sign="+", text=raw[1:])
        case "\\":
            return None
        case _:
            return HunkLine(sign=" ", text=raw[1:])


def _path(old: str, new: str) -> str:
    before, after = (line[4:].partition("\t")[0].strip() for line in (old, new))
    if before == "/dev/null":
        raise ValueError(f"a diff cannot make {after.removeprefix('b/')}; a new file is `add-file`")
    if after == "/dev/null":
        raise ValueError(f"a diff cannot delete {before.removeprefix('a/')}")
    bare_before, bare_after = before.partition("/")[2], after.partition("/")[2]
    return bare_after if before != after and bare_before == bare_after != "" else after
