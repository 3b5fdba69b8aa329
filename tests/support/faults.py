"""Kill a command, or let its calls fail, at its n-th writing event; run by a server that forks, which is quicker.

Two ways to count. `hook` is portable: an audit hook in patchlock's own process sees every file that it opens for writing,
renames, removes or syncs, and every program that it starts. `shim` needs a C compiler on Linux: `faults.c`, preloaded,
sees the writing calls of patchlock, git, uv and the app's Python together, one by one.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import errno
import functools
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

SUPPORT = Path(__file__).parent
KILL_GROUP, KILL_ALONE, FAIL = 1, 2, 3
_STATE = struct.Struct("@iilliiii480s")
_ACTIONS = {"kill": KILL_GROUP, "kill-alone": KILL_ALONE}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate"),
    "subprocess.Popen",
}
_CONNECTIONS = {"socket.connect"}
_NEVER_FULL = {"os.remove", "os.rmdir", "os.chmod", "subprocess.Popen"}
"""Events that a full disk does not stop."""
_HUNG = 600.0
"""Seconds after which a command has hung: a build takes more than two minutes where twenty programs share two cores."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """What happens at an event: a kill (of the process group, or of patchlock alone), or an error of the system."""

    what: str
    """`kill`, `kill-alone`, or the name of an errno, such as `ENOSPC`."""
    at: int
    """Which event, from 1; or 0 for the first that `match` is in."""
    lasting: bool = False
    """Every later event fails too, as on a disk that stays full."""
    match: str = ""
    """A part of a path, for the hook alone."""


@dataclasses.dataclass(frozen=True)
class Done:
    """A command that has ended, or was killed."""

    words: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    events: int
    """Writing events that were counted."""
    struck: str
    """The event at which the fault came, or "" where there were fewer."""


class Server:
    """Runs command lines of patchlock, each in a process of its own, in a folder of its own."""

    def __init__(self, folder: Path, *, shim: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._state = folder / "state"
        self._state.write_bytes(bytes(_STATE.size))
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPATH"] = os.pathsep.join([str(SUPPORT.parent.parent / "installer"), str(SUPPORT)])
        env["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "patchlock-tests-bytecode")
        if shim is not None:
            env |= {"LD_PRELOAD": str(shim), "FAULTS_STATE": str(self._state)}
        self._inherited = {name: env[name] for name in ("LD_PRELOAD", "FAULTS_STATE") if name in env}
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "faults.py"), str(self._state)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        *words: str,
        env: Mapping[str, str],
        folder: Path | None = None,
        fault: Fault | None = None,
        hook: bool = False,
    ) -> Done:
        """Run a command line to its end.

        Args:
            words: as after `patchlock`.
            env: the whole environment.
            folder: where; by default the server's own.
            fault: what happens to it.
            hook: count by the audit hook, not by the shim.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            "words": words,
            "env": {**env, **self._inherited},
            "folder": str(folder or self._folder),
            "output": str(self._folder),
            "fault": dataclasses.asdict(fault) if fault else None,
            "hook": hook,
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        out, err = ((self._folder / name).read_text("utf-8", errors="replace") for name in ("stdout", "stderr"))
        return Done(words, answer["returncode"], out, err, answer["events"], answer["struck"])

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@contextlib.contextmanager
def serving(folder: Path, *, shim: Path | None = None) -> Iterator[Server]:
    """Start a server, and end it."""
    server = Server(folder, shim=shim)
    try:
        yield server
    finally:
        server.close()


@functools.cache
def shared_server() -> Server:
    """Start the server of a process's tests, which ends with them: it outlives folders and variables of the first."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(serving(Path(stack.enter_context(tempfile.TemporaryDirectory()))))


def build_shim(folder: Path) -> Path | None:
    """Compile the shim; None where there is no C compiler for Linux."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return None
    made = folder / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(made), str(SUPPORT / "faults.c"), "-ldl"]
    return made if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


# --- in the server ----------------------------------------------------------------------------------------------------


