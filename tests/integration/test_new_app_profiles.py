"""Locks that `new-app` tries of every profile: what one lacks is said, and the others are made."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from pathlib import Path

import miniature
import pytest
from conftest import ROOT
from test_new_app import STARTS, URL, Face, upstream
from test_new_app_locks import index

from patchlock.locks import relock
from patchlock.locks.lock_request import Request
from patchlock.model.lockfile import Lock

__all__ = ["index"]


def test_all_profiles_are_tried_and_refusals_have_reasons(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files: dict[str, str | bytes] = {
        "requirements.txt": "clock[loud]\nspeaker<0.1 ; sys_platform == 'win32'\n",
        "app.py": "import clock\n" + STARTS,
    }
    clone = upstream(tmp_path / "c", files)

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--explain", "0", "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    assert others["cuda-linux", "linux-x86_64"]["packages"] == 1
    not_covered = 'not covered: requirements.txt:1: clock has no extra "loud"'
    assert others["cuda-linux", "linux-x86_64"]["warnings"] == [not_covered]
    assert json.loads(done.stdout)["data"]["lock"]["warnings"] == [not_covered]
    assert others["rocm-linux", "linux-x86_64"]["packages"] == 1
    cause = (
        "only speaker{sys_platform == 'win32'}==0.3 is available and you require speaker{sys_platform == 'win32'}<0.1"
    )
    assert others["cpu", "windows-amd64"]["why"] == f"no set of packages satisfies the requirements: {cause}"
    refused = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["refused"]
    assert ("cpu", ["windows-amd64"]) in [(one["profile"], one["platforms"]) for one in refused]
    checked = json.loads(face("lock", "--check", "--catalogue", str(tmp_path / "x"), "--json").stdout)["data"]["pairs"]
    assert {one["state"] for one in checked} == {"fresh", "refused"}  # what was written later makes none stale


def test_reason_of_a_refusal_is_whole_however_long_it_is(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [miniature.wheel(tmp_path / "w", name, "4.10") for name in ("opencv-python", "opencv-python-headless")]
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64")
    pages += [miniature.wheel(tmp_path / "w", "bitsandbytes", "0.49.2", tag=f"py3-none-{tag}") for tag in tags]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    needs = "opencv-python\nopencv-python-headless\nbitsandbytes\n"
    clone = upstream(tmp_path / "c", {"requirements.txt": needs, "app.py": "import cv2\n" + STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all").stdout

    refused = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["refused"]
    (why,) = [one["why"] for one in refused if one["profile"] == "rocm-linux"]
    assert len(why) > 300
    assert why.endswith("on a connected machine, or declare an [[exception]] with its reason")
    assert f"  rocm-linux on linux-x86_64: refused: {why.removeprefix('no lock can be made: ')}\n" in told


def test_what_nobody_has_recorded_is_to_be_looked_at_and_no_refusal(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64")
    pages = [miniature.wheel(tmp_path / "w", "bitsandbytes", "0.49.2", tag=f"py3-none-{tag}") for tag in tags]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "c", {"requirements.txt": "bitsandbytes\n", "app.py": STARTS})

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all").stdout

    app = (tmp_path / "x/patches/mini-voice/app.toml").read_text()
    assert not [one for one in tomllib.loads(app).get("refused", ()) if one["profile"] == "rocm-linux"]
    why = "nobody has looked which GPUs bitsandbytes 0.49.2 (requirements.txt:1) has code for; give its wheel, or "
    assert f"  rocm-linux on linux-x86_64: no lock: {why}" in told
    assert f"\nlook at: rocm-linux on linux-x86_64 has no lock yet: {why}" in told
    assert "# TODO: rocm-linux on linux-x86_64 has no lock yet: nobody has looked which GPUs" in app


def test_what_nobody_has_recorded_is_the_next_step_of_the_profile_that_was_asked_for(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = miniature.wheel(tmp_path / "w", "bitsandbytes", "0.49.2", tag="py3-none-manylinux_2_28_x86_64")
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", [page]))
    clone = upstream(tmp_path / "c", {"requirements.txt": "bitsandbytes\n", "app.py": STARTS})

    for into, more in (("x", ()), ("y", ("--solve",))):
        into_options = ("--into", str(tmp_path / into), "--profile", "rocm-linux", "--platform", "linux-x86_64")
        told = face("new-app", URL, "--source", str(clone), *into_options, *more).stdout

        first = told.partition("\nnext: ")[2]
        assert first.startswith("get what its lock lacks: nobody has looked which GPUs bitsandbytes 0.49.2 (")
        assert "`patchlock scan --record`" in first.partition("\n")[0]
        draft = (tmp_path / into / "patches/mini-voice/app.toml").read_text()
        assert draft.count("# TODO: rocm-linux on linux-x86_64 has no lock yet: nobody has looked which GPUs") == 1


def test_first_pair_without_a_lock_does_not_end_the_others(face: Face, index: str, tmp_path: Path) -> None:
    assert index
    files = {"requirements.txt": "clock\nspeaker<0.1 ; sys_platform == 'linux'\n", "app.py": "import clock\n" + STARTS}
    clone, own = upstream(tmp_path / "c", dict(files)), tmp_path / "x"

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(own), "--profile", "all"),
        *("--explain", "0", "--platform", "linux-x86_64"),
    )

    assert done.returncode == 1
    assert "no lock: mini-voice × cpu × linux-x86_64: no set of packages" in done.stdout
    assert "  cpu on windows-amd64: 1 package\n" in done.stdout
    assert "  cuda-linux on linux-x86_64: refused: no set of packages" in done.stdout
    assert not any(line.startswith("start ") for line in done.stderr.splitlines()), done.stderr  # nothing to start
    assert (own / "lockfiles/mini-voice/cpu.windows-amd64.txt").is_file()
    checked = json.loads(face("lock", "--check", "--catalogue", str(own), "--json").stdout)["data"]["pairs"]
    assert [one["pair"] for one in checked if one["state"] not in {"fresh", "refused"}] == [
        "mini-voice × cpu × linux-x86_64"
    ]


def test_error_in_a_further_pair_costs_no_draft(
    face: Face, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock\n", "app.py": "import clock\n" + STARTS})
    resolve = relock.resolve

    def fail(request: Request, kept: relock.Kept) -> Lock:
        if request.profile.name != "cpu":
            raise ValueError("a mistake")
        return resolve(request, kept)

    monkeypatch.setattr(relock, "resolve", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a report of the mistake goes there
    where = tmp_path / "x"
    done = face("new-app", URL, "--source", str(clone), "--into", str(where), "--profile", "all")
    file = where / "patches/mini-voice/app.toml"
    assert done.returncode == 2
    assert f"written, without locks: {file}\n" in done.stderr
    assert not (where / "lockfiles").exists()
    assert list(tmp_path.glob("patchlock-bug-*.txt"))
    monkeypatch.setattr(relock, "resolve", resolve)
    words = ("--profile", "cpu", "--catalogue", str(where), "--source", str(clone))
    assert face("lock", "mini-voice", *words).returncode == 0


def test_further_pairs_get_edits_of_their_own(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64")
    pages = [miniature.wheel(tmp_path / "w", "clock", "1.0", tag=f"py3-none-{tag}") for tag in tags]
    pages += [miniature.wheel(tmp_path / "w", "clock", "2.0", tag="py3-none-win_amd64")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock<2\n", "app.py": "import clock\n" + STARTS})

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--platform", "linux-x86_64", "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    (patch,) = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert (patch["id"], patch["specifier"]) == ("clock-that-resolves", "<2.1")
    there = {profile for profile, platform in others if platform == "windows-amd64"}
    assert set(patch["profiles"]) == there  # the others lock without; what stays possible for them harms none
    assert [pair for pair, one in others.items() if not one["packages"]] == []
    checked = face(
        "lock", "mini-voice", "--check", "--source", str(clone), "--catalogue", str(tmp_path / "x"), "--json"
    )
    assert {one["state"] for one in json.loads(checked.stdout)["data"]["pairs"]} == {"fresh"}


def test_edit_found_for_one_machine_is_for_those_alone_that_need_it(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux, arm, mac = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64"
    newer = {"clock": (arm, "win_amd64"), "speaker": (arm,)}
    pages = [
        miniature.wheel(tmp_path / "w", name, "2.0" if tag in newer[name] else "1.0", tag=f"py3-none-{tag}")
        for name in newer
        for tag in (linux, arm, mac, "win_amd64")
    ]
    monkeypatch.setenv("UV_DEFAULT_INDEX", miniature.index(tmp_path / "index", pages))
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock<2\nspeaker<2\n", "app.py": STARTS})

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--platform", "linux-aarch64", "--json"),
    )

    data = json.loads(done.stdout)["data"]["lock"]
    others = {(one["profile"], one["platform"]): one for one in data["others"]}
    assert [pair for pair, one in others.items() if not one["packages"]] == []
    on = {
        platform: {"cpu"} | {profile for profile, one in others if one == platform}
        for platform in ("linux-aarch64", "windows-amd64")
    }
    patches = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["patch"]
    assert {one["id"]: set(one["profiles"]) for one in patches} == {
        "clock-that-resolves": on["linux-aarch64"] | on["windows-amd64"],
        "speaker-that-resolves": on["linux-aarch64"],
    }


def test_what_a_profile_needs_may_be_younger_than_the_app(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(ROOT / "profiles", own / "profiles")
    shutil.copytree(ROOT / "patches/shared", own / "patches/shared")
    profile = own / "profiles/cuda-linux.toml"
    bound = '\n[[constraint]]\nrequirement = "clock>=2"\nwhy = "older ones do not know the card"\nsource = "s"\n'
    profile.write_text(profile.read_text() + bound)
    needs = {"2.0": ("spring>=2",)}
    files = [miniature.wheel(tmp_path / "w", "clock", one, requires=needs.get(one, ())) for one in ("1.0", "2.0")]
    files += [miniature.wheel(tmp_path / "w", "spring", one) for one in ("1.0", "2.0")]
    address = miniature.index(tmp_path / "index", files)
    for page in (tmp_path / "index").glob("*/index.html"):
        rows = page.read_text().splitlines()
        page.write_text("\n".join(row.replace("2025-06-01", "2026-06-01") if "-2.0-" in row else row for row in rows))
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-08-01T00:00:00Z")
    clone = upstream(tmp_path / "c", {"requirements.txt": "clock\n", "app.py": "import clock\n" + STARTS})

    done = face(
        *("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "x"), "--profile", "all", "--solve"),
        *("--catalogue", str(own), "--json"),
    )

    others = {(one["profile"], one["platform"]): one for one in json.loads(done.stdout)["data"]["lock"]["others"]}
    assert others["cuda-linux", "linux-x86_64"]["packages"] == 2
    newer = tomllib.loads((tmp_path / "x/patches/mini-voice/app.toml").read_text())["newer"]
    assert [(one["name"], one["profiles"]) for one in newer] == [("clock", ["cuda-linux"]), ("spring", ["cuda-linux"])]
    why = "cuda-linux has no lock on linux-x86_64 with the files of the commit's day, and has one with later files of "
    assert {one["why"] for one in newer} == {f"{why}clock, spring"}
    assert "clock==1.0" in (tmp_path / "x/lockfiles/mini-voice/cpu.linux-x86_64.txt").read_text()
    checked = face(
        "lock", "mini-voice", "--check", "--source", str(clone), "--catalogue", str(tmp_path / "x"), "--json"
    )
    states = {one["state"] for one in json.loads(checked.stdout)["data"]["pairs"]}
    assert states <= {"fresh", "refused"}  # no table that came later has made an earlier lock stale
