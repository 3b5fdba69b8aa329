"""Launchers: what they start, with which words and variables, from paths with everything in them; run by real shells."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest
import tree_sitter
import tree_sitter_powershell
from conftest import ROOT

from patchlock.cli import _launcher
from patchlock.model import launchers
from patchlock.model.launchers import Itself, Starter, Target

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
START = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))"
TARGET = Target(app="mini", title="A miniature", profile="tiny")
ODD = {
    "plain": "tools",
    "spaces": "my tools  here",
    "quotes": """it's "mine" `here`""",
    "signs": "100% $HOME !x! %PATH% & co; #1 \\ ^(y)",
    "other scripts": "Zoë 日本語 🎵",
    "a line break": "two\nlines",
}
WORDS = ("", "a b", '"q"', "it's", "$HOME", "`x`", "100%", "!y!", "a\\", "*", "--json", "-n", "Zoë", "a\nb")
TOLD = ("PATCHLOCK_HOME", "PYTHONPATH", "PYTHONHOME")
PROGRAM = f"""\
#!{sys.executable} -I
import json, os, sys
print(json.dumps([sys.argv[1:], [os.environ.get(name) for name in {TOLD}]]))
sys.exit(7)
"""


def _starter(folder: Path) -> Starter:
    folder.mkdir(parents=True)
    program = folder / "patch'lock 1%"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    variables = {"PATCHLOCK_HOME": f"{folder}/the home", "PYTHONPATH": str(folder)}
    return Starter(program=str(program), arguments=("-m", "patch lock"), variables=variables, anchor=str(program))


def _run(path: Path, *words: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*([shell] if shell else []), str(path), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONHOME": "/nowhere", "PYTHONUTF8": "1"},
        cwd="/",
    )


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
@pytest.mark.parametrize("shell", ["", "dash", "bash"])
def test_shell_script_hands_on_every_word_and_the_exit_code(tmp_path: Path, name: str, shell: str) -> None:
    if shell and not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    starter = _starter(tmp_path / name)
    script = tmp_path / name / "run"
    script.write_bytes(launchers.shell(starter, TARGET))
    script.chmod(0o755)
    done = _run(script, *WORDS, shell=shell)
    assert (done.returncode, done.stderr) == (7, "")
    words = ["-m", "patch lock", "run", "mini", "--profile", "tiny", "--", *WORDS]
    assert json.loads(done.stdout) == [words, [f"{tmp_path / name}/the home", str(tmp_path / name), None]]


def test_shell_script_keeps_the_bytes_of_a_path_that_is_no_text(tmp_path: Path) -> None:
    starter = _starter(tmp_path / os.fsdecode(b"caf\xe9"))
    script = tmp_path / "run"
    script.write_bytes(launchers.shell(starter, TARGET))
    assert _run(script, shell="sh").returncode == 7


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_shell_script_says_that_patchlock_is_gone(tmp_path: Path, name: str) -> None:
    starter = _starter(tmp_path / name)
    script = tmp_path / "run"
    script.write_bytes(launchers.shell(starter, TARGET))
    Path(starter.anchor).unlink()
    done = _run(script, shell="sh")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == (
        f"patchlock is no longer at {starter.anchor}; run `patchlock install mini --profile tiny` from where it "
        "is now, which rewrites this file\n"
    )


