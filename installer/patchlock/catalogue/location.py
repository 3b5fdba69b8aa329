"""Where the catalogue is: the folder that the user names, the checkout's, or the one in the wheel."""

from __future__ import annotations

from pathlib import Path


def catalogue_root(folder: Path | None) -> Path:
    """Name the catalogue's folder: the one that the user names, the checkout's, or the one in the wheel."""
    if folder is not None:
        return folder.resolve()
    package = Path(__file__).parent.parent
    bundled = package / "_catalogue"
    return bundled if bundled.is_dir() else package.parent.parent
