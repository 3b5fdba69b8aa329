"""What resolvers call a solution and is none, each on the metadata of real files of PyPI and the shipped rules."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version
from policy_values import judge, of_wheel

from patchlock.distributions import index_client
from patchlock.distributions.policy.fitting import gone, only_sdists
from patchlock.model.policy import Facts, IndexFile

X86 = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def test_torch_2_0_1_beside_torchaudio_2_11_0() -> None:
    """No torchaudio from 2.11 on declares which torch it needs, so that resolvers take the newest one."""
    torch = of_wheel("torch-2.0.1-cp311-cp311-manylinux1_x86_64.whl", why="requirements.txt:1")
    audio = of_wheel(f"torchaudio-2.11.0-cp311-cp311-{X86}.whl", why="requirements.txt:2")
    [found] = judge(torch, audio)
    assert str(found) == (
        "torchaudio 2.11.0 (requirements.txt:2) does not fit torch 2.0.1 (requirements.txt:1): it is built for torch "
        "2.11.0 to 2.15.0 (https://docs.pytorch.org/audio/2.11.0/installation.html: works with 2.11 and later; "
        "see broken-pairs.toml); pin torchaudio==2.0.2 with a patch, or as a constraint of the app or the profile"
    )


def test_torch_directml_beside_torchaudio_2_11_0() -> None:
    """torch-directml pins torch 2.4.1 and torchvision, and says nothing of torchaudio."""
    found = judge(
        of_wheel("torch-2.4.1-cp311-cp311-win_amd64.whl"),
        of_wheel("torch_directml-0.2.5.dev240914-cp311-cp311-win_amd64.whl"),
        of_wheel("torchvision-0.19.1-cp311-cp311-win_amd64.whl"),
        of_wheel("torchaudio-2.11.0-cp311-cp311-win_amd64.whl"),
        platform="windows-amd64",
    )
    assert [(one.rule, one.distributions) for one in found] == [("family", ("torch", "torchaudio"))]
    assert "pin torchaudio==2.4.1" in found[0].remedy


def test_torchvision_behind_an_override() -> None:
    """`--overrides torch==2.11.0` also takes away the pin that torchvision declares."""
    [found] = judge(
        of_wheel(f"torch-2.11.0-cp312-cp312-{X86}.whl"),
        of_wheel(f"torchvision-0.29.2-py3-none-{X86}.whl"),
        python="3.12",
    )
    assert "it is built for torch 2.14.0 to 2.15.0" in found.what
    assert found.remedy.startswith("pin torchvision==0.26.0 ")


def test_torch_2_15_beside_torchaudio_2_11_of_another_cuda() -> None:
    """Both of PyPI, for Linux: torchaudio raises at import. The builds for the CPU work together."""
    plain = (of_wheel(f"torch-2.15.0-cp311-cp311-{X86}.whl"), of_wheel(f"torchaudio-2.11.0-cp311-cp311-{X86}.whl"))
    assert [one.rule for one in judge(*plain)] == ["pair"]
    of_the_vendor = (
        of_wheel(f"torch-2.15.0+cpu-cp311-cp311-{X86}.whl"),
        of_wheel(f"torchaudio-2.11.0+cpu-cp311-cp311-{X86}.whl"),
    )
    assert judge(*of_the_vendor) == ()


def test_onnxruntime_beside_onnxruntime_gpu() -> None:
    [found] = judge(
        of_wheel(f"onnxruntime-1.16.3-cp311-cp311-{X86}.whl", why="via piper-tts"),
        of_wheel(f"onnxruntime_gpu-1.16.3-cp311-cp311-{X86}.whl"),
    )
    assert str(found) == (
        "onnxruntime 1.16.3 (via piper-tts) and onnxruntime-gpu 1.16.3 (requirements.txt:1) both write onnxruntime/ "
        "(https://github.com/microsoft/onnxruntime/issues/26996), so which one counts is chance; keep one of them: "
        "drop or exclude the other, or declare an [[exception]] with its reason"
    )


@pytest.mark.parametrize(
    ("packages", "remedy"),
    [
        pytest.param(
            (f"av-19.0.2-cp312-abi3-{X86}.whl", "faster_whisper-1.2.1-py3-none-any.whl"),
            "add a constraint av>=12,<19,!=14.4.0",
            id="av-19-under-faster-whisper",
        ),
        pytest.param(
            ("setuptools-82.0.1-py3-none-any.whl", "librosa-0.9.2-py3-none-any.whl"),
            "add a constraint setuptools<82",
            id="setuptools-82-under-librosa-0.9",
        ),
    ],
)
def test_pairs_that_resolve_and_break(packages: tuple[str, ...], remedy: str) -> None:
    [found] = judge(*map(of_wheel, packages), python="3.12")
    assert (found.rule, found.remedy) == ("pair", remedy)


@pytest.mark.parametrize(
    "packages",
    [
        pytest.param((f"av-18.1.0-cp311-abi3-{X86}.whl", "faster_whisper-1.2.1-py3-none-any.whl"), id="av-18"),
        pytest.param(("setuptools-81.0.0-py3-none-any.whl", "librosa-0.9.2-py3-none-any.whl"), id="setuptools-81"),
        pytest.param(("setuptools-82.0.1-py3-none-any.whl", "librosa-0.10.2-py3-none-any.whl"), id="librosa-0.10"),
    ],
)
def test_pairs_that_work(packages: tuple[str, ...]) -> None:
    assert judge(*map(of_wheel, packages), python="3.12") == ()


@pytest.mark.parametrize(
    ("filename", "sha256", "clause"),
    [
        pytest.param(
            f"torch-2.10.0-cp312-cp312-{ARM}.whl",
            "5fd4117d89ffd47e3dcc71e71a22efac24828ad781c7e46aaaf56bf7f2796acf",
            "has no GPU code that runs on sm_110",
            id="torch-for-the-cpu",
        ),
        pytest.param(
            "onnxruntime_gpu-1.31.1-cp312-cp312-manylinux_2_34_aarch64.whl",
            "a0f1725c5a6d1ef82d63498b5ebc25e2c90c9560e91dc76db9be4a49162d4d33",
            "has GPU code for sm_89, sm_90, sm_120, sm_121 and none that runs on sm_110",
            id="onnxruntime-for-others",
        ),
    ],
)
def test_wheel_without_code_for_the_gpu_of_thor(filename: str, sha256: str, clause: str) -> None:
    thor = {"platform": "linux-aarch64", "python": "3.12"}
    found = [one.what for one in judge(of_wheel(filename, sha256), arch="sm_110", **thor) if one.rule == "arch"]
    assert len(found) == 1
    assert found[0].endswith(clause)
    assert "arch" not in {one.rule for one in judge(of_wheel(filename, sha256), **thor)}


def test_wheels_with_code_for_the_gpu_of_thor() -> None:
    assert (
        judge(
            of_wheel(
                f"torch-2.11.0-cp312-cp312-{ARM}.whl",
                "f99924682ef0aa6a4ab3b1b76f40dc6e273fca09f367d15a524266db100a723f",
            ),
            of_wheel(
                f"torchvision-0.26.0-cp312-cp312-{ARM}.whl",
                "406557718e62fdf10f5706e88d8a5ec000f872da913bf629aab9297622585547",
            ),
            of_wheel(
                "triton-3.6.0-cp312-cp312-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
                "374f52c11a711fd062b4bfbb201fd9ac0a5febd28a96fb41b4a0f51dde3157f4",
            ),
            platform="linux-aarch64",
            python="3.12",
            arch="sm_110",
        )
        == ()
    )


def test_wheel_whose_hash_changed_under_the_same_name() -> None:
    """torch 2.7.0+rocm6.3 in PyTorch's `test/` index and in the final one: one name, two files."""
    name = "torch-2.7.0+rocm6.3-cp311-cp311-manylinux_2_28_x86_64.whl"
    locked = of_wheel(name, "1" * 64)
    offered = {locked.name: (IndexFile(filename=name, sha256="2" * 64, yanked=None),)}
    [found] = judge(locked, facts=Facts(filenames={locked.sha256: name}, offered=offered))
    assert str(found) == (
        f"{name} was replaced: its sha256 was 111111111111…, and the index now gives 222222222222… under the same "
        "name; ask the project why before you lock again; a file that was published never changes"
    )


