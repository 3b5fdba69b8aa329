"""Apply patches to sources: sources in, edits and one outcome per patch and file out; pure, no I/O."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from patchlock.model.errors import PatchError
from patchlock.model.patch import BLOCKING, NOTHING, FileChange, Located, Outcome, OutcomeKind, Patch, Patched, Site
from patchlock.model.text_files import SourceText, Undecodable, decode, encode, lines_after, splice
from patchlock.patches import targets
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.ops._diffs import AddFile
from patchlock.patches.ops.syntax import missing_scopes

_ALIKE = "in an edited form or another place: what it promises holds"
_TWICE = "the file had what it promises before: see whether it is there twice now"
_OF_A_REQUIREMENT = frozenset({"set-requirement", "rename-requirement"})
"""Ops on a requirement that is there; one that upstream has dropped needs no other version or name."""


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
    skipped: Mapping[str, str] = MappingProxyType({}),
) -> Patched:
    """Apply patches, in order, each on the result of those before it; the advisory ones after all that are required.

    A patch is atomic over its files: if it is blocked in one, or its `ensure` does not hold in one, none of its edits
    are kept and the others go on. A patch that finds its place taken by an earlier one, without saying `after`, fails.
    An advisory patch also fails where it takes back what an earlier one promises: it never stops a required one.
    A file that a later patch makes is not there for those before it, also where it was made and committed long ago.

    Args:
        patches: those that the profile wants; see `for_profile`.
        contents: files by path from the app's folder; see `candidates`.
        seen: files as the patches' author saw them, as far as they are known and are not there any more; a file that
            was renamed is known again by them.
        evaluator: whom to ask what ops find and postconditions say; one that remembers saves the work.
        skipped: ids of patches that are not wanted, each with why, in a clause.
    """
    patches = tuple(patches)
    state = _State(contents, seen, evaluator)
    added = {patch.id: PurePosixPath(patch.paths[0]) for patch in patches if patch.op_name == targets.MAKES_FILES}
    for name in added.keys() & skipped.keys():
        del added[name]
    results: dict[str, _Result] = {}
    for patch in sorted(patches, key=lambda patch: patch.advisory):
        if patch.id in skipped:
            outcome = _outcome(patch, OutcomeKind.LEFT_OUT, None, (), skipped[patch.id])
            results[patch.id] = _Result(outcomes=(outcome,))
            state.left_out[patch.id] = patch
        else:
            added.pop(patch.id, None)
            results[patch.id] = result = _apply_one(patch, state, frozenset(added.values()))
            state.write(patch, result)
            if patch.advisory and not result.is_complete:
                results[patch.id] = _left_out(result)
                state.left_out[patch.id] = patch
    scripts = {PurePosixPath(p.paths[0]) for p in patches if isinstance(p.op, AddFile) and p.op.executable}
    changes = tuple(
        FileChange(
            path=path,
            before=contents.get(path),
            after=state.current[path],
            is_executable=path in scripts and path not in contents,
        )
        for path in sorted(path for path, data in state.current.items() if contents.get(path) != data)
    )
    return Patched(
        changes=changes,
        outcomes=tuple(outcome for patch in patches for outcome in results[patch.id].outcomes),
        failures=(
            *(text for patch in patches for text in results[patch.id].failures),
            *(f"{name}: {path}: {problem}, after all patches" for name, path, problem in state.broken_promises()),
        ),
        advisory=frozenset(patch.id for patch in patches if patch.advisory),
    )


def require_complete(patched: Patched, where: str) -> None:
    """Refuse a result in which some required patch could not do what it says; `where` is app and commit.

    Raises:
        PatchError: names every patch, file and line.
    """
    wrong = incomplete_error(patched, where)
    if wrong is not None:
        raise wrong


def incomplete_error(
    patched: Patched, where: str, command: str = "", *, ways: Iterable[str] = (), so: str = "so nothing was changed"
) -> PatchError | None:
    """Say in one error which required patches could not do what they say, and what came of it; None where all could.

    Args:
        patched: the result.
        where: app and commit, for the message.
        command: what was run, if it takes `--without ID`, which leaves a patch out.
        ways: what else helps there, a clause each.
        so: what came of it.
    """
    wrong = {name: texts for name, texts in _reasons(patched).items() if name not in patched.advisory}
    if not wrong:
        return None
    if command:  # in a clone of the user's; else at the commit that the catalogue names
        without = " ".join([command, *(f"--without {name}" for name in wrong)])
        remedies = [*ways]
        remedies.append(f"go on without {'it' if len(wrong) == 1 else 'them'}: `{without}`")
    else:
        remedies = ["correct the patch", "leave it out (one of a shared set by `without` in [app] of app.toml)"]
    return PatchError(
        f"{len(wrong)} patch{'es do not do what they say' if len(wrong) > 1 else ' does not do what it says'}, {so}",
        where=where,
        remedy=f"{', '.join(remedies[:-1])}, or {remedies[-1]}",
        evidence=[text for texts in wrong.values() for text in texts],
    )


def incomplete(patched: Patched) -> set[str]:
    """Name the required patches that could not do what they say."""
    return _reasons(patched).keys() - patched.advisory


def required_failures(patched: Patched) -> tuple[str, ...]:
    """Give the checks of required patches that did not hold."""
    return tuple(text for text in patched.failures if text.partition(":")[0] not in patched.advisory)


def left_out(patched: Patched) -> tuple[str, ...]:
    """Say of each advisory patch that could not do what it says why it was left out, a sentence for each place."""
    return tuple(
        f"{text}; the patch is advisory, and was left out"
        for name, texts in _reasons(patched).items()
        if name in patched.advisory
        for text in texts
    )


def _reasons(patched: Patched) -> dict[str, list[str]]:
    """Say by patch why it could not do what it says: `<patch>: <path>:<line>: <why>`."""
    wrong: dict[str, list[str]] = {}
    for text in patched.failures:
        wrong.setdefault(text.partition(":")[0], []).append(text)
    for outcome in patched.outcomes:
        for site in (outcome.sites or (None,)) if outcome.kind in BLOCKING else ():
            line, why = (f":{site.line}", site.text) if site else ("", "")
            # The sites of a refusal say why, each its own; those of an outcome about the whole patch show the line.
            why = outcome.detail if outcome.kind is OutcomeKind.AMBIGUOUS and outcome.detail != why else why
            text = f"{outcome.patch}: {outcome.path}{line}: {outcome.kind.value}: {why or outcome.detail}"
            wrong.setdefault(outcome.patch, []).append(text)
    return wrong


@dataclass(frozen=True, kw_only=True)
class _Result:
    outcomes: tuple[Outcome, ...]
    failures: tuple[str, ...] = ()
    written: Mapping[PurePosixPath, bytes] = dataclasses.field(default_factory=dict)
    located: targets.Found = dataclasses.field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Tell whether the patch did what it says."""
        return not self.failures and not any(outcome.kind in BLOCKING for outcome in self.outcomes)


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
        self.writers: dict[PurePosixPath, list[Patch]] = {}
        self.left_out: dict[str, Patch] = {}
        self._promises: list[tuple[Patch, PurePosixPath, bytes]] = []
        """Each patch that did what it says, with each file that its `ensure` was asked of, as it was then."""
        self._lines: dict[PurePosixPath, list[int]] = {}
        """Of each file that was written: from which line of upstream's each line comes."""

    def write(self, patch: Patch, result: _Result) -> None:
        """Keep what a patch wrote, and what it promises."""
        self.current |= result.written
        if result.is_complete:
            paths = [o.path for o in result.outcomes if o.path and o.kind is not OutcomeKind.PASSED_OVER]
            self._promises += [(patch, path, self.current[path]) for path in paths]
        for path in result.written:
            self.writers.setdefault(path, []).append(patch)
            source, where = result.located[path]
            count = len(source.line_starts())
            self._lines[path] = lines_after(source, where.edits, self._lines.get(path) or range(1, count + 1))

    def broken_promises(
        self, written: Mapping[PurePosixPath, bytes] | None = None
    ) -> list[tuple[str, PurePosixPath, str]]:
        """Say what patches promise and does not hold any more, after others have changed the same files.

        Args:
            written: what a patch would write; None asks about the files as they stand.

        Returns:
            Id of the patch, file, and what does not hold.
        """
        return [
            (patch.id, path, problem)
            for patch, path, data in self._promises
            if (now := (self.current if written is None else written).get(path, data)) != data
            for ensure in patch.ensures
            for problem in self.evaluator.problems(ensure, path, now)
        ]

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


