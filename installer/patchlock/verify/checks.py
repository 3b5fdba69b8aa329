"""Prove that an environment works: packages as locked, modules load, the app computes; each in a child process."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from patchlock.core import process
from patchlock.environments import preloads
from patchlock.environments.generations import read_receipt
from patchlock.environments.installed import distributions, site_packages
from patchlock.environments.venv import bytecode, interpreter, python_version
from patchlock.model import kernel_results
from patchlock.model.checks import (
    CommandCheck,
    ImportsCheck,
    LoadsCheck,
    OwnCheck,
    PythonCheck,
    ServesCheck,
    SmokeImport,
    SmokeImportCheck,
)
from patchlock.model.errors import CommandFailedError, PatchlockError, VerifyError
from patchlock.model.lockfile import Lock
from patchlock.verify import _supervisor
from patchlock.verify._smoke_import import failures
from patchlock.verify._task_runner import ProcessContext

_PATIENCE = 900
"""Seconds for a check of ours: a first import reads gigabytes from a slow disk and compiles for a minute."""


LEVELS = ("present", "loads", "starts", "computes")
"""What a check can prove, from the least on."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What one check found."""

    id: str
    level: str
    """What was proved, or would have been, of `LEVELS`."""
    passed: bool
    detail: str
    """The evidence, or what is wrong."""


@dataclass(frozen=True, kw_only=True)
class CheckContext:
    """Where checks run."""

    environment: Path
    """The virtual environment."""
    folder: Path
    """The app's folder in the working tree."""
    variables: Mapping[str, str]
    """The whole environment of each child."""


def check_environment(lock: Lock, place: CheckContext) -> tuple[CheckResult, ...]:
    """Look whether the environment is what was installed, and whether the app sees nothing else."""
    return (packages(lock, place.environment), isolation(place), *_overlays(place.environment))


@dataclass(frozen=True, kw_only=True)
class ShownModules:
    """What the app's program has shown about modules by running."""

    imported: Collection[str] = ()
    """Dotted names of those that it has imported."""
    absent: Collection[str] = ()
    """Top-level names that its environment and its folder do not have."""


def run(
    checks: Iterable[LoadsCheck | OwnCheck],
    place: CheckContext,
    tell: Callable[[str], None],
    shown: ShownModules | None = None,
) -> tuple[CheckResult, ...]:
    """Run checks; a failed one does not stop the others.

    Args:
        checks: of the profile and of the app.
        place: where they run.
        tell: called with the id of each check before it runs.
        shown: what need not be imported again to be known to load.
    """
    results = []
    for check in checks:
        tell(check.id)
        results.append(_loaded(check, shown or ShownModules()) or _run(check, place))
    return tuple(results)


def require_passed(results: tuple[CheckResult, ...], app: str) -> None:
    """Refuse an environment in which a check failed.

    Raises:
        VerifyError: names every failed check with its evidence.
    """
    failed = [result for result in results if not result.passed]
    if failed:
        raise VerifyError(
            f"{len(failed)} of {len(results)} checks of {app} did not pass",
            remedy="nothing was switched to it; correct the cause and run the same command again",
            evidence=(f"{r.id} ({r.level}): {r.detail}" for r in failed),
        )


def _loaded(check: LoadsCheck | OwnCheck, shown: ShownModules) -> CheckResult | None:
    """Give the result of a check of which the app's program has shown all by running; None for any other."""
    match check:
        case ImportsCheck(present=present, absent=absent):
            detail = _import_detail(check)
        case SmokeImportCheck(smoke=SmokeImport(modules=present, blocked=absent)):
            detail = _smoke_detail(check)
        case _:
            return None
    if not ({*present} <= {*shown.imported} and {*absent} <= {*shown.absent}):
        return None
    return CheckResult(id=check.id, level="loads", passed=True, detail=detail)


def _run(check: LoadsCheck | OwnCheck, place: CheckContext) -> CheckResult:
    try:
        match check:
            case ImportsCheck():
                return _imports(check, place)
            case CommandCheck():
                result = _command(check, place)
                return dataclasses.replace(result, detail=command_detail(check)) if result.passed else result
            case PythonCheck(id=id_, prints=prints, timeout=timeout, memory_gb=gb):
                command = (str(interpreter(place.environment)), "-c", check.code)
                own = CommandCheck(id=id_, command=command, prints=prints, timeout=timeout, memory_gb=gb)
                return _command(own, place)
            case ServesCheck():
                return _serves(check, place)
            case SmokeImportCheck():
                return _smoke_import(check, place)
            case _:
                assert_never(check)
    except PatchlockError as error:
        level = "loads" if isinstance(check, ImportsCheck | SmokeImportCheck) else "computes"
        last = f": {error.evidence[-1].strip()}" if error.evidence else ""
        return CheckResult(id=check.id, level=level, passed=False, detail=f"{error.what}{last}")


