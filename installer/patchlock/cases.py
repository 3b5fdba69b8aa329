"""Read the before/after pairs that lie beside an app's patches; writes nothing.

`patches/<app>/cases/<patch>/<case>/before/<path>` and `after/<path>`; without `after`, nothing may change. A file
`outcome` holds what must become of the patch, such as `required at import`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from patchlock.errors import CatalogueError, Problem, nearest
from patchlock.model import App, OutcomeKind
from patchlock.trials import Case


def read(root: Path, app: App) -> tuple[Case, ...]:
    """Read the cases of an app, sorted by patch and name.

    Raises:
        CatalogueError: a case is of no patch, has nothing before, or asks for an outcome that there is not.
    """
    folder = root / "patches" / app.name / "cases"
    ids = [patch.id for patch in app.patches]
    words = [kind.value for kind in OutcomeKind]
    found: list[Case] = []
    problems: list[Problem] = []
    for place in sorted(path for path in folder.glob("*/*") if path.is_dir()):
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
            after = _tree(place / "after") if (place / "after").is_dir() else None
            found.append(
                Case(patch=patch, name=place.name, before=_tree(place / "before"), after=after, outcome=wanted)
            )
    if problems:
        raise CatalogueError(problems)
    return tuple(found)


def _tree(folder: Path) -> dict[PurePosixPath, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {PurePosixPath(path.relative_to(folder).as_posix()): path.read_bytes() for path in files}
