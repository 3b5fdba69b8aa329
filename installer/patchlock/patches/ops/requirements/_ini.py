"""The requirements of `setup.cfg`: lists over several lines, or on one with semicolons, which are not edited."""

from __future__ import annotations

import configparser
import dataclasses
import re
from collections.abc import Iterator

from patchlock.model.patch import OutcomeKind, Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops._literals import bare
from patchlock.patches.ops.requirements._entries import PipEntry, read_pip_entry
from patchlock.patches.ops.requirements._layouts import Lines
from patchlock.patches.ops.requirements.lists import Computed, Declared, Doubt, RequirementList
from patchlock.patches.pip_requirements import Span

_SECTION = re.compile(r"\[(?P<name>.+)\]")
_OPTION = re.compile(r"(?P<name>[^=:]*?)[ \t]*[=:][ \t]*(?P<value>.*)")
_LISTS = {"options.install_requires", "options.setup_requires", "options.tests_require"}
_EXTRAS = "options.extras_require."


@dataclasses.dataclass(kw_only=True, slots=True)
class _Option:
    name: str
    line: int
    end: int
    """Of the line with its key."""
    indent: int
    items: list[tuple[int, Span]] = dataclasses.field(default_factory=list)
    """Line and place of each line that says something."""


def read(source: SourceText) -> Declared | Refusal:
    """Read a `setup.cfg`."""
    try:
        configparser.ConfigParser(interpolation=None).read_string(source.text.replace("\r\n", "\n").replace("\r", "\n"))
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), 1)
        why = f"it is not an INI file: {str(error).splitlines()[0]}"
        return Refusal(line=line, kind=OutcomeKind.UNPARSABLE, why=why)
    lists: list[RequirementList] = []
    doubts: list[Doubt] = []
    computed: list[Computed] = []
    for option in _options(source):
        if option.name not in _LISTS and not option.name.startswith(_EXTRAS):
            continue
        first = source.text[option.items[0][1].start : option.items[0][1].end] if option.items else ""
        if first.startswith(("file:", "attr:")):
            why = f"`{option.name}` is read from elsewhere (`{first}`), which must be patched instead"
            refusal = Refusal(line=option.line, kind=OutcomeKind.AMBIGUOUS, why=why)
            computed.append(Computed(within=option.name, refusal=refusal, files=_files(source, option)))
            continue
        entries: list[tuple[int, PipEntry]] = []
        for index, (line, span) in enumerate(option.items):
            literal = bare(source.text, span)
            one = read_pip_entry(literal, line, option.name)
            if ";" in first and len(option.items) == 1 and option.line == line:
                why = "semicolons separate the requirements of this line"
                one = Doubt(line=line, text=first, why=why, within=option.name)
            if isinstance(one, PipEntry):
                entries.append((index, one))
            elif one is not None:
                doubts.append(one)
        lists.append(_list(source, option, tuple(entries)))
    return Declared(
        lists=tuple(lists), doubts=tuple(doubts), computed=tuple(computed), default="options.install_requires"
    )


def _files(source: SourceText, option: _Option) -> tuple[str, ...]:
    """Read the names behind `file:`; setuptools separates them by commas and lines."""
    text = ",".join(source.text[span.start : span.end] for _, span in option.items)
    kind, _, names = text.partition(":")
    return tuple(name.strip() for name in names.split(",") if name.strip()) if kind.strip() == "file" else ()


def _list(source: SourceText, option: _Option, entries: tuple[tuple[int, PipEntry], ...]) -> RequirementList:
    items = tuple(span for _, span in option.items)
    lead = "    "
    if option.items and option.items[-1][0] > option.line:
        start = items[-1].start
        line_start = max(source.text.rfind("\n", 0, start), source.text.rfind("\r", 0, start)) + 1
        lead = source.text[line_start:start]
    layout = Lines(source=source, items=items, lead=lead, home=option.end)
    return RequirementList(name=option.name, entries=entries, layout=layout)


def _options(source: SourceText) -> Iterator[_Option]:
    """Give the options as `configparser` finds them: deeper lines continue a value, also over blank ones."""
    starts = source.line_starts()
    section = ""
    option: _Option | None = None
    for line, (start, end) in enumerate(zip(starts, (*starts[1:], len(source.text)), strict=True), start=1):
        content = source.text[start:end].rstrip("\r\n")
        body = content.strip()
        if not body or body.startswith(("#", ";")):
            continue
        indent = len(content) - len(content.lstrip())
        if option is not None and indent > option.indent:
            option.items.append((line, Span(start=start + indent, end=start + indent + len(body))))
            continue
        if option is not None:
            yield option
            option = None
        header = _SECTION.match(body)
        if header:
            section = header["name"]
            continue
        match = _OPTION.match(body)
        if match is None:
            continue
        name = f"{section}.{match['name'].strip().lower()}"
        if section == "options":  # setuptools takes dashes there, too
            name = name.replace("-", "_")
        option = _Option(name=name, line=line, end=start + indent + len(body), indent=indent)
        if match["value"]:
            at = start + indent + match.start("value")
            option.items.append((line, Span(start=at, end=at + len(match["value"]))))
    if option is not None:
        yield option
