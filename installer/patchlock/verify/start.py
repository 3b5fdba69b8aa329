"""Prove that an app starts: its own command, alone and without a network, comes to its page, its help or a download."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from patchlock.model.app import Launch
from patchlock.model.backends import HIDDEN_DEVICES
from patchlock.model.byte_sizes import size_text
from patchlock.model.checks import CommandCheck, ImportsCheck, LoadsCheck, OwnCheck, SmokeImportCheck
from patchlock.model.errors import PatchlockError
from patchlock.model.models import Model, models_at, size_of, total_text
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport
from patchlock.verify import _supervisor, checks
from patchlock.verify.checks import CheckContext, CheckResult, ShownModules

ID = "start"
_STARTS = "starts"
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
    r"URLError|LocalEntryNotFound|Network is unreachable|name resolution|Name or service not known|"
    r"Cannot connect to host|gaierror|getaddrinfo|couldn't connect|\b(?:offline|download(?:s|ed|er|ing)?)\b"
)
"""How libraries say that they cannot download."""
_ADDRESS = re.compile(r"https?://[\w.-]+/[^\s'\")\],]+")
_RETRIED = re.compile(r"host='([^']+)'.*?with url: (/[^\s)]+)")
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)')
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Missing|NotFound\w*)\b.*")
_USAGE = re.compile(
    r"(?im)^(?:\x1b\[[\d;]*m|\W)*(?:usage\b|(?:options|synopsis|arguments|optional arguments)\W*$)|--help"
)
_LINE = 300
"""Characters of a last line that are told."""
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", "site-packages", ".venv", "venv"})


@dataclass(frozen=True, kw_only=True)
class StartProof:
    """How far an app has come, and what it has shown by that."""

    result: CheckResult
    check: CommandCheck | None = None
    """Of the app's own: what started it. It has passed, with `computed`, and need not run again."""
    computed: tuple[CheckResult, ...] = ()
    shown: ShownModules | None = None
    unverified: str = ""
    """Why nothing shows that it starts, a clause; "" where something does, and where it fails."""


@dataclass(frozen=True, kw_only=True)
class DeclaredModels:
    """What the catalogue says that an app downloads."""

    app: str
    models: tuple[Model, ...]
    """Of the profile."""


def prove(
    launch: Launch,
    place: CheckContext,
    back_end: str,
    wanted: Sequence[LoadsCheck | OwnCheck] = (),
    declared: DeclaredModels | None = None,
) -> StartProof:
    """Start the app, and say how far it comes.

    A program that serves a page is started as a person starts it. Any other does what a check of the app's own asks of
    it, or is asked for its help. Where its first download stops it, all that it imports until then has to be there too.

    Args:
        launch: how it is started.
        place: where.
        back_end: of the profile; for `cpu` every device is hidden.
        wanted: checks that will be run; a start may show what they ask.
        declared: the models that a first download may be of.
    """
    if launch.listens is None:
        program = _program(launch.command)
        for check in wanted:
            if isinstance(check, CommandCheck) and check.command[: len(program)] == program:
                proof = _by_check(check, launch, place, back_end, wanted)
                if proof is not None:
                    return proof
    result = _by_itself(launch, place, back_end, declared)
    return StartProof(result=result, unverified="" if result.level == _STARTS else result.detail)


def _by_check(
    check: CommandCheck, launch: Launch, place: CheckContext, back_end: str, wanted: Sequence[LoadsCheck | OwnCheck]
) -> StartProof | None:
    """Start the app with a check of its own; None where that does not pass without a network, a home and models."""
    try:
        answer = _start(check.command, launch, place, back_end, check=check, names=_modules(wanted))
    except PatchlockError:
        return None
    if isinstance(answer, str) or answer["taken"] or answer["ended"] != 0 or answer["stays"]:
        return None
    if check.prints not in answer["output"]:
        return None
    return StartProof(
        result=_result(
            f"`{' '.join(check.command)}` succeeds, after {answer['seconds']:.0f} s{_uncontained(answer)}", passed=True
        ),
        check=check,
        computed=(CheckResult(id=check.id, level="computes", passed=True, detail=checks.command_detail(check)),),
        shown=ShownModules(imported=frozenset(answer["imported"]), absent=frozenset(answer["absent"])),
    )


