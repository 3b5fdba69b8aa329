"""`core.relative_paths`: what a relative path in a variable means, whichever folder a program is started in."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.core import relative_paths


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("UV_CACHE_DIR", "uv", "{path}/uv"),
        ("SSL_CERT_FILE", "./my ca.pem", "{path}/my ca.pem"),
        ("CURL_CA_BUNDLE", "../ca.pem", "{path}/../ca.pem"),
        ("UV_FIND_LINKS", "wheels", "{address}/wheels"),
        ("UV_FIND_LINKS", "./my wheels, https://x/y", "{address}/my%20wheels, https://x/y"),
        ("PIP_FIND_LINKS", "wheels ./more", "{address}/wheels {address}/more"),
        ("UV_DEFAULT_INDEX", "./simple", "{address}/simple"),
        ("UV_INDEX", "own=./simple https://x/", "own={address}/simple https://x/"),
    ],
)
def test_relative_path_is_of_the_folder_one_stands_in(here: Path, name: str, value: str, meant: str) -> None:
    expected = meant.format(path=here.as_posix(), address=here.as_uri())
    found = relative_paths.resolved({name: value, "PATH": "bin"})
    assert {one: text.replace("\\", "/") for one, text in found.items()} == {name: expected}


@pytest.mark.parametrize(
    "variables",
    [
        {"UV_CACHE_DIR": "", "UV_FIND_LINKS": "", "UV_INDEX": "  "},
        {"UV_CACHE_DIR": "{path}", "SSL_CERT_FILE": "~/ca.pem"},
        {"UV_FIND_LINKS": "{path},https://x/y , file:///z,~/wheels"},
        {"UV_INDEX": "own=https://me:p=x@x/ {path}", "PIP_INDEX_URL": "https://x/?a=b"},
        {"PATH": "bin", "PYTHONPATH": "lib"},
    ],
    ids=["empty", "absolute path", "folders and pages", "indexes", "others"],
)
def test_everything_else_stays_as_it_is(here: Path, variables: dict[str, str]) -> None:
    absolute = str(here).replace(" ", "_")
    assert relative_paths.resolved({name: text.format(path=absolute) for name, text in variables.items()}) == {}
