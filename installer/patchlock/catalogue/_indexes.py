"""Turn the tables of a recorded index into values, noting every mistake; reads no file."""

from __future__ import annotations

from urllib.parse import quote

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Table, requirement
from patchlock.model.errors import nearest
from patchlock.model.platforms import PLATFORMS
from patchlock.model.recorded_index import RecordedIndex, RecordedSdist, RecordedWheel, RecordingFilter


def index(root: Table, name: str) -> RecordedIndex:
    """Read a recorded index."""
    table = root.table("index")
    url = table.text("url")
    is_flat = table.boolean("flat", False)
    origin = table.origin()
    keep = _filter(table.table("keep")) if table.has("keep") else None
    whole = _filter(table.table("whole")) if table.has("whole") else None
    table.finish()
    wheels = []
    seen: set[str] = set()
    for row in root.tables("wheel"):
        filename = row.text("filename")
        try:
            name_of_wheel, wheel_version, _, _ = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            row.problem("filename", f'"{filename}" is not the name of a wheel')
            name_of_wheel, wheel_version = canonicalize_name("nothing"), Version("0")
        wheels.append(
            row.read(
                RecordedWheel,
                name=name_of_wheel,
                version=wheel_version,
                filename=filename,
                url=row.text("url", f"{url}/{quote(filename)}"),
            )
        )
        if filename in seen:
            row.problem("filename", f'"{filename}" is there already', "write what it was before as [[wheel.earlier]]")
        seen.add(filename)
        row.finish()
    sdists = tuple(_sdist(row, url) for row in root.tables("sdist"))
    return RecordedIndex(
        name=name,
        url=url,
        wheels=tuple(wheels),
        origin=origin,
        keep=keep,
        whole=whole,
        sdists=sdists,
        is_flat=is_flat,
    )


def _sdist(row: Table, url: str) -> RecordedSdist:
    filename = row.text("filename")
    try:
        name, number = parse_sdist_filename(filename)
    except InvalidSdistFilename:
        row.problem("filename", f'"{filename}" is not the name of an sdist')
        name, number = canonicalize_name("nothing"), Version("0")
    address = row.text("url", f"{url}/{quote(filename)}")
    sdist = row.read(RecordedSdist, name=name, version=number, filename=filename, url=address)
    row.finish()
    return sdist


def _filter(table: Table) -> RecordingFilter:
    platforms = table.texts("platforms", ())
    for platform in platforms:
        if platform not in PLATFORMS:
            table.problem("platforms", f'there is no platform "{platform}"', nearest(platform, PLATFORMS))
    distributions = table.each("distributions", requirement)
    pythons = table.each("pythons", _apps_and_profiles.minor_version)
    for key in ("distributions", "pythons", "platforms"):
        if not table.texts(key) and table.has(key):
            table.problem(key, "it is empty")
    table.finish()
    return RecordingFilter(
        distributions=distributions,
        pythons=pythons,
        platforms=tuple(PLATFORMS[name] for name in platforms if name in PLATFORMS),
    )
