"""What a terminal shows after a program has written to it, as lines of styled text, and as an SVG.

Knows what rich writes to a terminal: line feeds, carriage returns, erasing, moving up, colours. Reads no files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

_CONTROL = re.compile(r"\x1b\[(\?)?([\d;]*)([A-Za-z])|\x1b.|[\r\n]|[^\x1b\r\n]+")
_COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#f2cc60", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea"}
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_BACKGROUND, _FOREGROUND, _FADED = "#0d1117", "#e6edf3", "#9da7b3"
_WIDTH, _HEIGHT, _MARGIN = 8.43, 19, 14
"""Of a character cell of 14 px type, and around the text; pixels."""
_LONGEST = 0.5
"""No pause of the recording is shown longer; seconds."""


@dataclass(frozen=True)
class Style:
    """How a character looks."""

    colour: str = ""
    bold: bool = False


Cell = tuple[str, Style]


@dataclass
class Screen:
    """The lines so far, each with the second in which it changed last."""

    rows: list[list[Cell]] = field(default_factory=lambda: [[]])
    changed: list[float] = field(default_factory=lambda: [0.0])
    row: int = 0
    column: int = 0
    style: Style = Style()

    def write(self, text: str, at: float) -> None:
        """Take what the program has written in second `at`."""
        for found in _CONTROL.finditer(text):
            private, numbers, letter = found.groups()
            if found[0] == "\n":
                self.row += 1
                self._extend(at)
            elif found[0] == "\r":
                self.column = 0
            elif letter == "m":
                self._restyle([int(number or 0) for number in numbers.split(";")])
            elif letter == "A":
                self.row = max(0, self.row - int(numbers or 1))
            elif letter == "K" and not private:
                line = self.rows[self.row]
                self.rows[self.row] = [] if numbers == "2" else line[: self.column]
                self.changed[self.row] = at
            elif found[0][0] != "\x1b":
                self._put(found[0], at)

    def _extend(self, at: float) -> None:
        while len(self.rows) <= self.row:
            self.rows.append([])
            self.changed.append(at)

    def _put(self, text: str, at: float) -> None:
        line = self.rows[self.row]
        line.extend([(" ", Style())] * (self.column - len(line)))
        line[self.column : self.column + len(text)] = [(character, self.style) for character in text]
        self.column += len(text)
        self.changed[self.row] = at

    def _restyle(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number == 0:
                self.style = Style()
            elif number == 1:
                self.style = Style(self.style.colour, bold=True)
            elif number == 2:
                self.style = Style(_FADED, self.style.bold)
            elif number in _COLOURS:
                self.style = Style(_COLOURS[number], self.style.bold)


def plain(screen: Screen) -> list[str]:
    """Give the lines as text."""
    return ["".join(character for character, _ in row).rstrip() for row in screen.rows]


def svg(screen: Screen, *, columns: int, title: str) -> str:
    """Draw the lines, faint until they were written; for a reader who wants no motion, all are bright at once."""
    times, shown, last = [], 0.0, 0.0
    for at in sorted(screen.changed):
        shown += min(at - last, _LONGEST)
        last = at
        times.append((at, shown))
    when = dict(times)
    rows = [
        (row[start : start + columns], changed)
        for row, changed in zip(screen.rows, screen.changed, strict=True)
        for start in range(0, max(1, len(row)), columns)
    ]
    width, height = round(columns * _WIDTH + 2 * _MARGIN), len(rows) * _HEIGHT + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{html.escape(title)}</title>",
        "<style>",
        f"text{{font:14px {_FONT};fill:{_FOREGROUND};white-space:pre}}",
        "@keyframes in{from{opacity:.3}to{opacity:1}}",
        ".l{animation:in .01s both}",
        "@media (prefers-reduced-motion:reduce){.l{animation:none}}",
        "</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>',
    ]
    for number, (row, changed) in enumerate(rows):
        spans, column = [], 0
        for style, cells in groupby(row, key=lambda cell: cell[1]):
            text = "".join(character for character, _ in cells)
            if text.strip():
                colour = f' fill="{style.colour}"' if style.colour else ""
                weight = ' font-weight="bold"' if style.bold else ""
                # The length keeps columns in line, whichever font the reader has.
                spans.append(
                    f'<tspan x="{_MARGIN + column * _WIDTH:.1f}" textLength="{len(text) * _WIDTH:.1f}" '
                    f'lengthAdjust="spacingAndGlyphs"{colour}{weight}>{html.escape(text, quote=False)}</tspan>'
                )
            column += len(text)
        if spans:
            y = _MARGIN + number * _HEIGHT + 14
            delay = f'style="animation-delay:{when[changed]:.2f}s"'
            lines.append(f'<text class="l" y="{y}" {delay}>{"".join(spans)}</text>')
    return "\n".join([*lines, "</svg>", ""])
