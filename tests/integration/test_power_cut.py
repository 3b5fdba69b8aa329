"""What a power cut leaves: a receipt vouches for files that are there too, and an empty file stops no command."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from conftest import Patchlock

from patchlock import generations
from patchlock.generations import Receipt
from patchlock.identities import CommitId, Sha256

RECEIPT = Receipt(
    id="0",
    app="mini",
    profile="tiny",
    platform="linux-x86_64",
    python="3.11.7",
    upstream=CommitId("0" * 40),
    applied=CommitId("0" * 40),
    inputs=Sha256("0" * 64),
    lock=Sha256("0" * 64),
    packages=0,
    made="2026-11-21T00:00:00Z",
    sequence=1,
    environment={},
    patched={},
    present={},
    checks=(),
)


def _is_waiting(path: Path) -> bool:
    """Say whether bytes of a file have no place on the disk yet; "delalloc" in the answer of FS_IOC_FIEMAP."""
    import fcntl

    answer = bytearray(struct.pack("=QQIIII", 0, 2**64 - 1, 0, 0, 32, 0) + bytes(32 * 56))
    with path.open("rb") as file:
        fcntl.ioctl(file, 0xC020660B, answer)
    (count,) = struct.unpack_from("=I", answer, 20)
    return any(struct.unpack_from("=I", answer, 32 + i * 56 + 40)[0] & 4 for i in range(count))


@pytest.mark.skipif(sys.platform != "linux", reason="asks how Linux keeps files")
def test_receipt_is_written_when_the_disk_has_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "lib" / "large.so"
    file.parent.mkdir()
    file.write_bytes(b"x" * 4_000_000)
    try:
        waits = _is_waiting(file)
    except OSError as error:
        pytest.skip(f"this file system does not tell where files lie: {error}")
    if not waits:
        pytest.skip("this file system gives every file its place at once")
    generations.write_receipt(tmp_path, RECEIPT)
    assert generations.read_receipt(tmp_path) == RECEIPT
    assert not _is_waiting(file)


@pytest.mark.parametrize("name", ["HEAD", "config"])
@pytest.mark.usefixtures("locked")
def test_cached_upstream_with_an_empty_file_is_fetched_again(patchlock: Patchlock, tmp_path: Path, name: str) -> None:
    assert patchlock("plan", "mini").returncode == 0
    (repository,) = (tmp_path / "cache" / "upstreams").glob("*.git")
    (repository / name).write_bytes(b"")
    done = patchlock("plan", "mini")
    assert done.returncode == 0, done.stderr
    assert (repository / name).stat().st_size > 0
