"""`patchlock` alone: the guide on a terminal, and what stands in its place without one."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import click
import pytest
from conftest import ROOT, Patchlock
from miniature import World, lock_here
from terminals import on_terminal

from patchlock.cli import _guide
from patchlock.core import file_lock


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        pytest.param("demo\nperhaps\nn\nq\n", (), id="no"),
        pytest.param("demo\nq\n", (), id="leave-at-a-question"),
        pytest.param("demo\nq\n", ("install",), id="install.sh-alone"),
    ],
)
def test_alone_on_a_terminal_it_guides(typed: str, words: tuple[str, ...], patchlock: Patchlock) -> None:
    code, text = _guided(typed, patchlock, *words)
    assert code == 0
    assert "This machine: " in text
    assert re.search(r"^\d  demo ", text, re.MULTILINE)
    assert "$ patchlock install demo" in text
    assert "Install it now? [Y/n]" in text
    assert "Error" not in text
    assert ('answer y or n, or q to leave, not "perhaps"' in text) == ("perhaps" in typed)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_what_the_guide_shows_first_can_be_pasted(patchlock: Patchlock, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("git", "bash"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
    more = {"PATCHLOCK_BOOTSTRAP": str(ROOT / "install.sh"), "PATH": str(tmp_path / "bin")}
    _, text = _guided("demo\nq\n", patchlock, "install", more=more)
    launcher = re.search(r"\$ (\S+) install demo", text)
    assert launcher
    assert Path(launcher[1]).is_file()
    assert f"{launcher[1]} info demo" in text.replace("\r\n", "")


@pytest.mark.skipif(os.name == "nt", reason="the launcher is a script of cmd there")
def test_without_a_terminal_the_bootstrap_makes_the_launcher_and_names_it(patchlock: Patchlock, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = patchlock(
        "install", env={"PATCHLOCK_BOOTSTRAP": str(ROOT / "install.sh"), "PATH": str(tmp_path / "bin"), "TERM": "dumb"}
    )
    launcher = tmp_path / "installed" / "bin" / "patchlock"
    assert launcher.is_file()
    assert (done.returncode, done.stderr) == (
        2,
        f"error[usage]: no app is named; `{launcher} install demo` installs the smallest; `{launcher} list` shows all\n",
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_a_home_that_cannot_be_written_still_has_a_guide(patchlock: Patchlock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    more = {"PATCHLOCK_BOOTSTRAP": str(ROOT / "install.sh"), "PATCHLOCK_HOME": str(tmp_path / "file" / "home")}
    code, text = _guided("q\n", patchlock, more=more)
    assert (code, "This machine: " in text) == (0, True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize(("typed", "screens"), [("h\n\nq\n", 2), ("h\nq\n", 1)], ids=["go-on", "leave"])
def test_the_guide_waits_after_help(typed: str, screens: int, patchlock: Patchlock) -> None:
    code, text = _guided(typed, patchlock)
    assert (code, text.count("This machine: ")) == (0, screens)
    (told,) = re.findall(r"Use:\s+detect .*?Press Enter to go on", text, re.DOTALL)
    assert told.count("\n") < 24  # it stays on the screen


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize("columns", [40, 50, 80])
def test_the_guide_shows_what_is_installed_however_narrow_the_terminal_is(
    columns: int, patchlock: Patchlock, tmp_path: Path
) -> None:
    folder = tmp_path / "installed" / "advanced-rvc-inference@cpu"
    folder.mkdir(parents=True)
    (folder / "journal").write_text("an install is running\n")
    _, text = _guided("1\nq\n", patchlock, more={"COLUMNS": str(columns)})
    screen = text[text.index("This machine: ") : text.index("Number of an app")].splitlines()
    assert re.search("^1  advanced-rvc-inference .*interrupted$", "\n".join(screen), re.MULTILINE)
    assert [line for line in screen if len(line) > columns] == []
    assert "installed on cpu (interrupted)" in " ".join(text.split())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_asks_again_below_the_list_after_a_wrong_answer(patchlock: Patchlock) -> None:
    code, text = _guided("99\n\nx\ndemo\nn\nq\n", patchlock)
    assert (code, text.count("This machine: ")) == (0, 2), "the second one is after the app's page"
    wrong = [text.index(f'there is no app "{word}" in the list') for word in ("99", "x")]
    assert wrong == sorted(wrong)
    assert wrong[-1] < text.index("Install it now?")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (50, 20)])
@pytest.mark.parametrize(
    ("host", "cards", "memory"),
    [
        ("rtx4070-laptop-and-radeon-linux", "NVIDIA GeForce RTX 4070 Laptop GPU, AMD Radeon 740M", "too much"),
        (
            "rx7900xtx-linux-phoenix-igpu",
            "AMD Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M, AMD Radeon 740M",
            "12.1 GiB",
        ),
    ],
)
def test_the_guide_names_the_cards_and_cuts_no_word(
    host: str, cards: str, memory: str, columns: int, lines: int, patchlock: Patchlock
) -> None:
    machine = {"PATCHLOCK_HOST": str(ROOT / "tests" / "hardware" / "hosts" / f"{host}.json"), "COLUMNS": str(columns)}
    _, text = _guided("q\n", patchlock, more=machine)
    screen = text[text.index("This machine: ") :].splitlines()
    assert (len(screen) <= lines, [line for line in screen if len(line) > columns]) == (True, [])
    assert cards in " ".join(text.split())
    assert re.search(rf"^\d  amphion +GPU .*{re.escape(memory)}", text, re.MULTILINE)
    assert re.search(r"^\d  xtts-webui +GPU .* 2.0 GiB", text, re.MULTILINE), "with Resemble Enhance it takes 5.7"
    assert re.search("^1  demo +CPU ", text, re.MULTILINE)
    assert "…" not in text
    assert ("Proved, Models, more Memory: see an app's page" in text, " Proved " in text) == (
        columns == 50,
        columns == 80,
    )
    assert text.count("Warning: demo ") == text.count("Warning: ") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_calls_no_app_one_of_the_gpu_that_has_only_onnx_models_there(patchlock: Patchlock) -> None:
    host = ROOT / "tests" / "hardware" / "hosts" / "rx6600-windows.json"
    _, text = _guided("q\n", patchlock, more={"PATCHLOCK_HOST": str(host), "COLUMNS": "50"})
    assert re.search(r"^1  advanced-rvc-inference +CPU +3.7 GiB\*", text, re.MULTILINE)
    assert re.search(r"^\d  xtts-webui +CPU +4.6 GiB RAM\r?$", text, re.MULTILINE), (
        "5.7 are known only for a graphics card"
    )
    _, text = _guided("q\n", patchlock, more={"PATCHLOCK_HOST": str(host), "COLUMNS": "120"})
    assert re.search(r"^1  advanced-rvc-inference +CPU.* [?] +3.7 GiB\*", text, re.MULTILINE)
    assert "Models: what it downloads " in text
    assert " Memory: the least that it takes; some uses take more. *: known only for a graphics card." in " ".join(
        text.split()
    )
    _, text = _guided("q\n", patchlock)
    assert re.search("^   App +Runs on +Proved +Models +Memory", text, re.MULTILINE)  # in 80 columns


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_keeps_the_name_of_an_app_on_the_screen_and_shows_its_command_as_its_shell_has_it(
    patchlock: Patchlock,
) -> None:
    host = ROOT / "tests" / "hardware" / "hosts" / "rx6800xt-and-granite-ridge-windows.json"
    _, text = _guided("amphion\n\nq\n", patchlock, more={"PATCHLOCK_HOST": str(host), "LINES": "22"})
    (page,) = re.findall(r"^amphion: .*?Press Enter", text.replace("\r", ""), re.DOTALL | re.MULTILINE)
    assert page.count("\n") < 22
    assert re.search(r"^  patchlock plan amphion$", page, re.MULTILINE)
    assert " Reason: see more" in " ".join(page.split())
    _, text = _guided("amphion\n\nq\n", patchlock, more={"PATCHLOCK_HOST": str(host), "LINES": "30"})
    assert "You can try `patchlock plan amphion --profile zluda-rdna4`" in " ".join(text.split()), "as in `info`"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize("typed", ["\x04", "demo\n\x04"], ids=["list", "question"])
def test_the_end_of_the_input_interrupts_the_guide_as_any_question(typed: str, patchlock: Patchlock) -> None:
    code, text = _guided(typed, patchlock)
    assert (code, text.splitlines()[-1]) == (130, "interrupted")


def test_numbers_stay_after_a_failed_install_and_q_ends_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*words: str) -> int:
        folder = tmp_path / f"{words[1]}@cpu"
        folder.mkdir()
        (folder / "journal").write_text("failed: the disk is full\n")
        return 130

    answers = iter(["7", "y", "", "q"])
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path))
    monkeypatch.setenv("PATCHLOCK_OVERRIDE_ARCH", "")
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr(_guide, "_run", fail)
    assert _guide.guide() == 0
    before, after = re.findall(r"^7  (\S+)(.*)$", capsys.readouterr().out, re.MULTILINE)
    assert (before[0], "failed" in before[1], after[1].endswith("  failed")) == (after[0], False, True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_asks_once_where_a_better_profile_may_have_been_missed(patchlock: Patchlock) -> None:
    more = {"PATCHLOCK_OVERRIDE_ARCH": "gfx1201", "PATCHLOCK_OVERRIDE_KERNEL": "5.4"}
    _, text = _guided("rvc-python\nn\nq\n", patchlock, more=more)
    assert "Install it on cpu all the same? [y/N]" in text
    assert "$ patchlock install rvc-python --profile cpu" in text, "which `install` does not ask again"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_asks_nothing_where_no_app_runs(patchlock: Patchlock) -> None:
    machine = {"PATCHLOCK_HOST": str(ROOT / "tests" / "hardware" / "hosts" / "windows-arm-snapdragon.json")}
    code, text = _guided("", patchlock, more=machine)
    assert (code, "No app of the catalogue runs on this machine." in text, "Number of an app" in text) == (
        0,
        True,
        False,
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_comes_back_when_an_app_has_ended(locked: World, patchlock: Patchlock) -> None:
    assert locked.app.is_file()
    assert patchlock("install", "mini").returncode == 0
    code, text = _guided("mini\ny\n\nq\n", patchlock)
    assert (code, text.count("This machine: ")) == (0, 2), text
    assert text.index("$ patchlock run mini") < text.index("Press Enter to go on")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize("lines", [24, 60])
def test_the_guide_says_what_an_app_is_for_where_there_is_room(lines: int, patchlock: Patchlock) -> None:
    _, text = _guided("q\n", patchlock, more={"COLUMNS": "70", "LINES": str(lines)})
    assert ("Tonewheel, a tiny demo" in text, re.findall(r"^\d  (\S+)", text, re.MULTILINE)[0]) == (lines > 24, "demo")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_finishes_an_install_that_was_interrupted(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert locked.app.is_file()
    assert patchlock("install", "mini").returncode == 0
    (tmp_path / "installed" / "mini@tiny" / "journal").write_text("an install is running\n")
    _, text = _guided("mini\nn\nq\n", patchlock)
    assert re.search(r"^1  mini .* interrupted\b", text, re.MULTILINE)
    assert "install mini --profile tiny" in text
    assert "Finish its installation now? [Y/n]" in text
    assert "Start it now? [Y/n]" in text, "the version in use still works"
    with file_lock.hold(tmp_path / "installed" / "mini@tiny" / "lock", wait=0):
        _, text = _guided("mini\nn\nq\n", patchlock)
    assert re.search(r"^1  mini .* being changed\b", text, re.MULTILINE)
    assert "Another patchlock is changing it at this moment" in text
    assert "The version in use still works." in " ".join(text.split())
    assert "Finish its installation" not in text
    assert "Start it now? [Y/n]" in text
    (tmp_path / "installed" / "mini@tiny" / "journal").write_text("failed: the index has no such file\n")
    assert "why: the index has no such file" in " ".join(_guided("mini\nn\nq\n", patchlock)[1].split())
    (tmp_path / "installed" / "mini@tiny" / "journal").unlink()
    (file,) = (tmp_path / "installed" / "mini@tiny" / "environments").glob("*/pyvenv.cfg")
    (running,) = file_lock.share(file)
    _, text = _guided("mini\n\nq\n", patchlock)
    os.close(running)
    assert "It runs already. Start it a second time? [y/N]" in text


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_offers_nothing_while_an_app_is_installed_for_the_first_time(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert locked.app.is_file()
    (tmp_path / "installed" / "mini@tiny").mkdir(parents=True)
    (tmp_path / "installed" / "mini@tiny" / "journal").write_text("an install is running\n")
    with file_lock.hold(tmp_path / "installed" / "mini@tiny" / "lock", wait=0):
        code, text = _guided("mini\n\nq\n", patchlock)
    assert (code, text.count("This machine: "), "[Y/n]" in text) == (0, 2, False)
    assert "Another patchlock is changing it at this moment" in text


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_the_guide_offers_the_models_that_the_app_never_downloads(locked: World, patchlock: Patchlock) -> None:
    model = """
