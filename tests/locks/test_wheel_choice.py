"""Which wheel an installer prefers."""

from __future__ import annotations

import pytest
from packaging.version import Version

from patchlock.locks.wheel_choice import best_wheel, newer_glibc
from patchlock.model.lock_rules import LockRules
from patchlock.model.origins import Origin
from patchlock.model.platforms import PLATFORMS
from patchlock.model.profile import Profile

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
    ("tags", "glibc"),
    [
        pytest.param(("manylinux_2_39_aarch64", "manylinux_2_31_aarch64", "manylinux_2_28_x86_64"), "2.31", id="newer"),
        pytest.param(("manylinux_2_31_aarch64", "manylinux2014_aarch64"), "", id="one-fits"),
        pytest.param(("manylinux_2_31_aarch64", "any"), "", id="any-machine"),
        pytest.param(("manylinux_2_34_x86_64", "win_amd64"), "", id="other-machines"),
    ],
)
def test_glibc_that_all_wheels_need(tags: tuple[str, ...], glibc: str) -> None:
    files = [f"a-1.0-cp39-abi3-{tag}.whl" for tag in tags]
    assert newer_glibc([*files, "a-1.0.tar.gz"], PLATFORMS["linux-aarch64"]) == glibc