def packages(lock: Lock, environment: Path) -> CheckResult:
    """Compare the installed distributions with the lock, by their metadata folders."""
    installed = {found.name: found.version for found in distributions(site_packages(environment))}
    wanted = {package.name: package.version for package in lock.packages}
    wrong = [f"{name} {version} is missing" for name, version in wanted.items() if name not in installed]
    wrong += [f"{name} {version} is not in the lock" for name, version in installed.items() if name not in wanted]
    wrong += [
        f"{name} is {installed[name]}, the lock says {version}"
        for name, version in wanted.items()
        if name in installed and installed[name] != version
    ]
    detail = "; ".join(sorted(wrong)) or f"{len(wanted)} packages, as locked"
    return CheckResult(id="packages", level="present", passed=not wrong, detail=detail)


def _overlays(environment: Path) -> Iterator[CheckResult]:
    """Compare the libraries that are loaded before the app's own with what was installed, where there are any."""
    receipt = read_receipt(environment)
    expected = preloads.archives(environment) if receipt is None else receipt.overlays
    wrong = preloads.problems(environment, expected)
    if expected or wrong:
        detail = "; ".join(wrong) or f"{', '.join(expected)}: every file as installed"
        yield CheckResult(id="overlays", level="present", passed=not wrong, detail=detail)


def isolation(place: CheckContext) -> CheckResult:
    """Prove that the app's Python is the environment's, and sees no other Python's packages.

    It is started as the app is: by its name on PATH, in the app's folder, with all variables.
    """
    wanted = {
        "environment": str(place.environment),
        "folder": str(place.folder),
        "python": python_version(place.environment),
        "ours": [name for name, value in place.variables.items() if os.environ.get(name) != value],
    }
    try:
        with own_program("isolation") as script:
            start = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
            command = ("python", "-B", "-c", start, str(script), json.dumps(wanted))
            done = process.run(*command, env=place.variables, cwd=place.folder, timeout=_PATIENCE)
        answer: dict[str, Any] = json.loads(done.text.splitlines()[-1])
    except (PatchlockError, OSError, IndexError, ValueError) as error:
        why = error.what if isinstance(error, PatchlockError) else str(error)
        return CheckResult(id="isolation", level="present", passed=False, detail=f"Python cannot be asked: {why}")
    told = [*answer["failed"], *(f"note: {note}" for note in answer["notes"])]
    passed = not answer["failed"]
    detail = "; ".join(told) if told else "only the environment, the app's folder and the standard library"
    return CheckResult(id="isolation", level="present", passed=passed, detail=detail)


def own_program(name: str) -> contextlib.AbstractContextManager[Path]:
    """Give the file of a program of `_children`."""
    import importlib.resources

    return importlib.resources.as_file(importlib.resources.files("patchlock.verify._children") / f"{name}.py")


def _imports(check: ImportsCheck, place: CheckContext) -> CheckResult:
    failed = ask_program("imports", place, json.dumps(check.present), json.dumps(check.absent))["failed"]
    detail = "; ".join(failed) or _import_detail(check)
    return CheckResult(id=check.id, level="loads", passed=not failed, detail=detail)


def _import_detail(check: ImportsCheck) -> str:
    return ", ".join([*check.present, *(f"no {name}" for name in check.absent)])


def _smoke_import(check: SmokeImportCheck, place: CheckContext) -> CheckResult:
    failed = failures(check.smoke, interpreter(place.environment), place.folder, place.variables)
    return CheckResult(id=check.id, level="loads", passed=not failed, detail="; ".join(failed) or _smoke_detail(check))


def _smoke_detail(check: SmokeImportCheck) -> str:
    without = f" without {', '.join(check.smoke.blocked)}" if check.smoke.blocked else ""
    return f"{', '.join(check.smoke.modules)}{without}"


def command_detail(check: CommandCheck) -> str:
    """Say what a command has done that passed."""
    return f"`{' '.join(check.command)}` " + (f'prints "{check.prints}"' if check.prints else "succeeds")


