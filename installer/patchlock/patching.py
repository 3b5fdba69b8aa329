"""Apply patches to sources: sources in, edits and one outcome per patch and file out; pure, no I/O."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from patchlock.errors import PatchError
from patchlock.model import (
    BLOCKING,
    FileChange,
    Located,
    Outcome,
    OutcomeKind,
    Patch,
    Patched,
    Site,
)
from patchlock.sources import SourceText, Undecodable, decode, encode, splice


def candidates(patches: Iterable[Patch], paths: Iterable[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Choose the files that some patch may touch, so that only these need to be read; sorted."""
    globs = [_glob(glob) for patch in patches for glob in patch.paths]
    return tuple(sorted(path for path in paths if any(glob.fullmatch(str(path)) for glob in globs)))


def for_profile(patches: Iterable[Patch], profile: str) -> tuple[Patch, ...]:
    """Keep the patches that a profile wants, in order."""
    return tuple(patch for patch in patches if not patch.profiles or profile in patch.profiles)


def apply(patches: Iterable[Patch], contents: Mapping[PurePosixPath, bytes]) -> Patched:
    """Apply patches, in order, each on the result of those before it.

    A patch is atomic over its files: if it is blocked in one, or its `ensure` does not hold in one, none of its edits
    are kept and the others go on.

    Args:
        patches: those that the profile wants; see `for_profile`.
        contents: files by path from the app's folder; see `candidates`.
    """
    current = dict(contents)
    outcomes: list[Outcome] = []
    failures: list[str] = []
    kept: list[tuple[Patch, list[PurePosixPath]]] = []
    for patch in patches:
        result = _apply_one(patch, current)
        outcomes += result.outcomes
        failures += result.failures
        current |= result.written
        if not result.failures and not any(outcome.kind in BLOCKING for outcome in result.outcomes):
            kept.append((patch, [outcome.path for outcome in result.outcomes if outcome.path]))
    failures += [
        f"{patch.id}: {path}: {problem}, after all patches"
        for patch, paths in kept
        for path in paths
        for ensure in patch.ensures
        for problem in ensure.problems(path, current[path])
    ]
    changes = tuple(
        FileChange(path=path, before=contents[path], after=current[path])
        for path in sorted(contents)
        if contents[path] != current[path]
    )
    return Patched(changes=changes, outcomes=tuple(outcomes), failures=tuple(failures))


