"""Match a recorded machine against the catalogue of known troubles; pure, and guesses nothing beyond it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from patchlock.hardware import preflight
from patchlock.hardware._matching import called
from patchlock.hardware.selection import Choice
from patchlock.model import devices, needs, printed_text
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.devices import VENDORS, Card
from patchlock.model.hosts import Host, Recording
from patchlock.model.needs import Resource
from patchlock.model.package_managers import System
from patchlock.model.policy import Family
from patchlock.model.troubles import CONFIDENCES, Condition, Confidence, Observations, Remedy, Shell, Sign, Trouble

_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A trouble that a machine shows."""

    name: str
    title: str
    why: str
    confidence: Confidence
    evidence: tuple[str, ...]
    """What was seen, one clause each; no two the same; none where nobody could look."""
    is_said: bool = False
    """Whether words of a program speak for it."""
    remedies: tuple[Remedy, ...]
    """Those for this machine."""
    sources: tuple[str, ...]


def diagnose(
    recording: Recording,
    cards: Iterable[Card],
    entries: Iterable[Trouble],
    families: Iterable[Family] = (),
    *,
    is_planned: bool = False,
) -> tuple[Finding, ...]:
    """Find the known troubles of a machine, the surest first, then by name.

    Args:
        recording: the machine, and the packages of an environment.
        cards: the table of devices.
        entries: the catalogue of troubles.
        families: which versions of binary distributions fit together.
        is_planned: whether the packages are those that a profile would install.
    """
    entries = tuple(entries)
    facts = dataclasses.replace(collect_facts(recording, cards, families), is_planned=is_planned)
    found: dict[tuple[str, str], Finding] = {}
    for entry in entries:
        if (finding := _found(entry, facts)) is not None:
            same = found.get((finding.name, finding.title))
            found[finding.name, finding.title] = _joined(same, finding) if same is not None else finding
    if facts.said and not any(finding.is_said for finding in found.values()):
        for finding in _of_another_system(entries, facts):
            found[finding.name, finding.title] = finding
    return tuple(sorted(found.values(), key=lambda finding: (-CONFIDENCES.index(finding.confidence), finding.name)))


