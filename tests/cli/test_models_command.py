"""How far a download is, in words."""

from __future__ import annotations

import pytest

from patchlock.cli._models import how_far


@pytest.mark.parametrize(
    ("done", "size", "came", "seconds", "text"),
    [
        (500, 0, 500, 0.1, "500 bytes"),
        (1_500_000, 3_000_000_000, 1_500_000, 0.5, "1.5 MB of 3.0 GB"),
        (1_000_000_000, 3_000_000_000, 500_000_000, 10.0, "1.0 GB of 3.0 GB, 50.0 MB/s, 0:40 left"),
        (1_000_000_000, 9_000_000_000, 1_000_000_000, 1_000.0, "1.0 GB of 9.0 GB, 1.0 MB/s, 2:13:20 left"),
        (3_000, 3_000, 3_000, 2.0, "3.0 kB of 3.0 kB, 1.5 kB/s"),
        (3_000, 0, 3_000, 2.0, "3.0 kB, 1.5 kB/s"),
    ],
)
def test_rate_and_time_left_are_those_of_this_run(done: int, size: int, came: int, seconds: float, text: str) -> None:
    assert how_far(done, size, came, seconds) == text
