"""Which addresses a distribution on the index names as its own."""

from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name

from patchlock.distributions import project_links


def test_addresses_are_read_from_both_kinds_of_fields() -> None:
    metadata = (
        "Metadata-Version: 2.1\nName: a\nHome-page: https://a.org\nDownload-URL: UNKNOWN\n"
        "Project-URL: Source, https://github.com/o/a\nProject-URL: Home, https://a.org\n\nHome-page: https://no.org\n"
    )
    assert project_links.addresses(metadata) == ("https://a.org", "https://github.com/o/a")


def test_index_that_is_a_folder_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "file:///nowhere")
    assert project_links.read(canonicalize_name("a")) == ()


@pytest.mark.online
def test_sdist_and_wheel_of_the_real_index_are_read() -> None:
    assert "http://procrastinatingdev.com/clip/" in project_links.read(canonicalize_name("clip"))
    assert "https://github.com/pypa/packaging" in project_links.read(canonicalize_name("packaging"))
