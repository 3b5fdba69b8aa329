"""What was proved, to be given away: machine, profile, lock, each check and each kernel, and no name of anybody."""

from __future__ import annotations

import contextlib
import datetime
import getpass
import math
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from patchlock import __version__
from patchlock.environments.generations import Receipt
from patchlock.model import redaction
from patchlock.model.hosts import Host
from patchlock.verify import reports
from patchlock.verify.checks import CheckResult
from patchlock.verify.reports import Report

FORMAT = 1
"""Of `profiles/proofs/<profile>/<app>.<name>.json`."""
_NAMES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "COMPUTERNAME", "HOSTNAME")
"""Variables that name a person or a computer."""
_NOT_OF_DEVICES = frozenset({"git", "docker-engine", "docker-desktop", "container-toolkit"})
"""Of a machine's versions, those that say nothing on what a proof holds."""
_LEAST, _MOST = 1e-9, 1.0
"""Errors between which the picture has its scale."""


def mask(folders: Iterable[Path]) -> Callable[[str], str]:
    """Give what takes this person's and this computer's names out of a text.

    Args:
        folders: of patchlock's, which may lie anywhere.
    """
    host = platform.node()
    names = [host, host.partition(".")[0], *(os.environ.get(name, "") for name in _NAMES)]
    with contextlib.suppress(OSError, KeyError, ImportError):  # nobody is known by that number
        names.append(getpass.getuser())
    homes = [str(Path.home()), *map(str, folders)]
    return redaction.masker(homes, names)


def data(
    receipt: Receipt, results: Sequence[CheckResult], report: Report, host: Host, say: Callable[[str], str]
) -> dict[str, Any]:
    """Write a report as JSON's values.

    Args:
        receipt: of the generation.
        results: of all checks.
        report: of the kernels.
        host: the machine; its versions are taken by name, nothing else of it.
        say: takes names out, see `mask`.

    Returns:
        Keys as in `docs/formats/profiles.md`; `levels` says what may be claimed.
    """
    system = (host.distribution or host.os, _numbers(host.release), host.libc, host.processor)
    return {
        "format": FORMAT,
        "patchlock": __version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "app": receipt.app,
        "profile": receipt.profile,
        "platform": receipt.platform,
        "python": receipt.python,
        "upstream": receipt.upstream,
        "lock": receipt.lock,
        "packages": receipt.packages,
        "system": ", ".join(filter(None, system)),
        "versions": {name: say(text) for name, text in host.versions.items() if name not in _NOT_OF_DEVICES},
        "libraries": dict(report.versions),
        "devices": {name: say(text) for name, text in report.devices.items()},
        "levels": levels(results, report),
        "checks": [{"id": r.id, "level": r.level, "passed": r.passed, "detail": say(r.detail)} for r in results],
        "kernels": [{**row, "detail": say(row["detail"])} for row in reports.data(report)["kernels"]],
    }


def _numbers(release: str) -> str:
    """Leave out of a kernel's release what its builder has added, which may be anybody's name."""
    found = re.match(r"[\d.]*\d", release)
    return f"release {found.group()}" if found else ""


def levels(results: Sequence[CheckResult], report: Report) -> dict[str, bool]:
    """Say what may be claimed: a level whose checks all passed, of which there is one at least."""
    found = {}
    for level in ("loads", "starts", "computes"):
        those = [result.passed for result in results if result.level == level]
        found[level] = bool(those) and all(those)
    is_cpu = report.back_end == "cpu"
    works = [one for one in report.judged if one.proof.verdict.value == "works"]
    found["computes"] &= any(is_cpu or not one.proof.device.upper().startswith("CPU") for one in works)
    return found


