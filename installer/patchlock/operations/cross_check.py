"""Ask others about a lock: pip-tools resolves the same question, pip, uv and pip-sync read the answer; changes nothing.

pip knows markers and tags of the machine it runs on only, so that it is asked about locks for this machine and Python.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.core import process, uv
from patchlock.environments import venv
from patchlock.locks import wheel_choice
from patchlock.locks.resolution_inputs import ResolutionInputs
from patchlock.model import toml_text
from patchlock.model.errors import CommandFailedError, HashMismatchError, ProgramMissingError, UnsatisfiableError
from patchlock.model.fits import Platform
from patchlock.model.hosts import Host
from patchlock.model.lockfile import Lock, LockedPackage
from patchlock.model.platforms import platform_of
from patchlock.model.profile import Profile
from patchlock.patches import resolver_files

_OF_THE_MACHINE = ("PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT", "PIP_TIMEOUT", "PIP_RETRIES")
"""pip's settings that say how an index is reached; all others could change the answer."""


@dataclass(frozen=True, kw_only=True)
class ResolvedDistribution:
    """A distribution as somebody else understands a lock or a question."""

    version: Version
    sha256: str = ""
    """Of the file that he would take; "" where he does not say."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """One distribution on which two do not agree."""

    name: NormalizedName
    locked: str
    """Version and, if that is the point, the first digits of its sha256; "" where the lock does not have it."""
    other: str


Resolution = Mapping[NormalizedName, ResolvedDistribution]


def reason_not_native(platform: Platform, profile: Profile, host: Host) -> str:
    """Say why pip cannot be asked here about a lock; "" where it can."""
    here = platform_of(host)
    if here != platform:
        return f"pip answers for the machine it runs on, {here.name if here else f'{host.os} on {host.machine}'}"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    if python != str(profile.python):
        return f"pip answers for the Python it runs on, {python}; run patchlock with {profile.python}"
    return ""


def disagreements(lock: Lock, answer: Resolution) -> tuple[Disagreement, ...]:
    """Compare a lock with what somebody else says, by name."""
    locked = {package.name: package for package in lock.packages}
    found = [_disagreement(name, locked.get(name), answer.get(name)) for name in sorted(locked.keys() | answer.keys())]
    return tuple(one for one in found if one is not None)


def _disagreement(
    name: NormalizedName, ours: LockedPackage | None, other: ResolvedDistribution | None
) -> Disagreement | None:
    if ours is None or other is None or ours.version != other.version:
        return Disagreement(
            name=name, locked=str(ours.version) if ours else "", other=str(other.version) if other else ""
        )
    if other.sha256 and other.sha256 != ours.sha256:
        return Disagreement(
            name=name,
            locked=f"{ours.version} sha256 {ours.sha256[:12]}…",
            other=f"{other.version} sha256 {other.sha256[:12]}…",
        )
    return None


def require_tools() -> None:
    """Make sure that pip-tools is there.

    Raises:
        ProgramMissingError: it is not.
    """
    if importlib.util.find_spec("piptools") is None or importlib.util.find_spec("pip") is None:
        raise ProgramMissingError(
            "pip-tools is not installed with patchlock",
            remedy=f"install it: `{uv.install_command('pip', 'pip-tools')}`",
        )


# --- the same question, asked of pip's resolver -----------------------------------------------------------------------


def reason_no_counterpart(order: ResolutionInputs) -> str:
    """Say why pip's resolver cannot be asked the same; "" where it can."""
    rules = [f"[[override]] {rule.requirement.name}" for rule in order.rules.overrides]
    rules += [f"[[exclude]] {rule.name}" for rule in order.rules.exclusions]
    return f"pip has nothing like {', '.join(rules)}" if rules else ""


def resolve(order: ResolutionInputs, lock: Lock) -> Resolution:
    """Resolve with pip-compile what a lock was resolved from.

    pip reads upload times from some indexes only, so the cut-off is told to it as bounds: for each distribution the
    newest version that uv sees before it.

    Raises:
        UnsatisfiableError: pip finds no solution; carries its explanation.
        NetworkError: an index does not answer.
    """
    names = {package.name for package in lock.packages}
    while True:
        answer = _compile(order, _bounds(order, names, lock))
        if answer.keys() <= names:
            return answer
        names |= answer.keys()


