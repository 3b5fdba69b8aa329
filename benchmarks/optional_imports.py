"""Prove `optional-import` on real histories: `PATCHLOCK_UPSTREAMS=<clones> python benchmarks/optional_imports.py`.

Each version of each file that mentions a package is patched, and its skeleton (`skeletons.py`) is executed with the
package blocked, in a child process without network, before and after. There are two right ends: the patched file is
imported and a use says what is missing, or the file was refused with a line. What fails also with the package there
is a fault of the mocks and is counted apart. A refused file is executed with a stand-in for the package all the same:
if that works, the refusal was not needed.

    --sample N   only about N files of each repository
    --show N     N examples of each end
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import gc
import importlib.abc
import itertools
import multiprocessing
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "installer"), str(ROOT / "benchmarks")]

import skeletons  # noqa: E402
from mocks import Mock  # noqa: E402

from patchlock.model.patch import OutcomeKind  # noqa: E402
from patchlock.model.text_files import SourceText, decode, encode, splice  # noqa: E402
from patchlock.patches.ops.optional_import import standin_class  # noqa: E402
from patchlock.patches.ops.optional_import._op import OptionalImport  # noqa: E402
from patchlock.patches.postconditions._python import ImportsWithout  # noqa: E402

HISTORIES = (
    "EleutherAI/gpt-neox",
    "microsoft/DeepSpeedExamples",
    "microsoft/Megatron-DeepSpeed",
    "huggingface/accelerate",
    "daswer123/xtts-webui",
    "resemble-ai/resemble-enhance",
)
"""Every version of their files is tried with deepspeed."""
PACKAGES = (
    *("deepspeed", "flash_attn", "xformers", "bitsandbytes", "triton", "apex", "av", "fairseq", "onnxruntime"),
    "torch_directml",
)
"""Tried at HEAD of every clone."""
SECONDS = 10
GOOD = ("patched, imports", "nothing to do", "refused: required at import", "refused: layout", "not Python")
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One version of a file and the package that is to be absent."""

    group: str
    path: str
    package: str
    data: bytes
    blob: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """How a case ended."""

    case: Case
    end: str
    detail: str = ""
    notes: tuple[str, ...] = ()


class Blocked(importlib.abc.MetaPathFinder):
    """Lets a package be missing, whatever is installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Raise what Python raises for a package that is not there."""
        if fullname.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def judge(case: Case) -> Result:
    """Patch one file and execute its skeleton."""
    end, detail, notes = _judge(case)
    return Result(case=case, end=end, detail=detail, notes=notes)


def _judge(case: Case) -> tuple[str, str, tuple[str, ...]]:
    path = PurePosixPath(case.path)
    source = decode(path, case.data)
    if not isinstance(source, SourceText):
        return "not Python", source.why, ()
    located = OptionalImport(package=case.package).locate(source)
    if any(refusal.kind is OutcomeKind.UNPARSABLE for refusal in located.refusals):
        return "not Python", located.refusals[0].why, ()
    sys.meta_path.insert(0, Blocked(case.package))
    original = skeletons.Prepared(source.text, case.package, standin_class.NAME)
    before, _ = original.errors(None)
    noise = original.errors(Mock)[0] if before else {}
    needs = [f"line {line}: {text}" for text, line in before.items() if text not in noise]
    notes = ["mocks were too poor", *(f"noise: {text}" for text in noise)] if noise else []
    if located.refusals:
        first = located.refusals[0]
        detail = f"line {first.line}: {first.why}"
        if first.kind is not OutcomeKind.REQUIRED_AT_IMPORT:
            return "refused: layout", detail, tuple(notes)
        forced, _ = original.errors(_stand_in(case.package))
        if not any(text not in noise for text in forced) and "does not say what it binds" not in first.why:
            notes.append("refused, but a stand-in works" if needs else "refused, but it needs no patch")
        return "refused: required at import", detail, tuple(notes)
    if not located.edits:
        return ("MISSED", needs[0], tuple(notes)) if needs else ("nothing to do", "", tuple(notes))
    patched = splice(source, located.edits)
    after, names = skeletons.Prepared(patched.text, case.package, standin_class.NAME).errors(None)
    wrong = [f"line {line}: {text}" for text, line in after.items() if text not in noise]
    wrong += _silent(case.package, names) if not wrong else []
    notes += ["patched, and needed no patch"] if not needs else []
    notes += [f"the ensure says: {p}" for p in ImportsWithout(package=case.package).problems(path, encode(patched))]
    return ("PATCHED, FAILS", wrong[0], tuple(notes)) if wrong else ("patched, imports", "", tuple(notes))


def _silent(package: str, names: dict[str, Any]) -> Iterator[str]:
    """Use each stand-in, and say which did not say what is missing."""
    for name, value in list(names.items()):
        if type(value).__name__ == standin_class.NAME:
            try:
                value()
            except ImportError as error:
                if str(error).startswith(f"{package} is not installed here, and "):
                    continue
            yield f"a use of {name} does not say what is missing"


def _stand_in(package: str) -> Any:
    made: dict[str, Any] = {}
    exec(standin_class.code("    ", "\n"), made)
    return lambda name: made[standin_class.NAME](package, name, ImportError(package))


# --- children ---------------------------------------------------------------------------------------------------------


