"""Choose, for requirements that are freed, bounds as near to upstream's as resolve; the resolver is a function here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.locks.conflicts._search import Correction, Resolver
from patchlock.locks.conflicts.model import FAMILY, Atoms, Member, Question, Solved

_TOGETHER = frozenset(map(canonicalize_name, ("torch", "torchaudio")))
_ANY_FROM = Version("2.11")
"""torchaudio works with this torch and every later one since this version.

Source: https://docs.pytorch.org/audio/2.11.0/installation.html"""
_STEPS = (1, 2, 4, 6, 8)
"""How many minor versions a range spans, narrowest first."""


def nearest(members: Sequence[Member], atoms: Atoms, correction: Correction, resolver: Resolver) -> Correction | None:
    """Keep what is freed near what upstream asked for.

    Returns:
        the same edits with the versions of the narrowest ranges that resolve, one distribution after the other; None
        where torch and torchaudio cannot be brought together, or only a pre-release of what is freed fits.
    """
    left = atoms - {atom for edit in correction.edits for atom in edit.takes}
    freed = [edit.names for edit in correction.edits if edit.kind == "free"]
    bounds: tuple[str, ...] = ()
    solved = correction.solved
    for names in sorted(freed, key=lambda names: (not FAMILY.issuperset(names), names)):
        for ranges in _ranges(members, names):
            answers = resolver.ask([Question(atoms=left, bounds=(*bounds, *one)) for one in ranges])
            pairs = [(one, answer) for one, answer in zip(ranges, answers, strict=True) if isinstance(answer, Solved)]
            better = next((pair for pair in pairs if _is_final(members, names, pair[1])), None)
            if better is not None:
                bounds, solved = (*bounds, *better[0]), better[1]
                break
        if not _is_final(members, names, solved):
            return None
    wanted = [name for names in freed for name in names if name in _TOGETHER]
    together = _together(left, bounds, wanted, solved, resolver)
    return None if together is None else Correction(edits=correction.edits, solved=together)


def _is_final(members: Sequence[Member], names: Sequence[NormalizedName], solved: Solved) -> bool:
    """Say whether no name has a pre-release, which uv takes where nothing else fits, unless upstream names one."""
    got = [name for name in names if name in solved.versions and solved.versions[name].is_prerelease]
    return all(_specifier(members, name).prereleases for name in got)


def _specifier(members: Sequence[Member], name: NormalizedName) -> SpecifierSet:
    return next(m.requirement.specifier for m in members if m.name == name and m.path and m.requirement.specifier)


def _ranges(members: Sequence[Member], names: Sequence[NormalizedName]) -> Iterator[list[tuple[str, ...]]]:
    """Give bounds around the pins of names that move together, narrowest first, in lists that are asked at once.

    Above the pins first, then below. torchvision says itself which torch it was built for. What has an upper bound is
    taken as pinned to that; anything else has no range.
    """
    moving = [name for name in names if name in _TOGETHER or name not in FAMILY]
    pins = {name: pin for name in moving if (pin := _highest(_specifier(members, name))) is not None}
    if not pins:
        return

    def bounds(text: Callable[[Version], str]) -> tuple[str, ...]:
        return tuple(f"{name}{text(pin)}" for name, pin in pins.items())

    yield [bounds(lambda pin, step=step: f">={pin},<{pin.major}.{pin.minor + step}") for step in _STEPS]  # type: ignore[misc]
    yield [bounds(lambda pin: f">={pin},<{pin.major + 1}"), bounds(lambda pin: f">={pin}")]
    yield [
        bounds(lambda pin: f">={pin.major}.{pin.minor},<={pin}"),
        bounds(lambda pin: f">={pin.major},<={pin}"),
    ]


def pinned(specifier: SpecifierSet) -> Version | None:
    """Give the version of a specifier that is one pin, without a local part; `==4.36.*` counts as 4.36."""
    clauses = list(specifier)
    if len(clauses) != 1 or clauses[0].operator not in {"==", "==="}:
        return None
    try:
        return Version(Version(clauses[0].version.removesuffix(".*")).public)
    except InvalidVersion:
        return None


def _highest(specifier: SpecifierSet) -> Version | None:
    """Give the pin of a specifier, or its upper bound."""
    return pinned(specifier) or min((Version(one.version) for one in specifier if one.operator[0] == "<"), default=None)


def _together(
    left: Atoms, bounds: tuple[str, ...], wanted: Sequence[NormalizedName], solved: Solved, resolver: Resolver
) -> Solved | None:
    """Give torch and torchaudio one version: newer torchaudio no longer says which torch it was built for."""
    if is_together(solved.versions):
        return solved
    series = dict.fromkeys((v.major, v.minor) for name, v in sorted(solved.versions.items()) if name in _TOGETHER)
    others = tuple(bound for bound in bounds if not bound.startswith(tuple(f"{name}>" for name in wanted)))
    questions = [
        Question(atoms=left, bounds=(*others, *(f"{name}=={major}.{minor}.*" for name in wanted)))
        for major, minor in series
    ]
    answers = resolver.ask(questions) if wanted else []
    return next((one for one in answers if isinstance(one, Solved) and is_together(one.versions)), None)


def is_together(versions: Mapping[NormalizedName, Version]) -> bool:
    """Say whether torchaudio fits torch, where both are there: it is of the same series, or both are new enough."""
    found = [versions[name] for name in versions if name in _TOGETHER]
    return len({(version.major, version.minor) for version in found}) <= 1 or min(found) >= _ANY_FROM
