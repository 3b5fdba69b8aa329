"""Write edits that resolve a conflict as the catalogue's patches, and apply them to the requirement files; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.authoring import writing
from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import SOURCE, WHY, Draft, ensures, op, slug
from patchlock.locks.conflicts._search import Correction
from patchlock.locks.conflicts._versions import pinned
from patchlock.locks.conflicts.model import Edit, Member, line
from patchlock.model.patch import BLOCKING, Patch
from patchlock.patches import engine
from patchlock.patches.ops.requirements.ops import AddRequirement, RenameRequirement, SetRequirement
from patchlock.patches.postconditions import ENSURES

Files = Mapping[PurePosixPath, bytes]
_LATER = (
    "lock with `--as-of now` (`--as-of none` where the index has no upload times), or give what has to be newer a "
    "[[newer]] table"
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What becomes of one requirement or bound."""

    member: Member | None
    """None: the cut-off."""
    after: str
    """The new requirement; "" where it goes."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A set of edits, ready to be pasted."""

    changes: tuple[Change, ...]
    written: tuple[Written, ...]
    """New patches, and those of the app that they replace by their id."""
    anew: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Why those of the app are replaced, by their id; a clause, "" where it is not known."""
    without: tuple[str, ...]
    """Patches of the app that go."""
    by_hand: tuple[str, ...]
    """What no patch does, a sentence without full stop each."""

    @property
    def toml(self) -> str:
        """The `[[patch]]` tables."""
        return writing.tables(self.written)


def remedy(
    members: Sequence[Member],
    correction: Correction,
    patches: Sequence[Patch],
    reasons: Mapping[Edit, str],
    *,
    leaves_fitting: bool,
) -> Remedy:
    """Say a correction as patches.

    Args:
        members: all that is asked for.
        correction: edits, and the versions with which they resolve.
        patches: those of the app.
        reasons: why each edit is needed; a clause.
        leaves_fitting: leave bounds as they are that allow the version which resolves: torch's family is freed as one.
    """
    versions = correction.solved.versions
    changes: list[Change] = []
    written: list[Written] = []
    anew: dict[str, str] = {}
    without: list[str] = []
    by_hand: list[str] = []
    for edit in correction.edits:
        for name in edit.names if edit.kind in {"free", "drop"} else ():
            chosen = [m for m in members if m.name == name and m.path is not None]
            if edit.kind == "free":
                version = versions.get(name) if leaves_fitting else None
                chosen = [m for m in chosen if m.requirement.specifier and not _fits(m.requirement.specifier, version)]
                if not chosen:
                    continue
            specifier = (
                SpecifierSet()
                if edit.kind == "drop"
                else updated_specifier(chosen[0].requirement.specifier, versions.get(name))
            )
            changes += [
                Change(member=m, after="" if edit.kind == "drop" else _with(m.requirement, specifier)) for m in chosen
            ]
            ours = {m.requester.name: m for m in chosen if m.requester.kind == "patch" and m.requester.name}
            why = _reason(reasons.get(edit, ""), name, edit.names)
            for patch in (patch for patch in patches if patch.id in ours):
                replaced = None if edit.kind == "drop" else _replaced(patch, specifier)
                if replaced is not None:
                    written.append(replaced)
                    anew[patch.id] = why
                elif isinstance(patch.op, AddRequirement):
                    without.append(patch.id)
                    by_hand.append(f"remove the patch {patch.id} ({patch.origin})")
                else:
                    del ours[patch.id]
            left = [m for m in chosen if m.requester.name not in ours]
            markers = {m.own_marker for m in left}
            is_for_all = edit.kind == "drop" or "" in markers
            for marker in [""] if left and is_for_all else sorted(markers):
                meant = [m for m in left if is_for_all or m.own_marker == marker]
                known = [*patches, *(one.patch for one in written)]
                written.append(_new(edit, name, specifier, meant, why, known, marker=marker))
        if edit.kind == "unbind":
            gone = [members[atom.member] for atom in edit.takes]
            changes += [Change(member=m, after="") for m in gone]
            by_hand += [f'remove or widen the [[constraint]] "{m.requirement}" ({m.requester.place})' for m in gone]
        if edit.kind == "later":
            changes.append(Change(member=None, after=""))
            by_hand.append(_LATER)
    return Remedy(
        changes=tuple(changes), written=tuple(written), anew=anew, without=tuple(without), by_hand=tuple(by_hand)
    )


def names(found: Remedy) -> tuple[NormalizedName, ...]:
    """List the distributions whose requirements a remedy changes, in its order."""
    return tuple(dict.fromkeys(change.member.name for change in found.changes if change.member is not None))


def only(found: Remedy, kept: Collection[NormalizedName]) -> Remedy:
    """Leave of a remedy what it does to some distributions."""
    return dataclasses.replace(
        found,
        changes=tuple(change for change in found.changes if change.member is not None and change.member.name in kept),
        written=tuple(one for one in found.written if _asks_for(one.patch) in kept),
    )


def _reason(reason: str, name: NormalizedName, names: Iterable[NormalizedName]) -> str:
    """Say why a distribution moves: where the conflict is another one's, it must fit that."""
    mentioned = [one for one in names if re.search(rf"(?<![a-z0-9-]){re.escape(one)}(?![a-z0-9-])", reason)]
    return f"{name} must fit {mentioned[0]}, and {reason}" if mentioned and name not in mentioned else reason


