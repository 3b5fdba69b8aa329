"""Recognise changed, dropped and added requirements in pyproject.toml, setup.cfg, setup.py and conda's environments."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import NormalizedName

from patchlock.catalogue.authoring.drafts import Draft, ensures, op
from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches.ops.requirements.formats import read
from patchlock.patches.ops.requirements.lists import RequirementList

_NAMES = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
_CONDA = frozenset({".yml", ".yaml"})


def declares(source: SourceText) -> bool:
    """Tell, by its name, whether a file may declare requirements of which each list has a name."""
    return source.path.name.lower() in _NAMES or source.path.suffix.lower() in _CONDA


def recognise(before: SourceText, after: SourceText) -> Iterator[Draft]:
    """Give the ops that change the requirements of each list; nothing where either file cannot be read."""
    old, new = read(before), read(after)
    if isinstance(old, Refusal) or isinstance(new, Refusal):
        return
    lists = {one.name: one for one in new.lists}
    for one in old.lists:
        if one.name in lists:
            yield from _of_list(one.name, _by_name(one), _by_name(lists[one.name]))


def _of_list(
    within: str, old: dict[NormalizedName, Requirement], new: dict[NormalizedName, Requirement]
) -> Iterator[Draft]:
    for name, have in old.items():
        if name not in new:
            yield from _draft("drop-requirement", "no-requirement", f"no-{name}", name=name, within=within)
        elif (have.specifier, have.url) != (new[name].specifier, new[name].url):
            specifier = new[name].specifier
            slug = f"{name}-version"
            yield from _draft("set-requirement", "requirement", slug, name=name, specifier=specifier, within=within)
    for name, wanted in new.items():
        if name not in old:
            made = op("add-requirement", requirement=wanted, within=within)
            check = ("requirement", {"name": name, "specifier": wanted.specifier, "within": within})
            if made is not None:
                yield Draft(op_name="add-requirement", op=made, slug=f"add-{name}", ensures=ensures(check))


def _draft(op_name: str, check: str, slug: str, **fields: object) -> Iterator[Draft]:
    made = op(op_name, **fields)
    if made is not None:
        yield Draft(op_name=op_name, op=made, slug=slug, ensures=ensures((check, fields)))


def _by_name(one: RequirementList) -> dict[NormalizedName, Requirement]:
    """Give what each distribution is asked for; the first where there are several lines, as for several platforms."""
    found: dict[NormalizedName, Requirement] = {}
    for _, entry in one.entries:
        if entry.requirement is not None:
            found.setdefault(entry.name, entry.requirement)
    return found
