"""What of an observed machine is told: nothing that names a person, a computer, an environment or a folder of theirs."""

from __future__ import annotations

import json
from pathlib import Path

import host_trees
import pytest
from host_trees import look, write
from hypothesis import given
from hypothesis import strategies as st

from patchlock.hardware import _allow_list
from patchlock.model import host_vocabulary, hosts
from patchlock.model.hosts import Failure, Host, Recording


def _told(name: str, text: str, os: str = "linux", home: str = "/home/ann", user: str = "ann") -> str:
    return _allow_list.told(Host(os=os, machine="x", variables={name: text}), home, user).variables[name]


@pytest.mark.parametrize(
    ("os", "home", "text", "expected"),
    [
        ("linux", "/home/ann", "/home/ann/lib:/home/ann:/x", "~/lib:~:/x"),
        ("linux", "/home/ann/", "/home/annabel/lib", "/home/~/lib"),
        ("linux", "/home/ann", "/data/ann/venv", "/~/~/venv"),
        ("linux", "/home/ann", "/home/ann/miniconda3/envs/divorce/lib", "~/miniconda3/envs/~/lib"),
        ("linux", "/root", "/root/venv:/opt/rocm-6.4.1/lib", "~/venv:/opt/rocm-6.4.1/lib"),
        ("linux", "/home/ann", "/mnt/c/Users/Ann Smith/AppData", "/mnt/c/Users/~/AppData"),
        ("linux", "/home/linuxbrew", "/home/linuxbrew/.linuxbrew/lib", "~/.linuxbrew/lib"),
        ("linux", "/home/ann", "/usr/local/cuda-12.8/targets/x86_64-linux/lib", None),
        ("linux", "", "/media/Jürgen/lib", "/~ü/~/lib"),
        ("linux", "/home/ann", "/x/no \udcff text", "/x/~ü"),
        (
            "windows",
            r"C:\Users\Ann",
            r"C:\Users\Ann\rocm;c:/users/ann/x;C:\Users\Public",
            r"~\rocm;~/x;C:\Users\Public",
        ),
        ("windows", r"C:\Users\Jörg", r"C:\Users\Jörg\venv", "~ü\\venv"),
        ("windows", r"C:\Users\Ann", r"C:\Program Files\AMD\ROCm\6.4\bin;D:\Ann's things", None),
    ],
)
def test_folders_keep_the_parts_that_every_machine_has(os: str, home: str, text: str, expected: str | None) -> None:
    told = _told("LD_LIBRARY_PATH", text, os, home, home.rstrip("/").replace("\\", "/").rpartition("/")[2])
    assert told == (text.replace("Ann's things", "~") if expected is None else expected)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("CONDA_DEFAULT_ENV", "base", "base"),
        ("CONDA_DEFAULT_ENV", "ann-thesis", "…"),
        ("WSL_DISTRO_NAME", "Ubuntu-24.04", "Ubuntu-24.04"),
        ("WSL_DISTRO_NAME", "Ann", "…"),
        ("CUDA_VISIBLE_DEVICES", "", ""),
        ("CUDA_VISIBLE_DEVICES", "0, -1", "0, -1"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1", "…,1"),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID", "PCI_BUS_ID"),
        ("HSA_OVERRIDE_GFX_VERSION", "10.3.0", "10.3.0"),
        ("TORCH_CUDA_ARCH_LIST", "8.6;9.0a+PTX Ampere", "8.6;9.0a+PTX Ampere"),
        ("MIOPEN_FIND_MODE", "ann", "…"),
    ],
)
def test_values_are_numbers_and_known_words(name: str, text: str, expected: str) -> None:
    assert _told(name, text) == expected


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("CUDA_VISIBLE_DEVICES=ann chooses among 2 cards", "CUDA_VISIBLE_DEVICES=… chooses among 2 cards"),
        (
            "/sys/bus/pci/devices/0000:01:00.0/class is not a number",
            "/sys/bus/pci/devices/0000:01:00.0/class is not a number",
        ),
        ("nvidia-smi: /srv/lab7/xy.so, /home/ann/my: not found", "nvidia-smi: /~/~/~, ~/~: not found"),
        (
            r"reading SYSTEM\CurrentControlSet\Enum failed: C:\Lab7\xy",
            r"reading SYSTEM\CurrentControlSet\Enum failed: C:\~\~",
        ),
        ("/usr/local/cuda/version.json has no version of CUDA", "/usr/local/cuda/version.json has no version of CUDA"),
    ],
)
def test_paths_in_failures_are_folders_too(why: str, expected: str) -> None:
    host = Host(os="linux", machine="x", variables={"CUDA_VISIBLE_DEVICES": "ann"})
    host = Host(os="linux", machine="x", variables=host.variables, failures=(Failure(probe="x", why=why),))
    assert _allow_list.told(host, "/home/ann", "ann").failures == (Failure(probe="x", why=expected),)


NAME = st.text(st.characters(categories=("L", "N")), min_size=6, max_size=12).map(lambda text: f"Zq{text}")


@given(name=NAME)
def test_no_invented_name_is_told_by_any_word(name: str) -> None:
    for os, path in (("linux", f"/srv/{name}/{name}.d:/home/{name}/envs/{name}"), ("windows", rf"D:\{name}\{name} x")):
        variables = {word: path if number % 2 else name for number, word in enumerate(host_vocabulary.VARIABLES)}
        said = (Failure(probe="x", why=f"{next(iter(variables))}={name} is wrong"), Failure(probe="y", why=path))
        settings = {"rocm-on-path": path}
        host = Host(os=os, machine="x", libraries={"x": path}, settings=settings, variables=variables, failures=said)
        for home, user in (("", ""), (f"/home/{name}", name)):
            assert name not in repr(_allow_list.told(host, home, user))


def test_whole_machine_tells_no_name(tmp_path: Path) -> None:
    """What `detect --json` writes, of a machine on which everything is named after its owner."""
    own = "zqlinda"
    variables = dict.fromkeys(host_vocabulary.VARIABLES, own) | {
        "PATH": f"/home/{own}/rocm/bin:/opt/{own}/rocm",
        "LD_LIBRARY_PATH": f"/home/{own}/lib:/srv/{own}/lib",
        "HOME": f"/home/{own}",
        "HOSTNAME": own,
    }
    for tree in host_trees.TREES.values():
        root = write(tmp_path / str(len(list(tmp_path.iterdir()))), tree)
        assert own not in json.dumps(hosts.to_json(Recording(host=look(root, **variables))))
