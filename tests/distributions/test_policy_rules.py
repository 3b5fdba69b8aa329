"""The rules of locks: families, archs, tags, artifacts, leftovers and exceptions; the known lies have a file of their own."""

from __future__ import annotations

import dataclasses

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version
from policy_values import RULES, digest, judge, of_wheel, package

from patchlock.distributions import policy
from patchlock.distributions.policy.declared import Declared, excused, unused
from patchlock.distributions.policy.fitting import broken_pairs, gone, only_sdists, without_wheels, yanked
from patchlock.model.gpu_archs import ordered, runs
from patchlock.model.lock_rules import PolicyException
from patchlock.model.lockfile import LockedPackage
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS
from patchlock.model.policy import BrokenPair, Facts, IndexFile, MetadataHead, RecordedWheelFacts, Rules

CHANNEL = "https://download.pytorch.org/whl/"
ORIGIN = Origin(file="patches/x/app.toml", line=7)


# --- families ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "member"),
    [
        pytest.param("2.0.1", ("torchaudio", "2.0.2"), id="other-patch-number"),
        pytest.param("2.11.0", ("torchvision", "0.26.0"), id="plain-beside-plain"),
        pytest.param("2.7.1+rocm6.3", ("torchvision", "0.22.1+rocm6.3"), id="same-local-tag"),
        pytest.param("2.7.1+rocm6.3", ("pytorch-triton-rocm", "3.3.1"), id="triton-has-no-tag"),
        pytest.param("2.13.0", ("torchaudio", "2.11.0"), id="stable-abi"),
        pytest.param("2.9.1+cu128", ("torchcodec", "0.9.1"), id="plain-torchcodec-is-for-the-cpu"),
        pytest.param("2.4.1+cpu", ("torch-directml", "0.2.5.dev240914"), id="directml-on-the-cpu-build"),
    ],
)
def test_members_that_fit(head: str, member: tuple[str, str]) -> None:
    assert judge(package("torch", head), package(*member)) == ()


@pytest.mark.parametrize(
    ("head", "member", "clause"),
    [
        pytest.param("2.0.0", ("torchaudio", "2.0.2"), "it is built for torch 2.0.1", id="other-patch-number"),
        pytest.param("2.5.1", ("torchvision", "0.20.0"), "it is built for torch 2.5.0", id="same-minor"),
        pytest.param("2.8.0", ("triton", "3.3.1"), "it is built for torch 2.7.1", id="triton"),
        pytest.param("2.9.1", ("xformers", "0.0.33"), "it is built for torch 2.9.0", id="xformers"),
        pytest.param("2.9.1", ("triton-rocm", "3.6.0"), "it is built for torch 2.10.0", id="triton-rocm"),
        pytest.param(
            "2.7.1+cpu",
            ("torchvision", "0.22.1"),
            "torchvision 0.22.1 is the plain build of PyPI, and torch 2.7.1+cpu is the cpu build",
            id="plain-beside-cpu",
        ),
        pytest.param("2.7.1+cu118", ("torchaudio", "2.7.1+cu126"), "is the cu126 build", id="two-cudas"),
        pytest.param(
            "2.15.0+cpu", ("torchcodec", "0.16.0"), "is the plain build of PyPI", id="torchcodec-that-links-cuda"
        ),
        pytest.param(
            "2.11.0",
            ("torchvision", "9.9"),
            "unknown pair: profiles/policy/torch-family.toml has no torchvision 9.9",
            id="member-not-in-the-table",
        ),
        pytest.param("9.9", ("torchvision", "0.26.0"), "has no torch 9.9", id="torch-not-in-the-table"),
    ],
)
def test_members_that_do_not_fit(head: str, member: tuple[str, str], clause: str) -> None:
    [found] = judge(package("torch", head), package(*member))
    assert (found.rule, found.distributions) == ("family", ("torch", member[0]))
    assert clause in str(found)


