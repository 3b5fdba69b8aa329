"""Try the locks of a proposed app in a scratch catalogue, and mend what stops them; the user's is not touched."""

from __future__ import annotations

import dataclasses
import datetime
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.catalogue.authoring import drafts
from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.proposals import document
from patchlock.catalogue.proposals.findings import Proposal, ProposedPatch
from patchlock.catalogue.reader import Catalogue
from patchlock.core.atomic_files import atomic_write
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.conflicts.explanation import Explanation, Tried
from patchlock.locks.lock_request import Request
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model.app import SharedSet
from patchlock.model.errors import MetadataMissingError, PatchlockError, PolicyError, UnsatisfiableError
from patchlock.model.fits import Platform
from patchlock.model.profile import Profile

_ROUNDS = 24
_TRITON = re.compile(r"triton \S+ \([^)]*\) does not fit torch \S+\+cpu ")
_NO_TRITON = """\
# A library asks for it on every Linux; torch's build for the processor has no use for it.
[[exclude]]
name = "triton"
profiles = ["cpu"]
why = "it compiles for cards of NVIDIA's and AMD's alone, and fits one version of torch"
source = "https://github.com/triton-lang/triton#compatibility"
"""


@dataclass(frozen=True, kw_only=True)
class LockSettings:
    """Where and for what locks are tried."""

    catalogue: Catalogue
    """A scratch one, which has profiles and shared sets."""
    cache: Path
    profile: Profile
    platform: Platform
    date: str
    """Of the commit: RFC 3339."""
    source: str | None
    solve: bool
    """Write the smallest edits that resolve a conflict into the proposal."""
    seconds: float
    """For each explanation."""
    sets: Mapping[str, SharedSet]


@dataclass(frozen=True, kw_only=True)
class LockResult:
    """What became of the lock of one pair."""

    proposal: Proposal
    """With what was written into it."""
    pair: str
    packages: int
    """0 where there is no lock."""
    file: str
    """Of the lock, from the catalogue's root; "" where there is none."""
    edits: tuple[str, ...]
    """What was added to the proposal, a clause each."""
    error: PatchlockError | None = None
    stuck: tuple[Explanation, ResolutionInputs] | None = None


def create_scratch_catalogue(catalogue: Catalogue, folder: Path) -> Catalogue:
    """Make a catalogue without apps, with the profiles and patches of another one."""
    for part in ("profiles", "patches/shared", "patches/distributions"):
        if (catalogue.root / part).is_dir():
            shutil.copytree(catalogue.root / part, folder / part)
    (folder / "patches").mkdir(exist_ok=True)
    return Catalogue(root=folder, is_trusted=catalogue.is_trusted)


def write(proposal: Proposal, root: Path) -> Path:
    """Write a proposal into a catalogue, over the one that is there."""
    path = root / "patches" / proposal.name / "app.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, document.render(proposal))
    return path


def lock_proposal(proposal: Proposal, trying: LockSettings, tell: Callable[[str], None] = lambda _: None) -> LockResult:
    """Lock a pair; what an sdist says of itself is added, and with `solve` what resolves a conflict."""
    edits: list[str] = []
    cut_off: relock.CutOff = relock.Kept()
    later = list(_later(trying.date)) if trying.solve else []
    pair = f"{proposal.name} × {trying.profile.name} × {trying.platform.name}"
    for _ in range(_ROUNDS):
        request = _request(proposal, trying)
        tell(f"resolving {pair}")
        try:
            lock = relock.resolve(request, cut_off)
        except MetadataMissingError as error:
            tables = "\n".join(error.evidence)
            proposal = dataclasses.replace(
                proposal, tables=(*proposal.tables, tables), remarks=_doubts(proposal, tables)
            )
            edits += [f"[[metadata]] of {sdist}" for sdist in error.sdists]
        except UnsatisfiableError as error:
            order, raw = relock.collect_inputs(request, cut_off)
            found = explanation.explain(order, raw, seconds=trying.seconds, tell=tell) if trying.seconds else None
            mended = _mended(proposal, found, trying, may_drop=not later) if found and trying.solve else None
            if mended is not None:
                proposal, added = mended
                edits += added
            elif later:
                cut_off = relock.Until(time=later.pop(0))
            else:
                return _failed(proposal, pair, edits, error, (found, order) if found is not None else None)
        except PolicyError as error:
            if trying.solve and _TRITON.match(error.what) and _NO_TRITON not in proposal.tables:
                proposal = dataclasses.replace(proposal, tables=(*proposal.tables, _NO_TRITON))
                edits.append("[[exclude]] of triton")
            elif later:
                cut_off = relock.Until(time=later.pop(0))
            else:
                return _failed(proposal, pair, edits, error)
        except PatchlockError as error:
            return _failed(proposal, pair, edits, error)
        else:
            path, _ = relock.write(request, lock)
            if isinstance(cut_off, relock.Until):
                edits.append(f"the lock takes files until {cut_off.time[:10]}: those of the commit's day do not fit")
            return LockResult(
                proposal=proposal,
                pair=pair,
                packages=len(lock.packages),
                file=path.relative_to(trying.catalogue.root).as_posix(),
                edits=tuple(edits),
            )
    return _failed(proposal, pair, edits, UnsatisfiableError(f"{_ROUNDS} rounds of edits were not enough"))


