"""Judge whether a machine is ready for an install, from facts about it, and name everything that it lacks at once.

Asks nothing and writes nothing; `machine` and `sightings` gather the facts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.version import Version

from patchlock.core import command_lines
from patchlock.model import package_managers
from patchlock.model.conditions import Condition
from patchlock.model.hosts import Device, Host
from patchlock.model.needs import Finding, Need, Resource
from patchlock.model.package_managers import System, Way

LEAST_GIT = Version("2.29")
"""The first with `fetch --no-write-fetch-head`; `init -b` is of 2.28.

Source: git's RelNotes/2.29.0 and RelNotes/2.28.0. An install, an update with edits kept, and an uninstall were run with
2.29.0, and 2.28.0 fails at the first fetch."""
_GIT_OF_OTHERS = Version("2.38")
"""The first that believes `-c safe.directory=*`, which we give it, and not only the user's own configuration files.

Source: git's setup.c, `git_protected_config`, which v2.38.0 brought."""
GIT = Resource(
    name="git",
    kind="program",
    title="git",
    source="https://git-scm.com/downloads",
    find={"any": ("git",)},
    writable=False,
    arguments=("--version",),
    pattern=r"git version (\d+(?:\.\d+)+)",
    packages={**dict.fromkeys(package_managers.MANAGERS, ("git",)), "winget": ("Git.Git",), "emerge": ("dev-vcs/git",)},
    commands={"macos": "xcode-select --install"},
)


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DetectedResource:
    """What was seen of a resource on this machine."""

    where: str
    """Path, or what a variable holds; "" where it was not found."""
    version: str = ""
    """As it says itself; "" where nobody asked or it does not say."""
    trouble: str = ""
    """Why it cannot be used although it is there, a clause."""
    group: str = ""
    """Of a file that this user may not open: the group that may."""
    is_unknown: bool = False
    """Whether nobody could look."""


NOTHING = DetectedResource(where="")
UNKNOWN = DetectedResource(where="", is_unknown=True)


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """The Python that the environment will be made from."""

    path: str
    maker: str = ""
    """`conda`, `store` (Microsoft's), or "" where it makes no difference."""


@dataclass(frozen=True, kw_only=True)
class PythonDownload:
    """There is none of that version here, and uv will fetch one."""

    version: str
    host: str
    """Where from."""
    folder: str
    """Where it will lie."""


@dataclass(frozen=True, kw_only=True)
class NoPython:
    """There is none of that version here, and none may or can be fetched."""

    why: str
    """A clause."""
    command: str
    """What provides one."""
    unfit: tuple[str, ...] = ()
    """Interpreters that are here and cannot serve, each with its reason."""


Python = Interpreter | PythonDownload | NoPython


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder that an install writes to."""

    path: str
    variable: str
    """Which variable chooses another."""
    drive: str = ""
    """What kind of drive it lies on where that matters: `network`, `OneDrive`, `Windows` (seen from WSL); else ""."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that is known about a machine before an install touches it."""

    system: System
    user: str
    git: DetectedResource
    python: Python
    folders: tuple[Folder, ...]
    """That of installations first."""
    source_of_another: str = ""
    """Folder of the installation's clone, where that belongs to another user; else ""."""
    has_long_paths: bool
    """Whether paths may have more than 259 characters."""
    longest_path: int
    """Characters of the longest path that the install would write."""
    seen: Mapping[str, DetectedResource]
    """Name of a resource → what was seen of it."""


# --- findings ---------------------------------------------------------------------------------------------------------


def judge(
    facts: Facts, needs: Iterable[Need], resources: Mapping[str, Resource], *, python: Version
) -> tuple[Finding, ...]:
    """Name all that a machine lacks, what stops the install first.

    Args:
        facts: about the machine.
        needs: of the app and of the profile, each name once.
        resources: by name, one for each need.
        python: that the profile asks for.
    """
    found = [*_git(facts), *_python(facts, python), *_paths(facts)]
    for need in needs:
        found += _need(need, resources[need.name], facts)
    return tuple(sorted(found, key=lambda finding: not finding.stops))


def install_commands(findings: Iterable[Finding], system: System) -> str:
    """Write in one line what installs everything that is missing, with one command for all packages."""
    ways = (f.way for f in findings if f.way is not None)
    return package_managers.joined(package_managers.commands(ways, system), system)


