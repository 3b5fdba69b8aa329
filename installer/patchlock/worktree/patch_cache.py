"""The one cache of what patches find: per file, by its content, the patches' parameters and our own code.

Patches search all of upstream's Python, which takes seconds for a large app. Most files are the same for every profile,
in every clone and after most pulls. What is kept is what an op found without a refusal, and that a postcondition holds.
A refusal or a problem may come of an accident, such as a codemod that was killed, or memory that ran out while a file
was parsed, and is asked again: of the 236 answers about xtts-webui none is one, and its warm `patch status` takes 3 %
longer so (0.46 s for 0.445 s), for checking what is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import json
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath

from patchlock.core import atomic_files, code_digest
from patchlock.model.patch import Ensure, Located, Op, Site
from patchlock.model.text_files import Edit, SourceText, encode
from patchlock.patches.evaluation import DIRECT, Evaluator, Memoized

FOLDER = "patch-answers"
"""Of the cache; has a folder for each version of our code."""
_ONE_AT_A_TIME = threading.Lock()
"""Pairs are locked side by side, and those of one app wait for the same answers."""


@contextlib.contextmanager
def evaluator(cache: Path) -> Iterator[Evaluator]:
    """Give the engine somebody to ask who remembers; what is new is kept at the end, however that comes.

    Args:
        cache: patchlock's; where it cannot be written, the next time takes as long as this one.
    """
    made_by = _made_by()
    if made_by is None:
        yield Memoized()
        return
    with _ONE_AT_A_TIME:
        cached = _Cached(cache / FOLDER / made_by)
        try:
            yield cached
        finally:
            cached.save()


def outdated_folders(cache: Path) -> tuple[Path, ...]:
    """Name the folders of answers that other code of ours gave, which nobody asks any more."""
    folder = cache / FOLDER
    found = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return tuple(path for path in found if path.name != _made_by())


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """All that is known about one content of one path, by the digest of the op or postcondition.

    What is no longer than this process is kept in no file: refusals, and what a postcondition found to be wrong.
    """

    located: dict[str, Located] = field(default_factory=dict)
    problems: dict[str, tuple[str, ...]] = field(default_factory=dict)


class _Cached:
    """Ask what no file of the cache answers; one such file has all answers about one content of one path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers: dict[Path, _Answers] = {}
        self._changed: set[Path] = set()
        self._rules: dict[Op | Ensure, str | None] = {}

    def locate(self, op: Op, source: SourceText) -> Located:
        """Let an op look at a file."""
        file, rule = self._file(source.path, encode(source)), self._rule(op)
        if rule is None:
            return DIRECT.locate(op, source)
        located = self._read(file).located
        if rule not in located:
            located[rule] = DIRECT.locate(op, source)
            if not located[rule].refusals:
                self._changed.add(file)
        return located[rule]

    def problems(self, ensure: Ensure, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Let a postcondition look at a file."""
        file, rule = self._file(path, data), self._rule(ensure)
        if rule is None:
            return DIRECT.problems(ensure, path, data)
        problems = self._read(file).problems
        if rule not in problems:
            problems[rule] = DIRECT.problems(ensure, path, data)
            if not problems[rule]:
                self._changed.add(file)
        return problems[rule]

    def save(self) -> None:
        """Write what is new; a file that cannot be written keeps none of the others from it."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(self._changed):
            text = _rendered(self._answers[file])
            whole = f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n"
            with contextlib.suppress(OSError):
                atomic_files.atomic_write(file, whole, sync=False)

    def _file(self, path: PurePosixPath, data: bytes) -> Path:
        name = code_digest.digest_of([(str(path), data)])
        return self._folder / f"{name}.json"

    def _read(self, file: Path) -> _Answers:
        """Read what is known of a file; nothing where it is damaged."""
        if file not in self._answers:
            self._answers[file] = _Answers()
            with contextlib.suppress(OSError, ValueError):
                digest, _, text = file.read_bytes().partition(b"\n")
                if digest == hashlib.sha256(text.rstrip(b"\n")).hexdigest().encode():
                    self._answers[file] = _parsed(text)
        return self._answers[file]

    def _rule(self, asked: Op | Ensure) -> str | None:
        if asked not in self._rules:
            words = _canonical(asked)
            self._rules[asked] = None if words is None else hashlib.sha256(words.encode()).hexdigest()
        return self._rules[asked]


def _rendered(answers: _Answers) -> str:
    located = {
        rule: [
            [(edit.start, edit.end, edit.text) for edit in found.edits],
            *([(site.line, site.text) for site in sites] for sites in (found.sites, found.settled)),
        ]
        for rule, found in answers.located.items()
        if not found.refusals
    }
    return json.dumps(
        {"located": located, "holds": sorted(rule for rule, said in answers.problems.items() if not said)}
    )


def _parsed(text: bytes) -> _Answers:
    """Read what `_rendered` wrote.

    Raises:
        ValueError: it is something else.
    """
    try:
        data = json.loads(text)
        located = {
            str(rule): Located(
                edits=tuple(Edit(start=int(start), end=int(end), text=str(text)) for start, end, text in edits),
                sites=tuple(Site(line=int(line), text=str(text)) for line, text in sites),
                settled=tuple(Site(line=int(line), text=str(text)) for line, text in settled),
            )
            for rule, (edits, sites, settled) in data["located"].items()
        }
        return _Answers(located=located, problems={str(rule): () for rule in data["holds"]})
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError("these are no answers") from error


@functools.cache
def _made_by() -> str | None:
    """Digest all that an answer depends on beside the file and the rule: our code, Python, and the libraries."""
    code = code_digest.digest()
    try:
        installed = sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    except OSError:
        return None
    return None if code is None else hashlib.sha256(" ".join([code, *installed]).encode()).hexdigest()[:16]


def _canonical(value: object) -> str | None:
    """Write a value so that equal ones are written alike in every process; None for what cannot be."""
    parts: Iterable[object]
    match value:
        case None | bool() | int() | float() | str() | enum.Enum():
            return repr(value)
        case _ if isinstance(value, PurePath) or type(value).__module__.startswith("packaging."):
            return f"{type(value).__name__} {str(value)!r}"
        case Mapping():
            parts = sorted(value.items())
        case frozenset():
            parts = sorted(value)
        case tuple() | list():
            parts = value
        case _ if dataclasses.is_dataclass(value):
            parts = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        case _:
            return None
    written = [_canonical(part) for part in parts]
    return None if None in written else f"{type(value).__qualname__}({', '.join(map(str, written))})"