def _modules(wanted: Sequence[LoadsCheck | OwnCheck]) -> tuple[str, ...]:
    """Name the modules that checks ask about."""
    names: list[str] = []
    for check in wanted:
        match check:
            case ImportsCheck():
                names += [*check.present, *check.absent]
            case SmokeImportCheck():
                names += [*check.smoke.modules, *check.smoke.blocked]
            case _:
                pass
    return tuple(dict.fromkeys(names))


def _by_itself(launch: Launch, place: CheckContext, back_end: str, declared: DeclaredModels | None) -> CheckResult:
    command = launch.command if launch.listens is not None else (*_program(launch.command), *launch.help)
    try:
        answer = _start(command, launch, place, back_end)
        if isinstance(answer, str):
            return _result(answer, passed=False)
        result = _judge(command, launch, place, answer, declared)
    except PatchlockError as error:
        return _result(f"{' '.join(command)}: {error.what}", passed=False)
    return dataclasses.replace(result, detail=f"{result.detail}{_uncontained(answer)}")


def _uncontained(answer: Mapping[str, Any]) -> str:
    """Say what this system did not keep the program from; "" where it was contained."""
    could = answer.get("could", ())
    return f"; not contained: on this system it could {' and '.join(could)}" if could else ""


def _judge(
    command: Sequence[str],
    launch: Launch,
    place: CheckContext,
    answer: Mapping[str, Any],
    declared: DeclaredModels | None,
) -> CheckResult:
    port = launch.listens.port if launch.listens else 0
    if answer["taken"]:
        return _result(
            f"port {port} is another program's on this machine: end that one, then verify again", passed=False
        )
    after, words, output = f"after {answer['seconds']:.0f} s", " ".join(command), str(answer["output"])
    answers = answer["served"] or next((one for one in answer["elsewhere"] if _is_asked_for(one, launch, place)), None)
    if answers and answer["ended"] is None:
        return _result(f"it answers {_where(answers)}, {after}", passed=True)
    missing = missing_modules(launch, place)
    hosts = {_host_of(model, place) for model in declared.models} if declared is not None else set()
    model = _download(answer, output, hosts) if not answer["elsewhere"] else ""
    level = _STARTS
    if port == 0 and _is_help(answer):
        far = f"`{words}` succeeds"
    elif model:
        far = f"it comes to its first download, {model}"
    elif port == 0 and _ends_well(answer):
        level, far = "loads", f"`{words}` ends and shows no help, so that nothing has shown that the app starts"
    else:
        # A server's last line is that it was asked.
        last = failure(output, place.folder) if not answer["elsewhere"] or _TRACEBACK in output else ""
        told = [f"{words} {_how(answer, port)} {after}", *([last] if last else [])]
        return _result("; ".join([*told, *([import_graph.missing_text(missing)] if missing else [])]), passed=False)
    if missing:
        return _result(f"{import_graph.missing_text(missing)}; {far}", passed=False)
    whose = _declared(model, declared, output, place) if model and far.endswith(model) and declared is not None else ""
    if level != _STARTS:
        return CheckResult(id=ID, level=level, passed=True, detail=far)
    return _result(f"{far}, {after}{whose}", passed=True)


def _where(answers: Mapping[str, Any]) -> str:
    where = f"on port {answers['port']}" if isinstance(answers["port"], int) else f"on {answers['port']}"
    return f"{where} with status {answers['status']}" if answers["status"] else f"{where}, though not by HTTP"


def _is_asked_for(answers: Mapping[str, Any], launch: Launch, place: CheckContext) -> bool:
    """Tell whether a variable of the user's asks for the port on which it answers."""
    return any(
        name.upper().endswith("PORT") and value == str(answers["port"]) and launch.environment.get(name) != value
        for name, value in place.variables.items()
    )


