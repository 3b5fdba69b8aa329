"""Try the proposed patches on upstream's files, and narrow those that are refused somewhere until all apply; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue import shared_sets
from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.proposals.findings import Files, ProposedPatch, SetChoice
from patchlock.model.app import SharedSet
from patchlock.model.patch import BLOCKING, Outcome, OutcomeKind, Patch
from patchlock.patches import engine, targets, trials
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.postconditions import ENSURES

_AFTER = re.compile(r'write after = \["([a-z0-9-]+)"\](?: in ([a-z0-9-]+))?')
_ROUNDS = 30
_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Patches that all apply, with what they promise."""

    sets: tuple[SetChoice, ...]
    sections: tuple[ProposedPatch, ...]
    outcomes: tuple[Outcome, ...]
    """Of the last try, for the first profile."""
    problems: tuple[str, ...]
    """What is still wrong; empty where all is well."""


@dataclasses.dataclass(slots=True)
class _Trouble:
    """Why one patch cannot be as it is."""

    files: dict[PurePosixPath, str] = dataclasses.field(default_factory=dict)
    """Where it cannot be applied → why."""
    after: list[str] = dataclasses.field(default_factory=list)
    everywhere: str = ""


def fit(
    choices: Sequence[SetChoice],
    sections: Sequence[ProposedPatch],
    sets: Mapping[str, SharedSet],
    files: Files,
    requirement_files: tuple[str, ...],
    profiles: Sequence[str],
    evaluator: Evaluator,
) -> Fitted:
    """Apply everything for each profile; where a patch is refused in a file, it goes on without that file.

    Args:
        choices: shared sets that are taken.
        sections: patches of the app's own.
        sets: all shared sets by their names.
        files: of the tree.
        requirement_files: which stand for `{requirements}` in sets.
        profiles: for which the patches are tried, the first of them first.
        evaluator: whom to ask what ops find; one that remembers, as the same files are looked at each time.
    """
    taken = {one.name: one for one in choices}
    own = {one.written.patch.id: one for one in sections}
    problems: tuple[str, ...] = ()
    for _ in range(_ROUNDS):
        theirs = _theirs(taken.values(), sets, requirement_files)
        patches = [*theirs.values(), *(one.written.patch for one in own.values())]
        troubles = _troubles(patches, files, profiles, evaluator)
        if not troubles:
            break
        problems = tuple(_told(troubles))
        patch_id, trouble = next(iter(troubles.items()))
        patch = theirs.get(patch_id) or own[patch_id].written.patch
        narrowed = _narrowed(patch, trouble, files, evaluator)
        if narrowed is not None and patch_id in own:
            narrowed = dataclasses.replace(narrowed, comment=f"{own[patch_id].comment}\n{narrowed.comment}")
        followers = _followers(patch_id, patches) if narrowed is not None else ()
        for one in (patch, *followers):  # the app's own patches are applied after those of sets, and as they stand
            if one.id in theirs:
                name = next(name for name, known in sets.items() if one.id in {p.id for p in known.patches})
                taken[name] = dataclasses.replace(taken[name], without=(*taken[name].without, one.id))
            kept = own.pop(one.id, None) or _written_out(one, f"After {patch_id}, which stands here as well.")
            if one.id != patch_id:
                own[one.id] = kept
            elif narrowed is not None:
                own[one.id] = narrowed
    else:
        return Fitted(sets=tuple(taken.values()), sections=tuple(own.values()), outcomes=(), problems=problems)
    outcomes = [engine.apply(one, files, evaluator=evaluator).outcomes for one in _by_profile(patches, profiles)]
    useful = {one.patch for each in outcomes for one in each if one.kind is not OutcomeKind.GONE}
    left = tuple(one for one in taken.values() if _has_any(sets[one.name], one))
    sections_left = tuple(one for name, one in own.items() if name in useful)
    told = tuple(one for one in outcomes[0] if one.patch in useful or one.patch not in own)
    return Fitted(sets=left, sections=sections_left, outcomes=told, problems=())


def _by_profile(patches: Sequence[Patch], profiles: Sequence[str]) -> tuple[tuple[Patch, ...], ...]:
    """Give what each profile wants, once where several want the same."""
    wanted = {tuple(one.id for one in each): each for each in (engine.for_profile(patches, name) for name in profiles)}
    return tuple(wanted.values())


