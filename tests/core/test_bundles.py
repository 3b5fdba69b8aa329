"""Bundles: a tar file that says what is in it, and is believed in nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from patchlock.core import bundles
from patchlock.model.errors import BundleError

Members = dict[str, bytes]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    bundles.write(tmp_path / "made" / "a.bundle", {"app": "mini"}, {"a/one": tmp_path / "one", "two": tmp_path / "two"})
    return tmp_path / "made" / "a.bundle"


def _rewrite(bundle: Path, change: Callable[[Members], None]) -> None:
    """Write the members anew, as somebody would who has no patchlock."""
    with tarfile.open(bundle) as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    change(members)
    with tarfile.open(bundle, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def test_equal_pieces_give_equal_bytes_and_say_their_sha256(bundle: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.bundle"
    said = bundles.write(again, {"app": "mini"}, {"two": tmp_path / "two", "a/one": tmp_path / "one"})
    assert again.read_bytes() == bundle.read_bytes()
    assert said == hashlib.sha256(again.read_bytes()).hexdigest()
    assert bundles.require_whole(bundle).about == {"app": "mini"}
    assert sorted(path.name for path in bundle.parent.iterdir()) == ["a.bundle"]


def test_pieces_come_to_their_places(bundle: Path, tmp_path: Path) -> None:
    bundles.extract(bundle, {"a/one": tmp_path / "x" / "y"})
    assert (tmp_path / "x" / "y").read_bytes() == b"one" * 1000
    assert bundles.read_piece(bundle, "two") == b"two" * 1000


def _flip(members: Members) -> None:
    members["two"] = b"T" + members["two"][1:]


def _lose(members: Members) -> None:
    del members["a/one"]


def _add(members: Members) -> None:
    members["three"] = b""


def _escape(members: Members) -> None:
    manifest = json.loads(members["manifest.json"])
    manifest["pieces"]["../x"] = hashlib.sha256(b"").hexdigest()
    members["manifest.json"] = json.dumps(manifest).encode()
    members["../x"] = b""


def _unlisted(members: Members) -> None:
    members["manifest.json"] = b"{}"


def _last(members: Members) -> None:
    members["manifest.json"] = members.pop("manifest.json")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_flip, "two has other bytes than its manifest says"),
        (_lose, "a/one is missing"),
        (_add, "three is one piece too many: its manifest does not list it so"),
        (_escape, "'../x' leaves the folder"),
        (_unlisted, "manifest.json cannot be read: 'pieces'"),
        (_last, "its first member is not manifest.json"),
    ],
    ids=["flipped", "missing", "too many", "outside", "no list", "late manifest"],
)
def test_changed_bundle_is_refused_by_the_name_of_its_piece(
    bundle: Path, change: Callable[[Members], None], why: str
) -> None:
    _rewrite(bundle, change)
    with pytest.raises(BundleError) as caught:
        bundles.require_whole(bundle)
    assert caught.value.what == f"the bundle was not used: {why}; nothing was touched"


@pytest.mark.parametrize("at", [20, 512, 700, 2000, 5000, 5632, 6200])
def test_every_flipped_byte_is_noticed(bundle: Path, at: int) -> None:
    """In a header, in the manifest, in a piece; what pads a member to its block is not of it."""
    data = bytearray(bundle.read_bytes())
    data[at] ^= 0x20
    bundle.write_bytes(data)
    used = bundles.Manifest(about={}, pieces={})
    try:
        used = bundles.require_whole(bundle)
    except BundleError:
        return
    original = {"a/one": hashlib.sha256(b"one" * 1000).hexdigest(), "two": hashlib.sha256(b"two" * 1000).hexdigest()}
    assert used.pieces == original


def test_cut_and_continued_files_are_refused(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    for number, data in enumerate((whole[:4000], whole[:100], b"", whole + b"x" * 600)):
        other = tmp_path / f"{number}.bundle"
        other.write_bytes(data)
        with pytest.raises(BundleError):
            bundles.require_whole(other)


def test_piece_that_changes_after_the_look_is_not_left_behind(bundle: Path, tmp_path: Path) -> None:
    _rewrite(bundle, _flip)
    with pytest.raises(BundleError):
        bundles.extract(bundle, {"two": tmp_path / "place" / "two"})
    assert list((tmp_path / "place").iterdir()) == []


def _header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME], ids=["x", "g", "L"])
@pytest.mark.parametrize("size", [17 * 1024**2, 2**33, 2**62, 2**70])
def test_header_that_claims_gigabytes_is_not_read(bundle: Path, kind: bytes, size: int) -> None:
    bundle.write_bytes(_header(kind, size) + bundle.read_bytes())
    with pytest.raises(BundleError) as caught:
        bundles.require_whole(bundle)
    assert f"it is damaged, or no bundle: one of its headers has {size} bytes" in caught.value.what


def test_headers_within_headers_are_refused(bundle: Path) -> None:
    bundle.write_bytes((_header(tarfile.GNUTYPE_LONGNAME, 2) + b"a".ljust(512, b"\0")) * 3000 + bundle.read_bytes())
    with pytest.raises(BundleError, match="it is damaged, or no bundle"):
        bundles.require_whole(bundle)


def test_manifest_of_brackets_is_refused(bundle: Path) -> None:
    _rewrite(bundle, lambda members: members.update({"manifest.json": b"[" * 200_000}))
    with pytest.raises(BundleError, match=r"manifest\.json cannot be read"):
        bundles.require_whole(bundle)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_listed_piece_that_is_no_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    bundle, empty = tmp_path / "a.bundle", hashlib.sha256(b"").hexdigest()
    manifest = json.dumps({"pieces": {"one": empty, "two": empty}}).encode()
    with tarfile.open(bundle, "w") as archive:
        for name, data, of_kind in (("manifest.json", manifest, tarfile.REGTYPE), ("one", b"", tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.size, info.type = len(data), of_kind
            archive.addfile(info, io.BytesIO(data))
        info = tarfile.TarInfo("two")
        info.type, info.linkname = kind, "one"
        archive.addfile(info)
    with pytest.raises(BundleError, match="two is one piece too many"):
        bundles.require_whole(bundle)


def test_what_a_killed_one_left_is_written_over(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    (bundle.parent / ".a.bundle.new").write_bytes(b"half" * 100_000)
    bundles.write(bundle, {"app": "mini"}, {"a/one": tmp_path / "one", "two": tmp_path / "two"})
    assert bundle.read_bytes() == whole
    assert sorted(path.name for path in bundle.parent.iterdir()) == ["a.bundle"]


def test_piece_that_cannot_be_read_leaves_the_old_bundle(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    with pytest.raises(OSError, match="gone"):
        bundles.write(bundle, {"app": "mini"}, {"a/one": tmp_path / "gone"})
    assert bundle.read_bytes() == whole
    assert sorted(path.name for path in bundle.parent.iterdir()) == ["a.bundle"]
