"""Hash files as RECORD does, and read the digests that real RECORDs have."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading

_CHUNK = 1 << 20
"""Bytes to read at once."""
_of_thread = threading.local()


def in_record(sha256: str) -> str:
    """Write a digest in hex as RECORD has it: urlsafe base64 without padding (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode("ascii")


def compare(path: str, wanted: str) -> tuple[bool, str, int]:
    """Hash a file, and compare it with what RECORD says.

    A digest in hex, in plain base64 or with padding is read as what it means; one of an algorithm that Python does not
    have promises nothing.

    Args:
        path: the file.
        wanted: `<algorithm>=<digest>`.

    Returns:
        Whether it is the file; its sha256 in hex, or "" where another algorithm was asked for and it is the file; and
        its bytes.

    Raises:
        OSError: it cannot be read.
    """
    algorithm, _, digest = wanted.partition("=")
    algorithm = algorithm.lower().replace("-", "")
    if algorithm not in hashlib.algorithms_available or algorithm.startswith("shake"):
        algorithm, digest = "sha256", ""
    found, count = _digest(path, algorithm)
    same = not digest or found in _meanings(digest)
    if same or algorithm == "sha256":
        return same, found.hex() if algorithm == "sha256" else "", count
    return same, _digest(path, "sha256")[0].hex(), count


def _digest(path: str, algorithm: str) -> tuple[bytes, int]:
    buffer = getattr(_of_thread, "buffer", None)
    if buffer is None:
        buffer = _of_thread.buffer = bytearray(_CHUNK)
    view, hashed, count = memoryview(buffer), hashlib.new(algorithm, usedforsecurity=False), 0
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - tens of thousands of them
        while read := file.readinto(buffer):
            hashed.update(view[:read])
            count += read
    return hashed.digest(), count


def _meanings(digest: str) -> tuple[bytes, ...]:
    """Give the bytes that a digest may stand for."""
    text = digest.strip().rstrip("=")
    found = []
    if len(text) in {40, 64, 96, 128}:
        with contextlib.suppress(ValueError):
            found.append(bytes.fromhex(text))
    plain = text.replace("+", "-").replace("/", "_")
    with contextlib.suppress(ValueError):
        found.append(base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4)))
    return tuple(found)
