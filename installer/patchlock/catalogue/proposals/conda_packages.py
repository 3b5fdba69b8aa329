"""What a conda environment has outside `pip:`, as requirements that an index has; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.findings import Finding, Issue, ProposedPatch
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops.requirements import formats
from patchlock.patches.ops.requirements.lists import Entry
from patchlock.patches.requirement_sources import CONDA_ON_INDEX

_PIP = "dependencies.pip"
"""The list that a lock reads."""


def repair(
    source: SourceText, imports: Imports, link: Callable[..., str]
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    """Ask the index for what the app imports and the environment has from conda.

    Args:
        source: an environment file.
        imports: of the app's files.
        link: names a place of upstream as a reader can open it, by path and line.
    """
    declared = formats.read(source)
    if isinstance(declared, Refusal) or declared.default != _PIP:
        return (), ()
    by_pip = {entry.name for one in declared.lists if one.name == declared.default for _, entry in one.entries}
    imported = {module_names.distribution_of(one.module) for one in imports.all()} - by_pip
    listed = [entry for one in declared.lists if one.name != declared.default for _, entry in one.entries]
    found = [(name, entry) for entry in listed if (name := _name(entry)) in imported]
    places = tuple(Finding(path=source.path, line=entry.line, text=entry.text) for _, entry in found)
    issue = Issue(
        name="conda-package",
        title="conda brings it",
        means="a lock is made of what an index has, and what stands outside `pip:` is not read",
        found=places,
        remedy="the index's release is asked for; conda's pin is for another Python, and is a lower bound",
    )
    sections = tuple(_section(name, entry, place, link) for (name, entry), place in zip(found, places, strict=True))
    return sections, (issue,) if places else ()


def _name(entry: Entry) -> NormalizedName:
    return CONDA_ON_INDEX.get(entry.name, entry.name)


def _section(name: NormalizedName, entry: Entry, place: Finding, link: Callable[..., str]) -> ProposedPatch:
    requirement = Requirement(f"{name}{','.join(_bounds(entry))}")
    made = op("add-requirement", requirement=requirement)
    if made is None:
        raise ValueError(f"add-requirement does not take {requirement}")  # a mistake of this module
    wanted: dict[str, object] = {"name": name, "specifier": SpecifierSet(str(requirement.specifier)), "within": _PIP}
    checks = ensures(("requirement", wanted))
    draft = Draft(op_name="add-requirement", op=made, slug=slug(f"{name}-of-the-index"), ensures=checks)
    patch = dataclasses.replace(
        draft.patch(draft.slug, [place.path]),
        why=f"the app imports {name}, which the environment has from conda",
        source=link(place.path, place.line),
    )
    return ProposedPatch(comment=str(place), written=Written(patch=patch, ensures=checks))


def _bounds(entry: Entry) -> Iterator[str]:
    """Give the lower bounds: a pin is one."""
    for one in entry.requirement.specifier if entry.requirement is not None else ():
        if one.operator in {"==", "===", "~=", ">=", ">"}:
            yield f">={one.version.removesuffix('.*').partition('+')[0]}"
