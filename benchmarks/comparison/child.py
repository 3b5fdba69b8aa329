"""Run one check in this process, which is thrown away: `child.py CHECK TREE UPSTREAM`; prints why it fails, as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from comparison import checks, files, heavy


def main() -> None:
    """Run it."""
    name, tree, upstream = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with contextlib.redirect_stdout(sys.stderr):
        if hasattr(files, name):
            why = getattr(files, name)(tree, upstream)
        else:
            heavy.install(tree)
            try:
                why = getattr(checks, name)()
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
    print(json.dumps(why))


if __name__ == "__main__":
    main()
