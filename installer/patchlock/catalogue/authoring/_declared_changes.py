"""Recognise changed, dropped and added requirements in pyproject.toml, setup.cfg, setup.py and conda's environments."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import NormalizedName

from patchlock.catalogue.authoring._requirement_changes import changed
from patchlock.catalogue.authoring.drafts import Draft, ensures, op
from patchlock.model.patch import Refusal
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches.ops.requirements.formats import read
from patchlock.patches.ops.requirements.lists import RequirementList

_NAMES = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
_REQUIRES = frozenset({"install_requires", "setup_requires", "tests_require", "extras_require"})
"""The arguments of `setup` that hold requirements."""
_CONDA = frozenset({".yml", ".yaml"})


def declares(source: SourceText) -> bool:
    """Tell, by its name, whether a file may declare requirements of which each list has a name."""
    return source.path.name.lower() in _NAMES or source.path.suffix.lower() in _CONDA


def sets_whole_list(source: SourceText, draft: Draft) -> bool:
    """Tell whether an op gives a `setup.py` a whole list of requirements, without what upstream adds later."""
    is_setup = source.path.name.lower() == "setup.py"
    return is_setup and draft.op_name == "set-argument" and getattr(draft.op, "argument", "") in _REQUIRES


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
            fields: dict[str, object] = {"name": name, "within": within}
            made, check = op("drop-requirement", **fields), ("no-requirement", fields)
            if made is not None:
                yield Draft(op_name="drop-requirement", op=made, slug=f"no-{name}", ensures=ensures(check))
        elif have != new[name]:
            yield from changed(name, have, new[name], within)
    for name, wanted in new.items():
        if name not in old:
            made = op("add-requirement", requirement=wanted, within=within)
            check = ("requirement", {"name": name, "specifier": wanted.specifier, "within": within})
            if made is not None:
                yield Draft(op_name="add-requirement", op=made, slug=f"add-{name}", ensures=ensures(check))


def _by_name(one: RequirementList) -> dict[NormalizedName, Requirement]:
    """Give what each distribution is asked for; the first where there are several lines, as for several platforms."""
    found: dict[NormalizedName, Requirement] = {}
    for _, entry in one.entries:
        if entry.requirement is not None:
            found.setdefault(entry.name, entry.requirement)
    return found


def as_ops_write(before: SourceText, after: SourceText) -> SourceText:
    """Give the edited file with each requirement that is not upstream's as the ops write it: its clauses in order."""
    old, new = read(before), read(after)
    if isinstance(old, Refusal) or isinstance(new, Refusal):
        return after
    known = {(one.name, entry.text) for one in old.lists for _, entry in one.entries}
    edits: list[Edit] = []
    for one in new.lists:
        for _, entry in one.entries:
            wanted = entry.requirement
            if wanted and wanted.specifier and (one.name, entry.text) not in known:
                written = entry.with_specifier(wanted.specifier)
                edits += written if isinstance(written, tuple) else ()
    return splice(after, tuple(dict.fromkeys(edits)))
