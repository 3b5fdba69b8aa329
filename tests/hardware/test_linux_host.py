"""Machines as folders: which cards, nodes, versions and settings each has; facts from `host_trees`."""

from __future__ import annotations

import os
from pathlib import Path

import host_trees
import host_words
import pytest
from host_trees import CARD, PROCESSOR, device, look, write

from patchlock.hardware import probes
from patchlock.hardware._macos.host import graphics, probe
from patchlock.model.hosts import Device, Failure, Host, Node

GB = 1024**3
RTX_4090 = host_trees.pci("0000:01:00.0", "10de:2684:a1", driver="nvidia")


@pytest.mark.parametrize("name", host_trees.TREES)
def test_machine_is_observed_in_known_words_and_without_failures(tmp_path: Path, name: str) -> None:
    host = look(write(tmp_path, host_trees.TREES[name]))
    assert host_words.unknown_names(host) == []
    assert host.failures == ()


def test_desktop_has_its_card_and_the_graphics_of_its_processor(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.DESKTOP))
    assert host.devices == (
        device(
            device="7550", revision="c0", address=CARD, arch="gfx1201", memory=17_095_983_104, driver="6.12.12"
        ),
        device(device="164e", revision="c1", address=PROCESSOR, arch="gfx1036", memory=536_870_912, driver="6.12.12"),
    )  # fmt: skip
    assert host.nodes == tuple(
        Node(path=path, is_usable=True) for path in ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129")
    )
    assert host.versions == {"amdgpu": "6.12.12", "rocm": "6.4.1"}
    assert host.settings == {"amdgpu-module": "loaded"}
    assert host.libraries == {"libhsa-runtime64.so.1": "/usr/lib/libhsa-runtime64.so.1"}


def test_system_is_told_by_its_files(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.DESKTOP))
    assert (host.os, host.machine, host.libc, host.release) == ("linux", "x86_64", "glibc 2.39", "6.14.0-33-generic")
    assert (host.distribution, host.processor) == ("ubuntu 24.04", "AMD Ryzen 7 9700X 8-Core Processor")
    assert (host.memory, host.available) == (65_760_000 * 1024, 50_000_000 * 1024)
    assert (host.container, host.is_wsl, host.tegra) == ("", False, "")


def test_ordinary_card_of_nvidia_is_known_without_any_program(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.ORDINARY))
    graphics, card = host.devices
    assert graphics == Device(vendor="8086", device="a780", revision="04", address="0000:00:02.0")
    assert card == Device(
        vendor="10de",
        device="2684",
        revision="a1",
        address="0000:01:00.0",
        name="NVIDIA GeForce RTX 4090",
        driver="580.65.06",
    )
    assert host.versions == {"cuda-toolkit": "12.4.20240521", "nvidia-driver": "580.65.06"}
    assert [node.path for node in host.nodes] == ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"]


@pytest.mark.parametrize(
    ("tree", "tegra", "board", "gpu"),
    [
        (host_trees.THOR, "38.2.0", "NVIDIA Jetson AGX Thor Developer Kit", "NVIDIA Thor"),
        (host_trees.ORIN, "39.1.0", "NVIDIA Jetson AGX Orin Developer Kit", "Orin (nvgpu)"),
    ],
    ids=["thor", "orin-with-the-same-jetpack"],
)
def test_jetson_has_its_gpu_though_no_bus_has_it(
    tmp_path: Path, tree: host_trees.Tree, tegra: str, board: str, gpu: str
) -> None:
    host = look(write(tmp_path, tree), "aarch64")
    assert (host.tegra, host.board) == (tegra, board)
    assert host.devices == (Device(vendor="10de", name=gpu),)


def test_thor_whose_gpu_is_on_a_bus_has_it_once(tmp_path: Path) -> None:
    on_bus = host_trees.pci("0000:01:00.0", "10de:2b00:a1", driver="nvidia")
    host = look(write(tmp_path, {**host_trees.THOR, **on_bus}), "aarch64")
    assert [one.address for one in host.devices] == ["0000:01:00.0"]


def test_spark_is_no_jetson(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.GB10), "aarch64")
    assert (host.tegra, host.board) == ("", "NVIDIA_DGX_Spark")
    assert [(one.device, one.name, one.driver) for one in host.devices] == [("2e12", "NVIDIA GB10", "580.65.06")]