@pytest.mark.parametrize(
    ("head", "member", "remedy"),
    [
        pytest.param(
            "2.8.0+rocm6.3",
            ("torchvision", "0.22.1+rocm6.3"),
            "pin torchvision==0.23.0 with a patch, or as a constraint of the app or the profile",
            id="it-has-one",
        ),
        pytest.param(
            "2.8.0+rocm6.3",
            ("torchaudio", "2.7.1+rocm6.3"),
            "drop torchaudio, or pin another torch: the index pytorch-rocm6.3 has no torchaudio for this one",
            id="it-has-none",
        ),
        pytest.param(
            "2.8.0+rocm6.3",
            ("xformers", "0.0.30"),
            "pin xformers==0.0.32.post2 with a patch, or as a constraint of the app or the profile",
            id="of-pypi",
        ),
        pytest.param(
            "2.8.0+rocm6.3",
            ("torchvision", "0.23.0"),
            "take both from one index, with a constraint such as torchvision==0.23.0+rocm6.3",
            id="it-has-that-build",
        ),
        pytest.param("2.8.0+rocm6.3", ("torchaudio", "2.8.0"), "take both from one index", id="it-has-no-such-build"),
    ],
)
def test_only_what_the_index_has_is_advised(head: str, member: tuple[str, str], remedy: str) -> None:
    [found] = judge(package("torch", head), package(*member), index="pytorch-rocm6.3")
    assert found.remedy == remedy


def test_what_only_a_library_asks_for_is_to_be_excluded() -> None:
    member = package("torchaudio", "2.7.1+rocm6.3", why="via encodec · wheel cp311-cp311-manylinux_2_28_x86_64")
    [found] = judge(package("torch", "2.8.0+rocm6.3"), member, index="pytorch-rocm6.3")
    assert found.remedy.startswith("exclude torchaudio, or pin another torch: ")


@pytest.mark.parametrize(
    ("takeable", "remedy"),
    [
        pytest.param(
            "0.14.0 0.13.0 0.12.0",
            "pin torchcodec==0.13.0 with a patch, or as a constraint of the app or the profile: its plain build fits "
            "every build of torch",
            id="it-has-one",
        ),
        pytest.param(
            "0.14.0", "drop torchcodec, or pin another torch: no index of the profile has torchcodec", id="it-has-none"
        ),
    ],
)
def test_build_that_no_index_has_is_not_advised(takeable: str, remedy: str) -> None:
    both = (package("torch", "2.12.1+rocm7.2"), package("torchcodec", "0.14.0"))
    [found] = judge(*both, index="pytorch-rocm7.2", takeable={"torchcodec": takeable})
    assert found.remedy == remedy


def test_what_nobody_has_recorded_yet_is_unknown_and_not_judged() -> None:
    both = (package("torch", "2.9.1+rocm7.2.1"), package("torchvision", "0.24.1"))
    [found] = judge(*both, index="amd-rocm-windows-7.2.1", platform="windows-amd64", python="3.12")
    assert found.is_unknown
    assert found.remedy == (
        "nobody has recorded its torchvision in profiles/indexes/amd-rocm-windows-7.2.1.toml yet: "
        "`patchlock index record amd-rocm-windows-7.2.1 --download`, where it can be reached"
    )


CODEC = "the cut-off, or what the app asks for, leaves no torchcodec for torch 2.11.0"
HOW = "with a patch, or as a constraint of the app or the profile"


@pytest.mark.parametrize(
    ("takeable", "remedy"),
    [
        pytest.param({}, f"pin torchcodec==0.17.0 {HOW}", id="not-known"),
        pytest.param({"torchcodec": "0.11.0 0.10.0"}, f"pin torchcodec==0.11.0 {HOW}", id="an-older-one"),
        pytest.param(
            {"torchcodec": "0.10.0", "torch": "2.10.0 2.11.0"}, f"pin torch==2.10.0 {HOW}: {CODEC}", id="another-head"
        ),
        pytest.param(
            {"torchcodec": "0.10.0", "torch": "2.11.0"}, f"drop torchcodec, or pin another torch: {CODEC}", id="none"
        ),
    ],
)
def test_only_what_the_lock_may_have_is_advised(takeable: dict[str, str], remedy: str) -> None:
    [found] = judge(package("torch", "2.11.0"), package("torchcodec", "0.10.0"), takeable=takeable)
    assert found.remedy == remedy


