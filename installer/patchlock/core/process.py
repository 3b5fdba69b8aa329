"""Run programs: the only place that starts one. Always a list, never a shell; stdin closed; environment explicit."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchlock.model.errors import CommandFailedError, DiskFullError, PatchlockError, ProgramMissingError

_NOT_INHERITED = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONEXECUTABLE", "PYTHONPLATLIBDIR"),
    # They change what `sys.path` begins with, or what a program does: an app is started as its authors start it.
    *("PYTHONSAFEPATH", "PYTHONOPTIMIZE", "PYTHONINSPECT", "PYTHONCASEOK", "PYTHONBREAKPOINT"),
    # macOS tells the Python of a virtual environment with it where it is.
    *("__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PIPENV_ACTIVE", "POETRY_ACTIVE"),
    # Where pip would put things instead of the environment that it runs in.
    *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_BREAK_SYSTEM_PACKAGES"),
    *("PATCHLOCK_GATE", "PATCHLOCK_PRELOAD"),
)
_FOREIGN = ("CONDA_", "_CE_")
"""Beginnings of the names of variables that belong to an activated conda environment."""
# `git rev-parse --local-env-vars`, but for GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS: these hold the user's settings.
_GIT_NOT_INHERITED = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_CONFIG"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE"),
    *(
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_NAMESPACE",
    ),
)

_GRACE = 0.2
"""Seconds for the last words of a program that has ended."""
_PATIENCE = 5.0
"""Seconds for a program that has closed its pipes to end."""
_TAIL = 4096
"""Bytes in which its last lines are looked for."""
_NO_SPACE = ("No space left on device", "not enough space on the disk", "os error 28", "os error 112")
_FULL = 1 << 20
"""Bytes free below which a program that fails is taken to have failed for want of room; git does not always say so."""

_GET = {
    "git": {
        "linux": "sudo apt-get install git",
        "darwin": "xcode-select --install",
        "win32": "winget install --id Git.Git",
    },
}


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A program that ended with exit code 0, or with one that the caller allowed."""

    returncode: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Standard output as text, without its trailing newline."""
        return self.stdout.decode("utf-8", errors="replace").rstrip("\r\n")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make the environment for a child: the user's, without what would let other Pythons or clones leak in.

    Args:
        extra: variables that win over the user's.
    """
    left_out = {*_NOT_INHERITED, *_GIT_NOT_INHERITED}
    env = {k: v for k, v in os.environ.items() if k not in left_out and not k.startswith(_FOREIGN)}
    env |= {"PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1"}
    return env | dict(extra or {})


def run(
    *argv: str,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float | None = None,
    allowed: Sequence[int] = (0,),
    keep_open: Sequence[int] = (),
) -> Completed:
    """Run a program to its end.

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        stdin: all of its standard input.
        timeout: seconds; None waits for ever.
        allowed: exit codes that are not a failure.
        keep_open: file descriptors that the child inherits (the installation's lock).

    Raises:
        ProgramMissingError: the program is not installed.
        DiskFullError: the program said so, or there is next to no room left in its working folder.
        CommandFailedError: it ended otherwise than allowed, or not in time; carries its last lines.
    """
    program = _program(argv, env)
    command = [program, *argv[1:]]
    try:
        if sys.platform == "win32":
            done = _into_files(command, env, cwd, stdin, timeout)
        else:
            done = subprocess.run(
                command,
                cwd=cwd,
                env=dict(env),
                input=stdin,
                capture_output=True,
                timeout=timeout,
                check=False,
                pass_fds=tuple(keep_open),
            )
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(
            f"{Path(argv[0]).name} did not end within {timeout:g} seconds", where=shlex.join(argv)
        ) from error
    completed = Completed(
        returncode=done.returncode, stdout=done.stdout, stderr=done.stderr.decode("utf-8", errors="replace")
    )
    if done.returncode in allowed:
        return completed
    raise failure(argv, completed, cwd)


