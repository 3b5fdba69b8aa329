"""Wheels of what has none: each sdist of a lock is taken from our own builds, or built, and looked at before use."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName

from patchlock.core import atomic_files, uv
from patchlock.distributions import wheelhouse, wheels
from patchlock.distributions.wheelhouse import LocalWheel, LocalWheels
from patchlock.environments import venv
from patchlock.environments.builds import _build_system, _context, _records, _sandbox, _store
from patchlock.environments.builds._context import BuildContext, Pins
from patchlock.environments.builds._records import BuildInputs, BuildRecord
from patchlock.environments.builds._tools import compilers, identify, require
from patchlock.locks import wheel_choice
from patchlock.locks.lock_request import Request
from patchlock.model.app import rules_of
from patchlock.model.errors import BuildError, WheelError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.profile import Profile
from patchlock.model.recipes import Jobs, Recipe, fits, in_order, recipe_for
from patchlock.patches import engine, targets

NOTE = "builds.toml"
"""In a generation: which wheel came from which sdist."""
_USED = re.compile(r"^DEBUG Installing (`[^`]+`(?:, `[^`]+`)*) in `", re.MULTILINE)
"""uv 0.13.8, `crates/uv-build-frontend`; where it is worded otherwise one day, all pins count as used."""


def provide(request: Request, lock: Lock, *, tell: Callable[[str], None], held: int) -> LocalWheels:
    """Give a wheel of each sdist of a lock, built earlier or now, in the order of their recipes.

    Args:
        request: the pair.
        lock: what is to be installed.
        tell: told what is being built.
        held: descriptor of the installation's lock, for children.

    Raises:
        BuildError: a build failed, made something else, or was chosen and is for another version.
        PolicyError: a build wants something that is not pinned.
        ProgramMissingError: a program of a build is missing.
        SdistError: an sdist holds what none should.
    """
    packages, recipes = built_packages(request, lock), recipes_of(request)
    for recipe in recipes:
        if recipe.option and recipe.name not in packages:
            version = next((str(one.version) for one in lock.packages if one.name == recipe.name), "none")
            raise BuildError(
                f"{recipe.option} is for {recipe.name} {recipe.versions}, and the lock has {version}",
                where=str(recipe.origin),
                remedy=f"use the wheel: --without {recipe.option}",
            )
    if not packages:
        return {}
    shop = BuildContext(request=request, lock=lock, pins=_context.pins_of(request, lock), tell=tell, held=held)
    made: dict[NormalizedName, LocalWheel] = {}
    for name in in_order(packages, recipes):
        package = packages[name]
        made[name] = _wheel(shop, package, recipe_for(name, package.version, recipes), made)
    return made


def built_packages(request: Request, lock: Lock) -> dict[NormalizedName, LockedPackage]:
    """Give what is built here: the sdists of a lock, and the sources of what a person wants no wheel of."""
    allowed, recipes = rules_of(request).source_builds, recipes_of(request)
    found: dict[NormalizedName, LockedPackage] = {}
    for package in lock.packages:
        recipe = recipe_for(package.name, package.version, recipes)
        if recipe and recipe.archive:
            archive = recipe.archive
            found[package.name] = dataclasses.replace(package, url=archive.url, sha256=Sha256(archive.sha256))
        elif package.name in allowed:
            found[package.name] = package
    return found


def record_built_wheels(generation: Path, request: Request, lock: Lock, local: LocalWheels) -> None:
    """Write into a generation which of its wheels was built here, and from which sdist; nothing where none was."""
    import tomlkit  # which is only for who writes

    sources = built_packages(request, lock)
    built = [(package, local[name]) for name, package in sources.items() if name in local]
    rows = [
        {
            "name": package.name,
            "version": str(package.version),
            "sdist": package.sha256,
            "wheel": wheel.sha256,
            "file": wheel.path.name,
        }
        for package, wheel in built
    ]
    if rows:
        text = f"# Written by patchlock: wheels that were built here.\n\n{tomlkit.dumps({'wheel': rows})}"
        (generation / NOTE).write_text(text, encoding="utf-8", newline="\n")


def recipes_of(request: Request) -> tuple[Recipe, ...]:
    """Join the recipes of the app, which win, and of the profile; those of other sources only where they are chosen."""
    both = (*request.app.recipes, *request.profile.recipes)
    return tuple(
        recipe
        for recipe in both
        if fits(recipe, request.profile.name, request.platform.name)
        and (not recipe.option or recipe.option in request.chosen)
    )


def inputs_of(request: Request, package: LockedPackage, recipe: Recipe | None) -> BuildInputs:
    """Gather what is known of a build before it runs."""
    settings = {f"${name}": value for name, value in recipe.environment.items()} if recipe else {}
    if recipe and recipe.patches:
        settings["patches"] = _records.patches_digest(recipe.patches)
    if recipe and recipe.test:
        settings["test"] = "\n".join((*recipe.test, *recipe.test_with))
    return BuildInputs(
        what=f"{package.name}=={package.version}",
        source={"sdist": package.sha256},
        recipe=settings,
        python=str(request.profile.python),
        platform=request.platform.name,
    )


def _wheel(shop: BuildContext, package: LockedPackage, recipe: Recipe | None, made: LocalWheels) -> LocalWheel:
    """Give the wheel of one sdist: our own earlier build, or a new one."""
    about = inputs_of(shop.request, package, recipe)
    served = {
        name: LockedPackage(name=name, version=made[name].version, url="", sha256=made[name].sha256, why="built here")
        for name in (recipe.after if recipe else ())
        if name in made
    }
    shop = dataclasses.replace(shop, pins={**shop.pins, **served})
    found = _built(shop, package, about.digest)
    if found is not None:
        return found
    places = _context.fetch_build_requirements(shop, {name: made[name].path for name in served})
    with _store.work_folder(shop.cache, about.digest) as (work, lock):
        found = _built(shop, package, about.digest)  # another patchlock may have built it meanwhile
        if found is not None:
            return found
        shop.tell(f"Building {package.name}=={package.version}")
        made_now = _build(shop, package, recipe, about, work, lock, places)
        shop.tell(f"Built {package.name}=={package.version}")
        return made_now


def _built(shop: BuildContext, package: LockedPackage, inputs: Sha256) -> LocalWheel | None:
    path = os.environ.get("PATH", os.defpath)
    found = _store.find(shop.cache, inputs, shop.pins, lambda names: identify(names, path))
    if found is None:
        return None
    ((filename, sha256),) = found[0].files.items()
    kept = wheelhouse.place(shop.cache, sha256, filename)
    if not kept.is_file():
        return None
    return LocalWheel(name=package.name, version=package.version, path=kept, sha256=sha256)


def _build(
    shop: BuildContext,
    package: LockedPackage,
    recipe: Recipe | None,
    about: BuildInputs,
    work: Path,
    lock: int,
    places: Mapping[NormalizedName, Path],
) -> LocalWheel:
    from patchlock.distributions import sdist_unpacking  # most installs find what was built before

    started = time.monotonic()
    log = _store.log(shop.cache, about.digest)
    what = f"the build of {package.name} {package.version}"
    env = _context.build_variables(work, recipe.environment if recipe else {}, recipe.jobs if recipe else Jobs())
    if recipe:
        require(recipe.needs, what, env["PATH"])
    archive = wheelhouse.find(shop.cache, package.sha256) or _context.fetch_packages(shop, [package])[package.name]
    source = sdist_unpacking.unpack(archive, work / "source", links=bool(recipe and recipe.archive))
    if recipe and recipe.patches:
        _patch(recipe, source)
    known = rules_of(shop.request).of_builds([package])
    _build_system.add_requirements(source, [required for one in known for required in one.build])
    (work / "build.txt").write_text("".join(f"{pin}\n" for pin in shop.pins.values()), encoding="utf-8")
    _sandbox.run(
        *(str(uv.find()), "build", "--wheel", "--force-pep517", "--no-config", "--offline", "--no-index", "-v"),
        *(option for place in places.values() for option in ("--find-links", str(place.parent))),
        *("--build-constraints", "build.txt", "--require-hashes", "--no-create-gitignore"),
        *("--python", _context.python_of(shop.request, work), "--out-dir", "out", str(source)),
        what=what,
        cwd=work,
        env=env,
        log=log,
        keep_open=[shop.held, lock],
    )
    wheel = check_wheel(shop.request.profile, shop.request.platform, package, work / "out", log)
    if recipe and recipe.test:
        _prove(shop, package, recipe, wheel, work, env, log)
    tools = () if wheel.is_pure else compilers(env)
    record = BuildRecord(
        inputs=about.digest,
        requirements=_used(log, shop.pins),
        tools=identify((*tools, *(recipe.needs if recipe else ())), env["PATH"]),
        files={wheel.path.name: wheel.sha256},
        seconds=time.monotonic() - started,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    kept = wheelhouse.place(shop.cache, wheel.sha256, wheel.path.name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_copy(wheel.path, kept)
    _store.store_build(shop.cache, record, about, {})
    return LocalWheel(name=package.name, version=package.version, path=kept, sha256=wheel.sha256)


def _patch(recipe: Recipe, source: Path) -> None:
    """Apply the patches of a recipe to the unpacked sdist.

    Raises:
        PatchError: one does not fit, or does not do what it says.
    """
    listed = [PurePosixPath(p.relative_to(source).as_posix()) for p in sorted(source.rglob("*")) if p.is_file()]
    wanted = targets.candidates(recipe.patches, listed)
    patched = engine.apply(recipe.patches, {path: (source / path).read_bytes() for path in wanted})
    engine.require_complete(patched, f"{recipe.origin}, the recipe of {recipe.name}")
    for change in patched.changes:
        target = source / change.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(change.after)
        if change.is_executable:
            target.chmod(0o755)


def _used(log: Path, pins: Pins) -> dict[str, Sha256]:
    """Say which pins uv has put into the build's environment; all of them where its log does not tell."""
    text = log.read_text(encoding="utf-8", errors="replace")
    names = {word.partition("==")[0] for line in _USED.findall(text) for word in re.findall(r"`([^`]+)`", line)}
    known = {NormalizedName(name) for name in names} & pins.keys()
    chosen = known if names and len(known) == len(names) else pins.keys()
    return {name: pins[name].sha256 for name in sorted(chosen)}


