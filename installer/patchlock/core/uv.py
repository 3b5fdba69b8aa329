"""Drive uv: find it, give it a clean environment, and name its failures; knows nothing of apps or locks."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.core import command_lines, disk_space, process
from patchlock.model.errors import (
    CommandFailedError,
    FileAccessError,
    HashMismatchError,
    NetworkError,
    PatchlockError,
    PolicyError,
    ProgramMissingError,
    RequirementsError,
    UnsatisfiableError,
    WheelError,
)
from patchlock.model.lockfile import LockedPackage

_OF_THE_MACHINE = (
    *("UV_CACHE_DIR", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_NATIVE_TLS"),
    *("UV_SYSTEM_CERTS", "UV_INSECURE_HOST", "UV_OFFLINE", "UV_LINK_MODE", "UV_KEYRING_PROVIDER"),
    *("UV_CONCURRENT_DOWNLOADS", "UV_CONCURRENT_INSTALLS", "UV_PYTHON_INSTALL_MIRROR", "UV_PYTHON_INSTALL_DIR"),
    *("UV_PYTHON_DOWNLOADS", "UV_PYTHON_CACHE_DIR"),
)
"""Where bytes come from and how fast: may never change what they are."""
_OF_INSTALLING = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
"""Other places to take bytes from; harmless where every file is pinned by hash, and not while resolving."""
_NO_BUILD = {"PYTHONHOME": os.devnull, "UV_NO_BUILD_ISOLATION": "1", "UV_PYTHON_DOWNLOADS": "never"}
"""While resolving, no Python that uv starts for a build gets as far as its first line.

uv asks interpreters about themselves with `-I`, which ignores PYTHONHOME, and runs every hook of a build backend, and
every `setup.py`, without it. This is the second bolt: `locks._resolve` gives uv the metadata of all sdists that may be
built, so that it never wants to build one. Tested with uv 0.13.8 by `test_no_build_code_runs_while_locking`."""
_CREDENTIALS = re.compile(r"UV_INDEX_\w+_(USERNAME|PASSWORD)")

_UNREACHABLE = (
    "error reading a body from connection",
    "Failed to fetch",
    "error sending request",
    "dns error",
    "Could not connect",
    "Request failed after",
    "operation timed out",
    "network timeout",
)
_OFFLINE = ("the network was disabled", "etwork connectivity is disabled", "--offline")
_INVALID = re.compile(
    r"Failed to install: \S+ \(([A-Za-z0-9._-]+)(?:==|@| @ ).* cause: (?:The wheel is invalid: )?"
    r"(Script path must resolve .*|Scripts must not use the reserved name .*)"
)
_MALFORMED = re.compile(
    r"Failed to install: \S+ \(([A-Za-z0-9._-]+)(?:==|@| @ ).* cause: The wheel is invalid: (?!Missing|RECORD)(.+)"
)
"""What is missing, or is wrong in RECORD, may have been lost in uv's cache."""
_MISNAMED = re.compile(
    r"Package metadata name `(?P<inside>[^`]+)` does not match given name `(?P<asked>[^`]+)`"
    r"|Requested package name `(?P<wanted>[^`]+)` does not match `(?P<named>[^`]+)` in the distribution filename: "
    r"(?P<url>\S+)"
)
_FILE_OF = re.compile(r"`([A-Za-z0-9._-]+) @ (https?://[^`]+)`")
"""A file that a requirement names by its address."""
_BUILD = "No module named 'encodings'"
_NOISE = "does not contain any dependencies"
_UNSOLVED = ("No solution found", "unsatisfiable")
_CERTIFICATE_IS = (
    ("CaUsedAsEndEntity", "is that of a certificate authority itself", "let the server have one that it has signed"),
    ("expired", "has expired", "renew it, or set this computer's clock"),
    ("not valid for name", "is for another name", "name the server as its certificate does"),
)
"""What uv says of a certificate that is wrong in itself, plain words, and what helps. Source: rustls-webpki, Error."""


