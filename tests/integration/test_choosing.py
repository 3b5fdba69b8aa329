"""`detect`, and what `plan` and `install` choose without --profile, on pretended machines."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import select
import subprocess
from collections.abc import Callable
from pathlib import Path

import miniature
import pytest
from conftest import ROOT, Patchlock, Said

from patchlock.cli import _options
from patchlock.cli._install import install_command
from patchlock.cli._plan import plan_command
from patchlock.hardware import on_paper, probes, stored_choice
from patchlock.hardware.stored_choice import StoredChoice
from patchlock.model import hosts
from patchlock.model.byte_sizes import size_text
from patchlock.model.hosts import Device, Host, Node, Recording
from patchlock.model.platforms import platform_of

Face = Callable[..., Said]

XT = Device(vendor="1002", device="7550", revision="c0", name="Radeon RX 9070 XT", address="0000:03:00.0")
RYZEN = Host(
    os="linux",
    machine="x86_64",
    libc="glibc 2.39",
    release="6.14.0-24-generic",
    distribution="ubuntu 24.04",
    memory=67_000_000_000,
    devices=(Device(vendor="1002", device="164e", revision="c1", address="0000:12:00.0"), XT),
    nodes=(Node(path="/dev/kfd", is_usable=True),),
    failures=(hosts.Failure(probe="rocminfo", why="there is no such program"),),
)
VEGA = Host(os="windows", machine="amd64", devices=(Device(vendor="1002", device="15d8", revision="c2"),))


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], Path]:
    def pretend(host: Host) -> Path:
        path = tmp_path / "machine.json"
        path.write_text(json.dumps(hosts.to_json(Recording(host=host))), encoding="utf-8")
        monkeypatch.setenv("PATCHLOCK_HOST", str(path))
        return path

    return pretend


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], None]:
    """Let this machine be another one, so that something is really installed."""

    def become(host: Host) -> None:
        monkeypatch.delenv("PATCHLOCK_HOST", raising=False)
        monkeypatch.setattr(probes, "probe", lambda *_: host)

    return become


def test_detect_shows_machine_devices_profile_and_others(face: Face, pretend: Callable[[Host], Path]) -> None:
    path = pretend(RYZEN)
    done = face("detect", "--catalogue", str(ROOT))
    assert done.stderr == f"simulated machine: PATCHLOCK_HOST={path}\n"
    assert done.returncode == 0
    assert (
        done.stdout.replace(f" --catalogue {ROOT}", "")
        == """\
Machine
  system  ubuntu 24.04, 6.14.0-24-generic, glibc 2.39
  CPU     x86_64
  memory  62.4 GiB
  nodes   /dev/kfd

Devices
  AMD Radeon 610M        gfx1036  rdna2-integrated  -  1002:164e rev c1  0000:12:00.0
  AMD Radeon RX 9070 XT  gfx1201  rdna4             -  1002:7550 rev c0  0000:03:00.0

Profile
  rocm-linux  Linux, Radeon (RDNA 2 to 4), ROCm
              this machine has Radeon RX 9070 XT (gfx1201), and the locked torch has code for it

Others
  cpu                  also fits; rocm-linux uses Radeon RX 9070 XT (gfx1201)
  cuda-linux           needs an NVIDIA GPU (sm_50, sm_52, sm_60, sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90); none found
  cuda128-linux        needs an NVIDIA GPU (sm_100, sm_103, sm_120); none found
  rocm72-linux         needs an AMD GPU (gfx1150, gfx1151); found Radeon 610M (gfx1036), Radeon RX 9070 XT (gfx1201)
  xpu-linux            needs an Intel GPU (dg2, mtl-h, arl-h, bmg, lnl-m); none found
  cuda-windows         needs windows-amd64; this machine is linux-x86_64 (and 1 more: --why-not cuda-windows)
  cuda126-windows      needs windows-amd64; this machine is linux-x86_64 (and 1 more: --why-not cuda126-windows)
  cuda13-aarch64       needs linux-aarch64; this machine is linux-x86_64 (and 1 more: --why-not cuda13-aarch64)
  cuda13-thor-aarch64  needs linux-aarch64; this machine is linux-x86_64 (and 1 more: --why-not cuda13-thor-aarch64)
  directml-onnx        needs windows-amd64; this machine is linux-x86_64
  directml-vega        needs windows-amd64; this machine is linux-x86_64 (and 1 more: --why-not directml-vega)
  mps-macos            needs macos-arm64; this machine is linux-x86_64 (and 1 more: --why-not mps-macos)
  rocm-windows         needs windows-amd64; this machine is linux-x86_64
  xpu-windows          needs windows-amd64; this machine is linux-x86_64 (and 1 more: --why-not xpu-windows)
  zluda-rdna4          needs windows-amd64; this machine is linux-x86_64

