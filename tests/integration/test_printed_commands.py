"""Every command that a page or a message prints: patchlock's are taken by its parser, and the others are listed with a reason.

The commands of the pages for everyday use are run, in order.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import ROOT, Patchlock

from patchlock.cli._commands import patchlock as group

PAGES = (
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions"),
)
OTHERS = {
    "./install.sh": "tests/integration/test_bootstrap.py, and .ci/record-demo for the README",
    "./patchlock/install.sh": "the same, from a bundle: tests/integration/test_bundle.py",
    "tool/install.sh": "the same, in somebody's CI",
    "tool/install.sh check": "the same",
    ".\\install.cmd": "tests/model/test_launchers.py under Wine; .github/workflows/ci.yml on Windows",
    "&": "PowerShell's call of bin\\patchlock.cmd: the same",
    "~/.local/share/patchlock/bin/patchlock": ".ci/record-demo",
    "tar": "tests/integration/test_bundle.py does the same",
    ".ci/run": "what runs these tests",
    ".ci/site": "a step of .ci/run",
    "tests/run": "what runs these tests",
    "tests/relock": "needs the index; lockfiles/ is what it made",
    "tests/wine-root": "makes a system for the tests marked wine",
    "tests/aarch64-root": "makes a system for the tests marked aarch64",
    "export": "a variable of the shell",
    "$env:PATH": "a variable of PowerShell",
    "[Environment]::SetEnvironmentVariable('Path',": "needs Windows, and changes the reader's system",
    "if": "needs Windows, and makes the reader's PowerShell profile",
    "Add-Content": "needs Windows, and changes the reader's PowerShell profile",
    "Set-ExecutionPolicy": "needs Windows, and changes the reader's system",
    "gh": "asks GitHub for the attestation of a release",
    "git": "git's own commands, with the reader's files",
    "cd": "goes into the clone",
    "sudo": "changes the reader's system",
    "apt": "changes the reader's system",
    "apt-get": "changes the reader's system",
    "dnf": "changes the reader's system",
    "brew": "changes the reader's system",
    "winget": "needs Windows, and changes the reader's system",
    "wsl": "needs Windows",
    "uv": "uv's own commands; tests/integration/test_package.py installs the wheel, tests/locks read the exports",
    "pip": "pip's own commands; tests/locks read the locks with it",
    "pipx": "changes the reader's system",
    "python": "starts a program of the page's own",
    "sed": "edits a file of the reader's, as an example",
    "url=http://127.0.0.1:3002/api/tts/synthesize/binary": "a variable of the shell",
    "curl": "asks an app that runs, with its voice",
    "mkdir": "makes folders in the reader's home",
    "docker": "needs Docker; tests/integration/test_exporting.py reads the files that it is given",
    "ansible-playbook": "needs Ansible, and changes other machines",
}
"""First words of commands that are not patchlock's → who runs them, or why nobody does."""

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`+((?:PATCHLOCK_\w+=\S+ )*patchlock(?: [^`]+)?)`+")


def _uncommented(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line).strip()


def _of_page(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for language, block in _BLOCK.findall(text):
        lines = filter(None, map(_uncommented, block.splitlines()))
        # A block without a language also shows what programs print.
        yield from (line for line in lines if language in {"sh", "powershell"} or line.startswith("patchlock "))
    yield from (" ".join(found.split()) for found in _INLINE.findall(_BLOCK.sub("", text)))


def _of_messages() -> Iterator[tuple[str, str]]:
    """Find what stands between backquotes in patchlock's own texts; what is filled in counts as one word."""
    for path in sorted((ROOT / "installer" / "patchlock").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
                texts = ["".join(parts)]
            else:
                texts = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            for found in (found for text in texts for found in re.findall(r"`(patchlock [^`]+)`", text)):
                yield f"{path.relative_to(ROOT)}", " ".join(found.split())
    for path in sorted((ROOT / "profiles").rglob("*.toml")):
        for found in re.findall(r"[`\"'](patchlock [^`\"'\n]+)[`\"']", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}", found


def _problem(command: str) -> str:
    """Say what patchlock's parser does not take of a command; "" if nothing."""
    command = re.sub(r"[<\[]([\w' ./-]+)[>\]]|…|\.\.\.", "X", command)
    words = shlex.split(command.partition(" | ")[0].partition(" > ")[0])
    context, found = click.Context(group, info_name="patchlock"), group
    rest = words[words.index("patchlock") + 1 :]
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        if rest[0] in {"X", "COMMAND"}:
            return ""
        # What is filled in may be nothing, or words of its own: `patchlock doctor{arguments}`.
        inner = found.get_command(context, rest[0]) or found.get_command(context, rest[0].removesuffix("X"))
        if inner is None:
            return f"there is no command {rest[0]}"
        found, rest = inner, rest[1:]
    try:
        _, extra, _ = found.make_parser(click.Context(found)).parse_args(list(rest))
    except click.BadOptionUsage:  # it names an option, without the value
        return ""
    except click.UsageError as error:
        return error.format_message()
    # A word that is filled in may be nothing, or an option: `patchlock doctor X`.
    left = [word for word in extra if "X" not in word and not found.allow_extra_args]
    return f"{found.name} takes no {left[0]}" if left else ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_can_be_typed_or_is_listed(path: Path) -> None:
    problems = []
    for command in _of_page(path):
        word = next((word for word in command.split() if not re.match(r"PATCHLOCK_\w+=", word)), "")
        if word == "patchlock":
            problems += [f"{command}: {problem}" for problem in [_problem(command)] if problem]
        elif word not in OTHERS:
            problems.append(f"{command}: nothing says who runs it")
    assert problems == []


def test_every_command_of_a_message_can_be_typed() -> None:
    found = sorted(set(_of_messages()))
    assert len(found) > 60
    assert [
        f"{place}: {command}: {problem}" for place, command in found for problem in [_problem(command)] if problem
    ] == []


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("patchlock instal demo", "there is no command instal"),
        ("patchlock patch aply", "there is no command aply"),
        ("patchlock install demo --prefix cpu", "No such option '--prefix'"),
        ("patchlock install demo --profile", ""),
        ("patchlock <command> --help", ""),
        ("patchlock patch apply X --without <id>", ""),
        ("PATCHLOCK_HOST=machine.json patchlock detect --json > machine.json", ""),
    ],
)
def test_a_command_that_nobody_could_type_is_found(command: str, problem: str) -> None:
    assert _problem(command).partition(". ")[0].rstrip(".").partition(" (")[0] == problem


