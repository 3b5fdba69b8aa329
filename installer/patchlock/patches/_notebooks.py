"""Look at the Python cells of a Jupyter notebook as one Python file, and bring edits of it back into the JSON text.

Outputs, metadata, the order of keys and the layout of the JSON stay as they are; nothing is executed.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches import _json_offsets
from patchlock.patches._json_offsets import Node, Text
from patchlock.patches.ops import OPS, PYTHON_OPS

SUFFIX = ".ipynb"
_Found = TypeVar("_Found", Site, Refusal)

_STILL_PYTHON = {"time", "timeit", "capture", "prun"}
"""Cell magics whose body is Python of the notebook itself."""
_CELL_MAGIC = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*%%(\S*)")
"""Behind comments too, as Colab has it."""
_OPENS_BLOCK = re.compile(r":[ \t]*(?:#[^\n]*)?\s*\Z")
_MAGIC = re.compile(r"[ \t]*(?:[!%?]|[\w.]+\?{1,2}[ \t]*$|[\w.,() \t]+=[ \t]*[!%][^=])", re.MULTILINE)
_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:\\.|[^\\])*?(?:"""|\Z)'
    r"|'''(?:\\.|[^\\])*?(?:'''|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?"
    r"|\\\r?\n|[(\[{]|[)\]}]|\n|.",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    strings: tuple[Text, ...]
    """The elements of `source`, or the one string that it is."""
    start: int
    """Offset in the code."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """The Python cells of a notebook, joined."""

    source: SourceText
    """The JSON text."""
    code: SourceText
    """The cells, each from a line of its own; shell commands and magics are masked by as many other characters."""
    cells: tuple[_Cell, ...]
    masked: tuple[tuple[int, int], ...]
    """Ranges of the code that are not upstream's text, in order."""
    is_ascii: bool
    """Other characters than those of ASCII are escaped."""


def locate(op: Op, source: SourceText) -> Located:
    """Let an op look at a file; an op for Python looks at the code of a notebook instead of its JSON."""
    if source.path.suffix != SUFFIX or OPS.word_of(type(op)) not in PYTHON_OPS:
        return op.locate(source)
    notebook = read(source)
    if isinstance(notebook, Refusal):
        return Located(refusals=(notebook,))
    found = op.locate(notebook.code)
    edits: list[Edit] = []
    refusals = [_in_file(notebook, refusal) for refusal in found.refusals]
    for edit in found.edits:
        made = _edit_in(notebook, edit)
        (refusals if isinstance(made, Refusal) else edits).append(made)  # type: ignore[arg-type]
    if edits and not refusals and not _is_same_edit(notebook, found.edits, edits):
        refusals.append(Refusal.ambiguous(1, "its JSON cannot be edited cleanly"))
    sites, settled = (tuple(_in_file(notebook, site) for site in some) for some in (found.sites, found.settled))
    if refusals:
        return Located(settled=settled, refusals=tuple(refusals))
    return Located(edits=tuple(edits), sites=sites, settled=settled)


def read(source: SourceText) -> Notebook | Refusal:
    """Read a notebook of nbformat 3 or 4; code of other languages is left out."""
    try:
        root = _json_offsets.read(source.text)
    except (ValueError, RecursionError) as error:
        return Refusal(line=getattr(error, "lineno", 1), kind=OutcomeKind.UNPARSABLE, why=f"it is not JSON: {error}")
    version = root.get("nbformat") if isinstance(root, dict) else None
    if not isinstance(root, dict) or version not in {3, 4}:
        return Refusal(line=1, kind=OutcomeKind.UNPARSABLE, why=f"it is not a notebook of nbformat 3 or 4: {version}")
    cells: list[_Cell] = []
    masked: list[tuple[int, int]] = []
    code = ""
    for strings in _sources(root, str(version)):
        text = "".join(string.value for string in strings)
        magic = _CELL_MAGIC.match(text)
        if magic and magic[1] not in _STILL_PYTHON:
            continue
        ranges = tuple(_magics(text))
        cells.append(_Cell(strings=strings, start=len(code), text=text))
        masked += [(len(code) + start, len(code) + end) for start, end in ranges]
        code += _masked(text, ranges)
        if code and not code.endswith("\n"):
            code += "\n"
    outside = source.text.isascii() and re.search(r"\\u(?!00[0-7])[0-9a-fA-F]{4}", source.text) is not None
    virtual = SourceText(path=source.path, text=code, encoding="utf-8", bom=b"")
    return Notebook(source=source, code=virtual, cells=tuple(cells), masked=tuple(masked), is_ascii=outside)


def _sources(root: dict[str, Node], version: str) -> Iterator[tuple[Text, ...]]:
    """Give the source of each Python cell."""
    metadata = root.get("metadata")
    language = _text(metadata, "language_info", "name") or _text(metadata, "kernelspec", "language") or "python"
    sheets = root.get("worksheets") if version == "3" else [root]
    for sheet in sheets if isinstance(sheets, list) else []:
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if not isinstance(cell, dict) or _text(cell, "cell_type") != "code":
                continue
            own = _text(cell, "language") or _text(cell, "metadata", "vscode", "languageId") or language
            value = cell.get("input" if version == "3" else "source")
            strings = value if isinstance(value, list) else [value]
            if own.lower().startswith(("python", "ipython")):
                yield tuple(string for string in strings if isinstance(string, Text))


