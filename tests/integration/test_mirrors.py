"""One lock, many places: an index of files (all other tests), a wheelhouse without a network, a server below a path with a password."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import Patchlock
from indexes import serving
from miniature import World, wheel
from packaging.version import Version
from sdists import ask, made, maker, offer, sdist

from patchlock.core import download, http_ranges, uv
from patchlock.distributions import file_locations
from patchlock.environments import bundled_files
from patchlock.locks import addresses, relock
from patchlock.locks.lock_request import Request, read_lock
from patchlock.locks.relock import Kept
from patchlock.model.errors import DownloadError, HashMismatchError, NetworkError

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


class Quiet:
    """Tells nobody."""

    def stage(self, _: str) -> contextlib.AbstractContextManager[None]:
        """Run a stage."""
        return contextlib.nullcontext()

    def say(self, _: str) -> None:
        """Do not."""

    def transfer(self, _done: int, _total: int) -> None:
        """Do not."""

    def note(self, _: str) -> None:
        """Do not."""


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


@pytest.mark.parametrize("place", ["wheelhouse", "relative", "server", "links"])
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
            pages_of_links = address.removesuffix("simple") + "files/"
            links = {"wheelhouse": str(house), "relative": "house", "links": pages_of_links}[place]
            env |= {"UV_FIND_LINKS": links, "UV_DEFAULT_INDEX": (tmp_path / "nothing").as_uri()}
            env |= {"UV_OFFLINE": "0"} if place == "links" else {}
            (tmp_path / "nothing").mkdir()
        done = patchlock("install", "mini", env=env)
    assert done.returncode == 0, done.stderr
    assert "s3cret" not in done.stdout + done.stderr


def test_relative_cache_of_uv_is_of_the_folder_one_stands_in(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path
) -> None:
    _written(asked)
    done = patchlock("install", "mini", env={"UV_CACHE_DIR": "cold", "UV_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr
    assert [path.parent for path in tmp_path.rglob("cold")] == [tmp_path]


def test_all_files_that_a_mirror_lacks_are_named_and_found_once_it_has_them(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path
) -> None:
    _written(asked)
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    lost = {path: path.read_text() for path in (pages / name / "index.html" for name in ("alpha", "beta"))}
    for path in lost:
        path.write_text("<!DOCTYPE html>\n")
    with serving(pages, world.wheels, prefix="/pypi", max_age=600) as address:
        env = {"UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0", "UV_CACHE_DIR": str(tmp_path / "cold")}
        failed = patchlock("install", "mini", env=env)
        for path, text in lost.items():
            path.write_text(text)
        done = patchlock("install", "mini", env=env)
    assert failed.returncode == 1
    assert failed.stderr.endswith("regenerate the lock with `patchlock lock`\n  alpha 1.0\n  beta 1.5\n")
    assert done.returncode == 0, done.stderr


def test_another_file_of_a_version_that_came_since_is_found(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(asked)
    lock, _ = read_lock(asked)
    page = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta" / "index.html"
    text = page.read_text()
    page.write_text(re.sub("sha256=[0-9a-f]{64}", "sha256=" + "0" * 64, text))
    with serving(page.parents[1], world.wheels, prefix="/pypi", max_age=600) as address:
        _served(world, monkeypatch, address, tmp_path / "cold")
        with pytest.raises(DownloadError) as caught:
            addresses.locate(lock, asked.platform)
        page.write_text(text)
        found = addresses.locate(lock, asked.platform)
    assert caught.value.evidence == ("beta 1.5: it has beta-1.5-py3-none-any.whl, with another sha256 than the lock",)
    assert {one.name for one in lock.packages} == found.keys()


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda _: b"<!DOCTYPE html><html>"], ids=["cut off", "web page"]
)
def test_damaged_file_of_a_folder_is_named(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    _written(asked)
    file = next(world.wheels.glob("beta-1.5*"))
    file.write_bytes(damage(file.read_bytes()))
    env = {"UV_CACHE_DIR": str(tmp_path / "cold"), "UV_FIND_LINKS": str(world.wheels), "UV_OFFLINE": "0"}
    done = patchlock("install", "mini", env=env | {"UV_DEFAULT_INDEX": (tmp_path / "nothing").as_uri()})
    assert done.returncode == 1
    said = done.stderr.partition("error")[2]
    assert said.startswith("[hash-mismatch]: beta-1.5-py3-none-any.whl is damaged, and nothing of it was installed (")
    assert "replace it where UV_FIND_LINKS or the index has it, and run the same command again\n" in said


def test_folder_counts_offline_though_uv_knows_the_pages_of_an_index(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(asked)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cold"))
    lock = asked.catalogue.root / "lockfiles" / "mini" / "tiny.txt"
    pages = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    with serving(pages, world.wheels, prefix="/simple") as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        monkeypatch.setenv("UV_OFFLINE", "0")
        words = ("pip", "install", "--no-config", "--dry-run", "--target", "x", "-r", str(lock))
        uv.run(*words, cwd=tmp_path, installing=True)
    env = {"UV_CACHE_DIR": str(tmp_path / "cold"), "UV_DEFAULT_INDEX": address, "UV_OFFLINE": "1"}
    done = patchlock("install", "mini", env=env | {"UV_FIND_LINKS": str(world.wheels)})
    assert done.returncode == 0, done.stderr


def test_other_bytes_under_the_name_of_a_wheel_are_named(
    world: World, asked: Request, patchlock: Patchlock, tmp_path: Path
) -> None:
    _written(asked)
    wrong = next(world.wheels.glob("beta-1.5*"))
    shutil.copy(next(world.wheels.glob("alpha-1.0*")), wrong)
    env = {"UV_CACHE_DIR": str(tmp_path / "cold"), "UV_FIND_LINKS": str(world.wheels), "UV_OFFLINE": "1"}
    done = patchlock("install", "mini", env=env | {"UV_DEFAULT_INDEX": (tmp_path / "nothing").as_uri()})
    assert done.returncode == 1
    said = done.stderr.partition("error")[2]
    assert said.startswith("[hash-mismatch]: beta==1.5 is not the file that the lock names, and nothing of it was ")
    assert said.endswith(f"; replace {wrong}, which is another file, and run the same command again\n")


def test_files_of_its_own_lock_that_a_mirror_lacks_are_named_with_their_python(
    world: World, asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "0")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in world.wheels.glob("*.whl")}
    beta = next(digest for name, digest in digests.items() if name.startswith("beta-1.5"))
    lock = tmp_path / "patchlock.txt"
    lock.write_text(
        f"beta==1.5 \\\n    --hash=sha256:{beta}\n"
        f"gamma==2.0 \\\n    --hash=sha256:{'0' * 64}\n"
        f"nowhere==1 ; python_full_version >= '3.13' \\\n    --hash=sha256:{'1' * 64}\n"
    )
    with pytest.raises(DownloadError) as caught:
        bundled_files.tool_files(asked, lock, Quiet())
    pythons = ("3.11", "3.12", "3.13", "3.14")
    assert str(caught.value).startswith(
        f"the package index does not have files of patchlock's own lock ({world.env['UV_DEFAULT_INDEX']}); "
        "complete the mirror, or name an index that has them with UV_DEFAULT_INDEX or a folder with UV_FIND_LINKS\n"
    )
    assert caught.value.evidence == (
        *(f"gamma 2.0, for Python {one}" for one in pythons[:2]),
        *(f"nowhere 1, for Python {one}" for one in pythons[2:]),
    )


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
