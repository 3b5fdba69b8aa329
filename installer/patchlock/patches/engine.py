"""Apply patches to sources: sources in, edits and one outcome per patch and file out; pure, no I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from patchlock.model.errors import PatchError
from patchlock.model.patch import BLOCKING, FileChange, Located, Outcome, OutcomeKind, Patch, Patched, Site
from patchlock.model.text_files import SourceText, Undecodable, decode, encode, lines_after, splice
from patchlock.patches import targets
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.ops._diffs import AddFile


def for_profile(patches: Iterable[Patch], profile: str, chosen: Collection[str] = ()) -> tuple[Patch, ...]:
    """Keep the patches that a profile wants, in order; of the optional ones those that are chosen."""
    return tuple(
        patch
        for patch in patches
        if (not patch.profiles or profile in patch.profiles) and (not patch.optional or patch.optional in chosen)
    )


def apply(
    patches: Iterable[Patch],
    contents: Mapping[PurePosixPath, bytes],
    seen: Mapping[PurePosixPath, bytes] = MappingProxyType({}),
    evaluator: Evaluator = DIRECT,
) -> Patched:
    """Apply patches, in order, each on the result of those before it.

    A patch is atomic over its files: if it is blocked in one, or its `ensure` does not hold in one, none of its edits
    are kept and the others go on. A patch that finds its place taken by an earlier one, without saying `after`, fails.

    Args:
        patches: those that the profile wants; see `for_profile`.
        contents: files by path from the app's folder; see `candidates`.
        seen: files as the patches' author saw them, as far as they are known and are not there any more; a file that
            was renamed is known again by them.
        evaluator: whom to ask what ops find and postconditions say; one that remembers saves the work.
    """
    patches = tuple(patches)
    state = _State(contents, seen, evaluator)
    outcomes: list[Outcome] = []
    failures: list[str] = []
    kept: list[tuple[Patch, dict[PurePosixPath, bytes]]] = []
    for patch in patches:
        result = _apply_one(patch, state)
        outcomes += result.outcomes
        failures += result.failures
        state.write(patch, result)
        if not result.failures and not any(outcome.kind in BLOCKING for outcome in result.outcomes):
            kept.append((patch, {o.path: state.current[o.path] for o in result.outcomes if o.path}))
    failures += [
        f"{patch.id}: {path}: {problem}, after all patches"
        for patch, judged in kept
        for path, data in judged.items()
        if state.current[path] != data
        for ensure in patch.ensures
        for problem in evaluator.problems(ensure, path, state.current[path])
    ]
    scripts = {PurePosixPath(p.paths[0]) for p in patches if isinstance(p.op, AddFile) and p.op.executable}
    changes = tuple(
        FileChange(
            path=path,
            before=contents.get(path),
            after=state.current[path],
            is_executable=path in scripts and path not in contents,
        )
        for path in sorted(state.current)
        if contents.get(path) != state.current[path]
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
    wrong = incomplete_error(patched, where)
    if wrong is not None:
        raise wrong


def incomplete_error(patched: Patched, where: str) -> PatchError | None:
    """Say in one error which patches could not do what they say; None where all could."""
    blocked = [outcome for outcome in patched.outcomes if outcome.kind in BLOCKING]
    wrong = list(patched.failures)
    for outcome in blocked:
        for site in outcome.sites or (None,):
            line, why = (f":{site.line}", site.text) if site else ("", "")
            # The sites of a refusal say why, each its own; those of an outcome about the whole patch show the line.
            why = outcome.detail if outcome.kind is OutcomeKind.AMBIGUOUS and outcome.detail != why else why
            wrong.append(f"{outcome.patch}: {outcome.path}{line}: {outcome.kind.value}: {why or outcome.detail}")
    if not wrong:
        return None
    count = len({outcome.patch for outcome in blocked} | {text.partition(":")[0] for text in patched.failures})
    return PatchError(
        f"{count} patch{'es do not do what they say' if count > 1 else ' does not do what it says'}, "
        "so nothing was changed",
        where=where,
        remedy="use the commit that the catalogue names, or correct the patch",
        evidence=wrong,
    )


@dataclass(frozen=True, kw_only=True)
class _Result:
    outcomes: tuple[Outcome, ...]
    failures: tuple[str, ...] = ()
    written: Mapping[PurePosixPath, bytes] = dataclasses.field(default_factory=dict)
    located: targets.Found = dataclasses.field(default_factory=dict)


class _State:
    """The files while patches are applied, and who wrote them."""

    def __init__(
        self,
        contents: Mapping[PurePosixPath, bytes],
        seen: Mapping[PurePosixPath, bytes],
        evaluator: Evaluator,
    ) -> None:
        self.original = contents
        self.seen = seen
        self.evaluator = evaluator
        self.current = dict(contents)
        self.writers: dict[PurePosixPath, list[str]] = {}
        self._lines: dict[PurePosixPath, list[int]] = {}
        """Of each file that was written: from which line of upstream's each line comes."""

    def write(self, patch: Patch, result: _Result) -> None:
        """Keep what a patch wrote."""
        self.current |= result.written
        for path in result.written:
            self.writers.setdefault(path, []).append(patch.id)
            source, where = result.located[path]
            count = len(source.line_starts())
            self._lines[path] = lines_after(source, where.edits, self._lines.get(path) or range(1, count + 1))

    def in_upstream(self, path: PurePosixPath, where: Located) -> Located:
        """Give the lines of upstream's file for those of the file as earlier patches left it."""
        lines = self._lines.get(path)
        if lines is None:
            return where

        def line(at: int) -> int:
            return lines[min(at, len(lines)) - 1]

        return dataclasses.replace(
            where,
            sites=tuple(dataclasses.replace(site, line=line(site.line)) for site in where.sites),
            settled=tuple(dataclasses.replace(site, line=line(site.line)) for site in where.settled),
            refusals=tuple(dataclasses.replace(refusal, line=line(refusal.line)) for refusal in where.refusals),
        )


