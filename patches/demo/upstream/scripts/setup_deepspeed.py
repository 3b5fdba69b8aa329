"""Prepares a fresh clone: the outputs folder, and DeepSpeed, which no requirements file gets right."""

import subprocess
import sys

from tonewheel import settings


def install_deepspeed() -> str:
    """Make sure that the outputs folder and DeepSpeed are there; return one line for the banner."""
    settings.OUTPUTS.mkdir(parents=True, exist_ok=True)
    print("Checking DeepSpeed ...")
    subprocess.check_call([sys.executable, "-m", "pip", "install", "deepspeed==0.11.2"])
    print("DeepSpeed checked.")
    return f"tonewheel {settings.VERSION}, python {sys.version_info.major}.{sys.version_info.minor}"
