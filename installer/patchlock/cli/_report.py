"""`report`: one file for a bug report, to be read before it is sent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from patchlock.cli import _folders, _options, _output
from patchlock.cli._paths import OutputFile

_LINES = 150
"""Last lines of each log."""
_LOGS = 6
"""Logs, the newest."""


@click.command("report")
@click.option(
    "-o",
    "--output",
    "target",
    type=OutputFile(head=rb"\A# patchlock report$"),
    default=Path("patchlock-report.md"),
    show_default=True,
    help="File to write.",
)
@_options.common
def report_command(target: Path, catalogue: Path | None, as_json: bool) -> None:
    """Write one file for a bug report, without personal data.

    It lists the hardware, what is installed, the last errors and the ends of logs, with names of users and computers
    left out. Nothing is sent anywhere; read it before you attach it.

    \b
    Example:
      patchlock report
      patchlock report -o report.md
    """
    from patchlock.core import atomic_files
    from patchlock.verify import shared_report

    home, cache, root = _options.home(), _options.cache(), _options.checked_root(catalogue)
    mask = shared_report.mask([home, cache, root, Path.cwd()])
    text = mask("\n".join(_parts(home, cache, root)))
    atomic_files.atomic_write(target.absolute(), text)
    if as_json:
        _output.succeed("report", {"file": str(target), "bytes": len(text.encode())})
    else:
        _output.echo(f"{target.absolute()} is written. Read it, and attach it to a bug report. Nothing was sent.")


def _parts(home: Path, cache: Path, root: Path) -> Iterator[str]:
    import platform

    from patchlock import __version__

    yield (
        f"# patchlock report\n\npatchlock {__version__}, Python {platform.python_version()}\n\n"
        "`~` stands for names, the home folder, and the folders of patchlock.\n"
    )
    yield from _section("Machine", lambda: _machine(home, root))
    yield from _section("Installed", lambda: _installed(home, root))
    yield from _section("Last errors", lambda: _errors(cache))
    for path in _logs(home, cache):
        yield from _section(f"Log: {path.name}", lambda path=path: _end(path))  # type: ignore[misc]


def _section(title: str, read: Callable[[], str]) -> Iterator[str]:
    """Write a section; what cannot be read says so, as the rest of the report is worth having."""
    from patchlock.model.errors import PatchlockError

    try:
        text = read()
    except (PatchlockError, OSError) as error:
        text = f"cannot be read: {error}"
    yield f"## {title}\n\n```\n{text.strip() or 'nothing'}\n```\n"


def _machine(home: Path, root: Path) -> str:
    import json

    from patchlock.hardware import host_overrides, probes, report

    observed = host_overrides.observe(lambda: probes.probe(home))
    return json.dumps(report.data(report.build_report(root, observed)), indent=1)


def _installed(home: Path, root: Path) -> str:
    from patchlock.cli._status import line
    from patchlock.environments import installation_states

    return "\n".join(line(one, root) for one in installation_states.states(home, root))


def _errors(cache: Path) -> str:
    from patchlock.cli import _last_errors

    return "\n\n".join(
        f"{row.get('time')} {row.get('command')} [{row.get('code')}]\n{row.get('text')}"
        for row in _last_errors.read(cache)
    )


def _logs(home: Path, cache: Path) -> list[Path]:
    """Name the newest logs: of the bootstrap, of builds, of our own mistakes, and what `verify` found last."""
    temporary = Path(tempfile.gettempdir())
    found = [
        *cache.glob("tool-*.log"),
        *cache.glob("builds/**/*.log"),
        *(path for path in temporary.glob(f"{_folders.bug_prefix()}*.txt") if _is_ours(path)),
        *home.glob("*/verify.json"),
    ]
    return sorted((path for path in found if path.is_file()), key=lambda path: -path.stat().st_mtime)[:_LOGS]


def _is_ours(path: Path) -> bool:
    """Say whether this person's patchlock wrote a file of the folder that all share."""
    return os.name != "posix" or path.stat().st_uid == os.getuid()


def _end(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LINES:]).replace("```", "'''")
