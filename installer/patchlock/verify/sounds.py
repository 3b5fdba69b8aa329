"""Let an app make a sound by its own code in its environment, and judge it; what is played, a person hears himself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from patchlock.model import kernel_results
from patchlock.model.backends import BACK_ENDS
from patchlock.model.checks import SoundCheck
from patchlock.model.errors import CommandFailedError, PatchlockError
from patchlock.verify import _supervisor, checks
from patchlock.verify.checks import CheckContext, CheckResult

RANDOM = "random"
"""The weights of a job that has found none."""


def make(
    check: SoundCheck, place: CheckContext, profile: str, back_end: str, *, file: Path, runs: int = 0
) -> tuple[dict[str, Any], int]:
    """Do the job of a check in an app's environment.

    Args:
        check: says what is done.
        place: where.
        profile: for which the app is installed.
        back_end: of the profile.
        file: the sound is written there, as WAV.
        runs: that are measured; 0: it is done once, and random models may be shallow.

    Returns:
        What the program says, and the most bytes that it had.

    Raises:
        CommandFailedError: the job fails, hangs, takes more memory than it may, or makes no sound.
        ProgramMissingError: the environment's own Python is not there.
    """
    is_off = profile in check.on_the_processor
    device = "cpu" if is_off else BACK_ENDS[back_end].device
    compiling = 0 if is_off else BACK_ENDS[back_end].first_seconds
    ours = checks.process_context(place)
    with tempfile.TemporaryDirectory(prefix="patchlock-sound-", ignore_cleanup_errors=True) as folder:
        script = Path(folder) / Path(check.module).name
        script.write_text(check.code, encoding="utf-8")
        with checks.own_program("sound") as program:
            words = (str(script), check.job, device, str(runs), "full" if runs else "brief", str(file))
            memory = _supervisor.memory_limit(check.memory_gb)
            command = (str(ours.python), *ours.options, str(program), *words)
            env = {**ours.variables, "TMPDIR": folder, "TEMP": folder}
            with _supervisor.start_program(*command, env=env, cwd=ours.folder, memory=memory) as running:
                ended = running.wait(compiling + check.timeout * (runs + 1))
                text = running.output.rstrip()
    if failed := kernel_results.failure(ended):
        raise CommandFailedError(f"{check.what}: {failed[0].value}: {failed[1]}", evidence=ended.log)
    try:
        answer: dict[str, Any] = json.loads(text.splitlines()[-1])
        wrong = answer.pop("wrong")
    except (IndexError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandFailedError(f"{check.what}: the job printed no answer") from error
    if wrong:
        raise CommandFailedError(f"{check.what}: {'; '.join(wrong)}", evidence=[f"to be heard in {file}"])
    return answer, ended.peak


def listen(
    wanted: Sequence[SoundCheck],
    place: CheckContext,
    profile: str,
    back_end: str,
    folder: Path,
    tell: Callable[[str], None],
) -> tuple[CheckResult, ...]:
    """Let an app make each of its sounds once.

    Args:
        wanted: what is made.
        place: where.
        profile: for which the app is installed.
        back_end: of the profile.
        folder: what is made is kept there, as `<id>.wav`.
        tell: called with the id of each check before it runs.
    """
    return tuple(_heard(check, place, profile, back_end, folder, tell) for check in wanted)


def _heard(
    check: SoundCheck, place: CheckContext, profile: str, back_end: str, folder: Path, tell: Callable[[str], None]
) -> CheckResult:
    tell(check.id)
    folder.mkdir(exist_ok=True)
    file = folder / f"{check.id}.wav"
    file.unlink(missing_ok=True)
    try:
        answer, _ = make(check, place, profile, back_end, file=file)
        passed, detail = True, f"{check.what}: {told(answer)}; {file}"
    except PatchlockError as error:
        last = f"; {error.evidence[-1].strip()}" if error.evidence else ""
        passed, detail = False, f"{error.what}{last}"
    return CheckResult(id=check.id, level="computes", passed=passed, detail=detail)


def told(answer: dict[str, Any]) -> str:
    """Say what was made, and no more than its weights can show."""
    weights = answer["weights"]
    claim = "random weights: a sound was made, not a voice" if weights == RANDOM else f"weights: {weights}"
    return f"{answer['length']:.1f} s of sound on {answer['device']} ({claim})"
