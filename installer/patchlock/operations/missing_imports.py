"""Say before anything is downloaded what an app imports at its start and no package of its lock brings; asks nobody.

Only what is certain is said. A module is missing where no wheel of the lock has it, by the tables of contents that are
kept of them. Where something of the lock is not known well enough to exclude that it brings a module, nothing is said.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals import device_places, importers
from patchlock.catalogue.proposals.importers import Importers
from patchlock.catalogue.proposals.imports import Imports
from patchlock.distributions import wheel_facts, wheelhouse
from patchlock.distributions.wheel_facts import Place
from patchlock.locks import lock_request
from patchlock.locks.lock_request import Request, Upstream
from patchlock.model.errors import PatchlockError
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.patches import device_branches, import_graph
from patchlock.patches.import_graph import ReachedImport, Trees
from patchlock.worktree import upstream_cache

_STANDARD = frozenset(
    [
        "_bootlocale",
        "aifc",
        "annotationlib",
        "asynchat",
        "asyncore",
        "audioop",
        "binhex",
        "cgi",
        "cgitb",
        "chunk",
        "compression",
        "crypt",
        "distutils",
        "formatter",
        "graphlib",
        "imghdr",
        "imp",
        "lib2to3",
        "macpath",
        "mailcap",
        "msilib",
        "nis",
        "nntplib",
        "ossaudiodev",
        "parser",
        "pipes",
        "smtpd",
        "sndhdr",
        "spwd",
        "sunau",
        "symbol",
        "telnetlib",
        "tomllib",
        "uu",
        "xdrlib",
        "zoneinfo",
    ]
)
"""Of the standard library of some Pythons and not of all; whether the app's has them is not judged here."""
_SDISTS = (".tar.gz", ".zip")


def missing_imports(request: Request, upstream: Upstream, lock: Lock) -> tuple[ReachedImport, ...]:
    """Name what the app's program imports as it starts, or patches anywhere, and that certainly is in no package."""
    packages = KnownModules(lock.packages, request.cache)
    files = read_files(upstream) if packages.is_anything_known() else None
    if files is None:
        return ()
    launch = request.app.launch
    python_path = launch.environment.get("PYTHONPATH", "")
    at_start = of_program(files, packages, launch.command, python_path)
    known = {one.module for one in at_start}
    patched = import_graph.of_others(files, _of_patches(upstream), launch.command, python_path)
    return (*at_start, *(one for one in patched if one.module not in known and packages.lack(one.module)))


def _of_patches(upstream: Upstream) -> tuple[ReachedImport, ...]:
    """Name what patches make the app import, wherever in its files and without a guard."""
    found = list[ReachedImport]()
    for change in upstream.patched.changes:
        before = Imports({change.path: change.before or b""}).all()
        found += (
            ReachedImport(module=one.module, path=one.found.path, line=one.found.line, is_patched=True)
            for one in Imports({change.path: change.after}).all()
            if not one.is_optional and one.module not in {known.module for known in before}
        )
    return tuple(found)


def of_program(
    files: Mapping[PurePosixPath, bytes], packages: KnownModules, command: Sequence[str], python_path: str
) -> tuple[ReachedImport, ...]:
    """Name what one program imports as soon as it starts, and no package has."""
    reached = import_graph.reached(files, command, python_path).modules
    others = import_graph.of_others(files, reached, command, python_path)
    return tuple(one for one in others if packages.lack(one.module))


def on_device(
    kind: str, files: Mapping[PurePosixPath, bytes], packages: KnownModules, command: Sequence[str], python_path: str
) -> tuple[ReachedImport, ...]:
    """Name what code to which a program may come imports below a test for one kind of device, and no package has.

    Nothing is named for CUDA, which such tests are read without.
    """
    trees, found = Trees(files), list[ReachedImport]()
    for path, data in files.items() if kind != "cuda" else ():
        module = trees.of(path) if b"is_available" in data or b"platform" in data else None
        for node in device_branches.chosen(module, device_branches.tests_of(module, kind)) if module else ():
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found += (ReachedImport(module=one, path=path, line=node.lineno, device=kind) for one in names)
    lacking = [one for one in found if packages.lack(one.module)]
    others = import_graph.of_others(files, lacking, command, python_path)
    if not others:
        return ()
    started = import_graph.reached(files, command, python_path, trees).files
    every = dict.fromkeys((one.path for one in others), ())
    idle = device_places.idle_lines(kind, trees, started, command, python_path, every)
    return tuple(one for one in others if one.line not in idle[one.path])


def told(request: Request, lock: Lock, missing: tuple[ReachedImport, ...]) -> str:
    """Say what is missing, and which package of the lock knows of a distribution of that name."""
    folder, hints = request.cache / wheel_facts.FOLDER, []
    for name in dict.fromkeys(canonicalize_name(one.module.partition(".")[0]) for one in missing):
        askers = [p.name for p in lock.packages if name in wheel_facts.known_requirements(folder, p.upstream.sha256)]
        if askers and name not in {package.name for package in lock.packages}:
            hints.append(f"{' and '.join(askers)} requires {name} in some cases: for an extra, or on another system")
    return "; ".join([import_graph.missing_text(missing), *hints])


def read_files(upstream: Upstream) -> Mapping[PurePosixPath, bytes] | None:
    """Give the Python files of the app's folder as they will be; None where the clone of upstream lacks some."""
    snapshot = upstream.snapshot
    listed = upstream_cache.files(snapshot.repository, snapshot.tree, snapshot.directory)
    paths = [path for path in listed if path.suffix == ".py"]
    there = upstream_cache.read(snapshot, (), optional=paths)
    return there | {c.path: c.after for c in upstream.patched.changes} if len(there) == len(paths) else None


