"""Ask NVIDIA's driver what it has: its files, then its library in a process of its own, then nvidia-smi; bounded."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchlock.core import process
from patchlock.core.bounded_files import FileReader
from patchlock.hardware import _nvidia_cards
from patchlock.hardware._nvidia_cards import NvidiaAnswer
from patchlock.model.errors import PatchlockError
from patchlock.model.hosts import Failure

_PROC = "proc/driver/nvidia"
_OF_WSL = "usr/lib/wsl/lib/nvidia-smi"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer, or none, and what failed on the way to it."""

    answer: NvidiaAnswer | None
    failures: tuple[Failure, ...]


SILENT = Answered(answer=None, failures=())
"""Of what was not asked."""


def from_files(files: FileReader) -> NvidiaAnswer:
    """Read what the driver has in /proc: cards by their names, and its version."""
    names = files.names(f"{_PROC}/gpus")
    texts = {name: files.text(f"{_PROC}/gpus/{name}/information") for name in names if _nvidia_cards.normal(name)}
    cards = tuple(_nvidia_cards.from_information(name, text) for name, text in texts.items())
    return NvidiaAnswer(cards=cards, driver=_nvidia_cards.driver_version(files.text(f"{_PROC}/version")))


def has_driver(files: FileReader) -> bool:
    """Say whether the kernel, or Windows below it, has a driver that NVIDIA's libraries can ask.

    Without one they are better left alone: run by root, libnvidia-ml makes a /dev/nvidiactl that leads nowhere (seen
    with 535.261.03).
    """
    return any(files.has(path) for path in (f"{_PROC}/version", "sys/module/nvidia", *_OTHER_DRIVERS))


_OTHER_DRIVERS = ("dev/dxg", "dev/nvmap", "dev/nvhost-gpu")
"""Of WSL, and of a Jetson before Thor."""


def ask(library: Path | None, root: Path, env: Mapping[str, str], timeout: float) -> Answered:
    """Ask NVML, and nvidia-smi where NVML is not there or does not answer.

    Args:
        library: NVML.
        root: of the file system.
        env: variables; nvidia-smi is looked for on its PATH.
        timeout: seconds for each.
    """
    failures: list[Failure] = []
    if library is not None:
        said = run_child("nvml", library, env, timeout)
        if isinstance(said, dict) and "failed" not in said:
            try:
                return Answered(answer=_nvidia_cards.from_nvml(said), failures=())
            except (TypeError, ValueError, AttributeError) as error:
                said = f"its answer cannot be read: {error}"
        failures.append(
            Failure(probe="nvml", why=f"{library.name}: {said['failed'] if isinstance(said, dict) else said}")
        )
    program = shutil.which("nvidia-smi", path=env.get("PATH")) or shutil.which(root / _OF_WSL)
    if program:
        query = (f"--query-gpu={','.join(_nvidia_cards.COLUMNS)}", "--format=csv,noheader,nounits")
        try:
            done = process.run_untrusted(str(program), *query, env=env, timeout=timeout)
        except PatchlockError as error:
            return Answered(answer=None, failures=(*failures, Failure(probe="nvidia-smi", why=error.what)))
        answer = _nvidia_cards.from_smi(done.text)
        if answer.cards:
            return Answered(answer=answer, failures=tuple(failures))
        last = next(iter(done.text.split("\n")[-1:]), "")[:200]
        why = f"it named no card (exit code {done.returncode}): {last!r}"
        failures.append(Failure(probe="nvidia-smi", why=why))
    return Answered(answer=None, failures=tuple(failures))


def run_child(name: str, library: Path, env: Mapping[str, str], timeout: float) -> dict[str, Any] | str:
    """Let `hardware/children/<name>.py` ask a library in a process of its own.

    Returns:
        Its answer, or a clause that says why there is none.
    """
    import importlib.resources

    with importlib.resources.as_file(
        importlib.resources.files("patchlock.hardware._children") / f"{name}.py"
    ) as script:
        argv = (sys.executable, "-I", "-S", str(script), str(library))
        try:
            done = process.run_untrusted(*argv, env=env, timeout=timeout)
        except PatchlockError as error:
            return error.what.replace(Path(sys.executable).name, "it")
    try:
        answer = json.loads(done.text)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        return answer
    return (
        f"it crashed with signal {-done.returncode}"
        if done.returncode < 0
        else f"it gave no answer (exit code {done.returncode})"
    )


def merged(files: NvidiaAnswer, asked: NvidiaAnswer | None) -> NvidiaAnswer:
    """Join what the driver's files and its library say; the library knows more, the files more cards."""
    if asked is None:
        return files
    known = {card.address for card in asked.cards}
    others = [card for card in files.cards if card.address not in known]
    return NvidiaAnswer(
        cards=(*asked.cards, *others), driver=files.driver or asked.driver, cuda=asked.cuda or files.cuda
    )


def cuda(library: Path, env: Mapping[str, str], timeout: float) -> tuple[str, str, Failure | None]:
    """Ask CUDA's driver library whether it starts.

    Returns:
        What cuInit(0) gave, as a number; the newest CUDA that it runs; why there is no answer.
    """
    # Whoever hid all cards asked for none; the question is whether the driver works.
    open_env = {key: value for key, value in env.items() if key != "CUDA_VISIBLE_DEVICES"}
    said = run_child("cu_init", library, open_env, timeout)
    if isinstance(said, str) or "failed" in said:
        why = said if isinstance(said, str) else str(said["failed"])
        return "", "", Failure(probe="cu-init", why=f"{library.name}: {why}")
    number, version = said.get("init"), said.get("cuda", 0)
    if not isinstance(number, int) or not isinstance(version, int):
        return "", "", Failure(probe="cu-init", why=f"{library.name}: its answer cannot be read")
    return str(number), _nvidia_cards.cuda_version(version), None
