"""The judgement before an install: each fact about a machine, and the sentence that a person gets."""

from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchlock.hardware import interpreters, preflight
from patchlock.hardware.preflight import DetectedResource, Facts, Folder, Interpreter, NoPython, PythonDownload
from patchlock.hardware.system import filesystem, in_any
from patchlock.model import needs
from patchlock.model.needs import Finding, Need, Resource
from patchlock.model.package_managers import System
from patchlock.model.platforms import PLATFORMS

DEBIAN = System(os="linux", release={"ID": "debian"})
GIT = DetectedResource(where="/usr/bin/git", version="2.39.5")
FACTS = Facts(
    system=DEBIAN,
    user="ada",
    git=GIT,
    python=Interpreter(path="/usr/bin/python3.11"),
    folders=(Folder(path="/home/ada/ai", variable="PATCHLOCK_HOME"),),
    source_of_another="",
    has_long_paths=True,
    longest_path=0,
    seen={},
)
FFMPEG = Resource(
    name="ffmpeg",
    kind="program",
    title="FFmpeg",
    source="https://ffmpeg.org/download.html",
    find={"any": ("ffmpeg",)},
    writable=False,
    arguments=("-version",),
    pattern="(.*)",
    packages={"apt": ("ffmpeg",)},
    commands={},
)
NEED = Need(
    name="ffmpeg",
    why="it reads songs",
    source="s",
    versions=SpecifierSet(),
    required=True,
    platforms=(),
    profiles=(),
)
WINDOWS = System(os="windows", release={})


def _judge(need: Need | None = None, resource: Resource = FFMPEG, **facts: Any) -> tuple[Finding, ...]:
    wanted = () if need is None else (need,)
    known = dataclasses.replace(FACTS, **facts)
    return preflight.judge(known, wanted, {resource.name: resource}, python=Version("3.11"))


def _need(**changes: Any) -> Need:
    return dataclasses.replace(NEED, **changes)


def test_machine_that_has_everything_is_ready() -> None:
    assert _judge(NEED, seen={"ffmpeg": DetectedResource(where="/usr/bin/ffmpeg")}) == ()


# --- git --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("git", "system", "sentence"),
    [
        pytest.param(
            preflight.NOTHING,
            DEBIAN,
            "git is not installed; install it: `sudo apt-get install git`",
            id="missing",
        ),
        pytest.param(
            preflight.NOTHING,
            WINDOWS,
            "git is not installed; install it: `winget install --exact --id Git.Git`",
            id="missing-on-windows",
        ),
        pytest.param(
            preflight.NOTHING,
            System(os="linux", release={"ID": "tinycore"}),
            "git is not installed; see https://git-scm.com/downloads",
            id="missing-on-an-unknown-system",
        ),
        pytest.param(
            DetectedResource(where="/usr/bin/git", trouble="xcrun: error: invalid active developer path"),
            System(os="macos", release={}),
            "git does not work (/usr/bin/git): xcrun: error: invalid active developer path; "
            "install it: `xcode-select --install`",
            id="stand-in-of-macos",
        ),
        pytest.param(
            DetectedResource(where="/usr/bin/git", version="2.28.0"),
            DEBIAN,
            "git 2.28.0 is too old (/usr/bin/git): 2.29 is the oldest that works; "
            "sudo apt-get install git, or see https://git-scm.com/downloads",
            id="too-old",
        ),
        pytest.param(
            DetectedResource(where="/opt/git", version=""),
            DEBIAN,
            'git does not say its version (/opt/git): ""; make sure that the git that is first on PATH is git',
            id="no-git",
        ),
    ],
)
def test_git_that_cannot_serve(git: DetectedResource, system: System, sentence: str) -> None:
    (found,) = _judge(git=git, system=system)
    assert (str(found), found.stops) == (sentence, True)


@pytest.mark.parametrize("version", ["2.29.0", "2.39.5", "2.54"])
def test_git_that_is_new_enough(version: str) -> None:
    assert _judge(git=DetectedResource(where="/usr/bin/git", version=version)) == ()


