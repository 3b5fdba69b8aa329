"""Read a file of upstream as text and write it back: encoding, BOM and line endings survive; does no I/O."""

from __future__ import annotations

import ast
import bisect
import codecs
import dataclasses
import io
import itertools
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_NEWLINE = re.compile(r"\r\n|\r|\n")

_PYTHON = frozenset({".py", ".pyw", ".pyi"})

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """A file of upstream, decoded.

    Attributes:
        path: POSIX path from the root of the clone.
        text: the content without BOM; line endings are as in the file.
        encoding: Python's name of the codec, without BOM ("utf-8", "utf-16-le", "latin-1", …).
        bom: the bytes of the byte order mark, or b"".
    """

    path: PurePosixPath
    text: str
    encoding: str
    bom: bytes

    @property
    def newline(self) -> str:
        """The line ending that the file uses most, `\\n` where it has none."""
        endings = _NEWLINE.findall(self.text)
        return max(("\n", "\r\n", "\r"), key=endings.count) if endings else "\n"

    def line_starts(self) -> tuple[int, ...]:
        """Character offset of the start of each line; line 1 is index 0. Lines end at LF, CRLF or CR only."""
        return line_starts(self.text)


@dataclass(frozen=True, kw_only=True)
class Undecodable:
    """A file that cannot be read as text and written back unchanged."""

    path: PurePosixPath
    why: str


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Replace the characters `start` (included) to `end` (excluded) of a `SourceText.text`."""

    start: int
    end: int
    text: str


def line_starts(text: str) -> tuple[int, ...]:
    """Give the offset of the start of each line of a text; lines end at LF, CRLF or CR only."""
    if "\r" in text:
        return (0, *(match.end() for match in _NEWLINE.finditer(text)))
    return tuple(itertools.accumulate([len(line) + 1 for line in text.split("\n")[:-1]], initial=0))


def decode(path: PurePosixPath, data: bytes) -> SourceText | Undecodable:
    """Decode a file the way Python and pip do: by BOM, then by coding cookie, then UTF-8, then Latin-1.

    Latin-1 is no guess for a Python file that Python itself cannot read: invalid UTF-8 is only borne in comments.
    The answer is only a `SourceText` where encoding it again gives the same bytes.

    Source: PEP 263; pip's `auto_decode`.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _decoded(path, data[len(bom) :], encoding, bom)
    if b"\0" in data:
        return Undecodable(path=path, why="it has NUL bytes")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        return _guessed(path, data)
    text = _decoded(path, data, encoding, b"")
    if isinstance(text, Undecodable) and encoding == "utf-8":
        return _guessed(path, data)
    return text


def _guessed(path: PurePosixPath, data: bytes) -> SourceText | Undecodable:
    if path.suffix in _PYTHON:
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return Undecodable(path=path, why=f"Python cannot read it: {getattr(error, 'msg', error)}")
    return _decoded(path, data, "latin-1", b"")


def _decoded(path: PurePosixPath, data: bytes, encoding: str, bom: bytes) -> SourceText | Undecodable:
    try:
        text = data.decode(encoding)
        faithful = text.encode(encoding) == data
    except (UnicodeError, LookupError) as error:
        return Undecodable(path=path, why=f"it is not valid {encoding}: {error}")
    if not faithful:
        return Undecodable(path=path, why=f"{encoding} does not give its bytes back")
    return SourceText(path=path, text=text, encoding=encoding, bom=bom)


def encode(source: SourceText) -> bytes:
    """Give the bytes of a file back, BOM included.

    Raises:
        UnicodeEncodeError: a replacement has characters that the file's encoding lacks.
    """
    return source.bom + source.text.encode(source.encoding)


def lines_after(source: SourceText, edits: tuple[Edit, ...], known: Sequence[int]) -> list[int]:
    """Say of each line of an edited file from which line it comes.

    Args:
        source: the file before the edits.
        edits: as for `splice`.
        known: for each line of the source, the number to give; such as what this function gave for earlier edits.

    Returns:
        A number for each line of `splice(source, edits)`; inserted lines have that of the place where they are.
    """
    starts = source.line_starts()
    lines: list[int] = []
    done = -1
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        first, last = (bisect.bisect_right(starts, at) - 1 for at in (edit.start, edit.end))
        lines += known[done + 1 : first + 1]
        added = len(_NEWLINE.findall(edit.text))
        lines += [known[first]] * (added - 1) + [known[last]] * (added > 0)
        done = last
    return [*lines, *known[done + 1 :]]


def match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Give the offset behind what a pattern matches at an offset; the offset itself where it matches nothing."""
    match = pattern.match(text, at)
    return match.end() if match else at


def splice(source: SourceText, edits: tuple[Edit, ...]) -> SourceText:
    """Apply edits to a file; everything outside their ranges stays byte for byte.

    Raises:
        ValueError: two edits overlap or one ends behind the file, which is a mistake of the op that made them.
    """
    text = source.text
    end = len(text)
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        if edit.end > end or edit.start > edit.end:
            raise ValueError(f"edits overlap in {source.path} at character {edit.start}")
        text = text[: edit.start] + edit.text + text[edit.end :]
        end = edit.start
    return dataclasses.replace(source, text=text)
