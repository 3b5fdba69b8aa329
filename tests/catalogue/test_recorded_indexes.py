"""The recorded indexes of the catalogue: each is written as a refresh would write it, and a resolver is told enough."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
from conftest import ROOT

from patchlock.catalogue import reader
from patchlock.distributions import recorded_index
from patchlock.distributions._index_pages import Listed
from patchlock.model.recorded_index import RecordedIndex, RecordedWheel

OPENED = reader.find(ROOT)
INDEXES = OPENED.index_names()
CHANNELS = [name for name in INDEXES if name.startswith("pytorch-")]
"""Those that can be asked again; a folder of files at a vendor is no index."""


@functools.cache
def _index(name: str) -> RecordedIndex:
    return OPENED.index(name)


def _of(index: RecordedIndex, *names: str) -> Iterator[RecordedWheel]:
    return (wheel for wheel in index.wheels if wheel.name in names)


@pytest.mark.parametrize("name", INDEXES)
def test_record_is_written_as_a_refresh_would_write_it(name: str) -> None:
    text = (ROOT / "profiles" / "indexes" / f"{name}.toml").read_text(encoding="utf-8")
    assert recorded_index.render(_index(name), _index(name).wheels, recorded_index.comment_of(text)) == text


@pytest.mark.parametrize("name", CHANNELS)
def test_every_wheel_is_one_that_the_record_keeps(name: str) -> None:
    keep = _index(name).keep
    assert keep is not None
    others = [
        wheel.filename
        for wheel in _index(name).wheels
        if not recorded_index.is_kept(
            Listed(
                filename=wheel.filename,
                url=wheel.url,
                sha256=wheel.sha256,
                uploaded="",
                has_metadata=True,
                metadata_sha256=None,
                is_yanked=False,
            ),
            keep,
        )
    ]
    assert others == []


@pytest.mark.parametrize("name", CHANNELS)
def test_address_ends_with_the_file(name: str) -> None:
    channel = name.removeprefix("pytorch-")
    wrong = [
        wheel.url
        for wheel in _index(name).wheels
        if wheel.url.removeprefix(f"https://download.pytorch.org/whl/{channel}/").replace("%2B", "+") != wheel.filename
        and wheel.url != f"https://download.pytorch.org/whl/{wheel.filename}"
    ]
    assert wrong == []


@pytest.mark.parametrize("name", INDEXES)
def test_wheels_of_one_version_require_the_same(name: str) -> None:
    """The resolver is told one list for each version, whichever wheel it takes."""
    seen: dict[tuple[str, str], set[frozenset[str]]] = {}
    for wheel in _index(name).wheels:
        anywhere = frozenset(str(r) for r in wheel.requires if 'platform_system == "Linux"' not in str(r))
        seen.setdefault((wheel.name, str(wheel.version)), set()).add(anywhere)
    assert [version for version, lists in seen.items() if len(lists) > 1] == []


@pytest.mark.parametrize("name", INDEXES)
def test_accelerator_libraries_are_pinned(name: str) -> None:
    """Without a version the resolver would take the newest, which torch was not built with."""
    loose = {
        str(requirement)
        for wheel in _of(_index(name), "torch")
        for requirement in wheel.requires
        if requirement.name.startswith(("nvidia-", "intel-", "onemkl-", "triton", "pytorch-triton", "cuda-toolkit"))
        and not any(one.operator in {"==", "<="} for one in requirement.specifier)
    }
    assert loose == set()


@pytest.mark.parametrize("name", [name for name in INDEXES if name != "pytorch-cpu"])
def test_torch_for_an_accelerator_asks_for_its_libraries_on_linux(name: str) -> None:
    bundled = ("2.1.", "2.5.1")  # torch 2.1 holds its libraries; plain 2.5.1 is a CPU build for aarch64
    without = [
        wheel.filename
        for wheel in _of(_index(name), "torch")
        if "win_amd64" not in wheel.filename
        and not str(wheel.version).startswith(bundled)
        and not any(r.name.startswith(("nvidia-", "pytorch-triton-", "triton-rocm")) for r in wheel.requires)
    ]
    assert without == []


def test_torch_for_the_processor_asks_for_none() -> None:
    assert {r.name for w in _of(_index("pytorch-cpu"), "torch") for r in w.requires if "-cu" in r.name} == set()


@pytest.mark.parametrize("name", INDEXES)
def test_torchvision_and_torchaudio_pin_a_torch_that_is_there(name: str) -> None:
    torches = {wheel.version.public for wheel in _of(_index(name), "torch")}
    for wheel in _of(_index(name), "torchaudio", "torchvision"):
        pins = {str(r.specifier).removeprefix("==") for r in wheel.requires if r.name == "torch"}
        assert pins <= torches, wheel.filename
        assert pins or (wheel.name == "torchaudio" and wheel.version.public == "2.11.0"), wheel.filename


def test_one_name_may_be_several_files_in_different_channels() -> None:
    name = "torchvision-0.24.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    hashes = {w.sha256 for index in INDEXES for w in _index(index).wheels if w.filename == name}
    assert len(hashes) > 1