def test_clone_of_another_user_needs_a_git_that_is_told_so() -> None:
    (found,) = _judge(git=DetectedResource(where="/usr/bin/git", version="2.34.1"), source_of_another="/a b/source")
    assert found.stops
    assert "`git config --global --add safe.directory '/a b/source'`" in found.remedy
    assert _judge(git=DetectedResource(where="/usr/bin/git", version="2.38.0"), source_of_another="/a b/source") == ()


# --- python -----------------------------------------------------------------------------------------------------------


def test_python_that_is_nowhere_says_why_and_what_provides_it() -> None:
    python = NoPython(
        why="its download is switched off", command="uv python install 3.11", unfit=("/p, which is PyPy",)
    )
    (found,) = _judge(python=python)
    assert found.stops
    assert str(found) == (
        "Python 3.11 is not installed, and its download is switched off; here is /p, which is PyPy; "
        "run `uv python install 3.11`"
    )


def test_python_that_will_be_fetched_is_no_trouble() -> None:
    assert _judge(python=PythonDownload(version="3.11.9", host="h", folder="f")) == ()


def test_conda_s_python_is_told_and_used() -> None:
    (found,) = _judge(python=Interpreter(path="/opt/conda/bin/python3.11", maker="conda"))
    assert not found.stops
    assert "Python 3.11 is conda's (/opt/conda/bin/python3.11)" in found.what


@pytest.mark.parametrize(
    ("path", "has_conda_meta", "maker"),
    [
        (PurePosixPath("/usr/bin/python3.11"), False, ""),
        (PurePosixPath("/opt/conda/bin/python3.11"), True, "conda"),
        (PureWindowsPath(r"C:\Users\Ä Ö\AppData\Local\Microsoft\WindowsApps\python3.11.exe"), False, "store"),
        (PureWindowsPath(r"C:\x\PythonSoftwareFoundation.Python.3.11_qbz5n2kfra8p0\python.exe"), False, "store"),
        (PureWindowsPath(r"C:\Python311\python.exe"), False, ""),
    ],
)
def test_maker_of_an_interpreter(path: Any, has_conda_meta: bool, maker: str) -> None:
    assert interpreters.maker_of(path, has_conda_meta=has_conda_meta) == maker


@pytest.mark.parametrize(
    ("platform", "request_"),
    [
        ("linux-x86_64", "cpython-3.11-linux-x86_64-gnu"),
        ("linux-aarch64", "cpython-3.11-linux-aarch64-gnu"),
        ("windows-amd64", "cpython-3.11-windows-x86_64-none"),
        ("macos-arm64", "cpython-3.11-macos-aarch64-none"),
    ],
)
def test_request_names_implementation_processor_and_libc(platform: str, request_: str) -> None:
    assert interpreters.request(Version("3.11"), PLATFORMS[platform]) == request_


ONE = {
    "version": "3.11.7",
    "path": "/p",
    "os": "linux",
    "variant": "default",
    "implementation": "cpython",
    "arch": "x86_64",
    "libc": "gnu",
}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        pytest.param({}, (), id="fits"),
        pytest.param({"implementation": "pypy"}, ("/p, which is PyPy and not CPython",), id="pypy"),
        pytest.param({"arch": "x86"}, ("/p, which is for x86 and not for x86_64",), id="32-bit"),
        pytest.param({"libc": "musl"}, ("/p, which is for musl and not for gnu",), id="musl"),
        pytest.param({"variant": "freethreaded"}, ("/p, which is a freethreaded build",), id="freethreaded"),
        pytest.param({"variant": "debug"}, ("/p, which is a debug build",), id="debug"),
        pytest.param({"version": "3.13.1", "variant": "debug"}, (), id="another-version"),
        pytest.param({"path": None, "implementation": "pypy"}, (), id="not-here"),
    ],
)
def test_interpreter_that_cannot_serve_says_why(changed: dict[str, Any], told: tuple[str, ...]) -> None:
    assert interpreters.unfit([ONE | changed, ONE | changed], "cpython-3.11-linux-x86_64-gnu") == told


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "has_long_paths", "stops"), [(259, False, False), (260, False, True), (260, True, False)]
)
def test_path_that_windows_does_not_take(longest: int, has_long_paths: bool, stops: bool) -> None:
    found = _judge(longest_path=longest, has_long_paths=has_long_paths, system=WINDOWS)
    assert bool(found) == stops
    if found:
        assert "260 characters below /home/ada/ai" in found[0].what
        assert "-Name LongPathsEnabled -Value 1" in found[0].remedy