def test_wsl_is_told_by_its_kernel_and_its_node(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.WSL), WSL_DISTRO_NAME="Ubuntu")
    assert host.is_wsl
    assert host.devices == ()
    assert host.nodes == (Node(path="/dev/dxg", is_usable=True),)
    assert host.settings == {"wsl-interop": "on"}
    assert host.variables == {"WSL_DISTRO_NAME": "Ubuntu"}


def test_library_of_windows_driver_is_found_where_it_lies(tmp_path: Path) -> None:
    folder = "usr/lib/wsl/drivers/nv_dispsi.inf_amd64_7cc7738d8e428783"
    host = look(write(tmp_path, {**host_trees.WSL, f"{folder}/libnvdxgdmal.so.1": ""}))
    assert host.libraries == {"libnvdxgdmal.so.1": f"/{folder}/libnvdxgdmal.so.1"}


def test_container_sees_its_host_s_cards_and_no_nodes(tmp_path: Path) -> None:
    host = look(write(tmp_path, host_trees.ON_HOSTS_SYSFS))
    assert host.container == "docker"
    assert [one.arch for one in host.devices] == ["gfx1201", "gfx1036"]
    assert host.nodes == ()


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({"run/.containerenv": 'engine="podman-4.9"\n', ".dockerenv": ""}, {}, "podman"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"proc/self/cgroup": "12:pids:/docker/3fa8\n"}, {}, "docker"),
        ({"proc/self/cgroup": "0::/kubepods.slice/kubepods-besteffort.slice\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n"}, {}, ""),
        ({"proc/self/cgroup": "0::/system.slice/docker.service\n"}, {}, ""),
    ],
    ids=["podman", "lxc", "variable", "cgroup-v1", "kubernetes", "desktop", "service-of-docker"],
)
def test_container_is_told_by_its_traces(
    tmp_path: Path, files: dict[str, str], variables: dict[str, str], expected: str
) -> None:
    assert look(write(tmp_path, files), **variables).container == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sys/module/amdgpu/refcnt": "3\n"}, {"amdgpu-module": "loaded"}),
        ({"sys/module/kvm/refcnt": "3\n"}, {"amdgpu-module": "absent"}),
        (
            {"sys/module/kvm/refcnt": "", "etc/modprobe.d/blacklist-gpu.conf": "# why\nblacklist  amdgpu\n"},
            {"amdgpu-module": "blacklisted"},
        ),
        (
            {"sys/module/kvm/refcnt": "", "usr/lib/modprobe.d/x.conf": "install amdgpu /bin/false\n"},
            {"amdgpu-module": "blacklisted"},
        ),
        (
            {"sys/module/kvm/refcnt": "", "proc/cmdline": "quiet modprobe.blacklist=nouveau,amdgpu\n"},
            {"amdgpu-module": "blacklisted"},
        ),
        (
            {"sys/module/kvm/refcnt": "", "etc/modprobe.d/x.conf": "#blacklist amdgpu\nblacklist amdgpu_old\n"},
            {"amdgpu-module": "absent"},
        ),
        ({"sys/module/nouveau/refcnt": "0\n"}, {"amdgpu-module": "absent", "nouveau": "loaded"}),
        ({}, {}),
    ],
    ids=["loaded", "absent", "file", "install", "command-line", "comment", "nouveau", "no-sys-module"],
)
def test_module_of_the_card_is_told(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    assert look(write(tmp_path, {**host_trees.pci(CARD, "1002:7550:c0"), **files})).settings == expected


_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MOK_STATE = "sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({_SECURE_BOOT: b"\6\0\0\0\1"}, "on"),
        ({_SECURE_BOOT: b"\6\0\0\0\0"}, "off"),
        ({_SECURE_BOOT: b"\6\0\0\0\1", _MOK_STATE: b"\6\0\0\0\1"}, "off"),
        ({_SECURE_BOOT: b"\6\0\0\0\1", _MOK_STATE: b"\6\0\0\0\0"}, "on"),
        ({}, ""),
    ],
    ids=["on", "off", "shim-ignores-it", "shim-heeds-it", "no-uefi"],
)
def test_secure_boot_is_told(tmp_path: Path, files: dict[str, str | bytes], expected: str) -> None:
    assert look(write(tmp_path, files)).settings.get("secure-boot", "") == expected


