"""Drivers' libraries and programs are asked in processes of their own; stubs of them answer, lie, hang and crash."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import host_trees
import pytest
from host_trees import UUID, look, write

from patchlock.model.hosts import Device, Failure

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
LOADED = {"sys/module/nvidia/refcnt": "3\n"}
RTX = host_trees.pci("0000:01:00.0", "10de:2684:a1", driver="nvidia") | LOADED


def _smi(tmp_path: Path, script: str) -> str:
    """Make an nvidia-smi; give the PATH that has it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)
    return str(folder)


ROW = "NVIDIA GeForce RTX 4090, {uuid}, 00000000:01:00.0, 0x268410DE, 8.9, 580.65.06, 24564"


def test_nvidia_smi_is_asked_where_no_library_is(tmp_path: Path) -> None:
    path = _smi(tmp_path, f"echo '{ROW.format(uuid=UUID)}'")
    host = look(write(tmp_path / "root", RTX), PATH=path)
    assert host.devices == (
        Device(
            vendor="10de",
            device="2684",
            revision="a1",
            address="0000:01:00.0",
            name="NVIDIA GeForce RTX 4090",
            arch="sm_89",
            memory=24564 * 1024 * 1024,
            driver="580.65.06",
        ),
    )
    assert host.versions == {"nvidia-driver": "580.65.06"}
    assert host.failures == ()


def test_jetson_s_row_without_values_is_its_gpu(tmp_path: Path) -> None:
    path = _smi(tmp_path, f"echo 'NVIDIA Thor, {UUID}, 00000000:01:00.0, 0x2B0010DE, 11.0, 580.00, [N/A]'")
    host = look(write(tmp_path / "root", host_trees.THOR), "aarch64", PATH=path)
    assert [(one.device, one.name, one.arch, one.memory) for one in host.devices] == [
        ("2b00", "NVIDIA Thor", "sm_110", 0)
    ]


def test_orin_s_row_without_a_place_is_its_gpu(tmp_path: Path) -> None:
    path = _smi(tmp_path, "echo 'Orin (nvgpu), [N/A], [N/A], [N/A], [N/A], 540.4.0, [N/A]'")
    host = look(write(tmp_path / "root", host_trees.ORIN), "aarch64", PATH=path)
    assert host.devices == (Device(vendor="10de", name="Orin (nvgpu)", driver="540.4.0"),)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'NVIDIA-SMI has failed because it could not communicate'; exit 9", "exit code 9"),
        ("printf '\\377\\000\\001garbage,,,,,,\\n,,,,,,'", "exit code 0"),
        ("", "exit code 0"),
        ("echo 'No devices were found'", "exit code 0"),
        ("kill -SEGV $$", "exit code -11"),
    ],
    ids=["fails", "garbage", "silent", "no-card", "crashes"],
)
def test_nvidia_smi_without_a_card_is_a_failure(tmp_path: Path, script: str, why: str) -> None:
    host = look(write(tmp_path / "root", RTX), PATH=_smi(tmp_path, script))
    (failure,) = host.failures
    assert failure.probe == "nvidia-smi"
    assert failure.why.startswith(f"it named no card ({why})")
    assert [one.address for one in host.devices] == ["0000:01:00.0"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('sleep 20; touch "$0.ended"', "did not end within 0.4 seconds"),
        ("trap '' TERM; sleep 20; touch \"$0.ended\"", "did not end within 0.4 seconds"),
        ("trap '' PIPE; exec 2>&-; cat /dev/zero; sleep 20; touch \"$0.ended\"", "did not end within 0.4 seconds"),
        ("exec cat /dev/zero", "printed 1000000 bytes and more"),
    ],
    ids=["sleeps", "ignores-signals", "prints-and-sleeps", "prints-without-end"],
)
def test_nvidia_smi_that_never_ends_is_given_up(tmp_path: Path, script: str, why: str) -> None:
    path = f"{_smi(tmp_path, script)}:/usr/bin:/bin"
    host = look(write(tmp_path / "root", RTX), PATH=path, patience=0.4)
    assert not (tmp_path / "programs/nvidia-smi.ended").exists(), "it was waited for"
    assert host.failures == (Failure(probe="nvidia-smi", why=f"nvidia-smi {why}"),)


def test_child_that_keeps_the_pipe_open_is_not_waited_for(tmp_path: Path) -> None:
    script = f'(sleep 20; touch "$0.ended") & echo $! >"$0.child"; echo "{ROW.format(uuid=UUID)}"'
    path = f"{_smi(tmp_path, script)}:/usr/bin:/bin"
    host = look(write(tmp_path / "root", RTX), PATH=path)
    assert not (tmp_path / "programs/nvidia-smi.ended").exists(), "it was waited for"
    assert [one.arch for one in host.devices] == ["sm_89"]
    child = int((tmp_path / "programs/nvidia-smi.child").read_text())
    state = Path(f"/proc/{child}/stat")
    for _ in range(50):
        if not state.exists() or ") Z " in state.read_text():
            return
        time.sleep(0.02)
    pytest.fail("the child of nvidia-smi is still there")


