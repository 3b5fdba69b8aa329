"""Machines whose files are cut off, binary, unreadable, endless or missing: always an answer, and what failed is said."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from pathlib import Path

import host_snapshots
import host_trees
import host_words
import pytest
from host_trees import CARD, KFD, PCI, look, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchlock.core.bounded_files import FileReader
from patchlock.hardware import doctor, preflight, selection
from patchlock.model import hosts
from patchlock.model.hosts import Failure, Recording

ALL = {path: content for tree in host_trees.TREES.values() for path, content in tree.items()}
ALL["usr/local/cuda/version.json"] = "{}"
ALL["proc/self/cgroup"] = "0::/a\n"
ALL["sys/fs/cgroup/a/memory.max"] = "1000000000\n"
ALL["etc/modprobe.d/a.conf"] = ""
ALL["etc/ld.so.cache"] = host_trees.loader_cache([(0x0303, "libhsa-runtime64.so.1", "/lib/libhsa-runtime64.so.1")])
ALL["sys/class/drm/renderD128/device"] = f"-> ../../../{CARD}"
FILES = sorted(path for path, content in ALL.items() if not str(content).startswith("-> "))


def _answers(root: Path) -> None:
    """Look at a machine; the answer can be written down and is in known words."""
    host = look(root, HOME="/home/ann", USER="ann")
    assert host_words.unknown_names(host) == []
    again = hosts.from_json(hosts.to_json(Recording(host=host)), "x")
    assert again.host == host


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("machine"), ALL)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=12), shift=st.integers(0, 100))
def test_any_bytes_in_all_files_are_an_answer(everything: Path, contents: list[bytes], shift: int) -> None:
    for number, path in enumerate(FILES):
        (everything / path).write_bytes(contents[(number + shift) % len(contents)])
    _answers(everything)


NUMBERS = st.one_of(
    st.integers(-5, 5).map(str),
    st.integers(0, 2**70).map(str),
    st.integers(0, 2**70).map(hex),
    st.text(max_size=8),
    st.sampled_from(["0x030000", "4098", "120001", "0x1002", "99999999", "\0", "٣", "²", "1e9", "0x", "-1"]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(NUMBERS, min_size=9, max_size=9))
def test_any_numbers_of_cards_are_an_answer(everything: Path, numbers: list[str]) -> None:
    names = ("class", "vendor", "device", "revision", "mem_info_vram_total")
    keys = ("vendor_id", "device_id", "gfx_target_version", "location_id", "domain", "drm_render_minor", "unique_id")
    for name, number in zip(names, numbers, strict=False):
        (everything / PCI / CARD / name).write_text(number, encoding="utf-8", errors="replace")
    lines = [f"{key} {number}\n" for key, number in zip(keys, numbers[2:], strict=True)]
    (everything / KFD / "1/properties").write_text("".join(lines), encoding="utf-8", errors="replace")
    _answers(everything)


@pytest.mark.parametrize("path", FILES)
def test_folder_in_the_place_of_a_file_is_an_answer(tmp_path: Path, path: str) -> None:
    tree = {other: content for other, content in ALL.items() if not other.startswith(f"{path}/")}
    write(tmp_path, tree)
    (tmp_path / path).unlink()
    (tmp_path / path).mkdir()
    _answers(tmp_path)


def test_links_that_lead_to_themselves_are_failures(tmp_path: Path) -> None:
    loops = {
        f"{PCI}/{CARD}": f"-> {CARD}",
        "sys/class/kfd": "-> kfd",
        "proc/meminfo": "-> meminfo",
        "dev": "-> dev",
        "etc/os-release": "-> os-release",
        "usr/local/cuda": "-> cuda",
        "opt": "-> ../opt",
        "usr/lib/libcuda.so.1": "-> libcuda.so.1",
    }
    host = look(write(tmp_path, loops))
    assert {one.probe for one in host.failures} >= {"pci", "kfd", "memory", "nodes", "versions"}
    assert "Too many levels of symbolic links" in host.failures[0].why
    assert host.devices == ()


def test_cut_off_card_says_what_is_missing_and_the_others_are_there(tmp_path: Path) -> None:
    cut = {f"{PCI}/0000:04:00.0/class": "0x0300", f"{PCI}/0000:05:00.0/vendor": "0x1002"}
    binary = host_trees.pci("0000:06:00.0", "10de:2684:a1", driver="nvidia") | {
        f"{PCI}/0000:06:00.0/device": b"\xff\xfe\x00",
    }
    host = look(write(tmp_path, {**host_trees.RX_9070_XT, **cut, **binary}))
    assert [(one.address, one.device) for one in host.devices] == [(CARD, "7550"), ("0000:06:00.0", "")]
    assert host.failures == (
        Failure(probe="pci", why="/sys/bus/pci/devices/0000:05:00.0/class is not a number"),
        Failure(probe="pci", why="/sys/bus/pci/devices/0000:06:00.0/device is not a number of 4 hexadecimal digits"),
    )


def test_failures_of_one_kind_are_few(tmp_path: Path) -> None:
    write(tmp_path, {f"{PCI}/0000:{number:02x}:00.0/class": "?" for number in range(200)})
    assert len(look(tmp_path).failures) == 20


def test_topology_that_lies_is_a_failure(tmp_path: Path) -> None:
    node = host_trees.kfd(1, gfx_target_version=120001000, vendor_id=0x1002, device_id=0x7550, location_id=0x0300)
    host = look(write(tmp_path, {**host_trees.RX_9070_XT, **node}))
    assert [one.arch for one in host.devices] == [""]
    assert [one.why for one in host.failures] == [f"/{KFD}/1/properties has a gfx_target_version of 120001000"]


def test_thousand_devices_are_seen_and_no_file_of_theirs_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree: dict[str, str] = {}
    for number in range(1000):
        address = f"{number >> 8:04x}:{number & 255:02x}:00.0"
        tree |= host_trees.pci(address, "10de:2330:a1", kind="0x030200", driver="nvidia")
    write(tmp_path, tree)
    read: Counter[str] = Counter()
    text = FileReader.text

    def count(files: FileReader, path: str) -> str:
        read[path] += 1
        return text(files, path)

    monkeypatch.setattr(FileReader, "text", count)
    assert len(look(tmp_path).devices) == 1000
    of_devices = {path: times for path, times in read.items() if path.startswith(PCI)}
    assert len(of_devices) >= 4000
    assert max(of_devices.values()) == 1


def test_pipe_in_the_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    for path in ("proc/meminfo", "etc/os-release", "opt/rocm/.info/version", "proc/driver/nvidia/version"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / path)
    assert look(tmp_path).memory == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_a_failure(tmp_path: Path) -> None:
    write(tmp_path, host_trees.DESKTOP)
    (tmp_path / KFD / "1/properties").chmod(0)
    assert look(tmp_path).failures == (
        Failure(probe="kfd", why=f"/{KFD}/1/properties cannot be read: Permission denied"),
    )


def test_file_that_the_kernel_refuses_to_give_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's device rules refuse the properties of the GPUs that it has not got."""
    real = os.read

    def read(descriptor: int, length: int) -> bytes:
        if Path(f"/proc/self/fd/{descriptor}").resolve().match("nodes/1/properties"):
            raise PermissionError(1, "Operation not permitted")
        return real(descriptor, length)

    write(tmp_path, host_trees.DESKTOP)
    monkeypatch.setattr(os, "read", read)
    host = look(tmp_path)
    assert [one.arch for one in host.devices] == ["", "gfx1036"]
    assert host.failures == (Failure(probe="kfd", why=f"/{KFD}/1/properties cannot be read: Operation not permitted"),)


