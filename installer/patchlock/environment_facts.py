"""Read which distributions an environment has, and which build of torch; imports nothing of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from patchlock import installed

_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def packages(environment: Path) -> Mapping[str, str]:
    """Read normalised name → version of what is installed.

    PyPI's wheels of torch are named without the build that they are; torch's own file says it (`2.11.0+cu130`).
    """
    folder = installed.site_packages(environment)
    found = {str(one.name): str(one.version) for one in installed.distributions(folder)}
    if "torch" in found:
        found["torch"] = _build(folder / "torch" / "version.py", found["torch"])
    return found


def _build(file: Path, version: str) -> str:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return version
    said = _VERSION.search(text)
    return said[1] if said and said[1].partition("+")[0] == version.partition("+")[0] else version
