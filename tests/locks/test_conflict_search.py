"""Finding what cannot be together, and the smallest edits, with a resolver that is a list of what cannot be together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.locks.conflicts._search import Core, minimal, search
from patchlock.locks.conflicts._versions import nearest, pinned
from patchlock.locks.conflicts.explanation import Conflict, Culprit, clause_with_cause
from patchlock.locks.conflicts.model import (
    CUT_OFF,
    Answer,
    Atom,
    Atoms,
    Member,
    Question,
    Requester,
    Solved,
    Unknown,
    Unsolved,
    atoms,
    edits,
    texts,
)

FILE = PurePosixPath("requirements.txt")


def member(text: str, kind: str = "upstream", line: int = 1) -> Member:
    in_file = kind in {"upstream", "patch"}
    return Member(
        requirement=Requirement(text),
        requester=Requester(kind=kind, name="" if kind == "upstream" else "x", file="f", line=line),  # type: ignore[arg-type]
        path=FILE if in_file else None,
        is_constraint=not in_file,
    )


@dataclasses.dataclass
class Listed:
    """Knows which atoms cannot be together, and which versions bounds lead to."""

    clashes: tuple[frozenset[Atom], ...]
    words: str = ""
    budget: int = 1000
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    unfit: tuple[str, ...] = ()
    workers: int = 2
    asked: list[Question] = dataclasses.field(default_factory=list)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        if self.is_spent():
            return Unknown(why="no time")
        self.asked.append(question)
        if any(clash <= question.atoms for clash in self.clashes) or set(question.bounds) & set(self.unfit):
            return Unsolved(words=(self.words,))
        bounds = " ".join(question.bounds)
        found = {
            NormalizedName(k.partition("|")[0]): Version(v)
            for k, v in self.versions.items()
            if k.partition("|")[2] in bounds
        }
        return Solved(versions=found, via={})

    def is_spent(self) -> bool:
        return len(self.asked) >= self.budget


def bound(*members: int) -> frozenset[Atom]:
    return frozenset(Atom(one, "bound") for one in members)


def first(words: str = "") -> Unsolved:
    return Unsolved(words=(words,))


MANY = tuple(member(f"package{number}=={number}") for number in range(20))


@pytest.mark.parametrize("words", ["", "package3 and package17", "package4 only"], ids=["none", "right", "wrong"])
@pytest.mark.parametrize(
    "clash", [bound(7), bound(3, 17), bound(0, 9, 19), bound(1, 2) | {CUT_OFF}], ids=["one", "two", "three", "cut-off"]
)
def test_core_is_found_whatever_the_words_say(clash: frozenset[Atom], words: str) -> None:
    every = atoms(MANY, has_cut_off=True)
    core = minimal(MANY, every, first(words), Listed(clashes=(clash,)))
    assert core == Core(atoms=tuple(sorted(clash)), words=("",), is_minimal=True)


def test_words_only_save_questions() -> None:
    every = atoms(MANY, has_cut_off=False)
    with_words, without = Listed(clashes=(bound(3, 17),)), Listed(clashes=(bound(3, 17),))
    minimal(MANY, every, first("package3==3 needs package17<2"), with_words)
    minimal(MANY, every, first(), without)
    assert len(with_words.asked) < len(without.asked) / 3


def test_core_is_not_called_minimal_when_the_time_is_over() -> None:
    core = minimal(MANY, atoms(MANY, has_cut_off=False), first(), Listed(clashes=(bound(3, 17),), budget=5))
    assert not core.is_minimal
    assert bound(3, 17) <= frozenset(core.atoms)


def _sets(members: Sequence[Member], every: Atoms, resolver: Listed, most: int = 9) -> list[list[str]]:
    found = search(members, every, first(), resolver, most)
    return [[f"{edit.kind} {' '.join(edit.names)}".strip() for edit in one.edits] for one in found.corrections]


def test_stacked_conflicts_need_one_edit_each() -> None:
    members = (member("a==1"), member("b==1"), member("c==1"), member("d==1"))
    every = atoms(members, has_cut_off=False)
    resolver = Listed(clashes=(bound(0, 1), bound(2)))
    found = _sets(members, every, resolver)
    assert found[:2] == [["free a", "free c"], ["free b", "free c"]]
    assert all("d" not in " ".join(one) for one in found)


def test_freeing_goes_before_dropping_and_dropping_is_not_offered_where_freeing_is_enough() -> None:
    members = (member("a==1"), member("b"))
    resolver = Listed(clashes=(frozenset({Atom(0, "bound"), Atom(1, "name")}),))
    assert _sets(members, atoms(members, has_cut_off=False), resolver) == [["free a"], ["drop b"]]


def test_what_has_no_version_at_all_can_only_be_dropped() -> None:
    members = (member("a==1"), member("b==2"))
    resolver = Listed(clashes=(frozenset({Atom(0, "name")}),))
    assert _sets(members, atoms(members, has_cut_off=False), resolver) == [["drop a"]]


def test_words_of_the_catalogue_are_touched_last() -> None:
    members = (member("a==1"), member("a<1", "profile"))
    resolver = Listed(clashes=(bound(0, 1),))
    assert _sets(members, atoms(members, has_cut_off=False), resolver) == [["free a"], ["unbind a"]]


def test_a_cut_off_that_is_part_of_it_is_offered_last() -> None:
    members = (member("a==1"),)
    resolver = Listed(clashes=(bound(0) | {CUT_OFF},))
    assert _sets(members, atoms(members, has_cut_off=True), resolver) == [["free a"], ["later"]]


def test_pins_of_the_torch_family_are_one_edit() -> None:
    members = (member("torch==2.1"), member("torchaudio==2.1"), member("align"))
    resolver = Listed(clashes=(frozenset({Atom(1, "bound"), Atom(2, "name")}),))
    assert _sets(members, atoms(members, has_cut_off=False), resolver, 1) == [["free torch torchaudio"]]


def test_search_ends_when_the_time_is_over() -> None:
    members = tuple(member(f"a{number}==1") for number in range(8))
    resolver = Listed(clashes=tuple(bound(number) for number in range(8)), budget=30)
    assert search(members, atoms(members, has_cut_off=False), first(), resolver, 3).corrections == ()


@pytest.mark.parametrize(
    ("chosen", "wanted", "bounds"),
    [
        ({Atom(0, "name"), Atom(0, "bound")}, "a[x]==1 ; python_version > '3'\n", ""),
        ({Atom(0, "name")}, "a[x] ; python_version > '3'\n", ""),
        ({Atom(0, "bound")}, "", "a==1 ; python_version > '3'\n"),
        ({Atom(1, "bound")}, "", "b<2\n"),
    ],
    ids=["whole", "name", "bound", "constraint"],
)
def test_parts_are_written_as_requirements_and_bounds(chosen: set[Atom], wanted: str, bounds: str) -> None:
    members = (member("a[x]==1; python_version > '3'"), member("b<2", "profile"))
    found = texts(members, Question(atoms=frozenset(chosen)))
    assert tuple(text.replace('"', "'") for text in found) == (wanted, bounds)


# --- versions ---------------------------------------------------------------------------------------------------------


def _nearest(members: Sequence[Member], resolver: Listed) -> dict[str, str] | None:
    every = atoms(members, has_cut_off=False)
    found = search(members, every, first(), resolver, 1)
    nearer = nearest(members, every, found.corrections[0], resolver)
    return None if nearer is None else {name: str(version) for name, version in nearer.solved.versions.items()}


@pytest.mark.parametrize("asked", ["a==1.0.1", "a>=0.5,<1.0.1"])
def test_freed_pin_or_upper_bound_stays_in_the_nearest_range_above_it(asked: str) -> None:
    resolver = Listed(
        clashes=(bound(0),),
        unfit=("a>=1.0.1,<1.1", "a>=1.0.1,<1.2", "a>=1.0.1,<1.4"),
        versions={"a|": "9", "a|a>=1.0.1,<1.6": "1.5"},
    )
    assert _nearest((member(asked),), resolver) == {"a": "1.5"}


def test_freed_pin_passes_over_a_pre_release() -> None:
    resolver = Listed(
        clashes=(bound(0),),
        unfit=("a>=1.0.1,<1.1",),
        versions={"a|": "9", "a|a>=1.0.1,<1.2": "1.1.dev3", "a|a>=1.0.1,<1.4": "1.3"},
    )
    assert _nearest((member("a==1.0.1"),), resolver) == {"a": "1.3"}


@pytest.mark.parametrize(("pin", "found"), [("a==1.0", None), ("a==1.0b1", {"a": "2.4.0.dev3"})])
def test_pre_release_is_a_solution_only_where_upstream_names_one(pin: str, found: dict[str, str] | None) -> None:
    assert _nearest((member(pin),), Listed(clashes=(bound(0),), versions={"a|": "2.4.0.dev3"})) == found


def test_torch_and_torchaudio_move_by_the_same_step() -> None:
    resolver = Listed(
        clashes=(bound(0),),
        unfit=("torch>=2.1.1,<2.2",),
        versions={"torch|torch>=2.1.1,<2.3": "2.2.2", "torchaudio|torchaudio>=2.1.1,<2.3": "2.2.2"},
    )
    assert _nearest((member("torch==2.1.1"), member("torchaudio==2.1.1")), resolver) == {
        "torch": "2.2.2",
        "torchaudio": "2.2.2",
    }


def test_torchaudio_of_another_torch_is_no_solution() -> None:
    resolver = Listed(clashes=(bound(0),), versions={"torch|": "2.15", "torchaudio|": "2.10"})
    assert _nearest((member("torch==2.1.1"),), resolver) is None


def test_torchaudio_that_works_with_every_later_torch_is_a_solution() -> None:
    resolver = Listed(clashes=(bound(0),), versions={"torch|": "2.15", "torchaudio|": "2.11"})
    assert _nearest((member("torch==2.1.1"),), resolver) == {"torch": "2.15", "torchaudio": "2.11"}


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        ("==1.2.3", "1.2.3"),
        ("===1.2", "1.2"),
        ("==4.36.*", "4.36"),
        ("==2.7.0+cpu", "2.7.0"),
        (">=1", None),
        ("", None),
    ],
)
def test_pin_is_told_from_a_range(specifier: str, version: str | None) -> None:
    assert pinned(SpecifierSet(specifier)) == (Version(version) if version else None)


def test_edits_of_a_patchs_own_words_cost_more_than_upstreams() -> None:
    cheapest, next_one, *_ = edits((member("a==1", "patch"), member("b==1")), bound(0, 1))
    assert (cheapest.names, next_one.names) == (("b",), ("a",))
    assert cheapest.cost < next_one.cost


NO_FILE = "Because a==1 has no wheels for this machine and you require a==1, we can conclude"
NO_WHEEL = "hint: Wheels are required for `tokenizers` because building from source is disabled"


@pytest.mark.parametrize(
    ("culprits", "words", "wanted"),
    [
        pytest.param(
            ["a==1"],
            ["  cause: Because only a==2 is", "  available and you require a==1, we can conclude that"],
            "a==1 cannot be installed: only a==2 is available",
            id="version",
        ),
        pytest.param(
            ["a==1"],
            ["and you require a==1, we can conclude", NO_WHEEL],
            "a==1 cannot be installed: tokenizers, which it needs, has no wheel that fits",
            id="wheel-of-another",
        ),
        pytest.param(
            ["Tokenizers==1"], [NO_WHEEL], "Tokenizers==1 cannot be installed: it has no wheel that fits", id="wheel"
        ),
        pytest.param(["a==1"], [], "a==1 cannot be installed", id="no-words"),
        pytest.param(["a", "b"], [NO_WHEEL], "a and b cannot be installed together", id="two"),
        pytest.param(
            ["a", "a==1"],
            [NO_FILE],
            "a==1 cannot be installed: a==1 has no wheels for this machine",
            id="line-and-bound",
        ),
        pytest.param(["a<1", "a>2"], [NO_FILE], "a<1 and a>2 cannot be installed together", id="two-bounds"),
        pytest.param(
            ["tokenizers", ""],
            [NO_WHEEL],
            "tokenizers cannot be installed with files until the cut-off: it has no wheel that fits",
            id="cut-off",
        ),
        pytest.param(
            ["a<1", "a>2", ""],
            [NO_WHEEL],
            "a<1 and a>2 cannot be installed together with files until the cut-off",
            id="two-and-cut-off",
        ),
    ],
)
def test_one_thing_that_cannot_be_installed_has_a_cause(culprits: list[str], words: list[str], wanted: str) -> None:
    found = [
        Culprit(
            member=member(text) if text else None, also=(), is_any_version=text.isalpha(), otherwise="", recorded=""
        )
        for text in culprits
    ]
    assert clause_with_cause(Conflict(culprits=tuple(found), words=tuple(words), is_minimal=True)) == wanted