def find() -> Path:
    """Find the uv that patchlock was installed with.

    Raises:
        ProgramMissingError: it is not there.
    """
    try:
        import uv

        return Path(uv.find_uv_bin())
    except (FileNotFoundError, ModuleNotFoundError) as error:
        looked = re.findall(r"^ - (.+)$", str(error), re.MULTILINE)
        raise ProgramMissingError(
            "the uv of the Python package `uv` is not there, and patchlock runs no other one, such as that on PATH",
            where=", ".join(looked) or sys.prefix,
            remedy=f"remove {sys.prefix} and run this again"
            if os.environ.get("PATCHLOCK_BOOTSTRAP")
            else f"install that package for {sys.executable}, its module as well as its program (docs/install.md)",
        ) from error


def version() -> str:
    """Name the version of uv, from the metadata of its distribution."""
    import importlib.metadata

    return importlib.metadata.version("uv")


def _environment(installing: bool) -> dict[str, str]:
    kept = _OF_THE_MACHINE + (_OF_INSTALLING if installing else ())
    env = {  # an empty variable is an unset one, which uv says of few
        name: value
        for name, value in process.environment().items()
        if not name.startswith("UV_") or (name in kept and value) or _CREDENTIALS.fullmatch(name)
    }
    return env | {"UV_NO_PROGRESS": "1", "NO_COLOR": "1"} | ({} if installing else _NO_BUILD)


def run(
    *arguments: str, cwd: Path, installing: bool, timeout: float | None = None, keep_open: Sequence[int] = ()
) -> process.Completed:
    """Run uv in a folder of ours, with the user's index, proxy and cache, and none of his other settings.

    Args:
        arguments: as on uv's command line.
        cwd: a folder without a project.
        installing: whether files are fetched that are pinned by hash, so that further sources are welcome.
        timeout: seconds; None waits for ever.
        keep_open: see `process.run`.

    Raises:
        UnsatisfiableError: there is no solution; carries uv's explanation.
        NetworkError: an index does not answer.
        HashMismatchError: a file is not the one that was promised.
        DiskFullError: there is not enough room.
        CommandFailedError: anything else.
    """
    try:
        return process.run(
            *(str(find()), *arguments), env=_environment(installing), cwd=cwd, timeout=timeout, keep_open=keep_open
        )
    except CommandFailedError as error:
        raise classify_error(error) from error


def is_online() -> bool:
    """Say whether UV_OFFLINE lets anybody use the network: to uv `0`, `false`, `no` and `off` are a no, as is ""."""
    return os.environ.get("UV_OFFLINE", "").strip().lower() in {"", "0", "f", "false", "n", "no", "off"}


def copies() -> bool:
    """Say whether uv is told to copy files from its cache instead of linking to them."""
    return os.environ.get("UV_LINK_MODE", "").strip().lower() == "copy"


