"""Vendors' wheels from a mirror: indexes, pages of links and folders that the usual variables name, and no vendor."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Patchlock, Said
from indexes import serving
from loopback import LoopbackIndex
from miniature import World, seal, this_platform

from patchlock.distributions import mirrors, wheelhouse

BETA = "beta-1.5-py3-none-any.whl"
VENDOR = f"https://download.vendor.invalid/whl/cpu/{BETA}"
Install = Callable[..., Said]


@pytest.fixture
def house(locked: World, tmp_path: Path) -> Path:
    """Let the lock name a vendor for beta, which is on no index, and give a folder that has its wheel."""
    path = locked.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    path.write_text(path.read_text().replace("beta==1.5 ", f"beta @ {VENDOR} "))
    seal(path)
    shutil.rmtree(Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta")
    folder = tmp_path / "a house"
    folder.mkdir()
    (locked.wheels / BETA).rename(folder / BETA)
    return folder


@pytest.fixture
def digest(house: Path) -> str:
    """The sha256 of the vendor's wheel."""
    return hashlib.sha256((house / BETA).read_bytes()).hexdigest()


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    """An index on loopback; its address ends in a path."""
    made = LoopbackIndex()
    yield made
    made.close()


@pytest.fixture
def install(house: Path, patchlock: Patchlock, tmp_path: Path) -> Install:
    """Install from a cold cache, with variables, online."""

    def run(**env: str) -> Said:
        return patchlock(
            "install",
            "mini",
            env={"UV_OFFLINE": "0", "UV_HTTP_RETRIES": "0", "UV_CACHE_DIR": str(tmp_path / "cold"), **env},
        )

    return run


def _offer(index: LoopbackIndex, form: str, house: Path, digest: str) -> None:
    """Give the page of beta as an index has it, and the file."""
    page = "/whl/cu128/beta/"
    if form == "json":
        file = {"filename": BETA, "url": f"../files/{BETA}", "hashes": {"sha256": digest}}
        text = json.dumps({"meta": {"api-version": "1.1"}, "name": "beta", "files": [file]})
        index.paths[page] = (200, "application/vnd.pypi.simple.v1+json", text.encode())
    else:
        fragment = f"#sha256={digest}" if form == "html" else ""
        text = f'<!DOCTYPE html><a href="../files/{BETA}{fragment}">{BETA}</a>'
        index.paths[page] = (200, "text/html", text.encode())
    index.file(f"files/{BETA}", (house / BETA).read_bytes())


VARIABLES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


@pytest.mark.parametrize(
    ("variable", "form"),
    [*((variable, "html") for variable in VARIABLES), ("UV_INDEX", "json"), ("UV_INDEX", "html without sha256")],
)
def test_an_index_of_the_machine_serves_a_vendors_wheel(
    index: LoopbackIndex, house: Path, digest: str, install: Install, variable: str, form: str
) -> None:
    _offer(index, form, house, digest)
    done = install(**{variable: f"{index.url}/"})
    assert done.returncode == 0, done.stderr
    assert index.asked.count(f"/whl/cu128/files/{BETA}") >= 1
    assert "vendor.invalid" not in done.stdout + done.stderr


def test_the_default_index_serves_a_vendors_wheel_with_its_password(
    locked: World, house: Path, install: Install, tmp_path: Path
) -> None:
    pages = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    digest = hashlib.sha256((house / BETA).read_bytes()).hexdigest()
    (pages / "beta").mkdir()
    (pages / "beta" / "index.html").write_text(
        f'<a href="{(locked.wheels / BETA).as_uri()}#sha256={digest}">{BETA}</a>'
    )
    shutil.copyfile(house / BETA, locked.wheels / BETA)
    with serving(pages, locked.wheels, prefix="/pypi", user="anna", password="s3cret") as address:
        done = install(UV_DEFAULT_INDEX=address)
    assert done.returncode == 0, done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    written = [path for path in (tmp_path / "installed").rglob("*") if path.suffix in {".toml", ".txt", ".json"}]
    assert written
    assert not [path for path in written if b"s3cret" in path.read_bytes()]