def _apply_one(patch: Patch, state: _State, to_come: Collection[PurePosixPath]) -> _Result:
    contents = {path: data for path, data in state.current.items() if path not in to_come} if to_come else state.current
    named = targets.matching_files(patch, contents)
    located, unreadable = targets.locate(patch, named, contents, state.evaluator)
    moved, doubt = targets.find_moved_files(patch, contents, state.seen, state.evaluator)
    located, moved = (
        {path: (source, state.in_upstream(path, where)) for path, (source, where) in found.items()}
        for found in (located, moved)
    )
    outcomes = [_outcome(patch, OutcomeKind.UNPARSABLE, file.path, (), file.why) for file in unreadable]
    outcomes += [o for path in _unparsable(located) if (o := _judge(patch, path, located.pop(path)[1], 0)) is not None]
    outcomes = _passed_over(patch, named, outcomes)
    if doubt:
        outcomes.append(_outcome(patch, OutcomeKind.AMBIGUOUS, min(moved), (), doubt))
        return _Result(outcomes=tuple(outcomes))
    found = sum(len(where.sites) for _, where in (*located.values(), *moved.values()))
    for path, (_, where) in (located | moved).items():
        outcome = _judge(patch, path, where, found)
        if outcome is not None and path in moved and outcome.kind not in BLOCKING:
            gone = ", ".join(map(str, targets.missing(patch, contents)))
            kind = OutcomeKind.MOVED if where.sites else outcome.kind
            outcome = dataclasses.replace(outcome, kind=kind, detail=f"{gone} no longer exists")
        is_new = outcome is not None and not outcome.detail and not where.settled and targets.only_adds(where)
        if outcome and is_new and targets.is_kept(patch, path, contents.get(path, b""), state.evaluator):
            outcome = dataclasses.replace(outcome, detail=_TWICE)
        outcomes += [outcome] if outcome is not None else []
    located |= moved
    failures = _fights(patch, located, state) + _missed(patch, named, outcomes, state)
    if not outcomes and not failures:
        outcomes += _not_there(patch, named, state)
    if not outcomes:
        nothing = NOTHING if named else f"no file matches {', '.join(patch.paths)}"
        outcomes = [_outcome(patch, OutcomeKind.GONE, None, (), nothing)]
    outcomes.sort(key=lambda outcome: outcome.path or PurePosixPath())
    if failures or any(outcome.kind in BLOCKING for outcome in outcomes):
        failures += _broken_beside(patch, located, state)
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
    if patch.advisory:
        failures += [
            f"{patch.id}: {path}: with it, {other} fails: {problem}"
            for other, path, problem in state.broken_promises(written)
        ]
    if failures:
        return _Result(outcomes=tuple(outcomes), failures=tuple(failures))
    return _Result(outcomes=tuple(outcomes), written=written, located=located)


