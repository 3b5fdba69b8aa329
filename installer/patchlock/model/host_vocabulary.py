"""The closed vocabulary of an observed machine: which versions, libraries, settings, variables and nodes it can name.

Probes write these words, recordings, profiles and the catalogue of troubles read them; nothing else is a word.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Word:
    """One name, and what stands behind it."""

    means: str
    """With an example, where that says more."""
    source: str
    """Where the fact is documented: a URL."""
    values: tuple[str, ...] = ()
    """All that it can be; empty: any text."""


def _word(means: str, source: str, *values: str) -> Word:
    return Word(means=means, source=source, values=values)


VERSIONS: Mapping[str, Word] = {
    "nvidia-driver": _word(
        "of NVIDIA's driver: 580.65.06 on Linux, 581.29 on Windows and (Windows' own) in WSL",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlSystemQueries.html",
    ),
    "cuda-driver": _word(
        "the newest CUDA that this driver runs: 13.0",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlSystemQueries.html",
    ),
    "cuda-toolkit": _word(
        "of the CUDA toolkit that is installed on the system, by its version.json: 13.0.2",
        "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",
    ),
    "rocm": _word(
        "of the ROCm userland that is installed on the system: 6.4.1",
        "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/",
    ),
    "amdgpu": _word(
        "of an amdgpu module that AMD's DKMS package has put in: 6.12.12; the kernel's own module has none",
        "https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-module",
    ),
    "hip-sdk": _word(
        "of AMD's HIP SDK for Windows: 6.4",
        "https://rocm.docs.amd.com/projects/install-on-windows/en/latest/",
    ),
    "adrenalin": _word(
        "of AMD's Software: Adrenalin Edition on Windows: 26.2.2",
        "https://www.amd.com/en/resources/support-articles/release-notes.html",
    ),
    "msvc-runtime": _word(
        "of the Visual C++ redistributable for this CPU: 14.44.35211",
        "https://learn.microsoft.com/en-us/cpp/windows/redistributing-visual-cpp-files",
    ),
    "docker-engine": _word("of the Docker engine: 28.3.2", "https://docs.docker.com/engine/release-notes/"),
    "docker-desktop": _word("of Docker Desktop: 4.43.2", "https://docs.docker.com/desktop/release-notes/"),
    "container-toolkit": _word(
        "of NVIDIA's container toolkit: 1.17.8",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/release-notes.html",
    ),
    "git": _word("of git: 2.39.5", "https://git-scm.com/docs/git-version"),
}
"""What drivers and toolkits say of themselves; numbers with dots, nothing around them."""

_CUDA_API = "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html"
_NVML = "https://docs.nvidia.com/deploy/nvml-api/nvml-api-reference.html"
_WSL_GPU = "https://devblogs.microsoft.com/directx/directx-heart-linux/"
_HIP = "https://rocm.docs.amd.com/projects/HIP/en/latest/"
_HIP_WINDOWS = "https://rocm.docs.amd.com/projects/install-on-windows/en/latest/"
_ROCR = "https://rocm.docs.amd.com/projects/ROCR-Runtime/en/latest/"
_MSVC = "https://learn.microsoft.com/en-us/cpp/windows/redistributing-visual-cpp-files"
_DIRECTML = "https://learn.microsoft.com/en-us/windows/ai/directml/dml-intro"

LIBRARIES: Mapping[str, Word] = {
    "libcuda.so.1": _word("CUDA's driver interface, Linux", _CUDA_API),
    "libnvidia-ml.so.1": _word("NVIDIA's management library, Linux", _NVML),
    "libnvdxgdmal.so.1": _word(
        "what CUDA needs in WSL from Windows driver 555 on",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/520",
    ),
    "libdxcore.so": _word("the way to Windows' graphics cards in WSL", _WSL_GPU),
    "librocdxg.so": _word("ROCm's way to Windows' graphics cards in WSL", "https://github.com/ROCm/librocdxg"),
    "libamdhip64.so": _word("HIP's runtime, Linux", _HIP),
    "libhsa-runtime64.so.1": _word("ROCm's runtime, Linux", _ROCR),
    "nvcuda.dll": _word("CUDA's driver interface, Windows", _CUDA_API),
    "nvml.dll": _word("NVIDIA's management library, Windows", _NVML),
    "amdhip64.dll": _word("HIP's runtime of the 5.x drivers, Windows", _HIP_WINDOWS),
    "amdhip64_6.dll": _word("HIP's runtime of the 6.x drivers, Windows", _HIP_WINDOWS),
    "amdhip64_7.dll": _word("HIP's runtime of the 7.x drivers, Windows", _HIP_WINDOWS),
    "msvcp140.dll": _word("C++ runtime of Visual Studio 2015 and newer", _MSVC),
    "vcruntime140_1.dll": _word("C runtime of Visual Studio 2019 and newer", _MSVC),
    "DirectML.dll": _word("DirectML", _DIRECTML),
    "d3d12.dll": _word("Direct3D 12", "https://learn.microsoft.com/en-us/windows/win32/direct3d12/what-is-directx-12-"),
    "dxcore.dll": _word(
        "the list of graphics cards of Windows", "https://learn.microsoft.com/en-us/windows/win32/dxcore/dxcore"
    ),
}
"""Libraries that accelerators use; a machine gives the path of each that is there."""

SETTINGS: Mapping[str, Word] = {
    "smart-app-control": _word(
        "Windows' Smart App Control",
        "https://learn.microsoft.com/en-us/windows/apps/develop/smart-app-control/overview",
        *("on", "off", "evaluation"),
    ),
    "defender-realtime": _word(
        "whether Microsoft Defender looks at each file that is opened",
        "https://learn.microsoft.com/en-us/powershell/module/defender/get-mpcomputerstatus",
        *("on", "off"),
    ),
    "long-paths": _word(
        "whether Windows lets programs use paths of more than 259 characters",
        "https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation",
        *("on", "off"),
    ),
    "wsl-interop": _word(
        "whether WSL starts programs of Windows",
        "https://learn.microsoft.com/en-us/windows/wsl/wsl-config#interop-settings",
        *("on", "off"),
    ),
    "nouveau": _word(
        "the kernel's own driver of NVIDIA cards is loaded, which computes nothing",
        "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#disabling-nouveau",
        "loaded",
    ),
    "amdgpu-module": _word(
        "the kernel's driver of AMD cards; only where there is such a card",
        "https://docs.kernel.org/gpu/amdgpu/index.html",
        *("absent", "blacklisted", "loaded"),
    ),
    "secure-boot": _word(
        "whether Linux, started by UEFI, loads only modules that are signed with a key which the machine knows",
        "https://wiki.debian.org/SecureBoot",
        *("on", "off"),
    ),
    "user-site": _word(
        "distributions in the user's site folder that shadow accelerator packages: numpy,torch",
        "https://docs.python.org/3/library/site.html#site.USER_SITE",
    ),
    "rocm-on-path": _word(
        "folders of PATH that belong to a ROCm or HIP SDK, separated as on the system",
        "https://github.com/patientx/ComfyUI-Zluda/blob/master/comfy/customzluda/zluda.py",
    ),
    "adapter-ram": _word(
        "the largest memory that Win32_VideoController claims, bytes; it has 32 bits and ends at 4 GB",
        "https://learn.microsoft.com/en-us/windows/win32/cimwin32prov/win32-videocontroller",
    ),
    "cu-init": _word(
        "the number that cuInit(0) gave in a process of its own: 0 is success, 100 no device, 500 not found",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    ),
}
"""How the system is set up; one that cannot be seen is left out."""

_HIDING = "https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html"
_CUDA_VARIABLES = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables"
_PYTHON_VARIABLES = "https://docs.python.org/3/using/cmdline.html#environment-variables"
_CONDA = "https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html"

VARIABLES: Mapping[str, Word] = {
    "CUDA_VISIBLE_DEVICES": _word("hides NVIDIA cards from CUDA, and AMD cards from HIP", _CUDA_VARIABLES),
    "HIP_VISIBLE_DEVICES": _word("hides AMD cards from HIP", _HIDING),
    "ROCR_VISIBLE_DEVICES": _word("hides AMD cards from ROCm's runtime (Linux)", _HIDING),
    "CUDA_DEVICE_ORDER": _word("PCI_BUS_ID: CUDA numbers cards by their places, not by their speed", _CUDA_VARIABLES),
    "GPU_DEVICE_ORDINAL": _word("hides AMD cards from OpenCL", _HIDING),
    "HSA_OVERRIDE_GFX_VERSION": _word(
        "makes ROCm treat each AMD card as another one: 10.3.0",
        "https://rocm.docs.amd.com/en/latest/reference/env-variables.html",
    ),
    "HSA_ENABLE_SDMA": _word(
        "0: AMD cards copy with their cores", "https://rocm.docs.amd.com/en/latest/reference/env-variables.html"
    ),
    "HSA_ENABLE_DXG_DETECTION": _word(
        "1: ROCm before 7.13 looks for cards in WSL", "https://github.com/ROCm/librocdxg"
    ),
    "HIP_PATH": _word("where the HIP SDK is", _HIP_WINDOWS),
    "ROCM_PATH": _word("where ROCm lies", _HIP),
    "CUDA_HOME": _word(
        "where builds look for the CUDA toolkit", "https://docs.pytorch.org/docs/stable/cpp_extension.html"
    ),
    "CUDA_PATH": _word(
        "where the CUDA toolkit is (Windows)",
        "https://docs.nvidia.com/cuda/cuda-installation-guide-microsoft-windows/",
    ),
    "LD_LIBRARY_PATH": _word("where the loader looks first", "https://man7.org/linux/man-pages/man8/ld.so.8.html"),
    "PYTHONPATH": _word("where Python looks first", _PYTHON_VARIABLES),
    "PYTHONHOME": _word("where Python looks for its own library", _PYTHON_VARIABLES),
    "PYTHONUSERBASE": _word("where the user's site folder is", _PYTHON_VARIABLES),
    "PYTHONNOUSERSITE": _word("switches the user's site folder off", _PYTHON_VARIABLES),
    "CONDA_PREFIX": _word("the conda environment that is active", _CONDA),
    "CONDA_DEFAULT_ENV": _word("its name", _CONDA),
    "VIRTUAL_ENV": _word("the virtual environment that is active", "https://docs.python.org/3/library/venv.html"),
    "WSL_DISTRO_NAME": _word(
        "the distribution of Linux in WSL", "https://learn.microsoft.com/en-us/windows/wsl/basic-commands"
    ),
    "DISABLE_ADDMM_CUDA_LT": _word("1: torch uses no cuBLASLt", "https://github.com/lshqqytiger/ZLUDA#readme"),
    "MIOPEN_FIND_MODE": _word(
        "how long MIOpen looks for the fastest convolution",
        "https://rocm.docs.amd.com/projects/MIOpen/en/latest/how-to/find-and-immediate.html",
    ),
    "TORCH_CUDA_ARCH_LIST": _word(
        "what builds of extensions compile for", "https://docs.pytorch.org/docs/stable/cpp_extension.html"
    ),
}
"""Variables of the environment that choose devices, libraries and packages; empty ones count, too."""

_KFD = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html"
_NVIDIA_NODES = "https://download.nvidia.com/XFree86/Linux-x86_64/580.65.06/README/faq.html"
_TEGRA_NODES = "https://docs.nvidia.com/jetson/archives/r38.2/DeveloperGuide/"

NODES: Mapping[str, Word] = {
    "/dev/kfd": _word("computing on AMD cards", _KFD),
    "/dev/dri/renderD*": _word("rendering and computing on one card", _KFD),
    "/dev/nvidiactl": _word("control of NVIDIA's driver", _NVIDIA_NODES),
    "/dev/nvidia[0-9]*": _word("one NVIDIA card", _NVIDIA_NODES),
    "/dev/nvidia-uvm": _word("memory that CUDA shares with the CPU", _NVIDIA_NODES),
    "/dev/dxg": _word("Windows' graphics cards in WSL", _WSL_GPU),
    "/dev/nvmap": _word("memory of a Jetson's GPU", _TEGRA_NODES),
    "/dev/nvhost-gpu": _word("the GPU of a Jetson before Thor", _TEGRA_NODES),
    "/dev/accel/accel*": _word("a processor for networks (NPU)", "https://docs.kernel.org/accel/introduction.html"),
}
"""Device nodes that accelerators use, as patterns of paths."""


def unknown_nodes(paths: Iterable[str]) -> list[str]:
    """Give the paths that are no device nodes of accelerators."""
    return [path for path in paths if not any(fnmatch.fnmatchcase(path, pattern) for pattern in NODES)]
