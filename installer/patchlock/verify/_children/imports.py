"""Import modules in this environment and print, as JSON, what failed; run with the app's folder as working folder.

Arguments: a JSON list of modules that must import, and one of modules that must not be found.
"""

import importlib
import importlib.util
import json
import sys


def main() -> None:
    """Import everything, each failure as one clause."""
    present, absent = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    sys.path.insert(0, "")
    failed = []
    for name in present:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - a module may end in any way, SystemExit included
            failed.append(f"import {name}: {type(error).__name__}: {error}")
    failed += [f"{name} is there and must not be" for name in absent if importlib.util.find_spec(name) is not None]
    print(json.dumps({"failed": failed}))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