def default_index() -> str:
    """Name the index that uv asks on this machine for what no other index has, without its last slash.

    Raises:
        CommandFailedError: uv does not say.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as name:
        (Path(name) / "none.txt").write_text("", encoding="utf-8")
        asked = ("pip", "compile", "none.txt", "--no-config", "--emit-index-url", "--offline", "--no-header", "-q")
        done = run(*asked, "--python", sys.executable, cwd=Path(name), installing=False)
    found = re.search(r"^--index-url (\S+)$", done.text, re.MULTILINE)
    if found is None:
        raise CommandFailedError("uv does not say which index it asks", where="--emit-index-url")
    return found[1].rstrip("/")


def watch(
    *arguments: str, cwd: Path, installing: bool, tell: Callable[[str], None], keep_open: Sequence[int] = ()
) -> None:
    """Run uv as `run` does, and hand on each line that it says.

    Args:
        arguments: as on uv's command line.
        cwd: a folder without a project.
        installing: whether files are fetched that are pinned by hash, so that further sources are welcome.
        tell: called with each line.
        keep_open: see `process.run`.

    Raises:
        PatchlockError: as `run`.
    """
    try:
        process.watch(str(find()), *arguments, env=_environment(installing), cwd=cwd, tell=tell, keep_open=keep_open)
    except CommandFailedError as error:
        raise classify_error(error) from error


def classify_error(error: CommandFailedError) -> PatchlockError:
    """Give a failure of uv its name; uv's words are shown, and only matched by the few that have long been stable."""
    error.evidence = tuple(line for line in error.evidence if _NOISE not in line)
    words = " ".join("\n".join(error.evidence).split())  # uv breaks long sentences into lines
    if "Hash mismatch" in words:
        found = re.search(r"Hash mismatch for `([^`]+)`", words)
        mismatch = HashMismatchError(
            f"{found[1] if found else 'a file'} is not the file that the lock names, and nothing of it was installed",
            where=" ".join(words.partition("Expected")[1:]).replace("\n", " ").strip() or "sha256",
            remedy="the index or a cache has other bytes, or the lock is wrong: "
            f"run `{cache_clean_command(found[1] if found else '')}` and the same command again; "
            "if it happens again, `patchlock lock --check --online` says whether it is the lock",
        )
        mismatch.found = "".join(re.findall(r"Computed: sha256:([0-9a-f]{64})", words)[-1:])
        return mismatch
    if forged := re.search(r"Failed to install: (\S+\.whl) .*cause: (Wheel \w+ does not match [^,]*)", words):
        return WheelError(
            f"{forged[1]} is malformed, and was not installed: {forged[2][0].lower()}{forged[2][1:]}",
            where=_verb(error.where),
            remedy="nothing here can repair it: report it to its publisher, and lock another version",
        )
    if invalid := _INVALID.search(words):
        return WheelError(
            f"the wheel of {invalid[1]} has a script that does not belong into an environment: {invalid[2]}",
            where=_verb(error.where),
            remedy="do not install it; report it to its authors",
            evidence=error.evidence,
        )
    if invalid := _MALFORMED.search(words):
        return WheelError(
            f"the wheel of {invalid[1]} is malformed, and was not installed: {invalid[2]}",
            where=_verb(error.where),
            remedy="nothing here can repair it: report it to its publisher, and lock another version",
            evidence=error.evidence,
        )
    if broken := re.search(r"Failed to install: \S+ \(([A-Za-z0-9._-]+)(?:==|@| @ )", words):
        return CommandFailedError(
            f"what uv's cache has of {broken[1]} is damaged, and it was not installed",
            where=_verb(error.where),
            remedy=f"run `{cache_clean_command(broken[1])}` and the same command again",
            evidence=error.evidence,
        )
    if cache := re.search(r"Failed to initialize cache at `([^`]*)`(?:.*`: (.+?) \(os error)?", words):
        return _closed("its cache", os.environ.get("UV_CACHE_DIR") or cache[1], cache[2])
    if lock := re.search(r"Could not acquire lock.* cause: ([^:]+) \(os error \d+\) at path \"([^\"]*)", words):
        return _closed("a folder, its cache or that of its Pythons", str(Path(lock[2]).parent), lock[1])
    if any(text in words for text in _OFFLINE):
        return NetworkError(
            "a package is not in the cache and the network is switched off",
            where="UV_OFFLINE" if not is_online() else "uv",
            remedy="allow the network, or run the same command once on a connected machine",
            evidence=error.evidence,
        )
    if unpinned := re.search(r"no trusted hash was provided for: `?([A-Za-z0-9._-]+)", words):
        return PolicyError(
            f"a build wants {unpinned[1]}, which is not pinned",
            where=" ".join(re.findall(r"build `([^`]+)`", words)[:1]),
            remedy="add it to `build` in the [[metadata]] table of what is built, and lock again",
            evidence=error.evidence,
        )
    if _BUILD in words:
        return PolicyError(
            "a distribution would run its own code to say what it requires, and was stopped",
            where=" ".join(re.findall(r"`([^`]+)`", words)[:1]),
            remedy="allow its build with [[build]], and write down what it requires with [[metadata]]",
        )
    if refused := re.search(r"\(?(https?://[^)\s`]+)\)?.*(401 Unauthorized|403 Forbidden)", words):
        return NetworkError(
            f"the package index refuses access ({refused[2]})",
            where=_host(refused[1]),
            remedy="write user and password into UV_DEFAULT_INDEX, or into ~/.netrc, and run the same command again",
        )
    if strange := re.search(r"(?:Unsupported `Content-Type` .*?|unexpected JSON from )`(https?://[^`]+)`", words):
        return no_page(_host(strange[1]))
    if misnamed := _MISNAMED.search(words):
        return _wrong_name(misnamed)
    ended = _last_error(error.evidence)
    if "invalid peer certificate" in ended:
        return _untrusted(ended)
    silent = _FILE_OF.search(ended)
    if silent and any(text in ended for text in _UNREACHABLE):
        return NetworkError(
            f"the server that has the file of {silent[1]} does not answer",
            where=_host(silent[2]),
            remedy="check the connection or the proxy, then run the same command again, or name another address of it",
        )
    if any(text in ended for text in _UNREACHABLE):
        address = re.search(r"https?://[^/\s`)]+", ended)
        silent_one = "the server that has Python" if "/cpython-" in ended else "the package index"
        return NetworkError(
            f"{silent_one} does not answer",
            where=_host(address[0]) if address else silent_one,
            remedy="check the connection or the proxy, then run the same command again: finished downloads are kept",
        )
    if damaged := re.search(r"Failed to (?:download|read) `([^`]+)`.*cause: Failed to extract archive: (\S+)", ended):
        return HashMismatchError(
            f"{damaged[2]} is damaged, and nothing of it was installed",
            where=damaged[1],
            remedy="replace it where UV_FIND_LINKS or the index has it, and run the same command again",
            evidence=error.evidence,
        )
    if any(text in ended for text in _UNSOLVED):
        return UnsatisfiableError("no set of packages satisfies the requirements", evidence=error.evidence)
    error.where = _verb(error.where)
    return error


