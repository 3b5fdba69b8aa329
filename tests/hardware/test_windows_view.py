"""A whole recorded Windows machine as an observed one: nothing private in it, nothing invented."""

from __future__ import annotations

import json

import pytest
from host_words import unknown_names
from windows_machines import NAMES, load

from patchlock.hardware._windows.host import probe
from patchlock.hardware._windows.records import DriverCard, Registry
from patchlock.hardware._windows.view import Seen, host
from patchlock.model.hosts import Failure, Recording, from_json, to_json

HOME = r"C:\Users\Zoë"
SYSTEM: Registry = {
    r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0": {"ProcessorNameString": "AMD Ryzen 7 9800X3D  "},
    r"HKLM\SYSTEM\CurrentControlSet\Control\CI\Policy": {"VerifiedAndReputablePolicyState": 2},
    r"HKLM\SOFTWARE\GitForWindows": {"CurrentVersion": "2.47.1"},
}


def _seen(name: str = "rx-9070-xt-and-raphael") -> Seen:
    registry, plugged = load(name)
    return Seen(
        registry={**registry, **SYSTEM},
        plugged=plugged,
        told={
            "1002": (
                DriverCard(name="AMD Radeon(TM) Graphics", arch="gfx1036", address="0000:11:00.0", memory=0),
                DriverCard(name="AMD Radeon RX 9070 XT", arch="gfx1201", address="0000:03:00.0", memory=0),
            )
        },
        version=(10, 0, 26100),
        memory=64 << 30,
        libraries={"amdhip64_6.dll": r"C:\Windows\System32\amdhip64_6.dll"},
        toolkits={"hip-sdk": "6.4"},
        variables={"HIP_VISIBLE_DEVICES": "1", "VIRTUAL_ENV": rf"{HOME}\env", "SECRET": "x"},
        path=rf"C:\Windows;{HOME}\rocm\bin",
        home=HOME,
        user="Zoë",
        shadows="numpy,torch",
        python="3.12.10",
        failures=(Failure(probe="hip", why=rf"asking {HOME}\x.dll failed: it is not there"),),
    )


def test_machine_with_a_card_and_a_processors_graphics() -> None:
    assert to_json(Recording(host=host(_seen()))) == {
        "patchlock_host": 1,
        "host": {
            "os": "windows",
            "machine": "amd64",
            "release": "10.0.26100",
            "distribution": "windows 11 24H2",
            "processor": "AMD Ryzen 7 9800X3D",
            "memory": 68719476736,
            "devices": [
                {
                    "vendor": "1002",
                    "device": "7550",
                    "revision": "c0",
                    "name": "AMD Radeon RX 9070 XT",
                    "address": "0000:03:00.0",
                    "arch": "gfx1201",
                    "memory": 17095983104,
                    "driver": "32.0.21025.10016",
                },
                {
                    "vendor": "1002",
                    "device": "164e",
                    "revision": "c1",
                    "name": "AMD Radeon(TM) Graphics",
                    "address": "0000:11:00.0",
                    "arch": "gfx1036",
                    "memory": 536870912,
                    "driver": "32.0.21025.10016",
                    "is_hidden": True,
                },
            ],
            "versions": {"adrenalin": "25.9.2", "git": "2.47.1", "hip-sdk": "6.4"},
            "libraries": {"amdhip64_6.dll": r"C:\Windows\System32\amdhip64_6.dll"},
            "settings": {
                "long-paths": "off",
                "rocm-on-path": r"~ü\rocm\bin",
                "smart-app-control": "evaluation",
                "user-site": "numpy,torch",
            },
            "variables": {"HIP_VISIBLE_DEVICES": "1", "VIRTUAL_ENV": r"~ü\env"},
            "python": "3.12.10",
            "failures": [{"probe": "hip", "why": r"asking ~\~ failed: it is not there"}],
        },
    }


@pytest.mark.parametrize("name", NAMES)
def test_recorded_machine_survives_its_json_and_names_nobody(name: str) -> None:
    recording = Recording(host=host(_seen(name)))
    assert unknown_names(recording.host) == []
    written = json.dumps(to_json(recording), ensure_ascii=False)
    assert from_json(json.loads(written), name) == recording
    assert "Zoë" not in written


def test_order_of_the_cards_is_said_to_be_unknown_where_the_driver_does_not_answer() -> None:
    registry, plugged = load("rx-9070-xt-and-raphael")
    seen = Seen(registry=registry, plugged=plugged, variables={"HIP_VISIBLE_DEVICES": "1"})
    observed = host(seen)
    assert not any(device.is_hidden for device in observed.devices)
    assert [failure.probe for failure in observed.failures] == ["visible-devices"]


def test_adapter_ram_and_cuda_are_told_where_they_were_asked() -> None:
    registry, plugged = load("rtx-laptop-and-uhd")
    observed = host(Seen(registry=registry, plugged=plugged, adapter_ram=4293918720, cuda="13.0", init="0"))
    assert (observed.settings["adapter-ram"], observed.settings["cu-init"]) == ("4293918720", "0")
    assert observed.versions == {"cuda-driver": "13.0", "nvidia-driver": "581.29"}


def test_probe_never_fails_on_what_is_no_windows() -> None:
    observed = probe()
    assert (observed.os, observed.devices) == ("windows", ())
    assert [failure.probe for failure in observed.failures] == ["cfgmgr32"]
