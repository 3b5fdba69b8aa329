"""The lockfile as values: read it, write it, say why it is stale; pure, no I/O.

A lockfile is a hash-pinned requirement file that pip, uv and pip-sync take as it is: one line, one file, one sha256 for
each distribution, and no index address. A block of TOML in comments at its top (in the manner of PEP 723) says what it
was made from.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from packaging.tags import InvalidTag, Tag, parse_tag
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from patchlock.model import addresses
from patchlock.model.errors import LockFormatError
from patchlock.model.identities import CommitId, Sha256

FORMAT = 1
"""Raised when the meaning of a lockfile changes."""

EDITED = "was edited by its owner after it was made: its lines are not those of its seal"
"""What everybody is told who uses such a lock."""

_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:==(?P<version>\S+)| @ (?P<url>\S+))"
    r" --hash=sha256:(?P<sha256>[0-9a-f]{64})(?: # (?P<why>.*))?"
)


@dataclass(frozen=True, kw_only=True)
class Original:
    """The wheel of upstream that a wheel of ours is made from."""

    version: Version
    url: str
    """As `LockedPackage.url`."""
    sha256: Sha256
    patches: tuple[str, ...]
    """Ids of those that change something in it, in their order."""


@dataclass(frozen=True, kw_only=True)
class LockedPackage:
    """One distribution of a lock: exactly one file."""

    name: NormalizedName
    version: Version
    url: str
    """Only for files that live outside the default index; otherwise ""."""
    sha256: Sha256
    why: str
    """Who asked for it, where, and which file was chosen."""
    original: Original | None = None
    """What it is made from, where no index has it: install patches that on the machine."""

    @property
    def upstream(self) -> LockedPackage:
        """The file as upstream made it, which is what rules, indexes and other resolvers know."""
        if self.original is None:
            return self
        of = self.original
        return dataclasses.replace(self, version=of.version, url=of.url, sha256=of.sha256, original=None)

    @property
    def filename(self) -> str:
        """Name its file as its address does, or as indexes do; with a `*` where the lock does not say what it is."""
        if self.url:
            return unquote(self.url.partition("#")[0].rpartition("/")[2])
        kind, begin = self.why.rpartition(" · ")[2], f"{self.name.replace('-', '_')}-{self.version}"
        if kind == "sdist":
            return f"{begin}.tar.gz"
        return f"{begin}-{kind.removeprefix('wheel ')}.whl" if kind.startswith("wheel ") else f"{begin}*"

    def __str__(self) -> str:
        pin = f"{self.name} @ {self.url}" if self.url else f"{self.name}=={self.version}"
        return f"{pin} --hash=sha256:{self.sha256}" + (f" # {self.why}" if self.why else "")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a lock was made from."""

    app: str
    profile: str
    platform: str
    python: str
    """Major and minor version."""
    commit: CommitId
    as_of: str
    """Files uploaded later were not considered: an RFC 3339 time in UTC, or "" for no bound."""
    newer: Mapping[NormalizedName, str]
    """Distributions that were upgraded beyond that → until when; the catalogue's own exceptions are not repeated."""
    uv: str
    """Version of uv that resolved."""
    patches: tuple[str, ...]
    """Ids of the patches whose result was resolved, in order."""
    inputs: Mapping[str, Sha256]
    """Catalogue file, or `upstream:<file>`, → sha256 of its bytes."""
    resolver_input: Sha256
    """Digest of all that uv was given: patched requirements, constraints, indexes, options."""
    not_covered: tuple[str, ...] = ()
    """What upstream's files declare and the lock does not hold, with its place, one clause each."""
    build_constraints: Sha256 | Literal[""] = ""
    """Of the file beside the lock that pins what builds its sdists; "" where nothing has to be built."""


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lockfile."""

    provenance: Provenance
    packages: tuple[LockedPackage, ...]
    """Sorted by name; names are unique."""
    is_intact: bool = True
    """Whether its lines are those of its seal, `content`; a lock without one is not."""
    notices: tuple[str, ...] = ()
    """What a person should know when it is made, one clause each; not part of the file."""
    builds_for_newer: tuple[tuple[NormalizedName, Version], ...] = ()
    """Sdists without which something is locked in an older version, where the lock was just made."""
    build: str = ""
    """The text of the file beside the lock, where the lock was just made; see `build_constraints`."""


def render(lock: Lock) -> str:
    """Write a lock as text; the same lock gives the same text."""
    import tomlkit  # which is only for who writes

    p = lock.provenance
    head: dict[str, object] = {
        "format": FORMAT,
        "app": p.app,
        "profile": p.profile,
        "platform": p.platform,
        "python": p.python,
        "commit": p.commit,
        "as-of": p.as_of,
        "uv": p.uv,
        "patches": list(p.patches),
        "resolver-input": p.resolver_input,
    }
    if p.build_constraints:
        head["build-constraints"] = p.build_constraints
    if p.not_covered:
        head["not-covered"] = list(p.not_covered)
    if p.newer:
        head["newer"] = {name: p.newer[name] for name in sorted(p.newer)}
    if unnamed := {
        package.name: package.version for package in lock.packages if package.url and _of_address(package.url) is None
    }:
        head["versions"] = {name: str(unnamed[name]) for name in sorted(unnamed)}
    if patched := {package.name: _patched(package.original) for package in lock.packages if package.original}:
        head["patched"] = patched
    head["inputs"] = {file: p.inputs[file] for file in sorted(p.inputs)}
    lines = [
        "# /// patchlock",
        *(f"# {line}".rstrip() for line in tomlkit.dumps(head).removesuffix("\n").split("\n")),
        "# ///",
        f"# Written by `patchlock lock {p.app} --profile {p.profile}`; any installer takes it:",
        "# `pip install --require-hashes -r`, `uv pip sync --require-hashes`, `pip-sync`.",
        *(_BUILDS if p.build_constraints else ()),
        *_first_made(lock.packages),
        *(str(package) for package in lock.packages),
    ]
    # Beside the other keys, and above the first table.
    at = lines.index(f'# resolver-input = "{p.resolver_input}"') + 1
    return "\n".join([*lines[:at], f'{_SEAL}"{_content(lines)}"', *lines[at:]]) + "\n"


_BUILDS = (
    "# Its sdists are built with what the `.build.txt` file beside it pins. Name that file too: uv's",
    "# `--build-constraints`, pip's `--build-constraint` (25.3 or later), PIP_BUILD_CONSTRAINT for `pip-sync`.",
)
"""Tells who uses another installer what it would not find by itself: it would build with whatever is newest."""


def _patched(of: Original) -> dict[str, object]:
    address = {"url": of.url} if of.url else {}
    return {"version": str(of.version), **address, "sha256": of.sha256, "patches": list(of.patches)}


def _first_made(packages: Iterable[LockedPackage]) -> list[str]:
    """Tell who uses another installer how to get the wheels that no index has."""
    commands = [f"# `{command}`" for command in patch_commands(packages)]
    return ["# No index has the patched wheels. First, then with `--find-links wheels`:", *commands] if commands else []


def patch_commands(packages: Iterable[LockedPackage]) -> tuple[str, ...]:
    """Give the commands that make the patched wheels of a lock, in a folder `wheels`, for other installers."""
    return tuple(
        f"patchlock patch wheel {package.name} --version {package.original.version} --output wheels"
        for package in packages
        if package.original is not None
    )


_SEAL = "# content = "
"""Begins the line that holds the digest of all others."""


def parse(text: str, file: str) -> Lock:
    """Read a lock.

    Raises:
        LockFormatError: it is not a lock that patchlock wrote.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0] != "# /// patchlock" or "# ///" not in lines:
        raise _malformed(file, 1, "it has no patchlock block at its top")
    end = lines.index("# ///")
    try:
        head = tomllib.loads("\n".join(line[2:] for line in lines[1:end]))
    except tomllib.TOMLDecodeError as error:
        raise _malformed(file, 1, f"its patchlock block cannot be read: {error}") from error
    if head.get("format") != FORMAT:
        told = f"format {head['format']}" if "format" in head else "no format"
        raise _malformed(file, 1, f"it has {told}, and this patchlock reads format {FORMAT}")
    try:
        provenance = _provenance(head)
        originals = {canonicalize_name(name): _original(of) for name, of in head.get("patched", {}).items()}
    except KeyError as error:
        raise _malformed(file, 1, f'its patchlock block lacks the key "{error.args[0]}"') from error
    except (TypeError, AttributeError, InvalidVersion) as error:
        raise _malformed(file, 1, "its patchlock block has a value of the wrong kind") from error
    packages = []
    for number, line in enumerate(lines[end + 1 :], start=end + 2):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise _malformed(file, number, "a line must be one distribution with exactly one sha256")
        try:
            packages.append(_package(found, head.get("versions", {}), originals))
        except (InvalidVersion, InvalidWheelFilename) as error:
            raise _malformed(file, number, f"{found['name']} has no version: {error}") from error
        except InvalidTag as error:
            raise _malformed(file, number, f"{found['name']} has no wheel tags: {error}") from error
    if unlisted := sorted(originals.keys() - {package.name for package in packages}):
        raise _malformed(file, 1, f"it names what {', '.join(unlisted)} is patched from, and has no line for it")
    return Lock(
        provenance=provenance,
        packages=tuple(packages),
        is_intact=head.get("content") == _content(_without_seal(lines)),
    )


