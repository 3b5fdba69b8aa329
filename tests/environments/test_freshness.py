"""What makes an installation fresh at a glance agrees with what reads it whole."""

from __future__ import annotations

import dataclasses

from patchlock.environments import freshness
from patchlock.environments.generations import Receipt


def test_a_glance_knows_the_keys_of_a_receipt() -> None:
    assert {field.name for field in dataclasses.fields(Receipt)} == freshness.KEYS