def contained(case: Case) -> Result:
    """Judge a case in a process of its own, which can be lost."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _child(case, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        return Result(case=case, end="LOST", detail=f"the child ended with {status}")
    result: Result = pickle.loads(answer)
    return dataclasses.replace(result, case=case)


def _child(case: Case, pipe: int) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.alarm(3 * SECONDS)
    gc.disable()
    sys.addaudithook(_forbid)
    try:
        result = judge(case)
    except BaseException as error:
        result = Result(case=case, end="CRASHED", detail=f"{type(error).__name__}: {error}")
    os.write(pipe, pickle.dumps(dataclasses.replace(result, case=dataclasses.replace(case, data=b""))))
    os._exit(0)


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event.partition(".")[0] in {"socket", "subprocess", "shutil", "ctypes"} or event in {
        "os.system",
        "os.exec",
        "os.remove",
    }:
        raise PermissionError(event)


def _alone() -> None:
    """Give a worker a network of its own, with nothing in it, where the system lets us."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# --- what is tried ----------------------------------------------------------------------------------------------------


def clones(folder: Path) -> dict[str, Path]:
    """Find the clones below a folder, bare ones too: `owner/name` → git directory."""
    found = {}
    for head in folder.glob("*/**/HEAD"):
        if (head.parent / "objects").is_dir():
            name = head.relative_to(folder).parts[0].replace("+", "/")
            found.setdefault(name, head.parent)
    return dict(sorted(found.items()))


def _git(clone: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], input=stdin, capture_output=True, check=True).stdout


def blobs(clone: Path, *, history: bool) -> dict[str, str]:
    """Name the Python files of a clone, at HEAD or of all its commits: blob → one of its paths."""
    if history:
        lines = _git(clone, "rev-list", "--objects", "--missing=allow-any", "--all").decode().splitlines()
        pairs = [line.partition(" ")[::2] for line in lines]
    else:
        rows = _git(clone, "ls-tree", "-r", "-z", "HEAD").decode(errors="replace").split("\0")
        pairs = [(row.partition("\t")[0].split()[-1], row.partition("\t")[2]) for row in rows if row]
    return {blob: path for blob, path in pairs if path.endswith(".py")}


def contents(clone: Path, wanted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Read blobs; those that the clone lacks are left out."""
    for some in itertools.batched(wanted, 2000) if sys.version_info >= (3, 12) else _batches(list(wanted), 2000):
        answer = _git(clone, "cat-file", "--batch", stdin="\n".join(some).encode() + b"\n")
        at = 0
        while at < len(answer):
            end = answer.index(b"\n", at)
            head = answer[at:end].split()
            at = end + 1
            if head[-1] != b"missing":
                size = int(head[2])
                yield head[0].decode(), answer[at : at + size]
                at += size + 1


def _batches(items: list[str], size: int) -> Iterator[list[str]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def cases(found: dict[str, Path], sample: int) -> Iterator[Case]:
    """Give every case, those of the histories first."""
    for name in HISTORIES:
        if name in found:
            yield from _cases(name, found[name], ("deepspeed",), history=True, sample=sample)
    for clone in found.values():
        yield from _cases("HEAD of all", clone, PACKAGES, history=False, sample=sample)


def _cases(group: str, clone: Path, packages: tuple[str, ...], *, history: bool, sample: int) -> Iterator[Case]:
    paths = blobs(clone, history=history)
    made = [
        Case(group=group, path=paths[blob], package=package, data=data, blob=blob)
        for blob, data in contents(clone, paths)
        for package in packages
        if re.search(rb"\b%b\b" % package.encode(), data)
    ]
    yield from made[:: max(1, len(made) // sample)] if sample else made


# --- the report -------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=0, help="only about N files of each repository")
    parser.add_argument("--show", type=int, default=3, help="examples of each end")
    arguments = parser.parse_args()
    started = time.monotonic()
    found = clones(Path(os.environ["PATCHLOCK_UPSTREAMS"]))
    ends: collections.Counter[tuple[str, str]] = collections.Counter()
    notes: collections.Counter[tuple[str, str]] = collections.Counter()
    shown: dict[str, list[str]] = collections.defaultdict(list)
    with contextlib.closing(multiprocessing.get_context("fork").Pool(2, initializer=_alone)) as pool:
        for number, result in enumerate(
            pool.imap_unordered(contained, cases(found, arguments.sample), chunksize=16), 1
        ):
            case = result.case
            ends[result.end, case.group] += 1
            where = f"{case.group} {case.path} {case.blob[:10]} ({case.package})"
            shown[result.end].append(f"{where}: {result.detail}")
            for note in result.notes:
                kind = note if not note.startswith(("noise", "the ensure")) else note.partition(":")[0]
                notes[kind, case.group] += 1
                shown[kind].append(f"{where}: {note if kind != note else result.detail}")
            if number % 500 == 0:
                so_far = dict(collections.Counter(end for end, _ in ends.elements()))
                print(f"{number} files, {time.monotonic() - started:.0f} s, {so_far}", file=sys.stderr, flush=True)
    groups = [*(name for name in HISTORIES if name in found), "HEAD of all"]
    _table(ends, groups)
    _table(notes, groups)
    for kind, lines in shown.items():
        if kind not in {"nothing to do", "patched, imports"}:
            print(f"\n{kind}: {len(lines)}", *lines[: arguments.show], sep="\n    ")
    wrong = sum(count for (end, _), count in ends.items() if end not in GOOD)
    print(f"\n{sum(ends.values())} files in {time.monotonic() - started:.0f} s, {wrong} neither right nor refused")
    sys.exit(wrong > 0)


def _table(counts: collections.Counter[tuple[str, str]], groups: list[str]) -> None:
    print("\n" + " " * 34 + "".join(f"{group.rpartition('/')[2][:13]:>14}" for group in groups) + f"{'all':>9}")
    for kind in sorted({kind for kind, _ in counts}):
        row = [counts[kind, group] for group in groups]
        print(f"{kind:<34}" + "".join(f"{count:>14}" for count in row) + f"{sum(row):>9}")


if __name__ == "__main__":
    main()
