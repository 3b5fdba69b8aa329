"""Helpers for the tests of `optional-import`: apply it, see that it settles, and execute what comes out."""

from __future__ import annotations

import re
import sys
from pathlib import PurePosixPath
from typing import Any

import pytest

from patchlock.model.patch import Located
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.optional_import._op import OptionalImport

DEEPSPEED = OptionalImport(package="deepspeed")


@pytest.fixture(autouse=True)
def no_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every import of deepspeed fail, whatever is installed."""
    monkeypatch.setitem(sys.modules, "deepspeed", None)


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("a.py"), data)
    assert isinstance(source, SourceText)
    return source


def locate(text: str) -> Located:
    return DEEPSPEED.locate(read(text.encode()))


def patched(data: bytes, op: OptionalImport = DEEPSPEED) -> bytes:
    """Apply the op, and see that it settles: the second time there is nothing to edit."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    assert located.edits
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    assert len(again.settled) >= len(located.sites)
    return result


def without_class(text: str) -> str:
    """Put `<class>` for the class that was inserted, and `Absent` for its name."""
    shortened, count = re.subn(
        r"class _PatchlockAbsent:.*?: False((?:\r\n|\n|\r){3})", "<class>", text, flags=re.DOTALL
    )
    assert count == 1
    return shortened.replace("_PatchlockAbsent", "Absent").replace("_patchlock_error", "error")


def run(data: bytes) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "patched"}
    exec(compile(data, "patched.py", "exec", dont_inherit=True), names)
    return names


def fails_unpatched(data: bytes) -> None:
    with pytest.raises(ImportError):
        run(data)
