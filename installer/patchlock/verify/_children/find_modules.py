"""Say which modules this environment does not have, without importing any; run with the app's folder as working folder.

Argument: a JSON list of dotted names. Prints a JSON list of those that are not there.
"""

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path


def _is_there(name: str) -> bool:
    first, *rest = name.split(".")
    spec = importlib.util.find_spec(first)
    if spec is None:
        return False
    if first in sys.stdlib_module_names:
        return True
    if spec.submodule_search_locations is None:
        return not rest or _makes_modules(Path(spec.origin or ""))
    folders = [Path(one) for one in spec.submodule_search_locations]
    for part in rest:
        if any((folder / f"{part}{end}").exists() for folder in folders for end in importlib.machinery.all_suffixes()):
            return True
        within = [folder / part for folder in folders if (folder / part).is_dir()]
        if not within:
            return any(_makes_modules(folder / "__init__.py") for folder in folders)
        folders = within
    return True


def _makes_modules(file: Path) -> bool:
    """Tell whether a module's own code may put modules below it, as that of `six` does; these cannot be seen."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.suffix == ".py" and file.is_file() else ""
    return any(word in text for word in ("sys.modules", "meta_path", "__path__"))


def main() -> None:
    """Look for each."""
    print(json.dumps([name for name in json.loads(sys.argv[1]) if not _is_there(name)]))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
