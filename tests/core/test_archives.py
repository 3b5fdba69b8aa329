"""Archives are unpacked whole or not at all, and only below their folder; each mean one is built on the spot."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from patchlock.core import archive_names, archives
from patchlock.core.archives import Limits
from patchlock.model.errors import ArchiveError

GOOD = {"zluda/cublas.dll": b"ours", "zluda/trace/cublas.dll": b"traced", "LICENSE": b"free\n"}


def zipped(path: Path, members: dict[str, bytes], **attributes: int) -> Path:
    """Write a zip file; names as they are, `mode` for all of them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.external_attr = attributes.get("mode", stat.S_IFREG | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


def tarred(path: Path, members: dict[str, bytes], kind: bytes = tarfile.REGTYPE, link: str = "") -> Path:
    """Write a tar.gz file; names as they are."""
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            info.size = len(data) if kind == tarfile.REGTYPE else 0
            info.mode = 0o755
            archive.addfile(info, io.BytesIO(data))
    return path


MAKERS = [pytest.param(zipped, "a.zip", id="zip"), pytest.param(tarred, "a.tar.gz", id="tar.gz")]
Maker = Callable[[Path, dict[str, bytes]], Path]


def refusal(archive: Path, limits: Limits | None = None) -> ArchiveError:
    """Unpack, and give what was said; nothing may be left."""
    folder = archive.parent / "out" / "here"
    with pytest.raises(ArchiveError) as caught:
        archives.unpack(archive, folder, limits=limits)
    assert list(folder.parent.iterdir()) == []
    return caught.value


@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_everything_is_unpacked_as_it_is_called(make: Maker, name: str, tmp_path: Path) -> None:
    archive = make(tmp_path / name, GOOD)
    assert archives.unpack(archive, tmp_path / "out") == tuple(sorted(GOOD))
    assert {p: (tmp_path / "out" / p).read_bytes() for p in GOOD} == GOOD
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_only_what_is_wanted_is_unpacked_under_the_names_it_shall_have(make: Maker, name: str, tmp_path: Path) -> None:
    archive = make(tmp_path / name, GOOD)
    pick = {"cublas.dll": ("cublas.dll", "cublas64_11.dll"), "zluda/trace/cublas.dll": ("trace.dll",)}
    assert archives.unpack(archive, tmp_path / "out", pick=pick) == ("cublas.dll", "cublas64_11.dll", "trace.dll")
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == {
        "cublas.dll": b"ours",
        "cublas64_11.dll": b"ours",
        "trace.dll": b"traced",
    }
    with pytest.raises(ArchiveError) as caught:
        archives.unpack(archive, tmp_path / "other", pick={"cudnn.dll": ("cudnn64_9.dll",)})
    assert caught.value.evidence == ("it has no cudnn.dll",)
    assert not (tmp_path / "other").exists()


NAMES = [
    pytest.param("../evil", "leaves the folder", id="parent"),
    pytest.param("a/../../evil", "leaves the folder", id="parent-inside"),
    pytest.param("/etc/evil", "is an absolute path", id="absolute"),
    pytest.param("C:/evil", "is an absolute path", id="drive"),
    pytest.param("C:evil", "is an absolute path", id="drive-relative"),
    pytest.param("\\\\host\\share", "is an absolute path", id="unc"),
    pytest.param("a\\..\\..\\evil", "has a backslash in its name", id="backslash"),
    pytest.param("cublas.dll:evil", "names a stream or a drive (`:`)", id="stream"),
    pytest.param("a/NUL", "has the name of a Windows device", id="device"),
    pytest.param("Com1.tar.gz", "has the name of a Windows device", id="device-extension"),
    pytest.param("aux .txt", "has the name of a Windows device", id="device-space"),
    pytest.param("lpt²", "has the name of a Windows device", id="device-superscript"),
    pytest.param("evil.dll.", "has a part that ends with a dot or a space, which Windows drops", id="dot"),
    pytest.param("evil /x", "has a part that ends with a dot or a space, which Windows drops", id="space"),
    pytest.param("...", "has a part that ends with a dot or a space, which Windows drops", id="dots"),
    pytest.param("a//b", "has an empty part in its path", id="empty-part"),
    pytest.param("./a", "has an empty part in its path", id="here"),
    pytest.param("a\nb", "has control characters or undecodable bytes in its name", id="control"),
    pytest.param("a\x00b", "has control characters or undecodable bytes in its name", id="nul"),
    pytest.param("what?", "has a character that Windows does not allow", id="wildcard"),
    pytest.param("x" * 256, "has a part longer than 255 bytes", id="long"),
    pytest.param("/".join(["d" * 200] * 6), "has a path longer than 1024 bytes", id="long-path"),
    pytest.param("/", "has no name", id="nameless"),
]


@pytest.mark.parametrize(("name", "why"), NAMES)
def test_name_that_is_no_file_below_the_folder(name: str, why: str, tmp_path: Path) -> None:
    assert archive_names.problem(name) == why
    if "\x00" in name or name == "/":
        return
    evidence = refusal(zipped(tmp_path / "a.zip", {**GOOD, name: b"evil"})).evidence
    assert evidence == (f"{name!r} {why}",)
    if name != "./a":
        evidence = refusal(tarred(tmp_path / "a.tar.gz", {**GOOD, name: b"evil"})).evidence
        assert evidence == (f"{name!r} {why}",)


@pytest.mark.parametrize("name", ["a.b", "console/x", "com10", "é/ü.txt", "a b", "..a", ".hidden", "a/b/", "nullable"])
def test_honest_names(name: str) -> None:
    assert archive_names.problem(name) == ""


TWINS = [
    pytest.param(["a", "a"], [], "'a' is there twice", id="twice"),
    pytest.param(["Cublas.dll", "cublas.DLL"], [], "'Cublas.dll' and 'cublas.DLL' are one file", id="case"),
    pytest.param(["\u00e9", "e\u0301"], [], "'é' and 'e\u0301' are one file", id="composed"),
    pytest.param(["straße", "STRASSE"], [], "'straße' and 'STRASSE' are one file", id="sharp-s"),
    pytest.param(["a", "A/b"], [], "'a' is a file and a folder", id="file-and-folder"),
    pytest.param(["a"], ["a/"], "'a' is a file and a folder", id="file-and-named-folder"),
    pytest.param(["Lib/a", "lib/b"], [], "'Lib' and 'lib' are one folder", id="folders"),
]


@pytest.mark.parametrize(("files", "folders", "why"), TWINS)
def test_members_that_would_be_one_file(files: list[str], folders: list[str], why: str) -> None:
    assert archive_names.collisions(files, folders) == (why,)


def test_folders_and_files_of_one_tree_do_not_collide() -> None:
    assert archive_names.collisions(["a/b", "a/c", "d"], ["a/", "a/", "e"]) == ()


def test_duplicate_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    assert refusal(tmp_path / "a.zip").evidence == ("'a' is there twice",)


KINDS = [
    pytest.param(tarfile.SYMTYPE, "is a link to '/etc'", id="symlink"),
    pytest.param(tarfile.LNKTYPE, "is a link to '/etc'", id="hard-link"),
    pytest.param(tarfile.CHRTYPE, "is neither a file nor a folder", id="device"),
    pytest.param(tarfile.FIFOTYPE, "is neither a file nor a folder", id="pipe"),
    pytest.param(tarfile.GNUTYPE_SPARSE, "is neither a file nor a folder", id="sparse"),
]


@pytest.mark.parametrize(("kind", "why"), KINDS)
def test_what_is_no_file_in_a_tar(kind: bytes, why: str, tmp_path: Path) -> None:
    assert refusal(tarred(tmp_path / "a.tgz", {"x": b""}, kind, "/etc")).evidence == (f"'x' {why}",)


@pytest.mark.parametrize(
    ("mode", "why"), [(stat.S_IFLNK | 0o777, "is a link"), (stat.S_IFIFO, "is neither a file nor a folder")]
)
def test_what_is_no_file_in_a_zip(mode: int, why: str, tmp_path: Path) -> None:
    assert refusal(zipped(tmp_path / "a.zip", {"x": b"/etc/passwd"}, mode=mode)).evidence == (f"'x' {why}",)


def test_encrypted_member(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"x": b"secret"})
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    assert refusal(archive).evidence == ("'x' is encrypted",)


