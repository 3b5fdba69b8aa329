"""What uv says of versions, as requirements."""

from __future__ import annotations

import pytest

from patchlock.locks._rules import read_range


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [
        (">=2.12,<3", "torch<3,>=2.12"),
        (">=2.13.0+cpu", "torch>2.13.0"),
        ("<0.26.0+cu128", "torch<=0.26.0"),
        (">2.12.1+cpu,<=2.13.0+cpu", "torch<=2.13.0,>2.12.1"),
        ("==2.13.0+cpu", "torch==2.13.0+cpu"),
        (">=1+,<2", "torch<2,>1"),
        ("", "torch"),
        (">=1,<2 | >2", "None"),
    ],
)
def test_bound_at_a_local_version_is_one_of_plain_versions(bound: str, wanted: str) -> None:
    assert str(read_range("torch", bound)) == wanted
