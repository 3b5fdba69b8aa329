"""A Windows that is none: the probes under Wine, whose registry, programs and libraries are real enough to ask."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import packaging
import pytest
from conftest import ROOT
from windows_machines import FOLDER, NAMES

pytestmark = pytest.mark.wine

WINE = Path(os.environ.get("PATCHLOCK_WINE", ""))
HEAD = f"""
import json, sys, warnings
warnings.simplefilter("error")
sys.path += [r"Z:{ROOT / "installer"}", r"Z:{Path(packaging.__file__).parent.parent}"]
from pathlib import Path
from patchlock.model import hosts
from patchlock.hardware import probes
from patchlock.hardware._windows import cards as windows_cards, drivers as windows_drivers, facts as windows_facts
from patchlock.hardware._windows import host as windows_host, registry as windows_registry
from patchlock.hardware._windows.records import DISPLAY_KEY
"""
PROBE = """
host = probes.probe(Path(r"C:/patchlock/not there yet"))
print(json.dumps(hosts.to_json(hosts.Recording(host=host))))
"""
ANSWER = """
from patchlock.hardware import host_overrides, report
host = probes.probe(Path(r"C:/patchlock/not there yet"))
look = report.build_report(Path(CATALOGUE), host_overrides.ObservedHost(recording=hosts.Recording(host=host)))
print(json.dumps({"chosen": look.choice.chosen.profile.name, "click": "click" in sys.modules}))
"""
RECORDED = """
import winreg
place = r"Software\\patchlock test"
KINDS = {int: winreg.REG_QWORD, str: winreg.REG_SZ, bytes: winreg.REG_BINARY}
def write(key, values):
    with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, rf"{place}\\{key}", access=winreg.KEY_ALL_ACCESS) as handle:
        for name, value in values.items():
            value = bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
            winreg.SetValueEx(handle, name, 0, KINDS[type(value)], value)
def remove(key):
    with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key, access=winreg.KEY_ALL_ACCESS) as handle:
        names = [winreg.EnumKey(handle, number) for number in range(winreg.QueryInfoKey(handle)[0])]
    for name in names:
        remove(rf"{key}\\{name}")
    winreg.DeleteKey(winreg.HKEY_CURRENT_USER, key)
wanted = {**windows_facts.WANTED, rf"{DISPLAY_KEY}\\*": windows_facts.CARD_VALUES}
told = {}
for name in NAMES:
    registry = json.loads(open(rf"{FOLDER}\\{name}.json", encoding="utf-8").read())["registry"]
    for key, values in registry.items():
        write(key, values)
    write(DISPLAY_KEY, {})
    write(rf"{DISPLAY_KEY}\\Configuration", {"DriverDesc": "no card"})
    read, failures = windows_registry.read(wanted, under=place)
    told[name] = {key: {name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in values.items()} for key, values in read.items()}
    assert failures == (), failures
    if name == "rx-9070-xt-and-raphael":
        observed = windows_host.probe(under=place, asks_drivers=False)
        cim = [failure.why for failure in observed.failures if failure.probe == "cim"]
        cards = [device.name for device in observed.devices]
    remove(place)
print(json.dumps({"told": told, "cim": cim, "cards": cards}))
"""
MANY = """
import winreg
place = r"Software\\patchlock test"
for number in range(600):
    key = rf"{place}\\{DISPLAY_KEY}\\{number:04}"
    with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, key, access=winreg.KEY_ALL_ACCESS) as handle:
        winreg.SetValueEx(handle, "DriverDesc", 0, winreg.REG_SZ, f"card {number}")
        winreg.SetValueEx(handle, "MatchingDeviceId", 0, winreg.REG_SZ, "PCI\\\\VEN_10DE&DEV_2C58")
        winreg.SetValueEx(handle, "HardwareInformation.qwMemorySize", 0, winreg.REG_BINARY, bytes(8))
registry, failures = windows_registry.read({rf"{DISPLAY_KEY}\\*": windows_facts.CARD_VALUES}, under=place)
devices = windows_cards.devices(registry, None)
for number in range(600):
    winreg.DeleteKey(winreg.HKEY_CURRENT_USER, rf"{place}\\{DISPLAY_KEY}\\{number:04}")
print(json.dumps({"devices": len(devices), "failures": len(failures)}))
"""
DRIVER = """
print(json.dumps([repr(windows_drivers.ask({"1002"}, {"amdhip64_7.dll": one}, patience=30)) for one in LIBRARIES]))
"""


def _run(folder: Path, code: str, **values: Any) -> Any:
    script = folder / "script.py"
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    script.write_text(HEAD + given + code, encoding="utf-8")
    command = [str(WINE / "enter"), "python", "-B", f"Z:{script}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_wine_is_observed_and_has_no_card(tmp_path: Path) -> None:
    said = _run(tmp_path, PROBE)
    host = said["host"]
    assert (host["os"], host["machine"], host["container"]) == ("windows", "amd64", "wine")
    assert host["distribution"] == f"windows {'11' if int(host['release'].split('.')[2]) >= 22000 else '10'}"
    assert host["release"].startswith("10.0.")
    assert "devices" not in host
    assert host["memory"] > host["available"] > 1 << 28
    assert host["disk"] > 0
    assert host["libraries"]["d3d12.dll"].lower() == r"c:\windows\system32\d3d12.dll"
    assert [failure["probe"] for failure in host["failures"]] == [
        "cfgmgr32"
    ]  # it has the functions, and nothing in them


def test_wine_is_told_its_profile_without_click(tmp_path: Path) -> None:
    said = _run(tmp_path, ANSWER, CATALOGUE=f"Z:{ROOT}")
    assert (said["chosen"], said["click"]) == ("cpu", False)


def test_registry_gives_back_recorded_machines(tmp_path: Path) -> None:
    said = _run(tmp_path, RECORDED, NAMES=NAMES, FOLDER=f"Z:{FOLDER}")
    for name in NAMES:
        recorded = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["registry"]
        assert said["told"][name] == recorded
    # Two of the three cards that Windows remembers are there, and Wine's PowerShell ends without a word.
    assert said["cards"] == ["AMD Radeon(TM) Graphics", "Radeon RX 580 Series", "AMD Radeon RX 9070 XT"]
    assert said["cim"] == ["PowerShell printed nothing"]


def test_hundreds_of_display_entries_are_read(tmp_path: Path) -> None:
    said = _run(tmp_path, MANY)
    assert (said["devices"], said["failures"]) == (600, 0)


@pytest.mark.skipif(shutil.which("x86_64-w64-mingw32-gcc") is None, reason="there is no compiler for Windows")
def test_drivers_library_is_asked_in_a_child(tmp_path: Path) -> None:
    command = [
        "x86_64-w64-mingw32-gcc",
        "-shared",
        "-DHIP",
        "-o",
        tmp_path / "amdhip64_7.dll",
        ROOT / "tests" / "support" / "drivers.c",
    ]
    subprocess.run(command, check=True)
    libraries = [f"Z:{tmp_path}/amdhip64_7.dll", r"C:\windows\system32\nvcuda.dll"]
    found, missing = _run(tmp_path, DRIVER, LIBRARIES=libraries)
    assert "arch='gfx1201', address='0000:03:00.0', memory=17095983104" in found
    assert 'why="nvcuda.dll: Could not find module' in missing
