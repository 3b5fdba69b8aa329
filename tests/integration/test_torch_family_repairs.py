"""Which torch is taken where a profile cannot have the one that an app pins, and why."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals.findings import Finding, Issue, Proposal, ProposedPatch
from patchlock.catalogue.proposals.importers import Importers
from patchlock.catalogue.proposals.imports import Import
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import PolicyError
from patchlock.model.policy import IndexFile
from patchlock.operations import _lock_repairs, _pin_repairs
from patchlock.operations.proposal_scratch import LockSettings

CATALOGUE = Catalogue(root=ROOT)
CPU = CATALOGUE.profile("cpu")
OFFER = _pin_repairs.Offers(CPU, tuple(CATALOGUE.index(name) for name in CPU.indexes), {})
TORCH = next(one for one in CATALOGUE.rules().families if one.head == "torch")


@pytest.mark.parametrize(("head", "moved"), [("2.4.1", "2.7.0"), ("2.7.1", "2.7.1"), ("2.7.0", "2.7.0")])
def test_nearest_torch_with_a_torchaudio_is_chosen(head: str, moved: str) -> None:
    found = _pin_repairs.head_with_member(Version(head), canonicalize_name("torchaudio"), TORCH, OFFER)
    assert found == Version(moved)


def test_a_torch_beyond_all_gets_the_newest_that_has_one() -> None:
    torchaudio = canonicalize_name("torchaudio")
    found = _pin_repairs.head_with_member(Version("99"), torchaudio, TORCH, OFFER)
    assert found is not None
    fitting = _pin_repairs.companions(found, torchaudio, [TORCH])
    assert fitting in OFFER.versions(torchaudio)


def test_a_member_that_the_index_lacks_moves_nothing() -> None:
    nothing = _pin_repairs.Offers(CPU, (), {})
    assert _pin_repairs.head_with_member(Version("2.4.1"), canonicalize_name("torchaudio"), TORCH, nothing) is None


def repaired(
    *requirements: str, profiles: tuple[str, ...] = ("cpu",), files: tuple[str, ...] = ()
) -> tuple[dict[str, ProposedPatch], tuple[Issue, ...]]:
    """Move the pins of requirements; `files` are the index's, those with `!` yanked."""
    asked: dict[NormalizedName, tuple[LocatedRequirement, ...]] = {}
    for number, text in enumerate(requirements, 1):
        requirement, name = Requirement(text), canonicalize_name(Requirement(text).name)
        found = Finding(path=PurePosixPath("pyproject.toml"), line=number, text=text)
        asked[name] = (*asked.get(name, ()), LocatedRequirement(requirement=requirement, found=found))
    listed = [IndexFile(filename=one.lstrip("!"), sha256="", yanked="" if one[0] == "!" else None) for one in files]
    have = {name: tuple(one for one in listed if one.filename.startswith(f"{name}-")) for name in asked}
    offers = []
    for profile in map(CATALOGUE.profile, profiles):
        indexes = tuple(CATALOGUE.index(name) for name in profile.indexes)
        offers.append(_pin_repairs.Offers(profile, indexes, have))
    sections, issues = _pin_repairs.repair(asked, offers, [TORCH], lambda path, line: f"{path}#L{line}")
    return {section.written.patch.id: section for section in sections}, issues


def test_a_pin_outside_what_a_recorded_index_keeps_says_so() -> None:
    sections, (issue,) = repaired("torch==2.6.0", "torchaudio==2.6.0")
    torch, torchaudio = (sections[name].written.patch for name in ("torch-2-7-0", "torchaudio-2-7-0"))
    why = "the recorded index pytorch-cpu has only torchaudio>=2.7"
    assert (torchaudio.why, torchaudio.source) == (why, "profiles/indexes/pytorch-cpu.toml")
    assert (torch.why, torch.source) == (f"torch must fit torchaudio, and {why}", "profiles/indexes/pytorch-cpu.toml")
    assert issue.means == torch.why


