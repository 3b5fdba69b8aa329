"""`doctor`: what it prints, what it asks for, what its exit code says, and that no home folder leaves the machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Said
from receipts import install

from patchlock.environments import installed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is found depends on the system")
HOSTS = Path(__file__).resolve().parents[1] / "hardware/hosts"
NUMPY = "A module that was compiled using NumPy 1.x cannot be run in"
DML = "[F525 18:22:35 dml_util.cc:118] Invalid or unsupported data type ComplexFloat."


def test_a_certain_trouble_is_told_with_its_cure_and_exits_with_one(face: Callable[..., Said]) -> None:
    done = face("doctor", "--says", "Failed to initialize NVML: Driver/library version mismatch")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "certain: NVIDIA's driver was updated, but the kernel still runs the old one [nvidia-driver-half-updated]\n"
    )
    for line in (
        'seen    a program printed "Failed to initialize NVML: Driver/library version mismatch"',
        "$ sudo systemctl reboot",
        "needs   root rights, a restart",
        "proof   $ nvidia-smi --query-gpu=driver_version --format=csv",
        "source  https://github.com/NVIDIA/nvidia-container-toolkit/issues/394",
    ):
        assert f"  {line}\n" in done.stdout.replace("          $", "  $")
    assert done.stdout.endswith("1 certain; run `patchlock doctor` again after each fix\n")


def test_commands_for_windows_have_no_prompt(face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "windows-no-cxx-runtime.json"))
    told = face("doctor").stdout
    assert "\n          winget install --exact --id Microsoft.VCRedist.2015+.x64\n" in told
    assert "\n  proof   Get-Item " in told
    assert "$ " not in told


@pytest.mark.parametrize(
    "says",
    [
        pytest.param("runtimeerror: numpy is\n   NOT available", id="wrapped"),
        pytest.param("> RuntimeError: Numpy is\n> not available", id="quoted"),
    ],
)
def test_a_message_is_known_as_a_person_pastes_it(says: str, face: Callable[..., Said]) -> None:
    assert "likely: NumPy 2 is installed with modules that " in (told := face("doctor", "--says", says).stdout)
    assert 'seen    a program printed "runtimeerror: numpy is not available"' in told.lower()


def test_a_likely_trouble_exits_with_zero(face: Callable[..., Said]) -> None:
    done = face("doctor", "--says", f"Traceback\n{NUMPY}\n")
    assert done.returncode == 0
    assert "likely: NumPy 2 is installed with modules that were built for NumPy 1" in done.stdout
    assert "$ patchlock install APP --reinstall" in done.stdout
    assert "proof   $ patchlock verify APP\n" in done.stdout, "without an app, no Python is known that has its packages"


def test_nothing_known_says_what_to_send(face: Callable[..., Said]) -> None:
    done = face("doctor", "--says", "the cat sat on the keyboard")
    assert done.returncode == 0
    assert done.stdout == (
        "No known problem is behind that message, and none was found on this machine.\n"
        "Write one file for a bug report, with facts about this machine and the last errors, but no names:\n"
        "  patchlock report\n"
    )
    done = face("doctor")
    assert done.stdout == (
        "No known problem found.\n"
        "If something does not work, give what it printed to\n"
        '  patchlock doctor --says "THE ERROR"\n'
        "or write one file for a bug report, with facts about this machine and the last errors, but no names:\n"
        "  patchlock report\n"
    )


def test_a_machine_that_is_not_supported_is_told_so(face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "windows-arm-snapdragon.json"))
    reason = "windows on arm64 is not supported"
    assert face("doctor").stdout == (
        f"warning: no profile fits this machine: {reason}; which there are: `patchlock list`\n"
    )
    assert face("status").stdout == f"Nothing is installed, and nothing can be: {reason}\n"
    assert face("models", "demo", "--profile", "cpu").stderr == (
        f"simulated machine: PATCHLOCK_HOST={HOSTS / 'windows-arm-snapdragon.json'}\n"
        f'error[no-profile-fits]: the profile "cpu" does not fit this machine: {reason}; `patchlock detect` shows what does\n'
    )


def test_a_card_that_stays_unused_is_told_as_detect_tells_it(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HOSTS / "docker-rtx3070-driver-470.json"
    monkeypatch.setenv("PATCHLOCK_HOST", str(host))
    unused = [line for line in face("detect").stdout.splitlines() if line.startswith("warning: ")]
    told = face("doctor")
    assert unused
    assert all(line in told.stdout for line in unused)
    assert [f"warning: {one}" for one in json.loads(face("doctor", "--json").stdout)["data"]["unused"]] == unused


@pytest.mark.parametrize(
    ("machine", "title", "confidence"),
    [
        (
            "docker-rtx3070-driver-470",
            "the driver is 470.161.03, and must be 525.60.13 or later for cuda-linux",
            "certain",
        ),
        (
            "rx7900xtx-windows-adrenalin-25.3",
            "AMD's driver is Adrenalin 25.3.1, and must be Adrenalin 26.2.2 or later for rocm-windows",
            "certain",
        ),
        (
            "rx9070xt-windows-zluda",  # which ZLUDA uses all the same
            "AMD's driver is Adrenalin 25.12.1, and must be Adrenalin 26.2.2 or later for rocm-windows",
            "possible",
        ),
    ],
)
def test_driver_that_is_too_old_is_a_finding(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, machine: str, title: str, confidence: str
) -> None:
    host = HOSTS / f"{machine}.json"
    monkeypatch.setenv("PATCHLOCK_HOST", str(host))
    found = json.loads(face("doctor", "--json").stdout)["data"]["findings"]
    assert [(one["title"], one["confidence"]) for one in found if one["name"] == "version-too-old"] == [
        (title, confidence)
    ]
    assert f"{confidence}: {title} [version-too-old]\n" in face("doctor").stdout


@pytest.mark.parametrize(
    ("machine", "profile", "found"),
    [
        (
            "rx6700-windows",
            "zluda-rdna4",
            {
                "zluda": "AMD's HIP SDK 6.4.2, if it is not installed",
                "amd-hip-runtime": "AMD's HIP runtime (amdhip64), if it is not installed",
                "zluda-rocblas-lacks-chip": "the HIP SDK has no rocBLAS files for this card",
            },
        ),
        (
            "windows-no-cxx-runtime",
            "cpu",
            {"msvc-runtime-missing": "Microsoft's Visual C++ runtime is missing or too old"},
        ),
    ],
)
def test_what_a_machine_lacks_for_a_named_profile_is_found_as_by_plan(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, machine: str, profile: str, found: dict[str, str]
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / f"{machine}.json"))
    told = json.loads(face("doctor", "--profile", profile, "--json").stdout)["data"]["findings"]
    assert found.items() <= {one["name"]: one["title"] for one in told}.items()
    assert all(one["confidence"] == "certain" for one in told if "needs it" in one["title"])
    advice = f"--profile {profile}"
    text = face("doctor", "--profile", profile).stdout
    assert "No known problem found" not in text
    assert f"try `{advice}`" not in text, "it was named"
    seen = {one["name"]: one["evidence"] for one in told}
    assert all(not seen[name] for name, title in found.items() if title.endswith("if it is not installed"))
    assert "msvc-runtime" not in seen or "msvc-runtime-missing" not in seen, "it is told once"


def test_without_a_profile_it_looks_at_the_one_that_an_install_would_take(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*words: str) -> dict[str, str]:
        told = json.loads(face("doctor", *words, "--json").stdout)["data"]["findings"]
        return {one["name"]: one["remedies"][0]["proof"] for one in told}

    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "phoenix-780m-windows.json"))
    proof = "patchlock doctor --profile directml-onnx"
    assert found() == found("--profile", "directml-onnx") == {"directx-12": proof, "msvc-runtime": proof}
    proof = "patchlock plan xtts-webui --profile cpu"
    assert found("xtts-webui") == {"msvc-runtime": proof, "ffmpeg": proof}


@pytest.mark.parametrize(
    ("profile", "torch", "title"),
    [
        ("cuda-windows", "2.7.1+cu128", "this torch is for NVIDIA cards, and the machine only has a Radeon"),
        ("zluda-rdna4", "2.7.1+cu118", "the HIP SDK has no rocBLAS files for this card"),
    ],
)
def test_what_a_profile_would_install_is_not_told_as_installed(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, profile: str, torch: str, title: str
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "phoenix-780m-windows.json"))
    told = json.loads(face("doctor", "--profile", profile, "--json").stdout)["data"]["findings"]
    (evidence,) = [one["evidence"] for one in told if one["title"] == title]
    assert f"torch would be {torch}" in evidence
    assert not [line for one in told for line in one["evidence"] if line.startswith("torch is ")]


def test_what_a_profile_needs_is_told_with_its_whole_name_and_why(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "rx7900xt-windows-therock.json"))
    text = face("doctor", "--profile", "rocm-windows").stdout
    title = "AMD Software: Adrenalin Edition: Adrenalin 26.2.2 or later is needed, and its version was not seen"
    assert f"possible: {title} [adrenalin]\n  do      " in text
    text = face("doctor", "--profile", "zluda-rdna4").stdout
    why = "zluda runs the CUDA calls of torch for CUDA 11.8 through AMD's HIP SDK"
    assert f"possible: AMD's HIP SDK 6.4.2, if it is not installed [zluda]\n  why     {why}\n  do      " in text


def test_the_sdk_that_was_found_is_told_beside_the_one_that_is_needed(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "rx7900xtx-windows-raphael-igpu.json"))
    text = face("doctor", "--profile", "zluda-rdna4").stdout
    assert "possible: AMD's HIP SDK 6.4.2, if it is not installed (found version 7.2) [zluda]\n" in text


def test_a_message_that_nothing_explains_is_answered_before_what_the_machine_lacks(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "rx6700-windows.json"))
    asked = ("doctor", "--profile", "directml-onnx")
    text = face(*asked, "--says", "blorp: nobody knows this").stdout
    assert text.startswith("No known problem is behind that message. This was found on this machine:\n\npossible: ")
    assert text.endswith("but no names:\n  patchlock report\n")
    for other in (asked, (*asked, "--says", DML)):
        assert "No known problem" not in face(*other).stdout


def test_a_message_that_a_certain_fault_explains_is_answered_by_it(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "windows-no-cxx-runtime.json"))
    says = "DLL load failed while importing onnxruntime_pybind11_state: The specified module could not be found."
    assert face("doctor", "--says", says).stdout.startswith("certain: Microsoft's Visual C++ runtime is missing")


def test_a_message_is_looked_at_although_the_install_failed(face: Callable[..., Said]) -> None:
    for named in (("demo",), ("demo", "--profile", "cpu")):
        done = face("doctor", *named, "--says", NUMPY)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"$ patchlock install {' '.join(named)} --reinstall" in done.stdout
    said = "RuntimeError: No CUDA GPUs are available"
    assert "$ patchlock plan demo\n" in face("doctor", "demo", "--profile", "cpu", "--says", said).stdout
    assert face("doctor", "demmo", "--says", NUMPY).stderr.startswith("error[unknown-app]: ")


def test_intels_driver_on_windows_is_that_for_windows(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "arc-b580-windows.json"))
    told = json.loads(face("doctor", "--profile", "xpu-windows", "--json").stdout)["data"]["findings"]
    (remedy,) = [one["remedies"][0]["do"] for one in told if one["name"] == "level-zero"]
    page = "https://www.intel.com/content/www/us/en/download/785597/intel-arc-graphics-windows.html"
    assert remedy == f"install it: `Start-Process {page}`"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_log_is_read_as_shells_write_it(face: Callable[..., Said], tmp_path: Path, encoding: str) -> None:
    (tmp_path / "log").write_bytes(f"first\n{DML}\n".encode(encoding))
    done = face("doctor", "--says-file", "log")
    assert done.returncode == 1
    assert "DirectML does not support complex numbers" in done.stdout


def test_a_log_that_is_no_text_is_read_all_the_same(face: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(range(256)) * 40 + b"\n" + DML.encode())
    assert face("doctor", "--says-file", "log").returncode == 1


def test_of_a_huge_log_the_last_lines_are_read_each_once_and_not_in_full(
    face: Callable[..., Said], tmp_path: Path
) -> None:
    progress = "".join(f"{number} of 40000\r\n" for number in range(40_000)) + "again\n" * 9_000
    (tmp_path / "log").write_text(f"{progress}{'x' * 3_000_000}\n{DML}\n")
    done = face("doctor", "--says-file", "log", "--json")
    says = json.loads(done.stdout)["data"]["recording"]["says"]
    assert (len(says), len(says[-2]), says[-3:]) == (5_000, 1_000, ["again", "x" * 1_000, DML])
    assert done.returncode == 1


def test_of_a_huge_log_an_early_line_that_tells_something_is_kept(face: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"{DML}\n" + "".join(f"step {number}\n" for number in range(9_000)))
    done = face("doctor", "--says-file", "log", "--json")
    says = json.loads(done.stdout)["data"]["recording"]["says"]
    assert (says[0], says[1], len(says)) == (DML, "step 4000", 5_001)


def test_a_log_that_is_not_there_is_a_sentence(face: Callable[..., Said]) -> None:
    done = face("doctor", "--says-file", "nothing.txt")
    assert done.returncode == 2
    assert "nothing.txt" in done.stderr


def test_json_holds_findings_and_a_recording_without_the_home_folder(face: Callable[..., Said]) -> None:
    done = face("doctor", "--json", "--says", f"{Path.home()}/app/run.py: {DML}")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["ok"] is False
    (finding,) = told["data"]["findings"]
    assert (finding["name"], finding["confidence"]) == ("directml-complex", "certain")
    assert set(finding["remedies"][0]) == {"do", "shell", "commands", "needs", "proof", "proof_shell"}
    assert told["data"]["recording"]["says"] == [f"~/app/run.py: {DML}"]
    assert str(Path.home()) not in done.stdout


def test_an_app_that_is_not_installed_is_a_sentence(face: Callable[..., Said]) -> None:
    done = face("doctor", "demo")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[not-installed]: demo is not installed; `patchlock plan demo` ")


def test_an_install_that_was_interrupted_is_told_as_by_status(face: Callable[..., Said]) -> None:
    folder = Path(os.environ["PATCHLOCK_HOME"]) / "demo@cpu"
    folder.mkdir(parents=True)
    (folder / "journal").write_text("{}")
    told = face("doctor", "demo").stderr
    assert told.startswith("error[not-installed]: demo is not installed on cpu: its install was interrupted")
    assert "finish it with `patchlock install demo --profile cpu`" in told


def test_what_the_machine_lacks_is_told_although_the_app_is_not_installed(
    face: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(HOSTS / "windows-no-cxx-runtime.json"))
    done = face("doctor", "demo")
    assert done.returncode == 1
    assert done.stdout.startswith("certain: Microsoft's Visual C++ runtime is missing or too old")
    assert "error[not-installed]: demo is not installed" in done.stderr
    data = json.loads(face("doctor", "demo", "--json").stdout)["data"]
    assert [one["name"] for one in data["findings"]] == ["msvc-runtime-missing"]


def _install(home: Path, profile: str, **packages: str) -> Path:
    _, folder = install(home, app="demo", profile=profile)
    site = folder / "lib" / "python3.11" / "site-packages"
    for name, version in packages.items():
        (site / f"{name}-{version.partition('+')[0]}.dist-info").mkdir(parents=True)
    if "torch" in packages:
        (site / "torch").mkdir()
        (site / "torch" / "version.py").write_text(
            f"from typing import Optional\n__version__ = '{packages['torch']}'\n"
        )
    return folder


def test_the_environment_of_an_app_is_looked_at(face: Callable[..., Said]) -> None:
    folder = _install(
        Path(os.environ["PATCHLOCK_HOME"]),
        "cpu",
        torch="2.9.1+cpu",
        torchaudio="2.8.0",
        onnxruntime="1.20.0",
        onnxruntime_gpu="1.20.0",
    )
    done = face("doctor", "demo")
    assert done.returncode == 1
    assert "torchaudio is 2.8.0, which is made for torch 2.8.0; torch is 2.9.1+cpu" in done.stdout
    assert "onnxruntime 1.20.0 and onnxruntime-gpu 1.20.0 share one folder" in done.stdout
    assert "$ patchlock install demo --reinstall" in done.stdout
    assert f"""$ {folder}/bin/python -c "import torch, torchaudio;""" in done.stdout


