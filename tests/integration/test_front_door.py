"""The first words with patchlock: what there is, what runs here, what is installed; and the way out again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock, Said
from depot import Depot
from miniature import World
from terminals import on_terminal

from patchlock import cli
from patchlock.catalogue import pair_table, profile_summaries
from patchlock.cli import COMMANDS, GROUPS, MORE, _folders, _output, main
from patchlock.core import atomic_files, command_lines, file_lock, uv
from patchlock.environments import cache_pruning, generations
from patchlock.environments.generations import Unfinished
from patchlock.hardware import host_overrides, probes
from patchlock.model.installation import Installation
from patchlock.operations import app_overview

Face = Callable[..., Said]


def test_every_command_is_in_one_group() -> None:
    listed = [name for names in (*GROUPS.values(), *MORE.values()) for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    assert sum(map(len, GROUPS.values())) <= 15


def test_help_of_a_command_is_that_of_its_option(face: Face, patchlock: Patchlock) -> None:
    for words in (["cache", "clean"], ["self"]):  # each in a process of its own: click keeps what it wrote first
        assert patchlock("help", *words).stdout == patchlock(*words, "--help").stdout
    told = face("help", "--all").stdout
    assert [name for name in COMMANDS if not re.search(rf"^  {name} ", told, re.MULTILINE)] == []


def test_a_command_that_has_moved_is_named(face: Face) -> None:
    said = face("prune", "mini")
    assert (said.returncode, '"prune" is now `patchlock cache clean`' in said.stderr) == (2, True)


def test_list_is_one_screen(face: Face) -> None:
    lines = face("list", "--catalogue", str(ROOT)).stdout.splitlines()
    assert len(lines) <= 22
    assert re.match(r"demo +1 of \d+ +Tonewheel", next(line for line in lines if line.startswith("demo ")))
    assert lines[-1].startswith("More: `patchlock` (what runs on this machine)")  # which has to be probed first


def test_info_names_the_reports_and_says_what_their_words_mean(face: Face) -> None:
    text = face("info", "tts-service", "--catalogue", str(ROOT)).stdout
    told = text.partition("Proved on real machines\n")[2].partition("\n\n")[0]
    assert {Path(file) for file in re.findall(r"^ +(\S+\.json)$", told, re.MULTILINE)} == {
        *(ROOT / "profiles" / "proofs").glob("*/tts-service.*.json")
    }
    legend = "\n".join(told.splitlines()[-2:])
    assert legend.startswith("  locked: checked without the machine; loads: ")
    assert legend.endswith("/glossary/#proof")
    assert "\n                   fails in part: ZLUDA " in face("info", "xtts-webui", "--catalogue", str(ROOT)).stdout
    everything = face("list", "--all", "--catalogue", str(ROOT)).stdout
    assert legend in everything
    assert f"  {pair_table.LEGEND}\n" in everything


def test_list_and_the_reader_know_the_same_options(face: Face) -> None:
    from patchlock.catalogue import optional_patches
    from patchlock.catalogue.reader import Catalogue

    told = {
        one["name"]: one for one in json.loads(face("list", "--json", "--catalogue", str(ROOT)).stdout)["data"]["apps"]
    }
    catalogue = Catalogue(root=ROOT)
    for name in catalogue.app_names():
        app = catalogue.app(name)
        assert told[name]["shared"] == [one.name for one in app.shared]
        for profile in catalogue.profile_names():
            options = optional_patches.of_profile(app, profile)
            assert [(one["name"], one["gives"], one["patches"]) for one in told[name]["optional"].get(profile, [])] == [
                (one.name, one.gives, list(one.patches)) for one in options
            ]


@pytest.mark.parametrize(
    ("machine", "app", "place", "need"),
    [
        ("vega8-windows-directml", "xtts-webui", "the CPU", "FFmpeg"),
        ("vega8-windows-directml", "diffrhythm2", "Radeon Vega 8 Graphics", "eSpeak NG"),
        ("rx6600-windows", "advanced-rvc-inference", "the CPU, with ONNX models on Radeon RX 6600", "FFmpeg"),
    ],
)
def test_info_says_where_an_app_computes_and_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, app: str, place: str, need: str
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(ROOT / "tests" / "hardware" / "hosts" / f"{machine}.json"))
    profiles, observed = profile_summaries.read_summaries(ROOT), host_overrides.observe(probes.basic)
    (seen,) = app_overview.overviews(ROOT, profiles, observed, tmp_path, [app])
    assert seen.computes_on == place
    idle = "Radeon RX 6600 computes nothing until you choose ONNX models in the app"
    assert any(one.endswith(idle) for one in seen.warnings) == ("ONNX" in place)
    assert not any(verdict.is_device for verdict in seen.memory)
    assert need in [one.partition(":")[0] for one in seen.needs]


@pytest.mark.parametrize("words", [("list",), ("info", "xtts-webui"), ("status",)], ids=" ".join)
def test_a_table_reads_no_patch(words: tuple[str, ...]) -> None:
    code = f"import sys; from patchlock.cli import main; main({list(words)!r}); print('|'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=Patchlock(ROOT).env(), check=True
    )
    loaded = set(done.stderr.splitlines()[-1].split("|"))
    slow = ["patchlock.patches", "patchlock.locks", "libcst", "rich"]
    if words[0] != "status":
        slow += ["patchlock.model.lockfile", "patchlock.catalogue.expectations", "packaging.requirements"]
    assert not {one for one in loaded if one.startswith(tuple(slow))}


def test_status_names_what_is_stale_and_interrupted(locked: World, face: Face, tmp_path: Path) -> None:
    assert "Nothing is installed." in face("status").stdout
    assert "asks the index" in face("info", "mini").stdout
    assert "licence    code: MIT\n" in face("info", "mini").stdout
    assert re.search(r"^  licence +code: MIT$", face("plan", "mini", "--profile", "tiny").stdout, re.MULTILINE)
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert "size not known; they are installed\n" in face("info", "mini").stdout
    assert face("status").stdout.startswith("mini on tiny  up to date with the catalogue\n")
    (lock,) = (locked.catalogue / "lockfiles" / "mini").glob("tiny*linux-x86_64.txt")
    text = lock.read_text()
    lock.write_text(text + "# another\n")
    assert "newer lock; get it with: patchlock install mini --profile tiny\n" in face("status").stdout
    (receipt,) = (tmp_path / "installed" / "mini@tiny" / "environments").glob("*/receipt.toml")
    receipt.write_text(f'source = "/up"\n{receipt.read_text()}')
    assert "get it with: patchlock install mini --profile tiny --source /up\n" in face("status").stdout
    assert face("lock", "mini", "--check").stderr.endswith("to renew: patchlock lock mini --source /up\n")
    lock.write_text(text)
    file = locked.catalogue / "patches" / "mini" / "app.toml"
    of_app = file.read_text()
    file.write_text(of_app + "# another\n")
    again = "patches/mini/app.toml has changed since the catalogue's lock was made; lock again: patchlock lock mini"
    assert f"{again} --profile tiny\n" in face("status").stdout
    file.write_text(of_app)
    assert "this asks: patchlock why mini gamma --source /up --alternatives" in face("why", "mini", "gamma").stdout
    (tmp_path / "installed" / "mini@tiny" / "journal").write_text("an install is running\n")
    (told,) = json.loads(face("status", "--json").stdout)["data"]["installed"]
    assert (told["state"], told["running"], told["busy"]) == ("interrupted", False, False)
    works = "interrupted, the version in use still works"
    assert face("status").stdout.startswith(f"mini on tiny  {works}. Finish it with: patchlock install mini")
    assert f"installed  on tiny ({works})\n" in face("info", "mini").stdout
    (tmp_path / "installed" / "mini@tiny" / "current").unlink()
    assert re.search(r"^mini .* tiny \(interrupted\) ", face("list").stdout, re.MULTILINE)
    assert "installed  on tiny (interrupted)\n" in face("info", "mini").stdout
    with file_lock.hold(tmp_path / "installed" / "mini@tiny" / "lock", wait=0):
        assert face("status").stdout.startswith("mini on tiny  being changed\n")
        assert "installed  on tiny (being changed)\n" in face("info", "mini").stdout
        for command in ("run", "verify", "doctor"):
            said = face(command, "mini")
            assert said.returncode == 1
            what, _, end = said.stderr.splitlines()[-1].partition(" (")
            assert what.startswith(
                f"error[busy]: another patchlock is changing mini on tiny at this moment, process {os.getpid()}"
            )
            assert end.endswith("mini@tiny); wait for that to end and run the same command again")
    assert face("run", "mini").stderr == (
        "error[not-installed]: mini is not installed on tiny: its install was interrupted "
        f"({tmp_path / 'installed' / 'mini@tiny'}); finish it with `patchlock install mini --profile tiny`\n"
    )
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert face("uninstall", "mini").stderr.startswith("uninstall    files are removed (")
    assert "Nothing is installed." in face("status").stdout


def test_a_draft_without_program_and_checks_is_never_called_verified(
    locked: World, face: Face, patchlock: Patchlock
) -> None:
    text = locked.app.read_text().partition("[[check]]")[0].replace('["python", "app.py"]', '["python"]')
    empty = '[[check]]\nid = "imports"\nkind = "imports"\npresent = []\nabsent = []\n'
    locked.app.write_text(text + empty)
    told = "not verified: no kernel was computed; nothing of the app is verified yet: fill in [launch] and [[check]] in patches/mini/app.toml"
    said = face("install", "mini", "--profile", "tiny")
    assert (said.returncode, told in said.stdout, "patchlock run" in said.stdout) == (0, True, False)
    assert (
        "warning: patches/mini/app.toml has changed since the lock was made; it still asks for the same packages: "
        "renew it with `patchlock lock mini --profile tiny`\n" in said.stderr
    )
    assert told in face("install", "mini", "--profile", "tiny").stdout
    said = face("verify", "mini", "--json")
    found = json.loads(said.stdout)
    assert (said.returncode, found["error"]["code"], found["error"]["what"]) == (3, "not-checked", told)
    assert not {"start", "imports"} & {one["id"] for one in found["data"]["checks"]}
    assert [face(*words).returncode for words in (("verify", "mini"), ("verify", "mini", "--quick"))] == [3, 0]
    assert told in face("status").stdout
    assert re.search(r"^mini .* tiny \(not verified\) ", face("list").stdout, re.MULTILINE)
    assert json.loads(face("info", "mini", "--json").stdout)["data"]["unverified"] == {"tiny": told}
    (row,) = json.loads(face("list", "--json").stdout)["data"]["installed"]
    assert row["unverified"] == told
    assert "[launch] in patches/mini/app.toml names no program: write there how mini is started" in face("check").stdout
    ran = patchlock("run", "mini", "--", "-V")
    assert ran.stderr.endswith("names no program of mini yet: Python alone is started\n")
    locked.app.write_text(text + '[[check]]\nid = "imports"\nkind = "imports"\npresent = ["alpha"]\nabsent = []\n')
    assert "the app was not started, as [launch]" in face("install", "mini", "--profile", "tiny").stdout


def test_an_install_whose_check_fails_is_told_as_failed(locked: World, face: Face, tmp_path: Path) -> None:
    locked.app.write_text(locked.app.read_text().replace('prints = "computed on cpu"', 'prints = "sung"'))
    assert face("install", "mini", "--profile", "tiny").returncode == 1
    why = "1 of 5 checks of mini did not pass; says-where (computes): "
    again = "patchlock install mini --profile tiny"
    told = face("status").stdout
    assert told.startswith(f"mini on tiny  failed: {why}")
    assert f"Correct the cause, then run: {again}" in told
    assert f"mini is not installed on tiny: its install failed: {why}" in face("verify", "mini").stderr
    assert re.search(r"^mini .* tiny \(failed\) ", face("list").stdout, re.MULTILINE)
    installation = Installation(folder=tmp_path / "installed" / "mini@tiny")
    generations.write_journal(installation, Unfinished(source="/up stream", failure="no"))
    assert face("status").stdout.startswith(
        f"mini on tiny  failed: no. Correct the cause, then run: {again} --source '/up stream'\n"
    )


def test_outdated_asks_upstream(locked: World, face: Face) -> None:
    assert face("outdated").stdout == "Nothing is installed.\n"
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    (told,) = json.loads(face("outdated", "--json").stdout)["data"]["installed"]
    assert (told["app"], told["profile"], told["newer_lock"]) == ("mini", "tiny", False)


def test_upstream_that_cannot_be_asked_is_not_called_up_to_date(locked: World, face: Face) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    about = locked.app.read_text(encoding="utf-8")
    locked.app.write_text(about.replace('embedded = "upstream"', 'url = "http://127.0.0.1:9/mini"'), encoding="utf-8")
    done = face("outdated")
    assert done.returncode == 3
    assert done.stdout == "mini on tiny  not known: branch main cannot be looked up\n"
    assert re.search(r"^upstream +1 installed, 0 out of date, 1 not known \(", done.stderr, re.MULTILINE)
    answer = face("outdated", "--json")
    assert (answer.returncode, json.loads(answer.stdout)["error"]["code"]) == (3, "not-checked")


def test_an_app_that_the_catalogue_lacks_has_no_newer_lock_there(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    other = tmp_path / "other"
    shutil.copytree(locked.catalogue, other)
    shutil.rmtree(other / "lockfiles" / "mini")
    told = "mini on tiny  this catalogue has no lock of it; if another one has, name that with --catalogue FOLDER\n"
    assert face("outdated", "--catalogue", str(other)).stdout == told
    assert face("status", "--catalogue", str(other)).stdout.startswith(told)
    assert (
        f"patchlock lock mini --profile tiny --catalogue {other}\n"
        in face("info", "mini", "--catalogue", str(other)).stdout
    )
    shutil.rmtree(other / "patches" / "mini")
    assert face("outdated", "--catalogue", str(other)).stdout == told, "the installation keeps what it was made from"
    (found,) = json.loads(face("outdated", "--catalogue", str(other), "--json").stdout)["data"]["installed"]
    assert (found["newer_lock"], found["failure"]) == (False, None)


def test_what_is_installed_from_another_catalogue_is_used_as_it_is(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    other = tmp_path / "other"
    shutil.copytree(locked.catalogue, other)
    shutil.rmtree(other / "patches" / "mini")
    assert face("cache", "clean", "--dry-run", "--catalogue", str(other)).returncode == 0
    assert face("verify", "mini", "--catalogue", str(other)).returncode == 0
    assert face("update", "mini", "--catalogue", str(other)).stderr == (
        f"error[unknown-app]: mini was installed from another catalogue; this one has no such app ({other}); "
        "name that one with --catalogue, or unset PATCHLOCK_CATALOGUE for the one that patchlock came with\n"
    )


def test_update_all_wants_no_app(face: Face) -> None:
    for words in ((), ("mini", "--all"), ("--all", "--commit", "x")):
        assert face("update", *words).returncode == 2
    assert face("update", "--all").stdout == "Nothing is installed.\n"
    assert json.loads(face("update", "--all", "--json").stdout)["data"] == {"apps": []}


def test_plan_says_offline_that_packages_are_not_here(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[str]:
        return list(json.loads(face("plan", "mini", "--json").stdout)["data"]["warnings"])

    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "nothing").as_uri())
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cold"))
    monkeypatch.setenv("UV_FIND_LINKS", str(locked.wheels))
    assert told() == []
    (locked.wheels / "beta-1.5-py3-none-any.whl").unlink()
    (warning,) = told()
    assert warning == (
        "not all packages are on this machine, and UV_OFFLINE is set: install needs the network, "
        "a folder with them that UV_FIND_LINKS names, or a bundle (--from)"
    )
    assert face("plan", "mini").returncode == 0


def test_plan_asks_how_large_the_packages_are_and_info_remembers(
    locked: World, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known() -> object:
        return json.loads(face("info", "mini", "--json").stdout)["data"]["download"]["packages"]

    depot = Depot(locked.wheels)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", depot.index)
    try:
        monkeypatch.setenv("UV_OFFLINE", "1")
        assert re.search(r"^  download +size not known without the index$", face("plan", "mini").stdout, re.MULTILINE)
        assert (json.loads(face("plan", "mini", "--json").stdout)["data"]["download"], known()) == (None, None)
        monkeypatch.setenv("UV_OFFLINE", "0")
        names = ("alpha-1.0", "beta-1.5", "gamma-2.0")
        total = sum((locked.wheels / f"{name}-py3-none-any.whl").stat().st_size for name in names)
        assert json.loads(face("plan", "mini", "--json").stdout)["data"]["download"] == {
            "bytes": total,
            "unknown_files": 0,
        }
        assert known() == {"bytes": total, "of_unknown_size": 0}
        assert "" not in [asked for name in names for asked in depot.asked_for(f"{name}-py3-none-any.whl")]
    finally:
        depot.close()


def test_plan_of_what_is_installed_has_nothing_to_change(locked: World, face: Face) -> None:
    def patches(*more: str) -> str:
        said = face("plan", "mini", "--profile", "tiny", *more).stdout
        return re.findall(r"^  patches +(.*)$", said, re.MULTILINE)[0]

    assert (patches(), " needed " in patches("--diff")) == ("2 needed; 2 files to change", True)
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert (patches(), " applied " in patches("--diff")) == ("2 needed; 2 files changed", True)
    assert re.search(r"^  install +nothing to do$", face("plan", "mini").stdout, re.MULTILINE)


def test_update_all_tells_of_every_app_in_one_envelope(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    broken = tmp_path / "installed" / "gone@tiny"
    shutil.copytree(tmp_path / "installed" / "mini@tiny", broken, symlinks=True)
    said = json.loads(face("update", "--all", "--json").stdout)
    assert [(one["app"], one["data"] is None) for one in said["data"]["apps"]] == [("gone", True), ("mini", False)]
    (told,) = (one["data"] for one in said["data"]["apps"] if one["app"] == "mini")
    assert told["receipt"]["app"] == "mini"
    assert (said["ok"], said["error"]["what"]) == (False, "1 of 2 apps could not be updated: gone on tiny")


def test_update_all_names_installs_that_have_not_finished(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    other = locked.profile.with_name("other.toml")
    other.write_text(locked.profile.read_text())
    begun = tmp_path / "installed" / "mini@other"
    begun.mkdir()
    (begun / "journal").write_text("an install is running\n")
    said = face("update", "--all")
    assert said.returncode == 1
    assert said.stdout.startswith("\nmini on other\n\nmini on tiny\n")
    assert (
        "error[not-installed]: mini is not installed on other: its install was interrupted "
        f"({begun}); finish it with `patchlock install mini --profile other`\n"
    ) in said.stderr
    assert "1 of 2 apps could not be updated: mini on other" in said.stderr
    with file_lock.hold(begun / "lock", wait=0):
        said = face("update", "--all")
    assert said.returncode == 1
    assert "error[busy]: another patchlock is changing mini on other at this moment" in said.stderr


def test_a_wrong_source_is_refused_though_nothing_is_new(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    said = face("install", "mini", "--profile", "tiny", "--source", str(tmp_path / "nope"))
    assert (said.returncode, said.stderr.partition(" (")[0]) == (
        1,
        "error[upstream]: there is no such folder",
    )


def test_a_failed_install_leaves_nothing_to_finish(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert face("install", "mini", "--profile", "tiny", "--commit", "zzz").returncode != 0
    assert not (tmp_path / "installed" / "mini@tiny" / "journal").exists()
    assert face("status").stdout.startswith("mini on tiny  up to date with the catalogue\n")


def test_nothing_is_left_of_a_failed_first_install(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny", "--commit", "zzz").returncode != 0
    folder = tmp_path / "installed" / "mini@tiny"
    assert not folder.exists()
    assert "mini" not in face("status").stdout
    assert "error[not-installed]" in face("run", "mini").stderr
    folder.mkdir()
    (folder / "song.wav").write_bytes(b"mine")
    assert face("install", "mini", "--profile", "tiny", "--commit", "zzz").returncode != 0
    assert (folder / "song.wav").is_file()
    assert face("status").stdout.startswith("mini on tiny  ")


def test_uninstall_takes_the_app_out_of_the_menu(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    entry = tmp_path / "data" / "applications" / "patchlock-mini-tiny.desktop"
    for is_ours in (True, False):
        said = face("install", "mini", "--profile", "tiny")
        (command,) = re.findall(r"\$ (install -Dm644 .*)", said.stdout)
        subprocess.run(["sh", "-c", command], check=True)
        if not is_ours:
            entry.write_bytes(entry.read_bytes().replace(b"installed", b"elsewhere"))
        assert face("uninstall", "mini").returncode == 0
        assert entry.exists() is not is_ours


def test_purge_asks_and_a_program_has_to_say_yes(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    mine = tmp_path / "installed" / "mini@tiny" / "source" / "song.wav"
    mine.write_bytes(b"x" * 2_000)
    said = face("uninstall", "mini", "--purge")
    assert (said.returncode, 'cannot ask "Delete all of this?" without a terminal; add --yes' in said.stderr) == (
        2,
        True,
    )
    assert "song.wav  2.0 KiB" in said.stderr
    assert "song.wav  2.0 KiB" in face("uninstall", "mini", "--purge", "--dry-run").stdout
    assert json.loads(face("uninstall", "mini", "--dry-run", "--json").stdout)["data"]["yours"] == ["song.wav"]
    assert mine.exists()
    assert face("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert not mine.exists()


def test_cleaning_asks_before_a_generation_goes(locked: World, face: Face) -> None:
    assert face("install", "mini").returncode == 0
    assert face("install", "mini", "--reinstall").returncode == 0
    assert face("cache", "clean").returncode == 2
    removed = json.loads(face("cache", "clean", "--yes", "--json").stdout)["data"]["removed"]
    assert [(one["app"], one["profile"]) for one in removed] == [("mini", "tiny")]
    assert face("cache", "clean").stdout == "there is nothing to remove\n"


def test_cache_adds_up(locked: World, face: Face) -> None:
    assert face("install", "mini").returncode == 0
    told = json.loads(face("cache", "--json").stdout)["data"]
    assert "mini on tiny" in [one["what"] for one in told["entries"]]
    assert [one["bytes"] for one in told["entries"]] == sorted((one["bytes"] for one in told["entries"]), reverse=True)
    said = face("cache").stdout
    assert "in total" in said
    assert re.search(r"mini on tiny: \S+ \(\S+ [KM]iB shared\)\n", said), "uv links the files of its cache"
    emptied = f"To empty uv's cache, which other programs share:\n  $ {uv.cache_clean_command()}\n"
    assert said.endswith(f"`patchlock cache clean` would free nothing now.\n{emptied}")
    assert face("install", "mini", "--reinstall").returncode == 0
    assert re.search(
        r"\nTo free \S+ [KM]iB \(--dry-run only shows what would be removed\):\n  \$ patchlock cache clean\n",
        face("cache").stdout,
    )


def test_cache_refuses_a_folder_without_a_catalogue(face: Face, tmp_path: Path) -> None:
    done = face("cache", "--catalogue", str(tmp_path / "nope"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[usage]: there is no such folder (")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["install", "demo"], "interrupted; run the same command again to finish it"),
        (["verify", "demo"], "interrupted"),
        (["models", "demo", "--fetch"], "interrupted; the same command continues the download"),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_ctrl_c_says_what_becomes_of_what_was_begun(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_by_click", stopped)
    assert cli.main(words) == 130
    assert capsys.readouterr() == ("", f"{said}\n")
    assert cli.main([*words, "--json"]) == 130
    told = json.loads(capsys.readouterr().out)
    assert (told["command"], told["ok"], told["error"]["code"]) == (words[0], False, "interrupted")


def test_report_names_nobody(locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "rumpelstilz")
    assert face("install", "mini").returncode == 0
    assert face("verify", "nothing").returncode == 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine, theirs = (tmp_path / f"{_folders.bug_prefix()}{name}.txt" for name in ("mine", "theirs"))
    mine.write_text("a mistake of mine\n")
    theirs.write_text("a mistake of theirs\n")
    (tmp_path / "patchlock-bug-01234567-x.txt").write_text("a mistake in another home\n")
    if os.name == "posix" and os.getuid() == 0:
        os.chown(theirs, 65534, 65534)
    assert face("report").stdout.startswith(f"{tmp_path / 'patchlock-report.md'} is written. ")
    text = (tmp_path / "patchlock-report.md").read_text()
    assert "mini on tiny: up to date" in text
    assert "a mistake of mine" in text
    assert "a mistake in another home" not in text
    assert ("a mistake of theirs" in text) == (os.name != "posix" or os.getuid() != 0)
    assert 'verify [unknown-app]\nthere is no app "nothing"' in text
    assert str(tmp_path) not in text
    assert "rumpelstilz" not in text
    assert face("report").returncode == 0
    (tmp_path / "patchlock-report.md").write_text("# Mine\n\n# patchlock report\n")
    again = face("report")
    assert again.returncode == 2
    assert again.stderr == (
        "error[usage]: patchlock-report.md exists already, and was not overwritten; "
        "name another file with --output, or move that one away first\n"
    )


def test_tool_of_an_unpacked_archive_says_how_it_is_updated_and_removed(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "patchlock-0.2.0"
    folder.mkdir()
    (folder / "install.sh").touch()
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", str(folder / "install.sh"))
    told = f"patchlock runs from {folder}, which is no clone. Unpack the newest version there.\n"
    assert face("self", "update").stdout == told
    assert f"To remove the rest:\n  $ rm -rf {folder}\n" in face("self", "remove", "--dry-run").stdout


def test_packages_beside_the_tool_of_a_bundle_go_with_it(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, packages = tmp_path / "patchlock", tmp_path / "tool"
    for one in (folder, packages):
        one.mkdir()
    (folder / "install.sh").touch()
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", str(folder / "install.sh"))
    words = ("self", "remove", "--dry-run")
    assert f"To remove the rest:\n  $ rm -rf {folder}\n" in face(*words).stdout, "a folder of somebody else"
    (packages / "uv-0.13.8-py3-none-any.whl").touch()
    assert f"To remove the rest:\n  $ rm -rf {folder} {packages}\n" in face(*words).stdout
    assert face("self", "update").stdout == (
        "patchlock was unpacked from a bundle. Put the newer one that you want instead of NEW.bundle, and run:\n"
        f"  rm -rf {folder} {packages} && tar -xf NEW.bundle -C {tmp_path} patchlock tool\n"
    )
    (folder / ".git").mkdir()
    assert f"To remove the rest:\n  $ rm -rf {folder}\n" in face(*words).stdout, "a clone came out of no bundle"


@pytest.mark.parametrize(
    ("prefix", "installer", "command"),
    [
        ("/h/uv/tools/patchlock", "uv", "uv tool install --force"),
        ("/h/pipx/venvs/patchlock", "pip", "pipx install --force"),
        ("/h/venv", "pip", f"{command_lines.program(sys.executable)} -m pip install --force-reinstall"),
        ("/h/venv", "uv", f"uv pip install --reinstall --python {command_lines.quoted(sys.executable)}"),
    ],
    ids=["uv tool", "pipx", "pip", "uv"],
)
@pytest.mark.parametrize("address", ["https://example.com/patchlock", "file:///srv/patchlock.git"])
def test_tool_that_was_installed_at_one_revision_is_updated_to_another(
    face: Face,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    installer: str,
    command: str,
    address: str,
) -> None:
    """`uv tool upgrade` and `pipx upgrade` keep to the revision that was asked for."""
    recorded = {"url": address, "vcs_info": {"vcs": "git", "requested_revision": "v0.2.0", "commit_id": "0" * 40}}
    info = tmp_path / "site" / "patchlock-0.2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: patchlock\nVersion: 0.2.0\n")
    (info / "INSTALLER").write_text(f"{installer}\n")
    (info / "direct_url.json").write_text(json.dumps(recorded))
    monkeypatch.syspath_prepend(info.parent)
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setenv("PATCHLOCK_BOOTSTRAP", str(tmp_path / "install.sh"))
    assert face("self", "update").stdout == (
        "patchlock was installed at one revision. Write the one that you want instead of NEW, and run:\n"
        f"  {command} git+{address}@NEW\n"
    )


def test_the_tool_removes_itself_once_no_app_is_left(locked: World, face: Face, tmp_path: Path) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    assert (tmp_path / "cache").is_dir()
    said = face("self", "remove", "--yes")
    assert (said.returncode, "first run `patchlock uninstall mini`" in said.stderr) == (2, True)
    said = face("self", "remove", "--dry-run")
    assert (said.returncode, "first run `patchlock uninstall mini`" in said.stderr) == (0, True)
    assert "patchlock would remove:" in said.stdout
    assert "of patchlock's own remain: patchlock self remove" in face("uninstall", "mini").stdout
    assert face("self", "remove").returncode == 2
    assert face("self", "remove", "--dry-run").returncode == 0
    assert list((tmp_path / "cache").iterdir())
    (tmp_path / "installed" / "mini@tiny" / "source").mkdir(parents=True, exist_ok=True)
    assert face("trust", str(locked.catalogue)).returncode == 0
    other = tmp_path / "another home"
    launcher = other / "bin" / ("patchlock.cmd" if os.name == "nt" else "patchlock")
    launcher.parent.mkdir(parents=True)
    launcher.write_text("starts it\n")
    cache_pruning.take_lease(tmp_path / "cache", other)
    listed = face("self", "remove", "--dry-run").stdout
    assert str(launcher) in listed
    assert str(tmp_path / "installed" / "catalogues.txt") in listed
    said = face("self", "remove", "--yes")
    assert said.returncode == 0
    removal = "Remove-Item -Recurse -Force -LiteralPath" if os.name == "nt" else "rm -rf"
    assert said.stdout.startswith(
        f"patchlock's own files are removed.\nYour own files stay in {tmp_path / 'installed' / 'mini@tiny'}\n"
        "Downloads are also in uv's cache, which other programs share. To remove it:\n"
        f"  $ {removal} {os.environ['UV_CACHE_DIR']}\nTo remove the rest:\n  $ {removal} "
    )
    assert not (tmp_path / "cache").exists()
    assert not other.exists()
    assert list((tmp_path / "installed").iterdir()) == [tmp_path / "installed" / "mini@tiny"]


def test_no_address_in_a_help_is_broken(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for columns in ("50", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        helps = "".join(face(name, "--help").stdout for name in COMMANDS)
        told[columns] = re.findall(r"https://\S+", helps)
    assert told["50"] == told["400"]
    assert len(told["50"]) > 1


def test_an_install_sees_that_the_tool_is_being_removed(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locked.app.is_file()
    (tmp_path / "cache" / "wheels").mkdir(parents=True, exist_ok=True)
    home, seen = tmp_path / "installed", list[bool]()
    held = cache_pruning.removal_lock(home)
    monkeypatch.setattr(atomic_files, "remove_tree", lambda _: seen.append(file_lock.is_held(held)))
    assert face("self", "remove", "--yes").returncode == 0
    assert (set(seen), held.exists()) == ({True}, False)
    with file_lock.hold(held, wait=0):
        said = face("install", "mini", "--profile", "tiny").stderr
        assert face("self", "remove", "--yes").returncode == 1
        assert held.exists()  # the other one's
    assert said.splitlines()[-1] == (
        f"error[busy]: patchlock is being removed at this moment ({home}); wait for that to end"
    )


def test_the_tool_does_not_remove_itself_from_an_install_that_has_not_finished(
    locked: World, face: Face, tmp_path: Path
) -> None:
    assert locked.app.is_file()
    folder = tmp_path / "installed" / "mini@tiny"
    folder.mkdir(parents=True)
    (folder / "journal").write_text("an install is running\n")
    end = f"({folder.parent}); first run `patchlock uninstall mini --profile tiny`\n"
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache" / "wheels").mkdir(exist_ok=True)
    with file_lock.hold(folder / "lock", wait=0):
        said = face("self", "remove", "--yes")
    assert (said.returncode, said.stderr) == (2, f"error[usage]: mini on tiny is being changed {end}")
    said = face("self", "remove", "--yes")
    assert (said.returncode, said.stderr) == (2, f"error[usage]: the install of mini on tiny did not finish {end}")
    assert (tmp_path / "cache" / "wheels").is_dir()
    assert face("uninstall", "mini", "--profile", "tiny").returncode == 0
    if os.name == "posix":
        python = tmp_path / "cache" / "tool-1" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        with subprocess.Popen([python, "-c", "input()", "-m", "patchlock", "lock"], stdin=subprocess.PIPE) as other:
            said = face("self", "remove", "--yes")
            other.kill()
        assert said.returncode == 1
        assert f"is running: patchlock lock, process {other.pid} ({tmp_path / 'cache'}); wait" in said.stderr
        script = tmp_path / "patchlock"
        script.write_text("input()\n")  # as pip, uv and pipx start it, with a Python of their own
        with subprocess.Popen(
            [sys.executable, script, "install", "mini"],
            stdin=subprocess.PIPE,
            env={**os.environ, "PATCHLOCK_CACHE_DIR": str(tmp_path / "cache")},
        ) as other:
            said = face("self", "remove", "--yes")
            other.kill()
        assert said.returncode == 1
        assert f"is running: patchlock install mini, process {other.pid} (" in said.stderr
    assert face("self", "remove", "--yes").returncode == 0


def test_the_tool_stays_where_an_install_began_while_it_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path / "installed"))
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "wheels").mkdir(parents=True)

    def begin(*_: object, **__: object) -> bool:
        (tmp_path / "installed" / "mini@tiny" / "source").mkdir(parents=True)
        (tmp_path / "installed" / "mini@tiny" / "journal").touch()
        return True

    monkeypatch.setattr(_output, "confirm", begin)
    assert main(["self", "remove"]) == 2
    assert "the install of mini on tiny did not finish" in capsys.readouterr().err
    assert (tmp_path / "cache" / "wheels").is_dir()
    assert main(["self", "remove", "--dry-run"]) == 0
    assert "Your own files" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [("-v", "install", "nope"), ("install", "mini", "-v")])
def test_verbose_says_nothing_twice(words: tuple[str, ...], locked: World, face: Face) -> None:
    assert locked.app.is_file()
    lines = [line for line in face(*words).stderr.splitlines() if not line.startswith("$ ")]
    assert lines
    assert len(set(lines)) == len(lines)


def test_a_log_file_has_the_commands_without_passwords(locked: World, face: Face, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "install.log"
    assert face("install", "mini", "--log-file", str(log)).returncode == 0
    text = log.read_text()
    assert re.search(r"^\d{4}-\d\d-\d\d .* \$ .*uv .*venv", text, re.MULTILINE)
    assert re.search(r" verify +\d+ checks passed", text)
    face("install", "nothing", "--log-file", str(log))
    assert log.read_text().endswith('error[unknown-app]: there is no app "nothing"; known: mini\n')


def test_quiet_says_only_the_result(locked: World, face: Face) -> None:
    said = face("-q", "install", "mini")
    assert (said.returncode, said.stderr) == (0, "")
    assert re.fullmatch(r"mini is installed .*\n  run  .*patchlock run mini\n", said.stdout), said.stdout


@pytest.mark.parametrize("words", [("diff",), ("status",)], ids=lambda words: words[0])
def test_patches_for_another_machine_are_shown_here(words: tuple[str, ...], patchlock: Patchlock) -> None:
    done = patchlock("patch", *words, "demo", "--profile", "cuda-windows")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tonewheel/engine.py" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
@pytest.mark.parametrize(("more", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["colour", "no-colour"])
def test_a_diff_is_coloured_in_the_pager(
    more: dict[str, str], is_coloured: bool, locked: World, patchlock: Patchlock
) -> None:
    assert locked.app.is_file()
    _, text = on_terminal(("patch", "diff", "mini"), "q", {"LESS": "", **more}, patchlock)
    assert ("\x1b[1m+++" in text, "ESC[" in text) == (is_coloured, False)
    _, short = on_terminal(("patch", "diff", "mini"), "q", more, patchlock)
    assert ("\x1b[1m+++" in short, "\x1b[?1049h" in short, "(END)" in short) == (is_coloured, False, False)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
@pytest.mark.parametrize(("columns", "is_shown"), [("80", True), ("50", False)])
def test_list_shows_what_an_app_is_for_where_there_is_room(columns: str, is_shown: bool, patchlock: Patchlock) -> None:
    _, text = on_terminal(("list",), "", {"COLUMNS": columns}, patchlock)
    assert ("Tonewheel, a tiny demo" in text, "…" in text) == (is_shown, is_shown)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals of POSIX")
def test_verify_stays_in_its_column(locked: World, patchlock: Patchlock) -> None:
    assert patchlock("install", "mini").returncode == 0
    _, text = on_terminal(("verify", "mini"), "", {"COLUMNS": "60"}, patchlock)
    lines = text[text.index("ok      present") :].splitlines()
    assert json.loads(patchlock("verify", "mini", "--json").stdout)["data"]["unverified"].startswith("not verified: no")
    assert [line for line in lines if not re.match(r"(ok {6}\w+|note) {2,}\S| {8,18}\S", line)] == []
    assert any(line.startswith(" " * 18) for line in lines)


@pytest.mark.parametrize("group", ["patch", "cache", "index", "self"])
def test_a_group_cuts_no_sentence(group: str, face: Face) -> None:
    told = face(group, "--help").stdout
    assert "..." not in told.partition("Commands:")[2]
