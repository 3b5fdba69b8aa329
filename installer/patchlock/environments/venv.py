"""Virtual environments: make one, fill it from a lock, and say with which variables an app runs in it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.core import file_lock, process, uv
from patchlock.core.atomic_files import remove_tree
from patchlock.distributions import wheelhouse
from patchlock.distributions.wheelhouse import LocalWheels
from patchlock.environments import gate, preloads
from patchlock.model import lockfile, telemetry
from patchlock.model.errors import LockFormatError
from patchlock.model.lockfile import Lock

LOCK = "lock.txt"
"""The lock that a generation was made from, kept in it: the catalogue may have moved on."""
BUILD = "lock.build.txt"
"""What pins the builds of its sdists, kept as well; only where there are any."""
_NOT_IMPORTED = frozenset({"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"})
"""Folders of the standard library that apps have no use for."""
_VENV = "pyvenv.cfg"
_LOCAL, _INDEX = "local.txt", "index.txt"
"""The lock in two parts, as uv is given them: what lies on this machine, and the rest."""


def create(folder: Path, python: Version | str, *, lock: int) -> None:
    """Make an empty virtual environment; an unfinished one in its place is removed first, and gone if this fails.

    Args:
        folder: where.
        python: a version, or what `readiness` has found for it: a path, or a request to uv.
        lock: descriptor of the installation's lock.

    Raises:
        CommandFailedError: no such Python can be found or fetched.
    """
    remove_tree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        uv.run(
            *("venv", "-q", "--no-config", "--no-project", "--python", str(python), str(folder)),
            cwd=folder.parent,
            installing=True,
            keep_open=[lock],
        )
        gate.install_gate(folder, interpreter(folder))
        _use_standard_bytecode(folder)
    except BaseException:
        remove_tree(folder)
        with contextlib.suppress(OSError):  # there are others
            folder.parent.rmdir()
        raise


def _use_standard_bytecode(folder: Path) -> None:
    """Lay links to the compiled standard library where Python looks for it because of `bytecode`.

    Whoever installed that Python has compiled it; without them each environment would compile it again. What Python
    finds stale there it replaces, link and all. Windows lets few users make links.
    """
    if os.name != "posix":
        return
    version = python_version(folder).split(".")
    library = _home(folder).parent / "lib" / f"python{'.'.join(version[:2])}"
    tag = f".cpython-{''.join(version[:2])}.pyc"
    for root, folders, names in os.walk(library):
        folders[:] = [name for name in folders if name not in _NOT_IMPORTED]
        compiled = Path(root)
        if compiled.name == "__pycache__":
            place = bytecode(folder) / compiled.parent.relative_to("/")
            place.mkdir(parents=True, exist_ok=True)
            for name in names:
                if name.endswith(tag):
                    (place / name).symlink_to(compiled / name)


def keep_lock(folder: Path, locked: Path, wanted: Lock, build_constraints: Path | None) -> None:
    """Lay the lock into an empty environment before anything else: what is fetched and built for it counts as needed.

    Args:
        folder: the environment.
        locked: the lock.
        wanted: what it says, as it was judged.
        build_constraints: pins what the builds of its sdists require.

    Raises:
        LockFormatError: the lock was changed since it was judged.
    """
    shutil.copyfile(locked, folder / LOCK)
    if build_constraints is not None:
        shutil.copyfile(build_constraints, folder / BUILD)
    if lock_of(folder) != wanted:
        raise LockFormatError(
            "it was changed while it was being installed", where=str(locked), remedy="run the same command again"
        )
    write(folder, wanted)


def sync(
    folder: Path,
    wanted: Lock,
    local: LocalWheels,
    source_builds: tuple[str, ...],
    *,
    tell: Callable[[str], None],
    lock: int,
    offline: bool = False,
    afresh: Collection[NormalizedName] = (),
) -> None:
    """Fill an empty environment with exactly what a lock names, every byte checked against its sha256.

    What builds require has to be pinned in it, by `keep_lock`; what is not stops the install.

    Args:
        folder: the environment.
        wanted: the lock.
        local: distributions that are taken from this machine; the others come from the machine's index or uv's cache.
        source_builds: distributions that may be built from an sdist.
        tell: called with what uv says while it works.
        lock: descriptor of the installation's lock.
        offline: take what is not in `local` from uv's cache, and ask no network.
        afresh: distributions that uv's cache is not trusted with: they are fetched, or read from this machine, and
            unpacked again.

    Raises:
        HashMismatchError: an index gave other bytes; nothing of them was installed.
        NetworkError: an index does not answer.
        DiskFullError: there is not enough room.
    """
    packages = wanted.packages
    for distrust in (False, True):
        others = [p for p in packages if p.name not in local and (p.name in afresh) == distrust]
        if others:  # first: what uv's cache lacks is known before anything is unpacked
            options = (
                *("--only-binary", ":all:", *(["--offline"] if offline else [])),
                *(option for name in source_builds for option in ("--no-binary", name)),
                *(("--build-constraints", BUILD) if (folder / BUILD).is_file() else ()),
                *("--require-build-hashes", "--preview-features", "build-dependency-hashes"),
            )
            lines = "".join(f"{package}\n" for package in others)
            _install(folder, _INDEX, lines, options, distrust=distrust, tell=tell, lock=lock)
        part = {name: wheel for name, wheel in local.items() if (name in afresh) == distrust}
        if part:
            options = ("--offline", "--only-binary", ":all:")
            _install(folder, _LOCAL, wheelhouse.listing(part), options, distrust=distrust, tell=tell, lock=lock)


def _install(
    folder: Path,
    file: str,
    lines: str,
    options: tuple[str, ...],
    *,
    distrust: bool,
    tell: Callable[[str], None],
    lock: int,
) -> None:
    """Give uv a list of pinned requirements; one that uv's cache is not trusted with has a list of its own."""
    name = f"afresh-{file}" if distrust else file
    (folder / name).write_text(lines, encoding="utf-8", newline="\n")
    base = ("pip", "install", "--no-config", "--no-deps", "--require-hashes", "--python", str(interpreter(folder)))
    cache = ("--no-cache",) if distrust else ()
    # uv may prefer what a page of UV_FIND_LINKS has to the same file on this machine.
    asks = file == _INDEX
    uv.watch(*base, *cache, *options, "-r", name, cwd=folder, installing=asks, tell=tell, keep_open=[lock])


