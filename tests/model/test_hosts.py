"""Recorded machines: what is written is read back, and a wrong file is told with every mistake."""

from __future__ import annotations

import json

import pytest

from patchlock.model.errors import UsageError
from patchlock.model.hosts import Device, Failure, Host, Node, Recording, from_json, to_json

FULL = Recording(
    host=Host(
        os="linux",
        machine="x86_64",
        libc="glibc 2.39",
        memory=64_000_000_000,
        devices=(Device(vendor="1002", device="7550", revision="c0", arch="gfx1201", is_hidden=True),),
        nodes=(Node(path="/dev/kfd", is_usable=False, group="render"),),
        versions={"rocm": "6.4.1"},
        groups=("video",),
        failures=(Failure(probe="nvidia-smi", why="it did not answer within 2 seconds"),),
    ),
    title="a desktop",
    source="https://example.org/report",
    packages={"torch": "2.7.1"},
    says=("HIP error: no kernel image",),
)


def test_recording_is_read_back_as_it_was_written() -> None:
    assert from_json(json.loads(json.dumps(to_json(FULL))), "x.json") == FULL


def test_answer_of_detect_is_a_recording() -> None:
    assert from_json({"ok": True, "data": to_json(FULL)}, "x.json") == FULL


def test_ids_are_read_as_windows_shows_them() -> None:
    device = {"vendor": "0x10DE", "device": "73DF", "revision": "C1"}
    read = from_json({"patchlock_host": 1, "host": {"os": "windows", "machine": "amd64", "devices": [device]}}, "here")
    assert [(one.vendor, one.device, one.revision) for one in read.host.devices] == [("10de", "73df", "c1")]


def test_what_is_empty_is_not_written() -> None:
    written = to_json(Recording(host=Host(os="linux", machine="x86_64")))
    assert written == {"patchlock_host": 1, "host": {"os": "linux", "machine": "x86_64"}}


@pytest.mark.parametrize(
    ("data", "mistakes"),
    [
        pytest.param([], (), id="no table"),
        pytest.param({"host": {}}, (), id="no format"),
        pytest.param({"patchlock_host": 2, "host": {}}, (), id="newer format"),
        pytest.param({"patchlock_host": 1}, ("host is missing",), id="no host"),
        pytest.param(
            {"patchlock_host": 1, "host": {"os": "linux", "machin": "x", "memory": "4 GB"}},
            (
                'host.machin is not known; did you mean "machine"?',
                "host.memory must be a whole number",
                "host.machine is missing",
            ),
            id="every mistake",
        ),
        pytest.param(
            {"patchlock_host": 1, "host": {"os": "linux", "machine": "x", "devices": [{"device": "7550"}, 3]}},
            ("host.devices[0].vendor is missing", "host.devices[1] must be a table"),
            id="inside a list",
        ),
        pytest.param(
            {"patchlock_host": 1, "host": {"os": "linux", "machine": "x", "is_wsl": 1, "groups": [1]}},
            ("host.is_wsl must be true or false", "host.groups must be a list of texts"),
            id="kinds of values",
        ),
    ],
)
def test_wrong_file_is_told_with_every_mistake(data: object, mistakes: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        from_json(data, "x.json")
    assert caught.value.where == "x.json"
    assert caught.value.evidence == mistakes
