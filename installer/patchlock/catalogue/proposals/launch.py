"""How an app seems to be started, and whose import proves that its environment fits; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals import project_facts
from patchlock.catalogue.proposals.findings import Files, Launching
from patchlock.catalogue.proposals.imports import Import

_NAMES = ("app.py", "webui.py", "web_ui.py", "gradio_app.py", "main.py", "launch.py", "server.py", "run.py", "start.py")
_PARTS = re.compile(r"(?i)(?:app|webui|gradio|demo|infer|inference|cli|main|server|tts)")
_NOT_HERE = re.compile(
    r"(?i)(?:^|/)(?:tests?|docs?|examples?/.*train|third_party|benchmarks?|scripts?/ci)/|train|setup\.py$"
)
_SERVES = re.compile(rb"\.launch\(|streamlit|uvicorn\.run\(|\.serve_forever\(|app\.run\(")
_STARTS = re.compile(rb"(?m)^if __name__ == ['\"]__main__['\"]\s*:")
_MOST = 6
_KNOWN_AS: Mapping[str, str] = {
    "yaml": "pyyaml",
    "PIL": "pillow",
    "cv2": "opencv-python",
    "sklearn": "scikit-learn",
    "faiss": "faiss-cpu",
    "bs4": "beautifulsoup4",
    "dotenv": "python-dotenv",
}
"""Module → the distribution that has it, where their names differ."""


def launching(files: Files) -> Launching:
    """Choose the likeliest command: a server before a program, the root before folders, known names before others."""
    ranked = sorted(
        (rank, path) for path in files if path.suffix == ".py" and (rank := _rank(path, files[path])) is not None
    )
    scripts = project_facts.project(files).get("scripts", {})
    named = [str(target).partition(":")[0] for target in scripts.values()] if isinstance(scripts, dict) else []
    commands = [_command(path) for _, path in ranked]
    modules = [("python", "-m", name) for name in dict.fromkeys(named)]
    mains = [("python", "-m", _dotted(path.parent)) for path in sorted(files) if path.name == "__main__.py"]
    at_root = [one for (rank, _), one in zip(ranked, commands, strict=True) if rank[0] == 0]
    modules.sort(key=lambda one: not re.search("gradio|web|app", one[2]))
    all_of_them = list(dict.fromkeys([*at_root, *modules, *mains, *commands]))
    environment = {} if (roots := python_path(files)) == "" else {"PYTHONPATH": roots}
    if not all_of_them:
        why = "no file looks like a program; TODO: name the command"
        return Launching(command=("python",), environment=environment, why=why, others=())
    first = all_of_them[0]
    if first in at_root:
        why = "it lies at the root and starts a server" if _serves(first, files) else "it lies at the root"
    else:
        why = "the project names it as a script" if first in modules else "it can be started as a program"
    others = tuple(" ".join(one) for one in all_of_them[1 : 1 + _MOST])
    if PurePosixPath(first[-1]).parts[0] == "src":
        environment = {"PYTHONPATH": "src"}
    return Launching(command=first, environment=environment, why=why, others=others)


def _rank(path: PurePosixPath, data: bytes) -> tuple[int, int, int] | None:
    starts, serves = bool(_STARTS.search(data)), bool(_SERVES.search(data)) and b"import" in data
    known = path.name in _NAMES
    if _NOT_HERE.search(str(path)) or not (starts or serves) or not (known or _PARTS.search(path.name)):
        return None
    name = _NAMES.index(path.name) if known else len(_NAMES)
    return len(path.parts) - 1, int(not serves), name


def _command(path: PurePosixPath) -> tuple[str, ...]:
    return ("python", str(path))


def _serves(command: tuple[str, ...], files: Files) -> bool:
    return bool(_SERVES.search(files.get(PurePosixPath(command[-1]), b"")))


def _dotted(folder: PurePosixPath) -> str:
    parts = folder.parts[1:] if folder.parts[:1] == ("src",) else folder.parts
    return ".".join(parts) or "__main__"


def python_path(files: Iterable[PurePosixPath]) -> str:
    """Say what PYTHONPATH must be for the app's own packages: `src` where they lie there, `.` for the root, or "".

    Packages at the root are found by a script of the root without it, and by a script in a folder with it.
    """
    packages = {path.parent for path in files if path.name == "__init__.py"}
    if any(package.parent == PurePosixPath("src") for package in packages):
        return "src"
    return "." if any(len(package.parts) == 1 for package in packages) else ""


def own_modules(files: Iterable[PurePosixPath]) -> frozenset[str]:
    """Name the top-level modules that the tree itself has."""
    found = set()
    for path in files:
        if path.suffix == ".py":
            parts = path.parts[1:] if path.parts[0] == "src" and len(path.parts) > 1 else path.parts
            found.add(parts[0].removesuffix(".py"))
    return frozenset(found)


def modules_to_import(
    files: Files, imports: Collection[Import], required: Collection[NormalizedName], launch: Launching
) -> tuple[str, ...]:
    """Choose modules whose import proves something: required ones that the app imports, then what its program imports.

    Args:
        files: of the tree.
        imports: of its Python files.
        required: distributions that its requirement files name.
        launch: how it is started.
    """
    tops = [one.top for one in imports if not _NOT_HERE.search(str(one.found.path))]
    counted = sorted(set(tops), key=lambda top: (top != "torch", -tops.count(top), top))
    theirs = [top for top in counted if canonicalize_name(_KNOWN_AS.get(top, top)) in required][:_MOST]
    own = own_modules(files)
    program = _program(files, launch)
    ours = [one.module for one in imports if one.top in own and one.found.path == program]
    if not ours:
        packages = {path.parts[-2] for path in files if path.name == "__init__.py" and len(path.parts) == 2}
        packages |= {path.parts[1] for path in files if path.name == "__init__.py" and path.parts[0] == "src"}
        wanted = sorted(packages - {"tests", "test", "docs", "scripts", "examples", "src"})
        ours = [top for top in wanted if any(one.top == top for one in imports)] or wanted[:1]
    return (*theirs, *dict.fromkeys(ours[:4]))


def _program(files: Iterable[PurePosixPath], launch: Launching) -> PurePosixPath | None:
    last = launch.command[-1]
    if last.endswith(".py"):
        return PurePosixPath(last)
    inside = PurePosixPath(*last.split("."))
    wanted = {PurePosixPath(base) / one for base in (".", "src") for one in (f"{inside}.py", inside / "__main__.py")}
    return next((path for path in files if path in wanted), None)
