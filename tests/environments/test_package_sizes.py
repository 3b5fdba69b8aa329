"""The size of a lock is that of the files that come over the network."""

from __future__ import annotations

from conftest import ROOT

from patchlock.environments import package_sizes
from patchlock.model import lockfile


def test_of_a_patched_wheel_upstreams_is_asked_for() -> None:
    file = ROOT / "lockfiles" / "amphion" / "cuda-linux.txt"
    lock = lockfile.parse(file.read_text(encoding="utf-8"), str(file))
    (patched,) = [one for one in lock.packages if one.original]
    (asked,) = [one for one in package_sizes.downloaded(lock).packages if one.name == patched.name]
    assert patched.original is not None
    assert (asked.version, asked.sha256) == (patched.original.version, patched.original.sha256)
    assert len(package_sizes.downloaded(lock).packages) == len(lock.packages)