@pytest.mark.parametrize("variable", ["UV_FIND_LINKS", "PIP_FIND_LINKS"])
@pytest.mark.parametrize("form", ["folder", "file address", "page"])
def test_a_share_serves_a_vendors_wheel(
    house: Path, install: Install, variable: str, form: str, tmp_path: Path
) -> None:
    share = house.rename(tmp_path / "house") if variable == "PIP_FIND_LINKS" else house
    place = str(share)
    if form == "page":
        (share / "links.html").write_text(f'<a href="{BETA}">{BETA}</a>')
        place = (share / "links.html").as_uri()
    done = install(**{variable: place if form == "folder" else place if form == "page" else share.as_uri()})
    assert done.returncode == 0, done.stderr


def test_a_share_needs_no_network(locked: World, house: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    env = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cold"), "UV_FIND_LINKS": str(house)}
    done = patchlock("install", "mini", env=env)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "cache" / wheelhouse.FOLDER)
    (house / BETA).unlink()
    done = patchlock("install", "mini", "--reinstall", env=env | {"UV_CACHE_DIR": str(tmp_path / "colder")})
    assert done.returncode == 1
    assert (
        f"error[wheels-missing]: {BETA} is not on this machine: neither the wheelhouse nor uv's cache has the file "
        f"({tmp_path / 'cache' / 'wheels'}); run the same command without UV_OFFLINE, or put it into a folder "
        "that UV_FIND_LINKS names"
    ) in done.stderr.splitlines()


def test_other_bytes_at_a_mirror_are_passed_over(
    index: LoopbackIndex, house: Path, digest: str, install: Install, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / BETA).write_bytes(b"PK, but another file")
    _offer(index, "html", house, digest)
    done = install(UV_FIND_LINKS=str(other), UV_INDEX=f"mine={index.url}")
    assert done.returncode == 0, done.stderr


def test_where_it_was_looked_for_is_said_if_nobody_has_it(
    index: LoopbackIndex, house: Path, install: Install, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / BETA).write_bytes(b"PK, but another file")
    secret = index.url.replace("http://", "http://anna:s3cret@")
    index.paths["/whl/cu128/beta/"] = (200, "text/html", f'<a href="x/{BETA}#sha256={"0" * 64}">x</a>'.encode())
    done = install(UV_FIND_LINKS=f"{empty},{other}", UV_INDEX=secret, PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "error" in line or "looked for" in line]
    assert "or name a mirror that has it with UV_FIND_LINKS or UV_INDEX" in lines[0]
    assert lines[0].startswith("error[network]: ")
    assert [line.strip() for line in lines[1:]] == [
        f"looked for at {empty.as_uri()}: it does not have it",
        f"looked for at {index.url}: it has other bytes under that name",
        f"looked for at {house.parent.as_uri()}/world/index: it does not have it",
        "looked for at http://127.0.0.1:9/simple: the server does not answer",
        f"looked for at {(other / BETA).as_uri()}: {BETA} is not the file that was promised, and the copy of it was removed",
    ]
    assert "s3cret" not in done.stdout + done.stderr


def test_places_are_those_of_the_variables_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "UV_FIND_LINKS": "/srv/a house, wheels",
        "PIP_FIND_LINKS": "https://links.example/all.html",
        "UV_INDEX": "my-own=https://one.example/simple https://two.example/simple/",
        "UV_INDEX_MY_OWN_USERNAME": "anna",
        "UV_INDEX_MY_OWN_PASSWORD": "p@ss",
        "UV_DEFAULT_INDEX": "https://two.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://three.example/simple\n  https://four.example/simple",
    }.items():
        monkeypatch.setenv(name, value)
    assert [(one.address, one.is_index) for one in mirrors.configured(online=True)] == [
        ("file:///srv/a%20house", False),
        ((tmp_path / "wheels").as_uri(), False),
        ("https://links.example/all.html", False),
        ("https://anna:p%40ss@one.example/simple", True),
        ("https://two.example/simple", True),
        ("https://three.example/simple", True),
        ("https://four.example/simple", True),
    ]
    assert [str(one) for one in mirrors.configured(online=True)][3] == "https://one.example/simple"
    assert [one.address for one in mirrors.configured(online=False)] == [
        "file:///srv/a%20house",
        (tmp_path / "wheels").as_uri(),
    ]


def test_without_variables_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert mirrors.configured(online=True) == ()
