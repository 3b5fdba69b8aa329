"""Choose the reader of a file's requirements by its name; the readers know the formats."""

from __future__ import annotations

from patchlock.model import OutcomeKind, Refusal
from patchlock.ops import requirement_conda, requirement_ini, requirement_pip, requirement_python, requirement_toml
from patchlock.ops.requirement_lists import Declared
from patchlock.sources import SourceText

_SUPPORTED = "requirement files (.txt, .in), pyproject.toml, setup.cfg, setup.py and conda's .yml"


def read(source: SourceText) -> Declared | Refusal:
    """Read the requirements of a file; a refusal says that it has none that could be edited, or why not."""
    name = source.path.name.lower()
    if name.endswith(".lock") or name in {"pylock.toml", "conda-lock.yml"}:
        why = f"{source.path.name} is a lock; it must be locked again, not edited"
        return Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why)
    match source.path.suffix.lower():
        case ".txt" | ".in":
            return requirement_pip.read(source)
        case ".yml" | ".yaml":
            return requirement_conda.read(source)
    match name:
        case "pyproject.toml":
            return requirement_toml.read(source)
        case "setup.cfg":
            return requirement_ini.read(source)
        case "setup.py":
            return requirement_python.read(source)
    why = f"{source.path.name} is none of the files whose requirements can be edited: {_SUPPORTED}"
    return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=why)
