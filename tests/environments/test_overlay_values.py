"""Overlays as a profile declares them, and what follows for a process; pure but for the files of a tiny environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchlock.catalogue._overlays import overlays_of
from patchlock.catalogue.table_reader import Report, Table
from patchlock.environments import preloads
from patchlock.environments._children import preload
from patchlock.model import overlays
from patchlock.model.errors import OverlayError
from patchlock.model.overlays import Overlay, Sdk

TABLE = """\
[[overlay]]
id = "zluda"
why = "w"
source = "s"
license = "MIT"
platforms = ["windows-amd64"]
before = ["torch", "ctranslate2"]
url = "https://example.org/zluda.zip"
trust-on-first-use = "its vendor publishes none"
unset = ["ROCM_HOME"]
drop-from-path = ["rocm"]
environment = { LIB = "{packages}/torch/lib", OURS = "{folder}", BIN = "{sdk}/bin" }

[overlay.sdk]
name = "the SDK"
variable = "HIP_PATH"
folders = ["/opt/sdk/"]
has = ["bin/rocblas.dll"]
install = "install it"

[[overlay.library]]
member = "nvcuda.dll"
[[overlay.library]]
sdk = "bin/rocblas.dll"
[[overlay.library]]
member = "a/cublas.dll"
name = "cublas64_11.dll"
needs = ["bin/MIOpen.dll"]
[[overlay.library]]
member = "helper.dll"
preload = false
"""


def read(text: str) -> tuple[tuple[Overlay, ...], list[str]]:
    import tomllib

    report = Report(file="p.toml", text=text)
    root = Table(tomllib.loads(text), report)
    found = overlays_of(root, ("windows-amd64", "linux-x86_64"))
    root.finish()
    return found, [str(problem) for problem in report.problems]


def one() -> Overlay:
    (overlay,), problems = read(TABLE)
    assert problems == []
    return overlay


def test_table_is_read() -> None:
    overlay = one()
    assert [(lib.name, lib.member, lib.needs, lib.preload) for lib in overlay.libraries] == [
        ("nvcuda.dll", "nvcuda.dll", (), True),
        ("bin/rocblas.dll", "", (), True),
        ("cublas64_11.dll", "a/cublas.dll", ("bin/MIOpen.dll",), True),
        ("helper.dll", "helper.dll", (), False),
    ]
    assert overlays.archive_members(overlay) == {
        "nvcuda.dll": ("nvcuda.dll",),
        "a/cublas.dll": ("cublas64_11.dll",),
        "helper.dll": ("helper.dll",),
    }
    assert (overlay.filename, overlay.sha256, overlay.unpublished) == ("zluda.zip", "", "its vendor publishes none")
    assert overlays.for_platform([overlay], "linux-x86_64") == ()


MISTAKES = [
    pytest.param('id = "zluda"', 'id = "Z!"', 'p.toml:2: overlay[0].id: "Z!" must be lower-case words joined by "-"', id="id"),
    pytest.param("https://example", "http://example", 'p.toml:8: overlay[0].url: "http://example.org/zluda.zip" must begin with https://', id="http"),
    pytest.param("zluda.zip", "zluda.rar", 'p.toml:8: overlay[0].url: "https://example.org/zluda.rar" must end with the name of a .zip, .tar.gz or .tgz file', id="format"),
    pytest.param('trust-on-first-use = "its vendor publishes none"', "", 'p.toml:1: overlay[0].sha256: an archive has either a sha256 or, where its vendor publishes none, trust-on-first-use; write sha256 = "…", or trust-on-first-use = "why there is none"', id="no-hash"),
    pytest.param('"its vendor publishes none"', '""', "p.toml:9: overlay[0].trust-on-first-use: it is empty", id="no-reason"),
    pytest.param('["windows-amd64"]', '["windows-arm"]', 'p.toml:6: overlay[0].platforms: the profile has no platform "windows-arm"; did you mean "windows-amd64"?', id="platform"),
    pytest.param('["torch", "ctranslate2"]', '["torch.cuda"]', 'p.toml:7: overlay[0].before: "torch.cuda" is not the name of a top-level module', id="before"),
    pytest.param('["torch", "ctranslate2"]', "[]", "p.toml:7: overlay[0].before: it is empty", id="before-nothing"),
    pytest.param("{folder}", "{HOME}", "p.toml:12: overlay[0].environment.OURS: there is no place {HOME}; known: {folder}, {packages}, {sdk}", id="place"),
    pytest.param('"a/cublas.dll"', '"../cublas.dll"', 'p.toml:26: overlay[0].library[2].member: "../cublas.dll" must be a POSIX path of a file: leaves the folder', id="member"),
    pytest.param('"cublas64_11.dll"', '"lib/x.dll"', 'p.toml:27: overlay[0].library[2].name: "lib/x.dll" must be the name of a file, without folders', id="name"),
    pytest.param('"cublas64_11.dll"', '"NVCUDA.dll"', "p.toml:1: overlay[0].library: 'nvcuda.dll' and 'NVCUDA.dll' are one file", id="clash"),
    pytest.param('sdk = "bin/rocblas.dll"', 'sdk = "bin/rocblas.dll"\npreload = false', "p.toml:25: overlay[0].library[1].preload: a file of the sdk that is not loaded has no place here", id="sdk-not-loaded"),
    pytest.param('has = ["bin/rocblas.dll"]', "has = []", "p.toml:18: overlay[0].sdk.has: it is empty; name a file by which the sdk is known", id="sdk-unknown"),
    pytest.param("preload = false", 'preload = false\nsdk = "x"', "p.toml:29: overlay[0].library[3]: a library has either a member of the archive or a file of the sdk", id="both"),
    pytest.param("unset =", "unsets =", 'p.toml:10: overlay[0].unsets: the key "unsets" is unknown; did you mean "unset"?', id="unknown-key"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_mistake_is_told_with_its_line(old: str, new: str, said: str) -> None:
    assert old in TABLE
    problems = read(TABLE.replace(old, new))[1]
    assert any(problem.startswith(said) for problem in problems), problems


def test_two_overlays_of_one_name() -> None:
    assert any("is taken by another overlay" in problem for problem in read(TABLE + TABLE)[1])


# --- the machine ------------------------------------------------------------------------------------------------------

SDK = Sdk(name="the SDK", variable="HIP_PATH", folders=("/old/", "/new"), has=("bin/a", "bin/b"), install="install it")
FINDS = [
    pytest.param({"HIP_PATH": "C:\\sdk\\"}, {"C:\\sdk/bin/a", "C:\\sdk/bin/b"}, "C:\\sdk", (), id="variable"),
    pytest.param({}, {"/new/bin/a", "/new/bin/b"}, "/new", ("HIP_PATH is not set", "/old/, which has no bin/a, bin/b"), id="usual"),
    pytest.param({"HIP_PATH": "/x"}, {"/x/bin/a", "/old/bin/a", "/old/bin/b"}, "/old", ("HIP_PATH is /x, which has no bin/b",), id="wrong-version"),
    pytest.param({"HIP_PATH": ""}, set(), "", ("HIP_PATH is not set", "/old/, which has no bin/a, bin/b", "/new, which has no bin/a, bin/b"), id="nowhere"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "files", "folder", "looked"), FINDS)
def test_sdk_is_looked_for(variables: dict[str, str], files: set[str], folder: str, looked: tuple[str, ...]) -> None:
    found = overlays.find_sdk(SDK, variables, files.__contains__)
    assert (found.folder, found.looked) == (folder, looked)


def test_path_without_some_entries() -> None:
    path = r"C:\Windows;C:\AMD\ROCm\6.2\bin;;D:\rocm;C:\py"
    assert overlays.path_without(path, ["rocm"], ";") == r"C:\Windows;;C:\py"
    assert overlays.path_without(path, [], ";") == path


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make what an overlay needs of an environment, with one library in it."""
    (tmp_path / "env" / "lib" / "python3" / "site-packages").mkdir(parents=True)
    (tmp_path / "env" / "Lib" / "site-packages").mkdir(parents=True, exist_ok=True)
    folder = preloads.folder_of(tmp_path / "env", "zluda")
    folder.mkdir(parents=True)
    (folder / "cublas64_11.dll").write_bytes(b"ours")
    preloads.write(tmp_path / "env", {"zluda": (one(), "a" * 64)})
    return tmp_path / "env"


