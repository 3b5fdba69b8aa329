"""The job of an app that `bench` measures, as its file says; values."""

from __future__ import annotations

from dataclasses import dataclass

from patchlock.model.table_fields import ProfileNames


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One job that people install the app for: a sentence, a song, a converted voice."""

    what: str
    """The job, as a clause."""
    module: str
    """A file beside the app's."""
    job: str
    """The function of that file that makes the job."""
    runs: int = 5
    """How often it is done, after once that does not count."""
    timeout: int
    """Seconds for all of that."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) that it may have with all that it starts; 0: a share of the machine's memory."""
    on_the_processor: ProfileNames = ()
    """Profiles on which the app computes this on the processor, whatever the machine has."""
    code: str
    """Of that file; it is no key."""
