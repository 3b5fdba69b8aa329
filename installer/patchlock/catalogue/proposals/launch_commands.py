"""Which commands may start an app: what its documents say, its entry points, files that look like programs; pure."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import _required_arguments, documents, project_facts
from patchlock.catalogue.proposals.findings import Files
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Reached, Trees

_PYTHON = re.compile(
    r"(?i)(?:.*/)?(?:\$?\{?\"?%?python%?\"?\}?|python[\d.]*w?(?:\.exe)?|py(?:\.exe)?|[$%]\{?python\w*\}?%?)$"
)
_STARTERS = frozenset({"streamlit", "uvicorn", "gunicorn", "hypercorn", "chainlit", "gradio", "flask"})
_TRAINS = re.compile(
    r"(?i)(?:^|[/_.-])(?:fine-?tun\w*|train\w*|pre-?process\w*|prepare\w*|convert\w*|export\w*|extract\w*|evals?|"
    r"evaluat\w*|bench\w*|test\w*|lint|download\w*|install\w*|setup|build\w*|docs?|upload\w*|merge\w*|quantiz\w*|"
    r"dataset\w*|data|slice\w*|annotat\w*|mkdocs|pytest|client|hubconf|conftest|noxfile)(?=[/_.-]|$)"
)
_PLACEHOLDER = re.compile(r"[<>\[\]{}$%|]|\.\.\.|…|(?i:path/|your|/home/|example)")
_PREPARES = re.compile(
    r"(?i)(?:init|initiali[sz]e|env|config\w*|setup|install\w*|create|login|download\w*|dl\w*|fetch|list|version|help)"
)
"""Words after a program with which it prepares, and does nothing else."""
_WEB = re.compile(r"(?i)(?:^|[/_.-])(?:web-?_?ui|web-?_?app|gradio|streamlit)(?=[/_.=-]|$)")
_OPENS = re.compile(r"--?(?:share|public|host|listen|listen-host|server[_-]name|bind|ip)(?:=.*)?$")
"""Options that let others in, which nobody has to want."""
_SERVES = re.compile(
    rb"\.launch\(|\bstreamlit\b|uvicorn\.(?:run|Server)\(|\.serve_forever\(|\bapp\.run\(|run_simple\(|web\.run_app\("
)
_STARTS = re.compile(rb"(?m)^if __name__ ==? ?['\"]__main__['\"]\s*:")
_RELATIVE = re.compile(rb"(?m)^from \.")
_NAMES = ("app.py", "webui.py", "web_ui.py", "gradio_app.py", "main.py", "launch.py", "server.py", "run.py", "start.py")
_PARTS = re.compile(r"(?i)(?:app|webui|gradio|demo|infer|inference|cli|main|server|tts)")
_SKIPPED = frozenset({"tests", "test", "docs", "third_party", "node_modules", "benchmarks", "ci", "notebooks"})


_Key = tuple[tuple[str, ...], str]
"""A program, and the folder from which its module is found."""


@dataclass(frozen=True, kw_only=True)
class LaunchCommand:
    """A command that may start the app, and where it stands."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    why: str
    """A clause with its place."""
    serves: bool
    """What it comes to serves a page or requests."""


@dataclass(frozen=True, kw_only=True)
class _Mode:
    """A line that gives a program options without values, or nothing."""

    why: str
    arguments: tuple[str, ...]
    is_web: bool
    """It speaks of a page."""