def _prove(
    shop: BuildContext,
    package: LockedPackage,
    recipe: Recipe,
    wheel: MadeWheel,
    work: Path,
    env: dict[str, str],
    log: Path,
) -> None:
    """Run the test of a recipe where the wheel and what it names of the lock are installed, and nothing else.

    Raises:
        BuildError: it failed.
    """
    locked = {other.name: other for other in shop.lock.packages}
    unknown = [name for name in recipe.test_with if name not in locked]
    if unknown:
        raise BuildError(
            f"the test of {package.name} wants {', '.join(unknown)}, which the lock does not have",
            where=str(recipe.origin),
            remedy="correct `test-with`",
        )
    folder = work / "test"
    base = ("--no-config", "--python", str(venv.interpreter(folder)), "--no-deps")
    python = _context.python_of(shop.request, work)
    uv.run("venv", "-q", "--no-config", "--no-project", "-p", python, "test", cwd=work, installing=True)
    uv.run("pip", "install", *base, "--offline", "--no-index", str(wheel.path), cwd=work, installing=True)
    if recipe.test_with:
        (work / "test.txt").write_text("".join(f"{locked[name]}\n" for name in recipe.test_with), encoding="utf-8")
        only = ("--require-hashes", "--only-binary", ":all:", "-r", "test.txt")
        uv.run("pip", "install", *base, *only, cwd=work, installing=True, keep_open=[shop.held])
    (work / "empty").mkdir()
    path = os.pathsep.join([str(venv.interpreter(folder).parent), env["PATH"]])
    _sandbox.run(
        *recipe.test,
        what=f"the test of {package.name} {package.version}",
        cwd=work / "empty",
        env={**env, "PATH": path},
        log=log,
        keep_open=[shop.held],
    )


