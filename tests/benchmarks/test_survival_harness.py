"""The measurement of survival, on a scripted history in a real git repository: ours, the peers, and the verdicts."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest
from histories import generic
from histories.apps import Unjudged
from histories.judge_imports import ImportsWithout
from histories.measure import measure
from histories.repository import Repository, environment, find
from histories.states import Row, states
from histories.together import together
from test_engine import patches

OPTIONAL = """
op = "optional-import"
paths = ["**/*.py"]
literal = ["deepspeed"]
package = "deepspeed"
ensure = [{ check = "imports-without", package = "deepspeed" }]
"""
TRAIN = "import deepspeed\n\n\ndef train():\n    deepspeed.initialize()\n"
STEPS: tuple[dict[str, str | None], ...] = (
    {"README": "nothing yet\n"},
    {"a/train.py": TRAIN},
    {"README": "the same target\n"},
    {"a/train.py": "import os\n" + TRAIN},
    {"a/more.py": "from deepspeed import zero\n"},
    {"a/train.py": None, "b/train.py": "import os\n" + TRAIN},
    {"b/train.py": "import os\nif:\n" + TRAIN},
    {"b/train.py": "import os\n" + TRAIN + "\n\ndeepspeed.init()\n"},
    {"b/train.py": "import os\n" + TRAIN, "a/more.py": "zero = None  # deepspeed is gone\n"},
    {"b/train.py": "import os\n"},
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "owner+name"
    _git(tmp_path, "init", "--quiet", "--initial-branch=main", str(folder))
    for step in STEPS:
        for name, text in step.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", "step")
    return tmp_path


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, env=environment(), capture_output=True)


def _row(text: str = OPTIONAL, **changes: object) -> Row:
    [patch] = patches(optional=text)
    values = {
        "repository": "owner/name",
        "patch": patch,
        "judge": ImportsWithout(package="deepspeed"),
        "scope": r".*\.py",
    }
    return Row(**values | changes)


def test_clone_is_found_by_owner_and_name(clone: Path) -> None:
    assert find(clone, "owner/name") == clone / "owner+name" / ".git"
    assert find(clone, "owner/other") is None


def test_every_state_has_its_verdict(clone: Path) -> None:
    with Repository(find(clone, "owner/name")) as repository:
        found = states(_row(), repository, repository.commits())
    assert [(state.verdict.kind, len(state.commits)) for state in found] == [
        ("no target", 1),
        ("right", 2),
        ("right", 1),
        ("right", 1),
        ("right", 1),
        ("right", 1),
        ("refused", 1),
        ("right", 1),
        ("no target", 1),
    ]
    assert [state.verdict.why.partition(":")[0] for state in found if state.verdict.kind == "refused"] == [
        "required at import",
    ]


def test_patch_that_misses_what_the_judge_sees_is_silent(clone: Path) -> None:
    narrow = OPTIONAL.replace('["**/*.py"]', '["a/*.py"]')
    with Repository(find(clone, "owner/name")) as repository:
        found = states(_row(narrow), repository, repository.commits())
    assert [state.verdict.kind for state in found].count("silent") == 3
    assert "b/train.py" in next(state.verdict.why for state in found if state.verdict.kind == "silent")


def test_peers_are_measured_over_the_same_updates(clone: Path) -> None:
    measured = measure(_row(), find(clone, "owner/name"), with_peers=True)
    assert measured.counted == {"no target": 2, "right": 7, "refused": 1}
    first = {(t.peer, t.kind) for t in measured.trials if t.lag == 1}
    assert ("diff", "silent") in first, "the new file of the fifth step is unknown to a diff"
    assert ("fork", "silent") in first
    assert {peer for peer, _ in first} == {"diff", "fork"}
    assert sum(t.lag == 1 and t.peer == "diff" for t in measured.trials) == sum(
        count for (lag, _), count in measured.ours.items() if lag == 1
    )
    assert measured.ours[1, "silent"] == 0


def test_each_file_alone_tells_needless_refusals(clone: Path) -> None:
    with Repository(find(clone, "owner/name")) as repository:
        found = states(_row(by_file=True), repository, repository.commits())
    refused = [state.verdict.why for state in found if state.verdict.kind == "refused"]
    assert refused == ["required at import: `deepspeed.init` is called while the file is imported"]
    assert all(len(state.files) == 1 for state in found)


def test_generic_rows_have_names_of_their_own() -> None:
    names = [row.name for row in generic.rows()]
    assert len(names) == len(set(names)) > 20


@pytest.mark.parametrize(
    ("is_advisory", "counted"),
    [(True, {"right": 2, "left out": 7, "refused": 1}), (False, {"right": 2, "refused": 8})],
    ids=["advisory", "required"],
)
def test_whole_set_is_refused_for_required_patches_alone(
    clone: Path, is_advisory: bool, counted: dict[str, int]
) -> None:
    comfort = """
op = "replace-text"
paths = ["**/train.py"]
old = "deepspeed.initialize"
new = "deepspeed.begin"
ensure = [{ check = "lacks", text = "import" }]
"""
    (patch,) = patches(comfort=f"advisory = {str(is_advisory).lower()}\n{comfort}")
    comforted = dataclasses.replace(_row(), patch=patch, judge=Unjudged(), scope="(?!)")
    assert together([_row(), comforted], find(clone, "owner/name")).counted == counted
