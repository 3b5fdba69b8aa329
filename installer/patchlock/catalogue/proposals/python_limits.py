"""Which distributions install with a Python and end as they are imported there; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.findings import Issue
from patchlock.catalogue.proposals.shared_sets import Asked


@dataclass(frozen=True, kw_only=True)
class PythonLimit:
    """Versions of a distribution that a Python cannot import."""

    name: NormalizedName
    versions: SpecifierSet
    python: SpecifierSet
    why: str
    source: str


_DATACLASS = "a dataclass of it has a mutable default, which Python refuses since 3.11"
_LIMITS = (
    PythonLimit(
        name=canonicalize_name("fairseq"),
        versions=SpecifierSet("<=0.12.2"),
        python=SpecifierSet(">=3.11"),
        why=_DATACLASS,
        source="https://github.com/facebookresearch/fairseq/issues/5012",
    ),
    PythonLimit(
        name=canonicalize_name("hydra-core"),
        versions=SpecifierSet("<1.3"),
        python=SpecifierSet(">=3.11"),
        why=_DATACLASS,
        source="hydra/conf/__init__.py in the wheels of hydra-core 1.2.0 and 1.3.2 on PyPI",
    ),
)


def find(
    versions: Mapping[NormalizedName, Version],
    python: Version,
    others: Mapping[str, Version],
    asked: Asked,
    at_start: Collection[str],
) -> tuple[Issue, ...]:
    """Say which locked distributions the profile's Python cannot import.

    Args:
        versions: of the lock.
        python: the profile's.
        others: the Pythons of all profiles, by their names.
        asked: the app's requirements, by name.
        at_start: modules that its program imports as it starts.
    """
    found = [
        one
        for one in _LIMITS
        if one.name in versions and one.versions.contains(versions[one.name]) and one.python.contains(python)
    ]
    if not found:
        return ()
    named = " and ".join(f"{one.name} {versions[one.name]}" for one in found)
    sources = {why: [one.source for one in found if one.why == why] for why in dict.fromkeys(one.why for one in found)}
    reasons = "; ".join(f"{why} ({', '.join(said)})" for why, said in sources.items())
    older = [name for name, version in others.items() if not any(one.python.contains(version) for one in found)]
    way = f"the profile {older[0]} has Python {others[older[0]]}; or" if older else "no profile has an older Python, so"
    tops = {module.partition(".")[0] for module in at_start}
    return (
        Issue(
            name="not-for-this-python",
            title=f"{named} cannot be imported with Python {python}",
            means=reasons,
            found=tuple(place.found for one in found for place in asked.get(one.name, ())),
            remedy=f"{way} change what imports it with a patch, and leave it out",
            is_at_start=any(module_names.brings(one.name, top) for one in found for top in tops),
        ),
    )