@dataclass(frozen=True, kw_only=True)
class MadeWheel:
    """The wheel that a build made."""

    path: Path
    sha256: Sha256
    is_pure: bool
    """Nothing in it was compiled for one platform."""


def check_wheel(profile: Profile, platform: Platform, package: LockedPackage, out: Path, log: Path) -> MadeWheel:
    """Look at what a build made, as an installer would.

    Args:
        profile: for which it was built.
        platform: the same.
        package: what the lock names.
        out: the folder with the wheel.
        log: of the build, for messages.

    Raises:
        BuildError: it is not the one wheel that was asked for.
    """
    found = sorted(out.glob("*.whl")) if out.is_dir() else []
    what = f"{package.name} {package.version}"
    if len(found) != 1:
        raise BuildError(f"the build of {what} made {len(found)} wheels, and must make one", where=str(log))
    try:
        wheel = wheels.read(found[0], None)
    except WheelError as error:
        raise BuildError(
            f"the build of {what} made a wheel that no installer should be given: {error.what}",
            where=str(log),
            remedy="report it to the sdist's authors, or patch it with a recipe",
            evidence=error.evidence,
        ) from error
    if (wheel.name, wheel.version) != (package.name, package.version):
        raise BuildError(
            f"the build of {what} made {wheel.name} {wheel.version}",
            where=str(log),
            remedy="the lock names another one: correct the requirement, or patch the sdist with a recipe",
        )
    if wheel_choice.best_wheel([wheel.filename], platform, profile) is None:
        raise BuildError(
            f"the build of {what} made {wheel.filename}, which does not run on {platform.name}",
            where=str(log),
            remedy="correct its recipe",
        )
    return MadeWheel(path=found[0], sha256=wheel.sha256, is_pure=wheel.filename.endswith("-any.whl"))
