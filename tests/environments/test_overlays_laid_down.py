"""Archives of overlays: what they may be at first use and ever after; a server on loopback, no environment."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex

from patchlock.catalogue.reader import Catalogue
from patchlock.environments import _trust_on_first_use, overlays, preloads
from patchlock.locks.lock_request import Request
from patchlock.model.errors import ArchiveError, HashMismatchError, NetworkError, OverlayError, PatchlockError
from patchlock.model.identities import Sha256
from patchlock.model.platforms import PLATFORMS

NAME = "z.zip"
PROFILE = """\
[profile]
title = "t"
source = "t"
python = "3.11"
platforms = ["linux-x86_64", "windows-amd64"]
specificity = 0

[[overlay]]
id = "zluda"
why = "w"
source = "https://vendor.example"
license = "MIT"
platforms = ["linux-x86_64"]
before = ["torch"]
url = "{url}"
{trust}
[[overlay.library]]
member = "cublas.dll"
name = "cublas64_11.dll"
"""
APP = """\
[app]
title = "t"
license = "MIT"
source = "t"
python = ">=3.10"
requirements = ["r.txt"]
[upstream]
url = "https://vendor.example/a.git"
branch = "main"
commit = "0000000000000000000000000000000000000000"
[launch]
command = ["x"]
"""


def packed(text: str, name: str = "zluda/cublas.dll") -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


FIRST, LATER = packed("first"), packed("later")
BLIND = 'trust-on-first-use = "its vendor publishes no sha256"'


@pytest.fixture
def vendor() -> Iterator[LoopbackIndex]:
    """Serve an archive."""
    server = LoopbackIndex()
    server.file(NAME, FIRST)
    yield server
    server.close()


@dataclasses.dataclass
class Bench:
    """A request, and where its overlays go."""

    request: Request
    folder: Path
    notes: list[str] = dataclasses.field(default_factory=list)
    made: int = 0

    def put(self, **options: object) -> str:
        """Put the overlay into a fresh environment, and give what its library says."""
        self.made += 1
        environment = self.folder / str(self.made)
        environment.mkdir()
        (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
        request = dataclasses.replace(self.request, **options)  # type: ignore[arg-type]
        overlays.install_overlays(request, environment, lambda _: None, self.notes.append)
        return (environment / "overlays" / "zluda" / "cublas64_11.dll").read_text()

    def refusal(self, **options: object) -> PatchlockError:
        """Fail to put it; nothing may be there."""
        with pytest.raises(PatchlockError) as caught:
            self.put(**options)
        left = self.folder / str(self.made) / "overlays"
        assert not left.exists() or not list(left.iterdir())
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, vendor: LoopbackIndex) -> Bench:
    """Give the test a catalogue of one app and one profile."""
    return open_bench(tmp_path, f"{vendor.url}/{NAME}", BLIND)


def open_bench(folder: Path, url: str, trust: str) -> Bench:
    for path, text in (("profiles/p.toml", PROFILE.format(url=url, trust=trust)), ("patches/a/app.toml", APP)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    catalogue = Catalogue(root=folder)
    return Bench(
        Request(
            app=catalogue.app("a"),
            profile=catalogue.profile("p"),
            platform=PLATFORMS["linux-x86_64"],
            catalogue=catalogue,
            home=folder / "home",
            cache=folder / "cache",
        ),
        folder,
    )


def test_first_use_is_said_and_written_down(bench: Bench, vendor: LoopbackIndex, tmp_path: Path) -> None:
    assert bench.put() == "first"
    (note,) = bench.notes
    assert note == (
        f"z.zip: its vendor publishes no sha256; this first download, sha256 {sha(FIRST)}, is trusted without proof, "
        f"and every later one must be the same ({tmp_path / 'home' / 'trusted.toml'})"
    )
    (entry,) = tomllib.loads((tmp_path / "home" / "trusted.toml").read_text())["file"]
    assert (entry["url"], entry["sha256"], entry["by"]) == (f"{vendor.url}/{NAME}", sha(FIRST), "a@p")
    assert preloads.archives(bench.folder / "1") == {"zluda": sha(FIRST)}


def test_second_use_asks_nobody_and_says_nothing(bench: Bench, vendor: LoopbackIndex) -> None:
    bench.put()
    vendor.asked.clear()
    vendor.file(NAME, LATER)
    assert (bench.put(), len(bench.notes), vendor.asked) == ("first", 1, [])


def test_other_bytes_later_are_refused_until_a_person_accepts_them(
    bench: Bench, vendor: LoopbackIndex, tmp_path: Path
) -> None:
    bench.put()
    vendor.file(NAME, LATER)
    elsewhere = tmp_path / "another cache"
    error = bench.refusal(cache=elsewhere)
    assert isinstance(error, HashMismatchError)
    assert str(error) == (
        f"z.zip is not the file that was trusted at its first use, as {tmp_path / 'home' / 'trusted.toml'} has it "
        f"({vendor.url}/z.zip has sha256 {sha(LATER)}, wanted {sha(FIRST)}); find out at https://vendor.example who "
        "changed it and why; if the new one is right, run `patchlock install a --profile p --accept-changed z.zip`"
    )
    assert bench.put(cache=elsewhere, accept_changed=(NAME,)) == "later"
    assert _trust_on_first_use.known(tmp_path / "home", f"{vendor.url}/{NAME}") == sha(LATER)
    assert bench.put(cache=elsewhere) == "later"
    assert isinstance(bench.refusal(cache=tmp_path / "third", archives=(write(tmp_path, FIRST),)), HashMismatchError)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "own" / NAME
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_of_the_users_asks_nobody_and_is_a_first_use_too(
    bench: Bench, vendor: LoopbackIndex, tmp_path: Path
) -> None:
    assert bench.put(archives=(write(tmp_path, LATER),)) == "later"
    assert f"the file you gave, sha256 {sha(LATER)}, is trusted without proof" in bench.notes[0]
    assert vendor.asked == []
    assert isinstance(bench.refusal(cache=tmp_path / "other"), HashMismatchError)


def test_promised_bytes_are_never_trusted_blindly(vendor: LoopbackIndex, tmp_path: Path) -> None:
    bench = open_bench(tmp_path, f"{vendor.url}/{NAME}", f'sha256 = "{sha(FIRST)}"')
    assert bench.put() == "first"
    assert (bench.notes, _trust_on_first_use.path(tmp_path / "home").exists()) == ([], False)
    vendor.file(NAME, LATER)
    assert isinstance(bench.refusal(cache=tmp_path / "other", accept_changed=(NAME,)), HashMismatchError)
    own = write(tmp_path, LATER)
    error = bench.refusal(archives=(own,))
    assert str(error).startswith(f"z.zip is not the file that p names ({own} has sha256 {sha(LATER)}, wanted ")


def test_damaged_file_in_the_cache_is_fetched_again(bench: Bench, tmp_path: Path) -> None:
    bench.put()
    (tmp_path / "cache" / "overlays" / sha(FIRST)[:16] / NAME).write_bytes(b"damaged")
    assert bench.put() == "first"


def test_archive_that_lacks_a_library_is_not_trusted(bench: Bench, vendor: LoopbackIndex, tmp_path: Path) -> None:
    vendor.file(NAME, packed("x", "zluda/cudnn.dll"))
    error = bench.refusal()
    assert isinstance(error, ArchiveError)
    assert error.evidence == ("it has no cublas.dll",)
    assert not _trust_on_first_use.path(tmp_path / "home").exists()
    assert not list((tmp_path / "cache").rglob(NAME))
    vendor.file(NAME, FIRST)
    assert bench.put() == "first"


def test_what_a_killed_run_left_is_not_mixed_in_and_goes(bench: Bench, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "overlays" / "incoming-x" / f"{NAME}.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"other bytes")
    assert bench.put() == "first"
    assert {path.name for path in (tmp_path / "cache" / "overlays").iterdir()} == {"lock", sha(FIRST)[:16]}


def test_silent_vendor_leaves_nothing(
    bench: Bench, vendor: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = overlays.download.fetch_unproved
    monkeypatch.setattr(fetch, "__kwdefaults__", {**(fetch.__kwdefaults__ or {}), "pause": lambda _: None})
    vendor.close()
    assert isinstance(bench.refusal(), NetworkError)
    assert [path.name for path in (tmp_path / "cache" / "overlays").iterdir()] == ["lock"]


def test_other_platforms_have_no_overlay(bench: Bench, vendor: LoopbackIndex) -> None:
    request = dataclasses.replace(bench.request, platform=PLATFORMS["windows-amd64"])
    overlays.require_possible(request)
    overlays.install_overlays(request, bench.folder, lambda _: None, bench.notes.append)
    assert (vendor.asked, bench.notes, (bench.folder / "overlays").exists()) == ([], [], False)


# --- what was trusted -------------------------------------------------------------------------------------------------

ONE, TWO = Sha256("1" * 64), Sha256("2" * 64)


def test_trust_is_for_one_address_and_survives(tmp_path: Path) -> None:
    _trust_on_first_use.record(tmp_path, 'https://a/"x".zip', ONE, "a@p")
    _trust_on_first_use.record(tmp_path, "https://b/x.zip", TWO, "a@p")
    before = _trust_on_first_use.path(tmp_path).read_bytes()
    _trust_on_first_use.record(tmp_path, "https://b/x.zip", TWO, "other@p")
    assert _trust_on_first_use.path(tmp_path).read_bytes() == before
    known = [
        _trust_on_first_use.known(tmp_path, url) for url in ('https://a/"x".zip', "https://b/x.zip", "https://c/x.zip")
    ]
    assert known == [ONE, TWO, None]


def test_somebody_who_was_quicker_is_not_overruled(tmp_path: Path) -> None:
    _trust_on_first_use.record(tmp_path, "https://a/x.zip", ONE, "a@p")
    with pytest.raises(OverlayError, match="another install has just trusted other bytes"):
        _trust_on_first_use.record(tmp_path, "https://a/x.zip", TWO, "a@p")
    assert _trust_on_first_use.known(tmp_path, "https://a/x.zip") == ONE


@pytest.mark.parametrize("text", ["[[file]]\nurl = 1", "[[file]", '[[file]]\nurl="x"\nsha256="ab"\nfirst=""\nby=""'])
def test_damaged_list_trusts_nothing(text: str, tmp_path: Path) -> None:
    _trust_on_first_use.path(tmp_path).write_text(text)
    with pytest.raises(OverlayError, match="the list of trusted downloads is damaged"):
        _trust_on_first_use.known(tmp_path, "https://a/x.zip")
