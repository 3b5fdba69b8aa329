"""What patches find in a file is remembered by its content, and asked anew when anything that it depends on changes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.core import code_digest
from patchlock.model.patch import Ensure, Located, Op, OutcomeKind, Patch, Patched
from patchlock.model.text_files import SourceText
from patchlock.patches import engine, evaluation
from patchlock.worktree import patch_cache

CPU = """
[[patch]]
id = "cpu"
why = "w"
source = "s"
op = "replace-expression"
paths = ["*.py", "*.ipynb"]
pattern = '"cuda"'
replacement = '"cpu"'
ensure = [{ check = "no-string", value = "cuda" }]

[[patch]]
id = "torch"
why = "w"
source = "s"
op = "set-requirement"
paths = ["requirements.txt"]
name = "torch"
specifier = "==2.1"
ensure = [{ check = "requirement", name = "torch", specifier = "==2.1" }]
"""
FILES = {
    PurePosixPath("a.py"): b'x = "cuda"\n',
    PurePosixPath("b.py"): b'y = "cpu"\n',
    PurePosixPath("requirements.txt"): b"torch==1.0\n",
}


def read(text: str = CPU) -> tuple[Patch, ...]:
    report = Report(file="app.toml", text="")
    patches = _apps_and_profiles.patches(Table(tomllib.loads(text), report), None)
    assert report.problems == []
    return patches


PATCHES = read()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name each file that an op or a postcondition really looks at."""
    looked: list[str] = []
    locate, problems = evaluation.Direct.locate, evaluation.Direct.problems

    def counting_locate(self: evaluation.Direct, op: Op, source: SourceText) -> Located:
        looked.append(str(source.path))
        return locate(self, op, source)

    def counting_problems(self: evaluation.Direct, ensure: Ensure, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        looked.append(str(path))
        return problems(self, ensure, path, data)

    monkeypatch.setattr(evaluation.Direct, "locate", counting_locate)
    monkeypatch.setattr(evaluation.Direct, "problems", counting_problems)
    return looked


def apply(
    cache: Path, patches: tuple[Patch, ...] = PATCHES, files: dict[PurePosixPath, bytes] | None = None
) -> Patched:
    with patch_cache.evaluator(cache) as evaluator:
        return engine.apply(patches, files or FILES, evaluator=evaluator)


def kept(cache: Path) -> list[Path]:
    return sorted((cache / patch_cache.FOLDER).glob("*/*.json"))


def test_second_answer_is_the_first_and_nothing_is_asked(tmp_path: Path, asked: list[str]) -> None:
    first = apply(tmp_path)
    assert first == engine.apply(PATCHES, FILES)
    assert [change.path.name for change in first.changes] == ["a.py", "requirements.txt"]
    asked.clear()
    assert apply(tmp_path) == first
    assert asked == []


def test_only_the_file_that_changed_is_asked_again(tmp_path: Path, asked: list[str]) -> None:
    apply(tmp_path)
    asked.clear()
    files = {**FILES, PurePosixPath("b.py"): b'y = "cuda:0", "cuda"\n'}
    assert apply(tmp_path, files=files) == engine.apply(PATCHES, files)
    asked.clear()
    apply(tmp_path, files={**files, PurePosixPath("c.py"): b'z = "cuda"\n'})
    assert set(asked) == {"c.py"}


def test_the_same_bytes_at_another_path_are_another_file(tmp_path: Path, asked: list[str]) -> None:
    apply(tmp_path)
    asked.clear()
    apply(tmp_path, files={**FILES, PurePosixPath("c.py"): FILES[PurePosixPath("a.py")]})
    assert set(asked) == {"c.py"}


def test_a_patch_with_other_words_is_asked(tmp_path: Path, asked: list[str]) -> None:
    apply(tmp_path)
    asked.clear()
    text = CPU.replace('"cpu"', '"mps"', 2).replace('id = "mps"', 'id = "cpu"')
    changed = apply(tmp_path, read(text))
    assert {change.path.name: change.after for change in changed.changes}["a.py"] == b'x = "mps"\n'
    assert "requirements.txt" not in asked


def test_other_code_of_ours_asks_again(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    apply(tmp_path)
    assert patch_cache.outdated_folders(tmp_path) == ()
    asked.clear()
    monkeypatch.setattr(code_digest, "digest", lambda: "0" * 64)
    patch_cache._made_by.cache_clear()
    try:
        apply(tmp_path)
        assert set(asked) == {"a.py", "b.py", "requirements.txt"}
        (old,) = patch_cache.outdated_folders(tmp_path)
        assert len(list((tmp_path / patch_cache.FOLDER).iterdir())) == 2
    finally:
        patch_cache._made_by.cache_clear()
    assert old.is_dir()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data.replace(b"[1,", b"[2,").replace(b"[]", b"[ ]"), id="words"),
        pytest.param(lambda _: b"\xff\n{}", id="no text"),
    ],
)
def test_damage_is_no_harm(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    first = apply(tmp_path)
    for file in kept(tmp_path):
        data = file.read_bytes()
        file.write_bytes(damage(data))
        assert file.read_bytes() != data
    assert apply(tmp_path) == first


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "5", "null", "{}", '{"located": [], "holds": []}', '{"located": {}, "holds": 5}', "[" * 100_000),
        *('{"located": {"RULE": 1}, "holds": []}', '{"located": {"RULE": [[["a", 1, ""]], [], []]}, "holds": []}'),
    ],
)
def test_what_is_sealed_and_no_answers_is_asked_again(tmp_path: Path, asked: list[str], text: str) -> None:
    first = apply(tmp_path)
    for file in kept(tmp_path):
        for rule in json.loads(file.read_text().partition("\n")[2])["located"]:
            said = text.replace("RULE", rule)
            file.write_text(f"{hashlib.sha256(said.encode()).hexdigest()}\n{said}\n")
    asked.clear()
    assert apply(tmp_path) == first
    assert set(asked) == {"a.py", "b.py", "requirements.txt"}
    asked.clear()
    apply(tmp_path)
    assert asked == []