def test_member_without_its_head_is_not_judged() -> None:
    assert judge(package("torchvision", "9.9")) == ()


@pytest.mark.parametrize(
    ("platform", "channels", "number"),
    [
        pytest.param("linux-aarch64", ("cu130", "cu130"), 0, id="same-channel"),
        pytest.param("linux-aarch64", ("cu130", "cpu"), 1, id="two-channels"),
        pytest.param("macos-arm64", ("cu130", "cpu"), 0, id="one-build-on-macos"),
    ],
)
def test_untagged_wheels_of_a_vendor_are_known_by_their_channel(
    platform: str, channels: tuple[str, str], number: int
) -> None:
    files = ("torch-2.9.0-py3-none-any.whl", "torchvision-0.24.0-py3-none-any.whl")
    locked = [
        dataclasses.replace(of_wheel(file), url=f"{CHANNEL}{channel}/{file}")
        for file, channel in zip(files, channels, strict=True)
    ]
    assert len(judge(*locked, platform=platform)) == number


# --- archs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "arch", "expected"),
    [
        pytest.param(("sm_110",), "sm_110", True, id="itself"),
        pytest.param(("sm_100", "sm_120"), "sm_110", False, id="other-majors"),
        pytest.param(("sm_80",), "sm_87", True, id="lower-minor-of-the-major"),
        pytest.param(("sm_87",), "sm_86", False, id="higher-minor-of-the-major"),
        pytest.param(("compute_90",), "sm_110", True, id="older-ptx"),
        pytest.param(("compute_120",), "sm_110", False, id="newer-ptx"),
        pytest.param(("gfx1201",), "sm_110", False, id="other-vendor"),
        pytest.param(("gfx1100", "gfx1201"), "gfx1201", True, id="gfx"),
        pytest.param(("gfx1200",), "gfx1201", False, id="gfx-sibling"),
        pytest.param(("gfx12-generic",), "gfx1201", True, id="gfx-generic"),
        pytest.param(("gfx9-4-generic",), "gfx942", True, id="gfx-generic-of-a-branch"),
        pytest.param(("gfx90a:xnack+",), "gfx90a", True, id="gfx-with-a-feature"),
        pytest.param((), "sm_110", False, id="nothing"),
    ],
)
def test_what_runs_on_an_architecture(found: tuple[str, ...], arch: str, expected: bool) -> None:
    assert runs(found, arch) is expected


def test_architectures_are_ordered_by_number() -> None:
    assert ordered({"sm_90", "sm_110", "compute_75", "gfx1201", "gfx942"}) == [
        "compute_75", "gfx942", "gfx1201", "sm_90", "sm_110",
    ]  # fmt: skip


def test_compressed_code_is_unknown_and_not_held_against_a_wheel() -> None:
    facts = RecordedWheelFacts(filename="x", archs=frozenset({"compressed-rocm", "gfx90a"}), source="tests")
    rules = Rules(wheels={digest("x-1"): facts})
    locked = (package("x", "1"),)
    assert policy.violations(
        locked, Facts(), rules, platform=PLATFORMS["linux-x86_64"], python=Version("3.11"), arch="gfx1201"
    ) == ()  # fmt: skip


ARM = "cp312-cp312-manylinux_2_28_aarch64"