def certain(
    name: str,
    title: str,
    why: str,
    evidence: tuple[str, ...],
    *,
    do: str,
    proof: str,
    shell: Shell,
    needs: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> Finding:
    """Make a finding of what is known without the catalogue of troubles; it has one remedy, a sentence."""
    remedy = Remedy(do=do, where=Condition(), shell=shell, commands=(), needs=needs, proof=proof, proof_shell=shell)
    return Finding(
        name=name,
        title=title,
        why=why,
        confidence="certain",
        evidence=evidence,
        remedies=(remedy,),
        sources=sources,
    )


def old_versions(
    ranking: Iterable[Accepted | Rejected],
    choice: Choice | None,
    host: Host,
    resource: Callable[[str], Resource],
    system: System,
) -> tuple[Finding, ...]:
    """Find drivers and systems that are too old for the profile that would use a device of a machine.

    They are certain where torch computes on the CPU instead, else possible: another profile uses the device.

    Args:
        ranking: every profile, judged.
        choice: what was chosen, if anything was.
        host: the machine.
        resource: gives what is known of a driver or system by its name.
        system: with what things are installed.
    """
    shell: Shell = "powershell" if host.os == "windows" else "sh"
    found: dict[str, Finding] = {}
    for one in ranking:
        if not isinstance(one, Rejected) or one.platform is None or one.device is None or one.fit is None:
            continue
        device, name = one.device.device, one.profile.name
        old = [condition for condition in one.fit.requires if not condition.is_too_new(host, device)]
        resources = {condition.name: resource(condition.name) for condition in old}
        for wrong in preflight.versions(old, host, device, resources, system):
            if wrong.stops and wrong.what not in found:
                found[wrong.what] = certain(
                    "version-too-old",
                    f"{wrong.what} for {name}",
                    f"{name} is the profile for {called(one.device)}. It does not work before that is newer.",
                    (wrong.what,),
                    do=f"Get a newer one: {wrong.remedy}",
                    proof=f"patchlock detect --why-not {name}",
                    shell=shell,
                    needs=("reboot",) if wrong.restart else (),
                    sources=tuple(wrong.source.split("; ")),
                )
    is_used = choice is not None and not choice.has_torch_on_processor
    confidence: Confidence = "possible" if is_used else "certain"
    return tuple(dataclasses.replace(one, confidence=confidence) for one in found.values())


def lacking(lacks: Iterable[needs.Finding], pair: str, proof: str, host: Host) -> tuple[Finding, ...]:
    """Tell what a machine lacks; it is certain where an install would stop at it, else possible.

    Args:
        lacks: what it lacks.
        pair: what needs it, a profile or an app on one.
        proof: the command that shows that it is there.
        host: the machine.
    """
    shell: Shell = "powershell" if host.os == "windows" else "sh"
    found = []
    for one in lacks:
        told = certain(
            one.name,
            f"{one.what}; {pair} needs it" if one.stops else one.what,
            one.why,
            (one.what,) if one.stops else (),
            do=one.remedy,
            proof=proof,
            shell=shell,
            needs=("reboot",) if one.restart else (),
            sources=tuple(filter(None, one.source.split("; "))),
        )
        found.append(told if one.stops else dataclasses.replace(told, confidence="possible"))
    return tuple(found)


def not_told(lacks: Iterable[Finding], known: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave out what a known trouble tells, too: the same command is its remedy."""
    commands = [command for one in known for remedy in one.remedies for command in remedy.commands]
    return tuple(one for one in lacks if not any(command in one.remedies[0].do for command in commands))


def tells(entries: Iterable[Trouble]) -> Callable[[str], bool]:
    """Make a test of whether a line that a program printed can be a sign of some trouble."""
    conditions = [condition for one in entries for condition in (*one.unless, *(sign.condition for sign in one.signs))]
    words = {pattern.pattern: pattern for condition in conditions for pattern in condition.words}
    return lambda line: any(pattern.search(printed_text.plain(line)) for pattern in words.values())


def collect_facts(recording: Recording, cards: Iterable[Card], families: Iterable[Family] = ()) -> Observations:
    """Put together what signs are looked for in."""
    cards = tuple(cards)
    return Observations(
        recording=recording,
        said=printed_text.plain("\n".join(recording.says)),
        devices=tuple(devices.identify(device, cards) for device in recording.host.devices),
        families=tuple(families),
    )


def _found(entry: Trouble, facts: Observations) -> Finding | None:
    where = entry.where.seen(facts)
    if where is None or any(condition.seen(facts) is not None for condition in entry.unless):
        return None
    is_of_others = _is_of_others(entry.vendors, facts)
    signs = [sign for sign in entry.signs if not (is_of_others and sign.is_ambiguous)]
    seen = [(sign, words) for sign in signs if (words := sign.condition.seen(facts)) is not None]
    if not seen:
        return None
    evidence = [*where, *(one for _, words in seen for one in words)]
    if is_of_others and all(sign.is_said for sign, _ in seen):
        return _of_another_maker(entry, evidence, facts)
    return Finding(
        name=entry.name,
        title=entry.title,
        why=entry.why,
        confidence=_confidence([sign for sign, _ in seen]),
        evidence=tuple(dict.fromkeys(evidence)),
        is_said=any(sign.is_said for sign, _ in seen),
        remedies=tuple(remedy for remedy in entry.remedies if remedy.where.seen(facts) is not None),
        sources=entry.sources,
    )


def _is_of_others(vendors: tuple[str, ...], facts: Observations) -> bool:
    """Say whether a machine is known to have only cards of other vendors; a container or WSL may not show all."""
    there = {one.device.vendor for one in facts.devices} & set(VENDORS)
    host = facts.recording.host
    return bool(vendors and there) and not there & set(vendors) and not host.container and not host.is_wsl


def _of_another_system(entries: tuple[Trouble, ...], facts: Observations) -> Iterator[Finding]:
    """Answer words that are known of another operating system alone."""
    shell: Shell = "powershell" if facts.recording.host.os == "windows" else "sh"

    def told(entry: Trouble, os: str) -> Finding | None:
        there = dataclasses.replace(facts.recording, host=Host(os=os, machine=""), packages={})
        seen = _found(entry, dataclasses.replace(facts, recording=there, devices=()))
        return seen if seen is not None and seen.is_said else None

    for entry in entries:
        seen = {name: found for os, name in _SYSTEMS.items() if (found := told(entry, os)) is not None}
        if not seen or told(entry, facts.recording.host.os) is not None:
            continue
        yield Finding(
            name="printed-on-another-system",
            title=f"the message is known of {' and '.join(seen)}, and this machine has another system: {entry.title}",
            why=entry.why,
            confidence="possible",
            evidence=next(iter(seen.values())).evidence,
            is_said=True,
            remedies=(
                Remedy(
                    do="Run the same command on the machine that printed it, which says what to do there.",
                    where=Condition(),
                    shell=shell,
                    commands=(),
                    proof="patchlock doctor {app}",
                    proof_shell=shell,
                ),
            ),
            sources=entry.sources,
        )


def _of_another_maker(entry: Trouble, evidence: list[str], facts: Observations) -> Finding:
    """Answer words about cards that are not there: what is known of those cards does not help here."""
    makers = " or ".join(VENDORS[vendor] for vendor in entry.vendors)
    there = dict.fromkeys(called(one) for one in facts.devices if one.device.vendor in VENDORS)
    shell: Shell = "powershell" if facts.recording.host.os == "windows" else "sh"
    return Finding(
        name="made-for-another-card",
        title=f"the message is about {makers} cards, and this machine has none",
        why=f"""
torch, or another library that printed it, is a build for {makers} cards. On this machine the app needs the profile of
its own cards, not a driver or files for others. If another machine printed it, run `patchlock doctor` there.""",
        confidence="likely",
        evidence=(*dict.fromkeys(evidence), *(f"this machine has {name}" for name in there)),
        is_said=True,
        remedies=(
            Remedy(
                do="See which profile fits this machine, and install the app with it.",
                where=Condition(),
                shell=shell,
                commands=("patchlock plan {app}", "patchlock install {app} --reinstall"),
                proof="patchlock verify {app}",
                proof_shell=shell,
            ),
        ),
        sources=entry.sources,
    )


def _joined(one: Finding, other: Finding) -> Finding:
    """Make one of two findings that say the same."""
    return dataclasses.replace(
        one,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
        sources=tuple(dict.fromkeys((*one.sources, *other.sources))),
    )


def _confidence(signs: list[Sign]) -> Confidence:
    """Take the strongest sign; one step more where the machine and the words of a program agree."""
    strongest = max(CONFIDENCES.index(sign.confidence) for sign in signs)
    agree = len({sign.is_said for sign in signs}) > 1
    return CONFIDENCES[min(strongest + agree, len(CONFIDENCES) - 1)]
