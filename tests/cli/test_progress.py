"""How a person hears what goes on: in a pipe every few seconds, on a terminal by rich's columns, with -q not at all."""

from __future__ import annotations

import io
import re
import sys
import threading

import pytest

from patchlock.cli import _output, _progress
from patchlock.cli._progress import Live, Plain, Transfer


class _Lines(io.StringIO):
    """A pipe that says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.has_line = threading.Event()

    def flush(self) -> None:
        if self.getvalue():
            self.has_line.set()


def test_a_pipe_hears_of_a_long_stage_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _Lines()
    monkeypatch.setattr(sys, "stderr", lines)
    plain = Plain(every=0.01)
    with plain.stage("environment"):
        plain.say("3 packages")
        plain.transfer(1_000_000, 4_000_000)
        lines.has_line.clear()
        assert lines.has_line.wait(20)
        assert "environment  3 packages 1.0/3.8 MiB (still running, " in lines.getvalue()
    assert lines.getvalue().splitlines()[-1].startswith("environment  3 packages (")


def test_bytes_rate_and_time_left_are_told() -> None:
    clock = iter(range(0, 1000, 2))
    transfer = Transfer()
    transfer.progress.get_time = lambda: float(next(clock))
    assert transfer.told() == ""
    for done in (1, 2, 3):
        transfer.update(done * 1_000_000, 10_000_000)
    words = transfer.told()
    assert words.startswith("2.9/9.5 MiB, ")
    assert "iB/s, " in words
    assert words.endswith(" left")


def test_a_new_file_begins_again() -> None:
    transfer = Transfer()
    transfer.update(5_000_000, 5_000_000)
    transfer.update(0, 2_000_000)
    assert transfer.told().startswith("0.0/1.9 MiB")


def test_a_total_that_nobody_knows_is_not_invented() -> None:
    transfer = Transfer()
    transfer.update(5_000_000, 0)
    assert transfer.told() == "4.8/? MiB"


def test_json_hears_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silent = _progress.progress(as_json=True)
    with silent.stage("environment"):
        silent.say("x")
        silent.transfer(1, 2)
    silent.note("y")
    assert capsys.readouterr() == ("", "")


def test_text_of_others_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _output.echo("a\x1b]0;title\x07b\u202ec\td\r")
    assert capsys.readouterr().out == "a\\x1b]0;title\\x07b\\u202ec\td\\r\n"


def test_a_file_in_a_pipe_keeps_its_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    _output.file_text("a\x1b\r\n")
    assert capsys.readouterr().out == "a\x1b\r\n"


@pytest.mark.parametrize("is_plain", [True, False])
def test_no_color_is_neither_coloured_nor_dim(is_plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1" if is_plain else "")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", told := Terminal())
    with (live := Live()).stage("preflight"):
        live.say("cpu")
    assert "preflight" in told.getvalue()
    assert (re.search(r"\x1b\[[\d;]+m", told.getvalue()) is None) == is_plain


def test_an_ended_stage_stays_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    live = Live()
    with live.stage("preflight"):
        live.say("cpu on linux-x86_64, Python 3.11")
    told = sys.stderr
    assert isinstance(told, io.StringIO)
    assert [line.rstrip() for line in told.getvalue().splitlines() if line.strip()][-2:] == [
        "✓ preflight    cpu on linux-x86_64,",
        "               Python 3.11 (0.0 s)",
    ]