def _command(check: CommandCheck, place: CheckContext) -> CheckResult:
    memory = _supervisor.memory_limit(check.memory_gb)
    with _supervisor.start_program(*check.command, env=place.variables, cwd=place.folder, memory=memory) as program:
        failed = kernel_results.failure(program.wait(check.timeout))
        text = program.output.rstrip()
    if failed is not None:
        detail = f"{failed[0].value}: {failed[1]}"
        return CheckResult(id=check.id, level="computes", passed=False, detail=detail)
    passed = check.prints in text
    last = text.splitlines()[-1] if text else "it printed nothing"
    detail = last if passed else f'its output does not have "{check.prints}"; its last line is: {last}'
    return CheckResult(id=check.id, level="computes", passed=passed, detail=detail)


def _serves(check: ServesCheck, place: CheckContext) -> CheckResult:
    port = _free_port()
    command = tuple(word.replace("{port}", str(port)) for word in check.command)
    memory = _supervisor.memory_limit(check.memory_gb)
    with _supervisor.start_program(*command, env=place.variables, cwd=place.folder, memory=memory) as service:
        answer = _ask(service, port, check)
        last = (service.output + service.errors).strip().splitlines()[-3:]
    if isinstance(answer, str):
        passed = check.prints in answer
        detail = f"GET {check.path} on 127.0.0.1:{port} answers {_in_words(answer)[:120]}"
        return CheckResult(id=check.id, level="loads", passed=passed, detail=detail)
    detail = f"GET {check.path} {answer.why}" + (f"; its last lines: {' | '.join(last)}" if last else "")
    return CheckResult(id=check.id, level="loads", passed=False, detail=detail)


def _in_words(answer: str) -> str:
    """Write an answer in one line that can be broken between words, JSON too."""
    with contextlib.suppress(ValueError):
        answer = json.dumps(json.loads(answer), ensure_ascii=False)
    return " ".join(answer.split())


@dataclass(frozen=True, kw_only=True)
class _Silence:
    why: str


def _ask(service: _supervisor.SupervisedProgram, port: int, check: ServesCheck) -> str | _Silence:
    """Ask the service until it answers with 200 or its time is up; loopback only."""
    import http.client

    deadline = time.monotonic() + check.timeout
    last = "did not answer"
    while time.monotonic() < deadline:
        if service.has_ended():
            ended = dataclasses.replace(service.ended(), log=())
            failed = kernel_results.failure(ended)
            how = f"{failed[0].value}: {failed[1]}" if failed else "the service ended with exit code 0"
            return _Silence(why=f"was not answered: {how}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with contextlib.closing(connection):
                connection.request("GET", check.path)
                answer = connection.getresponse()
                text = answer.read().decode("utf-8", errors="replace")
            if answer.status == http.HTTPStatus.OK:
                return text
            last = f"answers with status {answer.status}"
        except (ConnectionError, TimeoutError, http.client.HTTPException):
            pass
        except OSError as error:
            why = f"cannot reach 127.0.0.1 ({(error.strerror or str(error)).lower()}): bring the loopback interface up"
            return _Silence(why=why)
        time.sleep(0.1)
    return _Silence(why=f"{last} within {check.timeout} seconds")


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def process_context(place: CheckContext) -> ProcessContext:
    """Say what programs of ours run with in an environment."""
    # Compiling torch and what stands on it takes a minute; the app's first start is spared it.
    options = ("-I", "-X", f"pycache_prefix={bytecode(place.environment)}", "-X", "utf8")
    python = interpreter(place.environment)
    return ProcessContext(python=python, options=options, folder=place.folder, variables=place.variables)


def ask_program(
    name: str,
    place: CheckContext,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    seconds: float = _PATIENCE,
    memory_gb: int = 0,
) -> Any:
    """Run one of our programs in the environment and read its answer, the JSON of the last line that it prints.

    Args:
        name: of a program of `_children`.
        place: where.
        arguments: of the program.
        variables: the whole environment of the child, where it is another one than the app's.
        seconds: that it may take.
        memory_gb: see `_supervisor.memory_limit`.

    Raises:
        CommandFailedError: it ends in any other way, or gives no answer.
        ProgramMissingError: the environment's own Python is not there.
    """
    ours = process_context(place)
    memory = _supervisor.memory_limit(memory_gb)
    env = variables or ours.variables
    with own_program(name) as script:
        command = (str(ours.python), *ours.options, str(script), *arguments)
        with _supervisor.start_program(*command, env=env, cwd=ours.folder, memory=memory) as program:
            failed = kernel_results.failure(program.wait(seconds))
            text = program.output.rstrip()
    if failed is not None:
        raise CommandFailedError(f"{failed[0].value}: {failed[1]}")
    try:
        return json.loads(text.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise CommandFailedError(f"{name} printed no answer", where=text[-200:]) from error
