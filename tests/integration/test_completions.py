"""Shells complete what is typed: commands, apps, profiles, options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Patchlock, Said

Face = Callable[..., Said]


def _completed(shell: str, words: str, env: dict[str, str]) -> list[str]:
    told = env | {
        "_PATCHLOCK_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    if shell == "powershell":
        told |= {"COMP_WORDS": "\n".join(words.split(" ")[:-1]), "COMP_CWORD": words.rsplit(" ", maxsplit=1)[-1]}
    done = subprocess.run([sys.executable, "-m", "patchlock"], capture_output=True, text=True, env=told, check=False)
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "powershell"])
def test_shells_complete_commands_apps_and_profiles(shell: str, patchlock: Patchlock) -> None:
    env = patchlock.env()
    end = "" if shell == "powershell" else "plain,"
    assert [line.partition("\t")[0] for line in _completed(shell, "patchlock ou", env)] == [f"{end}outdated"]
    assert [line.strip() for line in _completed(shell, "patchlock install xt", env)] == [f"{end}xtts-webui"]
    for words in (
        "install demo --profile ",
        "install nothere --profile cp",
        "install --profile cp",
        "lock demo --profile cp",
    ):
        assert [line.strip() for line in _completed(shell, f"patchlock {words}", env)] == [f"{end}cpu"]
    told = [line.strip() for line in _completed(shell, "patchlock install nothere --profile zl", env)]
    assert told == [f"{end}zluda-rdna4"]
    for words in ("patch apply xt", "patch test xt", "lock demo xt", "why xt", "doctor xt"):
        assert [line.strip() for line in _completed(shell, f"patchlock {words}", env)] == [f"{end}xtts-webui"]
    assert [line.strip() for line in _completed(shell, "patchlock help ch", env)] == [f"{end}check"]
    told = [line.partition("\t")[0].strip() for line in _completed(shell, "patchlock help patch d", env)]
    assert told == [f"{end}diff"]
    assert _completed(shell, "patchlock help install d", env) in ([], [""])
    for words in ("install xtts-webui --with i", "plan xtts-webui --profile cpu --without i"):
        assert [line.strip() for line in _completed(shell, f"patchlock {words}", env)] == [f"{end}int8"]
    assert _completed(shell, "patchlock install nothere --with i", env) in ([], [""])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_script_of_a_shell_is_of_that_shell(shell: str, face: Face, tmp_path: Path) -> None:
    text = face("completions", shell).stdout
    assert "_PATCHLOCK_COMPLETE" in text
    if (program := shutil.which(shell)) is not None and shell != "powershell":
        (tmp_path / "script").write_text(text)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.skipif(shutil.which("bash") is None or os.name == "nt", reason="bash is not installed")
@pytest.mark.parametrize("home", ["~", "$HOME"])
def test_bash_completes_a_command_typed_with_a_short_home_and_blanks(home: str, face: Face, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(face("completions", "bash").stdout)
    (tmp_path / "my apps").mkdir()
    (tmp_path / "my apps" / "patchlock").write_text("#!/bin/sh\nprintf 'plain,update\n'\n")
    (tmp_path / "my apps" / "patchlock").chmod(0o755)
    ask = f"complete() {{ :; }}; . {tmp_path}/script; _patchlock_completion '{home}/my apps/patchlock'; echo \"${{COMPREPLY[*]}}\""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert subprocess.check_output(["bash", "-c", ask], text=True, env=env) == "update\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_shows_a_description_beyond_its_comma(face: Face, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(face("completions", "fish").stdout)
    (tmp_path / "patchlock").write_text("#!/bin/sh\nprintf 'plain,update\\tUpdate an app, keep edits\\n'\n")
    (tmp_path / "patchlock").chmod(0o755)
    ask = f"source {tmp_path}/script; complete --do-complete 'patchlock up'"
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, env=env, check=True)
    assert done.stdout == "update\tUpdate an app, keep edits\n"


def test_missing_choice_is_told_in_one_line_without_tabs(face: Face) -> None:
    said = face("completions").stderr
    assert said.startswith("error[usage]: missing argument 'SHELL'. Choose from: bash, zsh, fish, powershell; see ")
    assert "\t" not in said
