"""Which arguments a program does not start without, and what its documents give them; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.patches.import_graph import Trees

_EVERYWHERE = re.compile(r"(?<![\d.])0\.0\.0\.0(?![\d.])|\[::\]")
_UNKNOWN = re.compile(r"[<>{}$%|]|\.\.\.|…|(?i:path/|your|/home/|example)")


@dataclass(frozen=True, kw_only=True)
class RequiredArguments:
    """What is added to a command, and what a person has to know of it."""

    given: tuple[str, ...]
    remarks: tuple[str, ...]
    """Clauses."""


def read(
    trees: Trees, reached: Sequence[PurePosixPath], command: Sequence[str], said: Sequence[Sequence[str]]
) -> RequiredArguments:
    """Give a program the arguments that it requires, as its documents do, but to this machine alone.

    Args:
        trees: of the app.
        reached: files that the program comes to, itself first.
        command: as far as it is known.
        said: the arguments of each line that documents have for it.
    """
    arguments = command[3:] if command[1:2] == ("-m",) else command[1:]
    given: list[str] = []
    changed: list[str] = []
    wanted: list[str] = []
    for names, place in _all_required(trees, reached, arguments):
        if any(word.partition("=")[0] in names for word in arguments):
            continue
        told = next((value for words in said if (value := _value(names, words)) is not None), None)
        value = _for_everybody(told) if told is not None else None
        if value is None:
            wanted.append(f"{names[-1]} ({place})")
            continue
        given += [names[-1], value]
        changed += [f"{names[-1]} is {value} instead of {told}"] if value != told else []
    remarks = [*changed, *([f"it requires {' and '.join(wanted)}, which you have to give"] if wanted else [])]
    return RequiredArguments(given=tuple(given), remarks=tuple(remarks))


def subcommand(trees: Trees, reached: Sequence[PurePosixPath], said: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Give the first subcommand that a line has for a program of click's or typer's with several; else nothing."""
    if not any(_has_subcommands(path, trees) for path in reached):
        return ()
    names = {name for path in reached for name, _ in _functions(path, trees)}
    return next(((words[0],) for words in said if words and words[0] in names), ())


def _all_required(
    trees: Trees, reached: Sequence[PurePosixPath], arguments: Sequence[str]
) -> list[tuple[tuple[str, ...], str]]:
    """List what the first file with required options requires; of a program with subcommands, what the given one does.

    Those of another subcommand are none of this one's.
    """
    for path in reached:
        if _has_subcommands(path, trees):
            chosen = [(one, node) for one in reached for name, node in _functions(one, trees) if name in arguments]
            return [found for one, node in chosen[:1] for found in _options_of(one, node)]
        if found := [*_required(path, trees)]:
            return found
    return []


def _has_subcommands(path: PurePosixPath, trees: Trees) -> bool:
    data = trees.files[path]
    module = trees.of(path) if b".group" in data or b"add_command" in data else None
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, ast.FunctionDef) and any(
            re.search(r"\bgroup\b", ast.unparse(x)) for x in node.decorator_list
        ):
            return True
    return False


def _functions(path: PurePosixPath, trees: Trees) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Give the commands of a file by the names with which they are called."""
    module = trees.of(path) if b"command" in trees.files[path] else None
    for node in module.body if module is not None else ():
        if isinstance(node, ast.FunctionDef):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] == "command":
                    given = [arg.value for arg in one.args if isinstance(arg, ast.Constant)]
                    yield str(given[0]) if given else node.name.replace("_", "-"), node


def _required(path: PurePosixPath, trees: Trees) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give the options that a file's parser requires, each with its names; none where it has subcommands."""
    module = trees.of(path) if b"required" in trees.files[path] else None
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)] if module is not None else []
    named = [(node.func.attr, node) for node in calls if isinstance(node.func, ast.Attribute)]
    if any(name in {"add_subparsers", "add_typer"} for name, _ in named) or [n for n, _ in named].count("command") > 1:
        return
    for _, node in named:
        yield from _option(path, node)


def _options_of(path: PurePosixPath, function: ast.FunctionDef) -> Iterator[tuple[tuple[str, ...], str]]:
    for one in function.decorator_list:
        if isinstance(one, ast.Call):
            yield from _option(path, one)


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
