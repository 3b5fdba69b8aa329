"""The words of patches and checks: each names a class, and nothing is imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT

from patchlock.model.vocabulary import Vocabulary
from patchlock.patches.ops import OPS, PYTHON_OPS
from patchlock.patches.postconditions import ENSURES

BOTH = [pytest.param(OPS, "locate", id="ops"), pytest.param(ENSURES, "problems", id="ensures")]


@pytest.mark.parametrize(("words", "method"), BOTH)
def test_each_word_names_a_class_of_its_own_that_can_do_the_work(words: Vocabulary[object], method: str) -> None:
    assert len(words) > 10
    for word in words:
        assert callable(getattr(words[word], method))
        assert words.word_of(words[word]) == word


def test_unknown_word_and_unnamed_class_are_told() -> None:
    assert "no-such-op" not in OPS
    assert OPS.word_of(int) is None
    with pytest.raises(KeyError):
        OPS["no-such-op"]


def test_ops_on_python_are_ops() -> None:
    assert set(OPS) > PYTHON_OPS


def test_a_word_imports_its_own_module_alone() -> None:
    code = (
        "import sys; from patchlock.patches.ops import OPS; before = len(sys.modules); list(OPS); 'codemod' in OPS;"
        "assert len(sys.modules) == before; OPS['replace-text'];"
        "print(sorted(m for m in sys.modules if m.startswith('patchlock.patches.ops.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "installer")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "patchlock.patches.ops._text" in done.stdout
    assert "_device" not in done.stdout
