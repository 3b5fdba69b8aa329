"""Turn the difference of two trees into patches, and prove that they make one into the other."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.authoring._texts import addition
from patchlock.catalogue.authoring.drafts import Draft, NamedEnsure
from patchlock.catalogue.authoring.files import FileDrafts, Likeness, drafts_for, likeness
from patchlock.model.patch import Expect, Patch
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import engine, trials

Files = Mapping[PurePosixPath, bytes]
_Hunk = tuple[int, int, tuple[bytes, ...]]


@dataclass(frozen=True, kw_only=True)
class Written:
    """A patch, with what its checks are called."""

    patch: Patch
    ensures: tuple[NamedEnsure, ...]


@dataclass(frozen=True, kw_only=True)
class Authored:
    """What became of the edits of a tree."""

    patches: tuple[Written, ...]
    files: Mapping[PurePosixPath, Likeness]
    """Each edited file that the patches make, sorted by path, and how near they come to it."""
    notes: tuple[str, ...]
    """What patches do not say, a sentence without full stop each."""
    known: tuple[str, ...] = ()
    """Ids of the patches that were there, and do some of the edits already."""


def author(
    before: Files,
    after: Files,
    prefix: str = "",
    executable: Collection[PurePosixPath] = frozenset(),
    taken: Collection[str] = frozenset(),
    known: Sequence[Patch] = (),
    profile: str = "",
) -> Authored:
    """Say the edits of a tree as patches.

    Args:
        before: upstream's files; only those that were changed or deleted are looked at.
        after: the edited files; files that are the same in both may be left out of both.
        prefix: begins each id.
        executable: new files that may be started.
        taken: ids that other patches have.
        known: patches of the same app; what they do for every profile, or for that of the tree, is not said again.
        profile: whose patches the edited tree has; "" for none.
    """
    notes = [f"{path} was deleted: no patch deletes a file; neutralise what uses it" for path in _gone(before, after)]
    notes += _renames(before, after)
    there = [patch for patch in known if not patch.profiles or profile in patch.profiles]
    done: list[Patch] = []
    for patch in there:
        first = _patched([one for one in done if one.id in patch.after], before)
        done += [patch] if _is_done(patch, first, after) else []
    base, target = _patched(done, before), _patched(done, after)
    found: list[FileDrafts] = []
    for path in sorted(target):
        is_done = path in after and base.get(path) != before.get(path) and _is_reached(path, before, base, after)
        is_done = is_done and _comments(base[path]) == _comments(after[path])
        if base.get(path) == target[path] or is_done:
            continue
        of_file = _of_file(path, before.get(path), base.get(path), target[path], path in executable)
        if isinstance(of_file, str):
            notes.append(of_file)
        else:
            found.append(of_file)
    patches = _assembled(found, prefix, taken)
    reached = _reached(patches, base, target, found)
    wrong = {path for path, like in reached.items() if like is Likeness.OTHER} | _unsettled(patches, base)
    if wrong:  # together they do what none does alone: a diff for these files
        found = [_as_diff(one, before, base, target) if one.path in wrong else one for one in found]
        patches = _assembled(found, prefix, taken)
        reached = _reached(patches, base, target, found)
    notes += [f"{path} could not be said by patches" for path, like in reached.items() if like is Likeness.OTHER]
    return Authored(
        patches=_in_order(patches, done, before),
        files=reached,
        notes=tuple(notes),
        known=tuple(patch.id for patch in done),
    )


def _is_done(patch: Patch, before: Files, after: Files) -> bool:
    """Tell whether a patch does some of the edits: upstream's files need it, and it adds nothing to the edited ones."""
    needed, again = (engine.apply((patch,), files) for files in (before, after))
    if patch.op_name == "codemod" or not needed.changes or needed.failures or again.failures:
        return False
    edited, made = _patched((patch,), after), _patched((patch,), before)
    return all(
        path in after
        and _is_reached(path, before, edited, after)
        and (edited[path] == after[path] or not _is_reached(path, before, made, before))  # not a comment of both
        and not any(ensure.problems(path, edited[path]) for ensure in patch.ensures)
        for path in (change.path for change in needed.changes)
    )


