"""Variables of a recorded machine, and that no recording names a person."""

from __future__ import annotations

import pytest

from patchlock.hardware import _host_variables
from patchlock.model.hosts import Failure, Host


def test_chosen_are_those_of_the_vocabulary_and_empty_ones_too() -> None:
    environ = {"HIP_VISIBLE_DEVICES": "", "SECRET": "x", "LD_LIBRARY_PATH": "/a"}
    assert _host_variables.chosen(environ) == {"HIP_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": "/a"}


def test_folders_of_rocm_are_found_on_both_systems() -> None:
    windows = r"C:\Windows;C:\Program Files\AMD\ROCm\6.4\bin;C:\AMD\HIP"
    assert _host_variables.rocm_on_path(windows, ";") == r"C:\Program Files\AMD\ROCm\6.4\bin;C:\AMD\HIP"
    assert _host_variables.rocm_on_path("/usr/bin:/opt/rocm-6.4/bin:/opt/chips", ":") == "/opt/rocm-6.4/bin"


@pytest.mark.parametrize(
    ("home", "user", "text", "expected"),
    [
        ("/home/ann", "ann", "/home/ann/lib:/home/ann:/x", "~/lib:~:/x"),
        ("/home/ann/", "ann", "/home/annabel/lib", "/home/~/lib"),
        ("/home/ann", "ann", "/data/ann/venv", "/data/~/venv"),
        ("/home/ann", "ann", "/opt/banner/ann.so", "/opt/banner/ann.so"),
        ("/root", "root", "/root/venv:/data/root/x", "~/venv:/data/root/x"),
        ("/", "", "/opt/x", "/opt/x"),
        ("", "", "/home/bob/x", "/home/~/x"),
        ("/home/ann", "ann", "/mnt/c/Users/Ann Smith/AppData", "/mnt/c/Users/~/AppData"),
        (r"C:\Users\Ann", "Ann", r"C:\Users\Ann\rocm;c:/users/ann/x;C:\Users\Public", r"~\rocm;~/x;C:\Users\Public"),
        ("/home/linuxbrew", "", "/home/linuxbrew/.linuxbrew/lib", "~/.linuxbrew/lib"),
        ("/home/ann", "ann", "/home/linuxbrew/.linuxbrew/lib", "/home/linuxbrew/.linuxbrew/lib"),
        ("/home/a.b+c", "a.b+c", "/home/a.b+c/x /home/aXb+c", "~/x /home/~"),
        ("/home/ann", "ann", "no \udcff text", "no ? text"),
    ],
)
def test_person_is_taken_out_of_paths(home: str, user: str, text: str, expected: str) -> None:
    host = Host(
        os="linux",
        machine="x",
        variables={"LD_LIBRARY_PATH": text},
        libraries={"libcuda.so.1": text},
        settings={"rocm-on-path": text},
        failures=(Failure(probe="x", why=text),),
    )
    masked = _host_variables.masked(host, home, user)
    assert masked.variables == {"LD_LIBRARY_PATH": expected}
    assert masked.libraries == {"libcuda.so.1": expected}
    assert masked.settings == {"rocm-on-path": expected}
    assert masked.failures == (Failure(probe="x", why=expected),)
