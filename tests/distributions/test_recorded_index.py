"""A recorded index as values: what it keeps, what a refresh changes, its text, and answers that contradict it."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from patchlock.catalogue import _indexes as catalogue_indexes
from patchlock.catalogue.table_reader import Report, Table
from patchlock.distributions import recorded_index
from patchlock.distributions._index_pages import Listed
from patchlock.distributions.recorded_index import Change, Kind
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS
from patchlock.model.recorded_index import EarlierBytes, RecordedIndex, RecordedWheel, RecordingFilter

A, B, C = (Sha256(letter * 64) for letter in "abc")
URL = "https://index.test/cu128"
KEEP = RecordingFilter(
    distributions=(Requirement("torch>=2.7"), Requirement("pytorch-triton-rocm")),
    pythons=(Version("3.11"),),
    platforms=(PLATFORMS["linux-x86_64"], PLATFORMS["windows-amd64"]),
)


def _wheel(filename: str = "torch-2.7.0+cu128-cp311-cp311-win_amd64.whl", **values: object) -> RecordedWheel:
    name, version, _, _ = parse_wheel_filename(filename)
    plain: dict[str, object] = {
        "name": name,
        "version": version,
        "filename": filename,
        "url": f"{URL}/{filename.replace('+', '%2B')}",
        "sha256": A,
        "requires": (Requirement("filelock"),),
        "source": "somebody's lock",
    }
    return RecordedWheel(**(plain | values))  # type: ignore[arg-type]


def _index(*wheels: RecordedWheel, name: str = "cu128") -> RecordedIndex:
    return RecordedIndex(name=name, url=URL, wheels=wheels, origin=Origin(file=f"{name}.toml", line=1), keep=KEEP)


@pytest.mark.parametrize(
    ("filename", "kept"),
    [
        ("torch-2.7.0+cu128-cp311-cp311-win_amd64.whl", True),
        ("torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl", True),
        ("pytorch_triton_rocm-3.3.0-cp311-cp311-linux_x86_64.whl", True),
        ("torch-2.7.0-py3-none-any.whl", True),
        ("torch-2.6.0+cu128-cp311-cp311-win_amd64.whl", False),
        ("torch-2.8.0rc1+cu128-cp311-cp311-win_amd64.whl", False),
        ("torch-2.7.0+cu128-cp312-cp312-win_amd64.whl", False),
        ("torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_aarch64.whl", False),
        ("torchvision-0.22.0+cu128-cp311-cp311-win_amd64.whl", False),
        ("torch-2.7.0.tar.gz", False),
        ("torch.whl", False),
    ],
)
def test_what_is_kept(filename: str, kept: bool) -> None:
    file = Listed(
        filename=filename, url="", sha256=A, uploaded="", has_metadata=True, metadata_sha256=None, is_yanked=False
    )
    assert recorded_index.is_kept(file, KEEP) is kept


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param({"sha256": A}, ("somebody's lock", "2025-01-01T00:00:00Z"), id="same-bytes"),
        pytest.param({"sha256": A, "uploaded": "2025-02-02T00:00:00Z"}, ("somebody's lock", "2025-02-02T00:00:00Z"), id="new-time"),
        pytest.param({"sha256": B}, ("the page", ""), id="other-bytes"),
    ],
)  # fmt: skip
def test_source_stays_as_long_as_the_bytes_do(new: dict[str, object], expected: tuple[str, str]) -> None:
    wheel = recorded_index.merged(_wheel(uploaded="2025-01-01T00:00:00Z"), _wheel(source="the page", **new))
    assert (wheel.source, wheel.uploaded) == expected


WIN = "torch-2.7.0+cu128-cp311-cp311-win_amd64.whl"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([_wheel()], [_wheel()], [], id="nothing"),
        pytest.param([], [_wheel()], [(Kind.ADDED, "upload time not known")], id="added"),
        pytest.param([_wheel()], [], [(Kind.REMOVED, "no longer listed")], id="removed"),
        pytest.param([_wheel()], [_wheel(sha256=B)], [(Kind.HASH, f"sha256 {A} → {B}")], id="hash"),
        pytest.param([_wheel()], [_wheel(requires=(Requirement("sympy"),))], [(Kind.REQUIRES, "-filelock  +sympy")], id="requires"),
        pytest.param([_wheel()], [_wheel(uploaded="2025-01-01T00:00:00Z")], [(Kind.TIME, "not known → 2025-01-01T00:00:00Z")], id="time"),
        pytest.param([_wheel()], [_wheel(url="https://other.test/x")], [(Kind.MOVED, f"{_wheel().url} → https://other.test/x")], id="moved"),
        pytest.param([_wheel()], [_wheel(source="another")], [], id="source-alone"),
    ],
)  # fmt: skip
def test_what_changed(
    before: list[RecordedWheel], after: list[RecordedWheel], expected: list[tuple[Kind, str]]
) -> None:
    found = recorded_index.changes(_index(*before), after, {})
    assert found == tuple(Change(kind=kind, filename=WIN, detail=detail) for kind, detail in expected)


def test_why_a_wheel_is_gone_is_said() -> None:
    assert [change.detail for change in recorded_index.changes(_index(_wheel()), [], {WIN: "yanked"})] == ["yanked"]


def _locked(sha256: Sha256, *, kind: str = "wheel cp311-cp311-win_amd64") -> LockedPackage:
    why = f"requirements.txt:1 · {kind}"
    name = canonicalize_name("torch")
    return LockedPackage(name=name, version=Version("2.7.0+cu128"), url="", sha256=sha256, why=why)


@pytest.mark.parametrize(
    ("locked", "indexes", "others"),
    [
        pytest.param(_locked(A), [_index(_wheel())], "", id="as-recorded"),
        pytest.param(_locked(B), [_index(_wheel("torch-2.6.0+cu128-cp311-cp311-win_amd64.whl"))], "", id="other-version"),
        pytest.param(_locked(B, kind="wheel cp312-cp312-win_amd64"), [_index(_wheel())], "", id="other-tag"),
        pytest.param(_locked(B, kind="sdist"), [_index(_wheel())], "", id="sdist"),
        pytest.param(_locked(B), [_index(_wheel()), _index(_wheel(sha256=B), name="cu130")], "", id="as-another-channel-has-it"),
        pytest.param(_locked(C), [_index(_wheel()), _index(_wheel(sha256=B), name="cu130")], f"sha256 {A} in the record cu128, sha256 {B} in the record cu130", id="as-no-channel-has-it"),
    ],
)  # fmt: skip
def test_wheel_that_contradicts_a_record_is_named(
    locked: LockedPackage, indexes: list[RecordedIndex], others: str
) -> None:
    clause = f"{WIN} has sha256 {C}, and under the same name there is {others}"
    assert [str(one) for one in recorded_index.contradictions([locked], indexes)] == ([clause] if others else [])


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        pytest.param(_locked(A), _locked(A), False, id="same"),
        pytest.param(_locked(A), _locked(B, kind="wheel cp312-cp312-win_amd64"), False, id="another-wheel"),
        pytest.param(_locked(A, kind="sdist"), _locked(B, kind="sdist"), False, id="sdist"),
        pytest.param(_locked(A), _locked(B), True, id="other-bytes"),
        pytest.param(_locked(A, kind="wheel py2.py3-none-any"), _locked(B, kind="wheel py3.py2-none-any"), True, id="tags-in-another-order"),
    ],
)  # fmt: skip
def test_wheel_with_other_bytes_than_in_the_lock_before_is_named(
    before: LockedPackage, after: LockedPackage, is_told: bool
) -> None:
    found = recorded_index.replaced([before], [after])
    assert [(one.now, one.known) for one in found] == ([(B, (f"sha256 {A} in the lock before",))] if is_told else [])


def _again(now: Sha256, *before: Sha256) -> RecordedIndex:
    earlier = tuple(EarlierBytes(sha256=one, seen="2026-04-14", source="a lock") for one in before)
    return _index(_wheel(sha256=now, seen="2026-05-11", earlier=earlier))


def test_file_that_was_published_again_is_no_stranger() -> None:
    assert recorded_index.contradictions([_locked(A)], [_again(B, A)]) == ()
    assert recorded_index.replaced([_locked(A)], [_locked(B)], [_again(B, A)]) == ()
    (strange,) = recorded_index.replaced([_locked(A)], [_locked(C)], [_again(B, A)])
    assert strange.now == C
    (strange,) = recorded_index.contradictions([_locked(C)], [_again(B, A)])
    assert strange.known == (
        f"sha256 {A} in the record cu128, seen on 2026-04-14",
        f"sha256 {B} in the record cu128, seen on 2026-05-11",
    )


@pytest.mark.parametrize(
    ("found", "known"),
    [
        pytest.param(B, "the record cu128 knows them: its publisher has published the file again (seen on 2026-05-11)", id="newer"),
        pytest.param(A, "the record cu128 knows them as what the file was before it was published again (seen on 2026-04-14)", id="older"),
        pytest.param(C, "neither the lock nor the record cu128 knows them", id="unknown"),
    ],
)  # fmt: skip
def test_what_other_bytes_are_is_told(found: Sha256, known: str) -> None:
    assert recorded_index.told_of_bytes(WIN, found, [_again(B, A)])[0] == known
    assert recorded_index.told_of_bytes("torch-2.6.0-cp311-cp311-win_amd64.whl", found, [_again(B, A)]) == ("", "")


def test_strange_wheel_is_named_by_its_file_name_however_it_is_spelled() -> None:
    (strange,) = recorded_index.replaced([_locked(A)], [_locked(B)])
    assert strange.is_named(["other-1-py3-none-any.whl", WIN.replace("torch", "Torch")])
    assert not strange.is_named([WIN.replace("cp311", "cp312")])


def _read(text: str) -> RecordedIndex:
    report = Report(file="cu128.toml", text="")
    table = Table(tomllib.loads(text), report)
    index = catalogue_indexes.index(table, "cu128")
    table.finish()
    assert report.problems == []
    return dataclasses.replace(index, origin=Origin(file="cu128.toml", line=1))


def test_record_is_read_back_as_it_was_written() -> None:
    wheels = (
        _wheel("torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl", url="https://other.test/x.whl"),
        _wheel(requires=(Requirement('a>=1; sys_platform == "win32"'),), uploaded="2025-01-01T00:00:00Z"),
        _wheel(
            "torch-2.10.0+cu128-cp311-cp311-win_amd64.whl",
            requires=(),
            seen="2026-05-11",
            earlier=(
                EarlierBytes(sha256=A, seen="2026-04-14", source="a lock"),
                EarlierBytes(sha256=C, source="another"),
            ),
        ),
    )
    text = recorded_index.render(_index(), reversed(wheels), "# Why.\n# And more.")
    assert _read(text) == _index(*wheels)
    assert text.startswith("# Why.\n# And more.\n\n[index]\n")
    assert recorded_index.comment_of(text) == "# Why.\n# And more."
    assert recorded_index.render(_index(), wheels, recorded_index.comment_of(text)) == text
