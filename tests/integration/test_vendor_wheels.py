"""Vendors' wheels in locks: without asking the vendor, and never with other bytes under a known name."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import Patchlock
from loopback import LoopbackIndex
from miniature import PYTHON, World, index, this_platform, wheel
from sdists import ask
from test_lock import locks, sha256_of

from patchlock.locks import relock
from patchlock.model.errors import RecordChangedError
from patchlock.model.identities import Sha256

RECORDED = """\
[index]
url = "https://vendor.invalid/whl/cpu"

[[wheel]]
filename = "torch-2.7.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
sha256 = "1111111111111111111111111111111111111111111111111111111111111111"
requires = ["gamma>=2"]
source = "tests"

[[wheel]]
filename = "torch-2.7.0+cpu-cp311-cp311-win_amd64.whl"
sha256 = "2222222222222222222222222222222222222222222222222222222222222222"
requires = ["gamma>=2"]
source = "tests"

[[wheel]]
filename = "torchaudio-2.7.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
sha256 = "3333333333333333333333333333333333333333333333333333333333333333"
requires = ["torch==2.7.0"]
source = "tests"
"""


def test_vendor_wheels_are_locked_by_url_without_a_network(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.catalogue / "profiles" / "indexes").mkdir()
    (world.catalogue / "profiles" / "indexes" / "vendor.toml").write_text(RECORDED)
    profile = world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity')
    world.profile.write_text(re.sub('python = "[0-9.]+"', 'python = "3.11"', profile))
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta>=1\ntorchaudio\n")
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--json")
    pairs = {pair["pair"].split()[-1]: pair for pair in json.loads(done.stdout)["data"]["pairs"]}
    assert pairs["linux-x86_64"]["state"] == "written", pairs["linux-x86_64"]["detail"]
    lines = locks(world)["tiny.linux-x86_64.txt"].decode().splitlines()
    assert (
        "torch @ https://vendor.invalid/whl/cpu/torch-2.7.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl "
        f"--hash=sha256:{'1' * 64} # via torchaudio · wheel cp311-cp311-manylinux_2_28_x86_64"
    ) in lines
    assert any(line.startswith("gamma==2.0 ") for line in lines)
    assert pairs["windows-amd64"]["state"] == "failed"  # no torchaudio for Windows in this index
    assert "torchaudio" in pairs["windows-amd64"]["detail"]


@pytest.mark.parametrize(
    ("uploaded", "state"),
    [
        pytest.param("", "written", id="time-not-known"),
        pytest.param("2025-12-31T23:59:59Z", "written", id="before"),
        pytest.param("2026-01-02T00:00:00Z", "failed", id="after"),
    ],
)
def test_cut_off_holds_for_vendor_wheels_whose_time_is_known(
    world: World, patchlock: Patchlock, tmp_path: Path, uploaded: str, state: str
) -> None:
    (world.catalogue / "profiles" / "indexes").mkdir()
    recorded = world.catalogue / "profiles" / "indexes" / "vendor.toml"
    recorded.write_text(RECORDED.replace('source = "tests"', f'source = "tests"\nuploaded = "{uploaded}"'))
    profile = world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity')
    profile = re.sub(r"platforms = \[[^]]*\]", 'platforms = ["linux-x86_64"]', profile)
    world.profile.write_text(re.sub('python = "[0-9.]+"', 'python = "3.11"', profile))
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta>=1\ntorchaudio\n")
    world.name_commit(tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert (pair["state"], pair["code"]) == (state, "" if state == "written" else "unsatisfiable")


@pytest.mark.parametrize(
    ("name", "url", "told"),
    [
        pytest.param("torchaudio", "https://vendor.invalid/whl/cpu/", "", id="recorded"),
        pytest.param("torchaudio", "https://vendor.invalid/whl/cu1", "torchaudio", id="another-index"),
        pytest.param("beta", "https://vendor.invalid/whl/cpu", "beta", id="not-in-the-record"),
    ],
)
def test_source_of_uv_may_name_an_index_that_the_profile_records(
    world: World, patchlock: Patchlock, tmp_path: Path, name: str, url: str, told: str
) -> None:
    (world.catalogue / "profiles" / "indexes").mkdir()
    (world.catalogue / "profiles" / "indexes" / "vendor.toml").write_text(RECORDED)
    profile = world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity')
    world.profile.write_text(re.sub('python = "[0-9.]+"', 'python = "3.11"', profile))
    (world.upstream / "pyproject.toml").write_text(
        f'[project]\ndependencies = ["beta", "torchaudio"]\n[tool.uv.sources]\n{name} = [{{ index = "whl" }}]\n'
        f'[[tool.uv.index]]\nname = "whl"\nurl = "{url}"\nexplicit = true\n'
    )
    app = world.app.read_text().replace('["requirements.txt"]\n', '["pyproject.toml"]\n', 1)
    world.app.write_text(app[: app.index("[[patch]]")] + app[app.index("[[check]]") :])
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    sentence = (
        f'`{told}` is to come from the index "whl", and the profile tiny has it from another place (pyproject.toml:4); '
        f'drop the key with a patch (delete-key, key = "tool.uv.sources.{told}"), or record that index for the profile'
    )
    assert (pair["state"], pair["detail"]) == (("failed", sentence) if told else ("written", pair["detail"]))


def test_wheel_that_changed_under_its_name_is_refused_until_it_is_accepted(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").stderr.count("warning:") == 0
    before = locks(world)
    page = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta" / "index.html"
    old = sha256_of(next(world.wheels.glob("beta-1.5-*.whl")))
    page.write_text(page.read_text().replace(old, "4" * 64))
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    assert (done.returncode, pair["state"], pair["code"], locks(world)) == (1, "failed", "record-changed", before)
    sentence = f"{BETA} has sha256 {'4' * 64}, and under the same name there is sha256 {old} in the lock before"
    assert sentence in pair["detail"]
    assert f"`patchlock lock mini --profile tiny --accept-changed {BETA}`" in pair["detail"]
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--accept-changed", BETA)
    assert (done.returncode, done.stderr.count(f"warning: mini × tiny × linux-x86_64: {sentence}")) == (0, 1)
    assert b"4" * 64 in locks(world)["tiny.linux-x86_64.txt"]


BETA = "beta-1.5-py3-none-any.whl"


def test_wheel_that_contradicts_the_record_is_refused_until_it_is_accepted(world: World, tmp_path: Path) -> None:
    (world.catalogue / "profiles" / "indexes").mkdir()
    (world.catalogue / "profiles" / "indexes" / "vendor.toml").write_text(
        f'[index]\nurl = "https://vendor.invalid/whl"\n[[wheel]]\nfilename = "{BETA}"\nsha256 = "{"5" * 64}"\n'
        'source = "tests"\n'
    )
    world.profile.write_text(world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity'))
    request = ask(world, b"alpha==9.0\nbeta\n", tmp_path)
    lock = relock.resolve(request, relock.Kept())
    other = Sha256("4" * 64)
    at_its_address = tuple(dataclasses.replace(p, sha256=other) if p.name == "beta" else p for p in lock.packages)
    lock = dataclasses.replace(lock, packages=at_its_address)
    with pytest.raises(RecordChangedError, match=f"{other}.* there is sha256 {'5' * 64} in the record vendor"):
        relock.require_known_bytes(request, lock)
    assert len(relock.require_known_bytes(request, lock, [BETA])) == 1
    relock.write(request, lock)
    assert relock.require_known_bytes(request, lock) == ()


VENDOR = """\
[index]
url = "{url}"
flat = true

