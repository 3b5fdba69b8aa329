"""A clone that belongs to somebody else is refused as the user's own git refuses it, and trusted as that trusts it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from test_clone_patches import PATCHED, apply, clone, read, upstream

from patchlock.model.errors import UpstreamError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"),
]

__all__ = ["clone", "upstream"]


@pytest.mark.parametrize("part", ["", ".git"], ids=["folder", "repository"])
def test_clone_of_another_owner_is_refused_until_git_trusts_it(clone: Path, part: str) -> None:
    os.chown(clone / part, 12345, 12345)
    with pytest.raises(UpstreamError) as caught:
        apply(clone)
    assert (
        caught.value.what == "the clone belongs to somebody else, whose settings could run programs, so git refuses it"
    )
    assert caught.value.remedy == f"if you trust it: `git config --global --add safe.directory {clone}`"
    assert '"cuda"' in read(clone)
    subprocess.run(shlex.split(caught.value.remedy.split("`")[1]), check=True)
    apply(clone)
    assert read(clone) == PATCHED