def _bounds(order: ResolutionInputs, names: Iterable[NormalizedName], lock: Lock) -> dict[NormalizedName, Version]:
    """Say which version of each distribution was the newest, as the lock's cut-off and recorded indexes have it."""
    recorded: dict[NormalizedName, Version] = {}
    for wheel in (wheel for index in order.indexes for wheel in index.wheels):
        if wheel_choice.best_wheel([wheel.filename], order.platform, order.profile):
            recorded[wheel.name] = max(wheel.version, recorded.get(wheel.name, wheel.version))
    asked = sorted(set(names) - recorded.keys())
    newest = _newest(order, asked) if order.as_of and asked else {}
    for package in lock.packages:  # a pre-release that is pinned is newer than what uv takes by itself
        if package.name in newest:
            newest[package.name] = max(package.version, newest[package.name])
    return recorded | newest


def _newest(order: ResolutionInputs, names: list[NormalizedName]) -> dict[NormalizedName, Version]:
    with tempfile.TemporaryDirectory(prefix="patchlock-cross-check-") as name:
        folder = Path(name)
        (folder / "names.txt").write_text("".join(f"{one}\n" for one in names), encoding="utf-8")
        cut_offs: dict[str, object] = {one: order.cut_offs[one] or False for one in names if one in order.cut_offs}
        config = {"exclude-newer": order.as_of, **({"exclude-newer-package": cut_offs} if cut_offs else {})}
        (folder / "uv.toml").write_text(toml_text.render(config), encoding="utf-8")
        sdists = [option for one in order.rules.source_builds if one in names for option in ("--no-binary", one)]
        uv.run(
            *("pip", "compile", "names.txt", "--no-deps", "--config-file", "uv.toml"),
            *("--only-binary", ":all:", *sdists),
            *("--python-version", str(order.profile.python), "--python-platform", order.platform.uv),
            *("--no-header", "--no-annotate", "-q", "-o", "newest.txt"),
            cwd=folder,
            installing=False,
        )
        return {name: one.version for name, one in _pins((folder / "newest.txt").read_text(encoding="utf-8")).items()}


def _pins(text: str) -> dict[NormalizedName, ResolvedDistribution]:
    """Read lines such as `name==version`; others are passed over."""
    found = {}
    for line in text.splitlines():
        name, equals, version = line.partition("#")[0].partition("==")
        if equals:
            found[canonicalize_name(name.strip())] = ResolvedDistribution(
                version=Version(version.partition(" ")[0].strip(" \\"))
            )
    return found


