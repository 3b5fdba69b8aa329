"""Write patches as `[[patch]]` tables of TOML that the catalogue reads back as the same patches."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.origins import Origin
from patchlock.model.patch import Ensure, Op

_NOWHERE = Origin(file="", line=1)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def tables(patches: Iterable[Written]) -> str:
    """Give the tables, each with a blank line before the next."""
    return "\n".join("".join(f"{line}\n" for line in _table(one)) for one in patches)


def ids(text: str) -> frozenset[str]:
    """Give the ids of the patches of a file.

    Raises:
        ValueError: it is not TOML.
    """
    listed = tomllib.loads(text).get("patch", [])
    return frozenset(str(one.get("id")) for one in listed if isinstance(one, dict))


def require_readable(text: str, patches: Iterable[Written]) -> None:
    """Read tables back as the catalogue does.

    Raises:
        ValueError: they do not say the same patches, which is a mistake of this module.
    """
    report = Report(file="", text="")
    read = _apps_and_profiles.patches(Table(tomllib.loads(text), report), None)
    same = [dataclasses.replace(one, origin=_NOWHERE) for one in read]
    if report.problems or same != [dataclasses.replace(one.patch, origin=_NOWHERE) for one in patches]:
        raise ValueError(f"the tables do not say the patches: {'; '.join(p.what for p in report.problems)}")


def _table(written: Written) -> Iterator[str]:
    patch = written.patch
    yield "[[patch]]"
    yield f"id = {value(patch.id)}"
    yield f"why = {value(patch.why)}"
    yield f"source = {value(patch.source)}"
    yield f"op = {value(patch.op_name)}"
    yield f"paths = {value(patch.paths)}"
    if patch.literal:
        yield f"literal = {value(patch.literal)}"
    if patch.profiles:
        yield f"profiles = {value(patch.profiles)}"
    if patch.after:
        yield f"after = {value(patch.after)}"
    yield f"expect = {{ sites = {patch.expect.sites} }}"
    yield from _fields(patch.op)
    for name, ensure in written.ensures:
        yield from ("", "[[patch.ensure]]", f"check = {value(name)}")
        yield from _fields(ensure)


def _fields(one: Op | Ensure) -> Iterator[str]:
    """Give the keys of an op or a check; those with their default are left out."""
    for field in dataclasses.fields(one):  # type: ignore[arg-type]
        content = getattr(one, field.name)
        if content != field.default:
            yield f"{field.name.replace('_', '-')} = {value(content)}"


def value(content: object) -> str:
    """Write a value; a text of several lines as it is read best."""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, int):
        return str(content)
    if isinstance(content, tuple):
        return f"[{', '.join(value(item) for item in content)}]"
    if isinstance(content, Mapping):
        return f"{{ {', '.join(f'{value(k)} = {value(v)}' for k, v in content.items())} }}"
    text = str(content)
    is_plain = "'''" not in text and not text.endswith("'") and not _UNPRINTABLE.search(text)
    if "\n" in text.rstrip("\n") and is_plain:
        return f"'''\n{text}'''"
    if "\n" not in text and "'" not in text and not _UNPRINTABLE.search(text) and ('"' in text or "\\" in text):
        return f"'{text}'"
    # JSON's escapes are TOML's, but for characters outside the basic plane, which need none.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
