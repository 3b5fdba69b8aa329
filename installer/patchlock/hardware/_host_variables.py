"""Which variables of the environment belong to an observed machine, and how a person's name stays out of it; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from patchlock.model.host_vocabulary import VARIABLES
from patchlock.model.hosts import Failure, Host
from patchlock.model.redaction import path_masker


def chosen(environ: Mapping[str, str]) -> dict[str, str]:
    """Take the variables that choose devices, libraries and packages; an empty one says something, too."""
    return {name: environ[name] for name in VARIABLES if name in environ}


def rocm_on_path(path: str, separator: str) -> str:
    """Name the folders of PATH that belong to a ROCm or a HIP SDK, in order."""
    return separator.join(folder for folder in path.split(separator) if re.search(r"rocm|[\\/]hip\b", folder.lower()))


def masked(host: Host, home: str, user: str) -> Host:
    """Take a person's home folder and name out of what was observed: both are written `~`.

    Args:
        host: as observed.
        home: folder of the user, as the system writes it; "" for none.
        user: name of the user; only where it is a whole part of a path.
    """
    mask = path_masker(home, user)
    return dataclasses.replace(
        host,
        libraries={name: mask(path) for name, path in host.libraries.items()},
        settings={name: mask(value) for name, value in host.settings.items()},
        variables={name: mask(value) for name, value in host.variables.items()},
        failures=tuple(Failure(probe=one.probe, why=mask(one.why)) for one in host.failures),
    )
