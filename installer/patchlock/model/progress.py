"""How an operation tells a person what it is at; a protocol."""

from __future__ import annotations

import contextlib
from typing import Protocol


class Progress(Protocol):
    """Tells a person what is going on."""

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Announce a stage, and its end."""
        ...

    def say(self, text: str) -> None:
        """Say what the running stage is at, in a few words; the last one stands for its result."""
        ...

    def transfer(self, done: int, total: int) -> None:
        """Say how many bytes of the running stage are here, and of how many; 0 where nobody knows."""
        ...

    def note(self, text: str) -> None:
        """Say something between stages, at once."""
        ...
