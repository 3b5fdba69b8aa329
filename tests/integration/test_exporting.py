"""`export` and `matrix` as they are called: real installers take what is written, and it is the same every time."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from conftest import ROOT, Patchlock, Said
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from miniature import World
from packaging.pylock import Pylock
from test_bundle import rewrite

from patchlock.hardware.probes import probe
from patchlock.model.lockfile import parse
from patchlock.model.platforms import platform_of

Face = Callable[..., Said]
HERE = platform_of(probe())
assert HERE is not None


def _run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


def _python(venv: Path) -> str:
    return str(next(venv.glob("[bS]*/python*")))


def test_uv_and_pip_install_the_pylock_of_a_lock(locked: World, face: Face, tmp_path: Path) -> None:
    done = face("export", "mini", "--format", "pylock", "-o", "pylock.toml")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"pylock.toml: pylock of mini × tiny × {HERE.name}\n"
    uv_bin = uv.find_uv_bin()
    installers = {
        "uv": lambda python: (uv_bin, "pip", "sync", "-q", "--preview-features", "pylock", "-p", python),
        "pip": lambda python: (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "-r"),
    }
    for name, command in installers.items():
        venv = tmp_path / f"environment-{name}"
        assert _run(uv_bin, "venv", "-q", "--python", sys.executable, str(venv), cwd=tmp_path).returncode == 0
        done = _run(*command(_python(venv)), "pylock.toml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said = _run(uv_bin, "pip", "list", "-q", "--format", "json", "-p", _python(venv), cwd=tmp_path).stdout
        assert {one["name"]: one["version"] for one in json.loads(said)} == {
            "alpha": "1.0",
            "beta": "1.5",
            "gamma": "2.0",
        }


def test_pylock_names_the_files_of_a_folder_where_that_is_the_mirror(
    locked: World, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", str(locked.wheels))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")
    done = face("export", "mini", "--format", "pylock")
    assert done.returncode == 0, done.stderr
    places = [
        package.wheels[0].url for package in Pylock.from_dict(tomllib.loads(done.stdout)).packages if package.wheels
    ]
    assert places == [
        (locked.wheels / f"{name}-py3-none-any.whl").as_uri() for name in ("alpha-1.0", "beta-1.5", "gamma-2.0")
    ]


def test_pylock_of_another_platform_is_refused_by_installers(locked: World, face: Face, tmp_path: Path) -> None:
    other = "windows-amd64" if HERE.os != "windows" else "linux-x86_64"
    assert face("export", "mini", "--platform", other, "--format", "pylock", "-o", "pylock.toml").returncode == 0
    venv = tmp_path / "venv"
    assert _run(uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(venv), cwd=tmp_path).returncode == 0
    command = (uv.find_uv_bin(), "pip", "sync", "--preview-features", "pylock", "-p", _python(venv), "pylock.toml")
    done = _run(*command, cwd=tmp_path)
    assert done.returncode != 0
    assert "not supported by the lockfile" in done.stderr


def test_file_that_the_index_has_lost_is_named(locked: World, face: Face, tmp_path: Path) -> None:
    page = locked.wheels.parent / "index" / "beta" / "index.html"
    page.write_text(page.read_text().replace("beta-1.5", "beta-1.4"))
    done = face("export", "mini", "--format", "pylock", "-o", "pylock.toml")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error[download]: the package index does not have files of the lock ({page.parent.parent.as_uri()}); "
    )
    assert "beta" in done.stderr
    assert not (tmp_path / "pylock.toml").exists()


def test_file_that_was_replaced_under_its_name_is_named(locked: World, face: Face) -> None:
    page = locked.wheels.parent / "index" / "beta" / "index.html"
    text = page.read_text()
    at = text.index("sha256=") + len("sha256=")
    page.write_text(text[:at] + "0" * 64 + text[at + 64 :])
    done = face("export", "mini", "--format", "pylock")
    assert done.returncode == 1
    assert done.stderr.endswith("\n  beta 1.5: it has beta-1.5-py3-none-any.whl, with another sha256 than the lock\n")


def test_sbom_has_a_diff_for_each_patch_that_changed_something(locked: World, face: Face) -> None:
    done = face("export", "mini", "--format", "cyclonedx")
    assert done.returncode == 0, done.stderr
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(done.stdout) is None
    sbom = json.loads(done.stdout)
    assert sbom["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"
    patches = sbom["metadata"]["component"]["pedigree"]["patches"]
    added = {
        patch["resolves"][0]["id"]: [line for line in patch["diff"]["text"]["content"].splitlines() if line[:1] == "+"]
        for patch in patches
    }
    assert added == {
        "alpha-that-exists": ["+++ b/requirements.txt", "+alpha==1.0  # why not"],
        "on-the-cpu": ["+++ b/app.py", '+DEVICE = "cpu"'],
    }
    assert face("export", "mini", "--format", "cyclonedx").stdout == done.stdout


def test_stale_or_changed_lock_is_not_exported(locked: World, face: Face, tmp_path: Path) -> None:
    locked.app.write_text(locked.app.read_text().replace("alpha 9 was deleted", "alpha 9 is gone"))
    done = face("export", "mini", "--format", "cyclonedx")
    assert done.returncode == 0, "what uv is asked has not changed"
    lock = locked.catalogue / "lockfiles" / "mini" / f"tiny.{HERE.name}.txt"
    text = lock.read_text()
    lock.write_text("".join(line for line in text.splitlines(True) if not line.startswith("beta")))
    done = face("export", "mini", "--format", "pylock")
    assert done.stderr.startswith(
        "error[lock-format]: its lines were changed after it was made: they are not those of its seal (lockfiles/mini/tiny."
    )
    lock.write_text(text)
    (locked.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\n")
    locked.name_commit(tmp_path)
    assert face("export", "mini", "--format", "cyclonedx").stderr.startswith("error[lock-stale]: ")


@pytest.mark.parametrize("shape", ["pylock", "cyclonedx", "dockerfile", "compose"])
def test_file_of_the_user_is_not_overwritten_but_an_export_is(
    locked: World, face: Face, tmp_path: Path, shape: str
) -> None:
    command = ("export", "mini", "--platform", "linux-x86_64", "--format", shape, "-o", "pylock.toml")
    file = tmp_path / "pylock.toml"
    for _ in range(2):
        assert face(*command).returncode == 0
    file.write_text("mine\n")
    assert face(*command).stderr == (
        "error[usage]: pylock.toml exists already, and was not overwritten; "
        "name another file with --output, or move that one away first\n"
    )
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--format", "pylock", "-o", "lock.toml"),
            (
                'error[usage]: no installer takes "lock.toml" for a lock (PEP 751); name the file pylock.toml, '
                "or pylock.NAME.toml without another dot in NAME"
            ),
        ),
        (
            ("--format", "requirements"),
            (
                "error[usage]: invalid value for '--format': a lockfile is one already: `pip install --require-hashes -r "
                "lockfiles/APP/PROFILE.PLATFORM.txt`; see `patchlock export --help`"
            ),
        ),
        (
            ("--format", "pylock", "--base", "x"),
            "error[usage]: only a Dockerfile has a base image; leave --base out, or add --format dockerfile",
        ),
        (
            ("--format", "pylock", "--platform", "windows-amd"),
            'error[usage]: there is no platform "windows-amd"; did you mean "windows-amd64"?',
        ),
        (
            ("--format", "dockerfile", "--platform", "windows-amd64"),
            (
                "error[refused]: an image holds Linux, and the lock is for windows-amd64; "
                "name a Linux platform of the profile with --platform"
            ),
        ),
    ],
    ids=["name", "requirements", "base", "platform", "windows"],
)
def test_what_cannot_be_is_said_in_one_sentence(
    locked: World, face: Face, arguments: tuple[str, ...], sentence: str
) -> None:
    assert face("export", "mini", *arguments).stderr == f"{sentence}\n"


def test_profile_of_another_machine_is_exported_with_its_platform(locked: World, face: Face) -> None:
    text = locked.profile.read_text().replace('"linux-x86_64", "linux-aarch64", ', "")
    locked.profile.with_name("far.toml").write_text(text)
    export = ("export", "mini", "--profile", "far", "--format", "cyclonedx")
    assert face(*export).stderr.endswith("; for another machine, add --platform windows-amd64 or macos-arm64\n")
    refused = '\n[[refused]]\nprofile = "far"\nwhy = "no wheels"\nsource = "tests"\n'
    locked.app.write_text(locked.app.read_text() + refused)
    assert face(*export).stderr == "error[refused]: mini cannot run on far on windows-amd64: no wheels (tests)\n"


def test_dockerfile_and_compose_name_the_command_that_writes_them(
    locked: World, face: Face, patchlock: Patchlock, tmp_path: Path
) -> None:
    made = patchlock("bundle", "mini", "--platform", "linux-x86_64", "-o", "my mini.bundle")
    assert made.returncode == 0, made.stderr
    rewrite(tmp_path / "my mini.bundle", lambda members: members.update({"tool/patchlock.whl": b""}), lists=True)
    pair = ("export", "mini", "--platform", "linux-x86_64", "--catalogue", str(locked.catalogue))
    for words in (
        ("--format", "dockerfile", "--from", "my mini.bundle", "--base", "corp.test/python:3.11"),
        ("--format", "dockerfile"),
        ("--format", "compose"),
    ):
        text = face(*pair, *words).stdout
        named = re.findall(r"^# `patchlock (export .+)`\.$", text, re.MULTILINE)
        assert face(*shlex.split(named[0])).stdout == text
        assert all(face(*shlex.split(one)).returncode == 0 for one in named[1:])
    assert (tmp_path / "Dockerfile").is_file(), "of the file of compose"


def test_matrix_lists_what_a_change_concerns(locked: World, face: Face) -> None:
    git = ["git", "-C", str(locked.catalogue), "-c", "user.name=a", "-c", "user.email=a@b.test"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    pairs = json.loads(face("matrix").stdout)["include"]
    assert [pair["platform"] for pair in pairs] == ["linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64"]
    assert pairs[0] == {
        "app": "mini",
        "profile": "tiny",
        "platform": "linux-x86_64",
        "lock": "lockfiles/mini/tiny.linux-x86_64.txt",
    }
    assert json.loads(face("matrix", "--changed-since", "main").stdout) == {"include": []}
    lock = locked.catalogue / "lockfiles" / "mini" / "tiny.macos-arm64.txt"
    lock.write_text(lock.read_text() + "\n")
    changed = json.loads(face("matrix", "--changed-since", "main").stdout)["include"]
    assert [pair["platform"] for pair in changed] == ["macos-arm64"]
    locked.profile.write_text(locked.profile.read_text() + "\n")
    assert json.loads(face("matrix", "--changed-since", "main").stdout)["include"] == pairs
    done = face("matrix", "--changed-since", "--output=x")
    assert done.stderr.startswith('error[usage]: "--output=x" is not a commit of the catalogue\'s repository (')


def test_matrix_tells_refused_pairs_apart(world: World, face: Face) -> None:
    refused = '\n[[refused]]\nprofile = "tiny"\nplatforms = ["macos-arm64"]\nwhy = "no wheels"\nsource = "tests"\n'
    world.app.write_text(world.app.read_text() + refused)
    data = json.loads(face("matrix", "--json").stdout)["data"]
    assert [pair["platform"] for pair in data["include"]] == ["linux-x86_64", "linux-aarch64", "windows-amd64"]
    why = "mini cannot run on tiny on macos-arm64: no wheels"
    assert data["refused"] == [{"app": "mini", "profile": "tiny", "platform": "macos-arm64", "why": why}]


@pytest.mark.online
@pytest.mark.parametrize("platform", ["linux-aarch64", "windows-amd64"])
def test_addresses_of_the_demo_are_those_of_the_real_index(platform: str, face: Face) -> None:
    done = face("export", "demo", "--platform", platform, "--format", "pylock")
    assert done.returncode == 0, done.stderr
    read = Pylock.from_dict(tomllib.loads(done.stdout))
    lock = parse((ROOT / "lockfiles" / "demo" / f"cpu.{platform}.txt").read_text(encoding="utf-8"), "demo")
    files = [(file.url or "", file.hashes["sha256"]) for package in read.packages for file in package.wheels or ()]
    assert [sha256 for _, sha256 in files] == [package.sha256 for package in lock.packages]
    assert all(url.startswith("https://") and url.endswith(".whl") for url, _ in files)
