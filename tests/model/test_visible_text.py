"""Texts and names of others, as a terminal shows them."""

from __future__ import annotations

import pytest

from patchlock.model.visible_text import visible, visible_name

TEXTS = {
    "a\x1b[31mb": "a\\x1b[31mb",
    "a\rb": "a\\rb",
    "a\u202eb": "a\\u202eb",
    "a\udcffb": "a\\udcffb",
    "Jörg.py": "Jörg.py",
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.items(), ids=range(len(TEXTS)))
def test_what_a_terminal_obeys_is_shown(text: str, shown: str) -> None:
    assert visible(text) == visible_name(text) == shown


def test_lines_and_tabs_of_a_text_stay_and_those_of_a_name_are_shown() -> None:
    assert visible("one\n\ttwo") == "one\n\ttwo"
    assert visible_name("ev\nyes, all is safe.py\t") == "ev\\nyes, all is safe.py\\t"