[[model]]
repository = "maker/speaks"
into = "models"
when = "request"
why = "what it speaks with"
license = "MIT"
source = "https://example.com/why"
files = [{ path = "voice.bin", bytes = 1048576 }]
"""
    locked.app.write_text(locked.app.read_text() + model)
    assert patchlock(*lock_here()).returncode == 0
    assert patchlock("install", "mini").returncode == 0
    _, text = _guided("mini\nn\nn\nq\n", patchlock)
    assert "$ patchlock models mini --fetch" in text
    assert "Download its models now (1.0 MiB)? [Y/n]" in text


def _guided(
    typed: str, patchlock: Patchlock, *words: str, more: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, str]:
    """Type into the guide on a terminal; gives its exit code and what was on the screen."""
    return on_terminal(words, typed, {"NO_COLOR": "1", **more}, patchlock)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_a_terminal_that_only_writes_lines_is_told_why_there_is_no_guide(patchlock: Patchlock) -> None:
    code, text = on_terminal((), "", {"TERM": "dumb"}, patchlock)
    assert (code, text.startswith("Usage: patchlock"), "no guide: TERM=dumb" in text) == (2, True, True)


def test_alone_in_a_pipe_it_prints_help(patchlock: Patchlock) -> None:
    done = patchlock()
    assert (done.returncode, done.stdout.startswith("Usage: patchlock")) == (2, True)
