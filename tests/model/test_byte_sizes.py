"""One unit in all words for people: powers of 1024, with their own names."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

from patchlock.model.byte_sizes import size_text

_DECIMAL = re.compile(r"""\}\s?(GB|MB|kB)\b""")
"""A number that a message writes, with a unit of its own."""


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1_000_000, "976.6 KiB"),
        (3 << 20, "3.0 MiB"),
        (16 << 30, "16.0 GiB"),
    ],
)
def test_size_is_told_in_powers_of_1024(count: int, told: str) -> None:
    assert size_text(count) == told


def test_no_message_chooses_a_unit_of_its_own() -> None:
    files = sorted((ROOT / "installer" / "patchlock").rglob("*.py"))
    assert [
        f"{path.name}: {line}" for path in files for line in path.read_text().splitlines() if _DECIMAL.search(line)
    ] == []
