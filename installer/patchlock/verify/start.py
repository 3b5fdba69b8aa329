"""Prove that an app starts: its own command, alone and without a network, comes to its page, its help or a download."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from patchlock.model.app import Launch
from patchlock.model.backends import HIDDEN_DEVICES
from patchlock.model.errors import PatchlockError
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport
from patchlock.verify import checks
from patchlock.verify.checks import CheckContext, CheckResult

ID = "start"
_SECONDS = 300
"""For a first import of gigabytes from a slow disk."""
_GRACE = 60
"""Seconds more for what watches it."""
_QUIET = 45
"""Seconds that a program which waits for a download is waited for; libraries ask five times, and pause between."""
_NO_MODELS = re.compile(
    r"(?:^|\.)(?:gradio\.app|amazonaws\.com|segment\.io|posthog\.com|sentry\.io|wandb\.ai|pypi\.org)$"
)
"""Hosts that programs ask for addresses, statistics and new versions, and not for models."""
_NETWORK = re.compile(
    r"(?i)ProxyError|Max retries exceeded|Tunnel connection failed|403[: ]+Forbidden|ConnectionError|ConnectError|"
    r"URLError|LocalEntryNotFound|Network is unreachable|name resolution|getaddrinfo|offline|couldn't connect|download"
)
"""How libraries say that they cannot download."""
_ADDRESS = re.compile(r"https?://[\w.-]+/[^\s'\")\],]+")
_RETRIED = re.compile(r"host='([^']+)'.*?with url: (/[^\s)]+)")
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)')
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Missing|NotFound\w*)\b.*")
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", "site-packages", ".venv", "venv"})


def prove(launch: Launch, place: CheckContext, back_end: str) -> CheckResult:
    """Start the app, and say how far it comes.

    A program that serves a page is started as a person starts it; any other is asked for its help. Where its first
    download stops it, all that it imports until then has to be there too.

    Args:
        launch: how it is started.
        place: where.
        back_end: of the profile; for `cpu` every device is hidden.
    """
    command = launch.command if launch.listens is not None else (*_program(launch.command), *launch.help)
    try:
        return _prove(command, launch, place, back_end)
    except PatchlockError as error:
        return _result(f"{' '.join(command)}: {error.what}", passed=False)


def _prove(command: Sequence[str], launch: Launch, place: CheckContext, back_end: str) -> CheckResult:
    answer = _start(command, launch, place, back_end)
    if isinstance(answer, str):
        return _result(answer, passed=False)
    after = f"after {answer.get('seconds', 0):.0f} s"
    if answer["taken"]:
        port = launch.listens.port if launch.listens else 0
        return _result(
            f"port {port} is another program's on this machine: end that one, then verify again", passed=False
        )
    if served := answer["served"]:
        return _result(f"it answers on port {served['port']} with status {served['status']}, {after}", passed=True)
    if launch.listens is None and answer["ended"] == 0:
        return _result(f"`{' '.join(command)}` ends well, {after}", passed=True)
    why = failure(answer["output"], place.folder)
    if model := _download(answer, why):
        missing = missing_modules(launch, place)
        if not missing:
            return _result(f"it comes to its first download, {model}, {after}", passed=True)
        return _result(f"{_told(missing)}; it came to its first download, {model}", passed=False)
    how = "does not answer, and goes on" if answer["ended"] is None else f"ends with exit code {answer['ended']}"
    told = [f"{' '.join(command)} {how} {after}", *([why] if why else [])]
    if missing := missing_modules(launch, place):
        told.append(_told(missing))
    return _result("; ".join(told), passed=False)


def _result(detail: str, *, passed: bool) -> CheckResult:
    return CheckResult(id=ID, level="starts", passed=passed, detail=detail)


def _program(command: Sequence[str]) -> tuple[str, ...]:
    """Leave out what a command hands to the program."""
    words = list(command)
    if Path(words[0]).stem.startswith("python"):
        end = (
            words.index("-m") + 2
            if "-m" in words[:-1]
            else next((number + 1 for number, word in enumerate(words) if word.endswith(".py")), len(words))
        )
        return tuple(words[:end])
    return (words[0],)


def _start(command: Sequence[str], launch: Launch, place: CheckContext, back_end: str) -> dict[str, Any] | str:
    """Start it in a child that watches it; gives what the child says, or why there is none."""
    path = place.variables.get("PATH", os.defpath)
    program = shutil.which(command[0], path=path)
    if program is None:
        return f"{command[0]} is not in the environment: no package of the lock brings that program"
    with tempfile.TemporaryDirectory(prefix="patchlock-start-", ignore_cleanup_errors=True) as home:
        wanted = {
            "command": [program, *command[1:]],
            "home": home,
            "seconds": _SECONDS,
            "quiet": _QUIET,
            "port": launch.listens.port if launch.listens else 0,
        }
        variables = dict(place.variables) | (HIDDEN_DEVICES if back_end == "cpu" else {})
        answer: dict[str, Any] = checks.ask_program(
            "contained_start", place, json.dumps(wanted), variables=variables, seconds=_SECONDS + _GRACE
        )
        return answer


def _download(answer: Mapping[str, Any], why: str) -> str:
    """Name the first download that stops a program; "" where something else has stopped it."""
    output = str(answer["output"])
    hosts = [str(one) for one in answer["asked"] if not _NO_MODELS.search(str(one).partition("/")[0].partition(":")[0])]
    named = [f"https://{host}{rest}" for host, rest in _RETRIED.findall(output)]
    named += [one for one in _ADDRESS.findall(output) if any(host.partition("/")[0] in one for host in hosts)]
    if answer["ended"] not in (None, 0) and not _NETWORK.search(why):
        return ""
    return (named or [f"from {host}" for host in hosts] or [""])[0]


def failure(output: str, folder: Path) -> str:
    """Say what a program's last words are: the exception, and which line of the app's own has led to it.

    Args:
        output: of the program.
        folder: the app's.
    """
    lines = output.splitlines()
    begun = max(
        (number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line), default=None
    )
    if begun is None:
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    frames = [match.groups() for line in lines[begun:] if (match := _FRAME.match(line))]
    raised = next((line.strip() for line in lines[begun:] if _RAISED.match(line)), "")
    raised = raised or next((line.strip() for line in reversed(lines) if line.strip()), "")
    own = [(file, line) for file, line in frames if not Path(file).is_absolute() or Path(file).is_relative_to(folder)]
    where = own or frames
    if not where:
        return raised
    file, line = where[-1]
    short = Path(file).relative_to(folder).as_posix() if Path(file).is_relative_to(folder) else file
    return f"{short}:{line}: {raised}"


def missing_modules(launch: Launch, place: CheckContext) -> tuple[ReachedImport, ...]:
    """Name what a program imports as soon as it starts, and that is not in the environment.

    Args:
        launch: how it is started.
        place: where.
    """
    files = _Tree(place.folder)
    reached = import_graph.reached(files, launch.command, launch.environment.get("PYTHONPATH", ""))
    wanted = [one.module for one in reached.modules]
    absent = _absent(place, wanted) if wanted else ()
    # What an app finds by a change of `sys.path` lies somewhere in its own tree.
    own = {part for path in files for part in (path.stem, *(folder.name for folder in path.parents))}
    return tuple(one for one in reached.modules if one.module in absent and one.module.partition(".")[0] not in own)


def _absent(place: CheckContext, modules: Collection[str]) -> Collection[str]:
    answer = checks.ask_program("find_modules", place, json.dumps(list(modules)))
    return frozenset(map(str, answer)) if isinstance(answer, list) else ()


def _told(missing: Sequence[ReachedImport]) -> str:
    first = ", ".join(f"{one.module} ({one.path}:{one.line})" for one in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return f"it imports at its start what no package of the lock brings: {first}{more}"


class _Tree(Mapping[PurePosixPath, bytes]):
    """The Python files of a folder, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths = frozenset(self._walk())

    def _walk(self) -> Iterator[PurePosixPath]:
        for root, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in names:
                if name.endswith(".py"):
                    yield PurePosixPath((Path(root) / name).relative_to(self._folder).as_posix())

    def __getitem__(self, path: PurePosixPath) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        return (self._folder / path).read_bytes()

    def __iter__(self) -> Iterator[PurePosixPath]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