def _fits(specifier: SpecifierSet, version: Version | None) -> bool:
    return version is not None and specifier.contains(version.public, prereleases=True)


def bounded(found: Remedy, patches: Iterable[Patch], profiles: Collection[str], others: Collection[str]) -> Remedy:
    """Write a remedy for some profiles alone; a patch of the app that it replaces stays as it is on the others."""
    known = {patch.id: patch for patch in patches}
    written: list[Written] = []
    for one in found.written:
        old = known.get(one.patch.id)
        elsewhere = tuple(name for name in others if old is not None and (not old.profiles or name in old.profiles))
        if old is not None and not elsewhere:
            written.append(one)
            continue
        patch_id = one.patch.id
        if old is not None:
            kept = tuple((ENSURES.word_of(type(ensure)) or "", ensure) for ensure in old.ensures)
            written.append(Written(patch=dataclasses.replace(old, profiles=elsewhere), ensures=kept))
            patch_id = next(word for n in range(2, len(known) + 3) if (word := _numbered(old.id, n)) not in known)
        here = dataclasses.replace(one.patch, id=patch_id, profiles=tuple(profiles))
        if old is not None:  # its reason is that of the other profiles
            here = dataclasses.replace(here, why=found.anew.get(old.id) or WHY, source=SOURCE)
        written.append(dataclasses.replace(one, patch=here))
    return dataclasses.replace(found, written=tuple(written))


def updated_specifier(specifier: SpecifierSet, version: Version | None) -> SpecifierSet:
    """Write a version as upstream wrote the old one: a pin as a pin, an upper bound as one, a range as a range."""
    if version is None:
        return SpecifierSet()
    public = version.public
    if pinned(specifier) is not None:
        return SpecifierSet(f"=={public}")
    kept = [one for one in specifier if one.contains(public, prereleases=True)]
    too_low = [one for one in specifier if one not in kept]
    if too_low and not version.is_prerelease and all(one.operator[0] == "<" for one in too_low):
        return SpecifierSet(",".join([*map(str, kept), f"<{version.major}.{version.minor + 1}"]))
    lower = [Version(s.version) for s in specifier if s.operator in {">=", ">", "~="}]
    return SpecifierSet(f"<={public}" if any(version < one for one in lower) else f">={public}")


def _with(requirement: Requirement, specifier: SpecifierSet) -> str:
    changed = Requirement(str(requirement))
    changed.specifier = specifier
    return line(changed)


