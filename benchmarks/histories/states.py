"""Apply patches to every state of a history with patchlock's own engine, and let an independent judge decide."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Protocol

from histories.repository import Commit, Files, Repository
from patchlock.model.patch import BLOCKING, Ensure, Located, Op, OutcomeKind, Patch
from patchlock.model.text_files import SourceText
from patchlock.patches import engine, targets

Contents = Mapping[PurePosixPath, bytes]


class Judge(Protocol):
    """Decides on a file without any code of patchlock."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say what the patch is for; nothing where it is not needed."""
        ...

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say what changed that must not."""
        ...

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Tell whether a refusal is the right answer for a file."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One patch over one history."""

    repository: str
    patch: Patch
    judge: Judge
    scope: str
    """Regular expression of the paths where the judge looks, whatever the patch's own `paths`."""
    literals: tuple[str, ...] = ()
    """A file without any of these is none of the judge's business; empty: every file of the scope is."""
    directory: str = "."
    """The app's folder in the clone; the patch sees paths from there."""
    every: int = 1
    """Only each so-manieth commit of the history, counted from HEAD."""
    by_file: bool = False
    """Each distinct file of the history is a state of its own: one file that is refused hides no other."""
    is_app: bool = False
    """It is a patch of the catalogue; the others show how the ops generalise."""

    @property
    def name(self) -> str:
        """Name the row in a table."""
        return f"{self.repository} · {self.patch.id}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a patch in one state."""

    kind: str
    """`right`, `refused`, `silent`, or `no target`."""
    why: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """A distinct tuple of the files that a patch is about."""

    files: Files
    targets: Files
    """Those in which the judge finds the trouble."""
    commits: tuple[str, ...]
    verdict: Verdict
    after: Contents
    """What ours made of it, if the verdict is `right`."""


class Remembered:
    """An op or an ensure that answers a question once: both are pure, and most files of a history stay the same."""

    def __init__(self, inner: Op | Ensure) -> None:
        self.inner = inner
        self._located: dict[SourceText, Located] = {}
        self._problems: dict[tuple[PurePosixPath, bytes], tuple[str, ...]] = {}

    def locate(self, source: SourceText) -> Located:
        """Answer as the op does."""
        if source not in self._located:
            self._located[source] = self.inner.locate(source)
        return self._located[source]

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Answer as the ensure does."""
        if (path, data) not in self._problems:
            self._problems[path, data] = self.inner.problems(path, data)
        return self._problems[path, data]


class RememberedJudge:
    """A judge that answers a question once."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Answer as the judge does."""
        return self._ask(self.inner.violations, path, data)

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Answer as the judge does."""
        return self._ask(self.inner.damage, path, before, after)

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Answer as the judge does."""
        return self.inner.is_beyond_help(path, data)

    def _ask(self, question: Callable[..., tuple[str, ...]], *about: object) -> tuple[str, ...]:
        key = (question.__name__, *about)
        if key not in self._known:
            self._known[key] = question(*about)
        return self._known[key]


def remembered(row: Row) -> Row:
    """Give the same row, whose pure parts remember their answers."""
    ensures = tuple(Remembered(ensure) for ensure in row.patch.ensures)
    patch = dataclasses.replace(row.patch, op=Remembered(row.patch.op), ensures=ensures)
    return dataclasses.replace(row, patch=patch, judge=RememberedJudge(row.judge))


def in_scope(row: Row) -> Callable[[PurePosixPath], bool]:
    """Make the question whether a path is one where the patch works or the judge looks."""
    scope = re.compile(row.scope)

    @functools.cache
    def is_in_scope(path: PurePosixPath) -> bool:
        return bool(scope.fullmatch(str(path)) or targets.candidates([row.patch], [path]))

    return is_in_scope


def relevant(row: Row, repository: Repository) -> Callable[[PurePosixPath, str], bool]:
    """Make the question which files a row is about: those of the patch and those of the judge, if they mention it."""
    is_wanted = in_scope(row)
    literals = row.literals or row.patch.literal
    needles = [text.encode(coding) for text in literals for coding in ("utf-8", "utf-16-le", "utf-16-be")]

    def is_relevant(path: PurePosixPath, blob: str) -> bool:
        if not is_wanted(path):
            return False
        if not needles:
            return True
        data = repository.read(blob)
        return data is not None and any(needle in data for needle in needles)

    return is_relevant


def states(row: Row, repository: Repository, commits: tuple[Commit, ...]) -> tuple[State, ...]:
    """Apply a row's patch to every state of a history; oldest first, states without a target included."""
    is_relevant = relevant(row, repository)
    repository.forget_trees()
    seen: dict[tuple[tuple[PurePosixPath, str], ...], list[str]] = {}
    for commit in commits:
        files = tuple(sorted(repository.files(repository.folder(commit.tree, row.directory), is_relevant).items()))
        if row.by_file:
            for file in files:
                seen.setdefault((file,), []).append(commit.id)
        else:
            seen.setdefault(files, []).append(commit.id)
    return tuple(_state(row, repository, dict(files), tuple(ids)) for files, ids in seen.items())


def _state(row: Row, repository: Repository, files: Files, commits: tuple[str, ...]) -> State:
    contents = {path: data for path, id_ in files.items() if (data := repository.read(id_)) is not None}
    targeted = {
        path: id_ for path, id_ in files.items() if path in contents and violations(row, {path: contents[path]})
    }
    verdict, after = judge(row, contents)
    return State(files=files, targets=targeted, commits=commits, verdict=verdict, after=after)


def judge(row: Row, contents: Contents) -> tuple[Verdict, Contents]:
    """Apply a row's patch to files, and judge the result."""
    if not violations(row, contents):
        return Verdict(kind="no target"), contents
    patched = engine.apply([row.patch], contents)
    refusals = [
        f"{outcome.kind.value}: {outcome.detail}" for outcome in patched.outcomes if outcome.kind in BLOCKING
    ] + [f"ensure: {failure.partition(': ')[2].partition(': ')[2]}" for failure in patched.failures]
    if refusals:
        why = Counter(map(generalised, refusals)).most_common(1)[0][0]
        needed = "" if not row.by_file or is_beyond_help(row, contents) else "needlessly: "
        return Verdict(kind="refused", why=needed + why), contents
    after = {**contents, **{change.path: change.after for change in patched.changes}}
    wrong = faults(row, contents, after)
    if wrong:
        gone = any(outcome.kind is OutcomeKind.GONE for outcome in patched.outcomes)
        return Verdict(kind="silent", why=f"{'said to be gone; ' if gone else ''}{wrong[0]}"), contents
    return Verdict(kind="right"), after


def is_beyond_help(row: Row, contents: Contents) -> bool:
    """Ask the judge whether any file cannot be helped."""
    return any(row.judge.is_beyond_help(path, data) for path, data in contents.items())


def violations(row: Row, contents: Contents) -> tuple[str, ...]:
    """Ask the judge where the patch is needed."""
    scope = re.compile(row.scope)
    return tuple(
        f"{path}: {what}"
        for path, data in contents.items()
        if scope.fullmatch(str(path))
        for what in row.judge.violations(path, data)
    )


def faults(row: Row, before: Contents, after: Contents) -> tuple[str, ...]:
    """Ask the judge what is wrong with a result."""
    damaged = tuple(
        f"{path}: {what}"
        for path, data in after.items()
        if path in before and data != before[path]
        for what in row.judge.damage(path, before[path], data)
    )
    return violations(row, after) + damaged


def generalised(reason: str) -> str:
    """Take numbers out of a reason, so that equal ones are counted together."""
    return re.sub(r"line \d+", "line …", reason)[:160]
