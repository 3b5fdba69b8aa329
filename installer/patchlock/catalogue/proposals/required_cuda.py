"""Where an app's own code ends on a machine without CUDA, as it asks for it; pure."""

from __future__ import annotations

from patchlock.catalogue.proposals import device_places, importers
from patchlock.catalogue.proposals.findings import Finding, Issue, excerpt
from patchlock.patches.import_graph import Trees


def issues(trees: Trees) -> tuple[Issue, ...]:
    """Tell of the places, those that are met as a module is imported before those of functions."""
    at_start: list[Finding] = []
    later: list[Finding] = []
    for path in sorted(trees.files):
        module = trees.of(path) if b"cuda" in trees.files[path].lower() and not importers.is_no_part(path) else None
        lines = trees.files[path].decode("utf-8", errors="replace").splitlines() if module is not None else []
        for end in sorted(device_places.ends(module, "cpu"), key=lambda one: one.lineno) if module is not None else ():
            is_at_start = module is not None and any(end is one for one in module.body)
            place = Finding(path=path, line=end.lineno, text=excerpt(lines[end.lineno - 1]))
            (at_start if is_at_start else later).append(place)
    return tuple(
        Issue(
            name="needs-cuda",
            title="upstream's code ends where there is no CUDA",
            means="it raises or exits there, and what follows does not run",
            found=tuple(found),
            remedy="no patch of the draft changes that: see what needs CUDA after it, and write a patch of your own",
            is_at_start=found is at_start,
            is_left=True,
        )
        for found in (at_start, later)
        if found
    )