def test_a_file_that_cannot_be_written_keeps_no_other_from_it(tmp_path: Path, asked: list[str]) -> None:
    files = {PurePosixPath(f"{n}.py"): f'x = "cuda"  # {n}\n'.encode() for n in range(9)}
    first = apply(tmp_path, files=files)
    first_of_nine = kept(tmp_path)[0]
    for file in kept(tmp_path):
        file.unlink()
    first_of_nine.mkdir()
    assert apply(tmp_path, files=files) == first
    asked.clear()
    assert apply(tmp_path, files=files) == first
    assert len(set(asked)) == 1


def test_a_problem_is_asked_again(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (ensure,) = read(CPU)[0].ensures
    path, data = next(iter(FILES)), b"x = 1\n"
    with monkeypatch.context() as patched:  # as when memory runs out while a file is parsed
        patched.setattr(evaluation.Direct, "problems", lambda *_: ("it does not parse: out of memory",))
        with patch_cache.evaluator(tmp_path) as evaluator:
            assert evaluator.problems(ensure, path, data) == ("it does not parse: out of memory",)
    for looked in (["a.py"], []):
        asked.clear()
        with patch_cache.evaluator(tmp_path) as evaluator:
            assert evaluator.problems(ensure, path, data) == ()
        assert asked == looked


def test_a_refusal_is_asked_again(tmp_path: Path, asked: list[str]) -> None:
    files = {PurePosixPath("a.py"): b'x = ("cuda"\n'}
    for _ in range(2):
        asked.clear()
        first, *_ = apply(tmp_path, files=files).outcomes
        assert first.kind is OutcomeKind.UNPARSABLE
        assert asked == ["a.py"]


def test_answers_are_kept_when_the_road_ends_early(tmp_path: Path, asked: list[str]) -> None:
    def end_early() -> None:
        with patch_cache.evaluator(tmp_path) as evaluator:
            engine.apply(PATCHES, FILES, evaluator=evaluator)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        end_early()
    asked.clear()
    apply(tmp_path)
    assert asked == []


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert apply(tmp_path / "file") == engine.apply(PATCHES, FILES)


def test_an_op_that_cannot_be_told_in_words_is_asked_each_time(tmp_path: Path) -> None:
    looked: list[PurePosixPath] = []

    class Foreign:
        def locate(self, source: SourceText) -> Located:
            looked.append(source.path)
            return PATCHES[0].op.locate(source)

    foreign = dataclasses.replace(PATCHES[0], op=Foreign())
    assert apply(tmp_path, (foreign,)) == apply(tmp_path, PATCHES[:1])
    once = len(looked)
    apply(tmp_path, (foreign,))
    assert len(looked) == 2 * once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab",), ("a", "b")),
        ("1", 1),
        ((), frozenset()),
        (True, 1),
        (PurePosixPath("a"), "a"),
        ({"a": "b"}, ("a", "b")),
    ],
)
def test_different_values_are_written_differently(one: object, other: object) -> None:
    assert patch_cache._canonical(one) != patch_cache._canonical(other)


def test_equal_values_are_written_alike() -> None:
    one, other = (patch_cache._canonical(frozenset(words)) for words in (["b", "a", "c"], ["c", "b", "a"]))
    assert one == other
    assert all(
        patch_cache._canonical(patch.op) == patch_cache._canonical(again.op)
        for patch, again in zip(PATCHES, read(), strict=True)
    )