def test_shell_script_is_sound(tmp_path: Path) -> None:
    checker = shutil.which("shellcheck")
    if checker is None:
        pytest.skip("there is no shellcheck")
    script = tmp_path / "run"
    script.write_bytes(launchers.shell(_starter(tmp_path / ODD["quotes"]), TARGET))
    done = subprocess.run([checker, "-S", "warning", str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


# --- the menu ---------------------------------------------------------------------------------------------------------


def _exec_of(entry: bytes) -> list[str]:
    """Read `Exec` as the specification says: first the escapes of a string, then quotation, then field codes."""
    (line,) = re.findall(r"(?m)^Exec=(.*)$", entry.decode())
    text = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r", "s": " ", "\\": "\\"}[m[1]], line)
    words = re.findall(r'"((?:[^"\\`$]|\\["\\`$])*)"(?: |$)|([^\s"\'\\<>~|&;$*?#()`]+)(?: |$)', text)
    plain = [re.sub(r'\\(["\\`$])', r"\1", quoted) or bare for quoted, bare in words]
    assert all(re.fullmatch(r"(?:[^%]|%%)*", word) for word in plain), "a field code"
    return [word.replace("%%", "%") for word in plain]


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_entry_of_the_menu_names_the_script(name: str) -> None:
    assert _exec_of(launchers.desktop(TARGET, f"/{name}/run")) == ["sh", f"/{name}/run"]


def test_entry_of_the_menu_is_readable() -> None:
    target = dataclasses.replace(TARGET, title="Zoë's \\ app: what it does, at length")
    assert launchers.desktop(target, "/my home/run").decode() == (
        "[Desktop Entry]\nType=Application\nName=Zoë's \\\\ app\nComment=mini on tiny, as patchlock installed it\n"
        'Exec=sh "/my home/run"\nTerminal=true\n'
    )


@pytest.mark.skipif(shutil.which("gio") is None, reason="there is no gio")
@pytest.mark.parametrize("kind", [kind for kind in ODD if kind != "a line break"])
def test_desktop_starts_the_script(tmp_path: Path, kind: str) -> None:
    script = tmp_path / ODD[kind] / "run"
    script.parent.mkdir()
    script.write_text(f"echo started >'{tmp_path}/told'\n")
    entry = tmp_path / "x.desktop"
    # A terminal is what a machine of tests has not.
    entry.write_bytes(launchers.desktop(TARGET, str(script)).replace(b"Terminal=true", b"Terminal=false"))
    done = subprocess.run(["gio", "launch", str(entry)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for _ in range(100):
        if (tmp_path / "told").exists():
            break
        subprocess.run(["sleep", "0.02"], check=True)
    assert (tmp_path / "told").read_text() == "started\n"


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_patchlocks_own_launcher_finds_its_home_without_variables(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / name
    home.mkdir()
    bootstrap = home / "install.sh"
    bootstrap.write_text('#!/bin/sh\nprintf "%s|" "$PATCHLOCK_MODULE" "$PATCHLOCK_HOME" "$PATCHLOCK_CACHE_DIR" "$@"\n')
    bootstrap.chmod(0o755)
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", str(bootstrap))
    monkeypatch.setenv("PATCHLOCK_HOME", name)
    monkeypatch.delenv("PATCHLOCK_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    _launcher.write(home)
    done = subprocess.run([str(_launcher.path(home)), "run", "a b"], capture_output=True, text=True, check=True, env={})
    assert done.stdout == f"patchlock|{home}||run|a b|"


# --- Windows ----------------------------------------------------------------------------------------------------------


WINDOWS = Starter(
    program=r"C:\100% mine\python.exe",
    arguments=("-P", "-m", "patchlock"),
    variables={"PATCHLOCK_HOME": r"C:\it's & co"},
    anchor=r"C:\100% mine\python.exe",
)


def test_batch_file_doubles_percent_signs_and_keeps_the_code_page() -> None:
    lines = launchers.batch(WINDOWS, TARGET).decode().split("\r\n")
    assert lines[2:14] == [
        "goto prepare",
        ":start",
        '"%PATCHLOCK_AT%" -P -m patchlock run mini --profile tiny -- %*',
        "goto ended",
        ":prepare",
        "setlocal DisableDelayedExpansion",
        r'set "PATCHLOCK_AT=C:\100%% mine\python.exe"',
        'set "PATCHLOCK_HOME=C:\\it\'s & co"',
        'set "PYTHONHOME="',
        'if not exist "%PATCHLOCK_AT%" goto gone',
        "goto start",
        ":ended",
    ]


@pytest.mark.parametrize("target", [TARGET, Itself()], ids=["app", "itself"])
def test_cmd_reads_on_at_the_same_place_in_a_later_version_of_the_file(target: Target | Itself) -> None:
    later = dataclasses.replace(PREPARED, variables={"PATCHLOCK_NEW": "1"}, defaults={"PATCHLOCK_HOME": r"D:\x"})
    one, other = (launchers.batch(starter, target).decode() for starter in (PREPARED, later))
    end = one.index("%*\r\n") + len("%*\r\n")
    assert one != other
    assert one[:end] == other[:end]
    assert one[end:].startswith("goto ended\r\n")
    assert other[end:].startswith("goto ended\r\n")
    for text in (one, other, launchers.bootstrap().decode()):
        lines = text.split("\r\n")
        assert all(lines.count(f":{word}") == 1 for word in re.findall(r"goto (\w+)", text))


def test_only_a_window_of_the_menu_or_the_explorer_waits_for_a_key_after_an_error() -> None:
    lines = launchers.batch(PREPARED, TARGET).decode().split("\r\n")
    waits = lines[lines.index(":end") + 1 :]
    assert waits[:4] == [
        'if "%PATCHLOCK_CODE%"=="0" exit /b 0',
        """set "PATCHLOCK_FROM=%CMDCMDLINE:"=%\"""",
        'if /i "%PATCHLOCK_FROM:~-8%"=="run.bat " pause',
        "exit /b %PATCHLOCK_CODE%",
    ]
    assert waits[-3:-1] == ['set "PATCHLOCK_CODE=127"', "goto end"]
    assert 'if not defined PATCHLOCK_TOOL set "PATCHLOCK_CODE=1"& goto end' in lines
    assert "pause" not in launchers.batch(PREPARED, Itself()).decode()


def test_batch_file_is_read_as_utf8_where_a_path_needs_that() -> None:
    starter = dataclasses.replace(WINDOWS, anchor=r"C:\Zoë\python.exe", program=r"C:\Zoë\python.exe")
    lines = launchers.batch(starter, TARGET).decode().split("\r\n")
    first, last = lines.index("chcp 65001 >nul"), lines.index("chcp %PATCHLOCK_CODE_PAGE% >nul")
    assert all(line.isascii() for line in lines[:first] + lines[last:])
    assert r'set "PATCHLOCK_AT=C:\Zoë\python.exe"' in lines[first:last]


def test_powershell_file_quotes_every_kind_of_quotation_mark() -> None:
    starter = dataclasses.replace(WINDOWS, variables={"PATCHLOCK_HOME": "C:\\it's \u2018his\u2019 $home `x"})
    text = launchers.powershell(starter, TARGET)
    assert text.startswith(b"\xef\xbb\xbf# Starts mini")
    assert "'C:\\it''s \u2018\u2018his\u2019\u2019 $home `x'\r\n".encode() in text
    assert b"@('-P', '-m', 'patchlock', 'run', 'mini', '--profile', 'tiny', '--') + $args" in text


@pytest.mark.wine
def test_batch_file_hands_on_words_and_the_exit_code(tmp_path: Path) -> None:
    """Wine's cmd expands what a variable holds once more, and has one code page: no `%` and only ASCII here."""
    folder = tmp_path / "it's $HOME !x! & co; #1 ^(y)"
    folder.mkdir()
    (folder / "tell.py").write_text(PROGRAM.partition("\n")[2], encoding="utf-8")
    tell = str(PureWindowsPath(f"Z:{folder}/tell.py"))
    starter = Starter(
        program=r"C:\python\python.exe",
        arguments=(tell,),
        variables={"PATCHLOCK_HOME": f"Z:{folder}"},
        anchor=tell,
    )
    (folder / "run.bat").write_bytes(launchers.batch(starter, TARGET))
    script = str(PureWindowsPath(f"Z:{folder}/run.bat"))
    words = ["a b", "$HOME", "!y!", "--json", "it's"]
    run = [str(WINE / "enter"), "python", "-c", START, script, *words]
    env = os.environ | {"CMDCMDLINE": "cmd"}  # Wine's cmd does not set it
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, errors="replace", env=env)
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert (told[0], done.returncode) == (["run", "mini", "--profile", "tiny", "--", *words], 7)
    assert told[1][0] == f"Z:{folder}"
    (folder / "tell.py").unlink()
    env["CMDCMDLINE"] = f'cmd /c ""{script}" "'  # as the Explorer starts it
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, errors="replace", env=env)
    assert "Press any key" in done.stdout
    assert (done.returncode, "from where it is now, which rewrites this file" in done.stdout) == (127, True)


@pytest.mark.parametrize(
    ("os_name", "folder", "made"),
    [
        ("linux", "/home/x", {"run", "patchlock-mini-tiny.desktop"}),
        ("linux", "/home/x\ny", {"run"}),
        ("macos", "/home/x", {"run", "run.command"}),
        ("windows", "C:\\x", {"run.bat", "run.ps1", "start-menu.ps1"}),
    ],
    ids=["Linux", "a name no menu can have", "macOS", "Windows"],
)
def test_files_that_fit_the_system_are_made_and_known(os_name: str, folder: str, made: set[str]) -> None:
    starter = WINDOWS
    assert launchers.files(starter, TARGET, os=os_name, folder=folder).keys() == made
    assert made <= set(launchers.names("mini", "tiny"))


# --- patchlock's own launcher, and install.cmd -------------------------------------------------------------------------


def test_install_cmd_is_as_it_is_written_here() -> None:
    assert (ROOT / "install.cmd").read_bytes().replace(b"\r\n", b"\n") == launchers.bootstrap().replace(b"\r\n", b"\n")


def test_a_home_that_is_set_later_wins_over_the_one_the_launcher_knows(tmp_path: Path) -> None:
    starter = dataclasses.replace(_starter(tmp_path / "x"), variables={}, defaults={"PATCHLOCK_HOME": "/it's known"})
    script = tmp_path / "patchlock"
    script.write_bytes(launchers.shell(starter, Itself()))
    for told, seen in (("", "/it's known"), ("/later", "/later")):
        env = {"PATCHLOCK_HOME": told} if told else {}
        done = subprocess.run(["sh", str(script), "a b"], capture_output=True, text=True, check=False, env=env)
        assert json.loads(done.stdout) == [["-m", "patch lock", "a b"], [seen, None, None]]
    lines = launchers.batch(dataclasses.replace(WINDOWS, defaults={"PATCHLOCK_HOME": r"D:\100%"}), Itself()).decode()
    assert '\r\nif not defined PATCHLOCK_HOME set "PATCHLOCK_HOME=D:\\100%%"\r\n' in lines


PREPARED = Starter(
    program="",
    arguments=("-P", "-m", "patchlock"),
    variables={"PYTHONPATH": r"C:\checkout\installer"},
    anchor=r"C:\checkout\install.ps1",
    prepares=True,
)


def test_no_word_of_the_user_goes_through_powershell() -> None:
    for script in (launchers.batch(PREPARED, Itself()).decode(), launchers.bootstrap().decode()):
        (prepares,) = [line for line in script.split("\r\n") if "powershell" in line]
        (starts,) = [line for line in script.split("\r\n") if "%*" in line]
        assert prepares.endswith("""-File "%%PATCHLOCK_AT%%" ^<nul') do set "PATCHLOCK_TOOL=%%t\"""")
        assert starts.startswith('"%PATCHLOCK_PYTHON%" -P -m ')
        assert script.index("setlocal") < script.index("set ")
    text = launchers.powershell(PREPARED, TARGET).decode("utf-8-sig")
    assert text.index("$tool = ") < text.index("$args")


def test_patchlocks_own_batch_file_survives_umlauts_and_percent_signs() -> None:
    at = r"C:\Zoë 100% of it\install.ps1"
    starter = dataclasses.replace(PREPARED, anchor=at, variables={}, defaults={"PATCHLOCK_HOME": r"D:\Zoë & 5%"})
    lines = launchers.batch(starter, Itself()).decode().split("\r\n")
    first, last = lines.index("chcp 65001 >nul"), lines.index("chcp %PATCHLOCK_CODE_PAGE% >nul")
    assert lines[first + 1 : last] == [
        r'set "PATCHLOCK_AT=C:\Zoë 100%% of it\install.ps1"',
        r'if not defined PATCHLOCK_HOME set "PATCHLOCK_HOME=D:\Zoë & 5%%"',
    ]
    assert all(line.isascii() for line in lines[:first] + lines[last:])


def test_start_menu_script_makes_a_name_that_windows_takes() -> None:
    text = launchers.start_menu(dataclasses.replace(TARGET, title="It's a/b? c: long")).decode("utf-8-sig")
    assert "'It''s a b  c (tiny).lnk'" in text
    assert "$target = Join-Path $PSScriptRoot 'run.bat'\r\n" in text
    assert "if ($shortcut.TargetPath -eq $target) { Remove-Item -LiteralPath $link" in text  # another one's stays


@pytest.mark.parametrize(
    "script",
    [
        launchers.powershell(PREPARED, TARGET),
        launchers.powershell(WINDOWS, TARGET),
        launchers.start_menu(TARGET),
    ],
    ids=["prepared", "installed", "Start menu"],
)
def test_powershell_files_are_well_formed(script: bytes) -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    root = parser.parse(script.removeprefix(b"\xef\xbb\xbf")).root_node
    assert not root.has_error


DRIVER = """\
@echo off
set "PATCHLOCK_HOME={home}"
set "PATCHLOCK_CACHE_DIR={cache}"
set P
call "{script}" run "a b" -- -x:y --json "it's"
set P
"""


@pytest.mark.wine
@pytest.mark.parametrize("name", ["install.cmd", "patchlock.cmd"])
@pytest.mark.parametrize("home", ["", r"C:\later on"], ids=["as known", "set later"])
def test_cmd_starts_the_prepared_python_and_leaks_nothing(tmp_path: Path, name: str, home: str) -> None:
    """Wine's cmd expands what a variable holds once more, and has one code page: no `%` and only ASCII here."""
    checkout, cache = tmp_path / "my & (checkout) #1", tmp_path / "the cache"
    package = checkout / "installer" / "patchlock"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    told = ("PATCHLOCK_HOME", "PATCHLOCK_BOOTSTRAP", "PATCHLOCK_MODULE", "PATCHLOCK_PREPARE")
    (package / "__main__.py").write_text(
        f"import json, os, sys\nprint(json.dumps([sys.argv[1:], [os.environ.get(name) for name in {told}]]))\nsys.exit(7)\n"
    )
    (checkout / "install.ps1").touch()
    (tmp_path / "powershell.bat").write_text("@if exist %5 echo tool-0\r\n")
    here, script = str(PureWindowsPath(f"Z:{checkout}")), checkout / name
    starter = dataclasses.replace(
        PREPARED,
        variables={"PATCHLOCK_BOOTSTRAP": rf"{here}\install.ps1", "PYTHONPATH": rf"{here}\installer"},
        defaults={"PATCHLOCK_HOME": r"C:\it's known"},
        anchor=rf"{here}\install.ps1",
    )
    script.write_bytes(launchers.bootstrap() if name == "install.cmd" else launchers.batch(starter, Itself()))
    driver = tmp_path / "driver.bat"
    there = {"home": home, "cache": PureWindowsPath(f"Z:{cache}"), "script": PureWindowsPath(f"Z:{script}")}
    driver.write_text(DRIVER.format(**there), newline="\r\n")
    venv = [str(WINE / "enter"), "python", "-m", "venv", "--without-pip", str(PureWindowsPath(f"Z:{cache}/tool-0"))]
    subprocess.run(venv, check=True, capture_output=True, timeout=120)
    run = [str(WINE / "enter"), "cmd", "/c", str(PureWindowsPath(f"Z:{driver}"))]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    lines = done.stdout.strip().splitlines()
    *before, seen = lines[: len(lines) // 2 + 1]
    own = home or (None if name == "install.cmd" else r"C:\it's known")
    words = ["run", "a b", "--", "-x:y", "--json", "it's"]
    assert json.loads(seen) == [
        [*(["install"] if name == "install.cmd" else []), *words],
        [own, rf"{here}\install.ps1", None, None],
    ]
    assert lines[len(before) + 1 :] == before
    # Wine's `call` makes every exit code 1.
    run = [str(WINE / "enter"), "python", "-c", START, str(there["script"])]
    env = os.environ | {"PATCHLOCK_CACHE_DIR": str(there["cache"])}
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, check=False, timeout=120, env=env)
    assert done.returncode == 7
