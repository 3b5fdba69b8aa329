"""What the build of an unpacked sdist is given: what its file asks for, and what is written down of it besides."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model import toml_text
from patchlock.model.lock_rules import WITHOUT_PYPROJECT


def add_requirements(source: Path, requirements: Iterable[Requirement]) -> None:
    """Let a build ask for more; what its `pyproject.toml` asks for stays, and one without such a file gets it.

    Older sdists import in their `setup.py` what they expect to be installed, and constraints alone install nothing.

    Source: PEP 518, which says what is required where there is no such file or table.
    """
    import tomlkit

    path = source / "pyproject.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8")) if path.is_file() else tomlkit.document()
    system = document.setdefault("build-system", tomlkit.table())
    asked = [str(one) for one in system.get("requires", WITHOUT_PYPROJECT)]
    known = set(map(_name, asked))
    added = [str(one) for one in requirements if canonicalize_name(one.name) not in known]
    if added:
        system["requires"] = toml_text.array([*asked, *added])
        path.write_text(tomlkit.dumps(document), encoding="utf-8", newline="\n")


def _name(requirement: str) -> NormalizedName | None:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:  # uv says so when it builds
        return None
