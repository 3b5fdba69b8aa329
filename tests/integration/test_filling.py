"""How an environment is filled: nobody is asked where all is here, and what is missing is fetched by its hash."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import miniature
import pytest
from depot import Depot
from miniature import World, this_platform
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.core import disk_space, download, uv
from patchlock.core.disk_space import FileSystem
from patchlock.distributions import wheelhouse
from patchlock.environments import cache_pruning, venv
from patchlock.environments import fill as environments_fill
from patchlock.locks.lock_request import Request, read_lock
from patchlock.model import lockfile
from patchlock.model.errors import (
    CommandFailedError,
    DiskFullError,
    DownloadError,
    HashMismatchError,
    LockFormatError,
    NetworkError,
    PatchlockError,
    WheelsMissingError,
)
from patchlock.model.identities import Sha256

ALPHA, BETA, GAMMA = (f"{name}-py3-none-any.whl" for name in ("alpha-1.0", "beta-1.5", "gamma-2.0"))


class Told:
    """Keeps what a person would be told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.notes: list[str] = []

    def stage(self, _: str) -> contextlib.AbstractContextManager[None]:
        """Run a stage."""
        return contextlib.nullcontext()

    def say(self, text: str) -> None:
        """Keep it."""
        self.said.append(text)

    def transfer(self, done: int, total: int) -> None:
        """Keep it."""
        self.said.append(f"{done} of {total} bytes")

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


