"""Install a lock and prove it, with our own code: run in an emulated system by test_emulated_thor, which reads the last line.

    emulated_install.py APP PROFILE PYTHON COMMIT CACHE

The folder it runs in has `catalogue` and `home`, where the patched source lies already; CACHE is kept from one run to the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from patchlock.catalogue.reader import Catalogue
from patchlock.core import file_lock
from patchlock.environments import fill, venv
from patchlock.environments.builds import in_tree
from patchlock.locks.lock_request import Request, read_lock
from patchlock.model.checks import LoadsCheck, OwnCheck, PythonCheck
from patchlock.model.identities import CommitId
from patchlock.model.lockfile import Lock
from patchlock.model.platforms import PLATFORMS
from patchlock.operations import launch
from patchlock.verify import checks
from patchlock.verify.checks import CheckResult


class Progress:
    """Says everything once, with the time since the start."""

    began, last = time.monotonic(), ""

    def stage(self, _name: str) -> contextlib.nullcontext[None]:
        """Say nothing of stages."""
        return contextlib.nullcontext()

    def say(self, text: str) -> None:
        """Say what goes on."""
        if text != self.last:
            print(f"{time.monotonic() - self.began:7.1f} s  {text}", flush=True)
        self.last = text

    note = say

    def transfer(self, done: int, total: int) -> None:
        """Say how far it is."""
        self.say(f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")


def main(app: str, profile: str, python: str, commit: str, cache: str) -> None:
    """Make the environment, fill it, build what the tree needs, run the checks."""
    os.environ.setdefault("USER", "root")  # that system has no /etc/passwd, and torch asks for the user's name
    catalogue = Catalogue(root=Path.cwd() / "catalogue")
    request = Request(
        app=catalogue.app(app),
        profile=catalogue.profile(profile),
        catalogue=catalogue,
        platform=PLATFORMS["linux-aarch64"],
        home=Path.cwd() / "home",
        cache=Path(cache),
    )
    lock, _ = read_lock(request)
    folder = request.installation.environments / "one"
    progress = Progress()
    with file_lock.hold(request.installation.lock, wait=0) as held:
        venv.create(folder, python, lock=held)
        fill.fill(request, lock, folder, progress, held)
        progress.say("filled")
        kept = in_tree.build_extensions(request, lock, folder, CommitId(commit), tell=progress.say, held=held)
    results = _proved(request, lock, folder, progress)
    found = str(venv.interpreter(folder))
    product = "(torch.ones(2, 3) @ torch.ones(3, 2)).sum().item()"
    computes = f"import torch, torchaudio as _; print(torch.__version__, torch.version.cuda, {product})"
    said = {
        "freeze": _ask("uv", "pip", "freeze", "-p", found),
        "check": _ask("uv", "pip", "check", "-p", found),
        "torch": _ask(found, "-c", computes)[-1],
        "recorded": (folder / "builds.toml").read_text("utf-8"),
        "kept": [str(path) for path in kept],
        "failed": [f"{result.id}: {result.detail}" for result in results if not result.passed],
        "passed": {result.id: result.detail for result in results if result.passed},
    }
    progress.say("proved")
    print(json.dumps(said))


def _proved(request: Request, lock: Lock, folder: Path, progress: Progress) -> tuple[CheckResult, ...]:
    """Look at what is installed, and run the app's own checks: those of a device have none to ask."""
    where = launch.check_context(request, folder)
    progress.say("packages")
    results = [*checks.check_environment(lock, where)]
    for check in request.app.checks:
        if isinstance(check, LoadsCheck | OwnCheck):
            results += checks.run([_patient(check)], where, progress.say)
            progress.say(f"{check.id}: {results[-1].detail}")
    return tuple(results)


def _patient(check: LoadsCheck | OwnCheck) -> LoadsCheck | OwnCheck:
    """Give a check the time that an emulated processor needs."""
    return dataclasses.replace(check, timeout=10 * check.timeout) if isinstance(check, PythonCheck) else check


def _ask(*command: str) -> list[str]:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout.splitlines()


if __name__ == "__main__":
    checks._PATIENCE *= 10
    main(*sys.argv[1:])