BOMBS = [
    pytest.param(Limits(ratio=50, small=1000), "it would become more than 50 times as large", id="ratio"),
    pytest.param(Limits(total=99_999), "its files have more than 99999 bytes", id="total"),
    pytest.param(Limits(members=1), "it has more than 1 members", id="members"),
]


@pytest.mark.parametrize(("limits", "why"), BOMBS)
@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_bomb(make: Maker, name: str, limits: Limits, why: str, tmp_path: Path) -> None:
    assert refusal(make(tmp_path / name, {"a": bytes(60_000), "b": bytes(60_000)}), limits).evidence == (why,)


def test_archives_within_an_archive_stay_closed(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", {"../evil": b"x"}).read_bytes()
    assert archives.unpack(zipped(tmp_path / "a.zip", {"inner.zip": inner}), tmp_path / "out") == ("inner.zip",)
    assert (tmp_path / "out" / "inner.zip").read_bytes() == inner


def test_members_that_share_their_bytes(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"a": os.urandom(3000), "b": os.urandom(3000)})
    data = bytearray(archive.read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    data[second + 20 : second + 24] = struct.pack("<I", 5000)
    archive.write_bytes(data)
    assert refusal(archive).evidence == ("its members overlap",)


def test_tar_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 20 * 1024**2
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(info.tobuf() + bytes(30 * 1024**2)))
    assert refusal(tmp_path / "a.tar.gz").what.endswith(f"can be read: one of its headers has {20 * 1024**2} bytes")


