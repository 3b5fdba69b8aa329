"""Which files a patch is for: by its globs and literals, and by content where a named file has moved; pure."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from patchlock.model.patch import Located, Op, Patch, Site
from patchlock.model.text_files import SourceText, Undecodable, decode
from patchlock.patches.evaluation import DIRECT, Evaluator
from patchlock.patches.ops._device.op import DeviceLiterals
from patchlock.patches.ops._diffs import AddFile, Displaced, UnifiedDiff

Found = dict[PurePosixPath, tuple[SourceText, Located]]
"""What an op found, by file; sorted by path."""

MAKES_FILES = "add-file"
"""The one op whose file need not be there."""
_WILD = re.compile(r"[*?]")
_ALIKE = 0.5
"""Share of lines that a renamed file keeps: git's own threshold."""


def candidates(patches: Iterable[Patch], paths: Iterable[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Choose the files that some patch may touch, so that only these need to be read; sorted.

    A file that a patch names and that is not there may have moved: then all files of its kind are candidates.
    """
    present = frozenset(paths)
    globs: set[str] = set()
    suffixes: set[str] = set()
    for patch in patches:
        globs.update(patch.paths)
        suffixes.update(path.suffix for path in missing(patch, present))
    compiled = [_glob(glob) for glob in globs]
    return tuple(sorted(p for p in present if p.suffix in suffixes or any(glob.fullmatch(str(p)) for glob in compiled)))


def matching_files(patch: Patch, contents: Mapping[PurePosixPath, bytes]) -> list[PurePosixPath]:
    """Give the files that the patch's globs match; for a patch that makes a file also that one."""
    exact = {glob for glob in patch.paths if not _WILD.search(glob)}
    others = tuple(glob for glob in patch.paths if glob not in exact)
    if others:
        matches = _any_of(others).fullmatch
        found = [path for path in contents if str(path) in exact or matches(str(path))]
    else:
        found = [path for path in map(PurePosixPath, exact) if path in contents and str(path) in exact]
    if patch.op_name == MAKES_FILES:
        found += (path for path in map(PurePosixPath, patch.paths) if path not in contents)
    return sorted(found, key=lambda path: path.parts)


def locate(
    patch: Patch,
    paths: Iterable[PurePosixPath],
    contents: Mapping[PurePosixPath, bytes],
    evaluator: Evaluator = DIRECT,
) -> tuple[Found, tuple[Undecodable, ...]]:
    """Let the op look at each file that has one of the patch's literals; the files that are no text are told."""
    found: Found = {}
    unreadable: list[Undecodable] = []
    for path in paths:
        data = contents.get(path, b"")
        if not mentions(data, patch.literal):
            continue
        source = decode(path, data)
        if isinstance(source, Undecodable):
            unreadable.append(source)
        else:
            found[path] = (source, in_file(patch, source, data, evaluator))
    return found, tuple(unreadable)


def in_file(patch: Patch, source: SourceText, data: bytes, evaluator: Evaluator = DIRECT) -> Located:
    """Let the op look at a file; where this has what the patch promises in another form or place, that is settled.

    Args:
        patch: the patch.
        source: the file.
        data: its bytes.
        evaluator: whom to ask.
    """
    where = evaluator.locate(patch.op, source)
    is_edited = bool(where.refusals) and all(refusal.is_edit for refusal in where.refusals)
    if (is_edited or _adds_once(patch, where)) and is_kept(patch, source.path, data, evaluator):
        edited = (_line(source, refusal.line) for refusal in where.refusals)
        return Located(settled=(*where.settled, *where.sites, *edited), is_alike=True)
    return where


def is_kept(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator = DIRECT) -> bool:
    """Tell whether a file has what a patch promises to be there; a promise that an empty file keeps says nothing."""
    promised = [ensure for ensure in patch.ensures if evaluator.problems(ensure, path, b"")]
    return bool(promised) and not any(evaluator.problems(ensure, path, data) for ensure in patch.ensures)


def _adds_once(patch: Patch, where: Located) -> bool:
    """Tell whether all that a patch has to do is to add something in one place: of several, one may be done."""
    is_one = len(where.sites) == 1 and not where.settled and not where.refusals and patch.expect.sites <= 1
    return is_one and only_adds(where)


def only_adds(where: Located) -> bool:
    """Tell whether no edit takes anything away."""
    return bool(where.edits) and all(edit.start == edit.end for edit in where.edits)


def _line(source: SourceText, number: int) -> Site:
    starts = (*source.line_starts(), len(source.text))
    return Site(line=number, text=source.text[starts[number - 1] : starts[number]].strip())


def mentions(data: bytes, literal: tuple[str, ...]) -> bool:
    """Tell whether a file has one of a patch's literals, in UTF-8 or UTF-16; without literals, every file has."""
    if not literal or any(text.encode() in data for text in literal):
        return True
    # Few files are UTF-16, and in those of them that name an ASCII word there are NUL bytes.
    has_nul = b"\0" in data
    wide = [text for text in literal if has_nul or not text.isascii()]
    return any(text.encode(encoding) in data for text in wide for encoding in ("utf-16-le", "utf-16-be"))


def possible_lines(op: Op, source: SourceText) -> frozenset[int] | None:
    """Give all lines of which an op may tell, where it knows them in much less time than it takes to locate; or None.

    What is settled does not count.
    """
    return op.lines(source) if isinstance(op, DeviceLiterals) else None


def missing(patch: Patch, contents: Collection[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Give the files that a patch with literals names without a wildcard, and that are not there."""
    exact = [PurePosixPath(glob) for glob in patch.paths if patch.literal and not _WILD.search(glob)]
    return tuple(path for path in exact if path not in contents)


def is_at_home(patch: Patch, path: PurePosixPath, data: bytes) -> bool:
    """Tell whether a diff stands where it stood when it was made; other ops know their place by its meaning."""
    source, op = decode(path, data), patch.op
    return not isinstance(op, UnifiedDiff) or not isinstance(source, SourceText) or op.is_at_home(source)


def displaced(patch: Patch, path: PurePosixPath, data: bytes) -> Patch:
    """Give a patch that refuses its file, as the text of its diff stands there in another place alone."""
    source = decode(path, data)
    where = patch.op.locate(source) if isinstance(source, SourceText) else Located()
    line = next((site.line for site in (*where.sites, *where.settled)), 1)
    return dataclasses.replace(patch, op=Displaced(line=line), literal=())


def find_moved_files(
    patch: Patch,
    contents: Mapping[PurePosixPath, bytes],
    seen: Mapping[PurePosixPath, bytes],
    evaluator: Evaluator = DIRECT,
) -> tuple[Found, str]:
    """Find by content where a named file went that is not there: by its name, or by its likeness to what it was.

    Where the patch is there already, likeness alone counts.

    Args:
        patch: the patch.
        contents: files as they are.
        seen: missing files as the patch's author saw them, as far as they are known.
        evaluator: whom to ask.

    Returns:
        The files, and why they cannot be taken for the missing ones, or "".
    """
    gone = missing(patch, contents) if patch.op_name != MAKES_FILES else ()
    if not gone:
        return {}, ""
    kinds = {path.suffix for path in gone}
    elsewhere = [path for path in sorted(contents) if path.suffix in kinds]
    known = set(matching_files(patch, contents)) if elsewhere else set()
    located, _ = locate(patch, (path for path in elsewhere if path not in known), contents, evaluator)
    found = {path: where for path, where in located.items() if where[1].sites}
    same_name = {path: where for path, where in found.items() if path.name in {one.name for one in gone}}
    alike = {path: where for path, where in found.items() if any(_is_alike(m, seen, contents[path]) for m in gone)}
    likely = same_name or alike
    if likely and len({path.name for path in likely}) == len(likely) <= len(gone):
        return likely, ""
    if not likely:
        alike_ones = (p for p in elsewhere if p not in found and any(_is_alike(m, seen, contents[p]) for m in gone))
        done = {path: where for path in alike_ones if (where := _done(patch, path, contents[path], evaluator))}
        if 0 < len(done) <= len(gone):
            return done, ""
    if not found:
        return {}, ""
    listed = ", ".join(f"{path}:{where.sites[0].line}" for path, (_, where) in (likely or found).items())
    return likely or found, f"{', '.join(map(str, gone))} is not there, and this may be what became of it: {listed}"


def _done(patch: Patch, path: PurePosixPath, data: bytes, evaluator: Evaluator) -> tuple[SourceText, Located] | None:
    """Give what stands in a file where a patch has nothing to do, and it has what that promises; else None."""
    source = decode(path, data)
    if isinstance(source, Undecodable):
        return None
    where = in_file(patch, source, data, evaluator)
    return (source, where) if where.settled else None


def unfit_paths(op: Op | None, paths: tuple[str, ...]) -> str:
    """Say why an op cannot work on a patch's paths, a clause, or ""."""
    match op:
        case AddFile() if len(paths) != 1 or _WILD.search(paths[0]):
            return "it must be the one file that add-file makes, without a wildcard"
        case UnifiedDiff():
            left_out = [file for file in op.files() if file and not any(_glob(g).fullmatch(file) for g in paths)]
            return f"{', '.join(left_out)} of the diff is not among them" if left_out else ""
        case _:
            return ""


def _is_alike(gone: PurePosixPath, seen: Mapping[PurePosixPath, bytes], data: bytes) -> bool:
    """Tell whether half of a file's lines are those of a missing one, as git does for a rename."""
    matcher = difflib.SequenceMatcher(None, seen.get(gone, b"").splitlines(), data.splitlines(), autojunk=False)
    return gone in seen and matcher.quick_ratio() >= _ALIKE <= matcher.ratio()


@lru_cache(maxsize=256)
def _any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_glob(glob).pattern})" for glob in globs))


@lru_cache(maxsize=256)
def _glob(glob: str) -> re.Pattern[str]:
    """Translate a glob over POSIX paths: `*` and `?` stay within a folder, `**/` crosses any number of them."""
    translated = ""
    rest = glob
    while rest:
        if rest.startswith("**/"):
            translated, rest = translated + "(?:[^/]+/)*", rest[3:]
        elif rest.startswith("**"):
            translated, rest = translated + ".*", rest[2:]
        elif rest[0] in "*?":
            translated, rest = translated + {"*": "[^/]*", "?": "[^/]"}[rest[0]], rest[1:]
        else:
            translated, rest = translated + re.escape(rest[0]), rest[1:]
    return re.compile(translated)
