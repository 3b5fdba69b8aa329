"""The lines that a lock is made from, in pip's format, pyproject.toml, setup.cfg, setup.py or conda's; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import PurePosixPath

from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches.ops.requirements import formats
from patchlock.patches.ops.requirements._entries import PipEntry
from patchlock.patches.ops.requirements.lists import Declared, Doubt, Entry
from patchlock.patches.pip_requirements import Line, LocationLine, RequirementLine, Span, Unreadable, parse

_NOWHERE = Span(start=0, end=0)


def is_pip(path: PurePosixPath) -> bool:
    """Tell whether pip's own format is meant: every name but those of the other formats."""
    name = path.name.lower()
    return name not in {"pyproject.toml", "setup.cfg", "setup.py"} and path.suffix.lower() not in {".yml", ".yaml"}


def lines(source: SourceText) -> tuple[Line, ...]:
    """Read what an app needs when it runs, as `requirement_files.parse` does.

    Of a format with several lists it is the one of the app itself (`project.dependencies`, `install_requires`,
    `dependencies.pip`), without extras and groups. Their spans are empty.
    """
    if is_pip(source.path):
        return parse(source)
    declared = formats.read(source)
    if isinstance(declared, Refusal):
        return (Unreadable(line=declared.line, span=_NOWHERE, text="", why=declared.why),)
    return tuple(sorted(_lines(declared), key=lambda line: line.line))


def _lines(declared: Declared) -> Iterator[Line]:
    for one in declared.lists:
        if one.name == declared.default:
            for _, entry in one.entries:
                yield _line(entry)
    for doubt in declared.doubts:
        yield _doubtful(doubt)
    for refusal in declared.computed:
        yield Unreadable(line=refusal.line, span=_NOWHERE, text="", why=refusal.why)


def _line(entry: Entry) -> Line:
    if isinstance(entry, PipEntry):
        return dataclasses.replace(entry.read, line=entry.line, span=_NOWHERE)
    if entry.requirement is None:
        return Unreadable(line=entry.line, span=_NOWHERE, text=entry.text, why="pip has no word for it")
    return RequirementLine(
        line=entry.line,
        span=_NOWHERE,
        requirement=entry.requirement,
        requirement_span=_NOWHERE,
        specifier_span=_NOWHERE,
        editable=entry.is_editable,
        has_hash=False,
    )


def _doubtful(doubt: Doubt) -> Line:
    if doubt.is_location:
        return LocationLine(line=doubt.line, span=_NOWHERE, target=doubt.text, editable=False)
    return Unreadable(line=doubt.line, span=_NOWHERE, text=doubt.text, why=doubt.why)


def for_resolver(path: PurePosixPath, data: bytes) -> tuple[PurePosixPath, bytes]:
    """Give a requirement file as a resolver of pip's format reads it, and how it is called there.

    Another format becomes a list of requirements beside it, so that no resolver reads the file's own settings.
    """
    if is_pip(path):
        return path, data
    source = decode(path, data)
    read = () if isinstance(source, Undecodable) else lines(source)
    text = "".join(f"{line.requirement}\n" for line in read if isinstance(line, RequirementLine))
    return path.with_name(f"{path.name}.txt"), text.encode()