def test_variables_of_a_process(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "sdk" / "bin").mkdir(parents=True)
    (tmp_path / "sdk" / "bin" / "rocblas.dll").touch()
    path = os.pathsep.join(["/bin", "/opt/ROCm/bin", "/usr/bin"])
    given = {"HIP_PATH": f"{tmp_path / 'sdk'}/", "ROCM_HOME": "x", "PATH": path, "OURS": "the user's", "A": "b"}
    assert preloads.variables(environment, given) == {
        "A": "b",
        "PATH": os.pathsep.join(["/bin", "/usr/bin"]),
        "HIP_PATH": str(tmp_path / "sdk"),
        "BIN": f"{tmp_path / 'sdk'}/bin",
        "LIB": f"{next(environment.glob('[Ll]ib/python3/site-packages'))}/torch/lib",
        "OURS": str(environment / "overlays" / "zluda"),
        "PATCHLOCK_PRELOAD": "ctranslate2,torch",
    }
    assert given["ROCM_HOME"] == "x"


def test_environment_without_overlays_changes_no_variable(tmp_path: Path) -> None:
    assert preloads.variables(tmp_path, {"PATH": "/opt/rocm"}) == {"PATH": "/opt/rocm"}
    assert (preloads.archives(tmp_path), preloads.problems(tmp_path, {})) == ({}, ())


