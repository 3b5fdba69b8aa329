"""Add to a draft what costs no version: builds of what has no wheel, companions of torch, one of two that are one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import document, module_names
from patchlock.catalogue.proposals.findings import Proposal
from patchlock.distributions import index_client, wheel_facts
from patchlock.distributions.policy.fitting import of_version
from patchlock.locks import relock
from patchlock.locks.conflicts import explanation
from patchlock.locks.lock_request import Request
from patchlock.locks.resolution_inputs import last_day
from patchlock.model.errors import PolicyError, UnsatisfiableError
from patchlock.model.identities import Sha256
from patchlock.operations import _pin_repairs
from patchlock.operations.proposal_scratch import LockSettings

_MISFIT = re.compile(r"(\S+) \S+ (?:\([^)]*\) )?(?:does not fit|beside) (torch) ([0-9][0-9.]*[0-9])")
_COPY = re.compile(r"(\S+) (\S+) \(([^)]*)\) and (\S+) (\S+) \(([^)]*)\) both write (\w+)/\S+ .*?with different")
_TRITON = re.compile(r"triton \S+ \([^)]*\) does not fit torch \S+\+cpu ")
_NO_TRITON = """\
# A library asks for it on every Linux; torch's build for the processor has no use for it.
[[exclude]]
name = "triton"
profiles = ["cpu"]
why = "it compiles only for NVIDIA and AMD cards, and fits one version of torch"
source = "https://github.com/triton-lang/triton#compatibility"
"""


def added(tables: tuple[str, ...], table: str) -> tuple[str, ...]:
    """Add a table; one that says the same of other profiles gets those of the new one."""
    parsed = _one_row(table)
    for index, known in enumerate(tables):
        there = _one_row(known)
        if parsed is None or there is None or "profiles" not in parsed[1] or "profiles" not in there[1]:
            continue
        if (there[0], there[1] | {"profiles": ()}) == (parsed[0], parsed[1] | {"profiles": ()}):
            profiles = tuple(dict.fromkeys((*there[1]["profiles"], *parsed[1]["profiles"])))
            wider = document.rule_table(there[0], **there[1] | {"profiles": profiles})
            return (*tables[:index], wider, *tables[index + 1 :])
    return (*tables, table)


def _one_row(table: str) -> tuple[str, dict[str, Any]] | None:
    """Read a table that is alone and has no comment, which would be lost."""
    words = tomllib.loads(table)
    rows = [(word, row) for word, listed in words.items() for row in listed]
    return rows[0] if len(rows) == 1 and not table.startswith("#") else None


def builds(proposal: Proposal, request: Request, error: UnsatisfiableError) -> tuple[str, str] | None:
    """Allow the builds that uv misses wheels for; gives the tables, and what they are."""
    order, _ = relock.collect_inputs(request, relock.Kept())
    known = {name for table in proposal.tables for name in built(table)}
    needed = explanation.builds_needed(order, "\n".join(map(str, (error.what, *error.evidence))))
    everywhere = {name: version for name, version in needed.everywhere if name not in known}
    here = {name: version for name, version in needed.here if name not in known and name not in everywhere}
    if not everywhere and not here:
        return None
    return build_tables(everywhere, here, request.platform.name, order.as_of)


def build_tables(
    everywhere: Mapping[NormalizedName, Version], here: Mapping[NormalizedName, Version], platform: str, as_of: str
) -> tuple[str, str]:
    """Write that builds are allowed, on all platforms or on one; gives the tables, and what they are."""
    why, source = "the index has no wheel that fits", "PyPI: the file list of each"
    until = f" among its files until {last_day(as_of)}" if as_of else ""
    tables = [document.build_table(everywhere, why=f"{why}{until}", source=source)] if everywhere else []
    if here:
        why = "the index has no wheel that fits there"
        tables.append(document.build_table(here, why=f"{why}{until}", source=source, platforms=(platform,)))
    listed = ", ".join(f"{name} {version}" for name, version in (*everywhere.items(), *here.items()))
    return "\n\n".join(tables), f"[[build]] of {listed}"


def companions(proposal: Proposal, trying: LockSettings, error: PolicyError) -> tuple[str, str] | None:
    """Bound what is built for one version of torch, by the table of its family; gives the table, and what it is."""
    is_needed = trying.importers().is_needed
    if _TRITON.match(error.what) and _NO_TRITON not in proposal.tables and not is_needed(canonicalize_name("triton")):
        return _NO_TRITON, "[[exclude]] of triton"
    families = trying.catalogue.rules().families
    recorded = tuple(trying.catalogue.index(name) for name in trying.profile.indexes)
    offer = _pin_repairs.Offers(trying.profile, recorded, {})
    for found in _MISFIT.finditer(error.what):
        member, head, version = canonicalize_name(found[1]), found[2], Version(found[3])
        fitting = _pin_repairs.companions(version, member, [one for one in families if one.head == head])
        if fitting is None:
            continue
        bound, reason = f"{member}=={fitting}", f"for {head} {version}"
        why = f"{member} is built for one version of {head}, and its own metadata does not say for which"
        if (offered := offer.versions(member)) and fitting not in offered:
            moved = _pin_repairs.head_with_member(version, member, next(f for f in families if f.head == head), offer)
            if moved is None:
                continue
            bound, reason = f"{head}=={moved}", f"as there is no {member} for {head} {version}"
            why = f"the profile's index has no {member} for {head} {version}; this is the nearest {head} that has one"
        table = document.rule_table(
            "constraint",
            requirement=bound,
            profiles=(trying.profile.name,),
            why=why,
            source="profiles/policy/torch-family.toml",
        )
        if table not in proposal.tables:
            return table, f"[[constraint]] {bound}, {reason}"
    return (
        _kept_apart(proposal, trying, error)
        or _without_doubles(proposal, trying, error)
        or _without_copy(proposal, trying, error)
    )


def _kept_apart(proposal: Proposal, trying: LockSettings, error: PolicyError) -> tuple[str, str] | None:
    """Bound what does not work beside another distribution of the lock; gives the table, and what it is."""
    for pair in trying.catalogue.rules().pairs:
        clauses = list(pair.first.specifier)
        if f": {pair.why} ({pair.source})" not in error.what or [one.operator for one in clauses] != [">="]:
            continue
        if _label(canonicalize_name(pair.second.name)).search(error.what) is None:
            continue
        bound = f"{canonicalize_name(pair.first.name)}<{clauses[0].version}"
        where = {"profiles": (trying.profile.name,)} if pair.os else {}  # else the pair breaks in the others as well
        table = document.rule_table("constraint", requirement=bound, **where, why=pair.why, source=pair.source)
        if table not in proposal.tables:
            return table, f"[[constraint]] {bound}, beside {canonicalize_name(pair.second.name)}"
    return None


def _without_doubles(proposal: Proposal, trying: LockSettings, error: PolicyError) -> tuple[str, str] | None:
    """Keep one of the distributions that are builds of one library; gives the table, and what it is.

    What the app itself asks for stays; the libraries that ask for another one import the same modules.
    """
    for clause in error.what.split("; "):
        for folder in trying.catalogue.rules().folders:
            if f" write {folder.folder} (" not in clause:
                continue
            places = {name: clause_of[1] for name in folder.owners if (clause_of := _label(name).search(clause))}
            kept = min(places, key=lambda name: not places[name] or places[name].startswith("via "))
            table = "\n\n".join(
                document.rule_table(
                    "exclude",
                    name=name,
                    profiles=(trying.profile.name,),
                    why=f"{kept} writes {folder.folder} as well, and which of them would count is chance",
                    source=folder.source,
                )
                for name in places
                if name != kept
            )
            if table not in proposal.tables:
                return table, f"[[exclude]] of {', '.join(name for name in places if name != kept)}, beside {kept}"
    return None


def _without_copy(proposal: Proposal, trying: LockSettings, error: PolicyError) -> tuple[str, str] | None:
    """Leave out another distribution's copy of a module, which only libraries ask for; gives the table, and what it is.

    The module is that of the distribution which is called as it is; the other one has nothing else.
    """
    for found in _COPY.finditer(error.what):
        module = found[7]
        kept, copy, version, why = canonicalize_name(found[1]), canonicalize_name(found[4]), found[5], found[6]
        if not module_names.brings(kept, module):
            kept, copy, version, why = copy, kept, found[2], found[3]
        is_own = module_names.brings(kept, module) and not module_names.brings(copy, module)
        if not is_own or not why.startswith("via ") or _roots(copy, Version(version), trying) != {module}:
            continue
        table = document.rule_table(
            "exclude",
            name=copy,
            profiles=(trying.profile.name,),
            why=f"{kept} has the module {module} as well, and which of them would count is chance",
            source=f"PyPI: the files of {kept} and of {copy}",
        )
        if table not in proposal.tables:
            return table, f"[[exclude]] of {copy}, beside {kept}"
    return None


def _roots(name: NormalizedName, version: Version, trying: LockSettings) -> set[str]:
    """Name what the wheels of a version put into an environment, as far as it was read."""
    files = index_client.offered([name]).get(name, ())
    known = (
        wheel_facts.known_roots(trying.cache / wheel_facts.FOLDER, Sha256(one.sha256))
        for one in files
        if of_version(one, version)
    )
    return set().union(*filter(None, known))


def _label(name: str) -> re.Pattern[str]:
    """Find a distribution as a violation names it, and who asked for it."""
    return re.compile(rf"(?<![\w.-]){re.escape(name)} [0-9]\S*(?: \(([^)]*)\))?")


def built(table: str) -> list[str]:
    return [name for one in tomllib.loads(table).get("build", []) for name in one["names"]]
