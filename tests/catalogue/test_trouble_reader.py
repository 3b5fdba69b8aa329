"""`profiles/troubles/`: what is read, each mistake with its sentence, and which proofs only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.catalogue._troubles.reader import writes
from patchlock.catalogue.reader import Catalogue
from patchlock.hardware import doctor
from patchlock.model.devices import Card
from patchlock.model.errors import CatalogueError
from patchlock.model.hosts import Device, Host, Node, Recording
from patchlock.model.troubles import Shell

HEAD = """\
title = "t"
why = "w"
sources = ["https://example.org"]
"""
SIGN = """
[[sign]]
confidence = "likely"
says = ["broken"]
"""
REMEDY = """
[[remedy]]
do = "Mend it."
shell = "sh"
commands = ["true"]
needs = ["sudo"]
proof = "ls"
"""


def _catalogue(root: Path, text: str) -> Catalogue:
    folder = root / "profiles" / "troubles"
    folder.mkdir(parents=True)
    (folder / "t.toml").write_text(text, encoding="utf-8")
    return Catalogue(root=root)


def _sign(condition: str) -> str:
    return f"{HEAD}{REMEDY}\n[[sign]]\nconfidence = 'likely'\n{condition}\n"


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        pytest.param(HEAD + REMEDY, ["a trouble needs a sign; write a [[sign]]"], id="no-sign"),
        pytest.param(HEAD + SIGN, ["a trouble needs a remedy; write a [[remedy]]"], id="no-remedy"),
        pytest.param(HEAD.replace("https:", "ftp:") + SIGN + REMEDY, ['"ftp://example.org" is not an address'], id="source"),
        pytest.param(HEAD + 'vendors = ["1003"]' + SIGN + REMEDY, ['there is no vendor "1003"; did you mean "1002"?'], id="vendor"),
        pytest.param(HEAD + SIGN.replace("likely", "likly") + REMEDY, ['there is no confidence "likly"; did you mean "likely"?'], id="confidence"),
        pytest.param(HEAD + SIGN.replace("says", "say") + REMEDY, ['the key "say" is unknown; did you mean "says"?'], id="unknown-key"),
        pytest.param(HEAD + SIGN.replace("broken", "(") + REMEDY, ['"(" is not a regular expression'], id="regex"),
        pytest.param(HEAD + SIGN + REMEDY.replace("sudo", "sodu"), ['there is no need "sodu"; did you mean "sudo"?'], id="need"),
        pytest.param(HEAD + SIGN + REMEDY.replace('"sh"', '"zsh"'), ['there is no shell "zsh"; did you mean "sh"?'], id="shell"),
        pytest.param(HEAD + SIGN + REMEDY.replace('"ls"', '"rm x"'), ['"rm" may do more than read'], id="proof"),
        pytest.param(HEAD + SIGN + REMEDY.replace('["true"]', "[]"), ["it is empty; write what a person pastes"], id="no-commands"),
        pytest.param(_sign("os = ['linx']"), ['there is no "linx"; did you mean "linux"?'], id="os"),
        pytest.param(_sign("versions = { nvidia-drivers = '>1' }"), ['did you mean "nvidia-driver"?'], id="version-name"),
        pytest.param(_sign("versions = { nvidia-driver = 'new' }"), ['"new" is not a version specifier'], id="specifier"),
        pytest.param(_sign("libraries = ['libcuda.so']"), ['did you mean "libcuda.so.1"?'], id="library"),
        pytest.param(_sign("settings = { nouveu = 'x' }"), ['did you mean "nouveau"?'], id="setting"),
        pytest.param(_sign("variables = {}"), ["it is empty"], id="empty"),
        pytest.param(_sign("nodes = ['/dev/kdf']"), ['did you mean "/dev/kfd"?'], id="node"),
        pytest.param(_sign("devices = [{ famly = ['rdna4'] }]"), ['the key "famly" is unknown; did you mean "family"?'], id="device-key"),
        pytest.param(_sign("devices = [{ arch = '[' }]"), ['"[" is not a regular expression'], id="device-regex"),
        pytest.param(_sign("rule = ['two-onnxruntime']"), ['did you mean "two-onnxruntimes"?'], id="rule"),
        pytest.param(
            _sign("os = ['linx']\nrelease = 'x'\nwsl = 1"),
            ['did you mean "linux"?', "it is a number, and must be true or false", '"x" is not a version specifier'],
            id="all-at-once",
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_named(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    with pytest.raises(CatalogueError) as caught:
        _catalogue(tmp_path, text).troubles()
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == len(mistakes)
    for mistake, sentence in zip(mistakes, told, strict=True):
        assert mistake in sentence
        assert sentence.startswith("profiles/troubles/t.toml")


NVIDIA = Device(vendor="10de", device="2684", name="NVIDIA GeForce RTX 4090", arch="sm_89")
CARD = Card(
    vendor="1002", devices=("7550",), name="RX 9070 XT", chip="Navi 48", arch="gfx1201", family="rdna4", is_integrated=False, source="s"
)  # fmt: skip
RADEON = Device(vendor="1002", device="7550", trouble="code 43")
HOST = Host(
    os="linux",
    machine="x86_64",
    libc="glibc 2.36",
    release="6.8.0-45-generic",
    python="3.11.4",
    python_maker="conda",
    is_wsl=True,
    container="docker",
    tegra="38.4.0",
    devices=(NVIDIA, RADEON),
    nodes=(Node(path="/dev/dri/renderD128", is_usable=False, group="render"), Node(path="/dev/kfd", is_usable=True)),
    versions={"nvidia-driver": "580.65.06"},
    libraries={"libcuda.so.1": "/lib/libcuda.so.1"},
    settings={"nouveau": "loaded"},
    variables={"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0"},
)
RECORDING = Recording(host=HOST, packages={"torch": "2.7.1+cu118", "numpy": "2.0.0"}, says=("a  broken line",))


@pytest.mark.parametrize(
    ("condition", "seen"),
    [
        pytest.param("machine = ['x86_64']\nwsl = true", "this is WSL", id="wsl"),
        pytest.param("container = true", "a container (docker)", id="container"),
        pytest.param("jetson = true", "Jetson Linux 38.4.0", id="jetson"),
        pytest.param("release = '<6.12'", "the kernel is 6.8.0-45-generic (<6.12)", id="release"),
        pytest.param("glibc = '<2.38'", "glibc is 2.36 (<2.38)", id="glibc"),
        pytest.param("python = '<3.12'", "Python is 3.11.4 (<3.12)", id="python"),
        pytest.param("python-maker = ['conda', 'store']", "this Python is from conda", id="maker"),
        pytest.param("versions = { nvidia-driver = '>=555' }", "nvidia-driver is 580.65.06 (>=555)", id="version"),
        pytest.param("no-versions = ['rocm']", "no rocm was found", id="no-version"),
        pytest.param("libraries = ['libcuda.so.1']", "libcuda.so.1 is /lib/libcuda.so.1", id="library"),
        pytest.param("no-libraries = ['librocdxg.so']", "librocdxg.so is not there", id="no-library"),
        pytest.param("settings = { nouveau = 'load.*' }", "nouveau=loaded", id="setting"),
        pytest.param("no-settings = { nouveau = 'absent' }", "nouveau=loaded", id="no-setting"),
        pytest.param("variables = { CUDA_VISIBLE_DEVICES = '' }", "CUDA_VISIBLE_DEVICES=", id="variable"),
        pytest.param("no-variables = { HIP_PATH = '.+' }", "HIP_PATH is not set", id="no-variable"),
        pytest.param("nodes = ['/dev/dri/renderD*']", "/dev/dri/renderD* is there", id="node"),
        pytest.param("no-nodes = ['/dev/dxg']", "/dev/dxg is not there", id="no-node"),
        pytest.param("denied = ['/dev/dri/renderD*']", "/dev/dri/renderD128 may not be opened; the group render may", id="denied"),
        pytest.param("packages = { Torch = '<2.8' }", "Torch is 2.7.1+cu118", id="package"),
        pytest.param("no-packages = ['onnx']\nos = ['linux']\nwsl = true", "this is WSL", id="no-package"),
        pytest.param("builds = { torch = 'cu11\\d' }".replace("'cu", "'cu"), "torch is 2.7.1+cu118", id="build"),
        pytest.param("devices = [{ arch = 'sm_8.' }]", "there is NVIDIA GeForce RTX 4090 (sm_89)", id="device"),
        pytest.param("devices = [{ family = ['rdna4'], integrated = false, trouble = '43' }]", "there is RX 9070 XT (gfx1201): code 43", id="known-device"),
        pytest.param("no-devices = [{ vendor = ['8086'] }]\nwsl = true", "this is WSL", id="no-device"),
        pytest.param("says = ['fine', '(?i)BROKEN']", 'a program printed "a broken line"', id="says"),
    ],
)  # fmt: skip
def test_condition_holds_and_tells_what_was_seen(tmp_path: Path, condition: str, seen: str) -> None:
    entries = _catalogue(tmp_path, _sign(condition)).troubles()
    (finding,) = doctor.diagnose(RECORDING, (CARD,), entries)
    assert finding.evidence == (seen,)
    assert doctor.diagnose(RECORDING, (), _catalogue(tmp_path / "2", _sign("says = ['fine']")).troubles()) == ()


@pytest.mark.parametrize(
    "condition",
    [
        "os = ['windows']",
        "machine = ['aarch64']",
        "wsl = false",
        "container = false",
        "jetson = false",
        "release = '>=6.12'",
        "glibc = '<2.28'",
        "python = '>=3.12'",
        "python-maker = ['store']",
        "versions = { nvidia-driver = '<555' }",
        "versions = { rocm = '>=0' }",
        "no-versions = ['nvidia-driver']",
        "libraries = ['librocdxg.so']",
        "no-libraries = ['libcuda.so.1']",
        "settings = { nouveau = 'load' }",
        "no-settings = { nouveau = 'loaded' }",
        "variables = { HIP_VISIBLE_DEVICES = '1' }",
        "variables = { HIP_PATH = '.*' }",
        "no-variables = { HIP_VISIBLE_DEVICES = '.+' }",
        "nodes = ['/dev/dxg']",
        "no-nodes = ['/dev/kfd']",
        "denied = ['/dev/kfd']",
        "packages = { torch = '>=2.8' }",
        "packages = { onnx = '>=0' }",
        "no-packages = ['numpy']",
        "builds = { torch = 'cu12.*' }",
        "builds = { numpy = '.+' }",
        "devices = [{ arch = 'sm_89', vendor = ['1002'] }]",
        "devices = [{ vendor = ['10de'] }, { vendor = ['8086'] }]",
        "devices = [{ vendor = ['10de'], integrated = false }]",
        "no-devices = [{ hidden = false }]",
        "says = ['fine']",
        "says = ['line.*broken']",
        "wsl = true\nsays = ['fine']",
    ],
)
def test_condition_does_not_hold(tmp_path: Path, condition: str) -> None:
    assert doctor.diagnose(RECORDING, (CARD,), _catalogue(tmp_path, _sign(condition)).troubles()) == ()


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        pytest.param(SIGN, "likely", id="one sign"),
        pytest.param(SIGN + SIGN.replace("likely", "possible"), "likely", id="the strongest"),
        pytest.param(SIGN + "\n[[sign]]\nconfidence = 'possible'\nos = ['linux']\n", "certain", id="words and machine agree"),
        pytest.param(SIGN.replace("likely", "certain") + "\n[[sign]]\nconfidence = 'certain'\nos = ['linux']\n", "certain", id="no more than certain"),
        pytest.param("\n[where]\nos = ['windows']\n" + SIGN, None, id="elsewhere"),
        pytest.param("\n[[unless]]\nos = ['windows']\n[[unless]]\nos = ['linux']\n" + SIGN, None, id="unless"),
    ],
)  # fmt: skip
def test_confidence_is_that_of_the_strongest_sign(tmp_path: Path, text: str, confidence: str | None) -> None:
    found = doctor.diagnose(RECORDING, (), _catalogue(tmp_path, HEAD + text + REMEDY).troubles())
    assert [finding.confidence for finding in found if finding.name == "t"] == ([confidence] if confidence else [])


def test_the_surest_comes_first_and_only_remedies_for_this_machine(tmp_path: Path) -> None:
    catalogue = _catalogue(
        tmp_path, HEAD + SIGN + REMEDY + REMEDY.replace("[[remedy]]", "[[remedy]]\nwhere = { os = ['windows'] }")
    )
    for name, confidence in {"a": "possible", "z": "certain", "m": "certain"}.items():
        (tmp_path / f"profiles/troubles/{name}.toml").write_text(HEAD + SIGN.replace("likely", confidence) + REMEDY)
    found = doctor.diagnose(RECORDING, (), catalogue.troubles())
    assert [finding.name for finding in found] == ["m", "z", "t", "a"]
    assert [len(finding.remedies) for finding in found] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("command", "shell", "mistakes"),
    [
        ("lsmod | grep amdgpu && ls -l /dev/kfd", "sh", []),
        ("""{python} -c "import torch; print(torch.ones(2) > 1)" """, "sh", []),
        ("ls x > y", "sh", ['">" may write']),
        ("cat $(rm x)", "sh", ['"$(" starts a program out of sight', '"rm" may do more than read']),
        ("cat `rm x`", "sh", ['"`" starts a program out of sight']),
        ("ls; rm -r x", "sh", ['"rm" may do more than read']),
        ("docker run IMAGE", "sh", ['"docker run" may do more than read']),
        ("docker info", "sh", []),
        ("ldconfig", "sh", ['"ldconfig " may do more than read']),
        ("patchlock install {app}", "sh", ['"patchlock install" may do more than read']),
        ("/bin/rm x", "sh", ['"/bin/rm" may do more than read']),
        ("ls 'x", "sh", ["it cannot be read: No closing quotation"]),
        ("Get-Command a | Select-Object 'Source'", "powershell", []),
        ("Get-Command a | Where-Object { Remove-Item $_ }", "powershell", ['"Remove-Item" may do more than read']),
        ("(New-Item x).Name", "powershell", ['"New-Item" may do more than read']),
        ("winget install x", "powershell", ['"winget install" may do more than read']),
    ],
)
def test_a_proof_only_reads(command: str, shell: Shell, mistakes: list[str]) -> None:
    assert writes(command, shell) == mistakes
