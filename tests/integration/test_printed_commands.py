"""Every command that a page or a message prints: patchlock's are taken by its parser, and the others are listed with a reason.

The commands of the pages for everyday use are run, in order.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import tree_sitter
import tree_sitter_powershell
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
    "$bin": "a variable of PowerShell",
    "$key": "the same; what it sets needs Windows, and changes the reader's system",
    "$path": "a variable of PowerShell",
    "$key.SetValue('Path',": "needs Windows, and changes the reader's system",
    "[Environment]::SetEnvironmentVariable('patchlock',": "needs Windows, and sets nothing",
    "if": "needs Windows, and changes the reader's Path, or makes the PowerShell profile",
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
    "pip": "pip's own commands; tests/integration/test_lock.py reads the locks with it",
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


def _texts_of_code() -> Iterator[tuple[str, str]]:
    """Give patchlock's own texts with their places; what is filled in counts as one word."""
    for path in sorted((ROOT / "installer" / "patchlock").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and path.parent.name != "cli"}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                words = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
                yield f"{path.relative_to(ROOT)}", "".join(words)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docs:
                yield f"{path.relative_to(ROOT)}", node.value


def _of_messages() -> Iterator[tuple[str, str]]:
    """Find patchlock's commands between backquotes in its own texts."""
    for place, text in _texts_of_code():
        for found in re.findall(r"`(patchlock [^`]+)`", text):
            yield place, " ".join(found.split())
    for path in sorted((ROOT / "profiles").rglob("*.toml")):
        for found in re.findall(r"[`\"'](patchlock [^`\"'\n]+)[`\"']", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}", found


