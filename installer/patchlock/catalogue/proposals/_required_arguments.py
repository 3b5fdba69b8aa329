"""Which arguments a program does not start without, and what its documents give them; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import reached_code
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

SERVES = re.compile(
    rb"\.launch\(|\bstreamlit\b|uvicorn\.(?:run|Server)\(|\.serve_forever\(|\bapp\.run\(|run_simple\(|web\.run_app\("
)
"""Code that serves a page or requests."""
_SHOWN = 5
"""Subcommands."""
_EVERYWHERE = re.compile(r"(?<![\d.])0\.0\.0\.0(?![\d.])|\[::\]")
_SEVERAL = re.compile(rb"(?m)^\s*@[\w.]*\bgroup\b|\b(?:add_command|add_typer|add_subparsers)\(")
_COMMAND = re.compile(rb"(?m)^\s*@(?!click\b)[\w.]+\.command\b")
_CARD = re.compile(r"(?i)device|gpu|cuda")
_UNKNOWN = re.compile(r"[<>{}$%|]|\.\.\.|…|(?i:path/|your|/home/|example)")


@dataclass(frozen=True, kw_only=True)
class RequiredArguments:
    """What is added to a command, and what a person has to know of it."""

    given: tuple[str, ...]
    remarks: tuple[str, ...]
    """Clauses."""


def read(
    trees: Trees,
    reached: Sequence[PurePosixPath],
    command: Sequence[str],
    said: Sequence[Sequence[str]],
    *,
    serves: bool = False,
) -> RequiredArguments:
    """Give a program the arguments that it requires, as its documents do, but to this machine alone.

    Args:
        trees: of the app.
        reached: files that the program comes to.
        command: as far as it is known.
        said: the arguments of each line that documents have for it.
        serves: whether it serves a page: any other takes from its options what it works on.
    """
    arguments = command[3:] if command[1:2] == ("-m",) else command[1:]
    given: list[str] = []
    changed: list[str] = []
    wanted: list[str] = []
    for names, place in _all_required(trees, reached, command, arguments):
        if any(word.partition("=")[0] in names for word in arguments):
            continue
        told = next((value for words in said if (value := _value(names, words)) is not None), None)
        value = _for_everybody(told) if told is not None else None
        if value is None:
            wanted.append(f"{names[-1]} ({place})")
            continue
        given += [names[-1], value]
        changed += [f"{names[-1]} is {value} instead of {told}"] if value != told else []
    program = import_graph.program(reached, command)
    for name in _always_given(trees, program, said) if program is not None and not serves else ():
        value = next(filter(None, (_for_everybody(_value([name], words) or "") for words in said)), "")
        if name not in (*arguments, *given):
            given += [name, value] if value else []
            changed.append(f"every line of its documents gives it {name}" + (", which you have to give" * (not value)))
    commands = [*_subcommands(trees, reached, command)]
    if commands and not {*commands} & {*arguments}:
        more = " and more" if len(commands) > _SHOWN else ""
        changed.append(f"it has subcommands, one of which may have to be given: {', '.join(commands[:_SHOWN])}{more}")
    remarks = [*changed, *([f"it requires {' and '.join(wanted)}, which you have to give"] if wanted else [])]
    return RequiredArguments(given=tuple(given), remarks=tuple(remarks))


def subcommand(
    trees: Trees, reached: Sequence[PurePosixPath], program: Sequence[str], said: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """Give the subcommand that a line has for a program with several: one that serves, else one that takes no file."""
    known = _subcommands(trees, reached, program)
    told = [words for words in said if words and words[0] in known]
    told.sort(
        key=lambda words: (
            SERVES.search(trees.files[known[words[0]][0]]) is None,
            len(words) > 1 and not words[1].startswith("-"),
        )
    )
    return (told[0][0],) if told else ()


def _all_required(
    trees: Trees, reached: Sequence[PurePosixPath], command: Sequence[str], arguments: Sequence[str]
) -> list[tuple[tuple[str, ...], str]]:
    """List what the first file with required options requires; of a program with subcommands, what the given one does.

    Those of another subcommand are none of this one's.
    """
    for path in reached:
        if _has_subcommands(path, trees):
            given = (found for name, found in _subcommands(trees, reached, command).items() if name in arguments)
            return [option for one, calls in list(given)[:1] for call in calls for option in _option(one, call)]
        if found := [*_required(path, trees, reached, command)]:
            return found
    return []


def _has_subcommands(path: PurePosixPath, trees: Trees) -> bool:
    data = trees.files[path]
    return bool(_SEVERAL.search(data)) or len(_COMMAND.findall(data)) > 1


def _subcommands(
    trees: Trees, reached: Sequence[PurePosixPath], command: Sequence[str]
) -> dict[str, tuple[PurePosixPath, Sequence[ast.Call]]]:
    """Give the subcommands of a program with several, each with its file and the decorators that name its options."""
    found: dict[str, tuple[PurePosixPath, Sequence[ast.Call]]] = {}
    if not any(_has_subcommands(path, trees) for path in reached):
        return found
    idle = reached_code.idle_lines(trees, reached, command)
    for path in reached:
        module = trees.of(path) if b"command" in trees.files[path] or b"add_parser" in trees.files[path] else None
        for node in ast.walk(module) if module is not None else ():
            if getattr(node, "lineno", 0) in idle.get(path, ()):
                continue
            if isinstance(node, ast.FunctionDef):
                calls = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                for one in calls:
                    if ast.unparse(one.func).rpartition(".")[2] == "command":
                        found.setdefault(_first(one) or node.name.replace("_", "-"), (path, calls))
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_parser":
                found.setdefault(_first(node), (path, ()))
    return found


def _first(call: ast.Call) -> str:
    """Give the name that a call has first, or by keyword."""
    values = [*call.args, *(one.value for one in call.keywords if one.arg == "name")]
    return next((one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)), "")


def _required(
    path: PurePosixPath, trees: Trees, reached: Sequence[PurePosixPath], command: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give the options that a file's parser requires, each with its names; none where it has subcommands."""
    module = trees.of(path) if b"required" in trees.files[path] else None
    if module is None or not any(_options(path, module)):
        return
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    named = [node.func.attr for node in calls if isinstance(node.func, ast.Attribute)]
    if any(name in {"add_subparsers", "add_typer"} for name in named) or named.count("command") > 1:
        return
    idle = reached_code.idle_lines(trees, reached, command).get(path, frozenset())
    yield from (option for line, option in _options(path, module) if line not in idle)


