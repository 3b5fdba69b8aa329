"""`lock --diff` and `lock --cross-check`: what would change and why, and what others say; nothing is written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from conftest import ROOT, Said
from miniature import World, wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.core import uv
from patchlock.hardware.probes import probe
from patchlock.model import lockfile
from patchlock.model.errors import ProgramMissingError
from patchlock.model.lock_rules import Constraint, Exclusion, LockRules
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS, platform_of
from patchlock.operations import cross_check
from patchlock.operations.cross_check import Disagreement, ResolvedDistribution

Face = Callable[..., Said]
HERE = platform_of(probe())
assert HERE is not None


def _offer(world: World, name: str, version: str, *, uploaded: str) -> None:
    """Put one more version into the index."""
    page = world.wheels.parent / "index" / name / "index.html"
    path = wheel(world.wheels, name, version)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    row = f'<br>\n<a href="{path.as_uri()}#sha256={digest}" data-upload-time="{uploaded}">{path.name}</a>'
    page.parent.mkdir(exist_ok=True)
    page.write_text((page.read_text() if page.is_file() else "<!DOCTYPE html>") + row)


def _bytes(world: World) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (world.catalogue / "lockfiles").rglob("*.txt")}


def test_nothing_is_different_right_after_locking(locked: World, face: Face) -> None:
    done = face("lock", "mini", "--diff", "--platform", "linux-x86_64")
    assert "1 pair (" in done.stderr
    assert done.returncode == 0
    assert done.stdout == "mini × tiny × linux-x86_64  same       lockfiles/mini/tiny.linux-x86_64.txt\n"


def test_difference_is_told_with_its_cause_and_who_asks(locked: World, face: Face) -> None:
    before = _bytes(locked)
    _offer(locked, "beta", "2.0", uploaded="2026-06-01T00:00:00Z")
    later = ("--as-of", "2026-07-01T00:00:00Z")
    done = face("lock", "mini", "--diff", "--platform", "linux-x86_64", *later)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "mini × tiny × linux-x86_64  different  lockfiles/mini/tiny.linux-x86_64.txt",
        "  because  the cut-off: 2026-01-01T00:00:00Z → 2026-07-01T00:00:00Z",
        "  beta     1.5 → 2.0  requirements.txt:3",
    ]
    assert _bytes(locked) == before


def test_other_bytes_under_the_same_name_come_first_and_loud(locked: World, face: Face) -> None:
    _offer(locked, "beta", "1.6", uploaded="2025-06-01T00:00:00Z")
    lock = locked.catalogue / "lockfiles" / "mini" / "tiny.linux-x86_64.txt"
    old = lockfile.parse(lock.read_text(), "lock")
    sha256 = next(package.sha256 for package in old.packages if package.name == "gamma")
    lock.write_text(lock.read_text().replace(sha256, "0" * 64))
    done = face("lock", "mini", "--diff", "--platform", "linux-x86_64")
    lines = done.stdout.splitlines()
    assert lines[1] == "  because  the lines of the old lock were changed since it was written"
    assert lines[2].startswith("  ! gamma  2.0, other bytes  wheel py3-none-any: sha256 000000000000… → ")
    assert lines[3] == "  beta     1.5 → 1.6         requirements.txt:3"


def test_since_compares_with_a_commit_and_resolves_nothing(
    locked: World, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(locked.catalogue), "-c", "user.name=a", "-c", "user.email=a@b.test"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/none")
    assert face("lock", "--diff", "--since", "main").returncode == 0
    mac = locked.catalogue / "lockfiles" / "mini" / "tiny.macos-arm64.txt"
    mac.write_text(mac.read_text().replace("beta==1.5", "beta==2.0"))
    arm = mac.with_name("tiny.linux-aarch64.txt")
    arm.write_text(arm.read_text().replace("beta==1.5", "beta==2.0"))
    mac.with_name("tiny.windows-amd64.txt").unlink()
    done = face("lock", "--diff", "--since", "main")
    assert done.returncode == 1
    states = [re.split(r"  +", line)[1] for line in done.stdout.splitlines() if line.startswith("mini")]
    assert states == ["same", "different", "different", "different"]
    assert "  because  the lock no longer exists" in done.stdout
    assert done.stdout.count("  beta  1.5 → 2.0  requirements.txt:3") == 2

    pairs = json.loads(face("lock", "--diff", "--since", "main", "--json").stdout)["data"]["pairs"]
    assert pairs[1]["changes"] == pairs[3]["changes"]
    assert pairs[3]["changes"] == [
        {"name": "beta", "kind": "newer", "old": "1.5", "new": "2.0", "alarming": False, "why": "requirements.txt:3"}
    ]
    text = face("lock", "--diff", "--since", "main", "--markdown").stdout
    assert "### mini × tiny × linux-aarch64, mini × tiny × macos-arm64\n" in text
    assert text.count("| beta | 1.5 → 2.0 | requirements.txt:3 |") == 1
    assert "### mini × tiny × windows-amd64\n\n- the lock no longer exists\n" in text
    assert face("lock", "--diff", "--since", "main", "--markdown", "--platform", "linux-x86_64").stdout == (
        "No lock is different.\n"
    )
    done = face("lock", "--diff", "--since", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("is not a commit of the catalogue's repository") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--since", "HEAD"), "--since, --against and --markdown say how --diff does its work; add --diff"),
        (("--check", "--diff"), "--check, --diff and --cross-check are three questions; ask one at a time"),
        (("--diff", "--markdown", "--json"), "--markdown and --json are two answers to one question; leave one out"),
    ],
    ids=["since-alone", "two-modes", "two-answers"],
)
def test_contradictions_are_refused(world: World, face: Face, arguments: tuple[str, ...], sentence: str) -> None:
    done = face("lock", *arguments)
    assert done.returncode == 2
    what, _, remedy = sentence.partition("; ")
    assert what in done.stderr + done.stdout
    assert remedy in done.stderr + done.stdout


def test_others_agree_on_a_lock_also_where_newer_files_came_after_its_cut_off(locked: World, face: Face) -> None:
    _offer(locked, "beta", "2.0", uploaded="2026-06-01T00:00:00Z")
    done = face("lock", "mini", "--cross-check", "--json")
    assert done.returncode == 0, done.stdout
    pairs = {pair["pair"].split()[-1]: pair for pair in json.loads(done.stdout)["data"]["pairs"]}
    here = pairs.pop(HERE.name)
    assert [(one["tool"], one["disagreements"]) for one in here["opinions"]] == [
        ("pip", []),
        ("uv", []),
        ("pip-sync", []),
        ("pip-compile", []),
    ]
    assert all(pair["not_asked"].startswith("pip answers for the machine it runs on") for pair in pairs.values())


@pytest.mark.parametrize("until", ["", '\nuntil = "2026-07-01T00:00:00Z"'], ids=["any time", "until"])
def test_others_agree_on_what_an_exception_from_the_cut_off_lets_in(locked: World, face: Face, until: str) -> None:
    """Of delta there is nothing before the cut-off; of beta there is, and pip may take the newer one."""
    _offer(locked, "delta", "1.0", uploaded="2026-06-01T00:00:00Z")
    _offer(locked, "beta", "2.0", uploaded="2026-06-01T00:00:00Z")
    _offer(locked, "beta", "3.0", uploaded="2026-08-01T00:00:00Z")
    requirements = locked.upstream / "requirements.txt"
    requirements.write_bytes(requirements.read_bytes() + b"delta\r\n")
    locked.name_commit(locked.catalogue.parent)
    rule = '\n[[newer]]\nname = "{}"{}\nwhy = "x"\nsource = "tests"\n'
    beta = "" if not until else rule.format("beta", until)
    locked.app.write_text(locked.app.read_text() + rule.format("delta", until) + beta)
    assert face("lock", "mini", "--platform", HERE.name).returncode == 0
    done = face("lock", "mini", "--cross-check", "--platform", HERE.name, "--json")
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    assert [(one["tool"], one["disagreements"]) for one in pair["opinions"]] == [
        ("pip", []),
        ("uv", []),
        ("pip-sync", []),
        ("pip-compile", []),
    ]
    assert done.returncode == 0


def test_file_that_is_not_the_locks_is_found_by_pip(locked: World, face: Face) -> None:
    lock = locked.catalogue / "lockfiles" / "mini" / f"tiny.{HERE.name}.txt"
    lock.write_text(re.sub(r"(?m)^(beta==1.5 --hash=sha256:).{8}", r"\g<1>00000000", lock.read_text()))
    done = face("lock", "mini", "--cross-check", "--platform", HERE.name)
    assert done.returncode == 1
    assert "failed: pip gets other files than the lock names" in done.stdout


@pytest.mark.parametrize(
    ("said", "evidence"),
    [
        (
            (
                "  ERROR: Cannot install a and b because these package versions have conflicting dependencies.\n"
                "Traceback (most recent call last):\n  File x\nDistributionNotFound: ResolutionImpossible: for help"
            ),
            ("ERROR: Cannot install a and b because these package versions have conflicting dependencies.",),
        ),
        (
            "Traceback\nx.DistributionNotFound: No matching distribution found for a==9\n",
            ("No matching distribution found for a==9",),
        ),
    ],
    ids=["conflict", "missing"],
)
def test_pips_explanation_is_found_among_its_tracebacks(said: str, evidence: tuple[str, ...]) -> None:
    found = cross_check._unsolved(said)
    assert found is not None
    assert found.evidence == evidence
    assert cross_check._unsolved("ConnectionError: no route") is None


def test_question_that_pip_cannot_be_asked_is_named() -> None:
    rule = {"why": "x", "source": "tests", "profiles": (), "origin": Origin(file="x", line=1)}
    override = Constraint(requirement=Requirement("numpy<2"), **rule)  # type: ignore[arg-type]
    exclusion = Exclusion(name=canonicalize_name("deepspeed"), **rule)  # type: ignore[arg-type]
    order = SimpleNamespace(rules=dataclasses.replace(LockRules(), overrides=(override,), exclusions=(exclusion,)))
    assert cross_check.reason_no_counterpart(order) == "pip has nothing like [[override]] numpy, [[exclude]] deepspeed"  # type: ignore[arg-type]
    assert cross_check.reason_no_counterpart(SimpleNamespace(rules=LockRules())) == ""  # type: ignore[arg-type]


def test_missing_pip_tools_is_installed_with_the_uv_that_came_with_patchlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ProgramMissingError) as caught:
        cross_check.require_tools()
    command = shlex.join([str(uv.find()), "pip", "install", "--python", sys.executable, "pip", "pip-tools"])
    assert str(caught.value) == f"pip-tools is not installed with patchlock; install it: `{command}`"


def test_pip_is_asked_about_this_machine_and_this_python_only() -> None:
    profile = Catalogue(root=ROOT).profile("cpu")
    other = "windows-amd64" if HERE.os != "windows" else "linux-x86_64"
    here = dataclasses.replace(profile, python=Version(f"{sys.version_info.major}.{sys.version_info.minor}"))
    assert cross_check.reason_not_native(HERE, here, probe()) == ""
    assert cross_check.reason_not_native(PLATFORMS[other], here, probe()).endswith(
        f"the machine it runs on, {HERE.name}"
    )
    later = dataclasses.replace(profile, python=Version("3.99"))
    assert cross_check.reason_not_native(HERE, later, probe()).endswith("; run patchlock with 3.99")


def test_disagreements_name_versions_and_files() -> None:
    text = (ROOT / "lockfiles" / "demo" / "cpu.linux-x86_64.txt").read_text(encoding="utf-8")
    lock = lockfile.parse(text, "demo")
    same = {
        package.name: ResolvedDistribution(version=package.version, sha256=package.sha256) for package in lock.packages
    }
    assert cross_check.disagreements(lock, same) == ()
    first, second, third = lock.packages[:3]
    other = {name: found for name, found in same.items() if name != first.name}
    other[second.name] = ResolvedDistribution(version=second.version, sha256="f" * 64)
    other |= {
        third.name: ResolvedDistribution(version=lock.packages[0].version),
        "zzz": ResolvedDistribution(version=first.version),
    }  # type: ignore[dict-item]
    assert cross_check.disagreements(lock, other) == (
        Disagreement(name=first.name, locked=str(first.version), other=""),
        Disagreement(
            name=second.name,
            locked=f"{second.version} sha256 {second.sha256[:12]}…",
            other=f"{second.version} sha256 ffffffffffff…",
        ),
        Disagreement(name=third.name, locked=str(third.version), other=str(first.version)),
        Disagreement(name="zzz", locked="", other=str(first.version)),  # type: ignore[arg-type]
    )


def test_against_another_profile_says_what_its_lock_has_otherwise(face: Face) -> None:
    words = ("lock", "xtts-webui", "--diff", "--catalogue", str(ROOT), "--profile", "rocm-linux")
    done = face(*words, "--against", "cpu", "--json")
    assert done.returncode == 0, done.stdout
    (pair,) = json.loads(done.stdout)["data"]["pairs"]
    assert (pair["pair"], pair["state"]) == ("xtts-webui × rocm-linux × linux-x86_64", "different")
    (torch,) = (one for one in pair["changes"] if one["name"] == "torch")
    assert "+cpu" in torch["old"]
    assert "+rocm" in torch["new"]
    assert face(*words, "--against", "rocm-linux").stdout.split()[5] == "same"
    assert 'there is no profile "cp"; did you mean "cpu"?' in face(*words, "--against", "cp").stderr
    done = face("lock", "demo", "--diff", "--catalogue", str(ROOT), "--profile", "cpu", "--against", "mps-macos")
    assert re.findall(r"^demo.*", done.stdout, re.MULTILINE) == [
        "demo × cpu × macos-arm64  different  lockfiles/demo/cpu.macos-arm64.txt"
    ]
    refused = ("lock", "demo", "--diff", "--catalogue", str(ROOT), "--profile", "rocm-linux", "--against", "cpu")
    assert face(*refused).stdout == (
        "demo × rocm-linux × linux-x86_64  refused    demo cannot run on rocm-linux on linux-x86_64: ONNX Runtime 1.23 "
        "and later have no ROCm provider\n"
    )
    assert face(*words, "--against", "rocm-windows").stderr == (
        "error[usage]: there is nothing to compare: rocm-windows is for windows-amd64, and what you ask for is on "
        "linux-x86_64; name profiles of one platform with --profile and --against\n"
    )
    done = face(*words, "--against", "cpu", "--since", "HEAD")
    assert done.stderr == "error[usage]: --since and --against are two comparisons; ask for one at a time\n"
