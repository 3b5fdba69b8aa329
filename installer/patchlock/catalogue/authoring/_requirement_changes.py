"""Recognise changes of a pip requirement file: pins changed, requirements dropped, added and renamed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.authoring.drafts import Draft, ensures, op
from patchlock.model.text_files import SourceText
from patchlock.patches.pip_requirements import LocationLine, OptionLine, RequirementLine, parse

_NAMES = re.compile(r"(?i)require|constraint")


def is_requirement_file(source: SourceText) -> bool:
    """Tell a requirement file by its name or folder."""
    return source.path.suffix.lower() in {".txt", ".in"} and bool(_NAMES.search("/".join(source.path.parts[-2:])))


def same_requirements(one: SourceText, other: SourceText) -> bool:
    """Tell whether pip would read the same from two files; order and comments do not count."""
    return sorted(_meaning(one)) == sorted(_meaning(other))


def recognise(before: SourceText, after: SourceText) -> Iterator[Draft]:
    """Give the ops that change one file's requirements into the other's."""
    old, new = _by_name(before), _by_name(after)
    renamed = dict(_renamed(list(old), list(new)))
    for name, lines in old.items():
        if name in renamed:
            yield from _rename(name, new[renamed[name]])
        elif name not in new:
            yield from _draft("drop-requirement", f"no-{name}", {"name": name}, ("no-requirement", {"name": name}))
        elif _wanted(lines) != _wanted(new[name]):
            yield from changed(name, lines[0].requirement, new[name][0].requirement, sites=len(lines))
    for name, lines in new.items():
        if name not in old and name not in renamed.values():
            requirement = lines[0].requirement
            check = ("requirement", {"name": name, "specifier": requirement.specifier})
            yield from _draft("add-requirement", f"add-{name}", {"requirement": requirement}, check)


def changed(
    name: NormalizedName, have: Requirement, wanted: Requirement, within: str = "", sites: int = 1
) -> Iterator[Draft]:
    """Give the op for a requirement that asks for something else of the same distribution."""
    place: dict[str, object] = {"within": within} if within else {}
    fields: dict[str, object] = {"name": name, "specifier": wanted.specifier, **place}
    if wanted.url is None and (have.extras, have.marker) == (wanted.extras, wanted.marker):
        yield from _draft("set-requirement", f"{name}-version", fields, ("requirement", fields), sites=sites)
    else:  # where it has no extras or marker any more, upstream's would stay: then it is none
        replaced: dict[str, object] = {"name": name, "to": wanted, **place}
        # Bounds are compared as a set; a text would have them in the order that `str` gives them.
        is_bounded = wanted.url is None and have.specifier != wanted.specifier
        text: dict[str, object] = {"text": str(wanted)}
        check = ("requirement", fields) if is_bounded else ("contains", text)
        yield from _draft("rename-requirement", f"{name}-replaced", replaced, check, sites=sites)


def _rename(name: NormalizedName, lines: Sequence[RequirementLine]) -> Iterator[Draft]:
    to = lines[0].requirement
    extras = f"[{','.join(sorted(to.extras))}]" if to.extras else ""
    plain = Requirement(f"{to.name}{extras}{to.specifier}")  # upstream's marker stays by itself
    new_name = canonicalize_name(to.name)
    checks: tuple[tuple[str, dict[str, object]], ...] = (
        ("requirement", {"name": new_name, "specifier": to.specifier}),
        ("no-requirement", {"name": name}),
    )
    fields: dict[str, object] = {"name": name, "to": to if to.url else plain}
    yield from _draft("rename-requirement", f"{new_name}-for-{name}", fields, *checks)


def _draft(
    op_name: str, slug: str, fields: dict[str, object], *checks: tuple[str, dict[str, object]], sites: int = 1
) -> Iterator[Draft]:
    made = op(op_name, **fields)
    if made is not None:
        yield Draft(op_name=op_name, op=made, slug=slug, ensures=ensures(*checks), sites=sites)


def _by_name(source: SourceText) -> dict[NormalizedName, list[RequirementLine]]:
    found: dict[NormalizedName, list[RequirementLine]] = {}
    for line in parse(source):
        if isinstance(line, RequirementLine):
            found.setdefault(canonicalize_name(line.requirement.name), []).append(line)
    return found


def _wanted(lines: Sequence[RequirementLine]) -> list[str]:
    return sorted(str(line.requirement) for line in lines)


def _renamed(old: list[NormalizedName], new: list[NormalizedName]) -> Iterator[tuple[NormalizedName, NormalizedName]]:
    """Pair a name that went with one that came in its place and shares a word with it."""
    gone = [name for name in old if name not in new]
    came = [name for name in new if name not in old]
    for name in gone:
        alike = [other for other in came if _words(name) & _words(other)]
        if len(alike) == 1 and sum(bool(_words(one) & _words(alike[0])) for one in gone) == 1:
            yield name, alike[0]


def _words(name: str) -> frozenset[str]:
    return frozenset(name.split("-")) - {"python", "py", "lib"}


def _meaning(source: SourceText) -> Iterator[str]:
    for line in parse(source):
        match line:
            case RequirementLine():
                requirement = line.requirement
                name = canonicalize_name(requirement.name)
                extras = sorted(canonicalize_name(extra) for extra in requirement.extras)
                version = sorted(map(str, requirement.specifier))
                yield f"{name} {extras} {version} {requirement.url} {requirement.marker} {line.editable}"
            case OptionLine():
                yield f"option {line.options}"
            case LocationLine():
                yield f"location {line.target} {line.editable}"
            case _:
                text = source.text[line.span.start : line.span.end].strip()
                yield from [] if not text or text.startswith("#") else [f"unreadable {text}"]