def _later(date: str) -> Iterator[str]:
    """Give cut-offs after a commit's date, nearer ones first: what its authors had in mind is as near as can be."""
    day, now = datetime.datetime.fromisoformat(date), datetime.datetime.now(datetime.UTC)
    for months in (6, 12, 18, 24, 36):
        if (later := day + datetime.timedelta(days=30 * months)) < now:
            yield later.strftime("%Y-%m-%dT%H:%M:%SZ")
    yield relock.now()


def _failed(
    proposal: Proposal,
    pair: str,
    edits: list[str],
    error: PatchlockError,
    stuck: tuple[Explanation, ResolutionInputs] | None = None,
) -> LockResult:
    return LockResult(proposal=proposal, pair=pair, packages=0, file="", edits=tuple(edits), error=error, stuck=stuck)


def _request(proposal: Proposal, trying: LockSettings) -> Request:
    write(proposal, trying.catalogue.root)
    return Request(
        app=trying.catalogue.app(proposal.name),
        profile=trying.profile,
        platform=trying.platform,
        catalogue=trying.catalogue,
        home=trying.catalogue.root / "home",
        cache=trying.cache,
        source=trying.source,
    )


def _doubts(proposal: Proposal, tables: str) -> tuple[str, ...]:
    """Remind of what none of an sdist's files says."""
    lines = [line for line in tables.splitlines() if "TODO" in line]
    more = (f"{len(lines)} [[metadata]] tables below have a TODO",) if lines else ()
    return tuple(dict.fromkeys((*proposal.remarks, *more)))


# --- writing edits into the proposal ----------------------------------------------------------------------------------


def _mended(
    proposal: Proposal, found: Explanation, trying: LockSettings, *, may_drop: bool
) -> tuple[Proposal, list[str]] | None:
    """Write the smallest edits that were found; None where there is none that a patch can do.

    An app that goes without what it requires is the last resort: files of a later day come before.
    """
    known = {name for table in proposal.tables for name in _built(table)}
    builds = [(name, version) for name, version in found.builds if name not in known]
    if builds:
        listed = ", ".join(f"{name} {version}" for name, version in builds)
        why, source = "the index has no wheel of these that fits", "PyPI: the file list of each"
        table = document.build_table(dict(builds), why=why, source=source)
        return dataclasses.replace(proposal, tables=(*proposal.tables, table)), [f"[[build]] of {listed}"]
    fitting = (one for one in found.tried if not one.remedy.by_hand and (may_drop or not _drops(one)))
    chosen = next(fitting, None)
    return _with(proposal, chosen, trying) if chosen is not None else None


def _drops(tried: Tried) -> bool:
    return any(change.member is not None and not change.after for change in tried.remedy.changes)


def _built(table: str) -> list[str]:
    return [name for one in tomllib.loads(table).get("build", []) for name in one["names"]]


def _with(proposal: Proposal, chosen: Tried, trying: LockSettings) -> tuple[Proposal, list[str]]:
    """Add the patches of a set of edits; one that replaces another by its id stands in its place."""
    own = {section.written.patch.id: section for section in proposal.sections}
    theirs = {patch.id: name for name, one in trying.sets.items() for patch in one.patches}
    taken = {one.name: one for one in proposal.sets}
    added = []
    for written in chosen.remedy.written:
        patch = written.patch
        if patch.id in theirs and theirs[patch.id] in taken:
            name = theirs[patch.id]
            taken[name] = dataclasses.replace(taken[name], without=(*taken[name].without, patch.id))
        own[patch.id] = _section(proposal, written)
        added.append(f"patch {patch.id}: {patch.why}")
    changes = {change.member.requester.place: change for change in chosen.remedy.changes if change.member is not None}
    listed = [f"{c.member.requirement} → {c.after or '(dropped)'}" for c in changes.values() if c.member is not None]
    remark = f"edits that were tried with uv: {'; '.join(listed)}; look whether the app works with them"
    return (
        dataclasses.replace(
            proposal,
            sections=tuple(own.values()),
            sets=tuple(taken.values()),
            remarks=tuple(dict.fromkeys((*proposal.remarks, remark))),
        ),
        added,
    )


def _section(proposal: Proposal, written: Written) -> ProposedPatch:
    patch = written.patch
    path = patch.paths[0] if patch.paths else ""
    source = proposal.link(PurePosixPath(path)) if patch.source == drafts.SOURCE else patch.source
    why = "the lock cannot be made with what upstream asks for" if patch.why == drafts.WHY else patch.why
    made = dataclasses.replace(written, patch=dataclasses.replace(patch, why=why, source=source))
    return ProposedPatch(
        comment="The smallest edit with which uv resolves; look whether the app works with it.", written=made
    )