def _compile(order: ResolutionInputs, bounds: Mapping[NormalizedName, Version]) -> Resolution:
    with tempfile.TemporaryDirectory(prefix="patchlock-cross-check-") as name:
        folder = Path(name)
        wanted, bounding = resolver_files.write_out(order.asked)
        for path, data in (wanted | bounding).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        lines = [str(rule.requirement) for rule in order.rules.constraints]
        # An ordered comparison may not name a local version, and does not look at one.
        lines += [f"{name}<={version.public}" for name, version in sorted(bounds.items())]
        (folder / "constraints.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        wheels = [wheel for index in order.indexes for wheel in index.wheels]
        links = "".join(f'<a href="{html.escape(w.url)}#sha256={w.sha256}">{w.filename}</a><br>\n' for w in wheels)
        (folder / "recorded.html").write_text(f"<!DOCTYPE html>\n{links}", encoding="utf-8")
        builds = " ".join(f"--no-binary {name}" for name in order.rules.source_builds)
        argv = (
            *(sys.executable, "-m", "piptools", "compile", "--no-config", "--no-header", "--no-annotate"),
            *("--strip-extras", "--allow-unsafe", "--no-emit-options", "--newline", "lf"),
            *("--pip-args", f"--only-binary :all: {builds}".strip()),
            *(("--find-links", str(folder / "recorded.html")) if wheels else ()),
            *("--constraint", "constraints.txt", "-o", "answer.txt"),
            *(option for path in bounding for option in ("--constraint", str(path))),
            *map(str, wanted),
        )
        done = process.run(*argv, cwd=folder, env=_environment(), allowed=(0, 1, 2))
        if done.returncode != 0:
            raise _unsolved(done.stderr) or process.failure(argv, done)
        text = (folder / "answer.txt").read_text(encoding="utf-8")
    return _pins(text) | _addresses(text)


def _addresses(text: str) -> dict[NormalizedName, ResolvedDistribution]:
    from packaging.utils import parse_wheel_filename

    wanted = [Requirement(line) for line in text.splitlines() if " @ " in line]
    return {
        canonicalize_name(one.name): ResolvedDistribution(version=parse_wheel_filename(_filename(one.url or ""))[1])
        for one in wanted
    }


def _filename(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path.rpartition("/")[2])


def _unsolved(said: str) -> UnsatisfiableError | None:
    """Find pip's explanation among its tracebacks; None where it is about something else."""
    if "ResolutionImpossible" not in said and "No matching distribution" not in said:
        return None
    lines = [line.strip() for line in said.splitlines()]
    explained = [line for line in lines if line.startswith("ERROR: ")] or [lines[-1].partition(": ")[2]]
    return UnsatisfiableError("pip finds no set of packages that satisfies the requirements", evidence=explained)


def _environment() -> dict[str, str]:
    """Give pip the index, the certificates and the proxy of this machine, and none of the user's other settings."""
    env = {
        name: value
        for name, value in process.environment().items()
        if not name.startswith("PIP_") or name in _OF_THE_MACHINE
    }
    index = next(
        (os.environ[name] for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL") if name in os.environ), ""
    )
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    return env | ({"PIP_INDEX_URL": index} if index else {})


# --- other readers of the lock ----------------------------------------------------------------------------------------


def read_by_others(file: Path, *, with_requirements: bool = True) -> Mapping[str, Resolution]:
    """Let pip, uv and pip-sync say what they would install from a lockfile into an empty environment.

    Args:
        file: the lockfile.
        with_requirements: whether pip shall also see that nothing of what a distribution requires is missing.

    Raises:
        HashMismatchError: a file is not the one that the lock names.
        UnsatisfiableError: something that is required is not in the lock.
        NetworkError: an index does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-cross-check-") as name:
        folder = Path(name)
        uv.run("venv", "-q", "--no-project", "--python", sys.executable, "empty", cwd=folder, installing=False)
        python = str(venv.interpreter(folder / "empty"))
        return {
            "pip": _by_pip(file, python, folder, with_requirements),
            "uv": _by_uv(file, python, folder),
            "pip-sync": _by_pip_sync(file, python, folder),
        }


def _by_pip(file: Path, python: str, folder: Path, with_requirements: bool) -> Resolution:
    try:
        process.run(
            *(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--dry-run", "--ignore-installed"),
            *("--require-hashes", *(() if with_requirements else ("--no-deps",)), "--report", "report.json"),
            *("-r", str(file)),
            cwd=folder,
            env=_environment(),
        )
    except CommandFailedError as error:
        words = "\n".join(error.evidence)
        if "THESE PACKAGES DO NOT MATCH THE HASHES" in words:
            raise HashMismatchError("pip gets other files than the lock names", evidence=error.evidence) from error
        if "Hashes are required" in words or "must have their versions pinned" in words:
            raise UnsatisfiableError("pip needs more than the lock names", evidence=error.evidence) from error
        raise _unsolved(words) or error from error
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return {
        canonicalize_name(one["metadata"]["name"]): ResolvedDistribution(
            version=Version(one["metadata"]["version"]),
            sha256=one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in report["install"]
    }


def _by_uv(file: Path, python: str, folder: Path) -> Resolution:
    done = uv.run(
        *("pip", "sync", "-q", "--dry-run", "--require-hashes", "--no-config", "--python", python),
        *("--preview-features", "json-output", "--output-format", "json", str(file)),
        cwd=folder,
        installing=True,
    )
    changes = json.loads(done.text)["changes"]
    return {canonicalize_name(one["name"]): ResolvedDistribution(version=Version(one["version"])) for one in changes}


def _by_pip_sync(file: Path, python: str, folder: Path) -> Resolution:
    # It asks the pip of the environment what is installed, and an empty one has none: it is lent ours.
    found = importlib.util.find_spec("pip")
    assert found is not None  # noqa: S101 - see require_tools
    assert found.submodule_search_locations  # noqa: S101
    shutil.copytree(found.submodule_search_locations[0], folder / "lent" / "pip", symlinks=True)
    done = process.run(
        *(
            sys.executable,
            "-m",
            "piptools",
            "sync",
            "--no-config",
            "--dry-run",
            "--python-executable",
            python,
            str(file),
        ),
        cwd=folder,
        env=_environment() | {"PYTHONPATH": str(folder / "lent")},
        allowed=(0, 1),  # 1 where it would change something
    )
    lines = "\n".join(line.strip() for line in done.text.splitlines())
    return _pins(lines) | _addresses(lines)
