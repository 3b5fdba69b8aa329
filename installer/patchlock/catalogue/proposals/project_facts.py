"""What an app calls itself, its licence and the Python that it allows, as its own files say it; pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from patchlock.catalogue.proposals import documents
from patchlock.catalogue.proposals.findings import Files, excerpt
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import requirement_sources

_LICENCES = (
    ("AGPL-3.0", r"GNU AFFERO GENERAL PUBLIC LICENSE"),
    ("LGPL-3.0", r"GNU LESSER GENERAL PUBLIC LICENSE"),
    ("GPL-3.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 3"),
    ("GPL-2.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 2"),
    ("Apache-2.0", r"Apache License,?\s+Version 2\.0"),
    ("MPL-2.0", r"Mozilla Public License,? (?:Version |v\. )2\.0"),
    ("CC-BY-NC-SA-4.0", r"Attribution-NonCommercial-ShareAlike 4\.0"),
    ("CC-BY-NC-4.0", r"Attribution-NonCommercial 4\.0"),
    ("CC-BY-4.0", r"Attribution 4\.0 International"),
    ("MIT", r"Permission is hereby granted, free of charge, to any person obtaining"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary forms[\s\S]*Neither the name"),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("Unlicense", r"This is free and unencumbered software"),
)
"""SPDX identifier → what stands in the text; the first that fits. Source: https://spdx.org/licenses/"""

_SAID = re.compile(
    r"(?i)(?:conda create[^\n]*?python\s*=+\s*|\bpython[\s_]*(?:version\s*)?(?P<sign>==|=|>=|≥)?\s*)"
    r"(?P<version>3\.\d+)(?P<more>\+| (?:or|and) (?:above|greater|higher|later|newer|up))?"
)
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_UNBOUNDED = "no project file bounds it, so any profile's is taken"


def title(files: Files, name: str) -> str:
    """Give the first that resembles a name: the project's description, a heading of the README; else that name."""
    described = str(project(files).get("description", "")).strip()
    pages = sorted((path for path in files if documents.order(path)[0] == 0), key=documents.order)
    headings = [one for path in pages for one in _headings(documents.page(path, files), name)]
    told = ((described, described), *headings)
    return excerpt(next((text for text, own in told if _resembles(own, name)), name))


def _resembles(heading: str, name: str) -> bool:
    """Tell whether a heading has the name in it, or is most of it: "Audio Separator" of python-audio-separator."""
    said, called = (re.sub(r"[\W_]+", "", text.lower()) for text in (heading, name))
    return bool(called) and (called in said or (said in called and 2 * len(said) > len(called)))


def _headings(page: str, name: str) -> Iterator[tuple[str, str]]:
    """Give the headings of a page, not in code, without what marks them up; each also without links to other projects.

    Args:
        page: its text.
        name: of the repository.
    """
    elsewhere = rf"(?i)\[[^\]]*\]\(https?://git(?:hub|lab)\.com/[^/)]+/(?!{re.escape(name)}[/?#.)])[^)]*\)"
    plain = re.sub(r"(?ms)^(```|~~~).*?^\1", "", page)
    for heading in re.findall(r"(?ms)^#{1,6}[ \t]+[^\n]+|<h[1-6]\b.*?</h[1-6]>", plain):
        words = re.sub(r"!\[[^\]]*\]\([^)]*\)|:[a-z0-9_+-]+:|<[^>]*>", "", heading.lstrip("#"))
        if not words.strip():  # a logo alone stands for the name
            words = " ".join(re.findall(r"<img\b[^>]*\balt=[\"']([^\"']*)", heading))
        shown, own = (
            re.sub(r"\[([^\]]*)\]\([^)]*\)|[*_`]", r"\1", one) for one in (words, re.sub(elsewhere, "", words))
        )
        yield " ".join(shown.split()), " ".join(own.split())


def licence(files: Files) -> tuple[str, str]:
    """Give the SPDX identifier of the licence, and the file that says it; or "unknown", and what to do."""
    named = sorted(
        path for path in files if re.match(r"(?i)(?:licen[cs]e|copying)", path.name) and len(path.parts) == 1
    )
    for path in named:
        text = files[path].decode("utf-8", errors="replace")
        for identifier, pattern in _LICENCES:
            if re.search(pattern, text, re.IGNORECASE):
                return identifier, str(path)
    said = project(files).get("license")
    if isinstance(said, str) and said:
        return said, "pyproject.toml"
    if isinstance(said, dict) and said.get("text"):
        return str(said["text"]), "pyproject.toml"
    return "unknown", f"read {named[0]}" if named else "upstream has no file of that name: ask before you publish it"


def python(files: Files, taken: Collection[PurePosixPath] = ()) -> tuple[str, str]:
    """Give the Python versions that the project allows, and where that is said; ">=3.8" where no project file says it.

    What a README says is quoted, and bounds nothing: most name the one version that their authors have tried.

    Args:
        files: of the tree.
        taken: those that say what the app requires; a project among them comes before that of the tree's root.
    """
    folders = dict.fromkeys([*(path.parent for path in taken if path.name in _PROJECT_FILES), PurePosixPath()])
    for path in (folder / name for folder in folders for name in _PROJECT_FILES):
        source = decode(path, files[path]) if path in files else None
        bound = requirement_sources.read(source).python if isinstance(source, SourceText) else None
        if bound is not None and bound.specifier:
            return ",".join(sorted(map(str, bound.specifier), reverse=True)), f"{path}:{bound.line} says so"
    quoted = [
        (">=" if found["more"] or found["sign"] in {">=", "≥"} else "", f"{path}:{number}", found["version"])
        for path in sorted(path for path in files if len(path.parts) == 1 and path.name.lower().startswith("readme"))
        for number, line in enumerate(files[path].decode("utf-8", errors="replace").splitlines(), start=1)
        if (found := _SAID.search(line))
    ]
    if quoted:  # what bounds it says more than the version of a command beside it
        sign, place, version = max(quoted, key=lambda one: bool(one[0]))
        return ">=3.8", f"{_UNBOUNDED}; {place} speaks of Python {sign}{version}"
    return ">=3.8", _UNBOUNDED


def project(files: Files) -> Mapping[str, object]:
    """Read the `[project]` table of pyproject.toml; empty where there is none that can be read."""
    table = _pyproject(files).get("project", {})
    return table if isinstance(table, dict) else {}


def _pyproject(files: Files) -> Mapping[str, object]:
    data = files.get(PurePosixPath("pyproject.toml"), b"")
    try:
        return tomllib.loads(data.decode("utf-8", errors="replace"))
    except tomllib.TOMLDecodeError:
        return {}


def name(files: Files) -> str:
    """Give the name under which the app can be installed, as pyproject.toml says it; "" where it does not."""
    return str(project(files).get("name") or _poetry(files).get("name", ""))


def poetry_scripts(files: Files) -> Mapping[str, str]:
    """Read the scripts of a Poetry project: name → `module:function`."""
    table = _poetry(files).get("scripts")
    return {k: v for k, v in table.items() if isinstance(v, str)} if isinstance(table, dict) else {}


def _poetry(files: Files) -> Mapping[str, object]:
    table: object = _pyproject(files)
    for key in ("tool", "poetry"):
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}
