"""What an install will do, as values: which generation, from which inputs, with which result; pure, no I/O."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.app import App
from patchlock.model.checks import SmokeImportCheck
from patchlock.model.digests import sha256
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.patch import BLOCKING, FileChange, Outcome, OutcomeKind, Patch, Patched, Site
from patchlock.model.profile import Profile
from patchlock.model.text_files import Undecodable, decode
from patchlock.model.visible_text import visible_name
from patchlock.patches import engine

APPLIED = frozenset(
    {OutcomeKind.NEEDED, OutcomeKind.PARTLY_FIXED, OutcomeKind.MOVED, OutcomeKind.NEW_SITES, OutcomeKind.ALREADY_OURS}
)
"""Outcomes with which a patch has changed a file."""
LEFT_AS_IT_IS = BLOCKING | {OutcomeKind.BROKEN, OutcomeKind.PASSED_OVER, OutcomeKind.LEFT_OUT}
"""Outcomes with which a patch has not touched a file that it may be for."""
_UNREAD = frozenset({OutcomeKind.BROKEN, OutcomeKind.PASSED_OVER})
_IDLE = frozenset({OutcomeKind.FIXED_UPSTREAM, OutcomeKind.GONE})


def patched_by(patches: Iterable[Patch], patched: Patched) -> Mapping[NormalizedName, tuple[str, ...]]:
    """Say for each distribution which patches have edited its requirement, in their order."""
    from patchlock.patches.ops.requirements import ops  # with all their formats, which only a lock reads

    applied = {outcome.patch for outcome in patched.outcomes if outcome.kind in APPLIED}
    found: dict[NormalizedName, tuple[str, ...]] = {}
    for patch in patches:
        if patch.id in applied and (left := ops.left(patch.op)) is not None:
            name = canonicalize_name(left.name)
            found[name] = (*found.get(name, ()), patch.id)
    return found


def lowered(patch: Patch, path: PurePosixPath, data: bytes) -> tuple[Site, ...]:
    """Find the requirements of a file of upstream for which a patch takes nothing but older versions."""
    from patchlock.patches.ops.requirements import ops  # as above

    source = decode(path, data)
    return () if isinstance(source, Undecodable) else ops.lowered(patch.op, source)


def commit_message(app: App, profile: Profile, outcomes: Iterable[Outcome]) -> str:
    """Say in the patched commit what was done, the same way on every machine."""
    return patched_message(app.name, profile.name, outcomes)


def patched_message(name: str, profile: str, outcomes: Iterable[Outcome]) -> str:
    """Say what patches did; see `commit_message`.

    Args:
        name: the app, or the file of patches.
        profile: its name, "" for none.
        outcomes: in order.
    """
    lines = [f"patchlock: {name} for {profile}" if profile else f"patchlock: {name}", ""]
    for outcome in outcomes:
        place = visible_name(f" {outcome.path}") if outcome.path else ""
        lines.append(f"{outcome.patch}: {outcome.kind.value}{place}")
    return "\n".join(lines) + "\n"


def smoke_checks(patches: Iterable[Patch], outcomes: Iterable[Outcome]) -> tuple[SmokeImportCheck, ...]:
    """Give the executed ensures of the patches that were needed, as checks; each has an id of its own."""
    needed = {outcome.patch for outcome in outcomes if outcome.kind in APPLIED}
    return tuple(check for patch in patches if patch.id in needed for check in smoke_checks_of(patch))


def smoke_checks_of(patch: Patch) -> tuple[SmokeImportCheck, ...]:
    """Give the executed ensures of a patch as checks."""
    return tuple(
        SmokeImportCheck(id=f"{patch.id}/smoke-import" + (f"-{number}" if number > 1 else ""), smoke=smoke)
        for number, smoke in enumerate(patch.executed, 1)
    )


def diff(changes: Iterable[FileChange], *, before: str = "upstream", after: str = "patched") -> str:
    """Show changes as a unified diff; a file that is not UTF-8 is shown decoded, and says so."""
    return "".join(_diff(change, before, after) for change in changes)


def _diff(change: FileChange, before: str, after: str) -> str:
    old, new = (decode(change.path, data) for data in (change.before or b"", change.after))
    if isinstance(old, Undecodable) or isinstance(new, Undecodable):
        return f"Binary files {before}/{change.path} and {after}/{change.path} differ\n"
    lines = difflib.unified_diff(
        _lines(old.text),
        _lines(new.text),
        f"{before}/{change.path}" + (f"\t({old.encoding})" if old.encoding != "utf-8" else ""),
        f"{after}/{change.path}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split for display: a CRLF file is shown with LF, as it keeps its endings anyway."""
    *lines, last = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # a form feed ends no line
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def shown(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Leave out what patches find as they want it in files that other patches make: upstream has none of these."""
    outcomes = tuple(outcomes)
    made = {one.path for one in outcomes if one.op == "add-file" and one.kind is not OutcomeKind.FIXED_UPSTREAM}
    return tuple(one for one in outcomes if one.kind is not OutcomeKind.FIXED_UPSTREAM or one.path not in made)


def counted(outcomes: Iterable[Outcome]) -> str:
    """Count patches by outcome for a summary: `5 needed, 1 already fixed`. Each patch counts once.

    What it does in one file comes before what it finds done in another. A file that is left as it is counts only for
    a patch that has no other; see `warnings`.
    """
    order = sorted(OutcomeKind, key=lambda kind: (kind in _UNREAD, kind in _IDLE))
    first: dict[str, OutcomeKind] = {}
    for outcome in sorted(shown(outcomes), key=lambda one: order.index(one.kind)):
        first.setdefault(outcome.patch, outcome.kind)
    kinds = [*first.values()]
    return ", ".join(f"{kinds.count(kind)} {kind.shown}" for kind in order if kind in kinds) or "none"


def warnings(patched: Patched) -> tuple[str, ...]:
    """Name each advisory patch that was left out, and each file that a patch left as it is, with line and reason."""
    found = list(engine.left_out(patched))
    for outcome in patched.outcomes:
        if outcome.kind is OutcomeKind.BROKEN:
            found += [
                visible_name(f"{outcome.patch}: {outcome.path}:{site.line}: {site.text}") for site in outcome.sites
            ]
        elif outcome.kind is OutcomeKind.PASSED_OVER:
            line = f":{outcome.sites[0].line}" if outcome.sites else ""
            place = visible_name(f"{outcome.path}{line}")
            found.append(f"{outcome.patch}: {place}: {outcome.detail}; the file is left as it is")
    return tuple(found)


def gone(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Name the patches that find nothing in any file."""
    outcomes = tuple(outcomes)
    kept = {outcome.patch for outcome in outcomes if outcome.kind is not OutcomeKind.GONE}
    return frozenset(outcome.patch for outcome in outcomes if outcome.patch not in kept)


def idle(app: App, outcomes: Iterable[Outcome]) -> tuple[Patch, ...]:
    """Give the patches of the app's own file that find nothing, sorted by id; those of a shared set may."""
    ids = gone(outcomes)
    found = (patch for patch in app.patches if patch.id in ids and patch.origin.file == app.origin.file)
    return tuple(sorted(found, key=lambda patch: patch.id))


def nothing_to_patch(patch: Patch) -> str:
    """Say that a patch finds nothing, and where it stands."""
    return f"{patch.id} finds nothing to patch ({patch.origin})"


def decides_versions(patch: Patch) -> bool:
    """Tell whether a lock may come out otherwise than is wanted where the patch finds nothing."""
    return patch.op_name.endswith("-requirement") and not patch.advisory


def idle_requirements(app: App, commit: CommitId, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Name the app's own patches that decide versions and find nothing, a clause each.

    At another commit than the catalogue's, upstream may have dropped the requirement; that is no mistake of a patch.
    """
    found = idle(app, outcomes) if commit == app.upstream.commit else ()
    return tuple(
        f"{nothing_to_patch(patch)}; correct its name or paths, or remove it"
        for patch in found
        if decides_versions(patch)
    )


def patched_digests(changes: Iterable[FileChange], directory: PurePosixPath) -> dict[str, Sha256]:
    """Digest the patched files, by path from the root of the clone."""
    return {str(directory / change.path): sha256(change.after) for change in changes}
