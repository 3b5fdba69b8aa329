"""Show that edits touch nothing else: `PATCHLOCK_UPSTREAMS=<folder of clones> python benchmarks/fidelity.py [name …]`.

Every requirement file at HEAD of every clone, and over the whole history of the clones that are named, gets edits of
one distribution; other people's parsers must find all others as they were, and the bytes of all other lines the same.
Every Python file survives reading and writing, and an op that matches nothing; at HEAD also two that parse it.
A clone may be bare, and may lie in `<name>/repo`. Ends with exit code 1 if anything fails.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "benchmarks")]

from independent import Fact, NotReadError, facts  # noqa: E402
from packaging.requirements import Requirement  # noqa: E402
from packaging.specifiers import SpecifierSet  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

from patchlock.model.patch import Op  # noqa: E402
from patchlock.model.text_files import SourceText, decode, encode, splice  # noqa: E402
from patchlock.patches.ops._python import NeutraliseCall  # noqa: E402
from patchlock.patches.ops._text import ReplaceText  # noqa: E402
from patchlock.patches.ops.optional_import._op import OptionalImport  # noqa: E402
from patchlock.patches.ops.requirements.ops import (  # noqa: E402
    AddRequirement,
    DropRequirement,
    RenameRequirement,
    SetRequirement,
)

NAMES = re.compile(
    r"(?:.*/)?(?:[^/]*(?:requirements|constraints)[^/]*\.(?:txt|in)|requirements/[^/]+\.(?:txt|in)"
    r"|pyproject\.toml|setup\.cfg|setup\.py|environment[^/]*\.ya?ml)"
)
CORPUS = re.compile(r"tests/.*data/.*\.(?:txt|in)")
"""Of aboutcode-org/pip-requirements-parser."""
NEW = "zz-patchlock-fidelity"
NOTHING: tuple[Op, ...] = (
    ReplaceText(old="zz_patchlock_fidelity", new="x"),
    NeutraliseCall(call="zz_patchlock.fidelity($*rest)"),
    OptionalImport(package="zz_patchlock"),
)
TRIED = 12
"""Distributions per file."""


@dataclasses.dataclass
class Row:
    """What was counted for one kind of file."""

    versions: int = 0
    unread: int = 0
    edits: int = 0
    refused: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)


def main(named: list[str]) -> int:
    """Run over all clones and print one row for each kind of file."""
    folder = Path(os.environ["PATCHLOCK_UPSTREAMS"])
    rows: dict[str, Row] = collections.defaultdict(Row)
    seen: set[tuple[str, str]] = set()
    for path in sorted(folder.iterdir()):
        clone = path / "repo" if (path / "repo").is_dir() else path
        if not ((clone / "HEAD").is_file() or (clone / ".git").exists()):
            continue
        with _reader(clone) as reader:
            for blob, name, is_head in _files(clone, whole_history=path.name in named):
                if (blob, name.rpartition("/")[2]) in seen:
                    continue
                seen.add((blob, name.rpartition("/")[2]))
                data = _blob(reader, blob)
                if data is not None:
                    _tried(f"{path.name} {blob[:9]} {name}", PurePosixPath(name), data, rows, is_head=is_head)
        print(f"{path.name} done", file=sys.stderr, flush=True)
    print(f"{'files':<24}{'versions':>10}{'not read':>10}{'edits':>10}{'refused':>10}{'failures':>10}")
    for kind, row in sorted(rows.items()):
        print(f"{kind:<24}{row.versions:>10}{row.unread:>10}{row.edits:>10}{row.refused:>10}{len(row.failures):>10}")
    for row in rows.values():
        print("\n".join(row.failures[:40]))
    return 1 if any(row.failures for row in rows.values()) or not rows else 0


def _tried(where: str, path: PurePosixPath, data: bytes, rows: dict[str, Row], *, is_head: bool) -> None:
    name = str(path)
    if path.suffix == ".py":
        _survives(where, path, data, NOTHING if is_head else NOTHING[:1], rows["*.py"])
    if NAMES.fullmatch(name) or CORPUS.fullmatch(name):
        _edited(where, path, data, rows[_kind(name)])


def _survives(where: str, path: PurePosixPath, data: bytes, ops: tuple[Op, ...], row: Row) -> None:
    row.versions += 1
    source = decode(path, data)
    if not isinstance(source, SourceText):
        row.unread += 1
        return
    if encode(splice(source, ())) != data:
        row.failures.append(f"{where}: not the same bytes")
    for op in ops:
        located = op.locate(source)
        row.edits += 1
        row.refused += bool(located.refusals)
        if located.edits:
            row.failures.append(f"{where}: {type(op).__name__} matches nothing and edits")


def _edited(where: str, path: PurePosixPath, data: bytes, row: Row) -> None:
    row.versions += 1
    source = decode(path, data)
    try:
        before = facts(path, data)
    except NotReadError:
        row.unread += 1
        return
    if not isinstance(source, SourceText):
        row.unread += 1
        return
    names = sorted({name for name, _ in before if name}, key=lambda name: zlib.crc32(name.encode()))[:TRIED]
    edits: list[tuple[str, Op]] = [(NEW, AddRequirement(requirement=Requirement(f"{NEW}==1.2.3")))]
    for name in map(canonicalize_name, names):
        edits += [
            (name, SetRequirement(name=name, specifier=SpecifierSet("==1.2.3"))),
            (name, DropRequirement(name=name)),
            (name, RenameRequirement(name=name, to=Requirement(f"{NEW}==1.2.3"))),
        ]
    for name, op in edits:
        located = op.locate(source)
        row.edits += 1
        if located.refusals:
            row.refused += 1
            continue
        after = encode(splice(source, located.edits))
        problem = _problem(path, name, op, before, after) if located.edits else ""
        problem = problem or (_moved(data, after, name) if located.edits else "")
        again = decode(path, after)
        if isinstance(again, SourceText) and op.locate(again).edits:
            problem = problem or "does not settle"
        if problem:
            row.failures.append(f"{where}: {type(op).__name__} {name}: {problem}")


def _problem(path: PurePosixPath, name: str, op: Op, before: list[Fact], after: bytes) -> str:
    try:
        found = facts(path, after)
    except NotReadError as error:
        return f"not read any more: {error}"
    others = [fact for fact in found if fact[0] not in {name, NEW}]
    if _comparable(others) != _comparable([fact for fact in before if fact[0] not in {name, NEW}]):
        return "another requirement changed"
    mine = [said for one, said in found if one in {name, NEW}]
    has_new = any(one == NEW for one, _ in found)
    match op:
        case SetRequirement() if path.suffix != ".py" and not any("1.2.3" in said for said in mine):
            return "was not set"
        case AddRequirement() | RenameRequirement() if not has_new:
            return "the new name is not there"
    return ""


def _comparable(found: list[Fact]) -> list[Fact]:
    """Leave out what an emptied list leaves behind."""
    return [fact for fact in found if not fact[1].endswith(" None")]


def _moved(before: bytes, after: bytes, name: str) -> str:
    """Compare lines: those that changed must be about the name, or lose or get a comma."""
    encoding = "utf-16" if before[:2] in {b"\xff\xfe", b"\xfe\xff"} else "latin-1"
    old, new = (re.split(r"(?<=\n)|(?<=\r)(?!\n)", data.decode(encoding)) for data in (before, after))
    spelled = re.compile(re.escape(name).replace(r"\-", "[-_.]+"), re.IGNORECASE)
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        was, now = "".join(old[i:j]), "".join(new[k:m])
        if tag == "equal" or spelled.search(was) or NEW in now:
            continue
        if re.sub(r"[,\s]", "", was) != re.sub(r"[,\s]", "", now):
            return f"another line changed: {was!r} to {now!r}"
    return ""


def _kind(name: str) -> str:
    last = name.rpartition("/")[2]
    return last if last in {"pyproject.toml", "setup.cfg", "setup.py"} else f"*.{last.rpartition('.')[2]}"


def _files(clone: Path, *, whole_history: bool) -> Iterator[tuple[str, str, bool]]:
    """Give blobs with their names, and whether they are at HEAD, which comes first."""
    for entry in _git(clone, "ls-tree", "-r", "-z", "HEAD").split("\0"):
        meta, _, name = entry.partition("\t")
        if " blob " in meta and not meta.startswith("120000"):
            yield meta.split()[2], name, True
    if whole_history:
        listed = _git(clone, "log", "--all", "--raw", "--no-abbrev", "--no-renames", "-m", "--format=", "-z")
        words = listed.split("\0")
        pairs = [(meta.split()[3], name) for meta, name in zip(words[::2], words[1::2], strict=False) if meta.strip()]
        yield from ((blob, name, False) for blob, name in dict.fromkeys(pairs) if set(blob) != {"0"})


def _git(clone: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(clone), *words],
        check=False,
        capture_output=True,
        env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def _reader(clone: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["git", "-C", str(clone), "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
    )


def _blob(reader: subprocess.Popen[bytes], blob: str) -> bytes | None:
    """Read a blob; None where the clone lacks it."""
    assert reader.stdin
    assert reader.stdout
    reader.stdin.write(f"{blob}\n".encode())
    reader.stdin.flush()
    header = reader.stdout.readline().split()
    if len(header) < 3:
        return None
    data = reader.stdout.read(int(header[2]) + 1)[:-1]
    return data if header[1] == b"blob" else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
