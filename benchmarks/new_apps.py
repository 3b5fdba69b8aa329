"""Run `new-app` on repositories that the catalogue does not have, install what locks, and say which of them start.

    python benchmarks/new_apps.py CLONES [OWNER/NAME …] --into FOLDER [--install] [--all]

CLONES holds clones called `owner+name`, with or without `repo` below. Without names, all of `APPS` are tried. `--all`
tries the locks of every profile, `--install` installs each app on the profile cpu and removes it after its proof.
Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

APPS = (
    "openai/whisper",
    "CompVis/stable-diffusion",
    "RVC-Boss/GPT-SoVITS",
    "coqui-ai/TTS",
    "suno-ai/bark",
    "RVC-Project/Retrieval-based-Voice-Conversion-WebUI",
    "Stability-AI/generative-models",
    "invoke-ai/InvokeAI",
    "fishaudio/fish-speech",
    "facebookresearch/audiocraft",
    "m-bain/whisperX",
    "SWivid/F5-TTS",
)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("apps", nargs="*", default=APPS)
    parser.add_argument("--into", type=Path, required=True, help="folder for the catalogue and the homes")
    parser.add_argument("--catalogue", type=Path, help="whose profiles are taken (default: patchlock's own)")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--all", action="store_true")
    wanted = parser.parse_args()
    print("| app | found | launch | lock | edits | starts |\n|---|---|---|---|---|---|")
    for app in wanted.apps:
        print(f"| {' | '.join(_row(app, wanted))} |", flush=True)
    return 0


def _row(app: str, wanted: argparse.Namespace) -> list[str]:
    source, target = _clone(wanted.clones, app), wanted.into / "catalogue"
    words = ["new-app", f"https://github.com/{app}", "--source", str(source), "--into", str(target), "--solve"]
    words += ["--catalogue", str(wanted.catalogue)] if wanted.catalogue else []
    started = time.monotonic()
    answer = _patchlock(*words, *(["--profile", "all"] if wanted.all else []))
    seconds = time.monotonic() - started
    data = answer["data"]
    if not data:
        return [app, "", "", str(answer["error"]["what"]), "", "no"]
    found = ", ".join(f"{one['name']} {len(one['found'])}" for one in data["findings"])
    lock = data["lock"]
    others = lock.get("others", [])
    pairs = f", {sum(one['packages'] > 0 for one in others)} of {len(others)} further pairs" if others else ""
    packages = f"{lock['packages']} packages in {seconds:.0f} s{pairs}" if lock["packages"] else lock["error"][:120]
    launch = " ".join(data["launch"]["command"])
    starts = "not tried"
    if wanted.install and lock["packages"]:
        starts = _installed(data["name"], source, target, wanted.into / "home")
    return [app, found, f"`{launch}`", packages, str(len(lock["edits"])), starts]


def _installed(name: str, source: Path, catalogue: Path, home: Path) -> str:
    _patchlock("trust", str(catalogue))
    place = {"PATCHLOCK_HOME": str(home)}
    words = ["install", name, "--profile", "cpu", "--source", str(source), "--catalogue", str(catalogue)]
    answer = _patchlock(*words, environ=place)
    shutil.rmtree(home, ignore_errors=True)
    if answer["error"] is not None:
        return f"no: {'; '.join(answer['error']['evidence'][:1]) or answer['error']['what']}"[:300]
    return next((one["detail"] for one in answer["data"]["receipt"]["checks"] if one["id"] == "start"), "yes")


def _clone(folder: Path, app: str) -> Path:
    base = folder / app.replace("/", "+")
    return base / "repo" if (base / "repo").is_dir() else base


def _patchlock(*words: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "patchlock", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(environ or {})})
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"data": None, "error": {"what": done.stderr.strip()[-200:], "evidence": []}}
    return answer


if __name__ == "__main__":
    sys.exit(main())