Not seen
  rocminfo  there is no such program

Notes
  which number Radeon RX 9070 XT (gfx1201) has among 2 devices is not known; if the app takes another one, set \
HIP_VISIBLE_DEVICES to the number of this one

Next: `patchlock list` names the apps, and `patchlock info APP` says what an app would run on here.
"""
    )


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        (
            "directml-vega",
            [
                "needs windows-amd64; this machine is linux-x86_64",
                "needs an AMD GPU (gfx902, gfx909, gfx90c); found Radeon 610M (gfx1036), Radeon RX 9070 XT (gfx1201)",
            ],
        ),
        ("cpu", ["also fits; rocm-linux uses Radeon RX 9070 XT (gfx1201)"]),
        (
            "rocm-linux",
            ["chosen: this machine has Radeon RX 9070 XT (gfx1201), and the locked torch has code for it"],
        ),
    ],
)
def test_why_not_says_every_reason(profile: str, lines: list[str], face: Face, pretend: Callable[[Host], Path]) -> None:
    pretend(RYZEN)
    done = face("detect", "--why-not", profile, "--catalogue", str(ROOT))
    assert done.stdout == "\n".join([profile, *(f"  {line}" for line in lines)]) + "\n"
    told = json.loads(face("detect", "--why-not", profile, "--json", "--catalogue", str(ROOT)).stdout)
    assert told["data"] == {"profile": profile, "reasons": lines}


def test_why_not_of_no_profile_names_the_nearest(face: Face) -> None:
    done = face("detect", "--why-not", "rocm-lnux", "--catalogue", str(ROOT))
    assert (done.returncode, done.stderr) == (
        1,
        'error[unknown-profile]: there is no profile "rocm-lnux"; did you mean "rocm-linux"?\n',
    )


def test_detect_prints_a_machine_that_can_be_pretended(
    face: Face, pretend: Callable[[Host], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(VEGA)
    first = face("detect", "--json", "--catalogue", str(ROOT)).stdout
    assert hosts.from_json(json.loads(first), "detect").host == VEGA
    (tmp_path / "again.json").write_text(first, encoding="utf-8")
    monkeypatch.setenv("PATCHLOCK_HOST", str(tmp_path / "again.json"))
    choice = json.loads(face("detect", "--json", "--catalogue", str(ROOT)).stdout)["data"]["choice"]
    assert (choice["profile"], choice["devices"][0]["family"]) == ("directml-vega", "vega-integrated")
    assert {one["name"]: one["fits"] for one in choice["profiles"]}["zluda-rdna4"] is False


def test_detect_answers_for_this_machine(face: Face) -> None:
    done = face("detect", "--json", "--catalogue", str(ROOT))
    here = probes.basic()
    host = hosts.from_json(json.loads(done.stdout), "detect").host
    assert (done.returncode, host.os, host.machine) == (0, here.os, here.machine)


def test_detect_says_what_fits_nowhere_and_goes_on(face: Face, pretend: Callable[[Host], Path]) -> None:
    pretend(Host(os="linux", machine="riscv64", libc="glibc 2.39"))
    done = face("detect", "--catalogue", str(ROOT))
    assert done.returncode == 0
    assert (
        "Profile\n  none  no profile fits this machine: linux on riscv64 is not supported; which there are: "
        f"`patchlock list --catalogue {ROOT}`\n"
    ) in done.stdout


def test_thousand_devices_are_shown(face: Face, pretend: Callable[[Host], Path]) -> None:
    pretend(
        Host(
            os="linux",
            machine="x86_64",
            libc="glibc 2.39",
            devices=tuple(Device(vendor="1002", device=f"{number:04x}") for number in range(1000)),
        )
    )
    done = face("detect", "--catalogue", str(ROOT))
    assert done.returncode == 0
    assert "found an AMD card (1002:0000), an AMD card (1002:0001)," in done.stdout
    assert "and 988 more" in done.stdout


# --- plan and install -------------------------------------------------------------------------------------------------

NEEDY = """
[[fit]]
vendor = "1002"
archs = ["gfx1201"]
nodes = ["/dev/kfd"]
selects = "HIP_VISIBLE_DEVICES"
why = "as the tests want it"
source = "tests"
"""


def _add_needy(world: miniature.World) -> None:
    """Put a narrower profile beside tiny, for a card."""
    profiles = world.catalogue / "profiles"
    text = (profiles / "tiny.toml").read_text(encoding="utf-8").replace("specificity = 0", "specificity = 9")
    (profiles / "needy.toml").write_text(text + NEEDY, encoding="utf-8")


HERE = probes.basic()


def _here(*nodes: Node, **card: object) -> Host:
    """Make a machine of this one's platform with a card."""
    device = Device(vendor="1002", device="7550", arch="gfx1201", **card)  # type: ignore[arg-type]
    return Host(os=HERE.os, machine=HERE.machine, libc=HERE.libc, devices=(device,), nodes=nodes)


