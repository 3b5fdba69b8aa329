"""Read a wheel, replace files in it and pack it again, to the same bytes on any machine; runs nothing of it."""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from patchlock.model.byte_sizes import size_text
from patchlock.model.errors import HashMismatchError, WheelError
from patchlock.model.identities import Sha256

_FORMAT = "1"
"""Raised when `repack` writes other bytes for the same input, so that no name ever stands for two files."""
_LARGEST = 2 * 1024**3
"""Bytes of all files of a wheel together: they are held in memory."""
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""Of the RECORD that upstream wrote (PEP 427): they cannot hold for another one."""
_HASHES = {"sha256", "sha384", "sha512"}
_OURS = "patchlock"


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file of a wheel."""

    path: PurePosixPath
    data: bytes
    is_executable: bool


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel whose files are all listed in its RECORD with the hash that they have."""

    name: NormalizedName
    version: Version
    filename: str
    sha256: Sha256
    info: str
    """Name of the `.dist-info` folder."""
    members: tuple[Member, ...]
    """In the order of the archive; folders are left out, as installers do."""

    def contents(self) -> dict[PurePosixPath, bytes]:
        """Give the files that may be patched: all but the `.dist-info` folder."""
        return {m.path: m.data for m in self.members if m.path.parts[0] != self.info}


@dataclass(frozen=True, kw_only=True)
class PackedWheel:
    """A wheel of ours."""

    filename: str
    version: Version
    data: bytes
    sha256: Sha256
    notices: tuple[str, ...]
    """What was left out, one clause each."""


# --- reading ----------------------------------------------------------------------------------------------------------


def read(path: Path, sha256: str | None) -> Wheel:
    """Read a wheel whole, and look at everything that an installer would believe.

    Args:
        path: the file, under the name that the index gives it.
        sha256: what it must be; None takes the file as it is, for one that the user made himself.

    Raises:
        HashMismatchError: it is another file.
        WheelError: it is no wheel, or one that no installer should be given; names every reason.

    Source: PEP 427; the binary distribution format of PyPA's specifications.
    """
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if sha256 is not None and found != sha256:
        raise HashMismatchError(
            f"{path.name} is not the file that the catalogue names",
            where=f"sha256 {found[:12]}…, wanted {sha256[:12]}…",
            remedy="remove it and download it again",
        )
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise WheelError(
            f"{path.name} is not the name of a wheel", remedy="give the file the name that the index has for it"
        ) from error
    members = _members(path.name, data)
    info = _info(path.name, name, version, members)
    wheel = Wheel(
        name=name, version=version, filename=path.name, sha256=Sha256(found), info=info, members=tuple(members)
    )
    _require(path.name, [*_metadata_problems(wheel), *_record_problems(wheel)])
    return wheel


def _require(filename: str, problems: list[str]) -> None:
    if problems:
        count = f"{len(problems)} reasons" if len(problems) > 1 else "one reason"
        raise WheelError(
            f"{filename} cannot be used, for {count}",
            remedy="download the file from the index again; if it happens again, report it to its authors",
            evidence=problems[:20],
        )


def _members(filename: str, data: bytes) -> list[Member]:
    problems: list[str] = []
    members: list[Member] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            problems += _entry_problems(entries)
            _require(filename, problems)
            for entry in entries:
                if not entry.is_dir():
                    path = PurePosixPath(entry.filename)
                    members.append(Member(path=path, data=archive.read(entry), is_executable=_is_executable(entry)))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise WheelError(
            f"{filename} is not a zip file that can be read: {error}", remedy="download the file from the index again"
        ) from error
    return members


def _entry_problems(entries: list[zipfile.ZipInfo]) -> list[str]:
    problems: list[str] = []
    seen: set[str] = set()
    for entry in entries:
        raw = entry.orig_filename
        name = raw.rstrip("/")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name.startswith("/") or re.match(r"[A-Za-z]:", name):
            problems.append(f"{raw!r} is an absolute path")
        elif ".." in re.split(r"[/\\]", name):
            problems.append(f"{raw!r} leaves the tree")
        elif "\\" in raw or "\0" in raw or str(PurePosixPath(name)) != name:
            problems.append(f"{raw!r} is not a plain path")
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            problems.append(f"{raw!r} is {'a symbolic link' if kind == stat.S_IFLNK else 'not a regular file'}")
        if entry.flag_bits & 0x1:
            problems.append(f"{raw!r} is encrypted")
        if name in seen:
            problems.append(f"{raw!r} is there twice")
        seen.add(name)
    files = {entry.orig_filename for entry in entries if not entry.is_dir()}
    inside = {str(parent) for file in files for parent in PurePosixPath(file).parents}
    problems += [f"{name!r} is a file and a folder" for name in sorted(files & inside)]
    if sum(entry.file_size for entry in entries) > _LARGEST:
        problems.append(f"its files are larger than {size_text(_LARGEST)} together")
    return problems


def _is_executable(entry: zipfile.ZipInfo) -> bool:
    return bool(entry.external_attr >> 16 & 0o111)


def _info(filename: str, name: NormalizedName, version: Version, members: list[Member]) -> str:
    folders = {m.path.parts[0] for m in members if len(m.path.parts) > 1 and m.path.parts[0].endswith(".dist-info")}
    if len(folders) != 1:
        _require(filename, [f"it has {len(folders)} .dist-info folders, and must have one"])
    (info,) = folders
    own, _, own_version = info.removesuffix(".dist-info").partition("-")
    if canonicalize_name(own) != name or not _is(own_version, version):
        _require(filename, [f"its folder {info} is of another distribution or version"])
    files = {str(m.path) for m in members}
    _require(
        filename, [f"{info}/{n} is missing" for n in ("METADATA", "WHEEL", "RECORD") if f"{info}/{n}" not in files]
    )
    return info


def _is(text: str, version: Version) -> bool:
    try:
        return Version(text.replace("_", "+", 1) if "+" not in text and version.local else text) == version
    except InvalidVersion:
        return False


def _metadata_problems(wheel: Wheel) -> list[str]:
    headers = _headers(_file(wheel, "METADATA"))
    names = re.findall(rb"(?mi)^Name:[ \t]*(.*?)[ \t\r]*$", headers)
    versions = re.findall(rb"(?mi)^Version:[ \t]*(.*?)[ \t\r]*$", headers)
    problems = []
    if [canonicalize_name(name.decode("utf-8", "replace")) for name in names] != [wheel.name]:
        problems.append(f"the METADATA do not say that it is {wheel.name}")
    if len(versions) != 1 or not _is(versions[0].decode("utf-8", "replace"), wheel.version):
        problems.append(f"the METADATA do not say that it is version {wheel.version}")
    if not re.search(rb"(?mi)^Wheel-Version:[ \t]*1\.", _file(wheel, "WHEEL")):
        problems.append("it is not of wheel version 1")
    return problems


def _headers(metadata: bytes) -> bytes:
    """Give the part before the description."""
    end = re.search(rb"\r?\n\r?\n", metadata)
    return metadata[: end.start()] if end else metadata


def _file(wheel: Wheel, name: str) -> bytes:
    path = PurePosixPath(wheel.info) / name
    return next(member.data for member in wheel.members if member.path == path)


def _record_problems(wheel: Wheel) -> list[str]:
    """Compare RECORD with the files, in both directions."""
    try:
        rows = list(csv.reader(io.StringIO(_file(wheel, "RECORD").decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        return [f"its RECORD cannot be read: {error}"]
    problems = [f"RECORD has a row that is not one: {','.join(row)!r}" for row in rows if row and len(row) != 3]
    listed: dict[str, tuple[str, str]] = {}
    for row in rows:
        if len(row) == 3:
            if row[0] in listed:
                problems.append(f"RECORD lists {row[0]} twice")
            listed[row[0]] = (row[1], row[2])
    unlisted = {f"{wheel.info}/{name}" for name in ("RECORD", *_SIGNATURES)}
    for member in wheel.members:
        path = str(member.path)
        if path not in unlisted:
            problems += _row_problems(path, member.data, listed.get(path))
    there = {str(member.path) for member in wheel.members}
    problems += [f"RECORD lists {path}, which is not there" for path in listed if path not in there]
    return problems


def _row_problems(path: str, data: bytes, row: tuple[str, str] | None) -> list[str]:
    if row is None:
        return [f"RECORD does not list {path}"]
    algorithm, _, digest = row[0].partition("=")
    if algorithm not in _HASHES:
        return [f"RECORD gives no sha256 of {path}"]
    problems = [f"RECORD has another hash of {path}"] if digest.rstrip("=") != _digest(data, algorithm) else []
    if row[1] and row[1] != str(len(data)):
        problems.append(f"RECORD has another size of {path}")
    return problems


def _digest(data: bytes, algorithm: str = "sha256") -> str:
    """Hash as RECORD writes it: urlsafe base64 without padding (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode("ascii")


# --- packing ----------------------------------------------------------------------------------------------------------


def repack(wheel: Wheel, changes: Mapping[PurePosixPath, bytes]) -> PackedWheel:
    """Pack a wheel again with other bytes for some of its files, and a local version that says so.

    All that is not changed stays byte for byte, and in its order: licences, SBOMs (PEP 770), `direct_url.json`
    (PEP 610), entry points. Files are stored and not compressed, so that the result depends on no version of zlib; the
    time is 1980-01-01, and of the permissions only "executable" is kept.

    Args:
        wheel: as `read` gave it.
        changes: new bytes by path; a path that is not in `Wheel.contents` is a new file.

    Raises:
        WheelError: it is a wheel of ours already.
    """
    version = _local_version(wheel, changes)
    before = wheel.info.removesuffix(".dist-info")
    after = f"{before.partition('-')[0]}-{version}"
    renamed = {f"{before}{kind}": f"{after}{kind}" for kind in (".dist-info", ".data")}
    notices: list[str] = []
    members: list[Member] = []
    for member in wheel.members:
        first, *rest = member.path.parts
        if first == wheel.info and rest[0] in {"RECORD", *_SIGNATURES}:
            if rest[0] in _SIGNATURES:
                notices.append(f"{member.path} is left out: it signs the files as they were")
            continue
        if any(_is_compiled_from(member.path, path) for path in changes):
            notices.append(f"{member.path} is left out: it was compiled from the file as it was")
            continue
        data = changes.get(member.path, member.data)
        if (first, rest) == (wheel.info, ["METADATA"]):
            data = _with_version(data, version)
        members.append(dataclasses.replace(member, path=PurePosixPath(renamed.get(first, first), *rest), data=data))
    there = {member.path for member in wheel.members}
    members += [
        Member(path=path, data=changes[path], is_executable=False) for path in sorted(changes) if path not in there
    ]
    members.append(_record(PurePosixPath(renamed[wheel.info]) / "RECORD", members))
    packed = _zip(members)
    name, _, tags = wheel.filename.split("-", 2)
    return PackedWheel(
        filename=f"{name}-{version}-{tags}",
        version=version,
        data=packed,
        sha256=Sha256(hashlib.sha256(packed).hexdigest()),
        notices=tuple(notices),
    )


def _local_version(wheel: Wheel, changes: Mapping[PurePosixPath, bytes]) -> Version:
    """Name the result after what it is made of, so that equal names are equal files."""
    if wheel.version.local and _OURS in wheel.version.local.split("."):
        raise WheelError(f"{wheel.filename} was patched already", remedy="download the file from the index")
    parts = [_FORMAT, wheel.sha256]
    parts += [f"{path} {hashlib.sha256(changes[path]).hexdigest()}" for path in sorted(changes)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    # Eight decimal digits would be a number, and lose their leading zeros (PEP 440).
    eight = next(digest[i : i + 8] for i in range(57) if not digest[i : i + 8].isdigit())
    before = f"{wheel.version}." if wheel.version.local else f"{wheel.version}+"
    return Version(f"{before}{_OURS}.{eight}")


def _is_compiled_from(path: PurePosixPath, source: PurePosixPath) -> bool:
    if path.suffix != ".pyc" or source.suffix != ".py":
        return False
    folder = path.parent.parent if path.parent.name == "__pycache__" else path.parent
    return folder == source.parent and path.name.split(".")[0] == source.stem


def _with_version(metadata: bytes, version: Version) -> bytes:
    return re.sub(rb"(?mi)^(Version:[ \t]*)[^\r\n]*", rb"\g<1>" + str(version).encode(), metadata, count=1)


def _record(path: PurePosixPath, members: list[Member]) -> Member:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([str(m.path), f"sha256={_digest(m.data)}", len(m.data)] for m in members)
    writer.writerow([str(path), "", ""])
    return Member(path=path, data=text.getvalue().encode(), is_executable=False)


def _zip(members: list[Member]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for member in members:
            entry = zipfile.ZipInfo(str(member.path), date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # otherwise the system on which it is packed
            entry.external_attr = (stat.S_IFREG | (0o755 if member.is_executable else 0o644)) << 16
            archive.writestr(entry, member.data)
    return buffer.getvalue()