def recreate(folder: Path, *, lock: int) -> None:
    """Make an environment that is being filled anew, with the same Python; files that others share are not written to.

    Args:
        folder: the environment.
        lock: descriptor of the installation's lock.
    """
    link = interpreter(folder)
    create(folder, str(link.readlink() if link.is_symlink() else _home(folder) / link.name), lock=lock)


def lock_of(folder: Path) -> Lock:
    """Read the lock that a generation was made from."""
    return lockfile.parse((folder / LOCK).read_text(encoding="utf-8"), str(folder / LOCK))


def interpreter(folder: Path) -> Path:
    """Name the Python of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def bytecode(folder: Path) -> Path:
    """Name the folder for compiled Python: beside the packages, so that RECORD knows all and no tree is littered."""
    return folder / "bytecode"


def launch_variables(folder: Path, profile: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Make the variables for a process that runs in an environment: isolated, gated, with the profile's and the app's.

    Telemetry is off, as far as the libraries let us.

    Args:
        folder: the environment.
        profile: the profile's variables, which win.
        defaults: the app's, which a variable of the user wins over.

    Raises:
        OverlayError: the environment has an overlay that cannot work now.
    """
    env = process.environment()
    env = preloads.variables(folder, {**telemetry.OFF, **defaults, **env, **profile})
    scripts = interpreter(folder).parent
    env["VIRTUAL_ENV"] = str(folder)
    env["PYTHONPYCACHEPREFIX"] = str(bytecode(folder))
    env.setdefault("NUMBA_CACHE_DIR", str(bytecode(folder) / "numba"))  # else it compiles into site-packages
    path = os.pathsep.join([str(scripts), env.get("PATH", os.defpath)])
    return env | dict(variables(folder)) | dict(gate.variables(folder, path))


def mark_in_use(folder: Path) -> tuple[int, ...]:
    """Keep an environment from being removed while this process lives, and the program that it becomes.

    Returns:
        Descriptors with which a child keeps it, too.
    """
    return file_lock.share(folder / _VENV)


def is_in_use(folder: Path) -> bool:
    """Say whether an app is running in an environment, as far as that can be known."""
    return file_lock.is_shared(folder / _VENV)


def python_version(folder: Path) -> str:
    """Read the version of an environment's interpreter from its `pyvenv.cfg`."""
    return _setting(folder, "version_info")


def _home(folder: Path) -> Path:
    """Name the folder of the Python that an environment was made with."""
    return Path(_setting(folder, "home"))


def _setting(folder: Path, name: str) -> str:
    for line in (folder / _VENV).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            return value.strip()
    return ""


FILE = "constraints.txt"
"""In a generation."""


def write(environment: Path, lock: Lock) -> None:
    """Write one `name==version` for each distribution of the lock."""
    lines = [f"{package.name}=={package.version}\n" for package in lock.packages]
    (environment / FILE).write_text("".join(lines), encoding="utf-8", newline="\n")


def variables(environment: Path) -> Mapping[str, str]:
    """Give the variables that make pip and uv keep to the lock, wherever they are called from.

    The path is an address, because both take a list of paths with spaces between. pip's own configuration files stay
    in force: they name the user's mirror and proxy, and a variable wins over them. A stand-alone pip that an app finds
    outside the environment may not touch that other Python either (PIP_REQUIRE_VIRTUALENV).

    Source: https://pip.pypa.io/en/stable/topics/configuration/ and https://docs.astral.sh/uv/reference/environment/
    """
    if not (environment / FILE).is_file():  # of a generation that an older patchlock made
        return {"PIP_REQUIRE_VIRTUALENV": "1"}
    address = (environment / FILE).absolute().as_uri()
    return {"PIP_CONSTRAINT": address, "UV_CONSTRAINT": address, "PIP_REQUIRE_VIRTUALENV": "1"}
