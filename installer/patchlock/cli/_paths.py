"""Paths as a person writes them on a command line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

_START = 4096
"""Bytes of a file that say who wrote it."""


class UserPath(click.Path):
    """A path in which ~ is a home folder also where no shell has said so: after `--output=`, and in PowerShell."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        # Where there is no such person, os.path leaves the word as it is.
        return super().convert(os.path.expanduser(value), param, ctx)  # noqa: PTH111


class OutputFile(UserPath):
    """A file to write: a new one, an empty one, or one that the same command wrote before."""

    def __init__(self, *, head: bytes) -> None:
        """Take a file.

        Args:
            head: a regular expression that finds something in the first bytes of what the command writes, and of
                nobody else's file.
        """
        super().__init__(dir_okay=False)
        self._head = head

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.exists() and not self._is_free(path):
            from patchlock.model.errors import UsageError

            option = f" with {max(param.opts, key=len)}" if param else ""
            raise UsageError(
                f"{path} exists already, and was not overwritten",
                remedy=f"name another file{option}, or move that one away first",
            )
        return path

    def _is_free(self, path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(_START)
        return not start or re.search(self._head, start, re.MULTILINE) is not None
