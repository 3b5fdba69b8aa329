"""Digests of bytes and of named inputs; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from patchlock.model.identities import CommitId, Sha256


def sha256(data: bytes) -> Sha256:
    """Digest bytes."""
    return Sha256(hashlib.sha256(data).hexdigest())


def inputs_digest(parts: Mapping[str, bytes | str]) -> Sha256:
    """Digest named inputs; each name and length is part of it, so that nothing can move between two inputs."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return Sha256(digest.hexdigest())


def generation_id(lock: Sha256, upstream: CommitId, inputs: Sha256) -> str:
    """Name a generation after what it is made of, before it is: 12 hexadecimal digits.

    Args:
        lock: digest of the lock.
        upstream: the commit that is patched.
        inputs: digest of the patches and all else, see `operations.install_plan.inputs_digest`.
    """
    return inputs_digest({"lock": lock, "upstream": upstream, "inputs": inputs})[:12]
