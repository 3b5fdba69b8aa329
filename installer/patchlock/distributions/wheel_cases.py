"""Run the cases of a distribution on an unpacked wheel, in a child process that is contained; decides nothing."""

from __future__ import annotations

import importlib.resources
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchlock.core import process
from patchlock.model.errors import CommandFailedError, PatchError

_PATIENCE = 60.0
"""Seconds for all cases of one wheel together."""
_CONTROL = "control_"


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What one case did."""

    id: str
    passed: bool
    value: str
    """What it returned, as JSON."""
    why: str
    """The last line of its exception, or ""."""

    @property
    def is_control(self) -> bool:
        """Whether it must pass, with the same value, before and after."""
        return self.id.startswith(_CONTROL)


def run(
    script: Path, files: Mapping[PurePosixPath, bytes], stubs: tuple[str, ...], *, timeout: float = _PATIENCE
) -> tuple[CaseResult, ...]:
    """Run the cases of a file, in its order.

    The child sees the standard library and these files, and no other package; it has no network, starts no program, and
    writes nothing outside a temporary folder. That contains mistakes, not malice.

    Args:
        script: functions `case_…`, which fail where the patch is needed, and `control_…`, which always pass.
        files: of the wheel, with safe paths.
        stubs: top-level packages that the files import and the cases do not need.
        timeout: seconds for all of them.

    Raises:
        PatchError: the child ended without an answer, or could not even read the file.
    """
    kernel = importlib.resources.files("patchlock.distributions._children") / "wheel_cases.py"
    with tempfile.TemporaryDirectory(prefix="patchlock-cases-") as name, importlib.resources.as_file(kernel) as program:
        root, scratch = Path(name) / "wheel", Path(name) / "scratch"
        scratch.mkdir()
        for path, data in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        arguments = ("-I", "-S", "-B", "-X", "utf8", str(program), str(script.resolve()), str(root), json.dumps(stubs))
        try:
            done = process.run(sys.executable, *arguments, env=_variables(scratch), cwd=scratch, timeout=timeout)
            answers = json.loads(done.text)
        except (CommandFailedError, json.JSONDecodeError) as error:
            evidence = error.evidence if isinstance(error, CommandFailedError) else ()
            why = error.what if isinstance(error, CommandFailedError) else "it printed no answer"
            raise PatchError(
                f"the cases gave no answer: {why}", where=str(script), remedy="correct the file", evidence=evidence
            ) from error
    results = tuple(
        CaseResult(id=a["id"], passed=a["passed"], value=json.dumps(a["value"], sort_keys=True), why=a["why"])
        for a in answers
    )
    broken = [result for result in results if result.id == "import"]
    if broken or not any(not result.is_control for result in results):
        why = broken[0].why if broken else "it has no function case_…"
        raise PatchError(f"the cases cannot run: {why}", where=str(script), remedy="correct the file, or its `stubs`")
    return results


def _variables(scratch: Path) -> dict[str, str]:
    """Give the child no more than it needs to start: neither the user's home nor his settings."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), str(scratch))
    return {**kept, **homes, "PYTHONHASHSEED": "0", "TZ": "UTC"}
