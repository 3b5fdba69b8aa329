"""What an op finds in a file and what a postcondition says of it: asked directly, or remembered; pure."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import PurePosixPath
from typing import Protocol

from patchlock.model.patch import Ensure, Located, Op, Refusal
from patchlock.model.text_files import SourceText, encode, splice
from patchlock.patches import _notebooks


def python_code(source: SourceText) -> SourceText | Refusal:
    """Give the code that an op on Python looks at: a notebook's cells as one file, of any other file its text."""
    if source.path.suffix != _notebooks.SUFFIX:
        return source
    notebook = _notebooks.read(source)
    return notebook if isinstance(notebook, Refusal) else notebook.code


def code_cells(source: SourceText) -> tuple[str, ...] | None:
    """Give what stands in a notebook's cells of code, in any language; its outputs and texts are left out."""
    try:
        cells = json.loads(source.text)["cells"]
        return tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class Evaluator(Protocol):
    """Whom the engine asks. An answer depends on the question alone, so that it may be remembered."""

    def locate(self, op: Op, source: SourceText) -> Located:
        """Let an op look at a file; one for Python looks at the code of a notebook."""
        ...

    def problems(self, ensure: Ensure, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Let a postcondition look at a file."""
        ...


class Direct:
    """Ask each time."""

    def locate(self, op: Op, source: SourceText) -> Located:
        """Let an op look at a file."""
        return _notebooks.locate(op, source)

    def problems(self, ensure: Ensure, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Let a postcondition look at a file."""
        return ensure.problems(path, data)


class Memoized:
    """Ask each question once."""

    def __init__(self) -> None:
        self._located: dict[tuple[Op, PurePosixPath, bytes], Located] = {}
        self._problems: dict[tuple[Ensure, PurePosixPath, bytes], tuple[str, ...]] = {}

    def locate(self, op: Op, source: SourceText) -> Located:
        """Let an op look at a file."""
        key = (op, source.path, hashlib.sha256(encode(source)).digest())
        if key not in self._located:
            self._located[key] = where = DIRECT.locate(op, source)
            if where.after is not None:
                with contextlib.suppress(UnicodeEncodeError):  # a replacement that the file's encoding lacks
                    result = encode(splice(source, where.edits))
                    self._located[op, source.path, hashlib.sha256(result).digest()] = where.after
        return self._located[key]

    def problems(self, ensure: Ensure, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Let a postcondition look at a file."""
        key = (ensure, path, hashlib.sha256(data).digest())
        if key not in self._problems:
            self._problems[key] = DIRECT.problems(ensure, path, data)
        return self._problems[key]


DIRECT = Direct()
