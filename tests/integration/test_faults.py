"""Every command that changes an installation, killed or failing at seeded writing events: nothing is lost or half-done.

This is the small, portable part: the events of patchlock's own process. `benchmarks/kills.py` has all processes, call by
call.
"""

from __future__ import annotations

import random
import sys

import pytest
from faults import Fault, shared_server
from transactions import ONE, TRANSACTIONS, Places, Transaction, after, says, strike

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Give the folder in which states are put, and the server that runs commands there."""
    return Places(tmp_path_factory.mktemp("faults"), shared_server())


@pytest.mark.parametrize(
    ("transaction", "error"),
    [
        pytest.param(transaction, ("ENOSPC", "EIO")[number % 2], id=transaction.name)
        for number, transaction in enumerate(TRANSACTIONS)
    ],
)
def test_fault_breaks_nothing(places: Places, transaction: Transaction, error: str) -> None:
    places.put(transaction.state)
    done = places.run(*transaction.words, hook=True)
    assert done.returncode == 0, done.stderr
    for part, what in enumerate(("kill", error)):
        half = (part + random.Random(f"{transaction.name} {what}").random()) / 2
        fault = Fault(what, int(half * done.events) + 1, lasting=what == "ENOSPC")
        wrong = strike(places, transaction, fault, hook=True, looks_first=bool(part))
        assert wrong == [], f"{what} at event {fault.at} of {done.events}"


def test_harness_sees_what_is_lost(places: Places) -> None:
    transaction = next(t for t in TRANSACTIONS if t.name == "prune")
    places.put(transaction.state)
    (places.source / "models" / "weights.bin").unlink()
    (places.installed / "environments" / "half" / "bin").mkdir(parents=True)
    (places.source / ".app.py.patchlock").write_bytes(b"")
    wrong = after(places, transaction, looks_first=False, temporary=True)
    assert "the user's models/weights.bin is lost or changed" in wrong
    assert "left over: home/mini@tiny/source/.app.py.patchlock" in wrong


def test_kill_that_comes_while_a_recovery_turns_back(places: Places) -> None:
    # The recovery has said where it goes, and has written nothing yet.
    transaction = next(t for t in TRANSACTIONS if t.name == "recover")
    places.put(transaction.state)
    done = places.run(*transaction.words, hook=True, fault=Fault("EIO", 0, match="journal.json"))
    assert "journal.json" in done.struck
    assert says(done)
    assert places.run("run", "mini").stdout == ONE
    assert after(places, transaction, looks_first=True, temporary=False) == []
