"""Observe a Mac: its system, memory and room; its graphics are for nothing that patchlock installs today."""

from __future__ import annotations

import dataclasses
import os
import platform
from pathlib import Path

from patchlock.core import disk_space
from patchlock.hardware import _allow_list, _host_variables
from patchlock.model.hosts import Host


def probe(seen: Host, installations: Path | None) -> Host:
    """Observe a Mac.

    Args:
        seen: what `probes.basic` says.
        installations: where installations lie, or will; None: the home folder.
    """
    host = dataclasses.replace(
        seen,
        release=platform.release(),
        distribution=f"macos {platform.mac_ver()[0]}".strip(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk=disk_space.look(installations or Path.home()).free,
        variables=_host_variables.chosen(os.environ),
    )
    return _allow_list.told(host, os.environ.get("HOME", ""), os.environ.get("USER", ""))