@pytest.mark.parametrize(
    ("filename", "is_refused"),
    [
        pytest.param(f"torch-2.9.0-{ARM}.whl", True, id="head"),
        pytest.param(f"torchvision-0.24.0-{ARM}.whl", True, id="member"),
        pytest.param(f"cupy_cuda13x-15.0.0-{ARM}.whl", True, id="another-version-was-scanned"),
        pytest.param(f"nvidia_cublas_cu12-12.8.4.1-{ARM}.whl", True, id="of-cuda-12"),
        pytest.param(f"nvidia_cublas-13.1.0.3-{ARM}.whl", False, id="of-cuda-13"),
        pytest.param("nvidia_ml_py-13.0-py3-none-any.whl", False, id="pure"),
        pytest.param(f"triton-3.5.0-{ARM}.whl", False, id="free"),
        pytest.param(f"numpy-2.2.0-{ARM}.whl", False, id="no-gpu-code"),
    ],
)
def test_wheel_that_nobody_has_scanned(filename: str, is_refused: bool) -> None:
    found = judge(of_wheel(filename), platform="linux-aarch64", python="3.12", arch="sm_110")
    assert [one.rule for one in found] == ["arch"] * is_refused
    assert judge(of_wheel(filename), platform="linux-aarch64", python="3.12") == ()  # without an arch, none is asked


def test_scanned_wheel_and_sdist_need_no_look() -> None:
    scanned = next(digest for digest, facts in RULES.wheels.items() if facts.filename == f"torch-2.11.0-{ARM}.whl")
    torch = of_wheel(f"torch-2.11.0-{ARM}.whl", scanned)
    xformers = package("xformers", "0.0.35", why="requirements.txt:2 · sdist")
    assert judge(torch, xformers, platform="linux-aarch64", python="3.12", arch="sm_110") == ()


def test_sentence_about_a_wheel_that_nobody_has_scanned() -> None:
    [found] = judge(of_wheel(f"torch-2.9.0-{ARM}.whl"), platform="linux-aarch64", python="3.12", arch="sm_110")
    assert str(found) == (
        "nobody has looked which GPUs torch 2.9.0 (requirements.txt:1) has code for; give its wheel, or the address that "
        "its index gives, to `patchlock scan --record` on a connected machine, or declare an [[exception]] with its reason"
    )


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "fits"),
    [
        pytest.param("py3-none-any", True, id="pure"),
        pytest.param("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True, id="set-of-tags"),
        pytest.param("cp38-abi3-manylinux_2_28_x86_64", True, id="abi3"),
        pytest.param("cp312-cp312-manylinux_2_28_x86_64", False, id="other-python"),
        pytest.param("cp311-cp311-win_amd64", False, id="other-system"),
        pytest.param("cp311-cp311-manylinux_2_28_aarch64", False, id="other-processor"),
        pytest.param("cp311-cp311-manylinux_2_34_x86_64", False, id="newer-glibc"),
    ],
)
@pytest.mark.parametrize("by_url", [False, True], ids=["from-the-lock-line", "from-the-address"])
def test_every_wheel_must_run_on_the_platform(tags: str, fits: bool, by_url: bool) -> None:
    url = f"https://vendor.invalid/x-1.0-{tags}.whl" if by_url else ""
    why = "" if by_url else f"requirements.txt:3 · wheel {tags}"
    found = judge(package("x", "1.0", why=why, url=url))
    assert [one.rule for one in found] == ([] if fits else ["tags"])
    assert all(f" is locked as a wheel for {tags}, which does not run on linux-x86_64 " in one.what for one in found)
    assert all(one.remedy == "lock again" for one in found)


def test_sdist_has_no_tags() -> None:
    assert judge(package("x", "1.0", why="requirements.txt:3 · sdist")) == ()


# --- artifacts --------------------------------------------------------------------------------------------------------


def _offered(*files: tuple[str, str, str | None]) -> Facts:
    rows = tuple(IndexFile(filename=name, sha256=sha256, yanked=why) for name, sha256, why in files)
    return Facts(filenames={digest("x-1.0"): "x-1.0-py3-none-any.whl"}, offered={NormalizedName("x"): rows})


