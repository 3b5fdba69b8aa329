"""Paths as a person writes them on a command line."""

from __future__ import annotations

import os
from pathlib import Path

import click


class UserPath(click.Path):
    """A path in which ~ is a home folder also where no shell has said so: after `--output=`, and in PowerShell."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        # Where there is no such person, os.path leaves the word as it is.
        return super().convert(os.path.expanduser(value), param, ctx)  # noqa: PTH111
