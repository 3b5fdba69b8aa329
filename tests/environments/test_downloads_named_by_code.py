"""Sizes of the models that code names: as their servers say, and left out where nobody does."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from conftest import ROOT
from hub import LoopbackHub

PROGRAM = """
import json, sys
from pathlib import PurePosixPath
from patchlock.catalogue.proposals.downloads import Download
from patchlock.catalogue.proposals.findings import Finding
from patchlock.environments import named_downloads

place = Finding(path=PurePosixPath("app.py"), line=1, text="")
rows = [Download(repository=a, file=b, found=place, is_at_start=False) for a, b in json.loads(sys.argv[1])]
print(json.dumps(named_downloads.sizes(rows)))
"""


def asked(hub: LoopbackHub, rows: list[tuple[str, str]], **variables: str) -> dict[str, int]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    env |= {"HF_ENDPOINT": hub.url, "UV_OFFLINE": "", "PYTHONPATH": str(ROOT / "installer")} | variables
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(rows)], env=env, capture_output=True, text=True, check=True
    )
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def test_sizes_are_what_the_servers_say() -> None:
    hub = LoopbackHub()
    hub.files = {"maker/speaks/a.bin": b"1" * 700, "maker/speaks/b.json": b"2" * 11, "vendor/voice.pth": b"3" * 5}
    address = f"{hub.url}/vendor/voice.pth"
    rows = [
        ("maker/speaks", ""),
        ("maker/speaks", "a.bin"),
        ("maker/speaks", "nothing.bin"),
        ("maker/none", ""),
        ("maker/speaks", "{voice}.bin"),
        ("maker/{name}", "a.bin"),
        ("", address),
        ("", f"{hub.url}/vendor/nothing.pth"),
    ]
    try:
        assert asked(hub, rows) == {
            "maker/speaks": 711,
            "maker/speaks/a.bin": 700,
            "maker/speaks/{voice}.bin": 711,
            address: 5,
        }
        assert not [one for one in hub.asked if "{" in str(one) or "%7B" in str(one)]
        before = len(hub.asked)
        assert asked(hub, rows, UV_OFFLINE="1") == {}
        assert len(hub.asked) == before
    finally:
        hub.close()
