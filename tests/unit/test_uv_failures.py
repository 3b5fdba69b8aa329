"""uv: a failure without a better name is told by uv's own last lines, not by a long command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock import uv
from patchlock.errors import CommandFailedError


def test_command_is_named_by_its_first_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError) as caught:
        uv.run("pip", "compile", "gone.txt", "--no-config", "--offline", cwd=tmp_path, installing=False)
    first, *words = str(caught.value).splitlines()
    assert first == "uv failed with exit code 2 (uv pip compile)"
    assert "gone.txt" in words[-1]
