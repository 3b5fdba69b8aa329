"""How a proposed app is called."""

from __future__ import annotations

import re
from pathlib import Path

from patchlock.catalogue.reader import Catalogue
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import UsageError

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def name_of(url: str) -> str:
    """Call an app as its repository is called.

    Raises:
        UsageError: it is no address of a repository.
    """
    if Path(url).expanduser().exists() or not re.match(r"(?:https?|ssh|git)://[^/]+/.|[\w.-]+@[\w.-]+:.", url):
        raise UsageError(
            f'"{url}" is not the address of a repository',
            remedy="write it as https://github.com/OWNER/NAME, and name a clone that you have with --source PATH",
        )
    if without_secrets(url) != url:
        raise UsageError(
            f"the address {url} has a user, a password or a query, which would be written to app.toml",
            remedy="leave it out; git asks its credential helper, or name a clone that you have with --source",
        )
    return "-".join(re.findall(r"[a-z0-9]+", repository_of(url).lower()))


def repository_of(url: str) -> str:
    """Name the repository of an address."""
    return url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]


def require_name(name: str, catalogue: Catalogue) -> None:
    """Refuse a name that cannot be given.

    Raises:
        UsageError: it is no name, or an app has it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f'the name "{name}" must be lower-case words joined by "-"', remedy="give one with --name")
    if name in catalogue.app_names() or (catalogue.root / "patches" / name).exists():
        raise UsageError(
            f'the catalogue has "{name}" already, and nothing is overwritten',
            where=f"patches/{name}",
            remedy=f"give another name with --name; or remove that folder and lockfiles/{name}, to propose it anew",
        )
