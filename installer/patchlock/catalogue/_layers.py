"""Give checks that compute an app's own layers, or let it make a sound, the code of their files; runs nothing."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from pathlib import Path

from patchlock.model.checks import Check, LayersCheck, SoundCheck
from patchlock.model.errors import CatalogueError, Problem, nearest


def bind(checks: Iterable[Check], folder: Path, file: str) -> tuple[Check, ...]:
    """Read the file that each of them names.

    Raises:
        CatalogueError: a file cannot be read, is no Python, or does not make what is asked; carries all of that.
    """
    problems: list[Problem] = []
    bound: list[Check] = []
    for check in checks:
        if isinstance(check, LayersCheck | SoundCheck):
            made = [part.name for part in check.parts] if isinstance(check, LayersCheck) else [check.job]
            code, wrong = _read(folder, check.module, made)
            problems += [
                Problem(file=file, line=0, key=f"check.{check.id}", what=what, remedy=do) for what, do in wrong
            ]
            bound.append(dataclasses.replace(check, code=code))
        else:
            bound.append(check)
    if problems:
        raise CatalogueError(problems)
    return tuple(bound)


def _read(folder: Path, module: str, wanted: Iterable[str]) -> tuple[str, list[tuple[str, str]]]:
    """Give the code, and what is wrong with it, each with what to do."""
    try:
        code = (folder / module).read_bytes().decode("utf-8")
        tree = ast.parse(code)
    except OSError:
        return "", [(f'"{module}" cannot be read from the app\'s folder', "")]
    except (ValueError, SyntaxError) as error:
        return "", [(f'"{module}" is not Python in UTF-8: {error}', "")]
    made = [one.name for one in tree.body if isinstance(one, ast.FunctionDef)]
    return code, [(f'"{module}" has no function "{name}"', nearest(name, made)) for name in wanted if name not in made]