def test_damaged_archives_are_told(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "a.tar.gz", GOOD).read_bytes()
    plain = bytearray(gzip.decompress(whole))
    plain[1024] ^= 0xFF  # the header of the second member, which tarfile would take for the end
    (tmp_path / "header.tar.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    data = bytearray(zipped(tmp_path / "a.zip", {"a": b"x" * 100}).read_bytes())
    data[data.index(b"PK\x01\x02") + 16] ^= 0xFF  # the checksum
    (tmp_path / "sum.zip").write_bytes(data)
    (tmp_path / "page.zip").write_bytes(b"<!DOCTYPE html>")
    for name in ("header.tar.gz", "cut.tar.gz", "sum.zip", "page.zip"):
        assert refusal(tmp_path / name).what.startswith(f"{name} is not an archive that can be read: ")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_rare_compressions(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("x", b"x" * 100)
    assert refusal(tmp_path / "a.zip").evidence == ("'x' is neither stored nor deflated",)


@pytest.mark.parametrize(
    "records",
    [{"GNU.sparse.map": "0,1,x"}, {"GNU.sparse.size": "x"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}],
)
def test_senseless_records_of_a_tar(records: dict[str, str], tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.size, info.pax_headers = 600, records
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(info, io.BytesIO(b"h" * 600))
    assert refusal(tmp_path / "a.tar.gz").what.startswith("a.tar.gz is not an archive that can be read: ")


def test_long_name_of_a_long_name_and_so_on(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    member = header.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(512, b"\0")
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(member * 3000))
    assert refusal(tmp_path / "a.tar.gz").what.startswith(
        "a.tar.gz is not an archive that can be read: maximum recursion"
    )


def test_member_that_starts_before_its_zip(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "a.zip", {"a": b"x" * 100}).read_bytes())
    end = data.index(b"PK\x05\x06")
    data[end + 16 : end + 20] = struct.pack("<I", 5000)  # where its table of contents starts
    (tmp_path / "a.zip").write_bytes(data)
    assert refusal(tmp_path / "a.zip").what.startswith("a.zip is not an archive that can be read: ")


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zipped(tmp_path / "a.zip", GOOD)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_write", full)
    with pytest.raises(OSError, match="No space"):
        archives.unpack(archive, tmp_path / "out" / "here")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_a_killed_run_left_is_removed_and_a_finished_folder_is_not_touched(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"a": b"new"})
    (tmp_path / ".out.unpacking").mkdir()
    (tmp_path / ".out.unpacking" / "half").write_bytes(b"x")
    assert archives.unpack(archive, tmp_path / "out") == ("a",)
    assert not (tmp_path / ".out.unpacking").exists()
    (tmp_path / "out" / "a").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        archives.unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "a").read_bytes() == b"mine"


def test_programs_stay_programs_and_nothing_gets_more_rights(tmp_path: Path) -> None:
    archives.unpack(tarred(tmp_path / "a.tgz", {"run": b""}), tmp_path / "tar")
    archives.unpack(zipped(tmp_path / "a.zip", {"run": b""}, mode=stat.S_IFREG | 0o6777), tmp_path / "zip")
    modes = [stat.S_IMODE((tmp_path / kind / "run").stat().st_mode) for kind in ("tar", "zip")]
    assert modes == [0o755, 0o755]


def test_a_name_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.rar").write_bytes(b"Rar!")
    assert refusal(tmp_path / "a.rar").what == "a.rar is neither a zip nor a tar.gz file by its name"


def test_links_are_made_where_they_are_allowed_and_stay_inside(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, link in (("top/deep/link", "../real"), ("top/folder", "deep")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, link
            packed.addfile(info)
        info = tarfile.TarInfo("top/real")
        info.size = 4
        packed.addfile(info, io.BytesIO(b"here"))
    archives.unpack(archive, tmp_path / "out", limits=Limits(links=True), is_portable=False)
    assert (tmp_path / "out" / "top" / "folder" / "link").read_bytes() == b"here"
    with pytest.raises(ArchiveError):
        archives.unpack(archive, tmp_path / "other", is_portable=False)


@pytest.mark.parametrize(
    "links", [{"top/out": "../../x"}, {"top/a": "/etc"}, {"top/a/b/up": "../../..", "top/z": "a/b/up/../.."}]
)
def test_links_that_lead_out_are_refused(tmp_path: Path, links: dict[str, str]) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, link in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, link
            packed.addfile(info)
    with pytest.raises(ArchiveError, match="must not be unpacked"):
        archives.unpack(archive, tmp_path / "here" / "out", limits=Limits(links=True), is_portable=False)
    assert list((tmp_path / "here").iterdir()) == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        info = tarfile.TarInfo("top/door")
        info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path / "victim")
        packed.addfile(info)
        info = tarfile.TarInfo("top/door/file")
        info.size = 1
        packed.addfile(info, io.BytesIO(b"x"))
    with pytest.raises((ArchiveError, OSError)):
        archives.unpack(archive, tmp_path / "here" / "out", limits=Limits(links=True), is_portable=False)
    assert not (tmp_path / "victim").exists()
    assert list((tmp_path / "here").iterdir()) == []
