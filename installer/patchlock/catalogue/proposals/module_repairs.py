"""Patches for source that imports what is left out without a card; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals._line_patches import MissingModule
from patchlock.catalogue.proposals.findings import Files, Finding, ProposedPatch
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.text_files import SourceText, decode
from patchlock.patches.evaluation import DIRECT, Evaluator


def repair(
    modules: Mapping[str, MissingModule],
    imports: Imports,
    files: Files,
    link: Callable[..., str],
    evaluator: Evaluator = DIRECT,
) -> tuple[ProposedPatch, ...]:
    """Let the app start without modules that are not there on some profiles.

    Args:
        modules: by their names.
        imports: of the app's files.
        files: of the tree.
        link: names a place of upstream as a reader can open it, by path and line.
        evaluator: whom to ask which imports run as their file is imported, and have no guard yet.
    """
    sections = []
    for module, missing in modules.items():
        made = op("optional-import", package=module, message=missing.why)
        paths = dict.fromkeys(one.found.path for one in imports.of([module]))
        sources = [source for path in paths if isinstance(source := decode(path, files[path]), SourceText)]
        found = [
            Finding(path=source.path, line=site.line, text=site.text)
            for source in sources
            for site in (evaluator.locate(made, source).sites if made is not None else ())
        ]
        if not found or made is None:
            continue
        checks = ensures(("imports-without", {"package": module}))
        draft = Draft(
            op_name="optional-import",
            op=made,
            slug=slug(module, "optional"),
            ensures=checks,
            literal=(module,),
            sites=len(found),
        )
        patch = dataclasses.replace(
            draft.patch(draft.slug, dict.fromkeys(one.path for one in found)),
            why=f"{module} is not there: {missing.why}",
            source=link(found[0].path, found[0].line),
            profiles=missing.profiles,
        )
        comment = "; ".join(map(str, found[:3])) + (f" (and {len(found) - 3} more)" if len(found) > 3 else "")
        sections.append(ProposedPatch(comment=comment, written=Written(patch=patch, ensures=checks)))
    return tuple(sections)
