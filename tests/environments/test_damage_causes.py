"""From evidence to a likely cause and its confidence, and from newer packages to the one that changed a locked one."""

from __future__ import annotations

import dataclasses

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.environments import damage
from patchlock.environments.damage import DamageFinding, Evidence, NewerDistribution

LAID = 1_767_225_600.0  # 2026-01-01 00:00 UTC
SEEN = Evidence(path="torch/lib/x.py", wanted=10, size=10, modified=LAID - 9, laid=LAID, is_text=True)
LATER = "2026-01-01 01:00 UTC"

CAUSES = [
    pytest.param({"modified": LAID + 3600}, f"probably a person or a tool edited it in place on {LATER}, after the install", id="edited"),
    pytest.param({"modified": LAID + 3600, "is_text": False}, f"probably a tool wrote to it in place on {LATER}, after the install", id="written"),
    pytest.param({"modified": LAID + 3600, "links": 3}, f"probably a person or a tool edited it in place on {LATER}, after the install; SHARED", id="shared"),
    pytest.param({}, "possibly a damaged disk or memory: it was not written since the install, as its time says", id="not written"),
    pytest.param({"size": 4}, "possibly a damaged disk or a cut: it is shorter, and was not written since the install", id="shorter"),
    pytest.param({"ends_in_zeros": True}, "probably a damaged disk or a power cut, last written 2025-12-31 23:59 UTC: it ends in zeros", id="zeros"),
    pytest.param({"size": None}, "probably removed by a person or a tool: nothing else says who", id="missing text"),
    pytest.param({"path": "a/b.dll", "size": None}, "probably removed by a person or a tool: nothing else says who", id="missing library, with others"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "said"), CAUSES)
def test_likely_cause_is_said_with_its_confidence(changed: dict[str, object], said: str) -> None:
    seen = dataclasses.replace(SEEN, **changed)
    assert damage.cause(seen, all_taken=False, is_windows=False, shared="SHARED") == said


@pytest.mark.parametrize("path", ["a/b.dll", "a.pyd", "Scripts/x.exe", "torch/lib/libcudnn.so.9"])
@pytest.mark.parametrize("size", [None, 0])
def test_programs_that_alone_are_gone_point_to_an_antivirus(path: str, size: int | None) -> None:
    seen = dataclasses.replace(SEEN, path=path, size=size)
    assert seen.looks_taken
    windows = damage.cause(seen, all_taken=True, is_windows=True, shared="")
    assert windows.startswith("probably an antivirus took it away, as only programs are gone: look in Windows Security")
    assert "`Get-MpThreatDetection`" in windows
    assert damage.cause(seen, all_taken=True, is_windows=False, shared="").startswith("possibly an antivirus")


@pytest.mark.parametrize(
    "changed", [{"path": "a.py", "size": None}, {"path": "a.so", "size": 4}, {"path": "a.so", "size": 0, "wanted": 0}]
)
def test_other_files_do_not_point_to_an_antivirus(changed: dict[str, object]) -> None:
    assert not dataclasses.replace(SEEN, **changed).looks_taken


def test_finding_reads_as_a_sentence() -> None:
    found = DamageFinding(
        distribution=canonicalize_name("torch"), path="torch/x.py", expected="10 bytes", found="nothing", cause="cause"
    )
    assert str(found) == "torch: torch/x.py: expected 10 bytes, found nothing; cause"


# --- who changed a package --------------------------------------------------------------------------------------------


def new(name: str, *requires: str, requested: bool = True, installer: str = "pip", url: str = "") -> NewerDistribution:
    """Make a distribution that was installed an hour after the install."""
    return NewerDistribution(
        name=canonicalize_name(name),
        version=Version("2.0"),
        installer=installer,
        requested=requested,
        url=url,
        requires=tuple(Requirement(line) for line in requires),
        installed=LAID + 3600,
    )


TORCH = new("torch", requested=False)
BLAMED = [
    pytest.param((TORCH, new("xformers", "torch==2.0")), f"torch was changed by pip on {LATER}: xformers 2.0 was asked for, and requires torch==2.0", id="who was asked for"),
    pytest.param((TORCH, new("tool", "xformers"), new("xformers", "torch==2.0", requested=False)), f"torch was changed by pip on {LATER}: tool 2.0 was asked for, and requires torch==2.0 through xformers", id="through another"),
    pytest.param((new("torch"), new("other", "torch>=1")), f"torch 2.0 was asked for by name, and installed by pip on {LATER}", id="by name"),
    pytest.param((new("torch", installer="uv"), new("other", "torch>1.9", installer="uv")), f"torch was changed by uv on {LATER}: other 2.0 was asked for, and requires torch>1.9", id="uv marks all"),
    pytest.param((new("torch", url="https://x/t.whl"),), f"torch 2.0 was asked for by name, and installed from https://x/t.whl by pip on {LATER}", id="by address"),
    pytest.param((TORCH,), f"torch 2.0 was installed by pip on {LATER}", id="nobody asked"),
    pytest.param((new("torch", requested=False, installer=""),), f"torch 2.0 was installed by an unknown tool on {LATER}", id="no installer"),
    pytest.param((new("other"),), "", id="nothing says"),
    pytest.param((TORCH, new("a", "b"), new("b", "a", "torch>1", requested=False)), f"torch was changed by pip on {LATER}: a 2.0 was asked for, and requires torch>1 through b", id="circle"),
]  # fmt: skip


@pytest.mark.parametrize(("newcomers", "said"), BLAMED)
def test_package_that_changed_another_is_named(newcomers: tuple[NewerDistribution, ...], said: str) -> None:
    assert damage.blame(canonicalize_name("torch"), Version("1.5"), newcomers) == said