@pytest.mark.parametrize("drive", ["network", "OneDrive", "Windows"])
def test_slow_drive_is_a_note(drive: str) -> None:
    (found,) = _judge(folders=(Folder(path="/mnt/c/ai", variable="PATCHLOCK_HOME", drive=drive),))
    assert not found.stops
    assert f"/mnt/c/ai is on a {drive} drive" in found.what


def _rule(name: str) -> Resource:
    return dataclasses.replace(FFMPEG, kind="rule", find={"windows": (name,)}, packages={})


def test_folder_with_other_letters_stops_where_the_profile_says_so() -> None:
    folders = (Folder(path=r"C:\Users\Zoë\ai", variable="PATCHLOCK_HOME"),)
    (found,) = _judge(NEED, _rule("ascii-paths"), folders=folders, system=WINDOWS)
    assert found.stops
    assert found.clause == r"C:\Users\Zoë\ai has letters other than those of English: it reads songs"
    assert _judge(NEED, _rule("ascii-paths"), system=WINDOWS) == ()
    assert _judge(NEED, _rule("ascii-paths"), folders=folders) == ()


def test_store_s_python_stops_where_the_profile_says_so() -> None:
    python = Interpreter(path=r"C:\WindowsApps\python3.11.exe", maker="store")
    (found,) = _judge(NEED, _rule("no-store-python"), python=python, system=WINDOWS)
    assert found.stops
    assert "Python is that of the Microsoft Store" in found.what
    assert _judge(NEED, _rule("no-store-python"), system=WINDOWS) == ()


def test_virus_scanner_is_a_note_with_its_command() -> None:
    for path, written in (
        (r"C:\Users\Ada O'Neil", r"'C:\Users\Ada O''Neil'"),
        (r"$env:LOCALAPPDATA\patchlock", r'"$env:LOCALAPPDATA\patchlock"'),
    ):
        folders = (Folder(path=path, variable="PATCHLOCK_HOME"),)
        (found,) = _judge(NEED, _rule("unscanned-folder"), folders=folders, system=WINDOWS)
        assert not found.stops
        assert found.remedy == (
            f"before the install, in PowerShell as administrator: `Add-MpPreference -ExclusionPath {written}`. "
            f"After you have uninstalled the app, undo it: `Remove-MpPreference -ExclusionPath {written}`"
        )


@pytest.mark.parametrize(
    ("path", "kind"), [("/home/x", "ext4"), ("/mnt/c/ai", "9p"), ("/mnt/cd", "ext4"), ("/a b/c", "nfs4")]
)
def test_file_system_is_that_of_the_longest_mount_point(path: str, kind: str, tmp_path: Any) -> None:
    (tmp_path / "mounts").write_text("/dev/sda / ext4 rw 0 0\nC: /mnt/c 9p rw 0 0\ns:/x /a\\040b nfs4 rw 0 0\n\n")
    assert filesystem(PurePosixPath(path), tmp_path / "mounts") == kind


def test_folder_of_the_cloud_is_known_by_its_parents() -> None:
    cloud = [r"C:\Users\ada\OneDrive"]
    assert in_any(PureWindowsPath(r"c:\users\ADA\onedrive\ai"), cloud)
    assert not in_any(PureWindowsPath(r"C:\Users\ada\OneDrive2\ai"), cloud)