def require_sealed(lock: Lock, where: str, remedy: str) -> None:
    """Refuse to use a lock whose lines are not those of its seal, as if it were the one that patchlock wrote.

    Raises:
        LockFormatError: it was changed, or has no seal.
    """
    if not lock.is_intact:
        raise LockFormatError(
            "its lines were changed after it was made: they are not those of its seal", where=where, remedy=remedy
        )


def require_addresses(lock: Lock, where: str, *, local: bool) -> None:
    """Refuse a lock with an address that is not https, or that may hold a secret.

    Args:
        lock: as it was read, or is to be written.
        where: its file, for the message.
        local: whether addresses of this machine are allowed; see `model.addresses.objection`.

    Raises:
        LockFormatError: it has one; names all of them.
    """
    named = [(package.name, url) for package in lock.packages for url in (package.url, package.upstream.url) if url]
    wrong = {f"{name} @ {url}": why for name, url in named if (why := addresses.objection(url, local=local))}
    if wrong:
        count = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise LockFormatError(
            f"the address of {next(iter(wrong))}{count} is not allowed in a lock: {next(iter(wrong.values()))}",
            where=where,
            remedy="name an https address without secrets; what a server asks for belongs into ~/.netrc",
            evidence=[f"{line}: {why}" for line, why in wrong.items()] if count else (),
        )


