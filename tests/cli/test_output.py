"""How text stands on a terminal: long lines break between words and stay in their column, commands stay whole."""

from __future__ import annotations

import io
import sys
from typing import Literal

import pytest

from patchlock.catalogue.pair_table import PairState
from patchlock.cli import _cache, _list, _lock_table, _output
from patchlock.core.disk_space import FreedSpace
from patchlock.operations.lifecycle import PruneResult


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 44) -> None:
    """Let stdout be a terminal; called in the test itself, as pytest puts its own stdout back before each."""
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")


LONG = "the kernel is 6.8.0-31-generic, and must be 6.12 or later"


def test_long_value_stays_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    assert _output.rows([("rocm", LONG), ("cpu", "short")]) == (
        "  rocm  the kernel is 6.8.0-31-generic, and\n        must be 6.12 or later\n  cpu   short"
    )


def test_column_in_a_value_stays_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 56)
    assert _output.rows([("patches", "av-wheel  needed in requirements.txt, partly fixed in setup.py")]) == (
        "  patches  av-wheel  needed in requirements.txt, partly\n                     fixed in setup.py"
    )


def test_value_without_room_stands_below_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    name = "https://models.example.org/of/a/voice"
    assert _output.rows([(name, f"{LONG}\nsecond"), ("short", "7 MB")]) == (
        f"  {name}\n    the kernel is 6.8.0-31-generic, and\n      must be 6.12 or later\n    second\n  short\n    7 MB"
    )


def test_address_without_room_beside_a_long_name_stands_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 80)
    name, address = "https://models.example.org/of/many/voices", "https://models.example.org/licence/of/all"
    assert _output.rows([(name, f"as {address}")]) == f"  {name}\n    as {address}"
    assert _output.rows([("short", f"as {address}")]) == f"  short  as {address}"


def test_command_stays_whole_and_an_empty_line_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    assert _output.rows([("do", f"so:\n\n$ {LONG}")]) == f"  do  so:\n\n      $ {LONG}"


def test_sentence_goes_on_further_in(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    assert _output.sentences([LONG, "second"]) == (
        "  the kernel is 6.8.0-31-generic, and must\n    be 6.12 or later\n  second"
    )


def test_a_program_reads_whole_lines() -> None:
    assert _output.rows([("rocm", LONG)]) == f"  rocm  {LONG}"
    assert _output.sentences([LONG]) == f"  {LONG}"


def test_echo_breaks_between_words_and_leaves_a_command_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    command = "  patchlock doctor --says-file LOG --json > doctor.json"
    _output.echo(f"  {LONG}\n{command}")
    told = sys.stdout
    assert isinstance(told, io.StringIO)
    assert told.getvalue() == f"  the kernel is 6.8.0-31-generic, and must\n    be 6.12 or later\n{command}\n"


def test_a_long_address_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    address = f"    https://models.example.org/{'of/a/' * 6}voice"
    assert _output.broken(address, sys.stdout) == address


PATH = "/home/somebody/share/patchlock/sounds/ab.wav"
"""As long as the terminal is wide, so that it is whole on a line of its own alone."""


def test_a_path_that_fits_the_terminal_is_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    assert len(PATH) == 44
    assert _output.rows([("hums", f"2.6 s of sound; {PATH}"), ("in", PATH)]) == (
        f"  hums  2.6 s of sound;\n{PATH}\n  in\n{PATH}"
    )
    assert _output.sentences([f"the sound: {PATH}"]) == f"  the sound:\n{PATH}"
    assert _output.broken(f"error: the sound is gone ({PATH[:-4]})", sys.stdout) == (
        f"error: the sound is gone\n  ({PATH[:-4]})"
    )
    assert _output.hanging("✓ lock  ", f"written to {PATH}", 44) == f"✓ lock  written to\n{PATH}"


def test_a_folder_of_ours_with_a_blank_is_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_HOME", "/home/some body/share")
    _on_terminal(monkeypatch)
    assert _output.sentences(["what can be heard: /home/some body/share/a.wav"]) == (
        "  what can be heard:\n    /home/some body/share/a.wav"
    )


def test_a_table_is_cut_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 20)
    assert [_output.cut("twenty columns, and "), _output.cut("eighteen columns and more")] == [
        "twenty columns, and ",
        "eighteen columns an…",
    ]


def test_narrow_terminal_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 20)
    assert _output.sentences([LONG]) == f"  {LONG}"


def test_a_command_in_backquotes_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    assert _output.sentences(["More: `patchlock detect`, and `patchlock list --all`"], 0) == (
        "More: `patchlock detect`, and\n  `patchlock list --all`"
    )