def _text(node: Node, *keys: str) -> str:
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node.value if isinstance(node, Text) else ""


# --- magics -----------------------------------------------------------------------------------------------------------


def _magics(text: str) -> Iterator[tuple[int, int]]:
    """Find the lines that are for IPython or the shell, without their indentation; a `%` inside brackets is Python."""
    depth, at, is_start = 0, 0, True
    while at < len(text):
        if is_start and not depth and _MAGIC.match(text, at):
            end = at
            while True:  # with the lines that a backslash joins
                end = _line_end(text, end)
                if not text[at:end].endswith("\\") or end >= len(text):
                    break
                end += 1
            yield at + len(text[at:end]) - len(text[at:end].lstrip(" \t")), end
            at = end
            continue
        found = _TOKEN.match(text, at)
        piece = found.group() if found else text[at]
        depth = max(0, depth + (piece in "([{") - (piece in ")]}"))
        is_start = piece == "\n"
        at += len(piece)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _masked(text: str, ranges: tuple[tuple[int, int], ...]) -> str:
    """Put a comment for each command; where it is the first of a block, a number. Lengths stay."""
    for start, end in ranges:
        first, *others = text[start:end].split("\n")
        mark = "0" if _OPENS_BLOCK.search(text[:start]) else "#"
        text = text[:start] + "\n".join([mark * len(first), *("#" * len(line) for line in others)]) + text[end:]
    return text


# --- back into the JSON text ------------------------------------------------------------------------------------------


def _edit_in(notebook: Notebook, edit: Edit) -> Edit | Refusal:
    """Bring an edit of the code into the JSON text."""
    line = _line_in(notebook, edit.start)
    if any(edit.start < end and edit.end > start for start, end in notebook.masked):
        return Refusal.ambiguous(line, "the place is in a shell command or a magic of the notebook")
    starts = [cell.start for cell in notebook.cells]
    cell = notebook.cells[bisect.bisect_right(starts, edit.start) - 1]
    start, end = edit.start - cell.start, edit.end - cell.start
    if end > len(cell.text):
        return Refusal.ambiguous(line, "the place goes from one cell into the next")
    if not cell.strings:
        return Refusal.ambiguous(line, "the cell is empty")
    text = notebook.source.text
    offsets = [(offset, string) for string in cell.strings for offset in _json_offsets.characters(text, string)[:-1]]
    last = cell.strings[-1]
    begin, _ = offsets[start] if start < len(offsets) else (last.end, last)
    if end > start:
        _, holder = offsets[end - 1]
        stop = offsets[end][0] if end < len(offsets) and offsets[end][1] is holder else holder.end
    else:
        stop, holder = begin, offsets[start][1] if start < len(offsets) else last
    lines = re.findall(r"[^\n]*\n|[^\n]+", edit.text) if _is_list(notebook, cell) else [edit.text]
    inside = [_json_offsets.written(line, is_ascii=notebook.is_ascii) for line in lines]
    is_split = bool(lines) and _is_list(notebook, cell) and lines[-1].endswith("\n") and stop < holder.end
    return Edit(start=begin, end=stop, text=_between(notebook, cell).join([*inside, *([""] if is_split else [])]))


def _is_list(notebook: Notebook, cell: _Cell) -> bool:
    """Tell whether a cell's source is a list of lines."""
    before = notebook.source.text[: cell.strings[0].start - 1].rstrip(" \t\r\n")
    return before.endswith("[")


def _between(notebook: Notebook, cell: _Cell) -> str:
    """Give what stands between two lines of a cell, quotes included, or would stand there."""
    text = notebook.source.text
    if len(cell.strings) > 1:
        return text[cell.strings[0].end : cell.strings[1].start]
    before = text[: cell.strings[0].start - 1]
    space = before[len(before.rstrip(" \t\r\n")) :]
    return f'",{space or " "}"'


def _is_same_edit(notebook: Notebook, wanted: tuple[Edit, ...], made: list[Edit]) -> bool:
    """Prove that the edited notebook has the edited code."""
    again = read(splice(notebook.source, tuple(made)))
    return isinstance(again, Notebook) and again.code.text == splice(notebook.code, wanted).text


def _line_in(notebook: Notebook, offset: int) -> int:
    """Give the line of the JSON text on which a character of the code stands."""
    if not notebook.cells:
        return 1
    cell = notebook.cells[max(0, bisect.bisect_right([cell.start for cell in notebook.cells], offset) - 1)]
    at = cell.start
    place = cell.strings[0].start if cell.strings else 0
    for string in cell.strings:
        if at <= offset:
            place = string.start
        at += len(string.value)
    return bisect.bisect_right(notebook.source.line_starts(), place)


def _at_line(notebook: Notebook, line: int) -> int:
    starts = notebook.code.line_starts()
    return _line_in(notebook, starts[min(line, len(starts)) - 1])


def _in_file(notebook: Notebook, found: _Found) -> _Found:
    return dataclasses.replace(found, line=_at_line(notebook, found.line))