# --- needs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("need", "resource", "seen", "sentence"),
    [
        pytest.param(
            {},
            {},
            preflight.NOTHING,
            "FFmpeg is not installed: it reads songs; install it: `sudo apt-get install ffmpeg`",
            id="missing",
        ),
        pytest.param(
            {},
            {"packages": {"dnf": ("ffmpeg",)}},
            preflight.NOTHING,
            "FFmpeg is not installed: it reads songs; see https://ffmpeg.org/download.html",
            id="missing-with-no-command-for-this-system",
        ),
        pytest.param(
            {},
            {"kind": "variable", "title": "HIP_PATH", "packages": {}},
            preflight.NOTHING,
            "HIP_PATH is not set: it reads songs; see https://ffmpeg.org/download.html",
            id="variable",
        ),
        pytest.param(
            {"versions": SpecifierSet(">=5")},
            {},
            DetectedResource(where="/f", version="4.4.2-0ubuntu"),
            "FFmpeg is 4.4.2 (/f), and >=5 is needed: it reads songs; "
            "sudo apt-get install ffmpeg, or see https://ffmpeg.org/download.html",
            id="too-old",
        ),
        pytest.param(
            {},
            {},
            DetectedResource(where="/f", trouble="error while loading shared libraries"),
            "FFmpeg is there, but error while loading shared libraries (/f): it reads songs; "
            "install it: `sudo apt-get install ffmpeg`",
            id="broken",
        ),
        pytest.param(
            {},
            {"kind": "file"},
            DetectedResource(where="/dev/kfd", trouble="you may not open it", group="render"),
            "FFmpeg is there, but you may not open it (/dev/kfd): it reads songs; "
            "run `sudo usermod -aG render ada`, then log in again",
            id="device-of-a-group",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_command(
    need: dict[str, Any], resource: dict[str, Any], seen: DetectedResource, sentence: str
) -> None:
    (found,) = _judge(_need(**need), dataclasses.replace(FFMPEG, **resource), seen={"ffmpeg": seen})
    assert (str(found), found.stops) == (sentence, True)


@pytest.mark.parametrize("version", ["5.0", "5.1.9-0+deb12u1", "8.0"])
def test_version_that_is_new_enough(version: str) -> None:
    seen = {"ffmpeg": DetectedResource(where="/f", version=version)}
    assert _judge(_need(versions=SpecifierSet(">=5")), seen=seen) == ()


def test_version_that_nobody_says_is_a_note() -> None:
    (found,) = _judge(
        _need(versions=SpecifierSet(">=5")), seen={"ffmpeg": DetectedResource(where="/f", version="N-12345")}
    )
    assert not found.stops
    assert found.clause == "FFmpeg does not say its version (/f), and >=5 is needed: it reads songs"


def test_what_only_a_part_asks_for_does_not_stop() -> None:
    (found,) = _judge(_need(required=False))
    assert not found.stops


def test_system_that_has_no_such_thing_is_not_asked_for_it() -> None:
    assert _judge(NEED, dataclasses.replace(FFMPEG, find={"windows": ("x.dll",)})) == ()


def test_everything_is_told_at_once_and_what_stops_comes_first() -> None:
    espeak = dataclasses.replace(FFMPEG, name="espeak-ng", title="eSpeak NG", packages={"apt": ("espeak-ng",)})
    facts = dataclasses.replace(FACTS, git=preflight.NOTHING, python=NoPython(why="w", command="c"))
    wanted = (_need(required=False), _need(name="espeak-ng"))
    found = preflight.judge(facts, wanted, {"ffmpeg": FFMPEG, "espeak-ng": espeak}, python=Version("3.11"))
    assert [(one.name, one.stops) for one in found] == [
        ("git", True),
        ("python", True),
        ("espeak-ng", True),
        ("ffmpeg", False),
    ]
    assert preflight.install_commands(found, DEBIAN) == "sudo apt-get install git espeak-ng ffmpeg"


def test_needs_are_those_of_the_pair_and_bounds_add_up() -> None:
    listed = [
        _need(name="a", required=False, versions=SpecifierSet("<9")),
        _need(name="b", profiles=("gpu",)),
        _need(name="c", platforms=("windows-amd64",)),
        _need(name="a", why="really", versions=SpecifierSet(">=2")),
    ]
    (found,) = needs.needs_for(listed, "cpu", "linux-x86_64")
    assert (found.name, found.why, found.required, found.versions) == ("a", "really", True, SpecifierSet(">=2,<9"))
    assert {need.name for need in needs.needs_for(listed, "gpu", "windows-amd64")} == {"a", "b", "c"}
