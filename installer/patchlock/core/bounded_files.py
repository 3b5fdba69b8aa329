"""Read small files of a machine, or of a recorded one: bounded, never blocking; what cannot be read is a failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from patchlock.model.hosts import Failure

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ESRCH})
"""Nothing is there, or its device has just gone: no failure."""
_LIMIT = 65_536
"""Bytes; what the kernel says in one file is shorter, but for /proc/cpuinfo, whose first processor is enough."""
_MOST = 20
"""Failures that a probe records; a thousand of the same say no more."""


class FileReader:
    """The files below a root, for one probe; what could not be read is collected in `failures`.

    Paths are relative to the root, with slashes: `sys/bus/pci/devices`.
    """

    def __init__(self, root: Path, probe: str) -> None:
        self.root = root
        self.failures: list[Failure] = []
        self._probe = probe

    def text(self, path: str) -> str:
        """Read a file as text without the white space and NULs around it; "" where it is absent or unreadable."""
        try:
            # A pipe of that name would block; so would some devices.
            opened = os.open(self.root / path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                data = os.read(opened, _LIMIT)
            finally:
                os.close(opened)
        except OSError as error:
            self._note(path, error)
            return ""
        return data.decode("utf-8", errors="replace").strip("\0 \t\r\n")

    def names(self, path: str) -> list[str]:
        """Name what a folder has, in order, but for names that are no text; empty where it is absent or unreadable."""
        try:
            return sorted(name for name in os.listdir(self.root / path) if name.isprintable())  # noqa: PTH208
        except OSError as error:
            self._note(path, error)
            return []

    def target(self, path: str) -> str:
        """Name the last part of what a link points to; "" where there is none."""
        try:
            return os.readlink(self.root / path).rpartition("/")[2]  # noqa: PTH115 - as text; it need not exist
        except OSError as error:
            if error.errno != errno.EINVAL:  # no link
                self._note(path, error)
            return ""

    def has(self, path: str) -> bool:
        """Say whether something of that path is there."""
        return os.path.lexists(self.root / path)

    def fail(self, why: str) -> None:
        """Record that the probe could not answer, as a clause."""
        failure = Failure(probe=self._probe, why=why)
        if failure not in self.failures and len(self.failures) < _MOST:
            self.failures.append(failure)

    def _note(self, path: str, error: OSError) -> None:
        if error.errno not in _ABSENT:
            self.fail(f"/{path} cannot be read: {error.strerror or error}")


def number(text: str, base: int = 10) -> int | None:
    """Read a number, None where it is none; `0x` may stand before one of base 16."""
    digits = text.strip().removeprefix("0x") if base == 16 else text.strip()
    allowed = "0123456789abcdefABCDEF" if base == 16 else "0123456789"
    return int(digits, base) if digits and len(digits) <= 20 and all(digit in allowed for digit in digits) else None
