"""uv: a failure without a better name is told by uv's own last lines, not by a long command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.core import uv
from patchlock.model.errors import CommandFailedError, FileAccessError


def test_command_is_named_by_its_first_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError) as caught:
        uv.run("pip", "compile", "gone.txt", "--no-config", "--offline", cwd=tmp_path, installing=False)
    first, *words = str(caught.value).splitlines()
    assert first == "uv failed with exit code 2 (uv pip compile)"
    assert "gone.txt" in words[-1]


@pytest.mark.parametrize(("inside", "reason"), [("", "file exists"), ("folder", "not a directory")])
def test_cache_that_is_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / inside
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    with pytest.raises(FileAccessError) as caught:
        uv.run("python", "find", "--no-config", cwd=tmp_path, installing=True)
    assert str(caught.value) == (
        f"uv cannot use its cache: {reason} ({cache}); correct the folder's permissions, or choose another one with "
        "UV_CACHE_DIR"
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        pytest.param(
            (
                "error: Failed to initialize cache at `closed`",
                "  cause: failed to open file `/home/ann/closed/CACHEDIR.TAG`: Permission denied (os error 13)",
            ),
            "its cache",
            id="empty",
        ),
        pytest.param(
            (
                "error: Could not acquire lock",
                "  cause: Could not create temporary file",
                '  cause: Permission denied (os error 13) at path "/home/ann/closed/.tmp5M9OIH"',
            ),
            "a folder, its cache or that of its Pythons",
            id="used before",
        ),
    ],
)
def test_cache_that_may_not_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], what: str
) -> None:
    """As uv 0.13.8 says it to a user who may read the folder alone."""
    monkeypatch.setenv("UV_CACHE_DIR", "/home/ann/closed")
    named = uv.classify_error(CommandFailedError("uv failed with exit code 2", where="uv python find", evidence=words))
    assert isinstance(named, FileAccessError)
    assert named.what == f"uv cannot use {what}: permission denied"
    assert named.where == "/home/ann/closed"
