"""Say what this Python is, and what of other Pythons it sees; run as the app is started, in the app's folder.

Argument: JSON with `environment` (a virtual environment), `folder` (the app's), `python` (its version) and `ours`
(variables that patchlock itself sets). Prints JSON: `failed` and `notes`, each a list of clauses.
"""

import json
import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
_CONDA = ("CONDA_PREFIX", "CONDA_DEFAULT_ENV")
_PRELOADED = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")
_LIBRARIES = "LD_LIBRARY_PATH"
"""Like those before it, it gives a program other libraries than its own; but some drivers need it."""


def main() -> None:
    """Look around."""
    wanted = json.loads(sys.argv[1])
    environment, folder = Path(wanted["environment"]).resolve(), Path(wanted["folder"]).resolve()
    failed = [*_of_python(environment), *_of_path(environment, folder)]
    inherited = [name for name in (*_FOREIGN, *_CONDA) if os.environ.get(name) and name not in wanted["ours"]]
    failed += [f"{name} is set" for name in inherited]
    notes = [*_of_interpreter(wanted["python"]), *_of_libraries(wanted["ours"])]
    print(json.dumps({"failed": failed, "notes": notes}))  # noqa: T201 - the answer


def _of_python(environment: Path) -> Iterator[str]:
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    if Path(sys.prefix).resolve() != environment:
        yield f"sys.prefix is {sys.prefix}, not the environment"
    # Its folder only: the file itself is a link out of the environment.
    if not sys.executable or Path(sys.executable).parent.resolve() != scripts:
        yield f"sys.executable is {sys.executable}"
    first = shutil.which("python") or ""
    if not first or Path(first).parent.resolve() != scripts:
        yield f"the first python on PATH is {first or 'nothing'}"
    if site.ENABLE_USER_SITE:
        yield f"the user's site-packages are on: {site.getusersitepackages()}"


def _of_path(environment: Path, folder: Path) -> Iterator[str]:
    allowed = [environment, folder, *_library()]
    for entry in dict.fromkeys(sys.path):
        if not _is_inside(Path(entry), allowed):
            by = next(_named_in(Path(entry), environment), "")
            yield f"sys.path has {entry}" + (f", from {by}" if by else "")
    for name in ("sitecustomize", "usercustomize"):
        file = getattr(sys.modules.get(name), "__file__", None)
        # Its folder only: Debian's and Ubuntu's own Python have a link to /etc/python3.x in their standard library.
        if file and not _is_inside(Path(file).parent, allowed):
            yield f"{name} is {file}"


def _is_inside(path: Path, folders: "list[Path]") -> bool:
    real = path.resolve()
    for folder in folders:
        if real == folder:
            return True
        if folder in real.parents:
            # What is installed beside the standard library, or below it, is another environment's.
            beside = {"site-packages", "dist-packages"} & set(real.relative_to(folder).parts[:1])
            return not beside
    return False


def _library() -> "list[Path]":
    """Name the places of the standard library; the site-packages that may lie in them are no part of it."""
    base, zipped = Path(sys.base_prefix).resolve(), f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    found = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    return [*found, base / zipped, base / "lib" / zipped, base / "DLLs"]


def _named_in(entry: Path, environment: Path) -> Iterator[str]:
    """Find the `.pth` files of the environment that put a path on sys.path."""
    for packages in (path for path in map(Path, sys.path) if path.name == "site-packages"):
        if _is_inside(packages, [environment]):
            for file in sorted(packages.glob("*.pth")):
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
                if any((packages / line.strip()).resolve() == entry.resolve() for line in lines if line.strip()):
                    yield file.name


def _of_interpreter(installed: str) -> Iterator[str]:
    version = ".".join(map(str, sys.version_info[:3]))
    if version != installed:
        yield f"the interpreter was upgraded from {installed} to {version} since the install"
    if (Path(sys.base_prefix) / "conda-meta").is_dir():
        yield f"the interpreter is conda's: {sys.base_prefix}"


def _of_libraries(ours: "list[str]") -> Iterator[str]:
    for name in (*_PRELOADED, _LIBRARIES):
        value = os.environ.get(name, "")
        if value and name not in ours:
            conda = any((Path(part).parent / "conda-meta").is_dir() for part in value.split(os.pathsep) if part)
            yield f"{name} is inherited{', and names a conda environment' if conda else ''}: {value[:120]}"


if __name__ == "__main__":
    main()
