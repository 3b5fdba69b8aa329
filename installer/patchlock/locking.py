"""Resolve one app for one profile and platform into a lock, by driving uv; installs nothing, runs no foreign code."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.markers import default_environment
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock import compatibility, uv
from patchlock.errors import PolicyError, RequirementsError
from patchlock.lockfile import Lock, LockedPackage, Provenance
from patchlock.model import App, CommitId, Constraint, Platform, Profile, RecordedIndex, RecordedWheel, Sha256
from patchlock.requirement_files import LocationLine, OptionLine, RequirementLine, Unreadable, parse
from patchlock.sources import Undecodable, decode

if TYPE_CHECKING:
    from packaging.pylock import Package, Pylock


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """All that a lock is made from."""

    app: App
    profile: Profile
    platform: Platform
    indexes: tuple[RecordedIndex, ...]
    commit: CommitId
    as_of: str
    """RFC 3339 time in UTC, or "" for no bound."""
    requirements: Mapping[PurePosixPath, bytes]
    """The patched requirement files and every file that they include, by path from the app's folder."""
    inputs: Mapping[str, Sha256]
    """What is written into the lock for `lock --check`."""


def included(files: tuple[PurePosixPath, ...], contents: Mapping[PurePosixPath, bytes]) -> tuple[PurePosixPath, ...]:
    """List requirement files and all that they include with `-r` and `-c`, in order, each once.

    Raises:
        RequirementsError: a file is missing, is no text, or has lines that no installer can read; names all of them.
    """
    found: list[PurePosixPath] = []
    waiting = list(files)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found.append(path)
        if path not in contents:
            raise RequirementsError(f"upstream has no file {path}", remedy="correct `requirements` in the app's file")
        source = decode(path, contents[path])
        if isinstance(source, Undecodable):
            raise RequirementsError(f"{path} cannot be read as text: {source.why}")
        lines = parse(source)
        if wrong := [f"{path}:{line.line}: {line.why}" for line in lines if isinstance(line, Unreadable)]:
            raise RequirementsError(
                f"{wrong[0]}" + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""),
                remedy="correct the line upstream, or add a patch with the op replace-text",
            )
        for line in lines:
            if isinstance(line, LocationLine) or (isinstance(line, RequirementLine) and line.requirement.url):
                wanted = line.target if isinstance(line, LocationLine) else line.requirement
                raise RequirementsError(
                    f'"{wanted}" is a place, not a version, and a lock names files by their sha256',
                    where=f"{path}:{line.line}",
                    remedy="add a patch that sets a version, or drops the line: set-requirement or replace-text",
                )
            options = line.options if isinstance(line, OptionLine) else ()
            waiting += [_beside(path, value) for name, value in options if name in {"--requirement", "--constraint"}]
    return tuple(found)


