"""The face: what --help says, and what it does not read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from conftest import ROOT, Patchlock, Said
from receipts import install

from patchlock.cli import COMMANDS
from patchlock.cli._commands import Commands
from patchlock.cli._commands import patchlock as group


def _all() -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    for name in COMMANDS:
        command = Commands().get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            paths += [(name, sub) for sub in command.commands]
        paths.append((name,))
    return paths


@pytest.mark.parametrize("words", [(), *_all()], ids=lambda words: " ".join(words) or "patchlock")
def test_help_of_every_command_shows_an_example_that_begins_like_it(
    words: tuple[str, ...], patchlock: Patchlock
) -> None:
    done = patchlock(*words, "--help")
    assert done.returncode == 0
    assert re.search(rf"Example:\n +patchlock {' '.join(words)}".rstrip(), done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_overview_says_the_same_as_the_command(name: str) -> None:
    command = Commands().get_command(click.Context(group), name)
    assert command is not None
    assert COMMANDS[name][1] == (command.help or "").split("\n")[0]


def _imported(*words: str) -> set[str]:
    code = f"import sys; from patchlock.cli import main; main({list(words)!r}); print('|'.join(sys.modules), file=sys.stderr)"
    env = Patchlock(ROOT).env()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True, cwd=ROOT)
    return set(done.stderr.splitlines()[-1].split("|"))


@pytest.mark.parametrize("words", [("--help",), ("list",), ("lock", "--check"), ("install", "--help")], ids=" ".join)
def test_heavy_libraries_are_not_imported_where_they_are_not_needed(words: tuple[str, ...]) -> None:
    assert not _imported(*words) & {"libcst", "rich", "requests", "ruamel", "tomlkit"}


@pytest.mark.parametrize("words", [("detect",), ("detect", "--why-not", "cpu")], ids=" ".join)
def test_detect_imports_nothing_that_takes_longer_than_its_answer(words: tuple[str, ...]) -> None:
    slow = {"packaging", "platformdirs", "hashlib", "difflib", "tempfile", "importlib.resources"}
    assert not _imported(*words) & slow


def test_locks_that_were_checked_need_no_catalogue_the_second_time() -> None:
    assert "patchlock.locks.relock" not in [_imported("lock", "--check") for _ in range(2)][1]


def test_help_reads_nothing_but_click() -> None:
    heavy = {name for name in _imported("--help") if name.startswith(("packaging", "patchlock."))}
    light = (
        "cli",
        "cli._commands",
        "cli._log",
        "cli._output",
        "cli._paths",
        "core",
        "core.relative_paths",
        "model",
        "model.addresses",
        "model.errors",
        "model.visible_text",
    )
    assert heavy == {f"patchlock.{name}" for name in light}


def test_version(patchlock: Patchlock) -> None:
    text = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.+)"', text, re.MULTILINE)
    assert version is not None
    assert patchlock("--version").stdout == f"patchlock {version[1]}\n"


def test_a_mistake_of_ours_is_told_in_one_sentence_with_a_report(patchlock: Patchlock, tmp_path: Path) -> None:
    code = (
        "import sys, patchlock.catalogue.reader as c; c.find = lambda *_: 1 / 0\n"
        "from patchlock.cli import main; sys.exit(main(['matrix']))"
    )
    env = patchlock.env({"TMPDIR": str(tmp_path), "TEMP": str(tmp_path)})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2
    found = re.fullmatch(
        r"error\[bug\]: internal error in patchlock: ZeroDivisionError: division by zero \((.+)\); "
        r"please report it, with the file that `patchlock report` writes\n",
        done.stderr,
    )
    assert found is not None
    assert Path(found[1]).parent == tmp_path
    assert "ZeroDivisionError" in Path(found[1]).read_text(encoding="utf-8")


def test_app_that_is_installed_on_another_profile_is_named_with_it(face: Callable[..., Said]) -> None:
    install(Path(os.environ["PATCHLOCK_HOME"]), app="tts-service", profile="cpu")
    assert face("uninstall", "tts-service", "--profile", "cuda-linux").stderr == (
        "error[not-installed]: tts-service is not installed on cuda-linux, only on cpu; "
        "remove it there with `patchlock uninstall tts-service --profile cpu`\n"
    )
    assert (
        "tts-service is not installed on cuda-linux, only on cpu ("
        in face("run", "tts-service", "--profile", "cuda-linux").stderr
    )
