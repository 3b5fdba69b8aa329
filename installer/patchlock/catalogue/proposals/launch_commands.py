"""Which commands may start an app: what its documents say, its entry points, files that look like programs; pure."""

from __future__ import annotations

import ast
import configparser
import dataclasses
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import _required_arguments, documents, project_facts
from patchlock.catalogue.proposals._required_arguments import SERVES
from patchlock.catalogue.proposals.findings import Files
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Reached, Trees

_PYTHON = re.compile(
    r"(?i)(?:.*/)?(?:\$?\{?\"?%?python%?\"?\}?|python[\d.]*w?(?:\.exe)?|py(?:\.exe)?|[$%]\{?python\w*\}?%?)$"
)
_STARTERS = frozenset({"streamlit", "uvicorn", "gunicorn", "hypercorn", "chainlit", "gradio", "flask"})
_TRAINS = re.compile(r"(?i)(?:^|[/_.-])(?:fine-?tun\w*|train\w*)(?=[/_.-]|$)")
_ASIDE = re.compile(
    r"(?i)(?:^|[/_.-])(?:pre-?process\w*|prepare\w*|convert\w*|export\w*|extract\w*|evals?|"
    r"evaluat\w*|bench\w*|test\w*|lint|download\w*|install\w*|setup|build\w*|docs?|upload\w*|merge\w*|quantiz\w*|"
    r"dataset\w*|data|slice\w*|annotat\w*|mkdocs|pytest|client|hubconf|conftest|noxfile)(?=[/_.-]|$)"
)
_WORD = re.compile(r"[./~<{\"']*\w[^\]`]*$")
"""Neither what a shell puts in, which may be nothing, nor what brackets make optional."""
_MAKES = re.compile(
    r"(?i)(?<![a-z])(?:fine-?[ _]?tun|train(?:ing)?(?![a-z])|(?:data)?[ _]?pre-?process|data-?[ _]?sets?(?![a-z])|"
    r"data[ _]?prepar|evaluat|benchmark)|训练|訓練|预处理|預處理|数据集|資料集|评估|評估"
)
"""Headings and pages about how a model is made or measured."""
_USES = re.compile(r"(?i)(?<![a-z])(?:infer|usage|demo(?![a-z])|web-?[ _]?ui|gui(?![a-z]))|推理|推論")
"""Headings about how it is used."""
_HELPS = re.compile(r"(?i)^(?:scripts?|tools?|utils?)/")
"""Folders of programs beside the app's own."""
_PLACEHOLDER = re.compile(r"[<>\[\]{}$%|]|\.\.\.|…|(?i:path/|your|/home/|example)")
_PREPARES = re.compile(
    r"(?i)(?:init|initiali[sz]e|env|config\w*|setup|install\w*|create|login|download\w*|dl\w*|fetch|list|version|help)"
)
"""Words after a program with which it prepares, and does nothing else."""
_HELP = frozenset({"-h", "--help"})
_WEB = re.compile(r"(?i)(?:^|[/_.-])(?:web-?_?ui|web-?_?app|gradio|streamlit)(?=[/_.=-]|$)")
_OF_A_MACHINE = re.compile(
    r"(?i)(?:^|[_\W])(?:CUDA|NVIDIA|NCCL|HIP|HSA|ROCM?|ROCR|AMD|ONEAPI|ZE|SYCL|proxy|token|key|secret|passw\w*|user\w*)"
    r"(?=[_\W]|$)|[$~`\\]|(?:^|[=:])/|://|xxx"
)
"""Settings that choose a card, name a place, or are a person's own."""
_THERE = frozenset({"HOME", "LOGNAME", "PATH", "PYTHONPATH", "USER", "USERNAME", "USERPROFILE"})
"""Variables that every machine has, or that are chosen here."""
_OPENS = re.compile(r"--?(?:share|public|host|listen|listen-host|server[_-]name|bind|ip)(?:=.*)?$")
"""Options that let others in, which nobody has to want."""
_CARD = re.compile(r"(?i)--?(?:device|gpus?|gpu[_-]?(?:ids?|index)|cuda)(?:=.*)?$")
"""Options that choose a card, which not every machine has."""
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_STARTS = re.compile(rb"(?m)^if __name__ ==? ?['\"]__main__['\"]\s*:")
_RELATIVE = re.compile(rb"(?m)^from \.")
_NAMES = ("app.py", "webui.py", "web_ui.py", "gradio_app.py", "main.py", "launch.py", "server.py", "run.py", "start.py")
_PARTS = re.compile(r"(?i)(?:app|webui|gradio|demo|infer|inference|cli|main|server|tts)")
_SKIPPED = frozenset({"tests", "test", "docs", "third_party", "node_modules", "benchmarks", "ci", "notebooks"})


