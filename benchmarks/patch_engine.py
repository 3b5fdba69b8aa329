"""Run everything that shows what the patch engine can do, and keep what it printed in one report.

    PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/patch_engine.py [--only NAME …]

The clones are named `owner+name`, `owner+name/repo` or `name`, bare or not; a measurement leaves out what is not there
and says so. All of it takes about an hour on two cores; `--only` renews single sections and leaves the others.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REPORT = FOLDER / "reports" / "patch-engine.md"
OWN = FOLDER / "reports"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One measurement."""

    name: str
    """The script, without its suffix."""
    title: str
    arguments: tuple[str, ...] = ()
    report: str = ""
    """File beside ours that the script writes itself, or "" where what it prints is the report."""


SECTIONS = (
    Section(name="survival", title="Patches over upstream's whole history", report="survival.md"),
    Section(name="optional_imports", title="Optional imports, executed with the package absent"),
    Section(name="run_time_pip", title="Installs at run time, labelled by hand"),
    Section(name="device_positions", title="Device positions, labelled by hand"),
    Section(name="user_edits", title="User edits against upstream pulls", arguments=("--trials", "10000")),
    Section(name="fidelity", title="Files before and after an unrelated edit"),
    Section(name="notebooks", title="Notebooks"),
    Section(name="hand_made", title="Beside the tree made by hand", report="hand-made.md"),
    Section(name="speed", title="Speed beside ast.parse and git status"),
    Section(name="splice_against_libcst", title="Byte splices beside LibCST"),
)


def run(section: Section) -> str:
    """Run one measurement, and give its part of the report."""
    words = [sys.executable, str(FOLDER / f"{section.name}.py"), *section.arguments]
    words += ["--report", str(OWN / section.report)] if section.report else []
    started = time.monotonic()
    env = os.environ | {"PYTHONPATH": str(FOLDER.parent / "installer")}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    return part(section, done.stdout, done.returncode, time.monotonic() - started)


def part(section: Section, printed: str, code: int, seconds: float) -> str:
    """Write one section: what was run, when, how it ended, and what it printed."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    command = " ".join(["benchmarks/" + section.name + ".py", *section.arguments])
    end = "exit code 0" if code == 0 else f"**exit code {code}**"
    told = f"See [{section.report}]({section.report})." if section.report else ""
    shown = printed.strip()
    if shown and not section.report:
        told = shown if shown.startswith("|") else f"```text\n{shown}\n```"
    return f"## {section.title}\n\n`{command}`, {day}, {seconds:.0f} s: {end}.\n\n{told}\n"


def merge(old: str, made: dict[str, str]) -> str:
    """Put renewed sections in the place of the old ones, in the order of `SECTIONS`."""
    parts = {title: text for text in re.split(r"(?m)^(?=## )", old)[1:] for title in [text.splitlines()[0][3:]]}
    parts |= {section.title: made[section.name] for section in SECTIONS if section.name in made}
    chosen = [parts[section.title].strip() for section in SECTIONS if section.title in parts]
    head = "# The patch engine, measured\n\nMade by `benchmarks/patch_engine.py`, each section by its script."
    return "\n\n".join([head, *chosen]) + "\n"


def main() -> None:
    """Run what is asked for, and renew the report after each."""
    names = [section.name for section in SECTIONS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    arguments = parser.parse_args()
    if not os.environ.get("PATCHLOCK_UPSTREAMS"):
        parser.error("set PATCHLOCK_UPSTREAMS to a folder of clones")
    OWN.mkdir(exist_ok=True)
    for section in (section for section in SECTIONS if section.name in arguments.only):
        made = {section.name: run(section)}
        old = REPORT.read_text(encoding="utf-8") if REPORT.exists() else ""
        REPORT.write_text(merge(old, made), encoding="utf-8")
        print(made[section.name])


if __name__ == "__main__":
    main()
