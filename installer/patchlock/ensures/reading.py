"""Read a file of Python for an ensure that forbids something: what no Python can run does not do it."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
import warnings
from pathlib import PurePosixPath

from patchlock.ensures.notebook import code_of

_MAY_STAND_BEFORE = {*keyword.kwlist, *keyword.softkwlist, "lazy", "type", "print", "exec"}
"""Words that a statement of some Python may begin with; `print` and `exec` are of Python 2, which runs such a file.

Source: https://peps.python.org/pep-0810/ for `lazy`, https://peps.python.org/pep-0695/ for `type`
"""


def read(path: PurePosixPath, data: bytes) -> ast.Module | str:
    """Parse a file, or say why it cannot be read, a clause; of a file that no Python can run nothing is left."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code_of(data) if path.suffix == ".ipynb" else data, str(path))
    except SyntaxError as error:
        line = "".join(data.decode(errors="replace").splitlines(keepends=True)[(error.lineno or 1) - 1 :][:1])
        if path.suffix == ".py" and is_no_python(line):
            return ast.Module(body=[], type_ignores=[])
        return f"line {error.lineno or 1}: it does not parse: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be read: {error}"


def is_no_python(line: str) -> bool:
    """Tell whether a line begins with two names side by side, as `pip install x` does, which no grammar of Python has.

    Args:
        line: a line that the running Python refuses.
    """
    try:
        first, second = list(tokenize.generate_tokens(io.StringIO(line).readline))[:2]
    except (tokenize.TokenError, IndentationError, SyntaxError, ValueError):
        return False
    is_name = first.type == second.type == tokenize.NAME
    return is_name and first.start[1] == 0 and not {first.string, second.string} & _MAY_STAND_BEFORE