def _without_seal(lines: Iterable[str]) -> list[str]:
    """Drop empty lines and the seal, which is the first line that looks like one: a table may have a `content` too."""
    filled = [line for line in lines if line]
    seal = next((line for line in filled if line.startswith(_SEAL)), "")
    if seal:
        filled.remove(seal)
    return filled


def _content(lines: Iterable[str]) -> str:
    """Digest the lines of a lock but the one that holds the digest, so that a change by hand is seen."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _provenance(head: Mapping[str, Any]) -> Provenance:
    return Provenance(
        app=head["app"],
        profile=head["profile"],
        platform=head["platform"],
        python=head["python"],
        commit=CommitId(head["commit"]),
        as_of=head["as-of"],
        newer={canonicalize_name(name): time for name, time in head.get("newer", {}).items()},
        uv=head["uv"],
        patches=tuple(head["patches"]),
        inputs={file: Sha256(digest) for file, digest in head["inputs"].items()},
        resolver_input=Sha256(head["resolver-input"]),
        not_covered=tuple(map(str, head.get("not-covered", ()))),
        build_constraints=Sha256(head["build-constraints"]) if "build-constraints" in head else "",
    )


@functools.cache
def tags(text: str) -> frozenset[Tag]:
    """Parse the tags of a wheel; most wheels have the same few.

    Raises:
        InvalidTag: they are none.
    """
    return parse_tag(text)


def _original(values: Mapping[str, Any]) -> Original:
    return Original(
        version=Version(values["version"]),
        url=values.get("url", ""),
        sha256=Sha256(values["sha256"]),
        patches=tuple(values["patches"]),
    )


def _package(
    found: re.Match[str], versions: Mapping[str, str], originals: Mapping[NormalizedName, Original]
) -> LockedPackage:
    url = found["url"] or ""
    name = canonicalize_name(found["name"])
    version = found["version"] or versions.get(name, "")
    if not version and _of_address(url) is None:
        raise InvalidVersion("neither its address nor [versions] names one")
    for part in (found["why"] or "").split(" · "):
        if part.startswith("wheel "):
            tags(part.removeprefix("wheel "))
    return LockedPackage(
        name=name,
        version=_of_address(url) or Version(version),
        url=url,
        sha256=Sha256(found["sha256"]),
        why=found["why"] or "",
        original=originals.get(name),
    )


def _of_address(url: str) -> Version | None:
    """Read the version from the name of a wheel; other addresses, such as an archive of a commit, need not name one."""
    filename = unquote(url.rpartition("/")[2])
    return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else None


def _malformed(file: str, line: int, what: str) -> LockFormatError:
    return LockFormatError(
        what, where=f"{file}:{line}", remedy="a lock is never written by hand: run `patchlock lock` for its app"
    )


def staleness_reasons(lock: Lock, *, commit: CommitId, python: str, inputs: Mapping[str, Sha256]) -> tuple[str, ...]:
    """Say every reason why a lock is out of date; empty when it is fresh.

    Args:
        lock: the lock as it stands.
        commit: the upstream commit that the catalogue names now.
        python: the Python that the profile names now.
        inputs: file → sha256 as they are now; an `upstream:` file that cannot be read here is left out.
    """
    p = lock.provenance
    reasons = [] if lock.is_intact else ["its lines were changed since it was written"]
    if p.commit != commit:
        reasons.append(f"upstream is at commit {commit[:12]}, the lock was made for {p.commit[:12]}")
    if p.python != python:
        reasons.append(f"the profile names Python {python}, the lock was made for {p.python}")
    for file in sorted(p.inputs.keys() | inputs.keys()):
        if file not in inputs:
            if not file.startswith("upstream:"):
                reasons.append(f"{file} is no longer used")
        elif file not in p.inputs:
            reasons.append(f"{file} was not used when the lock was made")
        elif p.inputs[file] != inputs[file]:
            reasons.append(f"{_named(file)} has changed since the lock was made")
    return tuple(reasons)


def _named(file: str) -> str:
    return f"upstream's {file.removeprefix('upstream:')}" if file.startswith("upstream:") else file
