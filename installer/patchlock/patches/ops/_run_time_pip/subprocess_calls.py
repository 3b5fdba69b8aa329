"""Which calls start a program or an installer, which arguments say what, and what their callers get back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from patchlock.patches.ops._run_time_pip.install_commands import BETWEEN, is_verb
from patchlock.patches.ops._run_time_pip.scopes import Call, Scopes
from patchlock.patches.ops._run_time_pip.string_values import Reader, Texts
from patchlock.patches.ops.syntax import last_name

_KINDS: Mapping[str, str] = {
    "subprocess.run": "completed",
    "subprocess.call": "status",
    "subprocess.check_call": "status",
    "subprocess.check_output": "output",
    "subprocess.Popen": "process",
    "subprocess.getoutput": "text",
    "subprocess.getstatusoutput": "pair",
    "os.system": "status",
    "os.popen": "stream",
    "os.startfile": "nothing",
    "pty.spawn": "status",
    "asyncio.create_subprocess_exec": "task",
    "asyncio.create_subprocess_shell": "task",
    "asyncio.subprocess.create_subprocess_exec": "task",
    "asyncio.subprocess.create_subprocess_shell": "task",
    "runpy.run_module": "globals",
    "ensurepip.bootstrap": "nothing",
    "pip.main": "status",
    "setuptools.command.easy_install.main": "nothing",
    "get_ipython().system": "nothing",
    "get_ipython().system_raw": "nothing",
    "get_ipython().run_line_magic": "nothing",
    "get_ipython().magic": "nothing",
    "get_ipython().getoutput": "list",
}
_REPLACING = re.compile(r"os\.exec[vl]p?e?")
_SPAWNING = re.compile(r"os\.(spawn[vl]p?e?|posix_spawnp?)")
_PIP = re.compile(r"pip\._internal(\..+)?")
_ALL_ARGUMENTS = re.compile(r"os\.(exec|spawn|posix_spawn).*|asyncio\..*_exec|get_ipython\(\)\..*|runpy\..*")
_WORD = re.compile(r"[a-z]+")
_STARTING = frozenset(
    {
        "run",
        "exec",
        "execute",
        "system",
        "call",
        "popen",
        "shell",
        "cmd",
        "spawn",
        "sh",
        "bash",
        "subprocess",
        "invoke",
        "terminal",
        "runner",
    }
)
_MAKING = frozenset({"make", "build", "get", "create", "format", "to", "construct"})
"""A function with such a word in its name gives a command to its caller."""
_NOT_STARTING = frozenset(
    {"assert", "called", "mock", "add", "print", "log", "logger", "info", "warning", "error", "debug", "echo"}
)


def kind_of(call: Call, scopes: Scopes) -> tuple[str, str]:
    """Name a known executor and the kind of its value; both are "" for any other call."""
    for name in sorted(scopes.dotted(call.node.func, call.scope)):
        if kind := kind_of_name(name):
            return name, kind
    return "", ""


def kind_of_name(name: str) -> str:
    """Give the kind of value of an executor by its dotted name; "" for anything else."""
    if _REPLACING.fullmatch(name):
        return "end"
    if _SPAWNING.fullmatch(name) or _PIP.fullmatch(name):
        return "status"
    return _KINDS.get(name, "")


def commands(call: Call, name: str, scopes: Scopes, reader: Reader) -> Texts:
    """Give the texts of the command that a known executor is told to run."""
    node, scope = call.node, call.scope
    if name == "ensurepip.bootstrap":
        return ("ensurepip",)
    if name.startswith("runpy."):
        return _run_module(call, scopes, reader)
    positional = [item for item in node.args if not isinstance(item, ast.Starred)]
    if _ALL_ARGUMENTS.fullmatch(name):
        parts = [reader.of(item, scope) for item in node.args]
        texts: Iterable[str] = ("".join(f"{BETWEEN}{text}{BETWEEN}" for text in chosen) for chosen in _chosen(parts))
        if name.startswith("get_ipython()"):
            texts = (text.replace(BETWEEN, " ").strip(" !%") for text in texts)
        return tuple(texts)
    arguments = positional[:1]
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    arguments += [keyword.value for keyword in node.keywords if keyword.arg in {"args", "cmd", "command"}]
    arguments += [*spread, *(item for item in node.args if isinstance(item, ast.Starred))] if not arguments else []
    texts = tuple(text for argument in arguments for text in reader.of(argument, scope))
    program = "pip" if name.startswith("pip.") else "easy_install" if name.startswith("setuptools.") else ""
    return tuple(f"{BETWEEN}{program}{BETWEEN}{text}" for text in texts) if program else texts


def guessed(call: Call, reader: Reader) -> Texts:
    """Give the commands that a function from elsewhere may be told to run, judged by its name alone."""
    words = set(_WORD.findall(last_name(call.node.func).lower()))
    arguments = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    is_pip = "pip" in words and (len(words) == 1 or bool(words & _STARTING))
    if not arguments or not (is_pip or words & _STARTING) or words & (_NOT_STARTING | _MAKING):
        return ()
    texts = [reader.of(argument, call.scope) for argument in arguments]
    if is_pip and any(is_verb(text) for text in texts[0]):
        is_whole = any(" " in text for text in texts[0])  # what follows `run_pip("install x")` is no package
        rest = "".join(f"{BETWEEN}{text[0]}{BETWEEN}" for text in texts[1 : 1 if is_whole else len(call.node.args)])
        return tuple(f"{BETWEEN}pip{BETWEEN}{text}{rest}" for text in texts[0])
    whole = "".join(f"{BETWEEN}{text[0]}{BETWEEN}" for text in texts) if len(texts) > 1 else ""
    return (*(text for alternatives in texts for text in alternatives), *filter(None, [whole]))


def _chosen(parts: list[Texts]) -> Iterable[tuple[str, ...]]:
    """Pair alternatives by their order, which is enough where only the words matter."""
    longest = max((len(part) for part in parts), default=0)
    return (tuple(part[min(index, len(part) - 1)] for part in parts) for index in range(longest))


def _run_module(call: Call, scopes: Scopes, reader: Reader) -> Texts:
    """`runpy.run_module("pip")` takes its command from `sys.argv`."""
    arguments = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    module = reader.of(arguments[0], call.scope)[0] if arguments else ""
    if not module.startswith(("pip", "ensurepip")):
        return ()
    given = [text for b in scopes.attributes.get("argv", ()) for text in reader.of(b.value, b.scope)]
    return tuple(f"{BETWEEN}{text}{BETWEEN}" for text in given) or (f"{BETWEEN}{module}{BETWEEN}\ue000",)