def _is_help(answer: Mapping[str, Any]) -> bool:
    """Tell whether what it has printed and how it has ended shows that it understood to be asked for its help."""
    output = str(answer["output"])
    if _USAGE.search(output) is None or answer["stays"]:
        return False
    # Programs that read their arguments themselves say how they are used where they do not understand them, with 2.
    return answer["ended"] == 0 or (answer["ended"] == 2 and _TRACEBACK not in output)


def _ends_well(answer: Mapping[str, Any]) -> bool:
    output = str(answer["output"])
    return answer["ended"] == 0 and not answer["stays"] and bool(output.strip()) and _TRACEBACK not in output


def _how(answer: Mapping[str, Any], port: int) -> str:
    """Say what a program does that does not start; the time follows."""
    ended, limit = answer["ended"], answer["limit"]
    if limit == "memory":
        return f"has more memory than the {size_text(_supervisor.memory_limit())} that it may have, and is ended"
    if limit == "output":
        return "prints without end and does not answer, and is ended"
    if ended is None:
        if answer["elsewhere"]:
            elsewhere = ", ".join(map(_where, answer["elsewhere"]))
            return f"answers {elsewhere}, and not on port {port}, which [launch.listens] names,"
        if answer["failed"]:
            return f"answers {_where(answer['failed'])}, and goes on"
        if not answer.get("has_loopback", True):
            return "cannot be reached at 127.0.0.1 (bring the loopback interface up), and goes on"
        return "does not answer, and goes on"
    how = f"ends with exit code {ended}" if ended >= 0 else f"is ended by {_signal(-ended)}"
    if answer["served"]:
        return f"answers {_where(answer['served'])}, and then {how}"
    if answer["stays"] and ended == 0:
        return f"{how} and goes on in the background, where `patchlock run` could not end it,"
    if ended == 0 and not str(answer["output"]).strip():
        return f"{how}, has printed nothing and answered nothing,"
    return how


def _signal(number: int) -> str:
    return next((one.name for one in signal.Signals if one == number), f"signal {number}")


def _result(detail: str, *, passed: bool) -> CheckResult:
    return CheckResult(id=ID, level=_STARTS, passed=passed, detail=detail)


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


def _start(
    command: Sequence[str],
    launch: Launch,
    place: CheckContext,
    back_end: str,
    *,
    check: CommandCheck | None = None,
    names: Sequence[str] = (),
) -> dict[str, Any] | str:
    """Start it in a child that watches it; gives what the child says, or why there is none."""
    seconds, gigabytes = (check.timeout, check.memory_gb) if check is not None else (_SECONDS, 0)
    path = place.variables.get("PATH", os.defpath)
    program = shutil.which(command[0], path=path)
    if program is None:
        return f"{command[0]} is not in the environment: no package of the lock brings that program"
    with tempfile.TemporaryDirectory(prefix="patchlock-start-", ignore_cleanup_errors=True) as folder:
        home, written = Path(folder) / "home", Path(folder) / "written"
        home.mkdir()
        written.mkdir()
        wanted = {
            "command": [program, *command[1:]],
            "home": str(home),
            "written": str(written),
            "memory": _supervisor.memory_limit(gigabytes),
            "seconds": seconds,
            "quiet": _QUIET,
            "port": launch.listens.port if launch.listens else 0,
            "with_errors": check is None,
            "names": names,
        }
        variables = dict(place.variables) | (HIDDEN_DEVICES if back_end == "cpu" else {})
        answer: dict[str, Any] = checks.ask_program(
            *("contained_start", place, json.dumps(wanted)),
            variables=variables,
            seconds=seconds + _GRACE,
            memory_gb=gigabytes,
        )
        return answer