@pytest.mark.parametrize(
    "quoted",
    ["model.load(get_path('a.pth'), map_location='cpu')", "git -C /home/somebody/clones/app merge --continue"],
    ids=["code", "command"],
)
def test_what_is_in_backquotes_and_wider_than_the_terminal_is_not_broken(
    quoted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on_terminal(monkeypatch)
    assert _output.broken(f"see `{quoted}`", sys.stdout) == f"see\n  `{quoted}`"


OWN = "/home/somebody/.local/share/patchlock/bin/patchlock"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"remove it too: {OWN} uninstall demo --purge", f"remove it too:\n  {OWN} uninstall demo --purge"),
        (f"undo: '/my apps/bin/patchlock' rollback {LONG}", f"undo:\n  '/my apps/bin/patchlock' rollback {LONG}"),
        (f'undo: & "C:\\my apps\\patchlock.cmd" list {LONG}', f'undo:\n  & "C:\\my apps\\patchlock.cmd" list {LONG}'),
        (
            f"undo: PATCHLOCK_HOME='/my apps' patchlock rollback {LONG}",
            f"undo:\n  PATCHLOCK_HOME='/my apps' patchlock rollback {LONG}",
        ),
        ("note: patchlock keeps your files in the folder", "note: patchlock keeps your files in the\n  folder"),
    ],
)
def test_a_command_at_the_end_of_a_line_is_not_broken(
    line: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on_terminal(monkeypatch)
    assert _output.broken(line, sys.stdout) == expected


def test_a_command_in_a_column_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 70)
    told = _output.rows([("undo", f"{OWN} uninstall demo"), ("run", f"{OWN} run\n{LONG}")])
    assert _output.broken(told, sys.stdout) == (
        f"  undo\n    {OWN} uninstall demo\n  run   {OWN} run\n"
        "        the kernel is 6.8.0-31-generic, and must be 6.12 or later"
    )
    monkeypatch.setenv("COLUMNS", "60")  # narrower than the command
    assert _output.broken(_output.rows([("more", f"{OWN} info demo")]), sys.stdout) == f"  more\n{OWN} info demo"


def test_a_command_at_a_prompt_is_broken_only_where_it_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    fits, is_longer = f"$ patchlock {'a' * 32}", f"$ patchlock {'a' * 33}"
    assert _output.broken(f"  {fits}\n  {is_longer}", sys.stdout) == f"{fits}\n  {is_longer}"


def test_a_line_that_begins_in_backquotes_is_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch, 70)
    assert _output.broken(f"  `{OWN} list` (apps by machine)", sys.stdout) == f"  `{OWN} list` (apps by\n    machine)"


def test_a_dumb_terminal_has_an_edge_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert _output.sentences([LONG]) == "  the kernel is 6.8.0-31-generic, and must\n    be 6.12 or later"
    assert not _output.is_terminal(sys.stdout)


def test_value_that_is_empty_takes_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    _on_terminal(monkeypatch)
    name = "https://models.example.org/of/a/voice"
    assert _output.rows([("head ", ""), (name, LONG)], 0).startswith(f"head\n{name}\n  the kernel")


@pytest.mark.parametrize(("columns", "is_matrix"), [(80, True), (44, False)])
def test_locks_of_a_narrow_terminal_are_told_by_profile(
    monkeypatch: pytest.MonkeyPatch, columns: int, is_matrix: bool
) -> None:
    _on_terminal(monkeypatch, columns)
    states: list[tuple[str, Literal["locked", "refused"]]] = [("first-app", "locked"), ("second-app", "locked")]
    states += [("third-application", "refused")]
    told = _list.locks(tuple(PairState(app=a, profile="cpu", platform="any", state=s) for a, s in states))
    matrix = "       first-app  second-app  third-application\n  cpu  locked     locked      not supported"
    assert told == (
        matrix if is_matrix else "  cpu  locked: first-app, second-app\n       not supported: third-application"
    )


def test_of_many_downloads_the_largest_are_named() -> None:
    downloads = tuple((f"{count}.whl", FreedSpace(freed=count << 20, shared=0)) for count in range(1, 9))
    told = _cache.lines(PruneResult(generations=(), downloads=downloads, others=()), "would free")
    assert told == [
        *(f"would free {count}.0 MiB: {count}.whl, which no installation needs" for count in (8, 7, 6, 5, 4)),
        "would free 6.0 MiB: 3 more (-v lists them)",
        "would free 36.0 MiB in total",
    ]


@pytest.mark.parametrize("why", ["no connection\n  could not resolve host", "a patch failed"], ids=["long", "short"])
def test_the_same_words_are_written_once_with_all_pairs(capsys: pytest.CaptureFixture[str], why: str) -> None:
    lines = [_lock_table.Line(pair=f"mini × {name}", file=name, state="failed", detail=why) for name in ("a", "b")]
    fresh = _lock_table.Line(pair="mini × c", file="c.txt", state="fresh", detail="")
    assert _lock_table.print_locks([*lines, fresh], {}, check=False, as_json=False) == 1
    first, *others = why.split("\n")
    assert capsys.readouterr().out.splitlines() == [
        "mini × c  fresh      c.txt",
        f"failed  {first}",
        *(f"        {line}" for line in others),
        "  mini × a",
        "  mini × b",
    ]
