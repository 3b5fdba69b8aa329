"""Where each of the five apps ends on each recorded machine, if every device of it fails: the report in Markdown.

A profile that fails is left out and the next one chosen, as `install --fallback` does, until the processor computes or
nothing is left. Nothing is installed: that what is chosen last is really installed and proved, whatever the device
does, is what `tests/integration/test_fallback.py` shows with a small app.

    PYTHONPATH=installer python benchmarks/failing_devices.py > benchmarks/reports/failing-devices.md
"""

from __future__ import annotations

import collections
import os
import tempfile
from pathlib import Path

from patchlock.cli import _options
from patchlock.model.errors import PatchlockError

ROOT = Path(__file__).resolve().parent.parent
APPS = ("xtts-webui", "advanced-rvc-inference", "diffrhythm2", "amphion", "tts-service")


def chain(host: Path, app: str) -> tuple[tuple[str, ...], str]:
    """Give the profiles that are tried one after the other on a machine, and why there is no more."""
    os.environ["PATCHLOCK_HOST"] = str(host)
    failed: dict[str, str] = {}
    while True:
        try:
            request = _options.request(ROOT, app, None, failed=failed)
        except PatchlockError as error:
            return tuple(failed), error.what
        if request.profile.name in failed:
            raise SystemExit(f"{host.stem} x {app}: {request.profile.name} is tried twice")
        failed[request.profile.name] = "it fails"


def report() -> str:
    """Count the chains of all pairs of a machine and an app."""
    hosts = sorted((ROOT / "tests/hardware/hosts").glob("*.json"))
    chains: dict[tuple[str, ...], collections.Counter[str]] = {}
    refused: collections.Counter[str] = collections.Counter()
    for host in hosts:
        for app in APPS:
            tried, why = chain(host, app)
            if tried:
                chains.setdefault(tried, collections.Counter())[app] += 1
            else:
                refused[why] += 1
    ordered = sorted(chains.items(), key=lambda one: (-sum(one[1].values()), one[0]))
    rows = [
        f"| {' → '.join(tried)} | {sum(apps.values())} | {' | '.join(str(apps[app] or '') for app in APPS)} |"
        for tried, apps in ordered
    ]
    refusals = [f"| {count} | {why} |" for why, count in sorted(refused.items(), key=lambda one: (-one[1], one[0]))]
    return "\n".join(
        [
            f"| profiles, in the order in which they are tried | pairs | {' | '.join(APPS)} |",
            f"|---|---:|{'---:|' * len(APPS)}",
            *rows,
            "",
            f"{len(hosts)} machines × {len(APPS)} apps. {sum(refused.values())} pairs have no profile from the start:",
            "",
            "| pairs | what is said |",
            "|---:|---|",
            *refusals,
        ]
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["PATCHLOCK_HOME"] = home
        print(report())