def _wrong_name(found: re.Match[str]) -> PatchlockError:
    """Say that a file is of another distribution than the one that was asked for."""
    if found["asked"]:
        return WheelError(
            f"what the index has as `{found['asked']}` says in its METADATA that it is `{found['inside']}`",
            remedy="report it to its publisher, and ask for another version",
        )
    return RequirementsError(
        f"`{found['wanted']}` is asked for, and the file that is named for it is of `{found['named']}`",
        where=found["url"],
        remedy="correct the name or the address with a patch (set-requirement or replace-text)",
    )


def _untrusted(ended: str) -> NetworkError:
    """Say that a certificate is not trusted, or that those are not there which the user names: uv goes on without."""
    named = os.environ.get("SSL_CERT_FILE", "")
    if named and not Path(named).exists():
        return NetworkError("the certificates cannot be read", where=named, remedy="correct or remove SSL_CERT_FILE")
    address = re.search(r"https?://[^/\s`)]+", ended)
    where = _host(address[0]) if address else "the package index"
    for word, what, remedy in _CERTIFICATE_IS:
        if word.lower() in ended.partition("invalid peer certificate")[2].lower():
            again = f"{remedy}, and run the same command again"
            return NetworkError(f"the certificate of the server {what}", where=where, remedy=again)
    lacking = ", which is set to a file without them" if named else ""
    return NetworkError(
        "the certificate of the server is not trusted",
        where=where,
        remedy=f"name the certificates of your network or proxy with SSL_CERT_FILE{lacking}, and run the same command "
        "again",
    )


def _last_error(lines: Sequence[str]) -> str:
    """Give what uv ended with, on one line: before it there may be what failed once and went well later."""
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    return " ".join(" ".join(lines[starts[-1] if starts else 0 :]).split())


