"""Stand-ins for CUDA's and ZLUDA's libraries that say whose they are, built by a C compiler on the spot."""

from __future__ import annotations

import dataclasses
import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

NAMES = {"posix": ("gcc", "libcublas.so.11", "libtorch_cuda.so"), "nt": ("x86_64-w64-mingw32-gcc", "cublas64_11.dll", "torch_cuda.dll")}  # fmt: skip
"""Compiler, CUDA's library as torch asks for it, and the library of torch that does."""
TORCH = """\
import ctypes, glob, os

_lib = os.path.join(os.path.dirname(__file__), "lib")
if os.name == "nt":  # as torch 2.7 loads its own
    os.add_dll_directory(_lib)
    kernel32 = ctypes.WinDLL("kernel32.dll", use_last_error=True)
    kernel32.LoadLibraryExW.restype = ctypes.c_void_p
    for _dll in glob.glob(os.path.join(_lib, "*.dll")):
        if kernel32.LoadLibraryExW(ctypes.c_wchar_p(_dll), None, 0x00001100) is None:
            raise ctypes.WinError(ctypes.get_last_error())
    _cuda = ctypes.CDLL(os.path.join(_lib, "torch_cuda.dll"))
    by_name = ctypes.CDLL("cublas64_11.dll")
else:
    _cuda = ctypes.CDLL(os.path.join(_lib, "libtorch_cuda.so"), mode=ctypes.RTLD_GLOBAL)
    by_name = ctypes.CDLL("libcublas.so.11", mode=os.RTLD_NOLOAD)
_cuda.torch_whose.restype = by_name.cublas_whose.restype = ctypes.c_char_p


def whose():
    return f"linked {_cuda.torch_whose().decode()}, by name {by_name.cublas_whose().decode()}"
"""
"""A package that is linked against CUDA's library as torch is, and asks for it by name too."""
_COMPUTES = Path(__file__).with_name("pretend_torch.py").read_text(encoding="utf-8")
"""What an install has it compute."""


@dataclasses.dataclass(frozen=True)
class Standins:
    """Libraries for one operating system, as bytes."""

    cublas: str
    """What torch calls it."""
    torch: dict[str, str | bytes]
    """The files of the package `torch`, with CUDA's own libraries."""
    archive: bytes
    """A zip file as ZLUDA's, with `zluda/cublas.dll` and what that needs of the SDK."""
    other: bytes
    """Another build of it."""
    sdk: dict[str, bytes]
    """The files of the SDK, from its folder."""


def build(folder: Path, system: str = os.name) -> Standins:
    """Compile all libraries; the test is skipped where there is no compiler."""
    compiler, cublas, cuda = NAMES[system]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    rocblas = "rocblas.dll" if system == "nt" else "librocblas.so"
    whose = 'EXPORT const char *{0}_whose(void) {{ return "{1}"; }}'
    needing = 'const char *rocblas_whose(void);\nEXPORT const char *cublas_whose(void) {{ return rocblas_whose()[0] ? "{0}" : ""; }}'
    theirs, sdk = folder / "theirs", folder / "sdk"
    for one in (theirs, sdk):
        one.mkdir(parents=True)
    _compile(compiler, sdk / rocblas, whose.format("rocblas", "rocblas"))
    _compile(compiler, theirs / cublas, whose.format("cublas", "theirs"))
    code = "const char *cublas_whose(void);\nEXPORT const char *torch_whose(void) { return cublas_whose(); }"
    _compile(compiler, theirs / cuda, code, theirs / cublas)
    archives = []
    for text in ("ours", "another"):
        (folder / text).mkdir()
        _compile(compiler, folder / text / cublas, needing.format(text), sdk / rocblas)
        with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zluda/cublas.dll", (folder / text / cublas).read_bytes())
            archive.writestr("zluda/zluda.exe", b"not wanted")
        archives.append(packed.getvalue())
    lib: dict[str, str | bytes] = {f"torch/lib/{name}": (theirs / name).read_bytes() for name in (cublas, cuda)}
    return Standins(
        cublas=cublas,
        torch={"torch/__init__.py": _COMPUTES + TORCH, **lib},
        archive=archives[0],
        other=archives[1],
        sdk={f"bin/{rocblas}": (sdk / rocblas).read_bytes()},
    )


def _compile(compiler: str, target: Path, code: str, *linked: Path) -> None:
    is_windows = target.suffix == ".dll"
    export = "__declspec(dllexport)" if is_windows else ""
    named = () if is_windows else (f"-Wl,-soname,{target.name}", "-Wl,-rpath,$ORIGIN", "-fPIC")
    command = [compiler, "-shared", "-s", "-O1", f"-DEXPORT={export}", *named, "-o", str(target), "-xc", "-", "-xnone"]
    subprocess.run([*command, *map(str, linked)], input=code, text=True, check=True)


def table(url: str, standins: Standins, *, platform: str, trust: str, sdk: str = "") -> str:
    """Write the `[[overlay]]` table of a profile for these libraries."""
    (rocblas,) = standins.sdk
    return f"""
[[overlay]]
id = "zluda"
why = "the card is AMD's"
source = "tests"
license = "MIT"
platforms = ["{platform}"]
before = ["torch"]
url = "{url}"
{trust}
unset = ["ROCM_HOME"]
drop-from-path = ["rocm"]

[overlay.sdk]
name = "the AMD HIP SDK 6.2 or 6.4"
variable = "HIP_PATH"
folders = ["{sdk}"]
has = ["{rocblas}"]
install = "install it from https://www.amd.com/hip-sdk"

[[overlay.library]]
sdk = "{rocblas}"
[[overlay.library]]
member = "cublas.dll"
name = "{standins.cublas}"
[[overlay.library]]
sdk = "bin/MIOpen.dll"
needs = ["bin/MIOpen.dll"]

[overlay.environment]
ZLUDA_NVRTC_LIB = "{{packages}}/torch/lib/nvrtc"
"""
