"""Ask uv what a lock is resolved from; and ask ahead, while the catalogue is read, what was asked last time.

Most of the time that `lock` takes is the index's: uv waits for it, while reading the catalogue and applying the patches
wait for the processor. What was asked for a pair last time is therefore kept, and asked again at once. When it is known
what has to be asked, the answer counts only if that is the same, byte for byte; a question that failed is asked again.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from patchlock.core import atomic_files, process, uv
from patchlock.model.identities import Sha256

if TYPE_CHECKING:
    import subprocess

ARGUMENTS = "arguments.json"
"""The file of a question that holds uv's arguments, so that they count as a part of it."""
PACKAGES, BUILDS, CHOSEN_BUILDS, UNEXCLUDED = "packages", "builds", "chosen-builds", "unexcluded"
"""What may be asked for a pair: its packages; what all builds that it may need require, and those that it does need;
what would be there without exclusions."""
_ANSWER = "pylock.toml"
_LOG = "uv.log"
_HERE = "\0"
"""Stands in a kept question where its folder's address was; no text that uv reads can have it."""
ASKED_BY = "DEBUG Adding transitive dependency for "
"""How a line of uv's log begins that says who asked for what."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What uv found."""

    pylock: str
    """Text of the pylock.toml (PEP 751)."""
    log: str
    """What uv said with `-v`."""
    question: Sha256
    """Digest of what it was asked."""
    folder: Path
    """Where it was asked."""

    def digest(self) -> Sha256:
        """Digest what it says of packages and of who asked for them, whenever and wherever it was asked."""
        askers = sorted({line for line in self.log.splitlines() if line.startswith(ASKED_BY)})
        said = "\n".join((self.question, self.pylock.replace(self.folder.as_uri(), _HERE), *askers))
        return Sha256(hashlib.sha256(said.encode("utf-8", errors="surrogateescape")).hexdigest())


Ask = Callable[[str, Path], Answer]
"""Asks uv the question that stands in a folder; the first word says what it is about."""


def ask(folder: Path) -> Answer:
    """Ask uv the question that stands in a folder.

    Raises:
        PatchlockError: as `uv.run`.
    """
    asked = digest(folder)
    done = uv.run(*_command(folder), cwd=folder, installing=False)
    text = (folder / _ANSWER).read_text(encoding="utf-8")
    return Answer(pylock=text, log=done.stderr, question=asked, folder=folder)


def _command(folder: Path) -> tuple[str, ...]:
    # `--python` only spares uv the search for one, which takes seconds where PATH is full of shims.
    how = ("--python", sys.executable, "--format", "pylock.toml", "--no-header", "-v", "-o", _ANSWER)
    return ("pip", "compile", *json.loads((folder / ARGUMENTS).read_text(encoding="utf-8")), *how)


def digest(folder: Path) -> Sha256:
    """Digest a question, wherever its folder is."""
    made = hashlib.sha256()
    for path, text in _texts(folder).items():
        data = text.replace(_HERE, "").encode("utf-8", errors="surrogateescape")
        made.update(f"{path}\0{len(data)}\0".encode() + data)
    return Sha256(made.hexdigest())


def _texts(folder: Path) -> dict[str, str]:
    """Give the files of a question by their path, sorted, with a mark where the folder's own address is."""
    given = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in {_ANSWER, _LOG})
    address = folder.as_uri()
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        .decode("utf-8", errors="surrogateescape")
        .replace(address, _HERE)
        for path in given
    }


@dataclass(frozen=True, kw_only=True)
class _Started:
    """A question that uv is working at."""

    folder: Path
    digest: Sha256
    child: subprocess.Popen[bytes]

    def answer(self) -> Answer | None:
        """Wait for what uv answers; None where it has no answer."""
        if self.child.wait() != 0:
            return None
        return Answer(
            pylock=(self.folder / _ANSWER).read_text(encoding="utf-8"),
            log=(self.folder / _LOG).read_text(encoding="utf-8", errors="replace"),
            question=self.digest,
            folder=self.folder,
        )


