"""The Python code of a notebook's cells, joined, for the checks of Python files; shares no code with the edits."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import TypeGuard

_BODY_IS_PYTHON = re.compile(r"\s*%%(?:time|timeit|capture|prun)\b")


def code_of(data: bytes) -> str:
    """Give the code; lines that are for IPython or the shell become `pass`.

    Raises:
        ValueError: it is not a notebook; one clause.
    """
    root: object = json.loads(data)
    if not _is_table(root):
        raise ValueError("it is not a notebook")
    metadata = root.get("metadata")
    language = _at(metadata, "language_info", "name") or _at(metadata, "kernelspec", "language") or "python"
    sheets = root.get("worksheets", [root])
    cells = [cell for sheet in (sheets if isinstance(sheets, list) else []) for cell in _cells(sheet)]
    return "\n".join(_plain(_source(cell)) for cell in cells if _is_python(cell, str(language)))


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _cells(sheet: object) -> list[object]:
    cells = sheet.get("cells") if _is_table(sheet) else None
    return cells if isinstance(cells, list) else []


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if _is_table(value) else None
    return value


def _is_python(cell: object, language: str) -> bool:
    named = _at(cell, "language") or _at(cell, "metadata", "vscode", "languageId") or language
    return _at(cell, "cell_type") == "code" and "python" in str(named).lower()


def _source(cell: object) -> str:
    source = _at(cell, "source") or _at(cell, "input") or ""
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _plain(code: str) -> str:
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if lines and lines[0].lstrip().startswith("%%"):
        if not _BODY_IS_PYTHON.match(lines[0]):
            return ""
        code = code.replace(lines[0], "", 1)
    if _parses(code):
        return code
    joined = re.sub(r"^([ \t]*[!%].*)\\\n", r"\1 ", code, flags=re.MULTILINE)
    while re.search(r"^[ \t]*[!%].*\\\n", joined, flags=re.MULTILINE):
        joined = re.sub(r"^([ \t]*[!%].*)\\\n", r"\1 ", joined, flags=re.MULTILINE)
    for line in re.findall(r"^[ \t]*[!%?].*$|^.*\?[ \t]*$|^[^\n=]*=[ \t]*[!%].*$", joined, flags=re.MULTILINE):
        indentation = line[: len(line) - len(line.lstrip())]
        before = joined[: joined.index(line)].rstrip()
        joined = joined.replace(line, f"{indentation}pass" if before.endswith(":") else "", 1)
    return joined


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