def test_missing_sdk_says_where_it_was_looked_for(environment: Path) -> None:
    with pytest.raises(OverlayError) as caught:
        preloads.variables(environment, {"PATH": ""})
    assert str(caught.value) == (
        "the overlay zluda needs the SDK, which is not found; install it, and run the same command again\n"
        "  HIP_PATH is not set\n  /opt/sdk/, which has no bin/rocblas.dll"
    )


def test_problems_name_each_file(environment: Path) -> None:
    folder = environment / "overlays" / "zluda"
    expected = {"zluda": "a" * 64}
    assert preloads.problems(environment, expected) == ()
    assert preloads.problems(environment, {}) == ("the overlay zluda is not the one that was installed",)
    assert preloads.problems(environment, {**expected, "more": "b" * 64}) == ("the overlay more is gone",)
    (folder / "stray.dll").touch()
    (folder / "cublas64_11.dll").write_bytes(b"mine")
    assert preloads.problems(environment, expected) == (
        f"{folder / 'cublas64_11.dll'} was changed",
        f"{folder / 'stray.dll'} is not ours",
    )
    (folder / "cublas64_11.dll").unlink()
    (folder / "stray.dll").unlink()
    told = f"{folder / 'cublas64_11.dll'} is gone; an antivirus may have taken it"
    assert preloads.problems(environment, expected) == (told,)
    (environment / "overlays" / "preload.json").write_text("{")
    (damaged,) = preloads.problems(environment, expected)
    assert damaged.startswith("the list of the environment's overlays is damaged")


# --- the process ------------------------------------------------------------------------------------------------------


def test_library_that_is_not_there_is_told(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_GATE", "a@p")
    monkeypatch.delenv("HIP_PATH", raising=False)
    assert preload.load(str(environment / "overlays")) == "the SDK is not found: HIP_PATH is not set; install it"
    monkeypatch.setenv("HIP_PATH", str(tmp_path))
    assert preload.load(str(environment / "overlays")) == (
        f"nvcuda.dll of the overlay zluda is not in {environment / 'overlays' / 'zluda'}; an antivirus may have taken "
        "it; run `patchlock install a --profile p --reinstall`"
    )
    said = preload.load(str(tmp_path))
    assert said.startswith("the list of libraries to load cannot be read (")
    assert said.endswith("run `patchlock install a --profile p --reinstall`")


def test_trouble_is_told_once_and_stops_every_import_of_the_modules(environment: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.prefix = sys.argv[2]; import preload; preload.watch()\n"
        "import json\n"
        "for name in ('torch', 'torch', 'ctranslate2'):\n"
        "    try: __import__(name)\n"
        "    except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(preload.__file__).parent), str(environment)],
        env={"PATCHLOCK_PRELOAD": "torch,ctranslate2", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    sentence = "the SDK is not found: HIP_PATH is not set; install it"
    assert done.stdout.splitlines() == [sentence] * 3
    assert done.stderr == f"patchlock: {sentence}\n"