def shared_lines(
    patches: Iterable[Patch], written: Sequence[Written], before: Files
) -> dict[str, dict[Patch, tuple[str, bool]]]:
    """Tell which patches change lines that new patches change too.

    Returns:
        Id of a new patch → the others → the first of those lines of upstream's, `path:line`, and whether both make the
        same of all of them.
    """
    new = {one.patch.id: one.patch for one in written}
    changed = [(patch, engine.apply((patch,), before).changes) for patch in patches]
    found: dict[str, dict[Patch, tuple[str, bool]]] = {}
    for name, one in new.items() if any(changes for _, changes in changed) else ():
        follows = [new[other] for other in one.after if other in new]
        made = {change.path: change.after for change in engine.apply((*follows, one), before).changes}
        for patch, change in ((patch, change) for patch, changes in changed for change in changes):
            if change.path in made:
                theirs, ours = (_hunks(change.before or b"", data) for data in (change.after, made[change.path]))
                lines = [hunk for hunk in sorted(theirs) if hunk in ours or any(_meet(hunk, other) for other in ours)]
                if lines:
                    told = found.setdefault(name, {})
                    first, is_same = told.get(patch, (f"{change.path}:{lines[0][0] + 1}", True))
                    told[patch] = (first, is_same and all(hunk in ours for hunk in lines))
    return found


def _meet(one: _Hunk, other: _Hunk) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _hunks(before: bytes, after: bytes) -> set[_Hunk]:
    """Give which lines are replaced by which others."""
    old, new = before.splitlines(), after.splitlines()
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return {(i, j, tuple(new[k:m])) for tag, i, j, k, m in opcodes if tag != "equal"}


def _patched(patches: Sequence[Patch], files: Files) -> dict[PurePosixPath, bytes]:
    return {**files, **{change.path: change.after for change in engine.apply(patches, files).changes}}


def _unsettled(written: Iterable[Written], base: Files) -> set[PurePosixPath]:
    """Give the files that patches change again if they are applied to what they made."""
    patches = [one.patch for one in written]
    made = _patched(patches, base)
    return {change.path for change in engine.apply(patches, {path: made[path] for path in base}).changes}


def _comments(data: bytes) -> set[bytes]:
    """Give the lines of a file that are comments alone: what is the same in meaning may lack an edited one."""
    return {line.strip() for line in data.splitlines() if line.strip().startswith(b"#")}


def _is_reached(path: PurePosixPath, before: Files, made: Files, after: Files) -> bool:
    return likeness(before.get(path), made.get(path), after[path], path) is not Likeness.OTHER


def _in_order(patches: Iterable[Written], known: Sequence[Patch], before: Files) -> tuple[Written, ...]:
    """Let each patch say after which it goes, where another order would give other bytes."""
    written = {one.patch.id: one for one in patches}
    # One that takes a single place takes that of another one too where it goes first.
    loose = (dataclasses.replace(one.patch, expect=Expect()) for one in written.values())
    together = (*known, *loose)
    for _, one, other, is_right in trials.dependent_on_order(together, before):
        if is_right and other in written and one not in written[other].patch.after:
            patch = written[other].patch
            written[other] = dataclasses.replace(
                written[other], patch=dataclasses.replace(patch, after=(*patch.after, one))
            )
    return tuple(written.values())


