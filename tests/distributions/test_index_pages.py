"""What an index says: pages in both forms, and the METADATA beside a wheel."""

from __future__ import annotations

import json

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.distributions._index_pages import Listed, read, requires
from patchlock.model.errors import IndexAnswerError

SHA256, OTHER = "a" * 64, "b" * 64
ADDRESS = "https://index.test/simple/torch/"
FILE = "torch-2.7.0+cu128-cp311-cp311-win_amd64.whl"
QUOTED = FILE.replace("+", "%2B")


def _html(link: str, head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body><h1>Links for torch</h1>{link}</body></html>".encode()


def _json(**file: object) -> bytes:
    whole = {"filename": FILE, "url": QUOTED, "hashes": {"sha256": SHA256}, **file}
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "torch", "files": [whole]}).encode()


def _one(**values: object) -> Listed:
    plain: dict[str, object] = {
        "filename": FILE,
        "url": f"{ADDRESS}{QUOTED}",
        "sha256": SHA256,
        "uploaded": "",
        "has_metadata": False,
        "metadata_sha256": None,
        "is_yanked": False,
    }
    return Listed(**(plain | values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}">x</a>'), _one(), id="html"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256.upper()}">x</a>'), _one(), id="html-upper-case"),
        pytest.param(_html(f'<A HREF="{QUOTED}#egg=x&amp;sha256={SHA256}">x</A>'), _one(), id="html-fragment-of-two"),
        pytest.param(_html(f'<a href="/whl/cu128/{QUOTED}#sha256={SHA256}">x</a>'), _one(url=f"https://index.test/whl/cu128/{QUOTED}"), id="html-from-the-root"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}">x</a>', '<base href="https://files.test/">'), _one(url=f"https://files.test/{QUOTED}"), id="html-base"),
        pytest.param(_html(f'<a href="{QUOTED}">x</a>'), _one(sha256=None), id="html-no-hash"),
        pytest.param(_html(f'<a href="{QUOTED}#md5=d41d8cd98f00b204e9800998ecf8427e">x</a>'), _one(sha256=None), id="html-md5"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256[1:]}">x</a>'), _one(sha256=None), id="html-short-hash"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-core-metadata="sha256={OTHER}">x</a>'), _one(has_metadata=True, metadata_sha256=OTHER), id="html-metadata"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-dist-info-metadata="true">x</a>'), _one(has_metadata=True), id="html-metadata-old-name"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-dist-info-metadata="false">x</a>'), _one(), id="html-metadata-denied"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-yanked>x</a>'), _one(is_yanked=True), id="html-yanked"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-upload-time="2025-04-23T14:00:00Z">x</a>'), _one(uploaded="2025-04-23T14:00:00Z"), id="html-time"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-upload-time="2025-04-23">x</a>'), _one(), id="html-time-without-zone"),
        pytest.param(_html(f'<a href="{QUOTED}#sha256={SHA256}" data-upload-time="yesterday">x</a>'), _one(), id="html-no-time"),
        pytest.param(_json(), _one(), id="json"),
        pytest.param(_json(hashes={}), _one(sha256=None), id="json-no-hash"),
        pytest.param(_json(**{"core-metadata": {"sha256": OTHER}}), _one(has_metadata=True, metadata_sha256=OTHER), id="json-metadata"),
        pytest.param(_json(**{"dist-info-metadata": True}), _one(has_metadata=True), id="json-metadata-old-name"),
        pytest.param(_json(yanked="it was bad"), _one(is_yanked=True), id="json-yanked"),
        pytest.param(_json(yanked=False), _one(), id="json-not-yanked"),
        pytest.param(_json(**{"upload-time": "2025-04-23T14:00:00.1Z"}), _one(uploaded="2025-04-23T14:00:00.1Z"), id="json-time"),
        pytest.param(_json(url=f"https://files.test/{QUOTED}#sha256={OTHER}"), _one(url=f"https://files.test/{QUOTED}"), id="json-absolute"),
    ],
)  # fmt: skip
def test_file_of_a_page_is_read(page: bytes, expected: Listed) -> None:
    assert read(page, "", ADDRESS) == (expected,)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(_html("<p>Please log in</p>"), id="page-of-a-proxy"),
        pytest.param(_html('<a href="/login">log in</a>'), id="link-to-no-file"),
        pytest.param(_html(f'<a href="{QUOTED}">x</a>', '<meta name="pypi:repository-version" content="2.0">'), id="html-of-version-2"),
        pytest.param(b'{"files": [', id="cut-json"),
        pytest.param(b'{"error": "try later"}', id="other-json"),
        pytest.param(b'{"meta": {"api-version": "1.0"}, "files": []}', id="json-without-files"),
        pytest.param(b'{"meta": {"api-version": "1.0"}, "files": [7]}', id="json-of-numbers"),
        pytest.param(_json().replace(b'"1.1"', b'"2.0"'), id="json-of-version-2"),
        pytest.param(b"{" * 100_000, id="deep-json"),
        pytest.param(b"\xff\xfe\x00", id="no-text"),
    ],
)  # fmt: skip
def test_what_is_no_page_is_said(page: bytes) -> None:
    with pytest.raises(IndexAnswerError) as caught:
        read(page, "text/html", ADDRESS)
    assert str(caught.value) == (
        f"the server answers, but not with the page of an index: it lists no file ({ADDRESS}); correct `url` or "
        "`distributions` in the index's file, or try again later; a proxy may have answered"
    )


def _requires(metadata: bytes) -> tuple[Requirement, ...]:
    return requires(metadata, canonicalize_name("torch"), Version("2.7.0+cu128"), "https://index.test/x.metadata")


HEAD = b"Metadata-Version: 2.1\nName: torch\nVersion: 2.7.0+cu128\n"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(HEAD, [], id="none"),
        pytest.param(HEAD + b"Requires-Dist: sympy (>=1.13)\nRequires-Dist: filelock\n", ["filelock", "sympy>=1.13"], id="sorted-old-form"),
        pytest.param(HEAD + b"Requires-Dist: filelock\r\n\r\n", ["filelock"], id="carriage-returns"),
        pytest.param(HEAD + b'Requires-Dist: optree>=0.13; extra == "optree"\n', ['optree>=0.13; extra == "optree"'], id="extra"),
        pytest.param(HEAD + b"\nRequires-Dist: of the description\n", [], id="description"),
        pytest.param(HEAD.replace(b"+cu128", b"") + b"Requires-Dist: filelock\n", ["filelock"], id="no-local-version-inside"),
    ],
)  # fmt: skip
def test_requirements_of_metadata(metadata: bytes, expected: list[str]) -> None:
    assert [str(requirement) for requirement in _requires(metadata)] == expected


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(b"<html>not found</html>", id="page"),
        pytest.param(HEAD.replace(b"torch", b"torchvision"), id="other-name"),
        pytest.param(HEAD.replace(b"2.7.0", b"2.7.1"), id="other-version"),
        pytest.param(HEAD.replace(b"2.7.0+cu128", b"newest"), id="no-version"),
    ],
)
def test_metadata_of_something_else_is_refused(metadata: bytes) -> None:
    with pytest.raises(IndexAnswerError, match=r"^the server gives something else than the METADATA of torch 2\.7\.0"):
        _requires(metadata)


def test_requirement_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(IndexAnswerError, match="has a requirement that cannot be read: Expected"):
        _requires(HEAD + b"Requires-Dist: file lock\n")
