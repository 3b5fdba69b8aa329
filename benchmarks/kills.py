"""Kill and fail every command that changes an installation: `python benchmarks/kills.py --report FILE`.

Needs Linux and a C compiler: `tests/support/faults.c` counts the writing calls of patchlock, git, uv and the app
together, and a seed chooses among them.
"""

from __future__ import annotations

import argparse
import collections
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

from faults import Fault, build_shim, serving  # noqa: E402
from transactions import TRANSACTIONS, Places, strike  # noqa: E402

KINDS = {
    "kill": "SIGKILL of patchlock and all its children",
    "kill-alone": "SIGKILL of patchlock, its children live on",
    "ENOSPC": "the disk is full from then on",
    "EIO": "one call fails with EIO",
    "EACCES": "one call fails with EACCES",
}


def main() -> int:
    """Run all moments, and write the report."""
    parser = argparse.ArgumentParser(description="Kill and fail commands at their writing calls.")
    parser.add_argument("--moments", type=int, default=500, help="how many kills and failures in all (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="commands, by name, with commas")
    parser.add_argument("--kinds", default="kill,kill-alone,kill,ENOSPC,kill,EIO,kill-alone,EACCES", help="in turn")
    parser.add_argument("--at", type=int, default=0, help="this one event")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    wanted = [t for t in TRANSACTIONS if not arguments.only or t.name in arguments.only.split(",")]
    kinds = arguments.kinds.split(",")
    rows, wrong, struck = [], 0, 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        shim = build_shim(folder)
        if shim is None:
            parser.error("there is no C compiler for Linux here")
        with serving(folder / "server", shim=shim) as server:
            places = Places(folder, server)
            for number, transaction in enumerate(wanted):
                places.put(transaction.state)
                places.put(transaction.state)
                events = places.run(*transaction.words).events
                count = arguments.moments // len(wanted) + (number < arguments.moments % len(wanted))
                moments = [arguments.at] if arguments.at else spread(events, count, arguments.seed)
                found: collections.Counter[str] = collections.Counter()
                for i, at in enumerate(moments):
                    kind = kinds[i % len(kinds)]
                    fault = Fault(kind, at, lasting=kind == "ENOSPC")
                    objections = strike(places, transaction, fault, hook=False, looks_first=bool(i // len(kinds) % 2))
                    struck += 1
                    found[kind] += 1
                    wrong += bool(objections)
                    for text in objections:
                        again = f"--seed {arguments.seed} --only {transaction.name} --kinds {kind} --at {at}"
                        print(f"{again}\n    {text}", flush=True)
                rows.append((transaction.name, events, found))
                print(f"{transaction.name}: {events} writing calls, {dict(found)}", flush=True)
    seconds = time.monotonic() - started
    print(f"{struck} faults, {wrong} with an objection, {seconds:.0f} s")
    if arguments.report:
        arguments.report.write_text(report(rows, struck, wrong, arguments.seed), encoding="utf-8")
    return 1 if wrong else 0


def spread(events: int, count: int, seed: int) -> list[int]:
    """Choose moments over all events, each at another place of its part, in a random order."""
    chance = random.Random(seed)
    moments = [1 + int((i + chance.random()) * events / count) for i in range(count)]
    chance.shuffle(moments)
    return moments


def report(rows: list[tuple[str, int, collections.Counter[str]]], struck: int, wrong: int, seed: int) -> str:
    """Write the report, as Markdown."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [
        "# Kills and failing calls",
        "",
        f"`python benchmarks/kills.py --moments {struck} --seed {seed}` at {commit.stdout.strip()}:",
        f"{struck} faults in {len(rows)} commands, **{wrong} broken**.",
        "",
        "A fault comes at one writing call of patchlock, git, uv or the app's Python. Afterwards the app is run, the",
        "command repeated, the app run again and verified; the user's files are compared byte for byte each time, and",
        "nothing may be left over: no journal, lock, temporary file or half-built environment.",
        "",
        "| command | writing calls | " + " | ".join(KINDS) + " |",
        "|---|---:|" + "---:|" * len(KINDS),
    ]
    for name, events, found in rows:
        lines.append(f"| {name} | {events} | " + " | ".join(str(found[kind]) for kind in KINDS) + " |")
    lines += ["", *(f"- `{kind}`: {meaning}" for kind, meaning in KINDS.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