@pytest.mark.parametrize(
    ("name", "version", "says"),
    [
        pytest.param("X", "1.0", "", id="the-same"),
        pytest.param("x", "1", "", id="the-same-version-in-other-words"),
        pytest.param("x", "1.0+cpu", "", id="local-version-only-inside"),
        pytest.param("x", "1.1", "x 1.1", id="other-version"),
        pytest.param("y", "1.0", "y 1.0", id="other-name"),
        pytest.param("x", "", "x", id="no-version"),
        pytest.param("", "", "nothing", id="no-metadata"),
    ],
)
def test_metadata_of_a_wheel_says_the_same_as_its_file_name(name: str, version: str, says: str) -> None:
    facts = Facts(
        filenames={digest("x-1.0"): "x-1.0-py3-none-any.whl"},
        metadata={digest("x-1.0"): MetadataHead(name=name, version=version)},
    )
    found = judge(package("x", "1.0"), facts=facts)
    sentence = (
        f"x-1.0-py3-none-any.whl is malformed: its METADATA says that it is {says}; report it to its publisher, and pin "
        "another version of x with a patch"
    )
    assert [(one.rule, str(one)) for one in found] == ([("metadata", sentence)] if says else [])


@pytest.mark.parametrize(
    ("files", "clause"),
    [
        pytest.param((("x-1.0-py3-none-any.whl", digest("x-1.0"), None),), "", id="there"),
        pytest.param((("x-1.0-py3-none-any.whl", "", None),), "", id="index-without-hashes"),
        pytest.param(
            (("x-1.0.tar.gz", "a", None),),
            "x-1.0-py3-none-any.whl was deleted from the index, and only its sdist is left",
            id="only-the-sdist",
        ),
        pytest.param((), "x-1.0-py3-none-any.whl was deleted from the index, and nothing of it is left", id="nothing"),
        pytest.param(
            (("x-1.0-cp311-none-any.whl", "a", None),), "x-1.0-py3-none-any.whl was deleted from the index", id="others"
        ),
    ],
)
def test_file_that_the_index_no_longer_has_is_named(
    files: tuple[tuple[str, str, str | None], ...], clause: str
) -> None:
    found = judge(package("x", "1.0"), facts=_offered(*files))
    assert [(one.rule, one.what) for one in found] == ([("artifact", clause)] if clause else [])


def test_file_that_was_replaced_under_its_name_is_named() -> None:
    [found] = judge(package("x", "1.0"), facts=_offered(("x-1.0-py3-none-any.whl", "b" * 64, None)))
    assert (found.rule, found.distributions) == ("artifact", ("x",))
    assert found.what == (
        f"x-1.0-py3-none-any.whl was replaced: its sha256 was {digest('x-1.0')[:12]}…, and the index now gives "
        "bbbbbbbbbbbb… under the same name"
    )
    assert found.remedy == "ask the project why before you lock again; a file that was published never changes"


@pytest.mark.parametrize(
    ("filenames", "clause"),
    [
        pytest.param(("x-1.0-py3-none-any.whl",), "", id="wheel"),
        pytest.param(("x-1.0.tar.gz", "x-1.0-py3-none-any.whl"), "", id="both"),
        pytest.param(("x-1.0.tar.gz", "x-2.0-py3-none-any.whl"), "only its sdist", id="sdist"),
        pytest.param(("x-2.0.tar.gz", "no file name"), "nothing of it", id="nothing"),
    ],
)
def test_what_is_left_of_a_version(filenames: tuple[str, ...], clause: str) -> None:
    files = [IndexFile(filename=name, sha256="", yanked=None) for name in filenames]
    assert without_wheels(Version("1.0"), files) == clause


# --- what the index has -----------------------------------------------------------------------------------------------


def _of(*filenames: str) -> dict[NormalizedName, list[IndexFile]]:
    return {NormalizedName("x"): [IndexFile(filename=name, sha256="", yanked=None) for name in filenames]}


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param("x==1.0", (), id="there"),
        pytest.param("x==2.0", ("the index has nothing of x 2.0",), id="gone"),
        pytest.param("x==2.*", (), id="no-one-version"),
        pytest.param("x==2.0,==2.0.0", (), id="two-pins"),
        pytest.param("x!=1.0", (), id="no-pin"),
        pytest.param("y==1.0", (), id="not-asked-for"),
    ],
)
def test_pinned_version_that_the_index_has_not(requirement: str, expected: tuple[str, ...]) -> None:
    assert gone([Requirement(requirement)], _of("x-1.0.tar.gz")) == expected


