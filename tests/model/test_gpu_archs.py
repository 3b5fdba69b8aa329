"""GPU architectures: which names there are, what runs where, and every sentence about a wheel that does not fit."""

from __future__ import annotations

import pytest
from packaging.utils import NormalizedName
from policy_values import digest, package

from patchlock.model.gpu_archs import is_found, ordered, runs, wrong_archs
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage
from patchlock.model.policy import ArchFree, Family, RecordedWheelFacts, Rules

HEAD, MEMBER = NormalizedName("torch"), NormalizedName("torchvision")
FAMILY = Family(head=HEAD, members={MEMBER: {}}, file="torch-family.toml")
REMEDY = "pin a version or take an index whose wheel has it, or declare an [[exception]] with its reason"
WHEEL = "cp312-cp312-manylinux_2_28_x86_64"


@pytest.mark.parametrize(
    ("text", "of_a_scan"),
    [
        pytest.param("sm_110", True, id="cuda"),
        pytest.param("gfx1201", True, id="rocm"),
        pytest.param("gfx90a", True, id="rocm-with-a-letter"),
        pytest.param("compute_90", True, id="ptx"),
        pytest.param("gfx12-generic", True, id="generic"),
        pytest.param("gfx9-4-generic", True, id="generic-of-a-branch"),
        pytest.param("compressed-rocm", True, id="unreadable"),
        pytest.param("sm_1", False, id="one-digit"),
        pytest.param("gfx12013", False, id="five-digits"),
        pytest.param("sm_110a", False, id="suffix"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_names_of_architectures(text: str, of_a_scan: bool) -> None:
    assert is_found(text) == of_a_scan


@pytest.mark.parametrize(
    ("found", "arch", "expected"),
    [
        pytest.param("gfx120", "gfx1201", False, id="beginning-of-a-name-is-no-family"),
        pytest.param("gfx11-generic", "gfx1201", False, id="generic-of-another-family"),
        pytest.param("sm_90a", "sm_90", True, id="suffix-a"),
        pytest.param("sm_90", "sm_100", False, id="older-cubin"),
        pytest.param("compute_90", "sm_90", True, id="ptx-of-the-same"),
    ],
)
def test_code_of_one_architecture_on_another(found: str, arch: str, expected: bool) -> None:
    assert runs({found}, arch) is expected
    assert runs([found, "gfx1201" if arch.startswith("sm") else "sm_75"], arch) is expected


def test_architectures_of_one_number_are_ordered_by_their_letters() -> None:
    assert ordered(["gfx90c", "gfx90a", "gfx9-4-generic", "gfx906"]) == ["gfx9-4-generic", "gfx90a", "gfx90c", "gfx906"]


def _rules(known: LockedPackage, *archs: str, filename: str = "torch-2.0-py3-none-any.whl", free: str = "") -> Rules:
    facts = RecordedWheelFacts(filename=filename, archs=frozenset(archs), source="tests")
    exempt = (ArchFree(name=NormalizedName(free), why="w", source="s"),) if free else ()
    return Rules(families=(FAMILY,), wheels={known.sha256: facts}, arch_free=exempt)


def test_head_of_a_family_without_gpu_code_is_refused() -> None:
    torch = package("torch", "2.0", why="requirements.txt:1")
    [found] = wrong_archs([torch], _rules(torch), "sm_110")
    assert (found.rule, found.distributions, found.remedy) == ("arch", (HEAD,), REMEDY)
    assert found.what == "torch 2.0 (requirements.txt:1) has no GPU code that runs on sm_110"


def test_member_of_a_family_may_have_no_gpu_code() -> None:
    member = package("torchvision", "1.0")
    assert wrong_archs([member], _rules(member), "sm_110") == []


@pytest.mark.parametrize("name", ["torch", "torchvision", "xformers"])
def test_code_for_other_architectures_is_refused(name: str) -> None:
    one = package(name, "2.0")
    [found] = wrong_archs([one], _rules(one, "sm_90", "sm_80", "gfx1100"), "sm_110")
    assert (found.rule, found.distributions, found.remedy) == ("arch", (one.name,), REMEDY)
    assert found.what == f"{name} 2.0 has GPU code for gfx1100, sm_80, sm_90 and none that runs on sm_110"
    assert wrong_archs([one], _rules(one, "sm_90", "sm_110"), "sm_110") == []


def test_one_wheel_that_needs_no_look_does_not_end_the_looking() -> None:
    free, torch = package("triton", "1.0"), package("torch", "2.0")
    assert [one.distributions for one in wrong_archs([free, torch], _rules(torch, free="triton"), "sm_110")] == [
        (HEAD,)
    ]


def test_wheel_whose_maker_vouches_is_free_whatever_it_has() -> None:
    torch = package("torch", "2.0")
    assert wrong_archs([torch], _rules(torch, "sm_80", free="torch"), "sm_110") == []


def test_name_of_a_scanned_file_that_is_no_wheel_says_nothing_of_others() -> None:
    scanned, other = package("cupy", "1.0"), package("cupy", "2.0", why=f"a:1 · wheel {WHEEL}")
    assert wrong_archs([other], _rules(scanned, "sm_80", filename="renamed.zip"), "sm_110") == []
    [found] = wrong_archs([other], _rules(scanned, "sm_80", filename="cupy-1.0-py3-none-any.whl"), "sm_110")
    assert (found.rule, found.distributions) == ("arch", (NormalizedName("cupy"),))


def test_scanned_file_without_gpu_code_says_nothing_of_other_versions() -> None:
    scanned, other = package("numpy", "1.0"), package("numpy", "2.0", why=f"a:1 · wheel {WHEEL}")
    assert wrong_archs([other], _rules(scanned, filename="numpy-1.0-py3-none-any.whl"), "sm_110") == []


def test_what_nobody_has_scanned_and_nobody_built_yet_is_not_asked_for() -> None:
    rules = _rules(package("x", "1"))
    assert wrong_archs([package("torch", "2.0", why="a:1 · sdist")], rules, "sm_110") == []
    assert wrong_archs([package("torch", "2.0", why="a:1 · wheel py3-none-any")], rules, "sm_110") == []
    [found] = wrong_archs([package("torch", "2.0", why="a:1")], rules, "sm_110")
    assert (found.rule, found.distributions) == ("arch", (HEAD,))


def test_digest_is_what_a_wheel_is_known_by() -> None:
    torch = package("torch", "2.0", sha256=Sha256(digest("other")))
    [found] = wrong_archs([torch], _rules(package("torch", "2.0"), "sm_110"), "sm_110")
    assert found.what.startswith("nobody has looked")