class ResolverPrefetch:
    """The questions of earlier runs, and those of them that were asked again before anybody knew what to ask."""

    def __init__(self, cache: Path) -> None:
        """Know where they are kept.

        Args:
            cache: folder of patchlock's cache.
        """
        self._kept = cache / "questions"
        self._started: dict[str, _Started] = {}
        self.answered: dict[str, Sha256] = {}
        """Question → digest of the answer that somebody wanted in this run."""

    @contextlib.contextmanager
    def asked_again(self, apps: Sequence[str], profile: str | None, platform: str | None) -> Iterator[ResolverPrefetch]:
        """Ask again what was asked last time, as many questions at once as the machine can serve; end those left.

        Args:
            apps: names of the apps that may be locked; all, if empty.
            profile: the only profile, if there is one.
            platform: the only platform, if there is one.
        """
        ends = f"{profile or '*'}.{platform or '*'}/*.json"
        found = [
            name
            for app in apps or ("*",)
            for name in sorted(self._kept.glob(f"{glob.escape(app) if apps else app}/{ends}"))
        ]
        wanted = sorted(found, key=lambda one: one.stem != PACKAGES)
        with contextlib.ExitStack() as stack:
            for kept in wanted[: at_once()]:
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # only a cache
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="patchlock-lock-")))
                    _lay_out(json.loads(kept.read_text(encoding="utf-8")), folder)
                    child = uv.start(*_command(folder), cwd=folder, log=folder / _LOG)
                    stack.callback(_end, child)
                    self._started[kept.relative_to(self._kept).with_suffix("").as_posix()] = _Started(
                        folder=folder, digest=digest(folder), child=child
                    )
            yield self
            if self.answered:
                for name in self._started.keys() - self.answered.keys():
                    (self._kept / f"{name}.json").unlink(missing_ok=True)  # nobody asks that any more

    @property
    def started(self) -> tuple[Path, ...]:
        """The folders of the questions that are being asked."""
        return tuple(one.folder for one in self._started.values())

    def answers(self, names: Collection[str]) -> dict[str, Sha256] | None:
        """Wait for what uv was asked ahead, and digest each answer; None where one is missing, or was not asked."""
        if not set(names) <= self._started.keys():
            return None
        found = {name: self._started[name].answer() for name in names}
        if None in found.values():
            return None
        return {name: answer.digest() for name, answer in found.items() if answer is not None}

    def ask(self, name: str, folder: Path) -> Answer:
        """Take the answer that uv was asked for ahead, if the question is the same, or ask; keep the question.

        Args:
            name: `app/profile.platform/` and what is asked for this pair.
            folder: where the question stands.

        Raises:
            PatchlockError: as `uv.run`.
        """
        started = self._started.get(name)
        same = started is not None and started.digest == digest(folder)
        answer = started.answer() if started is not None and same else None
        if answer is None:
            answer = ask(folder)
        if not same:
            text = json.dumps(_texts(folder), indent=0)
            with contextlib.suppress(OSError):  # where the cache cannot be written, the next run takes as long as this
                (self._kept / name).parent.mkdir(parents=True, exist_ok=True)
                atomic_files.atomic_write(self._kept / f"{name}.json", text)
        self.answered[name] = answer.digest()
        return answer


def at_once() -> int:
    """Give the number of pairs that are locked together: most of the time each waits for the index."""
    return 2 * (os.cpu_count() or 1)


def _lay_out(question: Mapping[str, str], folder: Path) -> None:
    """Write a kept question into an empty folder.

    Raises:
        ValueError: it would leave the folder.
    """
    address = folder.as_uri()
    for path, text in question.items():
        parts = PurePosixPath(path).parts
        if ".." in parts or parts[:1] == ("/",):
            raise ValueError(path)
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.replace(_HERE, address).encode("utf-8", errors="surrogateescape"))


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        process.kill(child.pid)
    child.wait()