def _texts_of_profiles(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Give each text of a file with the key that it stands under."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts_of_profiles(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_of_profiles(inner, key)
    elif isinstance(value, str):
        yield key, value


_WHOLE = re.compile(
    r"^ *(?:\$ (?!\{|X$|%)(.+)|((?:sudo|git -C|xcode-select|nix-shell|winget|choco|brew|rm|uv (?:tool|pip)|pipx) \S.*))$",
    re.MULTILINE,
)
"""Lines that are a command as a whole, without backquotes."""
_QUOTED = re.compile(r"`([\w.~/$'\[{][^`\n]* [^`\n]*|[A-Z_]+=[^`\s]+|[A-Z][a-z]+-[A-Z]\w+)`")
"""Several words, a variable that is set, or a cmdlet; one word alone is a name."""
_NO_COMMAND = re.compile(
    r"patchlock |\w\S* = (?!\$null|')|X @ |(X|additionalProperties:|if) \S+$|cannot import|Content-Type$|git (X|-C X)$"
    r"|(lock|index|patch|apply|install) (--)?[a-z-]+( FILE)?$"
)
"""Patchlock's own, which the parser takes, some without its name; text of files; names of what is asked about."""
OTHERS_OF_MESSAGES = {
    r"tar -xf X patchlock tool|\./patchlock/install\.sh X --from X": "as for a page: tests/integration/test_bundle.py",
    r"pipenv requirements >": "needs pipenv, which whoever has a Pipfile has",
    r"git -C /app |rm -rf (/app|/var)/": "a line of a Dockerfile; tests/integration/test_exporting.py reads it",
    r"X (bundle|doctor|lock|dockerfile)\b|X--profile ": "patchlock's, by its path; tests/cli/test_launcher.py",
    r"(export|unset|mkdir -p) |echo 'export": "a test below runs it, in a shell of its own",
    r".*\bsudo |(brew|winget|choco|xcode-select|nix-shell|systemctl) |pipx X X$|uv (tool|pip) X ": "changes the system",
    r"\(?[A-Z][a-z]+-[A-Z]|\$env:|\[Environment\]|'[A-Z_]+', |(wsl|dxdiag|powershell) |SystemProperties": (
        "needs Windows; tests/hardware/test_troubles.py parses those of remedies"
    ),
    r"(nvidia-smi|rocminfo|lsmod|modinfo|mokutil|ldconfig|df|dkms|dpkg-query|uname|getconf|ls|test|grep|printenv)\b": (
        "shows what a machine with that hardware or system has; tests/hardware/test_troubles.py checks its shell"
    ),
    r"(cat /proc/sys|lspci|ubuntu-drivers devices)\b": "the same",
    r"docker ": "needs Docker, and a machine with that hardware",
    r"\{python\} |python3? |pip install --user$|conda ": "needs the app's or the reader's own Python",
    r"git (-C X )?(--version|status|log|config --get|apply$|stash pop$)|(X diff|journalctl|ulimit|lsof) ": (
        "shows what the reader has, or is only spoken of"
    ),
    r"git config --global --add safe.directory": "run as printed: tests/worktree/test_foreign_owner.py",
    r"git -C X checkout -- ": "run as printed: tests/integration/test_bad_input.py",
    r"install -Dm644 ": "run as printed: tests/integration/test_front_door.py",
    r"git -C X restore --staged --source": "needs the move that unstaged; tests/worktree/test_moves_trials.py reads it",
    r"git add -f ": "needs a file that git ignores; tests/integration/test_authoring_commands.py reads it",
    r"git -C X add |X X (--abort|--continue|X)$": (
        "needs the conflict that it ends; run as printed: tests/worktree/test_clone_patches_git_conflicts.py"
    ),
    r"(git -C X|X) checkout X": "needs the conflict that it ends; tests/worktree/test_moves_as_git.py does the same",
    r"X pull --rebase": "needs upstream's branch; tests/worktree/test_conflicts_without_markers.py does the same",
    r"X switch |X commit --no-verify|git -C X stash drop": "ends or drops what only the reader can; nobody runs it",
    r"git (clone|fetch|pull|-C X (pull|fetch))\b": "fetches from upstream, with the reader's clone",
    r"GIT_LFS_SKIP_SMUDGE=1": "a variable for the same command; tests/worktree/test_told_truly.py",
    r"(mv|rm -rf) X": "moves or removes the reader's folders; tests/integration/test_bad_folders.py does the first",
    r"(uv pip sync|pip install) --": "needs the lock that it is written in; tests/integration/test_lock.py does the same",
}
"""Commands of other programs that messages and remedies print → who runs them, or why nobody does."""


def _of_others() -> list[str]:
    """Find the commands that messages and remedies print and that are not patchlock's, whatever their program is."""
    texts = [text for _, text in _texts_of_code()]
    found = [line for text in texts for pair in _WHOLE.findall(text) for line in pair if line]
    for path in (ROOT / "profiles").rglob("*.toml"):
        for key, text in _texts_of_profiles(tomllib.loads(path.read_text(encoding="utf-8"))):
            (found if key in {"command", "commands", "proof"} else texts).append(text)
    found += [command for text in texts for command in _QUOTED.findall(text)]
    return sorted({command for command in found if not _NO_COMMAND.match(command)})


def test_powershell_of_the_pages_parses_and_keeps_the_readers_path_unexpanded() -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    blocks = [
        block for page in PAGES for name, block in _BLOCK.findall(page.read_text("utf-8")) if name == "powershell"
    ]
    assert [block for block in blocks if parser.parse(block.encode()).root_node.has_error] == []
    changed = [block for block in blocks if "SetValue('Path'" in block]
    assert changed
    assert [block for block in changed if "'DoNotExpandEnvironmentNames'" not in block or "-split" not in block] == []
    assert [block for block in blocks if re.search(r"setx |EnvironmentVariable\('Path'", block)] == []


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


AS_PRINTED = (
    "tests/integration/test_status_of_clones.py",
    "tests/integration/test_new_app_locks.py",
    "tests/integration/test_hooks.py",
)


def test_every_command_of_a_message_can_be_typed() -> None:
    """The parser takes it: its app, folder and state are those of the moment, which a list of texts does not have.

    The tests of `AS_PRINTED` make such moments, and run what is printed then, word for word.
    """
    found = sorted(set(_of_messages()))
    assert len(found) > 60
    assert [
        f"{place}: {command}: {problem}" for place, command in found for problem in [_problem(command)] if problem
    ] == []
    assert [name for name in AS_PRINTED if 'split("`")' not in (ROOT / name).read_text(encoding="utf-8")] == []


def _rule(command: str) -> str:
    return next((rule for rule in OTHERS_OF_MESSAGES if re.match(rule, command)), "")


def test_every_command_of_another_program_in_a_message_is_run_or_listed() -> None:
    commands = _of_others()
    assert [command for command in commands if not _rule(command)] == [], "nothing says who runs it"
    assert set(map(_rule, commands)) == set(OTHERS_OF_MESSAGES), "a rule is for nothing"
    named = re.findall(r"tests/[\w/]+(?:\.py)?", " ".join((*OTHERS_OF_MESSAGES.values(), *OTHERS.values())))
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert _rule("vulkaninfo --summary") == _rule("git -C X gc") == ""


@pytest.mark.skipif(os.name == "nt", reason="no sh")
def test_variables_that_a_remedy_sets_are_set(tmp_path: Path) -> None:
    commands = [command for command in _of_others() if _rule(command).startswith("(export|")]
    for command in commands:
        done = subprocess.run(["sh", "-euc", command], env={"HOME": str(tmp_path)}, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), command
    assert (tmp_path / ".profile").read_text(encoding="utf-8").startswith("export ")


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