def _beside(path: PurePosixPath, value: str) -> PurePosixPath:
    parts: list[str] = []
    for part in (*path.parent.parts, *PurePosixPath(value).parts):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def resolve(order: Order) -> Lock:
    """Resolve an order into a lock.

    Raises:
        UnsatisfiableError: no set of packages satisfies it.
        PolicyError: the answer breaks a rule of ours.
        NetworkError: an index does not answer.
    """
    from packaging.pylock import Pylock

    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name:
        folder = Path(name)
        arguments = _prepare(order, folder)
        uv.run(
            *("pip", "compile", *arguments, "--format", "pylock.toml", "--no-header", "-q", "-o", "pylock.toml"),
            cwd=folder,
            installing=False,
        )
        answer = Pylock.from_dict(tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8")))
        # The same question again, from the cache: only this format says who asked for what.
        uv.run(
            *("pip", "compile", *arguments, "--annotation-style", "line", "--no-header", "-q", "-o", "explained.txt"),
            cwd=folder,
            installing=False,
        )
        explained = (folder / "explained.txt").read_text(encoding="utf-8")
        digest = _digest(folder)
    packages = _chosen(order, answer, _reasons(order, explained))
    _check(order, packages)
    return Lock(
        provenance=Provenance(
            app=order.app.name,
            profile=order.profile.name,
            platform=order.platform.name,
            python=str(order.profile.python),
            commit=order.commit,
            as_of=order.as_of,
            uv=uv.version(),
            patches=tuple(p.id for p in order.app.patches if not p.profiles or order.profile.name in p.profiles),
            inputs=order.inputs,
            resolver_input=digest,
        ),
        packages=packages,
    )


def question(order: Order) -> Sha256:
    """Digest what uv would be asked, without asking: equal digests mean an equal question."""
    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name:
        _prepare(order, Path(name))
        return _digest(Path(name))


# --- the question -----------------------------------------------------------------------------------------------------


def _prepare(order: Order, folder: Path) -> tuple[str, ...]:
    """Write everything that uv is given into a folder, and name it relative to that folder."""
    for path, data in order.requirements.items():
        target = folder / "upstream" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source = decode(path, data)
        # uv does not join lines inside a requirement, pip does.
        joined = data if isinstance(source, Undecodable) else re.sub(r"\\(\r\n|\r|\n)", " ", source.text).encode()
        target.write_bytes(joined)
    constraints = (*order.profile.constraints, *order.app.constraints)
    (folder / "constraints.txt").write_text("".join(f"{c.requirement}\n" for c in constraints), encoding="utf-8")
    fitting = {index.name: _fitting(index, order) for index in order.indexes}
    for index, wheels in fitting.items():
        _write_index(folder / "indexes" / index, wheels)
    (folder / "uv.toml").write_text(_config(order, fitting, folder), encoding="utf-8")
    arguments = [
        *(f"upstream/{path}" for path in order.app.requirement_files),
        *("--constraints", "constraints.txt", "--config-file", "uv.toml"),
        *("--python-version", str(order.profile.python), "--python-platform", order.platform.uv),
        *("--only-binary", ":all:"),
        *(option for name in order.app.source_builds for option in ("--no-binary", name)),
    ]
    (folder / "arguments.json").write_text(json.dumps(arguments), encoding="utf-8")
    return tuple(arguments)


def _fitting(index: RecordedIndex, order: Order) -> tuple[RecordedWheel, ...]:
    return tuple(w for w in index.wheels if compatibility.best_wheel([w.filename], order.platform, order.profile))


def _write_index(folder: Path, wheels: tuple[RecordedWheel, ...]) -> None:
    """Write a PEP 503 index whose links lead to the vendor, so that uv locks the real address without asking it."""
    for name in {wheel.name for wheel in wheels}:
        rows = "".join(
            f'<a href="{html.escape(wheel.url)}#sha256={wheel.sha256}">{html.escape(wheel.filename)}</a><br>\n'
            for wheel in wheels
            if wheel.name == name
        )
        (folder / name).mkdir(parents=True)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html>\n{rows}", encoding="utf-8")


def _config(order: Order, fitting: Mapping[str, tuple[RecordedWheel, ...]], folder: Path) -> str:
    lines = [f"exclude-newer = {json.dumps(order.as_of)}"] if order.as_of else []
    names = sorted({wheel.name for wheels in fitting.values() for wheel in wheels})
    if order.as_of and names:  # recorded wheels carry no upload time, and are pinned by hash anyway
        lines.append(f"exclude-newer-package = {{ {', '.join(f'{name} = false' for name in names)} }}")
    for index, wheels in fitting.items():
        if wheels:
            url = (folder / "indexes" / index).as_uri()
            lines += ["", "[[index]]", f"name = {json.dumps(index)}", f"url = {json.dumps(url)}"]
    metadata: dict[tuple[NormalizedName, Version], RecordedWheel] = {}
    for wheel in (wheel for wheels in fitting.values() for wheel in wheels):
        known = metadata.setdefault((wheel.name, wheel.version), wheel)
        if len(str(wheel.requires)) > len(str(known.requires)):  # the one that kept its specifiers
            metadata[wheel.name, wheel.version] = wheel
    for (name, version), wheel in sorted(metadata.items()):
        requires = json.dumps([str(requirement) for requirement in wheel.requires])
        lines += ["", "[[dependency-metadata]]", f"name = {json.dumps(name)}", f'version = "{version}"']
        lines += [f"requires-dist = {requires}"]
    return "\n".join(lines) + "\n"


def _digest(folder: Path) -> Sha256:
    """Digest all that uv was given; the temporary folder's own name is left out."""
    digest = hashlib.sha256()
    given = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in {"pylock.toml", "explained.txt"})
    for path in given:
        data = path.read_bytes().replace(folder.as_uri().encode(), b"")
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return Sha256(digest.hexdigest())


# --- the answer -------------------------------------------------------------------------------------------------------


