"""Read a version in the words of Poetry or conda as a specifier; shares no code with ops."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

_VERSION = re.compile(r"[\s^~=]*(\d+(?:\.\d+)*)\S*")
_CONDA = re.compile(r"(?P<name>[\w.-]+)(?P<rest>.*)", re.DOTALL)
_SIMPLE = re.compile(r"(?P<sign>={0,2})\s*(?P<version>[\w.*+!]+)(?:[= ]+(?P<build>\S+))?")


def of_poetry(text: str) -> SpecifierSet | None:
    """Read a constraint of Poetry; None where packaging has no words for it."""
    if "||" in text:
        return None
    bounds: list[str] = []
    for clause in text.replace(" ", "").split(","):
        if clause.startswith(("^", "~")) and not clause.startswith("~="):
            match = _VERSION.fullmatch(clause)
            if match is None:
                return None
            numbers = [int(number) for number in match[1].split(".")]
            bounds += [f">={clause[1:]}", f"<{_next(numbers, is_caret=clause[0] == '^')}"]
        elif clause != "*":
            bounds.append(clause if re.match(r"[<>!=~]=|[<>]", clause) else f"=={clause.lstrip('=')}")
    return _specifier(",".join(bounds))


def _next(numbers: list[int], *, is_caret: bool) -> str:
    """The first version that is not compatible any more."""
    kept = 1 if len(numbers) == 1 else 2
    if is_caret:
        zeros = [number == 0 for number in numbers]
        kept = len(numbers) if all(zeros) else zeros.index(False) + 1
    return ".".join(map(str, [*numbers[: kept - 1], numbers[kept - 1] + 1]))


def of_conda(text: str) -> tuple[str, SpecifierSet | None]:
    """Read a match specification: its name, and what it allows, None where packaging has no words for it."""
    match = _CONDA.fullmatch(text.rpartition("::")[2].strip())
    if match is None:
        return text, None
    name, rest = match["name"], match["rest"].strip()
    simple = _SIMPLE.fullmatch(rest)
    if simple is None:
        return name, _specifier(rest)
    is_exact = simple["sign"] != "=" or simple["build"] is not None or simple["version"].endswith("*")
    return name, _specifier(f"=={simple['version']}{'' if is_exact else '.*'}")


def _specifier(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None
