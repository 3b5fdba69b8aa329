"""`verify` on a machine whose card is dead, wrong, hung or gone: the whole road with a pretended torch."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import miniature
import pytest
from conftest import ROOT, Patchlock

from patchlock.model.backends import INSTALL_KERNELS, TORCH_KERNELS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the faults are signals")

ALL, INSTALLED = len(TORCH_KERNELS), len(INSTALL_KERNELS)
EXPECT = """\
[[expect]]
kernel = "stft"
outcomes = ["crashes"]
why = "there are no complex numbers"
source = "https://example.org/stft"
"""

OPTIONAL = """
[[patch]]
id = "fft-on-cpu"
why = "cards without complex numbers"
source = "tests"
op = "replace-expression"
paths = ["app.py"]
pattern = '"no CUDA here"'
replacement = '"no FFT here"'
optional = "fft-on-cpu"
gives = "transforms on the CPU"
helps = ["stft", "rfft"]

[[patch.ensure]]
check = "no-string"
value = "no CUDA here"
"""


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make a world whose app has a torch and whose machine has a card, and lock it; one for all tests."""
    folder = tmp_path_factory.mktemp("card")
    world = miniature.build(folder / "world")
    text = (ROOT / "tests" / "support" / "pretend_torch.py").read_text()
    miniature.wheel(world.wheels, "torch", "2.13.0", files={"torch.py": text})
    miniature.index(folder / "world" / "index", sorted(world.wheels.iterdir()))
    world.app.write_text(world.app.read_text() + OPTIONAL)
    requirements = world.upstream / "requirements.txt"
    requirements.write_bytes(requirements.read_bytes() + b"torch==2.13.0\r\n")
    world.name_commit(folder)
    world.profile.write_text(world.profile.read_text() + 'back-end = "cuda"\n')
    expectations = world.profile.parent / "expectations"
    expectations.mkdir()
    (expectations / "cuda.toml").write_text(EXPECT)
    made = {
        **world.env,
        "PATCHLOCK_CACHE_DIR": str(folder / "cache"),
        "UV_CACHE_DIR": str(folder / "uv"),
        "UV_OFFLINE": "1",
    }
    made |= {"HOME": str(folder), "PATCHLOCK_HOME": str(folder / "home"), "UV_PYTHON_DOWNLOADS": "never"}
    done = Patchlock(folder)(*miniature.lock_here(), env=made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def installed(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the app while only what is expected fails."""
    done = Patchlock(tmp_path_factory.mktemp("here"))("install", "mini", env=variables | card("stft=abort"))
    assert done.returncode == 0, done.stderr
    return Path(variables["PATCHLOCK_HOME"]) / "mini@tiny"


@pytest.fixture(autouse=True)
def here(variables: dict[str, str], guards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in that world."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def card(faults: str = "stft=abort", seconds: int = 20) -> dict[str, str]:
    return {"PRETEND_TORCH": faults, "PATCHLOCK_KERNEL_SECONDS": str(seconds)}


def verified(patchlock: Patchlock, faults: str, seconds: int = 20) -> tuple[int, dict[str, Any]]:
    done = patchlock("verify", "mini", "--json", env=card(faults, seconds))
    return done.returncode, json.loads(done.stdout)["data"]


def test_install_proves_some_kernels_and_verify_all(installed: Path, patchlock: Patchlock) -> None:
    receipt = next(installed.glob("environments/*/receipt.toml")).read_text()
    assert "torch 2.13.0+pretended: cuda:0 is Pretended GPU" in receipt
    known = "its profiler saw each of them there; stft as expected not"
    assert f"{INSTALLED - 1} of {INSTALLED} kernels work on cuda:0 (Pretended GPU); {known}" in receipt
    done = patchlock("install", "mini", "--reinstall", env=card())
    assert done.stdout.strip().startswith("mini is installed and verified on tiny (")
    assert re.search(rf"\n  verified  \d+ checks passed, {INSTALLED - 1} kernels computed on cuda\n", done.stdout)
    assert done.stdout.splitlines()[-1].startswith("  run       ")
    told = patchlock("install", "mini", "--reinstall", "-v", env=card()).stdout
    assert "\n  verified  present   packages: " in told
    done = patchlock("verify", "mini", env=card("stft=abort,bmm=slow"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    levels = [line.split()[1] for line in lines if line.startswith("ok ")]
    assert levels == sorted(levels, key=["present", "loads", "starts", "computes"].index)
    detail = f"{ALL - 1} of {ALL} kernels work on cuda:0 (Pretended GPU); {known}"
    assert f"ok      computes  torch-cuda:0: {detail}" in lines
    assert sum(line.split()[1:2] == ["cuda:0"] for line in lines if not line.startswith("note")) == ALL
    assert any("as expected: there are no complex numbers (https://example.org/stft)" in line for line in lines)
    assert [line for line in lines if line.startswith("note")] == [
        f"note    cuda:0 is slower than the CPU in 1 of {ALL - 1} kernels: bmm",
        "note    stft: what does without is installed by `patchlock install mini --profile tiny --with fft-on-cpu`",
    ]


BROKEN = {
    "mm-bf16": ("zeros", "wrong numbers", "all zeros"),
    "linear": ("raise", "raises", "no kernel image is available"),
    "stft": ("shifted", "wrong numbers", "wrong by 2.5e-01"),  # it was expected to crash
    "rfft": ("segv", "crashes", "SIGSEGV"),
    "conv1d": ("hang", "hangs", "no end within 3 seconds"),
    "sdpa": ("oom", "out of memory", "CUDA out of memory"),
    "topk": ("elsewhere", "falls back", "on cpu, not on cuda:0"),
}


def test_each_broken_kernel_is_told_as_what_it_is(installed: Path, patchlock: Patchlock) -> None:
    code, data = verified(patchlock, ",".join(f"{name}={row[0]}" for name, row in BROKEN.items()), seconds=3)
    failed = {row["kernel"]: row for row in data["proofs"]["kernels"] if row["failed"]}
    assert code == 1
    assert {name: row["outcome"] for name, row in failed.items()} == {name: row[1] for name, row in BROKEN.items()}
    assert [name for name, row in BROKEN.items() if row[2] not in failed[name]["detail"]] == []
    (result,) = [check for check in data["checks"] if check["id"] == "torch-cuda:0"]
    assert (result["level"], result["passed"]) == ("computes", False)
    assert result["detail"].startswith(f"{ALL - len(BROKEN)} of {ALL} kernels work on cuda:0 (Pretended GPU); ")
    assert "; stft: wrong numbers (wrong by" in result["detail"]


@pytest.mark.parametrize(("fault", "outcome"), [("raise", "raises"), ("shifted", "wrong numbers")])
def test_on_a_broken_card_nothing_is_called_working(
    installed: Path, patchlock: Patchlock, fault: str, outcome: str
) -> None:
    code, data = verified(patchlock, f"*={fault}")
    outcomes = [row["outcome"] for row in data["proofs"]["kernels"]]
    assert (code, outcomes) == (1, [outcome] * ALL)


def test_where_the_first_kernel_hangs_the_others_are_not_tried(installed: Path, patchlock: Patchlock) -> None:
    code, data = verified(patchlock, "*=hang", seconds=1)
    outcomes = [row["outcome"] for row in data["proofs"]["kernels"]]
    assert (code, outcomes) == (1, ["hangs", *["not available"] * (ALL - 1)])
    assert data["proofs"]["kernels"][1]["detail"] == "not tried: the first kernel, mm-f32: hangs"


def test_a_machine_without_its_card_does_not_verify(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("verify", "mini", env=card("no-card="))
    assert done.returncode == 1
    wanted = "torch 2.13.0+pretended has no cuda device: Found no NVIDIA driver on your system."
    assert f"FAILED  loads     torch-devices: {wanted}" in done.stdout.splitlines()


def test_a_driver_that_crashes_when_it_is_asked_does_not_verify(installed: Path, patchlock: Patchlock) -> None:
    code, data = verified(patchlock, "devices=abort")
    (result,) = [check for check in data["checks"] if check["id"] == "torch-devices"]
    assert (code, result["passed"]) == (1, False)
    assert "has no cuda device: crashes: SIGABRT in the stage “devices”" in result["detail"]


def test_reports_are_kept_and_compared(installed: Path, patchlock: Patchlock) -> None:
    (installed / "verify.json").write_text("{not json")
    _, first = verified(patchlock, "")
    assert any("is rewritten" in note for note in first["notes"])
    assert 'stft on cuda:0 works now: drop the expectation of "crashes"' in first["notes"]
    _, worse = verified(patchlock, "stft=abort,lstm=zeros")
    note = next(note for note in worse["notes"] if "lstm" in note)
    assert note.startswith("worse than on 20")
    assert note.endswith(": lstm on cuda:0: wrong numbers, and was: works")
    kept = json.loads((installed / "verify.json").read_text())
    assert [row["outcome"] for row in kept["kernels"] if row["kernel"] == "lstm"] == ["wrong numbers"]


def test_verify_quick_runs_no_kernel(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("verify", "mini", "--quick", "--json", env=card("*=hang"))
    assert (done.returncode, json.loads(done.stdout)["data"]["proofs"]) == (0, None)


def test_a_patience_that_is_no_number_is_a_mistake(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("verify", "mini", env={"PATCHLOCK_KERNEL_SECONDS": "soon"})
    assert done.returncode != 0
    assert 'PATCHLOCK_KERNEL_SECONDS is "soon", and must be a number of seconds above 0' in done.stderr


def test_an_install_without_a_card_says_that_nothing_was_computed(patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("install", "mini", "--no-device", env=card("no-card=") | {"PATCHLOCK_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "nothing was computed, and `patchlock verify` fails until there is one" in done.stdout
    assert re.match(r"\nmini is installed on tiny \(.*\) in .* s; not verified: no kernel was computed\n", done.stdout)
    [stage] = [line for line in done.stderr.splitlines() if line.startswith("verify")]
    assert " checks passed, no kernel was computed (" in stage
    [receipt] = [path.read_text() for path in tmp_path.glob("mini@tiny/environments/*/receipt.toml")]
    again = patchlock("install", "mini", "--json", env=card("no-card=") | {"PATCHLOCK_HOME": str(tmp_path)})
    told = "not verified: no kernel was computed"
    assert json.loads(again.stdout)["data"]["receipt"]["unverified"] == told
    assert told in patchlock("status", env={"PATCHLOCK_HOME": str(tmp_path)}).stdout
    assert "installed and verified" not in done.stdout + done.stderr + again.stdout + again.stderr + receipt
    assert patchlock("verify", "mini", env=card("no-card=") | {"PATCHLOCK_HOME": str(tmp_path)}).returncode == 1


def test_an_install_without_a_card_fails_unless_that_is_meant(patchlock: Patchlock, tmp_path: Path) -> None:
    variables = card("no-card=") | {"PATCHLOCK_HOME": str(tmp_path)}
    done = patchlock("install", "mini", "--json", env=variables)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"], answer["data"]["changed"]) == (1, False, True)
    assert (
        answer["error"]["what"]
        == "mini is installed; not verified: nothing was computed on cuda, as no device was found"
    )
    assert patchlock("run", "mini", env=variables).returncode == 0  # it is installed all the same


WRONG_BUILDS = {"built=": "the CPU alone", "built=hip": "ROCm"}


@pytest.mark.parametrize(("fault", "built"), WRONG_BUILDS.items())
def test_a_torch_that_is_built_for_something_else_is_not_installed(
    patchlock: Patchlock, tmp_path: Path, fault: str, built: str
) -> None:
    done = patchlock("install", "mini", env=card(fault) | {"PATCHLOCK_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        f"  torch-build (loads): torch 2.13.0+pretended is the wrong wheel: it is built for {built}, and the profile "
        "needs a torch for CUDA; name an index that has it in the profile, run `patchlock lock mini --profile tiny`, "
        "and install again"
    ) in done.stderr.splitlines()
    assert not list(tmp_path.glob("mini@tiny/current"))


@pytest.mark.parametrize(("fault", "built"), WRONG_BUILDS.items())
def test_a_torch_that_is_built_for_something_else_does_not_verify(
    installed: Path, patchlock: Patchlock, fault: str, built: str
) -> None:
    code, data = verified(patchlock, fault)
    [result] = [check for check in data["checks"] if not check["passed"]]
    assert (code, result["id"], data["proofs"]["kernels"]) == (1, "torch-build", [])
    assert f"it is built for {built}, and the profile needs a torch for CUDA" in result["detail"]
    told = patchlock("verify", "mini", env=card(fault)).stderr.splitlines()[-1]
    assert told == "to lock what the profile needs: patchlock lock mini --profile tiny"


def test_an_install_on_a_dead_card_is_refused(patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("install", "mini", env=card("*=raise") | {"PATCHLOCK_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert f"0 of {INSTALLED} kernels work on cuda:0 (Pretended GPU); " in done.stderr
    assert not list(tmp_path.glob("mini@tiny/current"))


def test_mistakes_in_expectations_and_back_ends_are_found_by_check(
    variables: dict[str, str], patchlock: Patchlock, tmp_path: Path
) -> None:
    catalogue = tmp_path / "catalogue"
    shutil.copytree(variables["PATCHLOCK_CATALOGUE"], catalogue)
    (catalogue / "profiles/expectations/cuda.toml").write_text(EXPECT.replace('"stft"', '"sfft"'))
    (catalogue / "profiles/expectations/cudda.toml").write_text(EXPECT)
    profile = catalogue / "profiles/tiny.toml"
    profile.write_text(profile.read_text().replace('"cuda"', '"kuda"'))
    done = patchlock("check", env={"PATCHLOCK_CATALOGUE": str(catalogue)})
    told = done.stdout + done.stderr
    assert done.returncode != 0
    assert 'there is no kernel "sfft"' in told
    assert 'there is no back end "cudda"' in told
    assert 'there is no back end "kuda"' in told


def test_the_report_goes_with_the_installation(
    patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path))
    assert patchlock("install", "mini", env=card()).returncode == 0
    report = tmp_path / "mini@tiny" / "verify.json"
    assert verified(patchlock, "stft=abort")[0] == 0
    assert report.exists()
    (tmp_path / "mini@tiny" / "source" / "mine.txt").write_text("mine")
    assert patchlock("uninstall", "mini").returncode == 0
    assert not report.exists()