_Key = tuple[tuple[str, ...], str]
"""A program, and the folder from which its module is found."""
_Block = tuple[PurePosixPath, int]
"""Lines of a document that follow each other."""


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

    What the README says and the scripts of the project come before what other documents say of other uses, and before
    a file that is given more there than the command has: that starts nothing. How a model is trained starts no app.

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
    exports: dict[_Key, list[documents.Told]] = {}
    first: set[_Key] = set()
    early: set[_Key] = set()
    told = documents.told(files)
    lines = [(line, started) for line in told if (started := _started(line, code, scripts))]
    starting = {(line.found.path, line.block) for line, _ in lines}
    starting |= {(line.found.path, line.block) for line in told if line.words[0] in {"docker", "podman"}}
    installing = {(line.found.path, line.block): line.found.line for line in told if "install" in line.words}
    for line, started in lines:
        program, words = started
        if (words and _PREPARES.fullmatch(words[0])) or not _HELP.isdisjoint(words) or _is_of_training(line):
            continue
        arguments = _options(words)
        why = f"{line.found.path}:{line.found.line} says so"
        key = (program, _home(program, line.folder, code))
        said.setdefault(key, []).append(words)
        exports.setdefault(key, []).append(_with_own_exports(line, starting, installing))
        if key not in found or len(arguments) < len(found[key][1]):  # the plainest line
            found[key] = (why, arguments)
        if all(word.startswith("-") for word in words):
            is_web = bool(words) and any(map(_WEB.search, (*words, line.found.path.stem)))
            modes.setdefault(key, []).append(_Mode(why=why, arguments=arguments, is_web=is_web))
    for name, target in scripts.items():
        entry = _entry(target, code)
        if entry is not None:
            key = (entry, _home(entry, PurePosixPath(), code))
            found.setdefault(key, (f'the project names it as the script "{name}"', ()))
            first.add(key)
            early |= {key} & said.keys()
    for package in _packages(code):
        program = ("python", "-m", package)
        key = (program, _home(program, PurePosixPath(), code))
        found.setdefault(key, ("it is a package that can be started", ()))
    for path in _guessed(trees):
        found.setdefault(_of_file(path, code), ("its name is that of a program", ()))
    kept = [key for key in found if not _TRAINS.search(_named(key[0]))]
    ordered = sorted(kept, key=lambda key: bool(_ASIDE.search(_named(key[0]))))[:most]
    made = {
        key: _made(key, found[key], modes.get(key, ()), said.get(key, ()), exports.get(key, ()), trees)
        for key in ordered
    }
    for key in ordered:
        for given, line in zip(said.get(key, ()), exports.get(key, ()), strict=True):
            rank, _, depth, _ = documents.order(line.found.path)
            if not _left_out(given, made[key].command):
                first |= {key} if rank == 0 else set()
                early |= {key} if rank != 2 or depth == 1 else set()
    ordered.sort(
        key=lambda key: (
            bool(_ASIDE.search(_named(key[0]))),
            key not in first,
            key not in early,
            not made[key].serves,
            bool(_HELPS.search(_named(key[0]))),
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


def _followed(trees: Trees, command: Sequence[str], folders: list[str]) -> tuple[str, Reached]:
    """Find the PYTHONPATH of a program, with which it finds the modules of its own tree, and follow its imports.

    A module at the root is found from there, and one in a folder of the root that is no package from that folder: a
    `src` layout, with or without `__init__.py`. `folders` come first: where the program's own module is found.
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
    reached = import_graph.reached(trees.files, command, ":".join(folders), trees)
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
    lines: Sequence[documents.Told],
    trees: Trees,
) -> LaunchCommand:
    program, home = key
    environment, remarks = _environment(lines)
    homes = dict.fromkeys((*filter(None, [home]), *environment.pop("PYTHONPATH", "").split(":")))
    path, reached = _followed(trees, program, [one for one in homes if one])
    serves = program[0] in _STARTERS or any(SERVES.search(trees.files[one]) for one in reached.files)
    why, arguments = told
    if not serves:
        # Its options may choose what it does: a page before anything else, and no option before others.
        mode = min(modes, key=lambda one: (not one.is_web, bool(one.arguments)), default=None)
        why, arguments = (mode.why, mode.arguments) if mode is not None else (why, ())
        serves = mode is not None and mode.is_web
    command = (*program, *(_required_arguments.subcommand(trees, reached.files, program, said) or arguments))
    required = _required_arguments.read(trees, reached.files, command, said, serves=serves)
    left = [_left_out(words, command) for words in said]
    given = [f"its documents also give it {left[0][0]}, which you have to give"] if left and all(left) else []
    return LaunchCommand(
        command=(*command, *required.given),
        environment=environment | ({"PYTHONPATH": path} if path else {}),
        why="; ".join((why, *remarks, *given, *required.remarks)),
        serves=serves,
    )


def _with_own_exports(
    line: documents.Told, starting: Collection[_Block], installing: Mapping[_Block, int]
) -> documents.Told:
    """Leave out what a page exports for another block that starts something, or before it installs something there."""

    def is_meant(one: documents.Setting) -> bool:
        block = (line.found.path, one.block)
        return one.block == line.block or (block not in starting and one.line > installing.get(block, 0))

    return dataclasses.replace(line, exports={name: one for name, one in line.exports.items() if is_meant(one)})


def _environment(lines: Sequence[documents.Told]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Keep what all start scripts export alike, and what the first page has for all its lines that start a program.

    What is of one machine is left out. Gives the environment, and what a person has to know of it, clauses.
    """
    scripts = [line for line in lines if line.found.path.suffix == ".sh" and line.exports]
    page = next((line.found.path for line in lines if line.found.path.suffix != ".sh"), None)
    told = [line for line in lines if line.found.path == page]
    told = [line for line in told if line.block != line.found.line] or told  # what stands in a sentence repeats others
    found: dict[str, str] = {}
    remarks: list[str] = []
    left: list[str] = []
    for group in (scripts, told):
        for name, one in [(name, one) for line in group for name, one in line.exports.items()]:
            place = f"{group[0].found.path}:{one.line}"
            is_common = all(name in line.exports and line.exports[name].value == one.value for line in group)
            if is_common and not _OF_A_MACHINE.search(f"{name}={one.value}") and not _PLACEHOLDER.search(one.value):
                parts = one.value.split(":")
                found[name] = ":".join(str(PurePosixPath(part)) if part.startswith("./") else part for part in parts)
                remarks += [f"{place} sets {name}={found[name]}"] if group is told else []
            elif group is told and name not in _THERE:
                remarks.append(f"{place} sets {name}, which not every machine needs: set what yours does")
            elif group is scripts and not is_common:
                left.append(name)
    names = ", ".join(dict.fromkeys(left))
    remarks += [f"its start scripts do not agree on {names}: set what your machine needs"] if left else []
    return found, tuple(dict.fromkeys(remarks))


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
            if rest[1] in _STARTERS:
                return _started_by(rest[1], rest[2:], line.folder, code)
            is_there = bool(_MODULE.fullmatch(rest[1]) and _places(_files_of(rest[1]), code))
            return (("python", "-m", rest[1]), tuple(rest[2:])) if is_there else None
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
    for word in words:
        after = tuple(one for one in words if one != word)
        if script := _script(word, folder, code):
            run = ("run",) if starter in {"streamlit", "chainlit"} else ()
            return (starter, *run, str(script)), after
        if _MODULE.fullmatch(word.partition(":")[0]) and _places(_files_of(word)[:1], code):
            return (starter, word), after
    return None


def _files_of(target: str) -> tuple[PurePosixPath, PurePosixPath]:
    """Give the file of `module:app` and that of a package, from the folder in which it is started."""
    inside = PurePosixPath(*target.partition(":")[0].split("."))
    return inside.with_name(f"{inside.name}.py"), inside / "__main__.py"


def _home(program: tuple[str, ...], folder: PurePosixPath, code: Files) -> str:
    """Say from which folder the module that is started is found; "" for the root, and for what is no module."""
    is_served = program[0] in _STARTERS and _MODULE.fullmatch(program[1].partition(":")[0])
    ends = _files_of(program[2]) if program[1:2] == ("-m",) else _files_of(program[1])[:1] if is_served else ()
    places = sorted(_places(ends, code), key=lambda place: (place != folder, len(place.parts)))
    return str(places[0]) if places and places[0].parts else ""


def _places(ends: Sequence[PurePosixPath], code: Files) -> list[PurePosixPath]:
    """Give the folders from which one of some files is found."""
    return [
        path.parents[len(end.parts) - 1] for end in ends for path in code if path.parts[-len(end.parts) :] == end.parts
    ]


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
    if not word.endswith(".py"):
        return None
    plain = PurePosixPath(word.replace("\\", "/").removeprefix("./"))
    return next((path for path in (folder / plain, plain) if path in code), None)


def _is_of_training(line: documents.Told) -> bool:
    """Tell whether a line stands where a page tells how a model is made or measured, and not how it is used."""
    above = (*line.headings, str(line.found.path.with_suffix("")))
    nearest = next((text for text in above if _MAKES.search(text) or _USES.search(text)), "")
    return bool(_MAKES.search(nearest)) and not _USES.search(nearest)


def _left_out(words: Sequence[str], command: Sequence[str]) -> list[str]:
    """Give the words of a line that are neither options nor their values, and not in a command."""
    found: list[str] = []
    is_open = False
    for word in words:
        if word.startswith("-"):
            is_open = "=" not in word
        elif is_open:
            is_open = False
        elif _WORD.match(word) and word not in command:
            found.append(word)
    return found


def _options(words: Sequence[str]) -> tuple[str, ...]:
    """Keep the options that are the same for everybody: neither examples, nor a card, nor what lets others in."""
    kept: list[str] = []
    is_open = False
    for word in words:
        if word.startswith("-"):
            is_open = not (_OPENS.match(word) or _CARD.match(word) or _PLACEHOLDER.search(word))
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
    if not _MODULE.fullmatch(module) or not re.fullmatch(r"[\w.]+", function or "main"):
        return None
    inside = PurePosixPath(*module.split("."))
    ends = (_files_of(module)[0], inside / "__init__.py")
    file = next((path for end in ends for path in code if path.parts[-len(end.parts) :] == end.parts), None)
    if file is None:
        return None
    if file.name == "__main__.py":
        return ("python", "-m", module.rpartition(".")[0])
    if _STARTS.search(code[file]) and file.name != "__init__.py":
        return ("python", "-m", module)
    if (file.parent / "__main__.py") in code and _leads_to(code[file.parent / "__main__.py"], inside.name, function):
        return ("python", "-m", module if file.name == "__init__.py" else module.rpartition(".")[0])
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
        serves = b"import" in data and bool(SERVES.search(data))
        if _STARTS.search(data) or (serves and import_graph.is_program(trees.of(path))):
            name = _NAMES.index(path.name) if is_known else len(_NAMES)
            ranked.append((len(path.parts), not serves, name, path))
    return [path for *_, path in sorted(ranked)]