def _has_any(one: SharedSet, choice: SetChoice) -> bool:
    """Tell whether something of a set is left."""
    rules = one.rules
    is_bounding = any((rules.constraints, rules.overrides, rules.exclusions))
    return is_bounding or any(patch.id not in choice.without for patch in one.patches)


def _theirs(
    taken: Iterable[SetChoice], sets: Mapping[str, SharedSet], requirement_files: tuple[str, ...]
) -> dict[str, Patch]:
    return {
        patch.id: shared_sets.with_requirement_files(patch, requirement_files)
        for choice in taken
        for patch in sets[choice.name].patches
        if patch.id not in choice.without
    }


def _troubles(
    patches: Sequence[Patch], files: Files, profiles: Sequence[str], evaluator: Evaluator
) -> dict[str, _Trouble]:
    """Say of each patch that is refused why; in the order of the patches, so that what comes first is mended first."""
    found: dict[str, _Trouble] = {}
    ids = [patch.id for patch in patches]
    for wanted in _by_profile(patches, profiles):
        concerned = {path: files[path] for path in targets.candidates(wanted, files)}
        patched = engine.apply(wanted, concerned, evaluator=evaluator)
        failures = list(patched.failures)
        for outcome in patched.outcomes:
            if outcome.kind in BLOCKING:
                trouble = found.setdefault(outcome.patch, _Trouble())
                if outcome.path is None:
                    trouble.everywhere = outcome.detail
                else:
                    lines = ", ".join(str(site.line) for site in outcome.sites[:_SHOWN])
                    trouble.files[outcome.path] = f"line {lines}: {outcome.detail}" if lines else outcome.detail
        if not found and not failures:
            failures += trials.problems_together(wanted, concerned, evaluator)
        for failure in failures:
            _note(found, failure, ids)
    return {name: found[name] for name in sorted(found, key=ids.index)}


def _note(found: dict[str, _Trouble], failure: str, ids: Sequence[str]) -> None:
    after = _AFTER.search(failure)
    patch_id, _, rest = failure.partition(": ")
    if after is not None:
        found.setdefault(after[2] or patch_id, _Trouble()).after.append(after[1])
    elif patch_id in ids:
        path, _, why = rest.partition(": ")
        found.setdefault(patch_id, _Trouble()).files[PurePosixPath(path.split(":")[0])] = why
    else:  # of a file after all patches: nobody can say whose it is, the last one goes without the file
        found.setdefault(ids[-1], _Trouble()).files[PurePosixPath(patch_id)] = rest


def _told(troubles: Mapping[str, _Trouble]) -> Iterator[str]:
    for name, one in troubles.items():
        yield from (f"{name}: {path}: {why}" for path, why in one.files.items())
        yield from [f"{name}: {one.everywhere}"] if one.everywhere else []


def _narrowed(patch: Patch, trouble: _Trouble, files: Files, evaluator: Evaluator) -> ProposedPatch | None:
    """Write the patch out for the files in which it can be applied; None where there is none."""
    located, unreadable = targets.locate(patch, targets.matching_files(patch, files), files, evaluator)
    paths = [path for path, (_, where) in located.items() if where.sites and path not in trouble.files]
    if trouble.everywhere or not paths or (unreadable and not trouble.files):
        return None
    said = [f"Not in {path}: {why}." for path, why in trouble.files.items()]
    said += [f"After {name}, which changes the same place." for name in trouble.after]
    after = tuple(dict.fromkeys((*patch.after, *trouble.after)))
    made = dataclasses.replace(patch, paths=tuple(map(str, paths)), after=after)
    return _written_out(made, "\n".join(said))


def _written_out(patch: Patch, comment: str) -> ProposedPatch:
    ensures = tuple((ENSURES.word_of(type(ensure)) or "", ensure) for ensure in patch.ensures)
    return ProposedPatch(comment=comment, written=Written(patch=patch, ensures=ensures))


def _followers(patch_id: str, patches: Sequence[Patch]) -> tuple[Patch, ...]:
    """Give the patches that have to come after one, and after these, in their order."""
    before = {patch_id}
    found = []
    for patch in patches:
        if not before.isdisjoint(patch.after) and patch.id not in before:
            before.add(patch.id)
            found.append(patch)
    return tuple(found)
