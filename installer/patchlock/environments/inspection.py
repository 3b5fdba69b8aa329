"""Compare the files of an environment with what its install laid down: by size in no time, or by every byte."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import NormalizedName

from patchlock.core import uv
from patchlock.environments import _record_digests, damage, installed
from patchlock.environments.damage import DamageFinding, Evidence
from patchlock.environments.installed import Distribution, Row
from patchlock.environments.ledger import InstalledFile, Ledger
from patchlock.model import environment_layout
from patchlock.model.identities import Sha256

_PEEK = 4096
"""Bytes that are looked at to tell text from data, and zeros at the end."""
_BATCH = 64
"""Files that a thread takes at once: most are small."""

_STRANGE = (b'"', b":", b"\r", b"\n/", b"\n\\", b"_patchlock")
"""In a RECORD: a path that may have several lines, or begins at a root, or is one of our files."""

Tell = Callable[[int, int], None]
"""Told bytes hashed so far and bytes in all."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """All that the RECORDs of an environment say."""

    packages: Path
    """Its site-packages."""
    rows: Mapping[str, tuple[Distribution, list[Row]]]
    """By the name of the `.dist-info` folder."""
    records: Mapping[str, Sha256]
    """sha256 of each RECORD, by the same names."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A file that is not as its RECORD says."""

    distribution: Distribution
    path: str
    wanted: str
    """`<algorithm>=<digest>` or ""."""
    wanted_size: int | None
    size: int | None
    """Bytes; None where the file is missing."""
    sha256: Sha256 | None = None
    """Only where the bytes were read."""

    @property
    def expected(self) -> str:
        """Say what RECORD promises."""
        if self.sha256 is not None and self.size == self.wanted_size:
            return self.wanted[:24] + "…"
        return f"{self.wanted_size} bytes" if self.wanted_size is not None else "a file"

    @property
    def found(self) -> str:
        """Say what is there."""
        if self.size is None:
            return "nothing"
        if self.sha256 is not None and self.size == self.wanted_size:
            return f"sha256={_record_digests.in_record(self.sha256)[:17]}…"
        return f"{self.size} bytes"


def read(environment: Path) -> Contents:
    """Read the RECORD of every distribution."""
    packages = installed.site_packages(environment)
    rows, records = {}, {}
    for distribution in installed.distributions(packages):
        name = os.path.basename(distribution.info)  # noqa: PTH119 - hundreds of them in half a second
        digest, own = installed.record(distribution)
        rows[name], records[name] = (distribution, own), Sha256(digest)
    return Contents(packages=packages, rows=rows, records=records)


def outside(environment: Path) -> tuple[tuple[Distribution, str], ...]:
    """List what RECORDs name outside their environment, or of what no wheel may write; reads no other rows."""
    packages, root, found = installed.site_packages(environment), os.path.realpath(environment), []
    base = os.path.realpath(packages)
    for distribution in installed.distributions(packages):
        for path, _, _ in installed.record(distribution, _may_leave)[1]:
            place = os.path.normpath(os.path.join(base, path))  # noqa: PTH118
            inside = os.path.relpath(place, root).replace(os.sep, "/")
            if inside.partition("/")[0] == ".." or inside[1:2] == ":" or environment_layout.is_reserved(inside):
                found.append((distribution, path))
    return tuple(found)


def _may_leave(record: bytes) -> bytes:
    """Give the lines of a RECORD that may name something outside site-packages, or of ours; all of a strange one."""
    if record[:1] in {b"/", b"\\"} or any(one in record for one in _STRANGE):
        return record
    return b"\n".join(line for line in record.splitlines() if b".." in line) if b".." in record else b""


def stat_files(contents: Contents) -> Mapping[str, os.stat_result]:
    """Look once at each file that a RECORD names, by its path there; what is missing is left out."""
    paths = (path for _, rows in contents.rows.values() for path, _, _ in rows)
    found: dict[str, os.stat_result] = {}
    if os.stat not in os.supports_dir_fd:
        base = f"{contents.packages}{os.sep}"
        _look(paths, lambda path: os.stat(base + path), found)  # noqa: PTH116 - one of thousands
    elif contents.packages.is_dir():
        folder = os.open(contents.packages, os.O_RDONLY)  # what is above it is walked through once, and not each time
        try:
            _look(paths, functools.partial(os.stat, dir_fd=folder), found)
        finally:
            os.close(folder)
    return found


