"""Which command lines install packages: reads the text of a command in which some words may be unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

UNKNOWN = "\ue000"
"""Stands in a text for what only running the code would tell."""
BETWEEN = "\x1f"
"""Stands around each element of an argument list."""
FIRST_PARAMETER = 0xF0000
"""Characters from here on stand for the parameters of the file's functions."""

Verdict = Literal["installs", "untellable", ""]

_UNTOLD = re.compile(f"[{UNKNOWN}{chr(FIRST_PARAMETER)}-{chr(0xFFFFD)}]")
_PARAMETER = re.compile(f"[{chr(FIRST_PARAMETER)}-{chr(0xFFFFD)}]")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_PIP = re.compile(r"pip(\d+(\.\d+)?)?")
_EASY_INSTALL = re.compile(r"easy_install(-\d+(\.\d+)?)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
_BEFORE_A_PROGRAM = frozenset({"sudo", "env", "call", "exec", "nohup", "time"})
_ELSEWHERE = frozenset({"echo", "git", "gcloud", "ssh", "docker", "podman", "kubectl", "grep", "adb", "npm", "code"})
"""Programs whose arguments are data, or commands for another machine."""

_CHANGING = frozenset({"add", "install", "inject", "remove", "sync", "uninstall", "update", "upgrade"})
_VERBS = {
    "pip": frozenset({"install", "uninstall", "download", "wheel"}),
    "conda": frozenset({"install", "create", "update", "upgrade", "remove", "uninstall"}),
    "uv": _CHANGING,
    "setup.py": frozenset({"install", "develop"}),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "pixi", "rye", "pipx"), _CHANGING),
}
_ONLY_LOOKING = frozenset({"--dry-run", "--help", "-h"})
"""With these, a verb changes nothing."""
_ALWAYS = frozenset({"easy_install", "ensurepip"})
"""These install unless they are asked for help or their version."""
_READING = frozenset(
    {
        "activate",
        "build",
        "cache",
        "check",
        "clean",
        "completion",
        "config",
        "deactivate",
        "debug",
        "export",
        "freeze",
        "hash",
        "help",
        "index",
        "info",
        "init",
        "inspect",
        "list",
        "lock",
        "run",
        "search",
        "self",
        "shell",
        "show",
        "tree",
        "venv",
        "version",
        "-V",
        "--version",
        "-h",
        "--help",
    }
)
_PIP_ANYWHERE = re.compile(r"pip(?:main|(?<![A-Za-z]pip)(?![a-z]))")
_OTHER_ANYWHERE = re.compile(
    r"conda|\bmamba\b|\buv\b|poetry|pipenv|\bpdm\b|\bpixi\b|\brye\b|pipx|easy_install|ensurepip|\bsetup\.py\b"
)
_OTHER_WORDS = (
    *("conda", "mamba", "uv", "poetry", "pipenv", "pdm", "pixi", "rye", "pipx"),
    *("easy_install", "ensurepip", "setup.py"),
)
"""Without one of these words, `_OTHER_ANYWHERE` finds nothing."""
_VERB_ANYWHERE = re.compile(r"install|develop|\badd\b|sync|remove|create|update|upgrade|ensurepip")


def may_install(text: str) -> bool:
    """Tell, without parsing it, whether a file names an installer at all."""
    if _PIP_ANYWHERE.search(text):
        return True
    if not any(word in text for word in _OTHER_WORDS):
        return False
    return _OTHER_ANYWHERE.search(text) is not None and _VERB_ANYWHERE.search(text) is not None


def judge(text: str) -> Verdict:
    """Read a command: it installs packages, it asks an installer for something that cannot be told, or neither."""
    verdicts = {_judge(words) for words in _commands(text)}
    return "installs" if "installs" in verdicts else "untellable" if "untellable" in verdicts else ""


def is_verb(text: str) -> bool:
    """Tell whether a text begins as the arguments of pip do when it installs."""
    words = next(_commands(text), [])
    return bool(words) and words[0] in _VERBS["pip"]


def parameters(text: str) -> set[str]:
    """Name the characters of the parameters that a text depends on."""
    return set(_PARAMETER.findall(text))


def mentions(text: str, packages: tuple[str, ...]) -> bool:
    """Tell whether a command names one of these distributions, also as a wheel's file name."""
    wanted = {_normalised(name) for name in packages}
    for words in _commands(text):
        for word in words:
            name = _normalised(re.split(r"[\[=<>!~;@]", word.rpartition("/")[2] or word, maxsplit=1)[0])
            if name in wanted or re.split(r"-\d", name, maxsplit=1)[0] in wanted:
                return True
    return False


def shown(text: str) -> str:
    """Write the command that installs for a person: one line of ASCII, dots for what is unknown, 80 characters."""
    for words in _commands(text):
        names = [_program(word) for word in words]
        start = next((index for index, name in enumerate(names) if name in _VERBS or name in _ALWAYS), None)
        if start is not None and _judge(words) == "installs":
            told = [names[start], *(_UNTOLD.sub("...", word) for word in words[start + 1 :])]
            line = " ".join(told).encode("ascii", "replace").decode()
            return line if len(line) <= 80 else f"{line[:77]}..."
    return "a package"


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _commands(text: str) -> Iterator[list[str]]:
    """Split a text into the words of each command; the elements of an argument list are one command."""
    parts = [text.replace(BETWEEN, " ")] if BETWEEN in text else _SEPARATOR.split(text)
    for part in parts:
        yield [word.strip("\"'`()") for word in part.split()]


def _judge(words: list[str]) -> Verdict:
    while words and (words[0] in _BEFORE_A_PROGRAM or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    if not words or _program(words[0]) in _ELSEWHERE:
        return ""
    verdict: Verdict = ""
    for index, word in enumerate(words):
        found = _of_manager(_program(word), words[index + 1 :])
        if found == "installs":
            return found
        verdict = found or verdict
    return verdict


def _program(word: str) -> str:
    """Name a program as the tables do: without folder, extension and version."""
    name = re.split(r"[/\\]", _UNTOLD.sub("", word))[-1].strip("\"'").lower()
    name = re.sub(r"\.(exe|bat|cmd|sh)$", "", name)
    if _PIP.fullmatch(name):
        return "pip"
    if _EASY_INSTALL.fullmatch(name):
        return "easy_install"
    return "conda" if name in {"mamba", "micromamba"} else name


def _of_manager(name: str, words: list[str]) -> Verdict:
    if not _ONLY_LOOKING.isdisjoint(words):
        return ""
    if name in _ALWAYS:
        return "" if words and words[0] in _READING else "installs"
    verbs = _VERBS.get(name)
    if verbs is None:
        return ""
    verdict: Verdict = ""
    for word in words:
        told = _UNTOLD.sub("", word)
        if told in verbs:
            return "installs"
        if told in _READING and name != "setup.py":  # which takes several verbs: `build install`
            return ""
        if not told:
            verdict = "untellable"
    return verdict