def test_device_tree_ends_with_a_nul(tmp_path: Path) -> None:
    host = look(write(tmp_path, {"proc/device-tree/model": "Raspberry Pi 5\0", "proc/device-tree/compatible": "\0\0"}))
    assert (host.board, host.devices) == ("Raspberry Pi 5", ())


def test_names_of_files_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    for folder in (PCI, KFD, "dev/dri", "opt", "proc/driver/nvidia/gpus", "etc/modprobe.d"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in (b"\xff\xfe", b"\xd9\xa3", b"renderD\xff", b"rocm\xff", b"a.conf\xff.conf", b"0" * 200):
            (tmp_path / folder).joinpath(os.fsdecode(name)).mkdir()
    host = look(tmp_path)
    assert host.devices == ()
    assert host.nodes == ()
    assert json.dumps(hosts.to_json(Recording(host=host)), ensure_ascii=False).encode()


@pytest.mark.parametrize("version", ["9" * 5000, "580." + "9" * 5000, "N/A", "."])
def test_version_that_no_driver_has_is_an_answer(version: str) -> None:
    told = host_snapshots.recording("rtx3060-driver-550")
    host = dataclasses.replace(told.host, release=version, versions={"nvidia-driver": version, "cuda-driver": version})
    changed = dataclasses.replace(told, host=host, packages={"torch": version, "torchvision": version})
    assert selection.rank(host_snapshots.outlines(), host, host_snapshots.cards())
    doctor.diagnose(changed, host_snapshots.cards(), host_snapshots.troubles(), host_snapshots.rules().families)
    assert preflight.parsed("9" * 5000) is None
