"""How `lock` tells a conflict: what cannot be together, who asked for it and where, and edits that were tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.cli._progress import Live, Plain, Silent
    from patchlock.locks.conflicts.edits import Change
    from patchlock.locks.conflicts.explanation import Conflict, Explanation, Tried
    from patchlock.locks.conflicts.model import Member
    from patchlock.locks.lock_request import Request
    from patchlock.locks.relock import CutOff
    from patchlock.locks.resolution_inputs import ResolutionInputs
    from patchlock.model.patch import Patch


_SHOWN = 8
"""Lines of uv's words, or of a conflict that could not be narrowed down; --json has all."""


@dataclass(frozen=True, kw_only=True)
class ConflictReport:
    """What is said of one pair."""

    text: str
    data: dict[str, object]


def explain_conflicts(
    stuck: Sequence[Request], cut_off: CutOff, seconds: float, progress: Silent | Plain | Live
) -> dict[str, ConflictReport]:
    """Explain pairs that have no solution, one after the other, as each uses every core.

    Args:
        stuck: the pairs. For a further pair of an app, edits that were found for an earlier one are tried first.
        cut_off: with which they were resolved.
        seconds: for each pair.
        progress: told what goes on.

    Returns:
        by the name of the pair; nothing for one whose conflict cannot be shown.
    """
    from patchlock.locks import relock
    from patchlock.locks.conflicts.explanation import applicable_remedies, explain, patches_left_out
    from patchlock.operations import missing_imports as imports

    told: dict[str, ConflictReport] = {}
    found: dict[str, tuple[str, Explanation]] = {}
    of: dict[str, tuple[Explanation, ResolutionInputs, tuple[Patch, ...], Mapping[str, tuple[int, ...]]]] = {}
    fits: dict[str, list[str]] = {}
    for request in stuck:
        pair = pair_name(request)
        with progress.stage("explain"):
            order, raw = relock.collect_inputs(request, cut_off)
            first = found.get(request.app.name)
            same = applicable_remedies(order, raw, first[1].tried) if first else ()
            if first and same:
                told[pair] = _same(pair, first[0], same)
                fits[first[0]] += [request.profile.name] if 0 in same else []
            elif (
                explanation := explain(
                    order, raw, seconds=seconds, is_needed=imports.of_app(request).is_needed, tell=progress.say
                )
            ) is not None:
                found.setdefault(request.app.name, (pair, explanation))
                left_out = patches_left_out(order, raw, explanation.conflicts)
                platforms = _on_other_platforms(request, cut_off, explanation.tried)
                of[pair], fits[pair] = (explanation, order, left_out, platforms), [request.profile.name]
                told[pair] = ConflictReport(text="", data={})  # keeps the place of the pair
            progress.say(pair)
    for pair, (explanation, order, left_out, platforms) in of.items():
        shown = for_profiles(explanation, order, tuple(dict.fromkeys(fits[pair])))
        told[pair] = ConflictReport(text=text(pair, shown, order, left_out, platforms), data=data(shown))
    return told


def _on_other_platforms(request: Request, cut_off: CutOff, tried: Sequence[Tried]) -> Mapping[str, tuple[int, ...]]:
    """Say which sets of edits resolve on the profile's other platforms too: a patch is for all of them."""
    from patchlock.catalogue.pairs import refusal_reason
    from patchlock.locks import relock
    from patchlock.locks.conflicts.explanation import applicable_remedies

    found = {}
    for platform in request.profile.platforms if tried else ():
        if platform != request.platform and refusal_reason(request.app, request.profile, platform) is None:
            order, raw = relock.collect_inputs(dataclasses.replace(request, platform=platform), cut_off)
            found[platform.name] = applicable_remedies(order, raw, tried)
    return found


def for_profiles(explanation: Explanation, order: ResolutionInputs, profiles: tuple[str, ...]) -> Explanation:
    """Write the first set of edits for the profiles that it was found for, where the app has others too."""
    from patchlock.locks.conflicts.edits import bounded

    others = [name for name in order.catalogue.profile_names() if name not in profiles]
    if not others or not explanation.tried:
        return explanation
    first, *more = explanation.tried
    remedy = bounded(first.remedy, order.app.patches, profiles, others)
    return dataclasses.replace(explanation, tried=(dataclasses.replace(first, remedy=remedy), *more))


def pair_name(request: Request) -> str:
    """Name a pair as `lock` does."""
    return f"{request.app.name} × {request.profile.name} × {request.platform.name}"


def _same(pair: str, first: str, numbers: Sequence[int]) -> ConflictReport:
    *others, last = (str(number + 1) for number in numbers)
    listed = f"edit sets {', '.join(others)} and {last}" if others else f"edit set {last}"
    sentence = f"{pair}: {listed} of {first} also resolve{'' if others else 's'} it here"
    return ConflictReport(text=sentence, data={"same_as": first, "sets": [number + 1 for number in numbers]})