def _git(facts: Facts) -> Iterator[Finding]:
    git, system = facts.git, facts.system
    way = package_managers.way(system, GIT.packages, GIT.commands)
    remedy = _install(way, GIT, system)
    if git.is_unknown:
        what = f"git {LEAST_GIT} or later, if it is not installed"
        yield Finding(name="git", what=what, remedy=remedy, stops=False, way=way, is_sure=False)
        return
    if not git.where:
        yield Finding(name="git", what="git is not installed", remedy=remedy, stops=True, way=way)
        return
    if git.trouble:  # on macOS, /usr/bin/git is a stand-in until Apple's developer tools are there
        yield Finding(name="git", what=f"git does not work ({git.where}): {git.trouble}", remedy=remedy, stops=True)
        return
    version = parsed(git.version)
    if version is None:
        what = f'git does not say its version ({git.where}): "{git.version}"'
        yield Finding(name="git", what=what, remedy="make sure that the git that is first on PATH is git", stops=True)
    elif version < LEAST_GIT:
        what = f"git {version} is too old ({git.where}): {LEAST_GIT} is the oldest that works"
        yield Finding(name="git", what=what, remedy=_newer(way, GIT, system), stops=True, way=way)
    elif version < _GIT_OF_OTHERS and facts.source_of_another:
        yield Finding(
            name="git",
            what=f"the installation belongs to another user, and git {version} works there only if you say so",
            remedy=f"run `git config --global --add safe.directory {command_lines.quoted(facts.source_of_another)}`, "
            f"or take git {_GIT_OF_OTHERS} or later",
            stops=True,
        )


def _python(facts: Facts, wanted: Version) -> Iterator[Finding]:
    match facts.python:
        case NoPython(why=why, command=command, unfit=unfit):
            here = f"; here is {', '.join(unfit)}" if unfit else ""
            what = f"Python {wanted} is not installed, and {why}{here}"
            yield Finding(name="python", what=what, remedy=f"run `{command}`", stops=True)
        case Interpreter(path=path, maker="conda"):
            yield Finding(
                name="python",
                what=f"Python {wanted} is conda's ({path}): compiled packages may meet its libraries first",
                remedy="if one cannot be imported, leave that environment with `conda deactivate` and run this again "
                "with --reinstall",
                stops=False,
            )
        case _:
            return


def _paths(facts: Facts) -> Iterator[Finding]:
    if facts.longest_path >= _MAX_PATH and not facts.has_long_paths:
        first = facts.folders[0]
        yield Finding(
            name="paths",
            what=f"a path would have {facts.longest_path} characters below {first.path}, and Windows allows "
            f"{_MAX_PATH - 1} unless long paths are switched on",
            remedy=f"choose a shorter folder with {first.variable}, or run this in PowerShell as administrator: "
            "`New-ItemProperty -Path HKLM:\\SYSTEM\\CurrentControlSet\\Control\\FileSystem -Name LongPathsEnabled "
            "-Value 1 -PropertyType DWORD -Force`",
            stops=True,
            source=_LONG_PATHS,
        )
    for folder in facts.folders:
        if folder.drive:
            yield Finding(
                name="paths",
                what=f"{folder.path} is on a {folder.drive} drive: {_DRIVES[folder.drive]}",
                remedy=f"if that hurts, choose another folder with {folder.variable}",
                stops=False,
            )


_MAX_PATH = 260
"""Characters, the one that ends it included."""
_LONG_PATHS = "https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation"
_DRIVES = {
    "network": "an install there is slow, and two at once may not see each other",
    "OneDrive": "every file of the environment will be uploaded, and may be locked meanwhile",
    "Windows": "from WSL an install there is many times slower",
}


def _need(need: Need, resource: Resource, facts: Facts) -> Iterator[Finding]:
    if resource.kind == "rule":
        yield from _rule(need, resource, facts)
        return
    if not resource.sought(facts.system.os):
        return
    seen = facts.seen.get(need.name, NOTHING)
    way = package_managers.way(facts.system, resource.packages, resource.commands)
    what, remedy = "", _install(way, resource, facts.system)
    if seen.is_unknown:
        told = f"{resource.title}, if it is not installed"
        yield dataclasses.replace(_finding(need, resource, told, remedy, way), stops=False, is_sure=False)
    elif not seen.where:
        absent = {"variable": "is not set", "file": "is missing"}.get(resource.kind, "is not installed")
        what = f"{resource.title} {absent}"
    elif seen.group and facts.user:
        what, way = f"{resource.title} is there, but {seen.trouble} ({seen.where})", None
        remedy = f"run `sudo usermod -aG {seen.group} {facts.user}`, then log in again"
    elif seen.trouble:
        what, way = f"{resource.title} is there, but {seen.trouble} ({seen.where})", None
    elif str(need.versions):
        version = parsed(seen.version)
        if version is None:  # it may well be new enough
            told = f"{resource.title} does not say its version ({seen.where}), and {need.versions} is needed"
            yield dataclasses.replace(_finding(need, resource, told, f"see {resource.source}", None), stops=False)
        elif not need.versions.contains(version, prereleases=True):
            what = f"{resource.title} is {version} ({seen.where}), and {need.versions} is needed"
            remedy = _newer(way, resource, facts.system)
    if what:
        yield _finding(need, resource, what, remedy, way)