KFD = Node(path="/dev/kfd", is_usable=True)


def test_plan_chooses_and_says_why(locked: miniature.World, face: Face, pretend: Callable[[Host], Path]) -> None:
    path = pretend(_here())
    done = face("plan", "mini")
    assert done.returncode == 0
    first, chosen, warning = done.stderr.splitlines()
    assert (first, chosen) == (
        f"simulated machine: PATCHLOCK_HOST={path}",
        "profile tiny: no other profile fits an AMD card (gfx1201, 1002:7550)",
    )
    assert warning.startswith(
        "warning: mini will run on the CPU; your AMD card (gfx1201, 1002:7550) will not be used. Reason: no profile of "
    )
    assert locked.app.is_file()


OPTIONAL = """
[[patch]]
id = "voice"
optional = "voice"
gives = "a voice"
why = "a person may want that"
source = "https://example.org/voice"
op = "replace-text"
paths = ["app.py"]
old = '"computed on"'
new = '"COMPUTED and computed on"'

[[patch.ensure]]
check = "contains"
text = "COMPUTED"
"""


def test_install_stops_where_a_card_is_missed_and_nobody_can_be_asked(
    locked: miniature.World, face: Face, become: Callable[[Host], None]
) -> None:
    _add_needy(locked)
    become(_here(Node(path="/dev/kfd", is_usable=False, group="render")))
    done = face("install", "mini")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "profile tiny: no other profile fits an AMD card (gfx1201, 1002:7550)",
        (
            "error[uncertain-choice]: tiny fits this machine, but a better profile may have been missed; if tiny is meant, name "
            "it: --profile tiny"
        ),
        (
            "  mini will run on the CPU; your AMD card (gfx1201, 1002:7550) will not be used. Reason: needy would fit it, "
            "but this user may not open /dev/kfd, only the group render may; ask `patchlock doctor`"
        ),
    ]
    told = json.loads(face("install", "mini", "--json").stdout)
    assert told["error"]["code"] == "uncertain-choice"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("plan", "mini", "--profile", "needy"), id="a refusal"),
        pytest.param(("info", "mini", "--json"), id="info"),
        pytest.param(("bundle", "mini", "-o", "mini.bundle"), id="bundle"),
        pytest.param(("export", "mini", "--format", "pylock"), id="export"),
        pytest.param(("patch", "status", "mini"), id="patch status"),
        pytest.param(("patch", "apply", "mini", "--source", "{upstream}"), id="patch apply"),
        pytest.param(("install", "mini"), id="install that offers another profile"),
    ],
)
def test_simulated_machine_is_named_once(
    locked: miniature.World, face: Face, pretend: Callable[[Host], Path], arguments: tuple[str, ...]
) -> None:
    _add_needy(locked)
    path = pretend(_here(Node(path="/dev/kfd", is_usable=False)))
    done = face(*(word.format(upstream=locked.upstream) for word in arguments))
    assert done.stderr.splitlines().count(f"simulated machine: PATCHLOCK_HOST={path}") == 1