# --- libraries --------------------------------------------------------------------------------------------------------

NVML = r"""
#include <string.h>
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } pci;
int nvmlInit_v2(void) { INIT }
int nvmlSystemGetDriverVersion(char *to, unsigned n) { strncpy(to, "580.65.06", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **to) { *to = (void *)(long)(i + 1); return i == 1 ? 15 : 0; }
int nvmlDeviceGetName(void *c, char *to, unsigned n) { strncpy(to, "NVIDIA GeForce RTX 4090", n); return 0; }
int nvmlDeviceGetUUID(void *c, char *to, unsigned n) { strncpy(to, "GPU-9221d5d1", n); return 0; }
int nvmlDeviceGetPciInfo_v3(void *c, pci *to) {
    strcpy(to->address, "00000000:01:00.0"); to->id = 0x268410deu; return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *c, int *a, int *b) { *a = 8; *b = 9; return 0; }
int nvmlDeviceGetMemoryInfo(void *c, unsigned long long *to) { to[0] = 25757220864ull; return MEMORY; }
"""
CUDA = r"""
int cuDriverGetVersion(int *to) { *to = 13020; return 0; }
int cuInit(unsigned flags) { INIT }
"""


def _compile(code: str, at: Path, **words: str) -> None:
    for word, text in words.items():
        code = code.replace(word, text)
    at.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(at)]
    subprocess.run(command, input=f"#include <stdio.h>\n#include <unistd.h>\n{code}", text=True, check=True)


@needs_compiler
def test_nvml_answers_without_nvidia_smi(tmp_path: Path) -> None:
    path = _smi(tmp_path, 'touch "$0.ran"; exit 1')
    _compile(NVML, tmp_path / "root/usr/lib/libnvidia-ml.so.1", INIT='puts("noise"); return 0;', MEMORY="0")
    host = look(write(tmp_path / "root", RTX), PATH=path)
    assert [(one.name, one.arch, one.memory) for one in host.devices] == [
        ("NVIDIA GeForce RTX 4090", "sm_89", 25757220864)
    ]
    assert host.versions == {"nvidia-driver": "580.65.06", "cuda-driver": "13.0"}
    assert host.libraries == {"libnvidia-ml.so.1": "/usr/lib/libnvidia-ml.so.1"}
    assert host.failures == ()
    assert not (tmp_path / "programs/nvidia-smi.ran").exists()


@needs_compiler
def test_libraries_are_left_alone_where_the_kernel_has_no_driver(tmp_path: Path) -> None:
    """NVIDIA's make device nodes that lead nowhere."""
    init = f'fclose(fopen("{tmp_path}/made", "w")); return 0;'
    write(tmp_path, {})
    _compile(NVML, tmp_path / "usr/lib/libnvidia-ml.so.1", INIT=init, MEMORY="0")
    _compile(CUDA, tmp_path / "usr/lib/libcuda.so.1", INIT=init)
    host = look(tmp_path, PATH=_smi(tmp_path, f"touch {tmp_path}/made"))
    assert not (tmp_path / "made").exists()
    why = "libnvidia-ml.so.1 was not asked, as the kernel has no driver of NVIDIA"
    assert host.failures == (Failure(probe="nvidia", why=why),)
    look(write(tmp_path, LOADED))
    assert (tmp_path / "made").exists()


@needs_compiler
def test_card_that_shares_memory_has_none_of_its_own(tmp_path: Path) -> None:
    _compile(NVML, tmp_path / "usr/lib/libnvidia-ml.so.1", INIT="return 0;", MEMORY="3")
    assert look(write(tmp_path, RTX)).devices[0].memory == 0


@needs_compiler
def test_card_that_the_driver_does_not_name_here_has_a_trouble(tmp_path: Path) -> None:
    _compile(NVML, tmp_path / "usr/lib/libnvidia-ml.so.1", INIT="return 0;", MEMORY="0")
    other = host_trees.pci("0000:02:00.0", "10de:2684:a1", driver="nvidia")
    troubles = [one.trouble for one in look(write(tmp_path, {**RTX, **other})).devices]
    assert troubles == ["", "NVIDIA's driver does not name it here"]


@needs_compiler
@pytest.mark.parametrize(
    ("init", "why"),
    [
        ("return 18;", "nvmlInit_v2 gave 18"),
        ("*(volatile int *)0 = 1; return 0;", "it crashed with signal 11"),
        ("_exit(3);", "it gave no answer (exit code 3)"),
        ("sleep(60); return 0;", "it did not end within 0.5 seconds"),
    ],
    ids=["refuses", "crashes", "exits", "hangs"],
)
def test_library_that_fails_is_recorded_and_nvidia_smi_asked(tmp_path: Path, init: str, why: str) -> None:
    path = _smi(tmp_path, f"echo '{ROW.format(uuid=UUID)}'")
    _compile(NVML, tmp_path / "root/usr/lib/libnvidia-ml.so.1", INIT=init, MEMORY="0")
    host = look(write(tmp_path / "root", RTX), PATH=path, patience=0.5)
    assert host.failures == (Failure(probe="nvml", why=f"libnvidia-ml.so.1: {why}"),)
    assert host.devices[0].arch == "sm_89"


