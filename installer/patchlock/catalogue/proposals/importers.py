"""Who imports a distribution that an app may have to go without, and whether as its program starts; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import NormalizedName

from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.imports import Import, Imports
from patchlock.patches import import_graph
from patchlock.patches.import_graph import ReachedImport, Trees

_ASIDE = re.compile(r"(?i)(?:^|[-_./])(?:docs?|examples?|tests?|tools|scripts|train\w*|eval\w*)(?=[-_./]|$)")
_NO_APP = re.compile(
    r"(?i)(?:^|/)(?:(?:docs?|examples?|samples?|(?:\w+_)?tests?|benchmarks?)/|(?:test_[^/]*|[^/]*_test|conftest)\.py$)"
)


@dataclass(frozen=True, kw_only=True)
class Importers:
    """The imports of an app."""

    at_start: tuple[ReachedImport, ...] = ()
    """What its program comes to as it starts."""
    anywhere: tuple[Import, ...] = ()
    has_program: bool = False
    """Somebody says how it is started; otherwise any of its modules may be."""

    def is_needed(self, name: NormalizedName) -> bool:
        """Tell whether the app ends without a distribution: its program imports it as it starts, or its modules do."""
        if self.has_program:
            return any(module_names.brings(name, one.module.partition(".")[0]) for one in self.at_start)
        return any(module_names.brings(name, one.top) for one in self.anywhere if self._counts(one))

    def _counts(self, one: Import) -> bool:
        return not (one.is_optional or one.is_late or is_aside(one.found.path))

    def told(self, name: NormalizedName) -> str:
        """Say who imports a distribution, a clause."""
        for reached in self.at_start:
            if module_names.brings(name, reached.module.partition(".")[0]):
                return f"{reached.path}:{reached.line} imports {reached.module} as the program starts"
        found = [one for one in self.anywhere if module_names.brings(name, one.top)]
        if not found:
            return "no file imports it under a name that is known"
        if not self.has_program and self.is_needed(name):
            first = next(one for one in found if self._counts(one))
            return f"{first.found.path}:{first.found.line} imports {first.module} as that module is imported"
        if all(one.is_optional for one in found):
            return f"{found[0].found.path}:{found[0].found.line} imports it, and goes on without it"
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f"{found[0].found.path}:{found[0].found.line}{more} imports it, not as the program starts"


def is_aside(path: PurePosixPath) -> bool:
    """Tell whether a file is one that the app goes without: an example, a test, training."""
    return _ASIDE.search(str(path)) is not None


def is_no_part(path: PurePosixPath, started: Collection[PurePosixPath] = ()) -> bool:
    """Tell whether a file is no part of the app: a test, an example, documentation; tools and training may be.

    Where the program itself is one, those beside it and below are programs as well.
    """
    beside = {one.parent for one in started if is_no_part(one)}
    return path not in started and _NO_APP.search(str(path)) is not None and beside.isdisjoint(path.parents)


def read(trees: Trees, command: Sequence[str], python_path: str) -> Importers:
    """Read them.

    Args:
        trees: of the Python files.
        command: with which the app is started; empty where none is known.
        python_path: its PYTHONPATH.
    """
    reached = import_graph.reached(trees.files, command, python_path, trees).modules if command else ()
    return Importers(at_start=reached, anywhere=Imports(trees.files, trees).all(), has_program=bool(reached))
