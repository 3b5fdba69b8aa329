"""Rules that no resolver knows: the best wheel, folders that two distributions write, constraints that bound nothing."""

from __future__ import annotations

import pytest
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.compatibility import best_wheel, overwriting, unused
from patchlock.lock_rules import LockRules
from patchlock.lockfile import LockedPackage
from patchlock.model import Profile, Sha256
from patchlock.places import Origin
from patchlock.platforms import PLATFORMS

PROFILE = Profile(
    name="cpu",
    title="t",
    source="s",
    python=Version("3.11"),
    platforms=tuple(PLATFORMS.values()),
    specificity=0,
    indexes=(),
    arch="",
    rules=LockRules(),
    environment={},
    checks=(),
    origin=Origin(file="profiles/cpu.toml", line=1),
)
LINUX = ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", "cp311-cp311-manylinux_2_28_x86_64")


def _packages(*names: str) -> list[LockedPackage]:
    return [
        LockedPackage(name=NormalizedName(name), version=Version("1"), url="", sha256=Sha256("0" * 64), why="")
        for name in names
    ]


@pytest.mark.parametrize(
    ("platform", "tags", "best"),
    [
        pytest.param("linux-x86_64", LINUX, LINUX[1], id="newer-manylinux"),
        pytest.param("linux-x86_64", LINUX[::-1], LINUX[1], id="newer-manylinux-in-any-order"),
        pytest.param("linux-x86_64", ("py3-none-any", LINUX[0]), LINUX[0], id="platform-before-any"),
        pytest.param("linux-x86_64", ("cp38-abi3-manylinux_2_28_x86_64", LINUX[0]), LINUX[0], id="cp311-before-abi3"),
        pytest.param(
            "linux-x86_64",
            ("py3-none-any", "cp38-abi3-manylinux2014_x86_64"),
            "cp38-abi3-manylinux2014_x86_64",
            id="abi3-before-any",
        ),
        pytest.param("windows-amd64", (*LINUX, "py2.py3-none-any"), "py2.py3-none-any", id="set-of-tags"),
        pytest.param("windows-amd64", ("py3-none-any", "py2.py3-none-any"), "py2.py3-none-any", id="tie-by-name"),
        pytest.param("windows-amd64", LINUX, None, id="none-runs"),
        pytest.param("linux-x86_64", ("cp312-cp312-manylinux_2_28_x86_64",), None, id="other-python"),
        pytest.param("linux-x86_64", (), None, id="none"),
        pytest.param("linux-x86_64", (LINUX[1], f"1-{LINUX[1]}"), f"1-{LINUX[1]}", id="build-number"),
        pytest.param("linux-x86_64", (f"10-{LINUX[1]}", f"9-{LINUX[1]}"), f"10-{LINUX[1]}", id="higher-build-number"),
        pytest.param("linux-x86_64", (f"9-{LINUX[0]}", LINUX[1]), LINUX[1], id="tag-before-build-number"),
    ],
)
def test_best_wheel(platform: str, tags: tuple[str, ...], best: str | None) -> None:
    found = best_wheel([f"x-1.0-{tag}.whl" for tag in tags], PLATFORMS[platform], PROFILE)
    assert found == (best and f"x-1.0-{best}.whl")


@pytest.mark.parametrize(
    ("names", "clauses"),
    [
        pytest.param(("onnxruntime", "opencv-python", "numpy"), (), id="one-of-each"),
        pytest.param(
            ("onnxruntime-gpu", "numpy", "onnxruntime"),
            ("onnxruntime and onnxruntime-gpu both write onnxruntime/; keep one of them (drop or rename the other)",),
            id="two",
        ),
        pytest.param(
            ("onnxruntime", "onnxruntime-directml", "opencv-python-headless", "opencv-contrib-python"),
            (
                "onnxruntime and onnxruntime-directml both write onnxruntime/; keep one of them (drop or rename the other)",
                (
                    "opencv-python-headless and opencv-contrib-python both write cv2/; "
                    "keep one of them (drop or rename the other)"
                ),
            ),
            id="two-folders",
        ),
    ],
)
def test_folders_that_two_distributions_write(names: tuple[str, ...], clauses: tuple[str, ...]) -> None:
    assert overwriting(_packages(*names)) == clauses


@pytest.mark.parametrize("variant", ["gpu", "directml", "openvino", "qnn", "rocm", "migraphx", "training"])
def test_every_onnxruntime_writes_the_same_folder(variant: str) -> None:
    clause = (
        f"onnxruntime and onnxruntime-{variant} both write onnxruntime/; keep one of them (drop or rename the other)"
    )
    assert overwriting(_packages("onnxruntime", f"onnxruntime-{variant}")) == (clause,)


@pytest.mark.parametrize("variant", ["opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"])
def test_every_opencv_writes_the_same_folder(variant: str) -> None:
    [clause] = overwriting(_packages("opencv-python-headless", variant))
    assert clause.endswith(" both write cv2/; keep one of them (drop or rename the other)")


def test_constraints_that_bound_nothing_are_named_once_and_sorted() -> None:
    wanted = [NormalizedName(name) for name in ("torch", "numpy", "av", "torch")]
    assert unused(wanted, _packages("numpy", "scipy")) == ("av", "torch")