def text(
    pair: str,
    explanation: Explanation,
    order: ResolutionInputs,
    left_out: Sequence[Patch] = (),
    platforms: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> str:
    """Say it to a person: a sentence, the conflicts, the sets of edits, the first as tables, and uv's own words.

    Args:
        pair: as `pair_name` has it.
        explanation: of it.
        order: of it.
        left_out: patches of the app that leave the profile out, and with which it resolves.
        platforms: other platforms of the profile, and the positions of the sets of edits that resolve there.
    """
    profile = order.profile.name
    until = f", with files until {order.as_of}" if order.as_of else ""
    machine = f"Python {order.profile.python} on {order.platform.name}{until}"
    lines = [f"{pair}: {_sentence(explanation, order.as_of)}", f"(all for {machine}: {order.profile.origin})"]
    for number, conflict in enumerate(explanation.conflicts, 1):
        lines += ["", f"conflict {number}"]
        lines += [f"  {row}" for row in _table(conflict)]
    if left_out:
        listed = ", ".join(f"{patch.id} ({patch.origin})" for patch in left_out)
        lines += ["", f"it resolves (tried with uv) with {profile} added to the `profiles` of these patches: {listed}"]
    if explanation.builds:
        lines += ["", *_builds(explanation, order)]
    beside = ", with the [[build]] above" if explanation.builds else ""
    for number, tried in enumerate(explanation.tried, 1):
        lines += [
            "",
            f"edit set {number}{beside}: resolves to {len(tried.versions)} packages on "
            + _where(number - 1, order, platforms),
        ]
        lines += [f"  {row}" for row in _changes(tried)]
    if explanation.tried and explanation.tried[0].remedy.written:
        lines += [
            "",
            f"edit set 1 as patches, for patches/{order.app.name}/app.toml (say `why` and `source` yourself):",
            "",
        ]
        replaced = {p.id: p.origin for p in order.app.patches}
        for one in explanation.tried[0].remedy.written:
            if one.patch.id in replaced:
                lines.append(f"# instead of the patch of this id: {replaced[one.patch.id]}")
        lines += _toml(explanation.tried[0]).splitlines()
        lines += [f"and {sentence}" for sentence in _idle_constraints(explanation.tried[0], order)]
    for number, conflict in enumerate(explanation.conflicts, 1):
        lines += ["", f"uv about conflict {number}:", *_words(conflict)]
    return "\n".join(lines)


def _toml(tried: Tried) -> str:
    """Write a set of edits as tables, with those that a lock of them needs."""
    return "\n".join(filter(None, (tried.remedy.toml, tried.metadata)))


def _idle_constraints(tried: Tried, order: ResolutionInputs) -> list[str]:
    """Name the app's own bounds of what a set of edits drops, a clause each: a lock refuses what bounds nothing."""
    names = {change.member.name for change in tried.remedy.changes if change.member and not change.after}
    return [
        f'remove the [[constraint]] "{rule.requirement}" ({rule.origin}), which would bound nothing'
        for rule in order.app.rules.of(order.profile.name).constraints
        if (name := canonicalize_name(rule.requirement.name)) in names and name not in tried.versions
    ]


def _where(position: int, order: ResolutionInputs, platforms: Mapping[str, Sequence[int]]) -> str:
    """List the platforms on which a set of edits resolves, and those on which it does not."""
    there = [order.platform.name, *(name for name, sets in platforms.items() if position in sets)]
    lacking = [name for name, sets in platforms.items() if position not in sets]
    return ", ".join(there) + (f"; not on {', '.join(lacking)}" if lacking else "")


def _builds(explanation: Explanation, order: ResolutionInputs) -> list[str]:
    """Offer to build what has no wheel: mostly that is wanted, and not to go without it."""
    from patchlock.catalogue.proposals import document

    listed = ", ".join(f"{name} {version}" for name, version in explanation.builds)
    it, has = ("it", "has") if len(explanation.builds) == 1 else ("them", "have")
    file = f"patches/{order.app.name}/app.toml"
    lines = [f"{listed} {has} no wheel that fits, only an sdist. To build {it}, for {file}:"]
    why, source = "the index has no wheel that fits", "PyPI: the file list of each"
    for platforms in ((), (order.platform.name,)):
        those = {name: one for name, one in explanation.builds if (name in explanation.only_here) == bool(platforms)}
        if those:
            lines += ["", *document.build_table(those, why=why, source=source, platforms=platforms).splitlines()]
    if explanation.build_metadata:
        return [*lines, "", *explanation.build_metadata.splitlines()]
    commands = ", ".join(f"`patchlock sdist {name} {version}`" for name, version in explanation.builds)
    return [*lines, "", f"and the [[metadata]] that {commands} prints"]


def _sentence(explanation: Explanation, as_of: str) -> str:
    from patchlock.locks.conflicts.explanation import clause_with_cause
    from patchlock.locks.resolution_inputs import last_day

    together = clause_with_cause(explanation.conflicts[0])
    effort = f"{explanation.asked} questions to uv, {explanation.seconds:.0f} s"
    if explanation.is_built:
        return f"{together}; the [[build]] below resolves it, tried with uv ({effort})"
    if not explanation.tried:
        days = f", neither with files until {last_day(as_of)} nor with later ones" if as_of else ""
        how = days if explanation.is_complete else " in time: --explain gives more"
        return f"{together}; no set of edits was found{how} ({effort})"
    more = len(explanation.conflicts) - 1
    if more:
        together += f", and there {'are' if more > 1 else 'is'} {more} more conflict{'s' if more > 1 else ''}"
    count = len(explanation.tried)
    sets = f"{count} sets of edits resolve {'all' if more else 'it'}"
    if count == 1:
        sets = f"1 set of edits resolves {'all' if more else 'it'}"
    return f"{together}; {sets}, tried with uv ({effort})"


def _rows(conflict: Conflict) -> list[tuple[str, str, str, str]]:
    rows = []
    for culprit in conflict.culprits:
        member = culprit.member
        if member is None:
            rows.append(("the cut-off", "--as-of", "", ""))
            continue
        what = str(member.requirement) + (" (any version)" if culprit.is_any_version else "")
        requesters = ", ".join(dict.fromkeys(str(one.requester) for one in (member, *culprit.also)))
        places = ", ".join(one.requester.place for one in (member, *culprit.also))
        outcome = [part for part in (culprit.otherwise, culprit.recorded) if part]
        rows.append((what, requesters, places, "; ".join(outcome)))
    return rows


def culprits(conflict: Conflict) -> list[str]:
    """List what cannot be together, one line each below the names of the columns."""
    return _columns([("what", "asked by", "where", "without its bound uv takes"), *_rows(conflict)])


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    rows = [tuple(map(visible_name, row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _table(conflict: Conflict) -> list[str]:
    found = culprits(conflict)
    if conflict.is_minimal:
        return found
    more = [f"(and {len(found) - 1 - _SHOWN} more)"] if len(found) - 1 > _SHOWN else []
    return [*found[: _SHOWN + 1], *more, "(there was no time to see whether fewer would do: --explain gives more)"]


def _words(conflict: Conflict) -> list[str]:
    """Give the end of uv's explanation, which is its conclusion, without its advice to trust every index."""
    words = [line for line in conflict.words if line.strip() and "--index-strategy" not in line]
    return [f"  {line}" for line in (["…", *words[-_SHOWN:]] if len(words) > _SHOWN else words)]


def _changes(tried: Tried) -> list[str]:
    rows = [(_change(change), _place(change.member)) for change in tried.remedy.changes]
    width = max((len(what) for what, _ in rows), default=0)
    return [*(f"{what:<{width}}  {where}".rstrip() for what, where in rows), *tried.remedy.by_hand]


def _change(change: Change) -> str:
    if change.member is None:
        return "no cut-off"
    return f"{change.member.requirement} → {change.after or '(dropped)'}"


def _place(member: Member | None) -> str:
    return visible_name(f"{member.requester.place} ({member.requester})") if member else ""


def data(explanation: Explanation) -> dict[str, object]:
    """Say it to a program."""
    return {
        "conflicts": [conflict_data(conflict) for conflict in explanation.conflicts],
        "sets": [
            {
                "changes": [_member(change.member) | {"after": change.after} for change in tried.remedy.changes],
                "by_hand": list(tried.remedy.by_hand),
                "toml": _toml(tried),
                "packages": {name: str(version) for name, version in sorted(tried.versions.items())},
            }
            for tried in explanation.tried
        ],
        "builds": [{"name": name, "version": str(version)} for name, version in explanation.builds],
        "questions": explanation.asked,
        "seconds": round(explanation.seconds, 1),
        "complete": explanation.is_complete,
    }


def conflict_data(conflict: Conflict) -> dict[str, object]:
    """Say one conflict to a program."""
    return {
        "members": [
            _member(culprit.member)
            | {
                "also": [_member(one) for one in culprit.also],
                "any_version": culprit.is_any_version,
                "otherwise": culprit.otherwise,
                "recorded": culprit.recorded,
            }
            for culprit in conflict.culprits
        ],
        "minimal": conflict.is_minimal,
        "uv": list(conflict.words),
    }


def _member(member: Member | None) -> dict[str, object]:
    if member is None:
        return {"requirement": "", "by": "cut-off", "name": "", "file": "", "line": 0}
    requester = member.requester
    return {
        "requirement": str(member.requirement),
        "by": requester.kind,
        "name": requester.name,
        "file": requester.file,
        "line": requester.line,
    }