NOT_HERE = {
    "patchlock install xtts-webui --with int8": "a download of gigabytes; tests/integration/test_optional_install.py",
    "patchlock install tts-service --source ~/clones/second-brain": "needs that clone; tests/integration/test_road.py",
    "patchlock models tts-service --fetch": "needs that app, and downloads gigabytes; tests/integration/test_models.py",
    "patchlock run diffrhythm2": "needs that app, which is gigabytes",
    "patchlock run diffrhythm2 -- --input-jsonl C:/songs/songs.jsonl --output-dir C:/songs": "the same",
    "patchlock bench diffrhythm2": "the same",
    "patchlock run advanced-rvc-inference": "needs that app, which is gigabytes",
    "patchlock update demo": "the demo has no branch to follow; tests/integration/test_update.py",
    "patchlock rollback demo": "needs two generations; tests/integration/test_generations.py",
    "patchlock uninstall demo --purge": "follows another one that removes it; tests/integration/test_generations.py",
    "patchlock outdated": "asks upstream; tests/integration/test_front_door.py",
    "patchlock doctor": "says what the machine is; tests/hardware",
}


@pytest.mark.online
@pytest.mark.slow
def test_the_everyday_commands_run_in_the_order_of_their_page(patchlock: Patchlock, tmp_path: Path) -> None:
    told = list(_of_page(ROOT / "docs" / "use.md"))
    blocks = [command for command in told if command.startswith("patchlock ") and "APP" not in command]
    assert len(blocks) > 12
    assert NOT_HERE.keys() <= set(blocks)
    home = {"PATCHLOCK_HOME": str(tmp_path / "home")}
    for command in blocks:
        if command in NOT_HERE:
            continue
        words = shlex.split(command)[1:]
        done = patchlock(*words, env=home)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