def _serve(state: Path) -> None:
    import gc
    import importlib
    import pkgutil

    import patchlock
    from patchlock.core import code_digest

    for module in pkgutil.walk_packages(patchlock.__path__, "patchlock."):
        if "._children" not in module.name and module.name != "patchlock.__main__":
            importlib.import_module(module.name)
    for name in ("libcst.matchers", "requests", "rich.live", "rich.progress", "tomlkit"):
        importlib.import_module(name)
    code_digest.digest()  # which is kept, as in every process of this code
    gc.freeze()
    with state.open("r+b") as file, mmap.mmap(file.fileno(), _STATE.size) as memory:
        for line in sys.stdin:
            order = json.loads(line)
            memory[:] = bytes(_STATE.size)
            child = os.fork()
            if child == 0:
                _run(order, memory)
            status = _wait(child)
            _, _, events, _, _, _, _, _, what = _STATE.unpack(memory[:])
            memory[:4] = b"\0\0\0\0"  # not armed
            with contextlib.suppress(ProcessLookupError):
                if status < 0 and (order["fault"] or {}).get("what") == "kill":
                    os.killpg(child, signal.SIGKILL)
            answer = {"returncode": status, "events": events, "struck": what.rstrip(b"\0").decode(errors="replace")}
            print(json.dumps(answer), flush=True)


def _wait(child: int) -> int:
    deadline = time.monotonic() + _HUNG
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.004)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -999


def _run(order: dict[str, object], memory: mmap.mmap) -> None:
    os.setsid()
    output = Path(str(order["output"]))
    for target, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(output / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, target)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    env = order["env"]
    assert isinstance(env, dict)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(str(order["folder"]))
    tempfile.tempdir = None
    from patchlock.cli import main

    fault = Fault(**order["fault"]) if isinstance(order["fault"], dict) else None
    arm(memory, fault, hook=bool(order["hook"]))
    code = main([str(word) for word in order["words"]])  # type: ignore[attr-defined]
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def arm(memory: mmap.mmap, fault: Fault | None, *, hook: bool) -> None:
    """Begin to count in this process, and to strike."""
    action = _ACTIONS.get(fault.what, FAIL) if fault else 0
    error = getattr(errno, fault.what) if fault and action == FAIL else 0
    lasting = bool(fault and fault.lasting)
    armed = not hook
    memory[:] = _STATE.pack(armed, action, 0, fault.at if fault else 0, error, lasting, 0, os.getpid(), b"")
    if hook:
        _Hook(memory, fault, action, error).install()


class _Hook:
    """Counts what this process does, by its audit events."""

    def __init__(self, memory: mmap.mmap, fault: Fault | None, action: int, error: int) -> None:
        self._memory, self._fault, self._action, self._error = memory, fault, action, error
        self._count = 0
        self._owner = os.getpid()

    def install(self) -> None:
        really = os.fsync

        def fsync(file: int) -> None:
            self._strike("os.fsync", "")
            really(file)

        os.fsync = fsync
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[object, ...]) -> None:
        is_cut = self._fault is not None and self._fault.what == "ECONNRESET"
        if event in (_CONNECTIONS if is_cut else _EVENTS):
            self._strike(event, str(arguments[0]))
        elif event == "open" and not is_cut:
            path, _, flags = arguments
            is_file = not isinstance(path, int) and str(path) != os.devnull
            if is_file and isinstance(flags, int) and flags & _WRITES:
                self._strike("open", str(path))

    def _strike(self, event: str, path: str) -> None:
        if os.getpid() != self._owner:
            return
        self._count += 1
        self._memory[8:16] = struct.pack("@l", self._count)
        fault = self._fault
        if fault is not None and not fault.at and fault.match in path:
            fault = self._fault = dataclasses.replace(fault, at=self._count)
        if fault is None or not fault.at or self._count < fault.at or (self._count > fault.at and not fault.lasting):
            return
        what = f"{event}({path})".encode()[:479]
        if self._action == FAIL and (fault.what == "ENOSPC" and event in _NEVER_FULL):
            return
        if not self._memory[40]:
            self._memory[40 : 40 + len(what)] = what
        if self._action == KILL_GROUP:
            os.killpg(0, signal.SIGKILL)
        if self._action == KILL_ALONE:
            os.kill(os.getpid(), signal.SIGKILL)
        if event != "subprocess.Popen":
            raise OSError(self._error, os.strerror(self._error), path)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
