"""Variables of a recorded machine."""

from __future__ import annotations

from patchlock.hardware import _host_variables


def test_chosen_are_those_of_the_vocabulary_and_empty_ones_too() -> None:
    environ = {"HIP_VISIBLE_DEVICES": "", "SECRET": "x", "LD_LIBRARY_PATH": "/a"}
    assert _host_variables.chosen(environ) == {"HIP_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": "/a"}


def test_what_a_launcher_sets_says_nothing_of_the_machine() -> None:
    environ = {"PYTHONPATH": "/clone/installer"}
    assert _host_variables.chosen(environ) == environ
    assert _host_variables.chosen(environ | {"PATCHLOCK_BOOTSTRAP": "/clone/install.sh"}) == {}


def test_folders_of_rocm_are_found_on_both_systems() -> None:
    windows = r"C:\Windows;C:\Program Files\AMD\ROCm\6.4\bin;C:\AMD\HIP"
    assert _host_variables.rocm_on_path(windows, ";") == r"C:\Program Files\AMD\ROCm\6.4\bin;C:\AMD\HIP"
    assert _host_variables.rocm_on_path("/usr/bin:/opt/rocm-6.4/bin:/opt/chips", ":") == "/opt/rocm-6.4/bin"
