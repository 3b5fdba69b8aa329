"""A copy of install.sh with a stand-in for the tool, an empty lock, and a PATH with nothing on it but what is named."""

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
from collections.abc import Mapping
from pathlib import Path

import pytest
import uv

ROOT = Path(__file__).parents[2]
PREPARING = "patchlock: preparing (first run only, about 30 s)...\n"
posix = pytest.mark.skipif(os.name == "nt", reason="install.sh is for POSIX systems")

PROGRAMS = [
    "cat",
    "cksum",
    "cp",
    "dirname",
    "env",
    "find",
    "grep",
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
