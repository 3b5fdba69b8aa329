"""One file, one owner: from wheels' tables of contents, as they stand at the end of real archives."""

from __future__ import annotations

import pytest
from packaging.version import Version
from policy_values import judge, package

from patchlock.distributions import policy
from patchlock.distributions.policy._owners import roots, shared, suspects
from patchlock.model.identities import Sha256
from patchlock.model.platforms import PLATFORMS
from patchlock.model.policy import Facts, WheelFile

ONNX = ("directml", "gpu", "migraphx", "openvino", "qnn", "rocm", "training")
OPENCV = ("opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python-headless")
TRITON = ("pytorch-triton-rocm", "triton-rocm", "triton-windows")


def _files(*paths: str, crc: int = 1) -> tuple[WheelFile, ...]:
    return tuple(WheelFile(path=path, crc=crc, size=10) for path in paths)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *[pytest.param("onnxruntime", f"onnxruntime-{variant}", id=variant) for variant in ONNX],
        *[pytest.param("opencv-python", variant, id=variant) for variant in OPENCV],
        *[pytest.param("triton", variant, id=variant) for variant in TRITON],
    ],
)
def test_known_distributions_that_write_one_folder_are_refused_without_asking(first: str, second: str) -> None:
    [found] = judge(package(first, "1"), package(second, "1"))
    assert found.rule == "one-owner"
    assert set(found.distributions) == {first, second}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(("a/__init__.py", "a/b/c.py"), {"a"}, id="package"),
        pytest.param(("a.py", "a-1.dist-info/METADATA"), {"a.py"}, id="module"),
        pytest.param(("google/protobuf/__init__.py",), {"google/protobuf"}, id="namespace"),
        pytest.param(("nvidia/cublas/lib/libcublas.so.12",), {"nvidia/cublas/lib/libcublas.so.12"}, id="no-package"),
        pytest.param(("a/b/c/d/e.py", "a/b/c/d/f.py"), {"a/b/c/d"}, id="deep"),
        pytest.param(("a/x.py", "a/b/__init__.py"), {"a/x.py", "a/b"}, id="module-in-a-namespace"),
    ],
)
def test_roots_of_a_wheel(paths: tuple[str, ...], expected: set[str]) -> None:
    assert roots(_files(*paths)) == expected


@pytest.mark.parametrize(
    ("of_wheels", "expected"),
    [
        pytest.param(({"a"}, {"b"}), set(), id="apart"),
        pytest.param(({"a"}, {"a"}), {0, 1}, id="same"),
        pytest.param(({"google/protobuf"}, {"google/rpc"}), set(), id="namespace"),
        pytest.param(({"a"}, {"a/b/c"}), {0, 1}, id="inside"),
        pytest.param(({"a/b"}, {"a/b/c"}), {0, 1}, id="inside-a-part-of-a-namespace"),
        pytest.param(({"PIL"}, {"pil"}), {0, 1}, id="case"),
        pytest.param(({"a"}, {"b", "c"}, {"c"}), {1, 2}, id="one-of-several"),
        pytest.param(({"ab"}, {"a"}), set(), id="prefix-of-a-name"),
    ],
)
def test_wheels_that_may_share_a_file(of_wheels: tuple[set[str], ...], expected: set[int]) -> None:
    found = suspects({Sha256(str(number)): frozenset(own) for number, own in enumerate(of_wheels)})
    assert found == {str(number) for number in expected}


def _judged(first: tuple[WheelFile, ...], second: tuple[WheelFile, ...], platform: str) -> tuple[int, int]:
    """Give how many violations there are, and how many groups of files are shared without harm."""
    locked = (package("x", "1"), package("y", "1"))
    facts = Facts(contents={locked[0].sha256: first, locked[1].sha256: second})
    found = shared(facts.contents, PLATFORMS[platform], Version("3.12"))
    return len(judge(*locked, platform=platform, facts=facts)), sum(group.is_harmless for group in found)


