"""Import a library once, then run programs of ours in forks of this process, each in a process group of its own.

Arguments: the module to import, and the file to write its name to when it is there. Each line of standard input is a
JSON list: a program, the file for what it prints, and its arguments. For each, two lines of JSON are appended to the
file: the process that was begun, and what `waitpid` said of it. When standard input ends, what still runs is killed.

The library is only imported here and computes nothing: a GPU's context, and OpenMP's threads, do not survive a fork.
Source: https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#poison-fork-in-multiprocessing
"""

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import sys
import traceback


def _tell(path: str, *values: object) -> None:
    with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - opened anew each time, so that no fork shares it
        file.write(json.dumps(values) + "\n")


def _begin(request: "list[str]") -> int:
    """Start a program in a fork; gives the number of the process."""
    program, log, *arguments = request
    process = os.fork()
    if process:
        return process
    code = 70  # EX_SOFTWARE of sysexits.h
    try:
        os.setsid()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")  # where memory is out, the kernel takes this process and not the user's
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for new, old in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(new, old)
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")
        code = 0
    except BaseException:  # noqa: BLE001 - what follows would be this server's
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Serve until standard input ends."""
    module, told = sys.argv[1:]
    with contextlib.suppress(Exception):  # whoever needs it imports it again, and says what is wrong with it
        importlib.import_module(module)
    _tell(told, "ready", module)
    running: set[int] = set()
    rest = b""
    try:
        while True:
            if select.select([0], [], [], 0.01 if running else None)[0]:
                data = os.read(0, 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    process = _begin(json.loads(line))
                    running.add(process)
                    _tell(told, "begun", process)
            for process in list(running):
                done, status = os.waitpid(process, os.WNOHANG)
                if done:
                    running.discard(process)
                    _tell(told, "ended", process, os.waitstatus_to_exitcode(status))
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
