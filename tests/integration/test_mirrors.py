"""One lock, many places: an index of files (all other tests), a wheelhouse without a network, a server below a path with a password."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import Patchlock
from indexes import serving
from miniature import World, wheel
from packaging.version import Version
from sdists import ask, made, maker, offer, sdist

from patchlock.core import download, http_ranges
from patchlock.distributions import file_locations
from patchlock.locks import relock
from patchlock.locks.lock_request import Request
from patchlock.locks.relock import Kept
from patchlock.model.errors import HashMismatchError, NetworkError

NEEDS = b"alpha==9.0\nbeta\ndelta\n"
RULES = """\
[[build]]
names = ["delta"]
why = "x"
source = "tests"
[[metadata]]
name = "delta"
version = "1.0"
requires = []
build = ["maker"]
why = "x"
source = "tests"
"""


@pytest.fixture
def asked(world: World, tmp_path: Path) -> Request:
    """The request for a lock with wheels, an sdist, and what builds it; all files lie in one folder."""
    offer(world, maker(world.wheels), sdist(world.wheels, "delta", "1.0", made("delta")))
    return ask(world, NEEDS, tmp_path, RULES)


def _written(request: Request) -> dict[str, bytes]:
    relock.write(request, relock.resolve(request, Kept()))
    folder = request.catalogue.root / "lockfiles" / "mini"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _served(world: World, monkeypatch: pytest.MonkeyPatch, address: str, cache: Path) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    monkeypatch.setenv("UV_OFFLINE", "0")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))


def test_lock_is_the_same_whichever_index_it_was_made_with(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    first = _written(asked)
    assert sorted(first) == ["tiny.build.txt", "tiny.txt"]
    shutil.rmtree(world.catalogue / "lockfiles" / "mini")
    with serving(pages, world.wheels, prefix="/root/pypi/+mirror", user="anna", password="s3cret") as address:
        _served(world, monkeypatch, address, tmp_path / "cold")
        assert _written(asked) == first
    assert all(b"127.0.0.1" not in data and b"s3cret" not in data for data in first.values())


def test_wheels_that_nobody_could_look_into_are_told_once(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two wheels that write one file pass then, and whoever locks has to know that."""
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    clause = (
        "3 wheels could not be read, so nobody knows whether they overwrite files of others: {} (alpha, beta, gamma)"
    )
    with serving(pages, world.wheels, prefix="/pypi") as address:
        _served(world, monkeypatch, address, tmp_path / "cold")
        monkeypatch.setattr(http_ranges, "SMALL", 0)  # each of them counts as a large one
        online = relock.resolve(asked, Kept())
        monkeypatch.setenv("UV_OFFLINE", "1")
        offline = relock.resolve(asked, Kept())
    assert online.notices == (clause.format("127.0.0.1: the server gives no parts of files"),)
    assert offline.notices == (clause.format("the network is switched off"),)


