"""Ask uv many small questions about one order, several at once, within a time; writes nothing that stays."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.core import uv
from patchlock.locks import _resolver_input
from patchlock.locks.conflicts.model import CUT_OFF, Answer, Member, Question, Solved, Unknown, Unsolved, texts
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model import toml_text
from patchlock.model.errors import CommandFailedError, NetworkError, UnsatisfiableError
from patchlock.model.lock_rules import LockRules

_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:==(\S+)| @ \S+?-(\d[^-/]*)-[^/]*\.whl)\S*(?:\s+#\s+via\s+(.*))?")
_NEWEST_PYTHON = "3.14"
_SLOW = 60.0
"""Seconds after which one question is given up; uv can try thousands of versions."""
_FILE = PurePosixPath("requirements.txt")
_BOUNDS = PurePosixPath("bounds.txt")


@dataclasses.dataclass(slots=True)
class ResolverSession:
    """Questions about one order. Each question is asked once; afterwards its answer is known.

    Attributes:
        order: what the questions are parts of.
        members: all that it asks for.
        deadline: on the clock of `time.monotonic`; later questions are not asked.
        tell: called with the number of questions asked so far.
        workers: how many uv at once.
    """

    order: ResolutionInputs
    members: tuple[Member, ...]
    deadline: float
    tell: Callable[[int], None]
    workers: int = max(2, os.cpu_count() or 2)
    known: dict[Question, Answer] = dataclasses.field(default_factory=dict)
    config: str | None = None
    asked: int = 0

    def is_spent(self) -> bool:
        """Say whether there is no time left."""
        return time.monotonic() >= self.deadline

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer each, those that are new at the same time."""
        if self.config is None:
            self.config = _short_memory()
            uv.find()  # once before the threads; see `cli/_lock.py`
        new = [question for question in dict.fromkeys(questions) if question not in self.known]
        with concurrent.futures.ThreadPoolExecutor(max_workers=self.workers) as pool:
            for question, answer in zip(new, pool.map(self._answer, new), strict=True):
                if not (isinstance(answer, Unknown) and self.is_spent()):
                    self.known[question] = answer
                self.asked += 1
        self.tell(self.asked)
        return [self.known.get(question, Unknown(why="there was no time left")) for question in questions]

    def _answer(self, question: Question) -> Answer:
        left = min(self.deadline - time.monotonic(), _SLOW)
        if left <= 0:
            return Unknown(why="there was no time left")
        try:
            return solved(pins(part(self.order, self.members, question), config=self.config or "", timeout=left))
        except UnsatisfiableError as error:
            return Unsolved(words=tuple(line for line in error.evidence if not line.startswith("warning: ")))
        except (CommandFailedError, NetworkError) as error:
            return Unknown(why=error.what)


def part(order: ResolutionInputs, members: Sequence[Member], question: Question) -> ResolutionInputs:
    """Make the order that a question is about: the same machine, indexes and rules, other requirements."""
    wanted, bounds = texts(members, question)
    kept = "".join(f"{line}\n" for line in _options(order))
    return dataclasses.replace(
        order,
        app=dataclasses.replace(order.app, requirement_files=(_FILE,), rules=_unbound(order.app.rules)),
        profile=dataclasses.replace(order.profile, rules=_unbound(order.profile.rules)),
        as_of=order.as_of if CUT_OFF in question.atoms else "",
        requirements={_FILE: f"-c {_BOUNDS}\n{kept}{wanted}".encode(), _BOUNDS: bounds.encode()},
    )


def _unbound(rules: LockRules) -> LockRules:
    return dataclasses.replace(rules, constraints=())


def _options(order: ResolutionInputs) -> Iterator[str]:
    """Keep the options of the requirement files, but those that name other files."""
    return (f"{name} {value}".rstrip() for name, value in order.asked.options)


def solved(text: str) -> Solved:
    """Read uv's annotated pins."""
    versions: dict[NormalizedName, Version] = {}
    via: dict[NormalizedName, tuple[NormalizedName, ...]] = {}
    for line in text.splitlines():
        found = _PIN.match(line)
        if found is None:
            continue
        name = canonicalize_name(found[1])
        versions[name] = Version((found[2] or found[3]).replace("%2B", "+"))
        dependents = [one for one in re.split(r",\s*", found[4] or "") if one and not one.startswith("-")]
        if dependents:
            via[name] = tuple(sorted(map(canonicalize_name, dependents)))
    return Solved(versions=versions, via=via)


def pins(order: ResolutionInputs, *, config: str = "", timeout: float | None = None) -> str:
    """Ask uv for the versions alone: no hashes, no checks, no lock.

    Args:
        order: as for `locks._resolve.resolve`.
        config: TOML that is added to uv's configuration.
        timeout: seconds; None waits for ever.

    Returns:
        `name==version  # via asker, …` lines.

    Raises:
        UnsatisfiableError: no set of packages satisfies it.
        NetworkError: an index does not answer.
        CommandFailedError: uv failed otherwise, or not in time.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-lock-") as name:
        folder = Path(name)
        asked = (
            *_resolver_input.write(order, folder),
            "--annotation-style",
            "line",
            "--no-header",
            "-q",
            "-o",
            "pins.txt",
        )
        # A named interpreter: to look for one takes uv longer than to resolve.
        asked = ("--python", sys.executable, *asked)
        with (folder / "uv.toml").open("a", encoding="utf-8") as file:
            file.write(config)
        uv.run("pip", "compile", *asked, cwd=folder, installing=False, timeout=timeout)
        return (folder / "pins.txt").read_text(encoding="utf-8")


def anywhere(name: NormalizedName, above: Version, *, as_of: str, config: str) -> Version | None:
    """Find the newest version above one that has a wheel for any machine; None where there is none."""
    with tempfile.TemporaryDirectory(prefix="patchlock-index-") as folder:
        place = Path(folder)
        (place / "wanted.txt").write_text(f"{name}>{above.public}\n", encoding="utf-8")
        bound = toml_text.render({"exclude-newer": as_of}) if as_of else ""
        (place / "uv.toml").write_text(bound + config, encoding="utf-8")
        asked = (
            *("pip", "compile", "wanted.txt", "--no-deps", "--only-binary", ":all:", "--universal"),
            *(
                "--config-file",
                "uv.toml",
                "--python-version",
                _NEWEST_PYTHON,
                "--python",
                sys.executable,
                "--no-header",
                "-q",
                "-o",
                "pins.txt",
            ),
        )
        try:
            uv.run(*asked, cwd=place, installing=False, timeout=_SLOW)
        except (UnsatisfiableError, CommandFailedError, NetworkError):
            return None
        return solved((place / "pins.txt").read_text(encoding="utf-8")).versions.get(name)


def _short_memory() -> str:
    """Let uv believe its cache for ten minutes, whatever the index says, so that many questions are one download.

    PyPI allows the same ten minutes; some mirrors allow none, and then each question costs as much as the first. A
    default index that the machine names in its environment is left as it is: uv prefers it to this configuration.
    Source: https://docs.astral.sh/uv/concepts/indexes/#customizing-cache-control-headers
    """
    if os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"):
        return ""
    address = uv.default_index()
    if not address.startswith(("http://", "https://")):
        return ""
    control = {"api": "max-age=600", "files": "max-age=365000000, immutable"}
    index = {"name": "default", "url": address, "default": True, "cache-control": control}
    return f"\n{toml_text.render({'index': [index]})}"
