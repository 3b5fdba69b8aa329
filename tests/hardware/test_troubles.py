"""The catalogue of troubles: each one fires from recorded facts, stays silent at a near miss, and can be pasted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import click
import host_words
import pytest
import tree_sitter
import tree_sitter_powershell
from conftest import ROOT

from patchlock.catalogue.reader import Catalogue
from patchlock.cli._commands import Commands
from patchlock.cli._commands import patchlock as group
from patchlock.hardware import doctor
from patchlock.model import hosts
from patchlock.model.devices import Card
from patchlock.model.troubles import NEEDS, SHELLS, Shell

CATALOGUE = Catalogue(root=ROOT)
ENTRIES = {entry.name: entry for entry in CATALOGUE.troubles()}
FAMILIES = CATALOGUE.rules().families
CASES: dict[str, dict[str, list[dict[str, Any]]]] = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "tests" / "hardware" / "troubles").glob("*.toml"))
}


def _card(device: str, arch: str, family: str, *, vendor: str = "1002", is_integrated: bool = False) -> Card:
    return Card(
        vendor=vendor,
        devices=(device,),
        name=f"{family} {device}",
        chip="c",
        arch=arch,
        family=family,
        is_integrated=is_integrated,
        source="s",
    )


CARDS = (
    _card("7550", "gfx1201", "rdna4"),
    _card("7551", "gfx1201", "rdna4"),
    _card("7590", "gfx1200", "rdna4"),
    _card("744c", "gfx1100", "rdna3"),
    _card("73df", "gfx1031", "rdna2"),
    _card("73bf", "gfx1030", "rdna2"),
    _card("743f", "gfx1034", "rdna2"),
    _card("687f", "gfx900", "vega"),
    _card("164e", "gfx1036", "rdna2-integrated", is_integrated=True),
    _card("1638", "gfx90c", "vega-integrated", is_integrated=True),
    _card("1586", "gfx1151", "rdna3.5", is_integrated=True),
    _card("a780", "", "intel-integrated", vendor="8086", is_integrated=True),
    _card("1c8d", "sm_61", "pascal", vendor="10de"),
    _card("1b06", "sm_61", "pascal", vendor="10de"),
    _card("2702", "sm_89", "ada", vendor="10de"),
    _card("2b00", "sm_110", "thor", vendor="10de", is_integrated=True),
)
"""As the table of devices has them; here only what the cases name."""


def _recording(case: dict[str, Any]) -> hosts.Recording:
    keys = ("host", "packages", "says", "title", "source")
    return hosts.from_json(
        {"patchlock_host": hosts.FORMAT, **{key: case[key] for key in keys if key in case}}, case["title"]
    )


def _cases(kind: str) -> list[Any]:
    return [
        pytest.param(name, case, id=f"{name}: {case['title']}")
        for name, kinds in CASES.items()
        for case in kinds.get(kind, [])
    ]


def _diagnosed(case: dict[str, Any]) -> dict[str, doctor.Finding]:
    found = doctor.diagnose(_recording(case), CARDS, ENTRIES.values(), FAMILIES)
    return {finding.name: finding for finding in found}


@pytest.mark.parametrize("name", sorted({*ENTRIES, *CASES}))
def test_each_trouble_has_a_case_that_fires_and_one_that_is_silent(name: str) -> None:
    assert name in ENTRIES
    kinds = CASES.get(name, {})
    assert set(kinds) == {"fires", "silent"}, f"tests/hardware/troubles/{name}.toml"
    for case in (*kinds["fires"], *kinds["silent"]):
        assert case["source"].startswith(("https://", "PyPI: "))
        assert set(case) <= {"title", "source", "confidence", "also", "host", "packages", "says"}


@pytest.mark.parametrize(("name", "case"), _cases("fires"))
def test_it_fires_and_nothing_else_does(name: str, case: dict[str, Any]) -> None:
    found = _diagnosed(case)
    assert sorted(found) == sorted({name, *case.get("also", [])})
    assert found[name].confidence == case["confidence"]
    assert found[name].evidence
    assert found[name].remedies


@pytest.mark.parametrize(("name", "case"), _cases("silent"))
def test_it_is_silent_at_a_near_miss(name: str, case: dict[str, Any]) -> None:
    assert name not in _diagnosed(case)


_RADEON = {"vendor": "1002", "device": "7480", "name": "AMD Radeon RX 7600", "arch": "gfx1102"}
_GEFORCE = {"vendor": "10de", "device": "2184", "name": "NVIDIA GeForce GTX 1660", "arch": "sm_75"}
_ARC = {"vendor": "8086", "device": "e20b", "name": "Intel(R) Arc(TM) B580 Graphics", "arch": "bmg"}
_RTX_5090 = "RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
_ROCBLAS = "rocBLAS error: Cannot read C:\\x\\rocblas/library/TensileLibrary.dat: No such file for GPU arch : gfx1036"


@pytest.mark.parametrize(
    ("says", "maker", "others"),
    [
        (_RTX_5090, "NVIDIA", (_RADEON, _ARC)),
        ("The NVIDIA driver on your system is too old (found version 11040)", "NVIDIA", (_RADEON, _ARC)),
        ("RuntimeError: No XPU devices are available.", "Intel", (_RADEON, _GEFORCE)),
        ("RuntimeError: HIP error: invalid device function", "AMD", (_GEFORCE, _ARC)),
        (_ROCBLAS, "AMD", (_GEFORCE, _ARC)),
    ],
)
def test_words_about_cards_that_are_not_there_get_no_advice_for_them(
    says: str, maker: str, others: tuple[dict[str, str], ...]
) -> None:
    for card in others:
        host = {"os": "windows", "machine": "amd64", "devices": [card]}
        (found,) = _diagnosed({"title": "t", "host": host, "says": [says]}).values()
        assert (found.name, found.confidence) == ("made-for-another-card", "likely")
        assert found.title == f"the message is about {maker} cards, and this machine has none"
        (remedy,) = found.remedies
        assert remedy.commands == ("patchlock plan {app}", "patchlock install {app} --reinstall")


@pytest.mark.parametrize(
    "says",
    [
        "ImportError: libGL.so.1:\ncannot open shared object file:\nNo such file or directory",
        "cat: notes.txt: No\nsuch file or directory",
        "CUDA out of memory guard: enabled",
        "Tip: if you get a CUDA out of memory error, start with --lowvram",
        "Is the HIP error invalid device function fixed in ROCm 6.4?",
        "Where is a good tutorial for ffmpeg not found?",
    ],
)
def test_words_that_troubles_share_with_other_messages_are_no_sign(says: str) -> None:
    for os_name in ("linux", "windows"):
        for card in (_RADEON, _GEFORCE):
            host = {"os": os_name, "machine": "x86_64", "devices": [card]}
            case = {"title": "t", "host": host}
            assert _diagnosed({**case, "says": says.splitlines()}) == _diagnosed(case)


def test_a_quoted_message_is_found_and_shown_without_its_marks() -> None:
    says = ["> torch.OutOfMemoryError: CUDA out of", "> memory. Tried to allocate 20.00 MiB."]
    found = _diagnosed({"title": "t", "host": {"os": "linux", "machine": "x86_64"}, "says": says})
    assert found["out-of-memory"].evidence == (
        'a program printed "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."',
    )


def test_words_of_another_system_are_known_as_such() -> None:
    says = ['OSError: [WinError 126] x. Error loading "C:\\\\torch\\\\lib\\\\fbgemm.dll"']
    (found,) = _diagnosed({"title": "t", "host": {"os": "linux", "machine": "x86_64"}, "says": says}).values()
    assert (found.name, found.confidence) == ("printed-on-another-system", "possible")
    assert found.title.startswith("the message is known of Windows, and this machine has another system: Microsoft's ")
    host = {"os": "windows", "machine": "amd64", "devices": [_RADEON]}
    says = ["CUDA error: no kernel image is available for execution on the device"]
    assert _diagnosed({"title": "t", "host": host, "says": says}) == {}, "known of other cards, not of other systems"


def test_files_for_rocblas_go_into_the_sdk_that_is_installed_first() -> None:
    (remedy,) = ENTRIES["zluda-rocblas-lacks-chip"].remedies
    assert remedy.do.startswith("If HIP SDK 6.4.2 is not installed, install it first")
    assert [command.partition(" https://")[2].partition("/")[0] for command in remedy.commands] == [
        "www.amd.com",
        "github.com",
    ]


@pytest.mark.parametrize(
    ("vendor", "commands"),
    [
        ("10de", {"nvidia-smi", "patchlock run {app}"}),
        ("1002", {"patchlock run {app}"}),
        ("8086", {"patchlock run {app}"}),
    ],
)
def test_memory_is_looked_at_with_tools_that_the_card_has(vendor: str, commands: set[str]) -> None:
    host = {"os": "linux", "machine": "x86_64", "devices": [{"vendor": vendor}]}
    found = _diagnosed({"title": "t", "host": host, "says": ["CUDA out of memory", "HIP out of memory"]})
    (remedy,) = found["out-of-memory"].remedies
    assert commands <= {*remedy.commands, remedy.proof}
    assert ("nvidia-smi" in {*remedy.commands, remedy.proof}) == (vendor == "10de")


@pytest.mark.parametrize("name", ENTRIES)
def test_each_sign_is_shown_by_a_case(name: str) -> None:
    entry = ENTRIES[name]
    shown = set()
    for case in CASES.get(name, {}).get("fires", ()):
        facts = doctor.collect_facts(_recording(case), CARDS, FAMILIES)
        shown |= {at for at, sign in enumerate(entry.signs, 1) if sign.condition.seen(facts) is not None}
    assert shown == set(range(1, len(entry.signs) + 1))


@pytest.mark.parametrize(("name", "case"), [*_cases("fires"), *_cases("silent")])
def test_cases_say_only_what_a_machine_can_say(name: str, case: dict[str, Any]) -> None:
    assert host_words.unknown_names(_recording(case).host) == []


HEALTHY = {
    "this profile on Linux: ROCm": {
        "packages": {"torch": "2.7.1+rocm6.3", "torchaudio": "2.7.1+rocm6.3", "numpy": "1.26.4"},
        "host": {
            "os": "linux",
            "machine": "x86_64",
            "release": "6.14.0-27-generic",
            "groups": ["render", "video"],
            "devices": [{"vendor": "1002", "device": "7550", "revision": "c0", "arch": "gfx1201"}],
            "nodes": [{"path": "/dev/kfd", "is_usable": True}, {"path": "/dev/dri/renderD128", "is_usable": True}],
            "settings": {"amdgpu-module": "loaded"},
            "versions": {"rocm": "6.4.1"},
        },
    },
    "Windows with ZLUDA": {
        "packages": {"torch": "2.7.1+cu118", "torchaudio": "2.7.1", "torchvision": "0.22.1+cu118"},
        "host": {
            "os": "windows",
            "machine": "amd64",
            "versions": {"hip-sdk": "6.4", "msvc-runtime": "14.44.35211"},
            "devices": [{"vendor": "1002", "device": "7550", "revision": "c0", "memory": 17095983104}],
            "settings": {
                "smart-app-control": "off",
                "defender-realtime": "on",
                "rocm-on-path": "C:/Program Files/AMD/ROCm/6.4/bin",
            },
            "libraries": {
                "d3d12.dll": "C:/Windows/System32/d3d12.dll",
                "vcruntime140_1.dll": "C:/x",
                "msvcp140.dll": "C:/x",
            },
        },
    },
    "a Vega with DirectML": {
        "packages": {"torch": "2.4.1+cpu", "torchvision": "0.19.1", "torch-directml": "0.2.5.dev240914"},
        "host": {
            "os": "windows",
            "machine": "amd64",
            "devices": [{"vendor": "1002", "device": "1638"}],
            "settings": {"adapter-ram": "536870912"},
        },
    },
    "Thor": {
        "packages": {"torch": "2.11.0+cu130", "torchaudio": "2.11.0+cu130", "onnxruntime": "1.23.0"},
        "host": {
            "os": "linux",
            "machine": "aarch64",
            "release": "6.8.12-tegra",
            "tegra": "38.4.0",
            "versions": {"nvidia-driver": "580.00", "cuda-driver": "13.0"},
            "devices": [{"vendor": "10de", "device": "2b00", "name": "NVIDIA Thor", "arch": "sm_110"}],
            "settings": {"cu-init": "0"},
        },
    },
    "a container in WSL with an NVIDIA card": {
        "packages": {"torch": "2.9.1+cu128"},
        "host": {
            "os": "linux",
            "machine": "x86_64",
            "is_wsl": True,
            "container": "docker",
            "versions": {"nvidia-driver": "581.29", "cuda-driver": "13.0"},
            "devices": [{"vendor": "10de", "name": "NVIDIA GeForce RTX 4090", "arch": "sm_89"}],
            "nodes": [{"path": "/dev/dxg", "is_usable": True}],
            "libraries": {"libcuda.so.1": "/usr/lib/wsl/x", "libnvdxgdmal.so.1": "/usr/lib/wsl/y"},
            "settings": {"cu-init": "0"},
        },
    },
    "no card at all": {
        "packages": {"torch": "2.13.0+cpu", "numpy": "2.3.0"},
        "host": {"os": "linux", "machine": "x86_64"},
    },
}


@pytest.mark.parametrize("title", HEALTHY)
def test_nothing_is_found_on_a_machine_that_is_well(title: str) -> None:
    assert _diagnosed({"title": title, **HEALTHY[title]}) == {}


# --- what is pasted


def _commands(shell: Shell) -> list[Any]:
    found = []
    for entry in ENTRIES.values():
        for number, remedy in enumerate(entry.remedies, 1):
            commands = [*remedy.commands] if remedy.shell == shell else []
            commands += [remedy.proof] if remedy.proof_shell == shell else []
            found += [pytest.param(command, id=f"{entry.name} {number}: {command[:40]}") for command in commands]
    return found


def _pasted(command: str) -> str:
    return command.replace("{python}", "python3").replace("{app}", "demo")


@pytest.mark.skipif(os.name == "nt", reason="no sh")
def test_commands_of_sh_pass_sh_and_shellcheck(tmp_path: Path) -> None:
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no shellcheck: PyPI has none for this machine")
    names = []
    for number, param in enumerate(_commands("sh")):
        command = _pasted(param.values[0])
        assert subprocess.run(["sh", "-n", "-c", command], check=False).returncode == 0, command
        # A pasted line is a whole script here; variables that it sets are for the next one.
        (tmp_path / f"{number}.sh").write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        names.append(f"{number}.sh")
    quiet = "--exclude=SC2034,SC2086"
    done = subprocess.run([program, quiet, *names], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize("command", _commands("powershell"))
def test_commands_of_powershell_parse(command: str) -> None:
    source = _pasted(command).encode()
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(source).root_node
    assert not root.has_error
    assert not re.search(r"&&|\|\||\?\?", command), "not in PowerShell 5.1"
    # A method takes `$null` for an empty text, which no longer deletes: https://github.com/PowerShell/PowerShell/issues/24637
    assert not re.search(r"::\w+\([^)]*\$null", command), "leaves an empty variable in PowerShell 7.5"


def test_no_command_is_for_cmd() -> None:
    words = re.compile(r"\b(setx|cmd|reg add|wmic|%[A-Z_]+%)", re.IGNORECASE)
    commands = [param.values[0] for shell in SHELLS for param in _commands(shell)]
    assert [command for command in commands if words.search(cast("str", command))] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_remedy_needs_is_what_its_commands_use(name: str) -> None:
    for remedy in ENTRIES[name].remedies:
        text = "\n".join(remedy.commands)
        assert ("sudo " in text) == ("sudo" in remedy.needs)
        is_for_all = re.search(r"Add-MpPreference|HKLM:.*-Value|winget (install|upgrade) (?!.*Gyan\.FFmpeg)", text)
        assert not is_for_all or "administrator" in remedy.needs
        assert set(remedy.needs) <= set(NEEDS)
        assert "sudo" not in remedy.proof


def test_remedy_that_leaves_a_choice_has_no_commands_for_both() -> None:
    """Several commands are pasted together, one after the other."""
    remedies = [remedy for entry in ENTRIES.values() for remedy in entry.remedies if len(remedy.commands) > 1]
    assert [remedy.do for remedy in remedies if ", or " in remedy.do] == []


@pytest.mark.parametrize(
    "command",
    sorted(
        {param.values[0] for shell in SHELLS for param in _commands(shell) if param.values[0].startswith("patchlock ")}
    ),
)
def test_commands_of_ours_are_ones_that_there_are(command: str) -> None:
    _, name, *arguments = _pasted(command).split()
    found = Commands().get_command(click.Context(group), name)
    assert found is not None
    context = found.make_context(name, arguments)
    assert context.params.get("profile") in {None, *CATALOGUE.profile_names()}
