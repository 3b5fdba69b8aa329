"""The size of a lock is that of the files that come over the network."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.utils import canonicalize_name

from patchlock.catalogue.reader import Catalogue
from patchlock.core import uv
from patchlock.environments import _download_sizes, package_sizes
from patchlock.locks import addresses
from patchlock.model import lockfile
from patchlock.model.identities import Sha256


def test_of_a_patched_wheel_upstreams_is_asked_for() -> None:
    file = ROOT / "lockfiles" / "amphion" / "cuda-linux.txt"
    lock = lockfile.parse(file.read_text(encoding="utf-8"), str(file))
    (patched,) = [one for one in lock.packages if one.original]
    (asked,) = [one for one in package_sizes.downloaded(lock).packages if one.name == patched.name]
    assert patched.original is not None
    assert (asked.version, asked.sha256) == (patched.original.version, patched.original.sha256)
    assert len(package_sizes.downloaded(lock).packages) == len(lock.packages)


def test_packages_whose_server_is_silent_are_named_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ROOT / "lockfiles" / "demo" / "cpu.linux-x86_64.txt"
    lock = lockfile.parse(file.read_text(encoding="utf-8"), str(file))
    answers: dict[str, int] = {one.sha256: 1024 for one in lock.packages if one.name != "numpy"}
    builder = dataclasses.replace(lock.packages[0], name=canonicalize_name("setuptools"), sha256=Sha256("b" * 64))
    monkeypatch.setattr(addresses, "locate", lambda part, *_, **__: {one.name: one for one in part.packages})
    monkeypatch.setattr(_download_sizes, "collect", lambda *_: answers)
    monkeypatch.setattr(uv, "is_online", lambda: True)
    (system,) = (one for one in Catalogue(root=ROOT).profile("cpu").platforms if one.name == "linux-x86_64")
    for silent in (("numpy", "setuptools"), ()):
        found = package_sizes.ask(lock, (builder,), Sha256("a" * 64), system, tmp_path)
        assert found is not None
        assert (found.unknown, found.unnamed) == (len(silent), silent)
        assert package_sizes.kept(Sha256("a" * 64), tmp_path) == found
        answers |= {one.sha256: 1024 for one in (*lock.packages, builder)}
    assert found.bytes == 1024 * (len(lock.packages) + 1)