def _chosen(order: Order, answer: Pylock, reasons: Mapping[NormalizedName, str]) -> tuple[LockedPackage, ...]:
    environment = default_environment() | _markers(order)
    wanted = (p for p in answer.packages if p.marker is None or p.marker.evaluate(dict(environment)))  # type: ignore[arg-type]
    packages = tuple(_locked(order, package, reasons.get(package.name, "")) for package in wanted)
    return tuple(sorted(packages, key=lambda package: package.name))


def _markers(order: Order) -> dict[str, str]:
    system = {"linux": "Linux", "windows": "Windows", "macos": "Darwin"}[order.platform.os]
    sys_platform = {"linux": "linux", "windows": "win32", "macos": "darwin"}[order.platform.os]
    machine = {"amd64": "AMD64"}.get(order.platform.machine, order.platform.machine)
    return {
        "os_name": "nt" if order.platform.os == "windows" else "posix",
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": str(order.profile.python),
        "python_full_version": f"{order.profile.python}.0",
        "implementation_version": f"{order.profile.python}.0",
    }


def _locked(order: Order, package: Package, reason: str) -> LockedPackage:
    wheels = {_filename(wheel.url or ""): wheel for wheel in package.wheels or ()}
    best = compatibility.best_wheel(wheels, order.platform, order.profile)
    if best is not None:
        artifact = wheels[best]
        kind = f"wheel {'-'.join(best.removesuffix('.whl').split('-')[-3:])}"
    elif package.sdist is not None and package.name in order.app.source_builds:
        artifact, kind = package.sdist, "sdist"  # type: ignore[assignment]
    else:
        raise PolicyError(
            f"{package.name} {package.version} has no file that fits {order.platform.name}",
            where=f"{order.app.name} × {order.profile.name}",
            remedy="pin another version with a patch, or allow the build with `source-builds`",
        )
    url = artifact.url or ""
    recorded = {wheel.url: wheel for index in order.indexes for wheel in index.wheels}
    if "sha256" not in artifact.hashes or package.version is None:
        raise PolicyError(f"the index gives no sha256 for {_filename(url)}", where=order.app.name)
    return LockedPackage(
        name=package.name,
        version=package.version,
        url=url if url in recorded else "",
        sha256=Sha256(artifact.hashes["sha256"]),
        why=" · ".join(part for part in (reason, kind) if part),
    )


def _filename(url: str) -> str:
    return unquote(url.rpartition("/")[2])


def _reasons(order: Order, explained: str) -> dict[NormalizedName, str]:
    """Say for each distribution who asked for it, and where in upstream's files or in ours that stands."""
    places = _places(order)
    reasons = {}
    for line in explained.splitlines():
        found = re.match(r"([A-Za-z0-9._-]+)(?:==| @ )\S+\s+#\s+via\s+(.*)", line)
        if found is None:
            continue
        name = canonicalize_name(found[1])
        askers = [asker for asker in re.split(r",\s*", found[2]) if not asker.startswith("-")]
        parts = [f"via {', '.join(askers)}"] if askers else []
        reasons[name] = " · ".join([*places.get(name, ()), *parts])
    return reasons


def _places(order: Order) -> dict[NormalizedName, list[str]]:
    places: dict[NormalizedName, list[str]] = {}
    for path, data in order.requirements.items():
        source = decode(path, data)
        for line in () if isinstance(source, Undecodable) else parse(source):
            if isinstance(line, RequirementLine):
                places.setdefault(canonicalize_name(line.requirement.name), []).append(f"{path}:{line.line}")
    constraints: tuple[Constraint, ...] = (*order.profile.constraints, *order.app.constraints)
    for constraint in constraints:
        origin = constraint.origin
        place = f"profile {order.profile.name}:{origin.line}" if "profiles/" in origin.file else f"app:{origin.line}"
        places.setdefault(canonicalize_name(constraint.requirement.name), []).append(place)
    return places


def _check(order: Order, packages: tuple[LockedPackage, ...]) -> None:
    broken = list(compatibility.overwriting(packages))
    wanted = [canonicalize_name(c.requirement.name) for c in order.app.constraints]
    broken += [f"the constraint on {name} bounds nothing; remove it" for name in compatibility.unused(wanted, packages)]
    if broken:
        raise PolicyError("; ".join(broken), where=f"{order.app.name} × {order.profile.name} × {order.platform.name}")
