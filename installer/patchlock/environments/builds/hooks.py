"""Ask the build backend of an sdist what its build requires: runs foreign code, and only where a maintainer says so."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.core import process, uv
from patchlock.distributions import sdist_unpacking
from patchlock.model.errors import CommandFailedError, ProgramMissingError, SdistError

_TIMEOUT = 600
"""Seconds, for pip's downloads and the hook together."""
_KEPT = re.compile(
    r"PATH|LANG|LC_\w+|SYSTEMROOT|COMSPEC|PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|\w+_PROXY",
    re.IGNORECASE,
)
"""Variables that pip needs to reach its index; nothing else of the user's is handed on."""
_LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==\S+\s+# via (?P<via>.*)")


def get_build_requirements(archive: Path) -> tuple[NormalizedName, ...]:
    """Ask what the build of an sdist requires directly, by its files and by its backend's hook.

    pip-tools makes an isolated environment of what the static files name, and runs `get_requires_for_build_wheel`.
    The user's home and variables are not handed on, and there is a time limit; the network and the rest of the machine
    are open, because pip needs them: this contains mistakes, not malice.

    Returns:
        the names, sorted.

    Raises:
        ProgramMissingError: pip-tools is not installed.
        SdistError: the archive cannot be unpacked, or the hook fails.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-hooks-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        tree = sdist_unpacking.unpack(archive, folder / "tree")
        stated = "pyproject.toml" if (tree / "pyproject.toml").is_file() else "setup.py"
        found = folder / "build.txt"
        try:
            process.run(
                *(sys.executable, "-m", "piptools", "compile", "--only-build-deps", "--build-deps-for", "wheel", "-q"),
                *("--allow-unsafe", "--strip-extras", "--annotation-style", "line", "--no-header", "--no-config"),
                *("--no-emit-index-url", "--no-emit-find-links", "-o", str(found), stated),
                cwd=tree,
                env=_environment(folder),
                timeout=_TIMEOUT,
            )
        except CommandFailedError as error:
            if any("No module named piptools" in line for line in error.evidence):
                raise ProgramMissingError(
                    "pip-tools, which asks build backends, is not installed",
                    remedy=f"install it: `{uv.install_command('pip-tools')}`",
                ) from error
            raise SdistError(
                f"the build backend of {archive.name} does not say what it requires",
                where=error.where,
                remedy="read its setup.py and write `build` in its [[metadata]] table by hand",
                evidence=error.evidence,
            ) from error
        return tuple(sorted(_direct(found.read_text(encoding="utf-8"))))


def _direct(text: str) -> Iterator[NormalizedName]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found and "::build-system" in found["via"]:
            yield canonicalize_name(found["name"])


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    home = str(folder / "home")
    homes = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), home)
    return ({"PIP_INDEX_URL": index} if index else {}) | kept | homes | {"PYTHONNOUSERSITE": "1"}