def _apply_one(patch: Patch, state: _State) -> _Result:
    contents = state.current
    named = targets.matching_files(patch, contents)
    located, unreadable = targets.locate(patch, named, contents, state.evaluator)
    outcomes = [_outcome(patch, OutcomeKind.UNPARSABLE, file.path, (), file.why) for file in unreadable]
    moved, doubt = targets.find_moved_files(patch, contents, state.seen, state.evaluator)
    located, moved = (
        {path: (source, state.in_upstream(path, where)) for path, (source, where) in found.items()}
        for found in (located, moved)
    )
    if doubt:
        outcomes.append(_outcome(patch, OutcomeKind.AMBIGUOUS, min(moved), (), doubt))
        return _Result(outcomes=tuple(outcomes))
    found = sum(len(where.sites) for _, where in (*located.values(), *moved.values()))
    for path, (_, where) in (located | moved).items():
        outcome = _judge(patch, path, where, found)
        if outcome is not None and path in moved and outcome.kind not in BLOCKING:
            gone = ", ".join(map(str, targets.missing(patch, contents)))
            outcome = dataclasses.replace(outcome, kind=OutcomeKind.MOVED, detail=f"{gone} is not there any more")
        outcomes += [outcome] if outcome is not None else []
    located |= moved
    outcomes.sort(key=lambda outcome: outcome.path or PurePosixPath())
    failures = _fights(patch, located, state)
    if not outcomes and not failures:
        nothing = "nothing there needs it" if named else f"no file matches {', '.join(patch.paths)}"
        return _Result(outcomes=(_outcome(patch, OutcomeKind.GONE, None, (), nothing),))
    if failures or any(outcome.kind in BLOCKING for outcome in outcomes):
        return _Result(outcomes=tuple(outcomes), failures=tuple(failures))
    written: dict[PurePosixPath, bytes] = {}
    for path, (source, where) in located.items():
        if where.edits:
            try:
                written[path] = data = encode(splice(source, where.edits))
            except UnicodeEncodeError:
                failures.append(f"{patch.id}: {path}: its encoding ({source.encoding}) lacks a character of the patch")
                continue
            failures += [f"{patch.id}: {path}: {problem}" for problem in _unsettled(patch, path, data, state.evaluator)]
        if where.edits or where.settled or where.refusals:  # a refusal that does not block is a promise, too
            data = written.get(path, contents.get(path, b""))
            failures += [
                f"{patch.id}: {path}: {problem}"
                for ensure in patch.ensures
                for problem in state.evaluator.problems(ensure, path, data)
            ]
    if failures:
        return _Result(outcomes=tuple(outcomes), failures=tuple(failures))
    return _Result(outcomes=tuple(outcomes), written=written, located=located)


def _fights(patch: Patch, located: targets.Found, state: _State) -> list[str]:
    """Say where an earlier patch took a place that this one wants; silence would look like "gone" otherwise."""
    failures = []
    for path, (_, where) in located.items():
        others = [writer for writer in state.writers.get(path, ()) if writer not in patch.after]
        before = decode(path, state.original[path]) if others and path in state.original else None
        if not isinstance(before, SourceText):
            continue
        wanted = state.evaluator.locate(patch.op, before)
        if len(wanted.sites) > len(where.sites) + len(where.settled):
            taken = next((s for s in wanted.sites if s not in where.sites), wanted.sites[0])
            failures.append(
                f"{patch.id}: {path}:{taken.line}: {' or '.join(others)} changes the same place; "
                f'if that is meant, write after = ["{others[-1]}"]'
            )
    return failures


def failed_ensures(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator = DIRECT) -> tuple[str, ...]:
    """Say why a file, as it stands, has not what a patch promises; an empty tuple where it has."""
    asked = [problem for ensure in patch.ensures for problem in evaluator.problems(ensure, path, data)]
    source = decode(path, data)
    if isinstance(source, SourceText):
        asked += [
            f"line {site.line}: `{site.text}` needs it again" for site in evaluator.locate(patch.op, source).sites
        ]
    return tuple(asked)


def _unsettled(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator) -> tuple[str, ...]:
    """Apply the op to its own result: a patch that finds more to do has not done what it says."""
    again = decode(path, data)
    if isinstance(again, Undecodable):
        return (f"the patched file cannot be read: {again.why}",)
    where = evaluator.locate(patch.op, again)
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
