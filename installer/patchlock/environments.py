"""Generations: virtual environments that live side by side, each complete if and only if its receipt is there."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock import constraints, gate, lockfile, mutex, preloading, process, uv, wheelhouse, whole_files
from patchlock.checkout import remove_tree
from patchlock.errors import HashMismatchError, NotInstalledError
from patchlock.lockfile import Lock
from patchlock.model import CommitId, Sha256
from patchlock.wheelhouse import LocalWheels

RECEIPT = "receipt.toml"
LOCK = "lock.txt"
"""The lock that a generation was made from, kept in it: the catalogue may have moved on."""
BUILD = "lock.build.txt"
"""What pins the builds of its sdists, kept as well; only where there are any."""
_NAME = re.compile(r"[0-9a-f]{1,64}(-[0-9]{1,9})?")
"""Of a generation: its digest, and a number where the same one was built afresh."""
_VENV = "pyvenv.cfg"
_LOCAL, _INDEX = "local.txt", "index.txt"
"""The lock in two parts, as uv is given them: what lies on this machine, and the rest."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Installation:
    """The folder of one app on one profile."""

    folder: Path
    """`<home>/<app>@<profile>`."""

    @property
    def app(self) -> str:
        """The app's name."""
        return self.folder.name.partition("@")[0]

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.folder.name.partition("@")[2]

    @property
    def source(self) -> Path:
        """The working tree: upstream, our commit, and whatever the user keeps there."""
        return self.folder / "source"

    @property
    def environments(self) -> Path:
        """Where generations live."""
        return self.folder / "environments"

    @property
    def lock(self) -> Path:
        """Held while patchlock works here."""
        return self.folder / "lock"

    @property
    def journal(self) -> Path:
        """What a running install is at; gone when it ended well."""
        return self.folder / "journal"

    @property
    def pointer(self) -> Path:
        """One line: the generation in use."""
        return self.folder / "current"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CheckRecord:
    """One check as it was passed when the generation was made."""

    id: str
    level: str
    """`seen`, `loads` or `computes`."""
    detail: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """The proof that a generation is complete; written last."""

    id: str
    app: str
    profile: str
    platform: str
    python: str
    """Full version of the interpreter."""
    upstream: CommitId
    applied: CommitId
    """The patched commit that this generation belongs to."""
    inputs: Sha256
    """Digest of all that the generation was made from; equal inputs need no second install."""
    lock: Sha256
    """Of the lockfile's bytes."""
    packages: int
    made: str
    """RFC 3339, UTC."""
    sequence: int
    """Generations of one installation are numbered from 1 in the order in which they were made."""
    environment: Mapping[str, str]
    """The profile's variables."""
    patched: Mapping[str, Sha256]
    """File from the root of the clone → sha256 of its patched bytes."""
    present: Mapping[str, Sha256]
    """The same files as they stood when the checks passed, the user's edits included."""
    checks: tuple[CheckRecord, ...]
    overlays: Mapping[str, Sha256] = dataclasses.field(default_factory=dict)
    """Id → sha256 of the archive that its libraries are from."""


def generation(installation: Installation, name: str) -> Path:
    """Name the folder of a generation."""
    return installation.environments / name


def create(folder: Path, python: Version | str, *, lock: int) -> None:
    """Make an empty virtual environment; an unfinished one in its place is removed first.

    Args:
        folder: where.
        python: a version, or what `readiness` has found for it: a path, or a request to uv.
        lock: descriptor of the installation's lock.

    Raises:
        CommandFailedError: no such Python can be found or fetched.
    """
    remove_tree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv.run(
        *("venv", "-q", "--no-config", "--no-project", "--python", str(python), str(folder)),
        cwd=folder.parent,
        installing=True,
        keep_open=[lock],
    )
    gate.put(folder, interpreter(folder))


