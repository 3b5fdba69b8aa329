"""Draw what `bench` measured as an SVG: a bar for each profile and kind of number, a tick for each run; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from patchlock.model.byte_sizes import size_text
from patchlock.verify.bench import BenchResult

_WIDTH, _LEFT, _RIGHT, _ROW, _HEAD = 880, 250, 150, 34, 40
_STYLE = """
svg { color: #1f2328; background: #fff; font: 13px system-ui, sans-serif; }
text { fill: currentColor; } .title { font-size: 16px; font-weight: 600; } .small { font-size: 11px; opacity: .75; }
.bar { fill: #0a6ebd; } .earlier { fill: #0a6ebd; opacity: .35; } .run { stroke: #d1495b; stroke-width: 2; }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117; } .bar, .earlier { fill: #58a6ff; } }
""".strip()


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one line of the picture shows."""

    result: BenchResult
    earlier: BenchResult | None
    """What was measured there before; drawn paler."""


@dataclass(frozen=True, kw_only=True)
class _Panel:
    title: str
    value: Callable[[BenchResult], float | None]
    tell: Callable[[float], str]
    runs: Callable[[BenchResult], Sequence[float]] = lambda _: ()


def seconds_text(seconds: float) -> str:
    """Write seconds with three digits that count: `0.0123 s`, `1.23 s`, `123 s`."""
    return f"{seconds:#.3g}".rstrip(".") + " s"


_PANELS = (
    _Panel(
        title="time of a run, the median; each run is a tick",
        value=lambda one: one.median,
        tell=seconds_text,
        runs=lambda one: one.seconds,
    ),
    _Panel(
        title="real-time factor: seconds of computing for a second of sound, less is better",
        value=lambda one: one.factor,
        tell=lambda value: f"{value:.3g}",
    ),
    _Panel(
        title="most memory, with what loading took",
        value=lambda one: one.peak,
        tell=lambda value: size_text(int(value)),
    ),
    _Panel(title="memory of the device", value=lambda one: one.device_memory, tell=lambda value: size_text(int(value))),
    _Panel(title="use of the device", value=lambda one: one.device_use, tell=lambda value: f"{value:.0f} %"),
)


def svg(app: str, rows: Sequence[Row]) -> str:
    """Draw results that can be compared with each other.

    Args:
        app: its name.
        rows: one at least, in the order in which they are shown.
    """
    lines: list[str] = []
    at = 62
    for panel in _PANELS:
        if any(panel.value(row.result) is not None for row in rows):
            lines += _panel(panel, rows, at)
            at += _HEAD + _ROW * len(rows) + 8
    newest = rows[-1].result
    weights = "random weights" if newest.weights == "random" else f"weights: {newest.weights}"
    what = f"{newest.job.rpartition(' (')[0]}; {weights}"
    label = f"{app}: {what}"
    head = f'viewBox="0 0 {_WIDTH} {at + 20}" width="{_WIDTH}" height="{at + 20}" role="img"'
    foot = f"measured {newest.made}; paler: what was measured there before"
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} aria-label="{escape(label)}">',
        "<!-- patchlock bench -->",
        f"<title>{escape(label)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="16" y="28">{escape(app)}</text>',
        f'<text x="16" y="48">{escape(what)}</text>',
        *lines,
        f'<text class="small" x="16" y="{at + 8}">{escape(foot)}</text>',
        "</svg>",
    ]
    return "\n".join(whole) + "\n"


def _panel(panel: _Panel, rows: Sequence[Row], top: int) -> Iterator[str]:
    shown = [one for row in rows for one in (row.result, row.earlier) if one is not None]
    values = [value for one in shown if (value := panel.value(one)) is not None]
    runs = [taken for row in rows for taken in panel.runs(row.result)]
    most = max([*values, *runs], default=1) or 1
    room = _WIDTH - _LEFT - _RIGHT
    yield f'<text class="small" x="16" y="{top + 24}">{escape(panel.title)}</text>'
    for i, row in enumerate(rows):
        y = top + _HEAD + i * _ROW
        yield f'<text x="{_LEFT - 12}" y="{y + 14}" text-anchor="end">{escape(row.result.where)}</text>'
        yield f'<text class="small" x="{_LEFT - 12}" y="{y + 26}" text-anchor="end">{escape(row.result.device)}</text>'
        earlier = panel.value(row.earlier) if row.earlier else None
        if earlier is not None:
            yield f'<rect class="earlier" x="{_LEFT}" y="{y + 20}" width="{earlier / most * room:.1f}" height="6"/>'
        value = panel.value(row.result)
        if value is None:
            yield f'<text class="small" x="{_LEFT}" y="{y + 15}">not told</text>'
            continue
        yield f'<rect class="bar" x="{_LEFT}" y="{y + 2}" width="{value / most * room:.1f}" height="16"/>'
        for taken in panel.runs(row.result):
            x = _LEFT + taken / most * room
            yield f'<line class="run" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 20}"/>'
        end = _LEFT + max([value, *panel.runs(row.result)]) / most * room
        yield f'<text x="{end + 8:.1f}" y="{y + 15}">{escape(panel.tell(value))}</text>'