@pytest.mark.parametrize("place", ["wheelhouse", "server", "links"])
def test_one_lock_is_installed_from_anywhere(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    _written(asked)
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    house = tmp_path / "house"
    shutil.copytree(world.wheels, house)
    with serving(pages, world.wheels, prefix="/pypi", user="anna", password="s3cret") as address:
        env = {"UV_CACHE_DIR": str(tmp_path / "cold")}
        if place == "server":
            env |= {"UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0"}
        else:
            pages.rename(tmp_path / "no-index")
            links = {"wheelhouse": str(house), "links": address.removesuffix("simple") + "files/"}[place]
            env |= {"UV_FIND_LINKS": links, "UV_DEFAULT_INDEX": (tmp_path / "nothing").as_uri()}
            env |= {"UV_OFFLINE": "0"} if place == "links" else {"UV_NO_INDEX": "1"}
            (tmp_path / "nothing").mkdir()
        done = patchlock("install", "mini", env=env)
    assert done.returncode == 0, done.stderr
    assert "s3cret" not in done.stdout + done.stderr


def test_password_that_is_wrong_is_said_without_it(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    with serving(pages, world.wheels, prefix="/pypi", user="anna", password="s3cret") as address:
        _served(world, monkeypatch, address.replace("s3cret", "gu3ss"), tmp_path / "cold")
        with pytest.raises(NetworkError) as caught:
            relock.resolve(asked, Kept())
    assert caught.value.what == "the package index refuses access (401 Unauthorized)"
    assert "gu3ss" not in str(caught.value)


# --- one file, named by its address and sha256 ------------------------------------------------------------------------


@pytest.fixture
def named(world: World, tmp_path: Path) -> Path:
    """A folder with a wheel and an archive of a commit that no index has."""
    folder = tmp_path / "elsewhere"
    wheel(folder, "zeta", "3.0", requires=("beta",))
    made_of = sdist(folder, "eta", "0.0", made("eta", "2.0"))
    made_of.rename(folder / f"{'0' * 40}.tar.gz")
    offer(world, maker(world.wheels))
    return folder


@pytest.mark.parametrize("form", ["{url}#sha256={digest}", "{url} --hash=sha256:{digest}"], ids=["fragment", "option"])
def test_wheel_that_is_named_by_address_and_sha256(
    world: World, named: Path, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    file = named / "zeta-3.0-py3-none-any.whl"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with serving(named, named, prefix="") as address:
        monkeypatch.setenv("UV_OFFLINE", "0")
        url = address.replace("/simple", f"/files/{file.name}")
        line = "zeta @ " + form.format(url=url, digest=digest)
        request = ask(world, f"alpha==9.0\n{line}\n".encode(), tmp_path)
        lines = _written(request)["tiny.txt"].decode().splitlines()
        assert f"zeta @ {url} --hash=sha256:{digest} # requirements.txt:2 · wheel py3-none-any" in lines
        assert any(one.startswith("beta==1.5 ") for one in lines)
        done = patchlock("install", "mini", "--local-addresses")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["{url}#sha256={digest}", "{url} --hash=sha256:{digest}"], ids=["fragment", "option"])
def test_file_that_is_not_the_promised_one_is_not_locked(
    world: World, named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """uv looks at the bytes where the sha256 is an option, and believes a fragment until it installs."""
    found = hashlib.sha256((named / "zeta-3.0-py3-none-any.whl").read_bytes()).hexdigest()
    with serving(named, named, prefix="") as address:
        monkeypatch.setenv("UV_OFFLINE", "0")
        url = address.replace("/simple", "/files/zeta-3.0-py3-none-any.whl")
        line = "zeta @ " + form.format(url=url, digest="ab" * 32)
        request = ask(world, f"alpha==9.0\nbeta\n{line}\n".encode(), tmp_path)
        with pytest.raises(HashMismatchError) as caught:
            relock.resolve(request, Kept())
    assert str(caught.value) == (
        "zeta-3.0-py3-none-any.whl is not the file that the requirements name "
        f"(it has sha256 {found[:12]}…, wanted abababababab…); find out why it changed before you correct the sha256"
    )


def test_archive_of_a_commit_is_a_source_build(
    world: World, named: Path, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = named / f"{'0' * 40}.tar.gz"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with serving(named, named, prefix="") as address:
        monkeypatch.setenv("UV_OFFLINE", "0")
        url = address.replace("/simple", f"/files/{file.name}")
        needs = f"alpha==9.0\nbeta\neta @ {url}#sha256={digest}\n".encode()
        rules = RULES.replace("delta", "eta")
        with pytest.raises(Exception, match="is not a wheel, and eta may not be built"):
            relock.resolve(ask(world, needs, tmp_path), Kept())
        with pytest.raises(Exception, match="eta says only by running") as caught:
            relock.resolve(ask(world, needs, tmp_path, rules.partition("[[metadata]]")[0]), Kept())
        assert 'version = "2.0"' in caught.value.evidence
        request = ask(world, needs, tmp_path, rules.replace('"1.0"', '"2.0"'))
        text = _written(request)["tiny.txt"].decode()
        assert f"\neta @ {url} --hash=sha256:{digest} # requirements.txt:3 · sdist\n" in text
        assert '\n# [versions]\n# eta = "2.0"\n' in text
        done = patchlock("install", "mini", "--local-addresses")
    assert done.returncode == 0, done.stderr


def test_sdist_comes_with_the_password_of_the_index(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    with serving(pages, world.wheels, prefix="/pypi", user="anna", password="s3cret") as address:
        _served(world, monkeypatch, address, tmp_path / "cold")
        found = file_locations.sdist("delta", Version("1.0"))
        assert urlsplit(found.url).password == "s3cret"
        path = download.fetch(found.url, tmp_path / "delta.tar.gz", sha256=found.sha256)
    assert path.read_bytes() == (world.wheels / "delta-1.0.tar.gz").read_bytes()
