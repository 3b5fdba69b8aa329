"""The files that a resolver is given for what an app asks for; nothing in them leads to another file; pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from patchlock.model.text_files import SourceText
from patchlock.patches.pip_requirements import EmptyLine, Line, OptionLine, RequirementLine
from patchlock.patches.requirement_sources import INCLUDES, is_pip
from patchlock.patches.requirements_for_locks import AskedRequirements

_CONTINUATION = re.compile(r"\\+(\r\n|\r|\n|\Z)")
_ODD_BLANK = re.compile(r"[^\S\r\n\t ]")
"""pip passes over these, such as a form feed on a line of its own, and uv does not."""


def write_out(
    asked: AskedRequirements,
) -> tuple[dict[PurePosixPath, bytes], dict[PurePosixPath, bytes]]:
    """Write all that is asked for as a resolver is given it, so that nothing in it leads to another file.

    A file of pip's keeps its text, so that a resolver's messages fit it; what it includes is given to the resolver
    beside it. Lines are joined where pip joins them, which uv does not do inside a requirement. Of another format only
    the requirements are given, and none of its settings.

    Returns:
        the files of requirements and those that only bound them, by path in an empty folder.
    """
    texts: tuple[dict[PurePosixPath, bytes], dict[PurePosixPath, bytes]] = ({}, {})
    own_places = frozenset(_scratch_path(path) for path in asked.paths if is_pip(path))
    for file in asked.files:
        found = file.requirements.lines
        if is_pip(file.path):
            text = "".join(_scratch_line(file.source, line) for line in found)
        else:
            text = "".join(f"{line.requirement}\n" for line in found if isinstance(line, RequirementLine))
        texts[file.is_constraint][_scratch_path(file.path, own_places)] = text.encode()
    return texts


def _scratch_path(path: PurePosixPath, taken: frozenset[PurePosixPath] = frozenset()) -> PurePosixPath:
    """Give each file a place of its own below the folder: `..` would lead out of it.

    Files of pip's keep their names, which are taken for the others.
    """
    above = path.parts.count("..")
    folder = PurePosixPath("repository", str(above)) if above else PurePosixPath("upstream")
    place = folder.joinpath(*path.parts[above:])
    if is_pip(path):
        return place
    place = place.with_name(f"{place.name}.txt")
    while place in taken:
        place = place.with_name(f"{place.name}.txt")
    return place


def _scratch_line(source: SourceText, line: Line) -> str:
    text = _ODD_BLANK.sub(" ", source.text[line.span.start : line.span.end])
    match line:
        case EmptyLine():
            return text
        case OptionLine(options=options) if {name for name, _ in options} & INCLUDES:
            return source.newline
        case _:
            # A comment may end in a backslash, too, where the next line is none of this one.
            return _CONTINUATION.sub(lambda match: match[1] if match.end() == len(text) else " ", text)
