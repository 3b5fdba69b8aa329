"""What foreign build code is given: a home of its own, few variables, no network; its output goes to a log."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchlock.core import process, uv
from patchlock.environments.builds import _tools
from patchlock.model.errors import BuildError, CommandFailedError, PatchlockError, PolicyError, ProgramMissingError
from patchlock.model.recipes import Jobs

_KEPT = re.compile(
    r"PATH|LANG|LC_\w+|PATHEXT|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PROGRAMDATA|PROGRAMFILES.*|PROGRAMW6432|"
    r"COMMONPROGRAMFILES.*|PROCESSOR_\w+|DEVELOPER_DIR|SDKROOT|CUDA_HOME|CUDA_PATH|UV_CACHE_DIR|UV_LINK_MODE",
    re.IGNORECASE,
)
"""Variables of the machine that a compiler needs to be found; nothing else of the user's is handed on."""
_NOWHERE = "http://127.0.0.1:9"
"""The port of "discard" (RFC 863): what asks a proxy there learns at once that there is no network."""
_FENCE = ("unshare", "--net", "--map-current-user", "--")
"""Source: unshare(1) of util-linux; a network namespace has no way out. Not every kernel lets everybody have one."""
_WANTS_NETWORK = re.compile(
    r"name resolution|Network is unreachable|Name or service not known|getaddrinfo failed|127\.0\.0\.1:9|"
    r"port=9\)|Cannot connect to proxy|Connection refused"
)
_NO_PROGRAM = re.compile(
    r"command '([^']+)' failed: No such file|([\w.+-]+): (?:command )?not found|'([\w.+-]+)' not found"
)
_NOT_PINNED = re.compile(r"Because ([A-Za-z0-9._-]+) was not found in the provided package locations")
_NO_HEADER = re.compile(r"Python\.h: No such file")
_NO_LIBRARY = re.compile(r"(?:cannot find|library not found for) -l([\w.+-]+)|ld: library '([^']+)' not found")
"""Source: GNU ld, ldmain.c; Apple's ld64 and its successor."""


def variables(folder: Path, recipe: Mapping[str, str], jobs: Jobs) -> dict[str, str]:
    """Make the environment of a build.

    Args:
        folder: its own; HOME and TMPDIR are made in it.
        recipe: variables that win over all others.
        jobs: how many compilers may run at once.
    """
    home, scratch = folder / "home", folder / "tmp"
    home.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    env |= dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(home))
    env |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(scratch))
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env |= dict.fromkeys((*proxies, *map(str.lower, proxies)), _NOWHERE)
    env |= {
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_OFFLINE": "1",
        "UV_NO_PROGRESS": "1",
        "NO_COLOR": "1",
    }
    # The same bytes today and tomorrow, as far as a build allows it; wheels cannot be older than 1980.
    env |= {"SOURCE_DATE_EPOCH": "946684800", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1"}
    count = str(jobs.count(_tools.memory(), _tools.processors()))
    env |= {"MAX_JOBS": count, "CMAKE_BUILD_PARALLEL_LEVEL": count, "MAKEFLAGS": f"-j{count}"}
    return env | dict(recipe)


def network_isolation_prefix(env: Mapping[str, str]) -> tuple[str, ...]:
    """Give what goes before a command so that it has no network; empty where the kernel does not allow that."""
    if sys.platform != "linux" or shutil.which(_FENCE[0], path=env["PATH"]) is None:
        return ()
    try:
        process.run(*_FENCE, "true", env=env, timeout=30)
    except CommandFailedError:
        return ()
    return _FENCE


def run(
    *argv: str,
    what: str,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    keep_open: Sequence[int] = (),
) -> None:
    """Run a step of a build to its end, without network where the kernel allows that, its output appended to a log.

    Args:
        argv: the program and its arguments.
        what: is done, for messages: `the build of pyworld 0.3.5`.
        cwd: its folder.
        env: as `variables` made it.
        log: the file.
        keep_open: see `process.run`.

    Raises:
        BuildError: it failed; carries its last lines.
        PolicyError: it wants a build requirement that nobody has pinned.
        ProgramMissingError: a compiler is missing.
        DiskFullError: there is not enough room.
    """
    before = network_isolation_prefix(env)
    said: list[str] = []
    with log.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(f"$ {' '.join([*before, *argv])}\n")

        def note(line: str) -> None:
            file.write(f"{line}\n")
            file.flush()
            said.append(line)

        try:
            process.watch(*before, *argv, cwd=cwd, env=env, tell=note, keep_open=keep_open, with_output=True)
        except CommandFailedError as error:
            raise _named(what, error, said, log, env) from error


def _named(
    what: str, error: CommandFailedError, said: Sequence[str], log: Path, env: Mapping[str, str]
) -> PatchlockError:
    if isinstance(unpinned := uv.classify_error(error), PolicyError):
        return unpinned
    if found := _NOT_PINNED.search(" ".join("\n".join(error.evidence).split())):
        return PolicyError(
            f"a build wants {found[1]}, which is not pinned",
            where=what,
            remedy="add it to `build` in the [[metadata]] table of what is built, and lock again",
            evidence=error.evidence,
        )
    last = [line for line in said if not line.startswith(("DEBUG ", "TRACE "))][-20:]
    words = "\n".join(last)
    missing = next((name for found in _NO_PROGRAM.finditer(words) for name in found.groups() if name), "")
    if missing and shutil.which(missing, path=env["PATH"]) is None:
        try:
            _tools.require([missing], what, env["PATH"])
        except ProgramMissingError as program:
            return ProgramMissingError(program.what, where=str(log), remedy=program.remedy, evidence=last)
    remedy = (
        "read the log, remove the cause and run the same command again; the catalogue's author can set variables, "
        "patch the source or name a program that is missing with a [[recipe]]"
    )
    if _WANTS_NETWORK.search(words):
        remedy = "a build has no network: what it wants must be in its source, or pinned as a build requirement"
    elif _NO_HEADER.search(words):
        remedy = "install the headers of Python: sudo apt-get install python3-dev"
    elif found := _NO_LIBRARY.search(words):
        library = (found[1] or found[2]).rstrip(".:")
        remedy = (
            f"it links with the C library {library}: install that with its headers (on Debian most often "
            f"lib{library}-dev) and run the same command again"
        )
    return BuildError(f"{what} failed", where=str(log), remedy=remedy, evidence=last)