def _look(paths: Iterable[str], stat: Callable[[str], os.stat_result], found: dict[str, os.stat_result]) -> None:
    for path in paths:
        try:
            found[path] = stat(path)
        except OSError:
            continue


def find_size_deviations(contents: Contents, seen: Mapping[str, os.stat_result] | None = None) -> list[Deviation]:
    """List the files that are missing or have another size than their RECORD says; none is read.

    Args:
        contents: what the RECORDs say.
        seen: what `look` has found; None looks now.
    """
    found, sep = [], os.sep
    seen = stat_files(contents) if seen is None else seen
    for distribution, rows in contents.rows.values():
        for path, digest, size in rows:
            status = seen.get(path)
            if status is None or (size and str(status.st_size) != size):
                is_size = size.isascii() and size.isdigit()
                found.append(
                    Deviation(
                        distribution=distribution,
                        path=path.replace(sep, "/"),
                        wanted=digest,
                        wanted_size=int(size) if is_size else None,
                        size=None if status is None else status.st_size,
                    )
                )
    return _disowned(contents, found)


def without_hash(contents: Contents) -> Iterator[str]:
    """List the files that are there and of which RECORD has no hash."""
    for _, rows in contents.rows.values():
        for path, digest, _ in rows:
            if not digest and os.path.isfile(f"{contents.packages}{os.sep}{path}"):  # noqa: PTH113 - one of thousands
                yield path


def completed(contents: Contents, book: Ledger | None) -> Contents:
    """Give the rows without a hash the one that the ledger has, of the file as it was laid down."""
    known = {path: laid.sha256 for path, laid in book.files.items() if laid.sha256} if book is not None else {}
    rows = {
        name: (
            own,
            [(p, f"sha256={known[p]}" if not digest and p in known else digest, size) for p, digest, size in listed],
        )
        for name, (own, listed) in contents.rows.items()
    }
    return dataclasses.replace(contents, rows=rows)


def find_content_deviations(contents: Contents, tell: Tell) -> list[Deviation]:
    """List the files whose bytes are not those of their RECORD, the missing ones included; reads every file once.

    Args:
        contents: what the RECORDs say.
        tell: called now and then, from several threads in turn.
    """
    wrong = find_size_deviations(contents)
    missing = {deviation.path for deviation in wrong if deviation.size is None}
    todo = [
        (distribution, path, digest, int(size) if size.isascii() and size.isdigit() else 0)
        for distribution, rows in contents.rows.values()
        for path, digest, size in rows
        if digest and path not in missing
    ]
    todo.sort(key=lambda row: -row[3])  # the large ones first, so that no thread ends long after the others
    total, guard, done = sum(row[3] for row in todo), threading.Lock(), 0

    def batch(rows: list[tuple[Distribution, str, str, int]]) -> list[Deviation]:
        nonlocal done
        found = []
        for distribution, path, digest, size in rows:
            deviation = _read(contents.packages, distribution, path, digest, size)
            if deviation is not None:
                found.append(deviation)
        with guard:
            done += sum(row[3] for row in rows)
            tell(done, total)
        return found

    large = [todo[i : i + 1] for i in range(min(256, len(todo)))]
    small = [todo[i : i + _BATCH] for i in range(256, len(todo), _BATCH)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 1)) as pool:
        read_wrong = [deviation for found in pool.map(batch, [*large, *small]) for deviation in found]
    # Where the bytes are the promised ones, a wrong size in RECORD is RECORD's mistake.
    unread = [deviation for deviation in wrong if deviation.size is None or not deviation.wanted]
    return _disowned(contents, [*read_wrong, *unread])


def _read(packages: Path, distribution: Distribution, path: str, digest: str, size: int) -> Deviation | None:
    try:
        same, found, count = _record_digests.compare(f"{packages}{os.sep}{path}", digest)
    except OSError:
        return Deviation(distribution=distribution, path=path, wanted=digest, wanted_size=size, size=None)
    if same:
        return None
    return Deviation(
        distribution=distribution, path=path, wanted=digest, wanted_size=size, size=count, sha256=Sha256(found)
    )


def _disowned(contents: Contents, found: list[Deviation]) -> list[Deviation]:
    """Leave out what is right by the RECORD of another distribution that has the same file: the last one wrote it."""
    paths = {deviation.path for deviation in found}
    if not paths:
        return []
    owners: dict[str, int] = {}
    for _, rows in contents.rows.values():
        for path, _, _ in rows:
            if path in paths:
                owners[path] = owners.get(path, 0) + 1
    wrong: dict[str, list[Deviation]] = {}
    for deviation in found:
        wrong.setdefault(deviation.path, []).append(deviation)
    return [deviations[0] for path, deviations in wrong.items() if len(deviations) >= owners[path]]


