"""GPU architectures in compiled code: bytes as the compilers write them, hand-made ones, and a real compiler's."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlock.distributions import wheel_archs
from patchlock.model.fatbins import scan

_NVCC = shutil.which("nvcc") or next((str(p) for p in Path("/usr/local").glob("cuda*/bin/nvcc")), "")


def _entry(kind: int, arch: int, payload: bytes = b"\x00" * 40, head: int = 64) -> bytes:
    return struct.pack("<HHIQ12xI", kind, 0x101, head, len(payload), arch) + b"\x00" * (head - 32) + payload


def _fatbin(*entries: bytes, version: int = 1) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, version, 16, len(body)) + body


def _bundle(*targets: str, size: int = 8) -> bytes:
    rows = b"".join(struct.pack("<QQQ", 4096, size, len(t)) + t.encode() for t in targets)
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(targets)) + rows


TWO = _fatbin(_entry(2, 75), _entry(2, 110), _entry(1, 120))
CASES = [
    pytest.param(b"", set(), id="nothing"),
    pytest.param(b"\x7fELF" + b"\x00" * 100, set(), id="elf-without-gpu-code"),
    pytest.param(TWO, {"sm_75", "sm_110", "compute_120"}, id="cubins-and-ptx"),
    pytest.param(b"x" * 123 + TWO + b"y" * 77 + _fatbin(_entry(2, 90)), {"sm_75", "sm_110", "compute_120", "sm_90"}, id="two-in-a-file"),
    pytest.param(_fatbin(_entry(2, 75, _fatbin(_entry(2, 99)))), {"sm_75"}, id="payload-is-not-looked-into"),
    pytest.param(_fatbin(_entry(2, 75), version=7), set(), id="other-version"),
    pytest.param(b"\x50\xed\x55\xba", set(), id="magic-alone"),
    pytest.param(TWO[:60], {"sm_75"}, id="cut-off"),
    pytest.param(_fatbin(_entry(2, 75, head=8192)), set(), id="header-too-large"),
    pytest.param(_fatbin(_entry(2, 5000)), set(), id="no-architecture"),
    pytest.param(_fatbin(_entry(9, 75), _entry(2, 80)), {"sm_80"}, id="other-kind"),
    pytest.param(b"\x50\xed\x55\xba" + TWO, {"sm_75", "sm_110", "compute_120"}, id="magic-before-a-magic"),
    pytest.param(
        _bundle("host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx1201", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"),
        {"gfx1201", "gfx90a"},
        id="rocm",
    ),
    pytest.param(_bundle("hip-amdgcn-amd-amdhsa-unknown-gfx906"), {"gfx906"}, id="rocm-with-an-environment"),
    pytest.param(_bundle("hipv4-amdgcn-amd-amdhsa--gfx12-generic"), {"gfx12-generic"}, id="rocm-generic"),
    pytest.param(_bundle("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic"), {"gfx9-4-generic"}, id="rocm-generic-of-a-branch"),
    pytest.param(_bundle("hipv4-amdgcn-amd-amdhsa--gfx1201", size=0), set(), id="rocm-without-code"),
    pytest.param(b"__CLANG_OFFLOAD_BUNDLE__ is a string of a tool", set(), id="rocm-magic-in-text"),
    pytest.param(b"CCOB" + struct.pack("<HH", 2, 1) + b"\x00" * 20, {"compressed-rocm"}, id="rocm-compressed"),
    pytest.param(b"CCOBOLD", set(), id="rocm-compressed-magic-in-text"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_architectures_of_a_file(data: bytes, expected: set[str]) -> None:
    assert scan([data]) == expected


@pytest.mark.parametrize("size", [1, 3, 16, 33])
@pytest.mark.parametrize(("data", "expected"), CASES)
def test_pieces_of_any_size_give_the_same(data: bytes, expected: set[str], size: int) -> None:
    assert scan(data[at : at + size] for at in range(0, len(data), size)) == expected


@given(st.binary(max_size=400), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_any_bytes_can_be_scanned(data: bytes, at: int) -> None:
    assert scan([data[:at], TWO, data[at:]]) >= (set() if b"\x50\xed\x55\xba" in data else {"sm_110"})


def test_members_of_a_wheel_are_scanned_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/_C.abi3.so", b"\x7fELF" + TWO)
        archive.writestr("x/lib/libx.so.12", _fatbin(_entry(2, 86)))
        archive.writestr("x/_C.pyd", _fatbin(_entry(2, 89)))
        archive.writestr("x/readme.txt", _fatbin(_entry(2, 60)))
        archive.writestr("x/Kernels_gfx1201.co", b"\x7fELF")
    told: list[str] = []
    found = wheel_archs.scan(path.as_uri(), tell=lambda name, _: told.append(name))
    assert found == {"sm_75", "sm_110", "compute_120", "sm_86", "sm_89", "gfx1201"}
    assert told == ["x/_C.abi3.so", "x/lib/libx.so.12", "x/_C.pyd", "x/Kernels_gfx1201.co"]


@pytest.mark.skipif(not _NVCC, reason="there is no nvcc")
def test_code_of_a_real_compiler(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(int *x) { *x = 1; }\n")
    targets = ("arch=compute_110,code=sm_110", "arch=compute_75,code=compute_75")
    made = [_NVCC, "-fatbin", "-o", "k.fatbin", "k.cu", *(f"-gencode={target}" for target in targets)]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    assert scan([(tmp_path / "k.fatbin").read_bytes()]) == {"sm_110", "compute_75"}