def _program(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Find a program, and write its command into the record that -v and --log-file ask for."""
    program = shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        raise missing_program_error(argv[0])
    if (logging := sys.modules.get("logging")) is not None:  # whoever asks for the record has imported it
        logging.getLogger("patchlock").debug("$ %s", shlex.join(argv))
    return program


def _into_files(
    command: Sequence[str], env: Mapping[str, str], cwd: Path | None, stdin: bytes, timeout: float | None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program whose output goes to files; nobody whom it leaves behind is waited for.

    On Windows `subprocess.run` reads pipes until the last process that inherited them has ended, even when the time is
    over: https://github.com/python/cpython/issues/75628. What does not end in time is killed with what it has started.
    """
    import tempfile  # which takes a while to import

    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=output, stderr=errors)
        try:
            child.communicate(stdin, timeout)
        except BaseException:
            kill(child.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, child.returncode, output.read(), errors.read())


def run_untrusted(*argv: str, env: Mapping[str, str], timeout: float, limit: int = 1_000_000) -> Completed:
    """Ask a program that nobody has to trust: it may hang, print without end, or leave others behind.

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        timeout: seconds; then it and (POSIX) what it has started are killed.
        limit: bytes of standard output, after which it is no answer any more; standard error is dropped.

    Returns:
        What it printed until it ended, whatever its children still hold open, and its exit code; negative: a signal.

    Raises:
        ProgramMissingError: the program is not installed.
        CommandFailedError: it could not be started, did not end in time, or printed too much.
    """
    program = _program(argv, env)
    try:
        child = subprocess.Popen(
            [program, *argv[1:]],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandFailedError(f"{Path(argv[0]).name} cannot be started: {error.strerror}") from error
    said = bytearray()
    reader = threading.Thread(target=_drain, args=(child.stdout, said, limit), daemon=True)
    reader.start()
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(
            f"{Path(argv[0]).name} did not end within {timeout:g} seconds", where=shlex.join(argv)
        ) from error
    finally:
        reader.join(_GRACE)  # its last words; who else holds the pipe is not waited for
        _end(child)
        reader.join(_GRACE)
    if len(said) >= limit:
        raise CommandFailedError(f"{Path(argv[0]).name} printed {limit} bytes and more", where=shlex.join(argv))
    return Completed(returncode=child.returncode, stdout=bytes(said), stderr="")


@dataclass(frozen=True, kw_only=True)
class Running:
    """A process of this user."""

    number: int
    parent: int
    words: list[str]
    """Its program and arguments."""
    variables: Mapping[str, str]
    """That it was started with; none where the system does not say."""


def running() -> Iterator[Running]:
    """List this user's processes; none on Windows."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is of another user
            words = _zero_ended(folder / "cmdline")
            pairs = (one.partition("=") for one in _zero_ended(folder / "environ"))
            if words[0]:  # else it is one of the kernel
                yield Running(
                    number=int(folder.name),
                    parent=int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]),
                    words=words,
                    variables={name: value for name, _, value in pairs},
                )
    if sys.platform == "darwin":  # has no /proc
        told = run_untrusted("ps", "-xo", "pid=,ppid=,args=", env=environment(), timeout=10)
        for line in told.text.splitlines():
            number, parent, *words = line.split()
            yield Running(number=int(number), parent=int(parent), words=words, variables={})


def _zero_ended(file: Path) -> list[str]:
    return os.fsdecode(file.read_bytes()).rstrip("\0").split("\0")


def _drain(stream: IO[bytes], said: bytearray, limit: int) -> None:
    with stream:
        while len(said) < limit and (chunk := os.read(stream.fileno(), 65_536)):
            said += chunk


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and its session; that nothing is left is no error."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # a driver that hangs in the kernel holds even a killed one
        child.wait(_GRACE)


def watch(
    *argv: str,
    env: Mapping[str, str],
    cwd: Path,
    tell: Callable[[str], None],
    keep_open: Sequence[int] = (),
    with_output: bool = False,
) -> None:
    """Run a program to its end and hand on each line of its standard error as it comes.

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        tell: called with each line, without its end.
        keep_open: file descriptors that the child inherits (the installation's lock).
        with_output: hand on its standard output as well, which is dropped otherwise.

    Raises:
        ProgramMissingError: the program is not installed.
        DiskFullError: the program said so.
        CommandFailedError: it ended with another exit code than 0; carries its last lines.
    """
    program = _program(argv, env)
    extra = {"pass_fds": tuple(keep_open)} if os.name == "posix" else {}
    lines: list[str] = []
    with (
        subprocess.Popen(  # type: ignore[call-overload]
            [program, *argv[1:]],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if with_output else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if with_output else subprocess.PIPE,
            **extra,
        ) as child
    ):
        try:
            for raw in child.stdout if with_output else child.stderr:
                lines.append(raw.decode("utf-8", errors="replace").rstrip())
                tell(lines[-1])
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise failure(argv, Completed(returncode=child.returncode, stdout=b"", stderr="\n".join(lines)))


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a program ended by itself."""

    how: str
    """Without a subject: `failed with exit code 1`, `was ended by SIGKILL`, `ended without an answer`."""
    lines: tuple[str, ...]
    """The last ones on standard error."""


class Dialogue:
    """A program of ours that answers each line of its standard input by a line of its standard output."""

    def __init__(self, *argv: str, env: Mapping[str, str], cwd: Path) -> None:
        """Start it; it ends with this process, or with `end`.

        Args:
            argv: the program, by its full path, and its arguments.
            env: the whole environment of the child.
            cwd: its working folder.
        """
        import tempfile

        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(argv, env=dict(env), cwd=cwd, stdin=pipe, stdout=pipe, stderr=self._errors)
        self.ending: Ending | None = None
        """How it ended by itself; None while it runs, and where it was ended."""
        self._turn = threading.Lock()
        atexit.register(self.end)

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Ask, and wait for the answer; one caller at a time.

        Args:
            line: the question, without its end.
            timeout: seconds.

        Returns:
            The answer; empty where the program ended, or did not answer in time, and was ended: it is of no use then.
        """
        said: list[bytes] = []
        with self._turn:
            thread = threading.Thread(target=self._talk, args=(line, said), daemon=True)
            thread.start()
            thread.join(timeout)
            if said and said[0].endswith(b"\n"):
                return said[0]
            if not thread.is_alive():  # it has closed its pipes
                self._note_ending()
            self.end()
            thread.join(_GRACE)
            return b""

    def end(self) -> None:
        """End the program; nothing happens where it has ended."""
        atexit.unregister(self.end)
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(OSError):  # of what it did not read
                    stream.close()

    def _note_ending(self) -> None:
        if self.ending is None and not self._errors.closed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_PATIENCE)
                length = self._errors.seek(0, os.SEEK_END)
                self._errors.seek(max(length - _TAIL, 0))
                lines = self._errors.read().decode(errors="replace").strip().splitlines()
                how = _ending(self._child.returncode) if self._child.returncode else "ended without an answer"
                self.ending = Ending(how=how, lines=tuple(lines))

    def _talk(self, line: bytes, said: list[bytes]) -> None:
        if self._child.stdin is not None and self._child.stdout is not None:
            with contextlib.suppress(OSError, ValueError):  # it has ended
                self._child.stdin.write(line + b"\n")
                self._child.stdin.flush()
                said.append(self._child.stdout.readline())


def exec_program(*argv: str, env: Mapping[str, str], cwd: Path) -> int:
    """Become a program (POSIX), or run it in this terminal to its end (Windows).

    Returns:
        The exit code, where this process still exists.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    program = _program(argv, env)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.chdir(cwd)
        os.execve(program, [program, *argv[1:]], dict(env))  # noqa: S606 - the user's own app, by its full path
    return subprocess.call([program, *argv[1:]], env=dict(env), cwd=cwd)


def run_in_terminal(*argv: str, env: Mapping[str, str]) -> int:
    """Run a program in this terminal to its end; Ctrl-C is for it, and this process goes on.

    Returns:
        Its exit code; 128 and the number of the signal that has ended it.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    command = [_program(argv, env), *argv[1:]]
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)  # which, unlike SIG_IGN, the program does not inherit
    try:
        code = subprocess.Popen(command, env=dict(env)).wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def start(
    *argv: str,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    errors: Path | None = None,
    with_input: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a service whose output goes to a file; the caller ends it, with `kill`.

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        log: the file for what it prints.
        errors: the file for its standard error; None: the same.
        with_input: it is given a pipe as its standard input, which is closed otherwise.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    program = _program(argv, env)
    with log.open("wb") as output, contextlib.ExitStack() as files:
        return subprocess.Popen(
            [program, *argv[1:]],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
            stdout=output,
            stderr=output if errors is None else files.enter_context(errors.open("wb")),
            start_new_session=True,
        )


def start_group(
    *argv: str, env: Mapping[str, str], cwd: Path, keep_open: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a program in this terminal, as the leader of its own process group, which may not read from it (POSIX).

    Args:
        argv: the program and its arguments.
        env: the whole environment of the child.
        cwd: its working folder.
        keep_open: file descriptors that the child inherits.

    Raises:
        ProgramMissingError: the program is not installed.
    """
    program = _program(argv, env)
    command = [program, *argv[1:]]
    if sys.platform == "win32":
        return subprocess.Popen(command, env=dict(env), cwd=cwd)
    return subprocess.Popen(
        command, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, process_group=0, pass_fds=tuple(keep_open)
    )


def kill(number: int) -> None:
    """Kill a process that leads a process group, with all of the group (POSIX), or with all that it started (Windows).

    Nothing is waited for: a process that is stuck in a driver stays until the driver lets it go.

    Args:
        number: of the process; a child of ours that was not waited for, so that the number is its own still.
    """
    if sys.platform == "win32":
        taskkill = shutil.which("taskkill")
        if taskkill is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [taskkill, "/T", "/F", "/PID", str(number)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=20,
                    check=False,
                )
        with contextlib.suppress(OSError):  # TerminateProcess, where taskkill is missing or knows no /T
            os.kill(number, signal.SIGTERM)
        return
    for send in (os.killpg, os.kill):  # the group may not be there yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(number, signal.SIGKILL)


def kill_left(number: int) -> None:
    """Kill what a process that has ended left in its process group (POSIX)."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(number, signal.SIGKILL)


def missing_program_error(program: str) -> ProgramMissingError:
    """Say that a program is not installed, and how to get it here."""
    name = Path(program).name
    command = _GET.get(name, {}).get(sys.platform, "")
    remedy = f"install it: `{command}`" if command else "install it and make sure that it is on PATH"
    return ProgramMissingError(f"{name} is not installed", remedy=remedy)


def failure(argv: Sequence[str], completed: Completed, folder: Path | None = None) -> PatchlockError:
    """Turn a failed program into an error with its last lines.

    Args:
        argv: the program and its arguments.
        completed: how it ended.
        folder: where it was writing, if that is known.
    """
    output = completed.stderr.strip() or completed.text.strip()
    last = [line for line in output.splitlines() if not line.startswith("DEBUG ")][-12:]
    name = Path(argv[0]).name
    if any(text in output for text in _NO_SPACE) or (folder and _is_full(folder)):
        return DiskFullError(
            f"the disk is full while {name} was writing",
            where=last[-1].strip() if last else str(folder),
            remedy="free some room and run the same command again",
        )
    return CommandFailedError(f"{name} {_ending(completed.returncode)}", where=shlex.join(argv), evidence=last)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _FULL
    except OSError:  # it is gone
        return False


def _ending(code: int) -> str:
    if code >= 0:
        return f"failed with exit code {code}"
    return "was ended by " + next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