def _new(
    edit: Edit,
    name: NormalizedName,
    specifier: SpecifierSet,
    members: Sequence[Member],
    reason: str,
    patches: Sequence[Patch],
    *,
    marker: str,
) -> Written:
    fields: dict[str, object] = {"name": name}
    if edit.kind == "drop":
        kind, check, word = "drop-requirement", "no-requirement", f"no-{name}"
    else:
        kind, check, word = "set-requirement", "requirement", f"{name}-that-resolves"
        fields |= {"specifier": specifier, "marker": marker}
    made = op(kind, **fields)
    if made is None:
        raise ValueError(f"there is no op {kind} for {name}")  # a mistake of this module
    draft = Draft(op_name=kind, op=made, slug=slug(word), ensures=ensures((check, fields)), sites=len(members))
    taken = {patch.id for patch in patches}
    number = next(n for n in range(1, len(taken) + 2) if _numbered(draft.slug, n) not in taken)
    paths = sorted({m.path for m in members if m.path is not None})
    before = tuple(dict.fromkeys(m.requester.name for m in members if m.requester.kind == "patch" and m.requester.name))
    patch = draft.patch(_numbered(draft.slug, number), paths, after=before)
    return Written(patch=dataclasses.replace(patch, why=reason or patch.why), ensures=draft.ensures)


def _numbered(word: str, number: int) -> str:
    return word if number == 1 else f"{word}-{number}"


def _replaced(patch: Patch, specifier: SpecifierSet) -> Written | None:
    """Give a patch of the catalogue another specifier; None where it is of another kind."""
    match patch.op_name:
        case "set-requirement":
            changed = op(patch.op_name, **(_fields(patch) | {"specifier": specifier}))
        case "add-requirement" | "rename-requirement":
            key = "requirement" if isinstance(patch.op, AddRequirement) else "to"
            requirement = Requirement(_with(_fields(patch)[key], specifier))  # type: ignore[arg-type]
            changed = op(patch.op_name, **(_fields(patch) | {key: requirement}))
        case _:
            return None
    if changed is None:
        return None
    name = _asks_for(patch)
    marker = patch.op.marker if isinstance(patch.op, SetRequirement) else ""
    fields: dict[str, object] = {"name": name, "specifier": specifier, "marker": marker}
    wanted: list[tuple[str, dict[str, object]]] = [("requirement", fields)]
    if isinstance(patch.op, RenameRequirement):
        wanted.append(("no-requirement", {"name": patch.op.name}))
    checks = ensures(*wanted)
    made = dataclasses.replace(patch, op=changed, ensures=tuple(ensure for _, ensure in checks))
    return Written(patch=made, ensures=checks)


def _asks_for(patch: Patch) -> NormalizedName:
    match patch.op:
        case AddRequirement(requirement=requirement) | RenameRequirement(to=requirement):
            return canonicalize_name(requirement.name)
        case _:
            return _fields(patch)["name"]  # type: ignore[return-value]


def _fields(patch: Patch) -> dict[str, object]:
    return {field.name: getattr(patch.op, field.name) for field in dataclasses.fields(patch.op)}  # type: ignore[arg-type]


def applied(patches: Iterable[Patch], found: Remedy, raw: Files, patched: Files) -> Files | None:
    """Patch the requirement files as if the remedy stood in the catalogue; None where its patches cannot be applied."""
    new = {one.patch.id: one.patch for one in found.written}
    kept = [new.pop(patch.id, patch) for patch in patches if patch.id not in found.without]
    ours = {one.patch.id for one in found.written}
    result = engine.apply([*kept, *new.values()], raw)
    blocked = any(failure.split(":")[0] in ours for failure in result.failures)
    blocked |= any(outcome.patch in ours and outcome.kind in BLOCKING for outcome in result.outcomes)
    after = {change.path: change.after for change in result.changes}
    return None if blocked else {path: after.get(path, raw.get(path, data)) for path, data in patched.items()}
