"""Read the before/after pairs that lie beside an app's patches, and beside those that it shares; writes nothing.

`patches/<app>/cases/<patch>/<case>/before/<path>` and `after/<path>`; without `after`, nothing may change. A file
`outcome` holds what must become of the patch, such as `required at import`. `patches/shared/cases/` has those of the
shared sets; where an app has a case of its own for such a patch, both count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from patchlock.catalogue.shared_sets import FOLDER
from patchlock.model.app import App
from patchlock.model.errors import CatalogueError, Problem, nearest
from patchlock.model.patch import OutcomeKind
from patchlock.patches.trials import Case

SHARED = PurePosixPath(FOLDER) / "cases"
_ANY_REQUIREMENTS = PurePosixPath("requirements.txt")
"""In a case of a shared set: the app's first requirement file of this kind."""


def read(root: Path, app: App) -> tuple[Case, ...]:
    """Read the cases of an app, sorted by patch and name.

    Raises:
        CatalogueError: a case is of no patch, has nothing before, or asks for an outcome that there is not.
    """
    ids = [patch.id for patch in app.patches]
    shared = {patch.id for one in app.shared for patch in one.patches}
    folders = [root / "patches" / app.name / "cases" / "*"]
    folders += [root / SHARED / patch for patch in sorted(shared)]
    words = [kind.value for kind in OutcomeKind]
    found: list[Case] = []
    problems: list[Problem] = []
    for place in sorted(path for one in folders for path in root.glob(f"{one.relative_to(root)}/*") if path.is_dir()):
        file = place.relative_to(root).as_posix()
        patch, outcome = place.parent.name, place / "outcome"
        wanted = outcome.read_text(encoding="utf-8").strip() if outcome.is_file() else ""
        if patch not in ids:
            what = f'there is no patch "{patch}"'
            problems.append(Problem(file=file, line=0, key="", what=what, remedy=nearest(patch, ids)))
        elif wanted and wanted not in words:
            what = f'there is no outcome "{wanted}"'
            problems.append(Problem(file=file, line=0, key="outcome", what=what, remedy=nearest(wanted, words)))
        elif not (place / "before").is_dir() and not (place / "after").is_dir():
            remedy = "write what upstream has there"
            problems.append(Problem(file=file, line=0, key="", what="it has no folder `before`", remedy=remedy))
        elif not (place / "after").is_dir() and not wanted:
            remedy = "write what becomes of it, or a file `outcome`"
            problems.append(Problem(file=file, line=0, key="", what="it has no folder `after`", remedy=remedy))
        else:
            lines = _lines_of(app)
            if patch in shared and lines is None and any(place.glob(f"*/{_ANY_REQUIREMENTS}")):
                continue  # it is about the lines of a file that this app has none of
            names = {_ANY_REQUIREMENTS: lines} if patch in shared and lines else {}
            after = _tree(place / "after", names) if (place / "after").is_dir() else None
            before = _tree(place / "before", names)
            found.append(Case(patch=patch, name=place.name, before=before, after=after, outcome=wanted))
    if problems:
        raise CatalogueError(problems)
    return tuple(found)


def _lines_of(app: App) -> PurePosixPath | None:
    """Name the first requirement file that has a line for each requirement."""
    return next((file for file in app.requirement_files if file.suffix in {".txt", ".in"}), None)


def _tree(folder: Path, names: Mapping[PurePosixPath, PurePosixPath]) -> dict[PurePosixPath, bytes]:
    """Read the files of a tree, without what pip compiles as it installs a wheel that has the catalogue."""
    files = {path: PurePosixPath(path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*"))}
    read = {path: name for path, name in files.items() if "__pycache__" not in name.parts and path.is_file()}
    return {names.get(name, name): path.read_bytes() for path, name in read.items()}
