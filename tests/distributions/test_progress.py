"""How far downloads are, in one line: bytes, speed, time left, names."""

from __future__ import annotations

import pytest

from patchlock.distributions import fetching
from patchlock.distributions.fetching import Moment, Transfer
from patchlock.environments import fill


def _file(name: str, done: int, size: int | None, *, is_running: bool = True) -> Transfer:
    return Transfer(name=name, size=size, done=done, is_running=is_running)


MB = 1_000_000


@pytest.mark.parametrize(
    ("files", "speed", "said"),
    [
        pytest.param(
            [
                _file("nvidia-cudnn-cu12", 100 * MB, 571 * MB),
                _file("torch", 200 * MB, 865 * MB),
                _file("av", 12 * MB, 1511 * MB, is_running=False),
            ],
            24.1e6,
            "312 of 2,947 MB, 24.1 MB/s, 1 min 49 s left (torch, nvidia-cudnn-cu12)",
            id="as in the manual",
        ),
        pytest.param([_file("av", 0, 12 * MB)], None, "0 of 12 MB (av)", id="just begun"),
        pytest.param([_file("a", 100_000, MB)], 1e6, "0.1 of 1.0 MB, 1.0 MB/s, 1 s left (a)", id="small"),
        pytest.param([_file("a", MB, 20 * MB)], 0.0, "1 of 20 MB, 0.0 MB/s (a)", id="stands still"),
        pytest.param(
            [_file("a", 3 * MB, None), _file("b", 0, 20 * MB)],
            1e6,
            "3 of at least 23 MB, 1.0 MB/s (b, a)",
            id="a size that nobody says",
        ),
        pytest.param(
            [_file("a", 12 * MB, 12 * MB, is_running=False)], 1e6, "12 of 12 MB, 1.0 MB/s, 0 s left", id="done"
        ),
        pytest.param(
            [_file("a", 0, 10 * MB), _file("b", 0, 30 * MB), _file("c", 0, 20 * MB)],
            None,
            "0 of 60 MB (b, c)",
            id="two names",
        ),
    ],
)
def test_progress_is_one_line(files: list[Transfer], speed: float | None, said: str) -> None:
    assert fetching.progress(files, speed) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (110, "1 min 50 s"),
        (3900, "1 h 5 min"),
        (90000, "25 h 0 min"),
    ],
)
def test_time_is_written_for_a_person(seconds: float, said: str) -> None:
    assert fetching.duration(seconds) == said


@pytest.mark.parametrize(
    ("moments", "speed"),
    [
        pytest.param([], None, id="none"),
        pytest.param([(0.0, 0), (0.5, 100)], None, id="too near"),
        pytest.param([(0.0, 50), (1.0, 90), (2.0, 250)], 100.0, id="over the window"),
        pytest.param([(0.0, 500), (2.0, 100)], 0.0, id="begun again"),
    ],
)
def test_speed_is_that_of_the_window(moments: list[tuple[float, int]], speed: float | None) -> None:
    assert fetching.speed([Moment(seconds=seconds, done=done) for seconds, done in moments]) == speed


def test_what_is_long_ago_counts_no_more() -> None:
    moments = [Moment(seconds=seconds, done=0) for seconds in (0.0, 5.0, 12.0)]
    assert [moment.seconds for moment in fetching.recent(moments, 14.0)] == [5.0, 12.0]


def test_what_uv_does_is_told_as_what_it_is() -> None:
    told: list[str] = []
    tell = fill._of_uv(told.append)
    for line in ("Downloading av (34.1MiB)", "Building jieba==0.42.1", "warning: x", "Downloaded av (34.1MiB)"):
        tell(f"   {line}")
    tell("   Built jieba==0.42.1")
    assert told == [
        "downloading av (34.1MiB)",
        "downloading av (34.1MiB); building jieba==0.42.1",
        "building jieba==0.42.1",
        "unpacking",
    ]
