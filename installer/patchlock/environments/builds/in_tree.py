"""Extensions that an app keeps in its own tree: built in a copy, kept by digest, brought in as files of ours."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.core import uv
from patchlock.environments import venv
from patchlock.environments.builds import _context, _sandbox, _store, _tools, in_tree_files
from patchlock.environments.builds._context import BuildContext
from patchlock.environments.builds._records import BuildInputs, BuildRecord
from patchlock.locks.lock_request import Request
from patchlock.model.digests import sha256
from patchlock.model.errors import BuildError, PolicyError, UnsatisfiableError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock
from patchlock.model.recipes import InTree, fits
from patchlock.worktree import upstream_cache


def in_tree_builds(request: Request) -> tuple[InTree, ...]:
    """List what is built in the tree of an app, in order."""
    here = (request.profile.name, request.platform.name)
    return tuple(one for one in request.app.in_tree if fits(one, *here))


def build_extensions(
    request: Request, lock: Lock, generation: Path, applied: CommitId, *, tell: Callable[[str], None], held: int
) -> tuple[PurePosixPath, ...]:
    """Build what the working tree needs, as its sources stand now, and put it there.

    Args:
        request: the pair; its working tree has been moved.
        lock: of the generation, which names what pins the builds.
        generation: the folder that keeps what was built.
        applied: the commit whose files are the sources; what else the user keeps beside them takes no part.
        tell: told what is being built.
        held: descriptor of the installation's lock, for children.

    Returns:
        Paths from the clone's root where a file of the user stands, which was kept.

    Raises:
        BuildError: a build failed, or did not make what it should.
        PolicyError: a build wants something that is not pinned.
        ProgramMissingError: a program of a build is missing.
    """
    files: dict[PurePosixPath, Path] = {}
    sources: dict[PurePosixPath, Sha256] = {}
    builds = in_tree_builds(request)
    if builds:
        pins = _context.pins_of(request, lock)
        shop = BuildContext(request=request, lock=lock, pins=pins, tell=tell, held=held)
        for build in builds:
            below = request.app.directory / build.folder
            used = _sources(request, below, applied)
            sources |= {below / path: digest for path, digest in used.items()}
            files |= {below / path: file for path, file in _made(shop, build, used).items()}
    in_tree_files.save_files(generation, files, sources)
    return in_tree_files.apply_generation(request.installation, generation)


def present(generation: Path, source: Path) -> dict[str, Sha256]:
    """Give the digests of what was built and what it was built from, as the tree has it; see `Receipt.present`."""
    has = in_tree_files.load_files(generation)
    paths = (*has.products, *has.sources)
    return {str(p): sha256((source / p).read_bytes()) for p in paths if (source / p).is_file()}


def inputs_of(request: Request, build: InTree, sources: Mapping[PurePosixPath, Sha256]) -> BuildInputs:
    """Gather what is known of a build before it runs."""
    settings = {f"${name}": value for name, value in build.environment.items()}
    settings |= {"command": "\n".join(build.command), "products": "\n".join(build.products)}
    settings |= {"requires": "\n".join(map(str, build.requires))}
    return BuildInputs(
        what=f"{request.app.name}:{build.id}",
        source={str(path): digest for path, digest in sources.items()},
        recipe=settings,
        python=str(request.profile.python),
        platform=request.platform.name,
    )


def _sources(request: Request, below: PurePosixPath, applied: CommitId) -> dict[PurePosixPath, Sha256]:
    tree = request.installation.source
    listed = upstream_cache.files(tree, applied, below)
    return {p: sha256((tree / below / p).read_bytes()) for p in sorted(listed) if (tree / below / p).is_file()}


def _made(shop: BuildContext, build: InTree, sources: Mapping[PurePosixPath, Sha256]) -> dict[PurePosixPath, Path]:
    """Give the products of a build, by path from its folder: of an earlier build, or of a new one."""
    about = inputs_of(shop.request, build, sources)
    found = _kept(shop, about.digest)
    if found is None:
        places = _context.fetch_build_requirements(shop, {})
        with _store.work_folder(shop.cache, about.digest) as (work, lock):
            found = _kept(shop, about.digest)
            if found is None:
                shop.tell(f"Building {build.id}")
                _build(shop, build, about, work, lock, places)
                shop.tell(f"Built {build.id}")
                found = _kept(shop, about.digest)
    if found is None:
        raise BuildError(f"what was built for {build.id} is not there", where=str(shop.cache))
    return found


def _kept(shop: BuildContext, inputs: Sha256) -> dict[PurePosixPath, Path] | None:
    path = os.environ.get("PATH", os.defpath)
    found = _store.find(shop.cache, inputs, shop.pins, lambda names: _tools.identify(names, path))
    if found is None:
        return None
    record, folder = found
    files = {PurePosixPath(name): folder / "products" / name for name in record.files}
    whole = all(file.is_file() and sha256(file.read_bytes()) == record.files[str(path)] for path, file in files.items())
    return files if whole else None


def _build(
    shop: BuildContext, build: InTree, about: BuildInputs, work: Path, lock: int, places: Mapping[NormalizedName, Path]
) -> None:
    started = time.monotonic()
    log = _store.log(shop.cache, about.digest)
    what = f"the build of {build.id} in {shop.request.app.name}"
    env = _context.build_variables(work, build.environment, build.jobs)
    _tools.require(build.needs, what, env["PATH"])
    copy = work / "tree" / build.folder
    below = shop.request.installation.source / shop.request.app.directory / build.folder
    for path in about.source:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(below / path, copy / path)
    for glob in build.products:
        (copy / glob).parent.mkdir(parents=True, exist_ok=True)
    used = _furnish(shop, build, work, places)
    scripts = venv.interpreter(work / "venv").parent
    _sandbox.run(
        *build.command,
        what=what,
        cwd=copy,
        env={**env, "PATH": os.pathsep.join([str(scripts), env["PATH"]])},
        log=log,
        keep_open=[shop.held, lock],
    )
    made = _found(build, copy, set(map(PurePosixPath, about.source)), log)
    record = BuildRecord(
        inputs=about.digest,
        requirements={name: shop.pins[name].sha256 for name in used},
        tools=_tools.identify((*_tools.compilers(env), *build.needs), env["PATH"]),
        files={str(path): sha256(file.read_bytes()) for path, file in made.items()},
        seconds=time.monotonic() - started,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    _store.store_build(shop.cache, record, about, {f"products/{path}": file for path, file in made.items()})


def _furnish(
    shop: BuildContext, build: InTree, work: Path, places: Mapping[NormalizedName, Path]
) -> tuple[NormalizedName, ...]:
    """Make an environment of exactly what a build requires, all of it pinned; gives the names.

    Raises:
        PolicyError: something of it is not pinned.
    """
    links = [option for place in places.values() for option in ("--find-links", str(place.parent))]
    local = ("--no-config", "--offline", "--no-index", *links)
    (work / "needs.txt").write_text("".join(f"{one}\n" for one in build.requires), encoding="utf-8")
    (work / "pins.txt").write_text("".join(f"{p.name}=={p.version}\n" for p in shop.pins.values()), encoding="utf-8")
    python = _context.python_of(shop.request, work)
    uv.run("venv", "-q", "--no-config", "--no-project", "--python", python, "venv", cwd=work, installing=True)
    inside = ("--python", str(venv.interpreter(work / "venv")))
    try:
        done = uv.run(
            *("pip", "compile", "needs.txt", "-c", "pins.txt", *local, *inside, "--no-header", "--no-annotate", "-q"),
            cwd=work,
            installing=True,
        )
    except UnsatisfiableError as error:
        raise PolicyError(
            f"the build of {build.id} wants something that is not pinned",
            where=str(build.origin),
            remedy=f"lock again, which pins its `requires`: `patchlock lock {shop.request.app.name}`",
            evidence=error.evidence,
        ) from error
    names = tuple(canonicalize_name(name) for name in re.findall(r"(?m)^([A-Za-z0-9._-]+)==", done.text))
    loose = [name for name in names if name not in shop.pins]
    if loose:
        raise PolicyError(
            f"the build of {build.id} wants {', '.join(loose)}, which is not pinned",
            where=str(build.origin),
            remedy=f"lock again, which pins its `requires`: `patchlock lock {shop.request.app.name}`",
        )
    if names:
        (work / "closure.txt").write_text("".join(f"{shop.pins[name]}\n" for name in names), encoding="utf-8")
        exact = ("--no-deps", "--require-hashes", "-r", "closure.txt")
        uv.run("pip", "install", *local, *inside, *exact, cwd=work, installing=True, keep_open=[shop.held])
    return names


def _found(build: InTree, copy: Path, before: set[PurePosixPath], log: Path) -> dict[PurePosixPath, Path]:
    """Find the products in the copy.

    Raises:
        BuildError: one is missing.
    """
    made: dict[PurePosixPath, Path] = {}
    for glob in build.products:
        paths = {PurePosixPath(file.relative_to(copy).as_posix()): file for file in copy.glob(glob) if file.is_file()}
        new = {path: file for path, file in paths.items() if path not in before and not file.is_symlink()}
        if not new:
            raise BuildError(
                f"the build of {build.id} made nothing that is called {glob}",
                where=str(log),
                remedy="correct `products` or `command` of its [[in-tree]] table",
            )
        made |= new
    return dict(sorted(made.items()))
