"""Which files of a generation no wheel may write: what makes it an environment, and what we keep there; pure."""

from __future__ import annotations

import re

_OURS = frozenset(
    {
        *("lock.txt", "lock.build.txt", "index.txt", "local.txt", "wanted.txt", "constraints.txt", "builds.toml"),
        *("ledger.json", "receipt.toml", "in-tree.toml", "catalogue", "bytecode", "overlays", "gate", "device.json"),
        *("pyvenv.cfg", "lib64", ".lock", ".gitignore", "cachedir.tag"),
    }
)
"""Files and folders in the top folder of a generation: those of patchlock, and those that uv makes; lower case."""
_PYTHON = re.compile(r"(bin|scripts)/pythonw?([0-9]+(\.[0-9]+)*)?(\.exe)?")


def is_reserved(path: str) -> bool:
    """Say whether a file belongs to patchlock or to the environment itself.

    Args:
        path: from the environment's top folder, with "/".
    """
    plain = path.casefold()
    first, _, rest = plain.partition("/")
    own = first in _OURS and (first != "lib64" or not rest)
    return own or _PYTHON.fullmatch(plain) is not None or "_patchlock" in plain