def _download(answer: Mapping[str, Any], output: str, hosts: Collection[str]) -> str:
    """Name the first download that stops a program; "" where something else has stopped it.

    Args:
        answer: of what has watched it.
        output: of the program.
        hosts: from which it is known to download.
    """
    asked = [str(one) for one in answer["asked"] if not _NO_MODELS.search(_host(str(one)))]
    if answer["stays"] or answer["limit"] in ("memory", "output"):
        return ""
    if answer["ended"] is None:
        stops = bool(_NETWORK.search(output)) or any(_host(one) in hosts for one in asked)
    else:
        last = _last_words(output)
        stops = bool(_NETWORK.search(last)) or any(_host(one) in last for one in asked)
    if not asked or not stops:
        return ""
    named = [f"https://{host}{rest}" for host, rest in _RETRIED.findall(output)]
    named += [one for one in _ADDRESS.findall(output) if any(_host(host) in one for host in asked)]
    return (named or [f"from {one}" for one in asked])[0]


def _declared(named: str, declared: DeclaredModels, output: str, place: CheckContext) -> str:
    """Say which model of the catalogue a download is of, as far as it is known."""
    address = named if "://" in named else f"https://{named.removeprefix('from ')}"
    hub = urlsplit(place.variables.get("HF_ENDPOINT", "")).netloc
    there = models_at(declared.models, address, hub)
    if not there:
        return f": no [[model]] of patches/{declared.app}/app.toml declares it"
    said = tuple(one for one in there if one.repository in output)
    is_certain = bool(urlsplit(address).path or said)
    found = said or there
    names = " and ".join(dict.fromkeys(one.repository for one in found))
    size = total_text(size_of(file for one in found for file in one.files))
    what = "it wants its model" if is_certain else "its models there are"
    return f": {what} {names}, {size}: patchlock models {declared.app} --fetch"


def _host_of(model: Model, place: CheckContext) -> str:
    hub = place.variables.get("HF_ENDPOINT", "") or "https://huggingface.co"
    return _host((hub if model.is_hub else model.repository).partition("://")[2])


def _host(asked: str) -> str:
    return asked.partition("/")[0].partition(":")[0]


def _last_words(output: str) -> str:
    """Give the last exception, with those that it came from; without one, the last line."""
    lines = output.splitlines()
    begun = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    if not begun:
        return next((line for line in reversed(lines) if line.strip()), "")
    first = len(begun) - 1
    while first and any(one in line for line in lines[begun[first - 1] : begun[first]] for one in _CHAINED):
        first -= 1
    return "\n".join(line for line in lines[begun[first] :] if not line.startswith(" "))


def failure(output: str, folder: Path) -> str:
    """Say what a program's last words are: the exception, and which line of the app's own has led to it."""
    lines = [line for line in output.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    begun = max((number for number, line in enumerate(lines) if _TRACEBACK in line), default=None)
    if begun is None and _RAISED.match(last):  # a script that cannot be parsed has no traceback
        begun = max((number for number, line in enumerate(lines) if _FRAME.match(line)), default=None)
    if begun is None:
        return _short(last)
    frames = [match.groups() for line in lines[begun:] if (match := _FRAME.match(line))]
    raised = next((line.strip() for line in lines[begun:] if _RAISED.match(line)), last)
    named = [(file, line) for file, line in frames if not file.startswith("<")]
    own = [(file, line) for file, line in named if not Path(file).is_absolute() or Path(file).is_relative_to(folder)]
    where = own or named
    if not where:
        return _short(raised)
    file, line = where[-1]
    short = Path(file).relative_to(folder).as_posix() if Path(file).is_relative_to(folder) else file
    return f"{short}:{line}: {_short(raised)}"


def _short(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


def missing_modules(launch: Launch, place: CheckContext) -> tuple[ReachedImport, ...]:
    """Name what a program imports as soon as it starts, and that is not in the environment."""
    files = _Tree(place.folder)
    python_path = launch.environment.get("PYTHONPATH", "")
    reached = import_graph.reached(files, launch.command, python_path)
    wanted = [one.module for one in reached.modules]
    absent = _absent(place, wanted) if wanted else ()
    missing = (one for one in reached.modules if one.module in absent)
    return import_graph.of_others(files, missing, launch.command, python_path)


def _absent(place: CheckContext, modules: Collection[str]) -> Collection[str]:
    answer = checks.ask_program("find_modules", place, json.dumps(list(modules)))
    return frozenset(map(str, answer)) if isinstance(answer, list) else ()


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