def _rule(need: Need, resource: Resource, facts: Facts) -> Iterator[Finding]:
    for rule in resource.sought(facts.system.os):
        match rule:
            case "ascii-paths":
                for folder in facts.folders:
                    if not folder.path.isascii():
                        what = f"{folder.path} has letters other than those of English"
                        remedy = f"choose another folder with {folder.variable}, such as C:\\ai"
                        yield _finding(need, resource, what, remedy, None)
            case "no-store-python":
                if isinstance(facts.python, Interpreter) and facts.python.maker == "store":
                    what = f"Python is that of the Microsoft Store ({facts.python.path})"
                    yield _finding(
                        need,
                        resource,
                        what,
                        "uninstall it in Windows' settings, under Apps, or take the one of python.org",
                        None,
                    )
            case _:  # a virus scanner cannot be asked without rights that we do not want
                path = facts.folders[0].path
                written = f'"{path}"' if path.startswith("$env:") else f"""'{path.replace("'", "''")}'"""
                command = (
                    f"before the install, in PowerShell as administrator: `Add-MpPreference -ExclusionPath {written}`. "
                    f"After you have uninstalled the app, undo it: `Remove-MpPreference -ExclusionPath {written}`"
                )
                yield dataclasses.replace(_finding(need, resource, resource.title, command, None), stops=False)


def _finding(need: Need, resource: Resource, what: str, remedy: str, way: Way | None) -> Finding:
    return Finding(
        name=need.name,
        what=what,
        remedy=remedy,
        stops=need.required,
        way=way,
        why=need.why,
        source=need.source,
        kind=resource.kind,
        restart=resource.restart,
    )


def versions(
    conditions: Iterable[Condition],
    host: Host,
    device: Device | None,
    resources: Mapping[str, Resource],
    system: System,
) -> Iterator[Finding]:
    """Name drivers and systems of a wrong version, which stops an install, and those of which nobody knows the version.

    Args:
        conditions: of the fit by which the profile was chosen.
        host: the machine.
        device: which the profile is for.
        resources: by the names of conditions.
        system: with what things are installed.
    """
    for condition in conditions:
        resource = resources[condition.name]
        if not resource.sought(host.os) or (condition.is_met(host, device) and condition.is_known(host, device)):
            continue
        reason = condition.reason(host, device)
        elsewhere = "in Windows" if host.is_wsl else "on the machine that runs the container" if host.container else ""
        is_too_new = condition.is_too_new(host, device)
        leave = elsewhere or is_too_new
        way = None if leave else package_managers.way(system, resource.packages, resource.commands)
        remedy = _OLDER.format(condition.source) if is_too_new else _newer(way, resource, system)
        yield Finding(
            name=condition.name,
            what=reason or f"{resource.title}: {condition.words} is needed, and its version was not seen",
            remedy=f"{elsewhere}, {remedy}" if elsewhere else remedy,
            stops=bool(reason),
            way=way,
            source=condition.source,
            kind="version",
            is_sure=bool(reason),
            restart=resource.restart,
        )


_ORDER = ("version", "variable", "trouble", "library", "file", "program", "rule")
"""Kinds of findings, as a person sees to them: what needs a restart first, what belongs to the app last."""


def steps(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Write what a person has to do by hand, in order: system, kernel, driver, a restart, SDKs, libraries, the rest."""
    ordered = sorted(findings, key=lambda one: (_ORDER.index(one.kind), one.name not in {"windows", "macos"}, one.name))
    told = [(str(one), one.restart) for one in ordered]
    last = max((number for number, (_, restart) in enumerate(told, 1) if restart), default=0)
    return (
        *(text for text, _ in told[:last]),
        *(["restart the machine"] if last else []),
        *(t for t, _ in told[last:]),
        *(
            ["open a new PowerShell window for what follows"]
            if any(f.way and f.way.needs_new_window for f in ordered)
            else []
        ),
    )


def _install(way: Way | None, resource: Resource, system: System) -> str:
    if way is None:
        return f"see {resource.source}"
    where = " in PowerShell as administrator" if resource.administrator and system.os == "windows" else ""
    return f"install it{where}: `{package_managers.joined(package_managers.commands([way], system), system)}`"


_OLDER = "take an older one: ask `patchlock doctor` for the commands, or see {}"


def _newer(way: Way | None, resource: Resource, system: System) -> str:
    if way is None:
        return f"see {resource.source}"
    return f"{package_managers.joined(package_managers.commands([way], system), system)}, or see {resource.source}"


def parsed(text: str) -> Version | None:
    """Read the numbers that a version begins with; None where there are none."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    try:
        return Version(found[0]) if found else None
    except ValueError:
        return None
