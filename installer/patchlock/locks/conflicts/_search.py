"""Find what cannot be together and the smallest edits that resolve it, by trying; the resolver is a function here."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from patchlock.locks.conflicts.model import (
    CUT_OFF,
    Answer,
    Atom,
    Atoms,
    Edit,
    Member,
    Question,
    Solved,
    Unsolved,
    edits,
)

_DEEPEST = 8
"""Edits in one set; more would be another app."""


class Resolver(Protocol):
    """Answers questions, and remembers the answers."""

    workers: int
    """How many questions are worth asking at once."""

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer each; `Unknown` where there is no time left."""
        ...

    def is_spent(self) -> bool:
        """Say whether there is no time left."""
        ...


@dataclass(frozen=True, kw_only=True)
class Core:
    """Things of which each is needed for the conflict."""

    atoms: tuple[Atom, ...]
    """Sorted."""
    words: tuple[str, ...]
    """The resolver's explanation of these alone."""
    is_minimal: bool
    """Whether there was time to see that it cannot be smaller."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Edits after which there is a solution."""

    edits: tuple[Edit, ...]
    solved: Solved

    @property
    def cost(self) -> int:
        """Add what the edits cost."""
        return sum(edit.cost for edit in self.edits)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search has found."""

    cores: tuple[Core, ...]
    """The first is of the question as it stands; each later one appears once others are mended."""
    corrections: tuple[Correction, ...]
    """Cheapest first."""


def minimal(members: Sequence[Member], atoms: Atoms, first: Unsolved, resolver: Resolver) -> Core:
    """Narrow an unsatisfiable question to a core of which nothing can be taken away.

    Every step is a question to the resolver. Its words say nothing here but what to try first: the distributions that
    they mention. Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (complements only).
    """
    core, words = sorted(atoms), first.words
    text = "\n".join(words)
    mentioned = [atom for atom in core if atom.member < 0 or _mentions(text, members[atom.member].name)]
    if mentioned and len(mentioned) < len(core):
        (answer,) = resolver.ask([Question(atoms=frozenset(mentioned))])
        if isinstance(answer, Unsolved):
            core, words = mentioned, answer.words
    parts, is_minimal = 2, True
    while len(core) > 1 and not resolver.is_spent():
        parts = min(parts, len(core))
        chunks = [frozenset(core[i * len(core) // parts : (i + 1) * len(core) // parts]) for i in range(parts)]
        answers = resolver.ask([Question(atoms=frozenset(core) - chunk) for chunk in chunks])
        smaller = [(chunk, a.words) for chunk, a in zip(chunks, answers, strict=True) if isinstance(a, Unsolved)]
        if smaller:
            chunk, words = smaller[0]
            core, parts = [atom for atom in core if atom not in chunk], max(2, parts - 1)
        elif parts == len(core):
            is_minimal = all(isinstance(answer, Solved) for answer in answers)
            break
        else:
            parts *= 2
    if CUT_OFF in atoms and CUT_OFF not in core:  # uv's words name no version of a later day
        (answer,) = resolver.ask([Question(atoms=frozenset((*core, CUT_OFF)))])
        words = answer.words if isinstance(answer, Unsolved) else words
    return Core(atoms=tuple(core), words=words, is_minimal=is_minimal and not resolver.is_spent())


def _mentions(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<![a-z0-9-]){re.escape(name)}(?![a-z0-9-])", text))


def search(members: Sequence[Member], atoms: Atoms, first: Unsolved, resolver: Resolver, most: int) -> Found:
    """Find the cheapest sets of edits that resolve, and the conflicts on the way.

    A set must hit every core: cores are found one by one, each from a question that no known core explains.
    Source: Reiter, "A Theory of Diagnosis from First Principles" (hitting-set tree).

    Args:
        members: all that is asked for.
        atoms: the question that has no solution.
        first: the resolver's answer to it.
        resolver: answers the others.
        most: how many sets are wanted.
    """
    cores = [minimal(members, atoms, first, resolver)]
    corrections: list[Correction] = []
    heap: list[tuple[int, tuple[Edit, ...]]] = [(0, ())]
    seen: set[tuple[Edit, ...]] = {()}

    def expand(chosen: tuple[Edit, ...], core: Core) -> None:
        if len(chosen) >= _DEEPEST:
            return
        for edit in edits(members, core.atoms):
            wider = _joined(chosen, edit)
            if wider not in seen:
                seen.add(wider)
                heapq.heappush(heap, (sum(one.cost for one in wider), wider))

    while heap and len(corrections) < most and not resolver.is_spent():
        batch: list[tuple[Edit, ...]] = []
        while heap and len(batch) < resolver.workers and not resolver.is_spent():
            chosen = heapq.heappop(heap)[1]
            if any(_taken(one.edits) <= _taken(chosen) for one in corrections):
                continue  # less is enough
            core = _explaining(cores, atoms, chosen)
            if core is None:
                batch.append(chosen)
            else:
                expand(chosen, core)
        questions = [Question(atoms=_left(atoms, chosen)) for chosen in batch]
        for chosen, question, answer in zip(batch, questions, resolver.ask(questions), strict=True):
            match answer:
                case Solved():
                    corrections.append(Correction(edits=chosen, solved=answer))
                case Unsolved():
                    core = _explaining(cores, atoms, chosen)  # one that was found for another of the batch
                    if core is None:
                        core = minimal(members, question.atoms, answer, resolver)
                        if resolver.is_spent():
                            break  # a core that was not narrowed down says nothing
                        cores.append(core)
                    expand(chosen, core)
    corrections.sort(key=lambda one: one.cost)
    corrections = [
        one
        for i, one in enumerate(corrections)
        if not any(_taken(o.edits) <= _taken(one.edits) for o in corrections[:i])
    ]
    return Found(cores=tuple(cores), corrections=tuple(corrections[:most]))


def solving(corrections: Sequence[Correction], atoms: Atoms, resolver: Resolver) -> tuple[Correction, ...]:
    """Keep the corrections that solve another question too, with the versions of that."""
    answers = resolver.ask([Question(atoms=_left(atoms, one.edits)) for one in corrections])
    pairs = zip(corrections, answers, strict=True)
    return tuple(Correction(edits=one.edits, solved=answer) for one, answer in pairs if isinstance(answer, Solved))


def _left(atoms: Atoms, chosen: Iterable[Edit]) -> Atoms:
    return atoms - _taken(chosen)


def _taken(chosen: Iterable[Edit]) -> Atoms:
    return frozenset(atom for edit in chosen for atom in edit.takes)


def _explaining(cores: Sequence[Core], atoms: Atoms, chosen: Iterable[Edit]) -> Core | None:
    left = _left(atoms, chosen)
    return next((core for core in cores if left.issuperset(core.atoms)), None)


def _joined(chosen: tuple[Edit, ...], edit: Edit) -> tuple[Edit, ...]:
    """Add an edit; what is dropped need not be freed."""
    kept = [one for one in chosen if not (edit.kind == "drop" and set(one.takes) <= set(edit.takes))]
    return tuple(sorted({*kept, edit}))
