"""Paths on a command line: ~ is the home folder also where no shell has said so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patchlock.cli._commands import patchlock
from patchlock.cli._paths import UserPath


def _commands(group: click.Group, name: str = "patchlock") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{name} {word}")


def test_every_path_of_a_command_line_is_the_users() -> None:
    every = [(name, one) for name, command in _commands(patchlock) for one in command.params]
    paths = [(name, one.name, type(one.type)) for name, one in every if isinstance(one.type, click.Path)]
    assert len(paths) > 50
    assert [one for one in paths if one[2] is not UserPath] == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/report.html", "/home/somebody/report.html"),
        ("~", "/home/somebody"),
        ("a~/b", "a~/b"),
        ("~nobody-of-that-name/b", "~nobody-of-that-name/b"),
    ],
)
def test_tilde_is_the_home_folder(written: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("USERPROFILE", "/home/somebody")
    assert UserPath().convert(written, None, None) == Path(meant)
