"""`index record`: the record is written whole or not at all, and what changed is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Patchlock
from loopback import LoopbackIndex

FILE = "alpha-1.0-py3-none-any.whl"
NEWER = "alpha-1.1-py3-none-any.whl"
SHA256, OTHER = (hashlib.sha256(text).hexdigest() for text in (b"alpha", b"other"))
HEAD = """\
# Why it is there.

[index]
url = "{url}"

[index.keep]
distributions = ["alpha<2"]
pythons = ["3.11"]
platforms = ["linux-x86_64"]
"""
WHOLE = """
[index.whole]
distributions = ["alpha{bound}"]
pythons = ["3.11"]
platforms = ["linux-x86_64"]
"""
WHEEL = """
[[wheel]]
filename = "{file}"
sha256 = "{sha256}"
requires = ["beta>=1"]
uploaded = "2025-01-01T00:00:00Z"
source = "{url}/alpha/"
"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackIndex]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = LoopbackIndex()
    _offer(made, (FILE, SHA256))
    yield made
    made.close()


def _offer(index: LoopbackIndex, *files: tuple[str, str | None]) -> None:
    links = []
    for file, sha256 in files:
        version = file.split("-")[1]
        index.file(f"{file}.metadata", f"Name: alpha\nVersion: {version}\nRequires-Dist: beta>=1\n".encode())
        fragment = f"#sha256={sha256}" if sha256 else ""
        links.append(
            f'<a href="../{file}{fragment}" data-core-metadata="true" data-upload-time="2025-01-01T00:00:00Z">x</a>'
        )
    index.html(*links)


@pytest.fixture
def record(index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "catalogue" / "profiles" / "indexes" / "vendor.toml"
    path.parent.mkdir(parents=True)
    (tmp_path / "catalogue" / "patches").mkdir()
    path.write_text(HEAD.format(url=index.url))
    monkeypatch.setenv("PATCHLOCK_CATALOGUE", str(tmp_path / "catalogue"))
    return path


def _written(index: LoopbackIndex, *files: tuple[str, str]) -> str:
    wheels = "".join(WHEEL.format(file=file, sha256=sha256, url=index.url) for file, sha256 in files)
    return HEAD.format(url=index.url) + WHOLE.format(bound="<2") + wheels


def test_record_is_written_and_stays(index: LoopbackIndex, record: Path, patchlock: Patchlock) -> None:
    done = patchlock("index", "record", "vendor")
    assert done.returncode == 0
    assert done.stdout == (
        f"added  {FILE}\n         2025-01-01T00:00:00Z\nwhole  for alpha<2\n{record}: written, 1 wheels, 1 added\n"
    )
    assert record.read_text() == _written(index, (FILE, SHA256))
    again = patchlock("index", "record", "vendor", "--check")
    assert (again.returncode, again.stdout) == (0, f"{record}: unchanged, 1 wheels\n")


def test_check_writes_nothing(index: LoopbackIndex, record: Path, patchlock: Patchlock) -> None:
    _offer(index, (NEWER, SHA256), (FILE, None))
    before = record.read_text()
    done = patchlock("index", "record", "vendor", "--check", "--json")
    envelope = json.loads(done.stdout)
    assert (done.returncode, envelope["ok"], record.read_text()) == (1, False, before)
    assert envelope["data"] == {
        "file": "profiles/indexes/vendor.toml",
        "state": "would change",
        "wheels": 1,
        "whole": ["alpha!=1.0,<2"],
        "changes": [
            {
                "kind": "refused",
                "filename": FILE,
                "detail": "the index gives no sha256 for it; `--download` fetches it whole",
            },
            {"kind": "added", "filename": NEWER, "detail": "2025-01-01T00:00:00Z"},
        ],
    }


def test_version_that_must_be_left_out_is_one_that_the_record_is_not_whole_for(
    index: LoopbackIndex, record: Path, patchlock: Patchlock
) -> None:
    _offer(index, (NEWER, SHA256), (FILE, None))
    assert patchlock("index", "record", "vendor").returncode == 0
    assert WHOLE.format(bound="!=1.0,<2") in record.read_text()
    _offer(index, (NEWER, SHA256), (FILE, OTHER))
    assert patchlock("index", "record", "vendor").returncode == 0
    assert WHOLE.format(bound="<2") in record.read_text()


def test_changed_hash_is_loud_and_leaves_the_record(index: LoopbackIndex, record: Path, patchlock: Patchlock) -> None:
    before = _written(index, (FILE, OTHER))
    record.write_text(before)
    done = patchlock("index", "record", "vendor")
    assert (done.returncode, record.read_text()) == (1, before)
    assert (
        f"error[record-changed]: {FILE} has other bytes now under the same name, and nothing was written" in done.stderr
    )
    assert f"{FILE}: sha256 {OTHER} → {SHA256}" in done.stderr
    accepted = patchlock("index", "record", "vendor", "--accept-changed", FILE)
    earlier = f'\n[[wheel.earlier]]\nsha256 = "{OTHER}"\nsource = "{index.url}/alpha/"\n'
    assert (accepted.returncode, record.read_text()) == (0, _written(index, (FILE, SHA256)) + earlier)
    assert patchlock("index", "record", "vendor", "--check").returncode == 0


def test_failure_leaves_the_record_and_nothing_beside_it(
    index: LoopbackIndex, record: Path, patchlock: Patchlock
) -> None:
    index.paths["/whl/cu128/alpha/"] = (200, "text/html", b"<html>log in</html>")
    before = record.read_text()
    done = patchlock("index", "record", "vendor")
    assert (done.returncode, record.read_text()) == (1, before)
    assert "error[index-answer]" in done.stderr
    assert [path.name for path in record.parent.iterdir()] == ["vendor.toml"]


def test_unknown_index_gets_the_nearest(record: Path, patchlock: Patchlock) -> None:
    assert record.exists()
    done = patchlock("index", "record", "vendr")
    assert done.returncode == 1
    assert 'error[unknown-index]: there is no recorded index "vendr"; did you mean "vendor"?' in done.stderr
