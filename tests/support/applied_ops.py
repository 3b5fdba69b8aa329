"""Ops applied to a file of one Python module, and what must hold of each: the second time there is nothing to edit."""

from __future__ import annotations

from pathlib import PurePosixPath

from patchlock.model.patch import Located, Op
from patchlock.model.text_files import SourceText, decode, encode, splice


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("a.py"), data)
    assert isinstance(source, SourceText)
    return source


def locate(op: Op, text: str) -> Located:
    return op.locate(read(text.encode()))


def patched(op: Op, data: bytes) -> bytes:
    """Apply an op, and see that it settles."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    assert located.edits
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert (again.edits, again.sites, again.refusals) == ((), (), ())
    return result


def patched_and_settled(op: Op, data: bytes) -> bytes:
    """Apply an op that also finds again what it made."""
    result = patched(op, data)
    assert op.locate(read(result)).settled
    return result
