"""Put the gate into an environment: what keeps an app from installing packages while it runs; see `_children/gate.py`.

It is also the one hook by which anything of ours is in an app's process: `_children/preload.py` starts from it.
"""

from __future__ import annotations

import os
import py_compile
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from patchlock.core import process
from patchlock.environments._children.gate import SHIMS

_STARTER = 'import os; os.environ.get("PATCHLOCK_GATE") and __import__("_patchlock_gate").close()\n'
"""One line, as Python's `site` runs it in each start."""
_CODE = "import _patchlock_gate; _patchlock_gate.shim()"


def install_gate(environment: Path, python: Path) -> None:
    """Write the gate into a virtual environment: two modules, a `.pth` file and a folder of stand-ins for installers.

    On Windows a stand-in is a `.cmd` file, which only a shell finds.
    """
    (packages,) = environment.glob("Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages")
    programs = Path(__file__).parent / "_children"
    modules = []
    for program in ("gate", "preload"):
        modules.append(packages / f"_patchlock_{program}.py")
        modules[-1].write_bytes((programs / f"{program}.py").read_bytes())
    # Every start of Python reads them; compiling them each time would take longer than all the rest.
    if os.path.realpath(python) == os.path.realpath(sys.executable):
        for module in modules:
            # Where a Python that is started with `-I` looks, whatever PYTHONPYCACHEPREFIX says here.
            place = module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
            py_compile.compile(str(module), cfile=str(place), doraise=True)
    else:
        process.run(str(python), "-I", "-m", "py_compile", *map(str, modules), env=process.environment())
    (packages / "_patchlock_gate.pth").write_text(_STARTER, "utf-8")
    shims = folder(environment)
    shims.mkdir(exist_ok=True)
    for name in SHIMS:
        if os.name == "nt":
            (shims / f"{name}.cmd").write_text(f'@"{python}" -I -c "{_CODE}" {name} %*\r\n', "utf-8")
        else:
            shim = shims / name
            shim.write_text(
                f'#!/bin/sh\nexec {shlex.quote(str(python))} -I -c {shlex.quote(_CODE)} {name} "$@"\n', "utf-8"
            )
            shim.chmod(0o755)


def missing(environment: Path) -> tuple[str, ...]:
    """List the files of the gate that are missing or empty, from the environment's folder."""
    (packages,) = list(environment.glob("Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages")) or [
        environment / "lib"
    ]
    suffix = ".cmd" if os.name == "nt" else ""
    wanted = [packages / "_patchlock_gate.py", packages / "_patchlock_gate.pth"]
    wanted += [folder(environment) / f"{name}{suffix}" for name in SHIMS]
    return tuple(
        path.relative_to(environment).as_posix() for path in wanted if not (path.is_file() and path.stat().st_size)
    )


def folder(environment: Path) -> Path:
    """Name the folder of stand-ins, which goes first on PATH."""
    return environment / "gate"


def variables(environment: Path, path: str) -> Mapping[str, str]:
    """Give the variables that close the gate for a process and its children.

    Args:
        environment: a generation, `<app>@<profile>/environments/<id>`.
        path: the PATH of the process.
    """
    return {"PATCHLOCK_GATE": environment.parent.parent.name, "PATH": os.pathsep.join([str(folder(environment)), path])}
