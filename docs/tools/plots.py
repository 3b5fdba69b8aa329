"""Bar charts as SVG, of numbers in a table of a report in benchmarks/reports/; for light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

_COLOURS = ("#3b82f6", "#f59e0b", "#9ca3af")
_STYLE = "width:30rem;max-width:100%;font:15px system-ui,sans-serif;fill:currentColor"
_WIDTH, _LETTER, _BAR, _GAP, _VALUE = 440, 8, 16, 12, 70
"""Narrow enough that a phone shows the letters in a size that can be read."""


@dataclass(frozen=True)
class Group:
    """Bars that belong together."""

    label: str
    values: tuple[float | None, ...]
    """One for each name of the legend; None where nothing was measured."""


def table_below(report: str, heading: str) -> list[dict[str, str]]:
    """Read the first table below a heading of a report, as rows by column."""
    _, found, rest = report.partition(f"## {heading}\n")
    if not found:
        raise ValueError(f'the report has no heading "{heading}"')
    lines = rest[rest.index("\n|") + 1 :].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[: _end(lines)]]
    head = [f"{name} {number}" if name in rows[0][:number] else name for number, name in enumerate(rows[0])]
    return [dict(zip(head, row, strict=True)) for row in rows[2:]]


def _end(lines: Sequence[str]) -> int:
    return next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))


def number(text: str) -> float | None:
    """Read the number at the beginning of a cell: `61.5 %`, `0.16 s`."""
    return float(text.split(maxsplit=1)[0]) if text.strip() else None


def bars(title: str, legend: Sequence[str], groups: Sequence[Group], unit: str, most: float) -> str:
    """Draw groups of horizontal bars, each with its number."""
    height_of_group = len(legend) * (_BAR + 2) + _GAP
    top = 22 * len(legend) + 12 if len(legend) > 1 else 8
    label = max(len(group.label) for group in groups) * _LETTER + 10
    height = top + len(groups) * height_of_group
    scale = (_WIDTH - label - _VALUE) / most
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" style="{_STYLE}">',
        f"<title>{html.escape(title)}</title>",
    ]
    if len(legend) > 1:
        for position, name in enumerate(legend):
            y = 6 + position * 22
            lines.append(f'<rect x="0" y="{y}" width="12" height="12" fill="{_COLOURS[position]}"/>')
            lines.append(f'<text x="18" y="{y + 11}">{html.escape(name)}</text>')
    for place, group in enumerate(groups):
        y = top + place * height_of_group
        middle = y + len(legend) * (_BAR + 2) / 2 + 4
        lines.append(f'<text x="{label - 10}" y="{middle:.0f}" text-anchor="end">{html.escape(group.label)}</text>')
        for position, value in enumerate(group.values):
            if value is None:
                continue
            row = y + position * (_BAR + 2)
            lines.append(
                f'<rect x="{label}" y="{row}" width="{max(1, value * scale):.1f}" height="{_BAR}" rx="2" '
                f'fill="{_COLOURS[position]}"/>'
            )
            lines.append(f'<text x="{label + value * scale + 6:.1f}" y="{row + 13}">{value:g} {unit}</text>')
    return "".join([*lines, "</svg>"])


def survival(report: str) -> str:
    """Draw how often each way of keeping a patch was right after a number of upstream's updates."""
    rows = table_below(report, "The same updates by three roads")
    groups = [
        Group(
            f"{row['updates']} update{'s' * (row['updates'] != '1')}",
            (number(row["ours right"]), number(row["fork right"]), number(row["diff right"])),
        )
        for row in rows
    ]
    legend = ("patchlock", "rebased fork: measured for one update only", "one diff, git apply --3way")
    return bars("Share of trials in which the patch was right, after so many updates", legend, groups, "%", 100)


def jobs(report: str) -> str:
    """Draw how long the measured job of each app took, by the first row that it has."""
    rows: dict[str, dict[str, str]] = {}
    for row in table_below(report, "`patchlock bench`"):
        rows.setdefault(row["app"], row)
    groups = [Group(app, (number(row["real-time factor"]),)) for app, row in rows.items()]
    most = max(value for group in groups if (value := group.values[0]) is not None)
    return bars("Seconds of computing per second of sound, on two busy CPU cores", ("",), groups, "×", most)