@pytest.mark.parametrize(
    ("requirement", "filenames", "newest"),
    [
        pytest.param("x", ("x-1.0.tar.gz", "x-1.1.tar.gz", "x-2.0rc1.tar.gz"), "1.1", id="newest-release"),
        pytest.param("x", ("x-1.0a1.tar.gz", "x-1.0b1.tar.gz"), "1.0b1", id="nothing-but-pre-releases"),
        pytest.param("x<1.1", ("x-1.0.tar.gz", "x-1.1.tar.gz"), "1.0", id="bounded"),
        pytest.param("x", ("x-1.0.tar.gz", "x-1.1-py3-none-any.whl"), "", id="one-has-a-wheel"),
        pytest.param("x<1.1", ("x-1.0.tar.gz", "x-1.1-py3-none-any.whl"), "1.0", id="a-wheel-beyond-the-bound"),
        pytest.param("x", ("x-1.0.tar.gz", "x-1.1rc1-py3-none-any.whl"), "", id="a-pre-release-has-a-wheel"),
    ],
)
def test_distribution_without_wheels(requirement: str, filenames: tuple[str, ...], newest: str) -> None:
    expected = (("x", Version(newest)),) if newest else ()
    assert only_sdists([Requirement(requirement)], _of(*filenames)) == expected


@pytest.mark.parametrize(("version", "number"), [("1.0", 0), ("2.0rc1", 1), ("2.0", 1)])
def test_pair_breaks_with_a_pre_release_too(version: str, number: int) -> None:
    pair = BrokenPair(
        first=Requirement("x>=1.5"), second=Requirement("y"), os=(), why="why", remedy="pin x<1.5", source="source"
    )
    locked = [package("x", version), package("y", "1")]
    found = broken_pairs(locked, [pair], PLATFORMS["linux-x86_64"])
    assert [(one.rule, one.distributions, one.remedy) for one in found] == [("pair", ("x", "y"), "pin x<1.5")] * number
    assert [one.what for one in found] == [f"x {version} does not work beside y 1: why (source)"] * number


@pytest.mark.parametrize(
    ("reason", "clauses"),
    [
        pytest.param(None, (), id="not"),
        pytest.param("", ("x 1.0 was yanked by its project: no reason is given",), id="without-a-reason"),
        pytest.param("broken", ("x 1.0 was yanked by its project: broken",), id="with-a-reason"),
    ],
)
def test_yanked_file_is_told_and_no_violation(reason: str | None, clauses: tuple[str, ...]) -> None:
    facts = _offered(("x-1.0-py3-none-any.whl", digest("x-1.0"), reason))
    locked = (package("x", "1.0"),)
    assert yanked(locked, facts) == policy.notices(locked, facts) == clauses
    assert judge(*locked, facts=facts) == ()


@pytest.mark.parametrize(
    ("names", "back_end", "told"),
    [
        pytest.param(("ctranslate2",), "cuda", "ctranslate2 1 loads CUDA's cuBLAS, which", id="alone"),
        pytest.param(("onnxruntime-gpu", "x"), "cuda", "onnxruntime-gpu 1 loads CUDA's cuBLAS and cuDNN", id="onnx"),
        pytest.param(("ctranslate2", "torch"), "cuda", "", id="torch-brings-them"),
        pytest.param(("ctranslate2", "nvidia-cublas-cu12"), "cuda", "", id="a-wheel-of-nvidias"),
        pytest.param(("ctranslate2",), "cpu", "", id="no-card"),
    ],
)
def test_what_loads_cudas_libraries_that_nothing_brings_is_told(
    names: tuple[str, ...], back_end: str, told: str
) -> None:
    found = policy.notices(tuple(package(name, "1") for name in names), Facts(), back_end)
    assert [one[: len(told)] for one in found] == ([told] if told else [])