# --- what they mean ---------------------------------------------------------------------------------------------------


def is_as_installed(deviation: Deviation, book: Ledger | None) -> bool:
    """Say whether a file is as the install laid it down, and only its RECORD is wrong, as far as the ledger knows."""
    laid: InstalledFile | None = book.files.get(deviation.path) if book is not None else None
    if laid is None or laid.size != deviation.size:
        return False
    return deviation.sha256 is None or deviation.sha256 == laid.sha256


def findings(contents: Contents, deviations: Collection[Deviation], laid: float) -> tuple[DamageFinding, ...]:
    """Say what is wrong with files, and what has probably done it, in the order of their paths."""
    seen = [(d, _evidence(contents.packages, d, laid)) for d in sorted(deviations, key=lambda d: d.path)]
    all_taken = all(evidence.looks_taken for _, evidence in seen)
    return tuple(
        DamageFinding(
            distribution=d.distribution.name,
            path=d.path,
            expected=d.expected,
            found=d.found,
            cause=damage.cause(evidence, all_taken=all_taken, is_windows=os.name == "nt", shared=_shared(d)),
        )
        for d, evidence in seen
    )


def _shared(deviation: Deviation) -> str:
    return (
        "the file is shared with uv's cache or with other environments, where it changed too: "
        f"`{uv.cache_clean_command(deviation.distribution.name)}` keeps it from coming back"
    )


def _evidence(packages: Path, deviation: Deviation, laid: float) -> Evidence:
    wanted, size = deviation.wanted_size, deviation.size
    path = packages / deviation.path
    with contextlib.suppress(OSError), path.open("rb") as file:
        status = os.fstat(file.fileno())
        head = file.read(_PEEK)
        file.seek(max(0, status.st_size - _PEEK))
        tail = file.read(_PEEK)
        return Evidence(
            path=deviation.path,
            wanted=wanted,
            size=status.st_size,
            modified=status.st_mtime,
            laid=laid,
            links=status.st_nlink,
            is_text=b"\0" not in head,
            ends_in_zeros=len(tail) >= 16 and not tail[-512:].strip(b"\0"),
        )
    return Evidence(path=deviation.path, wanted=wanted, size=size, laid=laid)


def replaced(contents: Contents, book: Ledger | None) -> Iterator[DamageFinding]:
    """List the distributions whose RECORD is not the one that the install wrote: somebody else installed them."""
    known = book.records if book is not None else {}
    for name, (distribution, _) in contents.rows.items():
        if name in known and known[name] != contents.records[name]:
            info = Path(distribution.info)
            there = (info / "RECORD").exists()
            when = damage.moment(((info / "RECORD") if there else info).stat().st_mtime)
            who = installed.installer(info) or "an unknown tool"
            yield DamageFinding(
                distribution=distribution.name,
                path=f"{name}/RECORD",
                expected="the RECORD of the install",
                found="another one" if there else "nothing",
                cause=f"probably {who} installed it again, or somebody edited it, on {when}"
                if there
                else f"changed {when}",
            )


def unowned_files(contents: Contents) -> tuple[str, ...]:
    """List the files in site-packages that belong to no distribution, without bytecode and what is patchlock's or uv's.

    They may be the user's, or an app wrote them at run time: they are no damage.
    """
    owned = {path for _, rows in contents.rows.values() for path, _, _ in rows}
    own = ("_virtualenv.", "_patchlock_")
    found = [
        path
        for path in _below(contents.packages, contents.rows)
        if path not in owned and not path.endswith(".pyc") and not path.startswith(own)
    ]
    return tuple(sorted(found))


def _below(packages: Path, without: Collection[str]) -> list[str]:
    """List the files below a folder but for some of its own folders; `os.walk` takes three times as long."""
    found, waiting = [], [(str(packages), "")]
    while waiting:
        folder, inside = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as listed:
            for entry in listed:
                name = entry.name
                if not entry.is_dir():
                    found.append(inside + name)
                elif name != "__pycache__" and (inside or name not in without) and not entry.is_symlink():
                    waiting.append((f"{folder}{os.sep}{name}", f"{inside}{name}/"))
    return found


def names(found: Collection[DamageFinding]) -> frozenset[NormalizedName]:
    """Name the distributions that findings are about."""
    return frozenset(finding.distribution for finding in found if finding.distribution is not None)
