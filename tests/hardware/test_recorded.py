"""Pretended machines: recordings, single overrides, and files that are none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT

from patchlock.catalogue import profile_summaries
from patchlock.hardware import host_overrides
from patchlock.model import hosts
from patchlock.model.devices import KnownDevice, identify
from patchlock.model.errors import UsageError
from patchlock.model.hosts import Device, Host, Node, Recording

CARDS = profile_summaries.cards(ROOT)
HERE = Host(os="linux", machine="x86_64", libc="glibc 2.36", devices=(Device(vendor="8086", device="a780"),))
VEGA = Host(os="windows", machine="amd64", devices=(Device(vendor="1002", device="15d8", revision="c2"),))


def _probe() -> Host:
    return HERE


def _never() -> Host:
    pytest.fail("this machine is asked although another one is pretended")


def _file(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "host.json").write_text(text, encoding="utf-8")
    return {"PATCHLOCK_HOST": str(tmp_path / "host.json")}


def test_nothing_is_pretended_by_default() -> None:
    seen = host_overrides.observe(_probe, {"PATH": "/bin"})
    assert (seen.host, seen.overrides) == (HERE, ())


def test_recording_stands_for_the_machine(tmp_path: Path) -> None:
    recording = Recording(host=VEGA, title="Vega 8", packages={"torch": "2.4.1"})
    env = _file(tmp_path, json.dumps(hosts.to_json(recording)))
    seen = host_overrides.observe(_never, env)
    assert (seen.recording, seen.overrides) == (recording, (f"PATCHLOCK_HOST={env['PATCHLOCK_HOST']}",))


def test_answer_of_detect_stands_for_the_machine(tmp_path: Path) -> None:
    data = {**hosts.to_json(Recording(host=VEGA)), "choice": {"profile": "directml-vega"}}
    env = _file(tmp_path, json.dumps({"patchlock": 1, "command": "detect", "ok": True, "data": data, "error": None}))
    assert host_overrides.observe(_never, env).host == VEGA


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", "PATCHLOCK_HOST names a file that is not JSON", id="empty"),
        pytest.param("nvidia-smi: command not found", "PATCHLOCK_HOST names a file that is not JSON", id="not JSON"),
        pytest.param("[" * 100_000, "PATCHLOCK_HOST names a file that is not JSON", id="nested too deep"),
        pytest.param("[]", 'this is not a recorded machine: its "patchlock_host" must be 1', id="a list"),
        pytest.param('{"host": {}}', 'this is not a recorded machine: its "patchlock_host" must be 1', id="no format"),
        pytest.param(
            '{"patchlock_host": 1, "host": {"os": "linux", "machine": 5, "libk": ""}}',
            "this recorded machine has 2 mistakes",
            id="wrong keys",
        ),
        pytest.param(" " * (5 << 20), "a recorded machine is smaller than 4 MB", id="huge"),
    ],
)
def test_file_that_is_no_machine_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        host_overrides.observe(_never, _file(tmp_path, text))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_file_is_read_as_shells_write_it(encoding: str, tmp_path: Path) -> None:
    text = '{"patchlock_host": 1, "host": {"os": "windows", "machine": "amd64"}}'
    (tmp_path / "x").write_bytes(text.encode(encoding))
    assert host_overrides.observe(_never, {"PATCHLOCK_HOST": str(tmp_path / "x")}).host.os == "windows"


def test_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00MZ")
    with pytest.raises(UsageError, match="not JSON"):
        host_overrides.observe(_never, {"PATCHLOCK_HOST": str(tmp_path / "x")})


@pytest.mark.parametrize(("name", "why"), [("missing.json", "no such file or directory"), (".", "is a directory")])
def test_file_that_cannot_be_read_is_refused(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"cannot be read: {why} \\({tmp_path}"):
        host_overrides.observe(_never, {"PATCHLOCK_HOST": str(tmp_path / name)})


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ARCH", "", {"devices": ()}),
        (
            "ARCH",
            "gfx1201",
            {
                "devices": (Device(vendor="1002", arch="gfx1201"),),
                "nodes": (
                    Node(path="/dev/kfd", is_usable=True),
                    Node(path="/dev/dri/renderD128", is_usable=True),
                ),
            },
        ),
        (
            "ARCH",
            "sm_89",
            {
                "devices": (Device(vendor="10de", arch="sm_89"),),
                "nodes": (Node(path="/dev/nvidiactl", is_usable=True),),
            },
        ),
        (
            "ARCH",
            "bmg",
            {
                "devices": (Device(vendor="8086", arch="bmg"),),
                "nodes": (Node(path="/dev/dri/renderD128", is_usable=True),),
            },
        ),
        ("DRIVER", "580.65", {"versions": {"nvidia-driver": "580.65"}}),
        ("KERNEL", "6.14", {"release": "6.14"}),
        ("TEGRA", "38.4", {"tegra": "38.4"}),
        ("WSL", "1", {"is_wsl": True, "nodes": (Node(path="/dev/dxg", is_usable=True),)}),
        ("WSL", "", {"is_wsl": False}),
        ("WSL", "0", {"is_wsl": False, "nodes": ()}),
        ("KERNEL", "6.8.12-tegra", {"release": "6.8.12-tegra"}),
    ],
)
def test_variable_pretends_one_thing(variable: str, value: str, expected: dict[str, object]) -> None:
    name = f"PATCHLOCK_OVERRIDE_{variable}"
    seen = host_overrides.observe(_probe, {name: value})
    assert {key: getattr(seen.host, key) for key in expected} == expected
    assert (seen.host.libc, seen.overrides) == (HERE.libc, (f"{name}={value}",))


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        (
            "ARCH",
            "rdna4",
            'PATCHLOCK_OVERRIDE_ARCH is not an arch such as gfx1201 or sm_89: "rdna4"; unset PATCHLOCK_OVERRIDE_ARCH',
        ),
        (
            "DRIVER",
            "new",
            'PATCHLOCK_OVERRIDE_DRIVER is not a version such as 580.65: "new"; unset PATCHLOCK_OVERRIDE_DRIVER',
        ),
        (
            "KERNEL",
            "v6.14",
            'PATCHLOCK_OVERRIDE_KERNEL is not a version such as 6.14: "v6.14"; unset PATCHLOCK_OVERRIDE_KERNEL',
        ),
        (
            "TEGRA",
            "R38.4",
            'PATCHLOCK_OVERRIDE_TEGRA is not a release such as 38.4: "R38.4"; unset PATCHLOCK_OVERRIDE_TEGRA',
        ),
        ("WSL", "yes", 'PATCHLOCK_OVERRIDE_WSL is neither 1 nor 0: "yes"; unset PATCHLOCK_OVERRIDE_WSL'),
        ("ARHC", "sm_89", 'no variable PATCHLOCK_OVERRIDE_ARHC is known; did you mean "PATCHLOCK_OVERRIDE_ARCH"?'),
    ],
)
def test_override_that_pretends_nothing_is_refused(variable: str, value: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        host_overrides.observe(_never, {f"PATCHLOCK_OVERRIDE_{variable}": value})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("arch", sorted({card.arch for card in CARDS if card.arch}))
def test_arch_of_the_table_tells_vendor_and_family(arch: str) -> None:
    seen = host_overrides.observe(_probe, {"PATCHLOCK_OVERRIDE_ARCH": arch})
    host_overrides.require_known_arch(seen, CARDS)
    (device,) = seen.host.devices
    found = identify(device, CARDS)
    assert isinstance(found, KnownDevice)
    assert (device.vendor, found.card.family) in {(card.vendor, card.family) for card in CARDS if card.arch == arch}


def test_arch_that_no_card_has_is_refused() -> None:
    seen = host_overrides.observe(_probe, {"PATCHLOCK_OVERRIDE_ARCH": "gfx1109"})
    cards = tuple(card for card in CARDS if card.arch in {"gfx1100", "gfx906", "sm_89"})
    with pytest.raises(UsageError) as caught:
        host_overrides.require_known_arch(seen, cards)
    assert str(caught.value) == (
        'PATCHLOCK_OVERRIDE_ARCH: this patchlock knows no card with the arch "gfx1109"; it knows gfx906, gfx1100'
    )
    host_overrides.require_known_arch(seen, ())


def test_every_override_is_documented() -> None:
    formats = (Path(__file__).parents[2] / "docs" / "formats" / "machines.md").read_text(encoding="utf-8")
    assert [name for name in host_overrides.OVERRIDES if f"| `{name}` |" not in formats] == []