@pytest.mark.parametrize(
    ("driver", "trouble"),
    [
        ("amdgpu", ""),
        ("", "no driver of the kernel has taken it"),
        ("vfio-pci", "vfio-pci has taken it, for a virtual machine"),
    ],
    ids=["amdgpu", "none", "passed-through"],
)
def test_card_without_its_driver_has_a_trouble(tmp_path: Path, driver: str, trouble: str) -> None:
    host = look(write(tmp_path, host_trees.pci(CARD, "1002:7550:c0", driver=driver)))
    assert host.devices[0].trouble == trouble


def test_versions_are_the_newest_or_those_that_the_user_names(tmp_path: Path) -> None:
    tree = {
        "opt/rocm-6.3.0/.info/version": "6.3.0-39",
        "opt/rocm-6.10.1/.info/version": "6.10.1-1",
        "opt/mine/.info/version": "7.0.2",
        "opt/cuda-13/version.json": '{"cuda": {"version": "13.0.2"}}',
    }
    root = write(tmp_path, tree)
    assert look(root).versions == {"rocm": "6.10.1"}
    assert look(root, ROCM_PATH="/opt/mine", CUDA_HOME="/opt/cuda-13/").versions == {
        "rocm": "7.0.2",
        "cuda-toolkit": "13.0.2",
    }


def test_user_s_site_folder_shadows_what_computes(tmp_path: Path) -> None:
    site = "home/ann/.local/lib/python3.12/site-packages"
    names = ("torch-2.4.0.dist-info", "nvidia_cublas_cu12-12.4.dist-info", "requests-2.dist-info", "numpy-2.dist-info")
    root = write(tmp_path, {f"{site}/{name}/RECORD": "" for name in names})
    assert look(root, HOME="/home/ann").settings == {"user-site": "numpy,nvidia-cublas-cu12,torch"}
    assert look(root, HOME="/home/bob").settings == {}
    assert look(root, HOME="/home/bob", PYTHONUSERBASE="/home/ann/.local").settings != {}


def test_rocm_on_path_is_named_without_the_user(tmp_path: Path) -> None:
    host = look(tmp_path, HOME="/home/ann", PATH="/opt/rocm-6.4.1/bin:/usr/bin:/home/ann/rocm/bin")
    assert host.settings == {"rocm-on-path": "/opt/rocm-6.4.1/bin:~/rocm/bin"}


def test_node_that_this_user_may_not_open_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    root = write(tmp_path, {"dev/kfd": "", "dev/nvidia0": ""})
    (root / "dev/kfd").chmod(0o660)
    monkeypatch.setattr(os, "access", lambda path, _mode: "kfd" not in str(path))
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group(("render", "x", 992, [])))
    assert look(root).nodes == (
        Node(path="/dev/kfd", is_usable=False, group="render"),
        Node(path="/dev/nvidia0", is_usable=True),
    )


def test_groups_are_those_of_this_process_and_name_nobody(tmp_path: Path) -> None:
    own = os.getegid()
    root = write(tmp_path, {"etc/group": f"ann:x:{own}:\nrender:x:{own}:\nvideo:x:{own + 77777}:\nbroken\nodd:x:²:\n"})
    assert look(root).groups == ("render",)


def test_legacy_apu_is_matched_by_its_id_where_the_topology_has_no_place(tmp_path: Path) -> None:
    node = host_trees.kfd(1, simd_count=40, gfx_target_version=90002, vendor_id=0x1002, device_id=0x15DD, location_id=0)
    host = look(write(tmp_path, {**host_trees.pci(PROCESSOR, "1002:15dd:c6", driver="amdgpu"), **node}))
    assert [(one.address, one.arch) for one in host.devices] == [(PROCESSOR, "gfx902")]


def test_card_is_matched_by_its_render_node_where_its_place_is_another(tmp_path: Path) -> None:
    node = host_trees.kfd(
        1, gfx_target_version=120001, vendor_id=0x1002, device_id=0x7550, location_id=0x4200, drm_render_minor=128
    )
    link = {"sys/class/drm/renderD128/device": f"-> ../../../{CARD}"}
    host = look(write(tmp_path, {**host_trees.RX_9070_XT, **node, **link}))
    assert [(one.address, one.arch) for one in host.devices] == [(CARD, "gfx1201")]


