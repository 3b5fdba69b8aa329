"""Where the catalogue is, and whether an app's patches there are those of before; nothing of it is parsed."""

from __future__ import annotations

from pathlib import Path

from patchlock import __version__
from patchlock.core import command_lines
from patchlock.model.errors import UsageError


def catalogue_root(folder: Path | None) -> Path:
    """Name the catalogue's folder: the one that the user names, the checkout's, or the one in the wheel."""
    if folder is not None:
        return folder.resolve()
    package = Path(__file__).parent.parent
    bundled = package / "_catalogue"
    return bundled if bundled.is_dir() else package.parent.parent


def is_bundled(root: Path) -> bool:
    """Tell whether a folder is, or lies in, the catalogue of a wheel."""
    return root.resolve().is_relative_to(Path(__file__).resolve().parent.parent)


def require_own(root: Path) -> None:
    """Require that a catalogue may be written to.

    Raises:
        UsageError: it came in the wheel, where the next update of patchlock would replace what was written.
    """
    if is_bundled(root):
        raise UsageError(
            "this catalogue came with patchlock, whose updates replace it",
            where=str(root),
            remedy=f"copy it with `{command_lines.copy(catalogue_root(None), 'my-catalogue')}`, and add "
            "`--catalogue my-catalogue` to the command",
        )


def is_catalogue(folder: Path) -> bool:
    """Tell whether a folder holds a catalogue."""
    return (folder / "profiles").is_dir() and (folder / "patches").is_dir()


def checked_root(folder: Path | None) -> Path:
    """Name the catalogue's folder, as `catalogue_root` does.

    Raises:
        UsageError: the named folder holds no catalogue.
    """
    if folder is not None and not is_catalogue(folder):
        what = "that folder holds no catalogue" if folder.is_dir() else "there is no such folder"
        raise UsageError(what, where=str(folder), remedy="it needs profiles/ and patches/")
    return catalogue_root(folder)


def patches_digest(root: Path, app: str, profile: str) -> str:
    """Digest the files of a catalogue that say which patches an app has on a profile; 64 hexadecimal digits."""
    from patchlock.core import code_digest  # hashlib takes longer to load than most commands take for an answer

    folders = (root / "patches" / app, root / "patches" / "shared")
    files = sorted(file for folder in folders for end in ("toml", "py") for file in folder.glob(f"*.{end}"))
    parts = [("", word.encode()) for word in (__version__, app, profile)]
    return code_digest.digest_of([*parts, *((str(file.relative_to(root)), file.read_bytes()) for file in files)])
