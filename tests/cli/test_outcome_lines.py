"""How `plan` shows outcomes, by place and in short, and the size of a download."""

from __future__ import annotations

from pathlib import PurePosixPath

from patchlock.cli._plan import download_text, outcome_counts, outcome_lines, outcome_summary
from patchlock.environments.package_sizes import PackageSize
from patchlock.model.patch import NOTHING, Outcome, OutcomeKind, Site

KIND = OutcomeKind


def outcome(patch: str, kind: KIND, path: str = "", *lines: int, detail: str = "", op: str = "op") -> Outcome:
    sites = tuple(Site(line=line, text="") for line in lines)
    return Outcome(
        patch=patch, op=op, kind=kind, path=PurePosixPath(path) if path else None, sites=sites, detail=detail
    )


OUTCOMES = (
    outcome("helper", KIND.NEEDED, "helper.py", 1, op="add-file"),
    outcome("device", KIND.NEEDED, "app.py", 7, 3, 3),
    outcome("device", KIND.NEEDED, "b.py", 1),
    outcome("device", KIND.FIXED_UPSTREAM, "helper.py", 1, 1),
    outcome("device", KIND.FIXED_UPSTREAM, "c.py", 2),
    outcome("idle", KIND.GONE, detail=NOTHING),
    outcome("vague", KIND.AMBIGUOUS, "d.py", 5, detail="two places"),
    outcome("waiting", KIND.DRIFTED, "e.py", 5, detail="waits for the conflict in e.py"),
)


def test_places_are_listed_once_and_without_files_that_patches_make() -> None:
    assert outcome_lines(OUTCOMES, is_done=True).splitlines() == [
        "helper   applied        helper.py:1",
        "device   applied        app.py:3,7",
        "device   applied        b.py:1",
        "device   already fixed  c.py:2",
        "idle     not needed here",
        "vague    ambiguous      d.py:5 (two places)",
        "waiting  waits for the conflict in e.py",
    ]
    assert "idle     finds nothing" in outcome_lines(OUTCOMES, is_own=True)


def test_summary_counts_files_and_keeps_what_has_not_gone_well() -> None:
    assert outcome_summary(OUTCOMES).splitlines() == [
        "helper   needed in helper.py",
        "device   needed in 2 files, already fixed in c.py",
        "idle     not needed here",
        "vague    ambiguous  d.py:5 (two places)",
        "waiting  waits for the conflict in e.py",
    ]


def test_a_patch_is_applied_where_it_changes_only_what_upstream_has_not_fixed() -> None:
    part = outcome("device", KIND.PARTLY_FIXED, "c.py", 2)
    assert outcome_summary((part,), is_done=True) == "device  applied in c.py"
    assert outcome_summary((part,)) == "device  partly fixed in c.py"


def test_plan_counts_patches_and_names_what_has_not_gone_well() -> None:
    more = (*OUTCOMES, outcome("lines", KIND.PARTLY_FIXED, "b.py", 2), outcome("old", KIND.FIXED_UPSTREAM, "f.py", 1))
    assert outcome_counts(more).splitlines() == [
        "2 needed, 1 partly fixed, 1 already fixed, 1 not needed here; 3 files to change",
        "vague    ambiguous  d.py:5 (two places)",
        "waiting  waits for the conflict in e.py",
    ]
    assert outcome_counts(OUTCOMES[:1]) == "1 needed; 1 file to change"
    assert outcome_counts(OUTCOMES[:1], is_done=True) == "1 needed; 1 file changed"
    assert outcome_counts(()) == ""


def test_a_download_is_bounded_only_where_every_size_is_known() -> None:
    assert download_text(PackageSize(bytes=2048, unknown=0)) == "up to 2.0 KiB"
    told = download_text(PackageSize(bytes=2048, unknown=2, unnamed=("torch", "torchaudio")))
    assert told == "2.0 KiB plus torch and torchaudio, whose server gave no size"
    many = download_text(PackageSize(bytes=0, unknown=5, unnamed=("a", "b", "c", "d", "e")))
    assert many == "a, b, c and 2 more, whose server gave no size"