READ_ONLY = ("list", "info", "status", "detect", "help", "completions", "cache", "doctor", "matrix")
"""Commands that are run wherever a page prints them, with the demo for any app."""
ELSEWHERE = {
    "plan": "needs upstream; the demo's is run with the page for everyday use",
    "install": "the same; an app is gigabytes",
    "run": "the same",
    "update": "tests/integration/test_update.py, on a branch that moves",
    "uninstall": "tests/integration/test_generations.py",
    "verify": "with the page for everyday use",
    "report": "with the page for everyday use",
    "new-app": "needs a repository; tests/integration/test_new_app.py",
    "patch": "needs a clone; tests/worktree and tests/integration/test_authoring_commands.py",
    "lock": "asks the index; tests/integration/test_lock.py and test_lock_modes.py",
    "models": "downloads; tests/integration/test_models.py",
    "bench": "computes for minutes; tests/integration/test_bench_command.py",
    "outdated": "asks upstream; tests/integration/test_front_door.py",
    "rollback": "tests/integration/test_generations.py",
    "bundle": "tests/integration/test_bundle.py",
    "trust": "tests/integration/test_trust.py",
    "self": "removes patchlock; tests/integration/test_front_door.py",
    "check": "asks upstream; tests/integration/test_check.py",
    "why": "tests/integration/test_why.py",
    "export": "tests/integration/test_exporting.py",
    "scan": "reads wheels; tests/distributions",
    "sdist": "tests/distributions",
    "index": "asks vendors; tests/integration/test_index_record.py",
}
"""The other commands → where they are run, or why not here."""
_OF_THE_READER = re.compile(
    r"[<\[{…~]|\.\.\.|--(json|says)\b|completions$|\b(APP|COMMAND|LOG|FILE|DIR|machine|chatterbox|my-\w+)\b"
)
"""What a reader has to put in, or has himself; test_envelopes.py runs what has --json."""


def _read_only() -> list[str]:
    found = {command for path in PAGES for command in _of_page(path)}
    apps = "|".join(path.parent.name for path in (ROOT / "patches").glob("*/app.toml"))
    of_demo = {re.sub(rf"(?<!\S)({apps})(?!\S)", "demo", command) for command in found}
    return sorted(
        command
        for command in of_demo
        if command.startswith(tuple(f"patchlock {name}" for name in READ_ONLY)) and not _OF_THE_READER.search(command)
    )


def test_every_command_is_run_here_or_elsewhere() -> None:
    assert sorted((*READ_ONLY, *ELSEWHERE)) == sorted(group.list_commands(click.Context(group)))
    assert len(_read_only()) >= 8


@pytest.mark.parametrize("command", _read_only())
def test_a_printed_command_that_only_reads_runs(command: str, patchlock: Patchlock, tmp_path: Path) -> None:
    words = shlex.split(command.partition(" > ")[0].partition(" | ")[0])
    if "--changed-since" in words and not (ROOT / ".git").exists():
        pytest.skip("an unpacked archive has no commits")
    done = patchlock(*words[1:], env={"PATCHLOCK_HOME": str(tmp_path / "home"), "UV_OFFLINE": "1"})
    if words[1:3] == ["cache", "clean"]:  # it asks before it removes old versions; there are none
        assert done.returncode in {0, 2}, done.stderr
    else:
        assert done.returncode == 0, done.stderr
