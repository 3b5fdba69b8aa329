"""Profiles against machines: accepted, rejected with every reason, chosen by how narrow they are, never guessed."""

from __future__ import annotations

import pytest
from packaging.version import Version

from patchlock.hardware.selection import choose, judge
from patchlock.model.choice import Accepted, Rejected
from patchlock.model.errors import NoProfileFitsError, PatchlockError, UnknownProfileError
from patchlock.model.fits import Fit
from patchlock.model.hosts import Host
from patchlock.model.lock_rules import LockRules
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS
from patchlock.model.profile import Profile

LINUX = Host(os="linux", machine="x86_64", libc="glibc 2.36")
ALPINE = Host(os="linux", machine="x86_64", libc="musl")
RISCV = Host(os="linux", machine="riscv64", libc="glibc 2.36")
MAC = Host(os="macos", machine="arm64", libc="")


def _profile(
    name: str, specificity: int = 0, platforms: tuple[str, ...] = tuple(PLATFORMS), fits: tuple[Fit, ...] = ()
) -> Profile:
    return Profile(
        name=name,
        title="t",
        source="s",
        python=Version("3.11"),
        platforms=tuple(PLATFORMS[platform] for platform in platforms),
        specificity=specificity,
        indexes=(),
        arch="",
        fits=fits,
        rules=LockRules(),
        environment={},
        checks=(),
        origin=Origin(file=f"profiles/{name}.toml", line=1),
    )


CPU, CUDA, ROCM = (
    _profile("cpu"),
    _profile("cuda", 10, ("linux-x86_64", "windows-amd64")),
    _profile("rocm", 10, ("linux-x86_64",)),
)
NEEDY = _profile("needy", 20, ("linux-x86_64",), (Fit(vendor="1002", archs=("gfx1201",), why="w", source="s"),))


def test_fitting_profile_is_accepted() -> None:
    assert judge(CUDA, LINUX) == Accepted(
        profile=CUDA,
        platform=PLATFORMS["linux-x86_64"],
        specificity=10,
        why="it runs on every machine of its platforms",
    )


@pytest.mark.parametrize(
    ("profile", "host", "reasons"),
    [
        pytest.param(CUDA, MAC, ("needs linux-x86_64 or windows-amd64; this machine is macos-arm64",), id="platform"),
        pytest.param(CPU, ALPINE, ("the wheels need glibc; this system has musl",), id="musl"),
        pytest.param(CPU, RISCV, ("linux on riscv64 is not supported",), id="machine"),
        pytest.param(
            CPU,
            Host(os="linux", machine="riscv64", libc="musl"),
            ("linux on riscv64 is not supported", "the wheels need glibc; this system has musl"),
            id="machine-and-musl",
        ),
    ],
)
def test_other_profile_is_rejected_with_every_reason(profile: Profile, host: Host, reasons: tuple[str, ...]) -> None:
    assert judge(profile, host) == Rejected(profile=profile, reasons=reasons)


@pytest.mark.parametrize(
    ("profiles", "host", "name", "chosen"),
    [
        pytest.param((CPU, CUDA), LINUX, None, CUDA, id="narrowest"),
        pytest.param((CUDA, CPU), LINUX, None, CUDA, id="narrowest-in-any-order"),
        pytest.param((CPU, CUDA), MAC, None, CPU, id="only-one-that-fits"),
        pytest.param((CPU, CUDA), LINUX, "cpu", CPU, id="named"),
        pytest.param((CPU, CUDA, ROCM), LINUX, "rocm", ROCM, id="named-in-spite-of-a-tie"),
        pytest.param((CPU, NEEDY), LINUX, None, CPU, id="what-needs-a-card-is-not-guessed"),
        pytest.param((CPU, NEEDY), LINUX, "needy", NEEDY, id="what-needs-a-card-is-named"),
    ],
)
def test_choice(profiles: tuple[Profile, ...], host: Host, name: str | None, chosen: Profile) -> None:
    assert choose(profiles, host, (), name).chosen.profile == chosen


@pytest.mark.parametrize(
    ("profiles", "host", "name", "kind", "sentence"),
    [
        pytest.param(
            (CPU, CUDA, ROCM),
            LINUX,
            None,
            NoProfileFitsError,
            "the profiles cuda and rocm fit this machine equally well; name one: --profile cuda",
            id="tie",
        ),
        pytest.param(
            (CUDA, ROCM),
            MAC,
            None,
            NoProfileFitsError,
            "no profile fits this machine: none is for macos-arm64; which there are: `patchlock list`",
            id="none",
        ),
        pytest.param(
            (CUDA,),
            Host(os="linux", machine="aarch64", libc="musl"),
            None,
            NoProfileFitsError,
            "no profile fits this machine: the wheels need glibc; this system has musl; what can be done: `patchlock doctor`",
            id="none-for-a-reason-that-all-have",
        ),
        pytest.param(
            (NEEDY, _profile("cuda", 10, ("windows-amd64",))),
            LINUX,
            None,
            NoProfileFitsError,
            "no profile fits this machine; which there are: `patchlock list`\n"
            "  cuda: needs windows-amd64; this machine is linux-x86_64\n"
            "  needy: needs an AMD GPU (gfx1201); none found",
            id="none-but-one-on-request",
        ),
        pytest.param(
            (CPU, CUDA),
            RISCV,
            None,
            NoProfileFitsError,
            "no profile fits this machine: linux on riscv64 is not supported; which there are: `patchlock list`",
            id="none-for-no-such-machine",
        ),
        pytest.param(
            (CPU, CUDA),
            MAC,
            "cuda",
            NoProfileFitsError,
            'the profile "cuda" does not fit this machine: needs linux-x86_64 or windows-amd64; this machine is macos-arm64; '
            "`patchlock detect` shows what does",
            id="named-one-does-not-fit",
        ),
        pytest.param(
            (CUDA,),
            Host(os="linux", machine="aarch64", libc="musl"),
            "cuda",
            NoProfileFitsError,
            'the profile "cuda" does not fit this machine: needs linux-x86_64 or windows-amd64; this machine is linux-aarch64; '
            "the wheels need glibc; this system has musl; `patchlock detect` shows what does",
            id="named-one-does-not-fit-for-two-reasons",
        ),
        pytest.param(
            (CPU, CUDA),
            MAC,
            "cdua",
            UnknownProfileError,
            'there is no profile "cdua"; did you mean "cuda"?',
            id="unknown",
        ),
    ],
)
def test_no_choice_says_why(
    profiles: tuple[Profile, ...], host: Host, name: str | None, kind: type[PatchlockError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        choose(profiles, host, (), name)
    assert str(caught.value) == sentence


def test_old_glibc_is_rejected_with_both_versions() -> None:
    old = judge(CPU, Host(os="linux", machine="x86_64", libc="glibc 2.17"))
    assert isinstance(old, Rejected)
    assert old.reasons == ("the wheels need glibc 2.28 or later; this system has glibc 2.17",)
    assert isinstance(judge(CPU, Host(os="linux", machine="x86_64", libc="glibc 2.28")), Accepted)