def test_av_11_with_its_wheels_deleted() -> None:
    """As the index answers on 2026-11-21: of 11.0.0 there is a source archive, and nothing else."""
    files = (
        IndexFile(filename="av-11.0.0.tar.gz", sha256="48223f000a252070f8e700ff634bb7fb3aa1b7bc7e450373029fbdd6f369ac31", yanked=None),
        IndexFile(filename="av-12.3.0-cp311-cp311-win_amd64.whl", sha256="", yanked=None),
    )  # fmt: skip
    offered = {NormalizedName("av"): files}
    assert only_sdists([Requirement("av==11.0.0"), Requirement("numpy==1.0")], offered) == (
        (NormalizedName("av"), Version("11.0.0")),
    )
    assert only_sdists([Requirement("av==12.3.0"), Requirement("av>=11")], offered) == ()
    assert only_sdists([], offered) == ()
    assert gone([Requirement("av==11.0.0"), Requirement("av>=13"), Requirement("numpy==1.0")], offered) == ()
    assert gone([Requirement("av==10.9.9")], offered) == ("the index has nothing of av 10.9.9",)


@pytest.mark.online
def test_the_index_says_what_was_yanked_and_what_is_left() -> None:
    av = index_client.read(NormalizedName("av"))
    assert only_sdists([Requirement("av==11.0.0")], {NormalizedName("av"): av})
    reasons = {file.yanked for file in index_client.read(NormalizedName("whisperx")) if "3.1.1" in file.filename}
    assert reasons == {"unofficial release by third party (see https://github.com/m-bain/whisperX/issues/761)"}
