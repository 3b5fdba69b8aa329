"""Match a recorded machine against the catalogue of known troubles; pure, and guesses nothing beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from patchlock.model import devices
from patchlock.model.devices import Card
from patchlock.model.hosts import Recording
from patchlock.model.policy import Family
from patchlock.model.troubles import CONFIDENCES, Confidence, Observations, Remedy, Sign, Trouble


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A trouble that a machine shows."""

    name: str
    title: str
    why: str
    confidence: Confidence
    evidence: tuple[str, ...]
    """What was seen, one clause each; no two the same."""
    remedies: tuple[Remedy, ...]
    """Those for this machine."""
    sources: tuple[str, ...]


def diagnose(
    recording: Recording, cards: Iterable[Card], entries: Iterable[Trouble], families: Iterable[Family] = ()
) -> tuple[Finding, ...]:
    """Find the known troubles of a machine, the surest first, then by name."""
    facts = collect_facts(recording, cards, families)
    found = [finding for entry in entries if (finding := _found(entry, facts)) is not None]
    return tuple(sorted(found, key=lambda finding: (-CONFIDENCES.index(finding.confidence), finding.name)))


def tells(entries: Iterable[Trouble]) -> Callable[[str], bool]:
    """Make a test of whether a line that a program printed can be a sign of some trouble."""
    conditions = [condition for one in entries for condition in (*one.unless, *(sign.condition for sign in one.signs))]
    words = {pattern.pattern: pattern for condition in conditions for pattern in condition.words}
    return lambda line: any(pattern.search(line) for pattern in words.values())


def collect_facts(recording: Recording, cards: Iterable[Card], families: Iterable[Family] = ()) -> Observations:
    """Put together what signs are looked for in."""
    cards = tuple(cards)
    return Observations(
        recording=recording,
        said="\n".join(recording.says),
        devices=tuple(devices.identify(device, cards) for device in recording.host.devices),
        families=tuple(families),
    )


def _found(entry: Trouble, facts: Observations) -> Finding | None:
    where = entry.where.seen(facts)
    if where is None or any(condition.seen(facts) is not None for condition in entry.unless):
        return None
    seen = [(sign, words) for sign in entry.signs if (words := sign.condition.seen(facts)) is not None]
    if not seen:
        return None
    return Finding(
        name=entry.name,
        title=entry.title,
        why=entry.why,
        confidence=_confidence([sign for sign, _ in seen]),
        evidence=tuple(dict.fromkeys((*where, *(one for _, words in seen for one in words)))),
        remedies=tuple(remedy for remedy in entry.remedies if remedy.where.seen(facts) is not None),
        sources=entry.sources,
    )


def _confidence(signs: list[Sign]) -> Confidence:
    """Take the strongest sign; one step more where the machine and the words of a program agree."""
    strongest = max(CONFIDENCES.index(sign.confidence) for sign in signs)
    agree = len({sign.is_said for sign in signs}) > 1
    return CONFIDENCES[min(strongest + agree, len(CONFIDENCES) - 1)]
