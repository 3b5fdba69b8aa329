"""Check that a text stands in a patched file, or that it does not, whatever encoding and line endings the file has."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_COOKIE = re.compile(rb"\A(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

UNREADABLE = "the file is not text in an encoding that can be told from its bytes"
"""The problem of a file for which `decoded` has no answer."""


@dataclass(frozen=True, kw_only=True)
class Contains:
    """A text stands in the file at least once."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:  # noqa: ARG002  (any kind of file)
        """Say that the text is missing."""
        text = decoded(data)
        if text is None:
            return (UNREADABLE,)
        return () if _unified(self.text) in _unified(text) else (f"{_shown(self.text)} is missing",)


@dataclass(frozen=True, kw_only=True)
class Lacks:
    """A text stands nowhere in the file."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text)

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:  # noqa: ARG002  (any kind of file)
        """Say on which line the text still stands, one clause for each."""
        text = decoded(data)
        if text is None:
            return (UNREADABLE,)
        before_each = _unified(text).split(_unified(self.text))[:-1]
        line = 1
        problems: list[str] = []
        for before in before_each:
            line += before.count("\n")
            problems.append(f"{_shown(self.text)} is still on line {line}")
            line += _unified(self.text).count("\n")
        return tuple(problems)


def decoded(data: bytes) -> str | None:
    """Decode a file by byte order mark, coding cookie, UTF-8 or else Latin-1; None where it holds NUL characters."""
    mark = next((mark for mark in _BOMS if data.startswith(mark)), b"")
    cookie = _COOKIE.match(data)
    candidates = [_BOMS[mark]] if mark else [cookie[1].decode("ascii", "replace") if cookie else "utf-8", "latin-1"]
    for encoding in candidates:
        try:
            text = data[len(mark) :].decode(encoding)
        except (UnicodeError, LookupError):
            continue
        return None if "\0" in text else text
    return None


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _shown(text: str) -> str:
    first, *others = text.strip("\r\n").splitlines() or [repr(text)]
    return f"the text `{first.strip()}{' …' if others else ''}`"


def _require_text(text: str) -> None:
    if not text:
        raise ValueError("`text` is empty")
