"""Run the catalogue's codemods in one process beside ours; however a codemod ends, there is an answer or a reason."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from patchlock.catalogue import _children, agreement
from patchlock.core import process
from patchlock.model.errors import CatalogueError, CommandFailedError, Problem
from patchlock.model.patch import Located, OutcomeKind, Patch, Refusal, Site
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches.ops.codemod import Codemod
from patchlock.patches.ops.syntax import Module, parse

_GRACE = 15
"""Seconds for the process to see itself that the time is over."""
_NO_MEMORY = ("MemoryError", "can't start new thread", "annot allocate memory", "memory allocation of")
"""What Python, the C library and Rust say then."""
_PLACE = re.compile(r"line ([1-9]\d*): (.+)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, kw_only=True)
class BoundCodemod:
    """A codemod with its code; an op like the others, but that it runs a program."""

    declared: Codemod
    code: str
    untrusted: Path | None = None
    """The folder of its catalogue, where nobody has agreed that this runs code."""

    def locate(self, source: SourceText) -> Located:
        """Let the codemod change the file, and find out where it did; how it fails is a refusal.

        The lines that it names in `context.scratch["settled"]` are as wanted already, and what it says by `warn` is a
        place that it will not touch. A file that it leaves as it is without a word needs nothing.

        Raises:
            UntrustedCatalogueError: nobody has agreed that its catalogue runs code.
            CommandFailedError: there is too little memory to run it, which says nothing about the file.
        """
        if self.untrusted is not None:
            raise agreement.untrusted_error(self.untrusted)
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(module,))
        answer = _ask(
            module=self.declared.module,
            code=self.code,
            command=self.declared.command,
            arguments=tuple(sorted(self.declared.arguments.items())),
            timeout=self.declared.timeout,
            path=str(source.path),
            text=source.text,
        )
        if isinstance(answer, _Failed):
            why = f"the codemod {self.declared.module}:{self.declared.command} failed: {answer.why}"
            return Located(refusals=(Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),))
        edits = _edits(source.text, answer.text)
        after = parse(splice(source, edits))
        if isinstance(after, Refusal):
            why = f"the codemod {self.declared.module}:{self.declared.command} made code that is none: {after.why}"
            return Located(refusals=(Refusal(line=after.line, kind=OutcomeKind.AMBIGUOUS, why=why),))
        lines = range(1, len(module.starts) + 1)
        return Located(
            edits=edits,
            sites=tuple(_site(module, edit.start) for edit in edits),
            settled=tuple(_site(module, module.starts[line - 1]) for line in answer.settled if line in lines),
            refusals=answer.refusals,
        )


@dataclass(frozen=True, kw_only=True)
class _Answer:
    text: str
    settled: tuple[int, ...]
    """Lines, 1-based and sorted."""
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, kw_only=True)
class _Failed:
    why: str
    """A clause."""


def bind(patches: Iterable[Patch], folder: Path, untrusted: Path | None = None) -> tuple[Patch, ...]:
    """Give each declared codemod among patches its code, which makes it an op that can do its work.

    Args:
        patches: as they were declared.
        folder: of the file that declares them.
        untrusted: the catalogue's folder, where nobody has agreed that it runs code.

    Raises:
        CatalogueError: a codemod's file is not there, or is no Python; carries all of these mistakes.
    """
    problems: list[Problem] = []
    bound = []
    for patch in patches:
        op = patch.op
        if isinstance(op, Codemod):
            read = _read(folder / op.module)
            if isinstance(read, _Failed):
                what = f'the codemod "{op.module}" {read.why}'
                problems.append(
                    Problem(file=patch.origin.file, line=patch.origin.line, key="module", what=what, remedy="")
                )
            else:
                op = BoundCodemod(declared=op, code=read, untrusted=untrusted)
        bound.append(dataclasses.replace(patch, op=op))
    if problems:
        raise CatalogueError(problems)
    return tuple(bound)


def texts(patches: Iterable[Patch]) -> dict[str, str]:
    """Give the code of the codemods among patches, by POSIX path from the folder of the file that declares them."""
    return {patch.op.declared.module: patch.op.code for patch in patches if isinstance(patch.op, BoundCodemod)}


def _read(path: Path) -> str | _Failed:
    try:
        text = path.read_bytes().decode("utf-8")
        ast.parse(text)
    except OSError:
        return _Failed(why="cannot be read from the app's folder")
    except (ValueError, SyntaxError) as error:
        return _Failed(why=f"is not Python in UTF-8: {error}")
    return text


def _ask(
    *,
    module: str,
    code: str,
    command: str,
    arguments: tuple[tuple[str, str], ...],
    timeout: int,
    path: str,
    text: str,
) -> _Answer | _Failed:
    question: Mapping[str, object] = {
        "module": module,
        "code": code,
        "command": command,
        "arguments": dict(arguments),
        "path": path,
        "text": text,
        "timeout": timeout,
    }
    runner = _runner()
    said = runner.ask(json.dumps(question).encode(), timeout + _GRACE)
    answer: dict[str, Any] = json.loads(said) if said else _unanswered(runner.ending)
    if answer["is_last"]:
        runner.end()
        _runner.cache_clear()
    if answer.get("lacks_memory"):
        raise CommandFailedError(
            "the process that runs codemods has too little memory",
            where=f"{module}:{command} for {path}",
            remedy="close other programs or raise its limit (`ulimit -v`), then run the same command again",
            evidence=[str(answer["failed"])],
        )
    if "failed" in answer:
        return _Failed(why=str(answer["failed"]))
    return _Answer(
        text=answer["text"], settled=tuple(answer["settled"]), refusals=tuple(map(_refusal, answer["warnings"]))
    )


def _unanswered(ending: process.Ending | None) -> dict[str, object]:
    """Say how the process ended, in the form of an answer; the system kills what takes too much memory."""
    if ending is None:
        return {"failed": "its process ended without an answer", "is_last": True}
    short = next((line for line in ending.lines if any(words in line for words in _NO_MEMORY)), "")
    line = short or (ending.lines[-1] if ending.lines else "")
    failed = f"its process {ending.how}: {line}" if line else f"its process {ending.how}"
    return {"failed": failed, "is_last": True, "lacks_memory": bool(short) or "SIGKILL" in ending.how}


@lru_cache(maxsize=1)  # starting it, and importing LibCST, takes ten times as long as a file
def _runner() -> process.Dialogue:
    script = Path(_children.__file__).parent / "codemod.py"
    return process.Dialogue(sys.executable, "-I", str(script), env=process.environment(), cwd=Path(sys.prefix))


def _refusal(warning: str) -> Refusal:
    """Read a warning, `line 12: why`; one without a line is about the whole file."""
    found = _PLACE.fullmatch(warning)
    line, why = (int(found[1]), found[2]) if found else (1, warning)
    return Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why)


def _edits(before: str, after: str) -> tuple[Edit, ...]:
    """Give the changes between two texts, each as small as its lines allow."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal" and i2 - i1 == j2 - j1:
            edits += [_trimmed(starts[i1 + n], old[i1 + n], new[j1 + n]) for n in range(i2 - i1)]
        elif tag != "equal":
            edits.append(_trimmed(starts[i1], "".join(old[i1:i2]), "".join(new[j1:j2])))
    return tuple(edits)


def _trimmed(start: int, old: str, new: str) -> Edit:
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    rest = shortest - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return Edit(start=start + head, end=start + len(old) - tail, text=new[head : len(new) - tail])


def _site(module: Module, offset: int) -> Site:
    start = module.line_start(offset)
    text = module.source.text[start : module.line_end(offset)]
    return Site(line=module.starts.index(start) + 1, text=text.strip())