Fill = Callable[..., Told]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty environment once; tests take copies."""
    folder = tmp_path_factory.mktemp("empty") / "environment"
    with folder.with_suffix(".held").open("w") as held:
        venv.create(folder, Version(miniature.PYTHON), lock=held.fileno())
    return folder


@pytest.fixture
def fill(locked: World, empty: Path, tmp_path: Path) -> Fill:
    """Give a function that fills a new environment with the lock of the miniature."""
    catalogue = Catalogue(root=locked.catalogue)
    request = Request(
        app=catalogue.app("mini"),
        profile=catalogue.profile("tiny"),
        platform=this_platform(),
        catalogue=catalogue,
        home=tmp_path / "installed",
        cache=tmp_path / "cache",
    )

    def run(meanwhile: Callable[[], None] = lambda: None, told: Told | None = None) -> Told:
        lock, _ = read_lock(request)
        meanwhile()
        folder = request.installation.environments / str(len(list(request.home.glob("*/*/*"))))
        told = told or Told()
        shutil.copytree(empty, folder, symlinks=True)
        with (tmp_path / "held").open("w") as held:
            environments_fill.fill(request, lock, folder, told, held.fileno())
        names = {path.name.partition("-")[0] for path in folder.glob("**/*.dist-info")}
        assert names == {"alpha", "beta", "gamma"}
        return told

    return run


@pytest.fixture
def depot(locked: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Depot]:
    """Give the test a locked app, and an index over HTTP that has its wheels."""
    made = Depot(locked.wheels)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", made.index)
    monkeypatch.setenv("UV_OFFLINE", "0")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    yield made
    made.close()


def _files(depot: Depot) -> list[str]:
    """List the files that were asked for, without what only their sizes and ends were asked for."""
    return sorted(
        path.removeprefix("/files/")
        for method, path, wanted in depot.asked
        if method == "GET" and path.startswith("/files/") and not re.fullmatch(r"bytes=(-|0-0|\d+-\d)\d*", wanted)
    )


def test_missing_files_are_fetched_once_and_then_nobody_is_asked(
    depot: Depot, fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = fill()
    assert told.notes == []
    assert told.said[0] == "3 packages: asking where they are"
    done, total = re.fullmatch(r"(\d+) of (\d+) bytes", [line for line in told.said if "bytes" in line][-1]).groups()  # type: ignore[union-attr]
    assert int(done) == int(total) > 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "cache").glob("wheels/*/*.whl")}
    assert kept == {name: depot.files[name] for name in (ALPHA, BETA, GAMMA)}
    depot.asked.clear()
    fill()
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "another-uv"))
    fill()
    assert depot.asked == []
    assert (
        wheelhouse.unneeded(tmp_path / "cache", cache_pruning.needed(tmp_path / "cache", tmp_path / "installed")) == ()
    )


def test_what_is_made_for_a_lock_counts_as_needed_from_the_start(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[frozenset[Sha256]] = []

    def provide(*_: object, **__: object) -> dict[str, object]:
        seen.append(cache_pruning.needed(tmp_path / "cache", tmp_path / "installed"))
        return {}

    monkeypatch.setattr(environments_fill, "provide", provide)
    fill()
    [path] = (tmp_path / "installed").glob("*/environments/*/lock.txt")
    assert {package.sha256 for package in lockfile.parse(path.read_text(), "x").packages} <= seen[0]


def test_a_lock_that_is_changed_after_it_was_read_is_not_installed(locked: World, fill: Fill, tmp_path: Path) -> None:
    def edit() -> None:
        for path in (locked.catalogue / "lockfiles" / "mini").glob("*.txt"):
            path.write_text(path.read_text().replace("gamma==2.0", "gamma==3.0"))
            miniature.seal(path)

    with pytest.raises(LockFormatError, match="it was changed while it was being installed"):
        fill(edit)
    assert not list((tmp_path / "installed").glob("**/*.dist-info"))


def test_file_with_an_address_of_its_own_is_fetched_from_there(
    depot: Depot, locked: World, fill: Fill, tmp_path: Path
) -> None:
    for path in (locked.catalogue / "lockfiles" / "mini").glob("*.txt"):
        path.write_text(path.read_text().replace("beta==1.5 ", f"beta @ {depot.url(BETA)} "))
        miniature.seal(path)
    fill()
    assert _files(depot) == [ALPHA, BETA, GAMMA]
    assert not list((tmp_path / "installed").glob("**/direct_url.json"))
    depot.asked.clear()
    fill()
    assert depot.asked == []


def test_what_uv_has_is_not_fetched_again(depot: Depot, fill: Fill, tmp_path: Path) -> None:
    for words in (
        ("venv", "-q", "other"),
        ("pip", "install", "-q", "--python", "other", "alpha==1.0", "gamma==2.0", "--no-deps"),
    ):
        uv.run(*words, "--no-config", cwd=tmp_path, installing=True)
    depot.asked.clear()
    fill()
    assert _files(depot) == [BETA]
    depot.asked.clear()
    fill()
    assert depot.asked == []


@pytest.mark.parametrize("warm", [(), (ALPHA,)], ids=["nothing is here", "one is here"])
def test_without_a_network_the_sentence_is_clear(
    depot: Depot, fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: tuple[str, ...]
) -> None:
    for name in warm:
        download.fetch(
            depot.url(name),
            wheelhouse.place(tmp_path / "cache", Sha256(depot.promised[name]), name),
            sha256=Sha256(depot.promised[name]),
        )
    depot.asked.clear()
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(WheelsMissingError) as refused:
        fill()
    missing = [
        f"{name}-py3-none-any.whl"
        for name in ("alpha-1.0", "beta-1.5", "gamma-2.0")
        if not name.startswith(tuple(n[:5] for n in warm))
    ]
    assert str(refused.value) == (
        f"{len(missing)} files of the lock are not on this machine: neither the wheelhouse nor uv's cache has the file "
        f"({tmp_path / 'cache' / 'wheels'}); run the same command without UV_OFFLINE, or put them into a folder "
        "that UV_FIND_LINKS names\n  " + "\n  ".join(missing)
    )
    assert depot.asked == []


def test_only_the_wheel_that_a_folder_lacks_is_named(
    depot: Depot, locked: World, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    (locked.wheels / BETA).unlink()
    monkeypatch.setenv("UV_FIND_LINKS", str(locked.wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(WheelsMissingError, match=r"^beta-1\.5-py3-none-any\.whl is not on this machine: ") as refused:
        fill()
    assert refused.value.evidence == ()
    assert depot.asked == []


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("simple", "the package index answers with something that is not a page of an index ({}/simple/"),
        (
            "files",
            "{}-py3-none-any.whl could not be fetched: the answer is a web page, perhaps the login of this network",
        ),
    ],
    ids=["index", "wheels"],
)
def test_login_page_of_a_network_is_not_taken_for_deleted_files(
    depot: Depot, fill: Fill, kind: str, sentence: str
) -> None:
    depot.wants_login = frozenset({kind})
    with pytest.raises(NetworkError) as refused:
        fill()
    assert re.sub(r"\b(alpha|beta|gamma)-\d\.\d", "{}", str(refused.value).replace(depot.host, "{}")).startswith(
        sentence
    )
    assert "sign in" in refused.value.remedy
    depot.wants_login = frozenset()
    fill()


def test_flipped_bit_is_refused_and_kept_nowhere(depot: Depot, fill: Fill, tmp_path: Path) -> None:
    depot.files[BETA] = depot.files[BETA][:-1] + b"\1"
    with pytest.raises(HashMismatchError, match=f"{BETA} is not the file that was promised, and was removed") as found:
        fill()
    assert found.value.where.startswith(depot.url(BETA))
    assert not list((tmp_path / "cache").glob(f"wheels/*/{BETA}*[!k]"))
    depot.files[BETA] = depot.files[BETA][:-1] + b"\0"
    fill()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="truncated"),
        pytest.param(lambda data: data.replace(b"__version__", b"__versiom__"), id="flipped"),
    ],
)
def test_damaged_file_of_the_wheelhouse_is_fetched_again(
    depot: Depot, fill: Fill, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    fill()
    (kept,) = (tmp_path / "cache").glob(f"wheels/*/{BETA}")
    kept.write_bytes(damage(kept.read_bytes()))
    shutil.rmtree(tmp_path / "uv")
    depot.asked.clear()
    assert fill().notes == [f"damaged in the wheelhouse, and removed: {BETA}"]
    assert kept.read_bytes() == depot.files[BETA]
    assert _files(depot) == [BETA]


def test_damage_in_uvs_cache_is_told_with_a_command_that_mends_it(depot: Depot, fill: Fill, tmp_path: Path) -> None:
    fill()
    for info in (tmp_path / "uv").glob("archive-*/*/beta-1.5.dist-info"):
        shutil.rmtree(info)
    with pytest.raises(
        CommandFailedError, match="what uv's cache has of beta is damaged, and it was not installed"
    ) as e:
        fill()
    command = re.fullmatch(r"run `(.* cache clean beta)` and the same command again", e.value.remedy)
    assert command is not None
    subprocess.run(shlex.split(command[1]), check=True, capture_output=True)
    fill()


def test_other_bytes_in_uvs_cache_are_not_believed(depot: Depot, fill: Fill, tmp_path: Path) -> None:
    """As where an index once lied about a hash and a file, and tells the truth now."""
    right = depot.files[BETA], depot.promised[BETA]
    lie = miniature.wheel(tmp_path / "lie", "beta", "1.5", files={"beta.py": "lie = True\n"}).read_bytes()
    depot.files[BETA], depot.promised[BETA] = lie, hashlib.sha256(lie).hexdigest()
    for words in (("venv", "-q", "other"), ("pip", "install", "-q", "--python", "other", "beta==1.5", "--no-deps")):
        uv.run(*words, "--no-config", cwd=tmp_path, installing=True)
    depot.files[BETA], depot.promised[BETA] = right
    depot.asked.clear()
    fill()
    assert _files(depot) == [ALPHA, BETA, GAMMA]
    modules = [path.read_text() for path in (tmp_path / "installed").glob("**/site-packages/beta.py")]
    assert modules == ['__version__ = "1.5"\n']


@pytest.mark.parametrize(
    ("text", "later"),
    [
        pytest.param('__version__ = "1.5"  # mine\n', 0, id="another size"),
        pytest.param('__version__ = "6.6"\n', 3600, id="the same size, later"),
    ],
)
def test_edit_in_another_environment_does_not_come_through_uvs_cache(
    depot: Depot, fill: Fill, tmp_path: Path, text: str, later: float
) -> None:
    fill()
    (edited,) = (tmp_path / "installed").glob("**/site-packages/beta.py")
    assert edited.stat().st_nlink > 1, "uv links files here"
    with edited.open("r+") as file:
        file.write(text)
    moment = edited.stat().st_mtime + later
    os.utime(edited, (moment, moment))
    depot.asked.clear()
    (note,) = fill().notes
    assert note == (
        "uv's cache has changed files, as an edit in another environment or a power cut leaves them; "
        "unpacked again: beta; "
        f"`{uv.cache_clean_command('beta')}` keeps them from coming back"
    )
    (fresh,) = {*(tmp_path / "installed").glob("**/site-packages/beta.py")} - {edited}
    assert (fresh.read_text(), edited.read_text()) == ('__version__ = "1.5"\n', text)
    assert _files(depot) == [], "the wheel is here"


def test_what_a_power_cut_left_in_uvs_cache_stops_no_install(depot: Depot, fill: Fill, tmp_path: Path) -> None:
    """As ext4 leaves files that were not on the disk yet: there, and empty."""
    fill()
    for path in (tmp_path / "uv").glob("archive-*/*/*"):
        for file in (path / "RECORD", path.parent / "beta.py"):
            if path.name == "beta-1.5.dist-info" and file.exists():
                file.unlink()  # not that of the environment, which is whole
                file.touch()
    depot.asked.clear()
    (note,) = fill().notes
    assert "power cut" in note
    assert "unpacked again: beta;" in note
    modules = {path.read_text() for path in (tmp_path / "installed").glob("**/site-packages/beta.py")}
    assert modules == {'__version__ = "1.5"\n'}
    assert _files(depot) == [], "the wheel is here"


def test_file_that_only_uv_gets_is_left_to_it_and_told(
    depot: Depot, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a password that only uv's keyring knows."""
    real = download.fetch

    def fetch(address: str, target: Path, **options: object) -> Path:
        if BETA in address:
            raise DownloadError(f"{BETA} could not be fetched: the server asks for a password")
        return real(address, target, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(download, "fetch", fetch)
    assert fill().notes == [
        f"uv downloads beta itself, without progress: {BETA} could not be fetched: the server asks for a password"
    ]


def test_file_that_nobody_gets_is_named_with_its_host(depot: Depot, fill: Fill) -> None:
    depot.status[BETA] = 403
    with pytest.raises(DownloadError, match=f"{BETA} could not be fetched: the server does not allow it") as found:
        fill()
    assert found.value.where == depot.url(BETA)


def test_index_that_lost_a_file_is_told(depot: Depot, fill: Fill) -> None:
    del depot.files[BETA]
    told = Told()
    with pytest.raises(DownloadError) as found:
        fill(told=told)
    assert told.notes == [
        "uv downloads 3 packages itself, without progress: the package index does not have files of the lock"
    ]
    assert str(found.value).splitlines()[0] == (
        f"the package index does not have files of the lock ({depot.index}); complete or correct the mirror, or "
        "name an index that has them with UV_DEFAULT_INDEX or a folder with UV_FIND_LINKS; "
        "if they were deleted everywhere, and the catalogue is your own, "
        "regenerate the lock with `patchlock lock`"
    )


# --- room -------------------------------------------------------------------------------------------------------------


def _free(monkeypatch: pytest.MonkeyPatch, look: Callable[[Path], FileSystem]) -> None:
    monkeypatch.setattr(disk_space, "look", look)


def test_nothing_is_fetched_without_room(
    depot: Depot, fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _free(monkeypatch, lambda _: FileSystem(device=1, free=100_000_000))
    with pytest.raises(DiskFullError) as refused:
        fill()
    assert re.fullmatch(
        r"95\.4 MiB of disk are needed, [\d.]+ KiB more than is free; nothing was started", refused.value.what
    )
    assert refused.value.evidence == (
        f"2.6 KiB of wheels to download in {tmp_path / 'cache'}",
        f"9.2 KiB of unpacked packages in uv's cache in {tmp_path / 'uv'}",
        "95.4 MiB that stay free",
    )
    assert _files(depot) == []


def test_copies_need_room_where_uv_cannot_link(
    depot: Depot, fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill()
    depot.asked.clear()
    home = tmp_path / "installed"
    _free(monkeypatch, lambda path: FileSystem(device=int(home in path.parents), free=100_000_000))
    with pytest.raises(DiskFullError) as refused:
        fill()
    assert "or choose another disk with PATCHLOCK_HOME, and" in str(refused.value)
    assert [line.partition(" in /")[0] for line in refused.value.evidence] == [
        "1.2 KiB of copies of packages in the environment",
        "95.4 MiB that stay free",
    ]
    assert depot.asked == []


def test_environment_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "environments" / "one"
    with (tmp_path / "held").open("w") as held, pytest.raises(PatchlockError):
        venv.create(place, str(tmp_path / "no-python"), lock=held.fileno())
    assert not place.parent.exists()