_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #1a7f37; --bad: #c62828; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; }
td.number, td.yes, td.no { white-space: nowrap; } td { overflow-wrap: anywhere; } td small { white-space: normal; }
.levels { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0; }
.levels li { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .8rem; }
.yes { color: var(--ok); font-weight: 600; } .no { color: var(--bad); font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
@media (max-width: 32rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } }
""".strip()


def html(report: Mapping[str, Any]) -> str:
    """Write a report as one page that needs no network.

    Args:
        report: as `data` gives it.
    """
    title = f"{report['app']} on {report['profile']} ({report['platform']})"
    facts = {
        "date": report["date"],
        "upstream": report["upstream"],
        "lock": f"sha256 {report['lock']}, {report['packages']} packages",
        "Python": report["python"],
        "system": report["system"],
        **report["versions"],
        **report["libraries"],
        **report["devices"],
        "patchlock": report["patchlock"],
    }
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="generator" content="patchlock">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n<h1>{escape(title)}</h1>",
        _levels(report["levels"]),
        "<dl>",
        *(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items()),
        "</dl>\n<h2>Checks</h2>",
        _table(("", "level", "check", "found"), [_check(one) for one in report["checks"]]),
    ]
    if report["kernels"]:
        parts += ["<h2>Kernels</h2>", _picture(report["kernels"])]
        head = ("kernel", "device", "outcome", "error", "time", "on the CPU")
        parts.append(_table(head, [_kernel(one) for one in report["kernels"]]))
    return "\n".join(parts) + "\n</html>\n"


def _levels(found: Mapping[str, bool]) -> str:
    proved = [f'<li class="yes">{escape(name)}' for name, held in found.items() if held]
    others = [f'<li class="no">not proved: {escape(name)}' for name, held in found.items() if not held]
    return f'<ul class="levels">{"".join([*proved, *others])}</ul>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(word)}" for word in head)
    body = "\n".join(f"<tr>{''.join(row)}" for row in rows)
    return f'<div class="wide"><table>\n<tr>{cells}\n{body}\n</table></div>'


def _check(one: Mapping[str, Any]) -> list[str]:
    mark = '<td class="yes">ok' if one["passed"] else '<td class="no">failed'
    return [mark, *(f"<td>{escape(str(one[key]))}" for key in ("level", "id", "detail"))]


def _kernel(one: Mapping[str, Any]) -> list[str]:
    outcome = f'<td class="{"no" if one["failed"] else "yes"}">{escape(str(one["outcome"]))}'
    if one["detail"]:
        outcome += f"<br><small>{escape(str(one['detail']))}</small>"
    numbers = (_error(one["error"]), _milliseconds(one["ms"]), _milliseconds(one["cpu_ms"]))
    return [
        f"<td>{escape(str(one['kernel']))}",
        f"<td>{escape(str(one['device']))}",
        outcome,
        *(f'<td class="number">{word}' for word in numbers),
    ]


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"


def _picture(kernels: Sequence[Mapping[str, Any]]) -> str:
    """Draw the largest error of each kernel, in parts of the largest value, on a logarithmic scale."""
    drawn = [one for one in kernels if isinstance(one["error"], float) and math.isfinite(one["error"])]
    height, left, width = 18, 190, 500
    span = math.log10(_MOST / _LEAST)
    lines = []
    for power in range(-9, 1, 3):
        x = left + width * (power + span) / span
        lines.append(f'<line x1="{x:.0f}" y1="20" x2="{x:.0f}" y2="{24 + height * len(drawn)}" stroke="#8886"/>')
        lines.append(f'<text x="{x:.0f}" y="14" text-anchor="middle">1e{power}</text>')
    for row, one in enumerate(drawn):
        y = 24 + height * row
        length = width * math.log10(min(max(one["error"], _LEAST), _MOST) / _LEAST) / span
        colour = "#c62828" if one["failed"] else "#1a7f37"
        lines.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(str(one["kernel"]))}</text>')
        size = f'width="{max(length, 1):.0f}" height="{height - 6}"'
        lines.append(f'<rect x="{left}" y="{y + 2}" {size} fill="{colour}"/>')
    if not drawn:
        return ""
    box = f"0 0 {left + width + 20} {30 + height * len(drawn)}"
    title = "Largest error of each kernel, in parts of the largest value"
    return f'<svg viewBox="{box}" role="img"><title>{title}</title>{"".join(lines)}</svg>'
