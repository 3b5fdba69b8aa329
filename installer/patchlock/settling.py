"""Look at an environment right after it was filled: nothing may lie outside it, and its ledger is begun."""

from __future__ import annotations

from pathlib import Path

from patchlock import digests, inspection, ledger
from patchlock.errors import WheelError
from patchlock.ledger import Laid, Ledger
from patchlock.model import Sha256

_CHUNK = 1 << 20


def settle(environment: Path) -> Ledger:
    """Begin the ledger of an environment that was just filled.

    Files whose size is not the one in their RECORD are noted, as nobody has changed them yet. Only those of which
    RECORD has no hash are read: a few, of wheels whose RECORD is incomplete.

    Raises:
        WheelError: a distribution wrote, or wants to write, outside the environment or over what makes it one.
    """
    contents = inspection.read(environment)
    outside = inspection.outside(contents, environment)
    if outside:
        raise WheelError(
            f"{outside[0][0].name} {outside[0][0].version} has files that do not belong into an environment",
            where=str(environment),
            remedy="do not install it: nothing was switched to it; tell those who made it",
            evidence=[f"{distribution.name}: {path}" for distribution, path in outside[:20]],
        )
    files = {deviation.path: Laid(size=deviation.size) for deviation in inspection.by_size(contents)}
    for path in inspection.without_hash(contents):
        _, sha256, size = digests.compare(str(contents.packages / path), "sha256=", _CHUNK)
        files[path] = Laid(size=size, sha256=Sha256(sha256))
    unlisted = inspection.added(contents)  # of setuptools the RECORDs of what it has vendored
    made = Ledger(laid=ledger.now(), records=contents.records, files=files, unlisted=unlisted)
    ledger.write(environment, made)
    return made
