"""C extensions of a few lines for tests: a build backend that calls the compiler, sdists for it, and what each lacks."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest
from miniature import PYTHON, World, wheel
from packaging.utils import canonicalize_name
from packaging.version import Version
from sdists import ask, info, offer, sdist

from patchlock.distributions import wheelhouse
from patchlock.distributions.wheelhouse import LocalWheels
from patchlock.environments.builds import _source_builds
from patchlock.locks import relock
from patchlock.locks.lock_request import Request
from patchlock.locks.relock import Kept
from patchlock.model import build_constraints
from patchlock.model.build_constraints import BuildConstraints
from patchlock.model.digests import sha256
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance

HEADERS = Path(sysconfig.get_path("include"))
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None or not (HEADERS / "Python.h").is_file(),
    reason="there is no C compiler, or Python's headers are not installed",
)

CODE = """\
#include <Python.h>
#ifndef ANSWER
#define ANSWER 41
#endif
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(ANSWER + 1); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "delta", "", -1, methods};
PyMODINIT_FUNC PyInit_delta(void) { return PyModule_Create(&module); }
"""

BACKEND = """
import base64, hashlib, os, shlex, subprocess, sysconfig, zipfile

def compile_(name, folder):
    path = os.path.join(folder, name + sysconfig.get_config_var("EXT_SUFFIX"))
    flags = shlex.split(os.environ.get("CFLAGS", ""))
    include = "-I" + sysconfig.get_path("include")
    if os.path.exists("early.py"):
        exec(open("early.py").read(), {"__name__": "early"})
    done = subprocess.run(["cc", "-shared", "-fPIC", include, *flags, name + ".c", "-o", path])
    if done.returncode:
        raise SystemExit("the compiler failed")
    return path

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, version = [line.split(": ")[1].strip() for line in open("PKG-INFO") if line.startswith(("Name", "Version"))]
    path = compile_("delta", os.getcwd())
    minor = sysconfig.get_config_var("py_version_nodot")
    tag = f"cp{minor}-cp{minor}-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"{name}-{version}.dist-info"
    files = {
        os.path.basename(path): open(path, "rb").read(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: false\\nTag: {tag}\\n".encode(),
    }
    rows = []
    for file, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{file},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = "\\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    made = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, made), "w") as packed:
        for file, data in files.items():
            packed.writestr(file, data)
    return made
"""

RULES = """\
[[build]]
names = ["delta"]
why = "x"
source = "tests"

[[metadata]]
name = "delta"
version = "1.0"
requires = []
build = ["compiling"]
why = "x"
source = "tests"
"""


def recipe(keys: str = "", name: str = "delta") -> str:
    """Write a recipe."""
    return f'[[recipe]]\nname = "{name}"\nwhy = "x"\nsource = "tests"\n{keys}\n'


def files(**others: str) -> dict[str, str]:
    """Give the files of the sdist of delta; `early` is run before it is compiled, in the build's own process."""
    system = '[build-system]\nrequires = ["compiling"]\nbuild-backend = "compiling"\n'
    found = {"PKG-INFO": info("delta"), "pyproject.toml": system, "delta.c": CODE}
    return found | {f"{name}.py" if name == "early" else name.replace("_", "."): text for name, text in others.items()}


def backend(world: World) -> Path:
    """Build the wheel of the backend `compiling`."""
    return wheel(world.wheels, "compiling", "1.0", files={"compiling.py": BACKEND})


def locked(world: World, folder: Path, archive: Path, rules: str = "") -> tuple[Request, Lock]:
    """Give the pair of an app that needs delta, and a lock of delta alone; its files are on this machine already."""
    request = ask(world, b"alpha==9.0\nbeta\ndelta\n", folder, RULES + rules)
    return request, pinned(request, [("delta", archive)], [("compiling", backend(world))])


def pinned(request: Request, sdists: list[tuple[str, Path]], pins: list[tuple[str, Path]]) -> Lock:
    """Write a lock of sdists and what builds them, without asking uv; the files go where fetched ones lie."""
    build = BuildConstraints(sdists=(), packages=tuple(_package(request, *pin, why="") for pin in pins))
    path = request.catalogue.lock_path(request.app, request.profile, request.platform)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = build_constraints.render(build, "tests")
    request.catalogue.build_path(path).write_text(text)
    made = Provenance(
        app="mini",
        profile="tiny",
        platform=request.platform.name,
        python=PYTHON,
        commit=CommitId("0" * 40),
        as_of="",
        newer={},
        uv="",
        patches=(),
        inputs={},
        resolver_input=Sha256("0" * 64),
        build_constraints=build_constraints.digest(text),
    )
    return Lock(provenance=made, packages=tuple(_package(request, *one, why="sdist") for one in sdists))


def _package(request: Request, name: str, path: Path, why: str) -> LockedPackage:
    digest = sha256(path.read_bytes())
    kept = wheelhouse.place(request.cache, digest, path.name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(path.read_bytes())
    version = Version(path.name.removesuffix(".tar.gz").split("-")[1])
    return LockedPackage(name=canonicalize_name(name), version=version, url="", sha256=digest, why=why)


def really_locked(world: World, folder: Path, archive: Path, rules: str = "") -> Request:
    """Offer an sdist of delta in the index, and lock an app that needs it."""
    offer(world, backend(world), archive)
    request = ask(world, b"alpha==9.0\nbeta\ndelta\n", folder, RULES + rules)
    relock.write(request, relock.resolve(request, Kept()))
    return request


def simple(folder: Path, **others: str) -> Path:
    """Pack the sdist of delta."""
    return sdist(folder / "sdists", "delta", "1.0", files(**others))


class Told(list[str]):
    """What was told while wheels were provided."""

    @property
    def built(self) -> list[str]:
        """Names of what was built."""
        return [line.removeprefix("Building ") for line in self if line.startswith("Building ")]


def provide(request: Request, lock: Lock) -> tuple[LocalWheels, Told]:
    """Provide the wheels of a lock's sdists, and tell what was built."""
    told = Told()
    request.cache.mkdir(exist_ok=True)
    with (request.cache / "held").open("w") as held:
        return _source_builds.provide(request, lock, tell=told.append, held=held.fileno()), told