def of_app(request: Request) -> Importers:
    """Read who imports what, and whether as the app starts; of nobody where its files are not at hand."""
    try:
        files = read_files(lock_request.read_patched(request))
    except PatchlockError:
        return Importers()
    launch = request.app.launch
    return importers.read(Trees(files or {}), launch.command, launch.environment.get("PYTHONPATH", ""))


class KnownModules:
    """What is known here of the modules that a lock's packages have.

    Args:
        packages: the lock's.
        cache: the user's, with what is kept of wheels and sdists.
        brings: says of a distribution of which nothing is known whether it has a module, where a guess is wanted.
    """

    def __init__(
        self,
        packages: Iterable[LockedPackage],
        cache: Path,
        brings: Callable[[NormalizedName, str], bool] | None = None,
    ) -> None:
        self._brings = brings
        self._cache, self._folder = cache, cache / wheel_facts.FOLDER
        self._found: dict[LockedPackage, frozenset[str] | None] = {}
        self._read: dict[LockedPackage, frozenset[str]] = {}
        self._unread: list[LockedPackage] = []
        for package in packages:
            roots = wheel_facts.known_roots(self._folder, package.upstream.sha256)
            if roots is None:
                self._unread.append(package)
            else:
                self._read[package] = roots

    def is_anything_known(self) -> bool:
        """Tell whether anything can be said at all."""
        return bool(self._read) or any(self._here(package) for package in self._unread)

    def have(self, module: str) -> bool:
        """Tell whether a module's top level certainly is in one of them."""
        return any(_has_top(roots, module.partition(".")[0]) for roots in self._read.values())

    def lack(self, module: str) -> bool:
        """Tell whether a module is certainly in none of them, and not in Python's own library."""
        top, *rest = module.split(".")
        if top in sys.stdlib_module_names or top in _STANDARD:
            return False
        owners = [package for package, roots in self._read.items() if _has_top(roots, top)]
        if owners:
            may_be_there = not rest or any(self._may_have(package, top, rest) for package in owners)
        else:
            linked = [package for package, roots in self._read.items() if _has_links(roots)]
            may_be_there = any(top in _names(path) for package in linked for path in self._paths(package))
        return not may_be_there and all(self._cannot_have(package, top) for package in self._unread)

    def _may_have(self, package: LockedPackage, top: str, rest: list[str]) -> bool:
        """Tell whether a wheel has a submodule, or makes one in a way that its table of contents does not show."""
        own = [path for path in self._paths(package) if path.partition("/")[0].partition(".")[0] == top]
        if package.original is not None:
            return True  # a patch may have added it
        if not any(path.startswith(f"{top}/") for path in own):
            return True  # one file, whose code may put modules below it, as that of `six` does
        place = top
        for part in rest:
            place = f"{place}/{part}"
            if any(path.startswith(f"{place}.") for path in own):
                return True
            if not any(path.startswith(f"{place}/") for path in own):
                return False
        return True

    def _paths(self, package: LockedPackage) -> list[str]:
        return [file.path for file in wheel_facts.contents(self._folder, package.upstream.sha256)]

    def _cannot_have(self, package: LockedPackage, top: str) -> bool:
        """Tell whether a package of which no table of contents was kept certainly has no such module."""
        if package not in self._found:
            self._found[package] = self._look_at(package)
        found = self._found[package]
        if found is None:
            return self._brings is not None and not self._brings(package.name, top)
        return top not in found

    def _look_at(self, package: LockedPackage) -> frozenset[str] | None:
        """Give the names that modules of a package can have: of what lies here, or of its release for other machines.

        A build may put any file of an sdist anywhere, so that all its names count, and so do those of a wheel that puts
        folders on `sys.path`.
        """
        here, sha256 = self._here(package), package.upstream.sha256
        with contextlib.suppress(OSError, tarfile.TarError, zipfile.BadZipFile, ValueError, EOFError):
            if here is not None and here.suffix != ".whl":
                return frozenset(name for path in _listed(here) for name in _names(path))
            if here is not None:
                wheel_facts.store(self._folder, sha256, Place(filename=here.name, url=here.absolute().as_uri()))
        known = wheel_facts.known_roots(self._folder, sha256)
        same = (sha256,) if known is not None else self._releases.get((package.name, package.version.public), ())
        names: set[str] = set()
        for one in same:
            paths = wheel_facts.known_roots(self._folder, one) or frozenset()
            if _has_links(paths):
                names.update(*(_names(file.path) for file in wheel_facts.contents(self._folder, one)))
            names |= {path.partition("/")[0].partition(".")[0] for path in paths}
        return frozenset(names) if same else None

    @cached_property
    def _releases(self) -> Mapping[tuple[NormalizedName, str], tuple[Sha256, ...]]:
        return wheel_facts.releases(self._folder)

    def _here(self, package: LockedPackage) -> Path | None:
        """Find the file of a package, where it was fetched already."""
        sha256 = package.upstream.sha256
        fetched = (path for path in (self._cache / "sdists" / sha256).glob("*") if path.name.endswith(_SDISTS))
        return wheelhouse.find(self._cache, sha256) or next(fetched, None)


def _has_top(roots: Iterable[str], top: str) -> bool:
    return any(root.partition("/")[0].partition(".")[0] == top for root in roots)


def _has_links(roots: Iterable[str]) -> bool:
    return any(root.endswith(".pth") for root in roots)


def _names(path: str) -> set[str]:
    """Give the names that parts of a path would have as modules."""
    return {part.partition(".")[0] for part in path.split("/")}


def _listed(archive: Path) -> list[str]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    with tarfile.open(archive) as packed:
        return packed.getnames()
