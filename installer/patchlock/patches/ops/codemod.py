"""A change that is too special for the other ops: a LibCST codemod in the app's folder; runs nothing itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.model.patch import Located, OutcomeKind, Refusal
from patchlock.model.text_files import SourceText

LONGEST = 600
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Codemod:
    """Name a codemod; `codemods.bind` makes an op of it that runs in a process of its own.

    Attributes:
        module: POSIX path of a .py file in the app's folder of the catalogue; it imports LibCST and the standard
            library, nothing that stands beside it.
        command: the class in it, a LibCST `CodemodCommand`.
        arguments: keyword arguments of the class.
        timeout: seconds for one file.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    module: str
    command: str
    arguments: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)  # a patch is a key of caches
    timeout: int = 60

    def __post_init__(self) -> None:
        path = PurePosixPath(self.module)
        if path.is_absolute() or ".." in path.parts or "\\" in self.module or path.suffix != ".py":
            raise ValueError(f"`{self.module}` is not the path of a .py file in the app's folder")
        if not self.command.isidentifier():
            raise ValueError(f"`{self.command}` is not the name of a class")
        if not 0 < self.timeout <= LONGEST:
            raise ValueError(f"`timeout` is {self.timeout}, and must be 1 to {LONGEST} seconds")

    def locate(self, source: SourceText) -> Located:  # noqa: ARG002
        """Refuse: a codemod that is bound to no file of the catalogue is never run."""
        why = f"the codemod {self.module} cannot be run here"
        return Located(refusals=(Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),))