def _broken_beside(patch: Patch, located: targets.Found, state: _State) -> Iterator[str]:
    """Say what else a patch that is refused would not keep of its promise, so that all places are named at once."""
    for path, (source, _) in located.items():
        where = state.evaluator.locate(patch.op, source)
        if not (where.edits or where.settled):  # where all is refused, the promise says the same again
            continue
        refused = tuple(f"line {refusal.line}:" for refusal in where.refusals)
        try:
            data = encode(splice(source, where.edits))
        except UnicodeEncodeError:
            continue
        for problem in (p for ensure in patch.ensures for p in state.evaluator.problems(ensure, path, data)):
            if not refused or (problem.startswith("line ") and not problem.startswith(refused)):
                yield f"{patch.id}: {path}: {problem}"


def _left_out(result: _Result) -> _Result:
    """Say of the files of an advisory patch that could not do all that it says that nothing was done in them."""
    outcomes = tuple(
        outcome
        if outcome.kind in BLOCKING or outcome.path is None
        else dataclasses.replace(outcome, kind=OutcomeKind.LEFT_OUT, detail="")
        for outcome in result.outcomes
    )
    return dataclasses.replace(result, outcomes=outcomes)


def _unparsable(located: targets.Found) -> list[PurePosixPath]:
    """Name the files of which an op says that it cannot read them, or a line that matters."""
    return [
        path
        for path, (_, where) in located.items()
        if where.refusals and all(refusal.kind is OutcomeKind.UNPARSABLE for refusal in where.refusals)
    ]


def _passed_over(patch: Patch, named: Collection[PurePosixPath], unparsable: list[Outcome]) -> list[Outcome]:
    """Go on without files that cannot be read, if others can, and the patch does not name them without a wildcard."""
    if len(unparsable) == len(named):
        return unparsable
    return [
        outcome if str(outcome.path) in patch.paths else dataclasses.replace(outcome, kind=OutcomeKind.PASSED_OVER)
        for outcome in unparsable
    ]