def candidates(files: Files, trees: Trees, most: int = 8) -> tuple[LaunchCommand, ...]:
    """List the commands, the likeliest first: what people are told before what is guessed, a server before a program.

    What the README says and the scripts of the project come before what other documents say of other uses.

    Args:
        files: Python files, project files and documents.
        trees: of the Python files.
        most: how many are looked at.
    """
    code = trees.files
    scripts = entry_points(files)
    found: dict[_Key, tuple[str, tuple[str, ...]]] = {}
    modes: dict[_Key, list[_Mode]] = {}
    said: dict[_Key, list[Sequence[str]]] = {}
    first: set[_Key] = set()
    for line in documents.told(files):
        started = _started(line, code, scripts)
        if started is None:
            continue
        program, words = started
        if words and _PREPARES.fullmatch(words[0]):
            continue
        arguments = _options(words)
        why = f"{line.found.path}:{line.found.line} says so"
        key = (program, _home(program, line.folder, code))
        said.setdefault(key, []).append(words)
        first |= {key} if line.found.path.name.lower().startswith("readme") else set()
        if key not in found or (not arguments and found[key][1]):
            found[key] = (why, arguments)
        if all(word.startswith("-") for word in words):
            is_web = bool(words) and any(map(_WEB.search, (*words, line.found.path.stem)))
            modes.setdefault(key, []).append(_Mode(why=why, arguments=arguments, is_web=is_web))
    for name, target in scripts.items():
        entry = _entry(target, code)
        if entry is not None:
            found.setdefault((entry, ""), (f'the project names it as the script "{name}"', ()))
            first.add((entry, ""))
    for package in _packages(code):
        found.setdefault((("python", "-m", package), ""), ("it is a package that can be started", ()))
    for path in _guessed(trees):
        found.setdefault(_of_file(path, code), ("its name is that of a program", ()))
    ordered = sorted(found, key=lambda key: bool(_TRAINS.search(_named(key[0]))))[:most]
    made = {key: _made(key, found[key], modes.get(key, ()), said.get(key, ()), trees) for key in ordered}
    ordered.sort(
        key=lambda key: (
            bool(_TRAINS.search(_named(key[0]))),
            key not in first,
            key not in said,
            not made[key].serves,
        )
    )
    return tuple(made[key] for key in ordered)


def entry_points(files: Files) -> Mapping[str, str]:
    """Give the console and window scripts of a project: name → `module:function`."""
    found: dict[str, str] = {}
    for table in ("scripts", "gui-scripts"):
        listed = project_facts.project(files).get(table, {})
        found |= {str(k): str(v) for k, v in listed.items()} if isinstance(listed, dict) else {}
    found |= project_facts.poetry_scripts(files)
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(files.get(PurePosixPath("setup.cfg"), b"").decode("utf-8", errors="replace"))
        lines = parser.get("options.entry_points", "console_scripts", fallback="").splitlines()
    except configparser.Error:
        lines = []
    path = PurePosixPath("setup.py")
    module = import_graph.tree(path, files[path]) if path in files else None
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in {"console_scripts", "gui_scripts"}:
                    lines += [one.value for one in ast.walk(value) if isinstance(one, ast.Constant)]
    for line in lines:
        name, equals, target = str(line).partition("=")
        if equals:
            found[name.strip()] = target.strip()
    return found


def _followed(trees: Trees, command: Sequence[str], home: str) -> tuple[str, Reached]:
    """Find the PYTHONPATH of a program, with which it finds the modules of its own tree, and follow its imports.

    A module at the root is found from there, and one in a folder of the root that is no package from that folder: a
    `src` layout, with or without `__init__.py`. `home` comes first, where the program's own module is found from there.
    """
    homes: dict[str, str] = {}
    for path in trees.files:
        if len(path.parts) == 1:
            homes[path.stem] = "."
        elif path.parts[0] not in _SKIPPED:
            homes.setdefault(path.parts[0], ".")
    for path in trees.files:
        top = PurePosixPath(path.parts[0])
        if len(path.parts) > 1 and path.parts[0] not in _SKIPPED and top / "__init__.py" not in trees.files:
            homes.setdefault(path.parts[1].removesuffix(".py"), str(top))
    folders = [home] if home else []
    reached = import_graph.reached(trees.files, command, home, trees)
    for _ in range(3):
        missing = [one.module for one in reached.modules]
        if not reached.files and "-m" in command[:-1]:
            missing = [command[command.index("-m") + 1]]
        names = [name for one in missing if (name := one.partition(".")[0]) not in sys.stdlib_module_names]
        added = next((homes[name] for name in names if name in homes and homes[name] not in folders), None)
        if added is None:
            break
        folders.append(added)
        reached = import_graph.reached(trees.files, command, ":".join(folders), trees)
    return ":".join(folders), reached


