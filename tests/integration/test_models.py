"""The models of an installed app: listed, fetched from a hub and from a vendor's server, linked, and removed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Patchlock
from hub import LoopbackHub, commit_of
from miniature import World, lock_here

BIG = bytes(range(256)) * 2000
SMALL = b'{"sample_rate": 24000}\n'
VOICE = b"voice" * 20000
COMMIT = commit_of("maker/listens")
TOKEN = "hf_this_is_a_secret_token"

DECLARED = """
[[model]]
repository = "maker/speaks"
into = "models/speaks"
why = "what it speaks with"
license = "CC-BY-4.0"
source = "https://example.com/why"
files = [
    {{ path = "model.bin", bytes = {size}, sha256 = "{sha256}" }},
    {{ path = "config.json" }},
]

[[model]]
repository = "maker/listens"
when = "use"
why = "what it listens with"
license = "MIT"
source = "https://example.com/why"
files = [{{ path = "deep/down/weights.bin" }}]

[[model]]
repository = "{vendor}/vendor"
into = "voices"
when = "request"
why = "a voice"
license = "MIT"
source = "https://example.com/why"
files = [{{ path = "v1/voice.bin", as = "voice.bin", bytes = {voice}, sha256 = "{voice_sha256}" }}]
"""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    for name in [name for name in os.environ if name.startswith("HF_")]:
        monkeypatch.delenv(name)
    found = LoopbackHub()
    found.files = {
        "maker/speaks/model.bin": BIG,
        "maker/speaks/config.json": SMALL,
        "maker/listens/deep/down/weights.bin": BIG[:-1],
        "vendor/v1/voice.bin": VOICE,
    }
    found.in_git = {"maker/speaks/config.json"}
    monkeypatch.setenv("HF_ENDPOINT", found.url)
    yield found
    found.close()


def declare(world: World, hub: LoopbackHub, text: str = DECLARED) -> None:
    """Give the miniature models, and install-ready locks."""
    filled = text.format(
        size=len(BIG), sha256=sha256(BIG), vendor=hub.url, voice=len(VOICE), voice_sha256=sha256(VOICE)
    )
    world.app.write_text(world.app.read_text() + filled)


@pytest.fixture
def installed(locked: World, patchlock: Patchlock, hub: LoopbackHub) -> World:
    declare(locked, hub)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    return locked


def source(tmp_path: Path) -> Path:
    return tmp_path / "installed" / "mini@tiny" / "source"


def cache(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".cache" / "huggingface" / "hub"


def listed(tmp_path: Path) -> dict[str, Path]:
    """Name what the fetched models are called, and where the app finds them."""
    pointer = cache(tmp_path) / "models--maker--listens" / "snapshots" / COMMIT / "deep" / "down" / "weights.bin"
    return {
        "model.bin": source(tmp_path) / "models" / "speaks" / "model.bin",
        "config.json": source(tmp_path) / "models" / "speaks" / "config.json",
        "weights.bin": pointer,
        "voice.bin": source(tmp_path) / "voices" / "voice.bin",
    }


def assert_all_there(tmp_path: Path) -> None:
    found = {name: path.read_bytes() for name, path in listed(tmp_path).items()}
    assert found == {"model.bin": BIG, "config.json": SMALL, "weights.bin": BIG[:-1], "voice.bin": VOICE}


def test_plan_and_install_say_how_much_will_come(locked: World, patchlock: Patchlock, hub: LoopbackHub) -> None:
    declare(locked, hub)
    assert patchlock(*lock_here()).returncode == 0
    for command in ("plan", "install"):
        done = patchlock(command, "mini")
        assert done.returncode == 0, done.stderr
        [line] = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("models ")]
        assert line.startswith(
            "models    500.0 KiB plus 1 file whose size the catalogue does not say at the first start, 1 file whose size the "
            "catalogue does not say when first used, 97.7 KiB that the app does not download itself; to download "
            f"{'after the install' if command == 'plan' else 'now'}: `"
        )
        assert line.endswith("models mini --profile tiny --fetch`" if command == "plan" else "models mini --fetch`")
    assert hub.asked == []


def test_models_of_an_app_that_is_not_installed_are_fetched_after_the_install(
    locked: World, patchlock: Patchlock, hub: LoopbackHub
) -> None:
    declare(locked, hub)
    done = patchlock("models", "mini", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("fetch them after the install: ")


def test_models_are_listed_with_size_licence_and_what_for(installed: World, patchlock: Patchlock) -> None:
    done = patchlock("models", "mini")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:8] == [
        "mini on tiny: 4 files, 597.7 KiB plus 2 files whose size the catalogue does not say; 4 not there",
        "",
        "  maker/speaks",
        "    what it speaks with",
        "    downloaded: at the first start",
        "    licence: CC-BY-4.0",
        "    not there  model.bin    500.0 KiB",
        "    not there  config.json  size not known",
    ]
    assert done.stdout.splitlines()[-1].startswith("fetch them: ")
    assert done.stdout.endswith("models mini --fetch\n")


def test_run_names_the_models_that_the_app_never_downloads(installed: World, patchlock: Patchlock) -> None:
    done = patchlock("run", "mini")
    assert done.stderr.startswith("missing: "), "before what the app itself prints"
    assert re.search(r"\. Fetch it first \(97\.7 KiB\) with `\S*patchlock models mini --fetch`\n", done.stderr)
    assert patchlock("models", "mini", "--fetch").returncode == 0
    assert "missing: " not in patchlock("run", "mini").stderr


def test_fetched_models_are_where_the_app_looks(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 0, done.stderr
    assert_all_there(tmp_path)
    places = listed(tmp_path)
    blob = cache(tmp_path) / "models--maker--speaks" / "blobs" / sha256(BIG)
    assert places["model.bin"].samefile(blob)
    assert not places["model.bin"].is_symlink()
    stored = next((tmp_path / "installed" / "models").rglob("voice.bin"))
    assert places["voice.bin"].samefile(stored)
    assert "4 files" in done.stdout
    assert "all are there" in done.stdout
    asked = len(hub.asked)
    again = patchlock("models", "mini", "--fetch")
    assert again.returncode == 0, again.stderr
    assert hub.asked[asked:] == []
    assert "all there" in patchlock("plan", "mini").stdout


def test_install_and_uninstall_leave_fetched_models_to_the_next_install(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    assert patchlock("models", "mini", "--fetch").returncode == 0
    done = patchlock("uninstall", "mini")
    assert done.returncode == 0, done.stderr
    assert "kept your " not in done.stdout
    assert "kept for the next install: 1.1 MiB of models" in done.stdout
    assert not source(tmp_path).exists()
    asked = len(hub.asked)
    assert patchlock("install", "mini").returncode == 0
    assert patchlock("models", "mini", "--fetch").returncode == 0
    assert_all_there(tmp_path)
    assert hub.asked[asked:] == []


def test_purge_removes_the_store_unless_another_installation_uses_it(
    installed: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert patchlock("models", "mini", "--fetch").returncode == 0
    other = tmp_path / "installed" / "mini@other"
    shutil.copytree(tmp_path / "installed" / "mini@tiny", other, symlinks=True)
    done = patchlock("uninstall", "mini", "--profile", "tiny", "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    pointer = listed(tmp_path)["weights.bin"]
    assert pointer.read_bytes() == BIG[:-1]
    assert list((tmp_path / "installed" / "models").rglob("voice.bin"))
    other.rename(tmp_path / "installed" / "mini@tiny")
    done = patchlock("uninstall", "mini", "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "installed" / "models").exists()
    assert not (cache(tmp_path) / "models--maker--listens").exists()
    assert not (cache(tmp_path) / "models--maker--speaks").exists()


def test_purge_keeps_what_another_program_has_put_into_the_shared_cache(
    installed: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    code = "import huggingface_hub as h; h.hf_hub_download('maker/listens', 'deep/down/weights.bin')"
    subprocess.run([sys.executable, "-c", code], check=True, env=patchlock.env(), capture_output=True)
    assert patchlock("models", "mini", "--fetch").returncode == 0
    assert patchlock("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert listed(tmp_path)["weights.bin"].read_bytes() == BIG[:-1]
    assert not (cache(tmp_path) / "models--maker--speaks").exists()


def test_the_user_s_own_model_file_is_taken_and_stays(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    place = listed(tmp_path)["voice.bin"]
    place.parent.mkdir()
    place.write_bytes(VOICE)
    assert patchlock("models", "mini", "--fetch").returncode == 0
    assert hub.got("voice.bin") == []
    done = patchlock("uninstall", "mini")
    assert "voices/voice.bin" in done.stdout
    assert place.read_bytes() == VOICE


def test_another_file_in_the_place_of_a_model_is_not_touched(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    place = listed(tmp_path)["model.bin"]
    place.parent.mkdir(parents=True)
    place.write_bytes(b"my own")
    voice = listed(tmp_path)["voice.bin"]
    voice.parent.mkdir(parents=True, exist_ok=True)
    voice.write_bytes(b"another voice")
    told = patchlock("models", "mini").stdout
    assert re.search(r"another    model.bin +6 bytes; the catalogue's has ", told)
    assert f"the app uses what lies in {place}, {voice}, and --fetch does not touch them\n" in told
    assert "to have the catalogue's, move them away, then fetch them: patchlock models mini" in told
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 1
    assert "error[model]: model.bin of maker/speaks is not the file that lies in its place" in done.stderr
    assert "models mini --fetch` again" in done.stderr
    assert f"voice.bin of {hub.url}/vendor is not the file that lies in its place ({voice})" in done.stderr
    assert (place.read_bytes(), voice.read_bytes()) == (b"my own", b"another voice")
    assert [name for name, at in listed(tmp_path).items() if not at.is_file()] == [], "the others were fetched"


def test_server_that_does_not_answer_is_named(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub.url
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    models = json.loads(patchlock("models", "mini", "--json").stdout)["data"]["models"]
    place = models[0]["files"][0]["place"]
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert {line.split()[2] for line in lines if line.startswith("  missing, too: ")} == {"copy", "download"}
    told = next(line for line in lines if line.startswith("error"))
    assert told == (
        "error[network]: 127.0.0.1 does not answer (maker/speaks, model.bin at main); "
        f"check the network, the proxy and HF_ENDPOINT; or download "
        f"https://huggingface.co/maker/speaks/resolve/main/model.bin in a browser, and save it as {place}"
    )
    assert "127.0.0.1 does not answer; trying for up to half a minute\n" in done.stderr


def test_cut_download_is_gone_on_with(installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cuts = {"maker/speaks/model.bin": [196_608], "vendor/v1/voice.bin": [65_536]}
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 0, done.stderr
    assert_all_there(tmp_path)
    assert hub.got("model.bin") == ["", "bytes=196608-"]
    assert hub.got("voice.bin") == ["", "bytes=65536-"]


def test_wrong_bytes_never_reach_a_place(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    hub.sends = {"maker/speaks/model.bin": BIG[::-1]}
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 1
    assert "error[hash-mismatch]" in done.stderr
    assert not listed(tmp_path)["model.bin"].exists()
    assert list(cache(tmp_path).rglob("*")) == []
    hub.sends = {"maker/speaks/config.json": SMALL[::-1]}
    done = patchlock("models", "mini", "--fetch")
    assert "error[hash-mismatch]: config.json of maker/speaks is not the file that was promised" in done.stderr
    assert not listed(tmp_path)["config.json"].exists()
    hub.sends = {}
    assert patchlock("models", "mini", "--fetch").returncode == 0
    assert_all_there(tmp_path)


def test_file_without_a_sha256_is_remembered_from_its_first_use(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    done = patchlock("models", "mini", "--fetch")
    assert f"this first download, sha256 {sha256(BIG[:-1])}, is trusted" in done.stderr
    shutil.rmtree(cache(tmp_path))
    hub.files["maker/listens/deep/down/weights.bin"] = BIG[:-2]
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 1
    assert "is not the file that was trusted at its first use" in done.stderr
    assert "models mini --fetch --accept-changed weights.bin`" in done.stderr
    assert hub.got("weights.bin") == [""]
    done = patchlock("models", "mini", "--fetch", "--accept-changed", "weights.bin")
    assert done.returncode == 0, done.stderr
    assert listed(tmp_path)["weights.bin"].read_bytes() == BIG[:-2]


def test_a_token_is_used_and_never_told(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    hub.token = TOKEN
    refused = patchlock("models", "mini", "--fetch")
    assert refused.returncode == 1
    assert "the server does not have that file, or does not show it to you" in refused.stderr
    assert "HF_TOKEN" in refused.stderr
    wrong = patchlock("models", "mini", "--fetch", env={"HF_TOKEN": f"{TOKEN}_no"})
    assert wrong.returncode == 1
    hub.files.pop("vendor/v1/voice.bin")  # which the token is not for
    done = patchlock("models", "mini", "--fetch", env={"HF_TOKEN": TOKEN})
    assert done.returncode == 1
    assert "error[download]: voice.bin could not be fetched" in done.stderr
    assert listed(tmp_path)["model.bin"].read_bytes() == BIG
    told = [done.stdout, done.stderr, wrong.stdout, wrong.stderr, patchlock("models", "mini", "--json").stdout]
    folders = (tmp_path / "installed", tmp_path / "cache", tmp_path / "home")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert not any(TOKEN in text for text in told)
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_variables_of_hugging_face_hold(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    elsewhere = {"HF_HOME": str(tmp_path / "hf")}
    assert patchlock("models", "mini", "--fetch", env=elsewhere).returncode == 0
    assert (tmp_path / "hf" / "hub" / "models--maker--listens" / "refs" / "main").read_text() == COMMIT
    assert not cache(tmp_path).exists()
    offline = patchlock("models", "mini", "--fetch", env={"HF_HUB_OFFLINE": "1"})
    assert offline.returncode == 1
    assert "error[network]: weights.bin is not here, and HF_HUB_OFFLINE forbids to fetch it" in offline.stderr
    assert not any("agent" in path for _, path, _ in hub.asked)


def test_programs_of_hugging_face_find_what_was_fetched(
    installed: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    assert patchlock("models", "mini", "--fetch").returncode == 0
    code = "import huggingface_hub as h; print(h.hf_hub_download('maker/listens', 'deep/down/weights.bin'))"
    for extra in ({}, {"HF_HUB_OFFLINE": "1"}):
        before = len(hub.got("weights.bin"))
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, env=patchlock.env(extra), capture_output=True, text=True
        )
        assert done.stdout.strip() == str(listed(tmp_path)["weights.bin"])
        assert len(hub.got("weights.bin")) == before


def test_a_cache_of_the_app_s_own_is_filled_and_emptied(
    locked: World, patchlock: Patchlock, hub: LoopbackHub, tmp_path: Path
) -> None:
    text = DECLARED.partition('[[model]]\nrepository = "maker/listens"')[2].partition("[[model]]")[0]
    declare(locked, hub, '\n[[model]]\nrepository = "maker/listens"\ncache = "ckpt"' + text)
    assert patchlock(*lock_here()).returncode == 0
    assert patchlock("install", "mini").returncode == 0
    done = patchlock("models", "mini", "--fetch")
    assert done.returncode == 0, done.stderr
    inside = "models--maker--listens/snapshots/" + COMMIT + "/deep/down/weights.bin"
    assert (source(tmp_path) / "ckpt" / inside).samefile(cache(tmp_path) / inside)
    assert "all are there" in patchlock("models", "mini").stdout
    done = patchlock("uninstall", "mini")
    assert done.returncode == 0, done.stderr
    assert "yours" not in done.stdout
    assert not source(tmp_path).exists()


def test_models_of_an_app_that_is_not_installed_are_listed_and_not_fetched(
    locked: World, patchlock: Patchlock, hub: LoopbackHub
) -> None:
    declare(locked, hub)
    done = patchlock("models", "mini", "--profile", "tiny", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    assert [one["repository"] for one in data["models"]] == ["maker/speaks", "maker/listens", f"{hub.url}/vendor"]
    assert data["models"][0]["files"][0]["bytes"] == len(BIG)
    assert data["models"][0]["files"][1]["sha256"] is None
    assert {file["state"] for one in data["models"] for file in one["files"]} == {"missing"}
    done = patchlock("models", "mini", "--profile", "tiny", "--fetch")
    assert done.returncode == 1
    assert "error[not-installed]" in done.stderr