def _closed(what: str, folder: str, reason: str | None) -> FileAccessError:
    """Say that uv cannot write to a folder that it needs; the reason is the system's, None where uv does not tell."""
    return FileAccessError(
        f"uv cannot use {what}: {(reason or 'it cannot be made').lower()}",
        where=folder,
        remedy="correct the folder's permissions, or choose another one with UV_CACHE_DIR",
    )


def cache_folder() -> str:
    """Name the folder of uv's cache, which need not be there."""
    return run("cache", "dir", "--no-config", cwd=Path(tempfile.gettempdir()), installing=True).text


def cache_clean_command(*distributions: str) -> str:
    """Write the command that removes these, or all, from uv's cache; our uv need not be on PATH."""
    names = [re.match(r"[A-Za-z0-9._-]*", distribution) for distribution in distributions]
    found = [name[0] for name in names if name and name[0]]
    return " ".join([command_lines.program(str(find())), "cache", "clean", *found])


def install_command(*distributions: str) -> str:
    """Write the command that installs these beside patchlock; our uv need not be on PATH."""
    words = ("pip", "install", "--python", sys.executable, *distributions)
    return f"{command_lines.program(str(find()))} {command_lines.joined(words)}"


def no_page(where: str) -> NetworkError:
    """Say that a server which should be a package index is none.

    Args:
        where: its address, without user and password.
    """
    return NetworkError(
        "the package index answers with something that is not a page of an index",
        where=where,
        remedy="sign in to this network, if a browser shows its login page; otherwise check the address in "
        "UV_DEFAULT_INDEX: it ends in /simple on most servers",
    )


def _verb(command: str) -> str:
    """Name a command by its first words, `uv pip compile`: the rest is long, and about a folder that is gone."""
    words = shlex.split(command)[1:]
    return " ".join(["uv", *itertools.takewhile(re.compile(r"[a-z]+").fullmatch, words)])


def _host(address: str) -> str:
    """Name a server without user and password."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


_UNCACHED = re.compile(r"Identified uncached distribution: ([A-Za-z0-9._-]+)")
"""What uv 0.13.8 says with `-v`; where it says something else, everything is taken to be missing."""
_LIST = "wanted.txt"


def folder(environment: Path) -> Path:
    """Name uv's cache, as uv finds it from the folder of an environment, which need not be there yet."""
    return environment / run("cache", "dir", "--no-config", cwd=environment.parent, installing=True).text


def is_copied(environment: Path, cached: Path) -> bool:
    """Say whether uv copies files into an environment, as its cache is on another disk, or as it is told to."""
    return disk_space.look(environment).device != disk_space.look(cached).device or copies()


def uncached(packages: Iterable[LockedPackage], folder: Path, *python: str) -> frozenset[NormalizedName]:
    """Say which distributions uv would have to download; asks no network.

    Distributions of an index are asked together, and count as missing together where uv cannot read the pages that it
    kept; files with an address of their own are asked one by one.

    Args:
        packages: of a lock.
        folder: for the question.
        python: options that say for which environment, or which Python and platform; its packages count as missing too.
    """
    asked = tuple(packages)
    ours = [package for package in asked if not package.url]
    groups = ([ours] if ours else []) + [[package] for package in asked if package.url]
    return frozenset(name for group in groups for name in _of_group(group, folder, python))


def _of_group(group: list[LockedPackage], folder: Path, python: tuple[str, ...]) -> frozenset[NormalizedName]:
    (folder / _LIST).write_text("".join(f"{package}\n" for package in group), encoding="utf-8", newline="\n")
    try:
        done = run(
            *("pip", "install", "--no-config", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *(*python, "--dry-run", "--offline", "-v", "-r", _LIST),
            cwd=folder,
            installing=True,
        )
    except PatchlockError:  # it does not know enough of them to say
        return frozenset(package.name for package in group)
    finally:
        (folder / _LIST).unlink(missing_ok=True)
    found = frozenset(canonicalize_name(name) for name in _UNCACHED.findall(done.stderr))
    # Where uv would fetch something and its words have changed, all of it counts as missing.
    return found if found or "Would download" not in done.stderr else frozenset(package.name for package in group)