def test_an_app_on_two_profiles_must_be_named_with_one(face: Callable[..., Said]) -> None:
    for profile in ("cpu", "cuda-linux"):
        _install(Path(os.environ["PATCHLOCK_HOME"]), profile, torch="2.9.1+cpu")
    assert face("doctor", "demo").returncode == 2
    assert face("doctor", "demo", "--profile", "cpu").returncode == 0


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("__version__ = '2.9.1+cu128'\n", "2.9.1+cu128"),
        ('debug = False\n__version__ = "2.9.1+cpu"\n', "2.9.1+cpu"),
        ("__version__ = '2.4.0+cu121'\n", "2.9.1"),  # left over from another one
        ("\x00\xff nothing", "2.9.1"),
        (None, "2.9.1"),
    ],
)
def test_torch_says_which_build_it_is(tmp_path: Path, text: str | None, version: str) -> None:
    site = installed.site_packages(tmp_path)
    (site / "torch-2.9.1.dist-info").mkdir(parents=True)
    if text is not None:
        (site / "torch").mkdir()
        (site / "torch" / "version.py").write_text(text, encoding="utf-8")
    assert installed.installed_versions(tmp_path) == {"torch": version}


def test_an_environment_that_is_gone_has_no_packages(tmp_path: Path) -> None:
    assert installed.installed_versions(tmp_path / "gone") == {}
