"""Say which modules this environment does not have, without importing any; run with the app's folder as working folder.

Argument: a JSON list of dotted names. Prints a JSON list of those that are not there.
"""

import importlib.machinery
import importlib.util
import json
import sys


def _is_there(name: str) -> bool:
    first, *rest = name.split(".")
    spec = importlib.util.find_spec(first)
    path = first
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            break
        path = f"{path}.{part}"
        within = importlib.machinery.PathFinder.find_spec(path, list(spec.submodule_search_locations))
        if within is None and spec.origin is not None:  # what its own code puts there cannot be seen
            return True
        spec = within
    return spec is not None


def main() -> None:
    """Look for each."""
    print(json.dumps([name for name in json.loads(sys.argv[1]) if not _is_there(name)]))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