def test_library_that_is_none_is_a_failure(tmp_path: Path) -> None:
    host = look(write(tmp_path, {**RTX, "usr/lib/libnvidia-ml.so.1": "text", "usr/lib/libcuda.so.1": b"\x7fELF"}))
    assert [one.probe for one in host.failures] == ["nvml", "cu-init"]
    assert host.settings == {}


@needs_compiler
@pytest.mark.parametrize("number", [0, 100, 500, 999])
def test_what_cuda_says_of_itself_is_recorded(tmp_path: Path, number: int) -> None:
    _compile(CUDA, tmp_path / "usr/lib/libcuda.so.1", INIT=f"return {number};")
    host = look(write(tmp_path, LOADED))
    assert host.settings == {"cu-init": str(number)}
    assert host.versions == {"cuda-driver": "13.2"}


@needs_compiler
def test_hidden_cards_do_not_change_what_cuda_says_of_itself(tmp_path: Path) -> None:
    code = f"#include <stdlib.h>\n{CUDA}"
    init = 'return getenv("CUDA_VISIBLE_DEVICES") ? 100 : 0;'
    _compile(code, tmp_path / "usr/lib/libcuda.so.1", INIT=init)
    assert look(write(tmp_path, LOADED), CUDA_VISIBLE_DEVICES="").settings == {"cu-init": "0"}


DXCORE = r"""
#include <string.h>
#include <stdint.h>
typedef struct thing { void **table; } thing;
static int32_t none(void) { return 0; }
static _Bool supported(thing *t, uint32_t p) { return 1; }
static int32_t size(thing *t, uint32_t p, size_t *to) {
    *to = p == 2 ? 64 : p == 3 ? 16 : p == 11 ? 1 : 8; return 0;
}
static int32_t get(thing *t, uint32_t p, size_t n, void *to);
static void *card_table[] = {none, none, none, none, none, supported, get, size};
static thing cards[2] = {{card_table}, {card_table}};
static int32_t get(thing *t, uint32_t p, size_t n, void *to) {
    uint32_t ids[] = {IDS};
    uint64_t memory = 17095983104ull, version = (32ull << 48) | (21013ull << 16) | 1000;
    memset(to, 0, n);
    if (p == 1) memcpy(to, &version, 8);
    if (p == 2) strcpy(to, t == &cards[0] ? "AMD Radeon RX 9070 XT" : "Microsoft Basic Render Driver");
    if (p == 3) memcpy(to, ids, 16);
    if (p == 7) memcpy(to, &memory, 8);
    if (p == 11) *(char *)to = t == &cards[0];
    return 0;
}
static int32_t adapter(thing *t, uint32_t i, void *iid, void **to) { *to = &cards[i]; return 0; }
static uint32_t count(thing *t) { return 2; }
static void *list_table[] = {none, none, none, adapter, count};
static thing list = {list_table};
static int32_t create(thing *t, uint32_t n, void *kinds, void *iid, void **to) { *to = &list; return 0; }
static void *factory_table[] = {none, none, none, create};
static thing factory = {factory_table};
int32_t DXCoreCreateAdapterFactory(void *iid, void **to) { *to = &factory; return RESULT; }
"""


@needs_compiler
def test_windows_cards_are_known_in_wsl(tmp_path: Path) -> None:
    _compile(DXCORE, tmp_path / "usr/lib/libdxcore.so", RESULT="0", IDS="0x1002, 0x7550, 0x24211849, 0xc0")
    assert look(write(tmp_path, host_trees.WSL)).devices == (
        host_trees.device(
            device="7550", revision="c0", name="AMD Radeon RX 9070 XT", memory=17095983104, driver="32.0.21013.1000"
        ),
    )


@needs_compiler
def test_card_that_windows_and_nvidia_name_is_one(tmp_path: Path) -> None:
    _compile(DXCORE, tmp_path / "usr/lib/libdxcore.so", RESULT="0", IDS="0x10de, 0x2684, 0, 0xa1")
    _compile(NVML, tmp_path / "usr/lib/libnvidia-ml.so.1", INIT="return 0;", MEMORY="0")
    (card,) = look(write(tmp_path, host_trees.WSL)).devices
    assert (card.device, card.revision, card.name, card.arch) == ("2684", "a1", "NVIDIA GeForce RTX 4090", "sm_89")


@needs_compiler
def test_library_of_windows_that_refuses_is_a_failure(tmp_path: Path) -> None:
    _compile(DXCORE, tmp_path / "usr/lib/libdxcore.so", RESULT="0x80004002", IDS="0")
    host = look(write(tmp_path, host_trees.WSL))
    assert host.failures == (Failure(probe="dxcore", why="libdxcore.so: DXCoreCreateAdapterFactory gave 0x80004002"),)
