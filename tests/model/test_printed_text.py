"""What programs printed is found however it was pasted, and no other message is."""

from __future__ import annotations

import pytest

from patchlock.model.printed_text import pattern, plain

MESSAGE = r"Couldn't find (ffmpeg|avconv) \[code \d+\] ?: NOT on \S+ of [A-Z]+"


@pytest.mark.parametrize(
    "text",
    [
        "Couldn't find ffmpeg [code 12]: NOT on PATH of ROOT",
        "couldn't find ffmpeg [code 12]: not on path of root",
        "\x1b[31mRuntimeError: \x1b[0mCouldn\u2019t find \x1b[1;4mffmpeg [code 12]: NOT on PATH of ROOT",
        "\x1b]0;a title\x07Couldn't find ffmpeg [code 12] : NOT on PATH of ROOT",
        "  | Couldn`t find\n    ffmpeg [code\r\n 12]: NOT on PATH of\tROOT",
        "> > Couldn't find\n> > ffmpeg [code 12]: NOT\n>> on PATH\n>\u2502 of ROOT",
    ],
    ids=["as printed", "lower case", "colours and quotes", "a terminal's title", "wrapped", "quoted"],
)
def test_a_message_is_found_however_it_was_pasted(text: str) -> None:
    assert pattern(MESSAGE).search(plain(text))


@pytest.mark.parametrize(
    "text",
    [
        "Couldn't find ffmpeg [code x]: NOT on PATH of ROOT",
        "Couldn't find ffmpeg [code 12]: NOT on PATH of 7",
        "Couldn't findffmpeg [code 12]: NOT on PATH of ROOT",
        "Couldn't find ffprobe [code 12]: NOT on PATH of ROOT",
        "ffmpeg [code 12]: NOT on PATH of ROOT",
    ],
)
def test_another_message_is_not(text: str) -> None:
    assert not pattern(MESSAGE).search(plain(text))
