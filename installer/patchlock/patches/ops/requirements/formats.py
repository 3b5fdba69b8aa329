"""Choose the reader of a file's requirements by its name; the readers know the formats."""

from __future__ import annotations

from functools import lru_cache

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops.requirements import _conda, _ini, _pip, _python, _toml
from patchlock.patches.ops.requirements.lists import Declared

_SUPPORTED = "requirement files (.txt, .in), pyproject.toml, setup.cfg, setup.py and conda's .yml"


@lru_cache(maxsize=16)
def read(source: SourceText) -> Declared | Refusal:
    """Read the requirements of a file; a refusal says that it has none that could be edited, or why not.

    The answer is kept: many ops look at one file.
    """
    name = source.path.name.lower()
    if name.endswith(".lock") or name in {"pylock.toml", "conda-lock.yml"}:
        why = f"{source.path.name} is a lock; it must be locked again, not edited"
        return Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why)
    match source.path.suffix.lower():
        case ".txt" | ".in":
            return _pip.read(source)
        case ".yml" | ".yaml":
            return _conda.read(source)
    match name:
        case "pyproject.toml":
            return _toml.read(source)
        case "setup.cfg":
            return _ini.read(source)
        case "setup.py":
            return _python.read(source)
    why = f"{source.path.name} is none of the files whose requirements can be edited: {_SUPPORTED}"
    return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=why)