@pytest.mark.parametrize(
    ("host", "app", "why"),
    [
        ("h100-conda", "tts-service", "H100 80GB HBM3 (sm_90)"),
        ("h100-conda", "rvc-python", "H100 80GB HBM3 (sm_90), and the locked torch has code for it"),
        ("rx9070xt-linux-torch", "diffrhythm2", "Radeon RX 9070 XT (gfx1201), and the locked torch has code for it"),
    ],
)
def test_what_torch_can_do_is_no_reason_for_an_app_without_torch(
    host: str, app: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHLOCK_HOST", str(ROOT / "tests" / "hardware" / "hosts" / f"{host}.json"))
    machine = _options.request(ROOT, app, None).machine
    assert machine is not None
    assert machine.choice.why == f"this machine has {why}"


def test_mistakes_of_a_profile_are_told_all_at_once(locked: miniature.World, face: Face) -> None:
    text = locked.profile.read_text(encoding="utf-8")
    locked.profile.write_text(text.replace("title", "titel").replace("python", "pyhton"), encoding="utf-8")
    assert face("plan", "mini").stderr.startswith("error[catalogue]: the catalogue has 4 mistakes\n")


def test_the_plan_for_another_machine_is_that_of_the_same_install(
    locked: miniature.World, face: Face, pretend: Callable[[Host], Path]
) -> None:
    locked.app.write_text(
        locked.app.read_text(encoding="utf-8") + OPTIONAL + OPTIONAL.replace("voice", "hum"), encoding="utf-8"
    )
    pretend(Host(os="windows", machine="amd64") if HERE.os == "linux" else Host(os="linux", machine="x86_64"))
    words = "--source /clone --commit HEAD --with voice --without hum --accept-edited-lock --local-addresses"
    install, plan = ({one.opts[-1] for one in command.params} for command in (install_command, plan_command))
    others = {"app", "--profile", "--json", "--verbose", "--quiet", "--log-file", "--catalogue"}
    assert (install & plan) - others == {word for word in words.split() if word.startswith("--")} | {"--from-source"}
    done = face("install", "mini", *words.split())
    assert f"`patchlock plan mini --profile tiny {words}`" in done.stderr
    done = face("install", "mini", "--from-source", "delta")
    assert "error[usage]: mini has no recipe that builds delta from its source on tiny" in done.stderr


@pytest.mark.parametrize("is_same_platform", [False, True], ids=["another platform", "the same platform"])
def test_install_for_a_recorded_machine_is_refused(
    is_same_platform: bool, locked: miniature.World, face: Face, pretend: Callable[[Host], Path]
) -> None:
    other = Host(os="windows", machine="amd64") if HERE.os == "linux" else Host(os="linux", machine="x86_64")
    other = HERE if is_same_platform else other
    path = pretend(dataclasses.replace(other, devices=_here().devices))
    platform = platform_of(other)
    assert platform is not None
    done = face("install", "mini", "--commit", "HEAD")
    assert done.returncode == 2
    warning = "warning: mini will run on the CPU; your AMD card (gfx1201, 1002:7550) will not be used. Reason: "
    assert done.stderr.splitlines()[1].startswith(warning)
    assert done.stderr.splitlines()[-1] == (
        "error[usage]: PATCHLOCK_HOST names another machine, and nothing is installed for one: `patchlock plan mini "
        "--profile tiny --commit HEAD` shows what would be done there; to install on this machine, unset PATCHLOCK_HOST"
    )
    done = face("update", "mini")
    assert done.returncode == 2
    assert done.stderr == (
        "error[usage]: PATCHLOCK_HOST names another machine, and nothing is updated for one; to update on this machine, "
        "unset PATCHLOCK_HOST\n"
    )
    assert not (locked.catalogue.parent / "installed").exists()
    face(*miniature.lock_here())
    planned = face("plan", "mini", "--json")
    assert (planned.returncode, json.loads(planned.stdout)["data"]["platform"]) == (0, platform.name)
    there = on_paper.folder(other, "mini@tiny")
    for command in ("run", "verify"):
        told = f"simulated machine: PATCHLOCK_HOST={path}\nerror[not-installed]: mini is not installed on tiny ({there}); `patchlock plan mini --profile tiny` shows what an install would do there; for this machine, unset PATCHLOCK_HOST\n"
        assert face(command, "mini", "--profile", "tiny").stderr == told
    assert "  install   on that machine: patchlock install mini --profile tiny\n" in face("plan", "mini").stdout


def test_recorded_machine_is_ignored_for_what_is_installed_here(
    locked: miniature.World, face: Face, pretend: Callable[[Host], Path]
) -> None:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    pretend(HERE)
    note = "note: PATCHLOCK_HOST is ignored: mini on tiny is installed on this machine"
    for command in ("run", "verify", "models"):
        assert note in face(command, "mini", "--json").stderr.splitlines()


def test_install_is_for_this_machine_where_one_fact_is_corrected(
    locked: miniature.World, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locked.app.is_file()
    monkeypatch.setenv("PATCHLOCK_OVERRIDE_ARCH", "")
    done = face("install", "mini")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "simulated machine: PATCHLOCK_OVERRIDE_ARCH=")
    done = face("install", "mini", "--profile", "tiny")
    assert ("nothing to do\n" in done.stdout, done.stderr) == (True, "simulated machine: PATCHLOCK_OVERRIDE_ARCH=\n")


TROUBLE = """
title = "the driver does not answer"
why = "Nobody knows."
sources = ["https://example.org"]
before-install = true

[[sign]]
confidence = "possible"
settings = { cu-init = "500" }
builds = { alpha = "" }

[[remedy]]
do = "Ask it again."
shell = "sh"
commands = ["ask twice"]
proof = "cat answer"
"""


def test_trouble_that_an_install_would_meet_is_told_by_plan_and_install(
    locked: miniature.World, face: Face, become: Callable[[Host], None]
) -> None:
    folder = locked.catalogue / "profiles/troubles"
    folder.mkdir()
    (folder / "silent-driver.toml").write_text(TROUBLE, encoding="utf-8")
    (folder / "told-by-doctor.toml").write_text(TROUBLE.replace("before-install = true", ""), encoding="utf-8")
    git = {"git": "2.50"}
    become(dataclasses.replace(HERE, versions=git, settings={"cu-init": "500"}))
    told = "possible: the driver does not answer; ask it again: `ask twice`"
    assert json.loads(face("plan", "mini", "--json").stdout)["data"]["steps"] == [told]
    assert face("install", "mini").stderr.count(f"warning: {told}\n") == 1
    become(dataclasses.replace(HERE, versions=git, settings={"cu-init": "0"}))
    assert json.loads(face("plan", "mini", "--json").stdout)["data"]["steps"] == []


MEMORY = """
[[memory]]
for = "a song"
ram = 5_000_000_000
source = "tests"
"""


@pytest.mark.parametrize(
    ("memory", "is_enough"), [(4 * 10**9, False), (16 * 10**9, True)], ids=["too-little", "enough"]
)
def test_plan_holds_what_an_app_takes_of_memory_against_the_machine(
    locked: miniature.World,
    face: Face,
    pretend: Callable[[Host], Path],
    become: Callable[[Host], None],
    memory: int,
    is_enough: bool,
) -> None:
    locked.app.write_text(locked.app.read_text(encoding="utf-8") + MEMORY, encoding="utf-8")
    assert face(*miniature.lock_here()).returncode == 0
    pretend(dataclasses.replace(HERE, memory=memory))
    told = f"a song: 4.7 GiB of memory; this machine has {size_text(memory)}{', which is too little' * (not is_enough)}"
    done = face("plan", "mini")
    assert re.search(rf"^  memory +{re.escape(told)}$", done.stdout, re.MULTILINE)
    warned = f"note: {told}; close what else uses memory, or begin with a short text or sound\n"
    assert (warned in done.stderr, done.returncode) == (not is_enough, 0)
    data = json.loads(face("plan", "mini", "--json").stdout)["data"]
    assert not any("a song" in step for step in data["steps"])
    assert data["memory"] == [
        {"for": "a song", "of": "machine", "bytes": 5 * 10**9, "has": memory, "enough": is_enough, "source": "tests"}
    ]
    become(dataclasses.replace(HERE, memory=memory))
    done = face("install", "mini")
    assert (f"{told}; close what else uses memory" in done.stdout, done.returncode) == (not is_enough, 0)
    assert (warned in done.stderr) == (not is_enough), "and before it takes its time"


def test_profile_that_the_app_refuses_is_passed_over_and_told(
    locked: miniature.World, face: Face, pretend: Callable[[Host], Path]
) -> None:
    _add_needy(locked)
    text = locked.app.read_text(encoding="utf-8")
    locked.app.write_text(
        text + '\n[[refused]]\nprofile = "needy"\nwhy = "it hums: use the profile other"\nsource = "tests"\n',
        encoding="utf-8",
    )
    pretend(_here(KFD))
    done = face("plan", "mini")
    warning = "warning: mini will run on the CPU; your AMD card (gfx1201, 1002:7550) will not be used. Reason: needy"
    profile, choice, lock = done.stderr.splitlines()[1:]
    assert profile == "profile tiny: mini does not support needy, which would use your AMD card (gfx1201, 1002:7550)"
    assert lock == (
        "warning: patches/mini/app.toml has changed since the lock was made; it still asks for the same packages: "
        "renew it with `patchlock lock mini --profile tiny`"
    )
    assert choice == f"{warning} would fit this card, but not mini: it hums"
    for command in ("plan", "install"):
        _, told = face(command, "mini", "--profile", "needy").stderr.splitlines()
        assert told.startswith("error[refused]: mini cannot run on needy on ")
        assert told.endswith("; run `patchlock plan mini --profile tiny`")


def _platform() -> str:
    platform = platform_of(HERE)
    assert platform is not None
    return platform.name


@pytest.mark.usefixtures("locked")
def test_installed_app_keeps_its_profile_and_its_device(
    locked: miniature.World,
    face: Face,
    become: Callable[[Host], None],
    tmp_path: Path,
) -> None:
    _add_needy(locked)
    card = _here(KFD)
    several = (
        Device(vendor="1002", device="164e", arch="gfx1036", number="0"),
        Device(vendor="1002", device="7550", arch="gfx1201", number="1"),
    )
    become(Host(os=card.os, machine=card.machine, libc=card.libc, devices=several, nodes=card.nodes))
    assert face("lock", "mini", "--profile", "needy").returncode == 0
    done = face("install", "mini")
    assert done.returncode == 0, done.stderr
    assert "profile needy: this machine has an AMD card (gfx1201, 1002:7550), as the tests want it" in done.stderr
    folder = tmp_path / "installed" / "mini@needy"
    assert json.loads((folder / "choice.json").read_text(encoding="utf-8"))["device"] == {"HIP_VISIBLE_DEVICES": "1"}

    again = face("install", "mini")
    assert (again.stdout, again.stderr) == (
        "mini is installed on needy and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
        "",
    )


def test_launch_environment_has_the_device_unless_the_user_chose(tmp_path: Path) -> None:
    stored_choice.write(tmp_path, StoredChoice(device={"HIP_VISIBLE_DEVICES": "1"}, profiles=""))
    assert stored_choice.variables(tmp_path, {}) == {"HIP_VISIBLE_DEVICES": "1"}
    assert stored_choice.variables(tmp_path, {"ROCR_VISIBLE_DEVICES": ""}) == {}
    stored_choice.write(tmp_path, StoredChoice(device={}, profiles=""))
    assert stored_choice.variables(tmp_path, {}) == {}


@pytest.mark.parametrize("text", ["", "[]", '{"device": 5}', "\x00"])
def test_damaged_choice_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "choice.json").write_text(text, encoding="utf-8")
    assert stored_choice.read(tmp_path) == StoredChoice(device={}, profiles="")


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(
    ("answer", "end", "code"),
    [
        pytest.param("n\n", "all the same? [y/N]: n nothing was installed", 0, id="no"),
        pytest.param("\x03", "all the same? [y/N]: ^C interrupted", 130, id="Ctrl-C"),
        pytest.param(
            "y\n",
            "make it on a connected machine: `patchlock lock mini --profile tiny`",
            1,
            id="yes, and the install goes on to its lock",
        ),
    ],
)
def test_person_at_a_terminal_is_asked(
    answer: str,
    end: str,
    code: int,
    locked: miniature.World,
    patchlock: Patchlock,
    tmp_path: Path,
) -> None:
    import fcntl
    import pty
    import termios

    _add_needy(locked)
    for lock in (locked.catalogue / "lockfiles" / "mini").iterdir():
        lock.unlink()
    needy = locked.catalogue / "profiles/needy.toml"
    needy.write_text(needy.read_text(encoding="utf-8").replace("/dev/kfd", "/dev/needy"), encoding="utf-8")
    ours, theirs = pty.openpty()
    with (tmp_path / "told").open("w") as told:
        started = subprocess.Popen(
            [*patchlock.command, "install", "mini"],
            stdin=theirs,
            stdout=told,
            stderr=theirs,
            env=patchlock.env({"TERM": "xterm", "NO_COLOR": "1", "PATCHLOCK_OVERRIDE_ARCH": "gfx1201"}),
            cwd=tmp_path,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        said = b""
        while b"[y/N]: " not in said and (part := os.read(ours, 65536)):
            said += part
        os.write(ours, answer.encode())
        again = answer if answer == "\x03" else ""  # one that comes just before Python reads is not seen
        text = " ".join((said.decode() + _read_all(ours, again)).split()).replace("^C^C", "^C")
        assert started.wait(timeout=120) == code
    assert "Reason: needy would fit it, but /dev/needy is not there" in text
    assert text.endswith(end) if code != 1 else end in text


def _read_all(terminal: int, again: str) -> str:
    said = b""
    with contextlib.suppress(OSError):  # Linux says that the other end is closed by an error
        while True:
            if not select.select([terminal], [], [], 5 if again else None)[0]:
                os.write(terminal, again.encode())
            elif part := os.read(terminal, 65536):
                said += part
            else:
                break
    os.close(terminal)
    return said.decode(errors="replace")


def test_list_names_the_better_profile_of_the_same_machine(face: Face) -> None:
    titles = {
        one["name"]: one
        for one in json.loads(face("list", "--json", "--catalogue", str(ROOT)).stdout)["data"]["profiles"]
    }
    assert (titles["zluda-rdna4"]["successor"], titles["cpu"]["successor"]) == ("rocm-windows", "")
    assert "ZLUDA (better on the same machine: rocm-windows)" in face("list", "--all", "--catalogue", str(ROOT)).stdout


NEEDY_ON_PAPER = """
[[fit]]
vendor = "10de"
archs = ["sm_89"]
why = "for which the tests are"
source = "tests"

[[fit.requires]]
name = "nvidia-driver"
versions = ">=550"
source = "https://example.org/driver"
"""


@pytest.mark.skipif(HERE.os != "linux", reason="the commands are those of Linux")
def test_plan_on_paper_lists_the_steps_of_the_pretended_machine_alone(
    locked: miniature.World, face: Face, pretend: Callable[[Host], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that stands in it is of the machine on which the tests run."""
    _add_needy(locked)
    needs = locked.catalogue / "profiles/needs"
    needs.mkdir(exist_ok=True)
    (needs / "nvidia-driver.toml").write_bytes((ROOT / "profiles/needs/nvidia-driver.toml").read_bytes())
    needy = locked.catalogue / "profiles/needy.toml"
    text = needy.read_text(encoding="utf-8")
    needy.write_text(text.replace(NEEDY, NEEDY_ON_PAPER), encoding="utf-8")
    card = Device(vendor="10de", device="2684", arch="sm_89")
    host = Host(os=HERE.os, machine=HERE.machine, libc=HERE.libc, distribution="arch", devices=(card,))
    pretend(host)
    assert face("lock", "mini", "--profile", "needy").returncode == 0
    monkeypatch.setattr("patchlock.hardware.system.python", None)
    monkeypatch.setattr("patchlock.hardware.system.system", None)
    told = json.loads(face("plan", "mini", "--profile", "needy", "--json").stdout)["data"]["steps"]
    assert told[0].startswith("NVIDIA's driver: 550 or later is needed, and its version was not seen; sudo pacman -S ")
    assert face("plan", "mini", "--profile", "needy").stdout.count("restart the machine") == 1
    whole = face("plan", "mini", "--profile", "needy").stdout
    assert "~/.local/share/patchlock/mini@needy" in whole
    assert all(str(path) not in whole for path in (Path.home(), locked.catalogue.parent / "installed"))

    pretend(dataclasses.replace(host, versions={"nvidia-driver": "470.1"}))
    done = face("plan", "mini", "--profile", "needy")
    assert "the driver is 470.1, and must be 550 or later" in done.stdout
