"""What is different between two locks of one pair, and why: two locks in, changes with their causes out; pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from urllib.parse import unquote

from packaging.utils import NormalizedName

from patchlock.locks.reasons import with_files
from patchlock.model.lockfile import Lock, LockedPackage, Provenance


class Kind(enum.Enum):
    """What became of one distribution."""

    ADDED = "added"
    REMOVED = "removed"
    NEWER = "newer"
    OLDER = "older"
    PATCHED = "patched"
    """The same version as upstream has it, patched otherwise than before, or no longer."""
    OTHER_FILE = "other file"
    OTHER_BYTES = "other bytes"
    OTHER_ADDRESS = "other address"
    OTHER_REASON = "other reason"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One distribution that is not locked as it was; `old` is None where it is new, `new` where it is gone."""

    name: NormalizedName
    kind: Kind
    old: LockedPackage | None
    new: LockedPackage | None
    why: str
    """A clause: who asks for it, or what is not the same about its file."""

    @property
    def is_alarming(self) -> bool:
        """Whether a person must look: one name may not stand for two files."""
        return self.kind is Kind.OTHER_BYTES


@dataclass(frozen=True, kw_only=True)
class Difference:
    """All that is different between two locks."""

    causes: tuple[str, ...]
    """What the new lock was made from that the old one was not, one clause each."""
    changes: tuple[Change, ...]
    """Sorted by name."""

    def __bool__(self) -> bool:
        return bool(self.causes or self.changes)


def compare(old: Lock | None, new: Lock | None) -> Difference:
    """Compare two locks of one pair; None is a lock that is not there."""
    before, after = _by_name(old), _by_name(new)
    changes = [_change(before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
    return Difference(
        causes=_causes(old, new),
        changes=tuple(change for change in changes if change is not None),
    )


def _by_name(lock: Lock | None) -> dict[NormalizedName, LockedPackage]:
    if lock is None:
        return {}
    packages = with_files(lock.packages, lock.provenance.app, lock.provenance.profile)
    return {package.name: package for package in packages}


def _causes(old: Lock | None, new: Lock | None) -> tuple[str, ...]:
    if old is None or new is None:
        return () if old is new else ("there was no lock",) if old is None else ("the lock no longer exists",)
    was, now = old.provenance, new.provenance
    causes = [] if old.is_intact else ["the lines of the old lock were changed since it was written"]
    causes += [
        f"{what}: {before} → {after}"
        for what, before, after in (
            ("upstream's commit", was.commit[:12], now.commit[:12]),
            ("the cut-off", was.as_of or "none", now.as_of or "none"),
            ("packages with a later cut-off", _upgraded(was), _upgraded(now)),
            ("Python", was.python, now.python),
            ("uv", was.uv, now.uv),
        )
        if before != after
    ]
    if was.patches != now.patches:
        gone = [f"-{patch}" for patch in was.patches if patch not in now.patches]
        made = [f"+{patch}" for patch in now.patches if patch not in was.patches]
        causes.append(f"patches: {' '.join(gone + made) or 'another order'}")
    if files := _inputs(was, now):
        causes.append(f"changed: {', '.join(files)}")
    elif was.resolver_input != now.resolver_input and not causes:
        causes.append("uv is asked another question")
    return tuple(causes)


def _upgraded(provenance: Provenance) -> str:
    return ", ".join(f"{name} until {time}" for name, time in sorted(provenance.newer.items())) or "none"


def _inputs(was: Provenance, now: Provenance) -> list[str]:
    names = was.inputs.keys() | now.inputs.keys()
    changed = sorted(name for name in names if was.inputs.get(name) != now.inputs.get(name))
    return [
        f"upstream's {name.removeprefix('upstream:')}" if name.startswith("upstream:") else name for name in changed
    ]


def _change(old: LockedPackage | None, new: LockedPackage | None) -> Change | None:
    if old == new:
        return None
    kind, why = _judge(old, new)
    package = new or old
    assert package is not None  # noqa: S101 - one of them is there, or they were equal
    return Change(name=package.name, kind=kind, old=old, new=new, why=why)


def _judge(old: LockedPackage | None, new: LockedPackage | None) -> tuple[Kind, str]:
    if old is None and new is not None:
        return Kind.ADDED, asked(new)
    if new is None or old is None:
        return Kind.REMOVED, f"was: {asked(old)}" if old and asked(old) else ""
    if old.version != new.version and old.upstream.version == new.upstream.version:
        if old.upstream.sha256 == new.upstream.sha256:
            return Kind.PATCHED, f"{_patched(old)} → {_patched(new)}"
        old, new = old.upstream, new.upstream  # whatever was patched, another original is what must be seen
    if old.version != new.version:
        return (Kind.NEWER if new.version > old.version else Kind.OLDER), asked(new)
    if old.sha256 != new.sha256:
        before, after = _file(old), _file(new)
        if before and before == after:
            return Kind.OTHER_BYTES, f"{after}: sha256 {old.sha256[:12]}… → {new.sha256[:12]}…"
        return Kind.OTHER_FILE, f"{before or 'unknown'} → {after or 'unknown'}"
    if old.url != new.url:
        return Kind.OTHER_ADDRESS, f"{old.url or 'the default index'} → {new.url or 'the default index'}"
    return Kind.OTHER_REASON, f"{asked(old) or 'nobody'} → {asked(new) or 'nobody'}"


def _patched(package: LockedPackage) -> str:
    of = package.original
    return f"patched by {', '.join(of.patches)}" if of else "as upstream made it"


def asked(package: LockedPackage) -> str:
    """Say who asked for a distribution, without the file that was chosen."""
    return package.why.removesuffix(_chosen(package)).removesuffix(" · ")


def _chosen(package: LockedPackage) -> str:
    last = package.why.rpartition(" · ")[2]
    return last if last == "sdist" or last.startswith("wheel ") else ""


def _file(package: LockedPackage) -> str:
    """Name the file as far as a lock does: its own name at an address, else its tags."""
    return unquote(package.url.rpartition("/")[2]) or _chosen(package)
