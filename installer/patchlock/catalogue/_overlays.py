"""Turn the `[[overlay]]` tables of a profile into values, noting every mistake; reads no file."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from patchlock.catalogue.table_reader import Table, sha256
from patchlock.core import archive_names
from patchlock.model import overlays
from patchlock.model.errors import nearest
from patchlock.model.overlays import Overlay, OverlayLibrary, Sdk

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_PLACE = re.compile(r"\{[^{}]*\}")


def overlays_of(root: Table, platforms: tuple[str, ...]) -> tuple[Overlay, ...]:
    """Read all overlays of a profile."""
    found: list[Overlay] = []
    for table in root.tables("overlay"):
        overlay = _overlay(table, platforms)
        if overlay.id in {other.id for other in found}:
            table.problem("id", f'the id "{overlay.id}" is taken by another overlay')
        found.append(overlay)
    return tuple(found)


def _overlay(table: Table, platforms: tuple[str, ...]) -> Overlay:
    url = table.parse("url", _url, "")
    if table.has("sha256") == table.has("trust-on-first-use"):
        table.problem(
            "sha256",
            "an archive has either a sha256 or, where its vendor publishes none, trust-on-first-use",
            'write sha256 = "…", or trust-on-first-use = "why there is none"',
        )
    sdk = _sdk(table.table("sdk")) if table.has("sdk") else None
    overlay = table.read(
        Overlay,
        {"platforms": platforms},
        url=url,
        sha256=table.parse("sha256", sha256, sha256("0" * 64)) if table.has("sha256") else "",
        unpublished=table.text("trust-on-first-use") if table.has("trust-on-first-use") else "",
        libraries=tuple(_library(one, sdk) for one in table.tables("library")),
        sdk=sdk,
    )
    _check(table, overlay)
    table.finish()
    return overlay


def _check(table: Table, overlay: Overlay) -> None:
    for key, values in (("platforms", overlay.platforms), ("before", overlay.before)):
        if not values:
            table.problem(key, "it is empty")
    if not any(library.member for library in overlay.libraries):
        table.problem("library", "none is from the archive", "add an [[overlay.library]] with a member")
    names = [library.name for library in overlay.libraries if library.member]
    for clash in archive_names.collisions(names):
        table.problem("library", clash)
    known = {overlays.PACKAGES, overlays.FOLDER, *([overlays.SDK] if overlay.sdk else [])}
    for name, value in overlay.environment.items():
        for place in set(_PLACE.findall(value)) - known:
            table.problem(f"environment.{name}", f"there is no place {place}", nearest(place, known))


def _library(table: Table, sdk: Sdk | None) -> OverlayLibrary:
    if table.has("member") == table.has("sdk"):
        table.problem("", "a library has either a member of the archive or a file of the sdk")
    in_sdk = table.parse("sdk", _path, "") if table.has("sdk") else ""
    member = table.parse("member", _path, "") if table.has("member") else ""
    needs = tuple(table.each("needs", _path))
    if (in_sdk or needs) and sdk is None:
        table.problem("", "the overlay has no [overlay.sdk]")
    name = table.parse("name", _name, "", member.rpartition("/")[2] or "x") if table.has("member") else in_sdk
    preload = table.boolean("preload", True)
    if in_sdk and not preload:
        table.problem("preload", "a file of the sdk that is not loaded has no place here")
    table.finish()
    return OverlayLibrary(name=name, member=member, needs=needs, preload=preload)


def _sdk(table: Table) -> Sdk:
    sdk = Sdk(
        name=table.text("name"),
        variable=table.text("variable"),
        folders=table.texts("folders", ()),
        has=tuple(table.each("has", _path)),
        install=table.text("install"),
    )
    if not sdk.has:
        table.problem("has", "it is empty", "name a file by which the sdk is known")
    table.finish()
    return sdk


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError(f'"{text}" must begin with https://')
    if not overlays.filename(text).endswith(_ARCHIVES):
        raise ValueError(f'"{text}" must end with the name of a {", ".join(_ARCHIVES[:-1])} or {_ARCHIVES[-1]} file')
    return text


def _path(text: str) -> str:
    why = archive_names.problem(text)
    if why or text.endswith("/"):
        raise ValueError(f'"{text}" must be a POSIX path of a file: {why or "it ends with /"}'.removesuffix(": "))
    return text


def _name(text: str) -> str:
    if "/" in text:
        raise ValueError(f'"{text}" must be the name of a file, without folders')
    return _path(text)
