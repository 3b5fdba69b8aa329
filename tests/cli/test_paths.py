"""Paths on a command line: ~ is the home folder also where no shell has said so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patchlock.cli._commands import patchlock
from patchlock.cli._paths import OutputFile, UserPath
from patchlock.model.errors import UsageError


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
    written = {(name, option) for name, option, kind in paths if kind is OutputFile}
    assert written == {
        ("patchlock bench", "plot"),
        ("patchlock bundle", "target"),
        ("patchlock export", "target"),
        ("patchlock report", "target"),
        ("patchlock verify", "files"),
    }
    assert [one for one in paths if one[2] not in {UserPath, OutputFile}] == []


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


@pytest.mark.parametrize(
    ("head", "there", "is_taken"),
    [
        (b"^ours", b"\nours: 1\n", True),
        (b"^ours", b"", True),
        (b"^ours", b"not ours\n", False),
        (b"^ours", b" " * 5000 + b"\nours", False),
    ],
    ids=["ours", "empty", "another's", "far down"],
)
def test_only_a_file_of_ours_is_overwritten(head: bytes, there: bytes, is_taken: bool, tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    assert OutputFile(head=head).convert(str(path), None, None) == path
    path.write_bytes(there)
    if is_taken:
        assert OutputFile(head=head).convert(str(path), None, None) == path
        return
    with pytest.raises(UsageError) as raised:
        OutputFile(head=head).convert(str(path), None, None)
    assert str(raised.value) == (
        f"{path} exists already, and was not overwritten; name another file, or move that one away first"
    )
