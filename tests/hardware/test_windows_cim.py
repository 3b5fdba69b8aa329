"""What PowerShell printed, whatever it is: answers in every language, none, half of one, and none in time."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlock.hardware._windows import cards, cim, host
from patchlock.hardware._windows.cim import Answer, Garbage
from patchlock.hardware._windows.records import Plugged
from patchlock.model.hosts import Failure

# https://github.com/sebhildebrandt/systeminformation/issues/790 (Intel), https://github.com/Timthreetwelve/TimVer/issues/103
# (a card with 16 GB whose AdapterRAM is 4293918720); ids of the Radeon as in libdrm's amdgpu.ids.
INTEL = {
    "Name": "Intel(R) UHD Graphics",
    "PNPDeviceID": r"PCI\VEN_8086&DEV_9BC4&SUBSYS_170D1043&REV_05\3&11583659&0&10",
    "DriverVersion": "31.0.101.2125",
    "ConfigManagerErrorCode": 0,
    "AdapterRAM": 1073741824,
    "InfFilename": "oem4.inf",
}
RADEON = {
    "Name": "AMD Radeon RX 9070 XT",
    "PNPDeviceID": r"PCI\VEN_1002&DEV_7550&SUBSYS_88111EAE&REV_C0\6&2B36B191&0&00000009",
    "DriverVersion": "32.0.21025.10016",
    "ConfigManagerErrorCode": 43,
    "AdapterRAM": 4293918720,
    "InfFilename": "oem9.inf",
}
BASIC = {
    "Name": "Microsoft 基本ディスプレイ アダプター",
    "PNPDeviceID": r"PCI\VEN_1002&DEV_67FF&SUBSYS_0B041002&REV_CF\4&1FC990D7&0&0019",
    "DriverVersion": "10.0.26100.1",
    "ConfigManagerErrorCode": None,
    "AdapterRAM": None,
    "InfFilename": "display.inf",
}


def _printed(video: object, entities: object = ()) -> bytes:
    return json.dumps({"video": video, "entities": entities}, ensure_ascii=False).encode()


def _names(output: bytes) -> list[str]:
    answer = cim.read(output)
    assert isinstance(answer, Answer)
    return [one.name for one in answer.plugged]


def test_controllers_are_plugged_in_devices() -> None:
    answer = cim.read(_printed([INTEL, RADEON]))
    assert answer == Answer(
        plugged=(
            Plugged(
                id=str(RADEON["PNPDeviceID"]), name="AMD Radeon RX 9070 XT", problem=43, version="32.0.21025.10016"
            ),
            Plugged(id=str(INTEL["PNPDeviceID"]), name="Intel(R) UHD Graphics", version="31.0.101.2125"),
        ),
        adapter_ram=4293918720,
    )


@pytest.mark.parametrize(
    "output",
    [
        b"\xef\xbb\xbf" + _printed([BASIC]),
        b"Willkommen\r\n" + _printed([BASIC]) + b"\r\n",
        _printed(BASIC),
        _printed([BASIC], [{"Name": "x", "PNPDeviceID": str(BASIC["PNPDeviceID"]).lower()}]),
        _printed([], [BASIC]),
    ],
    ids=["byte order mark", "said something before", "a list of one", "entity and controller", "entity alone"],
)
def test_answer_is_read_however_it_came(output: bytes) -> None:
    assert _names(output) == ["Microsoft 基本ディスプレイ アダプター"]


def test_basic_driver_is_known_by_its_file_in_every_language() -> None:
    answer = cim.read(_printed([BASIC]))
    assert isinstance(answer, Answer)
    (device,) = cards.devices({}, answer.plugged)
    assert device.trouble.startswith("Microsoft's basic display driver runs it")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (b"", "PowerShell printed nothing"),
        (b"\r\n", "PowerShell printed nothing"),
        (
            _printed([INTEL])[:90],
            'PowerShell printed no JSON: \'{"video": [{"Name": "Intel(R) UHD Graphics", "PNPDeviceID": \'',
        ),
        (
            "Der Befehl wurde verweigert: Zugriff".encode("cp850"),
            "PowerShell printed no JSON: 'Der Befehl wurde verweigert: Zugriff'",
        ),
        ("アクセスが拒否されました".encode("cp932"), None),
        (b"\x00\xff\xfe\x80", None),
        (b'{"video"', None),
        (b'{"other": 1}', "PowerShell printed other JSON: '{\"other\": 1}'"),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
        (b"null", None),
    ],
    ids=["nothing", "a line", "cut", "german", "japanese", "binary", "half a key", "other", "deep", "deep too", "null"],
)
def test_garbage_is_told_as_such(output: bytes, why: str | None) -> None:
    answer = cim.read(output)
    assert isinstance(answer, Garbage)
    assert answer.why.isascii()
    assert why in {None, answer.why}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(INTEL)), inner, max_size=4),
        max_leaves=12,
    )
)
def test_no_answer_is_too_odd(value: object) -> None:
    answer = cim.read(_printed(value, value))
    assert isinstance(answer, Answer)
    assert cards.devices({}, answer.plugged) is not None


@given(st.binary(max_size=80))
def test_no_bytes_are_too_odd(output: bytes) -> None:
    assert isinstance(cim.read(output), Answer | Garbage)


def test_question_holds_no_double_quotation_mark() -> None:
    assert not any('"' in word for word in cim.ARGUMENTS)
    assert all(word.isascii() for word in cim.ARGUMENTS)


# --- the program ------------------------------------------------------------------------------------------------------


def _powershell(folder: Path, code: str) -> str:
    program = folder / "powershell.exe"
    program.write_text(f"#!{sys.executable}\nimport sys, time\nfrom pathlib import Path\n{code}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for PowerShell is a script")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("sys.exit(1)", "PowerShell printed nothing (exit code 1)"),
        ("pass", "PowerShell printed nothing"),
        ("sys.stdout.buffer.write(bytes(range(256)) * 500)", None),
        ("print('Get-CimInstance : Zugriff verweigert', file=sys.stderr)", "PowerShell printed nothing"),
        (
            "time.sleep(20); Path(sys.argv[0]).with_name('ended').touch()",
            "asking Win32_VideoController failed: powershell.exe did not end within 0.5 seconds",
        ),
    ],
    ids=["fails", "silent stub", "garbage", "says it elsewhere", "hangs"],
)
def test_powershell_that_gives_no_answer_is_a_failure(tmp_path: Path, code: str, why: str | None) -> None:
    answer = host.ask_cim(_powershell(tmp_path, code), patience=0.5 if "sleep" in code else 5)
    assert isinstance(answer, Failure)
    assert why in {None, answer.why}
    assert not (tmp_path / "ended").exists(), "it was waited for"


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for PowerShell is a script")
def test_powershell_that_answers_is_read(tmp_path: Path) -> None:
    code = f"assert sys.argv[1:4] == ['-NoLogo', '-NoProfile', '-NonInteractive']\nsys.stdout.buffer.write({_printed([INTEL])!r})"
    answer = host.ask_cim(_powershell(tmp_path, code))
    assert isinstance(answer, Answer)
    assert [one.name for one in answer.plugged] == ["Intel(R) UHD Graphics"]


def test_missing_powershell_is_a_failure(tmp_path: Path) -> None:
    answer = host.ask_cim(str(tmp_path / "powershell.exe"))
    assert answer == Failure(probe="cim", why="asking Win32_VideoController failed: powershell.exe is not installed")
