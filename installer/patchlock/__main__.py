"""Start patchlock: `python -m patchlock`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and end with its exit code."""
    from patchlock.cli import main as run

    # Syntax trees are many objects without cycles: looking for cycles among them again and again took as long as all
    # the rest. mypy has the same line.
    gc.set_threshold(200_000, 30, 100)

    code = run(sys.argv[1:])
    gc.freeze()  # nor is there anything to look for at the end, which took a tenth of the time of `list`
    sys.exit(code)


if __name__ == "__main__":
    main()