def test_moves_name_their_profiles_where_not_all_have_the_same() -> None:
    _, (issue,) = repaired("torch==2.6.0", profiles=("cpu", "rocm-linux", "cuda-windows", "xpu-windows"))
    moves = "torch 2.6.0 → ==2.7.1 (for rocm-linux, cuda-windows), torch 2.6.0 → ==2.8.0 (for xpu-windows)"
    assert issue.remedy.endswith(moves)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("clock-1.0.tar.gz", "clock-1.1-py3-none-any.whl"), "clock 1.0 has no wheel on the index"),
        (
            ("clock-1.0-cp39-cp39-win_amd64.whl", "clock-1.1-py3-none-any.whl"),
            "clock 1.0 has no wheel for Python 3.11 on linux-x86_64",
        ),
    ],
    ids=["only an sdist", "another machine"],
)
def test_a_pin_that_no_wheel_fits_says_so(files: tuple[str, ...], why: str) -> None:
    sections, (issue,) = repaired("clock==1.0", files=files)
    (section,) = sections.values()
    patch = section.written.patch
    assert (patch.why, patch.source) == (why, "PyPI: clock, its files")
    assert issue.remedy == "others are allowed, on the profiles that need it: clock 1.0 → <2,>=1.0"


def test_a_pin_of_a_yanked_version_stays() -> None:
    """An installer takes it where it is pinned (PEP 592), and a lock has a notice of it."""
    wheels = ("!clock-1.0-py3-none-any.whl", "clock-1.1-py3-none-any.whl")
    assert repaired("clock==1.0", files=wheels) == ({}, ())


def test_a_pin_for_another_system_moves_nothing() -> None:
    assert repaired('torch==1.0.0; sys_platform == "darwin"') == ({}, ())


@pytest.mark.parametrize(
    ("profile", "version", "local"),
    [("rocm-linux", "2.7.1", "+rocm6.3"), ("cuda-windows", "2.7.1", "+cu128"), ("xpu-windows", "2.8.0", "+xpu")],
)
def test_a_pin_moves_to_what_the_profile_takes(profile: str, version: str, local: str) -> None:
    sections, _ = repaired("torch==2.6.0", "torchaudio==2.6.0", profiles=(profile,))
    found = {str(section.written.patch.op.name): section.written.patch for section in sections.values()}
    assert {str(patch.op.specifier) for patch in found.values()} == {f"=={version}"}
    assert found["torch"].why == f"the profile {profile} takes only torch=={version}{local}"
    assert found["torch"].source == f"profiles/{profile}.toml"


def test_a_pin_moves_down_where_the_profile_is_bound() -> None:
    wheels = tuple(f"torch-{version}-cp311-cp311-win_amd64.whl" for version in ("2.4.1", "2.6.0"))
    (section,) = repaired("torch==2.6.0", profiles=("directml-vega",), files=wheels)[0].values()
    assert section.written.patch.op.specifier == "==2.4.1"


@pytest.mark.parametrize("profile", ["rocm-linux", "xpu-linux"])
def test_a_pin_of_what_the_profile_excludes_stays(profile: str) -> None:
    pins = ("torch==2.6.0", "torchaudio==2.6.0", 'triton==3.2.0; sys_platform == "linux"')
    sections, _ = repaired(*pins, profiles=(profile,))
    assert {section.written.patch.op.name for section in sections.values()} == {"torch", "torchaudio"}


@pytest.mark.parametrize("is_imported", [True, False], ids=["imported", "only-a-library-asks"])
def test_triton_stays_out_of_the_processors_lock_unless_the_app_imports_it(
    tmp_path: Path, *, is_imported: bool
) -> None:
    place = Finding(path=PurePosixPath("a.py"), line=1, text="import triton")
    found = Importers(anywhere=(Import(module="triton", found=place),) if is_imported else ())
    trying = LockSettings(
        catalogue=CATALOGUE,
        cache=tmp_path,
        profile=CPU,
        platform=CPU.platforms[0],
        date="",
        source=None,
        solve=True,
        seconds=0,
        sets={},
        importers=lambda: found,
    )
    draft = cast("Proposal", SimpleNamespace(tables=()))

    added = _lock_repairs.companions(
        draft, trying, PolicyError("triton 3.4.0 (via whisper) does not fit torch 2.8.0+cpu ")
    )

    assert added is not None
    assert added[1] == ("[[constraint]] triton==3.4.0, for torch 2.8.0" if is_imported else "[[exclude]] of triton")