def test_topology_without_a_bus_is_a_card_too(tmp_path: Path) -> None:
    host = look(write(tmp_path, {**host_trees.CPU_NODE, **host_trees.KFD_9070}))
    assert host.devices == (device(device="7550", address=CARD, arch="gfx1201"),)


def test_nodes_of_processors_and_of_nvidia_are_no_gpus_of_amd(tmp_path: Path) -> None:
    other = host_trees.kfd(1, gfx_target_version=0, vendor_id=0x10DE, device_id=0x2684, location_id=0x0100)
    assert look(write(tmp_path, {**host_trees.CPU_NODE, **other})).devices == ()


@pytest.mark.parametrize(
    ("variables", "hidden"),
    [
        ({"HIP_VISIBLE_DEVICES": "0"}, [PROCESSOR]),
        ({"HIP_VISIBLE_DEVICES": "1"}, [CARD]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-1234567890abcdef"}, [PROCESSOR]),
        ({"HIP_VISIBLE_DEVICES": "-1"}, [CARD, PROCESSOR]),
    ],
    ids=["first", "second", "by-name", "all"],
)
def test_cards_are_hidden_as_the_topology_counts_them(
    tmp_path: Path, variables: dict[str, str], hidden: list[str]
) -> None:
    host = look(write(tmp_path, host_trees.DESKTOP), **variables)
    assert [one.address for one in host.devices if one.is_hidden] == hidden
    assert list(host.variables) == list(variables)


def test_cards_of_nvidia_are_hidden_as_the_buses_count_them(tmp_path: Path) -> None:
    tree = {**RTX_4090, **host_trees.pci("0000:02:00.0", "10de:2684:a1", driver="nvidia")}
    host = look(write(tmp_path, tree), CUDA_VISIBLE_DEVICES="1")
    assert [one.is_hidden for one in host.devices] == [True, False]


def test_libraries_are_those_of_the_machine_s_processor(tmp_path: Path) -> None:
    rows = [
        (0x0303, "libcuda.so.1", "/usr/lib64/libcuda.so.1"),
        (0x0A03, "libcuda.so.1", "/usr/lib/tegra/libcuda.so.1"),
    ]
    root = write(tmp_path, {"etc/ld.so.cache": host_trees.loader_cache(rows)})
    assert look(root, "aarch64").libraries == {"libcuda.so.1": "/usr/lib/tegra/libcuda.so.1"}
    assert look(root, "x86_64").libraries == {"libcuda.so.1": "/usr/lib64/libcuda.so.1"}


def test_memory_that_is_available_is_what_the_container_has_left(tmp_path: Path) -> None:
    limits = {"memory.max": "4000000000\n", "memory.current": "1000000000\n"}
    tree = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    host = look(write(tmp_path, {**host_trees.SYSTEM, **tree}))
    assert (host.memory, host.available) == (4_000_000_000, 3_000_000_000)


@pytest.mark.parametrize(
    ("chip", "machine", "named"),
    [("Apple M4 Max", "arm64", ["Apple M4 Max"]), ("", "arm64", []), ("Intel(R) Core(TM) i9-9880H CPU", "x86_64", [])],
    ids=["apple", "says-nothing", "intel"],
)
def test_graphics_of_a_mac_are_those_of_its_chip(chip: str, machine: str, named: list[str]) -> None:
    assert graphics(chip, machine) == tuple(Device(vendor="106b", name=name) for name in named)


def test_mac_has_its_memory_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/Users/ann")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/Users/ann/lib")
    host = probe(Host(os="macos", machine="arm64"), tmp_path)
    assert host.memory > GB
    assert host.disk > 0
    assert host.variables["LD_LIBRARY_PATH"] == "~/lib"


def test_this_machine_is_observed() -> None:
    host = probes.probe(Path("/"))
    basic = probes.basic()
    assert (host.os, host.machine, host.libc) == (basic.os, basic.machine, basic.libc)
    assert host.release == os.uname().release
    assert host.memory >= host.available > 0
    assert host.disk > 0
    assert host.python
    assert host_words.unknown_names(host) == []


def test_empty_machine_is_an_answer(tmp_path: Path) -> None:
    host = look(tmp_path)
    blind = Failure(probe="pci", why="/sys/bus is not there, so that no card can be seen")
    assert host == Host(os="linux", machine="x86_64", libc="glibc 2.39", release=os.uname().release, failures=(blind,))
