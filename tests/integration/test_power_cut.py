"""What a power cut leaves: a receipt vouches for files that are there too, and an empty file stops no command."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from receipts import receipt

from patchlock.environments import generations


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
    generations.write_receipt(tmp_path, receipt())
    assert generations.read_receipt(tmp_path) == receipt()
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