def _of_file(
    path: PurePosixPath, upstream: bytes | None, before: bytes | None, after: bytes, is_executable: bool
) -> FileDrafts | str:
    if not before:  # an empty file is filled as a missing one is made
        draft = addition(path, after, is_executable)
        if draft is None:
            return f"{path} is new and empty or no UTF-8 text: a patch cannot hold it"
        return FileDrafts(path=path, drafts=(draft,), likeness=Likeness.BYTES)
    if not all(isinstance(decode(path, data), SourceText) for data in (before, after)):
        return f"{path} was changed and is no text: a patch cannot hold it"
    found = drafts_for(path, before, after, upstream=upstream)
    if not found.drafts:
        if found.likeness is Likeness.TEXT:
            return f"{path} differs in its encoding or line endings alone: patches keep upstream's"
        if found.likeness is Likeness.MEANING:
            return f"{path} differs in blank lines alone: left out"
        return f"{path} was changed in a way that no patch holds: its place cannot be told from its text"
    return found


def _as_diff(found: FileDrafts, upstream: Files, before: Files, after: Files) -> FileDrafts:
    path = found.path
    if path not in before:
        return found
    return drafts_for(path, before[path], after[path], semantic=False, upstream=upstream.get(path))


def _gone(before: Files, after: Files) -> list[PurePosixPath]:
    return [path for path in sorted(before) if path not in after]


def _renames(before: Files, after: Files) -> list[str]:
    new = [path for path in sorted(after) if path not in before]
    return [
        f"{old} was renamed to {path}: the patch adds it under its new name, and the old file stays"
        for old in _gone(before, after)
        for path in new
        if before[old] == after[path]
    ]


# --- one patch for the same change of several files -------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class _Open:
    """A patch to which files are still added."""

    draft: Draft
    paths: list[PurePosixPath]
    sites: int
    follows: list[_Open]
    id: str = ""


def _assembled(found: Iterable[FileDrafts], prefix: str, taken: Collection[str]) -> tuple[Written, ...]:
    opened: list[_Open] = []
    for of_file in found:
        earlier: list[_Open] = []
        for draft in of_file.drafts:
            is_diff = draft.op_name == "unified-diff"
            follows = [one for one in earlier if one.draft.op_name != draft.op_name] if is_diff else []
            merged = None if follows else _like(opened, draft, earlier)
            if merged is None:
                merged = _Open(draft=draft, paths=[], sites=0, follows=follows)
                opened.append(merged)
            merged.paths.append(of_file.path)
            merged.sites += draft.sites
            earlier.append(merged)
    opened.sort(key=lambda one: bool(one.follows))  # what follows others goes last
    _name(opened, prefix, set(taken))
    return tuple(
        Written(
            patch=dataclasses.replace(one.draft, sites=one.sites).patch(
                one.id, one.paths, after=tuple(other.id for other in one.follows)
            ),
            ensures=one.draft.ensures,
        )
        for one in opened
    )


def _like(opened: list[_Open], draft: Draft, earlier: list[_Open]) -> _Open | None:
    """Find a patch with the same op and the same checks, for another file."""
    for one in opened if draft.op_name not in {"unified-diff", "add-file"} else ():
        is_same = (one.draft.op, one.draft.literal, one.draft.ensures) == (draft.op, draft.literal, draft.ensures)
        if is_same and one not in earlier:
            return one
    return None


def _name(opened: list[_Open], prefix: str, taken: set[str]) -> None:
    for one in opened:
        first = "" if one.draft.slug[0].isalpha() else "change"
        base = "-".join(part for part in (prefix.strip("-") or first, one.draft.slug) if part)
        number = 1
        while (name := base if number == 1 else f"{base}-{number}") in taken:
            number += 1
        taken.add(name)
        one.id = name


def _reached(
    patches: Iterable[Written], before: Files, after: Files, found: Iterable[FileDrafts]
) -> dict[PurePosixPath, Likeness]:
    """Apply all patches to upstream, and compare each file with the edited one."""
    paths = sorted(one.path for one in found)
    contents = {path: before[path] for path in paths if path in before}
    patched = engine.apply([one.patch for one in patches], contents)
    made = contents | {change.path: change.after for change in patched.changes}
    blamed = {failure.split(": ")[1] for failure in patched.failures}
    return {
        path: Likeness.OTHER if str(path) in blamed else likeness(before.get(path), made.get(path), after[path], path)
        for path in paths
    }
