"""How patchlock names itself in the commands that it prints."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from patchlock.cli import _launcher, _output

TEXTS = {
    "`patchlock info APP` tells more": "`{} info APP` tells more",
    "`patchlock` guides, `patchlock list` lists": "`{0}` guides, `{0} list` lists",
    "  $ patchlock run demo": "  $ {} run demo",
    "get it with: patchlock install mini": "get it with: {} install mini",
    "what patchlock installs; patchlock run is prose": "what patchlock installs; patchlock run is prose",
    "`/bin/patchlock run mini`": "`/bin/patchlock run mini`",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my apps"
    target = _launcher.path(folder)
    target.parent.mkdir(parents=True)
    target.touch()
    monkeypatch.setenv("PATCHLOCK_HOME", str(folder))
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", "/clone/install.sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


@pytest.mark.parametrize(("text", "pasted"), TEXTS.items(), ids=range(len(TEXTS)))
def test_commands_of_a_text_can_be_pasted(text: str, pasted: str, home: Path) -> None:
    itself = shlex.quote(str(_launcher.path(home)))
    assert _launcher.to_paste(text, home) == pasted.format(itself)


def test_options_of_a_line_come_after_the_commands_that_take_them(home: Path) -> None:
    itself, line = shlex.quote(str(_launcher.path(home))), ["install", "mini", "--fallback"]
    assert _launcher.to_paste("`patchlock install a`, `patchlock plan a`", home, line) == (
        f"`{itself} install a --fallback`, `{itself} plan a`"
    )
    line = ["plan", "mini", "--catalogue", "/their catalogue"]
    assert _launcher.to_paste("`patchlock list`, `patchlock --version`: patchlock list", home, line) == (
        f"`{itself} list --catalogue '/their catalogue'`, `{itself} --version`: {itself} list --catalogue '/their catalogue'"
    )


def test_what_a_command_prints_repeats_where_catalogue_and_upstream_are(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from patchlock.cli._install import install_command

    given = ["mini", "--source", "/a clone", "--catalogue", str(home)]
    with install_command.make_context("install", given):
        _output.echo("`patchlock lock mini` and `patchlock verify mini`")
    itself, at = shlex.quote(str(_launcher.path(home))), f"--catalogue '{home}'"
    assert capsys.readouterr().out == (
        f"`{itself} lock mini --source '/a clone' {at}` and `{itself} verify mini {at}`\n"
    )


def test_a_person_can_paste_what_is_printed_into_a_pipe(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _output.echo("`patchlock info APP`")
    assert capsys.readouterr().out == f"`{shlex.quote(str(_launcher.path(home)))} info APP`\n"


@pytest.mark.parametrize(
    ("bootstrap", "argv", "on_path", "folders", "expected"),
    [
        (False, "{bin}/patchlock", False, {}, "{bin}/patchlock"),
        (False, "{bin}/patchlock", True, {}, "patchlock"),
        (False, "{bin}/patchlock", True, {"HOME": "/my apps"}, "PATCHLOCK_HOME='/my apps' patchlock"),
        (
            False,
            "{bin}/patchlock",
            False,
            {"HOME": "/apps", "CACHE_DIR": "/cache"},
            "PATCHLOCK_HOME=/apps PATCHLOCK_CACHE_DIR=/cache {bin}/patchlock",
        ),
        (False, "/site-packages/patchlock/__main__.py", False, {"HOME": "/apps"}, "patchlock"),
        (True, "/site-packages/patchlock/__main__.py", True, {}, "patchlock"),
        (True, "/site-packages/patchlock/__main__.py", True, {"HOME": "/apps"}, "{home}/bin/patchlock"),
    ],
    ids=[
        "tool off PATH",
        "tool",
        "tool, one home",
        "off PATH, folders",
        "a module",
        "clone on PATH",
        "clone, one home",
    ],
)
def test_what_is_printed_works_in_another_shell(
    bootstrap: bool,
    argv: str,
    on_path: bool,
    folders: dict[str, str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools, home = tmp_path / "tools", tmp_path / "home"
    for program in (tools / "patchlock", _launcher.path(home)):
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools) if on_path else str(tmp_path))
    monkeypatch.setattr(sys, "argv", [argv.format(bin=tools)])
    for name in ("HOME", "CACHE_DIR"):
        monkeypatch.delenv(f"PATCHLOCK_{name}", raising=False)
    for name, folder in folders.items():
        monkeypatch.setenv(f"PATCHLOCK_{name}", folder)
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", "/clone/install.sh" if bootstrap else "")
    assert _launcher.own_command(home) == expected.format(bin=tools, home=home)


def test_text_stays_where_patchlock_is_on_path_or_the_machine_is_simulated(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "`patchlock info APP`"
    monkeypatch.setenv("PATCHLOCK_HOST", "machine.json")
    assert _launcher.to_paste(text, home) == text
    assert _launcher.to_paste("`patchlock install a --repair`, `patchlock install a --profile b`", home) == (
        "`patchlock install a --repair`, `patchlock plan a --profile b`"
    )
    monkeypatch.delenv("PATCHLOCK_HOST")
    monkeypatch.delenv("PATCHLOCK_BOOTSTRAP")
    assert _launcher.to_paste(text, home) == text
