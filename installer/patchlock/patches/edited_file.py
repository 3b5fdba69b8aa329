"""Apply patches to a file that the user has edited, instead of joining lines that meet; pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from patchlock.model.patch import BLOCKING, OutcomeKind, Patch, Patched
from patchlock.patches import engine, targets
from patchlock.patches.evaluation import DIRECT, Evaluator


def apply(
    patches: Iterable[Patch],
    upstreams: Patched,
    path: PurePosixPath,
    data: bytes,
    evaluator: Evaluator = DIRECT,
) -> bytes | None:
    """Apply the patches of one file to the user's version of it.

    Args:
        patches: those that the profile wants.
        upstreams: what the patches made of upstream's files.
        path: from the app's folder.
        data: the user's version.
        evaluator: whom to ask.

    Returns:
        His version, patched; None where a patch cannot do what it says there, or where a postcondition of a patch
        that upstream's file needs does not hold.
    """
    # Upstream's files are patched completely, so that what is blocked there is advisory.
    left_out = {o.patch for o in upstreams.outcomes if o.kind is OutcomeKind.LEFT_OUT or o.kind in BLOCKING}
    here = {path: data}
    concerned = [p for p in patches if p.id not in left_out and path in targets.matching_files(p, here)]
    patched = engine.apply(concerned, here, evaluator=evaluator)
    if engine.incomplete_error(patched, "") is not None:
        return None
    after = next((change.after for change in patched.changes if change.path == path), data)
    there = {outcome.patch for outcome in (*patched.outcomes, *upstreams.outcomes) if outcome.path == path}
    promised = [patch for patch in concerned if patch.id in there]
    return None if any(engine.failed_ensures(patch, path, after, evaluator) for patch in promised) else after
