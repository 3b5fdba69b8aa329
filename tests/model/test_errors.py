"""Errors: one code for each class, all documented; a message has what, where, what to do, and evidence."""

from __future__ import annotations

import errno
import re

import pytest
from conftest import ROOT

from patchlock.model import errors
from patchlock.model.errors import (
    BugError,
    CatalogueError,
    DiskFullError,
    FileAccessError,
    PatchError,
    PatchlockError,
    Problem,
    UsageError,
    from_os,
    nearest,
)

CLASSES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, PatchlockError) and found is not PatchlockError
]


def _documented() -> dict[str, int]:
    """Give code → exit code, as docs/errors.md has them."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a code is documented twice"
    return {code: int(exit_code) for code, exit_code in rows}


def test_each_class_has_a_code_of_its_own() -> None:
    assert len(CLASSES) > 20
    own = [vars(found).get("code") for found in CLASSES]
    assert None not in own
    assert sorted(own) == sorted(set(own))


def test_every_code_is_documented_and_no_other() -> None:
    assert _documented() == {found.code: found.exit_code for found in CLASSES}


def test_every_error_class_of_the_package_is_in_errors() -> None:
    package = ROOT / "installer" / "patchlock"
    strays = [
        f"{path.relative_to(package)}: {name}"
        for path in package.rglob("*.py")
        for name in re.findall(r"^ *class ([A-Za-z]\w*Error\b\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if path.name != "errors.py"
    ]
    assert strays == []


def test_only_usage_bugs_and_what_was_not_checked_have_exit_codes_of_their_own() -> None:
    others = {found: found.exit_code for found in CLASSES if found.exit_code != 1}
    assert others == {UsageError: 2, BugError: 2, errors.NotCheckedError: 3, errors.InterruptedCommandError: 130}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        pytest.param(PatchError("it is wrong"), "it is wrong", id="what"),
        pytest.param(PatchError("it is wrong", where="a:1"), "it is wrong (a:1)", id="where"),
        pytest.param(PatchError("it is wrong", remedy="run `x`"), "it is wrong; run `x`", id="remedy"),
        pytest.param(
            PatchError("it is wrong", where="a:1", remedy="run `x`", evidence=["one", "two"]),
            "it is wrong (a:1); run `x`\n  one\n  two",
            id="all",
        ),
    ],
)
def test_message_has_three_parts_and_evidence(error: PatchlockError, sentence: str) -> None:
    assert str(error) == sentence


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(
            ("f.toml", 3, "app.title", "it is empty", "write it"), "f.toml:3: app.title: it is empty; write it"
        ),
        pytest.param(("f.toml", 0, "app.title", "it is empty", ""), "f.toml: app.title: it is empty"),
        pytest.param(("f.toml", 3, "", "it is not TOML", ""), "f.toml:3: it is not TOML"),
    ],
    ids=["all", "no-line", "no-key"],
)
def test_problem_names_file_line_and_key(problem: tuple[str, int, str, str, str], sentence: str) -> None:
    file, line, key, what, remedy = problem
    assert str(Problem(file=file, line=line, key=key, what=what, remedy=remedy)) == sentence


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "the catalogue has 1 mistake\n  f:1: wrong"), (2, "the catalogue has 2 mistakes\n  f:1: wrong\n  f:2: wrong")],
    ids=["one", "two"],
)
def test_catalogue_error_counts_and_lists_its_problems(count: int, sentence: str) -> None:
    problems = [Problem(file="f", line=n + 1, key="", what="wrong", remedy="") for n in range(count)]
    error = CatalogueError(iter(problems))
    assert error.problems == tuple(problems)
    assert str(error) == sentence


def _on_windows(number: int, path: str) -> OSError:
    error = OSError(errno.EINVAL, "Not told", path)
    error.winerror = number  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("os_error", "kind", "sentence"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", "/a"),
            DiskFullError,
            "the disk is full while patchlock was writing (/a); free some room and run the same command again",
            id="full",
        ),
        pytest.param(
            OSError(errno.EDQUOT, "Disk quota exceeded", "/a"),
            DiskFullError,
            "the disk is full while patchlock was writing (/a); free some room and run the same command again",
            id="quota",
        ),
        pytest.param(
            _on_windows(112, "/a"),
            DiskFullError,
            "the disk is full while patchlock was writing (/a); free some room and run the same command again",
            id="full-on-windows",
        ),
        pytest.param(
            _on_windows(5, "/a"),
            FileAccessError,
            "a file cannot be read or written: not told (/a); "
            "correct its permissions or choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR",
            id="other-on-windows",
        ),
        pytest.param(
            PermissionError(errno.EACCES, "Permission denied", "/a"),
            FileAccessError,
            "a file cannot be read or written: permission denied (/a); "
            "correct its permissions or choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR",
            id="permission",
        ),
        pytest.param(
            FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"),
            FileAccessError,
            "a file cannot be read or written: no such file or directory (/a); if another patchlock is at work, wait for "
            "it to end; then run the same command again",
            id="missing",
        ),
        pytest.param(
            OSError("strange"),
            FileAccessError,
            "a file cannot be read or written: strange; "
            "see what is there, or choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR",
            id="no-number",
        ),
    ],
)
def test_refusal_of_the_operating_system_is_a_sentence(
    os_error: OSError, kind: type[PatchlockError], sentence: str
) -> None:
    error = from_os(os_error)
    assert type(error) is kind
    assert str(error) == sentence


@pytest.mark.parametrize(
    ("name", "known", "remedy"),
    [
        pytest.param("instal", ["list", "install"], 'did you mean "install"?', id="near"),
        pytest.param("tts", ["demo", "tts-service", "xtts"], 'did you mean "tts-service"?', id="begins-with-it"),
        pytest.param("webui", ["a-webui", "b-webui"], 'did you mean "a-webui" or "b-webui"?', id="part-of-several"),
        pytest.param("gpu", ["cpu", "cuda"], "known: cpu, cuda", id="another-word"),
        pytest.param("XTTS-WebUI", ["demo", "xtts-webui"], 'did you mean "xtts-webui"?', id="in-capitals"),
        pytest.param("LICENCE", ["LICENSE", "demo"], 'did you mean "LICENSE"?', id="known-in-capitals"),
        pytest.param("zzz", ["b", "a"], "known: a, b", id="none-near"),
        pytest.param("zzz", [], "", id="none-known"),
    ],
)
def test_nearest_known_word(name: str, known: list[str], remedy: str) -> None:
    assert nearest(name, known) == remedy
