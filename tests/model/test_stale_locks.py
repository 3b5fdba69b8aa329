"""A lock is stale for every single reason, and each is told."""

from __future__ import annotations

import pytest
from test_lockfile import COMMIT, LOCK, A, C

from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import staleness_reasons

OTHER = CommitId("f" * 40)


def _stale(commit: CommitId = COMMIT, python: str = "3.11", *, without: str = "", **changes: Sha256) -> tuple[str, ...]:
    inputs = {file: digest for file, digest in LOCK.provenance.inputs.items() if file != without} | changes
    return staleness_reasons(LOCK, commit=commit, python=python, inputs=inputs)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param(_stale(), (), id="fresh"),
        pytest.param(_stale(without="upstream:requirements.txt"), (), id="upstream-is-not-here"),
        pytest.param(
            _stale(commit=OTHER),
            ("upstream is at commit ffffffffffff, the lock was made for 0123456789ab",),
            id="commit",
        ),
        pytest.param(
            _stale(python="3.12"), ("the profile names Python 3.12, the lock was made for 3.11",), id="python"
        ),
        pytest.param(_stale(without="profiles/cpu.toml"), ("profiles/cpu.toml is no longer used",), id="unused"),
        pytest.param(
            _stale(**{"profiles/indexes/cpu.toml": A}),
            ("profiles/indexes/cpu.toml was not used when the lock was made",),
            id="new",
        ),
        pytest.param(
            _stale(**{"profiles/cpu.toml": C}), ("profiles/cpu.toml has changed since the lock was made",), id="changed"
        ),
        pytest.param(
            _stale(**{"upstream:requirements.txt": A}),
            ("upstream's requirements.txt has changed since the lock was made",),
            id="upstream-changed",
        ),
        pytest.param(
            _stale(OTHER, "3.12", without="profiles/cpu.toml", **{"a.toml": A, "patches/demo/app.toml": A}),
            (
                "upstream is at commit ffffffffffff, the lock was made for 0123456789ab",
                "the profile names Python 3.12, the lock was made for 3.11",
                "a.toml was not used when the lock was made",
                "patches/demo/app.toml has changed since the lock was made",
                "profiles/cpu.toml is no longer used",
            ),
            id="all",
        ),
    ],
)
def test_every_reason_is_told(reasons: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert reasons == expected
