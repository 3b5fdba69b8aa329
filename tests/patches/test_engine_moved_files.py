"""A file that a patch names and that no longer exists: found by content, or said; and two patches that fight."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from test_engine import patches, run

from patchlock.model.patch import Outcome, Patch
from patchlock.patches.engine import apply
from patchlock.patches.targets import candidates

SELECT = """
op = "replace-expression"
paths = ["lib/zluda.py"]
literal = ["is_zluda"]
pattern = "is_zluda($x)"
replacement = "is_zluda($x) and not is_hip()"
ensure = [{ check = "calls", callee = "is_hip" }]
"""
SITE = b"def pick(x):\n    return is_zluda(x)\n\n\ndef other():\n    return 1\n"
DONE = SITE.replace(b"is_zluda(x)", b"is_zluda(x) and not is_hip()")


def kinds(chosen: tuple[Patch, ...], seen: bytes | None = None, **files: bytes) -> list[tuple[str, str, str]]:
    contents = {PurePosixPath(name.replace("__", "/") + ".py"): data for name, data in files.items()}
    known = {} if seen is None else {PurePosixPath("lib/zluda.py"): seen}
    return [_told(outcome) for outcome in apply(chosen, contents, known).outcomes]


def _told(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.kind.value, str(outcome.path), outcome.detail


def test_file_of_the_same_name_elsewhere_is_patched_there() -> None:
    assert kinds(patches(one=SELECT), arvc__models__zluda=SITE, other=SITE) == [
        ("moved", "arvc/models/zluda.py", "lib/zluda.py no longer exists")
    ]


def test_two_files_of_the_same_name_are_ambiguous() -> None:
    detail = "lib/zluda.py is not there, and this may be what became of it: a/zluda.py:2, b/zluda.py:2"
    assert kinds(patches(one=SELECT), a__zluda=SITE, b__zluda=SITE) == [("ambiguous", "a/zluda.py", detail)]


def test_renamed_file_is_known_by_its_lines() -> None:
    assert kinds(patches(one=SELECT), seen=SITE + b"# old\n", lib__backend=SITE) == [
        ("moved", "lib/backend.py", "lib/zluda.py no longer exists")
    ]


@pytest.mark.parametrize("seen", [None, b"a = 1\nb = 2\nc = 3\n"], ids=["unknown", "unlike"])
def test_file_of_another_name_and_other_lines_is_ambiguous(seen: bytes | None) -> None:
    detail = "lib/zluda.py is not there, and this may be what became of it: lib/backend.py:2"
    assert kinds(patches(one=SELECT), seen=seen, lib__backend=SITE) == [("ambiguous", "lib/backend.py", detail)]


def test_renamed_file_that_has_it_is_known_among_those_that_need_it() -> None:
    assert kinds(patches(one=SELECT), seen=SITE, lib__backend=DONE, lib__other=b"z = is_zluda(y)\n") == [
        ("fixed upstream", "lib/backend.py", "lib/zluda.py no longer exists")
    ]


def test_renamed_file_is_known_though_it_has_no_literal_any_more() -> None:
    chosen = patches(one=SELECT.replace('["is_zluda"]', '["old"]').replace("is_zluda($x)", "old($x)", 1))
    assert kinds(chosen, seen=SITE, lib__backend=DONE) == [
        ("fixed upstream", "lib/backend.py", "lib/zluda.py no longer exists")
    ]


def test_renamed_file_in_which_the_value_stands_elsewhere_has_it_not() -> None:
    heat = SELECT[: SELECT.index("pattern")] + 'pattern = "1.3"\nreplacement = "0.8"\n'
    heat += 'ensure = [{ check = "has-expression", expression = "0.8" }]\n'
    seen = b"import is_zluda\nx = 1\ny = 2\ndef f(heat=1.3): ...\n"
    assert kinds(patches(one=heat), seen=seen, lib__backend=seen.replace(b"1.3", b"1.2") + b"z = scale(0.8)\n") == [
        ("gone", "None", "no file matches lib/zluda.py")
    ]


def test_file_that_is_nowhere_is_gone() -> None:
    assert kinds(patches(one=SELECT), main=b"is_zluda = 1\n") == [
        ("gone", "None", "no file matches lib/zluda.py"),
    ]


def test_moved_file_is_written_and_stays_so() -> None:
    chosen = patches(one=SELECT)
    path = PurePosixPath("new/zluda.py")
    once = apply(chosen, {path: SITE})
    assert [(change.path, change.after) for change in once.changes] == [(path, DONE)]
    assert apply(chosen, {path: DONE}).changes == ()


def test_a_file_that_is_there_is_never_looked_for_elsewhere() -> None:
    chosen = patches(one=SELECT.replace("calls", "no-call"))
    assert [kind for kind, *_ in kinds(chosen, lib__zluda=b"is_zluda = 1\n", a__zluda=SITE)] == ["gone"]


def test_all_files_of_a_kind_are_candidates_where_one_is_missing() -> None:
    chosen = patches(one=SELECT)
    paths = [PurePosixPath(name) for name in ("a.py", "b/zluda.py", "c.txt")]
    assert candidates(chosen, paths) == (PurePosixPath("a.py"), PurePosixPath("b/zluda.py"))
    assert candidates(chosen, [*paths, PurePosixPath("lib/zluda.py")]) == (PurePosixPath("lib/zluda.py"),)


@pytest.mark.parametrize("glob", ["lib/*.py", "lib/z?.py", "**/b.py"])
def test_glob_that_matches_nothing_is_no_missing_file(glob: str) -> None:
    chosen = patches(one=SELECT.replace("lib/zluda.py", glob))
    assert candidates(chosen, [PurePosixPath("a.py"), PurePosixPath("src/zluda.py")]) == ()


@pytest.mark.parametrize(
    ("glob", "matched"),
    [
        ("lib/*.py", ("lib/a.py",)),
        ("lib/?.py", ("lib/a.py",)),
        ("lib/**.py", ("lib/a.py", "lib/b/c.py")),
        ("lib/**", ("lib/a.py", "lib/b/c.py", "lib/d_py")),
        ("**/*.py", ("a.py", "lib/a.py", "lib/b/c.py")),
        ("lib/**/*.py", ("lib/a.py", "lib/b/c.py")),
        ("lib/a.p?", ("lib/a.py",)),
    ],
)
def test_globs_over_folders(glob: str, matched: tuple[str, ...]) -> None:
    paths = [PurePosixPath(name) for name in ("a.py", "lib/a.py", "lib/b/c.py", "lib/d_py")]
    assert tuple(map(str, candidates(patches(one=SELECT.replace("lib/zluda.py", glob)), paths))) == matched


def test_file_that_the_patch_is_for_anyway_is_no_missing_one() -> None:
    chosen = patches(one=SELECT.replace('["lib/zluda.py"]', '["lib/zluda.py", "lib/other.py"]'))
    assert [(kind, path) for kind, path, _ in kinds(chosen, lib__other=SITE)] == [("needed", "lib/other.py")]


@pytest.mark.parametrize(("kept", "kind"), [(3, "moved"), (2, "ambiguous")])
def test_renamed_file_keeps_half_of_its_lines_or_more(kept: int, kind: str) -> None:
    lines = SITE.splitlines(keepends=True)
    seen = b"".join(lines[:kept]) + b"".join(b"other%d\n" % number for number in range(len(lines) - kept))
    [(found, path, _)] = kinds(patches(one=SELECT), seen=seen, lib__backend=SITE)
    assert (found, path) == (kind, "lib/backend.py")


def test_lines_that_are_often_in_a_long_file_count_too() -> None:
    texts = [SITE + b"".join(b"pass\n%s%d = 1\n" % (name, number) for number in range(150)) for name in (b"a", b"b")]
    [(found, path, _)] = kinds(patches(one=SELECT), seen=texts[0], lib__backend=texts[1])
    assert (found, path) == ("moved", "lib/backend.py")


ADD = """
op = "add-file"
paths = ["lib/new.py"]
content = "x = 1\\n"
ensure = [{ check = "contains", text = "x = 1" }]
"""


def test_file_that_a_patch_makes_need_not_be_there() -> None:
    patched = apply(patches(one=ADD), {PurePosixPath("a.py"): b""})
    assert [(str(change.path), change.after) for change in patched.changes] == [("lib/new.py", b"x = 1\n")]
    assert [_told(outcome)[:2] for outcome in patched.outcomes] == [("needed", "lib/new.py")]


CUDA = """
op = "replace-expression"
paths = ["a.py"]
pattern = '"cuda"'
replacement = 'choose("{}")'
ensure = [{{ check = "calls", callee = "choose" }}]
{}
"""


def test_two_patches_that_want_the_same_place_fight() -> None:
    chosen = patches(first=CUDA.format("cpu", ""), second=CUDA.format("mps", ""))
    patched = run(chosen, a_py=b'd = "cuda"\n')
    told = (
        "and this patch finds nothing there; leave one of them out (one of a shared set by `without` in [app] of "
        "app.toml), or, if that is meant, write after = "
    )
    assert patched.failures == (f'second: a.py:1: first changes the same place first, {told}["first"]',)
    assert [change.after for change in patched.changes] == [b'd = choose("cpu")\n']


def test_only_those_that_take_the_place_are_named() -> None:
    other = CUDA.replace('"cuda"', '"mps"')
    chosen = patches(one=CUDA.format("cpu", ""), two=other.format("x", ""), three=CUDA.format("xpu", 'after = ["one"]'))
    assert run(chosen, a_py=b'd = "cuda"\ne = "mps"\n').failures == ()
    chosen = patches(one=CUDA.format("cpu", ""), two=other.format("x", ""), three=CUDA.format("xpu", ""))
    (told,) = run(chosen, a_py=b'd = "cuda"\ne = "mps"\n').failures
    assert told.startswith("three: a.py:1: one changes the same place first, ")
    assert told.endswith('write after = ["one"]')


def test_patch_that_goes_after_another_takes_what_it_left() -> None:
    chosen = patches(first=CUDA.format("cpu", ""), second=CUDA.format("mps", 'after = ["first"]'))
    assert run(chosen, a_py=b'd = "cuda"\n').failures == ()


def test_patches_of_one_file_that_want_different_places_do_not_fight() -> None:
    other = CUDA.replace("'\"cuda\"'", "'\"hip\"'")
    chosen = patches(first=CUDA.format("cpu", ""), second=other.format("mps", ""))
    patched = run(chosen, a_py=b'd = "cuda"\ne = "hip"\n')
    assert patched.failures == ()
    assert [change.after for change in patched.changes] == [b'd = choose("cpu")\ne = choose("mps")\n']