# --- leftovers and exceptions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "is_used"),
    [
        pytest.param("constraint", "there", True, id="constraint"),
        pytest.param("constraint", "asked", False, id="constraint-on-nothing"),
        pytest.param("newer", "there", True, id="newer"),
        pytest.param("newer", "nowhere", False, id="newer-on-nothing"),
        pytest.param("build", "nowhere", False, id="build-of-nothing"),
        pytest.param("exclude", "asked", True, id="exclude"),
        pytest.param("exclude", "nowhere", False, id="exclude-of-what-nobody-asks-for"),
        pytest.param("override", "asked", True, id="override"),
        pytest.param("override", "nowhere", False, id="override-of-what-nobody-asks-for"),
    ],
)
def test_declaration_that_does_nothing_is_a_violation(kind: str, name: str, is_used: bool) -> None:
    table = Declared(kind=kind, name=NormalizedName(name), origin=ORIGIN)  # type: ignore[arg-type]
    found = [str(one) for one in unused([table], [package("there", "1")], {"there", "asked"})]
    assert len(found) == (0 if is_used else 1)
    assert all(one.startswith(f"the [[{kind}]] on {name} in patches/x/app.toml:7 ") for one in found)


def test_exclusions_are_not_judged_where_nobody_knows_who_asked() -> None:
    assert unused([Declared(kind="exclude", name=NormalizedName("x"), origin=ORIGIN)], [], None) == []


def _exception(rule: str, *names: str) -> PolicyException:
    return PolicyException(
        rule=rule, distributions=tuple(map(NormalizedName, names)), why="w", source="s", profiles=(), origin=ORIGIN
    )


@pytest.mark.parametrize(
    ("exception", "rules"),
    [
        pytest.param(_exception("one-owner", "onnxruntime", "onnxruntime-gpu"), [], id="covers"),
        pytest.param(_exception("one-owner", "onnxruntime", "onnxruntime-gpu", "more"), [], id="covers-more"),
        pytest.param(_exception("one-owner", "onnxruntime"), ["one-owner", "unused"], id="names-too-few"),
        pytest.param(_exception("pair", "onnxruntime", "onnxruntime-gpu"), ["one-owner", "unused"], id="other-rule"),
    ],
)
def test_exception_covers_its_violation_or_is_one(exception: PolicyException, rules: list[str]) -> None:
    found = policy.violations(
        (package("onnxruntime", "1"), package("onnxruntime-gpu", "1")),
        Facts(),
        RULES,
        platform=PLATFORMS["linux-x86_64"],
        python=Version("3.11"),
        exceptions=[exception],
        judged={ORIGIN.file},
    )
    assert [one.rule for one in found] == rules


def test_unused_exception_of_a_profile_is_not_judged_by_one_app() -> None:
    assert excused([], [_exception("pair", "x")], judged={"patches/other/app.toml"}) == []


@pytest.mark.parametrize(
    ("locked", "is_refused"),
    [
        pytest.param(package("rocm", "0.1"), True, id="pypi-holds-the-name"),
        pytest.param(package("amd-torch-device-gfx1151", "0.0.1.dev0"), True, id="of-one-chip"),
        pytest.param(
            package("rocm", "7.2.1", url="https://repo.radeon.com/rocm-7.2.1.tar.gz"), False, id="of-the-vendor"
        ),
        pytest.param(package("rocm-bootstrap", "0.3.0"), False, id="which-amd-has-on-pypi"),
    ],
)
def test_name_that_pypi_only_holds_is_never_taken_from_there(locked: LockedPackage, is_refused: bool) -> None:
    found = [
        one
        for one in policy.violations(
            (locked,), Facts(), RULES, platform=PLATFORMS["linux-x86_64"], python=Version("3.12")
        )
        if one.rule == "placeholder"
    ]
    assert bool(found) is is_refused
    assert all("record the vendor's" in one.remedy for one in found)
