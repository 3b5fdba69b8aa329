"""A recorded index has sdists too, where a vendor gives nothing else: read, written, and locked like its wheels."""

from __future__ import annotations

import tomllib

import pytest
from packaging.version import Version

from patchlock.catalogue import _indexes
from patchlock.catalogue.table_reader import Report, Table
from patchlock.distributions import recorded_index
from patchlock.model.recorded_index import RecordedIndex

HEAD = '[index]\nurl = "https://vendor.test/rocm"\n'
SDIST = f'[[sdist]]\nfilename = "rocm-7.2.1.tar.gz"\nsha256 = "{"a" * 64}"\nsource = "somebody\'s lock"\n'


def _read(text: str) -> tuple[RecordedIndex, list[str]]:
    report = Report(file="rocm.toml", text="")
    found = _indexes.index(Table(tomllib.loads(text), report), "rocm")
    return found, [f"{one.key} {one.what}" for one in report.problems]


def test_sdist_is_read_with_its_address() -> None:
    found, mistakes = _read(HEAD + SDIST)
    (sdist,) = found.sdists
    assert mistakes == []
    assert (sdist.name, sdist.version, sdist.sha256) == ("rocm", Version("7.2.1"), "a" * 64)
    assert sdist.url == "https://vendor.test/rocm/rocm-7.2.1.tar.gz"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("rocm-7.2.1.tar.gz", "rocm-7.2.1-py3-none-any.whl", "is not the name of an sdist", id="wheel"),
        pytest.param("a" * 64, "abc", "sha256", id="short hash"),
        pytest.param("source =", "sources =", "source", id="no source"),
    ],
)
def test_mistake_is_named(old: str, new: str, says: str) -> None:
    _, mistakes = _read(HEAD + SDIST.replace(old, new))
    assert any(says in mistake for mistake in mistakes)


def test_refreshed_record_keeps_its_sdists() -> None:
    text = HEAD + "\n" + SDIST + 'url = "https://elsewhere.test/rocm-7.2.1.tar.gz"\n'
    found, _ = _read(text)
    assert _read(recorded_index.render(found, (), ""))[0].sdists == found.sdists