def sync(
    folder: Path,
    locked: Path,
    local: LocalWheels,
    source_builds: tuple[str, ...],
    build_constraints: Path | None,
    *,
    tell: Callable[[str], None],
    lock: int,
    offline: bool = False,
    afresh: Collection[NormalizedName] = (),
) -> None:
    """Fill an empty environment with exactly what a lock names, every byte checked against its sha256.

    The lock is kept in it, as `lock_of` reads it.

    Args:
        folder: the environment.
        locked: the lock.
        local: distributions that are taken from this machine; the others come from the machine's index or uv's cache.
        source_builds: distributions that may be built from an sdist.
        build_constraints: pins what these builds require; what it does not name stops the install.
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
    shutil.copyfile(locked, folder / LOCK)
    if build_constraints is not None:
        shutil.copyfile(build_constraints, folder / BUILD)
    constraints.write(folder, lock_of(folder))
    packages = lock_of(folder).packages
    try:
        for distrust in (False, True):
            others = [p for p in packages if p.name not in local and (p.name in afresh) == distrust]
            if others:  # first: what uv's cache lacks is known before anything is unpacked
                options = (
                    *("--only-binary", ":all:", *(["--offline"] if offline else [])),
                    *(option for name in source_builds for option in ("--no-binary", name)),
                    *(("--build-constraints", BUILD) if build_constraints is not None else ()),
                    *("--require-build-hashes", "--preview-features", "build-dependency-hashes"),
                )
                lines = "".join(f"{package}\n" for package in others)
                _install(folder, _INDEX, lines, options, distrust=distrust, tell=tell, lock=lock)
            part = {name: wheel for name, wheel in local.items() if (name in afresh) == distrust}
            if part:
                options = ("--offline", "--only-binary", ":all:")
                _install(folder, _LOCAL, wheelhouse.listing(part), options, distrust=distrust, tell=tell, lock=lock)
    except HashMismatchError as error:
        raise HashMismatchError(error.what, where=f"{locked}: {error.where}", remedy=error.remedy) from error


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
    uv.watch(*base, *cache, *options, "-r", name, cwd=folder, installing=True, tell=tell, keep_open=[lock])


def empty(folder: Path, *, lock: int) -> None:
    """Make an environment that is being filled anew, with the same Python; files that others share are not written to.

    Args:
        folder: the environment.
        lock: descriptor of the installation's lock.
    """
    link = interpreter(folder)
    create(folder, str(link.readlink() if link.is_symlink() else _home(folder) / link.name), lock=lock)


def lock_of(folder: Path) -> Lock:
    """Read the lock that a generation was made from.

    Raises:
        LockFormatError: it was changed.
    """
    return lockfile.parse((folder / LOCK).read_text(encoding="utf-8"), str(folder / LOCK))


def interpreter(folder: Path) -> Path:
    """Name the Python of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def bytecode(folder: Path) -> Path:
    """Name the folder for compiled Python: beside the packages, so that RECORD knows all and no tree is littered."""
    return folder / "bytecode"


