"""Observing real systems: this one, one without /sys, /proc and /dev, and an emulated one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import host_words
import pytest
from conftest import ROOT

from patchlock.hardware import probes
from patchlock.model import hosts
from patchlock.model.hosts import Host

INSTALLER = ROOT / "installer"
EMULATED = Path(os.environ.get("PATCHLOCK_AARCH64", ""))
CODE = (
    "import json; from patchlock.model import hosts; from patchlock.hardware import probes; "
    "print(json.dumps(hosts.to_json(hosts.Recording(host=probes.probe()))))"
)

ANSWER = """
import json, sys
from pathlib import Path
from patchlock.hardware import host_overrides, probes, report
from patchlock.model.hosts import Recording
observed = host_overrides.ObservedHost(recording=Recording(host=probes.probe(Path(sys.argv[1]))))
look = report.build_report(Path(sys.argv[1]), observed)
chosen = look.choice.chosen.profile.name if look.choice else look.refusal
slow = {"click", "packaging", "hashlib", "tempfile"} & set(sys.modules)
print(json.dumps({"chosen": chosen, "slow": sorted(slow)}))
"""
"""What `detect` does once it is read: it asks the machine, and chooses."""


def _host(output: str) -> Host:
    host = hosts.from_json(json.loads(output), "here").host
    assert host_words.unknown_names(host) == []
    return host


def test_no_program_but_git_is_started_to_observe_a_machine_without_nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        started.append(Path(command[0]).stem)
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    host = probes.probe()
    assert host.memory > 0
    if not any(device.vendor == "10de" for device in host.devices):
        assert started in ([], ["git"])


def test_new_process_observes_this_machine_and_itself() -> None:
    argv = [sys.executable, "-c", CODE]
    env = {**os.environ, "PYTHONPATH": str(INSTALLER), "HIP_VISIBLE_DEVICES": ""}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    host = _host(done.stdout)
    assert host.python == ".".join(map(str, sys.version_info[:3]))
    assert host.variables["HIP_VISIBLE_DEVICES"] == ""


def test_observing_imports_nothing_heavy() -> None:
    code = f"import sys; {CODE}; print(sorted(name for name in sys.modules if '.' not in name))"
    env = {**os.environ, "PYTHONPATH": str(INSTALLER)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert "patchlock" in loaded
    assert loaded & {"requests", "rich", "libcst", "packaging", "asyncio", "concurrent", "logging", "tomlkit"} == set()


def _without_kernel(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a root that has programs and no /sys, /proc, /dev and /etc."""
    shown = {path for path in ("/usr", "/bin", "/lib", "/lib64") if Path(path).exists()}
    shown |= {str(INSTALLER), str(Path(sys.base_prefix).resolve())}
    mounts = [
        f"mkdir -p {shlex.quote(str(folder) + path)} && mount --rbind {shlex.quote(path)} {shlex.quote(str(folder) + path)}"
        for path in sorted(shown)
        if not any(path.startswith(f"{other}/") for other in shown)
    ]
    inside = (
        f"exec chroot {shlex.quote(str(folder))} /usr/bin/env -i PATH=/usr/bin:/bin PYTHONPATH={INSTALLER} {command}"
    )
    script = " && ".join([*mounts, inside])
    argv = ["unshare", "-Urm", "bash", "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("unshare") is None, reason="there is no unshare")
def test_system_without_sys_proc_and_dev_is_an_answer(tmp_path: Path) -> None:
    if _without_kernel(tmp_path, "true").returncode != 0:
        pytest.skip("this kernel lets nobody make a namespace")
    python = Path(sys.base_prefix).resolve() / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    done = _without_kernel(tmp_path, f"{shlex.quote(str(python))} -c {shlex.quote(CODE)}")
    assert done.stderr == ""
    host = _host(done.stdout)
    here = probes.basic()
    assert (host.os, host.machine, host.libc, host.release) == (here.os, here.machine, here.libc, os.uname().release)
    assert (host.devices, host.nodes, host.memory) == ((), (), 0)
    assert [(one.probe, one.why) for one in host.failures] == [
        ("pci", "/sys/bus is not there, so that no card can be seen")
    ]


@pytest.mark.aarch64
def test_emulated_system_is_observed_as_what_it_is() -> None:
    copy = EMULATED / "root/tmp/observing"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(INSTALLER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = f"PYTHONPATH=/tmp/observing LD_LIBRARY_PATH= python3 -c {shlex.quote(CODE)}"
    done = subprocess.run([str(EMULATED / "enter"), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    host = _host(done.stdout)
    assert (host.os, host.machine, host.distribution) == ("linux", "aarch64", "debian 12")
    assert host.libc.startswith("glibc 2.36")
    assert (host.tegra, host.devices) == ("", ())
    assert host.memory >= host.available > 0
    assert [one for one in host.failures if one.probe != "pci"] == []


@pytest.mark.aarch64
def test_emulated_system_is_answered_without_our_dependencies() -> None:
    copy = EMULATED / "root/tmp/answering"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(INSTALLER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "profiles", copy / "profiles")
    command = f"PYTHONPATH=/tmp/answering LD_LIBRARY_PATH= python3 -c {shlex.quote(ANSWER)} /tmp/answering"
    done = subprocess.run([str(EMULATED / "enter"), command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert (said["chosen"], said["slow"]) == ("cpu", [])  # and it needs none of our dependencies, which are not there
