"""Two locks compared: each kind of change has its name and its why, each cause its clause, and nothing else is said."""

from __future__ import annotations

import dataclasses

import pytest
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.locks.diff import Change, Kind, asked, compare
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance

A, B = Sha256("a" * 64), Sha256("b" * 64)
TORCH = "https://index.test/cpu/torch-2.1.1%2Bcpu-cp311-cp311-win_amd64.whl"
LOCK = Lock(
    provenance=Provenance(
        app="demo",
        profile="cpu",
        platform="linux-x86_64",
        python="3.11",
        commit=CommitId("1" * 40),
        as_of="2026-01-01T00:00:00Z",
        newer={},
        uv="0.13.8",
        patches=("one", "two"),
        inputs={"profiles/cpu.toml": A, "upstream:requirements.txt": A},
        resolver_input=A,
    ),
    packages=(),
)


def _package(
    version: str = "1.0", sha256: Sha256 = A, why: str = "via x · wheel py3-none-any", url: str = ""
) -> LockedPackage:
    return LockedPackage(name=NormalizedName("av"), version=Version(version), url=url, sha256=sha256, why=why)


def _lock(*packages: LockedPackage, **provenance: object) -> Lock:
    made = dataclasses.replace(LOCK.provenance, **provenance)  # type: ignore[arg-type]
    return dataclasses.replace(LOCK, packages=packages, provenance=made)


@pytest.mark.parametrize(
    ("old", "new", "kind", "why"),
    [
        (None, _package(why="requirements.txt:4 · via x · sdist"), Kind.ADDED, "requirements.txt:4 · via x"),
        (_package(), None, Kind.REMOVED, "was: via x"),
        (_package("9.0"), _package("10.0", B), Kind.NEWER, "via x"),
        (_package("10.0"), _package("9.0", B), Kind.OLDER, "via x"),
        (
            _package(),
            _package(sha256=B, why="via x · wheel cp311-abi3-win_amd64"),
            Kind.OTHER_FILE,
            "wheel py3-none-any → wheel cp311-abi3-win_amd64",
        ),
        (
            _package(),
            _package(sha256=B),
            Kind.OTHER_BYTES,
            "wheel py3-none-any: sha256 aaaaaaaaaaaa… → bbbbbbbbbbbb…",
        ),
        (
            _package("2.1.1+cpu", url=TORCH),
            _package("2.1.1+cpu", B, url=TORCH.replace("index.test", "mirror.test")),
            Kind.OTHER_BYTES,
            "torch-2.1.1+cpu-cp311-cp311-win_amd64.whl: sha256 aaaaaaaaaaaa… → bbbbbbbbbbbb…",
        ),
        (_package("2.1.1", why=""), _package("2.1.1", B, why=""), Kind.OTHER_FILE, "unknown → unknown"),
        (_package(url=""), _package(url=TORCH), Kind.OTHER_ADDRESS, f"the default index → {TORCH}"),
        (_package(), _package(why="via x, y · wheel py3-none-any"), Kind.OTHER_REASON, "via x → via x, y"),
    ],
    ids=[
        "added",
        "removed",
        "newer",
        "older",
        "other-file",
        "other-bytes",
        "other-bytes-at-an-address",
        "unknown-file",
        "address",
        "reason",
    ],
)
def test_each_change_has_its_name_and_its_why(
    old: LockedPackage | None, new: LockedPackage | None, kind: Kind, why: str
) -> None:
    found = compare(_lock(*([old] if old else [])), _lock(*([new] if new else [])))
    assert found.changes == (Change(name=NormalizedName("av"), kind=kind, old=old, new=new, why=why),)
    assert found.changes[0].is_alarming == (kind is Kind.OTHER_BYTES)
    assert found.causes == ()


@pytest.mark.parametrize(
    ("provenance", "cause"),
    [
        ({"commit": CommitId("2" * 40)}, "upstream's commit: 111111111111 → 222222222222"),
        ({"as_of": ""}, "the cut-off: 2026-01-01T00:00:00Z → none"),
        (
            {"newer": {"av": "2026-02-01T00:00:00Z"}},
            "packages with a later cut-off: none → av until 2026-02-01T00:00:00Z",
        ),
        ({"python": "3.12"}, "Python: 3.11 → 3.12"),
        ({"uv": "0.13.9"}, "uv: 0.13.8 → 0.13.9"),
        ({"patches": ("two", "three")}, "patches: -one +three"),
        ({"patches": ("two", "one")}, "patches: another order"),
        (
            {"inputs": {"profiles/cpu.toml": B}, "resolver_input": B},
            "changed: profiles/cpu.toml, upstream's requirements.txt",
        ),
        ({"resolver_input": B}, "uv is asked another question"),
    ],
    ids=["commit", "cut-off", "upgraded", "python", "uv", "patches", "order", "inputs", "question"],
)
def test_each_cause_is_named(provenance: dict[str, object], cause: str) -> None:
    assert compare(_lock(), _lock(**provenance)).causes == (cause,)


def test_lock_that_was_changed_by_hand_is_a_cause() -> None:
    changed = dataclasses.replace(_lock(_package()), is_intact=False)
    assert compare(changed, _lock(_package())).causes == (
        "the lines of the old lock were changed since it was written",
    )


def test_first_lock_and_last_lock() -> None:
    lock = _lock(_package())
    assert compare(None, lock).causes == ("there was no lock",)
    assert [change.kind for change in compare(None, lock).changes] == [Kind.ADDED]
    assert compare(lock, None).causes == ("the lock no longer exists",)


def test_nothing_is_different_between_equal_locks() -> None:
    assert not compare(_lock(_package()), _lock(_package()))
    assert not compare(None, None)
    assert compare(_lock(_package()), _lock())


@pytest.mark.parametrize(
    ("why", "who"),
    [
        ("wheel py3-none-any", ""),
        ("sdist", ""),
        ("via x", "via x"),
        ("", ""),
        ("a.txt:1 · via sdist · sdist", "a.txt:1 · via sdist"),
    ],
)
def test_who_asked_is_told_without_the_file(why: str, who: str) -> None:
    assert asked(_package(why=why)) == who
