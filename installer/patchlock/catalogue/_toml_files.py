"""Read a TOML file of the catalogue into values, with every mistake of it reported at once; writes nothing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.errors import CatalogueError, Problem

T = TypeVar("T")


def read(root: Path, file: str, build: Callable[[Table], T], *, whole: bool = True) -> T:
    """Read a file and build a value of it.

    Args:
        root: the catalogue's.
        file: POSIX path from there.
        build: asks the table for its keys.
        whole: whether a key that nobody asked for is a mistake.

    Raises:
        CatalogueError: it has mistakes; carries all of them.
    """
    report, values = _load(root / file, file)
    if not report.problems:
        table = Table(values, report)
        built = build(table)
        if whole:
            table.finish()
        if not report.problems:
            return built
    raise CatalogueError(report.problems)


def _load(path: Path, file: str) -> tuple[Report, dict[str, object]]:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
        return Report(file=file, text=text), tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = Problem(file=file, line=line, key="", what="it is not UTF-8", remedy="save it as UTF-8")
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else 0
        problem = Problem(file=file, line=line, key="", what=f"it is not TOML: {error}", remedy="")
    except RecursionError:
        problem = Problem(file=file, line=0, key="", what="its values are nested too deep", remedy="")
    return Report(file=file, text="", problems=[problem]), {}
