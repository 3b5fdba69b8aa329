"""What uv is given for a lock: requirement files, rules and recorded indexes, written into an empty folder."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.locks import _direct_files, _resolver, resolution_inputs
from patchlock.model import toml_text
from patchlock.model.recorded_index import RecordedSdist, RecordedWheel
from patchlock.patches import resolver_files

if TYPE_CHECKING:
    from patchlock.locks.resolution_inputs import ResolutionInputs


def write(order: ResolutionInputs, folder: Path) -> tuple[str, ...]:
    """Write everything that uv is given into a folder, and name it relative to that folder."""
    wanted, bounds = resolver_files.write_out(order.asked)
    for path, data in (wanted | bounds).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    rules = order.rules
    given: dict[str, list[str]] = {
        "constraints.txt": [str(rule.requirement) for rule in rules.constraints],
        "overrides.txt": [str(rule.requirement) for rule in rules.overrides],
        "excludes.txt": [rule.name for rule in rules.exclusions],
    }
    for file, lines in given.items():
        (folder / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    fitting = {index.name: resolution_inputs.fitting(index, order) for index in order.indexes}
    for index, files in fitting.items():
        _write_index(folder / "indexes" / index, files)
    (folder / "uv.toml").write_text(_config(order, fitting, folder), encoding="utf-8")
    arguments = [
        *map(str, wanted),
        *(option for path in bounds for option in ("--constraints", str(path))),
        *("--constraints", "constraints.txt", "--overrides", "overrides.txt", "--excludes", "excludes.txt"),
        *("--config-file", "uv.toml"),
        *("--python-version", str(order.profile.python), "--python-platform", order.platform.uv),
        *("--only-binary", ":all:"),
        *(option for name in rules.source_builds for option in ("--no-binary", name)),
        *(("--prerelease", "allow") if ("--pre", "") in order.asked.options else ()),
    ]
    (folder / _resolver.ARGUMENTS).write_text(json.dumps(arguments), encoding="utf-8")
    return tuple(arguments)


def _write_index(folder: Path, files: resolution_inputs.RecordedFiles) -> None:
    """Write a PEP 503 index whose links lead to the vendor, so that uv locks the real address without asking it."""
    for name in {file.name for file in files}:
        rows = "".join(
            f'<a href="{html.escape(file.url)}#sha256={file.sha256}"{_time(file)}>{html.escape(file.filename)}</a>'
            "<br>\n"
            for file in files
            if file.name == name
        )
        (folder / name).mkdir(parents=True)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html>\n{rows}", encoding="utf-8")


def _time(file: RecordedWheel | RecordedSdist) -> str:
    return f' data-upload-time="{file.uploaded}"' if isinstance(file, RecordedWheel) and file.uploaded else ""


def _config(order: ResolutionInputs, fitting: Mapping[str, resolution_inputs.RecordedFiles], folder: Path) -> str:
    values: dict[str, object] = {"exclude-newer": order.as_of} if order.as_of else {}
    # uv drops a file without an upload time; recorded wheels without one are pinned by hash anyway.
    untimed = {name: "" for files in fitting.values() for name in resolution_inputs.untimed(files)}
    cut_offs = dict(order.cut_offs) | untimed
    if order.as_of and cut_offs:
        values["exclude-newer-package"] = {name: cut_offs[name] or False for name in sorted(cut_offs)}
    values["index"] = [
        {"name": index, "url": (folder / "indexes" / index).as_uri()} for index, files in fitting.items() if files
    ]
    metadata: dict[tuple[NormalizedName, Version], RecordedWheel] = {}
    for wheel in (one for files in fitting.values() for one in files if isinstance(one, RecordedWheel)):
        fullest = metadata.setdefault((wheel.name, wheel.version), wheel)
        if len(str(wheel.requires)) > len(str(fullest.requires)):  # the one that kept its specifiers
            metadata[wheel.name, wheel.version] = wheel
    known = {key: wheel.requires for key, wheel in metadata.items()}
    known |= {(rule.name, rule.version): rule.requires for rule in order.rules.metadata}
    tables = [
        _direct_files.metadata_table(name, version, requires) for (name, version), requires in sorted(known.items())
    ]
    # Of other versions that may be built nothing is known; uv must not find out, see
    # `locks._direct_files.require_stated`.
    unpinned = set(order.rules.source_builds) - {pin.name for pin in order.pins}
    values["dependency-metadata"] = [
        *tables,
        *(_direct_files.metadata_table(name, None, ()) for name in sorted(unpinned)),
    ]
    # A lock has the digest of these bytes: one made without a cut-off has an empty line in the first line's place.
    return toml_text.render(values) if order.as_of else f"\n{toml_text.render(values)}"
