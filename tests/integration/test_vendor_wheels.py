"""Vendors' wheels in locks: without asking the vendor, and never with other bytes under a known name."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World
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


def test_file_that_upstream_does_not_allow_is_refused(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta==1.5 --hash=sha256:" + b"0" * 64 + b"\n")
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    assert (done.returncode, pair["state"], pair["code"]) == (1, "failed", "requirements")
    assert "which is none of the 1 that upstream allows (requirements.txt:2)" in pair["detail"]