[index.keep]
distributions = ["beta"]
pythons = ["{python}"]
platforms = ["{platform}"]
"""


def test_vendor_without_hashes_is_recorded_into_a_catalogue_of_ones_own(
    world: World, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    vendor = LoopbackIndex()
    platform = this_platform().name
    try:
        (wheel_of_beta,) = world.wheels.glob("beta-1.5-*.whl")
        vendor.paths["/whl/cu128/"] = (200, "text/html", f'<a href="{BETA}">{BETA}</a>'.encode())
        vendor.file(BETA, wheel_of_beta.read_bytes())
        (world.catalogue / "profiles" / "indexes").mkdir()
        record = VENDOR.format(url=vendor.url, python=PYTHON, platform=platform)
        (world.catalogue / "profiles" / "indexes" / "vendor.toml").write_text(record)
        world.profile.write_text(world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity'))
        own = tmp_path / "own"
        online = {"UV_OFFLINE": "0"}
        assert patchlock("index", "record", "vendor", "--into", str(own), env=online).stdout.startswith("refused")
        done = patchlock("index", "record", "vendor", "--download", "--into", str(own), env=online)
        assert done.returncode == 0, done.stderr
        assert (world.catalogue / "profiles" / "indexes" / "vendor.toml").read_text() == record
        digest = sha256_of(wheel_of_beta)
        text = (own / "profiles" / "indexes" / "vendor.toml").read_text()
        assert f'sha256 = "{digest}"' in text
        assert "which gives no sha256; computed from the file on 20" in text

        catalogue = ("--catalogue", str(own), "--local-addresses")
        done = patchlock("lock", "mini", "--platform", platform, *catalogue)
        assert done.returncode == 0, done.stderr
        lock = (own / "lockfiles" / "mini" / f"tiny.{platform}.txt").read_text()
        assert f"beta @ {vendor.url}/{BETA} --hash=sha256:{digest}" in lock

        shutil.rmtree(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta")
        vendor.file(BETA, b"published again, or something else")
        env = {**online, "UV_CACHE_DIR": str(tmp_path / "cold"), "PATCHLOCK_CACHE_DIR": str(tmp_path / "cold-too")}
        done = patchlock("install", "mini", *catalogue, env=env)
        assert done.returncode == 1
        assert "error[hash-mismatch]" in done.stderr
        assert "neither the lock nor the record vendor knows them" in done.stderr
    finally:
        vendor.close()


def test_file_that_upstream_does_not_allow_is_refused(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta==1.5 --hash=sha256:" + b"0" * 64 + b"\n")
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    assert (done.returncode, pair["state"], pair["code"]) == (1, "failed", "requirements")
    assert "which is none of the 1 that upstream allows (requirements.txt:2)" in pair["detail"]


# --- what the index itself might answer -------------------------------------------------------------------------------

KEEP = """
[index.{key}]
distributions = ["{distributions}"]
pythons = ["{python}"]
platforms = ["linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64"]
"""
RECORD_IT = "on a machine that reaches it, run `patchlock index record vendor`"
MAY = "the record vendor is not known to be complete, and the index may have other versions than "
LATE = "the cut-off, 2026-01-01T00:00:00Z, does not hold for "
NO_DATES = (
    "profiles/indexes/vendor.toml does not say when each file was uploaded; for an older version, add a "
    "[[constraint]] to patches/mini/app.toml"
)
LOOK = "look at https://vendor.invalid/whl, and add what is there to profiles/indexes/vendor.toml"
LINE = "correct the line with a patch (set-requirement, rename-requirement or replace-text)"


def _ask_a_record(
    world: World, tmp_path: Path, patchlock: Patchlock, asked: str, keep: str, whole: str, versions: tuple[str, ...]
) -> dict[str, Any]:
    folder = world.catalogue / "profiles" / "indexes"
    folder.mkdir()
    filters = (("keep", keep), ("whole", whole))
    head = "".join(KEEP.format(key=key, distributions=text, python=PYTHON) for key, text in filters if text)
    wheels = "".join(
        f'\n[[wheel]]\nfilename = "delta-{version}-py3-none-any.whl"\nsha256 = "{number:064}"\nsource = "tests"\n'
        'uploaded = "2025-06-01T00:00:00Z"\n'
        for number, version in enumerate(versions)
    )
    (folder / "vendor.toml").write_text(f'[index]\nurl = "https://vendor.invalid/whl"\n{head}{wheels}')
    world.profile.write_text(world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity'))
    (world.upstream / "requirements.txt").write_bytes(f"alpha==9.0\nbeta>=1\n{asked}\n".encode())
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), [wheel(world.wheels, "delta", "1.0")])
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--explain", "0", "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    return cast("dict[str, Any]", pair)


@pytest.mark.parametrize(
    ("asked", "keep", "whole", "notices"),
    [
        pytest.param("delta==2.1.*", "delta>=2", "", [f"{MAY}delta 2.1.1: {RECORD_IT}"], id="of-a-series"),
        pytest.param("delta>=2", "delta>=2", "", [f"{MAY}delta 2.2.0+cpu: {RECORD_IT}"], id="or-newer"),
        pytest.param(
            "delta>=2",
            "",
            "",
            [f"{MAY}delta 2.2.0+cpu: {LOOK}"],
            id="of-a-folder",
        ),
        pytest.param(
            "delta>=2",
            "delta<2.2",
            "",
            [f"{MAY}delta 2.2.0+cpu: widen [index.keep] in profiles/indexes/vendor.toml; then, {RECORD_IT}"],
            id="beyond-what-is-kept",
        ),
        pytest.param("delta==2.1.1", "delta>=2", "", [], id="the-one"),
        pytest.param("delta<=2.1.1", "delta>=2", "", [], id="none-newer-is-asked-for"),
        pytest.param("delta==2.1.*", "delta>=2", "delta>=2", [], id="whole"),
        pytest.param(
            "delta==2.1.*", "delta>=2", "delta>=2.2", [f"{MAY}delta 2.1.1: {RECORD_IT}"], id="whole-elsewhere"
        ),
        pytest.param(
            "delta==2.1.*", "delta>=2", "delta!=2.1.2,>=2", [f"{MAY}delta 2.1.1: {RECORD_IT}"], id="one-was-left-out"
        ),
    ],
)
def test_newer_version_that_a_record_may_lack_is_told(
    world: World, patchlock: Patchlock, tmp_path: Path, asked: str, keep: str, whole: str, notices: list[str]
) -> None:
    pair = _ask_a_record(world, tmp_path, patchlock, asked, keep, whole, ("2.1.1", "2.2.0+cpu"))
    assert (pair["state"], pair["warnings"]) == ("written", notices)


def test_newer_ones_are_told_of_what_nothing_pins(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    """torchaudio 2.7.0 requires torch==2.7.0, so that a newer one could only come with a newer torch."""
    (world.catalogue / "profiles" / "indexes").mkdir()
    (world.catalogue / "profiles" / "indexes" / "vendor.toml").write_text(RECORDED)
    profile = world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity')
    world.profile.write_text(re.sub('python = "[0-9.]+"', 'python = "3.11"', profile))
    look = "look at https://vendor.invalid/whl/cpu, and add what is there to profiles/indexes/vendor.toml"
    for torch, notices in (
        ("torch==2.7.0", []),
        ("torch>=2", [f"{LATE}torch 2.7.0+cpu, torchaudio 2.7.0+cpu: {NO_DATES}", f"{MAY}torch 2.7.0+cpu: {look}"]),
        ("torch>=2\ntorchaudio==2.7.0", []),
    ):
        (world.upstream / "requirements.txt").write_bytes(f"alpha==9.0\nbeta>=1\ntorchaudio\n{torch}\n".encode())
        world.name_commit(tmp_path)
        done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
        (pair,) = json.loads(done.stdout)["data"]["pairs"]
        assert (pair["state"], pair["warnings"]) == ("written", notices)


def test_recorded_name_that_is_taken_from_pypi_is_told(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    pair = _ask_a_record(world, tmp_path, patchlock, "delta", "delta", "", ())
    assert (pair["state"], pair["warnings"]) == ("written", [f"{MAY}delta, which PyPI gave: {RECORD_IT}"])


@pytest.mark.parametrize(
    ("whole", "unknown", "remedy"),
    [
        pytest.param("", ", and is not known to be complete", f"{RECORD_IT}; or {LINE}", id="unknown"),
        pytest.param("delta>=2", "", LINE, id="whole"),
    ],
)
def test_version_that_a_record_does_not_have_is_told(
    world: World, patchlock: Patchlock, tmp_path: Path, whole: str, unknown: str, remedy: str
) -> None:
    pair = _ask_a_record(world, tmp_path, patchlock, "delta==99", "delta>=2", whole, ("2.1.1", "2.2.0+cpu"))
    what = f"the record vendor has no delta==99 for linux-x86_64 and Python {PYTHON}, only 2.1.1, 2.2.0+cpu{unknown}"
    assert (pair["state"], pair["code"]) == ("failed", "unsatisfiable")
    assert pair["detail"].splitlines()[0] == f"{what} (requirements.txt:3); {remedy}"