def _missed(patch: Patch, named: Collection[PurePosixPath], outcomes: Collection[Outcome], state: _State) -> list[str]:
    """Say what a patch cannot do because one that goes before it was left out."""
    failures = []
    is_idle = all(outcome.kind is OutcomeKind.PASSED_OVER for outcome in outcomes)
    for other in (state.left_out[name] for name in patch.after if name in state.left_out):
        if isinstance(other.op, AddFile) and not is_idle:
            failures.append(f"{patch.id}: {other.paths[0]}: {other.id}, which makes it, was left out")
        elif is_idle:
            both = [path for path in targets.matching_files(other, state.current) if path in named]
            found, _ = targets.locate(other, both, state.current, state.evaluator)
            path = next((path for path, (_, where) in found.items() if where.sites or where.refusals), None)
            failures += (
                [f"{patch.id}: {path}: without {other.id}, which was left out, it finds nothing"] if path else []
            )
    return failures


def _not_there(patch: Patch, named: Collection[PurePosixPath], state: _State) -> Iterable[Outcome]:
    """Refuse the files that a patch names, and in which it finds nothing although they lack what it promises.

    Those that have it are not called fixed: that it stands somewhere is no proof that it stands in the patch's place.

    The requirement whose version it sets may be gone for good, and so may what a patch forbids: then nothing is asked
    for in its place.
    """
    if patch.op_name in _OF_A_REQUIREMENT:
        return
    for path in (path for path in named if str(path) in patch.paths and path in state.current):
        source = decode(path, state.current[path])
        gone = missing_scopes(source, getattr(patch.op, "within", ())) if isinstance(source, SourceText) else ()
        why = f" as the file has no {' and no '.join(gone)}," if gone else ""
        forbidding = [ensure for ensure in patch.ensures if not state.evaluator.problems(ensure, path, b"")]
        for ensure in forbidding or patch.ensures:
            for problem in state.evaluator.problems(ensure, path, state.current[path])[:1]:
                detail = f"it finds nothing to change there,{why} and what it promises does not hold: {problem}"
                yield _outcome(patch, OutcomeKind.AMBIGUOUS, path, (), detail)


def _fights(patch: Patch, located: targets.Found, state: _State) -> list[str]:
    """Say where an earlier patch took a place that this one wants; silence would look like "gone" otherwise."""
    failures = []
    for path, (_, where) in located.items():
        writers = state.writers.get(path, [])
        is_open = any(writer.id not in patch.after for writer in writers)
        before = decode(path, state.original[path]) if is_open and path in state.original else None
        if not isinstance(before, SourceText):
            continue
        wanted = state.evaluator.locate(patch.op, before)
        if len(wanted.sites) > len(where.sites) + len(where.settled):
            takers = [one for one in writers if _takes(one, patch, before, len(wanted.sites), state)] or writers
            others = [writer.id for writer in takers if writer.id not in patch.after]
            taken = next((s for s in wanted.sites if s not in where.sites), wanted.sites[0])
            if others:
                failures.append(
                    f"{patch.id}: {path}:{taken.line}: {' and '.join(others)} change{'s' if len(others) == 1 else ''} "
                    "the same place first, and this patch finds nothing there; leave one of them out (one of a shared "
                    f"set by `without` in [app] of app.toml), or, if that is meant, write after = {json.dumps(others)}"
                )
    return failures


def _takes(writer: Patch, patch: Patch, before: SourceText, wanted: int, state: _State) -> bool:
    """Tell whether a patch alone takes a place of upstream's file that another one wants."""
    after = splice(before, state.evaluator.locate(writer.op, before).edits)
    left = state.evaluator.locate(patch.op, after)
    return len(left.sites) + len(left.settled) < wanted


def failed_ensures(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator = DIRECT) -> tuple[str, ...]:
    """Say why a file, as it stands, has not what a patch promises; an empty tuple where it has."""
    asked = [problem for ensure in patch.ensures for problem in evaluator.problems(ensure, path, data)]
    source = decode(path, data)
    if isinstance(source, SourceText):
        sites = targets.in_file(patch, source, data, evaluator).sites
        asked += [f"line {site.line}: `{site.text}` needs it again" for site in sites]
    return tuple(asked)


def edited_places(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator = DIRECT) -> tuple[str, ...]:
    """Say where a file has what a patch writes in an edited form, whether it keeps the promise or not."""
    source = decode(path, data)
    refusals = evaluator.locate(patch.op, source).refusals if isinstance(source, SourceText) else ()
    return tuple(f"line {refusal.line}: {refusal.why}" for refusal in refusals if refusal.is_edit)


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
        told = _ALIKE if where.is_alike else ""
        return _outcome(patch, OutcomeKind.FIXED_UPSTREAM, path, where.settled, told) if where.settled else None
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