def require_complete(patched: Patched, where: str) -> None:
    """Refuse a result in which some patch could not do what it says.

    Args:
        patched: the result.
        where: app and commit, for the message.

    Raises:
        PatchError: names every patch, file and line.
    """
    blocked = [outcome for outcome in patched.outcomes if outcome.kind in BLOCKING]
    wrong = list(patched.failures)
    for outcome in blocked:
        line = f":{outcome.sites[0].line}" if outcome.sites else ""
        wrong.append(f"{outcome.patch}: {outcome.path}{line}: {outcome.kind.value}: {outcome.detail}")
    if wrong:
        count = len({outcome.patch for outcome in blocked} | {text.partition(":")[0] for text in patched.failures})
        raise PatchError(
            f"{count} patch{'es do not do what they say' if count > 1 else ' does not do what it says'}, "
            "so nothing was changed",
            where=where,
            remedy="use the commit that the catalogue names, or correct the patch",
            evidence=wrong,
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Result:
    outcomes: tuple[Outcome, ...]
    failures: tuple[str, ...] = ()
    written: Mapping[PurePosixPath, bytes] = dataclasses.field(default_factory=dict)


def _apply_one(patch: Patch, contents: Mapping[PurePosixPath, bytes]) -> _Result:
    globs = [_glob(glob) for glob in patch.paths]
    named = [path for path in sorted(contents) if any(glob.fullmatch(str(path)) for glob in globs)]
    located: dict[PurePosixPath, tuple[SourceText, Located]] = {}
    outcomes: list[Outcome] = []
    for path in named:
        if not _mentions(contents[path], patch.literal):
            continue
        source = decode(path, contents[path])
        if isinstance(source, Undecodable):
            outcomes.append(_outcome(patch, OutcomeKind.UNPARSABLE, path, (), source.why))
            continue
        located[path] = (source, patch.op.locate(source))
    found = sum(len(where.sites) for _, where in located.values())
    outcomes += [o for path, (_, where) in located.items() if (o := _judge(patch, path, where, found)) is not None]
    outcomes.sort(key=lambda outcome: outcome.path or PurePosixPath())
    if not outcomes:
        nothing = "nothing there needs it" if named else f"no file matches {', '.join(patch.paths)}"
        return _Result(outcomes=(_outcome(patch, OutcomeKind.GONE, None, (), nothing),))
    if any(outcome.kind in BLOCKING for outcome in outcomes):
        return _Result(outcomes=tuple(outcomes))
    written: dict[PurePosixPath, bytes] = {}
    failures: list[str] = []
    for path, (source, where) in located.items():
        if where.edits:
            try:
                written[path] = data = encode(splice(source, where.edits))
            except UnicodeEncodeError:
                failures.append(f"{patch.id}: {path}: its encoding ({source.encoding}) lacks a character of the patch")
                continue
            failures += [f"{patch.id}: {path}: {problem}" for problem in _unsettled(patch, path, data)]
        if where.edits or where.settled:
            data = written.get(path, contents[path])
            failures += [f"{patch.id}: {path}: {problem}" for e in patch.ensures for problem in e.problems(path, data)]
    if failures:
        return _Result(outcomes=tuple(outcomes), failures=tuple(failures))
    return _Result(outcomes=tuple(outcomes), written=written)


def _unsettled(patch: Patch, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
    """Apply the op to its own result: a patch that finds more to do has not done what it says."""
    again = decode(path, data)
    if isinstance(again, Undecodable):
        return (f"the patched file cannot be read: {again.why}",)
    where = patch.op.locate(again)
    if where.refusals:
        return (f"the patched file is refused at line {where.refusals[0].line}: {where.refusals[0].why}",)
    return ("applied twice it changes the file again",) if where.edits else ()


def _judge(patch: Patch, path: PurePosixPath, where: Located, found: int) -> Outcome | None:
    """Name what an op found in one file; None where it found nothing at all."""
    if where.refusals:
        first = where.refusals[0]
        sites = tuple(Site(line=r.line, text=r.why) for r in where.refusals)
        return _outcome(patch, first.kind, path, sites, first.why)
    if not where.sites:
        return _outcome(patch, OutcomeKind.FIXED_UPSTREAM, path, where.settled, "") if where.settled else None
    expected = patch.expect.sites
    if expected and patch.expect.exact and found != expected:
        detail = f"{expected} place{'s' if expected != 1 else ''} expected, {found} found"
        return _outcome(patch, OutcomeKind.AMBIGUOUS, path, where.sites, detail)
    if expected and found > expected:
        return _outcome(patch, OutcomeKind.NEW_SITES, path, where.sites, f"{found} places, the author saw {expected}")
    if where.settled:
        return _outcome(patch, OutcomeKind.PARTLY_FIXED, path, where.sites, f"{len(where.settled)} already as wanted")
    return _outcome(patch, OutcomeKind.NEEDED, path, where.sites, "")


def _outcome(
    patch: Patch, kind: OutcomeKind, path: PurePosixPath | None, sites: tuple[Site, ...], detail: str
) -> Outcome:
    return Outcome(patch=patch.id, op=patch.op_name, kind=kind, path=path, sites=sites, detail=detail)


def _mentions(data: bytes, literal: tuple[str, ...]) -> bool:
    encodings = ("utf-8", "utf-16-le", "utf-16-be")
    return not literal or any(text.encode(encoding) in data for text in literal for encoding in encodings)


@lru_cache(maxsize=256)
def _glob(glob: str) -> re.Pattern[str]:
    """Translate a glob over POSIX paths: `*` and `?` stay within a folder, `**/` crosses any number of them."""
    translated = ""
    rest = glob
    while rest:
        if rest.startswith("**/"):
            translated, rest = translated + "(?:[^/]+/)*", rest[3:]
        elif rest.startswith("**"):
            translated, rest = translated + ".*", rest[2:]
        elif rest[0] in "*?":
            translated, rest = translated + {"*": "[^/]*", "?": "[^/]"}[rest[0]], rest[1:]
        else:
            translated, rest = translated + re.escape(rest[0]), rest[1:]
    return re.compile(translated)