def _named(program: Sequence[str]) -> str:
    return " ".join(program[1:2] if "-m" not in program and "-c" not in program else program[2:3])


def _made(
    key: _Key,
    told: tuple[str, tuple[str, ...]],
    modes: Sequence[_Mode],
    said: Sequence[Sequence[str]],
    trees: Trees,
) -> LaunchCommand:
    program, home = key
    path, reached = _followed(trees, program, home)
    serves = program[0] in _STARTERS or any(_SERVES.search(trees.files[one]) for one in reached.files)
    why, arguments = told
    if not serves:
        # Its options may choose what it does: a page before anything else, and no option before others.
        mode = min(modes, key=lambda one: (not one.is_web, bool(one.arguments)), default=None)
        why, arguments = (mode.why, mode.arguments) if mode is not None else (why, ())
        serves = mode is not None and mode.is_web
    subcommand = _required_arguments.subcommand(trees, reached.files, said) if not arguments else ()
    command = (*program, *arguments, *subcommand)
    required = _required_arguments.read(trees, reached.files, command, said)
    return LaunchCommand(
        command=(*command, *required.given),
        environment={"PYTHONPATH": path} if path else {},
        why="; ".join((why, *required.remarks)),
        serves=serves,
    )


def _started(
    line: documents.Told, code: Files, scripts: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Read which of the app's programs a command line starts, and with which arguments."""
    words = line.words
    if not words:
        return None
    first = words[0].rpartition("/")[2].removesuffix(".exe")
    if _PYTHON.match(words[0]):
        rest = list(words[1:])
        while rest and re.fullmatch(r"-[IsSuBEOWX]\w*", rest[0]):
            rest.pop(0)
        if rest[:1] == ["-m"] and len(rest) > 1:
            inside = PurePosixPath(*rest[1].split(".")) if re.fullmatch(r"[\w.]+", rest[1]) else PurePosixPath("-")
            if rest[1] in _STARTERS:
                return _started_by(rest[1], rest[2:], line.folder, code)
            ends = {(inside / "__main__.py").parts, inside.with_suffix(".py").parts}
            if not any(path.parts[-len(end) :] == end for path in code for end in ends):
                return None
            return ("python", "-m", rest[1]), tuple(rest[2:])
        script = _script(rest[0], line.folder, code) if rest else None
        return (("python", str(script)), tuple(rest[1:])) if script else None
    if first in _STARTERS:
        return _started_by(first, list(words[1:]), line.folder, code)
    if first in scripts and "/" not in words[0].strip("./"):
        program = _entry(scripts[first], code)
        return (program, tuple(words[1:])) if program else None
    return None


def _started_by(
    starter: str, rest: Sequence[str], folder: PurePosixPath, code: Files
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    words = [word for word in rest if word != "run"] if starter in {"streamlit", "chainlit"} else list(rest)
    target = next((word for word in words if not word.startswith("-")), "")
    after = words[words.index(target) + 1 :] if target else []
    if target.endswith(".py"):
        script = _script(target, folder, code)
        run = ("run",) if starter in {"streamlit", "chainlit"} else ()
        return ((starter, *run, str(script)), tuple(after)) if script else None
    module = _module(target)
    if target and (folder / module in code or module in code):
        return (starter, target), tuple(after)
    return None


def _module(target: str) -> PurePosixPath:
    """Give the file of `module:app`, from the folder in which it is started; of no module, a name no file has."""
    return PurePosixPath("/".join(target.partition(":")[0].split(".")) + ".py")


def _home(program: tuple[str, ...], folder: PurePosixPath, code: Files) -> str:
    """Say from which folder the module that a server starts is found; "" for the root, and for what is no module."""
    is_module = program[0] in _STARTERS and folder / _module(program[1]) in code
    return str(folder) if is_module and folder.parts else ""


def _of_file(path: PurePosixPath, code: Files) -> tuple[tuple[str, ...], str]:
    """Start a file, as a module of its package where it imports from that, and say from where the package is found."""
    if not _RELATIVE.search(code[path]) or len(path.parts) == 1:
        return ("python", str(path)), ""
    home = path.parent.parent
    while home.parts and home / "__init__.py" in code:
        home = home.parent
    module = ".".join(path.relative_to(home).with_suffix("").parts)
    return ("python", "-m", module), str(home) if home.parts else ""


def _script(word: str, folder: PurePosixPath, code: Files) -> PurePosixPath | None:
    if not word.endswith(".py") or _PLACEHOLDER.search(word):
        return None
    plain = PurePosixPath(word.replace("\\", "/").removeprefix("./"))
    return next((path for path in (folder / plain, plain) if path in code), None)


def _options(words: Sequence[str]) -> tuple[str, ...]:
    """Keep the options that are the same for everybody: neither examples, nor what lets others in."""
    kept: list[str] = []
    is_open = False
    for word in words:
        if word.startswith("-"):
            is_open = not (_OPENS.match(word) or _PLACEHOLDER.search(word))
            kept += [word] if is_open else []
            is_open = is_open and "=" not in word
        elif is_open and not _PLACEHOLDER.search(word) and "/" not in word and "." not in word and " " not in word:
            kept.append(word)
            is_open = False
        elif is_open:
            kept.pop()
            is_open = False
    return tuple(kept)


def _entry(target: str, code: Files) -> tuple[str, ...] | None:
    """Write the start of `module:function` for a tree that is not installed."""
    module, _, function = target.partition("[")[0].strip().partition(":")
    inside = PurePosixPath(*module.split("."))
    ends = (inside.with_suffix(".py"), inside / "__init__.py")
    file = next((path for end in ends for path in code if path.parts[-len(end.parts) :] == end.parts), None)
    if file is None or not re.fullmatch(r"[\w.]+", module) or not re.fullmatch(r"[\w.]+", function or "main"):
        return None
    if file.name == "__main__.py":
        return ("python", "-m", module.rpartition(".")[0])
    if _STARTS.search(code[file]) and file.name != "__init__.py":
        return ("python", "-m", module)
    if (file.parent / "__main__.py") in code and _leads_to(code[file.parent / "__main__.py"], inside.name, function):
        return ("python", "-m", module.rpartition(".")[0])
    name = function.partition(".")[0] or "main"
    return ("python", "-c", f"from {module} import {name}; {function or 'main'}()")


def _leads_to(main: bytes, module: str, function: str) -> bool:
    """Tell whether a `__main__.py` starts what a script of the project starts."""
    return module.encode() in main and (function or "main").encode() in main


def _packages(code: Files) -> Iterator[str]:
    for path in sorted(code, key=lambda path: (len(path.parts), str(path))):
        if path.name == "__main__.py" and len(path.parts) > 1 and not _SKIPPED.intersection(path.parts):
            parts = path.parent.parts[1:] if path.parts[0] == "src" else path.parent.parts
            if parts:
                yield ".".join(parts)


def _guessed(trees: Trees) -> list[PurePosixPath]:
    """List programs by their names: the root before folders, servers before others, known names before others."""
    ranked = []
    for path, data in trees.files.items():
        is_known = path.name in _NAMES
        if _SKIPPED.intersection(path.parts) or path.name in {"setup.py", "__main__.py"}:
            continue
        if not (is_known or _PARTS.search(path.name)):
            continue
        serves = b"import" in data and bool(_SERVES.search(data))
        if _STARTS.search(data) or (serves and import_graph.is_program(trees.of(path))):
            name = _NAMES.index(path.name) if is_known else len(_NAMES)
            ranked.append((len(path.parts), not serves, name, path))
    return [path for *_, path in sorted(ranked)]