def _options(path: PurePosixPath, module: ast.Module) -> Iterator[tuple[int, tuple[tuple[str, ...], str]]]:
    """Give the options that calls require, each with its line."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from ((node.lineno, option) for option in _option(path, node))


def _option(path: PurePosixPath, node: ast.Call) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give the names of an option that a call requires."""
    options = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    is_required = any(
        one.arg == "required" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in node.keywords
    )
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in {"add_argument", "option"} and is_required and options and options[-1].startswith("-"):
        yield tuple(options), f"{path}:{node.lineno}"


def _always_given(trees: Trees, program: PurePosixPath, said: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give the options that several lines give different values, none goes without, and whose default is no such value.

    That default is then not what the program works on: a file that stands elsewhere, or nothing.
    """
    defaults = {
        word: getattr(next((one.value for one in node.keywords if one.arg == "default"), None), "value", None)
        for node in ast.walk(trees.of(program) or ast.Module(body=[], type_ignores=[]))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"add_argument", "option"}
        for word in (one.value for one in node.args if isinstance(one, ast.Constant))
    }
    for name, default in defaults.items():
        values = {_value([str(name)], words) for words in said}
        if len(values) > 1 and not values & {None, str(default)} and not _CARD.search(str(name)):
            yield str(name)


def _value(names: Sequence[str], words: Sequence[str]) -> str | None:
    for number, word in enumerate(words):
        name, equals, rest = word.partition("=")
        if name in names:
            return rest if equals else next((one for one in words[number + 1 : number + 2] if one[:1] != "-"), None)
    return None


def _for_everybody(value: str) -> str | None:
    """Make a value fit for any machine: for itself alone, and a folder of a container below the app's; else None."""
    if _UNKNOWN.search(value):
        return None
    if "://" in value or _EVERYWHERE.fullmatch(value):
        return _EVERYWHERE.sub("127.0.0.1", value)
    path = PurePosixPath(value)
    if "/" in value and path.suffix:
        return None  # a file that somebody has
    return path.name if path.is_absolute() or value.startswith("~") else value