@pytest.mark.parametrize(
    ("first", "second", "platform", "expected"),
    [
        pytest.param(_files("a/x.py"), _files("a/y.py"), "linux-x86_64", (0, 0), id="one-folder-no-file"),
        pytest.param(_files("a/x.py"), _files("a/x.py"), "linux-x86_64", (0, 1), id="same-bytes"),
        pytest.param(_files("a/x.py"), _files("a/x.py", crc=2), "linux-x86_64", (1, 0), id="different-bytes"),
        pytest.param(_files("a/x.py", crc=0), (WheelFile(path="a/x.py", crc=0, size=9),), "linux-x86_64", (1, 0), id="different-size"),
        pytest.param(_files("tests/__init__.py"), _files("tests/__init__.py", crc=2), "linux-x86_64", (0, 1), id="tests"),
        pytest.param(_files("LICENSE"), _files("LICENSE", crc=2), "linux-x86_64", (0, 1), id="licence"),
        pytest.param(_files("examples/a.py"), _files("examples/a.py", crc=2), "linux-x86_64", (0, 1), id="examples"),
        pytest.param(_files("testing/a.py"), _files("testing/a.py", crc=2), "linux-x86_64", (1, 0), id="no-tests"),
        pytest.param(_files("A/x.py"), _files("a/x.py", crc=2), "linux-x86_64", (0, 0), id="case-on-linux"),
        pytest.param(_files("A/x.py"), _files("a/x.py", crc=2), "windows-amd64", (1, 0), id="case-on-windows"),
        pytest.param(_files("A/x.py"), _files("a/x.py", crc=2), "macos-arm64", (1, 0), id="case-on-macos"),
        pytest.param(_files("../bin/f"), _files("../bin/f", crc=2), "linux-x86_64", (1, 0), id="script"),
        pytest.param(_files("../lib/site-packages/m.py"), _files("m.py", crc=2), "windows-amd64", (1, 0), id="data-of-windows"),
        pytest.param(_files("a.dist-info/X"), _files("a.dist-info/X", crc=2), "linux-x86_64", (0, 0), id="dist-info"),
    ],
)  # fmt: skip
def test_shared_files(
    first: tuple[WheelFile, ...], second: tuple[WheelFile, ...], platform: str, expected: tuple[int, int]
) -> None:
    assert _judged(first, second, platform) == expected


def test_sentence_names_the_owners_and_the_first_files() -> None:
    """urllib3-future installs itself as urllib3: as their wheels of 2.8.0 and 2.25.904 on PyPI do."""
    names = ("__init__", "_collections", "_request_methods", "connection", "exceptions")
    locked = package("urllib3", "2.8.0", why="via requests"), package("urllib3-future", "2.25.904", why="via niquests")
    contents = {
        one.sha256: _files(*(f"urllib3/{name}.py" for name in names), crc=crc) for crc, one in enumerate(locked)
    }
    [found] = judge(*locked, facts=Facts(contents=contents))
    assert found.what == (
        "urllib3 2.8.0 (via requests) and urllib3-future 2.25.904 (via niquests) both write urllib3/__init__.py, "
        "urllib3/_collections.py, urllib3/_request_methods.py and 2 more files with different bytes, so which one "
        "counts is chance"
    )


def test_known_owners_of_a_folder_are_told_as_such_where_their_files_are_known_too() -> None:
    locked = package("onnxruntime", "1"), package("onnxruntime-gpu", "1")
    contents = {one.sha256: _files("onnxruntime/__init__.py", crc=crc) for crc, one in enumerate(locked)}
    assert judge(*locked, facts=Facts(contents=contents)) == judge(*locked)


def test_one_of_the_known_owners_of_a_folder_is_no_trouble() -> None:
    assert judge(package("onnxruntime", "1")) == ()


@pytest.mark.parametrize(
    ("number", "shown"),
    [(3, "all write m/0.py, m/1.py, m/2.py with"), (4, "all write m/0.py, m/1.py, m/2.py and 1 more files with")],
)
def test_sentence_about_three_owners(number: int, shown: str) -> None:
    locked = tuple(package(name, "1") for name in "abc")
    paths = [f"m/{index}.py" for index in range(number)]
    facts = Facts(contents={one.sha256: _files(*paths, crc=crc) for crc, one in enumerate(locked)})
    [found] = judge(*locked, facts=facts)
    assert (found.rule, found.distributions) == ("one-owner", ("a", "b", "c"))
    assert found.what == f"a 1 and b 1 and c 1 {shown} different bytes, so which one counts is chance"
    assert found.remedy == "keep one of them: drop or exclude the other, or declare an [[exception]] with its reason"


def test_files_shared_without_harm_are_not_told() -> None:
    locked = tuple(package(name, "1") for name in ("nvidia-c", "nvidia-a", "nvidia-b"))
    facts = Facts(contents={one.sha256: _files("nvidia/__init__.py") for one in locked})
    assert policy.notices(locked, facts) == judge(*locked, facts=facts) == ()


@pytest.mark.parametrize(
    ("unknown", "clause"),
    [
        pytest.param({"a": "off"}, "1 wheel could not be read, so nobody knows whether it overwrites files of others: off (a)", id="one"),
        pytest.param(
            {"e": "off", "d": "off", "c": "off", "b": "off", "a": "broken"},
            "5 wheels could not be read, so nobody knows whether they overwrite files of others: broken (a); off (b, c, d and 1 more)",
            id="many",
        ),
    ],
)  # fmt: skip
def test_wheels_that_could_not_be_read_are_one_clause(unknown: dict[str, str], clause: str) -> None:
    locked = tuple(package(name, "1") for name in "abcdefg")
    facts = Facts(unknown={one.sha256: unknown[one.name] for one in locked if one.name in unknown})
    assert policy.notices(locked, facts) == (clause,)
