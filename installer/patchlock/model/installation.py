"""The folder of an installation, and what lies where in it; a value, reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The folder of one app on one profile."""

    folder: Path
    """`<home>/<app>@<profile>`."""

    @property
    def app(self) -> str:
        """The app's name."""
        return self.folder.name.partition("@")[0]

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.folder.name.partition("@")[2]

    @property
    def source(self) -> Path:
        """The working tree: upstream, our commit, and whatever the user keeps there."""
        return self.folder / "source"

    @property
    def environments(self) -> Path:
        """Where generations live."""
        return self.folder / "environments"

    @property
    def lock(self) -> Path:
        """Held while patchlock works here."""
        return self.folder / "lock"

    @property
    def journal(self) -> Path:
        """What a running install is at; gone when it ended well."""
        return self.folder / "journal"

    @property
    def report(self) -> Path:
        """What `verify` found last, for the next one to compare with."""
        return self.folder / "verify.json"

    @property
    def measured(self) -> Path:
        """What `bench` has measured, for the next one to compare with."""
        return self.folder / "bench.json"

    @property
    def sounds(self) -> Path:
        """Where what the app has said or sung to be judged can be heard."""
        return self.folder / "sounds"

    @property
    def pointer(self) -> Path:
        """One line: the generation in use."""
        return self.folder / "current"
