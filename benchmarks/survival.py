"""Show how patches outlive their upstream: `PATCHLOCK_UPSTREAMS=FOLDER python benchmarks/survival.py --report FILE`.

The folder holds clones named `owner+name` or `name`, bare or not; a repository that is not there is left out and said.
Nothing of a clone is run, and nothing is written into it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "benchmarks")]

from histories import apps, generic, report  # noqa: E402
from histories.measure import Measured, measure  # noqa: E402
from histories.repository import find  # noqa: E402
from histories.states import Row  # noqa: E402
from histories.together import Together, together  # noqa: E402

from patchlock.catalogue.reader import Catalogue  # noqa: E402


def main() -> None:
    """Measure all rows and write the report."""
    parser = argparse.ArgumentParser(description="Measure how patches survive upstream's history.")
    parser.add_argument("--report", type=Path, help="write the report to this file, as Markdown")
    parser.add_argument("--only", default="", help="only rows in whose name this regular expression is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one for each core)")
    parser.add_argument("--without-peers", action="store_true", help="only ours")
    arguments = parser.parse_args()
    folder = os.environ.get("PATCHLOCK_UPSTREAMS")
    if not folder:
        parser.error("set PATCHLOCK_UPSTREAMS to a folder of clones")
    wanted = [row for row in rows() if re.search(arguments.only, row.name)]
    places = {row.repository: find(Path(folder), row.repository) for row in wanted}
    for name in (name for name, place in places.items() if place is None):
        print(f"{name} is not in {folder}; left out", file=sys.stderr)
    numbers = [number for number, row in enumerate(rows()) if row in wanted and places[row.repository]]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        tasks = [pool.submit(_measure, number, folder, not arguments.without_peers) for number in numbers]
        names = [
            name for name, place in places.items() if place and any(r.is_app for r in wanted if r.repository == name)
        ]
        sets = [pool.submit(_together, name, folder) for name in names]
        measured = [_told(task.result()) for task in tasks]
        text = report.markdown(measured, [task.result() for task in sets], arguments.only)
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    else:
        print(text)
    counts = [row.counted for row in (*measured, *(task.result() for task in sets))]
    sys.exit(1 if any(counted["silent"] or counted["vetoed"] for counted in counts) else 0)


def rows() -> tuple[Row, ...]:
    """Give all rows: the catalogue's apps, then the same ops elsewhere."""
    return (*apps.rows(Catalogue(root=ROOT)), *generic.rows())


def _measure(number: int, folder: str, with_peers: bool) -> Measured:
    row = rows()[number]
    git = find(Path(folder), row.repository)
    if git is None:
        raise FileNotFoundError(row.repository)
    return measure(row, git, with_peers=with_peers)


def _together(name: str, folder: str) -> Together:
    git = find(Path(folder), name)
    if git is None:
        raise FileNotFoundError(name)
    whole = apps.rows(Catalogue(root=ROOT), whole=True)
    return together([row for row in whole if row.repository == name], git)


def _told(measured: Measured) -> Measured:
    counted = {kind: count for kind, count in sorted(measured.counted.items()) if kind != "no target"}
    print(f"{measured.row}: {counted} in {measured.seconds:.1f} s", file=sys.stderr, flush=True)
    return measured


if __name__ == "__main__":
    main()