def launch_environment(folder: Path, profile: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Make the variables for a process that runs in an environment: isolated, gated, with the profile's and the app's.

    Args:
        folder: the environment.
        profile: the profile's variables, which win.
        defaults: the app's, which a variable of the user wins over.

    Raises:
        OverlayError: the environment has an overlay that cannot work now.
    """
    env = process.environment()
    env = preloading.variables(folder, dict(defaults) | env | dict(profile))
    scripts = interpreter(folder).parent
    env["VIRTUAL_ENV"] = str(folder)
    env["PYTHONPYCACHEPREFIX"] = str(bytecode(folder))
    path = os.pathsep.join([str(scripts), env.get("PATH", os.defpath)])
    return env | dict(constraints.variables(folder)) | dict(gate.variables(folder, path))


def use(folder: Path) -> None:
    """Keep an environment from being removed while this process lives, and the program that it becomes."""
    mutex.share(folder / _VENV)


def is_used(folder: Path) -> bool:
    """Say whether an app is running in an environment, as far as that can be known."""
    return mutex.is_shared(folder / _VENV)


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


# --- receipts ---------------------------------------------------------------------------------------------------------


def write_receipt(folder: Path, receipt: Receipt) -> None:
    """Declare a generation complete, when the disk has all of it: a power cut keeps what is synced, not what is first.

    Raises:
        OSError: the disk did not take all of it.
    """
    _reach_the_disk(folder)
    values = dataclasses.asdict(receipt)
    checks = values.pop("checks")
    tables = {name: values.pop(name) for name in ("environment", "patched", "present", "overlays")}
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items())]
    for check in checks:
        lines += ["", "[[checks]]", *(f"{key} = {json.dumps(value)}" for key, value in check.items())]
    whole_files.write(folder / RECEIPT, "\n".join(lines) + "\n")


def read_receipt(folder: Path) -> Receipt | None:
    """Read the receipt of a generation; None where it is incomplete, or where the receipt cannot be read."""
    try:
        values: dict[str, Any] = tomllib.loads((folder / RECEIPT).read_text(encoding="utf-8"))
        checks = tuple(CheckRecord(**check) for check in values.pop("checks", ()))
        return Receipt(**values, checks=checks)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):  # damaged, or of another patchlock's format
        return None


def receipts(installation: Installation) -> tuple[Receipt, ...]:
    """List the complete generations, the newest first."""
    if not installation.environments.is_dir():
        return ()
    found = (read_receipt(folder) for folder in installation.environments.iterdir())
    return tuple(sorted((r for r in found if r is not None), key=lambda r: -r.sequence))


def installations(home: Path) -> tuple[Installation, ...]:
    """List the folders of a home that hold an installation, or what was left of one; sorted."""
    folders = sorted(home.iterdir()) if home.is_dir() else []
    return tuple(Installation(folder=folder) for folder in folders if "@" in folder.name and folder.is_dir())


def generations(installation: Installation) -> tuple[str, ...]:
    """Name the generations that were complete once, also those whose receipt cannot be read; sorted."""
    return tuple(sorted(file.parent.name for file in installation.environments.glob(f"*/{RECEIPT}")))


def current(installation: Installation) -> Receipt | None:
    """Read the receipt of the generation in use; None where nothing is installed."""
    try:
        name = installation.pointer.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return read_receipt(generation(installation, name)) if _NAME.fullmatch(name) else None


def require_current(installation: Installation, app: str) -> Receipt:
    """Read the receipt of the generation in use.

    Raises:
        NotInstalledError: there is none.
    """
    receipt = current(installation)
    if receipt is None:
        raise NotInstalledError(
            f"{app} is not installed", where=str(installation.folder), remedy=f"run `patchlock install {app}`"
        )
    return receipt


def switch(installation: Installation, name: str) -> None:
    """Make a complete generation the one in use, in one step."""
    whole_files.write(installation.pointer, f"{name}\n")


def partial(installation: Installation) -> Path:
    """Name the folder of a source that is being made or removed."""
    return installation.source.with_name("source.partial")


def clear(installation: Installation) -> None:
    """Remove what killed installs left: generations without a receipt, clones and files that were not finished.

    The caller holds the installation's lock.
    """
    remove_tree(partial(installation))
    folders = tuple(installation.environments.iterdir()) if installation.environments.is_dir() else ()
    for folder in (installation.folder, *folders):
        for file in folder.glob(".*.new"):
            file.unlink()
    for folder in folders:
        if not (folder / RECEIPT).exists():  # one that cannot be read may be of a newer patchlock
            remove_tree(folder)


def free_bytes(folder: Path) -> int:
    """Ask how much room there is where a folder is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _reach_the_disk(folder: Path) -> None:
    """Wait until the disk has what was written on a file system; not on Windows, where only an administrator may."""
    if sys.platform == "linux":
        import ctypes  # `os.sync` would wait for every other disk too

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        finally:
            os.close(descriptor)
    elif sys.platform != "win32":
        os.sync()


def write_journal(installation: Installation, stage: str) -> None:
    """Note what is being done, for a person who looks after a crash."""
    whole_files.write(installation.journal, f"{stage}\n")
