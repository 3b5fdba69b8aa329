"""Write patches as `[[patch]]` tables of TOML that the catalogue reads back as the same patches."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from patchlock.catalogue import _apps_and_profiles, table_reader
from patchlock.catalogue.authoring.assembly import Written
from patchlock.model.origins import Origin
from patchlock.model.patch import Ensure, Expect, Op, Patch
from patchlock.model.toml_text import item

if TYPE_CHECKING:
    from tomlkit.items import Table

_UNDECODABLE = re.compile("[\ud800-\udfff]")
_NOWHERE = Origin(file="", line=1)


def tables(patches: Iterable[Written]) -> str:
    """Give the tables, each with a blank line before the next."""
    import tomlkit

    written = tomlkit.aot()
    for one in patches:
        written.append(_table(one))
    return tomlkit.dumps({"patch": written}) if written else ""


def ids(text: str) -> frozenset[str]:
    """Give the ids of the patches of a file.

    Raises:
        ValueError: it is not TOML.
    """
    listed = tomllib.loads(text).get("patch", [])
    return frozenset(str(one.get("id")) for one in listed if isinstance(one, dict))


def patches_of(text: str, file: str = "") -> tuple[Patch, ...]:
    """Give the patches of a file, those without a mistake.

    Args:
        text: of the file.
        file: what their places call it.

    Raises:
        ValueError: it is not TOML.
    """
    report = table_reader.Report(file=file, text=text)
    return _apps_and_profiles.patches(table_reader.Table(tomllib.loads(text), report), None)


def are_patches(path: PurePosixPath, data: bytes) -> bool:
    """Tell whether a file of an app's folder is one of patches, which no patch is to change."""
    try:
        return path.suffix == ".toml" and bool(patches_of(data.decode("utf-8")))
    except ValueError:
        return False


def require_readable(text: str, patches: Iterable[Written], known: tuple[Patch, ...] = ()) -> None:
    """Read tables back as the catalogue does.

    Args:
        text: the tables.
        patches: what they say.
        known: patches that go before them in the same file.

    Raises:
        ValueError: they do not say the same patches, which is a mistake of this module.
    """
    report = table_reader.Report(file="", text="")
    read = _apps_and_profiles.patches(table_reader.Table(tomllib.loads(text), report), None, known)
    same = [dataclasses.replace(one, origin=_NOWHERE) for one in read]
    if report.problems or same != [dataclasses.replace(one.patch, origin=_NOWHERE) for one in patches]:
        raise ValueError(f"the tables do not say the patches: {'; '.join(p.what for p in report.problems)}")


def _table(written: Written) -> Table:
    import tomlkit

    patch, table = written.patch, tomlkit.table()
    paths = [_UNDECODABLE.sub("?", path) for path in patch.paths]  # TOML is UTF-8; "?" stands for any character
    rows = {"id": patch.id, "why": patch.why, "source": patch.source, "op": patch.op_name, "paths": paths}
    chosen = {"literal": patch.literal, "profiles": patch.profiles, "after": patch.after}
    rows |= {key: value for key, value in chosen.items() if value}
    expect = {"expect": fields} if (fields := _fields(patch.expect)) else {}
    for key, value in (rows | expect | _fields(patch.op)).items():
        table.append(key, item(value))
    ensures = tomlkit.aot()
    for name, ensure in written.ensures:
        ensures.append({key: item(value) for key, value in ({"check": name} | _fields(ensure)).items()})
    if ensures:
        table.append("ensure", ensures)
    return table


def _fields(one: Op | Ensure | Expect) -> dict[str, object]:
    """Give the keys of an op, of a check or of what is expected; those with their default are left out."""
    fields = dataclasses.fields(one)  # type: ignore[arg-type]
    read = ((field.name.replace("_", "-"), getattr(one, field.name), field.default) for field in fields)
    return {key: value for key, value, default in read if value != default}
